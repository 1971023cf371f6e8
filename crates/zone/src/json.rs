//! Zones in JSON, as erldns has them: an array of zones, each with its name, its records and perhaps its keys.
//!
//! Data of records are objects with a field for each part of the type; they are turned into the text form of RFC 1035 and
//! read like that. Reading goes on after a mistake, but for one in the JSON itself. Of private keys, no mistake shows anything.
//!
//! # Limitations
//!
//! Records of other types than those of the table need a number for their type and their data in Base64.

mod value;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use dnssec::keys::erldns;
use dnssec::{ENTRY_POINT, ZONE_KEY, parse_rfc3339};
use wire::{HashKey, NameBuf, Rtype, Ttl};

use self::value::{Node, Value};
use crate::build::{Builder, Built};
use crate::master::{Entry, MISTAKES_MAX, Mistake, MistakeKind, Place};

/// Which records are taken: erldns's contexts are a filter for a whole server, not a view of a client's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts {
    /// A record is taken if one of its contexts is among these, or if it says nothing about contexts.
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
    /// What is odd and kept no zone from being read, in the order of the file; at most [`MISTAKES_MAX`].
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

/// How a field of a record's data becomes text.
#[derive(Clone, Copy)]
enum Form {
    /// A number, or a word that stands as it is.
    Word,
    /// A name; the dot at its end may be missing.
    Name,
    /// A string.
    Quoted,
    /// A list of strings.
    Quotes,
    /// A list of types, by number or name.
    Types,
    /// True or false: one or zero.
    Flag,
    /// Other names of a field; it says nothing that the record would not say itself.
    Said,
}

use Form::{Flag, Name, Quoted, Quotes, Said, Types, Word};

/// The fields of each type, in the order of its text form.
const FIELDS: &[(&str, &[(&str, Form)])] = &[
    ("A", &[("ip", Word)]),
    ("AAAA", &[("ip", Word)]),
    ("NS", &[("dname", Name)]),
    ("CNAME", &[("dname", Name)]),
    ("PTR", &[("dname", Name)]),
    ("ALIAS", &[("dname", Name)]),
    ("DNAME", &[("dname", Name)]),
    (
        "SOA",
        &[
            ("mname", Name),
            ("rname", Name),
            ("serial", Word),
            ("refresh", Word),
            ("retry", Word),
            ("expire", Word),
            ("minimum", Word),
        ],
    ),
    ("MX", &[("preference", Word), ("exchange", Name)]),
    ("KX", &[("preference", Word), ("exchange", Name)]),
    ("TXT", &[("txts", Quotes)]),
    ("SPF", &[("spf", Quotes)]),
    ("SRV", &[("priority", Word), ("weight", Word), ("port", Word), ("target", Name)]),
    ("CAA", &[("flags", Word), ("tag", Word), ("value", Quoted)]),
    (
        "NAPTR",
        &[
            ("order", Word),
            ("preference", Word),
            ("flags", Quoted),
            ("services", Quoted),
            ("regexp", Quoted),
            ("replacement", Name),
        ],
    ),
    ("HINFO", &[("cpu", Quoted), ("os", Quoted)]),
    ("RP", &[("mbox", Name), ("txt", Name)]),
    ("AFSDB", &[("subtype", Word), ("hostname", Name)]),
    ("RT", &[("preference", Word), ("host", Name)]),
    ("MB", &[("madname", Name)]),
    ("MG", &[("madname", Name)]),
    ("MR", &[("newname", Name)]),
    ("MINFO", &[("rmailbx", Name), ("emailbx", Name)]),
    ("SSHFP", &[("alg", Word), ("fptype", Word), ("fp", Word)]),
    ("TLSA", &[("usage", Word), ("selector", Word), ("matching_type", Word), ("certificate", Word)]),
    ("SMIMEA", &[("usage", Word), ("selector", Word), ("matching_type", Word), ("certificate", Word)]),
    ("DS", &[("keytag", Word), ("alg", Word), ("digest_type", Word), ("digest", Word)]),
    ("CDS", &[("keytag", Word), ("alg", Word), ("digest_type", Word), ("digest", Word)]),
    ("DLV", &[("keytag", Word), ("alg", Word), ("digest_type", Word), ("digest", Word)]),
    (
        "DNSKEY",
        &[
            ("flags", Word),
            ("protocol", Word),
            ("alg", Word),
            ("public_key", Word),
            ("key_tag", Said),
            ("keytag", Said),
        ],
    ),
    (
        "CDNSKEY",
        &[
            ("flags", Word),
            ("protocol", Word),
            ("alg", Word),
            ("public_key", Word),
            ("key_tag", Said),
            ("keytag", Said),
        ],
    ),
    (
        "RRSIG",
        &[
            ("type_covered", Types),
            ("alg", Word),
            ("labels", Word),
            ("original_ttl", Word),
            ("expiration", Word),
            ("inception", Word),
            ("keytag", Word),
            ("signers_name", Name),
            ("signature", Word),
        ],
    ),
    ("NSEC", &[("next_dname", Name), ("types", Types)]),
    ("NXT", &[("dname", Name), ("types", Types)]),
    (
        "NSEC3",
        &[
            ("hash_alg", Word),
            ("opt_out", Flag),
            ("iterations", Word),
            ("salt", Word),
            ("hash", Word),
            ("types", Types),
        ],
    ),
    ("NSEC3PARAM", &[("hash_alg", Word), ("flags", Word), ("iterations", Word), ("salt", Word)]),
    ("CSYNC", &[("soa_serial", Word), ("flags", Word), ("types", Types)]),
    ("DSYNC", &[("rrtype", Types), ("scheme", Word), ("port", Word), ("target", Name)]),
    ("ZONEMD", &[("serial", Word), ("scheme", Word), ("algorithm", Word), ("hash", Word)]),
    ("CERT", &[("type", Word), ("keytag", Word), ("alg", Word), ("cert", Word)]),
    ("DHCID", &[("data", Word)]),
    ("OPENPGPKEY", &[("data", Word)]),
    ("URI", &[("priority", Word), ("weight", Word), ("target", Quoted)]),
    ("RESINFO", &[("data", Quotes)]),
    ("WALLET", &[("data", Quotes)]),
];

/// Fields of the types whose text form is not a row of them.
const LOC: [&str; 6] = ["size", "horiz", "vert", "lat", "lon", "alt"];
const KEY: [&str; 7] = ["type", "xt", "name_type", "sig", "protocol", "alg", "public_key"];
const IPSECKEY: [&str; 4] = ["precedence", "alg", "gateway", "public_key"];
const SERVICE: [&str; 3] = ["svc_priority", "target_name", "svc_params"];

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

/// Where a field begins in the text of its record, where it stands in the file, and its length there, in octets.
type FieldAt = (usize, usize, usize);

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

    /// Returns what stands at a place as it may be shown: without the quotes of a text, which messages put around it.
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

    /// Reads a record's type and data.
    fn data(&mut self, rtype: &Node<'_>, data: &Node<'_>) -> Option<(Rtype, Vec<u8>)> {
        if !matches!(data.value, Value::Object(_)) {
            self.wrong(data, "an object with the fields of the type");
            return None;
        }
        let Some(mnemonic) = rtype.text() else {
            self.wrong(rtype, "a type in quotes");
            return None;
        };
        if mnemonic.bytes().all(|octet| octet.is_ascii_digit()) && !mnemonic.is_empty() {
            let Ok(number) = mnemonic.parse() else {
                self.wrong(rtype, "the number of a type, up to 65535");
                return None;
            };
            self.only(data, &["data"]);
            let text = format!("\\# {}", self.base64(data, "data")?);
            return self.parse(Rtype(number), data, &text, &[]);
        }
        let (text, fields) = match mnemonic {
            "LOC" => (self.loc(data)?, Vec::new()),
            "KEY" => (self.key(data)?, Vec::new()),
            "IPSECKEY" => (self.ipseckey(data)?, Vec::new()),
            "EUI48" | "EUI64" => {
                self.only(data, &["address"]);
                let address = self.word(data, "address")?;
                (format!("\\# {} {address}", address.len() / 2), Vec::new())
            }
            "SVCB" | "HTTPS" => (self.service(data)?, Vec::new()),
            _ => match FIELDS.iter().find(|(known, _)| *known == mnemonic) {
                Some((_, fields)) => self.fields(data, fields)?,
                None => {
                    self.wrong(rtype, "a type such as A or SVCB, or the number of one in quotes");
                    return None;
                }
            },
        };
        let number = mnemonic.parse().ok()?;
        self.parse(number, data, &text, &fields)
    }

    /// Reads data in text form; what is wrong in it is told at the field it came from.
    fn parse(
        &mut self,
        rtype: Rtype,
        data: &Node<'_>,
        text: &str,
        fields: &[(usize, usize, usize)],
    ) -> Option<(Rtype, Vec<u8>)> {
        let mut octets = Vec::new();
        match wire::rdata::parse_splitting(rtype, text, None, &mut octets) {
            Ok(has_split) => {
                self.has_split |= has_split;
                Some((rtype, octets))
            }
            Err(error) => {
                let blamed = fields.iter().rev().find(|&&(start, ..)| start <= error.at);
                let (at, len) = blamed.map_or((data.at, data.len), |&(_, at, len)| (at, len));
                self.mistake(at, len, error.expected);
                None
            }
        }
    }

    /// Writes the fields of a type as text; says where in it each begins, and where it stands in the file.
    fn fields(&mut self, data: &Node<'_>, fields: &[(&str, Form)]) -> Option<(String, Vec<FieldAt>)> {
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        self.only(data, &names);
        let (mut text, mut places) = (String::new(), Vec::new());
        for &(name, form) in fields {
            if matches!(form, Said) {
                continue;
            }
            let node = self.need(data, name)?;
            text.push(' ');
            places.push((text.len(), node.at, node.len));
            if self.field(node, form, &mut text).is_none() {
                let expected = match form {
                    Word => "a number or a word",
                    Name => "a domain name",
                    Quoted => "a string",
                    Quotes => "a list of strings",
                    Types => "types by number or name",
                    Flag | Said => "true or false",
                };
                self.wrong(node, expected);
                return None;
            }
        }
        Some((text, places))
    }

    fn field(&mut self, node: &Node<'_>, form: Form, text: &mut String) -> Option<()> {
        match (form, &node.value) {
            (Word, Value::Number(number)) => text.push_str(number),
            (Word, Value::Text(word)) => text.push_str(bare(word)?),
            (Name, Value::Text(name)) => {
                let name = bare(name)?;
                text.push_str(name);
                let is_whole = name.ends_with('.') && !name.ends_with("\\.");
                text.push_str(if is_whole { "" } else { "." });
            }
            (Quoted, Value::Text(string)) => quote(string, text),
            (Quotes, Value::List(strings)) if !strings.is_empty() => {
                for string in strings {
                    quote(string.text()?, text);
                    text.push(' ');
                }
            }
            (Types, Value::List(types)) => {
                for rtype in types {
                    push_type(rtype, text)?;
                    text.push(' ');
                }
            }
            (Types, _) => push_type(node, text)?,
            (Flag, Value::Bool(flag)) => text.push(if *flag { '1' } else { '0' }),
            _ => return None,
        }
        Some(())
    }

    /// Returns a field that is a number or a word.
    fn word(&mut self, data: &Node<'_>, name: &str) -> Option<String> {
        let node = self.need(data, name)?;
        let mut text = String::new();
        if self.field(node, Word, &mut text).is_none() {
            self.wrong(node, "a number or a word");
            return None;
        }
        Some(text)
    }

    fn number<T: std::str::FromStr>(&mut self, data: &Node<'_>, name: &str, expected: &str) -> Option<T> {
        let node = self.need(data, name)?;
        let found = node.number();
        if found.is_none() {
            self.wrong(node, expected);
        }
        found
    }

    /// Returns a field in Base64 as the number of octets and hexadecimal.
    fn base64(&mut self, data: &Node<'_>, name: &str) -> Option<String> {
        let node = self.need(data, name)?;
        let Some(octets) = node.text().and_then(|text| wire::text::read_base64(text.as_bytes())) else {
            self.wrong(node, "Base64");
            return None;
        };
        Some(generic(&octets))
    }

    /// RFC 1876 §2: version 0, three octets, three words.
    fn loc(&mut self, data: &Node<'_>) -> Option<String> {
        self.only(data, &LOC);
        let mut octets = vec![0];
        for field in &LOC[..3] {
            octets.push(self.number::<u8>(data, field, "an octet as on the wire")?);
        }
        for field in &LOC[3..] {
            octets.extend(self.number::<u32>(data, field, "32 bits as on the wire")?.to_be_bytes());
        }
        Some(format!("\\# {}", generic(&octets)))
    }

    /// RFC 2535 §3.1.2: flags in parts.
    fn key(&mut self, data: &Node<'_>) -> Option<String> {
        self.only(data, &KEY);
        let part = |reader: &mut Self, name: &str, max: u16, expected: &str| {
            let found = reader.number::<u16>(data, name, expected)?;
            if found > max {
                let node = data.get(name)?;
                reader.wrong(node, expected);
                return None;
            }
            Some(found)
        };
        let flags = part(self, "type", 3, "a number from 0 to 3")? << 14
            | part(self, "xt", 1, "0 or 1")? << 12
            | part(self, "name_type", 3, "a number from 0 to 3")? << 8
            | part(self, "sig", 15, "a number from 0 to 15")?;
        let (protocol, algorithm) = (self.word(data, "protocol")?, self.word(data, "alg")?);
        Some(format!("{flags} {protocol} {algorithm} {}", self.word(data, "public_key")?))
    }

    /// RFC 4025 §3: the type of the gateway follows from what it is.
    fn ipseckey(&mut self, data: &Node<'_>) -> Option<String> {
        self.only(data, &IPSECKEY);
        let (precedence, algorithm) = (self.word(data, "precedence")?, self.word(data, "alg")?);
        let gateway = self.word(data, "gateway")?;
        let (kind, gateway) = if gateway.is_empty() || gateway == "." {
            (0, ".".to_owned())
        } else if gateway.parse::<Ipv4Addr>().is_ok() {
            (1, gateway)
        } else if gateway.parse::<Ipv6Addr>().is_ok() {
            (2, gateway)
        } else {
            (3, format!("{}.", gateway.trim_end_matches('.')))
        };
        Some(format!("{precedence} {kind} {algorithm} {gateway} {}", self.word(data, "public_key")?))
    }

    /// RFC 9460 §2.1: parameters by name.
    fn service(&mut self, data: &Node<'_>) -> Option<String> {
        self.only(data, &SERVICE);
        let priority = self.word(data, "svc_priority")?;
        let mut text = format!("{priority} ");
        let target = self.need(data, "target_name")?;
        if self.field(target, Name, &mut text).is_none() {
            self.wrong(target, "a domain name");
            return None;
        }
        let Some(params) = data.get("svc_params") else { return Some(text) };
        if !matches!(params.value, Value::Object(_)) {
            self.wrong(params, "an object with the parameters");
            return None;
        }
        for (key, value) in params.entries() {
            let name = key.text().and_then(bare).unwrap_or("");
            // The first numbers have names.
            let number = name.strip_prefix("key").and_then(|number| number.parse::<usize>().ok());
            let name = number.and_then(|number| PARAMS.get(number)).copied().unwrap_or(name);
            if self.param(name, value, &mut text).is_none() {
                self.wrong(value, format!("a value of the parameter \"{name}\""));
                return None;
            }
        }
        Some(text)
    }

    fn param(&mut self, name: &str, value: &Node<'_>, text: &mut String) -> Option<()> {
        let _ = write!(text, " {name}");
        match &value.value {
            Value::Null => return Some(()),
            Value::Number(number) => {
                let _ = write!(text, "={number}");
            }
            Value::List(list) => {
                text.push_str("=\"");
                for (at, item) in list.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    match &item.value {
                        Value::Number(number) => text.push_str(number),
                        // RFC 9460 appendix A.1: commas in an item are escaped, and so are those escapes.
                        Value::Text(item) => {
                            let item = item.replace('\\', "\\\\").replace(',', "\\,");
                            push_escaped(&item, text);
                        }
                        _ => return None,
                    }
                }
                text.push('"');
            }
            Value::Text(own) if name == "ech" => {
                text.push('=');
                let _ = write!(text, "{}", wire::text::Base64(own.as_bytes()));
            }
            Value::Text(own) => {
                text.push('=');
                quote(own, text);
            }
            Value::Bool(_) | Value::Object(_) => return None,
        }
        Some(())
    }

    fn keys(&mut self, zone: &Node<'_>, apex: wire::Name<'_>) -> Vec<KeySet> {
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
    // A file with a mistake may have them where they do not belong, so what says that some come is enough.
    [&b"PRIVATE KEY"[..], b"\"keys\"", b"\"ksk\"", b"\"zsk\""].iter().any(|word| has(word))
}

/// Letters in a row that could be a piece of a private key.
const PIECE_MIN: usize = 20;

/// Returns a part of the text of such a file as it may be shown: as long as it is, without what could be a piece of a key.
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

/// Whether a record was wanted.
enum Taken {
    Yes,
    No,
}

/// The parameters of services by their numbers (RFC 9460 §14.3.2).
const PARAMS: [&str; 7] = ["mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint"];

/// Returns a word, if it can stand in a zone file as it is.
fn bare(word: &str) -> Option<&str> {
    let is_bare = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '(' | ')' | ';');
    word.chars().all(is_bare).then_some(word)
}

fn push_type(node: &Node<'_>, text: &mut String) -> Option<()> {
    match &node.value {
        Value::Number(number) => {
            let number: u16 = number.parse().ok()?;
            write!(text, "TYPE{number}").ok()
        }
        Value::Text(name) => {
            name.parse::<Rtype>().ok()?;
            text.push_str(name);
            Some(())
        }
        _ => None,
    }
}

/// Writes a string between quotes.
fn quote(string: &str, text: &mut String) {
    text.push('"');
    push_escaped(string, text);
    text.push('"');
}

fn push_escaped(string: &str, text: &mut String) {
    for octet in string.bytes() {
        match octet {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(octet));
            }
            b' '..=b'~' => text.push(char::from(octet)),
            _ => {
                let _ = write!(text, "\\{octet:03}");
            }
        }
    }
}

/// Returns how many octets these are, and the octets in hexadecimal (RFC 3597 §5).
fn generic(octets: &[u8]) -> String {
    let mut text = octets.len().to_string();
    if !octets.is_empty() {
        text.push(' ');
    }
    for octet in octets {
        let _ = write!(text, "{octet:02X}");
    }
    text
}

#[cfg(test)]
mod tests;
