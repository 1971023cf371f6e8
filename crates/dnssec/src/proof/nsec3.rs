//! What NSEC3 records prove: the order of names is that of their hashes (RFC 5155 §8).

use wire::{Name, NameBuf, Rtype};

use super::{
    Delegation, DenialRecord, HASHES_PER_SEARCH_MAX, HashBudget, Proved, Unproved, delegation, hides_below,
    is_nxname, lack,
};
use crate::nsec3::{Nsec3Hash, Nsec3Parameters, OPT_OUT, hash_of, next_and_types};

/// Ancestors of a long name that are looked at first: the closest encloser of a name that somebody
/// made up is rarely further up.
const FROM_NAME: usize = 3;
/// Names of the zone's uppermost levels that are looked at next.
const FROM_APEX: usize = 3;

/// An NSEC3: no hash lies between this one and the next, and the name with this one has the types.
#[derive(Clone, Copy, Debug)]
struct Nsec3<'r> {
    hash: Nsec3Hash,
    next: Nsec3Hash,
    opts_out: bool,
    types: &'r [u8],
}

impl Nsec3<'_> {
    fn covers(&self, hash: &Nsec3Hash) -> bool {
        match self.hash < self.next {
            true => self.hash < *hash && *hash < self.next,
            // The last hash; of a zone with one, the next is itself.
            false => self.hash < *hash || *hash < self.next,
        }
    }
}

/// The NSEC3 records of one zone.
#[derive(Debug)]
pub(super) struct Hashes<'r> {
    zone: Name<'r>,
    parameters: Nsec3Parameters,
    are_mixed: bool,
    records: Vec<Nsec3<'r>>,
}

/// Hashes of a name and its ancestors, by their numbers of labels. Each is made once.
struct Search<'s, 'n> {
    parameters: &'s Nsec3Parameters,
    budget: &'s mut HashBudget,
    name: Name<'n>,
    labels: usize,
    known: [Option<(usize, Nsec3Hash)>; HASHES_PER_SEARCH_MAX],
}

impl<'n> Search<'_, 'n> {
    fn hash(&mut self, labels: usize) -> Result<Nsec3Hash, Unproved> {
        for place in &mut self.known {
            match *place {
                Some((at, hash)) if at == labels => return Ok(hash),
                Some(_) => {}
                None => {
                    self.budget.spend()?;
                    let hash = self.parameters.hash(self.name.suffix(labels));
                    *place = Some((labels, hash));
                    return Ok(hash);
                }
            }
        }
        Err(Unproved::TooMuchWork)
    }
}

/// A closest encloser whose next closer name is proved not to exist (RFC 5155 §8.3).
struct Encloser<'n> {
    name: Name<'n>,
    /// Whether unsigned delegations may be missing where the next closer name is not.
    opts_out: bool,
}

impl Encloser<'_> {
    const fn proved(&self) -> Proved {
        if self.opts_out { Proved::OptOut } else { Proved::Fully }
    }
}

impl<'r> Hashes<'r> {
    pub(super) fn new(zone: Name<'r>) -> Self {
        Self { zone, parameters: Nsec3Parameters::default(), are_mixed: false, records: Vec::new() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes a record, if it can be one of the zone. RFC 5155 §8.1 and §8.2: other hashes and flags
    /// are ignored.
    pub(super) fn add(&mut self, record: &DenialRecord<'r>) {
        let Some(&[_, flags, ..]) = record.rdata.first_chunk::<5>() else { return };
        let Some(parameters) = Nsec3Parameters::parse(record.rdata).filter(|_| flags & !OPT_OUT == 0) else {
            return;
        };
        let is_ours = record.owner.parent().is_some_and(|parent| parent == self.zone);
        let (Some(hash), Some((next, types)), true) =
            (hash_of(record.owner), next_and_types(record.rdata), is_ours)
        else {
            return;
        };
        let Ok(next) = Nsec3Hash::try_from(next) else { return };
        match self.records.is_empty() {
            true => self.parameters = parameters,
            false => self.are_mixed |= !self.parameters.are_of(record.rdata),
        }
        self.records.push(Nsec3 { hash, next, opts_out: flags & OPT_OUT != 0, types });
    }

    /// Returns whether the records are to be looked at: not those that are hashed too often.
    fn are_readable(&self, budget: &HashBudget) -> Result<bool, Unproved> {
        match self.are_mixed {
            true => Err(Unproved::MixedParameters),
            false => Ok(self.parameters.iterations <= budget.iterations_max),
        }
    }

    fn search<'s, 'n>(&'s self, name: Name<'n>, budget: &'s mut HashBudget) -> Search<'s, 'n> {
        let labels = name.label_count();
        Search { parameters: &self.parameters, budget, name, labels, known: Default::default() }
    }

    fn matching(&self, hash: &Nsec3Hash) -> Option<&Nsec3<'r>> {
        self.records.iter().find(|record| record.hash == *hash)
    }

    /// Asks whether no name has this hash; if so, whether an unsigned delegation may.
    fn covering(&self, hash: &Nsec3Hash) -> Result<bool, Unproved> {
        match self.records.iter().find(|record| record.covers(hash)) {
            Some(record) => Ok(record.opts_out),
            None if self.matching(hash).is_some() => Err(Unproved::Exists),
            None => Err(Unproved::Missing),
        }
    }

    /// Looks for the closest encloser of a name that is not the owner of a record.
    ///
    /// The records of a zone prove at most one ancestor together with the absence of the next
    /// closer name, so the ancestors may be tried in any order.
    fn encloser<'n>(&self, search: &mut Search<'_, 'n>) -> Result<Encloser<'n>, Unproved> {
        let (from, to) = (self.zone.label_count(), search.labels);
        let bottom = match to - from < HASHES_PER_SEARCH_MAX {
            true => from,
            false => to - FROM_NAME,
        };
        let order = (bottom..to).rev().chain(from..bottom.min(from + FROM_APEX));
        for labels in order {
            let Some(record) = self.matching(&search.hash(labels)?) else { continue };
            if hides_below(record.types) {
                continue;
            }
            if let Ok(opts_out) = self.covering(&search.hash(labels + 1)?) {
                return Ok(Encloser { name: search.name.suffix(labels), opts_out });
            }
        }
        Err(if bottom - from > FROM_APEX { Unproved::TooMuchWork } else { Unproved::Missing })
    }

    /// Returns the hash of the wildcard below an encloser.
    fn wildcard(
        &self,
        encloser: Name<'_>,
        budget: &mut HashBudget,
    ) -> Result<(NameBuf, Nsec3Hash), Unproved> {
        let name = NameBuf::below(b"\x01*", encloser).map_err(|_| Unproved::Missing)?;
        budget.spend()?;
        Ok((name, self.parameters.hash(name.as_name())))
    }

    pub(super) fn name_error(&self, qname: Name<'_>, budget: &mut HashBudget) -> Result<Proved, Unproved> {
        if !self.are_readable(budget)? {
            return Ok(Proved::TooManyIterations);
        }
        let mut search = self.search(qname, budget);
        if let Some(record) = self.matching(&search.hash(search.labels)?) {
            return if is_nxname(record.types) { Ok(Proved::Fully) } else { Err(Unproved::Exists) };
        }
        let encloser = self.encloser(&mut search)?;
        let (_, hash) = self.wildcard(encloser.name, budget)?;
        self.covering(&hash)?;
        Ok(encloser.proved())
    }

    pub(super) fn no_data(
        &self,
        qname: Name<'_>,
        qtype: Rtype,
        budget: &mut HashBudget,
    ) -> Result<Proved, Unproved> {
        if !self.are_readable(budget)? {
            return Ok(Proved::TooManyIterations);
        }
        let mut search = self.search(qname, budget);
        if let Some(record) = self.matching(&search.hash(search.labels)?) {
            return lack(record.types, qname, qtype).map(|()| Proved::Fully);
        }
        let encloser = self.encloser(&mut search)?;
        let (wildcard, hash) = self.wildcard(encloser.name, budget)?;
        match self.matching(&hash) {
            Some(record) => lack(record.types, wildcard.as_name(), qtype).map(|()| encloser.proved()),
            // An unsigned delegation that was left out, or a name with only such below it (RFC 5155
            // §8.6 and its erratum 3441).
            None if encloser.opts_out => Ok(Proved::OptOut),
            None => Err(Unproved::Missing),
        }
    }

    /// Asks whether a name does not exist whose parent is known to.
    pub(super) fn absent(&self, name: Name<'_>, budget: &mut HashBudget) -> Result<Proved, Unproved> {
        if !self.are_readable(budget)? {
            return Ok(Proved::TooManyIterations);
        }
        budget.spend()?;
        let opts_out = self.covering(&self.parameters.hash(name))?;
        Ok(if opts_out { Proved::OptOut } else { Proved::Fully })
    }

    pub(super) fn delegation(&self, name: Name<'_>, budget: &mut HashBudget) -> Result<Delegation, Unproved> {
        if !self.are_readable(budget)? {
            return Ok(Delegation::TooManyIterations);
        }
        let mut search = self.search(name, budget);
        if let Some(record) = self.matching(&search.hash(search.labels)?) {
            return delegation(record.types, name);
        }
        let encloser = self.encloser(&mut search)?;
        Ok(if encloser.opts_out { Delegation::OptOut } else { Delegation::NoCut })
    }
}
