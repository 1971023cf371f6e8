//! Keywords of `unbound.conf` with the built program: what each does to answers and to the log.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use tempfile::TempDir;
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
    let rpz = "server:\n module-config: \"respip iterator\"\nrpz:\n name: rpz.example\n zonefile: rpz\n rpz-action-override: cname\n \
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
fn rrset_roundrobin_has_each_address_first_now_and_then() {
    let addresses = [7, 8, 9]
        .iter()
        .fold(Answer::default(), |answer, &last| answer.and(Rtype::A, 300, &[192, 0, 2, last]));
    let upstream = Stub::start(Script::always(addresses));
    let data = [1, 2, 3].map(|last| format!(" local-data: \"printer.home.arpa A 10.0.0.{last}\"\n"));
    for (word, names, expected) in [("", 3, 3), (" rrset-roundrobin: no\n", 1, 1)] {
        let server = start(&upstream, &format!("{word}{}", data.concat()), &[]);
        for name in ["www.example.org", "printer.home.arpa"] {
            let mut firsts = BTreeSet::new();
            let mut asked = 0;
            while asked < 40 || firsts.len() < names {
                let said = server.dig(&[name, "A", "+short"]);
                assert_eq!(said.lines().count(), 3, "{said}");
                firsts.extend(said.lines().next().map(str::to_owned));
                asked += 1;
                assert!(asked < 1_000, "{name}: {firsts:?}");
            }
            assert_eq!(firsts.len(), expected, "{word}{name}: {firsts:?}");
        }
        assert_eq!(upstream.count("www.example.org."), 1, "it is in the cache");
        upstream.forget();
    }
}

#[test]
fn rpz_log_has_one_line_for_what_a_zone_leaves_alone_and_one_for_what_it_denies() {
    let upstream = upstream();
    let rpz = "server:\n module-config: \"respip iterator\"\nrpz:\n name: rpz.example\n zonefile: rpz\n rpz-log: yes\n rpz-log-name: mine\n";
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
fn ds_records_of_an_auth_zone_are_looked_for_at_its_parent() {
    let upstream = upstream();
    let zone =
        "$TTL 60\n@ SOA ns.example.net. admin.example.net. 1 7200 600 86400 300\n@ NS ns.example.net.\n";
    let words = " module-config: iterator\nauth-zone:\n name: az.example\n zonefile: az\n";
    let server = start(&upstream, words, &[("az", zone)]);
    lacks(&server.dig(&["az.example", "DS"]), "flags: qr aa");
    assert_eq!(upstream.count("az.example."), 1);
    contains(&server.dig(&["az.example", "SOA"]), "flags: qr aa");
    // Who wants no recursion hears what the zone has (RFC 4035 §3.1.4.1).
    contains(&server.dig(&["+norecurse", "az.example", "DS"]), "flags: qr aa");
}

#[test]
fn rpz_enable_has_the_rules_of_a_zone_from_another_server_count_again() {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("rpz"), POLICY_ZONE).expect("a writable directory");
    let primary = Server::start_in(
        directory,
        "server: {workers: 1, state-directory: \"@DIRECTORY@\"}\nlisten: [\"@ADDRESS@\"]\n\
         zones: [{name: rpz.example, file: rpz, transfer: any}]\npolicy: {main: [{do: reject(refused)}]}\n",
    );
    let upstream = upstream();
    let words = format!(
        " module-config: \"respip iterator\"\nremote-control:\n control-enable: yes\n \
         control-interface: @DIRECTORY@/unbound.ctl\nrpz:\n name: rpz.example\n max-transfer-size: 10m\n primary: 127.0.0.1@{}\n",
        primary.address().port()
    );
    let server = start(&upstream, &words, &[]);
    let is_denied = || ask(&server, "bad.example.org").contains("NXDOMAIN");
    eventually("the rules", is_denied);
    for _ in 0..3 {
        assert!(control(&server, &["rpz_disable", "rpz.example"]).status.success());
        assert!(!is_denied());
        assert!(control(&server, &["rpz_enable", "rpz.example"]).status.success());
        eventually("the rules again", is_denied);
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
    let words = with_redis(&redis);
    let first = start(&upstream, &words, &[]);
    contains(&ask(&first, "www.example.org"), "192.0.2.7");
    assert_eq!(found(&first), 0);
    eventually("the answer is stored", || redis.keys() > 0);
    let second = start(&upstream, &words, &[]);
    contains(&ask(&second, "www.example.org"), "192.0.2.7");
    assert_eq!(found(&second), 1);
    assert_eq!(upstream.count("www.example.org."), 1, "nobody was asked again");
}

#[test]
fn flush_with_plus_c_has_entries_of_redis_not_used_any_more() {
    if !is_installed("redis-server") {
        return;
    }
    for command in [
        &["flush", "+c", "www.example.org"][..],
        &["flush_type", "+c", "www.example.org", "A"],
        &["flush_zone", "+c", "example.org"],
    ] {
        let (upstream, redis) = (upstream(), Redis::start_with_password("open sesame"));
        let server = start(&upstream, &with_redis(&redis), &[]);
        contains(&ask(&server, "www.example.org"), "192.0.2.7");
        eventually("the answer is stored", || redis.keys() == 1);
        // Without the letter it comes from Redis again.
        let plain: Vec<&str> = command.iter().copied().filter(|word| *word != "+c").collect();
        assert!(control(&server, &plain).status.success());
        ask(&server, "www.example.org");
        assert_eq!((found(&server), upstream.count("www.example.org.")), (1, 1));
        assert!(control(&server, command).status.success());
        contains(&ask(&server, "www.example.org"), "192.0.2.7");
        assert_eq!((found(&server), upstream.count("www.example.org.")), (1, 2), "{command:?}");
    }
}

/// Returns statements that have a Redis used, and a control channel.
fn with_redis(redis: &Redis) -> String {
    format!(
        " module-config: \"validator cachedb iterator\"\n extended-statistics: yes\nremote-control:\n control-enable: yes\n \
         control-interface: @DIRECTORY@/unbound.ctl\ncachedb:\n backend: redis\n secret-seed: \"our seed\"\n \
         redis-server-host: 127.0.0.1\n redis-server-port: {}\n redis-server-password: \"open sesame\"\n \
         redis-command-timeout: 5000\n redis-expire-records: yes\n",
        redis.address().port()
    )
}

#[test]
fn wait_limit_has_servfail_for_what_a_client_asks_beyond_it() {
    let upstream = Stub::start(Script::silent());
    let server = start(
        &upstream,
        " module-config: iterator\n ede: yes\n wait-limit: 10\n wait-limit-netblock: 127.0.0.0/8 10\n",
        &[],
    );
    let client = UdpClient::connect(server.address());
    for number in 0..12 {
        client.send(&Ask::new(&format!("w{number}.example.org"), Rtype::A).edns(1232).bytes());
    }
    for _ in 0..2 {
        let heard = client.receive();
        assert_eq!(heard.rcode(), Rcode::SERVFAIL, "{heard:?}");
        assert_eq!(heard.errors(), [(0, "too many queries of this client are waiting".to_owned())]);
    }
}

/// Gives a command with `unbound-control`.
fn control(server: &Other, command: &[&str]) -> std::process::Output {
    std::process::Command::new(program::gannet())
        .args(["unbound", "unbound-control", "-c", "unbound.conf"])
        .args(command)
        .current_dir(server.directory())
        .output()
        .expect("the program starts")
}

/// Returns how many answers came from the second-level cache, as `unbound-control` tells it.
fn found(server: &Other) -> u64 {
    let output = control(server, &["stats_noreset"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.lines().find_map(|line| line.strip_prefix("num.query.cachedb="));
    number
        .unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
        .parse()
        .expect("a number")
}

#[test]
fn dns64_synthall_gives_addresses_behind_the_prefix_to_names_that_have_ipv6() {
    let upstream = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::A => Answer::a(300, Ipv4Addr::new(192, 0, 2, 7)),
        _ => Answer::aaaa(300, "2001:db8::7".parse().expect("an address")),
    }));
    let aaaa = |words: &str| {
        let server = start(&upstream, &format!(" module-config: \"dns64 iterator\"\n{words}"), &[]);
        server.dig(&["www.example.org", "AAAA"])
    };
    contains(&aaaa(""), "2001:db8::7");
    let said = aaaa(" dns64-synthall: yes\n");
    contains(&said, "64:ff9b::c000:207");
    lacks(&said, "2001:db8::7");
}

/// The name of an address of a private network.
const PRIVATE: &str = "1.0.0.10.in-addr.arpa";
/// The name of an address of this machine.
const OWN: &str = "2.0.0.127.in-addr.arpa";

#[test]
fn unblock_lan_zones_has_others_asked_about_private_addresses_but_not_about_this_machine() {
    let upstream = upstream();
    let server = start(&upstream, " module-config: iterator\n", &[]);
    contains(&server.dig(&[PRIVATE, "PTR"]), "NXDOMAIN");
    assert_eq!(upstream.count(&format!("{PRIVATE}.")), 0);
    let words =
        " module-config: iterator\n unblock-lan-zones: yes\n local-zone: 168.192.in-addr.arpa refuse\n";
    let server = start(&upstream, words, &[]);
    contains(&server.dig(&[PRIVATE, "PTR"]), "NOERROR");
    assert_eq!(upstream.count(&format!("{PRIVATE}.")), 1);
    contains(&server.dig(&["1.0.168.192.in-addr.arpa", "PTR"]), "REFUSED");
    contains(&server.dig(&[OWN, "PTR"]), "NXDOMAIN");
    assert_eq!(upstream.count(&format!("{OWN}.")), 0);
}

/// A digest of a key that nobody has: what is not signed below its zone is bogus.
const DIGEST: &str = "1 13 2 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#[test]
fn insecure_lan_zones_has_private_addresses_need_no_signatures() {
    let upstream = upstream();
    let private = |words: &str| {
        let anchors = format!(
            " unblock-lan-zones: yes\n trust-anchor: \"10.in-addr.arpa. DS {DIGEST}\"\n trust-anchor: \"example.org. DS {DIGEST}\"\n"
        );
        let server = start(&upstream, &format!("{anchors}{words}"), &[]);
        contains(&ask(&server, "www.example.org"), "SERVFAIL");
        server.dig(&[PRIVATE, "A"])
    };
    contains(&private(""), "SERVFAIL");
    contains(&private(" insecure-lan-zones: yes\n"), "192.0.2.7");
}

#[test]
fn trusted_keys_file_has_anchors_in_the_notation_of_bind_and_wildcards_stand_for_several() {
    let upstream = upstream();
    let key = |zone: &str| {
        format!(
            "// a key\ntrusted-keys {{\n \"{zone}\" 257 3 15 \"{}\n {}=\";\n}};\n",
            "A".repeat(20),
            "A".repeat(23)
        )
    };
    let files = [("one.key", &*key("example.org")), ("two.key", &*key("example.net")), ("other", "nonsense")];
    let server = start(&upstream, " trusted-keys-file: \"@DIRECTORY@/*.key\"\n", &files);
    for (name, expect) in
        [("www.example.org", "SERVFAIL"), ("www.example.net", "SERVFAIL"), ("www.example.com", "192.0.2.7")]
    {
        contains(&ask(&server, name), expect);
    }
}

#[test]
fn of_several_auto_trust_anchor_file_all_zones_are_trusted_and_followed_in_the_first() {
    let upstream = upstream();
    let file = |zone: &str| format!("{zone}. 3600 IN DS {DIGEST}\n");
    let files = [("one", &*file("example.org")), ("two", &*file("example.net"))];
    let words =
        " auto-trust-anchor-file: \"@DIRECTORY@/one\"\n auto-trust-anchor-file: \"@DIRECTORY@/two\"\n";
    let server = start(&upstream, words, &files);
    for (name, expect) in
        [("www.example.org", "SERVFAIL"), ("www.example.net", "SERVFAIL"), ("www.example.com", "192.0.2.7")]
    {
        contains(&ask(&server, name), expect);
    }
    // Neither has keys that it could be written with.
    let socket = server.directory().join("control.sock");
    let mut command = std::process::Command::new(program::gannet());
    let output = command.args(["resolver", "anchors"]).env("GANNET_SOCKET", socket).output();
    let followed = testkit::said(&output.expect("the program"));
    let one = server.directory().join("one").display().to_string();
    for zone in ["example.org.", "example.net."] {
        let line = followed.lines().find(|line| line.contains(zone));
        assert!(line.is_some_and(|line| line.contains(&one)), "{followed}");
    }
    let read = |name| std::fs::read_to_string(server.directory().join(name)).expect("a file");
    assert_eq!(read("two"), file("example.net"), "it is only read");
}

/// CVE-2026-55717: there, the timer of an expired answer and an alias of a local zone together were
/// too much. Here the timer does not run for what an alias leads to: the first client waits until
/// the server is known to be silent.
#[test]
fn serve_expired_serves_what_an_alias_of_a_local_zone_leads_to_while_its_server_is_silent() {
    let upstream = Stub::start(Script::always(Answer::a(1, Ipv4Addr::new(192, 0, 2, 7))));
    let words = " module-config: iterator\n serve-expired: yes\n serve-expired-client-timeout: 100\n \
                 ede: yes\n ede-serve-expired: yes\n local-zone: alias.example.org redirect\n \
                 local-data: \"alias.example.org 60 CNAME target.example.net.\"\n";
    let server = start(&upstream, words, &[]);
    let names = ["alias.example.org", "www.alias.example.org"];
    for name in names {
        let said = ask(&server, name);
        contains(&said, &format!("{name}.\t"));
        contains(&said, "CNAME\ttarget.example.net.");
        contains(&said, "192.0.2.7");
    }
    upstream.behave(Script::silent());
    for name in names {
        eventually("the answer is stale", || {
            let said = ask(&server, name);
            let is_whole = said.contains("CNAME\ttarget.example.net.") && said.contains("192.0.2.7");
            is_whole && said.contains("EDE: 3 ")
        });
    }
    upstream.behave(Script::always(Answer::a(300, Ipv4Addr::new(192, 0, 2, 9))));
    eventually("a fresh answer takes its place", || ask(&server, names[1]).contains("192.0.2.9"));
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
