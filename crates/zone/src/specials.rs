//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What a zone answers beside its records: names made from addresses, and records chosen for the
//! client; and which clients it answers at all.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sets::AddressSet;
use wire::name::LABEL_OCTETS_MAX;
use wire::{Class, HashKey, Name, NameBuf, Rtype, Ttl};

use crate::block::{Layout, OWNER, RECORD_HEAD, Records, Rrset};
use crate::compile::layout;
use crate::online::put_record;

/// Octets of an address in text.
const TEXT_OCTETS_MAX: usize = 40;
/// Octets of a record that is made: its data is a name at most.
pub(crate) const MADE_OCTETS_MAX: usize = RECORD_HEAD + 255;

/// What one zone answers beside its records.
#[derive(Default)]
pub struct Specials {
    makers: Box<[Maker]>,
    choices: Box<[Choice]>,
    /// Hashes of the owners of choices, sorted, and which choice each is.
    by_hash: Box<[(u64, u32)]>,
    /// Hashes of the names above those owners, sorted, and which choice each is above.
    above: Box<[(u64, u32)]>,
    /// Clients that may query the zone; everybody by default.
    clients: Option<Arc<AddressSet>>,
}

/// Makes names from addresses, or addresses from names: `host-192-0-2-1.example.org` and 192.0.2.1.
///
/// Only names that do not exist, and for which no wildcard stands in, are made.
pub struct Maker {
    /// What stands before the address in the first label.
    pub prefix: Box<str>,
    /// The addresses that have such names.
    pub networks: Arc<AddressSet>,
    /// What stands after the first label, in a reverse zone; `None` makes addresses for names
    /// directly below the apex.
    pub origin: Option<NameBuf>,
    /// How long what is made may be kept.
    pub ttl: Ttl,
}

/// The records of one type at one name, of which the client decides.
pub struct Choice {
    owner: NameBuf,
    rtype: Rtype,
    layout: Layout,
    alternatives: Box<[Alternative]>,
}

/// Records that some clients get.
pub struct Alternative {
    /// Clients that get nothing else as long as these records are healthy; `None`: those for whom
    /// there is nothing closer.
    pub clients: Option<Arc<AddressSet>>,
    /// Its share among those that are equally close; with 0, it is there for when the others are
    /// not healthy.
    pub weight: u32,
    /// Which records lead to something that does not work, a bit each from the first on; somebody
    /// else finds out.
    pub health: Option<Arc<AtomicU64>>,
    /// The records.
    pub rows: Rows,
}

/// Records of one type, ready to be sent.
pub struct Rows {
    count: u16,
    octets: Box<[u8]>,
}

// Once per configuration.
impl Alternative {
    /// Returns an alternative for everybody, of weight 1 and in good health.
    pub fn new(rtype: Rtype, ttl: Ttl, data: &[Vec<u8>]) -> Self {
        let mut records = std::vec![];
        for data in data {
            records.extend_from_slice(&OWNER);
            records.extend_from_slice(&rtype.0.to_be_bytes());
            records.extend_from_slice(&Class::IN.0.to_be_bytes());
            records.extend_from_slice(&ttl.seconds().to_be_bytes());
            records.extend_from_slice(&(data.len() as u16).to_be_bytes());
            records.extend_from_slice(data);
        }
        let rows = Rows { count: data.len() as u16, octets: records.into_boxed_slice() };
        Self { clients: None, weight: 1, health: None, rows }
    }
}

// Once per configuration.
impl Choice {
    /// Returns a choice among `alternatives`, which are all of type `rtype`.
    pub fn new(owner: NameBuf, rtype: Rtype, alternatives: Vec<Alternative>) -> Self {
        Self { owner, rtype, layout: layout(rtype), alternatives: alternatives.into_boxed_slice() }
    }
}

// Once per configuration.
impl Specials {
    /// Puts together what a zone has.
    pub fn new(key: &HashKey, makers: Vec<Maker>, choices: Vec<Choice>) -> Self {
        let hashes = choices.iter().enumerate();
        let mut by_hash: Box<[(u64, u32)]> =
            hashes.map(|(at, choice)| (key.hash_name(choice.owner.as_name()), at as u32)).collect();
        by_hash.sort_unstable();
        let mut above = std::vec![];
        for (at, choice) in choices.iter().enumerate() {
            let mut name = choice.owner.as_name().parent();
            while let Some(parent) = name {
                above.push((key.hash_name(parent), at as u32));
                name = parent.parent();
            }
        }
        above.sort_unstable();
        Self {
            makers: makers.into_boxed_slice(),
            choices: choices.into_boxed_slice(),
            by_hash,
            above: above.into_boxed_slice(),
            clients: None,
        }
    }

    /// Returns the same for a zone that only these clients may query.
    #[must_use]
    pub fn for_clients(self, clients: Arc<AddressSet>) -> Self {
        Self { clients: Some(clients), ..self }
    }
}

/// What a name that is made has.
pub(crate) enum Made {
    V4(Ipv4Addr, Ttl),
    V6(Ipv6Addr, Ttl),
    Name(NameBuf, Ttl),
}

impl Made {
    /// Returns the type of its record.
    pub(crate) const fn rtype(&self) -> Rtype {
        match self {
            Self::V4(..) => Rtype::A,
            Self::V6(..) => Rtype::AAAA,
            Self::Name(..) => Rtype::PTR,
        }
    }

    /// Writes its record to `octets`, ready to be sent.
    pub(crate) fn rrset<'o>(&self, octets: &'o mut [u8; MADE_OCTETS_MAX]) -> Option<Rrset<'o>> {
        let rtype = self.rtype();
        let len = match self {
            Self::V4(address, ttl) => put_record(octets, rtype, ttl.seconds(), &address.octets()),
            Self::V6(address, ttl) => put_record(octets, rtype, ttl.seconds(), &address.octets()),
            Self::Name(name, ttl) => put_record(octets, rtype, ttl.seconds(), name.as_name().as_bytes()),
        }?;
        let layout = match self {
            Self::Name(..) => Layout::Names { skipped: 0, names: 1 },
            Self::V4(..) | Self::V6(..) => Layout::Plain,
        };
        let records = octets.get(..len)?;
        Some(Rrset { rtype, layout, count: 1, signature_count: 0, records, signatures: &[], cuts: &[] })
    }
}

impl Specials {
    /// Returns whether a client may query the zone; `None` stands for the server itself.
    pub(crate) fn admits(&self, client: Option<IpAddr>) -> bool {
        match (&self.clients, client) {
            (Some(clients), Some(client)) => clients.contains(client),
            (None, _) | (_, None) => true,
        }
    }

    /// Returns whether there is nobody who may not query the zone.
    pub(crate) const fn are_for_everybody(&self) -> bool {
        self.clients.is_none()
    }

    /// Walks what there is to choose from at a name.
    pub(crate) fn choices<'s, 'n>(
        &'s self,
        name: Name<'n>,
        hash: u64,
    ) -> impl Iterator<Item = &'s Choice> + use<'s, 'n> {
        let start = self.by_hash.partition_point(|&(other, _)| other < hash);
        let same =
            self.by_hash.get(start..).unwrap_or(&[]).iter().take_while(move |(other, _)| *other == hash);
        same.filter_map(|&(_, at)| self.choices.get(at as usize))
            .filter(move |choice| choice.owner.as_name() == name)
    }

    /// Returns whether a name exists because something is chosen at it or below it, or made below
    /// it (RFC 4592 §2.2.2).
    pub(crate) fn has_at_or_below(&self, name: Name<'_>, hash: u64) -> bool {
        let start = self.above.partition_point(|&(other, _)| other < hash);
        let mut same = self.above.get(start..).unwrap_or(&[]).iter().take_while(|(other, _)| *other == hash);
        self.choices(name, hash).next().is_some()
            || same.any(|&(_, at)| {
                self.choices.get(at as usize).is_some_and(|it| it.owner.as_name().is_at_or_below(name))
            })
            || self.makers.iter().any(|maker| maker.origin.is_some() && maker.has_below(name))
    }

    /// Returns what is made for a name of the zone `apex` that does not exist.
    pub(crate) fn make(&self, name: Name<'_>, apex: Name<'_>) -> Option<Made> {
        self.makers.iter().find_map(|maker| match maker.origin {
            None => maker.address(name, apex),
            Some(origin) => maker.name(name, origin.as_name()),
        })
    }
}

impl Choice {
    /// Returns the type of its records.
    pub(crate) const fn rtype(&self) -> Rtype {
        self.rtype
    }

    /// Returns whether who asks decides.
    pub(crate) fn depends_on_client(&self) -> bool {
        self.alternatives.iter().any(|it| it.clients.is_some())
    }

    /// Chooses for a client, and says which of the records do not work. What is close and works
    /// comes first, then what works, then what there is: with nothing that works, all is as good as
    /// anything.
    pub(crate) fn choose(&self, client: Option<IpAddr>, random: u32) -> Option<(Rrset<'_>, u64)> {
        let is_close = |it: &Alternative| match (&it.clients, client) {
            (Some(clients), Some(client)) => clients.contains(client),
            _ => false,
        };
        let is_general = |it: &Alternative| it.clients.is_none();
        self.draw(random, |it| it.is_healthy() && is_close(it))
            .or_else(|| self.draw(random, |it| it.is_healthy() && is_general(it)))
            .or_else(|| self.draw(random, |it| is_close(it)))
            .or_else(|| self.draw(random, is_general))
            .map(|chosen| {
                let rrset = Rrset {
                    rtype: self.rtype,
                    layout: self.layout,
                    count: chosen.rows.count,
                    signature_count: 0,
                    records: &chosen.rows.octets,
                    signatures: &[],
                    cuts: &[],
                };
                (rrset, if chosen.is_healthy() { chosen.down() } else { 0 })
            })
    }

    /// Draws among the alternatives that count, each by its weight; the first if none has any.
    fn draw(&self, random: u32, counts: impl Fn(&Alternative) -> bool) -> Option<&Alternative> {
        let those = || self.alternatives.iter().filter(|it| counts(it));
        let total: u64 = those().map(|it| u64::from(it.weight)).sum();
        let mut left = (u64::from(random) * total) >> 32;
        for it in those() {
            match left.checked_sub(u64::from(it.weight)) {
                Some(rest) if total > 0 => left = rest,
                _ => return Some(it),
            }
        }
        None
    }
}

impl Alternative {
    /// Returns the records that do not work.
    fn down(&self) -> u64 {
        self.health.as_ref().map_or(0, |health| health.load(Ordering::Relaxed))
    }

    /// Returns whether one of its records works.
    fn is_healthy(&self) -> bool {
        let all = u64::MAX.checked_shr(64_u32.saturating_sub(u32::from(self.rows.count))).unwrap_or(0);
        all == 0 || self.down() & all != all
    }
}

/// Copies records that stand ready, without those whose bits are set; as many as fit. Returns their
/// number and octets.
pub(crate) fn copy_without(records: &[u8], down: u64, out: &mut [u8]) -> (u16, usize) {
    let (mut count, mut len) = (0, 0);
    for (at, record) in Records(records).enumerate() {
        if down.checked_shr(at as u32).unwrap_or(0) & 1 == 1 {
            continue;
        }
        let room = out.get_mut(len..).unwrap_or(&mut []);
        let Some(written) = put_record(room, record.rtype, record.ttl, record.rdata) else { break };
        len += written;
        count += 1;
    }
    (count, len)
}

impl Maker {
    /// Returns the address that a name directly below the apex is made of.
    fn address(&self, name: Name<'_>, apex: Name<'_>) -> Option<Made> {
        let label = name.labels().next()?;
        if name.parent()? != apex {
            return None;
        }
        let (prefix, rest) = label.split_at_checked(self.prefix.len())?;
        if !prefix.eq_ignore_ascii_case(self.prefix.as_bytes()) {
            return None;
        }
        if rest.iter().any(|octet| matches!(octet, b'.' | b':')) {
            return None;
        }
        let read = |separator: u8| -> Option<IpAddr> {
            let mut text = [0; LABEL_OCTETS_MAX];
            let text = text.get_mut(..rest.len())?;
            for (octet, place) in rest.iter().zip(&mut *text) {
                *place = if *octet == b'-' { separator } else { *octet };
            }
            std::str::from_utf8(text).ok()?.parse().ok()
        };
        match read(b'.').or_else(|| read(b':')).filter(|address| self.networks.contains(*address))? {
            IpAddr::V4(v4) => Some(Made::V4(v4, self.ttl)),
            IpAddr::V6(v6) => Some(Made::V6(v6, self.ttl)),
        }
    }

    /// Returns whether a name is the end of the reverse name of one of the addresses.
    fn has_below(&self, name: Name<'_>) -> bool {
        reverse_range(name).is_some_and(|(first, last)| {
            self.networks.ranges().any(|(from, to)| match (from, to, first, last) {
                (IpAddr::V4(from), IpAddr::V4(to), IpAddr::V4(first), IpAddr::V4(last)) => {
                    from <= last && first <= to
                }
                (IpAddr::V6(from), IpAddr::V6(to), IpAddr::V6(first), IpAddr::V6(last)) => {
                    from <= last && first <= to
                }
                _ => false,
            })
        })
    }

    /// Returns the name that the address has whose reverse name this is.
    fn name(&self, name: Name<'_>, origin: Name<'_>) -> Option<Made> {
        let address = address_of(name).filter(|address| self.networks.contains(*address))?;
        let mut text = Text { octets: [0; TEXT_OCTETS_MAX], len: 0 };
        write!(text, "{address}").ok()?;
        let mut label = [0; LABEL_OCTETS_MAX];
        let prefix = self.prefix.as_bytes();
        let len = prefix.len() + text.len;
        let (before, after) = label.get_mut(..len)?.split_at_mut_checked(prefix.len())?;
        before.copy_from_slice(prefix);
        for (place, octet) in after.iter_mut().zip(&text.octets) {
            *place = if matches!(octet, b'.' | b':') { b'-' } else { *octet };
        }
        let mut made = NameBuf::root();
        made.push_label(label.get(..len)?).ok()?;
        for label in origin.labels() {
            made.push_label(label).ok()?;
        }
        Some(Made::Name(made, self.ttl))
    }
}

/// An address in text.
struct Text {
    octets: [u8; TEXT_OCTETS_MAX],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.octets.get_mut(self.len..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Returns the address whose whole reverse name this is (RFC 1035 §3.5, RFC 3596 §2.5).
fn address_of(name: Name<'_>) -> Option<IpAddr> {
    let count = name.label_count();
    let ends_in = |one: &[u8], two: &[u8]| {
        let mut last = name.labels().skip(count.saturating_sub(2));
        last.next().is_some_and(|label| label.eq_ignore_ascii_case(one))
            && last.next().is_some_and(|label| label.eq_ignore_ascii_case(two))
    };
    if count == 6 && ends_in(b"in-addr", b"arpa") {
        let mut octets = [0; 4];
        for (octet, label) in octets.iter_mut().rev().zip(name.labels()) {
            // Zeros in front would make two names of one address.
            if label.len() > 1 && label.starts_with(b"0") {
                return None;
            }
            *octet = std::str::from_utf8(label).ok()?.parse().ok()?;
        }
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    if count == 34 && ends_in(b"ip6", b"arpa") {
        let mut bits = 0_u128;
        for (at, label) in name.labels().take(32).enumerate() {
            let &[digit] = label else { return None };
            bits |= u128::from(char::from(digit).to_digit(16)?) << (4 * at);
        }
        return Some(IpAddr::V6(Ipv6Addr::from(bits)));
    }
    None
}

/// Returns the first and the last of the addresses whose reverse names end in this name.
fn reverse_range(name: Name<'_>) -> Option<(IpAddr, IpAddr)> {
    let count = name.label_count();
    let mut labels = name.labels();
    let is_last = |rest: Name<'_>, one: &[u8]| {
        let mut last = rest.labels();
        last.next().is_some_and(|label| label.eq_ignore_ascii_case(one))
            && last.next().is_some_and(|label| label.eq_ignore_ascii_case(b"arpa"))
    };
    let end = name.suffix(2);
    let known = count.checked_sub(2)?;
    if is_last(end, b"in-addr") && known <= 4 {
        let mut bits = 0_u32;
        for at in (4 - known)..4 {
            let label = labels.next()?;
            if label.len() > 1 && label.starts_with(b"0") {
                return None;
            }
            let octet: u8 = std::str::from_utf8(label).ok()?.parse().ok()?;
            bits |= u32::from(octet) << (8 * at);
        }
        let rest = u32::MAX.checked_shr(8 * known as u32).unwrap_or(0);
        return Some((IpAddr::V4(Ipv4Addr::from(bits)), IpAddr::V4(Ipv4Addr::from(bits | rest))));
    }
    if is_last(end, b"ip6") && known <= 32 {
        let mut bits = 0_u128;
        for at in (32 - known)..32 {
            let &[digit] = labels.next()? else { return None };
            bits |= u128::from(char::from(digit).to_digit(16)?) << (4 * at);
        }
        let rest = u128::MAX.checked_shr(4 * known as u32).unwrap_or(0);
        return Some((IpAddr::V6(Ipv6Addr::from(bits)), IpAddr::V6(Ipv6Addr::from(bits | rest))));
    }
    None
}
