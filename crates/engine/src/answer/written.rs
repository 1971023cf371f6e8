//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! An answer that a step wrote anew, and what stands in front of one.

use wire::{EdeCode, Flags, Header, Rcode};

use super::errors::Errors;
use super::{Answer, Ending, Security};

/// An answer that was written anew: its octets after the question, and its records.
pub(crate) struct Written {
    pub(crate) octets: usize,
    pub(crate) counts: [u16; 3],
    pub(crate) rcode: Rcode,
    pub(crate) ede: Option<(EdeCode, &'static str)>,
    /// Whether the data is still what was validated.
    pub(crate) is_whole: bool,
    /// Whether it is an answer of our own, which sets AA.
    pub(crate) is_own: bool,
}

impl Written {
    /// Returns what a writer wrote, header and question included, from the header in `out`.
    pub(crate) fn new(out: &[u8], len: usize, body_at: usize, rcode: Rcode) -> Option<Self> {
        let header = Header::parse(out)?;
        Some(Self {
            octets: len.checked_sub(body_at)?,
            counts: [header.answers, header.authorities, header.additionals],
            rcode,
            ede: None,
            is_whole: false,
            is_own: false,
        })
    }
}

/// Writes the header of an answer whose question and records stand in `message`.
pub(crate) fn put_header(answer: &Answer, message: &mut [u8]) {
    let [answers, authorities, additionals] = answer.counts;
    let mut flags = Flags::QR.with_rcode(answer.rcode);
    for (is_set, flag) in [
        (answer.authoritative, Flags::AA),
        (answer.security == Security::Secure, Flags::AD),
        (answer.end == Ending::Truncated || answer.is_too_large, Flags::TC),
    ] {
        if is_set {
            flags = flags.with(flag);
        }
    }
    let header = Header { id: 0, flags, questions: 1, answers, authorities, additionals };
    if let Some(place) = message.first_chunk_mut() {
        *place = header.to_bytes();
    }
}

/// Returns the answer that a branch's answer became.
pub(crate) fn changed(answer: &Answer, written: &Written) -> Answer {
    Answer {
        authoritative: answer.authoritative || written.is_own,
        rcode: written.rcode,
        security: if written.is_whole { answer.security } else { Security::Unchecked },
        octets: written.octets,
        counts: written.counts,
        errors: if written.ede.is_some() { Errors::of(written.ede) } else { answer.errors },
        ..*answer
    }
}
