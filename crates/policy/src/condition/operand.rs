//! The values that conditions compare with.

use engine::matchers::identity::{Mac, parse_mac};
use engine::matchers::rate::Subject;
use engine::matchers::text::Regex;
use engine::{Security, Transport};
use lists::name_pattern;
use values::{Misread, PREFIX_WORDS, Read};
use wire::Rcode;

use super::{AddressTerm, MARKS, NameTerm};

fn misread(text: &str, message: impl Into<String>) -> Misread {
    Misread { at: 0..text.len(), message: message.into(), expected: None, hint: None }
}

fn expected(text: &str, message: impl Into<String>, expected: &str) -> Misread {
    Misread { expected: Some(expected.to_owned()), ..misread(text, message) }
}

/// Reads `suffix:example.org`, `exact:example.org`, `keyword:ads`, `regex:^ads`, or the name of a
/// set.
pub(super) fn name_term(text: &str) -> Read<NameTerm> {
    if text.contains(':') {
        return name_pattern(text).map(NameTerm::Pattern);
    }
    values::identifier(text).map(|name| NameTerm::Set(name.to_owned()))
}

/// Reads a prefix, one of [`PREFIX_WORDS`], or the name of a set.
pub(super) fn address_term(text: &str) -> Read<AddressTerm> {
    if PREFIX_WORDS.contains(&text) {
        return Ok(AddressTerm::Prefixes(values::prefix_word(text)));
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) || text.contains([':', '/']) {
        return values::prefix(text).map(|prefix| AddressTerm::Prefixes(vec![prefix]));
    }
    values::identifier(text).map(|name| AddressTerm::Set(name.to_owned()))
}

/// Reads the number of a mark.
pub fn mark(text: &str) -> Read<u8> {
    let number = values::whole(text)?;
    if number >= MARKS {
        return Err(Misread {
            at: 0..text.len(),
            message: format!("there is no mark {text}"),
            expected: Some(format!("0 to {}", MARKS - 1)),
            hint: None,
        });
    }
    Ok(number as u8)
}

/// Reads the name of something.
pub(super) fn label(text: &str) -> Read<String> {
    values::identifier(text).map(str::to_owned)
}

/// Checks a regular expression.
pub(super) fn regex(text: &str) -> Read<String> {
    match Regex::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => Err(misread(text, format!("\"{text}\" cannot be used as a regular expression: {why}"))),
    }
}

/// Reads a hardware address.
pub(super) fn mac(text: &str) -> Read<Mac> {
    parse_mac(text.as_bytes()).ok_or_else(|| {
        expected(
            text,
            format!("\"{text}\" is not a hardware address"),
            "six octets such as 00:00:5e:00:53:01",
        )
    })
}

/// Reads a transport.
pub(super) fn transport(text: &str) -> Read<Transport> {
    let found = Transport::ALL.into_iter().find(|transport| transport.word() == text);
    found.ok_or_else(|| values::unknown_word(text, "transport", &Transport::ALL.map(Transport::word)))
}

/// Reads a response code that an answer can have: also those that cannot be sent by `reject`.
pub(super) fn rcode(text: &str) -> Read<Rcode> {
    text.parse().or_else(|_| values::rcode(text))
}

/// Reads a security state (RFC 4035 §4.3), or that nobody has checked.
pub(super) fn security(text: &str) -> Read<Security> {
    const STATES: [(&str, Security); 5] = [
        ("secure", Security::Secure),
        ("insecure", Security::Insecure),
        ("bogus", Security::Bogus),
        ("indeterminate", Security::Indeterminate),
        ("unchecked", Security::Unchecked),
    ];
    let found = STATES.into_iter().find(|(word, _)| *word == text).map(|(_, state)| state);
    found.ok_or_else(|| values::unknown_word(text, "security state", &STATES.map(|(word, _)| word)))
}

/// Reads a number of 16 bits.
pub(super) fn number(text: &str) -> Read<u16> {
    let number = values::whole(text)?;
    u16::try_from(number).map_err(|_| expected(text, format!("\"{text}\" is too large"), "0 to 65535"))
}

/// Reads a number above zero.
pub(super) fn count(text: &str) -> Read<u32> {
    let number = values::whole(text)?;
    u32::try_from(number)
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| expected(text, format!("\"{text}\" is not a number of queries"), "1 to 4294967295"))
}

/// Reads `5%` or `0.01%` as a share of 2³²; all is 2³².
pub(super) fn share(text: &str) -> Read<u64> {
    const DECIMALS: usize = 6;
    let wrong =
        || expected(text, format!("\"{text}\" is not a percentage"), "0% to 100%, such as 5% or 0.01%");
    let number = text.strip_suffix('%').ok_or_else(wrong)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || whole.len() > 3 || fraction.len() > DECIMALS {
        return Err(wrong());
    }
    let digits: u64 = format!("{whole}{fraction:0<DECIMALS$}").parse().map_err(|_| wrong())?;
    let all = 100 * 10_u64.pow(DECIMALS as u32);
    if digits > all {
        return Err(wrong());
    }
    Ok(((u128::from(digits) << 32) / u128::from(all)) as u64)
}

/// Reads `100/s`, `5/m` or `1000/h`; returns the number and the milliseconds.
pub(super) fn frequency(text: &str) -> Read<(u32, u64)> {
    let wrong = || expected(text, format!("\"{text}\" is not a rate"), "a rate such as 100/s, 5/m or 1000/h");
    let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
    let period_ms = match unit {
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    Ok((count(number).map_err(|_| wrong())?, period_ms))
}

/// Adds one thing that a rate is counted by.
pub(super) fn subject(text: &str, mut subject: Subject) -> Read<Subject> {
    const EXPECTED: &str = "client, client/24, client/24/56, qname, qname/2, qtype, listener or all";
    let wrong = || expected(text, format!("\"{text}\" cannot be counted"), EXPECTED);
    let mut pieces = text.split('/');
    let word = pieces.next().unwrap_or("");
    let mut number = |min: u8, max: u8| match pieces.next() {
        None => Ok(None),
        Some(piece) => match piece.parse::<u8>() {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => Err(expected(
                text,
                format!("\"{piece}\" is out of range in \"{text}\""),
                &format!("{min} to {max}"),
            )),
        },
    };
    match word {
        "client" => {
            let v4 = number(0, 32)?.unwrap_or(32);
            let v6 = number(0, 128)?.unwrap_or(64);
            subject.client = Some((v4, v6));
        }
        "qname" => subject.qname = Some(number(1, 127)?.unwrap_or(0)),
        "qtype" => subject.qtype = true,
        "listener" => subject.listener = true,
        "all" => {}
        _ => return Err(wrong()),
    }
    if pieces.next().is_some() { Err(wrong()) } else { Ok(subject) }
}
