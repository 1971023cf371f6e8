//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! One query: what is asked, how it was sent last, and what was tried already.

use std::net::SocketAddr;

use cache::servers::{Edns, LetterCase};
use queries::packet::{Asked, CaseSeed};
use timers::{Moment, TimerKey};
use wire::{Class, ClientSubnet, Message, Name, OptionCode, Rtype};

use super::encryption::Encrypt;
use super::network::{Carrier, PoolLinkKey, PoolSocketKey};

/// Octets of names that need no memory of their own: nine of ten are shorter.
const INLINE_OCTETS: usize = 46;

/// A name, as long as somebody waits.
pub(super) enum QueryName {
    Inline([u8; INLINE_OCTETS], u8),
    Boxed(Box<[u8]>),
}

impl QueryName {
    pub(super) fn new(name: Name<'_>) -> Self {
        let octets = name.as_bytes();
        let mut inline = [0; INLINE_OCTETS];
        match inline.get_mut(..octets.len()) {
            Some(room) => {
                room.copy_from_slice(octets);
                Self::Inline(inline, octets.len() as u8)
            }
            None => Self::Boxed(octets.into()),
        }
    }

    pub(super) fn as_name(&self) -> Name<'_> {
        let octets = match self {
            Self::Inline(octets, len) => octets.get(..usize::from(*len)).unwrap_or(&[]),
            Self::Boxed(octets) => octets,
        };
        Name::parse(octets).map_or(Name::ROOT, |(name, _)| name)
    }
}

/// What carries a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    /// Nothing yet, or nothing any more.
    Nothing,
    /// A datagram.
    Socket(PoolSocketKey),
    /// A connection.
    Link(PoolLinkKey),
}

/// What was tried already, each at most once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tried {
    /// Without EDNS.
    pub(super) plain: bool,
    /// With the cookie of a BADCOOKIE reply.
    pub(super) new_cookie: bool,
    /// Over TCP: datagrams are no longer taken.
    pub(super) stream: bool,
    /// Over another connection, because the first one ended.
    pub(super) relinked: bool,
    /// Over TCP because a reply had another letter case.
    pub(super) refolded: bool,
    /// Over TCP because a reply lacked the cookie that was expected.
    pub(super) cookieless: bool,
    /// As a datagram in the asker's letter case, because there was no TCP after that.
    pub(super) caseless: bool,
    /// Over this, which is where it is now.
    pub(super) encrypted: Option<Carrier>,
}

/// One query and all its attempts.
pub(super) struct Query {
    pub(super) tag: u32,
    pub(super) serial: u32,
    pub(super) address: SocketAddr,
    pub(super) name: QueryName,
    pub(super) qtype: Rtype,
    pub(super) udp_octets: u16,
    pub(super) edns: Edns,
    pub(super) case: LetterCase,
    pub(super) dnssec_ok: bool,
    pub(super) recursion_desired: bool,
    pub(super) checking_disabled: bool,
    pub(super) cookies: bool,
    pub(super) encrypt: Encrypt,
    pub(super) subnet: Option<Box<ClientSubnet>>,
    pub(super) tried: Tried,
    /// Wrong replies.
    pub(super) wrong: u8,
    /// Whether the last attempt had EDNS, and with it our client cookie if any has.
    pub(super) has_edns: bool,
    /// Whether it had the server's part, too: then the reply has a cookie.
    pub(super) expects_cookie: bool,
    /// The ID of the last attempt.
    pub(super) id: u16,
    pub(super) via: Via,
    /// When it was sent last.
    pub(super) sent: Moment,
    pub(super) case_seed: Option<CaseSeed>,
    pub(super) timer: TimerKey,
}

// 8,192 of them are a megabyte and a half.
const _: () = assert!(size_of::<Query>() <= 192);

impl Query {
    /// Returns what is asked, with these EDNS options and the one of the server.
    pub(super) fn asked<'q>(&'q self, options: &'q [u8], of_server: &'q [u8]) -> Asked<'q> {
        Asked {
            qname: self.name.as_name(),
            qtype: self.qtype,
            qclass: Class::IN,
            checking_disabled: self.checking_disabled,
            wants_dnssec: self.dnssec_ok,
            client_subnet: self.subnet.as_deref(),
            options,
            of_server,
        }
    }

    /// Returns whether a reply is for another subnet than the one that was told (RFC 7871 §7.3).
    pub(super) fn is_for_another_subnet(&self, reply: &Message<'_>) -> bool {
        let data = reply.edns.and_then(|edns| edns.option(OptionCode::CLIENT_SUBNET));
        let told = self.subnet.as_deref().filter(|_| self.has_edns);
        data.zip(told).is_some_and(|(data, told)| {
            let octets = usize::from(told.prefix).div_ceil(8);
            let told_data = [0, told.family, told.prefix];
            data.get(..3) != Some(&told_data) || data.get(4..) != told.address.get(..octets)
        })
    }

    /// Returns whether a datagram from this address can be the reply.
    pub(super) fn is_from(&self, from: SocketAddr) -> bool {
        // Not the scope and flow of IPv6, which the kernel fills in.
        self.address.ip() == from.ip() && self.address.port() == from.port()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_lengths_are_kept() {
        for letters in 1..=63 {
            let mut octets = vec![letters as u8];
            octets.extend(vec![b'A'; letters]);
            octets.push(0);
            let name = Name::parse(&octets).expect("a name").0;
            let kept = QueryName::new(name);
            assert_eq!(kept.as_name().as_bytes(), octets);
            assert_eq!(matches!(kept, QueryName::Inline(..)), octets.len() <= INLINE_OCTETS);
        }
        assert!(QueryName::new(Name::ROOT).as_name().is_root());
    }
}
