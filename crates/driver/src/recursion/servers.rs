//! The name servers that lead to names, as the resolvers of one worker know them.

use cache::Now;
use engine::{NameServer, NameServers};
use resolver::{KnownServer, ServersKnown};
use wire::Name;

/// What all resolvers of a worker know. Policies do not say which of them found an answer.
pub(crate) struct AllServers(pub(super) Vec<ServersKnown>);

impl NameServers for AllServers {
    fn each(&self, name: Name<'_>, now: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool) {
        for known in &self.0 {
            let mut is_done = false;
            known.each(name, Now(now), &mut |server| {
                is_done = match server {
                    KnownServer::Name(name) => f(NameServer::Name(name)),
                    KnownServer::Address(address) => f(NameServer::Address(address)),
                };
                is_done
            });
            if is_done {
                return;
            }
        }
    }
}
