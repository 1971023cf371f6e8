//! What became of a query, as one of a few words.

use std::fmt;
use std::str::FromStr;

use events::Mark;
use wire::{EdeCode, Rcode};

/// What became of a query. The numbers stand in databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Outcome {
    /// A cache had the answer.
    Cached = 1,
    /// A cache had an answer that had expired.
    Stale = 2,
    /// The policy, local data or a zone answered.
    Local = 3,
    /// Other servers were asked.
    Resolved = 4,
    /// A list or a rule blocked it.
    Blocked = 5,
    /// It was refused.
    Refused = 6,
    /// It got no reply.
    Dropped = 7,
}

/// All of them.
pub(super) const ALL: [Outcome; 7] = [
    Outcome::Cached,
    Outcome::Stale,
    Outcome::Local,
    Outcome::Resolved,
    Outcome::Blocked,
    Outcome::Refused,
    Outcome::Dropped,
];

impl Outcome {
    /// Returns its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Stale => "stale",
            Self::Local => "local",
            Self::Resolved => "resolved",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
            Self::Dropped => "dropped",
        }
    }

    /// Returns the one that a number stands for.
    pub(super) fn read(number: u8) -> Option<Self> {
        ALL.into_iter().find(|outcome| *outcome as u8 == number)
    }

    /// Returns what became of a query by the step that answered it and what came of that, and by
    /// its reply.
    pub(super) fn of(
        decided: Option<(&str, Mark)>,
        rcode: Option<Rcode>,
        cause: Option<EdeCode>,
        has_waited: bool,
    ) -> Self {
        let Some(rcode) = rcode else { return Self::Dropped };
        if matches!(cause, Some(EdeCode::STALE_ANSWER | EdeCode::STALE_NXDOMAIN_ANSWER)) {
            return Self::Stale;
        }
        match decided {
            Some((_, Mark::Hit)) => Self::Cached,
            Some((_, Mark::Stale)) => Self::Stale,
            Some((_, Mark::Waited)) => Self::Resolved,
            Some((step, Mark::Answered | Mark::Ended)) => {
                let is = |action: &str| step.starts_with(action);
                match rcode {
                    Rcode::REFUSED if is("reject") => Self::Refused,
                    _ if is("block") || is("reject") => Self::Blocked,
                    _ => Self::Local,
                }
            }
            _ if rcode == Rcode::REFUSED => Self::Refused,
            _ if has_waited => Self::Resolved,
            _ => Self::Local,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ALL.into_iter()
            .find(|outcome| outcome.word() == text)
            .ok_or_else(|| format!("expected one of {}", ALL.map(Self::word).join(", ")))
    }
}

/// Returns a step's text without the line of the configuration in front.
pub(super) fn action_of(step: &str) -> &str {
    step.split_once(": ").map_or(step, |(_, text)| text)
}

/// What the rows of a block have among them: a bit for each outcome and each response code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holds(pub(super) i64);

/// Where the bits of response codes begin; the last of them stands for all that are larger.
const RCODE_BITS: u32 = 16;
const RCODE_LAST: u32 = 30;

impl Holds {
    pub(super) fn outcome(outcome: Outcome) -> Self {
        Self(1 << (outcome as u8 & 15))
    }

    pub(super) fn rcode(rcode: Option<u16>) -> Self {
        let bit = rcode.map_or(RCODE_LAST + 1, |rcode| u32::from(rcode).min(RCODE_LAST));
        Self(1 << (RCODE_BITS + bit))
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_query_follows_from_the_step_that_answered() {
        let check = |decided, rcode, expect| {
            assert_eq!(Outcome::of(decided, rcode, None, false), expect, "{decided:?} {rcode:?}");
        };
        let fine = Some(Rcode::NOERROR);
        check(Some(("cache(main)", Mark::Hit)), fine, Outcome::Cached);
        check(Some(("cache(main)", Mark::Stale)), fine, Outcome::Stale);
        check(Some(("forward(default)", Mark::Waited)), Some(Rcode::SERVFAIL), Outcome::Resolved);
        check(Some(("block(ads)", Mark::Answered)), fine, Outcome::Blocked);
        check(Some(("blocklist(ads)", Mark::Answered)), fine, Outcome::Blocked);
        check(Some(("reject(nxdomain)", Mark::Answered)), Some(Rcode::NXDOMAIN), Outcome::Blocked);
        check(Some(("reject(refused)", Mark::Answered)), Some(Rcode::REFUSED), Outcome::Refused);
        check(Some(("respond(answer)", Mark::Answered)), fine, Outcome::Local);
        check(Some(("drop", Mark::Ended)), None, Outcome::Dropped);
        check(None, Some(Rcode::REFUSED), Outcome::Refused);
        let stale =
            Outcome::of(Some(("forward(default)", Mark::Waited)), fine, Some(EdeCode::STALE_ANSWER), true);
        assert_eq!(stale, Outcome::Stale);
        for outcome in ALL {
            assert_eq!((outcome.word().parse(), Outcome::read(outcome as u8)), (Ok(outcome), Some(outcome)));
        }
    }
}
