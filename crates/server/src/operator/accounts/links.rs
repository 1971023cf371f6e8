//! Links that log somebody in once: the first user of a server, or one who lost a password.

use std::collections::BTreeMap;

use super::sessions::{secret, sha256};

/// What the code of a link begins with.
const PREFIX: &str = "gnl_";
/// Seconds that a link is good.
pub(super) const GOOD_S: u64 = 15 * 60;
/// Links at once; the oldest makes way.
const LINKS_MAX: usize = 32;

/// Whom a link logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFor {
    /// The first user, who says how they are called.
    First,
    /// This user.
    User(String),
}

#[derive(Debug)]
struct Link {
    whom: LinkFor,
    until: u64,
}

/// The links that are good, by the SHA-256 of their codes. They are gone with the process.
#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<String, Link>);

impl Links {
    /// Makes a code; `None` if the system has no random numbers.
    pub(super) fn make(&mut self, whom: LinkFor, now: u64) -> Option<String> {
        self.0.retain(|_, link| link.until > now);
        // One for each: who lost one asks for another.
        self.0.retain(|_, link| link.whom != whom);
        while self.0.len() >= LINKS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, link)| link.until)?.0.clone();
            self.0.remove(&oldest);
        }
        let code = secret(PREFIX)?;
        self.0.insert(sha256(&code), Link { whom, until: now + GOOD_S });
        Some(code)
    }

    /// Returns whom a code logs in, and leaves it good.
    pub(super) fn look(&self, code: &str, now: u64) -> Option<LinkFor> {
        self.0.get(&sha256(code)).filter(|link| link.until > now).map(|link| link.whom.clone())
    }

    /// Returns whom a code logs in, which it does never again.
    pub(super) fn take(&mut self, code: &str, now: u64) -> Option<LinkFor> {
        self.0.remove(&sha256(code)).filter(|link| link.until > now).map(|link| link.whom)
    }

    /// Takes back what logs a user in.
    pub(super) fn forget(&mut self, whom: &LinkFor) {
        self.0.retain(|_, link| link.whom != *whom);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_good_once_and_for_a_quarter_of_an_hour() {
        let mut links = Links::default();
        let anna = LinkFor::User("anna".to_owned());
        let code = links.make(anna.clone(), 1_000).expect("random numbers");
        assert_eq!(links.look(&code, 1_899), Some(anna.clone()));
        assert_eq!((links.look(&code, 1_900), links.look("gnl_", 1_000)), (None, None));
        assert_eq!(links.take(&code, 1_000), Some(anna.clone()));
        assert_eq!((links.take(&code, 1_000), links.look(&code, 1_000)), (None, None));
        let [one, other] = [(); 2].map(|()| links.make(anna.clone(), 1_000).expect("random numbers"));
        assert_eq!((links.look(&one, 1_000), links.look(&other, 1_000)), (None, Some(anna.clone())));
        links.forget(&anna);
        assert_eq!(links.look(&other, 1_000), None);
    }

    #[test]
    fn links_are_bounded() {
        let mut links = Links::default();
        for user in 0..100 {
            links.make(LinkFor::User(format!("user{user}")), 1_000 + user).expect("random numbers");
        }
        assert_eq!(links.0.len(), LINKS_MAX);
    }
}
