//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! One zone, compiled: names in the order of their hashes, so that a look-up touches the index,
//! which is small, and then the name's own memory.

use std::cmp::Ordering;
use std::sync::Arc;

use wire::{HashKey, Name, NameBuf, Pointer, Rtype, eq_ignore_case};

use crate::block::{Block, Layout, Marks, Records, Rrset, UNIT};
use crate::canonical::{Key, word};
use crate::check::Finding;
use crate::nsec3::Nsec3Chain;
use crate::online::Online;

/// A zone as it is served. Nothing in it changes; another version is another `Zone`.
pub struct Zone {
    pub(crate) apex: NameBuf,
    /// Labels of the longest name.
    pub(crate) labels_max: u8,
    /// Blocks of all names, by hash.
    pub(crate) blocks: Box<[u8]>,
    /// Where the blocks of each bucket begin, in units; one more than there are buckets.
    pub(crate) index: Box<[u32]>,
    pub(crate) denial: Denial,
    /// Blocks of the names that only NSEC3 records have.
    pub(crate) hashed: Box<[u8]>,
    /// The SOA as it stands in negative answers.
    pub(crate) negative: Negative,
    pub(crate) facts: Facts,
    /// The version that has all names but those of `blocks`, if that does not have all.
    pub(crate) under: Option<Under>,
    /// What would forbid a zone of our own that has these records.
    pub(crate) flaws: Box<[Finding]>,
}

/// What a version of a zone lies over.
pub(crate) struct Under {
    /// A version that has all its names.
    pub(crate) zone: Arc<Zone>,
    /// Where its blocks are that do not count, sorted.
    pub(crate) hidden: Box<[u32]>,
}

impl Under {
    /// Finds a name in the version below.
    #[inline(never)]
    fn find(&self, labels: &[u8], hash: u64) -> Option<Block<'_>> {
        find(&self.zone.blocks, &self.zone.index, labels, hash)
    }
}

/// Octets of a line of memory.
const LINE: usize = 64;
/// Of the places of a version that lies over another: in its own blocks.
const OWN: u32 = 1 << 31;

/// What operators want to know about a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The SOA's serial.
    pub serial: u32,
    /// Names that exist, those without records included.
    pub names: usize,
    /// Records, signatures and proofs included; one that is there twice counts once.
    pub records: usize,
    /// Zone cuts.
    pub cuts: usize,
    /// Names with ALIAS.
    pub aliases: usize,
    /// How it proves that something does not exist.
    pub proof: Proof,
    /// Whether it was signed with keys that came with its records: nobody else can sign what
    /// changes in it.
    pub has_own_keys: bool,
}

/// How a zone proves that something does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// Not at all: it is not signed.
    #[default]
    None,
    /// By NSEC.
    Nsec,
    /// By NSEC3.
    Nsec3,
    /// By an NSEC for each question (RFC 9824).
    Compact,
}

/// Records that prove that something does not exist.
pub(crate) enum Denial {
    None,
    Nsec(NsecChain),
    Nsec3(Nsec3Chain),
    /// None are there: one is made for each question.
    Compact(Arc<Online>),
}

/// Names with NSEC in canonical order.
pub(crate) struct NsecChain {
    /// What the keys of all names but the apex begin with.
    pub(crate) common: Box<[u8]>,
    /// For each name, the eight octets of its key after those, and its block. The apex is the
    /// first.
    pub(crate) names: Box<[(u64, u32)]>,
}

/// The SOA with the TTL of negative answers (RFC 2308 §3), and its signatures.
pub(crate) struct Negative {
    /// The SOA's own TTL.
    pub(crate) soa_ttl: u32,
    pub(crate) records: Box<[u8]>,
    pub(crate) signatures: Box<[u8]>,
    pub(crate) signature_count: u16,
    pub(crate) layout: Layout,
    /// The same record as it stands directly behind a question for the apex, its names as short as
    /// they can be.
    pub(crate) short: Box<[u8]>,
    /// Where pointers are in that; those that do not lead into the record lead to the apex and
    /// behind. Elsewhere in a message they are other ones.
    pub(crate) pointers: Box<[Pointer]>,
}

impl Negative {
    pub(crate) fn rrset(&self) -> Rrset<'_> {
        Rrset {
            rtype: Rtype::SOA,
            layout: self.layout,
            count: 1,
            signature_count: self.signature_count,
            records: &self.records,
            signatures: &self.signatures,
            cuts: &[],
        }
    }
}

/// Returns which of `buckets` a hash belongs to; buckets are in the order of hashes.
pub(crate) const fn bucket(hash: u64, buckets: usize) -> usize {
    ((hash as u128 * buckets as u128) >> 64) as usize
}

/// Finds a name among blocks; `labels` stand in front of the apex.
#[inline(always)]
pub(crate) fn find<'z>(blocks: &'z [u8], index: &[u32], labels: &[u8], hash: u64) -> Option<Block<'z>> {
    let at = bucket(hash, index.len().saturating_sub(1));
    let (&start, &end) = (index.get(at)?, index.get(at + 1)?);
    ask_for_line(blocks, start as usize * UNIT + LINE);
    let mut next = start;
    // Ends: each block has a head, so `next` grows.
    while next < end {
        let block = Block::read(blocks, next)?;
        if block.tag() == hash as u32 && eq_ignore_case(block.labels(), labels) {
            return Some(block);
        }
        next = block.next();
    }
    None
}

/// Where in the index of a zone a name is looked for.
pub(crate) struct Place<'z> {
    entry: &'z u32,
    blocks: &'z [u8],
}

impl Place<'_> {
    /// Asks for the memory that a look-up there will read.
    pub(crate) fn ask_for_names(&self) {
        let at = *self.entry as usize * UNIT;
        ask_for_line(self.blocks, at);
        ask_for_line(self.blocks, at + LINE);
    }
}

/// Returns the wildcard directly below a name.
pub(crate) fn wildcard_of(name: Name<'_>) -> Option<NameBuf> {
    NameBuf::below(b"\x01*", name).ok()
}

/// Asks for a line of memory, if it is there. Names reach into the line behind the one that their
/// bucket begins in, or begin there: both are waited for at once.
#[inline]
fn ask_for_line(blocks: &[u8], at: usize) {
    if let Some(octet) = blocks.get(at) {
        sets::ask_for(octet);
    }
}

// Once per version.
impl Zone {
    /// Returns what is wrong with a zone of another server that is served as it came; of a version
    /// that lies over another, what is wrong with the names that it has anew.
    pub const fn flaws(&self) -> &[Finding] {
        &self.flaws
    }

    /// Returns the zone with proofs that are made, and signed, for each question (RFC 9824).
    #[must_use]
    pub fn signed_online(self, online: Arc<Online>) -> Self {
        let facts = Facts { proof: Proof::Compact, ..self.facts };
        Self { denial: Denial::Compact(online), facts, ..self }
    }

    /// Returns the zone as one that was signed with keys that came with its records.
    #[must_use]
    pub fn with_own_keys(self) -> Self {
        let facts = Facts { has_own_keys: true, ..self.facts };
        Self { facts, ..self }
    }
}

// Once per version, and now and then.
impl Zone {
    /// Returns until when signatures of the SOA and of the DNSKEYs are good, in seconds since 1970;
    /// `None` if it is not signed. `key` is what its names are hashed with.
    pub fn signed_until(&self, key: &HashKey) -> Option<u32> {
        let apex = self.find(self.apex(), key.hash_name(self.apex()))?;
        // RFC 4034 §3.1: the expiration is at the ninth octet.
        let end = |rdata: &[u8]| rdata.get(8..)?.first_chunk().copied().map(u32::from_be_bytes);
        let last =
            |rtype| Records(apex.rrset(rtype)?.signatures).filter_map(|record| end(record.rdata)).max();
        // Of several keys, one that can be followed is enough.
        [Rtype::SOA, Rtype::DNSKEY].into_iter().filter_map(last).min()
    }
}

impl Zone {
    /// Returns the apex.
    pub fn apex(&self) -> Name<'_> {
        self.apex.as_name()
    }

    /// Returns what there is to know about it.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns how many octets of memory it takes.
    pub fn octets(&self) -> usize {
        let denial = match &self.denial {
            Denial::None | Denial::Compact(_) => 0,
            Denial::Nsec(chain) => size_of_val(&*chain.names),
            Denial::Nsec3(chain) => chain.octets(),
        };
        let under = self.under.as_ref().map_or(0, |under| under.zone.octets());
        self.blocks.len() + self.hashed.len() + size_of_val(&*self.index) + denial + under
    }

    /// Returns the labels of a name in the zone that stand in front of the apex.
    pub(crate) fn relative<'n>(&self, name: Name<'n>) -> &'n [u8] {
        let len = name.len().saturating_sub(self.apex.as_name().len());
        name.as_bytes().get(..len).unwrap_or(&[])
    }

    /// Finds a name that is at or below the apex.
    #[inline(never)]
    pub(crate) fn find(&self, name: Name<'_>, hash: u64) -> Option<Block<'_>> {
        self.find_inlined(name, hash)
    }

    /// Does what [`Zone::find`] does, as a part of its caller: for the name of each question.
    #[inline(always)]
    pub(crate) fn find_inlined(&self, name: Name<'_>, hash: u64) -> Option<Block<'_>> {
        let labels = self.relative(name);
        let found = find(&self.blocks, &self.index, labels, hash);
        match &self.under {
            None => found,
            Some(under) => match found {
                Some(block) => Some(block).filter(|block| !block.marks().has(Marks::GONE)),
                None => under.find(labels, hash),
            },
        }
    }

    /// Asks for the part of the index that leads to names with such a hash, where most names are.
    pub(crate) fn place_of(&self, hash: u64) -> Option<Place<'_>> {
        let most = self.under.as_ref().map_or(self, |under| &under.zone);
        let entry = most.index.get(bucket(hash, most.index.len().saturating_sub(1)))?;
        sets::ask_for(entry);
        Some(Place { entry, blocks: &most.blocks })
    }

    /// Returns the first name at a place or after it, its place, and the place after it. The first
    /// place of all is 0.
    pub(crate) fn name_from(&self, place: u32) -> Option<(Block<'_>, u32, u32)> {
        let mut place = place;
        // Ends: each block has a head, so `place` grows.
        loop {
            let found = match &self.under {
                Some(under) if place & OWN == 0 => match Block::read(&under.zone.blocks, place) {
                    Some(block) => (block, under.hidden.binary_search(&place).is_ok(), block.next()),
                    None => {
                        place = OWN;
                        continue;
                    }
                },
                _ => {
                    let block = Block::read(&self.blocks, place & !OWN)?;
                    (block, block.marks().has(Marks::GONE), block.next() | (place & OWN))
                }
            };
            let (block, is_hidden, next) = found;
            if !is_hidden {
                return Some((block, place, next));
            }
            place = next;
        }
    }

    /// Walks the names, in no order that matters.
    pub(crate) fn names(&self) -> impl Iterator<Item = Block<'_>> {
        let mut place = 0;
        std::iter::from_fn(move || {
            let (block, _, next) = self.name_from(place)?;
            place = next;
            Some(block)
        })
    }

    /// Returns the owner of a block.
    pub(crate) fn owner(&self, block: Block<'_>) -> NameBuf {
        NameBuf::below(block.labels(), self.apex()).unwrap_or(NameBuf::root())
    }
}

impl NsecChain {
    /// Returns the block of the name that is `name` or the last before it.
    pub(crate) fn at_or_before<'z>(&self, zone: &'z Zone, name: Name<'_>) -> Option<Block<'z>> {
        let key = Key::new(zone.relative(name));
        let key = key.as_bytes();
        let (&(_, apex), others) = self.names.split_first()?;
        let count = match key.get(..self.common.len()).unwrap_or(key).cmp(&self.common) {
            Ordering::Less => 0,
            Ordering::Greater => others.len(),
            Ordering::Equal => {
                let own = word(key, self.common.len());
                others.partition_point(|&(other, at)| match other.cmp(&own) {
                    Ordering::Equal => Block::read(&zone.blocks, at)
                        .is_some_and(|block| Key::new(block.labels()).as_bytes() <= key),
                    order => order.is_lt(),
                })
            }
        };
        let at = match count.checked_sub(1) {
            Some(last) => others.get(last)?.1,
            None => apex,
        };
        Block::read(&zone.blocks, at)
    }
}
