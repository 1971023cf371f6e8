//! A zone that is being signed: all its records, by name in canonical order, each set with its
//! signatures.
//!
//! What keeps this right: the signatures of a set are those of the records that it has now.
//! Whatever changes a set takes its signatures away, so signing again makes only those that are
//! missing.

use std::collections::BTreeMap;

use wire::canonical::Key;
use wire::{Name, NameBuf, Rtype};

use crate::nsec3::{self, Nsec3Hash};
use crate::rrsig::Rrsig;

/// The records of one owner and type, and their signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    pub(crate) rtype: Rtype,
    pub(crate) ttl: u32,
    /// In canonical order, letter case as it came.
    pub(crate) records: Vec<Box<[u8]>>,
    /// The data of RRSIG records.
    pub(crate) signatures: Vec<Box<[u8]>>,
}

impl Set {
    fn new(rtype: Rtype) -> Self {
        Self { rtype, ttl: u32::MAX, records: Vec::new(), signatures: Vec::new() }
    }

    /// Returns the type.
    pub const fn rtype(&self) -> Rtype {
        self.rtype
    }

    /// Returns the TTL.
    pub const fn ttl(&self) -> u32 {
        self.ttl
    }

    /// Walks the data of the records.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().map(|record| &**record)
    }

    /// Walks the data of the signatures.
    pub fn signatures(&self) -> impl Iterator<Item = &[u8]> {
        self.signatures.iter().map(|signature| &**signature)
    }

    /// Adds a record, unless it is there already.
    fn push(&mut self, rdata: &[u8]) -> bool {
        if self.records.is_empty() {
            self.records.push(rdata.into());
            return true;
        }
        let new = canonical(self.rtype, rdata);
        match self.records.binary_search_by(|record| canonical(self.rtype, record).cmp(&new)) {
            Ok(_) => false,
            Err(place) => {
                self.records.insert(place, rdata.into());
                true
            }
        }
    }

    /// Takes over signatures if the records are the same.
    fn adopt(&mut self, other: &Self) {
        if self.ttl == other.ttl && self.records == other.records {
            for signature in &other.signatures {
                if !self.signatures.contains(signature) {
                    self.signatures.push(signature.clone());
                }
            }
        }
    }

    /// Makes these the records; says whether that changed anything.
    fn become_set(&mut self, ttl: u32, records: Vec<Vec<u8>>) -> bool {
        let mut new = Self { ttl, ..Self::new(self.rtype) };
        for record in records {
            new.push(&record);
        }
        if self.ttl == new.ttl && self.records == new.records {
            return false;
        }
        *self = new;
        true
    }
}

/// Returns data in canonical form; data that cannot be read stays as it is.
fn canonical(rtype: Rtype, rdata: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rdata.len());
    if wire::rdata::write_canonical(rtype, rdata, 0..rdata.len(), &mut out).is_err() {
        out.clear();
        out.extend_from_slice(rdata);
    }
    out
}

/// Where a name stands in its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The zone speaks for it.
    Within,
    /// A delegation: only DS and the proof of absence are the zone's own.
    Cut,
    /// Below a delegation or a DNAME: nothing is signed.
    Hidden,
}

/// A name and its sets.
#[derive(Debug)]
pub(crate) struct Node {
    /// In wire form, letter case as it first came.
    pub(crate) owner: Box<[u8]>,
    /// By type, ascending.
    pub(crate) sets: Vec<Set>,
    pub(crate) standing: Standing,
}

impl PartialEq for Node {
    /// Compares records and signatures; where the name stands follows from all of them.
    fn eq(&self, other: &Self) -> bool {
        self.owner == other.owner && self.sets == other.sets
    }
}
impl Eq for Node {}

impl Node {
    pub(crate) fn owner(&self) -> Name<'_> {
        Name::parse(&self.owner).map_or(Name::ROOT, |(name, _)| name)
    }

    pub(crate) fn set(&self, rtype: Rtype) -> Option<&Set> {
        let at = self.sets.binary_search_by_key(&rtype, |set| set.rtype).ok()?;
        self.sets.get(at).filter(|set| !set.records.is_empty())
    }

    /// Returns the set of a type, a new one if there is none; `None` cannot happen.
    fn set_mut(&mut self, rtype: Rtype) -> Option<&mut Set> {
        let at = match self.sets.binary_search_by_key(&rtype, |set| set.rtype) {
            Ok(at) => at,
            Err(at) => {
                self.sets.insert(at, Set::new(rtype));
                at
            }
        };
        self.sets.get_mut(at)
    }

    /// Makes these the records of a type; none removes it.
    pub(crate) fn replace(&mut self, rtype: Rtype, ttl: u32, records: Vec<Vec<u8>>) -> bool {
        if !records.is_empty() {
            return self.set_mut(rtype).is_some_and(|set| set.become_set(ttl, records));
        }
        let before = self.sets.len();
        self.sets.retain(|set| set.rtype != rtype);
        self.sets.len() != before
    }

    /// Returns whether the node has records at all.
    pub(crate) fn has_records(&self) -> bool {
        self.sets.iter().any(|set| !set.records.is_empty())
    }
}

/// A zone that is being signed.
#[derive(Debug, PartialEq, Eq)]
pub struct Tree {
    apex: NameBuf,
    /// By key of the labels below the apex.
    pub(crate) names: BTreeMap<Box<[u8]>, Node>,
    /// The NSEC3 records.
    pub(crate) hashed: BTreeMap<Nsec3Hash, Set>,
}

/// What is told of each record: owner, type, TTL, data.
pub type Record<'r> = (Name<'r>, Rtype, u32, &'r [u8]);

impl Tree {
    /// Begins a zone without records.
    pub fn new(apex: Name<'_>) -> Self {
        Self { apex: apex.to_buf(), names: BTreeMap::new(), hashed: BTreeMap::new() }
    }

    /// Returns the apex.
    pub fn apex(&self) -> Name<'_> {
        self.apex.as_name()
    }

    /// Returns the number of names with records.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn key_of(&self, owner: Name<'_>) -> Option<Box<[u8]>> {
        if !owner.is_at_or_below(self.apex()) {
            return None;
        }
        let labels = owner.len() - self.apex().len();
        Some(Key::new(owner.as_bytes().get(..labels).unwrap_or(&[])).as_bytes().into())
    }

    fn node_mut(&mut self, owner: Name<'_>) -> Option<&mut Node> {
        let key = self.key_of(owner)?;
        Some(self.names.entry(key).or_insert_with(|| Node {
            owner: owner.as_bytes().into(),
            sets: Vec::new(),
            standing: Standing::Within,
        }))
    }

    pub(crate) fn apex_node(&self) -> Option<&Node> {
        self.names.get(&[][..])
    }

    pub(crate) fn apex_node_mut(&mut self) -> Option<&mut Node> {
        self.names.get_mut(&[][..])
    }

    /// Takes a record of a zone that is being read: signatures go to what they cover and stay. A
    /// record out of the zone is left out; says whether it was taken.
    pub fn push(&mut self, owner: Name<'_>, rtype: Rtype, ttl: u32, rdata: &[u8]) -> bool {
        let covered = match rtype {
            Rtype::RRSIG => match Rrsig::parse(rdata) {
                Some(rrsig) => rrsig.covered,
                None => return false,
            },
            rtype => rtype,
        };
        if !owner.is_at_or_below(self.apex()) {
            return false;
        }
        let set = if covered == Rtype::NSEC3
            && let Some(hash) = nsec3::hash_of(owner)
        {
            Some(self.hashed.entry(hash).or_insert_with(|| Set::new(Rtype::NSEC3)))
        } else {
            self.node_mut(owner).and_then(|node| node.set_mut(covered))
        };
        let Some(set) = set else { return false };
        if rtype == Rtype::RRSIG {
            if !set.signatures.iter().any(|signature| **signature == *rdata) {
                set.signatures.push(rdata.into());
            }
            return true;
        }
        set.ttl = set.ttl.min(ttl);
        set.push(rdata)
    }

    /// Returns a set.
    pub fn set(&self, owner: Name<'_>, rtype: Rtype) -> Option<&Set> {
        self.names.get(&self.key_of(owner)?)?.set(rtype)
    }

    /// Makes these the records of a name and type; none removes the set. Says whether that changed
    /// anything; if it did, the set's signatures are gone.
    pub fn replace(&mut self, owner: Name<'_>, rtype: Rtype, ttl: u32, records: Vec<Vec<u8>>) -> bool {
        let Some(key) = self.key_of(owner) else { return false };
        if records.is_empty() {
            let Some(node) = self.names.get_mut(&key) else { return false };
            let has_changed = node.replace(rtype, ttl, records);
            if !node.has_records() {
                self.names.remove(&key);
            }
            return has_changed;
        }
        self.node_mut(owner).is_some_and(|node| node.replace(rtype, ttl, records))
    }

    /// Removes all that signing makes: signatures, NSEC, NSEC3, NSEC3PARAM. Keys and what stands
    /// for them stay.
    pub fn strip(&mut self) {
        self.hashed.clear();
        for node in self.names.values_mut() {
            node.sets.retain_mut(|set| {
                set.signatures.clear();
                !matches!(set.rtype, Rtype::NSEC | Rtype::NSEC3PARAM)
            });
        }
        self.names.retain(|_, node| node.has_records());
    }

    /// Takes over the signatures of those sets that are the same in `previous`.
    pub fn adopt(&mut self, previous: &Self) {
        for (key, node) in &mut self.names {
            let Some(before) = previous.names.get(key) else { continue };
            for set in &mut node.sets {
                if let Ok(at) = before.sets.binary_search_by_key(&set.rtype, |other| other.rtype)
                    && let Some(other) = before.sets.get(at)
                {
                    set.adopt(other);
                }
            }
        }
        for (hash, set) in &mut self.hashed {
            if let Some(other) = previous.hashed.get(hash) {
                set.adopt(other);
            }
        }
    }

    /// Returns whether it has NSEC3 records.
    pub fn has_hashes(&self) -> bool {
        !self.hashed.is_empty()
    }

    /// Returns the largest TTL of the zone.
    pub fn ttl_max(&self) -> u32 {
        let sets = self.names.values().flat_map(|node| &node.sets);
        sets.filter(|set| !set.records.is_empty()).map(|set| set.ttl).max().unwrap_or(0)
    }

    /// Hands out every record: the SOA first, then name by name in canonical order, signatures
    /// after what they cover, NSEC3 records last.
    pub fn for_each_record(&self, mut f: impl FnMut(Record<'_>)) {
        let mut each = |owner: Name<'_>, set: &Set| {
            if set.records.is_empty() {
                return;
            }
            set.records().for_each(|rdata| f((owner, set.rtype, set.ttl, rdata)));
            set.signatures().for_each(|rdata| f((owner, Rtype::RRSIG, set.ttl, rdata)));
        };
        for node in self.names.values() {
            let owner = node.owner();
            for set in node.sets.iter().filter(|set| set.rtype == Rtype::SOA) {
                each(owner, set);
            }
            for set in node.sets.iter().filter(|set| set.rtype != Rtype::SOA) {
                each(owner, set);
            }
        }
        for (hash, set) in &self.hashed {
            if let Some(owner) = nsec3::owner_of(hash, self.apex()) {
                each(owner.as_name(), set);
            }
        }
    }

    /// Returns the SOA's data and TTL.
    pub fn soa(&self) -> Option<(Soa<'_>, u32)> {
        let set = self.apex_node()?.set(Rtype::SOA)?;
        let soa = Soa::parse(set.records.first()?)?;
        Some((soa, set.ttl))
    }

    /// Gives the zone another serial; says whether it has a SOA.
    pub fn set_serial(&mut self, serial: u32) -> bool {
        let Some((soa, ttl)) = self.soa() else { return false };
        let (mut rdata, at) = (soa.rdata.to_vec(), soa.numbers_at);
        if let Some(place) = rdata.get_mut(at..at + 4) {
            place.copy_from_slice(&serial.to_be_bytes());
        }
        self.apex_node_mut().is_some_and(|node| {
            node.replace(Rtype::SOA, ttl, vec![rdata]);
            true
        })
    }

    /// Finds out where each name stands.
    pub(crate) fn settle(&mut self) {
        let mut cover: Option<Box<[u8]>> = None;
        for (key, node) in &mut self.names {
            if let Some(above) = &cover
                && key.starts_with(above)
                // A zero begins each label, so this is a name below and not one that begins alike.
                && key.get(above.len()) == Some(&0)
            {
                node.standing = Standing::Hidden;
                continue;
            }
            let is_cut = !key.is_empty() && node.set(Rtype::NS).is_some();
            node.standing = if is_cut { Standing::Cut } else { Standing::Within };
            cover = (is_cut || node.set(Rtype::DNAME).is_some()).then(|| key.clone());
        }
    }
}

/// The data of a SOA.
#[derive(Clone, Copy, Debug)]
pub struct Soa<'a> {
    rdata: &'a [u8],
    numbers_at: usize,
}

impl<'a> Soa<'a> {
    /// Takes the data of a SOA, names in full.
    pub fn parse(rdata: &'a [u8]) -> Option<Self> {
        let (_, rest) = Name::parse(rdata).ok()?;
        let (_, numbers) = Name::parse(rest).ok()?;
        (numbers.len() == 20).then(|| Self { rdata, numbers_at: rdata.len() - 20 })
    }

    fn number(self, at: usize) -> u32 {
        let octets = self.rdata.get(self.numbers_at + at..).and_then(|rest| rest.first_chunk());
        octets.map_or(0, |octets| u32::from_be_bytes(*octets))
    }

    /// Returns the serial.
    pub fn serial(self) -> u32 {
        self.number(0)
    }

    /// Returns the seconds after which a secondary gives up.
    pub fn expire(self) -> u32 {
        self.number(12)
    }

    /// Returns the MINIMUM: with the SOA's TTL, what bounds negative answers.
    pub fn minimum(self) -> u32 {
        self.number(16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_cuts_and_dnames_are_hidden() {
        let apex = NameBuf::from_text("example.org").expect("a name");
        let mut tree = Tree::new(apex.as_name());
        let mut push = |owner: &str, rtype, rdata: &[u8]| {
            let owner = NameBuf::from_text_below(owner, apex.as_name()).expect("a name");
            assert!(tree.push(owner.as_name(), rtype, 60, rdata), "{owner}");
        };
        push("@", Rtype::NS, b"\x01a\x00");
        push("sub", Rtype::NS, b"\x01a\x00");
        push("a.sub", Rtype::A, &[1; 4]);
        push("sub-not", Rtype::A, &[1; 4]);
        push("d", Rtype::DNAME, b"\x01a\x00");
        push("b.d", Rtype::A, &[1; 4]);
        push("d0", Rtype::A, &[1; 4]);
        assert!(!tree.push(Name::ROOT, Rtype::A, 60, &[1; 4]));
        tree.settle();
        let found: Vec<(String, Standing)> =
            tree.names.values().map(|node| (node.owner().to_string(), node.standing)).collect();
        let expect = [
            ("example.org.", Standing::Within),
            ("d.example.org.", Standing::Within),
            ("b.d.example.org.", Standing::Hidden),
            ("d0.example.org.", Standing::Within),
            ("sub.example.org.", Standing::Cut),
            ("a.sub.example.org.", Standing::Hidden),
            ("sub-not.example.org.", Standing::Within),
        ]
        .map(|(name, standing)| (name.to_owned(), standing));
        assert_eq!(found, expect);
    }

    #[test]
    fn a_set_that_changes_loses_its_signatures() {
        let apex = NameBuf::from_text("example.org").expect("a name");
        let mut tree = Tree::new(apex.as_name());
        let rrsig = [&[0, 1, 13, 2, 0, 0, 0, 60][..], &[0; 10], apex.as_name().as_bytes(), &[9; 8]].concat();
        // A signature may stand before what it covers.
        assert!(tree.push(apex.as_name(), Rtype::RRSIG, 60, &rrsig));
        assert!(tree.push(apex.as_name(), Rtype::A, 60, &[1; 4]));
        let signatures = |tree: &Tree| tree.set(apex.as_name(), Rtype::A).map(|set| set.signatures().count());
        assert_eq!(signatures(&tree), Some(1));
        assert!(!tree.replace(apex.as_name(), Rtype::A, 60, vec![vec![1; 4]]));
        assert_eq!(signatures(&tree), Some(1));
        assert!(tree.replace(apex.as_name(), Rtype::A, 61, vec![vec![1; 4]]));
        assert_eq!(signatures(&tree), Some(0));
        assert!(tree.replace(apex.as_name(), Rtype::A, 61, Vec::new()));
        assert!(tree.is_empty());
    }
}
