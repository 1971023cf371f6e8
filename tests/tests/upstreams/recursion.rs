//! The built program as a resolver, in a simulated internet on loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use gannet_bench::world::{Service, Way};
use tempfile::TempDir;
use testkit::dnstap::{Manner, Receiver};
use testkit::streams::{ask_doq, post_h2, post_h3};
use testkit::tls::{NAME, post};
use testkit::world::{Denial, HOSTS, KINDS, Options, RootKeys, World};
use testkit::{
    Ask, Heard, Server, TcpClient, TlsClient, UdpClient, certificate, eventually, is_installed, name,
};
use wire::{EdeCode, Flags, Name, NameBuf, Rcode, Rtype, Section, rdata};

/// Zones of each internet.
pub(super) const ZONES: u32 = 300;

/// Starts an internet, and a server that finds answers there.
pub(super) fn start(options: Options, way: Way) -> (Arc<Service>, Server) {
    start_with(options, way, |_| "policy: {main: [recurse]}\n".to_owned())
}

/// Does the same with a policy that is made for the internet.
pub(super) fn start_with(
    options: Options,
    way: Way,
    policy: impl FnOnce(&World) -> String,
) -> (Arc<Service>, Server) {
    let unix_seconds =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let options = Options { network: 127, tlds: 5, zones: ZONES, has_ipv6: false, unix_seconds, ..options };
    let (service, port) = Service::start(World::new(options), way).expect("loopback has ports");
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME]);
    std::fs::write(directory.path().join("root.hints"), service.world().hints())
        .expect("a writable directory");
    let validation = match service.world().anchor() {
        Some(anchor) => {
            std::fs::write(directory.path().join("root.ds"), anchor).expect("a writable directory");
            "trust-anchors: \"@DIRECTORY@/root.ds\""
        }
        None => "validation: \"off\"",
    };
    let settings = format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\", {{at: \"@ANOTHER@\", transport: tls}}, \
                  {{at: \"127.0.0.1:0\", transport: [https, h3]}}, {{at: \"127.0.0.1:0\", transport: quic}}]\n\
         tls: {{certificates: [{{certificate: certificate.pem, key: key.pem}}]}}\n\
         resolvers: {{default: {{root-hints: \"@DIRECTORY@/root.hints\", port: {port}, ask-loopback: true, ipv6: false, \
                      {validation}}}}}\n{}",
        policy(service.world())
    );
    (service, Server::start_in(directory, &settings))
}

/// Returns the answer section: owner, type, data with its names in full.
fn answers(heard: &Heard) -> Vec<(NameBuf, Rtype, Vec<u8>)> {
    let message = heard.message();
    let records = message.records().filter(|record| record.section == Section::Answer);
    let of = |record: wire::Record<'_>| {
        let mut data = Vec::new();
        let place = record.rdata_at..record.end();
        rdata::write_canonical(record.rtype, heard.bytes(), place, &mut data).expect("well formed");
        (record.owner.expand().expect("a name"), record.rtype, data)
    };
    records.map(of).collect()
}

/// Compares an answer with the right one.
pub(super) fn check(service: &Service, heard: &Heard, qname: Name<'_>, qtype: Rtype) {
    let truth = service.world().truth(qname, qtype);
    let (mut found, mut right) = (answers(heard), truth.records);
    let order = |record: &(NameBuf, Rtype, Vec<u8>)| (record.1, record.2.clone());
    found.sort_by_key(order);
    right.sort_by_key(order);
    assert_eq!((heard.rcode(), &found), (truth.rcode, &right), "{qname} {qtype}: {heard:?}");
}

pub(super) fn count(service: &Service, kind: &str) -> u64 {
    let numbers = service.world().counts.read();
    KINDS.into_iter().zip(numbers).find(|(name, _)| *name == kind).map_or(0, |(_, number)| number)
}

/// Asks for one host of so many zones; all answers must be right.
fn check_hosts(service: &Service, server: &Server, zones: u32) {
    let client = UdpClient::connect(server.address());
    for leaf in 0..zones {
        let host = HOSTS[leaf as usize % HOSTS.len()];
        let qname = format!("{host}.{}", service.world().zone_text(leaf));
        let heard = client.ask(&Ask::new(&qname, Rtype::A).edns(1232).id(leaf as u16));
        check(service, &heard, name(&qname).as_name(), Rtype::A);
    }
}

#[test]
fn names_of_all_kinds_are_answered_over_udp_and_tcp() {
    let (service, server) = start(Options::default(), Way::default());
    let (udp, mut tcp) = (UdpClient::connect(server.address()), TcpClient::connect(server.address()));
    for leaf in [0, 7, 299] {
        let zone = service.world().zone_text(leaf);
        let hosts = ["www", "alias", "chain", "text", "deep", "host.deep", "a.b.wild", "ns1", "no", "a.www"];
        let mut questions: Vec<(String, Rtype)> =
            hosts.iter().map(|host| (format!("{host}.{zone}"), Rtype::A)).collect();
        questions.push((format!("text.{zone}"), Rtype::TXT));
        questions.push((format!("www.{zone}"), Rtype::AAAA));
        questions.push((format!("www.{zone}"), Rtype::MX));
        questions.extend([Rtype::NS, Rtype::SOA, Rtype::MX].map(|rtype| (zone.clone(), rtype)));
        questions.extend(["t004", "t005", "no.t001", "no"].map(|other| (other.to_owned(), Rtype::A)));
        for (qname, qtype) in questions {
            let ask = Ask::new(&qname, qtype).edns(1232);
            let qname = name(&qname);
            check(&service, &udp.ask(&ask), qname.as_name(), qtype);
            check(&service, &tcp.ask(&ask), qname.as_name(), qtype);
        }
    }
}

#[test]
fn encrypted_transports_wait_for_what_is_found() {
    let (service, server) = start(Options::default(), Way::default());
    let trusted = server.directory().join("certificate.pem");
    let at = |transport| SocketAddr::new(server.address().ip(), server.port(transport));
    // Each asks for another zone, so that none finds what another one has brought.
    let query = |leaf| {
        let qname = format!("www.{}", service.world().zone_text(leaf));
        (Ask::new(&qname, Rtype::A).edns(1232), name(&qname))
    };
    let judge = |heard: Heard, qname: &NameBuf| check(&service, &heard, qname.as_name(), Rtype::A);
    let (ask, qname) = query(1);
    judge(TlsClient::connect(server.another(), &trusted).ask(&ask), &qname);
    let (ask, qname) = query(2);
    judge(Heard::new(ask_doq(at("quic"), &trusted, &ask.bytes()).expect("a reply")), &qname);
    for (leaf, (status, body)) in (3..).zip([
        post(at("https"), &trusted, &query(3).0.bytes()),
        post_h2(at("https"), &trusted, &query(4).0.bytes()),
        post_h3(at("h3"), &trusted, &query(5).0.bytes()),
    ]) {
        assert_eq!(status, 200);
        judge(Heard::new(body), &query(leaf).1);
    }
}

#[test]
fn what_was_found_is_known() {
    let (service, server) = start(Options::default(), Way::default());
    check_hosts(&service, &server, 20);
    let before = count(&service, "all");
    check_hosts(&service, &server, 20);
    assert_eq!(count(&service, "all"), before);
    // The servers of the root and of top-level domains see no more of a name than they need.
    assert!(count(&service, "minimised") >= 20);
}

#[test]
fn what_is_truncated_is_asked_for_over_tcp() {
    let (service, server) = start(Options::default(), Way::default());
    let qname = format!("big.{}", service.world().zone_text(3));
    let ask = Ask::new(&qname, Rtype::TXT).edns(1232);
    assert!(server.ask(&ask).has(Flags::TC));
    check(&service, &server.ask_tcp(&ask), name(&qname).as_name(), Rtype::TXT);
    assert!(count(&service, "tcp") >= 1);
}

#[test]
fn servers_without_addresses_in_the_referral_are_found() {
    let (service, server) = start(Options { out_of_zone: 1_000, ..Options::default() }, Way::default());
    check_hosts(&service, &server, 60);
}

#[test]
fn one_faulty_server_of_each_zone_does_not_matter() {
    let faulty = [
        Options { dead: 1_000, ..Options::default() },
        Options { lame: 1_000, ..Options::default() },
        Options { without_edns: 1_000, ..Options::default() },
    ];
    for options in faulty {
        let (service, server) = start(options, Way::default());
        check_hosts(&service, &server, 30);
    }
}

#[test]
fn names_are_found_although_packets_are_lost() {
    let way = Way { loss_ppm: 100_000, ..Way::default() };
    let (service, server) = start(Options { delay_ms: 1..=20, ..Options::default() }, way);
    check_hosts(&service, &server, 60);
}

#[test]
fn names_are_found_again_as_soon_as_the_internet_is_back() {
    let (service, server) = start(Options::default(), Way::default());
    let client = UdpClient::connect(server.address());
    let ask = |leaf| Ask::new(&format!("www.{}", service.world().zone_text(leaf)), Rtype::A).edns(1232);
    assert_eq!(client.ask(&ask(0)).rcode(), Rcode::NOERROR);
    service.lose(1_000_000);
    let heard = client.ask(&ask(1));
    assert_eq!(heard.rcode(), Rcode::SERVFAIL);
    assert!(!heard.errors().is_empty(), "{heard:?}");
    service.lose(0);
    let mut leaf = 1;
    eventually("another name is found", || {
        leaf += 1;
        client.ask(&ask(leaf)).rcode() == Rcode::NOERROR
    });
}

/// Asks for some names of so many zones without DO and with it. All answers must be right, and
/// those secure that are signed. Returns how many are not secure, and how many are.
pub(super) fn check_secured(service: &Service, server: &Server, zones: u32) -> [u32; 2] {
    let client = UdpClient::connect(server.address());
    let mut secure = [0, 0];
    for leaf in 0..zones {
        let zone = service.world().zone_text(leaf);
        for (host, qtype) in [
            ("www", Rtype::A),
            ("alias", Rtype::A),
            ("no", Rtype::A),
            ("www", Rtype::MX),
            ("a.b.wild", Rtype::A),
        ] {
            let qname = format!("{host}.{zone}");
            let truth = service.world().truth(name(&qname).as_name(), qtype);
            let plain = client.ask(&Ask::new(&qname, qtype).edns(1232).id(leaf as u16));
            check(service, &plain, name(&qname).as_name(), qtype);
            assert!(!plain.has(Flags::AA));
            let signed = server.ask_tcp(&Ask::new(&qname, qtype).edns(1232).dnssec());
            assert_eq!(signed.has(Flags::AD), truth.is_secure, "{qname} {qtype}: {signed:?}");
            secure[usize::from(truth.is_secure)] += 1;
        }
    }
    secure
}

/// Asks for names that are there and names that are not, in zones that are signed and zones that
/// are not; what is signed is secure, and nothing else.
fn check_security(options: Options) {
    let (service, server) = start(Options { signed: 500, ..options }, Way::default());
    let secure = check_secured(&service, &server, 24);
    assert!(secure.iter().all(|&count| count > 10), "too few of a kind: {secure:?}");
}

#[test]
fn what_is_signed_is_secure_and_nothing_else() {
    check_security(Options::default());
}

#[test]
fn proofs_by_nsec3_are_as_good() {
    check_security(Options { denial: Denial::Nsec3, ..Options::default() });
}

#[test]
fn who_trusts_another_key_is_told_that_all_is_bogus() {
    let options = Options { signed: 1000, ..Options::default() };
    let (service, server) = start(options, Way::default());
    let other = ". IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n";
    std::fs::write(server.directory().join("root.ds"), other).expect("a writable directory");
    assert!(server.command(&["reload"]).status.success());
    let qname = format!("www.{}", service.world().zone_text(1));
    let ask = Ask::new(&qname, Rtype::A).edns(1232);
    let bogus = server.ask(&ask);
    assert_eq!(bogus.rcode(), Rcode::SERVFAIL);
    assert_eq!(bogus.errors()[0].0, EdeCode::DNSKEY_MISSING.0, "{bogus:?}");
    // Who does not want it checked gets it.
    let unchecked = server.ask(&ask.clone().flags(Flags::RD.with(Flags::CD)));
    check(&service, &unchecked, name(&qname).as_name(), Rtype::A);
    assert!(!unchecked.has(Flags::AD));
}

/// What a response policy zone makes of an answer takes the place of that answer: one that is bogus
/// stays a failure.
#[test]
fn a_policy_zone_rewrites_no_answer_that_is_bogus() {
    let policy = TempDir::new().expect("a temporary directory");
    let file = policy.path().join("rpz");
    let halves = ["1.0.0.0.0", "1.0.0.0.128"].map(|half| format!("{half}.rpz-ip 60 A 192.0.2.66\n"));
    let text = format!("$ORIGIN rpz.test.\n@ 60 SOA ns. root. 1 2 3 4 5\n{}", halves.concat());
    std::fs::write(&file, text).expect("a writable directory");
    let options = Options { signed: 1000, ..Options::default() };
    let (service, server) = start_with(options, Way::default(), |_| {
        format!(
            "sets: {{rpz: {{lists: \"rpz:{}\"}}}}\npolicy: {{main: [blocklist(rpz), recurse, blocklist(rpz)]}}\n",
            file.display()
        )
    });
    let ask = |leaf: u32| {
        let qname = format!("www.{}", service.world().zone_text(leaf));
        server.ask(&Ask::new(&qname, Rtype::A).edns(1232))
    };
    let rewritten = ask(1);
    assert_eq!(answers(&rewritten)[0].2, [192, 0, 2, 66], "{rewritten:?}");
    let other = ". IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n";
    std::fs::write(server.directory().join("root.ds"), other).expect("a writable directory");
    assert!(server.command(&["reload"]).status.success());
    let bogus = ask(2);
    assert_eq!((bogus.rcode(), answers(&bogus).len()), (Rcode::SERVFAIL, 0), "{bogus:?}");
}

/// Returns what a state file says, with all that it knows having happened so many days earlier,
/// and with its keys to be asked for now.
fn aged(state: &str, days: u64) -> String {
    let number = |text: &str| text.split(' ').next().and_then(|digits| digits.parse::<u64>().ok());
    let lines = state.lines().map(|line| match line.split_once(";;lastchange=") {
        Some((head, rest)) => {
            let since = number(rest).expect("a time") - days * 86_400;
            format!("{head};;lastchange={since}\n")
        }
        None if line.starts_with(";;next_probe_time:") => ";;next_probe_time: 0\n".to_owned(),
        None => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn the_root_rolls_its_key_and_the_server_follows() {
    let options = Options { signed: 1000, ..Options::default() };
    let (service, server) = start(options, Way::default());
    let file = server.directory().join("root.keys");
    let config = std::fs::read_to_string(server.directory().join("gannet.yaml")).expect("the configuration");
    let followed = format!("trust-anchor-state: \"{}\", trust-anchors:", file.display());
    server.write_config(&config.replace("trust-anchors:", &followed));
    let state = || std::fs::read_to_string(&file).unwrap_or_default();
    // Days pass: the file says that they have.
    let after_days = |days: u64, expected: &[&str]| {
        std::fs::write(&file, aged(&state(), days)).expect("the file");
        assert!(server.command(&["reload"]).status.success());
        eventually("the keys are followed", || {
            let state = state();
            !state.contains(";;next_probe_time: 0") && expected.iter().all(|word| state.contains(word))
        });
    };
    let client = UdpClient::connect(server.address());
    let mut leaf = 0;
    let mut check_secure = || {
        leaf += 1;
        let qname = format!("www.{}", service.world().zone_text(leaf));
        let ask = Ask::new(&qname, Rtype::A).edns(1232).flags(Flags::RD.with(Flags::AD));
        let heard = client.ask(&ask);
        check(&service, &heard, name(&qname).as_name(), Rtype::A);
        assert!(heard.has(Flags::AD), "{heard:?}");
    };
    assert!(server.command(&["reload"]).status.success());
    eventually("the key is seen", || state().contains("VALID"));
    check_secure();
    service.world().roll_root(RootKeys::Introduced);
    after_days(1, &["VALID", "ADDPEND"]);
    assert_eq!(state().matches("VALID").count(), 1);
    check_secure();
    after_days(31, &["VALID"]);
    assert_eq!(state().matches("VALID").count(), 2, "{}", state());
    // Zones below are known by now, and the new key has signed none of them.
    service.world().roll_root(RootKeys::Revoked);
    after_days(1, &["VALID", "REVOKED"]);
    assert!(server.command(&["resolver", "flush", "--all"]).status.success());
    check_secure();
    service.world().roll_root(RootKeys::Second);
    after_days(31, &["VALID"]);
    assert!(!state().contains("REVOKED"), "{}", state());
    assert!(server.command(&["resolver", "flush", "--all"]).status.success());
    check_secure();
    let (status, log, _) = server.stop();
    assert!(status.success(), "{log:?}");
}

#[test]
fn a_negative_trust_anchor_comes_and_goes_while_the_server_runs() {
    let options = Options { signed: 1000, ..Options::default() };
    let (service, server) = start(options, Way::default());
    let zone = service.world().zone_text(1);
    // Another key than the zone has: all of it is bogus.
    let other = "IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D";
    std::fs::write(server.directory().join("root.ds"), format!("{zone}. {other}\n"))
        .expect("a writable directory");
    assert!(server.command(&["reload"]).status.success());
    let ask = Ask::new(&format!("www.{zone}"), Rtype::A).edns(1232);
    assert_eq!(server.ask(&ask).rcode(), Rcode::SERVFAIL);
    let shown = |arguments: &[&str]| {
        let output = server.command(&[&["resolver"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let added = shown(&["negative", "add", &zone, "--for", "2h", "--reason", "their mistake"]);
    assert!(added.contains(&format!("zone {zone}., until ")) && added.contains("their mistake"), "{added}");
    let heard = server.ask(&ask);
    check(&service, &heard, name(&format!("www.{zone}")).as_name(), Rtype::A);
    assert!(!heard.has(Flags::AD));
    // The zone is tested as if there were no such anchor.
    eventually("it is tested", || shown(&["negative", "list"]).contains("  tested "));
    assert!(shown(&["negative", "list"]).contains("key"), "{}", shown(&["negative", "list"]));
    assert!(shown(&["anchors"]).contains("key 20326, RSASHA256: fixed"), "{}", shown(&["anchors"]));
    // A restart does not forget it.
    let address = server.address().to_string();
    let config = std::fs::read_to_string(server.directory().join("gannet.yaml")).expect("the configuration");
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{log:?}");
    let config = config.replace(&address, "@ADDRESS@");
    let server = Server::start_in(directory, &config);
    let heard = server.ask(&ask);
    check(&service, &heard, name(&format!("www.{zone}")).as_name(), Rtype::A);
    assert!(server.command(&["resolver", "negative", "remove", &zone]).status.success());
    assert_eq!(server.ask(&ask).rcode(), Rcode::SERVFAIL, "the answer is forgotten with it");
    assert!(!server.command(&["resolver", "negative", "remove", &zone]).status.success());
}

#[test]
fn a_policy_refuses_what_is_not_secure() {
    let (service, server) = start(Options { signed: 500, ..Options::default() }, Way::default());
    let config = std::fs::read_to_string(server.directory().join("gannet.yaml")).expect("the configuration");
    let rules = "[recurse, {if: \"security in [insecure, indeterminate]\", do: reject(refused)}]";
    server.write_config(&config.replace("main: [recurse]", &format!("main: {rules}")));
    assert!(server.command(&["reload"]).status.success());
    let client = UdpClient::connect(server.address());
    let mut seen = [0, 0];
    for leaf in 0..12 {
        let qname = format!("www.{}", service.world().zone_text(leaf));
        let is_secure = service.world().truth(name(&qname).as_name(), Rtype::A).is_secure;
        let heard = client.ask(&Ask::new(&qname, Rtype::A).edns(1232).id(leaf as u16));
        let expected = if is_secure { Rcode::NOERROR } else { Rcode::REFUSED };
        assert_eq!(heard.rcode(), expected, "{qname}");
        seen[usize::from(is_secure)] += 1;
    }
    assert!(seen.iter().all(|&count| count > 1), "too few of a kind: {seen:?}");
}

/// Returns the data of the first record of an answer.
fn first_of(world: &World, text: &str, qtype: Rtype) -> Vec<u8> {
    let records = world.truth(name(text).as_name(), qtype).records;
    records.into_iter().next().expect("a record").2
}

#[test]
fn answers_are_blocked_by_the_name_servers_that_led_to_them() {
    let (service, server) = start_with(Options::default(), Way::default(), |world| {
        let server = |leaf| {
            let data = first_of(world, &world.zone_text(leaf), Rtype::NS);
            Name::parse(&data).expect("a name").0.to_buf().to_string()
        };
        let address = <[u8; 4]>::try_from(first_of(world, &server(0), Rtype::A)).expect("an address");
        format!(
            "policy:\n  main:\n    - cache(main)\n    - recurse\n    - {{if: \"ns-address in {}\", do: block(nxdomain)}}\n    \
             - {{if: \"ns-name in exact:{}\", do: reject(refused)}}\n",
            std::net::Ipv4Addr::from(address),
            server(1)
        )
    });
    let client = UdpClient::connect(server.address());
    // The second time from the cache.
    for _ in 0..2 {
        let codes = [0, 1, 2].map(|leaf| {
            let qname = format!("www.{}", service.world().zone_text(leaf));
            client.ask(&Ask::new(&qname, Rtype::A).edns(1232).id(leaf as u16)).rcode()
        });
        assert_eq!(codes, [Rcode::NXDOMAIN, Rcode::REFUSED, Rcode::NOERROR]);
    }
}

#[test]
fn servers_that_a_policy_zone_blocks_are_not_asked() {
    if !is_installed("dnstap-read") {
        return;
    }
    let receiver = Receiver::tcp(None, Manner::Reads);
    let place = receiver.address();
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("rpz");
    let (service, server) = start_with(Options::default(), Way::default(), |world| {
        let data = first_of(world, &world.zone_text(0), Rtype::NS);
        let blocked = Name::parse(&data).expect("a name").0.to_buf().to_string();
        let [a, b, c, d] = <[u8; 4]>::try_from(first_of(world, &blocked, Rtype::A)).expect("an address");
        let rule = format!(
            "$ORIGIN rpz.test.\n@ 60 SOA ns. root. 1 2 3 4 5\n32.{d}.{c}.{b}.{a}.rpz-nsip 60 CNAME .\n"
        );
        std::fs::write(&file, rule).expect("a writable directory");
        format!(
            "sets: {{rpz: {{lists: \"rpz:{}\"}}}}\npolicy: {{main: [recurse, blocklist(rpz)]}}\n\
             dnstap: {{to: \"tcp://{place}\", messages: [resolver-query]}}\n",
            file.display()
        )
    });
    eventually("a connection", || receiver.connections() == 1);
    let names = [0, 2].map(|leaf| format!("www.{}", service.world().zone_text(leaf)));
    let codes = names.each_ref().map(|qname| server.ask(&Ask::new(qname, Rtype::A).edns(1232)).rcode());
    assert_eq!(codes, [Rcode::NXDOMAIN, Rcode::NOERROR]);
    server.stop();
    eventually("the end", || receiver.finished() == 1);
    let lines = receiver.lines();
    // Names are minimised: nobody but the servers of its zone hears a name in full.
    let is_asked = names.map(|qname| {
        let end = format!(" {qname}/in/a").to_ascii_lowercase();
        lines.iter().any(|line| line.to_ascii_lowercase().ends_with(&end))
    });
    assert_eq!(is_asked, [false, true], "{lines:?}");
}

#[test]
fn dnstap_has_what_resolvers_ask_and_hear() {
    if !is_installed("dnstap-read") {
        return;
    }
    let receiver = Receiver::tcp(None, Manner::Reads);
    let place = receiver.address();
    let more = move |_: &World| {
        format!(
            "policy: {{main: [recurse]}}\ndnstap: {{to: \"tcp://{place}\", messages: [resolver-query, resolver-response]}}\n"
        )
    };
    let (service, server) = start_with(Options::default(), Way::default(), more);
    eventually("a connection", || receiver.connections() == 1);
    let qname = format!("www.{}", service.world().zone_text(7));
    let heard = server.ask(&Ask::new(&qname, Rtype::A).edns(1232));
    check(&service, &heard, name(&qname).as_name(), Rtype::A);
    server.stop();
    eventually("the end", || receiver.finished() == 1);
    let lines = receiver.lines();
    let count = |kind: &str| lines.iter().filter(|line| line.starts_with(kind)).count();
    assert!(
        count("RQ ") >= 2 && count("RR ") >= 2 && count("RQ ") + count("RR ") == lines.len(),
        "{lines:?}"
    );
    let asked = format!("{qname}/IN/A");
    let has_reply = lines.iter().any(|line| {
        line.starts_with("RR ") && line.to_ascii_lowercase().ends_with(&asked.to_ascii_lowercase())
    });
    assert!(has_reply, "{lines:?}");
}
