//! What hostile servers put into replies: how long they take to read, what they hold, and when the
//! right one comes.

use std::sync::Arc;

use resolver::Waiter;
use wire::{Class, Flags, NameBuf, Question, Rcode, Rtype, Section, Writer};

use crate::attacks::with_evil;
use crate::world::{Behaviour, Crafted, World, name, record};

/// Where the name of the question stands.
const QNAME_AT: u16 = 12;

/// Begins a reply with its question; records are added by [`Crude::add`].
struct Crude {
    octets: Vec<u8>,
    counts: [u16; 3],
}

impl Crude {
    fn to(question: &Question<'_>) -> Self {
        let mut octets = vec![0; 300];
        let mut writer = Writer::new(&mut octets, usize::MAX, 0, Flags::QR.with(Flags::AA));
        writer.question(question).expect("room");
        let len = writer.finish();
        octets.truncate(len);
        Self { octets, counts: [0; 3] }
    }

    /// Adds a record whose owner and data are these octets, pointers and all; sections come in
    /// order.
    fn add(&mut self, section: Section, owner: &[u8], rtype: Rtype, data: &[u8]) -> &mut Self {
        self.octets.extend(owner);
        for field in [rtype.0, Class::IN.0, 0, 3600, data.len() as u16] {
            self.octets.extend(field.to_be_bytes());
        }
        self.octets.extend(data);
        self.counts[section as usize - Section::Answer as usize] += 1;
        self
    }

    fn has_room(&self, octets: usize) -> bool {
        self.octets.len() + octets <= usize::from(u16::MAX)
    }

    fn finish(mut self) -> Vec<u8> {
        for (at, count) in self.counts.iter().enumerate() {
            self.octets[6 + 2 * at..8 + 2 * at].copy_from_slice(&count.to_be_bytes());
        }
        self.octets
    }
}

fn pointer(to: u16) -> [u8; 2] {
    (0xc000 | to).to_be_bytes()
}

/// A label of one octet before the name at a place.
fn below(label: u8, to: u16) -> Vec<u8> {
    [&[1, label][..], &pointer(to)].concat()
}

/// A name of as many labels as fit, below a zone.
fn deep(zone: &str) -> NameBuf {
    let mut text = zone.to_string();
    while NameBuf::from_text(&format!("a.{text}")).is_ok() {
        text = format!("a.{text}");
    }
    name(&text)
}

fn text_of(name: &NameBuf) -> String {
    name.as_name().to_string()
}

fn evil(craft: impl Fn(&Question<'_>) -> Option<Vec<u8>> + 'static) -> World {
    let mut world = with_evil("www.evil.org A 198.51.100.6");
    let craft: Crafted = Arc::new(craft);
    world.server("192.0.2.66").behaviour = Behaviour::Crafted(craft);
    world
}

pub(crate) fn long_names() -> (World, String) {
    let world = evil(|question| {
        let mut reply = Crude::to(question);
        // The first label of the question is left out, another one takes its place.
        let rest = QNAME_AT + 2;
        let mut owner = pointer(QNAME_AT).to_vec();
        for label in b'b'..=b'q' {
            let target = below(label, rest);
            reply.add(Section::Answer, &owner, Rtype::CNAME, &target);
            owner = target;
        }
        while reply.has_room(20) {
            reply.add(Section::Answer, &below(b'z', rest), Rtype::DNAME, &[0]);
        }
        Some(reply.finish())
    });
    (world, text_of(&deep("evil.org")))
}

/// CVE-2024-8508, from the other side: each label of each alias of a chain may have a DNAME, and
/// each of thousands of records has a name that is read label by label.
#[test]
fn a_reply_that_takes_much_work_is_not_read_to_its_end() {
    let (mut world, name) = long_names();
    let seen = world.resolve(&name, Rtype::A);
    assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("faulty")), "{seen:?}");
    assert!(seen.sends <= 4, "{}", seen.sends);
}

pub(crate) fn large_replies() -> World {
    evil(|question| {
        let mut reply = Crude::to(question);
        let number = question.qname.labels().next().and_then(|label| label.get(1)).copied();
        reply.add(
            Section::Answer,
            &pointer(QNAME_AT),
            Rtype::CNAME,
            &[&[2, b'n', number.map_or(b'a', |number| number + 1)][..], b"\x04evil\x03org\0"].concat(),
        );
        while reply.has_room(300) {
            reply.add(Section::Additional, &[0], Rtype::TXT, &[0; 255]);
        }
        Some(reply.finish())
    })
}

/// The same with honest names, but each reply is as large as can be: a chain of aliases, one reply
/// for each.
#[test]
fn large_replies_end_a_question_before_its_aliases_do() {
    let mut world = large_replies();
    let seen = world.resolve("na.evil.org", Rtype::A);
    assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("limit")), "{seen:?}");
    // Two that lead there, four that are read, and the one that is too many.
    assert_eq!(seen.sends, 7);
    assert_eq!(world.resolve("www.victim.org", Rtype::A).answer.len(), 1);
}

/// Two zones whose names are aliases for each other's, and at their end a large reply of a third.
fn with_long_way() -> World {
    let mut world = evil(|question| {
        let label = question.qname.labels().next().unwrap_or_default();
        let (target, octets): (&[u8], usize) = match label {
            b"a1" => (b"\x02a2\x04evil\x03org\0", 65_000),
            b"a2" => (b"\x02a3\x04evil\x03org\0", 65_000),
            b"a3" => (b"\x02a4\x04evil\x03org\0", 65_000),
            _ => (b"\x01x\x04slow\x03org\0", 60_000),
        };
        let mut reply = Crude::to(question);
        reply.add(Section::Answer, &pointer(QNAME_AT), Rtype::CNAME, target);
        while reply.octets.len() < octets {
            reply.add(Section::Additional, &[0], Rtype::TXT, &[0; 255]);
        }
        Some(reply.finish())
    });
    world.zone(
        "org",
        &[],
        "evil.org NS ns.evil.org
         ns.evil.org A 192.0.2.66
         victim.org NS ns.victim.org
         ns.victim.org A 192.0.2.9
         other.org NS ns.other.org
         ns.other.org A 192.0.2.10
         slow.org NS ns.slow.org
         ns.slow.org A 192.0.2.11",
    );
    let aliases = |from: usize, to: &str, other: &str| -> String {
        let numbers = (from..10).step_by(2);
        numbers.map(|number| format!("c{number}.{other} CNAME c{}.{to}\n", number + 1)).collect()
    };
    let to_victim = aliases(1, "victim.org", "other.org").replace("c10.victim.org", "x.slow.org");
    let addresses: Vec<String> =
        (0..1000).map(|number| format!("x.slow.org A 198.51.{}.{}", number / 250, number % 250)).collect();
    world.zone("victim.org", &["192.0.2.9"], &aliases(0, "other.org", "victim.org"));
    world.zone("other.org", &["192.0.2.10"], &to_victim);
    world.zone("slow.org", &["192.0.2.11"], &addresses.join("\n"));
    world.server("192.0.2.11").latency_us = 140_000;
    world
}

/// A limit is that of one client's question. Who asks the same as an attacker, and has sent more
/// packets until then, is not told that there is nothing left of what the attacker has used up.
#[test]
fn who_waits_beside_an_attacker_pays_with_what_is_his() {
    let mut world = with_long_way();
    let seen = world.resolve("a1.evil.org", Rtype::A);
    assert_eq!((seen.failure.as_deref(), seen.sends), (Some("limit"), 8));
    let mut world = with_long_way();
    assert_eq!(world.resolve("c0.victim.org", Rtype::A).sends, 15);
    let mut world = with_long_way();
    world.want("c0.victim.org", Rtype::A, 1);
    world.want("a1.evil.org", Rtype::A, 2);
    world.settle();
    let honest = &world.done[&Waiter(1)];
    assert_eq!(honest.rcode, Rcode::NOERROR, "{:?}", honest.failure);
}

pub(crate) fn many_servers(has_glue: bool) -> World {
    evil(move |question| {
        let mut reply = Crude::to(question);
        reply.octets[2] &= !0x04;
        let zone = question.qname.label_count() - 3;
        let skipped: usize = question.qname.labels().take(zone).map(|label| 1 + label.len()).sum();
        let zone = pointer(QNAME_AT + skipped as u16);
        let label = |number: u16| [&[5][..], format!("n{number:04}").as_bytes()].concat();
        for number in 0..1500 {
            let server = [label(number), b"\x06victim\x03org\0".to_vec()].concat();
            reply.add(Section::Authority, &zone, Rtype::NS, &server);
        }
        for number in 0..if has_glue { 100 } else { 0 } {
            let server = [label(number), b"\x06victim\x03org\0".to_vec()].concat();
            reply.add(Section::Additional, &server, Rtype::A, &[192, 0, 2, 9]);
        }
        Some(reply.finish())
    })
}

/// NRDelegation (CVE-2022-3204): so many name servers that looking through them is the work.
#[test]
fn a_referral_to_fifteen_hundred_servers_is_one_to_thirteen() {
    for has_glue in [false, true] {
        let mut world = many_servers(has_glue);
        let seen = world.resolve("www.sub.evil.org", Rtype::A);
        assert_eq!(seen.rcode, Rcode::SERVFAIL);
        let at_victim = world.sent.iter().filter(|sent| sent.to.to_string() == "192.0.2.9").count();
        assert!(at_victim <= 16 && seen.sends <= 32, "{at_victim} {}", seen.sends);
    }
}

/// TuDoor and other nonsense: what is no reply ends no question for others, and not in haste for
/// who asked it.
#[test]
fn replies_that_say_nothing_cost_little() {
    let with = |flags: Flags, question: &Question<'_>| {
        let mut reply = Crude::to(question).finish();
        reply[2..4].copy_from_slice(&Flags::QR.with(flags).0.to_be_bytes());
        reply
    };
    type Case = fn(&Question<'_>, &dyn Fn(Flags, &Question<'_>) -> Vec<u8>) -> Vec<u8>;
    let cases: [(&str, Case); 7] = [
        ("no question", |_, _| vec![0, 0, 0x84, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("another question", |question, with| with(Flags::AA, &Question { qtype: Rtype::TXT, ..*question })),
        ("cut, for ever", |question, with| with(Flags::AA.with(Flags::TC), question)),
        ("no error and nothing else", |question, with| with(Flags(0), question)),
        ("an error", |question, with| with(Flags(0).with_rcode(Rcode::FORMERR), question)),
        ("no code that there is", |question, with| with(Flags::AA.with_rcode(Rcode(14)), question)),
        ("an address of three octets", |question, _| {
            let mut reply = Crude::to(question);
            reply.add(Section::Answer, &pointer(QNAME_AT), Rtype::A, &[192, 0, 2]);
            reply.finish()
        }),
    ];
    for (what, craft) in cases {
        let mut world = evil(move |question| Some(craft(question, &with)));
        world.want("www.victim.org", Rtype::A, 7);
        let seen = world.resolve("www.evil.org", Rtype::A);
        assert_eq!(seen.rcode, Rcode::SERVFAIL, "{what}: {seen:?}");
        // Three of them are the other client's.
        assert!(seen.sends <= 6, "{what}: {}", seen.sends);
        assert_eq!(world.done[&Waiter(7)].rcode, Rcode::NOERROR, "{what}");
    }
}

/// A TTL of zero in all that a zone says, referrals included.
#[test]
fn what_nobody_may_keep_costs_the_same_each_time() {
    let mut world = with_evil("www.evil.org 0 A 198.51.100.6");
    world.zone(
        "org",
        &[],
        "evil.org 0 NS ns.evil.org
         ns.evil.org 0 A 192.0.2.66
         victim.org NS ns.victim.org
         ns.victim.org A 192.0.2.9",
    );
    world.resolve("www.evil.org", Rtype::A);
    for _ in 0..20 {
        let seen = world.resolve("www.evil.org", Rtype::A);
        assert_eq!((seen.answer.len(), seen.sends), (1, 2));
    }
}

/// Each DNAME leads to a name for which there is another one, over two zones.
#[test]
fn dnames_that_lead_into_each_other_end_with_a_limit() {
    for text in ["a.evil.org DNAME b.evil.org\n b.evil.org DNAME a.evil.org", "a.evil.org DNAME a.a.evil.org"]
    {
        let mut world = with_evil(text);
        let seen = world.resolve("www.a.evil.org", Rtype::A);
        assert!(seen.rcode == Rcode::SERVFAIL || seen.rcode == Rcode::YXDOMAIN, "{seen:?}");
        assert!(seen.sends <= 40, "{}", seen.sends);
    }
}

/// Records of a poisoned reply to one question, which another client's question is about.
#[test]
fn a_reply_fills_no_name_but_its_own() {
    let lines = ["victim.org A 203.0.113.66", "www.victim.org CNAME www.evil.org", "org DNAME evil.org"];
    for line in lines {
        let mut world = with_evil("www.evil.org A 198.51.100.6");
        let lie = (Section::Answer, record(line));
        let own = (Section::Answer, record("www.evil.org CNAME www.victim.org"));
        world.server("192.0.2.66").behaviour = Behaviour::Liar(vec![own, lie]);
        for _ in 0..2 {
            let seen = world.resolve("www.evil.org", Rtype::A);
            assert_eq!(seen.answer.last().map(String::as_str), Some("www.victim.org. 3600 A 198.51.100.1"));
            let seen = world.resolve("www.victim.org", Rtype::A);
            assert_eq!(seen.answer, ["www.victim.org. 3600 A 198.51.100.1"], "{line}");
        }
    }
}

/// Many clients with one question: a forger has one packet to hit, not a thousand (birthday
/// attacks; RebirthDay, CVE-2025-5994).
#[test]
fn a_thousand_clients_with_one_question_are_one_query() {
    let mut world = with_evil("");
    for waiter in 0..1000 {
        world.want("www.victim.org", Rtype::A, waiter);
    }
    assert_eq!(world.sent.len(), 1);
    world.settle();
    assert_eq!(world.sent.len(), 3);
    assert!((0..1000).all(|waiter| world.done[&Waiter(waiter)].rcode == Rcode::NOERROR));
}

/// Ever other names of one zone (water torture): each costs what one name costs, and a name that
/// was denied a moment ago nothing.
#[test]
fn names_that_are_not_there_cost_one_query_each() {
    let mut world = with_evil("");
    world.resolve("www.victim.org", Rtype::A);
    for number in 0..200 {
        assert_eq!(world.resolve(&format!("x{number}.victim.org"), Rtype::A).sends, 1);
    }
    assert_eq!(world.resolve("x7.victim.org", Rtype::A).sends, 0);
    // While the zone's one server is silent, it is tried again, but not often.
    world.server("192.0.2.9").behaviour = Behaviour::Dead;
    for number in 0..20 {
        assert!(world.resolve(&format!("y{number}.victim.org"), Rtype::A).sends <= 4);
    }
}
