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
    /// The addresses that its parent gives for its servers, whichever has which: good for this
    /// delegation alone. Nearly always two servers of two addresses each.
    pub(crate) addresses: SmallVec<[IpAddr; 4]>,
    /// Servers for which it gives none.
    pub(crate) nameless: Vec<HeapName>,
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
    /// Returns one without servers.
    pub(crate) fn of_nobody(zone: HeapName, route: Option<RouteKey>) -> Self {
        let (addresses, nameless) = (SmallVec::new(), Vec::new());
        Self { zone, addresses, nameless, route, ends_at: Now(u32::MAX), ds: DsState::Unknown }
    }

    /// Returns the delegation to these servers.
    pub(crate) fn new(zone: HeapName, servers: Vec<NameServer>, ends_at: Now, ds: DsState) -> Self {
        let mut delegation = Self { ends_at, ds, ..Self::of_nobody(zone, None) };
        for NameServer { name, glue } in servers {
            delegation.add(glue, || name);
        }
        delegation
    }

    /// Copies what the table has.
    pub(crate) fn of(cut: &Cut<'_>) -> Self {
        let ds = match cut.ds() {
            Ds::Unknown => DsState::Unknown,
            Ds::Unsigned => DsState::Unsigned,
            Ds::Signed(records) => DsState::Signed(records.map(Into::into).collect()),
        };
        let zone = HeapName::new(cut.zone);
        let mut delegation = Self { ends_at: cut.ends_at, ds, ..Self::of_nobody(zone, None) };
        for (name, glue) in cut.servers() {
            delegation.add(glue, || HeapName::new(name.as_name()));
        }
        delegation
    }

    fn add(&mut self, glue: impl IntoIterator<Item = IpAddr>, name: impl FnOnce() -> HeapName) {
        let known = self.addresses.len();
        self.addresses.extend(glue);
        if self.addresses.len() == known {
            self.nameless.push(name());
        }
    }
}

/// Calls `put` with what the table keeps of a delegation to these servers.
pub(crate) fn with_cut<R>(
    servers: &[NameServer],
    ds: &DsState,
    (ttl, parent_ends_at): (u32, Now),
    put: impl FnOnce(&NewCut<'_>) -> R,
) -> R {
    let servers = servers
        .iter()
        .map(|server| NewCutServer { name: server.name.as_name(), addresses: &server.glue })
        .collect::<SmallVec<[_; 4]>>();
    let records: Vec<&[u8]> = match ds {
        DsState::Signed(records) => records.iter().map(|record| &**record).collect(),
        DsState::Unknown | DsState::Unsigned => Vec::new(),
    };
    let ds = match ds {
        DsState::Unknown => NewDs::Unknown,
        DsState::Unsigned => NewDs::Unsigned,
        DsState::Signed(_) => NewDs::Signed(&records),
    };
    put(&NewCut { servers: &servers, child: &[], ds, ttl, parent_ends_at })
}
