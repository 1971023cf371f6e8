//! The numbers of the built program as Prometheus reads them: over HTTP, and by the command.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::{Ask, DEADLINE, Script, Server, Stub, contains, forwarding};
use wire::Rtype;

/// Starts a server with metrics, and returns where they are.
fn start(more: &str) -> (Server, SocketAddr, Stub) {
    let stub = Stub::start(Script::default());
    let yaml = forwarding(&[&stub], &format!("metrics: {{listen: \"127.0.0.1:0\"}}\n{more}"));
    let mut server = Server::start(&yaml);
    let line = server.wait_for_log("metrics can be fetched");
    let (_, address) = line.rsplit_once("127.0.0.1:").expect("an address");
    let port: String = address.chars().take_while(char::is_ascii_digit).collect();
    let address = SocketAddr::new([127, 0, 0, 1].into(), port.parse().expect("a port"));
    (server, address, stub)
}

/// Runs curl; returns what it printed, with the head of the response before the body.
fn curl(address: SocketAddr, path: &str, arguments: &[&str]) -> String {
    let url = format!("http://{address}{path}");
    let output =
        Command::new("curl").args(["-sS", "-i", "--max-time", "20"]).args(arguments).arg(url).output();
    let output = output.expect("curl is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).expect("text")
}

fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").expect("an end of the head").1
}

/// Reads an exposition: metrics with their type and help, and each value by its name with labels.
fn parse(text: &str) -> (BTreeMap<String, (String, String)>, BTreeMap<String, f64>) {
    let (mut metrics, mut values) = (BTreeMap::<String, (String, String)>::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a help text");
            let old = metrics.insert(name.to_owned(), (String::new(), help.to_owned()));
            assert!(old.is_none(), "{name} twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            metrics.get_mut(name).expect("its help before").0 = kind.to_owned();
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let metric = name.split('{').next().expect("a name");
            let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| metric.strip_suffix(end));
            let metric = of_histogram.filter(|metric| metrics.contains_key(*metric)).unwrap_or(metric);
            assert!(metrics.contains_key(metric), "{line} without a type");
            let old = values.insert(name.to_owned(), value.parse().expect("a number"));
            assert!(old.is_none(), "{name} twice");
        }
    }
    (metrics, values)
}

#[test]
fn what_the_server_counts_can_be_fetched() {
    let (server, address, _stub) = start("local: {router.example.org: [192.168.1.1]}\n");
    for _ in 0..3 {
        server.ask(&Ask::new("router.example.org", Rtype::A));
    }
    server.ask_tcp(&Ask::new("router.example.org", Rtype::A));
    let response = curl(address, "/metrics", &[]);
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    contains(&response.to_lowercase(), "content-type: text/plain; version=0.0.4; charset=utf-8\r\n");
    let (metrics, values) = parse(body(&response));
    assert!(values["gannet_queries_total{transport=\"udp\"}"] >= 3.0);
    assert!((values["gannet_queries_total{transport=\"tcp\"}"] - 1.0).abs() < 1e-9);
    assert!(values["gannet_replies_total{rcode=\"NOERROR\"}"] >= 4.0);
    assert!(values["gannet_engine_answers_local_total"] >= 4.0);
    assert!(values.contains_key("gannet_cache_entries{cache=\"main\"}"));
    assert!(values.keys().any(|name| name.starts_with("gannet_upstream_up{pool=\"default\",server=\"")));
    for (name, (kind, help)) in &metrics {
        let is_histogram = ["gannet_wait_seconds", "gannet_reply_seconds", "gannet_upstream_reply_seconds"]
            .contains(&name.as_str());
        assert_eq!(kind == "histogram", is_histogram, "{name}: {kind}");
        assert!(is_histogram || kind == "counter" || kind == "gauge", "{name}: {kind}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        // A sentence of its own, not the one for what nobody described.
        assert!(help.ends_with('.') || help.ends_with("always 1."), "{name}: {help}");
        assert!(!help.contains("gannet stats"), "{name} has no help");
    }
}

#[test]
fn waits_are_a_histogram_by_what_clients_wait_for() {
    let (server, address, stub) = start("");
    stub.behave(Script::default().delayed(Duration::from_millis(40)));
    for number in 0..5 {
        server.ask(&Ask::new(&format!("n{number}.example.org"), Rtype::A));
    }
    // From the cache: nobody waits.
    server.ask(&Ask::new("n0.example.org", Rtype::A));
    let (_, values) = parse(body(&curl(address, "/metrics", &[])));
    let upstream = |part: &str| values[&format!("gannet_wait_seconds{part}")];
    let count = upstream("_count{source=\"upstream\"}");
    assert_eq!(count, upstream("_bucket{source=\"upstream\",le=\"+Inf\"}"));
    assert!(count >= 5.0, "{count}");
    assert!(upstream("_sum{source=\"upstream\"}") >= 5.0 * 0.04);
    // None of the five is below 32 ms; what the test asked until the server was there may be.
    assert!(upstream("_bucket{source=\"upstream\",le=\"0.032768\"}") <= count - 5.0);
    assert_eq!(upstream("_count{source=\"recursion\"}"), 0.0);
}

#[test]
fn replies_are_a_histogram_by_transport_and_by_upstream() {
    let (server, address, stub) = start("local: {router.example.org: [192.168.1.1]}\n");
    stub.behave(Script::default().delayed(Duration::from_millis(40)));
    for number in 0..5 {
        server.ask(&Ask::new(&format!("n{number}.example.org"), Rtype::A));
    }
    // Nobody waits for these.
    for _ in 0..3 {
        server.ask(&Ask::new("n0.example.org", Rtype::A));
        server.ask_tcp(&Ask::new("router.example.org", Rtype::A));
    }
    let (_, values) = parse(body(&curl(address, "/metrics", &[])));
    let of = |metric: &str, part: &str, labels: &str| {
        *values.get(&format!("{metric}_{part}{{{labels}}}")).unwrap_or_else(|| panic!("no {metric} {labels}"))
    };
    let udp =
        |part: &str, bound: &str| of("gannet_reply_seconds", part, &format!("transport=\"udp\"{bound}"));
    let count = udp("count", "");
    assert_eq!(count, values["gannet_queries_total{transport=\"udp\"}"], "each of them has a place");
    assert_eq!(count, udp("bucket", ",le=\"+Inf\""));
    assert!(udp("bucket", ",le=\"0.032768\"") <= count - 5.0 && udp("bucket", ",le=\"0.000128\"") >= 3.0);
    assert!(udp("sum", "") >= 5.0 * 0.04);
    let tcp = |part: &str| of("gannet_reply_seconds", part, "transport=\"tcp\"");
    assert!(tcp("count") >= 3.0);
    assert!(!values.keys().any(|name| name.contains("gannet_reply_seconds_count{transport=\"quic\"")));
    let labels = format!("pool=\"default\",server=\"{}\"", stub.address());
    let upstream =
        |part: &str, bound: &str| of("gannet_upstream_reply_seconds", part, &format!("{labels}{bound}"));
    assert!(upstream("count", "") >= 5.0);
    assert!(upstream("bucket", ",le=\"0.032768\"") <= upstream("count", "") - 5.0);
    assert!(upstream("sum", "") >= 5.0 * 0.04);
}

#[test]
fn the_buckets_of_histograms_are_in_order_and_include_those_before() {
    let (server, address, _stub) = start("");
    for number in 0..5 {
        server.ask(&Ask::new(&format!("n{number}.example.org"), Rtype::A));
    }
    let response = curl(address, "/metrics", &[]);
    let mut before: Option<(String, f64, f64)> = None;
    let mut histograms = 0;
    for line in body(&response).lines().filter(|line| !line.starts_with('#')) {
        let Some((series, rest)) = line.split_once("le=\"") else {
            if let Some((series, bound, _)) = before.take() {
                assert!(bound.is_infinite(), "{series} has no last bucket");
                histograms += 1;
            }
            continue;
        };
        let (bound, count) = rest.split_once("\"} ").expect("a bound and a count");
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound") };
        let count = count.parse().expect("a count");
        if let Some((known, lower, fewer)) = &before {
            assert!(known == series && *lower < bound && *fewer <= count, "{line}");
        }
        before = Some((series.to_owned(), bound, count));
    }
    assert!(histograms >= 6, "{histograms}");
}

#[test]
fn every_counter_is_among_them() {
    let (server, address, _stub) = start("");
    let output = server.command(&["stats"]);
    let stats = String::from_utf8(output.stdout).expect("text");
    let (metrics, values) = parse(body(&curl(address, "/metrics", &[])));
    assert!(stats.lines().count() > 100, "{stats}");
    let mut seen = BTreeSet::new();
    for line in stats.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, _) = line.split_once(' ').expect("a value");
        let name = &if name.starts_with("bans.") { name.to_owned() } else { name.replace('-', "_") };
        let (group, counter) = name.split_once('.').expect("a group");
        let plain = format!("gannet_{group}_{counter}_total").replace('-', "_");
        let labelled = match (group, counter) {
            ("engine", "noerror" | "nxdomain" | "servfail" | "refused") => {
                format!("gannet_replies_total{{rcode=\"{}\"}}", counter.to_uppercase())
            }
            ("engine", "other_rcode") => "gannet_replies_total{rcode=\"other\"}".to_owned(),
            ("bans", "rate-begun") => "gannet_bans_begun_total".to_owned(),
            ("bans", "rate-unplaced") => "gannet_bans_unplaced_total".to_owned(),
            ("bans", source) => format!("gannet_banned_prefixes{{source=\"{source}\"}}"),
            ("changes", "settings") => "gannet_changed_settings".to_owned(),
            ("changes", "revision" | "store_failed" | "pair_wrong") => format!("gannet_changes_{counter}"),
            ("changes", "made" | "refused" | "not_kept") => {
                format!("gannet_changes_total{{outcome=\"{}\"}}", counter.replace('_', "-"))
            }
            ("downloads", "octets") => "gannet_downloads_bytes_total".to_owned(),
            _ => {
                let parts = [
                    ("engine.queries_", "gannet_queries_total{transport="),
                    ("listen.tcp_closed_", "gannet_listen_tcp_closed_total{reason="),
                    ("fetch.sent_", "gannet_fetch_sent_total{transport="),
                    ("resolver.sent_", "gannet_resolver_sent_total{transport="),
                    ("fetch.shed_", "gannet_fetch_shed_total{reason="),
                ];
                parts
                    .iter()
                    .find_map(|(prefix, metric)| {
                        name.strip_prefix(prefix).map(|part| format!("{metric}\"{part}\"}}"))
                    })
                    .unwrap_or(plain)
            }
        };
        assert!(values.contains_key(&labelled), "{name} is not there as {labelled}");
        assert!(seen.insert(labelled), "{name} is mixed with another");
    }
    assert!(metrics.len() > 80);
}

#[test]
fn the_command_prints_the_same() {
    let (server, address, _stub) = start("");
    let output = server.command(&["stats", "--prometheus"]);
    assert!(output.status.success());
    let names = |text: &str| parse(text).1.into_keys().collect::<Vec<_>>();
    let fetched = curl(address, "/metrics", &[]);
    assert_eq!(names(&String::from_utf8(output.stdout).expect("text")), names(body(&fetched)));
}

#[test]
fn there_is_nothing_else_and_nothing_to_change() {
    let (_server, address, _stub) = start("");
    contains(&curl(address, "/", &[]), "HTTP/1.1 404 ");
    contains(&curl(address, "/metrics/..", &["--path-as-is"]), "HTTP/1.1 404 ");
    for method in ["POST", "PUT", "DELETE"] {
        let refused = curl(address, "/metrics", &["-X", method]);
        contains(&refused, "HTTP/1.1 405 ");
        contains(&refused.to_lowercase(), "allow: get, head\r\n");
    }
    let head = curl(address, "/metrics", &["--head"]);
    assert!(head.starts_with("HTTP/1.1 200 ") && body(&head).is_empty(), "{head}");
}

#[test]
fn a_request_is_small() {
    let (_server, address, _stub) = start("");
    let mut connection = TcpStream::connect(address).expect("a connection");
    connection.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let long = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "a".repeat(64 << 10));
    // It may be refused before it was sent.
    let _ = connection.write_all(long.as_bytes());
    let mut said = Vec::new();
    let _ = connection.read_to_end(&mut said);
    assert!(!String::from_utf8_lossy(&said).contains("gannet_"), "a long request was answered");
    assert!(curl(address, "/metrics", &[]).starts_with("HTTP/1.1 200 "));
}

#[test]
fn whoever_says_nothing_holds_one_place_of_a_few() {
    let (server, address, _stub) = start("");
    // As many as are served at a time, and one more that has to wait.
    let mut silent: Vec<TcpStream> =
        (0..8).map(|_| TcpStream::connect(address).expect("a connection")).collect();
    let mut waiting = TcpStream::connect(address).expect("a connection");
    waiting.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    waiting.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    // Queries are answered meanwhile, by threads that have nothing to do with it.
    server.ask(&Ask::new("localhost", Rtype::A));
    silent.pop();
    let mut said = String::new();
    waiting.read_to_string(&mut said).expect("an answer");
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("gannet_build_info"), "{said}");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("an address");
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let config = folder.path().join("gannet.yaml");
    let yaml = format!(
        "server: {{state-directory: \"{}\"}}\nlisten: \"127.0.0.1:0\"\nmetrics: {{listen: \"{at}\"}}\n",
        folder.path().display()
    );
    std::fs::write(&config, yaml).expect("a writable directory");
    let output = testkit::program::program(folder.path()).args(["run", "-c"]).arg(config).output();
    let output = output.expect("the program starts");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    contains(&said, &format!("cannot listen on {at} for metrics (setting metrics.listen)"));
}

#[test]
fn promtool_finds_no_fault() {
    let (_server, address, _stub) = start("effects: {hook: {type: http, url: \"http://127.0.0.1:1/\"}}\n");
    let text = curl(address, "/metrics", &[]);
    let check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut check) = check else {
        println!("skipped: no promtool (Debian: prometheus)");
        return;
    };
    check.stdin.take().expect("a pipe").write_all(body(&text).as_bytes()).expect("it reads");
    let output = check.wait_with_output().expect("an end");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn requests_that_do_not_end_keep_nobody_from_the_metrics() {
    let (_server, address, _stub) = start("");
    let unfinished: Vec<_> = (0..32)
        .map(|_| {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(b"GET /met").expect("sent");
            stream
        })
        .collect();
    // Long before the time of any of them is over.
    contains(&curl(address, "/metrics", &["--max-time", "8"]), "gannet_uptime_seconds");
    drop(unfinished);
}
