//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `prefer-ipv4` and `prefer-ipv6`: names that have addresses of one family seem to have none of
//! the other.

use wire::{EdeCode, Header, Query, Rcode, Rtype, Ttl};

use crate::answer::put::put_local_soa;
use crate::answer::written::Written;

/// Seconds that clients may keep "no such address".
const REFUSAL_TTL: Ttl = Ttl::new(300);

/// Prefers one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefer {
    /// The type whose addresses are preferred: A or AAAA.
    pub wanted: Rtype,
    /// How long the answer to the query waits for whether there are preferred addresses, once it is
    /// there.
    pub wait_ms: u32,
}

impl Prefer {
    /// Returns whether a query asks for addresses of the other family.
    pub(crate) fn applies(&self, query: &Query<'_>) -> bool {
        let qtype = query.question.qtype;
        matches!(qtype, Rtype::A | Rtype::AAAA) && qtype != self.wanted
    }

    /// Writes that the name has no address of the type asked for.
    pub(crate) fn refuse(query: &Query<'_>, out: &mut [u8]) -> Option<Written> {
        let body_at = Header::LEN + query.question_bytes().len();
        let octets = put_local_soa(out, body_at, Header::LEN, REFUSAL_TTL)?;
        Some(Written {
            octets,
            counts: [0, 1, 0],
            rcode: Rcode::NOERROR,
            ede: Some((EdeCode::FILTERED, "addresses of the other family are preferred")),
            is_whole: false,
            is_own: false,
        })
    }
}
