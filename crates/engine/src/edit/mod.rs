//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Pure changes to the records of an answer under way.
//!
//! An answer stands in a message buffer after the question's place; names in it may be compressed against anything
//! before them.

use wire::Header;

/// Where an answer's records stand in the message buffer, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Where the first record starts: what follows the question.
    pub(crate) body_at: usize,
    /// Octets of all records.
    pub(crate) octets: usize,
    /// Records in the answer, authority and additional sections.
    pub(crate) counts: [u16; 3],
}

/// Finds the TTL fields of the records of an answer, counted from the end of the question. Returns how many there are,
/// or `None` when the records are not well formed or more than `offsets` holds.
pub(crate) fn ttl_offsets(message: &[u8], shape: &Shape, offsets: &mut [u16]) -> Option<usize> {
    let bytes = message.get(..shape.body_at + shape.octets)?;
    let [answers, authorities, additionals] = shape.counts;
    let header = Header { questions: 1, answers, authorities, additionals, ..Header::default() };
    let mut count = 0;
    for record in wire::message::records(bytes, shape.body_at, &header) {
        let record = record.ok()?;
        *offsets.get_mut(count)? = u16::try_from(record.ttl_at - shape.body_at).ok()?;
        count += 1;
    }
    Some(count)
}
