//! Names, and which local zone is closest to them.

use std::borrow::Cow;
use std::net::IpAddr;

/// Octets of a name in text, without the dot at its end (RFC 1035 §2.3.4).
const NAME_OCTETS_MAX: usize = 253;
/// Octets of a label.
const LABEL_OCTETS_MAX: usize = 63;

/// Returns a name without the dot at its end, in lower case; the root is a dot.
pub(crate) fn bare(name: &str) -> String {
    let bare = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if bare.is_empty() { ".".to_owned() } else { bare }
}

/// Returns a name without the dot at its end, in lower case, as [`bare`] does; without a copy where
/// it is written so.
pub(crate) fn lower_case(name: &str) -> Cow<'_, str> {
    let is_so =
        !name.is_empty() && !name.ends_with('.') && !name.bytes().any(|byte| byte.is_ascii_uppercase());
    if is_so { Cow::Borrowed(name) } else { Cow::Owned(bare(name)) }
}

/// Returns whether a name has nothing that could be wrong with it, or mean something else in a
/// list: labels of letters, digits, hyphens and underscores.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_OCTETS_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.len() <= NAME_OCTETS_MAX && name.split('.').all(is_label)
}

/// Returns whether octets are such a name without capital letters.
pub(crate) fn is_plain_lower_case(name: &[u8]) -> bool {
    let mut label = 0;
    for &octet in name {
        match octet {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' if label < LABEL_OCTETS_MAX => label += 1,
            b'.' if label > 0 => label = 0,
            _ => return false,
        }
    }
    label > 0 && name.len() <= NAME_OCTETS_MAX
}

/// Returns a name, and those of all zones that enclose it; the root last.
pub(crate) fn above(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| parent(name))
}

/// Returns the name of a zone without its first label; none of the root.
fn parent(name: &str) -> Option<&str> {
    match name {
        "." => None,
        _ => Some(name.split_once('.').map_or(".", |(_, parent)| parent)),
    }
}

/// Returns whether a name is a zone's own, or below it.
pub(crate) fn is_below(name: &str, zone: &str) -> bool {
    zone == "." || name == zone || name.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.'))
}

/// Returns whether a name is below a zone, and not the zone's own.
pub(crate) fn is_strictly_below(name: &str, zone: &str) -> bool {
    name != zone && is_below(name, zone)
}

pub(crate) fn labels(name: &str) -> usize {
    if name == "." { 0 } else { name.split('.').count() }
}

/// Reverse zones of addresses of private networks and of those that nobody may use, besides those
/// with a range of numbers.
const LAN_ZONES: [&str; 14] = [
    "10.in-addr.arpa",
    "168.192.in-addr.arpa",
    "0.in-addr.arpa",
    "254.169.in-addr.arpa",
    "2.0.192.in-addr.arpa",
    "100.51.198.in-addr.arpa",
    "113.0.203.in-addr.arpa",
    "255.255.255.255.in-addr.arpa",
    "d.f.ip6.arpa",
    "8.e.f.ip6.arpa",
    "9.e.f.ip6.arpa",
    "a.e.f.ip6.arpa",
    "b.e.f.ip6.arpa",
    "8.b.d.0.1.0.0.2.ip6.arpa",
];

/// Walks the reverse zones of addresses that are not of the Internet, without those of the machine
/// itself.
pub(crate) fn lan_zones() -> impl Iterator<Item = String> {
    // Parts of 172.16/12 and 100.64/10 (RFC 1918 §3, RFC 7793), and ::.
    let private = (16..32).map(|octet| format!("{octet}.172.in-addr.arpa"));
    let shared = (64..128).map(|octet| format!("{octet}.100.in-addr.arpa"));
    let unspecified = "0.".repeat(32) + "ip6.arpa";
    LAN_ZONES.iter().map(|&name| name.to_owned()).chain(private).chain(shared).chain([unspecified])
}

/// Names that are not of the Internet, or of this machine (RFC 6761, RFC 8375, RFC 9462).
const SPECIAL_ZONES: [&str; 8] = [
    "localhost",
    "home.arpa",
    "resolver.arpa",
    "service.arpa",
    "onion",
    "test",
    "invalid",
    "127.in-addr.arpa",
];

/// Walks the local zones that there are although no file has them, besides [`lan_zones`].
pub(crate) fn special_zones() -> impl Iterator<Item = String> {
    let loopback = "1.0.".to_owned() + &"0.".repeat(30) + "ip6.arpa";
    SPECIAL_ZONES.iter().map(|&name| name.to_owned()).chain([loopback])
}

/// Returns whether there is a local zone of this name although no file has one.
pub(crate) fn is_built_in(name: &str) -> bool {
    special_zones().chain(lan_zones()).any(|zone| zone == name)
}

/// Returns the name of the PTR record that `ADDRESS [TTL] NAME` stands for.
pub fn reverse_owner(text: &str) -> Option<String> {
    let address: IpAddr = text.split_whitespace().next()?.parse().ok()?;
    Some(match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let nibbles = address.octets().into_iter().rev().flat_map(|octet| [octet & 15, octet >> 4]);
            let labels: String = nibbles.map(|nibble| format!("{nibble:x}.")).collect();
            format!("{labels}ip6.arpa")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_have_nothing_that_a_list_could_misread() {
        for name in ["a", "a.b-c._d.example", "1.2.3"] {
            assert!(is_plain(name) && is_plain_lower_case(name.as_bytes()), "{name}");
        }
        let long = ["a".repeat(64), vec!["abcdefg"; 32].join(".")];
        for name in ["", ".", "a..b", "a.", "a b", "a\\.b", "*.a", "é.example", &long[0], &long[1]] {
            assert!(!is_plain(name) && !is_plain_lower_case(name.as_bytes()), "{name}");
        }
        assert!(is_plain("A.example") && !is_plain_lower_case(b"A.example"));
        let longest = ["a".repeat(63), vec!["abcdefg"; 31].join(".") + ".abcde"];
        for name in &longest {
            assert!(is_plain(name) && is_plain_lower_case(name.as_bytes()), "{name}");
        }
    }
}
