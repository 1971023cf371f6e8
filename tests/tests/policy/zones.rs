//! What authoritative servers do beside answering from a file: erldns's published answers, JSON,
//! zones by policy, names made from addresses, records by client, as clients of the built program
//! meet them.

use std::path::Path;

use testkit::{Ask, Heard, Server, eventually};
use wire::{Flags, OptionCode, Rcode, Rtype};

const ORG: &str = "$TTL 3600\n\
    @ SOA ns admin 1 7200 600 86400 300\n\
    @ NS ns\n\
    ns A 192.0.2.1\n\
    many A 192.0.2.11\n\
    many A 192.0.2.12\n\
    many A 192.0.2.13\n\
    mail MX 10 ns\n\
    txt TXT text\n\
    svc HTTPS 0 pool\n\
    pool HTTPS 1 . alpn=h2\n\
    pool A 192.0.2.14\n";

fn serving(files: &[(&str, &str)], yaml: &str) -> Server {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a writable directory");
    }
    let server = "server: {workers: 1, state-directory: \"@DIRECTORY@\"}\nlisten: [\"@ADDRESS@\"]\n";
    Server::start_in(directory, &format!("{server}{yaml}"))
}

/// Returns the data of all records of the answer section.
fn data(heard: &Heard) -> Vec<String> {
    let message = heard.message();
    let answers = message.records().filter(|record| record.section == wire::Section::Answer);
    answers
        .map(|record| {
            wire::rdata::display(record.rtype, heard.bytes(), record.rdata_at..record.end()).to_string()
        })
        .collect()
}

#[test]
fn erldnss_published_answers_have_their_sizes_and_codes_to_the_digit() {
    // What erldns served when it was measured; the same files are in the benchmarks.
    let zones = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/rivals/data");
    let path = |name: &str| zones.join(name).display().to_string();
    let server = serving(
        &[],
        &format!(
            "zones:\n  - {{name: example.com, file: \"{}\"}}\n  - {{name: test.com, file: \"{}\"}}\npolicy: {{main: [zones]}}\n",
            path("example.com.zone"),
            path("test.com.zone")
        ),
    );
    const CAA: Rtype = Rtype(257);
    let refused = (Rcode::REFUSED, false);
    let fine = (Rcode::NOERROR, true);
    // The name, the type, the response code and AA, then the octets of the reply.
    let first = [
        ("thumbs2.ebaystatic.com", Rtype::AAAA, refused, 40),
        ("sip.hotmail.com", Rtype::A, refused, 33),
        ("google.com", Rtype::A, refused, 28),
        ("cache.defamer.com", Rtype::A, refused, 35),
        ("example.com", Rtype::A, fine, 73),
        ("www.example.com", Rtype::CNAME, fine, 55),
    ];
    let second = [
        ("example.com", Rtype::A, fine, 73),
        ("example.com", Rtype::AAAA, fine, 73),
        ("example.com", CAA, fine, 73),
        ("example.com", Rtype::CNAME, fine, 73),
        ("example.com", Rtype::NS, fine, 125),
        ("ldap.example.com", Rtype::A, (Rcode::NXDOMAIN, true), 78),
        ("ns2.test.com", Rtype::A, fine, 46),
        ("www.test.com", Rtype::CNAME, fine, 52),
    ];
    for file in [&first[..], &second[..]] {
        let mut octets = 0;
        for &(name, rtype, (rcode, is_authoritative), expect) in file {
            let heard = server.ask(&Ask::new(name, rtype));
            assert_eq!(
                (heard.rcode(), heard.has(Flags::AA), heard.has(Flags::RA), heard.bytes().len()),
                (rcode, is_authoritative, false, expect),
                "{name} {rtype}"
            );
            octets += heard.bytes().len();
        }
        // dnsperf prints the average without what is behind the point: 43 and 74.
        assert_eq!(octets / file.len(), if file.len() == 6 { 44 } else { 74 });
    }
}

#[test]
fn erldnss_sample_configuration_is_served() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/erldns");
    let zones = directory.path().join("priv/zones");
    std::fs::create_dir_all(&zones).expect("a writable directory");
    std::fs::copy(fixture.join("priv/zones/example.com.json"), zones.join("example.com.json"))
        .expect("the zone");
    let yaml = std::fs::read_to_string(fixture.join("gannet.yaml")).expect("the configuration");
    let yaml = yaml.replace("\"0.0.0.0:8053\", \"[::]:8053\"", "\"@ADDRESS@\"");
    let server = Server::start_in(
        directory,
        &format!("server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n{yaml}"),
    );
    let a = server.ask(&Ask::new("www.example.com", Rtype::A));
    assert_eq!(
        (a.rcode(), data(&a)),
        (Rcode::NOERROR, vec!["example.com.".to_owned(), "1.2.3.4".to_owned()])
    );
    let srv = server.ask_tcp(&Ask::new("_ldap._tcp.example.com", Rtype::SRV));
    assert_eq!(data(&srv), ["0 100 389 ldap.example.com."]);
    let txt = server.ask(&Ask::new("example.com", Rtype::TXT));
    assert_eq!(data(&txt), ["\"\\\"Hi, this is some text\\\"\""]);
    let none = server.ask(&Ask::new("none.example.com", Rtype::A));
    assert_eq!((none.rcode(), none.has(Flags::AA), none.has(Flags::RA)), (Rcode::NXDOMAIN, true, false));
    // Not Authoritative, for whoever understands it.
    let other = server.ask(&Ask::new("www.example.net", Rtype::A).edns(1232));
    assert_eq!((other.rcode(), other.has(Flags::AA)), (Rcode::REFUSED, false));
    assert_eq!(other.errors().first().map(|(code, _)| *code), Some(20));
    // A zone that appears is served after a reload.
    let text = std::fs::read_to_string(fixture.join("priv/zones/example.com.json")).expect("the zone");
    std::fs::write(
        server.directory().join("priv/zones/more.json"),
        text.replace("example.com", "example.org"),
    )
    .expect("writable");
    assert!(server.command(&["reload"]).status.success());
    eventually("the new zone", || {
        data(&server.ask(&Ask::new("ldap.example.org", Rtype::A))) == ["50.40.50.40"]
    });
}

#[test]
fn any_is_answered_with_what_there_is() {
    let server = serving(
        &[("org", ORG)],
        "zones: [{name: example.org, file: org}]\npolicy: {main: [reject(refused)]}\n",
    );
    let of = |name: &str| {
        let heard = server.ask(&Ask::new(name, Rtype::ANY));
        (heard.rcode(), heard.has(Flags::AA), data(&heard))
    };
    assert_eq!(of("txt.example.org"), (Rcode::NOERROR, true, vec!["\"text\"".to_owned()]));
    assert_eq!(of("mail.example.org").2, ["10 ns.example.org."]);
    assert_eq!(of("none.example.org"), (Rcode::NXDOMAIN, true, vec![]));
    // What is in no zone gets what RFC 8482 says.
    assert_eq!(of("example.net").2, ["\"RFC8482\" \"\""]);
    // What an alias of a service names comes along.
    let said = server.dig(&["svc.example.org", "HTTPS"]);
    let words: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("pool.example.org. 3600 IN HTTPS 1 . alpn=\"h2\""), "{said}");
    assert!(words.contains("pool.example.org. 3600 IN A 192.0.2.14"), "{said}");
}

#[test]
fn policies_choose_among_versions_of_a_zone() {
    let server = serving(
        &[("outside", ORG), ("inside", &ORG.replace("192.0.2.1\n", "10.0.0.1\n"))],
        "zones:\n  - {name: example.org, file: outside}\n  - {name: example.org, file: inside, set: inside}\n\
         policy:\n  main:\n    - if: qname == \"hidden.example.org\"\n      do: reject(refused)\n\
         \x20   - if: cd\n      do: zones(inside)\n    - zones\n",
    );
    let a = |ask: Ask| data(&server.ask(&ask));
    let ns = || Ask::new("ns.example.org", Rtype::A);
    assert_eq!(a(ns()), ["192.0.2.1"]);
    assert_eq!(a(ns().flags(Flags::RD.with(Flags::CD))), ["10.0.0.1"]);
    assert_eq!(server.ask(&Ask::new("hidden.example.org", Rtype::A)).rcode(), Rcode::REFUSED);
    assert_eq!(server.ask(&Ask::new("example.net", Rtype::A)).rcode(), Rcode::REFUSED);
}

#[test]
fn names_are_made_from_addresses_and_back() {
    let reverse = "$TTL 60\n@ SOA ns.example.org. a 1 2 3 4 5\n@ NS ns.example.org.\n";
    let server = serving(
        &[("org", ORG), ("reverse", reverse)],
        "zones:\n  - {name: example.org, file: org, make: [{prefix: host-, networks: [192.0.2.0/24, 2001:db8::/32], ttl: 2h}]}\n\
         \x20 - {name: 2.0.192.in-addr.arpa, file: reverse, make: [{prefix: host-, networks: 192.0.2.0/24, origin: example.org}]}\n",
    );
    let of = |name: &str, rtype| data(&server.ask(&Ask::new(name, rtype)));
    assert_eq!(of("host-192-0-2-99.example.org", Rtype::A), ["192.0.2.99"]);
    assert_eq!(of("host-2001-db8--7.example.org", Rtype::AAAA), ["2001:db8::7"]);
    assert_eq!(of("99.2.0.192.in-addr.arpa", Rtype::PTR), ["host-192-0-2-99.example.org."]);
    assert_eq!(server.ask(&Ask::new("host-192-0-3-99.example.org", Rtype::A)).rcode(), Rcode::NXDOMAIN);
}

#[test]
fn records_depend_on_the_client_and_its_subnet() {
    let server = serving(
        &[("org", ORG), ("nets", "203.0.113.0/24\n")],
        "zones:\n  - name: example.org\n    file: org\n    choose:\n      - name: www.example.org\n        type: A\n        from:\n\
         \x20         - {data: 192.0.2.201, clients: 198.51.100.0/24}\n\
         \x20         - {data: 192.0.2.202, sets: far}\n\
         \x20         - {data: 192.0.2.203}\n\
         sets: {far: {lists: \"addresses:nets\"}}\n",
    );
    let ask = |subnet: Option<[u8; 3]>| {
        let ask = Ask::new("www.example.org", Rtype::A).edns(1232);
        let ask = match subnet {
            Some([a, b, c]) => ask.option(OptionCode::CLIENT_SUBNET, &[0, 1, 24, 0, a, b, c]),
            None => ask,
        };
        let heard = server.ask(&ask);
        let scope = heard.option(OptionCode::CLIENT_SUBNET).and_then(|option| option.get(3).copied());
        (data(&heard).join(" "), scope)
    };
    assert_eq!(ask(None), ("192.0.2.203".to_owned(), None));
    assert_eq!(ask(Some([198, 51, 100])), ("192.0.2.201".to_owned(), Some(24)));
    assert_eq!(ask(Some([203, 0, 113])), ("192.0.2.202".to_owned(), Some(24)));
    assert_eq!(ask(Some([192, 0, 2])), ("192.0.2.203".to_owned(), Some(24)));
    // An answer that is the same for everybody says so (RFC 7871 §7.2.1).
    let same =
        Ask::new("ns.example.org", Rtype::A).option(OptionCode::CLIENT_SUBNET, &[0, 1, 24, 0, 198, 51, 100]);
    let scope = server.ask(&same).option(OptionCode::CLIENT_SUBNET).and_then(|option| option.get(3).copied());
    assert_eq!(scope, Some(0));
    // Other types of the name are the zone's business: there are none.
    let txt = server.ask(&Ask::new("www.example.org", Rtype::TXT));
    assert_eq!((txt.rcode(), data(&txt)), (Rcode::NOERROR, vec![]));
}

#[test]
fn records_take_turns_if_they_are_to() {
    let zones = "zones: [{name: example.org, file: org}]\n";
    let firsts = |server: &Server| {
        let asked = (0..60).map(|_| data(&server.ask(&Ask::new("many.example.org", Rtype::A))));
        let all: Vec<Vec<String>> = asked.collect();
        assert!(all.iter().all(|addresses| addresses.len() == 3));
        all.into_iter().map(|addresses| addresses[0].clone()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(firsts(&serving(&[("org", ORG)], zones)).len(), 1);
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), ORG).expect("writable");
    let yaml = format!(
        "server: {{workers: 1, rotate: true, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n{zones}"
    );
    // That one of three never comes first in sixty answers happens once in ten thousand million
    // runs.
    assert_eq!(firsts(&Server::start_in(directory, &yaml)).len(), 3);
}
