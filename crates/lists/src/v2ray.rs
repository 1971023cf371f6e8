//! The `geosite.dat` and `geoip.dat` of v2ray: Protocol Buffers, of which these need very little.
//!
//! ```text
//! GeoSiteList { repeated GeoSite entry = 1 }       GeoIPList { repeated GeoIP entry = 1 }
//! GeoSite { string code = 1; repeated Domain domain = 2 }
//! Domain { Type type = 1; string value = 2; repeated Attribute attribute = 3 }   Attribute { string key = 1; … }
//! GeoIP { string code = 1; repeated CIDR cidr = 2; bool reverse_match = 3 }      CIDR { bytes ip = 1; uint32 prefix = 2 }
//! ```

use std::net::IpAddr;

use sets::{AddressSetBuilder, Reach};

use crate::reading::{Reading, shown};

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Octets(&'a [u8]),
}

/// The fields of a message, each with its number; ends early with `None` inside if it is not one.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Field<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let key = self.number()?;
        let field = match key & 7 {
            0 => Field::Number(self.number()?),
            1 => Field::Octets(self.take(8)?),
            2 => {
                let len = self.number()?;
                Field::Octets(self.take(usize::try_from(len).ok()?)?)
            }
            5 => Field::Octets(self.take(4)?),
            _ => return None,
        };
        Some((key >> 3, field))
    }

    /// Reads a number of seven bits an octet, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&octet, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(octet & 0x7f) << shift;
            if octet & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}

/// A part that is wanted: `cn`, `google@ads`, `google@!cn`, `!private`.
struct Selector<'a> {
    text: &'a str,
    code: &'a str,
    /// Attributes that a domain must have, or must not have.
    attributes: Vec<(&'a str, bool)>,
    is_negated: bool,
    is_found: bool,
}

fn selectors<'a>(select: &[&'a str]) -> Vec<Selector<'a>> {
    select
        .iter()
        .map(|&text| {
            let mut parts = text.split('@');
            let code = parts.next().unwrap_or("");
            let attributes = parts.map(|part| match part.strip_prefix('!') {
                Some(name) => (name, false),
                None => (part, true),
            });
            let attributes = attributes.collect();
            let (code, is_negated) = match code.strip_prefix('!') {
                Some(code) => (code, true),
                None => (code, false),
            };
            Selector { text, code, attributes, is_negated, is_found: false }
        })
        .collect()
}

fn report_missing(to: &mut Reading<'_>, selectors: &[Selector<'_>]) {
    for selector in selectors.iter().filter(|selector| !selector.is_found) {
        to.mistakes.add(0, || format!("there is no part \"{}\"", selector.text));
    }
}

fn damaged(to: &mut Reading<'_>) {
    to.mistakes.add(0, || "damaged, or not a file of this format".to_owned());
}

/// Reads domains. Their number in the file stands for their line.
pub(super) fn geosite(to: &mut Reading<'_>, octets: &[u8]) {
    let wanted = to.select.clone();
    let mut selectors = selectors(&wanted);
    for selector in selectors.iter_mut().filter(|selector| selector.is_negated) {
        to.mistakes
            .add(0, || format!("\"{}\": names have no part \"all but\"; use \"except\"", selector.text));
        selector.is_found = true;
    }
    let mut number = 0;
    for entry in Fields(octets) {
        let Some((1, Field::Octets(site))) = entry else { return damaged(to) };
        let mut fits: Vec<usize> = Vec::new();
        for field in Fields(site) {
            match field {
                Some((1, Field::Octets(text))) => {
                    let code = std::str::from_utf8(text).unwrap_or("");
                    fits = (0..selectors.len())
                        .filter(|&at| {
                            !selectors[at].is_negated && selectors[at].code.eq_ignore_ascii_case(code)
                        })
                        .collect();
                    for &at in &fits {
                        selectors[at].is_found = true;
                    }
                    if fits.is_empty() && !selectors.is_empty() {
                        number += Fields(site).filter(|field| matches!(field, Some((2, _)))).count() as u32;
                        break;
                    }
                }
                Some((2, Field::Octets(message))) => {
                    number += 1;
                    to.progress.at(number);
                    let Some(domain) = domain(message) else { return damaged(to) };
                    let is_wanted = selectors.is_empty()
                        || fits.iter().any(|&at| {
                            selectors[at].attributes.iter().all(|(name, has)| {
                                domain
                                    .attributes
                                    .iter()
                                    .any(|other| other.eq_ignore_ascii_case(name.as_bytes()))
                                    == *has
                            })
                        });
                    if is_wanted {
                        add(to, &domain, number);
                    }
                }
                Some(_) => {}
                None => return damaged(to),
            }
        }
    }
    report_missing(to, &selectors);
}

/// A domain of `geosite.dat`.
struct Domain<'a> {
    kind: u64,
    value: &'a [u8],
    attributes: Vec<&'a [u8]>,
}

fn domain(message: &[u8]) -> Option<Domain<'_>> {
    let mut domain = Domain { kind: 0, value: &[], attributes: Vec::new() };
    for field in Fields(message) {
        match field? {
            (1, Field::Number(kind)) => domain.kind = kind,
            (2, Field::Octets(value)) => domain.value = value,
            (3, Field::Octets(attribute)) => {
                for field in Fields(attribute) {
                    if let (1, Field::Octets(key)) = field? {
                        domain.attributes.push(key);
                    }
                }
            }
            _ => {}
        }
    }
    Some(domain)
}

fn add(to: &mut Reading<'_>, domain: &Domain<'_>, number: u32) {
    match domain.kind {
        2 => to.name(domain.value, Reach::ItselfAndBelow, number),
        3 => to.name(domain.value, Reach::Itself, number),
        0 | 1 => {
            let Ok(text) = std::str::from_utf8(domain.value) else {
                return to.mistakes.add(number, || format!("\"{}\" is not text", shown(domain.value)));
            };
            let added =
                if domain.kind == 0 { to.names.keyword(text, number) } else { to.names.regex(text, number) };
            to.pattern(added, number);
        }
        kind => to.mistakes.add(number, || format!("unknown kind of domain {kind}")),
    }
}

/// Reads prefixes.
pub(super) fn geoip(to: &mut Reading<'_>, octets: &[u8]) {
    let wanted = to.select.clone();
    let mut selectors = selectors(&wanted);
    let mut number = 0;
    for entry in Fields(octets) {
        let Some((1, Field::Octets(country))) = entry else { return damaged(to) };
        let (mut code, mut is_reversed, mut prefixes) = (&[][..], false, Vec::new());
        for field in Fields(country) {
            match field {
                Some((1, Field::Octets(text))) => code = text,
                Some((2, Field::Octets(cidr))) => {
                    number += 1;
                    match prefix(cidr) {
                        Some((address, length)) => prefixes.push(Cidr { address, length, number }),
                        None => to.mistakes.add(number, || "not an address prefix".to_owned()),
                    }
                }
                Some((3, Field::Number(reversed))) => is_reversed = reversed != 0,
                Some(_) => {}
                None => return damaged(to),
            }
        }
        let fits =
            selectors.iter_mut().filter(|selector| code.eq_ignore_ascii_case(selector.code.as_bytes()));
        let mut ways: Vec<bool> = Vec::new();
        for selector in fits {
            selector.is_found = true;
            ways.push(selector.is_negated);
        }
        if wanted.is_empty() {
            ways.push(false);
        }
        for is_negated in ways {
            add_prefixes(to, &prefixes, is_negated != is_reversed);
        }
    }
    report_missing(to, &selectors);
}

/// A prefix of a list.
struct Cidr {
    address: IpAddr,
    length: u8,
    /// Which one of the list it is, from 1.
    number: u32,
}

fn add_prefixes(to: &mut Reading<'_>, prefixes: &[Cidr], is_reversed: bool) {
    let mut set = AddressSetBuilder::new();
    for &Cidr { address, length, number } in prefixes {
        if !set.prefix(address, length) {
            to.mistakes.add(number, || format!("{address}/{length} is not an address prefix"));
        }
    }
    let set = set.compile();
    if is_reversed {
        let mut all = AddressSetBuilder::new();
        let everything = [IpAddr::from([0; 4]), IpAddr::from([0; 16])].map(|first| all.prefix(first, 0));
        debug_assert!(everything.iter().all(|&is_right| is_right), "a prefix of no bits is one");
        all.except(&set);
        to.addresses.include(&all.compile());
    } else {
        to.addresses.include(&set);
    }
}

fn prefix(cidr: &[u8]) -> Option<(IpAddr, u8)> {
    let (mut address, mut length) = (None, 0);
    for field in Fields(cidr) {
        match field? {
            (1, Field::Octets(octets)) => {
                address = match octets.len() {
                    4 => <[u8; 4]>::try_from(octets).ok().map(IpAddr::from),
                    16 => <[u8; 16]>::try_from(octets).ok().map(IpAddr::from),
                    _ => None,
                };
            }
            (2, Field::Number(bits)) => length = u8::try_from(bits).ok()?,
            _ => {}
        }
    }
    Some((address?, length))
}

#[cfg(test)]
mod tests {
    use crate::ListFormat;
    use crate::testing::{check_addresses, check_selected, count_mistakes};

    /// Writes a field that holds octets.
    fn field(number: u8, octets: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut len = octets.len();
        while len >= 0x80 {
            out.push(len as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend(octets);
        out
    }

    fn domain(kind: u8, value: &str, attributes: &[&str]) -> Vec<u8> {
        let mut message = [vec![1 << 3, kind], field(2, value.as_bytes())].concat();
        for attribute in attributes {
            message.extend(field(3, &[field(1, attribute.as_bytes()), vec![2 << 3, 1]].concat()));
        }
        field(2, &message)
    }

    fn entry(code: &str, parts: &[Vec<u8>]) -> Vec<u8> {
        field(1, &[field(1, code.as_bytes()), parts.concat()].concat())
    }

    fn sites() -> Vec<u8> {
        let long = format!("{}.example", "x".repeat(60));
        [
            entry(
                "GOOGLE",
                &[
                    domain(2, "google.example", &[]),
                    domain(3, "ads.google.example", &["ads"]),
                    domain(3, "cn.google.example", &["ads", "cn"]),
                    domain(2, "doubleclick.example", &["ads"]),
                ],
            ),
            entry(
                "CN",
                &[domain(0, "baidu", &[]), domain(1, r"^qq[0-9]+\.example$", &[]), domain(2, &long, &[])],
            ),
        ]
        .concat()
    }

    #[test]
    fn domains_are_selected_by_code_and_attribute() {
        let inside = ["x.doubleclick.example", "ads.google.example"];
        check_selected(
            ListFormat::Geosite,
            &sites(),
            &["google@ads"],
            &inside,
            &["google.example", "baidu.example"],
            &[],
        );
        check_selected(
            ListFormat::Geosite,
            &sites(),
            &["google@ads@!cn"],
            &inside,
            &["cn.google.example"],
            &[],
        );
        check_selected(
            ListFormat::Geosite,
            &sites(),
            &["cn"],
            &["www.baidu.example", "qq12.example"],
            &["google.example", "qqx.example"],
            &[],
        );
        check_selected(
            ListFormat::Geosite,
            &sites(),
            &[],
            &["www.baidu.example", "x.google.example"],
            &["example"],
            &[],
        );
        check_selected(
            ListFormat::Geosite,
            &sites(),
            &["de", "cn"],
            &["baidu"],
            &["google.example"],
            &["there is no part \"de\""],
        );
    }

    #[test]
    fn damaged_files_are_reported() {
        let sites = sites();
        for end in [1, 3, 20, sites.len() - 1] {
            assert!(count_mistakes(ListFormat::Geosite, &sites[..end]) > 0, "{end}");
        }
        check_selected(
            ListFormat::Geosite,
            b"example.org\n",
            &[],
            &[],
            &["example.org"],
            &["damaged, or not a file of this format"],
        );
    }

    #[test]
    fn prefixes_are_selected_by_country() {
        let cidr = |octets: &[u8], bits: u8| field(2, &[field(1, octets), vec![2 << 3, bits]].concat());
        let file = [
            entry(
                "DE",
                &[
                    cidr(&[192, 0, 2, 0], 24),
                    cidr(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 32),
                ],
            ),
            entry("PRIVATE", &[cidr(&[10, 0, 0, 0], 8)]),
        ]
        .concat();
        check_addresses(ListFormat::Geoip, &file, &["de"], &["192.0.2.9", "2001:db8::1"], &["10.0.0.1"], 0);
        check_addresses(ListFormat::Geoip, &file, &[], &["192.0.2.9", "10.0.0.1"], &["192.0.3.1"], 0);
        check_addresses(ListFormat::Geoip, &file, &["!private"], &["192.0.2.9", "::1"], &["10.0.0.1"], 0);
        check_addresses(ListFormat::Geoip, &file, &["fr"], &[], &["192.0.2.9"], 1);
    }
}
