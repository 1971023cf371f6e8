//! What holds for every input.

use crate::support;
#[path = "../../../../tests/harness/src/messages.rs"]
#[expect(unreachable_pub, reason = "the module of a library, which this crate is too low to use")]
mod targets;

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use wire::{Folded, HashKey, Message, NameBuf, Rtype, rdata};

use support::{Entry, Part, model, mutated, name};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_again(model in model()) {
        let bytes = model.write();
        let message = Message::parse(&bytes).expect("a message");
        prop_assert_eq!(message.header.id, model.id);
        prop_assert_eq!(message.header.flags, model.flags);
        let question = message.question.expect("a question");
        prop_assert_eq!(question.qname.as_bytes(), model.qname.as_name().as_bytes());
        prop_assert_eq!(question.qtype, model.qtype);
        for (record, other) in message.records().flat_map(|record| model.entries.iter().map(move |other| (record, other))) {
            let is_it = record.owner.expand().expect("a name") == other.owner;
            prop_assert_eq!(record.owner.is(other.owner.as_name()), Ok(is_it));
        }
        let mut records = message.records();
        for entry in &model.entries {
            let record = records.next().expect("as many records");
            prop_assert_eq!(record.section, entry.section);
            prop_assert!(record.owner.expand().expect("a name") == entry.owner);
            prop_assert_eq!(record.rtype, entry.rtype);
            prop_assert_eq!(record.ttl().seconds(), entry.ttl);
            let mut plain = Vec::new();
            rdata::write_plain(record.rtype, &bytes, record.rdata_at..record.end(), &mut plain).expect("sound");
            // Compression may take a name's letters from an earlier one.
            let same = if entry.rtype == Rtype::TXT { plain == plain_data(entry) } else { plain.eq_ignore_ascii_case(&plain_data(entry)) };
            prop_assert!(same);
        }
        prop_assert_eq!(records.count(), usize::from(model.options.is_some()));
        let options = message.edns.map(|edns| edns.options().map(|it| (it.code.0, it.data.to_vec())).collect::<Vec<_>>());
        prop_assert_eq!(options, model.options);
    }

    #[test]
    fn names_are_equal_and_hash_alike_in_any_case(name in name(), flips in vec(any::<bool>(), 255), seed: [u64; 2]) {
        let mut other = name.as_name().as_bytes().to_vec();
        for (octet, flip) in other.iter_mut().zip(flips) {
            // Length octets are below the letters.
            if flip && octet.is_ascii_alphabetic() {
                *octet ^= 0x20;
            }
        }
        let (other, _) = wire::Name::parse(&other).expect("a name");
        let key = HashKey::new(seed);
        let mut folded = Folded::root();
        prop_assert!(other == name.as_name());
        prop_assert_eq!(key.hash(other, 1), key.hash(name.as_name(), 1));
        prop_assert_eq!(key.fold(other, &mut folded), key.hash_name(name.as_name()));
        prop_assert_eq!(folded.as_bytes().to_vec(), support::folded(name.as_name()));
    }

    #[test]
    fn different_names_are_not_equal(a in name(), b in name()) {
        let is_same = a.as_name().as_bytes().eq_ignore_ascii_case(b.as_name().as_bytes());
        prop_assert_eq!(a == b, is_same);
        prop_assert_eq!(HashKey::new([7, 9]).hash(a.as_name(), 0) == HashKey::new([7, 9]).hash(b.as_name(), 0), is_same);
    }

    #[test]
    fn names_survive_text(name in name()) {
        let text = name.to_string();
        let again = NameBuf::from_text(&text).expect("a name");
        prop_assert_eq!(again.as_name().as_bytes(), name.as_name().as_bytes());
        targets::name(text.as_bytes());
        targets::name(name.as_name().as_bytes());
    }

    #[test]
    fn no_octets_cause_a_panic(bytes in vec(any::<u8>(), 0..80)) {
        targets::query(&bytes);
        targets::reply(&bytes);
        targets::name(&bytes);
        targets::rdata_text(&bytes);
    }

    #[test]
    fn no_damaged_message_causes_a_panic(bytes in mutated()) {
        targets::query(&bytes);
        targets::reply(&bytes);
    }

    #[test]
    fn damaged_queries_cause_no_panic(mut bytes in mutated()) {
        if let Some(flags) = bytes.get_mut(2) {
            *flags &= 0x07;
        }
        targets::query(&bytes);
    }
}

/// The data with its names in full.
fn plain_data(entry: &Entry) -> Vec<u8> {
    let octets = entry.data.iter().map(|part| match part {
        Part::Octets(octets) => octets.as_slice(),
        Part::Name(name) => name.as_name().as_bytes(),
    });
    octets.collect::<Vec<_>>().concat()
}

/// Octets of every vector under `tests/vectors`, with their types.
fn vectors() -> Vec<(Rtype, String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut vectors = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is in the repository") {
        let content = std::fs::read_to_string(entry.expect("an entry").path()).expect("vectors are text");
        for line in content.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<_> = line.split('¦').map(str::trim).collect();
            let rtype = columns[0].parse().expect("a type");
            let mut octets = Vec::new();
            rdata::parse_text(rtype, columns[1], None, &mut octets).expect("vectors are sound");
            vectors.push((rtype, columns[1].to_owned(), octets));
        }
    }
    vectors
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn data_of_every_type_survives_text(
        which: prop::sample::Index,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        thread_local!(static VECTORS: Vec<(Rtype, String, Vec<u8>)> = vectors());
        let (rtype, text, mut octets) = VECTORS.with(|vectors| which.get(vectors).clone());
        let mut line = text.into_bytes();
        for (at, octet) in changes {
            if !octets.is_empty() {
                let at = at.index(octets.len());
                octets[at] = octet;
            }
            if !line.is_empty() {
                let at = at.index(line.len());
                line[at] = octet & 0x7f;
            }
        }
        if let Some(cut) = cut {
            octets.truncate(cut.index(octets.len() + 1));
        }
        if rdata::check(rtype, &octets, 0..octets.len()).is_ok() {
            // A pointer within the data itself is a compressed name that text writes in full.
            let mut plain = Vec::new();
            rdata::write_plain(rtype, &octets, 0..octets.len(), &mut plain).expect("checked");
            if plain == octets {
                let shown = rdata::display(rtype, &octets, 0..octets.len()).to_string();
                let mut again = Vec::new();
                prop_assert_eq!(rdata::parse_text(rtype, &shown, None, &mut again), Ok(()), "{} {}", rtype, shown);
                prop_assert_eq!(again, octets, "{} {}", rtype, shown);
            }
        }
        targets::rdata_text(&[&rtype.0.to_be_bytes(), line.as_slice()].concat());
    }
}
