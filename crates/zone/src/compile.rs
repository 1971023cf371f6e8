//! Compiles collected records to a zone: names in the order of their hashes, checked and linked.

use std::ops::Range;

use dnssec::{Nsec3Hash, Nsec3Parameters};
use wire::rtypes;
use wire::{Class, Cut, Header, Name, NameBuf, Pointer, Rtype};

use crate::block::{Block, HEAD, Layout, Marks, OWNER, RECORD_HEAD, Records, SET_HEAD, UNIT, is_alias};
use crate::build::{Builder, COLLECTED_HEAD, FINDINGS_MAX, Run, labels_of};
use crate::canonical::{Key, word};
use crate::check::Problem;
use crate::master::Place;
use crate::nsec3::Nsec3Chain;
use crate::target::target_at;
use crate::zone::{Denial, Facts, Negative, NsecChain, Proof, Zone, bucket, find, wildcard_of};

/// Names that share a bucket, on average: what a look-up reads beside the name itself.
const NAMES_PER_BUCKET: usize = 1;
/// Octets that an RRset may have: what fits a message.
const RRSET_OCTETS_MAX: usize = 65_535;

/// A collected record.
#[derive(Clone)]
struct Collected {
    rtype: Rtype,
    /// The type it is kept with: what a signature covers, else its own.
    kept_with: Rtype,
    ttl: u32,
    line: u32,
    file: u16,
    rdata: Range<usize>,
}

/// Records that an RRset may have if it is to fit a message; in a larger one, doubles do not matter
/// any more.
const RRSET_RECORDS_MAX: usize = RRSET_OCTETS_MAX / RECORD_HEAD;

/// Returns whether records of a type say what a name is, or may not stand everywhere.
const fn decides(rtype: Rtype) -> bool {
    matches!(
        rtype,
        Rtype::SOA | Rtype::NS | Rtype::CNAME | Rtype::DNAME | Rtype::DS | Rtype::NSEC | Rtype::ALIAS
    )
}

/// Returns how the data of a type is written: where names are that may be compressed (RFC 3597 §4).
pub(crate) fn layout(rtype: Rtype) -> Layout {
    match rtypes::compressed(rtype) {
        Some((skipped, names)) => Layout::Names { skipped, names },
        None => Layout::Plain,
    }
}

/// A zone under way: names come in the order of their hashes, then what depends on other names is
/// found.
pub(crate) struct Compiler<'b> {
    builder: &'b mut Builder,
    /// What was collected.
    octets: &'b [u8],
    blocks: Vec<u8>,
    index: Vec<u32>,
    /// Where each block begins and where its first record stands in the file, in the order of
    /// blocks.
    places: Vec<(u32, u32, u16)>,
    /// The hash of each block.
    hashes: Vec<u64>,
    nsec3: Vec<(Nsec3Hash, u32)>,
    nsec3_blocks: Vec<u8>,
    records: Vec<Collected>,
    facts: Facts,
    has_dname: bool,
    soa: Option<(Vec<u8>, Vec<u8>, u16)>,
    has_ns: bool,
    parameters: Option<Nsec3Parameters>,
    nsec_count: usize,
    has_apex_nsec: bool,
}

impl<'b> Compiler<'b> {
    pub(crate) fn new(builder: &'b mut Builder, octets: &'b [u8], runs: usize) -> Self {
        let room = octets.len() + runs * (HEAD + SET_HEAD + OWNER.len() + UNIT);
        let mut blocks = Vec::with_capacity(room);
        sets::ask_for_huge_pages(blocks.spare_capacity_mut());
        Self {
            builder,
            octets,
            blocks,
            index: Vec::new(),
            places: Vec::with_capacity(runs),
            hashes: Vec::with_capacity(runs),
            nsec3: Vec::new(),
            nsec3_blocks: Vec::new(),
            records: Vec::new(),
            facts: Facts::default(),
            has_dname: false,
            soa: None,
            has_ns: false,
            parameters: None,
            nsec_count: 0,
            has_apex_nsec: false,
        }
    }

    fn find(&mut self, place: Option<Place>, labels: &[u8], problem: Problem) {
        let owner = NameBuf::below(labels, self.builder.apex.as_name()).unwrap_or(self.builder.apex);
        self.builder.find(place, owner.as_name(), problem);
    }

    /// Compiles one name from all its runs.
    pub(crate) fn name(&mut self, runs: &[Run]) {
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        for run in runs {
            collect(run, self.octets, &mut records);
        }
        let Some(first) = runs.first() else { return };
        let first = runs.iter().find(|run| run.end > 0).unwrap_or(first);
        let labels = labels_of(first, self.octets);
        let place = records.first().map(|record| Place { file: record.file, line: record.line });
        if self.builder.has_nsec3 && records.iter().any(|record| record.kept_with == Rtype::NSEC3) {
            let (proofs, others) = std::mem::take(&mut records)
                .into_iter()
                .partition::<Vec<_>, _>(|record| record.kept_with == Rtype::NSEC3);
            self.proof(labels, proofs, place);
            // A hash is no name of the zone (RFC 5155 §7.2.8), unless it has something else too, or
            // names below it have.
            if others.is_empty() && !labels.is_empty() && !runs.iter().any(Run::is_bare) {
                self.records = others;
                return;
            }
            records = others;
        }
        let hash = first.hash;
        let at = self.block(labels, hash, &mut records, place);
        self.records = records;
        let is_gone = first.is_gone;
        if is_gone {
            self.mark(at, Marks::GONE);
        }
        let line = place.map_or(0, |place| place.line);
        self.places.push((at, line, first.file));
        self.hashes.push(hash);
        self.facts.names += usize::from(!is_gone);
    }

    /// Compiles an NSEC3 record and its signatures.
    fn proof(&mut self, labels: &[u8], mut records: Vec<Collected>, place: Option<Place>) {
        let label = labels.split_first().and_then(|(&len, rest)| rest.get(..usize::from(len))).unwrap_or(&[]);
        let hash: Option<Nsec3Hash> =
            wire::text::read_base32_hex(label).and_then(|hash| hash.try_into().ok());
        let (Some(hash), true) = (hash, label.len() + 1 == labels.len()) else {
            self.find(place, labels, Problem::StrayNsec3);
            return;
        };
        let blocks = std::mem::take(&mut self.blocks);
        self.blocks = std::mem::take(&mut self.nsec3_blocks);
        let has_nsec3 = std::mem::replace(&mut self.builder.has_nsec3, false);
        let at = self.block(labels, 0, &mut records, place);
        self.builder.has_nsec3 = has_nsec3;
        self.nsec3_blocks = std::mem::replace(&mut self.blocks, blocks);
        self.nsec3.push((hash, at));
    }

    /// Writes the block of one name and returns where it is.
    fn block(&mut self, labels: &[u8], hash: u64, records: &mut Vec<Collected>, place: Option<Place>) -> u32 {
        let start = self.blocks.len();
        let is_linked = self.builder.has_nsec3;
        self.blocks.extend_from_slice(&(hash as u32).to_le_bytes());
        self.blocks.extend_from_slice(&[0; 4]);
        self.blocks.extend_from_slice(&[labels.len() as u8, 0, 0, 0]);
        self.blocks.extend_from_slice(labels);
        if is_linked {
            self.blocks.extend_from_slice(&[0; 4]);
        }
        if records.len() > 1 {
            // Signatures after what they cover; within that, as in the file.
            records.sort_by_key(|record| (record.kept_with, record.rtype == Rtype::RRSIG));
            self.drop_doubles(labels, records);
        }
        self.facts.records += records.len();
        let records = records.as_slice();
        let sets = || records.chunk_by(|a, b| a.kept_with == b.kept_with);
        let set_count = sets().count();
        let heads_at = self.blocks.len();
        self.blocks.resize(heads_at + set_count * SET_HEAD, 0);
        let mut findings = Vec::new();
        for (number, set) in sets().enumerate() {
            let Some(first) = set.first() else { continue };
            let rtype = first.kept_with;
            let covered = set.iter().take_while(|record| record.rtype == rtype).count();
            // Signatures of signatures do not exist; an RRSIG kept with RRSIG is one of nothing.
            let (data, signatures) =
                if rtype == Rtype::RRSIG { (&[][..], set) } else { set.split_at(covered) };
            let ttl = data.iter().map(|record| record.ttl).min();
            if data.iter().any(|record| Some(record.ttl) != ttl) {
                findings.push(Problem::Ttls(rtype));
            }
            let from = self.blocks.len();
            let octets = self.octets;
            write_records(data, ttl, octets, &mut self.blocks);
            let between = self.blocks.len();
            write_records(signatures, ttl, octets, &mut self.blocks);
            let end = self.blocks.len();
            if between - from > RRSET_OCTETS_MAX || end - between > RRSET_OCTETS_MAX || signatures.len() > 255
            {
                findings.push(Problem::TooLarge(rtype));
                self.blocks.truncate(from);
                continue;
            }
            let head = &mut self.blocks[heads_at + number * SET_HEAD..][..SET_HEAD];
            head[0..2].copy_from_slice(&rtype.0.to_le_bytes());
            head[2..4].copy_from_slice(&(data.len() as u16).to_le_bytes());
            head[4..6].copy_from_slice(&((between - from) as u16).to_le_bytes());
            head[6..8].copy_from_slice(&((end - between) as u16).to_le_bytes());
            head[8] = signatures.len() as u8;
            head[9] = layout(rtype).to_octet();
            if let Layout::Names { skipped, names } = layout(rtype)
                && !labels.starts_with(b"\x01*")
                && let Ok(owner) = NameBuf::below(labels, self.builder.apex.as_name())
                && let Some(cuts) = cuts(owner.as_name(), &self.blocks[from..between], skipped, names)
            {
                self.blocks[heads_at + number * SET_HEAD + 9] |= Layout::CUT;
                self.blocks.extend_from_slice(&cuts);
            }
        }
        let padded = self.blocks.len().next_multiple_of(UNIT);
        self.blocks.resize(padded, 0);
        let mut marks = if is_linked { Marks::LINKED } else { Marks(0) };
        if records.iter().any(|record| decides(record.kept_with)) {
            marks = self.judge(labels, records, marks, &mut findings);
        }
        let units = ((padded - start) / UNIT) as u32;
        self.blocks[start + 4..start + 8].copy_from_slice(&((units << 8) | u32::from(marks.0)).to_le_bytes());
        self.blocks[start + 10..start + 12].copy_from_slice(&(set_count as u16).to_le_bytes());
        for problem in findings {
            self.find(place, labels, problem);
        }
        if labels.is_empty() {
            self.note_apex(start);
        }
        (start / UNIT) as u32
    }

    /// Drops records that are there twice.
    fn drop_doubles(&mut self, labels: &[u8], records: &mut Vec<Collected>) {
        let mut doubles = Vec::new();
        let octets = self.octets;
        let mut kept = 0;
        for at in 0..records.len() {
            let record = &records[at];
            // Large RRsets are rare, and no name has many of them.
            let is_double = records[..kept]
                .iter()
                .rev()
                .take_while(|other| other.kept_with == record.kept_with)
                .take(RRSET_RECORDS_MAX)
                .any(|other| {
                    other.rtype == record.rtype
                        && is_same_data(record.rtype, octets, &record.rdata, &other.rdata)
                });
            if is_double {
                doubles.push((Place { file: record.file, line: record.line }, record.rtype));
            } else {
                records.swap(kept, at);
                kept += 1;
            }
        }
        records.truncate(kept);
        for (place, rtype) in doubles {
            self.find(Some(place), labels, Problem::Twice(rtype));
        }
    }

    /// Checks what may stand together at one name, and returns what the name is.
    fn judge(
        &mut self,
        labels: &[u8],
        records: &[Collected],
        marks: Marks,
        findings: &mut Vec<Problem>,
    ) -> Marks {
        let count = |rtype: Rtype| {
            records.iter().filter(|record| record.rtype == rtype && record.kept_with == rtype).count()
        };
        let is_apex = labels.is_empty();
        let is_wildcard = labels.starts_with(b"\x01*");
        let (aliases, dnames, servers) = (count(Rtype::CNAME), count(Rtype::DNAME), count(Rtype::NS));
        if aliases > 1 {
            findings.push(Problem::ManyAliases);
        }
        if dnames > 1 {
            findings.push(Problem::ManyDnames);
        }
        if aliases > 0 {
            // RFC 4035 §2.5: these may stand beside it. NXT and SIG of RFC 2535, which might once,
            // are none of them.
            let other = records
                .iter()
                .map(|record| record.kept_with)
                .find(|rtype| !matches!(*rtype, Rtype::CNAME | Rtype::NSEC | Rtype::RRSIG | Rtype::KEY));
            if let Some(other) = other {
                findings.push(Problem::AliasWithOthers(other));
            }
        }
        match (count(Rtype::SOA), is_apex) {
            (1, true) | (0, _) => {}
            (_, true) => findings.push(Problem::ManySoas),
            (_, false) => findings.push(Problem::SoaBelowApex),
        }
        if count(Rtype::DS) > 0 {
            if is_apex {
                findings.push(Problem::DsAtApex);
            } else if servers == 0 {
                findings.push(Problem::DsWithoutCut);
            }
        }
        let mut marks = marks;
        if servers > 0 && !is_apex {
            if is_wildcard {
                findings.push(Problem::WildcardCut);
            } else {
                marks = marks.with(Marks::CUT);
                self.facts.cuts += 1;
            }
            if dnames > 0 {
                findings.push(Problem::CutWithDname);
            }
        }
        if dnames > 0 {
            marks = marks.with(Marks::DNAME);
            self.has_dname = true;
            if is_wildcard {
                findings.push(Problem::WildcardDname);
            }
        }
        if records.iter().any(|record| matches!(record.kept_with, Rtype::CNAME | Rtype::ALIAS)) {
            marks = marks.with(Marks::ALIASED);
        }
        // Types for private use may mean something else to whoever made the zone.
        let is_target = |record: &Collected| {
            record.kept_with == Rtype::ALIAS && self.octets.get(record.rdata.clone()).is_some_and(is_alias)
        };
        match records.iter().filter(|record| is_target(record)).count() {
            0 => {}
            1 => self.facts.aliases += 1,
            _ => findings.push(Problem::ManyTargets),
        }
        self.nsec_count += usize::from(count(Rtype::NSEC) > 0);
        marks
    }

    /// Remembers what the apex says about the whole zone.
    fn note_apex(&mut self, start: usize) {
        let Some(block) = Block::read(&self.blocks, (start / UNIT) as u32) else { return };
        self.has_ns = block.rrset(Rtype::NS).is_some();
        self.has_apex_nsec = block.rrset(Rtype::NSEC).is_some();
        if let Some(soa) = block.rrset(Rtype::SOA) {
            self.soa = Some((soa.records.to_vec(), soa.signatures.to_vec(), soa.signature_count));
        }
        if let Some(all) = block.rrset(Rtype::NSEC3PARAM) {
            // RFC 5155 §4.1.2: those with flags are for signers only.
            let parameters = Records(all.records).filter(|record| record.rdata.get(1) == Some(&0));
            self.parameters = parameters.filter_map(|record| Nsec3Parameters::parse(record.rdata)).next();
        }
    }

    /// Builds the index over the blocks, which are in the order of hashes.
    pub(crate) fn index_names(&mut self) {
        let buckets = self.hashes.len() / NAMES_PER_BUCKET + 1;
        self.index = Vec::with_capacity(buckets + 1);
        sets::ask_for_huge_pages(self.index.spare_capacity_mut());
        for (hash, (at, ..)) in self.hashes.iter().zip(&self.places) {
            let bucket = bucket(*hash, buckets);
            while self.index.len() <= bucket {
                self.index.push(*at);
            }
        }
        let end = (self.blocks.len() / UNIT) as u32;
        self.index.resize(buckets + 1, end);
        self.hashes = Vec::new();
    }

    fn find_name(&self, name: Name<'_>) -> Option<Block<'_>> {
        let len = name.len().checked_sub(self.builder.apex.as_name().len())?;
        let labels = name.as_bytes().get(..len)?;
        let hash = self.builder.key.hash_name(name);
        match (find(&self.blocks, &self.index, labels, hash), &self.builder.base) {
            (None, Some(base)) => find(&base.blocks, &base.index, labels, hash),
            (found, _) => found.filter(|block| !block.marks().has(Marks::GONE)),
        }
    }

    fn mark(&mut self, at: u32, mark: Marks) {
        if let Some(octet) = self.blocks.get_mut(at as usize * UNIT + 4) {
            *octet = Marks(*octet).with(mark).0;
        }
    }

    /// Marks what depends on other names: what lies below zone cuts, and who has a wildcard.
    pub(crate) fn mark_names(&mut self) {
        let apex = self.builder.apex;
        let is_over = self.builder.base.is_some();
        // Those of the version below are not counted here.
        let has_dname = self.has_dname || is_over;
        let has_walls = self.facts.cuts > 0 || has_dname;
        let places = std::mem::take(&mut self.places);
        for &(at, line, file) in &places {
            let Some(block) = Block::read(&self.blocks, at) else { continue };
            if block.marks().has(Marks::GONE) {
                continue;
            }
            let labels = block.labels();
            let is_wildcard = labels.starts_with(b"\x01*");
            let first_len = labels.first().map_or(0, |&len| usize::from(len) + 1);
            // Directly below the apex there is nothing between, and only the apex could have a
            // DNAME.
            if !is_wildcard && (!has_walls || (first_len >= labels.len() && !has_dname)) {
                continue;
            }
            let Ok(name) = NameBuf::below(labels, apex.as_name()) else { continue };
            let place = (line > 0).then_some(Place { file, line });
            let mut between = name.as_name().parent().filter(|_| !labels.is_empty());
            let mut is_below = None;
            let mut parent_at = None;
            while let Some(above) = between {
                if let Some(found) = self.find_name(above) {
                    parent_at.get_or_insert(found.at);
                    if found.marks().has(Marks::CUT.with(Marks::DNAME)) {
                        is_below = Some(found.marks());
                    }
                }
                between = above.parent().filter(|above| above.len() >= apex.as_name().len());
            }
            // Where not all names are here, each finds its own.
            if let (true, false, Some(parent_at)) = (is_wildcard, is_over, parent_at) {
                self.mark(parent_at, Marks::WILDCARD);
            }
            if is_over && wildcard_of(name.as_name()).is_some_and(|it| self.find_name(it.as_name()).is_some())
            {
                self.mark(at, Marks::WILDCARD);
            }
            if let Some(wall) = is_below {
                self.check_below(at, wall, place);
                self.mark(at, Marks::BELOW);
            }
        }
        self.places = places;
    }

    /// Checks what a name has that lies below a zone cut or a DNAME.
    fn check_below(&mut self, at: u32, wall: Marks, place: Option<Place>) {
        let Some(block) = Block::read(&self.blocks, at) else { return };
        if block.is_empty() {
            return;
        }
        let labels = block.labels().to_vec();
        if wall.has(Marks::DNAME) {
            self.find(place, &labels, Problem::BelowDname);
            return;
        }
        let hidden: Vec<Rtype> = block
            .rrsets()
            .map(|rrset| rrset.rtype)
            .filter(|rtype| !matches!(*rtype, Rtype::A | Rtype::AAAA))
            .collect();
        for rtype in hidden {
            self.find(place, &labels, Problem::Hidden(rtype));
        }
    }

    /// Checks that servers have addresses and that what records name is not an alias.
    pub(crate) fn check_targets(&mut self) {
        let apex = self.builder.apex;
        let places = std::mem::take(&mut self.places);
        let mut findings = Vec::new();
        for &(at, line, file) in &places {
            let Some(block) = Block::read(&self.blocks, at) else { continue };
            if block.marks().has(Marks::BELOW) {
                continue;
            }
            for rrset in block.rrsets() {
                let Some(target_at) = target_at(rrset.rtype) else { continue };
                for record in Records(rrset.records) {
                    let Some(Ok((target, _))) = record.rdata.get(target_at..).map(Name::parse) else {
                        continue;
                    };
                    if target.is_root() || !target.is_at_or_below(apex.as_name()) {
                        continue;
                    }
                    let found = self.find_name(target);
                    let problem = match (found, rrset.rtype) {
                        (Some(found), rtype @ (Rtype::NS | Rtype::MX | Rtype::SRV))
                            if found.rrset(Rtype::CNAME).is_some() =>
                        {
                            Problem::TargetIsAlias(rtype, target.to_buf())
                        }
                        (found, Rtype::NS) if !found.is_some_and(has_address) => {
                            let owner = NameBuf::below(block.labels(), apex.as_name()).unwrap_or(apex);
                            let is_cut = block.marks().has(Marks::CUT);
                            if is_cut && target.is_at_or_below(owner.as_name()) {
                                Problem::NoGlue(target.to_buf())
                            } else if found.is_none() && self.is_made_up(target) {
                                continue;
                            } else {
                                Problem::NoAddress(target.to_buf())
                            }
                        }
                        _ => continue,
                    };
                    let place = (line > 0).then_some(Place { file, line });
                    findings.push((place, block.labels().to_vec(), problem));
                    if findings.len() > FINDINGS_MAX {
                        break;
                    }
                }
            }
        }
        for (place, labels, problem) in findings {
            self.find(place, &labels, problem);
        }
        self.places = places;
    }

    /// Returns whether a name that is not there gets its addresses from a wildcard or a DNAME.
    fn is_made_up(&self, name: Name<'_>) -> bool {
        let mut above = name.parent();
        while let Some(parent) = above {
            if let Some(found) = self.find_name(parent) {
                return found.marks().has(Marks::WILDCARD.with(Marks::DNAME));
            }
            above = parent.parent();
        }
        false
    }

    pub(crate) fn finish(mut self) -> Option<Zone> {
        let apex = self.builder.apex;
        if !self.has_ns {
            self.find(None, &[], Problem::NoNs);
        }
        let Some((soa, signatures, signature_count)) = self.soa.take() else {
            self.find(None, &[], Problem::NoSoa);
            return None;
        };
        let (serial, negative) = negative(apex.as_name(), &soa, &signatures, signature_count)?;
        self.facts.serial = serial;
        let denial = self.denial();
        self.facts.proof = match &denial {
            Denial::None => Proof::None,
            Denial::Nsec(_) => Proof::Nsec,
            Denial::Nsec3(_) => Proof::Nsec3,
            Denial::Compact(_) => Proof::Compact,
        };
        if self.facts.aliases > 0 && !matches!(denial, Denial::None) {
            self.find(None, &[], Problem::UnsignedAddresses);
        }
        self.blocks.shrink_to_fit();
        self.nsec3_blocks.shrink_to_fit();
        Some(Zone {
            apex,
            labels_max: self.builder.labels_max,
            blocks: self.blocks.into_boxed_slice(),
            index: self.index.into_boxed_slice(),
            denial,
            hashed: self.nsec3_blocks.into_boxed_slice(),
            negative,
            facts: self.facts,
            under: None,
            flaws: Box::default(),
        })
    }

    fn denial(&mut self) -> Denial {
        if !self.nsec3.is_empty() {
            return self.nsec3_chain();
        }
        if !self.has_apex_nsec {
            return Denial::None;
        }
        let mut keys = Vec::new();
        let mut names: Vec<(Range<usize>, u32)> = Vec::with_capacity(self.nsec_count);
        for &(at, ..) in &self.places {
            if let Some(block) = Block::read(&self.blocks, at)
                && block.rrset(Rtype::NSEC).is_some()
            {
                let start = keys.len();
                keys.extend_from_slice(Key::new(block.labels()).as_bytes());
                names.push((start..keys.len(), at));
            }
        }
        names.sort_unstable_by(|(a, _), (b, _)| keys[a.clone()].cmp(&keys[b.clone()]));
        let common: Vec<u8> = match (names.get(1), names.last()) {
            (Some((first, _)), Some((last, _))) => {
                let pairs = keys[first.clone()].iter().zip(&keys[last.clone()]);
                pairs.take_while(|(a, b)| a == b).map(|(a, _)| *a).collect()
            }
            _ => Vec::new(),
        };
        let names = names.iter().map(|(key, at)| (word(&keys[key.clone()], common.len()), *at)).collect();
        Denial::Nsec(NsecChain { common: common.into_boxed_slice(), names })
    }

    fn nsec3_chain(&mut self) -> Denial {
        let Some(parameters) = self.parameters.take() else {
            self.find(None, &[], Problem::StrayNsec3);
            return Denial::None;
        };
        // A zone that changes from one chain to another has two for a while.
        let blocks = &self.nsec3_blocks;
        let mut hashes = std::mem::take(&mut self.nsec3);
        hashes.retain(|(_, at)| {
            let data = Block::read(blocks, *at).and_then(|block| block.rrset(Rtype::NSEC3));
            data.is_some_and(|rrset| Records(rrset.records).any(|record| parameters.are_of(record.rdata)))
        });
        let iterations = parameters.iterations;
        let Some(chain) = Nsec3Chain::new(parameters, hashes, self.builder.apex.as_name()) else {
            self.find(None, &[], Problem::StrayNsec3);
            return Denial::None;
        };
        if iterations > 0 {
            self.find(None, &[], Problem::Iterations { iterations, is_costly: chain.is_costly() });
        }
        for number in 0..self.places.len() {
            let at = self.places[number].0;
            let Some(block) = Block::read(&self.blocks, at) else { continue };
            let link_at = at as usize * UNIT + HEAD + block.labels().len();
            let Ok(owner) = NameBuf::below(block.labels(), self.builder.apex.as_name()) else { continue };
            // Hashing every name of a zone that asks for too much would hold up the server for as
            // long.
            if chain.is_costly() && !block.labels().is_empty() {
                continue;
            }
            if let Some(number) = chain.matching(owner.as_name())
                && let Some(place) = self.blocks.get_mut(link_at..link_at + 4)
            {
                place.copy_from_slice(&(number + 1).to_le_bytes());
            }
        }
        Denial::Nsec3(chain)
    }
}

fn has_address(block: Block<'_>) -> bool {
    block.rrset(Rtype::A).is_some() || block.rrset(Rtype::AAAA).is_some()
}

/// Takes the records of a run apart.
fn collect(run: &Run, octets: &[u8], records: &mut Vec<Collected>) {
    let mut at = run.records_at as usize;
    let end = run.end as usize;
    while at < end {
        let Some(&[t0, t1, s0, s1, s2, s3, d0, d1, l0, l1, l2, l3]) =
            octets[at..].first_chunk::<COLLECTED_HEAD>()
        else {
            return;
        };
        let rtype = Rtype(u16::from_le_bytes([t0, t1]));
        at += COLLECTED_HEAD;
        let rdata = at..at + usize::from(u16::from_le_bytes([d0, d1]));
        at = rdata.end;
        let kept_with = match octets.get(rdata.start..).and_then(<[u8]>::first_chunk::<2>) {
            Some(covered) if rtype == Rtype::RRSIG => Rtype(u16::from_be_bytes(*covered)),
            _ => rtype,
        };
        records.push(Collected {
            rtype,
            kept_with,
            ttl: u32::from_le_bytes([s0, s1, s2, s3]),
            line: u32::from_le_bytes([l0, l1, l2, l3]),
            file: run.file,
            rdata,
        });
    }
}

fn is_same_data(rtype: Rtype, octets: &[u8], one: &Range<usize>, other: &Range<usize>) -> bool {
    let (a, b) = (&octets[one.clone()], &octets[other.clone()]);
    if a == b {
        return true;
    }
    if a.len() != b.len() || !a.eq_ignore_ascii_case(b) {
        return false;
    }
    let canonical = |data: &[u8]| {
        let mut out = Vec::with_capacity(data.len());
        wire::rdata::write_canonical(rtype, data, 0..data.len(), &mut out).map(|()| out)
    };
    canonical(a) == canonical(b)
}

/// Writes records as they stand behind a question for their owner.
fn write_records(records: &[Collected], ttl: Option<u32>, octets: &[u8], out: &mut Vec<u8>) {
    for record in records {
        let rdata = &octets[record.rdata.clone()];
        let mut head = [0; RECORD_HEAD];
        head[0..2].copy_from_slice(&OWNER);
        head[2..4].copy_from_slice(&record.rtype.0.to_be_bytes());
        head[4..6].copy_from_slice(&Class::IN.0.to_be_bytes());
        // RFC 4034 §3: a signature has the TTL of what it covers.
        head[6..10].copy_from_slice(&ttl.unwrap_or(record.ttl).to_be_bytes());
        head[10..12].copy_from_slice(&(rdata.len() as u16).to_be_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(rdata);
    }
}

/// Returns the serial, and the SOA with the TTL of negative answers: the smaller of its own and
/// MINIMUM (RFC 2308 §5).
fn negative(apex: Name<'_>, soa: &[u8], signatures: &[u8], signature_count: u16) -> Option<(u32, Negative)> {
    let record = Records(soa).next()?;
    let numbers = record.rdata.last_chunk::<20>()?;
    let serial = u32::from_be_bytes(*numbers.first_chunk()?);
    let ttl = record.ttl.min(u32::from_be_bytes(*numbers.last_chunk()?)).to_be_bytes();
    let with_ttl = |records: &[u8]| {
        let mut records = records.to_vec();
        let mut at = 0;
        while let Some(&[l0, l1]) = records.get(at + 10..).and_then(<[u8]>::first_chunk::<2>) {
            records[at + 6..at + 10].copy_from_slice(&ttl);
            at += RECORD_HEAD + usize::from(u16::from_be_bytes([l0, l1]));
        }
        records.into_boxed_slice()
    };
    let (short, pointers) = shortened(apex, &with_ttl(soa)).unwrap_or_default();
    let negative = Negative {
        soa_ttl: record.ttl,
        short,
        pointers,
        records: with_ttl(soa),
        signatures: with_ttl(signatures),
        signature_count,
        layout: layout(Rtype::SOA),
    };
    Some((serial, negative))
}

/// Octets of an RRset up to which it is worked out where its names are cut: pointers reach so far
/// behind any question.
const CUT_RRSET_OCTETS_MAX: usize = 8192;

/// Returns where the names of an RRset are cut, in the form in which it stands in a block; nothing
/// if it is too large.
fn cuts(owner: Name<'_>, records: &[u8], skipped: u8, names: u8) -> Option<Vec<u8>> {
    if records.is_empty() || records.len() > CUT_RRSET_OCTETS_MAX {
        return None;
    }
    let mut octets = Vec::new();
    for Cut { octets: cut, len, pointer } in Cut::all(owner, records, skipped, names)? {
        octets.extend([cut, len]);
        octets.extend(pointer.map_or(0, |to| 0xc000 | to).to_be_bytes());
    }
    Some(octets)
}

/// A record with pointers in it, and where they are.
type Shortened = (Box<[u8]>, Box<[Pointer]>);

/// Returns the SOA with its names as short as they can be behind a question for a name in the zone,
/// and where pointers are in it. The pointers are those of a record that stands directly behind a
/// question for the apex.
fn shortened(apex: Name<'_>, soa: &[u8]) -> Option<Shortened> {
    const NAMES: u8 = 2;
    let mut record = soa.get(..RECORD_HEAD)?.to_vec();
    let mut pointers = vec![Pointer { at: 0, to: 0, is_own: false }];
    let mut rest = soa.get(RECORD_HEAD..)?;
    // Where the record begins behind a question for the apex.
    let body_at = (Header::LEN + apex.len() + 4) as u16;
    for Cut { octets, len, pointer } in Cut::all(apex, soa, 0, NAMES)? {
        let (name, after) = rest.split_at_checked(usize::from(len))?;
        rest = after;
        record.extend_from_slice(name.get(..usize::from(octets))?);
        if let Some(place) = pointer {
            let is_own = place >= body_at;
            let to = if is_own { place - body_at } else { place - Header::LEN as u16 };
            pointers.push(Pointer { at: record.len() as u16, to, is_own });
            record.extend_from_slice(&(0xc000 | place).to_be_bytes());
        }
    }
    record.extend_from_slice(rest);
    let len = (record.len() - RECORD_HEAD) as u16;
    record.get_mut(RECORD_HEAD - 2..RECORD_HEAD)?.copy_from_slice(&len.to_be_bytes());
    Some((record.into_boxed_slice(), pointers.into_boxed_slice()))
}
