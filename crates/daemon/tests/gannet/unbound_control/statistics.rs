//! Statistics, as the other program's users read them.

use testkit::eventually;

use super::*;
use crate::harness::send;

/// Debian's package of the other program has the plug-in.
#[test]
fn the_plug_in_of_munin_reads_the_statistics() {
    let running = Running::start(&Control::Certificates, " extended-statistics: yes\n", "");
    for _ in 0..3 {
        running.ask("www.static.example");
    }
    let shown = |graph: &str| {
        // The name says what is to be shown.
        let plug_in = running.server.place.path(&format!("unbound_munin_{graph}"));
        std::os::unix::fs::symlink("/usr/share/munin/plugins/unbound_munin_", &plug_in).expect("a link");
        let output = Command::new("sh")
            .arg(&plug_in)
            .env("unbound_conf", running.conf())
            .env("unbound_control", THEIRS)
            .env("MUNIN_PLUGSTATE", running.server.place.path(""))
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    for (graph, line) in [
        ("hits", "t_n_queries.value 3"),
        ("queue", "t_ql_max.value 0"),
        ("memory", "m_c_rrset.value "),
        ("by_type", "n_q_t_A.value 3"),
        ("by_class", "n_q_c_IN.value 3"),
        ("by_opcode", "n_q_o_QUERY.value 3"),
        ("by_rcode", "n_a_r_NOERROR.value 3"),
        ("by_flags", "n_q_flags_RD.value 3"),
        ("histogram", "hcache.value 3"),
    ] {
        let shown = shown(graph);
        assert!(shown.contains(line), "{graph}: {shown}");
    }
}

#[test]
fn queue_time_us_max_is_counted_with_sock_queue_timeout_alone_and_begins_from_zero() {
    // Debian's program does not know the keyword yet.
    let longest = |running: &Running, command: &str| -> u64 {
        let (code, said) = running.ours(command, "");
        assert_eq!(code, 0, "{said}");
        let of = |whose: &str| {
            let key = format!("{whose}.query.queue_time_us.max=");
            let value = said.lines().find_map(|line| line.strip_prefix(&*key)).expect("the key");
            value.parse::<u64>().expect("a number")
        };
        assert_eq!(of("total"), of("thread0").max(of("thread1")), "the longest of all threads");
        of("total")
    };
    let stamped = Running::start(&Control::Unix, " sock-queue-timeout: 60\n", "");
    eventually("a query that waited", || {
        stamped.ask("www.static.example");
        longest(&stamped, "stats_noreset") > 0
    });
    assert!(longest(&stamped, "stats") < 60_000_000, "nothing was dropped");
    assert_eq!(longest(&stamped, "stats_noreset"), 0);
    let other = Running::start(&Control::Unix, "", "");
    other.ask("www.static.example");
    assert_eq!(longest(&other, "stats"), 0);
}

/// What the exporters look for.
#[test]
fn statistics_have_every_key_in_its_order_and_begin_from_zero_when_they_were_read() {
    let running = Running::start(&Control::Unix, " extended-statistics: yes\n", "");
    for _ in 0..3 {
        running.ask("www.static.example");
    }
    running.ask("none.static.example");
    let parse = |said: &str| -> Vec<(String, f64)> {
        let pair = |line: &str| {
            let (key, value) = line.split_once('=').expect("a key and a value");
            (key.to_owned(), value.parse().expect("a number"))
        };
        said.lines().map(pair).collect()
    };
    let value = |said: &str, key: &str| {
        let found = parse(said).into_iter().find(|(known, _)| known == key);
        found.unwrap_or_else(|| panic!("no {key}")).1
    };
    let (code, peeked) = running.theirs("stats_noreset", "");
    let (_, read) = running.theirs("stats", "");
    let (_, after) = running.theirs("stats_noreset", "");
    assert_eq!(code, 0);
    for (said, queries) in [(&peeked, 4.0), (&read, 4.0), (&after, 0.0)] {
        assert_eq!(value(said, "total.num.queries"), queries);
        let threads = value(said, "thread0.num.queries") + value(said, "thread1.num.queries");
        assert_eq!(threads, queries);
        assert_eq!(value(said, "num.query.tcp"), 0.0);
    }
    assert_eq!(value(&read, "total.num.cachehits"), 4.0);
    for (key, expected) in [
        ("num.query.type.A", 4.0),
        ("num.query.class.IN", 4.0),
        ("num.query.opcode.QUERY", 4.0),
        ("num.query.flags.RD", 4.0),
        ("num.query.flags.CD", 0.0),
        ("num.query.ipv6", 0.0),
        ("num.query.edns.present", 0.0),
        ("num.answer.rcode.NOERROR", 3.0),
        ("num.answer.rcode.NXDOMAIN", 1.0),
    ] {
        assert_eq!(value(&read, key), expected, "{key}");
    }
    assert!(!after.contains("num.query.type."), "what did not occur is left out");
    assert_eq!(value(&read, "num.answer.rcode.NOERROR"), 3.0);
    assert_eq!(value(&read, "num.answer.rcode.NXDOMAIN"), 1.0);
    assert!(value(&read, "time.up") >= value(&after, "time.elapsed"));
    // The numbers of Prometheus go on.
    let (_, metrics, _) = text(&running.server.run(&["stats", "--json"]));
    assert!(metrics.contains("\"queries-udp\": 4") || metrics.contains("\"queries-udp\":4"), "{metrics}");

    let keys: Vec<String> = parse(&read).into_iter().map(|(key, _)| key).collect();
    let per_thread = [
        "num.queries",
        "num.queries_ip_ratelimited",
        "num.queries_cookie_valid",
        "num.queries_cookie_client",
        "num.queries_cookie_invalid",
        "num.queries_discard_timeout",
        "num.queries_replyaddr_limit",
        "num.queries_wait_limit",
        "num.cachehits",
        "num.cachemiss",
        "num.prefetch",
        "num.queries_timed_out",
        "query.queue_time_us.max",
        "num.expired",
        "num.recursivereplies",
        "num.dns_error_reports",
        "requestlist.avg",
        "requestlist.max",
        "requestlist.overwritten",
        "requestlist.exceeded",
        "requestlist.current.all",
        "requestlist.current.user",
        "requestlist.current.replies",
        "recursion.time.avg",
        "recursion.time.median",
        "tcpusage",
    ];
    let mut expected: Vec<String> = ["thread0", "thread1", "total"]
        .iter()
        .flat_map(|whose| per_thread.iter().map(move |key| format!("{whose}.{key}")))
        .collect();
    expected.extend(["time.now", "time.up", "time.elapsed"].map(str::to_owned));
    assert_eq!(keys[..expected.len()], expected);
    assert_eq!(keys.iter().filter(|key| key.starts_with("histogram.")).count(), 40);
    // In the order of the manual; those of what did not occur are left out.
    let order = [
        "mem.cache.rrset",
        "mem.cache.message",
        "mem.mod.iterator",
        "mem.mod.validator",
        "mem.mod.respip",
        "mem.streamwait",
        "mem.http.query_buffer",
        "histogram.000000.000000.to.000000.000001",
        "num.query.type.A",
        "num.query.class.IN",
        "num.query.opcode.QUERY",
        "num.query.tcp",
        "num.query.tcpout",
        "num.query.udpout",
        "num.query.tls",
        "num.query.tls.resume",
        "num.query.ipv6",
        "num.query.https",
        "num.query.quic",
        "num.query.flags.QR",
        "num.query.edns.present",
        "num.query.edns.DO",
        "num.answer.rcode.NOERROR",
        "num.answer.rcode.REFUSED",
        "num.query.ratelimited",
        "num.answer.secure",
        "num.answer.bogus",
        "num.rrset.bogus",
        "num.valops",
        "num.query.aggressive.NOERROR",
        "unwanted.queries",
        "unwanted.replies",
        "msg.cache.count",
        "rrset.cache.count",
        "infra.cache.count",
        "key.cache.count",
        "msg.cache.max_collisions",
        "num.query.authzone.up",
        "num.query.authzone.down",
        "num.query.subnet",
        "num.query.cachedb",
    ];
    let places: Vec<usize> =
        order.iter().map(|key| keys.iter().position(|known| known == key).expect(key)).collect();
    assert!(places.is_sorted(), "{keys:?}");
    let (_, status) = running.theirs("set_option extended-statistics: no", "");
    assert_eq!(status, "ok\n");
    assert!(!running.theirs("stats", "").1.contains("mem.cache"));
    assert_eq!(running.theirs("set_option statistics-cumulative: yes", "").1, "ok\n");
    running.ask("www.static.example");
    for _ in 0..2 {
        let (_, said) = running.theirs("stats", "");
        assert_eq!(value(&said, "total.num.queries"), 1.0);
    }
}

#[test]
fn what_response_policy_zones_do_is_counted_by_action() {
    let own = |name: &str, records: &str| {
        format!(
            "{name} 60 IN SOA ns.{name} host.{name} 1 3600 600 86400 60\n{name} 60 IN NS ns.{name}\n{records}"
        )
    };
    let place = Place::new();
    let file = |name: &str, records: &str| {
        format!(" zonefile: \"{}\"\n", place.write(name, &own(name, records)).display())
    };
    let disabled = file("tried.rpz.", "nx.example.tried.rpz. 60 CNAME *.\n");
    let plain = file(
        "plain.rpz.",
        "nx.example.plain.rpz. 60 CNAME .\nnodata.example.plain.rpz. 60 CNAME *.\n\
         passed.example.plain.rpz. 60 CNAME rpz-passthru.\nsilent.example.plain.rpz. 60 CNAME rpz-drop.\n\
         stream.example.plain.rpz. 60 CNAME rpz-tcp-only.\ndata.example.plain.rpz. 60 A 192.0.2.7\n",
    );
    let walled = file("walled.rpz.", "alias.example.walled.rpz. 60 CNAME .\n");
    let zone = file("example.", "passed.example. 60 A 192.0.2.8\ntarget.example. 60 A 192.0.2.9\n");
    let sections = format!(
        "server:\n module-config: \"respip iterator\"\nrpz:\n name: tried.rpz\n rpz-action-override: disabled\n{disabled}rpz:\n name: plain.rpz\n{plain}\
         rpz:\n name: walled.rpz\n rpz-action-override: cname\n rpz-cname-override: target.example\n{walled}\
         auth-zone:\n name: example\n for-upstream: no\n{zone}"
    );
    let running = Running::start(&Control::Unix, " extended-statistics: yes\n", &sections);
    for (name, code, end) in [
        ("nx.example", NXDOMAIN, None),
        ("nodata.example", 0, None),
        ("passed.example", 0, Some([192, 0, 2, 8])),
        ("stream.example", 0, None),
        ("data.example", 0, Some([192, 0, 2, 7])),
        ("alias.example", 0, Some([192, 0, 2, 9])),
    ] {
        let (seen, octets) = running.ask(name);
        assert_eq!(seen, code, "{name}");
        if let Some(end) = end {
            assert_eq!(octets, end, "{name}");
        }
    }
    let _waits_in_vain = send(running.port, "silent.example");
    let counted = |said: &str| -> Vec<String> {
        let lines = said.lines().filter_map(|line| line.strip_prefix("num.rpz.action.rpz-"));
        lines.map(str::to_owned).collect()
    };
    let begin = Instant::now();
    while !running.theirs("stats_noreset", "").1.contains("rpz-drop=1") {
        assert!(begin.elapsed() < PATIENCE, "a query that is dropped is counted");
    }
    assert_eq!(
        counted(&running.theirs("stats", "").1),
        [
            "nxdomain=1",
            "nodata=1",
            "passthru=1",
            "drop=1",
            "tcp-only=1",
            "local-data=1",
            "disabled=1",
            "cname-override=1"
        ]
    );
    assert!(counted(&running.theirs("stats", "").1).is_empty(), "it counts from zero");
    // Nobody counts what is not to be shown.
    assert_eq!(running.theirs("set_option extended-statistics: no", "").1, "ok\n");
    running.ask("nx.example");
    assert_eq!(running.theirs("set_option extended-statistics: yes", "").1, "ok\n");
    running.ask("data.example");
    assert_eq!(counted(&running.theirs("stats", "").1), ["local-data=1"]);
    let (_, metrics, _) = text(&running.server.run(&["stats", "--json"]));
    assert!(metrics.contains("\"rpz-nxdomain\": 1"), "{metrics}");
}
