//! The built program's policy language as clients meet it: every condition, views, `explain` and
//! `check --graph`.

use std::net::{Ipv4Addr, Ipv6Addr};
use testkit::{Answer, Ask, Script, Server, Stub, contains, forwarding, lacks, program};
use wire::{OptionCode, Rcode, Rtype};

/// What a policy says to a query for which its condition holds, and what to all others.
const HELD: &str = "status: NOTIMP";
const NOT_HELD: &str = "status: REFUSED";

/// Starts a server whose policy tells by the response code whether a condition holds.
fn with_events(condition: &str, more: &str) -> Server {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    let policy = format!(
        "policy:\n  main:\n    - if: {condition}\n      do: reject(notimp)\n    - if: \"qname == localhost\"\n      do: local\n    - if: rd or not rd\n      do: reject(refused)\n    - forward(default)\n"
    );
    Server::start(&forwarding(&[&stub_that_is_not_asked], &format!("{policy}{more}")))
}

#[track_caller]
fn check(server: &Server, arguments: &[&str], expect: &str) {
    contains(&server.dig(arguments), expect);
}

#[test]
fn names_are_compared_whole_from_the_end_in_part_and_by_expression() {
    let server = with_events(
        "qname == \"only.example\" or qname in suffix:below.example|keyword:needle|\"regex:^n[0-9]+\\.example$\" or qname in listed or qname starts-with \"first.\" or qname ends-with \".last\" or qname contains middle",
        "sets: {listed: {names: [exact:listed.example, below.listed.example]}}\n",
    );
    for name in [
        "ONLY.example",
        "a.below.example",
        "below.example",
        "xneedley.example",
        "n17.example",
        "listed.example",
        "x.below.listed.example",
        "first.example",
        "example.last",
        "amiddleb.example",
    ] {
        check(&server, &[name], HELD);
    }
    for name in ["x.only.example", "notbelow.example", "nx.example", "x.listed.example", "last", "example"] {
        check(&server, &[name], NOT_HELD);
    }
}

#[test]
fn types_and_flags_are_compared() {
    let server =
        with_events("qtype in [AAAA, TYPE65280] or (cd and not do) or qtype matches \"^NAPTR$\"", "");
    check(&server, &["example.org", "AAAA"], HELD);
    check(&server, &["example.org", "TYPE65280"], HELD);
    check(&server, &["example.org", "NAPTR"], HELD);
    check(&server, &["example.org", "A"], NOT_HELD);
    check(&server, &["+cdflag", "example.org", "A"], HELD);
    check(&server, &["+cdflag", "+dnssec", "example.org", "A"], NOT_HELD);
    let server = with_events("not rd or ad", "");
    check(&server, &["+norecurse", "+noadflag", "example.org"], HELD);
    check(&server, &["+adflag", "example.org"], HELD);
    check(&server, &["+noadflag", "example.org"], NOT_HELD);
}

#[test]
fn classes_and_operations_that_come_to_a_policy_are_the_usual_ones() {
    let server = with_events("qclass == IN and opcode == query and not opcode == notify", "");
    check(&server, &["example.org"], HELD);
    // Others are answered before any policy is asked.
    let printed = server.dig(&["CH", "TXT", "example.org"]);
    contains(&printed, "status: REFUSED");
    contains(&server.dig(&["+opcode=status", "+noedns", "example.org"]), "status: NOTIMP");
    let server = with_events("opcode == status", "");
    check(&server, &["example.org"], NOT_HELD);
}

#[test]
fn edns_is_looked_at() {
    let server = with_events("edns and (edns-option in nsid|65001 or edns-size < 1000)", "");
    check(&server, &["+noedns", "example.org"], NOT_HELD);
    check(&server, &["+nocookie", "example.org"], NOT_HELD);
    check(&server, &["+nsid", "+nocookie", "example.org"], HELD);
    check(&server, &["+ednsopt=65001:00005e005301", "+nocookie", "example.org"], HELD);
    check(&server, &["+bufsize=999", "+nocookie", "example.org"], HELD);
    contains(&server.kdig(&["+nsid", "example.org"]), HELD);
    contains(&server.kdig(&["+noedns", "example.org"]), NOT_HELD);
}

#[test]
fn the_size_of_a_name_is_looked_at() {
    let server = with_events("qname-labels > 2 or qname-length == 17", "");
    check(&server, &["example.org"], NOT_HELD);
    check(&server, &["www.example.org"], HELD);
    check(&server, &["abc-example.org"], HELD);
    check(&server, &["."], NOT_HELD);
}

#[test]
fn the_length_of_a_client_subnet_is_looked_at() {
    let server = with_events("subnet-ipv4-bits > 0 and subnet-ipv4-bits < 20 or subnet-ipv6-bits == 56", "");
    check(&server, &["example.org"], NOT_HELD);
    check(&server, &["+subnet=192.0.2.0/24", "example.org"], NOT_HELD);
    check(&server, &["+subnet=192.0.0.0/16", "example.org"], HELD);
    check(&server, &["+subnet=0.0.0.0/0", "example.org"], NOT_HELD);
    check(&server, &["+subnet=2001:db8::/16", "example.org"], NOT_HELD);
    check(&server, &["+subnet=2001:db8::/56", "example.org"], HELD);
}

#[test]
fn clients_are_known_by_their_address() {
    let server = with_events(
        "client in kids or client starts-with \"192.0.2.\"",
        "sets: {kids: {addresses: [127.0.0.0/8]}}\n",
    );
    check(&server, &["example.org"], HELD);
    let server = with_events("client in 10.0.0.0/8|::1 or not client in loopback", "");
    check(&server, &["example.org"], NOT_HELD);
}

#[test]
fn trusted_peers_say_for_whom_they_ask() {
    let condition = "client in 192.0.2.7 or client-mac == 00:00:5e:00:53:01 or client-id in [anna, ben]";
    let (subnet, prefix) = ("+subnet=192.0.2.7/32", "+subnet=192.0.2.0/24");
    let (mac, text, id) = (
        "+ednsopt=65001:00005e005301",
        "+ednsopt=65073:30302d30302d35452d30302d35332d3031",
        "+ednsopt=65074:416e6e61",
    );
    let server = with_events(condition, "trusted-peers: 127.0.0.1\n");
    for option in [subnet, mac, text, id] {
        check(&server, &[option, "example.org"], HELD);
    }
    for option in [prefix, "+ednsopt=65001:00005e005302", "+ednsopt=65074:6576", "+noednsopt"] {
        check(&server, &[option, "example.org"], NOT_HELD);
    }
    // A stranger may claim what it likes.
    let server = with_events(condition, "trusted-peers: 192.0.2.1\n");
    for option in [subnet, mac, text, id] {
        check(&server, &[option, "example.org"], NOT_HELD);
    }
}

#[test]
fn listeners_and_transports_tell_queries_apart() {
    let stub = Stub::start(Script::silent());
    let config = forwarding(
        &[&stub],
        "policy: {main: [{if: listener == guests, do: reject(notimp)}, {if: transport == tcp, do: reject(nxdomain)}, {if: rd, do: reject(refused)}, local, forward(default)]}",
    )
    .replace("listen: [\"@ADDRESS@\"]", "listen: [{at: \"@ADDRESS@\", name: home}, {at: \"@ANOTHER@\", name: guests}]");
    let server = Server::start(&config);
    check(&server, &["example.org"], NOT_HELD);
    check(&server, &["+tcp", "example.org"], "status: NXDOMAIN");
    contains(&testkit::dig(server.another(), &["example.org"]), HELD);
    contains(&testkit::dig(server.another(), &["+tcp", "example.org"]), HELD);
}

#[test]
fn conditions_on_encrypted_transports_never_hold_where_none_is_spoken() {
    let server = with_events(
        "sni == dns.example or path == \"/dns-query\" or header(user-agent) contains curl or transport == tls",
        "",
    );
    check(&server, &["example.org"], NOT_HELD);
    let warned = server.command(&["check", "-c", "gannet.yaml"]);
    let printed = String::from_utf8_lossy(&warned.stdout).into_owned();
    assert!(warned.status.success(), "{printed}");
    for what in ["TLS", "HTTP", "tls"] {
        contains(&printed, &format!("this is never so: no listener speaks {what}"));
    }
}

#[test]
fn the_time_on_the_wall_decides() {
    // One of the two holds at any time, whatever the clock says.
    let server = with_events("now in hours(\"mon-sun 00:00-12:00\", \"12:00-24:00\", \"Europe/Berlin\")", "");
    check(&server, &["example.org"], HELD);
    let server = with_events("now not in hours(\"00:00-24:00\")", "");
    check(&server, &["example.org"], NOT_HELD);
}

#[test]
fn a_random_share_is_a_share() {
    let server = with_events("random < 50%", "");
    let held =
        (0..200).filter(|_| server.ask(&Ask::new("example.org", Rtype::A)).rcode() == Rcode::NOTIMP).count();
    // Outside of this once in 10^9 runs.
    assert!((57..=143).contains(&held), "{held} of 200");
    let never = with_events("random < 0%", "");
    check(&never, &["example.org"], NOT_HELD);
}

#[test]
fn what_comes_too_often_is_noticed() {
    let server = with_events("rate(client/24, qname) > 1/h burst 3", "");
    let rcodes = |name: &str| -> Vec<Rcode> {
        (0..5).map(|_| server.ask(&Ask::new(name, Rtype::A)).rcode()).collect()
    };
    let expect = [Rcode::REFUSED, Rcode::REFUSED, Rcode::REFUSED, Rcode::NOTIMP, Rcode::NOTIMP];
    assert_eq!(rcodes("one.example"), expect);
    assert_eq!(rcodes("two.example"), expect, "each name is counted apart");
}

#[test]
fn marks_conditions_by_name_and_constants_are_conditions() {
    let stub = Stub::start(Script::silent());
    let server = Server::start(&forwarding(
        &[&stub],
        "conditions: {odd: \"qname in suffix:odd.example\", odd-v6: odd and qtype == AAAA}\npolicy: {main: [{if: odd-v6, do: mark(7)}, {if: odd, do: mark(3)}, {if: mark == 7, do: reject(nxdomain)}, {if: \"mark in [2, 3]\", do: reject(notimp)}, {if: false, do: drop}, {if: rd and true, do: reject(refused)}, local, forward(default)]}",
    ));
    check(&server, &["odd.example", "AAAA"], "status: NXDOMAIN");
    check(&server, &["odd.example", "A"], HELD);
    check(&server, &["even.example", "A"], NOT_HELD);
}

/// Starts a server that asks `stub` and then tells by the response code whether a condition holds
/// for the answer.
fn telling_of_answers(stub: &Stub, condition: &str) -> Server {
    let policy = format!(
        "policy:\n  main:\n    - local\n    - forward(default)\n    - if: {condition}\n      do: reject(notimp)\n    - if: answer\n      do: reject(refused)\nsets: {{bad: {{addresses: [192.0.2.0/24, 2001:db8::/32]}}, cdn: {{names: [suffix:cdn.example]}}}}\n"
    );
    Server::start(&forwarding(&[stub], &policy))
}

#[test]
fn the_answer_is_looked_at() {
    let stub = Stub::start(Script::answering(|asked| match asked.qname.as_str() {
        "alias.example." => {
            Answer::a(60, Ipv4Addr::new(198, 51, 100, 1)).alias(60, "alias.example.", "x.cdn.example.")
        }
        "bad.example." => Answer::a(60, Ipv4Addr::new(192, 0, 2, 9)),
        "bad6.example." => Answer::aaaa(60, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        "none.example." => Answer::negative(Rcode::NXDOMAIN, 60, 60),
        _ => Answer::a(60, Ipv4Addr::new(198, 51, 100, 2)),
    }));
    let of = |condition: &str, name: &str, rtype: &str, expect: &str| {
        let server = telling_of_answers(&stub, condition);
        contains(&server.dig(&[name, rtype]), expect);
    };
    let server = telling_of_answers(&stub, "answer-address in bad");
    check(&server, &["bad.example"], HELD);
    check(&server, &["bad6.example", "AAAA"], HELD);
    check(&server, &["good.example"], NOT_HELD);
    check(&server, &["none.example"], NOT_HELD);
    let server = telling_of_answers(&stub, "answer-cname in cdn");
    check(&server, &["alias.example"], HELD);
    check(&server, &["good.example"], NOT_HELD);
    let server = telling_of_answers(&stub, "rcode == nxdomain or not answered");
    check(&server, &["none.example"], HELD);
    check(&server, &["good.example"], NOT_HELD);
    check(&server, &["good.example", "TXT"], HELD);
    of("answer has AAAA", "bad6.example", "AAAA", HELD);
    of("answer has AAAA", "bad.example", "A", NOT_HELD);
    of("answer-address starts-with \"192.0.2.\"", "bad.example", "A", HELD);
    of("answer-address is empty", "none.example", "A", HELD);
    of("rcode starts-with nx", "none.example", "A", HELD);
    // Nobody has checked what another server says.
    of("security == unchecked", "good.example", "A", HELD);
    of("security == secure or security in [insecure, bogus]", "good.example", "A", NOT_HELD);
    // Whom a forwarder has asked is not known.
    of("ns-name in suffix:example or ns-address in 0.0.0.0/0", "good.example", "A", NOT_HELD);
}

#[test]
fn a_question_for_ptr_asks_about_an_address() {
    let server = with_events("ptr-address in 192.0.2.0/24|2001:db8::/32", "");
    check(&server, &["-x", "192.0.2.1"], HELD);
    check(&server, &["-x", "2001:db8::1"], HELD);
    check(&server, &["-x", "198.51.100.1"], NOT_HELD);
    check(&server, &["1.2.0.192.in-addr.arpa", "A"], NOT_HELD);
    check(&server, &["2.0.192.in-addr.arpa", "PTR"], NOT_HELD);
}

#[test]
fn the_environment_is_read_when_the_file_is() {
    // The program's environment is the test's: PATH is in it.
    let server = with_events("env(PATH) and env(PATH) is not empty and not env(GANNET_NO_SUCH_VARIABLE)", "");
    check(&server, &["example.org"], HELD);
    let server = with_events("env(GANNET_NO_SUCH_VARIABLE) == x", "");
    check(&server, &["example.org"], NOT_HELD);
}

#[test]
fn policies_call_return_and_accept() {
    let stub = Stub::start(Script::silent());
    let server = Server::start(&forwarding(
        &[&stub],
        "policy:\n  main:\n    - local\n    - call(first)\n    - if: mark == 1\n      do: reject(notimp)\n    - if: rd\n      do: reject(refused)\n    - forward(default)\n  first:\n    - if: qname == \"returns.example\"\n      do: [mark(1), return]\n    - if: qname == \"accepts.example\"\n      do: accept\n    - if: qname == \"rejects.example\"\n      do: reject(nxdomain)\n    - call(second)\n  second: [{if: qname == \"deep.example\", do: [mark(1), return]}]\n",
    ));
    check(&server, &["returns.example"], HELD);
    check(&server, &["deep.example"], HELD);
    check(&server, &["rejects.example"], "status: NXDOMAIN");
    check(&server, &["other.example"], NOT_HELD);
    // The end without an answer is REFUSED too; only the reason tells it apart.
    contains(&server.dig(&["accepts.example"]), "EDE: 20");
    lacks(&server.dig(&["other.example"]), "EDE: 20");
}

#[test]
fn marks_are_set_and_taken_away() {
    let stub = Stub::start(Script::silent());
    let server = Server::start(&forwarding(
        &[&stub],
        "policy:\n  main:\n    - local\n    - [mark(1), mark(2), mark(3)]\n    - if: qname == one.example\n      do: unmark(2)\n    - if: qname == all.example\n      do: unmark\n    - if: qname == other.example\n      do: [unmark, mark(2)]\n    - if: mark(1) and mark(2) and mark(3)\n      do: reject(notimp)\n    - if: mark(1) and mark(3)\n      do: reject(nxdomain)\n    - if: mark in [1, 3]\n      do: reject(servfail)\n    - if: mark(2)\n      do: reject(formerr)\n    - reject(refused)\n",
    ));
    check(&server, &["none.example"], "status: NOTIMP");
    check(&server, &["one.example"], "status: NXDOMAIN");
    check(&server, &["all.example"], "status: REFUSED");
    check(&server, &["other.example"], "status: FORMERR");
}

#[test]
fn views_begin_in_policies_of_their_own_and_share_no_answers() {
    let stub = Stub::start(Script::always(Answer::a(60, Ipv4Addr::new(192, 0, 2, 1))));
    let config = forwarding(
        &[&stub],
        "views: [{listeners: guests, policy: guests}]\npolicy:\n  main: [local, cache(main), forward(default)]\n  guests:\n    - local\n    - cache(main)\n    - if: qname in suffix:secret.example\n      do: reject(refused)\n    - forward(default)\n    - ttl(fixed 5s)\n",
    )
    .replace("listen: [\"@ADDRESS@\"]", "listen: [{at: \"@ADDRESS@\", name: home}, {at: \"@ANOTHER@\", name: guests}]");
    let server = Server::start(&config);
    let guest = |name: &str| testkit::dig(server.another(), &["+noall", "+answer", "+comments", name]);
    contains(&server.dig(&["secret.example"]), "192.0.2.1");
    contains(&guest("secret.example"), NOT_HELD);
    contains(&server.dig(&["+noall", "+answer", "www.example"]), "\t60\tIN\tA");
    contains(&guest("www.example"), "\t5\tIN\tA");
    assert_eq!(stub.count("www.example."), 2, "each view keeps an answer of its own");
    guest("www.example");
    server.dig(&["www.example"]);
    assert_eq!(stub.count("www.example."), 2, "and finds it again");
}

#[test]
fn a_query_is_explained_by_the_server_that_takes_it() {
    let stub = Stub::start(Script::always(Answer::a(60, Ipv4Addr::new(192, 0, 2, 1))));
    let server = Server::start(&forwarding(
        &[&stub],
        "sets: {ads: {names: [suffix:ads.example, exact:banner.example]}}\npolicy:\n  main:\n    - local\n    - if: qname in ads and client in 10.0.0.0/8\n      do: reject(nxdomain)\n    - cache(main)\n    - forward(default)\n",
    ));
    let explain = |arguments: &[&str]| {
        let output = server.command(&[&["explain"], arguments].concat());
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
        printed
    };
    let blocked = explain(&["www.ads.example", "AAAA", "--client", "10.1.2.3"]);
    contains(&blocked, "www.ads.example. AAAA asked by 10.1.2.3");
    contains(&blocked, "yes: www.ads.example. fits rule 1 of set ads");
    contains(&blocked, "yes: 10.1.2.3 is within 10.0.0.0 to 10.255.255.255");
    contains(&blocked, "reject(nxdomain)  ->  answers");
    contains(&blocked, "NXDOMAIN  flags:");
    let first = explain(&["www.example"]);
    contains(&first, "no: www.example. is not among them");
    contains(&first, "cache(main)  ->  nothing is there");
    contains(&first, "forward(default)  ->  asks upstream group \"default\"");
    contains(&first, &format!("{} answered after", stub.address()));
    contains(&first, "NOERROR came, with 1 record");
    contains(&first, "www.example. 60 A 192.0.2.1");
    let second = explain(&["www.example"]);
    contains(&second, "cache(main)  ->  a fresh answer is there");
    lacks(&second, "asks upstream group");
    assert_eq!(stub.count("www.example."), 1);
    let json = explain(&["www.example", "--json"]);
    contains(&json, "\"outcome\": \"a fresh answer is there\"");
    contains(&json, "\"line\": ");
    let nobody = server.command(&["explain", "www.example", "--listener", "nobody"]);
    assert!(!nobody.status.success());
    contains(&String::from_utf8_lossy(&nobody.stderr), "there is no listener \"nobody\"");
}

#[test]
fn a_file_is_explained_without_a_server_and_without_asking() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let stub = Stub::start(Script::default());
    let config = forwarding(
        &[&stub],
        "policy: {main: [{if: qname == \"a.example\", do: [mark(1), drop]}, cache(main), forward(default)]}",
    )
    .replace("@DIRECTORY@", &directory.path().display().to_string())
    .replace("@ADDRESS@", "127.0.0.1:0");
    std::fs::write(directory.path().join("g.yaml"), config).expect("a writable directory");
    let explain = |name: &str| {
        let output = program(directory.path())
            .args(["explain", "-c", "g.yaml", name])
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = explain("b.example");
    contains(&text, "g.yaml:4  qname == \"a.example\"  ->  no: b.example. is not among them");
    contains(&text, "asks upstream group \"default\"");
    contains(&text, "nobody was asked: the way ends here");
    contains(&explain("a.example"), "the client gets no reply");
    assert!(stub.seen().is_empty(), "nobody was asked");
}

#[test]
fn rules_that_are_left_out_together_are_explained_together() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let stub = Stub::start(Script::default());
    let rules: String = (1..=12)
        .map(|number| {
            format!("    - {{if: client in 10.{number}.0.0/16 and qname contains x{number}, do: drop}}\n")
        })
        .chain((1..=4).map(|number| format!("    - {{if: qname == n{number}.example, do: mark(1)}}\n")))
        .collect();
    let config = forwarding(&[&stub], &format!("policy:\n  main:\n{rules}    - forward(default)\n"))
        .replace("@DIRECTORY@", &directory.path().display().to_string())
        .replace("@ADDRESS@", "127.0.0.1:0");
    std::fs::write(directory.path().join("g.yaml"), config).expect("a writable directory");
    let explain = |arguments: &[&str]| {
        let output = program(directory.path())
            .args(["explain", "-c", "g.yaml"])
            .args(arguments)
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let other = explain(&["www.example"]);
    contains(&other, "g.yaml:6");
    contains(&other, "no: the rules from here to line 17 look for other clients");
    contains(&other, "no: the rules from here to line 21 look for other names");
    contains(&other, "asks upstream group \"default\"");
    let third = explain(&["n1.example", "--client", "10.3.0.1"]);
    contains(&third, "no: the rules from here to line 7 look for other clients");
    contains(
        &third,
        "client in 10.3.0.0/16 and qname contains x3  ->  yes: 10.3.0.1 is within 10.3.0.0 to 10.3.255.255",
    );
    contains(
        &third,
        "client in 10.3.0.0/16 and qname contains x3  ->  no: the name n1.example. does not fit so",
    );
    contains(&third, "no: the rules from here to line 17 look for other clients");
    contains(&third, "qname == n1.example  ->  yes");
    contains(&third, "no: the rules from here to line 21 look for other names");
}

#[test]
fn policies_are_drawn() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    std::fs::write(
        directory.path().join("g.yaml"),
        "upstreams: {default: {servers: 192.0.2.1}}\npolicy: {main: [{if: rd, do: call(p)}, forward(default)], p: [mark(1)]}\n",
    )
    .expect("a writable directory");
    let drawn = |language: &str| {
        let arguments = ["check", "g.yaml", "--graph", language];
        let output = program(directory.path()).args(arguments).output().expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mermaid = drawn("mermaid");
    assert!(mermaid.starts_with("flowchart TD\n"), "{mermaid}");
    contains(&mermaid, "{\"rd\"}");
    contains(&mermaid, "[\"forward(default)\"]");
    let dot = drawn("dot");
    assert!(dot.starts_with("digraph policy {\n") && dot.ends_with("}\n"), "{dot}");
    contains(&dot, "label=\"calls\", style=dashed");
}

#[test]
fn rules_that_never_hold_and_cycles_are_named() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let checked = |text: &str| {
        std::fs::write(directory.path().join("g.yaml"), text).expect("a writable directory");
        let output = program(directory.path()).args(["check", "g.yaml", "--format", "line"]).output();
        String::from_utf8_lossy(&output.expect("the program starts").stdout).into_owned()
    };
    let common = "upstreams: {default: {servers: 192.0.2.1}}\n";
    let printed =
        checked(&format!("{common}policy: {{main: [{{if: qclass == CH, do: drop}}, forward(default)]}}\n"));
    contains(&printed, "g.yaml:2:32: warning: questions of class CH never come to a policy");
    contains(&printed, "warning: this condition never holds: the rule does nothing");
    let printed = checked(&format!(
        "{common}policy:\n  main:\n    - {{if: qname in suffix:example, do: drop}}\n    - {{if: qname in suffix:www.example and rd, do: drop}}\n    - forward(default)\n"
    ));
    contains(&printed, "g.yaml:5:12: warning: this rule is never taken");
    let printed = checked(&format!(
        "{common}policy: {{main: [call(a), forward(default)], a: [call(b)], b: [call(a)]}}\n"
    ));
    contains(&printed, "error: policies call each other in a circle: a -> b -> a");
    let printed = checked(&format!(
        "{common}conditions: {{a: b or rd, b: not a}}\npolicy: {{main: [{{if: a, do: drop}}, forward(default)]}}\n"
    ));
    contains(&printed, "error: condition \"a\" is made of itself");
}

#[test]
fn an_identity_is_compared_whole_and_in_any_letter_case() {
    let server = with_events("client-id == anna", "trusted-peers: 127.0.0.1\n");
    let ask = |id: &[u8]| {
        server.ask(&Ask::new("example.org", Rtype::A).edns(1232).option(OptionCode(65074), id)).rcode()
    };
    assert_eq!(ask(b"ANNA"), Rcode::NOTIMP, "letter case does not count");
    assert_eq!(ask(b"annab"), Rcode::REFUSED);
    assert_eq!(ask(b""), Rcode::REFUSED);
}
