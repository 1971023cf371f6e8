//! From text to data.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{ALGORITHMS, CERT_TYPES, PORTS, PROTOCOLS, SCHEMES, check, loc, push_name, svc};
use crate::name::Name;
use crate::numbers::{Rcode, Rtype};
use crate::rtypes::{self, Field};
use crate::text::{TextError, Token, Tokens, parse_period, read_base32_hex, read_base64, read_hex};

/// Octets of a string (RFC 1035 §3.3).
const STRING_OCTETS_MAX: usize = 255;

/// Octets that data may have.
const DATA_OCTETS_MAX: usize = 65_535;

/// Appends the wire form of data given in presentation form; `text` holds nothing else.
///
/// Without an origin, names must end in a dot. On error, `out` is as it was.
pub fn parse_text(
    rtype: Rtype,
    text: &str,
    origin: Option<Name<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), TextError> {
    parse_splitting(rtype, text, origin, out).map(drop)
}

/// Does the same, and says whether a string of text was longer than 255 octets and was split.
pub fn parse_splitting(
    rtype: Rtype,
    text: &str,
    origin: Option<Name<'_>>,
    out: &mut Vec<u8>,
) -> Result<bool, TextError> {
    let len = out.len();
    let mut tokens = Tokens::new(text);
    let done = parse_tokens(rtype, &mut tokens, origin, out).and_then(|()| tokens.end());
    done.map(|()| tokens.has_split()).inspect_err(|_| out.truncate(len))
}

/// Appends the wire form of the data that the next words describe; leaves `out` in pieces on error.
pub fn parse_tokens(
    rtype: Rtype,
    tokens: &mut Tokens<'_>,
    origin: Option<Name<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), TextError> {
    let start = out.len();
    let fields = rtypes::describe(rtype).and_then(|known| known.fields);
    let at = match (tokens.plain_word_at(), fields) {
        // What most records are: nothing needs to be looked at twice.
        (Some(at), Some(_)) => at,
        _ => {
            let mut ahead = tokens.clone();
            let first = ahead.next_token()?;
            let at = first.map_or(ahead.at(), |token| token.at);
            if first.is_some_and(|token| !token.is_quoted && token.text == "\\#") {
                *tokens = ahead;
                let octets = generic(tokens)?;
                check(rtype, &octets, 0..octets.len())
                    .map_err(|_| malformed(rtype, at, "octets that are data of this type"))?;
                out.extend_from_slice(&octets);
                return Ok(());
            }
            if fields.is_none() {
                return Err(match first {
                    Some(token) => token.expected("\\# and octets: this type has no other form"),
                    None => TextError { at, what: String::new(), expected: "\\# and octets" },
                });
            }
            at
        }
    };
    let fields = fields.unwrap_or(&[]);
    for &field in fields {
        match (field, rtype) {
            (Field::Strings, Rtype::TXT | Rtype::SPF) => read_text(tokens, out)?,
            _ => read(field, tokens, origin, out)?,
        }
    }
    if out.len() - start > DATA_OCTETS_MAX {
        return Err(malformed(rtype, at, "at most 65535 octets of data"));
    }
    // What one field cannot know: order and presence of parameters.
    let data = out.get(start..).unwrap_or(&[]);
    check(rtype, data, 0..data.len()).map_err(|_| malformed(rtype, at, "data that is complete and in order"))
}

fn malformed(rtype: Rtype, at: usize, expected: &'static str) -> TextError {
    TextError { at, what: rtype.to_string(), expected }
}

/// Reads what follows `\#` (RFC 3597 §5).
fn generic(tokens: &mut Tokens<'_>) -> Result<Vec<u8>, TextError> {
    let len_token = tokens.expect("the number of octets")?;
    let len: u16 = decimal(&len_token, "a number of octets up to 65535")?;
    let octets = rest_of(tokens, "hexadecimal", read_hex)?;
    if octets.len() == usize::from(len) {
        Ok(octets)
    } else {
        Err(len_token.expected("the number of octets that follow"))
    }
}

/// Reads the remaining words as one.
fn rest_of(
    tokens: &mut Tokens<'_>,
    expected: &'static str,
    decode: fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<Vec<u8>, TextError> {
    let mut text = String::new();
    let mut first = None;
    while let Some(token) = tokens.next_token()? {
        text.push_str(token.text);
        first.get_or_insert(token);
    }
    match (decode(text.as_bytes()), first) {
        (Some(octets), _) => Ok(octets),
        (None, Some(token)) => Err(token.expected(expected)),
        (None, None) => Ok(Vec::new()),
    }
}

/// Reads the remaining words as one that is not empty.
fn some_rest_of(
    tokens: &mut Tokens<'_>,
    expected: &'static str,
    decode: fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<Vec<u8>, TextError> {
    let octets = rest_of(tokens, expected, decode)?;
    if octets.is_empty() {
        return Err(TextError { at: tokens.at(), what: String::new(), expected });
    }
    Ok(octets)
}

/// Reads a number in decimal digits.
fn decimal<T: std::str::FromStr>(token: &Token<'_>, expected: &'static str) -> Result<T, TextError> {
    let is_decimal = token.text.bytes().all(|digit| digit.is_ascii_digit());
    token.text.parse().ok().filter(|_| is_decimal).ok_or_else(|| token.expected(expected))
}

fn number<T: std::str::FromStr>(tokens: &mut Tokens<'_>, expected: &'static str) -> Result<T, TextError> {
    let token = tokens.expect(expected)?;
    decimal(&token, expected)
}

/// Reads a number or one of the names.
fn number_or_name(
    token: &Token<'_>,
    names: &[(u16, &str)],
    expected: &'static str,
) -> Result<u16, TextError> {
    match names.iter().find(|(_, name)| name.eq_ignore_ascii_case(token.text)) {
        Some((number, _)) => Ok(*number),
        None => decimal(token, expected),
    }
}

fn octet_or_name(
    tokens: &mut Tokens<'_>,
    names: &[(u16, &str)],
    expected: &'static str,
) -> Result<u8, TextError> {
    let token = tokens.expect(expected)?;
    u8::try_from(number_or_name(&token, names, expected)?).map_err(|_| token.expected(expected))
}

fn address<T: std::str::FromStr>(token: &Token<'_>, expected: &'static str) -> Result<T, TextError> {
    token.text.parse().map_err(|_| token.expected(expected))
}

const NUMBER_8: &str = "a number from 0 to 255";
const NUMBER_16: &str = "a number from 0 to 65535";
const NUMBER_32: &str = "a number from 0 to 4294967295";
const STRING: &str = "a string of at most 255 octets";
const TYPE: &str = "a record type";
const IPV4: &str = "an IPv4 address";
const IPV6: &str = "an IPv6 address";
const NAME: &str = "a domain name";

// A table: an arm for each kind of field.
fn read(
    field: Field,
    tokens: &mut Tokens<'_>,
    origin: Option<Name<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), TextError> {
    match field {
        Field::U8 => out.push(number(tokens, NUMBER_8)?),
        Field::U16 => out.extend(number::<u16>(tokens, NUMBER_16)?.to_be_bytes()),
        Field::U32 => out.extend(number::<u32>(tokens, NUMBER_32)?.to_be_bytes()),
        Field::U48 => {
            let token = tokens.expect("a number from 0 to 281474976710655")?;
            let value: u64 = decimal(&token, "a number from 0 to 281474976710655")?;
            let [0, 0, octets @ ..] = value.to_be_bytes() else {
                return Err(token.expected("a number from 0 to 281474976710655"));
            };
            out.extend(octets);
        }
        Field::U64 => {
            out.extend(number::<u64>(tokens, "a number from 0 to 18446744073709551615")?.to_be_bytes());
        }
        Field::Period => {
            const PERIOD: &str = "seconds or a period such as 1h30m";
            let token = tokens.expect(PERIOD)?;
            out.extend(parse_period(token.text).ok_or_else(|| token.expected(PERIOD))?.to_be_bytes());
        }
        Field::Time => {
            const TIME: &str = "a time as YYYYMMDDHHmmSS or in seconds since 1970";
            let token = tokens.expect(TIME)?;
            let time = match token.text.len() {
                14 => time(token.text).ok_or_else(|| token.expected(TIME))?,
                _ => decimal(&token, TIME)?,
            };
            out.extend(time.to_be_bytes());
        }
        Field::TypeNumber => {
            let token = tokens.expect(TYPE)?;
            let rtype: Rtype = token.text.parse().map_err(|_| token.expected(TYPE))?;
            out.extend(rtype.0.to_be_bytes());
        }
        Field::Algorithm => out.push(octet_or_name(tokens, ALGORITHMS, "a DNSSEC algorithm")?),
        Field::Scheme => out.push(octet_or_name(tokens, SCHEMES, "a DSYNC scheme")?),
        Field::Protocol => out.push(octet_or_name(tokens, PROTOCOLS, "an IP protocol")?),
        Field::CertType => {
            let token = tokens.expect("a certificate type")?;
            out.extend(number_or_name(&token, CERT_TYPES, "a certificate type")?.to_be_bytes());
        }
        Field::ErrorCode => {
            let token = tokens.expect("a response code")?;
            let code = match token.text {
                "BADSIG" => Rcode::BADVERS,
                text => text.parse().map_err(|_| token.expected("a response code"))?,
            };
            out.extend(code.0.to_be_bytes());
        }
        Field::Ipv4 => out.extend(address::<Ipv4Addr>(&tokens.expect(IPV4)?, IPV4)?.octets()),
        Field::Ipv6 => out.extend(address::<Ipv6Addr>(&tokens.expect(IPV6)?, IPV6)?.octets()),
        Field::Name(_) => read_name(tokens, origin, out)?,
        Field::String => {
            let token = tokens.expect(STRING)?;
            push_string(&token, out)?;
        }
        Field::Tag => {
            let token = tokens.expect("a tag of letters and digits")?;
            push_string(&token, out)?;
        }
        Field::StringMaybe => {
            if let Some(token) = tokens.next_token()? {
                push_string(&token, out)?;
            }
        }
        Field::Strings => {
            let first = tokens.expect(STRING)?;
            push_string(&first, out)?;
            while let Some(token) = tokens.next_token()? {
                push_string(&token, out)?;
            }
        }
        Field::Text => out.extend(tokens.expect("a string")?.octets()?),
        Field::Base64 => out.extend(some_rest_of(tokens, "Base64", read_base64)?),
        Field::Base64Maybe => out.extend(rest_of(tokens, "Base64", read_base64)?),
        Field::Base64Dash => {
            let decode = |text: &[u8]| if text == b"-" { Some(Vec::new()) } else { read_base64(text) };
            out.extend(rest_of(tokens, "Base64, or - for none", decode)?);
        }
        Field::Base64Sized => {
            let len: u16 = number(tokens, NUMBER_16)?;
            out.extend(len.to_be_bytes());
            if len > 0 {
                let token = tokens.expect("Base64")?;
                let octets =
                    read_base64(token.text.as_bytes()).filter(|octets| octets.len() == usize::from(len));
                out.extend(
                    octets.ok_or_else(|| token.expected("Base64 of as many octets as stated before it"))?,
                );
            }
        }
        Field::Hex => out.extend(some_rest_of(tokens, "hexadecimal", read_hex)?),
        Field::Salt => {
            const SALT: &str = "a salt in hexadecimal, or - for none";
            let token = tokens.expect(SALT)?;
            let octets = if token.text == "-" { Some(Vec::new()) } else { read_hex(token.text.as_bytes()) };
            push_counted(&token, octets, SALT, out)?;
        }
        Field::Base32Hex => {
            let token = tokens.expect("a hash in Base32hex")?;
            push_counted(&token, read_base32_hex(token.text.as_bytes()), "a hash in Base32hex", out)?;
        }
        Field::Types => read_types(tokens, out)?,
        Field::TypesNxt => {
            const EARLY: &str = "a record type from 1 to 127";
            let map = read_bits(tokens, EARLY, |token| {
                token.text.parse().ok().map(|rtype: Rtype| rtype.0).filter(|number| (1..128).contains(number))
            })?;
            out.extend(map);
        }
        Field::Ports => {
            let map = read_bits(tokens, "a port", |token| number_or_name(token, PORTS, "a port").ok())?;
            out.extend(map);
        }
        Field::Nsap => {
            const NSAP: &str = "an NSAP address: 0x and hexadecimal";
            let token = tokens.expect(NSAP)?;
            let digits = token.text.strip_prefix("0x").or_else(|| token.text.strip_prefix("0X"));
            let octets = digits.and_then(|digits| read_hex(digits.replace('.', "").as_bytes()));
            out.extend(octets.filter(|octets| !octets.is_empty()).ok_or_else(|| token.expected(NSAP))?);
        }
        Field::Atma => {
            const ATMA: &str = "an ATM address: + and digits, or hexadecimal";
            let token = tokens.expect(ATMA)?;
            let plain = token.text.replace('.', "");
            let octets = match plain.strip_prefix('+') {
                Some(digits) => Some([&[1], digits.as_bytes()].concat()),
                None => read_hex(plain.as_bytes()).map(|octets| [&[0], octets.as_slice()].concat()),
            };
            out.extend(octets.ok_or_else(|| token.expected(ATMA))?);
        }
        Field::Loc => out.extend(loc::read(tokens)?),
        Field::Prefixes => {
            while let Some(token) = tokens.next_token()? {
                let prefix = read_prefix(token.text);
                out.extend(prefix.ok_or_else(|| token.expected("a prefix such as 1:192.0.2.0/24"))?);
            }
        }
        Field::SvcParams => svc::read(tokens, out)?,
        Field::Groups64 => {
            const GROUPS: &str = "four groups of up to four hexadecimal digits";
            let token = tokens.expect(GROUPS)?;
            out.extend(read_groups(token.text).ok_or_else(|| token.expected(GROUPS))?);
        }
        Field::Eui48 => read_eui(tokens, 6, "six octets as 00-00-5e-00-53-2a", out)?,
        Field::Eui64 => read_eui(tokens, 8, "eight octets as 00-00-5e-ef-10-00-00-2a", out)?,
        Field::A6 => {
            const PREFIX: &str = "a prefix length from 0 to 128";
            let token = tokens.expect(PREFIX)?;
            let prefix: u8 = decimal(&token, PREFIX)?;
            if prefix > 128 {
                return Err(token.expected(PREFIX));
            }
            out.push(prefix);
            let skipped = usize::from(prefix) / 8;
            let suffix = address::<Ipv6Addr>(&tokens.expect(IPV6)?, IPV6)?.octets();
            out.extend_from_slice(suffix.get(skipped..).unwrap_or(&[]));
            if prefix > 0 {
                read_name(tokens, origin, out)?;
            }
        }
        Field::Ipseckey => {
            let kind = number(tokens, "a gateway type from 0 to 3")?;
            let algorithm = number(tokens, NUMBER_8)?;
            out.extend([kind, algorithm]);
            read_gateway(kind, tokens, origin, out)?;
            out.extend(rest_of(tokens, "Base64", read_base64)?);
        }
        Field::Relay => {
            const DISCOVERY: &str = "0 or 1 (whether discovery is optional)";
            let token = tokens.expect(DISCOVERY)?;
            let discovery: u8 = decimal(&token, DISCOVERY)?;
            let token_kind = tokens.expect("a relay type from 0 to 3")?;
            let kind: u8 = decimal(&token_kind, "a relay type from 0 to 3")?;
            if discovery > 1 {
                return Err(token.expected(DISCOVERY));
            }
            if kind > 3 {
                return Err(token_kind.expected("a relay type from 0 to 3"));
            }
            out.push((discovery << 7) | kind);
            read_gateway(kind, tokens, origin, out)?;
        }
        Field::Hip => {
            let algorithm: u8 = octet_or_name(tokens, &[], NUMBER_8)?;
            let tag_token = tokens.expect("a host identity tag in hexadecimal")?;
            let tag = read_hex(tag_token.text.as_bytes());
            let tag = tag.filter(|tag| (1..256).contains(&tag.len()));
            let tag = tag.ok_or_else(|| tag_token.expected("a host identity tag in hexadecimal"))?;
            let key_token = tokens.expect("a key in Base64")?;
            let key = read_base64(key_token.text.as_bytes()).filter(|key| (1..65_536).contains(&key.len()));
            let key = key.ok_or_else(|| key_token.expected("a key in Base64"))?;
            out.extend([tag.len() as u8, algorithm]);
            out.extend((key.len() as u16).to_be_bytes());
            out.extend(tag);
            out.extend(key);
            while let Some(token) = tokens.next_token()? {
                push_name(out, tokens.name(&token, origin)?.as_name());
            }
        }
    }
    Ok(())
}

fn read_name(tokens: &mut Tokens<'_>, origin: Option<Name<'_>>, out: &mut Vec<u8>) -> Result<(), TextError> {
    let token = tokens.expect(NAME)?;
    push_name(out, tokens.name(&token, origin)?.as_name());
    Ok(())
}

fn read_gateway(
    kind: u8,
    tokens: &mut Tokens<'_>,
    origin: Option<Name<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), TextError> {
    match kind {
        0 => {
            let token = tokens.expect("a dot: no gateway")?;
            if token.text == "." { Ok(()) } else { Err(token.expected("a dot: no gateway")) }
        }
        1 => read(Field::Ipv4, tokens, origin, out),
        2 => read(Field::Ipv6, tokens, origin, out),
        3 => read_name(tokens, origin, out),
        _ => {
            Err(TextError { at: tokens.at(), what: kind.to_string(), expected: "a gateway type from 0 to 3" })
        }
    }
}

/// Appends a character-string with its length. Reads strings that are read as one text wherever
/// they are used (RFC 7208 §3.3, RFC 6376 §3.6.2.2): one that is too long becomes several.
fn read_text(tokens: &mut Tokens<'_>, out: &mut Vec<u8>) -> Result<(), TextError> {
    let mut next = Some(tokens.expect(STRING)?);
    while let Some(token) = next {
        let octets = token.octets()?;
        if octets.len() > STRING_OCTETS_MAX {
            tokens.note_split();
        }
        if octets.is_empty() {
            out.push(0);
        }
        for part in octets.chunks(STRING_OCTETS_MAX) {
            out.push(part.len() as u8);
            out.extend_from_slice(part);
        }
        next = tokens.next_token()?;
    }
    Ok(())
}

fn push_string(token: &Token<'_>, out: &mut Vec<u8>) -> Result<(), TextError> {
    push_counted(token, Some(token.octets()?), STRING, out)
}

fn push_counted(
    token: &Token<'_>,
    octets: Option<Vec<u8>>,
    expected: &'static str,
    out: &mut Vec<u8>,
) -> Result<(), TextError> {
    let octets = octets.filter(|octets| octets.len() < 256).ok_or_else(|| token.expected(expected))?;
    out.push(octets.len() as u8);
    out.extend(octets);
    Ok(())
}

/// Reads the remaining words as bits of a map without trailing zeros.
fn read_bits(
    tokens: &mut Tokens<'_>,
    expected: &'static str,
    bit: impl Fn(&Token<'_>) -> Option<u16>,
) -> Result<Vec<u8>, TextError> {
    let mut map: Vec<u8> = Vec::new();
    while let Some(token) = tokens.next_token()? {
        let bit = usize::from(bit(&token).ok_or_else(|| token.expected(expected))?);
        if map.len() <= bit / 8 {
            map.resize(bit / 8 + 1, 0);
        }
        map[bit / 8] |= 0x80 >> (bit % 8);
    }
    Ok(map)
}

/// Reads the remaining words as a type bitmap in windows.
fn read_types(tokens: &mut Tokens<'_>, out: &mut Vec<u8>) -> Result<(), TextError> {
    let map = read_bits(tokens, TYPE, |token| token.text.parse().ok().map(|rtype: Rtype| rtype.0))?;
    for (window, map) in map.chunks(32).enumerate() {
        let len = map.iter().rposition(|&octet| octet != 0).map_or(0, |last| last + 1);
        if len > 0 {
            out.extend([window as u8, len as u8]);
            out.extend_from_slice(&map[..len]);
        }
    }
    Ok(())
}

/// Reads `[!]family:address/prefix` (RFC 3123 §5).
fn read_prefix(text: &str) -> Option<Vec<u8>> {
    let (negation, text) = match text.strip_prefix('!') {
        Some(text) => (0x80, text),
        None => (0, text),
    };
    let (family, text) = text.split_once(':')?;
    let (address, prefix) = text.split_once('/')?;
    let prefix: u8 = prefix.parse().ok()?;
    let (address, prefix_max) = match family {
        "1" => (address.parse::<Ipv4Addr>().ok()?.octets().to_vec(), 32),
        "2" => (address.parse::<Ipv6Addr>().ok()?.octets().to_vec(), 128),
        _ => return None,
    };
    let len = address.iter().rposition(|&octet| octet != 0).map_or(0, |last| last + 1);
    let head = [0, family.parse().ok()?, prefix, negation | len as u8];
    (prefix <= prefix_max).then(|| [&head, address.get(..len).unwrap_or(&[])].concat())
}

fn read_groups(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(8);
    for group in text.split(':') {
        let is_hex = (1..=4).contains(&group.len()) && group.bytes().all(|digit| digit.is_ascii_hexdigit());
        octets.extend(u16::from_str_radix(group, 16).ok().filter(|_| is_hex)?.to_be_bytes());
    }
    (octets.len() == 8).then_some(octets)
}

fn read_eui(
    tokens: &mut Tokens<'_>,
    len: usize,
    expected: &'static str,
    out: &mut Vec<u8>,
) -> Result<(), TextError> {
    let token = tokens.expect(expected)?;
    let pairs: Option<Vec<Vec<u8>>> = token.text.split('-').map(|pair| read_hex(pair.as_bytes())).collect();
    let pairs = pairs.filter(|pairs| pairs.len() == len && pairs.iter().all(|pair| pair.len() == 1));
    out.extend(pairs.ok_or_else(|| token.expected(expected))?.concat());
    Ok(())
}

/// Reads `YYYYMMDDHHmmSS` as seconds since 1970 modulo 2^32; the time must exist.
fn time(text: &str) -> Option<u32> {
    let part = |range| {
        let digits: &str = text.get(range)?;
        digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten()
    };
    let (year, month, day) = (part(0..4)?, part(4..6)?, part(6..8)?);
    let (hour, minute, second) = (part(8..10)?, part(10..12)?, part(12..14)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = crate::calendar::existing_day(year, month, day)?;
    let seconds = u64::from(days) * 86_400 + u64::from(hour * 3600 + minute * 60 + second);
    Some(seconds as u32)
}
