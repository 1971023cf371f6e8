//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! How often something comes: a client's prefix, a name, a type, everything. Counted in a fixed
//! table that all workers share, by the generic cell rate algorithm: a cell holds the time until
//! which its allowance is used up.
//!
//! More things than there are cells make the table forget the ones that were quiet for longest; it
//! never grows.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Facts;

/// Cells of one row: things whose hashes meet there before one of them is forgotten.
const WAYS: usize = 4;
/// Rows of a table: 64 octets each, a mebibyte in all.
const ROWS: usize = 1 << 14;
/// Nanoseconds of a millisecond, in which the engine's clock ticks.
const MILLISECOND: u64 = 1_000_000;

/// What is counted, one bit each; several are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The client's prefix: leading bits of an IPv4 and of an IPv6 address.
    pub client: Option<(u8, u8)>,
    /// The name asked for: its last so many labels, or all of them with 0.
    pub qname: Option<u8>,
    /// The type asked for.
    pub qtype: bool,
    /// The listener.
    pub listener: bool,
}

/// A rate that is not to be exceeded.
pub struct Rate {
    subject: Subject,
    /// Nanoseconds that one query uses up.
    cost: u64,
    /// Nanoseconds that may be used up in advance.
    allowance: u64,
    cells: Arc<RateCells>,
}

/// What was counted so far.
pub struct RateCells(Box<[[Cell; WAYS]]>);

#[derive(Default)]
struct Cell {
    /// The hash of what is counted here; zero: nothing.
    tag: AtomicU64,
    /// Nanoseconds of the engine's clock until which the allowance is used up.
    used_until: AtomicU64,
}

const _: () = assert!(size_of::<[Cell; WAYS]>() == 64);

impl Default for RateCells {
    // Once per configuration.
    fn default() -> Self {
        Self((0..ROWS).map(|_| std::array::from_fn(|_| Cell::default())).collect())
    }
}

impl Rate {
    /// Returns a rate of `count` in `period_ms`, with `burst` at once.
    // Once per configuration.
    pub fn new(subject: Subject, count: u32, period_ms: u64, burst: u32, cells: Arc<RateCells>) -> Self {
        let cost = (period_ms * MILLISECOND / u64::from(count.max(1))).max(1);
        Self { subject, cost, allowance: cost * u64::from(burst.max(1)), cells }
    }

    /// Counts the query; returns whether it is one too many.
    pub(super) fn is_exceeded(&self, facts: &Facts<'_>) -> bool {
        let hash = self.subject.hash(facts);
        let row_at = hash as usize & (ROWS - 1);
        let Some(row) = self.cells.0.get(row_at) else { return false };
        let tag = hash | 1;
        let now = facts.env.now.monotonic_ms.wrapping_mul(MILLISECOND);
        // The cell of this thing, or else the one whose thing has been quiet for longest.
        let mut chosen: Option<(&Cell, u64)> = None;
        let mut is_known = false;
        for cell in row {
            let used_until = cell.used_until.load(Ordering::Relaxed);
            if cell.tag.load(Ordering::Relaxed) == tag {
                chosen = Some((cell, used_until));
                is_known = true;
                break;
            }
            if chosen.is_none_or(|(_, oldest)| used_until < oldest) {
                chosen = Some((cell, used_until));
            }
        }
        let Some((cell, found)) = chosen else { return false };
        let used_until = if is_known { found.max(now) } else { now };
        if used_until + self.cost > now + self.allowance {
            return true;
        }
        if !is_known {
            cell.tag.store(tag, Ordering::Relaxed);
        }
        // When another worker was faster, its query was counted and this one goes free: cheaper
        // than a retry.
        let _ = cell.used_until.compare_exchange(
            found,
            used_until + self.cost,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        false
    }
}

impl Subject {
    fn hash(self, facts: &Facts<'_>) -> u64 {
        let key = facts.env.key;
        let mut hash = 0x6761_6e6e_6574;
        if let Some((v4, v6)) = self.client {
            let (high, low) = match facts.client_address() {
                IpAddr::V4(address) => {
                    (4, u64::from(address.to_bits() & u32::MAX.checked_shl(32 - u32::from(v4)).unwrap_or(0)))
                }
                IpAddr::V6(address) => {
                    let kept = address.to_bits() & u128::MAX.checked_shl(128 - u32::from(v6)).unwrap_or(0);
                    ((kept >> 64) as u64, kept as u64)
                }
            };
            hash = key.mix(key.mix(hash, low), high);
        }
        match self.qname {
            Some(0) => hash = key.mix(hash, facts.request.sought.hash()),
            Some(labels) => {
                let name = facts.request.sought.name();
                let name = name.suffix(usize::from(labels).min(name.label_count()));
                hash = key.mix(hash, key.hash_name(name));
            }
            None => {}
        }
        if self.qtype {
            hash = key.mix(hash, u64::from(facts.qtype().0));
        }
        if self.listener {
            hash = key.mix(hash, u64::from(facts.request.client.listener.0));
        }
        hash
    }
}
