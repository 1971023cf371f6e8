//! Keywords of the sections other than `server:`, a module for each.

pub(super) mod remote_control {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "remote-control";
        control_enable: "", "yes"
            => "control/unbound/certificate: /etc/unbound/unbound_server.pem; control/unbound/certificates: \
                true; control/unbound/key: /etc/unbound/unbound_server.key; control/unbound/listen: \
                [127.0.0.1:8953, [::1]:8953]";
        control_interface: "control-enable: yes", "192.0.2.1" => "control/unbound/listen: [192.0.2.1:8953]";
        control_port: "control-enable: yes", "8960" => "control/unbound/listen: [127.0.0.1:8960, [::1]:8960]";
        control_use_cert: "control-enable: yes", "no"
            => "control/unbound/certificates: false; no control/unbound/certificate; no control/unbound/key";
        server_key_file: "control-enable: yes", "/etc/key" => "control/unbound/key: /etc/key";
        server_cert_file: "control-enable: yes", "/etc/pem" => "control/unbound/certificate: /etc/pem";
        control_key_file: "control-enable: yes", "/etc/key" => "";
        control_cert_file: "control-enable: yes", "/etc/pem" => "";
    }
}

pub(super) mod stub_zone {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "stub-zone";
        name: "stub-addr: 192.0.2.1", "example.org" => "resolvers/default/zones/example.org/stub: [192.0.2.1]";
        stub_host: "name: example.org", "ns.example.net"
            => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
                recurse]; resolvers/default/zones/example.org/stub: [ns.example.net]";
        stub_addr: "name: example.org", "192.0.2.1@5353"
            => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
                recurse]; resolvers/default/zones/example.org/stub: [192.0.2.1@5353]";
        stub_prime: "name: example.org stub-addr: 192.0.2.1", "yes"
            => "resolvers/default/zones/example.org/prime: true";
        stub_first: "name: example.org stub-addr: 192.0.2.1", "yes"
            => "resolvers/default/zones/example.org/first: true";
        stub_tls_upstream: "name: example.org stub-addr: 192.0.2.1", "yes"
            => "warning: the servers of \"example.org\" are asked over TLS as forwarders are: they have to \
                answer for all names of the zone themselves; resolvers/default/zones/example.org/forward: \
                stub-example.org; upstreams/stub-example.org/servers: [{address: tls://192.0.2.1:853, verify: \
                false}]; no resolvers/default/zones/example.org/stub";
        stub_ssl_upstream: "name: example.org stub-addr: 192.0.2.1", "yes"
            => "warning: the servers of \"example.org\" are asked over TLS as forwarders are: they have to \
                answer for all names of the zone themselves; resolvers/default/zones/example.org/forward: \
                stub-example.org; upstreams/stub-example.org/servers: [{address: tls://192.0.2.1:853, verify: \
                false}]; no resolvers/default/zones/example.org/stub";
        stub_tcp_upstream: "name: example.org stub-addr: 192.0.2.1", "yes"
            => "resolvers/default/zones/example.org/tcp-only: true";
        stub_no_cache: "name: example.org stub-addr: 192.0.2.1", "yes"
            => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, {if: qname in \
                suffix:example.org, do: [recurse, accept]}, cache(main), recurse]; \
                resolvers/default/zones/example.org/keep: false";
    }
}

pub(super) mod forward_zone {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "forward-zone";
        name: "forward-addr: 192.0.2.1", "example.org"
            => "resolvers/default/zones/example.org/forward: forward-example.org; \
                upstreams/forward-example.org/attempts: 5; upstreams/forward-example.org/case-randomisation: \
                false; upstreams/forward-example.org/patience/max: 6016ms; \
                upstreams/forward-example.org/patience/unknown: 376ms; upstreams/forward-example.org/pick: \
                balanced; upstreams/forward-example.org/servers: [192.0.2.1:53]; \
                upstreams/forward-example.org/timeout: 13951ms";
        forward_host: "name: example.org", "ns.example.net"
            => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
                recurse]; resolvers/default/zones/example.org/forward: forward-example.org; \
                upstreams/forward-example.org/attempts: 5; upstreams/forward-example.org/case-randomisation: \
                false; upstreams/forward-example.org/patience/max: 6016ms; \
                upstreams/forward-example.org/patience/unknown: 376ms; upstreams/forward-example.org/pick: \
                balanced; upstreams/forward-example.org/servers: [ns.example.net:53]; …";
        forward_addr: "name: example.org", "192.0.2.1@5353"
            => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
                recurse]; resolvers/default/zones/example.org/forward: forward-example.org; \
                upstreams/forward-example.org/attempts: 5; upstreams/forward-example.org/case-randomisation: \
                false; upstreams/forward-example.org/patience/max: 6016ms; \
                upstreams/forward-example.org/patience/unknown: 376ms; upstreams/forward-example.org/pick: \
                balanced; upstreams/forward-example.org/servers: [192.0.2.1:5353]; …";
        forward_first: "name: example.org forward-addr: 192.0.2.1", "yes"
            => "resolvers/default/zones/example.org/first: true";
        forward_tls_upstream: "name: example.org forward-addr: 192.0.2.1", "yes"
            => "upstreams/forward-example.org/servers: [{address: tls://192.0.2.1:853, verify: false}]";
        forward_ssl_upstream: "name: example.org forward-addr: 192.0.2.1", "yes"
            => "upstreams/forward-example.org/servers: [{address: tls://192.0.2.1:853, verify: false}]";
        forward_tcp_upstream: "name: example.org forward-addr: 192.0.2.1", "yes"
            => "upstreams/forward-example.org/servers: [tcp://192.0.2.1:53]";
        forward_no_cache: "name: example.org forward-addr: 192.0.2.1", "yes"
            => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, {if: qname in \
                suffix:example.org, do: [recurse, accept]}, cache(main), recurse]; \
                resolvers/default/zones/example.org/keep: false";
    }
}

pub(super) mod auth_zone {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "auth-zone";
        name: "primary: 192.0.2.1", "example.org"
            => "policy/main: [call(local-zones), zones(within, minimal, several, ra-with-rd), {if: not rd, do: respond(refused, ede 20)}, \
                cache(main), recurse]; resolvers/default/zones/example.org/own: true; zones: [{name: \
                example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], keep: false}]";
        primary: "name: example.org", "192.0.2.1"
            => "policy/main: [call(local-zones), zones(within, minimal, several, ra-with-rd), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
                recurse]; resolvers/default/zones/example.org/own: true; zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], keep: \
                false}]";
        master: "name: example.org", "192.0.2.1"
            => "policy/main: [call(local-zones), zones(within, minimal, several, ra-with-rd), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
                recurse]; resolvers/default/zones/example.org/own: true; zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], keep: \
                false}]";
        url: "name: example.org primary: 192.0.2.1", "https://192.0.2.7/zone"
            => "zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], urls: \
                [https://192.0.2.7/zone], keep: false}]";
        allow_notify: "name: example.org primary: 192.0.2.1", "192.0.2.8"
            => "zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], keep: \
                false, notify-from: [192.0.2.8]}]";
        fallback_enabled: "name: example.org primary: 192.0.2.1", "yes"
            => "policy/main: [call(local-zones), zones(loaded, within, minimal, several, ra-with-rd), {if: not rd, do: respond(refused, ede 20)}, \
                cache(main), recurse]; resolvers/default/zones/example.org/first: true";
        for_downstream: "name: example.org primary: 192.0.2.1", "no"
            => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), \
                recurse]; zones: [{name: example.org, for-clients: false, primaries: [192.0.2.1], keep: false}]";
        for_upstream: "name: example.org primary: 192.0.2.1", "no"
            => "no resolvers/default/zones/example.org/own";
        zonemd_check: "name: example.org primary: 192.0.2.1", "yes"
            => "zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], keep: \
                false, zonemd: verify}]";
        zonemd_reject_absence: "name: example.org primary: 192.0.2.1 zonemd-check: yes", "yes"
            => "zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], keep: \
                false, zonemd: require}]";
        zonefile: "name: example.org primary: 192.0.2.1", "/etc/zone"
            => "zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], \
                write-to: /etc/zone, keep: false}]";
        max_transfer_size: "name: example.org primary: 192.0.2.1", "16m"
            => "zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], keep: \
                false, transfer-size: 16777216B}]";
        max_transfer_time: "name: example.org primary: 192.0.2.1", "5000"
            => "zones: [{name: example.org, allow-query: [127.0.0.0/8, ::1/128], primaries: [192.0.2.1], keep: \
                false, transfer-time: 5000ms}]";
    }
}

pub(super) mod view {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "view";
        name:
            "",
            "inside local-data: \"a.example. A 192.0.2.9\" server: access-control-view: 192.0.2.0/24 inside"
            => "policy/local-zones-inside: [records(local-data-inside), local]; policy/main: [{if: client in \
                192.0.2.0/24, do: [call(local-zones-inside)]}, {if: not client in 192.0.2.0/24, do: \
                [call(local-zones)]}, {if: not rd, do: respond(refused, ede 20)}, cache(main), recurse]; \
                records/local-data-inside/synthesized-soa: false; records/local-data-inside/text: [a.example. A \
                192.0.2.9]";
        local_zone: "name: inside", "example.org static"
            => "policy/local-zones-inside: [{if: qname in suffix:example.org, do: [respond(nxdomain, \
                authoritative)]}, local]";
        local_data: "name: inside", "\"a.example. A 192.0.2.9\""
            => "policy/local-zones-inside: [records(local-data-inside), local]; \
                records/local-data-inside/synthesized-soa: false; records/local-data-inside/text: [a.example. A \
                192.0.2.9]";
        local_data_ptr: "name: inside", "\"192.0.2.9 a.example\""
            => "policy/local-zones-inside: [records(built-in-data-inside), local]; \
                records/built-in-data-inside/synthesized-soa: false; records/built-in-data-inside/text: \
                [9.2.0.192.in-addr.arpa. 3600 IN PTR a.example., 2.0.192.in-addr.arpa. 10800 IN SOA \
                2.0.192.in-addr.arpa. nobody.invalid. 1 3600 1200 604800 10800, \
                2.0.192.in-addr.arpa. 10800 IN NS 2.0.192.in-addr.arpa.]";
        response_ip:
            "name: other server: module-config: \"respip validator iterator\" access-control-view: \
             192.0.2.0/24 inside view: name: inside",
            "192.0.2.0/24 deny"
            => "policy/find: [cache(main), recurse]; policy/main: [call(local-zones), {if: not rd, do: \
                respond(refused, ede 20)}, ask(find), {if: client in 192.0.2.0/24 and answer-address in \
                192.0.2.0/24, do: [drop]}]";
        response_ip_data:
            "name: other server: module-config: \"respip validator iterator\" access-control-view: \
             192.0.2.0/24 inside view: name: inside response-ip: 192.0.2.0/24 redirect",
            "192.0.2.0/24 \"A 192.0.2.9\""
            => "policy/main: [call(local-zones), {if: not rd, do: respond(refused, ede 20)}, ask(find), {if: \
                client in 192.0.2.0/24 and answer-address in 192.0.2.0/24 and qtype == A, do: [respond(answer \
                \"@ 3600 A 192.0.2.9\")]}, {if: client in 192.0.2.0/24 and answer-address in 192.0.2.0/24, do: \
                [respond(noerror)]}]";
        view_first:
            "name: other server: access-control-view: 192.0.2.0/24 inside view: name: inside local-data: \
             \"a.example. A 192.0.2.9\"",
            "yes"
            => "policy/local-zones-inside: [records(local-data-inside)]; policy/main: [{if: client in \
                192.0.2.0/24, do: [call(local-zones-inside)]}, call(local-zones), {if: not rd, do: \
                respond(refused, ede 20)}, cache(main), recurse]";
    }
}

pub(super) mod python {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "python";
        python_script: "", "/etc/a.py"
            => "warning: \"python-script\" has no effect: programs of others are not loaded";
    }
}

pub(super) mod dynlib {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "dynlib";
        dynlib_file: "", "/lib/a.so"
            => "warning: \"dynlib-file\" has no effect: programs of others are not loaded";
    }
}

pub(super) mod dnscrypt {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "dnscrypt";
        dnscrypt_enable:
            "dnscrypt-port: 443 dnscrypt-provider: 2.dnscrypt-cert.example.org dnscrypt-secret-key: /etc/1.key \
             dnscrypt-provider-cert: /etc/1.cert",
            "yes"
            => "warning: nobody is served over DNSCrypt: no \"interface\" has the port 443; \
                dnscrypt/certificates: [/etc/1.cert]; dnscrypt/keys: [/etc/1.key]; dnscrypt/provider: \
                2.dnscrypt-cert.example.org";
        dnscrypt_port:
            "dnscrypt-enable: yes dnscrypt-provider: 2.dnscrypt-cert.example.org dnscrypt-secret-key: \
             /etc/1.key dnscrypt-provider-cert: /etc/1.cert server: interface: 127.0.0.1@450 dnscrypt:",
            "450"
            => "listen: [{at: 127.0.0.1:450, transport: [dnscrypt]}]";
        dnscrypt_provider:
            "dnscrypt-enable: yes dnscrypt-port: 443 dnscrypt-secret-key: /etc/1.key dnscrypt-provider-cert: \
             /etc/1.cert",
            "2.dnscrypt-cert.example.org"
            => "dnscrypt/provider: 2.dnscrypt-cert.example.org";
        dnscrypt_secret_key:
            "dnscrypt-enable: yes dnscrypt-port: 443 dnscrypt-provider: 2.dnscrypt-cert.example.org \
             dnscrypt-provider-cert: /etc/1.cert",
            "/etc/1.key"
            => "dnscrypt/keys: [/etc/1.key]";
        dnscrypt_provider_cert:
            "dnscrypt-enable: yes dnscrypt-port: 443 dnscrypt-provider: 2.dnscrypt-cert.example.org \
             dnscrypt-secret-key: /etc/1.key",
            "/etc/1.cert"
            => "dnscrypt/certificates: [/etc/1.cert]";
        dnscrypt_provider_cert_rotated:
            "dnscrypt-enable: yes dnscrypt-port: 443 dnscrypt-provider: 2.dnscrypt-cert.example.org \
             dnscrypt-secret-key: /etc/1.key dnscrypt-provider-cert: /etc/1.cert",
            "/etc/2.cert"
            => "dnscrypt/rotated-certificates: [/etc/2.cert]";
        dnscrypt_shared_secret_cache_size:
            "dnscrypt-enable: yes dnscrypt-port: 443 dnscrypt-provider: 2.dnscrypt-cert.example.org \
             dnscrypt-secret-key: /etc/1.key dnscrypt-provider-cert: /etc/1.cert",
            "16m"
            => "dnscrypt/client-keys: 16384KiB";
        dnscrypt_shared_secret_cache_slabs:
            "dnscrypt-enable: yes dnscrypt-port: 443 dnscrypt-provider: 2.dnscrypt-cert.example.org \
             dnscrypt-secret-key: /etc/1.key dnscrypt-provider-cert: /etc/1.cert",
            "8"
            => "warning: \"dnscrypt-shared-secret-cache-slabs\" has no effect: readers of the caches take no \
                locks, so nothing is divided";
        dnscrypt_nonce_cache_size:
            "dnscrypt-enable: yes dnscrypt-port: 443 dnscrypt-provider: 2.dnscrypt-cert.example.org \
             dnscrypt-secret-key: /etc/1.key dnscrypt-provider-cert: /etc/1.cert",
            "16m"
            => "dnscrypt/replay-memory: 16384KiB";
        dnscrypt_nonce_cache_slabs:
            "dnscrypt-enable: yes dnscrypt-port: 443 dnscrypt-provider: 2.dnscrypt-cert.example.org \
             dnscrypt-secret-key: /etc/1.key dnscrypt-provider-cert: /etc/1.cert",
            "8"
            => "warning: \"dnscrypt-nonce-cache-slabs\" has no effect: readers of the caches take no locks, so \
                nothing is divided";
    }
}

pub(super) mod cachedb {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "cachedb";
        backend: "server: module-config: \"validator cachedb iterator\" cachedb:", "redis"
            => "resolvers/default/second-level-cache/command-timeout: 100ms; \
                resolvers/default/second-level-cache/connect-timeout: 100ms; \
                resolvers/default/second-level-cache/expire: false; resolvers/default/second-level-cache/server: \
                redis://127.0.0.1:6379; resolvers/default/second-level-cache/store: true; \
                resolvers/default/second-level-cache/when-stale: true";
        secret_seed: "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:", "seed"
            => "resolvers/default/second-level-cache/secret: seed";
        cachedb_no_store: "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:", "yes"
            => "resolvers/default/second-level-cache/store: false";
        cachedb_check_when_serve_expired:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "no"
            => "resolvers/default/second-level-cache/when-stale: false";
        redis_server_host:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "192.0.2.1"
            => "resolvers/default/second-level-cache/server: redis://192.0.2.1:6379";
        redis_server_port:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "6386"
            => "resolvers/default/second-level-cache/server: redis://127.0.0.1:6386";
        redis_server_path:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "/run/redis"
            => "resolvers/default/second-level-cache/server: unix:/run/redis";
        redis_server_password:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "secret"
            => "resolvers/default/second-level-cache/password: secret";
        redis_timeout: "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:", "107"
            => "resolvers/default/second-level-cache/command-timeout: 107ms; \
                resolvers/default/second-level-cache/connect-timeout: 107ms";
        redis_command_timeout:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "7"
            => "resolvers/default/second-level-cache/command-timeout: 7ms";
        redis_connect_timeout:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "7"
            => "resolvers/default/second-level-cache/connect-timeout: 7ms";
        redis_expire_records:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "yes"
            => "resolvers/default/second-level-cache/expire: true";
        redis_logical_db: "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:", "3"
            => "resolvers/default/second-level-cache/database: 3";
        redis_replica_server_host:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "192.0.2.1"
            => "resolvers/default/second-level-cache/replica/command-timeout: 100ms; \
                resolvers/default/second-level-cache/replica/connect-timeout: 100ms; \
                resolvers/default/second-level-cache/replica/server: redis://192.0.2.1:6379";
        redis_replica_server_port:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb: \
             redis-replica-server-host: 192.0.2.1",
            "107"
            => "resolvers/default/second-level-cache/replica/server: redis://192.0.2.1:107";
        redis_replica_server_path:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb:",
            "/run/redis"
            => "resolvers/default/second-level-cache/replica/command-timeout: 100ms; \
                resolvers/default/second-level-cache/replica/connect-timeout: 100ms; \
                resolvers/default/second-level-cache/replica/server: unix:/run/redis";
        redis_replica_server_password:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb: \
             redis-replica-server-host: 192.0.2.1",
            "secret"
            => "resolvers/default/second-level-cache/replica/password: secret";
        redis_replica_timeout:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb: \
             redis-replica-server-host: 192.0.2.1",
            "107"
            => "resolvers/default/second-level-cache/replica/command-timeout: 107ms; \
                resolvers/default/second-level-cache/replica/connect-timeout: 107ms";
        redis_replica_command_timeout:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb: \
             redis-replica-server-host: 192.0.2.1",
            "107"
            => "resolvers/default/second-level-cache/replica/command-timeout: 107ms";
        redis_replica_connect_timeout:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb: \
             redis-replica-server-host: 192.0.2.1",
            "107"
            => "resolvers/default/second-level-cache/replica/connect-timeout: 107ms";
        redis_replica_logical_db:
            "backend: redis server: module-config: \"validator cachedb iterator\" cachedb: \
             redis-replica-server-host: 192.0.2.1",
            "3"
            => "resolvers/default/second-level-cache/replica/database: 3";
    }
}

pub(super) mod dnstap {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "dnstap";
        dnstap_enable: "dnstap-log-client-query-messages: yes", "yes"
            => "dnstap/bidirectional: true; dnstap/messages: [client-query]; dnstap/to: unix:/run/dnstap.sock";
        dnstap_bidirectional: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "no"
            => "dnstap/bidirectional: false";
        dnstap_socket_path: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "/run/tap"
            => "dnstap/to: unix:/run/tap";
        dnstap_ip: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "192.0.2.1@6000"
            => "warning: whoever answers there is sent the messages: no name is written; dnstap/to: \
                tls://192.0.2.1:6000; dnstap/verify: false";
        dnstap_tls: "dnstap-enable: yes dnstap-log-client-query-messages: yes dnstap-ip: 192.0.2.1@6000", "no"
            => "dnstap/to: tcp://192.0.2.1:6000; no dnstap/verify";
        dnstap_tls_server_name:
            "dnstap-enable: yes dnstap-log-client-query-messages: yes dnstap-ip: 192.0.2.1@6000",
            "tap.example.org"
            => "dnstap/tls-name: tap.example.org; no dnstap/verify";
        dnstap_tls_cert_bundle:
            "dnstap-enable: yes dnstap-log-client-query-messages: yes dnstap-ip: 192.0.2.1@6000",
            "/etc/pem"
            => "warning: the receiver's certificate has to be for 192.0.2.1 here; dnstap/roots: /etc/pem; no \
                dnstap/verify";
        dnstap_tls_client_key_file:
            "dnstap-enable: yes dnstap-log-client-query-messages: yes dnstap-ip: 192.0.2.1@6000 \
             dnstap-tls-client-cert-file: /etc/pem",
            "/etc/key"
            => "dnstap/key: /etc/key";
        dnstap_tls_client_cert_file:
            "dnstap-enable: yes dnstap-log-client-query-messages: yes dnstap-ip: 192.0.2.1@6000 \
             dnstap-tls-client-key-file: /etc/key",
            "/etc/pem"
            => "dnstap/certificate: /etc/pem";
        dnstap_send_identity: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "yes"
            => "dnstap/identity: hostname";
        dnstap_send_version: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "yes"
            => "dnstap/version: gannet";
        dnstap_identity:
            "dnstap-enable: yes dnstap-log-client-query-messages: yes dnstap-send-identity: yes",
            "me"
            => "dnstap/identity: me";
        dnstap_version: "dnstap-enable: yes dnstap-log-client-query-messages: yes dnstap-send-version: yes", "1"
            => "dnstap/version: 1";
        dnstap_sample_rate: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "7" => "dnstap/one-of: 7";
        dnstap_log_resolver_query_messages: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "yes"
            => "dnstap/messages: [client-query, resolver-query]";
        dnstap_log_resolver_response_messages: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "yes"
            => "dnstap/messages: [client-query, resolver-response]";
        dnstap_log_client_query_messages: "dnstap-enable: yes", "yes"
            => "dnstap/bidirectional: true; dnstap/messages: [client-query]; dnstap/to: unix:/run/dnstap.sock";
        dnstap_log_client_response_messages: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "yes"
            => "dnstap/messages: [client-query, client-response]";
        dnstap_log_forwarder_query_messages: "dnstap-enable: yes dnstap-log-client-query-messages: yes", "yes"
            => "dnstap/messages: [client-query, forwarder-query]";
        dnstap_log_forwarder_response_messages:
            "dnstap-enable: yes dnstap-log-client-query-messages: yes",
            "yes"
            => "dnstap/messages: [client-query, forwarder-response]";
    }
}

pub(super) mod ipset {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "ipset";
        name_v4: "", "four server: local-zone: example.org ipset"
            => "policy/local-zones: [{if: qname in suffix:example.org, do: [ipset(set4 four)]}, {if: qname in \
                suffix:example.org, do: [return]}, local]";
        name_v6: "", "six server: local-zone: example.org ipset"
            => "policy/local-zones: [{if: qname in suffix:example.org, do: [ipset(set6 six)]}, {if: qname in \
                suffix:example.org, do: [return]}, local]";
    }
}

pub(super) mod rpz {
    use super::super::{check_effect, keywords};

    keywords! {
        TESTED: "rpz";
        name: "zonefile: /etc/rpz", "rpz.example.org"
            => "policy/find: [cache(main), recurse]; policy/main: [call(local-zones), blocklist(rpz-1, \
                authoritative, without-soa), {if: not rd, do: respond(refused, ede 20)}, ask(find), \
                blocklist(rpz-1, authoritative, without-soa)]; sets/rpz-1/lists: [{list: rpz:/etc/rpz, optional: true}]";
        primary: "name: rpz.example.org zonefile: /etc/rpz", "192.0.2.1"
            => "sets/rpz-1/lists: [{zone: rpz.example.org}]; zones: [{name: rpz.example.org, for-clients: \
                false, primaries: [192.0.2.1], write-to: /etc/rpz, keep: false}]";
        master: "name: rpz.example.org zonefile: /etc/rpz", "192.0.2.1"
            => "sets/rpz-1/lists: [{zone: rpz.example.org}]; zones: [{name: rpz.example.org, for-clients: \
                false, primaries: [192.0.2.1], write-to: /etc/rpz, keep: false}]";
        url: "name: rpz.example.org zonefile: /etc/rpz", "https://192.0.2.7/zone"
            => "sets/rpz-1/lists: [{zone: rpz.example.org}]; zones: [{name: rpz.example.org, for-clients: \
                false, urls: [https://192.0.2.7/zone], write-to: /etc/rpz, keep: false}]";
        allow_notify: "name: rpz.example.org primary: 192.0.2.1", "192.0.2.8"
            => "zones: [{name: rpz.example.org, for-clients: false, primaries: [192.0.2.1], keep: false, \
                notify-from: [192.0.2.8]}]";
        zonefile: "name: rpz.example.org", "/etc/rpz"
            => "policy/find: [cache(main), recurse]; policy/main: [call(local-zones), blocklist(rpz-1, \
                authoritative, without-soa), {if: not rd, do: respond(refused, ede 20)}, ask(find), \
                blocklist(rpz-1, authoritative, without-soa)]; sets/rpz-1/lists: [{list: rpz:/etc/rpz, optional: true}]";
        rpz_action_override: "name: rpz.example.org zonefile: /etc/rpz", "nxdomain"
            => "policy/main: [call(local-zones), blocklist(rpz-1, nxdomain, override, authoritative, \
                without-soa), {if: not rd, do: respond(refused, ede 20)}, ask(find), blocklist(rpz-1, nxdomain, \
                override, authoritative, without-soa)]";
        rpz_cname_override: "name: rpz.example.org zonefile: /etc/rpz rpz-action-override: cname", "a.example"
            => "policy/find: [cache(main), recurse]; policy/main: [call(local-zones), {if: listed in rpz-1, \
                do: [redirect(a.example, authoritative)]}, {if: not rd, do: respond(refused, ede 20)}, \
                ask(find), {if: listed in rpz-1, do: [forget, redirect(a.example), ask(find), accept]}]; \
                sets/rpz-1/lists: [{list: rpz:/etc/rpz, optional: true}]";
        rpz_log: "name: rpz.example.org zonefile: /etc/rpz", "yes"
            => "policy/main: [call(local-zones), {if: listed in rpz-1, do: [mark(1), query-lines(zone \"rpz: \
                applied [rpz.example.org]\")]}, blocklist(rpz-1, authoritative, without-soa), {if: not rd, do: \
                respond(refused, ede 20)}, ask(find), {if: not mark(1) and listed in rpz-1, do: \
                [query-lines(zone \"rpz: applied [rpz.example.org]\")]}, blocklist(rpz-1, authoritative, \
                without-soa)]";
        rpz_log_name: "name: rpz.example.org zonefile: /etc/rpz rpz-log: yes", "mine"
            => "policy/main: [call(local-zones), {if: listed in rpz-1, do: [mark(1), query-lines(zone \"rpz: \
                applied [mine]\")]}, blocklist(rpz-1, authoritative, without-soa), {if: not rd, do: \
                respond(refused, ede 20)}, ask(find), {if: not mark(1) and listed in rpz-1, do: \
                [query-lines(zone \"rpz: applied [mine]\")]}, blocklist(rpz-1, authoritative, without-soa)]";
        rpz_signal_nxdomain_ra: "name: rpz.example.org zonefile: /etc/rpz", "yes"
            => "warning: \"rpz-signal-nxdomain-ra\" has no effect: RA says what this server offers; that a \
                name is blocked is said where \"ede\" is on";
        for_downstream: "name: rpz.example.org zonefile: /etc/rpz", "yes"
            => "zones: [{name: rpz.example.org, allow-query: [127.0.0.0/8, ::1/128], file: /etc/rpz}]";
        tags:
            "name: rpz.example.org zonefile: /etc/rpz server: define-tag: \"one\" access-control-tag: \
             192.0.2.0/24 \"one\" rpz: name: b.example.org zonefile: /etc/rpz",
            "\"one\""
            => "policy/main: [call(local-zones), call(response-policy-question), {if: not rd, do: \
                respond(refused, ede 20)}, ask(find), call(response-policy-answer)]; \
                policy/response-policy-answer: [blocklist(rpz-1, authoritative, without-soa), {if: listed in \
                rpz-1, do: [return]}, {if: client in 192.0.2.0/24, do: [blocklist(rpz-2, authoritative, \
                without-soa)]}]; policy/response-policy-question: [blocklist(rpz-1, …";
        max_transfer_size: "name: rpz.example.org primary: 192.0.2.1", "16m"
            => "zones: [{name: rpz.example.org, for-clients: false, primaries: [192.0.2.1], keep: false, \
                transfer-size: 16777216B}]";
        max_transfer_time: "name: rpz.example.org primary: 192.0.2.1", "5000"
            => "zones: [{name: rpz.example.org, for-clients: false, primaries: [192.0.2.1], keep: false, \
                transfer-time: 5000ms}]";
    }
}
