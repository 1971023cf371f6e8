use super::*;
use wire::{Class, NameBuf, Question, Section, Ttl, Writer, rdata};

const AA: Flags = Flags::AA;
const NO_AA: Flags = Flags(0);

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

/// Writes a reply; each line is `SECTION OWNER TTL TYPE DATA`, in the order of the sections. Data
/// `octets N` is that many octets.
fn reply(flags: Flags, rcode: Rcode, qname: &str, qtype: Rtype, lines: &str) -> Vec<u8> {
    let mut out = vec![0; 65_535];
    let mut writer = Writer::new(&mut out, usize::MAX, 0, Flags::QR.with(flags).with_rcode(rcode));
    let qname = name(qname);
    writer.question(&Question { qname: qname.as_name(), qtype, qclass: Class::IN }).expect("room");
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [section, owner, ttl, rtype, data] =
            line.splitn(5, ' ').collect::<Vec<_>>().try_into().expect("five words");
        let section = match section {
            "answer" => Section::Answer,
            "authority" => Section::Authority,
            _ => Section::Additional,
        };
        let (rtype, ttl) = (rtype.parse().expect("a type"), Ttl::new(ttl.parse().expect("seconds")));
        let mut octets = Vec::new();
        match data.strip_prefix("octets ") {
            Some(count) => octets.resize(count.parse().expect("a number"), 7),
            None => rdata::parse_text(rtype, data, Some(Name::ROOT), &mut octets).expect("data"),
        }
        writer
            .record(section, name(owner).as_name(), rtype, Class::IN, ttl, |writer| writer.bytes(&octets))
            .expect("room");
    }
    let len = writer.finish();
    out.truncate(len);
    out
}

fn read_as(zone: &str, qname: &str, qtype: Rtype, reply: &[u8]) -> Reading {
    read_with(zone, (qname, qtype), reply, (true, false))
}

/// Reads a reply where answers without AA count or not, and servers beside answers are taken or
/// not.
fn read_with(
    zone: &str,
    (qname, qtype): (&str, Rtype),
    reply: &[u8],
    (requires_authority, takes_servers): (bool, bool),
) -> Reading {
    let message = Message::parse(reply).expect("well formed");
    let (zone, qname) = (name(zone), name(qname));
    let routes = Routes::default();
    let asked = Asked {
        zone: zone.as_name(),
        qname: qname.as_name(),
        qtype,
        place: qname.as_name(),
        routes: &routes,
        primes: false,
        by: Speaker::Server,
    };
    let addresses = AddressPolicy::default();
    let terms = Terms {
        name: &HeapName::new(qname.as_name()),
        addresses: &addresses,
        servers_max: 13,
        ttl_max: 86_400,
        negative_ttl_max: 3600,
        dnssec_ok: true,
        signatures_max: 16,
        work: &Work::of_one_reply(Vec::new()),
        requires_authority,
        takes_servers,
        takes_addresses: takes_servers,
        takes_servers_with_expansions: takes_servers,
        takes_servers_with_denials: takes_servers,
        reads_ns_ttl: false,
        takes_referrals: false,
    };
    read(&message, &asked, &terms)
}

/// Says a reading in a few words.
fn said(reading: &Reading) -> String {
    match reading {
        Reading::Fault(fault) => format!("{fault:?}"),
        Reading::Referral(referral) => {
            let servers: Vec<String> =
                referral.servers.iter().map(|server| format!("{} {:?}", server.name, server.glue)).collect();
            format!("{} {}: {}", referral.zone, referral.ttl, servers.join(", "))
        }
        Reading::Doubtful(answer, doubt) => format!("{doubt:?}: {}", said(&Reading::Answer(answer.clone()))),
        Reading::Answer(answer) => {
            let sets: Vec<String> = answer
                .sets
                .iter()
                .map(|set| format!("{} {} {} x{}", set.owner, set.ttl, set.rtype, set.records.len()))
                .collect();
            let denial = answer.denial.as_ref().map_or(String::new(), |denial| {
                let ttl = denial.soa.as_ref().map(|soa| soa.ttl);
                format!(" denies {}{} {ttl:?}", denial.name, if denial.is_of_name { " at all" } else { "" })
            });
            format!("{:?} [{}]{denial}", answer.verdict, sets.join(", "))
        }
    }
}

/// One reply of a server of example.org to a question for www.example.org A.
fn check(flags: Flags, rcode: Rcode, lines: &str, expected: &str) {
    let octets = reply(flags, rcode, "www.example.org", Rtype::A, lines);
    let reading = read_as("example.org", "www.example.org", Rtype::A, &octets);
    assert_eq!(said(&reading), expected, "{lines}");
}

#[test]
fn an_rrset_has_the_smallest_ttl_and_each_record_once() {
    check(
        AA,
        Rcode::NOERROR,
        "answer www.example.org 300 A 192.0.2.1
         answer WWW.example.org 200 A 192.0.2.2
         answer www.example.org 999999 A 192.0.2.1
         answer www.example.org 9 AAAA 2001:db8::1",
        "Data [www.example.org. 200 A x2]",
    );
}

#[test]
fn what_nobody_asked_for_is_not_there() {
    check(
        AA,
        Rcode::NOERROR,
        "answer www.example.org 300 A 192.0.2.1
         answer mail.example.org 300 A 192.0.2.66
         answer www.example.net 300 A 192.0.2.66
         authority example.org 300 NS ns.evil.net
         authority org 300 NS ns.evil.net
         additional ns.evil.net 300 A 192.0.2.66",
        "Data [www.example.org. 300 A x1]",
    );
}

#[test]
fn aliases_are_followed_to_the_edge_of_the_zone() {
    check(
        AA,
        Rcode::NOERROR,
        "answer www.example.org 300 CNAME a.example.org
         answer a.example.org 200 CNAME cdn.example.net
         answer cdn.example.net 300 A 192.0.2.66",
        "Alias(a.example.org.) [www.example.org. 300 CNAME x1, a.example.org. 200 CNAME x1]",
    );
    check(
        AA,
        Rcode::NOERROR,
        "answer www.example.org 300 CNAME a.example.org
         answer a.example.org 200 A 192.0.2.1",
        "Alias(a.example.org.) [www.example.org. 300 CNAME x1, a.example.org. 200 A x1]",
    );
    // What there is not at the end of a chain is known if the SOA says so.
    let chain = "answer www.example.org 300 CNAME a.example.org\n";
    check(AA, Rcode::NXDOMAIN, chain, "Alias(a.example.org.) [www.example.org. 300 CNAME x1]");
    check(
        AA,
        Rcode::NXDOMAIN,
        &format!("{chain}authority example.org 900 SOA ns.example.org a.example.org 1 2 3 4 60"),
        "Alias(a.example.org.) [www.example.org. 300 CNAME x1] denies a.example.org. at all Some(60)",
    );
    check(
        AA,
        Rcode::NOERROR,
        "answer www.example.org 300 CNAME www.example.org",
        &format!("Alias(www.example.org.) [{}]", ["www.example.org. 300 CNAME x1"; 16].join(", ")),
    );
}

#[test]
fn a_dname_makes_the_alias_whatever_its_server_makes_of_it() {
    let octets = reply(
        AA,
        Rcode::NOERROR,
        "www.old.example.org",
        Rtype::A,
        "answer old.example.org 300 DNAME new.example.net
         answer www.old.example.org 0 CNAME www.evil.net",
    );
    let reading = read_as("example.org", "www.old.example.org", Rtype::A, &octets);
    let expected =
        "Alias(www.new.example.net.) [old.example.org. 300 DNAME x1, www.old.example.org. 300 CNAME x1]";
    assert_eq!(said(&reading), expected);
    assert!(matches!(&reading, Reading::Answer(answer) if answer.has_dname));
    // One above the zone is not the server's to give.
    check(AA, Rcode::NOERROR, "answer org 300 DNAME evil.net", "NoData [] denies www.example.org. None");
}

#[test]
fn a_name_that_a_dname_makes_too_long_is_no_name() {
    let long = ["abcdefghi."; 24].concat();
    let qname = "a23456789.b23456789.example.org";
    let lines = format!("answer example.org 300 DNAME {long}net");
    let octets = reply(AA, Rcode::YXDOMAIN, qname, Rtype::A, &lines);
    let reading = read_as("org", qname, Rtype::A, &octets);
    assert_eq!(said(&reading), "TooLong [example.org. 300 DNAME x1]");
    let without = reply(AA, Rcode::YXDOMAIN, qname, Rtype::A, "");
    assert_eq!(said(&read_as("org", qname, Rtype::A, &without)), "Error(Rcode(6))");
}

#[test]
fn a_denial_leans_on_a_soa_record_of_the_zone() {
    let soa = |owner: &str, ttl, minimum| {
        format!("authority {owner} {ttl} SOA ns.example.org a.example.org 1 2 3 4 {minimum}")
    };
    let none = "NoName [] denies www.example.org. at all";
    check(AA, Rcode::NXDOMAIN, &soa("example.org", 900, 60), &format!("{none} Some(60)"));
    check(AA, Rcode::NXDOMAIN, &soa("example.org", 60, 900), &format!("{none} Some(60)"));
    check(AA, Rcode::NXDOMAIN, &soa("example.org", 99_999, 99_999), &format!("{none} Some(3600)"));
    check(AA, Rcode::NXDOMAIN, &soa("org", 900, 60), &format!("{none} None"));
    check(AA, Rcode::NXDOMAIN, &soa("sub.example.org", 900, 60), &format!("{none} None"));
    check(AA, Rcode::NXDOMAIN, "", &format!("{none} None"));
    check(AA, Rcode::NOERROR, &soa("example.org", 900, 60), "NoData [] denies www.example.org. Some(60)");
}

#[test]
fn a_referral_leads_down_to_the_name_with_glue_for_its_servers() {
    check(
        NO_AA,
        Rcode::NOERROR,
        "authority www.example.org 300 NS ns.www.example.org
         authority www.example.org 200 NS ns.example.net
         authority www.example.org 200 NS ns.sub.example.org
         additional ns.www.example.org 60 A 198.51.100.1
         additional ns.www.example.org 60 A 127.0.0.1
         additional ns.www.example.org 60 A 10.0.0.1
         additional ns.www.example.org 60 A 0.0.0.0
         additional ns.www.example.org 60 AAAA 2001:db8::1
         additional ns.sub.example.org 60 A 198.51.100.3
         additional ns.example.net 60 A 198.51.100.66
         additional mail.example.org 60 A 198.51.100.66",
        "www.example.org. 200: ns.www.example.org. [198.51.100.1, 2001:db8::1], \
         ns.example.net. [], ns.sub.example.org. [198.51.100.3]",
    );
}

#[test]
fn a_server_that_does_not_serve_the_zone_is_lame() {
    check(NO_AA, Rcode::NOERROR, "authority example.org 300 NS ns.example.org", "Lame");
    check(NO_AA, Rcode::NOERROR, "authority . 300 NS a.root-servers.net", "Lame");
    check(NO_AA, Rcode::NOERROR, "authority mail.example.org 300 NS ns.example.org", "Lame");
    check(NO_AA, Rcode::NOERROR, "", "Lame");
    check(AA, Rcode::NOERROR, "", "Empty: NoData [] denies www.example.org. None");
    check(AA, Rcode::NOERROR, "authority example.org 300 TXT x", "NoData [] denies www.example.org. None");
    check(NO_AA, Rcode::NOERROR, "answer www.example.org 300 A 192.0.2.1", "Lame");
    check(NO_AA, Rcode::NXDOMAIN, "", "Lame");
    check(NO_AA, Rcode::REFUSED, "", "Lame");
    check(AA, Rcode::NOTAUTH, "", "Lame");
    check(NO_AA, Rcode::SERVFAIL, "", "Error(Rcode(2))");
    check(AA, Rcode::FORMERR, "", "Error(Rcode(1))");
}

#[test]
fn a_reply_that_fits_nothing_is_of_no_use() {
    check(AA.with(Flags::TC), Rcode::NOERROR, "answer www.example.org 300 A 192.0.2.1", "Malformed");
    check(AA, Rcode::NOERROR, "answer www.example.org 300 A octets 3", "Malformed");
    let other = reply(AA, Rcode::NOERROR, "mail.example.org", Rtype::A, "");
    assert_eq!(said(&read_as("example.org", "www.example.org", Rtype::A, &other)), "Malformed");
    let other = reply(AA, Rcode::NOERROR, "www.example.org", Rtype::AAAA, "");
    assert_eq!(said(&read_as("example.org", "www.example.org", Rtype::A, &other)), "Malformed");
}

#[test]
fn no_more_servers_are_taken_than_a_zone_may_have() {
    let lines: Vec<String> =
        (0..40).map(|n| format!("authority www.example.org 300 NS ns{n}.example.net")).collect();
    let octets = reply(NO_AA, Rcode::NOERROR, "www.example.org", Rtype::A, &lines.join("\n"));
    let reading = read_as("example.org", "www.example.org", Rtype::A, &octets);
    assert!(matches!(reading, Reading::Referral(referral) if referral.servers.len() == 13));
}

#[test]
fn the_roots_servers_are_taken_with_their_addresses() {
    let lines = "answer . 518400 NS a.root-servers.net
         answer . 518400 NS b.root-servers.net
         additional a.root-servers.net 518400 A 198.41.0.4
         additional b.root-servers.net 518400 A 127.0.0.1
         additional c.root-servers.net 518400 A 192.33.4.12";
    let octets = reply(AA, Rcode::NOERROR, ".", Rtype::NS, lines);
    let message = Message::parse(&octets).expect("well formed");
    let addresses = AddressPolicy::default();
    let terms = Terms {
        name: &HeapName::new(Name::ROOT),
        addresses: &addresses,
        servers_max: 13,
        ttl_max: 86_400,
        negative_ttl_max: 3600,
        dnssec_ok: true,
        signatures_max: 16,
        work: &Work::of_one_reply(Vec::new()),
        requires_authority: true,
        takes_servers: false,
        takes_addresses: false,
        takes_servers_with_expansions: false,
        takes_servers_with_denials: false,
        reads_ns_ttl: false,
        takes_referrals: false,
    };
    let routes = Routes::default();
    let asked = Asked {
        zone: Name::ROOT,
        qname: Name::ROOT,
        qtype: Rtype::NS,
        place: Name::ROOT,
        routes: &routes,
        primes: true,
        by: Speaker::Server,
    };
    let root = read_priming(&message, &asked, &terms).expect("it has addresses");
    let expected = ". 86400: a.root-servers.net. [198.41.0.4], b.root-servers.net. []";
    assert_eq!(said(&Reading::Referral(root)), expected);
    assert_eq!(read_priming(&message, &Asked { qtype: Rtype::A, ..asked }, &terms), None);
}

#[test]
fn the_zones_servers_beside_an_answer_are_taken_for_who_wants_them() {
    let lines = "answer www.example.org 300 A 192.0.2.1
         authority example.org 300 NS ns.example.org
         authority example.org 300 NS ns.example.net
         authority org 300 NS ns.evil.net
         additional ns.example.org 300 A 192.0.2.2
         additional ns.example.net 300 A 192.0.2.66
         additional other.example.org 300 A 192.0.2.66";
    let octets = reply(AA, Rcode::NOERROR, "www.example.org", Rtype::A, lines);
    let beside = |takes_servers| {
        let question = ("www.example.org", Rtype::A);
        match read_with("example.org", question, &octets, (true, takes_servers)) {
            Reading::Answer(answer) => answer.beside,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(beside(false), Beside::default());
    let beside = beside(true);
    let said = |sets: &[Set]| {
        let said = |set: &Set| format!("{} {} x{}", set.owner, set.rtype, set.records.len());
        sets.iter().map(said).collect::<Vec<_>>()
    };
    assert_eq!(said(&beside.servers), ["example.org. NS x2"]);
    assert_eq!(said(&beside.addresses), ["ns.example.org. A x1"]);
}

#[test]
fn an_answer_without_aa_counts_where_that_is_not_required_and_is_doubtful_if_recursion_is_offered() {
    let read_as = |flags: Flags, requires_authority: bool| {
        let lines = "answer www.example.org 300 A 192.0.2.1";
        let octets = reply(flags, Rcode::NOERROR, "www.example.org", Rtype::A, lines);
        said(&read_with("example.org", ("www.example.org", Rtype::A), &octets, (requires_authority, false)))
    };
    let data = "Data [www.example.org. 300 A x1]";
    assert_eq!(read_as(AA, true), data);
    assert_eq!(read_as(NO_AA, true), "Lame");
    assert_eq!(read_as(NO_AA, false), data);
    assert_eq!(read_as(Flags::RA, false), format!("Recursive: {data}"));
    assert_eq!(read_as(Flags::RA, true), "Lame");
    assert_eq!(read_as(Flags::RA.with(AA), true), data);
    let nothing = |lines: &str, requires_authority: bool| {
        let octets = reply(NO_AA, Rcode::NOERROR, "www.example.org", Rtype::A, lines);
        said(&read_with("example.org", ("www.example.org", Rtype::A), &octets, (requires_authority, false)))
    };
    let soa = "authority example.org 300 SOA ns.example.org h.example.org 1 2 3 4 60";
    let denied = "NoData [] denies www.example.org. Some(60)";
    assert_eq!((nothing(soa, true), nothing(soa, false)), ("Lame".to_owned(), denied.to_owned()));
    // Who refers to where we come from does not know the zone, whatever it says of itself.
    assert_eq!(nothing("authority example.org 300 NS ns.example.org", false), "Lame");
}
