//! The notations for single values: durations, sizes, addresses, prefixes, names, tokens.
//!
//! Each reader takes text and returns the value, or what is wrong with which part of the text.
//! Never guesses.

#![forbid(unsafe_code)]

mod address;
mod duration;
mod name;
mod size;
mod token;
mod words;

use std::ops::Range;

use diagnostic::suggest::{nearest, one_of};
use diagnostic::{Problem, Span};
use wire::rtypes::describe;
use wire::{Rcode, Rtype};

pub use address::{PREFIX_WORDS, address, device, prefix, prefix_word, scoped, socket_address};
pub use duration::{duration, duration_text, ttl};
pub use name::name;
pub use size::{size, size_text};
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
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::time::Duration;

    use wire::{Prefix, Ttl};

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
        assert_eq!(device("eth0", 53), Some(("eth0", 53)));
        assert_eq!(device("br-lan.7@853", 53), Some(("br-lan.7", 853)));
        for text in
            ["", "0", "192.0.2.300", "eth0:1", "eth0@", "eth0@x", "eth0@99999", "/run/x", "sixteen-letters-"]
        {
            assert_eq!(device(text, 53), None, "{text}");
        }
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
