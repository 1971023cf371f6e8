//! Transfers over TLS (RFC 9103).

use testkit::tls::NAME;
use testkit::{Identity, Other, Server, certificate, eventually, free_address, is_installed};

use super::*;

/// Starts one of ours that gives its zone away only over TLS, and only with the key.
fn giving() -> Server {
    let directory = directory_with_org();
    certificate(directory.path(), &[NAME, "127.0.0.1"]);
    let zone = format!("{{name: example.org, file: org, transfer: [\"tls key {KEY}\"]}}");
    let yaml = config(&zone, "").replace(
        "listen: [\"@ADDRESS@\"]",
        "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}]\n\
         tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}",
    );
    Server::start_in(directory, &yaml)
}

fn check_given(server: &Server, other: &Other) {
    eventually("the zone at the secondary", || other.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    let key = key_option("hmac-sha256");
    let plain = dig_anyway(server, &["-y", &key, "example.org", "AXFR"]);
    assert!(plain.contains("Transfer failed"), "{plain}");
}

#[test]
fn bind_takes_a_zone_over_tls() {
    if !is_installed("named") {
        return;
    }
    let server = giving();
    let (port, trusted) = (server.another().port(), server.directory().join("certificate.pem"));
    let more = format!(
        "{BIND_KEY}\ntls ours {{ remote-hostname \"{NAME}\"; ca-file \"{}\"; }};\n\
         zone \"example.org\" {{ type secondary; file \"org\"; primaries {{ 127.0.0.1 port {port} key {KEY} tls ours; }}; }};\n",
        trusted.display()
    );
    check_given(&server, &Other::bind("", &more, &[]));
}

#[test]
fn nsd_takes_a_zone_over_tls() {
    if !is_installed("nsd") {
        return;
    }
    let server = giving();
    let (port, trusted) = (server.another().port(), server.directory().join("certificate.pem"));
    let more = format!(
        "{NSD_KEY}tls-auth:\n  name: ours\n  auth-domain-name: {NAME}\n\
         zone:\n  name: example.org\n  zonefile: org\n  request-xfr: 127.0.0.1@{port} {KEY} ours\n"
    );
    let bundle = format!("  tls-cert-bundle: \"{}\"", trusted.display());
    check_given(&server, &Other::nsd(&bundle, &more, &[]));
}

#[test]
fn dig_takes_a_zone_over_tls() {
    let server = giving();
    let key = key_option("hmac-sha256");
    let trusted = format!("+tls-ca={}", server.directory().join("certificate.pem").display());
    let name = format!("+tls-hostname={NAME}");
    let all = testkit::dig(server.another(), &["+tls", &trusted, &name, "-y", &key, "example.org", "AXFR"]);
    assert!(records(&all).len() > 250, "{all}");
}

/// Takes the zone from a server that speaks TLS at `port` and shows `identity`.
fn check_taken(port: u16, identity: &Identity) {
    let at = |pin: &str| format!("\"tls://127.0.0.1:{port}#{NAME} pin {pin} key {KEY}\"");
    let server = secondary(&at(&identity.pin()), "");
    eventually("the zone here", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    // Whoever has another key of TLS is not believed.
    let stranger = Identity::self_signed(&[NAME]).pin();
    let mut server = secondary(&at(&stranger), "");
    server.wait_for_log("no transfer");
    assert!(server.dig(&["mail.example.org", "A"]).contains("SERVFAIL"));
}

#[test]
fn we_take_a_zone_from_bind_over_tls() {
    if !is_installed("named") {
        return;
    }
    let identity = Identity::self_signed(&[NAME]);
    let (certificate, key) = identity.pem();
    let port = free_address().port();
    let more = format!(
        "{BIND_KEY}\ntls own {{ cert-file \"@DIRECTORY@/certificate.pem\"; key-file \"@DIRECTORY@/key.pem\"; }};\n\
         zone \"example.org\" {{ type primary; file \"org\"; allow-transfer transport tls {{ key {KEY}; }}; }};\n"
    );
    let options = format!("listen-on port {port} tls own {{ 127.0.0.1; }};");
    let files = [("certificate.pem", certificate.as_str()), ("key.pem", &key), ("org", ORG)];
    let _bind = Other::bind(&options, &more, &files);
    check_taken(port, &identity);
}
