//! Which servers serve a zone, as its parent names them.

use std::net::IpAddr;

use cache::Now;
use cache::cuts::{Cut, NewCut, NewCutServer, NewDs};

use crate::heap_name::HeapName;

/// A server of a zone, and the addresses that its parent gives for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameServer {
    pub(crate) name: HeapName,
    /// Good for this delegation alone.
    pub(crate) glue: Vec<IpAddr>,
}

/// A zone and its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delegation {
    pub(crate) zone: HeapName,
    pub(crate) servers: Vec<NameServer>,
    /// Nothing below this zone is found by these servers for longer.
    pub(crate) ends_at: Now,
}

impl Delegation {
    /// Copies what the table has.
    pub(crate) fn of(cut: &Cut<'_>) -> Self {
        let servers = cut
            .servers()
            .map(|(name, glue)| NameServer { name: HeapName::new(name.as_name()), glue: glue.collect() });
        Self { zone: HeapName::new(cut.zone), servers: servers.collect(), ends_at: cut.ends_at }
    }

    /// Calls `put` with what the table keeps of it.
    pub(crate) fn with_cut<R>(&self, ttl: u32, parent_ends_at: Now, put: impl FnOnce(&NewCut<'_>) -> R) -> R {
        let servers: Vec<NewCutServer<'_>> = self
            .servers
            .iter()
            .map(|server| NewCutServer { name: server.name.as_name(), addresses: &server.glue })
            .collect();
        put(&NewCut { servers: &servers, child: &[], ds: NewDs::Unknown, ttl, parent_ends_at })
    }
}
