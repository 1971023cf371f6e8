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
    /// Octets of the replies that are read. Each of the largest takes milliseconds, and four of
    /// them are as many as one question needs at most.
    pub octets: u32,
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
    /// within each other, 11 aliases, 10 seconds, 256 KiB, 48 signatures, 16 of them wrong, and 64
    /// hashes.
    fn default() -> Self {
        Self {
            sends: 64,
            sends_per_zone: 16,
            glueless: 8,
            glueless_at_once: 4,
            depth: 4,
            aliases: 11,
            question_ms: 10_000,
            octets: 256 << 10,
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
    /// [`Limits::octets`].
    Octets,
    /// [`Limits::checks`] or [`Limits::failing_checks`].
    Checks,
    /// [`Limits::hashes`].
    Hashes,
    /// Queries to the servers of one zone in a second, of all questions together.
    ZoneRate,
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
            Self::Octets => "octets",
            Self::Checks => "checks",
            Self::Hashes => "hashes",
            Self::ZoneRate => "zone-rate",
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
            Self::Octets => "too large replies",
            Self::Checks => "too many signatures",
            Self::Hashes => "too many hashes",
            Self::ZoneRate => "too many queries to this zone in a second",
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
    /// Of replies, that may still be read.
    octets: u32,
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
            octets: limits.octets,
            checks: dnssec::Budget::with_failures(limits.checks, limits.failing_checks),
            hashes: limits.hashes,
        }
    }

    /// Returns the queries that may still be sent.
    pub(crate) const fn sends_left(&self) -> u8 {
        self.sends
    }

    /// Returns how much is left for judging replies, of 256 parts: as much as of what there is
    /// least of.
    pub(crate) fn judgement_left(&self, limits: &Limits) -> u32 {
        let parts = |left: u32, max: u32| (u64::from(left) * 256 / u64::from(max.max(1))) as u32;
        let checks = parts(self.checks.left(), limits.checks);
        let failures = parts(self.checks.failures_left(), limits.failing_checks);
        checks.min(failures).min(parts(self.hashes, limits.hashes))
    }

    /// Pays for a query.
    pub(crate) fn send(&mut self, now: Moment) -> Result<(), Limit> {
        if now >= self.ends_at {
            return Err(Limit::Time);
        }
        if self.octets == 0 {
            return Err(Limit::Octets);
        }
        take(&mut self.sends).ok_or(Limit::Sends)
    }

    /// Pays for reading a reply. If it is too large, nothing more is asked.
    pub(crate) fn read(&mut self, octets: usize) -> Result<(), Limit> {
        let left = u32::try_from(octets).ok().and_then(|octets| self.octets.checked_sub(octets));
        self.octets = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Limit::Octets)
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
    fn nothing_is_asked_after_a_reply_that_is_too_large() {
        let mut budget = Budget::new(&Limits::default(), Moment(0));
        for _ in 0..4 {
            assert_eq!((budget.read(65_535), budget.send(Moment(1))), (Ok(()), Ok(())));
        }
        assert_eq!(budget.read(65_535), Err(Limit::Octets));
        assert_eq!(budget.send(Moment(1)), Err(Limit::Octets));
    }

    #[test]
    fn nothing_is_sent_when_the_time_is_over() {
        let mut budget = Budget::new(&Limits::default(), Moment(5));
        assert_eq!(budget.send(Moment(10_000_004)), Ok(()));
        assert_eq!(budget.send(Moment(10_000_005)), Err(Limit::Time));
        assert_eq!(budget.sends_left(), 63, "what was not sent is not paid for");
    }
}
