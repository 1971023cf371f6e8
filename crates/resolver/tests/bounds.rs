//! Days of mixed load, in simulated time: what a resolver takes of memory stays within its tables'
//! bounds, and what it holds besides does not grow.

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "all/signed.rs"]
mod signed;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "all/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use cache::proofs::Proofs;
use cache::rrsets::{RrsetLimits, Rrsets};
use cache::servers::{ServerLimits, Servers};
use counting::Counting;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use wire::{Class, HashKey, Message, Question, Rcode, Rtype, Section};
use zone::Zones;

use signed::{Internet, Signed, Signing};
use world::{Behaviour, name, plain_settings, show, signed_reply};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Octets of RRsets, and of ranges of names: far fewer than the load would fill.
const RRSETS_MAX: usize = 96 << 10;
const PROOFS_MAX: usize = 32 << 10;
/// Questions of one part of the load; six seconds pass between two of them.
const QUESTIONS: usize = 10_000;
/// Parts that fill what is bounded: the notes of failures are full last.
const PARTS_BEFORE: usize = 4;
/// Octets by which memory may differ between two later parts: names are not all of one length.
const GROWTH_MAX: isize = 128 << 10;

/// Zones of all kinds, each with servers of its own.
const ZONES: [(&str, &[&str], Signing); 7] = [
    ("org", &["192.0.2.2", "192.0.2.3"], Signing::Nsec),
    ("signed.org", &["192.0.2.4", "192.0.2.5"], Signing::Nsec),
    ("hashed.org", &["192.0.2.6", "192.0.2.7"], Signing::Nsec3 { iterations: 0, opts_out: false }),
    ("open.org", &["192.0.2.8", "192.0.2.9"], Signing::Nsec3 { iterations: 0, opts_out: true }),
    ("plain.org", &["192.0.2.10", "192.0.2.11"], Signing::No),
    ("late.org", &["192.0.2.12"], Signing::Expired),
    ("sub.plain.org", &["192.0.2.13"], Signing::No),
];

fn internet() -> Signed {
    let mut internet =
        Internet::default().with(plain_settings()).lasting().zone(".", &["192.0.2.1"], Signing::Nsec, "");
    for (at, (apex, addresses, signing)) in ZONES.into_iter().enumerate() {
        let (next, ..) = ZONES[(at + 1) % ZONES.len()];
        let text = format!(
            "www.{apex}. 60 A 198.51.100.1\nalias.{apex}. 30 CNAME www.{next}.\n*.wild.{apex}. 300 A 198.51.100.2\n\
             *.brief.{apex}. 0 A 198.51.100.3\nmany.{apex}. 3600 TXT \"{}\"",
            "x".repeat(200)
        );
        internet = internet.zone(apex, addresses, signing, &text);
    }
    internet.build()
}

/// The load, and what is right.
struct Load {
    signed: Signed,
    all: Zones,
    rng: StdRng,
    /// Questions that had an answer, by their codes.
    told: BTreeMap<u16, usize>,
}

impl Load {
    fn new() -> Self {
        let mut signed = internet();
        let hash_key = HashKey::new([5, 6]);
        let tables = resolver::Tables {
            rrsets: Arc::new(Rrsets::new(RrsetLimits::with_octets(RRSETS_MAX), hash_key)),
            servers: Arc::new(Servers::new(ServerLimits { lines: 256, cookies: 8 }, hash_key)),
            proofs: Arc::new(Proofs::new(PROOFS_MAX, hash_key)),
            ..signed.world.tables.clone()
        };
        signed.world.tables = tables;
        signed.world.change_worker();
        let all = signed.all(|line| Some(line.to_owned()));
        Self { signed, all, rng: StdRng::seed_from_u64(7), told: BTreeMap::new() }
    }

    /// Draws a number below `most`, small ones more often (Zipf with exponent 1, roughly).
    fn popular(&mut self, most: u32) -> u32 {
        let drawn: f64 = self.rng.random_range(0.0..1.0);
        (f64::from(most).powf(drawn) as u32).saturating_sub(1)
    }

    fn question(&mut self) -> (String, Rtype) {
        let (apex, ..) = ZONES[self.popular(ZONES.len() as u32) as usize % ZONES.len()];
        let number = self.popular(100_000);
        match self.rng.random_range(0..12) {
            0 => (format!("www.{apex}"), Rtype::A),
            1 => (format!("alias.{apex}"), Rtype::A),
            2 => (format!("many.{apex}"), Rtype::TXT),
            3 => (format!("w{number}.brief.{apex}"), Rtype::A),
            4 => (format!("none{number}.{apex}"), Rtype::A),
            5 => (format!("w{number}.wild.{apex}"), Rtype::AAAA),
            6 => (apex.to_owned(), Rtype::SOA),
            7 => (format!("none{number}"), Rtype::A),
            _ => (format!("w{number}.wild.{apex}"), Rtype::A),
        }
    }

    /// Returns what somebody says who has all zones.
    fn truth(&self, text: &str, rtype: Rtype) -> (Rcode, Vec<String>) {
        let qname = name(text);
        let question = Question { qname: qname.as_name(), qtype: rtype, qclass: Class::IN };
        let reply = signed_reply(&self.all, &question, false);
        let message = Message::parse(&reply).expect("well formed");
        let answer = message.records().filter(|record| record.section == Section::Answer);
        (message.rcode(), answer.map(|record| show(&message, &record)).collect())
    }

    /// Lets one server fail in some way, or all of a zone, or has it come back.
    fn disturb(&mut self) {
        let (_, addresses, _) = ZONES[self.rng.random_range(1..ZONES.len())];
        let behaviour = match self.rng.random_range(0..6) {
            0 => Behaviour::Dead,
            1 => Behaviour::Rcode(Rcode::SERVFAIL),
            2 => Behaviour::Rcode(Rcode::REFUSED),
            _ => Behaviour::Honest,
        };
        let count = self.rng.random_range(1..=addresses.len());
        for address in &addresses[..count] {
            self.signed.world.server(address).behaviour = behaviour.clone();
        }
    }

    /// Asks for a part of the load, and checks the answers.
    fn run(&mut self) {
        for _ in 0..QUESTIONS {
            if self.rng.random_range(0..20) == 0 {
                self.disturb();
            }
            let (qname, rtype) = self.question();
            let seen = self.signed.world.resolve_now(&qname, rtype);
            *self.told.entry(seen.rcode.0).or_default() += 1;
            if seen.rcode != Rcode::SERVFAIL {
                let without_ttl = |lines: &[String]| {
                    let cut = |line: &String| {
                        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
                        words.remove(1);
                        words
                    };
                    let mut lines: Vec<_> = lines.iter().map(cut).collect();
                    lines.sort();
                    lines
                };
                let (rcode, answer) = self.truth(&qname, rtype);
                assert_eq!((seen.rcode, without_ttl(&seen.answer)), (rcode, without_ttl(&answer)), "{qname}");
            }
            let ms = self.rng.random_range(0..12_000);
            self.signed.world.pass_ms(ms);
            // The test's own notes are none of the resolver's.
            self.signed.world.sent = Vec::new();
            let tables = &self.signed.world.tables;
            assert!(tables.rrsets.octets_used() <= RRSETS_MAX, "{}", tables.rrsets.octets_used());
            assert!(tables.proofs.stats().octets <= PROOFS_MAX, "{}", tables.proofs.stats().octets);
        }
        self.signed.world.settle();
        assert!(self.signed.world.done.is_empty());
    }
}

#[test]
fn days_of_mixed_load_do_not_make_a_resolver_grow() {
    let mut load = Load::new();
    let began = load.signed.world.now;
    let mut allocated = Vec::new();
    for _ in 0..PARTS_BEFORE + 2 {
        load.run();
        allocated.push(counting::octets());
    }
    let hours = load.signed.world.now.since_us(began) / 3_600_000_000;
    assert!(hours >= 24, "{hours} hours");
    assert!(load.signed.world.tables.rrsets.octets_used() > RRSETS_MAX / 2, "the load fills the tables");
    for rcode in [Rcode::NOERROR, Rcode::NXDOMAIN, Rcode::SERVFAIL] {
        assert!(load.told.get(&rcode.0).is_some_and(|&count| count > 100), "{:?}", load.told);
    }
    let (before, after) = allocated.split_at(PARTS_BEFORE);
    let full = before.last().expect("some parts");
    assert!(after.iter().all(|later| later - full <= GROWTH_MAX), "{allocated:?}");
}
