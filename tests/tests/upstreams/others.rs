//! The built program and encrypted upstreams that others wrote: dnsdist, Unbound and Knot Resolver,
//! in front of our stub.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::{Ask, Authority, Identity, Script, Server, Stub, UdpClient, eventually, program};
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
    [(); 3].map(|()| testkit::free_address())
}

/// Writes certificate and key, which the servers read.
fn identify(directory: &Path, authority: &Authority) {
    identify_as(directory, authority, &authority.vouch(&[NAME]));
}

fn identify_as(directory: &Path, authority: &Authority, identity: &Identity) {
    let (certificate, key) = identity.pem();
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

fn kresd(directory: &Path, stub: &Stub) -> Other {
    let [_, tls, https] = free_ports();
    let config = format!(
        "log_target('stderr')\ncache.size = 10 * MB\nnet.ipv6 = false\n\
         net.listen('127.0.0.1', {}, {{ kind = 'tls' }})\nnet.listen('127.0.0.1', {}, {{ kind = 'doh2' }})\n\
         net.tls('certificate.pem', 'key.pem')\ntrust_anchors.remove('.')\n\
         policy.add(policy.all(policy.STUB('127.0.0.1@{}')))\n",
        tls.port(),
        https.port(),
        stub.address().port()
    );
    std::fs::write(directory.join("kresd.conf"), config).expect("a writable directory");
    let mut command = Command::new("kresd");
    run(command.args(["-n", "-c", "kresd.conf", "."]).current_dir(directory), [tls, https])
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

#[test]
fn knot_resolver_is_asked_over_tls() {
    check(kresd, |other| format!("tls://{}", other.tls));
}

#[test]
fn knot_resolver_is_asked_over_https() {
    check(kresd, |other| format!("https://{}/dns-query", other.https));
}

/// Lets a server of somebody else show who it is, and checks what is said about it; it is told
/// nothing.
fn check_refused(start: fn(&Path, &Stub) -> Other, identity: &Identity, authority: &Authority, expect: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    identify_as(directory.path(), authority, identity);
    let stub = Stub::start(Script::default());
    let other = start(directory.path(), &stub);
    for url in [format!("tls://{}", other.tls), format!("https://{}/dns-query", other.https)] {
        let mut server = Server::start(&format!(
            "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
             upstreams: {{default: {{timeout: 2s, servers: [{{address: \"{url}\", tls-name: {NAME}, roots: \"{}\"}}]}}}}\n",
            directory.path().join("authority.pem").display()
        ));
        assert_eq!(server.ask(&Ask::new("a.example.org", Rtype::A)).rcode(), Rcode::SERVFAIL);
        server.wait_for_log(expect);
    }
    assert_eq!(stub.count("a.example.org."), 0, "it was told nothing");
}

fn check_all_refused(start: fn(&Path, &Stub) -> Other) {
    let authority = Authority::new();
    let expired = authority.vouch_until_2020(&[NAME]);
    check_refused(start, &expired, &authority, "the server's certificate expired");
    let other = authority.vouch(&["dns.example.com"]);
    check_refused(start, &other, &authority, "is for dns.example.com, not for dns.example.org");
    let own = Identity::self_signed(&[NAME]);
    check_refused(start, &own, &authority, "the server's certificate is self-signed");
}

#[test]
fn dnsdist_is_refused_for_a_bad_certificate_and_it_is_said_why() {
    check_all_refused(dnsdist);
}

#[test]
fn unbound_is_refused_for_a_bad_certificate_and_it_is_said_why() {
    check_all_refused(unbound);
}

#[test]
fn knot_resolver_is_refused_for_a_bad_certificate_and_it_is_said_why() {
    check_all_refused(kresd);
}

/// Asks dnsdist over DNSCrypt, with certificates of one kind.
fn check_dnscrypt(version: u8) {
    let directory = tempfile::tempdir().expect("a directory");
    let stub = Stub::start(Script::default());
    let [plain, sealed, _] = free_ports();
    let name = "2.dnscrypt-cert.example.org";
    let config = format!(
        "setSecurityPollSuffix('')\nsetACL({{'127.0.0.0/8'}})\nsetLocal('{plain}')\n\
         generateDNSCryptProviderKeys('public.key', 'private.key')\n\
         generateDNSCryptCertificate('private.key', 'resolver.cert', 'resolver.key', 1, os.time() - 60, \
         os.time() + 86400, DNSCryptExchangeVersion.VERSION{version})\n\
         addDNSCryptBind('{sealed}', '{name}', 'resolver.cert', 'resolver.key')\n\
         newServer({{address='{}', useClientSubnet=false}}):setUp()\n",
        stub.address()
    );
    std::fs::write(directory.path().join("dnsdist.conf"), config).expect("a writable directory");
    let mut command = Command::new("dnsdist");
    command.args(["--supervised", "--disable-syslog", "-C", "dnsdist.conf"]).current_dir(directory.path());
    let _other = run(&mut command, [plain, sealed]);
    let key = std::fs::read(directory.path().join("public.key")).expect("dnsdist has made it");
    let stamp = testkit::dnscrypt::stamp(sealed, &key, name);
    let server = Server::start(&format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{servers: [\"{stamp}\"]}}}}\n"
    ));
    let client = UdpClient::connect(server.address());
    for id in 0..100 {
        client.send(&Ask::new(&format!("n{id}.example.org"), Rtype::A).edns(1232).id(id).bytes());
    }
    for _ in 0..100 {
        let heard = client.receive();
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "{heard:?}");
    }
    stub.behave(Script::always(testkit::Answer::long_text(300, 2500)));
    let heard = server.ask_tcp(&Ask::new("long.example.org", Rtype::TXT).edns(1232));
    assert_eq!(heard.answers().len(), 10, "{heard:?}");
}

#[test]
fn dnsdist_is_asked_over_dnscrypt_with_xsalsa20() {
    check_dnscrypt(1);
}

#[test]
fn dnsdist_is_asked_over_dnscrypt_with_xchacha20() {
    check_dnscrypt(2);
}

/// Measures a server of somebody else and returns what is said, as JSON.
fn probe(url: &str, directory: &Path) -> String {
    let authority = directory.join("authority.pem");
    let written = format!("{{address: \"{url}\", tls-name: {NAME}, roots: \"{}\"}}", authority.display());
    let mut command = program(directory);
    command.args(["probe", &written, "--name", "example.org", "--signed", "example.org"]);
    command.args(["--bogus", "bogus.example.org", "--count", "5", "--idle", "1", "--json"]);
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn servers_of_others_are_measured() {
    for start in [dnsdist, unbound, kresd] {
        let directory = tempfile::tempdir().expect("a directory");
        identify(directory.path(), &Authority::new());
        let stub = Stub::start(Script::default());
        let other = start(directory.path(), &stub);
        for url in [format!("tls://{}", other.tls), format!("https://{}/dns-query", other.https)] {
            let said = probe(&url, directory.path());
            for expect in ["\"answered\": 5", "\"sent\": 16", "\"connect-ms\"", "\"again-ms\""] {
                assert!(said.contains(expect), "{url}: {expect} is missing: {said}");
            }
        }
    }
}
