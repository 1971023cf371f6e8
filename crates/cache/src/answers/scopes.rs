//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! For how many bits of clients' subnets answers were (RFC 7871 §7.3.1): the lengths that a look-up
//! has to try.

use std::sync::atomic::{AtomicU64, Ordering};

/// One bit for each length of a prefix, of IPv4 and of IPv6. Lengths beyond 63 are never shared.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    v4: AtomicU64,
    v6: AtomicU64,
}

impl Scopes {
    fn of(&self, family: u8) -> &AtomicU64 {
        if family == 1 { &self.v4 } else { &self.v6 }
    }

    /// Notes that an answer is for this many bits; returns whether look-ups will find it.
    pub(super) fn note(&self, family: u8, bits: u8) -> bool {
        let Some(bit) = 1_u64.checked_shl(bits.into()) else { return false };
        let lengths = self.of(family);
        if lengths.load(Ordering::Relaxed) & bit == 0 {
            lengths.fetch_or(bit, Ordering::Relaxed);
        }
        true
    }

    /// Returns the lengths that answers were for, up to `most`, the longest first.
    pub(super) fn lengths(&self, family: u8, most: u8) -> impl Iterator<Item = u8> {
        let kept = u64::MAX.checked_shr(63_u32.saturating_sub(most.into())).unwrap_or(0);
        let mut left = self.of(family).load(Ordering::Relaxed) & kept;
        std::iter::from_fn(move || {
            let length = 63_u32.checked_sub(left.leading_zeros())?;
            left &= !(1 << length);
            Some(length as u8)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_length_comes_first() {
        let scopes = Scopes::default();
        assert!([16, 24, 0, 20].iter().all(|&bits| scopes.note(1, bits)) && scopes.note(2, 56));
        let lengths = |family, most| scopes.lengths(family, most).collect::<Vec<u8>>();
        assert_eq!(lengths(1, 32), [24, 20, 16, 0]);
        assert_eq!(lengths(1, 23), [20, 16, 0]);
        assert_eq!(lengths(1, 0), [0]);
        assert_eq!((lengths(2, 128), lengths(2, 55)), (vec![56], vec![]));
        assert!(!scopes.note(2, 64), "nobody shares so little");
    }
}
