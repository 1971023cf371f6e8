//! Versions of a zone that share what stays the same are what they would be if they were compiled
//! anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::{Class, Flags, HashKey, Name, NameBuf, Question, Rtype, Ttl, Writer};
use zone::difference::{Difference, with_serial};
use zone::master::NoIncludes;
use zone::rows::{Row, Rows};
use zone::{Asked, Outgoing, Zone, Zones, load};

const KEY: HashKey = HashKey::new([3, 4]);
/// Names that nobody touches: so many that versions are shared.
const OTHERS: usize = 1500;

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    /// Returns a name of few labels, so that names lie below one another.
    fn name(&mut self) -> String {
        let depth = self.below(4) + 1;
        let labels: Vec<&str> = (0..depth)
            .map(|at| self.one(if at == 0 { &["a", "b", "C", "*", "d"] } else { &["a", "b", "c"] }))
            .collect();
        format!("{}.example.org", labels.join("."))
    }

    fn record(&mut self) -> (String, Rtype, Vec<u8>) {
        let target = name(&self.name());
        let (rtype, data) = match self.below(12) {
            0 => (Rtype::NS, target.as_name().as_bytes().to_vec()),
            1 => (Rtype::CNAME, target.as_name().as_bytes().to_vec()),
            2 if self.below(4) == 0 => (Rtype::DNAME, target.as_name().as_bytes().to_vec()),
            3 => (Rtype::MX, [b"\0\x0a", target.as_name().as_bytes()].concat()),
            4 => (Rtype::TXT, vec![1, b'x' + self.below(3) as u8]),
            _ => (Rtype::A, vec![192, 0, 2, self.below(4) as u8]),
        };
        (self.name(), rtype, data)
    }
}

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

fn base(more: &str) -> Arc<Zone> {
    let text = format!(
        "$TTL 60\n@ SOA ns admin 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n{more}$GENERATE 1-{OTHERS} h$ A 10.0.0.1\n"
    );
    let loaded = load(name("example.org").as_name(), "text", text.as_bytes(), &mut NoIncludes, KEY);
    Arc::new(loaded.zone.unwrap_or_else(|| panic!("{:?} {:?}", loaded.mistakes, loaded.findings)))
}

type Record = (NameBuf, Rtype, u32, Vec<u8>);

fn records(zone: &Zone) -> Vec<Record> {
    let mut all = Vec::new();
    zone.for_each_row(|row| all.push((row.owner.to_buf(), row.rtype, row.ttl.seconds(), row.rdata.to_vec())));
    all.sort_by(|a, b| {
        (a.0.as_name().to_folded().as_bytes(), a.1.0, &a.3).cmp(&(
            b.0.as_name().to_folded().as_bytes(),
            b.1.0,
            &b.3,
        ))
    });
    all
}

fn answer(zones: &Zones, qname: Name<'_>, qtype: Rtype) -> Vec<u8> {
    let mut message = vec![0; 4096];
    let mut writer = Writer::new(&mut message, 4096, 7, Flags::QR);
    writer.question(&Question { qname, qtype, qclass: Class::IN }).expect("room");
    let answered = zones.answer(&Asked::new(qname, qtype, false), &mut writer).expect("ours");
    let len = writer.finish();
    message.truncate(len);
    message.extend_from_slice(format!("{answered:?}").as_bytes());
    message
}

fn transferred(zone: &Arc<Zone>) -> BTreeSet<Vec<u8>> {
    // What comes out, message by message; names are compressed, so the whole is compared as
    // records.
    let mut outgoing = Outgoing::whole(Arc::clone(zone));
    let mut all = BTreeSet::new();
    while !outgoing.is_done() {
        let mut message = vec![0; 16_384];
        let mut writer = Writer::new(&mut message, 16_384, 7, Flags::QR);
        outgoing.fill(&mut writer).expect("room");
        let len = writer.finish();
        let parsed = wire::Message::parse(&message[..len]).expect("a message");
        for record in parsed.records() {
            let mut data = Vec::new();
            wire::rdata::write_plain(record.rtype, &message[..len], record.rdata_at..record.end(), &mut data)
                .expect("data");
            let owner = record.owner.expand().expect("a name");
            all.insert(
                [owner.as_name().to_folded().as_bytes(), &record.rtype.0.to_be_bytes(), &data[..]].concat(),
            );
        }
    }
    all
}

/// Returns a difference that takes some records away and adds some.
fn change(random: &mut Random, zone: &Zone, serial: u32) -> Difference {
    let (ttl, soa) = zone.soa();
    let there = records(zone);
    let (mut removed, mut added) = (Rows::default(), Rows::default());
    let mut touched = BTreeSet::new();
    for _ in 0..=random.below(4) {
        let near: Vec<&Record> =
            there.iter().filter(|record| !record.0.to_string().starts_with('h')).collect();
        if random.below(2) == 0 {
            if let Some((owner, rtype, ttl, data)) = near.get(random.below(near.len().max(1))) {
                let is_servers = *rtype == Rtype::NS && *owner == zone.apex().to_buf();
                if !is_servers && touched.insert((owner.to_string().to_lowercase(), rtype.0, data.clone())) {
                    removed.push(&Row {
                        owner: owner.as_name(),
                        rtype: *rtype,
                        ttl: Ttl::new(*ttl),
                        rdata: data,
                    });
                }
            }
        } else {
            let (owner, rtype, data) = random.record();
            let owner = name(&owner);
            let is_there = there
                .iter()
                .any(|(other, kind, _, known)| *other == owner && *kind == rtype && *known == data);
            if !is_there && touched.insert((owner.to_string().to_lowercase(), rtype.0, data.clone())) {
                added.push(&Row { owner: owner.as_name(), rtype, ttl: Ttl::new(60), rdata: &data });
            }
        }
    }
    let new_soa = (ttl, with_serial(soa, serial));
    Difference { apex: zone.apex().to_buf(), old_soa: (ttl, soa.into()), new_soa, removed, added }
}

#[track_caller]
fn compare(shared: &Arc<Zone>, anew: &Arc<Zone>, random: &mut Random) {
    assert_eq!(records(shared), records(anew));
    assert_eq!(shared.facts(), anew.facts());
    assert_eq!(shared.soa(), anew.soa());
    let zones = |zone: &Arc<Zone>| Zones::new(KEY, vec![Arc::clone(zone)]);
    let (one, other) = (zones(shared), zones(anew));
    let mut names: BTreeSet<String> = records(anew).iter().map(|record| record.0.to_string()).collect();
    for _ in 0..300 {
        let more = random.name();
        names.insert(more);
    }
    for text in names {
        let qname = name(&text);
        for qtype in [Rtype::A, Rtype::NS, Rtype::DS, Rtype::TXT] {
            assert_eq!(
                answer(&one, qname.as_name(), qtype),
                answer(&other, qname.as_name(), qtype),
                "{text} {qtype}"
            );
        }
    }
    let canonical = |zone: &Zone| -> Vec<(NameBuf, Rtype)> {
        zone.records().map(|record| (record.owner(), record.rtype)).collect()
    };
    assert_eq!(canonical(shared), canonical(anew));
}

#[test]
fn a_version_that_shares_is_the_one_that_would_be_compiled() {
    let (mut shared_ones, mut refused) = (0, 0);
    for seed in 0..6 {
        let mut random = Random(seed);
        let mut shared = base("a.b A 192.0.2.1\n*.c TXT x\nsub.a NS ns.sub.a\nns.sub.a A 192.0.2.1\n");
        for turn in 0..40_u32 {
            let difference = change(&mut random, &shared, turn + 2);
            let anew = difference.apply(&shared, &KEY).map(Arc::new);
            let next = difference.apply_sharing(&shared, &KEY);
            let (next, anew) = match (next, anew) {
                (Ok(next), Ok(anew)) => (next, anew),
                (Err(_), Err(_)) => {
                    refused += 1;
                    continue;
                }
                (next, anew) => panic!("{:?} {:?} of {difference:?}", next.err(), anew.err()),
            };
            shared_ones += usize::from(next.own_names().is_some());
            if turn % 8 == 7 {
                compare(&next, &anew, &mut random);
                assert_eq!(transferred(&next), transferred(&anew));
            } else {
                assert_eq!(records(&next), records(&anew), "{difference:?}");
                assert_eq!(next.facts(), anew.facts(), "{difference:?}");
            }
            shared = next;
        }
    }
    assert!(
        shared_ones > 100,
        "too little was shared for this to mean something: {shared_ones}, {refused} refused"
    );
}

#[test]
fn a_change_of_one_name_compiles_few() {
    let mut zone = base("");
    for number in 0..200_u32 {
        let (ttl, soa) = zone.soa();
        let mut added = Rows::default();
        let owner = name(&format!("n{number}.new.example.org"));
        added.push(&Row { owner: owner.as_name(), rtype: Rtype::A, ttl, rdata: &[192, 0, 2, 1] });
        let new_soa = (ttl, with_serial(soa, number + 2));
        let old_soa = (ttl, soa.into());
        let difference =
            Difference { apex: zone.apex().to_buf(), old_soa, new_soa, removed: Rows::default(), added };
        zone = difference.apply_sharing(&zone, &KEY).expect("it fits");
        // The apex, what lies between, and those that have been added since all was compiled.
        assert!(zone.own_names().unwrap_or(0) <= 100, "{:?}", zone.own_names());
        if number < 50 {
            assert_eq!(zone.own_names(), Some(number as usize + 3));
        }
    }
    assert_eq!(zone.facts().names, OTHERS + 2 + 201);
}
