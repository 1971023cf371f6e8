//! Other servers that Knot knows, and what its ACLs let whom do.

use std::collections::BTreeMap;

use diagnostic::At;

use super::super::fields::{Fields, Known};
use super::super::made::ZoneMade;
use super::super::{Peer, PeerTls, Who, prefixes};
use super::Knot;

pub(super) const REMOTE: Known = Known {
    used: &["id", "address", "key", "tls", "cert-key", "cert-hostname", "automatic-acl"],
    left_out: &[
        (
            "block-notify-after-transfer",
            "a secondary that has just transferred from here is told all the same",
        ),
        ("no-edns", "a server that does not know EDNS is asked again without"),
        ("via", "the kernel chooses the address"),
    ],
    refused: &[("quic", "transfers go over TCP and TLS")],
};

pub(super) const ACL: Known = Known {
    used: &[
        "id",
        "address",
        "key",
        "remote",
        "action",
        "deny",
        "protocol",
        "update-type",
        "update-owner",
        "update-owner-match",
        "update-owner-name",
        "cert-key",
        "cert-hostname",
    ],
    left_out: &[],
    refused: &[],
};

impl Knot<'_, '_, '_> {
    /// Returns the servers of a name: a remote, or a group of them.
    pub(super) fn peers(&mut self, id: &At<String>) -> Vec<Peer> {
        if let Some(group) = self.item("remotes", &id.value) {
            let fields = Fields(vec![group]);
            return fields.all("remote").into_iter().flat_map(|id| self.peers(id)).collect();
        }
        let Some(remote) = self.item("remote", &id.value) else {
            self.files.wrong(id.span, format!("there is no remote \"{}\"", id.value));
            return Vec::new();
        };
        let fields = Fields(vec![remote]);
        let over_tls = fields.flag("tls", self.files).is_some_and(|flag| flag.value);
        let tls = over_tls.then(|| PeerTls {
            name: fields.one("cert-hostname").map(|at| at.value.clone()),
            pins: fields.all("cert-key").iter().map(|at| at.value.clone()).collect(),
            ..PeerTls::default()
        });
        if let Some(tls) = &tls
            && tls.pins.is_empty()
            && tls.name.is_none()
        {
            // Knot then believes any certificate.
            let message = format!("\"{}\" is spoken to over TLS and proves nothing", id.value);
            self.files.wrong(id.span, message + ": say \"cert-key\" or \"cert-hostname\"");
        }
        let key = fields.one("key").map(|key| key.value.clone());
        let port = if over_tls { 853 } else { 53 };
        let mut peers = Vec::new();
        for at in fields.all("address") {
            match prefixes::with_port(&at.value, port) {
                Some(address) => peers.push(Peer { address, key: key.clone(), tls: tls.clone() }),
                None => self.files.wrong(at.span, format!("\"{}\" is no address of a server", at.value)),
            }
        }
        peers
    }

    /// Complains of names that nobody would vouch for.
    fn check_names(&mut self, fields: &Fields<'_>) {
        if let Some(name) = fields.one("cert-hostname").filter(|_| !self.has_authorities) {
            let message = "\"cert-hostname\" of a client cannot be carried over without \"ca-file\": nobody is known who vouches for names";
            self.files.wrong(name.span, message);
        }
    }

    /// Complains of a server that is known by a name which nobody would vouch for.
    pub(super) fn check_remote(&mut self, id: &At<String>) {
        if let Some(group) = self.item("remotes", &id.value) {
            for id in Fields(vec![group]).all("remote") {
                self.check_remote(id);
            }
        } else if let Some(remote) = self.item("remote", &id.value) {
            let fields = Fields(vec![remote]);
            if fields.flag("tls", self.files).is_some_and(|flag| flag.value) {
                self.check_names(&fields);
            }
        }
    }

    /// Returns who an ACL is about.
    fn who(&mut self, acl: &Fields<'_>) -> Vec<Who> {
        let mut who = Vec::new();
        for id in acl.all("remote") {
            self.check_remote(id);
            who.extend(self.peers(id).iter().map(Who::of_peer));
        }
        if !who.is_empty() {
            return who;
        }
        self.check_names(acl);
        let texts = |key: &str| acl.all(key).iter().map(|at| at.value.clone()).collect::<Vec<_>>();
        let (hosts, pins) = (texts("cert-hostname"), texts("cert-key"));
        let needs_tls = match acl.all("protocol").as_slice() {
            [] => !hosts.is_empty() || !pins.is_empty(),
            all => {
                for other in all.iter().filter(|word| word.value != "tls") {
                    let message = format!(
                        "\"protocol: {}\" cannot be carried over: \"tls\" can be demanded here",
                        other.value
                    );
                    self.files.wrong(other.span, message);
                }
                true
            }
        };
        let mut from = Vec::new();
        for at in acl.all("address") {
            match prefixes::read(&at.value) {
                Some(prefixes) => from.extend(prefixes),
                None => self.files.wrong(at.span, format!("\"{}\" is no address", at.value)),
            }
        }
        let keys = acl.all("key");
        let one = |key: Option<String>| {
            let (from, hosts, pins) = (from.clone(), hosts.clone(), pins.clone());
            Who { from, key, needs_tls, hosts, pins }
        };
        match keys.as_slice() {
            [] => vec![one(None)],
            keys => keys.iter().map(|key| one(Some(key.value.clone()))).collect(),
        }
    }

    /// Says what the ACLs of a zone allow.
    pub(super) fn rights(&mut self, zone: &Fields<'_>, made: &mut ZoneMade) {
        // What was denied so far, by action.
        let mut denied: BTreeMap<&str, Vec<wire::Prefix>> = BTreeMap::new();
        for id in zone.all("acl") {
            let Some(entries) = self.item("acl", &id.value) else {
                self.files.wrong(id.span, format!("there is no ACL \"{}\"", id.value));
                continue;
            };
            let acl = Fields(vec![entries]);
            let is_denied = acl.flag("deny", self.files).is_some_and(|flag| flag.value);
            let actions = acl.all("action");
            let whos = self.who(&acl);
            if is_denied {
                let mut from: Vec<_> = whos.iter().flat_map(|who| who.from.clone()).collect();
                if whos.iter().any(|who| who.key.is_some() || who.needs_tls) {
                    self.files.wrong(id.span, "an ACL that denies by key or protocol cannot be carried over: nobody may anything unless it is said");
                    continue;
                }
                if from.is_empty() {
                    from = prefixes::everything();
                }
                // Queries are everybody's unless they are named.
                if actions.iter().any(|word| word.value == "query") {
                    denied.entry("query").or_default().extend(from.iter().copied());
                }
                for action in ["transfer", "notify", "update"] {
                    if actions.is_empty() || actions.iter().any(|word| word.value == action) {
                        denied.entry(action).or_default().extend(from.iter().copied());
                    }
                }
                continue;
            }
            for action in actions {
                let without = denied.get(action.value.as_str()).cloned().unwrap_or_default();
                let left: Vec<Who> = whos.iter().filter_map(|who| remaining(who, &without)).collect();
                let texts: Vec<String> = left.iter().map(Who::text).collect();
                match action.value.as_str() {
                    "transfer" => made.transfer.extend(texts),
                    "notify" => made.notify_from.extend(texts),
                    "update" if zone.one("master").is_some() => {
                        if !self.reach(&acl, &made.name).is_empty() {
                            let message = "the primary says which records may be changed: what \"update-owner\" and \"update-type\" say is left out where updates are passed on";
                            self.files.warn(action.span, message);
                        }
                        made.forward_updates.extend(texts);
                    }
                    "update" => {
                        let reach = self.reach(&acl, &made.name);
                        made.update.extend(texts.into_iter().map(|text| text + &reach));
                    }
                    "query" => {
                        let message =
                            "\"action: query\" is left out: everybody may query, with a key or without";
                        self.files.warn(action.span, message);
                    }
                    other => {
                        self.files.wrong(action.span, format!("\"{other}\" is no action that is known here"));
                    }
                }
            }
        }
        if let Some(denied) = denied.get("query") {
            let left = prefixes::subtract(&prefixes::everything(), denied);
            made.allow_query = Some(left.into_iter().map(prefixes::text).collect());
        }
    }

    /// Speaks of updates of a zone that comes from other servers.
    pub(super) fn passes_on(&mut self, zone: &Fields<'_>, primaries: &[Peer], made: &mut ZoneMade) {
        let Some(to) = zone.one("ddns-master") else { return };
        if to.value.is_empty() {
            made.forward_updates.clear();
            return;
        }
        let to_peers = self.peers(to);
        if primaries.is_empty() || to_peers.iter().any(|peer| !primaries.contains(peer)) {
            let message =
                "\"ddns-master\" cannot be carried over: updates are passed on to the zone's primaries";
            self.files.wrong(to.span, message);
        }
    }

    /// Says at which names and of which types an ACL lets records be changed.
    fn reach(&mut self, acl: &Fields<'_>, apex: &str) -> String {
        let mut text = String::new();
        let names: Vec<String> = match acl.one("update-owner").map(|word| word.value.as_str()) {
            None | Some("none") => Vec::new(),
            Some("key") => acl.all("key").iter().map(|key| key.value.clone()).collect(),
            Some("zone") => vec![apex.to_owned()],
            Some(_) => acl
                .all("update-owner-name")
                .iter()
                .map(|name| match name.value.strip_suffix('.') {
                    Some(whole) => whole.to_owned(),
                    None if name.value == "@" => apex.to_owned(),
                    None => format!("{}.{apex}", name.value),
                })
                .collect(),
        };
        let word = acl.one("update-owner-match");
        for name in names {
            match word.map_or("sub-or-equal", |word| word.value.as_str()) {
                "equal" => text += &format!(" name {name}"),
                "sub" => text += &format!(" below {name}"),
                "sub-or-equal" => text += &format!(" name {name} below {name}"),
                other => {
                    let span = word.map_or(diagnostic::Span::BUILT_IN, |word| word.span);
                    self.files.wrong(span, format!("\"update-owner-match: {other}\" cannot be carried over"));
                }
            }
        }
        let types: Vec<&str> = acl.all("update-type").iter().map(|at| at.value.as_str()).collect();
        if !types.is_empty() {
            text += &format!(" types {}", types.join(","));
        }
        text
    }
}

/// Returns who is left of those who may when some are denied.
fn remaining(who: &Who, denied: &[wire::Prefix]) -> Option<Who> {
    if denied.is_empty() {
        return Some(who.clone());
    }
    let from = if who.from.is_empty() { prefixes::everything() } else { who.from.clone() };
    let left = prefixes::subtract(&from, denied);
    (!left.is_empty()).then(|| Who { from: left, ..who.clone() })
}
