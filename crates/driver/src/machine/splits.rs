//! Queries that wait for branches of their own program, and queries that sleep.
//!
//! Which branch runs when and which one wins is the engine's rule, asked through [`Waiter::next`];
//! here are the clock and the answers that have come. A branch that is no longer needed goes on by
//! itself, and nobody hears of it.

use authorities::PoolNetwork;
use engine::ops::split::{BRANCHES_MAX, BranchReport, Next, Progress};
use engine::{EndedBranch, Failure, SharedSplit, Want};
use timers::{Moment, Span, TimerKey};

use exchange::network::Network;

use crate::machine::{
    Begins, Ending, Event, Finished, Home, Machine, Token, Waiter, WaiterList, Waiters, chain,
};

/// Queries that get their turn at once, before clients have theirs again.
const TURNS_MAX: usize = 16;

/// Names a split for as long as it is undecided, and nothing after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SplitKey {
    slot: u32,
    serial: u32,
}

/// One split that is undecided.
pub(super) struct Split {
    serial: u32,
    progress: Progress,
    pub(super) waiters: Waiters,
    ended: [Option<EndedBranch>; BRANCHES_MAX],
    timer: TimerKey,
    /// Set for splits that equal queries can join.
    shared: Option<SharedSplit>,
}

impl<N: Network, P: PoolNetwork, W: Waiter> Machine<N, P, W> {
    /// Takes a query that waits for branches: joins an equal one or begins.
    pub(super) fn take_split(&mut self, mut who: W, now: Moment) {
        let Want::Split(want) = who.want() else { return };
        let (progress, shared) = (want.progress, want.shared.clone());
        if let Some(slot) = shared.as_ref().and_then(|shared| self.equal_split(shared)) {
            if who.client().is_none() {
                return;
            }
            self.counters.coalesced.bump();
            let waiting = self.splits.get(slot as usize).map_or(0, |split| split.waiters.count);
            match self.admit(waiting, Begins::Nothing, &who, now) {
                // The query that made room was the only one that waited there.
                Ok(_) if !self.splits.contains(slot as usize) => self.take_split(who, now),
                Ok(cell) => {
                    let key = self.enqueue(who, cell, now);
                    if let Some(split) = self.splits.get_mut(slot as usize) {
                        chain(&mut self.waiters, &mut split.waiters, key, Home::Split(slot));
                    }
                }
                Err(failure) => self.events.push_back(Event::Rejected(who, failure)),
            }
            return;
        }
        let cell = match self.admit(0, Begins::Nothing, &who, now) {
            Ok(cell) if !self.is_stopping => cell,
            Ok(_) => return self.events.push_back(Event::Rejected(who, Failure::Stopping)),
            Err(failure) => return self.events.push_back(Event::Rejected(who, failure)),
        };
        self.counters.splits.bump();
        let ended = std::array::from_fn(|branch| who.take_ended(branch as u8));
        self.split_serial = self.split_serial.wrapping_add(1);
        let mut split = Split {
            serial: self.split_serial,
            progress,
            waiters: Waiters::NOBODY,
            ended,
            timer: TimerKey::NONE,
            shared,
        };
        let waiter = self.enqueue(who, cell, now);
        let slot = self.splits.vacant_key() as u32;
        chain(&mut self.waiters, &mut split.waiters, waiter, Home::Split(slot));
        let hash = split.shared.as_ref().map(|shared| shared.query.hash);
        let key = SplitKey { serial: split.serial, slot: self.splits.insert(split) as u32 };
        if let Some(hash) = hash {
            let splits = &self.splits;
            self.split_index.insert_unique(hash, key.slot, |&other| {
                splits
                    .get(other as usize)
                    .and_then(|other| other.shared.as_ref())
                    .map_or(0, |shared| shared.query.hash)
            });
        }
        // What came so far came from memory; these wait for something themselves.
        for branch in (0..BRANCHES_MAX as u8).filter(|&branch| progress.is_running(branch)) {
            self.counters.branches.bump();
            self.events.push_back(Event::Branch(key, branch));
        }
        self.drive_split(key, now);
    }

    /// Finds an undecided split of an equal query.
    fn equal_split(&self, shared: &SharedSplit) -> Option<u32> {
        let is_equal = |&slot: &u32| {
            self.splits.get(slot as usize).is_some_and(|split| split.shared.as_ref() == Some(shared))
        };
        self.split_index.find(shared.query.hash, is_equal).copied()
    }

    /// Returns one of those who wait for an undecided split.
    pub(crate) fn split_waiter(&mut self, key: SplitKey) -> Option<&mut W> {
        let split = self.splits.get(key.slot as usize).filter(|split| split.serial == key.serial)?;
        let first = split.waiters.first;
        self.waiter(first)
    }

    /// Notes how a branch ended, with the message it brought if it did. Does nothing when the split
    /// is decided.
    pub(crate) fn branch_ended(
        &mut self,
        key: SplitKey,
        branch: u8,
        report: BranchReport,
        message: &[u8],
        now: Moment,
    ) {
        let Some(split) = self.splits.get_mut(key.slot as usize).filter(|split| split.serial == key.serial)
        else {
            return;
        };
        split.progress.end(branch, &report);
        if let Some(slot) = split.ended.get_mut(usize::from(branch)).filter(|_| !message.is_empty()) {
            *slot = Some(EndedBranch { report, octets: message.into() });
        }
        self.drive_split(key, now);
    }

    /// Ends the time that a split gave its branches.
    pub(super) fn split_due(&mut self, slot: u32, now: Moment) {
        let Some(split) = self.splits.get_mut(slot as usize) else { return };
        split.timer = TimerKey::NONE;
        split.progress.due();
        let key = SplitKey { slot, serial: split.serial };
        self.drive_split(key, now);
    }

    /// Does what the rule says now.
    fn drive_split(&mut self, key: SplitKey, now: Moment) {
        // Ends: every round begins a branch, or is the last.
        loop {
            let Some(split) = self.splits.get_mut(key.slot as usize) else { return };
            let Some(first) = self.waiters.get(split.waiters.first as usize) else { return };
            match first.who.next(&split.progress) {
                Next::Begin(branch) => {
                    split.progress.begin(branch);
                    self.counters.branches.bump();
                    self.events.push_back(Event::Branch(key, branch));
                }
                Next::Wait(after_ms) => {
                    if let Some(ms) = after_ms
                        && split.timer == TimerKey::NONE
                    {
                        split.timer =
                            self.wheel.set(now + Span::from_ms(u64::from(ms)), Token::Split(key.slot));
                    }
                    return;
                }
                Next::Done(winner) => return self.finish_split(key.slot, winner),
            }
        }
    }

    /// Takes a split off the books; its branches go on by themselves.
    pub(super) fn forget_split(&mut self, slot: u32) -> Option<Split> {
        let split = self.splits.try_remove(slot as usize)?;
        self.wheel.cancel(split.timer);
        if let Some(shared) = &split.shared
            && let Ok(entry) = self.split_index.find_entry(shared.query.hash, |&other| other == slot)
        {
            entry.remove();
        }
        Some(split)
    }

    fn finish_split(&mut self, slot: u32, winner: Option<u8>) {
        let Some(mut split) = self.forget_split(slot) else { return };
        self.end_waiting(split.waiters.first);
        let ended =
            winner.and_then(|branch| Some((branch, split.ended.get_mut(usize::from(branch))?.take()?)));
        let ending = match ended {
            Some((branch, EndedBranch { report, octets })) => {
                Ending::Branch { branch, report, progress: split.progress, octets }
            }
            None => Ending::NoBranch {
                is_dropped: winner.is_some_and(|branch| split.progress.is_dropped(branch)),
            },
        };
        let waiters = WaiterList(split.waiters.first);
        self.events.push_back(Event::Finished(Finished { waiters, ending, from: None }));
    }

    /// Takes a query that waits for time to pass, or for its turn.
    pub(super) fn take_sleeper(&mut self, who: W, now: Moment) {
        let sleep_ms = if let Want::Sleep(ms) = *who.want() { Some(ms) } else { None };
        let cell = match self.admit(0, Begins::Nothing, &who, now) {
            Ok(cell) if !self.is_stopping => cell,
            Ok(_) => return self.events.push_back(Event::Rejected(who, Failure::Stopping)),
            Err(failure) => return self.events.push_back(Event::Rejected(who, failure)),
        };
        if sleep_ms == Some(0) {
            return self.events.push_back(Event::Slept(who));
        }
        let key = self.enqueue(who, cell, now);
        let Some(ms) = sleep_ms else {
            if let Some(entry) = self.waiters.get_mut(key as usize) {
                entry.home = Home::Turn;
            }
            return self.yielded.push_back(key);
        };
        let timer = self.wheel.set(now + Span::from_ms(u64::from(ms)), Token::Sleep(key));
        if let Some(entry) = self.waiters.get_mut(key as usize) {
            entry.timer = timer;
        }
    }

    /// Lets queries go on that wait for their turn: those that were there, so that one that yields
    /// again waits for the next time.
    pub(super) fn give_turns(&mut self) {
        for _ in 0..self.yielded.len().min(TURNS_MAX) {
            if let Some(key) = self.yielded.pop_front() {
                self.wake(key, Home::Turn);
            }
        }
    }

    /// Wakes a query that has slept, if it still waits there: it may have been shed.
    pub(super) fn wake(&mut self, key: u32, home: Home) {
        match self.waiters.get_mut(key as usize) {
            Some(entry) if entry.home == home => entry.timer = TimerKey::NONE,
            _ => return,
        }
        if let Some(who) = self.next_waiter(&mut WaiterList(key)) {
            self.events.push_back(Event::Slept(who));
        }
    }

    /// Ends all sleep, because the server stops.
    pub(super) fn wake_all(&mut self) {
        let asleep: Vec<u32> = self
            .waiters
            .iter()
            .filter(|(_, entry)| matches!(entry.home, Home::Sleep | Home::Turn))
            .map(|(key, _)| key as u32)
            .collect();
        self.yielded.clear();
        for key in asleep {
            if let Some(who) = self.next_waiter(&mut WaiterList(key)) {
                self.events.push_back(Event::Rejected(who, Failure::Stopping));
            }
        }
    }
}
