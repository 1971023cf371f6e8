//! Configurations of mosdns and OxiDNS, imported by the program, served by it, and asked: every
//! plugin of the fixtures does what it did there, or what a comment in the new file says instead.

mod corpus;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use testkit::lists::{Domain, geoip, geosite};
use testkit::mikrotik::Router;
use testkit::socks::Proxy;
use testkit::{Answer, Ask, Asked, Heard, Page, Script, Server, Stub, UdpClient, Web, contains, eventually};
use wire::{Flags, OptionCode, Query, Rcode, Rtype};

/// Copies the fixture of a program into a directory, with texts of its files replaced by what there
/// is in a test.
fn fixture(system: &str, replaced: &[(&str, String)]) -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/import/tests/programs").join(system);
    copy(&from, directory.path(), replaced);
    directory
}

fn copy(from: &Path, to: &Path, replaced: &[(&str, String)]) {
    for entry in std::fs::read_dir(from).expect("a directory of fixtures") {
        let entry = entry.expect("a readable directory");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            std::fs::create_dir(&to).expect("a writable directory");
            copy(&from, &to, replaced);
            continue;
        }
        let mut text = std::fs::read_to_string(&from).expect("a text");
        for (old, new) in replaced {
            text = text.replace(old, new);
        }
        std::fs::write(&to, text).expect("a writable directory");
    }
}

/// Runs `gannet import` on the file `config.yaml` of a directory and returns what came of it.
fn imported(system: &str, directory: &Path) -> String {
    let arguments = ["import", system, "config.yaml", "--to", "made.yaml"];
    let output = testkit::program(directory).args(arguments).output().expect("the program starts");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    std::fs::read_to_string(directory.join("made.yaml")).expect("the file that it wrote")
}

/// Imports what is in a directory and serves it at free ports.
fn serve(system: &str, directory: TempDir, environment: &[(&str, &str)]) -> Server {
    let made = imported(system, directory.path());
    let state = "server:\n  state-directory: \"@DIRECTORY@\"\n";
    let made = match made.split_once("server:\n") {
        Some((before, after)) => format!("{before}{state}{after}"),
        None => format!("{state}\n{made}"),
    };
    let made = made
        .replace("127.0.0.1:5353", "\"@ADDRESS@\"")
        .replace("0.0.0.0:5353", "\"@ADDRESS@\"")
        .replace("  - '[::]:5353'\n", "")
        .replace("127.0.0.1:5354", "\"@ANOTHER@\"");
    Server::start_with(directory, &made, environment)
}

fn ask(name: &str, rtype: Rtype) -> Ask {
    Ask::new(name, rtype).edns(1232)
}

/// The answers' data alone: TTLs are other tests' matter.
fn data(heard: &Heard) -> Vec<String> {
    let last = |line: String| line.rsplit(' ').next().unwrap_or("").to_owned();
    heard.answers().into_iter().map(last).collect()
}

/// How many questions a stub was asked, those aside by which a test learns that the server answers.
fn asked(stub: &Stub) -> usize {
    stub.seen().iter().filter(|asked| asked.qname != "localhost.").count()
}

/// The client subnet that the stub was last sent for a name.
fn subnet_sent(stub: &Stub, qname: &str) -> Option<Vec<u8>> {
    let asked = stub.seen().into_iter().rfind(|asked| asked.qname.eq_ignore_ascii_case(qname))?;
    Query::parse(&asked.bytes).ok()?.edns?.option(OptionCode::CLIENT_SUBNET).map(<[u8]>::to_vec)
}

fn v6(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last)
}

/// Four servers, the same in both programs.
const ENCRYPTED: &str = "\
plugins:
  - {tag: main, type: sequence, args: [{exec: black_hole 192.0.2.10}]}
  - {tag: kids, type: sequence, args: [{exec: set_mark}, {matches: qname ads.example, exec: reject 3}, {exec: $main}]}
  - {tag: plain, type: udp_server, args: {entry: main, listen: '127.0.0.1:5353'}}
  - {tag: dot, type: tcp_server, args: {entry: kids, listen: '127.0.0.1:5354', cert: certificate.pem, key: key.pem, idle_timeout: 10}}
  - tag: doh
    type: http_server
    args:
      listen: '127.0.0.1:0'
      cert: certificate.pem
      key: key.pem
      src_ip_header: X-Forwarded-For
      entries:
        - {path: /dns-query, exec: main}
        - {path: /kids, exec: kids}
  - {tag: doq, type: quic_server, args: {entry: main, listen: '127.0.0.1:0', cert: certificate.pem, key: key.pem}}
";

#[test]
fn encrypted_servers_are_imported_with_their_certificates_and_paths() {
    for system in ["mosdns", "oxidns"] {
        // Only one of them has this executor.
        let text = match system {
            "mosdns" => ENCRYPTED.replace("{exec: set_mark}, ", ""),
            _ => ENCRYPTED.replace("set_mark", "set_mark 4"),
        };
        let directory = TempDir::new().expect("a temporary directory");
        testkit::certificate(directory.path(), &[testkit::tls::NAME, "127.0.0.1"]);
        std::fs::write(directory.path().join("config.yaml"), text).expect("a writable directory");
        let server = serve(system, directory, &[]);
        let name = format!("+tls-hostname={}", testkit::tls::NAME);
        let trusted = format!("+tls-ca={}", server.directory().join("certificate.pem").display());
        let ask =
            |at: SocketAddr, how: &str, qname: &str| testkit::kdig(at, &[how, &trusted, &name, qname, "A"]);
        let at = |transport: &str| SocketAddr::new(server.address().ip(), server.port(transport));
        contains(&server.kdig(&["ads.example", "A"]), "192.0.2.10");
        let printed = ask(server.another(), "+tls", "ads.example");
        contains(&printed, "TLS session");
        contains(&printed, "status: NXDOMAIN");
        contains(&ask(server.another(), "+tls", "www.example"), "192.0.2.10");
        contains(&ask(at("https"), "+https", "ads.example"), "192.0.2.10");
        contains(&ask(at("https"), "+https=/kids", "ads.example"), "status: NXDOMAIN");
        contains(&ask(at("https"), "+https=/kids", "www.example"), "192.0.2.10");
        contains(&testkit::kdig(at("quic"), &["+quic", "ads.example", "A"]), "192.0.2.10");
    }
}

// ---------------------------------------------------------------------------------------------------- mosdns

/// What the servers at home know: everything in domestic networks, unless the name says otherwise.
fn domestic(asked: &Asked) -> Answer {
    let name = asked.qname.to_ascii_lowercase();
    let word = name.split('.').next().unwrap_or("");
    match (word, asked.qtype) {
        ("foreign", Rtype::A) => Answer::a(300, Ipv4Addr::new(203, 0, 113, 7)),
        ("broken", _) => Answer::rcode(Rcode::SERVFAIL),
        ("aliased", Rtype::A) => {
            Answer::a(300, Ipv4Addr::new(192, 0, 2, 77)).alias(300, &name, "x.ads.example.net")
        }
        ("short", Rtype::A) => Answer::a(30, Ipv4Addr::new(192, 0, 2, 77)),
        ("long", Rtype::A) => Answer::a(7200, Ipv4Addr::new(192, 0, 2, 77)),
        ("two", Rtype::A) => {
            Answer::a(200, Ipv4Addr::new(192, 0, 2, 77)).and(Rtype::A, 400, &[192, 0, 2, 78])
        }
        ("three", Rtype::A) => {
            Answer::a(300, Ipv4Addr::new(192, 0, 2, 77)).with_option(65001, b"yours").with_option(65002, b"x")
        }
        (_, Rtype::A) => Answer::a(300, Ipv4Addr::new(192, 0, 2, 77)),
        (_, Rtype::AAAA) if word != "onlyfour" => Answer::aaaa(300, v6(0x77)),
        _ => Answer::negative(Rcode::NOERROR, 300, 300),
    }
}

struct Mosdns {
    server: Server,
    home: [Stub; 2],
    far: Stub,
    office: [Stub; 3],
}

/// Addresses of a stub in place of those of the fixture.
fn placed(old: &'static str, scheme: &str, address: SocketAddr) -> (&'static str, String) {
    (old, format!("\"{scheme}{address}\""))
}

fn mosdns() -> Mosdns {
    mosdns_with("")
}

fn mosdns_with(profile: &str) -> Mosdns {
    let home = [(); 2].map(|()| Stub::start(Script::answering(domestic)));
    let far = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::A => Answer::a(300, Ipv4Addr::new(203, 0, 113, 9)),
        Rtype::AAAA => Answer::aaaa(300, Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 9)),
        _ => Answer::negative(Rcode::NOERROR, 300, 300),
    }));
    let office = [1, 2, 3].map(|last| Stub::start(Script::always(Answer::a(300, [10, 9, 9, last].into()))));
    let directory = fixture(
        "mosdns",
        &[
            placed("\"udp://192.0.2.53\"", "udp://", home[0].address()),
            placed("\"tcp://192.0.2.54:5300\"", "tcp://", home[1].address()),
            placed("\"192.0.2.55\"", "", far.address()),
            placed("\"10.0.0.53\"", "", office[0].address()),
            placed("\"10.0.1.53\"", "", office[1].address()),
            placed("\"10.0.2.54\"", "", office[2].address()),
            // A mark takes a privilege that tests may not have; there is one interface that all
            // have.
            ("          so_mark: 7\n", String::new()),
            ("eth0", "lo".to_owned()),
            ("level: warn", "level: info".to_owned()),
        ],
    );
    let environment: &[(&str, &str)] = if profile.is_empty() { &[] } else { &[("PROFILE", profile)] };
    Mosdns { server: serve("mosdns", directory, environment), home, far, office }
}

/// Asks from another address of this machine: the policy trusts 127.0.0.1.
fn stranger(server: &Server, ask: &Ask) -> Heard {
    UdpClient::connect_from(IpAddr::from([127, 0, 0, 2]), server.address()).ask(ask)
}

#[test]
fn mosdns_hosts_and_arbitrary_records_are_answered_here() {
    let Mosdns { server, home, far, office: _office } = mosdns();
    let a = |name: &str| server.ask(&ask(name, Rtype::A));
    assert_eq!(a("nas.home.arpa").answers(), ["nas.home.arpa. 10 A 192.0.2.10"]);
    assert_eq!(
        server.ask(&ask("NAS.home.arpa", Rtype::AAAA)).answers(),
        ["NAS.home.arpa. 10 AAAA 2001:db8::10"]
    );
    // `full:`, `domain:`, `keyword:`, `regexp:`, and no word at all, which is `full:` here.
    assert_eq!(data(&a("printer.home.arpa")), ["192.0.2.11"]);
    assert_eq!(data(&a("tray2.printer.home.arpa")), ["192.0.2.11"]);
    assert_eq!(a("www.intranet.example").answers(), ["www.intranet.example. 10 A 192.0.2.12"]);
    assert_eq!(a("node7.home.arpa").answers(), ["node7.home.arpa. 10 A 192.0.2.13"]);
    assert_eq!(data(&a("router.home.arpa")), ["192.0.2.1"]);
    assert_eq!(data(&a("tv.home.arpa")), ["192.0.2.21", "192.0.2.22"]);
    // A name without an address of that family exists, and has none.
    for name in ["printer.home.arpa", "www.intranet.example", "node7.home.arpa"] {
        let heard = server.ask(&ask(name, Rtype::AAAA));
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 0), "{name}");
    }
    assert!(a("www.intranet.example").errors().is_empty(), "no reason is given for what is no block");
    // Zone-file syntax, with the TTL that is usual there.
    contains(&server.dig(&["mail.home.arpa", "MX"]), "300\tIN\tMX\t10 nas.home.arpa.");
    contains(&server.dig(&["info.home.arpa", "TXT"]), "3600\tIN\tTXT\t\"hello world\"");
    contains(&server.dig(&["_sip._udp.home.arpa", "SRV"]), "600\tIN\tSRV\t0 5 5060 nas.home.arpa.");
    assert_eq!((asked(&home[0]), asked(&far)), (0, 0), "nobody else was asked");
    // Other names, and other types of names of `hosts`, are asked for.
    a("x.nas.home.arpa");
    server.ask(&ask("nas.home.arpa", Rtype::TXT));
    eventually("the servers at home are asked", || {
        home[0].count("x.nas.home.arpa.") == 1 && home[0].count("nas.home.arpa.") == 1
    });
}

#[test]
fn mosdns_blocks_names_for_those_it_does_not_trust() {
    let Mosdns { server, home, far: _far, office: _office } = mosdns();
    let blocked = [
        "ads.example.net",
        "x.ads.example.net",
        "tracker.example.com",
        "mytelemetry.example",
        "ad7.example",
        "x.banner.example.org",
        "pixel.example.org",
    ];
    for name in blocked {
        assert_eq!(stranger(&server, &ask(name, Rtype::A)).answers(), [format!("{name}. 300 A 0.0.0.0")]);
        assert_eq!(data(&stranger(&server, &ask(name, Rtype::AAAA))), ["::"]);
        // "black_hole" lets other types pass; what finds nothing is rejected by the next rule of
        // the sequence.
        assert_eq!(stranger(&server, &ask(name, Rtype::MX)).rcode(), Rcode::NXDOMAIN);
        assert_eq!(home[0].count(&format!("{name}.")), 0);
    }
    for name in ["x.tracker.example.com", "adx.example", "x.pixel.example.org"] {
        assert_eq!(data(&stranger(&server, &ask(name, Rtype::A))), ["192.0.2.77"], "{name}");
    }
    assert_eq!(data(&server.ask(&ask("ads.example.net", Rtype::A))), ["192.0.2.77"], "127.0.0.1 is trusted");
}

#[test]
fn mosdns_refuses_by_type_reverse_name_and_rate() {
    let Mosdns { server, home, far: _far, office: _office } = mosdns();
    assert_eq!(server.ask(&ask("www.example.org", Rtype::HTTPS)).rcode(), Rcode::REFUSED);
    contains(&server.dig(&["-x", "192.0.2.5"]), "status: NXDOMAIN");
    // Outside of what `ptr_ip` names: it is asked for.
    contains(&server.dig(&["-x", "203.0.113.5"]), "status: NOERROR");
    eventually("it is asked for", || home[0].count("5.113.0.203.in-addr.arpa.") == 1);
    assert_eq!(home[0].count("5.2.0.192.in-addr.arpa."), 0);
    // 50 in a second, 100 at once, for each address.
    let client = UdpClient::connect_from(IpAddr::from([127, 0, 0, 3]), server.address());
    let one = ask("fast.example.org", Rtype::A);
    for id in 0..100 {
        assert_eq!(client.ask(&one.clone().id(id)).rcode(), Rcode::NOERROR, "query {id}");
    }
    // Many are sent before the first reply is read: on a slow machine, one at a time is fewer than
    // 50 in a second.
    eventually("one client is too fast", || {
        for _ in 0..150 {
            client.send(&one.bytes());
        }
        let replies: Vec<_> = (0..150).map(|_| client.receive().rcode()).collect();
        replies.contains(&Rcode::REFUSED)
    });
    assert_eq!(stranger(&server, &one).rcode(), Rcode::NOERROR, "others are counted apart");
}

#[test]
fn mosdns_redirects_names_and_knows_who_has_an_address() {
    let Mosdns { server, home, far: _far, office: _office } = mosdns();
    let redirected = [
        ("search.example.com", "safe.search.example.com."),
        ("old.example.com", "new.example.com."),
        ("www.old.example.com", "new.example.com."),
    ];
    for (name, target) in redirected {
        let answers = server.ask(&ask(name, Rtype::A)).answers();
        // The alias first: there are clients that look no further.
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert!(
            answers[0].starts_with(&format!("{name}. ")) && answers[0].ends_with(&format!("CNAME {target}"))
        );
        assert!(answers[1].starts_with(target) && answers[1].ends_with(" A 192.0.2.77"));
        assert_eq!(home[0].count(&format!("{name}.")), 0);
    }
    assert_eq!(data(&server.ask(&ask("x.search.example.com", Rtype::A))), ["192.0.2.77"]);
    // "reverse_lookup" with "handle_ptr": a question for the name of an address that was just
    // answered.
    server.ask(&ask("foreign.example.org", Rtype::A));
    let said = server.dig(&["-x", "203.0.113.9"]);
    contains(&said, "foreign.example.org.");
    assert_eq!(home[0].count("9.113.0.203.in-addr.arpa."), 0);
}

#[test]
fn mosdns_asks_the_servers_that_its_sequences_choose() {
    let Mosdns { server, home, far, office } = mosdns();
    let a = |name: &str| data(&server.ask(&ask(name, Rtype::A)));
    // `jump video`: asked at home, and the answer is what it is.
    for name in ["video.example.com", "x.stream.example.com", "clips.example.org", "my.nflxvideo.example"] {
        assert_eq!(a(name), ["192.0.2.77"], "{name}");
        assert_eq!(far.count(&format!("{name}.")), 0, "{name}");
    }
    // `$office one two`: the third is never asked. An expression that stands in the rule itself.
    for name in ["www.corp.example", "db12.example"] {
        assert!(a(name)[0].starts_with("10.9.9."), "{name}");
        eventually("both are asked", || office[..2].iter().all(|stub| stub.count(&format!("{name}.")) == 1));
        assert_eq!((asked(&office[2]), home[0].count(&format!("{name}."))), (0, 0));
    }
    // `$either`: an answer with addresses from abroad is dropped, and the other side's counts. Both
    // are always asked.
    assert_eq!(a("www.example.org"), ["192.0.2.77"]);
    eventually("the other side is asked all the same", || far.count("www.example.org.") == 1);
    assert_eq!(a("foreign.example.org"), ["203.0.113.9"]);
    // In mosdns SERVFAIL would have won; the new file says that it does not here.
    assert_eq!(a("broken.example.org"), ["203.0.113.9"]);
    // `concurrent: 2`: one over UDP, one over TCP.
    eventually("both servers at home are asked", || {
        home.iter().all(|stub| stub.count("www.example.org.") == 1)
    });
    assert!(
        home[1].seen().iter().all(|asked| asked.over_tcp)
            && home[0].seen().iter().all(|asked| !asked.over_tcp)
    );
    // `prefer_ipv4` in the sequence for names abroad: an IPv6 address of a name with an IPv4 one is
    // not told.
    let heard = server.ask(&ask("onlyfour.example.org", Rtype::AAAA));
    assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 0));
    // `cname $ads`
    assert_eq!(server.ask(&ask("aliased.example.org", Rtype::A)).rcode(), Rcode::NXDOMAIN);
    // `mark 2`, `rcode 0`, `ttl 60-3600`; and what is remembered for ten minutes is not kept
    // longer.
    assert_eq!(server.ask(&ask("short.example.org", Rtype::A)).ttls(), [60]);
    assert_eq!(server.ask(&ask("long.example.org", Rtype::A)).ttls(), [600]);
}

#[test]
fn mosdns_sends_servers_what_the_client_sent_and_keeps_dnssec() {
    let Mosdns { server, home, far: _far, office: _office } = mosdns();
    let subnet = [0, 1, 24, 0, 198, 51, 100];
    server.ask(&ask("one.example.org", Rtype::A).option(OptionCode::CLIENT_SUBNET, &subnet));
    eventually("the servers at home are asked", || home[0].count("one.example.org.") == 1);
    assert_eq!(subnet_sent(&home[0], "one.example.org."), Some(subnet.to_vec()));
    server.ask(&ask("two.example.org", Rtype::A));
    eventually("the servers at home are asked", || home[0].count("two.example.org.") == 1);
    assert_eq!(subnet_sent(&home[0], "two.example.org."), None, "127.0.0.1 means nothing to others");
    // `forward_edns0opt 65001`, on a way without a fallback.
    let heard =
        server.ask(&ask("three.stream.example.com", Rtype::A).option(OptionCode(65001), b"mine").dnssec());
    // What is listed comes back, and nothing else.
    assert_eq!(heard.option(OptionCode(65001)).as_deref(), Some(&b"yours"[..]));
    assert_eq!(heard.option(OptionCode(65002)), None);
    eventually("the servers at home are asked", || home[0].count("three.stream.example.com.") == 1);
    let asked =
        home[0].seen().into_iter().rfind(|asked| asked.qname == "three.stream.example.com.").expect("asked");
    let query = Query::parse(&asked.bytes).expect("a query");
    assert_eq!(query.edns.and_then(|edns| edns.option(OptionCode(65001))), Some(&b"mine"[..]));
    // mosdns loses DO on its way.
    assert!(query.wants_dnssec());
}

#[test]
fn mosdns_caches_without_its_mistakes() {
    let Mosdns { server, home, far, office: _office } = mosdns();
    let count = |name: &str| home[0].count(name);
    for name in ["www.example.org", "WWW.example.ORG"] {
        assert_eq!(data(&server.ask(&ask(name, Rtype::A))), ["192.0.2.77"]);
    }
    eventually("it is asked for", || count("www.example.org.") == 1);
    // The types 1 and 257 differ in their upper half only.
    assert_eq!(server.ask(&ask("www.example.org", Rtype(257))).answers().len(), 0);
    eventually("the other type is asked for", || count("www.example.org.") == 2);
    // A hit is the end; what comes after the cache is not done again.
    let asked = (home[0].seen().len(), far.seen().len());
    let heard = server.ask(&ask("www.example.org", Rtype::A));
    assert_eq!((heard.answers().len(), (home[0].seen().len(), far.seen().len())), (1, asked));
    server.ask(&ask("two.example.org", Rtype::A));
    let ttls = server.ask(&ask("two.example.org", Rtype::A)).ttls();
    assert_eq!(ttls[1] - ttls[0], 200, "each record ages by itself: {ttls:?}");
    // Its dump says when answers were stored: what comes back is as old as it is, and no older.
    let address = server.address();
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
    let config = std::fs::read_to_string(directory.path().join("gannet.yaml")).expect("the file");
    let config = config.replace(&address.to_string(), "@ADDRESS@");
    let server = Server::start_in(directory, &config);
    let ttls = server.ask(&ask("two.example.org", Rtype::A)).ttls();
    assert!(ttls[0] > 100 && ttls[1] - ttls[0] == 200, "{ttls:?}");
    assert_eq!(count("two.example.org."), 1);
}

#[test]
fn mosdns_counts_logs_and_fills_sets_without_harm_to_queries() {
    let Mosdns { mut server, home: _home, far: _far, office: _office } = mosdns_with("home");
    for _ in 0..3 {
        // The sets of the kernel do not exist, or nobody may change them: the client hears nothing
        // of it.
        assert_eq!(server.ask(&ask("video.example.com", Rtype::A)).rcode(), Rcode::NOERROR);
    }
    assert!(server.stat("label", "main") >= 3);
    let line = server.wait_for_log("video.example.com");
    contains(&line, "main");
    // Over TCP too.
    assert_eq!(data(&server.ask_tcp(&ask("video.example.com", Rtype::A))), ["192.0.2.77"]);
    // Marks and what has no other effect are seen on the way of a query.
    let output = server.command(&["explain", "www.example.org"]);
    let way = String::from_utf8_lossy(&output.stdout).into_owned();
    // What the environment says is known when the file is loaded.
    for part in ["mark(8)  ->  done", "sni == \"dns.example.org\"'  ->  no", "random < 5%'  ->  "] {
        contains(&way, part);
    }
}

// ---------------------------------------------------------------------------------------------------- OxiDNS

struct Oxidns {
    server: Server,
    fast: [Stub; 3],
    slow: [Stub; 2],
    hook: Web,
    router: Router,
    remote: Stub,
    proxy: Proxy,
}

fn oxidns() -> Oxidns {
    let known = |last: u8| {
        Script::answering(move |asked| {
            let word = asked.qname.split('.').next().unwrap_or("").to_ascii_lowercase();
            match (word.as_str(), asked.qtype) {
                // Two servers deny it, the last one has it, later.
                ("maybe", Rtype::A) if last < 3 => Answer::negative(Rcode::NXDOMAIN, 300, 300),
                ("gone", _) => Answer::negative(Rcode::NXDOMAIN, 300, 300),
                ("broken", _) => Answer::rcode(Rcode::SERVFAIL),
                // An address where a text was asked for.
                ("odd", Rtype::TXT) => Answer::a(300, Ipv4Addr::new(192, 0, 2, 5)),
                ("onlyfour" | "maybe" | "good", Rtype::AAAA) => Answer::negative(Rcode::NOERROR, 300, 300),
                (_, Rtype::A) => Answer::a(100, Ipv4Addr::new(198, 51, 100, 1)),
                (_, Rtype::AAAA) => Answer::aaaa(100, v6(1)).and(Rtype::AAAA, 300, &v6(2).octets()),
                _ => Answer::negative(Rcode::NOERROR, 300, 300),
            }
        })
    };
    let fast = [1, 2, 3].map(|last| Stub::start(known(last)));
    let slow = [(); 2].map(|()| Stub::start(Script::always(Answer::a(100, Ipv4Addr::new(203, 0, 113, 1)))));
    // It has the list that is downloaded, too.
    let list = "../crates/import/tests/programs/oxidns/lists/blocked.txt";
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join(list);
    let list = std::fs::read(list).expect("a list of the fixture");
    let hook = Web::start(move |request| {
        if request.line.contains("/blocked.txt") {
            Page::found(list.clone())
        } else {
            Page::status("204 Fine", "")
        }
    });
    let router = Router::start();
    let remote = Stub::start(Script::always(Answer::a(100, Ipv4Addr::new(203, 0, 113, 61))));
    let proxy = Proxy::connecting();
    let directory = fixture(
        "oxidns",
        &[
            placed("\"udp://192.0.2.53\"", "udp://", fast[0].address()),
            placed("\"udp://192.0.2.54\"", "udp://", fast[1].address()),
            placed("\"tcp://192.0.2.55\"", "tcp://", fast[2].address()),
            placed("\"198.51.100.53\"", "", slow[0].address()),
            placed("\"198.51.100.54\"", "", slow[1].address()),
            placed("\"tcp://192.0.2.61\"", "tcp://", remote.address()),
            ("127.0.0.1:1080", proxy.address().to_string()),
            ("127.0.0.1:8080", hook.address().to_string()),
            ("192.0.2.1:8728", router.address().to_string()),
            ("username: api", format!("username: {}", testkit::mikrotik::USER)),
            (
                "/usr/local/bin/seen, args: [",
                "/bin/sh, args: [\"-c\", 'echo \"$1 $2\" >> told', sh, ".to_owned(),
            ),
            ("timeout: 3s}", "timeout: 3s, cwd: \"DIRECTORY\"}".to_owned()),
        ],
    );
    let effects = directory.path().join("parts/effects.yaml");
    let text = std::fs::read_to_string(&effects).expect("a part of the fixture");
    std::fs::write(&effects, text.replace("DIRECTORY", &directory.path().display().to_string()))
        .expect("a writable directory");
    let server = serve("oxidns", directory, &[("SITE", "office")]);
    eventually("the list is fetched", || server.stat("downloads", "fetched") == 1);
    // Two of the set, and two of the list.
    eventually("its rules are in use", || {
        let metrics = server.command(&["stats", "--prometheus"]).stdout;
        let metrics = String::from_utf8_lossy(&metrics);
        let rules = metrics.lines().find_map(|line| line.strip_prefix("gannet_set_rules{set=\"blocked\"} "));
        rules.and_then(|rules| rules.parse::<u64>().ok()).is_some_and(|rules| rules >= 4)
    });
    Oxidns { server, fast, slow, hook, router, remote, proxy }
}

#[test]
fn oxidns_answers_its_own_names_and_what_it_blocks() {
    let Oxidns { server, fast, slow: _slow, hook: _hook, router: _router, .. } = oxidns();
    let a = |name: &str| server.ask(&ask(name, Rtype::A));
    assert_eq!(a("printer.office.example").answers(), ["printer.office.example. 10 A 192.0.2.20"]);
    assert_eq!(data(&a("scanner.office.example")), ["192.0.2.21"]);
    assert_eq!(a("portal.office.example").answers(), ["portal.office.example. 60 A 192.0.2.30"]);
    // `black_hole nxdomain`: of every type, with an SOA so that clients keep it.
    for name in
        ["x.ads.example.net", "mytelemetry.example", "x.bad.example", "worse.example", "seed.example.org"]
    {
        for rtype in [Rtype::A, Rtype::MX] {
            let heard = server.ask(&ask(name, rtype));
            assert_eq!((heard.rcode(), heard.authorities().len()), (Rcode::NXDOMAIN, 1), "{name}");
            assert!(heard.authorities()[0].contains(" 300 SOA "));
        }
    }
    // `question $filters` looks at the type; `black_hole null` has an answer of no records for
    // other types.
    assert_eq!(data(&a("x.popup.example.org")), ["0.0.0.0"]);
    assert_eq!(data(&server.ask(&ask("popup.example.org", Rtype::AAAA))), ["::"]);
    let heard = server.ask(&ask("popup.example.org", Rtype::MX));
    assert_eq!((heard.rcode(), heard.answers().len(), heard.authorities().len()), (Rcode::NOERROR, 0, 1));
    assert_eq!(data(&a("banner.example.org")), ["0.0.0.0"]);
    assert_eq!(asked(&fast[0]), 0, "nobody else was asked");
    server.ask(&ask("banner.example.org", Rtype::MX));
    assert_eq!(data(&a("good.banner.example.org")), ["198.51.100.1"]);
    assert_eq!(fast[0].count("banner.example.org."), 1);
    // Rules of the list that stand in the configuration.
    assert_eq!(data(&a("x.inline.example")), ["0.0.0.0"]);
    assert_eq!(data(&a("good.ok.inline.example")), ["198.51.100.1"]);
}

#[test]
fn oxidns_gets_out_through_a_proxy() {
    let Oxidns { server, fast, remote, proxy, .. } = oxidns();
    assert_eq!(data(&server.ask(&ask("www.remote.example", Rtype::A))), ["203.0.113.61"]);
    assert!(remote.seen().iter().all(|asked| asked.over_tcp));
    assert_eq!((proxy.connections(), asked(&fast[0])), (1, 0));
}

#[test]
fn oxidns_has_a_door_for_guests() {
    let Oxidns { server, fast, slow: _slow, hook: _hook, router: _router, .. } = oxidns();
    let said = testkit::dig(server.another(), &["any.name.example"]);
    for part in ["any.name.example.\t60\tIN\tA\t192.0.2.99", "flags: qr aa", "status: NOERROR"] {
        contains(&said, part);
    }
    // `client_ip_from_ecs`: a forwarder on this machine says for whom it asks.
    let guest =
        ask("any.name.example", Rtype::A).option(OptionCode::CLIENT_SUBNET, &[0, 1, 32, 0, 198, 51, 100, 9]);
    assert_eq!(data(&server.ask(&guest)), ["192.0.2.99"]);
    assert_eq!(asked(&fast[0]), 0);
}

#[test]
fn oxidns_selects_among_answers_and_stands_by() {
    let Oxidns { server, fast, slow, hook: _hook, router: _router, .. } = oxidns();
    let a = |name: &str| data(&server.ask(&ask(name, Rtype::A)));
    // `prefer_positive`: what one server denies, another has.
    fast[2].behave(fast_script_delayed());
    assert_eq!(a("maybe.example.org"), ["198.51.100.7"]);
    // Three at once.
    eventually("all are asked", || fast.iter().all(|stub| stub.count("maybe.example.org.") >= 1));
    assert!(fast[2].seen().iter().all(|asked| asked.over_tcp));
    assert_eq!(asked(&slow[0]), 0);
    // `fallback`: nobody answers in time. In OxiDNS an answer of SERVFAIL would have won; the new
    // file says so.
    for stub in &fast {
        stub.behave(Script::silent());
    }
    assert_eq!(a("late.example.org"), ["203.0.113.1"]);
    for stub in &fast {
        stub.behave(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    }
    assert_eq!(a("broken.example.org"), ["203.0.113.1"]);
    eventually("the standby asks both for their consent", || slow.iter().all(|stub| stub.seen().len() >= 2));
}

/// Has everything, a little later than others.
fn fast_script_delayed() -> Script {
    Script::always(Answer::a(100, Ipv4Addr::new(198, 51, 100, 7))).delayed(Duration::from_millis(40))
}

#[test]
fn oxidns_caches_prefers_redirects_and_changes_answers() {
    let Oxidns { server, fast, slow: _slow, hook: _hook, router: _router, .. } = oxidns();
    // Each record of an answer from the cache has its own TTL.
    for _ in 0..2 {
        let ttls = server.ask(&ask("six.example.org", Rtype::AAAA)).ttls();
        assert_eq!(ttls[1] - ttls[0], 200, "{ttls:?}");
    }
    // All three are asked; another one's answer may be here before this one has looked.
    fast[0].wait_for("six.example.org.", 1);
    assert_eq!(fast[0].count("six.example.org."), 1);
    // `prefer_ipv6`
    let heard = server.ask(&ask("both.example.org", Rtype::A));
    assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 0));
    assert_eq!(data(&server.ask(&ask("onlyfour.example.org", Rtype::A))), ["198.51.100.1"]);
    // `redirect`
    let answers = server.ask(&ask("search.example.com", Rtype::AAAA)).answers();
    assert!(answers[0].ends_with("CNAME safe.search.example.com.") && answers[1].starts_with("safe.search."));
    // `string_exp qname suffix .example.net`, `ttl 300`
    assert_eq!(server.ask(&ask("www.example.net", Rtype::AAAA)).ttls(), [300, 300]);
    // `resp_ip $office-addresses`, `!has_wanted_ans`, `drop_resp`; and a chain without an answer
    // says NOERROR.
    let heard = server.ask(&ask("odd.example.org", Rtype::TXT));
    assert_eq!((heard.rcode(), heard.answers().len(), heard.authorities().len()), (Rcode::NOERROR, 0, 0));
    // `ecs_handler 192.0.2.0/24`: in place of what the client says.
    let subnet = [0, 1, 24, 0, 203, 0, 113];
    server.ask(&ask("where.example.org", Rtype::AAAA).option(OptionCode::CLIENT_SUBNET, &subnet));
    for name in ["six.example.org.", "where.example.org."] {
        fast[0].wait_for(name, 1);
        assert_eq!(subnet_sent(&fast[0], name), Some(vec![0, 1, 24, 0, 192, 0, 2]), "{name}");
    }
    // RA is set, and EDNS comes with those who have it.
    assert!(heard.has(Flags::RA));
}

#[test]
fn oxidns_reports_to_others_what_it_saw() {
    let Oxidns { server, hook, router, fast: _fast, slow: _slow, .. } = oxidns();
    assert_eq!(server.ask(&ask("gone.example.org", Rtype::A)).rcode(), Rcode::NXDOMAIN);
    // (the IPv6 address that hides the others is told to nobody)
    assert_eq!(data(&server.ask(&ask("onlyfour.example.org", Rtype::A))), ["198.51.100.1"]);
    let request = || hook.heard().into_iter().find(|request| request.line.contains("onlyfour"));
    eventually("the hook hears of it", || request().is_some());
    let request = request().expect("its request");
    assert_eq!(request.line, "POST /seen/onlyfour.example.org HTTP/1.1");
    assert_eq!(request.body, "{\"client\": \"127.0.0.1\", \"rcode\": \"NOERROR\"}");
    let told = server.directory().join("told");
    eventually("the program runs", || {
        std::fs::read_to_string(&told).is_ok_and(|said| said.contains("onlyfour.example.org 127.0.0.1\n"))
    });
    let list = |attribute: &str| router.entry("/ip/firewall/address-list", "198.51.100.1", attribute);
    eventually("the router's list has the address", || list("list").as_deref() == Some("video"));
    assert_eq!(list("timeout").as_deref(), Some("00:01:40"), "its TTL, between min_ttl and max_ttl");
    // `persistent`: what is named in the file, and what another file has.
    for address in ["192.0.2.200", "203.0.113.128/25", "198.51.100.128/25", "192.0.2.201"] {
        eventually("the router's list has what is always in it", || {
            router.entry("/ip/firewall/address-list", address, "list").as_deref() == Some("video")
        });
    }
    eventually("the router has the route", || {
        router.entry("/ip/route", "198.51.100.1/32", "gateway").as_deref() == Some("192.0.2.254")
    });
    assert_eq!(router.entry("/ip/route", "198.51.100.1/32", "distance").as_deref(), Some("5"));
    assert_eq!(router.entry("/ip/route", "198.51.100.1/32", "routing-table").as_deref(), Some("vpn"));
    // `learn_domain`: the name is in the set, which `blocked` includes.
    eventually("the name is learned", || {
        server.ask(&ask("onlyfour.example.org", Rtype::A)).rcode() == Rcode::NXDOMAIN
    });
    let output = server.command(&["set", "list", "learned"]);
    let learned = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(learned.contains("onlyfour.example.org"), "{learned}");
    assert_eq!(
        server.ask(&ask("x.onlyfour.example.org", Rtype::A)).rcode(),
        Rcode::NOERROR,
        "`full` is that name alone"
    );
    // `metrics_collector`, `query_recorder`
    assert!(server.stat("label", "office") >= 2);
    let record = || {
        let output = server.command(&["log", "-c", "gannet.yaml", "--json", "--name", "gone.example.org"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    eventually("the query is recorded", || record().contains("\"status\": \"NXDOMAIN\""));
    // `cron`
    let shown = String::from_utf8_lossy(&server.command(&["jobs"]).stdout).into_owned();
    contains(&shown, "lists: 0 4 * * * (Europe/Berlin)");
    contains(&shown, "ping: */10 * * * * (Europe/Berlin)");
    let before = hook.heard().len();
    assert!(server.command(&["jobs", "--run", "ping"]).status.success());
    eventually("the job runs", || hook.heard().len() > before);
    // What has no effect to be seen from outside is on the way of a query.
    let output = server.command(&["explain", "why.example.org", "--client", "10.0.0.9"]);
    let way = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "mark(9)  ->  done",
        "qname in keyword:example or not client in 192.0.2.0/24  ->  yes",
        "rate(client/24/48) > 20/s burst 40",
        "quickest(port 443)",
        "hours(\"09:00-18:00\")",
        "hours(\"mon,tue,wed,thu,fri 09:00-18:00\", \"22:00-02:00\", \"Europe/Berlin\")",
    ] {
        contains(&way, part);
    }
}

#[test]
fn oxidns_reads_the_lists_of_v2ray() {
    let stub = Stub::start(Script::answering(|asked| match asked.qname.split('.').next() {
        Some("inland") => Answer::a(300, Ipv4Addr::new(192, 0, 2, 9)),
        Some("private") => Answer::a(300, Ipv4Addr::new(10, 0, 0, 1)),
        _ => Answer::a(300, Ipv4Addr::new(198, 51, 100, 1)),
    }));
    let directory = fixture("oxidns-dat", &[placed("\"192.0.2.53\"", "", stub.address())]);
    let sites = geosite(&[
        ("CN", &[(Domain::Keyword, "needle", &[]), (Domain::Regex, "^qq[0-9]+[.]example$", &[])]),
        ("GOOGLE", &[(Domain::Suffix, "ads.example", &["ads"]), (Domain::Full, "plain.example", &[])]),
        ("US", &[(Domain::Suffix, "other.example", &[])]),
    ]);
    let addresses = geoip(&[("DE", &["192.0.2.0/24", "2001:db8::/32"]), ("PRIVATE", &["10.0.0.0/8"])]);
    std::fs::write(directory.path().join("geosite.dat"), sites).expect("a writable directory");
    std::fs::write(directory.path().join("geoip.dat"), addresses).expect("a writable directory");
    let server = serve("oxidns", directory, &[]);
    let rcode = |name: &str| server.ask(&ask(name, Rtype::A)).rcode();
    for name in ["a-needle.example", "qq7.example", "x.ads.example"] {
        assert_eq!(rcode(name), Rcode::NXDOMAIN, "{name}");
    }
    for name in ["plain.example", "x.other.example", "qqx.example"] {
        assert_eq!(rcode(name), Rcode::NOERROR, "{name}");
    }
    assert_eq!((rcode("inland.example.org"), rcode("private.example.org")), (Rcode::REFUSED, Rcode::NOERROR));
}
