//! LOC (RFC 1876): where something is, as angles, altitude and precision.

use std::fmt::{self, Write};

use crate::text::{TextError, Token, Tokens};

/// The angle field of the equator and the prime meridian.
const EQUATOR: u32 = 1 << 31;
/// Thousandths of a second of arc in a degree.
const DEGREE: u32 = 3_600_000;
/// Centimetres from the bottom of the altitude field to the reference spheroid.
const SPHEROID: i64 = 10_000_000;

/// Checks that the octets have a text form that reads back as the same octets.
pub(super) fn check(octets: &[u8]) -> bool {
    let [0, size, horizontal, vertical, rest @ ..] = octets else { return false };
    let [a, b, c, d, e, f, g, h, _, _, _, _] = rest else { return false };
    let latitude = u32::from_be_bytes([*a, *b, *c, *d]);
    let longitude = u32::from_be_bytes([*e, *f, *g, *h]);
    [size, horizontal, vertical].into_iter().all(|&precision| is_precision(precision))
        && latitude.abs_diff(EQUATOR) <= 90 * DEGREE
        && longitude.abs_diff(EQUATOR) <= 180 * DEGREE
}

/// RFC 1876 §2: a digit and a power of ten; zero has one form only.
fn is_precision(octet: u8) -> bool {
    octet == 0 || ((0x10..=0x90).contains(&(octet & 0xf0)) && octet & 0xf <= 9)
}

pub(super) fn show(f: &mut impl Write, octets: [u8; 16]) -> fmt::Result {
    let [_, size, horizontal, vertical, a, b, c, d, e, g, h, i, j, k, l, m] = octets;
    angle(f, u32::from_be_bytes([a, b, c, d]), 'N', 'S')?;
    f.write_char(' ')?;
    angle(f, u32::from_be_bytes([e, g, h, i]), 'E', 'W')?;
    let altitude = i64::from(u32::from_be_bytes([j, k, l, m])) - SPHEROID;
    let sign = if altitude < 0 { "-" } else { "" };
    write!(f, " {sign}{}.{:02}m", altitude.abs() / 100, altitude.abs() % 100)?;
    for precision in [size, horizontal, vertical] {
        let centimetres = u64::from(precision >> 4) * 10_u64.pow(u32::from(precision & 0xf));
        write!(f, " {}.{:02}m", centimetres / 100, centimetres % 100)?;
    }
    Ok(())
}

fn angle(f: &mut impl Write, value: u32, positive: char, negative: char) -> fmt::Result {
    let sign = if value >= EQUATOR { positive } else { negative };
    let value = value.abs_diff(EQUATOR);
    let (degrees, minutes, seconds) = (value / DEGREE, value / 60_000 % 60, value % 60_000);
    write!(f, "{degrees} {minutes} {}.{:03} {sign}", seconds / 1000, seconds % 1000)
}

pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<[u8; 16], TextError> {
    const ALTITUDE: &str = "an altitude in metres from -100000 to 42849672.95";
    const PRECISION: &str = "a size in metres up to 90000000";
    let latitude = read_angle(tokens, ["N", "S"], 90, "a latitude such as 52 22 23.000 N")?;
    let longitude = read_angle(tokens, ["E", "W"], 180, "a longitude such as 4 53 32.000 E")?;
    let token = tokens.expect(ALTITUDE)?;
    let altitude = match token.text.strip_prefix('-') {
        Some(depth) => fixed(metres(depth), 2).map(|depth| SPHEROID - depth),
        None => fixed(metres(token.text), 2).map(|height| SPHEROID + height),
    };
    let altitude = altitude.and_then(|altitude| u32::try_from(altitude).ok());
    let altitude = altitude.ok_or_else(|| token.expected(ALTITUDE))?;
    // RFC 1876 §3: the defaults are 1 m, 10,000 m and 10 m.
    let mut precisions = [0x12, 0x16, 0x13];
    for precision in &mut precisions {
        let Some(token) = tokens.next_token()? else { break };
        let value = fixed(metres(token.text), 2).and_then(read_precision);
        *precision = value.ok_or_else(|| token.expected(PRECISION))?;
    }
    let mut octets = [0; 16];
    octets[1..4].copy_from_slice(&precisions);
    octets[4..8].copy_from_slice(&latitude.to_be_bytes());
    octets[8..12].copy_from_slice(&longitude.to_be_bytes());
    octets[12..].copy_from_slice(&altitude.to_be_bytes());
    Ok(octets)
}

fn metres(text: &str) -> &str {
    text.strip_suffix(['m', 'M']).unwrap_or(text)
}

/// Reads a decimal number with up to `places` places, scaled to a whole number.
fn fixed(text: &str, places: usize) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = (1..=10).contains(&whole.len())
        && fraction.len() <= places
        && whole.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit());
    is_number.then(|| format!("{whole}{fraction:0<places$}").parse().ok()).flatten()
}

/// Turns centimetres into a digit and a power of ten, lower digits cut off.
fn read_precision(mut centimetres: i64) -> Option<u8> {
    let mut power = 0;
    while centimetres > 9 {
        centimetres /= 10;
        power += 1;
    }
    (power <= 9).then_some(((centimetres as u8) << 4) | power)
}

/// Reads degrees, perhaps minutes and seconds, and the direction.
fn read_angle(
    tokens: &mut Tokens<'_>,
    [positive, negative]: [&str; 2],
    degrees_max: i64,
    expected: &'static str,
) -> Result<u32, TextError> {
    let is_direction = |token: &Token<'_>| {
        token.text.eq_ignore_ascii_case(positive) || token.text.eq_ignore_ascii_case(negative)
    };
    let first = tokens.expect(expected)?;
    let wrong = || first.expected(expected);
    let degrees = fixed(first.text, 0).filter(|degrees| *degrees <= degrees_max).ok_or_else(wrong)?;
    let mut value = degrees * i64::from(DEGREE);
    let mut token = tokens.expect(expected)?;
    for (places, scale, max) in [(0, 60_000, 59), (3, 1, 59_999)] {
        if is_direction(&token) {
            break;
        }
        let part = fixed(token.text, places).filter(|part| *part <= max);
        value += part.ok_or_else(|| token.expected(expected))? * scale;
        token = tokens.expect(expected)?;
    }
    if !is_direction(&token) || value > degrees_max * i64::from(DEGREE) {
        return Err(token.expected(expected));
    }
    let sign = if token.text.eq_ignore_ascii_case(positive) { 1 } else { -1 };
    u32::try_from(i64::from(EQUATOR) + sign * value).map_err(|_| wrong())
}
