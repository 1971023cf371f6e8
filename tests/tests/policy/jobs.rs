//! What happens besides the reply: effects, labels, logs, schedules.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use testkit::mikrotik::Router;
use testkit::{Answer, Ask, Page, Script, Server, Stub, UdpClient, Web, eventually, forwarding};
use wire::{Rcode, Rtype};

/// Set in the copy of this program that runs in a network namespace of its own.
const INSIDE: &str = "GANNET_TEST_NAMESPACE";

pub(super) fn ask(name: &str) -> Ask {
    Ask::new(name, Rtype::A).edns(1232)
}

/// An upstream that knows a handful of names.
pub(super) fn upstream() -> Stub {
    Stub::start(Script::answering(|asked| match (asked.qname.to_ascii_lowercase().as_str(), asked.qtype) {
        ("none.example.org.", _) => Answer::negative(Rcode::NXDOMAIN, 60, 60),
        (_, Rtype::AAAA) => Answer::aaaa(120, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7)),
        ("two.example.org.", _) => {
            Answer::a(90, Ipv4Addr::new(192, 0, 2, 1)).and(Rtype::A, 60, &[192, 0, 2, 2])
        }
        ("net.example.org.", _) => Answer::a(300, Ipv4Addr::new(198, 51, 100, 77)),
        _ => Answer::a(300, Ipv4Addr::new(192, 0, 2, 7)),
    }))
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(said) } else { Err(format!("{program} {arguments:?}: {said}")) }
}

/// Runs the test `name` of this program again in a network namespace of its own, unless this is
/// that copy. True: go on.
#[expect(clippy::print_stdout, reason = "whoever reads the tests' output should know")]
fn in_namespace(name: &str, tool: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        run("ip", &["link", "set", "lo", "up"]).expect("a namespace of our own");
        return true;
    }
    let why = match (run("unshare", &["--net", "true"]), run(tool, &["--version"])) {
        (Err(why), _) => format!("no network namespace can be made: {why}"),
        (_, Err(why)) => format!("\"{tool}\" is not installed: {why}"),
        (Ok(_), Ok(_)) => {
            let this = std::env::current_exe().expect("a test program has a path");
            let status = Command::new("unshare")
                .args(["--net", "--"])
                .arg(this)
                .args([&format!("jobs::{name}"), "--exact", "--nocapture", "--test-threads=1"])
                .env(INSIDE, "1")
                .status()
                .expect("unshare starts");
            assert!(status.success(), "in its namespace: {status}");
            return false;
        }
    };
    println!("{name} is skipped: {why}");
    false
}

#[test]
fn an_nftables_set_is_filled() {
    if !in_namespace("an_nftables_set_is_filled", "nft") {
        return;
    }
    let nft = |text: &str| run("nft", &text.split(' ').collect::<Vec<_>>()).expect("nft does it");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(
        file.path(),
        "table inet fw4 {\n\
         set plain4 { type ipv4_addr; flags timeout; }\n\
         set plain6 { type ipv6_addr; flags timeout; }\n\
         set nets4 { type ipv4_addr; flags interval; auto-merge; }\n\
         set single { type ipv4_addr; }\n\
         set short { type ipv4_addr; flags timeout; }\n\
         }\n",
    )
    .expect("a writable file");
    nft(&format!("-f {}", file.path().display()));
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        "effects:\n\
         \x20 video: {type: nftset, table: fw4, set4: plain4, set6: plain6, timeout: 1h}\n\
         \x20 nets: {type: nftset, table: fw4, set4: nets4, prefix4: 24}\n\
         \x20 short: {type: nftset, table: fw4, set4: short, timeout: ttl, timeout-min: 2s}\n\
         \x20 missing: {type: nftset, table: fw4, set4: nosuch}\n\
         policy:\n  main:\n\
         \x20 - {if: qname in suffix:net.example.org, do: effect(nets)}\n\
         \x20 - {if: qname in suffix:missing.example.org, do: effect(missing)}\n\
         \x20 - {if: not qname in suffix:net.example.org, do: effect(video)}\n\
         \x20 - 'nftset(\"inet fw4 single\")'\n\
         \x20 - effect(short)\n\
         \x20 - cache(main)\n\
         \x20 - forward(default)\n",
    ));
    let set = |name: &str| nft(&format!("list set inet fw4 {name}"));
    assert_eq!(server.ask(&ask("two.example.org")).rcode(), Rcode::NOERROR);
    eventually("both addresses are in the set", || {
        let shown = set("plain4");
        shown.contains("192.0.2.1 timeout 1h expires") && shown.contains("192.0.2.2 timeout 1h")
    });
    eventually("they are in the set without timeouts", || {
        let shown = set("single");
        shown.contains("192.0.2.1, 192.0.2.2") && !shown.contains("expires")
    });
    server.ask(&Ask::new("six.example.org", Rtype::AAAA));
    eventually("the IPv6 address is in its set", || set("plain6").contains("2001:db8::7 timeout 1h"));
    server.ask(&ask("net.example.org"));
    eventually("the network is in the set of networks", || set("nets4").contains("198.51.100.0/24"));
    // The answer comes from the cache now; the smaller of its TTLs is the timeout, which begins
    // anew.
    nft("flush set inet fw4 plain4");
    eventually("the timeout is the TTL", || set("short").contains("192.0.2.1 timeout 1m expires"));
    // Nothing is lost to a set that is not there, and the others are filled all the same.
    server.ask(&ask("missing.example.org"));
    eventually("a failure is counted", || server.stat("effect.missing", "failed") > 0);
    assert_eq!(server.stat("effect.video", "failed"), 0);
    assert_eq!(server.stat("effect.nets", "done"), 1);
}

#[test]
fn the_time_of_an_nftables_element_begins_anew() {
    if !in_namespace("the_time_of_an_nftables_element_begins_anew", "nft") {
        return;
    }
    let nft = |text: &str| run("nft", &text.split(' ').collect::<Vec<_>>()).expect("nft does it");
    for (name, flags) in [("hash", "timeout"), ("tree", "timeout,interval")] {
        nft(&format!("add table inet {name}"));
        nft(&format!("add set inet {name} s {{ type ipv4_addr ; flags {flags} ; }}"));
        // Left by somebody else, with little time to live.
        nft(&format!("add element inet {name} s {{ 192.0.2.7 timeout 90s expires 20s }}"));
    }
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        "policy: {main: ['nftset(\"inet hash s\", timeout 2h)', 'nftset(\"inet tree s\", timeout 2h)', forward(default)]}\n",
    ));
    server.ask(&ask("www.example.org"));
    for name in ["hash", "tree"] {
        eventually("its time is the new one", || {
            let shown = nft(&format!("list set inet {name} s"));
            shown.contains("192.0.2.7 timeout 2h expires 1h59m")
                || shown.contains("192.0.2.7 timeout 2h expires 2h")
        });
    }
}

#[test]
fn an_ipset_is_filled() {
    if !in_namespace("an_ipset_is_filled", "ipset") {
        return;
    }
    let ipset = |text: &str| run("ipset", &text.split(' ').collect::<Vec<_>>());
    for set in ["v4 hash:ip timeout 0", "v6 hash:net family inet6 timeout 0", "nets hash:net"] {
        if let Err(why) = ipset(&format!("create {set}")) {
            println!("an_ipset_is_filled is skipped: {why}");
            return;
        }
    }
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        "effects:\n\
         \x20 both: {type: ipset, set4: v4, set6: v6, prefix6: 64, timeout: 10m}\n\
         policy: {main: [effect(both), 'ipset(set4 nets, prefix4 24)', cache(main), forward(default)]}\n",
    ));
    server.ask(&ask("two.example.org"));
    server.ask(&Ask::new("six.example.org", Rtype::AAAA));
    eventually("the addresses are there", || {
        let shown = ipset("list v4").expect("the set");
        ["192.0.2.1 timeout 59", "192.0.2.2 timeout 59"].iter().all(|entry| shown.contains(entry))
            || ["192.0.2.1 timeout 600", "192.0.2.2 timeout 600"].iter().all(|entry| shown.contains(entry))
    });
    eventually("the network is there", || ipset("list nets").expect("the set").contains("192.0.2.0/24"));
    eventually("the IPv6 network is there", || {
        ipset("list v6").expect("the set").contains("2001:db8::/64 timeout")
    });
}

#[test]
fn a_router_keeps_what_it_is_told() {
    let router = Router::start();
    // Left by somebody else, and by an earlier run of ours.
    router.put([
        (
            "/ip/firewall/address-list".to_owned(),
            HashMap::from([
                (".id".to_owned(), "*77".to_owned()),
                ("list".to_owned(), "video".to_owned()),
                ("address".to_owned(), "192.0.2.2".to_owned()),
                ("comment".to_owned(), "by hand".to_owned()),
            ]),
        ),
        (
            "/ip/firewall/address-list".to_owned(),
            HashMap::from([
                (".id".to_owned(), "*78".to_owned()),
                ("list".to_owned(), "video".to_owned()),
                ("address".to_owned(), "192.0.2.1".to_owned()),
                ("comment".to_owned(), "gannet:lists".to_owned()),
                ("timeout".to_owned(), "00:00:05".to_owned()),
            ]),
        ),
    ]);
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        &format!(
            "effects:\n\
             \x20 lists: {{type: mikrotik-list, address: \"{0}\", user: gannet, password: secret, list4: video, list6: video6, timeout: 10m}}\n\
             \x20 routes: {{type: mikrotik-route, address: \"{0}\", user: gannet, password: \"file:password\", gateway4: 10.0.0.9, routing-table: vpn}}\n\
             policy: {{main: [effect(lists), effect(routes), cache(main), forward(default)]}}\n",
            router.address()
        ),
    ).replace("file:password", "secret"));
    server.ask(&ask("two.example.org"));
    server.ask(&Ask::new("six.example.org", Rtype::AAAA));
    server.ask(&ask("www.example.org"));
    let list = "/ip/firewall/address-list";
    eventually("the new address is in the list", || {
        router.entry(list, "192.0.2.7", "timeout").as_deref() == Some("00:10:00")
    });
    assert_eq!(router.entry(list, "192.0.2.7", "comment").as_deref(), Some("gannet:lists"));
    eventually("what is ours begins anew", || {
        router.entry(list, "192.0.2.1", "timeout").as_deref() == Some("00:10:00")
    });
    assert_eq!(router.entry(list, "192.0.2.2", "was-set"), None, "what others keep is not touched");
    eventually("the IPv6 address is in its list", || {
        router.entry("/ipv6/firewall/address-list", "2001:db8::7/128", "list").as_deref() == Some("video6")
    });
    eventually("there is a route", || {
        router.entry("/ip/route", "192.0.2.7/32", "gateway").as_deref() == Some("10.0.0.9")
    });
    assert_eq!(router.entry("/ip/route", "192.0.2.7/32", "routing-table").as_deref(), Some("vpn"));
    assert_eq!(router.entry("/ipv6/route", "2001:db8::7/128", "gateway"), None, "no gateway for IPv6");
    let logins = router.heard().iter().filter(|words| words[0] == "/login").count();
    assert_eq!(logins, 2, "one connection for each effect");
    assert_eq!(server.stat("effect.lists", "failed"), 0);
}

#[test]
fn what_is_always_in_a_list_is_put_there_and_taken_out_again() {
    let router = Router::start();
    let list = "/ip/firewall/address-list";
    let entry = |address: &str, comment: &str, timeout: Option<&str>| {
        let mut entry = HashMap::from([
            (".id".to_owned(), format!("*{address}")),
            ("list".to_owned(), "video".to_owned()),
            ("address".to_owned(), address.to_owned()),
            ("comment".to_owned(), comment.to_owned()),
        ]);
        entry.extend(timeout.map(|timeout| ("timeout".to_owned(), timeout.to_owned())));
        (list.to_owned(), entry)
    };
    // From an earlier run: named no more, learned from an answer, named and about to end; and
    // somebody else's.
    router.put([
        entry("203.0.113.1", "gannet:lists", None),
        entry("203.0.113.2", "gannet:lists", Some("00:05:00")),
        entry("192.0.2.7", "gannet:lists", Some("00:00:01")),
        entry("203.0.113.3", "by hand", None),
    ]);
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        &format!(
            "effects:\n\
             \x20 lists: {{type: mikrotik-list, address: \"{0}\", user: gannet, password: secret, list4: video, list6: video6, \
             always: [192.0.2.7, 198.51.100.0/24, \"2001:db8::9\"]}}\n\
             policy: {{main: [effect(lists), forward(default)]}}\n",
            router.address()
        ),
    ));
    let comment = |menu: &str, address: &str| router.entry(menu, address, "comment");
    let ours = Some("gannet:lists".to_owned());
    eventually("the IPv6 address is in its list", || {
        comment("/ipv6/firewall/address-list", "2001:db8::9/128") == ours
    });
    assert_eq!(comment(list, "198.51.100.0/24"), ours);
    assert_eq!(
        (comment(list, "192.0.2.7"), router.entry(list, "192.0.2.7", "timeout")),
        (ours.clone(), None)
    );
    assert_eq!(comment(list, "203.0.113.1"), None, "it is named no more");
    assert_eq!(comment(list, "203.0.113.2"), ours, "the router takes it out when its time is over");
    assert_eq!(comment(list, "203.0.113.3").as_deref(), Some("by hand"));
    // An answer with one of them gives it no timeout.
    server.ask(&ask("www.example.org"));
    server.ask(&ask("two.example.org"));
    eventually("the answers' addresses were seen to", || server.stat("effect.lists", "done") >= 2);
    assert_eq!(router.entry(list, "192.0.2.7", "timeout"), None);
    assert_eq!(server.stat("effect.lists", "failed"), 0);
}

#[test]
fn a_router_is_spoken_to_inside_of_tls_if_its_certificate_is_right() {
    let router = Router::start_tls("router.example");
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("router.pem"), router.certificate()).expect("a writable directory");
    let effect = |name: &str, more: &str| {
        format!(
            "  {name}: {{type: mikrotik-list, address: \"{}\", tls: true, {more}, user: gannet, password: secret, list4: {name}}}\n",
            router.address()
        )
    };
    let effects = [
        effect("right", "server-name: router.example, ca: router.pem"),
        effect("another", "server-name: another.example, ca: router.pem"),
        effect("unsigned", "server-name: router.example"),
        effect("unchecked", "verify: false"),
    ];
    let stub = upstream();
    let mut server = Server::start_in(
        directory,
        &forwarding(
            &[&stub],
            &format!(
                "effects:\n{}policy: {{main: [effect(right), effect(another), effect(unsigned), effect(unchecked), forward(default)]}}\n",
                effects.concat()
            ),
        ),
    );
    server.ask(&ask("www.example.org"));
    let has = |list: &str| {
        let wanted = format!("=list={list}");
        router.heard().iter().any(|sentence| sentence.contains(&wanted))
    };
    eventually("the router hears those who may be sure of it, and who do not want to be", || {
        has("right") && has("unchecked")
    });
    for name in ["another", "unsigned"] {
        eventually("the others do not speak to it", || server.stat(&format!("effect.{name}"), "failed") >= 1);
        assert!(!has(name));
    }
    server.wait_for_log("invalid peer certificate");
    assert!(router.entry("/ip/firewall/address-list", "192.0.2.7", "comment").is_some());
}

/// A web server that is content with everything but `/broken`.
fn web_server() -> Web {
    Web::start(|request| {
        let is_broken = request.line.contains("/broken");
        Page::status(if is_broken { "500 No" } else { "204 Fine" }, "")
    })
}

#[test]
fn a_request_is_sent_for_a_query() {
    let web = web_server();
    let address = web.address();
    let stub = upstream();
    let mut server = Server::start(&forwarding(
        &[&stub],
        &format!(
            "effects:\n\
             \x20 hook:\n    type: http\n    url: \"http://{address}/hook?n={{name}}&t={{type}}\"\n\
             \x20   headers: [\"X-Client: {{client}}\"]\n\
             \x20   body: '{{\"addresses\": \"{{addresses}}\", \"rcode\": \"{{rcode}}\"}}'\n\
             \x20 broken: {{type: http, url: \"http://{address}/broken\", method: put}}\n\
             policy:\n  main:\n\
             \x20 - {{if: qname in suffix:two.example.org, do: effect(hook)}}\n\
             \x20 - {{if: qname in suffix:net.example.org, do: effect(broken)}}\n\
             \x20 - cache(main)\n  - forward(default)\n"
        ),
    ));
    for _ in 0..2 {
        server.ask(&ask("Two.example.org"));
    }
    server.ask(&ask("other.example.org"));
    server.ask(&ask("net.example.org"));
    eventually("three requests arrive", || web.heard().len() == 3);
    let heard = web.heard();
    let hooks: Vec<_> = heard.iter().filter(|request| request.line.starts_with("POST ")).collect();
    assert_eq!(hooks.len(), 2, "the answer from the cache counts too");
    for testkit::web::Request { line, headers, body } in hooks {
        assert_eq!(line, "POST /hook?n=two.example.org&t=A HTTP/1.1");
        assert_eq!(headers["x-client"], "127.0.0.1");
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(body, "{\"addresses\": \"192.0.2.1,192.0.2.2\", \"rcode\": \"NOERROR\"}");
    }
    eventually("what failed is counted", || server.stat("effect.broken", "failed") == 1);
    server.wait_for_log("the server answers 500");
    assert_eq!(server.stat("effect.hook", "done"), 2);
}

#[test]
fn an_effect_whose_queue_is_full_loses_what_it_is_told_and_no_query_waits() {
    const ASKED: u64 = 300;
    // The web server says nothing for as long as somebody holds this.
    let gate = Arc::new(Mutex::new(()));
    let own = Arc::clone(&gate);
    let web = Web::start(move |_| {
        drop(own.lock().unwrap_or_else(PoisonError::into_inner));
        Page::status("204 Fine", "")
    });
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        &format!(
            "effects: {{hook: {{type: http, url: \"{}\", queue: 3, concurrency: 1, patience: 60s}}}}\n\
             policy: {{main: [{{if: qname in suffix:example.org, do: effect(hook)}}, cache(main), forward(default)]}}\n",
            web.url("/hook?n={name}")
        ),
    ));
    let held = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let client = UdpClient::connect(server.address());
    for id in 0..ASKED {
        let heard = client.ask(&ask(&format!("n{id}.example.org")).id(id as u16));
        assert_eq!((heard.rcode(), heard.id()), (Rcode::NOERROR, id as u16));
    }
    // Each of them was answered, and the web server has not said a word.
    let stat = |name: &str| server.stat("effect.hook", name);
    eventually("what found no room is counted", || stat("dropped") > 0);
    assert_eq!((stat("done"), stat("failed")), (0, 0));
    assert!(stat("waiting") <= 3);
    drop(held);
    eventually("all of it is done or counted as dropped", || stat("done") + stat("dropped") == ASKED);
    assert_eq!((stat("failed"), stat("waiting")), (0, 0));
    assert_eq!(web.heard().len() as u64, stat("done"));
    assert_eq!(server.stat("events", "dropped"), 0, "the rings had room");
}

#[test]
fn a_program_runs_for_a_query() {
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        "effects:\n\
         \x20 tell:\n    type: script\n    command: sh\n\
         \x20   arguments: [\"-c\", 'echo \"$1 $ADDRESS $(pwd)\" >> \"$2\"', sh, \"{name}\", \"@DIRECTORY@/told\"]\n\
         \x20   environment: [\"ADDRESS={address}\"]\n    directory: /\n\
         policy: {main: [{if: qname in suffix:example.org, do: effect(tell)}, forward(default)]}\n",
    ));
    server.ask(&ask("www.example.org"));
    let told = server.directory().join("told");
    eventually("the program said something", || {
        std::fs::read_to_string(&told).is_ok_and(|said| said.ends_with('\n'))
    });
    assert_eq!(std::fs::read_to_string(&told).expect("a file"), "www.example.org 192.0.2.7 /\n");
    eventually("it is counted", || server.stat("effect.tell", "done") == 1);
}

#[test]
fn queries_are_counted_and_logged() {
    let stub = upstream();
    let mut server = Server::start(&forwarding(
        &[&stub],
        "policy:\n  main:\n\
         \x20 - {if: qname in suffix:example.org, do: [label(ours), 'log(\"somebody asks\")']}\n\
         \x20 - forward(default)\n",
    ));
    for _ in 0..3 {
        server.ask(&ask("two.example.org"));
    }
    assert_eq!(server.stat("label", "ours"), 3);
    let line = server.wait_for_log("somebody asks");
    for part in ["two.example.org", "127.0.0.1", "192.0.2.1,192.0.2.2", "NOERROR"] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    // A flood leaves a trickle in the log, and is counted.
    for _ in 0..200 {
        server.ask(&ask("www.example.org"));
    }
    eventually("some were not logged", || server.stat("events", "unlogged") > 0);
    // Figures are brought together once in a while.
    eventually("every query is counted", || server.stat("label", "ours") == 203);
    eventually("every query is logged or counted as not", || {
        server.stat("events", "unlogged") + server.stat("events", "logged") == 203
    });
}

#[test]
fn a_reload_changes_effects_and_keeps_the_others() {
    let web = web_server();
    let address = web.address();
    let stub = upstream();
    let config = |path: &str| {
        forwarding(
            &[&stub],
            &format!(
                "effects:\n  kept: {{type: http, url: \"http://{address}/kept\"}}\n\
                 \x20 hook: {{type: http, url: \"http://{address}/{path}\"}}\n\
                 policy: {{main: [{{if: qname in suffix:example.org, do: [effect(kept), effect(hook), label(all)]}}, forward(default)]}}\n"
            ),
        )
    };
    let server = Server::start(&config("first"));
    server.ask(&ask("www.example.org"));
    eventually("both are there", || web.heard().len() == 2);
    server.write_config(&config("second"));
    assert!(server.command(&["reload"]).status.success());
    server.ask(&ask("www.example.org"));
    eventually("both are there again", || web.heard().len() == 4);
    let lines: Vec<String> = web.heard().into_iter().map(|request| request.line).collect();
    assert_eq!(lines.iter().filter(|line| line.contains("/kept")).count(), 2);
    assert!(lines[..2].iter().any(|line| line.contains("/first")));
    assert!(lines[2..].iter().any(|line| line.contains("/second")));
    eventually("counts of what stays go on", || server.stat("effect.kept", "done") == 2);
    assert_eq!(server.stat("label", "all"), 2);
}

#[test]
fn schedules_are_shown_and_begun() {
    let web = web_server();
    let address = web.address();
    let stub = upstream();
    let mut server = Server::start(&forwarding(
        &[&stub],
        &format!(
            "cache: {{main: {{dump: {{file: answers.dump}}}}}}\n\
             effects: {{hook: {{type: http, url: \"http://{address}/hook?n={{name}}\"}}}}\n\
             schedules:\n\
             - {{at: \"0 4 * * *\", time-zone: Europe/Berlin, do: [dump(caches), effect(hook)], name: nightly}}\n\
             - {{at: \"@yearly\", do: effect(hook)}}\n"
        ),
    ));
    let shown = || String::from_utf8_lossy(&server.command(&["jobs"]).stdout).into_owned();
    let before = shown();
    assert!(before.contains("nightly: 0 4 * * * (Europe/Berlin): dump(caches), effect(hook)"), "{before}");
    assert!(
        before.contains("did not run yet; next 20") && before.contains("effect(hook): @yearly (local)"),
        "{before}"
    );
    server.ask(&ask("www.example.org"));
    assert!(server.command(&["jobs", "--run", "nightly"]).status.success());
    eventually("it is done", || shown().contains("done 20") && !shown().contains("at work"));
    eventually("the effect was carried out", || !web.heard().is_empty());
    assert_eq!(web.heard()[0].line, "GET /hook?n= HTTP/1.1");
    assert!(server.directory().join("answers.dump").is_file());
    let output = server.command(&["jobs", "--run", "monthly"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no schedule \"monthly\""));
    server.wait_for_log("answers written");
}

#[test]
fn a_schedule_that_is_still_at_work_is_not_begun_again() {
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        "effects:\n\
         \x20 slow:\n    type: script\n    command: sh\n    patience: 60s\n\
         \x20   arguments: [\"-c\", 'echo begun >> begun; mkfifo gate 2>&-; read line < gate']\n    directory: \"@DIRECTORY@\"\n\
         schedules: [{at: \"0 0 1 1 *\", do: effect(slow), name: yearly}, {at: \"0 0 1 1 *\", do: effect(slow), name: other}]\n",
    ));
    let run = |name: &str| server.command(&["jobs", "--run", name]);
    let shown = || String::from_utf8_lossy(&server.command(&["jobs"]).stdout).into_owned();
    let begun =
        || std::fs::read_to_string(server.directory().join("begun")).unwrap_or_default().lines().count();
    // Opening the gate waits for the program that waits there.
    let open = || std::fs::write(server.directory().join("gate"), "go\n").expect("a pipe");
    assert!(run("yearly").status.success());
    eventually("it begins", || server.directory().join("gate").exists());
    let again = run("yearly");
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("\"yearly\" is still at work"), "{again:?}");
    assert!(shown().contains("at work; left out once, still at work; next 20"), "{}", shown());
    // Another schedule is not held up, but its effect has a turn of its own.
    assert!(run("other").status.success());
    assert_eq!(begun(), 1);
    open();
    eventually("the first is done, the second at its gate", || {
        let shown = shown();
        let (yearly, other) = shown.split_once("other: ").unwrap_or_default();
        yearly.contains("done 20")
            && yearly.contains("effect \"slow\" has ended")
            && other.contains("at work")
    });
    eventually("the second begins", || begun() == 2);
    open();
    eventually("both are done", || {
        !shown().contains("    at work") && shown().matches("done 20").count() == 2
    });
    assert_eq!(begun(), 2, "what was left out is not made up for");
    assert!(run("yearly").status.success(), "it can begin again");
    eventually("it begins again", || begun() == 3);
    open();
}

#[test]
fn a_refresh_lasts_until_its_lists_are_there() {
    let gate = Arc::new(Mutex::new(()));
    let own = Arc::clone(&gate);
    let web = Web::start(move |_| {
        drop(own.lock().unwrap_or_else(PoisonError::into_inner));
        Page::found("one.example\n")
    });
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        &format!(
            "sets: {{listed: {{lists: [{{list: \"names:{}\", refresh: 1d, timeout: 60s}}]}}}}\n\
             schedules: [{{at: \"0 0 1 1 *\", do: refresh(sets), name: now}}]\n\
             policy: {{main: [{{if: qname in listed, do: reject(notimp)}}, forward(default)]}}\n",
            web.url("/list")
        ),
    ));
    eventually("the first list is there", || server.stat("downloads", "fetched") == 1);
    let shown = || String::from_utf8_lossy(&server.command(&["jobs"]).stdout).into_owned();
    let held = gate.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(server.command(&["jobs", "--run", "now"]).status.success());
    assert!(!server.command(&["jobs", "--run", "now"]).status.success(), "it is still at work");
    assert!(shown().contains("at work; left out once"), "{}", shown());
    drop(held);
    eventually("it is done", || shown().contains("lists asked for anew: 1"));
    assert_eq!(server.stat("downloads", "fetched"), 2);
    web.behave(|_| Page::status("500 Oops", ""));
    assert!(server.command(&["jobs", "--run", "now"]).status.success());
    eventually("its failure is shown", || shown().contains("lists not fetched: 1 of 1"));
}

#[test]
fn mistakes_in_jobs_are_found_before_they_run() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let check = |text: &str, expect: &str| {
        std::fs::write(directory.path().join("x.yaml"), text).expect("a writable directory");
        let output = testkit::program::program(directory.path())
            .args(["check", "--format", "line", "x.yaml"])
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(expect), "no {expect:?} in {said}");
    };
    check("effects: {a: {type: http, url: \"http://x/{nme}\"}}\n", "a query brings no \"nme\"");
    check(
        "effects: {a: {type: http, table: b, url: http://x}}\n",
        "an effect of the type http has no \"table\"",
    );
    check("effects: {a: {type: nftset, table: b}}\n", "effect \"a\" is incomplete");
    check("effects: {a: {queue: 5}}\n", "effect \"a\" has no type");
    check("policy: {main: [effect(b), forward(default)]}\n", "unknown effect \"b\"");
    check("policy: {main: [record, forward(default)]}\n", "\"record\" is ignored: nothing is recorded");
    check("schedules: [{at: 0 25 * * *, do: dump(caches)}]\n", "is not a time");
    check("schedules: [{at: 0 4 * * *, time-zone: Mars/Base, do: dump(caches)}]\n", "unknown time zone");
    check("schedules: [{at: 0 4 * * *, do: dump(nosuch)}]\n", "unknown cache \"nosuch\"");
    check("recorder: {share: 10%}\n", "\"share\" is ignored: nothing is recorded");
}
