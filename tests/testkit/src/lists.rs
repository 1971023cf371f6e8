//! Lists in binary formats, as small as tests need them: v2ray's `geosite.dat` and `geoip.dat`,
//! MaxMind databases.

use std::net::IpAddr;

/// How a domain of a `geosite.dat` is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Any name with this text in it.
    Keyword = 0,
    /// Any name that fits the expression.
    Regex = 1,
    /// The name and everything below it.
    Suffix = 2,
    /// The name alone.
    Full = 3,
}

/// Writes a field of a protocol buffer that holds octets.
fn field(number: u8, octets: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut left = octets.len();
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
    out.extend(octets);
    out
}

fn entry(code: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    field(1, &[field(1, code.as_bytes()), parts.concat()].concat())
}

/// A domain of a list: how it is meant, itself, and its attributes.
pub type Site<'a> = (Domain, &'a str, &'a [&'a str]);

/// Writes a `geosite.dat`: lists by code.
pub fn geosite(lists: &[(&str, &[Site<'_>])]) -> Vec<u8> {
    let domain = |(kind, text, attributes): &Site<'_>| {
        let mut message = [vec![1 << 3, *kind as u8], field(2, text.as_bytes())].concat();
        for attribute in *attributes {
            message.extend(field(3, &[field(1, attribute.as_bytes()), vec![2 << 3, 1]].concat()));
        }
        field(2, &message)
    };
    let list =
        |(code, sites): &(&str, &[Site<'_>])| entry(code, &sites.iter().map(domain).collect::<Vec<_>>());
    lists.iter().flat_map(list).collect()
}

/// Reads `192.0.2.0/24`.
fn prefix(text: &str) -> (IpAddr, u8) {
    let (address, bits) = text.split_once('/').unwrap_or_else(|| panic!("{text:?} is no prefix"));
    (address.parse().expect("an address"), bits.parse().expect("a number of bits"))
}

/// Writes a `geoip.dat`: prefixes by code.
///
/// # Panics
///
/// When a text is not a prefix.
pub fn geoip(countries: &[(&str, &[&str])]) -> Vec<u8> {
    let cidr = |text: &&str| {
        let (address, bits) = prefix(text);
        let octets = match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        field(2, &[field(1, &octets), vec![2 << 3, bits]].concat())
    };
    let country =
        |(code, prefixes): &(&str, &[&str])| entry(code, &prefixes.iter().map(cidr).collect::<Vec<_>>());
    countries.iter().flat_map(country).collect()
}

/// What a MaxMind database says about a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    /// Codes of its country and continent, as GeoLite2-Country has them.
    Country(&'a str, &'a str),
    /// The number of its system, as GeoLite2-ASN has it.
    System(u32),
}

impl About<'_> {
    fn data(self) -> Vec<u8> {
        match self {
            Self::Country(country, continent) => map(&[
                ("continent", map(&[("code", text(continent))])),
                ("country", map(&[("iso_code", text(country))])),
            ]),
            Self::System(number) => map(&[
                ("autonomous_system_number", uint32(number)),
                ("autonomous_system_organization", text("Example Net")),
            ]),
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    // Longer ones have their length in octets of its own, from 29 on.
    match text.len() {
        len @ 0..29 => [&[2 << 5 | len as u8], text.as_bytes()].concat(),
        len => [&[2 << 5 | 29, (len - 29) as u8], text.as_bytes()].concat(),
    }
}

fn uint32(number: u32) -> Vec<u8> {
    [&[6 << 5 | 4][..], &number.to_be_bytes()].concat()
}

fn map(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![7 << 5 | members.len() as u8];
    for (key, value) in members {
        out.extend(text(key));
        out.extend(value);
    }
    out
}

/// Octets of zeros between the tree and the data.
const GAP: usize = 16;

/// Writes a MaxMind database: a binary tree over the bits of addresses (IPv4 below 96 zeros) with
/// records of 24 bits, what is known about each network, and what is to be known about the file.
///
/// # Panics
///
/// When a text is not a prefix.
pub fn mmdb(networks: &[(&str, About<'_>)]) -> Vec<u8> {
    // Where each side of a node leads.
    #[derive(Clone, Copy)]
    enum Side {
        Nothing,
        Node(usize),
        Data(usize),
    }
    let mut nodes = vec![[Side::Nothing; 2]];
    let mut section = Vec::new();
    for (network, about) in networks {
        let (address, bits) = match prefix(network) {
            (IpAddr::V4(v4), bits) => (u128::from(v4.to_bits()), bits + 96),
            (IpAddr::V6(v6), bits) => (v6.to_bits(), bits),
        };
        let at = section.len();
        section.extend(about.data());
        let mut node = 0;
        for depth in 1..=bits {
            let side = (address >> (128 - depth) & 1) as usize;
            node = match nodes[node][side] {
                _ if depth == bits => {
                    nodes[node][side] = Side::Data(at);
                    break;
                }
                Side::Node(next) => next,
                Side::Nothing | Side::Data(_) => {
                    nodes.push([Side::Nothing; 2]);
                    let next = nodes.len() - 1;
                    nodes[node][side] = Side::Node(next);
                    next
                }
            };
        }
    }
    let count = nodes.len();
    let mut out = Vec::new();
    for side in nodes.iter().flatten() {
        let record = match *side {
            Side::Nothing => count,
            Side::Node(node) => node,
            Side::Data(at) => count + GAP + at,
        };
        out.extend(&(record as u32).to_be_bytes()[1..]);
    }
    out.extend([0; GAP]);
    out.extend(section);
    out.extend(b"\xab\xcd\xefMaxMind.com");
    out.extend(map(&[
        ("node_count", uint32(count as u32)),
        ("record_size", uint32(24)),
        ("ip_version", uint32(6)),
        ("database_type", text("Test")),
    ]));
    out
}
