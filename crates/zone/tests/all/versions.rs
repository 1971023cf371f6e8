//! Versions of a zone: what differs, how it travels, how it changes.

use std::sync::Arc;

use wire::serial::SerialPolicy;
use wire::{
    Class, Flags, HashKey, Header, Name, NameBuf, Opcode, Question, Rcode, Rtype, Section, Ttl, Writer,
};
use zone::catalog::{BadCatalog, members, produce};
use zone::difference::{Difference, Misfit};
use zone::incoming::{Fault, Incoming, Received};
use zone::master::NoIncludes;
use zone::update::update;
use zone::{Outgoing, Zone, load};

const KEY: HashKey = HashKey::new([3, 4]);

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

fn zone_of(apex: &str, text: &str) -> Zone {
    let text = format!("$TTL 60\n{text}");
    let loaded = load(name(apex).as_name(), "text", text.as_bytes(), &mut NoIncludes, KEY);
    loaded.zone.unwrap_or_else(|| panic!("{:?} {:?}", loaded.mistakes, loaded.findings))
}

fn zone(serial: u32, more: &str) -> Zone {
    zone_of("example.org", &format!("@ SOA ns admin {serial} 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n{more}"))
}

/// Returns every record as text, sorted.
fn text(zone: &Zone) -> Vec<String> {
    let mut lines = vec![format!("{:?}", zone.soa())];
    zone.for_each_row(|row| {
        let data = wire::rdata::display(row.rtype, row.rdata, 0..row.rdata.len());
        // Letter case is kept where a record is, and compression may change it.
        lines.push(format!("{} {} {} {data}", row.owner.to_buf(), row.ttl, row.rtype).to_ascii_lowercase());
    });
    lines.sort();
    lines
}

const ZONES: [&str; 7] = [
    "",
    "www A 192.0.2.2\nwww A 192.0.2.3\n*.wild TXT a b\nsub NS ns.sub\nns.sub A 192.0.2.9\n",
    "www A 192.0.2.3\nwww AAAA 2001:db8::1\n*.wild TXT a b\n",
    "www 30 A 192.0.2.3\n",
    "WWW 30 A 192.0.2.3\nmail MX 10 www\na.b.c.d TXT deep\n",
    "@ NSEC3PARAM 1 0 0 -\n0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 0 - 2t7b4g4vsa5smi47k61mv5bv1a22bojr A\n",
    "@ NSEC3PARAM 1 0 0 -\n2t7b4g4vsa5smi47k61mv5bv1a22bojr NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom MX\n",
];

#[test]
fn a_difference_leads_from_one_version_to_the_other() {
    for old in ZONES {
        for new in ZONES {
            let (old, new) = (zone(1, old), zone(2, new));
            let difference = Difference::between(&old, &new, &KEY);
            let applied = difference.apply(&old, &KEY).expect("it fits");
            assert_eq!(text(&applied), text(&new));
            assert_eq!((difference.old_serial(), difference.new_serial()), (1, 2));
            assert_eq!(difference.apply(&new, &KEY).err(), Some(Misfit::Serial));
        }
    }
    let same = Difference::between(&zone(1, ZONES[1]), &zone(2, ZONES[1]), &KEY);
    assert!(same.is_empty());
}

#[test]
fn a_difference_that_does_not_fit_is_refused() {
    let with = Difference::between(&zone(1, ""), &zone(2, "www A 192.0.2.2\n"), &KEY);
    let exists = with.apply(&zone(1, "www A 192.0.2.2\n"), &KEY).err();
    assert_eq!(exists, Some(Misfit::Exists(Box::new(name("www.example.org")), Rtype::A)));
    let without = Difference::between(&zone(1, "www A 192.0.2.2\n"), &zone(2, ""), &KEY);
    let missing = without.apply(&zone(1, ""), &KEY).err();
    assert_eq!(missing, Some(Misfit::Missing(Box::new(name("www.example.org")), Rtype::A)));
    let alias = Difference::between(&zone(1, ""), &zone(2, "www CNAME ns\n"), &KEY);
    let unfit = alias.apply(&zone(1, "www TXT x\n"), &KEY).err();
    assert!(matches!(unfit, Some(Misfit::Unfit(_))), "{unfit:?}");
}

/// Returns the messages of a transfer, each of at most so many octets.
fn messages(mut outgoing: Outgoing, limit: usize) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while !outgoing.is_done() {
        let mut message = vec![0; limit];
        let mut writer = Writer::new(&mut message, limit, 1, Flags::QR);
        outgoing.fill(&mut writer).expect("a record fits");
        let len = writer.finish();
        message.truncate(len);
        messages.push(message);
    }
    messages
}

fn receive(have: Option<u32>, messages: &[Vec<u8>]) -> Result<Received, Fault> {
    let mut incoming = Incoming::new(name("example.org").as_name(), KEY, have, 1 << 20);
    let (last, others) = messages.split_last().expect("messages");
    for message in others {
        assert!(incoming.take(message)?.is_none(), "it ended too early");
    }
    incoming.take(last).map(|received| received.expect("it ends with the last message"))
}

#[test]
fn a_whole_zone_arrives_as_it_was_sent() {
    for limit in [65_535, 512, 100] {
        for more in ZONES {
            let zone = Arc::new(zone(7, more));
            let messages = messages(Outgoing::whole(Arc::clone(&zone)), limit);
            match receive(None, &messages) {
                Ok(Received::Whole(received)) => assert_eq!(text(&received), text(&zone)),
                _ => panic!("no zone with {limit} octets of {more:?}"),
            }
        }
    }
}

#[test]
fn differences_arrive_as_they_were_sent() {
    let versions: Vec<Zone> = ZONES.iter().zip(1..).map(|(more, serial)| zone(serial, more)).collect();
    let steps: Vec<Arc<Difference>> =
        versions.windows(2).map(|pair| Arc::new(Difference::between(&pair[0], &pair[1], &KEY))).collect();
    let last = Arc::new(zone(7, ZONES[6]));
    for limit in [65_535, 180] {
        let messages = messages(Outgoing::steps(Arc::clone(&last), steps.clone()), limit);
        let Ok(Received::Steps(received)) = receive(Some(1), &messages) else { panic!("no steps") };
        assert_eq!(received.len(), 6);
        let mut zone = zone(1, ZONES[0]);
        for step in &received {
            zone = step.apply(&zone, &KEY).expect("it fits");
        }
        assert_eq!(text(&zone), text(&last));
    }
    // RFC 1995 §2: nothing newer is the SOA alone, and a whole zone may come in place of steps.
    let alone = messages(Outgoing::steps(Arc::clone(&last), Vec::new()), 512);
    assert!(matches!(receive(Some(7), &alone), Ok(Received::UpToDate)));
    assert!(matches!(receive(Some(8), &alone), Err(Fault::Older(7))));
    let whole = messages(Outgoing::whole(last), 512);
    assert!(matches!(receive(Some(1), &whole), Ok(Received::Whole(_))));
}

#[test]
fn a_transfer_that_makes_no_zone_fails() {
    let zone = Arc::new(zone(7, ZONES[1]));
    let all = messages(Outgoing::whole(Arc::clone(&zone)), 90);
    assert!(all.len() >= 3);
    // Without its beginning, and with something behind its end.
    assert!(matches!(receive(None, &all[1..]), Err(Fault::NoSoa)));
    let mut incoming = Incoming::new(name("example.org").as_name(), KEY, None, 1 << 20);
    for message in &all {
        incoming.take(message).expect("a good transfer");
    }
    assert!(matches!(incoming.take(&all[1]), Err(Fault::Disordered)));
    let mut incoming = Incoming::new(name("example.org").as_name(), KEY, None, 150);
    let fault = all.iter().find_map(|message| incoming.take(message).err());
    assert_eq!(fault, Some(Fault::TooLarge));
    let other = Arc::new(zone_of("example.net", "@ SOA ns admin 7 2 3 4 5\n@ NS ns.example.org.\n"));
    assert!(matches!(receive(None, &messages(Outgoing::whole(other), 512)), Err(Fault::NoSoa)));
    let mut refused =
        Header { flags: Flags::QR.with_rcode(Rcode::REFUSED), ..Header::default() }.to_bytes().to_vec();
    assert!(matches!(receive(None, &[refused.clone()]), Err(Fault::Rcode(Rcode::REFUSED))));
    refused.pop();
    assert!(matches!(receive(None, &[refused]), Err(Fault::Malformed)));
}

/// One record of an update.
struct Entry<'a>(Section, &'a str, Class, u32, &'a str);

/// Reads `TYPE data`.
fn data(text: &str) -> (Rtype, Vec<u8>) {
    let (rtype, data) = text.split_once(' ').unwrap_or((text, ""));
    let rtype: Rtype = if rtype == "ANY" { Rtype::ANY } else { rtype.parse().expect("a type") };
    let mut rdata = Vec::new();
    if !data.is_empty() {
        wire::rdata::parse_text(rtype, data, Some(name("example.org").as_name()), &mut rdata).expect("data");
    }
    (rtype, rdata)
}

fn message(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut message = vec![0; 4096];
    let mut writer = Writer::new(&mut message, 4096, 1, Flags(0).with_opcode(Opcode::UPDATE));
    let apex = name("example.org");
    writer.question(&Question { qname: apex.as_name(), qtype: Rtype::SOA, qclass: Class::IN }).expect("room");
    for section in [Section::Answer, Section::Authority] {
        for Entry(_, owner, class, ttl, text) in entries.iter().filter(|entry| entry.0 == section) {
            let (rtype, rdata) = data(text);
            let owner = name(owner);
            let ttl = Ttl::new(*ttl);
            writer
                .record(section, owner.as_name(), rtype, *class, ttl, |writer| writer.bytes(&rdata))
                .expect("room");
        }
    }
    let len = writer.finish();
    message.truncate(len);
    message
}

const BEFORE: &str = "www A 192.0.2.2\nwww A 192.0.2.3\nwww TXT x\nalias CNAME www\n";

/// Updates `BEFORE`; `Ok` has the records that are not in it any more and those that are new, or
/// nothing.
fn check(entries: &[Entry<'_>], expect: Result<(&[&str], &[&str]), Rcode>) {
    let old = Arc::new(zone(5, BEFORE));
    let all = |_: Name<'_>, _: Rtype| true;
    let updated = update(&old, &KEY, &message(entries), &all, (SerialPolicy::Increment, 0));
    let found = updated.map(|updated| {
        let Some(updated) = updated else { return (Vec::new(), Vec::new()) };
        assert!(updated.zone.facts().serial > 5, "the serial does not grow");
        let applied = updated.difference.apply(&old, &KEY).expect("it fits");
        assert_eq!(text(&applied), text(&updated.zone));
        let lines = |rows: &zone::rows::Rows| -> Vec<String> {
            let mut lines: Vec<String> = rows
                .iter()
                .map(|row| {
                    let data = wire::rdata::display(row.rtype, row.rdata, 0..row.rdata.len());
                    format!("{} {} {} {data}", row.owner.to_buf(), row.ttl, row.rtype)
                })
                .collect();
            lines.sort();
            lines
        };
        (lines(&updated.difference.removed), lines(&updated.difference.added))
    });
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(found, expect.map(|(removed, added)| (owned(removed), owned(added))));
}

use wire::Section::{Answer as Before, Authority as Do};

#[test]
fn prerequisites_are_those_of_rfc_2136() {
    let add = || Entry(Do, "new.example.org", Class::IN, 60, "A 192.0.2.7");
    let added: Result<(&[&str], &[&str]), Rcode> = Ok((&[], &["new.example.org. 60 A 192.0.2.7"]));
    let with = |entry: Entry<'_>, expect| check(&[entry, add()], expect);
    with(Entry(Before, "www.example.org", Class::ANY, 0, "A"), added);
    with(Entry(Before, "www.example.org", Class::ANY, 0, "AAAA"), Err(Rcode::NXRRSET));
    with(Entry(Before, "www.example.org", Class::ANY, 0, "ANY"), added);
    with(Entry(Before, "no.example.org", Class::ANY, 0, "ANY"), Err(Rcode::NXDOMAIN));
    with(Entry(Before, "no.example.org", Class::NONE, 0, "ANY"), added);
    with(Entry(Before, "www.example.org", Class::NONE, 0, "ANY"), Err(Rcode::YXDOMAIN));
    with(Entry(Before, "www.example.org", Class::NONE, 0, "AAAA"), added);
    with(Entry(Before, "www.example.org", Class::NONE, 0, "A"), Err(Rcode::YXRRSET));
    with(Entry(Before, "www.example.net", Class::NONE, 0, "A"), Err(Rcode::NOTZONE));
    with(Entry(Before, "www.example.org", Class::ANY, 1, "A"), Err(Rcode::FORMERR));
    with(Entry(Before, "www.example.org", Class::ANY, 0, "A 192.0.2.2"), Err(Rcode::FORMERR));
    // All records of the set, and no others.
    with(Entry(Before, "www.example.org", Class::IN, 0, "A 192.0.2.2"), Err(Rcode::NXRRSET));
    let both = [
        Entry(Before, "WWW.example.org", Class::IN, 0, "A 192.0.2.3"),
        Entry(Before, "www.example.org", Class::IN, 0, "A 192.0.2.2"),
        add(),
    ];
    check(&both, added);
}

#[test]
fn changes_are_those_of_rfc_2136() {
    check(
        &[Entry(Do, "www.example.org", Class::IN, 60, "A 192.0.2.4")],
        Ok((&[], &["www.example.org. 60 A 192.0.2.4"])),
    );
    // It is there already; with another TTL, all of the set has that.
    check(&[Entry(Do, "www.example.org", Class::IN, 60, "A 192.0.2.3")], Ok((&[], &[])));
    check(
        &[Entry(Do, "www.example.org", Class::IN, 30, "A 192.0.2.3")],
        Ok((
            &["www.example.org. 60 A 192.0.2.2", "www.example.org. 60 A 192.0.2.3"],
            &["www.example.org. 30 A 192.0.2.2", "www.example.org. 30 A 192.0.2.3"],
        )),
    );
    check(
        &[Entry(Do, "www.example.org", Class::ANY, 0, "A")],
        Ok((&["www.example.org. 60 A 192.0.2.2", "www.example.org. 60 A 192.0.2.3"], &[])),
    );
    check(
        &[Entry(Do, "www.example.org", Class::NONE, 0, "A 192.0.2.2")],
        Ok((&["www.example.org. 60 A 192.0.2.2"], &[])),
    );
    check(
        &[Entry(Do, "www.example.org", Class::ANY, 0, "ANY")],
        Ok((
            &[
                "www.example.org. 60 A 192.0.2.2",
                "www.example.org. 60 A 192.0.2.3",
                "www.example.org. 60 TXT \"x\"",
            ],
            &[],
        )),
    );
    // Aliases give way, and what stands beside one does not come.
    check(&[Entry(Do, "www.example.org", Class::IN, 60, "CNAME ns")], Ok((&[], &[])));
    check(&[Entry(Do, "alias.example.org", Class::IN, 60, "A 192.0.2.9")], Ok((&[], &[])));
    check(
        &[Entry(Do, "alias.example.org", Class::IN, 60, "CNAME ns")],
        Ok((
            &["alias.example.org. 60 CNAME www.example.org."],
            &["alias.example.org. 60 CNAME ns.example.org."],
        )),
    );
    // The apex keeps its SOA and its last server.
    check(&[Entry(Do, "example.org", Class::ANY, 0, "ANY")], Ok((&[], &[])));
    check(&[Entry(Do, "example.org", Class::ANY, 0, "NS")], Ok((&[], &[])));
    check(&[Entry(Do, "example.org", Class::NONE, 0, "NS ns")], Ok((&[], &[])));
    check(&[Entry(Do, "example.org", Class::ANY, 0, "SOA")], Ok((&[], &[])));
    check(&[Entry(Do, "example.org", Class::IN, 60, "SOA ns admin 4 2 3 4 5")], Ok((&[], &[])));
    check(&[Entry(Do, "example.org", Class::IN, 60, "SOA ns admin 9 2 3 4 5")], Ok((&[], &[])));
    // All of it is right, or nothing is done.
    let first = || Entry(Do, "new.example.org", Class::IN, 60, "A 192.0.2.7");
    for (wrong, rcode) in [
        (Entry(Do, "www.example.net", Class::IN, 60, "A 192.0.2.4"), Rcode::NOTZONE),
        (Entry(Do, "www.example.org", Class::CH, 60, "A 192.0.2.4"), Rcode::FORMERR),
        (Entry(Do, "www.example.org", Class::ANY, 1, "A"), Rcode::FORMERR),
        (Entry(Do, "www.example.org", Class::NONE, 1, "A 192.0.2.2"), Rcode::FORMERR),
        (Entry(Do, "www.example.org", Class::IN, 60, "ANY"), Rcode::FORMERR),
        (Entry(Do, "x.example.org", Class::IN, 60, "NSEC3PARAM 1 0 0 -"), Rcode::REFUSED),
    ] {
        check(&[first(), wrong], Err(rcode));
    }
    // What comes first is there for what comes after.
    check(&[first(), Entry(Do, "new.example.org", Class::NONE, 0, "A 192.0.2.7")], Ok((&[], &[])));
}

#[test]
fn who_may_not_changes_nothing() {
    let old = Arc::new(zone(5, BEFORE));
    let entries = [
        Entry(Do, "www.example.org", Class::IN, 60, "A 192.0.2.4"),
        Entry(Do, "www.example.org", Class::IN, 60, "TXT y"),
    ];
    let only_addresses = |_: Name<'_>, rtype: Rtype| rtype == Rtype::A;
    let policy = (SerialPolicy::Increment, 0);
    let refused = update(&old, &KEY, &message(&entries), &only_addresses, policy);
    assert_eq!(refused.err(), Some(Rcode::REFUSED));
    let done = update(&old, &KEY, &message(&entries[..1]), &only_addresses, policy);
    assert!(done.is_ok_and(|done| done.is_some_and(|done| done.zone.facts().serial == 6)));
}

#[test]
fn catalogs_name_their_members() {
    let apex = name("catalog.example");
    let listed = [
        (name("b.example"), b"id1".to_vec(), vec!["one".to_owned()]),
        (name("A.example"), b"id2".to_vec(), Vec::new()),
    ];
    let catalog = produce(apex.as_name(), KEY, 9, &listed).expect("a catalog");
    assert_eq!(catalog.facts().serial, 9);
    let found = members(&catalog).expect("members");
    let found: Vec<_> = found
        .iter()
        .map(|member| (member.zone.to_string(), member.id.clone(), member.groups.clone()))
        .collect();
    assert_eq!(
        found,
        [
            ("a.example.".to_owned(), b"id2".to_vec(), Vec::new()),
            ("b.example.".to_owned(), b"id1".to_vec(), vec!["one".to_owned()]),
        ]
    );
    let begin = "@ SOA invalid. invalid. 1 2 3 4 5\n@ NS invalid.\n";
    let read = |text: &str| members(&zone_of("catalog.example", &format!("{begin}{text}")));
    assert_eq!(read("").err(), Some(BadCatalog::Version));
    assert_eq!(read("version TXT 1\n").err(), Some(BadCatalog::Version));
    assert_eq!(read("version TXT 2\nversion TXT 3\n").err(), Some(BadCatalog::Version));
    assert_eq!(read("version TXT 2\n").map(|members| members.len()), Ok(0));
    let two = read("version TXT 2\nx.zones PTR a.example.\nx.zones PTR b.example.\n");
    assert_eq!(two.err(), Some(BadCatalog::ManyNames(Box::new(name("x.zones.catalog.example")))));
    let twice = read("version TXT 2\nx.zones PTR a.example.\ny.zones PTR a.example.\n");
    assert_eq!(twice.err(), Some(BadCatalog::Twice(Box::new(name("a.example")))));
    let moved = read("version TXT 2\nx.zones PTR a.example.\ncoo.x.zones PTR other.example.\n");
    assert_eq!(moved.expect("members")[0].change_of_ownership, Some(name("other.example")));
}

/// Returns the messages of a whole zone with these records, whether or not anybody should serve it.
fn flawed(serial: u32, more: &str) -> Vec<Vec<u8>> {
    let soa = format!("ns.example.org. a.example.org. {serial} 2 3 4 5");
    let mut records =
        vec![("example.org", "SOA", soa.clone()), ("example.org", "NS", "ns.example.net.".to_owned())];
    records.extend(more.lines().map(|line| {
        let mut words = line.splitn(3, ' ');
        let mut next = || words.next().expect("a word");
        (next(), next(), next().to_owned())
    }));
    records.push(("example.org", "SOA", soa));
    let one = |(owner, rtype, data): (&str, &str, String)| {
        let rtype: Rtype = rtype.parse().expect("a type");
        let mut rdata = Vec::new();
        wire::rdata::parse_text(rtype, &data, Some(name("example.org").as_name()), &mut rdata).expect("data");
        let mut message = vec![0; 65_535];
        let mut writer = Writer::new(&mut message, 65_535, 1, Flags::QR);
        let owner = name(owner);
        let (class, ttl) = (Class::IN, Ttl::new(60));
        writer
            .record(Section::Answer, owner.as_name(), rtype, class, ttl, |writer| writer.bytes(&rdata))
            .expect("room");
        let len = writer.finish();
        message.truncate(len);
        message
    };
    records.into_iter().map(one).collect()
}

#[test]
fn a_zone_of_another_server_is_served_as_it_came() {
    for (more, flaw) in [
        ("d.example.org DNAME example.net.\nx.d.example.org A 192.0.2.1", "data below a DNAME"),
        ("d.example.org DNAME example.net.\nd.example.org NS ns.example.net.", "a DNAME beside NS"),
        (
            "example.org DS 1 8 2 00000000000000000000000000000000000000000000000000000000000000AA",
            "a DS at the apex",
        ),
        ("c.example.org CNAME a.example.net.\nc.example.org A 192.0.2.1", "a CNAME beside A"),
        ("c.example.org CNAME a.example.net.\nc.example.org CNAME b.example.net.", "several CNAME records"),
        ("s.example.org SVCB 1 foo. mandatory=port", "SVCB: a key in \"mandatory\""),
        ("p.example.org TYPE65401 \\# 4 0a000001", ""),
    ] {
        let Ok(Received::Whole(zone)) = receive(None, &flawed(1, more)) else {
            panic!("no zone with {more}")
        };
        let flaws: Vec<String> = zone.flaws().iter().map(|it| it.problem.to_string()).collect();
        match flaw {
            "" => assert_eq!(flaws, [""; 0]),
            flaw => assert!(flaws[0].contains(flaw), "{flaws:?}"),
        }
        let records = |zone: &Zone| zone.facts().records;
        assert_eq!(records(&zone), 2 + more.lines().count(), "{more}");
        // It goes on as it came, and what comes next is applied to it.
        let zone = Arc::new(*zone);
        let sent = messages(Outgoing::whole(Arc::clone(&zone)), 65_535);
        let Ok(Received::Whole(again)) = receive(None, &sent) else { panic!("no zone with {more}") };
        assert_eq!(text(&again), text(&zone));
        let next = flawed(2, &format!("{more}\nnew.example.org A 192.0.2.9"));
        let Ok(Received::Whole(next)) = receive(None, &next) else { panic!("no zone with {more}") };
        let step = Difference::between(&zone, &next, &KEY);
        let applied = step.apply_from(zone::Origin::Received, &zone, &KEY).expect("it fits");
        assert_eq!(text(&applied), text(&next));
        // A zone of our own is held to more.
        assert_eq!(step.apply(&zone, &KEY).is_err(), !flaw.is_empty(), "{more}");
    }
}

#[test]
fn a_record_that_cannot_be_read_is_named() {
    let mut messages = flawed(1, "a.example.org A 192.0.2.1");
    // Its length, and an octet less of it.
    let record = &mut messages[2];
    let end = record.len();
    record[end - 5] = 3;
    record.truncate(end - 1);
    let Err(fault) = receive(None, &messages) else { panic!("it is no address") };
    assert!(fault.to_string().contains("the data of a.example.org. A"), "{fault}");
}
