//! Clients, as the record of queries has them.

use std::collections::HashMap;
use std::net::IpAddr;

use control::api;
use plan::jobs::RecordedClients;
use recorder::Clients;
use settings::LocalName;

use super::queries::{DAY_MS, SEARCH_TIME, unix_ms};
use super::{Operator, OperatorError, What};
use crate::lock;

/// Clients of one part, unless somebody wants fewer or more, and the most.
const CLIENTS_SHOWN: u64 = 100;
const CLIENTS_SHOWN_MAX: u64 = 1_000;

impl Operator {
    /// Says which clients asked lately, by their names.
    ///
    /// # Errors
    ///
    /// Nothing is recorded, or no file can be read.
    pub fn clients(&self, of: &api::ClientsOf) -> Result<Vec<api::ClientSeen>, OperatorError> {
        let since_ms = of.since_ms.unwrap_or_else(|| unix_ms().saturating_sub(DAY_MS));
        let count = of.count.unwrap_or(CLIENTS_SHOWN).min(CLIENTS_SHOWN_MAX) as usize;
        let part = (of.after.as_deref(), count);
        let found = self.reader()?.clients(since_ms, part, SEARCH_TIME).map_err(OperatorError::Refused)?;
        let counted_from_ms = found.counted_from_ms;
        let names = self.names_of_clients();
        let seen = |sum: recorder::ClientSum| api::ClientSeen {
            name: sum.client.parse().ok().and_then(|client| names.get(&client).cloned()),
            client: sum.client,
            queries: sum.queries,
            blocked: sum.blocked,
            last_ms: sum.last_ms,
            counted_from_ms,
        };
        Ok(found.clients.into_iter().map(seen).collect())
    }

    /// Says what became of the queries of a client.
    ///
    /// # Errors
    ///
    /// Nothing is recorded, it is no client or has not asked, or no file can be read.
    pub fn client(&self, of: &api::ClientOf) -> Result<api::ClientShown, OperatorError> {
        let client = of.client.parse::<Clients>();
        let client = client.map_err(|why| OperatorError::Argument(format!("client {}: {why}", of.client)))?;
        let since_ms = of.since_ms.unwrap_or_else(|| unix_ms().saturating_sub(DAY_MS));
        let counts = self.reader()?.client(client, since_ms, SEARCH_TIME).map_err(OperatorError::Refused)?;
        if counts.queries == 0 && counts.counted_from_ms.is_none() {
            return Err(OperatorError::not_found(What::Client, &of.client));
        }
        let tallies = |all: Vec<recorder::Tally>| all.into_iter().map(super::queries::tally).collect();
        Ok(api::ClientShown {
            client: of.client.clone(),
            name: of.client.parse().ok().and_then(|client| self.names_of_clients().remove(&client)),
            queries: counts.queries,
            outcomes: tallies(counts.outcomes),
            types: tallies(counts.types),
            names: tallies(counts.names),
            blocked: tallies(counts.blocked),
            last_ms: counts.last_ms,
            counted_from_ms: counts.counted_from_ms,
        })
    }

    /// Returns the local names of addresses, if whole addresses are recorded.
    fn names_of_clients(&self) -> HashMap<IpAddr, String> {
        let current = lock(&self.current);
        let mode = current.plans.jobs.recorder.as_ref().map(|recorder| recorder.clients);
        if mode != Some(RecordedClients::Full) {
            return HashMap::new();
        }
        let name = |local: &LocalName| local.name.value.to_string().trim_end_matches('.').to_owned();
        let locals = current.loaded.settings.local.iter();
        locals.flat_map(|local| local.addresses.iter().map(move |at| (*at, name(local)))).collect()
    }
}
