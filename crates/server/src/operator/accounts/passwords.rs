//! Passwords: what they are known by, and whether one is right.

use std::sync::{Condvar, Mutex, PoisonError};

use argon2::{Algorithm, Argon2, Block, Params, Version};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use control::api::PasswordKept;

use super::super::OperatorError;
use super::super::configuration::apart;
use crate::lock;

/// Memory, passes and lanes of Argon2id, as OWASP has them for log-ins.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// Octets of salts and tags.
const SALT_OCTETS: usize = 16;
const TAG_OCTETS: usize = 32;
/// Passwords that are hashed at once: each takes 19 MiB, and a processor.
const AT_ONCE: usize = 2;
/// Passwords that wait to be hashed; each keeps a thread.
const WAITING_MAX: usize = 16;
/// Characters of a password.
const CHARS_MIN: usize = 12;
const OCTETS_MAX: usize = 1024;

/// Hashes passwords, few at a time.
#[derive(Debug, Default)]
pub(super) struct Hashing {
    standing: Mutex<Standing>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Standing {
    at_work: usize,
    waiting: usize,
}

/// How something is hashed.
struct Recipe {
    params: Params,
    salt: Vec<u8>,
}

impl Hashing {
    /// Returns what a password is known by.
    ///
    /// # Errors
    ///
    /// It is too short or too long, or cannot be hashed now.
    pub(super) fn kept(&self, password: &str) -> Result<PasswordKept, OperatorError> {
        check(password)?;
        let mut salt = vec![0; SALT_OCTETS];
        rand::fill(&mut salt)
            .map_err(|_| OperatorError::Refused("the system has no random numbers".to_owned()))?;
        let kept = PasswordKept {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: hex(&salt),
            tag: String::new(),
        };
        let recipe = Recipe::of(&kept).ok_or_else(cannot)?;
        let tag = self.tag(password, &recipe)?;
        Ok(PasswordKept { tag: hex(&tag), ..kept })
    }

    /// Returns whether a password is the one that is kept. Without one the answer takes as long,
    /// and is no.
    ///
    /// # Errors
    ///
    /// It cannot be hashed now.
    pub(super) fn is_right(
        &self,
        password: &str,
        kept: Option<&PasswordKept>,
    ) -> Result<bool, OperatorError> {
        let decoy = || Recipe { params: params(MEMORY_KIB, PASSES, LANES), salt: vec![0; SALT_OCTETS] };
        let known = kept.and_then(|kept| Some((Recipe::of(kept)?, unhex(&kept.tag)?)));
        let (recipe, expected) = match known {
            Some((recipe, tag)) => (recipe, Some(tag)),
            None => (decoy(), None),
        };
        // One that is too long is cut: it is wrong anyway, and is to take no longer.
        let end = password.floor_char_boundary(OCTETS_MAX + 1);
        let tag = self.tag(&password[..end], &recipe)?;
        Ok(expected.is_some_and(|expected| verify_slices_are_equal(&expected, &tag).is_ok()))
    }

    /// Hashes a password when it is its turn, on a thread that steps back behind the workers.
    fn tag(&self, password: &str, recipe: &Recipe) -> Result<Vec<u8>, OperatorError> {
        let mut standing = lock(&self.standing);
        if standing.at_work >= AT_ONCE && standing.waiting >= WAITING_MAX {
            let why = "too many passwords are being checked: try again in a moment";
            return Err(OperatorError::Busy(why.to_owned()));
        }
        standing.waiting += 1;
        let full = |standing: &mut Standing| standing.at_work >= AT_ONCE;
        // A panic ends the process, so a poisoned lock is never seen.
        let mut standing = self.ended.wait_while(standing, full).unwrap_or_else(PoisonError::into_inner);
        standing.waiting -= 1;
        standing.at_work += 1;
        drop(standing);
        let hashed = apart(|| recipe.tag(password));
        lock(&self.standing).at_work -= 1;
        self.ended.notify_one();
        hashed.ok_or_else(cannot)
    }
}

impl Recipe {
    fn of(kept: &PasswordKept) -> Option<Self> {
        let params = Params::new(kept.memory_kib, kept.passes, kept.lanes, Some(TAG_OCTETS)).ok()?;
        Some(Self { params, salt: unhex(&kept.salt)? })
    }

    fn tag(&self, password: &str) -> Option<Vec<u8>> {
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, self.params.clone());
        let (mut tag, mut memory) = (vec![0; TAG_OCTETS], vec![Block::new(); self.params.block_count()]);
        let password = password.as_bytes();
        argon2.hash_password_into_with_memory(password, &self.salt, &mut tag, &mut memory).ok().map(|()| tag)
    }
}

fn params(memory_kib: u32, passes: u32, lanes: u32) -> Params {
    Params::new(memory_kib, passes, lanes, Some(TAG_OCTETS)).expect("these are within the bounds of Argon2")
}

fn cannot() -> OperatorError {
    OperatorError::Refused("the password cannot be hashed".to_owned())
}

/// Returns an error unless something is good enough for a password.
pub(super) fn check(password: &str) -> Result<(), OperatorError> {
    let wrong = |why: String| Err(OperatorError::Argument(why));
    if password.chars().count() < CHARS_MIN {
        return wrong(format!("the password is too short: expected at least {CHARS_MIN} characters"));
    }
    if password.len() > OCTETS_MAX {
        return wrong(format!("the password is too long: expected at most {OCTETS_MAX} octets"));
    }
    let mut chars = password.chars();
    let first = chars.next();
    if chars.all(|c| Some(c) == first) {
        return wrong("the password is one character again and again".to_owned());
    }
    Ok(())
}

/// Returns octets in hexadecimal digits.
pub(super) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Reads octets from their hexadecimal digits.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| Some(c.to_digit(16)? as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | digit)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argon2id_is_that_of_the_rfc() {
        // RFC 9106 §5.3 has a secret and associated data, which we do not use: this is what the
        // reference program prints for `echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1`.
        let recipe = Recipe { params: params(1 << 16, 2, 1), salt: b"somesalt".to_vec() };
        let expected = "09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7";
        assert_eq!(hex(&recipe.tag("password").expect("a tag")), expected);
    }

    #[test]
    fn a_password_is_right_and_others_are_not() {
        let hashing = Hashing::default();
        let right = "correct horse battery staple";
        let (one, other) = (hashing.kept(right).expect("kept"), hashing.kept(right).expect("kept"));
        assert!(one.tag != other.tag && one.salt != other.salt, "the salt is another each time");
        let is_right = |password: &str| hashing.is_right(password, Some(&one)).expect("hashed");
        assert!(is_right(right));
        assert!(!is_right("correct horse battery stable") && !is_right("") && !is_right(&"x".repeat(10_000)));
        assert!(!hashing.is_right(right, None).expect("hashed"), "nobody has no password");
        let damaged = PasswordKept { tag: String::new(), ..one.clone() };
        assert!(!hashing.is_right("", Some(&damaged)).expect("hashed"));
    }

    #[test]
    fn what_is_no_password_is_refused() {
        let long = "ab".repeat(513);
        for password in ["", "elevenchars", "aaaaaaaaaaaaaaaa", &long] {
            assert!(matches!(check(password), Err(OperatorError::Argument(_))), "{password}");
        }
        assert!(check("twelve chars").is_ok() && check("äöüäöüäöüäöü").is_ok());
    }

    #[test]
    fn what_would_wait_too_long_is_told_so_at_once() {
        let hashing = Hashing::default();
        *lock(&hashing.standing) = Standing { at_work: AT_ONCE, waiting: WAITING_MAX };
        assert!(matches!(hashing.is_right("x", None), Err(OperatorError::Busy(_))));
    }

    #[test]
    fn hexadecimal_digits_are_read_as_they_are_written() {
        assert_eq!(unhex("00ff10"), Some(vec![0, 255, 16]));
        assert_eq!((unhex("0"), unhex("0g")), (None, None));
    }
}
