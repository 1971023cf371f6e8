//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What of a program may be the same for all queries with one question, and do nothing to its
//! answer.

use wire::Flags;

use super::Op;
use crate::matchers::Matcher;
use crate::ops::answer::Build;

/// Returns whether an answer is not left alone by a step that is reached, whatever it is for.
pub const fn is_last_word(op: &Op) -> bool {
    match op {
        Op::SkipUnless(..)
        | Op::SkipIf(..)
        | Op::Skip(_)
        | Op::Seek(_)
        | Op::Call(_)
        | Op::Return
        | Op::Accept
        | Op::Mark(_)
        | Op::Unmark(_)
        | Op::Local(_)
        | Op::Goto(_)
        | Op::Split(_)
        | Op::Answer(Build::Listed(_) | Build::Reverse(_)) => false,
        Op::Cache(_)
        | Op::Drop
        | Op::Zone(_)
        | Op::ZoneSet(..)
        | Op::Reject(..)
        | Op::Forward(_)
        | Op::Recurse(_)
        | Op::Ttl(_)
        | Op::Sleep(_)
        | Op::Quickest(_)
        | Op::Forget
        | Op::Truncate
        | Op::Edit(_)
        | Op::Answer(Build::Block(_) | Build::Respond(_) | Build::Records { .. })
        | Op::Outgoing(_)
        | Op::Event(_) => true,
    }
}

/// Returns whether a condition is about nothing but the question, the answer, sets, the addresses
/// of clients and marks, so that it may hold for all queries with the same question, or for none.
pub fn is_about_answers(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Constant(_)
        | Matcher::Qname(_)
        | Matcher::Qtype(_)
        | Matcher::Client(_)
        | Matcher::Listed(_)
        | Matcher::Ruled(_)
        | Matcher::ServerListed(..)
        | Matcher::ServerName(_)
        | Matcher::ServerAddress(_)
        | Matcher::Mark(_)
        | Matcher::Marks(_)
        | Matcher::Answer
        | Matcher::Answered
        | Matcher::Rcode(_)
        | Matcher::Security(_)
        | Matcher::AnswerType(_)
        | Matcher::AnswerAddress(_)
        | Matcher::AnswerCname(_)
        | Matcher::ReverseAddress(_) => true,
        // Only queries that set it look into caches early.
        Matcher::Flag(flag) => *flag == Flags::RD,
        Matcher::WantsDnssec
        | Matcher::Edns
        | Matcher::EdnsOption(_)
        | Matcher::Number { .. }
        | Matcher::ClientMac(_)
        | Matcher::ClientId(_)
        | Matcher::Listener(_)
        | Matcher::Transport(_)
        | Matcher::Connection(_)
        | Matcher::Now(_)
        | Matcher::Random(_)
        | Matcher::Rate(_)
        | Matcher::Text(_) => false,
    }
}
