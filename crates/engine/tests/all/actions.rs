//! Steps that make and change answers, and those that change what upstreams are sent.

use std::net::Ipv4Addr;
use std::sync::Arc;

use engine::edit::SvcKeys;
use engine::ops::answer::{Block, BlockWith, Build, Listed, Respond};
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::edit::{Edit, Instead, Rebind, Selection};
use engine::ops::forward::ForwardStep;
use engine::ops::outgoing::{Change, OptionChange, OutFlag, SubnetChange};
use engine::program::Op;
use engine::records::{Records, RecordsBuilder};
use engine::reverse::ReverseTable;
use engine::{ClientSubnet, OutQuery, PoolId};
use sets::{AddressSet, AddressSetBuilder, BlocklistBuilder, NameSetBuilder, Treatment, Trigger};
use wire::rdata::SvcKey;
use wire::{Class, EdeCode, Flags, Message, OptionCode, Rcode, Rtype, Section, Ttl, Writer};

use crate::common;
use common::{Ask, KEY, Server, client, gate, name, negative, seen, upstream, with_address};

const TTL: Ttl = Ttl::new(30);

fn set(prefixes: &[(&str, u8)]) -> Arc<AddressSet> {
    let mut builder = AddressSetBuilder::new();
    for (address, length) in prefixes {
        assert!(builder.prefix(address.parse().expect("an address"), *length));
    }
    Arc::new(builder.compile())
}

fn forward() -> Op {
    Op::Forward(ForwardStep { pool: PoolId(0), members: 0, forwards_client_subnet: false, trusts_ad: true })
}

/// A server that asks upstream and then takes these steps.
fn edits(edits: Vec<Edit>) -> Server {
    Server::with(gate(), |_| std::iter::once(forward()).chain(edits.into_iter().map(Op::Edit)).collect())
}

fn answers(build: Build) -> Server {
    Server::with(gate(), |_| vec![Op::Answer(build), forward()])
}

/// Answer records as `TYPE data`.
fn shown(reply: &[u8]) -> Vec<String> {
    let message = Message::parse(reply).expect("well formed");
    message
        .records()
        .filter(|record| record.section == Section::Answer)
        .map(|record| {
            let data = wire::rdata::display(record.rtype, reply, record.rdata_at..record.end());
            format!("{} {} {data}", record.owner, record.rtype)
        })
        .collect()
}

fn block(with: BlockWith) -> Server {
    answers(Build::Block(Block {
        with,
        ttl: TTL,
        ede: Some((EdeCode::FILTERED, "ask the operator".into())),
        authoritative: false,
        has_soa: true,
        continues: false,
    }))
}

#[test]
fn a_blocked_name_has_the_addresses_it_was_given_and_nothing_else() {
    let v4 = [Ipv4Addr::new(192, 0, 2, 80), Ipv4Addr::new(192, 0, 2, 81)];
    let mut server = block(BlockWith::Addresses(v4.into(), Box::new([])));
    let got = seen(&server.ask(&Ask::new("ads.example", Rtype::A)).answered());
    assert_eq!(got.answers, [(1, 30, vec![192, 0, 2, 80]), (1, 30, vec![192, 0, 2, 81])]);
    assert_eq!(got.ede, None, "no EDNS, no EDE");
    for qtype in [Rtype::AAAA, Rtype::HTTPS, Rtype::MX] {
        let got = seen(&server.ask(&Ask::new("ads.example", qtype).edns(1232)).answered());
        assert_eq!((got.rcode, got.answers.len()), (Rcode::NOERROR, 0), "{qtype}");
        assert_eq!((got.authorities, got.ede), (vec![(6, 30)], Some(17)), "{qtype}");
    }
}

#[test]
fn a_blocked_name_gets_the_rcode_it_was_given() {
    for (rcode, has_soa) in
        [(Rcode::NXDOMAIN, true), (Rcode::NOERROR, true), (Rcode::REFUSED, false), (Rcode::SERVFAIL, false)]
    {
        let mut server = block(BlockWith::Rcode(rcode));
        let reply = server.ask(&Ask::new("ads.example", Rtype::A).edns(1232)).answered();
        let got = seen(&reply);
        assert_eq!((got.rcode, got.answers.len(), got.authorities.len()), (rcode, 0, usize::from(has_soa)));
        let edns = Message::parse(&reply).expect("well formed").edns.expect("EDNS");
        assert_eq!(edns.option(OptionCode::EDE), Some(&b"\0\x11ask the operator"[..]));
    }
}

#[test]
fn a_reply_written_in_the_configuration_names_the_question() {
    let mut body = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\x03cdn\xc0\x0c".to_vec();
    body.extend(b"\x03cdn\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07");
    let respond = Respond {
        authoritative: true,
        counts: [2, 0, 0],
        body: body.into(),
        relative_octets_max: 4,
        ..Respond::default()
    };
    let mut server = answers(Build::Respond(respond));
    let reply = server.ask(&Ask::new("www.example.org", Rtype::A)).answered();
    assert_eq!(
        shown(&reply),
        ["www.example.org. CNAME cdn.www.example.org.", "cdn.www.example.org. A 192.0.2.7"]
    );
    assert!(seen(&reply).flags.has(Flags::AA));
    let long = format!("{}.{}.{}.{}", "a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(60));
    let got = seen(&server.ask(&Ask::new(&long, Rtype::A)).answered());
    assert_eq!(got.rcode, Rcode::SERVFAIL, "the alias would have 257 octets");
}

fn records() -> Arc<Records> {
    let mut builder = RecordsBuilder::new();
    let mut add = |owner: &str, rtype: Rtype, text: &str| {
        let mut rdata = vec![];
        wire::rdata::parse_text(rtype, text, None, &mut rdata).expect("record data");
        builder.add(name(owner).as_name(), rtype, TTL, &rdata);
    };
    add("example.org", Rtype::SOA, "ns.example.org. admin.example.org. 1 2 3 4 10");
    add("www.example.org", Rtype::A, "192.0.2.1");
    add("www.example.org", Rtype::A, "192.0.2.2");
    add("alias.example.org", Rtype::CNAME, "WWW.example.org.");
    add("deep.example.org", Rtype::CNAME, "alias.example.org.");
    add("out.example.org", Rtype::CNAME, "www.example.net.");
    add("gone.example.org", Rtype::CNAME, "nothing.here.example.org.");
    add("wild.example.org", Rtype::CNAME, "any.w.example.org.");
    add("loop.example.org", Rtype::CNAME, "loop.example.org.");
    add("*.w.example.org", Rtype::A, "192.0.2.3");
    // What stands for other names is no zone.
    add("*.w.example.org", Rtype::SOA, "ns.example.org. admin.example.org. 1 2 3 4 5");
    add("a.b.w.example.org", Rtype::A, "192.0.2.4");
    add("example.org", Rtype::NS, "ns.example.org.");
    add("example.org", Rtype::NS, "ns.dns.example.net.");
    add("example.org", Rtype::NS, "ns2.dns.example.net.");
    add("mail.example.org", Rtype::MX, "10 example.org.");
    add("mail.example.org", Rtype::MX, "20 mx.mail.example.org.");
    add("*.mail.example.org", Rtype::MX, "10 mx.mail.example.org.");
    add("*.mail.example.org", Rtype::PTR, "any.*.mail.example.org.");
    add("1.2.0.192.in-addr.arpa", Rtype::PTR, "www.example.arpa.");
    add("printer.example", Rtype::TXT, "\"third floor\"");
    add("svc.example", Rtype(65_400), "\\# 2 0102");
    Arc::new(builder.compile(KEY))
}

/// Returns how long a message is whose names all are looked up among those before them (RFC 1035
/// §4.1.4).
fn octets_when_written_one_by_one(reply: &[u8]) -> usize {
    let message = Message::parse(reply).expect("a message");
    let mut buffer = vec![0; 65_535];
    let mut writer = Writer::new(&mut buffer, 65_535, 1, Flags::QR);
    writer.question(&message.question.expect("a question")).expect("room");
    for record in message.records() {
        let owner = record.owner.expand().expect("a name");
        let (mut names, mut at, behind) = match record.rtype {
            Rtype::NS | Rtype::CNAME | Rtype::PTR => (1, 0, 0),
            Rtype::MX => (1, 2, 0),
            Rtype::SOA => (2, 0, 20),
            _ => (0, record.rdata.len(), 0),
        };
        let rdata = record.rdata;
        let mut write = |writer: &mut Writer<'_>| {
            writer.bytes(&rdata[..at])?;
            while names > 0 {
                let name = record.name_in_rdata(at);
                writer.name(name.expand().expect("a name").as_name())?;
                at = name.skip().expect("a name") - record.rdata_at;
                names -= 1;
            }
            writer.bytes(&rdata[rdata.len() - behind..])
        };
        let ttl = record.ttl();
        writer
            .record(record.section, owner.as_name(), record.rtype, Class::IN, ttl, &mut write)
            .expect("room");
    }
    writer.finish()
}

#[test]
fn a_rule_on_addresses_leaves_the_aliases_that_lead_to_them() {
    let with = |treatment: Treatment| {
        let mut list = BlocklistBuilder::new(&KEY);
        let mut zone = list.zone();
        assert!(zone.rule(Trigger::Answer([192, 0, 2, 0].into(), 24), Some(treatment), 1));
        list.add_zone(zone.compile());
        let list = Arc::new(list.compile(Arc::new(NameSetBuilder::new(&KEY).compile()), vec![], vec![]));
        let with = BlockWith::Rcode(Rcode::NXDOMAIN);
        let block =
            Block { with, ttl: TTL, ede: None, authoritative: true, has_soa: false, continues: false };
        let listed = Listed { list, block, overrides: false, by_address: true, labels: None };
        Server::with(gate(), |_| {
            let found = Build::Records { set: records(), continues: true };
            vec![Op::Answer(found), Op::Answer(Build::Listed(listed))]
        })
    };
    let aliases = ["deep.example.org. CNAME alias.example.org.", "alias.example.org. CNAME WWW.example.org."];
    for (rcode, name, expected) in [
        (Rcode::NXDOMAIN, "deep.example.org", &aliases[..]),
        (Rcode::NOERROR, "alias.example.org", &aliases[1..]),
        (Rcode::NXDOMAIN, "www.example.org", &aliases[2..]),
    ] {
        let reply = with(Treatment::Rcode(rcode)).ask(&Ask::new(name, Rtype::A)).answered();
        assert_eq!(seen(&reply).rcode, rcode);
        assert_eq!(shown(&reply), expected, "{name}");
    }
}

#[test]
fn records_answer_as_a_zone_would() {
    let mut server = answers(Build::Records { set: records(), continues: false });
    let mut check = |text: &str, qtype: Rtype, rcode: Rcode, expected: &[&str], soa: Option<u32>| {
        let reply = server.ask(&Ask::new(text, qtype)).answered();
        let got = seen(&reply);
        assert_eq!(
            (got.rcode, shown(&reply)),
            (rcode, expected.iter().map(|t| (*t).to_owned()).collect()),
            "{text}"
        );
        assert_eq!(got.authorities, soa.map(|ttl| (6, ttl)).into_iter().collect::<Vec<_>>(), "{text}");
        assert!(got.flags.has(Flags::AA));
        assert!(reply.len() <= octets_when_written_one_by_one(&reply), "{text} {qtype:?}: {reply:02x?}");
    };
    let servers = ["ns.example.org.", "ns.dns.example.net.", "ns2.dns.example.net."];
    let servers = servers.map(|server| format!("example.org. NS {server}"));
    check("example.org", Rtype::NS, Rcode::NOERROR, &servers.each_ref().map(String::as_str), None);
    let soa = "example.org. SOA ns.example.org. admin.example.org. 1 2 3 4 10";
    check("example.org", Rtype::SOA, Rcode::NOERROR, &[soa], None);
    let mail = ["mail.example.org. MX 10 example.org.", "mail.example.org. MX 20 mx.mail.example.org."];
    check("mail.example.org", Rtype::MX, Rcode::NOERROR, &mail, None);
    let wild = "a.b.mail.example.org. MX 10 mx.mail.example.org.";
    check("a.b.mail.example.org", Rtype::MX, Rcode::NOERROR, &[wild], None);
    let wild = "b.mail.example.org. PTR any.*.mail.example.org.";
    check("b.mail.example.org", Rtype::PTR, Rcode::NOERROR, &[wild], None);
    let pointer = "1.2.0.192.in-addr.arpa. PTR www.example.arpa.";
    check("1.2.0.192.in-addr.arpa", Rtype::PTR, Rcode::NOERROR, &[pointer], None);
    let both = ["www.example.org. A 192.0.2.1", "www.example.org. A 192.0.2.2"];
    check("www.example.org", Rtype::A, Rcode::NOERROR, &both, None);
    check("www.example.org", Rtype::AAAA, Rcode::NOERROR, &[], Some(10));
    check("nowhere.example.org", Rtype::A, Rcode::NXDOMAIN, &[], Some(10));
    let alias = "alias.example.org. CNAME WWW.example.org.";
    let cased = ["WWW.example.org. A 192.0.2.1", "WWW.example.org. A 192.0.2.2"];
    check("alias.example.org", Rtype::A, Rcode::NOERROR, &[alias, cased[0], cased[1]], None);
    check("alias.example.org", Rtype::CNAME, Rcode::NOERROR, &[alias], None);
    let deep = "deep.example.org. CNAME alias.example.org.";
    check("deep.example.org", Rtype::A, Rcode::NOERROR, &[deep, alias, cased[0], cased[1]], None);
    check("deep.example.org", Rtype::MX, Rcode::NOERROR, &[deep, alias], Some(10));
    check("out.example.org", Rtype::A, Rcode::NOERROR, &["out.example.org. CNAME www.example.net."], None);
    check(
        "gone.example.org",
        Rtype::A,
        Rcode::NXDOMAIN,
        &["gone.example.org. CNAME nothing.here.example.org."],
        Some(10),
    );
    check(
        "wild.example.org",
        Rtype::A,
        Rcode::NOERROR,
        &["wild.example.org. CNAME any.w.example.org.", "any.w.example.org. A 192.0.2.3"],
        None,
    );
    check("x.y.w.example.org", Rtype::A, Rcode::NOERROR, &["x.y.w.example.org. A 192.0.2.3"], None);
    check("x.w.example.org", Rtype::AAAA, Rcode::NOERROR, &[], Some(10));
    // RFC 4592 §2.2.2: a name that exists for another's sake ends the wildcard.
    check("b.w.example.org", Rtype::A, Rcode::NOERROR, &[], Some(10));
    check("c.b.w.example.org", Rtype::A, Rcode::NXDOMAIN, &[], Some(10));
    check("printer.example", Rtype::TXT, Rcode::NOERROR, &["printer.example. TXT \"third floor\""], None);
    check("printer.example", Rtype::A, Rcode::NOERROR, &[], Some(60));
    check("svc.example", Rtype(65_400), Rcode::NOERROR, &["svc.example. TYPE65400 \\# 2 0102"], None);
    // Names that the set does not know are somebody else's.
    for text in ["example", "x.printer.example", "example.net"] {
        let _ = server.ask(&Ask::new(text, Rtype::A)).deferred();
    }
}

#[test]
fn without_data_there_is_no_soa_if_none_is_to_be_made_up() {
    let mut builder = RecordsBuilder::new();
    builder.add(name("printer.example").as_name(), Rtype::A, TTL, &[192, 0, 2, 1]);
    builder.leave_out_soa();
    let mut server = answers(Build::Records { set: Arc::new(builder.compile(KEY)), continues: false });
    let got = seen(&server.ask(&Ask::new("printer.example", Rtype::TXT)).answered());
    assert_eq!((got.rcode, got.authorities), (Rcode::NOERROR, vec![]));
}

#[test]
fn a_circle_of_aliases_ends() {
    let mut server = answers(Build::Records { set: records(), continues: false });
    let reply = server.ask(&Ask::new("loop.example.org", Rtype::A).edns(4096)).answered();
    assert_eq!(shown(&reply).len(), 16);
}

/// An upstream's answer of these addresses at the end of an alias.
fn aliased(ask: &Ask, addresses: &[[u8; 4]]) -> Vec<u8> {
    upstream(ask, Rcode::NOERROR, |w| {
        let (owner, target) = (ask.name, name("edge.example.net"));
        w.record(Section::Answer, owner.as_name(), Rtype::CNAME, Class::IN, Ttl::new(60), |w| {
            w.name(target.as_name())
        })
        .expect("room");
        for address in addresses {
            w.record(Section::Answer, target.as_name(), Rtype::A, Class::IN, Ttl::new(300), |w| {
                w.bytes(address)
            })
            .expect("room");
        }
    })
}

fn www() -> Ask {
    Ask::new("www.example.org", Rtype::A)
}

#[test]
fn an_answer_that_loses_its_records_becomes_one_without_data() {
    let mut server = edits(vec![Edit::Remove(Selection::Types([Rtype::A].into()))]);
    let got = seen(&server.fetch(&www(), &with_address(&www(), 300, [192, 0, 2, 1])));
    assert_eq!((got.rcode, got.answers.len(), got.authorities), (Rcode::NOERROR, 0, vec![(6, 300)]));
    // One that had none is left alone.
    let got = seen(&server.fetch(&www(), &negative(&www(), Rcode::NXDOMAIN, 600, 60)));
    assert_eq!((got.rcode, got.authorities), (Rcode::NXDOMAIN, vec![(6, 600)]));
}

#[test]
fn addresses_stay_or_go_by_set() {
    let inside = || set(&[("192.0.2.0", 25)]);
    let addresses = [[192, 0, 2, 1], [192, 0, 2, 200]];
    let mut server = edits(vec![Edit::Remove(Selection::Addresses(inside()))]);
    let reply = server.fetch(&www(), &aliased(&www(), &addresses));
    assert_eq!(
        shown(&reply),
        ["www.example.org. CNAME edge.example.net.", "edge.example.net. A 192.0.2.200"]
    );
    let mut server = edits(vec![Edit::Keep(Selection::Addresses(inside())), Edit::Flatten]);
    let reply = server.fetch(&www(), &aliased(&www(), &addresses));
    assert_eq!(shown(&reply), ["www.example.org. A 192.0.2.1"]);
    assert_eq!(seen(&reply).answers[0].1, 60, "no longer than the alias");
}

#[test]
fn addresses_are_put_in_order() {
    let addresses = [[192, 0, 2, 1], [198, 51, 100, 1], [203, 0, 113, 1]];
    let order = |edits_: Vec<Edit>, from: &str| {
        let mut server = edits(edits_);
        server.client = client(from);
        let reply = server.fetch(&www(), &aliased(&www(), &addresses));
        seen(&reply).answers[1..].iter().map(|(_, _, data)| data[0]).collect::<Vec<_>>()
    };
    let preference = || [set(&[("203.0.113.0", 24)]), set(&[("198.51.100.0", 24)])].into();
    assert_eq!(order(vec![Edit::Sort(preference())], "192.0.2.9"), [203, 198, 192]);
    assert_eq!(order(vec![Edit::SortByClient], "198.51.100.77"), [198, 192, 203]);
    assert_eq!(order(vec![Edit::SortByClient], "192.0.2.9"), [192, 198, 203]);
    assert_eq!(order(vec![Edit::Sort(preference()), Edit::Limit(1)], "192.0.2.9"), [203]);
    let mut firsts = std::collections::BTreeSet::new();
    let mut server = edits(vec![Edit::Shuffle]);
    for id in 0..64 {
        let ask = Ask { id, ..www() };
        let reply = server.fetch(&ask, &aliased(&www(), &addresses));
        let order: Vec<u8> = seen(&reply).answers[1..].iter().map(|(_, _, data)| data[0]).collect();
        assert!(
            [[192, 198, 203], [198, 203, 192], [203, 192, 198]].contains(&[order[0], order[1], order[2]])
        );
        firsts.insert(order[0]);
    }
    assert_eq!(firsts.len(), 3, "each comes first now and then");
}

#[test]
fn jitter_shortens_all_ttls_of_an_answer_by_one_share() {
    let mut server = edits(vec![Edit::Jitter(20)]);
    let mut ttls = std::collections::BTreeSet::new();
    for id in 0..200 {
        let ask = Ask { id, ..www() };
        let got = seen(&server.fetch(&ask, &aliased(&www(), &[[192, 0, 2, 1], [192, 0, 2, 2]])));
        let [alias, first, second] = got.answers.try_into().expect("three records");
        assert_eq!((alias.1, first.1), (first.1 / 5, second.1));
        assert!((240..=300).contains(&first.1), "{}", first.1);
        ttls.insert(first.1);
    }
    assert!(ttls.len() > 10 && ttls.contains(&240) && ttls.contains(&300), "{ttls:?}");
}

fn service(ask: &Ask) -> Vec<u8> {
    upstream(ask, Rcode::NOERROR, |w| {
        let mut rdata = vec![];
        let text = "1 . alpn=h2,h3 ipv4hint=10.0.0.1 ech=AAAA ipv6hint=2001:db8::1";
        wire::rdata::parse_text(Rtype::HTTPS, text, None, &mut rdata).expect("record data");
        w.record(Section::Answer, ask.name.as_name(), Rtype::HTTPS, Class::IN, TTL, |w| w.bytes(&rdata))
            .expect("room");
    })
}

#[test]
fn parameters_of_services_are_stripped() {
    let keys = |keys: &[SvcKey]| {
        keys.iter().fold(SvcKeys::default(), |all, key| all.with(*key).expect("a key below 64"))
    };
    let ask = Ask::new("www.example.org", Rtype::HTTPS);
    let mut server = edits(vec![Edit::StripParams(keys(&[SvcKey::ECH, SvcKey::ALPN]))]);
    let reply = server.fetch(&ask, &service(&ask));
    assert_eq!(shown(&reply), ["www.example.org. HTTPS 1 . ipv4hint=10.0.0.1 ipv6hint=2001:db8::1"]);
}

#[test]
fn private_addresses_from_outside_are_refused_or_removed() {
    let private = || set(&[("10.0.0.0", 8), ("fc00::", 7)]);
    let rebind = |instead| vec![Edit::Rebind(Rebind { private: private(), except: None, instead })];
    let mixed = [[192, 0, 2, 1], [10, 0, 0, 1]];
    let mut filter = edits(rebind(Instead::WithoutAddresses));
    let reply = filter.fetch(&www().edns(1232), &aliased(&www(), &mixed));
    let got = seen(&reply);
    assert_eq!((got.answers.len(), got.ede), (2, Some(15)));
    let got = seen(&filter.fetch(&www().edns(1232), &aliased(&www(), &[[10, 0, 0, 1]])));
    assert_eq!((got.answers.len(), got.authorities.len(), got.ede), (1, 1, Some(15)));
    let got = seen(&filter.fetch(&www().edns(1232), &aliased(&www(), &[[192, 0, 2, 1]])));
    assert_eq!((got.answers.len(), got.ede), (2, None));
    for rcode in [Rcode::NXDOMAIN, Rcode::SERVFAIL] {
        let mut server = edits(rebind(Instead::Code(rcode)));
        let got = seen(&server.fetch(&www().edns(1232), &aliased(&www(), &mixed)));
        assert_eq!((got.rcode, got.answers.len(), got.ede), (rcode, 0, Some(15)));
        let got = seen(&server.fetch(&www().edns(1232), &aliased(&www(), &[[192, 0, 2, 1]])));
        assert_eq!((got.rcode, got.answers.len()), (Rcode::NOERROR, 2));
    }
    // Owners that may have them: whatever the name asked for is an alias of.
    let except = |suffix: &str| {
        let mut builder = NameSetBuilder::new(&KEY);
        builder.name(name(suffix).as_name(), sets::Reach::ItselfAndBelow, 1);
        vec![Edit::Rebind(Rebind {
            private: private(),
            except: Some(Arc::new(builder.compile())),
            instead: Instead::WithoutAddresses,
        })]
    };
    for (suffix, expected) in [("example.net", 3), ("example.org", 2)] {
        let mut server = edits(except(suffix));
        let got = seen(&server.fetch(&www().edns(1232), &aliased(&www(), &mixed)));
        assert_eq!(got.answers.len(), expected, "{suffix}");
    }
    // IPv4 in IPv6, and hints.
    let ask = Ask::new("www.example.org", Rtype::AAAA);
    let mapped = upstream(&ask, Rcode::NOERROR, |w| {
        w.record(Section::Answer, ask.name.as_name(), Rtype::AAAA, Class::IN, TTL, |w| {
            w.bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1])
        })
        .expect("room");
    });
    assert_eq!(seen(&filter.fetch(&ask, &mapped)).answers.len(), 0);
    let ask = Ask::new("www.example.org", Rtype::HTTPS);
    let reply = filter.fetch(&ask, &service(&ask));
    assert_eq!(shown(&reply), ["www.example.org. HTTPS 1 . alpn=h2,h3 ech=AAAA"]);
    let mut whole = edits(rebind(Instead::WithoutRecords));
    let got = seen(&whole.fetch(&Ask::new("www.example.org", Rtype::HTTPS).edns(1232), &service(&ask)));
    assert_eq!((got.rcode, got.answers.len(), got.authorities.len()), (Rcode::NOERROR, 0, 1));
    assert_eq!(got.ede, Some(15));
    assert_eq!(seen(&whole.fetch(&www(), &aliased(&www(), &mixed))).answers.len(), 2);
}

#[test]
fn addresses_in_answers_are_found_by_reverse_look_up() {
    let table = Arc::new(ReverseTable::new(64, 1));
    let mut server = Server::with(gate(), |_| {
        vec![
            Op::Answer(Build::Reverse(Arc::clone(&table))),
            forward(),
            Op::Edit(Edit::Remember(Arc::clone(&table), 100)),
        ]
    });
    let reverse = Ask::new("7.2.0.192.in-addr.arpa", Rtype::PTR);
    let _ = server.ask(&reverse).deferred();
    server.fetch(&www(), &aliased(&www(), &[[192, 0, 2, 7]]));
    let reply = server.ask(&reverse).answered();
    assert_eq!(shown(&reply), ["7.2.0.192.in-addr.arpa. PTR www.example.org."]);
    server.wait(90);
    assert_eq!(seen(&server.ask(&reverse).answered()).answers[0].1, 10);
    server.wait(10);
    let _ = server.ask(&reverse).deferred();
}

#[test]
fn a_reason_can_be_added_to_an_answer() {
    let mut server = edits(vec![Edit::Ede(EdeCode::FORGED_ANSWER, "this is a test".into())]);
    let reply = server.fetch(&www().edns(1232), &with_address(&www(), 300, [192, 0, 2, 1]));
    let edns = Message::parse(&reply).expect("well formed").edns.expect("EDNS");
    assert_eq!(edns.option(OptionCode::EDE), Some(&b"\0\x04this is a test"[..]));
}

/// What upstreams are sent after these changes.
fn sent(changes: Vec<Change>, ask: &Ask, from: &str) -> OutQuery {
    let mut server = Server::with(gate(), |_| {
        changes.into_iter().map(Op::Outgoing).chain(std::iter::once(forward())).collect()
    });
    server.client = client(from);
    let suspended = server.ask(ask).deferred();
    suspended.want().fetch().expect("a fetch").query.clone()
}

fn subnet(address: &str, prefix: u8) -> ClientSubnet {
    ClientSubnet::of(address.parse().expect("an address"), prefix)
}

#[test]
fn upstreams_are_told_the_subnet_that_the_policy_says() {
    let by_client =
        |keeps| SubnetChange::Client { ipv4: 24, ipv6: 56, keeps, private: set(&[("10.0.0.0", 8)]) };
    let told = |change, ask: &Ask, from| sent(vec![Change::Subnet(change)], ask, from).client_subnet;
    let own = www().option(8, &[0, 1, 16, 0, 203, 0]);
    let opted_out = www().option(8, &[0, 1, 0, 0]);
    assert_eq!(told(by_client(false), &www(), "192.0.2.200"), Some(subnet("192.0.2.0", 24)));
    assert_eq!(told(by_client(false), &www(), "2001:db8::1"), Some(subnet("2001:db8::", 56)));
    assert_eq!(told(by_client(false), &www(), "10.1.2.3"), None, "means nothing outside");
    assert_eq!(told(by_client(false), &own, "192.0.2.200"), Some(subnet("192.0.2.0", 24)));
    assert_eq!(told(by_client(true), &own, "192.0.2.200"), Some(subnet("203.0.0.0", 16)));
    assert_eq!(told(by_client(true), &opted_out, "192.0.2.200"), None, "RFC 7871 §7.1.2");
    assert_eq!(told(SubnetChange::Forward, &own, "192.0.2.200"), Some(subnet("203.0.0.0", 16)));
    assert_eq!(told(SubnetChange::Forward, &www(), "192.0.2.200"), None);
    assert_eq!(told(SubnetChange::Strip, &own, "192.0.2.200"), None);
    let fixed = || SubnetChange::Fixed {
        subnet: subnet("198.51.100.0", 24),
        for_aaaa: Some(subnet("2001:db8::", 32)),
        keeps: false,
    };
    assert_eq!(told(fixed(), &own, "192.0.2.1"), Some(subnet("198.51.100.0", 24)));
    assert_eq!(
        told(fixed(), &Ask::new("x.example", Rtype::AAAA), "192.0.2.1"),
        Some(subnet("2001:db8::", 32))
    );
    assert_eq!(sent(vec![], &own, "192.0.2.1").client_subnet, None, "as the group says");
}

#[test]
fn upstreams_are_sent_the_options_and_flags_that_the_policy_says() {
    let changes = || {
        vec![
            Change::Options(
                [
                    OptionChange::Set(b"\xfd\xe9\0\x02hi".as_slice().into()),
                    OptionChange::Forward(OptionCode(65_002)),
                ]
                .into(),
            ),
            Change::Flag(OutFlag::Dnssec, true),
            Change::Flag(OutFlag::CheckingDisabled, true),
            Change::Flag(OutFlag::Recursion, false),
            Change::Flag(OutFlag::LowerCase, true),
        ]
    };
    let ask = Ask::new("WWW.example.org", Rtype::A).option(65_002, b"me").option(65_003, b"not me");
    let query = sent(changes(), &ask, "192.0.2.1");
    assert_eq!(*query.options, *b"\xfd\xe9\0\x02hi\xfd\xea\0\x02me");
    assert!(query.wants_dnssec && query.checking_disabled && query.no_recursion);
    assert_eq!(query.qname.as_name().as_bytes(), b"\x03www\x07example\x03org\0");
    let plain = sent(vec![], &ask, "192.0.2.1");
    assert!(
        plain.options.is_empty() && !plain.wants_dnssec && !plain.checking_disabled && !plain.no_recursion
    );
    assert!(plain != query && plain.hash != query.hash);
    let without = sent(changes(), &Ask::new("www.example.org", Rtype::A), "192.0.2.1");
    assert!(without != query && without.hash != query.hash, "other options, another fetch");
}

#[test]
fn answers_for_one_subnet_are_not_given_to_another() {
    let mut server = Server::with(gate(), |cache| {
        let rules = CacheRules::default();
        let private = set(&[]);
        vec![
            Op::Outgoing(Change::Subnet(SubnetChange::Client { ipv4: 24, ipv6: 56, keeps: false, private })),
            Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: false }),
            forward(),
        ]
    });
    server.client = client("192.0.2.1");
    server.fetch(&www(), &with_address(&www(), 300, [192, 0, 2, 1]));
    server.client = client("192.0.2.99");
    assert_eq!(seen(&server.ask(&www()).answered()).answers.len(), 1, "the same subnet");
    server.client = client("198.51.100.1");
    let _ = server.ask(&www()).deferred();
}

#[test]
fn answers_with_dnssec_records_are_not_given_to_those_who_did_not_ask_for_them() {
    let mut server = Server::with(gate(), |cache| {
        let step = |cache| CacheStep { cache, rules: CacheRules::default(), view: 0, continues: false };
        vec![
            Op::SkipUnless(engine::program::Matcher::Qtype(engine::matchers::TypeSet::new([Rtype::A])), 1),
            Op::Outgoing(Change::Flag(OutFlag::Dnssec, true)),
            Op::Cache(step(Arc::clone(cache))),
            forward(),
        ]
    });
    server.fetch(&www(), &with_address(&www(), 300, [192, 0, 2, 1]));
    assert_eq!(seen(&server.ask(&www()).answered()).answers.len(), 1);
    let entries = server.cache.stats().entries;
    assert_eq!(entries, 1);
    assert_eq!(seen(&server.ask(&www().dnssec()).answered()).answers.len(), 1, "asked with DO all the same");
}

/// An upstream's reply with an address and these EDNS options.
fn with_options(ask: &Ask, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut buf = [0; 1024];
    let mut writer = Writer::new(&mut buf, 1024, 7, Flags::QR.with(Flags::RD).with(Flags::RA));
    let question = wire::Question { qname: ask.name.as_name(), qtype: ask.qtype, qclass: Class::IN };
    writer.question(&question).expect("room");
    writer
        .record(Section::Answer, ask.name.as_name(), Rtype::A, Class::IN, TTL, |w| w.bytes(&[192, 0, 2, 1]))
        .expect("room");
    writer
        .opt(1232, Rcode::NOERROR, false, |w| {
            options.iter().try_for_each(|(code, data)| w.option(OptionCode(*code), data))
        })
        .expect("room");
    let len = writer.finish();
    buf[..len].to_vec()
}

fn option(reply: &[u8], code: u16) -> Option<Vec<u8>> {
    let edns = Message::parse(reply).expect("well formed").edns?;
    edns.option(OptionCode(code)).map(<[u8]>::to_vec)
}

#[test]
fn replies_say_for_which_addresses_they_hold() {
    let mut server = Server::with(gate(), |cache| {
        let rules = CacheRules::default();
        vec![
            Op::Outgoing(Change::Subnet(SubnetChange::Forward)),
            Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: false }),
            forward(),
        ]
    });
    let from = |net: u8| www().option(8, &[0, 1, 24, 0, 192, 0, net]);
    let told = |net: u8, scope: u8| Some(vec![0, 1, 24, scope, 192, 0, net]);
    // The upstream looked at twenty bits: the answer is for all who share them.
    let reply = server.fetch(&from(2), &with_options(&from(2), &[(8, &[0, 1, 24, 20, 192, 0, 2])]));
    assert_eq!(option(&reply, 8), told(2, 20));
    assert_eq!(option(&server.ask(&from(2)).answered(), 8), told(2, 20));
    assert_eq!(option(&server.ask(&from(15)).answered(), 8), told(15, 20));
    let other = Ask { name: name("other.example.org"), ..from(3) };
    let reply = server.fetch(&other, &with_options(&other, &[(8, &[0, 1, 24, 0, 192, 0, 3])]));
    assert_eq!(option(&reply, 8), told(3, 0));
    let elsewhere = Ask { name: other.name, ..from(4) };
    assert_eq!(option(&server.ask(&elsewhere).answered(), 8), told(4, 0), "it is for everybody");
}

#[test]
fn options_that_go_on_come_back() {
    let mut server = Server::with(gate(), |_| {
        let forwarded = [OptionChange::Forward(OptionCode(65_001))];
        vec![Op::Outgoing(Change::Options(forwarded.into())), forward()]
    });
    let said = with_options(&www(), &[(65_001, b"hello"), (65_002, b"secret")]);
    let reply = server.fetch(&www().edns(1232), &said);
    assert_eq!((option(&reply, 65_001), option(&reply, 65_002)), (Some(b"hello".to_vec()), None));
    let reply = server.fetch(&www(), &said);
    assert!(Message::parse(&reply).expect("well formed").edns.is_none(), "no EDNS, no options");
}
