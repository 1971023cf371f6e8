//! How what is known of one address lies in seven words.
//!
//! ```text
//! 0  address: the upper half; IPv4 as mapped (RFC 4291 §2.5.5.2)
//! 1  address: the lower half
//! 2  port:16 smoothed round trip:24 variation:24, in microseconds
//! 3  EDNS size:16 uses:2 EDNS:2 case:2 spare:2 silences:8 last silence:32, in units of 16 ms
//! 4  TLS:2 until:20 QUIC:2 until:20 EDNS until:20, in units of 64 s
//! 5  two zones: hash:16 until:16, in units of 64 s
//! 6  two more
//! ```
//!
//! Times count in a circle. An end in 20 bits comes around after two years and holds for at most
//! half a year, one in 16 bits after 48 days and for at most 18 hours: a fact that nobody asked for
//! in so long a time may hold once more.

use super::facts::{Edns, Encryption, Facts, LetterCase, RoundTrip};
use super::{FACT_WORDS, NowMs};
use std::net::{Ipv6Addr, SocketAddr};

/// Microseconds that a round trip or its variation may have: sixteen seconds.
const MICROS_MAX: u64 = (1 << 24) - 1;
const MICROS_BITS: u32 = 24;

/// Seconds in a unit of what has an end.
const UNIT_SECONDS: u64 = 64;
/// Milliseconds in a unit of the time of a silence.
const SILENCE_UNIT_MS: u64 = 16;

/// All that is known of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    address: [u64; 2],
    times: u64,
    pub(super) silence: Silence,
    pub(super) transports: Transports,
    pub(super) lame: [u64; 2],
}

impl Words {
    pub(super) const fn fresh(address: [u64; 2], port: u16) -> Self {
        let silence = Silence::NONE;
        let transports = Transports::UNKNOWN;
        Self { address, times: (port as u64) << (2 * MICROS_BITS), silence, transports, lame: [0; 2] }
    }

    pub(super) fn from_words(words: [u64; FACT_WORDS]) -> Self {
        let [high, low, times, silence, transports, first, second] = words;
        Self {
            address: [high, low],
            times,
            silence: Silence::from_word(silence),
            transports: Transports::from_word(transports),
            lame: [first, second],
        }
    }

    pub(super) fn to_words(self) -> [u64; FACT_WORDS] {
        let ([high, low], [first, second]) = (self.address, self.lame);
        [high, low, self.times, self.silence.to_word(), self.transports.to_word(), first, second]
    }

    pub(super) fn is_of(&self, address: [u64; 2], port: u16) -> bool {
        self.address == address && self.port() == port
    }

    const fn port(&self) -> u16 {
        (self.times >> (2 * MICROS_BITS)) as u16
    }

    pub(super) fn address(&self) -> SocketAddr {
        let [high, low] = self.address.map(u128::from);
        SocketAddr::new(Ipv6Addr::from_bits(high << 64 | low).to_canonical(), self.port())
    }

    pub(super) fn round_trip(&self) -> Option<RoundTrip> {
        let (smoothed_us, variation_us) = times_of(self.times);
        (smoothed_us > 0)
            .then_some(RoundTrip { smoothed_us: smoothed_us as u32, variation_us: variation_us as u32 })
    }
}

const fn times_of(word: u64) -> (u64, u64) {
    (word >> MICROS_BITS & MICROS_MAX, word & MICROS_MAX)
}

/// Returns the word with one round trip more (RFC 6298 §2.2 and §2.3).
pub(super) fn with_sample(word: u64, round_trip_us: u32) -> u64 {
    let sample = u64::from(round_trip_us).clamp(1, MICROS_MAX);
    let (smoothed, variation) = match times_of(word) {
        (0, _) => (sample, sample / 2),
        // Rounded up: zero is unknown.
        (smoothed, variation) => {
            ((7 * smoothed + sample).div_ceil(8), (3 * variation + smoothed.abs_diff(sample)) / 4)
        }
    };
    word >> (2 * MICROS_BITS) << (2 * MICROS_BITS)
        | smoothed.min(MICROS_MAX) << MICROS_BITS
        | variation.min(MICROS_MAX)
}

/// Silence, what messages the server takes, and how often its line was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    /// When, in units of 16 ms.
    last: u32,
    pub(super) count: u8,
    uses: u8,
    edns: u8,
    case: u8,
    edns_octets: u16,
}

impl Silence {
    const NONE: Self = Self { last: 0, count: 0, uses: 0, edns: 0, case: 0, edns_octets: 0 };
    const USES_MAX: u8 = 3;

    pub(super) const fn from_word(word: u64) -> Self {
        Self {
            last: word as u32,
            count: (word >> 32) as u8,
            case: (word >> 42) as u8 & 3,
            edns: (word >> 44) as u8 & 3,
            uses: (word >> 46) as u8 & 3,
            edns_octets: (word >> 48) as u16,
        }
    }

    pub(super) const fn to_word(self) -> u64 {
        self.last as u64
            | (self.count as u64) << 32
            | (self.case as u64) << 42
            | (self.edns as u64) << 44
            | (self.uses as u64) << 46
            | (self.edns_octets as u64) << 48
    }

    const fn unit(now: NowMs) -> u32 {
        (now.0 / SILENCE_UNIT_MS) as u32
    }

    pub(super) const fn used(self) -> Self {
        let uses = if self.uses < Self::USES_MAX { self.uses + 1 } else { self.uses };
        Self { uses, ..self }
    }

    pub(super) const fn less_used(self) -> Self {
        Self { uses: self.uses.saturating_sub(1), ..self }
    }

    pub(super) const fn is_used(self) -> bool {
        self.uses > 0
    }

    pub(super) const fn more(self, now: NowMs) -> Self {
        Self { last: Self::unit(now), count: self.count.saturating_add(1), ..self }
    }

    pub(super) const fn ended(self) -> Self {
        Self { count: 0, ..self }
    }

    /// Returns the milliseconds since the last silence; 0 if the clock of another worker is ahead.
    pub(super) const fn elapsed_ms(self, now: NowMs) -> u64 {
        let elapsed = Self::unit(now).wrapping_sub(self.last);
        if elapsed > u32::MAX / 2 { 0 } else { elapsed as u64 * SILENCE_UNIT_MS }
    }

    pub(super) const fn with_case(self, case: LetterCase) -> Self {
        Self { case: case as u8, ..self }
    }

    pub(super) const fn case(self) -> LetterCase {
        match self.case {
            1 => LetterCase::Kept,
            2 => LetterCase::Changed,
            _ => LetterCase::Unknown,
        }
    }

    pub(super) const fn with_edns(self, edns: Edns) -> Self {
        let (edns, edns_octets) = match edns {
            Edns::Unknown => (0, 0),
            Edns::Works => (1, 0),
            Edns::UpTo { octets } => (2, octets),
            Edns::None => (3, 0),
        };
        Self { edns, edns_octets, ..self }
    }

    pub(super) const fn edns(self) -> Edns {
        match self.edns {
            1 => Edns::Works,
            2 => Edns::UpTo { octets: self.edns_octets },
            3 => Edns::None,
            _ => Edns::Unknown,
        }
    }
}

/// What a server does over encrypted transports, and until when it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transports {
    tls: u8,
    tls_until: u32,
    quic: u8,
    quic_until: u32,
    edns_until: u32,
}

impl Transports {
    const UNKNOWN: Self = Self { tls: 0, tls_until: 0, quic: 0, quic_until: 0, edns_until: 0 };
    const UNTIL_BITS: u32 = 20;
    const UNTIL_MAX: u64 = (1 << Self::UNTIL_BITS) - 1;

    pub(super) const fn from_word(word: u64) -> Self {
        Self {
            tls: (word & 3) as u8,
            tls_until: (word >> 2 & Self::UNTIL_MAX) as u32,
            quic: (word >> 22 & 3) as u8,
            quic_until: (word >> 24 & Self::UNTIL_MAX) as u32,
            edns_until: (word >> 44) as u32,
        }
    }

    pub(super) const fn to_word(self) -> u64 {
        self.tls as u64
            | (self.tls_until as u64) << 2
            | (self.quic as u64) << 22
            | (self.quic_until as u64) << 24
            | (self.edns_until as u64) << 44
    }

    fn until(now: NowMs, seconds: u32) -> u32 {
        (end(now, seconds.min(Facts::SECONDS_MAX)) & Self::UNTIL_MAX) as u32
    }

    const fn holds(until: u32, now: NowMs) -> bool {
        let left = (until as u64).wrapping_sub(now.0 / 1000 / UNIT_SECONDS) & Self::UNTIL_MAX;
        left > 0 && left <= units(Facts::SECONDS_MAX) + 1
    }

    pub(super) fn with_edns_until(self, now: NowMs, seconds: u32) -> Self {
        Self { edns_until: Self::until(now, seconds), ..self }
    }

    pub(super) fn with_tls(self, tls: Encryption, now: NowMs, seconds: u32) -> Self {
        Self { tls: tls as u8, tls_until: Self::until(now, seconds), ..self }
    }

    pub(super) fn with_quic(self, quic: Encryption, now: NowMs, seconds: u32) -> Self {
        Self { quic: quic as u8, quic_until: Self::until(now, seconds), ..self }
    }

    pub(super) const fn knows_edns(self, now: NowMs) -> bool {
        Self::holds(self.edns_until, now)
    }

    pub(super) const fn tls(self, now: NowMs) -> Encryption {
        Self::state(self.tls, self.tls_until, now)
    }

    pub(super) const fn quic(self, now: NowMs) -> Encryption {
        Self::state(self.quic, self.quic_until, now)
    }

    const fn state(bits: u8, until: u32, now: NowMs) -> Encryption {
        match bits {
            1 if Self::holds(until, now) => Encryption::Works,
            2 if Self::holds(until, now) => Encryption::Refused,
            _ => Encryption::Unknown,
        }
    }
}

/// Units that so many seconds begin.
const fn units(seconds: u32) -> u64 {
    (seconds as u64).div_ceil(UNIT_SECONDS)
}

/// The first unit that begins at least so many seconds from now; none of them is no time at all.
fn end(now: NowMs, seconds: u32) -> u64 {
    if seconds == 0 {
        now.0 / 1000 / UNIT_SECONDS
    } else {
        (now.0 + u64::from(seconds) * 1000).div_ceil(UNIT_SECONDS * 1000)
    }
}

/// Zones that a server is known not to serve: two in a word, each `[hash:16][until:16]`.
pub(super) struct Lame;

impl Lame {
    pub(super) const PER_WORD: usize = 2;

    /// What is remembered of a zone's name; never zero.
    const fn hash(zone_hash: u64) -> u16 {
        let hash = (zone_hash >> 48) as u16;
        if hash == 0 { 1 } else { hash }
    }

    const fn mark(word: u64, at: usize) -> (u16, u16) {
        let mark = (word >> (32 * at as u32)) as u32;
        ((mark >> 16) as u16, mark as u16)
    }

    /// Units that a mark holds for; 0 once it has ended.
    const fn left((hash, until): (u16, u16), now: NowMs) -> u16 {
        let left = until.wrapping_sub((now.0 / 1000 / UNIT_SECONDS) as u16);
        if hash == 0 || left as u64 > units(Facts::LAME_SECONDS_MAX) + 1 { 0 } else { left }
    }

    /// Returns where the mark for a zone goes: in place of its own, else of the one that ends
    /// first.
    pub(super) fn place_for(words: [u64; 2], zone_hash: u64, now: NowMs) -> usize {
        let marks = words.map(|word| [Self::mark(word, 0), Self::mark(word, 1)]);
        let hash = Self::hash(zone_hash);
        let own = marks.as_flattened().iter().position(|mark| mark.0 == hash);
        own.unwrap_or_else(|| {
            let ends = marks.as_flattened().iter().map(|&mark| Self::left(mark, now)).enumerate();
            ends.min_by_key(|&(_, left)| left).map_or(0, |(at, _)| at)
        })
    }

    pub(super) fn with(word: u64, at: usize, zone_hash: u64, now: NowMs, seconds: u32) -> u64 {
        let until = end(now, seconds.min(Facts::LAME_SECONDS_MAX)) as u16;
        let mark = u64::from(Self::hash(zone_hash)) << 16 | u64::from(until);
        let shift = 32 * at as u32;
        word & !(u64::from(u32::MAX) << shift) | mark << shift
    }

    /// Returns the hashes of the zones whose marks hold; zero where there is none.
    pub(super) fn hashes(words: [u64; 2], now: NowMs) -> [u16; 4] {
        let marks = words.map(|word| [Self::mark(word, 0), Self::mark(word, 1)]);
        let mut hashes = [0; 4];
        for (hash, &mark) in hashes.iter_mut().zip(marks.as_flattened()) {
            *hash = if Self::left(mark, now) > 0 { mark.0 } else { 0 };
        }
        hashes
    }

    pub(super) fn has(hashes: [u16; 4], zone_hash: u64) -> bool {
        hashes.contains(&Self::hash(zone_hash))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_parts_apart() {
        let now = NowMs(1_000_000_000_000);
        let mut words = Words::fresh([1, 2], 53);
        words.times = with_sample(words.times, 20_000);
        words.silence = words.silence.more(now).used().with_case(LetterCase::Changed);
        words.silence = words.silence.with_edns(Edns::UpTo { octets: u16::MAX });
        words.transports = words
            .transports
            .with_tls(Encryption::Refused, now, 100)
            .with_quic(Encryption::Works, now, Facts::SECONDS_MAX)
            .with_edns_until(now, 1);
        words.lame = [u64::MAX, 7];
        let back = Words::from_words(words.to_words());
        assert_eq!(back, words);
        assert!(back.is_of([1, 2], 53) && !back.is_of([1, 2], 54) && !back.is_of([1, 3], 53));
        assert_eq!(back.silence.edns(), Edns::UpTo { octets: u16::MAX });
        assert_eq!(back.silence.case(), LetterCase::Changed);
        assert_eq!(back.transports.tls(now), Encryption::Refused);
        assert_eq!(back.transports.quic(now), Encryption::Works);
        assert!(back.transports.knows_edns(now));
    }

    #[test]
    fn round_trips_are_smoothed_as_rfc_6298_says() {
        let check = |samples: &[u32], smoothed_us, variation_us| {
            let times = samples.iter().fold(9 << 48, |word, &sample| with_sample(word, sample));
            assert_eq!(times >> 48, 9, "the port stays");
            let words = Words { times, ..Words::fresh([0; 2], 0) };
            assert_eq!(words.round_trip(), Some(RoundTrip { smoothed_us, variation_us }), "{samples:?}");
        };
        check(&[1000], 1000, 500);
        check(&[1000, 1000], 1000, 375);
        check(&[1000, 9000], 2000, (3 * 500 + 8000) / 4);
        check(&[0], 1, 0);
        check(&[u32::MAX; 3], (1 << 24) - 1, ((1 << 24) - 1) / 2 * 9 / 16);
        assert_eq!(Words::fresh([0; 2], 53).round_trip(), None);
    }

    #[test]
    fn what_has_an_end_ends() {
        for start in [0, 63_000, (1 << 26) * 1000, u64::from(u32::MAX) * 1000] {
            for seconds in [1, 64, 1000, Facts::LAME_SECONDS_MAX] {
                let transports = Transports::UNKNOWN.with_tls(Encryption::Works, NowMs(start), seconds);
                let word = Lame::with(0, 1, 77 << 48, NowMs(start), seconds);
                let check = |ms: u64, is_known| {
                    let now = NowMs(start + ms);
                    assert_eq!(transports.tls(now) == Encryption::Works, is_known, "{start} {seconds} {ms}");
                    assert_eq!(Lame::has(Lame::hashes([0, word], now), 77 << 48), is_known);
                };
                let seconds_ms = u64::from(seconds) * 1000;
                check(0, true);
                check(seconds_ms - 1, true);
                check(seconds_ms + 64_000, false);
                check(10 * seconds_ms + 64_000, false);
            }
        }
        assert_eq!(
            Transports::UNKNOWN.with_tls(Encryption::Works, NowMs(0), 0).tls(NowMs(0)),
            Encryption::Unknown
        );
    }

    #[test]
    fn the_mark_that_ends_first_gives_way() {
        let now = NowMs(1 << 40);
        let mut words = [0; 2];
        let mut put = |zone: u64, seconds| {
            let at = Lame::place_for(words, zone << 48, now);
            let word = &mut words[at / Lame::PER_WORD];
            *word = Lame::with(*word, at % Lame::PER_WORD, zone << 48, now, seconds);
            Lame::hashes(words, now)
        };
        for (zone, seconds) in [(1, 900), (2, 300), (3, 900), (4, 900)] {
            put(zone, seconds);
        }
        assert_eq!(put(1, 800), [1, 2, 3, 4]);
        assert_eq!(put(5, 600), [1, 5, 3, 4]);
    }
}
