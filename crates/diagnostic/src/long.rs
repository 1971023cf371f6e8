//! A text of megabytes, in pieces that others hold, too.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A long text: its pieces, one behind the other. Copies share them.
#[derive(Clone, Default)]
pub struct LongText {
    pieces: Arc<[Arc<str>]>,
}

impl LongText {
    /// Returns the text that these pieces are.
    pub fn new(pieces: Vec<Arc<str>>) -> Self {
        Self { pieces: pieces.into() }
    }

    /// Returns the pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().map(|piece| &**piece)
    }

    /// Returns how many octets it has.
    pub fn len(&self) -> usize {
        self.pieces().map(str::len).sum()
    }

    /// Returns whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn octets(&self) -> impl Iterator<Item = u8> {
        self.pieces().flat_map(str::bytes)
    }
}

impl From<String> for LongText {
    fn from(text: String) -> Self {
        Self::new(vec![text.into()])
    }
}

impl From<&str> for LongText {
    fn from(text: &str) -> Self {
        Self::new(vec![text.into()])
    }
}

impl fmt::Display for LongText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

/// Shows how long it is: nobody reads it.
impl fmt::Debug for LongText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LongText({} octets)", self.len())
    }
}

/// Two texts are equal whatever their pieces are.
impl PartialEq for LongText {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&Arc<str>, &Arc<str>)| Arc::ptr_eq(a, b);
        let are_shared = self.pieces.len() == other.pieces.len()
            && self.pieces.iter().zip(other.pieces.iter()).all(is_same);
        are_shared || self.len() == other.len() && self.octets().eq(other.octets())
    }
}
impl Eq for LongText {}

impl Hash for LongText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        // A hasher may tell apart how octets are handed to it: always so many at once.
        let mut part = [0; 64];
        let mut count = 0;
        for piece in self.pieces() {
            let mut rest = piece.as_bytes();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(part.len() - count));
                part[count..count + now.len()].copy_from_slice(now);
                (count, rest) = (count + now.len(), later);
                if count == part.len() {
                    state.write(&part);
                    count = 0;
                }
            }
        }
        state.write(&part[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{BuildHasher as _, RandomState};

    #[test]
    fn it_does_not_matter_where_a_text_is_cut() {
        let text = "abc.example\n".repeat(100);
        let whole = LongText::from(&*text);
        let hasher = RandomState::new();
        for cut in [0, 1, 63, 64, 65, 700, text.len()] {
            let (first, second) = text.split_at(cut);
            let pieces = LongText::new(vec![first.into(), second.into()]);
            assert_eq!((&pieces, pieces.to_string()), (&whole, text.clone()));
            assert_eq!(hasher.hash_one(&pieces), hasher.hash_one(&whole), "{cut}");
        }
        let other = LongText::from(text.replace("abc.example\n", "abd.example\n"));
        assert_ne!(other, whole);
        assert_ne!(hasher.hash_one(&other), hasher.hash_one(&whole));
    }
}
