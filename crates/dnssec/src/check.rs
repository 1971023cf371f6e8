//! Checks a signed zone as a whole: every signature, and that the proofs of absence leave no gap.

use std::collections::BTreeSet;

use wire::{Name, Rtype};

use crate::bitmap::write_bitmap;
use crate::dnskey::Dnskey;
use crate::nsec3::{Nsec3Hash, Nsec3Parameters, next_and_types, owner_of};
use crate::rrset::Rrset;
use crate::sign::types_of;
use crate::tree::{Node, Set, Standing, Tree};
use crate::verify::{Budget, Unverified, verify_rrset};

/// Signatures of one RRset that are checked: a file is not an attacker.
const PER_RRSET_MAX: u32 = 64;

/// Returns what is wrong with a signed zone at the time `now`, in words, at most `faults_max`.
///
/// Every signature counts: an RRset with a good and a bad one is at fault for the bad one.
pub fn check_tree(tree: &mut Tree, now: u32, faults_max: usize) -> Vec<String> {
    tree.settle();
    let tree = &*tree;
    let mut faults = Faults { found: Vec::new(), most: faults_max };
    let apex = tree.apex();
    let Some(dnskeys) = tree.set(apex, Rtype::DNSKEY) else {
        faults.add(|| "there is no DNSKEY at the apex".to_owned());
        return faults.found;
    };
    let keys: Vec<Dnskey<'_>> = dnskeys.records().filter_map(Dnskey::parse).collect();
    for node in tree.names.values() {
        for set in node.sets.iter().filter(|set| !set.records.is_empty()) {
            let is_signed = match node.standing {
                Standing::Within => true,
                Standing::Cut => matches!(set.rtype, Rtype::DS | Rtype::NSEC),
                Standing::Hidden => false,
            };
            match is_signed {
                true => check_set(apex, node.owner(), set, &keys, now, &mut faults),
                false if !set.signatures.is_empty() => faults.add(|| {
                    format!("{} {}: signed, although the zone does not speak for it", node.owner(), set.rtype)
                }),
                false => {}
            }
        }
    }
    for (hash, set) in &tree.hashed {
        if let Some(owner) = owner_of(hash, apex) {
            check_set(apex, owner.as_name(), set, &keys, now, &mut faults);
        }
    }
    let parameters =
        tree.set(apex, Rtype::NSEC3PARAM).and_then(|set| set.records().find_map(Nsec3Parameters::parse));
    match parameters {
        Some(parameters) => check_hashes(tree, &parameters, &mut faults),
        None => check_names(tree, &mut faults),
    }
    faults.found
}

struct Faults {
    found: Vec<String>,
    most: usize,
}

impl Faults {
    fn add(&mut self, what: impl FnOnce() -> String) {
        if self.found.len() < self.most {
            self.found.push(what());
        }
    }
}

fn check_set(apex: Name<'_>, owner: Name<'_>, set: &Set, keys: &[Dnskey<'_>], now: u32, faults: &mut Faults) {
    let Ok(rrset) = Rrset::of(owner, set.rtype, set.records()) else {
        return faults.add(|| format!("{owner} {}: data that cannot be read", set.rtype));
    };
    if set.signatures.is_empty() {
        return faults.add(|| format!("{owner} {}: {}", set.rtype, Unverified::Unsigned));
    }
    let mut budget = Budget::new(PER_RRSET_MAX);
    for signature in set.signatures() {
        if let Err(unverified) = verify_rrset(&rrset, [signature], apex, keys, now, &mut budget) {
            faults.add(|| format!("{owner} {}: {unverified}", set.rtype));
        }
    }
}

/// Returns whether a node belongs into a chain of names.
fn is_in_chain(node: &Node) -> bool {
    node.standing != Standing::Hidden
        && node.sets.iter().any(|set| !set.records.is_empty() && set.rtype != Rtype::NSEC)
}

fn check_names(tree: &Tree, faults: &mut Faults) {
    let mut next = tree.apex();
    for node in tree.names.values().rev() {
        let owner = node.owner();
        if !is_in_chain(node) {
            if node.set(Rtype::NSEC).is_some() {
                faults.add(|| format!("{owner} NSEC: the name has nothing that it could be of"));
            }
            continue;
        }
        let mut bitmap = Vec::new();
        write_bitmap(types_of(node, Rtype::NSEC), &mut bitmap);
        match node.set(Rtype::NSEC).and_then(|set| set.records.first()) {
            None => faults.add(|| format!("{owner} NSEC: missing")),
            Some(rdata) => match Name::parse(rdata) {
                Ok((found, _)) if found != next => {
                    faults.add(|| format!("{owner} NSEC: leads to {found}, expected {next}"));
                }
                Ok((_, found)) if found != bitmap => {
                    faults.add(|| format!("{owner} NSEC: lists other types than the name has"));
                }
                Ok(_) => {}
                Err(_) => faults.add(|| format!("{owner} NSEC: data that cannot be read")),
            },
        }
        next = owner;
    }
}

fn check_hashes(tree: &Tree, parameters: &Nsec3Parameters, faults: &mut Faults) {
    let mut known: BTreeSet<Nsec3Hash> = BTreeSet::new();
    let check = |name: Name<'_>, types: Vec<Rtype>, may_lack: bool, faults: &mut Faults| {
        let hash = parameters.hash(name);
        let mut bitmap = Vec::new();
        write_bitmap(types, &mut bitmap);
        match tree.hashed.get(&hash).and_then(|set| set.records.first()) {
            None if !may_lack => faults.add(|| format!("{name} NSEC3: missing")),
            Some(rdata) if next_and_types(rdata).is_none_or(|(_, found)| found != bitmap) => {
                faults.add(|| format!("{name} NSEC3: lists other types than the name has"));
            }
            _ => {}
        }
        hash
    };
    let opts_out = tree
        .hashed
        .values()
        .any(|set| set.records().filter_map(Nsec3Parameters::parse).any(|found| found.opts_out));
    let mut last: Option<Name<'_>> = None;
    // Names between whose names below are all left out may be left out too (RFC 5155 §7.1).
    let mut needed_between: BTreeSet<Box<[u8]>> = BTreeSet::new();
    let mut between: Vec<Name<'_>> = Vec::new();
    for node in tree.names.values().filter(|node| is_in_chain(node)) {
        let owner = node.owner();
        let may_lack = opts_out && node.standing == Standing::Cut && node.set(Rtype::DS).is_none();
        known.insert(check(owner, types_of(node, Rtype::NSEC3), may_lack, faults));
        let mut name = owner;
        while let Some(parent) = name.parent().filter(|parent| parent.len() > tree.apex().len()) {
            if !may_lack {
                needed_between.insert(parent.to_folded().as_bytes().into());
            }
            if !last.is_some_and(|last| last.is_at_or_below(parent)) {
                between.push(parent);
            }
            name = parent;
        }
        last = Some(owner);
    }
    for name in between {
        let may_lack = !needed_between.contains(name.to_folded().as_bytes());
        known.insert(check(name, Vec::new(), may_lack, faults));
    }
    let mut next = tree.hashed.keys().next();
    for (hash, set) in tree.hashed.iter().rev() {
        let owner = || owner_of(hash, tree.apex()).map_or(String::new(), |owner| owner.to_string());
        if !known.contains(hash) {
            faults.add(|| format!("{} NSEC3: the hash of no name", owner()));
        }
        let found = set.records.first().and_then(|rdata| next_and_types(rdata));
        if set.records.len() != 1 || found.map(|(found, _)| found) != next.map(|next| &next[..]) {
            faults.add(|| format!("{} NSEC3: does not lead to the next hash", owner()));
        }
        let is_alike = set
            .records()
            .filter_map(Nsec3Parameters::parse)
            .all(|found| found.iterations == parameters.iterations && found.salt == parameters.salt);
        if !is_alike {
            faults.add(|| format!("{} NSEC3: made in another way than NSEC3PARAM says", owner()));
        }
        next = Some(hash);
    }
}
