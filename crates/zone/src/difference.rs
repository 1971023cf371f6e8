//! What changed between two versions of a zone: found, applied, undone by nothing.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use wire::{HashKey, Name, NameBuf, Rtype, Ttl};

use crate::block::{Block, Records};
use crate::build::{Builder, Built};
use crate::check::{Finding, Level, Origin};
use crate::master::{Entry, Place};
use crate::over;
use crate::rows::{Row, Rows, identity};
use crate::zone::Zone;

/// One step from a version of a zone to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The apex, as in the SOA records.
    pub apex: NameBuf,
    /// The SOA before: TTL and data.
    pub old_soa: (Ttl, Box<[u8]>),
    /// The SOA after.
    pub new_soa: (Ttl, Box<[u8]>),
    /// Records that are gone, SOA aside.
    pub removed: Rows,
    /// Records that are new, SOA aside.
    pub added: Rows,
}

/// Why a difference cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The zone has another serial.
    Serial,
    /// What should go is not there.
    Missing(Box<NameBuf>, Rtype),
    /// What should come is there already.
    Exists(Box<NameBuf>, Rtype),
    /// What would come of it is not a zone that can be served.
    Unfit(Box<Finding>),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serial => f.write_str("it begins with another version"),
            Self::Missing(owner, rtype) => write!(f, "it removes {owner} {rtype}, which is not there"),
            Self::Exists(owner, rtype) => write!(f, "it adds {owner} {rtype}, which is there already"),
            Self::Unfit(finding) => write!(f, "{}: {}", finding.owner, finding.problem),
        }
    }
}

/// Returns the serial in the data of a SOA.
pub fn serial_of(soa: &[u8]) -> Option<u32> {
    soa.last_chunk::<20>().and_then(|numbers| numbers.first_chunk()).map(|serial| u32::from_be_bytes(*serial))
}

/// Returns the data of a SOA with another serial.
pub fn with_serial(soa: &[u8], serial: u32) -> Box<[u8]> {
    let mut soa: Box<[u8]> = soa.into();
    if let Some(numbers) = soa.last_chunk_mut::<20>() {
        numbers[..4].copy_from_slice(&serial.to_be_bytes());
    }
    soa
}

/// The times in a SOA, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoaTimes {
    /// How long a secondary waits before it asks again.
    pub refresh: u32,
    /// How long if it got no answer.
    pub retry: u32,
    /// How long it serves a zone of which it has heard nothing.
    pub expire: u32,
}

/// Walks everything a zone has, in the order of its memory.
pub(crate) fn blocks(zone: &Zone) -> impl Iterator<Item = Block<'_>> {
    zone.names().chain(proof_blocks(zone))
}

fn proof_blocks(zone: &Zone) -> impl Iterator<Item = Block<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let block = Block::read(&zone.hashed, at)?;
        at = block.next();
        Some(block)
    })
}

pub(crate) fn rows_of<'z>(block: Block<'z>, owner: Name<'z>) -> impl Iterator<Item = Row<'z>> {
    block.rrsets().flat_map(move |rrset| {
        Records(rrset.records).chain(Records(rrset.signatures)).map(move |record| Row {
            owner,
            rtype: record.rtype,
            ttl: Ttl::new(record.ttl),
            rdata: record.rdata,
        })
    })
}

impl Zone {
    /// Returns the TTL and the data of the SOA.
    pub fn soa(&self) -> (Ttl, &[u8]) {
        let record = Records(&self.negative.records).next();
        (Ttl::new(self.negative.soa_ttl), record.map_or(&[], |record| record.rdata))
    }

    /// Returns the times in the SOA.
    pub fn soa_times(&self) -> SoaTimes {
        let numbers = self.soa().1.last_chunk::<20>().copied().unwrap_or([0; 20]);
        let word = |at: usize| {
            numbers.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_be_bytes(*word))
        };
        SoaTimes { refresh: word(4), retry: word(8), expire: word(12) }
    }

    /// Returns a number that stands for the records: the same in every process, whatever the order
    /// in which they came. Of a zone that brought its keys signatures do not count, which are
    /// others each time it is signed.
    pub fn contents(&self) -> u64 {
        let skips_signatures = self.facts.has_own_keys;
        let (ttl, soa) = self.soa();
        let mut sum = digest(&Row { owner: self.apex(), rtype: Rtype::SOA, ttl, rdata: soa });
        self.for_each_row(|row| {
            if !(skips_signatures && row.rtype == Rtype::RRSIG) {
                sum = sum.wrapping_add(digest(row));
            }
        });
        sum
    }

    /// Hands out every record but the SOA, in no order that matters.
    pub fn for_each_row(&self, mut f: impl FnMut(&Row<'_>)) {
        for block in blocks(self) {
            let owner = self.owner(block);
            for row in rows_of(block, owner.as_name()).filter(|row| row.rtype != Rtype::SOA) {
                f(&row);
            }
        }
    }

    /// Returns the records of one type at a name, signatures of them aside; of all types for ANY.
    pub fn rows_at(&self, key: &HashKey, name: Name<'_>, rtype: Rtype) -> Rows {
        let mut rows = Rows::default();
        if !name.is_at_or_below(self.apex()) {
            return rows;
        }
        if let Some(block) = self.find(name, key.hash_name(name)) {
            for row in rows_of(block, name).filter(|row| rtype == Rtype::ANY || row.rtype == rtype) {
                rows.push(&row);
            }
        }
        rows
    }
}

/// Returns a number that stands for a record and its TTL: FNV-1a, with the last step of
/// MurmurHash3, so that numbers can be added up.
fn digest(row: &Row<'_>) -> u64 {
    let ttl = row.ttl.seconds().to_be_bytes();
    let sum = identity(row).iter().chain(&ttl).fold(0xcbf2_9ce4_8422_2325_u64, |sum, octet| {
        (sum ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3)
    });
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    sum ^ (sum >> 33)
}

/// Adds records to a zone in the making.
pub(crate) fn push(builder: &mut Builder, row: &Row<'_>, has_same_owner: bool) {
    builder.push(&Entry {
        owner: row.owner,
        has_same_owner,
        rtype: row.rtype,
        ttl: row.ttl,
        rdata: row.rdata,
        place: Place { file: 0, line: 0 },
        is_split: false,
    });
}

/// Returns the zone, or the first finding that forbids it.
pub(crate) fn judged(built: Built, origin: Origin) -> Result<Zone, Misfit> {
    let Built { zone, findings, .. } = built;
    zone.ok_or_else(|| {
        let worst = findings.into_iter().find(|finding| finding.problem.level_in(origin) == Level::Error);
        worst.map_or(Misfit::Serial, |finding| Misfit::Unfit(Box::new(finding)))
    })
}

/// Makes a zone of a SOA and records.
pub fn build(apex: Name<'_>, key: HashKey, soa: (Ttl, &[u8]), rows: &Rows) -> Result<Zone, Misfit> {
    build_from(Origin::Own, apex, key, soa, rows)
}

/// Makes a zone of a SOA and records that come from there.
pub fn build_from(
    origin: Origin,
    apex: Name<'_>,
    key: HashKey,
    (ttl, soa): (Ttl, &[u8]),
    rows: &Rows,
) -> Result<Zone, Misfit> {
    let mut builder = Builder::new(apex, key).from(origin);
    push(&mut builder, &Row { owner: apex, rtype: Rtype::SOA, ttl, rdata: soa }, false);
    for row in rows.iter() {
        push(&mut builder, &row, false);
    }
    judged(builder.compile(), origin)
}

impl Difference {
    /// Returns the serial before.
    pub fn old_serial(&self) -> u32 {
        serial_of(&self.old_soa.1).unwrap_or(0)
    }

    /// Returns the serial after.
    pub fn new_serial(&self) -> u32 {
        serial_of(&self.new_soa.1).unwrap_or(0)
    }

    /// Returns how many octets of memory it takes, roughly.
    pub fn octets(&self) -> usize {
        let soas = self.old_soa.1.len() + self.new_soa.1.len();
        size_of::<Self>() + soas + self.removed.as_bytes().len() + self.added.as_bytes().len()
    }

    /// Returns whether nothing but the SOA differs.
    pub const fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    /// Returns how many records it removes and adds, SOA aside.
    pub const fn records(&self) -> usize {
        self.removed.len() + self.added.len()
    }

    /// Returns whether the SOA differs in more than its serial.
    pub fn has_new_soa(&self) -> bool {
        self.old_soa.0 != self.new_soa.0 || with_serial(&self.old_soa.1, 0) != with_serial(&self.new_soa.1, 0)
    }

    /// Returns what is to be done for another version to be changed likewise: what it should lose
    /// and has not is left out, and so is what it should get and has. What it has with another TTL
    /// gets the one of this difference.
    pub fn onto(&self, zone: &Zone, key: &HashKey, serial: u32) -> Self {
        let there = |row: &Row<'_>| {
            let wanted = identity(row);
            let all = zone.rows_at(key, row.owner, row.rtype);
            all.iter().find(|other| identity(other) == wanted).map(|other| other.ttl)
        };
        let (mut removed, mut added) = (Rows::default(), Rows::default());
        let mut gone: HashSet<Vec<u8>> = HashSet::new();
        let comes: HashSet<(Vec<u8>, u32)> =
            self.added.iter().map(|row| (identity(&row), row.ttl.seconds())).collect();
        for row in self.removed.iter() {
            let Some(ttl) = there(&row) else { continue };
            let identity = identity(&row);
            // It is as it should be already.
            if comes.contains(&(identity.clone(), ttl.seconds())) {
                continue;
            }
            removed.push(&Row { ttl, ..row });
            gone.insert(identity);
        }
        for row in self.added.iter() {
            match there(&row) {
                Some(ttl) if !gone.contains(&identity(&row)) => {
                    if ttl == row.ttl {
                        continue;
                    }
                    removed.push(&Row { ttl, ..row });
                }
                _ => {}
            }
            added.push(&row);
        }
        let (ttl, data) = zone.soa();
        let new_soa = match self.has_new_soa() {
            true => (self.new_soa.0, with_serial(&self.new_soa.1, serial)),
            false => (ttl, with_serial(data, serial)),
        };
        Self { apex: zone.apex, old_soa: (ttl, data.into()), new_soa, removed, added }
    }

    /// Finds what differs; both versions have been compiled with `key`.
    pub fn between(old: &Zone, new: &Zone, key: &HashKey) -> Self {
        let owned = |zone: &Zone| {
            let (ttl, data) = zone.soa();
            (ttl, data.into())
        };
        let mut difference = Self {
            apex: new.apex,
            old_soa: owned(old),
            new_soa: owned(new),
            removed: Rows::default(),
            added: Rows::default(),
        };
        difference.compare(old, new, key);
        difference
    }

    fn compare(&mut self, old: &Zone, new: &Zone, key: &HashKey) {
        let (old_proofs, new_proofs) = (proofs(old), proofs(new));
        // A name and its NSEC3 record can have the same labels only by design; both are looked at
        // under their own heading.
        let mut seen = HashSet::with_capacity(old.facts.names);
        for block in old.names() {
            let owner = old.owner(block);
            let hash = key.hash_name(owner.as_name());
            let other = new.find(owner.as_name(), hash);
            if let Some(other) = other {
                seen.insert(other.address());
            }
            self.compare_blocks(Some((block, owner)), other.map(|other| (other, new.owner(other))));
        }
        for block in new.names().filter(|block| !seen.contains(&block.address())) {
            self.compare_blocks(None, Some((block, new.owner(block))));
        }
        for (labels, block) in &old_proofs {
            let other = new_proofs.get(labels).map(|&other| (other, new.owner(other)));
            self.compare_blocks(Some((*block, old.owner(*block))), other);
        }
        for (_, block) in new_proofs.iter().filter(|(labels, _)| !old_proofs.contains_key(*labels)) {
            self.compare_blocks(None, Some((*block, new.owner(*block))));
        }
    }

    fn compare_blocks(&mut self, old: Option<(Block<'_>, NameBuf)>, new: Option<(Block<'_>, NameBuf)>) {
        let rows = |side: &Option<(Block<'_>, NameBuf)>| {
            let mut rows: Vec<(Vec<u8>, u32)> = Vec::new();
            if let Some((block, owner)) = side {
                for row in rows_of(*block, owner.as_name()).filter(|row| row.rtype != Rtype::SOA) {
                    rows.push((identity(&row), row.ttl.seconds()));
                }
            }
            rows.sort_unstable();
            rows
        };
        if let (Some((old, _)), Some((new, _))) = (&old, &new)
            && old
                .rrsets()
                .zip(new.rrsets())
                .all(|(a, b)| a.rtype == b.rtype && a.records == b.records && a.signatures == b.signatures)
            && old.rrsets().count() == new.rrsets().count()
        {
            return;
        }
        let (before, after) = (rows(&old), rows(&new));
        collect(&old, &after, &mut self.removed);
        collect(&new, &before, &mut self.added);
    }

    /// Applies it to the version that it begins with. The next version shares with this one what
    /// stays the same, so that a small change costs in proportion to itself, as a rule.
    pub fn apply_sharing(&self, zone: &Arc<Zone>, key: &HashKey) -> Result<Arc<Zone>, Misfit> {
        self.apply_from(Origin::Own, zone, key)
    }

    /// Applies it likewise to a version, both of them from there.
    pub fn apply_from(&self, origin: Origin, zone: &Arc<Zone>, key: &HashKey) -> Result<Arc<Zone>, Misfit> {
        match over::apply(self, zone, key, origin) {
            Some(applied) => applied,
            None => self.apply_whole(zone, key, origin).map(Arc::new),
        }
    }

    /// Applies it to the version that it begins with, and compiles all of the next one.
    pub fn apply(&self, zone: &Zone, key: &HashKey) -> Result<Zone, Misfit> {
        self.apply_whole(zone, key, Origin::Own)
    }

    fn apply_whole(&self, zone: &Zone, key: &HashKey, origin: Origin) -> Result<Zone, Misfit> {
        if serial_of(zone.soa().1) != Some(self.old_serial()) {
            return Err(Misfit::Serial);
        }
        let mut removed: HashMap<Vec<u8>, bool> =
            self.removed.iter().map(|row| (identity(&row), false)).collect();
        let added: HashSet<Vec<u8>> = self.added.iter().map(|row| identity(&row)).collect();
        let touched: HashSet<u64> =
            self.removed.iter().chain(self.added.iter()).map(|row| key.hash_name(row.owner)).collect();
        let mut builder = Builder::new(zone.apex(), *key).from(origin);
        builder.reserve(zone.octets());
        let (ttl, soa) = (self.new_soa.0, &self.new_soa.1);
        push(&mut builder, &Row { owner: zone.apex(), rtype: Rtype::SOA, ttl, rdata: soa }, false);
        for block in blocks(zone) {
            let owner = zone.owner(block);
            let is_touched = touched.contains(&key.hash_name(owner.as_name()));
            let mut is_first = true;
            for row in rows_of(block, owner.as_name()).filter(|row| row.rtype != Rtype::SOA) {
                if is_touched {
                    let identity = identity(&row);
                    if let Some(is_seen) = removed.get_mut(&identity) {
                        *is_seen = true;
                        continue;
                    }
                    if added.contains(&identity) {
                        return Err(Misfit::Exists(Box::new(owner), row.rtype));
                    }
                }
                push(&mut builder, &row, !is_first);
                is_first = false;
            }
        }
        for row in self.removed.iter() {
            if removed.get(&identity(&row)) == Some(&false) {
                return Err(Misfit::Missing(Box::new(row.owner.to_buf()), row.rtype));
            }
        }
        for row in self.added.iter() {
            push(&mut builder, &row, false);
        }
        judged(builder.compile(), origin)
    }
}

fn collect(side: &Option<(Block<'_>, NameBuf)>, other: &[(Vec<u8>, u32)], out: &mut Rows) {
    let Some((block, owner)) = side else { return };
    for row in rows_of(*block, owner.as_name()).filter(|row| row.rtype != Rtype::SOA) {
        if other.binary_search(&(identity(&row), row.ttl.seconds())).is_err() {
            out.push(&row);
        }
    }
}

/// Returns the NSEC3 records by their labels.
fn proofs(zone: &Zone) -> HashMap<Vec<u8>, Block<'_>> {
    proof_blocks(zone).map(|block| (block.labels().to_ascii_lowercase(), block)).collect()
}
