//! Keywords of `server:` up to what the server says of itself.

use super::{check_effect, keywords};

keywords! {
    TESTED: "server";
    verbosity: "", "2" => "log/level: debug";
    statistics_interval: "", "7" => "control/unbound/statistics/interval: 7s";
    statistics_cumulative: "", "yes" => "control/unbound/statistics/cumulative: true";
    extended_statistics: "", "yes" => "control/unbound/statistics/extended: true";
    statistics_inhibit_zero: "", "no" => "control/unbound/statistics/inhibit-zero: false";
    num_threads: "", "3"
        => "limits/tcp/connections: 30; limits/tcp/connections-per-client: 30; limits/waiting: 6144; \
            server/workers: 3";
    port: "", "5353" => "listen: [127.0.0.1:5353, [::1]:5353]";
    interface: "", "192.0.2.1@853" => "listen: [192.0.2.1:853]";
    ip_address: "", "192.0.2.1" => "listen: [192.0.2.1:53]";
    interface_automatic: "", "yes" => "listen: [0.0.0.0:53, [::]:53]";
    interface_automatic_ports: "interface-automatic: yes", "\"53 5353\""
        => "listen: [0.0.0.0:53, 0.0.0.0:5353, [::]:53, [::]:5353]";
    outgoing_interface: "", "192.0.2.1" => "outgoing/sources: [192.0.2.1]";
    outgoing_range: "", "4103"
        => "warning: \"outgoing-range\" has no effect: sockets are opened as they are needed, within the \
            limit of the process";
    outgoing_port_permit: "", "4000-4999" => "outgoing/ports: [1024-65535, 4000-4999]";
    outgoing_port_avoid: "", "1024-9999" => "outgoing/ports: [10000-65535]";
    outgoing_num_tcp: "", "17" => "outgoing/connections: 17";
    incoming_num_tcp: "", "17" => "limits/tcp/connections: 17; limits/tcp/connections-per-client: 17";
    edns_buffer_size: "", "1239" => "edns/announced-size: 1239; resolvers/default/udp-size: 1239";
    max_udp_size: "", "1239" => "edns/udp-size: 1239";
    stream_wait_size: "", "16m"
        => "warning: \"stream-wait-size\" has no effect: one bound holds for all connections: \
            \"limits.tcp.buffers\"";
    msg_buffer_size: "", "16m"
        => "warning: \"msg-buffer-size\" has no effect: a message has room for 65,535 octets";
    msg_cache_size: "", "16m" => "cache/main/size: 16384KiB";
    msg_cache_slabs: "", "8"
        => "warning: \"msg-cache-slabs\" has no effect: readers of the caches take no locks, so nothing is \
            divided";
    num_queries_per_thread: "", "2055" => "limits/waiting: 2055";
    jostle_timeout: "", "207"
        => "warning: \"jostle-timeout\" has no effect: where there is no place left, who has most queries \
            waiting loses his oldest";
    delay_close: "", "7" => "warning: \"delay-close\" has no effect: sockets to servers stay open";
    udp_connect: "", "no"
        => "warning: \"udp-connect\" has no effect: one socket asks many servers, and each reply has to \
            come from who was asked";
    unknown_server_time_limit: "", "383" => "resolvers/default/patience/unknown: 383ms";
    discard_timeout: "", "1907" => "limits/discard-timeout: 1907ms";
    wait_limit: "", "1007" => "limits/wait-limit: 1007";
    wait_limit_cookie: "", "10007" => "limits/wait-limit-with-cookie: 10007";
    wait_limit_netblock: "", "192.0.2.0/24 5"
        => "limits/wait-networks: [{prefix: 127.0.0.0/8, replies: off, with-cookie: off}, {prefix: \
            ::1/128, replies: off, with-cookie: off}, {prefix: 192.0.2.0/24, replies: 5}]";
    wait_limit_cookie_netblock: "", "192.0.2.0/24 5"
        => "limits/wait-networks: [{prefix: 127.0.0.0/8, replies: off, with-cookie: off}, {prefix: \
            ::1/128, replies: off, with-cookie: off}, {prefix: 192.0.2.0/24, with-cookie: 5}]";
    so_rcvbuf: "", "16m" => "sockets/receive-buffer: 16777216B";
    so_sndbuf: "", "16m" => "sockets/send-buffer: 16777216B";
    so_reuseport: "", "no"
        => "warning: \"so-reuseport\" has no effect: each worker has its own sockets in any case";
    ip_transparent: "", "yes" => "sockets/transparent: true";
    ip_freebind: "", "yes" => "sockets/free-bind: true";
    ip_dscp: "", "7" => "outgoing/dscp: 7; sockets/dscp: 7";
    rrset_cache_size: "", "16m" => "resolvers/default/cache-size: 16384KiB";
    rrset_cache_slabs: "", "8"
        => "warning: \"rrset-cache-slabs\" has no effect: readers of the caches take no locks, so nothing \
            is divided";
    cache_max_ttl: "", "86407" => "cache/main/max-ttl: 86407s; resolvers/default/max-ttl: 86407s";
    cache_min_ttl: "", "7" => "cache/main/min-ttl: 7s";
    cache_max_negative_ttl: "", "3607"
        => "cache/main/max-negative-ttl: 3607s; resolvers/default/max-negative-ttl: 3607s";
    cache_min_negative_ttl: "", "7" => "cache/main/min-negative-ttl: 7s";
    infra_host_ttl: "", "907" => "resolvers/default/lame-time: 907s";
    infra_cache_slabs: "", "8"
        => "warning: \"infra-cache-slabs\" has no effect: readers of the caches take no locks, so nothing \
            is divided";
    infra_cache_numhosts: "", "10007"
        => "warning: \"infra-cache-numhosts\" has no effect: the table of servers has one size";
    infra_cache_min_rtt: "", "57" => "resolvers/default/patience/min: 57ms";
    infra_cache_max_rtt: "", "120007"
        => "warning: \"infra-cache-max-rtt\" has no effect: another server is asked after two seconds in \
            any case: \"resolvers.*.patience.max\"";
    infra_keep_probing: "", "no"
        => "warning: \"infra-keep-probing\" has no effect: a silent server is tried again within two \
            seconds";
    define_tag: "local-zone: example.org refuse", "\"one two\" local-zone-tag: example.org \"two\""
        => "policy/local-zones: [local]";
    do_ip4: "", "no" => "listen: [[::1]:53]; resolvers/default/ipv4: false";
    do_ip6: "", "no" => "listen: [127.0.0.1:53]; resolvers/default/ipv6: false";
    prefer_ip4: "", "yes" => "resolvers/default/prefer: ipv4";
    prefer_ip6: "", "yes" => "resolvers/default/prefer: ipv6";
    do_udp: "", "no" => "listen: [{at: 127.0.0.1:53, transport: [tcp]}, {at: [::1]:53, transport: [tcp]}]";
    do_tcp: "", "no" => "listen: [{at: 127.0.0.1:53, transport: [udp]}, {at: [::1]:53, transport: [udp]}]";
    tcp_mss: "", "1220" => "sockets/tcp-mss: 1220";
    outgoing_tcp_mss: "", "1220" => "outgoing/tcp-mss: 1220";
    tcp_idle_timeout: "", "30007" => "limits/tcp/idle-timeout: 30007ms";
    tcp_reuse_timeout: "", "60007"
        => "warning: \"tcp-reuse-timeout\" has no effect: connections to servers have limits of their own";
    max_reuse_tcp_queries: "", "207"
        => "warning: \"max-reuse-tcp-queries\" has no effect: connections to servers have limits of their \
            own";
    tcp_auth_query_timeout: "", "3007"
        => "warning: \"tcp-auth-query-timeout\" has no effect: connections to servers have limits of their \
            own";
    edns_tcp_keepalive: "", "yes" => "limits/tcp/announce: all";
    edns_tcp_keepalive_timeout: "", "120007"
        => "warning: \"edns-tcp-keepalive-timeout\" has no effect: what is announced is \
            \"tcp-idle-timeout\"";
    sock_queue_timeout: "", "7" => "sockets/queue-timeout: 7s";
    tcp_upstream: "", "yes" => "resolvers/default/tcp-only: true";
    udp_upstream_without_downstream: "", "no"
        => "warning: \"udp-upstream-without-downstream\" has no effect: servers are asked over UDP in any \
            case";
    tls_upstream: "forward-zone: name: . forward-addr: 192.0.2.1 server:", "yes"
        => "upstreams/root-forward/servers: [{address: tls://192.0.2.1:853, verify: false}]";
    ssl_upstream: "forward-zone: name: . forward-addr: 192.0.2.1 server:", "yes"
        => "upstreams/root-forward/servers: [{address: tls://192.0.2.1:853, verify: false}]";
    tls_service_key: "tls-service-pem: /etc/pem interface: 127.0.0.1@853", "/etc/key"
        => "listen: [{at: 127.0.0.1:853, transport: [tls]}]; tls/certificates: [{certificate: /etc/pem, \
            key: /etc/key}]";
    ssl_service_key: "tls-service-pem: /etc/pem interface: 127.0.0.1@853", "/etc/key"
        => "listen: [{at: 127.0.0.1:853, transport: [tls]}]; tls/certificates: [{certificate: /etc/pem, \
            key: /etc/key}]";
    tls_service_pem: "tls-service-key: /etc/key interface: 127.0.0.1@853", "/etc/pem"
        => "listen: [{at: 127.0.0.1:853, transport: [tls]}]; tls/certificates: [{certificate: /etc/pem, \
            key: /etc/key}]";
    ssl_service_pem: "tls-service-key: /etc/key interface: 127.0.0.1@853", "/etc/pem"
        => "listen: [{at: 127.0.0.1:853, transport: [tls]}]; tls/certificates: [{certificate: /etc/pem, \
            key: /etc/key}]";
    tls_port: "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@860", "860"
        => "listen: [{at: 127.0.0.1:860, transport: [tls]}]";
    ssl_port: "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@860", "860"
        => "listen: [{at: 127.0.0.1:860, transport: [tls]}]";
    tls_cert_bundle: "forward-zone: name: . forward-addr: 192.0.2.1 server: tls-upstream: yes", "/etc/pem"
        => "upstreams/root-forward/servers: [{address: tls://192.0.2.1:853, roots: /etc/pem, verify: chain}]";
    ssl_cert_bundle: "forward-zone: name: . forward-addr: 192.0.2.1 server: tls-upstream: yes", "/etc/pem"
        => "upstreams/root-forward/servers: [{address: tls://192.0.2.1:853, roots: /etc/pem, verify: chain}]";
    tls_win_cert: "forward-zone: name: . forward-addr: 192.0.2.1 server: tls-upstream: yes", "yes"
        => "warning: \"tls-win-cert\" has no effect: this is not Windows";
    tls_system_cert: "forward-zone: name: . forward-addr: 192.0.2.1 server: tls-upstream: yes", "yes"
        => "upstreams/root-forward/servers: [{address: tls://192.0.2.1:853, verify: chain}]";
    tls_additional_port:
        "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@860",
        "860"
        => "listen: [{at: 127.0.0.1:860, transport: [tls]}]";
    tls_session_ticket_keys:
        "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@853",
        "/etc/ticket"
        => "tls/ticket-keys: [/etc/ticket]";
    tls_ciphers:
        "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@853",
        "ECDHE-RSA-AES128-GCM-SHA256"
        => "tls/ciphers: [TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256, \
            TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]";
    tls_ciphersuites:
        "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@853",
        "TLS_AES_128_GCM_SHA256"
        => "tls/ciphers: [TLS_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, \
            TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, \
            TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, \
            TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256]";
    tls_use_sni: "forward-zone: name: . forward-addr: 192.0.2.1 server: tls-upstream: yes", "no"
        => "upstreams/root-forward/servers: [{address: tls://192.0.2.1:853, verify: false, sni: false}]";
    tls_protocols: "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@853", "TLSv1.3"
        => "tls/min-version: 1.3";
    pad_responses: "", "no" => "edns/padding: off";
    pad_responses_block_size: "", "475" => "edns/padding: 475";
    pad_queries: "", "no"
        => "warning: \"pad-queries\" has no effect: encrypted queries are padded to 128 octets in any case \
            (RFC 8467)";
    pad_queries_block_size: "", "135"
        => "warning: \"pad-queries-block-size\" has no effect: encrypted queries are padded to 128 octets \
            in any case (RFC 8467)";
    https_port: "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@450", "450"
        => "listen: [{at: 127.0.0.1:450, transport: [https]}]";
    http_endpoint: "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@443", "/ask"
        => "listen: [{at: 127.0.0.1:443, transport: [https], paths: [/ask]}]";
    http_max_streams: "", "107"
        => "warning: \"http-max-streams\" has no effect: one bound holds for all connections: \
            \"limits.tcp.buffers\"";
    http_query_buffer_size: "", "16m"
        => "warning: \"http-query-buffer-size\" has no effect: one bound holds for all connections: \
            \"limits.tcp.buffers\"";
    http_response_buffer_size: "", "16m"
        => "warning: \"http-response-buffer-size\" has no effect: one bound holds for all connections: \
            \"limits.tcp.buffers\"";
    http_nodelay: "", "no" => "warning: \"http-nodelay\" has no effect: replies are never held back";
    http_notls_downstream:
        "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@443",
        "yes"
        => "listen: [{at: 127.0.0.1:443, transport: [http]}]";
    proxy_protocol_port: "interface: 127.0.0.1@5354", "5354"
        => "listen: [{at: 127.0.0.1:5354, transport: [udp, tcp], proxy-protocol-from: [127.0.0.0/8, ::1/128]}]";
    quic_port: "tls-service-key: /etc/key tls-service-pem: /etc/pem interface: 127.0.0.1@860", "860"
        => "listen: [{at: 127.0.0.1:860, transport: [quic]}]";
    quic_size: "", "16m"
        => "warning: \"quic-size\" has no effect: one bound holds for all connections: \
            \"limits.tcp.buffers\"";
    use_systemd: "", "yes"
        => "warning: \"use-systemd\" has no effect: whether a service manager waits for the start is found \
            out";
    do_daemonize: "", "no" => "server/daemonize: false";
    tcp_connection_limit: "", "192.0.2.0/24 7"
        => "limits/tcp/networks: [{prefix: 192.0.2.0/24, connections: 7}]";
    access_control: "", "192.0.2.0/24 allow" => "allow: [127.0.0.0/8, ::1/128, 192.0.2.0/24]";
    access_control_tag:
        "define-tag: \"one\" local-zone: example.org refuse local-zone-tag: example.org \"one\"",
        "192.0.2.0/24 \"one\""
        => "allow: [127.0.0.0/8, ::1/128, 192.0.2.0/24]; policy/local-zones: [{if: client in 192.0.2.0/24 \
            and qname in suffix:example.org, do: [respond(refused, authoritative)]}, local]";
    access_control_tag_action:
        "define-tag: \"one\" local-zone: example.org refuse local-zone-tag: example.org \"one\" \
         access-control-tag: 192.0.2.0/24 \"one\"",
        "192.0.2.0/24 one always_nxdomain"
        => "policy/local-zones: [{if: client in 192.0.2.0/24 and qname in suffix:example.org, do: \
            [respond(nxdomain, authoritative)]}, {if: client in 192.0.2.0/24 and qname in \
            suffix:example.org, do: [respond(refused, authoritative)]}, local]";
    access_control_tag_data:
        "define-tag: \"one\" local-zone: example.org redirect local-zone-tag: example.org \"one\" \
         access-control-tag: 192.0.2.0/24 \"one\" access-control-tag-action: 192.0.2.0/24 one redirect",
        "192.0.2.0/24 one \"A 192.0.2.9\""
        => "policy/local-zones: [{if: client in 192.0.2.0/24 and qname in suffix:example.org, do: \
            [records(local-data-1)]}, {if: client in 192.0.2.0/24 and qname in suffix:example.org, do: \
            [respond(noerror, authoritative)]}, {if: client in 192.0.2.0/24 and qname in suffix:example.org, \
            do: [respond(noerror, authoritative)]}, local]; records/local-data-1/synthesized-soa: false; \
            records/local-data-1/text: …";
    access_control_view: "", "192.0.2.0/24 inside view: name: inside local-data: \"a.example. A 192.0.2.9\""
        => "policy/local-zones-inside: [records(local-data-inside), local]; policy/main: [{if: client in \
            192.0.2.0/24, do: [call(local-zones-inside)]}, {if: not client in 192.0.2.0/24, do: \
            [call(local-zones)]}, {if: not rd, do: respond(refused, ede 20)}, cache(main), recurse]; \
            records/local-data-inside/synthesized-soa: false; records/local-data-inside/text: [a.example. A \
            192.0.2.9]";
    interface_action: "interface: 192.0.2.1", "192.0.2.1 allow"
        => "allow: [any]; listen: [{at: 192.0.2.1:53, transport: [udp, tcp], name: \
            interface-192-0-2-1-53}]; policy/main: [{if: not (client in 127.0.0.0/8|::1/128 or (listener == \
            interface-192-0-2-1-53 and not client in 127.0.0.0/8|::1/128)), do: [reject(refused)]}, \
            call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), recurse]";
    interface_tag:
        "interface: 192.0.2.1 define-tag: \"one\" local-zone: example.org refuse local-zone-tag: \
         example.org \"one\"",
        "192.0.2.1 \"one\""
        => "allow: [any]; listen: [{at: 192.0.2.1:53, transport: [udp, tcp], name: \
            interface-192-0-2-1-53}]; policy/local-zones: [{if: (listener == interface-192-0-2-1-53 and not \
            client in 127.0.0.0/8|::1/128) and qname in suffix:example.org, do: [respond(refused, \
            authoritative)]}, local]; policy/main: [{if: not (client in 127.0.0.0/8|::1/128 or (listener == \
            interface-192-0-2-1-53 and not client in …";
    interface_tag_action:
        "interface: 192.0.2.1 define-tag: \"one\" local-zone: example.org refuse local-zone-tag: \
         example.org \"one\" interface-tag: 192.0.2.1 \"one\"",
        "192.0.2.1 one always_nxdomain"
        => "policy/local-zones: [{if: (listener == interface-192-0-2-1-53 and not client in \
            127.0.0.0/8|::1/128) and qname in suffix:example.org, do: [respond(nxdomain, authoritative)]}, \
            {if: (listener == interface-192-0-2-1-53 and not client in 127.0.0.0/8|::1/128) and qname in \
            suffix:example.org, do: [respond(refused, authoritative)]}, local]";
    interface_tag_data:
        "interface: 192.0.2.1 define-tag: \"one\" local-zone: example.org redirect local-zone-tag: \
         example.org \"one\" interface-tag: 192.0.2.1 \"one\" interface-tag-action: 192.0.2.1 one redirect",
        "192.0.2.1 one \"A 192.0.2.9\""
        => "policy/local-zones: [{if: (listener == interface-192-0-2-1-53 and not client in \
            127.0.0.0/8|::1/128) and qname in suffix:example.org, do: [records(local-data-1)]}, {if: \
            (listener == interface-192-0-2-1-53 and not client in 127.0.0.0/8|::1/128) and qname in \
            suffix:example.org, do: [respond(noerror, authoritative)]}, {if: (listener == \
            interface-192-0-2-1-53 and not client in 127.0.0.0/8|::1/128) …";
    interface_view:
        "interface: 192.0.2.1",
        "192.0.2.1 inside view: name: inside local-data: \"a.example. A 192.0.2.9\""
        => "allow: [any]; listen: [{at: 192.0.2.1:53, transport: [udp, tcp], name: \
            interface-192-0-2-1-53}]; policy/local-zones-inside: [records(local-data-inside), local]; \
            policy/main: [{if: not (client in 127.0.0.0/8|::1/128 or (listener == interface-192-0-2-1-53 and \
            not client in 127.0.0.0/8|::1/128)), do: [reject(refused)]}, {if: (listener == \
            interface-192-0-2-1-53 and not client in 127.0.0.0/8|::1/128), …";
    chroot: "", "/jail"
        => "warning: \"chroot\" is different here: files are those inside of it, but the process sees the \
            whole file system: systemd can confine it";
    username: "", "dns" => "server/user: dns";
    directory: "zonemd-permissive-mode: no", "/etc/dns auto-trust-anchor-file: root.key"
        => "resolvers/default/trust-anchor-state: /etc/dns/root.key; resolvers/default/validation: on; \
            server/state-directory: /etc/dns/gannet";
    logfile: "use-syslog: no", "/var/log/dns.log" => "log/to: /var/log/dns.log";
    use_syslog: "logfile: /var/log/dns.log", "no" => "no log/to";
    log_identity: "use-syslog: yes", "dns" => "log/identity: dns";
    log_time_ascii: "", "yes" => "log/time: ascii";
    log_time_iso: "log-time-ascii: yes", "yes" => "log/time: iso";
    log_queries: "", "yes"
        => "policy/main: [query-lines(question), call(local-zones), {if: not rd, do: respond(refused, ede \
            20)}, cache(main), recurse]";
    log_replies: "", "yes"
        => "policy/main: [query-lines(reply), call(local-zones), {if: not rd, do: respond(refused, ede \
            20)}, cache(main), recurse]";
    log_tag_queryreply: "", "yes" => "log/tag-queries: true";
    log_destaddr: "log-replies: yes", "yes"
        => "policy/main: [query-lines(reply, destination), call(local-zones), {if: not rd, do: \
            respond(refused, ede 20)}, cache(main), recurse]";
    log_local_actions: "local-zone: example.org refuse", "yes"
        => "policy/local-zones: [{if: qname in suffix:example.org, do: [query-lines(zone \"example.org. \
            refuse\")]}, {if: qname in suffix:example.org, do: [respond(refused, authoritative)]}, local]";
    log_servfail: "", "yes"
        => "policy/main: [query-lines(failure), call(local-zones), {if: not rd, do: respond(refused, ede \
            20)}, cache(main), recurse]";
    log_thread_id: "", "yes"
        => "warning: \"log-thread-id\" has no effect: threads have the numbers of workers in the log";
    pidfile: "", "/run/dns.pid" => "server/pid-file: /run/dns.pid";
    root_hints: "", "/etc/hints" => "resolvers/default/root-hints: /etc/hints";
    hide_identity: "", "yes" => "no server/hostname; no server/identity";
    identity: "", "me" => "server/hostname: me; server/identity: me";
    hide_version: "", "yes" => "no server/version";
    version: "", "1" => "server/version: 1";
    hide_http_user_agent: "", "no"
        => "warning: \"hide-http-user-agent\" has no effect: requests to servers name no program";
    http_user_agent: "", "me"
        => "warning: \"http-user-agent\" has no effect: requests to servers name no program";
    nsid: "", "ascii_me" => "server/nsid: me";
    hide_trustanchor: "", "yes" => "server/trust-anchors: false";
}
