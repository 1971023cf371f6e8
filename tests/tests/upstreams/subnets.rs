//! The built program as a resolver, and servers that answer by where clients are (RFC 7871).

use tempfile::TempDir;
use testkit::{Ask, Heard, Server, UdpClient};
use wire::{OptionCode, Rcode, Rtype};

/// Starts a server of `example.org`, whose `www` has an address for one network, and another one.
fn authority() -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    let zone = "$TTL 300\n@ SOA ns admin 1 2 3 4 5\n@ NS ns\nns A 127.0.0.1\nall A 192.0.2.9\n";
    std::fs::write(directory.path().join("zone"), zone).expect("a writable directory");
    Server::start_in(
        directory,
        "server: {workers: 1, state-directory: \"@DIRECTORY@\"}\nlisten: [\"@ADDRESS@\"]\n\
         zones:\n  - name: example.org\n    file: \"@DIRECTORY@/zone\"\n    allow-query: any\n    \
         choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.6, clients: 203.0.113.0/24}, {data: 192.0.2.7}]}]\n\
         policy: {main: [reject(refused)]}\n",
    )
}

/// Starts a resolver that asks it, and tells it of subnets if `settings` say so.
fn resolver(authority: &Server, settings: &str) -> Server {
    Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         resolvers: {{default: {{zones: {{example.org: {{stub: \"{}\"}}}}, ask-loopback: true, priming: false, validation: \"off\"{settings}}}}}\n\
         cache: {{main: {{}}}}\npolicy: {{main: [\"ecs(client, ipv4 24, keep)\", cache(main), recurse]}}\n",
        authority.address()
    ))
}

/// Asks for a name as a client of this network does.
fn ask(client: &UdpClient, host: &str, network: [u8; 3]) -> Heard {
    let data = [&[0, 1, 24, 0][..], &network].concat();
    let ask = Ask::new(&format!("{host}.example.org"), Rtype::A);
    let heard = client.ask(&ask.option(OptionCode::CLIENT_SUBNET, &data));
    assert_eq!(heard.rcode(), Rcode::NOERROR, "{heard:?}");
    heard
}

/// Returns the scope that a reply has.
fn scope(heard: &Heard) -> Option<u8> {
    let message = heard.message();
    message.edns?.option(OptionCode::CLIENT_SUBNET)?.get(3).copied()
}

const THERE: [u8; 3] = [203, 0, 113];
const ELSEWHERE: [u8; 3] = [198, 51, 100];

#[test]
fn clients_get_what_is_for_their_networks() {
    let authority = authority();
    for settings in [", client-subnet: {servers: [127.0.0.0/8]}", ", client-subnet: {zones: [example.org]}"] {
        let server = resolver(&authority, settings);
        let client = UdpClient::connect(server.address());
        // The second time from the cache.
        for _ in 0..2 {
            for (network, address) in [(THERE, "192.0.2.6"), (ELSEWHERE, "192.0.2.7")] {
                let heard = ask(&client, "www", network);
                let answers = heard.answers();
                assert!(answers[0].ends_with(address), "{settings}: {answers:?}");
                assert!(scope(&heard).is_some_and(|scope| scope > 0), "{heard:?}");
            }
            assert_eq!(scope(&ask(&client, "all", THERE)), Some(0), "it is for everybody");
        }
        assert_eq!(server.stat("engine", "cache_subnets"), 2, "both networks the second time");
        // Who sends no subnet has that of its address told, unless it is private.
        let heard = client.ask(&Ask::new("www.example.org", Rtype::A));
        assert!(heard.answers()[0].ends_with("192.0.2.7"));
    }
}

#[test]
fn nobody_hears_of_a_client_unless_it_is_named() {
    let authority = authority();
    for settings in ["", ", client-subnet: {servers: [192.0.2.1], zones: [other.example]}"] {
        let server = resolver(&authority, settings);
        let client = UdpClient::connect(server.address());
        for network in [THERE, ELSEWHERE] {
            assert!(ask(&client, "www", network).answers()[0].ends_with("192.0.2.7"), "{settings}");
        }
    }
}

#[test]
fn forward_zones_hear_of_subnets_like_servers_of_zones() {
    let authority = authority();
    for (group, settings, is_told) in [
        ("", "", false),
        ("", ", client-subnet: {servers: [127.0.0.0/8]}", true),
        ("", ", client-subnet: {zones: [example.org]}", true),
        (", client-subnet: forward", "", true),
        ("", ", client-subnet: {servers: [192.0.2.1], zones: [other.example]}", false),
    ] {
        let server = Server::start(&format!(
            "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
             upstreams: {{there: {{servers: [\"{}\"]{group}}}}}\n\
             resolvers: {{default: {{zones: {{\".\": {{forward: there}}}}, validation: \"off\"{settings}}}}}\n\
             cache: {{main: {{}}}}\npolicy: {{main: [\"ecs(client, ipv4 24, keep)\", cache(main), recurse]}}\n",
            authority.address()
        ));
        let client = UdpClient::connect(server.address());
        // The second time from the cache.
        for _ in 0..2 {
            for (network, told) in [(THERE, "192.0.2.6"), (ELSEWHERE, "192.0.2.7")] {
                let heard = ask(&client, "www", network);
                let right = if is_told { told } else { "192.0.2.7" };
                assert!(heard.answers()[0].ends_with(right), "{group}{settings}: {heard:?}");
            }
        }
    }
}
