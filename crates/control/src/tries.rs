//! How often somebody may try to log in: guessing is slow, and nobody is locked out.
//!
//! A try takes from the bucket of its prefix, and from that of the account. Where the account's is
//! empty, because somebody else guesses, each prefix still has tries of its own for it: so nobody
//! can keep an owner out by guessing. Prefixes that an account was logged in from have a bucket for
//! it that no stranger empties.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tries at once, and in a second, of a prefix.
const PREFIX: Rate = Rate { at_once: 10.0, per_second: 0.5 };
/// Of an account, from anywhere.
const ACCOUNT: Rate = Rate { at_once: 10.0, per_second: 1.0 };
/// Of a prefix for an account, when that has none left.
const PAIR: Rate = Rate { at_once: 2.0, per_second: 1.0 / 60.0 };
/// Of a prefix for an account that was logged in from there before.
const TRUSTED: Rate = Rate { at_once: 10.0, per_second: 1.0 };
/// One-time codes for an account, behind its password: of a million numbers three are right.
const CODE: Rate = Rate { at_once: 5.0, per_second: 1.0 / 300.0 };
/// Buckets of each kind that are told apart; what is beyond shares one.
const BUCKETS_MAX: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Rate {
    at_once: f64,
    per_second: f64,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn filled(self, rate: Rate, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + since * rate.per_second).min(rate.at_once)
    }
}

/// Buckets of one kind.
#[derive(Debug)]
struct Buckets<K> {
    rate: Rate,
    by_key: HashMap<Option<K>, Bucket>,
}

impl<K: Clone + Eq + Hash> Buckets<K> {
    fn new(rate: Rate) -> Self {
        Self { rate, by_key: HashMap::new() }
    }

    /// Returns the key whose bucket counts: its own, or that of all for whom there is no room.
    fn place(&mut self, key: K, now: Instant) -> Option<K> {
        let key = Some(key);
        if !self.by_key.contains_key(&key) && self.by_key.len() >= BUCKETS_MAX {
            // Who has a full bucket is as one who was never here.
            let rate = self.rate;
            self.by_key.retain(|_, bucket| bucket.filled(rate, now) < rate.at_once);
            if self.by_key.len() >= BUCKETS_MAX {
                return None;
            }
        }
        key
    }

    /// Returns how long it is until a try is left; zero if one is.
    fn wait(&self, key: Option<&K>, now: Instant) -> Duration {
        let Some(bucket) = self.by_key.get(&key.cloned()) else { return Duration::ZERO };
        let missing = 1.0 - bucket.filled(self.rate, now);
        Duration::from_secs_f64((missing / self.rate.per_second).max(0.0))
    }

    fn take(&mut self, key: Option<K>, now: Instant) {
        let rate = self.rate;
        let bucket = self.by_key.entry(key).or_insert(Bucket { left: rate.at_once, at: now });
        *bucket = Bucket { left: (bucket.filled(rate, now) - 1.0).max(0.0), at: now };
    }
}

#[derive(Debug)]
struct Table {
    prefixes: Buckets<IpAddr>,
    accounts: Buckets<String>,
    pairs: Buckets<(String, IpAddr)>,
    trusted: Buckets<(String, IpAddr)>,
    codes: Buckets<String>,
}

/// Who has tried to log in lately.
#[derive(Debug)]
pub struct Tries(Mutex<Table>);

impl Default for Tries {
    fn default() -> Self {
        Self(Mutex::new(Table {
            prefixes: Buckets::new(PREFIX),
            accounts: Buckets::new(ACCOUNT),
            pairs: Buckets::new(PAIR),
            trusted: Buckets::new(TRUSTED),
            codes: Buckets::new(CODE),
        }))
    }
}

impl Tries {
    fn table(&self) -> MutexGuard<'_, Table> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a try from a prefix for an account, which may not exist.
    ///
    /// # Errors
    ///
    /// There is none left; how long it takes until there is one.
    pub fn admit(
        &self,
        (account, prefix): (&str, IpAddr),
        is_trusted: bool,
        now: Instant,
    ) -> Result<(), Duration> {
        let Table { prefixes, accounts, pairs, trusted, codes: _ } = &mut *self.table();
        let pair = (account.to_owned(), prefix);
        if is_trusted {
            let place = trusted.place(pair, now);
            let wait = trusted.wait(place.as_ref(), now);
            if wait.is_zero() {
                trusted.take(place, now);
            }
            return as_result(wait);
        }
        let of_prefix = prefixes.place(prefix, now);
        let wait = prefixes.wait(of_prefix.as_ref(), now);
        if !wait.is_zero() {
            return Err(wait);
        }
        let of_account = accounts.place(account.to_owned(), now);
        let wait = accounts.wait(of_account.as_ref(), now);
        if wait.is_zero() {
            accounts.take(of_account, now);
        } else {
            let of_pair = pairs.place(pair, now);
            let own = pairs.wait(of_pair.as_ref(), now);
            if !own.is_zero() {
                return Err(wait.min(own));
            }
            pairs.take(of_pair, now);
        }
        prefixes.take(of_prefix, now);
        Ok(())
    }

    /// Takes a try of a one-time code for an account whose password was right.
    ///
    /// # Errors
    ///
    /// There is none left; how long it takes until there is one.
    pub fn admit_code(&self, account: &str, now: Instant) -> Result<(), Duration> {
        let codes = &mut self.table().codes;
        let place = codes.place(account.to_owned(), now);
        let wait = codes.wait(place.as_ref(), now);
        if wait.is_zero() {
            codes.take(place, now);
        }
        as_result(wait)
    }

    /// Gives an account all its tries of one-time codes back.
    pub fn code_was_right(&self, account: &str) {
        self.table().codes.by_key.remove(&Some(account.to_owned()));
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        let table = self.table();
        let counts = [
            table.prefixes.by_key.len(),
            table.accounts.by_key.len(),
            table.pairs.by_key.len(),
            table.trusted.by_key.len(),
        ];
        counts.into_iter().max().unwrap_or(0)
    }
}

fn as_result(wait: Duration) -> Result<(), Duration> {
    if wait.is_zero() { Ok(()) } else { Err(wait) }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::network_of;

    fn prefix(text: &str) -> IpAddr {
        network_of(text.parse().expect("an address"))
    }

    #[test]
    fn a_prefix_that_guesses_is_slowed_and_keeps_nobody_else_out() {
        let (tries, begin) = (Tries::default(), Instant::now());
        let (attacker, owner) = (prefix("192.0.2.1"), prefix("198.51.100.1"));
        let mut admitted = 0;
        for step in 0..36_000 {
            let now = begin + Duration::from_millis(step * 100);
            admitted += u32::from(tries.admit(("anna", attacker), false, now).is_ok());
        }
        assert!((1_800..=1_811).contains(&admitted), "{admitted} in an hour");
        let now = begin + Duration::from_millis(3_599_900);
        assert!(tries.admit(("anna", prefix("192.0.2.200")), false, now).is_err(), "neighbours share it");
        assert!(tries.admit(("anna", owner), false, now).is_ok());
    }

    #[test]
    fn an_account_that_many_prefixes_guess_at_is_open_to_its_owner() {
        let (tries, begin) = (Tries::default(), Instant::now());
        let mut admitted = 0;
        for step in 0..60_000_u32 {
            let now = begin + Duration::from_millis(u64::from(step));
            let attacker = network_of(Ipv4Addr::from_bits((10 << 24) + ((step % 1_000) << 8)).into());
            admitted += u32::from(tries.admit(("anna", attacker), false, now).is_ok());
        }
        // Ten, one a second, and two of each prefix and another one after a minute.
        assert!(admitted <= 10 + 60 + 3 * 1_000, "{admitted} in a minute");
        let now = begin + Duration::from_secs(60);
        for _ in 0..2 {
            assert!(tries.admit(("anna", prefix("198.51.100.1")), false, now).is_ok(), "from elsewhere");
        }
        for _ in 0..10 {
            assert!(tries.admit(("anna", prefix("203.0.113.1")), true, now).is_ok(), "from a known place");
        }
        assert!(tries.admit(("anna", prefix("203.0.113.1")), true, now).is_err());
        let later = now + Duration::from_secs(1);
        assert!(tries.admit(("anna", prefix("203.0.113.1")), true, later).is_ok(), "one a second at worst");
    }

    #[test]
    fn tables_are_bounded_and_a_known_place_needs_no_room_of_strangers() {
        let (tries, now) = (Tries::default(), Instant::now());
        for number in 0..20_000_u32 {
            let from = network_of(Ipv4Addr::from_bits(number << 8).into());
            let _ = tries.admit((&format!("user{number}"), from), false, now);
        }
        assert!(tries.count() <= BUCKETS_MAX + 1);
        assert!(
            tries.admit(("anna", prefix("198.51.100.1")), false, now).is_err(),
            "strangers share a bucket"
        );
        assert!(tries.admit(("anna", prefix("198.51.100.1")), true, now).is_ok());
    }

    #[test]
    fn an_address_counts_with_its_neighbours() {
        assert_eq!(prefix("192.0.2.1"), prefix("::ffff:192.0.2.254"));
        assert_eq!(prefix("2001:db8:0:1::1"), prefix("2001:db8:0:ff::2"));
        assert_ne!(prefix("2001:db8:0:1::1"), prefix("2001:db8:0:100::1"));
    }

    #[test]
    fn codes_are_guessed_slowly_by_who_knows_the_password() {
        let (tries, begin) = (Tries::default(), Instant::now());
        let mut admitted = 0;
        for second in 0..86_400 {
            admitted += u32::from(tries.admit_code("anna", begin + Duration::from_secs(second)).is_ok());
        }
        assert!((290..=294).contains(&admitted), "{admitted} in a day");
        let now = begin + Duration::from_secs(86_400);
        assert!(tries.admit_code("bob", now).is_ok());
        tries.code_was_right("anna");
        assert!((0..5).all(|_| tries.admit_code("anna", now).is_ok()));
    }
}
