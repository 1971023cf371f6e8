//! The built program and upstreams over TLS: who is believed, who is not, and what is said about
//! it.

use std::net::Ipv4Addr;
use std::time::Duration;
use testkit::{Ask, Authority, Identity, Script, Server, Stub, UdpClient, eventually, program};
use wire::{Rcode, Rtype};

/// The name that good servers have.
const NAME: &str = "dns.example.org";

/// Starts the program with one group of `servers`, as YAML, in which `AUTHORITY` is the file of an
/// authority.
fn start(authority: &Authority, servers: &str, more: &str) -> Server {
    start_group(authority, &format!("timeout: 2s, servers: [{servers}]"), more)
}

fn start_group(authority: &Authority, group: &str, more: &str) -> Server {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("authority.pem"), authority.pem()).expect("a writable directory");
    let group = group.replace("AUTHORITY", "@DIRECTORY@/authority.pem");
    let yaml = format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{{group}}}}}\n{more}\n"
    );
    Server::start_in(directory, &yaml)
}

/// Returns a server in a group: the stub, under a name or an address, and more settings.
fn at(stub: &Stub, more: &str) -> String {
    format!("{{address: \"tls://{}#{NAME}\", roots: \"AUTHORITY\"{more}}}", stub.address())
}

fn ask(name: &str) -> Ask {
    Ask::new(name, Rtype::A).edns(1232)
}

fn check_refused(identity: &Identity, authority: &Authority, more: &str, expect: &str) {
    let stub = Stub::start_secured(identity, Script::default());
    let mut server = start(authority, &at(&stub, more), "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::SERVFAIL);
    assert_eq!(stub.count("a.example.org."), 0, "it was told nothing");
    server.wait_for_log(expect);
    eventually(expect, || String::from_utf8_lossy(&server.command(&["status"]).stdout).contains(expect));
}

#[test]
fn a_server_that_proves_its_name_is_asked_over_one_connection() {
    let authority = Authority::new();
    let stub = Stub::start_secured(&authority.vouch(&[NAME]), Script::default());
    let server = start(&authority, &at(&stub, ""), "");
    let client = UdpClient::connect(server.address());
    for id in 0..50 {
        client.send(&ask(&format!("n{id}.example.org")).id(id).bytes());
    }
    for _ in 0..50 {
        assert_eq!(client.receive().answers().len(), 1);
    }
    assert_eq!(stub.connections(), 1);
    assert!(stub.seen().iter().all(|asked| asked.over_tcp));
}

#[test]
fn the_address_itself_can_be_what_is_proved() {
    let authority = Authority::new();
    let stub = Stub::start_secured(&authority.vouch(&["127.0.0.1"]), Script::default());
    let servers = format!("{{address: \"tls://{}\", roots: \"AUTHORITY\"}}", stub.address());
    let server = start(&authority, &servers, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
}

#[test]
fn a_name_can_be_dialled_at_an_address() {
    let authority = Authority::new();
    let stub = Stub::start_secured(&authority.vouch(&[NAME]), Script::default());
    let port = stub.address().port();
    let servers = format!("{{address: \"tls://{NAME}:{port}\", dial: 127.0.0.1, roots: \"AUTHORITY\"}}");
    let server = start(&authority, &servers, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
}

#[test]
fn a_name_is_looked_up_at_the_bootstrap_resolver() {
    let authority = Authority::new();
    let bootstrap = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::A => testkit::Answer::a(60, Ipv4Addr::LOCALHOST),
        _ => testkit::Answer::negative(Rcode::NOERROR, 60, 60),
    }));
    let stub = Stub::start_secured(&authority.vouch(&[NAME]), Script::default());
    let group = format!(
        "bootstrap: \"{}\", servers: [{{address: \"tls://{NAME}:{}\", roots: \"AUTHORITY\"}}]",
        bootstrap.address(),
        stub.address().port()
    );
    let server = start_group(&authority, &group, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    assert!(bootstrap.count("dns.example.org.") > 0);
}

#[test]
fn an_expired_certificate_is_refused_and_it_is_said_since_when() {
    let authority = Authority::new();
    check_refused(&authority.vouch_until_2020(&[NAME]), &authority, "", "the server's certificate expired");
}

#[test]
fn a_certificate_for_another_name_is_refused_and_both_names_are_said() {
    let authority = Authority::new();
    let expect = "is for dns.example.com, not for dns.example.org";
    check_refused(&authority.vouch(&["dns.example.com"]), &authority, "", expect);
}

#[test]
fn a_self_signed_certificate_is_refused_as_one() {
    check_refused(&Identity::self_signed(&[NAME]), &Authority::new(), "", "certificate is self-signed");
}

#[test]
fn a_certificate_that_is_its_own_authority_is_believed_where_it_is_trusted_itself() {
    let (itself, identity) = Identity::own_authority(&[NAME]);
    let stub = Stub::start_secured(&identity, Script::default());
    let server = start(&itself, &at(&stub, ""), "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    // For this name alone.
    let (itself, identity) = Identity::own_authority(&["another.example.org"]);
    check_refused(&identity, &itself, "", "is for another.example.org, not for dns.example.org");
    // Nobody trusts this one.
    let (_, identity) = Identity::own_authority(&[NAME]);
    check_refused(&identity, &itself, "", "to trust it, give it as \"roots\"");
}

#[test]
fn a_certificate_of_a_stranger_is_refused() {
    let expect = "from an authority that is not trusted";
    check_refused(&Authority::named("somebody").vouch(&[NAME]), &Authority::new(), "", expect);
    let expect = "not signed by the authority that it names";
    check_refused(&Authority::new().vouch(&[NAME]), &Authority::new(), "", expect);
}

#[test]
fn another_key_than_the_pinned_one_is_refused_and_told() {
    let authority = Authority::new();
    let (good, other) = (authority.vouch(&[NAME]), authority.vouch(&[NAME]));
    let pins = format!(", pins: [\"{}\"]", good.pin());
    check_refused(&other, &authority, &pins, &format!("another key than those pinned: {}", other.pin()));
}

#[test]
fn a_pinned_key_needs_nobody_to_vouch_for_it() {
    let identity = Identity::self_signed(&["something.else.example"]);
    let stub = Stub::start_secured(&identity, Script::default());
    let servers = format!("{{address: \"tls://{}\", pins: [\"{}\"]}}", stub.address(), identity.pin());
    let server = start(&Authority::new(), &servers, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
}

#[test]
fn tls_use_sni_keeps_the_name_from_who_is_on_the_way() {
    let authority = Authority::new();
    for (more, expect) in [("", Some(NAME)), (", sni: false", None)] {
        let stub = Stub::start_secured(&authority.vouch(&[NAME]), Script::default());
        let server = start(&authority, &at(&stub, more), "");
        assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
        assert_eq!(stub.told_name().as_deref(), expect);
    }
}

#[test]
fn nothing_is_proved_if_nothing_is_demanded() {
    let stub = Stub::start_secured(&Identity::self_signed(&["else.example"]), Script::default());
    let servers = format!("{{address: \"tls://{}\", verify: false}}", stub.address());
    let server = start(&Authority::new(), &servers, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
}

#[test]
fn a_chain_is_enough_where_no_name_is_demanded() {
    let authority = Authority::new();
    let chain = ", verify: chain";
    let (itself, own) = Identity::own_authority(&["another.example.org"]);
    for (identity, authority) in [(&authority.vouch(&["else.example"]), &authority), (&own, &itself)] {
        let stub = Stub::start_secured(identity, Script::default());
        let server = start(authority, &at(&stub, chain), "");
        assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    }
    let old = authority.vouch_until_2020(&["else.example"]);
    check_refused(&old, &authority, chain, "the server's certificate expired");
    check_refused(&Identity::self_signed(&[NAME]), &authority, chain, "certificate is self-signed");
    let expect = "from an authority that is not trusted";
    check_refused(&Authority::named("somebody").vouch(&[NAME]), &authority, chain, expect);
}

#[test]
fn sessions_are_resumed_when_the_server_closes_its_connections() {
    let authority = Authority::new();
    let stub = Stub::start_secured(&authority.vouch(&[NAME]), Script::default().closing_after(3));
    let server = start(&authority, &at(&stub, ""), "");
    for id in 0..12 {
        let heard = server.ask(&ask(&format!("n{id}.example.org")));
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "{heard:?}");
    }
    assert!(stub.connections() >= 4);
    assert!(stub.resumptions() >= 2, "{} of {}", stub.resumptions(), stub.connections());
}

#[test]
fn early_data_is_offered_only_where_it_is_wanted_and_answers_come_either_way() {
    let authority = Authority::new();
    let stub = Stub::start_secured(&authority.vouch(&[NAME]), Script::default().closing_after(1));
    let server = start(&authority, &at(&stub, ", early-data: true"), "");
    for id in 0..6 {
        assert_eq!(server.ask(&ask(&format!("n{id}.example.org"))).rcode(), Rcode::NOERROR);
    }
}

#[test]
fn another_server_is_asked_when_one_cannot_prove_who_it_is() {
    let authority = Authority::new();
    let bad = Stub::start_secured(&Identity::self_signed(&[NAME]), Script::default());
    let good = Stub::start_secured(&authority.vouch(&[NAME]), Script::default());
    let server = start(&authority, &format!("{}, {}", at(&bad, ""), at(&good, "")), "");
    for id in 0..10 {
        assert_eq!(server.ask(&ask(&format!("n{id}.example.org"))).rcode(), Rcode::NOERROR);
    }
    assert_eq!(bad.seen().len(), 0);
}

#[test]
fn a_server_whose_certificate_is_renewed_is_used_again_within_seconds() {
    let authority = Authority::new();
    let stub = Stub::start_secured(&authority.vouch_until_2020(&[NAME]), Script::default());
    let mut server = start(&authority, &at(&stub, ""), "cache: {main: {failure-ttl: 1s}}");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::SERVFAIL);
    stub.become_another(&authority.vouch(&[NAME]));
    let mut number = 0;
    eventually("the upstream is used again", || {
        number += 1;
        server.ask(&ask(&format!("n{number}.example.org"))).rcode() == Rcode::NOERROR
    });
    server.wait_for_log("again");
}

#[test]
fn a_server_that_stops_talking_on_a_connection_is_asked_over_another() {
    let authority = Authority::new();
    let stub = Stub::start_secured(&authority.vouch(&[NAME]), Script::default());
    let server = start_group(&authority, &format!("servers: [{}]", at(&stub, "")), "");
    assert_eq!(server.ask(&ask("before.example.org")).rcode(), Rcode::NOERROR);
    stub.behave(Script::default().delayed(Duration::from_secs(3600)));
    let client = UdpClient::connect(server.address());
    client.send(&ask("during.example.org").id(7).bytes());
    stub.wait_for("during.example.org.", 1);
    stub.behave(Script::default());
    let heard = client.receive();
    assert_eq!((heard.id(), heard.rcode(), heard.answers().len()), (7, Rcode::NOERROR, 1));
    assert!(stub.connections() >= 2);
}

#[test]
fn connections_that_are_to_be_kept_are_there_before_anybody_asks() {
    let authority = Authority::new();
    let stub = Stub::start_secured(&authority.vouch(&[NAME]), Script::default().closing_after(1));
    let server = start(&authority, &at(&stub, ", connections-min: 2"), "");
    eventually("two connections for each worker", || stub.connections() >= 2);
    let before = stub.connections();
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    eventually("the one that ended is opened again", || stub.connections() > before);
}

#[test]
fn mistakes_are_told_where_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = "upstreams: {default: {servers: [{address: \"tls://192.0.2.1\", roots: /nonexistent.pem}]}}\n";
    std::fs::write(directory.path().join("gannet.yaml"), text).expect("a writable directory");
    let mut command = program(directory.path());
    let output = command.args(["check", "-c", "gannet.yaml"]).output().expect("the program starts");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(!output.status.success() && said.contains("/nonexistent.pem\" cannot be read"), "{said}");
}

/// Returns a server in a group that is asked over QUIC.
fn quic_at(stub: &Stub, more: &str) -> String {
    at(stub, more).replace("tls://", "quic://")
}

/// Sends so many queries at once, far more than a server takes streams on one connection.
fn check_travel(scheme: &str, count: u16, more: &str) {
    let authority = Authority::new();
    let stub = Stub::start_quic(&authority.vouch(&[NAME]), Script::default());
    let server = start(&authority, &at(&stub, more).replace("tls://", scheme), "");
    let client = UdpClient::connect(server.address());
    for id in 0..count {
        client.send(&ask(&format!("n{id}.example.org")).id(id).bytes());
    }
    for _ in 0..count {
        assert_eq!(client.receive().answers().len(), 1);
    }
    stub.behave(Script::always(testkit::Answer::long_text(300, 40_000)));
    let heard = server.ask_tcp(&Ask::new("long.example.org", Rtype::TXT).edns(1232));
    assert!(heard.bytes().len() > 39_000, "{} octets", heard.bytes().len());
}

#[test]
fn queries_travel_over_quic() {
    check_travel("quic://", 300, "");
}

#[test]
fn queries_beyond_the_streams_of_one_connection_wait_for_them() {
    for scheme in ["quic://", "h3://"] {
        check_travel(scheme, 300, ", connections-max: 1");
    }
}

#[test]
fn queries_travel_over_http3() {
    check_travel("h3://", 300, "");
}

#[test]
fn a_certificate_is_refused_over_quic_for_the_same_reasons() {
    let authority = Authority::new();
    let stub = Stub::start_quic(&authority.vouch_until_2020(&[NAME]), Script::default());
    let mut server = start(&authority, &quic_at(&stub, ""), "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::SERVFAIL);
    assert_eq!(stub.seen().len(), 0);
    server.wait_for_log("the server's certificate expired");
}

#[test]
fn an_upstream_over_quic_that_was_away_is_found_again() {
    let authority = Authority::new();
    let mut stub = Stub::start_quic(&authority.vouch(&[NAME]), Script::default());
    let server = start(&authority, &quic_at(&stub, ""), "cache: {main: {failure-ttl: 1s}}");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    stub.die();
    assert_eq!(server.ask(&ask("b.example.org")).rcode(), Rcode::SERVFAIL);
    stub.revive();
    let mut number = 0;
    eventually("the upstream is used again", || {
        number += 1;
        server.ask(&ask(&format!("n{number}.example.org"))).rcode() == Rcode::NOERROR
    });
}

#[test]
fn a_stamp_says_where_a_server_is_and_which_certificate_vouches_for_it() {
    let authority = Authority::new();
    let identity = authority.vouch(&[NAME]);
    let stub = Stub::start_secured(&identity, Script::default());
    let stamp = |is_right| {
        format!("{{address: \"{}\", roots: \"AUTHORITY\"}}", identity.stamp(stub.address(), NAME, is_right))
    };
    let server = start(&authority, &stamp(true), "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    let mut server = start(&authority, &stamp(false), "");
    assert_eq!(server.ask(&ask("b.example.org")).rcode(), Rcode::SERVFAIL);
    assert_eq!(stub.count("b.example.org."), 0);
    server.wait_for_log("not from an authority that its stamp names");
}

#[test]
fn a_server_is_measured() {
    let stub = Stub::start_secured(&Identity::self_signed(&[NAME]), Script::default());
    let directory = tempfile::tempdir().expect("a directory");
    let server = format!("{{address: \"tls://{}\", verify: false}}", stub.address());
    let mut command = program(directory.path());
    command.args(["probe", &server, "--name", "example.org", "--signed", "example.org"]);
    command.args(["--bogus", "bogus.example.org", "--count", "5", "--idle", "0.2", "--json"]);
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let expected = [
        "\"answered\": 5",
        "\"sent\": 16",
        "\"out-of-order\": false",
        "\"client-subnet\": \"not taken\"",
        "\"refuses-bogus\": false",
        "\"watched-for-ms\"",
        "\"again-ms\"",
    ];
    for expect in expected {
        assert!(said.contains(expect), "{expect} is missing: {said}");
    }
}

#[test]
fn what_was_measured_is_a_table_too() {
    let stub = Stub::start(Script::default());
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = program(directory.path());
    let server = format!("{{address: \"tcp://{}\"}}", stub.address());
    command.args(["probe", &server, "--name", "example.org", "--signed", "example.org"]);
    command.args(["--bogus", "bogus.example.org", "--count", "3", "--idle", "0.2"]);
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    for expect in
        ["round trip", "3 answered one after the other", "at once", "16 of 16 answered", "still open"]
    {
        assert!(said.contains(expect), "{expect} is missing: {said}");
    }
}

#[test]
fn what_cannot_be_measured_is_explained() {
    let stub = Stub::start_secured(&Identity::self_signed(&[NAME]), Script::default());
    let directory = tempfile::tempdir().expect("a directory");
    let run = |server: &str| {
        let mut command = program(directory.path());
        let output = command.args(["probe", server]).output().expect("the program starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let said = run(&format!("{{address: \"tls://{}\"}}", stub.address()));
    assert!(said.contains("the server's certificate is self-signed"), "{said}");
    assert_eq!(stub.seen().len(), 0);
    let said = run("ftp://192.0.2.1");
    assert!(said.contains("unknown transport"), "{said}");
}

#[test]
fn our_own_server_is_measured_and_is_seen_to_close_what_idles() {
    let stub = Stub::start(Script::default());
    let server = Server::start(&testkit::forwarding(&[&stub], "limits: {tcp: {idle-timeout: 1s}}"));
    let mut command = program(server.directory());
    let target = format!("{{address: \"tcp://{}\"}}", server.address());
    command.args(["probe", &target, "--name", "example.org", "--signed", "example.org"]);
    command.args(["--bogus", "bogus.example.org", "--count", "3", "--idle", "15", "--json"]);
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    for expect in ["\"answered\": 3", "\"answered\": 16", "\"closed-after-ms\"", "\"again-ms\""] {
        assert!(said.contains(expect), "{expect} is missing: {said}");
    }
}
