//! One zone that the server signs: its keys, its signatures, and when what is due.
//!
//! In the state directory, `keys` holds the key files of all zones, and `signing` for each zone
//! `<zone>.keys`, the lives of its keys, and `<zone>.signed`, the zone as it was served last. What
//! is on disk comes before what is served: after a crash, no key is forgotten that somebody may
//! have seen.
//!
//! Keys may be in tokens; their files then say where. Those that were made here are removed from
//! their token at the end of their lives, and no others.

mod push;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dnssec::keys::{Times, ZoneKey};
use dnssec::rollover::{self, Due, Life, Role, State};
use dnssec::tree::Tree;
use dnssec::{Denial, Dnskey, Ds, SecretKey, Signed, Signer, SigningKey, Validity, flags_of};
use plan::signing::SigningPolicy;
use wire::serial::is_newer;
use wire::{HashKey, Name, NameBuf, Rtype, Ttl};
use zone::{Builder, Good, Level, Online, OnlineKey, Origin, Pool, Record, Zone, master};

use super::service::SigningError;
use super::store::{KeyStore, Overwrites, write};
use super::token::Tokens;
use push::Pushes;

pub use push::{Push, PushOutcome};

/// How far in the past signatures begin, for clients whose clocks are slow.
pub(super) const INCEPTION_OFFSET: u64 = 90 * 60;
/// Turns that making keys may take: each makes at most one for each role.
const TURNS_MAX: usize = 4;
/// When it is tried again after something went wrong.
pub(super) const RETRY_AFTER: u64 = 60;
/// The shortest time between two turns.
const TURN_EVERY_MIN: u64 = 1;

/// Asks a server of the parent for the DS it has.
pub(super) type AskParent<'a> = &'a dyn Fn(SocketAddr, Name<'_>) -> Result<Vec<Vec<u8>>, String>;

/// What came of a turn.
pub struct Turned {
    /// The signed zone, if it is another than before.
    pub zone: Option<Arc<Zone>>,
    /// What signing did.
    pub signed: Signed,
    /// When to turn again at the latest.
    pub again_at: u64,
    /// What is worth a line of the log.
    pub told: Vec<String>,
    /// What the parent's servers are to be sent.
    pub push: Option<Push>,
}

/// A key as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// Its life.
    pub life: Life,
    /// The DS that the parent should have, in text.
    pub ds: String,
}

/// A zone that the server signs.
pub(super) struct SignedZone {
    apex: NameBuf,
    pub(super) policy: Arc<SigningPolicy>,
    hash_key: HashKey,
    /// For what is signed while clients wait.
    pool: Arc<Pool>,
    store: KeyStore,
    tokens: Arc<Tokens>,
    /// The keys that were made here in a token: algorithm and tag.
    made_in_token: Vec<(u8, u16)>,
    lives_file: PathBuf,
    zone_file: PathBuf,
    lives: Vec<Life>,
    /// In the order of `lives`.
    keys: Vec<ZoneKey>,
    /// The zone as it was signed last.
    signed: Option<Tree>,
    /// The serial that was published last.
    serial: Option<u32>,
    parent_asked: u64,
    pushes: Pushes,
    /// The keys that sign while clients wait, as one number.
    online: Option<u64>,
    threads: usize,
    begin: fn(),
}

/// Returns what a zone's files are called.
fn file_name(apex: Name<'_>) -> String {
    let text = apex.to_folded().to_string().replace('/', "%2F");
    match text.trim_end_matches('.') {
        "" => "root".to_owned(),
        text => text.to_owned(),
    }
}

impl SignedZone {
    /// Reads what there is of a zone in the state directory.
    pub(super) fn open(
        state: &Path,
        apex: Name<'_>,
        policy: Arc<SigningPolicy>,
        (hash_key, pool): (HashKey, Arc<Pool>),
        tokens: &Arc<Tokens>,
        begin: fn(),
    ) -> Result<Self, String> {
        let name = file_name(apex);
        let folder = state.join("signing");
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make \"{}\": {error}", folder.display()))?;
        let store = KeyStore::new(state.join("keys"), tokens).reaching(policy.token.as_ref());
        let lives_file = folder.join(format!("{name}.keys"));
        let zone_file = folder.join(format!("{name}.signed"));
        let text = match std::fs::read_to_string(&lives_file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("cannot read \"{}\": {error}", lives_file.display())),
        };
        let mut serial = None;
        let mut pushes = Pushes::default();
        let mut made_in_token = Vec::new();
        let mut rest = String::with_capacity(text.len());
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("serial", number)) => serial = number.parse().ok(),
                Some(("made-in-token", key)) => {
                    let numbers = key.split_once(' ');
                    let numbers =
                        numbers.and_then(|(one, other)| Some((one.parse().ok()?, other.parse().ok()?)));
                    made_in_token.extend(numbers);
                }
                // What was sent once may be sent again.
                Some(("pushed", said)) => pushes = Pushes::parse(said).unwrap_or_default(),
                _ => rest.push_str(line),
            }
            // Lines keep their numbers.
            rest.push('\n');
        }
        let lives = rollover::parse(&rest).map_err(|line| {
            format!("\"{}\", line {line}: expected the life of a key", lives_file.display())
        })?;
        let mut stored = store.keys(Some(apex))?;
        let mut keys = Vec::with_capacity(lives.len());
        for life in &lives {
            let at = stored.iter().position(|stored| {
                stored.key.tag() == life.tag && stored.key.secret.algorithm() == life.algorithm
            });
            let at = at.ok_or_else(|| {
                format!(
                    "the key {} of algorithm {} is not in \"{}\"",
                    life.tag,
                    life.algorithm,
                    store.directory().display()
                )
            })?;
            keys.push(stored.swap_remove(at).key);
        }
        let threads = policy.threads.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, |count| count.get().saturating_sub(1).max(1))
        });
        let mut zone = Self {
            apex: apex.to_buf(),
            policy,
            hash_key,
            pool,
            store,
            tokens: Arc::clone(tokens),
            made_in_token,
            lives_file,
            zone_file,
            lives,
            keys,
            signed: None,
            serial,
            parent_asked: 0,
            pushes,
            online: None,
            threads,
            begin,
        };
        zone.take_over(stored.into_iter().map(|stored| stored.key))?;
        zone.signed = zone.read_signed();
        Ok(zone)
    }

    /// Takes keys into use that somebody put into the directory before the zone was ever signed
    /// here.
    fn take_over(&mut self, found: impl Iterator<Item = ZoneKey>) -> Result<(), String> {
        if !self.lives.is_empty() {
            return Ok(());
        }
        let found: Vec<ZoneKey> = found.collect();
        let is_split = found.iter().any(|key| !key.is_entry_point());
        for key in found {
            let role = match (key.is_entry_point(), is_split) {
                (false, _) => Role::Zsk,
                (true, true) => Role::Ksk,
                (true, false) => Role::Csk,
            };
            let since = key.times.activate.or(key.times.created).unwrap_or(0);
            // The zone was signed with them elsewhere, so they are known, and a parent may have
            // their DS.
            let mut life = Life::new(key.secret.algorithm(), key.tag(), role, since);
            life.state = State::Active;
            life.active_since = Some(since);
            life.has_ds = role.is_entry_point();
            self.lives.push(life);
            self.keys.push(key);
        }
        if self.lives.is_empty() { Ok(()) } else { self.write_lives() }
    }

    fn read_signed(&self) -> Option<Tree> {
        let text = std::fs::read(&self.zone_file).ok()?;
        let mut tree = Tree::new(self.apex.as_name());
        let options = master::Options { generated_max: 0, ..master::Options::of_zone(self.apex.as_name()) };
        let outcome = master::read("signed", &text, &options, &mut master::NoIncludes, |entry| {
            tree.push(entry.owner, entry.rtype, entry.ttl.seconds(), entry.rdata);
        });
        let is_whole = outcome.mistakes.is_empty() && tree.soa().is_some();
        if !is_whole {
            tracing::warn!(file = %self.zone_file.display(), "cannot be read; the zone is signed anew");
        }
        is_whole.then_some(tree)
    }

    /// Returns the zone as it was served last, to be served until it is signed again.
    pub(super) fn last(&self, now: u64) -> Option<Arc<Zone>> {
        self.check_is_quick().ok()?;
        let tree = self.signed.as_ref()?;
        let (soa, soa_ttl) = tree.soa()?;
        let dnskey_ttl = self.dnskey_ttl(soa_ttl);
        let plan = self.plan(self.ttl_max(tree, soa.minimum(), soa_ttl), u64::from(dnskey_ttl));
        let online = self.online(&plan, now);
        // It was signed another way: there are no proofs, or nobody to make them.
        let has_chain = tree.set(self.apex.as_name(), Rtype::NSEC).is_some() || tree.has_hashes();
        if online.is_some() == has_chain {
            return None;
        }
        self.compiled(tree, online).ok()
    }

    fn dnskey_ttl(&self, soa_ttl: u32) -> u32 {
        self.policy.dnskey_ttl.map_or(soa_ttl, |ttl| u32::try_from(ttl.as_secs()).unwrap_or(soa_ttl))
    }

    /// Returns the largest TTL that anybody may keep something of the zone for.
    fn ttl_max(&self, tree: &Tree, minimum: u32, soa_ttl: u32) -> u64 {
        let ttl_max = u64::from(tree.ttl_max().max(minimum.min(soa_ttl)).max(self.dnskey_ttl(soa_ttl)));
        self.policy.zone_max_ttl.map_or(ttl_max, |ttl| ttl.as_secs())
    }

    /// Returns who signs while clients wait, if somebody has to: the keys that sign the zone.
    fn online(&self, plan: &rollover::Plan, now: u64) -> Option<Arc<Online>> {
        if self.policy.denial != Denial::Compact {
            return None;
        }
        let keys = self.lives.iter().zip(&self.keys);
        let good = Good::For(self.policy.rrsig_lifetime.as_secs() as u32);
        let keys = keys
            .filter(|(life, _)| rollover::does(plan, &self.lives, life, now).signs_zone)
            .map(|(life, key)| OnlineKey { secret: Arc::clone(&key.secret), tag: life.tag, good })
            .collect();
        Some(Arc::new(Online::new(self.apex.as_name(), keys, Arc::clone(&self.pool))))
    }

    fn write_lives(&self) -> Result<(), String> {
        let mut text = rollover::write(&self.lives);
        if let Some(serial) = self.serial {
            text += &format!("serial {serial}\n");
        }
        for (algorithm, tag) in &self.made_in_token {
            text += &format!("made-in-token {algorithm} {tag}\n");
        }
        if let Some(pushed) = self.pushes.write() {
            text += &format!("pushed {pushed}\n");
        }
        write(&self.lives_file, text.as_bytes(), 0o600, Overwrites::Yes)
            .map_err(|error| format!("cannot write \"{}\": {error}", self.lives_file.display()))
    }

    fn plan(&self, zone_ttl_max: u64, dnskey_ttl: u64) -> rollover::Plan {
        let policy = &self.policy;
        let seconds = |time: std::time::Duration| time.as_secs();
        rollover::Plan {
            algorithm: policy.algorithm,
            is_single: policy.is_single,
            ksk_lifetime: policy.ksk_lifetime.map(seconds),
            zsk_lifetime: policy.zsk_lifetime.map(seconds),
            propagation_delay: seconds(policy.propagation_delay),
            dnskey_ttl,
            zone_ttl_max,
            ds_delay: seconds(policy.parent_delay),
            ds_timeout: policy.parent_timeout.map(seconds),
            announce: policy.announce,
        }
    }

    /// Does what is due: keys are made and move on, what lacks a signature gets one.
    ///
    /// `source` is the zone as it is written, without signatures.
    pub(super) fn turn(&mut self, source: &Zone, now: u64, ask: AskParent<'_>) -> Result<Turned, String> {
        self.check_is_quick()?;
        // The clock may have been set back.
        self.parent_asked = self.parent_asked.min(now);
        let mut told = Vec::new();
        let mut tree = Tree::new(self.apex.as_name());
        source.for_each_record(|owner, rtype, ttl, rdata| {
            tree.push(owner, rtype, ttl.seconds(), rdata);
        });
        // Signatures that somebody else made are not ours to serve beside our own.
        tree.strip();
        let (source_serial, soa_ttl, minimum) =
            tree.soa().map(|(soa, ttl)| (soa.serial(), ttl, soa.minimum())).ok_or("the zone has no SOA")?;
        let dnskey_ttl = self.dnskey_ttl(soa_ttl);
        let ttl_max = self.ttl_max(&tree, minimum, soa_ttl);
        let plan = self.plan(ttl_max, u64::from(dnskey_ttl));
        let due = self.advance(&plan, now, ask, &mut told)?;

        let refresh = self.policy.rrsig_refresh.map_or_else(
            || self.policy.rrsig_lifetime.as_secs() / 10 + self.policy.propagation_delay.as_secs() + ttl_max,
            |refresh| refresh.as_secs(),
        );
        let signer = self.signer(&plan, dnskey_ttl, refresh, now);
        let sign = |tree: &mut Tree| {
            super::sign(&signer, tree, &[], self.threads, self.begin, |_| {}).map_err(|why| why.to_string())
        };
        let before = self.signed.as_ref();
        // With the serial of before, what did not change keeps its signatures, the SOA's among
        // them.
        let last_serial = before.and_then(Tree::soa).map(|(soa, _)| soa.serial()).or(self.serial);
        tree.set_serial(last_serial.unwrap_or(source_serial));
        signer.prepare(&mut tree, &[]).map_err(|why| why.to_string())?;
        if let Some(before) = before {
            tree.adopt(before);
        }
        let mut signed = sign(&mut tree)?;
        let mut next = None;
        let online = self.online(&plan, now);
        let identity = online.as_ref().map(|online| online.identity());
        // A serial says something even if nothing else does: whoever wrote it wants to see it.
        let is_ahead = last_serial.is_some_and(|last| is_newer(source_serial, last));
        if before != Some(&tree) || self.online != identity || is_ahead {
            let serial = self.next_serial(last_serial, source_serial, now);
            if last_serial != Some(serial) {
                tree.set_serial(serial);
                let again = sign(&mut tree)?;
                signed.made += again.made;
                signed.first_expiration = again.first_expiration;
            }
            next = Some((serial, self.compiled(&tree, online)?));
        }
        drop(signer);
        let mut zone = None;
        if let Some((serial, compiled)) = next {
            self.serial = Some(serial);
            self.write_lives()?;
            self.write_signed(&tree)?;
            zone = Some(compiled);
            self.online = identity;
        }
        let (push, push_at) = match self.policy.ds_push.is_empty() {
            true => (None, None),
            false => self.pushes.due(&tree, &self.policy.name, now),
        };
        self.signed = Some(tree);
        let has_spent = self.lives.iter().any(|life| life.state == State::Removed);
        let expires = signed.first_expiration.map(|at| now + u64::from(at.wrapping_sub(now as u32)));
        let checks = (!due.waits_for_ds.is_empty() && !self.policy.parent.is_empty())
            .then(|| self.parent_asked + self.policy.parent_check_interval.as_secs());
        let spent = has_spent.then_some(now);
        let again_at = [due.again_at, expires.map(|at| at.saturating_sub(refresh)), checks, spent, push_at]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(u64::MAX)
            .max(now + TURN_EVERY_MIN);
        Ok(Turned { zone, signed, again_at, told, push })
    }

    /// Refuses keys that would have clients wait for a token.
    fn check_is_quick(&self) -> Result<(), String> {
        let held = self.keys.iter().find(|key| key.secret.place().is_some());
        match held.filter(|_| self.policy.denial == Denial::Compact) {
            Some(key) => Err(format!(
                "the key {} is in a token, which takes too long to sign while clients wait (denial: compact)",
                key.tag()
            )),
            None => Ok(()),
        }
    }

    /// Moves keys on, makes those that are needed, and removes those that nobody needs any more.
    fn advance(
        &mut self,
        plan: &rollover::Plan,
        now: u64,
        ask: AskParent<'_>,
        told: &mut Vec<String>,
    ) -> Result<Due, String> {
        let mut due = Due::default();
        let mut has_changed = false;
        for _ in 0..TURNS_MAX {
            due = rollover::advance(plan, &mut self.lives, now);
            for &(at, state) in &due.entered {
                has_changed = true;
                if let Some(life) = self.lives.get(at) {
                    told.push(format!("the {} {} is {state}", life.role, life.tag));
                }
            }
            for &role in &due.generate {
                let tag = self.generate(role, now)?;
                told.push(format!("the {role} {tag} was made"));
                has_changed = true;
            }
            let is_seen = due.generate.is_empty() && self.look_for_ds(&due, now, ask, told);
            has_changed |= is_seen;
            if due.generate.is_empty() && !is_seen {
                break;
            }
        }
        if has_changed {
            // Before anybody sees a key, it is on disk that there is one.
            self.write_lives()?;
        }
        self.remove_spent(told)?;
        Ok(due)
    }

    fn generate(&mut self, role: Role, now: u64) -> Result<u16, String> {
        let size = if role.is_entry_point() { self.policy.ksk_size } else { self.policy.zsk_size };
        loop {
            let secret = match &self.policy.token {
                Some(token) => {
                    let zone = file_name(self.apex.as_name());
                    self.tokens.generate(token, &format!("{zone}-{role}"), self.policy.algorithm, size)?
                }
                None => SecretKey::generate(self.policy.algorithm, size).map_err(|why| why.to_string())?,
            };
            let times = Times { created: Some(now), ..Times::default() };
            let key = ZoneKey {
                owner: self.apex,
                flags: flags_of(role.is_entry_point()),
                secret: secret.into(),
                times,
            };
            let tag = key.tag();
            // One with a tag that another has would be hard to tell apart, for validators too.
            let is_taken = self.lives.iter().any(|life| life.tag == tag);
            let stored = if is_taken { Ok(()) } else { self.store.put(&key).map(drop) };
            if let Some(place) = key.secret.place().filter(|_| is_taken || stored.is_err()) {
                self.tokens.destroy(place)?;
            }
            stored?;
            if is_taken {
                continue;
            }
            if key.secret.place().is_some() {
                self.made_in_token.push((self.policy.algorithm.0, tag));
            }
            self.lives.push(Life::new(self.policy.algorithm, tag, role, now));
            self.keys.push(key);
            // The next key may take seconds: whoever ends the server meanwhile must not leave one
            // that nobody knows.
            self.write_lives()?;
            return Ok(tag);
        }
    }

    /// Asks the parent's servers about keys that wait for their DS. Returns whether one has it.
    fn look_for_ds(&mut self, due: &Due, now: u64, ask: AskParent<'_>, told: &mut Vec<String>) -> bool {
        let interval = self.policy.parent_check_interval.as_secs();
        if due.waits_for_ds.is_empty() || self.policy.parent.is_empty() || now < self.parent_asked + interval
        {
            return false;
        }
        self.parent_asked = now;
        let mut answers = Vec::with_capacity(self.policy.parent.len());
        for &server in &self.policy.parent {
            match ask(server, self.apex.as_name()) {
                Ok(answer) => answers.push(answer),
                Err(why) => {
                    told.push(format!("the parent's server {server} does not say which DS it has: {why}"));
                    return false;
                }
            }
        }
        let mut is_seen = false;
        for &at in &due.waits_for_ds {
            let Some((life, key)) = self.lives.get_mut(at).zip(self.keys.get(at)) else { continue };
            let rdata = key.dnskey();
            let Some(dnskey) = Dnskey::parse(&rdata) else { continue };
            let has_it = |answer: &Vec<Vec<u8>>| {
                answer.iter().filter_map(|ds| Ds::parse(ds)).any(|ds| ds.is_of(self.apex.as_name(), dnskey))
            };
            if answers.iter().all(has_it) {
                life.has_ds = true;
                is_seen = true;
                told.push(format!("the parent has the DS of the {} {}", life.role, life.tag));
            }
        }
        if !is_seen {
            self.pushes.is_missed(interval, now);
        }
        is_seen
    }

    /// Notes what came of sending DS to the parent's servers. Where nobody is asked whether the
    /// parent has them, the word of the server that took them counts.
    pub(super) fn note_push(
        &mut self,
        ds: Vec<Vec<u8>>,
        outcome: &PushOutcome,
        now: u64,
    ) -> Result<(), String> {
        if outcome.is_ok() && self.policy.parent.is_empty() {
            for (life, key) in self.lives.iter_mut().zip(&self.keys) {
                let rdata = key.dnskey();
                let Some(dnskey) = Dnskey::parse(&rdata).filter(|_| life.state == State::Ready) else {
                    continue;
                };
                life.has_ds |= push::is_among(&ds, self.apex.as_name(), dnskey);
            }
        }
        self.pushes.note(ds, outcome, self.policy.parent_check_interval.as_secs(), now);
        self.write_lives()
    }

    /// Returns how sending DS to the parent stands, in words.
    pub(super) fn push_state(&self) -> Option<String> {
        self.pushes.said().filter(|_| !self.policy.ds_push.is_empty()).map(str::to_owned)
    }

    fn remove_spent(&mut self, told: &mut Vec<String>) -> Result<(), String> {
        let mut at = 0;
        let mut has_changed = false;
        while let Some(life) = self.lives.get(at) {
            if life.state != State::Removed {
                at += 1;
                continue;
            }
            // The zone that lacks it is on disk before its files go: this turn has not written it
            // yet.
            let is_in_zone = self.signed.as_ref().is_some_and(|tree| {
                let rdata = self.keys.get(at).map(ZoneKey::dnskey).unwrap_or_default();
                tree.set(self.apex.as_name(), Rtype::DNSKEY)
                    .is_some_and(|set| set.records().any(|record| record == rdata))
            });
            if is_in_zone {
                at += 1;
                continue;
            }
            let key = self.keys.remove(at);
            self.lives.remove(at);
            has_changed = true;
            let number = (key.secret.algorithm().0, key.tag());
            let is_ours = self.made_in_token.contains(&number);
            self.made_in_token.retain(|made| *made != number);
            self.write_lives()?;
            let stem = key.file_stem();
            let tag = key.tag();
            match key.secret.place() {
                None => {}
                Some(place) if is_ours => match self.tokens.destroy(place) {
                    Ok(()) => told.push(format!("the key {tag} is removed from its token")),
                    // The zone does not need it any more: that is no reason not to sign.
                    Err(why) => tracing::warn!(zone = %self.apex, why, "the key {tag} stays in its token"),
                },
                Some(place) => {
                    told.push(format!("the key {tag} was not made here and stays in its token: {place}"));
                }
            }
            self.store.remove(&stem).map_err(|error| format!("cannot remove {stem}: {error}"))?;
            told.push(format!("the files of the key {tag} are removed"));
        }
        if has_changed { self.write_lives() } else { Ok(()) }
    }

    fn signer(&self, plan: &rollover::Plan, dnskey_ttl: u32, refresh: u64, now: u64) -> Signer<'_> {
        let policy = &self.policy;
        let keys = self
            .lives
            .iter()
            .zip(&self.keys)
            .map(|(life, key)| SigningKey {
                secret: &key.secret,
                flags: key.flags,
                does: rollover::does(plan, &self.lives, life, now),
                validity: None,
            })
            .collect();
        Signer {
            keys,
            dnskey_ttl: Some(dnskey_ttl),
            denial: policy.denial.clone(),
            validity: Validity {
                inception: now.saturating_sub(INCEPTION_OFFSET) as u32,
                expiration: (now + policy.rrsig_lifetime.as_secs()) as u32,
                jitter: policy.rrsig_jitter.as_secs() as u32,
                keep_after: (now + refresh + policy.rrsig_pre_refresh.as_secs()) as u32,
                now: now as u32,
            },
            cds_digests: policy.cds_digests.clone(),
            asks_for_removal: policy.asks_for_removal,
            has_csync: policy.has_csync,
            zonemd: policy.zonemd,
        }
    }

    /// Returns the serial of the next version: the source's if that is ahead, else one that is.
    fn next_serial(&self, last: Option<u32>, source: u32, now: u64) -> u32 {
        match last {
            None => source,
            Some(last) if is_newer(source, last) => source,
            Some(last) => self.policy.serial.next(last, now),
        }
    }

    fn compiled(&self, tree: &Tree, online: Option<Arc<Online>>) -> Result<Arc<Zone>, String> {
        // What is signed was judged before.
        let mut builder = Builder::new(self.apex.as_name(), self.hash_key).from(Origin::Received);
        tree.for_each_record(|(owner, rtype, ttl, rdata)| {
            builder.add(&Record::new(owner, rtype, Ttl::new(ttl), rdata));
        });
        let built = builder.compile();
        let zone = built.zone.map(|zone| match online {
            Some(online) => zone.signed_online(online),
            None => zone,
        });
        zone.map(Arc::new).ok_or_else(|| {
            let first =
                built.findings.iter().find(|found| found.problem.level_in(Origin::Received) == Level::Error);
            first.map_or_else(String::new, |found| format!("{}: {}", found.owner, found.problem))
        })
    }

    fn write_signed(&self, tree: &Tree) -> Result<(), String> {
        use std::fmt::Write as _;
        let mut text = String::new();
        tree.for_each_record(|(owner, rtype, ttl, rdata)| {
            let data = wire::rdata::display(rtype, rdata, 0..rdata.len());
            let _ = writeln!(text, "{owner} {ttl} IN {rtype} {data}");
        });
        write(&self.zone_file, text.as_bytes(), 0o644, Overwrites::Yes)
            .map_err(|error| format!("cannot write \"{}\": {error}", self.zone_file.display()))
    }

    /// Returns its keys as they stand.
    pub(super) fn key_states(&self) -> Vec<KeyState> {
        let digest = self.policy.cds_digests.first().copied().unwrap_or(dnssec::DigestType::SHA256);
        self.lives
            .iter()
            .zip(&self.keys)
            .map(|(life, key)| {
                let rdata = key.dnskey();
                let ds = Dnskey::parse(&rdata)
                    .filter(|_| life.role.is_entry_point())
                    .and_then(|dnskey| Ds::write(self.apex.as_name(), dnskey, digest));
                let ds = ds.map_or_else(String::new, |ds| {
                    wire::rdata::display(Rtype::DS, &ds, 0..ds.len()).to_string()
                });
                KeyState { life: life.clone(), ds }
            })
            .collect()
    }

    /// Takes an operator's word that the parent has the DS of a key, or of all that wait for it.
    pub(super) fn ds_seen(&mut self, tag: Option<u16>) -> Result<usize, SigningError> {
        let mut count = 0;
        for life in &mut self.lives {
            if life.state == State::Ready && tag.is_none_or(|tag| tag == life.tag) {
                life.has_ds = true;
                count += 1;
            }
        }
        if count == 0 {
            return Err(SigningError::Refused(format!("no key of {} waits for its DS", self.apex)));
        }
        self.write_lives().map(|()| count).map_err(SigningError::NotKept)
    }

    /// Has keys of a role replaced now.
    pub(super) fn roll(&mut self, role: Role) -> Result<usize, SigningError> {
        let mut count = 0;
        for life in &mut self.lives {
            if life.state == State::Active && life.role == role {
                life.is_to_go = true;
                count += 1;
            }
        }
        if count == 0 {
            return Err(SigningError::Refused(format!("{} has no active {role}", self.apex)));
        }
        self.write_lives().map(|()| count).map_err(SigningError::NotKept)
    }
}

#[cfg(test)]
pub(super) mod tests;
