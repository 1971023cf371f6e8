//! Configurations of other programs, turned into ours: every plugin of each is in the files beside
//! this test.

use std::path::{Path, PathBuf};

use diagnostic::Diagnostic;
use environment::System;
use import::{Dialect, Imported, NameServer};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).join("config.yaml")
}

fn import(dialect: Dialect, name: &str) -> Imported {
    let lines = |found: Vec<Diagnostic>| found.iter().map(Diagnostic::line).collect::<Vec<_>>().join("\n");
    import::forwarder(dialect, &fixture(name), &System)
        .map_err(lines)
        .unwrap_or_else(|lines| panic!("{lines}"))
}

/// Compares with the file that was accepted; `GANNET_UPDATE_IMPORTS=1` rewrites it.
fn check_text(name: &str, text: &str) {
    // Where the checkout is says nothing.
    let text = text.replace(env!("CARGO_MANIFEST_DIR"), "");
    let accepted = fixture(name).with_file_name("gannet.yaml");
    if std::env::var_os("GANNET_UPDATE_IMPORTS").is_some() {
        std::fs::write(&accepted, &text).expect("the file can be written");
    }
    let expect = std::fs::read_to_string(&accepted).unwrap_or_default();
    assert!(text == expect, "{} is stale:\n{text}", accepted.display());
}

/// Loads and compiles what was made, beside the files that it names.
fn check_it_loads(name: &str, text: &str) {
    let path = fixture(name).with_file_name("made.yaml");
    let lines = |found: &[Diagnostic]| found.iter().map(Diagnostic::human).collect::<Vec<_>>().join("\n");
    let loaded = match settings::load_text(&path, text, &System) {
        Ok(loaded) => loaded,
        Err(found) => panic!("{}\n{text}", lines(&found)),
    };
    if let Err(found) = config::compile(&loaded, &[], None, &System) {
        panic!("{}\n{text}", lines(&found));
    }
}

#[test]
fn every_plugin_of_mosdns_becomes_something_of_ours() {
    let imported = import(Dialect::Mosdns, "mosdns");
    check_it_loads("mosdns", &imported.text);
    check_text("mosdns", &imported.text);
}

#[test]
fn every_plugin_of_oxidns_becomes_something_of_ours() {
    let imported = import(Dialect::Oxidns, "oxidns");
    check_it_loads("oxidns", &imported.text);
    check_text("oxidns", &imported.text);
    // Its lists are binary: they are written, and it is loaded, by the test of the whole server.
    check_text("oxidns-dat", &import(Dialect::Oxidns, "oxidns-dat").text);
}

/// Imports what an authoritative server is told, loads what comes of it, and compares it and what
/// was said.
fn check_name_server(server: NameServer, name: &str, file: &str) {
    let path = fixture(name).with_file_name(file);
    let lines = |found: &[Diagnostic]| found.iter().map(Diagnostic::line).collect::<Vec<_>>().join("\n");
    let imported = match import::name_server(server, &path, &System) {
        Ok(imported) => imported,
        Err(found) => panic!("{}", lines(&found)),
    };
    check_it_loads(name, &imported.text);
    let said =
        lines(&imported.warnings).replace(&format!("{}/", path.parent().expect("a directory").display()), "");
    let said: String = said.lines().map(|line| format!("# {line}\n")).collect();
    check_text(name, &format!("{}\n# What was said:\n{said}", imported.text));
}

#[test]
fn what_knot_is_told_is_told_to_us() {
    check_name_server(NameServer::Knot, "knot", "knot.conf");
}

#[test]
fn what_nsd_is_told_and_has_listed_is_told_to_us() {
    check_name_server(NameServer::Nsd, "nsd", "nsd.conf");
}

#[test]
fn what_bind_is_told_is_told_to_us() {
    check_name_server(NameServer::Bind, "bind", "named.conf");
}

#[test]
fn what_erldns_is_told_is_told_to_us() {
    check_name_server(NameServer::Erldns, "erldns", "sys.config");
}

fn check_refused(dialect: Dialect, text: &str, expect: &[&str]) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("c.yaml");
    std::fs::write(&path, text).expect("the file can be written");
    let found = import::forwarder(dialect, &path, &System).expect_err("it cannot be expressed");
    let prefix = format!("{}/", directory.path().display());
    let lines: Vec<String> = found
        .iter()
        .filter(|found| found.severity == diagnostic::Severity::Error)
        .map(|found| found.line().replace(&prefix, ""))
        .collect();
    assert_eq!(lines, expect);
}

#[test]
fn what_cannot_be_expressed_is_an_error_at_its_line() {
    let text = "\
plugins:
  - {tag: f, type: forward, args: {upstreams: [{addr: 'ftp://192.0.2.1'}], sise: 1}}
  - tag: main
    type: sequence
    args:
      - {matches: no_such_matcher, exec: accept}
      - {exec: $nobody}
      - {exec: no_such_executor 1}
      - {matches: 'qname what:x', exec: reject 99}
      - {exec: $f}
  - {tag: u, type: udp_server, args: {entry: main, listen: '127.0.0.1:5353'}}
";
    check_refused(
        Dialect::Mosdns,
        text,
        &[
            "c.yaml:2:11: error: \"f\" has no upstreams",
            "c.yaml:2:56: error: unknown scheme \"ftp\"",
            "c.yaml:2:76: error: \"forward\" has no setting \"sise\"",
            "c.yaml:6:19: error: mosdns has no matcher \"no_such_matcher\"",
            "c.yaml:7:17: error: there is no plugin \"nobody\"",
            "c.yaml:8:16: error: mosdns has no executor \"no_such_executor\" of this form",
            "c.yaml:9:26: error: \"what:x\" is no expression for names",
            "c.yaml:9:41: error: the response code 99 cannot be given: clients would not know what it means",
        ],
    );
    let text = "\
network:
  outbound:
    default: nowhere
    profiles:
      far: {resolver: {nameservers: ['tls://192.0.2.1', there], proxy: far}, proxy: {socks5: '192.0.2.9:1080'}}
plugins:
  - tag: main
    type: sequence
    args:
      - {exec: download https://example.org/a.txt lists}
      - {exec: upgrade force}
      - {exec: $again}
      - {exec: $fetch}
      - {exec: $hook}
      - {exec: $f}
  - {tag: again, type: reload}
  - {tag: fetch, type: download, args: {downloads: [{url: 'https://example.org/b.txt', dir: lists}], insecure_skip_verify: true}}
  - {tag: hook, type: http_request, args: {url: 'http://192.0.2.1/', outbound: far}}
  - {tag: f, type: forward, args: {upstreams: [{addr: 192.0.2.1, outbound: near}]}}
  - {tag: c, type: cron, args: {jobs: [{schedule: '0 4 * * *', executors: [upgrade, download https://example.org/c.txt lists]}]}}
  - {tag: u, type: udp_server, args: {entry: main, listen: '127.0.0.1:5353'}}
";
    check_refused(
        Dialect::Oxidns,
        text,
        &[
            "c.yaml:3:14: error: there is no profile \"nowhere\"",
            "c.yaml:5:38: error: a resolver over \"tls\" cannot be expressed: addresses of servers are asked for over UDP",
            "c.yaml:5:57: error: \"there\" is no address of a name server",
            "c.yaml:5:72: error: resolvers cannot be asked through a proxy",
            "c.yaml:10:16: error: \"download\" for each query: lists are refreshed by time here, see \"schedules\"",
            "c.yaml:11:16: error: \"upgrade\" for each query: Gannet does not replace itself: whoever installed it does",
            "c.yaml:12:17: error: \"reload\" for each query: a reload is asked for by \"gannet reload\"",
            "c.yaml:13:17: error: \"download\" for each query: lists are refreshed by time here, see \"schedules\"",
            "c.yaml:17:102: error: a list is never fetched from a web server that does not prove who it is",
            "c.yaml:18:70: error: an HTTP request cannot go through a proxy",
            "c.yaml:19:76: error: there is no profile \"near\"",
            "c.yaml:20:76: error: Gannet does not replace itself: whoever installed it does",
            "c.yaml:20:85: error: what is downloaded here is a list of a set: let a plugin \"download\" name its file",
        ],
    );
}

/// Imports a text that lies beside these files; returns what came of it and what was said.
fn import_text(
    dialect: Dialect,
    text: &str,
    files: &[(&str, &str)],
) -> Result<(String, Vec<String>), Vec<String>> {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).expect("the file can be written");
    }
    let path = directory.path().join("c.yaml");
    std::fs::write(&path, text).expect("the file can be written");
    let prefix = format!("{}/", directory.path().display());
    let lines = |found: &[Diagnostic]| {
        found.iter().map(|found| found.line().replace(&prefix, "")).collect::<Vec<_>>()
    };
    match import::forwarder(dialect, &path, &System) {
        Err(found) => Err(lines(&found)),
        Ok(imported) => {
            let made = path.with_file_name("made.yaml");
            let loaded = settings::load_text(&made, &imported.text, &System);
            let loaded =
                loaded.unwrap_or_else(|found| panic!("{}\n{}", lines(&found).join("\n"), imported.text));
            let plans = config::compile(&loaded, &[], None, &System);
            let plans =
                plans.unwrap_or_else(|found| panic!("{}\n{}", lines(&found).join("\n"), imported.text));
            assert_eq!(lines(&plans.warnings), Vec::<String>::new(), "{}", imported.text);
            Ok((imported.text, lines(&imported.warnings)))
        }
    }
}

/// A configuration of mosdns with these plugins, and these rules in its sequence.
fn mosdns(plugins: &str, rules: &str) -> String {
    format!(
        "plugins:\n{plugins}  - {{tag: f, type: forward, args: {{upstreams: [{{addr: 192.0.2.53}}]}}}}\n  - tag: main\n    type: sequence\n    args:\n{rules}  - {{tag: u, type: udp_server, args: {{entry: main, listen: '127.0.0.1:5353'}}}}\n"
    )
}

#[test]
fn a_port_alone_is_both_families() {
    for listen in [":5353", "'[::]:5353'"] {
        for dialect in [Dialect::Mosdns, Dialect::Oxidns] {
            let text = mosdns("", "      - {exec: $f}\n").replace("'127.0.0.1:5353'", listen);
            let (made, _) = import_text(dialect, &text, &[]).expect("it is imported");
            assert!(made.contains("listen:\n  - at: 0.0.0.0:5353\n"), "{made}");
            assert!(made.contains("  - at: '[::]:5353'\n"), "{made}");
        }
    }
}

#[test]
fn a_rejection_and_a_return_are_one_end() {
    let rules = "      - {matches: 'qname full:a.example', exec: reject 3}\n      - {matches: 'qname full:a.example', exec: return}\n      - {exec: $f}\n";
    let (made, _) = import_text(Dialect::Mosdns, &mosdns("", rules), &[]).expect("it is imported");
    assert!(made.contains("      do: reject(nxdomain)\n"), "{made}");
}

#[test]
fn values_that_are_too_large_become_the_largest() {
    let plugins = "  - {tag: c, type: cache, args: {size: 1024, lazy_cache_ttl: 259200000, dump_file: x, dump_interval: 5}}\n";
    let rules = "      - {exec: $c}\n      - {exec: $f}\n";
    let (made, said) = import_text(Dialect::Mosdns, &mosdns(plugins, rules), &[]).expect("it is imported");
    assert!(made.contains("    stale: 2592000s\n") && made.contains("      every: 60s\n"), "{made}");
    assert!(said[0].ends_with("\"lazy_cache_ttl\" becomes 30d: 259200000 s cannot be said here"), "{said:?}");
}

#[test]
fn a_set_without_entries_is_empty() {
    let plugins = "  - {tag: none, type: domain_set}\n  - {tag: nowhere, type: ip_set, args: {ips: []}}\n";
    let rules = "      - {matches: [qname $none, client_ip $nowhere], exec: reject 3}\n      - {exec: $f}\n";
    let (made, said) = import_text(Dialect::Mosdns, &mosdns(plugins, rules), &[]).expect("it is imported");
    assert!(made.contains("  none:\n    names: []\n  nowhere:\n    addresses: []\n"), "{made}");
    assert_eq!(said.len(), 2, "{said:?}");
}

#[test]
fn a_bad_address_is_an_error_where_it_stands() {
    let text = mosdns("", "      - {exec: $f}\n      - {exec: 'forward 192.0.2.1:x'}\n")
        .replace("192.0.2.53", "'127.0.0.1:SOME-WORD'");
    let found = import_text(Dialect::Mosdns, &text, &[]).expect_err("no address");
    let expect = [
        "c.yaml:2:11: error: \"f\" has no upstreams",
        "c.yaml:2:56: error: \"SOME-WORD\" is not a port",
        "c.yaml:7:25: error: \"x\" is not a port",
    ];
    assert_eq!(found, expect);
}

#[test]
fn what_the_checker_refuses_is_an_error_of_the_source() {
    // A mark that nobody would look at twice: it is for the checker to find.
    let text = mosdns("", "      - {exec: $f}\n").replace("192.0.2.53}", "192.0.2.53, so_mark: many}");
    let found = import_text(Dialect::Mosdns, &text, &[]).expect_err("no mark");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("c.yaml:2:76: error: what this becomes, \"many\", is refused"), "{found:?}");
}

#[test]
fn a_preference_behind_the_answer_stands_before_it() {
    let rules = "      - {exec: $f}\n      - {exec: prefer_ipv4}\n      - {exec: accept}\n";
    let (made, _) = import_text(Dialect::Mosdns, &mosdns("", rules), &[]).expect("it is imported");
    assert!(made.contains("    - prefer-ipv4\n    - forward(f)\n    - accept\n"), "{made}");
}

#[test]
fn redirections_grow_with_their_number_alone() {
    let rule = |number: usize| format!("'full:a{number}.example b{number}.example'");
    let plugins = |count: usize| {
        let rules: Vec<String> = (0..count).map(rule).collect();
        format!("  - {{tag: r, type: redirect, args: {{rules: [{}]}}}}\n", rules.join(", "))
    };
    let made = |count: usize| {
        let text = mosdns(&plugins(count), "      - {exec: $r}\n      - {exec: $f}\n");
        import_text(Dialect::Mosdns, &text, &[]).expect("it is imported").0
    };
    let (one, two) = (made(400), made(800));
    assert!(two.len() < 2 * one.len() + 1000, "{} octets after {}", two.len(), one.len());
    assert!(two.lines().all(|line| line.len() < 200));
}

#[test]
fn files_of_hosts_and_lists_stay_files() {
    let plugins = "  - {tag: h, type: hosts, args: {files: [h.txt]}}\n  - {tag: d, type: domain_set, args: {files: [d.txt]}}\n  - {tag: i, type: ip_set, args: {files: [i.txt]}}\n";
    let rules = "      - {exec: $h}\n      - {matches: [qname $d, '!client_ip $i'], exec: reject 3}\n      - {exec: $f}\n";
    let files = [
        (
            "h.txt",
            "nas.example 192.0.2.7 2001:db8::7\ndomain:tv.example 192.0.2.8\n192.0.2.9 printer.example\n",
        ),
        ("d.txt", ".2mdn.example\n*.wild.example\nbücher.example\n"),
        ("i.txt", "218.7.1.0/16\n"),
    ];
    let (made, _) = import_text(Dialect::Mosdns, &mosdns(plugins, rules), &files).expect("it is imported");
    assert!(made.contains("    hosts: [h.txt]\n") && !made.contains("192.0.2.7"), "{made}");
    assert!(made.contains("      - list: names:d.txt\n        strict: false\n"), "{made}");
}

#[test]
fn jobs_may_be_sequences() {
    let text = "\
plugins:
  - {tag: list, type: domain_set, args: {files: [lists/a.txt]}}
  - {tag: fetch, type: download, args: {downloads: [{url: 'https://example.org/a.txt', dir: lists}, {url: 'https://example.org/unread.txt', dir: lists}], socks5: '192.0.2.9:1080'}}
  - {tag: job, type: sequence, args: [{exec: $fetch}, {exec: reload_provider $list}]}
  - {tag: c, type: cron, args: {jobs: [{schedule: '0 4 * * *', executors: [$job]}]}}
  - {tag: f, type: forward, args: {upstreams: [{addr: 192.0.2.53}]}}
  - tag: main
    type: sequence
    args:
      - {matches: qname $list, exec: reject 3}
      - {exec: $f}
  - {tag: u, type: udp_server, args: {entry: main, listen: ':5353'}}
";
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("c.yaml");
    std::fs::write(&path, text).expect("the file can be written");
    let imported = import::forwarder(Dialect::Oxidns, &path, &System).expect("it is imported");
    assert!(imported.text.contains("    do: [refresh(sets)]\n"), "{}", imported.text);
    let said: Vec<String> = imported.warnings.iter().map(|found| found.message.clone()).collect();
    let expect =
        ["nothing here reads what comes from \"https://example.org/unread.txt\"", "the proxy is left out"];
    for expect in expect {
        assert!(said.iter().any(|said| said.starts_with(expect)), "{said:?}");
    }
}

#[test]
fn values_of_name_servers_that_are_other_here_are_said_in_our_words() {
    let nsd = "server:\n  identity: \"\"\n  version: \"\"\n  ip4-only: yes\n  difffile: \"/var/nsd.diff\"\nzone:\n  name: example.org\n  zonefile: org\n";
    check_name_server_says(NameServer::Nsd, nsd, &["hostname: hidden", "version: hidden", "0.0.0.0:53"]);
    let knot = "policy:\n  - id: mine\n    algorithm: rsasha256\n    ksk-size: 2560\nzone:\n  - domain: example.org\n    file: org\n    dnssec-signing: on\n    dnssec-policy: mine\n";
    check_name_server_says(NameServer::Knot, knot, &["ksk-size: 3072"]);
}

#[test]
fn bind_that_resolves_is_refused_whether_it_says_so_or_not() {
    let zone = "zone example.org { type primary; file \"org\"; };\n";
    let resolves = "BIND resolves for its own networks unless it is told not to, which cannot be carried over: nothing here asks the root servers";
    check_name_server_refused(NameServer::Bind, zone, &[&format!("c: error: {resolves}")]);
    let options = format!("options {{ directory \".\"; }};\n{zone}");
    check_name_server_refused(NameServer::Bind, &options, &[&format!("c:1:1: error: {resolves}")]);
    check_name_server_says(NameServer::Bind, &format!("options {{ recursion no; }};\n{zone}"), &[]);
}

#[test]
fn a_key_that_no_file_of_bind_defines_is_an_error_where_it_is_named() {
    let text = "options { recursion no; };\nzone example.org { type primary; file \"org\"; allow-transfer { key nobody; }; };\n";
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("c");
    std::fs::write(&path, text).expect("the file can be written");
    let found = import::name_server(NameServer::Bind, &path, &System).expect_err("no such key");
    let errors: Vec<_> = found.iter().filter(|found| found.severity == diagnostic::Severity::Error).collect();
    assert_eq!((errors.len(), errors[0].line), (1, 2), "{errors:?}");
    assert!(errors[0].message.contains("nobody"), "{errors:?}");
}

fn check_name_server_refused(server: NameServer, text: &str, expect: &[&str]) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("c");
    std::fs::write(&path, text).expect("the file can be written");
    let found = import::name_server(server, &path, &System).expect_err("it cannot be expressed");
    let prefix = format!("{}/", directory.path().display());
    let lines: Vec<String> = found.iter().map(|found| found.line().replace(&prefix, "")).collect();
    assert_eq!(lines, expect);
}

#[test]
fn what_knot_has_and_we_have_not_is_an_error_at_its_line() {
    let text = "server:
    listen: /run/knot.sock
    sise: 1
acl:
  - id: a
    key: k
    deny: on
  - id: q
    action: query
zone:
  - domain: example.org
    acl: [ a, q, nobody ]
    dnssec-validation: on
    module: mod-dnstap/x
  - domain: EXAMPLE.org
";
    let expect = [
        "c:2:13: error: a Unix socket is one of \"local-sockets\" here",
        "c:3:5: error: Knot's server has no setting \"sise\" that is known here",
        "c:9:13: warning: \"action: query\" is left out: everybody may query, with a key or without",
        "c:12:12: error: an ACL that denies by key or protocol cannot be carried over: nobody may anything unless it is said",
        "c:12:18: error: there is no ACL \"nobody\"",
        "c:13:24: error: \"dnssec-validation\" cannot be carried over: what comes from a primary is believed as it is signed by key or TLS",
        "c:14:13: error: there is no module \"mod-dnstap/x\"",
        "c:14:13: error: \"mod-dnstap/x\" cannot be carried over",
        "c:15:13: error: zone \"EXAMPLE.org\" is there twice",
    ];
    check_name_server_refused(NameServer::Knot, text, &expect);
}

/// Imports what a name server is told; returns what came of it and what was said.
fn imported(server: NameServer, text: &str) -> (String, Vec<String>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("c");
    std::fs::write(&path, text).expect("the file can be written");
    let prefix = format!("{}/", directory.path().display());
    let lines = |found: &[Diagnostic]| {
        found.iter().map(|found| found.line().replace(&prefix, "")).collect::<Vec<_>>()
    };
    match import::name_server(server, &path, &System) {
        Ok(imported) => (imported.text.replace(&prefix, ""), lines(&imported.warnings)),
        Err(found) => panic!("{}", lines(&found).join("\n")),
    }
}

fn made(server: NameServer, text: &str) -> String {
    imported(server, text).0
}

fn check_name_server_says(server: NameServer, text: &str, expect: &[&str]) {
    let text = made(server, text);
    for line in expect {
        assert!(text.lines().any(|found| found.trim().trim_start_matches("- ") == *line), "{line}\n{text}");
    }
}

#[test]
fn servers_that_show_certificates_are_known_by_them() {
    let (one, two) =
        ("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    let knot = |server: &str, known_by: &str| {
        format!(
            "server:\n  listen-tls: 192.0.2.1\n  cert-file: own.pem\n  key-file: own.key\n  automatic-acl: on\n{server}\
             remote:\n  - id: told\n    address: 192.0.2.53\n    tls: on\n    cert-key: {one}\n\
             acl:\n  - id: known\n    address: 192.0.2.54\n    {known_by}\n    action: transfer\n\
             zone:\n  - domain: example.org\n    notify: told\n    acl: known\n"
        )
    };
    let transfer = format!("transfer: [192.0.2.53 tls-pin {one}, 192.0.2.54 tls-pin {one} tls-pin {two}]");
    let expect = ["client-certificates: any", transfer.as_str()];
    let pins = format!("cert-key: [ {one}, {two} ]");
    check_name_server_says(NameServer::Knot, &knot("", &pins), &expect);
    let transfer = format!("transfer: [192.0.2.53 tls-pin {one}, 192.0.2.54 tls-name ns2.example.net]");
    let expect = ["client-certificates: optional", "client-ca: [ca.pem]", transfer.as_str()];
    let named = "cert-hostname: ns2.example.net";
    check_name_server_says(NameServer::Knot, &knot("  ca-file: ca.pem\n", named), &expect);
    let nobody = "c:14:20: error: \"cert-hostname\" of a client cannot be carried over without \"ca-file\": nobody is known who vouches for names";
    check_name_server_refused(NameServer::Knot, &knot("", named), &[nobody]);

    let nsd = |server: &str| {
        format!(
            "server:\n  ip-address: 192.0.2.1@853\n  tls-service-pem: own.pem\n  tls-service-key: own.key\n{server}\
             tls-auth:\n  name: them\n  auth-domain-name: ns2.example.net\n\
             zone:\n  name: example.org\n  zonefile: org\n  provide-xfr: 192.0.2.54 NOKEY them\n"
        )
    };
    let expect = [
        "client-certificates: optional",
        "client-ca: [ca.pem]",
        "transfer: [192.0.2.54 tls-name ns2.example.net]",
    ];
    check_name_server_says(NameServer::Nsd, &nsd("  tls-cert-bundle: ca.pem\n"), &expect);
    let nobody = "c:11:33: error: a name in a certificate cannot be carried over without \"tls-cert-bundle\": nobody is known who vouches for names";
    check_name_server_refused(NameServer::Nsd, &nsd(""), &[nobody]);
}

/// Returns Knot's configuration of a zone that is signed with keys of a key store.
fn knot_with_token(keystore: &str, policy: &str) -> String {
    format!(
        "keystore:\n  - id: hsm\n    backend: pkcs11\n    {keystore}\n\
         policy:\n  - id: mine\n    keystore: {policy}\nzone:\n  - domain: example.org\n    dnssec-signing: on\n    \
         dnssec-policy: mine\n"
    )
}

/// Returns BIND's.
fn bind_with_token(store: &str, keys: &str) -> String {
    format!(
        "key-store \"hsm\" {{ {store} }};\ndnssec-policy \"mine\" {{ keys {{ {keys} }}; }};\n\
         zone example.org {{ type primary; file org; dnssec-policy mine; }};\noptions {{ recursion no; }};\n"
    )
}

#[test]
fn who_may_query_a_zone_is_carried_over() {
    let nsd = "zone:\n  name: a.example\n  zonefile: a\n  allow-query: 192.0.2.0/24 NOKEY\n  allow-query: 192.0.2.128/25 BLOCKED\n\
               zone:\n  name: b.example\n  zonefile: b\n  allow-query: 0.0.0.0/0 NOKEY\n  allow-query: ::0/0 NOKEY\n";
    check_name_server_says(
        NameServer::Nsd,
        nsd,
        &["allow-query: [192.0.2.0/25]", "allow-query: [0.0.0.0/0, '::/0']"],
    );
    let knot = "acl:\n  - id: away\n    address: [ 0.0.0.0/1, ::/0 ]\n    action: query\n    deny: on\n\
                zone:\n  - domain: example.org\n    file: org\n    acl: away\n";
    check_name_server_says(NameServer::Knot, knot, &["allow-query: [128.0.0.0/1]"]);
    // What the options say holds for every zone that says nothing itself: "allow" does not guard
    // zones here.
    let bind = "options { recursion no; allow-query { 192.0.2.0/24; }; };\n\
                zone a.example { type primary; file \"a\"; };\n\
                zone b.example { type primary; file \"b\"; allow-query { any; }; };\n\
                zone c.example { type primary; file \"c\"; allow-query { none; }; };\n";
    let expect = ["allow: [192.0.2.0/24]", "allow-query: [192.0.2.0/24]", "allow-query: []"];
    check_name_server_says(NameServer::Bind, bind, &expect);
    assert_eq!(made(NameServer::Bind, bind).matches("allow-query:").count(), 2);
}

#[test]
fn updates_that_a_secondary_passes_on_are_carried_over() {
    let bind = "options { recursion no; };\nkey k { algorithm hmac-sha256; secret \"c2VjcmV0c2VjcmV0\"; };\n\
                zone example.org { type secondary; primaries { 192.0.2.1; }; allow-update-forwarding { key k; 192.0.2.0/24; }; };\n";
    check_name_server_says(NameServer::Bind, bind, &["forward-updates: [key k, 192.0.2.0/24]"]);
    let knot = |master: &str| {
        format!(
            "remote:\n  - id: one\n    address: 192.0.2.1\n  - id: two\n    address: 192.0.2.2\n\
             acl:\n  - id: they\n    address: 192.0.2.64/28\n    action: update\n\
             zone:\n  - domain: example.org\n    master: one\n    acl: they\n{master}"
        )
    };
    for master in ["", "    ddns-master: one\n"] {
        check_name_server_says(NameServer::Knot, &knot(master), &["forward-updates: [192.0.2.64/28]"]);
    }
    let nobody = made(NameServer::Knot, &knot("    ddns-master: \"\"\n"));
    assert!(!nobody.contains("forward-updates"), "{nobody}");
    let elsewhere = "c:14:18: error: \"ddns-master\" cannot be carried over: updates are passed on to the zone's primaries";
    check_name_server_refused(NameServer::Knot, &knot("    ddns-master: two\n"), &[elsewhere]);
}

#[test]
fn what_knot_does_with_a_changed_file_is_carried_over_or_said() {
    let knot = |load: &str, acl: &str| {
        format!(
            "acl:\n  - id: they\n    address: 192.0.2.64/28\n    action: update\n\
             zone:\n  - domain: example.org\n    file: org\n    zonefile-load: {load}\n    zonefile-sync: -1\n    journal-content: all\n{acl}"
        )
    };
    let acl = "    acl: they\n";
    check_name_server_says(
        NameServer::Knot,
        &knot("difference-no-serial", acl),
        &["on-file-change: replace"],
    );
    let expect =
        "# Knot takes a changed file only with a newer serial; here any change of its records counts.";
    check_name_server_says(NameServer::Knot, &knot("difference", acl), &["on-file-change: replace", expect]);
    let whole = made(NameServer::Knot, &knot("whole", acl));
    assert!(whole.contains("(on-file-change:"), "{whole}");
    let never_updated = made(NameServer::Knot, &knot("difference", ""));
    assert!(!never_updated.contains("on-file-change"), "{never_updated}");
    let unread =
        "\"zonefile-load: none\" is left out: the zone is read from its file, which Knot does not look at";
    let warned = |text: &str| {
        let imported = imported(NameServer::Knot, text);
        imported.1.iter().any(|said| said.contains(unread))
    };
    assert!(warned(&knot("none", acl)));
    // What a secondary has is kept without a file.
    let secondary = knot("none", "    master: one\n")
        .replace("zone:", "remote:\n  - id: one\n    address: 192.0.2.1\nzone:");
    assert!(!warned(&secondary));
}

#[test]
fn tokens_of_other_servers_become_those_of_policies() {
    let expect = ["token: 'pkcs11:token=knot?module-path=/usr/lib/hsm.so&pin-source=file:/etc/pin'"];
    let knot = knot_with_token("config: \"pkcs11:token=knot;pin-source=/etc/pin /usr/lib/hsm.so\"", "hsm");
    check_name_server_says(NameServer::Knot, &knot, &expect);
    let expect = ["token: 'pkcs11:token=bind9?module-path=/usr/lib/hsm.so&pin-source=file:/etc/pin'"];
    let store = "pkcs11-uri \"pkcs11:token=bind9?pin-source=file:/etc/pin&module-path=/usr/lib/hsm.so\";";
    let keys =
        "ksk key-store hsm lifetime unlimited algorithm 13; zsk key-store hsm lifetime 30d algorithm 13;";
    check_name_server_says(NameServer::Bind, &bind_with_token(store, keys), &expect);
}

#[test]
fn tokens_that_cannot_be_carried_over_are_errors_at_their_lines() {
    let knot = |keystore: &str, policy: &str, expect: &str| {
        check_name_server_refused(NameServer::Knot, &knot_with_token(keystore, policy), &[expect]);
    };
    knot(
        "config: \"pkcs11:token=knot /usr/lib/hsm.so\"",
        "none",
        "c:7:15: error: there is no keystore \"none\"",
    );
    knot(
        "config: \"pkcs11:token=knot\"",
        "hsm",
        "c:4:13: error: the token cannot be carried over: its URI does not say which module speaks with it (?module-path=)",
    );
    knot(
        "config: \"pkcs11:token=knot hsm.so\"",
        "hsm",
        "c:4:13: error: the token cannot be carried over: the path of its module does not begin at the root",
    );
    knot(
        "config: \"pkcs11:token=knot /usr/lib/hsm.so\"",
        "[ hsm, default ]",
        "c:7:22: error: several key stores cannot be carried over: a policy makes all its keys in one place",
    );
    let bind = |store: &str, keys: &str, expect: &str| {
        check_name_server_refused(NameServer::Bind, &bind_with_token(store, keys), &[expect]);
    };
    bind(
        "pkcs11-uri \"pkcs11:token=bind9;object=a?module-path=/usr/lib/hsm.so\";",
        "csk key-store hsm lifetime 0 algorithm 13;",
        "c:1:30: error: the token cannot be carried over: this is the URI of a key, and new ones are made",
    );
    bind(
        "pkcs11-uri \"pkcs11:token=bind9?module-path=/usr/lib/hsm.so\";",
        "ksk key-store hsm lifetime 0 algorithm 13; zsk lifetime 30d algorithm 13;",
        "c:2:74: error: keys in several places cannot be carried over: a policy makes all its keys in one",
    );
    bind(
        "directory \"a\";",
        "csk key-store other lifetime 0 algorithm 13;",
        "c:2:45: error: there is no key store \"other\"",
    );
}

#[test]
fn no_pin_of_another_server_is_carried_over_or_shown() {
    let keys = "csk key-store hsm lifetime 0 algorithm 13;";
    let texts = [
        (
            NameServer::Knot,
            knot_with_token("config: \"pkcs11:token=knot;pin-value=123456 /usr/lib/hsm.so\"", "hsm"),
        ),
        (NameServer::Bind, bind_with_token("pkcs11-uri \"pkcs11:token=bind9;pin-value=123456\";", keys)),
    ];
    for (server, text) in texts {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("c");
        std::fs::write(&path, &text).expect("the file can be written");
        let found = import::name_server(server, &path, &System).expect_err("it has a PIN");
        let said: String = found.iter().map(|found| found.human() + &found.line() + &found.json()).collect();
        assert!(said.contains("the token cannot be carried over: \"pin-value\""), "{said}");
        assert!(said.contains("pin-source=file:") && !said.contains("123456"), "{said}");
    }
}

#[test]
fn what_nsd_has_and_we_have_not_is_an_error_at_its_line() {
    let text = "server:
  port: many
zone:
  name: a.example
  request-xfr: 192.0.2.1
zone:
  name: b.example
  zonefile: b
  allow-query: 192.0.2.0/24 some.key
  include-pattern: none
  provide-xfr: somewhere NOKEY
";
    let expect = [
        "c:2:9: error: \"many\" is no whole number",
        "c:4:9: error: zone \"a.example\" has neither a file nor a primary",
        "c:5:3: error: \"request-xfr\" takes an address and a key, or NOKEY",
        "c:9:3: error: clients are known by their addresses here, not by keys or certificates",
        "c:10:20: error: there is no pattern \"none\"",
        "c:11:16: error: \"somewhere\" is no address",
    ];
    check_name_server_refused(NameServer::Nsd, text, &expect);
}

#[test]
fn what_bind_has_and_we_have_not_is_an_error_at_its_line() {
    let text = "options { recursion yes; response-policy { zone rpz; }; };
zone a.example { type stub; };
zone b.example { type primary; file b; allow-transfer { nobody; }; update-policy { deny k zonesub; }; };
zone c.example { type secondary; primaries { 192.0.2.1 tls ephemeral; }; }
";
    let expect = [
        "c:1:11: error: \"recursion\" without \"forwarders\" cannot be carried over: nothing here asks the root servers",
        "c:1:26: error: \"response-policy\" cannot be carried over: \"sets\" read response policy zones from files",
        "c:2:23: error: a zone of type \"stub\" cannot be carried over",
        "c:3:57: error: there is no list of addresses \"nobody\"",
        "c:3:84: error: \"deny\" cannot be carried over: nobody may anything unless it is granted",
        "c:4:1: error: a \";\" is missing behind this",
        "c:4:60: error: \"tls ephemeral\" proves nothing: whoever answers would be believed",
    ];
    check_name_server_refused(NameServer::Bind, text, &expect);
}

#[test]
fn what_erldns_has_and_we_have_not_is_an_error_at_its_line() {
    let text =
        "[{erldns, [{packet_pipeline, [erldns_questions, our_stage]}, {zones, #{path => \"z/a.json\"}}]}].\n";
    let expect = [
        "c:1:49: error: the stage \"our_stage\" cannot be carried over",
        "c:1:80: error: a single file cannot be carried over: put it into a directory of its own",
    ];
    check_name_server_refused(NameServer::Erldns, text, &expect);
    let expect = ["c:1:25: error: this is no Erlang term"];
    check_name_server_refused(NameServer::Erldns, "[{erldns, [{listeners, [}]}].\n", &expect);
}
