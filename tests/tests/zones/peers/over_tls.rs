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

/// An authority's files in a directory: `ca.pem`, and a certificate for each of two sides.
fn authority(directory: &std::path::Path) {
    let authority = testkit::Authority::new();
    let write =
        |name: &str, text: &str| std::fs::write(directory.join(name), text).expect("a writable directory");
    write("ca.pem", &authority.pem());
    let (certificate, key) = authority.vouch(&[NAME]).pem();
    write("certificate.pem", &certificate);
    write("key.pem", &key);
    let (certificate, key) = authority.vouch_for_client("secondary.example", "Example").pem();
    write("client.pem", &certificate);
    write("client.key", &key);
}

/// Starts one of ours that takes the zone from `port`, with what is said of TLS besides.
fn taking(port: u16, more: &str, from: &std::path::Path) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    for name in ["ca.pem", "client.pem", "client.key"] {
        std::fs::copy(from.join(name), directory.path().join(name)).expect("a file");
    }
    let zone =
        format!("{{name: example.org, primaries: [\"tls://127.0.0.1:{port}#{NAME} {more} key {KEY}\"]}}");
    Server::start_in(directory, &config(&zone, ""))
}

#[test]
fn an_authority_of_ones_own_vouches_for_a_primary_and_for_its_secondary() {
    let directory = directory_with_org();
    authority(directory.path());
    let zone = format!("{{name: example.org, file: org, transfer: [\"tls key {KEY}\"]}}");
    let yaml = config(&zone, "").replace(
        "listen: [\"@ADDRESS@\"]",
        "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls, client-certificates: required}]\n\
         tls: {client-ca: [ca.pem], certificates: [{certificate: certificate.pem, key: key.pem}]}",
    );
    let server = Server::start_in(directory, &yaml);
    let port = server.another().port();
    let shown = "roots ca.pem certificate client.pem private-key client.key";
    let secondary = taking(port, shown, server.directory());
    eventually("the zone here", || secondary.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    // Who shows nothing gets nothing, and whoever trusts other authorities takes nothing.
    let mut stranger = taking(port, "roots ca.pem", server.directory());
    stranger.wait_for_log("no transfer");
    assert!(stranger.dig(&["mail.example.org", "A"]).contains("SERVFAIL"));
    let mut stranger = taking(port, "certificate client.pem private-key client.key", server.directory());
    assert!(stranger.wait_for_log("no transfer").contains("not trusted"));
}

#[test]
fn we_take_a_zone_from_bind_that_wants_to_see_our_certificate() {
    if !is_installed("named") {
        return;
    }
    let directory = TempDir::new().expect("a temporary directory");
    authority(directory.path());
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("a file");
    let (ca, certificate, key) = (read("ca.pem"), read("certificate.pem"), read("key.pem"));
    let port = free_address().port();
    let more = format!(
        "{BIND_KEY}\ntls own {{ cert-file \"@DIRECTORY@/certificate.pem\"; key-file \"@DIRECTORY@/key.pem\"; ca-file \"@DIRECTORY@/ca.pem\"; }};\n\
         zone \"example.org\" {{ type primary; file \"org\"; allow-transfer transport tls {{ key {KEY}; }}; }};\n"
    );
    let options = format!("listen-on port {port} tls own {{ 127.0.0.1; }};");
    let files = [("certificate.pem", certificate.as_str()), ("key.pem", &key), ("ca.pem", &ca), ("org", ORG)];
    let bind = Other::bind(&options, &more, &files);
    let shown = "roots ca.pem certificate client.pem private-key client.key";
    let secondary = taking(port, shown, directory.path());
    eventually("the zone here", || secondary.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    let mut stranger = taking(port, "roots ca.pem", directory.path());
    stranger.wait_for_log("no transfer");
    drop(bind);
}

/// Starts one of ours that gives its zone to whoever `transfer` names, at a listener that asks for
/// certificates as `asks` says.
fn giving_to(transfer: &str, asks: &str) -> Server {
    let directory = directory_with_org();
    authority(directory.path());
    let zone = format!("{{name: example.org, file: org, transfer: [\"{transfer}\"]}}");
    let authorities = if asks == "any" { "" } else { "client-ca: [ca.pem], " };
    let yaml = config(&zone, "").replace(
        "listen: [\"@ADDRESS@\"]",
        &format!(
            "listen: [\"@ADDRESS@\", {{at: \"@ANOTHER@\", transport: tls, client-certificates: {asks}}}]\n\
             tls: {{{authorities}certificates: [{{certificate: certificate.pem, key: key.pem}}]}}"
        ),
    );
    Server::start_in(directory, &yaml)
}

const SHOWN: &str = "roots ca.pem certificate client.pem private-key client.key";

#[test]
fn secondaries_are_known_by_the_names_in_their_certificates() {
    let server = giving_to("tls-name Secondary.Example", "optional");
    let port = server.another().port();
    let known = taking(port, SHOWN, server.directory());
    eventually("the zone here", || known.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    let mut nameless = taking(port, "roots ca.pem", server.directory());
    assert!(nameless.wait_for_log("no transfer").contains("REFUSED"));
    // Another name, from the same authority.
    let other = giving_to("tls-name other.example", "optional");
    let mut stranger = taking(other.another().port(), SHOWN, other.directory());
    assert!(stranger.wait_for_log("no transfer").contains("REFUSED"));
    // In the clear there is no certificate.
    let plain = dig_anyway(&server, &["-y", &key_option("hmac-sha256"), "example.org", "AXFR"]);
    assert!(plain.contains("Transfer failed"), "{plain}");
}

#[test]
fn secondaries_are_known_by_the_keys_in_their_certificates_whoever_signed_them() {
    let files = TempDir::new().expect("a temporary directory");
    let identity = Identity::self_signed(&["secondary.example"]);
    let (certificate, key) = identity.pem();
    let put = |directory: &std::path::Path| {
        std::fs::write(directory.join("client.pem"), &certificate).expect("a writable directory");
        std::fs::write(directory.join("client.key"), &key).expect("a writable directory");
    };
    let server = giving_to(&format!("loopback tls-pin {}", identity.pin()), "any");
    let port = server.another().port();
    std::fs::copy(server.directory().join("ca.pem"), files.path().join("ca.pem")).expect("a file");
    put(files.path());
    let known = taking(port, SHOWN, files.path());
    eventually("the zone here", || known.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    // The key of another.
    let mut stranger = taking(port, SHOWN, server.directory());
    assert!(stranger.wait_for_log("no transfer").contains("REFUSED"));
    // A name that nobody vouches for is no name.
    let server = giving_to("tls-name secondary.example", "any");
    std::fs::copy(server.directory().join("ca.pem"), files.path().join("ca.pem")).expect("a file");
    let mut unvouched = taking(server.another().port(), SHOWN, files.path());
    assert!(unvouched.wait_for_log("no transfer").contains("REFUSED"));
}

#[test]
fn a_zone_that_is_added_knows_secondaries_by_their_certificates() {
    let server = giving_to("192.0.2.1", "optional");
    std::fs::write(server.directory().join("net"), ORG).expect("a writable directory");
    let said = "{file: net, transfer: [tls-name secondary.example]}";
    let added = server.command(&["zone", "add", "example.net", "--with", said]);
    assert!(added.status.success(), "{added:?}");
    let directory = TempDir::new().expect("a temporary directory");
    for name in ["ca.pem", "client.pem", "client.key"] {
        std::fs::copy(server.directory().join(name), directory.path().join(name)).expect("a file");
    }
    let port = server.another().port();
    let zone = format!("{{name: example.net, primaries: [\"tls://127.0.0.1:{port}#{NAME} {SHOWN}\"]}}");
    let secondary = Server::start_in(directory, &config(&zone, ""));
    eventually("the zone here", || secondary.dig(&["mail.example.net", "A"]).contains("192.0.2.2"));
}
