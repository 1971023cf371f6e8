//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers a question from the zones (RFC 1034 §4.3.2, as RFC 4592, 6672, 8020 and 9471 made it clear).
//!
//! # Limitations
//!
//! Authority sections of positive answers stay empty (minimal responses); addresses of hosts that MX, SRV, SVCB and
//! HTTPS name are sent along from every zone that is served.

use std::net::IpAddr;

use wire::{
    Class, Cuts, Full, HashKey, Header, Name, NameBuf, Rcode, Rtype, Section, Ttl, Writer, eq_ignore_case,
};

use crate::alias::ADDRESSES_OCTETS_MAX;
use crate::block::{Block, Hosts, Layout, Marks, RECORD_HEAD, Records, Rrset};
use crate::denial::{EXPANSIONS_MAX, Expansions, Written};
use crate::online::{Share, Types};
use crate::specials::{Choice, MADE_OCTETS_MAX, Made, Specials, copy_without};
use crate::target::target_at;
use crate::zone::Zone;
use crate::zones::Zones;

/// Aliases followed for one question, so that a chain of them cannot hold a worker.
pub const ALIASES_MAX: usize = 16;
/// Hosts whose addresses are looked for, so that an RRset of thousands cannot hold a worker.
const HOSTS_MAX: usize = 64;

/// A question, and what the client takes.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The name.
    pub qname: Name<'a>,
    /// The type.
    pub qtype: Rtype,
    /// Whether signatures and proofs are wanted (DO).
    pub wants_dnssec: bool,
    /// The name's hash with the key of the zones and the number of its labels, if they are known: then they are not worked out
    /// again.
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
    /// Answers a question of class IN; `None` when none of the zones is responsible for the name. What belongs to a
    /// zone that could not be loaded gets SERVFAIL.
    ///
    /// The question stands in the writer already; its limit leaves room for what the caller adds (OPT). RRsets are
    /// written whole or not at all.
    pub fn answer(&self, asked: &Asked<'_>, writer: &mut Writer<'_>) -> Option<Answered> {
        let known = asked.known.unwrap_or_else(|| self.known_of(asked.qname));
        let served = self.zone_for(asked.qname, known, asked.qtype)?;
        let Some(zone) = served.zone() else {
            let is_admitted = self.admits(served.apex(), asked.from);
            return Some(unanswered(if is_admitted { Failure::Unloaded } else { Failure::Prohibited }));
        };
        let mut run = Run {
            zones: self,
            asked,
            rotation: if self.rotates() { asked.random } else { 0 },
            depends_on_client: false,
            writer,
            is_authoritative: true,
            has_moved: false,
            next_target: None,
            target: None,
            expansions: [None; EXPANSIONS_MAX],
            written: Written::default(),
            failure: None,
        };
        let step = run.step(zone, asked.qname, known.0);
        Some(match step {
            Ok(Step::Done(rcode)) => run.answered(rcode),
            Ok(Step::Follow(target)) => run.follow(asked.qname, target),
            Err(Full) => run.cut(),
        })
    }
}

/// Returns what is said of a question that no zone answers.
#[cold]
const fn unanswered(failure: Failure) -> Answered {
    Answered {
        rcode: failure.rcode(),
        is_authoritative: false,
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

/// What there is of the target of an ALIAS.
enum Target<'z> {
    /// It is in none of our zones.
    Elsewhere,
    /// These records without those whose bits are set, or none.
    Has(Option<(Rrset<'z>, u64)>),
    /// It leads on to another name, and may be kept for so long.
    Leads(NameBuf, u32),
}

/// Hosts whose addresses are written already.
struct Seen {
    places: [usize; HOSTS_MAX],
    count: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self { places: [0; HOSTS_MAX], count: 0 }
    }
}

impl Seen {
    /// Returns whether this is the first time.
    fn add(&mut self, host: Block<'_>) -> bool {
        let place = host.address();
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

impl<'r> Run<'r, '_> {
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
            let Some(zone) = served.zone() else {
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
            return self.at_wall(zone, block, name);
        }
        self.absent(zone, name, hash)
    }

    /// Answers with what is chosen for the client, if there is a choice at the name.
    #[cold]
    fn choose(
        &mut self,
        zone: &'r Zone,
        specials: &'r Specials,
        name: Name<'_>,
        hash: u64,
    ) -> Result<Option<Step>, Full> {
        let qtype = self.asked.qtype;
        let is_wanted = |choice: &&Choice| {
            qtype == Rtype::ANY || choice.rtype() == qtype || choice.rtype() == Rtype::CNAME
        };
        let Some(choice) = specials.choices(name, hash).find(is_wanted) else { return Ok(None) };
        let Some((mut rrset, down)) = choice.choose(self.asked.client, self.asked.random) else {
            return Ok(None);
        };
        self.depends_on_client |= choice.depends_on_client();
        let mut octets = [0; ADDRESSES_OCTETS_MAX];
        if down != 0 {
            let (count, len) = copy_without(rrset.records, down, &mut octets);
            rrset = Rrset { count, records: octets.get(..len).unwrap_or(&[]), ..rrset };
        }
        match self.online(zone) {
            Some(online) => self.sign(online, Section::Answer, name, &rrset, Share::Whole)?,
            None => self.rrset(Section::Answer, name, &rrset)?,
        }
        if rrset.rtype == Rtype::CNAME && !matches!(qtype, Rtype::CNAME | Rtype::ANY) {
            let target = Records(rrset.records).next().and_then(|record| Name::parse(record.rdata).ok());
            return Ok(Some(match target {
                Some((target, _)) => Step::Follow(target.to_buf()),
                None => Step::Done(Rcode::SERVFAIL),
            }));
        }
        self.hosts(zone, &rrset, Hosts::new(&rrset), name);
        Ok(Some(Step::Done(Rcode::NOERROR)))
    }

    /// Answers for a name that no record has: it may be made from an address, or exist because something is to be chosen
    /// at it.
    #[cold]
    fn make(
        &mut self,
        specials: &'r Specials,
        zone: &'r Zone,
        name: Name<'_>,
        hash: u64,
    ) -> Result<Option<Step>, Full> {
        let made = specials.make(name, zone.apex());
        if made.is_none() && !specials.has_at_or_below(name, hash) {
            return Ok(None);
        }
        let wanted = made
            .as_ref()
            .filter(|made| matches!(self.asked.qtype, Rtype::ANY) || made.rtype() == self.asked.qtype);
        if let Some(made) = wanted {
            let mut octets = [0; MADE_OCTETS_MAX];
            let Some(rrset) = made.rrset(&mut octets) else { return Ok(Some(Step::Done(Rcode::SERVFAIL))) };
            match self.online(zone) {
                // Whoever owns the network made no more names than it has addresses.
                Some(online) => self.sign(online, Section::Answer, name, &rrset, Share::Part)?,
                None => self.rrset(Section::Answer, name, &rrset)?,
            }
            return Ok(Some(Step::Done(Rcode::NOERROR)));
        }
        self.whole(|run| {
            run.negative(zone)?;
            let Some(online) = run.online(zone) else { return Ok(()) };
            let mut types = Types::new();
            made.iter().map(Made::rtype).for_each(|rtype| types.add(rtype));
            run.deny(zone, online, name, &types, Share::Part)
        })?;
        Ok(Some(Step::Done(Rcode::NOERROR)))
    }

    /// The name exists, but a zone cut or a DNAME is at it or above it.
    #[cold]
    fn at_wall(&mut self, zone: &'r Zone, block: Block<'r>, name: Name<'_>) -> Result<Step, Full> {
        if !block.marks().has(Marks::BELOW) {
            // RFC 4035 §3.1.4.1: the parent knows the DS of a cut.
            if self.asked.qtype == Rtype::DS {
                return self.at_name(zone, block, name, None);
            }
            return self.refer(zone, block, name);
        }
        self.below_wall(zone, name)
    }

    /// Finds the highest zone cut or DNAME above a name that lies below one.
    #[cold]
    fn below_wall(&mut self, zone: &'r Zone, name: Name<'_>) -> Result<Step, Full> {
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
            return self.below_wall(zone, missing.encloser_name);
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

    /// Does what [`Run::at_name`] does, as a part of its caller: for names that are there, which nothing else stands in for.
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
            Rtype::ANY => any(block),
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

    /// Answers with an RRset that names hosts, and with their addresses.
    #[cold]
    fn positive_with_hosts(
        &mut self,
        zone: &'r Zone,
        name: Name<'_>,
        rrset: &Rrset<'r>,
        missing: Option<&Missing<'r, '_>>,
    ) -> Result<Step, Full> {
        let hosts = self.hosts_of(Section::Answer, name, rrset);
        self.positive(zone, name, rrset, missing)?;
        self.prove_expansions()?;
        self.hosts(zone, rrset, hosts, name);
        Ok(Step::Done(Rcode::NOERROR))
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

    /// Answers with the addresses of an ALIAS's target; returns whether it has any of the type asked for.
    #[cold]
    fn flatten(&mut self, zone: &'r Zone, alias: &Rrset<'_>, name: Name<'_>) -> Result<bool, Full> {
        let mut octets = [0; ADDRESSES_OCTETS_MAX];
        let Some((count, len)) = self.addresses_of(alias, self.asked.qtype, &mut octets) else {
            self.fail(Failure::Unfollowed)?;
            return Ok(false);
        };
        if count == 0 {
            return Ok(false);
        }
        let rrset = Rrset {
            rtype: self.asked.qtype,
            layout: Layout::Plain,
            count,
            signature_count: 0,
            records: octets.get(..len).unwrap_or(&[]),
            signatures: &[],
            cuts: &[],
        };
        match self.online(zone) {
            Some(online) => self.sign(online, Section::Answer, name, &rrset, Share::Whole)?,
            None => self.rrset(Section::Answer, name, &rrset)?,
        }
        Ok(true)
    }

    /// Copies what the target of an ALIAS has of a type, as records that stand ready: how many, and their octets. `None` when
    /// that is not known.
    #[cold]
    pub(crate) fn addresses_of(
        &mut self,
        alias: &Rrset<'_>,
        rtype: Rtype,
        out: &mut [u8; ADDRESSES_OCTETS_MAX],
    ) -> Option<(u16, usize)> {
        let record = Records(alias.records).next()?;
        let mut ttl = record.ttl;
        let mut target = Name::parse(record.rdata).ok()?.0.to_buf();
        // Ends: a loop of aliases is as long as they may be.
        for _ in 0..ALIASES_MAX {
            let known = self.zones.known_of(target.as_name());
            let found = match self.zones.zone_for(target.as_name(), known, rtype) {
                None => Target::Elsewhere,
                Some(served) => self.target(served.zone()?, target.as_name(), rtype),
            };
            match found {
                Target::Elsewhere => {
                    let aliases = self.zones.aliases()?;
                    let (count, len) = aliases.find((target.as_name(), rtype), self.asked.age_at.0, out)?;
                    cap_ttls(out.get_mut(..len)?, ttl);
                    return Some((count, len));
                }
                Target::Has(None) => return Some((0, 0)),
                Target::Has(Some((rrset, down))) => {
                    let (count, len) = copy_without(rrset.records, down, out);
                    cap_ttls(out.get_mut(..len)?, ttl);
                    return Some((count, len));
                }
                Target::Leads(next, next_ttl) => (target, ttl) = (next, ttl.min(next_ttl)),
            }
        }
        None
    }

    /// Looks for what a name of one of our zones has of a type.
    fn target(&mut self, zone: &'r Zone, name: Name<'_>, rtype: Rtype) -> Target<'r> {
        let hash = self.key().hash_name(name);
        if let Some(specials) = self.zones.specials_of(zone)
            && let Some(choice) = specials.choices(name, hash).find(|choice| choice.rtype() == rtype)
        {
            self.depends_on_client |= choice.depends_on_client();
            return Target::Has(choice.choose(self.asked.client, self.asked.random));
        }
        let block = match zone.find(name, hash) {
            Some(block) => block,
            None => {
                let Some(missing) = self.closest_encloser(zone, name) else { return Target::Has(None) };
                let marks = missing.encloser.marks();
                if marks.has(Marks::CUT.with(Marks::BELOW).with(Marks::DNAME)) {
                    return Target::Elsewhere;
                }
                match self.wildcard(zone, missing.encloser_name).filter(|_| marks.has(Marks::WILDCARD)) {
                    Some(block) => block,
                    None => return Target::Has(None),
                }
            }
        };
        // What lies below a zone cut is somebody else's.
        if block.marks().has(Marks::CUT.with(Marks::BELOW)) {
            return Target::Elsewhere;
        }
        let lead = |rrset: Rrset<'r>| {
            let record = Records(rrset.records).next()?;
            let (name, _) = Name::parse(record.rdata).ok()?;
            Some(Target::Leads(name.to_buf(), record.ttl))
        };
        block.rrset(rtype).map_or_else(
            || {
                let next = block.rrset(Rtype::CNAME).or_else(|| block.alias());
                next.and_then(lead).unwrap_or(Target::Has(None))
            },
            |rrset| Target::Has(Some((rrset, 0))),
        )
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

    /// Refers to the servers of a zone cut (RFC 1034 §4.3.2 step 3b).
    #[cold]
    fn refer(&mut self, zone: &'r Zone, block: Block<'r>, owner: Name<'_>) -> Result<Step, Full> {
        self.is_authoritative = false;
        let Some(servers) = block.rrset(Rtype::NS) else { return Ok(Step::Done(Rcode::SERVFAIL)) };
        let hosts = match self.expansions {
            [None, ..] => self.hosts_of(Section::Authority, owner, &servers),
            [Some(_), ..] => Hosts::new(&servers),
        };
        self.whole(|run| {
            run.prove_expansions()?;
            run.unsigned(Section::Authority, owner, &servers)?;
            if !run.asked.wants_dnssec {
                return Ok(());
            }
            match block.rrset(Rtype::DS) {
                Some(ds) if ds.signature_count > 0 => run.rrset(Section::Authority, owner, &ds),
                // Without a signature nobody believes it: the zone is not signed.
                Some(_) => Ok(()),
                None => run.prove_no_ds(zone, block, owner),
            }
        })?;
        let mut seen = Seen::default();
        // RFC 9471 §3.1: addresses of servers below the cut must all be there; those of others may.
        for is_required in [true, false] {
            for (record, place) in hosts.clone().take(HOSTS_MAX) {
                let Ok((server, _)) = Name::parse(record.rdata) else { continue };
                if !server.is_at_or_below(zone.apex()) || server.is_at_or_below(owner) != is_required {
                    continue;
                }
                let Some(host) = self.find_host(zone, server).filter(|host| seen.add(*host)) else {
                    continue;
                };
                let written = self.addresses(host, server, place);
                if is_required {
                    written?;
                }
            }
        }
        Ok(Step::Done(Rcode::NOERROR))
    }

    /// Writes the addresses of the hosts that records name; what does not fit is left out (RFC 2181 §9).
    #[cold]
    fn hosts(&mut self, zone: &'r Zone, rrset: &Rrset<'_>, hosts: Hosts<'_>, owner: Name<'_>) {
        let Some(target_at) = target_at(rrset.rtype) else { return };
        let mut seen = Seen::default();
        for (record, place) in hosts.take(HOSTS_MAX) {
            let Some(Ok((target, _))) = record.rdata.get(target_at..).map(Name::parse) else { continue };
            let is_service = matches!(rrset.rtype, Rtype::SVCB | Rtype::HTTPS);
            // RFC 9460 §2.5: a dot stands for the owner, unless it is an alias.
            let target = match (target.is_root(), is_service && !record.rdata.starts_with(&[0, 0])) {
                (true, true) => owner,
                (true, false) => continue,
                (false, _) => target,
            };
            let zone = match self.zones.certainly_in(target, zone) {
                true => Some(zone),
                false => self.zones.zone_of(target),
            };
            let zone = zone.filter(|zone| self.zones.admits(zone.apex(), self.asked.from));
            let found = zone.and_then(|zone| self.find_host(zone, target));
            if let Some(host) = found.filter(|host| seen.add(*host)) {
                // RFC 9460 §4.1: what an alias names has records of the same type.
                if is_service
                    && record.rdata.starts_with(&[0, 0])
                    && let Some(service) = host.rrset(rrset.rtype)
                {
                    let _ = self.rrset(Section::Additional, target, &service);
                }
                let _ = self.addresses(host, target, place);
            }
        }
    }

    /// Walks the hosts of an RRset that is written next.
    fn hosts_of<'z>(&self, section: Section, owner: Name<'_>, rrset: &Rrset<'z>) -> Hosts<'z> {
        match self.cuts_of(section, owner, rrset) {
            Some((cuts, above)) => Hosts::cut(rrset, &cuts, above, self.writer.len()),
            None => Hosts::new(rrset),
        }
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

    /// Writes a host's addresses to the additional section; `place` is where its name is in the message, if that is known.
    fn addresses(&mut self, host: Block<'_>, name: Name<'_>, place: Option<u16>) -> Result<(), Full> {
        for rtype in [Rtype::A, Rtype::AAAA] {
            if let Some(rrset) = host.rrset(rtype) {
                match place {
                    Some(place) => self.under(Section::Additional, &rrset, place)?,
                    None => self.rrset(Section::Additional, name, &rrset)?,
                }
            }
        }
        Ok(())
    }

    /// Writes an RRset without names in its data, with its signatures if they are wanted; its owner stands at `place`.
    pub(crate) fn under(&mut self, section: Section, rrset: &Rrset<'_>, place: u16) -> Result<(), Full> {
        self.whole(|run| {
            run.writer.ready_under(section, rrset.count, rrset.records, place)?;
            run.signatures_under(section, rrset, place)
        })
    }

    /// Writes the signatures of an RRset whose owner stands at `place`, if they are wanted.
    pub(crate) fn signatures_under(
        &mut self,
        section: Section,
        rrset: &Rrset<'_>,
        place: u16,
    ) -> Result<(), Full> {
        if !self.asked.wants_dnssec || rrset.signature_count == 0 {
            return Ok(());
        }
        self.writer.ready_under(section, rrset.signature_count, rrset.signatures, place)
    }

    /// Returns where the apex of a zone is in the message, if a name in the zone was asked for.
    pub(crate) fn apex_at(&self, zone: &Zone) -> Option<u16> {
        let above = self.asked.qname.len().checked_sub(zone.apex().len())?;
        (!self.has_moved).then_some((Header::LEN + above) as u16)
    }

    /// Writes the SOA of a negative answer (RFC 2308 §3).
    pub(crate) fn negative(&mut self, zone: &Zone) -> Result<(), Full> {
        let negative = &zone.negative;
        let is_short = !negative.short.is_empty() && self.writer.can_point(negative.short.len());
        match self.apex_at(zone).filter(|_| is_short) {
            Some(apex_at) => {
                let (short, pointers) = (&negative.short, &negative.pointers);
                if usize::from(apex_at) == Header::LEN && self.writer.is_at_body() {
                    self.writer.ready(Section::Authority, 1, short)?;
                } else {
                    self.writer.ready_but_for(Section::Authority, short, pointers, usize::from(apex_at))?;
                }
                self.signatures_under(Section::Authority, &negative.rrset(), apex_at)?;
            }
            None => self.rrset(Section::Authority, zone.apex(), &negative.rrset())?,
        }
        self.prove_expansions()
    }

    /// Runs `f`; what it wrote stays only if all of it fits.
    #[inline]
    pub(crate) fn whole(&mut self, f: impl FnOnce(&mut Self) -> Result<(), Full>) -> Result<(), Full> {
        let mark = self.writer.mark();
        f(self).inspect_err(|_| self.writer.take_back(mark))
    }

    /// Writes an RRset, with its signatures if they are wanted.
    #[inline]
    pub(crate) fn rrset(&mut self, section: Section, owner: Name<'_>, rrset: &Rrset<'_>) -> Result<(), Full> {
        if !self.asked.wants_dnssec || rrset.signature_count == 0 {
            return self.unsigned(section, owner, rrset);
        }
        self.whole(|run| {
            let at = run.writer.len();
            run.unsigned(section, owner, rrset)?;
            match run.writer.place_of(at) {
                Some(place) => run.signatures_under(section, rrset, place),
                None => run.plain(section, owner, rrset.signatures, rrset.signature_count),
            }
        })
    }

    /// Writes an RRset without signatures.
    #[inline]
    fn unsigned(&mut self, section: Section, owner: Name<'_>, rrset: &Rrset<'_>) -> Result<(), Full> {
        if self.rotation != 0 && rrset.count > 1 && section == Section::Answer {
            return self.rotated(section, owner, rrset);
        }
        match rrset.layout {
            Layout::Plain => self.plain(section, owner, rrset.records, rrset.count),
            Layout::Names { .. } => self.with_names(section, owner, rrset),
        }
    }

    /// Writes an RRset with names in its data, without signatures.
    #[inline(never)]
    fn with_names(&mut self, section: Section, owner: Name<'_>, rrset: &Rrset<'_>) -> Result<(), Full> {
        match self.cuts_of(section, owner, rrset) {
            Some((cuts, above)) => self.writer.shortened(section, rrset.count, rrset.records, &cuts, above),
            None => self.whole(|run| run.records(section, owner, rrset.layout, rrset.records)),
        }
    }

    /// Returns where the names in the data of an RRset are cut if it is written next, and how many octets of the question's name
    /// are in front of its owner; nothing if that was not worked out for this place.
    #[inline]
    fn cuts_of<'z>(&self, section: Section, owner: Name<'_>, rrset: &Rrset<'z>) -> Option<(Cuts<'z>, u8)> {
        let is_rotated = self.rotation != 0 && rrset.count > 1 && section == Section::Answer;
        let (cuts, above) = rrset.cuts().filter(|_| !is_rotated).zip(self.octets_above(owner))?;
        (above == 0 || !self.leads_on(rrset, above)).then_some((cuts, above))
    }

    /// Returns whether a name in the data that ends with the owner may have more labels in common with the question's name, which
    /// has so many octets in front of the owner.
    fn leads_on(&self, rrset: &Rrset<'_>, above: u8) -> bool {
        let mut label = self.asked.qname.as_bytes().get(..usize::from(above)).unwrap_or(&[]);
        // Ends: each turn takes a label off.
        while let Some((_, rest)) =
            label.split_first().and_then(|(&len, _)| label.split_at_checked(usize::from(len) + 1))
            && !rest.is_empty()
        {
            label = rest;
        }
        rrset.ends().any(|end| {
            let end = end.len().checked_sub(label.len()).and_then(|at| end.get(at..));
            end.is_some_and(|end| eq_ignore_case(end, label))
        })
    }

    /// Returns how many octets of the question's name are in front of `owner`, if nothing is written but the question and it
    /// was taken from there.
    #[inline]
    fn octets_above(&self, owner: Name<'_>) -> Option<u8> {
        let (asked, owner) = (self.asked.qname.as_bytes(), owner.as_bytes());
        let above = asked.len().checked_sub(owner.len())?;
        let is_part = asked.get(above..).is_some_and(|part| std::ptr::eq(part, owner));
        (is_part && self.writer.is_at_body()).then_some(above as u8)
    }

    /// Writes an RRset without signatures, beginning with the record that the rotation chooses.
    #[cold]
    fn rotated(&mut self, section: Section, owner: Name<'_>, rrset: &Rrset<'_>) -> Result<(), Full> {
        let mut rest = Records(rrset.records);
        let skipped = self.rotation as usize % usize::from(rrset.count);
        for _ in 0..skipped {
            rest.next();
        }
        let (first, last) = rrset.records.split_at(rrset.records.len() - rest.0.len());
        self.whole(|run| {
            run.records(section, owner, rrset.layout, last)?;
            run.records(section, owner, rrset.layout, first)
        })
    }

    /// Writes records whose data stands as it is sent.
    #[inline]
    fn plain(&mut self, section: Section, owner: Name<'_>, records: &[u8], count: u16) -> Result<(), Full> {
        // Mostly it is not only the same name, but the same memory.
        if std::ptr::eq(owner.as_bytes(), self.asked.qname.as_bytes()) || self.writer.is_asked_for(owner) {
            return self.writer.ready(section, count, records);
        }
        match self.target.filter(|(address, _)| *address == owner.as_bytes().as_ptr().addr()) {
            Some((_, place)) => self.writer.ready_under(section, count, records, place),
            None => self.whole(|run| run.records(section, owner, Layout::Plain, records)),
        }
    }

    /// Writes records one by one.
    fn records(
        &mut self,
        section: Section,
        owner: Name<'_>,
        layout: Layout,
        records: &[u8],
    ) -> Result<(), Full> {
        for record in Records(records) {
            self.writer.record(section, owner, record.rtype, Class::IN, Ttl::new(record.ttl), |writer| {
                layout.write(writer, record.rdata)
            })?;
        }
        Ok(())
    }
}

/// Makes the TTLs of records that stand ready no larger than `ttl`.
fn cap_ttls(mut records: &mut [u8], ttl: u32) {
    while let Some((head, rest)) = records.split_first_chunk_mut::<RECORD_HEAD>() {
        let &mut [_, _, _, _, _, _, s0, s1, s2, s3, l0, l1] = head;
        let own = u32::from_be_bytes([s0, s1, s2, s3]).min(ttl);
        if let Some(place) = head.get_mut(6..10) {
            place.copy_from_slice(&own.to_be_bytes());
        }
        records = rest.get_mut(usize::from(u16::from_be_bytes([l0, l1]))..).unwrap_or(&mut []);
    }
}

/// Returns the RRset that answers for all: the alias, what people look for, or the first there is.
#[cold]
fn any(block: Block<'_>) -> Option<Rrset<'_>> {
    let preferred = [Rtype::CNAME, Rtype::A, Rtype::AAAA, Rtype::MX];
    let found = preferred.into_iter().find_map(|rtype| block.rrset(rtype));
    found.or_else(|| block.rrsets().find(|rrset| rrset.count > 0))
}

/// Returns the wildcard directly below a name.
pub(crate) fn wildcard_of(name: Name<'_>) -> Option<NameBuf> {
    NameBuf::below(b"\x01*", name).ok()
}
