//! Names written relative to others: `ns1.example.com` below `example.com` takes six octets.
//!
//! A name is `[octets:8][first labels][other:1 labels:7]`: how many labels of the base or, if
//! `other` is set, of the name before follow the first ones.

use wire::{Folded, Name, NameBuf};

/// Set if the last labels are those of the name before.
const OF_NAME_BEFORE: u8 = 0x80;

/// Writes names one after the other.
pub(crate) struct Names<'a> {
    base: Name<'a>,
    before: Folded,
}

impl<'a> Names<'a> {
    /// Begins a row of names near `base`.
    pub(crate) const fn near(base: Name<'a>) -> Self {
        Self { base, before: Folded::root() }
    }

    /// Appends a name, in lower case.
    pub(crate) fn write(&mut self, name: Name<'_>, out: &mut Vec<u8>) {
        let folded = name.to_folded();
        let name = folded.as_name();
        let (of_base, of_before) = (shared(name, self.base), shared(name, self.before.as_name()));
        let (labels, mark) = if of_before > of_base { (of_before, OF_NAME_BEFORE) } else { (of_base, 0) };
        let own = name.as_bytes().len() - name.suffix(labels).len();
        out.push(own as u8);
        out.extend_from_slice(name.as_bytes().get(..own).unwrap_or(&[]));
        out.push(labels as u8 | mark);
        self.before = folded;
    }

    /// Reads the next name from the front of `data`.
    pub(crate) fn read(&mut self, data: &mut &[u8]) -> Option<NameBuf> {
        let (&own, rest) = data.split_first()?;
        let (own, rest) = rest.split_at_checked(usize::from(own))?;
        let (&mark, rest) = rest.split_first()?;
        let labels = usize::from(mark & !OF_NAME_BEFORE);
        let before = if mark & OF_NAME_BEFORE == 0 { self.base } else { self.before.as_name() };
        let name = NameBuf::below(own, before.suffix(labels)).ok()?;
        *data = rest;
        self.before = name.as_name().to_folded();
        Some(name)
    }
}

/// Returns how many labels two names have in common at their ends.
fn shared(name: Name<'_>, other: Name<'_>) -> usize {
    let labels = name.label_count().min(other.label_count());
    (1..=labels).rev().find(|&labels| name.suffix(labels) == other.suffix(labels)).unwrap_or(0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_in_lower_case() {
        let base = NameBuf::from_text("example.com").expect("a name");
        let check = |texts: &[&str], octets: usize| {
            let mut out = Vec::new();
            let mut names = Names::near(base.as_name());
            for text in texts {
                names.write(NameBuf::from_text(text).expect("a name").as_name(), &mut out);
            }
            assert_eq!(out.len(), octets, "{texts:?}");
            let (mut names, mut data) = (Names::near(base.as_name()), &out[..]);
            for text in texts {
                let name = names.read(&mut data).expect("it was written");
                let expected = NameBuf::from_text(&text.to_lowercase()).expect("a name");
                assert_eq!(name.as_name().as_bytes(), expected.as_name().as_bytes());
            }
            assert!(data.is_empty() && names.read(&mut data).is_none());
        };
        check(&[], 0);
        check(&["."], 2);
        check(&["example.com"], 2);
        check(&["ns1.Example.com", "NS2.example.com"], 12);
        check(&["a.hoster.net", "b.hoster.net", "c.hoster.NET"], 16 + 2 * 4 - 1);
        check(&["ns.example.com", "a.net", "ns.example.com"], 5 + 8 + 5);
        let long = ["abcdefghi."; 25].concat();
        check(&[&long, &long], 252 + 2);
    }
}
