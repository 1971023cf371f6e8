//! Trust anchors, and how they follow the keys of their zone (RFC 5011).

mod signals;
mod statements;
mod text;

use wire::{Name, NameBuf};

pub use self::signals::{Sentinel, key_tag_query, parse_key_tag_query};
pub use self::text::{AnchorFault, AnchorRow, read_anchors};
use crate::algorithm::{Algorithm, Algorithms};
use crate::chain::{Rules, TrustPoint, ZoneKeys, zone_keys};
use crate::dnskey::{Dnskey, ENTRY_POINT, REVOKED, ZONE_KEY};
use crate::ds::Ds;
use crate::parsed::{Mismatch, ParsedKey, PublicKey};
use crate::rrset::Rrset;
use crate::verify::{Budget, Failure, Unverified, Verifier};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
/// Times that a new key is seen before it counts, however long it was waited.
const PENDING_COUNT_MIN: u32 = 2;
/// Keys that are followed for one zone: one that publishes more is not followed further.
const TRACKED_MAX: usize = 64;

/// The root's keys, as DS records with SHA-256: KSK-2017 and KSK-2024 (IANA, root-anchors.xml).
pub const ROOT_DS: [&[u8]; 2] = [
    b"\x4f\x66\x08\x02\xe0\x6d\x44\xb8\x0b\x8f\x1d\x39\xa9\x5c\x0b\x0d\x7c\x65\xd0\x84\
      \x58\xe8\x80\x40\x9b\xbc\x68\x34\x57\x10\x42\x37\xc7\xf8\xec\x8d",
    b"\x97\x28\x08\x02\x68\x3d\x2d\x0a\xcb\x8c\x9b\x71\x2a\x19\x48\xb2\x7f\x74\x12\x19\
      \x29\x8d\x0a\x45\x0d\x61\x2c\x48\x3a\xf4\x44\xa4\xc0\xfb\x2b\x16",
];

/// How long it takes until something counts, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldDown {
    /// Until a new key is trusted (RFC 5011 §2.4.1), or the TTL it came with if that is longer.
    pub add: u64,
    /// Until a revoked key is forgotten (RFC 5011 §2.4.2).
    pub remove: u64,
    /// Until a key that is gone, but was never revoked, is no longer trusted; RFC 5011 never stops.
    pub keep_missing: Option<u64>,
}

impl Default for HoldDown {
    fn default() -> Self {
        Self { add: 30 * DAY, remove: 30 * DAY, keep_missing: None }
    }
}

/// Where a key stands (RFC 5011 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Nobody has seen it yet.
    Start,
    /// It was seen, and is waited for.
    AddPend,
    /// It is trusted.
    Valid,
    /// It is trusted, but was not there the last time.
    Missing,
    /// It revoked itself.
    Revoked,
    /// It was revoked long ago, or is gone for long.
    Removed,
}

/// A key that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The data of its DNSKEY; a revoked key has the flag.
    pub rdata: Box<[u8]>,
    /// Where it stands.
    pub state: KeyState,
    /// How often it was seen while it was waited for.
    pub pending_count: u32,
    /// When it came to stand there, in seconds since 1970; 0 if it was always there, as far as
    /// anybody knows, and its zone was not asked yet.
    pub last_change: u64,
}

impl Anchor {
    fn key(&self) -> Option<Dnskey<'_>> {
        Dnskey::parse(&self.rdata)
    }

    /// Returns whether it may check signatures.
    pub const fn is_trusted(&self) -> bool {
        matches!(self.state, KeyState::Valid | KeyState::Missing)
    }

    /// Returns whether this is the same key, revoked or not.
    fn is(&self, other: Dnskey<'_>) -> bool {
        self.key().is_some_and(|key| key.algorithm() == other.algorithm() && key.key() == other.key())
    }

    fn become_state(&mut self, state: KeyState, now: u64) {
        if self.state != state {
            (self.state, self.last_change, self.pending_count) = (state, now, 0);
        }
    }
}

/// The trust anchors of one zone. All times are seconds since 1970.
#[derive(Clone, Debug)]
pub struct TrustAnchors {
    zone: NameBuf,
    /// The data of DS records: they count until a key that they stand for was seen.
    ds: Vec<Box<[u8]>>,
    keys: Vec<Anchor>,
    /// The TTL of the DNSKEY set.
    ttl: u32,
    /// Whether all keys revoked themselves: the zone is as if nobody had trusted it (RFC 5011 §5).
    is_revoked: bool,
    last_queried: u64,
    last_success: u64,
    next_probe: u64,
    failures: u32,
    query_interval: u64,
    retry_time: u64,
}

impl TrustAnchors {
    /// Begins without anchors.
    pub fn new(zone: Name<'_>) -> Self {
        Self {
            zone: zone.to_buf(),
            ds: Vec::new(),
            keys: Vec::new(),
            ttl: DAY as u32,
            is_revoked: false,
            last_queried: 0,
            last_success: 0,
            next_probe: 0,
            failures: 0,
            query_interval: HOUR,
            retry_time: HOUR,
        }
    }

    /// Returns those of the root.
    pub fn root() -> Self {
        let mut anchors = Self::new(Name::ROOT);
        ROOT_DS.iter().for_each(|ds| anchors.add_ds(ds));
        anchors
    }

    /// Trusts the key that a DS stands for.
    pub fn add_ds(&mut self, rdata: &[u8]) {
        if Ds::parse(rdata).is_some() && !self.ds.iter().any(|ds| **ds == *rdata) {
            self.ds.push(rdata.into());
        }
    }

    /// Trusts a key, unless it is revoked or none for zones.
    pub fn add_key(&mut self, rdata: &[u8]) {
        if Dnskey::parse(rdata).is_some_and(Dnskey::signs_zones) {
            self.track(rdata, KeyState::Valid, 0);
        }
    }

    fn track(&mut self, rdata: &[u8], state: KeyState, now: u64) {
        let Some(key) = Dnskey::parse(rdata) else { return };
        if self.keys.len() < TRACKED_MAX && !self.keys.iter().any(|anchor| anchor.is(key)) {
            let pending_count = u32::from(state == KeyState::AddPend);
            self.keys.push(Anchor { rdata: rdata.into(), state, pending_count, last_change: now });
        }
    }

    /// Tracks a key that the zone has begun to use: the newest stands first.
    fn discover(&mut self, rdata: &[u8], state: KeyState, now: u64) {
        let known = self.keys.len();
        self.track(rdata, state, now);
        if self.keys.len() > known {
            self.keys.rotate_right(1);
        }
    }

    /// Returns the zone.
    pub fn zone(&self) -> Name<'_> {
        self.zone.as_name()
    }

    /// Returns the keys that are followed.
    pub fn keys(&self) -> &[Anchor] {
        &self.keys
    }

    /// Returns the data of DS records whose key was not seen yet.
    pub fn ds(&self) -> impl Iterator<Item = &[u8]> {
        self.ds.iter().map(|ds| &**ds)
    }

    /// Returns the data of the DNSKEY records that are trusted.
    pub fn trusted_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().filter(|anchor| anchor.is_trusted()).map(|anchor| &*anchor.rdata)
    }

    /// Returns what is trusted now, for [`zone_keys`].
    pub fn trusted(&self) -> Vec<TrustPoint<'_>> {
        let ds = self.ds.iter().filter_map(|ds| Ds::parse(ds)).map(TrustPoint::Ds);
        let keys = self.keys.iter().filter(|anchor| anchor.is_trusted());
        ds.chain(keys.filter_map(Anchor::key).map(TrustPoint::Key)).collect()
    }

    /// Returns the tags of what is trusted, ascending, each once: what is signalled to the zone
    /// (RFC 8145 §5.1).
    pub fn tags(&self) -> Vec<u16> {
        let mut tags: Vec<u16> = self.trusted().iter().map(TrustPoint::tag).collect();
        tags.sort_unstable();
        tags.dedup();
        tags
    }

    /// Returns whether all keys revoked themselves: the zone is as if nobody had trusted it (RFC
    /// 5011 §5).
    pub const fn is_revoked(&self) -> bool {
        self.is_revoked
    }

    /// Returns when to ask for the DNSKEY set again; who asks spreads it.
    pub const fn next_probe(&self) -> u64 {
        self.next_probe
    }

    /// Has the next probe come earlier by so many seconds, so that not all who trust a zone ask at
    /// the same time.
    pub const fn probe_earlier(&mut self, seconds: u64) {
        self.next_probe = self.next_probe.saturating_sub(seconds);
    }

    /// Returns when the DNSKEY set was asked for last; 0 for never.
    pub const fn last_queried(&self) -> u64 {
        self.last_queried
    }

    /// Returns when a DNSKEY set that counts came last; 0 for never.
    pub const fn last_success(&self) -> u64 {
        self.last_success
    }

    /// Notes that nobody answered, or without keys. That is nothing to write down: the zone has not
    /// said anything.
    pub const fn unanswered(&mut self, now: u64) {
        self.last_queried = now;
        self.next_probe = now.saturating_add(self.retry_time);
    }

    /// Notes that a set came that proves nothing.
    const fn failed(&mut self, now: u64) {
        self.unanswered(now);
        self.failures = self.failures.saturating_add(1);
    }

    /// Takes a DNSKEY set of the zone's that was asked for, with its signatures. What it says
    /// counts if a trusted key signed it; that a key is revoked counts if this key did (RFC 5011
    /// §2.1).
    ///
    /// Each set costs checks of its own budget. Whatever comes of it, what stands here is to be
    /// written down.
    pub fn heard(
        &mut self,
        dnskeys: &Rrset,
        rrsigs: &[&[u8]],
        accepted: Algorithms,
        hold_down: &HoldDown,
        now: u64,
        budget: &mut Budget,
    ) -> Result<(), Failure> {
        let rules = Rules::exact(accepted, now as u32);
        self.revoke(dnskeys, rrsigs, rules, now, budget);
        let judged = {
            let trusted = self.trusted();
            zone_keys(self.zone(), &trusted, dnskeys, rrsigs.iter().copied(), rules, budget)
        };
        let failure = match judged {
            ZoneKeys::Secure(keys) => {
                self.follow(dnskeys, keys.original_ttl(), hold_down, now);
                let left = u64::from(keys.expiration().wrapping_sub(now as u32));
                (self.query_interval, self.retry_time) = intervals(keys.original_ttl(), left);
                (self.last_queried, self.last_success) = (now, now);
                self.next_probe = now.saturating_add(self.query_interval);
                self.failures = 0;
                return Ok(());
            }
            ZoneKeys::Insecure(_) => {
                let algorithm = self.trusted().first().map_or(Algorithm(0), TrustPoint::algorithm);
                Failure { why: Unverified::Unsupported(algorithm), key: None }
            }
            ZoneKeys::Bogus(failure) => failure,
        };
        self.failed(now);
        Err(failure)
    }

    /// Takes the trust from keys that say themselves that they are revoked.
    fn revoke(&mut self, dnskeys: &Rrset, rrsigs: &[&[u8]], rules: Rules, now: u64, budget: &mut Budget) {
        if dnskeys.owner() != self.zone() || dnskeys.data().count() > TRACKED_MAX {
            return;
        }
        for key in dnskeys.data().filter_map(Dnskey::parse) {
            let [high, low] = (key.flags() & !REVOKED).to_be_bytes();
            let mut rdata = key.as_bytes().to_vec();
            if let Some(flags) = rdata.first_chunk_mut() {
                *flags = [high, low];
            }
            let Some(before) = Dnskey::parse(&rdata).filter(|_| key.flags() & REVOKED != 0) else { continue };
            let is_of = |ds: &[u8]| Ds::parse(ds).is_some_and(|ds| ds.is_of(self.zone(), before));
            let is_trusted = self.keys.iter().any(|anchor| anchor.is_trusted() && anchor.is(key))
                || self.ds.iter().any(|ds| is_of(ds));
            if !is_trusted || !before.signs_zones() {
                continue;
            }
            let keys = [Revoked { key: ParsedKey::new(before), tag: key.tag() }];
            let Rules { accepted, now: short, skew } = rules;
            let verifier = Verifier { zone: self.zone.as_name(), keys: &keys, accepted, now: short, skew };
            if verifier.verify(dnskeys, rrsigs.iter().copied(), budget).is_err() {
                continue;
            }
            let zone = self.zone;
            self.ds.retain(|ds| Ds::parse(ds).is_some_and(|ds| !ds.is_of(zone.as_name(), before)));
            self.track(key.as_bytes(), KeyState::Start, now);
            for anchor in self.keys.iter_mut().filter(|anchor| anchor.is(key)) {
                anchor.rdata = key.as_bytes().into();
                anchor.become_state(KeyState::Revoked, now);
            }
            self.is_revoked = self.trusted().is_empty();
        }
    }

    /// Moves each key on, by a DNSKEY set that a trusted key signed.
    fn follow(&mut self, dnskeys: &Rrset, ttl: u32, hold_down: &HoldDown, now: u64) {
        self.ttl = ttl;
        let add = hold_down.add.max(u64::from(ttl));
        let seen = |anchor: &Anchor| {
            dnskeys.data().filter_map(Dnskey::parse).any(|key| key.signs_zones() && anchor.is(key))
        };
        for anchor in &mut self.keys {
            let since = now.saturating_sub(anchor.last_change);
            match (anchor.state, seen(anchor)) {
                (KeyState::AddPend, true) => {
                    anchor.pending_count = anchor.pending_count.saturating_add(1);
                    if since >= add && anchor.pending_count >= PENDING_COUNT_MIN {
                        anchor.become_state(KeyState::Valid, now);
                    }
                }
                (KeyState::AddPend, false) => anchor.become_state(KeyState::Start, now),
                (KeyState::Valid, true) if anchor.last_change == 0 => anchor.last_change = now,
                (KeyState::Valid, false) => anchor.become_state(KeyState::Missing, now),
                (KeyState::Missing, true) => anchor.become_state(KeyState::Valid, now),
                (KeyState::Missing, false) if hold_down.keep_missing.is_some_and(|keep| since >= keep) => {
                    anchor.become_state(KeyState::Removed, now);
                }
                (KeyState::Revoked, _) if since >= hold_down.remove => {
                    anchor.become_state(KeyState::Removed, now);
                }
                _ => {}
            }
        }
        self.keys.retain(|anchor| anchor.state != KeyState::Start);
        for key in dnskeys.data().filter_map(Dnskey::parse) {
            if key.signs_zones() && key.flags() & (ZONE_KEY | ENTRY_POINT) == ZONE_KEY | ENTRY_POINT {
                self.discover(key.as_bytes(), KeyState::AddPend, now);
            }
            let is_of = |ds: &[u8]| Ds::parse(ds).is_some_and(|ds| ds.is_of(self.zone.as_name(), key));
            if key.signs_zones() && self.ds.iter().any(|ds| is_of(ds)) {
                self.discover(key.as_bytes(), KeyState::Valid, now);
                let same = |anchor: &&mut Anchor| anchor.is(key) && anchor.state == KeyState::AddPend;
                if let Some(anchor) = self.keys.iter_mut().find(same) {
                    anchor.become_state(KeyState::Valid, now);
                }
            }
        }
        if self.keys.iter().any(Anchor::is_trusted) {
            self.ds.clear();
        }
    }
}

/// Returns after how many seconds a zone is asked again, and after how many if that fails (RFC 5011
/// §2.3). `left` is the life that the signature has left.
pub fn intervals(original_ttl: u32, left: u64) -> (u64, u64) {
    let ttl = u64::from(original_ttl);
    let query = (15 * DAY).min(ttl / 2).min(left / 2).max(HOUR);
    let retry = DAY.min(ttl / 10).min(left / 10).max(HOUR);
    (query, retry)
}

/// A key that is used once more, to check that it revoked itself.
struct Revoked {
    key: ParsedKey,
    /// With the flag.
    tag: u16,
}

impl PublicKey for Revoked {
    fn algorithm(&self) -> Algorithm {
        self.key.algorithm()
    }

    fn tag(&self) -> u16 {
        self.tag
    }

    fn signs_zones(&self) -> bool {
        true
    }

    fn check(&self, message: &[u8], signature: &[u8]) -> Result<(), Mismatch> {
        self.key.check(message, signature)
    }
}
