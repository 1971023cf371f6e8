//! Heads that came.

use std::collections::VecDeque;

use super::static_table::STATIC;
use super::{ENTRY_EXTRA_OCTETS, Garbled, TABLE_OCTETS, huffman};
use crate::head::{Head, Origin};

/// Octets that a number may have after its first: more than any that we take.
const NUMBER_OCTETS_MAX: u32 = 4;

/// An entry of the table: name and value in one piece.
#[derive(Debug)]
struct Entry {
    text: Box<[u8]>,
    name_octets: usize,
}

/// Reads heads, and keeps the table that they refer to.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// The latest first.
    entries: VecDeque<Entry>,
    octets: usize,
    octets_max: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { entries: VecDeque::new(), octets: 0, octets_max: TABLE_OCTETS }
    }
}

impl Decoder {
    /// Reads one head into `head`, which is empty.
    pub(crate) fn decode(&mut self, block: &[u8], head: &mut Head) -> Result<(), Garbled> {
        let mut rest = block;
        let mut is_first = true;
        while let Some(&first) = rest.first() {
            if first & 0x80 != 0 {
                // §6.1: name and value.
                let index = number(&mut rest, 7)?;
                let (name, value, origin) = self.entry(index)?;
                head.begin();
                head.text().extend_from_slice(name);
                let name_octets = head.begun();
                head.text().extend_from_slice(value);
                head.end(name_octets, origin);
            } else if first & 0xe0 == 0x20 {
                // §6.3: the table's size; §4.2: at the beginning only.
                let size = number(&mut rest, 5)?;
                if size > TABLE_OCTETS || !is_first {
                    return Err(Garbled);
                }
                self.octets_max = size;
                self.evict(0);
                continue;
            } else {
                // §6.2: a new value, kept in the table or not.
                let is_kept = first & 0x40 != 0;
                let index = number(&mut rest, if is_kept { 6 } else { 4 })?;
                head.begin();
                let mut origin = Origin::Client;
                if index == 0 {
                    text(&mut rest, head.text())?;
                } else {
                    let (name, _, of_name) = self.entry(index)?;
                    origin = of_name;
                    head.text().extend_from_slice(name);
                }
                let name_octets = head.begun();
                text(&mut rest, head.text())?;
                if is_kept {
                    self.keep(head.current(), name_octets);
                }
                head.end(name_octets, origin);
            }
            is_first = false;
            if head.is_absurd() {
                return Err(Garbled);
            }
        }
        Ok(())
    }

    /// Returns the entry with this number.
    fn entry(&self, index: usize) -> Result<(&[u8], &[u8], Origin), Garbled> {
        let index = index.checked_sub(1).ok_or(Garbled)?;
        if let Some(&(name, value)) = STATIC.get(index) {
            return Ok((name, value, Origin::Standard));
        }
        let entry = self.entries.get(index - STATIC.len()).ok_or(Garbled)?;
        let (name, value) = entry.text.split_at_checked(entry.name_octets).ok_or(Garbled)?;
        Ok((name, value, Origin::Client))
    }

    /// Takes an entry into the table (RFC 7541 §4.4).
    fn keep(&mut self, text: &[u8], name_octets: usize) {
        let octets = text.len() + ENTRY_EXTRA_OCTETS;
        self.evict(octets);
        if octets <= self.octets_max {
            self.octets += octets;
            self.entries.push_front(Entry { text: text.into(), name_octets });
        }
    }

    /// Forgets the oldest entries until there is room for `octets`.
    fn evict(&mut self, octets: usize) {
        while self.octets + octets > self.octets_max
            && let Some(entry) = self.entries.pop_back()
        {
            self.octets -= entry.text.len() + ENTRY_EXTRA_OCTETS;
        }
    }
}

/// Reads a number whose first octet has `bits` of it (RFC 7541 §5.1).
fn number(rest: &mut &[u8], bits: u32) -> Result<usize, Garbled> {
    let (&first, after) = rest.split_first().ok_or(Garbled)?;
    *rest = after;
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(first) & most;
    if value < most {
        return Ok(value);
    }
    for place in 0..NUMBER_OCTETS_MAX {
        let (&octet, after) = rest.split_first().ok_or(Garbled)?;
        *rest = after;
        value += usize::from(octet & 0x7f) << (7 * place);
        if octet & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Garbled)
}

/// Reads a text and appends it (RFC 7541 §5.2).
fn text(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Garbled> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let octets = number(rest, 7)?;
    let (text, after) = rest.split_at_checked(octets).ok_or(Garbled)?;
    *rest = after;
    if is_coded {
        huffman::decode(text, out)
    } else {
        out.extend_from_slice(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::head::Bounds;

    const BOUNDS: Bounds = Bounds { octets_max: 16 << 10, fields_max: 64 };

    fn check(decoder: &mut Decoder, block: &[u8], expect: &[(&str, &str)]) {
        let mut head = Head::default();
        head.clear(BOUNDS);
        decoder.decode(block, &mut head).expect("a head");
        let fields: Vec<_> = head.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let pseudo = [
            (":method", head.method()),
            (":scheme", head.scheme()),
            (":path", head.path_and_query()),
            (":authority", head.authority()),
        ];
        for (name, value) in pseudo {
            let expected = expect.iter().find(|(of, _)| *of == name).map(|(_, value)| value.as_bytes());
            assert_eq!(value, expected, "{name}");
        }
        let expected: Vec<_> = expect
            .iter()
            .filter(|(name, _)| !name.starts_with(':'))
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .collect();
        assert_eq!(fields, expected);
        assert!(!head.is_malformed());
    }

    #[test]
    fn requests_of_the_standard_are_read() {
        // RFC 7541 §C.3: without the code.
        let mut decoder = Decoder::default();
        let first =
            [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
        check(&mut decoder, b"\x82\x86\x84\x41\x0fwww.example.com", &first);
        assert_eq!(decoder.octets, 57);
        let second = [&first[..], &[("cache-control", "no-cache")]].concat();
        check(&mut decoder, b"\x82\x86\x84\xbe\x58\x08no-cache", &second);
        assert_eq!(decoder.octets, 110);
        let third = [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ];
        check(&mut decoder, b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value", &third);
        assert_eq!(decoder.octets, 164);
        // RFC 7541 §C.4: with it.
        let mut decoder = Decoder::default();
        let coded = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        check(&mut decoder, coded, &first);
        check(&mut decoder, b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf", &second);
        let coded =
            b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf";
        check(&mut decoder, coded, &third);
    }

    #[test]
    fn the_table_forgets_the_oldest_and_obeys_its_size() {
        let mut decoder = Decoder::default();
        let mut head = Head::default();
        let mut read = |block: &[u8]| {
            head.clear(BOUNDS);
            decoder.decode(block, &mut head)
        };
        // Room for two entries of 34 octets.
        assert_eq!(read(&[0x3f, 36, 0x40, 1, b'a', 1, b'1']), Ok(()));
        assert_eq!(read(&[0x40, 1, b'b', 1, b'2', 0xbe, 0xbf]), Err(Garbled), "68 octets do not fit 67");
        assert_eq!(read(&[0xbe]), Ok(()));
        assert_eq!(read(&[0xbf]), Err(Garbled));
        assert_eq!(read(&[0x20]), Ok(()));
        assert_eq!(read(&[0xbe]), Err(Garbled), "nothing is left");
    }

    #[test]
    fn what_is_garbled_is_refused() {
        for block in [
            &[0x80][..],
            &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
            &[0xbe],
            &[0x40, 5, b'a'],
            &[0x3f, 0xff, 0xff, 0x03],
            &[0x82, 0x20],
            &[0x7f],
            &[0x40],
        ] {
            let mut head = Head::default();
            head.clear(BOUNDS);
            assert_eq!(Decoder::default().decode(block, &mut head), Err(Garbled), "{block:02x?}");
        }
    }

    #[test]
    fn a_head_that_refers_to_long_entries_again_and_again_is_not_read_to_its_end() {
        let bounds = Bounds { octets_max: 1000, fields_max: 64 };
        let mut decoder = Decoder::default();
        let mut head = Head::default();
        head.clear(bounds);
        let value = [b'x'; 100];
        let entry = [&[0x40, 1, b'a', 100][..], &value].concat();
        assert_eq!(decoder.decode(&entry, &mut head), Ok(()));
        head.clear(bounds);
        assert_eq!(decoder.decode(&[0xbe; 30], &mut head), Ok(()), "too large, and yet to be answered");
        assert!(head.is_too_large());
        head.clear(bounds);
        assert_eq!(decoder.decode(&[0xbe; 31], &mut head), Err(Garbled));
    }

    proptest! {
        #[test]
        fn no_octets_panic_and_the_table_is_bounded(
            blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20),
        ) {
            let mut decoder = Decoder::default();
            let mut head = Head::default();
            for block in blocks {
                head.clear(Bounds { octets_max: 200, fields_max: 4 });
                let _ = decoder.decode(&block, &mut head);
                prop_assert!(decoder.octets <= TABLE_OCTETS);
                prop_assert!(head.fields().count() <= 4);
            }
        }
    }
}
