//! The built program and upstreams that only sealed messages or a proxy lead to: DNSCrypt,
//! oblivious DNS, SOCKS5.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use testkit::{
    Answer, Ask, Authority, Oblivious, Provider, Proxy, Script, Server, Stub, UdpClient, eventually,
};
use wire::{Flags, Rcode, Rtype};

/// The name that good servers have.
const NAME: &str = "dns.example.org";

/// Starts the program with one group of `servers`, as YAML, in which `AUTHORITY` is the file of an
/// authority.
fn start(authority: &Authority, servers: &str, more: &str) -> Server {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("authority.pem"), authority.pem()).expect("a writable directory");
    let servers = servers.replace("AUTHORITY", "@DIRECTORY@/authority.pem");
    let yaml = format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{timeout: 5s, servers: [{servers}]}}}}\n{more}\n"
    );
    Server::start_in(directory, &yaml)
}

fn ask(name: &str) -> Ask {
    Ask::new(name, Rtype::A).edns(1232)
}

fn said(server: &Server) -> String {
    String::from_utf8_lossy(&server.command(&["status"]).stdout).into_owned()
}

/// Failures are forgotten soon: a test sees when an upstream is back.
const SHORT: &str = "cache: {main: {failure-ttl: 1s}}";

fn dnscrypt(system: dnscrypt::System, script: Script, more: &str) -> (Arc<Provider>, Stub, Server) {
    let provider = Arc::new(Provider::new(system));
    let stub = Stub::start_dnscrypt(&provider, script);
    let stamp = provider.stamp(stub.address(), true);
    let server = start(&Authority::new(), &format!("{{address: \"{stamp}\"{more}}}"), SHORT);
    (provider, stub, server)
}

fn check_many(system: dnscrypt::System) {
    let (_provider, stub, server) = dnscrypt(system, Script::default(), "");
    let client = UdpClient::connect(server.address());
    for id in 0..100 {
        client.send(&ask(&format!("n{id}.example.org")).id(id).bytes());
    }
    for _ in 0..100 {
        let heard = client.receive();
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "{heard:?}");
    }
    assert!(stub.seen().iter().all(|asked| !asked.over_tcp && asked.qname.starts_with('n')));
}

#[test]
fn a_resolver_of_dnscrypt_is_asked_with_xchacha20() {
    check_many(dnscrypt::System::XChaCha20);
}

#[test]
fn a_resolver_of_dnscrypt_is_asked_with_xsalsa20() {
    check_many(dnscrypt::System::XSalsa20);
}

#[test]
fn what_does_not_fit_into_a_sealed_datagram_comes_over_tcp() {
    let script = Script::always(Answer::long_text(300, 3000));
    let (_provider, stub, server) = dnscrypt(dnscrypt::System::XChaCha20, script, "");
    let heard = server.ask_tcp(&Ask::new("long.example.org", Rtype::TXT).edns(1232));
    assert_eq!(heard.answers().len(), 12, "{heard:?}");
    assert!(!heard.has(Flags::TC));
    assert!(stub.seen().last().is_some_and(|asked| asked.over_tcp));
}

#[test]
fn sealed_datagrams_that_are_lost_are_sent_again() {
    let script = Script::default().losing(5);
    let (_provider, stub, server) = dnscrypt(dnscrypt::System::XChaCha20, script, "");
    let client = UdpClient::connect(server.address());
    for id in 0..100 {
        client.send(&ask(&format!("n{id}.example.org")).id(id).bytes());
    }
    for _ in 0..100 {
        assert_eq!(client.receive().answers().len(), 1);
    }
    assert!(stub.seen().len() > 100, "some were lost");
}

#[test]
fn a_resolver_that_has_a_new_key_is_used_again() {
    let (provider, _stub, server) = dnscrypt(dnscrypt::System::XChaCha20, Script::default(), "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    provider.rotate();
    let mut number = 0;
    eventually("its certificates are asked for again", || {
        number += 1;
        server.ask(&ask(&format!("n{number}.example.org"))).rcode() == Rcode::NOERROR
    });
}

#[test]
fn a_resolver_whose_certificate_another_provider_signed_is_told_nothing() {
    let provider = Arc::new(Provider::new(dnscrypt::System::XChaCha20));
    let stub = Stub::start_dnscrypt(&provider, Script::default());
    let stamp = provider.stamp(stub.address(), false);
    let mut server = start(&Authority::new(), &format!("\"{stamp}\""), "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::SERVFAIL);
    assert_eq!(stub.seen().len(), 0);
    let expect = "the server's certificate is not signed with the provider's key";
    server.wait_for_log(expect);
    eventually(expect, || said(&server).contains(expect));
}

#[test]
fn a_resolver_whose_certificate_expired_is_told_nothing_until_it_has_another() {
    let provider = Arc::new(Provider::new(dnscrypt::System::XChaCha20));
    provider.expire();
    let stub = Stub::start_dnscrypt(&provider, Script::default());
    let mut server =
        start(&Authority::new(), &format!("\"{}\"", provider.stamp(stub.address(), true)), SHORT);
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::SERVFAIL);
    assert_eq!(stub.seen().len(), 0);
    server.wait_for_log("the server's certificate expired 24 hours ago");
    provider.rotate();
    let mut number = 0;
    eventually("the upstream is used", || {
        number += 1;
        server.ask(&ask(&format!("n{number}.example.org"))).rcode() == Rcode::NOERROR
    });
}

#[test]
fn the_next_server_is_asked_when_a_resolver_of_dnscrypt_is_away() {
    let provider = Arc::new(Provider::new(dnscrypt::System::XChaCha20));
    let mut stub = Stub::start_dnscrypt(&provider, Script::default());
    let good = Stub::start(Script::default());
    let servers = format!("\"{}\", \"{}\"", provider.stamp(stub.address(), true), good.address());
    let server = start(&Authority::new(), &servers, SHORT);
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    assert_eq!(good.seen().len(), 0);
    stub.die();
    for id in 0..10 {
        assert_eq!(server.ask(&ask(&format!("n{id}.example.org"))).rcode(), Rcode::NOERROR);
    }
    stub.revive();
    let mut number = 0;
    eventually("the first one is asked again", || {
        number += 1;
        server.ask(&ask(&format!("m{number}.example.org")));
        stub.seen().iter().any(|asked| asked.qname.starts_with('m'))
    });
}

/// Returns a server that is target and relay, and its settings.
fn oblivious(authority: &Authority, relay: bool) -> (Oblivious, String) {
    let answer = Answer::a(300, Ipv4Addr::new(192, 0, 2, 1));
    let oblivious = Oblivious::start(&authority.vouch(&[NAME, "127.0.0.1"]), answer);
    let at = oblivious.address();
    let relay = if relay {
        format!(", relay: \"https://{NAME}:{}/proxy\", dial: 127.0.0.1", at.port())
    } else {
        String::new()
    };
    (oblivious, format!("{{address: \"odoh://{at}/dns-query\", roots: \"AUTHORITY\"{relay}}}"))
}

#[test]
fn a_relay_passes_on_what_it_cannot_read() {
    let authority = Authority::new();
    let (oblivious, servers) = oblivious(&authority, true);
    let server = start(&authority, &servers, "");
    for id in 0..20 {
        let heard = server.ask(&ask(&format!("secret{id}.example.org")));
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "{heard:?}");
    }
    let relayed = oblivious.relayed();
    assert!(relayed.len() >= 20);
    let expect = format!("targethost={}&targetpath=/dns-query", oblivious.address());
    for (query, body) in relayed {
        assert_eq!(query, expect);
        assert!(!body.windows(6).any(|window| window == b"secret"));
    }
    // One for each worker, perhaps.
    assert!(oblivious.keys_asked() <= 2, "the key is asked for {} times", oblivious.keys_asked());
}

#[test]
fn a_target_that_has_a_new_key_is_asked_for_it_and_nobody_notices() {
    let authority = Authority::new();
    let (oblivious, servers) = oblivious(&authority, true);
    let server = start(&authority, &servers, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    oblivious.rotate();
    assert_eq!(server.ask(&ask("b.example.org")).rcode(), Rcode::NOERROR);
}

#[test]
fn a_target_can_be_asked_without_a_relay_and_a_warning_says_what_that_means() {
    let authority = Authority::new();
    let (oblivious, servers) = oblivious(&authority, false);
    let mut server = start(&authority, &servers, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    assert_eq!(oblivious.relayed().len(), 0);
    server.wait_for_log("without a relay the server knows who asks");
}

#[test]
fn a_target_that_cannot_prove_its_name_gets_no_messages() {
    let (oblivious, servers) = oblivious(&Authority::named("somebody"), true);
    let server = start(&Authority::new(), &servers, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::SERVFAIL);
    assert_eq!(oblivious.relayed().len(), 0);
}

#[test]
fn a_proxy_connects_to_servers_over_tls_and_over_tcp_in_place_of_udp() {
    let authority = Authority::new();
    let stub = Stub::start_secured(&authority.vouch(&[NAME]), Script::default());
    let proxy = Proxy::connecting();
    let at = proxy.address();
    let servers =
        format!("{{address: \"tls://{}#{NAME}\", roots: \"AUTHORITY\", proxy: \"{at}\"}}", stub.address());
    let server = start(&authority, &servers, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    assert_eq!(proxy.connections(), 1);
    let plain = Stub::start(Script::default());
    let login = format!(
        "{{address: \"{}\", proxy: \"{at}\", proxy-user: me, proxy-password: secret}}",
        plain.address()
    );
    let server = start(&authority, &login, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
    assert!(plain.seen().iter().all(|asked| asked.over_tcp));
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn what_a_proxy_refuses_is_shown() {
    let stub = Stub::start(Script::default());
    let proxy = Proxy::connecting();
    let login = format!(
        "{{address: \"tcp://{}\", proxy: \"{}\", proxy-user: me, proxy-password: wronga}}",
        stub.address(),
        proxy.address()
    );
    let server = start(&Authority::new(), &login, "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::SERVFAIL);
    assert_eq!((proxy.connections(), stub.seen().len()), (0, 0));
    let expect = "the SOCKS5 proxy";
    eventually(expect, || said(&server).contains(expect));
}

#[test]
fn a_proxy_relays_datagrams_and_connects_for_what_does_not_fit() {
    let stub = Stub::start(Script::default());
    let proxy = Proxy::relaying();
    let login = format!(
        "{{address: \"{}\", proxy: \"{}\", proxy-user: me, proxy-password: secret}}",
        stub.address(),
        proxy.address()
    );
    let server = start(&Authority::new(), &login, "");
    let client = UdpClient::connect(server.address());
    for id in 0..100 {
        client.send(&ask(&format!("n{id}.example.org")).id(id).bytes());
    }
    for _ in 0..100 {
        assert_eq!(client.receive().answers().len(), 1);
    }
    assert!(stub.seen().iter().all(|asked| !asked.over_tcp));
    assert!(proxy.datagrams() >= 100 && proxy.associations() >= 1 && proxy.connections() == 0);
    stub.behave(Script::always(Answer::long_text(300, 3000)));
    let heard = server.ask_tcp(&Ask::new("long.example.org", Rtype::TXT).edns(1232));
    assert_eq!(heard.answers().len(), 12);
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn relayed_datagrams_that_are_lost_are_sent_again() {
    let stub = Stub::start(Script::default().losing(5));
    let proxy = Proxy::relaying();
    let servers = format!("{{address: \"{}\", proxy: \"{}\"}}", stub.address(), proxy.address());
    let server = start(&Authority::new(), &servers, "");
    let client = UdpClient::connect(server.address());
    for id in 0..100 {
        client.send(&ask(&format!("n{id}.example.org")).id(id).bytes());
    }
    for _ in 0..100 {
        assert_eq!(client.receive().answers().len(), 1);
    }
    assert!(stub.seen().len() > 100, "some were lost");
}

fn check_quic_through_proxy(scheme: &str) {
    let authority = Authority::new();
    let stub = Stub::start_quic(&authority.vouch(&[NAME]), Script::default());
    let proxy = Proxy::relaying();
    let servers = |proxy: &Proxy| {
        format!(
            "{{address: \"{scheme}{}#{NAME}\", roots: \"AUTHORITY\", proxy: \"{}\"}}",
            stub.address(),
            proxy.address()
        )
    };
    let server = start(&authority, &servers(&proxy), "");
    for id in 0..20 {
        assert_eq!(server.ask(&ask(&format!("n{id}.example.org"))).rcode(), Rcode::NOERROR);
    }
    assert!(proxy.datagrams() > 20);
    let connecting = Proxy::connecting();
    let server = start(&authority, &servers(&connecting), "");
    assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::SERVFAIL);
    let expect = "the SOCKS5 proxy does not relay datagrams";
    eventually(expect, || said(&server).contains(expect));
}

#[test]
fn quic_passes_through_a_proxy_that_relays_datagrams() {
    check_quic_through_proxy("quic://");
}

#[test]
fn http3_passes_through_a_proxy_that_relays_datagrams() {
    check_quic_through_proxy("h3://");
}

#[test]
fn dnscrypt_passes_through_a_proxy_with_datagrams_or_without() {
    for proxy in [Proxy::relaying(), Proxy::connecting()] {
        let more = format!(", proxy: \"{}\"", proxy.address());
        let (_provider, _stub, server) = dnscrypt(dnscrypt::System::XChaCha20, Script::default(), &more);
        assert_eq!(server.ask(&ask("a.example.org")).rcode(), Rcode::NOERROR);
        assert!(proxy.connections() >= 1, "certificates are asked for over a connection");
    }
}

#[test]
fn a_resolver_that_is_slow_does_not_hold_up_what_is_known() {
    let (_provider, stub, server) = dnscrypt(dnscrypt::System::XChaCha20, Script::default(), "");
    let client = UdpClient::connect(server.address());
    client.ask(&ask("known.example.org"));
    stub.behave(Script::default().delayed(Duration::from_millis(300)));
    client.send(&ask("slow.example.org").id(1).bytes());
    stub.wait_for("slow.example.org.", 1);
    assert_eq!(client.ask(&ask("known.example.org").id(2)).id(), 2);
    assert_eq!(client.receive().id(), 1);
}
