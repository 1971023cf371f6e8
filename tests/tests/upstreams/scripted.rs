//! The built program as a resolver below a root and zones whose servers say what a test tells them.

use std::net::{Ipv4Addr, SocketAddr};

use tempfile::TempDir;
use testkit::{Answer, Ask, Heard, Script, Server, Stub, TcpClient, eventually, free_address, name};
use wire::{EdeCode, OptionCode, Rcode, Rtype, Section};

const ROOT: Ipv4Addr = Ipv4Addr::new(127, 84, 0, 1);
/// Servers of zones.
const ONE: Ipv4Addr = Ipv4Addr::new(127, 84, 0, 2);
const TWO: Ipv4Addr = Ipv4Addr::new(127, 84, 0, 3);

/// A zone, and its servers as the root names them.
type Zone = (&'static str, &'static [(&'static str, Ipv4Addr)]);

/// Answers by a function of the name in lower case and the type: the letter case of queries is
/// random.
fn answering(answer: impl Fn(&str, Rtype) -> Answer + Send + Sync + 'static) -> Script {
    Script::answering(move |asked| answer(&asked.qname.to_ascii_lowercase(), asked.qtype))
}

/// Refers to the servers of zones; what is none of theirs does not exist.
fn root(zones: &'static [Zone]) -> Script {
    answering(move |qname, _| {
        let is_below = |zone: &str| name(qname).as_name().is_at_or_below(name(zone).as_name());
        match zones.iter().find(|(zone, _)| is_below(zone)) {
            Some((zone, servers)) => Answer::referral(zone, servers),
            None if qname == "." => {
                let server = name("ns.root");
                Answer::default()
                    .and(Rtype::NS, 3600, server.as_name().as_bytes())
                    .with_stray(Section::Additional, "ns.root", Rtype::A, &ROOT.octets())
                    .authoritative()
            }
            None => Answer::rcode(Rcode::NXDOMAIN).authoritative(),
        }
    })
}

/// Starts the root and the servers of zones, and a resolver with two workers and these settings.
fn start(zones: &'static [Zone], servers: Vec<(Ipv4Addr, Script)>, resolver: &str) -> (Vec<Stub>, Server) {
    let port = free_address().port();
    let scripts = [(ROOT, root(zones))].into_iter().chain(servers);
    let stubs = scripts.map(|(at, script)| Stub::start_at(SocketAddr::from((at, port)), script)).collect();
    let directory = TempDir::new().expect("a temporary directory");
    let hints = format!(". NS ns.root.\nns.root. A {ROOT}\n");
    std::fs::write(directory.path().join("root.hints"), hints).expect("a writable directory");
    let settings = format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         resolvers: {{default: {{root-hints: \"@DIRECTORY@/root.hints\", port: {port}, ask-loopback: true, ipv6: false, \
                      validation: \"off\", {resolver}}}}}\npolicy: {{main: [recurse]}}\n"
    );
    (stubs, Server::start_in(directory, &settings))
}

fn ask(name: &str, rtype: Rtype) -> Ask {
    Ask::new(name, rtype).edns(1232)
}

/// Returns the types and owners of the additional section.
fn additional(heard: &Heard) -> Vec<(String, Rtype)> {
    let message = heard.message();
    let records = message.records().filter(|record| record.section == Section::Additional);
    records
        .map(|record| (record.owner.to_string(), record.rtype))
        .filter(|(_, rtype)| *rtype != Rtype::OPT)
        .collect()
}

/// Says one address, as the zone's server.
fn address(last: u8) -> Answer {
    Answer::a(300, Ipv4Addr::new(192, 0, 2, last)).authoritative()
}

#[test]
fn a_zone_sees_one_query_for_a_name_that_clients_of_two_workers_ask_for() {
    const NAMES: usize = 40;
    const CLIENTS: u16 = 16;
    let delayed = Script::answering(|_| address(1)).delayed(std::time::Duration::from_millis(20));
    let (stubs, server) = start(&[("example", &[("ns.example", ONE)])], vec![(ONE, delayed)], "");
    // The kernel gives connections to both workers.
    let mut clients: Vec<TcpClient> = (0..CLIENTS).map(|_| TcpClient::connect(server.address())).collect();
    server.ask(&ask("first.example", Rtype::A));
    for number in 0..NAMES {
        let qname = format!("n{number}.example");
        for (id, client) in (0..).zip(&mut clients) {
            client.send([ask(&qname, Rtype::A).id(id).bytes().as_slice()]);
        }
        for (id, client) in (0..).zip(&mut clients) {
            let heard = client.receive().expect("a reply");
            assert_eq!((heard.id(), heard.rcode(), heard.answers().len()), (id, Rcode::NOERROR, 1));
        }
    }
    let counts: Vec<usize> =
        (0..NAMES).map(|number| stubs[1].count(&format!("n{number}.example."))).collect();
    assert!(counts.iter().all(|&count| count >= 1), "{counts:?}");
    // One more is a query that the stub did not answer in time: other tests keep the machine busy.
    let more = counts.iter().filter(|&&count| count > 2).count();
    assert!(more <= NAMES / 20, "once for each worker at most: {counts:?}");
    // Nobody waits for ever: a worker that had no time for the reply is not waited for.
    let sum: usize = counts.iter().sum();
    assert!(sum <= NAMES + NAMES / 4, "{sum} queries for {NAMES} names");
    assert!(server.stat("resolver", "yielded") > 0, "two workers were asked");
}

/// The servers of `example`: what they say of its name servers, and the same address for all else.
fn serving(own: &'static [(&'static str, Ipv4Addr)], last: u8) -> Script {
    answering(move |qname, qtype| {
        let address_of = own.iter().find(|(server, _)| qname == format!("{server}."));
        match (qtype, qname, address_of) {
            (Rtype::NS, "example.", _) => {
                let servers = own.iter().fold(Answer::default(), |answer, (server, _)| {
                    answer.and(Rtype::NS, 300, name(server).as_name().as_bytes())
                });
                servers.authoritative()
            }
            (Rtype::A, _, Some((_, at))) => Answer::a(300, *at).authoritative(),
            _ => address(last),
        }
    })
}

#[test]
fn servers_that_a_zone_names_itself_are_asked_when_those_of_its_parent_fail() {
    let own: &[(&str, Ipv4Addr)] = &[("one.example", ONE), ("two.example", TWO)];
    let servers = vec![(ONE, serving(own, 1)), (TWO, serving(own, 2))];
    let (mut stubs, server) = start(&[("example", &[("one.example", ONE)])], servers, "");
    assert_eq!(server.ask(&ask("example", Rtype::NS)).answers().len(), 2);
    assert_eq!(server.ask(&ask("two.example", Rtype::A)).answers(), ["two.example. 300 A 127.84.0.3"]);
    assert_eq!(server.ask(&ask("a.example", Rtype::A)).answers(), ["a.example. 300 A 192.0.2.1"]);
    assert_eq!(stubs[2].seen().len(), 0, "while the parent's answer, they are enough");
    stubs[1].die();
    assert_eq!(server.ask(&ask("b.example", Rtype::A)).answers(), ["b.example. 300 A 192.0.2.2"]);
    assert_eq!(stubs[2].count("b.example."), 1);
}

#[test]
fn servers_that_the_parent_names_are_asked_whatever_the_zone_says_itself() {
    let own: &[(&str, Ipv4Addr)] = &[("two.example", TWO)];
    let servers = vec![(ONE, serving(own, 1)), (TWO, Script::always(Answer::rcode(Rcode::REFUSED)))];
    let (stubs, server) = start(&[("example", &[("one.example", ONE)])], servers, "");
    assert_eq!(server.ask(&ask("example", Rtype::NS)).answers().len(), 1);
    assert_eq!(server.ask(&ask("two.example", Rtype::A)).answers().len(), 1);
    for number in 0..10 {
        let qname = format!("n{number}.example");
        let heard = server.ask(&ask(&qname, Rtype::A));
        assert_eq!(heard.answers(), [format!("{qname}. 300 A 192.0.2.1")]);
    }
    assert_eq!(stubs[2].seen().len(), 0);
}

#[test]
fn https_records_come_with_what_is_known_of_their_targets() {
    let alias = [&[0, 0], name("svc.example").as_name().as_bytes()].concat();
    let script = answering(move |qname, qtype| match (qname, qtype) {
        ("alias.example.", Rtype::HTTPS) => Answer::default().and(Rtype::HTTPS, 300, &alias).authoritative(),
        (_, Rtype::HTTPS) => Answer::default().and(Rtype::HTTPS, 300, &[0, 1, 0]).authoritative(),
        _ => address(1),
    });
    let (stubs, server) = start(&[("example", &[("ns.example", ONE)])], vec![(ONE, script)], "");
    let service = server.ask(&ask("svc.example", Rtype::HTTPS));
    assert_eq!((service.rcode(), service.answers().len(), additional(&service)), (Rcode::NOERROR, 1, vec![]));
    assert_eq!(server.ask(&ask("svc.example", Rtype::A)).answers().len(), 1);
    let before = stubs[1].seen().len();
    let service = server.ask(&ask("svc.example", Rtype::HTTPS));
    let of_address = ("svc.example.".to_owned(), Rtype::A);
    assert_eq!(additional(&service), std::slice::from_ref(&of_address));
    assert_eq!(stubs[1].seen().len(), before, "nothing is asked for it");
    let aliased = server.ask(&ask("alias.example", Rtype::HTTPS));
    assert_eq!(aliased.answers().len(), 1, "{aliased:?}");
    assert_eq!(additional(&aliased), [("svc.example.".to_owned(), Rtype::HTTPS), of_address]);
}

#[test]
fn failures_are_reported_to_the_agent_of_the_zone_if_that_is_wanted() {
    const ZONES: &[Zone] = &[("example", &[("ns.example", ONE)]), ("agent", &[("ns.agent", TWO)])];
    let report = format!("_er.1.broken.example.{}._er.a01.agent.", EdeCode::NO_REACHABLE_AUTHORITY.0);
    for is_wanted in [true, false] {
        let agent = name("a01.agent").as_name().as_bytes().to_vec();
        let broken = answering(move |qname, _| {
            let answer = if qname == "broken.example." { Answer::rcode(Rcode::REFUSED) } else { address(1) };
            answer.with_option(OptionCode::REPORT_CHANNEL.0, &agent)
        });
        let heeding = answering(|_, qtype| match qtype {
            Rtype::TXT => Answer::long_text(300, 10).authoritative(),
            _ => address(2),
        });
        let settings = if is_wanted { "error-reports: true" } else { "" };
        let (stubs, server) = start(ZONES, vec![(ONE, broken), (TWO, heeding)], settings);
        let heard = server.ask(&ask("broken.example", Rtype::A));
        assert_eq!(
            (heard.rcode(), heard.errors()[0].0),
            (Rcode::SERVFAIL, EdeCode::NO_REACHABLE_AUTHORITY.0)
        );
        if is_wanted {
            eventually("the agent is told", || {
                let seen = stubs[2].seen();
                seen.iter()
                    .any(|asked| asked.qtype == Rtype::TXT && asked.qname.eq_ignore_ascii_case(&report))
            });
        }
        // Nor is it told of what did not fail, or twice of the same.
        assert_eq!(server.ask(&ask("broken.example", Rtype::A)).rcode(), Rcode::SERVFAIL);
        assert_eq!(server.ask(&ask("good.example", Rtype::A)).rcode(), Rcode::NOERROR);
        let told = stubs[2].seen().into_iter().filter(|asked| asked.qtype == Rtype::TXT).count();
        assert_eq!(
            (told, server.stat("resolver", "reports")),
            (usize::from(is_wanted), u64::from(is_wanted))
        );
    }
}
