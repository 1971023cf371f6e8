//! Cookies of servers (RFC 7873), each in a place that its server's hash names.
//!
//! A place has six words: a check word, the server and the cookie's length, and four words of
//! cookie. The check word is a keyed hash of the others: whatever mix of two cookies a reader finds
//! while others write, it does not fit, and the cookie counts as unknown. So no order of the words
//! matters.

use wire::HashKey;

use crate::store::{Pages, ask_for, zeroed};
use crate::sync::{AtomicU64, Ordering};

/// Octets of a server's part of a cookie (RFC 7873 §4).
const COOKIE_OCTETS_MIN: usize = 8;
const COOKIE_OCTETS_MAX: usize = 32;
const COOKIE_WORDS: usize = COOKIE_OCTETS_MAX / 8;
const PLACE_WORDS: usize = 2 + COOKIE_WORDS;
/// The part of the second word that has the length.
const LEN: u64 = 0x3f;

/// The server's part of a cookie: 8 to 32 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCookie {
    octets: [u8; COOKIE_OCTETS_MAX],
    len: u8,
}

impl ServerCookie {
    /// Returns the octets.
    pub fn as_bytes(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// The table of places.
pub(super) struct Cookies {
    words: Box<[AtomicU64]>,
    hash_key: HashKey,
}

impl Cookies {
    pub(super) fn new(count: usize, hash_key: HashKey) -> Self {
        Self { words: zeroed(count * PLACE_WORDS, Pages::Huge), hash_key }
    }

    /// Octets that the places take.
    pub(super) const fn octets(&self) -> usize {
        self.words.len() * 8
    }

    pub(super) fn put(&self, server: u64, cookie: &[u8]) -> bool {
        if !(COOKIE_OCTETS_MIN..=COOKIE_OCTETS_MAX).contains(&cookie.len()) {
            return false;
        }
        let Some(place) = self.place(server) else { return false };
        let mut octets = [0; COOKIE_OCTETS_MAX];
        for (to, octet) in octets.iter_mut().zip(cookie) {
            *to = *octet;
        }
        let [a, b, c, d] = words_of(&octets);
        let rest = [server & !LEN | cookie.len() as u64, a, b, c, d];
        let [first, others @ ..] = place;
        first.store(self.check(rest), Ordering::Relaxed);
        for (to, word) in others.iter().zip(rest) {
            to.store(word, Ordering::Relaxed);
        }
        true
    }

    /// Asks memory for a place, without waiting for it.
    pub(super) fn prefetch(&self, server: u64) {
        if let Some(place) = self.place(server) {
            ask_for(place);
        }
    }

    pub(super) fn look(&self, server: u64) -> Option<ServerCookie> {
        let [check, rest @ ..] = self.place(server)?.each_ref().map(|word| word.load(Ordering::Relaxed));
        let [owner, cookie @ ..] = rest;
        let len = (owner & LEN) as u8;
        let is_it = owner & !LEN == server & !LEN && len > 0 && check == self.check(rest);
        let mut octets = [0; COOKIE_OCTETS_MAX];
        for (to, word) in octets.as_chunks_mut::<8>().0.iter_mut().zip(cookie) {
            *to = word.to_le_bytes();
        }
        is_it.then_some(ServerCookie { octets, len })
    }

    pub(super) fn forget(&self, server: u64) {
        if self.look(server).is_some()
            && let Some([_, owner, ..]) = self.place(server)
        {
            owner.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn forget_all(&self) {
        for [_, owner, ..] in self.words.as_chunks::<PLACE_WORDS>().0 {
            owner.store(0, Ordering::Relaxed);
        }
    }

    fn place(&self, server: u64) -> Option<&[AtomicU64; PLACE_WORDS]> {
        let places = self.words.as_chunks::<PLACE_WORDS>().0;
        places.get(((u128::from(server) * places.len() as u128) >> 64) as usize)
    }

    fn check(&self, words: [u64; 1 + COOKIE_WORDS]) -> u64 {
        words.iter().fold(0, |check, &word| self.hash_key.mix(check.rotate_left(23), word))
    }
}

fn words_of(octets: &[u8; COOKIE_OCTETS_MAX]) -> [u64; COOKIE_WORDS] {
    let mut words = [0; COOKIE_WORDS];
    for (word, octets) in words.iter_mut().zip(octets.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*octets);
    }
    words
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_torn_cookie_is_unknown() {
        let cookies = Cookies::new(1, HashKey::new([1, 2]));
        let old = b"01234567890123456789012345678901";
        let new = b"abcdefghijklmnopqrstuvwxyz";
        let words = |cookie: &[u8]| {
            assert!(cookies.put(1 << 40, cookie));
            cookies.words.iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>()
        };
        let (old, new) = (words(old), words(new));
        // All mixes of the words of both.
        for mix in 1..(1 << PLACE_WORDS) - 1 {
            for (at, word) in cookies.words.iter().enumerate() {
                let from = if mix >> at & 1 == 0 { &old } else { &new };
                word.store(from[at], Ordering::Relaxed);
            }
            assert_eq!(cookies.look(1 << 40), None, "{mix:b}");
        }
    }

    #[test]
    fn a_cookie_is_that_of_its_server_alone() {
        let cookies = Cookies::new(1, HashKey::new([1, 2]));
        assert_eq!(cookies.look(1 << 40), None);
        for len in 0..40 {
            let cookie = vec![7; len];
            assert_eq!(cookies.put(1 << 40, &cookie), (8..=32).contains(&len), "{len}");
            if (8..=32).contains(&len) {
                assert_eq!(cookies.look(1 << 40).expect("it was put").as_bytes(), cookie);
            }
        }
        assert_eq!(cookies.look(1 << 41), None);
        cookies.forget(1 << 41);
        assert!(cookies.look(1 << 40).is_some());
        cookies.forget(1 << 40);
        assert_eq!(cookies.look(1 << 40), None);
        assert!(!Cookies::new(0, HashKey::new([1, 2])).put(1, &[0; 8]), "no room at all");
    }
}
