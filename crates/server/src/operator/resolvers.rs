//! Resolvers, as their operator sees them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use cache::cuts::Ds;
use cache::rrsets::{Partition, RrsetFlush, Rrsets};
use cache::servers::{Edns, Facts, LetterCase, NowMs};
use control::api::{self, ResolverFlush};

use super::caches::{name_of, rtype_of};
use super::{Operator, OperatorError, What};

/// Servers that one look shows.
const SERVERS_SHOWN_MAX: usize = 1000;

impl Operator {
    /// Says how full the tables of resolvers are, that of servers included.
    ///
    /// # Errors
    ///
    /// There is no such resolver.
    pub fn resolver_stats(
        &self,
        only: Option<&str>,
    ) -> Result<BTreeMap<String, api::CacheStats>, OperatorError> {
        let shown = |stats: cache::Stats| api::CacheStats {
            entries: stats.entries,
            octets: stats.octets as u64,
            octets_max: stats.octets_max as u64,
            inserts: stats.inserts,
            evictions: stats.evictions,
        };
        let tables = self.resolver_rrsets(only)?;
        let mut all: BTreeMap<_, _> =
            tables.into_iter().map(|(name, rrsets, _)| (name, shown(rrsets.stats()))).collect();
        // No resolver has this name: names have no spaces.
        all.insert("all servers".to_owned(), shown(self.components.resolver_tables.servers().stats()));
        Ok(all)
    }

    /// Says what is known of the servers that resolvers have asked.
    pub fn resolver_servers(&self) -> api::ResolverServers {
        let table = self.components.resolver_tables.servers();
        let since_boot = self.facts.clock.since_boot();
        let now = NowMs(u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX));
        let mut all = Vec::new();
        table.for_each(now, |address, facts| {
            all.push((facts.round_trip.map_or(u32::MAX, |it| it.smoothed_us), address, *facts));
        });
        all.sort_by_key(|(round_trip_us, address, _)| (*round_trip_us, *address));
        let is_cut_short = all.len() > SERVERS_SHOWN_MAX;
        all.truncate(SERVERS_SHOWN_MAX);
        let servers = all
            .into_iter()
            .map(|(_, address, facts)| described(address, &facts, table.cookie(address).is_some()));
        api::ResolverServers { servers: servers.collect(), is_cut_short }
    }

    /// Says by which servers the closest zone is served that resolvers know to enclose a name.
    ///
    /// # Errors
    ///
    /// There is no such resolver, or the name is none.
    pub fn resolver_zone(
        &self,
        only: Option<&str>,
        name: &str,
    ) -> Result<Vec<api::ResolverZone>, OperatorError> {
        let name = name_of(name)?;
        let now = self.facts.clock.cache_now();
        let mut room = Vec::new();
        let zones = self.resolver_rrsets(only)?.into_iter().map(|(resolver, rrsets, partition)| {
            let Some(cut) = rrsets.closest_cut(name.as_name(), partition, now, &mut room) else {
                let (zone, ds, servers) = (None, "unknown".to_owned(), Vec::new());
                return api::ResolverZone { resolver, zone, holds_for_s: 0, ds, servers };
            };
            let ds = match cut.ds() {
                Ds::Signed(_) => "signed",
                Ds::Unsigned => "unsigned",
                Ds::Unknown => "unknown",
            };
            let servers = cut.servers().map(|(name, addresses)| api::ResolverZoneServer {
                name: name.to_string(),
                addresses: addresses.map(|address| address.to_string()).collect(),
            });
            api::ResolverZone {
                resolver,
                zone: Some(cut.zone.to_string()),
                holds_for_s: cut.ttl,
                ds: ds.to_owned(),
                servers: servers.collect(),
            }
        });
        Ok(zones.collect())
    }

    /// Forgets what resolvers have learned; says how many entries that were.
    ///
    /// # Errors
    ///
    /// There is no such resolver, or what is to be forgotten makes no sense.
    pub fn resolver_flush(
        &self,
        only: Option<&str>,
        what: &ResolverFlush,
    ) -> Result<api::Flushed, OperatorError> {
        let tables = self.resolver_rrsets(only)?;
        let flush =
            |what: RrsetFlush<'_>| tables.iter().map(|(_, rrsets, _)| rrsets.flush(what) as u64).sum::<u64>();
        let removed = match what {
            ResolverFlush::All => {
                // What is known of servers is known by all resolvers.
                let servers = match only {
                    None => self.components.resolver_tables.servers().forget_all(),
                    Some(_) => 0,
                };
                flush(RrsetFlush::All) + servers as u64
            }
            ResolverFlush::Name(name) => flush(RrsetFlush::Name(name_of(name)?.as_name())),
            ResolverFlush::Suffix(name) => flush(RrsetFlush::Suffix(name_of(name)?.as_name())),
            ResolverFlush::Type { name, rtype } => {
                let rtype = rtype_of(rtype)?;
                flush(RrsetFlush::Type(name_of(name)?.as_name(), rtype))
            }
            ResolverFlush::Bogus => flush(RrsetFlush::Bogus),
            ResolverFlush::Negative => flush(RrsetFlush::Negative),
        };
        Ok(api::Flushed { removed })
    }

    /// Returns the tables of all resolvers, or of the one with this name.
    fn resolver_rrsets(
        &self,
        only: Option<&str>,
    ) -> Result<Vec<(String, Arc<Rrsets>, Partition)>, OperatorError> {
        let mut all = self.components.resolver_tables.rrsets();
        let Some(wanted) = only else { return Ok(all) };
        all.retain(|(name, ..)| name == wanted);
        if all.is_empty() { Err(OperatorError::not_found(What::Resolver, wanted)) } else { Ok(all) }
    }
}

fn described(address: SocketAddr, facts: &Facts, has_cookie: bool) -> api::ResolverServer {
    let ms = |us: u32| f64::from(us) / 1000.0;
    api::ResolverServer {
        address: address.to_string(),
        round_trip_ms: facts.round_trip.map(|it| ms(it.smoothed_us)),
        variation_ms: facts.round_trip.map(|it| ms(it.variation_us)),
        silences: facts.silences,
        edns: match facts.edns {
            Edns::Unknown => None,
            Edns::Works => Some("works".to_owned()),
            Edns::UpTo { octets } => Some(format!("up to {octets} octets")),
            Edns::None => Some("none".to_owned()),
        },
        keeps_case: match facts.case {
            LetterCase::Unknown => None,
            LetterCase::Kept => Some(true),
            LetterCase::Changed => Some(false),
        },
        has_cookie,
    }
}
