//! Who resolves the names of web servers: the machine, or DNS servers that the operator names.
//!
//! A server that is the resolver of its own machine should not need itself to fetch its lists: with
//! servers named, nothing of the machine is asked. One question after the other, on the thread of
//! whoever waits.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use wire::{NameBuf, Rtype};

/// How long everything may take if nobody says otherwise.
const PATIENCE_ALL: Duration = Duration::from_secs(30);
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;

/// The addresses of a name in one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The addresses; none if the name has none.
    pub list: Vec<IpAddr>,
    /// For how many seconds they may be kept, or that there are none.
    pub ttl: u32,
}

/// Asks servers that resolve.
pub trait Lookup: Send + Sync + fmt::Debug {
    /// Asks one server after the other for the addresses of a name, A or AAAA, until one knows or
    /// the time is over. Blocks.
    fn addresses(
        &self,
        servers: &[SocketAddr],
        name: &NameBuf,
        qtype: Rtype,
        deadline: Instant,
    ) -> Result<Addresses, String>;
}

/// The servers to ask; none: the machine. Shared by all jobs, and replaced by a reload.
#[derive(Clone, Debug)]
pub(crate) struct Resolvers {
    servers: Arc<Mutex<Vec<SocketAddr>>>,
    lookup: Arc<dyn Lookup>,
}

impl Resolvers {
    pub(crate) fn new(lookup: Arc<dyn Lookup>) -> Self {
        Self { servers: Arc::default(), lookup }
    }

    /// Asks these from now on.
    pub(crate) fn adopt(&self, servers: &[SocketAddr]) {
        servers.clone_into(&mut self.servers.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Resolver for Resolvers {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().unwrap_or("");
        let port = crate::web::port_of(uri);
        if is_localhost(host) {
            let mut all = self.empty();
            for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
                all.push(SocketAddr::new(address, port));
            }
            return Ok(all);
        }
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        if servers.is_empty() || is_address {
            return DefaultResolver::default().resolve(uri, config, timeout);
        }
        let patience = if timeout.after.is_not_happening() { PATIENCE_ALL } else { *timeout.after };
        let found =
            look_up(&*self.lookup, &servers, host, Instant::now() + patience).map_err(io::Error::other)?;
        let mut all = self.empty();
        found.iter().take(ADDRESSES_MAX).for_each(|address| all.push(SocketAddr::new(*address, port)));
        Ok(all)
    }
}

/// Returns whether a host is this machine, whatever anybody says who is asked (RFC 6761 §6.3):
/// what is sent there without TLS must not leave it.
fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Looks up the addresses of a name. IPv4 first: they are tried one after the other, each until it
/// times out, so that a machine with broken IPv6 would get no list.
fn look_up(
    lookup: &dyn Lookup,
    servers: &[SocketAddr],
    host: &str,
    deadline: Instant,
) -> Result<Vec<IpAddr>, String> {
    let name = NameBuf::from_str(host).map_err(|_| format!("\"{host}\" is not a name"))?;
    let mut found = Vec::new();
    let mut trouble = format!("\"{host}\" has no address");
    for qtype in [Rtype::A, Rtype::AAAA] {
        match lookup.addresses(servers, &name, qtype, deadline) {
            Ok(more) => found.extend(more.list),
            Err(why) => trouble = format!("\"{host}\" cannot be resolved: {why}"),
        }
    }
    if found.is_empty() { Err(trouble) } else { Ok(found) }
}

/// Asks nobody, for tests.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Nobody;

#[cfg(test)]
impl Lookup for Nobody {
    fn addresses(&self, _: &[SocketAddr], _: &NameBuf, _: Rtype, _: Instant) -> Result<Addresses, String> {
        Err("nobody is there".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows one name, with an address of each family.
    #[derive(Debug)]
    struct Knows(&'static str);

    impl Lookup for Knows {
        fn addresses(
            &self,
            _: &[SocketAddr],
            name: &NameBuf,
            qtype: Rtype,
            _: Instant,
        ) -> Result<Addresses, String> {
            let address = if qtype == Rtype::A { "192.0.2.1" } else { "2001:db8::1" };
            match name.to_string() == self.0 {
                true => Ok(Addresses { list: vec![address.parse().expect("an address")], ttl: 60 }),
                false => Err("192.0.2.53:53 answers SERVFAIL".to_owned()),
            }
        }
    }

    #[test]
    fn localhost_is_this_machine_and_nothing_else_is() {
        for host in ["localhost", "LOCALHOST.", "a.localhost"] {
            assert!(is_localhost(host), "{host}");
        }
        for host in ["localhost.example", "alocalhost", "", "127.0.0.1"] {
            assert!(!is_localhost(host), "{host}");
        }
    }

    #[test]
    fn both_families_are_tried_and_trouble_is_told() {
        let now = Instant::now();
        let found = look_up(&Knows("www.example."), &[], "www.example", now).expect("addresses");
        assert_eq!(found.iter().map(IpAddr::is_ipv4).collect::<Vec<_>>(), [true, false]);
        let why = look_up(&Knows("other.example."), &[], "www.example", now).expect_err("it is not known");
        assert_eq!(why, "\"www.example\" cannot be resolved: 192.0.2.53:53 answers SERVFAIL");
    }
}
