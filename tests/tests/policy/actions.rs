//! Actions that make answers, change answers, and change what upstreams are sent: the built program
//! and real clients.

use std::net::Ipv4Addr;

use testkit::{Answer, Ask, Script, Server, Stub, contains, forwarding, lacks};
use wire::{NameBuf, OptionCode, Query, Rcode, Rtype, rdata};

/// Starts a server whose policy is `local` and these rules.
fn start(script: Script, rules: &[&str]) -> (Stub, Server) {
    start_with(script, rules, "")
}

fn start_with(script: Script, rules: &[&str], more: &str) -> (Stub, Server) {
    let stub = Stub::start(script);
    let rules: String = rules.iter().map(|rule| format!("    - {rule}\n")).collect();
    let policy = format!("policy:\n  main:\n    - local\n{rules}");
    let server = Server::start(&forwarding(&[&stub], &format!("{more}\n{policy}")));
    (stub, server)
}

fn data(rtype: Rtype, text: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    rdata::parse_text(rtype, text, None, &mut octets).expect("record data");
    octets
}

fn addresses(list: &'static [[u8; 4]]) -> Script {
    Script::answering(move |asked| match asked.qtype {
        Rtype::A => list.iter().fold(Answer::default(), |answer, octets| answer.and(Rtype::A, 300, octets)),
        Rtype::AAAA => Answer::aaaa(300, "2001:db8::1".parse().expect("an address")),
        Rtype::HTTPS => {
            let text = "1 . alpn=h2,h3 ipv4hint=192.0.2.1 ech=AAAA ipv6hint=2001:db8::1";
            Answer::default().and(Rtype::HTTPS, 300, &data(Rtype::HTTPS, text))
        }
        _ => Answer::negative(Rcode::NOERROR, 300, 300),
    })
}

const THREE: &[[u8; 4]] = &[[192, 0, 2, 1], [198, 51, 100, 1], [203, 0, 113, 1]];

#[test]
fn names_are_blocked_in_every_way() {
    let (stub, server) = start(
        Script::default(),
        &[
            "{if: qname in suffix:null.example, do: block}",
            "{if: qname in suffix:nx.example, do: 'block(nxdomain, ede filtered, text \"no ads\")'}",
            "{if: qname in suffix:nodata.example, do: 'block(nodata, ttl 5m)'}",
            "{if: qname in suffix:refused.example, do: block(refused)}",
            "{if: qname in suffix:page.example, do: 'block(192.0.2.80, 2001:db8::80)'}",
            "{if: qname in suffix:v4.example, do: block(192.0.2.80)}",
            "{if: qname in suffix:silent.example, do: block(drop)}",
            "forward(default)",
        ],
    );
    assert_eq!(server.dig_short(&["null.example", "A"]), ["0.0.0.0"]);
    assert_eq!(server.dig_short(&["www.null.example", "AAAA"]), ["::"]);
    let printed = server.dig(&["null.example", "HTTPS"]);
    contains(&printed, "status: NOERROR");
    contains(&printed, "ANSWER: 0, AUTHORITY: 1");
    contains(&printed, "EDE: 15 (Blocked)");
    let printed = server.kdig(&["+edns", "nx.example", "A"]);
    contains(&printed, "status: NXDOMAIN");
    contains(&printed, "SOA");
    let printed = server.dig(&["nx.example", "A"]);
    contains(&printed, "EDE: 17 (Filtered): (no ads)");
    let printed = server.dig(&["nodata.example", "A"]);
    contains(&printed, "status: NOERROR");
    contains(&printed, "nodata.example.\t\t300\tIN\tSOA");
    contains(&server.dig(&["refused.example", "A"]), "status: REFUSED");
    assert_eq!(server.dig_short(&["page.example", "A"]), ["192.0.2.80"]);
    assert_eq!(server.dig_short(&["page.example", "AAAA"]), ["2001:db8::80"]);
    assert_eq!(server.dig_short(&["v4.example", "AAAA"]), Vec::<String>::new());
    // Silence is heard as the next reply being the next question's.
    let client = testkit::UdpClient::connect(server.address());
    client.send(&Ask::new("silent.example", Rtype::A).id(1).bytes());
    client.send(&Ask::new("null.example", Rtype::A).id(2).bytes());
    assert_eq!(client.receive().id(), 2);
    assert!(stub.seen().is_empty(), "nobody else was asked");
}

#[test]
fn replies_are_written_in_the_configuration() {
    let (_stub, server) = start(
        Script::default(),
        &[
            "{if: qname in suffix:made.example, do: 'respond(answer \"@ 60 CNAME cdn\"|\"cdn 60 A 192.0.2.7\", additional \"@ TXT hello\", authoritative)'}",
            "{if: qname in suffix:gone.example, do: 'respond(nxdomain, authority \"@ 30 SOA ns.example. admin.example. 1 2 3 4 5\", ede 29, text \"made up\")'}",
            "{if: qname in suffix:on.example, do: ['respond(answer \"@ 60 A 192.0.2.1\"|\"@ 60 A 192.0.2.2\", continue)', limit(1)]}",
        ],
    );
    let printed = server.dig(&["Www.made.example", "A"]);
    contains(&printed, "flags: qr aa rd;");
    contains(&printed, "ANSWER: 2, AUTHORITY: 0, ADDITIONAL: 2");
    contains(&printed, "cdn.Www.made.example.");
    contains(&printed, "\"hello\"");
    let printed = server.dig(&["gone.example", "A"]);
    contains(&printed, "status: NXDOMAIN");
    // Older versions of dig have no name for it.
    contains(&printed, "EDE: 29");
    contains(&printed, "(made up)");
    contains(&printed, "ns.example. admin.example. 1 2 3 4 5");
    assert_eq!(server.dig_short(&["on.example", "A"]), ["192.0.2.1"]);
}

#[test]
fn records_are_served_from_texts_and_files() {
    let stub = Stub::start(Script::default());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("a writable directory");
    };
    write("more.zone", "$GENERATE 1-3 host$ 60 A 192.0.2.$\n$INCLUDE again.zone again\n");
    write("again.zone", "once A 192.0.2.20\n");
    write("text.zone", "twice A 192.0.2.21\n");
    let config = "\
records:
  own:
    origin: example.org
    text: |
      @ 600 SOA ns admin 1 3600 600 86400 30
      www 60 A 192.0.2.1
      alias CNAME www
      *.wild TXT \"any\"
      odd TYPE65400 \\# 3 010203
      srv SRV 1 2 443 www
      $INCLUDE text.zone
    files: more.zone
policy:
  main:
    - local
    - 'records(\"printer.example 60 A 192.0.2.9\")'
    - records(own)
    - forward(default)
";
    let mut server = Server::start_in(directory, &forwarding(&[&stub], config));
    assert_eq!(server.dig_short(&["www.example.org", "A"]), ["192.0.2.1"]);
    assert_eq!(server.dig_short(&["alias.example.org", "A"]), ["www.example.org.", "192.0.2.1"]);
    assert_eq!(server.dig_short(&["a.b.wild.example.org", "TXT"]), ["\"any\""]);
    assert_eq!(server.dig_short(&["odd.example.org", "TYPE65400"]), ["\\# 3 010203"]);
    assert_eq!(server.dig_short(&["srv.example.org", "SRV"]), ["1 2 443 www.example.org."]);
    assert_eq!(server.dig_short(&["host2.example.org", "A"]), ["192.0.2.2"]);
    assert_eq!(server.dig_short(&["once.again.example.org", "A"]), ["192.0.2.20"]);
    assert_eq!(server.dig_short(&["twice.example.org", "A"]), ["192.0.2.21"]);
    assert_eq!(server.dig_short(&["printer.example", "A"]), ["192.0.2.9"]);
    let printed = server.kdig(&["nothing.example.org", "A"]);
    contains(&printed, "status: NXDOMAIN");
    contains(&printed, "aa");
    let printed = server.dig(&["www.example.org", "MX"]);
    contains(&printed, "ANSWER: 0, AUTHORITY: 1");
    contains(&printed, "example.org.\t\t30\tIN\tSOA");
    assert!(stub.seen().is_empty(), "nobody else was asked");
    assert_eq!(server.dig_short(&["www.example.net", "A"]), ["192.0.2.1"]);
    assert_eq!(stub.count("www.example.net."), 1);
    // A file that changes is read again.
    std::fs::write(server.directory().join("more.zone"), "later 60 A 192.0.2.30\n")
        .expect("a writable directory");
    testkit::eventually("the new record is served", || {
        server.dig_short(&["later.example.org", "A"]) == ["192.0.2.30"]
    });
    assert_eq!(server.dig_short(&["host2.example.org", "A"]), Vec::<String>::new());
    // So are files that others include, and those that the configuration includes itself.
    let write = |name: &str, text: &str| {
        std::fs::write(server.directory().join(name), text).expect("a writable directory");
    };
    let serves = |name: &str, address: &str| {
        testkit::eventually("the new record is served", || server.dig_short(&[name, "A"]) == [address]);
    };
    write("text.zone", "twice A 192.0.2.41\n$INCLUDE deeper.zone\n");
    write("deeper.zone", "deeper A 192.0.2.42\n");
    serves("twice.example.org", "192.0.2.41");
    serves("deeper.example.org", "192.0.2.42");
    write("deeper.zone", "deeper A 192.0.2.43\n");
    serves("deeper.example.org", "192.0.2.43");
    write("more.zone", "$INCLUDE again.zone again\n");
    serves("once.again.example.org", "192.0.2.20");
    write("again.zone", "once A 192.0.2.44\n");
    serves("once.again.example.org", "192.0.2.44");
    // With a mistake in one of them, what was read before stays.
    write("again.zone", "once A nonsense\n");
    server.wait_for_log("nonsense");
    assert_eq!(server.dig_short(&["once.again.example.org", "A"]), ["192.0.2.44"]);
}

#[test]
fn names_of_hosts_files_are_answered_where_the_policy_says() {
    let stub = Stub::start(Script::default());
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("hosts"), "192.0.2.44 box.example box\n2001:db8::44 box.example\n")
        .expect("a writable directory");
    let config = "hosts: {files: hosts}\npolicy: {main: [{if: qname in suffix:skip.example, do: forward(default)}, hosts, local, forward(default)]}\n";
    let server = Server::start_in(directory, &forwarding(&[&stub], config));
    assert_eq!(server.dig_short(&["box.example", "A"]), ["192.0.2.44"]);
    assert_eq!(server.dig_short(&["BOX.example", "AAAA"]), ["2001:db8::44"]);
    assert_eq!(server.dig_short(&["-x", "192.0.2.44"]), ["box.example."]);
    assert!(stub.seen().is_empty(), "nobody else was asked");
    assert_eq!(server.dig_short(&["other.example", "A"]), ["192.0.2.1"]);
}

#[test]
fn addresses_are_remembered_for_reverse_look_ups() {
    let stub = Stub::start(addresses(THREE));
    // Documentation addresses are among those that `local` answers for.
    let policy = "policy: {main: [reverse, local, forward(default), 'remember(for 1h, size 256)']}";
    let server = Server::start(&forwarding(&[&stub], policy));
    let ask = ["+short", "-x", "198.51.100.1"];
    assert_eq!(server.dig(&ask), "");
    server.dig(&["www.example.org", "A"]);
    assert_eq!(server.dig(&ask), "www.example.org.\n");
    assert_eq!(stub.count("1.100.51.198.in-addr.arpa."), 0);
}

#[test]
fn ttls_are_fixed_bounded_and_spread() {
    let (_stub, server) = start(
        Script::default(),
        &[
            "forward(default)",
            "{if: qname == fixed.example, do: ttl(fixed 7s)}",
            "{if: qname == most.example, do: ttl(max 1m)}",
            "{if: qname == spread.example, do: ttl(jitter 50%)}",
        ],
    );
    let ttl = |name: &str| server.ask(&Ask::new(name, Rtype::A)).ttls();
    assert_eq!(ttl("fixed.example"), [7]);
    assert_eq!(ttl("most.example"), [60]);
    let spread: std::collections::BTreeSet<u32> =
        (0..30).flat_map(|id| server.ask(&Ask::new("spread.example", Rtype::A).id(id)).ttls()).collect();
    assert!(spread.len() > 3 && spread.iter().all(|ttl| (150..=300).contains(ttl)), "{spread:?}");
}

#[test]
fn records_are_removed_and_kept_by_type_and_address() {
    let (_stub, server) = start(
        addresses(THREE),
        &[
            "forward(default)",
            "{if: qname == four.example, do: remove(AAAA)}",
            "{if: qname == near.example, do: keep(address 198.51.100.0/24)}",
            "{if: qname == far.example, do: remove(address 198.51.100.0/24)}",
            "{if: qname == text.example, do: keep(TXT)}",
        ],
    );
    assert_eq!(server.dig_short(&["four.example", "A"]).len(), 3);
    let printed = server.dig(&["four.example", "AAAA"]);
    contains(&printed, "ANSWER: 0, AUTHORITY: 1");
    contains(&printed, "four.example.\t\t300\tIN\tSOA");
    assert_eq!(server.dig_short(&["near.example", "A"]), ["198.51.100.1"]);
    assert_eq!(server.dig_short(&["far.example", "A"]), ["192.0.2.1", "203.0.113.1"]);
    assert_eq!(server.dig_short(&["text.example", "A"]), Vec::<String>::new());
}

#[test]
fn aliases_are_flattened() {
    let script = Script::answering(|asked| {
        Answer::a(300, Ipv4Addr::new(192, 0, 2, 1)).alias(60, &asked.qname, "edge.example.net")
    });
    let (_stub, server) = start(script, &["forward(default)", "{if: qname == flat.example, do: flatten}"]);
    assert_eq!(server.dig_short(&["usual.example", "A"]), ["edge.example.net.", "192.0.2.1"]);
    let printed = server.kdig(&["+noall", "+answer", "flat.example", "A"]);
    contains(&printed, "flat.example.");
    lacks(&printed, "CNAME");
    contains(&printed, "60\tIN\tA\t192.0.2.1");
}

#[test]
fn parameters_of_services_are_stripped() {
    let (_stub, server) = start(addresses(THREE), &["forward(default)", "strip(ech, hints)"]);
    assert_eq!(server.dig_short(&["www.example.org", "HTTPS"]), ["1 . alpn=\"h2,h3\""]);
}

#[test]
fn addresses_are_sorted_shuffled_and_limited() {
    let (_stub, server) = start(
        addresses(THREE),
        &[
            "forward(default)",
            "{if: qname == sort.example, do: 'sort(203.0.113.0/24, 198.51.100.0/24)'}",
            "{if: qname == one.example, do: ['sort(203.0.113.0/24)', limit(1)]}",
            "{if: qname == near.example, do: sort(client)}",
            "{if: qname == turn.example, do: shuffle}",
        ],
    );
    assert_eq!(server.dig_short(&["sort.example", "A"]), ["203.0.113.1", "198.51.100.1", "192.0.2.1"]);
    assert_eq!(server.dig_short(&["one.example", "A"]), ["203.0.113.1"]);
    // From 127.0.0.1 all are equally far.
    assert_eq!(server.dig_short(&["near.example", "A"]), ["192.0.2.1", "198.51.100.1", "203.0.113.1"]);
    let firsts: std::collections::BTreeSet<String> = (0..40)
        .filter_map(|id| server.ask(&Ask::new("turn.example", Rtype::A).id(id)).answers().into_iter().next())
        .collect();
    assert_eq!(firsts.len(), 3, "{firsts:?}");
}

#[test]
fn private_addresses_from_outside_are_refused() {
    let (_stub, server) = start(
        addresses(&[[192, 0, 2, 1], [192, 168, 1, 1]]),
        &[
            "forward(default)",
            "{if: qname in suffix:corp.example, do: accept}",
            "{if: qname == filter.example, do: [rebind(filter), accept]}",
            "{if: qname == nx.example, do: [rebind(nxdomain), accept]}",
            "{if: qname == other.example, do: ['rebind(address 192.0.2.0/24)', accept]}",
            "rebind",
        ],
    );
    let printed = server.dig(&["evil.example", "A"]);
    contains(&printed, "status: SERVFAIL");
    contains(&printed, "EDE: 15 (Blocked): (private address in an answer from outside)");
    assert_eq!(server.dig_short(&["www.corp.example", "A"]).len(), 2);
    assert_eq!(server.dig_short(&["filter.example", "A"]), ["192.0.2.1"]);
    contains(&server.dig(&["nx.example", "A"]), "status: NXDOMAIN");
    contains(&server.dig(&["other.example", "A"]), "status: SERVFAIL");
    assert_eq!(server.dig_short(&["evil.example", "AAAA"]), ["2001:db8::1"]);
}

#[test]
fn a_reason_is_added_to_an_answer() {
    let (_stub, server) = start(Script::default(), &["forward(default)", "'ede(4, \"rewritten for you\")'"]);
    contains(&server.dig(&["example.org", "A"]), "EDE: 4 (Forged Answer): (rewritten for you)");
}

/// What the stub was last sent for a name: flags, name as written, and EDNS options.
fn sent(stub: &Stub, qname: &str) -> (u16, NameBuf, bool, Vec<(OptionCode, Vec<u8>)>) {
    let asked = stub.seen().into_iter().rfind(|asked| asked.qname.eq_ignore_ascii_case(qname));
    let bytes = asked.unwrap_or_else(|| panic!("nobody asked for {qname}")).bytes;
    let query = Query::parse(&bytes).expect("a query");
    let options = query.edns.iter().flat_map(wire::Edns::options);
    let options = options.map(|option| (option.code, option.data.to_vec())).collect();
    (query.header.flags.0, query.question.qname.to_buf(), query.wants_dnssec(), options)
}

#[test]
fn upstreams_are_told_the_subnet_that_the_policy_says() {
    let (stub, server) = start(
        Script::default(),
        &[
            "{if: qname == client.example, do: ecs(client)}",
            "{if: qname == fixed.example, do: 'ecs(198.51.100.0/24, 2001:db8::/32, keep)'}",
            "{if: qname == passed.example, do: ecs(forward)}",
            "{if: qname == stripped.example, do: [ecs(forward), ecs(strip)]}",
            "forward(default)",
        ],
    );
    let subnet = |name: &str, arguments: &[&str]| {
        let mut all = vec![name];
        all.extend(arguments);
        server.dig(&all);
        let (.., options) = sent(&stub, &format!("{name}."));
        options.into_iter().find(|(code, _)| *code == OptionCode::CLIENT_SUBNET).map(|(_, data)| data)
    };
    let v4 = |last: u8| Some(vec![0, 1, 24, 0, 198, 51, last]);
    // Ours is 127.0.0.1, which means nothing to anybody else.
    assert_eq!(subnet("client.example", &["A"]), None);
    assert_eq!(subnet("fixed.example", &["A"]), v4(100));
    assert_eq!(subnet("fixed.example", &["AAAA"]), Some(vec![0, 2, 32, 0, 0x20, 1, 0x0d, 0xb8]));
    assert_eq!(subnet("fixed.example", &["A", "+subnet=198.51.99.0/24"]), v4(99));
    assert_eq!(subnet("fixed.example", &["A", "+subnet=0.0.0.0/0"]), None, "the client wants none");
    assert_eq!(subnet("passed.example", &["A", "+subnet=198.51.99.0/24"]), v4(99));
    assert_eq!(subnet("passed.example", &["A"]), None);
    assert_eq!(subnet("stripped.example", &["A", "+subnet=198.51.99.0/24"]), None);
    assert_eq!(subnet("usual.example", &["A", "+subnet=198.51.99.0/24"]), None);
}

#[test]
fn a_client_for_whom_a_trusted_peer_asks_is_the_one_that_counts() {
    let rules = &["{if: qname == told.example, do: ecs(client)}", "forward(default)", "sort(client)"];
    let near = "+subnet=203.0.113.77/32";
    let ask = |server: &Server, stub: &Stub, arguments: &[&str]| {
        let mut all = vec!["told.example", "A"];
        all.extend(arguments);
        let answers = server.dig_short(&all);
        let (.., options) = sent(stub, "told.example.");
        let subnet = options.into_iter().find(|(code, _)| *code == OptionCode::CLIENT_SUBNET);
        (answers, subnet.map(|(_, data)| data))
    };
    let as_it_came = ["192.0.2.1", "198.51.100.1", "203.0.113.1"].map(str::to_owned).to_vec();
    let nearest_first = ["203.0.113.1", "192.0.2.1", "198.51.100.1"].map(str::to_owned).to_vec();
    let (stub, server) = start_with(addresses(THREE), rules, "trusted-peers: 127.0.0.0/8");
    assert_eq!(ask(&server, &stub, &[near]), (nearest_first, Some(vec![0, 1, 24, 0, 203, 0, 113])));
    // A subnet is nobody in particular: then it is the peer that counts, whose address means
    // nothing outside.
    assert_eq!(ask(&server, &stub, &["+subnet=203.0.113.0/24"]), (as_it_came.clone(), None));
    assert_eq!(ask(&server, &stub, &[]), (as_it_came.clone(), None));
    let (stub, server) = start(addresses(THREE), rules);
    assert_eq!(ask(&server, &stub, &[near]), (as_it_came, None), "anybody could claim that");
}

#[test]
fn upstreams_are_sent_the_options_and_flags_that_the_policy_says() {
    let (stub, server) = start(
        Script::default(),
        &[
            "{if: qname == options.example, do: 'options(65001 0a0b, 65002 forward, 65003 \"text\")'}",
            "{if: qname == flags.example, do: 'outgoing(dnssec on, checking-disabled on, recursion off, case lower)'}",
            "forward(default)",
        ],
    );
    server.dig(&["options.example", "+ednsopt=65002:6d65", "+ednsopt=65004:00"]);
    let (.., options) = sent(&stub, "options.example.");
    let expected = [(65_001, &[10, 11][..]), (65_002, b"me"), (65_003, b"text")];
    assert_eq!(options, expected.map(|(code, data)| (OptionCode(code), data.to_vec())));
    server.dig(&["FLAGS.example"]);
    let (flags, name, wants_dnssec, options) = sent(&stub, "flags.example.");
    assert_eq!((flags, wants_dnssec, options.len()), (0x0010, true, 0), "CD without RD");
    assert_eq!(name.as_name().as_bytes(), b"\x05flags\x07example\0");
    server.dig(&["USUAL.example", "+ednsopt=65002:6d65"]);
    let (flags, name, wants_dnssec, options) = sent(&stub, "usual.example.");
    assert_eq!((flags, wants_dnssec, options.len()), (0x0100, false, 0));
    assert_eq!(name.as_name().as_bytes(), b"\x05USUAL\x07example\0");
}

#[test]
fn options_of_an_upstreams_reply_come_back_however_it_was_asked() {
    let answer =
        Answer::a(300, Ipv4Addr::new(192, 0, 2, 1)).with_option(65_001, &[1]).with_option(65_002, b"x");
    let stub = Stub::start(Script::always(answer));
    let policy = "\
policy:
  main:
    - local
    - {if: qname in suffix:inside.example, do: ['fallback(bad, inside)', accept]}
    - {if: qname in suffix:nothing.example, do: ['fallback(bad, plain)', accept]}
    - options(65001 forward)
    - {if: qname in suffix:fallback.example, do: ['fallback(bad, default)', accept]}
    - {if: qname in suffix:race.example, do: ['race(bad, plain)', accept]}
    - {if: qname in suffix:nested.example, do: ['fallback(bad, nested)', accept]}
    - {if: qname in suffix:old.example, do: redirect(new.example)}
    - {if: qname in suffix:late.example, do: [forward(default), sleep(5ms), accept]}
    - forward(default)
  bad: [reject(servfail)]
  plain: [forward(default)]
  inside: [options(65001 forward), forward(default)]
  nested: ['fallback(bad, plain)']
";
    let server = Server::start(&forwarding(&[&stub], policy));
    let back = |name: &str| {
        let heard = server.ask(&Ask::new(name, Rtype::A).edns(1232).option(OptionCode(65_001), b"mine"));
        assert_eq!(heard.option(OptionCode(65_002)), None, "{name}");
        assert!(heard.answers().last().is_some_and(|answer| answer.ends_with("192.0.2.1")), "{heard:?}");
        heard.option(OptionCode(65_001))
    };
    for name in ["usual.example", "fallback.example", "race.example", "nested.example", "inside.example"] {
        assert_eq!(back(name), Some(vec![1]), "{name}");
    }
    for name in ["www.old.example", "late.example"] {
        assert_eq!(back(name), Some(vec![1]), "{name}");
    }
    assert_eq!(back("nothing.example"), None, "no step said that it comes back");
    let silent = server.ask(&Ask::new("fallback.example", Rtype::A));
    assert_eq!(silent.option(OptionCode(65_001)), None, "a client without EDNS gets none");
}

#[test]
fn a_cache_keeps_answers_for_each_subnet_apart() {
    let more = "cache: {main: {}}";
    let (stub, server) =
        start_with(Script::default(), &["ecs(forward)", "cache(main)", "forward(default)"], more);
    for (subnet, asked) in
        [("192.0.2.0/24", 1), ("192.0.2.0/24", 1), ("198.51.100.0/24", 2), ("192.0.2.0/24", 2)]
    {
        server.dig(&["www.example.org", &format!("+subnet={subnet}")]);
        assert_eq!(stub.count("www.example.org."), asked, "{subnet}");
    }
}

#[test]
fn mistakes_in_actions_have_a_place() {
    let stub = Stub::start(Script::default());
    let server = Server::start(&forwarding(&[&stub], ""));
    server.write_config(&forwarding(
        &[&stub],
        "records: {a: {text: \"www A 192.0.2\"}}\npolicy:\n  main:\n    - block(nxdomian)\n    - records(b)\n    - remove(CNAME)\n",
    ));
    let output = server.command(&["check", "-c", "gannet.yaml"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    for part in [
        "gannet.yaml:4:28: error: \"192.0.2\" cannot stand here",
        "gannet.yaml:7:13: error: \"nxdomian\" is not a way to block",
        "gannet.yaml:8:15: error: unknown set of records \"b\"",
        "gannet.yaml:9:14: error: an answer without its aliases belongs to no name",
    ] {
        contains(&said, part);
    }
}

#[test]
fn lines_about_queries_are_those_of_unbound() {
    let stub = Stub::start(Script::answering(|_| Answer::a(300, Ipv4Addr::new(192, 0, 2, 7))));
    let mut server = Server::start(&forwarding(
        &[&stub],
        "policy:\n  main:\n\
         \x20 - if: qname in suffix:example.org\n\
         \x20   do: 'query-lines(question, reply, failure, zone \"example.org. inform\")'\n\
         \x20 - {if: qname in suffix:fails.example.org, do: reject(servfail)}\n\
         \x20 - forward(default)\n",
    ));
    server.ask(&Ask::new("two.example.org", Rtype::A));
    server.wait_for_log(" 127.0.0.1 two.example.org. A IN");
    let zone = server.wait_for_log("example.org. inform 127.0.0.1@");
    assert!(zone.ends_with(" two.example.org. A IN"), "{zone}");
    let reply = server.wait_for_log("two.example.org. A IN NOERROR ");
    let fields: Vec<&str> = reply.rsplit(' ').take(3).collect();
    let [octets, is_cached, seconds] = fields.as_slice() else { panic!("{reply}") };
    assert!(octets.parse::<u16>().is_ok_and(|octets| octets > 12) && *is_cached == "0", "{reply}");
    assert!(seconds.parse::<f64>().is_ok_and(|seconds| seconds > 0.0), "{reply}");
    server.ask(&Ask::new("fails.example.org", Rtype::A));
    server.wait_for_log("SERVFAIL <fails.example.org. A IN>: ");
    server.wait_for_log("fails.example.org. A IN SERVFAIL 0.000000 1 ");
}
