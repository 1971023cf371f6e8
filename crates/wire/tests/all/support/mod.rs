//! Messages made by chance, for the property tests.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::{Class, Flags, Full, Name, NameBuf, OptionCode, Question, Rcode, Rtype, Section, Ttl, Writer};

/// A record as written: names by their labels, other data in octets.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) section: Section,
    pub(crate) owner: NameBuf,
    pub(crate) rtype: Rtype,
    pub(crate) ttl: u32,
    pub(crate) data: Vec<Part>,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    Octets(Vec<u8>),
    Name(NameBuf),
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) id: u16,
    pub(crate) flags: Flags,
    pub(crate) qname: NameBuf,
    pub(crate) qtype: Rtype,
    pub(crate) entries: Vec<Entry>,
    pub(crate) options: Option<Vec<(u16, Vec<u8>)>>,
}

/// Names that often share suffixes and letters in other case.
pub(crate) fn name() -> impl Strategy<Value = NameBuf> {
    let label = prop_oneof![
        Just(b"example".to_vec()),
        Just(b"EXAMPLE".to_vec()),
        Just(b"org".to_vec()),
        Just(b"www".to_vec()),
        Just(b"ns1".to_vec()),
        vec(any::<u8>(), 1..=63),
    ];
    vec(label, 0..6).prop_map(|labels| {
        let mut name = NameBuf::root();
        for label in &labels {
            // Too long a name keeps the labels that fit.
            let _ = name.push_label(label);
        }
        name
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let octets = |len| vec(any::<u8>(), len).prop_map(Part::Octets);
    let named = |rtype, head| {
        (vec(any::<u8>(), head), name())
            .prop_map(move |(head, name)| (rtype, vec![Part::Octets(head), Part::Name(name)]))
    };
    let data = prop_oneof![
        octets(4).prop_map(|part| (Rtype::A, vec![part])),
        octets(16).prop_map(|part| (Rtype::AAAA, vec![part])),
        named(Rtype::NS, 0),
        named(Rtype::CNAME, 0),
        named(Rtype::PTR, 0),
        named(Rtype::MX, 2),
        (name(), name(), vec(any::<u8>(), 20)).prop_map(|(mname, rname, numbers)| {
            (Rtype::SOA, vec![Part::Name(mname), Part::Name(rname), Part::Octets(numbers)])
        }),
        vec(any::<u8>(), 0..=255).prop_map(|text| {
            (Rtype::TXT, vec![Part::Octets(vec![text.len() as u8]), Part::Octets(text)])
        }),
        (0..=40_u16, vec(any::<u8>(), 0..40))
            .prop_map(|(n, data)| (Rtype(65_280 + n), vec![Part::Octets(data)])),
    ];
    let section = prop_oneof![Just(Section::Answer), Just(Section::Authority), Just(Section::Additional)];
    (section, name(), data, 0..=i32::MAX as u32).prop_map(|(section, owner, (rtype, data), ttl)| Entry {
        section,
        owner,
        rtype,
        ttl,
        data,
    })
}

pub(crate) fn model() -> impl Strategy<Value = Model> {
    let options = proptest::option::of(vec((any::<u16>(), vec(any::<u8>(), 0..20)), 0..4));
    let flags = any::<u16>().prop_map(|word| Flags(word & 0x87f0));
    (any::<u16>(), flags, name(), 1..=300_u16, vec(entry(), 0..8), options).prop_map(
        |(id, flags, qname, qtype, mut entries, options)| {
            entries.sort_by_key(|entry| entry.section as u8);
            Model { id, flags, qname, qtype: Rtype(qtype), entries, options }
        },
    )
}

impl Model {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = vec![0; 65_535];
        let mut w = Writer::new(&mut out, 65_535, self.id, self.flags);
        let question = Question { qname: self.qname.as_name(), qtype: self.qtype, qclass: Class::IN };
        w.question(&question).expect("fits");
        for entry in &self.entries {
            let owner = entry.owner.as_name();
            w.record(entry.section, owner, entry.rtype, Class::IN, Ttl::new(entry.ttl), |w| {
                entry.data.iter().try_for_each(|part| write_part(w, part))
            })
            .expect("fits");
        }
        if let Some(options) = &self.options {
            w.opt(1232, Rcode::NOERROR, true, |w| {
                options.iter().try_for_each(|(code, data)| w.option(OptionCode(*code), data))
            })
            .expect("fits");
        }
        let len = w.finish();
        out.truncate(len);
        out
    }
}

fn write_part(w: &mut Writer<'_>, part: &Part) -> Result<(), Full> {
    match part {
        Part::Octets(octets) => w.bytes(octets),
        Part::Name(name) => w.name(name.as_name()),
    }
}

/// A message with some octets changed, cut off or added.
pub(crate) fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0xc0), Just(12), Just(0)]);
    (
        model(),
        vec(change, 0..6),
        proptest::option::weighted(0.2, any::<prop::sample::Index>()),
        vec(any::<u8>(), 0..2),
    )
        .prop_map(|(model, changes, cut, more)| {
            let mut bytes = model.write();
            for (at, octet) in changes {
                let at = at.index(bytes.len());
                bytes[at] = octet;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            bytes.extend(more);
            bytes
        })
}

/// The name in lower case, for comparison without regard to case.
pub(crate) fn folded(name: Name<'_>) -> Vec<u8> {
    name.to_folded().as_bytes().to_vec()
}
