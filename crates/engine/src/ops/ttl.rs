//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `ttl(…)`: rewrites the TTLs of an answer. What is cached is the rewritten answer.

use wire::Ttl;

/// Rewrites TTLs. One variant per meaning, so "fixed and clamped" cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlRule {
    /// Every record gets this TTL.
    Fixed(Ttl),
    /// Every TTL is brought within these bounds.
    Clamped {
        /// No TTL is smaller.
        min: Ttl,
        /// No TTL is larger.
        max: Ttl,
    },
}

impl TtlRule {
    /// Returns what becomes of one TTL.
    #[must_use]
    pub fn apply(self, ttl: Ttl) -> Ttl {
        match self {
            Self::Fixed(fixed) => fixed,
            Self::Clamped { min, max } => ttl.min(max).max(min),
        }
    }

    /// Rewrites the TTL fields of `body` that start at `offsets`; returns the smallest TTL there is
    /// afterwards.
    pub(crate) fn rewrite(self, body: &mut [u8], offsets: &[u16]) -> Option<Ttl> {
        let mut smallest: Option<Ttl> = None;
        for &offset in offsets {
            if let Some(field) = ttl_field(body, offset) {
                let ttl = self.apply(Ttl::new(u32::from_be_bytes(*field)));
                *field = ttl.seconds().to_be_bytes();
                smallest = Some(smallest.map_or(ttl, |other| other.min(ttl)));
            }
        }
        smallest
    }
}

/// Returns the four octets of the TTL field at `offset`.
pub(crate) fn ttl_field(body: &mut [u8], offset: u16) -> Option<&mut [u8; 4]> {
    body.get_mut(usize::from(offset)..)?.first_chunk_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: TtlRule, before: u32, after: u32) {
        let mut body = [0xff; 10];
        let (_, field) = body.split_at_mut(3);
        field.first_chunk_mut::<4>().expect("four octets").copy_from_slice(&before.to_be_bytes());
        assert_eq!(rule.rewrite(&mut body, &[3]), Some(Ttl::new(after)));
        assert_eq!(ttl_field(&mut body, 3).map(|field| u32::from_be_bytes(*field)), Some(after));
        assert_eq!(body.first(), Some(&0xff), "nothing else changes");
    }

    #[test]
    fn ttls_are_fixed_or_brought_within_bounds() {
        let clamped = TtlRule::Clamped { min: Ttl::new(60), max: Ttl::new(600) };
        check(TtlRule::Fixed(Ttl::new(5)), 300, 5);
        check(clamped, 300, 300);
        check(clamped, 3, 60);
        check(clamped, 3000, 600);
        check(clamped, 0x8000_0000, 60); // RFC 2181 §8: reads as zero.
    }
}
