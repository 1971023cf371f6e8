//! ALIAS records: addresses of names elsewhere, answered as the owner's own.

use std::net::{Ipv4Addr, Ipv6Addr};

use tempfile::TempDir;

use testkit::{Answer, Ask, Script, Server, Stub, eventually};
use wire::{EdeCode, Rcode, Rtype};

const ORG: &str = "$TTL 3600\n@ SOA ns admin 7 7200 600 86400 60\n@ NS ns\n@ MX 10 ns\n@ ALIAS Host.example.net.\nns A 192.0.2.1\n\
    own 60 ALIAS www\nwww A 192.0.2.2\nwww A 192.0.2.3\nchain ALIAS hop\nhop CNAME far\nfar ALIAS host.example.net.\n\
    to CNAME own\n*.wild ALIAS www\nloop ALIAS pool\npool ALIAS loop\nnone ALIAS nothing\nchosen ALIAS geo\ngeo TXT x\n";

fn config(resolvers: &[&Stub], sign: &str, more: &str) -> String {
    let resolvers: Vec<String> = resolvers.iter().map(|stub| format!("\"{}\"", stub.address())).collect();
    format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\"]\n\
         alias: {{resolvers: [{}]{more}}}\n\
         signing: {{online: {{denial: compact}}, before: {{}}}}\n\
         zones:\n\
         \x20 - {{name: example.org, file: org{sign}, choose: [{{name: geo.example.org, type: A, from: [{{data: 192.0.2.8}}]}}]}}\n\
         \x20 - {{name: example.com, file: com.json}}\n\
         policy: {{main: [zones]}}\n",
        resolvers.join(", ")
    )
}

const COM: &str = r#"[{"name": "example.com", "records": [
    {"name": "example.com", "type": "SOA", "ttl": 3600, "data": {"mname": "ns.example.com", "rname": "a.example.com",
     "serial": 1, "refresh": 2, "retry": 3, "expire": 4, "minimum": 5}},
    {"name": "example.com", "type": "NS", "ttl": 3600, "data": {"dname": "ns.example.org"}},
    {"name": "example.com", "type": "ALIAS", "ttl": 3600, "data": {"dname": "www.example.org"}}]}]"#;

fn directory() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), ORG).expect("a writable directory");
    std::fs::write(directory.path().join("com.json"), COM).expect("a writable directory");
    directory
}

fn resolver(ttl: u32, address: [u8; 4]) -> Script {
    Script::answering(move |asked| match asked.qtype {
        Rtype::A => Answer::a(ttl, Ipv4Addr::from(address)),
        _ => Answer::aaaa(ttl, Ipv6Addr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(address[3])])),
    })
}

fn addresses(server: &Server, name: &str, rtype: Rtype) -> Vec<String> {
    let mut found: Vec<String> = server
        .ask(&Ask::new(name, rtype))
        .answers()
        .iter()
        .filter_map(|line| line.rsplit(' ').next().map(str::to_owned))
        .collect();
    found.sort();
    found
}

#[test]
fn names_of_our_own_zones_are_followed_without_anybody_elses_help() {
    let stub = Stub::start(Script::silent());
    let server = Server::start_in(directory(), &config(&[&stub], "", ""));
    assert_eq!(addresses(&server, "own.example.org", Rtype::A), ["192.0.2.2", "192.0.2.3"]);
    assert_eq!(addresses(&server, "a.wild.example.org", Rtype::A), ["192.0.2.2", "192.0.2.3"]);
    assert_eq!(addresses(&server, "chosen.example.org", Rtype::A), ["192.0.2.8"]);
    // Through an alias of the other kind, and from a file in JSON.
    assert_eq!(addresses(&server, "example.com", Rtype::A), ["192.0.2.2", "192.0.2.3"]);
    let to = server.dig(&["to.example.org", "A"]);
    testkit::contains(&to, "own.example.org.\t60\tIN\tA\t192.0.2.2");
    let no_data = server.ask(&Ask::new("own.example.org", Rtype::AAAA));
    assert_eq!(
        (no_data.rcode(), no_data.answers().len(), no_data.authorities().len()),
        (Rcode::NOERROR, 0, 1)
    );
    // What is not there has nothing; what leads nowhere is a failure.
    assert_eq!(server.ask(&Ask::new("none.example.org", Rtype::A)).rcode(), Rcode::NOERROR);
    assert_eq!(server.ask(&Ask::new("loop.example.org", Rtype::A)).rcode(), Rcode::SERVFAIL);
    // Other types are the owner's.
    assert!(server.dig(&["example.org", "MX"]).contains("10 ns.example.org."));
    assert_eq!(stub.count("www.example.org"), 0);
}

#[test]
fn names_elsewhere_are_asked_for_ahead_and_kept_while_nobody_answers() {
    let stub = Stub::start(resolver(5, [198, 51, 100, 7]));
    let server = Server::start_in(directory(), &config(&[&stub], "", ""));
    eventually("the target's address", || addresses(&server, "example.org", Rtype::A) == ["198.51.100.7"]);
    eventually("its other address", || addresses(&server, "example.org", Rtype::AAAA) == ["2001:db8::7"]);
    assert_eq!(addresses(&server, "chain.example.org", Rtype::A), ["198.51.100.7"]);
    let ttls = server.ask(&Ask::new("example.org", Rtype::A)).ttls();
    assert!(ttls.iter().all(|ttl| *ttl <= 5), "{ttls:?}");
    // Asked ahead of time, not by each client.
    let asked = stub.count("host.example.net");
    for _ in 0..50 {
        assert_eq!(addresses(&server, "example.org", Rtype::A), ["198.51.100.7"]);
    }
    assert!(stub.count("host.example.net") <= asked + 4);
    stub.behave(resolver(5, [198, 51, 100, 8]));
    eventually("the new address", || addresses(&server, "example.org", Rtype::A) == ["198.51.100.8"]);
    // What cannot be asked for stays.
    stub.behave(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    let mut server = server;
    server.wait_for_log("what an ALIAS leads to cannot be resolved");
    assert_eq!(addresses(&server, "example.org", Rtype::A), ["198.51.100.8"]);
    stub.behave(resolver(5, [198, 51, 100, 9]));
    server.wait_for_log("what an ALIAS leads to is resolved again");
    eventually("the newest address", || addresses(&server, "example.org", Rtype::A) == ["198.51.100.9"]);
}

#[test]
fn what_nobody_resolves_is_told_and_fails_by_itself() {
    let server = Server::start_in(directory(), &config(&[], "", ""));
    let heard = server.ask(&Ask::new("example.org", Rtype::A).edns(1232));
    assert_eq!(heard.rcode(), Rcode::SERVFAIL);
    assert_eq!(heard.errors()[0].0, EdeCode::NO_REACHABLE_AUTHORITY.0);
    // Everything else of the zone is answered.
    assert_eq!(addresses(&server, "www.example.org", Rtype::A), ["192.0.2.2", "192.0.2.3"]);
    let output = server.command(&["check", "-c", "gannet.yaml"]);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    testkit::contains(&text, "has an ALIAS that leads to \"host.example.net.\", which nobody resolves");
    server.write_config(&config(&[], ", sign: before", ""));
    let output = server.command(&["check", "-c", "gannet.yaml"]);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    testkit::contains(&text, "is signed, but the addresses of ALIAS records are not");
}

#[test]
fn a_transfer_has_the_record_itself() {
    let stub = Stub::start(resolver(60, [198, 51, 100, 7]));
    let server = Server::start_in(directory(), &config(&[&stub], ", transfer: [127.0.0.1, \"::1\"]", ""));
    eventually("the target's address", || addresses(&server, "example.org", Rtype::A) == ["198.51.100.7"]);
    let whole = server.dig(&["+tcp", "example.org", "AXFR"]);
    testkit::contains(&whole, "example.org.\t\t3600\tIN\tTYPE65401");
    testkit::lacks(&whole, "198.51.100.7");
}

#[test]
fn addresses_are_signed_where_answers_are() {
    let stub = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::A => Answer::a(3600, Ipv4Addr::new(198, 51, 100, 7)),
        _ => Answer::negative(Rcode::NOERROR, 3600, 3600),
    }));
    let server = Server::start_in(directory(), &config(&[&stub], ", sign: online", ""));
    // What is left of an hour is signed, however long the first question takes to come.
    eventually("the target's address, signed", || {
        let printed = server.dig(&["+dnssec", "example.org", "A"]);
        printed.contains("198.51.100.7") && printed.contains("RRSIG\tA 13 2 3")
    });
    // The proof lists what there is, and not what there is not.
    let proof = server.dig(&["+dnssec", "example.org", "TXT"]);
    testkit::contains(&proof, "\\000.example.org. A NS SOA MX RRSIG NSEC DNSKEY TYPE65401");
    let proof = server.dig(&["+dnssec", "own.example.org", "TXT"]);
    testkit::contains(&proof, "\\000.own.example.org. A RRSIG NSEC TYPE65401");
    let keys = server.dig(&["+noall", "+answer", "example.org", "DNSKEY"]);
    let ds = testkit::ds_of_keys(server.directory(), "example.org", &keys).expect("DS records");
    testkit::write_anchor(server.directory(), "example.org", &ds);
    for (name, rtype, expect) in [
        ("example.org", "A", "; fully validated"),
        ("example.org", "AAAA", "; negative response, fully validated"),
        ("a.wild.example.org", "A", "; fully validated"),
        ("own.example.org", "AAAA", "; negative response, fully validated"),
    ] {
        testkit::contains(&server.delv("example.org", name, rtype), expect);
    }
}
