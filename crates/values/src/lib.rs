//! The notations for single values: durations, sizes, addresses, prefixes, names, tokens.
//!
//! Each reader takes text and returns the value, or what is wrong with which part of the text.
//! Never guesses.

#![forbid(unsafe_code)]

mod token;
mod words;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::ops::Range;
use std::time::Duration;

use diagnostic::suggest::{nearest, one_of};
use diagnostic::{Problem, Span};
use wire::rtypes::describe;
use wire::{NameBuf, Prefix, Rcode, Rtype, Ttl};

pub use token::{TokenFact, TokenUri};

/// Why a text is not the value that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    /// The octets of the text that are wrong.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would have been right.
    pub expected: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Misread {
    /// Says that all of the text is wrong.
    pub fn whole(text: &str, message: impl Into<String>) -> Self {
        Self { at: 0..text.len(), message: message.into(), expected: None, hint: None }
    }

    /// Says that these octets of the text are wrong.
    pub fn part(at: Range<usize>, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), expected: None, hint: None }
    }

    /// Adds what would have been right.
    #[must_use]
    pub fn expected(self, expected: impl Into<String>) -> Self {
        Self { expected: Some(expected.into()), ..self }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Makes it a problem at the place of its part of the text.
    pub fn into_problem(self, span: Span) -> Problem {
        let mut problem = Problem::error(span, self.message);
        if let Some(expected) = self.expected {
            problem = problem.expected(expected);
        }
        if let Some(hint) = self.hint {
            problem = problem.hint(hint);
        }
        problem
    }
}

/// What a reader returns.
pub type Read<T> = Result<T, Misread>;

/// The units of time, longest first, in milliseconds.
const DURATION_UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Reads `10s`, `1m30s`, `500ms`, `1d`. A bare `0` is no time at all; other numbers need a unit.
pub fn duration(text: &str) -> Read<Duration> {
    const EXPECTED: &str = "a duration such as 500ms, 10s, 1m30s, 2h or 1d";
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let not_one = || Misread::whole(text, format!("\"{text}\" is not a duration")).expected(EXPECTED);
    let mut total: u64 = 0;
    let mut rest = text;
    if rest.is_empty() {
        return Err(not_one());
    }
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        if number.is_empty() {
            return Err(not_one());
        }
        if unit.is_empty() {
            return Err(Misread::whole(text, format!("\"{text}\" has no unit"))
                .expected(EXPECTED)
                .hint(format!("\"{text}s\" is that many seconds")));
        }
        let Some(&(_, scale)) = DURATION_UNITS.iter().find(|(word, _)| *word == unit) else {
            return Err(Misread::part(
                at + digits..at + digits + unit.len(),
                format!("\"{unit}\" is not a unit of time"),
            )
            .expected("w, d, h, m, s or ms"));
        };
        let sum =
            number.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).and_then(|n| total.checked_add(n));
        total = sum.ok_or_else(|| Misread::whole(text, format!("\"{text}\" is too long a time")))?;
        rest = after;
    }
    Ok(Duration::from_millis(total))
}

/// Writes a duration the way [`duration`] reads it.
pub fn duration_text(duration: Duration) -> String {
    let mut left = duration.as_millis() as u64;
    if left == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (unit, scale) in DURATION_UNITS {
        if unit != "w" && left >= scale {
            out.push_str(&format!("{}{unit}", left / scale));
            left %= scale;
        }
    }
    out
}

/// Returns a duration as a TTL: whole seconds, rounded up so that something does not become
/// nothing.
pub fn ttl(duration: Duration) -> Ttl {
    Ttl::new(duration.as_millis().div_ceil(1000).min(i32::MAX as u128) as u32)
}

/// The units of size: powers of 1024 and of 1000.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1000),
    ("B", 1),
];

/// Reads `64MiB`, `1GB`, `512kB`, `4096B`; returns octets.
pub fn size(text: &str) -> Read<u64> {
    const EXPECTED: &str = "a size such as 64MiB, 1GiB or 500MB";
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    if number.is_empty() {
        return Err(Misread::whole(text, format!("\"{text}\" is not a size")).expected(EXPECTED));
    }
    if unit.is_empty() && number != "0" {
        return Err(Misread::whole(text, format!("\"{text}\" has no unit"))
            .expected(EXPECTED)
            .hint(format!("\"{text}B\" is that many octets")));
    }
    let scale = match SIZE_UNITS.iter().find(|(word, _)| word.eq_ignore_ascii_case(unit)) {
        Some(&(_, scale)) => scale,
        None if unit.is_empty() => 1,
        None => {
            let misread = Misread::part(
                text.len() - unit.len()..text.len(),
                format!("\"{unit}\" is not a unit of size"),
            )
            .expected("TiB, GiB, MiB, KiB, TB, GB, MB, kB or B");
            return Err(match unit {
                "K" | "k" | "M" | "m" | "G" | "g" | "T" | "t" => {
                    misread.hint(format!("\"{number}{}iB\"?", unit.to_uppercase()))
                }
                _ => misread,
            });
        }
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(scale))
        .ok_or_else(|| Misread::whole(text, format!("\"{text}\" is too large")))
}

/// Writes a size the way [`size`] reads it.
pub fn size_text(octets: u64) -> String {
    let found = SIZE_UNITS.iter().find(|&&(_, scale)| octets >= scale && octets.is_multiple_of(scale));
    found.map_or_else(|| format!("{octets}B"), |(unit, scale)| format!("{}{unit}", octets / scale))
}

/// Reads `10%`.
pub fn percent(text: &str) -> Read<u8> {
    let number = text.strip_suffix('%').map(str::trim_end).and_then(|number| number.parse::<u8>().ok());
    number.filter(|&number| number <= 100).ok_or_else(|| {
        let misread = Misread::whole(text, format!("\"{text}\" is not a percentage")).expected("0% to 100%");
        if text.parse::<u8>().is_ok_and(|number| number <= 100) {
            misread.hint(format!("\"{text}%\"?"))
        } else {
            misread
        }
    })
}

/// Reads a number without sign; `_` may group the digits.
pub fn whole(text: &str) -> Read<u64> {
    let digits = text.replace('_', "");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Misread::whole(text, format!("\"{text}\" is not a whole number")));
    }
    digits.parse().map_err(|_| Misread::whole(text, format!("\"{text}\" is too large")))
}

/// Reads `true` or `false`, and nothing else.
pub fn boolean(text: &str) -> Read<bool> {
    let misread =
        || Misread::whole(text, format!("\"{text}\" is not true or false")).expected("true or false");
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(match other.to_ascii_lowercase().as_str() {
            "yes" | "on" | "y" | "1" | "true" | "enabled" => misread().hint("write \"true\""),
            "no" | "off" | "n" | "0" | "false" | "disabled" => misread().hint("write \"false\""),
            _ => misread(),
        }),
    }
}

/// Reads an address without a port.
pub fn address(text: &str) -> Read<IpAddr> {
    text.parse().map_err(|_| {
        let misread = Misread::whole(text, format!("\"{text}\" is not an IP address"))
            .expected("an address such as 192.0.2.1 or 2001:db8::1");
        if text.contains('/') {
            misread.hint("a single address is wanted here, not a prefix")
        } else {
            misread
        }
    })
}

/// Reads an address with or without a port: `9.9.9.9`, `9.9.9.9:53`, `::1`, `[::1]:53`,
/// `9.9.9.9@53`, `fe80::1%2`.
pub fn socket_address(text: &str, port: u16) -> Read<SocketAddr> {
    const EXPECTED: &str = "an address and port such as 192.0.2.1:53, 192.0.2.1 or [2001:db8::1]:53";
    let not_one = || Misread::whole(text, format!("\"{text}\" is not an address")).expected(EXPECTED);
    let bad_port = |part: &str, at: usize| {
        Misread::part(at..at + part.len(), format!("\"{part}\" is not a port")).expected("1 to 65535")
    };
    let read_port = |part: &str, at: usize| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u16>().ok().filter(|_| digits).ok_or_else(|| bad_port(part, at))
    };
    // Unbound's notation.
    if let Some((host, part)) = text.rsplit_once('@') {
        let address = scoped(host.trim_start_matches('[').trim_end_matches(']')).ok_or_else(not_one)?;
        return Ok(with_port(address, read_port(part, host.len() + 1)?));
    }
    if let Some(inside) = text.strip_prefix('[') {
        let Some((host, after)) = inside.split_once(']') else {
            return Err(not_one().hint("the \"[\" is not closed"));
        };
        let address = scoped(host).filter(SocketAddr::is_ipv6).ok_or_else(not_one)?;
        return match after.strip_prefix(':') {
            Some(part) => Ok(with_port(address, read_port(part, text.len() - part.len())?)),
            None if after.is_empty() => Ok(with_port(address, port)),
            None => Err(not_one()),
        };
    }
    if let Some(address) = scoped(text) {
        return Ok(with_port(address, port));
    }
    match text.rsplit_once(':') {
        Some((host, part)) => match host.parse::<Ipv4Addr>() {
            Ok(address) => Ok(SocketAddr::new(IpAddr::V4(address), read_port(part, host.len() + 1)?)),
            Err(_) if host == "*" || host.is_empty() => Err(not_one().hint(format!(
                "every IPv4 address is \"0.0.0.0:{part}\", every IPv6 address \"[::]:{part}\""
            ))),
            Err(_) => Err(not_one()),
        },
        None => Err(if text == "*" {
            not_one().hint("every IPv4 address is \"0.0.0.0\", every IPv6 address \"::\"")
        } else {
            not_one()
        }),
    }
}

/// Reads an address that may have a scope after `%`; the port is zero.
///
/// A scope must be the number of the interface: looking up its name takes the system, which this
/// crate does not ask.
pub fn scoped(text: &str) -> Option<SocketAddr> {
    match text.split_once('%') {
        Some((host, scope)) => {
            let address: Ipv6Addr = host.parse().ok()?;
            Some(SocketAddr::V6(SocketAddrV6::new(address, 0, 0, scope.parse().ok()?)))
        }
        None => Some(SocketAddr::new(text.parse().ok()?, 0)),
    }
}

fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// Words that stand for prefixes.
pub const PREFIX_WORDS: [&str; 4] = ["loopback", "private", "lan", "any"];

/// Returns the prefixes that one of [`PREFIX_WORDS`] stands for; none for other words.
pub fn prefix_word(word: &str) -> Vec<Prefix> {
    const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];
    // RFC 1918, RFC 6598, RFC 3927; RFC 4193, RFC 4291 §2.5.6.
    const PRIVATE: [&str; 7] = [
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "fc00::/7",
        "fe80::/10",
    ];
    let texts: Vec<&str> = match word {
        "loopback" => LOOPBACK.to_vec(),
        "private" => PRIVATE.to_vec(),
        "lan" => [LOOPBACK.as_slice(), PRIVATE.as_slice()].concat(),
        "any" => vec!["0.0.0.0/0", "::/0"],
        _ => Vec::new(),
    };
    texts.into_iter().filter_map(|text| prefix(text).ok()).collect()
}

/// Reads `10.0.0.0/8`, `2001:db8::/32` or a single address.
pub fn prefix(text: &str) -> Read<Prefix> {
    const EXPECTED: &str = "a prefix such as 192.0.2.0/24 or 2001:db8::/32";
    let not_one = || Misread::whole(text, format!("\"{text}\" is not an address prefix")).expected(EXPECTED);
    let (host, bits) = match text.split_once('/') {
        Some((host, bits)) => (host, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = host.parse().map_err(|_| not_one())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => width,
        Some(part) => {
            part.parse::<u8>().ok().filter(|&bits| bits <= width && !part.starts_with('+')).ok_or_else(
                || {
                    Misread::part(host.len() + 1..text.len(), format!("\"{part}\" is not a prefix length"))
                        .expected(format!("0 to {width}"))
                },
            )?
        }
    };
    let prefix = Prefix::new(address, bits);
    if prefix.address() != address {
        return Err(Misread::whole(text, format!("\"{text}\" has bits set after the first {bits}"))
            .hint(format!("the prefix is \"{prefix}\", the single address \"{address}\"")));
    }
    Ok(prefix)
}

/// Reads a domain name in presentation form; a final dot may be left out (RFC 1035 §5.1).
pub fn name(text: &str) -> Read<NameBuf> {
    let bad =
        |at: Range<usize>, why: &str| Misread::part(at, format!("\"{text}\" is not a domain name: {why}"));
    if text.is_empty() {
        return Err(bad(0..0, "it is empty"));
    }
    if text == "." {
        return Ok(NameBuf::root());
    }
    if !text.is_ascii() {
        // Places in the A-labels are none in what was written: all of it is marked.
        let ascii = wire::idn::to_ascii(text).map_err(|error| bad(0..text.len(), &error.to_string()))?;
        return name(&ascii).map_err(|misread| Misread { at: 0..text.len(), ..misread });
    }
    let mut name = NameBuf::root();
    let mut label: Vec<u8> = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => {
                let digits = bytes.get(at + 1..at + 4).filter(|digits| digits.iter().all(u8::is_ascii_digit));
                if let Some(digits) = digits {
                    let value =
                        digits.iter().fold(0, |value: u16, digit| value * 10 + u16::from(digit - b'0'));
                    label.push(
                        u8::try_from(value).map_err(|_| bad(at..at + 4, "an escape is at most \\255"))?,
                    );
                    at += 4;
                } else {
                    let &byte =
                        bytes.get(at + 1).ok_or_else(|| bad(at..at + 1, "it ends with a backslash"))?;
                    label.push(byte);
                    at += 2;
                }
                continue;
            }
            b'.' => {
                if label.is_empty() {
                    return Err(bad(start..at + 1, "a label is empty"));
                }
                push_label(&mut name, &label, text, start..at)?;
                label.clear();
                start = at + 1;
            }
            byte if byte.is_ascii_graphic() => label.push(byte),
            _ => return Err(bad(at..at + 1, "it has a space or control character")),
        }
        at += 1;
    }
    if !label.is_empty() {
        push_label(&mut name, &label, text, start..text.len())?;
    }
    Ok(name)
}

fn push_label(name: &mut NameBuf, label: &[u8], text: &str, at: Range<usize>) -> Read<()> {
    name.push_label(label).map_err(|_| {
        let why =
            if label.len() > 63 { "a label is at most 63 octets" } else { "a name is at most 255 octets" };
        Misread::part(at, format!("\"{text}\" is not a domain name: {why}"))
    })
}

/// Reads a name that the user gives to a thing of this configuration: letters, digits, `-`, `_` and
/// `.`.
pub fn identifier(text: &str) -> Read<&str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || text.len() > 64 || !text.chars().all(legal) {
        return Err(Misread::whole(text, format!("\"{text}\" cannot be a name"))
            .expected("at most 64 letters, digits, \"-\", \"_\" and \".\""));
    }
    Ok(text)
}

/// Reads a query type: `AAAA`, `any`, `TYPE65280` (RFC 3597 §5).
pub fn rtype(text: &str) -> Read<Rtype> {
    text.parse().map_err(|_| {
        let misread = Misread::whole(text, format!("\"{text}\" is not a record type"))
            .expected("a type such as A, AAAA, HTTPS or TYPE65280");
        let known = (0..=u16::MAX).filter_map(|number| describe(Rtype(number)));
        match nearest(text, known.map(|row| row.mnemonic)) {
            Some(word) => misread.hint(format!("did you mean \"{word}\"?")),
            None => misread,
        }
    })
}

/// The response codes that a policy or a fall-back rule may name.
pub const RCODES: [(&str, Rcode); 6] = [
    ("noerror", Rcode::NOERROR),
    ("formerr", Rcode::FORMERR),
    ("servfail", Rcode::SERVFAIL),
    ("nxdomain", Rcode::NXDOMAIN),
    ("notimp", Rcode::NOTIMP),
    ("refused", Rcode::REFUSED),
];

/// Reads a response code by name.
pub fn rcode(text: &str) -> Read<Rcode> {
    let found = RCODES.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found
        .map(|&(_, rcode)| rcode)
        .ok_or_else(|| unknown_word(text, "response code", &RCODES.map(|(word, _)| word)))
}

/// Says that `text` is none of `words`.
pub fn unknown_word(text: &str, what: &str, words: &[&str]) -> Misread {
    let misread = Misread::whole(text, format!("unknown {what} \"{text}\"")).expected(one_of(words));
    match nearest(text, words.iter().copied()) {
        Some(word) => misread.hint(format!("did you mean \"{word}\"?")),
        None => misread,
    }
}

/// Reads `text` as hexadecimal octets.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "the callers' lines stay short")]
    fn check<T: PartialEq + fmt::Debug>(found: Read<T>, expect: T) {
        assert_eq!(found.expect("the text is legal"), expect);
    }

    fn check_wrong<T: fmt::Debug>(found: Read<T>, part: &str) {
        let misread = found.expect_err("the text is wrong");
        let more = |part: Option<String>| part.unwrap_or_default();
        let all = format!("{} {} {}", misread.message, more(misread.expected), more(misread.hint));
        assert!(all.contains(part), "{all} should hold {part}");
    }

    #[test]
    fn durations_have_units() {
        check(duration("10s"), Duration::from_secs(10));
        check(duration("1m30s"), Duration::from_secs(90));
        check(duration("500ms"), Duration::from_millis(500));
        check(duration("1d"), Duration::from_secs(86_400));
        check(duration("0"), Duration::ZERO);
        check_wrong(duration("10"), "\"10s\" is that many seconds");
        check_wrong(duration("10x"), "\"x\" is not a unit of time");
        check_wrong(duration(""), "is not a duration");
        check_wrong(duration("s"), "is not a duration");
        check_wrong(duration("99999999999999999999d"), "too long");
        for text in ["0s", "1d", "1h30m", "1s500ms", "30s"] {
            assert_eq!(duration_text(duration(text).expect("legal")), text);
        }
    }

    #[test]
    fn sizes_have_units() {
        check(size("64MiB"), 64 << 20);
        check(size("1GB"), 1_000_000_000);
        check(size("1 gib"), 1 << 30);
        check_wrong(size("64"), "has no unit");
        check_wrong(size("64M"), "\"64MiB\"?");
        check_wrong(size("99999999TiB"), "too large");
        for text in ["64MiB", "1GB", "4097B", "0B"] {
            assert_eq!(size_text(size(text).expect("legal")), text);
        }
    }

    #[test]
    fn booleans_are_two_words() {
        check(boolean("true"), true);
        check_wrong(boolean("yes"), "write \"true\"");
        check_wrong(boolean("off"), "write \"false\"");
    }

    #[test]
    fn percentages_end_at_a_hundred() {
        check(percent("10%"), 10);
        check_wrong(percent("101%"), "0% to 100%");
        check_wrong(percent("10"), "10%");
    }

    #[test]
    fn addresses_are_read_in_each_common_notation() {
        let v4: SocketAddr = "9.9.9.9:53".parse().expect("legal");
        let v6: SocketAddr = "[::1]:5300".parse().expect("legal");
        check(socket_address("9.9.9.9", 53), v4);
        check(socket_address("9.9.9.9:53", 1), v4);
        check(socket_address("9.9.9.9@53", 1), v4);
        check(socket_address("[::1]:5300", 1), v6);
        check(socket_address("::1", 5300), v6);
        check(socket_address("[::1]", 5300), v6);
        check(socket_address("::1@5300", 1), v6);
        check(socket_address("fe80::1%3", 53), "[fe80::1%3]:53".parse().expect("legal"));
        check_wrong(socket_address("9.9.9.9:99999", 53), "\"99999\" is not a port");
        check_wrong(socket_address("9.9.9.9:+5", 53), "not a port");
        check_wrong(socket_address("*:53", 53), "0.0.0.0:53");
        check_wrong(socket_address("example.org", 53), "is not an address");
        check_wrong(socket_address("[::1", 53), "not closed");
    }

    #[test]
    fn prefixes_have_no_host_bits() {
        check(prefix("10.0.0.0/8"), Prefix::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8));
        check(prefix("::/0"), Prefix::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0));
        check_wrong(prefix("192.168.1.7/24"), "192.168.1.0/24");
        check_wrong(prefix("10.0.0.0/33"), "0 to 32");
        check_wrong(prefix("ten"), "is not an address prefix");
        let prefix = prefix("2001:db8::/32").expect("legal");
        assert!(prefix.contains("2001:db8:1::1".parse().expect("legal")));
        assert!(!prefix.contains("10.0.0.1".parse().expect("legal")));
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(
            name("www.example.org.").expect("legal").as_name().as_bytes(),
            b"\x03www\x07example\x03org\0"
        );
        assert_eq!(name("a\\.b.c").expect("legal").as_name().as_bytes(), b"\x03a.b\x01c\0");
        assert_eq!(name("\\065").expect("legal").as_name().as_bytes(), b"\x01A\0");
        assert!(name(".").expect("legal").as_name().is_root());
        check_wrong(name("a..b"), "a label is empty");
        check_wrong(name(&"a".repeat(64)), "at most 63");
        check_wrong(name(&"a.".repeat(128)), "at most 255");
        check_wrong(name("\u{fffd}.example"), "is not a label of an internationalized name");
        check_wrong(name("a b"), "space");
    }

    #[test]
    fn names_outside_ascii_become_a_labels() {
        check(name("bücher.example"), name("xn--bcher-kva.example").expect("legal"));
        check(name("_dmarc.Straße.example."), name("_dmarc.xn--strae-oqa.example").expect("legal"));
        let label = "ü".repeat(70);
        let misread = name(&label).expect_err("too long");
        assert_eq!(misread.at, 0..label.len());
    }

    #[test]
    fn hexadecimal_digits_are_read_in_pairs() {
        assert_eq!(hex("00fF"), Some(vec![0, 255]));
        assert_eq!(hex("0"), None);
        assert_eq!(hex("0g"), None);
    }

    #[test]
    fn times_become_whole_seconds() {
        assert_eq!(ttl(Duration::from_millis(1)), Ttl::new(1));
        assert_eq!(ttl(Duration::from_secs(60)), Ttl::new(60));
        assert_eq!(ttl(Duration::ZERO), Ttl::ZERO);
    }
}
