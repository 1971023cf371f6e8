//! Edits of an answer, against the same edits made on a list of records: `hickory-proto` must read
//! the same records from both, and `domain` must accept the edited message. Messages are compressed
//! as far as our writer can, so that records that go or grow are what later names point into.

use std::net::{IpAddr, Ipv4Addr};

use engine::edit::{Draft, Order, Shape, SvcKeys};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::rdata::SvcKey;
use wire::{Class, Flags, Full, Header, Message, NameBuf, Question, Rtype, Section, Ttl, Writer};

use crate::common;
use common::name;

#[derive(Clone, Debug)]
struct Entry {
    section: Section,
    owner: NameBuf,
    rtype: Rtype,
    ttl: u32,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    Octets(Vec<u8>),
    /// Octets, a name that may be compressed, octets.
    Named(Vec<u8>, NameBuf, Vec<u8>),
    /// The parameters of a service at the owner itself.
    Service(Vec<(u16, Vec<u8>)>),
}

impl Entry {
    fn address(&self) -> Option<IpAddr> {
        match &self.data {
            Data::Octets(octets) if self.rtype == Rtype::A => {
                Some(<[u8; 4]>::try_from(octets.as_slice()).expect("four octets").into())
            }
            Data::Octets(octets) if self.rtype == Rtype::AAAA => {
                Some(<[u8; 16]>::try_from(octets.as_slice()).expect("sixteen octets").into())
            }
            _ => None,
        }
    }

    fn covers(&self) -> Option<Rtype> {
        match &self.data {
            Data::Octets(octets) if self.rtype == Rtype::RRSIG => {
                Some(Rtype(u16::from_be_bytes([octets[0], octets[1]])))
            }
            _ => None,
        }
    }

    fn is_answer(&self) -> bool {
        self.section == Section::Answer
    }
}

#[derive(Clone, Debug)]
enum Edit {
    RemoveTypes(Vec<Rtype>),
    KeepTypes(Vec<Rtype>),
    /// Those whose last octet is even.
    RemoveEven,
    Limit(u16),
    Rotate(u64),
    /// By the last octet.
    Sort,
    Flatten,
    Strip(Vec<u16>),
    TtlMax(u32),
}

fn last_octet(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(v4) => v4.octets()[3],
        IpAddr::V6(v6) => v6.octets()[15],
    }
}

/// Applies the edit to a list of records, in the simplest way there is.
fn naive(edit: &Edit, qname: &NameBuf, entries: &mut Vec<Entry>) {
    match edit {
        Edit::RemoveTypes(types) => entries.retain(|entry| {
            !types.contains(&entry.rtype) && !entry.covers().is_some_and(|covered| types.contains(&covered))
        }),
        Edit::KeepTypes(types) => {
            let stays =
                |rtype: Rtype| [Rtype::CNAME, Rtype::DNAME].contains(&rtype) || types.contains(&rtype);
            entries.retain(|entry| {
                !entry.is_answer() || stays(entry.rtype) || entry.covers().is_some_and(stays)
            });
        }
        Edit::RemoveEven => {
            let goes =
                |entry: &Entry| entry.address().is_some_and(|address| last_octet(address).is_multiple_of(2));
            let lost: Vec<Rtype> = entries.iter().filter(|e| goes(e)).map(|e| e.rtype).collect();
            entries.retain(|entry| !goes(entry) && !entry.covers().is_some_and(|c| lost.contains(&c)));
        }
        Edit::Limit(limit) => {
            for rtype in [Rtype::A, Rtype::AAAA] {
                let of_type = |entry: &Entry| entry.is_answer() && entry.rtype == rtype;
                let count = entries.iter().filter(|entry| of_type(entry)).count();
                if count <= usize::from(*limit) {
                    continue;
                }
                let mut seen = 0;
                entries.retain(|entry| {
                    if entry.is_answer() && entry.covers() == Some(rtype) {
                        return false;
                    }
                    seen += u16::from(of_type(entry));
                    !of_type(entry) || seen <= *limit
                });
            }
        }
        Edit::Rotate(_) | Edit::Sort => {
            let at: Vec<usize> = (0..entries.len())
                .filter(|&i| entries[i].is_answer() && entries[i].address().is_some())
                .collect();
            let same = |a: &usize, b: &usize| {
                entries[*a].rtype == entries[*b].rtype && entries[*a].owner == entries[*b].owner
            };
            let groups: Vec<Vec<usize>> = at.chunk_by(same).map(<[usize]>::to_vec).collect();
            for group in &groups {
                let mut data: Vec<(IpAddr, Data)> = group
                    .iter()
                    .map(|&i| (entries[i].address().expect("an address"), entries[i].data.clone()))
                    .collect();
                match edit {
                    Edit::Rotate(by) => {
                        let by = *by as usize % data.len();
                        data.rotate_left(by);
                    }
                    _ => data.sort_by_key(|(address, _)| last_octet(*address)),
                }
                for (&i, (_, data)) in group.iter().zip(data) {
                    entries[i].data = data;
                }
            }
        }
        Edit::Flatten => {
            let is_alias = |e: &Entry| e.is_answer() && [Rtype::CNAME, Rtype::DNAME].contains(&e.rtype);
            let Some(ttl) = entries.iter().filter(|e| is_alias(e)).map(|e| e.ttl).min() else { return };
            entries.retain(|e| !(is_alias(e) || e.is_answer() && e.rtype == Rtype::RRSIG));
            for entry in entries.iter_mut().filter(|entry| entry.is_answer()) {
                entry.owner = *qname;
                entry.ttl = entry.ttl.min(ttl);
            }
        }
        Edit::Strip(keys) => {
            let goes = |key: u16| keys.contains(&key) || (key == 2 && keys.contains(&1));
            let mut changed = false;
            for entry in entries.iter_mut() {
                let Data::Service(params) = &mut entry.data else { continue };
                changed |= params.iter().any(|(key, _)| goes(*key));
                params.retain(|(key, _)| !goes(*key));
                for (_, value) in params.iter_mut().filter(|(key, _)| *key == 0) {
                    *value = value
                        .chunks(2)
                        .filter(|pair| !goes(u16::from_be_bytes([pair[0], pair[1]])))
                        .flatten()
                        .copied()
                        .collect();
                }
                params.retain(|(key, value)| *key != 0 || !value.is_empty());
            }
            if changed {
                entries.retain(|e| !matches!(e.covers(), Some(Rtype::SVCB | Rtype::HTTPS)));
            }
        }
        Edit::TtlMax(max) => entries.iter_mut().for_each(|entry| entry.ttl = entry.ttl.min(*max)),
    }
}

/// Applies the edit to the message.
fn ours(edit: &Edit, draft: &mut Draft<'_>) {
    let by_last = |address: IpAddr| u32::from(last_octet(address));
    match edit {
        Edit::RemoveTypes(types) => draft.remove_types(types).map(drop),
        Edit::KeepTypes(types) => draft.keep_types(types).map(drop),
        Edit::RemoveEven => draft.remove_addresses(|address| last_octet(address).is_multiple_of(2)).map(drop),
        Edit::Limit(limit) => draft.limit(*limit).map(drop),
        Edit::Rotate(by) => {
            draft.order(Order::<fn(IpAddr) -> u32>::Rotated(*by));
            Ok(())
        }
        Edit::Sort => {
            draft.order(Order::Ranked(by_last));
            Ok(())
        }
        Edit::Flatten => draft.flatten().map(drop),
        Edit::Strip(keys) => {
            let keys = keys
                .iter()
                .fold(SvcKeys::default(), |keys, &key| keys.with(SvcKey(key)).expect("a key below 64"));
            draft.strip_params(keys).map(drop)
        }
        Edit::TtlMax(max) => {
            draft.change_ttls(|ttl| ttl.min(Ttl::new(*max)));
            Ok(())
        }
    }
    .expect("room");
}

fn service(params: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut octets = vec![0, 1, 0];
    for (key, value) in params {
        octets.extend(key.to_be_bytes());
        octets.extend((value.len() as u16).to_be_bytes());
        octets.extend(value);
    }
    octets
}

fn write(qname: &NameBuf, entries: &[Entry]) -> Vec<u8> {
    let mut out = vec![0; 65_535];
    let mut w = Writer::new(&mut out, 65_535, 7, Flags::QR);
    w.question(&Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN }).expect("room");
    for entry in entries {
        w.record(entry.section, entry.owner.as_name(), entry.rtype, Class::IN, Ttl::new(entry.ttl), |w| {
            match &entry.data {
                Data::Octets(octets) => w.bytes(octets),
                Data::Named(before, name, after) => {
                    w.bytes(before)?;
                    w.name(name.as_name())?;
                    w.bytes(after)
                }
                Data::Service(params) => w.bytes(&service(params)),
            }
        })
        .map_err(|Full| "room")
        .expect("room");
    }
    let len = w.finish();
    out.truncate(len);
    out
}

/// The same message without any compression.
fn plain(qname: &NameBuf, entries: &[Entry]) -> Vec<u8> {
    let count = |section| entries.iter().filter(|entry| entry.section == section).count() as u16;
    let header = Header {
        id: 7,
        flags: Flags::QR,
        questions: 1,
        answers: count(Section::Answer),
        authorities: count(Section::Authority),
        additionals: count(Section::Additional),
    };
    let mut out = header.to_bytes().to_vec();
    out.extend(qname.as_name().as_bytes());
    out.extend([0, 1, 0, 1]);
    for entry in entries {
        let data = match &entry.data {
            Data::Octets(octets) => octets.clone(),
            Data::Named(before, name, after) => [before, name.as_name().as_bytes(), after].concat(),
            Data::Service(params) => service(params),
        };
        out.extend(entry.owner.as_name().as_bytes());
        out.extend(entry.rtype.0.to_be_bytes());
        out.extend([0, 1]);
        out.extend(entry.ttl.to_be_bytes());
        out.extend((data.len() as u16).to_be_bytes());
        out.extend(data);
    }
    out
}

fn edited(bytes: &[u8], edits: &[Edit]) -> Vec<u8> {
    let message = Message::parse(bytes).expect("well formed");
    let (header, body_at) = (message.header, message.records_at());
    let mut buffer = bytes.to_vec();
    buffer.resize(65_535, 0xaa);
    let mut spare = vec![0x55; 65_535];
    let shape = Shape {
        body_at,
        octets: bytes.len() - body_at,
        counts: [header.answers, header.authorities, header.additionals],
    };
    let mut draft = Draft { message: &mut buffer, spare: &mut spare, shape };
    for edit in edits {
        ours(edit, &mut draft);
    }
    let Shape { octets, counts: [answers, authorities, additionals], .. } = draft.shape;
    let header = Header { answers, authorities, additionals, ..header };
    buffer.truncate(body_at + octets);
    buffer[..Header::LEN].copy_from_slice(&header.to_bytes());
    buffer
}

/// Edits the message of these records and compares it with the records edited.
fn check(qname: &NameBuf, entries: &[Entry], edits: &[Edit]) {
    use hickory_proto::op::Message as HickoryMessage;
    let mut expected = entries.to_vec();
    for edit in edits {
        naive(edit, qname, &mut expected);
    }
    let found = edited(&write(qname, entries), edits);
    Message::parse(&found).expect("we read it ourselves");
    let read = |bytes: &[u8]| HickoryMessage::from_vec(bytes).expect("hickory reads it");
    let (found_there, expected_there) = (read(&found), read(&plain(qname, &expected)));
    assert_eq!(format!("{found_there:?}"), format!("{expected_there:?}"), "{edits:?}");
    let there = domain::base::Message::from_octets(&found).expect("domain reads the header");
    let mut section = there.question().answer().expect("domain reads the question");
    let mut count = 0;
    loop {
        for record in &mut section {
            record.expect("domain reads each record");
            count += 1;
        }
        match section.next_section().expect("domain reads each section") {
            Some(next) => section = next,
            None => break,
        }
    }
    assert_eq!((count, section.pos()), (expected.len(), found.len()));
}

fn names() -> impl Strategy<Value = NameBuf> {
    prop::sample::select(vec![
        "www.example.org",
        "example.org",
        "a.example.org",
        "edge.example.net",
        "x.edge.example.net",
        "example.net",
        "ns1.example.com",
        "org",
    ])
    .prop_map(name)
}

fn services() -> impl Strategy<Value = Data> {
    let value = |key: u16| -> BoxedStrategy<(u16, Vec<u8>)> {
        match key {
            1 => Just((1, b"\x02h2\x02h3".to_vec())).boxed(),
            2 => Just((2, vec![])).boxed(),
            3 => Just((3, vec![1, 0xbb])).boxed(),
            4 => vec(any::<u8>(), 4).prop_map(|v| (4, v)).boxed(),
            5 => vec(any::<u8>(), 1..20).prop_map(|v| (5, v)).boxed(),
            _ => vec(any::<u8>(), 32).prop_map(|v| (6, v)).boxed(),
        }
    };
    let keys = prop_oneof![
        Just(vec![1]),
        Just(vec![1, 2, 4]),
        Just(vec![4, 6]),
        Just(vec![1, 3, 4, 5, 6]),
        Just(vec![5]),
        Just(vec![]),
    ];
    (keys, any::<bool>()).prop_flat_map(move |(keys, lists)| {
        let listed: Vec<u8> =
            keys.iter().filter(|&&key| key != 2).flat_map(|key: &u16| key.to_be_bytes()).collect();
        let params: Vec<_> = keys.into_iter().map(value).collect();
        params.prop_map(move |mut params| {
            if lists && !listed.is_empty() {
                params.insert(0, (0, listed.clone()));
            }
            Data::Service(params)
        })
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let octets = |len: usize| vec(any::<u8>(), len).prop_map(Data::Octets);
    let data = prop_oneof![
        4 => octets(4).prop_map(|data| (Rtype::A, data)),
        3 => octets(16).prop_map(|data| (Rtype::AAAA, data)),
        3 => names().prop_map(|name| (Rtype::CNAME, Data::Named(vec![], name, vec![]))),
        1 => names().prop_map(|name| (Rtype::NS, Data::Named(vec![], name, vec![]))),
        1 => names().prop_map(|name| (Rtype::MX, Data::Named(vec![0, 10], name, vec![]))),
        1 => names().prop_map(|name| {
            (Rtype::SOA, Data::Named(vec![0], name, vec![0; 20]))
        }),
        3 => services().prop_map(|data| (Rtype::HTTPS, data)),
        1 => Just((Rtype::TXT, Data::Octets(b"\x04text".to_vec()))),
    ];
    let section = prop_oneof![
        3 => Just(Section::Answer),
        1 => Just(Section::Authority),
        1 => Just(Section::Additional)
    ];
    (section, names(), data, 0..=100_000_u32).prop_map(|(section, owner, (rtype, data), ttl)| Entry {
        section,
        owner,
        rtype,
        ttl,
        data,
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    let types = vec(
        prop::sample::select(vec![Rtype::A, Rtype::AAAA, Rtype::CNAME, Rtype::NS, Rtype::MX, Rtype::HTTPS]),
        1..3,
    );
    let keys = vec(prop::sample::select(vec![1_u16, 2, 4, 5, 6]), 1..4);
    prop_oneof![
        types.clone().prop_map(Edit::RemoveTypes),
        types.prop_map(Edit::KeepTypes),
        Just(Edit::RemoveEven),
        (0..4_u16).prop_map(Edit::Limit),
        any::<u64>().prop_map(Edit::Rotate),
        Just(Edit::Sort),
        Just(Edit::Flatten),
        keys.prop_map(Edit::Strip),
        (0..100_000_u32).prop_map(Edit::TtlMax),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_edited_message_holds_the_edited_records(
        qname in names(),
        mut entries in vec(entry(), 0..14),
        edits in vec(edit(), 1..5),
    ) {
        entries.sort_by_key(|entry| entry.section as u8);
        check(&qname, &entries, &edits);
    }
}

fn a(owner: &str, last: u8) -> Entry {
    Entry {
        section: Section::Answer,
        owner: name(owner),
        rtype: Rtype::A,
        ttl: 300,
        data: Data::Octets(Ipv4Addr::new(192, 0, 2, last).octets().to_vec()),
    }
}

fn signature(owner: &str, covered: Rtype) -> Entry {
    let mut data = covered.0.to_be_bytes().to_vec();
    data.extend([13, 2, 0, 0, 1, 44, 0x70, 0, 0, 0, 0x60, 0, 0, 0, 0x12, 0x34]);
    data.extend(name("example.org").as_name().as_bytes());
    data.extend([7; 64]);
    Entry {
        section: Section::Answer,
        owner: name(owner),
        rtype: Rtype::RRSIG,
        ttl: 300,
        data: Data::Octets(data),
    }
}

#[test]
fn signatures_go_with_what_they_sign() {
    let qname = name("www.example.org");
    let cname = Entry {
        rtype: Rtype::CNAME,
        data: Data::Named(vec![], name("edge.example.net"), vec![]),
        ..a("www.example.org", 0)
    };
    let entries = [
        cname,
        signature("www.example.org", Rtype::CNAME),
        a("edge.example.net", 2),
        a("edge.example.net", 3),
        signature("edge.example.net", Rtype::A),
    ];
    let left = |edit: Edit| {
        let bytes = edited(&write(&qname, &entries), &[edit]);
        let message = Message::parse(&bytes).expect("well formed");
        message.records().map(|record| record.rtype.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left(Edit::RemoveTypes(vec![Rtype::A])), "CNAME RRSIG");
    assert_eq!(left(Edit::KeepTypes(vec![Rtype::AAAA])), "CNAME RRSIG");
    assert_eq!(left(Edit::RemoveEven), "CNAME RRSIG A");
    assert_eq!(left(Edit::Limit(1)), "CNAME RRSIG A");
    assert_eq!(left(Edit::Limit(2)), "CNAME RRSIG A A RRSIG");
    assert_eq!(left(Edit::Flatten), "A A");
}

#[test]
fn what_does_not_fit_is_an_error_and_leaves_no_half() {
    let qname = name("www.example.org");
    let alias = Entry {
        rtype: Rtype::CNAME,
        data: Data::Named(vec![], name("edge.example.net"), vec![]),
        ..a("www.example.org", 0)
    };
    // An owner in full: no octets can be moved in place of it.
    let bytes = write(&qname, &[alias, a("other.example.com", 1)]);
    let body_at = Message::parse(&bytes).expect("well formed").records_at();
    let mut buffer = bytes.clone();
    let mut spare = vec![0; body_at + 10];
    let shape = Shape { body_at, octets: bytes.len() - body_at, counts: [2, 0, 0] };
    let mut draft = Draft { message: &mut buffer, spare: &mut spare, shape };
    assert_eq!(draft.flatten(), Err(Full));
    assert_eq!(draft.shape, shape);
    assert_eq!(buffer, bytes);
}
