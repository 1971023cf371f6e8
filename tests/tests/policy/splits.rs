//! The built program and policies that ask in several ways: fallback, races, redirection, preferred
//! families, DNS64, chosen servers, nearest addresses.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::{Answer, Ask, Script, Server, Stub, UdpClient, eventually};
use wire::{Flags, Rcode, Rtype};

/// Starts a server with groups `a`, `b` and so on, one for each stub, and a policy.
fn start(stubs: &[&Stub], policy: &str) -> Server {
    start_with(stubs, policy, "")
}

fn start_with(stubs: &[&Stub], policy: &str, more: &str) -> Server {
    let groups: Vec<String> = ('a'..)
        .zip(stubs)
        .map(|(name, stub)| format!("{name}: {{servers: \"{}\", hedge: off}}", stub.address()))
        .collect();
    Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{{}}}\npolicy:\n{policy}\n{more}\n",
        groups.join(", ")
    ))
}

fn ask(name: &str) -> Ask {
    Ask::new(name, Rtype::A).edns(1232)
}

fn address(last: u8) -> Answer {
    Answer::a(300, Ipv4Addr::new(192, 0, 2, last))
}

fn always(last: u8) -> Stub {
    Stub::start(Script::always(address(last)))
}

#[test]
fn a_standby_answers_for_a_group_that_is_slow_broken_or_dead() {
    let (mut first, second) = (Stub::start(Script::always(address(1))), always(2));
    let server = start(&[&first, &second], "  main:\n    - fallback(a, b, after 100ms)\n");
    assert_eq!(server.ask(&ask("quick.example.org")).answers(), ["quick.example.org. 300 A 192.0.2.1"]);
    assert!(second.seen().is_empty());
    first.behave(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    assert_eq!(server.ask(&ask("broken.example.org")).answers(), ["broken.example.org. 300 A 192.0.2.2"]);
    first.behave(Script::always(address(1)).delayed(Duration::from_millis(600)));
    assert_eq!(server.ask(&ask("slow.example.org")).answers(), ["slow.example.org. 300 A 192.0.2.2"]);
    first.die();
    assert_eq!(server.ask(&ask("dead.example.org")).answers(), ["dead.example.org. 300 A 192.0.2.2"]);
}

#[test]
fn an_unusable_answer_is_passed_on_only_when_there_is_no_other() {
    let refuses = Stub::start(Script::always(Answer::rcode(Rcode::REFUSED)));
    let fails = Stub::start(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    let server = start(&[&refuses, &fails], "  main:\n    - fallback(a, b, after 100ms, standby always)\n");
    let heard = server.ask(&ask("www.example.org"));
    assert_eq!(heard.rcode(), Rcode::SERVFAIL, "the more telling one: {heard:?}");
    // With codes of its own: NXDOMAIN is a reason, SERVFAIL none.
    let nothing = Stub::start(Script::always(Answer::negative(Rcode::NXDOMAIN, 300, 300)));
    let good = always(2);
    let server = start(&[&nothing, &good], "  main:\n    - fallback(a, b, on nxdomain|timeout)\n");
    assert_eq!(server.ask(&ask("www.example.org")).answers(), ["www.example.org. 300 A 192.0.2.2"]);
    let server = start(&[&fails, &good], "  main:\n    - fallback(a, b, on nxdomain|timeout)\n");
    assert_eq!(server.ask(&ask("www.example.org")).rcode(), Rcode::SERVFAIL);
}

#[test]
fn policies_stand_in_for_each_other_and_keep_their_own_answers() {
    let (first, second) = (always(1), always(2));
    let policy = "  main:\n    - fallback(near, far, after 200ms)\n  \
                  near:\n    - {if: 'qname in suffix:away.example.org', do: reject(servfail)}\n    - [cache(one), forward(a)]\n  \
                  far: [cache(two), forward(b)]\n";
    let server = start_with(&[&first, &second], policy, "cache: {one: {}, two: {}}");
    for _ in 0..3 {
        assert_eq!(
            server.ask(&ask("www.example.org")).answers()[0].split(' ').next_back(),
            Some("192.0.2.1")
        );
        let far = server.ask(&ask("www.away.example.org"));
        assert_eq!(far.answers()[0].split(' ').next_back(), Some("192.0.2.2"));
    }
    assert_eq!((first.count("www.example.org."), second.count("www.away.example.org.")), (1, 1));
}

#[test]
fn a_group_stands_in_for_a_resolver_that_finds_nothing() {
    let root = Stub::start(Script::always(Answer::rcode(Rcode::REFUSED)));
    let good = always(2);
    let directory = TempDir::new().expect("a temporary directory");
    let hints = directory.path().join("root.hints");
    std::fs::write(&hints, ". 3600 NS root.\nroot. 3600 A 127.0.0.1\n").expect("a writable directory");
    let resolver = format!(
        "resolvers: {{default: {{root-hints: \"{}\", port: {}, ask-loopback: true, validation: \"off\"}}}}",
        hints.display(),
        root.address().port()
    );
    let policy = "  main:\n    - fallback(own, far, after 3s)\n  own: [recurse]\n  far: [forward(b)]\n";
    let server = start_with(&[&root, &good], policy, &resolver);
    assert_eq!(server.ask(&ask("www.example.org")).answers(), ["www.example.org. 300 A 192.0.2.2"]);
    assert!(!root.seen().is_empty(), "the resolver asked");
}

#[test]
fn any_goes_through_the_policy_where_that_is_wished() {
    let stub = always(7);
    let config = |minimal_any: bool| {
        format!(
            "server: {{workers: 1, state-directory: \"@DIRECTORY@\", minimal-any: {minimal_any}}}\nlisten: [\"@ADDRESS@\"]\n\
             upstreams: {{a: {{servers: \"{}\", hedge: off}}}}\npolicy: {{main: [forward(a)]}}\n",
            stub.address()
        )
    };
    let any = Ask::new("www.example.org", Rtype::ANY).edns(1232);
    let server = Server::start(&config(true));
    assert!(server.ask(&any).answers()[0].starts_with("www.example.org. 3600 TYPE13 "), "HINFO");
    assert_eq!(stub.count("www.example.org."), 0);
    let server = Server::start(&config(false));
    assert_eq!(server.ask(&any).answers(), ["www.example.org. 300 A 192.0.2.7"]);
}

#[test]
fn a_late_answer_fills_the_cache_of_its_branch() {
    let (first, second) =
        (Stub::start(Script::always(address(1)).delayed(Duration::from_millis(150))), always(2));
    let policy = "  main:\n    - fallback(near, b, after 50ms)\n  near: [cache(one), forward(a)]\n";
    let server = start_with(&[&first, &second], policy, "cache: {one: {}}");
    assert_eq!(server.ask(&ask("www.example.org")).answers(), ["www.example.org. 300 A 192.0.2.2"]);
    eventually("the first branch's answer comes from its cache", || {
        server.ask(&ask("www.example.org")).answers()[0].ends_with(" 192.0.2.1")
    });
    assert_eq!(first.count("www.example.org."), 1);
}

#[test]
fn many_queries_through_a_fallback_are_all_answered() {
    let first = Stub::start(Script::answering(|asked| {
        if asked.qname.len() % 2 == 0 { Answer::rcode(Rcode::SERVFAIL) } else { address(1) }
    }));
    let second = always(2);
    let server = start(&[&first, &second], "  main:\n    - fallback(a, b, after 100ms, standby always)\n");
    let client = UdpClient::connect(server.address());
    for id in 0..200 {
        client.send(&ask(&format!("n{id}.example.org")).id(id).bytes());
    }
    let mut ids: Vec<u16> = (0..200)
        .map(|_| client.receive())
        .filter(|heard| heard.answers().len() == 1)
        .map(|heard| heard.id())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..200).collect::<Vec<u16>>());
}

#[test]
fn the_first_usable_answer_of_a_race_of_policies_counts() {
    let slow = Stub::start(Script::always(address(1)).delayed(Duration::from_millis(400)));
    let broken = Stub::start(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    let quick = always(3);
    let server =
        start(&[&slow, &broken, &quick], "  main:\n    - race(a, b, third)\n  third: [forward(c)]\n");
    assert_eq!(server.ask(&ask("www.example.org")).answers(), ["www.example.org. 300 A 192.0.2.3"]);
}

#[test]
fn redirected_names_have_an_alias_and_rewritten_ones_do_not() {
    let stub = always(7);
    let policy = "  main:\n    - cache(main)\n    - redirect(old.example.org, new.example.net)\n    \
                  - redirect(*.many.example.org, *.many.example.net)\n    - rewrite(hidden.example.org, secret.example.net)\n    \
                  - forward(a)\n";
    let server = start_with(&[&stub], policy, "cache: {main: {}}");
    for _ in 0..2 {
        assert_eq!(
            server.ask(&ask("old.example.org")).answers(),
            ["old.example.org. 300 CNAME new.example.net.", "new.example.net. 300 A 192.0.2.7"]
        );
    }
    assert_eq!(stub.count("new.example.net."), 1);
    assert_eq!(
        server.ask(&ask("a.b.many.example.org")).answers()[0],
        "a.b.many.example.org. 300 CNAME a.b.many.example.net."
    );
    assert_eq!(server.ask(&ask("hidden.example.org")).answers(), ["hidden.example.org. 300 A 192.0.2.7"]);
    assert_eq!((stub.count("secret.example.net."), stub.count("hidden.example.org.")), (1, 0));
    let shown = server.dig(&["old.example.org", "+short"]);
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), ["new.example.net.", "192.0.2.7"]);
    assert_eq!(server.ask(&ask("other.example.org")).answers(), ["other.example.org. 300 A 192.0.2.7"]);
}

#[test]
fn a_map_of_redirections_is_read_from_a_file() {
    let stub = always(7);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("map.txt");
    let rules = "# name, and what it becomes\nexact.example.org one.example.net\nsuffix:below.example.org two.example.net\n\
                 *.kept.example.org *.three.example.net\nkeyword:tracker four.example.net\nregex:^n[0-9]+\\.example\\.org$ five.example.net\n";
    std::fs::write(&file, rules).expect("a file");
    let policy = format!("  main:\n    - 'redirect(map \"{}\")'\n    - forward(a)\n", file.display());
    let server = start(&[&stub], &policy);
    for (name, target) in [
        ("exact.example.org", Some("one.example.net.")),
        ("www.exact.example.org", None),
        ("a.below.example.org", Some("two.example.net.")),
        ("x.y.kept.example.org", Some("x.y.three.example.net.")),
        ("mytracker.example.com", Some("four.example.net.")),
        ("n42.example.org", Some("five.example.net.")),
        ("nn.example.org", None),
    ] {
        let alias = server.ask(&ask(name)).answers()[0].clone();
        let expected = target.map(|target| format!("{name}. 300 CNAME {target}"));
        assert_eq!(alias, expected.unwrap_or(format!("{name}. 300 A 192.0.2.7")));
    }
}

/// An upstream that has both families for `both…`, and one of them for the others.
fn families() -> Stub {
    Stub::start(Script::answering(|asked| {
        let is_v4 = asked.qtype == Rtype::A;
        let other = if is_v4 { "v6" } else { "v4" };
        if asked.qname.starts_with(other) {
            return Answer::negative(Rcode::NOERROR, 300, 300);
        }
        if is_v4 { address(1) } else { Answer::aaaa(300, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)) }
    }))
}

#[test]
fn one_family_hides_the_other() {
    let stub = families();
    let server = start_with(
        &[&stub],
        "  main:\n    - prefer-ipv4\n    - cache(main)\n    - forward(a)\n",
        "cache: {main: {}}",
    );
    let answers = |name: &str, qtype| server.ask(&Ask::new(name, qtype).edns(1232)).answers().len();
    for _ in 0..2 {
        assert_eq!(answers("both.example.org", Rtype::AAAA), 0);
        assert_eq!(answers("both.example.org", Rtype::A), 1);
        assert_eq!(answers("v6.example.org", Rtype::AAAA), 1);
        assert_eq!(answers("v4.example.org", Rtype::AAAA), 0);
    }
    // Each type once: what is known is not asked for again.
    assert_eq!(stub.count("both.example.org."), 2);
    let server = start(&[&stub], "  main:\n    - prefer-ipv6(wait 2s)\n    - forward(a)\n");
    let heard = server.ask(&ask("both.example.org"));
    assert_eq!((heard.answers().len(), heard.authorities().len(), heard.errors()[0].0), (0, 1, 17));
    assert_eq!(server.ask(&ask("v4.example.org")).answers().len(), 1);
}

#[test]
fn a_probe_that_is_slow_hides_nothing() {
    let stub = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::A => {
            std::thread::park_timeout(Duration::from_millis(700));
            address(1)
        }
        _ => Answer::aaaa(300, Ipv6Addr::LOCALHOST),
    }));
    let server = start(&[&stub], "  main:\n    - prefer-ipv4(wait 20ms)\n    - forward(a)\n");
    // The stub answers one query at a time: the second to come waits for the first. Either way
    // there is an answer.
    let begun = Instant::now();
    assert_eq!(server.ask(&Ask::new("www.example.org", Rtype::AAAA)).rcode(), Rcode::NOERROR);
    assert!(begun.elapsed() < Duration::from_secs(5), "nobody waits for the client to give up");
}

#[test]
fn ipv6_addresses_are_made_from_ipv4_ones() {
    let stub = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::A => address(33),
        Rtype::PTR => Answer::default().and(Rtype::PTR, 60, b"\x04host\x07example\x03org\0"),
        _ if asked.qname.starts_with("real") => {
            Answer::aaaa(300, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))
        }
        _ => Answer::negative(Rcode::NOERROR, 100, 100),
    }));
    let server = start(&[&stub], "  main:\n    - dns64\n    - forward(a)\n");
    let shown = server.dig(&["v4.example.org", "AAAA", "+short"]);
    assert_eq!(shown.trim(), "64:ff9b::c000:221");
    let heard = server.ask(&Ask::new("v4.example.org", Rtype::AAAA).edns(1232));
    assert_eq!((heard.ttls(), heard.errors()[0].0), (vec![100], 29));
    assert_eq!(server.dig(&["real.example.org", "AAAA", "+short"]).trim(), "2001:db8::1");
    let shown = server.dig(&["-x", "64:ff9b::c000:221", "+short"]);
    assert_eq!(
        shown.split_whitespace().collect::<Vec<_>>(),
        ["33.2.0.192.in-addr.arpa.", "host.example.org."]
    );
    let server = start(
        &[&stub],
        "  main:\n    - 'dns64(2001:db8:64::/96, exclude 2001:db8::/64)'\n    - forward(a)\n",
    );
    assert_eq!(server.dig(&["real.example.org", "AAAA", "+short"]).trim(), "2001:db8:64::c000:221");
}

#[test]
fn only_the_servers_that_are_named_are_asked() {
    let stubs = [always(1), always(2), always(3)];
    let servers: Vec<String> = ["x", "y", "z"]
        .iter()
        .zip(&stubs)
        .map(|(name, stub)| format!("{{name: {name}, address: \"{}\"}}", stub.address()))
        .collect();
    let server = Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{all: {{pick: balanced, servers: [{}]}}}}\npolicy:\n  main:\n    \
         - {{if: 'qname in suffix:one.example.org', do: ['forward(all, members y)', accept]}}\n    \
         - forward(all, members x|z)\n",
        servers.join(", ")
    ));
    for number in 0..20 {
        server.ask(&ask(&format!("n{number}.one.example.org")));
        server.ask(&ask(&format!("n{number}.example.org")));
    }
    let seen =
        |stub: &Stub| stub.seen().iter().map(|asked| asked.qname.contains(".one.")).collect::<Vec<bool>>();
    assert!(seen(&stubs[1]).len() >= 20 && seen(&stubs[1]).iter().all(|is_one| *is_one));
    for stub in [&stubs[0], &stubs[2]] {
        assert!(!stub.seen().is_empty() && seen(stub).iter().all(|is_one| !is_one));
    }
}

fn group(pick: &str, more: &str, stubs: &[&Stub]) -> Server {
    let servers: Vec<String> = stubs.iter().map(|stub| format!("\"{}\"", stub.address())).collect();
    Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{pick: {pick}, {more}servers: [{}]}}}}\n",
        servers.join(", ")
    ))
}

#[test]
fn an_answer_with_records_is_preferred_to_one_without() {
    let nothing = Stub::start(Script::always(Answer::negative(Rcode::NXDOMAIN, 300, 300)));
    let slow = Stub::start(Script::always(address(1)).delayed(Duration::from_millis(60)));
    let server = group("prefer-positive(2)", "negative-wait: 2s, ", &[&nothing, &slow]);
    assert_eq!(server.ask(&ask("www.example.org")).answers(), ["www.example.org. 300 A 192.0.2.1"]);
    // But nobody waits for ever: when its time is over, the other answer counts.
    let silent = Stub::start(Script::always(address(1)).delayed(Duration::from_millis(2500)));
    let server = group("prefer-positive(2)", "negative-wait: 50ms, ", &[&nothing, &silent]);
    assert_eq!(server.ask(&ask("www.example.org")).rcode(), Rcode::NXDOMAIN);
    // And when all say that there is nothing, nobody waits at all.
    let other = Stub::start(Script::always(Answer::negative(Rcode::NXDOMAIN, 300, 300)));
    let server = group("prefer-positive(2)", "negative-wait: 10s, ", &[&nothing, &other]);
    assert_eq!(server.ask(&ask("www.example.org")).rcode(), Rcode::NXDOMAIN);
}

#[test]
fn the_answer_that_servers_agree_on_counts() {
    let liar = always(66);
    let honest = [always(1), always(1)].map(|stub| {
        stub.behave(Script::always(address(1)).delayed(Duration::from_millis(60)));
        stub
    });
    let server = group("consensus(2 of 3)", "", &[&liar, &honest[0], &honest[1]]);
    assert_eq!(server.ask(&ask("www.example.org")).answers(), ["www.example.org. 300 A 192.0.2.1"]);
    // Nobody agrees with anybody: the first answer is as good as any.
    let others = [always(2), always(3)];
    let server = group("consensus(2 of 3)", "", &[&liar, &others[0], &others[1]]);
    assert_eq!(server.ask(&ask("www.example.org")).answers().len(), 1);
}

#[test]
fn addresses_that_connect_come_first() {
    let near = TcpListener::bind("127.0.0.3:0").expect("loopback");
    let port = near.local_addr().expect("bound").port();
    let stub = Stub::start(Script::always(Answer::a(300, Ipv4Addr::new(127, 0, 0, 2)).and(
        Rtype::A,
        300,
        &[127, 0, 0, 3],
    )));
    let server =
        start(&[&stub], &format!("  main:\n    - forward(a)\n    - quickest(port {port}, timeout 500ms)\n"));
    let first = || server.ask(&ask("www.example.org")).answers()[0].clone();
    eventually("the address that connects comes first", || first().ends_with(" 127.0.0.3"));
}

#[test]
fn queries_sleep_and_answers_are_cut_dropped_and_led_elsewhere() {
    let stub = always(1);
    let policy = "  main:\n    - {if: 'qname in suffix:slow.example.org', do: sleep(120ms)}\n    \
                  - {if: 'qname in suffix:gone.example.org', do: goto(gone)}\n    - forward(a)\n    \
                  - {if: 'qname in suffix:cut.example.org', do: truncate}\n    \
                  - {if: 'qname in suffix:empty.example.org', do: [forget, reject(nxdomain)]}\n  gone: [return]\n";
    let server = start(&[&stub], policy);
    let begun = Instant::now();
    assert_eq!(server.ask(&ask("slow.example.org")).answers().len(), 1);
    assert!(begun.elapsed() >= Duration::from_millis(120));
    assert!(server.ask(&ask("cut.example.org")).has(Flags::TC));
    assert_eq!(server.ask_tcp(&ask("cut.example.org")).answers().len(), 1);
    assert_eq!(server.ask(&ask("empty.example.org")).rcode(), Rcode::NXDOMAIN);
    assert_eq!(server.ask(&ask("gone.example.org")).rcode(), Rcode::REFUSED);
    assert_eq!(stub.count("gone.example.org."), 0);
}

#[test]
fn what_a_cache_holds_is_changed_for_one_client_only() {
    let stub = always(1);
    let policy = "  main:\n    - cache(main, continue)\n    - {if: not answered, do: forward(a)}\n    \
                  - {if: 'qtype == A', do: ttl(fixed 7s)}\n";
    let server = start_with(&[&stub], policy, "cache: {main: {}}");
    for _ in 0..3 {
        assert_eq!(server.ask(&ask("www.example.org")).ttls(), [7]);
    }
    assert_eq!(stub.count("www.example.org."), 1);
}
