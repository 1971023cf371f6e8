//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What a zone knows about one name, as one stretch of octets: header, labels, RRsets ready to
//! copy.
//!
//! ```text
//! octets  0..4   lower half of the name's hash
//!         4..8   length in units of four octets (24 bits), marks (8 bits)
//!         8      octets of the labels; the apex has none
//!         10..12 number of RRsets
//!         12..   labels in front of the apex, without a root label
//!         then   the number of its NSEC3 record + 1, if the name is linked (4 octets)
//!         then   heads of the RRsets, ten octets each: type, records, octets of the records, octets of their
//!                signatures, number of signatures, layout of the data
//!         then   for each RRset its records, its signatures, and where names in its data are cut if the layout says so;
//!                owners are pointers to the question's name
//! ```
//!
//! A name with one A record takes 38 octets and its labels: one or two lines of memory for each
//! hit.

use wire::{CUT_OCTETS, Cuts, Full, Header, Name, Rtype, Writer};

/// Octets before the labels.
pub(crate) const HEAD: usize = 12;
/// Octets of an RRset's head.
pub(crate) const SET_HEAD: usize = 10;
/// Blocks begin at multiples of this.
pub(crate) const UNIT: usize = 4;
/// A record before its data: pointer, type, class, TTL, length.
pub(crate) const RECORD_HEAD: usize = 12;
/// The pointer to the question's name.
pub(crate) const OWNER: [u8; 2] = [0xc0, Header::LEN as u8];

/// Facts about a name, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks(pub(crate) u8);

impl Marks {
    /// A zone cut: it has NS and is not the apex.
    pub(crate) const CUT: Self = Self(1);
    /// It has a DNAME.
    pub(crate) const DNAME: Self = Self(2);
    /// It lies below a zone cut or a DNAME: glue, or hidden.
    pub(crate) const BELOW: Self = Self(4);
    /// A wildcard is directly below it.
    pub(crate) const WILDCARD: Self = Self(8);
    /// It knows its NSEC3 record.
    pub(crate) const LINKED: Self = Self(16);
    /// It has a CNAME or an ALIAS: only then one is looked for when it has no records of a type.
    pub(crate) const ALIASED: Self = Self(32);
    /// It is not there, although the version that this one lies over has it.
    pub(crate) const GONE: Self = Self(128);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Returns the length and the marks in a block's head.
const fn word(&[_, _, _, _, w0, w1, w2, w3, ..]: &[u8; HEAD]) -> u32 {
    u32::from_le_bytes([w0, w1, w2, w3])
}

/// How an RRset's data is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As it stands.
    Plain,
    /// So many octets, then so many names that may be compressed, then octets.
    Names {
        /// Octets before the names.
        skipped: u8,
        /// Names in a row.
        names: u8,
    },
}

impl Layout {
    /// In the octet of a layout: it is known where the names are cut.
    pub(crate) const CUT: u8 = 0x80;

    pub(crate) const fn to_octet(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Names { skipped, names } => (names << 4) | skipped,
        }
    }

    const fn from_octet(octet: u8) -> Self {
        match octet >> 4 & 7 {
            0 => Self::Plain,
            names => Self::Names { skipped: octet & 15, names },
        }
    }

    /// Writes the data of a record of which names may be compressed.
    #[inline]
    pub(crate) fn write(self, writer: &mut Writer<'_>, rdata: &[u8]) -> Result<(), Full> {
        let Self::Names { skipped, names } = self else { return writer.bytes(rdata) };
        let (head, mut rest) = rdata.split_at_checked(usize::from(skipped)).ok_or(Full)?;
        writer.bytes(head)?;
        for _ in 0..names {
            let (name, after) = Name::parse(rest).map_err(|_| Full)?;
            writer.name(name)?;
            rest = after;
        }
        writer.bytes(rest)
    }
}

/// One name of a zone.
#[derive(Clone, Copy)]
pub(crate) struct Block<'z> {
    head: &'z [u8; HEAD],
    /// What is behind the head.
    rest: &'z [u8],
    /// Where it stands, in units.
    pub(crate) at: u32,
}

/// The records of one type at one name.
#[derive(Clone, Copy)]
pub(crate) struct Rrset<'z> {
    pub(crate) rtype: Rtype,
    pub(crate) layout: Layout,
    pub(crate) count: u16,
    pub(crate) signature_count: u16,
    /// Ready to stand behind a question for their owner.
    pub(crate) records: &'z [u8],
    /// Likewise.
    pub(crate) signatures: &'z [u8],
    /// Where the names in the data are cut directly behind such a question, as [`Cuts::cuts`];
    /// nothing if that is not known.
    pub(crate) cuts: &'z [u8],
}

impl<'z> Rrset<'z> {
    /// Returns where the names in the data are cut, if that is known.
    #[inline]
    pub(crate) const fn cuts(&self) -> Option<Cuts<'z>> {
        match self.layout {
            Layout::Names { skipped, names } if !self.cuts.is_empty() => {
                Some(Cuts { skipped, names, cuts: self.cuts })
            }
            _ => None,
        }
    }

    /// Walks what is written of the names in the data in front of a pointer to the owner; of types
    /// with one name.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &'z [u8]> {
        let (rows, _) = self.cuts.as_chunks::<CUT_OCTETS>();
        let skipped = match self.layout {
            Layout::Names { skipped, .. } => usize::from(skipped),
            Layout::Plain => 0,
        };
        Records(self.records)
            .zip(rows)
            .filter(|(_, [_, _, p0, p1])| [*p0, *p1] == OWNER)
            .filter_map(move |(record, &[cut, ..])| record.rdata.get(skipped..)?.get(..usize::from(cut)))
    }
}

impl<'z> Block<'z> {
    /// Returns the block at `at` (in units) of `blocks`.
    #[inline]
    pub(crate) fn read(blocks: &'z [u8], at: u32) -> Option<Self> {
        let (head, rest) = blocks.get(at as usize * UNIT..)?.split_first_chunk::<HEAD>()?;
        let units = word(head) >> 8;
        let rest = rest.get(..(units as usize * UNIT).checked_sub(HEAD)?)?;
        Some(Self { head, rest, at })
    }

    /// Returns where it is in memory: two names of any zones differ in it.
    pub(crate) fn address(self) -> usize {
        self.head.as_ptr().addr()
    }

    /// Returns where the next block is, in units.
    pub(crate) const fn next(self) -> u32 {
        self.at + ((HEAD + self.rest.len()) / UNIT) as u32
    }

    /// Returns the lower half of the name's hash.
    pub(crate) const fn tag(self) -> u32 {
        let &[t0, t1, t2, t3, ..] = self.head;
        u32::from_le_bytes([t0, t1, t2, t3])
    }

    pub(crate) const fn marks(self) -> Marks {
        Marks(word(self.head) as u8)
    }

    /// Returns the labels in front of the apex, letter case as written.
    pub(crate) fn labels(self) -> &'z [u8] {
        self.rest.get(..self.labels_len()).unwrap_or(&[])
    }

    /// Returns how many octets the labels have.
    const fn labels_len(self) -> usize {
        let &[.., len, _, _, _] = self.head;
        len as usize
    }

    /// Returns the number of RRsets.
    const fn set_count(self) -> usize {
        let &[.., c0, c1] = self.head;
        u16::from_le_bytes([c0, c1]) as usize
    }

    /// Returns the number of its NSEC3 record.
    pub(crate) fn link(self) -> Option<u32> {
        if !self.marks().has(Marks::LINKED) {
            return None;
        }
        let link = self.rest.get(self.labels_len()..).and_then(<[u8]>::first_chunk);
        link.and_then(|link| u32::from_le_bytes(*link).checked_sub(1))
    }

    /// Returns whether it has no records: it exists because names below it do.
    pub(crate) fn is_empty(self) -> bool {
        self.set_count() == 0
    }

    /// Walks the RRsets, in the order of their types.
    pub(crate) fn rrsets(self) -> Rrsets<'z> {
        let linked = if self.marks().has(Marks::LINKED) { 4 } else { 0 };
        let rest = self.rest.get(self.labels_len() + linked..).unwrap_or(&[]);
        let (heads, data) = rest.split_at_checked(self.set_count() * SET_HEAD).unwrap_or((&[], &[]));
        Rrsets { heads: heads.as_chunks().0, data }
    }

    /// Finds its ALIAS. The type is for private use: records whose data is not a name are not ours
    /// to follow.
    pub(crate) fn alias(self) -> Option<Rrset<'z>> {
        if !self.marks().has(Marks::ALIASED) {
            return None;
        }
        self.rrset(Rtype::ALIAS).filter(|rrset| Records(rrset.records).all(|record| is_alias(record.rdata)))
    }

    /// Finds the records of a type; an RRset that only has signatures is not found.
    #[inline]
    pub(crate) fn rrset(self, rtype: Rtype) -> Option<Rrset<'z>> {
        let Rrsets { heads, data } = self.rrsets();
        let mut at = 0;
        // Heads alone, until the type is there or its place is over.
        for head in heads {
            let head = SetHead::parse(head);
            if head.rtype >= rtype.0 {
                if head.rtype != rtype.0 || head.count == 0 {
                    return None;
                }
                return head.read(data.get(at..)?).map(|(found, _)| found);
            }
            at += head.octets();
        }
        None
    }
}

/// Returns whether data of the type ALIAS is that of an ALIAS: a name and nothing else.
pub(crate) fn is_alias(rdata: &[u8]) -> bool {
    Name::parse(rdata).is_ok_and(|(_, rest)| rest.is_empty())
}

/// The head of an RRset.
#[derive(Clone, Copy)]
struct SetHead {
    rtype: u16,
    count: u16,
    records: u16,
    signatures: u16,
    signature_count: u8,
    layout: u8,
}

impl SetHead {
    #[inline(always)]
    const fn parse(&[t0, t1, c0, c1, r0, r1, s0, s1, signature_count, layout]: &[u8; SET_HEAD]) -> Self {
        Self {
            rtype: u16::from_le_bytes([t0, t1]),
            count: u16::from_le_bytes([c0, c1]),
            records: u16::from_le_bytes([r0, r1]),
            signatures: u16::from_le_bytes([s0, s1]),
            signature_count,
            layout,
        }
    }

    /// Returns how many octets say where the names in the data are cut.
    #[inline(always)]
    const fn cuts(self) -> usize {
        if self.layout & Layout::CUT == 0 {
            return 0;
        }
        self.count as usize * (self.layout >> 4 & 7) as usize * CUT_OCTETS
    }

    /// Returns how many octets the RRset has in all.
    #[inline(always)]
    const fn octets(self) -> usize {
        self.records as usize + self.signatures as usize + self.cuts()
    }

    /// Returns the RRset, which stands in front of `data`, and what follows it.
    #[inline(always)]
    fn read(self, data: &[u8]) -> Option<(Rrset<'_>, &[u8])> {
        let (records, rest) = data.split_at_checked(usize::from(self.records))?;
        let (signatures, rest) = rest.split_at_checked(usize::from(self.signatures))?;
        let (cuts, rest) = rest.split_at_checked(self.cuts())?;
        let rrset = Rrset {
            rtype: Rtype(self.rtype),
            layout: Layout::from_octet(self.layout),
            count: self.count,
            signature_count: u16::from(self.signature_count),
            records,
            signatures,
            cuts,
        };
        Some((rrset, rest))
    }
}

/// The RRsets of a name.
#[derive(Clone)]
pub(crate) struct Rrsets<'z> {
    heads: &'z [[u8; SET_HEAD]],
    data: &'z [u8],
}

impl<'z> Iterator for Rrsets<'z> {
    type Item = Rrset<'z>;

    #[inline]
    fn next(&mut self) -> Option<Rrset<'z>> {
        let (head, heads) = self.heads.split_first()?;
        self.heads = heads;
        let (rrset, rest) = SetHead::parse(head).read(self.data)?;
        self.data = rest;
        Some(rrset)
    }
}

/// One record that stands ready.
#[derive(Clone, Copy)]
pub(crate) struct Ready<'z> {
    pub(crate) rtype: Rtype,
    pub(crate) ttl: u32,
    pub(crate) rdata: &'z [u8],
}

/// Walks records that stand ready.
#[derive(Clone)]
pub(crate) struct Records<'z>(pub(crate) &'z [u8]);

impl<'z> Iterator for Records<'z> {
    type Item = Ready<'z>;

    fn next(&mut self) -> Option<Ready<'z>> {
        let (&[_, _, t0, t1, _, _, s0, s1, s2, s3, l0, l1], rest) =
            self.0.split_first_chunk::<RECORD_HEAD>()?;
        let (rdata, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
        self.0 = rest;
        Some(Ready {
            rtype: Rtype(u16::from_be_bytes([t0, t1])),
            ttl: u32::from_be_bytes([s0, s1, s2, s3]),
            rdata,
        })
    }
}

/// Walks the records of an RRset of which each names one host, and where that name stands in the
/// message.
#[derive(Clone)]
pub(crate) struct Hosts<'z> {
    records: Records<'z>,
    cuts: &'z [[u8; CUT_OCTETS]],
    skipped: u16,
    /// Octets of the question's name in front of the owner.
    above: u16,
    /// Where the next record begins.
    at: u16,
}

impl<'z> Hosts<'z> {
    /// Walks an RRset of which the message has the names in no known places.
    pub(crate) const fn new(rrset: &Rrset<'z>) -> Self {
        Self { records: Records(rrset.records), cuts: &[], skipped: 0, above: 0, at: 0 }
    }

    /// Walks an RRset that was written at `at` with its names cut, its owner behind `above` octets
    /// of the question's name.
    pub(crate) fn cut(rrset: &Rrset<'z>, cuts: &Cuts<'z>, above: u8, at: usize) -> Self {
        let (rows, _) = cuts.cuts.as_chunks();
        let rows = if cuts.names == 1 { rows } else { &[] };
        let (skipped, above) = (u16::from(cuts.skipped), u16::from(above));
        Self { records: Records(rrset.records), cuts: rows, skipped, above, at: at as u16 }
    }
}

impl<'z> Iterator for Hosts<'z> {
    /// The record, and what a pointer to its host leads to.
    type Item = (Ready<'z>, Option<u16>);

    fn next(&mut self) -> Option<(Ready<'z>, Option<u16>)> {
        let record = self.records.next()?;
        let Some((&[cut, len, p0, p1], rest)) = self.cuts.split_first() else { return Some((record, None)) };
        self.cuts = rest;
        let head = RECORD_HEAD as u16;
        let pointer = u16::from_be_bytes([p0, p1]) & 0x3fff;
        // A pointer to a pointer is not for everybody.
        let place = if cut == 0 { pointer + self.above } else { self.at + head + self.skipped };
        let saved = if pointer == 0 { 0 } else { u16::from(len) - u16::from(cut) - 2 };
        self.at += head + record.rdata.len() as u16 - saved;
        Some((record, Some(place)))
    }
}
