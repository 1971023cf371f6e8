//! What an HTTP request asks: the message in it, or why there is none (RFC 8484 §4.1).

use hyper::StatusCode;
use hyper::http::request::Parts;

use wire::MESSAGE_OCTETS_MAX;
use wire::text::read_base64url;

/// The media type of messages.
pub(super) const MESSAGE: &str = "application/dns-message";
/// The methods that are understood.
pub(super) const METHODS: &str = "GET, HEAD, POST, OPTIONS";
/// The media type of answers in JSON.
pub(super) const JSON: &str = "application/dns-json";

/// Where authorities that are asked for certificates look for files (RFC 8555 §8.3).
const CHALLENGES: &str = "/.well-known/acme-challenge/";

/// Octets of the path at a target.
const TARGET_PATH_OCTETS_MAX: usize = 256;

/// The head of a request, whichever version of HTTP it came by.
pub(super) trait Head {
    /// Returns the method.
    fn method(&self) -> &str;

    /// Returns the path at the server.
    fn path(&self) -> &str;

    /// Returns what follows "?"; empty if nothing does.
    fn query(&self) -> &str;

    /// Shows the values of a field, whose name is in lower case, until one is enough.
    fn find<'h, T>(&'h self, name: &str, value: impl FnMut(&'h [u8]) -> Option<T>) -> Option<T>;

    /// Returns the first value of a field.
    fn field(&self, name: &str) -> Option<&[u8]> {
        self.find(name, Some)
    }
}

impl Head for Parts {
    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn path(&self) -> &str {
        self.uri.path()
    }

    fn query(&self) -> &str {
        self.uri.query().unwrap_or("")
    }

    fn find<'h, T>(&'h self, name: &str, mut value: impl FnMut(&'h [u8]) -> Option<T>) -> Option<T> {
        self.headers.get_all(name).iter().find_map(|found| value(found.as_bytes()))
    }
}

impl Head for http2::Head {
    fn method(&self) -> &str {
        text(Self::method(self))
    }

    fn path(&self) -> &str {
        let all = text(self.path_and_query());
        all.split_once('?').map_or(all, |(path, _)| path)
    }

    fn query(&self) -> &str {
        text(self.path_and_query()).split_once('?').map_or("", |(_, query)| query)
    }

    fn find<'h, T>(&'h self, name: &str, mut value: impl FnMut(&'h [u8]) -> Option<T>) -> Option<T> {
        let mut found = self.fields().filter(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
        found.find_map(|(_, octets)| value(octets))
    }
}

/// Returns a text of ASCII characters, as which it was checked.
fn text(octets: Option<&[u8]>) -> &str {
    octets.and_then(|octets| str::from_utf8(octets).ok()).unwrap_or("")
}

/// What is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked<'h> {
    /// The message that this is base64url of.
    Message(&'h str),
    /// The message in the body.
    Body,
    /// The oblivious message in the body (RFC 9230).
    ObliviousBody,
    /// The keys of the oblivious target.
    ObliviousConfigs,
    /// That the oblivious message in the body is carried to another target.
    Relay {
        /// The target.
        target: String,
        /// The path there.
        path: String,
    },
    /// A name, in the form of the JSON interface; the query part of the address.
    Json(&'h str),
    /// What GET would get, without the body (RFC 9110 §9.3.2): see [`read_get`].
    Head,
    /// What may be asked (RFC 9110 §9.3.7), which browsers want to know before scripts of other
    /// sites ask.
    Options,
}

/// Why nothing is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The status and text for the client.
    pub(super) status: StatusCode,
    /// For a person.
    pub(super) text: &'static str,
}

const fn refusal(status: StatusCode, text: &'static str) -> Refusal {
    Refusal { status, text }
}

/// Returns the name of the file that an authority may be looking for.
pub(super) fn challenge(head: &impl Head) -> Option<&str> {
    let token = head.path().strip_prefix(CHALLENGES)?;
    matches!(head.method(), "GET" | "HEAD").then_some(token)
}

/// Reads the head of a request.
pub(super) fn read<'h>(
    head: &'h impl Head,
    (paths, is_target): (&[String], bool),
) -> Result<Asked<'h>, Refusal> {
    let (method, path, query) = (head.method(), head.path(), head.query());
    if is_target && path == odoh::CONFIGS_PATH {
        return match method {
            "GET" | "HEAD" => Ok(Asked::ObliviousConfigs),
            _ => Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "GET only\n")),
        };
    }
    if !paths.iter().any(|known| known == path) {
        return Err(refusal(StatusCode::NOT_FOUND, "nothing is served at this path\n"));
    }
    if method == "POST" {
        let kind = head.field("content-type").and_then(|kind| str::from_utf8(kind).ok()).unwrap_or("");
        let kind = kind.split(';').next().unwrap_or("").trim();
        return if kind.eq_ignore_ascii_case(MESSAGE) {
            Ok(Asked::Body)
        } else if kind.eq_ignore_ascii_case(odoh::MEDIA_TYPE)
            && let Some(target) = parameter(query, "targethost")
        {
            relay(target, parameter(query, "targetpath"))
        } else if is_target && kind.eq_ignore_ascii_case(odoh::MEDIA_TYPE) {
            Ok(Asked::ObliviousBody)
        } else {
            Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/dns-message\n"))
        };
    }
    match method {
        "GET" => read_get(head),
        "HEAD" => Ok(Asked::Head),
        "OPTIONS" => Ok(Asked::Options),
        _ => Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "GET and POST only\n")),
    }
}

/// Reads what a GET request asks, or what a HEAD request would if it were one.
pub(super) fn read_get(head: &impl Head) -> Result<Asked<'_>, Refusal> {
    let query = head.query();
    if let Some(text) = parameter(query, "dns") {
        return Ok(Asked::Message(text));
    }
    if parameter(query, "name").is_some() {
        return Ok(Asked::Json(query));
    }
    let wants_message = head.field("accept").is_some_and(|accept| accept == MESSAGE.as_bytes());
    let text =
        if wants_message { "the parameter \"dns\" is missing\n" } else { "\"dns\" or \"name\" is missing\n" };
    Err(refusal(StatusCode::BAD_REQUEST, text))
}

/// Reads whom an oblivious message is for (RFC 9230 §4.1).
fn relay(target: &str, path: Option<&str>) -> Result<Asked<'static>, Refusal> {
    let wrong = || refusal(StatusCode::BAD_REQUEST, "\"targethost\" and \"targetpath\" name no target\n");
    let target = unescape(target).ok_or_else(wrong)?;
    let path = path.and_then(unescape).ok_or_else(wrong)?;
    let is_path = path.starts_with('/')
        && path.len() <= TARGET_PATH_OCTETS_MAX
        && path.bytes().all(|octet| octet.is_ascii_graphic() && octet != b'#');
    if is_path { Ok(Asked::Relay { target, path }) } else { Err(wrong()) }
}

/// Returns a parameter of the query part, as it is written.
pub(super) fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value))
}

/// Reads the message of a GET request into `query`, which is empty.
pub(super) fn decode(text: &str, query: &mut Vec<u8>) -> Result<(), Refusal> {
    let is_read =
        text.len() <= MESSAGE_OCTETS_MAX.div_ceil(3) * 4 && read_base64url(text.as_bytes(), query).is_some();
    let wrong = refusal(StatusCode::BAD_REQUEST, "\"dns\" is not base64url without padding\n");
    if is_read { Ok(()) } else { Err(wrong) }
}

/// Undoes the encoding of octets by "%" (RFC 3986 §2.1); `None` if it is not text then.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&octet, after)) = rest.split_first() {
        rest = after;
        if octet != b'%' {
            octets.push(if octet == b'+' { b' ' } else { octet });
            continue;
        }
        let (&[high, low], after) = rest.split_first_chunk::<2>()?;
        let digit = |octet: u8| char::from(octet).to_digit(16);
        octets.push(u8::try_from(digit(high)? << 4 | digit(low)?).ok()?);
        rest = after;
    }
    String::from_utf8(octets).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a request by HTTP/1 or HTTP/3.
    fn parts(method: &str, address: &str, kind: &str) -> Parts {
        let mut request = hyper::Request::builder().method(method).uri(address);
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        request.body(()).expect("a request").into_parts().0
    }

    /// Returns the same request by HTTP/2.
    fn head(method: &str, address: &str, kind: &str) -> http2::Head {
        let text = |name: &str, value: &str| {
            let mut octets = vec![0, name.len() as u8];
            octets.extend_from_slice(name.as_bytes());
            // A number of seven bits, and what is beyond them (RFC 7541 §5.1).
            match value.len().checked_sub(127) {
                None => octets.push(value.len() as u8),
                Some(rest) => octets.extend([127, rest as u8 & 0x7f | 0x80, (rest >> 7) as u8]),
            }
            octets.extend_from_slice(value.as_bytes());
            octets
        };
        let mut block = [text(":method", method), text(":scheme", "https"), text(":path", address)].concat();
        if !kind.is_empty() {
            block.extend(text("content-type", kind));
        }
        let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
            let [high, low] = (payload.len() as u16).to_be_bytes();
            [&[0, high, low, kind, flags, 0, 0, 0, stream][..], payload].concat()
        };
        let octets = [&http2::PREFACE[..], &frame(4, 0, 0, &[]), &frame(1, 5, 1, &block)].concat();
        let limits = super::super::limits::limits_h2(&plan::listeners::TcpPlan::default());
        let mut request = http2::Request::default();
        let event = http2::Connection::new(limits).next(&mut &octets[..], 0, &mut request);
        assert_eq!(event, http2::Event::Request);
        request.head
    }

    /// Reads a request in both forms.
    fn read_both<T>(
        (method, address, kind): (&str, &str, &str),
        is_target: bool,
        found: impl Fn(Result<Asked<'_>, Refusal>) -> T,
    ) -> [T; 2] {
        let what = (&["/dns-query".to_owned()][..], is_target);
        [found(read(&parts(method, address, kind), what)), found(read(&head(method, address, kind), what))]
    }

    fn check(method: &str, address: &str, kind: &str, expect: &Result<Asked<'_>, u16>) {
        for is_target in [false, true] {
            read_both((method, address, kind), is_target, |found| {
                let found = found.map_err(|refusal| refusal.status.as_u16());
                assert_eq!(found, *expect, "{method} {address} {kind}, an oblivious target: {is_target}");
            });
        }
    }

    #[test]
    fn oblivious_requests_are_for_targets() {
        let check = |method: &str, address: &str, is_target: bool, expect: Result<Asked<'_>, u16>| {
            read_both((method, address, odoh::MEDIA_TYPE), is_target, |found| {
                assert_eq!(found.map_err(|refusal| refusal.status.as_u16()), expect, "{method} {address}");
            });
        };
        check("POST", "/dns-query", true, Ok(Asked::ObliviousBody));
        check("POST", "/dns-query", false, Err(415));
        check("GET", "/.well-known/odohconfigs", true, Ok(Asked::ObliviousConfigs));
        check("GET", "/.well-known/odohconfigs", false, Err(404));
        check("POST", "/.well-known/odohconfigs", true, Err(405));
        let relay = |path: &str| format!("/dns-query?targethost=odoh.example.net&targetpath={path}");
        for path in ["%2Fdns-query", "/dns-query"] {
            let (target, path_there) = ("odoh.example.net".to_owned(), "/dns-query".to_owned());
            check("POST", &relay(path), false, Ok(Asked::Relay { target, path: path_there }));
        }
        for wrong in ["dns-query", "/a%20b", "/a%0d%0ab", "/%zz", "", &format!("/{}", "x".repeat(300))] {
            check("POST", &relay(wrong), false, Err(400));
        }
        check("POST", "/dns-query?targethost=odoh.example.net", true, Err(400));
    }

    #[test]
    fn requests_are_read_and_wrong_ones_told_why() {
        // RFC 8484 §4.1.1 has this example.
        let example = "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
        let message = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03com\0\0\x01\0\x01";
        let coded = "AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
        check("GET", example, "", &Ok(Asked::Message(coded)));
        let mut query = Vec::new();
        assert_eq!(decode(coded, &mut query), Ok(()));
        assert_eq!(query, message);
        for wrong in ["AAAB=", "AA+B", "A", &"A".repeat(100_000)] {
            query.clear();
            assert_eq!(decode(wrong, &mut query).map_err(|refusal| refusal.status.as_u16()), Err(400));
        }
        check("POST", "/dns-query", MESSAGE, &Ok(Asked::Body));
        check("POST", "/dns-query", "Application/DNS-Message; charset=x", &Ok(Asked::Body));
        check("POST", "/dns-query", "text/plain", &Err(415));
        check("POST", "/dns-query", "", &Err(415));
        check("GET", "/", "", &Err(404));
        check("GET", "/dns-query/", "", &Err(404));
        check("PUT", "/dns-query", MESSAGE, &Err(405));
        check("GET", "/dns-query", "", &Err(400));
        check("HEAD", example, "", &Ok(Asked::Head));
        check("OPTIONS", "/dns-query", "", &Ok(Asked::Options));
        check("OPTIONS", "/", "", &Err(404));
        check("GET", "/dns-query?name=example.org&type=A", "", &Ok(Asked::Json("name=example.org&type=A")));
    }

    #[test]
    fn encoded_octets_are_undone() {
        assert_eq!(unescape("a%2Eb+c").as_deref(), Some("a.b c"));
        assert_eq!(unescape("%4"), None);
        assert_eq!(unescape("%zz"), None);
        assert_eq!(unescape("%ff"), None);
    }
}
