//! Signatures made while a client waits, and the proof that RFC 9824 has of what does not exist:
//! one NSEC at the name asked for.
//!
//! What was signed lately is remembered, in bounded memory, for all zones together; what is new
//! takes from an allowance for each second, so that strangers who ask for names that nobody asked
//! for before cannot keep the server busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use cache::{Ageing, Cache, Entry, Key, KeyBits, Limits, Now, Scope, Security};
use dnssec::{Algorithm, SecretKey, SignedBy};
use wire::name::LABEL_OCTETS_MAX;
use wire::{Class, Flags, HashKey, Name, NameBuf, Rcode, Rtype};

use crate::block::{Block, Marks, OWNER, RECORD_HEAD, Records, Rrset};

/// Octets that the signatures of one RRset may have: two of the largest RSA keys', while one takes
/// over from the other.
pub(crate) const SIGNATURES_OCTETS_MAX: usize = 3072;
/// Types that a name may have if a proof is to list them.
const TYPES_MAX: usize = 256;
/// Octets of a proof: the record, a name, and a window for each of some types that are far apart.
const PROOF_OCTETS_MAX: usize = 1024;
/// Octets of a window of a type bitmap (RFC 4034 §4.1.2).
const WINDOW_OCTETS: usize = 32;
/// How far in the past signatures begin, for clients whose clocks are slow.
const INCEPTION_OFFSET: u32 = 90 * 60;
/// A signature is given out for this part of its lifetime; the rest is for those who keep it.
const GIVEN_OUT_PART: u32 = 4;
/// Signatures are given out no longer than this, so that memory is not full of what nobody asks
/// for.
const GIVEN_OUT_MAX: u32 = 86_400;

/// What is remembered of signatures made online, and how many may be made.
pub struct Pool {
    cache: Cache,
    key: HashKey,
    /// What may be spent in a second.
    rate: AtomicU32,
    /// The second, and what was spent in it.
    spent: AtomicU64,
    made: AtomicU64,
    refused: AtomicU64,
}

impl Pool {
    /// Remembers signatures in `octets_max` of memory, and makes up to `rate` each second.
    pub fn new(octets_max: usize, rate: u32, key: HashKey) -> Self {
        Self {
            cache: Cache::new(Limits { octets_max }, key),
            key,
            rate: AtomicU32::new(rate),
            spent: AtomicU64::new(0),
            made: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Changes how many may be made each second.
    pub fn set_rate(&self, rate: u32) {
        self.rate.store(rate, Ordering::Relaxed);
    }

    /// Returns how many signatures were made, and how many answers were refused one.
    pub fn counts(&self) -> (u64, u64) {
        (self.made.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }

    /// Takes from the allowance of this second; returns whether there was enough.
    fn spend(&self, cost: u32, share: Share, now: u32) -> bool {
        let rate = self.rate.load(Ordering::Relaxed);
        let allowed = match share {
            Share::Whole => rate,
            Share::Part => rate - rate / 4,
        };
        let change = |spent: u64| {
            let before = if (spent >> 32) as u32 == now { spent as u32 } else { 0 };
            let after = before.checked_add(cost).filter(|after| *after <= allowed)?;
            Some(u64::from(now) << 32 | u64::from(after))
        };
        self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_ok()
    }
}

/// How much of the allowance a signature may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// All of it: what exists.
    Whole,
    /// Not the last quarter: names that strangers can make up.
    Part,
}

/// When signatures that are made online are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Good {
    /// For so many seconds from when they are made.
    For(u32),
    /// From one point in time to another, in seconds since 1970 modulo 2^32.
    Between(u32, u32),
}

impl Good {
    /// Returns the inception and the expiration of a signature that is made now.
    const fn period(self, now: u32) -> (u32, u32) {
        match self {
            Self::For(seconds) => (now.wrapping_sub(INCEPTION_OFFSET), now.wrapping_add(seconds)),
            Self::Between(from, to) => (from, to),
        }
    }

    /// Returns for how long such a signature is given out.
    fn given_out(self) -> u32 {
        match self {
            Self::For(seconds) => (seconds / GIVEN_OUT_PART).min(GIVEN_OUT_MAX),
            // Another one would be as good.
            Self::Between(..) => GIVEN_OUT_MAX,
        }
    }
}

/// A key that signs online.
pub struct OnlineKey {
    /// The key.
    pub secret: Arc<SecretKey>,
    /// Its tag.
    pub tag: u16,
    /// When its signatures are good.
    pub good: Good,
}

/// Signs for one zone while clients wait.
pub struct Online {
    apex: NameBuf,
    keys: Box<[OnlineKey]>,
    /// Stands for the keys.
    identity: u64,
    pool: Arc<Pool>,
}

impl Online {
    /// Signs for the zone `apex` with `keys`.
    pub fn new(apex: Name<'_>, keys: Vec<OnlineKey>, pool: Arc<Pool>) -> Self {
        let stand = |sum, OnlineKey { secret, tag, good }: &OnlineKey| {
            let start = secret.public().first_chunk().map_or(0, |octets| u64::from_be_bytes(*octets));
            let key = start ^ u64::from(*tag) << 16 ^ u64::from(secret.algorithm().0);
            let good = match *good {
                Good::For(seconds) => u64::from(seconds),
                Good::Between(from, to) => u64::from(from) << 32 | u64::from(to),
            };
            pool.key.mix(pool.key.mix(sum, key), good)
        };
        let identity = keys.iter().fold(keys.len() as u64, stand);
        Self { apex: apex.to_buf(), keys: keys.into(), identity, pool }
    }

    /// Returns a number that stands for the keys and how long their signatures are good.
    pub const fn identity(&self) -> u64 {
        self.identity
    }

    /// Signs an RRset, or finds the signatures that were made for it lately: records that stand
    /// ready, and how many. `None` when no more may be made now.
    pub(crate) fn sign<'r>(
        &self,
        owner: Name<'_>,
        rrset: &Rrset<'_>,
        now: u32,
        share: Share,
        room: &'r mut [u8; SIGNATURES_OCTETS_MAX],
    ) -> Option<(u16, &'r [u8])> {
        let owner = owner.to_folded();
        let key = self.key(&owner, rrset);
        let ageing = Ageing { stale_ttl: 0 };
        if let Some(hit) = self.pool.cache.lookup(&key, Now(now), room, ageing).filter(cache::Hit::fits) {
            return Some((hit.answers, room.get(..hit.len)?));
        }
        let cost = self.keys.iter().map(|key| cost(key.secret.algorithm())).sum();
        if !self.pool.spend(cost, share, now) {
            self.pool.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let len = self.make(owner.as_name(), rrset, now, room)?;
        self.pool.made.fetch_add(self.keys.len() as u64, Ordering::Relaxed);
        let (count, signatures) = (self.keys.len() as u16, room.get(..len)?);
        let entry = Entry {
            body: signatures,
            ttl_offsets: &[],
            rcode: Rcode::NOERROR,
            flags: Flags(0),
            security: Security::Unchecked,
            answers: count,
            authorities: 0,
            additionals: 0,
            ttl: self.keys.iter().map(|key| key.good.given_out()).min().unwrap_or(0),
            stale: 0,
            ede: None,
        };
        // What is not remembered is made again.
        let _ = self.pool.cache.insert(&key, &entry, Now(now));
        Some((count, signatures))
    }

    /// Returns what signatures are remembered under: the owner, the type, and what stands for keys
    /// and records. What depends on the client has several sets of records at one name.
    fn key<'n>(&self, owner: &'n wire::Folded, rrset: &Rrset<'_>) -> Key<'n> {
        let hash = &self.pool.key;
        let (words, rest) = rrset.records.as_chunks::<8>();
        let absorb = |sum, word: &[u8; 8]| hash.mix(sum, u64::from_be_bytes(*word));
        let mut last = [0; 8];
        for (place, octet) in last.iter_mut().zip(rest) {
            *place = *octet;
        }
        let sum = absorb(words.iter().fold(self.identity ^ rrset.records.len() as u64, absorb), &last);
        let mut content = [0; 16];
        if let Some(place) = content.first_chunk_mut() {
            *place = sum.to_be_bytes();
        }
        Key::new(hash, owner, rrset.rtype, Class::IN, KeyBits(0), 0)
            .with_scope(hash, Scope { address: content, family: 0, prefix: 0 })
    }

    /// Makes signatures and writes them as records that stand ready; returns how many octets they
    /// take.
    fn make(
        &self,
        owner: Name<'_>,
        rrset: &Rrset<'_>,
        now: u32,
        room: &mut [u8; SIGNATURES_OCTETS_MAX],
    ) -> Option<usize> {
        let ttl = Records(rrset.records).next()?.ttl;
        let data = Records(rrset.records).map(|record| record.rdata);
        let canonical = dnssec::Rrset::of(owner, rrset.rtype, data).ok()?;
        let mut len = 0;
        for OnlineKey { secret, tag, good } in &self.keys {
            let (inception, expiration) = good.period(now);
            let by =
                SignedBy { key: secret, tag: *tag, zone: self.apex.as_name(), ttl, inception, expiration };
            let signature = canonical.sign(&by).ok()?;
            len += put_record(room.get_mut(len..)?, Rtype::RRSIG, ttl, &signature)?;
        }
        (len > 0).then_some(len)
    }
}

/// What a signature costs beside one with P-256.
const fn cost(algorithm: Algorithm) -> u32 {
    match algorithm {
        Algorithm::ECDSAP256SHA256 | Algorithm::ED25519 => 1,
        Algorithm::ECDSAP384SHA384 => 8,
        _ => 32,
    }
}

/// Writes a record as it stands behind a question for its owner; returns how many octets it takes.
pub(crate) fn put_record(out: &mut [u8], rtype: Rtype, ttl: u32, rdata: &[u8]) -> Option<usize> {
    let place = out.get_mut(..RECORD_HEAD + rdata.len())?;
    let (head, data) = place.split_first_chunk_mut::<RECORD_HEAD>()?;
    let ([o0, o1], [t0, t1], [c0, c1]) = (OWNER, rtype.0.to_be_bytes(), Class::IN.0.to_be_bytes());
    let ([s0, s1, s2, s3], [l0, l1]) = (ttl.to_be_bytes(), (rdata.len() as u16).to_be_bytes());
    *head = [o0, o1, t0, t1, c0, c1, s0, s1, s2, s3, l0, l1];
    data.copy_from_slice(rdata);
    Some(place.len())
}

/// The types that a name has, as a proof lists them.
pub(crate) struct Types {
    list: [u16; TYPES_MAX],
    count: usize,
    /// Whether there was no room for one: what is not listed would be denied.
    is_cut: bool,
}

impl Types {
    /// Returns those that every name with a proof has.
    pub(crate) fn new() -> Self {
        let mut types = Self { list: [0; TYPES_MAX], count: 0, is_cut: false };
        types.add(Rtype::RRSIG);
        types.add(Rtype::NSEC);
        types
    }

    /// Returns those of a name that does not exist (RFC 9824 §3.1).
    pub(crate) fn of_nothing() -> Self {
        let mut types = Self::new();
        types.add(Rtype::NXNAME);
        types
    }

    /// Returns those of a name.
    pub(crate) fn of_block(block: Block<'_>) -> Self {
        let mut types = Self::new();
        let is_cut = block.marks().has(Marks::CUT);
        for rrset in block.rrsets().filter(|rrset| rrset.count > 0) {
            // RFC 4035 §2.3: of a zone cut, only what belongs to the parent.
            if !is_cut || matches!(rrset.rtype, Rtype::NS | Rtype::DS) {
                types.add(rrset.rtype);
            }
        }
        types
    }

    pub(crate) fn add(&mut self, rtype: Rtype) {
        let known = self.list.get(..self.count).unwrap_or(&[]);
        let Err(place) = known.binary_search(&rtype.0) else { return };
        match self.list.get_mut(place..=self.count) {
            Some(rest) => {
                rest.rotate_right(1);
                if let Some(first) = rest.first_mut() {
                    *first = rtype.0;
                }
                self.count += 1;
            }
            None => self.is_cut = true,
        }
    }

    /// Writes the bitmap (RFC 4034 §4.1.2); returns its octets.
    fn write(&self, out: &mut [u8]) -> Option<usize> {
        if self.is_cut {
            return None;
        }
        let mut len = 0;
        let known = self.list.get(..self.count)?;
        for window in known.chunk_by(|a, b| a >> 8 == b >> 8) {
            let mut octets = [0_u8; WINDOW_OCTETS];
            let mut used = 0;
            for rtype in window {
                let low = usize::from(rtype & 0xff);
                *octets.get_mut(low / 8)? |= 0x80 >> (low % 8);
                used = low / 8 + 1;
            }
            let place = out.get_mut(len..len + 2 + used)?;
            let (head, bits) = place.split_first_chunk_mut::<2>()?;
            *head = [(window.first()? >> 8) as u8, used as u8];
            bits.copy_from_slice(octets.get(..used)?);
            len += 2 + used;
        }
        Some(len)
    }
}

/// An NSEC record that stands ready.
pub(crate) struct Proof {
    octets: [u8; PROOF_OCTETS_MAX],
    len: usize,
}

impl Proof {
    /// Makes the NSEC of a name: nothing comes between it and the next name there could be, and it
    /// has these types.
    pub(crate) fn new(name: Name<'_>, apex: Name<'_>, ttl: u32, types: &Types) -> Option<Self> {
        let name = name.to_folded();
        let next = successor(name.as_name(), apex);
        let mut rdata = [0; PROOF_OCTETS_MAX - RECORD_HEAD];
        let (start, rest) = rdata.split_at_mut_checked(next.as_name().len())?;
        start.copy_from_slice(next.as_name().as_bytes());
        let len = start.len() + types.write(rest)?;
        let mut octets = [0; PROOF_OCTETS_MAX];
        let len = put_record(&mut octets, Rtype::NSEC, ttl, rdata.get(..len)?)?;
        Some(Self { octets, len })
    }

    pub(crate) fn records(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or(&[])
    }
}

/// Returns the name that comes next in canonical order (RFC 4471 §3.1.1): mostly `\000.` in front
/// of `name`, which is in lower case. After the last one comes the apex.
fn successor(name: Name<'_>, apex: Name<'_>) -> NameBuf {
    if let Ok(next) = NameBuf::below(b"\x01\x00", name) {
        return next;
    }
    let mut rest = name;
    // Ends: each turn takes a label off.
    while rest.len() > apex.len() {
        let (Some(label), Some(parent)) = (rest.labels().next(), rest.parent()) else { break };
        if let Some(next) = with_label(label, 0, parent) {
            return next;
        }
        let last = label.iter().rposition(|&octet| octet != 0xff);
        if let Some((&octet, before)) = last.and_then(|last| label.get(..=last)?.split_last()) {
            // Capital letters count as small ones, which come later.
            let next = if octet == b'@' { b'[' } else { octet + 1 };
            if let Some(next) = with_label(before, next, parent) {
                return next;
            }
        }
        rest = parent;
    }
    apex.to_buf()
}

/// Returns the name of a label and another octet in front of `parent`.
fn with_label(label: &[u8], octet: u8, parent: Name<'_>) -> Option<NameBuf> {
    let mut labels = [octet; LABEL_OCTETS_MAX + 1];
    let len = label.len() + 1;
    let (first, rest) = labels.get_mut(..=len)?.split_first_mut()?;
    *first = len as u8;
    rest.get_mut(..label.len())?.copy_from_slice(label);
    NameBuf::below(labels.get(..=len)?, parent).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::Key as CanonicalKey;

    fn name(labels: &[&[u8]]) -> NameBuf {
        let mut name = NameBuf::root();
        for label in labels {
            name.push_label(label).expect("a name that is not too long");
        }
        name
    }

    #[test]
    fn the_next_name_is_directly_after_and_never_too_long() {
        let apex = name(&[b"org"]);
        let apex = apex.as_name();
        let check = |labels: &[&[u8]], expect: &[&[u8]]| {
            let (name, expect) = (name(labels), name(expect));
            let next = successor(name.as_name(), apex);
            assert_eq!(next.as_name(), expect.as_name(), "after {name}");
            if next.as_name() != apex {
                let key = |name: &NameBuf| CanonicalKey::new(name.as_name().as_bytes()).as_bytes().to_vec();
                assert!(key(&name) < key(&next), "{name} before {next}");
            }
        };
        check(&[b"www", b"org"], &[b"\0", b"www", b"org"]);
        check(&[b"org"], &[b"\0", b"org"]);
        let (long, full) = ([b'a'; 63], [0xff; 63]);
        // 253 octets: two more fit.
        let four: [&[u8]; 5] = [&[b'a'; 56], &long, &long, &long, b"org"];
        assert_eq!(name(&four).as_name().len(), 254);
        check(&four, &[&[&[b'a'; 56][..], b"\0"].concat(), &long, &long, &long, b"org"]);
        // 255 octets: nothing fits in front, nor behind the first label.
        let after = [&[b'a'; 56][..], b"b"].concat();
        check(&[&[b'a'; 57], &long, &long, &long, b"org"], &[&after, &long, &long, &long, b"org"]);
        check(
            &[&[0xff; 57], &long, &long, &long, b"org"],
            &[&[&[b'a'; 62][..], b"b"].concat(), &long, &long, b"org"],
        );
        check(
            &[&[&[b'a'; 56][..], b"@"].concat(), &long, &long, &long, b"org"],
            &[&[&[b'a'; 56][..], b"["].concat(), &long, &long, &long, b"org"],
        );
        check(&[&[0xff; 57], &full, &full, &full, b"org"], &[b"org"]);
    }

    #[test]
    fn the_bitmap_is_that_of_rfc_4034() {
        let mut types = Types::new();
        for rtype in [1234, 15, 1, 15] {
            types.add(Rtype(rtype));
        }
        let mut out = [0; 64];
        let len = types.write(&mut out).expect("room");
        let mut expect = Vec::new();
        dnssec::write_bitmap([1, 15, 46, 47, 1234].map(Rtype), &mut expect);
        assert_eq!(out.get(..len), Some(&expect[..]));
        for rtype in 2000..2400 {
            types.add(Rtype(rtype));
        }
        assert_eq!(types.write(&mut [0; 1024]), None, "a type that is not listed would be denied");
    }

    #[test]
    fn an_allowance_holds_for_a_second_and_keeps_a_part_for_what_exists() {
        let pool = Pool::new(1 << 20, 8, HashKey::new([1, 2]));
        let spent = |share, now| (0..20).filter(|_| pool.spend(1, share, now)).count();
        assert_eq!((spent(Share::Part, 7), spent(Share::Whole, 7), spent(Share::Whole, 7)), (6, 2, 0));
        assert_eq!(spent(Share::Whole, 8), 8);
        pool.set_rate(0);
        assert_eq!(spent(Share::Whole, 9), 0);
    }
}
