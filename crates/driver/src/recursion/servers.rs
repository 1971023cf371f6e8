//! The name servers that lead to names, as the resolvers of one worker know them.

use cache::Now;
use engine::{NameServer, NameServers, Watch};
use resolver::{KnownServer, ServersKnown};
use wire::Name;

/// What all resolvers of a worker know. Policies do not say which of them found an answer.
pub(crate) struct AllServers(pub(super) Vec<ServersKnown>);

/// What one resolver knows.
struct OfOne<'a>(&'a ServersKnown);

impl OfOne<'_> {
    /// Calls `f` with the servers that lead to a name, until it returns true; returns whether it
    /// did.
    fn any(&self, name: Name<'_>, now: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool) -> bool {
        let mut is_done = false;
        self.0.each(name, Now(now), &mut |server| {
            is_done = match server {
                KnownServer::Name(name) => f(NameServer::Name(name)),
                KnownServer::Address(address) => f(NameServer::Address(address)),
            };
            is_done
        });
        is_done
    }
}

impl NameServers for OfOne<'_> {
    fn each(&self, name: Name<'_>, now: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool) {
        self.any(name, now, f);
    }
}

impl NameServers for AllServers {
    fn each(&self, name: Name<'_>, now: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool) {
        let _ = self.0.iter().any(|known| OfOne(known).any(name, now, f));
    }
}

/// Response policy zones, as a resolver asks them.
pub(super) struct Watching(pub(super) Watch);

impl resolver::Watch for Watching {
    fn looks_at_servers(&self) -> bool {
        self.0.looks_at_servers()
    }

    fn speaks_of(&self, name: Name<'_>, servers: Option<&ServersKnown>, Now(now): Now) -> bool {
        let known = servers.map(OfOne);
        self.0.speaks_of(name, known.as_ref().map(|known| known as &dyn NameServers), now)
    }
}
