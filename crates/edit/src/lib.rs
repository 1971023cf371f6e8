//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Changes the records of an answer under way, in the message that they stand in.
//!
//! Never allocates, and never leaves a compressed name that points elsewhere than before.
//!
//! Names in records may be compressed against anything before them. What can be done by moving
//! octets is done so; when a record that others point into would move or go, the records are
//! written anew into a spare buffer.

#![forbid(unsafe_code)]

mod addresses;
mod flatten;
mod order;
mod params;
mod put;
mod remove;
mod ttls;

use wire::{
    Class, Flags, Full, Header, Name, NameRef, Question, Record, Rtype, Section, Ttl, Writer, write_data,
};

pub use addresses::{embedded, is_address};
pub use order::{ADDRESSES_MAX, Order};
pub use params::SvcKeys;
pub use put::{put, put_record as put_after_question};

/// Records that can be removed with one walk: as many as an upstream's reply may have.
const RECORDS_MAX: usize = 4096;
/// Octets of type, class, TTL and length.
const FIXED_OCTETS: usize = 10;

/// Where in a message the records of an answer stand, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Where the question ends.
    pub body_at: usize,
    /// Octets after the question.
    pub octets: usize,
    /// Records in the answer, authority and additional sections.
    pub counts: [u16; 3],
}

impl Shape {
    /// Begins a walk over the records.
    pub const fn walk(&self) -> Walk {
        Walk { at: self.body_at, left: self.counts }
    }

    const fn end(&self) -> usize {
        self.body_at + self.octets
    }
}

/// Finds the TTL fields of the records of an answer, counted from the end of the question. Returns
/// how many there are, or `None` when the records are not well formed or more than `offsets` holds.
pub fn ttl_offsets(message: &[u8], shape: &Shape, offsets: &mut [u16]) -> Option<usize> {
    let wanted = shape.counts.iter().map(|&count| usize::from(count)).sum();
    let mut walk = shape.walk();
    for slot in offsets.get_mut(..wanted)? {
        *slot = u16::try_from(walk.step(message)?.ttl_at() - shape.body_at).ok()?;
    }
    Some(wanted)
}

/// Where one record stands.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its section.
    pub section: Section,
    /// Its type.
    pub rtype: Rtype,
    /// Its class.
    pub class: Class,
    /// Where its owner begins.
    pub at: usize,
    /// Where its type stands.
    pub fixed_at: usize,
    /// Where it ends.
    pub end: usize,
}

impl Place {
    /// Returns where the TTL field stands.
    pub const fn ttl_at(&self) -> usize {
        self.fixed_at + 4
    }

    /// Returns where the data begins.
    pub const fn rdata_at(&self) -> usize {
        self.fixed_at + FIXED_OCTETS
    }

    /// Returns the data.
    pub fn rdata<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        message.get(self.rdata_at()..self.end).unwrap_or(&[])
    }

    /// Returns the time to live.
    pub fn ttl(&self, message: &[u8]) -> Ttl {
        let field = message.get(self.ttl_at()..).and_then(|tail| tail.first_chunk::<4>());
        field.map_or(Ttl::ZERO, |field| Ttl::new(u32::from_be_bytes(*field)))
    }

    /// Returns the type that a signature is for; `None` for other records.
    pub fn covers(&self, message: &[u8]) -> Option<Rtype> {
        if self.rtype != Rtype::RRSIG {
            return None;
        }
        self.rdata(message).first_chunk::<2>().map(|field| Rtype(u16::from_be_bytes(*field)))
    }

    /// Returns its owner.
    pub const fn owner<'m>(&self, message: &'m [u8]) -> NameRef<'m> {
        NameRef::new(message, self.at)
    }

    fn record<'m>(&self, message: &'m [u8]) -> Record<'m> {
        Record {
            section: self.section,
            owner: NameRef::new(message, self.at),
            rtype: self.rtype,
            class: self.class,
            ttl_raw: self.ttl(message).seconds(),
            rdata: self.rdata(message),
            at: self.at,
            ttl_at: self.ttl_at(),
            rdata_at: self.rdata_at(),
        }
    }
}

/// A walk over records that borrows nothing, so that they can be changed meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    at: usize,
    left: [u16; 3],
}

impl Walk {
    /// Returns the next record's place.
    pub fn step(&mut self, message: &[u8]) -> Option<Place> {
        let [answers, authorities, additionals] = &mut self.left;
        let (left, section) = if *answers > 0 {
            (answers, Section::Answer)
        } else if *authorities > 0 {
            (authorities, Section::Authority)
        } else {
            (additionals, Section::Additional)
        };
        *left = left.checked_sub(1)?;
        let at = self.at;
        let fixed_at = name_end(message, at)?;
        let fixed = message.get(fixed_at..)?.first_chunk::<FIXED_OCTETS>()?;
        let &[t0, t1, c0, c1, _, _, _, _, l0, l1] = fixed;
        let end = fixed_at + FIXED_OCTETS + usize::from(u16::from_be_bytes([l0, l1]));
        if end > message.len() {
            return None;
        }
        self.at = end;
        let rtype = Rtype(u16::from_be_bytes([t0, t1]));
        let class = Class(u16::from_be_bytes([c0, c1]));
        Some(Place { section, rtype, class, at, fixed_at, end })
    }
}

/// Returns where the octets after the name at `at` start.
fn name_end(message: &[u8], mut at: usize) -> Option<usize> {
    // Ends: each step moves on.
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            0xc0.. => return Some(at + 2),
            length => at += 1 + usize::from(length),
        }
    }
}

/// Returns where the pointer leads that ends the name at `at`; `None` for a name in full.
fn pointer(message: &[u8], mut at: usize) -> Option<usize> {
    // Ends: each step moves on.
    loop {
        match *message.get(at)? {
            0 => return None,
            high @ 0xc0.. => {
                let low = *message.get(at + 1)?;
                return Some(usize::from(high & 0x3f) << 8 | usize::from(low));
            }
            length => at += 1 + usize::from(length),
        }
    }
}

/// Returns whether a name in the record leads to `limit` or behind it.
///
/// Types that are not named here hold no pointers: `wire::normalise` writes their names in full.
fn reaches(message: &[u8], place: &Place, limit: usize) -> bool {
    let leads = |at| pointer(message, at).is_some_and(|target| target >= limit);
    let data_at = place.rdata_at();
    leads(place.at)
        || match place.rtype {
            Rtype::NS
            | Rtype::CNAME
            | Rtype::PTR
            | Rtype::MD
            | Rtype::MF
            | Rtype::MB
            | Rtype::MG
            | Rtype::MR => leads(data_at),
            Rtype::MX => leads(data_at + 2),
            Rtype::SOA | Rtype::MINFO => leads(data_at) || name_end(message, data_at).is_some_and(leads),
            _ => false,
        }
}

/// An answer under way that is being changed.
pub struct Draft<'a> {
    /// The message: the question in its place, the records behind it.
    pub message: &'a mut [u8],
    /// Room for another message.
    pub spare: &'a mut [u8],
    /// Where the records are.
    pub shape: Shape,
}

impl Draft<'_> {
    /// Removes the records that `keep` does not want; it is asked once for each, in order. Returns
    /// whether any went.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &Place) -> bool) -> Result<bool, Full> {
        let mut gone = Marks([0; RECORDS_MAX / 64]);
        let mut first_gone = None;
        let mut is_movable = true;
        let mut walk = self.shape.walk();
        let mut index = 0;
        while let Some(place) = walk.step(self.message) {
            if !keep(self.message, &place) {
                gone.set(index);
                first_gone.get_or_insert(place.at);
            } else if let Some(limit) = first_gone {
                is_movable &= !reaches(self.message, &place, limit);
            }
            index += 1;
        }
        let Some(first_gone) = first_gone else { return Ok(false) };
        if is_movable {
            self.close_gaps(&gone, first_gone);
        } else {
            self.rebuild(|index, record, writer| match gone.has(index) {
                true => Ok(()),
                false => put_record(writer, record, None),
            })?;
        }
        Ok(true)
    }

    /// Moves the records that stay over those that go.
    fn close_gaps(&mut self, gone: &Marks, first_gone: usize) {
        let mut counts = [0; 3];
        let mut to = first_gone;
        let mut walk = self.shape.walk();
        let mut index = 0;
        while let Some(place) = walk.step(self.message) {
            if !gone.has(index) {
                count(&mut counts, place.section);
                if place.at >= first_gone {
                    self.message.copy_within(place.at..place.end, to);
                    to += place.end - place.at;
                }
            }
            index += 1;
        }
        self.shape.counts = counts;
        self.shape.octets = to - self.shape.body_at;
    }

    /// Writes all records anew through `put`, which may leave a record out or write another in its
    /// place.
    #[cold]
    pub fn rebuild(
        &mut self,
        mut put: impl FnMut(usize, &Record<'_>, &mut Writer<'_>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let question = question(self.message).ok_or(Full)?;
        let limit = self.spare.len();
        let mut writer = Writer::new(self.spare, limit, 0, Flags::default());
        writer.question(&question)?;
        let mut counts = [0; 3];
        let mut walk = self.shape.walk();
        let mut index = 0;
        while let Some(place) = walk.step(self.message) {
            let before = writer.len();
            put(index, &place.record(self.message), &mut writer)?;
            if writer.len() > before {
                count(&mut counts, place.section);
            }
            index += 1;
        }
        let written = self.shape.body_at..writer.len();
        let octets = written.len();
        let room = self.message.get_mut(written.clone()).ok_or(Full)?;
        room.copy_from_slice(self.spare.get(written).ok_or(Full)?);
        self.shape = Shape { octets, counts, ..self.shape };
        Ok(())
    }

    /// Appends a record at the end; `section` must be the last that has records, or a later one.
    /// The owner is the name asked for.
    pub fn append(&mut self, section: Section, rtype: Rtype, ttl: Ttl, rdata: &[u8]) -> Result<(), Full> {
        let at = self.shape.end();
        let octets = put::put_record(self.message, at, Header::LEN, rtype, ttl, rdata).ok_or(Full)?;
        self.shape.octets += octets;
        count(&mut self.shape.counts, section);
        Ok(())
    }

    /// Calls `f` with each record.
    pub fn each(&self, mut f: impl FnMut(&[u8], &Place)) {
        let mut walk = self.shape.walk();
        while let Some(place) = walk.step(self.message) {
            f(self.message, &place);
        }
    }

    /// Returns whether `f` holds for a record.
    pub fn any(&self, mut f: impl FnMut(&[u8], &Place) -> bool) -> bool {
        let mut walk = self.shape.walk();
        while let Some(place) = walk.step(self.message) {
            if f(self.message, &place) {
                return true;
            }
        }
        false
    }
}

/// Adds one to the count of a section.
fn count(counts: &mut [u16; 3], section: Section) {
    let [answers, authorities, additionals] = counts;
    let count = match section {
        Section::Answer => answers,
        Section::Authority => authorities,
        Section::Additional => additionals,
    };
    *count = count.saturating_add(1);
}

/// Writes a record of another message, under `owner` if that is given.
fn put_record(writer: &mut Writer<'_>, record: &Record<'_>, owner: Option<Name<'_>>) -> Result<(), Full> {
    let expanded = record.owner.expand().map_err(|_| Full)?;
    let owner = owner.unwrap_or(expanded.as_name());
    writer.record(record.section, owner, record.rtype, record.class, record.ttl(), |writer| {
        write_data(record, writer).map_err(|_| Full)
    })
}

/// Reads the question of a message whose header may not be written yet.
fn question(message: &[u8]) -> Option<Question<'_>> {
    let (qname, rest) = Name::parse(message.get(Header::LEN..)?).ok()?;
    let &[t0, t1, c0, c1] = rest.first_chunk::<4>()?;
    let (qtype, qclass) = (Rtype(u16::from_be_bytes([t0, t1])), Class(u16::from_be_bytes([c0, c1])));
    Some(Question { qname, qtype, qclass })
}

/// One bit for each record of an answer.
struct Marks([u64; RECORDS_MAX / 64]);

impl Marks {
    fn set(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    fn has(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 != 0)
    }
}
