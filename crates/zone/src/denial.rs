//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Proofs that something does not exist: NSEC (RFC 4035 §3.1.3), NSEC3 (RFC 5155 §7.2), and those
//! made for each question (RFC 9824).

use wire::{Full, Header, Name, Rcode, Rtype, Section};

use crate::alias::ADDRESSES_OCTETS_MAX;
use crate::answer::{Failure, Missing, Run, Step};
use crate::block::{Block, Layout, Records, Rrset};
use crate::nsec3::Nsec3Chain;
use crate::online::{Online, Proof, SIGNATURES_OCTETS_MAX, Share, Types};
use crate::zone::{Denial, NsecChain, Zone, wildcard_of};

/// Records that the proofs of one answer may take: four for each of two negative answers.
const PROOFS_MAX: usize = 8;
/// Wildcards that one chain of aliases may lead through if they are to be proved.
pub(crate) const EXPANSIONS_MAX: usize = 4;

/// The RRsets of proofs and redirections that are written already, by place: none is written twice.
#[derive(Default)]
pub(crate) struct Written {
    places: [usize; PROOFS_MAX],
    count: usize,
}

impl Written {
    /// Returns whether this is the first time.
    pub(crate) fn add(&mut self, rrset: &Rrset<'_>) -> bool {
        let place = rrset.records.as_ptr().addr();
        if self.places.iter().take(self.count).any(|&other| other == place) {
            return false;
        }
        if let Some(free) = self.places.get_mut(self.count) {
            *free = place;
            self.count += 1;
        }
        true
    }
}

/// Records that prove that no closer name exists than the wildcards that answered. They belong to
/// the authority section, so they wait until the answer section is complete.
pub(crate) type Expansions<'r> = [Option<(&'r Zone, Block<'r>)>; EXPANSIONS_MAX];

/// A closest encloser that an NSEC3 record proves (RFC 5155 §1.3).
struct Provable<'n> {
    name: Name<'n>,
    /// That of the record that matches it.
    number: usize,
}

impl<'r> Run<'r, '_> {
    /// Proves that a name does not exist and that no wildcard stands in for it.
    pub(crate) fn prove_absence(&mut self, zone: &'r Zone, missing: &Missing<'r, '_>) -> Result<(), Full> {
        if !self.asked.wants_dnssec {
            return Ok(());
        }
        match &zone.denial {
            Denial::None => Ok(()),
            Denial::Compact(online) => {
                self.deny(zone, online, missing.name, &Types::of_nothing(), Share::Part)
            }
            Denial::Nsec(chain) => {
                self.nsec_for(zone, chain, missing.name)?;
                match wildcard_of(missing.encloser_name) {
                    Some(wildcard) => self.nsec_for(zone, chain, wildcard.as_name()),
                    None => Ok(()),
                }
            }
            Denial::Nsec3(chain) => {
                let Some(encloser) = self.closest_proof(zone, chain, missing.name)? else { return Ok(()) };
                match chain.covering_wildcard(zone, encloser.number, encloser.name) {
                    Some(proof) => self.nsec3(zone, proof),
                    None => Ok(()),
                }
            }
        }
    }

    /// Proves that a name exists and has no records of the type asked for.
    pub(crate) fn prove_no_data(
        &mut self,
        zone: &'r Zone,
        block: Block<'r>,
        name: Name<'_>,
    ) -> Result<(), Full> {
        if !self.asked.wants_dnssec {
            return Ok(());
        }
        match &zone.denial {
            Denial::None => Ok(()),
            Denial::Compact(online) => {
                let types = self.types(zone, block, name);
                self.deny(zone, online, name, &types, Share::Whole)
            }
            // Of a name without records, the one before it says that names below it exist.
            Denial::Nsec(chain) => match block.rrset(Rtype::NSEC) {
                Some(_) => self.nsec(zone, block),
                None => self.nsec_for(zone, chain, name),
            },
            Denial::Nsec3(chain) => match block.link().and_then(|link| chain.numbered(zone, link as usize)) {
                Some(proof) => self.nsec3(zone, proof),
                // RFC 5155 §7.2.4: an unsigned delegation that opted out.
                None => self.closest_proof(zone, chain, name).map(|_| ()),
            },
        }
    }

    /// Remembers what proves that no closer name exists than the wildcard that answered. Returns
    /// whether there was room.
    pub(crate) fn note_expansion(&mut self, zone: &'r Zone, missing: &Missing<'r, '_>) -> bool {
        if !self.asked.wants_dnssec {
            return true;
        }
        let proof = match &zone.denial {
            // RFC 9824 §3.3: signed as if the name were there.
            Denial::None | Denial::Compact(_) => None,
            Denial::Nsec(chain) => chain.at_or_before(zone, missing.name),
            Denial::Nsec3(chain) => chain.covering(zone, missing.next_closer),
        };
        let Some(proof) = proof else { return true };
        match self.expansions.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some((zone, proof));
                true
            }
            None => false,
        }
    }

    /// Writes what [`Run::note_expansion`] remembered; the answer section is complete.
    pub(crate) fn prove_expansions(&mut self) -> Result<(), Full> {
        if matches!(self.expansions, [None, ..]) {
            return Ok(());
        }
        for (zone, block) in core::mem::take(&mut self.expansions).into_iter().flatten() {
            match &zone.denial {
                Denial::None | Denial::Compact(_) => {}
                Denial::Nsec(_) => self.nsec(zone, block)?,
                Denial::Nsec3(_) => self.nsec3(zone, block)?,
            }
        }
        Ok(())
    }

    /// Proves that a wildcard stands in for a name and has no records of the type asked for.
    pub(crate) fn prove_no_data_at_wildcard(
        &mut self,
        zone: &'r Zone,
        wildcard: Block<'r>,
        missing: &Missing<'r, '_>,
    ) -> Result<(), Full> {
        if !self.asked.wants_dnssec {
            return Ok(());
        }
        match &zone.denial {
            Denial::None => Ok(()),
            Denial::Compact(online) => {
                let mut types = Types::of_block(wildcard);
                self.add_addresses(wildcard, &mut types);
                self.deny(zone, online, missing.name, &types, Share::Part)
            }
            Denial::Nsec(chain) => {
                // The wildcard may exist only because names below it do; then it has no NSEC of its
                // own.
                if let Some(name) = wildcard_of(missing.encloser_name) {
                    self.nsec_for(zone, chain, name.as_name())?;
                }
                self.nsec_for(zone, chain, missing.name)
            }
            Denial::Nsec3(chain) => {
                self.closest_proof(zone, chain, missing.name)?;
                match wildcard.link().and_then(|link| chain.numbered(zone, link as usize)) {
                    Some(proof) => self.nsec3(zone, proof),
                    None => Ok(()),
                }
            }
        }
    }

    /// Proves that a zone cut has no DS.
    pub(crate) fn prove_no_ds(
        &mut self,
        zone: &'r Zone,
        cut: Block<'r>,
        owner: Name<'_>,
    ) -> Result<(), Full> {
        self.prove_no_data(zone, cut, owner)
    }

    /// Returns who signs for a zone while clients wait, if this one wants signatures.
    #[inline]
    pub(crate) fn online(&self, zone: &'r Zone) -> Option<&'r Online> {
        match &zone.denial {
            Denial::Compact(online) if self.asked.wants_dnssec => Some(online),
            _ => None,
        }
    }

    /// Returns the types at a name, those that are chosen for the client among them.
    pub(crate) fn types(&mut self, zone: &'r Zone, block: Block<'r>, name: Name<'_>) -> Types {
        let mut types = Types::of_block(block);
        if let Some(specials) = self.specials_of(zone) {
            let choices = specials.choices(name, self.key().hash_name(name));
            choices.for_each(|choice| types.add(choice.rtype()));
        }
        self.add_addresses(block, &mut types);
        types
    }

    /// Adds the types of the addresses that a name has by its ALIAS. What is not known is not
    /// denied.
    fn add_addresses(&mut self, block: Block<'r>, types: &mut Types) {
        let Some(alias) = block.alias() else { return };
        let mut octets = [0; ADDRESSES_OCTETS_MAX];
        for rtype in [Rtype::A, Rtype::AAAA] {
            let found = self.addresses_of(&alias, rtype, &mut octets);
            if found.is_none_or(|(count, _)| count > 0) {
                types.add(rtype);
            }
        }
    }

    /// Writes an RRset that is signed now.
    #[cold]
    pub(crate) fn sign(
        &mut self,
        online: &Online,
        section: Section,
        owner: Name<'_>,
        rrset: &Rrset<'_>,
        share: Share,
    ) -> Result<(), Full> {
        let mut room = [0; SIGNATURES_OCTETS_MAX];
        match online.sign(owner, rrset, self.asked.now, share, &mut room) {
            Some((signature_count, signatures)) => {
                self.rrset(section, owner, &Rrset { signature_count, signatures, ..*rrset })
            }
            None => self.fail(Failure::Unsigned),
        }
    }

    /// Gives the answer up.
    #[cold]
    pub(crate) fn fail(&mut self, failure: Failure) -> Result<(), Full> {
        self.failure = Some(failure);
        Err(Full)
    }

    /// Proves that a name has these types and no others.
    #[cold]
    pub(crate) fn deny(
        &mut self,
        zone: &'r Zone,
        online: &Online,
        name: Name<'_>,
        types: &Types,
        share: Share,
    ) -> Result<(), Full> {
        self.write_proof(Section::Authority, zone, online, (name, types), share)
    }

    /// Answers a question for the proof itself, or for signatures where only the proof has one.
    #[cold]
    pub(crate) fn answer_with_proof(
        &mut self,
        zone: &'r Zone,
        online: &Online,
        name: Name<'_>,
        types: &Types,
        share: Share,
    ) -> Result<(), Full> {
        self.write_proof(Section::Answer, zone, online, (name, types), share)
    }

    fn write_proof(
        &mut self,
        section: Section,
        zone: &'r Zone,
        online: &Online,
        (name, types): (Name<'_>, &Types),
        share: Share,
    ) -> Result<(), Full> {
        let ttl = Records(&zone.negative.records).next().map_or(0, |soa| soa.ttl);
        let Some(proof) = Proof::new(name, zone.apex(), ttl, types) else {
            return self.fail(Failure::Unsigned);
        };
        let rrset = Rrset {
            rtype: Rtype::NSEC,
            layout: Layout::Plain,
            count: 1,
            signature_count: 0,
            records: proof.records(),
            signatures: &[],
            cuts: &[],
        };
        self.sign(online, section, name, &rrset, share)
    }

    /// Answers for a name that does not exist by proving that it has nothing.
    #[cold]
    pub(crate) fn absent_online(
        &mut self,
        zone: &'r Zone,
        online: &Online,
        name: Name<'_>,
    ) -> Result<Step, Full> {
        // Such a name has a proof, and nothing would prove that it has none.
        if matches!(self.qtype(), Rtype::NSEC | Rtype::RRSIG) {
            self.answer_with_proof(zone, online, name, &Types::of_nothing(), Share::Part)?;
            return Ok(Step::Done(Rcode::NOERROR));
        }
        self.whole(|run| {
            run.negative(zone)?;
            run.deny(zone, online, name, &Types::of_nothing(), Share::Part)
        })?;
        // RFC 9824 §5.1: only who says so takes that code for a name that, by its proof, is there.
        Ok(Step::Done(if self.asked.takes_compact { Rcode::NXDOMAIN } else { Rcode::NOERROR }))
    }

    /// Writes the NSEC of a name or, if it has none, the one that covers it.
    fn nsec_for(&mut self, zone: &'r Zone, chain: &NsecChain, name: Name<'_>) -> Result<(), Full> {
        match chain.at_or_before(zone, name) {
            Some(block) => self.nsec(zone, block),
            None => Ok(()),
        }
    }

    fn nsec(&mut self, zone: &Zone, block: Block<'_>) -> Result<(), Full> {
        self.proof(zone, block, Rtype::NSEC)
    }

    fn nsec3(&mut self, zone: &Zone, block: Block<'_>) -> Result<(), Full> {
        self.proof(zone, block, Rtype::NSEC3)
    }

    /// Writes a record that proves something, unless it is written already.
    fn proof(&mut self, zone: &Zone, block: Block<'_>, rtype: Rtype) -> Result<(), Full> {
        let Some(rrset) = block.rrset(rtype).filter(|rrset| self.written.add(rrset)) else {
            return Ok(());
        };
        let labels = block.labels();
        // No other name ends with a hash; an NSEC may belong to a name that a record in the answer
        // leads to.
        let is_apart = rrset.count == 1 && (rtype == Rtype::NSEC3 || !self.writer.has_names());
        match self.apex_at(zone).filter(|&apex_at| is_apart && self.is_only_below(apex_at, labels)) {
            Some(apex_at) => self.whole(|run| {
                let at = run.writer.len() as u16;
                run.writer.ready_below(Section::Authority, rrset.records, labels, apex_at)?;
                run.signatures_under(Section::Authority, &rrset, if labels.is_empty() { apex_at } else { at })
            }),
            None => self.rrset(Section::Authority, zone.owner(block).as_name(), &rrset),
        }
    }

    /// Returns whether a pointer to the apex, which stands at `apex_at`, is the shortest end of a
    /// name with these labels in front of it: at most one, with which the question's name does not
    /// go on there.
    fn is_only_below(&self, apex_at: u16, labels: &[u8]) -> bool {
        let is_short = labels.first().is_none_or(|&len| usize::from(len) + 1 == labels.len());
        let in_front = usize::from(apex_at).checked_sub(Header::LEN);
        let asked = in_front.and_then(|octets| self.asked.qname.as_bytes().get(..octets)).unwrap_or(&[]);
        let end = asked.len().checked_sub(labels.len()).and_then(|at| asked.get(at..)).unwrap_or(&[]);
        is_short
            && self.writer.can_point(0)
            && (labels.is_empty() || end.is_empty() || !end.eq_ignore_ascii_case(labels))
    }

    /// Writes the proof of the closest encloser: the NSEC3 of the closest name above that has one,
    /// and the one that covers the next name down (RFC 5155 §7.2.1). Returns that closest name;
    /// nothing if not even the apex has a record.
    fn closest_proof<'n>(
        &mut self,
        zone: &'r Zone,
        chain: &Nsec3Chain,
        name: Name<'n>,
    ) -> Result<Option<Provable<'n>>, Full> {
        let mut next_closer = name;
        // Ends: each turn takes a label off.
        while let Some(parent) = next_closer.parent().filter(|parent| parent.len() >= zone.apex().len()) {
            // What opted out has no record, so the closest provable encloser may be further up.
            if let Some(proof) = self.find_host(zone, parent).and_then(Block::link)
                && let number = proof as usize
                && let Some(proof) = chain.numbered(zone, number)
            {
                self.nsec3(zone, proof)?;
                if let Some(covering) = chain.covering(zone, next_closer) {
                    self.nsec3(zone, covering)?;
                }
                return Ok(Some(Provable { name: parent, number }));
            }
            next_closer = parent;
        }
        Ok(None)
    }
}
