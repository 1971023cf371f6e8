//! What the section `dnscrypt:` becomes.

use super::*;

const ON: &str = "server: directory: /etc/unbound\n\
    interface: 192.0.2.1 interface: 192.0.2.1@443 interface: ::1@443 interface: 192.0.2.1@8443\n\
    dnscrypt: dnscrypt-enable: yes\n";

#[test]
fn the_interfaces_with_its_port_speak_dnscrypt() {
    check(
        ON,
        "listen",
        "[192.0.2.1:53, {at: 192.0.2.1:443, transport: [dnscrypt]}, {at: [::1]:443, transport: [dnscrypt]}, \
         192.0.2.1:8443]",
    );
    check(
        &format!("{ON}dnscrypt-port: 8443"),
        "listen",
        "[192.0.2.1:53, 192.0.2.1:443, [::1]:443, {at: 192.0.2.1:8443, transport: [dnscrypt]}]",
    );
    check(&ON.replace("yes", "no"), "listen", "[192.0.2.1:53, 192.0.2.1:443, [::1]:443, 192.0.2.1:8443]");
}

#[test]
fn dnscrypt_becomes_settings_of_its_own() {
    let all = format!(
        "{ON}dnscrypt-provider: 2.dnscrypt-cert.example.org. dnscrypt-secret-key: 1.key\n\
         dnscrypt: dnscrypt-secret-key: /k/2.key dnscrypt-provider-cert: 1.cert\n\
         dnscrypt-provider-cert-rotated: 2.cert dnscrypt-nonce-cache-size: 8m\n\
         dnscrypt-shared-secret-cache-size: 64k\n"
    );
    for (key, expect) in [
        ("provider", "2.dnscrypt-cert.example.org."),
        ("keys", "[/etc/unbound/1.key, /k/2.key]"),
        ("certificates", "[/etc/unbound/1.cert]"),
        ("rotated-certificates", "[/etc/unbound/2.cert]"),
        ("replay-memory", "8192KiB"),
        ("client-keys", "64KiB"),
    ] {
        check(&all, &format!("dnscrypt/{key}"), expect);
        check(&all.replace("enable: yes", "enable: no"), &format!("dnscrypt/{key}"), "");
    }
}

#[test]
fn a_port_of_dnscrypt_without_an_interface_is_said() {
    says(
        "dnscrypt: dnscrypt-enable: yes",
        &["u.conf:1:28: warning: nobody is served over DNSCrypt: no \"interface\" has the port 443"],
    );
}
