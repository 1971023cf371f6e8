//! Zones whose proofs are made, and signed, for each question (RFC 9824), as validators and
//! operators meet them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use testkit::{Ask, Heard, Server, UdpClient, ds_of_keys, eventually, said, write_anchor};
use wire::{EdeCode, Rcode, Rtype};

const ZONE: &str = "$TTL 3600\n@ SOA ns admin 7 7200 600 86400 60\n@ NS ns\n@ MX 10 mail\nns A 192.0.2.1\nmail A 192.0.2.2\n\
    www A 192.0.2.3\nwww HTTPS 1 . alpn=h2\n*.wild TXT \"any\"\n*.wild MX 10 mail\n*.other CNAME www\na.b.deep TXT \"deep\"\n\
    open NS ns.open\nns.open A 192.0.2.4\nalias CNAME www\nto CNAME none\n";
const REVERSE: &str =
    "$TTL 3600\n@ SOA ns.example.org. admin.example.org. 7 7200 600 86400 60\n@ NS ns.example.org.\n";

fn config(policy: &str, more: &str) -> String {
    format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\"]\n\
         signing: {{mine: {{denial: compact{policy}}}}}\n\
         zones:\n\
         \x20 - name: example.org\n\
         \x20   file: org\n\
         \x20   sign: mine\n\
         \x20   make: [{{prefix: host-, networks: [192.0.2.0/24, \"2001:db8::/32\"]}}]\n\
         \x20   choose:\n\
         \x20     - {{name: www.example.org, type: AAAA, from: [{{data: \"2001:db8::1\", clients: 198.51.100.0/24}}, {{data: \"2001:db8::2\"}}]}}\n\
         \x20     - {{name: far.chosen.example.org, type: A, from: [{{data: 192.0.2.9}}]}}\n\
         \x20 - name: 2.0.192.in-addr.arpa\n\
         \x20   file: reverse\n\
         \x20   sign: mine\n\
         \x20   make: [{{prefix: host-, networks: 192.0.2.0/24, origin: example.org}}]\n\
         policy: {{main: [{{do: reject(refused)}}]}}\n{more}"
    )
}

fn serving(policy: &str, more: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), ZONE).expect("a writable directory");
    std::fs::write(directory.path().join("reverse"), REVERSE).expect("a writable directory");
    let server = Server::start_in(directory, &config(policy, more));
    wait_until_signed(&server);
    server
}

fn wait_until_signed(server: &Server) {
    for zone in ["example.org", "2.0.192.in-addr.arpa"] {
        eventually("the zone is signed", || server.dig(&[zone, "SOA"]).contains("status: NOERROR"));
    }
}

/// Returns the DS of a zone, as a parent would have it: made by BIND of the keys that are served.
fn ds(server: &Server, zone: &str) -> String {
    let keys = server.dig(&["+noall", "+answer", zone, "DNSKEY"]);
    ds_of_keys(server.directory(), zone, &keys).expect("DS records")
}

/// Asks with BIND's validator, which trusts the zone's own key.
fn delv(server: &Server, zone: &str, name: &str, rtype: &str) -> String {
    write_anchor(server.directory(), zone, &ds(server, zone));
    server.delv(zone, name, rtype)
}

const POSITIVE: &str = "; fully validated";
const NEGATIVE: &str = "; negative response, fully validated";

const JUDGED: [(&str, &str, &str); 22] = [
    ("example.org", "SOA", POSITIVE),
    ("www.example.org", "A", POSITIVE),
    ("alias.example.org", "A", POSITIVE),
    // No type, no name, no name below a name, an empty non-terminal.
    ("www.example.org", "TXT", NEGATIVE),
    ("none.example.org", "A", NEGATIVE),
    ("none.example.org", "MX", NEGATIVE),
    ("x.a.b.deep.example.org", "A", NEGATIVE),
    ("b.deep.example.org", "A", NEGATIVE),
    ("to.example.org", "A", POSITIVE),
    // Wildcards.
    ("a.wild.example.org", "TXT", POSITIVE),
    ("b.c.wild.example.org", "MX", POSITIVE),
    ("a.other.example.org", "A", POSITIVE),
    ("a.wild.example.org", "A", NEGATIVE),
    // A delegation without DS.
    ("open.example.org", "DS", NEGATIVE),
    // Made from addresses.
    ("host-192-0-2-7.example.org", "A", POSITIVE),
    ("host-2001-db8--7.example.org", "AAAA", POSITIVE),
    ("host-192-0-2-7.example.org", "AAAA", NEGATIVE),
    // Chosen for the client: at a name of the zone, at one of its own, and above that.
    ("www.example.org", "AAAA", POSITIVE),
    ("far.chosen.example.org", "A", POSITIVE),
    ("far.chosen.example.org", "TXT", NEGATIVE),
    ("chosen.example.org", "A", NEGATIVE),
    // The proof itself.
    ("www.example.org", "NSEC", POSITIVE),
];

#[test]
fn delv_finds_every_answer_secure() {
    for policy in ["", ", algorithm: ed25519, single-type-signing: true", ", algorithm: ecdsap384sha384"] {
        let server = serving(policy, "");
        for (name, rtype, expect) in JUDGED {
            let said = delv(&server, "example.org", name, rtype);
            assert!(said.contains(expect), "{policy} {name} {rtype}: {said}");
        }
        let zone = "2.0.192.in-addr.arpa";
        for (name, rtype, expect) in
            [("7.2.0.192.in-addr.arpa", "PTR", POSITIVE), ("7.2.0.192.in-addr.arpa", "A", NEGATIVE)]
        {
            let said = delv(&server, zone, name, rtype);
            assert!(said.contains(expect), "{policy} {name} {rtype}: {said}");
        }
    }
}

/// Unbound, which asks our server about the zone and trusts its DS. Ends when it is dropped.
struct Validator {
    child: Child,
    address: SocketAddr,
}

impl Drop for Validator {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn unbound(server: &Server) -> Validator {
    let address = testkit::free_address();
    let anchors: String = ds(server, "example.org").lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "  trust-anchor: \"{line}\"");
        text
    });
    let config = format!(
        "server:\n  interface: {}@{}\n  do-daemonize: no\n  username: \"\"\n  chroot: \"\"\n  directory: \"{}\"\n  \
         pidfile: \"\"\n  use-syslog: no\n  do-not-query-localhost: no\n  do-ip6: no\n  module-config: \"validator iterator\"\n\
         {anchors}stub-zone:\n  name: example.org\n  stub-addr: {}@{}\n",
        address.ip(),
        address.port(),
        server.directory().display(),
        server.address().ip(),
        server.address().port()
    );
    std::fs::write(server.directory().join("unbound.conf"), config).expect("writable");
    let child = Command::new("unbound")
        .args(["-d", "-c", "unbound.conf"])
        .current_dir(server.directory())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is installed: `cargo xtask test` does that");
    let validator = Validator { child, address };
    let (at, port) = (format!("@{}", address.ip()), address.port().to_string());
    eventually("unbound answers", || {
        let dig = ["-p", &port, "+tries=1", "+time=1", "example.org", "SOA"];
        Command::new("dig").arg(&at).args(dig).output().is_ok_and(|output| said(&output).contains("status: "))
    });
    validator
}

#[test]
fn unbound_finds_every_answer_secure() {
    let server = serving("", "");
    let validator = unbound(&server);
    for (name, rtype, expect) in JUDGED {
        let said = testkit::dig(validator.address, &["+dnssec", name, rtype]);
        let flags = said.lines().find(|line| line.contains("flags: qr")).unwrap_or_default();
        assert!(flags.contains(" ad") && said.contains("status: NOERROR"), "{name} {rtype} {expect}: {said}");
    }
}

/// Asks with DO and CO.
fn ask_with_co(server: &Server, name: &str) -> Heard {
    let mut query = Ask::new(name, Rtype::A).dnssec().bytes();
    // The OPT is at the end, and without options: two octets of flags, two of length.
    let flags_at = query.len() - 4;
    query[flags_at] |= 0x40;
    let client = UdpClient::connect(server.address());
    client.send(&query);
    client.receive()
}

#[test]
fn what_does_not_exist_is_told_as_each_client_takes_it() {
    let server = serving("", "");
    // Without DO, an ordinary NXDOMAIN.
    let plain = server.dig(&["none.example.org", "A"]);
    assert!(plain.contains("status: NXDOMAIN") && !plain.contains("NSEC"), "{plain}");
    // With it, a name that has nothing (RFC 9824 §3.1).
    let proved = server.dig(&["+dnssec", "None.example.org", "A"]);
    assert!(proved.contains("status: NOERROR"), "{proved}");
    testkit::contains(&proved, "None.example.org.\t60\tIN\tNSEC\t\\000.none.example.org. RRSIG NSEC TYPE128");
    // With CO besides, NXDOMAIN with the same proof, and CO (RFC 9824 §5.1).
    let both = ask_with_co(&server, "none.example.org");
    assert_eq!(both.rcode(), Rcode::NXDOMAIN);
    let same = server.ask(&Ask::new("none.example.org", Rtype::A).dnssec());
    assert_eq!((both.authorities(), same.rcode()), (same.authorities(), Rcode::NOERROR));
    assert_eq!(both.message().edns.map(|edns| edns.flags), Some(0xc000));
    // An empty non-terminal is there.
    let between = ask_with_co(&server, "b.deep.example.org");
    assert_eq!(between.rcode(), Rcode::NOERROR);
    let between = server.dig(&["+dnssec", "b.deep.example.org", "A"]);
    testkit::contains(&between, "b.deep.example.org.\t60\tIN\tNSEC\t\\000.b.deep.example.org. RRSIG NSEC\n");
    // What is there is listed, what is chosen too.
    let types = server.dig(&["+dnssec", "www.example.org", "TXT"]);
    testkit::contains(&types, "\\000.www.example.org. A AAAA RRSIG NSEC HTTPS");
    // An insecure delegation.
    let referral = server.dig(&["+dnssec", "x.open.example.org", "A"]);
    testkit::contains(&referral, "open.example.org.\t60\tIN\tNSEC\t\\000.open.example.org. NS RRSIG NSEC\n");
    assert!(!referral.contains("flags: qr aa"), "{referral}");
    // Nobody may ask for the type that stands for nothing (RFC 9824 §3.5).
    let meta = Ask::new("www.example.org", Rtype::NXNAME).edns(1232);
    let heard = server.ask(&meta);
    assert_eq!(heard.rcode(), Rcode::FORMERR);
    assert_eq!(heard.errors(), [(EdeCode::INVALID_QUERY_TYPE.0, String::new())]);
}

#[test]
fn names_that_are_as_long_as_can_be_are_denied() {
    let server = serving("", "");
    let long = "a".repeat(63);
    for first in [47, 48, 49, 50, 51] {
        let name = format!("{}.{long}.{long}.{long}.example.org", "b".repeat(first - 1));
        if name.len() > 253 {
            continue;
        }
        let said = delv(&server, "example.org", &name, "A");
        assert!(said.contains(NEGATIVE), "{} octets: {said}", name.len() + 2);
    }
}

#[test]
fn strangers_cannot_have_more_signed_than_is_allowed() {
    let server = serving("", "limits: {signatures: {per-second: 4}}\n");
    let client = UdpClient::connect(server.address());
    let mut refused = 0;
    for i in 0..200 {
        let heard = client.ask(&Ask::new(&format!("x{i}.example.org"), Rtype::A).dnssec());
        if heard.rcode() == Rcode::SERVFAIL {
            refused += 1;
            assert_eq!(heard.errors(), [(EdeCode::OTHER.0, "too many signatures in this second".to_owned())]);
            assert!(heard.authorities().is_empty());
        }
    }
    assert!(refused > 100, "{refused} of 200 were refused");
    assert_eq!(server.stat("signatures", "refused"), refused);
    assert_eq!(server.stat("signatures", "made"), 200 - refused);
    // What is in the zone is signed already.
    let there = client.ask(&Ask::new("www.example.org", Rtype::A).dnssec());
    assert_eq!((there.rcode(), there.answers().len()), (Rcode::NOERROR, 2));
    // What was signed once is not signed again.
    let name = Ask::new("www.example.org", Rtype::TXT).dnssec();
    eventually("a proof", || client.ask(&name).rcode() == Rcode::NOERROR);
    for _ in 0..50 {
        assert_eq!(client.ask(&name).rcode(), Rcode::NOERROR);
    }
}

#[test]
fn a_restart_and_a_roll_over_leave_everything_secure() {
    let server = serving("", "");
    let before = ds(&server, "example.org");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &config("", ""));
    // From the first answer on: what was signed last is there, and so are the keys.
    let said = delv(&server, "example.org", "none.example.org", "A");
    assert!(said.contains(NEGATIVE), "{said}");
    wait_until_signed(&server);
    assert_eq!(ds(&server, "example.org"), before);
    // Another algorithm signs everything beside the first, proofs as well.
    server.write_config(&config(", algorithm: ed25519", ""));
    let output = server.command(&["reload"]);
    assert!(output.status.success(), "{}", testkit::said(&output));
    let proof = || server.dig(&["+dnssec", "none.example.org", "A"]);
    eventually("both algorithms sign", || {
        let proof = proof();
        proof.contains("RRSIG\tNSEC 13 3 ") && proof.contains("RRSIG\tNSEC 15 3 ")
    });
    let said = delv(&server, "example.org", "none.example.org", "A");
    assert!(said.contains(NEGATIVE), "{said}");
    // A changed file is another version; what was remembered is not what is there now.
    assert!(proof().contains("TYPE128"));
    std::fs::write(server.directory().join("org"), format!("{ZONE}none TXT \"some\"\n")).expect("writable");
    assert!(server.command(&["reload"]).status.success());
    eventually("the new name", || proof().contains("\\000.none.example.org. TXT RRSIG NSEC\n"));
}

#[test]
fn what_cannot_be_signed_online_is_refused_with_a_reason() {
    let server = serving("", "");
    let check = |yaml: &str, expect: &str| {
        server.write_config(yaml);
        let output = server.command(&["check", "-c", "gannet.yaml"]);
        let text = said(&output);
        assert!(!output.status.success() && text.contains(expect), "{text}");
    };
    check(&config(", algorithm: rsasha256", ""), "RSASHA256 takes too long to sign while clients wait");
    check(&config(", nsec3: true", ""), "\"denial: compact\" and \"nsec3: true\" exclude each other");
    check(
        &config("", "").replace("sign: mine\n", "sign: mine\n    transfer: [any]\n"),
        "secondaries could not prove what does not exist",
    );
    check(&config("", "").replace("denial: compact", "denial: compat"), "did you mean \"compact\"");
    // Signed beforehand, what is made or chosen stays unsigned, and the operator hears so.
    server.write_config(&config("", "").replace("denial: compact", "denial: nsec3"));
    let text = said(&server.command(&["check", "-c", "gannet.yaml"]));
    assert!(text.contains("is signed, but what \"make\" and \"choose\" answer is not"), "{text}");
}
