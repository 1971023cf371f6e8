//! Logging in and out.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use control::api::{self, CredentialsKept, SessionKept};
use control::{Caller, Role, network_of};
use tracing::{error, info};

use super::elsewhere::ELSEWHERE;
use super::links::GOOD_S;
use super::sessions::{Begun, end_of_note};
use super::{Accounts, FIRST_LINK, FOR_EVER, Known, LINKS, LinkFor, NAME_CHARS_MAX, SESSIONS, check_name};
use crate::lock;
use crate::operator::overlay::rfc3339;
use crate::operator::{Operator, OperatorError, What, unix_seconds};

/// Prefixes that a user has logged in from lately.
const PLACES_MAX: usize = 8;
/// Who has the first user added.
const BY_LINK: &str = "log-in link";
/// What somebody with a session is called before their name.
const USER: &str = "user ";

/// Why nobody is logged in.
#[derive(Debug)]
pub enum LogInRefusal {
    /// Too often; how long it takes until the next try.
    Slow(Duration),
    /// There is no such user, or they do not log in with that.
    Wrong,
    /// The password is right, and a one-time code is needed, too.
    CodeNeeded,
    /// The link was used before, or its time is over.
    LinkOver,
    /// It cannot be done.
    Failed(OperatorError),
}

impl From<OperatorError> for LogInRefusal {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::Busy(_) => Self::Slow(Duration::from_secs(1)),
            other => Self::Failed(other),
        }
    }
}

/// Somebody who has logged in.
#[derive(Debug)]
pub struct LoggedIn {
    /// What shows the session: to be kept nowhere but with them.
    pub secret: api::Secret,
    /// Who they are.
    pub who: api::WhoAsks,
}

/// Returns as whom a user has things done.
pub(super) fn called(user: &str) -> String {
    match user.starts_with(ELSEWHERE) {
        true => user.to_owned(),
        false => format!("{USER}{user}"),
    }
}

impl Operator {
    /// Reads the sessions that are kept.
    pub(crate) fn read_sessions(&self) {
        let notes = match self.changing.authority().notes(SESSIONS, unix_seconds()) {
            Ok(notes) => notes,
            Err(error) => {
                error!(%error, "sessions of the API cannot be read: all are ended");
                return;
            }
        };
        let users = self.accounts.all();
        let kept = notes.into_iter().filter_map(|(hash, text)| Some((hash, SessionKept::parse(&text).ok()?)));
        let kept = kept.filter(|(_, kept)| kept.role.is_some() || users.contains_key(&kept.user)).collect();
        lock(&self.accounts.sessions).read(kept);
    }

    /// Logs somebody in.
    ///
    /// # Errors
    ///
    /// They are not who they say, or tried too often. It takes as long whether there is such a user
    /// or not.
    pub fn log_in(&self, asked: &api::LogIn, from: IpAddr) -> Result<LoggedIn, LogInRefusal> {
        match &asked.link {
            Some(link) => self.log_in_by_link(asked, &link.0, from),
            None => self.log_in_by_password(asked, from),
        }
    }

    fn log_in_by_password(&self, asked: &api::LogIn, from: IpAddr) -> Result<LoggedIn, LogInRefusal> {
        let none = || OperatorError::Argument("this needs a name and a password, or a link".to_owned());
        let typed = asked.password.as_ref().ok_or_else(none)?;
        let name: String = asked.name.trim().chars().take(NAME_CHARS_MAX + 1).collect();
        let known = self.prove(&name, typed, from)?;
        self.use_code(&name, asked.code.as_ref()).inspect_err(|refusal| {
            if matches!(refusal, LogInRefusal::Wrong) {
                self.note_failed_log_in(from);
            }
        })?;
        let begun = self.begin_session(&name, &known.credentials, from)?;
        self.remember_place(&name, network_of(from).to_string());
        Ok(begun)
    }

    /// Returns a user whose password this is, if they may try.
    fn prove(&self, name: &str, typed: &api::Secret, from: IpAddr) -> Result<Arc<Known>, LogInRefusal> {
        let prefix = network_of(from);
        let known = self.accounts.all().get(name).cloned();
        let place = prefix.to_string();
        let is_trusted = known.as_ref().is_some_and(|known| known.credentials.places.contains(&place));
        let admitted = self.accounts.tries.admit((name, prefix), is_trusted, Instant::now());
        admitted.map_err(|wait| {
            self.note_failed_log_in(from);
            LogInRefusal::Slow(wait)
        })?;
        let password = known.as_ref().and_then(|known| known.credentials.password.as_ref());
        let is_right = self.accounts.hashing.is_right(&typed.0, password)?;
        known.filter(|_| is_right).ok_or_else(|| {
            self.note_failed_log_in(from);
            LogInRefusal::Wrong
        })
    }

    /// Gives somebody with a session another password, and a new session: all others are ended.
    ///
    /// # Errors
    ///
    /// They have no session, the old password is wrong, or the new one is none.
    pub fn change_own_password(
        &self,
        caller: &Caller,
        asked: &api::OwnPassword,
        from: IpAddr,
    ) -> Result<LoggedIn, LogInRefusal> {
        let none = || OperatorError::Refused("only users who have logged in have a password".to_owned());
        let name = caller.name.strip_prefix(USER).ok_or_else(none)?;
        let proved = self.prove(name, &asked.password, from)?;
        let password = self.accounts.hashing.kept(&asked.new_password.0)?;
        self.audit_first(&caller.name, ("user-password", name))?;
        self.set_password((name, None), password, Some(&proved.credentials))?;
        let known = self.known_user(name)?;
        self.begin_session(name, &known.credentials, from)
    }

    fn log_in_by_link(&self, asked: &api::LogIn, code: &str, from: IpAddr) -> Result<LoggedIn, LogInRefusal> {
        let whom = self.link_is_for(code).ok_or_else(|| {
            self.note_failed_log_in(from);
            LogInRefusal::LinkOver
        })?;
        // Whatever is wrong with what was typed leaves the link good.
        let password = asked.password.as_ref().map(|password| self.accounts.hashing.kept(&password.0));
        let password = password.transpose()?;
        let name = match &whom {
            LinkFor::First => {
                check_name(&asked.name)?;
                if password.is_none() {
                    return Err(OperatorError::Argument("the first user needs a password".to_owned()).into());
                }
                asked.name.clone()
            }
            LinkFor::User(name) => name.clone(),
        };
        lock(&self.accounts.links).take(code, unix_seconds()).ok_or(LogInRefusal::LinkOver)?;
        match (whom, password) {
            (LinkFor::First, password) => self.add_user(&name, Role::Admin, password, BY_LINK)?,
            (LinkFor::User(_), Some(password)) => {
                self.audit_words(&called(&name), ("user-password", &name), "accepted, by a link")
                    .map_err(|error| OperatorError::NotKept(error.to_string()))?;
                self.set_password((&name, None), password, None)?;
            }
            (LinkFor::User(_), None) => {}
        }
        let known = self.known_user(&name)?;
        let begun = self.begin_session(&name, &known.credentials, from)?;
        self.remember_place(&name, network_of(from).to_string());
        Ok(begun)
    }

    /// Makes a link that logs somebody in, once: a user, or the first one.
    ///
    /// # Errors
    ///
    /// There is no such user, or nowhere to log in.
    pub fn log_in_link(&self, user: Option<&str>) -> Result<api::LogInLink, OperatorError> {
        let whom = match user {
            Some(user) => {
                self.known_user(user)?;
                LinkFor::User(user.to_owned())
            }
            None if self.accounts.all().is_empty() => LinkFor::First,
            None => {
                return Err(OperatorError::Argument("which user? (there are some already)".to_owned()));
            }
        };
        let base = self.base_url().ok_or_else(|| {
            OperatorError::Refused("nobody can log in anywhere: set control.listen".to_owned())
        })?;
        let now = unix_seconds();
        let code = lock(&self.accounts.links)
            .make(whom, now)
            .ok_or_else(|| OperatorError::Refused("the system has no random numbers".to_owned()))?;
        Ok(api::LogInLink { url: format!("{base}/login?code={code}"), until: rfc3339(now + GOOD_S) })
    }

    /// Says where browsers find the API; returns a link for the first user at the first start with
    /// such a place. Who misses it asks for another: a log that has one at each start would let its
    /// readers in at each start.
    pub fn begin_log_ins(&self, addresses: Vec<SocketAddr>) -> Option<api::LogInLink> {
        *lock(&self.accounts.addresses) = addresses;
        let authority = self.changing.authority();
        if !self.accounts.all().is_empty() || !authority.keeps_changes() || self.base_url().is_none() {
            return None;
        }
        let (now, note) = (unix_seconds(), (LINKS, FIRST_LINK));
        // Where nothing can be kept nobody can be added.
        let is_first = authority.noted(note, now).is_ok_and(|known| known.is_none());
        let kept = is_first && authority.note(note, &rfc3339(now), (now, FOR_EVER)).is_ok();
        kept.then(|| self.log_in_link(None).ok()).flatten()
    }

    /// Returns whom the code of a link logs in; the link stays good.
    pub fn link_is_for(&self, code: &str) -> Option<LinkFor> {
        lock(&self.accounts.links).look(code, unix_seconds())
    }

    /// Returns where a browser finds the API: by a name if others can reach it, as certificates
    /// are for names.
    fn base_url(&self) -> Option<String> {
        let all = lock(&self.accounts.addresses).clone();
        let is_local = |address: &&SocketAddr| address.ip().to_canonical().is_loopback();
        let Some(open) = all.iter().find(|address| !is_local(address)) else {
            return all.first().map(|address| format!("http://{address}"));
        };
        let name = self.names().into_iter().find(|name| !name.starts_with('*'));
        let host = match (name, open.ip()) {
            (Some(name), _) if name.parse::<Ipv6Addr>().is_ok() => format!("[{name}]"),
            (Some(name), _) => name,
            (None, ip) if ip.is_unspecified() => "localhost".to_owned(),
            (None, IpAddr::V4(ip)) => ip.to_string(),
            (None, IpAddr::V6(ip)) => format!("[{ip}]"),
        };
        Some(format!("https://{host}:{}", open.port()))
    }

    /// Begins a session of a user who has proved who they are with these credentials.
    fn begin_session(
        &self,
        name: &str,
        proved: &CredentialsKept,
        from: IpAddr,
    ) -> Result<LoggedIn, LogInRefusal> {
        let is_still = |known: &Arc<Known>| known.credentials.password == proved.password;
        self.begin_session_if(name, from, || {
            // Who takes a password away ends the sessions afterwards: of what was proved before
            // there is none left.
            let known = self.accounts.all().get(name).filter(|known| is_still(known)).cloned();
            known.map(|known| (known.role, None))
        })
    }

    /// Begins a session of somebody who is known elsewhere, and has a role for as long as it lasts.
    pub(super) fn begin_session_of(
        &self,
        name: &str,
        role: Option<Role>,
        from: IpAddr,
    ) -> Result<LoggedIn, LogInRefusal> {
        self.begin_session_if(name, from, || role.map(|own| (own, role)))
    }

    /// Begins a session if, while none can be ended, somebody has a role: of the user, or of the
    /// session.
    fn begin_session_if(
        &self,
        name: &str,
        from: IpAddr,
        role: impl FnOnce() -> Option<(Role, Option<Role>)>,
    ) -> Result<LoggedIn, LogInRefusal> {
        let now = unix_seconds();
        let mut sessions = lock(&self.accounts.sessions);
        let (role, of_session) = role().ok_or(LogInRefusal::Wrong)?;
        let begun = sessions
            .begin((name, of_session), from, now)
            .ok_or_else(|| OperatorError::Refused("the system has no random numbers".to_owned()))?;
        drop(sessions);
        self.note_begun(&begun, now)?;
        let session = lock(&self.accounts.sessions).by_secret(&begun.secret, now);
        let by = called(name);
        lock(&self.accounts.log_ins).note(network_of(from), unix_seconds() / 60);
        if let Err(why) = self.audit_first(&by, ("log-in", &from.to_string())) {
            if let Some(session) = &session {
                let _ = self.end_session(&session.id);
            }
            return Err(why.into());
        }
        info!(user = name, %from, "a user of the API has logged in");
        let role = role.word().to_owned();
        Ok(LoggedIn { secret: api::Secret(begun.secret), who: api::WhoAsks { name: by, role, session } })
    }

    /// Writes a session that begins to the store.
    fn note_begun(&self, begun: &Begun, now: u64) -> Result<(), LogInRefusal> {
        let authority = self.changing.authority();
        // Who ends it meanwhile takes it off the disk after this.
        let _noting = lock(&self.accounts.noting);
        let kept = lock(&self.accounts.sessions).kept(&begun.hash).ok_or(LogInRefusal::Wrong)?;
        let noted = authority.note((SESSIONS, &begun.hash), &kept.to_text(), (now, end_of_note(&kept)));
        if let Err(refusal) = noted {
            lock(&self.accounts.sessions).end(std::slice::from_ref(&begun.hash));
            return Err(OperatorError::NotKept(refusal.to_string()).into());
        }
        // What stays on the disk is over, or makes way again.
        let _ = authority.forget_notes(SESSIONS, begun.ended.iter().map(String::as_str));
        Ok(())
    }

    /// Remembers that a user has logged in from a prefix, so that strangers who guess cannot keep
    /// them out there.
    fn remember_place(&self, name: &str, place: String) {
        let _writing = lock(&self.accounts.writing);
        let Some(known) = self.accounts.all().get(name).cloned() else { return };
        let mut places = known.credentials.places.clone();
        if places.last() == Some(&place) {
            return;
        }
        places.retain(|known| *known != place);
        places.push(place);
        places.drain(..places.len().saturating_sub(PLACES_MAX));
        let credentials = CredentialsKept { places, ..known.credentials.clone() };
        // They are logged in all the same.
        if self.keep_credentials(name, &credentials).is_ok() {
            self.read_accounts();
        }
    }

    /// Returns who shows a session; `None` if it is none, or over. The second is whether its use is
    /// to be [noted](Self::note_sessions).
    pub fn session(&self, secret: &str) -> Option<(Caller, bool)> {
        let (kept, is_due) = lock(&self.accounts.sessions).shown(secret, unix_seconds())?;
        let role = self.role_in(&kept)?;
        Some((Caller { name: called(&kept.user), role, scope: Arc::default(), from: None }, is_due))
    }

    /// Returns the role that a session gives.
    fn role_in(&self, kept: &SessionKept) -> Option<Role> {
        match &kept.role {
            // Where nobody logs in elsewhere any more, nobody has.
            Some(role) => Role::parse(role).filter(|_| self.has_oidc()),
            None => self.accounts.all().get(&kept.user).map(|user| user.role),
        }
    }

    /// Returns the role that a session gives, by the digest of what shows it; `None` if it is over.
    pub(in crate::operator) fn role_of_session(&self, hash: &str, now: u64) -> Option<Role> {
        let kept = lock(&self.accounts.sessions).good(hash, now)?;
        self.role_in(&kept)
    }

    /// Notes on the disk that sessions were used.
    pub fn note_sessions(&self) {
        let now = unix_seconds();
        // Held, so that one that ends meanwhile is taken off the disk after this.
        let _noting = lock(&self.accounts.noting);
        let uses = lock(&self.accounts.sessions).take_uses();
        for (hash, kept) in uses {
            // What is not noted ends earlier after a restart.
            let times = (now, end_of_note(&kept));
            let _ = self.changing.authority().note((SESSIONS, &hash), &kept.to_text(), times);
        }
    }

    /// Returns who asks, with the session that they show.
    pub fn who_asks(&self, caller: &Caller, secret: Option<&str>) -> api::WhoAsks {
        let session =
            secret.and_then(|secret| lock(&self.accounts.sessions).by_secret(secret, unix_seconds()));
        api::WhoAsks { name: caller.name.clone(), role: caller.role.word().to_owned(), session }
    }

    /// Ends the session that something shows.
    ///
    /// # Errors
    ///
    /// It cannot be taken off the disk.
    pub fn log_out(&self, caller: &Caller, secret: &str) -> Result<(), OperatorError> {
        let session = lock(&self.accounts.sessions).by_secret(secret, unix_seconds());
        let Some(session) = session else { return Ok(()) };
        // It ends whatever becomes of the row: that is the safe side.
        self.end_session(&session.id)?;
        self.audit(&caller.name, ("log-out", &session.from), "accepted");
        Ok(())
    }

    /// Returns the sessions that somebody may see: their own, and admins all.
    pub fn session_list(&self, caller: &Caller) -> Vec<api::Session> {
        // A user of the system is another than one of the API who is called the same.
        let of_api = caller.name.strip_prefix(USER);
        let own =
            of_api.or_else(|| caller.name.starts_with(ELSEWHERE).then_some(&*caller.name)).unwrap_or("");
        let user = (caller.role < Role::Admin).then_some(own);
        lock(&self.accounts.sessions).list(user, unix_seconds())
    }

    /// Ends a session of their own, or as an admin any; returns those that are left.
    ///
    /// # Errors
    ///
    /// There is none that they may end, or it cannot be taken off the disk.
    pub fn session_revoke(&self, id: &str, caller: &Caller) -> Result<Vec<api::Session>, OperatorError> {
        let all = self.session_list(caller);
        let session = all.iter().find(|session| session.id == id);
        let session = session.ok_or_else(|| OperatorError::not_found(What::Session, id))?;
        let on = format!("{} of {}", session.id, session.user);
        // As with a log-out, the row is not waited for.
        self.end_session(id)?;
        self.audit(&caller.name, ("session-revoke", &on), "accepted");
        Ok(self.session_list(caller))
    }

    fn end_session(&self, id: &str) -> Result<(), OperatorError> {
        let ended = {
            let mut sessions = lock(&self.accounts.sessions);
            let found = sessions.find(id).map(|(hash, _)| hash);
            sessions.end(found.as_slice())
        };
        self.forget_sessions(&ended)
    }

    /// Ends all sessions of a user.
    pub(super) fn end_sessions_of(&self, user: &str) -> Result<(), OperatorError> {
        let ended = lock(&self.accounts.sessions).end_all_of(user);
        self.forget_sessions(&ended)
    }

    /// Takes sessions that have ended off the disk.
    fn forget_sessions(&self, ended: &[String]) -> Result<(), OperatorError> {
        if ended.is_empty() {
            return Ok(());
        }
        let _noting = lock(&self.accounts.noting);
        let forgotten = self.changing.authority().forget_notes(SESSIONS, ended.iter().map(String::as_str));
        forgotten.map_err(|error| {
            let why = format!("the sessions are ended, but a restart finds them on the disk again: {error}");
            OperatorError::NotKept(why)
        })
    }

    /// Notes that somebody tried in vain to prove who they are. It does not wait for the disk.
    pub fn note_failed_log_in(&self, from: IpAddr) {
        let minute = unix_seconds() / 60;
        lock(&self.accounts.failures).note(network_of(from), minute);
    }

    /// Writes to the audit log that somebody has proved who they are.
    pub fn note_log_in(&self, by: &str, from: IpAddr) {
        lock(&self.accounts.log_ins).note(network_of(from), unix_seconds() / 60);
        self.audit(by, ("log-in", &from.to_string()), "accepted");
    }

    /// Returns whether log-ins are to be told of, and those that failed to be written to the audit
    /// log.
    pub(crate) fn has_log_ins(&self) -> bool {
        let minute = unix_seconds() / 60;
        let Accounts { failures, log_ins, elsewhere, .. } = &self.accounts;
        lock(&elsewhere.untold).are_due(minute)
            || [failures, log_ins].into_iter().any(|of| lock(of).are_due(minute))
    }

    /// Tells of log-ins, by prefix and minute, and writes those that failed to the audit log.
    pub(crate) fn tell_log_ins(&self) {
        let told = |from: &String, is_accepted, count| {
            let event = api::LoginEvent { from: from.clone(), is_accepted, count };
            self.tell(api::EventOf::Login(event));
        };
        let accepted = lock(&self.accounts.log_ins).take();
        accepted.iter().for_each(|(from, count)| told(from, true, *count));
        lock(&self.accounts.elsewhere.untold).tell();
        let failed = lock(&self.accounts.failures).take();
        for (from, count) in failed {
            told(&from, false, count);
            self.audit("nobody", ("log-in", &from), &format!("refused: {count} times within a minute"));
        }
    }
}
