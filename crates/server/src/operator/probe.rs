//! Upstream servers are measured from where the server is.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use control::Role;
use control::api;
use environment::{Environment, System};
use plan::upstreams::ServerPlan;
use wire::NameBuf;

use super::{Operator, OperatorError};
use crate::lock;
use crate::probe::{Measuring, measure, server};

/// Probes at once.
const PROBES_MAX: usize = 2;
/// Queries that are sent one after the other, unless another number is asked for, and the most.
const QUERIES: u16 = 5;
const QUERIES_MAX: u16 = 20;
/// How long to wait for a reply, unless another time is asked for, and the longest.
const PATIENCE_MS: u32 = 2_000;
const PATIENCE_MS_MAX: u32 = 5_000;
/// How long all of a probe may take.
const WHOLE_PATIENCE: Duration = Duration::from_secs(30);
/// Where names with right and wrong signatures are, as for `gannet probe`.
const SIGNED: &str = "example.com";
const BOGUS: &str = "dnssec-failed.org";

impl Operator {
    /// Measures an upstream server for somebody with this role: one of the configuration, asked as
    /// it is configured; for admins also another one, and one as a mapping says.
    ///
    /// # Errors
    ///
    /// There is no such server, a number is beyond its bounds, or so many are being measured that
    /// this has to wait.
    pub fn probe(&self, asked: &api::ProbeAsked, role: Role) -> Result<api::Probe, OperatorError> {
        let argument = |why: String| OperatorError::Argument(why);
        let name = |text: &Option<String>, usual: &str| -> Result<NameBuf, OperatorError> {
            let text = text.as_deref().unwrap_or(usual);
            text.parse().map_err(|error| argument(format!("\"{text}\" is not a name: {error}")))
        };
        let count = asked.count.unwrap_or(QUERIES);
        if !(1..=QUERIES_MAX).contains(&count) {
            return Err(argument(format!("{count} queries: expected 1 to {QUERIES_MAX}")));
        }
        let timeout_ms = asked.timeout_ms.unwrap_or(PATIENCE_MS);
        if !(1..=PATIENCE_MS_MAX).contains(&timeout_ms) {
            return Err(argument(format!("{timeout_ms} ms for a reply: expected 1 to {PATIENCE_MS_MAX}")));
        }
        let measuring = Measuring {
            written: asked.server.clone(),
            name: name(&asked.name, SIGNED)?,
            signed: name(&asked.signed, SIGNED)?,
            bogus: name(&asked.bogus, BOGUS)?,
            count,
            timeout: Duration::from_millis(timeout_ms.into()),
            idle: None,
            // Whoever may probe upstreams alone may not see what else there is at their hosts.
            tries_others: false,
            patience: Some(WHOLE_PATIENCE),
        };
        let _place = super::place(&self.probes, PROBES_MAX, "probes")?;
        let server = self.upstream(&asked.server, role)?;
        measure(&measuring, &server).map_err(OperatorError::Refused)
    }

    /// Returns the server that is written so.
    fn upstream(&self, written: &str, role: Role) -> Result<ServerPlan, OperatorError> {
        // A mapping can say more than which server is meant.
        if role < Role::Admin && written.contains(['{', '\n']) {
            let why = "expected a server as \"gannet status\" shows it: mappings are for admins";
            return Err(OperatorError::Argument(why.to_owned()));
        }
        let machine: &dyn Environment = if role >= Role::Admin { &System } else { &Nothing };
        let wanted = server(written, machine).map_err(OperatorError::Argument)?;
        let current = lock(&self.current);
        let known = current.plans.fetch.pools.iter().flat_map(|pool| &pool.servers);
        match meant(written, &wanted, known) {
            Some(known) => Ok(known.clone()),
            None if role >= Role::Admin => Ok(wanted),
            None => Err(OperatorError::Forbidden(format!(
                "\"{written}\" is not an upstream server of the configuration, and others are for admins"
            ))),
        }
    }
}

/// Returns which of the servers of the configuration is meant, and asked as it is configured.
fn meant<'p>(
    written: &str,
    wanted: &ServerPlan,
    mut known: impl Iterator<Item = &'p ServerPlan>,
) -> Option<&'p ServerPlan> {
    // A mapping says how a server is to be asked, which may not be how it is configured.
    if written.contains('{') {
        return None;
    }
    let scheme = |server: &ServerPlan| server.way.protocol.scheme();
    known.find(|known| known.target == wanted.target && scheme(known) == scheme(wanted))
}

/// A machine without files and variables: what somebody wrote is a server, and nothing else.
struct Nothing;

impl Environment for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn may_include(&self) -> bool {
        false
    }

    fn resolv_conf(&self) -> PathBuf {
        System.resolv_conf()
    }

    fn hosts_file(&self) -> PathBuf {
        System.hosts_file()
    }

    fn processors(&self) -> usize {
        System.processors()
    }

    fn random(&self, octets: &mut [u8]) {
        System.random(octets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_as_it_is_configured_and_a_mapping_as_it_says() {
        let read = |written: &str| server(written, &Nothing).expect("a server");
        let known = [
            read("192.0.2.1"),
            read("{address: \"tls://192.0.2.1\", tls-name: a.example}"),
            read("{address: \"tls://192.0.2.2\", tls-name: b.example}"),
        ];
        let of = |written: &str| {
            let found = meant(written, &read(written), known.iter())?;
            known.iter().position(|known| std::ptr::eq(known, found))
        };
        assert_eq!(of("192.0.2.1"), Some(0));
        assert_eq!(of("tls://192.0.2.1"), Some(1));
        assert_eq!(of("192.0.2.2"), None);
        assert_eq!(of("{address: \"tls://192.0.2.1\", tls-name: c.example}"), None);
    }
}
