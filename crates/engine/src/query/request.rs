//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A query with its client, and what of the server and the moment steps may look at.

use std::cell::Cell;

use sets::NameServers;
use wire::{Folded, HashKey, Header, Query};

use super::names::Sought;
use clients::client::{Client, Now};
use clients::gate::cookie::Proof;
use clients::gate::prefix_set::PrefixSet;

/// One query and its client.
pub(crate) struct Request<'q> {
    pub(crate) query: &'q Query<'q>,
    pub(crate) client: &'q Client,
    pub(crate) proof: Proof,
    /// The name asked for, in lower case.
    pub(crate) folded: &'q Folded,
    pub(crate) sought: Sought<'q>,
}

impl Request<'_> {
    /// Returns where the records of an answer begin: behind the question.
    #[inline]
    pub(crate) fn body_at(&self) -> usize {
        Header::LEN + self.query.question_bytes().len()
    }
}

/// What of the server and the moment conditions and steps depend on.
#[derive(Clone, Copy)]
pub(crate) struct Environment<'e> {
    pub(crate) now: Now,
    /// What names are hashed with.
    pub(crate) key: &'e HashKey,
    /// Peers that are believed when they say whom they ask for.
    pub(crate) trusted_peers: &'e PrefixSet,
    /// Who knows the name servers that lead to a name.
    pub(crate) servers: Option<&'e dyn NameServers>,
    /// The state of a sequence of random numbers.
    random: &'e Cell<u64>,
}

impl<'e> Environment<'e> {
    #[inline(always)]
    pub(crate) const fn new(
        now: Now,
        key: &'e HashKey,
        trusted_peers: &'e PrefixSet,
        servers: Option<&'e dyn NameServers>,
        random: &'e Cell<u64>,
    ) -> Self {
        Self { now, key, trusted_peers, servers, random }
    }

    /// Returns the next of a sequence of numbers (xorshift64*): random enough to share out queries,
    /// not to hide anything.
    #[inline]
    pub(crate) fn random(&self) -> u32 {
        let mut bits = self.random.get();
        bits ^= bits >> 12;
        bits ^= bits << 25;
        bits ^= bits >> 27;
        self.random.set(bits);
        (bits.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }
}
