//! What the section `cachedb:` becomes.

use super::*;

const ON: &str = "server: module-config: \"validator cachedb iterator\"\ncachedb: backend: redis\n";

#[test]
fn cachedb_with_redis_becomes_a_second_level_cache() {
    let of = |more: &str| format!("{ON}{more}");
    let at = |key: &str| format!("resolvers/default/second-level-cache/{key}");
    for (more, key, expect) in [
        ("", "server", "redis://127.0.0.1:6379"),
        ("", "expire", "false"),
        ("", "store", "true"),
        ("", "when-stale", "true"),
        ("", "secret", ""),
        ("", "password", ""),
        ("", "database", ""),
        ("", "command-timeout", "100ms"),
        ("", "connect-timeout", "100ms"),
        ("", "replica/server", ""),
        ("secret-seed: \"a seed\"", "secret", "a seed"),
        ("cachedb-no-store: yes", "store", "false"),
        ("cachedb-check-when-serve-expired: no", "when-stale", "false"),
        ("redis-expire-records: yes", "expire", "true"),
        ("redis-server-host: redis.example redis-server-port: 6380", "server", "redis://redis.example:6380"),
        ("redis-server-host: 2001:db8::1", "server", "redis://[2001:db8::1]:6379"),
        ("redis-server-host: 192.0.2.1 redis-server-path: /r.sock", "server", "unix:/r.sock"),
        ("redis-server-password: secret", "password", "secret"),
        ("redis-logical-db: 3", "database", "3"),
        ("redis-timeout: 50", "command-timeout", "50ms"),
        ("redis-timeout: 50", "connect-timeout", "50ms"),
        ("redis-timeout: 50 redis-command-timeout: 20", "command-timeout", "20ms"),
        ("redis-timeout: 50 redis-connect-timeout: 200", "connect-timeout", "200ms"),
        ("redis-replica-server-host: 192.0.2.2", "replica/server", "redis://192.0.2.2:6379"),
        (
            "redis-replica-server-host: 192.0.2.2 redis-replica-server-port: 7",
            "replica/server",
            "redis://192.0.2.2:7",
        ),
        ("redis-replica-server-path: /s.sock", "replica/server", "unix:/s.sock"),
        ("redis-replica-server-path: /s redis-replica-server-password: p", "replica/password", "p"),
        ("redis-replica-server-path: /s redis-replica-logical-db: 2", "replica/database", "2"),
        ("redis-replica-server-path: /s redis-replica-timeout: 30", "replica/command-timeout", "30ms"),
        (
            "redis-replica-server-path: /s redis-replica-command-timeout: 31",
            "replica/command-timeout",
            "31ms",
        ),
        (
            "redis-replica-server-path: /s redis-replica-connect-timeout: 32",
            "replica/connect-timeout",
            "32ms",
        ),
    ] {
        check(&of(more), &at(key), expect);
    }
}

#[test]
fn cachedb_check_when_serve_expired_has_an_expired_answer_wait_for_redis_and_no_longer() {
    let stale =
        format!("{ON}redis-timeout: 70\nserver: serve-expired: yes serve-expired-client-timeout: 0\n");
    check(&stale, "cache/main/stale-client-timeout", "70ms");
    let not = format!("{stale}cachedb: cachedb-check-when-serve-expired: no\n");
    check(&not, "cache/main/stale-client-timeout", "0ms");
    let longer = format!("{ON}server: serve-expired: yes serve-expired-client-timeout: 1800\n");
    check(&longer, "cache/main/stale-client-timeout", "1800ms");
}

#[test]
fn what_of_cachedb_has_no_effect_is_said() {
    says(
        "cachedb: backend: redis",
        &["u.conf:1:1: warning: there is no second-level cache: \"module-config\" does not have \"cachedb\""],
    );
    let on = "server: module-config: \"cachedb iterator\"\n";
    says(
        &format!("{on}cachedb: backend: testframe"),
        &[
            "u.conf:2:19: warning: there is no second-level cache: \"testframe\" is for tests, and keeps one answer",
        ],
    );
    says(
        &format!("{on}cachedb: backend: memory"),
        &["u.conf:2:19: error: \"memory\" is not a back end: expected \"redis\""],
    );
    says(
        &format!("{on}cachedb: backend: redis redis-logical-db: x"),
        &["u.conf:2:43: error: \"x\" is no number of a database"],
    );
}
