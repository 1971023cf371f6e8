//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Says whether a worker that has nothing to do polls the kernel before it sleeps.
//!
//! A processor that sleeps takes its time to wake: some 35 µs on a virtual machine, ten times as
//! long as an answer. A client that asks again as soon as it has its answer pays that for every
//! query. Polling spares it that, at the price of processor time, and it spares nothing to clients
//! that ask at their own pace: their next query comes no sooner.
//!
//! So polling is tried, not assumed. From time to time the worker counts how long [`WINDOW`]
//! queries take while it sleeps between them, and how long while it polls. Only if queries come
//! clearly faster does it go on, and then within a budget: at most a quarter of the time that
//! passes, and no more than answering costs. Trials that fail become rare.
//!
//! Where the control group has a CPU quota, a worker does the opposite. A process that has used up
//! its quota stands still until the period is over, usually for tens of milliseconds. So a worker
//! that is about to use it up lets queries gather for a moment before it answers them: each wake-up
//! then serves several.
//!
//! Never polls, pauses or reads a clock: whoever runs the worker's sockets does, and says the time.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::task::Waker;
use std::time::Duration;

/// How long a worker polls for the next batch before it sleeps, in microseconds: somewhat longer
/// than a client takes to wake, read and ask again.
pub const SPAN_US: u64 = 50;

/// Queries of a batch from which on the worker does not poll for the next one: so many at once come
/// from a crowd, which shares the cost of waking and soon leaves no time to sleep.
const CROWD: usize = 5;

/// Spans in vain that end the polling, at most; a batch that was found makes up for one.
const CREDIT_MAX: u8 = 8;

/// Queries of a comparison: enough that a client's hiccup does not decide it, few enough to cost
/// next to nothing.
const WINDOW: u32 = 32;

/// Queries for which polling goes on before it is compared with sleeping again.
const STRETCH: u32 = 1024;

/// Queries from a trial that failed to the next one: doubled with each failure. At 40,000 queries a
/// second the longest is less than half a second, and a trial makes one of 500 queries cost a
/// little more.
const REST_MIN: u32 = 256;
const REST_MAX: u32 = 16_384;

/// A budget's divisor: the worker polls for at most this part of the time that passes.
const SHARE: u64 = 4;
/// The divisor of a budget that was halved as often as it may be.
const SHARE_LEAST: u64 = 64;

/// Units of the allowance in a microsecond: one is added in a microsecond at the least share. A
/// look takes less than a microsecond, and its share counts, too.
const UNITS: u64 = SHARE_LEAST;

/// What a worker that slept for long may spend at once, in units.
const ALLOWANCE_MAX: u64 = 500 * UNITS;

/// Preemptions in one stretch from which on another thread is taken to want the processor.
const PREEMPTIONS_MAX: u64 = 2;

/// Batches from one span to the next where polling has no budget and does not pay.
const TRIAL_EVERY: u8 = 64;

/// How long queries gather where a quota runs short. The kernel's timer slack adds some 50 µs.
const GATHER: Duration = Duration::from_micros(50);

/// How often it is looked how much of a quota is used, in milliseconds: five times in a period of
/// the default length.
const QUOTA_WINDOW_MS: u64 = 20;

/// When a worker polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// Never: it always sleeps at once.
    Never,
    /// While queries come faster for it, within the budget.
    Budgeted,
    /// As long as at least every other span finds a batch, whatever that costs.
    Always,
    /// Never; and it lets queries gather when the process runs short of its CPU quota.
    Sparing {
        /// The quota in thousandths of a processor.
        quota: u32,
    },
}

/// What a worker's thread has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Processor time in microseconds; 0 if the system does not say.
    pub cpu_us: u64,
    /// How often the system took the processor away for another thread.
    pub preemptions: u64,
}

/// Where the comparison of polling and sleeping stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Sleeps, and compares nothing.
    Rest,
    /// Sleeps, and counts how long a window of queries takes.
    Baseline,
    /// Polls, and counts the same.
    Trial,
    /// Polls within the budget.
    Stretch,
}

/// The busy polling of one worker. Nobody polls before a batch of queries, so an idle server
/// sleeps.
pub struct BusyPoll {
    polling: Polling,
    /// Batches so far, and how many of them whoever polls has seen.
    batches: Cell<u32>,
    seen: Cell<u32>,
    /// Whether the last batch was small enough for another to be waited for.
    is_small: Cell<bool>,
    /// Whether somebody is to poll, or to tell the time.
    is_wanted: Cell<bool>,
    /// When the current span began; `None` when nobody polls.
    since_us: Cell<Option<u64>>,
    /// When somebody last told the time.
    told_us: Cell<u64>,
    waker: Cell<Option<Waker>>,
    credit: Cell<u8>,
    /// Batches since the last span without a budget.
    skipped: Cell<u8>,
    phase: Cell<Phase>,
    /// Queries until the phase is over.
    left: Cell<u32>,
    phase_began_us: Cell<u64>,
    /// How long the last window of queries took while the worker slept.
    baseline_us: Cell<u64>,
    /// How long the next rest is.
    rest: Cell<u32>,
    /// What may be spent on polling, in [`UNITS`] of a microsecond; and the divisor of the time
    /// that passes which is added.
    allowance: Cell<u64>,
    share: Cell<u64>,
    /// Time spent polling in this phase.
    polled_us: Cell<u64>,
    usage: Cell<Usage>,
    /// Whether a quota runs short; when that was last looked at, and what the process had used
    /// then.
    is_short: Cell<bool>,
    quota_ms: Cell<u64>,
    quota_cpu_us: Cell<u64>,
}

impl BusyPoll {
    /// Returns the busy polling of a worker.
    pub const fn new(polling: Polling) -> Self {
        Self {
            polling,
            batches: Cell::new(0),
            seen: Cell::new(0),
            is_small: Cell::new(false),
            is_wanted: Cell::new(false),
            since_us: Cell::new(None),
            told_us: Cell::new(0),
            waker: Cell::new(None),
            credit: Cell::new(CREDIT_MAX),
            skipped: Cell::new(0),
            phase: Cell::new(Phase::Rest),
            left: Cell::new(REST_MIN),
            phase_began_us: Cell::new(0),
            baseline_us: Cell::new(0),
            rest: Cell::new(REST_MIN),
            allowance: Cell::new(0),
            share: Cell::new(SHARE),
            polled_us: Cell::new(0),
            usage: Cell::new(Usage { cpu_us: 0, preemptions: 0 }),
            is_short: Cell::new(false),
            quota_ms: Cell::new(0),
            quota_cpu_us: Cell::new(0),
        }
    }

    /// Counts a batch of so many queries, or replies of upstreams, that is done.
    pub fn worked(&self, messages: usize) {
        let is_small = messages < CROWD;
        let is_wanted = match self.polling {
            Polling::Never => return,
            Polling::Sparing { .. } => return self.is_small.set(is_small),
            Polling::Always => is_small && !self.is_wanted.get() && self.is_paid(),
            Polling::Budgeted => {
                let left = self.left.get().saturating_sub(u32::try_from(messages).unwrap_or(u32::MAX));
                self.left.set(left);
                is_small && (left == 0 || matches!(self.phase.get(), Phase::Trial | Phase::Stretch))
            }
        };
        self.batches.set(self.batches.get().wrapping_add(1));
        self.is_small.set(is_small);
        if is_wanted && !self.is_wanted.get() {
            self.is_wanted.set(true);
            if let Some(waker) = self.waker.take() {
                waker.wake_by_ref();
                self.waker.set(Some(waker));
            }
        }
    }

    /// Returns whether somebody is to call [`BusyPoll::should_poll`]; if not, `waker` is woken when
    /// that changes.
    pub fn is_wanted(&self, waker: &Waker) -> bool {
        if !self.is_wanted.get() {
            let known = self.waker.take().filter(|known| known.will_wake(waker));
            self.waker.set(Some(known.unwrap_or_else(|| Waker::clone(waker))));
        }
        self.is_wanted.get()
    }

    /// Returns whether to poll once more. Whoever is wanted asks before each look until this says
    /// no; `usage` is asked for twice in [`STRETCH`] batches at most.
    pub fn should_poll(&self, now_us: u64, usage: impl FnOnce() -> Usage) -> bool {
        let should_poll = match self.polling {
            Polling::Never | Polling::Sparing { .. } => false,
            Polling::Always => self.goes_on(now_us),
            Polling::Budgeted => {
                self.account(now_us);
                self.is_within_budget(now_us, usage)
            }
        };
        let has_batch = self.batches.get() != self.seen.replace(self.batches.get());
        let since_us = self.since_us.get().filter(|_| !has_batch).unwrap_or(now_us);
        self.since_us.set(should_poll.then_some(since_us));
        self.is_wanted.set(should_poll);
        should_poll
    }

    /// Returns how long to let queries gather before the next batch is received, if at all.
    /// `cpu_us` is asked for the processor time of the process every [`QUOTA_WINDOW_MS`].
    pub fn pause(&self, now_ms: impl FnOnce() -> u64, cpu_us: impl FnOnce() -> u64) -> Option<Duration> {
        let Polling::Sparing { quota } = self.polling else { return None };
        let (now_ms, before_ms) = (now_ms(), self.quota_ms.get());
        if now_ms >= before_ms.saturating_add(QUOTA_WINDOW_MS) {
            let cpu_us = cpu_us();
            // Microseconds in a millisecond: thousandths of a processor.
            let used = cpu_us.saturating_sub(self.quota_cpu_us.get()) / (now_ms - before_ms);
            self.quota_ms.set(now_ms);
            self.quota_cpu_us.set(cpu_us);
            // Gathering saves about a third, so that what is used then says little of what is
            // needed: it goes on until half is left.
            let quarters = if self.is_short.get() { 2 } else { 3 };
            self.is_short.set(used * 4 > u64::from(quota) * quarters);
        }
        // Many at once share the cost of waking already.
        (self.is_short.get() && self.is_small.get()).then_some(GATHER)
    }

    /// Moves the comparison on; returns whether to poll once more.
    fn is_within_budget(&self, now_us: u64, usage: impl FnOnce() -> Usage) -> bool {
        let is_over = self.left.get() == 0;
        match self.phase.get() {
            Phase::Rest if is_over => self.begin(Phase::Baseline, WINDOW, now_us),
            Phase::Baseline if is_over => self.try_polling(now_us),
            Phase::Trial if is_over => self.judge(now_us, usage),
            Phase::Stretch if is_over => self.review(now_us, usage),
            Phase::Rest | Phase::Baseline => {}
            Phase::Trial | Phase::Stretch => {
                if !self.goes_on(now_us) {
                    if self.credit.get() == 0 {
                        self.give_up(now_us);
                    }
                    return false;
                }
            }
        }
        match self.phase.get() {
            Phase::Rest | Phase::Baseline => false,
            Phase::Trial => true,
            // A span that began can end: one that is cut short was for nothing.
            Phase::Stretch if self.is_looking() => true,
            Phase::Stretch => self.allowance.get() >= SPAN_US * UNITS,
        }
    }

    /// Returns whether the span goes on: a batch began it anew, or it is not over.
    fn goes_on(&self, now_us: u64) -> bool {
        let credit = self.credit.get();
        match self.since_us.get() {
            None => true,
            Some(_) if self.batches.get() != self.seen.get() => {
                self.credit.set(credit.saturating_add(1).min(CREDIT_MAX));
                self.is_small.get() && (self.polling == Polling::Budgeted || self.is_paid())
            }
            Some(since_us) if now_us.saturating_sub(since_us) < SPAN_US => true,
            Some(_) => {
                self.credit.set(credit.saturating_sub(1));
                false
            }
        }
    }

    /// Returns whether to poll after the batch that just ended, where polling has no budget.
    fn is_paid(&self) -> bool {
        if self.credit.get() > 0 {
            return true;
        }
        let skipped = self.skipped.get() + 1;
        self.skipped.set(skipped % TRIAL_EVERY);
        skipped == TRIAL_EVERY
    }

    /// Returns whether somebody polls since the last batch.
    fn is_looking(&self) -> bool {
        self.since_us.get().is_some() && self.batches.get() == self.seen.get()
    }

    /// Adds to the allowance what has passed, and takes from it what was spent.
    fn account(&self, now_us: u64) {
        let passed_us = now_us.saturating_sub(self.told_us.replace(now_us));
        let spent = passed_us.saturating_mul(UNITS);
        let mut allowance = self.allowance.get().saturating_add(spent / self.share.get());
        // What a look that found a batch took was mostly answering.
        if self.is_looking() {
            self.polled_us.set(self.polled_us.get().saturating_add(passed_us));
            allowance = allowance.saturating_sub(spent);
        }
        self.allowance.set(allowance.min(ALLOWANCE_MAX));
    }

    fn begin(&self, phase: Phase, batches: u32, now_us: u64) {
        self.phase.set(phase);
        self.left.set(batches);
        self.phase_began_us.set(now_us);
        self.polled_us.set(0);
    }

    fn try_polling(&self, now_us: u64) {
        self.baseline_us.set(now_us.saturating_sub(self.phase_began_us.get()));
        self.credit.set(CREDIT_MAX);
        self.begin(Phase::Trial, WINDOW, now_us);
    }

    /// Compares: polling pays if the queries came in at most three quarters of the time.
    fn judge(&self, now_us: u64, usage: impl FnOnce() -> Usage) {
        let took_us = now_us.saturating_sub(self.phase_began_us.get());
        if took_us.saturating_mul(4) > self.baseline_us.get().saturating_mul(3) {
            return self.give_up(now_us);
        }
        self.usage.set(usage());
        self.begin(Phase::Stretch, STRETCH, now_us);
    }

    /// Sees what a stretch of polling has cost, and has it compared with sleeping again.
    fn review(&self, now_us: u64, usage: impl FnOnce() -> Usage) {
        let (before, after) = (self.usage.get(), usage());
        if after.preemptions.saturating_sub(before.preemptions) > PREEMPTIONS_MAX {
            return self.give_up(now_us);
        }
        self.rest.set(REST_MIN);
        let cpu_us = after.cpu_us.saturating_sub(before.cpu_us);
        let answering_us = cpu_us.saturating_sub(self.polled_us.get());
        let share = match cpu_us {
            0 => SHARE,
            _ if self.polled_us.get() > answering_us => (self.share.get() * 2).min(SHARE_LEAST),
            _ => (self.share.get() / 2).max(SHARE),
        };
        self.share.set(share);
        self.begin(Phase::Baseline, WINDOW, now_us);
    }

    fn give_up(&self, now_us: u64) {
        let rest = self.rest.get();
        self.rest.set((rest * 2).min(REST_MAX));
        self.begin(Phase::Rest, rest, now_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a processor takes to wake.
    const WAKE_US: u64 = 35;

    /// When the next query comes.
    #[derive(Clone, Copy)]
    enum Client {
        /// So long after the answer to the one before.
        AfterAnswer(u64),
        /// So long after the one before, whenever that was answered.
        AtRate(u64),
    }

    /// A worker on a clock of its own, which looks every microsecond.
    struct Clock {
        poll: BusyPoll,
        now_us: u64,
        /// When the query that is being answered came.
        came_us: u64,
        polled_us: u64,
        queries: u64,
        /// Batches, and those that found the worker awake.
        batches: u64,
        found: u64,
        /// Whether another thread wants the processor.
        is_shared: bool,
    }

    impl Clock {
        fn new(polling: Polling) -> Self {
            Self {
                poll: BusyPoll::new(polling),
                now_us: 0,
                came_us: 0,
                polled_us: 0,
                queries: 0,
                batches: 0,
                found: 0,
                is_shared: false,
            }
        }

        /// Answers what has come, 4 µs a query, and waits for more; returns whether that found the
        /// worker awake.
        fn batch(&mut self, client: Client) -> bool {
            let messages = match client {
                Client::AfterAnswer(_) => 1,
                Client::AtRate(gap_us) => 1 + (self.now_us - self.came_us) / gap_us,
            };
            self.batches += 1;
            self.queries += messages;
            self.now_us += 4 * messages;
            self.poll.worked(messages as usize);
            let next_us = match client {
                Client::AfterAnswer(think_us) => self.now_us + think_us,
                Client::AtRate(gap_us) => self.came_us + gap_us * messages,
            };
            let mut is_awake = self.poll.is_wanted(Waker::noop());
            loop {
                let usage = Usage {
                    cpu_us: self.polled_us + 20 * self.batches,
                    preemptions: if self.is_shared { self.polled_us / 10 } else { 0 },
                };
                is_awake = is_awake && self.poll.should_poll(self.now_us, || usage);
                if self.now_us >= next_us || !is_awake {
                    break;
                }
                self.now_us += 1;
                self.polled_us += 1;
            }
            if self.now_us < next_us {
                self.now_us = next_us + WAKE_US;
            }
            self.came_us = next_us;
            self.found += u64::from(is_awake);
            is_awake
        }

        fn run(&mut self, batches: u64, client: Client) -> &mut Self {
            for _ in 0..batches {
                self.batch(client);
            }
            self
        }
    }

    #[test]
    fn a_client_that_asks_again_at_once_mostly_finds_the_worker_awake_within_the_budget() {
        for (think_us, least) in [(2, 90), (5, 75), (12, 58), (20, 48)] {
            let mut clock = Clock::new(Polling::Budgeted);
            clock.run(50_000, Client::AfterAnswer(think_us));
            let found = clock.found * 100 / clock.batches;
            assert!(found >= least, "{think_us} µs: {found} %");
            let polled = clock.polled_us * 100 / clock.now_us;
            assert!(polled <= 26, "{think_us} µs: {polled} %");
        }
    }

    #[test]
    fn clients_that_ask_at_their_own_pace_cost_no_polling() {
        for gap_us in [6, 12, 25, 45, 50, 60, 100, 200, 2000] {
            let mut clock = Clock::new(Polling::Budgeted);
            clock.run(200_000, Client::AtRate(gap_us));
            // An answer that wakes the processor takes some 15 µs of its time: at most a hundredth
            // of that.
            assert!(clock.polled_us * 100 < clock.batches * 15, "{gap_us} µs: {} µs", clock.polled_us);
        }
    }

    #[test]
    fn polling_begins_soon_after_clients_ask_one_thing_after_the_other() {
        let mut clock = Clock::new(Polling::Budgeted);
        clock.run(200_000, Client::AtRate(50));
        let before = clock.found;
        clock.run(u64::from(2 * REST_MAX), Client::AfterAnswer(10));
        assert!(clock.found - before > 5000, "{}", clock.found - before);
    }

    #[test]
    fn polling_ends_when_it_no_longer_brings_queries_sooner() {
        let mut clock = Clock::new(Polling::Budgeted);
        clock.run(20_000, Client::AfterAnswer(10));
        let before = clock.polled_us;
        clock.run(100_000, Client::AtRate(40));
        assert!(clock.polled_us - before < 100_000, "{}", clock.polled_us - before);
    }

    #[test]
    fn a_worker_whose_processor_others_want_gives_it_up() {
        let mut clock = Clock::new(Polling::Budgeted);
        clock.is_shared = true;
        clock.run(200_000, Client::AfterAnswer(10));
        let share = clock.polled_us * 100 / clock.now_us;
        assert!(share < 3, "{share} %");
    }

    #[test]
    fn without_a_budget_looks_in_vain_end_and_only_trials_remain() {
        let mut clock = Clock::new(Polling::Always);
        let batches = 64_000;
        clock.run(batches, Client::AtRate(1000));
        let trials = batches / u64::from(TRIAL_EVERY) + u64::from(CREDIT_MAX);
        assert!(clock.polled_us <= trials * SPAN_US, "{} µs", clock.polled_us);
        assert!(clock.polled_us < batches, "less than a microsecond per batch");
    }

    #[test]
    fn without_a_budget_a_client_that_asks_again_at_once_always_finds_the_worker_awake() {
        let mut clock = Clock::new(Polling::Always);
        clock.run(1000, Client::AfterAnswer(SPAN_US - 10));
        assert_eq!(clock.found, 1000);
        clock.run(100, Client::AtRate(1000));
        clock.run(u64::from(TRIAL_EVERY), Client::AfterAnswer(20));
        let before = clock.found;
        clock.run(100, Client::AfterAnswer(20));
        assert_eq!(clock.found - before, 100, "a trial that is paid brings the polling back");
    }

    #[test]
    fn without_a_budget_polling_costs_at_most_two_spans_for_each_batch_that_it_finds() {
        // The least lucky gaps: just found, and just missed.
        for vain_of_ten in 0..=10 {
            let mut clock = Clock::new(Polling::Always);
            for batch in 0..10_000 {
                let is_vain = batch % 10 < vain_of_ten;
                clock.batch(Client::AfterAnswer(if is_vain { SPAN_US + 2 } else { SPAN_US - 2 }));
            }
            let trials = 10_000 / u64::from(TRIAL_EVERY) + u64::from(CREDIT_MAX);
            assert!(
                clock.polled_us <= (2 * clock.found + trials) * SPAN_US,
                "{vain_of_ten}: {} µs for {}",
                clock.polled_us,
                clock.found
            );
        }
    }

    #[test]
    fn no_worker_polls_for_a_crowd_nor_where_it_is_told_not_to() {
        for (polling, messages, is_wanted) in [
            (Polling::Always, CROWD - 1, true),
            (Polling::Always, CROWD, false),
            (Polling::Budgeted, CROWD, false),
            (Polling::Never, 1, false),
        ] {
            let poll = BusyPoll::new(polling);
            for _ in 0..100_000 {
                poll.worked(messages);
            }
            assert_eq!(poll.is_wanted(Waker::noop()), is_wanted, "{polling:?} {messages}");
        }
    }

    #[test]
    fn queries_gather_only_while_most_of_a_quota_is_used() {
        let poll = BusyPoll::new(Polling::Sparing { quota: 500 });
        let (mut now_ms, mut cpu_us) = (1000, 0);
        // Each step is a window: thousandths of a processor that are used in it, and whether
        // queries gather after it.
        for (used, expect) in
            [(100, false), (370, false), (380, true), (300, true), (260, true), (240, false), (300, false)]
        {
            now_ms += QUOTA_WINDOW_MS;
            cpu_us += used * QUOTA_WINDOW_MS;
            poll.worked(1);
            assert_eq!(poll.pause(|| now_ms, || cpu_us).is_some(), expect, "{used}");
            assert_eq!(poll.pause(|| now_ms + 1, || panic!("asked once in a window")).is_some(), expect);
        }
        cpu_us += 500 * QUOTA_WINDOW_MS;
        poll.worked(CROWD);
        assert_eq!(poll.pause(|| now_ms + QUOTA_WINDOW_MS, || cpu_us), None, "a crowd has gathered already");
        assert!(!poll.is_wanted(Waker::noop()), "and nobody polls");
        for polling in [Polling::Never, Polling::Budgeted, Polling::Always] {
            assert_eq!(BusyPoll::new(polling).pause(|| panic!("no clock"), || panic!("no quota")), None);
        }
    }

    #[test]
    fn a_worker_that_nobody_asks_sleeps() {
        for polling in [Polling::Never, Polling::Budgeted, Polling::Always] {
            assert!(!BusyPoll::new(polling).is_wanted(Waker::noop()));
        }
    }
}
