//! What one packet costs: the same packets as Numa's `hot_path` suite, and a typical query.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use wire::{
    Class, Flags, Folded, HashKey, Message, Name, NameBuf, OptionCode, Query, Question, Rcode, Rtype,
    Section, Ttl, Unfit, Writer, normalise,
};

/// Numa's response: `example.com` A with one answer, two name servers and one address, RD and RA
/// set.
struct Response {
    qname: NameBuf,
    servers: [NameBuf; 2],
}

impl Response {
    fn new() -> Self {
        let name = |text| NameBuf::from_text(text).expect("a name");
        Self { qname: name("example.com"), servers: [name("ns1.example.com"), name("ns2.example.com")] }
    }

    fn write(&self, out: &mut [u8]) -> usize {
        let flags = Flags::QR.with(Flags::RD).with(Flags::RA);
        let mut w = Writer::new(out, 4096, 0x1234, flags);
        let qname = self.qname.as_name();
        let question = Question { qname, qtype: Rtype::A, qclass: Class::IN };
        let done = w
            .question(&question)
            .and_then(|()| {
                w.record(Section::Answer, qname, Rtype::A, Class::IN, Ttl::new(300), |w| {
                    w.bytes(&[93, 184, 216, 34])
                })
            })
            .and_then(|()| {
                self.servers.iter().try_for_each(|server| {
                    w.record(Section::Authority, qname, Rtype::NS, Class::IN, Ttl::new(172_800), |w| {
                        w.name(server.as_name())
                    })
                })
            })
            .and_then(|()| {
                let owner = self.servers[0].as_name();
                w.record(Section::Additional, owner, Rtype::A, Class::IN, Ttl::new(172_800), |w| {
                    w.bytes(&[198, 51, 100, 1])
                })
            });
        assert_eq!(done, Ok(()));
        w.finish()
    }
}

/// A query for `www.example.com` A with an OPT, perhaps with a cookie.
fn query(cookie: Option<&[u8]>) -> Vec<u8> {
    let mut out = [0; 512];
    let mut w = Writer::new(&mut out, 512, 0x1234, Flags::RD);
    let qname = NameBuf::from_text("wWw.eXaMple.com").expect("a name");
    let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
    w.question(&question).expect("fits");
    w.opt(1232, Rcode::NOERROR, false, |w| {
        cookie.map_or(Ok(()), |cookie| w.option(OptionCode::COOKIE, cookie))
    })
    .expect("fits");
    let len = w.finish();
    out[..len].to_vec()
}

/// As many records as fit, each owner a pointer to a name of 127 labels, and an OPT in front so
/// that all is rewritten.
fn hostile() -> Vec<u8> {
    let mut out = vec![0; 65_535];
    let mut w = Writer::new(&mut out, 65_535, 1, Flags::QR);
    let qname = NameBuf::from_text(&"a.".repeat(127)).expect("a name");
    let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
    w.question(&question).expect("fits");
    w.opt(1232, Rcode::NOERROR, false, |_| Ok(())).expect("fits");
    let mut len = w.finish();
    // The name without its first label: the whole one would be found at once.
    let record = [0xc0, 14, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1];
    let mut additionals: u16 = 1;
    while let Some(room) = out.get_mut(len..len + record.len()) {
        room.copy_from_slice(&record);
        len += record.len();
        additionals += 1;
    }
    out[10..12].copy_from_slice(&additionals.to_be_bytes());
    out.truncate(len);
    out
}

/// What Numa's `buffer_parse` yields: every name in full.
fn parse_whole(wire: &[u8]) -> usize {
    let mut buf = [0; 4096];
    buf[..wire.len()].copy_from_slice(wire);
    let message = Message::parse(&buf[..wire.len()]).expect("a message");
    let mut octets = 0;
    for record in message.records() {
        octets += record.owner.expand().expect("a name").as_name().len();
        octets += match record.rtype {
            Rtype::NS => record.name_in_rdata(0).expand().expect("a name").as_name().len(),
            _ => record.rdata.len(),
        };
    }
    octets
}

fn packets(c: &mut Criterion) {
    let response = Response::new();
    let mut out = [0; 4096];
    let len = response.write(&mut out);
    let wire = out[..len].to_vec();
    assert_eq!(wire.len(), 29 + 16 + 18 + 18 + 16);

    // How long from a reply's octets to its records, names in full (Numa: `buffer_parse`)?
    c.bench_function("parse a response of 4 records, names expanded", |b| {
        assert_eq!(parse_whole(&wire), 3 * 13 + 17 + 2 * 17 + 2 * 4);
        b.iter(|| parse_whole(black_box(&wire)));
    });
    // The same as our hot path does it: borrowed.
    c.bench_function("parse a response of 4 records, borrowed", |b| {
        assert_eq!(Message::parse(&wire).expect("a message").records().count(), 4);
        b.iter(|| Message::parse(black_box(&wire)).map(|message| message.header.answers));
    });
    c.bench_function("normalise a response of 4 records", |b| {
        let message = Message::parse(&wire).expect("a message");
        let (mut out, mut ttls) = ([0; 4096], [0; 64]);
        assert_eq!(normalise(&message, &mut out, &mut ttls).map(|done| done.ttl_count), Ok(4));
        b.iter(|| normalise(black_box(&message), &mut out, &mut ttls));
    });
    // Numa: `buffer_serialize`.
    c.bench_function("serialise a response of 4 records", |b| {
        b.iter(|| {
            let mut out = [0; 4096];
            black_box(response.write(&mut out));
            out[3]
        });
    });

    // What does the worst a stranger can send over TCP hold a worker up for?
    c.bench_function("parse and normalise 65,535 octets made to be slow", |b| {
        let hostile = hostile();
        let (mut out, mut ttls) = (vec![0; 65_535], vec![0; 8192]);
        let mut run = |bytes| {
            let message = Message::parse(bytes).expect("a message");
            normalise(&message, &mut out, &mut ttls).map(|done| done.ttl_count)
        };
        assert_eq!(run(&hostile), Err(Unfit::Full));
        b.iter(|| run(black_box(&hostile)));
    });

    let plain = query(None);
    let cookie = query(Some(&[7; 24]));
    assert_eq!(plain.len(), 44);
    c.bench_function("parse a query of 44 octets with EDNS", |b| {
        assert!(Query::parse(&plain).is_ok_and(|query| query.edns.is_some()));
        b.iter(|| Query::parse(black_box(&plain)).map(|query| query.question.qtype));
    });
    c.bench_function("parse a query with a cookie", |b| {
        assert!(Query::parse(&cookie).is_ok_and(|query| query.edns.is_some()));
        b.iter(|| Query::parse(black_box(&cookie)).map(|query| query.question.qtype));
    });
    let key = HashKey::new([1, 2]);
    let lower = NameBuf::from_text("www.example.com").expect("a name");
    c.bench_function("parse a query with EDNS and hash its name", |b| {
        let hash = |bytes| Query::parse(bytes).map_or(0, |query| key.hash(query.question.qname, 1));
        assert_eq!(hash(&plain), key.hash(lower.as_name(), 1));
        b.iter(|| hash(black_box(&plain)));
    });
    c.bench_function("parse a query with EDNS, fold and hash its name", |b| {
        let mut folded = Folded::root();
        let mut hash = |bytes| {
            Query::parse(bytes).map_or(0, |query| key.mix(key.fold(query.question.qname, &mut folded), 1))
        };
        assert_eq!(hash(&plain), key.hash(lower.as_name(), 1));
        b.iter(|| hash(black_box(&plain)));
        assert_eq!(folded.as_bytes(), lower.as_name().as_bytes());
    });
    let long = NameBuf::from_text(&"Label-of-15-oct.".repeat(15)).expect("a name");
    c.bench_function("compare names of 241 octets", |b| {
        let other = NameBuf::from_text(&"lAbel-of-15-oct.".repeat(15)).expect("a name");
        assert!(long == other);
        b.iter(|| black_box(long.as_name()) == black_box(other.as_name()));
    });
    c.bench_function("hash a name of 241 octets", |b| {
        b.iter(|| key.hash(black_box(long.as_name()), 1));
    });
    c.bench_function("parse a name of 127 labels", |b| {
        let many = NameBuf::from_text(&"a.".repeat(127)).expect("a name");
        b.iter(|| Name::parse(black_box(many.as_name().as_bytes())).map(|(name, _)| name.len()));
    });
}

criterion_group!(benches, packets);
criterion_main!(benches);
