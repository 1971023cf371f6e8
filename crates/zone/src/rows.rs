//! Records in a row of octets: in a difference, in a file, on their way to becoming a zone.

use wire::{Class, Name, Rtype, Ttl};

/// A record, borrowed.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    /// Its owner.
    pub owner: Name<'r>,
    /// Its type.
    pub rtype: Rtype,
    /// How long it may be kept.
    pub ttl: Ttl,
    /// Its data, names in full.
    pub rdata: &'r [u8],
}

/// Records, each as in a message where nothing is compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    octets: Vec<u8>,
    count: usize,
}

impl Rows {
    /// Reads records from octets that [`Rows::as_bytes`] gave; `None` if they are none.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let mut rest = octets;
        let mut count = 0;
        while !rest.is_empty() {
            rest = split(rest)?.1;
            count += 1;
        }
        Some(Self { octets: octets.to_vec(), count })
    }

    /// Adds a record.
    pub fn push(&mut self, row: &Row<'_>) {
        self.octets.extend_from_slice(row.owner.as_bytes());
        self.octets.extend_from_slice(&row.rtype.0.to_be_bytes());
        self.octets.extend_from_slice(&Class::IN.0.to_be_bytes());
        self.octets.extend_from_slice(&row.ttl.seconds().to_be_bytes());
        self.octets.extend_from_slice(&(row.rdata.len() as u16).to_be_bytes());
        self.octets.extend_from_slice(row.rdata);
        self.count += 1;
    }

    /// Returns how many there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the octets.
    pub fn as_bytes(&self) -> &[u8] {
        &self.octets
    }

    /// Walks the records in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let mut rest = self.octets.as_slice();
        std::iter::from_fn(move || {
            let (row, after) = split(rest)?;
            rest = after;
            Some(row)
        })
    }

    /// Returns the record that begins `at` octets after the start, and where the next one does.
    pub(crate) fn at(&self, at: usize) -> Option<(Row<'_>, usize)> {
        let (row, after) = split(self.octets.get(at..)?)?;
        Some((row, self.octets.len() - after.len()))
    }
}

fn split(octets: &[u8]) -> Option<(Row<'_>, &[u8])> {
    let (owner, rest) = Name::parse(octets).ok()?;
    let (&[t0, t1, _, _, s0, s1, s2, s3, l0, l1], rest) = rest.split_first_chunk::<10>()?;
    let (rdata, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
    let row = Row {
        owner,
        rtype: Rtype(u16::from_be_bytes([t0, t1])),
        ttl: Ttl::new(u32::from_be_bytes([s0, s1, s2, s3])),
        rdata,
    };
    Some((row, rest))
}

/// Returns what two records have in common exactly if they are the same but for their TTL.
pub(crate) fn identity(row: &Row<'_>) -> Vec<u8> {
    let mut out = row.owner.to_folded().as_bytes().to_vec();
    out.extend_from_slice(&row.rtype.0.to_be_bytes());
    let start = out.len();
    if wire::rdata::write_canonical(row.rtype, row.rdata, 0..row.rdata.len(), &mut out).is_err() {
        out.truncate(start);
        out.extend_from_slice(row.rdata);
    }
    out
}
