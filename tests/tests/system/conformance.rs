//! The built program and what others made to find fault with servers: `h2spec`, dnspython, aioquic,
//! a browser.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use testkit::tls::NAME;
use testkit::{Answer, Script, Server, Stub, certificate, contains, eventually, forwarding, tool};
use wire::Rtype;

const LISTEN: &str = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}, \
    {at: \"127.0.0.1:0\", transport: [https, h3]}, {at: \"127.0.0.1:0\", transport: quic}]";

/// Tests open connections as fast as they can.
const SETTINGS: &str = "tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}\n\
    limits: {tcp: {connections-per-client: 10000}, tls: {handshakes-per-client: 16000, handshakes-per-second: 16000}}";

fn start(stub: &Stub, more: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME, "127.0.0.1"]);
    let config = forwarding(&[stub], &format!("{SETTINGS}\n{more}"));
    Server::start_in(directory, &config.replace("listen: [\"@ADDRESS@\"]", LISTEN))
}

/// Runs a program to its end and returns what it printed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|why| {
        panic!("cannot run {} ({why}); `cargo xtask test` installs it", command.get_program().display())
    });
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}: {}\n{printed}\n{complaint}",
        command.get_program().display(),
        output.status
    );
    printed
}

#[test]
fn h2spec_finds_no_fault_with_http_2() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "");
    let port = server.port("https").to_string();
    // www.example.com, A: the example of RFC 8484 §4.1.1.
    let path = "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
    let arguments =
        ["-t", "-k", "-h", "127.0.0.1", "-p", &port, "-P", path, "-o", "10", "http2", "hpack", "generic"];
    let printed = run(Command::new(tool("bin/h2spec")).args(arguments));
    let last = printed.lines().rev().find(|line| line.contains("passed")).expect("a summary");
    // "146 tests, 145 passed, 1 skipped, 0 failed"
    contains(last, " 0 failed");
    let passed = last.split(", ").find_map(|part| part.strip_suffix(" passed")?.parse::<u32>().ok());
    assert!(passed.is_some_and(|passed| passed > 100), "{last}");
}

#[test]
fn dnspython_asks_over_every_transport_it_has() {
    let stub = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::TXT => Answer::long_text(300, 3000),
        _ => Answer::a(300, Ipv4Addr::new(192, 0, 2, 1)),
    }));
    let server = start(&stub, "");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/ask.py");
    let ports =
        [server.another().port(), server.port("https"), server.port("quic")].map(|port| port.to_string());
    let mut command = Command::new(tool("python/bin/python"));
    command.arg(script).args(["127.0.0.1", NAME]).arg(server.directory().join("certificate.pem")).args(ports);
    let printed = run(&mut command);
    for transport in ["tls", "https1", "https2", "https3", "https-get", "quic"] {
        contains(&printed, &format!("{transport} A NOERROR 1 192.0.2.1\n"));
        contains(&printed, &format!("{transport} TXT NOERROR 1 \""));
    }
    for (counter, expect) in
        [("queries_tls", 2), ("queries_https", 6), ("queries_h3", 2), ("queries_quic", 2)]
    {
        assert_eq!(server.stat("engine", counter), expect, "{counter}");
    }
}

/// A web page that says `found`, to however many ask.
fn page() -> u16 {
    let web = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = web.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut client in web.incoming().flatten() {
            let _ = client.set_read_timeout(Some(testkit::DEADLINE));
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 19\r\nConnection: close\r\n\r\n<p>found, here.</p>",
            );
        }
    });
    port
}

#[test]
#[ignore = "takes a browser: `cargo xtask test` runs it where there is one, and says so where there is none"]
fn a_browser_resolves_names_through_the_server() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "local: {web.example.org: 127.0.0.1}");
    let profile = server.directory().join("profile");
    std::fs::create_dir(&profile).expect("a writable directory");
    let doh = format!("https://127.0.0.1:{}/dns-query", server.port("https"));
    // What a user sets under "Use secure DNS", with no way back to the machine's resolver.
    let settings = format!("{{\"dns_over_https\":{{\"mode\":\"secure\",\"templates\":\"{doh}\"}}}}");
    std::fs::write(profile.join("Local State"), settings).expect("a writable directory");
    let browser = std::env::var("GANNET_BROWSER").unwrap_or_else(|_| "chromium".to_owned());
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"])
        .args(["--ignore-certificate-errors", "--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("http://web.example.org:{}/", page()))
        .env("HOME", server.directory());
    contains(&run(&mut command), "found, here.");
    eventually("the browser has asked over HTTPS", || server.stat("engine", "queries_https") > 0);
}
