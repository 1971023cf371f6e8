//! JSON (RFC 8259) with the place of every value.

use std::borrow::Cow;

/// Values that may be inside of one another: zones need four levels, and a file made for it must
/// not end the stack.
const DEPTH_MAX: usize = 32;

/// A value and where it stands, in octets from the start of the text.
#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) value: Value<'t>,
}

/// A value.
#[derive(Debug)]
pub(super) enum Value<'t> {
    Null,
    Bool(bool),
    Number(&'t str),
    Text(Cow<'t, str>),
    List(Vec<Node<'t>>),
    Object(Vec<(Node<'t>, Node<'t>)>),
}

impl<'t> Node<'t> {
    /// Returns the value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node<'t>> {
        self.entries().iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    /// Returns the keys and values of an object.
    pub(super) fn entries(&self) -> &[(Node<'t>, Node<'t>)] {
        match &self.value {
            Value::Object(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the values of a list.
    pub(super) fn list(&self) -> Option<&[Node<'t>]> {
        match &self.value {
            Value::List(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// Returns a whole number.
    pub(super) fn number<T: std::str::FromStr>(&self) -> Option<T> {
        match self.value {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// What is no JSON, and what was expected in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

/// Reads a text that holds one value.
pub(super) fn parse(text: &str) -> Result<Node<'_>, Wrong> {
    let mut reader = Reader { text, at: 0 };
    let node = reader.value(0)?;
    reader.blanks();
    if reader.at < text.len() { Err(reader.wrong("the end of the file")) } else { Ok(node) }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    const fn wrong(&self, expected: &'static str) -> Wrong {
        Wrong { at: self.at, expected }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Takes this octet, if it is next.
    fn takes(&mut self, octet: u8) -> bool {
        let is_next = self.peek() == Some(octet);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<Node<'t>, Wrong> {
        self.blanks();
        let at = self.at;
        if depth > DEPTH_MAX {
            return Err(self.wrong("fewer values inside of one another"));
        }
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { at, len: self.at - at, value })
    }

    fn word(&mut self) -> Result<Value<'t>, Wrong> {
        let words = [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))];
        for (word, value) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("a value"))
    }

    fn number(&mut self) -> Result<Value<'t>, Wrong> {
        let start = self.at;
        self.takes(b'-');
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while matches!(reader.peek(), Some(b'0'..=b'9')) {
                reader.at += 1;
            }
            if reader.at == from { Err(reader.wrong("a digit")) } else { Ok(reader.at - from) }
        };
        let first = self.at;
        if digits(self)? > 1 && self.text.as_bytes()[first] == b'0' {
            self.at = first;
            return Err(self.wrong("a number without zeros in front"));
        }
        if self.takes(b'.') {
            digits(self)?;
        }
        if self.takes(b'e') || self.takes(b'E') {
            let _ = self.takes(b'+') || self.takes(b'-');
            digits(self)?;
        }
        Ok(Value::Number(&self.text[start..self.at]))
    }

    fn list(&mut self, depth: usize) -> Result<Value<'t>, Wrong> {
        self.at += 1;
        let mut nodes = Vec::new();
        self.blanks();
        if self.takes(b']') {
            return Ok(Value::List(nodes));
        }
        loop {
            nodes.push(self.value(depth + 1)?);
            self.blanks();
            if self.takes(b']') {
                return Ok(Value::List(nodes));
            }
            if !self.takes(b',') {
                return Err(self.wrong("a comma or a closing bracket"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value<'t>, Wrong> {
        self.at += 1;
        let mut entries = Vec::new();
        self.blanks();
        if self.takes(b'}') {
            return Ok(Value::Object(entries));
        }
        loop {
            self.blanks();
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a key in quotes"));
            }
            let text = Value::Text(self.string()?);
            let key = Node { at, len: self.at - at, value: text };
            self.blanks();
            if !self.takes(b':') {
                return Err(self.wrong("a colon"));
            }
            entries.push((key, self.value(depth + 1)?));
            self.blanks();
            if self.takes(b'}') {
                return Ok(Value::Object(entries));
            }
            if !self.takes(b',') {
                return Err(self.wrong("a comma or a closing brace"));
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'t, str>, Wrong> {
        self.at += 1;
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        // Most strings stand as they are.
        let plain =
            rest.iter().position(|octet| matches!(octet, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
        self.at += plain;
        if self.takes(b'"') {
            return Ok(Cow::Borrowed(&self.text[start..start + plain]));
        }
        let mut out = self.text[start..self.at].to_owned();
        loop {
            let from = self.at;
            match self.peek() {
                None => return Err(self.wrong("a closing quote")),
                Some(0..=0x1f) => return Err(self.wrong("an escape in place of a control character")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(out));
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => {
                    let rest = &self.text.as_bytes()[from..];
                    let plain = rest.iter().position(|octet| matches!(octet, b'"' | b'\\' | 0..=0x1f));
                    self.at += plain.unwrap_or(rest.len());
                    out.push_str(&self.text[from..self.at]);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Wrong> {
        const ESCAPE: &str = "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX";
        self.at += 1;
        let found = match self.peek() {
            Some(octet @ (b'"' | b'\\' | b'/')) => char::from(octet),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.wrong(ESCAPE)),
        };
        self.at += 1;
        Ok(found)
    }

    /// Reads what follows `\u`; characters beyond the first plane come in two halves.
    fn unicode(&mut self) -> Result<char, Wrong> {
        let first = self.four_digits()?;
        let number = match first {
            0xd800..0xdc00 => {
                if !(self.takes(b'\\') && self.takes(b'u')) {
                    return Err(self.wrong("the second half of a character"));
                }
                match self.four_digits()? {
                    second @ 0xdc00..0xe000 => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => return Err(self.wrong("the second half of a character")),
                }
            }
            other => other,
        };
        char::from_u32(number).ok_or_else(|| self.wrong("a character"))
    }

    fn four_digits(&mut self) -> Result<u32, Wrong> {
        let digits = self.text.get(self.at..self.at + 4);
        let number = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.wrong("four hexadecimal digits"))?;
        self.at += 4;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Result<String, Wrong> {
        parse(json).map(|node| node.text().expect("a string").to_owned())
    }

    #[test]
    fn strings_have_their_escapes() {
        assert_eq!(text(r#""a\"\\\/\n\u00e9\ud83d\ude00b""#).as_deref(), Ok("a\"\\/\n\u{e9}\u{1f600}b"));
        assert_eq!(text("\"\u{e9}\"").as_deref(), Ok("\u{e9}"));
        for (json, at, expected) in [
            (r#""\x""#, 2, "one of"),
            (r#""\ud83d""#, 7, "the second half"),
            (r#""\u12""#, 3, "four"),
            ("\"a\nb\"", 2, "an escape"),
            ("\"a", 2, "a closing quote"),
        ] {
            let wrong = text(json).expect_err("no string");
            assert!(wrong.at == at && wrong.expected.starts_with(expected), "{json}: {wrong:?}");
        }
    }

    #[test]
    fn what_is_no_json_is_told_where_it_stands() {
        for (json, at) in [
            ("", 0),
            ("[1, ]", 4),
            ("[1 2]", 3),
            ("{\"a\" 1}", 5),
            ("{a: 1}", 1),
            ("[01]", 1),
            ("[1.]", 3),
            ("[] x", 3),
            ("nul", 0),
        ] {
            assert_eq!(parse(json).map(|_| ()).map_err(|wrong| wrong.at), Err(at), "{json}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn values_know_their_places() {
        let node = parse(" {\"a\": [1, -2.5e3, null], \"b\": true}").expect("JSON");
        let list = node.get("a").and_then(Node::list).expect("a list");
        assert_eq!((list[1].at, list[1].len, list[0].number::<u16>()), (11, 6, Some(1)));
        assert!(matches!(list[1].value, Value::Number("-2.5e3")) && list[1].number::<i32>().is_none());
        assert!(matches!(node.get("b").map(|node| &node.value), Some(Value::Bool(true))));
        assert!(node.get("c").is_none());
    }
}
