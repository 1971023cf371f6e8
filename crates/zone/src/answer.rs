//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers a question from the zones (RFC 1034 §4.3.2, as RFC 4592, 6672, 8020 and 9471 made it
//! clear).
//!
//! # Limitations
//!
//! Authority sections of positive answers stay empty (minimal responses); addresses of hosts that
//! MX, SRV, SVCB and HTTPS name are sent along from every zone that is served.

mod flatten;
mod hosts;
mod rrsets;
mod special;

use std::net::IpAddr;

use wire::{Class, Full, HashKey, Name, NameBuf, Rcode, Rtype, Section, Ttl, Writer};

use crate::block::{Block, Layout, Marks, Records, Rrset};
use crate::denial::{EXPANSIONS_MAX, Expansions, Written};
use crate::online::Share;
use crate::specials::Specials;
use crate::target::target_at;
use crate::zone::{Zone, wildcard_of};
use crate::zones::Zones;

/// Aliases followed for one question, so that a chain of them cannot hold a worker.
pub const ALIASES_MAX: usize = 16;

/// A question, and what the client takes.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The name.
    pub qname: Name<'a>,
    /// The type.
    pub qtype: Rtype,
    /// Whether signatures and proofs are wanted (DO).
    pub wants_dnssec: bool,
    /// The name's hash with the key of the zones and the number of its labels, if they are known:
    /// then they are not worked out again.
    pub known: Option<(u64, usize)>,
    /// Whom the answer is for, where that decides: the client, or the subnet it names (RFC 7871).
    pub client: Option<IpAddr>,
    /// The client's own address, where zones are not for everybody.
    pub from: Option<IpAddr>,
    /// Any number, by which records rotate and alternatives are drawn.
    pub random: u32,
    /// The time in seconds since 1970 modulo 2^32, for signatures that are made now.
    pub now: u32,
    /// The time by which addresses of ALIAS targets age, as caches count it.
    pub age_at: cache::Now,
    /// Whether the proof of RFC 9824 may come with NXDOMAIN (CO).
    pub takes_compact: bool,
    /// What goes with an answer.
    pub manner: Manner,
}

/// What goes with an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Whether it ends where an alias leads out of the zone of the name asked for.
    pub within: bool,
    /// Whether MX, SRV, SVCB and HTTPS records come without addresses.
    pub minimal: bool,
    /// Whether a question for ANY gets the SOA, MX, A and AAAA records that there are, in place of
    /// one RRset.
    pub several: bool,
}

impl<'a> Asked<'a> {
    /// Returns a question of nobody's whose name was not hashed yet.
    pub const fn new(qname: Name<'a>, qtype: Rtype, wants_dnssec: bool) -> Self {
        Self {
            qname,
            qtype,
            wants_dnssec,
            known: None,
            client: None,
            from: None,
            random: 0,
            now: 0,
            age_at: cache::Now(0),
            takes_compact: false,
            manner: Manner { within: false, minimal: false, several: false },
        }
    }
}

/// What the header says about an answer whose records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The response code.
    pub rcode: Rcode,
    /// AA: the name asked for is ours, not a delegation's.
    pub is_authoritative: bool,
    /// TC: something that belongs to the answer did not fit.
    pub is_truncated: bool,
    /// Whether others may get other records.
    pub depends_on_client: bool,
    /// Why it is SERVFAIL, or REFUSED.
    pub failure: Option<Failure>,
}

/// Why a question gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The zone could not be loaded.
    Unloaded,
    /// What it needs cannot be signed now: too much was asked for in this second.
    Unsigned,
    /// What the target of its ALIAS has is not known.
    Unfollowed,
    /// The client may not query the zone.
    Prohibited,
}

impl Failure {
    /// Returns the response code.
    const fn rcode(self) -> Rcode {
        match self {
            Self::Unloaded | Self::Unsigned | Self::Unfollowed => Rcode::SERVFAIL,
            Self::Prohibited => Rcode::REFUSED,
        }
    }
}

impl Zones {
    /// Answers a question of class IN; `None` when none of the zones is responsible for the name.
    /// What belongs to a zone that could not be loaded gets SERVFAIL.
    ///
    /// The question stands in the writer already; its limit leaves room for what the caller adds
    /// (OPT). RRsets are written whole or not at all.
    pub fn answer(&self, asked: &Asked<'_>, writer: &mut Writer<'_>) -> Option<Answered> {
        let known = asked.known.unwrap_or_else(|| self.known_of(asked.qname));
        let served = self.zone_for(asked.qname, known, asked.qtype)?;
        let Some(zone) = served.zone() else {
            let is_admitted = self.admits(served.apex(), asked.from);
            return Some(unanswered(if is_admitted { Failure::Unloaded } else { Failure::Prohibited }));
        };
        let only = asked.manner.within.then_some(zone);
        let mut run = Run::new(self, asked, only, writer);
        let step = run.step(zone, asked.qname, known.0);
        Some(run.ended(&step))
    }

    /// Answers a question of class IN from this one of the zones, whatever others there are: like a
    /// server that serves it alone. Where an alias leads out of the zone, the answer ends.
    pub fn answer_from(&self, zone: &Zone, asked: &Asked<'_>, writer: &mut Writer<'_>) -> Answered {
        let hash = asked.known.map_or_else(|| self.key().hash_name(asked.qname), |(hash, _)| hash);
        let mut run = Run::new(self, asked, Some(zone), writer);
        let step = run.next_step(zone, asked.qname, hash);
        run.ended(&step)
    }
}

/// Returns the answer to a question that no zone answers. It is ours to answer unless the client
/// may not ask.
#[cold]
const fn unanswered(failure: Failure) -> Answered {
    Answered {
        rcode: failure.rcode(),
        is_authoritative: !matches!(failure, Failure::Prohibited),
        is_truncated: false,
        depends_on_client: false,
        failure: Some(failure),
    }
}

/// What became of one name.
pub(crate) enum Step {
    /// This is the end.
    Done(Rcode),
    /// It is an alias of another name.
    Follow(NameBuf),
}

/// One question under way.
pub(crate) struct Run<'r, 'b> {
    zones: &'r Zones,
    pub(crate) asked: &'r Asked<'r>,
    /// The zone that alone answers, if not all do.
    only: Option<&'r Zone>,
    /// Where records begin that rotate; 0 where they keep their order.
    rotation: u32,
    depends_on_client: bool,
    pub(crate) writer: &'r mut Writer<'b>,
    is_authoritative: bool,
    /// Whether an alias led away from the name asked for.
    has_moved: bool,
    /// Where in the message the name is that the last alias leads to, if that is known.
    next_target: Option<u16>,
    /// The name that an alias led to: where it is in memory, and where in the message.
    target: Option<(usize, u16)>,
    pub(crate) expansions: Expansions<'r>,
    pub(crate) written: Written,
    /// Why what was written is no answer.
    pub(crate) failure: Option<Failure>,
}

/// Where a search for a name ended.
pub(crate) struct Missing<'z, 'n> {
    /// The name.
    pub(crate) name: Name<'n>,
    /// The closest name above it that exists.
    pub(crate) encloser: Block<'z>,
    /// That name.
    pub(crate) encloser_name: Name<'n>,
    /// The name one label longer, which does not exist.
    pub(crate) next_closer: Name<'n>,
}

impl<'r, 'b> Run<'r, 'b> {
    #[inline(always)]
    fn new(
        zones: &'r Zones,
        asked: &'r Asked<'r>,
        only: Option<&'r Zone>,
        writer: &'r mut Writer<'b>,
    ) -> Self {
        Self {
            zones,
            asked,
            only,
            rotation: if zones.rotates() { asked.random } else { 0 },
            depends_on_client: false,
            writer,
            is_authoritative: true,
            has_moved: false,
            next_target: None,
            target: None,
            expansions: [None; EXPANSIONS_MAX],
            written: Written::default(),
            failure: None,
        }
    }

    /// Returns what the header says of what the first name came to.
    #[inline(always)]
    fn ended(&mut self, step: &Result<Step, Full>) -> Answered {
        match step {
            Ok(Step::Done(rcode)) => self.answered(*rcode),
            Ok(Step::Follow(target)) => self.follow(self.asked.qname, *target),
            Err(Full) => self.cut(),
        }
    }

    /// Returns whether a zone may answer, one that is loaded.
    pub(crate) fn may_answer(&self, zone: Option<&Zone>) -> bool {
        self.only.is_none_or(|only| zone.is_some_and(|zone| std::ptr::eq(only, zone)))
    }

    const fn answered(&self, rcode: Rcode) -> Answered {
        let Self { is_authoritative, depends_on_client, .. } = *self;
        Answered { rcode, is_authoritative, is_truncated: false, depends_on_client, failure: None }
    }

    /// The answer could not be written: it does not fit, or cannot be had.
    #[cold]
    fn cut(&mut self) -> Answered {
        let Some(failure) = self.failure else {
            return Answered { is_truncated: true, ..self.answered(Rcode::NOERROR) };
        };
        self.writer.take_back_all();
        match failure {
            Failure::Prohibited => unanswered(failure),
            _ => Answered { failure: Some(failure), ..self.answered(failure.rcode()) },
        }
    }

    /// Follows a chain of aliases through the zones.
    #[cold]
    fn follow(&mut self, qname: Name<'_>, target: NameBuf) -> Answered {
        self.has_moved = true;
        // What the first name is decides about AA (RFC 1035 §4.1.1).
        let is_authoritative = self.is_authoritative;
        let mut seen = [0; ALIASES_MAX + 1];
        let mut target = target;
        let mut last = self.zones.key().hash_name(qname);
        let mut rcode = Rcode::NOERROR;
        let mut is_truncated = false;
        for turn in 0..ALIASES_MAX {
            if let Some(place) = seen.get_mut(turn) {
                *place = last;
            }
            last = self.zones.key().hash_name(target.as_name());
            // A loop ends where it closes.
            if seen.iter().take(turn + 1).any(|&hash| hash == last) {
                break;
            }
            let known = (last, target.as_name().label_count());
            let Some(served) = self.zones.zone_for(target.as_name(), known, self.asked.qtype) else { break };
            // To this client, the chain leads out of our zones.
            if !self.zones.admits(served.apex(), self.asked.from) {
                break;
            }
            let zone = served.zone();
            if !self.may_answer(zone) {
                break;
            }
            let Some(zone) = zone else {
                rcode = Rcode::SERVFAIL;
                break;
            };
            self.target =
                self.next_target.take().map(|place| (target.as_name().as_bytes().as_ptr().addr(), place));
            match self.next_step(zone, target.as_name(), last) {
                Ok(Step::Done(code)) => {
                    rcode = code;
                    break;
                }
                Ok(Step::Follow(next)) => target = next,
                Err(Full) => {
                    is_truncated = true;
                    break;
                }
            }
        }
        // The chain may have left our zones at a wildcard.
        is_truncated |= self.whole(Self::prove_expansions).is_err();
        if self.failure.is_some() {
            return self.cut();
        }
        Answered { is_authoritative, is_truncated, ..self.answered(rcode) }
    }

    /// Does what [`Run::step`] does for a name that an alias leads to.
    #[inline(never)]
    fn next_step(&mut self, zone: &'r Zone, name: Name<'_>, hash: u64) -> Result<Step, Full> {
        self.step(zone, name, hash)
    }

    /// Looks for one name in its zone and writes what there is.
    #[inline(always)]
    fn step(&mut self, zone: &'r Zone, name: Name<'_>, hash: u64) -> Result<Step, Full> {
        if let Some(specials) = self.zones.specials_of(zone) {
            if !specials.admits(self.asked.from) {
                self.failure = Some(Failure::Prohibited);
                return Err(Full);
            }
            if let Some(step) = self.choose(zone, specials, name, hash)? {
                return Ok(step);
            }
        }
        if let Some(block) = zone.find_inlined(name, hash) {
            let marks = block.marks();
            if !marks.has(Marks::CUT.with(Marks::BELOW)) {
                return self.at_name_inlined(zone, block, name, None);
            }
            return self.at_or_below_cut(zone, block, name);
        }
        self.absent(zone, name, hash)
    }

    /// The name exists, but a zone cut or a DNAME is at it or above it.
    #[cold]
    fn at_or_below_cut(&mut self, zone: &'r Zone, block: Block<'r>, name: Name<'_>) -> Result<Step, Full> {
        if !block.marks().has(Marks::BELOW) {
            // RFC 4035 §3.1.4.1: the parent knows the DS of a cut.
            if self.asked.qtype == Rtype::DS {
                return self.at_name(zone, block, name, None);
            }
            return self.refer(zone, block, name);
        }
        self.below_cut(zone, name)
    }

    /// Finds the highest zone cut or DNAME above a name that lies below one.
    #[cold]
    fn below_cut(&mut self, zone: &'r Zone, name: Name<'_>) -> Result<Step, Full> {
        let mut above = name.parent();
        // Ends: each turn takes a label off.
        while let Some(parent) = above.filter(|above| above.len() >= zone.apex().len()) {
            if let Some(block) = zone.find(parent, self.zones.key().hash_name(parent)) {
                let marks = block.marks();
                if !marks.has(Marks::BELOW) {
                    if marks.has(Marks::CUT) {
                        return self.refer(zone, block, parent);
                    }
                    return self.substitute(block, parent, name);
                }
            }
            above = parent.parent();
        }
        Ok(Step::Done(Rcode::SERVFAIL))
    }

    /// The name does not exist: what is above it decides.
    fn absent(&mut self, zone: &'r Zone, name: Name<'_>, hash: u64) -> Result<Step, Full> {
        let Some(missing) = self.closest_encloser(zone, name) else { return Ok(Step::Done(Rcode::SERVFAIL)) };
        let marks = missing.encloser.marks();
        if marks.has(Marks::BELOW) {
            return self.below_cut(zone, missing.encloser_name);
        }
        if marks.has(Marks::CUT) {
            return self.refer(zone, missing.encloser, missing.encloser_name);
        }
        if marks.has(Marks::DNAME) {
            return self.substitute(missing.encloser, missing.encloser_name, name);
        }
        if marks.has(Marks::WILDCARD)
            && let Some(wildcard) = self.wildcard(zone, missing.encloser_name)
        {
            return self.at_name(zone, wildcard, name, Some(&missing));
        }
        if let Some(specials) = self.zones.specials_of(zone)
            && let Some(step) = self.make(specials, zone, name, hash)?
        {
            return Ok(step);
        }
        if let Some(online) = self.online(zone) {
            return self.absent_online(zone, online, name);
        }
        self.whole(|run| {
            run.negative(zone)?;
            run.prove_absence(zone, &missing)
        })?;
        Ok(Step::Done(Rcode::NXDOMAIN))
    }

    fn closest_encloser<'n>(&self, zone: &'r Zone, name: Name<'n>) -> Option<Missing<'r, 'n>> {
        let mut next_closer = name;
        let mut labels = name.label_count();
        // Ends: each turn takes a label off, and the apex exists.
        loop {
            let parent = next_closer.parent().filter(|parent| parent.len() >= zone.apex().len())?;
            labels = labels.saturating_sub(1);
            // Nothing is as deep as a name made to be looked for in vain.
            if labels <= usize::from(zone.labels_max)
                && let Some(encloser) = zone.find(parent, self.zones.key().hash_name(parent))
            {
                return Some(Missing { name, encloser, encloser_name: parent, next_closer });
            }
            next_closer = parent;
        }
    }

    fn wildcard(&self, zone: &'r Zone, encloser: Name<'_>) -> Option<Block<'r>> {
        let name = wildcard_of(encloser)?;
        zone.find(name.as_name(), self.zones.key().hash_name(name.as_name()))
    }

    /// Answers from a name; `missing` says that it is the wildcard that stands in for `name`.
    #[inline(never)]
    fn at_name(
        &mut self,
        zone: &'r Zone,
        block: Block<'r>,
        name: Name<'_>,
        missing: Option<&Missing<'r, '_>>,
    ) -> Result<Step, Full> {
        self.at_name_inlined(zone, block, name, missing)
    }

    /// Does what [`Run::at_name`] does, as a part of its caller: for names that are there, which
    /// nothing else stands in for.
    #[inline(always)]
    fn at_name_inlined(
        &mut self,
        zone: &'r Zone,
        block: Block<'r>,
        name: Name<'_>,
        missing: Option<&Missing<'r, '_>>,
    ) -> Result<Step, Full> {
        // RFC 8482 §4.1: one RRset is enough of an answer.
        let found = match self.asked.qtype {
            Rtype::ANY => match self.several(zone, block, name, missing) {
                Some(step) => return step,
                None => any(block),
            },
            Rtype::RRSIG => None,
            qtype => block.rrset(qtype),
        };
        if let Some(rrset) = found {
            if target_at(rrset.rtype).is_some() {
                return self.positive_with_hosts(zone, name, &rrset, missing);
            }
            self.positive(zone, name, &rrset, missing)?;
            self.prove_expansions()?;
            return Ok(Step::Done(Rcode::NOERROR));
        }
        self.otherwise(zone, block, name, missing)
    }

    /// Answers a question for ANY with what people look for, if that is wanted and there is some.
    #[cold]
    fn several(
        &mut self,
        zone: &'r Zone,
        block: Block<'r>,
        name: Name<'_>,
        missing: Option<&Missing<'r, '_>>,
    ) -> Option<Result<Step, Full>> {
        const SEVERAL: [Rtype; 4] = [Rtype::SOA, Rtype::MX, Rtype::A, Rtype::AAAA];
        let has_some = || SEVERAL.iter().any(|&rtype| block.rrset(rtype).is_some());
        if !self.asked.manner.several || missing.is_some() || !has_some() {
            return None;
        }
        let mut all = SEVERAL.into_iter().filter_map(|rtype| block.rrset(rtype));
        let written = all.try_for_each(|rrset| self.positive(zone, name, &rrset, None));
        Some(written.and_then(|()| self.prove_expansions()).map(|()| Step::Done(Rcode::NOERROR)))
    }

    /// Writes an RRset of the answer section, and why no closer name answers if a wildcard does.
    #[inline(always)]
    fn positive(
        &mut self,
        zone: &'r Zone,
        name: Name<'_>,
        rrset: &Rrset<'_>,
        missing: Option<&Missing<'r, '_>>,
    ) -> Result<(), Full> {
        match missing {
            None => self.rrset(Section::Answer, name, rrset),
            Some(missing) => {
                // RFC 9824 §3.3: as if the name were there.
                if let Some(online) = self.online(zone) {
                    return self.sign(online, Section::Answer, name, rrset, Share::Part);
                }
                if !self.note_expansion(zone, missing) {
                    return Err(Full);
                }
                self.rrset(Section::Answer, name, rrset)
            }
        }
    }

    /// The name has no records of the type: an alias, or nothing.
    #[cold]
    fn otherwise(
        &mut self,
        zone: &'r Zone,
        block: Block<'r>,
        name: Name<'_>,
        missing: Option<&Missing<'r, '_>>,
    ) -> Result<Step, Full> {
        let has_signatures = || missing.is_none() && block.rrsets().any(|rrset| rrset.signature_count > 0);
        if let Some(online) = self.online(zone)
            && (self.asked.qtype == Rtype::NSEC || (self.asked.qtype == Rtype::RRSIG && !has_signatures()))
        {
            let share = if missing.is_some() { Share::Part } else { Share::Whole };
            let types = self.types(zone, block, name);
            self.answer_with_proof(zone, online, name, &types, share)?;
            return Ok(Step::Done(Rcode::NOERROR));
        }
        if matches!(self.asked.qtype, Rtype::A | Rtype::AAAA)
            && let Some(alias) = block.alias()
            && self.flatten(zone, &alias, name)?
        {
            return Ok(Step::Done(Rcode::NOERROR));
        }
        if self.asked.qtype == Rtype::RRSIG {
            let has_some = block.rrsets().any(|rrset| rrset.signature_count > 0);
            if has_some {
                self.whole(|run| {
                    for rrset in block.rrsets() {
                        run.records(Section::Answer, name, Layout::Plain, rrset.signatures)?;
                    }
                    run.prove_expansions()
                })?;
                return Ok(Step::Done(Rcode::NOERROR));
            }
        } else if block.marks().has(Marks::ALIASED)
            && let Some(alias) = block.rrset(Rtype::CNAME)
        {
            let target = self.hosts_of(Section::Answer, name, &alias).next();
            self.positive(zone, name, &alias, missing)?;
            let target = target.and_then(|(record, place)| Some((Name::parse(record.rdata).ok()?.0, place)));
            return Ok(match target {
                Some((target, place)) => {
                    self.next_target = place;
                    Step::Follow(target.to_buf())
                }
                None => Step::Done(Rcode::SERVFAIL),
            });
        }
        self.whole(|run| {
            run.negative(zone)?;
            match missing {
                None => run.prove_no_data(zone, block, name),
                Some(missing) => run.prove_no_data_at_wildcard(zone, block, missing),
            }
        })?;
        Ok(Step::Done(Rcode::NOERROR))
    }

    /// Writes a DNAME and the CNAME it stands for (RFC 6672 §3.1).
    #[cold]
    fn substitute(&mut self, block: Block<'r>, owner: Name<'_>, name: Name<'_>) -> Result<Step, Full> {
        let Some(dname) = block.rrset(Rtype::DNAME) else { return Ok(Step::Done(Rcode::SERVFAIL)) };
        // A chain of aliases may meet it more than once.
        if self.written.add(&dname) {
            self.rrset(Section::Answer, owner, &dname)?;
        }
        let Some(record) = Records(dname.records).next() else { return Ok(Step::Done(Rcode::SERVFAIL)) };
        let prefix = name.as_bytes().get(..name.len() - owner.len()).unwrap_or(&[]);
        let target =
            Name::parse(record.rdata).ok().and_then(|(target, _)| NameBuf::below(prefix, target).ok());
        // RFC 6672 §2.2: the name would be too long.
        let Some(target) = target else { return Ok(Step::Done(Rcode::YXDOMAIN)) };
        let ttl = Ttl::new(record.ttl);
        self.writer.record(Section::Answer, name, Rtype::CNAME, Class::IN, ttl, |writer| {
            writer.name(target.as_name())
        })?;
        // Below itself it would only be met again, with ever longer names.
        let is_loop = target.as_name().is_at_or_below(owner);
        if is_loop || matches!(self.asked.qtype, Rtype::CNAME | Rtype::ANY) {
            return Ok(Step::Done(Rcode::NOERROR));
        }
        Ok(Step::Follow(target))
    }

    pub(crate) fn specials_of(&self, zone: &'r Zone) -> Option<&'r Specials> {
        self.zones.specials_of(zone)
    }

    pub(crate) fn key(&self) -> &'r HashKey {
        self.zones.key()
    }

    pub(crate) fn qtype(&self) -> Rtype {
        self.asked.qtype
    }

    pub(crate) fn find_host(&self, zone: &'r Zone, name: Name<'_>) -> Option<Block<'r>> {
        zone.find(name, self.zones.key().hash_name(name))
    }
}

/// Returns the RRset that answers for all: the alias, what people look for, or the first there is.
#[cold]
fn any(block: Block<'_>) -> Option<Rrset<'_>> {
    let preferred = [Rtype::CNAME, Rtype::A, Rtype::AAAA, Rtype::MX];
    let found = preferred.into_iter().find_map(|rtype| block.rrset(rtype));
    found.or_else(|| block.rrsets().find(|rrset| rrset.count > 0))
}
