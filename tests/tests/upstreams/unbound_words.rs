//! Keywords of `unbound.conf` with the built program: what each does to answers and to the log.

use std::net::Ipv4Addr;

use testkit::redis::Redis;
use testkit::{
    Answer, Ask, Other, Script, Server, Stub, UdpClient, contains, eventually, free_address, is_installed,
    lacks, program,
};
use wire::{Flags, OptionCode, Rcode, Rtype};

const BEGIN: &str = "server:\n directory: \"@DIRECTORY@\"\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n \
    use-syslog: no\n logfile: \"\"\n do-ip6: no\n do-not-query-localhost: no\n";

/// A zone that leaves one name alone and denies another one.
const POLICY_ZONE: &str = "$TTL 60\n@ SOA ns.example.net. admin.example.net. 1 7200 600 86400 300\n\
    @ NS ns.example.net.\ngood.example.org CNAME rpz-passthru.\nbad.example.org CNAME .\n\
    32.9.2.0.192.rpz-ip CNAME rpz-passthru.\n";

/// A server for all names: what begins with `alias` is an alias for a name of `corp.example`.
fn upstream() -> Stub {
    Stub::start(Script::answering(|asked| {
        let last = if asked.qname.starts_with("nine") { 9 } else { 7 };
        let public = Answer::a(300, Ipv4Addr::new(192, 0, 2, last));
        let private = Answer::a(300, Ipv4Addr::new(10, 0, 0, 1));
        match (asked.qtype, asked.qname.as_str()) {
            (Rtype::A, name) if name.starts_with("alias") => {
                private.alias(300, name.trim_end_matches('.'), "host.corp.example")
            }
            (Rtype::A, name) if name.starts_with("inside") || name.ends_with("corp.example.") => {
                private.alias(300, name.trim_end_matches('.'), "stranger.example.net")
            }
            (Rtype::A, name) if name.starts_with("stranger") => private,
            (Rtype::A, _) => public,
            _ => Answer::negative(Rcode::NOERROR, 300, 300),
        }
    }))
}

/// Starts the program in place of Unbound, with these statements behind the usual ones.
fn start(upstream: &Stub, more: &str, files: &[(&str, &str)]) -> Other {
    let conf = format!(
        "{BEGIN} interface: 127.0.0.1@@PORT@\n{more}forward-zone:\n name: \".\"\n forward-addr: 127.0.0.1@{}\n",
        upstream.address().port()
    );
    let binary = program::gannet();
    let binary = binary.to_str().expect("a path in UTF-8");
    let arguments = [
        "NO_COLOR=1",
        "GANNET_SOCKET=@DIRECTORY@/control.sock",
        binary,
        "unbound",
        "-d",
        "-c",
        "@DIRECTORY@/unbound.conf",
    ];
    Other::start("env", &arguments, &[&[("unbound.conf", conf.as_str())], files].concat(), free_address())
}

fn ask(server: &Other, qname: &str) -> String {
    server.dig(&[qname, "A"])
}

#[test]
fn rpz_cname_override_is_the_alias_in_place_of_what_the_zone_says() {
    let upstream = upstream();
    let rpz = "rpz:\n name: rpz.example\n zonefile: rpz\n rpz-action-override: cname\n \
               rpz-cname-override: walled.example.net\n";
    let modules = " module-config: \"respip iterator\"\n";
    let server = start(&upstream, &format!("{modules}{rpz}"), &[("rpz", POLICY_ZONE)]);
    let said = ask(&server, "bad.example.org");
    contains(&said, "CNAME\twalled.example.net.");
    contains(&said, "walled.example.net.\t");
    contains(&said, "192.0.2.7");
    lacks(&ask(&server, "other.example.org"), "CNAME");
}

#[test]
fn rpz_log_has_one_line_for_what_a_zone_leaves_alone_and_one_for_what_it_denies() {
    let upstream = upstream();
    let rpz = "rpz:\n name: rpz.example\n zonefile: rpz\n rpz-log: yes\n rpz-log-name: mine\n";
    let modules = " module-config: \"respip iterator\"\n";
    let server = start(&upstream, &format!("{modules}{rpz}"), &[("rpz", POLICY_ZONE)]);
    contains(&ask(&server, "good.example.org"), "192.0.2.7");
    contains(&ask(&server, "bad.example.org"), "NXDOMAIN");
    contains(&ask(&server, "nine.example.org"), "192.0.2.9");
    contains(&ask(&server, "other.example.org"), "192.0.2.7");
    let lines = |name: &str| {
        let log = server.log();
        log.lines().filter(|line| line.contains("rpz: applied [mine]") && line.contains(name)).count()
    };
    eventually("lines for both", || {
        lines("good.example.org") > 0 && lines("bad.example.org") > 0 && lines("nine.example.org") > 0
    });
    for (name, expected) in
        [("good.example.org", 1), ("bad.example.org", 1), ("nine.example.org", 1), ("other.example.org", 0)]
    {
        assert_eq!(lines(name), expected, "{name}: {}", server.log());
    }
}

#[test]
fn private_domain_is_for_owners_of_addresses_whatever_name_was_asked_for() {
    let upstream = upstream();
    let words = " module-config: iterator\n private-address: 10.0.0.0/8\n private-domain: corp.example\n";
    let server = start(&upstream, words, &[]);
    // An alias of a stranger for a name that may have such an address.
    contains(&ask(&server, "alias.example.org"), "10.0.0.1");
    // A name that may have one is an alias for a stranger's, which may not.
    let said = ask(&server, "www.corp.example");
    contains(&said, "CNAME\tstranger.example.net.");
    lacks(&said, "10.0.0.1");
    lacks(&ask(&server, "stranger.example.net"), "10.0.0.1");
}

#[test]
fn cachedb_finds_in_redis_what_another_server_has_stored_and_num_query_cachedb_counts_it() {
    if !is_installed("redis-server") {
        return;
    }
    let (upstream, redis) = (upstream(), Redis::start_with_password("open sesame"));
    let words = format!(
        " module-config: \"validator cachedb iterator\"\n extended-statistics: yes\nremote-control:\n control-enable: yes\n \
         control-interface: @DIRECTORY@/unbound.ctl\ncachedb:\n backend: redis\n secret-seed: \"our seed\"\n \
         redis-server-host: 127.0.0.1\n redis-server-port: {}\n redis-server-password: \"open sesame\"\n \
         redis-command-timeout: 5000\n redis-expire-records: yes\n",
        redis.address().port()
    );
    let first = start(&upstream, &words, &[]);
    contains(&ask(&first, "www.example.org"), "192.0.2.7");
    assert_eq!(found(&first), 0);
    eventually("the answer is stored", || redis.keys() > 0);
    let second = start(&upstream, &words, &[]);
    contains(&ask(&second, "www.example.org"), "192.0.2.7");
    assert_eq!(found(&second), 1);
    assert_eq!(upstream.count("www.example.org."), 1, "nobody was asked again");
}

/// Returns how many answers came from the second-level cache, as `unbound-control` tells it.
fn found(server: &Other) -> u64 {
    let output = std::process::Command::new(program::gannet())
        .args(["unbound", "unbound-control", "-c", "unbound.conf", "stats_noreset"])
        .current_dir(server.directory())
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.lines().find_map(|line| line.strip_prefix("num.query.cachedb="));
    number
        .unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
        .parse()
        .expect("a number")
}

/// What `interface-action: … allow_cookie` becomes; all of this machine has a prefix of its own in
/// that file, so that here the settings say it.
#[test]
fn interface_action_allow_cookie_wants_a_cookie_of_clients_of_that_listener_but_for_some() {
    let upstream = upstream();
    let start = |more: &str| {
        Server::start(&format!(
            "server: {{workers: 1}}\nlisten: [\"@ADDRESS@\", {{at: \"@ANOTHER@\", name: strict}}]\n\
             upstreams: {{default: {{servers: [\"{}\"]}}}}\npolicy: {{main: [forward(default)]}}\n\
             cookies: {{enabled: true, required-on: [strict]{more}}}\n",
            upstream.address()
        ))
    };
    let plain = Ask::new("www.example.org", Rtype::A);
    let with_cookie = plain.clone().option(OptionCode::COOKIE, &[7; 8]);
    let server = start("");
    let (usual, strict) = (UdpClient::connect(server.address()), UdpClient::connect(server.another()));
    assert_eq!(usual.ask(&plain).rcode(), Rcode::NOERROR);
    let heard = strict.ask(&plain);
    assert!(heard.rcode() == Rcode::REFUSED && heard.has(Flags::TC), "{heard:?}");
    let heard = strict.ask(&with_cookie);
    assert_eq!(heard.rcode(), Rcode::BADCOOKIE);
    let cookie = heard.option(OptionCode::COOKIE).expect("a cookie to come back with");
    assert_eq!(strict.ask(&plain.clone().option(OptionCode::COOKIE, &cookie)).rcode(), Rcode::NOERROR);
    let spared = start(", not-required: [127.0.0.0/8]");
    assert_eq!(UdpClient::connect(spared.another()).ask(&plain).rcode(), Rcode::NOERROR);
}
