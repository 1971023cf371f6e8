//! Servers of signed zones that say the right thing in an unusual way.

use std::sync::Arc;

use cache::Security;
use resolver::{Settings, TrustAnchor, Waiter};
use wire::{Class, Flags, Message, Question, Rcode, Rtype, Section, Ttl, Writer};

use crate::signed::{Internet, Signed, Signing};
use crate::validation::{NSEC3, check, internet};
use crate::world::{Behaviour, Crafted, Record, World, name, plain_settings, record, signed_reply};

/// Has a server change what it would say.
fn change(
    world: &mut World,
    address: &str,
    how: impl Fn(&Question<'_>, &mut Vec<(Section, Record)>, &mut Flags) + 'static,
) {
    let server = world.server(address);
    let zones = server.signed.take().expect("it has signed zones");
    server.behaviour = Behaviour::Crafted(Arc::new(move |question| {
        let honest = signed_reply(&zones, question, true);
        let message = Message::parse(&honest).expect("well formed");
        let mut records: Vec<(Section, Record)> = Vec::new();
        for record in message.records() {
            let mut data = Vec::new();
            let range = record.rdata_at..record.end();
            wire::rdata::write_plain(record.rtype, message.as_bytes(), range, &mut data).expect("data");
            let owner = record.owner.expand().expect("a name");
            let ttl = record.ttl().seconds();
            records.push((record.section, Record { owner, rtype: record.rtype, ttl, data }));
        }
        let mut flags = message.header.flags;
        how(question, &mut records, &mut flags);
        records.sort_by_key(|&(section, _)| section as u8);
        Some(written(question, &records, flags))
    }));
}

/// Writes a reply.
fn written(question: &Question<'_>, records: &[(Section, Record)], flags: Flags) -> Vec<u8> {
    let mut out = vec![0; 65_535];
    let mut writer = Writer::new(&mut out, usize::MAX, 0, flags);
    writer.question(question).expect("room");
    for (section, record) in records {
        let (owner, ttl) = (record.owner.as_name(), Ttl::new(record.ttl));
        let write = |writer: &mut Writer<'_>| writer.bytes(&record.data);
        writer.record(*section, owner, record.rtype, Class::IN, ttl, write).expect("room");
    }
    let len = writer.finish();
    out.truncate(len);
    out
}

#[test]
fn signatures_count_whatever_section_they_are_in() {
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    for address in ["192.0.2.3", "192.0.2.4"] {
        change(&mut world, address, |question, records, _| {
            let is_signature = |record: &Record| question.qtype == Rtype::A && record.rtype == Rtype::RRSIG;
            let moved = records.iter_mut().filter(|(_, record)| is_signature(record));
            moved.for_each(|(section, _)| *section = Section::Additional);
        });
    }
    let seen = world.resolve("www.example.org", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Secure);
    let signatures = seen.with_dnssec.iter().filter(|line| line.contains(" RRSIG A "));
    assert_eq!(signatures.count(), 1, "the client gets it once: {seen:?}");
}

#[test]
fn a_proof_is_an_answer_without_aa_and_without_soa() {
    for signing in [Signing::Nsec, NSEC3] {
        for (requires_authority, security) in [(false, Security::Secure), (true, Security::Unchecked)] {
            let settings = Settings { requires_authority, ..plain_settings() };
            let Signed { mut world, .. } = internet(signing, signing).with(settings).build();
            for address in ["192.0.2.3", "192.0.2.4"] {
                change(&mut world, address, |question, records, flags| {
                    if question.qtype == Rtype::MX {
                        *flags = Flags::QR;
                        // Neither the SOA record nor its signature.
                        records.retain(|(_, record)| match record.rtype {
                            Rtype::SOA => false,
                            Rtype::RRSIG => !record.data.starts_with(&Rtype::SOA.0.to_be_bytes()),
                            _ => true,
                        });
                    }
                });
            }
            let seen = world.resolve("www.example.org", Rtype::MX);
            let rcode = if requires_authority { Rcode::SERVFAIL } else { Rcode::NOERROR };
            check(&seen, rcode, security);
        }
    }
}

#[test]
fn a_server_that_refers_to_itself_is_lame_whatever_its_parent_proves() {
    for (signing, requires_authority) in
        [(Signing::Nsec, false), (Signing::Nsec, true), (NSEC3, false), (Signing::No, false)]
    {
        for has_other in [false, true] {
            // The server of the parent does not serve the child.
            let lame = "sub.example. NS ns8.sub.example.\nns8.sub.example. A 192.0.2.2";
            let mut internet = Internet::default()
                .zone(".", &["192.0.2.1"], Signing::Nsec, "")
                .zone("example", &["192.0.2.2"], signing, lame)
                .with(Settings { requires_authority, minimal_denials: false, ..plain_settings() });
            if has_other {
                let text = "www.sub.example. A 198.51.100.1";
                internet = internet.zone("sub.example", &["192.0.2.9"], Signing::No, text);
            }
            let Signed { mut world, .. } = internet.build();
            for _ in 0..4 {
                let seen = world.resolve("www.sub.example", Rtype::A);
                let expected = if has_other { (Rcode::NOERROR, 1) } else { (Rcode::SERVFAIL, 0) };
                assert_eq!((seen.rcode, seen.answer.len()), expected, "{signing:?}: {seen:?}");
                assert!(has_other || seen.authority.is_empty(), "{seen:?}");
                world.pass_ms(3_700_000);
            }
        }
    }
}

#[test]
fn what_denies_comes_along_although_nobody_can_check_it() {
    // Signed, but its parent has no DS.
    let Signed { mut world, .. } = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("example", &["192.0.2.2"], Signing::Nsec, "www.example. A 198.51.100.1")
        .trusting(|trust| {
            let zone = resolver::HeapName::new(name("example").as_name());
            trust.negative.push(resolver::NegativeAnchor { zone, ends_at: None });
        })
        .build();
    for _ in 0..2 {
        let seen = world.resolve("none.example", Rtype::A);
        check(&seen, Rcode::NXDOMAIN, Security::Insecure);
        assert!(seen.with_dnssec.iter().any(|line| line.contains(" NSEC ")), "{seen:?}");
    }
}

#[test]
fn a_dname_that_two_names_come_from_is_given_once() {
    let Signed { mut world, .. } = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone(
            "example",
            &["192.0.2.2"],
            Signing::Nsec,
            "old.example. DNAME new.example.
             a.b.new.example. CNAME c.old.example.
             c.new.example. A 198.51.100.1",
        )
        .build();
    let seen = world.resolve("a.b.old.example", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Secure);
    let of_dname = seen.answer.iter().filter(|line| line.contains(" DNAME "));
    assert_eq!((of_dname.count(), seen.answer.len()), (1, 5), "{seen:?}");
}

#[test]
fn who_asks_for_an_alias_below_a_dname_gets_the_one_that_it_makes() {
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    let seen = world.resolve("www.tree.example.org", Rtype::CNAME);
    check(&seen, Rcode::NOERROR, Security::Secure);
    let expected =
        ["tree.example.org. 3600 DNAME example.org.", "www.tree.example.org. 3600 CNAME www.example.org."];
    assert_eq!(seen.answer, expected);
    // Another alias below the DNAME is made from the tables.
    let seen = world.resolve("ftp.tree.example.org", Rtype::CNAME);
    check(&seen, Rcode::NOERROR, Security::Secure);
    assert_eq!(
        (seen.answer[1].as_str(), seen.sends),
        ("ftp.tree.example.org. 3600 CNAME ftp.example.org.", 0)
    );
}

#[test]
fn any_is_all_that_a_zone_has_of_a_name() {
    let zone = "www.example. 300 A 198.51.100.1
                www.example. 60 TXT \"here\"
                alias.example. CNAME www.example.";
    for signing in [Signing::No, Signing::Nsec] {
        let Signed { mut world, .. } = Internet::default()
            .zone(".", &["192.0.2.1"], Signing::Nsec, "")
            .zone("example", &["192.0.2.2"], signing, zone)
            .build();
        let is_signed = matches!(signing, Signing::Nsec);
        let security = if is_signed { Security::Secure } else { Security::Insecure };
        let all = [
            (Section::Answer, "www.example. 300 A 198.51.100.1"),
            (Section::Answer, "www.example. 60 TXT \"here\""),
        ];
        // Our own zones give ANY less (RFC 8482).
        if !is_signed {
            let records = all.map(|(section, line)| (section, record(line)));
            world.server("192.0.2.2").signed = None;
            world.server("192.0.2.2").behaviour = Behaviour::Liar(records.to_vec());
        }
        let seen = world.resolve("www.example", Rtype::ANY);
        check(&seen, Rcode::NOERROR, security);
        if !is_signed {
            assert_eq!(seen.answer.len(), 2, "{seen:?}");
            // What came is known by its types.
            assert_eq!(world.resolve("www.example", Rtype::TXT).sends, 0);
        }
    }
}

#[test]
fn what_is_asked_for_before_its_end_is_asked_of_servers() {
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    world.resolve("alias.example.org", Rtype::A);
    world.pass_ms(280_000);
    let qname = name("alias.example.org");
    let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
    let before = world.sent.len();
    world.resolver.want_anew(&question, Waiter(7), world.now);
    world.settle_effects();
    let asked: Vec<&str> = world.sent[before..].iter().map(|sent| &*sent.question).collect();
    assert_eq!(asked, ["alias.example.org. A", "www.example.org. A"]);
    let seen = world.resolve("alias.example.org", Rtype::A);
    assert_eq!((seen.answer[1].as_str(), seen.sends), ("www.example.org. 300 A 198.51.100.1", 0));
}

#[test]
fn what_was_made_from_a_wildcard_comes_with_the_servers_beside_it_where_settings_say_so() {
    for minimal_expansions in [true, false] {
        let Signed { mut world, texts, .. } = Internet::default()
            .zone(".", &["192.0.2.1"], Signing::Nsec, "")
            .zone("org", &["192.0.2.2"], Signing::Nsec, "*.w.org. A 198.51.100.1\nwww.org. A 198.51.100.2")
            .with(Settings { minimal_expansions, ..plain_settings() })
            .build();
        let is_ns = |line: &&str| [" IN NS ", " IN RRSIG NS "].iter().any(|it| line.contains(it));
        let servers: Vec<Record> =
            texts["org"].lines().filter(is_ns).map(|line| record(&line.replace(" IN ", " "))).collect();
        assert_eq!(servers.len(), 2, "with a signature");
        change(&mut world, "192.0.2.2", move |question, records, _| {
            if question.qtype == Rtype::A {
                records.extend(servers.iter().map(|record| (Section::Authority, record.clone())));
            }
        });
        for (text, is_expanded) in [("a.w.org", true), ("www.org", false)] {
            let seen = world.resolve(text, Rtype::A);
            check(&seen, Rcode::NOERROR, Security::Secure);
            let is_ns = |line: &String| line.contains(" NS ");
            let has_servers = seen.authority.iter().any(is_ns);
            assert_eq!(has_servers, is_expanded && !minimal_expansions, "{text}: {seen:?}");
            // The proof comes first: servers are left out where there is not room for all.
            let proof = seen.with_dnssec.iter().position(|line| line.contains(" NSEC "));
            let servers = seen.with_dnssec.iter().position(is_ns);
            assert!(proof.zip(servers).is_none_or(|(proof, servers)| proof < servers), "{seen:?}");
        }
    }
}

#[test]
fn a_server_that_says_that_the_target_of_an_alias_is_gone_is_taken_at_its_word_by_that_zone() {
    let Signed { mut world, .. } = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], Signing::Nsec, "gone.org. CNAME none.net.\nwww.org. CNAME www.net.")
        .zone("net", &["192.0.2.3"], Signing::Nsec, "www.net. A 198.51.100.1")
        .build();
    change(&mut world, "192.0.2.2", |question, _, flags| {
        if question.qtype == Rtype::CNAME {
            *flags = flags.with_rcode(Rcode::NXDOMAIN);
        }
    });
    for (alias, rcode) in [("gone.org", Rcode::NXDOMAIN), ("www.org", Rcode::NOERROR)] {
        let seen = world.resolve(alias, Rtype::CNAME);
        check(&seen, rcode, Security::Secure);
        assert_eq!(seen.answer.len(), 1, "{seen:?}");
        assert!(seen.authority[0].starts_with("net. 300 SOA"), "{seen:?}");
    }
    // The alias is there all the same.
    world.pass_ms(301_000);
    check(&world.resolve("gone.org", Rtype::CNAME), Rcode::NOERROR, Security::Secure);
}

/// An unsigned root, and a signed zone below it that is trusted by itself.
pub(crate) fn island() -> World {
    let Signed { mut world, texts, .. } = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::No, "")
        .zone("example", &["192.0.2.2"], Signing::Nsec, "www.example. A 198.51.100.1")
        .build();
    let mut anchors = Vec::new();
    let of_example = |line: &&str| line.starts_with("example. ") && line.contains(" DS ");
    for line in texts["."].lines().filter(of_example) {
        let ds = record(line);
        TrustAnchor::add(&mut anchors, ds.owner.as_name(), ds.rtype, ds.data);
    }
    assert_eq!(anchors.len(), 1);
    world.resolver.trust(&anchors, &[]);
    world
}

/// A signed root, a zone below it, and trust anchors for `gone.example` and `island.example`, which
/// nobody has signed; the zone has the second one, and says that it is not signed.
fn with_islands(example: Signing) -> Signed {
    Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("example", &["192.0.2.2"], example, "")
        .zone("island.example", &["192.0.2.3"], Signing::No, "www.island.example. A 198.51.100.7")
        .trusting(|trust| {
            let ds = [&[0, 1, 13, 2][..], &[7; 32]].concat();
            for island in ["gone.example", "island.example"] {
                TrustAnchor::add(&mut trust.anchors, name(island).as_name(), Rtype::DS, ds.clone());
            }
        })
        .build()
}

#[test]
fn a_zone_above_an_island_of_trust_can_prove_that_it_is_gone() {
    let opts_out = Signing::Nsec3 { iterations: 0, opts_out: true };
    for (example, is_proved) in [
        (Signing::Nsec, true),
        (NSEC3, true),
        // Where zones may have been left out nothing is proved, and without signatures nothing.
        (opts_out, false),
        (Signing::Expired, false),
        (Signing::No, false),
    ] {
        let Signed { mut world, .. } = with_islands(example);
        let seen = world.resolve("www.gone.example", Rtype::A);
        let expected = match is_proved {
            true => (Rcode::NXDOMAIN, Security::Secure),
            false => (Rcode::SERVFAIL, Security::Bogus),
        };
        assert_eq!((seen.rcode, seen.security), expected, "{example:?}: {seen:?}");
    }
}

#[test]
fn no_record_of_a_denial_above_an_island_of_trust_counts_that_nobody_signed_so() {
    for forged in [Rtype::SOA, Rtype::NSEC] {
        let Signed { mut world, .. } = with_islands(Signing::Nsec);
        change(&mut world, "192.0.2.2", move |question, records, _| {
            if question.qname == name("www.gone.example").as_name() {
                // Its signature stays.
                let record = records.iter_mut().find(|(_, record)| record.rtype == forged);
                let (_, record) = record.expect("the denial has one");
                *record.data.last_mut().expect("data") ^= 1;
            }
        });
        for _ in 0..2 {
            let seen = world.resolve("www.gone.example", Rtype::A);
            assert_eq!((seen.rcode, seen.security), (Rcode::SERVFAIL, Security::Bogus), "{forged}: {seen:?}");
        }
    }
}

#[test]
fn a_zone_that_delegates_to_an_island_of_trust_cannot_deny_it() {
    let opts_out = Signing::Nsec3 { iterations: 0, opts_out: true };
    for example in [Signing::Nsec, NSEC3, opts_out] {
        let Signed { mut world, texts, .. } = with_islands(example);
        // An attacker has all that the zone ever signed.
        let is_proof = |line: &&str| [" SOA ", " NSEC ", " NSEC3 "].iter().any(|it| line.contains(it));
        let all: Vec<Record> = texts["example"]
            .lines()
            .filter(is_proof)
            .map(|line| record(&line.replace(" IN ", " ")))
            .collect();
        assert!(all.len() >= 4, "{texts:?}");
        change(&mut world, "192.0.2.2", move |question, records, flags| {
            if question.qname == name("www.island.example").as_name() {
                *records = all.iter().map(|record| (Section::Authority, record.clone())).collect();
                *flags = Flags::QR.with(Flags::AA).with_rcode(Rcode::NXDOMAIN);
            }
        });
        for _ in 0..2 {
            let seen = world.resolve("www.island.example", Rtype::A);
            assert_eq!(
                (seen.rcode, seen.security),
                (Rcode::SERVFAIL, Security::Bogus),
                "{example:?}: {seen:?}"
            );
        }
    }
}

#[test]
fn an_alias_with_proofs_of_the_zone_above_takes_no_trust_from_an_island() {
    // Its parent has no DS records of it, and says so with NSEC3 records that span its name.
    let Signed { mut world, .. } = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone(
            "example",
            &["192.0.2.2"],
            Signing::Nsec3 { iterations: 0, opts_out: true },
            "*.example. CNAME www.island.example.",
        )
        .zone("island.example", &["192.0.2.3"], Signing::No, "www.island.example. A 198.51.100.7")
        .trusting(|trust| {
            let ds = [&[0, 1, 13, 2][..], &[7; 32]].concat();
            TrustAnchor::add(&mut trust.anchors, name("island.example").as_name(), Rtype::DS, ds);
        })
        .build();
    for question in ["x.example", "www.island.example"] {
        let seen = world.resolve(question, Rtype::A);
        assert_eq!((seen.rcode, seen.security), (Rcode::SERVFAIL, Security::Bogus), "{question}: {seen:?}");
    }
}

#[test]
fn what_is_above_an_island_of_trust_says_nothing_about_it() {
    let mut world = island();
    let seen = world.resolve("www.example", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Secure);
    let lie = vec![(Section::Answer, record("www.example. A 203.0.113.1"))];
    let mut world = island();
    world.server("192.0.2.1").behaviour = Behaviour::Liar(lie);
    let seen = world.resolve("www.example", Rtype::A);
    assert_eq!((seen.rcode, seen.security), (Rcode::SERVFAIL, Security::Bogus), "{seen:?}");
    // Nor where zones of it are.
    let lie = vec![
        (Section::Authority, record("sub.example. NS ns.sub.example.")),
        (Section::Additional, record("ns.sub.example. A 192.0.2.9")),
    ];
    let mut world = island();
    let referral: Crafted = Arc::new(move |question| {
        let records = if question.qtype == Rtype::A { lie.clone() } else { Vec::new() };
        Some(written(question, &records, Flags::QR))
    });
    world.server("192.0.2.1").behaviour = Behaviour::Crafted(referral);
    let lie = vec![(Section::Answer, record("www.sub.example. A 203.0.113.1"))];
    world.server("192.0.2.9").behaviour = Behaviour::Liar(lie);
    let seen = world.resolve("www.sub.example", Rtype::A);
    assert_eq!(seen.rcode, Rcode::SERVFAIL, "{seen:?}");
}
