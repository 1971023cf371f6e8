//! Data of records: an object with a field for each part of the type, written as text and read like
//! that of a zone file.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use wire::Rtype;

use super::Reader;
use super::value::{Node, Value};

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

/// The parameters of services by their numbers (RFC 9460 §14.3.2).
const PARAMS: [&str; 7] = ["mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint"];

/// Where a field begins in the text of its record, where it stands in the file, and its length
/// there, in octets.
type FieldAt = (usize, usize, usize);

impl Reader<'_, '_> {
    /// Reads a record's type and data.
    pub(super) fn data(&mut self, rtype: &Node<'_>, data: &Node<'_>) -> Option<(Rtype, Vec<u8>)> {
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

    /// Writes the fields of a type as text; says where in it each begins, and where it stands in
    /// the file.
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

    pub(super) fn number<T: std::str::FromStr>(
        &mut self,
        data: &Node<'_>,
        name: &str,
        expected: &str,
    ) -> Option<T> {
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
                        // RFC 9460 appendix A.1: commas in an item are escaped, and so are those
                        // escapes.
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
}

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
