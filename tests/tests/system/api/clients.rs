//! Clients, as the record of queries has them.

use std::net::Ipv4Addr;

use testkit::{Ask, Server, Stub, UdpClient, eventually};
use wire::Rtype;

use super::{get, start};

const POLICY: &str = "local: {laptop.home.arpa: 127.0.0.2}\n\
                      policy: {main: [local, {if: qname in suffix:ads.example, do: reject(nxdomain)}, forward(default)]}\n";

fn begin(clients: &str) -> (Stub, Server) {
    start(&format!("recorder: {{file: queries.db, clients: {clients}}}\n{POLICY}"))
}

fn ask_from(server: &Server, host: u8, name: &str) {
    let own = Ipv4Addr::new(127, 0, 0, host).into();
    UdpClient::connect_from(own, server.address()).ask(&Ask::new(name, Rtype::A));
}

fn ask_some(server: &Server) {
    for name in ["www.example.org", "ads.example", "ads.example", "x.ads.example"] {
        ask_from(server, 2, name);
    }
    ask_from(server, 3, "www.example.org");
    eventually("all are recorded", || {
        let all = get(server, "/queries?count=10&contains=example").body;
        all.matches("\"at-ms\"").count() == 5
    });
}

#[test]
fn clients_are_listed_with_what_became_of_their_queries() {
    let (_stub, server) = begin("full");
    ask_some(&server);
    let all = get(&server, "/clients");
    let said = all.json();
    assert!(all.status == 200 && said.contains("\"name\": \"laptop.home.arpa\""), "{all:?}");
    assert!(
        said.contains("\"client\": \"127.0.0.2\"") && said.contains("\"client\": \"127.0.0.3\""),
        "{said}"
    );
    assert!(said.contains("\"queries\": 4, \"blocked\": 3, \"last-ms\": "), "{said}");
    // The first one is who looked whether the server answers.
    let first = get(&server, "/clients?count=1&after=127.0.0.1");
    let next = first.header("link").expect("more").trim_start_matches("</api/v1").to_owned();
    let next = next.split('>').next().expect("a URL").to_owned();
    let rest = get(&server, &next).json();
    assert!(rest.contains("127.0.0.3") && !rest.contains("127.0.0.2"), "{rest}");
    let one = get(&server, "/clients/127.0.0.2");
    let said = one.json();
    assert!(
        one.status == 200 && said.contains("\"outcomes\": [ { \"what\": \"blocked\", \"queries\": 3"),
        "{one:?}"
    );
    assert!(said.contains("\"names\": [ { \"what\": \"ads.example\", \"queries\": 2"), "{said}");
    assert!(
        said.contains("\"types\": [ { \"what\": \"A\", \"queries\": 4") && !said.contains("counted-from"),
        "{said}"
    );
    assert_eq!(get(&server, "/clients/192.0.2.1").status, 404);
    assert_eq!(get(&server, "/clients/nobody").status, 400);
    let gone = super::ask(&server, "DELETE", "/queries?client=127.0.0.2", &[], "");
    assert!(gone.json().contains("\"removed\": 4"), "{gone:?}");
    assert!(!get(&server, "/clients").body.contains("127.0.0.2"));
    assert_eq!(get(&server, "/clients/127.0.0.2").status, 404);
}

#[test]
fn no_more_of_clients_is_shown_than_is_recorded() {
    for (mode, shown, hidden) in [
        ("prefix", "\"127.0.0.0\"", "127.0.0.2"),
        ("pseudonym", "\"~", "127.0.0"),
        ("none", "\"unknown\"", "127.0.0"),
    ] {
        let (_stub, server) = begin(mode);
        ask_some(&server);
        let all = get(&server, "/clients");
        assert!(all.status == 200 && all.body.contains(shown), "{mode}: {all:?}");
        assert!(!all.body.contains(hidden) && !all.body.contains("laptop"), "{mode}: {all:?}");
    }
    let (_stub, server) = start("");
    assert_eq!(get(&server, "/clients").status, 409, "nothing is recorded");
}
