//! What another program refuses, and what is only told here.

use super::{at, read_files, says};

/// Reads a file; returns what is set at a path, and the lines about the file.
fn read(text: &str, path: &str) -> (String, Vec<String>) {
    let (entries, lines) = read_files(&[("u.conf", text)]);
    (at(&entries, path), lines)
}

#[test]
fn queries_fail_for_zones_without_servers_but_not_below_others() {
    let text = "forward-zone: name: x\nforward-zone: name: y.x forward-addr: 192.0.2.1\nstub-zone: name: z\n\
                auth-zone: name: a.z for-downstream: no\nforward-zone: name: w forward-first: yes";
    let (policy, lines) = read(text, "policy/main");
    for rule in [
        "{if: qname in suffix:x and not qname in suffix:y.x, do: respond(servfail)}",
        "{if: qname in suffix:z and not qname in suffix:a.z, do: respond(servfail)}",
        "{if: qname in suffix:a.z, do: respond(servfail)}",
    ] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("suffix:w"), "{policy}");
    assert_eq!(
        lines,
        [
            "u.conf:1:1: warning: the zone \"x\" has no server: queries for it fail",
            "u.conf:3:1: warning: the zone \"z\" has no server: queries for it fail",
            "u.conf:4:1: warning: the zone \"a.z\" comes from nowhere: queries for it fail",
            "u.conf:5:1: warning: the zone \"w\" has no server: it changes nothing",
        ]
    );
    let (policy, _) = read("forward-zone: name: .", "policy/main");
    assert!(policy.contains("ede 20)}, {if: true, do: respond(servfail)}, "), "{policy}");
}

#[test]
fn a_link_local_server_is_at_the_device_that_the_file_names() {
    let text = "forward-zone: name: x forward-addr: fe80::1%lo@5353 forward-addr: fe80::2%7\n\
                stub-zone: name: y stub-addr: fe80::3%lo stub-addr: fe80::4%nosuchdevice@54";
    let (servers, lines) = read(text, "upstreams/forward-x/servers");
    assert!(servers.contains("[fe80::1%1]:5353") && servers.contains("[fe80::2%7]:53"), "{servers}");
    assert_eq!(
        lines,
        [
            "u.conf:2:53: warning: there is no network device \"nosuchdevice\" now: \"fe80::4%nosuchdevice\" is not reached"
        ]
    );
    let (servers, _) = read(text, "resolvers/default/zones/y/stub");
    assert!(servers.contains("[fe80::3%1]:53") && servers.contains("[fe80::4%0]:54"), "{servers}");
}

#[test]
fn a_response_policy_zone_from_nowhere_has_no_rules() {
    let text =
        "server: module-config: \"respip validator iterator\"\nrpz: name: x\nrpz: name: y zonefile: /y";
    let (lists, lines) = read(text, "sets/rpz-1/lists");
    assert_eq!(lists, "[{list: rpz:/y, optional: true}]");
    assert_eq!(lines, ["u.conf:2:1: warning: this response policy zone comes from nowhere: it has no rules"]);
}

#[test]
fn lists_of_cipher_suites_that_only_openssl_knows_are_those_that_are_offered() {
    for list in ["PROFILE=SYSTEM", "HIGH:!aNULL"] {
        let (offered, lines) = read(&format!("server: tls-ciphers: \"{list}\""), "tls/ciphers");
        assert!(offered.contains("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "{offered}");
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let warning = format!("u.conf:1:23: warning: \"{list}\" names no cipher suite that is offered");
        assert!(line.starts_with(&warning), "{line}");
    }
}

#[test]
fn data_of_other_classes_and_second_aliases_are_left_out() {
    let text = "server: local-data: 'a CH TXT x' local-data: 'b CNAME c.' local-data: 'b CNAME d.'";
    let (records, lines) = read(text, "records/local-data/text");
    assert_eq!(records, "[b CNAME c.]");
    assert_eq!(
        lines,
        [
            "u.conf:1:22: warning: \"a CH TXT x\" is left out: local data is of class IN alone",
            "u.conf:1:72: warning: \"b CNAME d.\" is left out: a name has one alias (RFC 2181), and the first one counts",
        ]
    );
}

#[test]
fn data_that_a_redirect_hides_is_told() {
    says(
        "server: local-zone: x redirect local-data: 'x A 192.0.2.1' local-data: 'y.x A 192.0.2.2'",
        &["u.conf:1:73: warning: \"y.x A 192.0.2.2\" has no effect: \"x\" is redirected as a whole"],
    );
    says(
        "server: local-zone: x redirect local-data: 'x CNAME a.' local-data: 'x A 192.0.2.2'",
        &["u.conf:1:70: warning: \"x A 192.0.2.2\" has no effect: \"x\" has an alias, and nothing beside it"],
    );
}

#[test]
fn values_that_nothing_uses_are_told_if_they_could_not_be_used() {
    for (text, expect) in [
        ("server: cookie-secret: 0001", "this is no secret, and is not used: expected 32 hexadecimal digits"),
        (
            "server: define-tag: t access-control-tag-action: 192.0.2.0/24 t bar",
            "\"bar\" is no value of \"access-control-tag-action\", and is not used: expected a type of local zones",
        ),
        (
            "server: define-tag: t access-control-tag-data: 192.0.2.0/24 t 'A 1.2.3'",
            "\"A 1.2.3\" is no value of \"access-control-tag-data\", and is not used: expected a type and data, such as \"A 192.0.2.1\"",
        ),
        (
            "server: access-control-tag-action: 192.0.2.0/24 t refuse",
            "there is no tag \"t\" (\"define-tag\")",
        ),
        (
            "server: val-nsec3-keysize-iterations: '2048 150 1024 150'",
            "the sizes of keys in \"2048 150 1024 150\" do not rise",
        ),
        (
            "server: nat64-prefix: 64:ff9b::/95",
            "\"64:ff9b::/95\" is no value of \"nat64-prefix\", and is not used: expected a prefix of 32, 40, 48, 56, 64 or 96 bits",
        ),
        (
            "server: dns64-prefix: 64:ff9b::/97",
            "\"64:ff9b::/97\" is no value of \"dns64-prefix\", and is not used: expected a prefix of 32, 40, 48, 56, 64 or 96 bits",
        ),
        (
            "cachedb: redis-server-port: 99999",
            "\"99999\" is no value of \"redis-server-port\", and is not used: expected 1 to 65535",
        ),
        ("cachedb: redis-timeout: 0", "\"redis-timeout\" is zero: expected milliseconds"),
        (
            "forward-zone: name: x forward-addr: 192.0.2.1#foo@853",
            "the port in \"192.0.2.1#foo@853\" is read as a part of the name: it stands before \"#\"",
        ),
        ("server: local-zone: '' static", "a local zone without a name is that of the root: \".\""),
        (
            "server: module-config: 'respip validator iterator' response-ip-data: 192.0.2.0/24 'A 192.0.2.1'",
            "no \"response-ip\" says what data for 192.0.2.0/24 is for",
        ),
        (
            "server: module-config: 'respip validator iterator'\nrpz: name: x tags: t zonefile: /x",
            "there is no tag \"t\" (\"define-tag\")",
        ),
    ] {
        let (_, lines) = read_files(&[("u.conf", text)]);
        let warning = format!(": warning: {expect}");
        assert!(lines.iter().any(|line| line.ends_with(&warning)), "{text}: {lines:?}");
    }
}

#[test]
fn a_keyword_without_effect_is_told_unless_it_asks_for_what_happens_anyway() {
    says(
        "server: msg-cache-slabs: 4\n",
        &[
            "u.conf:1:9: warning: \"msg-cache-slabs\" has no effect: readers of the caches take no locks, so nothing is divided",
        ],
    );
    says("dnscrypt: dnscrypt-enable: no\n", &[]);
    says("server: harden-glue: yes prefetch-key: yes pad-queries: yes\n", &[]);
    says(
        "server: harden-glue: no\n",
        &[
            "u.conf:1:9: warning: \"harden-glue\" has no effect: glue serves the delegation that it came with, and nothing else",
        ],
    );
}
