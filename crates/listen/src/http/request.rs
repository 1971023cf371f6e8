//! What an HTTP request asks: the message in it, or why there is none (RFC 8484 §4.1).

use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{HeaderMap, Method, StatusCode, Uri};

use crate::ask::MESSAGE_OCTETS_MAX;

/// The media type of messages.
pub(super) const MESSAGE: &str = "application/dns-message";
/// The media type of answers in JSON.
pub(super) const JSON: &str = "application/dns-json";

/// Octets of the path at a target.
const TARGET_PATH_OCTETS_MAX: usize = 256;

/// What is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// This message.
    Message(Vec<u8>),
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
    Json(String),
}

/// Why nothing is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// What the client is told.
    pub(super) status: StatusCode,
    /// For a person.
    pub(super) text: &'static str,
}

const fn refusal(status: StatusCode, text: &'static str) -> Refusal {
    Refusal { status, text }
}

/// Reads a request whose address is `uri`.
pub(super) fn read(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    (paths, is_target): (&[String], bool),
) -> Result<Asked, Refusal> {
    if is_target && uri.path() == odoh::CONFIGS_PATH {
        return if *method == Method::GET {
            Ok(Asked::ObliviousConfigs)
        } else {
            Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "GET only\n"))
        };
    }
    if !paths.iter().any(|path| path == uri.path()) {
        return Err(refusal(StatusCode::NOT_FOUND, "nothing is served at this path\n"));
    }
    let query = uri.query().unwrap_or("");
    if *method == Method::POST {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
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
    if *method != Method::GET {
        return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "GET and POST only\n"));
    }
    if let Some(text) = parameter(query, "dns") {
        return match decode(text.as_bytes()) {
            Some(message) => Ok(Asked::Message(message)),
            None => Err(refusal(StatusCode::BAD_REQUEST, "\"dns\" is not base64url without padding\n")),
        };
    }
    if parameter(query, "name").is_some() {
        return Ok(Asked::Json(query.to_owned()));
    }
    let wants_message = headers.get(ACCEPT).is_some_and(|accept| accept == MESSAGE);
    let text =
        if wants_message { "the parameter \"dns\" is missing\n" } else { "\"dns\" or \"name\" is missing\n" };
    Err(refusal(StatusCode::BAD_REQUEST, text))
}

/// Reads whom an oblivious message is for (RFC 9230 §4.1).
fn relay(target: &str, path: Option<&str>) -> Result<Asked, Refusal> {
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

/// Reads base64url without padding (RFC 4648 §5); what follows "=" or is no digit is an error.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > MESSAGE_OCTETS_MAX.div_ceil(3) * 4 || text.len() % 4 == 1 {
        return None;
    }
    let mut octets = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.chunks(4) {
        let mut bits = 0_u32;
        for &digit in group {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'-' => 62,
                b'_' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        let bits = bits << (6 * (4 - group.len()));
        let [_, first, second, third] = bits.to_be_bytes();
        octets.extend([first, second, third].into_iter().take(group.len() - 1));
    }
    Some(octets)
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

    fn check(method: &str, address: &str, kind: &str, expect: &Result<Asked, u16>) {
        let mut headers = HeaderMap::new();
        if !kind.is_empty() {
            headers.insert(CONTENT_TYPE, kind.parse().expect("a header"));
        }
        let method = method.parse().expect("a method");
        let paths = ["/dns-query".to_owned()];
        let read = |is_target| {
            let address = address.parse().expect("an address");
            let found = read(&method, &address, &headers, (&paths, is_target));
            found.map_err(|refusal| refusal.status.as_u16())
        };
        assert_eq!(read(false), *expect, "{method} {address} {kind}");
        assert_eq!(read(true), *expect, "{method} {address} {kind}, and an oblivious target");
    }

    #[test]
    fn oblivious_requests_are_for_targets() {
        let read = |method: Method, address: &str, is_target| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, odoh::MEDIA_TYPE.parse().expect("a header"));
            let address = address.parse().expect("an address");
            read(&method, &address, &headers, (&["/dns-query".to_owned()], is_target))
                .map_err(|refusal| refusal.status.as_u16())
        };
        assert_eq!(read(Method::POST, "/dns-query", true), Ok(Asked::ObliviousBody));
        assert_eq!(read(Method::POST, "/dns-query", false), Err(415));
        assert_eq!(read(Method::GET, "/.well-known/odohconfigs", true), Ok(Asked::ObliviousConfigs));
        assert_eq!(read(Method::GET, "/.well-known/odohconfigs", false), Err(404));
        assert_eq!(read(Method::POST, "/.well-known/odohconfigs", true), Err(405));
        let relay = |path: &str| {
            let address = format!("/dns-query?targethost=odoh.example.net&targetpath={path}");
            read(Method::POST, &address, false)
        };
        let (target, path) = ("odoh.example.net".to_owned(), "/dns-query".to_owned());
        assert_eq!(relay("%2Fdns-query"), Ok(Asked::Relay { target: target.clone(), path: path.clone() }));
        assert_eq!(relay("/dns-query"), Ok(Asked::Relay { target, path }));
        for wrong in ["dns-query", "/a%20b", "/a%0d%0ab", "/%zz", "", &format!("/{}", "x".repeat(300))] {
            assert_eq!(relay(wrong), Err(400), "{wrong}");
        }
        assert_eq!(read(Method::POST, "/dns-query?targethost=odoh.example.net", true), Err(400));
    }

    #[test]
    fn requests_are_read_and_wrong_ones_told_why() {
        // RFC 8484 §4.1.1 has this example.
        let example = "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
        let message = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03com\0\0\x01\0\x01".to_vec();
        check("GET", example, "", &Ok(Asked::Message(message)));
        check("POST", "/dns-query", MESSAGE, &Ok(Asked::Body));
        check("POST", "/dns-query", "Application/DNS-Message; charset=x", &Ok(Asked::Body));
        check("POST", "/dns-query", "text/plain", &Err(415));
        check("POST", "/dns-query", "", &Err(415));
        check("GET", "/", "", &Err(404));
        check("GET", "/dns-query/", "", &Err(404));
        check("PUT", "/dns-query", MESSAGE, &Err(405));
        check("GET", "/dns-query", "", &Err(400));
        check("GET", "/dns-query?dns=AAAB=", "", &Err(400));
        check("GET", "/dns-query?dns=AA+B", "", &Err(400));
        check(
            "GET",
            "/dns-query?name=example.org&type=A",
            "",
            &Ok(Asked::Json("name=example.org&type=A".to_owned())),
        );
    }

    #[test]
    fn base64url_is_read_strictly() {
        for (text, expect) in [
            ("", Some(&b""[..])),
            ("Zg", Some(b"f")),
            ("Zm8", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("-_-_", Some(b"\xfb\xff\xbf")),
            ("Z", None),
            ("Zg==", None),
            ("Zm/v", None),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn encoded_octets_are_undone() {
        assert_eq!(unescape("a%2Eb+c").as_deref(), Some("a.b c"));
        assert_eq!(unescape("%4"), None);
        assert_eq!(unescape("%zz"), None);
        assert_eq!(unescape("%ff"), None);
    }
}
