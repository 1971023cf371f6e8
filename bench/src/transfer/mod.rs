//! Zone transfers, seen by a client and made by a primary, both of which do next to nothing
//! themselves (RFC 5936).
//!
//! Never keeps a zone: the client counts what comes, the primary sends what it put together before.

pub mod primary;
pub mod receiver;
pub(crate) mod sockets;

use wire::{Message, Rtype};

/// Returns the serial of a SOA's data: names, then five numbers of which it is the first.
fn serial_of(rdata: &[u8]) -> Option<u32> {
    const NUMBERS_OCTETS: usize = 20;
    let numbers = rdata.get(rdata.len().checked_sub(NUMBERS_OCTETS)?..)?;
    numbers.first_chunk().map(|octets| u32::from_be_bytes(*octets))
}

/// Returns the serial in the first SOA of a message.
pub(crate) fn serial_in(message: &Message<'_>) -> Option<u32> {
    message.records().find(|record| record.rtype == Rtype::SOA).and_then(|record| serial_of(record.rdata))
}
