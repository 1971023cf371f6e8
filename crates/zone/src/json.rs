//! Zones in JSON, as erldns has them: an array of zones, each with its name, its records and
//! perhaps its keys.
//!
//! Data of records are objects with a field for each part of the type; they are turned into the
//! text form of RFC 1035 and read like that. Reading goes on after a mistake, but for one in the
//! JSON itself. Of private keys, no mistake shows anything.
//!
//! # Limitations
//!
//! Records of other types than those of the table need a number for their type and their data in
//! Base64.

mod data;
mod keys;
mod value;

use dnssec::keys::erldns;
use wire::{HashKey, NameBuf, Ttl};

pub use self::keys::{concealed, holds_keys};
use self::value::{Node, Value};
use crate::build::{Builder, Built};
use crate::master::{Entry, MISTAKES_MAX, Mistake, MistakeKind, Place};

/// Which records are taken: erldns's contexts are a filter for a whole server, not a view of a
/// client's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts {
    /// A record is taken if one of its contexts is among these, or if it says nothing about
    /// contexts.
    pub allow: Vec<String>,
    /// Whether one with an empty list of contexts is taken.
    pub matches_empty: bool,
}

/// Keys that a zone is to be signed with, and where they stand.
#[derive(Debug)]
pub struct KeySet {
    /// The keys, and when their signatures are good.
    pub keys: erldns::KeySet,
    /// Where they are.
    pub place: Place,
}

/// A zone of a file.
pub struct JsonZone {
    /// Its apex.
    pub apex: NameBuf,
    /// What the file calls this version of it.
    pub version: String,
    /// What came of its records. Without mistakes in the file, [`Built::zone`] is the zone.
    pub built: Built,
    /// Keys that it is to be signed with.
    pub keys: Vec<KeySet>,
    /// Records that contexts kept out.
    pub left_out: usize,
}

/// What came of a file.
#[derive(Default)]
pub struct JsonFile {
    /// Its zones, in the order of the file.
    pub zones: Vec<JsonZone>,
    /// What could not be read, in the order of the file. The zone it is in has no [`Built::zone`].
    pub mistakes: Vec<Mistake>,
    /// Mistakes that are not told.
    pub more: usize,
    /// What is odd and kept no zone from being read, in the order of the file; at most
    /// [`MISTAKES_MAX`].
    pub remarks: Vec<Remark>,
}

/// Something odd in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The line.
    pub place: Place,
    /// The first character that is meant, from 1.
    pub column: u32,
    /// How many characters are meant.
    pub width: u32,
    /// What it is.
    pub message: String,
}

/// Reads a file and compiles its zones. Without `contexts`, every record is taken.
pub fn read(text: &[u8], key: HashKey, contexts: Option<&Contexts>) -> JsonFile {
    let mut file = JsonFile::default();
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let text = String::from_utf8_lossy(&text[..error.valid_up_to()]).into_owned();
            let mut reader = Reader { text: &text, contexts, file: &mut file, has_split: false };
            reader.mistake(text.len(), 1, "UTF-8");
            return file;
        }
    };
    let root = match value::parse(text) {
        Ok(root) => root,
        Err(wrong) => {
            let mut reader = Reader { text, contexts, file: &mut file, has_split: false };
            reader.mistake(wrong.at, 1, wrong.expected);
            return file;
        }
    };
    let mut reader = Reader { text, contexts, file: &mut file, has_split: false };
    match root.list() {
        Some(zones) => zones.iter().for_each(|zone| reader.zone(zone, key)),
        None => reader.wrong(&root, "a list of zones"),
    }
    file
}

struct Reader<'t, 'f> {
    text: &'t str,
    contexts: Option<&'f Contexts>,
    file: &'f mut JsonFile,
    /// Whether a text of the record under way became several strings.
    has_split: bool,
}

impl Reader<'_, '_> {
    fn mistake(&mut self, at: usize, len: usize, expected: impl Into<String>) {
        if self.file.mistakes.len() == MISTAKES_MAX {
            self.file.more += 1;
            return;
        }
        let (place, column) = self.place_at(at);
        let found = self.shown(at, len);
        self.file.mistakes.push(Mistake {
            kind: MistakeKind::Unexpected,
            place,
            column,
            at: at..at + len,
            found,
            expected: expected.into(),
            why: None,
        });
    }

    /// Returns the line and the column of an octet.
    fn place_at(&self, at: usize) -> (Place, u32) {
        let before = &self.text[..at];
        let line_at = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[line_at..].chars().count() + 1;
        (Place { file: 0, line: self.line_at(at) }, u32::try_from(column).unwrap_or(u32::MAX))
    }

    /// Returns what stands at a place as it may be shown: without the quotes of a text, which
    /// messages put around it.
    fn shown(&self, at: usize, len: usize) -> String {
        let shown = self.text.get(at..at + len).and_then(|shown| shown.lines().next()).unwrap_or("");
        let inside = shown.strip_prefix('"').and_then(|shown| shown.strip_suffix('"'));
        let shown = inside.filter(|inside| !inside.is_empty()).unwrap_or(shown);
        let shown = if holds_keys(self.text.as_bytes()) { concealed(shown) } else { shown.to_owned() };
        shown.chars().take(60).collect()
    }

    fn remark(&mut self, node: &Node<'_>, message: impl Into<String>) {
        if self.file.remarks.len() < MISTAKES_MAX {
            let (place, column) = self.place_at(node.at);
            let width = u32::try_from(node.len).unwrap_or(1).max(1);
            self.file.remarks.push(Remark { place, column, width, message: message.into() });
        }
    }

    fn wrong(&mut self, node: &Node<'_>, expected: impl Into<String>) {
        self.mistake(node.at, node.len, expected);
    }

    fn line_at(&self, at: usize) -> u32 {
        let lines = self.text.as_bytes()[..at].iter().filter(|&&octet| octet == b'\n').count();
        u32::try_from(lines + 1).unwrap_or(u32::MAX)
    }

    /// Returns the value of a key that must be there.
    fn need<'n, 't>(&mut self, node: &'n Node<'t>, key: &str) -> Option<&'n Node<'t>> {
        let found = node.get(key);
        if found.is_none() {
            self.mistake(node.at, 1, format!("\"{key}\" in here"));
        }
        found
    }

    /// Tells of keys that mean nothing here: files for erldns have some that only others read.
    fn only(&mut self, node: &Node<'_>, keys: &[&str]) {
        for (key, _) in node.entries() {
            if !keys.contains(&key.text().unwrap_or("")) {
                let found = self.shown(key.at, key.len);
                let known = keys.join(", ");
                self.remark(
                    key,
                    format!("\"{found}\" means nothing here and is left out; known are {known}"),
                );
            }
        }
    }

    fn zone(&mut self, node: &Node<'_>, key: HashKey) {
        let before = self.file.mistakes.len() + self.file.more;
        if !matches!(node.value, Value::Object(_)) {
            return self.wrong(node, "a zone: {\"name\": …, \"records\": […]}");
        }
        self.only(node, &["name", "records", "sha", "keys"]);
        let name = self.need(node, "name");
        let records = self.need(node, "records");
        let (Some(name), Some(records)) = (name, records) else { return };
        let Some(apex) = name.text().and_then(|text| NameBuf::from_text(text).ok()) else {
            return self.wrong(name, "the name of a zone");
        };
        let mut builder = Builder::new(apex.as_name(), key);
        builder.reserve(records.len / 4);
        let mut left_out = 0;
        // Places are found in one walk over the file.
        let (mut line, mut walked) = (self.line_at(records.at), records.at);
        match records.list() {
            None => self.wrong(records, "a list of records"),
            Some(records) => {
                for record in records {
                    let passed = &self.text.as_bytes()[walked..record.at];
                    line += passed.iter().map(|&octet| u32::from(octet == b'\n')).sum::<u32>();
                    walked = record.at;
                    match self.record(record, Place { file: 0, line }, &mut builder) {
                        Taken::Yes => {}
                        Taken::No => left_out += 1,
                    }
                }
            }
        }
        let keys = self.keys(node, apex.as_name());
        let version = node.get("sha").and_then(Node::text).unwrap_or("").to_owned();
        let mut built = builder.compile();
        if self.file.mistakes.len() + self.file.more > before {
            built.zone = None;
            built.findings.retain(|finding| !finding.problem.is_of_absence());
        }
        self.file.zones.push(JsonZone { apex, version, built, keys, left_out });
    }

    fn record(&mut self, node: &Node<'_>, place: Place, builder: &mut Builder) -> Taken {
        if !matches!(node.value, Value::Object(_)) {
            self.wrong(node, "a record: {\"name\": …, \"type\": …, \"ttl\": …, \"data\": {…}}");
            return Taken::Yes;
        }
        self.only(node, &["name", "type", "ttl", "data", "class", "context"]);
        if !self.is_meant(node) {
            return Taken::No;
        }
        let name = self.need(node, "name");
        let rtype = self.need(node, "type");
        let ttl = self.need(node, "ttl");
        let data = self.need(node, "data");
        let (Some(name), Some(rtype), Some(ttl), Some(data)) = (name, rtype, ttl, data) else {
            return Taken::Yes;
        };
        if let Some(class) = node.get("class")
            && class.number() != Some(1_u16)
            && !class.text().is_some_and(|text| text.eq_ignore_ascii_case("IN"))
        {
            self.wrong(class, "class IN, the only one that is served");
        }
        let owner = name.text().and_then(|text| NameBuf::from_text(text).ok());
        if owner.is_none() {
            self.wrong(name, "the name of the owner in full");
        }
        let seconds = ttl.number::<u32>().filter(|&seconds| seconds <= i32::MAX as u32);
        if seconds.is_none() {
            self.wrong(ttl, "seconds, at most 2147483647");
        }
        self.has_split = false;
        let rdata = self.data(rtype, data);
        if let (Some(owner), Some(seconds), Some((rtype, rdata))) = (owner, seconds, rdata) {
            builder.push(&Entry {
                owner: owner.as_name(),
                has_same_owner: false,
                rtype,
                ttl: Ttl::new(seconds),
                rdata: &rdata,
                place,
                is_split: self.has_split,
            });
        }
        Taken::Yes
    }

    /// Returns whether the record's contexts are wanted.
    fn is_meant(&mut self, node: &Node<'_>) -> bool {
        let Some(context) = node.get("context") else { return true };
        let Some(list) = context.list() else {
            self.wrong(context, "a list of contexts");
            return true;
        };
        let Some(wanted) = self.contexts else { return true };
        if list.is_empty() {
            return wanted.matches_empty;
        }
        list.iter().filter_map(Node::text).any(|own| wanted.allow.iter().any(|allowed| allowed == own))
    }
}

/// Whether a record was wanted.
enum Taken {
    Yes,
    No,
}

#[cfg(test)]
mod tests;
