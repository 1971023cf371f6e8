//! What is known of the addresses of authoritative servers, shared by all workers.
//!
//! A fixed table of lines of 64 octets, in sets of eight. The first cache line of a set has the
//! identities of its lines, so that an address that is not there costs one look at memory; then
//! come seven words for each of them. Everything is an atomic word: nobody waits for anybody.
//!
//! A line changes hands like this: whoever takes it puts [`TAKEN`] in place of its identity, writes
//! the seven words and then the new identity. A reader looks at the identity before and after, and
//! so never takes the facts of one server for those of another. What is told of a server at the
//! instant its line changes hands may be lost or, if the word is the same in both, be told of the
//! other one: all of it is a matter of speed, and has an end.
//!
//! # Limitations
//!
//! Two workers that meet an unknown address in the same instant may take two lines for it. The
//! first in the set is used from then on, and the other is the next to be given away.

mod cookies;
mod facts;
mod line;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use wire::{HashKey, Name};

use crate::store::{Pages, Stats, ask_for, zeroed};
use crate::sync::{AtomicU64, Ordering, fence};
use cookies::Cookies;
pub use cookies::ServerCookie;
pub use facts::{Edns, Encryption, Facts, LetterCase, RoundTrip, SILENCE_BARS_MS_MAX, SILENCE_HALF_LIFE_MS};
use line::{Lame, Silence, Transports, Words};

/// Lines of a set; their identities take one cache line.
const SET_LINES: usize = if cfg!(loom) { 2 } else { 8 };
/// Words of a line: its identity and what is known.
const LINE_WORDS: usize = 8;
const SET_WORDS: usize = SET_LINES * LINE_WORDS;
/// Words of a line without its identity.
const FACT_WORDS: usize = LINE_WORDS - 1;
/// Octets of a line.
const LINE_OCTETS: usize = LINE_WORDS * 8;
const _: () = assert!(LINE_OCTETS == 64, "the bound on lines is one on octets");

/// The identity of a line that nobody has.
const FREE: u64 = 0;
/// The identity of a line that is being written.
const TAKEN: u64 = 1;
/// Attempts to change a word that others are changing too. Then one sample is lost.
const EXCHANGES_MAX: usize = 8;
/// Rounds over a set until a line has no use left: one more than [`Silence`] counts.
const ROUNDS_MAX: usize = 4;

/// Milliseconds of the clock of [`crate::Now`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NowMs(pub u64);

/// How many servers are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Addresses, rounded up to a multiple of eight. Each takes 64 octets.
    pub lines: usize,
    /// Cookies. Each takes 48 octets; two servers may want the same place.
    pub cookies: usize,
}

impl Default for ServerLimits {
    /// Returns 8 MiB of lines, and a cookie for every fourth of them.
    fn default() -> Self {
        Self { lines: 131_072, cookies: 32_768 }
    }
}

/// Facts about servers' addresses, shared by all workers.
pub struct Servers {
    words: Box<[AtomicU64]>,
    /// Words before the first one that begins a cache line.
    skip: usize,
    sets: usize,
    cookies: Cookies,
    hash_key: HashKey,
    /// What every identity begins with.
    seed: u64,
    entries: AtomicU64,
    inserts: AtomicU64,
    evictions: AtomicU64,
}

/// An address, and what it is found by.
#[derive(Clone, Copy)]
struct Identity {
    hash: u64,
    words: [u64; 2],
    port: u16,
}

/// A line that was found.
struct Line<'s> {
    identity: &'s AtomicU64,
    hash: u64,
    words: &'s [AtomicU64; FACT_WORDS],
}

impl Line<'_> {
    /// Copies the words; `None` if the line changed hands meanwhile.
    fn read(&self) -> Option<[u64; FACT_WORDS]> {
        let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        self.is_still_its().then_some(words)
    }

    fn is_still_its(&self) -> bool {
        // Pairs with the fence in `Servers::take`: whoever read a word of the next owner sees that
        // the identity is no longer this one.
        fence(Ordering::Acquire);
        self.identity.load(Ordering::Relaxed) == self.hash
    }

    /// Changes one word.
    fn update(&self, word: &AtomicU64, change: impl Fn(u64) -> u64) {
        for _ in 0..EXCHANGES_MAX {
            let old = word.load(Ordering::Relaxed);
            let new = change(old);
            if new == old || !self.is_still_its() {
                return;
            }
            if word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    fn update_silence(&self, change: impl Fn(Silence) -> Silence) {
        let [_, _, _, word, ..] = self.words;
        self.update(word, |word| change(Silence::from_word(word)).to_word());
    }

    fn update_transports(&self, change: impl Fn(Transports) -> Transports) {
        let [_, _, _, _, word, ..] = self.words;
        self.update(word, |word| change(Transports::from_word(word)).to_word());
    }
}

impl Servers {
    /// Returns an empty table. Memory is taken from the system as it is filled; it is all that the
    /// table ever takes.
    pub fn new(limits: ServerLimits, hash_key: HashKey) -> Self {
        let sets = limits.lines.div_ceil(SET_LINES).max(1);
        // A cache line's worth of slack pays for the alignment.
        // Hashes touch it all over from the start, unless it is small.
        let words = zeroed(sets * SET_WORDS + LINE_WORDS, Pages::Huge);
        let skip = words.as_ptr().align_offset(LINE_OCTETS).min(LINE_WORDS);
        Self {
            words,
            skip,
            sets,
            cookies: Cookies::new(limits.cookies, hash_key),
            hash_key,
            seed: hash_key.hash_name(Name::ROOT),
            entries: AtomicU64::new(0),
            inserts: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// Returns the numbers of the moment. Octets in use are lines that are taken, and all room for
    /// cookies.
    pub fn stats(&self) -> Stats {
        let entries = self.entries.load(Ordering::Relaxed);
        let octets_base = size_of::<Self>() + LINE_OCTETS + self.cookies.octets();
        Stats {
            entries,
            octets: octets_base + entries as usize * LINE_OCTETS,
            octets_max: octets_base + self.sets * SET_LINES * LINE_OCTETS,
            inserts: self.inserts.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }

    /// Asks memory for what a look at an address and at its cookie read first, without waiting for
    /// it: what is asked for together comes together.
    pub fn prefetch(&self, address: SocketAddr) {
        let hash = self.identity(address).hash;
        ask_for(self.set_of(hash).0);
        self.cookies.prefetch(hash);
    }

    /// Returns what is known of an address; `None` if nothing is.
    pub fn look(&self, address: SocketAddr, now: NowMs) -> Option<Facts> {
        let identity = self.identity(address);
        let line = self.find(&identity)?;
        let facts = Facts::new(&Words::from_words(line.read()?), now);
        line.update_silence(Silence::used);
        Some(facts)
    }

    /// An answer came after `round_trip_us`: RFC 6298 §2, and the silence is over.
    pub fn record_round_trip(&self, address: SocketAddr, round_trip_us: u32) {
        let Some(line) = self.find_or_take(address) else { return };
        let [_, _, word, ..] = line.words;
        line.update(word, |word| line::with_sample(word, round_trip_us));
        line.update_silence(Silence::ended);
    }

    /// No answer came in time.
    ///
    /// While nobody answers, it is our own network that is silent: then the caller records nothing.
    pub fn record_silence(&self, address: SocketAddr, now: NowMs) {
        if let Some(line) = self.find_or_take(address) {
            line.update_silence(|silence| silence.more(now));
        }
    }

    /// What was learned of EDNS holds for `seconds`, at most [`Facts::SECONDS_MAX`].
    pub fn record_edns(&self, address: SocketAddr, edns: Edns, now: NowMs, seconds: u32) {
        if let Some(line) = self.find_or_take(address) {
            line.update_transports(|transports| transports.with_edns_until(now, seconds));
            line.update_silence(|silence| silence.with_edns(edns));
        }
    }

    /// Remembers whether replies repeat the letter case of the question.
    pub fn record_case(&self, address: SocketAddr, case: LetterCase) {
        if let Some(line) = self.find_or_take(address) {
            line.update_silence(|silence| silence.with_case(case));
        }
    }

    /// What was learned of DNS over TLS holds for `seconds`, at most [`Facts::SECONDS_MAX`].
    pub fn record_tls(&self, address: SocketAddr, tls: Encryption, now: NowMs, seconds: u32) {
        if let Some(line) = self.find_or_take(address) {
            line.update_transports(|transports| transports.with_tls(tls, now, seconds));
        }
    }

    /// What was learned of DNS over QUIC holds for `seconds`, at most [`Facts::SECONDS_MAX`].
    pub fn record_quic(&self, address: SocketAddr, quic: Encryption, now: NowMs, seconds: u32) {
        if let Some(line) = self.find_or_take(address) {
            line.update_transports(|transports| transports.with_quic(quic, now, seconds));
        }
    }

    /// For `seconds` (at most [`Facts::LAME_SECONDS_MAX`]) the server is known not to serve the
    /// zone with this hash ([`HashKey::hash_name`]). Of more than four such zones, those that end
    /// last are remembered.
    pub fn record_lame(&self, address: SocketAddr, zone_hash: u64, now: NowMs, seconds: u32) {
        let Some(line) = self.find_or_take(address) else { return };
        let [.., first, second] = line.words;
        let words = [first, second].map(|word| word.load(Ordering::Relaxed));
        let at = Lame::place_for(words, zone_hash, now);
        let word = if at < Lame::PER_WORD { first } else { second };
        line.update(word, |word| Lame::with(word, at % Lame::PER_WORD, zone_hash, now, seconds));
    }

    /// Remembers the server's part of a cookie (RFC 7873 §4: 8 to 32 octets; others are refused).
    /// Returns whether it did.
    pub fn record_cookie(&self, address: SocketAddr, cookie: &[u8]) -> bool {
        self.cookies.put(self.identity(address).hash, cookie)
    }

    /// Returns the server's part of its cookie, if it is known.
    pub fn cookie(&self, address: SocketAddr) -> Option<ServerCookie> {
        self.cookies.look(self.identity(address).hash)
    }

    /// Forgets the cookie of a server that would not have it.
    pub fn forget_cookie(&self, address: SocketAddr) {
        self.cookies.forget(self.identity(address).hash);
    }

    /// Forgets all about an address; returns whether anything was known.
    pub fn forget(&self, address: SocketAddr) -> bool {
        let identity = self.identity(address);
        self.cookies.forget(identity.hash);
        self.find(&identity).is_some_and(|line| self.leave(line.identity, line.hash))
    }

    /// Forgets all about all addresses, and returns how many those were.
    pub fn forget_all(&self) -> usize {
        self.cookies.forget_all();
        let identities = (0..self.sets).flat_map(|set| self.set(set).0);
        identities
            .filter(|identity| {
                let hash = identity.load(Ordering::Relaxed);
                hash > TAKEN && self.leave(identity, hash)
            })
            .count()
    }

    /// Shows what is known of each address, in no order. Blocks nobody.
    pub fn for_each(&self, now: NowMs, mut show: impl FnMut(SocketAddr, &Facts)) {
        for set in 0..self.sets {
            let (identities, facts) = self.set(set);
            for (identity, words) in identities.iter().zip(facts) {
                let hash = identity.load(Ordering::Acquire);
                if hash > TAKEN
                    && let Some(words) = (Line { identity, hash, words }).read()
                {
                    let words = Words::from_words(words);
                    show(words.address(), &Facts::new(&words, now));
                }
            }
        }
    }

    fn leave(&self, identity: &AtomicU64, hash: u64) -> bool {
        let is_ours = identity.compare_exchange(hash, FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_ours {
            self.entries.fetch_sub(1, Ordering::Relaxed);
        }
        is_ours
    }

    fn identity(&self, address: SocketAddr) -> Identity {
        let octets = match address.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let [high, low] = halves(octets);
        let port = address.port();
        // Each word goes through the secret: who chooses addresses must not choose their set.
        let hash =
            [high, low, u64::from(port)].iter().fold(self.seed, |hash, &word| self.hash_key.mix(hash, word));
        Identity { hash: hash.max(TAKEN + 1), words: [high, low], port }
    }

    /// Returns the identities of a set, and the words that belong to them.
    fn set(&self, set: usize) -> (&[AtomicU64], &[[AtomicU64; FACT_WORDS]]) {
        let at = self.skip + set * SET_WORDS;
        let words = self.words.get(at..at + SET_WORDS).unwrap_or(&[]);
        let (identities, facts) = words.split_at_checked(SET_LINES).unwrap_or((&[], &[]));
        (identities, facts.as_chunks().0)
    }

    fn set_of(&self, hash: u64) -> (&[AtomicU64], &[[AtomicU64; FACT_WORDS]]) {
        self.set(((u128::from(hash) * self.sets as u128) >> 64) as usize)
    }

    fn find(&self, wanted: &Identity) -> Option<Line<'_>> {
        let (identities, facts) = self.set_of(wanted.hash);
        identities.iter().zip(facts).find_map(|(identity, words)| {
            if identity.load(Ordering::Acquire) != wanted.hash {
                return None;
            }
            let line = Line { identity, hash: wanted.hash, words };
            let is_it = Words::from_words(line.read()?).is_of(wanted.words, wanted.port);
            is_it.then_some(line)
        })
    }

    /// Returns the line of an address, which takes one if it has none; `None` if all of its set are
    /// being taken at this instant.
    fn find_or_take(&self, address: SocketAddr) -> Option<Line<'_>> {
        let identity = self.identity(address);
        self.find(&identity).or_else(|| self.take(&identity))
    }

    /// Takes a free line of the set, or that of an address nobody asked for since the last time
    /// around (CLOCK).
    fn take(&self, wanted: &Identity) -> Option<Line<'_>> {
        let (identities, facts) = self.set_of(wanted.hash);
        let lines = || identities.iter().zip(facts);
        let free = lines().find(|(identity, _)| self.try_take(identity, FREE));
        let (identity, words) = free.or_else(|| {
            // Where the hand stands is as good as random.
            let hand = wanted.hash as usize % SET_LINES;
            lines().cycle().skip(hand).take(ROUNDS_MAX * SET_LINES).find(|(identity, words)| {
                let hash = identity.load(Ordering::Acquire);
                if hash <= TAKEN {
                    return false;
                }
                let line = Line { identity, hash, words };
                let [_, _, _, silence, ..] = words;
                if Silence::from_word(silence.load(Ordering::Relaxed)).is_used() {
                    line.update_silence(Silence::less_used);
                    return false;
                }
                self.try_take(identity, hash)
            })
        })?;
        // Nobody may see a word of ours under the old identity; pairs with `Line::is_still_its`.
        fence(Ordering::Release);
        let fresh = Words::fresh(wanted.words, wanted.port).to_words();
        for (word, fresh) in words.iter().zip(fresh) {
            word.store(fresh, Ordering::Relaxed);
        }
        identity.store(wanted.hash, Ordering::Release);
        Some(Line { identity, hash: wanted.hash, words })
    }

    fn try_take(&self, identity: &AtomicU64, hash: u64) -> bool {
        let is_ours = identity.load(Ordering::Relaxed) == hash
            && identity.compare_exchange(hash, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_ours {
            self.inserts.fetch_add(1, Ordering::Relaxed);
            let counter = if hash == FREE { &self.entries } else { &self.evictions };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        is_ours
    }
}

fn halves(address: Ipv6Addr) -> [u64; 2] {
    let bits = address.to_bits();
    [(bits >> 64) as u64, bits as u64]
}
