//! The head of a request, checked while it is read (RFC 9113 §8.2, §8.3).

/// How large a head may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Octets, as RFC 9113 §6.5.2 counts them.
    pub(crate) octets_max: usize,
    /// Fields besides those that begin with ":".
    pub(crate) fields_max: usize,
}

/// Octets that a field counts besides its text (RFC 9113 §6.5.2).
const FIELD_EXTRA_OCTETS: usize = 32;

/// Octets of text whose memory is kept for the next head: more than most have, so that a quiet
/// connection costs little.
const TEXT_KEPT_OCTETS: usize = 2048;

/// A head this many times as large as it may be is read no further, and ends the connection.
const ABSURD: usize = 4;

/// Where the name of a field comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The standard's table: it is right.
    Standard,
    /// The client.
    Client,
}

/// Where a name is in the text, and the value behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: usize,
    name_octets: usize,
    value_octets: usize,
}

impl Span {
    fn split(self, text: &[u8]) -> (&[u8], &[u8]) {
        let field = text.get(self.start..).unwrap_or(&[]);
        let (name, rest) = field.split_at_checked(self.name_octets).unwrap_or((&[], &[]));
        (name, rest.get(..self.value_octets).unwrap_or(&[]))
    }
}

/// The head of a request.
#[derive(Clone, Debug, Default)]
pub struct Head {
    text: Vec<u8>,
    fields: Vec<Span>,
    method: Option<Span>,
    scheme: Option<Span>,
    path: Option<Span>,
    authority: Option<Span>,
    content_length: Option<u64>,
    /// Where the field that is being read begins.
    start: usize,
    octets: usize,
    bounds: Option<Bounds>,
    is_malformed: bool,
    is_too_large: bool,
}

impl Head {
    /// Forgets everything but the memory.
    pub(crate) fn clear(&mut self, bounds: Bounds) {
        let Self { mut text, mut fields, .. } = std::mem::take(self);
        text.clear();
        text.shrink_to(TEXT_KEPT_OCTETS);
        fields.clear();
        *self = Self { text, fields, bounds: Some(bounds), ..Self::default() };
    }

    /// Returns whether its memory is worth keeping.
    pub(crate) const fn is_small(&self) -> bool {
        self.text.capacity() <= TEXT_KEPT_OCTETS
    }

    /// Returns how many octets it takes.
    pub(crate) const fn octets_held(&self) -> usize {
        self.text.len() + self.fields.len() * size_of::<Span>()
    }

    /// Begins a field, whose name is appended to [`Head::text`].
    pub(crate) fn begin(&mut self) {
        self.start = self.text.len();
    }

    /// Ends its name; returns how long it is.
    pub(crate) fn begun(&self) -> usize {
        self.text.len() - self.start
    }

    /// Returns where names and values are appended.
    pub(crate) const fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Returns name and value of the field that is being read.
    pub(crate) fn current(&self) -> &[u8] {
        self.text.get(self.start..).unwrap_or(&[])
    }

    /// Ends a field.
    pub(crate) fn end(&mut self, name_octets: usize, origin: Origin) {
        let span =
            Span { start: self.start, name_octets, value_octets: self.text.len() - self.start - name_octets };
        self.octets += name_octets + span.value_octets + FIELD_EXTRA_OCTETS;
        let bounds = self.bounds.unwrap_or(Bounds { octets_max: 0, fields_max: 0 });
        if self.is_too_large || self.octets > bounds.octets_max || self.fields.len() >= bounds.fields_max {
            // It is read on for the sake of the table, and not kept.
            self.is_too_large = true;
            self.text.truncate(self.start);
            return;
        }
        if !self.check(span, origin) {
            self.is_malformed = true;
        }
    }

    /// Takes a field; false if it makes the request malformed.
    fn check(&mut self, span: Span, origin: Origin) -> bool {
        let (name, value) = span.split(&self.text);
        if name.first() == Some(&b':') {
            let place = match name {
                b":method" => &mut self.method,
                b":scheme" => &mut self.scheme,
                b":path" => &mut self.path,
                b":authority" => &mut self.authority,
                _ => return false,
            };
            // §8.3: once each, and before all others.
            let is_right = place.is_none()
                && self.fields.is_empty()
                && value.iter().all(u8::is_ascii_graphic)
                && (!value.is_empty() || name == b":authority");
            *place = Some(span);
            return is_right;
        }
        let is_name = origin == Origin::Standard || is_name(name);
        let is_value = !value.iter().any(|octet| matches!(octet, 0 | b'\r' | b'\n'))
            && !matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
        let is_allowed = match name {
            // §8.2.2: of connections of HTTP/1.
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => false,
            b"te" => value == b"trailers",
            b"content-length" => {
                let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                let is_right =
                    length.is_some() && self.content_length.is_none_or(|known| Some(known) == length);
                self.content_length = length;
                is_right
            }
            _ => true,
        };
        self.fields.push(span);
        is_name && is_value && is_allowed
    }

    /// Returns whether the request breaks a rule of the standard's.
    pub(crate) const fn is_malformed(&self) -> bool {
        // §8.3.1: all but the authority are there, unless it is CONNECT, which nobody asks a DNS
        // server for.
        self.is_malformed || self.method.is_none() || self.scheme.is_none() || self.path.is_none()
    }

    /// Returns whether it may stand after a body (RFC 9113 §8.1).
    pub(crate) const fn is_trailer(&self) -> bool {
        !self.is_malformed
            && self.method.is_none()
            && self.scheme.is_none()
            && self.path.is_none()
            && self.authority.is_none()
    }

    /// Returns whether it is so much larger than allowed that nobody means it: a client may refer
    /// to long entries of the table with an octet each.
    pub(crate) fn is_absurd(&self) -> bool {
        self.bounds.is_some_and(|bounds| self.octets > ABSURD * bounds.octets_max)
    }

    /// Returns whether it was larger than allowed.
    pub(crate) const fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Returns how long the client says that the body is.
    pub(crate) const fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    fn value(&self, span: Option<Span>) -> Option<&[u8]> {
        span.map(|span| span.split(&self.text).1)
    }

    /// Returns the method.
    pub fn method(&self) -> Option<&[u8]> {
        self.value(self.method)
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> Option<&[u8]> {
        self.value(self.scheme)
    }

    /// Returns the path and what follows "?".
    pub fn path_and_query(&self) -> Option<&[u8]> {
        self.value(self.path)
    }

    /// Returns the server's name and port, as the client has them.
    pub fn authority(&self) -> Option<&[u8]> {
        self.value(self.authority)
    }

    /// Returns the fields, in the order in which they came; names are in lower case.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|span| span.split(&self.text))
    }
}

/// Returns whether these octets are a name (RFC 9110 §5.1), in lower case (RFC 9113 §8.2.1).
fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.iter().all(|octet| {
            matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\''
                | b'*' | b'+' | b'.' | b'^' | b'`' | b'|' | b'~')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether these fields, behind a good request's, are malformed.
    fn head(fields: &[(&str, &str)]) -> Head {
        let mut head = Head::default();
        head.clear(Bounds { octets_max: 1000, fields_max: 4 });
        for (name, value) in fields {
            head.begin();
            head.text().extend_from_slice(name.as_bytes());
            let octets = head.begun();
            head.text().extend_from_slice(value.as_bytes());
            head.end(octets, Origin::Client);
        }
        head
    }

    const GOOD: [(&str, &str); 3] = [(":method", "GET"), (":scheme", "https"), (":path", "/")];

    #[test]
    fn requests_that_break_the_rules_are_malformed() {
        assert!(!head(&GOOD).is_malformed());
        for missing in 0..GOOD.len() {
            let mut fields = GOOD.to_vec();
            fields.remove(missing);
            assert!(head(&fields).is_malformed(), "{fields:?}");
        }
        for more in [
            (":path", "/again"),
            (":status", "200"),
            (":authority", "a b"),
            ("Upper", "x"),
            ("", "x"),
            ("a b", "x"),
            ("x", "a\r\nb"),
            ("x", " a"),
            ("x", "a\t"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip"),
            ("content-length", "x"),
            ("content-length", "-1"),
        ] {
            assert!(head(&[&GOOD[..], &[more]].concat()).is_malformed(), "{more:?}");
        }
        for more in
            [(":authority", "a"), (":authority", ""), ("te", "trailers"), ("content-length", "7"), ("x", "")]
        {
            assert!(!head(&[&GOOD[..], &[more]].concat()).is_malformed(), "{more:?}");
        }
        let twice = [&GOOD[..], &[("content-length", "7"), ("content-length", "8")]].concat();
        assert!(head(&twice).is_malformed());
        let late = [("x", "y"), GOOD[0], GOOD[1], GOOD[2]];
        assert!(head(&late).is_malformed(), "pseudo-headers come first");
        assert!(head(&[("x", "y")]).is_trailer());
        assert!(!head(&[GOOD[2]]).is_trailer());
    }

    #[test]
    fn heads_are_bounded() {
        let many = [("a", "1"); 5];
        let long = "x".repeat(1000);
        assert!(!head(&many[..4]).is_too_large());
        assert!(head(&many).is_too_large());
        let head = head(&[("a", "1"), ("b", &long), ("c", "3")]);
        assert!(head.is_too_large());
        assert_eq!(head.fields().count(), 1, "nothing more is kept");
        assert_eq!(head.text.len(), 2);
        assert!(!head.is_absurd());
        let mut large = Head::default();
        large.clear(Bounds { octets_max: 100_000, fields_max: 4 });
        large.text().extend_from_slice(&[b'x'; 50_000]);
        assert!(!large.is_small());
        large.clear(Bounds { octets_max: 100_000, fields_max: 4 });
        assert!(large.is_small(), "a large one leaves nothing behind");
    }
}
