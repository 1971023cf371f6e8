//! How often somebody may ask: buckets that fill as time goes by.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Requests in a second.
const PER_SECOND: f64 = 30.0;
/// Requests at once.
const AT_ONCE: f64 = 60.0;
/// Requests that a failure counts for: whoever guesses is slowed, and nobody is locked out.
const FAILURE: f64 = 10.0;
/// Askers that are told apart; what is beyond shares one bucket.
const ASKERS_MAX: usize = 4096;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asker {
    /// Somebody without a token, by a prefix of their address: a /24, or a /56.
    Stranger(IpAddr),
    /// A token, by its name.
    Known(String),
    /// All strangers for whom there was no room.
    Others,
}

impl Asker {
    /// Returns who asks from an address.
    pub(crate) fn stranger(address: IpAddr) -> Self {
        Self::Stranger(control::network_of(address))
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn filled(self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + since * PER_SECOND).min(AT_ONCE)
    }
}

/// All buckets.
#[derive(Debug, Default)]
pub(crate) struct Limits(Mutex<HashMap<Asker, Bucket>>);

impl Limits {
    fn buckets(&self) -> MutexGuard<'_, HashMap<Asker, Bucket>> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one request from an asker's bucket.
    ///
    /// # Errors
    ///
    /// It is empty; how long it takes until there is one again.
    pub(crate) fn admit(&self, asker: &Asker, now: Instant) -> Result<(), Duration> {
        self.take(asker, 1.0, now)
    }

    /// Notes that somebody showed something that is no token.
    pub(crate) fn note_failure(&self, asker: &Asker, now: Instant) {
        // What is owed is paid by waiting.
        let _ = self.take(asker, FAILURE, now);
    }

    fn take(&self, asker: &Asker, cost: f64, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets();
        if !buckets.contains_key(asker) && buckets.len() >= ASKERS_MAX {
            // Who has a full bucket is as one who was never here.
            buckets.retain(|_, bucket| bucket.filled(now) < AT_ONCE);
        }
        let is_stranger = !matches!(asker, Asker::Known(_));
        let asker = match is_stranger && !buckets.contains_key(asker) && buckets.len() >= ASKERS_MAX {
            true => Asker::Others,
            false => asker.clone(),
        };
        let bucket = buckets.entry(asker).or_insert(Bucket { left: AT_ONCE, at: now });
        let left = bucket.filled(now);
        if left < 1.0 {
            *bucket = Bucket { left, at: now };
            return Err(Duration::from_secs_f64((1.0 - left) / PER_SECOND));
        }
        *bucket = Bucket { left: (left - cost).max(0.0), at: now };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn stranger(address: &str) -> Asker {
        Asker::stranger(address.parse().expect("an address"))
    }

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let (limits, now) = (Limits::default(), Instant::now());
        let one = stranger("192.0.2.1");
        for _ in 0..60 {
            assert!(limits.admit(&one, now).is_ok());
        }
        assert!(limits.admit(&one, now).is_err_and(|wait| wait <= Duration::from_millis(34)));
        assert!(limits.admit(&stranger("192.0.2.200"), now).is_err(), "the neighbours share it");
        assert!(limits.admit(&stranger("192.0.3.1"), now).is_ok(), "others do not");
        assert!(limits.admit(&Asker::Known("mine".to_owned()), now).is_ok());
        assert!(limits.admit(&one, now + Duration::from_millis(40)).is_ok());
    }

    #[test]
    fn who_guesses_is_slowed_and_never_locked_out() {
        let (limits, now) = (Limits::default(), Instant::now());
        let one = stranger("2001:db8:0:1::1");
        for _ in 0..1_000 {
            limits.note_failure(&one, now);
        }
        assert!(limits.admit(&stranger("2001:db8:0:ff::2"), now).is_err());
        assert!(limits.admit(&stranger("2001:db8:0:100::2"), now).is_ok());
        assert!(limits.admit(&one, now + Duration::from_millis(40)).is_ok());
    }

    #[test]
    fn many_strangers_take_no_more_memory_and_nothing_from_who_is_known() {
        let (limits, now) = (Limits::default(), Instant::now());
        for number in 0..10_000_u32 {
            let address = IpAddr::from(Ipv4Addr::from_bits(number << 8));
            let _ = limits.admit(&Asker::stranger(address), now);
        }
        assert!(limits.buckets().len() <= ASKERS_MAX + 1);
        assert!(limits.admit(&stranger("203.0.113.1"), now).is_err(), "they share what is left");
        assert!(limits.admit(&Asker::Known("mine".to_owned()), now).is_ok());
    }
}
