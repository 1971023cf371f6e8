//! erldns's key sets: a JSON list of objects, each with a KSK and a ZSK in PEM and the time that
//! signatures are good for.

use std::fmt::Write as _;

use wire::Name;
use zeroize::Zeroizing;

use super::{KeyFault, Times, ZoneKey, pem};
use crate::algorithm::Algorithm;
use crate::dnskey::{ENTRY_POINT, ZONE_KEY};
use crate::secret::Unusable;
use crate::times::{parse_rfc3339, write_rfc3339};

/// Lists and objects that may stand in each other.
const DEPTH_MAX: usize = 16;

/// A key set.
#[derive(Debug)]
pub struct KeySet {
    /// The key that signs keys.
    pub ksk: ZoneKey,
    /// The key that signs everything else.
    pub zsk: ZoneKey,
    /// From when on signatures are good.
    pub inception: u64,
    /// Until when.
    pub until: u64,
}

/// Which field of a key is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongKey {
    /// The algorithm is none that is signed with here.
    Algorithm(Unusable),
    /// The key cannot be read, or is one of another algorithm.
    Key(KeyFault),
    /// The tag is another one: this.
    Tag(u16),
}

impl WrongKey {
    /// Says it of the key that is called `name`, `said` to have a tag.
    fn of(self, name: &str, said: u64) -> KeyFault {
        let what = match self {
            Self::Algorithm(unusable) => unusable.to_string(),
            Self::Key(fault) => {
                return KeyFault { what: format!("\"{name}\": {}", fault.what), ..fault };
            }
            Self::Tag(tag) => format!("\"{name}_keytag\" is {said}, but the key's tag is {tag}"),
        };
        KeyFault::new(0, what)
    }
}

/// Reads a key of `owner` from what the fields of a key set say: its PEM, the number of its
/// algorithm and its tag.
pub fn zone_key(
    owner: Name<'_>,
    flags: u16,
    (pem, algorithm, tag): (&str, u64, u64),
    inception: u64,
) -> Result<ZoneKey, WrongKey> {
    let algorithm = Algorithm(u8::try_from(algorithm).unwrap_or(0));
    if !algorithm.is_supported() {
        return Err(WrongKey::Algorithm(Unusable::Algorithm(algorithm)));
    }
    let secret = pem::read(pem, Some(algorithm)).map_err(WrongKey::Key)?;
    let times = Times {
        created: Some(inception),
        publish: Some(inception),
        activate: Some(inception),
        ..Times::default()
    };
    let key = ZoneKey { owner: owner.to_buf(), flags, secret: secret.into(), times };
    match key.tag() {
        own if u64::from(own) == tag => Ok(key),
        own => Err(WrongKey::Tag(own)),
    }
}

/// Reads the key sets of a zone: a list of them, or one.
pub fn read(owner: Name<'_>, text: &str) -> Result<Vec<KeySet>, KeyFault> {
    let mut remarks = Vec::new();
    let sets = read_leniently(owner, text, &mut remarks)?;
    match remarks.pop() {
        Some(remark) => Err(KeyFault::new(0, remark)),
        None => Ok(sets),
    }
}

/// Reads them likewise, and goes on where a tag is not the key's, whose own counts, and where an
/// RSA key is too small to sign with: that set is left out. Each is noted in `remarks`.
pub fn read_leniently(
    owner: Name<'_>,
    text: &str,
    remarks: &mut Vec<String>,
) -> Result<Vec<KeySet>, KeyFault> {
    let mut json = Json { text, at: 0 };
    let value = json.value(0)?;
    json.blanks();
    if json.at < text.len() {
        return Err(json.fault("expected the end of the file"));
    }
    let sets = match value {
        Value::List(sets) => sets,
        set => vec![set],
    };
    let mut read = Vec::with_capacity(sets.len());
    for (index, set) in sets.into_iter().enumerate() {
        let said = |what: &str| format!("key set {}: {what}", index + 1);
        let mut own = Vec::new();
        match one(owner, &set, &mut own) {
            Ok(set) => read.push(set),
            Err(fault) if fault.is_size => own.push(format!("{}; it is left out", fault.what)),
            Err(fault) => return Err(KeyFault { what: said(&fault.what), ..fault }),
        }
        remarks.extend(own.iter().map(|remark| said(remark)));
    }
    Ok(read)
}

fn one(owner: Name<'_>, set: &Value, remarks: &mut Vec<String>) -> Result<KeySet, KeyFault> {
    let Value::Object(fields) = set else { return Err(KeyFault::new(0, "expected an object")) };
    let field = |name: &str| {
        fields
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
            .ok_or_else(|| KeyFault::new(0, format!("lacks \"{name}\"")))
    };
    let text = |name: &str| match field(name)? {
        Value::Text(text) => Ok(text),
        _ => Err(KeyFault::new(0, format!("\"{name}\" should be a string"))),
    };
    let number = |name: &str| match field(name)? {
        Value::Number(number) => Ok(*number),
        _ => Err(KeyFault::new(0, format!("\"{name}\" should be a whole number"))),
    };
    let time = |name: &str| {
        parse_rfc3339(text(name)?).ok_or_else(|| {
            KeyFault::new(0, format!("\"{name}\" should be a time such as 2026-01-31T00:00:00Z"))
        })
    };
    let (inception, until) = (time("inception")?, time("until")?);
    let mut key = |name: &str, flags: u16| {
        let (algorithm, tag) = (number(&format!("{name}_alg"))?, number(&format!("{name}_keytag"))?);
        let pem = text(name)?.as_str();
        let mut found = zone_key(owner, flags, (pem, algorithm, tag), inception);
        if let Err(WrongKey::Tag(own)) = found {
            remarks.push(WrongKey::Tag(own).of(name, tag).what);
            found = zone_key(owner, flags, (pem, algorithm, u64::from(own)), inception);
        }
        found.map_err(|wrong| wrong.of(name, tag))
    };
    Ok(KeySet { ksk: key("ksk", ZONE_KEY | ENTRY_POINT)?, zsk: key("zsk", ZONE_KEY)?, inception, until })
}

/// Returns key sets as erldns reads them.
pub fn write(sets: &[KeySet]) -> Result<Zeroizing<String>, KeyFault> {
    let mut text = Zeroizing::new(String::with_capacity(16_384 * sets.len().max(1)));
    text.push_str("[\n");
    for (index, set) in sets.iter().enumerate() {
        let comma = if index + 1 < sets.len() { "," } else { "" };
        text.push_str("  {\n");
        for (name, key) in [("ksk", &set.ksk), ("zsk", &set.zsk)] {
            let pem = Zeroizing::new(pem::write(&key.secret)?.replace('\n', "\\n"));
            let (tag, algorithm) = (key.tag(), key.secret.algorithm().0);
            let _ = writeln!(text, "    \"{name}\": \"{}\",", pem.as_str());
            let _ = writeln!(text, "    \"{name}_keytag\": {tag},\n    \"{name}_alg\": {algorithm},");
        }
        let (inception, until) = (write_rfc3339(set.inception), write_rfc3339(set.until));
        let _ =
            writeln!(text, "    \"inception\": \"{inception}\",\n    \"until\": \"{until}\"\n  }}{comma}");
    }
    text.push_str("]\n");
    Ok(text)
}

/// As much of JSON (RFC 8259) as key sets need; anything else is a mistake.
enum Value {
    Text(Zeroizing<String>),
    Number(u64),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
    /// `null`, `true`, `false` and numbers that are not whole.
    Other,
}

struct Json<'t> {
    text: &'t str,
    at: usize,
}

impl Json<'_> {
    fn fault(&self, what: &str) -> KeyFault {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        KeyFault::new(before.matches('\n').count() + 1, what)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn takes(&mut self, octet: u8) -> bool {
        self.blanks();
        let is_next = self.peek() == Some(octet);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<Value, KeyFault> {
        if depth > DEPTH_MAX {
            return Err(self.fault("too many brackets in each other"));
        }
        self.blanks();
        match self.peek() {
            Some(b'"') => self.string().map(Value::Text),
            Some(b'[') => {
                self.at += 1;
                let mut list = Vec::new();
                if self.takes(b']') {
                    return Ok(Value::List(list));
                }
                loop {
                    list.push(self.value(depth + 1)?);
                    if self.takes(b']') {
                        return Ok(Value::List(list));
                    }
                    if !self.takes(b',') {
                        return Err(self.fault("expected a comma or \"]\""));
                    }
                }
            }
            Some(b'{') => {
                self.at += 1;
                let mut fields = Vec::new();
                if self.takes(b'}') {
                    return Ok(Value::Object(fields));
                }
                loop {
                    self.blanks();
                    let name = self.string()?.to_string();
                    if !self.takes(b':') {
                        return Err(self.fault("expected a colon"));
                    }
                    fields.push((name, self.value(depth + 1)?));
                    if self.takes(b'}') {
                        return Ok(Value::Object(fields));
                    }
                    if !self.takes(b',') {
                        return Err(self.fault("expected a comma or \"}\""));
                    }
                }
            }
            Some(b'-' | b'0'..=b'9' | b'n' | b't' | b'f') => {
                let rest = self.text.get(self.at..).unwrap_or("");
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '+' | '.'))
                    .unwrap_or(rest.len());
                let word = rest.get(..end).unwrap_or("");
                self.at += end;
                match (word, word.parse::<u64>(), word.parse::<f64>()) {
                    (_, Ok(number), _) => Ok(Value::Number(number)),
                    ("null" | "true" | "false", ..) | (_, _, Ok(_)) => Ok(Value::Other),
                    _ => Err(self.fault("expected a value")),
                }
            }
            _ => Err(self.fault("expected a value")),
        }
    }

    fn string(&mut self) -> Result<Zeroizing<String>, KeyFault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a string"));
        }
        self.at += 1;
        let rest = self.text.get(self.at..).unwrap_or("");
        let mut text = Zeroizing::new(String::with_capacity(rest.len().min(16_384)));
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(text);
                }
                '\\' => {
                    let escaped = match chars.next().map(|(_, c)| c) {
                        Some(c @ ('"' | '\\' | '/')) => Some(c),
                        Some('n') => Some('\n'),
                        Some('r') => Some('\r'),
                        Some('t') => Some('\t'),
                        Some('b') => Some('\u{8}'),
                        Some('f') => Some('\u{c}'),
                        Some('u') => {
                            let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                            // Halves of surrogate pairs have no place in a key.
                            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
                        }
                        _ => None,
                    };
                    text.push(escaped.ok_or_else(|| self.fault("a string with a wrong escape"))?);
                }
                '\u{0}'..='\u{1f}' => return Err(self.fault("a string over the end of a line")),
                c => text.push(c),
            }
        }
        Err(self.fault("a string that does not end"))
    }
}
