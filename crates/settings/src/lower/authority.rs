//! What servers say to each other about zones: keys, who may do what, where other servers are.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use diagnostic::suggest::nearest;
use diagnostic::{At, Problem, Scalar, Span};
use plan::upstreams::Scheme;
use tsig::{Algorithm, Key};
use values::{Misread, Read};
use wire::{NameBuf, Rtype};

use super::{Lowering, Section, notation};
use crate::groups::{
    AlgorithmWord, GrantSettings, Host, KeySettings, ReachSettings, RemoteSettings, Server, UpdateSettings,
};
use schema::Value;

/// A word of a text, and where it is.
struct Word<'t> {
    text: &'t str,
    at: usize,
}

impl Word<'_> {
    fn wrong(&self, message: String, expected: &str) -> Misread {
        let at = self.at..self.at + self.text.len();
        Misread { at, message, expected: Some(expected.to_owned()), hint: None }
    }

    fn moved(&self, misread: Misread) -> Misread {
        let at = self.at + misread.at.start..self.at + misread.at.end;
        Misread { at, ..misread }
    }
}

/// Splits a text at spaces.
fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    text.split_ascii_whitespace()
        .map(|word| Word { text: word, at: word.as_ptr().addr() - text.as_ptr().addr() })
}

/// What words a grant is made of.
const GRANT_WORDS: &str =
    "an address, a prefix, \"any\", \"key NAME\", \"tls\", \"tls-name NAME\" or \"tls-pin HASH\"";
/// What words an update's grant is made of, besides.
const UPDATE_WORDS: &str = "an address, a prefix, \"any\", \"key NAME\", \"tls\", \"tls-name NAME\", \"tls-pin HASH\", \"name NAME\", \"below NAME\" or \"types TYPE,TYPE\"";
/// What words a server is made of.
const REMOTE_WORDS: &str = "an address such as 192.0.2.1 or tls://192.0.2.1#ns.example.org, at \"primaries\" the name of a host as well, then \"key NAME\", and over TLS \"pin HASH\", \"roots FILE\", \"certificate FILE\" or \"private-key FILE\"";

/// Reads what follows a word such as `key`.
fn after<'t, T>(
    word: &Word<'t>,
    words: &mut impl Iterator<Item = Word<'t>>,
    what: &str,
    read: impl Fn(&str) -> Read<T>,
) -> Read<T> {
    let Some(next) = words.next() else {
        return Err(word.wrong(format!("\"{}\" ends too early", word.text), what));
    };
    read(next.text).map_err(|misread| next.moved(misread))
}

/// Reads one word of a grant; `false` if it is none.
fn grant_word<'t>(
    grant: &mut GrantSettings,
    word: &Word<'t>,
    words: &mut impl Iterator<Item = Word<'t>>,
) -> Read<bool> {
    match word.text {
        "key" => grant.key = Some(after(word, words, "the name of a key", values::name)?),
        "tls" => grant.needs_tls = true,
        "tls-name" => {
            let host = after(word, words, "the name of a host in its certificate", host)?;
            grant.hosts.push(host);
            grant.needs_tls = true;
        }
        "tls-pin" => {
            grant.pins.push(after(word, words, "the hash of a key", notation::pin)?);
            grant.needs_tls = true;
        }
        text if text.starts_with(|c: char| c.is_ascii_digit())
            || text.contains(':')
            || text == "any"
            || text == "private"
            || text == "loopback"
            || text == "lan" =>
        {
            let prefixes = notation::prefixes(text).map_err(|misread| word.moved(misread))?;
            grant.from.get_or_insert_default().extend(prefixes);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn unknown(word: &Word<'_>, known: &[&str], expected: &str) -> Misread {
    let misread = word.wrong(format!("\"{}\" cannot stand here", word.text), expected);
    let hint = nearest(word.text, known.iter().copied()).map(|word| format!("did you mean \"{word}\"?"));
    Misread { hint, ..misread }
}

fn empty(expected: &str) -> Misread {
    let message = "there is nothing here".to_owned();
    Misread { at: 0..0, message, expected: Some(expected.to_owned()), hint: None }
}

/// Reads the path of a file; one with spaces cannot be said.
fn file(text: &str) -> Read<PathBuf> {
    Ok(PathBuf::from(text))
}

/// Reads the name of a host, as it stands in a certificate.
fn host(text: &str) -> Read<String> {
    let name = values::name(text)?;
    Ok(name.to_string().trim_end_matches('.').to_ascii_lowercase())
}

/// Reads who may do something.
pub(super) fn grant(text: &str) -> Read<GrantSettings> {
    let mut grant = GrantSettings::default();
    let mut all = words(text);
    while let Some(word) = all.next() {
        if !grant_word(&mut grant, &word, &mut all)? {
            return Err(unknown(&word, &["key", "tls", "tls-name", "tls-pin", "any"], GRANT_WORDS));
        }
    }
    if grant == GrantSettings::default() { Err(empty(GRANT_WORDS)) } else { Ok(grant) }
}

/// Reads who may change what.
pub(super) fn update(text: &str) -> Read<UpdateSettings> {
    let mut update = UpdateSettings::default();
    let mut all = words(text);
    while let Some(word) = all.next() {
        if grant_word(&mut update.grant, &word, &mut all)? {
            continue;
        }
        match word.text {
            "name" => {
                update.names.push(ReachSettings::Name(after(&word, &mut all, "a name", values::name)?));
            }
            "below" => {
                update.names.push(ReachSettings::Below(after(&word, &mut all, "a name", values::name)?));
            }
            "types" => {
                let read = |text: &str| text.split(',').map(values::rtype).collect::<Read<Vec<Rtype>>>();
                update.types.extend(after(&word, &mut all, "types such as A,AAAA", read)?);
            }
            _ => {
                let known = ["key", "tls", "tls-name", "tls-pin", "any", "name", "below", "types"];
                return Err(unknown(&word, &known, UPDATE_WORDS));
            }
        }
    }
    if update.grant == GrantSettings::default() { Err(empty(UPDATE_WORDS)) } else { Ok(update) }
}

/// Reads another server of a zone.
fn remote(text: &str) -> Read<RemoteSettings> {
    let mut all = words(text);
    let Some(first) = all.next() else { return Err(empty(REMOTE_WORDS)) };
    let server = notation::server(first.text).map_err(|misread| first.moved(misread))?;
    let mut remote = match server {
        Server::One {
            scheme: scheme @ (Scheme::Udp | Scheme::Tcp | Scheme::Tls),
            host,
            tls_name,
            stamp: None,
            ..
        } => RemoteSettings {
            address: match &host {
                Host::Address(address) => *address,
                Host::Name { port, .. } => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), *port),
            },
            host: match host {
                Host::Address(_) => None,
                Host::Name { name, .. } => Some(name),
            },
            over_tls: scheme == Scheme::Tls,
            tls_name,
            key: None,
            pins: Vec::new(),
            roots: None,
            certificate: None,
            private_key: None,
        },
        _ => {
            return Err(
                first.wrong(format!("\"{}\" is not the address of a server", first.text), REMOTE_WORDS)
            );
        }
    };
    while let Some(word) = all.next() {
        match word.text {
            "key" => remote.key = Some(after(&word, &mut all, "the name of a key", values::name)?),
            "pin" if remote.over_tls => {
                remote.pins.push(after(&word, &mut all, "the hash of a key", notation::pin)?);
            }
            "roots" if remote.over_tls => remote.roots = Some(after(&word, &mut all, "a file", file)?),
            "certificate" if remote.over_tls => {
                remote.certificate = Some(after(&word, &mut all, "a file", file)?);
            }
            "private-key" if remote.over_tls => {
                remote.private_key = Some(after(&word, &mut all, "a file", file)?);
            }
            "pin" | "roots" | "certificate" | "private-key" => {
                let message = format!("\"{}\" says something only over TLS (tls://)", word.text);
                return Err(word.wrong(message, REMOTE_WORDS));
            }
            _ => {
                let known = ["key", "pin", "roots", "certificate", "private-key"];
                return Err(unknown(&word, &known, REMOTE_WORDS));
            }
        }
        if remote.roots.is_some() && !remote.pins.is_empty() {
            let message = "a key that is pinned needs no authority".to_owned();
            return Err(word.wrong(message, "\"pin\" or \"roots\", not both"));
        }
    }
    if remote.private_key.is_some() && remote.certificate.is_none() {
        let message = "there is no certificate that this key could be of".to_owned();
        return Err(first.wrong(message, "\"certificate FILE\" beside \"private-key FILE\""));
    }
    Ok(remote)
}

impl Lowering<'_> {
    /// Reads the keys.
    pub(super) fn keys(&mut self, root: &Section<'_>) -> Vec<KeySettings> {
        let mut keys: Vec<KeySettings> = Vec::new();
        for item in self.items(root, "keys") {
            let name =
                self.optional(&item, "name", |lowering, _, node| lowering.read(node, "a name", values::name));
            let algorithm = self.word(&item, "algorithm", AlgorithmWord::parse);
            let secret = self.password(&item, "secret");
            let bits = self.whole_or(&item, "mac-bits").map(|bits| bits as u16);
            let (Some(name), Some(secret)) = (name, secret) else {
                for key in ["name", "secret"].iter().filter(|key| item.entry(key).is_none()) {
                    self.problems.push(
                        Problem::error(item.span, format!("\"{key}\" is missing"))
                            .expected("\"name:\" and \"secret:\""),
                    );
                }
                continue;
            };
            if let Some(first) = keys.iter().find(|key| key.name.value == name.value) {
                let problem = Problem::error(name.span, format!("key \"{}\" is there twice", name.value));
                self.problems.push(problem.hint_at("the first time is on ", first.name.span, ""));
                continue;
            }
            let place = item.entry("secret").map_or(item.span, |entry| entry.node.span);
            // The text itself is not quoted: it may be most of a secret.
            let Some(octets) = wire::text::read_base64(secret.reveal().trim_ascii()) else {
                let problem =
                    Problem::error(place, "this is not a secret").expected("Base64, or \"file:\" and a path");
                self.problems.push(problem.hint("\"openssl rand -base64 32\" prints one"));
                continue;
            };
            let algorithm: Algorithm = algorithm.algorithm();
            match Key::new(name.value.as_name(), algorithm, &octets, bits) {
                Ok(key) => keys.push(KeySettings { name, key: key.into() }),
                Err(tsig::BadKey::Empty) => {
                    self.problems.push(Problem::error(place, "the secret is empty"));
                }
                Err(tsig::BadKey::Truncation) => {
                    let place = item.entry("mac-bits").map_or(item.span, |entry| entry.node.span);
                    let (min, max) = (algorithm.octets_min() * 8, algorithm.octets() * 8);
                    let message = format!("{} has no such signatures", algorithm.word());
                    let expected = format!("{min} to {max}, in steps of 8");
                    self.problems.push(Problem::error(place, message).expected(expected));
                }
            }
        }
        keys
    }

    /// Reads a list of such texts.
    pub(super) fn texts<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl Fn(&str) -> Read<T>,
    ) -> Vec<At<T>> {
        self.list(section, key, |_, _: &Value, scalar: &Scalar| read(&scalar.text))
    }

    /// Reads other servers of a zone. Files that they name are relative to the file that says so.
    pub(super) fn remotes(&mut self, section: &Section<'_>, key: &str) -> Vec<At<RemoteSettings>> {
        let mut remotes = self.texts(section, key, remote);
        // Who is told something is known by its address.
        if !key.ends_with("primaries") {
            for At { value, span } in &remotes {
                if let Some(host) = &value.host {
                    let problem = Problem::error(*span, format!("\"{host}\" is not the address of a server"));
                    self.problems.push(problem.expected(REMOTE_WORDS));
                }
            }
        }
        for At { value, span } in &mut remotes {
            for path in [&mut value.roots, &mut value.certificate, &mut value.private_key] {
                *path = path.take().map(|path| self.beside(span.file, &path));
            }
        }
        remotes
    }

    /// Reports keys that are named and do not exist.
    pub(super) fn check_key(&mut self, keys: &[KeySettings], named: Option<&NameBuf>, place: Span) {
        let Some(named) = named else { return };
        if keys.iter().any(|key| key.name.value == *named) {
            return;
        }
        let known: BTreeMap<String, ()> = keys.iter().map(|key| (key.name.value.to_string(), ())).collect();
        let mut problem = Problem::error(place, format!("unknown key \"{named}\""));
        if let Some(near) = nearest(&named.to_string(), known.keys().map(String::as_str)) {
            problem = problem.hint(format!("did you mean \"{near}\"?"));
        } else if known.is_empty() {
            problem = problem.hint("keys are listed under \"keys:\"");
        }
        self.problems.push(problem);
    }
}

impl RemoteSettings {
    /// Returns the address alone.
    pub fn ip(&self) -> std::net::IpAddr {
        let address: SocketAddr = self.address;
        address.ip()
    }
}
