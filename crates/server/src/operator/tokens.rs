//! Tokens of the API: who may do what over the network.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aws_lc_rs::{digest, rand};
use control::api::{self, TokenKept};
use control::{Caller, Role, Scope, says_who_may};
use settings::overlay::SettingPath;
use tracing::{error, info};
use wire::{NameBuf, Prefix};

use super::overlay::rfc3339;
use super::{Operator, OperatorError, What, unix_seconds};
use crate::lock;

/// The space of the store that tokens are in, by name.
pub(super) const SPACE: &str = "tokens";
/// What a token begins with, so that it is known for one wherever it leaks to.
const PREFIX: &str = "gnt_";
/// Octets of chance in a token.
const SECRET_OCTETS: usize = 32;
/// Seconds without a request after which the next one counts as a log-in.
const LOGIN_AFTER_S: u64 = 60 * 60;
/// Tokens at once.
const TOKENS_MAX: usize = 1_000;
/// Characters of a token's name.
const NAME_CHARS_MAX: usize = 64;

/// A token that may be shown.
#[derive(Debug)]
struct Known {
    name: String,
    kept: TokenKept,
    role: Role,
    scope: Arc<Scope>,
    addresses: Vec<Prefix>,
    by: String,
    at: u64,
    /// When it was shown last, in seconds since 1970; 0: not since the start.
    used: AtomicU64,
}

/// The tokens, by the SHA-256 of each.
#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<Arc<BTreeMap<String, Arc<Known>>>>);

impl Tokens {
    fn all(&self) -> Arc<BTreeMap<String, Arc<Known>>> {
        Arc::clone(&lock(&self.0))
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

pub(super) fn sha256(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

/// Makes a token, of which nobody knows anything.
fn new_token() -> Result<String, OperatorError> {
    let mut secret = [0; SECRET_OCTETS];
    rand::fill(&mut secret)
        .map_err(|_| OperatorError::Refused("the system has no random numbers".to_owned()))?;
    Ok(format!("{PREFIX}{}", hex(&secret)))
}

/// Returns what is kept of a token that is asked for.
fn kept_of(asked: &api::TokenAdd, sha256: String, now: u64) -> TokenKept {
    TokenKept {
        sha256,
        role: asked.role.clone(),
        paths: asked.paths.clone(),
        zones: asked.zones.clone(),
        addresses: asked.addresses.clone(),
        until: asked.for_s.map(|seconds| now.saturating_add(seconds)),
    }
}

fn wrong(why: String) -> OperatorError {
    OperatorError::Argument(why)
}

/// Reads an address or a prefix.
fn prefix(text: &str) -> Result<Prefix, OperatorError> {
    let misread = || wrong(format!("\"{text}\" is neither an address nor a prefix"));
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| misread())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(most), str::parse::<u8>).ok().filter(|bits| *bits <= most);
    Ok(Prefix::new(address, bits.ok_or_else(misread)?))
}

/// Returns a token as it is checked.
fn known(kept: TokenKept, name: String, (by, at): (String, u64)) -> Result<Known, OperatorError> {
    let role = Role::parse(&kept.role).ok_or_else(|| {
        let words = Role::ALL.map(Role::word).join(", ");
        wrong(format!("unknown role \"{}\" (expected one of {words})", kept.role))
    })?;
    let paths = kept.paths.iter().map(|path| SettingPath::parse(path).map_err(wrong));
    let zone = |zone: &String| {
        zone.parse::<NameBuf>().map_err(|_| wrong(format!("\"{zone}\" is no name of a zone")))
    };
    let scope = Scope {
        paths: paths.collect::<Result<_, _>>()?,
        zones: kept.zones.iter().map(zone).collect::<Result<_, _>>()?,
    };
    let addresses = kept.addresses.iter().map(|text| prefix(text)).collect::<Result<_, _>>()?;
    let used = AtomicU64::new(0);
    Ok(Known { name, kept, role, scope: Arc::new(scope), addresses, by, at, used })
}

impl Known {
    fn is_over(&self, now: u64) -> bool {
        self.kept.until.is_some_and(|until| until <= now)
    }

    fn shown(&self) -> api::Token {
        let used = self.used.load(Ordering::Relaxed);
        api::Token {
            name: self.name.clone(),
            role: self.kept.role.clone(),
            paths: self.kept.paths.clone(),
            zones: self.kept.zones.clone(),
            addresses: self.kept.addresses.clone(),
            by: self.by.clone(),
            at: rfc3339(self.at),
            until: self.kept.until.map(rfc3339),
            is_over: self.is_over(unix_seconds()),
            last_used: (used > 0).then(|| rfc3339(used)),
        }
    }
}

impl Operator {
    /// Reads the tokens that are kept.
    pub(crate) fn read_tokens(&self) {
        let entries = match self.changing.authority().entries(SPACE) {
            Ok(entries) => entries,
            Err(error) => {
                error!(%error, "tokens of the API cannot be read: none is known");
                return;
            }
        };
        let before = self.tokens.all();
        let mut all = BTreeMap::new();
        for entry in entries {
            let read = TokenKept::parse(&entry.text).and_then(|kept| {
                known(kept, entry.name.clone(), (entry.by, entry.at)).map_err(|error| error.to_string())
            });
            match read {
                Ok(known) => {
                    let hash = known.kept.sha256.clone();
                    if let Some(before) = before.get(&hash) {
                        known.used.store(before.used.load(Ordering::Relaxed), Ordering::Relaxed);
                    }
                    all.insert(hash, Arc::new(known));
                }
                Err(why) => error!(token = entry.name, why, "a token of the API is not as it was written"),
            }
        }
        *lock(&self.tokens.0) = Arc::new(all);
    }

    /// Returns who shows a token; `None` if it is none, its time is over, or it may not be shown
    /// from there.
    ///
    /// The second is whether it was not shown for some time: a log-in.
    pub fn bearer(&self, token: &str, from: IpAddr) -> Option<(Caller, bool)> {
        let known = Arc::clone(self.tokens.all().get(&sha256(token))?);
        let now = unix_seconds();
        let from = from.to_canonical();
        let may_come =
            known.addresses.is_empty() || known.addresses.iter().any(|prefix| prefix.contains(from));
        if known.is_over(now) || !may_come {
            return None;
        }
        let used = known.used.swap(now, Ordering::Relaxed);
        let is_login = now.saturating_sub(used) >= LOGIN_AFTER_S;
        let name = format!("token {}", known.name);
        Some((Caller { name, role: known.role, scope: Arc::clone(&known.scope), from: None }, is_login))
    }

    /// Returns the role that a token gives, by its digest; `None` if it is none any more.
    pub(super) fn role_of_token(&self, hash: &str, now: u64) -> Option<Role> {
        self.tokens.all().get(hash).filter(|known| !known.is_over(now)).map(|known| known.role)
    }

    /// Returns the tokens, by name, never the texts of themselves.
    pub fn token_list(&self) -> Vec<api::Token> {
        let mut all: Vec<api::Token> = self.tokens.all().values().map(|known| known.shown()).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Says what a token would be.
    ///
    /// # Errors
    ///
    /// As of [`Operator::token_add`].
    pub fn token_add_check(&self, asked: &api::TokenAdd, by: &str) -> Result<api::Token, OperatorError> {
        self.check_token(asked)?;
        let kept = kept_of(asked, String::new(), unix_seconds());
        Ok(known(kept, asked.name.clone(), (by.to_owned(), unix_seconds()))?.shown())
    }

    /// Refuses a token that cannot be made.
    fn check_token(&self, asked: &api::TokenAdd) -> Result<(), OperatorError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
        if asked.name.is_empty() || asked.name.len() > NAME_CHARS_MAX || !asked.name.chars().all(is_plain) {
            let why = format!("a token's name has 1 to {NAME_CHARS_MAX} of a-z, A-Z, 0-9, -, _, . and @");
            return Err(wrong(why));
        }
        let gives_rights = |path: &&String| SettingPath::parse(path).is_ok_and(|path| says_who_may(&path));
        if let Some(path) = asked.paths.iter().find(gives_rights) {
            return Err(wrong(format!("\"{path}\" says who may do what, which is in no scope")));
        }
        let all = self.tokens.all();
        if all.values().any(|known| known.name == asked.name) {
            return Err(OperatorError::Refused(format!("there is a token \"{}\" already", asked.name)));
        }
        if all.len() >= TOKENS_MAX {
            return Err(OperatorError::Refused(format!("there are {TOKENS_MAX} tokens already")));
        }
        Ok(())
    }

    /// Makes a token. Its text is nowhere afterwards but with who asked for it.
    ///
    /// # Errors
    ///
    /// There is one of this name, what it may do makes no sense, or it cannot be kept.
    pub fn token_add(&self, asked: &api::TokenAdd, by: &str) -> Result<api::TokenAdded, OperatorError> {
        // Changes of settings count on the store's revision while they are compiled.
        let _current = lock(&self.current);
        self.check_token(asked)?;
        let token = new_token()?;
        let now = unix_seconds();
        let kept = kept_of(asked, sha256(&token), now);
        let shown = known(kept.clone(), asked.name.clone(), (by.to_owned(), now))?.shown();
        self.keep_token(&asked.name, Some(kept.to_text()), by)?;
        info!(token = asked.name, role = asked.role, by, "a token of the API was made");
        Ok(api::TokenAdded { secret: token, token: shown })
    }

    /// Revokes a token: from now on it is refused.
    ///
    /// # Errors
    ///
    /// There is none of this name, or the store cannot be written.
    pub fn token_revoke(&self, asked: &api::TokenName, by: &str) -> Result<Vec<api::Token>, OperatorError> {
        let name = asked.name.as_str();
        let _current = lock(&self.current);
        self.expect_token(asked)?;
        self.keep_token(name, None, by)?;
        info!(token = name, by, "a token of the API was revoked");
        Ok(self.token_list())
    }

    /// Says which tokens would be left.
    ///
    /// # Errors
    ///
    /// As of [`Operator::token_revoke`].
    pub fn token_revoke_check(&self, asked: &api::TokenName) -> Result<Vec<api::Token>, OperatorError> {
        self.expect_token(asked)?;
        let mut all = self.token_list();
        all.retain(|token| token.name != asked.name);
        Ok(all)
    }

    /// Refuses a change that was made for another token of this name.
    fn expect_token(&self, asked: &api::TokenName) -> Result<(), OperatorError> {
        let (name, tag) = (asked.name.as_str(), asked.tag.as_deref());
        let is = self.token_list().into_iter().find(|token| token.name == name).map(|token| token.tag());
        let is = is.ok_or_else(|| OperatorError::not_found(What::Token, name))?;
        match tag.is_some_and(|tag| tag != "*" && tag != is) {
            true => Err(OperatorError::Conflict(format!("the token \"{name}\" is another by now"))),
            false => Ok(()),
        }
    }

    fn keep_token(&self, name: &str, text: Option<String>, by: &str) -> Result<(), OperatorError> {
        let role = |token: &api::Token| token.role.clone();
        let before = self.token_list().iter().find(|token| token.name == name).map(role);
        // The text has a digest of the token, which is nobody's business.
        let after = text.as_deref().and_then(|text| Some(TokenKept::parse(text).ok()?.role));
        let differences = vec![store::audit::Difference { path: name.to_owned(), before, after }];
        let put = store::Put {
            space: SPACE.to_owned(),
            name: name.to_owned(),
            text,
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
        self.read_tokens();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_the_same_and_none_is_kept() {
        let [one, other] = [(); 2].map(|()| new_token().expect("random numbers"));
        assert!(one != other && one.starts_with(PREFIX) && one.len() == PREFIX.len() + 64, "{one}");
        assert!(!sha256(&one).contains(&one[PREFIX.len()..]));
    }

    #[test]
    fn where_a_token_may_be_shown_is_an_address_or_a_prefix() {
        let contains = |text: &str, address: &str| {
            prefix(text).is_ok_and(|prefix| prefix.contains(address.parse().expect("an address")))
        };
        assert!(contains("192.0.2.1", "192.0.2.1") && !contains("192.0.2.1", "192.0.2.2"));
        assert!(contains("2001:db8::/32", "2001:db8:1::1") && !contains("192.0.2.0/24", "192.0.3.1"));
        for text in ["192.0.2.0/33", "192.0.2", "here", "192.0.2.0/", "192.0.2.1/-1"] {
            assert!(prefix(text).is_err(), "{text}");
        }
    }
}
