//! Proofs of absence: the chain of a zone's names, or of their hashes.

use std::borrow::Cow;
use std::sync::OnceLock;

use dnssec::{Nsec3Hash, Nsec3Parameters, write_bitmap};
use wire::canonical::Key;
use wire::{Name, NameBuf, Rtype, text};

use super::contents::{Node, Set};
use super::{World, Zone};

/// The chains of large zones, once they are made; those of others are made each time.
#[derive(Debug)]
pub(crate) struct Chains {
    root: OnceLock<Chain>,
    tlds: Vec<OnceLock<Chain>>,
}

impl Chains {
    pub(crate) fn new(tlds: u32) -> Self {
        Self { root: OnceLock::new(), tlds: (0..tlds).map(|_| OnceLock::new()).collect() }
    }
}

/// The names of a zone that have a proof, in the order of the chain.
#[derive(Clone, Debug)]
struct Chain {
    nodes: Vec<Node>,
    /// The hash of each, where they are hashed.
    hashes: Option<Vec<Nsec3Hash>>,
}

/// What is proved.
pub(crate) enum Absence<'n> {
    /// A name that exists has no records of a type.
    NoData(Name<'n>),
    /// A name does not exist, nor a wildcard for it; so many labels are its closest encloser's.
    Name(Name<'n>, usize),
    /// A name does not exist, but this wildcard does; so many labels are its closest encloser's.
    OnlyWildcard(Name<'n>, usize),
    /// The same, and the wildcard has no records of a type.
    NoDataAtWildcard(Name<'n>, usize),
}

/// Returns the name of a wildcard.
fn wildcard(closest: Name<'_>) -> NameBuf {
    NameBuf::below(b"\x01*", closest).unwrap_or_else(|_| closest.to_buf())
}

impl World {
    /// Returns how a zone hashes, if it does.
    fn parameters(&self, zone: Zone) -> Option<Nsec3Parameters> {
        self.is_hashed(zone)
            .then(|| Nsec3Parameters { opts_out: self.opts_out(zone), ..Nsec3Parameters::default() })
    }

    /// Returns whether a zone leaves unsigned delegations out of its chain.
    pub(crate) fn opts_out(&self, zone: Zone) -> bool {
        matches!(zone, Zone::Tld(_)) && self.is_hashed(zone)
    }

    fn chain(&self, zone: Zone) -> Cow<'_, Chain> {
        match zone {
            Zone::Root => Cow::Borrowed(self.chains.root.get_or_init(|| self.make_chain(zone))),
            Zone::Tld(tld) => match self.chains.tlds.get(tld as usize) {
                Some(place) => Cow::Borrowed(place.get_or_init(|| self.make_chain(zone))),
                None => Cow::Owned(self.make_chain(zone)),
            },
            Zone::Leaf(_) => Cow::Owned(self.make_chain(zone)),
        }
    }

    fn make_chain(&self, zone: Zone) -> Chain {
        let nodes = self.nodes(zone);
        let Some(parameters) = self.parameters(zone) else {
            let has_records = |node: &Node| !self.types(zone, *node).is_empty();
            return Chain { nodes: nodes.into_iter().filter(has_records).collect(), hashes: None };
        };
        // RFC 5155 §6: unsigned delegations are left out, and nothing else.
        let is_left_out =
            |node: &Node| parameters.opts_out && matches!(node, Node::Cut(child) if !self.is_signed(*child));
        let mut hashed: Vec<(Nsec3Hash, Node)> = nodes
            .into_iter()
            .filter(|node| !is_left_out(node))
            .map(|node| (parameters.hash(self.owner(zone, node).as_name()), node))
            .collect();
        hashed.sort_unstable_by_key(|(hash, _)| *hash);
        let (hashes, nodes) = hashed.into_iter().unzip();
        Chain { nodes, hashes: Some(hashes) }
    }

    /// Returns the place in a chain of the proof for a name: its own, or the one that covers it.
    fn place(&self, zone: Zone, chain: &Chain, name: Name<'_>) -> (usize, Option<Nsec3Hash>) {
        let count = chain.nodes.len();
        match (&chain.hashes, self.parameters(zone)) {
            (Some(hashes), Some(parameters)) => {
                let hash = parameters.hash(name);
                let after = hashes.partition_point(|other| *other <= hash);
                ((after + count - 1) % count, Some(hash))
            }
            _ => {
                let key = Key::new(name.as_bytes());
                let is_at_or_before = |node: &Node| {
                    let owner = self.owner(zone, *node);
                    Key::new(owner.as_name().as_bytes()).as_bytes() <= key.as_bytes()
                };
                // The apex comes before all names of the zone.
                (chain.nodes.partition_point(is_at_or_before).saturating_sub(1), None)
            }
        }
    }

    /// Returns the records that prove something, each once.
    pub(crate) fn proof(&self, zone: Zone, absence: &Absence<'_>) -> Vec<Set> {
        let chain = self.chain(zone);
        let chain = chain.as_ref();
        let is_hashed = chain.hashes.is_some();
        let apex = self.apex(zone);
        let mut names: Vec<NameBuf> = Vec::with_capacity(3);
        match *absence {
            Absence::NoData(name) => {
                let (place, hash) = self.place(zone, chain, name);
                let is_there = match (hash, &chain.hashes) {
                    (Some(hash), Some(hashes)) => hashes.get(place) == Some(&hash),
                    _ => true,
                };
                // RFC 5155 §7.2.4: nothing matches a delegation that is left out.
                if !is_there {
                    names.push(apex);
                }
                names.push(name.to_buf());
            }
            Absence::Name(name, closest) => {
                let (closest, next) = (name.suffix(closest), name.suffix(closest + 1));
                if is_hashed {
                    names.extend([closest.to_buf(), next.to_buf()]);
                } else {
                    names.push(name.to_buf());
                }
                names.push(wildcard(closest));
            }
            Absence::OnlyWildcard(name, closest) if is_hashed => {
                names.push(name.suffix(closest + 1).to_buf());
            }
            Absence::OnlyWildcard(name, _) => names.push(name.to_buf()),
            Absence::NoDataAtWildcard(name, closest) => {
                let (closest, next) = (name.suffix(closest), name.suffix(closest + 1));
                if is_hashed {
                    names.extend([closest.to_buf(), next.to_buf()]);
                } else {
                    names.push(name.to_buf());
                }
                names.push(wildcard(closest));
            }
        }
        let mut places: Vec<usize> =
            names.iter().map(|name| self.place(zone, chain, name.as_name()).0).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| self.link(zone, chain, place)).collect()
    }

    /// Returns the record of a place in a chain.
    fn link(&self, zone: Zone, chain: &Chain, place: usize) -> Set {
        let next = (place + 1) % chain.nodes.len();
        let node = chain.nodes[place];
        let mut types = self.types(zone, node);
        // At an unsigned cut, only the NSEC is signed.
        let is_unsigned_cut = matches!(node, Node::Cut(child) if !self.is_signed(child));
        let ttl = super::contents::NEGATIVE_TTL;
        match (&chain.hashes, self.parameters(zone)) {
            (Some(hashes), Some(parameters)) => {
                if !types.is_empty() && !is_unsigned_cut {
                    types.push(Rtype::RRSIG);
                }
                let mut label = String::with_capacity(32);
                text::write_base32_hex(&mut label, &hashes[place]).expect("a string takes all");
                label.make_ascii_lowercase();
                let data = vec![parameters.write_nsec3(&hashes[next], types)];
                Set { owner: self.below(label.as_bytes(), zone), rtype: Rtype::NSEC3, ttl, data }
            }
            _ => {
                types.extend([Rtype::RRSIG, Rtype::NSEC]);
                let mut data = self.owner(zone, chain.nodes[next]).as_name().as_bytes().to_vec();
                write_bitmap(types, &mut data);
                Set { owner: self.owner(zone, node), rtype: Rtype::NSEC, ttl, data: vec![data] }
            }
        }
    }
}
