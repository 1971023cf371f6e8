//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `forward(group)`: asks an upstream group, waits, and goes on with its answer.

use wire::HashKey;

use super::outgoing::Outgoing;
use super::wait::{FetchWant, OutQuery, PoolId};
use crate::query::request::Request;

/// In [`ForwardStep::members`]: every server of the group.
pub const ALL_MEMBERS: u64 = 0;

/// What the step needs to know about its group.
#[derive(Clone, Copy, Debug)]
pub struct ForwardStep {
    /// The group.
    pub pool: PoolId,
    /// Which of its servers may be asked, one bit each in their order; zero: all.
    pub members: u64,
    /// Whether the client's EDNS client subnet is passed on; otherwise upstreams learn nothing
    /// about clients.
    pub forwards_client_subnet: bool,
    /// Whether an AD bit from this group is believed and passed on (RFC 6840 §5.8): only for groups
    /// that validate and are reached over a path nobody can forge on.
    pub trusts_ad: bool,
}

/// What a query sends besides its question.
pub(crate) struct Sending<'s> {
    /// What earlier steps changed.
    pub(crate) outgoing: &'s Outgoing,
    /// EDNS options besides the client's subnet, in wire form.
    pub(crate) options: Box<[u8]>,
    /// How long the client waits if a stale answer is at hand.
    pub(crate) stale_after_ms: Option<u32>,
}

impl ForwardStep {
    /// Returns what to fetch for a query before it goes on.
    #[inline]
    pub(crate) fn want(&self, key: &HashKey, request: &Request<'_>, sending: Sending<'_>) -> FetchWant {
        let Sending { outgoing, options, stale_after_ms } = sending;
        let query = request.query;
        let client_subnet = outgoing.subnet(query, self.forwards_client_subnet);
        let question = &query.question;
        let checking_disabled = outgoing.checking_disabled(query);
        let wants_dnssec = outgoing.wants_dnssec(query);
        let no_recursion = outgoing.forbids_recursion();
        let flags =
            u64::from(wants_dnssec) | u64::from(checking_disabled) << 1 | u64::from(no_recursion) << 2;
        let mut hash = key.mix(
            request.sought.hash(),
            u64::from(question.qtype.0)
                | u64::from(question.qclass.0) << 16
                | u64::from(self.pool.0) << 32
                | flags << 48,
        );
        if self.members != ALL_MEMBERS {
            hash = key.mix(hash, self.members);
        }
        if let Some(subnet) = client_subnet {
            let bits = subnet.address_bits();
            hash = key.mix(key.mix(hash, bits as u64), (bits >> 64) as u64 ^ u64::from(subnet.prefix));
        }
        for (part, place) in options.chunks(8).zip(1_u64..) {
            let word = part.iter().fold(place, |word, octet| word << 8 | u64::from(*octet));
            hash = key.mix(hash, word);
        }
        let folded = outgoing.folds_case().then(|| question.qname.to_folded());
        FetchWant {
            pool: self.pool,
            query: OutQuery {
                qname: folded.as_ref().map_or(question.qname, wire::Folded::as_name).to_buf(),
                qtype: question.qtype,
                qclass: question.qclass,
                checking_disabled,
                wants_dnssec,
                no_recursion,
                client_subnet,
                options,
                members: self.members,
                hash,
            },
            trusts_ad: self.trusts_ad,
            stale_after_ms,
        }
    }
}
