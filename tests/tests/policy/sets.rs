//! The built program's sets as clients meet them: every format, reloading one alone, files that
//! change, dynamic sets.

use testkit::{Script, Server, Stub, eventually, forwarding};

/// What a policy says of a name that is in the set, and of others.
const HELD: &str = "status: NOTIMP";
const NOT_HELD: &str = "status: REFUSED";

/// Starts a server that tells by the response code whether a name is in the set `listed`.
pub(super) fn with_events(files: &[(&str, &[u8])], sets: &str) -> Server {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a writable directory");
    }
    Server::start_in(directory, &config(sets))
}

pub(super) fn config(sets: &str) -> String {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    let policy = "policy:\n  main:\n    - if: qname == localhost\n      do: local\n    - if: qname in listed\n      do: reject(notimp)\n    - if: rd or not rd\n      do: reject(refused)\n    - forward(default)\n";
    forwarding(&[&stub_that_is_not_asked], &format!("{policy}sets:\n{sets}"))
}

#[track_caller]
fn check(server: &Server, name: &str, expect: &str) {
    let said = server.dig(&[name, "A"]);
    assert!(said.contains(expect), "expected {expect:?} for {name} in:\n{said}");
}

pub(super) fn check_all(server: &Server, inside: &[&str], outside: &[&str]) {
    for name in inside {
        check(server, name, HELD);
    }
    for name in outside {
        check(server, name, NOT_HELD);
    }
}

/// One domain of a `geosite.dat` with one part.
fn geosite(code: &str, name: &str) -> Vec<u8> {
    let field = |number: u8, octets: &[u8]| [&[number << 3 | 2, octets.len() as u8], octets].concat();
    let domain = field(2, &[vec![1 << 3, 2], field(2, name.as_bytes())].concat());
    field(1, &[field(1, code.as_bytes()), domain].concat())
}

#[test]
fn lists_of_every_format_are_read() {
    let sites = [geosite("CN", "site.example"), geosite("US", "other.example")].concat();
    let server = with_events(
        &[
            ("names.txt", b"# names\nname.example\nfull:full.example\nkeyword:needle\nregexp:^re[0-9]+\\.example$\n"),
            ("geosite.dat", &sites),
            ("adguard.txt", b"||blocked.example^\n@@||good.blocked.example^\n||typed.example^$dnstype=AAAA\n"),
            ("hosts.txt", b"0.0.0.0 hosted.example\n"),
            ("dnsmasq.conf", b"address=/masq.example/0.0.0.0\n"),
            ("policy.zone", b"$ORIGIN rpz.\n@ SOA ns. root. 1 2 3 4 5\nzoned.example CNAME .\n*.zoned.example CNAME .\nok.zoned.example CNAME rpz-passthru.\n"),
            ("good.txt", b"good.name.example\n"),
        ],
        "  listed:\n    names: [exact:inline.example]\n    lists: [\"names:names.txt\", \"geosite:geosite.dat:cn\", \"adguard:adguard.txt\", \"hosts:hosts.txt\", \"dnsmasq:dnsmasq.conf\", \"rpz:policy.zone\"]\n    include: more\n    except: good\n  good: {lists: \"names:good.txt\"}\n  more: {names: more.example}\n",
    );
    check_all(
        &server,
        &[
            "inline.example",
            "A.NAME.example",
            "full.example",
            "xneedlex.example",
            "re7.example",
            "www.site.example",
            "x.blocked.example",
            "hosted.example",
            "x.masq.example",
            "zoned.example",
            "x.zoned.example",
            "x.more.example",
        ],
        &[
            "x.inline.example",
            "good.name.example",
            "x.full.example",
            "other.example",
            "good.blocked.example",
            "typed.example",
            "x.hosted.example",
            "ok.zoned.example",
            "example",
        ],
    );
    let said = server.dig(&["typed.example", "AAAA"]);
    assert!(said.contains(HELD), "a rule for one type:\n{said}");
}

#[test]
fn rules_of_a_list_may_stand_in_the_configuration() {
    let sets = "  listed:\n    tags: {here: 127.0.0.0/8, there: 192.0.2.0/24}\n    lists: \"adguard:more.txt\"\n    rules:\n\
        \x20     - '||ads.example^'\n      - '@@||good.ads.example^'\n      - '||must.good.ads.example^$important'\n\
        \x20     - '||gone.example^$badfilter'\n      - '||wide.example^$denyallow=fine.wide.example'\n\
        \x20     - '||typed.example^$dnstype=AAAA'\n      - '||mine.example^$client=127.0.0.1'\n\
        \x20     - '||theirs.example^$client=192.0.2.1'\n      - '||tagged.example^$ctag=here'\n\
        \x20     - '||untagged.example^$ctag=there'\n      - '! a comment'\n";
    let server =
        with_events(&[("more.txt", b"||gone.example^\n||listed.example^\n@@||x.ads.example^\n")], sets);
    check_all(
        &server,
        &[
            "www.ads.example",
            "must.good.ads.example",
            "x.wide.example",
            "mine.example",
            "tagged.example",
            "listed.example",
        ],
        &[
            "good.ads.example",
            "x.ads.example",
            "gone.example",
            "fine.wide.example",
            "typed.example",
            "theirs.example",
            "untagged.example",
        ],
    );
    let said = server.command(&["explain", "www.ads.example"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("fits line 1 of rules of listed"), "{said}");
    // They are changed by a reload, and what is wrong with one has a place.
    server.write_config(&config("  listed: {rules: ['||other.example^']}\n"));
    assert!(server.command(&["reload"]).status.success());
    check_all(&server, &["other.example"], &["www.ads.example", "listed.example"]);
    server.write_config(&config("  listed:\n    rules:\n      - '||other.example^$nonsense=7'\n"));
    let refused = server.command(&["reload"]);
    let said = String::from_utf8_lossy(&[refused.stdout, refused.stderr].concat()).into_owned();
    assert!(!refused.status.success() && said.contains("\"rules of listed\": line 1: "), "{said}");
    check(&server, "other.example", HELD);
}

#[test]
fn a_set_is_reloaded_alone_and_a_broken_list_changes_nothing() {
    let sets = "  listed: {lists: \"names:a.txt\", include: other}\n  other: {lists: \"names:b.txt\"}\n";
    let server = with_events(&[("a.txt", b"a1.example\n"), ("b.txt", b"b1.example\n")], sets);
    check_all(&server, &["a1.example", "b1.example"], &["a2.example"]);
    let write = |name: &str, text: &str| {
        // As editors do: a new file takes the place of the old one.
        let new = server.directory().join("new");
        std::fs::write(&new, text).expect("a writable directory");
        std::fs::rename(&new, server.directory().join(name)).expect("a writable directory");
    };
    write("a.txt", "a2.example\n");
    let output = server.command(&["reload", "--set", "listed"]);
    assert!(output.status.success(), "{output:?}");
    check_all(&server, &["a2.example", "b1.example"], &["a1.example"]);
    write("a.txt", "a3.example\na..b\n");
    let output = server.command(&["reload", "--set", "listed"]);
    assert!(!output.status.success(), "{output:?}");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("line 2") && said.contains("a..b"), "{said}");
    check_all(&server, &["a2.example", "b1.example"], &["a3.example"]);
    assert!(!server.command(&["reload", "--set", "nothing"]).status.success());
}

#[test]
fn files_that_change_are_read_without_being_told() {
    let server = with_events(&[("a.txt", b"a1.example\n")], "  listed: {lists: \"names:a.txt\"}\n");
    check_all(&server, &["a1.example"], &["a2.example"]);
    std::fs::write(server.directory().join("a.txt"), b"a2.example\na4.example\n")
        .expect("a writable directory");
    eventually("the new list is in use", || server.dig(&["a2.example"]).contains(HELD));
    check_all(&server, &["a4.example"], &["a1.example"]);
}

#[test]
fn dynamic_sets_are_changed_at_run_time_and_kept() {
    let sets = "  listed: {dynamic: {holds: names, limit: 3}}\n";
    let server = with_events(&[], sets);
    check_all(&server, &[], &["learned.example"]);
    let fine = |arguments: &[&str]| {
        let output = server.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(
        fine(&["set", "add", "listed", "learned.example", "exact:one.example"]),
        "2 changed, 2 in the set\n"
    );
    check_all(&server, &["x.learned.example", "one.example"], &["x.one.example"]);
    assert_eq!(fine(&["set", "del", "listed", "one.example"]), "1 changed, 1 in the set\n");
    check_all(&server, &["learned.example"], &["one.example"]);
    assert_eq!(fine(&["set", "list", "listed"]), "learned.example.  stays\n");
    fine(&["set", "add", "--ttl", "1", "listed", "short.example"]);
    eventually("what was added for a second is gone", || server.dig(&["short.example"]).contains(NOT_HELD));
    for name in ["n1.example", "n2.example", "n3.example"] {
        fine(&["set", "add", "listed", name]);
    }
    check_all(&server, &["n1.example", "n2.example", "n3.example"], &["learned.example"]);
    assert!(!server.command(&["set", "add", "listed", "a..b"]).status.success());
    assert!(!server.command(&["set", "list", "nothing"]).status.success());
    // A reload keeps what there is, and so does a restart.
    fine(&["reload"]);
    check_all(&server, &["n3.example"], &[]);
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
    let server = Server::start_in(directory, &config(sets));
    check_all(&server, &["n1.example", "n2.example", "n3.example"], &["learned.example"]);
}

#[test]
fn what_was_added_to_a_set_is_there_after_a_kill() {
    let sets = "  listed: {dynamic: {holds: names}}\n";
    let server = with_events(&[], sets);
    let fine = |server: &Server, arguments: &[&str]| {
        let output = server.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    fine(&server, &["set", "add", "listed", "stays.example", "goes.example"]);
    fine(&server, &["set", "add", "--ttl", "100000", "listed", "leaves.example"]);
    fine(&server, &["set", "del", "listed", "goes.example"]);
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &config(sets));
    check_all(&server, &["stays.example", "leaves.example"], &["goes.example"]);
    let history = fine(&server, &["set", "history", "listed"]);
    assert!(history.contains(": +stays.example., +goes.example.\n"), "{history}");
    assert!(history.lines().next().is_some_and(|line| line.ends_with(": -goes.example.")), "{history}");
    let rows = fine(&server, &["audit", "tail"]);
    assert!(rows.contains("set listed"), "a row with each change: {rows}");
    let listed = fine(&server, &["set", "list", "listed"]);
    let left = listed.lines().find_map(|line| line.strip_prefix("leaves.example.  ")?.strip_suffix('s'));
    let left: u64 = left.and_then(|left| left.parse().ok()).unwrap_or_else(|| panic!("{listed}"));
    assert!((1..=100_000).contains(&left), "{listed}");
}

#[test]
fn clients_are_found_in_lists_of_addresses() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("kids.txt"), "127.0.0.0/8\n2001:db8::1-2001:db8::9\n")
        .expect("a writable directory");
    let stub_that_is_not_asked = Stub::start(Script::silent());
    let policy = "policy:\n  main:\n    - if: qname == localhost\n      do: local\n    - if: client in kids and client not in nobody\n      do: reject(notimp)\n    - if: rd or not rd\n      do: reject(refused)\n    - forward(default)\nsets: {kids: {lists: \"addresses:kids.txt\"}, nobody: {addresses: 192.0.2.1-192.0.2.9}}\n";
    let server = Server::start_in(directory, &forwarding(&[&stub_that_is_not_asked], policy));
    check(&server, "example.org", HELD);
}

#[test]
fn what_is_learned_is_in_the_set() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let stub_that_is_not_asked = Stub::start(Script::silent());
    let policy = "policy:\n  main:\n    - if: qname == localhost\n      do: local\n    - if: qname in seen\n      do: reject(notimp)\n    - if: qname in suffix:learn.example\n      do: learn(seen, name)\n    - if: rd or not rd\n      do: reject(refused)\n    - forward(default)\nsets: {seen: {dynamic: {holds: names}}}\n";
    let server = Server::start_in(directory, &forwarding(&[&stub_that_is_not_asked], policy));
    check(&server, "a.learn.example", NOT_HELD);
    eventually("the name is learned", || server.dig(&["a.learn.example"]).contains(HELD));
    check(&server, "x.a.learn.example", NOT_HELD);
    check(&server, "other.example", NOT_HELD);
}

#[test]
fn names_below_addresses_and_clients_are_learned_too() {
    let stub = Stub::start(Script::default());
    let policy = "trusted-peers: 127.0.0.1\npolicy:\n  main:\n    - local\n    - if: client in clients\n      do: reject(notimp)\n    - if: qname in names\n      do: reject(nxdomain)\n    \
                  - if: qname in suffix:below.example\n      do: learn(names, suffix)\n    - if: qname in suffix:address.example\n      do: learn(addresses, addresses)\n    \
                  - if: qname in suffix:client.example\n      do: learn(clients, client)\n    - forward(default)\n    - if: answer-address in addresses\n      do: reject(servfail)\n\
                  sets: {names: {dynamic: {holds: names}}, addresses: {dynamic: {holds: addresses}}, clients: {dynamic: {holds: addresses}}}\n";
    let server = Server::start(&forwarding(&[&stub], policy));
    check(&server, "one.below.example", "status: NOERROR");
    eventually("what is below the name is learned", || {
        server.dig(&["x.one.below.example"]).contains("status: NXDOMAIN")
    });
    check(&server, "www.address.example", "status: NOERROR");
    eventually("the address is learned", || server.dig(&["www.other.example"]).contains("status: SERVFAIL"));
    // The client that conditions see, for whom a trusted peer asks.
    let asked_by = |client: &str| server.dig(&[&format!("+subnet={client}/32"), "www.client.example"]);
    asked_by("198.51.100.7");
    eventually("the client is learned", || asked_by("198.51.100.7").contains(HELD));
    assert!(!asked_by("198.51.100.8").contains(HELD));
}

#[test]
fn what_lists_say_is_done() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("a writable directory");
    };
    write(
        "a.txt",
        "||plain.example^\n@@||ok.plain.example^\n|moved.example^$dnsrewrite=192.0.2.9\n|gone.example^$dnsrewrite=NXDOMAIN\n|alias.example^$dnsrewrite=other.target.example\n",
    );
    write(
        "p.zone",
        "$ORIGIN rpz.\n@ SOA ns. root. 1 2 3 4 5\nlocal.example TXT \"walled\"\nempty.example CNAME *.\ntcp.example CNAME rpz-tcp-only.\nwalled.example CNAME garden.target.example.\n*.wild.example CNAME *.target.example.\n",
    );
    let stub = Stub::start(Script::default());
    let policy = "policy:\n  main:\n    - if: qname == localhost\n      do: local\n    - blocklist(ads)\n    - if: not qname in suffix:target.example\n      do: reject(refused)\n    - forward(default)\nsets: {ads: {lists: [\"adguard:a.txt\", \"rpz:p.zone\"]}}\n";
    let server = Server::start_in(directory, &forwarding(&[&stub], policy));
    let check = |arguments: &[&str], parts: &[&str]| {
        let said = server.dig(arguments);
        for part in parts {
            assert!(said.contains(part), "expected {part:?} for {arguments:?} in:\n{said}");
        }
    };
    check(&["x.plain.example"], &["status: NOERROR", "0.0.0.0", "EDE: 15"]);
    check(&["plain.example", "AAAA"], &["status: NOERROR", "::"]);
    check(&["plain.example", "MX"], &["status: NOERROR", "ANSWER: 0", "SOA"]);
    check(&["ok.plain.example"], &["status: REFUSED"]);
    check(&["moved.example"], &["192.0.2.9"]);
    check(&["moved.example", "AAAA"], &["status: NOERROR", "ANSWER: 0"]);
    check(&["gone.example"], &["status: NXDOMAIN"]);
    // An alias is followed, and asked for as any other name is.
    let short = |name: &str| server.dig_short(&[name]);
    assert_eq!(short("alias.example"), ["other.target.example.", "192.0.2.1"]);
    assert_eq!(short("walled.example"), ["garden.target.example.", "192.0.2.1"]);
    assert_eq!(short("a.wild.example"), ["a.wild.example.target.example.", "192.0.2.1"]);
    assert_eq!(stub.seen().len(), 3, "for the targets alone");
    check(&["local.example", "TXT"], &["\"walled\""]);
    check(&["empty.example"], &["status: NOERROR", "ANSWER: 0"]);
    check(&["tcp.example"], &["status: REFUSED"]);
    check(&["tcp.example", "+ignore"], &[" tc"]);
    check(&["other.example"], &["status: REFUSED"]);
}

#[test]
fn what_a_list_blocks_is_blocked_as_the_policy_says() {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    let policy = "policy:\n  main:\n    - if: qname == localhost\n      do: local\n    - 'blocklist(ads, 192.0.2.80, ttl 5m, ede filtered, text \"see the page\")'\n    - 'blocklist(bad, nxdomain)'\n    \
                  - 'blocklist(silent, drop)'\n    - forward(default)\nsets: {ads: {names: ads.example}, bad: {names: bad.example}, silent: {names: silent.example}}\n";
    let server = Server::start(&forwarding(&[&stub_that_is_not_asked], policy));
    let said = server.dig(&["x.ads.example"]);
    for part in ["x.ads.example.\t\t300\tIN\tA\t192.0.2.80", "EDE: 17 (Filtered): (see the page)"] {
        testkit::contains(&said, part);
    }
    let said = server.dig(&["bad.example"]);
    for part in ["status: NXDOMAIN", "EDE: 15 (Blocked): (set bad)"] {
        testkit::contains(&said, part);
    }
    let silent = testkit::Ask::new("silent.example", wire::Rtype::A).id(7).bytes();
    testkit::UdpClient::connect(server.address()).expect_silence(&silent);
}

#[test]
fn a_policy_zone_looks_at_clients_and_at_answers() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let zone = "$ORIGIN rpz.\n@ SOA ns. root. 1 2 3 4 5\n\
                24.0.100.51.198.rpz-client-ip CNAME .\n32.7.100.51.198.rpz-client-ip CNAME rpz-passthru.\n\
                32.8.100.51.198.rpz-client-ip A 192.0.2.80\nbad.example CNAME *.\n\
                24.0.113.0.203.rpz-ip CNAME .\n32.7.113.0.203.rpz-ip CNAME rpz-passthru.\n32.8.113.0.203.rpz-ip A 192.0.2.88\n\
                ns.bad.example.rpz-nsdname CNAME .\n";
    std::fs::write(directory.path().join("p.zone"), zone).expect("a writable directory");
    let stub = Stub::start(Script::answering(|asked| {
        let last = asked.qname.split('.').next().and_then(|word| word.strip_prefix('n')?.parse().ok());
        testkit::Answer::a(300, std::net::Ipv4Addr::new(203, 0, 113, last.unwrap_or(1)))
    }));
    let policy = "trusted-peers: 127.0.0.1\npolicy:\n  main:\n    - local\n    - blocklist(zone)\n    - forward(default)\n    - blocklist(zone)\nsets: {zone: {lists: \"rpz:p.zone\"}}\n";
    let server = Server::start_in(directory, &forwarding(&[&stub], policy));
    let asked_by = |client: &str, name: &str| server.dig(&[&format!("+subnet={client}/32"), name]);
    let check = |printed: &str, parts: &[&str]| {
        for part in parts {
            testkit::contains(printed, part);
        }
    };
    // The client comes before the name; the longest prefix counts; an exception ends the search.
    check(&asked_by("198.51.100.1", "n9.example"), &["status: NXDOMAIN"]);
    check(&asked_by("198.51.100.7", "bad.example"), &["status: NOERROR", "203.0.113.1"]);
    check(&asked_by("198.51.100.8", "n9.example"), &["192.0.2.80"]);
    check(&asked_by("192.0.2.1", "bad.example"), &["status: NOERROR", "ANSWER: 0"]);
    // Addresses of the answer, once there is one.
    check(&server.dig(&["n9.example"]), &["status: NXDOMAIN", "EDE: 15"]);
    check(&server.dig(&["n7.example"]), &["status: NOERROR", "203.0.113.7"]);
    check(&server.dig(&["n8.example"]), &["192.0.2.88"]);
    // Whom a forwarder asks is not known.
    let output = server.command(&["check", "-c", "gannet.yaml"]);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    testkit::contains(&said, "10:7: warning: this looks at name servers");
}

#[test]
fn what_an_alias_of_a_policy_zone_leads_to_has_no_rules_on_the_client() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let begin = "$ORIGIN rpz.\n@ SOA ns. root. 1 2 3 4 5\n";
    for (file, rules) in [
        ("names.zone", "moved.example CNAME target.example.\n"),
        ("clients.zone", "32.1.0.0.127.rpz-client-ip CNAME .\nblocked.example CNAME .\n"),
    ] {
        std::fs::write(directory.path().join(file), format!("{begin}{rules}")).expect("writable");
    }
    let honest = testkit::Answer::a(300, std::net::Ipv4Addr::new(203, 0, 113, 1));
    let stub = Stub::start(Script::always(honest));
    let policy = "policy:\n  main:\n    - blocklist(names)\n    - blocklist(clients)\n    - forward(default)\n\
                  sets: {names: {lists: \"rpz:names.zone\"}, clients: {lists: \"rpz:clients.zone\"}}\n";
    let server = Server::start_in(directory, &forwarding(&[&stub], policy));
    for part in ["status: NOERROR", "CNAME\ttarget.example.", "203.0.113.1"] {
        testkit::contains(&server.dig(&["moved.example"]), part);
    }
    testkit::contains(&server.dig(&["other.example"]), "status: NXDOMAIN");
}

#[test]
fn a_policy_zone_looks_at_the_names_that_aliases_lead_to() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let zone = "$ORIGIN rpz.\n@ SOA ns. root. 1 2 3 4 5\nbad.example 90 A 192.0.2.80\ngone.example CNAME .\n\
                first.example CNAME second.example.\nsecond.example CNAME third.target.example.\n\
                held.example CNAME walled.garden.example.\n";
    std::fs::write(directory.path().join("p.zone"), zone).expect("a writable directory");
    let stub = Stub::start(Script::answering(|asked| {
        let honest = testkit::Answer::a(300, std::net::Ipv4Addr::new(203, 0, 113, 1));
        match asked.qname.as_str() {
            "to-bad.example." => honest.alias(300, "to-bad.example.", "middle.example.").alias(
                300,
                "middle.example.",
                "bad.example.",
            ),
            "to-gone.example." => honest.alias(300, "to-gone.example.", "gone.example."),
            "to-held.example." => honest.alias(300, "to-held.example.", "held.example."),
            _ => honest,
        }
    }));
    let policy = "policy:\n  main:\n    - local\n    - 'blocklist(zone, authoritative, without-soa)'\n    - forward(default)\n    \
                  - 'blocklist(zone, authoritative, without-soa)'\nsets: {zone: {lists: \"rpz:p.zone\"}}\n";
    let server = Server::start_in(directory, &forwarding(&[&stub], policy));
    // The aliases that lead there stay; records have their own TTLs.
    let expected = [
        "to-bad.example. 300 CNAME middle.example.",
        "middle.example. 300 CNAME bad.example.",
        "bad.example. 90 A 192.0.2.80",
    ];
    let heard = server.ask(&testkit::Ask::new("to-bad.example", wire::Rtype::A));
    assert_eq!(heard.answers(), expected);
    let heard = server.ask(&testkit::Ask::new("to-gone.example", wire::Rtype::A));
    assert_eq!(heard.rcode(), wire::Rcode::NXDOMAIN);
    assert_eq!(heard.answers(), ["to-gone.example. 300 CNAME gone.example."]);
    // An alias that stands for an alias's target is given, and no address.
    let heard = server.ask(&testkit::Ask::new("to-held.example", wire::Rtype::A));
    let expected =
        ["to-held.example. 300 CNAME held.example.", "held.example. 60 CNAME walled.garden.example."];
    assert_eq!(heard.answers(), expected);
    let heard = server.ask(&testkit::Ask::new("first.example", wire::Rtype::CNAME));
    assert_eq!(heard.answers(), ["first.example. 60 CNAME second.example."]);
    // What the zone says of an alias of its own is looked up in it again.
    let said = server.dig(&["first.example"]);
    for part in ["flags: qr aa", "second.example.\t", "third.target.example.", "203.0.113.1"] {
        testkit::contains(&said, part);
    }
    let said = server.dig(&["gone.example"]);
    for part in ["status: NXDOMAIN", "flags: qr aa", "AUTHORITY: 0"] {
        testkit::contains(&said, part);
    }
}

#[test]
fn what_is_asked_is_kept_as_it_came_and_changed_for_some_clients_alone() {
    let stub = Stub::start(Script::always(testkit::Answer::a(300, std::net::Ipv4Addr::new(203, 0, 113, 7))));
    let policy = "trusted-peers: 127.0.0.1\ncache: {main: {}}\npolicy:\n  find: [cache(main), forward(default)]\n  main:\n    - ask(find)\n    \
                  - {if: 'client in 198.51.100.1 and answer-address in 203.0.113.0/24', do: respond(nxdomain)}\n";
    let server = Server::start(&forwarding(&[&stub], policy));
    let status = |client: &str| server.dig(&[&format!("+subnet={client}/32"), "www.example"]);
    for _ in 0..2 {
        testkit::contains(&status("198.51.100.1"), "status: NXDOMAIN");
        testkit::contains(&status("198.51.100.2"), "203.0.113.7");
    }
    assert_eq!(stub.count("www.example."), 1, "one answer for all");
}

#[test]
fn what_a_policy_zone_says_can_be_overridden_and_its_exceptions_end_a_policy() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let first = "$ORIGIN rpz.\n@ SOA ns. root. 1 2 3 4 5\nboth.example CNAME rpz-passthru.\nmine.example 60 A 192.0.2.80\n\
                 24.0.113.0.203.rpz-ip A 192.0.2.81\n";
    let second = "$ORIGIN rpz.\n@ SOA ns. root. 1 2 3 4 5\nboth.example A 192.0.2.82\nfree.example CNAME rpz-passthru.\n\
                  other.example A 192.0.2.83\n";
    for (name, text) in [("first.zone", first), ("second.zone", second)] {
        std::fs::write(directory.path().join(name), text).expect("a writable directory");
    }
    let stub = Stub::start(Script::answering(|asked| {
        let honest = testkit::Answer::a(300, std::net::Ipv4Addr::new(203, 0, 113, 1));
        match asked.qname.as_str() {
            "alias.example." => honest.alias(300, "alias.example.", "free.example."),
            _ => honest,
        }
    }));
    let policy = "policy:\n  zones:\n    - 'blocklist(first, without-addresses)'\n    - {if: listed in first, do: return}\n    \
                  - 'blocklist(second, nxdomain, override, without-soa)'\n  main: [local, call(zones), forward(default), call(zones)]\n\
                  sets: {first: {lists: \"rpz:first.zone\"}, second: {lists: \"rpz:second.zone\"}}\n";
    let server = Server::start_in(directory, &forwarding(&[&stub], policy));
    let ask = |name: &str| server.ask(&testkit::Ask::new(name, wire::Rtype::A));
    assert_eq!(ask("mine.example").answers(), ["mine.example. 60 A 192.0.2.80"]);
    // An exception is one for all zones, and addresses do not count.
    assert_eq!(ask("both.example").answers(), ["both.example. 300 A 203.0.113.1"]);
    for name in ["free.example", "other.example"] {
        let heard = ask(name);
        assert_eq!((heard.rcode(), heard.answers().len()), (wire::Rcode::NXDOMAIN, 0), "{name}");
    }
}

#[test]
fn who_is_led_to_a_name_whose_answer_is_dropped_hears_nothing() {
    let stub = Stub::start(Script::always(testkit::Answer::a(300, std::net::Ipv4Addr::new(203, 0, 113, 7))));
    let policy = "policy:\n  main:\n    - local\n    - {if: qname == first.example, do: redirect(second.example)}\n    \
                  - {if: qname == third.example, do: [redirect(fourth.example), reject(refused)]}\n    \
                  - forward(default)\n    - {if: answer-address in 203.0.113.7, do: drop}\n";
    let server = Server::start(&forwarding(&[&stub], policy));
    let ask = |name: &str| testkit::Ask::new(name, wire::Rtype::A);
    testkit::UdpClient::connect(server.address()).expect_silence(&ask("first.example").bytes());
    // And a refusal says nothing of the alias.
    let heard = server.ask(&ask("third.example"));
    assert_eq!((heard.rcode(), heard.answers().len()), (wire::Rcode::REFUSED, 0));
}
