//! Where names in the data of records are cut, worked out once for records that are written often.

use crate::header::{Flags, Header};
use crate::message::Section;
use crate::name::Name;
use crate::numbers::{Class, Rtype, Ttl};
use crate::query::Question;
use crate::write::{RECORD_HEAD, Writer};

/// What a name in the data of a record is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Octets in front of the pointer, or all.
    pub octets: u8,
    /// Octets of the whole name.
    pub len: u8,
    /// Where the pointer leads to in the message.
    pub pointer: Option<u16>,
}

impl Cut {
    /// Returns what becomes of the names in the data of an RRset directly behind a question for its
    /// owner: for each record its names. The records stand ready, each with a pointer for its
    /// owner; their data begins with `skipped` octets, then come `names` names. `None`: it has none
    /// there, or takes more than a message.
    pub fn all(owner: Name<'_>, records: &[u8], skipped: u8, names: u8) -> Option<Vec<Self>> {
        let mut buffer = vec![0; Header::LEN + owner.len() + 4 + records.len()];
        let mut writer = Writer::new(&mut buffer, usize::MAX, 0, Flags::QR);
        writer.question(&Question { qname: owner, qtype: Rtype::ANY, qclass: Class::IN }).ok()?;
        let mut at = writer.len();
        for data in Rows(records) {
            let (head, mut rest) = data.split_at_checked(usize::from(skipped))?;
            writer
                .record(Section::Answer, owner, Rtype::ANY, Class::IN, Ttl::ZERO, |writer| {
                    writer.bytes(head)?;
                    for _ in 0..names {
                        let (name, behind) = Name::parse(rest).map_err(|_| crate::Full)?;
                        writer.name(name)?;
                        rest = behind;
                    }
                    writer.bytes(rest)
                })
                .ok()?;
        }
        let end = writer.finish();
        let message = buffer.get(..end)?;
        let mut cuts = Vec::new();
        for data in Rows(records) {
            let mut whole = data.get(usize::from(skipped)..)?;
            let length = u16::from_be_bytes(*message.get(at + RECORD_HEAD - 2..)?.first_chunk()?);
            let mut name_at = at + RECORD_HEAD + usize::from(skipped);
            for _ in 0..names {
                let (name, rest) = Name::parse(whole).ok()?;
                whole = rest;
                let mut label_at = name_at;
                // Ends: the name was written whole.
                let pointer = loop {
                    match *message.get(label_at)? {
                        0 => {
                            label_at += 1;
                            break None;
                        }
                        high @ 0xc0.. => {
                            break Some(u16::from_be_bytes([high & 0x3f, *message.get(label_at + 1)?]));
                        }
                        len => label_at += 1 + usize::from(len),
                    }
                };
                cuts.push(Self { octets: (label_at - name_at) as u8, len: name.len() as u8, pointer });
                name_at = label_at + if pointer.is_some() { 2 } else { 0 };
            }
            at += RECORD_HEAD + usize::from(length);
        }
        Some(cuts)
    }
}

/// Walks the data of records that stand ready.
struct Rows<'r>(&'r [u8]);

impl<'r> Iterator for Rows<'r> {
    type Item = &'r [u8];

    fn next(&mut self) -> Option<&'r [u8]> {
        let (head, rest) = self.0.split_first_chunk::<RECORD_HEAD>()?;
        let &[.., l0, l1] = head;
        let (data, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
        self.0 = rest;
        Some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::NameBuf;

    #[test]
    fn names_lead_to_the_question_and_to_each_other() {
        let name = |text: &str| NameBuf::from_text(text).expect("a name");
        let mut records = Vec::new();
        for target in ["a.ns.example.org", "b.ns.example.org", "example.net", "www.example.org"] {
            let target = name(target);
            let data = target.as_name().as_bytes();
            records.extend([0xc0, 12, 0, 2, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
            records.extend(data);
        }
        let owner = name("www.example.org");
        let cut = |octets, len, pointer| Cut { octets, len, pointer };
        // The question takes 33 octets; the first record has its name at 45, of which the second
        // label is at 47.
        let expect = [cut(5, 18, Some(16)), cut(2, 18, Some(47)), cut(13, 13, None), cut(0, 17, Some(12))];
        assert_eq!(Cut::all(owner.as_name(), &records, 0, 1).as_deref(), Some(&expect[..]));
        assert_eq!(Cut::all(owner.as_name(), &[0xc0, 12, 0, 2, 0, 1, 0, 0, 0, 60, 0, 1, 9], 0, 1), None);
    }
}
