//! Prefixes that operators ban while the server runs, each for ever or until a second.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clients::gate::live::{LIVE_BANS_MAX, LiveBans};
use store::{Change, Expected, Put, StoreError};
use wire::Prefix;

use crate::{Authority, Refusal};

/// The space of the store that bans are in, by prefix.
pub const BANS: &str = "bans";
/// Bans that end together in one change.
const ENDED_TOGETHER_MAX: usize = 10_000;
/// Seconds until it is tried again to forget bans that have ended, when the store cannot be
/// written.
const AGAIN_AFTER_S: u64 = 60;

/// A ban of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// Whose queries get no reply.
    pub prefix: Prefix,
    /// Who banned it.
    pub by: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// Why; may be empty.
    pub why: String,
    /// The second since 1970 at which it ends.
    pub until: Option<u64>,
    /// The change that made it so.
    pub revision: u64,
}

/// The bans of operators: on disk in the store, and in the table that workers read.
#[derive(Debug)]
pub struct Bans {
    live: Arc<LiveBans>,
    /// Held while one of them is changed.
    kept: Mutex<BTreeMap<Prefix, Ban>>,
    /// When the first of them ends, in seconds since 1970; `u64::MAX`: none does.
    next_end: AtomicU64,
    /// Why it is not known which there are: then none is changed.
    unread: Option<String>,
}

impl Bans {
    /// Bans in `live` who was banned before and still is at the second `now`.
    pub fn read(authority: &Authority, live: Arc<LiveBans>, now: u64) -> Self {
        let read = authority.entries(BANS).and_then(|entries| {
            let ban = |entry: store::Entry| {
                let damaged = || {
                    let why = format!("\"{}\" in \"{BANS}\" is no prefix", entry.name);
                    StoreError::Trouble(store::Trouble::Damaged(entry.name.as_str().into(), why))
                };
                let prefix = parse(&entry.name).ok_or_else(damaged)?;
                let store::Entry { by, at, text: why, until, revision, .. } = entry;
                Ok((prefix, Ban { prefix, by, at, why, until, revision }))
            };
            entries.into_iter().map(ban).collect::<Result<BTreeMap<_, _>, StoreError>>()
        });
        let (kept, unread) = match read {
            Ok(kept) => (kept, None),
            Err(error) => {
                tracing::error!(%error, "bans cannot be read: nobody is banned by them");
                (BTreeMap::new(), Some(format!("bans could not be read at the start: {error}")))
            }
        };
        for ban in kept.values().filter(|ban| !ban.is_over(now)) {
            live.add(ban.prefix);
        }
        let next_end = AtomicU64::new(next_end(&kept));
        Self { live, kept: Mutex::new(kept), next_end, unread }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<Prefix, Ban>> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why it is not known who is banned, if so.
    pub fn trouble(&self) -> Option<&str> {
        self.unread.as_deref()
    }

    /// Returns the bans that are not over at the second `now`, by prefix.
    pub fn list(&self, now: u64) -> Vec<Ban> {
        self.kept().values().filter(|ban| !ban.is_over(now)).cloned().collect()
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.kept().len()
    }

    /// Refuses one more ban when there are as many as there may be.
    ///
    /// # Errors
    ///
    /// There are.
    pub fn check_room(&self, prefix: Prefix) -> Result<(), Refusal> {
        room(&self.kept(), prefix)
    }

    /// Bans a prefix, or changes its ban: on disk when this returns, and in effect for every query
    /// that is sent afterwards. Returns it with its revision.
    ///
    /// # Errors
    ///
    /// There are [`LIVE_BANS_MAX`], or it cannot be kept; then nothing has changed.
    pub fn ban(&self, authority: &Authority, wanted: Ban) -> Result<Ban, Refusal> {
        let mut kept = self.kept();
        room(&kept, wanted.prefix)?;
        let is_same = |known: &&Ban| (&known.why, known.until) == (&wanted.why, wanted.until);
        if let Some(known) = kept.get(&wanted.prefix).filter(is_same) {
            return Ok(known.clone());
        }
        let put = put(wanted.prefix, Some(wanted.why.clone()), wanted.until);
        let (by, why) = (wanted.by.clone(), wanted.why.clone());
        let change = Change { by, why, at: wanted.at, ..puts(vec![put]) };
        let ban = Ban { revision: authority.keep(&change)?, ..wanted };
        self.live.add(ban.prefix);
        kept.insert(ban.prefix, ban.clone());
        self.next_end.fetch_min(ban.until.unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(ban)
    }

    /// Bans a prefix no longer; returns its ban if there was one.
    ///
    /// # Errors
    ///
    /// That cannot be kept; then it is still banned.
    pub fn unban(
        &self,
        authority: &Authority,
        prefix: Prefix,
        (by, at): (&str, u64),
    ) -> Result<Option<Ban>, Refusal> {
        let mut kept = self.kept();
        if !kept.contains_key(&prefix) {
            return Ok(None);
        }
        authority.keep(&Change { by: by.to_owned(), at, ..puts(vec![put(prefix, None, None)]) })?;
        self.live.remove(prefix);
        Ok(kept.remove(&prefix))
    }

    /// Returns whether the time of a ban is over; it waits for nobody.
    pub fn has_ended(&self, now: u64) -> bool {
        self.next_end.load(Ordering::Relaxed) <= now
    }

    /// Ends the bans whose time is over at the second `now`, as a change by `by`; returns how many.
    ///
    /// # Errors
    ///
    /// The store cannot be written. They have ended all the same, and it is tried again.
    pub fn end(&self, authority: &Authority, (by, now): (&str, u64)) -> Result<usize, Refusal> {
        let mut kept = self.kept();
        let over = kept.values().filter(|ban| ban.is_over(now)).map(|ban| ban.prefix);
        let over: Vec<Prefix> = over.take(ENDED_TOGETHER_MAX).collect();
        over.iter().for_each(|prefix| self.live.remove(*prefix));
        let change = Change {
            by: by.to_owned(),
            why: "its time is over".to_owned(),
            at: now,
            ..puts(over.iter().map(|prefix| put(*prefix, None, None)).collect())
        };
        if !over.is_empty()
            && let Err(refusal) = authority.keep(&change)
        {
            self.next_end.store(now.saturating_add(AGAIN_AFTER_S), Ordering::Relaxed);
            return Err(refusal);
        }
        over.iter().for_each(|prefix| drop(kept.remove(prefix)));
        self.next_end.store(next_end(&kept), Ordering::Relaxed);
        Ok(over.len())
    }
}

impl Ban {
    /// Returns whether its time is over.
    pub fn is_over(&self, now: u64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// Returns why a prefix is not banned, if so: with it would be addresses of this machine, or
/// clients that have no rate limit.
pub fn spared(prefix: Prefix, exempt: &[Prefix]) -> Option<String> {
    let overlaps = |other: Prefix| prefix.contains(other.address()) || other.contains(prefix.address());
    let loopback = [
        Prefix::new(IpAddr::from([127, 0, 0, 0]), 8),
        Prefix::new(IpAddr::from([0_u16, 0, 0, 0, 0, 0, 0, 1]), 128),
    ];
    if let Some(own) = loopback.into_iter().find(|own| overlaps(*own)) {
        return Some(format!("{prefix} is not banned: {own} is this machine itself"));
    }
    let exempt = exempt.iter().find(|exempt| overlaps(**exempt))?;
    Some(format!("{prefix} is not banned: {exempt} has no rate limit (limits.rate.exempt)"))
}

/// Returns a prefix as clients are compared with it: of IPv4 if it is one mapped to IPv6.
pub fn plain(prefix: Prefix) -> Prefix {
    match prefix.address() {
        IpAddr::V6(v6) if prefix.bits() >= 96 => match v6.to_ipv4_mapped() {
            Some(v4) => Prefix::new(v4.into(), prefix.bits() - 96),
            None => prefix,
        },
        _ => prefix,
    }
}

fn room(kept: &BTreeMap<Prefix, Ban>, prefix: Prefix) -> Result<(), Refusal> {
    match kept.len() >= LIVE_BANS_MAX && !kept.contains_key(&prefix) {
        true => Err(Refusal::NotAllowed(format!("{LIVE_BANS_MAX} prefixes are banned already"))),
        false => Ok(()),
    }
}

fn next_end(kept: &BTreeMap<Prefix, Ban>) -> u64 {
    kept.values().filter_map(|ban| ban.until).min().unwrap_or(u64::MAX)
}

fn put(prefix: Prefix, text: Option<String>, until: Option<u64>) -> Put {
    Put { space: BANS.to_owned(), name: prefix.to_string(), text, until, expected: Expected::Any }
}

fn puts(puts: Vec<Put>) -> Change {
    Change { puts, ..Change::default() }
}

/// Reads what a prefix prints.
fn parse(text: &str) -> Option<Prefix> {
    let (address, bits) = text.split_once('/')?;
    Some(Prefix::new(address.parse().ok()?, bits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::HashKey;

    fn prefix(text: &str) -> Prefix {
        parse(text).expect("a prefix")
    }

    fn wanted(text: &str, until: Option<u64>) -> Ban {
        let (by, why) = ("anna".to_owned(), "noise".to_owned());
        Ban { prefix: prefix(text), by, at: 100, why, until, revision: 0 }
    }

    fn open(folder: &std::path::Path, now: u64) -> (Authority, Bans) {
        let authority = Authority::new(Some(folder.join("changes")), crate::Entries::new(), 0, None);
        authority.open().expect("it can be opened");
        let bans = Bans::read(&authority, Arc::new(LiveBans::new(HashKey::new([1, 2]))), now);
        (authority, bans)
    }

    fn holds(bans: &Bans, address: &str) -> bool {
        bans.live.contains(address.parse().expect("an address"))
    }

    #[test]
    fn a_ban_is_there_after_a_start_until_its_time_is_over() {
        let folder = tempfile::tempdir().expect("a directory");
        let (authority, bans) = open(folder.path(), 100);
        let first = bans.ban(&authority, wanted("192.0.2.0/24", Some(200))).expect("kept");
        bans.ban(&authority, wanted("2001:db8::/32", None)).expect("kept");
        assert!(first.revision == 1 && holds(&bans, "192.0.2.9") && holds(&bans, "2001:db8::9"));
        let same = bans.ban(&authority, wanted("192.0.2.0/24", Some(200))).expect("kept");
        assert_eq!(same, first, "nothing is different");
        assert!(!bans.has_ended(199) && bans.has_ended(200));
        drop((authority, bans));
        let (authority, bans) = open(folder.path(), 150);
        assert_eq!(bans.list(150).first(), Some(&first));
        assert!(holds(&bans, "192.0.2.9"));
        assert_eq!(bans.end(&authority, ("the server", 200)).ok(), Some(1));
        assert!(!holds(&bans, "192.0.2.9") && holds(&bans, "2001:db8::9"));
        assert_eq!(bans.end(&authority, ("the server", 200)).ok(), Some(0));
        assert_eq!(bans.unban(&authority, prefix("192.0.2.0/24"), ("anna", 201)).ok(), Some(None));
        let gone = bans.unban(&authority, prefix("2001:db8::/32"), ("anna", 201)).expect("kept");
        assert!(gone.is_some() && bans.count() == 0 && !holds(&bans, "2001:db8::9"));
        drop((authority, bans));
        assert_eq!(open(folder.path(), 201).1.count(), 0);
    }

    #[test]
    fn what_ended_while_nothing_ran_is_not_banned() {
        let folder = tempfile::tempdir().expect("a directory");
        let (authority, bans) = open(folder.path(), 100);
        bans.ban(&authority, wanted("192.0.2.0/24", Some(200))).expect("kept");
        drop((authority, bans));
        let (authority, bans) = open(folder.path(), 300);
        assert!(!holds(&bans, "192.0.2.9") && bans.list(300).is_empty() && bans.has_ended(300));
        assert_eq!(bans.end(&authority, ("the server", 300)).ok(), Some(1));
        assert!(authority.entries(BANS).expect("readable").is_empty());
    }

    #[test]
    fn what_cannot_be_kept_is_not_banned() {
        let authority = Authority::of_nobody();
        let bans = Bans::read(&authority, Arc::new(LiveBans::new(HashKey::new([1, 2]))), 100);
        assert!(bans.ban(&authority, wanted("192.0.2.0/24", None)).is_err());
        assert!(bans.count() == 0 && !holds(&bans, "192.0.2.9"));
    }

    #[test]
    fn nobody_is_banned_with_this_machine_or_with_whoever_has_no_limit() {
        let exempt = [prefix("198.51.100.0/24"), prefix("2001:db8:7::/48")];
        let spared = |text: &str| spared(prefix(text), &exempt).is_some();
        for text in ["127.0.0.1/32", "0.0.0.0/0", "::/0", "::1/128", "198.51.100.7/32", "198.51.0.0/16"] {
            assert!(spared(text), "{text}");
        }
        assert!(!spared("192.0.2.0/24") && !spared("2001:db8:8::/48") && spared("2001:db8::/32"));
        assert_eq!(plain(prefix("::ffff:192.0.2.0/120")), prefix("192.0.2.0/24"));
    }
}
