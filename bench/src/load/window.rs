//! Which queries are in flight, and what became of each: the same books for every transport.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use wire::Header;

use super::{Expect, Plan, SLICE, Slice, Tally, Until};
use crate::queries::{Dice, Packets};

/// Times a query is asked again when every one must be answered.
const RETRIES_MAX: u32 = 20;

#[derive(Clone, Copy, Default)]
struct Slot {
    sent_ns: u64,
    query: u32,
    id: u16,
    busy: bool,
}

/// The queries one client has in flight.
struct Window {
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Bits of an ID that name the slot; the others tell its uses apart.
    slot_bits: u32,
    uses: u16,
}

impl Window {
    fn new(size: usize, uses: u16) -> Self {
        let size = size.clamp(1, 1 << 16);
        Self {
            slots: vec![Slot::default(); size],
            free: (0..size).rev().map(|slot| slot as u16).collect(),
            slot_bits: size.next_power_of_two().trailing_zeros(),
            uses,
        }
    }

    fn next_id(&mut self, slot: u16) -> u16 {
        self.uses = self.uses.wrapping_add(1);
        (u32::from(self.uses) << self.slot_bits) as u16 | slot
    }

    fn slot_of(&self, id: u16) -> usize {
        (u32::from(id) & ((1 << self.slot_bits) - 1)) as usize
    }
}

/// Which query comes next.
struct Order {
    shuffled: Option<Vec<u32>>,
    count: usize,
    at: usize,
    again: VecDeque<u32>,
    ends: bool,
}

impl Order {
    fn new(count: usize, shuffle: Option<u64>, begin_at: usize, until: Until) -> Self {
        let shuffled = shuffle.map(|seed| {
            let mut order: Vec<u32> = (0..count as u32).collect();
            Dice::new(seed).shuffle(&mut order);
            order
        });
        let ends = !matches!(until, Until::Elapsed(_));
        Self { shuffled, count, at: begin_at % count.max(1), again: VecDeque::new(), ends }
    }

    fn next(&mut self) -> Option<u32> {
        if let Some(query) = self.again.pop_front() {
            return Some(query);
        }
        if self.at == self.count {
            if self.ends {
                return None;
            }
            self.at = 0;
        }
        let query = self.shuffled.as_ref().map_or(self.at as u32, |order| order[self.at]);
        self.at += 1;
        Some(query)
    }
}

/// The books of a run.
pub(super) struct Books<'a> {
    plan: &'a Plan,
    packets: &'a Packets,
    windows: Vec<Window>,
    order: Order,
    tally: Tally,
    in_flight: usize,
    begun: Instant,
    last_answer_ns: u64,
    /// Queries due so far when sending at a rate.
    scheduled: u64,
    retries: u64,
}

impl<'a> Books<'a> {
    /// Opens the books for `clients` that share the plan's queries in flight; time runs from now.
    pub(super) fn new(plan: &'a Plan, packets: &'a Packets, clients: usize) -> Self {
        let mut dice = Dice::new(plan.shuffle.unwrap_or(1));
        let window = |client| plan.outstanding / clients + usize::from(client < plan.outstanding % clients);
        Self {
            windows: (0..clients).map(|client| Window::new(window(client), dice.roll() as u16)).collect(),
            order: Order::new(packets.len(), plan.shuffle, plan.begin_at, plan.until),
            tally: Tally::default(),
            in_flight: 0,
            begun: Instant::now(),
            last_answer_ns: 0,
            scheduled: 0,
            retries: 0,
            plan,
            packets,
        }
    }

    /// Returns the nanoseconds since the run began.
    pub(super) fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Returns how many queries `client` may send now, by its window and the rate.
    pub(super) fn room(&self, client: usize, now_ns: u64) -> usize {
        let room = self.windows[client].free.len();
        match self.plan.rate {
            Some(rate) => {
                let due = (now_ns as f64 * rate / 1e9) as u64 + 1;
                let share = due.saturating_sub(self.scheduled).div_ceil(self.windows.len() as u64);
                room.min(share as usize)
            }
            None => room,
        }
    }

    /// Enters the next query of `client`; returns its ID and its number, or `None` if there is
    /// nothing to ask.
    pub(super) fn next(&mut self, client: usize, now_ns: u64) -> Option<(u16, usize)> {
        let window = &mut self.windows[client];
        let &slot = window.free.last()?;
        let query = self.order.next()?;
        window.free.pop();
        let id = window.next_id(slot);
        let sent_ns = match self.plan.rate {
            // Latency counts from when the query was due, so that a stall is not hidden.
            Some(rate) => (self.scheduled as f64 * 1e9 / rate) as u64,
            None => now_ns,
        };
        self.scheduled += 1;
        window.slots[usize::from(slot)] = Slot { sent_ns, query, id, busy: true };
        self.tally.sent += 1;
        self.in_flight += 1;
        Some((id, query as usize))
    }

    /// Enters what came back to `client`.
    pub(super) fn settle(&mut self, client: usize, reply: &[u8], now_ns: u64) {
        let window = &mut self.windows[client];
        let Some((&[id0, id1, flags0, flags1, _, questions, an0, an1], _)) = reply.split_first_chunk::<8>()
        else {
            self.tally.unexpected += 1;
            return;
        };
        let id = u16::from_be_bytes([id0, id1]);
        let at = window.slot_of(id);
        let Some(slot) = window.slots.get_mut(at).filter(|slot| slot.busy && slot.id == id) else {
            self.tally.unexpected += 1;
            return;
        };
        let question = self.packets.question(slot.query as usize);
        if questions != 1 || reply.get(Header::LEN..Header::LEN + question.len()) != Some(question) {
            self.tally.wrong_question += 1;
            return;
        }
        slot.busy = false;
        let latency_ns = now_ns.saturating_sub(slot.sent_ns);
        self.tally.in_flight += Duration::from_nanos(latency_ns);
        window.free.push(at as u16);
        self.in_flight -= 1;
        let is_right = flags0 & 0x80 != 0
            && match self.plan.expect {
                Expect::Echo => true,
                Expect::AsAsked(codes) => {
                    let expected = self.packets.expected(slot.query as usize);
                    flags1 & 0xf == codes[usize::from(expected.rcode & 0xf)]
                        && (!expected.records || an0 | an1 != 0)
                        && expected.agrees(reply)
                }
            };
        if is_right {
            self.tally.answered += 1;
            self.tally.latency.record(latency_ns);
            self.last_answer_ns = now_ns;
            let slice = slice_at(&mut self.tally.slices, now_ns);
            slice.answered += 1;
            slice.latency_max_ns = slice.latency_max_ns.max(latency_ns);
        } else {
            self.tally.wrong_content += 1;
            self.tally.wrong_rcodes[usize::from(flags1 & 0xf)] += 1;
            slice_at(&mut self.tally.slices, now_ns).wrong += 1;
            if matches!(self.plan.until, Until::EachAnswered(_)) {
                self.retries += 1;
                self.order.again.push_back(slot.query);
            }
        }
    }

    /// Gives up queries sent before `before_ns`.
    pub(super) fn sweep(&mut self, before_ns: u64) {
        for client in 0..self.windows.len() {
            self.give_up(client, before_ns);
        }
    }

    /// Gives up what `client` sent before `before_ns`: it was lost when it was sent.
    pub(super) fn give_up(&mut self, client: usize, before_ns: u64) {
        let now_ns = self.now_ns();
        let window = &mut self.windows[client];
        for (at, slot) in window.slots.iter_mut().enumerate() {
            if slot.busy && slot.sent_ns < before_ns {
                slot.busy = false;
                window.free.push(at as u16);
                self.in_flight -= 1;
                self.tally.in_flight += Duration::from_nanos(now_ns.saturating_sub(slot.sent_ns));
                self.tally.lost += 1;
                slice_at(&mut self.tally.slices, slot.sent_ns).lost += 1;
                if matches!(self.plan.until, Until::EachAnswered(_)) {
                    self.retries += 1;
                    self.order.again.push_back(slot.query);
                }
            }
        }
    }

    /// Returns whether no query is in flight and, unless `sending`, none will be.
    pub(super) fn is_done(&self, sending: bool) -> bool {
        let is_complete = self.order.ends && self.order.again.is_empty() && self.order.at == self.order.count;
        self.in_flight == 0 && (!sending || is_complete)
    }

    /// Returns whether `client` waits for nothing.
    pub(super) fn is_idle(&self, client: usize) -> bool {
        let window = &self.windows[client];
        window.free.len() == window.slots.len()
    }

    /// Returns whether asking again is hopeless.
    pub(super) fn gave_up(&self) -> bool {
        self.retries > u64::from(RETRIES_MAX) * self.order.count as u64
    }

    /// Returns whether the time of the next query has come, when sending at a rate.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.until_due(now_ns).is_some_and(|left| left.is_zero())
    }

    /// Returns how long it is until the next query is due, if they are sent at a rate.
    pub(super) fn until_due(&self, now_ns: u64) -> Option<Duration> {
        let due_ns = (self.scheduled as f64 * 1e9 / self.plan.rate?) as u64;
        Some(Duration::from_nanos(due_ns.saturating_sub(now_ns)))
    }

    /// Closes the books.
    pub(super) fn close(mut self) -> Tally {
        self.tally.elapsed = Duration::from_nanos(self.last_answer_ns.max(1));
        self.tally
    }
}

/// Returns the slice of time that holds `at_ns`.
fn slice_at(slices: &mut Vec<Slice>, at_ns: u64) -> &mut Slice {
    let at = (at_ns / SLICE.as_nanos() as u64) as usize;
    if at >= slices.len() {
        slices.resize(at + 1, Slice::default());
    }
    &mut slices[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_slot_and_differs_from_the_last_use() {
        let mut window = Window::new(10, 7);
        let (first, second) = (window.next_id(9), window.next_id(9));
        assert_eq!((window.slot_of(first), window.slot_of(second)), (9, 9));
        assert_ne!(first, second);
    }

    #[test]
    fn a_run_over_each_query_ends() {
        let mut order = Order::new(3, Some(5), 0, Until::EachOnce(Duration::ZERO));
        let mut asked: Vec<u32> = std::iter::from_fn(|| order.next()).collect();
        asked.sort_unstable();
        assert_eq!(asked, [0, 1, 2]);
    }
}
