//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The numbers of one socket, for somebody on another thread.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::socket::{Counts, Frames, Statistics};

/// What a socket's owner last [told](crate::Socket::tell).
#[derive(Debug)]
pub struct Meter {
    queue: u32,
    values: [AtomicU64; NAMES.len()],
}

/// In the order of the values. What is lost was meant for us and dropped by the kernel.
const NAMES: [&str; 17] = [
    "received",
    "transmitted",
    "kicks",
    "kicks-again",
    "kicks-failed",
    "strays",
    "frames-free",
    "frames-held",
    "frames-filling",
    "frames-sending",
    "lost-otherwise",
    "lost-ring-full",
    "lost-no-frame",
    "fill-invalid",
    "transmit-invalid",
    "transmit-empty",
    "ring-entries",
];

/// The value that is known from the start.
const RING_ENTRIES: usize = NAMES.len() - 1;

impl Meter {
    pub(crate) fn new(queue: u32, ring_entries: u32) -> Self {
        let first = |at| if at == RING_ENTRIES { u64::from(ring_entries) } else { 0 };
        Self { queue, values: std::array::from_fn(|at| AtomicU64::new(first(at))) }
    }

    /// Returns the queue of the socket.
    pub const fn queue(&self) -> u32 {
        self.queue
    }

    /// Returns all numbers with their names: packets and system calls since the start, frames as
    /// they were.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.iter().zip(&self.values).map(|(name, value)| (*name, value.load(Ordering::Relaxed)))
    }

    pub(crate) fn write(&self, counts: Counts, frames: Frames, statistics: Statistics) {
        let values = [
            counts.received,
            counts.transmitted,
            counts.kicks,
            counts.kicks_again,
            counts.kicks_failed,
            counts.strays,
            u64::from(frames.free),
            u64::from(frames.held),
            u64::from(frames.filling),
            u64::from(frames.sending),
            statistics.receive_dropped,
            statistics.receive_ring_full,
            statistics.fill_ring_empty,
            statistics.fill_invalid,
            statistics.transmit_invalid,
            statistics.transmit_ring_empty,
        ];
        for (cell, value) in self.values.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
    }
}
