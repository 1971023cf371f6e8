//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! How long an upstream takes, and so when to ask again (in the manner of RFC 6298).

use timers::Span;

/// Before anything was measured.
pub const INITIAL: Span = Span::from_ms(300);
/// Retransmitting sooner would mostly send what jitter delays anyway.
pub const RETRY_MIN: Span = Span::from_ms(20);
/// A lost packet never costs more than this before the next one leaves.
pub const RETRY_MAX: Span = Span::from_ms(800);
/// Hedging sooner would duplicate queries that are as good as answered.
const HEDGE_MIN: Span = Span::from_ms(10);
/// Samples before the spread is trusted for hedging.
const HEDGE_SAMPLES_MIN: u8 = 8;
/// Doublings of the retry time that silence can cause.
const BACKOFF_MAX: u8 = 4;

/// Smoothed round-trip time and its spread. 24 octets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtt {
    smoothed_us: u32,
    variation_us: u32,
    samples: u8,
    /// Times in a row that nothing came back; each doubles the patience (RFC 6298 §5.5).
    backoff: u8,
}

impl Rtt {
    /// Takes one measurement. Every attempt has its own ID, so a sample is never ambiguous (Karn).
    pub fn sample(&mut self, took: Span) {
        let took = u32::try_from(took.0).unwrap_or(u32::MAX);
        if self.samples == 0 {
            self.smoothed_us = took;
            self.variation_us = took / 2;
        } else {
            let off = self.smoothed_us.abs_diff(took);
            // RFC 6298 §2.3: the spread first, against the old mean.
            self.variation_us = self.variation_us - self.variation_us / 4 + off / 4;
            self.smoothed_us = self.smoothed_us - self.smoothed_us / 8 + took / 8;
        }
        self.samples = self.samples.saturating_add(1);
        self.backoff = 0;
    }

    /// Notes that an attempt went unanswered.
    pub fn silence(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
    }

    /// Returns how long to wait before asking the same server again: longer, the longer it has been
    /// silent.
    pub fn retry_after(&self) -> Span {
        Span(self.fallback_after().0 << self.backoff).min(RETRY_MAX)
    }

    /// Returns how long to wait before asking another server, which need not suffer for the silence
    /// of this one.
    pub fn fallback_after(&self) -> Span {
        self.first_wait(INITIAL, RETRY_MAX)
    }

    /// Returns how long to wait for the first time: `unknown` if nothing was measured, and never
    /// more than `longest`.
    pub fn first_wait(&self, unknown: Span, longest: Span) -> Span {
        let base = if self.samples == 0 {
            unknown
        } else {
            Span(u64::from(self.smoothed_us) + 4 * u64::from(self.variation_us))
        };
        base.max(RETRY_MIN).min(longest)
    }

    /// Returns how often in a row nothing came back, up to a bound.
    pub const fn silences(&self) -> u8 {
        self.backoff
    }

    /// Returns when about nineteen of twenty answers have come; `None` before enough is known.
    ///
    /// The mean deviation is about 0.8 of the standard deviation, so two of it are near the 95th
    /// percentile.
    pub fn hedge_after(&self) -> Option<Span> {
        let after = Span(u64::from(self.smoothed_us) + 2 * u64::from(self.variation_us));
        (self.samples >= HEDGE_SAMPLES_MIN).then(|| after.max(HEDGE_MIN))
    }

    /// Returns what to compare upstreams by, lower is better; unmeasured ones come first, to be
    /// measured.
    pub fn score(&self) -> u64 {
        u64::from(self.smoothed_us) << self.backoff
    }

    /// Returns the smoothed round-trip time, if there is one.
    pub fn smoothed(&self) -> Option<Span> {
        (self.samples > 0).then_some(Span(u64::from(self.smoothed_us)))
    }

    /// Returns the smoothed mean deviation.
    pub fn variation(&self) -> Span {
        Span(u64::from(self.variation_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(ms: u64) -> Rtt {
        let mut rtt = Rtt::default();
        for _ in 0..100 {
            rtt.sample(Span::from_ms(ms));
        }
        rtt
    }

    #[test]
    fn the_first_retry_is_well_under_a_second() {
        assert_eq!(Rtt::default().retry_after(), INITIAL);
        assert_eq!(settled(1).retry_after(), RETRY_MIN);
        assert_eq!(settled(5000).retry_after(), RETRY_MAX);
    }

    #[test]
    fn retry_time_follows_the_measurements() {
        let rtt = settled(100);
        assert!(rtt.retry_after() >= Span::from_ms(100) && rtt.retry_after() < Span::from_ms(120));
        let mut rtt = rtt;
        for _ in 0..100 {
            rtt.sample(Span::from_ms(30));
        }
        assert!(rtt.retry_after() < Span::from_ms(40), "{:?}", rtt.retry_after());
    }

    #[test]
    fn silence_doubles_patience_and_an_answer_ends_that() {
        let mut rtt = settled(50);
        let before = rtt.retry_after();
        rtt.silence();
        assert_eq!(rtt.retry_after().0, before.0 * 2);
        for _ in 0..20 {
            rtt.silence();
        }
        assert_eq!(rtt.retry_after(), RETRY_MAX);
        rtt.sample(Span::from_ms(50));
        assert!(rtt.retry_after() <= before);
    }

    #[test]
    fn a_hedge_waits_for_knowledge_and_comes_before_the_retry() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.hedge_after(), None);
        for ms in [40, 60, 50, 45, 55, 50, 70, 30] {
            rtt.sample(Span::from_ms(ms));
        }
        let hedge = rtt.hedge_after().expect("eight samples are enough");
        assert!(hedge > Span::from_ms(50) && hedge < rtt.retry_after(), "{hedge:?}");
    }

    #[test]
    fn absurd_measurements_do_not_overflow() {
        let mut rtt = Rtt::default();
        for _ in 0..1000 {
            rtt.sample(Span(u64::MAX));
            rtt.silence();
        }
        assert_eq!(rtt.retry_after(), RETRY_MAX);
    }
}
