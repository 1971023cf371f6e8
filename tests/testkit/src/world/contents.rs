//! What each zone has: its names in canonical order, and their records.

use std::net::{Ipv4Addr, Ipv6Addr};

use dnssec::Nsec3Parameters;
use wire::{Name, NameBuf, Rtype};

use super::places::{Labels, read_server, server_label};
use super::{Draw, World, Zone};

/// Names with addresses in each zone: what is asked for.
pub const HOSTS: [&str; 5] = ["www", "mail", "api", "img", "shop"];

/// Seconds that the records of delegations, keys and proofs of absence may be kept.
pub(crate) const NS_TTL: u32 = 86_400;
const KEY_TTL: u32 = 3_600;
pub(crate) const NEGATIVE_TTL: u32 = 900;
/// Seconds that the records of hosts may be kept, drawn for each zone.
const HOST_TTLS: [u32; 4] = [300, 3_600, 14_400, 86_400];
/// Octets of text that do not fit into a datagram of 1,232.
const LARGE_OCTETS: usize = 1_800;

/// A name of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Apex,
    /// A server that has its name in the zone.
    Server(u8),
    /// A zone below.
    Cut(Zone),
    /// A row of [`ROWS`].
    Row(usize),
}

/// What a name of a zone below a top-level domain has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Addresses,
    /// An alias of this name in another zone.
    Alias(&'static str),
    Large,
    Text,
    /// Only names below it (RFC 4592 §2.2.2).
    Nothing,
    /// A server's addresses, if the zone's servers are within.
    Server(u8),
}

struct Row {
    /// As they stand in the name.
    labels: &'static [&'static [u8]],
    what: What,
}

const fn row(labels: &'static [&'static [u8]], what: What) -> Row {
    Row { labels, what }
}

/// Names of a zone below a top-level domain, in canonical order (RFC 4034 §6.1).
const ROWS: [Row; 16] = [
    row(&[b"alias"], What::Alias("www")),
    row(&[b"api"], What::Addresses),
    row(&[b"big"], What::Large),
    row(&[b"chain"], What::Alias("alias")),
    row(&[b"deep"], What::Nothing),
    row(&[b"host", b"deep"], What::Addresses),
    row(&[b"img"], What::Addresses),
    row(&[b"mail"], What::Addresses),
    row(&[b"ns1"], What::Server(0)),
    row(&[b"ns2"], What::Server(1)),
    row(&[b"ns3"], What::Server(2)),
    row(&[b"shop"], What::Addresses),
    row(&[b"text"], What::Text),
    row(&[b"wild"], What::Nothing),
    row(&[b"*", b"wild"], What::Addresses),
    row(&[b"www"], What::Addresses),
];

/// What a zone has for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The name is one of the zone's; a cut only if its zone is all of the name.
    Node(Node),
    /// The name is in a zone below.
    Below(Zone),
    /// A wildcard stands for the name; so many labels are those of its closest encloser.
    Wildcard(Node, usize),
    /// There is no such name; so many labels are those of its closest encloser.
    Absent(usize),
}

/// The records of a name and type.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    pub(crate) owner: NameBuf,
    pub(crate) rtype: Rtype,
    pub(crate) ttl: u32,
    pub(crate) data: Vec<Vec<u8>>,
}

impl World {
    /// Finds a name, which is at or below the zone's.
    pub(crate) fn find(&self, zone: Zone, labels: &Labels<'_>) -> Found {
        match zone {
            Zone::Root => match labels.count {
                0 => Found::Node(Node::Apex),
                count => match (self.tld_of(labels), self.server_in(zone, labels.at(0))) {
                    (Some(tld), _) if count == 1 => Found::Node(Node::Cut(Zone::Tld(tld))),
                    (Some(tld), _) => Found::Below(Zone::Tld(tld)),
                    (None, Some(server)) if count == 1 => Found::Node(Node::Server(server)),
                    (None, server) => Found::Absent(usize::from(server.is_some())),
                },
            },
            Zone::Tld(_) => match labels.count {
                ..=1 => Found::Node(Node::Apex),
                count => match (self.leaf_of(labels), self.server_in(zone, labels.at(1))) {
                    (Some(leaf), _) if count == 2 => Found::Node(Node::Cut(Zone::Leaf(leaf))),
                    (Some(leaf), _) => Found::Below(Zone::Leaf(leaf)),
                    (None, Some(server)) if count == 2 => Found::Node(Node::Server(server)),
                    (None, server) => Found::Absent(1 + usize::from(server.is_some())),
                },
            },
            Zone::Leaf(leaf) => self.find_row(leaf, labels),
        }
    }

    fn server_in(&self, zone: Zone, label: &[u8]) -> Option<u8> {
        read_server(label).filter(|server| *server < self.server_count(zone))
    }

    fn find_row(&self, leaf: u32, labels: &Labels<'_>) -> Found {
        const APEX: usize = 2;
        let below = labels.count.saturating_sub(APEX);
        if below == 0 {
            return Found::Node(Node::Apex);
        }
        let mut closest = 0;
        for (at, row) in ROWS.iter().enumerate().filter(|(_, row)| self.has_row(leaf, row.what)) {
            let common = row
                .labels
                .iter()
                .rev()
                .enumerate()
                .take_while(|(at, label)| labels.at(APEX + at).eq_ignore_ascii_case(label))
                .count();
            if common == row.labels.len() && common == below {
                return Found::Node(Node::Row(at));
            }
            // Names between a row and the apex are rows themselves.
            if common == row.labels.len() {
                closest = closest.max(common);
            }
        }
        let encloser = |at: &usize| ROWS[*at].labels.len() == closest + 1 && ROWS[*at].labels[0] == b"*";
        let is_below_it = |at: &usize| {
            let parent = &ROWS[*at].labels[1..];
            parent
                .iter()
                .rev()
                .enumerate()
                .all(|(at, label)| labels.at(APEX + at).eq_ignore_ascii_case(label))
        };
        match (0..ROWS.len()).filter(encloser).find(is_below_it) {
            Some(wildcard) => Found::Wildcard(Node::Row(wildcard), APEX + closest),
            None => Found::Absent(APEX + closest),
        }
    }

    fn has_row(&self, leaf: u32, what: What) -> bool {
        match what {
            What::Server(server) => {
                self.providers_of(leaf).is_none() && server < self.server_count(Zone::Leaf(leaf))
            }
            _ => true,
        }
    }

    /// Walks the names of a zone in canonical order.
    pub(crate) fn nodes(&self, zone: Zone) -> Vec<Node> {
        let servers = (0..self.server_count(zone)).map(Node::Server);
        let apex = std::iter::once(Node::Apex);
        let (tlds, zones) = (self.options().tlds, self.options().zones);
        match zone {
            Zone::Root => apex.chain(servers).chain((0..tlds).map(|tld| Node::Cut(Zone::Tld(tld)))).collect(),
            Zone::Tld(tld) => {
                let leaves = (tld..zones).step_by(tlds as usize);
                apex.chain(servers).chain(leaves.map(|leaf| Node::Cut(Zone::Leaf(leaf)))).collect()
            }
            Zone::Leaf(leaf) => {
                let rows = ROWS.iter().enumerate().filter(|(_, row)| self.has_row(leaf, row.what));
                apex.chain(rows.map(|(at, _)| Node::Row(at))).collect()
            }
        }
    }

    /// Returns the name of a node.
    pub(crate) fn owner(&self, zone: Zone, node: Node) -> NameBuf {
        match node {
            Node::Apex => self.apex(zone),
            Node::Server(server) => self.below(&server_label(server), zone),
            Node::Cut(child) => self.apex(child),
            Node::Row(at) => self.below_all(ROWS.get(at).map_or(&[], |row| row.labels), zone),
        }
    }

    /// Returns the types that a node has, but for those that only signed zones have.
    pub(crate) fn types(&self, zone: Zone, node: Node) -> Vec<Rtype> {
        let addresses = || match self.options().has_ipv6 {
            true => vec![Rtype::A, Rtype::AAAA],
            false => vec![Rtype::A],
        };
        match node {
            Node::Apex if self.is_signed(zone) && self.is_hashed(zone) => {
                vec![Rtype::NS, Rtype::SOA, Rtype::DNSKEY, Rtype::NSEC3PARAM]
            }
            Node::Apex if self.is_signed(zone) => vec![Rtype::NS, Rtype::SOA, Rtype::DNSKEY],
            Node::Apex => vec![Rtype::NS, Rtype::SOA],
            Node::Server(_) => addresses(),
            Node::Cut(child) if self.is_signed(child) => vec![Rtype::NS, Rtype::DS],
            Node::Cut(_) => vec![Rtype::NS],
            Node::Row(at) => match ROWS.get(at).map(|row| row.what) {
                Some(What::Addresses) => vec![Rtype::A, Rtype::AAAA],
                Some(What::Server(_)) => addresses(),
                Some(What::Alias(_)) => vec![Rtype::CNAME],
                Some(What::Large | What::Text) => vec![Rtype::TXT],
                Some(What::Nothing) | None => Vec::new(),
            },
        }
    }

    /// Returns the records of a node; `None` if it has none of the type.
    pub(crate) fn set(&self, zone: Zone, node: Node, rtype: Rtype) -> Option<Set> {
        let (ttl, data) = match (node, rtype) {
            (Node::Apex, Rtype::SOA) => (NEGATIVE_TTL, vec![self.soa(zone)]),
            (Node::Apex, Rtype::NS) => (NS_TTL, self.ns(zone)),
            (Node::Apex, Rtype::DNSKEY) if self.is_signed(zone) => (KEY_TTL, self.dnskeys(zone)),
            (Node::Apex, Rtype::NSEC3PARAM) if self.is_signed(zone) && self.is_hashed(zone) => {
                (0, vec![Nsec3Parameters::default().write()])
            }
            (Node::Cut(child), Rtype::NS) => (NS_TTL, self.ns(child)),
            (Node::Cut(child), Rtype::DS) if self.is_signed(child) => (KEY_TTL, vec![self.ds(child)]),
            (Node::Server(server), _) => (NS_TTL, vec![self.server_data(zone, server, rtype)?]),
            (Node::Row(at), _) => self.row_data(zone, at, rtype)?,
            _ => return None,
        };
        Some(Set { owner: self.owner(zone, node), rtype, ttl, data })
    }

    fn server_data(&self, zone: Zone, server: u8, rtype: Rtype) -> Option<Vec<u8>> {
        let address = self.server_address(zone, server);
        match rtype {
            Rtype::A => Some(address.octets().to_vec()),
            Rtype::AAAA if self.options().has_ipv6 => Some(Self::ipv6_of(address).octets().to_vec()),
            _ => None,
        }
    }

    fn ns(&self, zone: Zone) -> Vec<Vec<u8>> {
        let name = |server| self.server_name(zone, server).as_name().as_bytes().to_vec();
        let mut names: Vec<_> = (0..self.server_count(zone)).map(name).collect();
        names.dedup();
        names
    }

    fn soa(&self, zone: Zone) -> Vec<u8> {
        let mut data = self.server_name(zone, 0).as_name().as_bytes().to_vec();
        data.extend(self.below(b"hostmaster", zone).as_name().as_bytes());
        for number in [1, 7_200, 3_600, 1_209_600, NEGATIVE_TTL] {
            data.extend(number.to_be_bytes());
        }
        data
    }

    fn row_data(&self, zone: Zone, at: usize, rtype: Rtype) -> Option<(u32, Vec<Vec<u8>>)> {
        let Zone::Leaf(leaf) = zone else { return None };
        let ttl = HOST_TTLS[self.draw(Draw::Ttl, leaf.into()) as usize % HOST_TTLS.len()];
        let place = u64::from(leaf) << 8 | at as u64;
        let data = match (ROWS.get(at)?.what, rtype) {
            (What::Server(server), _) => return Some((NS_TTL, vec![self.server_data(zone, server, rtype)?])),
            (What::Addresses, Rtype::A) => self.host_ipv4(place).octets().to_vec(),
            (What::Addresses, Rtype::AAAA) => self.host_ipv6(place).octets().to_vec(),
            (What::Alias(name), Rtype::CNAME) => {
                let target = self.draw(Draw::Target, place) % u64::from(self.options().zones);
                let target = self.below(name.as_bytes(), Zone::Leaf(target as u32));
                target.as_name().as_bytes().to_vec()
            }
            (What::Large, Rtype::TXT) => {
                let text = [b'a' + (leaf % 26) as u8; LARGE_OCTETS];
                text.chunks(255).flat_map(|part| [&[part.len() as u8], part].concat()).collect()
            }
            (What::Text, Rtype::TXT) => {
                let text = format!("of zone {leaf}");
                [&[text.len() as u8], text.as_bytes()].concat()
            }
            _ => return None,
        };
        Some((ttl, vec![data]))
    }

    /// Returns an address of 198.18.0.0/15, which no server has.
    fn host_ipv4(&self, place: u64) -> Ipv4Addr {
        let [_, b, c, d] = (self.draw(Draw::Address, place) as u32).to_be_bytes();
        Ipv4Addr::new(198, 18 | (b & 1), c, d)
    }

    fn host_ipv6(&self, place: u64) -> Ipv6Addr {
        Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(self.draw(Draw::Address, place)))
    }

    /// Returns the zone that answers for a name, of those that exist: the lowest at or above it.
    pub(crate) fn closest_zone(&self, qname: Name<'_>) -> Zone {
        let labels = Labels::new(qname);
        match (self.leaf_of(&labels), self.tld_of(&labels)) {
            (Some(leaf), _) => Zone::Leaf(leaf),
            (None, Some(tld)) => Zone::Tld(tld),
            (None, None) => Zone::Root,
        }
    }
}
