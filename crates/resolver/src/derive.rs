//! Answers to questions that nobody asked before, from what was proved for others: ranges of names
//! that do not exist, wildcards (RFC 8198), and DNAME records (RFC 6672 §5.3).
//!
//! Everything that is used was found good before. A zone speaks here only for names that no closer
//! delegation and no route takes out of it.

use cache::proofs::{Coverage, Proof};
use cache::{Now, Security};
use dnssec::proof::{HASHES_PER_SEARCH_MAX, HashBudget, Proved};
use dnssec::{Nsec3Parameters, Rrsig};
use wire::{Name, NameBuf, Rcode, Rtype};

use crate::heap_name::{HeapName, HeapQuestion};
use crate::prove::denials;
use crate::scrub::{Set, soa_minimum, substitute};
use crate::tables::{Denied, Known, Memory};

/// Hashes that one attempt may cost: two for each name that is looked for. A question that has
/// fewer left has others to pay for with them.
pub(crate) const HASHES_MAX: u32 = 2 * (HASHES_PER_SEARCH_MAX as u32 + 2);

/// What a question comes to by what is known of others.
pub(crate) enum Derived {
    /// The name has records: made from a wildcard, with the proof that this is right.
    Data(Set, Vec<Set>),
    /// It is an alias: a CNAME, behind the DNAME that it is made from or with the proof that it may
    /// be made from a wildcard.
    Alias(Vec<Set>, Vec<Set>, HeapName),
    /// A DNAME makes it a name that is too long.
    TooLong(Set),
    /// There is no such name, or no such data.
    Denied(Rcode, Denied),
}

/// What ranges say of a name.
struct Gathered {
    /// What may prove something.
    sets: Vec<Set>,
    /// The place in `sets` of the range that the name, or what would be closer to it than the
    /// wildcard, is in; `None` if the name is there.
    covering: Option<usize>,
    /// What stands in for the name if it is there.
    wildcard: Option<NameBuf>,
}

impl Memory {
    /// Returns what the closest secure DNAME above a name makes of it, whose owner has `floor`
    /// labels at least.
    pub(crate) fn by_dname(&mut self, question: &HeapQuestion, floor: usize, now: Now) -> Option<Derived> {
        let name = question.name.as_name();
        let depths = (floor..name.label_count()).rev();
        let owners: Vec<usize> =
            depths.filter(|&labels| self.tables.rrsets.has_dname_depth(labels)).collect();
        let dname = owners.into_iter().find_map(|labels| {
            let owner = HeapName::new(name.suffix(labels));
            match self.look_at(&checked(owner, Rtype::DNAME), now)? {
                Known::Data(set) if set.security == Security::Secure => Some(set),
                _ => None,
            }
        })?;
        let Some(target) = substitute(name, &dname)? else { return Some(Derived::TooLong(dname)) };
        let data = target.as_name().as_bytes().into();
        let mut cname = Set::new(question.name.clone(), Rtype::CNAME, dname.ttl, vec![data]);
        cname.security = dname.security;
        Some(Derived::Alias(vec![dname, cname], Vec::new(), HeapName::new(target.as_name())))
    }

    /// Returns the DNAME that an alias which is known was made from, if that is known: without it
    /// nobody can check the alias, which has no signature (RFC 6672 §5.3.1).
    pub(crate) fn dname_of(&mut self, cname: &Set, unchecked: bool, now: Now) -> Option<Set> {
        if !cname.signatures.is_empty() {
            return None;
        }
        let name = cname.owner.as_name();
        let (target, _) = Name::parse(cname.records.first()?).ok()?;
        let depths = (0..name.label_count()).rev();
        let owners: Vec<usize> =
            depths.filter(|&labels| self.tables.rrsets.has_dname_depth(labels)).collect();
        owners.into_iter().find_map(|labels| {
            let owner = HeapName::new(name.suffix(labels));
            let question = HeapQuestion { name: owner, rtype: Rtype::DNAME, unchecked, subnet: None };
            let Some(Known::Data(dname)) = self.look_at(&question, now) else { return None };
            let made = substitute(name, &dname)??;
            (made.as_name() == target).then_some(dname)
        })
    }

    /// Returns what the ranges of a zone say of a question about a name in it. Names are hashed if
    /// `hashes` allow so many.
    pub(crate) fn by_ranges(
        &mut self,
        question: &HeapQuestion,
        zone: Name<'_>,
        iterations_max: u16,
        hashes: &mut u32,
        now: Now,
    ) -> Option<Derived> {
        let name = question.name.as_name();
        let gathered = match self.gather_names(zone, name, now) {
            Some(gathered) => gathered,
            None => self.gather_hashes(zone, question, iterations_max, hashes, now)?,
        };
        let mut budget = HashBudget::new(iterations_max, *hashes);
        let found = self.conclude(question, zone, &gathered, &mut budget, now);
        *hashes = budget.left();
        found
    }

    /// Collects the NSEC records for a name and for the wildcard that would stand in for it.
    fn gather_names(&mut self, zone: Name<'_>, name: Name<'_>, now: Now) -> Option<Gathered> {
        let (coverage, set) = self.nsec(zone, name, now)?;
        if coverage == Coverage::Matches {
            return Some(Gathered { sets: vec![set], covering: None, wildcard: None });
        }
        let next =
            set.records.first().and_then(|data| Name::parse(data).ok()).map(|(next, _)| next.to_buf())?;
        // The closest encloser is the longest name above this one that one of both ends is below.
        let mut encloser = name;
        while !set.owner.as_name().is_at_or_below(encloser) && !next.as_name().is_at_or_below(encloser) {
            encloser = encloser.parent()?;
        }
        let wildcard = NameBuf::below(b"\x01*", encloser).ok()?;
        let other = self.nsec(zone, wildcard.as_name(), now).map(|(_, other)| other);
        let other = other.filter(|other| other.owner != set.owner);
        let sets = std::iter::once(set).chain(other).collect();
        Some(Gathered { sets, covering: Some(0), wildcard: Some(wildcard) })
    }

    /// Collects the NSEC3 records for a name, its closest encloser, and the wildcard below that.
    fn gather_hashes(
        &mut self,
        zone: Name<'_>,
        question: &HeapQuestion,
        iterations_max: u16,
        hashes: &mut u32,
        now: Now,
    ) -> Option<Gathered> {
        let (name, qtype) = (question.name.as_name(), question.rtype);
        let (labels, from) = (name.label_count(), zone.label_count());
        if *hashes < HASHES_MAX || labels - from >= HASHES_PER_SEARCH_MAX {
            return None;
        }
        let mut salt = Vec::new();
        let (iterations, salt) = self.tables.proofs.nsec3_parameters(self.partition, zone, now, &mut salt)?;
        if iterations > iterations_max {
            return None;
        }
        let parameters = Nsec3Parameters { iterations, salt: salt.into(), opts_out: false };
        let mut closer: Option<Set> = None;
        for at in (from..=labels).rev() {
            *hashes = hashes.saturating_sub(1);
            match self.nsec3(zone, &parameters, name.suffix(at), now) {
                Some((Coverage::Matches, set)) if at == labels => {
                    return Some(Gathered { sets: vec![set], covering: None, wildcard: None });
                }
                Some((Coverage::Matches, encloser)) => {
                    let wildcard = NameBuf::below(b"\x01*", name.suffix(at)).ok()?;
                    *hashes = hashes.saturating_sub(1);
                    let other = self.nsec3(zone, &parameters, wildcard.as_name(), now).map(|(_, set)| set);
                    let mut sets = vec![closer?];
                    for set in std::iter::once(encloser).chain(other) {
                        if !sets.iter().any(|known| known.owner == set.owner) {
                            sets.push(set);
                        }
                    }
                    return Some(Gathered { sets, covering: Some(0), wildcard: Some(wildcard) });
                }
                Some((Coverage::Covers, set)) => closer = Some(set),
                // A wildcard that is known says that what it stands below exists.
                None => {
                    if let Some(closer) = closer.take()
                        && let Ok(wildcard) = NameBuf::below(b"\x01*", name.suffix(at))
                        && self.look(&checked(HeapName::new(wildcard.as_name()), qtype), now).is_some()
                    {
                        let (sets, wildcard) = (vec![closer], Some(wildcard));
                        return Some(Gathered { sets, covering: Some(0), wildcard });
                    }
                }
            }
        }
        None
    }

    /// Says what ranges prove, if it is enough.
    fn conclude(
        &mut self,
        question: &HeapQuestion,
        zone: Name<'_>,
        gathered: &Gathered,
        budget: &mut HashBudget,
        now: Now,
    ) -> Option<Derived> {
        let (name, qtype) = (question.name.as_name(), question.rtype);
        let sets = &gathered.sets;
        let said = denials(sets, zone);
        let is_gone = gathered.covering.is_some() && said.name_error(name, budget) == Ok(Proved::Fully);
        if is_gone || said.no_data(name, qtype, budget) == Ok(Proved::Fully) {
            let rcode = if is_gone { Rcode::NXDOMAIN } else { Rcode::NOERROR };
            return Some(Derived::Denied(rcode, self.denied_by(zone, sets, now)?));
        }
        let (covering, wildcard) = (sets.get(gathered.covering?)?, gathered.wildcard.as_ref()?);
        let encloser = wildcard.as_name().parent()?;
        let is_right = said.expansion(name, encloser.label_count() as u8, budget) == Ok(Proved::Fully);
        if !is_right {
            return None;
        }
        let wildcard = HeapName::new(wildcard.as_name());
        let (is_alias, mut set) = match self.look(&checked(wildcard, qtype), now)? {
            Known::Data(set) => (false, set),
            Known::Alias(set) => (true, set),
            Known::NoData(_) | Known::NoName(_) => return None,
        };
        if set.security != Security::Secure || set.signatures.is_empty() {
            return None;
        }
        let mut proof = covering.clone();
        let ttl = set.ttl.min(proof.ttl);
        (set.owner, set.ttl, proof.ttl) = (question.name.clone(), ttl, ttl);
        if !is_alias {
            return Some(Derived::Data(set, vec![proof]));
        }
        let target = set.records.first().and_then(|data| Name::parse(data).ok());
        let target = target.map(|(target, _)| HeapName::new(target))?;
        Some(Derived::Alias(vec![set], vec![proof], target))
    }

    /// Returns a denial by these proofs and the zone's SOA record, if that is known. Nothing in it
    /// holds longer than anything else (RFC 8198 §5.4, RFC 2308 §5).
    fn denied_by(&mut self, zone: Name<'_>, proofs: &[Set], now: Now) -> Option<Denied> {
        let soa = self.look_at(&checked(HeapName::new(zone), Rtype::SOA), now)?;
        let Known::Data(mut soa) = soa else { return None };
        if soa.security != Security::Secure || soa.signatures.is_empty() {
            return None;
        }
        let ttl = soa.ttl.min(soa.records.first().and_then(|data| soa_minimum(data))?);
        let ttl = proofs.iter().map(|set| set.ttl).fold(ttl, u32::min);
        soa.ttl = ttl;
        let proofs = proofs.iter().map(|set| Set { ttl, ..set.clone() }).collect();
        Some(Denied { soa, proofs, security: Security::Secure })
    }

    fn nsec(&self, zone: Name<'_>, name: Name<'_>, now: Now) -> Option<(Coverage, Set)> {
        let mut room = Vec::new();
        let proof = self.tables.proofs.nsec(self.partition, zone, name, now, &mut room)?;
        Some((proof.coverage, set(zone, &proof)?))
    }

    fn nsec3(
        &self,
        zone: Name<'_>,
        parameters: &Nsec3Parameters,
        name: Name<'_>,
        now: Now,
    ) -> Option<(Coverage, Set)> {
        let mut room = Vec::new();
        let how = (parameters.iterations, &*parameters.salt);
        let hash = parameters.hash(name);
        let proof = self.tables.proofs.nsec3(self.partition, zone, how, &hash, now, &mut room)?;
        Some((proof.coverage, set(zone, &proof)?))
    }
}

fn checked(name: HeapName, rtype: Rtype) -> HeapQuestion {
    HeapQuestion { name, rtype, unchecked: false, subnet: None }
}

/// Copies a range, which was found good when it was kept.
fn set(zone: Name<'_>, proof: &Proof<'_>) -> Option<Set> {
    let signatures: Vec<Box<[u8]>> = proof.signatures().map(Into::into).collect();
    let labels_signed = Rrsig::parse(signatures.first()?)?.labels;
    Some(Set {
        signatures,
        security: Security::Secure,
        signer_labels: zone.label_count() as u8,
        labels_signed,
        ..Set::new(HeapName::new(proof.owner), proof.rtype, proof.ttl, vec![proof.rdata.into()])
    })
}
