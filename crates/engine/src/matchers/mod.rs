//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Conditions of a policy: each is compiled to a matcher, which looks at one thing of a query, its
//! client or the answer there is.

mod answer;
pub mod clock;
pub mod identity;
pub mod number;
pub mod rate;
pub mod text;
mod types;

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use crate::answer::Security;
use sets::{AddressSet, Asking, Blocklist, KnownServers, NameSet, ServerRule};
use wire::{Flags, Name, OptionCode, Rcode, Rtype};

use crate::answer::Interim;
use crate::query::names::Sought;
use crate::query::request::{Environment, Request};
use crate::query::reverse::address_of;
use clients::client::{ListenerId, Transport};
use clock::Hours;
use edit::Shape;
use identity::Macs;
use number::Number;
use rate::Rate;
use text::{TextSource, TextTest};
pub use types::TypeSet;

pub(crate) use answer::Alias;

/// Addresses of an answer that lists look at, so that an answer full of them costs no more than
/// others.
pub(crate) const ADDRESSES_MAX: usize = 32;

/// A condition on the query, its client or the answer there is.
pub enum Matcher {
    /// Always the same.
    Constant(bool),
    /// The name is in a set.
    Qname(Arc<NameSet>),
    /// A list with exceptions wants something to become of the query.
    Listed(Arc<Blocklist>),
    /// The type is one of these.
    Qtype(TypeSet),
    /// The query has this flag.
    Flag(Flags),
    /// The query asks for DNSSEC records (DO).
    WantsDnssec,
    /// The query has EDNS.
    Edns,
    /// The query has one of these EDNS options.
    EdnsOption(Box<[OptionCode]>),
    /// A number of the query is within this range.
    Number {
        /// Which.
        of: Number,
        /// The smallest.
        min: u16,
        /// The largest.
        max: u16,
    },
    /// The client's address is in a set.
    Client(Arc<AddressSet>),
    /// The client's hardware address, as a trusted peer tells it, is one of these.
    ClientMac(Macs),
    /// The client's identity, as a trusted peer tells it, fits.
    ClientId(TextTest),
    /// The query came to one of these listeners.
    Listener(Box<[ListenerId]>),
    /// The query came over one of these.
    Transport(Box<[Transport]>),
    /// What the client's connection began with fits: this bit of
    /// [`Client::connection`](crate::Client::connection).
    Connection(u8),
    /// The time is within these hours.
    Now(Box<Hours>),
    /// One of so many: holds when a random number is below this share of 2³².
    Random(u32),
    /// More queries come than this allows.
    Rate(Box<Rate>),
    /// A mark is set.
    Mark(u8),
    /// Any of these marks is set, one bit each.
    Marks(u64),
    /// There is an answer.
    Answer,
    /// The answer has a record of the type asked for.
    Answered,
    /// The answer's response code is one of these.
    Rcode(Box<[Rcode]>),
    /// What is known of the answer's signatures is one of these.
    Security(Box<[Security]>),
    /// The answer section has a record of one of these types.
    AnswerType(TypeSet),
    /// An address in the answer section is in a set.
    AnswerAddress(Arc<AddressSet>),
    /// The target of a CNAME in the answer section is in a set.
    AnswerCname(Arc<NameSet>),
    /// The name of a name server that led to the answer is in a set.
    ServerName(Arc<NameSet>),
    /// The address of one is.
    ServerAddress(Arc<AddressSet>),
    /// A list wants something to become of answers of one.
    ServerListed(Arc<Blocklist>, ServerRule),
    /// A list has a rule, or an exception, for the query or the answer there is.
    Ruled(Arc<Blocklist>),
    /// The name asked for stands for an address in a set (`4.3.2.1.in-addr.arpa`).
    ReverseAddress(Arc<AddressSet>),
    /// Something, as text, fits.
    Text(Box<(TextSource, TextTest)>),
}

/// What matchers look at.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) interim: &'a Interim,
    pub(crate) env: &'a Environment<'a>,
    /// The message in the making.
    pub(crate) message: &'a [u8],
}

impl Facts<'_> {
    fn qtype(&self) -> Rtype {
        self.request.query.question.qtype
    }

    /// Returns what lists with exceptions look at.
    pub(crate) fn asking(&self) -> Asking<'_> {
        self.asking_with(&[])
    }

    /// Returns what lists look at once there is an answer with these addresses.
    pub(crate) fn asking_with<'s>(&'s self, addresses: &'s [IpAddr]) -> Asking<'s> {
        Asking {
            sought: &self.request.sought,
            qtype: self.qtype(),
            client: self.client_address(),
            by_client: !self.interim.is_listed_alias,
            addresses,
            servers: self.servers(),
        }
    }

    /// Returns where the answer's records are, if there is an answer.
    fn shape(&self) -> Option<Shape> {
        self.interim.answer.as_ref().map(|answer| answer.shape(self.request.body_at()))
    }

    /// Returns the name servers that led to the answer there is.
    pub(crate) fn servers(&self) -> Option<KnownServers<'_>> {
        let source = self.env.servers.filter(|_| self.interim.answer.is_some())?;
        Some(KnownServers { source, key: self.env.key, now: self.env.now.cache.0 })
    }

    /// Returns what `f` says first of a name server that leads to the name asked for, or to one
    /// that this is an alias for.
    pub(crate) fn server_name<T>(&self, f: impl Fn(&Sought<'_>) -> Option<T>) -> Option<T> {
        let known = self.servers()?;
        known
            .find_name(self.request.sought.name(), &f)
            .or_else(|| self.answer_cname(|alias| known.find_name(alias.name(), &f)).map(|(_, found)| found))
    }

    /// Returns the first address of such a name server that is in a set.
    pub(crate) fn server_address(&self, set: &AddressSet) -> Option<IpAddr> {
        let known = self.servers()?;
        let found = Cell::new(None);
        let is_in = |address| {
            found.set(Some(address));
            set.contains(address)
        };
        let leads_to = |name: Name<'_>| known.any_address(name, is_in).then(|| found.get()).flatten();
        leads_to(self.request.sought.name())
            .or_else(|| self.answer_cname(|alias| leads_to(alias.name())).map(|(_, found)| found))
    }

    pub(crate) fn client_address(&self) -> IpAddr {
        self.request.client.address_of(self.request.query, self.env.trusted_peers)
    }

    pub(crate) fn is_peer_trusted(&self) -> bool {
        self.env.trusted_peers.contains(self.request.client.address)
    }

    /// Returns the first address in the answer section that `f` wants.
    pub(crate) fn answer_address(&self, f: impl FnMut(IpAddr) -> bool) -> Option<IpAddr> {
        answer::address(self, f)
    }

    /// Returns what `f` says of the first target of a CNAME in the answer section of which it says
    /// something, with the record.
    pub(crate) fn answer_cname<T>(&self, f: impl Fn(&Sought<'_>) -> Option<T>) -> Option<(Alias, T)> {
        answer::cname(self, f)
    }

    /// Returns the last alias in the answer section.
    pub(crate) fn last_alias(&self) -> Option<Alias> {
        let count = Cell::new(0_u32);
        let _ = self.answer_cname(|_| -> Option<()> {
            count.set(count.get().saturating_add(1));
            None
        });
        let last = self.answer_cname(|_| {
            count.set(count.get().saturating_sub(1));
            (count.get() == 0).then_some(())
        });
        last.map(|(alias, ())| alias)
    }

    /// Puts the addresses in the answer section into `found`, as many as there is room for; returns
    /// how many.
    pub(crate) fn answer_addresses(&self, found: &mut [IpAddr; ADDRESSES_MAX]) -> usize {
        let mut count = 0;
        let _ = self.answer_address(|address| match found.get_mut(count) {
            Some(place) => {
                *place = address;
                count += 1;
                false
            }
            None => true,
        });
        count
    }

    /// Returns whether a list has a rule, or an exception, for the query, or for the answer there
    /// is: its addresses, the names that its aliases lead to, and the servers that led to it.
    fn is_listed(&self, list: &Blocklist) -> bool {
        let mut addresses = [IpAddr::V4(Ipv4Addr::UNSPECIFIED); ADDRESSES_MAX];
        let count = self.answer_addresses(&mut addresses);
        let asking = self.asking();
        list.rule(&self.asking_with(addresses.get(..count).unwrap_or(&[]))).is_some()
            || self.answer_cname(|sought| list.rule(&Asking { sought, ..asking }).map(drop)).is_some()
    }

    /// Returns the client's hardware address, if a trusted peer tells it.
    pub(crate) fn client_mac(&self) -> Option<identity::Mac> {
        if self.is_peer_trusted() { identity::mac(self) } else { None }
    }

    fn edns_option(&self, code: OptionCode) -> Option<&[u8]> {
        self.request.query.edns.as_ref()?.option(code)
    }
}

impl Matcher {
    /// Returns whether it holds.
    #[inline]
    pub fn holds(&self, facts: Facts<'_>) -> bool {
        match self {
            Self::Qname(set) => set.contains(&facts.request.sought),
            Self::Listed(list) => list.blocks(&facts.asking()),
            Self::Qtype(types) => types.contains(facts.qtype()),
            Self::Client(set) => set.contains(facts.client_address()),
            Self::Mark(bit) => facts.interim.marks >> (bit & 63) & 1 != 0,
            Self::Marks(bits) => facts.interim.marks & bits != 0,
            Self::Constant(holds) => *holds,
            other => other.holds_seldom(facts),
        }
    }

    /// The ones that few policies use, out of the interpreter's loop.
    #[inline(never)]
    fn holds_seldom(&self, facts: Facts<'_>) -> bool {
        let query = facts.request.query;
        match self {
            Self::Qname(_)
            | Self::Listed(_)
            | Self::Qtype(_)
            | Self::Client(_)
            | Self::Mark(_)
            | Self::Marks(_)
            | Self::Constant(_) => false,
            Self::Flag(flag) => query.header.flags.has(*flag),
            Self::WantsDnssec => query.wants_dnssec(),
            Self::Edns => query.edns.is_some(),
            Self::EdnsOption(codes) => {
                query.edns.is_some_and(|edns| edns.options().any(|option| codes.contains(&option.code)))
            }
            Self::Number { of, min, max } => (*min..=*max).contains(&of.of(query)),
            Self::ClientMac(macs) => facts.client_mac().is_some_and(|mac| macs.has(mac)),
            Self::ClientId(test) => {
                facts.is_peer_trusted() && identity::id(&facts).is_some_and(|id| test.holds(id))
            }
            Self::Listener(listeners) => listeners.contains(&facts.request.client.listener),
            Self::Transport(transports) => transports.contains(&facts.request.client.transport),
            Self::Connection(bit) => facts.request.client.connection >> (bit & 63) & 1 != 0,
            Self::Now(hours) => hours.hold(facts.env.now.unix_seconds),
            Self::Random(share) => facts.env.random() < *share,
            Self::Rate(rate) => rate.is_exceeded(&facts),
            Self::Answer => facts.interim.answer.is_some(),
            Self::Answered => answer::has_type(&facts, |rtype| rtype == facts.qtype()),
            Self::Rcode(rcodes) => {
                facts.interim.answer.as_ref().is_some_and(|answer| rcodes.contains(&answer.rcode))
            }
            Self::Security(states) => {
                facts.interim.answer.as_ref().is_some_and(|answer| states.contains(&answer.security))
            }
            Self::AnswerType(types) => answer::has_type(&facts, |rtype| types.contains(rtype)),
            Self::AnswerAddress(set) => facts.answer_address(|address| set.contains(address)).is_some(),
            Self::AnswerCname(set) => {
                facts.answer_cname(|sought| set.contains(sought).then_some(())).is_some()
            }
            Self::ServerName(set) => facts.server_name(|sought| set.contains(sought).then_some(())).is_some(),
            Self::ServerAddress(set) => facts.server_address(set).is_some(),
            Self::Ruled(list) => facts.is_listed(list),
            Self::ServerListed(list, which) => {
                let asking = facts.asking();
                list.blocks_servers(&asking, *which)
                    || facts
                        .answer_cname(|sought| {
                            list.blocks_servers(&Asking { sought, ..asking }, *which).then_some(())
                        })
                        .is_some()
            }
            Self::ReverseAddress(set) => {
                facts.qtype() == Rtype::PTR
                    && address_of(facts.request.sought.name()).is_some_and(|address| set.contains(address))
            }
            Self::Text(text) => text.1.holds_for(&text.0, &facts),
        }
    }
}

const _: () = assert!(size_of::<Matcher>() <= 56);
