//! Which questions are being fetched, and by which worker.
//!
//! A fixed table of words, in groups of one cache line. A word is `[hash:34][worker:10][time:20]`;
//! the group comes from other bits of the hash. It saves work and decides nothing: a claim that is
//! lost, or for which there is no room, means that two workers ask the same. A hash that is taken
//! for another means that a worker waits in vain until it looks again.

use crate::store::{Pages, zeroed};
use crate::sync::{AtomicU64, Ordering};
use crate::{NowMs, Stats};

/// Words of a group.
const GROUP_WORDS: usize = if cfg!(loom) { 2 } else { 8 };
/// Groups: 16,384 words in all, eight for each of two thousand questions that begin at once.
const GROUPS: usize = if cfg!(loom) { 1 } else { 2048 };
/// Looks at a group whose words others change meanwhile.
const LOOKS_MAX: usize = 4;
/// Milliseconds for which a claim holds at most; the time in a word comes around after 17 minutes.
const HOLDS_MS_MAX: u32 = 60_000;

const FREE: u64 = 0;
const TIME_BITS: u32 = 20;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
const WORKER_BITS: u32 = 10;
/// Numbers of workers that a word has room for.
const WORKERS_MAX: u64 = (1 << WORKER_BITS) - 1;

/// A worker's number; numbers from 1023 on claim nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker(pub u16);

/// What became of an attempt to claim a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is this worker's, until it is released or expires.
    Ours,
    /// Another worker fetches it.
    Theirs {
        /// Which one.
        worker: Worker,
        /// Milliseconds since it began.
        since_ms: u32,
    },
    /// There is no room to note it: fetch it all the same.
    Unnoted,
}

/// The table, shared by all workers.
pub struct Claims {
    words: Box<[AtomicU64]>,
    /// Those that entered.
    workers: AtomicU64,
}

impl Default for Claims {
    fn default() -> Self {
        Self { words: zeroed(GROUPS * GROUP_WORDS, Pages::Small), workers: AtomicU64::new(0) }
    }
}

impl Claims {
    /// Returns the number of a worker that begins. From the 1,024th on a number stands for several,
    /// which do not wait for each other.
    pub fn enter(&self) -> Worker {
        Worker((self.workers.fetch_add(1, Ordering::Relaxed) % WORKERS_MAX) as u16)
    }

    /// Returns whether there is more than one worker: a single one need not claim anything.
    pub fn is_shared(&self) -> bool {
        self.workers.load(Ordering::Relaxed) > 1
    }

    /// Claims the question with this hash (keyed, of all that makes questions differ) for a worker.
    /// A claim holds for `holds_ms` at most, and never longer than a minute.
    pub fn claim(&self, hash: u64, worker: Worker, now: NowMs, holds_ms: u32) -> Claim {
        let group = self.group(hash);
        let Some(wanted) = word(hash, worker, now) else { return Claim::Unnoted };
        let holds_ms = holds_ms.min(HOLDS_MS_MAX);
        for _ in 0..LOOKS_MAX {
            let mut free = None;
            for at in group {
                let held = at.load(Ordering::Relaxed);
                let is_held = held != FREE && since_ms(held, now) < holds_ms;
                if is_held && is_same(held, hash) {
                    let holder = worker_of(held);
                    return if holder == worker {
                        Claim::Ours
                    } else {
                        Claim::Theirs { worker: holder, since_ms: since_ms(held, now) }
                    };
                }
                if !is_held && free.is_none() {
                    free = Some((at, held));
                }
            }
            // All take the first that is free, so that of two who claim the same one fails here and
            // finds the other's claim.
            let Some((at, held)) = free else { return Claim::Unnoted };
            if at.compare_exchange(held, wanted, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Claim::Ours;
            }
        }
        Claim::Unnoted
    }

    /// Returns who fetches the question, and for how many milliseconds, if somebody does.
    pub fn look(&self, hash: u64, now: NowMs, holds_ms: u32) -> Option<(Worker, u32)> {
        let words = self.group(hash).iter().map(|at| at.load(Ordering::Relaxed));
        words
            .filter(|&held| held != FREE && is_same(held, hash))
            .map(|held| (worker_of(held), since_ms(held, now)))
            .find(|&(_, since_ms)| since_ms < holds_ms.min(HOLDS_MS_MAX))
    }

    /// Gives a worker's claim back. Returns whether there was one.
    pub fn release(&self, hash: u64, worker: Worker) -> bool {
        self.group(hash)
            .iter()
            .filter(|at| {
                let held = at.load(Ordering::Relaxed);
                held != FREE
                    && is_same(held, hash)
                    && worker_of(held) == worker
                    && at.compare_exchange(held, FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            })
            .count()
            > 0
    }

    /// Returns the numbers of the moment; claims that expired and were not released count.
    pub fn stats(&self) -> Stats {
        let octets = self.words.len() * 8;
        let entries = self.words.iter().filter(|at| at.load(Ordering::Relaxed) != FREE).count() as u64;
        Stats { entries, octets, octets_max: octets, ..Stats::default() }
    }

    fn group(&self, hash: u64) -> &[AtomicU64] {
        let group = (hash >> 40) as usize % GROUPS;
        self.words.get(group * GROUP_WORDS..(group + 1) * GROUP_WORDS).unwrap_or(&[])
    }
}

/// The word of a claim; never [`FREE`], since workers count from one in it.
fn word(hash: u64, worker: Worker, now: NowMs) -> Option<u64> {
    let number = u64::from(worker.0) + 1;
    (number < 1 << WORKER_BITS)
        .then_some(hash << (TIME_BITS + WORKER_BITS) | number << TIME_BITS | now.0 & TIME_MASK)
}

const fn is_same(held: u64, hash: u64) -> bool {
    held >> (TIME_BITS + WORKER_BITS) == (hash << (TIME_BITS + WORKER_BITS)) >> (TIME_BITS + WORKER_BITS)
}

const fn worker_of(held: u64) -> Worker {
    Worker(((held >> TIME_BITS & ((1 << WORKER_BITS) - 1)) as u16).saturating_sub(1))
}

/// Milliseconds since a claim; 0 if the clock of its worker is ahead.
const fn since_ms(held: u64, now: NowMs) -> u32 {
    let since = now.0.wrapping_sub(held) & TIME_MASK;
    if since > TIME_MASK - HOLDS_MS_MAX as u64 { 0 } else { since as u32 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const A: Worker = Worker(0);
    const B: Worker = Worker(1022);
    const HASH: u64 = 0x0123_4567_89ab_cdef;
    const NOW: NowMs = NowMs(1 << 40);

    fn after(ms: u64) -> NowMs {
        NowMs(NOW.0 + ms)
    }

    #[test]
    fn a_claim_holds_until_it_is_released_or_expires() {
        let claims = Claims::default();
        assert_eq!(claims.look(HASH, NOW, 100), None);
        assert_eq!(claims.claim(HASH, A, NOW, 100), Claim::Ours);
        assert_eq!(claims.claim(HASH, A, after(9), 100), Claim::Ours);
        assert_eq!(claims.claim(HASH, B, after(99), 100), Claim::Theirs { worker: A, since_ms: 99 });
        assert_eq!(claims.look(HASH, after(99), 100), Some((A, 99)));
        assert!(!claims.release(HASH, B));
        assert_eq!(claims.look(HASH, after(100), 100), None);
        assert_eq!(claims.claim(HASH, B, after(100), 100), Claim::Ours);
        assert!(!claims.release(HASH, A), "it is another's by now");
        assert_eq!(claims.look(HASH, after(99), 100), Some((B, 0)), "a clock may be behind");
        assert!(claims.release(HASH, B));
        assert_eq!(claims.look(HASH, after(100), 100), None);
        assert_eq!(claims.stats().entries, 0);
    }

    #[test]
    fn a_claim_never_holds_for_more_than_a_minute() {
        let claims = Claims::default();
        assert_eq!(claims.claim(HASH, A, NOW, u32::MAX), Claim::Ours);
        assert!(matches!(claims.claim(HASH, B, after(59_999), u32::MAX), Claim::Theirs { .. }));
        assert_eq!(claims.claim(HASH, B, after(60_000), u32::MAX), Claim::Ours);
    }

    #[test]
    fn workers_have_numbers_and_one_alone_shares_with_nobody() {
        let claims = Claims::default();
        assert!(!claims.is_shared());
        assert_eq!((claims.enter(), claims.is_shared()), (A, false));
        assert_eq!((claims.enter(), claims.is_shared()), (Worker(1), true));
        let last = (2..=WORKERS_MAX).map(|_| claims.enter()).last();
        assert_eq!(last, Some(A), "the 1,024th is the first again");
    }

    #[test]
    fn a_full_group_keeps_nobody_from_fetching() {
        let claims = Claims::default();
        for number in 0..GROUP_WORDS as u64 {
            assert_eq!(claims.claim(HASH ^ number, A, NOW, 100), Claim::Ours);
        }
        assert_eq!(claims.claim(HASH ^ 99, B, NOW, 100), Claim::Unnoted);
        assert_eq!(claims.stats().entries, GROUP_WORDS as u64);
        assert_eq!(claims.claim(HASH ^ 99, B, after(100), 100), Claim::Ours);
        assert_eq!(claims.claim(HASH, Worker(1023), NOW, 100), Claim::Unnoted, "it has no number in a word");
    }

    #[cfg(not(miri))]
    #[test]
    fn many_workers_that_claim_a_question_are_one() {
        let claims = Claims::default();
        for round in 0..200_u64 {
            let hash = HASH.wrapping_mul(round | 1);
            let ours = std::thread::scope(|scope| {
                let claim = |number| {
                    let claims = &claims;
                    scope.spawn(move || claims.claim(hash, Worker(number), NOW, 100) == Claim::Ours)
                };
                let workers: Vec<_> = (0..4).map(claim).collect();
                workers.into_iter().filter_map(|worker| worker.join().ok()).filter(|&is_ours| is_ours).count()
            });
            assert_eq!(ours, 1);
        }
    }
}
