//! What texts become, and which mistakes are found in them.

mod auth_zones;
mod built_in;
mod clients;
mod dnscrypt;
mod dnstap;
mod keywords;
mod lists;
mod process;
mod response_policy;
mod second_level;
mod unused;
mod words;

use std::path::Path;

use super::*;
use diagnostic::{Diagnostic, diagnostics};
use environment::Memory;
use yaml::{Node, Value};

/// Reads the first file of some; returns the tree and all lines about it.
fn read_files(files: &[(&str, &str)]) -> (Vec<Entry>, Vec<String>) {
    let memory = Memory::new(files);
    let mut sources = Sources::new(&SECRET_KEYS);
    let (path, _) = files[0];
    let mut problems = Vec::new();
    let entries = read(Path::new(path), &mut sources, &memory, &Changes::default(), &mut problems);
    let entries = entries.unwrap_or_default();
    (entries, diagnostics(problems, &sources).iter().map(Diagnostic::line).collect())
}

/// Returns what is set at a path, as flow YAML.
fn at(entries: &[Entry], path: &str) -> String {
    let mut entries = entries;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let Some(entry) = entries.iter().find(|entry| entry.key == part) else { return String::new() };
        match &entry.node.value {
            Value::Map(inside) if parts.peek().is_some() => entries = inside,
            _ => return flow(&entry.node),
        }
    }
    String::new()
}

fn flow(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Scalar(scalar) => scalar.text.clone(),
        Value::Long(text) => text.to_string(),
        Value::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let entries = entries.iter().map(|entry| format!("{}: {}", entry.key, flow(&entry.node)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

fn check(text: &str, path: &str, expect: &str) {
    // What this module is for needs it; that it does is checked elsewhere.
    let is_needed = text.contains("rpz:") || text.contains("response-ip:");
    let is_missing = is_needed && !text.contains("module-config:");
    let more = if is_missing { "\nserver: module-config: \"respip validator iterator\"" } else { "" };
    let (entries, found) = read_files(&[("u.conf", &format!("{text}{more}"))]);
    assert!(found.is_empty(), "{text}: {found:?}");
    assert_eq!(at(&entries, path), expect, "{text}");
}

fn says(text: &str, expect: &[&str]) {
    assert_eq!(read_files(&[("u.conf", text)]).1, expect, "{text}");
}

#[test]
fn words_stand_anywhere_and_in_both_quotes() {
    for text in [
        "server: cache-max-ttl: 10",
        "server:\n\tcache-max-ttl:\n\n  \"10\" # seconds\n",
        "# before\nserver:cache-max-ttl:10",
        "server: cache-max-ttl: '10'\r\nserver:\r\n",
        "server: cache-max-ttl: 5 cache-max-ttl: 10",
        "server: cache-max-ttl: 5\nforward-zone: name: a forward-addr: 192.0.2.1\nserver: cache-max-ttl: 10",
    ] {
        check(text, "cache/main/max-ttl", "10s");
    }
    // In a word, "#" is a part of it.
    check(
        "forward-zone: name: . forward-tls-upstream: yes forward-addr: 192.0.2.1@853#dns.example # one\nserver: tls-system-cert: yes",
        "upstreams/root-forward/servers",
        "[{address: tls://192.0.2.1:853#dns.example}]",
    );
}

#[test]
fn mistakes_are_said_all_at_once() {
    says(
        "server:\n  port: fifty\n  do-ip4: maybe\n  verbostiy: 1 2 3\n  num-threads: 1\nstub-addr: 1\nname: \"x\n",
        &[
            "u.conf:2:9: error: \"fifty\" is no value of \"port\": expected a whole number",
            "u.conf:3:11: error: \"maybe\" is no value of \"do-ip4\": expected \"yes\" or \"no\"",
            "u.conf:4:3: error: unknown keyword \"verbostiy\"",
            "u.conf:6:1: error: \"stub-addr\" is no keyword of the section \"server\": expected it in \"stub-zone\"",
            "u.conf:7:1: error: \"name\" is no keyword of the section \"server\": expected it in \"stub-zone\" or \"forward-zone\" or \"auth-zone\" or \"view\" or \"rpz\"",
            "u.conf:7:7: error: this quoted text does not end on its line: expected the same quotation mark once more",
        ],
    );
    says("server: port:", &["u.conf:1:9: error: \"port\" is not complete: expected a value behind it"]);
    says("port: 53", &["u.conf:1:1: error: \"port\" stands in no section: expected \"server:\" before it"]);
    says("server: 53", &["u.conf:1:9: error: \"53\" is not a keyword: expected a word with \":\" behind it"]);
}

#[test]
fn files_are_included_anywhere() {
    let files = [
        (
            "/etc/u.conf",
            "server: directory: \"/etc/more\" num-threads: include: \"number\"\ninclude-toplevel: \"*.conf\"\nport: 1",
        ),
        ("/etc/more/number", "3"),
        ("/etc/more/a.conf", "server: cache-max-ttl: 10"),
        ("/etc/more/b.conf", "cache-max-ttl: 20"),
    ];
    let (entries, found) = read_files(&files);
    assert_eq!(at(&entries, "server/workers"), "3");
    assert_eq!(at(&entries, "cache/main/max-ttl"), "10s");
    assert_eq!(
        found,
        [
            "/etc/u.conf:3:1: error: \"port\" stands in no section: expected \"server:\" before it",
            "/etc/more/b.conf:1:1: error: \"cache-max-ttl\" stands in no section: expected \"server:\" before it",
        ]
    );
    let (_, found) = read_files(&[("/etc/u.conf", "include: \"/none\" include: '/etc/*.none'")]);
    assert_eq!(found, ["/etc/u.conf:1:11: error: \"/none\": cannot read it: no such file or directory"]);
}

#[test]
fn files_are_where_a_confined_program_would_see_them() {
    let text = "server: chroot: /jail\ndirectory: /jail/etc\ninclude: /jail/a\n\
                pidfile: /run/u.pid\nlogfile: /log/u.log\nauto-trust-anchor-file: root.key\n\
                tls-service-key: /tls/key\ntls-service-pem: /jail/tls/pem\ninterface: 127.0.0.1@853\n\
                auth-zone: name: example.org\nzonefile: /jail/example.org\n";
    let (entries, found) = read_files(&[("/etc/u.conf", text), ("/jail/a", "num-threads: 2")]);
    assert!(found.iter().all(|found| !found.contains("error")), "{found:?}");
    assert_eq!(at(&entries, "server/workers"), "2");
    assert_eq!(at(&entries, "server/pid-file"), "/run/u.pid");
    assert_eq!(at(&entries, "log/to"), "/jail/log/u.log");
    assert!(format!("{entries:?}").contains("\"/jail/etc/root.key\""), "{entries:?}");
    assert!(format!("{entries:?}").contains("\"/tls/key\""), "{entries:?}");
    assert!(format!("{entries:?}").contains("\"/jail/example.org\""), "{entries:?}");
}

#[test]
fn includes_end() {
    let (_, found) = read_files(&[("/u.conf", "include: /u.conf\n")]);
    assert_eq!(found, ["/u.conf:1:10: error: files include files more than 32 levels deep"]);
    let twice = [("/u.conf", "include: /u.conf\ninclude: /u.conf\n")];
    let (_, found) = read_files(&twice);
    assert!(found.iter().any(|line| line.contains("more than 10000 files")), "{}", found.len());
    let deep: Vec<_> =
        (0..100_000).map(|level| (format!("/{level}"), format!("include: /{}", level + 1))).collect();
    let deep: Vec<_> = deep.iter().map(|(path, text)| (&**path, &**text)).collect();
    let (_, found) = read_files(&deep);
    assert_eq!(found, ["/32:1:10: error: files include files more than 32 levels deep"]);
}

#[test]
fn of_the_prefixes_of_a_client_the_longest_counts() {
    check("server: interface: 192.0.2.1", "allow", "[127.0.0.0/8, ::1/128]");
    check(
        "server: access-control: 10.0.0.0/8 allow access-control: 10.0.0.0/9 refuse access-control: 127.0.0.0/8 deny",
        "allow",
        "[::1/128, 10.128.0.0/9]",
    );
    check("server: access-control: 127.0.0.0/8 deny", "deny", "[127.0.0.0/8]");
    check(
        "server: access-control: 127.0.0.0/8 allow_snoop",
        "policy/main",
        "[call(local-zones), {if: not rd and not client in 127.0.0.0/8, do: respond(refused, ede 20)}, cache(main, without-rd), recurse]",
    );
}

#[test]
fn access_control_allow_setrd_counts_as_rd() {
    check(
        "server: access-control: 192.0.2.0/24 allow_setrd",
        "policy/main",
        "[call(local-zones), {if: not rd and client in 192.0.2.0/24, do: outgoing(recursion on)}, \
         {if: not rd and not client in 192.0.2.0/24, do: respond(refused, ede 20)}, cache(main), recurse]",
    );
}

#[test]
fn access_control_non_local_leaves_what_is_answered_here() {
    let text = "server: access-control: 192.0.2.0/24 refuse_non_local \
                access-control: 198.51.100.0/24 deny_non_local";
    check(text, "allow", "[127.0.0.0/8, ::1/128, 192.0.2.0/24, 198.51.100.0/24]");
    check(
        text,
        "policy/main",
        "[call(local-zones), {if: client in 192.0.2.0/24, do: respond(refused, ede 18)}, \
         {if: client in 198.51.100.0/24, do: drop}, {if: not rd, do: respond(refused, ede 20)}, cache(main), recurse]",
    );
}

#[test]
fn nodefault_is_for_zones_that_are_built_in() {
    let (entries, found) = read_files(&[("u.conf", "server: local-zone: 168.192.in-addr.arpa nodefault")]);
    assert_eq!(found, [""; 0]);
    assert!(at(&entries, "policy/local-zones").contains("168.192.in-addr.arpa"));
    let (entries, found) = read_files(&[("u.conf", "server: local-zone: 7.168.192.in-addr.arpa nodefault")]);
    assert_eq!(
        found,
        ["u.conf:1:21: warning: \"7.168.192.in-addr.arpa\" is no zone that is built in: nothing changes"]
    );
    assert_eq!(at(&entries, "policy/local-zones"), "[local]");
}

#[test]
fn a_thousand_local_zones_alike_are_one_text() {
    let mut text = "server:\n".to_owned();
    for number in 0..999 {
        text.push_str(&format!("local-zone: \"Ads{number}.example.\" always_nxdomain\n"));
    }
    let set = "sets/local-always-nxdomain-0";
    let (entries, _) = read_files(&[("u.conf", &text)]);
    assert!(at(&entries, &format!("{set}/names")).starts_with("[suffix:ads0.example, "));
    text.push_str("local-zone: \"a b.example\" always_nxdomain\nlocal-zone: x.example always_nxdomain\n");
    let (entries, _) = read_files(&[("u.conf", &text)]);
    let lines = at(&entries, &format!("{set}/text"));
    assert!(lines.starts_with("ads0.example\nads1.example\n"), "{}", &lines[..100]);
    assert!(lines.ends_with("\nads998.example\nx.example\n"));
    // What may be wrong keeps its place in the file.
    assert_eq!(at(&entries, &format!("{set}/names")), "[suffix:a b.example]");
}

#[test]
fn listeners_have_the_port_that_they_name() {
    check("server: port: 5353", "listen", "[127.0.0.1:5353, [::1]:5353]");
    check(
        "server: interface: 192.0.2.1@853 ip-address: 192.0.2.1 do-tcp: no tls-service-key: /k tls-service-pem: /c",
        "listen",
        "[{at: 192.0.2.1:853, transport: [tls]}, {at: 192.0.2.1:53, transport: [udp]}]",
    );
}

#[test]
fn the_closest_local_zone_counts() {
    check(
        "server: local-zone: ads.example always_nxdomain local-zone: good.ads.example. always_transparent \
         local-zone: b.example always_nxdomain local-zone: c.example always_nxdomain",
        "policy/local-zones",
        "[{if: qname in suffix:good.ads.example, do: [return]}, \
         {if: qname in local-always-nxdomain-0, do: [respond(nxdomain, authoritative)]}, \
         {if: qname in suffix:ads.example, do: [respond(nxdomain, authoritative)]}, local]",
    );
    check(
        "server: local-zone: r.example redirect local-data: 'r.example. A 192.0.2.1' local-data: \"w.example 60 IN A 192.0.2.2\"",
        "policy/local-zones",
        "[{if: qname in suffix:r.example, do: [records(local-data-1)]}, \
         {if: qname in suffix:r.example, do: [respond(noerror, authoritative)]}, records(local-data), local]",
    );
    check(
        "server: local-zone: r.example redirect local-data: 'r.example. TXT \"a b\"'",
        "records/local-data-1/text",
        "[r.example. 3600 IN TXT \"a b\", *.r.example. 3600 IN TXT \"a b\"]",
    );
    check(
        "server: local-data-ptr: \"192.0.2.1 60 www.example.org\"",
        "records/built-in-data/text",
        "[1.2.0.192.in-addr.arpa. 60 IN PTR www.example.org., \
         2.0.192.in-addr.arpa. 10800 IN SOA 2.0.192.in-addr.arpa. nobody.invalid. 1 3600 1200 604800 10800, \
         2.0.192.in-addr.arpa. 10800 IN NS 2.0.192.in-addr.arpa.]",
    );
}

#[test]
fn tags_decide_which_zones_there_are_for_whom() {
    let text = "server: define-tag: 'a b' local-zone: x.example static local-zone-tag: x.example 'b a'
        access-control: 192.0.2.0/24 allow access-control-tag: 192.0.2.0/25 b
        access-control-tag: 192.0.2.0/26 'b a' access-control-tag-action: 192.0.2.0/26 a refuse
        access-control: 192.0.2.0/27 allow";
    check(
        text,
        "policy/local-zones",
        "[{if: client in 192.0.2.32/27 and qname in suffix:x.example, do: [respond(refused, authoritative)]}, \
         {if: client in 192.0.2.64/26|192.0.2.32/27 and qname in suffix:x.example, do: [respond(nxdomain, authoritative)]}, \
         local]",
    );
    says(
        "server: define-tag: a local-zone-tag: y.example a local-zone-override: y.example 192.0.2.0/24 static",
        &[
            "u.conf:1:39: error: there is no local zone \"y.example\"",
            "u.conf:1:72: error: there is no local zone \"y.example\"",
        ],
    );
    check(
        "server: local-zone: x.example static local-zone-override: x.example 192.0.2.0/24 always_nodata",
        "policy/local-zones",
        "[{if: client in 192.0.2.0/24 and qname in suffix:x.example, do: [respond(noerror, authoritative)]}, \
         {if: qname in suffix:x.example, do: [respond(nxdomain, authoritative)]}, local]",
    );
}

#[test]
fn data_of_a_zone_for_some_clients_is_for_nobody_else() {
    let text = "server: define-tag: a local-zone: x.example static local-zone-tag: x.example a \
                access-control-tag: 192.0.2.0/24 a local-data: 'www.x.example A 192.0.2.1' \
                local-data: 'www.y.example A 192.0.2.2'";
    check(
        text,
        "policy/local-zones",
        "[{if: client in 192.0.2.0/24 and qname in suffix:x.example, do: [records(local-data)]}, \
         {if: client in 192.0.2.0/24 and qname in exact:x.example, do: [respond(noerror, authoritative)]}, \
         {if: client in 192.0.2.0/24 and qname in suffix:x.example, do: [respond(nxdomain, authoritative)]}, \
         {if: qname in exact:www.y.example, do: [records(local-data)]}, local]",
    );
    // Nor through the zone above it.
    let text = "server: define-tag: a local-zone: x.example static local-zone-tag: x.example a \
                access-control-tag: 192.0.2.0/24 a local-zone: example transparent \
                local-data: 'www.x.example A 192.0.2.1' local-data: 'www.y.example A 192.0.2.2'";
    check(
        text,
        "policy/local-zones",
        "[{if: client in 192.0.2.0/24 and qname in suffix:x.example, do: [records(local-data)]}, \
         {if: client in 192.0.2.0/24 and qname in exact:x.example, do: [respond(noerror, authoritative)]}, \
         {if: client in 192.0.2.0/24 and qname in suffix:x.example, do: [respond(nxdomain, authoritative)]}, \
         {if: qname in exact:www.y.example, do: [records(local-data)]}, {if: qname in suffix:example, do: [return]}, local]",
    );
    // A zone that is redirected for most is another one for who has the tag.
    check(
        "server: define-tag: a local-zone: x.example redirect local-zone-tag: x.example a local-data: 'x.example A 192.0.2.1' \
         access-control-tag: 192.0.2.0/24 a access-control-tag-action: 192.0.2.0/24 a static \
         local-zone-override: x.example 192.0.2.128/25 always_refuse",
        "policy/local-zones",
        "[{if: client in 192.0.2.128/25 and client in 192.0.2.0/24 and qname in suffix:x.example, do: [respond(refused, authoritative)]}, \
         {if: client in 192.0.2.0/24 and qname in suffix:x.example, do: [records(local-data)]}, \
         {if: client in 192.0.2.0/24 and qname in suffix:x.example, do: [respond(nxdomain, authoritative)]}, \
         {if: client in 192.0.2.0/24 and qname in suffix:x.example, do: [records(local-data-1)]}, \
         {if: client in 192.0.2.0/24 and qname in suffix:x.example, do: [respond(noerror, authoritative)]}, local]",
    );
}

#[test]
fn an_alias_for_a_local_zone_is_followed_past_local_zones() {
    let text = "server: local-zone: x.example redirect local-data: 'x.example 60 CNAME y.example' local-zone: y.example refuse";
    check(
        text,
        "policy/local-zones",
        "[{if: qname in suffix:y.example, do: [respond(refused, authoritative)]}, \
         {if: qname in suffix:x.example and qtype == CNAME, do: [respond(answer \"@ 60 CNAME y.example.\", authoritative)]}, \
         {if: qname in suffix:x.example, do: [redirect(y.example, ttl 60s, authoritative), goto(resolve)]}, local]",
    );
    check(text, "policy/main", "[call(local-zones), goto(resolve)]");
}

#[test]
fn an_alias_of_a_local_zone_to_a_wildcard_is_the_name_asked_for_with_more_behind_it() {
    check(
        "server: local-zone: x.example redirect local-data: 'x.example 60 CNAME *.y.example.'",
        "policy/local-zones",
        "[{if: qname in suffix:x.example and qtype == CNAME, do: [respond(answer \"@ 60 CNAME *.y.example.\", authoritative)]}, \
         {if: qname in suffix:x.example, do: [redirect(suffix:., *.y.example, ttl 60s, authoritative), goto(resolve)]}, local]",
    );
}

#[test]
fn denials_of_zones_without_data_have_the_soa_of_the_zone() {
    for (kind, rcode) in [("always_nxdomain", "nxdomain"), ("always_nodata", "noerror")] {
        check(
            &format!(
                "server: local-zone: n.example {kind} local-zone: m.example {kind}
                 local-data: 'n.example SOA ns.n.example h.n.example 1 2 3 4 55'"
            ),
            "policy/local-zones",
            &format!(
                "[{{if: qname in suffix:n.example, do: [respond({rcode}, authority \"n.example. 55 SOA ns.n.example. \
                 h.n.example. 1 2 3 4 55\", authoritative)]}}, \
                 {{if: qname in local-{}-0, do: [respond({rcode}, authoritative)]}}, local]",
                kind.replace('_', "-")
            ),
        );
    }
}

#[test]
fn null_zones_give_the_data_that_names_have() {
    check(
        "server: local-zone: x.example always_null local-data: 'www.x.example A 192.0.2.1'",
        "policy/local-zones",
        "[{if: qtype == A and qname in exact:www.x.example, do: [records(local-data)]}, \
         {if: qname in suffix:x.example, do: [block(null, ttl 1h, ede none, authoritative, without-soa)]}, records(local-data), local]",
    );
}

#[test]
fn a_zone_that_refuses_gives_the_types_that_names_have_and_no_others() {
    check(
        "server: local-zone: x.example refuse local-data: 'www.x.example A 192.0.2.1'",
        "policy/local-zones",
        "[{if: qtype == A and qname in exact:www.x.example, do: [records(local-data)]}, \
         {if: qname in suffix:x.example, do: [respond(refused, authoritative)]}, records(local-data), local]",
    );
}

#[test]
fn names_below_an_soa_are_denied_by_its_own_zone_alone() {
    check(
        "server: local-zone: x.example transparent local-data: 'x.example SOA a. b. 1 2 3 4 5'",
        "policy/local-zones",
        "[{if: qname in exact:x.example, do: [records(local-data)]}, \
         {if: qname in suffix:x.example, do: [return]}, local]",
    );
    let (_, found) = read_files(&[("u.conf", "server: local-data: '*.x.example A 192.0.2.1'")]);
    assert!(
        found[0].ends_with("\"*.x.example\" is left out: it stands for no other names there"),
        "{found:?}"
    );
}

#[test]
fn views_have_local_zones_and_addresses_of_their_own() {
    let text = "server: access-control-view: 192.0.2.0/24 in access-control-view: 198.51.100.0/24 out
        view: name: in local-zone: x.example always_nxdomain
        view: name: out local-data: 'y.example A 192.0.2.1' view-first: yes response-ip: 203.0.113.0/24 deny";
    check(
        text,
        "policy/local-zones-in",
        "[{if: qname in suffix:x.example, do: [respond(nxdomain, authoritative)]}, local]",
    );
    check(text, "policy/local-zones-out", "[records(local-data-out)]");
    check(
        text,
        "policy/main",
        "[{if: client in 192.0.2.0/24, do: [call(local-zones-in)]}, \
         {if: client in 198.51.100.0/24, do: [call(local-zones-out)]}, \
         {if: not client in 192.0.2.0/24, do: [call(local-zones)]}, {if: not rd, do: respond(refused, ede 20)}, ask(find), \
         {if: client in 198.51.100.0/24 and answer-address in 203.0.113.0/24, do: [drop]}]",
    );
    says("server: access-control-view: 192.0.2.0/24 x", &["u.conf:1:43: error: there is no view \"x\""]);
}

#[test]
fn answers_are_changed_by_the_addresses_in_them() {
    let text = "server: response-ip: 192.0.2.0/24 redirect response-ip-data: 192.0.2.0/24 'A 198.51.100.1'
        response-ip: 192.0.2.7/32 always_nxdomain";
    check(text, "policy/find", "[cache(main), recurse]");
    check(
        text,
        "policy/main",
        "[call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ask(find), \
         {if: answer-address in 192.0.2.7/32, do: [respond(nxdomain)]}, \
         {if: answer-address in 192.0.2.0/24 and qtype == A, do: [respond(answer \"@ 3600 A 198.51.100.1\")]}, \
         {if: answer-address in 192.0.2.0/24, do: [respond(noerror)]}]",
    );
    // A tag changes what is done for who has it, and nothing for others.
    check(
        "server: define-tag: a access-control-tag: 192.0.2.0/24 a access-control-tag-action: 192.0.2.0/24 a refuse \
         response-ip: 203.0.113.0/24 always_nxdomain response-ip-tag: 203.0.113.0/24 a",
        "policy/main",
        "[call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ask(find), \
         {if: client in 192.0.2.0/24 and answer-address in 203.0.113.0/24, do: [reject(refused)]}, \
         {if: answer-address in 203.0.113.0/24, do: [respond(nxdomain)]}]",
    );
}

#[test]
fn the_servers_of_a_stub_zone_for_the_root_are_hints() {
    check(
        "stub-zone: name: . stub-addr: 127.0.0.1@5353",
        "resolvers/default/zones",
        "{.: {stub: [127.0.0.1@5353]}}",
    );
    check(
        "stub-zone: name: . stub-addr: 192.0.2.1",
        "resolvers/default/zones",
        "{.: {stub: [192.0.2.1], prime: true}}",
    );
    check("stub-zone: name: a stub-addr: 192.0.2.1", "resolvers/default/zones", "{a: {stub: [192.0.2.1]}}");
}

#[test]
fn a_forward_zone_with_servers_of_its_own_asks_these_if_the_others_fail() {
    let stub = "stub-zone: name: a.example stub-addr: 192.0.2.1\n";
    let forward = "forward-zone: name: a.example forward-addr: 192.0.2.2 forward-first:";
    let path = "resolvers/default/zones";
    check(
        &format!("{stub}{forward} yes"),
        path,
        "{a.example: {forward: forward-a.example, first: true, stub: [192.0.2.1]}}",
    );
    let (entries, found) = read_files(&[("u.conf", &format!("{stub}{forward} no"))]);
    assert_eq!(at(&entries, path), "{a.example: {forward: forward-a.example}}");
    assert!(found[0].ends_with("the zone \"a.example\" is there twice: the last one counts"), "{found:?}");
}

#[test]
fn who_trusts_nothing_relays_signatures_unless_none_are_wanted() {
    let path = "resolvers/default/validation";
    check("server:", path, "relay");
    check("server: module-config: iterator", path, "relay");
    check("server: disable-edns-do: yes", path, "off");
    check("server: disable-edns-do: yes", "edns/dnssec", "false");
    let text = "server: disable-edns-do: yes trust-anchor: \". DS 20326 8 2 E06D\"";
    let (entries, found) = read_files(&[("u.conf", text)]);
    assert_eq!((at(&entries, path), at(&entries, "edns/dnssec")), ("on".to_owned(), String::new()));
    assert!(found[0].ends_with("\"disable-edns-do\" has no effect: answers are validated"), "{found:?}");
}

#[test]
fn original_ttls_have_no_bounds() {
    let text = "server: serve-original-ttl: yes cache-min-ttl: 20 cache-max-ttl: 1000";
    check(text, "cache/main/original-ttl", "true");
    check(text, "cache/main/min-ttl", "0s");
    check(text, "cache/main/max-ttl", "2592000s");
    check(text, "resolvers/default/max-ttl", "2592000s");
}

#[test]
fn trust_anchors_are_shown_unless_they_are_hidden() {
    check("server:", "server/trust-anchors", "true");
    check("server: hide-trustanchor: yes", "server/trust-anchors", "false");
    check("server: val-override-date: -1", "resolvers/default/signature-time", "any");
}

#[test]
fn forwarders_that_are_not_to_be_asked_are_not_asked() {
    let text = |spared: &str, first: &str| {
        format!(
            "server: do-not-query-address: {spared}\n\
             forward-zone: name: corp.example forward-addr: 192.0.2.1 forward-addr: 127.0.0.1@5353 {first}"
        )
    };
    let servers = "upstreams/forward-corp.example/servers";
    let (entries, found) = read_files(&[("u.conf", &text("198.51.100.0/24", ""))]);
    assert_eq!(at(&entries, servers), "[192.0.2.1:53]");
    assert!(
        found[0].contains("\"127.0.0.1@5353\" is never asked: \"do-not-query-localhost: yes\""),
        "{found:?}"
    );
    // None is left: names of the zone fail, or are resolved.
    let (entries, found) = read_files(&[("u.conf", &text("192.0.2.0/24", ""))]);
    assert!(found[0].contains("\"do-not-query-address: 192.0.2.0/24\""), "{found:?}");
    let steps = at(&entries, "policy/main");
    assert!(steps.contains("{if: qname in suffix:corp.example, do: respond(servfail)}"), "{steps}");
    let (entries, _) = read_files(&[("u.conf", &text("192.0.2.0/24", "forward-first: yes"))]);
    assert!(!at(&entries, "policy/main").contains("servfail"));
}

#[test]
fn forward_zones_are_those_of_the_resolver() {
    let text = "forward-zone: name: corp.example. forward-addr: 192.0.2.1@5353 forward-host: dns.example forward-first: yes\n\
                forward-zone: name: . forward-tls-upstream: yes forward-addr: 192.0.2.2#dns.example\n\
                stub-zone: name: lab.example stub-addr: 192.0.2.3\nserver: tls-system-cert: yes";
    check(
        text,
        "resolvers/default/zones",
        "{.: {forward: root-forward}, corp.example: {forward: forward-corp.example, first: true}, \
         lab.example: {stub: [192.0.2.3]}}",
    );
    check(text, "upstreams/forward-corp.example/servers", "[192.0.2.1:5353, dns.example:53]");
    check(text, "upstreams/root-forward/servers", "[{address: tls://192.0.2.2:853#dns.example}]");
    for (keywords, expect) in [
        ("", ["376ms", "6016ms", "5", "13951ms"]),
        (
            "server: outbound-msg-retry: 3 unknown-server-time-limit: 1000\n",
            ["1000ms", "4000ms", "3", "8777ms"],
        ),
        ("server: outbound-msg-retry: 1\n", ["376ms", "376ms", "1", "5000ms"]),
        ("server: unknown-server-time-limit: 20000\n", ["20000ms", "60000ms", "5", "60000ms"]),
    ] {
        let keys = ["patience/unknown", "patience/max", "attempts", "timeout"];
        for (key, expect) in keys.into_iter().zip(expect) {
            check(&format!("{text}\n{keywords}"), &format!("upstreams/root-forward/{key}"), expect);
        }
    }
    let main = "[call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), recurse]";
    check(text, "policy/main", main);
    check(text, "resolvers/default/priming", "");
    let text = "forward-zone: name: a.example forward-addr: 192.0.2.1 forward-no-cache: yes\n\
                stub-zone: name: b.example stub-addr: 192.0.2.1 stub-no-cache: yes";
    let uncached = "{if: qname in suffix:a.example, do: [recurse, accept]}, {if: qname in suffix:b.example, do: [recurse, accept]}";
    check(text, "policy/main", &main.replace("cache(main)", &format!("{uncached}, cache(main)")));
    check(
        text,
        "resolvers/default/zones",
        "{a.example: {forward: forward-a.example, keep: false}, b.example: {stub: [192.0.2.1], keep: false}}",
    );
}

#[test]
fn anchors_that_are_followed_have_a_file_of_their_own() {
    let text = "server:\nauto-trust-anchor-file: /root.key\ntrust-anchor-file: /more.keys\nkeep-missing: 0\nadd-holddown: 60";
    check(text, "resolvers/default/trust-anchor-state", "/root.key");
    check(text, "resolvers/default/trust-anchors", "[/more.keys]");
    check(text, "resolvers/default/validation", "on");
    check(text, "resolvers/default/add-hold-down", "60s");
    check(text, "resolvers/default/remove-hold-down", "2592000s");
    check(text, "resolvers/default/keep-missing", "forever");
    check(text, "resolvers/default/root-key-sentinel", "true");
    check(text, "resolvers/default/aggressive-nsec", "true");
    check("server: dns-error-reporting: yes", "resolvers/default/error-reports", "true");
    check("server: aggressive-nsec: no", "resolvers/default/aggressive-nsec", "false");
    check("server: trust-anchor-signaling: no", "resolvers/default/trust-anchor-signaling", "false");
}

#[test]
fn a_translator_has_a_prefix() {
    check("server: do-nat64: yes", "resolvers/default/nat64", "64:ff9b::/96");
    check("server: do-nat64: yes nat64-prefix: 2001:db8::/64", "resolvers/default/nat64", "2001:db8::/64");
    check("server: nat64-prefix: 2001:db8::/64", "resolvers/default/nat64", "");
}

#[test]
fn the_oldest_version_of_tls_is_that_of_the_list() {
    let least = |words: &str| {
        let (entries, found) = read_files(&[("/etc/u.conf", &format!("server: tls-protocols: \"{words}\""))]);
        (at(&entries, "tls/min-version").to_owned(), found.len())
    };
    assert_eq!(least("TLSv1.2 TLSv1.3"), ("1.2".to_owned(), 0));
    assert_eq!(least("TLSv1.3"), ("1.3".to_owned(), 0));
    assert_eq!(least("TLSv1.1, TLSv1.2"), ("1.2".to_owned(), 1), "the first is not offered");
    // TLS 1.3 has suites of its own, and is not offered without any.
    let suites = |words: &str| {
        let (entries, _) = read_files(&[("/etc/u.conf", &format!("server: tls-protocols: \"{words}\""))]);
        at(&entries, "tls/ciphers").to_owned()
    };
    let has_both = |text: &str| ["TLS_AES_128", "TLS_ECDHE"].map(|suite| text.contains(suite));
    assert_eq!(has_both(&suites("TLSv1.2")), [false, true]);
    assert_eq!(suites("TLSv1.2 TLSv1.3"), "", "all");
    assert_eq!(suites("TLSv1.3"), "", "all of that version");
}

#[test]
fn servers_that_are_named_hear_of_subnets() {
    let text = "server: send-client-subnet: 192.0.2.1 send-client-subnet: 2001:db8::/32 client-subnet-zone: cdn.example\n\
                max-client-subnet-ipv4: 20";
    check(
        text,
        "resolvers/default/client-subnet",
        "{servers: [192.0.2.1, 2001:db8::/32], zones: [cdn.example]}",
    );
    check(
        text,
        "policy/main",
        "[call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ecs(client, ipv4 20, ipv6 56, keep, private), \
         cache(main), recurse]",
    );
}

#[test]
fn the_control_channel_is_open_only_if_it_is_enabled() {
    check("server: port: 53\nremote-control: control-port: 1\n", "control/unbound/listen", "");
    let on = "remote-control: control-enable: yes\n";
    check(on, "control/unbound/listen", "[127.0.0.1:8953, [::1]:8953]");
    check(on, "control/unbound/certificate", "/etc/unbound/unbound_server.pem");
    let path = format!("{on} control-interface: /run/u.ctl\n");
    check(&path, "control/unbound/listen", "[/run/u.ctl]");
    check(&path, "control/unbound/key", "");
    let plain = format!("{on} control-interface: 127.0.0.1@99 control-use-cert: no\n");
    check(&plain, "control/unbound", "{listen: [127.0.0.1:99], certificates: false}");
    let files = format!("server: directory: /d\n{on} server-key-file: k server-cert-file: /c.pem\n");
    check(&files, "control/unbound/key", "/d/k");
    check(&files, "control/unbound/certificate", "/c.pem");
}

#[test]
fn the_last_of_a_file_and_the_system_s_log_counts() {
    check("server: logfile: /l use-syslog: yes", "log/to", "syslog");
    check("server: use-syslog: yes logfile: /l", "log/to", "/l");
    check("server: use-syslog: yes use-syslog: no", "log/to", "");
    check(
        "server: log-time-ascii: yes",
        "log",
        "{level: info, format: unbound, identity: unbound, time: ascii}",
    );
    let lines = "server: verbosity: 0 log-replies: yes log-servfail: yes";
    check(lines, "log/level", "info");
    assert!(
        at(&read_files(&[("u.conf", lines)]).0, "policy/main").starts_with("[query-lines(reply, failure), ")
    );
}

/// Returns the tree of a file with changes laid over it.
fn changed(text: &str, changes: &Changes) -> Vec<Entry> {
    let before = {
        let mut sources = Sources::new(&SECRET_KEYS);
        sources.add(Path::new("u.conf"), text.to_owned());
        sources
    };
    let (mut sources, mut problems) = (Sources::new(&SECRET_KEYS), Vec::new());
    let entries = read_again(&before, &mut sources, changes, &mut problems).expect("it is in memory");
    let found: Vec<String> = diagnostics(problems, &sources).iter().map(Diagnostic::line).collect();
    assert!(found.is_empty(), "{found:?}");
    entries
}

#[test]
fn changes_lie_over_what_the_files_say() {
    let text = "server: local-zone: a.example static local-data: \"x.a.example A 192.0.2.1\"\n\
                local-data: \"b.example A 192.0.2.2\" prefetch: no domain-insecure: i.example\n\
                forward-zone: name: f.example forward-addr: 192.0.2.3\n\
                view: name: v local-data: \"v.example A 192.0.2.4\"\n";
    let mut changes = Changes::default();
    let same = format!("{:?}", changed(text, &changes));
    assert_eq!(same, format!("{:?}", read_files(&[("u.conf", text)]).0), "nothing was changed");
    changes.remove_local_zone(None, "a.example").expect("changed");
    changes.remove_local_data(None, "b.example.").expect("changed");
    // An apostrophe in data stands behind a backslash, which takes nothing away from it.
    changes.local_data(None, "c.example TXT \"it's\"").expect("changed");
    changes.local_zone(None, "d.example", "always_refuse").expect("changed");
    changes.local_data(Some("v".to_owned()), "w.example A 192.0.2.5").expect("changed");
    changes.insecure("i.example", false).expect("changed");
    changes.option("prefetch", "yes").expect("changed");
    let servers = |address: &str| {
        Some(ZoneServers { servers: vec![address.to_owned()], over_tls: false, primes: false })
    };
    changes.servers(ZoneKind::Forward, "f.example", servers("192.0.2.6")).expect("changed");
    changes.servers(ZoneKind::Stub, "s.example", servers("192.0.2.7")).expect("changed");
    let entries = changed(text, &changes);
    for (path, expect) in [
        ("records/local-data/text", "[c.example TXT \"it\\'s\"]"),
        ("records/local-data-v/text", "[v.example A 192.0.2.4, w.example A 192.0.2.5]"),
        ("cache/main/prefetch", "10%"),
        ("resolvers/default/negative-trust-anchors", ""),
        ("upstreams/forward-f.example/servers", "[192.0.2.6:53]"),
        ("resolvers/default/zones/s.example/stub", "[192.0.2.7]"),
    ] {
        assert_eq!(at(&entries, path), expect, "{path}");
    }
    let policy = at(&entries, "policy/local-zones");
    assert!(policy.contains("qname in suffix:d.example") && !policy.contains("a.example"), "{policy}");
    changes.servers(ZoneKind::Forward, "f.example", None).expect("changed");
    assert_eq!(at(&changed(text, &changes), "upstreams"), "");
}

#[test]
fn facts_are_those_of_the_files_with_the_changes() {
    let mut sources = Sources::new(&SECRET_KEYS);
    let text = "server: local-zone: a.example static local-data: \"x.a.example 60 IN A 192.0.2.1\"\n\
                local-data-ptr: \"192.0.2.9 p.example\" interface: 127.0.0.1 interface: ::1\n\
                stub-zone: name: s.example stub-host: ns.example stub-addr: 192.0.2.3@99\n";
    sources.add(Path::new("u.conf"), text.to_owned());
    let mut changes = Changes::default();
    changes.local_zone(None, "b.example", "redirect").expect("changed");
    let facts = Facts::of(&sources, &changes);
    let zones: Vec<String> =
        facts.local_zones(None).into_iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    assert_eq!(zones, ["9.2.0.192.in-addr.arpa transparent", "a.example static", "b.example redirect"]);
    assert_eq!(
        facts.local_data(None),
        ["9.2.0.192.in-addr.arpa.\t3600\tIN\tPTR\tp.example.", "x.a.example.\t60\tIN\tA\t192.0.2.1"]
    );
    let values = |name: &str| match facts.option(name) {
        OptionValue::Values(values) => values.join(" "),
        OptionValue::Unknown => "unknown".to_owned(),
    };
    assert_eq!(values("interface"), "127.0.0.1 ::1");
    assert_eq!(values("num-threads"), "1");
    assert_eq!(values("control-port"), "8953");
    assert_eq!(values("nonsense"), "unknown");
    let stubs = facts.stubs();
    assert_eq!(
        (&*stubs[0].name, stubs[0].servers.join(" ")),
        ("s.example", "ns.example 192.0.2.3@99".to_owned())
    );
}
