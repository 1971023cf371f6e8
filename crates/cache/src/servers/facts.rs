//! What a look at an address tells.

use super::NowMs;
use super::line::{Lame, Words};

/// Milliseconds in which silence comes to weigh half as much.
pub const SILENCE_HALF_LIFE_MS: u64 = 5000;
/// Milliseconds after which a silent address may be asked again whatever it did before, if there is
/// no other.
pub const SILENCE_BARS_MS_MAX: u32 = 2000;
/// Milliseconds for which the first silence bars an address; each further one doubles it.
const SILENCE_BARS_MS_FIRST: u32 = 125;
/// Silences that weigh more than the ones before.
const SILENCES_WEIGHED_MAX: u8 = 6;
/// The weight of one silence that ended just now.
const SILENCE_WEIGHT: u32 = 256;

/// How long answers of a server take (RFC 6298 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Microseconds, smoothed; at least one.
    pub smoothed_us: u32,
    /// Microseconds by which they vary.
    pub variation_us: u32,
}

impl RoundTrip {
    /// Returns the microseconds after which an answer is overdue: RFC 6298 §2.3, without its
    /// minimum.
    pub const fn timeout_us(self) -> u32 {
        self.smoothed_us + 4 * self.variation_us
    }
}

/// What a server makes of EDNS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edns {
    /// Nobody asked, or too long ago.
    #[default]
    Unknown,
    /// It answers with EDNS.
    Works,
    /// It does, but replies of more octets do not arrive.
    UpTo {
        /// Octets that arrive.
        octets: u16,
    },
    /// It answers without EDNS only.
    None,
}

/// Whether a server repeats the letter case of the question (0x20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetterCase {
    /// Nobody looked.
    #[default]
    Unknown = 0,
    /// It does.
    Kept = 1,
    /// It does not.
    Changed = 2,
}

/// Whether a server answers over an encrypted transport (RFC 9539).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Nobody tried, or too long ago.
    #[default]
    Unknown = 0,
    /// It does.
    Works = 1,
    /// It does not.
    Refused = 2,
}

/// What is known of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// How long its answers take; `None` before the first.
    pub round_trip: Option<RoundTrip>,
    /// Questions in a row that it did not answer; 255 are that many or more.
    pub silences: u8,
    /// Milliseconds since the last of them, to 16.
    pub silent_since_ms: u64,
    /// What it makes of EDNS.
    pub edns: Edns,
    /// Whether it repeats letter case.
    pub case: LetterCase,
    /// Whether it answers over TLS.
    pub tls: Encryption,
    /// Whether it answers over QUIC.
    pub quic: Encryption,
    lame: [u16; 4],
}

impl Facts {
    /// Seconds for which a fact with an end is believed at most: about half a year.
    pub const SECONDS_MAX: u32 = (1 << 18) * 64;
    /// Seconds for which a server counts as lame at most: 18 hours.
    pub const LAME_SECONDS_MAX: u32 = (1 << 10) * 64;

    pub(super) fn new(words: &Words, now: NowMs) -> Self {
        let (silence, transports) = (words.silence, words.transports);
        Self {
            round_trip: words.round_trip(),
            silences: silence.count,
            silent_since_ms: silence.elapsed_ms(now),
            edns: if transports.knows_edns(now) { silence.edns() } else { Edns::Unknown },
            case: silence.case(),
            tls: transports.tls(now),
            quic: transports.quic(now),
            lame: Lame::hashes(words.lame, now),
        }
    }

    /// Returns whether the server is known not to serve the zone with this hash
    /// ([`wire::HashKey::hash_name`]). One zone in sixteen thousand is taken for another: lame
    /// servers are asked last, not never.
    pub fn is_lame(&self, zone_hash: u64) -> bool {
        Lame::has(self.lame, zone_hash)
    }

    /// Returns the microseconds that asking this address is expected to cost, to choose by: the
    /// round trip, and what its silence adds, which halves every [`SILENCE_HALF_LIFE_MS`].
    ///
    /// `unknown_us` stands for a round trip that was never seen.
    pub fn score_us(&self, unknown_us: u32) -> u32 {
        let (expected_us, timeout_us) = match self.round_trip {
            Some(round_trip) => (round_trip.smoothed_us, round_trip.timeout_us()),
            None => (unknown_us, unknown_us),
        };
        let penalty_us = u64::from(timeout_us) * u64::from(self.silence_weight()) / u64::from(SILENCE_WEIGHT);
        u32::try_from(u64::from(expected_us) + penalty_us).unwrap_or(u32::MAX)
    }

    /// Returns how much silence weighs, in 256ths of one that ended just now.
    fn silence_weight(&self) -> u32 {
        let weight = SILENCE_WEIGHT << self.silences.min(SILENCES_WEIGHED_MAX) >> 1;
        if self.silences == 0 {
            return 0;
        }
        let halvings = (self.silent_since_ms / SILENCE_HALF_LIFE_MS).min(31) as u32;
        let part = self.silent_since_ms % SILENCE_HALF_LIFE_MS;
        // Between two halvings it falls in a straight line.
        let weight = u64::from(weight >> halvings);
        (weight - weight * part / (2 * SILENCE_HALF_LIFE_MS)) as u32
    }

    /// Returns the milliseconds for which this address had better be left alone, even if there is
    /// no other: never more than [`SILENCE_BARS_MS_MAX`].
    pub fn barred_for_ms(&self) -> u32 {
        let Some(doublings) = u32::from(self.silences).checked_sub(1) else { return 0 };
        let bars = (SILENCE_BARS_MS_FIRST << doublings.min(8)).min(SILENCE_BARS_MS_MAX);
        bars.saturating_sub(u32::try_from(self.silent_since_ms).unwrap_or(u32::MAX))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn silent(silences: u8, silent_since_ms: u64) -> Facts {
        let words = Words::fresh([0; 2], 53);
        let round_trip = Some(RoundTrip { smoothed_us: 20_000, variation_us: 5_000 });
        Facts { round_trip, silences, silent_since_ms, ..Facts::new(&words, NowMs(0)) }
    }

    #[test]
    fn silence_weighs_half_as_much_after_its_half_life() {
        let check = |silences, since_ms, score_us| {
            assert_eq!(silent(silences, since_ms).score_us(100), score_us, "{silences} {since_ms}");
        };
        check(0, 0, 20_000);
        check(1, 0, 60_000);
        check(1, 5_000, 40_000);
        check(1, 2_500, 50_000);
        check(1, 10_000, 30_000);
        check(2, 0, 100_000);
        check(6, 0, 20_000 + 32 * 40_000);
        check(200, 0, 20_000 + 32 * 40_000);
        check(255, u64::from(u32::MAX), 20_000);
        assert_eq!(Facts { round_trip: None, ..silent(1, 0) }.score_us(150_000), 300_000);
        assert_eq!(Facts { round_trip: None, ..silent(255, 0) }.score_us(u32::MAX), u32::MAX);
    }

    #[test]
    fn the_only_address_is_never_barred_for_long() {
        assert_eq!(silent(0, 0).barred_for_ms(), 0);
        assert_eq!(silent(1, 0).barred_for_ms(), 125);
        assert_eq!(silent(2, 50).barred_for_ms(), 200);
        for silences in 0..=u8::MAX {
            assert!(silent(silences, 0).barred_for_ms() <= SILENCE_BARS_MS_MAX);
            assert_eq!(silent(silences, u64::from(SILENCE_BARS_MS_MAX)).barred_for_ms(), 0);
        }
    }
}
