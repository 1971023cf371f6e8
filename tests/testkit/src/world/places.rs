//! Where things are: zones and servers as numbers, names and addresses.

use std::net::Ipv4Addr;

use wire::{Name, NameBuf};

use super::World;

/// A zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Zone {
    /// The root.
    Root,
    /// A top-level domain: `t007`.
    Tld(u32),
    /// A zone below one: `z000207.t007`. Its number modulo theirs says which.
    Leaf(u32),
}

impl Zone {
    /// Returns a number that no other zone has.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Root => 1 << 40,
            Self::Tld(tld) => 2 << 40 | u64::from(tld),
            Self::Leaf(leaf) => leaf.into(),
        }
    }
}

/// What an address stands for: a server of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Role {
    /// The zone that it is for. Others may be served there, too.
    pub zone: Zone,
    /// Its number among the servers of the zone.
    pub server: u8,
}

/// The last three octets of addresses: the root's servers begin at 0.0.1, those of top-level
/// domains at 1.0.0, four places each, and those of zones at 16.0.0, four places each.
const ROOT_AT: u32 = 1;
const TLD_AT: u32 = 1 << 16;
const LEAF_AT: u32 = 16 << 16;
const PLACES: u32 = 4;

impl Role {
    /// Returns the address.
    pub(crate) fn address(self, network: u8) -> Ipv4Addr {
        let place = match self.zone {
            Zone::Root => ROOT_AT,
            Zone::Tld(tld) => TLD_AT + tld * PLACES,
            Zone::Leaf(leaf) => LEAF_AT + leaf * PLACES,
        };
        let [_, b, c, d] = (place + u32::from(self.server)).to_be_bytes();
        Ipv4Addr::new(network, b, c, d)
    }

    /// Returns the server that may have an address.
    pub(crate) fn of([_, b, c, d]: [u8; 4]) -> Option<Self> {
        let place = u32::from_be_bytes([0, b, c, d]);
        let (zone, server) = match place {
            LEAF_AT.. => (Zone::Leaf((place - LEAF_AT) / PLACES), (place - LEAF_AT) % PLACES),
            TLD_AT.. => (Zone::Tld((place - TLD_AT) / PLACES), (place - TLD_AT) % PLACES),
            _ => (Zone::Root, place.checked_sub(ROOT_AT)?),
        };
        Some(Self { zone, server: u8::try_from(server).ok()? })
    }
}

/// Digits in the labels of top-level domains and of zones.
const TLD_DIGITS: usize = 3;
const LEAF_DIGITS: usize = 6;

/// The first label of a zone's name.
pub(crate) struct NumberLabel {
    octets: [u8; 1 + LEAF_DIGITS],
    len: usize,
}

impl NumberLabel {
    pub(crate) fn new(zone: Zone) -> Self {
        let (letter, mut number, digits) = match zone {
            Zone::Root => return Self { octets: [0; 1 + LEAF_DIGITS], len: 0 },
            Zone::Tld(tld) => (b't', tld, TLD_DIGITS),
            Zone::Leaf(leaf) => (b'z', leaf, LEAF_DIGITS),
        };
        let mut octets = [letter; 1 + LEAF_DIGITS];
        for octet in octets.iter_mut().take(1 + digits).skip(1).rev() {
            *octet = b'0' + (number % 10) as u8;
            number /= 10;
        }
        Self { octets, len: 1 + digits }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or(&[])
    }
}

/// Returns the label of a zone's server.
pub(crate) const fn server_label(server: u8) -> [u8; 3] {
    [b'n', b's', b'1' + server]
}

/// Reads a server's label.
pub(crate) fn read_server(label: &[u8]) -> Option<u8> {
    match label {
        [b'n' | b'N', b's' | b'S', digit @ b'1'..=b'9'] => Some(digit - b'1'),
        _ => None,
    }
}

fn read_number(label: &[u8], letter: u8, digits: usize) -> Option<u32> {
    let (first, rest) = label.split_first()?;
    if !first.eq_ignore_ascii_case(&letter) || rest.len() != digits {
        return None;
    }
    rest.iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}

/// Labels of a name that are looked at; no name here has more.
pub(crate) const LABELS_MAX: usize = 8;

/// The labels of a name, from the right; those beyond the first few are counted only.
pub(crate) struct Labels<'n> {
    labels: [&'n [u8]; LABELS_MAX],
    pub(crate) count: usize,
}

impl<'n> Labels<'n> {
    pub(crate) fn new(name: Name<'n>) -> Self {
        let count = name.label_count();
        let mut labels: [&[u8]; LABELS_MAX] = [&[]; LABELS_MAX];
        for (at, label) in name.labels().enumerate() {
            if let Some(place) = labels.get_mut(count - 1 - at) {
                *place = label;
            }
        }
        Self { labels, count }
    }

    /// Returns the label so many places from the right; empty if there is none.
    pub(crate) fn at(&self, from_right: usize) -> &'n [u8] {
        self.labels.get(from_right).copied().unwrap_or(&[])
    }
}

impl World {
    /// Returns the top-level domain that a name is at or below.
    pub(crate) fn tld_of(&self, labels: &Labels<'_>) -> Option<u32> {
        read_number(labels.at(0), b't', TLD_DIGITS).filter(|tld| *tld < self.options().tlds)
    }

    /// Returns the zone below a top-level domain that a name is at or below.
    pub(crate) fn leaf_of(&self, labels: &Labels<'_>) -> Option<u32> {
        let tld = self.tld_of(labels)?;
        read_number(labels.at(1), b'z', LEAF_DIGITS)
            .filter(|leaf| *leaf < self.options().zones && leaf % self.options().tlds == tld)
    }

    /// Returns the name of a zone.
    pub(crate) fn apex(&self, zone: Zone) -> NameBuf {
        let mut name = NameBuf::root();
        let mut push = |zone: Zone| {
            // Short labels, and few.
            let pushed = name.push_label(NumberLabel::new(zone).as_bytes());
            debug_assert!(pushed.is_ok());
        };
        match zone {
            Zone::Root => {}
            Zone::Tld(_) => push(zone),
            Zone::Leaf(leaf) => {
                push(zone);
                push(Zone::Tld(leaf % self.options().tlds));
            }
        }
        name
    }

    /// Returns a name of one label below a zone.
    pub(crate) fn below(&self, label: &[u8], zone: Zone) -> NameBuf {
        self.below_all(&[label], zone)
    }

    /// Returns the name of labels, as they stand in a name, below a zone.
    pub(crate) fn below_all(&self, labels: &[&[u8]], zone: Zone) -> NameBuf {
        let mut name = NameBuf::root();
        let apex = self.apex(zone);
        for label in labels.iter().copied().chain(apex.as_name().labels()) {
            let pushed = name.push_label(label);
            debug_assert!(pushed.is_ok());
        }
        name
    }
}
