//! Sockets, and what clients get by where they come from and how much they ask.

use super::{at, check, read_files, says};

const INTERFACES: &str = "server: interface: 192.0.2.1 interface: 192.0.2.2@54 interface: 192.0.2.3 ";

#[test]
fn sockets_are_bound_and_marked_as_the_file_says() {
    check("server: so-rcvbuf: 4m so-sndbuf: 0", "sockets", "{receive-buffer: 4194304B}");
    check(
        "server: ip-freebind: yes ip-transparent: yes tcp-mss: 1200 outgoing-tcp-mss: 1100",
        "sockets",
        "{free-bind: true, transparent: true, tcp-mss: 1200}",
    );
    check("server: ip-dscp: 46 outgoing-tcp-mss: 1100", "outgoing", "{dscp: 46, tcp-mss: 1100}");
    check(
        "server: outgoing-interface: 192.0.2.1 outgoing-interface: 2001:db8::/64 outgoing-num-tcp: 20",
        "outgoing",
        "{sources: [192.0.2.1, 2001:db8::/64], connections: 20}",
    );
    check("server: prefer-ip4: yes", "resolvers/default/prefer", "ipv4");
    check("server: prefer-ip6: yes", "resolvers/default/prefer", "ipv6");
    let text = "server: tcp-upstream: yes forward-zone: name: a forward-addr: 192.0.2.1";
    check(text, "resolvers/default/tcp-only", "true");
    check(text, "upstreams/forward-a/servers", "[tcp://192.0.2.1:53]");
    says(
        "server: outgoing-interface: eth0",
        &[
            "u.conf:1:29: error: \"eth0\" is not an address: expected one such as 192.0.2.1, or a prefix of IPv6",
        ],
    );
}

#[test]
fn edns_client_string_is_for_servers_of_a_prefix() {
    check(
        "server: edns-client-string: 192.0.2.0/24 branch-7 edns-client-string-opcode: 65002",
        "outgoing/options",
        "[{servers: 192.0.2.0/24, code: 65002, text: branch-7}]",
    );
}

#[test]
fn ports_are_permitted_and_avoided_in_the_order_of_the_file() {
    let ports = |text: &str| {
        let (entries, found) = read_files(&[("u.conf", &format!("server: {text}"))]);
        (at(&entries, "outgoing/ports"), found.len())
    };
    let check = |text: &str, expect: &str| assert_eq!(ports(text), (expect.to_owned(), 0), "{text}");
    check("port: 53", "");
    check("outgoing-port-avoid: 3200-3208", "[1024-3199, 3209-65535]");
    check("outgoing-port-avoid: 0-65000 outgoing-port-avoid: 65535", "[65001-65534]");
    check("outgoing-port-avoid: 0-65535 outgoing-port-permit: 4000", "[4000-4000]");
    check("outgoing-port-permit: 4000 outgoing-port-avoid: 0-65533", "[65534-65535]");
    assert_eq!(ports("outgoing-port-avoid: 0-65535"), (String::new(), 1), "none is left");
    assert_eq!(ports("outgoing-port-permit: 9-8").1, 1);
}

#[test]
fn rates_are_those_of_zones_and_of_clients() {
    check(
        "server: ratelimit: 1000 ratelimit-for-domain: example.org. 50 ratelimit-below-domain: example.org 0 ratelimit-backoff: yes",
        "resolvers/default/zone-rate",
        "{per-second: 1000, zones: {example.org: {per-second: 50, below: off}}, pass: 10, backoff: true}",
    );
    check("server: ratelimit-factor: 5", "resolvers/default/zone-rate", "");
    check(
        "server: ip-ratelimit: 100 ip-ratelimit-cookie: 500 ip-ratelimit-backoff: yes",
        "limits/rate",
        "{with-cookie: 500, backoff: true, per-second: 100, burst: 100, ipv4-prefix: 32, ipv6-prefix: 128, exempt: [], pass: 10, slip: 0}",
    );
    says(
        "server: ip-ratelimit-cookie: 5\n",
        &["u.conf:1:30: warning: \"ip-ratelimit-cookie\" has no effect without \"ip-ratelimit\""],
    );
    says(
        "server: ratelimit-for-domain: a fast\n",
        &["u.conf:1:33: error: \"fast\" is no rate: expected queries a second, or 0 for any number"],
    );
}

#[test]
fn what_is_bogus_and_for_whom_is_that_of_the_file() {
    check("server: ignore-cd-flag: yes", "resolvers/default/ignore-cd", "true");
    check(
        "server: caps-exempt: a caps-whitelist: b.example.",
        "resolvers/default/exact-case",
        "[a, b.example.]",
    );
    check("server: val-bogus-ttl: 5", "resolvers/default/bogus-ttl", "5s");
    check("server: port: 53", "resolvers/default/bogus-ttl", "60s");
    check("server: port: 53", "resolvers/default/signature-skew", "{min: 3600s, max: 86400s}");
    check("server: val-sig-skew-max: 60", "resolvers/default/signature-skew", "{min: 60s, max: 60s}");
}

#[test]
fn interface_automatic_ports_and_http_notls_downstream_say_what_is_listened_on() {
    check(
        "server: interface-automatic: yes interface-automatic-ports: \"53 784\" do-ip6: no",
        "listen",
        "[0.0.0.0:53, 0.0.0.0:784]",
    );
    check(
        "server: interface: 192.0.2.1@8080 https-port: 8080 http-notls-downstream: yes http-endpoint: /q",
        "listen",
        "[{at: 192.0.2.1:8080, transport: [http], paths: [/q]}]",
    );
}

#[test]
fn tcp_connection_limit_is_for_networks() {
    check(
        "server: tcp-connection-limit: 192.0.2.0/24 20 tcp-connection-limit: 2001:db8::1 0",
        "limits/tcp/networks",
        "[{prefix: 192.0.2.0/24, connections: 20}, {prefix: 2001:db8::1/128, connections: 0}]",
    );
    says(
        "server: tcp-connection-limit: 192.0.2.0/24 x",
        &[
            "u.conf:1:9: error: \"192.0.2.0/24 x\" is no limit: expected a prefix and a number, such as 192.0.2.0/24 20",
        ],
    );
}

#[test]
fn tls_ciphers_and_tls_ciphersuites_are_offered() {
    check(
        "server: tls-ciphersuites: TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384 tls-ciphers: ECDHE-RSA-AES128-GCM-SHA256",
        "tls/ciphers",
        "[TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]",
    );
    check(
        "server: tls-ciphers: ECDHE-ECDSA-AES128-GCM-SHA256",
        "tls/ciphers",
        "[TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]",
    );
    let (_, found) = read_files(&[("u.conf", "server: tls-ciphers: AES256-SHA:ECDHE-RSA-AES128-GCM-SHA256")]);
    assert_eq!(found, ["u.conf:1:22: warning: the cipher suite \"AES256-SHA\" is not offered"]);
}

#[test]
fn cookie_secret_file_is_read_where_cookies_are_answered() {
    check(
        "server: answer-cookie: yes directory: /d cookie-secret-file: c",
        "cookies",
        "{enabled: true, secrets-file: /d/c}",
    );
    check("server: cookie-secret-file: /c", "cookies", "{enabled: false}");
}

#[test]
fn proxy_protocol_port_has_headers_from_those_that_may_ask() {
    let text = "server: interface: 192.0.2.1@54 interface: 192.0.2.1 proxy-protocol-port: 54\n";
    for (more, proxies) in [
        ("", "127.0.0.0/8, ::1/128"),
        (
            "access-control: 10.0.0.0/8 refuse access-control: 10.9.0.0/16 allow_cookie access-control: ::1 deny",
            "127.0.0.0/8, 10.9.0.0/16",
        ),
        // Whoever is not named may ask on this interface.
        (
            "access-control: 128.0.0.0/1 deny interface-action: 192.0.2.1@54 allow",
            "0.0.0.0/1, ::/0, 127.0.0.0/8, ::1/128",
        ),
    ] {
        let (entries, _) = read_files(&[("u.conf", &format!("{text}{more}"))]);
        let listen = at(&entries, "listen");
        assert!(listen.contains(&format!("proxy-protocol-from: [{proxies}]")), "{more}: {listen}");
    }
}

#[test]
fn interface_action_is_for_clients_that_no_prefix_names() {
    let text = format!("{INTERFACES} access-control: 10.0.0.0/8 refuse interface-action: 192.0.2.1 allow");
    check(&text, "allow", "[any]");
    let listen = "[{at: 192.0.2.1:53, transport: [udp, tcp], name: interface-192-0-2-1-53}, 192.0.2.2:54, 192.0.2.3:53]";
    check(&text, "listen", listen);
    check(
        &text,
        "policy/main",
        "[{if: client in 10.0.0.0/8, do: [reject(refused)]}, \
         {if: not (client in 10.0.0.0/8|127.0.0.0/8|::1/128 or \
         (listener == interface-192-0-2-1-53 and not client in 10.0.0.0/8|127.0.0.0/8|::1/128)), do: [reject(refused)]}, \
         call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), recurse]",
    );
    let text =
        format!("{INTERFACES} interface-action: 192.0.2.2@54 deny interface-action: 192.0.2.3 allow_snoop");
    check(
        &text,
        "policy/main",
        "[{if: (listener == interface-192-0-2-2-54 and not client in 127.0.0.0/8|::1/128), do: [drop]}, \
         {if: not (client in 127.0.0.0/8|::1/128 or (listener == interface-192-0-2-3-53 and not client in 127.0.0.0/8|::1/128)), \
         do: [reject(refused)]}, call(local-zones), \
         {if: not rd and not (listener == interface-192-0-2-3-53 and not client in 127.0.0.0/8|::1/128), do: respond(refused, ede 20)}, \
         cache(main, without-rd), recurse]",
    );
    says(
        "server: interface: 192.0.2.1 interface-action: 192.0.2.9 allow",
        &["u.conf:1:48: error: there is no \"interface: 192.0.2.9\""],
    );
}

#[test]
fn interface_view_and_interface_tag_are_for_clients_that_no_prefix_names() {
    let text = format!(
        "{INTERFACES} interface-view: 192.0.2.1 v interface-tag: 192.0.2.3 t interface-tag-action: 192.0.2.3 t refuse
         define-tag: t local-zone: x.example static local-zone-tag: x.example t
         view: name: v local-zone: y.example always_nxdomain"
    );
    let main = at(&read_files(&[("u.conf", &text)]).0, "policy/main");
    let at_one = "(listener == interface-192-0-2-1-53 and not client in 127.0.0.0/8|::1/128)";
    assert!(main.contains(&format!("{{if: {at_one}, do: [call(local-zones-v)]}}")), "{main}");
    assert!(main.contains(&format!("{{if: not {at_one}, do: [call(local-zones)]}}")), "{main}");
    check(
        &text,
        "policy/local-zones",
        "[{if: (listener == interface-192-0-2-3-53 and not client in 127.0.0.0/8|::1/128) and qname in suffix:x.example, \
         do: [respond(refused, authoritative)]}, \
         {if: (listener == interface-192-0-2-3-53 and not client in 127.0.0.0/8|::1/128) and qname in suffix:x.example, \
         do: [respond(nxdomain, authoritative)]}, local]",
    );
    says(
        "server: interface: 192.0.2.1 interface-view: 192.0.2.1 x",
        &["u.conf:1:56: error: there is no view \"x\""],
    );
}

#[test]
fn local_zones_of_the_types_block_a_wdata_and_block_aaaa_wdata() {
    for (kind, rtype) in [("block_a_wdata", "A"), ("block_aaaa_wdata", "AAAA")] {
        check(
            &format!("server: local-zone: x.example {kind} local-data: 'www.x.example TXT here'"),
            "policy/local-zones",
            &format!(
                "[{{if: qtype == TXT and qname in exact:www.x.example, do: [records(local-data)]}}, \
                 {{if: qname in suffix:x.example and qtype == {rtype}, do: [respond(noerror, authoritative)]}}, \
                 {{if: qname in suffix:x.example, do: [return]}}, records(local-data), local]"
            ),
        );
    }
}

#[test]
fn local_zones_of_the_types_noview_and_ipset() {
    let text = "server: access-control-view: 192.0.2.0/24 v local-zone: set.example ipset
        ipset: name-v4: four name-v6: six
        view: name: v local-zone: x.example static local-zone: y.x.example noview";
    check(
        text,
        "policy/local-zones",
        "[{if: qname in suffix:set.example, do: [ipset(set4 four, set6 six)]}, \
         {if: qname in suffix:set.example, do: [return]}, local]",
    );
    check(
        text,
        "policy/local-zones-v",
        "[{if: qname in suffix:y.x.example, do: [return]}, \
         {if: qname in suffix:x.example, do: [respond(nxdomain, authoritative)]}, local]",
    );
    // With view-first the zones of all come next, without it none does.
    let first = format!("{text} view-first: yes");
    check(
        &first,
        "policy/local-zones-v",
        "[{if: qname in suffix:y.x.example, do: [return]}, \
         {if: qname in suffix:x.example, do: [respond(nxdomain, authoritative)]}]",
    );
    says(
        "server: local-zone: set.example ipset",
        &[
            "u.conf:1:9: error: the section \"ipset\" names no set for this zone: expected \"name-v4:\" or \"name-v6:\"",
        ],
    );
}
