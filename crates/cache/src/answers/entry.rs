//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! How an answer lies in a ring's words.
//!
//! ```text
//! 0  hash
//! 1  identity: qtype:16 qclass:16 view:16 bits:8 name length:8
//! 2  stored at:32 lifetime:32
//! 3  stale window:32 rcode:12 extended:1 security:3 flags:16
//! 4  words:16 body octets:16 answers:8 authorities:8 additionals:8 TTLs:8
//!    if scoped:   address:64 address:64 family:8 prefix:8
//!    if extended: answers:16 authorities:16 additionals:16 TTLs:16 | EDE:16 has EDE:1
//!    if stamped:  stamp:64, zero at first
//!    name, to an even octet; offsets of the TTLs, two octets each; to a whole word
//!    body, to a whole word
//! ```

use super::key::{Key, KeyBits, SCOPED, Scope};
use super::security::Security;
use crate::store::{AtomicU64, Head, Ordering, Word};
use wire::{Class, EdeCode, Flags, Rcode, Rtype};

/// Words before the optional ones.
const HEAD_WORDS: usize = 5;
/// The word that has the stale window.
const CODES_AT: usize = 3;
/// In the word with the flags: there is room for a stamp.
const STAMPED: u64 = (Entry::STAMPED.0 as u64) << 48;
const SCOPE_WORDS: usize = 3;
const EXTENSION_WORDS: usize = 2;
const EXTENDED: u64 = 1 << 44;
const SECURITY_AT: u32 = 45;
const HAS_EDE: u64 = 1 << 16;
const _: () = assert!(SECURITY_AT + Security::BITS == 48, "the flags come next");

/// An answer to remember.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The reply's octets after the question, without OPT; pointers in it count from the start of
    /// the message.
    pub body: &'a [u8],
    /// Where in the body the TTL fields are.
    pub ttl_offsets: &'a [u16],
    /// The whole response code.
    pub rcode: Rcode,
    /// The flags as they came, [`Entry::SAME_FOR_DO`], and [`Entry::STAMPED`].
    pub flags: Flags,
    /// Whether it is known to be genuine.
    pub security: Security,
    /// Records in the answer section.
    pub answers: u16,
    /// Records in the authority section.
    pub authorities: u16,
    /// Records in the additional section.
    pub additionals: u16,
    /// Seconds for which the answer is fresh; not more than the smallest TTL in it.
    pub ttl: u32,
    /// Seconds for which it is kept after that (RFC 8767).
    pub stale: u32,
    /// The Extended DNS Error to repeat with it.
    pub ede: Option<EdeCode>,
}

impl Entry<'_> {
    /// Who sets DO gets the same as who does not: it has no signatures and no proofs. No reply that
    /// is kept has an opcode, of which this is a bit.
    pub const SAME_FOR_DO: Flags = Flags(1 << 14);
    /// There is room for a stamp beside it: another bit of the opcode.
    pub const STAMPED: Flags = Flags(1 << 13);
}

/// What became of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The cache had no such entry.
    New,
    /// The cache had an entry for this key; it is gone.
    Replaced,
    /// The cache is as before.
    Refused(Refusal),
}

/// Why an answer is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It would never be fresh nor stale.
    Lifetime,
    /// Larger than a message, or than half of a shard's main ring (possible only below 256 KiB per
    /// cache).
    Size,
    /// An offset of a TTL points outside the body.
    Offset,
    /// A response code above 4095, which no message can carry.
    Rcode,
    /// The cache has a newer answer (only while loading a dump).
    Older,
}

impl Refusal {
    /// Returns the reason in words.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Lifetime => "its lifetime is zero",
            Self::Size => "it is too large for this cache",
            Self::Offset => "a TTL lies outside the body",
            Self::Older => "the cache has a newer answer",
            Self::Rcode => "its response code has more than twelve bits",
        }
    }
}

/// What the head of an entry says, and where its parts are.
///
/// Read from words that may be overwritten meanwhile: nothing in it can be trusted before the
/// ring's tail was looked at, and every use of a length is checked.
#[derive(Clone, Copy)]
pub(crate) struct Meta {
    pub(crate) hash: u64,
    pub(crate) identity: u64,
    pub(crate) stamp: u64,
    pub(crate) stored_at: u32,
    pub(crate) ttl: u32,
    pub(crate) stale: u32,
    pub(crate) rcode: Rcode,
    pub(crate) flags: Flags,
    pub(crate) security: Security,
    pub(crate) answers: u16,
    pub(crate) authorities: u16,
    pub(crate) additionals: u16,
    pub(crate) ede: Option<EdeCode>,
    pub(crate) words: usize,
    pub(crate) body_octets: usize,
    pub(crate) ttls: usize,
    /// The word where the name begins.
    pub(crate) name_at: usize,
    /// The word where the body begins.
    pub(crate) body_at: usize,
}

impl Head for Meta {
    #[inline(always)]
    fn read<W: Word>(words: &[W]) -> Option<Self> {
        let (head, rest) = words.split_first_chunk::<HEAD_WORDS>()?;
        let [hash, identity, times, codes, sizes] = head.each_ref().map(Word::read);
        let mut meta = Self {
            hash,
            identity,
            stamp: 0,
            stored_at: times as u32,
            ttl: (times >> 32) as u32,
            stale: codes as u32,
            rcode: Rcode((codes >> 32) as u16 & 0xfff),
            flags: Flags((codes >> 48) as u16),
            security: Security::from_bits((codes >> SECURITY_AT) as u16),
            answers: u16::from((sizes >> 32) as u8),
            authorities: u16::from((sizes >> 40) as u8),
            additionals: u16::from((sizes >> 48) as u8),
            ede: None,
            words: usize::from(sizes as u16),
            body_octets: usize::from((sizes >> 16) as u16),
            ttls: usize::from((sizes >> 56) as u8),
            name_at: HEAD_WORDS,
            body_at: 0,
        };
        if meta.is_scoped() {
            meta.name_at += SCOPE_WORDS;
        }
        // Both are rare: one test for the two.
        if codes & (EXTENDED | STAMPED) != 0 {
            if codes & EXTENDED != 0 {
                meta.extend(rest)?;
            }
            if codes & STAMPED != 0 {
                meta.stamp = rest.get(meta.name_at - HEAD_WORDS)?.read();
                meta.name_at += 1;
            }
        }
        meta.body_at = meta.name_at + (meta.ttls_at() + 2 * meta.ttls).div_ceil(8);
        Some(meta)
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn words(&self) -> usize {
        self.words
    }

    fn stored_at(&self) -> u32 {
        self.stored_at
    }

    fn is_expired(&self, now: u32) -> bool {
        let age = now.saturating_sub(self.stored_at);
        age >= self.ttl && age - self.ttl >= self.stale
    }
}

impl Meta {
    /// Returns for how many seconds the answer has been stale; `None` while it is fresh, and once
    /// it is too old.
    pub(crate) fn stale_since(&self, now: u32) -> Option<u32> {
        let since = now.saturating_sub(self.stored_at).checked_sub(self.ttl)?;
        (since < self.stale).then_some(since)
    }

    /// Writes a stale window to the words of a stale answer that ends `stale` seconds from now on.
    pub(crate) fn renew_stale(words: &[AtomicU64], now: u32, stale: u32) {
        let since = Self::read(words).and_then(|meta| meta.stale_since(now));
        let (Some(since), Some(codes)) = (since, words.get(CODES_AT)) else { return };
        let rest = codes.load(Ordering::Relaxed) & !u64::from(u32::MAX);
        codes.store(rest | u64::from(since.saturating_add(stale)), Ordering::Relaxed);
    }

    /// Writes a stamp to the words of an answer.
    pub(crate) fn stamp(words: &[AtomicU64], stamp: u64) {
        if let Some(meta) = Self::read(words)
            && meta.flags.has(Entry::STAMPED)
            && let Some(word) = words.get(meta.name_at - 1)
        {
            word.store(stamp, Ordering::Relaxed);
        }
    }

    /// Returns whether words are those of the entry for `key`.
    pub(super) fn is_of<W: Word>(words: &[W], key: &Key<'_>) -> bool {
        Self::read(words).is_some_and(|meta| meta.is_for(words, key))
    }

    #[cold]
    fn extend<W: Word>(&mut self, rest: &[W]) -> Option<()> {
        let [counts, ede] = rest.get(self.name_at - HEAD_WORDS..)?.first_chunk::<EXTENSION_WORDS>()?;
        let (counts, ede) = (counts.read(), ede.read());
        self.answers = counts as u16;
        self.authorities = (counts >> 16) as u16;
        self.additionals = (counts >> 32) as u16;
        self.ttls = usize::from((counts >> 48) as u16);
        self.ede = (ede & HAS_EDE != 0).then_some(EdeCode(ede as u16));
        self.name_at += EXTENSION_WORDS;
        Some(())
    }

    pub(crate) const fn is_scoped(&self) -> bool {
        self.identity >> 48 & SCOPED as u64 != 0
    }

    pub(crate) const fn qtype(&self) -> Rtype {
        Rtype(self.identity as u16)
    }

    pub(crate) const fn qclass(&self) -> Class {
        Class((self.identity >> 16) as u16)
    }

    pub(crate) const fn view(&self) -> u16 {
        (self.identity >> 32) as u16
    }

    pub(crate) const fn bits(&self) -> KeyBits {
        KeyBits((self.identity >> 48) as u8 & !SCOPED)
    }

    pub(crate) const fn name_octets(&self) -> usize {
        (self.identity >> 56) as usize
    }

    /// Octets from the start of the name to the first TTL offset.
    const fn ttls_at(&self) -> usize {
        self.name_octets().next_multiple_of(2)
    }

    /// Reads the scope of a scoped entry.
    pub(crate) fn scope<W: Word>(&self, words: &[W]) -> Option<Scope> {
        if !self.is_scoped() {
            return None;
        }
        let scope = words.get(HEAD_WORDS..)?.first_chunk::<SCOPE_WORDS>()?;
        Some(Scope::from_words(scope.each_ref().map(Word::read)))
    }

    /// Returns whether the entry is the one for `key`.
    pub(crate) fn is_for<W: Word>(&self, words: &[W], key: &Key<'_>) -> bool {
        self.hash == key.hash()
            && self.identity == key.identity()
            && (!self.is_scoped() || self.scope(words) == key.scope())
            && is_name(words.get(self.name_at..).unwrap_or(&[]), key.name().as_bytes())
    }

    /// Walks the offsets of the TTLs.
    pub(crate) fn ttl_offsets<'w, W: Word>(&self, words: &'w [W]) -> impl Iterator<Item = u16> + use<'w, W> {
        let words = words.get(self.name_at..self.body_at).unwrap_or(&[]);
        let first = self.ttls_at();
        (0..self.ttls).map_while(move |i| {
            let octet = first + 2 * i;
            words.get(octet / 8).map(|word| (word.read() >> (octet % 8 * 8)) as u16)
        })
    }

    /// Copies the body to the front of `out`; `None` if it does not fit.
    ///
    /// Whole words are written while there is room, so that up to seven octets after the body
    /// become zero.
    pub(crate) fn copy_body<W: Word>(&self, words: &[W], out: &mut [u8]) -> Option<()> {
        let body = words.get(self.body_at..self.body_at + self.body_octets.div_ceil(8))?;
        let whole = self.body_octets.next_multiple_of(8);
        if let Some(out) = out.get_mut(..whole) {
            for (to, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(body) {
                *to = word.read().to_le_bytes();
            }
            return Some(());
        }
        let (chunks, rest) = out.get_mut(..self.body_octets)?.as_chunks_mut::<8>();
        let mut body = body.iter();
        for (to, word) in chunks.iter_mut().zip(&mut body) {
            *to = word.read().to_le_bytes();
        }
        if let Some(word) = body.next() {
            for (to, from) in rest.iter_mut().zip(word.read().to_le_bytes()) {
                *to = from;
            }
        }
        Some(())
    }
}

/// Returns whether `words` begin with `name`.
fn is_name<W: Word>(words: &[W], name: &[u8]) -> bool {
    let (chunks, rest) = name.as_chunks::<8>();
    let mut words = words.iter();
    for chunk in chunks {
        match words.next() {
            Some(word) if word.read() == u64::from_le_bytes(*chunk) => {}
            _ => return false,
        }
    }
    if rest.is_empty() {
        return true;
    }
    let Some(word) = words.next() else { return false };
    let unused = 64 - 8 * rest.len() as u32;
    let last = match name.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last) >> unused,
        None => rest.iter().rev().fold(0, |last, &octet| last << 8 | u64::from(octet)),
    };
    word.read() << unused == last << unused
}

/// An entry whose parts fit the layout, ready to be written.
pub(crate) struct Packed<'e> {
    entry: &'e Entry<'e>,
    words: u16,
    is_extended: bool,
}

impl<'e> Packed<'e> {
    pub(crate) fn new(key: &Key<'_>, entry: &'e Entry<'e>) -> Result<Self, Refusal> {
        if entry.ttl == 0 && entry.stale == 0 {
            return Err(Refusal::Lifetime);
        }
        if entry.rcode.0 > 0xfff {
            return Err(Refusal::Rcode);
        }
        if entry.body.len() > usize::from(u16::MAX) {
            return Err(Refusal::Size);
        }
        if entry.ttl_offsets.iter().any(|&at| usize::from(at) + 4 > entry.body.len()) {
            return Err(Refusal::Offset);
        }
        let is_small = |count: u16| count <= u16::from(u8::MAX);
        let is_extended = entry.ede.is_some()
            || entry.ttl_offsets.len() > usize::from(u8::MAX)
            || ![entry.answers, entry.authorities, entry.additionals].into_iter().all(is_small);
        // More TTLs than that cannot be without overlapping.
        if entry.ttl_offsets.len() > usize::from(u16::MAX) / 4 {
            return Err(Refusal::Offset);
        }
        let words = HEAD_WORDS
            + if key.scope().is_some() { SCOPE_WORDS } else { 0 }
            + if is_extended { EXTENSION_WORDS } else { 0 }
            + usize::from(entry.flags.has(Entry::STAMPED))
            + (key.name().len().next_multiple_of(2) + 2 * entry.ttl_offsets.len()).div_ceil(8)
            + entry.body.len().div_ceil(8);
        let words = u16::try_from(words).map_err(|_| Refusal::Size)?;
        Ok(Self { entry, words, is_extended })
    }

    /// Words the entry takes.
    pub(crate) const fn words(&self) -> u64 {
        self.words as u64
    }

    /// Writes the entry to words that no reader trusts.
    pub(crate) fn write(&self, key: &Key<'_>, stored_at: u32, words: &[AtomicU64]) {
        let entry = self.entry;
        let mut words = words.iter();
        let mut put = |word: u64| {
            if let Some(to) = words.next() {
                to.store(word, Ordering::Relaxed);
            }
        };
        put(key.hash());
        put(key.identity());
        put(u64::from(stored_at) | u64::from(entry.ttl) << 32);
        put(u64::from(entry.stale)
            | u64::from(entry.rcode.0) << 32
            | if self.is_extended { EXTENDED } else { 0 }
            | u64::from(entry.security.to_bits()) << SECURITY_AT
            | u64::from(entry.flags.0) << 48);
        let counts = [entry.answers, entry.authorities, entry.additionals];
        let [answers, authorities, additionals] = counts.map(u64::from);
        let ttls = entry.ttl_offsets.len() as u64;
        let sizes = u64::from(self.words) | (entry.body.len() as u64) << 16;
        if self.is_extended {
            put(sizes);
        } else {
            put(sizes | answers << 32 | authorities << 40 | additionals << 48 | ttls << 56);
        }
        if let Some(scope) = key.scope() {
            scope.to_words().into_iter().for_each(&mut put);
        }
        if self.is_extended {
            put(answers | authorities << 16 | additionals << 32 | ttls << 48);
            put(entry.ede.map_or(0, |ede| u64::from(ede.0) | HAS_EDE));
        }
        if entry.flags.has(Entry::STAMPED) {
            put(0);
        }
        let (chunks, rest) = key.name().as_bytes().as_chunks::<8>();
        chunks.iter().for_each(|chunk| put(u64::from_le_bytes(*chunk)));
        // The rest of the name and the offsets share words.
        let mut word = rest.iter().rev().fold(0, |word, &octet| word << 8 | u64::from(octet));
        let mut filled = rest.len().next_multiple_of(2);
        for &offset in entry.ttl_offsets {
            if filled == 8 {
                put(word);
                (word, filled) = (0, 0);
            }
            word |= u64::from(offset) << (8 * filled);
            filled += 2;
        }
        if filled > 0 {
            put(word);
        }
        let (chunks, rest) = entry.body.as_chunks::<8>();
        chunks.iter().for_each(|chunk| put(u64::from_le_bytes(*chunk)));
        if !rest.is_empty() {
            put(rest.iter().rev().fold(0, |word, &octet| word << 8 | u64::from(octet)));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use wire::{HashKey, Name, NameBuf};

    fn name_of(octets: usize) -> NameBuf {
        let mut name = NameBuf::root();
        while name.as_name().len() < octets {
            let label = (octets - name.as_name().len() - 1).min(60);
            // A label of nothing cannot be: leave at least two octets for the last one.
            let label = if octets - name.as_name().len() - 1 - label == 1 { label - 1 } else { label };
            name.push_label(&vec![b'a' + (octets % 26) as u8; label]).expect("short enough");
        }
        assert_eq!(name.as_name().len(), octets);
        name
    }

    fn check(name: Name<'_>, entry: &Entry<'_>, scope: Option<Scope>) {
        let hash_key = HashKey::new([1, 2]);
        let folded = name.to_folded();
        let mut key = Key::new(&hash_key, &folded, Rtype::AAAA, Class::IN, KeyBits::DO, 513);
        if let Some(scope) = scope {
            key = key.with_scope(&hash_key, scope);
        }
        let packed = Packed::new(&key, entry).expect("packs");
        let words: Vec<AtomicU64> = (0..packed.words()).map(|_| AtomicU64::new(0)).collect();
        packed.write(&key, 77, &words);
        let meta = Meta::read(&words).expect("long enough");
        assert!(meta.is_for(&words, &key));
        assert_eq!(meta.words, words.len());
        assert_eq!(meta.scope(&words), scope);
        assert_eq!((meta.qtype(), meta.qclass(), meta.view()), (Rtype::AAAA, Class::IN, 513));
        assert_eq!((meta.bits(), meta.name_octets()), (KeyBits::DO, name.len()));
        assert_eq!((meta.stored_at, meta.ttl, meta.stale), (77, entry.ttl, entry.stale));
        assert_eq!((meta.rcode, meta.flags, meta.ede), (entry.rcode, entry.flags, entry.ede));
        assert_eq!(
            (meta.answers, meta.authorities, meta.additionals),
            (entry.answers, entry.authorities, entry.additionals)
        );
        assert!(meta.ttl_offsets(&words).eq(entry.ttl_offsets.iter().copied()));
        for room in [entry.body.len(), entry.body.len() + 3, entry.body.len() + 8] {
            let mut out = vec![0xee; room];
            meta.copy_body(&words, &mut out).expect("fits");
            assert_eq!(&out[..entry.body.len()], entry.body);
        }
        if let Some(less) = entry.body.len().checked_sub(1) {
            assert!(meta.copy_body(&words, &mut vec![0; less]).is_none());
        }
    }

    const EMPTY: Entry<'static> = Entry {
        body: &[],
        ttl_offsets: &[],
        rcode: Rcode::NOERROR,
        flags: Flags(0),
        security: Security::Unchecked,
        answers: 0,
        authorities: 0,
        additionals: 0,
        ttl: 60,
        stale: 0,
        ede: None,
    };

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        let body: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let scope = Scope { address: *b"abcdefgh12345678", family: 2, prefix: 48 };
        let names = [25, 1, 3, 7, 8, 9, 12, 16, 26, 27, 64, 254, 255];
        // Miri is slow, and there is nothing unsafe here.
        for octets in names.into_iter().take(if cfg!(miri) { 1 } else { names.len() }) {
            let name = name_of(octets);
            for body_octets in [4, 15, 16, 17, 1000] {
                for ttls in [0, 1, 2, 3, 4, 5, 9] {
                    let body = &body[..body_octets];
                    let ttl_offsets: Vec<u16> = (0..ttls).map(|i| i % (body_octets as u16 - 3)).collect();
                    let entry = Entry { body, ttl_offsets: &ttl_offsets, answers: ttls, ..EMPTY };
                    check(name.as_name(), &entry, None);
                    check(name.as_name(), &Entry { ede: Some(EdeCode::OTHER), ..entry }, Some(scope));
                    check(name.as_name(), &Entry { rcode: Rcode(0xfff), stale: 7, ..entry }, Some(scope));
                }
            }
        }
        check(Name::ROOT, &EMPTY, None);
        check(Name::ROOT, &Entry { answers: 256, flags: Flags(0xffff), ..EMPTY }, None);
        check(Name::ROOT, &Entry { additionals: 65535, ede: Some(EdeCode(65535)), ..EMPTY }, None);
        let body = vec![9; 65535];
        let many: Vec<u16> = (0..300).collect();
        check(Name::ROOT, &Entry { body: &body, ttl_offsets: &many, ttl: u32::MAX, ..EMPTY }, None);
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_the_reason() {
        let check = |entry: Entry<'_>, refusal| {
            let folded = Name::ROOT.to_folded();
            let key = Key::new(&HashKey::new([1, 2]), &folded, Rtype::NS, Class::IN, KeyBits::NONE, 0);
            assert_eq!(Packed::new(&key, &entry).err(), refusal);
        };
        check(EMPTY, None);
        check(Entry { ttl: 0, ..EMPTY }, Some(Refusal::Lifetime));
        check(Entry { ttl: 0, stale: 1, ..EMPTY }, None);
        check(Entry { rcode: Rcode(4096), ..EMPTY }, Some(Refusal::Rcode));
        check(Entry { body: &[0; 65536], ..EMPTY }, Some(Refusal::Size));
        check(Entry { body: &[0; 7], ttl_offsets: &[3], ..EMPTY }, None);
        check(Entry { body: &[0; 7], ttl_offsets: &[4], ..EMPTY }, Some(Refusal::Offset));
    }

    #[test]
    fn names_are_compared_whole() {
        let words = |bytes: &[u8]| -> Vec<u64> {
            bytes
                .chunks(8)
                .map(|chunk| chunk.iter().rev().fold(0, |word, &octet| word << 8 | u64::from(octet)))
                .collect()
        };
        for len in 1..40 {
            let name: Vec<u8> = (0..len).collect();
            assert!(is_name(&words(&name), &name));
            for i in 0..name.len() {
                let mut other = name.clone();
                other[i] ^= 0x80;
                assert!(!is_name(&words(&other), &name));
            }
            assert!(!is_name::<u64>(&[], &name));
        }
    }
}
