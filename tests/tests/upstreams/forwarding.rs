//! The built program as a validating forwarder: the servers of its groups find answers in a
//! simulated internet, and some of them lie.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use gannet_bench::world::{Service, Way};
use tempfile::TempDir;
use testkit::tls::NAME;
use testkit::world::{Denial, Options};
use testkit::{
    Answer, Ask, Authority, Oblivious, Provider, Script, Server, Stub, TcpClient, eventually, name,
};
use wire::{EdeCode, Flags, Message, Rcode, Rtype, Section};

use crate::recursion::{check, check_secured, start};

/// A forwarder between the server and a good one, which changes replies on their way.
struct Tamperer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Changes a reply: gets its octets, and the places of its records' types and data.
type Change = fn(&mut [u8], &[(Rtype, Section, usize, usize)]);

impl Tamperer {
    fn start(good: SocketAddr, change: Change) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("it is bound");
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let onward = UdpSocket::bind("127.0.0.1:0").expect("a port");
            onward.connect(good).expect("a destination");
            onward.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
            let mut buffer = [0; 65_535];
            while let Ok((len, from)) = socket.recv_from(&mut buffer) {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                if onward.send(&buffer[..len]).is_err() {
                    continue;
                }
                let Ok(len) = onward.recv(&mut buffer) else { continue };
                let reply = buffer[..len].to_vec();
                let message = Message::parse(&reply).expect("well formed");
                let place = |record: wire::Record<'_>| {
                    (record.rtype, record.section, record.rdata_at - 10, record.rdata_at)
                };
                let places: Vec<_> = message.records().map(place).collect();
                change(&mut buffer[..len], &places);
                let _ = socket.send_to(&buffer[..len], from);
            }
        });
        Self { address, is_over, thread: Some(thread) }
    }
}

impl Drop for Tamperer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let waker = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let _ = waker.send_to(&[0], self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes every address another one.
fn forge(reply: &mut [u8], places: &[(Rtype, Section, usize, usize)]) {
    for &(rtype, section, _, data) in places {
        if (rtype, section) == (Rtype::A, Section::Answer) {
            reply[data + 3] ^= 1;
        }
    }
}

/// Makes every signature a record of a type that nobody knows.
fn strip(reply: &mut [u8], places: &[(Rtype, Section, usize, usize)]) {
    for &(rtype, _, at, _) in places {
        if rtype == Rtype::RRSIG {
            reply[at..at + 2].copy_from_slice(&0xff00_u16.to_be_bytes());
        }
    }
}

/// Returns a server of a group over a transport; `good` proves itself with its own certificate.
fn server_of(good: &Server, transport: &str) -> String {
    let roots = good.directory().join("certificate.pem");
    let roots = roots.display();
    match transport {
        "udp" => format!("\"{}\"", good.address()),
        "tcp" => format!("\"tcp://{}\"", good.address()),
        "tls" => format!("{{address: \"tls://{}#{NAME}\", roots: \"{roots}\"}}", good.another()),
        _ => {
            let (scheme, path) = if transport == "quic" { ("quic", "") } else { ("https", "/dns-query") };
            let port = good.port(transport);
            format!("{{address: \"{scheme}://{NAME}:{port}{path}\", dial: 127.0.0.1, roots: \"{roots}\"}}")
        }
    }
}

/// Starts a server whose resolver trusts the keys of the internet that `good` finds answers in, and
/// has these settings besides.
fn validating(good: &Server, groups: &str, resolver: &str, more: &str) -> Server {
    let theirs = |file: &str| shown(&good.directory().join(file));
    let config = std::fs::read_to_string(good.directory().join("gannet.yaml")).expect("a configuration");
    let port = config.split_once(", port: ").and_then(|(_, rest)| rest.split_once(',')).expect("a port").0;
    Server::start(&format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{{groups}}}\n\
         resolvers: {{default: {{root-hints: \"{}\", port: {port}, ask-loopback: true, ipv6: false, \
                      trust-anchors: \"{}\", {resolver}}}}}\n{more}\n",
        theirs("root.hints"),
        theirs("root.ds"),
    ))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

const ALL_FORWARDED: &str = "zones: {\".\": {forward: net}}";
const RECURSE: &str = "policy: {main: [recurse]}";

/// Starts an internet of which some zones are signed, and a server that finds answers there.
fn internet(denial: Denial) -> (Arc<Service>, Server) {
    start(Options { signed: 500, denial, ..Options::default() }, Way::default())
}

/// Returns a zone that is signed, or one that is not.
fn zone(service: &Service, is_signed: bool) -> String {
    let world = service.world();
    let is_it = |leaf: &u32| {
        let qname = format!("www.{}", world.zone_text(*leaf));
        world.truth(name(&qname).as_name(), Rtype::A).is_secure == is_signed
    };
    world.zone_text((0..100).find(is_it).expect("there are such zones"))
}

fn check_validated(denial: Denial, transport: &str, zones: u32) {
    let (service, good) = internet(denial);
    check_validated_by(&service, &good, &server_of(&good, transport), zones);
}

/// Checks what a server finds out that forwards all names to this one, which passes on what `good`
/// says.
fn check_validated_by(service: &Service, good: &Server, forwarder: &str, zones: u32) {
    let group = format!("net: {{servers: [{forwarder}]}}");
    let server = validating(good, &group, ALL_FORWARDED, RECURSE);
    let secure = check_secured(service, &server, zones);
    assert!(secure.iter().all(|&count| count > 5), "too few of a kind: {secure:?}");
}

#[test]
fn forwarded_answers_are_validated() {
    check_validated(Denial::Nsec, "udp", 24);
    check_validated(Denial::Nsec3, "udp", 24);
}

#[test]
fn forwarded_answers_are_validated_over_every_transport() {
    for transport in ["tcp", "tls", "https", "quic"] {
        check_validated(Denial::Mixed, transport, 8);
    }
}

/// Returns what a server says to a query.
fn passed_on(to: SocketAddr, query: &[u8]) -> Vec<u8> {
    let mut client = TcpClient::connect(to);
    client.send([query]);
    client.receive().expect("a reply").bytes().to_vec()
}

#[test]
fn forwarded_answers_are_validated_over_dnscrypt() {
    let (service, good) = internet(Denial::Mixed);
    let to = good.address();
    let script = Script::answering(move |asked| Answer::written(passed_on(to, &asked.bytes)));
    for system in [dnscrypt::System::XChaCha20, dnscrypt::System::XSalsa20] {
        let provider = Arc::new(Provider::new(system));
        let stub = Stub::start_dnscrypt(&provider, script.clone());
        let stamp = provider.stamp(stub.address(), true);
        check_validated_by(&service, &good, &format!("\"{stamp}\""), 8);
        assert!(stub.seen().iter().any(|asked| asked.qtype == Rtype::DNSKEY), "keys are asked for as well");
    }
}

#[test]
fn forwarded_answers_are_validated_over_oblivious_dns() {
    let (service, good) = internet(Denial::Mixed);
    let (to, authority) = (good.address(), Authority::new());
    let directory = TempDir::new().expect("a temporary directory");
    let roots = directory.path().join("authority.pem");
    std::fs::write(&roots, authority.pem()).expect("a writable directory");
    let target =
        Oblivious::start_with(&authority.vouch(&[NAME, "127.0.0.1"]), move |query| passed_on(to, query));
    let at = target.address();
    let forwarder = format!(
        "{{address: \"odoh://{at}/dns-query\", roots: \"{}\", relay: \"https://{NAME}:{}/proxy\", dial: 127.0.0.1}}",
        roots.display(),
        at.port()
    );
    check_validated_by(&service, &good, &forwarder, 8);
    assert!(target.relayed().len() > 40, "all of it went through the relay");
}

#[test]
fn what_a_forwarder_has_forged_or_stripped_is_bogus() {
    for (change, ede) in [(forge as Change, EdeCode::DNSSEC_BOGUS), (strip, EdeCode::RRSIGS_MISSING)] {
        let (service, good) = internet(Denial::Nsec);
        let liar = Tamperer::start(good.address(), change);
        let group = format!("net: {{servers: [\"{}\"]}}", liar.address);
        let server = validating(&good, &group, ALL_FORWARDED, RECURSE);
        let qname = format!("www.{}", zone(&service, true));
        let ask = Ask::new(&qname, Rtype::A).edns(1232);
        let bogus = server.ask(&ask);
        assert_eq!((bogus.rcode(), bogus.answers().len()), (Rcode::SERVFAIL, 0), "{bogus:?}");
        let codes: Vec<u16> = bogus.errors().iter().map(|(code, _)| *code).collect();
        let root_is_stripped = [EdeCode::DNSKEY_MISSING.0, EdeCode::RRSIGS_MISSING.0];
        assert!(codes == [ede.0] || ede == EdeCode::RRSIGS_MISSING && root_is_stripped.contains(&codes[0]));
        // Who does not want it checked gets it.
        let unchecked = server.ask(&ask.clone().flags(Flags::RD.with(Flags::CD)));
        assert_eq!((unchecked.rcode(), unchecked.answers().is_empty()), (Rcode::NOERROR, false));
        assert!(!unchecked.has(Flags::AD));
    }
}

#[test]
fn another_server_of_the_group_is_asked_before_an_answer_is_bogus() {
    let (service, good) = internet(Denial::Nsec);
    let liar = Tamperer::start(good.address(), forge);
    let servers = format!("\"{}\", \"{}\"", liar.address, good.address());
    let group = format!("net: {{pick: ordered, servers: [{servers}]}}");
    let server = validating(&good, &group, ALL_FORWARDED, RECURSE);
    let qname = format!("www.{}", zone(&service, true));
    let heard = server.ask(&Ask::new(&qname, Rtype::A).edns(1232).flags(Flags::RD.with(Flags::AD)));
    check(&service, &heard, name(&qname).as_name(), Rtype::A);
    assert!(heard.has(Flags::AD), "{heard:?}");
    // What is not signed nobody can tell from what is forged.
    let qname = format!("www.{}", zone(&service, false));
    let forged = server.ask(&Ask::new(&qname, Rtype::A).edns(1232));
    let truth = service.world().truth(name(&qname).as_name(), Rtype::A);
    assert_eq!(forged.answers().len(), truth.records.len());
}

#[test]
fn a_group_that_is_down_is_gone_round_if_it_may() {
    let (service, good) = internet(Denial::Nsec);
    let mut gone = Stub::start(Script::silent());
    gone.die();
    let group = format!("net: {{timeout: 1s, servers: [\"{}\"]}}", gone.address());
    let check_with = |first: bool| {
        let zones = format!("zones: {{\".\": {{forward: net, first: {first}}}}}");
        let server = validating(&good, &group, &zones, RECURSE);
        for leaf in 0..10 {
            let qname = format!("www.{}", service.world().zone_text(leaf));
            let heard = server.ask(&Ask::new(&qname, Rtype::A).edns(1232));
            if first {
                check(&service, &heard, name(&qname).as_name(), Rtype::A);
            } else {
                assert_eq!(heard.rcode(), Rcode::SERVFAIL);
                let (code, text) = &heard.errors()[0];
                assert_eq!(*code, EdeCode::NO_REACHABLE_AUTHORITY.0);
                assert!(text.contains("no server answers for zone ."), "{text}");
            }
        }
    };
    check_with(true);
    check_with(false);
}

#[test]
fn each_zone_has_a_group_of_its_own_and_aliases_go_from_one_to_the_other() {
    let (service, good) = internet(Denial::Nsec);
    let target = format!("www.{}", zone(&service, true));
    let alias = target.clone();
    let office = Stub::start(Script::answering(move |asked| match asked.qname.as_str() {
        "alias.corp.example." => Answer::default().alias(300, "alias.corp.example", &alias),
        _ => Answer::a(300, [10, 1, 0, 1].into()),
    }));
    let groups = format!(
        "net: {{servers: [\"{}\"]}}, office: {{servers: [\"{}\"]}}",
        good.address(),
        office.address()
    );
    let zones = "zones: {\".\": {forward: net}, corp.example: {forward: office}}, negative-trust-anchors: corp.example";
    let server = validating(&good, &groups, zones, RECURSE);
    let heard = server.ask(&Ask::new("www.corp.example", Rtype::A).edns(1232).dnssec());
    assert_eq!((heard.rcode(), heard.answers().len(), heard.has(Flags::AD)), (Rcode::NOERROR, 1, false));
    let heard = server.ask(&Ask::new(&target, Rtype::A).edns(1232).dnssec());
    assert!(heard.has(Flags::AD), "{heard:?}");
    assert_eq!(office.count(&format!("{target}.")), 0);
    let heard = server.ask(&Ask::new("alias.corp.example", Rtype::A).edns(1232));
    let truth = service.world().truth(name(&target).as_name(), Rtype::A);
    assert_eq!(heard.answers().len(), 1 + truth.records.len(), "{heard:?}");
    assert!(
        office.seen().iter().all(|asked| asked.qname.ends_with("corp.example.")),
        "nobody asks it for keys"
    );
    let shown = server.command(&["explain", "www2.corp.example"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("forwarders of corp.example.") && shown.contains(&office.address().to_string()),
        "{shown}"
    );
}

#[test]
fn an_expired_answer_stands_in_for_a_group_that_fails() {
    let (_service, good) = internet(Denial::Nsec);
    let office = Stub::start(Script::always(Answer::a(1, [10, 1, 0, 1].into())));
    let groups = format!("office: {{timeout: 1s, servers: [\"{}\"]}}", office.address());
    let zones = "zones: {corp.example: {forward: office}}, negative-trust-anchors: corp.example";
    let policy = "cache: {main: {stale: 1h}}\npolicy: {main: [cache(main), recurse]}";
    let server = validating(&good, &groups, zones, policy);
    let ask = Ask::new("www.corp.example", Rtype::A).edns(1232);
    assert_eq!(server.ask(&ask).answers().len(), 1);
    office.behave(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    let is_stale = |code: u16| code == EdeCode::STALE_ANSWER.0;
    eventually("a stale answer is given", || {
        let heard = server.ask(&ask);
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1));
        heard.errors().iter().any(|(code, _)| is_stale(*code))
    });
}
