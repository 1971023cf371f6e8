//! Steers datagrams to as many workers as the load needs, where processors are few.
//!
//! The kernel spreads clients over the sockets of all workers. If the programs that ask run on the
//! same processors, each worker then wakes for every few queries and takes the processor from them,
//! and a query costs twice as much as it does where one worker answers many at a time. So one
//! worker begins. Whenever those at work have no time left, one more is tried: it stays if more
//! queries are answered with it, or if they cost no more than before. One also comes when queries
//! fill half of the room in which they wait for upstreams, of which each worker has its part.
//!
//! Every worker counts what it does, and whichever has a batch when a window is over decides for
//! all. An idle server decides nothing. On more than [`STEERED_MAX`] processors every worker has
//! its share from the start.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::counters::Counters;
use crate::sys::{self, ThreadClock};

/// Workers up to which they are steered.
const STEERED_MAX: usize = 4;

/// How long a window is at least, in milliseconds.
pub(crate) const WINDOW_MS: u64 = 100;

/// The part of their time, in per cent, from which on workers have none left.
const BUSY_PERCENT: u64 = 80;
/// The part of the time of one worker fewer, in per cent, below which one is spared.
const SPARE_PERCENT: u64 = 50;

/// What one more worker has to bring: queries a second, in per cent of those without it.
const MORE_PERCENT: u64 = 115;
/// What one more worker may cost: processor time of a query, in per cent of that without it.
const COST_PERCENT: u64 = 115;

/// Windows from a trial that failed to the next one: doubled with each failure, up to some 25 s.
const REST_MIN: u32 = 4;
const REST_MAX: u32 = 256;

/// Datagrams of a call of the reader that left some unread: see `udp_backlogs`.
const BACKLOG_DATAGRAMS: u64 = 256;

/// What workers share to be steered.
#[derive(Debug)]
pub(crate) struct Steering {
    /// Workers that get datagrams.
    active: AtomicUsize,
    /// When the window at hand is over.
    next_ms: AtomicU64,
    workers: Box<[OnceLock<Seat>]>,
    state: Mutex<State>,
}

/// What is known of one worker.
#[derive(Debug)]
struct Seat {
    counters: Arc<Counters>,
    clock: Option<ThreadClock>,
    /// Whether as many queries wait for upstreams as make it worth to share them.
    is_crowded: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    controller: Controller,
    last: Totals,
}

/// What all workers have done and used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    now_ms: u64,
    datagrams: u64,
    backlogs: u64,
    cpu_us: u64,
    is_crowded: bool,
}

/// One worker's part in the steering.
#[derive(Debug)]
pub(crate) struct Seated {
    steering: Arc<Steering>,
    number: usize,
}

impl Steering {
    /// Returns a seat for each of `workers` workers; none where they are not steered.
    pub(crate) fn seats(workers: usize) -> Vec<Option<Seated>> {
        if !(2..=STEERED_MAX).contains(&workers) || !sys::STEERS {
            return (0..workers).map(|_| None).collect();
        }
        let steering = Arc::new(Self {
            active: AtomicUsize::new(1),
            next_ms: AtomicU64::new(0),
            workers: (0..workers).map(|_| OnceLock::new()).collect(),
            state: Mutex::default(),
        });
        (0..workers).map(|number| Some(Seated { steering: Arc::clone(&steering), number })).collect()
    }

    /// Adds up what the workers have done.
    fn totals(&self, now_ms: u64) -> Totals {
        let mut totals = Totals { now_ms, ..Totals::default() };
        for seat in self.workers.iter().filter_map(OnceLock::get) {
            totals.datagrams += seat.counters.udp_datagrams.read();
            totals.backlogs += seat.counters.udp_backlogs.read();
            totals.cpu_us += seat.clock.as_ref().and_then(ThreadClock::used_us).unwrap_or(0);
            totals.is_crowded |= seat.is_crowded.load(Ordering::Relaxed);
        }
        totals
    }
}

impl Seated {
    /// Takes the seat for the calling thread.
    pub(crate) fn take(&self, counters: &Arc<Counters>) {
        if let Some(seat) = self.steering.workers.get(self.number) {
            // A second socket of the same worker finds it taken.
            seat.get_or_init(|| Seat {
                counters: Arc::clone(counters),
                clock: ThreadClock::of_this_thread(),
                is_crowded: AtomicBool::new(false),
            });
        }
    }

    /// Steers the datagrams that come to the address of `socket` to so many workers.
    pub(crate) fn apply(&self, socket: BorrowedFd<'_>, is_v6: bool) -> usize {
        let active = self.steering.active.load(Ordering::Relaxed);
        // Where the kernel refuses, it spreads them over all as before.
        let _ = sys::steer(socket, is_v6, active);
        active
    }

    /// Returns how many workers are to get datagrams, after it has decided that anew if the window
    /// is over. `is_crowded`: whether this worker's part of the room for waiting queries is half
    /// full.
    #[cold]
    pub(crate) fn decide(&self, now_ms: u64, is_crowded: bool) -> usize {
        let steering = &*self.steering;
        if let Some(seat) = steering.workers.get(self.number).and_then(OnceLock::get) {
            seat.is_crowded.store(is_crowded, Ordering::Relaxed);
        }
        let next_ms = steering.next_ms.load(Ordering::Relaxed);
        let is_mine = now_ms >= next_ms
            && steering
                .next_ms
                .compare_exchange(next_ms, now_ms + WINDOW_MS, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_mine {
            let totals = steering.totals(now_ms);
            let mut state = steering.state.lock().unwrap_or_else(PoisonError::into_inner);
            let last = std::mem::replace(&mut state.last, totals);
            if last.now_ms != 0 {
                let workers = steering.workers.len();
                let active = state.controller.step(Window::between(last, totals), workers);
                steering.active.store(active, Ordering::Relaxed);
            }
        }
        steering.active.load(Ordering::Relaxed)
    }
}

/// What happened in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    took_us: u64,
    datagrams: u64,
    backlogs: u64,
    cpu_us: u64,
    is_crowded: bool,
}

impl Window {
    fn between(before: Totals, after: Totals) -> Self {
        Self {
            took_us: after.now_ms.saturating_sub(before.now_ms).max(1) * 1000,
            datagrams: after.datagrams.saturating_sub(before.datagrams),
            backlogs: after.backlogs.saturating_sub(before.backlogs),
            cpu_us: after.cpu_us.saturating_sub(before.cpu_us),
            is_crowded: after.is_crowded,
        }
    }

    /// Datagrams a second.
    const fn rate(&self) -> u64 {
        self.datagrams.saturating_mul(1_000_000) / self.took_us
    }

    /// Nanoseconds of processor time per datagram.
    fn cost(&self) -> u64 {
        self.cpu_us.saturating_mul(1000).checked_div(self.datagrams).unwrap_or(0)
    }

    /// The workers' time in per cent of one processor.
    const fn busy_percent(&self) -> u64 {
        self.cpu_us.saturating_mul(100) / self.took_us
    }

    /// Returns whether `active` workers have no time or room left: they say so, or most datagrams
    /// had to wait for others.
    const fn is_full(&self, active: u64) -> bool {
        self.is_crowded
            || self.busy_percent() > BUSY_PERCENT * active
            || (self.backlogs > 0 && self.backlogs * BACKLOG_DATAGRAMS * 2 > self.datagrams)
    }
}

/// Decides how many workers get datagrams.
#[derive(Debug)]
struct Controller {
    active: usize,
    /// The window before the last worker came, while it is tried.
    before: Option<Window>,
    /// Windows until the next trial.
    left: u32,
    /// How long the next rest is.
    rest: u32,
}

impl Default for Controller {
    fn default() -> Self {
        Self { active: 1, before: None, left: 0, rest: REST_MIN }
    }
}

impl Controller {
    /// Takes a window's figures; returns how many workers get datagrams in the next one.
    fn step(&mut self, window: Window, workers: usize) -> usize {
        let active = self.active as u64;
        match self.before.take() {
            Some(before) => self.judge(&before, &window),
            None if window.is_full(active) && self.active < workers => {
                if self.left > 0 {
                    self.left -= 1;
                } else {
                    self.before = Some(window);
                    self.active += 1;
                }
            }
            None if self.active > 1
                && !window.is_crowded
                && window.busy_percent() < SPARE_PERCENT * (active - 1) =>
            {
                self.active -= 1;
            }
            None => {}
        }
        self.active
    }

    fn judge(&mut self, before: &Window, after: &Window) {
        let brings_more = after.rate() * 100 >= before.rate() * MORE_PERCENT;
        let is_cheap = after.cost() * 100 <= before.cost() * COST_PERCENT;
        if brings_more || is_cheap || after.is_crowded {
            self.rest = REST_MIN;
        } else {
            self.active -= 1;
            self.left = self.rest;
            self.rest = (self.rest * 2).min(REST_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that answers for a hundred milliseconds.
    struct Machine {
        controller: Controller,
        workers: usize,
        /// Windows so far, and those in which more than one worker was at work.
        windows: u32,
        spread: u32,
    }

    /// What clients send: so many a second, or as much as is answered.
    #[derive(Clone, Copy)]
    enum Load {
        /// From elsewhere: a worker answers 300,000 a second, whoever else is at work.
        Remote(u64),
        /// From the same two processors: one worker answers 400,000, two keep the clients from
        /// asking and answer 150,000 at twice the cost.
        SameProcessors,
    }

    impl Machine {
        fn new(workers: usize) -> Self {
            Self { controller: Controller::default(), workers, windows: 0, spread: 0 }
        }

        fn run(&mut self, windows: u32, load: Load) -> usize {
            for _ in 0..windows {
                let active = self.controller.active as u64;
                let (datagrams, cpu_us, backlogs) = match load {
                    Load::Remote(rate) => {
                        let answered = rate.min(300_000 * active) / 10;
                        let is_short = answered < rate / 10;
                        (answered, answered * 10 / 3, if is_short { answered / BACKLOG_DATAGRAMS } else { 0 })
                    }
                    Load::SameProcessors if active == 1 => (40_000, 95_000, 0),
                    Load::SameProcessors => (15_000, 75_000, 0),
                };
                let window = Window { took_us: 100_000, datagrams, backlogs, cpu_us, is_crowded: false };
                self.windows += 1;
                self.spread += u32::from(active > 1);
                self.controller.step(window, self.workers);
            }
            self.controller.active
        }
    }

    #[test]
    fn one_worker_answers_what_one_can() {
        let mut machine = Machine::new(4);
        assert_eq!(machine.run(1000, Load::Remote(200_000)), 1);
        assert_eq!(machine.spread, 0);
    }

    #[test]
    fn workers_come_as_the_load_grows_and_go_when_it_ends() {
        for (rate, workers) in [(450_000, 2), (1_100_000, 4)] {
            let mut machine = Machine::new(4);
            assert_eq!(machine.run(20, Load::Remote(rate)), workers, "{rate}");
            assert_eq!(machine.run(20, Load::Remote(20_000)), 1, "{rate}");
        }
    }

    #[test]
    fn a_worker_that_others_keep_from_the_processor_gets_help() {
        let mut controller = Controller::default();
        // Half of the time another program runs; what comes waits.
        let window =
            Window { took_us: 100_000, datagrams: 15_000, backlogs: 50, cpu_us: 50_000, is_crowded: false };
        assert_eq!(controller.step(window, 2), 2);
        let helped = Window { datagrams: 30_000, backlogs: 100, cpu_us: 100_000, ..window };
        assert_eq!(controller.step(helped, 2), 2);
    }

    #[test]
    fn a_worker_that_takes_the_clients_processor_goes_again_and_is_tried_ever_more_rarely() {
        let mut machine = Machine::new(2);
        assert_eq!(machine.run(300, Load::SameProcessors), 1);
        assert!((3..=8).contains(&machine.spread), "{} of {}", machine.spread, machine.windows);
        let before = machine.spread;
        machine.run(2560, Load::SameProcessors);
        assert!(machine.spread - before <= 14, "{}", machine.spread - before);
    }

    #[test]
    fn others_take_what_fills_the_room_for_waiting_queries_of_one() {
        let mut controller = Controller::default();
        // Names of which nobody answers: hardly any time is spent on them.
        let crowded =
            Window { took_us: 100_000, datagrams: 1000, cpu_us: 5000, is_crowded: true, ..Window::default() };
        for workers in [2, 2, 3, 3, 4, 4, 4] {
            assert_eq!(controller.step(crowded, 4), workers);
        }
        let after = Window { is_crowded: false, ..crowded };
        for workers in [3, 2, 1, 1] {
            assert_eq!(controller.step(after, 4), workers);
        }
    }

    #[test]
    fn few_workers_are_steered_and_many_are_not() {
        assert!(Steering::seats(1).iter().all(Option::is_none));
        assert!(Steering::seats(STEERED_MAX + 1).iter().all(Option::is_none));
        assert_eq!(Steering::seats(2).len(), 2);
        assert_eq!(Steering::seats(2).iter().all(Option::is_some), sys::STEERS);
    }
}
