//! What certain words of the file become.

use super::*;

#[test]
fn rpz_log_has_a_line_for_what_a_zone_is_applied_to() {
    let text = "rpz: name: a.example zonefile: /a rpz-log: yes rpz-log-name: block \
                rpz: name: b.example zonefile: /b rpz-log: yes \
                rpz: name: c.example zonefile: /c rpz-action-override: nodata";
    let tree = read_files(&[("u.conf", text)]).0;
    let policy = at(&tree, "policy/response-policy-question");
    let line = "{if: listed in rpz-1, do: [mark(1), query-lines(zone \"rpz: applied [block b.example]\")]}, blocklist(rpz-1, ";
    assert!(policy.contains(line), "{policy}");
    assert_eq!(policy.matches("query-lines").count(), 1, "{policy}");
    let policy = at(&tree, "policy/response-policy-answer");
    let line = "{if: not mark(1) and listed in rpz-1, do: [query-lines(zone \"rpz: applied [block b.example]\")]}, blocklist(rpz-1, ";
    assert!(policy.contains(line), "{policy}");
    assert_eq!(policy.matches("query-lines").count(), 1, "{policy}");
}

#[test]
fn for_downstream_of_a_response_policy_zone_lets_clients_read_it() {
    check("rpz: name: a.example zonefile: /a", "zones", "");
    check(
        "rpz: name: a.example zonefile: /a for-downstream: yes",
        "zones",
        "[{name: a.example, allow-query: [127.0.0.0/8, ::1/128], file: /a}]",
    );
    check(
        "rpz: name: a.example primary: 192.0.2.1 max-transfer-size: 1m max-transfer-time: 60000",
        "zones",
        "[{name: a.example, for-clients: false, primaries: [192.0.2.1], keep: false, transfer-size: 1048576B, transfer-time: 60000ms}]",
    );
}

#[test]
fn wait_limits_of_networks_are_those_of_the_file_and_of_this_machine() {
    check(
        "server: wait-limit-netblock: 192.0.2.0/24 50 wait-limit-cookie-netblock: 192.0.2.0/24 -1",
        "limits/wait-networks",
        "[{prefix: 127.0.0.0/8, replies: off, with-cookie: off}, {prefix: ::1/128, replies: off, with-cookie: off}, {prefix: 192.0.2.0/24, replies: 50, with-cookie: off}]",
    );
    check("server: wait-limit-cookie: 77", "limits/wait-limit-with-cookie", "77");
    check("server: wait-limit: 0 wait-limit-cookie: 77", "limits/wait-limit-with-cookie", "off");
    says(
        "server: wait-limit-netblock: 192.0.2.0/24 many",
        &[
            "u.conf:1:9: error: \"192.0.2.0/24 many\" is no limit: expected a prefix and a number, such as 192.0.2.0/24 5000; -1 is no limit",
        ],
    );
}

#[test]
fn min_client_subnet_refuses_shorter_ones() {
    let text = "server: send-client-subnet: 192.0.2.1 min-client-subnet-ipv4: 20 min-client-subnet-ipv6: 48";
    let policy = at(&read_files(&[("u.conf", text)]).0, "policy/main");
    let rule = "{if: subnet-ipv4-bits > 0 and subnet-ipv4-bits < 20 or subnet-ipv6-bits > 0 and subnet-ipv6-bits < 48, do: [respond(refused)]}";
    assert!(policy.contains(rule), "{policy}");
    // Without servers that hear of subnets, nobody looks at them.
    let policy = at(&read_files(&[("u.conf", "server: min-client-subnet-ipv4: 20")]).0, "policy/main");
    assert!(!policy.contains("subnet-ipv4-bits"), "{policy}");
}

#[test]
fn identity_is_the_name_of_this_machine_unless_it_is_said_or_hidden() {
    for (text, expect) in [
        ("server:", "host"),
        ("server: identity: one", "one"),
        ("server: identity: one hide-identity: yes", ""),
    ] {
        check(text, "server/identity", expect);
        check(text, "server/hostname", expect);
        check(text, "server/nsid", "hidden");
    }
    check("server: nsid: ascii_two", "server/nsid", "two");
}

#[test]
fn servers_of_zones_are_asked_over_tcp_or_tls_where_the_file_says_so() {
    let servers = |text: &str, group: &str| {
        at(&read_files(&[("u.conf", text)]).0, &format!("upstreams/{group}/servers"))
    };
    let zone = "forward-zone: name: a.example forward-addr: 192.0.2.1";
    assert_eq!(servers(zone, "forward-a.example"), "[192.0.2.1:53]");
    for tcp in [
        "forward-zone: name: a.example forward-addr: 192.0.2.1 forward-tcp-upstream: yes",
        &format!("server: tcp-upstream: yes {zone}"),
    ] {
        assert_eq!(servers(tcp, "forward-a.example"), "[tcp://192.0.2.1:53]", "{tcp}");
    }
    for tls in [
        format!("{zone} forward-tls-upstream: yes"),
        format!("{zone} forward-ssl-upstream: yes"),
        format!("server: tls-upstream: yes {zone}"),
        format!("server: ssl-upstream: yes {zone}"),
    ] {
        let system = format!("server: tls-system-cert: yes {tls}");
        let chain = "[{address: tls://192.0.2.1:853, verify: chain}]";
        assert_eq!(servers(&system, "forward-a.example"), chain, "{tls}");
        let named = tls.replace("192.0.2.1", "192.0.2.1#dns.example");
        let proven = "[{address: tls://192.0.2.1:853#dns.example}]";
        assert_eq!(servers(&named, "forward-a.example"), proven, "{named}");
        let without = servers(&tls, "forward-a.example");
        assert_eq!(without, "[{address: tls://192.0.2.1:853, verify: false}]", "{tls}");
        for bundle in ["tls-cert-bundle", "ssl-cert-bundle"] {
            let own = servers(&format!("server: {bundle}: /ca.pem {tls}"), "forward-a.example");
            assert_eq!(own, "[{address: tls://192.0.2.1:853, roots: /ca.pem, verify: chain}]", "{tls}");
        }
        let silent =
            servers(&format!("server: tls-system-cert: yes tls-use-sni: no {tls}"), "forward-a.example");
        assert_eq!(silent, "[{address: tls://192.0.2.1:853, verify: chain, sni: false}]", "{tls}");
    }
    let stub = "stub-zone: name: a.example stub-addr: 192.0.2.1";
    check(&format!("{stub} stub-tcp-upstream: yes"), "resolvers/default/zones/a.example/tcp-only", "true");
    for keyword in ["stub-tls-upstream", "stub-ssl-upstream"] {
        let text = format!("server: tls-system-cert: yes {stub}#dns.example {keyword}: yes");
        assert_eq!(servers(&text, "stub-a.example"), "[{address: tls://192.0.2.1:853#dns.example}]");
        let (entries, found) = read_files(&[("u.conf", &text)]);
        assert_eq!(at(&entries, "resolvers/default/zones/a.example"), "{forward: stub-a.example}");
        assert!(found[0].contains("are asked over TLS as forwarders are"), "{found:?}");
    }
}

#[test]
fn ports_of_encrypted_listeners_have_several_names() {
    for keyword in [
        "tls-port",
        "ssl-port",
        "tls-additional-port",
        "tls-additional-ports",
        "additional-tls-port",
        "additional-ssl-port",
    ] {
        for (pem, key) in [("tls-service-pem", "tls-service-key"), ("ssl-service-pem", "ssl-service-key")] {
            let text =
                format!("server: interface: 192.0.2.1@8853 {keyword}: 8853 {pem}: /c.pem {key}: /k.pem");
            let entries = read_files(&[("u.conf", &text)]).0;
            assert_eq!(at(&entries, "listen"), "[{at: 192.0.2.1:8853, transport: [tls]}]", "{keyword}");
            assert_eq!(at(&entries, "tls/certificates"), "[{certificate: /c.pem, key: /k.pem}]", "{pem}");
        }
    }
}

#[test]
fn allow_cookie_lets_in_who_shows_a_cookie() {
    let text = "server: access-control: 192.0.2.0/24 allow_cookie";
    check(text, "cookies/required", "[192.0.2.0/24]");
    check(text, "allow", "[127.0.0.0/8, ::1/128, 192.0.2.0/24]");
}

#[test]
fn allow_cookie_of_an_interface_is_for_clients_that_no_prefix_names() {
    let text = "server: interface: 192.0.2.1 interface-action: 192.0.2.1 allow_cookie\n\
                access-control: 198.51.100.0/24 allow";
    check(text, "cookies/required-on", "[interface-192-0-2-1-53]");
    check(text, "cookies/not-required", "[198.51.100.0/24, 127.0.0.0/8, ::1/128]");
    check(text, "cookies/required", "");
    check(text, "allow", "[any]");
    check(text, "listen", "[{at: 192.0.2.1:53, transport: [udp, tcp], name: interface-192-0-2-1-53}]");
}

#[test]
fn trusted_keys_file_is_a_file_of_anchors_as_trust_anchor_file_is() {
    let text = "server: trust-anchor-file: /a trusted-keys-file: \"/keys/*.conf\" trust-anchor-file: /b";
    check(text, "resolvers/default/trust-anchors", "[/a, /keys/*.conf, /b]");
    check(text, "resolvers/default/validation", "on");
}

#[test]
fn dns64_synthall_has_no_address_of_ipv6_count() {
    let text = "server: module-config: \"dns64 iterator\" dns64-synthall: yes dns64-ignore-aaaa: example.org";
    let policy = at(&read_files(&[("u.conf", text)]).0, "policy/main");
    assert!(policy.contains(", dns64(64:ff9b::/96, ignore-ipv6, ignore-cd, pointers direct),"), "{policy}");
}

#[test]
fn lan_zones_are_those_of_unbound() {
    check("server: insecure-lan-zones: no", "resolvers/default/negative-trust-anchors", "");
    let (entries, found) =
        read_files(&[("u.conf", "server: insecure-lan-zones: yes unblock-lan-zones: yes")]);
    assert!(found.is_empty(), "{found:?}");
    let zones = at(&entries, "resolvers/default/negative-trust-anchors");
    assert_eq!(zones.matches(".arpa").count(), 14 + 16 + 64 + 1, "{zones}");
    for zone in
        ["[10.in-addr.arpa,", " 31.172.in-addr.arpa,", " 127.100.in-addr.arpa,", " 8.b.d.0.1.0.0.2.ip6.arpa,"]
    {
        assert!(zones.contains(zone), "{zone} {zones}");
    }
    for zone in [" 127.in-addr.arpa", " 1.0.0.0.0", "32.172", "128.100"] {
        assert!(!zones.contains(zone), "{zone} {zones}");
    }
    let policy = at(&entries, "policy/local-zones");
    assert!(policy.starts_with("[{if: qname in suffix:10.in-addr.arpa|"), "{policy}");
    assert!(policy.ends_with("0.0.ip6.arpa, do: [return]}, local]"), "{policy}");
}

#[test]
fn of_several_auto_trust_anchor_file_the_first_is_written_and_the_others_are_read() {
    let twice = "server:\nauto-trust-anchor-file: a\nauto-trust-anchor-file: b";
    says(
        twice,
        &[
            "u.conf:3:25: warning: of several \"auto-trust-anchor-file\" the first is written: the keys of all zones are in it",
        ],
    );
    let entries =
        read_files(&[("u.conf", "server: auto-trust-anchor-file: /a auto-trust-anchor-file: /b")]).0;
    assert_eq!(at(&entries, "resolvers/default/trust-anchor-state"), "/a");
    assert_eq!(at(&entries, "resolvers/default/trust-anchors"), "[/b]");
}

#[test]
fn what_comes_beside_answers_and_without_rd_is_as_there() {
    for (path, expected) in [
        ("resolvers/default/refer-without-rd", "true"),
        ("resolvers/default/minimal-expansions", "true"),
        ("server/fill-truncated", "true"),
    ] {
        check("server:", path, expected);
    }
    check("server: iter-scrub-promiscuous: no", "resolvers/default/minimal-expansions", "false");
}
