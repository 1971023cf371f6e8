//! Makes local names ready to answer, once per configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use wire::{Class, HashKey, Name, NameBuf, Rtype, Ttl};

use super::{Answers, Below, LocalData, Set};
use crate::answer::records::shorten;
use crate::query::names::NameTable;

/// Collects local names; [`LocalBuilder::compile`] makes them ready to answer.
#[derive(Default)]
pub struct LocalBuilder {
    nodes: BTreeMap<Vec<u8>, Node>,
}

#[derive(Default)]
struct Node {
    /// In wire form, as it was given first: no longer than it is, as there may be many.
    name: Option<Box<[u8]>>,
    /// What the name itself has; answered for names below it too, if `below` says so.
    records: Vec<(Rtype, Ttl, Vec<u8>)>,
    below: Below,
    negative_ttl: Option<Ttl>,
}

impl Node {
    fn name(&self) -> Option<Name<'_>> {
        let (name, _) = Name::parse(self.name.as_deref()?).ok()?;
        Some(name)
    }
}

impl LocalBuilder {
    /// Returns a builder without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that `name` has `address`.
    pub fn address(&mut self, name: Name<'_>, address: IpAddr, ttl: Ttl) {
        match address {
            IpAddr::V4(v4) => self.record(name, Rtype::A, ttl, &v4.octets()),
            IpAddr::V6(v6) => self.record(name, Rtype::AAAA, ttl, &v6.octets()),
        }
    }

    /// Says that the reverse name of `address` points to `name`; the first name wins, as in a hosts
    /// file.
    pub fn pointer(&mut self, address: IpAddr, name: Name<'_>, ttl: Ttl) {
        let reverse = reverse_name(address);
        let has_one = self
            .nodes
            .get(reverse.as_name().to_folded().as_bytes())
            .is_some_and(|node| node.records.iter().any(|(rtype, _, _)| *rtype == Rtype::PTR));
        if !has_one {
            self.record(reverse.as_name(), Rtype::PTR, ttl, name.as_bytes());
        }
    }

    /// Adds a record; names in `rdata` are not compressed. A record that is there already is not
    /// added again.
    pub fn record(&mut self, name: Name<'_>, rtype: Rtype, ttl: Ttl, rdata: &[u8]) {
        let node = self.node(name);
        if !node.records.iter().any(|(t, _, data)| *t == rtype && data == rdata) {
            node.records.push((rtype, ttl, rdata.into()));
        }
    }

    /// Says what names below `name` get, and how long negative answers there may be kept.
    pub fn below(&mut self, name: Name<'_>, below: Below, negative_ttl: Ttl) {
        let node = self.node(name);
        node.below = below;
        node.negative_ttl = Some(negative_ttl);
    }

    /// Says that `name` exists, whether or not it has records.
    pub fn exists(&mut self, name: Name<'_>) {
        self.node(name);
    }

    /// Returns whether `name` has records or a zone here.
    pub fn knows(&self, name: Name<'_>) -> bool {
        self.nodes.contains_key(name.to_folded().as_bytes())
    }

    /// Returns whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn node(&mut self, name: Name<'_>) -> &mut Node {
        let node = self.nodes.entry(name.to_folded().as_bytes().to_vec()).or_default();
        node.name.get_or_insert_with(|| name.as_bytes().into());
        node
    }

    /// Compiles the names. Names between a zone and a name below it exist too (RFC 8020): they get
    /// NODATA.
    pub fn compile(mut self, key: HashKey, default_negative_ttl: Ttl) -> LocalData {
        self.add_empty_non_terminals();
        let (mut names, mut answers, mut sets, mut bodies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for node in self.nodes.values() {
            let Some(name) = node.name() else { continue };
            let first_set = sets.len() as u32;
            let mut types: Vec<Rtype> = Vec::new();
            for (rtype, _, _) in &node.records {
                if !types.contains(rtype) {
                    types.push(*rtype);
                }
            }
            for rtype in types {
                let at = bodies.len() as u32;
                let mut count = 0;
                for (_, ttl, rdata) in node.records.iter().filter(|(t, _, _)| *t == rtype) {
                    count += 1;
                    // The owner is always the name asked for, which stands right after the header.
                    bodies.extend_from_slice(&[0xc0, 12]);
                    bodies.extend_from_slice(&rtype.0.to_be_bytes());
                    bodies.extend_from_slice(&Class::IN.0.to_be_bytes());
                    bodies.extend_from_slice(&ttl.seconds().to_be_bytes());
                    bodies.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
                    bodies.extend_from_slice(rdata);
                }
                // Names below this one make longer questions: there, pointers would lead elsewhere.
                if node.below != Below::Same {
                    shorten(&mut bodies, at as usize, name, rtype);
                }
                sets.push(Set { rtype, count, at, len: bodies.len() as u32 - at });
            }
            answers.push(Answers {
                first_set,
                set_count: sets.len() as u32 - first_set,
                below: node.below,
                negative_ttl: node.negative_ttl.unwrap_or(default_negative_ttl),
            });
            names.push((name, node.below != Below::Unknown));
        }
        LocalData {
            names: NameTable::compile_from(key, names.into_iter()),
            answers: answers.into_boxed_slice(),
            sets: sets.into_boxed_slice(),
            bodies: bodies.into_boxed_slice(),
        }
    }

    fn add_empty_non_terminals(&mut self) {
        let holds = |node: &Node| node.below == Below::Nothing;
        let held: BTreeSet<&[u8]> =
            self.nodes.iter().filter(|(_, node)| holds(node)).map(|(name, _)| name.as_slice()).collect();
        // Whether some name above one says that what is below it and not here does not exist. Most
        // names have none, and their names above are not looked at one by one.
        let is_held = |name: &[u8]| ancestors(name).any(|above| held.contains(above));
        let below: Vec<NameBuf> = self
            .nodes
            .iter()
            .filter(|(name, _)| is_held(name))
            .filter_map(|(_, node)| Some(node.name()?.to_buf()))
            .collect();
        let mut between = Vec::new();
        for name in &below {
            let above = std::iter::successors(name.as_name().parent(), |above| above.parent());
            between.extend(above.take_while(|above| is_held(above.to_folded().as_bytes())).map(Name::to_buf));
        }
        for name in between {
            self.node(name.as_name());
        }
    }
}

/// Returns the names above one, the nearest first; all of them in wire form.
fn ancestors(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(parent_of(name), |above| parent_of(above))
}

/// Returns the name above one; `None` of the root.
fn parent_of(name: &[u8]) -> Option<&[u8]> {
    match name {
        [] | [0] => None,
        [length, rest @ ..] => rest.get(usize::from(*length)..),
    }
}

/// Returns the name under in-addr.arpa or ip6.arpa (RFC 1035 §3.5, RFC 3596 §2.5).
pub fn reverse_name(address: IpAddr) -> NameBuf {
    let mut name = NameBuf::root();
    let mut push = |label: &[u8]| {
        // At most 34 labels of at most three octets: it always fits.
        let _ = name.push_label(label);
    };
    match address {
        IpAddr::V4(v4) => {
            for octet in v4.octets().iter().rev() {
                push(octet.to_string().as_bytes());
            }
            push(b"in-addr");
        }
        IpAddr::V6(v6) => {
            const DIGITS: [u8; 16] = *b"0123456789abcdef";
            for octet in v6.octets().iter().rev() {
                for nibble in [octet & 15, octet >> 4] {
                    push(DIGITS.get(usize::from(nibble)..=usize::from(nibble)).unwrap_or(b"0"));
                }
            }
            push(b"ip6");
        }
    }
    push(b"arpa");
    name
}
