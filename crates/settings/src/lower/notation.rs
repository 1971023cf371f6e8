//! Notations that only settings have: upstream servers, ways to choose, prefixes by name.

use std::path::PathBuf;

use diagnostic::suggest::nearest;
use plan::upstreams::{Pick, Scheme};
use values::{Misread, PREFIX_WORDS, Read};
use wire::Prefix;

use super::stamp;
use crate::groups::{Host, RcodeTerm, Server};
use schema::{NUMBERED_PICKS, PLAIN_PICKS, Value};
use yaml::Node;

pub(super) fn path(text: &str) -> Read<PathBuf> {
    if text.is_empty() || text.contains('\0') {
        let message = format!("\"{}\" is not a path", text.escape_default());
        return Err(Misread { at: 0..text.len(), message, expected: None, hint: None });
    }
    Ok(PathBuf::from(text))
}

/// Octets of the path of a Unix socket (`sun_path` of Linux, without the octet at its end).
pub(super) const SOCKET_PATH_OCTETS_MAX: usize = 107;

/// Returns whether a text is written as the address of a file on a web server is.
pub(super) fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

/// Reads the address of a file on a web server.
pub(super) fn url(text: &str) -> Read<String> {
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_url(text) && is_plain {
        return Ok(text.to_owned());
    }
    Err(Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" is not a URL"),
        expected: Some("a URL such as https://www.example.org/zone".to_owned()),
        hint: None,
    })
}

/// Reads the rights of a file.
pub(super) fn mode(text: &str) -> Read<u32> {
    let is_octal = (3..=4).contains(&text.len()) && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| is_octal && *mode <= 0o777);
    mode.ok_or_else(|| {
        Misread::whole(text, format!("\"{text}\" is no file mode"))
            .expected("three octal digits, such as 660")
    })
}

/// Reads the name or number of a user or group.
pub(super) fn account(text: &str) -> Read<String> {
    let may_stand = |octet: u8| octet.is_ascii_graphic() && !b":/".contains(&octet);
    if !text.is_empty() && text.bytes().all(may_stand) {
        return Ok(text.to_owned());
    }
    let message = format!("\"{}\" is no name of a user or group", text.escape_default());
    Err(Misread::whole(text, message))
}

/// Octets of the name of an interface (`IFNAMSIZ`, less the octet at its end).
const INTERFACE_OCTETS_MAX: usize = 15;

pub(super) fn interface(text: &str) -> Read<String> {
    let is_one = (1..=INTERFACE_OCTETS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    if is_one {
        return Ok(text.to_owned());
    }
    Err(Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" is not the name of an interface"),
        expected: Some("a name such as eth0".to_owned()),
        hint: None,
    })
}

/// Reads a response code, or the word for all that are no answer.
pub(super) fn rcode_term(text: &str) -> Read<RcodeTerm> {
    if text == "unusable" {
        return Ok(RcodeTerm::Unusable);
    }
    values::rcode(text).map(RcodeTerm::One).map_err(|misread| {
        let expected = Some(Value::RcodeTerm.expected());
        match nearest(text, ["unusable"]) {
            Some(word) => Misread { expected, hint: Some(format!("did you mean \"{word}\"?")), ..misread },
            None => Misread { expected, ..misread },
        }
    })
}

/// Reads a prefix or one of the words for several.
pub(super) fn prefixes(text: &str) -> Read<Vec<Prefix>> {
    if PREFIX_WORDS.contains(&text) {
        return Ok(values::prefix_word(text));
    }
    values::prefix(text).map(|prefix| vec![prefix]).map_err(|misread| match nearest(text, PREFIX_WORDS) {
        Some(word) => Misread { hint: Some(format!("did you mean \"{word}\"?")), ..misread },
        None if text.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.contains(':') => {
            Misread { expected: Some(Value::Prefix.expected()), ..misread }
        }
        None => misread,
    })
}

/// Reads an upstream server.
pub fn server(text: &str) -> Read<Server> {
    let wrong = |at: std::ops::Range<usize>, message: String| Misread {
        at,
        message,
        expected: Some(Value::Server.expected()),
        hint: None,
    };
    if text == "system" {
        return Ok(Server::System);
    }
    if let Some(rest) = text.strip_prefix("sdns://") {
        let bad = |why: String| {
            wrong(0..text.len(), format!("\"{text}\" is not a DNS stamp that can be used: {why}"))
        };
        return stamped(rest).map_err(bad);
    }
    let (scheme, rest) = match text.split_once("://") {
        // Unbound's notation for a server that is asked over TLS: `9.9.9.9@853#dns.quad9.net`.
        None if text.contains('#') => (Scheme::Tls, text),
        None => (Scheme::Udp, text),
        Some((scheme, rest)) => match Scheme::parse(scheme) {
            Some(known) => (known, rest),
            None if scheme == "dnscrypt" => {
                let message = "a DNSCrypt server is written as its stamp".to_owned();
                return Err(Misread { hint: Some("sdns://…".to_owned()), ..wrong(0..text.len(), message) });
            }
            None => return Err(wrong(0..scheme.len() + 3, format!("unknown transport \"{scheme}://\""))),
        },
    };
    let start = text.len() - rest.len();
    let (rest, tls_name) = match rest.split_once('#') {
        Some((rest, name)) => {
            let at = start + rest.len();
            if !scheme.is_secured() {
                let message = format!("\"{}\" is for TLS: nothing is proved without", &text[at..]);
                let hint = Some(format!("\"tls://{}\"?", &text[start..]));
                return Err(Misread { hint, ..wrong(at..text.len(), message) });
            }
            let name = tls_name(name).map_err(|misread| Misread {
                at: at + 1 + misread.at.start..at + 1 + misread.at.end,
                ..misread
            })?;
            (rest, Some(name))
        }
        None => (rest, None),
    };
    let (rest, path) = match (scheme.path(), rest.find('/')) {
        (Some(_), Some(slash)) => {
            let (host, path) = rest.split_at(slash);
            // RFC 8484 §4.1.1 writes what GET would append as a template; we POST.
            let path = path.strip_suffix("{?dns}").unwrap_or(path);
            if let Some(at) = path.find(|c: char| !c.is_ascii_graphic() || "\"<>\\^`{|}#".contains(c)) {
                let at = start + slash + at;
                return Err(wrong(at..text.len(), format!("\"{path}\" is not the path of a URL")));
            }
            (host, path.to_owned())
        }
        (path, _) => (rest, path.unwrap_or_default().to_owned()),
    };
    let end = start + rest.len();
    let misread = match values::socket_address(rest, scheme.port()) {
        Ok(address) if address.port() == 0 => {
            return Err(wrong(start..end, format!("\"{rest}\" has port 0")));
        }
        Ok(address) => {
            return Ok(Server::One { scheme, host: Host::Address(address), tls_name, path, stamp: None });
        }
        Err(misread) => misread,
    };
    let (name, port) = match rest.rsplit_once([':', '@']) {
        Some((name, port)) => (name, Some(port)),
        None => (rest, None),
    };
    // What has no letter was meant to be an address; what has a colon left, too.
    let is_name = name.contains(char::is_alphabetic) && !name.contains([':', '/', '[', '%']);
    if !is_name {
        let at = start + misread.at.start..start + misread.at.end;
        return Err(Misread { at, expected: Some(Value::Server.expected()), ..misread });
    }
    if name == "system" || nearest(name, ["system"]).is_some() && !name.contains('.') {
        return Err(Misread {
            hint: Some("did you mean \"system\"?".to_owned()),
            ..wrong(0..text.len(), format!("\"{text}\" is not a server"))
        });
    }
    let port = match port {
        None => scheme.port(),
        Some(part) => part.parse::<u16>().ok().filter(|&port| port > 0).ok_or_else(|| Misread {
            expected: Some("1 to 65535".to_owned()),
            ..wrong(end - part.len()..end, format!("\"{part}\" is not a port"))
        })?,
    };
    match values::name(name) {
        Ok(name) => Ok(Server::One { scheme, host: Host::Name { name, port }, tls_name, path, stamp: None }),
        Err(misread) => Err(Misread { at: start + misread.at.start..start + misread.at.end, ..misread }),
    }
}

/// Reads the server that a stamp stands for; an error says why there is none. Where it is wrong,
/// the stamp as a whole is.
fn stamped(rest: &str) -> Result<Server, String> {
    let parsed = stamp::parse(rest)?;
    match server(&parsed.text).map_err(|misread| misread.message)? {
        Server::One { scheme, host, tls_name, path, .. } => {
            let scheme = if parsed.stamp.provider.is_some() { Scheme::Dnscrypt } else { scheme };
            Ok(Server::One { scheme, host, tls_name, path, stamp: Some(Box::new(parsed.stamp)) })
        }
        Server::System => Err("it names no server".to_owned()),
    }
}

/// Reads a relay of oblivious DoH: a server that is asked over HTTPS.
pub(super) fn relay(text: &str) -> Read<Server> {
    let wrong = |message: String| Misread {
        at: 0..text.len(),
        message,
        expected: Some("https:// and a host name, or the stamp of a relay".to_owned()),
        hint: None,
    };
    // RFC 9230 §4.1 writes what says whom to pass messages on to as a template.
    let plain = text.strip_suffix("{?targethost,targetpath}").unwrap_or(text);
    let found = match plain.strip_prefix("sdns://") {
        Some(rest) => {
            let bad = |why: String| wrong(format!("\"{text}\" is not a stamp that can be used: {why}"));
            let parsed = stamp::parse_relay(rest).map_err(bad)?;
            match server(&parsed.text).map_err(|misread| bad(misread.message))? {
                Server::One { scheme, host, tls_name, path, .. } => {
                    Server::One { scheme, host, tls_name, path, stamp: Some(Box::new(parsed.stamp)) }
                }
                Server::System => Server::System,
            }
        }
        None => server(plain)?,
    };
    match found {
        Server::One { scheme: Scheme::Https, .. } => Ok(found),
        _ => Err(wrong(format!("\"{text}\" is not a relay: messages are passed on over HTTPS"))),
    }
}

/// Reads what a certificate is for: a host name or an address.
pub(super) fn tls_name(text: &str) -> Read<String> {
    plan::tls::tls_name(text).map(|_| text.to_owned()).ok_or_else(|| Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" is not a name that a certificate can be for"),
        expected: Some("a host name such as dns.quad9.net, or an address".to_owned()),
        hint: None,
    })
}

/// Letters of the Base64 of a hash.
const PIN_DIGITS: usize = 44;

/// Reads a key that a server may have: `sha256/` and the Base64 of a hash, or the Base64 alone.
pub(super) fn pin(text: &str) -> Read<[u8; 32]> {
    let digits = text.strip_prefix("sha256/").unwrap_or(text);
    // curl writes two slashes, and a slash is a digit of Base64, too: the length tells.
    let digits = digits.strip_prefix('/').filter(|digits| digits.len() == PIN_DIGITS).unwrap_or(digits);
    plan::tls::pin(digits).ok_or_else(|| Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" is not the hash of a key"),
        expected: Some(Value::Pin.expected()),
        hint: Some(
            "openssl x509 -pubkey -noout -in certificate.pem | openssl pkey -pubin -outform der | \
             openssl dgst -sha256 -binary | base64"
                .to_owned(),
        ),
    })
}

/// The most servers of one race: each costs a packet for every query.
const RACE_MAX: u8 = 8;

/// Reads `ordered` or `race(2)`. With `prefer-positive`, an answer without records waits so long
/// for one with.
pub(super) fn pick(text: &str, negative_wait_ms: u32) -> Read<Pick> {
    let wrong = |message: String, hint: Option<String>| Misread {
        at: 0..text.len(),
        message,
        expected: Some(Value::Pick.expected()),
        hint,
    };
    let (word, argument) = match text.split_once('(') {
        Some((word, argument)) => (word.trim_end(), argument.strip_suffix(')').map(str::trim)),
        None => (text, None),
    };
    let width = |number: &str| {
        let count = number.trim().parse::<u8>().ok().filter(|number| (2..=RACE_MAX).contains(number));
        count.ok_or_else(|| {
            wrong(
                format!("\"{number}\" is not a number of servers to ask at once"),
                Some(format!("2 to {RACE_MAX}")),
            )
        })
    };
    if let Some((_, pick)) = PLAIN_PICKS.iter().find(|(known, _)| *known == word) {
        return match argument {
            None => Ok(*pick),
            Some(_) => Err(wrong(format!("\"{word}\" takes nothing in parentheses"), None)),
        };
    }
    match (word, argument) {
        ("race", Some(number)) => width(number).map(Pick::Race),
        ("prefer-positive", Some(number)) => {
            width(number).map(|width| Pick::PreferPositive { width, wait_ms: negative_wait_ms })
        }
        ("consensus", Some(numbers)) => {
            let Some((agreeing, of)) = numbers.split_once(" of ") else {
                return Err(wrong(
                    format!("\"{numbers}\" does not say who must agree"),
                    Some("\"2 of 3\"".to_owned()),
                ));
            };
            match (width(agreeing)?, width(of)?) {
                (agreeing, width) if agreeing <= width => Ok(Pick::Consensus { width, agreeing }),
                _ => Err(wrong("more must agree than are asked".to_owned(), None)),
            }
        }
        ("race" | "prefer-positive", None) => {
            Err(wrong(format!("\"{word}\" needs the number of servers"), Some(format!("\"{word}(2)\"?"))))
        }
        ("consensus", None) => {
            Err(wrong("a consensus needs numbers".to_owned(), Some("\"consensus(2 of 3)\"?".to_owned())))
        }
        _ => {
            let known = PLAIN_PICKS.iter().map(|(word, _)| *word);
            let hint = nearest(word, known.chain(NUMBERED_PICKS.iter().map(|(word, _)| *word)))
                .map(|word| format!("did you mean \"{word}\"?"));
            Err(wrong(format!("unknown way to choose \"{word}\""), hint))
        }
    }
}

/// Returns how many of the nodes after `node` belong to it, if it is an action that YAML split at
/// its commas.
pub(super) fn split_by_commas(node: &Node, after: &[Node]) -> Option<usize> {
    let depth = |node: &Node| match &node.value {
        yaml::Value::Scalar(scalar) => {
            Some(scalar.text.matches('(').count() as i64 - scalar.text.matches(')').count() as i64)
        }
        yaml::Value::Null | yaml::Value::Long(_) | yaml::Value::List(_) | yaml::Value::Map(_) => None,
    };
    let mut open = depth(node)?;
    if open <= 0 {
        return None;
    }
    for (count, next) in after.iter().enumerate() {
        open += depth(next)?;
        if open <= 0 {
            return Some(count + 1);
        }
    }
    None
}

/// Reads the path of a request.
pub(super) fn http_path(text: &str) -> Read<String> {
    const EXPECTED: &str = "a path such as /dns-query";
    let is_path = text.starts_with('/')
        && text.bytes().all(|octet| octet.is_ascii_graphic() && !matches!(octet, b'?' | b'#' | b'%' | b'"'));
    if is_path {
        Ok(text.to_owned())
    } else {
        Err(Misread {
            at: 0..text.len(),
            message: format!("\"{text}\" is not the path of a request"),
            expected: Some(EXPECTED.to_owned()),
            hint: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_server(text: &str, expect: Result<Server, &str>) {
        match (server(text), expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect, "{text}"),
            (Err(misread), Err(part)) => {
                assert!(misread.message.contains(part), "{text}: {}", misread.message);
            }
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn upstream_servers_are_read_in_each_notation() {
        let at = |scheme: Scheme, address: &str| {
            let host = Host::Address(address.parse().expect("an address"));
            Ok(Server::One { scheme, host, tls_name: None, path: String::new(), stamp: None })
        };
        check_server("system", Ok(Server::System));
        check_server("9.9.9.9", at(Scheme::Udp, "9.9.9.9:53"));
        check_server("9.9.9.9@5353", at(Scheme::Udp, "9.9.9.9:5353"));
        check_server("udp://9.9.9.9:5353", at(Scheme::Udp, "9.9.9.9:5353"));
        check_server("tcp://[2620:fe::fe]", at(Scheme::Tcp, "[2620:fe::fe]:53"));
        check_server("2620:fe::fe", at(Scheme::Udp, "[2620:fe::fe]:53"));
        check_server("tls://9.9.9.9", at(Scheme::Tls, "9.9.9.9:853"));
        check_server("dot://[2620:fe::fe]:8853", at(Scheme::Tls, "[2620:fe::fe]:8853"));
        let quad9 = |scheme: Scheme, port: u16| {
            let name = values::name("dns.quad9.net").expect("a name");
            Ok(Server::One {
                scheme,
                host: Host::Name { name, port },
                tls_name: None,
                path: String::new(),
                stamp: None,
            })
        };
        check_server("dns.quad9.net", quad9(Scheme::Udp, 53));
        check_server("tcp://dns.quad9.net:54", quad9(Scheme::Tcp, 54));
        check_server("tls://dns.quad9.net", quad9(Scheme::Tls, 853));
        check_server("quic://dns.quad9.net", quad9(Scheme::Quic, 853));
        let named = |address: &str| {
            let host = Host::Address(address.parse().expect("an address"));
            let tls_name = Some("dns.quad9.net".to_owned());
            Ok(Server::One { scheme: Scheme::Tls, host, tls_name, path: String::new(), stamp: None })
        };
        check_server("tls://9.9.9.9#dns.quad9.net", named("9.9.9.9:853"));
        check_server("9.9.9.9@8853#dns.quad9.net", named("9.9.9.9:8853"));
        let web = |port: u16, path: &str| {
            let name = values::name("dns.quad9.net").expect("a name");
            let host = Host::Name { name, port };
            Ok(Server::One {
                scheme: Scheme::Https,
                host,
                tls_name: None,
                path: path.to_owned(),
                stamp: None,
            })
        };
        check_server("https://dns.quad9.net", web(443, "/dns-query"));
        check_server("https://dns.quad9.net/", web(443, "/"));
        check_server("https://dns.quad9.net:8443/a/b{?dns}", web(8443, "/a/b"));
        check_server("https://dns.quad9.net/a b", Err("is not the path of a URL"));
        check_server("https://dns.quad9.net:0/", Err("is not a port"));
        check_server("h3://dns.quad9.net/a", {
            let host = Host::Name { name: values::name("dns.quad9.net").expect("a name"), port: 443 };
            Ok(Server::One {
                scheme: Scheme::Https3,
                host,
                tls_name: None,
                path: "/a".to_owned(),
                stamp: None,
            })
        });
        check_server("sdns://AAcAAAAAAAAABzguOC44Ljg", {
            let host = Host::Address("8.8.8.8:53".parse().expect("an address"));
            let (tls_name, path, stamp) = (None, String::new(), Some(Box::default()));
            Ok(Server::One { scheme: Scheme::Udp, host, tls_name, path, stamp })
        });
        check_server("sdns://AgcA", Err("is not a DNS stamp that can be used: it ends too early"));
        check_server("tcp://9.9.9.9#dns.quad9.net", Err("is for TLS"));
        check_server("tls://9.9.9.9#dns quad9", Err("is not a name that a certificate can be for"));
        check_server("ftp://9.9.9.9", Err("unknown transport"));
        check_server("9.9.9", Err("is not an address"));
        check_server("9.9.9.9/24", Err("is not an address"));
        check_server("9.9.9.9:0", Err("has port 0"));
        check_server("dns.quad9.net:0", Err("is not a port"));
        check_server("sytem", Err("is not a server"));
        check_server("", Err("is not an address"));
    }

    #[test]
    fn keys_are_read_as_others_write_them() {
        let text = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        let key = pin(text).expect("a key");
        assert_eq!(plan::tls::pin_text(&key), format!("sha256/{text}"));
        assert_eq!(pin(&format!("sha256/{text}")), Ok(key));
        assert_eq!(pin(&format!("sha256//{text}")), Ok(key));
        let slash = "/FwAvjdIPtLWCWHkb9WhGapwqcqPVlT6wlHT0TknyKk=";
        let key = pin(slash).expect("a slash is a digit");
        assert_eq!((pin(&format!("sha256/{slash}")), pin(&format!("sha256//{slash}"))), (Ok(key), Ok(key)));
        for wrong in ["", "sha256/", "47DEQpj8HBSa", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF!="] {
            assert!(pin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ways_to_choose_are_read() {
        assert_eq!(pick("race(2)", 0), Ok(Pick::Race(2)));
        assert_eq!(pick("ordered", 0), Ok(Pick::Ordered));
        assert_eq!(pick("prefer-positive(3)", 50), Ok(Pick::PreferPositive { width: 3, wait_ms: 50 }));
        assert_eq!(pick("consensus(2 of 3)", 0), Ok(Pick::Consensus { agreeing: 2, width: 3 }));
        for wrong in [
            "race",
            "race(1)",
            "race(9)",
            "race(2",
            "ordered(2)",
            "",
            "random",
            "prefer-positive",
            "consensus(2)",
            "consensus(3 of 2)",
            "consensus",
        ] {
            assert!(pick(wrong, 0).is_err(), "{wrong}");
        }
    }
}
