//! What servers say to each other about zones: transfers, notifications, updates, and signatures
//! with shared keys.
//!
//! None of this is on a query's path. What takes one message is answered here; a transfer is a row
//! of messages that the listener takes as its client does; an update goes to the [`ManagedZones`],
//! which has journals and threads.

pub(crate) mod messages;
mod places;
mod rights;
mod transfer;

use std::net::IpAddr;
use std::sync::Arc;

use tsig::Keys;
use wire::{EdeCode, Header, Name, NameBuf, Opcode, OptionCode, Query, Rcode, Rtype};
use zone::{Difference, Zones};

use crate::answer::Answer;
pub use clients::client::KeyHash;
pub use messages::{LateReply, Pending, Streamed};
pub use places::Places;
pub use rights::{Grant, Reach, Rights, Scope};
pub use transfer::Transfer;

/// Managed zones: their history, NOTIFY and dynamic updates. Never blocks.
pub trait ManagedZones: Send + Sync {
    /// Returns who may do what with a zone; nobody anything where there is nothing.
    fn rights(&self, apex: Name<'_>) -> Option<Arc<Rights>>;

    /// Returns the steps from one version to another, oldest first; nothing if not all of them are
    /// there.
    fn history(&self, apex: Name<'_>, from: u32, to: u32) -> Option<Vec<Arc<Difference>>>;

    /// Returns for how many seconds a zone from elsewhere may still be served if nobody is heard
    /// of; nothing if it is from here.
    fn left_s(&self, apex: Name<'_>, unix_seconds: u32) -> Option<u32>;

    /// Hears that `from` may have a newer version.
    fn notified(&self, apex: Name<'_>, from: IpAddr, serial: Option<u32>);

    /// Takes an update; `false` if there is no room for another.
    fn update(&self, update: Update) -> bool;

    /// Takes an update that is for the primaries of a zone to decide; `false` if there is no room
    /// for another.
    fn forward(&self, forward: Forward) -> bool;
}

/// What came of an update.
pub enum Done {
    /// This.
    Rcode(Rcode),
    /// What the primary says, as it said it.
    Reply(Vec<u8>),
}

/// An update that who sent it may make.
pub struct Update {
    /// The zone.
    pub apex: NameBuf,
    /// The message, without signature.
    pub message: Vec<u8>,
    /// What may be changed.
    pub scopes: Vec<Arc<Scope>>,
    /// The key that it was signed with.
    pub signed_by: Option<NameBuf>,
    /// Hears what came of it, once.
    pub done: Box<dyn FnOnce(Done) + Send>,
}

/// An update that is passed on to where a zone comes from (RFC 2136 §6).
pub struct Forward {
    /// The zone.
    pub apex: NameBuf,
    /// The message as it came, with its signature.
    pub message: Vec<u8>,
    /// Who sent it, and from which port.
    pub from: (IpAddr, u16),
    /// Hears what came of it, once.
    pub done: Box<dyn FnOnce(Done) + Send>,
}

/// The zones that are served, and what other servers may do with them: replaced whole whenever a
/// zone changes.
pub struct Authority {
    /// The zones, which queries are answered from.
    pub zones: Arc<Zones>,
    /// Zones that no query is answered from: resolvers read them.
    pub for_resolvers: Option<Arc<Zones>>,
    /// Keys by name.
    pub keys: Keys,
    /// Looks after the zones.
    pub keeper: Arc<dyn ManagedZones>,
    /// Bounds transfers.
    pub places: Arc<Places>,
}

impl Authority {
    /// Returns whether there is a zone with this apex, for clients or for resolvers alone.
    fn has(&self, apex: Name<'_>) -> bool {
        self.zones.has(apex) || self.for_resolvers.as_ref().is_some_and(|zones| zones.has(apex))
    }

    /// Returns zones that nobody manages: they answer queries, and other servers may do nothing
    /// with them.
    pub fn unmanaged(zones: Arc<Zones>) -> Self {
        Self {
            zones,
            for_resolvers: None,
            keys: Keys::default(),
            keeper: Arc::new(Unmanaged),
            places: Arc::new(Places::new(0, 0)),
        }
    }
}

/// Stands in for a manager where there is none.
struct Unmanaged;

impl ManagedZones for Unmanaged {
    fn rights(&self, _: Name<'_>) -> Option<Arc<Rights>> {
        None
    }

    fn history(&self, _: Name<'_>, _: u32, _: u32) -> Option<Vec<Arc<Difference>>> {
        None
    }

    fn left_s(&self, _: Name<'_>, _: u32) -> Option<u32> {
        None
    }

    fn notified(&self, _: Name<'_>, _: IpAddr, _: Option<u32>) {}

    fn update(&self, _: Update) -> bool {
        false
    }

    fn forward(&self, _: Forward) -> bool {
        false
    }
}

/// Returns for how many seconds we may serve the zone that a query is about, if that is what it
/// asks, too (RFC 7314 §3).
#[cold]
pub(crate) fn expire_s(authority: &Authority, query: &Query<'_>, unix_seconds: u32) -> Option<u32> {
    query.edns?.option(OptionCode::EXPIRE)?;
    let apex = query.question.qname;
    let zone = authority.zones.at(apex)??;
    Some(authority.keeper.left_s(apex, unix_seconds).unwrap_or(zone.soa_times().expire))
}

/// Returns whether a message is one that is handled here.
pub(crate) fn is_between_servers(message: &[u8]) -> bool {
    let Some(header) = Header::parse(message) else { return false };
    match header.flags.opcode() {
        Opcode::NOTIFY | Opcode::UPDATE => true,
        Opcode::QUERY => Query::parse(message).is_ok_and(|query| is_transfer(query.question.qtype)),
        _ => false,
    }
}

/// Returns whether a type asks for a transfer.
pub(crate) const fn is_transfer(qtype: Rtype) -> bool {
    matches!(qtype, Rtype::AXFR | Rtype::IXFR)
}

/// What a query that nobody handles here is told, where there is no authority.
pub(crate) fn no_transfers() -> Answer {
    Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_SUPPORTED, "no zone transfers here")))
}
