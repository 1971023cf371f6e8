//! Memory for replies that clients have not taken.
//!
//! Over HTTP and QUIC a client says how much of a reply it takes, and may say nothing for as long
//! as it likes: replies wait for its windows. What waits is charged to its connection. A connection
//! that holds much is not asked for more; when all together hold more than they may, those that
//! hold most are ended, and never one that holds less than its share.
//!
//! Charged by whoever holds the octets, and given back when they are freed, wherever that is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use plan::listeners::TcpPlan;

/// How far replies that come late may go over what one connection may hold: what was asked cannot
/// be taken back.
const LATE_FACTOR: usize = 4;
/// Octets that a client takes within the time to write, or all that there is, or it does not take
/// its replies.
pub(crate) const TAKEN_OCTETS_MIN: u64 = 4 << 10;

/// Octets of the pieces in which a large reply is sent, each charged alone: a client that takes it
/// slowly is seen to take it.
const PIECE_OCTETS: usize = 2 << 10;

/// What all connections of the process hold.
#[derive(Debug)]
pub struct Budget {
    held: AtomicUsize,
    /// The most that was held since somebody asked.
    peak: AtomicUsize,
    held_max: usize,
    /// Told when they hold more than they may.
    exceeded: Notify,
}

impl Budget {
    pub(crate) fn new(plan: &TcpPlan) -> Arc<Self> {
        let held_max = plan.buffered_octets_max.max(1);
        Arc::new(Self {
            held: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            held_max,
            exceeded: Notify::new(),
        })
    }

    /// Returns how many octets are held.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the most octets that were held since the last call.
    pub fn take_peak(&self) -> usize {
        self.peak.swap(self.held(), Ordering::Relaxed)
    }

    /// Returns whether that is more than may be.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.held() > self.held_max
    }

    /// Waits until the next time, from this call on, that somebody is charged and
    /// [`Budget::is_exceeded`] then.
    pub(crate) fn exceeded(&self) -> impl Future<Output = ()> {
        self.exceeded.notified()
    }
}

/// What one connection holds.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Arc<Budget>,
    held: AtomicUsize,
    held_max: usize,
    /// Whether the connection ends, and the budget counts it no longer.
    is_written_off: AtomicBool,
    /// Octets that were given back, since the connection began: the client has taken them.
    given_back: AtomicU64,
    /// Told when some were.
    room: Notify,
    /// Told when it is charged and held nothing.
    charged: Notify,
}

impl Account {
    pub(crate) fn new(budget: &Arc<Budget>, plan: &TcpPlan) -> Arc<Self> {
        Arc::new(Self {
            budget: Arc::clone(budget),
            held: AtomicUsize::new(0),
            held_max: plan.output_octets_max,
            is_written_off: AtomicBool::new(false),
            given_back: AtomicU64::new(0),
            room: Notify::new(),
            charged: Notify::new(),
        })
    }

    /// Returns how many octets the connection holds.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns whether it may be asked for more: it holds no more than one may, and, the fuller the
    /// budget, no more than is left for all. One that holds nothing always may.
    pub(crate) fn has_room(&self) -> bool {
        let left = self.budget.held_max.saturating_sub(self.budget.held());
        self.held() <= self.held_max.min(left)
    }

    /// Returns whether a reply of so many octets may be kept that comes late.
    pub(crate) fn has_room_for_late(&self, octets: usize) -> bool {
        self.held().saturating_add(octets) <= self.held_max.saturating_mul(LATE_FACTOR)
    }

    /// Waits until it may be asked for more.
    pub(crate) async fn room(&self) {
        loop {
            let room = self.room.notified();
            if self.has_room() {
                return;
            }
            room.await;
        }
    }

    /// Waits until the client has not taken what it should of its replies `within` some time.
    pub(crate) async fn stalled(&self, within: Duration) {
        let mut progress = Progress::default();
        loop {
            let charged = self.charged.notified();
            progress.note(self.held(), self.given_back.load(Ordering::Relaxed), Instant::now());
            match progress.due(within) {
                None => charged.await,
                Some(at) if at <= Instant::now() => return,
                Some(at) => sleep_until(at).await,
            }
        }
    }

    /// Charges octets.
    pub(crate) fn charge(self: &Arc<Self>, octets: usize) -> Charge {
        let mut charge = Charge { account: Arc::clone(self), octets: 0 };
        charge.resize(octets);
        charge
    }

    /// Keeps a copy of `octets`, charged for as long as anybody has it.
    pub(crate) fn keep(self: &Arc<Self>, octets: &[u8]) -> Bytes {
        Bytes::from_owner(Kept { octets: octets.into(), _charge: self.charge(octets.len()) })
    }

    /// Returns a reply that was kept in pieces, each of which is given back when the client has it.
    pub(crate) fn in_pieces(self: &Arc<Self>, reply: Bytes) -> Vec<Bytes> {
        if reply.len() <= PIECE_OCTETS {
            return vec![reply];
        }
        reply.chunks(PIECE_OCTETS).map(|piece| self.keep(piece)).collect()
    }

    /// Notes that the connection ends: what it holds is about to be given back.
    ///
    /// Called on the thread of the connection, as everything that charges it.
    pub(crate) fn write_off(&self) {
        if !self.is_written_off.swap(true, Ordering::Relaxed) {
            self.budget.held.fetch_sub(self.held(), Ordering::Relaxed);
        }
    }

    fn add(&self, octets: usize) {
        if self.held.fetch_add(octets, Ordering::Relaxed) == 0 {
            self.charged.notify_waiters();
        }
        if self.is_written_off.load(Ordering::Relaxed) {
            return;
        }
        let held = self.budget.held.fetch_add(octets, Ordering::Relaxed) + octets;
        self.budget.peak.fetch_max(held, Ordering::Relaxed);
        if self.budget.is_exceeded() {
            self.budget.exceeded.notify_waiters();
        }
    }

    fn give_back(&self, octets: usize) {
        self.held.fetch_sub(octets, Ordering::Relaxed);
        if !self.is_written_off.load(Ordering::Relaxed) {
            self.budget.held.fetch_sub(octets, Ordering::Relaxed);
        }
        self.given_back.fetch_add(octets as u64, Ordering::Relaxed);
        self.room.notify_waiters();
    }
}

/// Octets that a connection is charged for until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Arc<Account>,
    octets: usize,
}

impl Charge {
    /// Returns how many there are.
    pub(crate) const fn octets(&self) -> usize {
        self.octets
    }

    /// Changes how many there are.
    pub(crate) fn resize(&mut self, octets: usize) {
        if octets > self.octets {
            self.account.add(octets - self.octets);
        } else if octets < self.octets {
            self.account.give_back(self.octets - octets);
        }
        self.octets = octets;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.resize(0);
    }
}

/// Octets with their charge.
struct Kept {
    octets: Box<[u8]>,
    _charge: Charge,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.octets
    }
}

/// Sees whether a client takes its replies.
///
/// Whatever else it sends meanwhile, such as pings or acknowledgements, says nothing about that.
#[derive(Debug, Default)]
pub(crate) struct Progress(Option<Period>);

/// A time in which it has to take some.
#[derive(Clone, Copy, Debug)]
struct Period {
    since: Instant,
    /// Octets that it had taken before.
    taken: u64,
    /// Octets that it has to take.
    due: u64,
}

impl Progress {
    /// Notes that `waiting` octets wait for the client, which has `taken` so many since its
    /// connection began.
    pub(crate) fn note(&mut self, waiting: usize, taken: u64, now: Instant) {
        if waiting == 0 {
            self.0 = None;
            return;
        }
        if self.0.is_none_or(|period| taken >= period.taken + period.due) {
            // At least one: nothing is not enough.
            let due = TAKEN_OCTETS_MIN.min(waiting as u64).max(1);
            self.0 = Some(Period { since: now, taken, due });
        }
    }

    /// Returns whether anything waits for the client.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.0.is_some()
    }

    /// Returns when the client has to have taken some; `None` if nothing waits for it.
    pub(crate) fn due(&self, within: Duration) -> Option<Instant> {
        self.0.map(|period| period.since + within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(held_max: usize, each: usize) -> (Arc<Budget>, TcpPlan) {
        let plan = TcpPlan { buffered_octets_max: held_max, output_octets_max: each, ..TcpPlan::default() };
        (Budget::new(&plan), plan)
    }

    #[test]
    fn what_is_kept_is_charged_until_nobody_has_it() {
        let (budget, plan) = budget(1000, 100);
        let account = Account::new(&budget, &plan);
        let reply = account.keep(&[7; 60]);
        let part = reply.slice(10..20);
        drop(reply);
        assert_eq!((account.held(), budget.held()), (60, 60), "a part keeps all of it");
        assert_eq!(part[..], [7; 10]);
        let mut charge = account.charge(50);
        assert!(!account.has_room(), "110 of 100");
        charge.resize(10);
        assert!(account.has_room());
        drop((part, charge));
        assert_eq!((account.held(), budget.held()), (0, 0));
        assert_eq!((budget.take_peak(), budget.take_peak()), (110, 0));
    }

    #[test]
    fn the_fuller_the_budget_the_less_may_one_hold_but_one_with_nothing_may_always_ask() {
        let (budget, plan) = budget(1000, 100);
        let (full, modest, empty) =
            (Account::new(&budget, &plan), Account::new(&budget, &plan), Account::new(&budget, &plan));
        let _modest = modest.charge(20);
        assert!(modest.has_room());
        let _hoard = full.charge(970);
        assert!(!modest.has_room(), "10 are left for all");
        let _more = full.charge(500);
        assert!(budget.is_exceeded());
        assert!(!full.has_room());
        assert!(empty.has_room());
    }

    #[test]
    fn a_connection_that_ends_no_longer_counts() {
        let (budget, plan) = budget(1000, 100);
        let account = Account::new(&budget, &plan);
        let mut charge = account.charge(700);
        account.write_off();
        assert_eq!((account.held(), budget.held()), (700, 0));
        charge.resize(900);
        charge.resize(100);
        drop(charge);
        assert_eq!((account.held(), budget.held()), (0, 0));
    }

    #[test]
    fn late_replies_go_over_the_bound_but_not_far() {
        let (budget, plan) = budget(1000, 100);
        let account = Account::new(&budget, &plan);
        let _held = account.charge(300);
        assert!(account.has_room_for_late(100));
        assert!(!account.has_room_for_late(101));
    }

    #[test]
    fn a_client_has_to_take_what_waits_or_a_good_part_of_it() {
        const WITHIN: Duration = Duration::from_secs(5);
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut progress = Progress::default();
        progress.note(0, 0, at(0));
        assert_eq!(progress.due(WITHIN), None);
        progress.note(100_000, 0, at(1));
        progress.note(100_000, 4095, at(3));
        assert_eq!(progress.due(WITHIN), Some(at(6)), "drops do not count");
        progress.note(100_000, 4096, at(4));
        assert_eq!(progress.due(WITHIN), Some(at(9)));
        progress.note(0, 104_096, at(5));
        assert_eq!(progress.due(WITHIN), None);
        progress.note(10, 104_096, at(6));
        progress.note(10, 104_106, at(8));
        assert_eq!(progress.due(WITHIN), Some(at(13)), "what waited was taken, however little it was");
    }
}
