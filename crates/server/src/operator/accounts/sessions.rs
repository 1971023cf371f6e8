//! Sessions: what somebody shows who has logged in, and for how long it is good.

use std::collections::BTreeMap;
use std::net::IpAddr;

use aws_lc_rs::{digest, rand};
use control::Role;
use control::api::{self, SessionKept};

use super::super::overlay::rfc3339;
use super::passwords::hex;

/// What a session begins with, so that it is known for one wherever it leaks to.
const PREFIX: &str = "gns_";
/// Octets of chance in a session.
const SECRET_OCTETS: usize = 32;
/// Seconds that a session lasts without a request, and in all.
const IDLE_S: u64 = 30 * 60;
const ALL_S: u64 = 12 * 60 * 60;
/// How often its use is written to the disk, in seconds.
const NOTED_EVERY_S: u64 = 5 * 60;
/// Sessions of one user, and of all; the one that was used least lately makes way.
const OF_USER_MAX: usize = 16;
const ALL_MAX: usize = 1_000;
/// Digits of the digest that a session is known by.
const ID_DIGITS: usize = 16;

/// Returns the SHA-256 of a secret, in hexadecimal digits.
pub(super) fn sha256(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

/// Makes a secret that begins with `prefix`; `None` if the system has no random numbers.
pub(super) fn secret(prefix: &str) -> Option<String> {
    let mut secret = [0; SECRET_OCTETS];
    rand::fill(&mut secret).ok()?;
    Some(format!("{prefix}{}", hex(&secret)))
}

#[derive(Clone, Debug)]
struct Session {
    kept: SessionKept,
    /// The use that is on the disk.
    noted: u64,
}

impl Session {
    fn is_over(&self, now: u64) -> bool {
        now >= self.kept.used.saturating_add(IDLE_S) || now >= self.kept.at.saturating_add(ALL_S)
    }
}

/// All sessions, by the SHA-256 of what shows them.
#[derive(Debug, Default)]
pub(super) struct Sessions(BTreeMap<String, Session>);

/// A session that began: what shows it, and what is kept.
pub(super) struct Begun {
    pub(super) secret: String,
    pub(super) hash: String,
    /// Sessions that made way.
    pub(super) ended: Vec<String>,
}

impl Sessions {
    /// Takes over what is kept.
    pub(super) fn read(&mut self, kept: BTreeMap<String, SessionKept>) {
        self.0 = kept.into_iter().map(|(hash, kept)| (hash, Session { noted: kept.used, kept })).collect();
    }

    /// Begins a session; `None` if the system has no random numbers.
    pub(super) fn begin(
        &mut self,
        (user, role): (&str, Option<Role>),
        from: IpAddr,
        now: u64,
    ) -> Option<Begun> {
        let secret = secret(PREFIX)?;
        let mut ended = self.over(now);
        let hash = sha256(&secret);
        while self.of(user).count() >= OF_USER_MAX {
            ended.extend(self.end_oldest(Some(user)));
        }
        while self.0.len() >= ALL_MAX {
            ended.extend(self.end_oldest(None));
        }
        let kept = SessionKept {
            user: user.to_owned(),
            role: role.map(|role| role.word().to_owned()),
            from: from.to_string(),
            at: now,
            used: now,
        };
        self.0.insert(hash.clone(), Session { kept, noted: now });
        Some(Begun { secret, hash, ended })
    }

    fn of(&self, user: &str) -> impl Iterator<Item = (&String, &Session)> {
        self.0.iter().filter(move |(_, session)| session.kept.user == user)
    }

    fn end_oldest(&mut self, user: Option<&str>) -> Option<String> {
        let all = self.0.iter().filter(|(_, session)| user.is_none_or(|user| session.kept.user == user));
        let oldest = all.min_by_key(|(_, session)| session.kept.used)?.0.clone();
        self.0.remove(&oldest);
        Some(oldest)
    }

    /// Forgets sessions whose time is over; returns them.
    pub(super) fn over(&mut self, now: u64) -> Vec<String> {
        let over: Vec<String> =
            self.0.iter().filter(|(_, session)| session.is_over(now)).map(|(hash, _)| hash.clone()).collect();
        for hash in &over {
            self.0.remove(hash);
        }
        over
    }

    /// Returns whose session is shown, which counts as a use of it; and whether that is to be
    /// noted.
    pub(super) fn shown(&mut self, secret: &str, now: u64) -> Option<(SessionKept, bool)> {
        let session = self.0.get_mut(&sha256(secret)).filter(|session| !session.is_over(now))?;
        session.kept.used = session.kept.used.max(now);
        Some((session.kept.clone(), session.kept.used >= session.noted + NOTED_EVERY_S))
    }

    /// Returns what is to be noted of uses.
    pub(super) fn take_uses(&mut self) -> Vec<(String, SessionKept)> {
        let due = self.0.iter_mut().filter(|(_, session)| session.kept.used >= session.noted + NOTED_EVERY_S);
        due.map(|(hash, session)| {
            session.noted = session.kept.used;
            (hash.clone(), session.kept.clone())
        })
        .collect()
    }

    /// Returns what is kept of a session, if it is good. That is no use of it.
    pub(super) fn good(&self, hash: &str, now: u64) -> Option<SessionKept> {
        self.0.get(hash).filter(|session| !session.is_over(now)).map(|session| session.kept.clone())
    }

    /// Returns what is kept of a session.
    pub(super) fn kept(&self, hash: &str) -> Option<SessionKept> {
        self.0.get(hash).map(|session| session.kept.clone())
    }

    /// Returns the session that something shows.
    pub(super) fn by_secret(&self, secret: &str, now: u64) -> Option<api::Session> {
        let hash = sha256(secret);
        let session = self.0.get(&hash).filter(|session| !session.is_over(now))?;
        Some(as_shown(&hash, &session.kept))
    }

    /// Returns the sessions of a user, or of all, the one that began last first.
    pub(super) fn list(&self, user: Option<&str>, now: u64) -> Vec<api::Session> {
        let known = self.0.iter().filter(|(_, session)| {
            !session.is_over(now) && user.is_none_or(|user| session.kept.user == user)
        });
        let mut all: Vec<_> = known.collect();
        all.sort_by_key(|(_, session)| std::cmp::Reverse(session.kept.at));
        all.into_iter().map(|(hash, session)| as_shown(hash, &session.kept)).collect()
    }

    /// Returns under what a session is kept, and whose it is, by what it is revoked by.
    pub(super) fn find(&self, id: &str) -> Option<(String, String)> {
        let mut found = self.0.iter().filter(|(hash, _)| hash.get(..ID_DIGITS) == Some(id));
        found.next().map(|(hash, session)| (hash.clone(), session.kept.user.clone()))
    }

    /// Ends sessions; returns those that there were.
    pub(super) fn end(&mut self, hashes: &[String]) -> Vec<String> {
        hashes.iter().filter(|hash| self.0.remove(*hash).is_some()).cloned().collect()
    }

    /// Ends all sessions of a user; returns them.
    pub(super) fn end_all_of(&mut self, user: &str) -> Vec<String> {
        let all: Vec<String> = self.of(user).map(|(hash, _)| hash.clone()).collect();
        self.end(&all)
    }
}

/// Returns when a session ends that is noted now, in seconds since 1970.
pub(super) fn end_of_note(kept: &SessionKept) -> u64 {
    let idle = kept.used.saturating_add(IDLE_S + NOTED_EVERY_S);
    idle.min(kept.at.saturating_add(ALL_S))
}

fn as_shown(hash: &str, kept: &SessionKept) -> api::Session {
    api::Session {
        id: hash.get(..ID_DIGITS).unwrap_or(hash).to_owned(),
        user: kept.user.clone(),
        from: kept.from.clone(),
        at: rfc3339(kept.at),
        last_used: rfc3339(kept.used),
        until: rfc3339(kept.at.saturating_add(ALL_S)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn a_session_lasts_as_long_as_it_is_used_and_half_a_day_at_most() {
        let mut sessions = Sessions::default();
        let begun = sessions.begin(("anna", None), FROM, 1_000).expect("random numbers");
        assert!(begun.secret.len() == 68 && !begun.hash.contains(&begun.secret[4..]));
        let mut shown = |now| sessions.shown(&begun.secret, now).map(|(kept, _)| kept.user);
        let mut now = 1_000;
        while now < 1_000 + ALL_S {
            assert_eq!(shown(now).as_deref(), Some("anna"), "{now}");
            now += IDLE_S - 1;
        }
        assert_eq!(shown(1_000 + ALL_S), None);
        let mut sessions = Sessions::default();
        let begun = sessions.begin(("anna", None), FROM, 1_000).expect("random numbers");
        assert!(sessions.shown(&begun.secret, 1_000 + IDLE_S - 1).is_some());
        assert!(sessions.shown(&begun.secret, 1_000 + 2 * IDLE_S - 1).is_none(), "it was not used");
        assert!(sessions.shown("gns_other", 1_000).is_none());
        assert_eq!(sessions.over(1_000 + 2 * IDLE_S).len(), 1);
        assert!(sessions.list(None, 0).is_empty());
    }

    #[test]
    fn a_use_is_noted_now_and_then() {
        let mut sessions = Sessions::default();
        let begun = sessions.begin(("anna", None), FROM, 1_000).expect("random numbers");
        let is_due =
            |sessions: &mut Sessions, now| sessions.shown(&begun.secret, now).map(|(_, is_due)| is_due);
        assert_eq!(is_due(&mut sessions, 1_299), Some(false));
        assert!(sessions.take_uses().is_empty());
        assert_eq!(is_due(&mut sessions, 1_300), Some(true));
        let noted = sessions.take_uses();
        assert!(noted.len() == 1 && noted[0].1.used == 1_300 && noted[0].0 == begun.hash);
        assert!(end_of_note(&noted[0].1) >= 1_300 + IDLE_S);
        assert_eq!(is_due(&mut sessions, 1_301), Some(false));
        let mut other = Sessions::default();
        other.read(noted.into_iter().collect());
        assert!(other.shown(&begun.secret, 1_300 + IDLE_S - 1).is_some(), "it is read again");
    }

    #[test]
    fn sessions_are_bounded_for_each_user_and_in_all() {
        let mut sessions = Sessions::default();
        let anna = sessions.begin(("anna", None), FROM, 0).expect("random numbers");
        for second in 0..100 {
            sessions.begin(("bob", None), FROM, second).expect("random numbers");
        }
        assert_eq!((sessions.list(Some("bob"), 100).len(), sessions.list(None, 100).len()), (16, 17));
        assert!(sessions.shown(&anna.secret, 100).is_some(), "others' sessions stay");
        for user in 0..2_000 {
            sessions.begin((&format!("user{user}"), None), FROM, 100).expect("random numbers");
        }
        assert_eq!(sessions.list(None, 100).len(), ALL_MAX);
    }

    #[test]
    fn a_session_is_ended_by_its_id_and_with_its_user() {
        let mut sessions = Sessions::default();
        let [one, other] = [(); 2].map(|()| sessions.begin(("anna", None), FROM, 0).expect("random numbers"));
        let id = sessions.by_secret(&one.secret, 0).expect("it is there").id;
        let (hash, user) = sessions.find(&id).expect("it is there");
        assert_eq!((&hash, user.as_str()), (&one.hash, "anna"));
        assert_eq!(sessions.find(""), None);
        assert_eq!(sessions.end(&[hash]).len(), 1);
        assert!(sessions.shown(&one.secret, 0).is_none() && sessions.shown(&other.secret, 0).is_some());
        assert_eq!(sessions.end_all_of("anna"), [other.hash]);
        assert!(sessions.shown(&other.secret, 0).is_none());
    }
}
