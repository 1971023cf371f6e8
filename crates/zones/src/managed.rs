//! One zone while the server runs: its version, its history, its files.

mod file;
mod keep;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::peers::Scope;
use tokio::sync::Notify;
use wire::serial::is_newer;
use wire::{HashKey, Name, NameBuf, Rcode, Rtype};
use zone::difference::with_serial;
use zone::update::{RrsetChange, Updated, change_rrsets, update};
use zone::{Change, Difference, Proof, Zone};

use crate::copy::Copying;
use crate::digest::DigestCheck;
use crate::disk::Disk;
use crate::elsewhere::Validators;
use crate::error::ZoneError;
use crate::history::History;
use crate::journal::{FileMark, Found, Journal};
use crate::load::{LoadedZone, SignedHere};
use crate::lock::lock;
use crate::signed_journal::SignedJournal;

/// Looks at the version of a zone that a change is to be made to, and says why it is not the one
/// that was meant.
type Expect<'a> = dyn Fn(&Zone) -> Result<(), String> + 'a;

/// Who has made a zone what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneChange {
    /// The name of a person or a token, or the source of the change.
    pub by: String,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// The source of changes that come from other servers.
const BY_PRIMARY: &str = "a primary server";
/// The source of changes that come with the file of a zone.
pub(crate) const BY_FILE: &str = "the file of the zone";

/// The end of a zone that has none.
const NEVER: u64 = u64::MAX;

/// Returns when a zone was last refreshed from its origin: a primary's EXPIRE option (RFC 7314)
/// says how long it may still serve the zone itself, which moves the moment back.
fn origin_refreshed_at(now: u64, expire_s: Option<u32>, zone: &Zone) -> u64 {
    let all = zone.soa_times().expire;
    // RFC 7314 §4: never longer than the SOA says.
    let left = expire_s.map_or(all, |left| left.min(all));
    now.saturating_sub(u64::from(all - left))
}

/// Why there is a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The configuration says so.
    Configured,
    /// The operator added it while the server ran.
    Added,
    /// A catalog lists it.
    Member {
        /// The catalog.
        catalog: NameBuf,
        /// Its label there.
        id: Vec<u8>,
    },
}

impl Origin {
    /// Returns whether this catalog lists it.
    pub(crate) fn is_member_of(&self, apex: &NameBuf) -> bool {
        matches!(self, Self::Member { catalog, .. } if catalog == apex)
    }
}

/// One zone.
///
/// `current` is the only lock that is held while others are taken: `loaded`, `signed`, `history`
/// and `served`, each for a moment, and one at a time. No lock of a zone is held while one of
/// another zone is taken.
pub(crate) struct ManagedZone {
    pub(crate) apex: NameBuf,
    pub(crate) loaded: Mutex<Arc<LoadedZone>>,
    /// Held while a new version is made and written: seconds, for a large zone. Workers do not wait
    /// for it.
    pub(crate) current: Mutex<Current>,
    /// Held for a moment.
    pub(crate) served: Mutex<Option<Arc<Zone>>>,
    /// Since when that version is served, or none is, in seconds since 1970.
    pub(crate) served_since: AtomicU64,
    /// What was signed last, of a zone that is served signed. Held for a moment.
    signed: Mutex<Option<Arc<Zone>>>,
    /// Steps between versions that were served. Held for a moment.
    pub(crate) history: Mutex<History>,
    /// The serial of the current version, for those who only want to know that.
    serial: AtomicU32,
    /// Until when the zone may be served, in seconds since 1970, for those who only want to know
    /// that; [`NEVER`] if that has no end.
    expires: AtomicU64,
    /// Wakes who looks for newer versions.
    pub(crate) refresh_now: Notify,
    /// Held for a moment.
    pub(crate) copying: Mutex<Copying>,
    /// What web servers said of the version that is here. Held for a moment.
    pub(crate) seen_on_web: Mutex<Option<SeenOnWeb>>,
    /// Who said that there is one.
    pub(crate) notified_by: Mutex<Option<IpAddr>>,
    /// When a primary last said over a connection or signed what it has, in seconds since 1970; at
    /// the start, now.
    pub(crate) confirmed_at: AtomicU64,
    /// Whether the whole zone is to be taken over, whatever its serial.
    pub(crate) wants_whole: AtomicBool,
    pub(crate) is_gone: AtomicBool,
    pub(crate) origin: Origin,
    /// If it is a catalog, the members of the last version that could be read.
    pub(crate) last_members: Mutex<Arc<[zone::catalog::Member]>>,
}

/// What changes with a zone's versions.
pub(crate) struct Current {
    pub(crate) zone: Option<Arc<Zone>>,
    journal: Journal,
    /// Steps between versions that were signed, if the zone is served signed.
    signed_journal: SignedJournal,
    has_base: bool,
    log_octets: u64,
    /// When the zone was last refreshed from its origin, in seconds since 1970. A primary's EXPIRE
    /// option moves it back.
    pub(crate) refreshed_at: u64,
    /// The zone's file when it was last taken, as far as it is in memory.
    file: Option<Arc<Zone>>,
    /// What the journal knows of it.
    mark: FileMark,
    /// A change of the file that is not taken.
    pub(crate) pending: Option<Pending>,
    /// Why the journal cannot be read: nothing is written over it.
    pub(crate) unreadable: Option<String>,
    pub(crate) is_frozen: bool,
    /// Why the last attempt to get a newer version failed.
    pub(crate) trouble: Option<String>,
    /// When the next attempt is made.
    pub(crate) next_look: u64,
    /// The last change since the start, whoever made it.
    pub(crate) change: Option<ZoneChange>,
    /// The last one since the start that no operator asked for, in seconds since 1970.
    pub(crate) changed_by_others_at: Option<u64>,
    /// Whether the zone is being removed: it takes no change any more.
    pub(crate) is_removed: bool,
}

impl Current {
    /// Notes who changed the zone last.
    pub(crate) fn note_change(&mut self, by: &str, now: u64) {
        self.change = Some(ZoneChange { by: by.to_owned(), at: now });
    }

    /// Notes a change that no operator asked for.
    pub(crate) fn note_other_change(&mut self, by: &str, now: u64) {
        self.note_change(by, now);
        self.changed_by_others_at = Some(now);
    }
}

/// What a web server said of the file that a version is from.
#[derive(Clone)]
pub(crate) struct SeenOnWeb {
    pub(crate) url: String,
    /// The serial of that version.
    pub(crate) serial: u32,
    pub(crate) validators: Validators,
}

/// A change of a zone's file that is not taken before somebody decides.
pub(crate) struct Pending {
    file: Arc<Zone>,
    contents: u64,
    /// Why, and what to do, for a person.
    pub(crate) why: String,
}

/// What came of an update.
pub(crate) struct Answered {
    pub(crate) rcode: Rcode,
    /// Whether there is a new version.
    pub(crate) is_new: bool,
    /// Why it cannot be kept.
    pub(crate) trouble: Option<std::io::Error>,
}

impl Answered {
    const fn said(rcode: Rcode) -> Self {
        Self { rcode, is_new: false, trouble: None }
    }
}

/// What a change of a file came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing is new.
    Same,
    /// There is a new version.
    New,
}

/// Returns whether a version that was kept is as its digest says, as far as that can be known
/// without asking anybody.
pub(crate) fn is_taken(zone: &Zone, loaded: &LoadedZone) -> bool {
    // Of a zone that is changed here, the digest is that of what it was.
    if !loaded.plan.is_secondary() {
        return true;
    }
    let digest = DigestCheck::by_settings(loaded.plan.zonemd.as_ref(), zone.apex());
    let checked = digest.check(zone);
    if let Err(why) = &checked {
        tracing::error!(zone = %zone.apex(), why, "what was kept of the zone is not used: its digest is wrong");
    }
    checked.is_ok()
}

/// Returns whether versions are written down, and read after a start. Those of a zone from other
/// servers need not be.
fn is_kept(loaded: &LoadedZone) -> bool {
    loaded.plan.keeps || !loaded.plan.is_secondary()
}

/// Returns whether a version can be served only together with its file, which has the keys that its
/// proofs are signed with.
fn is_tied_to_file(zone: &Zone) -> bool {
    zone.facts().has_own_keys && zone.facts().proof == Proof::Compact
}

impl ManagedZone {
    /// Opens the zone's files and decides which version is served.
    pub(crate) fn open(
        loaded: &Arc<LoadedZone>,
        origin: Origin,
        key: HashKey,
        disk: &Arc<dyn Disk>,
        now: u64,
    ) -> Self {
        let apex = loaded.plan.apex;
        let mut journal = Journal::new(Arc::clone(disk), apex.as_name());
        // What was kept of a zone from before the server signed it has no signatures.
        let is_kept = !loaded.signed.is_file() && is_kept(loaded);
        let found = if is_kept { journal.open(key) } else { Ok(Found::default()) };
        let mut unreadable = None;
        let found = found.unwrap_or_else(|error| {
            tracing::error!(zone = %apex, %error, "what was kept of the zone cannot be read");
            // A primary has it still.
            if !loaded.plan.is_secondary() {
                unreadable = Some(format!("what was kept of the zone cannot be read: {error}"));
            }
            Found::default()
        });
        let found = Found { zone: found.zone.filter(|zone| is_taken(zone, loaded)), ..found };
        let has_base = found.zone.is_some();
        let found = if has_base { found } else { Self::first_version(found, loaded, key, now) };
        let from_file = found.zone.as_ref().filter(|_| !has_base);
        let first_look = from_file
            .map_or(0, |zone| found.refreshed_at.saturating_add(u64::from(zone.soa_times().refresh)));
        let mut history = History::default();
        let mut signed_journal = SignedJournal::new(Arc::clone(disk), apex.as_name());
        let mut followed = |last: Option<&Arc<Zone>>| {
            let steps = last.map_or(Ok(Vec::new()), |last| signed_journal.open(last.facts().serial));
            steps.unwrap_or_else(|error| {
                tracing::error!(zone = %apex, %error, "what led to the signed version cannot be read");
                Vec::new()
            })
        };
        let signed = match &loaded.signed {
            SignedHere::Versions { last } => {
                history.set(followed(last.as_ref()), loaded.plan.journal_octets_max);
                last.clone()
            }
            SignedHere::File => {
                history.set(followed(loaded.zone.as_ref()), loaded.plan.journal_octets_max);
                None
            }
            SignedHere::Nothing => {
                history.set(found.history, loaded.plan.journal_octets_max);
                None
            }
        };
        let managed = Self {
            apex,
            current: Mutex::new(Current {
                zone: found.zone,
                journal,
                signed_journal,
                has_base,
                log_octets: found.log_octets,
                refreshed_at: found.refreshed_at,
                file: None,
                mark: found.file,
                pending: None,
                unreadable,
                is_frozen: false,
                trouble: None,
                next_look: first_look,
                change: None,
                changed_by_others_at: None,
                is_removed: false,
            }),
            loaded: Mutex::new(Arc::clone(loaded)),
            served: Mutex::new(None),
            served_since: AtomicU64::new(0),
            signed: Mutex::new(signed),
            history: Mutex::new(history),
            serial: AtomicU32::new(0),
            expires: AtomicU64::new(NEVER),
            refresh_now: Notify::new(),
            copying: Mutex::default(),
            seen_on_web: Mutex::new(None),
            notified_by: Mutex::new(None),
            confirmed_at: AtomicU64::new(now),
            wants_whole: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            origin,
            last_members: Mutex::new(Arc::from([])),
        };
        let mut current = lock(&managed.current);
        managed.forget_kept(&mut current, loaded);
        managed.take_file(&mut current, loaded, key, now);
        managed.show(&current, now);
        drop(current);
        managed
    }

    /// Takes what the configuration says of the zone now, and its file. `by` is who changed the
    /// configuration, if somebody did.
    pub(crate) fn replan(
        &self,
        loaded: &Arc<LoadedZone>,
        key: HashKey,
        (by, now): (Option<&str>, u64),
    ) -> Taken {
        let before = std::mem::replace(&mut *lock(&self.loaded), Arc::clone(loaded));
        let mut current = lock(&self.current);
        self.forget_kept(&mut current, loaded);
        let taken = self.take_file(&mut current, loaded, key, now);
        let plans = (&before.plan, &loaded.plan);
        let is_other = plans.0.file != plans.1.file || plans.0.is_secondary() != plans.1.is_secondary();
        if taken == Taken::New || is_other {
            current.note_other_change(by.unwrap_or(BY_FILE), now);
        }
        self.show(&current, now);
        taken
    }

    /// Returns what becomes of the zone among those that are served.
    pub(crate) fn change(&self) -> Change {
        match lock(&self.served).clone() {
            Some(zone) => Change::Serve(zone),
            None => Change::Unload(self.apex),
        }
    }

    /// Returns the same, with what the zone answers beside its records if that is not known to the
    /// configuration.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Change> + use<> {
        let loaded = self.loaded();
        let synthesized = loaded.synthesized.as_ref().filter(|_| self.origin != Origin::Configured);
        let special = synthesized.map(|it| Change::Special(self.apex, Arc::clone(&it.specials)));
        std::iter::once(self.change()).chain(special)
    }

    /// The zone is not looked after any more.
    pub(crate) fn end(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
        self.refresh_now.notify_one();
    }

    pub(crate) fn loaded(&self) -> Arc<LoadedZone> {
        Arc::clone(&lock(&self.loaded))
    }

    pub(crate) fn is_secondary(&self) -> bool {
        lock(&self.loaded).plan.is_secondary()
    }

    pub(crate) fn serial(&self) -> u32 {
        self.serial.load(Ordering::Relaxed)
    }

    /// Returns until when the zone may be served without news from a primary.
    pub(crate) fn expires(&self, current: &Current) -> Option<u64> {
        let zone = current.zone.as_ref().filter(|_| self.is_secondary())?;
        Some(current.refreshed_at.saturating_add(u64::from(zone.soa_times().expire)))
    }

    /// Returns whether the zone is served no more, as no primary was heard of for too long.
    pub(crate) fn is_expired(&self, current: &Current, now: u64) -> bool {
        self.expires(current).is_some_and(|expires| now >= expires)
    }

    /// Returns whether half of EXPIRE has passed since a primary last said over a connection or
    /// signed what it has.
    pub(crate) fn is_unconfirmed(&self, current: &Current, now: u64) -> bool {
        let half = current.zone.as_ref().map_or(0, |zone| u64::from(zone.soa_times().expire) / 2);
        now.saturating_sub(self.confirmed_at.load(Ordering::Relaxed)) >= half
    }

    /// Returns for how many seconds the zone may still be served; nothing if it is from here.
    pub(crate) fn left_s(&self, now: u64) -> Option<u32> {
        match self.expires.load(Ordering::Relaxed) {
            NEVER => None,
            expires => Some(u32::try_from(expires.saturating_sub(now)).unwrap_or(u32::MAX)),
        }
    }

    /// Decides what is served of what there is. Returns whether that is another version than
    /// before.
    pub(crate) fn show(&self, current: &Current, now: u64) -> bool {
        let expires = self.expires(current);
        self.expires.store(expires.unwrap_or(NEVER), Ordering::Relaxed);
        let is_expired = expires.is_some_and(|expires| now >= expires);
        let has_versions = self.loaded().signed.has_versions();
        let shown = match has_versions {
            true => lock(&self.signed).clone().filter(|_| current.zone.is_some()),
            false => current.zone.clone(),
        };
        let shown = shown.filter(|_| !is_expired);
        if let Some(zone) = &current.zone {
            self.serial.store(zone.facts().serial, Ordering::Relaxed);
        }
        let mut served = lock(&self.served);
        let is_same = match (&*served, &shown) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        *served = shown;
        if !is_same {
            self.served_since.store(now, Ordering::Relaxed);
        }
        !is_same
    }

    /// Takes what was signed of a version; it is served from now on.
    pub(crate) fn take_signed(&self, zone: &Arc<Zone>, key: HashKey, now: u64) {
        let octets_max = self.loaded().plan.journal_octets_max;
        let mut current = lock(&self.current);
        let old = lock(&self.signed).replace(Arc::clone(zone));
        let step = old.as_ref().filter(|old| is_newer(zone.facts().serial, old.facts().serial));
        let step = step.map(|old| Arc::new(Difference::between(old, zone, &key)));
        let is_same = old.is_some_and(|old| Arc::ptr_eq(&old, zone));
        let all = {
            let mut history = lock(&self.history);
            match step {
                Some(step) => history.push(step, octets_max),
                None if is_same => {}
                None => history.clear(),
            }
            history.all()
        };
        if !is_same {
            self.keep_signed_steps(&mut current, &all, octets_max);
        }
        self.show(&current, now);
    }

    /// Makes a zone that the operator has given the current version; it is on disk when this
    /// returns. Returns whether there is a new version.
    pub(crate) fn load(&self, new: Zone, key: HashKey, (by, now): (&str, u64)) -> Result<bool, ZoneError> {
        let loaded = self.loaded();
        let mut current = lock(&self.current);
        self.check_is_here(&current)?;
        if current.is_frozen {
            return Err(ZoneError::Refused(format!("zone \"{}\" is frozen", self.apex)));
        }
        let (steps, zone) = match current.zone.clone() {
            None => (Vec::new(), Arc::new(new)),
            Some(old) => {
                let difference = Difference::between(&old, &new, &key);
                let (before, after) = (old.facts().serial, new.facts().serial);
                if is_newer(after, before) {
                    (vec![Arc::new(difference)], Arc::new(new))
                } else if difference.is_empty() && difference.old_soa == difference.new_soa {
                    return Ok(false);
                } else if new.facts().has_own_keys {
                    let why = "it is signed with its own keys, and its serial";
                    let refused = format!("zone \"{}\": {why} {after} is not newer than {before}", self.apex);
                    return Err(ZoneError::Refused(refused));
                } else {
                    // Secondaries take only what is newer.
                    let next = loaded.plan.rights.serial.next(before, now);
                    let new_soa = (difference.new_soa.0, with_serial(&difference.new_soa.1, next));
                    let difference = Difference { new_soa, ..difference };
                    let zone = difference
                        .apply_sharing(&old, &key)
                        .map_err(|misfit| ZoneError::Refused(misfit.to_string()))?;
                    (vec![Arc::new(difference)], zone)
                }
            }
        };
        self.write(&mut current, &steps, &zone, &loaded).map_err(ZoneError::NotKept)?;
        self.accept(&mut current, steps, zone, &loaded, now);
        current.note_change(by, now);
        Ok(true)
    }

    /// Refuses a change of a zone that is being removed.
    fn check_is_here(&self, current: &Current) -> Result<(), ZoneError> {
        match current.is_removed {
            true => Err(ZoneError::NotFound(Box::new(self.apex))),
            false => Ok(()),
        }
    }

    /// Carries out an update; it is on disk when this returns NOERROR, and else it is not there
    /// after a restart.
    pub(crate) fn update(
        &self,
        message: &[u8],
        scopes: &[Arc<Scope>],
        key: HashKey,
        (by, now): (&str, u64),
    ) -> Answered {
        let loaded = self.loaded();
        let mut current = lock(&self.current);
        if current.is_removed {
            return Answered::said(Rcode::NOTAUTH);
        }
        if current.is_frozen {
            return Answered::said(Rcode::REFUSED);
        }
        let Some(zone) = current.zone.clone() else { return Answered::said(Rcode::SERVFAIL) };
        // The checker warns of that: nobody could sign what changes.
        if zone.facts().has_own_keys {
            return Answered::said(Rcode::REFUSED);
        }
        let may = |owner: Name<'_>, rtype: Rtype| scopes.iter().any(|scope| scope.covers(owner, rtype));
        match update(&zone, &key, message, &may, (loaded.plan.rights.serial, now)) {
            Ok(None) => Answered::said(Rcode::NOERROR),
            Err(rcode) => Answered::said(rcode),
            Ok(Some(Updated { zone, difference })) => {
                let steps = vec![Arc::new(difference)];
                // RFC 2136 §3.5: first it is certain, then it is so.
                match self.write(&mut current, &steps, &zone, &loaded) {
                    Ok(()) => {
                        self.accept(&mut current, steps, zone, &loaded, now);
                        current.note_other_change(by, now);
                        Answered { rcode: Rcode::NOERROR, is_new: true, trouble: None }
                    }
                    Err(error) => Answered { rcode: Rcode::SERVFAIL, is_new: false, trouble: Some(error) },
                }
            }
        }
    }

    /// Changes RRsets: all of them, or none; they are on disk when this returns. `expect` looks at
    /// the version that is changed, and says why it is not the one that was meant. Returns whether
    /// there is a new version.
    pub(crate) fn change_rrsets(
        &self,
        changes: &[RrsetChange],
        expect: &Expect<'_>,
        key: HashKey,
        (by, now): (&str, u64),
    ) -> Result<bool, ZoneError> {
        let loaded = self.loaded();
        let mut current = lock(&self.current);
        let updated = self.updated(&current, (changes, expect), (&loaded, key, now))?;
        let Some(Updated { zone, difference }) = updated else { return Ok(false) };
        let steps = vec![Arc::new(difference)];
        self.write(&mut current, &steps, &zone, &loaded).map_err(ZoneError::NotKept)?;
        self.accept(&mut current, steps, zone, &loaded, now);
        current.note_change(by, now);
        Ok(true)
    }

    /// Returns what a change of RRsets would come to; nothing if all of it is so already.
    pub(crate) fn check_rrsets(
        &self,
        changes: &[RrsetChange],
        expect: &Expect<'_>,
        key: HashKey,
        now: u64,
    ) -> Result<Option<Updated>, ZoneError> {
        let loaded = self.loaded();
        self.updated(&lock(&self.current), (changes, expect), (&loaded, key, now))
    }

    /// Returns the version that a change of RRsets makes.
    fn updated(
        &self,
        current: &Current,
        (changes, expect): (&[RrsetChange], &Expect<'_>),
        (loaded, key, now): (&LoadedZone, HashKey, u64),
    ) -> Result<Option<Updated>, ZoneError> {
        self.check_is_here(current)?;
        if current.is_frozen {
            return Err(ZoneError::Refused(format!("zone \"{}\" is frozen", self.apex)));
        }
        let Some(zone) = current.zone.clone() else {
            let why = format!("zone \"{}\" has no records yet, or they cannot be read", self.apex);
            return Err(ZoneError::Refused(why));
        };
        if zone.facts().has_own_keys {
            let why = format!("zone \"{}\" is signed with keys of its file: change that", self.apex);
            return Err(ZoneError::Refused(why));
        }
        expect(&zone).map_err(ZoneError::Conflict)?;
        let policy = loaded.plan.rights.serial;
        change_rrsets(&zone, &key, changes, (policy, now)).map_err(|mistake| {
            let about = mistake.number().and_then(|at| changes.get(at));
            ZoneError::Unfit(match about {
                Some(change) => format!("{} {}: {mistake}", change.owner, change.rtype),
                None => mistake.to_string(),
            })
        })
    }

    /// Notes that a primary has nothing newer, and for how long it may serve the zone itself, if it
    /// says so.
    pub(crate) fn note_refreshed(&self, current: &mut Current, (now, expire_s): (u64, Option<u32>)) {
        let refreshed_at = current.zone.as_ref().map_or(now, |zone| origin_refreshed_at(now, expire_s, zone));
        // RFC 7314 §4: the later of both. What lies ahead is from a clock that was wrong.
        current.refreshed_at = refreshed_at.max(current.refreshed_at.min(now));
        current.trouble = None;
        self.keep_refreshed_at(current);
        self.show(current, now);
    }

    /// Takes a whole zone that came from a primary.
    pub(crate) fn take_whole(
        &self,
        current: &mut Current,
        new: Zone,
        key: HashKey,
        (now, expire_s): (u64, Option<u32>),
    ) {
        let loaded = self.loaded();
        let steps = match &current.zone {
            Some(old) if is_newer(new.facts().serial, old.facts().serial) => {
                let difference = Difference::between(old, &new, &key);
                // More than half of the zone is better sent as a zone.
                if difference.octets() * 2 < new.octets() { vec![difference] } else { Vec::new() }
            }
            _ => Vec::new(),
        };
        current.refreshed_at = origin_refreshed_at(now, expire_s, &new);
        current.trouble = None;
        let is_step = !steps.is_empty();
        self.commit(current, steps, Arc::new(new), &loaded, now);
        current.note_other_change(BY_PRIMARY, now);
        if is_step {
            self.keep_refreshed_at(current);
        }
    }

    /// Takes steps that came from a primary; an error says why not.
    pub(crate) fn take_steps(
        &self,
        current: &mut Current,
        steps: Vec<Difference>,
        (key, digest): (HashKey, &DigestCheck),
        (now, expire_s): (u64, Option<u32>),
    ) -> Result<(), String> {
        let loaded = self.loaded();
        let mut zone = current.zone.clone().ok_or_else(|| zone::Misfit::Serial.to_string())?;
        for step in &steps {
            let next = step.apply_from(zone::Origin::Received, &zone, &key);
            zone = next.map_err(|misfit| misfit.to_string())?;
        }
        digest.check(&zone)?;
        current.refreshed_at = origin_refreshed_at(now, expire_s, &zone);
        current.trouble = None;
        self.commit(current, steps, zone, &loaded, now);
        current.note_other_change(BY_PRIMARY, now);
        self.keep_refreshed_at(current);
        Ok(())
    }

    /// Returns how many octets of log there are.
    pub(crate) const fn log_octets(current: &Current) -> u64 {
        current.log_octets
    }
}
