//! The built program and encrypted upstreams that others wrote: dnsdist and Unbound, in front of our stub.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::{Ask, Authority, Script, Server, Stub, UdpClient, eventually};
use wire::{Rcode, Rtype};

/// The name of the servers.
const NAME: &str = "dns.example.org";

/// A server of somebody else. Ends when it is dropped.
struct Other {
    child: Child,
    tls: SocketAddr,
    https: SocketAddr,
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn free_ports() -> [SocketAddr; 3] {
    let reserved = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free loopback port"));
    reserved.map(|listener| listener.local_addr().expect("a bound socket"))
}

/// Writes certificate and key, which the servers read.
fn identify(directory: &Path, authority: &Authority) {
    let (certificate, key) = authority.vouch(&[NAME]).pem();
    std::fs::write(directory.join("certificate.pem"), certificate).expect("a writable directory");
    std::fs::write(directory.join("key.pem"), key).expect("a writable directory");
    std::fs::write(directory.join("authority.pem"), authority.pem()).expect("a writable directory");
}

fn run(command: &mut Command, [tls, https]: [SocketAddr; 2]) -> Other {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let other = Other { child: child.expect("it is installed: `cargo xtask test` does that"), tls, https };
    for address in [tls, https] {
        eventually("it listens", || std::net::TcpStream::connect(address).is_ok());
    }
    other
}

fn dnsdist(directory: &Path, stub: &Stub) -> Other {
    let [plain, tls, https] = free_ports();
    let config = format!(
        "setSecurityPollSuffix('')\nsetACL({{'127.0.0.0/8'}})\nsetLocal('{plain}')\n\
         addTLSLocal('{tls}', 'certificate.pem', 'key.pem')\n\
         addDOHLocal('{https}', 'certificate.pem', 'key.pem', '/dns-query')\n\
         newServer({{address='{}', useClientSubnet=false}}):setUp()\n",
        stub.address()
    );
    std::fs::write(directory.join("dnsdist.conf"), config).expect("a writable directory");
    let mut command = Command::new("dnsdist");
    run(
        command.args(["--supervised", "--disable-syslog", "-C", "dnsdist.conf"]).current_dir(directory),
        [tls, https],
    )
}

fn unbound(directory: &Path, stub: &Stub) -> Other {
    let [_, tls, https] = free_ports();
    let place = directory.display();
    let config = format!(
        "server:\n  directory: \"{place}\"\n  chroot: \"\"\n  username: \"\"\n  pidfile: \"\"\n  use-syslog: no\n\
           interface: 127.0.0.1@{}\n  interface: 127.0.0.1@{}\n  tls-port: {}\n  https-port: {}\n\
           tls-service-key: \"{place}/key.pem\"\n  tls-service-pem: \"{place}/certificate.pem\"\n\
           do-not-query-localhost: no\n  module-config: \"iterator\"\n  local-zone: \"example.org.\" nodefault\n\
         forward-zone:\n  name: \".\"\n  forward-addr: 127.0.0.1@{}\n",
        tls.port(),
        https.port(),
        tls.port(),
        https.port(),
        stub.address().port()
    );
    std::fs::write(directory.join("unbound.conf"), config).expect("a writable directory");
    let mut command = Command::new("unbound");
    run(command.args(["-d", "-c"]).arg(directory.join("unbound.conf")), [tls, https])
}

fn check(start: fn(&Path, &Stub) -> Other, url: impl Fn(&Other) -> String) {
    let directory = tempfile::tempdir().expect("a directory");
    identify(directory.path(), &Authority::new());
    let stub = Stub::start(Script::default());
    let other = start(directory.path(), &stub);
    let server = Server::start(&format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{servers: [{{address: \"{}\", tls-name: {NAME}, roots: \"{}\"}}]}}}}\n",
        url(&other),
        directory.path().join("authority.pem").display()
    ));
    let client = UdpClient::connect(server.address());
    for id in 0..200 {
        client.send(&Ask::new(&format!("n{id}.example.org"), Rtype::A).edns(1232).id(id).bytes());
    }
    for _ in 0..200 {
        let heard = client.receive();
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "{heard:?}");
    }
    // An answer of several frames and records.
    stub.behave(Script::always(testkit::Answer::long_text(300, 40_000)));
    let heard = server.ask_tcp(&Ask::new("long.example.org", Rtype::TXT).edns(1232));
    assert!(heard.bytes().len() > 39_000, "{} octets", heard.bytes().len());
}

#[test]
fn dnsdist_is_asked_over_tls() {
    check(dnsdist, |other| format!("tls://{}", other.tls));
}

#[test]
fn dnsdist_is_asked_over_https() {
    check(dnsdist, |other| format!("https://{}/dns-query", other.https));
}

#[test]
fn unbound_is_asked_over_tls() {
    check(unbound, |other| format!("tls://{}", other.tls));
}

#[test]
fn unbound_is_asked_over_https() {
    check(unbound, |other| format!("https://{}", other.https));
}

#[test]
fn a_web_server_without_dns_there_is_not_believed() {
    let directory = tempfile::tempdir().expect("a directory");
    identify(directory.path(), &Authority::new());
    let stub = Stub::start(Script::default());
    let other = dnsdist(directory.path(), &stub);
    let server = Server::start(&format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{servers: [{{address: \"https://{}/nothing-here\", tls-name: {NAME}, roots: \"{}\"}}, \"{}\"]}}}}\n",
        other.https,
        directory.path().join("authority.pem").display(),
        stub.address()
    ));
    let heard = server.ask(&Ask::new("a.example.org", Rtype::A));
    assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "{heard:?}");
}
