//! Keywords of `server:` from how it resolves on.

use super::{check_effect, keywords};

keywords! {
    TESTED: "server";
    target_fetch_policy: "", "\"2 1 0\"" => "resolvers/default/limits/glueless-at-once: 2";
    harden_short_bufsize: "", "no"
        => "warning: \"harden-short-bufsize\" has no effect: smaller sizes always count as 512";
    harden_large_queries: "", "yes" => "limits/query-size: 512";
    harden_glue: "", "no"
        => "warning: \"harden-glue\" has no effect: glue serves the delegation that it came with, and \
            nothing else";
    harden_unverified_glue: "", "no"
        => "warning: \"harden-unverified-glue\" has no effect: glue serves the delegation that it came \
            with, and nothing else";
    harden_dnssec_stripped: "", "no" => "resolvers/default/require-anchor-keys: false";
    harden_below_nxdomain: "", "no"
        => "warning: \"harden-below-nxdomain\" has no effect: what is not there in a signed zone has \
            nothing below it: \"aggressive-nsec\"";
    harden_referral_path: "", "yes"
        => "warning: \"harden-referral-path\" has no effect: referrals only say whom to ask, and answers \
            are believed by their signatures";
    harden_algo_downgrade: "", "yes" => "resolvers/default/require-all-algorithms: true";
    harden_unknown_additional: "", "no"
        => "warning: \"harden-unknown-additional\" has no effect: nothing is believed of a server that it \
            was not asked for";
    use_caps_for_id: "forward-zone: name: . forward-addr: 192.0.2.1 server:", "yes"
        => "upstreams/root-forward/case-randomisation: true";
    caps_exempt: "use-caps-for-id: yes forward-zone: name: . forward-addr: 192.0.2.1 server:", "example.org"
        => "resolvers/default/exact-case: [example.org]; upstreams/root-forward/exact-case: [example.org]";
    caps_whitelist: "use-caps-for-id: yes forward-zone: name: . forward-addr: 192.0.2.1 server:", "example.org"
        => "resolvers/default/exact-case: [example.org]; upstreams/root-forward/exact-case: [example.org]";
    qname_minimisation: "", "no"
        => "resolvers/default/qname-minimisation: off; resolvers/default/qname-minimisation-type: false";
    qname_minimisation_strict: "", "yes" => "resolvers/default/qname-minimisation: strict";
    aggressive_nsec: "", "no" => "resolvers/default/aggressive-nsec: false";
    private_address: "", "192.168.0.0/16"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
            recurse, rebind(filter-records, address 192.168.0.0/16)]; resolvers/default/private-addresses: [192.168.0.0/16]";
    private_domain: "private-address: 192.168.0.0/16", "example.org"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
            recurse, rebind(filter-records, address 192.168.0.0/16, except suffix:example.org)]; resolvers/default/private-domains: [example.org]";
    unwanted_reply_threshold: "", "7"
        => "warning: \"unwanted-reply-threshold\" has no effect: a query that gets wrong replies goes on \
            over TCP";
    do_not_query_address: "", "192.0.2.0/24" => "resolvers/default/never-ask: [192.0.2.0/24]";
    do_not_query_localhost: "", "no" => "resolvers/default/ask-loopback: true";
    prefetch: "", "yes" => "cache/main/prefetch: 10%";
    prefetch_key: "", "no"
        => "warning: \"prefetch-key\" has no effect: keys are asked for as soon as the DS records are seen";
    deny_any: "", "yes"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, {if: qtype == ANY, \
            do: [respond(answer '@ 3600 HINFO \"RFC8482\" \"\"')]}, cache(main), recurse]";
    rrset_roundrobin: "", "no" => "server/rotate: false";
    minimal_responses: "iter-scrub-promiscuous: no", "no"
        => "resolvers/default/minimal-additional: false; resolvers/default/minimal-responses: false";
    disable_dnssec_lame_check: "", "yes"
        => "warning: \"disable-dnssec-lame-check\" has no effect: other servers are asked before an answer \
            counts as bogus";
    module_config:
        "trust-anchor: \"example.org. DS 20326 8 2 \
         e06d44b80b8f1d39a95c0b0d7c65d08458e880409bbc683457104237c7f8ec8d\"",
        "\"iterator\""
        => "resolvers/default/validation: relay";
    trust_anchor_file: "", "/etc/anchor"
        => "resolvers/default/trust-anchors: [/etc/anchor]; resolvers/default/validation: on";
    auto_trust_anchor_file: "", "/etc/anchor"
        => "resolvers/default/trust-anchor-state: /etc/anchor; resolvers/default/validation: on";
    trust_anchor:
        "",
        "\"example.org. DS 20326 8 2 e06d44b80b8f1d39a95c0b0d7c65d08458e880409bbc683457104237c7f8ec8d\""
        => "resolvers/default/trust-anchor-records: [example.org. DS 20326 8 2 \
            e06d44b80b8f1d39a95c0b0d7c65d08458e880409bbc683457104237c7f8ec8d]; resolvers/default/validation: \
            on";
    trusted_keys_file: "", "/etc/trusted"
        => "resolvers/default/trust-anchors: [/etc/trusted]; resolvers/default/validation: on";
    trust_anchor_signaling: "", "no" => "resolvers/default/trust-anchor-signaling: false";
    root_key_sentinel: "", "no" => "resolvers/default/root-key-sentinel: false";
    domain_insecure: "", "example.org" => "resolvers/default/negative-trust-anchors: [example.org]";
    val_override_date: "", "20260101000000" => "resolvers/default/signature-time: 20260101000000";
    val_sig_skew_min: "", "3607" => "resolvers/default/signature-skew/min: 3607s";
    val_sig_skew_max: "", "86407" => "resolvers/default/signature-skew/max: 86407s";
    val_max_restart: "", "12"
        => "warning: \"val-max-restart\" has no effect: other servers are asked before an answer counts as \
            bogus";
    val_bogus_ttl: "", "67" => "resolvers/default/bogus-ttl: 67s";
    val_clean_additional: "", "no"
        => "warning: \"val-clean-additional\" has no effect: what stands beside an answer is left out \
            unless it is as secure as the answer";
    val_log_level: "", "7"
        => "policy/main: [query-lines(bogus, reason), call(local-zones), {if: not rd, do: respond(refused, \
            ede 20)}, cache(main), recurse]";
    val_permissive_mode:
        "trust-anchor: \"example.org. DS 20326 8 2 \
         e06d44b80b8f1d39a95c0b0d7c65d08458e880409bbc683457104237c7f8ec8d\"",
        "yes"
        => "resolvers/default/validation: permissive";
    ignore_cd_flag: "", "yes" => "resolvers/default/ignore-cd: true";
    disable_edns_do: "", "yes" => "edns/dnssec: false; resolvers/default/validation: off";
    serve_expired: "", "yes"
        => "cache/main/stale: 86400s; cache/main/stale-client-timeout: 1800ms; cache/main/stale-ttl: 30s";
    serve_expired_ttl: "serve-expired: yes", "86407" => "cache/main/stale: 86407s";
    serve_expired_ttl_reset: "serve-expired: yes", "yes" => "cache/main/stale-restarts: true";
    serve_expired_reply_ttl: "serve-expired: yes", "37" => "cache/main/stale-ttl: 37s";
    serve_expired_client_timeout: "serve-expired: yes", "1807" => "cache/main/stale-client-timeout: 1807ms";
    serve_original_ttl: "", "yes"
        => "cache/main/max-ttl: 2592000s; cache/main/original-ttl: true; resolvers/default/max-ttl: \
            2592000s";
    val_nsec3_keysize_iterations: "", "\"1024 10\"" => "resolvers/default/nsec3-iterations: 10";
    zonemd_permissive_mode:
        "auth-zone: name: example.org primary: 192.0.2.1 zonemd-check: yes server:",
        "yes"
        => "zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], keep: \
            false, zonemd: log}]";
    add_holddown: "", "2592007" => "resolvers/default/add-hold-down: 2592007s";
    del_holddown: "", "2592007" => "resolvers/default/remove-hold-down: 2592007s";
    keep_missing: "", "31622407" => "resolvers/default/keep-missing: 31622407s";
    permit_small_holddown: "", "no" => "warning: \"permit-small-holddown\" has no effect: any time is taken";
    key_cache_size: "", "16m"
        => "warning: \"key-cache-size\" has no effect: what is learned of zones is in one cache: \
            \"rrset-cache-size\"";
    key_cache_slabs: "", "8"
        => "warning: \"key-cache-slabs\" has no effect: readers of the caches take no locks, so nothing is \
            divided";
    neg_cache_size: "", "16m"
        => "warning: \"neg-cache-size\" has no effect: what is learned of zones is in one cache: \
            \"rrset-cache-size\"";
    unblock_lan_zones: "", "yes" => "policy/local-zones: [{if: qname in …";
    insecure_lan_zones: "", "yes"
        => "resolvers/default/negative-trust-anchors: [10.in-addr.arpa, 168.192.in-addr.arpa, \
            0.in-addr.arpa, 254.169.in-addr.arpa, 2.0.192.in-addr.arpa, 100.51.198.in-addr.arpa, \
            113.0.203.in-addr.arpa, 255.255.255.255.in-addr.arpa, d.f.ip6.arpa, 8.e.f.ip6.arpa, \
            9.e.f.ip6.arpa, a.e.f.ip6.arpa, b.e.f.ip6.arpa, 8.b.d.0.1.0.0.2.ip6.arpa, 16.172.in-addr.arpa, \
            17.172.in-addr.arpa, 18.172.in-addr.arpa, …";
    local_zone: "", "example.org static"
        => "policy/local-zones: [{if: qname in suffix:example.org, do: [respond(nxdomain, \
            authoritative)]}, local]";
    local_data: "", "\"a.example. A 192.0.2.9\""
        => "policy/local-zones: [records(local-data), local]; records/local-data/synthesized-soa: false; \
            records/local-data/text: [a.example. A 192.0.2.9]";
    local_data_ptr: "", "\"192.0.2.9 a.example\""
        => "policy/local-zones: [records(built-in-data), local]; \
            records/built-in-data/synthesized-soa: false; records/built-in-data/text: \
            [9.2.0.192.in-addr.arpa. 3600 IN PTR a.example., 2.0.192.in-addr.arpa. 10800 IN SOA \
            2.0.192.in-addr.arpa. nobody.invalid. 1 3600 1200 604800 10800, \
            2.0.192.in-addr.arpa. 10800 IN NS 2.0.192.in-addr.arpa.]";
    local_zone_tag: "define-tag: \"one\" local-zone: example.org refuse", "example.org \"one\""
        => "policy/local-zones: [local]";
    local_zone_override: "local-zone: example.org refuse", "example.org 192.0.2.0/24 always_nxdomain"
        => "policy/local-zones: [{if: client in 192.0.2.0/24 and qname in suffix:example.org, do: \
            [respond(nxdomain, authoritative)]}, {if: qname in suffix:example.org, do: [respond(refused, \
            authoritative)]}, local]";
    response_ip: "module-config: \"respip validator iterator\"", "192.0.2.0/24 deny"
        => "policy/find: [cache(main), recurse]; policy/main: [call(local-zones), {if: not rd, do: \
            respond(refused, ede 20)}, ask(find), {if: answer-address in 192.0.2.0/24, do: [drop]}]";
    response_ip_data:
        "module-config: \"respip validator iterator\" response-ip: 192.0.2.0/24 redirect",
        "192.0.2.0/24 \"A 192.0.2.9\""
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ask(find), {if: \
            answer-address in 192.0.2.0/24 and qtype == A, do: [respond(answer \"@ 3600 A 192.0.2.9\")]}, \
            {if: answer-address in 192.0.2.0/24, do: [respond(noerror)]}]";
    response_ip_tag:
        "module-config: \"respip validator iterator\" define-tag: \"one\" response-ip: 192.0.2.0/24 deny \
         access-control-tag: 198.51.100.0/24 \"one\" access-control-tag-action: 198.51.100.0/24 one \
         always_nxdomain",
        "192.0.2.0/24 \"one\""
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ask(find), {if: \
            client in 198.51.100.0/24 and answer-address in 192.0.2.0/24, do: [respond(nxdomain)]}, {if: \
            answer-address in 192.0.2.0/24, do: [drop]}]";
    ratelimit: "", "7"
        => "resolvers/default/zone-rate/backoff: false; resolvers/default/zone-rate/pass: 10; \
            resolvers/default/zone-rate/per-second: 7";
    ratelimit_size: "", "16m" => "warning: \"ratelimit-size\" has no effect: the table has a fixed size";
    ratelimit_slabs: "", "8"
        => "warning: \"ratelimit-slabs\" has no effect: readers of the caches take no locks, so nothing is \
            divided";
    ratelimit_factor: "ratelimit: 100", "17" => "resolvers/default/zone-rate/pass: 17";
    ratelimit_backoff: "ratelimit: 100", "yes" => "resolvers/default/zone-rate/backoff: true";
    ratelimit_for_domain: "", "example.org 5"
        => "resolvers/default/zone-rate/backoff: false; resolvers/default/zone-rate/pass: 10; \
            resolvers/default/zone-rate/zones/example.org/per-second: 5";
    ratelimit_below_domain: "", "example.org 5"
        => "resolvers/default/zone-rate/backoff: false; resolvers/default/zone-rate/pass: 10; \
            resolvers/default/zone-rate/zones/example.org/below: 5";
    ip_ratelimit: "", "7"
        => "limits/rate/burst: 7; limits/rate/exempt: []; limits/rate/ipv4-prefix: 32; \
            limits/rate/ipv6-prefix: 128; limits/rate/pass: 10; limits/rate/per-second: 7; \
            limits/rate/slip: 0";
    ip_ratelimit_cookie: "", "7" => "warning: \"ip-ratelimit-cookie\" has no effect without \"ip-ratelimit\"";
    ip_ratelimit_size: "", "16m"
        => "warning: \"ip-ratelimit-size\" has no effect: the table has a fixed size";
    ip_ratelimit_slabs: "", "8"
        => "warning: \"ip-ratelimit-slabs\" has no effect: readers of the caches take no locks, so nothing \
            is divided";
    ip_ratelimit_factor: "ip-ratelimit: 100", "17" => "limits/rate/pass: 17";
    ip_ratelimit_backoff: "ip-ratelimit: 100", "yes" => "limits/rate/backoff: true";
    outbound_msg_retry: "", "12" => "resolvers/default/attempts: 12";
    max_sent_count: "", "39" => "resolvers/default/limits/queries-per-zone: 39";
    max_query_restarts: "", "18" => "resolvers/default/limits/aliases: 18";
    iter_scrub_ns: "", "27" => "resolvers/default/name-servers: 27";
    iter_scrub_cname: "", "18"
        => "warning: \"iter-scrub-cname\" has no effect: aliases of one reply count as those of several \
            do: \"max-query-restarts\"";
    iter_scrub_rrsig: "", "15"
        => "warning: \"iter-scrub-rrsig\" has no effect: eight signatures of an RRset are looked at";
    max_global_quota: "", "207" => "resolvers/default/limits/queries: 207";
    iter_scrub_promiscuous: "minimal-responses: no", "no"
        => "resolvers/default/minimal-expansions: false; resolvers/default/minimal-responses: false";
    fast_server_permil: "", "7"
        => "warning: \"fast-server-permil\" has no effect: servers are chosen at random among the nearly \
            best";
    fast_server_num: "", "10"
        => "warning: \"fast-server-num\" has no effect: servers are chosen at random among the nearly best";
    answer_cookie: "", "yes" => "cookies/enabled: true";
    cookie_secret: "answer-cookie: yes", "000102030405060708090a0b0c0d0e0f"
        => "cookies/secret: 000102030405060708090a0b0c0d0e0f";
    cookie_secret_file: "answer-cookie: yes", "/etc/cookie" => "cookies/secrets-file: /etc/cookie";
    edns_client_string: "", "192.0.2.0/24 abcd"
        => "outgoing/options: [{servers: 192.0.2.0/24, code: 65001, text: abcd}]";
    edns_client_string_opcode: "edns-client-string: 192.0.2.0/24 abcd", "65008"
        => "outgoing/options: [{servers: 192.0.2.0/24, code: 65008, text: abcd}]";
    ede: "", "yes" => "edns/extended-errors: true";
    ede_serve_expired: "", "no"
        => "warning: \"ede-serve-expired\" has no effect: stale answers say so where \"ede\" is on";
    dns_error_reporting: "", "yes" => "resolvers/default/error-reports: true";
    ipsecmod_enabled: "", "no"
        => "warning: \"ipsecmod-enabled\" has no effect: IPsec is not set up by a resolver";
    ipsecmod_hook: "", "/bin/hook"
        => "warning: \"ipsecmod-hook\" has no effect: IPsec is not set up by a resolver";
    ipsecmod_strict: "", "yes"
        => "warning: \"ipsecmod-strict\" has no effect: IPsec is not set up by a resolver";
    ipsecmod_max_ttl: "", "3607"
        => "warning: \"ipsecmod-max-ttl\" has no effect: IPsec is not set up by a resolver";
    ipsecmod_ignore_bogus: "", "yes"
        => "warning: \"ipsecmod-ignore-bogus\" has no effect: IPsec is not set up by a resolver";
    ipsecmod_allow: "", "example.org"
        => "warning: \"ipsecmod-allow\" has no effect: IPsec is not set up by a resolver";
    ipsecmod_whitelist: "", "example.org"
        => "warning: \"ipsecmod-whitelist\" has no effect: IPsec is not set up by a resolver";
    dns64_prefix: "module-config: \"dns64 validator iterator\"", "2001:db8::/96"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
            dns64(2001:db8::/96, pointers direct), recurse]";
    dns64_synthall: "module-config: \"dns64 validator iterator\"", "yes"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
            dns64(64:ff9b::/96, ignore-ipv6, ignore-cd, pointers direct), recurse]";
    dns64_ignore_aaaa: "module-config: \"dns64 validator iterator\"", "example.org"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), {if: \
            qname in suffix:example.org, do: dns64(64:ff9b::/96, ignore-ipv6, pointers direct)}, {if: not \
            qname in suffix:example.org, do: dns64(64:ff9b::/96, pointers direct)}, recurse]";
    do_nat64: "", "yes" => "resolvers/default/nat64: 64:ff9b::/96";
    nat64_prefix: "do-nat64: yes", "2001:db8::/96" => "resolvers/default/nat64: 2001:db8::/96";
    send_client_subnet: "module-config: \"subnetcache validator iterator\"", "192.0.2.1"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ecs(client, ipv4 \
            24, ipv6 56, keep, private), cache(main), recurse]; resolvers/default/client-subnet/servers: \
            [192.0.2.1]";
    client_subnet_zone: "module-config: \"subnetcache validator iterator\"", "example.org"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ecs(client, ipv4 \
            24, ipv6 56, keep, private), cache(main), recurse]; resolvers/default/client-subnet/zones: \
            [example.org]";
    client_subnet_always_forward: "", "yes"
        => "warning: \"client-subnet-always-forward\" has no effect: subnets that clients send go to \
            listed servers alone, as all others do";
    max_client_subnet_ipv6:
        "module-config: \"subnetcache validator iterator\" send-client-subnet: 192.0.2.1",
        "48"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ecs(client, ipv4 \
            24, ipv6 48, keep, private), cache(main), recurse]";
    max_client_subnet_ipv4:
        "module-config: \"subnetcache validator iterator\" send-client-subnet: 192.0.2.1",
        "20"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ecs(client, ipv4 \
            20, ipv6 56, keep, private), cache(main), recurse]";
    min_client_subnet_ipv6:
        "module-config: \"subnetcache validator iterator\" send-client-subnet: 192.0.2.1",
        "7"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, {if: \
            subnet-ipv6-bits > 0 and subnet-ipv6-bits < 7, do: [respond(refused)]}, ecs(client, ipv4 24, \
            ipv6 56, keep, private), cache(main), recurse]";
    min_client_subnet_ipv4:
        "module-config: \"subnetcache validator iterator\" send-client-subnet: 192.0.2.1",
        "7"
        => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, {if: \
            subnet-ipv4-bits > 0 and subnet-ipv4-bits < 7, do: [respond(refused)]}, ecs(client, ipv4 24, \
            ipv6 56, keep, private), cache(main), recurse]";
    max_ecs_tree_size_ipv4:
        "module-config: \"subnetcache validator iterator\" send-client-subnet: 192.0.2.1",
        "107"
        => "warning: \"max-ecs-tree-size-ipv4\" has no effect: one bound holds for all answers in the \
            cache: \"msg-cache-size\"";
    max_ecs_tree_size_ipv6:
        "module-config: \"subnetcache validator iterator\" send-client-subnet: 192.0.2.1",
        "107"
        => "warning: \"max-ecs-tree-size-ipv6\" has no effect: one bound holds for all answers in the \
            cache: \"msg-cache-size\"";
    additional_ssl_port:
        "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@860",
        "860"
        => "listen: [{at: 127.0.0.1:860, transport: [tls]}]";
    additional_tls_port:
        "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@860",
        "860"
        => "listen: [{at: 127.0.0.1:860, transport: [tls]}]";
    tls_additional_ports:
        "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@860",
        "860"
        => "listen: [{at: 127.0.0.1:860, transport: [tls]}]";
    client_subnet_opcode: "", "7"
        => "warning: \"client-subnet-opcode\" has no effect: Unbound itself ignores it";
    dlv_anchor: "", "\"example.org. DS 1 8 2 00\""
        => "warning: \"dlv-anchor\" has no effect: Unbound itself ignores it";
    dlv_anchor_file: "", "/etc/anchor"
        => "warning: \"dlv-anchor-file\" has no effect: Unbound itself ignores it";
    fake_dsa: "", "yes" => "resolvers/default/believed-algorithms: [3, 6]";
    fake_sha1: "", "yes" => "resolvers/default/believed-algorithms: [3, 5, 6, 7]";
    infra_cache_lame_size: "", "16m"
        => "warning: \"infra-cache-lame-size\" has no effect: Unbound itself ignores it";
    infra_lame_ttl: "", "907" => "warning: \"infra-lame-ttl\" has no effect: Unbound itself ignores it";
    low_rtt: "", "7" => "warning: \"low-rtt\" has no effect: Unbound itself ignores it";
    low_rtt_pct: "", "7" => "warning: \"low-rtt-pct\" has no effect: Unbound itself ignores it";
    low_rtt_permil: "", "7" => "warning: \"low-rtt-permil\" has no effect: Unbound itself ignores it";
    shm_enable: "", "yes"
        => "warning: \"shm-enable\" has no effect: statistics are asked for over the control socket";
    shm_key: "", "7"
        => "warning: \"shm-key\" has no effect: statistics are asked for over the control socket";
}
