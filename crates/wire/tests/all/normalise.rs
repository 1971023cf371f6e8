//! Replies of other servers, made fit to be kept.

use wire::reply::normalise_relevant;
use wire::{
    Class, Flags, Full, Message, Name, NameBuf, OptionCode, Question, Rcode, Rtype, Section, Ttl, Unfit,
    Writer, normalise, truncate,
};

fn name(labels: &[&str]) -> NameBuf {
    let mut name = NameBuf::root();
    for label in labels {
        name.push_label(label.as_bytes()).expect("test names fit");
    }
    name
}

fn writer(buf: &mut [u8]) -> Writer<'_> {
    let mut writer = Writer::new(buf, 65535, 7, Flags::QR.with(Flags::RD).with(Flags::RA));
    let qname = name(&["www", "example", "org"]);
    let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
    writer.question(&question).expect("fits");
    writer
}

fn a(w: &mut Writer<'_>, owner: &NameBuf, ttl: u32) {
    w.record(Section::Answer, owner.as_name(), Rtype::A, Class::IN, Ttl::new(ttl), |w| {
        w.bytes(&[192, 0, 2, 1])
    })
    .expect("fits");
}

fn mx(w: &mut Writer<'_>, section: Section, owner: &NameBuf, host: &NameBuf) {
    w.record(section, owner.as_name(), Rtype::MX, Class::IN, Ttl::new(300), |w| {
        w.bytes(&[0, 10])?;
        w.name(host.as_name())
    })
    .expect("fits");
}

fn opt(w: &mut Writer<'_>) {
    w.opt(1232, Rcode::NOERROR, true, |w| w.option(OptionCode::EDE, &[0, 9])).expect("fits");
}

/// Section, owner, type, TTL and data of every record, to compare messages by meaning.
type Meaning = Vec<(Section, Vec<u8>, Rtype, u32, Vec<u8>)>;

fn meaning(bytes: &[u8]) -> Meaning {
    let message = Message::parse(bytes).expect("a message");
    message
        .records()
        .filter(|record| record.rtype != Rtype::OPT)
        .map(|record| {
            let owner = record.owner.expand().expect("a name").as_name().as_bytes().to_vec();
            let data = match record.rtype {
                Rtype::MX => record.name_in_rdata(2).expand().expect("a name").as_name().as_bytes().to_vec(),
                _ => record.rdata.to_vec(),
            };
            (record.section, owner, record.rtype, record.ttl().seconds(), data)
        })
        .collect()
}

fn check(bytes: &[u8]) -> Vec<u8> {
    let message = Message::parse(bytes).expect("a message");
    let (mut out, mut ttls) = (vec![0; 65535], vec![0; 8192]);
    let normalised = normalise(&message, &mut out, &mut ttls).expect("fit");
    out.truncate(normalised.len);
    assert_eq!(meaning(bytes), meaning(&out));
    let copy = Message::parse(&out).expect("a message");
    assert!(copy.edns.is_none());
    assert_eq!(normalised.body_at, copy.records_at());
    let places: Vec<usize> = copy.records().map(|record| record.ttl_at - normalised.body_at).collect();
    let told: Vec<usize> = ttls[..normalised.ttl_count].iter().map(|&at| usize::from(at)).collect();
    assert_eq!(places, told);
    out
}

#[test]
fn a_reply_with_the_opt_at_the_end_is_copied_octet_for_octet() {
    let mut buf = [0; 512];
    let mut w = writer(&mut buf);
    a(&mut w, &name(&["www", "example", "org"]), 300);
    mx(&mut w, Section::Answer, &name(&["example", "org"]), &name(&["mail", "example", "org"]));
    let end = w.len();
    opt(&mut w);
    let len = w.finish();
    let out = check(&buf[..len]);
    assert_eq!(out[12..], buf[12..end]);
}

#[test]
fn a_reply_with_the_opt_in_the_middle_is_written_anew() {
    let mut buf = [0; 512];
    let mut w = writer(&mut buf);
    a(&mut w, &name(&["www", "example", "org"]), 300);
    opt(&mut w);
    // Both names first occur after the OPT, so the second points behind it.
    mx(&mut w, Section::Additional, &name(&["other", "example", "net"]), &name(&["mail", "example", "net"]));
    let len = w.finish();
    let out = check(&buf[..len]);
    assert_eq!(out.len(), len - 17);
}

#[test]
fn more_names_than_are_compressed_are_all_written() {
    let mut buf = vec![0; 65_535];
    let mut w = writer(&mut buf);
    opt(&mut w);
    // Four labels each, so that the look-ups for one message run out.
    for i in 0..2500 {
        let owner = name(&[&format!("a{i}"), "host", "example", "org"]);
        w.record(Section::Additional, owner.as_name(), Rtype::A, Class::IN, Ttl::ZERO, |w| {
            w.bytes(&[192, 0, 2, 1])
        })
        .expect("fits");
    }
    let len = w.finish();
    let out = check(&buf[..len]);
    assert!(out.len() < len + 500 * 40);
}

#[test]
fn a_compressed_srv_target_is_written_in_full() {
    let mut buf = [0; 512];
    let mut w = writer(&mut buf);
    let owner = name(&["_dns", "_udp", "example", "org"]);
    let target = name(&["www", "example", "org"]);
    w.record(Section::Answer, owner.as_name(), Rtype::SRV, Class::IN, Ttl::new(60), |w| {
        w.bytes(&[0, 1, 0, 2, 0, 53])?;
        w.name(target.as_name())
    })
    .expect("fits");
    let len = w.finish();
    let message = Message::parse(&buf[..len]).expect("a message");
    let (mut out, mut ttls) = ([0; 512], [0; 4]);
    let normalised = normalise(&message, &mut out, &mut ttls).expect("fit");
    let copy = Message::parse(&out[..normalised.len]).expect("a message");
    let record = copy.records().next().expect("one record");
    assert_eq!(&record.rdata[6..], target.as_name().as_bytes());
}

#[test]
fn a_negative_ttl_becomes_zero() {
    let mut buf = [0; 512];
    let mut w = writer(&mut buf);
    a(&mut w, &name(&["www", "example", "org"]), 300);
    let len = w.finish();
    let ttl_at = Message::parse(&buf[..len]).expect("a message").records().next().expect("a record").ttl_at;
    buf[ttl_at] = 0x80;
    let message = Message::parse(&buf[..len]).expect("a message");
    let (mut out, mut ttls) = ([0; 512], [0; 4]);
    normalise(&message, &mut out, &mut ttls).expect("fit");
    assert_eq!(out[ttl_at..ttl_at + 4], [0; 4]);
}

#[test]
fn a_name_that_lies_in_a_ttl_is_written_anew() {
    let mut buf = [0; 512];
    let mut w = writer(&mut buf);
    // The TTL reads as a label of two octets; after it come the root label and what is left of the
    // length.
    w.record(Section::Answer, Name::ROOT, Rtype::A, Class::IN, Ttl::new(0x0002_6162), |w| {
        w.bytes(&[192, 0, 2, 1])
    })
    .expect("fits");
    let ttl_at = w.len() - 10;
    let mut len = w.finish();
    buf[7] += 1;
    let pointer = [0xc0, ttl_at as u8 + 1, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 2];
    buf[len..len + 16].copy_from_slice(&pointer);
    len += 16;
    let message = Message::parse(&buf[..len]).expect("a message");
    let owners = |message: &Message<'_>| -> Vec<_> {
        message.records().map(|record| record.owner.expand().expect("a name").to_string()).collect()
    };
    assert_eq!(owners(&message), [".", "ab."]);
    let (mut out, mut ttls) = ([0; 512], [0; 4]);
    let done = normalise(&message, &mut out, &mut ttls).expect("fit");
    for &ttl in &ttls[..done.ttl_count] {
        let at = done.body_at + usize::from(ttl);
        out[at..at + 4].copy_from_slice(&[0; 4]);
    }
    assert_eq!(owners(&Message::parse(&out[..done.len]).expect("a message")), [".", "ab."]);
}

#[test]
fn what_does_not_fit_is_said_to_be_full() {
    let mut buf = [0; 512];
    let mut w = writer(&mut buf);
    a(&mut w, &name(&["www", "example", "org"]), 300);
    a(&mut w, &name(&["www", "example", "org"]), 300);
    let len = w.finish();
    let message = Message::parse(&buf[..len]).expect("a message");
    let mut out = [0; 512];
    assert_eq!(normalise(&message, &mut out, &mut [0; 1]).err(), Some(Unfit::Full));
    assert_eq!(normalise(&message, &mut out[..len - 1], &mut [0; 4]).err(), Some(Unfit::Full));
}

#[test]
fn data_that_is_not_of_its_type_is_refused() {
    for data in [&b"\xc0\xff"[..], b"\x03ww", b"\xc0\x00", b"\xc0\x0c\0"] {
        let mut buf = [0; 512];
        let mut w = writer(&mut buf);
        let owner = name(&["www", "example", "org"]);
        w.record(Section::Answer, owner.as_name(), Rtype::CNAME, Class::IN, Ttl::ZERO, |w| w.bytes(data))
            .expect("fits");
        let len = w.finish();
        let message = Message::parse(&buf[..len]).expect("a message");
        let mut out = [0; 512];
        assert_eq!(normalise(&message, &mut out, &mut [0; 4]).err(), Some(Unfit::Rdata), "{data:02x?}");
    }
}

#[test]
fn a_truncated_reply_keeps_question_and_opt() {
    let mut buf = [0; 512];
    let mut w = writer(&mut buf);
    a(&mut w, &name(&["www", "example", "org"]), 300);
    opt(&mut w);
    let len = w.finish();
    let len = truncate(&mut buf[..len]);
    let message = Message::parse(&buf[..len]).expect("a message");
    assert!(message.header.flags.has(Flags::TC));
    assert_eq!(message.records().count(), 1);
    assert!(message.edns.is_some_and(|edns| edns.option(OptionCode::EDE) == Some(&[0, 9])));
    assert!(message.question.is_some_and(|q| q.qname == name(&["www", "example", "org"]).as_name()));
}

#[test]
fn compression_finds_every_suffix_and_forgets_what_was_taken_back() {
    let mut buf = [0; 512];
    let mut w = Writer::new(&mut buf, 512, 0, Flags::default());
    w.name(name(&["a", "B", "c"]).as_name()).expect("fits");
    assert_eq!(w.len(), 12 + 7);
    w.name(name(&["x", "b", "C"]).as_name()).expect("fits");
    assert_eq!(w.len(), 12 + 7 + 4);
    w.name(name(&["X", "b", "c"]).as_name()).expect("fits");
    assert_eq!(w.len(), 12 + 7 + 4 + 2);
    let owner = name(&["lost", "c"]);
    let refused = w.record(Section::Answer, owner.as_name(), Rtype::A, Class::IN, Ttl::ZERO, |_| Err(Full));
    assert_eq!(refused, Err(Full));
    w.name(owner.as_name()).expect("fits");
    assert_eq!(w.len(), 12 + 7 + 4 + 2 + 7);
}

/// One record: where it stands, its owner, its type, and the name in its data, if that is what it
/// has.
type Row = (Section, &'static str, Rtype, Option<&'static str>);

fn parsed(text: &str) -> NameBuf {
    name(&text.split('.').filter(|label| !label.is_empty()).collect::<Vec<_>>())
}

/// Checks which records of a reply for `www.example.org` stay; those with `false` go.
fn check_scrubbed(rows: &[(Row, bool)]) {
    let mut buf = vec![0; 65535];
    let mut w = writer(&mut buf);
    for ((section, owner, rtype, target), _) in rows {
        w.record(*section, parsed(owner).as_name(), *rtype, Class::IN, Ttl::new(300), |w| match target {
            Some(target) => {
                // SRV, SVCB and MX have numbers before the name, signatures a type and more.
                match rtype.0 {
                    15 | 64 | 65 => w.bytes(&[0, 1])?,
                    46 => w.bytes(&[0, 47, 13, 3, 0, 0, 1, 44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])?,
                    _ => {}
                }
                match rtype.0 {
                    46 | 64 | 65 => w.name_uncompressed(parsed(target).as_name()),
                    6 => {
                        w.name(parsed(target).as_name())?;
                        w.name(parsed(target).as_name())?;
                        w.bytes(&[0; 20])
                    }
                    _ => w.name(parsed(target).as_name()),
                }
            }
            None => w.bytes(&[192, 0, 2, 1]),
        })
        .expect("fits");
    }
    opt(&mut w);
    let len = w.finish();
    let message = Message::parse(&buf[..len]).expect("a message");
    let (mut out, mut ttls) = (vec![0; 65535], vec![0; 8192]);
    let done = normalise_relevant(&message, &mut out, &mut ttls).expect("fit");
    let owners = |bytes: &[u8]| -> Vec<(Section, Vec<u8>, Rtype)> {
        meaning(bytes).into_iter().map(|(section, owner, rtype, ..)| (section, owner, rtype)).collect()
    };
    let mut expect = owners(&buf[..len]);
    let mut kept = rows.iter().map(|(_, kept)| *kept);
    expect.retain(|_| kept.next().expect("a row"));
    assert_eq!(owners(&out[..done.len]), expect, "{rows:?}");
    assert_eq!(done.ttl_count, expect.len());
}

const ANSWER: Section = Section::Answer;
const AUTHORITY: Section = Section::Authority;
const ADDITIONAL: Section = Section::Additional;

#[test]
fn records_of_other_names_are_no_answer() {
    check_scrubbed(&[
        ((ANSWER, "www.example.org", Rtype::A, None), true),
        ((ANSWER, "www.bank.example", Rtype::A, None), false),
        ((ANSWER, "example.org", Rtype::A, None), false),
        ((AUTHORITY, "bank.example", Rtype::NS, Some("ns.evil.example")), false),
        ((AUTHORITY, "example.org", Rtype::A, None), false),
        ((ADDITIONAL, "ns.evil.example", Rtype::A, None), false),
    ]);
    // In any letter case.
    check_scrubbed(&[((ANSWER, "WWW.example.ORG", Rtype::A, None), true)]);
}

#[test]
fn what_aliases_lead_to_is_an_answer_in_any_order() {
    let cname = Rtype::CNAME;
    let rows = [
        ((ANSWER, "www.example.org", cname, Some("a.example.net")), true),
        ((ANSWER, "a.example.net", cname, Some("b.example.com")), true),
        ((ANSWER, "b.example.com", Rtype::A, None), true),
        ((ANSWER, "c.example.com", cname, Some("www.example.org")), false),
        ((AUTHORITY, "example.com", Rtype::NS, Some("ns.example.com")), true),
        ((AUTHORITY, "example", Rtype::NS, Some("ns.example")), false),
        ((ADDITIONAL, "ns.example.com", Rtype::A, None), true),
        ((ADDITIONAL, "ns.example", Rtype::A, None), false),
    ];
    check_scrubbed(&rows);
    let [first, second, third, rest @ ..] = rows;
    check_scrubbed(&[&[third, second, first], &rest[..]].concat());
    let dname = Rtype(39);
    check_scrubbed(&[
        ((ANSWER, "example.org", dname, Some("example.net")), true),
        ((ANSWER, "www.example.org", cname, Some("www.example.net")), true),
        ((ANSWER, "www.example.net", Rtype::A, None), true),
        ((ANSWER, "example.com", dname, Some("example.net")), false),
    ]);
}

#[test]
fn proofs_of_absence_stand_beside_the_name_in_a_zone_that_holds_it() {
    let (nsec, rrsig) = (Rtype(47), Rtype(46));
    check_scrubbed(&[
        ((AUTHORITY, "example.org", Rtype::SOA, Some("ns.example.org")), true),
        ((AUTHORITY, "wiki.example.org", nsec, Some("zzz.example.org")), true),
        ((AUTHORITY, "wiki.example.org", rrsig, Some("example.org")), true),
        ((AUTHORITY, "wiki.example.net", nsec, Some("zzz.example.net")), false),
        ((AUTHORITY, "wiki.example.net", rrsig, Some("example.net")), false),
    ]);
    // The signer names the zone where nothing else does.
    check_scrubbed(&[
        ((ANSWER, "www.example.org", Rtype::A, None), true),
        ((AUTHORITY, "wiki.example.org", nsec, Some("zzz.example.org")), true),
        ((AUTHORITY, "wiki.example.org", rrsig, Some("example.org")), true),
    ]);
}

#[test]
fn addresses_are_kept_of_what_is_named() {
    check_scrubbed(&[
        ((ANSWER, "www.example.org", Rtype::MX, Some("mail.example.net")), true),
        ((ANSWER, "www.example.org", Rtype(65), Some("svc.example.com")), true),
        ((ADDITIONAL, "mail.example.net", Rtype::A, None), true),
        ((ADDITIONAL, "svc.example.com", Rtype::A, None), true),
        ((ADDITIONAL, "www.example.org", Rtype::A, None), true),
        ((ADDITIONAL, "mail.example.net", Rtype::TXT, None), false),
        ((ADDITIONAL, "mail.example.com", Rtype::A, None), false),
    ]);
}
