//! Prefixes that operators ban while the server runs, each for ever or until a second.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;
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

/// Bits of the widest prefixes of IPv4 and IPv6 that anybody may ban, and of those that it takes no
/// admin for.
const WIDEST_BITS: (u8, u8) = (8, 19);
const WIDEST_BITS_OF_OTHERS: (u8, u8) = (24, 48);
/// Bits of the prefixes of IPv6 that helpers ban: of sites, networks and addresses. Each length
/// that is banned costs a look-up, and there is room for a few.
const BITS_OF_HELPERS: [u8; 4] = [48, 56, 64, 128];
/// What stands before the reason, in a line of its own, of bans by helpers.
const BY_HELPER: &str = "helper\n";

/// A ban of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// Whose queries get no reply.
    pub prefix: Prefix,
    /// Who banned it.
    pub by: String,
    /// Whether that was somebody with the role helper.
    pub is_by_helper: bool,
    /// When, in seconds since 1970.
    pub at: u64,
    /// Why; one line, may be empty.
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
    /// Held while the store is written, which waits for settings that are compiled.
    writing: Mutex<()>,
    /// Held for moments, also while `live` is changed: whoever looks waits for no store.
    kept: Mutex<BTreeMap<Prefix, Ban>>,
    /// When the first of those in effect ends, in seconds since 1970; `u64::MAX`: none does.
    next_end: AtomicU64,
    /// When those that have ended are to be removed from the store, in seconds since 1970.
    forget_at: AtomicU64,
    /// Why it is not known which there are: then none is changed. Held for moments.
    unread: Mutex<Option<String>>,
    /// What the store has and is not in effect. Held for moments.
    missing: Mutex<Option<String>>,
}

/// Locks a mutex. A panic ends the process, so that a poisoned one is never seen.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bans {
    /// Bans in `live` who was banned before and still is at the second `now`. An entry that cannot
    /// be read costs no other its effect.
    pub fn read(authority: &Authority, live: Arc<LiveBans>, now: u64) -> Self {
        let [next_end, forget_at] = [(); 2].map(|()| AtomicU64::new(u64::MAX));
        let (writing, kept, unread, missing) =
            (Mutex::default(), Mutex::default(), Mutex::default(), Mutex::default());
        let bans = Self { live, writing, kept, next_end, forget_at, unread, missing };
        if let Err(error) = bans.read_all(authority, now) {
            tracing::error!(%error, "bans cannot be read: nobody is banned by them");
            *lock(&bans.unread) = Some(format!("bans could not be read at the start: {error}"));
        }
        bans
    }

    /// Reads bans that could not be read; returns whether they could now, and are in effect.
    pub fn read_again(&self, authority: &Authority, now: u64) -> bool {
        let _writing = self.writing();
        let is_read = self.unread().is_some() && self.read_all(authority, now).is_ok();
        if is_read {
            *lock(&self.unread) = None;
        }
        is_read
    }

    fn read_all(&self, authority: &Authority, now: u64) -> Result<(), StoreError> {
        let (mut all, mut missing) = (BTreeMap::new(), Vec::new());
        for entry in authority.entries(BANS)? {
            match ban_of(entry) {
                Ok(ban) => drop(all.insert(ban.prefix, ban)),
                Err(name) => missing.push(format!("\"{name}\" is no prefix")),
            }
        }
        for ban in all.values().filter(|ban| !ban.is_over(now)) {
            if let Err(why) = self.live.add(ban.prefix) {
                missing.push(format!("{}: {why}", ban.prefix));
            }
        }
        for why in &missing {
            tracing::error!(why, "a ban of the store is not in effect");
        }
        *lock(&self.missing) = missing.first().map(|first| match missing.len() {
            1 => format!("a ban of the store is not in effect: {first}"),
            count => format!("{count} bans of the store are not in effect: {first}, ..."),
        });
        self.next_end.store(next_end(all.values()), Ordering::Relaxed);
        *self.kept() = all;
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<Prefix, Ban>> {
        lock(&self.kept)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        lock(&self.writing)
    }

    /// Returns why it is not known who is banned, if so.
    pub fn unread(&self) -> Option<String> {
        lock(&self.unread).clone()
    }

    /// Returns why somebody is not banned whom the store bans, if so.
    pub fn trouble(&self) -> Option<String> {
        self.unread().or_else(|| lock(&self.missing).clone())
    }

    /// Returns at most `count` bans from a prefix on that are not over at the second `now`, by
    /// prefix.
    pub fn list(&self, from: Bound<Prefix>, count: usize, now: u64) -> Vec<Ban> {
        let kept = self.kept();
        let rest = kept.range((from, Bound::Unbounded)).map(|(_, ban)| ban);
        rest.filter(|ban| !ban.is_over(now)).take(count).cloned().collect()
    }

    /// Returns the bans that hold for a prefix at the second `now`: of itself, and of those that
    /// it is in, the widest first.
    pub fn of(&self, prefix: Prefix, now: u64) -> Vec<Ban> {
        let kept = self.kept();
        let wider = (0..=prefix.bits()).map(|bits| Prefix::new(prefix.address(), bits));
        wider.filter_map(|it| kept.get(&it)).filter(|ban| !ban.is_over(now)).cloned().collect()
    }

    /// Returns the ban of a prefix itself, unless it is over at the second `now`.
    pub fn of_itself(&self, prefix: Prefix, now: u64) -> Option<Ban> {
        self.kept().get(&prefix).filter(|ban| !ban.is_over(now)).cloned()
    }

    /// Returns the prefixes that are banned at the second `now`.
    pub fn prefixes(&self, now: u64) -> Vec<Prefix> {
        self.kept().values().filter(|ban| !ban.is_over(now)).map(|ban| ban.prefix).collect()
    }

    /// Returns how many are banned at the second `now`.
    pub fn count(&self, now: u64) -> usize {
        self.kept().values().filter(|ban| !ban.is_over(now)).count()
    }

    /// Returns the ban that is so already, if there is one like the one that is wanted.
    ///
    /// # Errors
    ///
    /// There is no room for one more.
    pub fn check(&self, wanted: &Ban) -> Result<Option<Ban>, Refusal> {
        let kept = self.kept();
        if kept.len() >= LIVE_BANS_MAX && !kept.contains_key(&wanted.prefix) {
            return Err(Refusal::NotAllowed(format!("{LIVE_BANS_MAX} prefixes are banned already")));
        }
        self.live.check_room(wanted.prefix).map_err(|why| Refusal::NotAllowed(why.to_string()))?;
        let said = |ban: &Ban| (ban.why.clone(), ban.until, ban.is_by_helper);
        Ok(kept.get(&wanted.prefix).filter(|known| said(known) == said(wanted)).cloned())
    }

    /// Bans a prefix, or changes its ban: on disk when this returns, and in effect for every query
    /// that is sent afterwards. Returns it with its revision, and whether it is another than
    /// before.
    ///
    /// # Errors
    ///
    /// There is no room for it, or it cannot be kept; then nothing has changed.
    pub fn ban(&self, authority: &Authority, wanted: Ban) -> Result<(Ban, bool), Refusal> {
        let _writing = self.writing();
        if let Some(known) = self.check(&wanted)? {
            return Ok((known, false));
        }
        let text = match wanted.is_by_helper {
            true => format!("{BY_HELPER}{}", wanted.why),
            false => wanted.why.clone(),
        };
        let put = put(wanted.prefix, Some(text), wanted.until);
        let (by, why) = (wanted.by.clone(), wanted.why.clone());
        let change = Change { by, why, at: wanted.at, ..puts(vec![put]) };
        let ban = Ban { revision: authority.keep(&change)?, ..wanted };
        let mut kept = self.kept();
        // There was room, and nobody else adds one.
        if let Err(why) = self.live.add(ban.prefix) {
            tracing::error!(prefix = %ban.prefix, %why, "a ban is not in effect");
        }
        kept.insert(ban.prefix, ban.clone());
        self.next_end.fetch_min(ban.until.unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok((ban, true))
    }

    /// Bans a prefix no longer; returns its ban if there was one. `change` says who ends it, when
    /// and why.
    ///
    /// # Errors
    ///
    /// That cannot be kept; then it is still banned.
    pub fn unban(
        &self,
        authority: &Authority,
        prefix: Prefix,
        change: Change,
    ) -> Result<Option<Ban>, Refusal> {
        let _writing = self.writing();
        if !self.kept().contains_key(&prefix) {
            return Ok(None);
        }
        authority.keep(&Change { puts: vec![put(prefix, None, None)], ..change })?;
        let mut kept = self.kept();
        self.live.remove(prefix);
        Ok(kept.remove(&prefix))
    }

    /// Returns whether the time of a ban is over; it waits for nobody.
    pub fn has_ended(&self, now: u64) -> bool {
        let next = self.next_end.load(Ordering::Relaxed).min(self.forget_at.load(Ordering::Relaxed));
        next <= now
    }

    /// Ends the bans whose time is over at the second `now`: at once, and then in the store, as a
    /// change by `by`. Returns how many that forgets.
    ///
    /// # Errors
    ///
    /// The store cannot be written. They have ended all the same, and it is tried again.
    pub fn end(&self, authority: &Authority, (by, now): (&str, u64)) -> Result<usize, Refusal> {
        {
            let kept = self.kept();
            let (over, others): (Vec<&Ban>, Vec<&Ban>) = kept.values().partition(|ban| ban.is_over(now));
            over.iter().for_each(|ban| self.live.remove(ban.prefix));
            self.next_end.store(next_end(others), Ordering::Relaxed);
            // Whoever comes while this one waits has nothing to do.
            self.forget_at.store(u64::MAX, Ordering::Relaxed);
        }
        let _writing = self.writing();
        let over = {
            let kept = self.kept();
            let over = kept.values().filter(|ban| ban.is_over(now)).map(|ban| ban.prefix);
            over.take(ENDED_TOGETHER_MAX).collect::<Vec<Prefix>>()
        };
        if over.is_empty() {
            return Ok(0);
        }
        let change = Change {
            by: by.to_owned(),
            why: "its time is over".to_owned(),
            at: now,
            ..puts(over.iter().map(|prefix| put(*prefix, None, None)).collect())
        };
        if let Err(refusal) = authority.keep(&change) {
            self.forget_at.fetch_min(now.saturating_add(AGAIN_AFTER_S), Ordering::Relaxed);
            return Err(refusal);
        }
        let mut kept = self.kept();
        over.iter().for_each(|prefix| drop(kept.remove(prefix)));
        if over.len() == ENDED_TOGETHER_MAX {
            self.forget_at.fetch_min(now, Ordering::Relaxed);
        }
        Ok(over.len())
    }
}

impl Ban {
    /// Returns whether its time is over.
    pub fn is_over(&self, now: u64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// Addresses that nobody bans while the server runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spared<'a> {
    /// Clients that have no rate limit.
    pub exempt: &'a [Prefix],
    /// Addresses of this machine, beside those of its loopback device.
    pub own: &'a [IpAddr],
    /// The address that somebody asks from.
    pub caller: Option<IpAddr>,
}

/// Returns why nobody bans a prefix, if so: it has an address of this machine, of whoever asks, or
/// of a client without a rate limit.
pub fn spared(prefix: Prefix, spared: Spared<'_>) -> Option<String> {
    let loopback = [
        Prefix::new(IpAddr::from([127, 0, 0, 0]), 8),
        Prefix::new(IpAddr::from([0_u16, 0, 0, 0, 0, 0, 0, 1]), 128),
    ];
    let why = if let Some(own) = loopback.into_iter().find(|own| overlap(prefix, *own)) {
        format!("{own} is this machine itself")
    } else if let Some(own) = spared.own.iter().find(|own| prefix.contains(**own)) {
        format!("{own} is an address of this machine")
    } else if let Some(caller) = spared.caller.filter(|caller| prefix.contains(*caller)) {
        format!("{caller} is where this is asked from")
    } else {
        let exempt = spared.exempt.iter().find(|exempt| overlap(prefix, **exempt))?;
        format!("{exempt} has no rate limit (limits.rate.exempt)")
    };
    Some(format!("{prefix} is not banned: {why}"))
}

/// Returns why a prefix is too wide to be banned, if it is.
pub fn too_wide(prefix: Prefix, is_by_admin: bool) -> Option<String> {
    let is_ipv4 = prefix.address().is_ipv4();
    let of_family = |(ipv4, ipv6): (u8, u8)| if is_ipv4 { ipv4 } else { ipv6 };
    let (widest, of_others) = (of_family(WIDEST_BITS), of_family(WIDEST_BITS_OF_OTHERS));
    if prefix.bits() < widest {
        return Some(format!("{prefix} is too wide to be banned: the widest is a /{widest}"));
    }
    (!is_by_admin && prefix.bits() < of_others)
        .then(|| format!("{prefix} is wider than a /{of_others}, which an admin alone bans"))
}

/// Returns why helpers do not ban a prefix of this length, if so: they would use up the lengths
/// that others need.
pub fn unusual_length(prefix: Prefix) -> Option<String> {
    let is_usual = prefix.address().is_ipv4() || BITS_OF_HELPERS.contains(&prefix.bits());
    let usual = BITS_OF_HELPERS.map(|bits| format!("/{bits}")).join(", ");
    (!is_usual).then(|| format!("{prefix} is none of the lengths that helpers ban ({usual})"))
}

/// Returns whether two prefixes have an address in common.
pub fn overlap(one: Prefix, other: Prefix) -> bool {
    one.contains(other.address()) || other.contains(one.address())
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

fn next_end<'b>(bans: impl IntoIterator<Item = &'b Ban>) -> u64 {
    bans.into_iter().filter_map(|ban| ban.until).min().unwrap_or(u64::MAX)
}

fn put(prefix: Prefix, text: Option<String>, until: Option<u64>) -> Put {
    Put { space: BANS.to_owned(), name: prefix.to_string(), text, until, expected: Expected::Any }
}

fn puts(puts: Vec<Put>) -> Change {
    Change { puts, ..Change::default() }
}

/// Reads an entry of the store; the error is the name of one that is no prefix.
fn ban_of(entry: store::Entry) -> Result<Ban, String> {
    let store::Entry { name, by, at, text, until, revision, .. } = entry;
    let Some(prefix) = parse(&name) else { return Err(name) };
    let (is_by_helper, why) = match text.strip_prefix(BY_HELPER) {
        Some(why) => (true, why.to_owned()),
        None => (false, text),
    };
    Ok(Ban { prefix, by, is_by_helper, at, why, until, revision })
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
        Ban { prefix: prefix(text), by, is_by_helper: false, at: 100, why, until, revision: 0 }
    }

    fn by(by: &str, at: u64) -> Change {
        Change { by: by.to_owned(), at, ..Change::default() }
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
        let (first, is_new) = bans.ban(&authority, wanted("192.0.2.0/24", Some(200))).expect("kept");
        assert!(is_new);
        bans.ban(&authority, wanted("2001:db8::/32", None)).expect("kept");
        assert!(first.revision == 1 && holds(&bans, "192.0.2.9") && holds(&bans, "2001:db8::9"));
        let same = bans.ban(&authority, wanted("192.0.2.0/24", Some(200))).expect("kept");
        assert_eq!(same, (first.clone(), false), "nothing is different");
        assert!(!bans.has_ended(199) && bans.has_ended(200));
        drop((authority, bans));
        let (authority, bans) = open(folder.path(), 150);
        assert_eq!(bans.list(Bound::Unbounded, 1, 150), [first]);
        assert!(holds(&bans, "192.0.2.9"));
        assert_eq!(bans.end(&authority, ("the server", 200)).ok(), Some(1));
        assert!(!holds(&bans, "192.0.2.9") && holds(&bans, "2001:db8::9"));
        assert_eq!(bans.end(&authority, ("the server", 200)).ok(), Some(0));
        assert_eq!(bans.unban(&authority, prefix("192.0.2.0/24"), by("anna", 201)).ok(), Some(None));
        let gone = bans.unban(&authority, prefix("2001:db8::/32"), by("anna", 201)).expect("kept");
        assert!(gone.is_some() && bans.count(201) == 0 && !holds(&bans, "2001:db8::9"));
        drop((authority, bans));
        assert_eq!(open(folder.path(), 201).1.count(201), 0);
    }

    #[test]
    fn what_ended_while_nothing_ran_is_not_banned() {
        let folder = tempfile::tempdir().expect("a directory");
        let (authority, bans) = open(folder.path(), 100);
        bans.ban(&authority, wanted("192.0.2.0/24", Some(200))).expect("kept");
        drop((authority, bans));
        let (authority, bans) = open(folder.path(), 300);
        assert!(!holds(&bans, "192.0.2.9") && bans.count(300) == 0 && bans.has_ended(300));
        assert_eq!(bans.end(&authority, ("the server", 300)).ok(), Some(1));
        assert!(authority.entries(BANS).expect("readable").is_empty());
    }

    #[test]
    fn what_cannot_be_kept_is_not_banned() {
        let authority = Authority::of_nobody();
        let bans = Bans::read(&authority, Arc::new(LiveBans::new(HashKey::new([1, 2]))), 100);
        assert!(bans.ban(&authority, wanted("192.0.2.0/24", None)).is_err());
        assert!(bans.count(201) == 0 && !holds(&bans, "192.0.2.9"));
    }

    #[test]
    fn an_entry_that_cannot_be_read_costs_no_other_its_effect() {
        let folder = tempfile::tempdir().expect("a directory");
        let (authority, bans) = open(folder.path(), 100);
        bans.ban(&authority, wanted("192.0.2.0/24", None)).expect("kept");
        assert_eq!(bans.trouble(), None);
        let damaged =
            Put { name: "nonsense".to_owned(), ..put(prefix("192.0.2.0/24"), Some(String::new()), None) };
        authority.keep(&Change { puts: vec![damaged], ..by("anna", 100) }).expect("kept");
        drop((authority, bans));
        let (authority, bans) = open(folder.path(), 100);
        assert!(holds(&bans, "192.0.2.9") && bans.unread().is_none());
        assert!(bans.trouble().is_some_and(|why| why.contains("\"nonsense\" is no prefix")));
        assert!(bans.ban(&authority, wanted("198.51.100.0/24", None)).is_ok());
    }

    #[test]
    fn a_ban_of_a_helper_is_known_as_that_after_a_start() {
        let folder = tempfile::tempdir().expect("a directory");
        let (authority, bans) = open(folder.path(), 100);
        let of_helper = Ban { is_by_helper: true, ..wanted("192.0.2.0/24", None) };
        bans.ban(&authority, of_helper).expect("kept");
        drop((authority, bans));
        let (authority, bans) = open(folder.path(), 100);
        let known = bans.of_itself(prefix("192.0.2.0/24"), 100).expect("it is banned");
        assert!(known.is_by_helper && known.why == "noise");
        let (_, is_new) = bans.ban(&authority, wanted("192.0.2.0/24", None)).expect("kept");
        assert!(is_new, "it is an operator's now");
    }

    #[test]
    fn what_is_over_ends_although_the_store_cannot_be_written() {
        let folder = tempfile::tempdir().expect("a directory");
        let (authority, bans) = open(folder.path(), 100);
        bans.ban(&authority, wanted("192.0.2.0/24", Some(200))).expect("kept");
        bans.ban(&authority, wanted("198.51.100.0/24", Some(210))).expect("kept");
        let nobody = Authority::of_nobody();
        assert!(bans.end(&nobody, ("the server", 200)).is_err() && !holds(&bans, "192.0.2.9"));
        assert!(!bans.has_ended(209) && bans.has_ended(210));
        assert!(bans.end(&nobody, ("the server", 210)).is_err() && !holds(&bans, "198.51.100.9"));
        assert!(bans.count(210) == 0 && !bans.has_ended(269) && bans.has_ended(270));
        assert_eq!(bans.end(&authority, ("the server", 270)).ok(), Some(2));
        assert!(!bans.has_ended(u64::MAX - 1));
    }

    #[test]
    fn whoever_looks_does_not_wait_for_the_store() {
        let folder = tempfile::tempdir().expect("a directory");
        let (authority, bans) = open(folder.path(), 100);
        bans.ban(&authority, wanted("192.0.2.0/24", Some(200))).expect("kept");
        let compiling = authority.deciding();
        std::thread::scope(|scope| {
            let (begun, begins) = std::sync::mpsc::channel();
            let (authority, bans) = (&authority, &bans);
            let banning = scope.spawn(move || {
                begun.send(()).expect("somebody waits");
                bans.ban(authority, wanted("198.51.100.0/24", None))
            });
            begins.recv().expect("it begins");
            // Until it waits for the store.
            while bans.writing.try_lock().is_ok() {
                std::thread::yield_now();
            }
            assert_eq!((bans.count(100), bans.prefixes(100).len()), (1, 1));
            assert_eq!(bans.list(Bound::Unbounded, 9, 100).len(), 1);
            assert!(!holds(bans, "198.51.100.9"), "it is not on disk");
            let ending = scope.spawn(|| bans.end(authority, ("the server", 200)));
            while holds(bans, "192.0.2.9") {
                std::thread::yield_now();
            }
            assert!(!bans.has_ended(200), "one that waits is enough");
            drop(compiling);
            assert!(banning.join().expect("no panic").is_ok());
            assert_eq!(ending.join().expect("no panic").ok(), Some(1));
        });
        assert!(holds(&bans, "198.51.100.9"));
    }

    #[test]
    fn bans_are_found_by_what_they_hold_for() {
        let folder = tempfile::tempdir().expect("a directory");
        let (authority, bans) = open(folder.path(), 100);
        for text in ["192.0.2.0/24", "192.0.0.0/16", "192.0.2.7/32", "192.0.3.0/24"] {
            bans.ban(&authority, wanted(text, None)).expect("kept");
        }
        let shown = |bans: Vec<Ban>| bans.iter().map(|ban| ban.prefix.to_string()).collect::<Vec<_>>();
        assert_eq!(
            shown(bans.of(prefix("192.0.2.7/32"), 100)),
            ["192.0.0.0/16", "192.0.2.0/24", "192.0.2.7/32"]
        );
        assert_eq!(shown(bans.of(prefix("192.0.2.0/25"), 100)), ["192.0.0.0/16", "192.0.2.0/24"]);
        let after = Bound::Excluded(prefix("192.0.2.0/24"));
        assert_eq!(shown(bans.list(after, 1, 100)), ["192.0.2.7/32"]);
    }

    #[test]
    fn nobody_is_banned_with_this_machine_or_with_whoever_has_no_limit() {
        let exempt = [prefix("198.51.100.0/24"), prefix("2001:db8:7::/48")];
        let own = ["203.0.113.53".parse().expect("an address")];
        let caller = Some("203.0.112.9".parse().expect("an address"));
        let spared = |text: &str| spared(prefix(text), Spared { exempt: &exempt, own: &own, caller });
        for (text, why) in [
            ("127.0.0.1/32", "this machine itself"),
            ("0.0.0.0/0", "this machine itself"),
            ("::/0", "this machine itself"),
            ("::1/128", "this machine itself"),
            ("203.0.113.0/24", "an address of this machine"),
            ("203.0.112.0/24", "asked from"),
            ("198.51.100.7/32", "limits.rate.exempt"),
            ("198.51.0.0/16", "limits.rate.exempt"),
            ("2001:db8::/32", "limits.rate.exempt"),
        ] {
            assert!(spared(text).is_some_and(|it| it.contains(why)), "{text}: {:?}", spared(text));
        }
        assert_eq!((spared("192.0.2.0/24"), spared("2001:db8:8::/48")), (None, None));
        assert_eq!(plain(prefix("::ffff:192.0.2.0/120")), prefix("192.0.2.0/24"));
    }

    #[test]
    fn wide_prefixes_are_for_admins_and_the_widest_for_nobody() {
        let is_refused =
            |text: &str| [true, false].map(|is_admin| too_wide(prefix(text), is_admin).is_some());
        for text in ["128.0.0.0/1", "10.0.0.0/7", "2000::/3", "fd00::/8", "2001::/18"] {
            assert_eq!(is_refused(text), [true, true], "{text}");
        }
        for text in ["10.0.0.0/8", "192.168.0.0/16", "192.0.2.0/23", "2001::/19", "2001:db8::/47"] {
            assert_eq!(is_refused(text), [false, true], "{text}");
        }
        assert_eq!(is_refused("192.0.2.0/24"), [false, false]);
        assert_eq!(is_refused("2001:db8::/48"), [false, false]);
    }
}
