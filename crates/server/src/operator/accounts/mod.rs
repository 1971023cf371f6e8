//! Users of the API, and how they prove who they are.
//!
//! Who there is and what they may do is kept by revision. What they prove themselves with is not:
//! what is replaced is gone from the disk.

mod elsewhere;
mod links;
mod log_in;
mod passwords;
mod second_factor;
mod sessions;
mod totp;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use control::api::{self, CredentialsKept, PasswordKept, UserKept};
use control::{Failures, Role, Tries};
use tracing::{error, info};

use super::overlay::rfc3339;
use super::{Operator, OperatorError, What, unix_seconds};
use crate::lock;
pub use elsewhere::ComesBack;
use elsewhere::Elsewhere;
pub use links::LinkFor;
use links::Links;
pub use log_in::{LogInRefusal, LoggedIn};
use passwords::Hashing;
use sessions::Sessions;

/// The space of the store that users are in, by name.
const SPACE: &str = "users";
/// The space of notes with what they prove themselves with, by name.
const CREDENTIALS: &str = "credentials";
/// The space of notes with sessions, by the SHA-256 of what shows them.
const SESSIONS: &str = "sessions";
/// The space of notes about links, and the one that says that the first was shown.
const LINKS: &str = "links";
const FIRST_LINK: &str = "first";
/// Notes have an end; these have none.
const FOR_EVER: u64 = i64::MAX as u64;
/// Users at once.
const USERS_MAX: usize = 1_000;
/// Characters of a user's name.
const NAME_CHARS_MAX: usize = 32;

/// A user.
#[derive(Debug)]
struct Known {
    role: Role,
    by: String,
    at: u64,
    credentials: CredentialsKept,
}

/// The users, by name.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    known: Mutex<Arc<BTreeMap<String, Arc<Known>>>>,
    /// Held while one of them is changed; behind `Operator::current`.
    writing: Mutex<()>,
    hashing: Hashing,
    /// Held for moments: requests and streams look whether a session is good.
    sessions: Mutex<Sessions>,
    /// Held while sessions are written to the store, which may wait. Taken before `sessions`.
    noting: Mutex<()>,
    tries: Tries,
    links: Mutex<Links>,
    elsewhere: Elsewhere,
    /// Secrets of which no code was shown yet, with the second until which one can be, by user.
    totp_begun: Mutex<BTreeMap<String, (Vec<u8>, u64)>>,
    /// Where browsers find the API.
    addresses: Mutex<Vec<SocketAddr>>,
    failures: Mutex<Failures>,
    /// Those that did not fail, for whoever watches.
    log_ins: Mutex<Failures>,
}

impl Accounts {
    fn all(&self) -> Arc<BTreeMap<String, Arc<Known>>> {
        Arc::clone(&lock(&self.known))
    }

    fn sessions_of_users(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for session in lock(&self.sessions).list(None, unix_seconds()) {
            *counts.entry(session.user).or_insert(0) += 1;
        }
        counts
    }
}

fn wrong(why: String) -> OperatorError {
    OperatorError::Argument(why)
}

fn role(word: &str) -> Result<Role, OperatorError> {
    Role::parse(word).ok_or_else(|| {
        let words = Role::ALL.map(Role::word).join(", ");
        wrong(format!("unknown role \"{word}\" (expected one of {words})"))
    })
}

/// Returns an error unless users may be called so. Names begin with a letter: `user 1000` is
/// somebody of the control socket in the history.
fn check_name(name: &str) -> Result<(), OperatorError> {
    let is_plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.' | '@');
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_plain);
    match is_name && name.len() <= NAME_CHARS_MAX {
        true => Ok(()),
        false => Err(wrong(format!(
            "a user's name has 1 to {NAME_CHARS_MAX} of a-z, 0-9, -, _, . and @, and begins with a letter"
        ))),
    }
}

fn shown(name: &str, known: &Known, sessions: usize) -> api::User {
    api::User {
        sessions: sessions as u64,
        name: name.to_owned(),
        role: known.role.word().to_owned(),
        has_totp: known.credentials.totp.is_some(),
        recovery_codes: known.credentials.totp.as_ref().map(|totp| totp.recovery.len() as u64),
        has_password: known.credentials.password.is_some(),
        by: known.by.clone(),
        at: rfc3339(known.at),
    }
}

impl Operator {
    /// Reads the users that are kept.
    pub(crate) fn read_accounts(&self) {
        let authority = self.changing.authority();
        let read = authority
            .entries(SPACE)
            .and_then(|users| authority.notes(CREDENTIALS, unix_seconds()).map(|notes| (users, notes)));
        let (users, notes) = match read {
            Ok(read) => read,
            Err(error) => {
                error!(%error, "users of the API cannot be read: none is known");
                return;
            }
        };
        let mut all = BTreeMap::new();
        for entry in users {
            let credentials = match notes.get(&entry.name) {
                Some(text) => CredentialsKept::parse(text),
                None => Ok(CredentialsKept::default()),
            };
            let role = UserKept::parse(&entry.text)
                .and_then(|kept| role(&kept.role).map_err(|error| error.to_string()));
            match role.and_then(|role| credentials.map(|credentials| (role, credentials))) {
                Ok((role, credentials)) => {
                    let known = Known { role, by: entry.by, at: entry.at, credentials };
                    all.insert(entry.name, Arc::new(known));
                }
                Err(why) => error!(user = entry.name, why, "a user of the API is not as they were written"),
            }
        }
        *lock(&self.accounts.known) = Arc::new(all);
    }

    /// Returns the users, by name.
    pub fn user_list(&self) -> Vec<api::User> {
        let sessions = self.accounts.sessions_of_users();
        let count = |name: &str| sessions.get(name).copied().unwrap_or(0);
        self.accounts.all().iter().map(|(name, known)| shown(name, known, count(name))).collect()
    }

    fn one_user(&self, name: &str) -> Vec<api::User> {
        let mut all = self.user_list();
        all.retain(|user| user.name == name);
        all
    }

    fn known_user(&self, name: &str) -> Result<Arc<Known>, OperatorError> {
        self.accounts.all().get(name).cloned().ok_or_else(|| OperatorError::not_found(What::User, name))
    }

    /// Refuses a change that was made for another state of a user.
    fn expect_user(&self, name: &str, tag: Option<&str>) -> Result<(), OperatorError> {
        self.known_user(name)?;
        let is = self.one_user(name).first().map(api::User::tag);
        match tag.is_none_or(|tag| tag == "*" || is.as_deref() == Some(tag)) {
            true => Ok(()),
            false => Err(OperatorError::Conflict(format!("the user \"{name}\" is another by now"))),
        }
    }

    /// Adds a user; returns them.
    ///
    /// # Errors
    ///
    /// There is one of this name, the role or the password is none, or it cannot be kept.
    pub fn user_add(&self, asked: &api::UserAdd, by: &str) -> Result<Vec<api::User>, OperatorError> {
        let password = asked.password.as_ref().map(|password| self.accounts.hashing.kept(&password.0));
        self.add_user(&asked.name, role(&asked.role)?, password.transpose()?, by)?;
        Ok(self.one_user(&asked.name))
    }

    /// Says what adding a user would come to.
    ///
    /// # Errors
    ///
    /// As of [`Operator::user_add`].
    pub fn user_add_check(&self, asked: &api::UserAdd, by: &str) -> Result<Vec<api::User>, OperatorError> {
        let role = role(&asked.role)?;
        if let Some(password) = &asked.password {
            passwords::check(&password.0)?;
        }
        self.check_new(&asked.name)?;
        let (by, at, credentials) = (by.to_owned(), unix_seconds(), CredentialsKept::default());
        let user = shown(&asked.name, &Known { role, by, at, credentials }, 0);
        Ok(vec![api::User { has_password: asked.password.is_some(), ..user }])
    }

    /// Refuses a user who cannot be added.
    fn check_new(&self, name: &str) -> Result<(), OperatorError> {
        check_name(name)?;
        let all = self.accounts.all();
        if all.contains_key(name) {
            return Err(OperatorError::Refused(format!("there is a user \"{name}\" already")));
        }
        if all.len() >= USERS_MAX {
            return Err(OperatorError::Refused(format!("there are {USERS_MAX} users already")));
        }
        Ok(())
    }

    /// Says who would be left without a user.
    ///
    /// # Errors
    ///
    /// As of [`Operator::user_remove`].
    pub fn user_remove_check(&self, asked: &api::UserName) -> Result<Vec<api::User>, OperatorError> {
        self.expect_user(&asked.name, asked.tag.as_deref())?;
        let mut all = self.user_list();
        all.retain(|user| user.name != asked.name);
        Ok(all)
    }

    /// Says what another role would come to.
    ///
    /// # Errors
    ///
    /// As of [`Operator::user_role`].
    pub fn user_role_check(&self, asked: &api::UserRole) -> Result<Vec<api::User>, OperatorError> {
        let role = role(&asked.role)?.word().to_owned();
        self.expect_user(&asked.name, asked.tag.as_deref())?;
        Ok(self
            .one_user(&asked.name)
            .into_iter()
            .map(|user| api::User { role: role.clone(), ..user })
            .collect())
    }

    /// Says what another password would come to.
    ///
    /// # Errors
    ///
    /// As of [`Operator::user_password`].
    pub fn user_password_check(&self, asked: &api::UserPassword) -> Result<Vec<api::User>, OperatorError> {
        self.expect_user(&asked.name, asked.tag.as_deref())?;
        passwords::check(&asked.password.0)?;
        let shown = |user| api::User { has_password: true, sessions: 0, ..user };
        Ok(self.one_user(&asked.name).into_iter().map(shown).collect())
    }

    fn add_user(
        &self,
        name: &str,
        role: Role,
        password: Option<PasswordKept>,
        by: &str,
    ) -> Result<(), OperatorError> {
        // Changes of settings count on the store's revision while they are compiled.
        let _current = lock(&self.current);
        let _writing = lock(&self.accounts.writing);
        self.check_new(name)?;
        // First what they prove themselves with: without a user it is nobody's.
        self.keep_credentials(name, &CredentialsKept { password, ..CredentialsKept::default() })?;
        self.keep_user(name, Some(role), by)?;
        // Who is to be the first is so no more.
        lock(&self.accounts.links).forget(&LinkFor::First);
        info!(user = name, role = role.word(), by, "a user of the API was added");
        Ok(())
    }

    /// Removes a user: from now on there is none of this name. Returns the others.
    ///
    /// # Errors
    ///
    /// There is none, or the store cannot be written.
    pub fn user_remove(&self, asked: &api::UserName, by: &str) -> Result<Vec<api::User>, OperatorError> {
        let name = asked.name.as_str();
        let _current = lock(&self.current);
        let _writing = lock(&self.accounts.writing);
        self.expect_user(name, asked.tag.as_deref())?;
        self.keep_user(name, None, by)?;
        lock(&self.accounts.links).forget(&LinkFor::User(name.to_owned()));
        let ended = self.end_sessions_of(name);
        info!(user = name, by, "a user of the API was removed");
        let forgotten = self.changing.authority().forget_notes(CREDENTIALS, [name]);
        forgotten.map_err(|error| OperatorError::NotKept(error.to_string()))?;
        ended?;
        Ok(self.user_list())
    }

    /// Gives a user another role; returns them.
    ///
    /// # Errors
    ///
    /// There is no such user or no such role, or the store cannot be written.
    pub fn user_role(&self, asked: &api::UserRole, by: &str) -> Result<Vec<api::User>, OperatorError> {
        let role = role(&asked.role)?;
        let _current = lock(&self.current);
        let _writing = lock(&self.accounts.writing);
        self.expect_user(&asked.name, asked.tag.as_deref())?;
        self.keep_user(&asked.name, Some(role), by)?;
        info!(user = asked.name, role = role.word(), by, "a user of the API has another role");
        self.end_sessions_of(&asked.name)?;
        Ok(self.one_user(&asked.name))
    }

    /// Gives a user another password; returns them.
    ///
    /// # Errors
    ///
    /// There is no such user, the password is none, or the store cannot be written.
    pub fn user_password(&self, asked: &api::UserPassword) -> Result<Vec<api::User>, OperatorError> {
        let tag = asked.tag.as_deref();
        self.expect_user(&asked.name, tag)?;
        let password = self.accounts.hashing.kept(&asked.password.0)?;
        self.set_password((&asked.name, tag), password, None)?;
        Ok(self.one_user(&asked.name))
    }

    /// Gives a user another password, if it is made for them as they are, and `proved` is what they
    /// still log in with.
    fn set_password(
        &self,
        (name, tag): (&str, Option<&str>),
        password: PasswordKept,
        proved: Option<&CredentialsKept>,
    ) -> Result<(), OperatorError> {
        let _writing = lock(&self.accounts.writing);
        self.expect_user(name, tag)?;
        let known = self.known_user(name)?;
        if proved.is_some_and(|proved| proved.password != known.credentials.password) {
            return Err(OperatorError::Conflict("somebody else has changed the password".to_owned()));
        }
        let password = Some(password);
        self.keep_credentials(name, &CredentialsKept { password, ..known.credentials.clone() })?;
        self.read_accounts();
        lock(&self.accounts.links).forget(&LinkFor::User(name.to_owned()));
        info!(user = name, "a user of the API has another password");
        self.end_sessions_of(name)
    }

    fn keep_credentials(&self, name: &str, credentials: &CredentialsKept) -> Result<(), OperatorError> {
        let noted = (CREDENTIALS, name);
        let kept = self.changing.authority().note(noted, &credentials.to_text(), (unix_seconds(), FOR_EVER));
        kept.map_err(|refusal| OperatorError::NotKept(refusal.to_string()))
    }

    fn keep_user(&self, name: &str, role: Option<Role>, by: &str) -> Result<(), OperatorError> {
        let before = self.user_list().into_iter().find(|user| user.name == name).map(|user| user.role);
        let (before, after) = (before, role.map(|role| role.word().to_owned()));
        let differences = vec![store::audit::Difference { path: name.to_owned(), before, after }];
        let put = store::Put {
            space: SPACE.to_owned(),
            name: name.to_owned(),
            text: role.map(|role| UserKept { role: role.word().to_owned() }.to_text()),
            until: None,
            expected: store::Expected::Any,
        };
        let (by, why) = (by.to_owned(), String::new());
        let change = store::Change {
            by,
            why,
            at: unix_seconds(),
            puts: vec![put],
            differences,
            ..store::Change::default()
        };
        let kept = self.changing.authority().keep(&change);
        kept.map_err(|refusal| OperatorError::NotKept(refusal.to_string()))?;
        self.read_accounts();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_nobody_elses_in_the_history() {
        for name in ["anna", "a", "anna.b@example.org", "x-1_2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "a".repeat(33);
        for name in ["", "1000", "Anna", "an na", "änna", "-a", "a\n", &long] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
