//! Which servers serve a zone, as its parent names them.

use std::net::IpAddr;

use cache::Now;
use cache::cuts::{Cut, Ds, NewCut, NewCutServer, NewDs};
use smallvec::SmallVec;

use crate::heap_name::HeapName;
use crate::routes::RouteKey;

/// Addresses of one server: nearly always one of each family.
pub(crate) type Glue = SmallVec<[IpAddr; 2]>;

/// A server of a zone, and the addresses that its parent gives for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameServer {
    pub(crate) name: HeapName,
    /// Good for this delegation alone.
    pub(crate) glue: Glue,
}

/// A zone and its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delegation {
    pub(crate) zone: HeapName,
    pub(crate) servers: Vec<NameServer>,
    /// The route that says whom to ask instead, if settings do.
    pub(crate) route: Option<RouteKey>,
    /// Nothing below this zone is found by these servers for longer.
    pub(crate) ends_at: Now,
    /// What the parent says of its keys.
    pub(crate) ds: DsState,
}

/// What the parent of a zone says of the zone's keys, as far as that is proved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum DsState {
    /// Nobody asked, or nobody could prove it.
    #[default]
    Unknown,
    /// No chain of signatures leads to the zone.
    Unsigned,
    /// The data of the DS records.
    Signed(Vec<Box<[u8]>>),
}

impl Delegation {
    /// Copies what the table has.
    pub(crate) fn of(cut: &Cut<'_>) -> Self {
        let servers = cut
            .servers()
            .map(|(name, glue)| NameServer { name: HeapName::new(name.as_name()), glue: glue.collect() });
        let ds = match cut.ds() {
            Ds::Unknown => DsState::Unknown,
            Ds::Unsigned => DsState::Unsigned,
            Ds::Signed(records) => DsState::Signed(records.map(Into::into).collect()),
        };
        Self {
            zone: HeapName::new(cut.zone),
            servers: servers.collect(),
            route: None,
            ends_at: cut.ends_at,
            ds,
        }
    }

    /// Calls `put` with what the table keeps of it.
    pub(crate) fn with_cut<R>(&self, ttl: u32, parent_ends_at: Now, put: impl FnOnce(&NewCut<'_>) -> R) -> R {
        let servers: Vec<NewCutServer<'_>> = self
            .servers
            .iter()
            .map(|server| NewCutServer { name: server.name.as_name(), addresses: &server.glue })
            .collect();
        let records: Vec<&[u8]> = match &self.ds {
            DsState::Signed(records) => records.iter().map(|record| &**record).collect(),
            DsState::Unknown | DsState::Unsigned => Vec::new(),
        };
        let ds = match &self.ds {
            DsState::Unknown => NewDs::Unknown,
            DsState::Unsigned => NewDs::Unsigned,
            DsState::Signed(_) => NewDs::Signed(&records),
        };
        put(&NewCut { servers: &servers, child: &[], ds, ttl, parent_ends_at })
    }
}
