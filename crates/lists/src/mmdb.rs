//! MaxMind databases (format version 2): which network belongs to which country, continent or
//! autonomous system.
//!
//! A binary tree over the bits of an address leads to data. The whole tree is walked once, and the
//! networks whose data fits become addresses of the set; what each piece of data says is worked out
//! once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::reading::Reading;

/// What stands before the metadata.
const MARK: &[u8] = b"\xab\xcd\xefMaxMind.com";
/// Octets between the tree and the data.
const GAP: usize = 16;
/// How deep data may nest, pointers included.
const DEPTH_MAX: usize = 16;
/// Members of maps and lists that are looked at for one piece of data.
const MEMBERS_MAX: usize = 4096;

/// Data, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Data<'a> {
    Text(&'a [u8]),
    Number(u64),
    Map(Vec<(&'a [u8], Data<'a>)>),
    Other,
}

impl<'a> Data<'a> {
    fn member(&self, key: &str) -> Option<&Data<'a>> {
        let Self::Map(members) = self else { return None };
        members.iter().find(|(name, _)| *name == key.as_bytes()).map(|(_, data)| data)
    }

    fn number(&self, key: &str) -> Option<u64> {
        match self.member(key)? {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn text(&self, path: [&str; 2]) -> Option<&'a [u8]> {
        match self.member(path[0])?.member(path[1])? {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Reads data at `at` of a section; returns it and where it ends. `left` bounds the members looked
/// at.
fn data<'a>(section: &'a [u8], at: usize, depth: usize, left: &mut usize) -> Option<(Data<'a>, usize)> {
    if depth > DEPTH_MAX {
        return None;
    }
    let &control = section.get(at)?;
    let mut at = at + 1;
    let mut kind = control >> 5;
    if kind == 1 {
        // A pointer: two bits of how long it is, and the highest bits of it.
        let len = usize::from(control >> 3 & 3) + 1;
        let octets = section.get(at..at + len)?;
        let high = if len == 4 { 0 } else { usize::from(control & 7) };
        let number = octets.iter().fold(high, |number, &octet| number << 8 | usize::from(octet));
        let target = number + [0, 2048, 526_336, 0][len - 1];
        let (found, _) = data(section, target, depth + 1, left)?;
        return Some((found, at + len));
    }
    if kind == 0 {
        kind = section.get(at)?.checked_add(7)?;
        at += 1;
    }
    let mut size = usize::from(control & 31);
    if let Some(more) = size.checked_sub(28).filter(|&more| more > 0) {
        let octets = section.get(at..at + more)?;
        let number = octets.iter().fold(0, |number, &octet| number << 8 | usize::from(octet));
        size = number + [29, 285, 65_821][more - 1];
        at += more;
    }
    let mut members = |at: &mut usize, per: usize| -> Option<Vec<(Data<'a>, Data<'a>)>> {
        let mut all = Vec::new();
        for _ in 0..size {
            *left = left.checked_sub(1)?;
            let (first, end) = data(section, *at, depth + 1, left)?;
            *at = end;
            let mut second = Data::Other;
            if per == 2 {
                (second, *at) = data(section, *at, depth + 1, left)?;
            }
            all.push((first, second));
        }
        Some(all)
    };
    match kind {
        2 => Some((Data::Text(section.get(at..at + size)?), at + size)),
        5 | 6 | 9 if size <= 8 => {
            let octets = section.get(at..at + size)?;
            let number = octets.iter().fold(0, |number, &octet| number << 8 | u64::from(octet));
            Some((Data::Number(number), at + size))
        }
        7 => {
            let members = members(&mut at, 2)?;
            let members = members.into_iter().filter_map(|(key, data)| match key {
                Data::Text(key) => Some((key, data)),
                _ => None,
            });
            Some((Data::Map(members.collect()), at))
        }
        11 => members(&mut at, 1).map(|_| (Data::Other, at)),
        // The size of a boolean is its value.
        14 => Some((Data::Other, at)),
        3 | 4 | 8 | 10 | 15 | 5 | 6 | 9 => {
            section.get(at..at + size)?;
            Some((Data::Other, at + size))
        }
        _ => None,
    }
}

/// What a selector asks of the data of a network.
struct Selector<'a> {
    text: &'a str,
    what: What,
    value: String,
    is_negated: bool,
    is_found: bool,
}

#[derive(Clone, Copy)]
enum What {
    Country,
    Registered,
    Continent,
    System,
}

/// Reads `country=DE`, `registered-country=DE`, `continent=EU`, `asn=64500`, `DE`, `64500`, and `!`
/// before any of them.
fn selector(text: &str) -> Option<Selector<'_>> {
    let (rest, is_negated) = match text.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    let (what, value) = match rest.split_once('=') {
        Some(("country", value)) => (What::Country, value),
        Some(("registered-country", value)) => (What::Registered, value),
        Some(("continent", value)) => (What::Continent, value),
        Some(("asn", value)) => (What::System, value.trim_start_matches(['A', 'S', 'a', 's'])),
        Some(_) => return None,
        None if is_number(rest) => (What::System, rest),
        None => (What::Country, rest),
    };
    let is_right = match what {
        What::System => is_number(value),
        _ => value.len() == 2 && value.bytes().all(|octet| octet.is_ascii_alphabetic()),
    };
    is_right.then(|| Selector { text, what, value: value.to_ascii_uppercase(), is_negated, is_found: false })
}

impl Selector<'_> {
    fn fits(&self, data: &Data<'_>) -> bool {
        let is = |path| data.text(path).is_some_and(|text| text.eq_ignore_ascii_case(self.value.as_bytes()));
        match self.what {
            What::Country => is(["country", "iso_code"]),
            What::Registered => is(["registered_country", "iso_code"]),
            What::Continent => is(["continent", "code"]),
            What::System => data
                .number("autonomous_system_number")
                .is_some_and(|number| number.to_string() == self.value.trim_start_matches('0')),
        }
    }
}

/// A database.
struct Base<'a> {
    tree: &'a [u8],
    section: &'a [u8],
    nodes: usize,
    record_bits: usize,
    is_v6: bool,
}

impl<'a> Base<'a> {
    fn open(octets: &'a [u8]) -> Option<Self> {
        let mark = octets.windows(MARK.len()).rposition(|part| part == MARK)?;
        let (metadata, _) = data(octets.get(mark + MARK.len()..)?, 0, 0, &mut MEMBERS_MAX.clone())?;
        let number = |key| metadata.number(key).and_then(|number| usize::try_from(number).ok());
        let (nodes, record_bits) = (number("node_count")?, number("record_size")?);
        if !matches!(record_bits, 24 | 28 | 32) || nodes > u32::MAX as usize {
            return None;
        }
        let tree = octets.get(..nodes * record_bits / 4)?;
        let section = octets.get(tree.len() + GAP..mark)?;
        Some(Self { tree, section, nodes, record_bits, is_v6: number("ip_version")? == 6 })
    }

    /// Returns where a node leads for a bit.
    fn child(&self, node: usize, bit: usize) -> Option<usize> {
        let octets = self.tree.get(node * self.record_bits / 4..)?.get(..self.record_bits / 4)?;
        let number = |octets: &[u8]| octets.iter().fold(0, |number, &octet| number << 8 | usize::from(octet));
        Some(match (self.record_bits, bit) {
            (24, bit) => number(&octets[bit * 3..bit * 3 + 3]),
            (28, 0) => usize::from(octets[3] >> 4) << 24 | number(&octets[..3]),
            (28, _) => usize::from(octets[3] & 15) << 24 | number(&octets[4..7]),
            (_, bit) => number(&octets[bit * 4..bit * 4 + 4]),
        })
    }

    /// Calls `f` with each network that has data, and where the data is.
    fn walk(&self, mut f: impl FnMut(IpAddr, u8, usize)) -> Option<()> {
        let bits = if self.is_v6 { 128 } else { 32 };
        // Where addresses of version 4 begin: other ways there only repeat them.
        let mut v4 = 0;
        if self.is_v6 {
            for _ in 0..96 {
                if v4 < self.nodes {
                    v4 = self.child(v4, 0)?;
                }
            }
        }
        let mut open = vec![(0_usize, 0_u128, 0_u32)];
        while let Some((node, address, depth)) = open.pop() {
            for bit in 0..2 {
                let next = self.child(node, bit)?;
                let depth = depth + 1;
                let address = address | (bit as u128) << (bits - depth);
                if next < self.nodes {
                    let repeats = self.is_v6 && next == v4 && (depth != 96 || address != 0);
                    if depth >= bits {
                        return None;
                    }
                    if !repeats {
                        open.push((next, address, depth));
                    }
                } else if next > self.nodes {
                    let at = next.checked_sub(self.nodes + GAP)?;
                    let (address, length) = if !self.is_v6 {
                        (IpAddr::V4(Ipv4Addr::from_bits(address as u32)), depth)
                    } else if depth >= 96 && address >> 32 == 0 {
                        (IpAddr::V4(Ipv4Addr::from_bits(address as u32)), depth - 96)
                    } else {
                        (IpAddr::V6(Ipv6Addr::from_bits(address)), depth)
                    };
                    f(address, length as u8, at);
                }
            }
        }
        Some(())
    }
}

/// Reads the networks that are selected.
#[expect(clippy::needless_pass_by_value, reason = "the file is not needed afterwards")]
pub(super) fn read(to: &mut Reading<'_>, octets: Vec<u8>) {
    let mut selectors = Vec::new();
    for text in to.select.clone() {
        match selector(text) {
            Some(selector) => selectors.push(selector),
            None => to.mistakes.add(0, || {
                format!("\"{text}\" selects nothing (expected country=DE, registered-country=DE, continent=EU or asn=64500)")
            }),
        }
    }
    if to.select.is_empty() {
        return to.mistakes.add(0, || "nothing is selected, such as country=DE or asn=64500".to_owned());
    }
    let mut known: HashMap<usize, bool> = HashMap::new();
    let mut found = Vec::new();
    let whole = Base::open(&octets).and_then(|base| {
        let mut is_whole = true;
        base.walk(|address, length, at| {
            let is_wanted = *known.entry(at).or_insert_with(|| {
                let Some((data, _)) = data(base.section, at, 0, &mut MEMBERS_MAX.clone()) else {
                    is_whole = false;
                    return false;
                };
                selectors.iter_mut().fold(false, |wanted, selector| {
                    let fits = selector.fits(&data);
                    selector.is_found |= fits;
                    wanted | (fits != selector.is_negated)
                })
            });
            if is_wanted {
                found.push((address, length));
            }
        })?;
        is_whole.then_some(())
    });
    for (address, length) in found {
        if !to.addresses.prefix(address, length) {
            to.mistakes.add(0, || format!("{address}/{length} is not a prefix"));
        }
    }
    if whole.is_none() {
        to.mistakes.add(0, || "damaged, or not a MaxMind database".to_owned());
    }
    for selector in selectors.iter().filter(|selector| !selector.is_found) {
        to.mistakes.add(0, || format!("no network is of \"{}\"", selector.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ListFormat;
    use crate::testing::{check_addresses, count_mistakes};

    fn text(text: &str) -> Vec<u8> {
        assert!(text.len() < 29);
        [&[2 << 5 | text.len() as u8], text.as_bytes()].concat()
    }

    fn number(number: u32) -> Vec<u8> {
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

    /// Writes a database of some networks, each with where its data begins.
    fn base(record_bits: usize, networks: &[(&str, u8, usize)], section: &[u8]) -> Vec<u8> {
        // Each node leads to nodes, to nothing, or to data.
        let mut nodes: Vec<[Option<Result<usize, usize>>; 2]> = vec![[None; 2]];
        for &(address, length, at) in networks {
            let (address, length) = match address.parse().expect("an address") {
                IpAddr::V4(v4) => (u128::from(v4.to_bits()), length + 96),
                IpAddr::V6(v6) => (v6.to_bits(), length),
            };
            let mut node = 0;
            for depth in 1..=length {
                let bit = (address >> (128 - depth) & 1) as usize;
                if depth == length {
                    nodes[node][bit] = Some(Err(at));
                } else if let Some(Ok(next)) = nodes[node][bit] {
                    node = next;
                } else {
                    nodes.push([None; 2]);
                    let next = nodes.len() - 1;
                    nodes[node][bit] = Some(Ok(next));
                    node = next;
                }
            }
        }
        let count = nodes.len();
        let mut out = Vec::new();
        for node in &nodes {
            let [left, right] = node.map(|record| match record {
                None => count,
                Some(Ok(node)) => node,
                Some(Err(at)) => count + GAP + at,
            } as u32);
            match record_bits {
                24 => {
                    out.extend(&left.to_be_bytes()[1..]);
                    out.extend(&right.to_be_bytes()[1..]);
                }
                28 => {
                    out.extend(&left.to_be_bytes()[1..]);
                    out.push((left >> 24 << 4 | right >> 24) as u8);
                    out.extend(&right.to_be_bytes()[1..]);
                }
                _ => {
                    out.extend(left.to_be_bytes());
                    out.extend(right.to_be_bytes());
                }
            }
        }
        out.extend([0; GAP]);
        out.extend(section);
        out.extend(MARK);
        out.extend(map(&[
            ("node_count", number(count as u32)),
            ("record_size", number(record_bits as u32)),
            ("ip_version", number(6)),
            ("database_type", text("Test")),
        ]));
        out
    }

    fn countries(record_bits: usize) -> Vec<u8> {
        let country = |code: &str, continent: &str| {
            map(&[
                ("continent", map(&[("code", text(continent))])),
                ("country", map(&[("iso_code", text(code))])),
            ])
        };
        let (de, us) = (country("DE", "EU"), country("US", "NA"));
        let at_us = de.len();
        // A pointer to the first.
        let at_pointer = at_us + us.len();
        let section = [de, us, vec![1 << 5, 0]].concat();
        let networks = [
            ("192.0.2.0", 24, 0),
            ("198.51.100.0", 24, at_us),
            ("2001:db8::", 32, 0),
            ("203.0.113.0", 25, at_pointer),
        ];
        base(record_bits, &networks, &section)
    }

    #[test]
    fn networks_are_selected_by_country_and_continent() {
        for record_bits in [24, 28, 32] {
            let base = countries(record_bits);
            let inside = ["192.0.2.9", "2001:db8:1::", "203.0.113.1"];
            check_addresses(ListFormat::Mmdb, &base, &["DE"], &inside, &["198.51.100.1", "203.0.113.128"], 0);
            check_addresses(ListFormat::Mmdb, &base, &["continent=NA"], &["198.51.100.1"], &inside, 0);
            check_addresses(ListFormat::Mmdb, &base, &["!country=us"], &inside, &["198.51.100.1"], 0);
            check_addresses(ListFormat::Mmdb, &base, &["FR"], &[], &inside, 1);
        }
    }

    #[test]
    fn networks_are_selected_by_system() {
        let section = map(&[("autonomous_system_number", number(64500))]);
        let base = base(28, &[("192.0.2.0", 24, 0)], &section);
        check_addresses(ListFormat::Mmdb, &base, &["asn=64500"], &["192.0.2.1"], &["192.0.3.1"], 0);
        check_addresses(ListFormat::Mmdb, &base, &["64500"], &["192.0.2.1"], &[], 0);
        check_addresses(ListFormat::Mmdb, &base, &["asn=64501"], &[], &["192.0.2.1"], 1);
    }

    #[test]
    fn damaged_databases_do_no_harm() {
        let base = countries(28);
        assert!(count_mistakes(ListFormat::Mmdb, b"") > 0);
        for at in 0..base.len() {
            let mut broken = base.clone();
            broken[at] ^= 0xff;
            count_mistakes(ListFormat::Mmdb, &broken);
            count_mistakes(ListFormat::Mmdb, &base[..at]);
        }
        // Data that points to itself.
        assert_eq!(data(&[1 << 5, 0], 0, 0, &mut 10), None);
    }
}
