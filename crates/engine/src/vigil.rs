//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Whether a worker that has nothing to do stays awake for a moment, because more is probably on its way.
//!
//! A processor that has gone to sleep takes its time to wake: some 35 µs on a virtual machine, ten times as long as an
//! answer, and the kernel's part of it is CPU time, too. A client that asks again as soon as it has its answer pays
//! that for every query. So a worker that has just had a few queries goes on looking for [`SPAN_US`] if looking has
//! paid of late, and sleeps at once if it has not.
//!
//! Decides only; whoever runs the worker's sockets looks.

use std::cell::Cell;
use std::task::Waker;

/// How long a worker looks for more before it sleeps, in microseconds: somewhat longer than a client takes to wake, read
/// and ask again.
pub const SPAN_US: u64 = 50;

/// Queries of a batch from which on nobody stays awake for the next one: so many at once come from a crowd, which
/// shares the cost of waking and soon leaves no time to sleep.
const CROWD: usize = 5;

/// Looks in vain that end the looking, at most. A look that is paid makes up for one that was not: whoever finds the worker
/// awake has cost at most two spans.
const CREDIT_MAX: u8 = 8;

/// Batches from one trial to the next while looking does not pay. Clients that ask now and then cost less than a
/// microsecond per query.
const TRIAL_EVERY: u8 = 64;

/// One worker's vigil. Nobody looks unless a batch calls, so an idle server sleeps.
pub struct Vigil {
    is_kept: bool,
    /// Batches so far, and how many of them whoever looks has seen.
    batches: Cell<u32>,
    seen: Cell<u32>,
    /// Whether the last batch was small enough for another to be waited for.
    is_small: Cell<bool>,
    credit: Cell<u8>,
    /// Batches since the last trial.
    skipped: Cell<u8>,
    /// Whether somebody is to look.
    is_called: Cell<bool>,
    /// When looking began or was last paid; `None` when nobody looks.
    since_us: Cell<Option<u64>>,
    /// Whoever looks.
    waker: Cell<Option<Waker>>,
}

impl Vigil {
    /// Returns the vigil of a worker that stays awake when it pays.
    pub const fn kept() -> Self {
        Self::new(true)
    }

    /// Returns the vigil of a worker that always sleeps at once.
    pub const fn off() -> Self {
        Self::new(false)
    }

    const fn new(is_kept: bool) -> Self {
        Self {
            is_kept,
            batches: Cell::new(0),
            seen: Cell::new(0),
            is_small: Cell::new(false),
            credit: Cell::new(CREDIT_MAX),
            skipped: Cell::new(0),
            is_called: Cell::new(false),
            since_us: Cell::new(None),
            waker: Cell::new(None),
        }
    }

    /// Hears that a batch of so many queries, or replies of upstreams, is done.
    pub fn stir(&self, messages: usize) {
        if !self.is_kept {
            return;
        }
        self.batches.set(self.batches.get().wrapping_add(1));
        self.is_small.set(messages < CROWD);
        if !self.is_called.get() && self.is_worthwhile() {
            self.is_called.set(true);
            if let Some(waker) = self.waker.take() {
                waker.wake_by_ref();
                self.waker.set(Some(waker));
            }
        }
    }

    /// Returns whether somebody is to look; if not, `waker` hears of it when that changes.
    pub fn is_called(&self, waker: &Waker) -> bool {
        if !self.is_called.get() {
            let known = self.waker.take().filter(|known| known.will_wake(waker));
            self.waker.set(Some(known.unwrap_or_else(|| Waker::clone(waker))));
        }
        self.is_called.get()
    }

    /// Returns whether to look once more. Whoever was called asks before each look until this says no.
    pub fn goes_on(&self, now_us: u64) -> bool {
        let batches = self.batches.get();
        let goes_on = match self.since_us.get() {
            None => true,
            Some(_) if batches != self.seen.get() => {
                self.credit.set(self.credit.get().saturating_add(1).min(CREDIT_MAX));
                self.is_worthwhile()
            }
            Some(since_us) if now_us.saturating_sub(since_us) < SPAN_US => return true,
            Some(_) => {
                self.credit.set(self.credit.get().saturating_sub(1));
                false
            }
        };
        self.seen.set(batches);
        self.is_called.set(goes_on);
        self.since_us.set(goes_on.then_some(now_us));
        goes_on
    }

    /// Returns whether to look after the batch that just ended.
    fn is_worthwhile(&self) -> bool {
        if !self.is_small.get() {
            return false;
        }
        if self.credit.get() > 0 {
            return true;
        }
        let skipped = self.skipped.get() + 1;
        self.skipped.set(skipped % TRIAL_EVERY);
        skipped == TRIAL_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker on a clock of its own, which looks every microsecond.
    struct Clock {
        vigil: Vigil,
        now_us: u64,
        /// Time spent looking.
        looked_us: u64,
    }

    impl Clock {
        fn new(vigil: Vigil) -> Self {
            Self { vigil, now_us: 0, looked_us: 0 }
        }

        /// Has a batch now and the next one after `gap_us`; returns whether that found the worker awake.
        fn batch(&mut self, messages: usize, gap_us: u64) -> bool {
            self.vigil.stir(messages);
            let next = self.now_us + gap_us;
            let mut is_awake = self.vigil.is_called(Waker::noop());
            while is_awake && self.now_us < next {
                is_awake = self.vigil.goes_on(self.now_us);
                if is_awake {
                    self.now_us += 1;
                    self.looked_us += 1;
                }
            }
            self.now_us = next;
            is_awake
        }
    }

    #[test]
    fn a_client_that_asks_again_at_once_finds_the_worker_awake() {
        let mut clock = Clock::new(Vigil::kept());
        for _ in 0..1000 {
            assert!(clock.batch(1, SPAN_US - 10));
        }
    }

    #[test]
    fn looks_in_vain_end_and_only_trials_remain() {
        let mut clock = Clock::new(Vigil::kept());
        let batches = 64_000;
        for _ in 0..batches {
            assert!(!clock.batch(1, 1000));
        }
        let trials = batches / u64::from(TRIAL_EVERY) + u64::from(CREDIT_MAX);
        assert!(clock.looked_us <= trials * SPAN_US, "{} µs", clock.looked_us);
        assert!(clock.looked_us < batches, "less than a microsecond per batch");
    }

    #[test]
    fn a_trial_that_is_paid_brings_the_looking_back() {
        let mut clock = Clock::new(Vigil::kept());
        for _ in 0..100 {
            clock.batch(1, 1000);
        }
        for _ in 0..TRIAL_EVERY {
            clock.batch(1, 20);
        }
        for _ in 0..100 {
            assert!(clock.batch(1, 20));
        }
    }

    #[test]
    fn a_pause_of_the_machine_changes_nothing() {
        let mut clock = Clock::new(Vigil::kept());
        for _ in 0..100 {
            for _ in 0..10 {
                assert!(clock.batch(1, 20));
            }
            assert!(!clock.batch(1, 4000));
        }
    }

    #[test]
    fn looking_costs_at_most_two_spans_for_each_batch_that_finds_the_worker_awake() {
        // The least lucky gaps: just found, and just missed.
        for vain_of_ten in 0..=10 {
            let mut clock = Clock::new(Vigil::kept());
            let mut paid = 0;
            for batch in 0..10_000 {
                let is_vain = batch % 10 < vain_of_ten;
                paid += u64::from(clock.batch(1, if is_vain { SPAN_US + 2 } else { SPAN_US - 2 }));
            }
            let trials = 10_000 / u64::from(TRIAL_EVERY) + u64::from(CREDIT_MAX);
            assert!(
                clock.looked_us <= (2 * paid + trials) * SPAN_US,
                "{vain_of_ten}: {} µs for {paid}",
                clock.looked_us
            );
        }
    }

    #[test]
    fn nobody_stays_awake_for_a_crowd_nor_where_no_vigil_is_kept() {
        let mut clock = Clock::new(Vigil::kept());
        assert!(clock.batch(CROWD - 1, 10));
        assert!(!clock.batch(CROWD, 10));
        let mut clock = Clock::new(Vigil::off());
        assert!(!clock.batch(1, 10));
        assert_eq!(clock.looked_us, 0);
    }

    #[test]
    fn a_worker_that_nobody_asks_sleeps() {
        let vigil = Vigil::kept();
        assert!(!vigil.is_called(Waker::noop()));
    }
}
