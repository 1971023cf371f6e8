//! Where zones come from that are known by names: primaries by the names of their hosts.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::{Answer, Asked, Script, Server, Stub, eventually};
use wire::{Rcode, Rtype};

use super::{directory_with_org, primary};

/// What says where `ns.example.net` is: at an address where nobody listens, until it has moved.
fn names(has_moved: &Arc<AtomicBool>) -> Stub {
    let has_moved = Arc::clone(has_moved);
    Stub::start(Script::answering(move |asked: &Asked| match asked.qtype {
        Rtype::A if asked.qname.eq_ignore_ascii_case("ns.example.net.") => {
            let last = if has_moved.load(Ordering::Relaxed) { 1 } else { 9 };
            Answer::a(300, Ipv4Addr::new(127, 0, 0, last)).authoritative()
        }
        Rtype::A => Answer::negative(Rcode::NXDOMAIN, 300, 300).authoritative(),
        _ => Answer::negative(Rcode::NOERROR, 300, 300).authoritative(),
    }))
}

/// Starts a secondary whose resolver asks this stub for names of `example.net`.
fn with_resolver(names: &Stub, zones: &str) -> Server {
    Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         keys: [{{name: {}, secret: {}}}]\n\
         resolvers:\n  default: {{validation: \"off\", port: {}, zones: {{\".\": {{stub: \"{}\"}}}}, limits: {{time: 2s}}}}\n\
         zones: [{zones}]\npolicy: {{main: [recurse]}}\n",
        super::KEY,
        super::SECRET,
        names.address().port(),
        names.address(),
    ))
}

fn has_zone(server: &Server) -> bool {
    server.dig(&["mail.example.org", "A"]).contains("192.0.2.2")
}

/// Says that there is another version, to have it asked for now.
fn notify(server: &Server) {
    let said = server.dig(&["+opcode=notify", "example.org", "SOA"]);
    assert!(said.contains("status: NOERROR"), "{said}");
}

#[test]
fn a_primary_is_found_by_its_name_again_and_again() {
    let primary = primary("transfer: any", "");
    let has_moved = Arc::<AtomicBool>::default();
    let names = names(&has_moved);
    let zone = format!(
        "{{name: example.org, primaries: [\"ns.example.net:{}\"], notify-from: [loopback]}}",
        primary.address().port()
    );
    let mut server = with_resolver(&names, &zone);
    let line = server.wait_for_log("no transfer");
    assert!(line.contains("127.0.0.9"), "{line}");
    has_moved.store(true, Ordering::Relaxed);
    eventually("the zone, from where its primary is now", || {
        notify(&server);
        has_zone(&server)
    });
}

#[test]
fn a_name_without_addresses_is_told_and_the_next_primary_is_asked() {
    let primary = primary("transfer: any", "");
    let names = names(&Arc::default());
    let zone = format!(
        "{{name: example.org, primaries: [nowhere.example.net, \"{}\"], notify-from: [loopback]}}",
        primary.address()
    );
    let mut server = with_resolver(&names, &zone);
    let line = server.wait_for_log("the addresses of a primary are not known");
    assert!(line.contains("nowhere.example.net"), "{line}");
    eventually("the zone of the second primary", || has_zone(&server));
}

#[test]
fn a_primary_known_by_name_notifies_with_its_key_alone() {
    let primary = primary("transfer: [\"key xfr.example.org\"]", "");
    let has_moved = Arc::new(AtomicBool::new(true));
    let names = names(&has_moved);
    let port = primary.address().port();
    let zone = format!("{{name: example.org, primaries: [\"ns.example.net:{port} key xfr.example.org\"]}}");
    let server = with_resolver(&names, &zone);
    eventually("the zone", || has_zone(&server));
    // From its address anybody could say so.
    let said = server.dig(&["+opcode=notify", "example.org", "SOA"]);
    assert!(said.contains("status: REFUSED") || said.contains("status: NOTAUTH"), "{said}");
    let key = super::key_option("hmac-sha256");
    let said = server.dig(&["-y", &key, "+opcode=notify", "example.org", "SOA"]);
    assert!(said.contains("status: NOERROR"), "{said}");
}

#[test]
fn without_a_resolver_the_servers_for_hosts_are_asked() {
    let primary = primary("transfer: any", "");
    let has_moved = Arc::new(AtomicBool::new(true));
    let names = names(&has_moved);
    let server = Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\", resolvers: [\"{}\"]}}\nlisten: [\"@ADDRESS@\"]\n\
         zones: [{{name: example.org, primaries: [\"ns.example.net:{}\"]}}]\n\
         policy: {{main: [{{do: reject(refused)}}]}}\n",
        names.address(),
        primary.address().port()
    ));
    eventually("the zone", || has_zone(&server));
    assert!(names.count("ns.example.net.") > 0);
}

#[test]
fn who_is_notified_is_not_known_by_a_name() {
    let directory = directory_with_org();
    let file = directory.path().join("gannet.yaml");
    std::fs::write(&file, "zones: [{name: example.org, file: org, notify: [ns.example.net]}]\n")
        .expect("a writable directory");
    let output = testkit::program(Path::new(directory.path())).args(["check", "gannet.yaml"]).output();
    let output = output.expect("gannet runs");
    let said = testkit::said(&output);
    assert!(!output.status.success() && said.contains("\"ns.example.net.\" is not the address"), "{said}");
}
