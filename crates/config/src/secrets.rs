//! Keeps secrets out of whatever is printed: which texts of a configuration are secrets, by the schema, and how a text looks without
//! them.

use std::borrow::Cow;

use crate::schema::{self, Kind};
use crate::source::{Sources, Span};
use crate::suggest::nearest;
use crate::yaml::{Entry, Node, Value};

/// What stands in place of a secret where settings are shown.
pub(crate) const HIDDEN: &str = "(not shown)";
/// What a secret begins with that is in a file: only its path is said.
const FILE: &str = "file:";
/// Octets from which on a secret is looked for in messages; shorter ones would be found in ordinary words.
const SOUGHT_OCTETS_MIN: usize = 6;

/// A secret of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Secret {
    pub(crate) place: Span,
    text: Box<str>,
}

/// Notes the secrets of a tree, so that nothing that points at its files shows them.
pub(crate) fn note(tree: &Node, sources: &mut Sources) {
    let mut found = Vec::new();
    walk(tree, "", &mut |_, node| hide(node, &mut found));
    hide_slips(tree, &mut found);
    sources.hide(found);
}

/// Replaces the secrets of a tree, but for those that say their default.
pub(crate) fn mask(tree: &mut Node) {
    walk_mut(tree, "", &mut |node| cover(node));
}

fn hide(node: &Node, found: &mut Vec<Secret>) {
    match &node.value {
        Value::Null => {}
        Value::Scalar(scalar) if scalar.text.starts_with(FILE) => {}
        Value::Scalar(scalar) => found.push(Secret { place: node.span, text: scalar.text.as_str().into() }),
        Value::List(items) => items.iter().for_each(|item| hide(item, found)),
        Value::Map(entries) => entries.iter().for_each(|entry| hide(&entry.node, found)),
    }
}

/// Notes secrets behind their keys where the colon is missing: YAML takes both for a key, or for part of the text above.
fn hide_slips(node: &Node, found: &mut Vec<Secret>) {
    let mut look = |text: &str, place: Span| {
        found.extend(slips(text).map(|at| Secret { place, text: text[at].into() }));
    };
    match &node.value {
        Value::Null => {}
        Value::Scalar(scalar) => look(&scalar.text, node.span),
        Value::List(items) => items.iter().for_each(|item| hide_slips(item, found)),
        Value::Map(entries) => {
            for entry in entries {
                look(&entry.key, entry.key_span);
            }
            entries.iter().for_each(|entry| hide_slips(&entry.node, found));
        }
    }
}

/// Returns where in a text something stands behind the key of a secret without a colon: `secret abc`, `password=abc`.
fn slips(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let keys = schema::rows().filter(|row| row.is_secret()).map(schema::Row::key);
    keys.flat_map(move |key| {
        text.match_indices(key).filter_map(move |(found, _)| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if text[..found].chars().next_back().is_some_and(is_part) {
                return None;
            }
            let rest = text[found + key.len()..].strip_prefix([' ', '='])?.trim_start_matches([' ', '=']);
            let start = text.len() - rest.len();
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']'));
            let word = &rest[..end.unwrap_or(rest.len())];
            let is_value = !word.is_empty() && !word.starts_with([':', '#']) && !word.starts_with(FILE);
            is_value.then(|| start..start + word.len())
        })
    })
}

fn cover(node: &mut Node) {
    match &mut node.value {
        Value::Null => {}
        Value::Scalar(scalar) if scalar.text.starts_with(FILE) => {}
        Value::Scalar(scalar) => HIDDEN.clone_into(&mut scalar.text),
        Value::List(items) => items.iter_mut().for_each(cover),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| cover(&mut entry.node)),
    }
}

/// What an entry below `parent` is.
enum Is {
    Secret,
    /// It holds entries below this path.
    Holder(String),
    /// It holds names, each of which holds entries below this path.
    Names(String),
    Plain,
}

fn judge(entry: &Entry, parent: &str) -> Is {
    let key = entry.key.as_str();
    let rows = || schema::children(parent);
    match rows().find(|row| row.key() == key) {
        Some(row) if row.is_secret() => Is::Secret,
        Some(row) => match row.kind {
            Kind::Section => Is::Holder(row.path.to_owned()),
            Kind::Named(_) => Is::Names(format!("{}.*", row.path)),
            Kind::Items => Is::Holder(format!("{}[]", row.path)),
            Kind::List(_) | Kind::One(_) => Is::Plain,
        },
        // Misspelt, or in a place where nothing is known: it may be meant for a secret all the same.
        None => {
            let meant = nearest(key, rows().map(schema::Row::key));
            let is_secret = |key: &str| schema::rows().any(|row| row.is_secret() && row.key() == key);
            if is_secret(key) || meant.is_some_and(is_secret) {
                Is::Secret
            } else {
                Is::Holder(format!("{parent}.?"))
            }
        }
    }
}

fn walk(node: &Node, parent: &str, f: &mut dyn FnMut(&Entry, &Node)) {
    match &node.value {
        Value::Null | Value::Scalar(_) => {}
        Value::List(items) => items.iter().for_each(|item| walk(item, parent, f)),
        Value::Map(entries) => {
            for entry in entries {
                match judge(entry, parent) {
                    Is::Secret => f(entry, &entry.node),
                    Is::Holder(path) => walk(&entry.node, &path, f),
                    Is::Names(path) => match &entry.node.value {
                        Value::Map(named) => named.iter().for_each(|named| walk(&named.node, &path, f)),
                        _ => walk(&entry.node, &path, f),
                    },
                    Is::Plain => {}
                }
            }
        }
    }
}

fn walk_mut(node: &mut Node, parent: &str, f: &mut dyn FnMut(&mut Node)) {
    match &mut node.value {
        Value::Null | Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| walk_mut(item, parent, f)),
        Value::Map(entries) => {
            for entry in entries {
                match judge(entry, parent) {
                    Is::Secret => {
                        let default = schema::children(parent).find(|row| row.key() == entry.key);
                        let says_default = matches!(&entry.node.value, Value::Scalar(scalar)
                            if default.and_then(|row| row.default) == Some(scalar.text.as_str()));
                        if !says_default {
                            f(&mut entry.node);
                        }
                    }
                    Is::Holder(path) => walk_mut(&mut entry.node, &path, f),
                    Is::Names(path) => match &mut entry.node.value {
                        Value::Map(named) => {
                            named.iter_mut().for_each(|named| walk_mut(&mut named.node, &path, f));
                        }
                        _ => walk_mut(&mut entry.node, &path, f),
                    },
                    Is::Plain => {}
                }
            }
        }
    }
}

/// Returns a line of a file without the secrets in it, as long as it is; `before` is the file up to it.
pub(crate) fn line(before: &str, text: &str, secrets: &[Secret], file: crate::source::FileId) -> String {
    let at = before.len();
    let mut covered = vec![false; text.len()];
    for secret in secrets.iter().filter(|secret| secret.place.file == file) {
        let start = (secret.place.start as usize).saturating_sub(at).min(text.len());
        let end = (secret.place.end as usize).saturating_sub(at).min(text.len());
        covered.get_mut(start..end).into_iter().flatten().for_each(|octet| *octet = true);
    }
    // A mistake may have cost the tree what stands behind it: there the keys tell, those of the lines above too.
    if is_below_secret(before, text) {
        covered.fill(true);
    }
    for row in schema::rows().filter(|row| row.is_secret()) {
        cover_values(text, row.key(), &mut covered);
    }
    cover_parts(text, &mut covered);
    for at in slips(text) {
        covered.get_mut(at).into_iter().flatten().for_each(|octet| *octet = true);
    }
    text.char_indices().map(|(at, c)| if covered.get(at) == Some(&true) { '*' } else { c }).collect()
}

/// Returns whether a line belongs to the value of a secret whose key stands on a line above it.
fn is_below_secret(before: &str, text: &str) -> bool {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut indent = indentation(text);
    // A list may stand as far left as its key.
    let mut may_be_equal = text.trim_start().starts_with('-');
    let secrets = || schema::rows().filter(|row| row.is_secret());
    // Wrongly indented, it is still most likely meant for the key that has no value yet.
    let last = before.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if secrets().any(|row| keys(last, row.key()).any(|(_, value)| value.is_empty())) {
        return true;
    }
    for line in before.lines().rev().filter(|line| !line.trim().is_empty()) {
        let (own, content) = (indentation(line), line.trim_start());
        let is_above = own < indent || (may_be_equal && own == indent && !content.starts_with('-'));
        if !is_above {
            continue;
        }
        if secrets().any(|row| keys(content, row.key()).next().is_some()) {
            return true;
        }
        (indent, may_be_equal) = (own, content.starts_with('-'));
    }
    false
}

/// Returns where `key:` stands in a line, and what follows it.
fn keys<'t>(text: &'t str, key: &str) -> impl Iterator<Item = (usize, &'t str)> {
    let len = key.len();
    text.match_indices(key).filter_map(move |(found, _)| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text[..found].chars().next_back().is_some_and(is_part) {
            return None;
        }
        let rest = text[found + len..].trim_start_matches(['"', '\'']).trim_start();
        Some((found, rest.strip_prefix(':')?.trim_start()))
    })
}

/// Covers what stands behind `key:`.
fn cover_values(text: &str, key: &str, covered: &mut [bool]) {
    for (found, value) in keys(text, key) {
        let start = text.len() - value.len();
        let is_flow = text[..found].contains(['{', '[']);
        let len = match value.chars().next() {
            _ if value.trim_start_matches(['"', '\'']).starts_with(FILE) => 0,
            Some(quote @ ('"' | '\'')) => value[1..].find(quote).map_or(value.len(), |len| len + 2),
            Some('[' | '{') => value.len(),
            _ if is_flow => value.find([',', '}', ']']).unwrap_or(value.len()),
            _ => value.find(" #").unwrap_or(value.len()),
        };
        covered.get_mut(start..start + len).into_iter().flatten().for_each(|octet| *octet = true);
    }
}

/// Returns whether a text ends in a scheme whose addresses may have a password.
fn has_login(text: &str) -> bool {
    ["http", "https", "socks5"].iter().any(|scheme| text.ends_with(scheme))
}

/// What secrets in the query of a URL are called; other names end with one of these behind `_` or `-`, such as `access_token`.
const QUERY_KEYS: [&str; 10] =
    ["token", "key", "apikey", "secret", "password", "passwd", "pass", "auth", "signature", "sig"];

/// Returns whether a parameter of a URL is called as secrets are.
fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    QUERY_KEYS.iter().any(|key| {
        name.strip_suffix(key).is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
    })
}

/// Covers the secrets in addresses: the PIN in the URI of a token (RFC 7512), the password before the host of a URL, and tokens in its
/// query.
fn cover_parts(text: &str, covered: &mut [bool]) {
    const PIN: &str = "pin-value=";
    let mut cover = |start: usize, len: usize| {
        covered.get_mut(start..start + len).into_iter().flatten().for_each(|octet| *octet = true);
    };
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ']' | '}');
    for (found, _) in text.match_indices(PIN) {
        let start = found + PIN.len();
        let rest = &text[start..];
        cover(start, rest.find(|c: char| is_end(c) || matches!(c, '&' | ';' | '?')).unwrap_or(rest.len()));
    }
    for (found, _) in text.match_indices("://") {
        let start = found + 3;
        let rest = &text[start..];
        let url =
            &rest[..rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(rest.len())];
        if let Some(query) = url.find('?') {
            let mut at = query + 1;
            for parameter in url[at..].split('&') {
                if let Some((name, value)) =
                    parameter.split_once('=').filter(|(name, _)| is_secret_parameter(name))
                {
                    // What is filled in when it is used is no secret, and a list of the file goes on behind it.
                    let end = value.find([',', ']', '}', '{', '#']).unwrap_or(value.len());
                    cover(start + at + name.len() + 1, end);
                }
                at += parameter.len() + 1;
            }
        }
        let authority =
            &rest[..rest.find(|c: char| is_end(c) || matches!(c, '/' | '?' | '#')).unwrap_or(rest.len())];
        match authority.rsplit_once('@') {
            Some((user, _)) => {
                if let Some((name, password)) = user.split_once(':') {
                    cover(start + name.len() + 1, password.len());
                }
            }
            // The file ends here, or a mistake does: what is no port may be the beginning of a password.
            None if !has_login(&text[..found]) => {}
            None => {
                if let Some((name, port)) = authority.split_once(':')
                    && !authority.starts_with('[')
                    && !port.bytes().all(|octet| octet.is_ascii_digit())
                {
                    cover(start + name.len() + 1, port.len());
                }
            }
        }
    }
}

/// Returns a text as it may be shown, such as the URL of a list in the log: without passwords, tokens and PINs in addresses.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    sentence(text, &[])
}

/// Returns a sentence without the secrets in it.
pub(crate) fn sentence<'t>(text: &'t str, secrets: &[Secret]) -> Cow<'t, str> {
    let mut shown = Cow::Borrowed(text);
    for secret in secrets.iter().filter(|secret| secret.text.len() >= SOUGHT_OCTETS_MIN) {
        if shown.contains(&*secret.text) {
            shown = Cow::Owned(shown.replace(&*secret.text, HIDDEN));
        }
    }
    let mut covered = vec![false; shown.len()];
    cover_parts(&shown, &mut covered);
    if covered.contains(&true) {
        shown = Cow::Owned(
            shown
                .char_indices()
                .map(|(at, c)| if covered.get(at) == Some(&true) { '*' } else { c })
                .collect(),
        );
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use crate::load::tests::Memory;
    use std::path::Path;

    /// A configuration in which every secret has the word in it.
    const MARKED: &str = "cookies:\n  secret: 0123456789abcdef5ec4e70000000001\n  other-secret: \"0123456789abcdef5ec4e70000000002\"\n\
        keys: [{name: k, secret: 5ec4e7AA}, {name: l, algorithm: hmac-sha512, secret: '5ec4e7BB'}]\n\
        upstreams:\n  default:\n    servers:\n      - {address: 192.0.2.1, proxy: 192.0.2.9, proxy-user: u, proxy-password: \"5ec4e7 C\"}\n\
        effects:\n  m: {type: mikrotik-list, address: 192.0.2.1, user: u, password: 5ec4e7D, list4: c}\n\
        \x20 h: {type: http, url: \"http://u:5ec4e7E@192.0.2.1/\", headers: [\"Authorization: Bearer 5ec4e7F\"]}\n\
        \x20 s:\n    type: script\n    command: /bin/true\n    environment:\n      - TOKEN=5ec4e7G\n\
        policy: {main: [\"effect(m)\", \"effect(h)\", \"effect(s)\", forward(default)]}\n";

    fn memory() -> Memory {
        Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")])
    }

    fn load(text: &str) -> Result<crate::Loaded, Vec<crate::Diagnostic>> {
        load_text(Path::new("/c.yaml"), text, &memory())
    }

    fn check(shown: &str, why: &str) {
        let line = shown.lines().find(|line| line.contains("5ec4e7"));
        assert_eq!(line, None, "in what is said of: {why}");
    }

    #[test]
    fn settings_that_are_shown_have_no_secret() {
        let loaded = load(MARKED).map_err(|found| found[0].human()).expect("no mistakes");
        let shown = crate::print::show(&loaded);
        check(&shown, "config show");
        assert!(shown.contains("proxy-user: u") && shown.contains(HIDDEN), "{shown}");
        let kept = load("keys: [{name: k, secret: \"file:/k\"}]\n");
        let found = kept.expect_err("there is no such file");
        assert!(found[0].human().contains("file:/k"), "{}", found[0].human());
    }

    #[test]
    fn messages_have_no_secret() {
        // A mistake in every line, in turn; and the file cut everywhere.
        let lines: Vec<&str> = MARKED.lines().collect();
        let mut seen = 0;
        for (at, line) in lines.iter().enumerate() {
            for wrong in [
                format!("{line} ]"),
                format!("{line}: x"),
                line.replacen("secret", "secrett", 1),
                line.replacen("password", "pasword", 1),
                line.replacen(": ", ": [", 1),
                line.replacen("5ec4e7", "!5ec4e7", 1),
                line.replacen("type:", "tpe:", 1),
                line.replacen("name:", "nam:", 1),
                line.replacen("address:", "adress:", 1),
                format!("unknown: {{{}}}", line.trim()),
                format!("{line}\n{line}"),
            ] {
                let mut all = lines.clone();
                all[at] = &wrong;
                seen += usize::from(examine(&all.join("\n")));
            }
        }
        for end in (0..MARKED.len()).filter(|&end| MARKED.is_char_boundary(end)) {
            seen += usize::from(examine(&MARKED[..end]));
        }
        assert!(seen > 100, "{seen} mistakes were told");
    }

    /// Looks at everything that is said of a text; returns whether something is.
    fn examine(text: &str) -> bool {
        let found = match load(text) {
            Ok(loaded) => {
                check(&crate::print::show(&loaded), text);
                let compiled = crate::compile(&loaded, &[], None, &memory());
                let more = compiled.map_or_else(|found| found, |plans| plans.warnings);
                [loaded.warnings, more].concat()
            }
            Err(found) => found,
        };
        for found in &found {
            check(&found.human(), text);
            check(&found.json(), text);
        }
        !found.is_empty()
    }

    #[test]
    fn a_line_is_as_long_without_its_secrets() {
        let file = crate::source::FileId(0);
        for (text, shown) in [
            ("secret: abc # why", "secret: *** # why"),
            ("  {secret: abc, name: k}", "  {secret: ***, name: k}"),
            ("password: 'a b', user: u", "password: *****, user: u"),
            ("secret: file:/etc/key", "secret: file:/etc/key"),
            ("other-secret: x", "other-secret: *"),
            ("token: pkcs11:a?pin-value=1234&b", "token: pkcs11:a?pin-value=****&b"),
            ("url: https://u:pw@h/", "url: https://u:**@h/"),
            ("url: \"https://u:pw", "url: \"https://u:**"),
            ("url: https://h:8080/", "url: https://h:8080/"),
            ("url: https://[2001:db8::1]:8080/", "url: https://[2001:db8::1]:8080/"),
            ("secret: \"file:/etc/key\"", "secret: \"file:/etc/key\""),
            ("no-secrets: x", "no-secrets: x"),
            ("url: ftp://u:pw@h/", "url: ftp://u:**@h/"),
            ("url: tls://dns.example:853", "url: tls://dns.example:853"),
            (
                "url: \"https://h/l?a=b&token=abc&access_key=de\"",
                "url: \"https://h/l?a=b&token=***&access_key=**\"",
            ),
            ("url: https://h/l?monkey=abc&name={name}", "url: https://h/l?monkey=abc&name={name}"),
            ("list: [https://h/l?sig=abc, x]", "list: [https://h/l?sig=***, x]"),
            ("- {name: k, secret abc}", "- {name: k, secret ***}"),
            ("password=abc # why", "password=*** # why"),
        ] {
            assert_eq!(line("", text, &[], file), shown);
        }
        for (before, text, shown) in [
            ("environment:\n", "  - A=b", "*******"),
            ("environment:\n", "- A=b", "*****"),
            ("environment:\n  - A=b\n\n", "  - C=d", "*******"),
            ("environment:\n  - A=b\n", "other: e", "other: e"),
            ("  environment:\n", "other: e", "********"),
            ("effects:\n  s:\n    type: script\n", "    - A=b", "    - A=b"),
        ] {
            assert_eq!(line(before, text, &[], file), shown, "{before}");
        }
    }
}
