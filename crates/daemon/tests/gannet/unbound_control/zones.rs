//! Zones, and queries that wait, as `unbound-control` sees them.

use std::time::{SystemTime, UNIX_EPOCH};

use super::*;
use crate::harness::send;

/// Returns a zone with this serial and these records.
fn zone(name: &str, serial: u32, records: &str) -> String {
    format!(
        "{name}. 60 IN SOA ns.{name}. host.{name}. {serial} 3600 600 86400 60\n{name}. 60 IN NS ns.{name}.\n{records}"
    )
}

#[test]
fn zones_are_listed_reloaded_and_transferred_as_there() {
    let place = Place::new();
    let net = place.write("net.zone", &zone("net.example", 12, "www.net.example. 60 IN A 192.0.2.3\n"));
    let rules = zone("rules.example", 1, "blocked.example.rules.example. 60 IN CNAME .\n");
    let rules = place.write("rules.zone", &rules);
    let nobody = free_port();
    let sections = format!(
        "auth-zone:\n name: net.example\n zonefile: \"{}\"\n\
         auth-zone:\n name: later.example\n primary: 127.0.0.1@{nobody}\n\
         rpz:\n name: rules.example\n zonefile: \"{}\"\n\
         rpz:\n name: moved.example\n primary: 127.0.0.1@{nobody}\n",
        net.display(),
        rules.display()
    );
    let running = Running::start(&Control::Unix, " local-zone: blocked.example transparent\n", &sections);
    // In the order of the other program: policy zones first, then by their labels.
    let list = |serial: u32| {
        format!(
            "moved.example.\tno serial\nrules.example.\tserial 1\nnet.example.\tserial {serial}\n\
             later.example.\tno serial\n"
        )
    };
    let listed = || {
        let (code, said) = running.theirs("list_auth_zones", "");
        assert_eq!(code, 0, "{said}");
        let without_time = |line: &str| match line.split_once("\t since ") {
            Some((line, since)) => {
                let (seconds, date) = since.split_once(' ').unwrap();
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
                assert!(seconds.parse::<u64>().unwrap().abs_diff(now) < 600, "{since}");
                let is_date = |at: usize, letter: u8| date.as_bytes()[at] == letter;
                assert!(date.len() == 19 && is_date(4, b'-') && is_date(10, b'T'), "{since}");
                format!("{line}\n")
            }
            None => format!("{line}\n"),
        };
        assert_eq!(said.matches("\t since ").count(), 2, "{said}");
        said.lines().map(without_time).collect::<String>()
    };
    assert_eq!(listed(), list(12));
    for (command, code, expect) in [
        ("auth_zone_transfer net.example", 1, "error zone xfr task not found net.example\n"),
        ("auth_zone_transfer rules.example", 1, "error zone xfr task not found rules.example\n"),
        ("auth_zone_transfer later.example", 0, "ok\n"),
        ("auth_zone_transfer moved.example", 0, "ok\n"),
        ("auth_zone_reload net.example", 0, "ok\n"),
        ("auth_zone_reload rules.example", 0, "ok\n"),
        ("auth_zone_reload moved.example", 0, "zone moved.example has no contents\n"),
        ("rpz_disable net.example", 1, "error auth-zone net.example not RPZ\n"),
    ] {
        running.says(command, code, expect);
    }
    assert_eq!(running.ask("www.net.example"), (0, [192, 0, 2, 3]));
    place.write("net.zone", &zone("net.example", 13, "www.net.example. 60 IN A 192.0.2.4\n"));
    running.says("auth_zone_reload net.example", 0, "ok\n");
    assert_eq!(listed(), list(13));
    assert_eq!(running.ask("www.net.example"), (0, [192, 0, 2, 4]));
}

#[test]
fn a_policy_zone_is_switched_off_and_on_again() {
    let place = Place::new();
    let rules = zone("rules.example", 1, "www.net.example.rules.example. 60 IN CNAME .\n");
    let rules = place.write("rules.zone", &rules);
    let net = place.write("net.zone", &zone("net.example", 12, "www.net.example. 60 IN A 192.0.2.3\n"));
    let sections = format!(
        "rpz:\n name: rules.example\n zonefile: \"{}\"\nauth-zone:\n name: net.example\n zonefile: \"{}\"\n",
        rules.display(),
        net.display()
    );
    let running = Running::start(&Control::Unix, "", &sections);
    assert_eq!(running.ask("www.net.example").0, NXDOMAIN);
    running.says("rpz_disable rules.example", 0, "ok\n");
    assert_eq!(running.ask("www.net.example"), (0, [192, 0, 2, 3]));
    running.says("rpz_enable rules.example", 0, "ok\n");
    assert_eq!(running.ask("www.net.example").0, NXDOMAIN);
}

#[test]
fn zones_that_are_built_in_are_listed_unless_the_file_has_them() {
    let listed = |more: &str| {
        let running = Running::start(&Control::Unix, more, "");
        let (code, list) = running.theirs("list_local_zones", "");
        assert_eq!(code, 0);
        list
    };
    let list = listed("");
    for line in [
        "localhost. redirect\n",
        "127.in-addr.arpa. static\n",
        "10.in-addr.arpa. static\n",
        "home.arpa. static\n",
    ] {
        assert!(list.contains(line), "{line}: {list}");
    }
    // Those of 172.16/12 and 100.64/10, 15 others, 9 special ones, and that of the file.
    assert_eq!(list.lines().count(), 16 + 64 + 15 + 9 + 1);
    let (home, arpa) = (list.find("home.arpa. static"), list.find("10.in-addr.arpa. static"));
    assert!(home < arpa, "the shorter label is first");
    let list = listed(" local-zone: 10.in-addr.arpa nodefault\n local-zone: onion refuse\n");
    assert!(!list.contains("\n10.in-addr.arpa.") && list.contains("onion. refuse\n"), "{list}");
    assert!(!list.contains("onion. static"), "{list}");
    assert!(!listed(" unblock-lan-zones: yes\n").contains("10.in-addr.arpa."));
}

#[test]
fn flush_requestlist_ends_the_queries_that_wait_and_no_later_ones() {
    // It takes queries, and never says anything.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let running = Running::start(
        &Control::Unix,
        " do-not-query-localhost: no\n",
        &format!(
            "forward-zone:\n name: silent.example\n forward-addr: 127.0.0.1@{}\n",
            silent.local_addr().unwrap().port()
        ),
    );
    let waits = |name: &str| running.theirs("dump_requestlist", "").1.contains(name);
    let _client = send(running.port, "www.silent.example");
    let begin = Instant::now();
    while !waits("www.silent.example.") {
        assert!(begin.elapsed() < PATIENCE);
    }
    running.says("flush_requestlist", 0, "ok\n");
    assert!(!waits("www.silent.example."));
    // As many as waited when one more came.
    let (_, said) = running.theirs("stats_noreset", "");
    assert!(
        said.contains("total.requestlist.max=0\n") && said.contains("total.requestlist.avg=0\n"),
        "{said}"
    );
    let _others = [send(running.port, "one.silent.example"), send(running.port, "two.silent.example")];
    while !(waits("one.silent.example.") && waits("two.silent.example.")) {
        assert!(begin.elapsed() < PATIENCE);
    }
    assert!(running.is_well());
}
