//! The new file under way.

use std::path::Path;

use diagnostic::{At, Problem, Span};
use values::TokenUri;

use super::super::write::{Map, Noted, Out, document};
use super::templates::fold;
use super::{Files, NameServer, Peer};

/// What of a zone the new file says.
#[derive(Clone, Default)]
pub(super) struct ZoneMade {
    pub(super) name: String,
    /// What the other program calls what it has in common with other zones.
    pub(super) template: Option<String>,
    pub(super) notes: Vec<String>,
    pub(super) file: Option<String>,
    pub(super) set: Option<String>,
    /// Who may query it; `None` means anybody.
    pub(super) allow_query: Option<Vec<String>>,
    pub(super) sign: Option<String>,
    pub(super) primaries: Vec<String>,
    pub(super) transfer: Vec<String>,
    pub(super) notify: Vec<String>,
    pub(super) notify_from: Vec<String>,
    pub(super) update: Vec<String>,
    pub(super) forward_updates: Vec<String>,
    pub(super) on_file_change: Option<&'static str>,
    pub(super) serial: Option<String>,
    pub(super) journal_size: Option<u64>,
    pub(super) catalog: Option<String>,
    pub(super) group: Option<String>,
    pub(super) catalog_role: Option<&'static str>,
    pub(super) make: Vec<Noted>,
    pub(super) choose: Vec<Noted>,
}

impl ZoneMade {
    pub(super) fn into_noted(mut self) -> Noted {
        let mut map = Map::default();
        map.put("name", std::mem::take(&mut self.name));
        let notes = std::mem::take(&mut self.notes);
        map.extend(self.into_map());
        Noted { notes, value: map.into() }
    }

    /// Returns all but the name.
    pub(super) fn into_map(self) -> Map {
        let mut map = Map::default();
        map.put_some("file", self.file);
        map.put_some("set", self.set);
        map.put_some("catalog-role", self.catalog_role);
        if let Some(clients) = self.allow_query {
            map.put("allow-query", Out::Row(clients));
        }
        let rows = [
            ("primaries", self.primaries),
            ("transfer", self.transfer),
            ("notify", self.notify),
            ("notify-from", self.notify_from),
            ("update", self.update),
            ("forward-updates", self.forward_updates),
        ];
        for (key, mut row) in rows {
            let mut seen = std::collections::BTreeSet::new();
            row.retain(|text| seen.insert(text.clone()));
            if !row.is_empty() {
                map.put(key, Out::Row(row));
            }
        }
        map.put_some("on-file-change", self.on_file_change);
        map.put_some("serial", self.serial);
        map.put_some("journal-size", self.journal_size.map(values::size_text));
        map.put_some("catalog", self.catalog);
        map.put_some("group", self.group);
        map.put_some("sign", self.sign);
        for (key, list) in [("make", self.make), ("choose", self.choose)] {
            if !list.is_empty() {
                map.put(key, Out::List(list));
            }
        }
        map
    }
}

/// What the new file says, by section.
#[derive(Default)]
pub(super) struct Made {
    /// The comment at the top.
    pub(super) head: Vec<String>,
    pub(super) server: Map,
    pub(super) listen: Vec<Noted>,
    pub(super) certificates: Vec<Noted>,
    pub(super) tls: Map,
    /// Who may ask for what is in no zone; anybody unless it says so.
    pub(super) allow: Option<Vec<String>>,
    pub(super) rate: Map,
    pub(super) tcp: Map,
    pub(super) cookies: Map,
    pub(super) edns: Map,
    pub(super) metrics: Map,
    pub(super) log: Map,
    pub(super) keys: Vec<Noted>,
    pub(super) transfers: Map,
    pub(super) signing: Map,
    pub(super) sets: Map,
    pub(super) upstreams: Map,
    pub(super) caches: Map,
    pub(super) zones: Vec<ZoneMade>,
    pub(super) directories: Vec<Noted>,
    /// Policies; `main` answers from zones and nothing else if it is empty.
    pub(super) main: Vec<Noted>,
    pub(super) policies: Vec<(String, Vec<Noted>)>,
    pub(super) views: Vec<Noted>,
}

impl Made {
    /// Adds a listener.
    pub(super) fn listens(&mut self, at: &str, transports: &[&str], trusted: &[String]) {
        if transports.is_empty() && trusted.is_empty() {
            return self.listen.push(Noted::from(at));
        }
        let mut map = Map::default();
        map.put("at", at);
        if !transports.is_empty() {
            map.put("transport", Out::Row(transports.iter().map(|&word| word.to_owned()).collect()));
        }
        if !trusted.is_empty() {
            map.put("proxy-protocol-from", Out::Row(trusted.to_vec()));
        }
        self.listen.push(map.into());
    }

    /// Adds a listener that asks its clients for certificates.
    pub(super) fn listens_for(&mut self, at: &str, transport: &str, certificates: &str) {
        let mut map = Map::default();
        map.put("at", at);
        map.put("transport", Out::Row(vec![transport.to_owned()]));
        map.put("client-certificates", certificates);
        self.listen.push(map.into());
    }

    /// Adds a certificate with its key.
    pub(super) fn shows(&mut self, certificate: String, key: String) {
        let mut map = Map::default();
        map.put("certificate", certificate);
        map.put("key", key);
        let map = Noted::from(map);
        if !self.certificates.contains(&map) {
            self.certificates.push(map);
        }
    }

    /// Adds a key.
    pub(super) fn key(&mut self, name: &str, algorithm: Option<&str>, secret: &str) {
        let mut map = Map::default();
        map.put("name", name);
        map.put_some("algorithm", algorithm);
        map.put("secret", secret);
        self.keys.push(map.into());
    }

    /// Adds upstream servers under a name; returns the actions that ask them. What they say is kept
    /// in a cache of their own: another zone's servers, or those of another view, may say something
    /// else.
    pub(super) fn forwards(&mut self, name: &str, servers: Vec<String>) -> Vec<String> {
        self.upstream(name, servers);
        self.caches.put(name, Map::default());
        vec![format!("cache({name})"), format!("forward({name})")]
    }

    /// Adds upstream servers under a name.
    pub(super) fn upstream(&mut self, name: &str, servers: Vec<String>) {
        let mut map = Map::default();
        let servers = servers.into_iter().map(Noted::from).collect();
        map.put("servers", Out::List(servers));
        self.upstreams.put(name, map);
    }

    /// Prints it.
    pub(super) fn document(self, path: &Path, server: NameServer) -> String {
        let program = server.name();
        let mut head = vec![
            format!("Made from {} ({program}) by \"gannet import\".", path.display()),
            format!("Comments say where this behaves otherwise than {program}. \"gannet check\" checks it."),
        ];
        head.extend(self.head);
        let mut sections = Map::default();
        let put = |sections: &mut Map, key: &str, map: Map| {
            if !map.is_empty() {
                sections.put(key, map);
            }
        };
        let list = |sections: &mut Map, key: &str, list: Vec<Noted>| {
            if !list.is_empty() {
                sections.put(key, Out::List(list));
            }
        };
        put(&mut sections, "server", self.server);
        list(&mut sections, "listen", self.listen);
        let mut tls = Map::default();
        if !self.certificates.is_empty() {
            tls.put("certificates", Out::List(self.certificates));
        }
        tls.extend(self.tls);
        put(&mut sections, "tls", tls);
        let allow = self.allow.unwrap_or_else(|| vec!["any".to_owned()]);
        sections.put("allow", Out::Row(allow));
        let mut limits = Map::default();
        put(&mut limits, "rate", self.rate);
        put(&mut limits, "tcp", self.tcp);
        put(&mut sections, "limits", limits);
        put(&mut sections, "cookies", self.cookies);
        put(&mut sections, "edns", self.edns);
        put(&mut sections, "metrics", self.metrics);
        put(&mut sections, "log", self.log);
        list(&mut sections, "keys", self.keys);
        put(&mut sections, "transfers", self.transfers);
        put(&mut sections, "signing", self.signing);
        put(&mut sections, "sets", self.sets);
        put(&mut sections, "upstreams", self.upstreams);
        put(&mut sections, "cache", self.caches);
        let (templates, zones) = fold(self.zones);
        put(&mut sections, "zone-templates", templates);
        list(&mut sections, "zones", zones);
        list(&mut sections, "zone-directories", self.directories);
        let mut policy = Map::default();
        let main = if self.main.is_empty() { vec![Noted::from("zones")] } else { self.main };
        policy.put("main", Out::List(main));
        for (name, rules) in self.policies {
            policy.put(name, Out::List(rules));
        }
        sections.put("policy", policy);
        list(&mut sections, "views", self.views);
        document(&head, sections)
    }
}

/// Returns servers as our file lists them.
pub(super) fn texts(peers: &[Peer]) -> Vec<String> {
    peers.iter().map(Peer::text).collect()
}

/// Returns the name of a TSIG algorithm as we have it.
pub(super) fn algorithm(word: &str) -> Option<&'static str> {
    let plain = word.trim_end_matches('.').to_ascii_lowercase();
    match plain.strip_suffix(".sig-alg.reg.int").unwrap_or(&plain) {
        "hmac-md5" => Some("hmac-md5"),
        "hmac-sha1" => Some("hmac-sha1"),
        "hmac-sha224" => Some("hmac-sha224"),
        "hmac-sha256" => Some("hmac-sha256"),
        "hmac-sha384" => Some("hmac-sha384"),
        "hmac-sha512" => Some("hmac-sha512"),
        _ => None,
    }
}

/// Returns the name of a signing algorithm as we have it, or its number.
pub(super) fn signing_algorithm(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "8" | "rsasha256" => Some("rsasha256"),
        "10" | "rsasha512" => Some("rsasha512"),
        "13" | "ecdsap256sha256" => Some("ecdsap256sha256"),
        "14" | "ecdsap384sha384" => Some("ecdsap384sha384"),
        "15" | "ed25519" => Some("ed25519"),
        "16" | "ed448" => Some("ed448"),
        _ => None,
    }
}

/// Returns the URI of a token as our file says it. The path of the module may stand beside it.
pub(super) fn token(files: &mut Files<'_>, span: Span, uri: &str, module: Option<&str>) -> Option<String> {
    let mut uri = match TokenUri::parse(uri) {
        Ok(uri) => uri,
        Err(misread) => {
            // What is not repeated may be a PIN.
            let message = format!("the token cannot be carried over: {}", misread.message);
            let problem = Problem::error(span, message);
            files.problems.push(match misread.hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            });
            return None;
        }
    };
    if let Some(module) = module {
        uri.module = Some(module.into());
    }
    let why = match &uri.module {
        _ if uri.names_key() => "this is the URI of a key, and new ones are made",
        None => "its URI does not say which module speaks with it (?module-path=)",
        Some(module) if !module.is_absolute() => "the path of its module does not begin at the root",
        Some(_) => {
            files.warn(
                span,
                "new keys are made in this token; \"gannet zone keys import pkcs11:…\" takes over those that are there",
            );
            return Some(uri.to_string());
        }
    };
    files.wrong(span, format!("the token cannot be carried over: {why}"));
    None
}

/// Returns seconds as our file says them.
pub(super) fn seconds(seconds: u64) -> String {
    values::duration_text(std::time::Duration::from_secs(seconds))
}

/// Returns the name without the dot at its end, but for the root.
pub(super) fn zone_name(text: &str) -> String {
    match text.strip_suffix('.') {
        Some("") | None => text.to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// Where a zone stands first, so that it is not there twice.
pub(super) type Seen = std::collections::BTreeMap<String, Span>;

/// Returns whether a zone is new; the place of the first otherwise.
pub(super) fn is_new(seen: &mut Seen, zone: &At<String>) -> Result<(), Span> {
    match seen.insert(zone_name(&zone.value).to_ascii_lowercase(), zone.span) {
        None => Ok(()),
        Some(first) => Err(first),
    }
}
