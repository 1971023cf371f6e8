//! What the servers were asked, by kind.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::Rtype;

use super::Zone;

/// What is counted, in order.
pub const KINDS: [&str; 14] = [
    "all",
    "root",
    "tld",
    "zone",
    "a",
    "aaaa",
    "ns",
    "ds",
    "dnskey",
    "other",
    "minimised",
    "edns",
    "tcp",
    "truncated",
];

/// Numbers of queries. Each query counts under `all`, a level, a type, and what else holds for it.
#[derive(Debug, Default)]
pub struct Counts {
    numbers: [AtomicU64; KINDS.len()],
}

/// What is known of a query.
pub(crate) struct Asked {
    pub(crate) level: Zone,
    pub(crate) qtype: Rtype,
    /// Its name is that of a zone below the one asked.
    pub(crate) is_cut: bool,
    pub(crate) has_edns: bool,
    pub(crate) is_tcp: bool,
    pub(crate) is_truncated: bool,
}

impl Counts {
    pub(crate) fn note(&self, asked: &Asked) {
        let level = match asked.level {
            Zone::Root => 1,
            Zone::Tld(_) => 2,
            Zone::Leaf(_) => 3,
        };
        let rtype = match asked.qtype {
            Rtype::A => 4,
            Rtype::AAAA => 5,
            Rtype::NS => 6,
            Rtype::DS => 7,
            Rtype::DNSKEY => 8,
            _ => 9,
        };
        // Who asks a zone for a name at a cut, and not for its DS, has left labels out (RFC 9156).
        let is_minimised = asked.is_cut && asked.qtype != Rtype::DS;
        let others = [(10, is_minimised), (11, asked.has_edns), (12, asked.is_tcp), (13, asked.is_truncated)];
        let others = others.into_iter().filter_map(|(at, holds)| holds.then_some(at));
        for at in [0, level, rtype].into_iter().chain(others) {
            if let Some(number) = self.numbers.get(at) {
                number.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Returns all numbers, in the order of [`KINDS`].
    pub fn read(&self) -> [u64; KINDS.len()] {
        self.numbers.each_ref().map(|number| number.load(Ordering::Relaxed))
    }
}
