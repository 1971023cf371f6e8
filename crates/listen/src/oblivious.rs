//! The keys of an oblivious target (RFC 9230): shared by all workers, changed now and then.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use odoh::{ResponseContext, Target, Wrong};

/// Keys that clients may still use: the newest, and the one before it, which those have who asked
/// for it just before.
#[derive(Clone)]
struct Ring {
    newest: Arc<Target>,
    before: Option<Arc<Target>>,
    /// When the newest was made.
    made_ms: u64,
}

/// The keys, which nobody else has: after a restart clients have to fetch the new one.
pub(crate) struct ObliviousKeys {
    ring: RwLock<Ring>,
    lifetime_ms: u64,
}

impl fmt::Debug for ObliviousKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObliviousKeys(…)")
    }
}

impl ObliviousKeys {
    /// Makes the first key; each is the newest for so long.
    pub(crate) fn new(lifetime: Duration) -> Result<Self, Wrong> {
        let ring = Ring { newest: Arc::new(Target::generate()?), before: None, made_ms: 0 };
        Ok(Self {
            ring: RwLock::new(ring),
            lifetime_ms: u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).max(1),
        })
    }

    /// Returns the keys as they are at a time, after changing them if it is time.
    fn at(&self, now_ms: u64) -> Result<Ring, Wrong> {
        let is_due = |ring: &Ring| now_ms.saturating_sub(ring.made_ms) >= self.lifetime_ms;
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner).clone();
        if !is_due(&ring) {
            return Ok(ring);
        }
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        // Another worker may have been faster.
        if is_due(&ring) {
            // A key that nobody was given for a whole lifetime is not worth keeping.
            let is_recent = now_ms.saturating_sub(ring.made_ms) < 2 * self.lifetime_ms;
            let old = Arc::clone(&ring.newest);
            *ring = Ring {
                newest: Arc::new(Target::generate()?),
                before: is_recent.then_some(old),
                made_ms: now_ms,
            };
        }
        Ok(ring.clone())
    }

    /// Returns the key configurations, as clients fetch them (RFC 9230 §5).
    pub(crate) fn configs(&self, now_ms: u64) -> Result<Vec<u8>, Wrong> {
        Ok(self.at(now_ms)?.newest.configs())
    }

    /// Decrypts a query; returns the DNS message and what its response is encrypted with.
    pub(crate) fn open(&self, query: &[u8], now_ms: u64) -> Result<(Vec<u8>, ResponseContext), Wrong> {
        let ring = self.at(now_ms)?;
        match (ring.newest.open(query), &ring.before) {
            (Err(Wrong::Key), Some(before)) => before.open(query),
            (opened, _) => opened,
        }
    }

    /// Returns for how many seconds more the newest key is that.
    pub(crate) fn fresh_seconds(&self, now_ms: u64) -> u64 {
        let made_ms = self.ring.read().unwrap_or_else(PoisonError::into_inner).made_ms;
        self.lifetime_ms.saturating_sub(now_ms.saturating_sub(made_ms)) / 1000
    }
}

#[cfg(test)]
mod tests {
    use odoh::Client;

    use super::*;

    #[test]
    fn a_key_opens_what_was_sealed_for_it_until_its_successor_is_replaced() {
        let keys = ObliviousKeys::new(Duration::from_secs(100)).expect("a key");
        let client = |now_ms| {
            let configs = keys.configs(now_ms).expect("a key");
            Client::from_configs(&configs).expect("a configuration")
        };
        let first = client(0);
        let opens = |client: &Client, now_ms| {
            let (sealed, context) = client.seal(b"a question").expect("sealed");
            let (query, response) = keys.open(&sealed, now_ms)?;
            assert_eq!(query, b"a question");
            let sealed = response.seal(b"an answer").expect("sealed");
            assert_eq!(context.open(&sealed), Ok(b"an answer".to_vec()));
            Ok(())
        };
        assert_eq!(opens(&first, 99_000), Ok(()));
        assert_eq!(keys.fresh_seconds(99_000), 1);
        assert_eq!(opens(&first, 100_000), Ok(()), "the key before");
        let second = client(150_000);
        assert_eq!(opens(&second, 150_000), Ok(()));
        assert_eq!(opens(&first, 199_000), Ok(()));
        assert_eq!(opens(&second, 250_000), Ok(()));
        assert_eq!(opens(&first, 250_000), Err(Wrong::Key));
        assert_eq!(opens(&second, 900_000), Err(Wrong::Key), "nobody was given it for long");
    }
}
