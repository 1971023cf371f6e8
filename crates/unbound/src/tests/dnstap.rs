//! What the section `dnstap:` becomes.

use super::*;

#[test]
fn dnstap_becomes_settings_of_its_own() {
    let all = "dnstap: dnstap-enable: yes dnstap-log-client-query-messages: yes\n\
               dnstap: dnstap-log-forwarder-response-messages: yes\n";
    check(all, "dnstap/messages", "[client-query, forwarder-response]");
    check(all, "dnstap/to", "unix:/run/dnstap.sock");
    check(all, "dnstap/bidirectional", "true");
    check(all, "dnstap/identity", "");
    let of = |more: &str| format!("{all}{more}");
    let beside = of("dnstap-socket-path: d.sock\nserver: directory: /etc/unbound\n");
    check(&beside, "dnstap/to", "unix:/etc/unbound/d.sock");
    check(&of("dnstap-ip: 192.0.2.1 dnstap-tls: no"), "dnstap/to", "tcp://192.0.2.1:53");
    check(&of("dnstap-ip: ::1@6000 dnstap-tls: no"), "dnstap/to", "tcp://[::1]:6000");
    let tls = of("dnstap-ip: 192.0.2.1@6000 dnstap-tls-server-name: a.example \
                  dnstap-tls-cert-bundle: /b.pem dnstap-tls-client-cert-file: /c.pem \
                  dnstap-tls-client-key-file: /k.pem");
    for (key, expect) in [
        ("to", "tls://192.0.2.1:6000"),
        ("tls-name", "a.example"),
        ("roots", "/b.pem"),
        ("certificate", "/c.pem"),
        ("key", "/k.pem"),
        ("verify", ""),
    ] {
        check(&tls, &format!("dnstap/{key}"), expect);
    }
    check(&of("dnstap-send-identity: yes"), "dnstap/identity", "hostname");
    check(&of("dnstap-send-identity: yes dnstap-identity: me"), "dnstap/identity", "me");
    check(&of("dnstap-identity: me"), "dnstap/identity", "");
    check(&of("dnstap-send-version: yes"), "dnstap/version", "gannet");
    check(&of("dnstap-send-version: yes dnstap-version: 7"), "dnstap/version", "7");
    check(&of("dnstap-sample-rate: 100"), "dnstap/one-of", "100");
    check(&of("dnstap-sample-rate: 0"), "dnstap/one-of", "1");
    check(&of("dnstap-bidirectional: no"), "dnstap/bidirectional", "false");
    check(&of("dnstap-enable: no"), "dnstap/to", "");
}

#[test]
fn what_of_dnstap_is_not_as_it_may_be_meant_is_said() {
    let on = "dnstap: dnstap-enable: yes dnstap-log-client-query-messages: yes";
    says(
        "dnstap: dnstap-enable: yes",
        &[
            "u.conf:1:24: warning: no dnstap messages are sent: none of the \"dnstap-log-\" keywords says \"yes\"",
        ],
    );
    says(
        &format!("{on}\ndnstap-ip: 192.0.2.1@6000"),
        &["u.conf:2:12: warning: whoever answers there is sent the messages: no name is written"],
    );
    says(
        &format!("{on}\ndnstap-ip: 192.0.2.1@6000 dnstap-tls-cert-bundle: /b.pem"),
        &["u.conf:2:51: warning: the receiver's certificate has to be for 192.0.2.1 here"],
    );
    says(
        &format!("{on}\ndnstap-ip: collector.example"),
        &["u.conf:2:12: error: \"collector.example\" is not an address: expected one such as 192.0.2.1@6000"],
    );
}
