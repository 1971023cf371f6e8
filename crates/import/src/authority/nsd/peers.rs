//! Other servers and clients in NSD's zones: who is asked, told and let in, and how they prove who
//! they are.

use diagnostic::{At, Span};

use super::super::fields::{Entry, Fields};
use super::super::{Peer, PeerTls, Who, prefixes};
use super::Nsd;

impl Nsd<'_, '_> {
    pub(super) fn peer(
        &mut self,
        values: &[&At<String>],
        entry: &Entry,
        roots: Option<&str>,
    ) -> Option<Peer> {
        let [address, key, rest @ ..] = values else {
            self.files.wrong(
                entry.key.span,
                format!("\"{}\" takes an address and a key, or NOKEY", entry.key.value),
            );
            return None;
        };
        let tls = match rest.first() {
            None => None,
            Some(auth) => {
                let Some(found) = self.named("tls-auth", &auth.value) else {
                    self.files.wrong(auth.span, format!("there is no \"tls-auth\" \"{}\"", auth.value));
                    return None;
                };
                let fields = Fields(vec![&found]);
                let file = |key: &str| fields.one(key).map(|at| self.files.beside(&at.value));
                Some(PeerTls {
                    name: fields.one("auth-domain-name").map(|at| at.value.clone()),
                    pins: Vec::new(),
                    roots: roots.map(str::to_owned),
                    certificate: file("client-cert").zip(file("client-key")),
                })
            }
        };
        let port = if tls.is_some() { 853 } else { 53 };
        let Some(at) = prefixes::with_port(&address.value, port) else {
            self.files.wrong(address.span, format!("\"{}\" is no address of a server", address.value));
            return None;
        };
        let key = (key.value != "NOKEY").then(|| key.value.clone());
        Some(Peer { address: at, key, tls })
    }

    /// Returns the name that a client's certificate has to be for.
    fn shown_name(&mut self, auth: &At<String>) -> Vec<String> {
        let Some(found) = self.named("tls-auth", &auth.value) else {
            self.files.wrong(auth.span, format!("there is no \"tls-auth\" \"{}\"", auth.value));
            return Vec::new();
        };
        match Fields(vec![&found]).one("auth-domain-name") {
            Some(name) => vec![name.value.clone()],
            None => {
                let message = format!("\"tls-auth\" \"{}\" has no \"auth-domain-name\"", auth.value);
                self.files.wrong(auth.span, message);
                Vec::new()
            }
        }
    }

    /// Returns the first place where a client has to show a certificate for a zone.
    pub(super) fn demands_name(&self) -> Option<Span> {
        let all = [self.of("pattern"), self.of("zone")].concat();
        let mut lists = all.iter().flatten().filter(|entry| entry.key.value == "provide-xfr");
        lists.find_map(|entry| entry.values.get(2)).map(|auth| auth.span)
    }

    /// Returns who may query a zone; `None` means anybody.
    pub(super) fn clients(&mut self, fields: &Fields<'_>) -> Option<Vec<String>> {
        let who = self.who(fields, "allow-query");
        if who.iter().any(|who| who.key.is_some() || who.needs_tls) {
            let span = fields.entries("allow-query").first().map_or(Span::BUILT_IN, |entry| entry.key.span);
            let message = "clients are known by their addresses here, not by keys or certificates";
            self.files.wrong(span, message);
        }
        if who.iter().any(|who| who.from.is_empty()) {
            return None;
        }
        Some(who.iter().flat_map(|who| &who.from).map(|prefix| prefixes::text(*prefix)).collect())
    }

    /// Says whom a list of addresses and keys lets do something.
    pub(super) fn list(&mut self, fields: &Fields<'_>, key: &str) -> Vec<String> {
        self.who(fields, key).iter().map(Who::text).collect()
    }

    /// Returns whom a list of addresses and keys lets do something; no address means any.
    fn who(&mut self, fields: &Fields<'_>, key: &str) -> Vec<Who> {
        let mut allowed: Vec<Who> = Vec::new();
        let mut blocked = Vec::new();
        for entry in fields.entries(key) {
            let (Some(at), Some(by)) = (entry.values.first(), entry.values.get(1)) else {
                self.files
                    .wrong(entry.key.span, format!("\"{key}\" takes addresses and a key, NOKEY or BLOCKED"));
                continue;
            };
            // A port says from where it comes, which says nothing.
            let address = at.value.split('@').next().unwrap_or("");
            let Some(from) = prefixes::read(address) else {
                self.files.wrong(at.span, format!("\"{}\" is no address", at.value));
                continue;
            };
            let hosts = entry.values.get(2).map(|auth| self.shown_name(auth)).unwrap_or_default();
            let who = Who { from, needs_tls: !hosts.is_empty(), hosts, ..Who::default() };
            match by.value.as_str() {
                "BLOCKED" => blocked.extend(who.from),
                "NOKEY" => allowed.push(who),
                key => allowed.push(Who { key: Some(key.to_owned()), ..who }),
            }
        }
        // Whoever is blocked may nothing, wherever it stands.
        for who in &mut allowed {
            who.from = prefixes::subtract(&who.from, &blocked);
        }
        let everything = prefixes::everything();
        allowed.retain(|who| !who.from.is_empty());
        for who in &mut allowed {
            if who.from == everything {
                who.from.clear();
            }
        }
        allowed
    }
}
