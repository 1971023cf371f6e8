//! Response policy zones, asked by a resolver before it asks servers.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use sets::{Asking, Blocklist, KnownServers, NameServers};
use wire::{Folded, HashKey, Name, Rtype};

use crate::query::names::Sought;

/// A list with response policy zones that a program looks at.
pub(crate) struct Watched {
    pub(crate) list: Arc<Blocklist>,
    /// Whether its exceptions count as rules.
    pub(crate) counts_exceptions: bool,
}

/// The response policy zones of a program.
///
/// They are asked whoever the client is: whether a rule is for the client is found out by the
/// program, which goes on with what is known so far.
#[derive(Clone)]
pub struct Watch {
    pub(crate) lists: Arc<[Watched]>,
    /// The key that every set was compiled with.
    pub(crate) key: HashKey,
}

/// Those of one program are the same, those of two are not.
impl PartialEq for Watch {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.lists, &other.lists)
    }
}

impl Watch {
    /// Returns whether there are rules on name servers.
    pub fn looks_at_servers(&self) -> bool {
        self.lists.iter().any(|watched| watched.list.looks_at_servers())
    }

    /// Returns whether there is a rule on a name, or on the servers that lead to it. `now` is the
    /// time of the caches, in seconds.
    pub fn speaks_of(&self, name: Name<'_>, servers: Option<&dyn NameServers>, now: u32) -> bool {
        let key = &self.key;
        let mut folded = Folded::root();
        let hash = key.fold(name, &mut folded);
        let asking = Asking {
            sought: &Sought::new(&folded, hash),
            qtype: Rtype::A,
            client: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            by_client: true,
            addresses: &[],
            servers: servers.map(|source| KnownServers { source, key, now }),
        };
        self.lists.iter().any(|watched| {
            let ruling = watched.list.rule(&asking);
            ruling.is_some_and(|ruling| watched.counts_exceptions || !ruling.is_allowed)
        })
    }
}
