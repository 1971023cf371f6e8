//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Domain names in wire form (RFC 1035 §3.1).

use crate::hash::eq_ignore_case;
use crate::query::Malformed;

/// Octets a name may have, root label included (RFC 1035 §3.1).
pub const NAME_OCTETS_MAX: usize = 255;
/// Octets a label may have.
pub const LABEL_OCTETS_MAX: usize = 63;
/// The same, as it stands in front of a label.
const LABEL_LEN_MAX: u8 = LABEL_OCTETS_MAX as u8;

/// A domain name in wire form, checked once and then trusted.
///
/// Uncompressed labels ending in the root label, at most 255 octets
/// (RFC 1035 §3.1). Letter case is kept; comparison and hashing ignore it.
#[derive(Clone, Copy)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// The root.
    pub const ROOT: Name<'static> = Name(&[0]);

    /// Reads an uncompressed name from the front of `bytes`; returns it and what follows.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        Self::parse_with_shape(bytes).map(|(name, _, rest)| (name, rest))
    }

    /// Reads a name likewise; returns its shape as well, for whoever wants it later.
    #[inline(always)]
    pub(crate) fn parse_with_shape(bytes: &'a [u8]) -> Result<(Self, Shape, &'a [u8]), Malformed> {
        // Its root label stands within these octets, so that one bound is enough for each label.
        let room = bytes.get(..NAME_OCTETS_MAX).unwrap_or(bytes);
        let mut at = 0;
        let mut shape = Shape { labels: 0, last_at: 0 };
        loop {
            match room.get(at) {
                Some(&len @ 1..=LABEL_LEN_MAX) => {
                    shape = Shape { labels: shape.labels.wrapping_add(1), last_at: at as u8 };
                    at += 1 + usize::from(len);
                }
                Some(0) => break,
                _ => return Err(Malformed::Name),
            }
        }
        match bytes.split_at_checked(at + 1) {
            Some((name, rest)) => Ok((Self(name), shape, rest)),
            None => Err(Malformed::Name),
        }
    }

    /// Returns how many labels there are and where the last one begins.
    pub fn shape(self) -> Shape {
        Self::parse_with_shape(self.0).map_or(Shape { labels: 0, last_at: 0 }, |(_, shape, _)| shape)
    }

    /// Takes octets that are known to be a name.
    pub(crate) const fn trusted(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the wire form, root label included.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the number of octets, root label included.
    #[expect(clippy::len_without_is_empty, reason = "a name has at least the root label")]
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Returns whether this is the root.
    pub const fn is_root(self) -> bool {
        self.0.len() == 1
    }

    /// Walks the labels from the left, root label excluded.
    pub fn labels(self) -> Labels<'a> {
        Labels(self.0)
    }

    /// Returns the number of labels, root label excluded.
    pub fn label_count(self) -> usize {
        self.labels().count()
    }

    /// Returns the name without its first label; `None` for the root.
    pub fn parent(self) -> Option<Self> {
        let (&len, rest) = self.0.split_first()?;
        if len == 0 { None } else { rest.get(usize::from(len)..).map(Name) }
    }

    /// Returns the last `labels` labels; the whole name if it has fewer.
    #[must_use]
    pub fn suffix(self, labels: usize) -> Self {
        let mut name = self;
        for _ in labels..self.label_count() {
            match name.parent() {
                Some(parent) => name = parent,
                None => break,
            }
        }
        name
    }

    /// Returns whether this name equals `zone` or lies below it.
    pub fn is_at_or_below(self, zone: Name<'_>) -> bool {
        let mut name = self;
        while name.len() > zone.len() {
            match name.parent() {
                Some(parent) => name = parent,
                None => return false,
            }
        }
        name == zone
    }

    /// Returns an owned copy, letter case kept.
    pub fn to_buf(self) -> NameBuf {
        let mut buf = NameBuf::root();
        if let Some(room) = buf.bytes.get_mut(..self.0.len()) {
            room.copy_from_slice(self.0);
            buf.len = self.0.len() as u8;
        }
        buf
    }

    /// Returns an owned copy with ASCII letters in lower case.
    pub fn to_folded(self) -> Folded {
        let mut folded = Folded::root();
        self.fold_into(&mut folded);
        folded
    }

    /// Copies the name in lower case over `folded`; [`HashKey::fold`] hashes it in the same pass.
    ///
    /// [`HashKey::fold`]: crate::HashKey::fold
    pub fn fold_into(self, folded: &mut Folded) {
        let room = folded.room(self.0.len());
        room.copy_from_slice(self.0);
        room.make_ascii_lowercase();
    }
}

/// What a walk over the labels of a name finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many labels there are, root label excluded.
    pub labels: u8,
    /// Where the last of them begins, with the octet of its length; zero for the root.
    pub last_at: u8,
}

impl PartialEq<Name<'_>> for Name<'_> {
    /// Compares without regard to ASCII letter case (RFC 4343 §3).
    fn eq(&self, other: &Name<'_>) -> bool {
        // Length octets are at most 63 and so are never letters: folding them changes nothing.
        eq_ignore_case(self.0, other.0)
    }
}
impl Eq for Name<'_> {}

/// The labels of a name from the left, root label excluded.
#[derive(Clone)]
pub struct Labels<'a>(&'a [u8]);

impl<'a> Iterator for Labels<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (&len, rest) = self.0.split_first()?;
        if len == 0 {
            return None;
        }
        let (label, rest) = rest.split_at_checked(usize::from(len))?;
        self.0 = rest;
        Some(label)
    }
}

/// An owned name, inline, letter case kept. 256 octets, no heap.
#[derive(Clone, Copy)]
pub struct NameBuf {
    len: u8,
    bytes: [u8; NAME_OCTETS_MAX],
}

impl NameBuf {
    /// Returns the root.
    pub const fn root() -> Self {
        Self { len: 1, bytes: [0; NAME_OCTETS_MAX] }
    }

    /// Returns the name as a borrow.
    pub fn as_name(&self) -> Name<'_> {
        Name(self.bytes.get(..usize::from(self.len)).unwrap_or(&[0]))
    }

    /// Returns the name of `labels`, which stand in a row without a root label, below `parent`.
    pub fn below(labels: &[u8], parent: Name<'_>) -> Result<Self, Malformed> {
        let mut name = Self::root();
        name.push_row(labels)?;
        name.push_row(parent.0.split_last().map_or(&[], |(_, labels)| labels))?;
        let (parsed, rest) = Name::parse(name.as_name().0)?;
        if rest.is_empty() && parsed.len() == name.as_name().len() { Ok(name) } else { Err(Malformed::Name) }
    }

    /// Puts labels that stand in a row in a message in place of the root label and a new root label
    /// after them.
    ///
    /// The caller has checked that they are labels and at most 254 octets in all.
    pub(crate) fn push_row(&mut self, labels: &[u8]) -> Result<(), Malformed> {
        let end = usize::from(self.len) - 1;
        let new_end = end + labels.len();
        let room = self.bytes.get_mut(end..new_end).ok_or(Malformed::Name)?;
        room.copy_from_slice(labels);
        *self.bytes.get_mut(new_end).ok_or(Malformed::Name)? = 0;
        self.len = (new_end + 1) as u8;
        Ok(())
    }

    /// Puts `label` in place of the root label and a new root label after it.
    ///
    /// Errors when the label is empty or too long, or the name would be.
    pub fn push_label(&mut self, label: &[u8]) -> Result<(), Malformed> {
        let end = usize::from(self.len) - 1;
        if label.is_empty() || label.len() > LABEL_OCTETS_MAX {
            return Err(Malformed::Name);
        }
        let room = self.bytes.get_mut(end..end + label.len() + 2).ok_or(Malformed::Name)?;
        if let Some((first, rest)) = room.split_first_mut()
            && let Some((last, middle)) = rest.split_last_mut()
        {
            *first = label.len() as u8;
            middle.copy_from_slice(label);
            *last = 0;
        }
        self.len += 1 + label.len() as u8;
        Ok(())
    }
}

impl PartialEq for NameBuf {
    fn eq(&self, other: &Self) -> bool {
        self.as_name() == other.as_name()
    }
}
impl Eq for NameBuf {}

/// A name whose ASCII letters are lower case: bytes can be compared as they are.
#[derive(Clone, Copy)]
pub struct Folded(NameBuf);

impl Folded {
    /// Returns the root: room for a name to be folded into.
    pub const fn root() -> Self {
        Self(NameBuf::root())
    }

    /// Returns room for a name of `len` octets in place of the one before; the caller writes all of
    /// it.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        let len = len.min(NAME_OCTETS_MAX);
        self.0.len = len as u8;
        self.0.bytes.get_mut(..len).unwrap_or(&mut [])
    }

    /// Returns the lower-case name.
    pub fn as_name(&self) -> Name<'_> {
        self.0.as_name()
    }

    /// Returns the lower-case wire form.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_name().0
    }
}
