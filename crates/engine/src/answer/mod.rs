//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The answer to a query under way, and what a reply is made of.

pub mod chaos;
mod cut;
pub(crate) mod errors;
pub(crate) mod failure;
pub(crate) mod finish;
pub mod local;
pub(crate) mod put;
pub mod records;
pub mod reply;
pub(crate) mod report;
pub mod special;
pub(crate) mod texts;
pub(crate) mod written;

use wire::message::records;
use wire::{EdeCode, Header, Rcode, Section};

use edit::Shape;
use errors::Errors;
use failure::{Blame, Failure};
use texts::TextId;

pub use cache::Security;

/// What stands after the question in the reply buffer, and what the header will say about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) rcode: Rcode,
    /// AA: we speak with authority.
    pub(crate) authoritative: bool,
    /// Whether it is known to be genuine.
    pub(crate) security: Security,
    /// Octets after the question.
    pub(crate) octets: usize,
    /// Records in the answer, authority and additional sections.
    pub(crate) counts: [u16; 3],
    /// The Extended DNS Errors.
    pub(crate) errors: Errors,
    /// Whether the answer did not even fit the buffer.
    pub(crate) is_too_large: bool,
    /// What became of it.
    pub(crate) end: Ending,
    /// For which subnets it is.
    pub(crate) scope: SubnetScope,
    /// The length of the client's own subnet, if the answer was chosen by it.
    pub(crate) subnet_bits: Option<u8>,
    /// Which of the client's EDNS flags are repeated, of the upper eight.
    pub(crate) edns_flags: u8,
}

/// For which subnets an answer is (RFC 7871 §7.2.1). One octet: a hit carries it along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubnetScope(u8);

impl SubnetScope {
    /// For the subnet that was told; nobody said more.
    pub(crate) const OWN: Self = Self(u8::MAX);
    /// For every subnet: scope zero.
    pub(crate) const EVERY: Self = Self(0);

    /// Returns that it is for so many bits of the subnet. No address has 255.
    pub(crate) const fn of(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns for how many bits of the subnet it is, if somebody said so.
    pub(crate) const fn bits(self) -> Option<u8> {
        match self {
            Self::OWN => None,
            Self(bits) => Some(bits),
        }
    }
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is whole.
    Complete,
    /// It is whole, and has nothing more for who wants signatures.
    Unsigned,
    /// The last upstream's transport cut it: passed on, not kept.
    Truncated,
    /// It is what was known before servers were asked, and no response policy zone has made
    /// another one of it: neither kept nor sent.
    Interim,
    /// Nobody had an answer, and somebody said so; then a stale one is better.
    Failed,
    /// Nobody even gave a response code.
    Silent,
}

impl Ending {
    /// Returns whether there is no answer.
    pub(crate) const fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::Silent => true,
            Self::Complete | Self::Unsigned | Self::Truncated | Self::Interim => false,
        }
    }

    /// Returns whether it is an answer with nothing missing.
    pub(crate) const fn is_whole(self) -> bool {
        matches!(self, Self::Complete | Self::Unsigned)
    }
}

/// The EDNS flag of who wants signatures (RFC 3225), among the upper eight.
pub(crate) const DO: u8 = 0x80;
/// The EDNS flag of who takes compact proofs with NXDOMAIN (RFC 9824 §5.1).
pub(crate) const CO: u8 = 0x40;

impl Answer {
    /// Returns what validation made of it.
    #[inline(always)]
    pub(crate) const fn validation(&self) -> Security {
        if self.errors.is_bogus() { Security::Bogus } else { self.security }
    }

    /// Returns the Extended DNS Errors of a reply with bogus data, which is given where nobody
    /// wants it checked.
    #[cold]
    pub(crate) const fn errors_of_bogus(&self) -> Errors {
        match self.errors {
            Errors::None => Errors::One(EdeCode::DNSSEC_BOGUS, ""),
            errors => errors,
        }
    }

    /// Returns an answer without records.
    pub(crate) const fn empty(rcode: Rcode, ede: Option<(EdeCode, &'static str)>) -> Self {
        Self {
            rcode,
            authoritative: false,
            security: Security::Unchecked,
            octets: 0,
            counts: [0; 3],
            errors: Errors::of(ede),
            is_too_large: false,
            end: Ending::Complete,
            scope: SubnetScope::OWN,
            subnet_bits: None,
            edns_flags: DO,
        }
    }

    /// Returns the answer that says that there is none.
    pub(crate) const fn failed(failure: Failure) -> Self {
        let end = match failure.blame() {
            Blame::Network | Blame::Server | Blame::Limit | Blame::State => Ending::Silent,
            Blame::Policy => Ending::Failed,
        };
        Self { end, errors: Errors::Failure(failure), ..Self::empty(Rcode::SERVFAIL, None) }
    }

    /// Returns the answer that says why a resolver has none.
    pub(crate) const fn unresolved(rcode: Rcode, code: EdeCode, text: TextId) -> Self {
        Self { end: Ending::Silent, errors: Errors::Reason(code, text), ..Self::empty(rcode, None) }
    }

    /// Returns where its records stand in a message whose question ends at `body_at`.
    #[inline]
    pub(crate) const fn shape(&self, body_at: usize) -> Shape {
        Shape { body_at, octets: self.octets, counts: self.counts }
    }
}

/// What the steps of a query have brought about so far.
pub(crate) struct Interim {
    pub(crate) marks: u64,
    /// Whether the name asked for is what an alias from a list leads to.
    pub(crate) is_listed_alias: bool,
    /// The answer there is. While there is one and steps go on, the message buffer holds the
    /// question too.
    pub(crate) answer: Option<Answer>,
}

/// Walks the answer section of an answer in the making.
pub(crate) fn answer_records<'m>(
    answer: &Answer,
    message: &'m [u8],
    body_at: usize,
) -> impl Iterator<Item = wire::Record<'m>> + use<'m> {
    all_records(answer, message, body_at).take_while(|record| record.section == Section::Answer)
}

/// Walks all sections of an answer in the making.
pub(crate) fn all_records<'m>(
    answer: &Answer,
    message: &'m [u8],
    body_at: usize,
) -> impl Iterator<Item = wire::Record<'m>> + use<'m> {
    let [answers, authorities, additionals] = answer.counts;
    let header = Header { questions: 1, answers, authorities, additionals, ..Header::default() };
    let bytes = message.get(..body_at + answer.octets).unwrap_or(&[]);
    records(bytes, body_at, &header).map_while(Result::ok)
}
