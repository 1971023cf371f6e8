//! Zones whose versions are taken by their digest (ZONEMD), and the root zone that a resolver
//! reads.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use tempfile::TempDir;

use testkit::{Page, Server, Web, eventually};

const ROOT: &str = "$TTL 3600\n\
    . SOA ns.root.test. admin.root.test. @SERIAL@ 7200 600 86400 300\n\
    . NS ns.root.test.\n\
    ns.root.test. A 192.0.2.1\n\
    example. NS ns.example.\n\
    ns.example. A 192.0.2.3\n";

/// Runs the program in a directory.
fn gannet(directory: &Path, arguments: &[&str]) -> String {
    let output = testkit::program(directory).args(arguments).output().expect("gannet runs");
    let said = testkit::said(&output);
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

/// A root zone with its key.
struct Root(TempDir);

impl Root {
    fn new() -> Self {
        let root = Self(TempDir::new().expect("a temporary directory"));
        gannet(root.0.path(), &["zone", "keys", "generate", ".", "--keys", "keys"]);
        root
    }

    /// Returns the zone with this serial, signed and with its digest.
    fn signed(&self, serial: u32) -> String {
        let at = self.0.path();
        std::fs::write(at.join("root"), ROOT.replace("@SERIAL@", &serial.to_string())).expect("writable");
        let sign = ["zone", "sign", "root", "--name", ".", "--keys", "keys", "--zonemd", "sha384"];
        gannet(at, &[&sign[..], &["-o", "signed"]].concat());
        std::fs::read_to_string(at.join("signed")).expect("it was written")
    }

    fn anchor(&self) -> String {
        gannet(self.0.path(), &["zone", "keys", "ds", ".", "--keys", "keys"])
    }
}

/// Starts a server that gives a root zone away.
fn primary(text: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("root"), text).expect("a writable directory");
    Server::start_in(
        directory,
        "server: {workers: 1, state-directory: \"@DIRECTORY@\"}\nlisten: [\"@ADDRESS@\"]\n\
         zones: [{name: ., file: root, transfer: any}]\npolicy: {main: [{do: reject(refused)}]}\n",
    )
}

/// Starts a server whose resolver reads the root zone of these primaries. The root's servers are
/// none.
fn resolver(anchor: &str, primaries: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("a writable directory");
    };
    write("anchor", anchor);
    write("hints", ". NS ns.root.test.\nns.root.test. A 192.0.2.99\n");
    Server::start_in(directory, &settings(primaries))
}

fn settings(primaries: &str) -> String {
    format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         resolvers:\n  default: {{local-root: true, local-root-primaries: [{primaries}], trust-anchors: anchor, \
         trust-anchor-signaling: false, root-hints: hints, limits: {{time: 1s}}}}\n\
         policy: {{main: [recurse]}}\n"
    )
}

/// Says that there is another version, as its primary does.
fn notify(server: &Server) {
    let said = server.dig(&["+opcode=notify", ".", "SOA"]);
    assert!(said.contains("status: NOERROR"), "{said}");
}

fn is_denied(server: &Server, qname: &str) -> bool {
    let said = server.dig(&["+dnssec", qname, "A"]);
    said.contains("status: NXDOMAIN") && said.contains("flags: qr rd ra ad;")
}

#[test]
fn a_resolver_answers_from_the_root_zone_that_it_has_read() {
    let root = Root::new();
    let primary = primary(&root.signed(7));
    let mut server = resolver(&root.anchor(), &format!("\"{}\"", primary.address()));
    server.wait_for_log("transferred by AXFR");
    // The root's servers do not answer.
    assert!(is_denied(&server, "nowhere.invalid-tld"));
    let said = server.dig(&[".", "NS"]);
    assert!(said.contains("ns.root.test.") && said.contains("flags: qr rd ra"), "not with authority: {said}");
    // Nobody gets the zone.
    assert!(server.dig(&["+tcp", ".", "AXFR"]).contains("Transfer failed"));
    // A new version is taken, and kept over a restart.
    std::fs::write(primary.directory().join("root"), root.signed(8)).expect("a writable directory");
    assert!(primary.command(&["reload"]).status.success());
    notify(&server);
    let serial = |server: &Server| server.dig_short(&[".", "SOA"]).concat();
    eventually("the new version is there", || {
        testkit::said(&server.command(&["zone", "status", "."])).contains(" 8 ")
    });
    let (_, _, directory) = server.stop();
    drop(primary);
    let server = Server::start_in(directory, &settings("\"127.0.0.1:9\""));
    assert!(is_denied(&server, "nowhere.invalid-tld"), "what was kept is used");
    assert!(serial(&server).contains(" 8 7200"), "{}", serial(&server));
}

#[test]
fn a_root_zone_that_is_not_the_one_that_was_signed_is_refused() {
    let root = Root::new();
    let good = root.signed(7);
    // Glue has no signature: only the digest tells.
    let other_glue = good.replace("192.0.2.3", "192.0.2.66");
    let without =
        |what: &str| good.lines().filter(|line| !line.contains(what)).collect::<Vec<_>>().join("\n");
    let other_key = Root::new().signed(7);
    for (text, why) in [
        (other_glue, "its ZONEMD is not that of its records"),
        (without("ZONEMD "), "it is not proved that the zone has no ZONEMD"),
        (other_key, "DNSKEY of the zone"),
    ] {
        let primary = primary(&format!("{text}\n"));
        let mut server = resolver(&root.anchor(), &format!("\"{}\"", primary.address()));
        let line = server.wait_for_log("the version that came is not taken");
        assert!(line.contains(why), "{why}: {line}");
        let status = testkit::said(&server.command(&["zone", "status", "."]));
        assert!(status.contains("is not taken"), "{status}");
        // It goes on with the root's servers, of which none answers here.
        assert!(server.dig(&["nowhere", "A"]).contains("status: SERVFAIL"));
    }
}

#[test]
fn a_bad_primary_does_no_harm_beside_a_good_one() {
    let root = Root::new();
    let bad = primary(&root.signed(9).replace("192.0.2.3", "192.0.2.66"));
    let good = primary(&root.signed(7));
    // One that gives up in the middle.
    let broken = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let broken_at = broken.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in broken.incoming().flatten() {
            let mut query = [0; 512];
            let len = stream.read(&mut query).unwrap_or(0);
            // The question as it came, and half of an answer.
            let mut reply = query.get(..len).unwrap_or(&[]).to_vec();
            if let Some(flags) = reply.get_mut(4) {
                *flags |= 0x84;
            }
            drop(stream.write_all(&reply));
        }
    });
    let primaries = format!("\"{broken_at}\", \"{}\", \"{}\"", bad.address(), good.address());
    let mut server = resolver(&root.anchor(), &primaries);
    server.wait_for_log("transferred by AXFR");
    assert!(is_denied(&server, "nowhere"));
    // A serial that goes back is not taken.
    std::fs::write(good.directory().join("root"), root.signed(6)).expect("a writable directory");
    let (_, _, directory) = good.stop();
    let good = Server::start_in(
        directory,
        "server: {workers: 1, state-directory: \"@DIRECTORY@\"}\nlisten: [\"@ADDRESS@\"]\nzones: [{name: ., file: root, transfer: any}]\npolicy: {main: [{do: reject(refused)}]}\n",
    );
    server.write_config(&settings(&format!("\"{}\"", good.address())));
    assert!(server.command(&["reload"]).status.success());
    notify(&server);
    server.wait_for_log("the primary's serial 6 is older than ours");
    assert!(is_denied(&server, "still.nowhere"));
}

#[test]
fn a_zone_file_with_a_wrong_digest_is_not_taken() {
    let root = Root::new();
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("root");
    std::fs::write(&file, root.signed(7)).expect("a writable directory");
    let settings = "server: {workers: 1, state-directory: \"@DIRECTORY@\"}\nlisten: [\"@ADDRESS@\"]\n\
         zones: [{name: ., file: root, zonemd: require}]\nresolvers: {default: {validation: \"off\"}}\n\
         policy: {main: [{do: reject(refused)}]}\n";
    let server = Server::start_in(directory, settings);
    assert!(server.dig(&[".", "SOA"]).contains(" 7 7200"));
    std::fs::write(server.directory().join("root"), root.signed(8).replace("192.0.2.3", "192.0.2.66"))
        .expect("a writable directory");
    let said = testkit::said(&server.command(&["reload"]));
    assert!(said.contains("its ZONEMD is not that of its records"), "{said}");
    assert!(server.dig(&[".", "SOA"]).contains(" 7 7200"), "the version before is still served");
}

#[test]
fn what_comes_is_written_to_a_file() {
    let root = Root::new();
    let primary = primary(&root.signed(7));
    let directory = TempDir::new().expect("a temporary directory");
    let settings = format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         zones: [{{name: ., primaries: [\"{}\"], write-to: \"@DIRECTORY@/copy\"}}]\npolicy: {{main: [{{do: reject(refused)}}]}}\n",
        primary.address()
    );
    let server = Server::start_in(directory, &settings);
    let copy = server.directory().join("copy");
    eventually("the file is there", || copy.exists());
    let text = std::fs::read_to_string(&copy).expect("a file");
    assert!(
        text.starts_with(".\t3600\tIN\tSOA\tns.root.test. admin.root.test. 7 7200 600 86400 300\n"),
        "{text}"
    );
    assert!(text.contains("ns.example.\t3600\tIN\tA\t192.0.2.3\n"), "{text}");
}

#[test]
fn a_root_zone_from_a_web_server_is_taken_by_its_digest() {
    let root = Root::new();
    let good = root.signed(7);
    let bad = root.signed(8).replace("192.0.2.3", "192.0.2.66");
    let web = Web::start(move |request| match request.line.contains("/bad") {
        true => Page::found(bad.clone()),
        false => Page::found(good.clone()),
    });
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("anchor"), root.anchor()).expect("a writable directory");
    std::fs::write(directory.path().join("hints"), ". NS ns.root.test.\nns.root.test. A 192.0.2.99\n")
        .expect("a writable directory");
    let settings = settings("").replace(
        "local-root: true,",
        &format!("local-root: true, local-root-urls: [\"{}\", \"{}\"],", web.url("/bad"), web.url("/good")),
    );
    let mut server = Server::start_in(directory, &settings);
    let line = server.wait_for_log("the zone was not taken from a web server");
    assert!(line.contains("its ZONEMD is not that of its records"), "{line}");
    eventually("the root zone is read", || is_denied(&server, "nowhere.invalid-tld"));
}
