//! BIND's `dnssec-policy`.

use diagnostic::At;

use super::super::super::write::{Map, Out};
use super::super::made::{self, seconds, signing_algorithm};
use super::Bind;
use super::text::Statement;

impl Bind<'_, '_, '_> {
    /// Returns our name of the policy by which a zone is signed; `None` if it is not signed.
    pub(super) fn signed_by(&mut self, policy: &At<String>) -> Option<String> {
        let name = match policy.value.as_str() {
            "none" => return None,
            "insecure" => {
                self.files.wrong(policy.span, "\"dnssec-policy insecure\" cannot be carried over: see \"cds-cdnskey-publish: delete-dnssec\"");
                return None;
            }
            name => name.to_owned(),
        };
        let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let ours: String = name.chars().map(legal).collect();
        if self.policies.contains(&ours) {
            return Some(ours);
        }
        let found = self.top.iter().find(|statement| {
            statement.key() == "dnssec-policy" && statement.value().is_some_and(|at| at.value == name)
        });
        let map = match found {
            Some(found) => self.policy(found),
            None if name == "default" => {
                // What BIND says itself: one key for everything, of ECDSA P-256, for ever.
                let mut map = Map::default();
                map.put("single-type-signing", Out::Flag(true));
                map
            }
            None => {
                self.files.wrong(policy.span, format!("there is no policy \"{name}\""));
                return None;
            }
        };
        self.made.signing.put(ours.clone(), map);
        self.policies.push(ours.clone());
        Some(ours)
    }

    fn policy(&mut self, policy: &Statement) -> Map {
        let mut map = Map::default();
        for statement in policy.block().unwrap_or(&[]) {
            let times = [
                ("dnskey-ttl", "dnskey-ttl"),
                ("max-zone-ttl", "zone-max-ttl"),
                ("signatures-validity", "rrsig-lifetime"),
                ("signatures-refresh", "rrsig-refresh"),
                ("signatures-jitter", "rrsig-jitter"),
                ("zone-propagation-delay", "propagation-delay"),
            ];
            let key = statement.key();
            if let Some((_, ours)) = times.iter().find(|(theirs, _)| *theirs == key) {
                if let Some(seconds_of) = self.time(statement.value()) {
                    map.put(*ours, seconds(seconds_of));
                }
                continue;
            }
            match key {
                "keys" => self.policy_keys(statement, &mut map),
                "nsec3param" => {
                    map.put("nsec3", Out::Flag(true));
                    if let Some(rounds) = statement.after("iterations") {
                        map.put("nsec3-iterations", rounds.value.as_str());
                    }
                    if statement
                        .after("optout")
                        .is_some_and(|word| matches!(word.value.as_str(), "yes" | "true"))
                    {
                        map.put("nsec3-opt-out", Out::Flag(true));
                    }
                    if let Some(salt) = statement.after("salt-length").filter(|salt| salt.value != "0") {
                        self.files
                            .warn(salt.span, "\"salt-length\" is left out: there is no salt (RFC 9276)");
                    }
                }
                "cds-digest-types" => {
                    let digest =
                        |item: &Statement| match item.key().to_ascii_lowercase().replace('-', "").as_str() {
                            "2" | "sha256" => "sha256".to_owned(),
                            "4" | "sha384" => "sha384".to_owned(),
                            other => other.to_owned(),
                        };
                    let digests = statement.block().unwrap_or(&[]).iter().map(digest);
                    map.put("cds-digest-type", Out::Row(digests.collect()));
                }
                "signatures-validity-dnskey"
                | "publish-safety"
                | "retire-safety"
                | "purge-keys"
                | "offline-ksk"
                | "cdnskey"
                | "parent-ds-ttl"
                | "parent-propagation-delay"
                | "parent-registration-delay"
                | "inline-signing"
                | "manual-mode" => {
                    let word = statement.value();
                    let is_refused = matches!(key, "offline-ksk" | "manual-mode")
                        && word.is_some_and(|word| matches!(word.value.as_str(), "yes" | "true"));
                    if is_refused {
                        self.files.wrong(
                            statement.span,
                            format!("\"{key}\" cannot be carried over: the server looks after keys itself"),
                        );
                    } else if matches!(key, "parent-ds-ttl" | "parent-propagation-delay") {
                        // Together they are how long the old key stays.
                        self.parent_delay += self.time(word).unwrap_or(0);
                    } else {
                        self.files.warn(
                            statement.span,
                            format!("\"{key}\" is left out: the times of the policy say it"),
                        );
                    }
                }
                other => {
                    self.files.wrong(statement.span, format!("\"{other}\" of a policy is not known here"));
                }
            }
        }
        if self.parent_delay > 0 {
            map.put("parent-delay", seconds(self.parent_delay));
            self.parent_delay = 0;
        }
        map
    }

    fn policy_keys(&mut self, statement: &Statement, map: &mut Map) {
        let mut algorithms: Vec<(String, diagnostic::Span)> = Vec::new();
        let mut stores: Vec<(Option<&At<String>>, diagnostic::Span)> = Vec::new();
        for item in statement.block().unwrap_or(&[]) {
            let words = item.words();
            let kind = item.key();
            let role = if kind == "csk" { "ksk" } else { kind };
            if !matches!(kind, "csk" | "ksk" | "zsk") {
                self.files.wrong(item.span, format!("\"{kind}\" is no kind of key"));
                continue;
            }
            stores.push((item.after("key-store"), item.span));
            if kind == "csk" {
                map.put("single-type-signing", Out::Flag(true));
            }
            if let Some(lifetime) = item.after("lifetime") {
                let time = if lifetime.value == "unlimited" { Some(0) } else { self.time(Some(lifetime)) };
                let text = match time {
                    Some(0) => Some("forever".to_owned()),
                    Some(time) => Some(seconds(time)),
                    None => None,
                };
                map.put_some(&format!("{role}-lifetime"), text);
            }
            let Some(at) = words.iter().position(|word| word.value == "algorithm") else { continue };
            if let Some(word) = words.get(at + 1) {
                match signing_algorithm(&word.value) {
                    Some(ours) => algorithms.push((ours.to_owned(), word.span)),
                    None => self
                        .files
                        .wrong(word.span, format!("\"{}\" is no algorithm to sign with", word.value)),
                }
                if let Some(bits) =
                    words.get(at + 2).filter(|_| word.value.to_ascii_lowercase().starts_with("rsa"))
                {
                    map.put(format!("{role}-size"), bits.value.as_str());
                }
            }
        }
        let name = |store: Option<&At<String>>| store.map(|store| store.value.clone());
        if let Some((first, _)) = stores.first() {
            if let Some((_, span)) = stores.iter().find(|(other, _)| name(*other) != name(*first)) {
                let message =
                    "keys in several places cannot be carried over: a policy makes all its keys in one";
                self.files.wrong(*span, message);
            } else if let Some(first) = first {
                map.put_some("token", self.token(first));
            }
        }
        let Some((first, _)) = algorithms.first().cloned() else { return };
        if let Some((_, span)) = algorithms.iter().find(|(other, _)| *other != first) {
            self.files.wrong(*span, "keys of several algorithms cannot be carried over: a policy has one");
        }
        map.put("algorithm", first);
    }

    /// Returns the token of a key store; `None` if its keys are files.
    fn token(&mut self, name: &At<String>) -> Option<String> {
        let found = self.top.iter().find(|statement| {
            statement.key() == "key-store" && statement.value().is_some_and(|at| at.value == name.value)
        });
        let Some(block) = found.and_then(Statement::block) else {
            // The one that there is without being said.
            if name.value != "key-directory" {
                self.files.wrong(name.span, format!("there is no key store \"{}\"", name.value));
            }
            return None;
        };
        let mut uri = None;
        for statement in block {
            match (statement.key(), statement.value()) {
                ("pkcs11-uri", Some(value)) => uri = Some(value),
                ("directory", Some(_)) => {}
                (other, _) => {
                    self.files.wrong(statement.span, format!("\"{other}\" of a key store is not known here"));
                }
            }
        }
        match uri {
            Some(uri) => made::token(self.files, uri.span, &uri.value, None),
            None => {
                let why = "\"gannet zone keys import\" takes keys over from files";
                self.files.warn(name.span, format!("\"key-store\" is left out: {why}"));
                None
            }
        }
    }

    /// Reads seconds, a time such as `1h30m`, or one as ISO 8601 has it.
    pub(super) fn time(&mut self, at: Option<&At<String>>) -> Option<u64> {
        let at = at?;
        let found = read_time(&at.value);
        if found.is_none() {
            self.files.wrong(at.span, format!("\"{}\" is no time", at.value));
        }
        found
    }
}

fn read_time(text: &str) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    let (body, is_iso) = match upper.strip_prefix('P') {
        Some(body) => (body, true),
        None => (upper.as_str(), false),
    };
    let mut total: u64 = 0;
    let mut number: Option<u64> = None;
    let mut is_time = !is_iso;
    for c in body.chars() {
        match c {
            '0'..='9' => {
                number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(c as u8 - b'0'))?);
            }
            'T' if is_iso && !is_time => is_time = true,
            _ => {
                let scale = match c {
                    'Y' => 31_536_000,
                    'M' if is_time => 60,
                    'M' => 2_592_000,
                    'W' => 604_800,
                    'D' => 86_400,
                    'H' => 3600,
                    'S' => 1,
                    _ => return None,
                };
                total = total.checked_add(number.take()?.checked_mul(scale)?)?;
            }
        }
    }
    match number {
        Some(rest) if !is_iso => total.checked_add(rest),
        Some(_) => None,
        None => Some(total),
    }
}

#[cfg(test)]
mod tests {
    use super::read_time;

    #[test]
    fn times_come_in_three_forms() {
        let day = 86_400;
        for (text, expect) in [
            ("3600", Some(3600)),
            ("1h30m", Some(5400)),
            ("P30D", Some(30 * day)),
            ("PT1H30M", Some(5400)),
            ("P1Y2M", Some(365 * day + 60 * day)),
            ("p1dt12h", Some(day * 3 / 2)),
            ("1x", None),
            ("P5", None),
            ("H", None),
        ] {
            assert_eq!(read_time(text), expect, "{text}");
        }
    }
}
