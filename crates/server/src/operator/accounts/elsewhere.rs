//! Logging in elsewhere: at a provider of OpenID Connect.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use control::api;
use control::{Role, network_of};
use environment::{Environment as _, System};
use jobs::web::{self, WebQuestion};
use oidc::{Expected, Keys, Person, Provider, Unproved};
use settings::OidcSettings;
use tracing::warn;

use super::log_in::{LogInRefusal, LoggedIn};
use super::sessions::sha256;
use crate::lock;
use crate::operator::{Operator, OperatorError, unix_seconds};

/// How long the provider may take to answer, and octets of an answer.
const PATIENCE: Duration = Duration::from_secs(10);
const OCTETS_MAX: u64 = 1 << 20;
/// For how long a description and keys are used.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// How long nobody asks again after a failure, or for keys that are not there.
const PAUSE: Duration = Duration::from_secs(10);
/// Seconds that somebody may take at the provider.
const BEGUN_S: u64 = 10 * 60;
/// Log-ins that have begun: of one prefix, and all; the oldest makes way.
const BEGUN_OF_PREFIX_MAX: usize = 16;
const BEGUN_MAX: usize = 4096;
/// Below the URL of this server, where the provider sends people back.
const BACK: &str = "/login/oidc";
/// What somebody is called who has logged in elsewhere, before their name there.
pub(super) const ELSEWHERE: &str = "oidc ";
/// Characters of that.
const NAME_CHARS_MAX: usize = 64;

/// A log-in that has begun.
struct Begun {
    nonce: String,
    verifier: String,
    prefix: IpAddr,
    until: u64,
}

/// What is known of the provider.
#[derive(Default)]
struct Known {
    of: Option<Arc<OidcSettings>>,
    provider: Option<(Provider, Instant)>,
    keys: Option<(Keys, Instant)>,
    /// When it was asked for keys again, because a token had one that was not known.
    asked_again: Option<Instant>,
    /// Why it could not be asked, and when.
    failed: Option<(String, Instant)>,
}

/// Which keys are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Known,
    New,
}

/// Log-ins elsewhere that came to nothing and are not told of yet. Strangers cause them, so that
/// the log has one line for all of a minute.
#[derive(Debug, Default)]
pub(super) struct Untold {
    /// Minutes since 1970, of the first.
    minute: u64,
    count: u64,
    /// Why the last did.
    why: String,
}

impl Untold {
    fn note(&mut self, why: &str, minute: u64) {
        if self.count == 0 {
            self.minute = minute;
        }
        self.count += 1;
        why.clone_into(&mut self.why);
    }

    /// Returns whether there are some of a minute that is over.
    pub(super) const fn are_due(&self, minute: u64) -> bool {
        self.count > 0 && self.minute != minute
    }

    /// Writes them to the log, and forgets them.
    pub(super) fn tell(&mut self) {
        let Self { count, why, .. } = std::mem::take(self);
        if count > 0 {
            warn!(count, why, "log-ins at the provider of OpenID Connect came to nothing");
        }
    }
}

/// Log-ins elsewhere.
#[derive(Default)]
pub(super) struct Elsewhere {
    /// Those that came to nothing.
    pub(super) untold: Mutex<Untold>,
    /// By the SHA-256 of the state.
    begun: Mutex<BTreeMap<String, Begun>>,
    /// Held while the provider is asked: one at a time.
    known: Mutex<Known>,
}

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elsewhere").finish_non_exhaustive()
    }
}

/// What the provider sends somebody back with.
#[derive(Clone, Debug, Default)]
pub struct ComesBack {
    /// Proves that the provider knows them.
    pub code: Option<api::Secret>,
    /// What they were sent there with.
    pub state: api::Secret,
    /// What their browser has kept of it.
    pub kept_state: Option<api::Secret>,
    /// Who the provider says that it is (RFC 9207).
    pub issuer: Option<String>,
    /// Why it does not say who they are.
    pub error: Option<String>,
}

fn refused(why: impl Into<String>) -> LogInRefusal {
    LogInRefusal::Failed(OperatorError::Refused(why.into()))
}

fn forbidden(why: impl Into<String>) -> LogInRefusal {
    LogInRefusal::Failed(OperatorError::Forbidden(why.into()))
}

impl Operator {
    fn oidc(&self) -> Option<Arc<OidcSettings>> {
        lock(&self.view).oidc.clone()
    }

    fn note_untold(&self, why: &str) {
        lock(&self.accounts.elsewhere.untold).note(why, unix_seconds() / 60);
    }

    /// Says to a stranger that the provider cannot be asked; why not is for the log.
    fn not_asked(&self, why: &str) -> LogInRefusal {
        self.note_untold(&format!("it cannot be asked: {why}"));
        refused("the provider to log in at cannot be asked")
    }

    /// Returns whether people can log in elsewhere.
    pub fn has_oidc(&self) -> bool {
        lock(&self.view).oidc.is_some()
    }

    /// Begins a log-in at the provider: returns where to send somebody, and what their browser has
    /// to keep until they come back.
    ///
    /// # Errors
    ///
    /// There is no provider, or it cannot be asked.
    pub fn begin_elsewhere(&self, from: IpAddr) -> Result<(String, api::Secret), LogInRefusal> {
        let settings = self.oidc().ok_or_else(|| refused("there is no provider to log in at"))?;
        let provider = self.provider(&settings).map_err(|why| self.not_asked(&why))?;
        let mut chance = [[0; 32]; 3];
        for octets in &mut chance {
            rand::fill(octets).map_err(|_| refused("the system has no random numbers"))?;
        }
        let back = format!("{}{BACK}", settings.url);
        let flow = provider.begin(&settings.client_id, &back, &settings.scopes, &chance);
        let (now, prefix) = (unix_seconds(), network_of(from));
        let begun = Begun { nonce: flow.nonce, verifier: flow.verifier, prefix, until: now + BEGUN_S };
        let mut all = lock(&self.accounts.elsewhere.begun);
        all.retain(|_, begun| begun.until > now);
        // Whoever begins and never comes back takes only from their neighbours.
        while all.values().filter(|begun| begun.prefix == prefix).count() >= BEGUN_OF_PREFIX_MAX {
            let own = all.iter().filter(|(_, begun)| begun.prefix == prefix);
            let oldest = own.min_by_key(|(_, begun)| begun.until).map(|(state, _)| state.clone());
            oldest.and_then(|state| all.remove(&state));
        }
        while all.len() >= BEGUN_MAX {
            let oldest = all.iter().min_by_key(|(_, begun)| begun.until).map(|(state, _)| state.clone());
            oldest.and_then(|state| all.remove(&state));
        }
        all.insert(sha256(&flow.state), begun);
        Ok((flow.url, api::Secret(flow.state)))
    }

    /// Logs somebody in whom the provider has sent back.
    ///
    /// # Errors
    ///
    /// They did not begin here, the provider does not prove who they are, or they have no role.
    pub fn log_in_elsewhere(&self, back: &ComesBack, from: IpAddr) -> Result<LoggedIn, LogInRefusal> {
        let settings = self.oidc().ok_or_else(|| refused("there is no provider to log in at"))?;
        self.person(&settings, back).and_then(|person| self.begin_for(&settings, &person, from)).inspect_err(
            |refusal| {
                let LogInRefusal::Failed(why) = refusal else { return };
                // Why the provider could not be asked is noted already.
                if !matches!(why, OperatorError::Refused(_)) {
                    self.note_untold(&why.to_string());
                }
                self.note_failed_log_in(from);
            },
        )
    }

    /// Returns who the provider proves that somebody is.
    fn person(&self, settings: &Arc<OidcSettings>, back: &ComesBack) -> Result<Person, LogInRefusal> {
        // The browser that began: a link with a state of somebody else logs nobody in.
        let is_own = back
            .kept_state
            .as_ref()
            .is_some_and(|kept| verify_slices_are_equal(kept.0.as_bytes(), back.state.0.as_bytes()).is_ok());
        let not_begun = || forbidden("this log-in did not begin here, or took too long: begin again");
        if !is_own {
            return Err(not_begun());
        }
        let now = unix_seconds();
        let begun = lock(&self.accounts.elsewhere.begun).remove(&sha256(&back.state.0));
        let begun = begun.filter(|begun| begun.until > now).ok_or_else(not_begun)?;
        let provider = self.provider(settings).map_err(|why| self.not_asked(&why))?;
        let is_issuer = match &back.issuer {
            Some(issuer) => *issuer == provider.issuer,
            None => !provider.says_issuer,
        };
        if !is_issuer {
            return Err(forbidden("another provider sends them back"));
        }
        if let Some(error) = &back.error {
            let error: String = error.chars().filter(char::is_ascii_graphic).take(64).collect();
            return Err(forbidden(format!("the provider refuses: {error}")));
        }
        let code = back.code.as_ref().ok_or_else(|| forbidden("the provider sends no code"))?;
        let token =
            self.token(settings, &provider, &code.0, &begun.verifier).map_err(|why| self.not_asked(&why))?;
        let expected = Expected {
            issuer: &provider.issuer,
            client: &settings.client_id,
            nonce: &begun.nonce,
            now,
            name_claim: &settings.name_claim,
            groups_claim: &settings.groups_claim,
        };
        let keys = self.keys(settings, &provider, Wanted::Known).map_err(|why| self.not_asked(&why))?;
        let checked = match oidc::check(&token, &keys, &expected) {
            // It may have new keys.
            Err(Unproved::UnknownKey) => {
                let keys = self.keys(settings, &provider, Wanted::New).map_err(|why| self.not_asked(&why))?;
                oidc::check(&token, &keys, &expected)
            }
            checked => checked,
        };
        checked.map_err(|why| forbidden(format!("the ID token is not believed: {why}")))
    }

    /// Begins a session of somebody whom the provider knows.
    fn begin_for(
        &self,
        settings: &OidcSettings,
        person: &Person,
        from: IpAddr,
    ) -> Result<LoggedIn, LogInRefusal> {
        let roles = settings.groups.iter().filter(|(group, _)| person.groups.contains(group));
        let role = roles.filter_map(|(_, word)| Role::parse(word.word())).max();
        let name = name_of(person);
        let role = role.ok_or_else(|| {
            forbidden(format!("no group of \"{name}\" has a role here (control.oidc.groups)"))
        })?;
        self.begin_session_of(&name, Some(role), from)
    }

    fn provider(&self, settings: &Arc<OidcSettings>) -> Result<Provider, String> {
        let mut known = lock(&self.accounts.elsewhere.known);
        if known.of.as_ref().is_none_or(|of| of != settings) {
            *known = Known { of: Some(Arc::clone(settings)), ..Known::default() };
        }
        if let Some((provider, at)) = &known.provider
            && at.elapsed() < KEPT
        {
            return Ok(provider.clone());
        }
        if let Some((why, at)) = &known.failed
            && at.elapsed() < PAUSE
        {
            return Err(why.clone());
        }
        let url = Provider::description_of(&settings.issuer);
        let found = self
            .ask_provider(settings, &url, None)
            .and_then(|octets| Provider::parse(&settings.issuer, &octets));
        match found {
            Ok(provider) => {
                known.provider = Some((provider.clone(), Instant::now()));
                known.failed = None;
                Ok(provider)
            }
            Err(why) => {
                known.failed = Some((why.clone(), Instant::now()));
                Err(why)
            }
        }
    }

    /// Returns the keys of the provider.
    fn keys(&self, settings: &OidcSettings, provider: &Provider, wanted: Wanted) -> Result<Keys, String> {
        let mut known = lock(&self.accounts.elsewhere.known);
        // Whoever makes tokens up does not have us ask for keys all the time.
        let may_ask = known.asked_again.is_none_or(|at| at.elapsed() >= PAUSE);
        if let Some((keys, at)) = &known.keys
            && at.elapsed() < KEPT
            && !(wanted == Wanted::New && may_ask)
        {
            return Ok(keys.clone());
        }
        if wanted == Wanted::New {
            known.asked_again = Some(Instant::now());
        }
        let octets = self.ask_provider(settings, &provider.jwks_uri, None)?;
        let keys = Keys::parse(&octets)?;
        known.keys = Some((keys.clone(), Instant::now()));
        Ok(keys)
    }

    /// Asks for the ID token that a code is good for.
    fn token(
        &self,
        settings: &OidcSettings,
        provider: &Provider,
        code: &str,
        verifier: &str,
    ) -> Result<String, String> {
        let secret = match &settings.secret_file {
            Some(file) => {
                let octets = System
                    .read(file)
                    .map_err(|error| format!("the secret in {} cannot be read: {error}", file.display()))?;
                Some(String::from_utf8_lossy(&octets).trim().to_owned())
            }
            None => None,
        };
        let back = format!("{}{BACK}", settings.url);
        let client = (settings.client_id.as_str(), secret.as_deref());
        let asked = provider.token_request(client, &back, code, verifier);
        let form = Some((asked.body.as_str(), asked.authorization.as_deref()));
        oidc::id_token(&self.ask_provider(settings, &provider.token_endpoint, form)?)
    }

    fn ask_provider(
        &self,
        settings: &OidcSettings,
        url: &str,
        form: Option<(&str, Option<&str>)>,
    ) -> Result<Vec<u8>, String> {
        let question = WebQuestion {
            url,
            form: form.map(|(body, _)| body),
            authorization: form.and_then(|(_, authorization)| authorization),
            ca: settings.ca.as_deref(),
            timeout: PATIENCE,
            octets_max: OCTETS_MAX,
        };
        match web::ask(&question, &self.facts.hosts) {
            Ok((200, octets)) => Ok(octets),
            Ok((status, _)) => Err(format!("the provider answers {status}")),
            Err(why) => Err(format!("the provider cannot be asked: {why}")),
        }
    }
}

/// Returns what somebody is called here: the name, and what nobody else is called there.
fn name_of(person: &Person) -> String {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_control() || c.is_whitespace() { '_' } else { c }).collect()
    };
    let (name, subject) = (plain(&person.name), plain(&person.subject));
    let whole = match name == subject {
        true => format!("{ELSEWHERE}{name}"),
        false => format!("{ELSEWHERE}{name} {subject}"),
    };
    match whole.chars().count() > NAME_CHARS_MAX {
        // Cut, two could be one.
        true => {
            let digest = sha256(&whole);
            let begin: String = whole.chars().take(NAME_CHARS_MAX - 17).collect();
            format!("{begin} {}", digest.get(..16).unwrap_or(""))
        }
        false => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_ins_that_came_to_nothing_are_told_of_once_a_minute() {
        let mut untold = Untold::default();
        assert!(!untold.are_due(5));
        for number in 0..1_000 {
            untold.note(&format!("reason {number}"), 5 + number / 900);
        }
        assert!(!untold.are_due(5) && untold.are_due(6));
        assert_eq!((untold.count, untold.why.as_str()), (1_000, "reason 999"));
        untold.tell();
        assert!(!untold.are_due(7));
    }

    #[test]
    fn nobody_elsewhere_is_called_like_somebody_else() {
        let name = |name: &str, subject: &str| {
            name_of(&Person { subject: subject.to_owned(), name: name.to_owned(), groups: Vec::new() })
        };
        assert_eq!(name("anna", "248289"), "oidc anna 248289");
        assert_eq!(name("anna", "anna"), "oidc anna");
        assert_eq!(name("an na\n", "a b"), "oidc an_na_ a_b");
        let long = "x".repeat(100);
        assert_ne!(name(&long, "1"), name(&long, "2"));
        assert_eq!(name(&long, "1").chars().count(), NAME_CHARS_MAX);
    }
}
