//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Writing one record where an answer is made.

use wire::{Rtype, Ttl};

pub(crate) use edit::{put, put_after_question as put_record};

/// Writes the SOA of a negative answer of ours, its owner the suffix of the name asked for that
/// starts at `owner_at`.
pub(crate) fn put_local_soa(buffer: &mut [u8], at: usize, owner_at: usize, ttl: Ttl) -> Option<usize> {
    put_record(buffer, at, owner_at, Rtype::SOA, ttl, &local_soa(owner_at, ttl))
}

/// What stands between the names of the primary server and the minimum of a local SOA.
pub(crate) const SOA_BEHIND_PRIMARY: [u8; 32] =
    *b"\x06nobody\x07invalid\0\0\0\0\x01\0\0\x0e\x10\0\0\x04\xb0\0\x09\x3a\x80";

/// Octets of the data of a local SOA.
const LOCAL_SOA_OCTETS: usize = 2 + 16 + 20;

/// RFC 6303 §3: `@ nobody.invalid. 1 3600 1200 604800 10800`, the apex as a pointer.
pub(crate) fn local_soa(apex_at: usize, minimum: Ttl) -> [u8; LOCAL_SOA_OCTETS] {
    let mut data = [0; LOCAL_SOA_OCTETS];
    if let Some(behind) = data.get_mut(2..).and_then(<[u8]>::first_chunk_mut::<32>) {
        *behind = SOA_BEHIND_PRIMARY;
    }
    if let Some(pointer) = data.first_chunk_mut::<2>() {
        *pointer = (0xc000 | apex_at as u16).to_be_bytes();
    }
    if let Some(field) = data.last_chunk_mut::<4>() {
        *field = minimum.seconds().to_be_bytes();
    }
    data
}
