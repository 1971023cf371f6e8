//! What one client's question may cost, with everything that it causes.
//!
//! A question has one budget. Whatever is done for it, however deep, is paid from that one, and
//! nothing fills it again: neither a referral nor an alias nor another attempt. So a zone that
//! sends us on cannot make one packet of a client's into hundreds of ours (NXNSAttack,
//! CVE-2020-12662; NRDelegation, CVE-2022-3204; CAMP, 2024).

use std::fmt;

use crate::moment::Moment;

/// How much a client's question may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queries sent. Honest names take some twelve from an empty cache.
    pub sends: u8,
    /// Queries sent to the servers of one zone for one question.
    pub sends_per_zone: u8,
    /// Name servers without glue whose addresses are looked for, in all. NXNSAttack lives on them.
    pub glueless: u8,
    /// The same, at once.
    pub glueless_at_once: u8,
    /// Questions for addresses of name servers, one within the other.
    pub depth: u8,
    /// Aliases followed.
    pub aliases: u8,
    /// Milliseconds after which nothing more is sent; clients have given up long before.
    pub question_ms: u32,
    /// Signatures checked. An honest name takes some eight from an empty cache.
    pub checks: u32,
    /// Those of them that may be wrong, since many wrong ones are an attack (KeyTrap,
    /// CVE-2023-50387).
    pub failing_checks: u32,
    /// Names hashed for proofs by NSEC3 (CVE-2023-50868). One proof takes eight for each of its
    /// searches at most.
    pub hashes: u32,
}

impl Default for Limits {
    /// Returns 64 queries, 16 of them to one zone, 8 servers without glue, 4 of these at once and 4
    /// within each other, 11 aliases, 10 seconds, 48 signatures, 16 of them wrong, and 64 hashes.
    fn default() -> Self {
        Self {
            sends: 64,
            sends_per_zone: 16,
            glueless: 8,
            glueless_at_once: 4,
            depth: 4,
            aliases: 11,
            question_ms: 10_000,
            checks: 48,
            failing_checks: 16,
            hashes: 64,
        }
    }
}

/// What a question had no more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::sends`].
    Sends,
    /// [`Limits::glueless`].
    Glueless,
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::aliases`].
    Aliases,
    /// [`Limits::question_ms`].
    Time,
    /// [`Limits::checks`] or [`Limits::failing_checks`].
    Checks,
    /// [`Limits::hashes`].
    Hashes,
}

impl Limit {
    /// Returns the name that machines read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sends => "sends",
            Self::Glueless => "glueless",
            Self::Depth => "depth",
            Self::Aliases => "aliases",
            Self::Time => "time",
            Self::Checks => "checks",
            Self::Hashes => "hashes",
        }
    }
}

impl fmt::Display for Limit {
    /// Writes what there was too much of.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sends => "too many queries",
            Self::Glueless => "too many name servers without glue",
            Self::Depth => "name servers without glue, too deep within each other",
            Self::Aliases => "too many aliases",
            Self::Time => "too long",
            Self::Checks => "too many signatures",
            Self::Hashes => "too many hashes",
        })
    }
}

/// What a client's question has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    sends: u8,
    glueless: u8,
    aliases: u8,
    ends_at: Moment,
    /// What checking signatures may cost.
    pub(crate) checks: dnssec::Budget,
    /// Hashes that are left.
    pub(crate) hashes: u32,
}

impl Budget {
    pub(crate) const fn new(limits: &Limits, now: Moment) -> Self {
        Self {
            sends: limits.sends,
            glueless: limits.glueless,
            aliases: limits.aliases,
            ends_at: now.after_ms(limits.question_ms),
            checks: dnssec::Budget::with_failures(limits.checks, limits.failing_checks),
            hashes: limits.hashes,
        }
    }

    /// Returns the queries that may still be sent.
    pub(crate) const fn sends_left(&self) -> u8 {
        self.sends
    }

    /// Pays for a query.
    pub(crate) fn send(&mut self, now: Moment) -> Result<(), Limit> {
        if now >= self.ends_at {
            return Err(Limit::Time);
        }
        take(&mut self.sends).ok_or(Limit::Sends)
    }

    /// Pays for looking for the addresses of a name server.
    pub(crate) fn look_for_addresses(&mut self) -> Result<(), Limit> {
        take(&mut self.glueless).ok_or(Limit::Glueless)
    }

    /// Pays for following an alias.
    pub(crate) fn follow_alias(&mut self) -> Result<(), Limit> {
        take(&mut self.aliases).ok_or(Limit::Aliases)
    }
}

fn take(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_strikes_after_its_number() {
        let limits = Limits::default();
        let check = |max: u8, limit: Limit, pay: fn(&mut Budget) -> Result<(), Limit>| {
            let mut budget = Budget::new(&limits, Moment(0));
            for _ in 0..max {
                assert_eq!(pay(&mut budget), Ok(()));
            }
            for _ in 0..300 {
                assert_eq!(pay(&mut budget), Err(limit), "it is never filled again");
            }
        };
        check(64, Limit::Sends, |budget| budget.send(Moment(1)));
        check(8, Limit::Glueless, Budget::look_for_addresses);
        check(11, Limit::Aliases, Budget::follow_alias);
    }

    #[test]
    fn nothing_is_sent_when_the_time_is_over() {
        let mut budget = Budget::new(&Limits::default(), Moment(5));
        assert_eq!(budget.send(Moment(10_000_004)), Ok(()));
        assert_eq!(budget.send(Moment(10_000_005)), Err(Limit::Time));
        assert_eq!(budget.sends_left(), 63, "what was not sent is not paid for");
    }
}
