//! The presentation form (RFC 1035 §5.1): tokens, escapes, names, encodings.
//!
//! Cold: what is here may allocate.

use std::fmt;
use std::str::FromStr;

use crate::idn;
use crate::message::{NameRef, Record};
use crate::name::{Folded, LABEL_OCTETS_MAX, Name, NameBuf};
use crate::rdata;

/// Why text is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Where in the text, in octets from its start.
    pub at: usize,
    /// What was found there; empty at the end of the text.
    pub what: String,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what.as_str() {
            "" => write!(f, "expected {}, found the end", self.expected),
            what => write!(f, "expected {}, found \"{what}\"", self.expected),
        }
    }
}

impl std::error::Error for TextError {}

/// One word of the presentation form, escapes not yet resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Where it starts, in octets from the start of the text; quotes are not part of it.
    pub at: usize,
    /// The word as written.
    pub text: &'a str,
    /// Whether it stood between quotes.
    pub is_quoted: bool,
}

impl Token<'_> {
    /// Returns the error that says what this should have been.
    pub fn expected(&self, expected: &'static str) -> TextError {
        TextError { at: self.at, what: self.text.to_owned(), expected }
    }

    /// Returns the octets the word stands for: `\X` is X, `\DDD` the octet with that decimal
    /// number.
    pub fn octets(&self) -> Result<Vec<u8>, TextError> {
        let mut octets = Vec::with_capacity(self.text.len());
        let mut rest = self.text.as_bytes();
        while let Some((octet, _, after)) =
            unescape(rest).map_err(|Escape| self.expected("an escape of the form \\X or \\DDD"))?
        {
            octets.push(octet);
            rest = after;
        }
        Ok(octets)
    }
}

/// An escape that is not of the form `\X` or `\DDD`.
struct Escape;

/// Takes one octet off the front; says whether it was escaped.
#[expect(clippy::type_complexity, reason = "octet, whether escaped, rest")]
fn unescape(text: &[u8]) -> Result<Option<(u8, bool, &[u8])>, Escape> {
    match text {
        [] => Ok(None),
        [b'\\', rest @ ..] => match rest {
            [h @ b'0'..=b'9', rest @ ..] => {
                let [t @ b'0'..=b'9', u @ b'0'..=b'9', rest @ ..] = rest else { return Err(Escape) };
                let digit = |digit: &u8| u16::from(digit - b'0');
                let octet = u8::try_from(digit(h) * 100 + digit(t) * 10 + digit(u)).map_err(|_| Escape)?;
                Ok(Some((octet, true, rest)))
            }
            [octet, rest @ ..] => Ok(Some((*octet, true, rest))),
            [] => Err(Escape),
        },
        [octet, rest @ ..] => Ok(Some((*octet, false, rest))),
    }
}

/// Cuts one entry of a zone file into words: white space separates, `;` begins a comment,
/// parentheses let the entry go on over line ends.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    is_idn: bool,
    /// Whether a string was too long for one, and became several.
    has_split: bool,
}

impl<'a> Tokens<'a> {
    /// Begins at the start of `text`.
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, is_idn: false, has_split: false }
    }

    /// Lets names outside ASCII be internationalized ones ([`idn`](crate::idn)). Else they are
    /// octets, as everywhere in zone files: the instances of RFC 6763 §4.1.1 are UTF-8 as it
    /// stands.
    pub const fn with_idn(self) -> Self {
        Self { is_idn: true, ..self }
    }

    /// Reads a word as a name; without an origin it must end in a dot.
    pub(crate) fn name(&self, token: &Token<'_>, origin: Option<Name<'_>>) -> Result<NameBuf, TextError> {
        if self.is_idn { idn_from_token(token, origin) } else { name_from_token(token, origin) }
    }

    /// Returns whether a string of text was longer than 255 octets and was split; who reads data
    /// with these words says so.
    pub const fn has_split(&self) -> bool {
        self.has_split
    }

    pub(crate) const fn note_split(&mut self) {
        self.has_split = true;
    }

    /// Returns where the next unread octet is.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Returns where the next word begins, if that is plain to see: no parenthesis, comment, line
    /// end or escape is there.
    pub(crate) fn plain_word_at(&self) -> Option<usize> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let blanks = rest.iter().take_while(|&&octet| matches!(octet, b' ' | b'\t')).count();
        match rest.get(blanks)? {
            b'(' | b')' | b';' | b'\r' | b'\n' | b'\\' | b'"' => None,
            _ => Some(self.at + blanks),
        }
    }

    /// Returns the next word; `None` at the end of the entry.
    pub fn next_token(&mut self) -> Result<Option<Token<'a>>, TextError> {
        let bytes = self.text.as_bytes();
        loop {
            let Some(&octet) = bytes.get(self.at) else {
                return if self.depth == 0 { Ok(None) } else { Err(self.ended("a closing parenthesis")) };
            };
            match octet {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' if self.depth > 0 => self.at += 1,
                b'\n' => return Ok(None),
                b';' => self.at += bytes[self.at..].iter().take_while(|&&octet| octet != b'\n').count(),
                b'(' => {
                    self.depth += 1;
                    self.at += 1;
                }
                b')' if self.depth > 0 => {
                    self.depth -= 1;
                    self.at += 1;
                }
                b')' => {
                    return Err(TextError {
                        at: self.at,
                        what: ")".to_owned(),
                        expected: "an opening parenthesis before it",
                    });
                }
                b'"' => {
                    let start = self.at + 1;
                    let end = self.quoted(start)?;
                    self.at = end + 1;
                    return Ok(Some(Token { at: start, text: &self.text[start..end], is_quoted: true }));
                }
                _ => return self.word().map(Some),
            }
        }
    }

    /// Returns the next word, or the error that something is missing.
    pub fn expect(&mut self, expected: &'static str) -> Result<Token<'a>, TextError> {
        self.next_token()?.ok_or_else(|| self.ended(expected))
    }

    /// Errors unless the entry ends here.
    pub fn end(&mut self) -> Result<(), TextError> {
        match self.next_token()? {
            Some(token) => Err(token.expected("nothing more")),
            None if self.text[self.at..].trim_ascii().is_empty() => Ok(()),
            None => Err(TextError {
                at: self.at,
                what: "\n".to_owned(),
                expected: "one entry; parentheses let it span lines",
            }),
        }
    }

    fn ended(&self, expected: &'static str) -> TextError {
        TextError { at: self.at, what: String::new(), expected }
    }

    /// Returns where the quoted string that starts at `at` ends.
    fn quoted(&self, mut at: usize) -> Result<usize, TextError> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(at) {
                None => {
                    let at = bytes.len();
                    return Err(TextError { at, what: String::new(), expected: "a closing quote" });
                }
                Some(b'"') => return Ok(at),
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
            }
        }
    }

    fn word(&mut self) -> Result<Token<'a>, TextError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start;
        while let Some(&octet) = bytes.get(at) {
            match octet {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'(' | b')' => break,
                // RFC 9460 §2.1: the value of `key="value"` may be quoted and belongs to the word.
                b'"' if at > start && bytes.get(at - 1) == Some(&b'=') => {
                    at = self.quoted(at + 1)? + 1;
                    break;
                }
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        // An escape at the end reaches past it.
        let Some(text) = self.text.get(start..at) else {
            return Err(TextError {
                at: start,
                what: self.text[start..].to_owned(),
                expected: "an escape of the form \\X or \\DDD",
            });
        };
        self.at = at;
        Ok(Token { at: start, text, is_quoted: false })
    }
}

/// Writes octets of a label or an unquoted string so that reading gives them back.
fn write_escaped(f: &mut impl fmt::Write, octets: &[u8], special: &[u8]) -> fmt::Result {
    for &octet in octets {
        match octet {
            b' ' if special == QUOTED => f.write_char(' ')?,
            0..=0x20 | 0x7f.. => write!(f, "\\{octet:03}")?,
            _ if special.contains(&octet) => write!(f, "\\{}", char::from(octet))?,
            _ => f.write_char(char::from(octet))?,
        }
    }
    Ok(())
}

/// What has a meaning in a label.
const LABEL: &[u8] = b".\\\"();@$";
/// What has a meaning in a string between quotes.
const QUOTED: &[u8] = b"\\\"";
/// What has a meaning in a string without quotes.
const BARE: &[u8] = b"\\\"();";

/// Writes a character-string between quotes.
pub(crate) fn write_quoted(f: &mut impl fmt::Write, octets: &[u8]) -> fmt::Result {
    f.write_char('"')?;
    write_escaped(f, octets, QUOTED)?;
    f.write_char('"')
}

/// Writes a character-string without quotes.
pub(crate) fn write_bare(f: &mut impl fmt::Write, octets: &[u8]) -> fmt::Result {
    write_escaped(f, octets, BARE)
}

impl fmt::Display for Name<'_> {
    /// Writes the name with a dot at its end, letter case kept, special characters escaped (RFC
    /// 1035 §5.1).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_none() {
            return write_name(f, *self);
        }
        let mut text = String::new();
        write_name(&mut text, *self)?;
        f.pad(&text)
    }
}

fn write_name(f: &mut impl fmt::Write, name: Name<'_>) -> fmt::Result {
    if name.is_root() {
        return f.write_char('.');
    }
    for label in name.labels() {
        write_escaped(f, label, LABEL)?;
        f.write_char('.')?;
    }
    Ok(())
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_name(), f)
    }
}

impl fmt::Debug for NameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_name(), f)
    }
}

impl fmt::Display for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_name(), f)
    }
}

impl fmt::Debug for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_name(), f)
    }
}

impl fmt::Display for NameRef<'_> {
    /// Writes the name; one that cannot be read as `(malformed name)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expand() {
            Ok(name) => fmt::Display::fmt(&name, f),
            Err(_) => f.pad("(malformed name)"),
        }
    }
}

impl fmt::Display for Record<'_> {
    /// Writes the record as a line of a zone file: owner, TTL, class, type, data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = rdata::display(self.rtype, self.owner.message(), self.rdata_at..self.end());
        write!(f, "{} {} {} {} {data}", self.owner, self.ttl(), self.class, self.rtype)
    }
}

/// What a name in text should be.
const A_NAME: &str = "a domain name (labels of 1 to 63 octets, 255 in all)";
/// What a name outside ASCII should be.
const AN_IDN: &str = "an internationalized domain name (UTS #46)";

impl NameBuf {
    /// Reads a name in presentation form; the last dot may be missing.
    pub fn from_text(text: &str) -> Result<Self, TextError> {
        Self::from_text_below(text, Name::ROOT)
    }

    /// Reads a name in presentation form; without a dot at its end it is below `origin`, and `@` is
    /// `origin`.
    pub fn from_text_below(text: &str, origin: Name<'_>) -> Result<Self, TextError> {
        name_from_token(&Token { at: 0, text, is_quoted: false }, Some(origin))
    }
}

impl FromStr for NameBuf {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::from_text(text)
    }
}

/// Reads a name that may be an internationalized one; without an origin it must end in a dot.
pub fn idn_from_token(token: &Token<'_>, origin: Option<Name<'_>>) -> Result<NameBuf, TextError> {
    let ascii = idn::to_ascii(token.text).map_err(|_| token.expected(AN_IDN))?;
    name_from_token(&Token { text: &ascii, ..*token }, origin).map_err(|error| token.expected(error.expected))
}

/// Reads a name; without an origin it must end in a dot.
fn name_from_token(token: &Token<'_>, origin: Option<Name<'_>>) -> Result<NameBuf, TextError> {
    const RELATIVE: &str = "a name that ends in a dot";
    let text = token.text.as_bytes();
    match text {
        b"@" => return origin.map(Name::to_buf).ok_or_else(|| token.expected(RELATIVE)),
        b"." => return Ok(NameBuf::root()),
        _ => {}
    }
    let mut name = NameBuf::root();
    let is_absolute = if text.contains(&b'\\') {
        push_escaped(&mut name, token)?
    } else {
        let absolute = text.strip_suffix(b".");
        for label in absolute.unwrap_or(text).split(|&octet| octet == b'.') {
            name.push_label(label).map_err(|_| token.expected(A_NAME))?;
        }
        absolute.is_some()
    };
    if !is_absolute {
        let origin = origin.ok_or_else(|| token.expected(RELATIVE))?.as_bytes();
        // The row that the writer of names takes has no root label.
        name.push_row(&origin[..origin.len() - 1]).map_err(|_| token.expected(A_NAME))?;
    }
    Ok(name)
}

/// Reads the labels of a name with escapes; returns whether it ends in a dot.
fn push_escaped(name: &mut NameBuf, token: &Token<'_>) -> Result<bool, TextError> {
    let mut label = [0; LABEL_OCTETS_MAX];
    let mut len = 0;
    let mut rest = token.text.as_bytes();
    let mut is_absolute = false;
    while let Some((octet, is_escaped, after)) = unescape(rest).map_err(|Escape| token.expected(A_NAME))? {
        rest = after;
        is_absolute = octet == b'.' && !is_escaped;
        if is_absolute {
            name.push_label(&label[..len]).map_err(|_| token.expected(A_NAME))?;
            len = 0;
        } else {
            *label.get_mut(len).ok_or_else(|| token.expected(A_NAME))? = octet;
            len += 1;
        }
    }
    if !is_absolute {
        name.push_label(&label[..len]).map_err(|_| token.expected(A_NAME))?;
    }
    Ok(is_absolute)
}

/// Reads seconds, plain or with the units `s`, `m`, `h`, `d`, `w` (`1h30m`).
pub fn parse_period(text: &str) -> Option<u32> {
    let mut total: u32 = 0;
    let mut number: Option<u32> = None;
    let mut has_units = false;
    for octet in text.bytes() {
        if octet.is_ascii_digit() {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(u32::from(octet - b'0'))?);
            continue;
        }
        let unit = match octet.to_ascii_lowercase() {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            b'w' => 604_800,
            _ => return None,
        };
        total = total.checked_add(number.take()?.checked_mul(unit)?)?;
        has_units = true;
    }
    match number {
        Some(number) if !has_units => Some(number),
        // "1h30" leaves open what the 30 are.
        Some(_) => None,
        None => has_units.then_some(total),
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32_HEX: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";

/// Octets that are shown in Base64, with padding (RFC 4648 §4).
#[derive(Clone, Copy, Debug)]
pub struct Base64<'a>(pub &'a [u8]);

impl fmt::Display for Base64<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_base64(f, self.0)
    }
}

/// Writes Base64 with padding (RFC 4648 §4).
pub fn write_base64(f: &mut impl fmt::Write, octets: &[u8]) -> fmt::Result {
    for chunk in octets.chunks(3) {
        let mut word = [0; 4];
        word[1..1 + chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for i in 0..4 {
            let symbol = match i <= chunk.len() {
                true => BASE64[(word >> (18 - 6 * i)) as usize & 63],
                false => b'=',
            };
            f.write_char(char::from(symbol))?;
        }
    }
    Ok(())
}

/// Reads Base64; padding must be there and unused bits zero, so that every value has one form.
pub fn read_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(text.len() / 4 * 3);
    let (chunks, []) = text.as_chunks::<4>() else { return None };
    for (i, chunk) in chunks.iter().enumerate() {
        let padding = chunk.iter().rev().take_while(|&&symbol| symbol == b'=').count();
        if padding > 2 || (padding > 0 && i + 1 < chunks.len()) {
            return None;
        }
        let mut word: u32 = 0;
        for &symbol in &chunk[..4 - padding] {
            word = (word << 6) | BASE64.iter().position(|&known| known == symbol)? as u32;
        }
        word <<= 6 * padding;
        let [_, bytes @ ..] = word.to_be_bytes();
        let (kept, unused) = bytes.split_at(3 - padding);
        if unused.iter().any(|&octet| octet != 0) {
            return None;
        }
        octets.extend_from_slice(kept);
    }
    Some(octets)
}

/// What each character stands for in Base64 for URLs (RFC 4648 §5); above 63 if nothing.
const BASE64URL_VALUES: [u8; 256] = {
    let mut values = [0xff; 256];
    let mut value = 0;
    while value < 62 {
        values[BASE64[value] as usize] = value as u8;
        value += 1;
    }
    values[b'-' as usize] = 62;
    values[b'_' as usize] = 63;
    values
};

/// Reads Base64 for URLs without padding (RFC 4648 §5) and appends the octets; bits that are left
/// over may be anything.
///
/// Does not allocate if `octets` has room.
pub fn read_base64url(text: &[u8], octets: &mut Vec<u8>) -> Option<()> {
    let (groups, rest) = text.as_chunks::<4>();
    octets.reserve(text.len() / 4 * 3 + 2);
    let value = |symbol: &u8| BASE64URL_VALUES[usize::from(*symbol)];
    for group in groups {
        let [a, b, c, d] = group.each_ref().map(value);
        if (a | b | c | d) > 63 {
            return None;
        }
        let word = u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d);
        let [_, bytes @ ..] = word.to_be_bytes();
        octets.extend_from_slice(&bytes);
    }
    match *rest {
        [] => {}
        [a, b] if (value(&a) | value(&b)) <= 63 => octets.push(value(&a) << 2 | value(&b) >> 4),
        [a, b, c] if (value(&a) | value(&b) | value(&c)) <= 63 => {
            octets.push(value(&a) << 2 | value(&b) >> 4);
            octets.push(value(&b) << 4 | value(&c) >> 2);
        }
        _ => return None,
    }
    Some(())
}

/// Writes Base32hex without padding (RFC 4648 §7, RFC 5155 §3.3).
pub fn write_base32_hex(f: &mut impl fmt::Write, octets: &[u8]) -> fmt::Result {
    for chunk in octets.chunks(5) {
        let mut word = [0; 8];
        word[3..3 + chunk.len()].copy_from_slice(chunk);
        let word = u64::from_be_bytes(word);
        for i in 0..(chunk.len() * 8).div_ceil(5) {
            f.write_char(char::from(BASE32_HEX[(word >> (35 - 5 * i)) as usize & 31]))?;
        }
    }
    Ok(())
}

/// Reads Base32hex without padding; letter case is ignored, unused bits must be zero.
pub fn read_base32_hex(text: &[u8]) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(text.len() * 5 / 8);
    let (mut word, mut bits): (u32, u32) = (0, 0);
    for symbol in text {
        let symbol = symbol.to_ascii_uppercase();
        word = (word << 5) | BASE32_HEX.iter().position(|&known| known == symbol)? as u32;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            octets.push((word >> bits) as u8);
            word &= (1 << bits) - 1;
        }
    }
    (word == 0 && bits < 5).then_some(octets)
}

/// Writes hexadecimal in upper case.
pub fn write_hex(f: &mut impl fmt::Write, octets: &[u8]) -> fmt::Result {
    octets.iter().try_for_each(|octet| write!(f, "{octet:02X}"))
}

/// Reads hexadecimal.
pub fn read_hex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let digit = |octet: u8| char::from(octet).to_digit(16).map(|digit| digit as u8);
    pairs.iter().map(|&[high, low]| Some((digit(high)? << 4) | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<&[u8]>) {
        let name = NameBuf::from_text(text);
        assert_eq!(name.as_ref().ok().map(|name| name.as_name().as_bytes()), expect, "{text}");
    }

    #[test]
    fn names_are_read_from_text() {
        check("example.org.", Some(b"\x07example\x03org\0"));
        check("example.org", Some(b"\x07example\x03org\0"));
        check(".", Some(b"\0"));
        check("a\\.b.c\\046d.\\000.", Some(b"\x03a.b\x03c.d\x01\0\0"));
        check("", None);
        check("..", None);
        check("a..b", None);
        check(".a", None);
        check("a\\", None);
        check("a\\25", None);
        check("a\\256", None);
        check(&format!("{}.", "a".repeat(63)), Some(&[b"\x3f".as_slice(), &[b'a'; 63], b"\0"].concat()));
        check(&"a".repeat(64), None);
        check(&"a.".repeat(127), Some(&[b"\x01a".repeat(127).as_slice(), b"\0"].concat()));
        check(&"a.".repeat(128), None);
    }

    #[test]
    fn relative_names_end_in_the_origin() {
        let origin = NameBuf::from_text("example.org").expect("a name");
        let below = |text| NameBuf::from_text_below(text, origin.as_name()).expect("a name").to_string();
        assert_eq!(below("www"), "www.example.org.");
        assert_eq!(below("www."), "www.");
        assert_eq!(below("@"), "example.org.");
        assert_eq!(below("\\@"), "\\@.example.org.");
    }

    #[test]
    fn periods_take_units() {
        for (text, seconds) in [
            ("0", Some(0)),
            ("3600", Some(3600)),
            ("1h30m", Some(5400)),
            ("1W2D", Some(777_600)),
            ("", None),
            ("h", None),
            ("1h30", None),
            ("1y", None),
            ("4294967295", Some(u32::MAX)),
            ("4294967296", None),
            ("9999w", None),
        ] {
            assert_eq!(parse_period(text), seconds, "{text}");
        }
    }

    #[test]
    fn encodings_match_rfc_4648() {
        for (octets, base64, base32) in [
            ("", "", ""),
            ("f", "Zg==", "CO"),
            ("fo", "Zm8=", "CPNG"),
            ("foo", "Zm9v", "CPNMU"),
            ("foobar", "Zm9vYmFy", "CPNMUOJ1E8"),
        ] {
            let mut text = String::new();
            write_base64(&mut text, octets.as_bytes()).expect("a string takes all");
            assert_eq!(text, base64);
            assert_eq!(read_base64(text.as_bytes()).as_deref(), Some(octets.as_bytes()));
            text.clear();
            write_base32_hex(&mut text, octets.as_bytes()).expect("a string takes all");
            assert_eq!(text, base32);
            assert_eq!(read_base32_hex(text.as_bytes()).as_deref(), Some(octets.as_bytes()));
        }
        for bad in ["Zg", "Zg=", "Zh==", "Z===", "Zg==Zg==", "Zm9?"] {
            assert_eq!(read_base64(bad.as_bytes()), None, "{bad}");
        }
        for (text, expect) in [
            ("", Some(&b""[..])),
            ("Zg", Some(b"f")),
            ("Zm8", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9vYmFy", Some(b"foobar")),
            ("-_-_", Some(b"\xfb\xff\xbf")),
            ("Z", None),
            ("Zg==", None),
            ("Zm/v", None),
            ("Zm9vZ", None),
            ("Z+", None),
            ("Zm/", None),
        ] {
            let mut octets = Vec::new();
            let read = read_base64url(text.as_bytes(), &mut octets);
            assert_eq!(read.map(|()| &octets[..]), expect, "{text}");
        }
    }

    #[test]
    fn tokens_know_quotes_comments_and_parentheses() {
        let mut tokens = Tokens::new("a \"b ; c\" (d ; comment\n e) k=\"x y\" ; end");
        let mut words = Vec::new();
        while let Some(token) = tokens.next_token().expect("well formed") {
            words.push(token.text);
        }
        assert_eq!(words, ["a", "b ; c", "d", "e", "k=\"x y\""]);
        for bad in ["(", ")", "\"a", "\"a\\\"", "a\\"] {
            let mut tokens = Tokens::new(bad);
            assert!(
                std::iter::from_fn(|| tokens.next_token().transpose()).any(|token| token.is_err()),
                "{bad}"
            );
        }
    }
}
