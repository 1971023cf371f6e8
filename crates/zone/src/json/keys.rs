//! Keys that a zone brings to be signed with; no message shows anything of them.

use dnssec::keys::erldns;
use dnssec::{ENTRY_POINT, ZONE_KEY, parse_rfc3339};

use super::value::{Node, Value};
use super::{KeySet, Reader};
use crate::master::Place;

/// Letters in a row that could be a piece of a private key.
const PIECE_MIN: usize = 20;

impl Reader<'_, '_> {
    pub(super) fn keys(&mut self, zone: &Node<'_>, apex: wire::Name<'_>) -> Vec<KeySet> {
        const FIELDS: [&str; 8] =
            ["ksk", "ksk_keytag", "ksk_alg", "zsk", "zsk_keytag", "zsk_alg", "inception", "until"];
        let Some(keys) = zone.get("keys") else { return Vec::new() };
        let Some(list) = keys.list() else {
            self.wrong(keys, "a list of key sets");
            return Vec::new();
        };
        let mut sets = Vec::new();
        for set in list {
            if !matches!(set.value, Value::Object(_)) {
                self.wrong(set, "a key set: {\"ksk\": …, \"zsk\": …, \"inception\": …, \"until\": …}");
                continue;
            }
            self.only(set, &FIELDS);
            let inception = self.time(set, "inception");
            let until = self.time(set, "until");
            if let (Some(from), Some(to), Some(node)) = (inception, until, set.get("until"))
                && to <= from
            {
                self.wrong(node, "a time after that of \"inception\"");
            }
            let since = inception.unwrap_or(0);
            let ksk = self.private(set, "ksk", (apex, ZONE_KEY | ENTRY_POINT, since));
            let zsk = self.private(set, "zsk", (apex, ZONE_KEY, since));
            if let (Some(ksk), Some(zsk), Some(inception), Some(until)) = (ksk, zsk, inception, until) {
                let place = Place { file: 0, line: self.line_at(set.at) };
                sets.push(KeySet { keys: erldns::KeySet { ksk, zsk, inception, until }, place });
            }
        }
        sets
    }

    /// Reads a point in time; signatures have 32 bits for it.
    fn time(&mut self, set: &Node<'_>, name: &str) -> Option<u64> {
        let node = self.need(set, name)?;
        let time = node.text().and_then(parse_rfc3339);
        if time.is_none() {
            self.wrong(node, "a time such as \"2026-01-31T00:00:00Z\"");
        }
        time
    }

    /// Reads a private key. Mistakes in it point at its name: what it is must not be shown.
    fn private(
        &mut self,
        set: &Node<'_>,
        name: &str,
        (apex, flags, since): (wire::Name<'_>, u16, u64),
    ) -> Option<dnssec::keys::ZoneKey> {
        let pem = self.need(set, name);
        let tag_name = format!("{name}_keytag");
        let tag = self.number::<u16>(set, &tag_name, "a key tag");
        let algorithm_name = format!("{name}_alg");
        let algorithm = self.number::<u8>(set, &algorithm_name, "the number of an algorithm");
        let (pem, tag, algorithm) = (pem?, tag?, algorithm?);
        let named = set.entries().iter().find(|(key, _)| key.text() == Some(name)).map(|(key, _)| key);
        let named = named.unwrap_or(pem);
        let Some(text) = pem.text() else {
            self.wrong(named, "a private key in PEM, in quotes");
            return None;
        };
        let said = (text, u64::from(algorithm), u64::from(tag));
        let mut found = erldns::zone_key(apex, flags, said, since);
        if let Err(erldns::WrongKey::Tag(own)) = found {
            let node = set.get(&tag_name).unwrap_or(named);
            self.remark(node, format!("\"{tag_name}\" is {tag}, but the key's tag is {own}, which is used"));
            found = erldns::zone_key(apex, flags, (said.0, said.1, u64::from(own)), since);
        }
        let (place, expected) = match found {
            Ok(key) => return Some(key),
            Err(erldns::WrongKey::Key(fault)) if fault.is_size => {
                self.remark(
                    named,
                    format!(
                        "this key set is not used: {}; if there is no other one, the zone is served without signatures",
                        fault.what
                    ),
                );
                return None;
            }
            Err(erldns::WrongKey::Key(fault)) => {
                (named, format!("a private key of algorithm {algorithm} in PEM: {}", fault.what))
            }
            Err(erldns::WrongKey::Algorithm(_)) => (
                set.get(&algorithm_name).unwrap_or(named),
                "an algorithm to sign with: 8, 10, 13, 14, 15 or 16".to_owned(),
            ),
            Err(erldns::WrongKey::Tag(own)) => {
                (set.get(&tag_name).unwrap_or(named), format!("{own}, the tag of this key"))
            }
        };
        self.wrong(place, expected);
        None
    }
}

/// Returns whether there may be private keys in the text of a file.
pub fn holds_keys(text: &[u8]) -> bool {
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    // A file with a mistake may have them where they do not belong, so what says that some come is
    // enough.
    [&b"PRIVATE KEY"[..], b"\"keys\"", b"\"ksk\"", b"\"zsk\""].iter().any(|word| has(word))
}

/// Returns a part of the text of such a file as it may be shown: as long as it is, without what
/// could be a piece of a key.
pub fn concealed(text: &str) -> String {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\\');
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    // Ends: each turn takes something off.
    while let Some(first) = rest.chars().next() {
        let is_piece = is_of_key(first);
        let end = rest.find(|c| is_of_key(c) != is_piece).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        match is_piece && part.len() >= PIECE_MIN {
            true => shown.extend(std::iter::repeat_n('*', part.len())),
            false => shown.push_str(part),
        }
        rest = after;
    }
    shown
}
