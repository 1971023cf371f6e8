//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Writing one record where an answer is made.

use wire::{Class, Rtype, Ttl};

/// Copies octets to a place in the buffer, if they fit.
pub fn put(buffer: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    buffer.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
    Some(())
}

/// Writes one record after the question, its owner the suffix of the name asked for that starts at
/// `owner_at` in the message. Returns its octets, or `None` when it does not fit.
pub fn put_record(
    buffer: &mut [u8],
    at: usize,
    owner_at: usize,
    rtype: Rtype,
    ttl: Ttl,
    rdata: &[u8],
) -> Option<usize> {
    let [p0, p1] = (0xc000 | owner_at as u16).to_be_bytes();
    let [t0, t1] = rtype.0.to_be_bytes();
    let [c0, c1] = Class::IN.0.to_be_bytes();
    let [s0, s1, s2, s3] = ttl.seconds().to_be_bytes();
    let [l0, l1] = (rdata.len() as u16).to_be_bytes();
    let fixed = [p0, p1, t0, t1, c0, c1, s0, s1, s2, s3, l0, l1];
    put(buffer, at, &fixed)?;
    put(buffer, at + fixed.len(), rdata)?;
    Some(fixed.len() + rdata.len())
}
