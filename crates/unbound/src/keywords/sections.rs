//! Keywords of the sections other than `server`.

use super::Becomes::{Nothing, Setting, Silent};
use super::Form::{Flag, Number, Pair, Size, Text};
use super::{Row, row};

const NO_SLABS: &str = "readers of the caches take no locks, so nothing is divided";
const NO_SCRIPTS: &str = "programs of others are not loaded";

const RA_IS_OURS: &str =
    "RA says what this server offers; that a name is blocked is said where \"ede\" is on";

const OF_CLIENT: &str = "\"unbound-control\" reads it";

pub(super) const REMOTE_CONTROL: &[Row] = &[
    row("control-enable", Flag, "no", Setting),
    row("control-interface", Text, "", Setting),
    row("control-port", Number, "8953", Setting),
    row("control-use-cert", Flag, "yes", Setting),
    row("server-key-file", Text, "unbound_server.key", Setting),
    row("server-cert-file", Text, "unbound_server.pem", Setting),
    row("control-key-file", Text, "unbound_control.key", Silent(OF_CLIENT)),
    row("control-cert-file", Text, "unbound_control.pem", Silent(OF_CLIENT)),
];

pub(super) const STUB_ZONE: &[Row] = &[
    row("name", Text, "", Setting),
    row("stub-host", Text, "", Setting),
    row("stub-addr", Text, "", Setting),
    row("stub-prime", Flag, "no", Setting),
    row("stub-first", Flag, "no", Setting),
    row("stub-tls-upstream", Flag, "no", Setting),
    row("stub-ssl-upstream", Flag, "", Setting),
    row("stub-tcp-upstream", Flag, "no", Setting),
    row("stub-no-cache", Flag, "no", Setting),
];

pub(super) const FORWARD_ZONE: &[Row] = &[
    row("name", Text, "", Setting),
    row("forward-host", Text, "", Setting),
    row("forward-addr", Text, "", Setting),
    row("forward-first", Flag, "no", Setting),
    row("forward-tls-upstream", Flag, "no", Setting),
    row("forward-ssl-upstream", Flag, "", Setting),
    row("forward-tcp-upstream", Flag, "no", Setting),
    row("forward-no-cache", Flag, "no", Setting),
];

pub(super) const AUTH_ZONE: &[Row] = &[
    row("name", Text, "", Setting),
    row("primary", Text, "", Setting),
    row("master", Text, "", Setting),
    row("url", Text, "", Setting),
    row("allow-notify", Text, "", Setting),
    row("fallback-enabled", Flag, "no", Setting),
    row("for-downstream", Flag, "yes", Setting),
    row("for-upstream", Flag, "yes", Setting),
    row("zonemd-check", Flag, "no", Setting),
    row("zonemd-reject-absence", Flag, "no", Setting),
    row("zonefile", Text, "", Setting),
    row("max-transfer-size", Size, "0", Setting),
    row("max-transfer-time", Number, "0", Setting),
];

pub(super) const VIEW: &[Row] = &[
    row("name", Text, "", Setting),
    row("local-zone", Pair, "", Setting),
    row("local-data", Text, "", Setting),
    row("local-data-ptr", Text, "", Setting),
    row("response-ip", Pair, "", Setting),
    row("response-ip-data", Pair, "", Setting),
    row("view-first", Flag, "no", Setting),
];

pub(super) const PYTHON: &[Row] = &[row("python-script", Text, "", Nothing(NO_SCRIPTS))];

pub(super) const DYNLIB: &[Row] = &[row("dynlib-file", Text, "", Nothing(NO_SCRIPTS))];

pub(super) const DNSCRYPT: &[Row] = &[
    row("dnscrypt-enable", Flag, "no", Setting),
    row("dnscrypt-port", Number, "443", Setting),
    row("dnscrypt-provider", Text, "", Setting),
    row("dnscrypt-secret-key", Text, "", Setting),
    row("dnscrypt-provider-cert", Text, "", Setting),
    row("dnscrypt-provider-cert-rotated", Text, "", Setting),
    row("dnscrypt-shared-secret-cache-size", Size, "4m", Setting),
    row("dnscrypt-shared-secret-cache-slabs", Number, "", Nothing(NO_SLABS)),
    row("dnscrypt-nonce-cache-size", Size, "4m", Setting),
    row("dnscrypt-nonce-cache-slabs", Number, "", Nothing(NO_SLABS)),
];

pub(super) const CACHEDB: &[Row] = &[
    row("backend", Text, "testframe", Setting),
    row("secret-seed", Text, "default", Setting),
    row("cachedb-no-store", Flag, "no", Setting),
    row("cachedb-check-when-serve-expired", Flag, "yes", Setting),
    row("redis-server-host", Text, "127.0.0.1", Setting),
    row("redis-server-port", Number, "6379", Setting),
    row("redis-server-path", Text, "", Setting),
    row("redis-server-password", Text, "", Setting),
    row("redis-timeout", Number, "100", Setting),
    row("redis-command-timeout", Number, "0", Setting),
    row("redis-connect-timeout", Number, "0", Setting),
    row("redis-expire-records", Flag, "no", Setting),
    row("redis-logical-db", Text, "0", Setting),
    row("redis-replica-server-host", Text, "", Setting),
    row("redis-replica-server-port", Number, "6379", Setting),
    row("redis-replica-server-path", Text, "", Setting),
    row("redis-replica-server-password", Text, "", Setting),
    row("redis-replica-timeout", Number, "100", Setting),
    row("redis-replica-command-timeout", Number, "0", Setting),
    row("redis-replica-connect-timeout", Number, "0", Setting),
    row("redis-replica-logical-db", Text, "0", Setting),
];

pub(super) const DNSTAP: &[Row] = &[
    row("dnstap-enable", Flag, "no", Setting),
    row("dnstap-bidirectional", Flag, "yes", Setting),
    row("dnstap-socket-path", Text, "/run/dnstap.sock", Setting),
    row("dnstap-ip", Text, "", Setting),
    row("dnstap-tls", Flag, "yes", Setting),
    row("dnstap-tls-server-name", Text, "", Setting),
    row("dnstap-tls-cert-bundle", Text, "", Setting),
    row("dnstap-tls-client-key-file", Text, "", Setting),
    row("dnstap-tls-client-cert-file", Text, "", Setting),
    row("dnstap-send-identity", Flag, "no", Setting),
    row("dnstap-send-version", Flag, "no", Setting),
    row("dnstap-identity", Text, "", Setting),
    row("dnstap-version", Text, "", Setting),
    row("dnstap-sample-rate", Number, "0", Setting),
    row("dnstap-log-resolver-query-messages", Flag, "no", Setting),
    row("dnstap-log-resolver-response-messages", Flag, "no", Setting),
    row("dnstap-log-client-query-messages", Flag, "no", Setting),
    row("dnstap-log-client-response-messages", Flag, "no", Setting),
    row("dnstap-log-forwarder-query-messages", Flag, "no", Setting),
    row("dnstap-log-forwarder-response-messages", Flag, "no", Setting),
];

pub(super) const IPSET: &[Row] = &[row("name-v4", Text, "", Setting), row("name-v6", Text, "", Setting)];

pub(super) const RPZ: &[Row] = &[
    row("name", Text, "", Setting),
    row("primary", Text, "", Setting),
    row("master", Text, "", Setting),
    row("url", Text, "", Setting),
    row("allow-notify", Text, "", Setting),
    row("zonefile", Text, "", Setting),
    row("rpz-action-override", Text, "", Setting),
    row("rpz-cname-override", Text, "", Setting),
    row("rpz-log", Flag, "no", Setting),
    row("rpz-log-name", Text, "", Setting),
    row("rpz-signal-nxdomain-ra", Flag, "no", Nothing(RA_IS_OURS)),
    row("for-downstream", Flag, "no", Setting),
    row("tags", Text, "", Setting),
    row("max-transfer-size", Size, "0", Setting),
    row("max-transfer-time", Number, "0", Setting),
];
