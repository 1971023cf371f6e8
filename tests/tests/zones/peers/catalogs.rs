//! Zones that say which zones there are (RFC 9432).

use testkit::{Other, Server, eventually, is_installed};

use super::*;

/// Starts one of ours that makes a catalog of `example.org`, and of `more`.
fn producing() -> Server {
    let directory = directory_with_org();
    std::fs::copy(directory.path().join("org"), directory.path().join("net")).expect("a writable directory");
    Server::start_in(directory, &produced("", ""))
}

const NET: &str =
    "\n  - {name: example.net, file: net, transfer: [loopback], catalog: catalog.example, group: more}";

/// Returns the settings of one that makes a catalog; `notify` is told of it.
fn produced(more: &str, notify: &str) -> String {
    config(
        &format!(
            "{{name: catalog.example, catalog-role: producer, transfer: [loopback], notify: [{notify}]}}\n  \
             - {{name: example.org, file: org, transfer: [loopback], catalog: catalog.example}}{more}"
        ),
        "",
    )
}

/// The members come and go at `other` as they do here.
fn check_follower(server: &Server, other: &Other) {
    let notify = format!("\"{}\"", other.address());
    let change = |more: &str| {
        server.write_config(&produced(more, &notify));
        assert!(server.command(&["reload"]).status.success());
    };
    change("");
    eventually("the member", || other.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    assert!(other.dig(&["mail.example.net", "A"]).contains("REFUSED"));
    change(NET);
    eventually("the new member", || other.dig(&["mail.example.net", "A"]).contains("192.0.2.2"));
    change("");
    eventually("the member gone", || other.dig(&["mail.example.net", "A"]).contains("REFUSED"));
    assert!(other.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
}

#[test]
fn bind_follows_our_catalog() {
    if !is_installed("named") {
        return;
    }
    let server = producing();
    let port = server.address().port();
    let options = format!(
        "catalog-zones {{ zone \"catalog.example\" default-primaries {{ 127.0.0.1 port {port}; }} in-memory yes min-update-interval 1; }};"
    );
    let zone = format!(
        "zone \"catalog.example\" {{ type secondary; file \"catalog\"; primaries {{ 127.0.0.1 port {port}; }}; allow-notify {{ 127.0.0.1; }}; }};"
    );
    check_follower(&server, &Other::bind(&options, &zone, &[]));
}

#[test]
fn knot_follows_our_catalog() {
    if !is_installed("knotd") {
        return;
    }
    let server = producing();
    let port = server.address().port();
    let more = format!(
        "remote:\n  - id: primary\n    address: 127.0.0.1@{port}\n\
         acl:\n  - id: notify\n    address: 127.0.0.1\n    action: notify\n\
         template:\n  - id: default\n    storage: @DIRECTORY@\n\
         \x20 - id: member\n    storage: @DIRECTORY@\n    master: primary\n    acl: notify\n\
         zone:\n  - domain: catalog.example\n    master: primary\n    acl: notify\n\
         \x20   catalog-role: interpret\n    catalog-template: member\n"
    );
    check_follower(&server, &Other::knot(&more, &[]));
}

/// We follow the catalog of `other`, which `add` and `remove` change.
fn check_followed(other: &Other, add: &dyn Fn(), remove: &dyn Fn()) {
    let zone = format!(
        "{{name: catalog.example, catalog-role: consumer, primaries: [\"{}\"], transfer: [loopback]}}",
        other.address()
    );
    let server = Server::start(&config(&zone, ""));
    eventually("the member", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    assert!(server.dig(&["mail.example.net", "A"]).contains("REFUSED"));
    let look = || server.command(&["zone", "reload", "catalog.example"]).status.success();
    add();
    eventually("the new member", || look() && server.dig(&["mail.example.net", "A"]).contains("192.0.2.2"));
    remove();
    eventually("the member gone", || look() && server.dig(&["mail.example.net", "A"]).contains("REFUSED"));
    assert!(server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
}

#[test]
fn we_follow_the_catalog_of_bind() {
    if !is_installed("named") {
        return;
    }
    let catalog = "$TTL 60\n@ SOA invalid. invalid. 1 3600 600 86400 60\n@ NS invalid.\nversion TXT \"2\"\n\
        a.zones PTR example.org.\ngroup.a.zones TXT nobody-knows\n";
    let primary = |name: &str| {
        format!("zone \"{name}\" {{ type primary; file \"org\"; allow-transfer {{ any; }}; }};\n")
    };
    let more = format!(
        "{BIND_KEY}\nzone \"catalog.example\" {{ type primary; file \"catalog\"; allow-transfer {{ any; }}; allow-update {{ key {KEY}; }}; }};\n{}{}",
        primary("example.org"),
        primary("example.net"),
    );
    let other = Other::bind("", &more, &[("org", ORG), ("catalog", catalog)]);
    let update = |commands: &str| {
        let (is_done, said) = update_at(other.address(), "catalog.example", commands);
        assert!(is_done, "{said}");
    };
    check_followed(&other, &|| update("update add b.zones.catalog.example 60 PTR example.net."), &|| {
        update("update delete b.zones.catalog.example");
    });
}

#[test]
fn we_follow_the_catalog_of_knot() {
    if !is_installed("knotd") {
        return;
    }
    let conf = |more: &str| {
        format!(
            "acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n\
             template:\n  - id: default\n    storage: @DIRECTORY@\n    acl: all\n\
             zone:\n  - domain: catalog.example\n    catalog-role: generate\n\
             \x20 - domain: example.org\n    file: org\n    catalog-role: member\n    catalog-zone: catalog.example\n{more}"
        )
    };
    let net = "  - domain: example.net\n    file: org\n    catalog-role: member\n    catalog-zone: catalog.example\n";
    let text = without_generate();
    let other = Other::knot(&conf(""), &[("org", &text)]);
    let file = other.directory().join("conf");
    let before = std::fs::read_to_string(&file).expect("a file");
    let change = |text: String| {
        std::fs::write(&file, text).expect("a writable directory");
        other.signal("-HUP");
    };
    check_followed(&other, &|| change(before.clone() + net), &|| change(before.clone()));
}

#[test]
fn a_catalog_says_which_zones_there_are() {
    let server = producing();
    let printed = server.dig(&["catalog.example", "AXFR"]);
    assert!(printed.contains("version.catalog.example.") && printed.contains("example.org."), "{printed}");
    let consumer = config(
        &format!(
            "{{name: catalog.example, catalog-role: consumer, primaries: [\"{}\"], transfer: [loopback]}}",
            server.address()
        ),
        "",
    );
    let follower = Server::start(&consumer);
    eventually("the member", || follower.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    assert!(follower.dig(&["mail.example.net", "A"]).contains("REFUSED"));
    server.write_config(&produced(NET, ""));
    assert!(server.command(&["reload"]).status.success());
    assert!(follower.command(&["zone", "reload", "catalog.example"]).status.success());
    eventually("the new member", || follower.dig(&["mail.example.net", "A"]).contains("192.0.2.2"));
    // Members are there after a restart, before anybody is asked.
    let (_, _, directory) = follower.stop_by("KILL");
    let follower = Server::start_in(directory, &consumer);
    assert!(follower.dig(&["mail.example.net", "A"]).contains("192.0.2.2"));
    server.write_config(&produced("", ""));
    assert!(server.command(&["reload"]).status.success());
    assert!(follower.command(&["zone", "reload", "catalog.example"]).status.success());
    eventually("the member gone", || follower.dig(&["mail.example.net", "A"]).contains("REFUSED"));
}
