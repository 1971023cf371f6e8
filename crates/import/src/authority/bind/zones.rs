//! Zones of BIND: where they come from, who gets, changes and hears of them.

use std::path::Path;

use diagnostic::At;

use super::super::super::write::Noted;
use super::super::Who;
use super::super::made::{self, ZoneMade, zone_name};
use super::text::Statement;
use super::{Bind, Scope, find};

impl<'s> Bind<'_, '_, 's> {
    pub(super) fn zone(
        &mut self,
        name: &At<String>,
        own: &'s [Statement],
        scope: &Scope<'s>,
        set: Option<&str>,
        rules: &mut Vec<Noted>,
    ) {
        let mine = vec![own];
        let Some(kind) = find(&mine, "type").and_then(Statement::value) else {
            match find(&mine, "in-view") {
                Some(view) => self.files.wrong(
                    view.span,
                    "a zone of another view cannot be carried over: each view has zones of its own",
                ),
                None => self.files.wrong(name.span, format!("zone \"{}\" has no type", name.value)),
            }
            return;
        };
        match kind.value.as_str() {
            "hint" => {
                return self.files.warn(
                    name.span,
                    format!("zone \"{}\" is left out: nothing here asks the root servers", name.value),
                );
            }
            "forward" => return self.forwarded(name, own, set, rules),
            "primary" | "master" | "secondary" | "slave" => {}
            other => {
                return self
                    .files
                    .wrong(kind.span, format!("a zone of type \"{other}\" cannot be carried over"));
            }
        }
        let is_secondary = matches!(kind.value.as_str(), "secondary" | "slave");
        let mut made = ZoneMade {
            name: zone_name(&name.value),
            // There are no templates there; of a kind, many zones are alike.
            template: Some(if is_secondary { "secondary" } else { "primary" }.to_owned()),
            set: set.map(str::to_owned),
            ..ZoneMade::default()
        };
        if is_secondary {
            match find(&mine, "primaries").or_else(|| find(&mine, "masters")) {
                Some(list) => made.primaries = made::texts(&self.peers(list)),
                None => self.files.wrong(name.span, format!("zone \"{}\" has no primaries", name.value)),
            }
        } else {
            made.file = self.zone_file(name, &mine);
        }
        self.given(scope, &mut made);
        // "allow" does not guard zones here: what the options and the view say holds for each.
        made.allow_query = find(scope, "allow-query").and_then(|allow| self.queriers(allow));
        if is_secondary {
            let from =
                find(scope, "allow-notify").map(|statement| self.allowed(statement)).unwrap_or_default();
            made.notify_from = from.iter().map(Who::text).collect();
            if let Some(statement) = find(scope, "allow-update-forwarding") {
                made.forward_updates = self.allowed(statement).iter().map(Who::text).collect();
            }
        } else {
            self.updates(scope, &mut made);
        }
        if let Some(policy) = find(scope, "dnssec-policy").and_then(Statement::value) {
            made.sign = self.signed_by(policy);
        }
        made.journal_size = journal_size(scope);
        if made.set.is_some() {
            let speaks = !made.primaries.is_empty()
                || !made.transfer.is_empty()
                || !made.notify.is_empty()
                || !made.update.is_empty()
                || !made.forward_updates.is_empty();
            if speaks || made.sign.is_some() {
                self.files.wrong(name.span, format!("zone \"{}\" is in a view that not everybody has: other servers do not hear of it, and it is not signed", name.value));
            }
        }
        self.made.zones.push(made);
    }

    /// Returns the path of a primary zone's file.
    fn zone_file(&mut self, name: &At<String>, own: &Scope<'s>) -> Option<String> {
        let file = find(own, "file").and_then(Statement::value);
        let path = file.map(|file| {
            let directory = find(&vec![self.options], "directory").and_then(Statement::value);
            let directory = directory.map_or("", |at| at.value.as_str());
            self.files.beside(&Path::new(directory).join(&file.value).display().to_string())
        });
        if path.is_none() {
            self.files.wrong(name.span, format!("zone \"{}\" has no file", name.value));
        }
        let format = find(own, "masterfile-format").and_then(Statement::value);
        if let Some(format) = format.filter(|word| word.value != "text") {
            self.files.wrong(format.span, "zone files are text here: \"named-compilezone\" makes one");
        }
        path
    }

    /// Says who gets a zone and who is told of it.
    fn given(&mut self, scope: &Scope<'s>, made: &mut ZoneMade) {
        match find(scope, "allow-transfer") {
            Some(statement) => {
                made.transfer = self.allowed(statement).iter().map(Who::text).collect();
            }
            None if !self.has_said_transfer => {
                self.has_said_transfer = true;
                self.made.head.push("Zones without \"allow-transfer\": BIND before 9.20 gives them to everybody, here nobody gets them.".to_owned());
            }
            None => {}
        }
        let told = find(scope, "notify").and_then(Statement::value).map_or("yes", |word| word.value.as_str());
        if let Some(statement) = find(scope, "also-notify").filter(|_| !matches!(told, "no" | "false")) {
            made.notify = made::texts(&self.peers(statement));
        }
        if !matches!(told, "no" | "false" | "explicit") && !self.has_said_notify {
            self.has_said_notify = true;
            self.made.head.push("BIND tells the servers that a zone's NS records name of its versions; here only those under \"notify\" are told.".to_owned());
        }
    }

    fn updates(&mut self, scope: &Scope<'s>, made: &mut ZoneMade) {
        if let Some(statement) = find(scope, "allow-update") {
            made.update = self.allowed(statement).iter().map(Who::text).collect();
        }
        if let Some(statement) = find(scope, "update-policy") {
            if let Some(word) = statement.value() {
                self.files.wrong(
                    word.span,
                    "\"update-policy local\" cannot be carried over: name a key in \"update\"",
                );
            }
            for rule in statement.block().unwrap_or(&[]) {
                made.update.extend(self.update_rule(rule, &made.name));
            }
        }
        made.serial = match find(scope, "serial-update-method")
            .and_then(Statement::value)
            .map(|word| word.value.as_str())
        {
            Some("unixtime") if !made.update.is_empty() => Some("unixtime".to_owned()),
            Some("date") if !made.update.is_empty() => Some("dateserial".to_owned()),
            _ => None,
        };
    }

    /// Returns what a rule of `update-policy` allows.
    fn update_rule(&mut self, rule: &Statement, apex: &str) -> Option<String> {
        let words = rule.words();
        let [verb, identity, kind, rest @ ..] = words.as_slice() else {
            self.files.wrong(rule.span, "this is no rule of an update policy");
            return None;
        };
        if verb.value != "grant" {
            self.files.wrong(
                verb.span,
                format!(
                    "\"{}\" cannot be carried over: nobody may anything unless it is granted",
                    verb.value
                ),
            );
            return None;
        }
        let key = identity.value.trim_end_matches('.');
        let plain = |at: &At<String>| match at.value.as_str() {
            "." | "@" => apex.to_owned(),
            name => name.trim_end_matches('.').to_owned(),
        };
        let (reach, types) = match (kind.value.as_str(), rest) {
            ("zonesub", types) => (String::new(), types),
            ("name", [name, types @ ..]) => (format!(" name {}", plain(name)), types),
            ("subdomain", [name, types @ ..]) => (format!(" name {0} below {0}", plain(name)), types),
            ("wildcard", [name, types @ ..]) if name.value.starts_with("*.") => {
                (format!(" below {}", name.value[2..].trim_end_matches('.')), types)
            }
            ("self", [_, types @ ..]) => (format!(" name {key}"), types),
            ("selfsub", [_, types @ ..]) => (format!(" name {key} below {key}"), types),
            ("selfwild", [_, types @ ..]) => (format!(" below {key}"), types),
            ("self" | "selfsub", []) => (format!(" name {key}"), &[][..]),
            (other, _) => {
                self.files.wrong(kind.span, format!("the rule \"{other}\" cannot be carried over"));
                return None;
            }
        };
        let mut text = format!("key {key}{reach}");
        let mut wanted = Vec::new();
        for word in types {
            match word.value.as_str() {
                "ANY" => {}
                other if other.contains('(') => {
                    self.files.wrong(word.span, "how many records there may be cannot be said");
                }
                other => wanted.push(other.to_ascii_uppercase()),
            }
        }
        if !wanted.is_empty() {
            text += &format!(" types {}", wanted.join(","));
        }
        Some(text)
    }

    pub(super) fn catalogs(&mut self, scope: &Scope<'s>) {
        let Some(statement) = find(scope, "catalog-zones") else { return };
        for catalog in statement.block().unwrap_or(&[]) {
            // `zone "catalog.example" default-primaries { … } …`
            let words = catalog.words();
            let [_, name, ..] = words.as_slice() else { continue };
            let wanted = zone_name(&name.value);
            match self.made.zones.iter_mut().find(|zone| zone.name == wanted) {
                Some(zone) => zone.catalog_role = Some("consumer"),
                None => self.files.wrong(name.span, format!("there is no zone \"{}\"", name.value)),
            }
            if words.iter().any(|word| matches!(word.value.as_str(), "default-primaries" | "default-masters"))
            {
                self.files.warn(name.span, "\"default-primaries\" is left out: members of a catalog come from the catalog's own primaries");
            }
        }
    }
}

/// Returns the size of a zone's journal in octets, within what can be set here.
fn journal_size(scope: &Scope<'_>) -> Option<u64> {
    let size = find(scope, "max-journal-size").and_then(Statement::value)?;
    let digits = size.value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match size.value[digits.len()..].to_ascii_lowercase().as_str() {
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => 1_u64,
    };
    let number = digits.parse::<u64>().ok()?;
    Some(number.saturating_mul(scale).clamp(4 << 10, 1 << 34))
}
