//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The order of addresses, and how many there are. Clients try the first one first.

use std::net::IpAddr;

use wire::{Full, Rtype, Section};

use super::addresses::{address, is_address};
use super::{Draft, Place};

/// Addresses of one RRset that are put in order; further ones stay behind them as they came.
pub const ADDRESSES_MAX: usize = 64;

/// How to order the addresses of an RRset.
#[derive(Clone, Copy)]
pub enum Order<F> {
    /// By rank, the smallest first; those of equal rank as they came.
    Ranked(F),
    /// Rotated to the left by so many places, modulo how many there are.
    Rotated(u64),
}

impl Draft<'_> {
    /// Puts the addresses of each RRset of the answer section in order. Only their data changes
    /// places.
    #[expect(clippy::needless_pass_by_value, reason = "an order is made where it is used")]
    pub fn order(&mut self, order: Order<impl Fn(IpAddr) -> u32>) {
        let mut group = Group::EMPTY;
        let mut walk = self.shape.walk();
        while let Some(place) = walk.step(self.message) {
            let is_address = place.section == Section::Answer && is_address(self.message, &place).is_some();
            if !is_address {
                continue;
            }
            if !group.takes(self.message, &place) {
                group.arrange(self.message, &order);
                group = Group::EMPTY;
            }
            group.add(&place);
        }
        group.arrange(self.message, &order);
    }

    /// Leaves at most `limit` addresses of each kind in the answer section, the first ones. Returns
    /// whether any went.
    pub fn limit(&mut self, limit: u16) -> Result<bool, Full> {
        let mut counts = [0_u16; 2];
        self.each(|_, place| {
            if place.section == Section::Answer
                && let Some(count) = of_kind(&mut counts, place.rtype)
            {
                *count = count.saturating_add(1);
            }
        });
        let [is_v4_cut, is_v6_cut] = counts.map(|count| count > limit);
        if !is_v4_cut && !is_v6_cut {
            return Ok(false);
        }
        let mut kept = [0_u16; 2];
        self.retain(|message, place| {
            if place.section != Section::Answer {
                return true;
            }
            match (place.covers(message), of_kind(&mut kept, place.rtype)) {
                // A signature over more than there is convinces nobody.
                (Some(Rtype::A), _) => !is_v4_cut,
                (Some(Rtype::AAAA), _) => !is_v6_cut,
                (_, Some(count)) => {
                    *count = count.saturating_add(1);
                    *count <= limit
                }
                _ => true,
            }
        })
    }
}

fn of_kind(counts: &mut [u16; 2], rtype: Rtype) -> Option<&mut u16> {
    let [v4, v6] = counts;
    match rtype {
        Rtype::A => Some(v4),
        Rtype::AAAA => Some(v6),
        _ => None,
    }
}

/// Addresses of one RRset.
struct Group {
    first: Option<Place>,
    data_at: [usize; ADDRESSES_MAX],
    count: usize,
}

impl Group {
    const EMPTY: Self = Self { first: None, data_at: [0; ADDRESSES_MAX], count: 0 };

    /// Returns whether the record belongs to the RRset.
    fn takes(&self, message: &[u8], place: &Place) -> bool {
        let Some(first) = &self.first else { return true };
        if first.rtype != place.rtype {
            return false;
        }
        let owner = |place: &Place| message.get(place.at..place.fixed_at);
        // Nearly always the same pointer.
        owner(first) == owner(place)
            || match (first.record(message).owner.expand(), place.record(message).owner.expand()) {
                (Ok(one), Ok(other)) => one == other,
                _ => false,
            }
    }

    fn add(&mut self, place: &Place) {
        self.first.get_or_insert(*place);
        if let Some(slot) = self.data_at.get_mut(self.count) {
            *slot = place.rdata_at();
            self.count += 1;
        }
    }

    fn arrange(&self, message: &mut [u8], order: &Order<impl Fn(IpAddr) -> u32>) {
        let Some(first) = &self.first else { return };
        let octets = first.end - first.rdata_at();
        let places = self.data_at.get(..self.count).unwrap_or(&[]);
        if places.len() < 2 {
            return;
        }
        let mut list = [(0_u64, [0_u8; 16]); ADDRESSES_MAX];
        let Some(list) = list.get_mut(..places.len()) else { return };
        for (index, (entry, &at)) in list.iter_mut().zip(places).enumerate() {
            let Some(data) = message.get(at..at + octets) else { return };
            if let Some(room) = entry.1.get_mut(..octets) {
                room.copy_from_slice(data);
            }
            if let Order::Ranked(rank) = order
                && let Some(address) = address(first.rtype, data)
            {
                // The place in the list makes equal ranks keep their order.
                entry.0 = u64::from(rank(address)) << 32 | index as u64;
            }
        }
        match order {
            Order::Ranked(_) => list.sort_unstable_by_key(|entry| entry.0),
            Order::Rotated(by) => list.rotate_left((by % places.len() as u64) as usize),
        }
        for (entry, &at) in list.iter().zip(places) {
            if let (Some(room), Some(data)) = (message.get_mut(at..at + octets), entry.1.get(..octets)) {
                room.copy_from_slice(data);
            }
        }
    }
}
