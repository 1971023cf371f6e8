//! Primaries that lie: a zone of ours and a response policy zone stay what they were, time and
//! memory have bounds, and others go on being answered.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

use testkit::{Answer, Ask, Script, Server, Stub, UdpClient, eventually, free_address, name};
use wire::{Class, Flags, Message, Opcode, Rcode, Rtype, Section, Ttl, Writer};

use super::*;

/// The zones that the primary has.
const ZONES: [&str; 2] = ["auth.test", "rpz.test"];
/// Octets that a transfer may have.
const OCTETS_MAX: usize = 8 << 20;
/// A server that holds no more than it may needs less than this beside the zones.
const MEMORY_KB_MAX: u64 = 128 << 10;

/// A record of a transfer: its owner below the zone, or with a dot at its end anywhere.
#[derive(Clone)]
struct Said(String, Rtype, Vec<u8>);

/// What comes after the last message of a transfer.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// Nothing: the transfer is whole, and the connection stays.
    Waits,
    /// The connection is closed.
    Closes,
    /// The last message again and again, until the other side has gone.
    Never,
}

#[derive(Clone)]
struct Lie {
    /// The serial in the answer to a query for the SOA over UDP, and over TCP.
    soa: [u32; 2],
    transfer: Vec<Vec<Said>>,
    end: End,
}

/// A primary that says what it is told to.
struct Liar {
    address: SocketAddr,
    lie: Arc<Mutex<Lie>>,
    /// Queries for transfers that were answered, each with the octets that were sent.
    sent: Arc<Mutex<Vec<usize>>>,
}

impl Liar {
    fn start(lie: Lie) -> Self {
        Self::start_at(free_address(), lie)
    }

    fn start_at(address: SocketAddr, lie: Lie) -> Self {
        let (lie, sent) = (Arc::new(Mutex::new(lie)), Arc::new(Mutex::new(Vec::new())));
        let (datagrams, listener) =
            (UdpSocket::bind(address).expect("a port"), TcpListener::bind(address).expect("a port"));
        let told = Arc::clone(&lie);
        thread::spawn(move || {
            let mut buffer = [0; 1500];
            while let Ok((len, from)) = datagrams.recv_from(&mut buffer) {
                let [serial, _] = told.lock().expect("nobody panics").soa;
                if let Some(reply) = written(&buffer[..len], &[soa(serial)]) {
                    let _ = datagrams.send_to(&reply, from);
                }
            }
        });
        let (told, counted) = (Arc::clone(&lie), Arc::clone(&sent));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (told, counted) = (Arc::clone(&told), Arc::clone(&counted));
                thread::spawn(move || while answer(&stream, &told, &counted).is_some() {});
            }
        });
        Self { address, lie, sent }
    }

    /// Tells it what to say from now on, and its secondary that there is something new.
    fn say(&self, server: &Server, lie: Lie) {
        *self.lie.lock().expect("nobody panics") = lie;
        self.sent.lock().expect("nobody panics").clear();
        for zone in ZONES {
            notify(server, zone);
        }
    }

    fn transfers(&self) -> Vec<usize> {
        self.sent.lock().expect("nobody panics").clone()
    }
}

fn notify(server: &Server, zone: &str) {
    let client = UdpClient::connect(server.address());
    assert_eq!(client.ask(&Ask::new(zone, Rtype::SOA).opcode(Opcode::NOTIFY)).rcode(), Rcode::NOERROR);
}

/// Writes a reply; none to what is no query.
fn written(query: &[u8], records: &[Said]) -> Option<Vec<u8>> {
    let message = Message::parse(query).ok()?;
    let question = message.question?;
    let apex = question.qname.to_buf().to_string();
    let mut out = vec![0; 65_535];
    let mut writer = Writer::new(&mut out, 65_535, message.header.id, Flags::QR.with(Flags::AA));
    writer.question(&question).ok()?;
    for Said(owner, rtype, data) in records {
        let owner = if owner.ends_with('.') { owner.clone() } else { format!("{owner}.{apex}") };
        let owner = name(&owner);
        writer
            .record(Section::Answer, owner.as_name(), *rtype, Class::IN, Ttl::new(60), |out| out.bytes(data))
            .expect("a message of a test is not that long");
    }
    let len = writer.finish();
    out.truncate(len);
    Some(out)
}

/// Answers the next query of a connection.
fn answer(mut stream: &TcpStream, told: &Mutex<Lie>, counted: &Mutex<Vec<usize>>) -> Option<()> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut query).ok()?;
    let qtype = Message::parse(&query).ok()?.question?.qtype;
    let lie = told.lock().expect("nobody panics").clone();
    let mut send = |records: &[Said]| {
        let reply = written(&query, records)?;
        stream.write_all(&[&(reply.len() as u16).to_be_bytes()[..], &reply].concat()).ok()?;
        Some(reply.len())
    };
    if qtype == Rtype::SOA {
        return send(&[soa(lie.soa[1])]).map(|_| ());
    }
    let at = {
        let mut counted = counted.lock().expect("nobody panics");
        counted.push(0);
        counted.len() - 1
    };
    let note = |octets: usize| {
        // It was told something else meanwhile.
        if let Some(sum) = counted.lock().expect("nobody panics").get_mut(at) {
            *sum += octets;
        }
    };
    for records in &lie.transfer {
        note(send(records)?);
    }
    match (lie.end, lie.transfer.last()) {
        (End::Waits, _) | (End::Never, None) => Some(()),
        (End::Closes, _) => None,
        (End::Never, Some(last)) => loop {
            note(send(last)?);
        },
    }
}

fn soa(serial: u32) -> Said {
    let times = [7200_u32, 600, 86_400, 300].map(u32::to_be_bytes).concat();
    Said(String::new(), Rtype::SOA, [&[0, 0][..], &serial.to_be_bytes(), &times].concat())
}

fn a(owner: &str, last: u8) -> Said {
    Said(owner.to_owned(), Rtype::A, vec![192, 0, 2, last])
}

fn cname(owner: &str, target: &str) -> Said {
    Said(owner.to_owned(), Rtype::CNAME, name(target).as_name().as_bytes().to_vec())
}

/// A zone and nothing wrong: the same text for both zones, of which each has use for a part.
fn honest(serial: u32, more: &[Said]) -> Lie {
    let ns = Said(String::new(), Rtype::NS, name("ns.example.net").as_name().as_bytes().to_vec());
    let mut records = vec![soa(serial), ns, a("www", 10), cname("bad.example", ".")];
    records.extend_from_slice(more);
    records.push(soa(serial));
    let transfer = records.chunks(500).map(<[Said]>::to_vec).collect();
    Lie { soa: [serial; 2], transfer, end: End::Waits }
}

/// Answers every query for an address with 192.0.2.1.
fn others() -> Stub {
    Stub::start(Script::always(Answer::a(300, Ipv4Addr::new(192, 0, 2, 1))))
}

fn settings(others: &Stub, primary: SocketAddr, more: &str) -> String {
    let of = |zone: &str, more: &str| {
        format!(
            "{{name: {zone}, primaries: [\"{primary}\"], transfer-size: {OCTETS_MAX}B, notify-from: [loopback]{more}}}"
        )
    };
    forwarding(
        &[others],
        &format!(
            "{more}zones: [{}, {}]\nsets: {{rpz: {{lists: [{{zone: rpz.test}}]}}}}\n\
             policy: {{main: [blocklist(rpz), zones, forward(default), blocklist(rpz)]}}\n",
            of(ZONES[0], ""),
            of(ZONES[1], ", for-clients: false"),
        ),
    )
}

/// Returns the addresses that a name has, or why it has none.
fn addresses(server: &Server, qname: &str) -> Result<Vec<String>, Rcode> {
    let heard = server.ask(&Ask::new(qname, Rtype::A));
    let addresses: Vec<String> = heard
        .answers()
        .iter()
        .filter(|line| line.contains(" A "))
        .filter_map(|line| line.rsplit(' ').next().map(str::to_owned))
        .collect();
    if addresses.is_empty() { Err(heard.rcode()) } else { Ok(addresses) }
}

/// Holds what a version with this address of `www` has, and that others are answered.
fn check(server: &Server, last: u8, fresh: &str) {
    assert_eq!(addresses(server, "www.auth.test"), Ok(vec![format!("192.0.2.{last}")]));
    assert_eq!(addresses(server, "bad.example"), Err(Rcode::NXDOMAIN));
    assert_eq!(addresses(server, fresh), Ok(vec!["192.0.2.1".to_owned()]));
}

fn has_first_version(server: &Server) -> bool {
    addresses(server, "www.auth.test") == Ok(vec!["192.0.2.10".to_owned()])
        && addresses(server, "bad.example") == Err(Rcode::NXDOMAIN)
}

/// Returns the most memory that a server has had, in KiB.
fn most_memory_kb(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Returns how often something that came was not taken, zone by zone.
fn failures(server: &mut Server) -> [usize; ZONES.len()] {
    let log = server.log();
    let is_failure = |line: &str| line.contains("no transfer") || line.contains("is not taken");
    ZONES.map(|zone| log.iter().filter(|line| is_failure(line) && line.contains(zone)).count())
}

/// Returns whether something more was not taken of each zone.
fn have_failed_since(server: &mut Server, before: &[usize]) -> bool {
    failures(server).iter().zip(before).all(|(now, before)| now > before)
}

#[test]
fn lies_of_a_primary_leave_the_zones_that_were_good() {
    let others = others();
    let liar = Liar::start(honest(10, &[]));
    let mut server = Server::start(&settings(&others, liar.address, ""));
    eventually("the first version", || has_first_version(&server));
    let changed = |serial: u32| a("www", serial as u8);
    let step =
        |serial: u32, from: u32| vec![soa(serial), soa(from), a("www", 10), soa(serial), changed(serial)];
    let one = |soa: [u32; 2], records: Vec<Said>, end: End| Lie { soa, transfer: vec![records], end };
    let filling: Vec<Said> = (0..2000).map(|number| a(&format!("f{number}"), 9)).collect();
    for (number, (what, lie)) in [
        ("an older serial", honest(9, &[])),
        ("an older zone than announced", Lie { soa: [11; 2], ..honest(9, &[]) }),
        ("a zone with our serial", Lie { soa: [11; 2], ..honest(10, &[a("www", 66)]) }),
        ("differences that break off", one([11; 2], step(11, 10)[..4].to_vec(), End::Closes)),
        ("differences of another version", one([11; 2], step(11, 8), End::Waits)),
        ("differences that go back", one([11; 2], [step(11, 10), vec![soa(9)]].concat(), End::Closes)),
        (
            "a zone that breaks off",
            Lie {
                transfer: honest(11, &filling).transfer[..3].to_vec(),
                end: End::Closes,
                ..honest(11, &[])
            },
        ),
        (
            "a zone without end",
            Lie { transfer: vec![vec![soa(11)], filling.clone()], end: End::Never, ..honest(11, &[]) },
        ),
        ("nothing", one([11; 2], Vec::new(), End::Closes)),
        (
            "another zone",
            one([11; 2], vec![Said("other.test.".to_owned(), Rtype::SOA, soa(11).2)], End::Closes),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let before = failures(&mut server);
        liar.say(&server, lie);
        // While it comes, and after it.
        assert_eq!(
            addresses(&server, &format!("x{number}.example")),
            Ok(vec!["192.0.2.1".to_owned()]),
            "{what}"
        );
        eventually(what, || have_failed_since(&mut server, &before));
        check(&server, 10, &format!("y{number}.example"));
        let most = liar.transfers().into_iter().max().unwrap_or(0);
        // What is on its way to a connection that nobody reads counts, too.
        assert!(most < 4 * OCTETS_MAX, "{what}: {most} octets were taken");
    }
    assert!(most_memory_kb(&server) < MEMORY_KB_MAX, "{} KiB", most_memory_kb(&server));
    // The truth is believed again.
    liar.say(&server, honest(12, &[a("new", 12)]));
    eventually("the truth", || addresses(&server, "new.auth.test") == Ok(vec!["192.0.2.12".to_owned()]));
}

#[test]
fn a_datagram_that_claims_an_older_serial_hides_no_newer_version() {
    let others = others();
    let liar = Liar::start(honest(10, &[]));
    let server = Server::start(&settings(&others, liar.address, ""));
    eventually("the first version", || has_first_version(&server));
    liar.say(&server, Lie { soa: [9, 11], ..honest(11, &[a("new", 11)]) });
    eventually("the newer version", || {
        addresses(&server, "new.auth.test") == Ok(vec!["192.0.2.11".to_owned()])
    });
}

#[test]
fn a_datagram_that_claims_the_same_serial_hides_no_newer_version_after_a_notify() {
    let others = others();
    let liar = Liar::start(honest(10, &[]));
    let server = Server::start(&settings(&others, liar.address, ""));
    eventually("the first version", || has_first_version(&server));
    liar.say(&server, Lie { soa: [10, 11], ..honest(11, &[a("new", 11)]) });
    eventually("the newer version", || {
        addresses(&server, "new.auth.test") == Ok(vec!["192.0.2.11".to_owned()])
    });
}

#[test]
fn what_lies_outside_a_zone_that_comes_concerns_nobody() {
    let others = others();
    let outside = [
        a("www.example.org.", 66),
        cname("example.org.", "."),
        cname("*.org.", "."),
        a("auth.test.example.net.", 66),
        Said(".".to_owned(), Rtype::NS, name("ns.evil.example").as_name().as_bytes().to_vec()),
    ];
    let liar = Liar::start(honest(10, &outside));
    let server = Server::start(&settings(&others, liar.address, ""));
    eventually("both zones were asked for", || liar.transfers().len() >= ZONES.len());
    liar.say(&server, honest(11, &[]));
    eventually("a version that is good", || has_first_version(&server));
    for qname in ["www.example.org", "a.org", "auth.test.example.net", "www.example.net"] {
        assert_eq!(addresses(&server, qname), Ok(vec!["192.0.2.1".to_owned()]), "{qname}");
    }
}

#[test]
fn aliases_of_a_zone_that_lead_in_a_circle_end() {
    let others = others();
    let circles = [
        cname("one", "two.auth.test"),
        cname("two", "one.auth.test"),
        cname("self", "self.auth.test"),
        cname("one.example", "two.example"),
        cname("two.example", "one.example"),
        cname("self.example", "self.example"),
        cname("*.wild.example", "a.wild.example"),
    ];
    let liar = Liar::start(honest(10, &circles));
    let server = Server::start(&settings(&others, liar.address, ""));
    eventually("the first version", || has_first_version(&server));
    for qname in [
        "one.auth.test",
        "two.auth.test",
        "self.auth.test",
        "one.example",
        "two.example",
        "self.example",
        "b.wild.example",
    ] {
        // An answer comes, of aliases or of none.
        let heard = server.ask(&Ask::new(qname, Rtype::A));
        assert!(heard.answers().len() < 40, "{qname}: {heard:?}");
    }
    check(&server, 10, "others.example");
}

#[test]
fn very_many_wildcards_of_a_policy_zone_hold_up_nobody() {
    const MANY: usize = 100_000;
    let others = others();
    let liar = Liar::start(honest(10, &[]));
    let server = Server::start(&settings(&others, liar.address, ""));
    eventually("the first version", || has_first_version(&server));
    let wildcards: Vec<Said> = (0..MANY).map(|number| cname(&format!("*.n{number}.example"), ".")).collect();
    liar.say(&server, honest(11, &wildcards));
    let mut asked = 0;
    eventually("the wildcards", || {
        asked += 1;
        assert_eq!(addresses(&server, &format!("x{asked}.other")), Ok(vec!["192.0.2.1".to_owned()]));
        addresses(&server, &format!("y{asked}.n{}.example", MANY - 1)) == Err(Rcode::NXDOMAIN)
    });
    assert_eq!(addresses(&server, "a.n0.example"), Err(Rcode::NXDOMAIN));
    check(&server, 10, "others.example");
    assert!(most_memory_kb(&server) < MEMORY_KB_MAX, "{} KiB", most_memory_kb(&server));
}

#[test]
fn a_primary_that_loses_its_key_leaves_the_zones_that_were_good() {
    let others = others();
    let directory = TempDir::new().expect("a temporary directory");
    for zone in ZONES {
        let text = "@ 60 SOA . . 10 7200 600 86400 300\n@ 60 NS ns.example.net.\nwww 60 A 192.0.2.10\nbad.example 60 CNAME .\n";
        std::fs::write(directory.path().join(zone), text).expect("a writable directory");
    }
    let key = "keys: [{name: k, secret: c2VjcmV0IG9mIHR3byBzZXJ2ZXJzIGFuZCBub2JvZHkgZWxzZQ==}]\n";
    let zones = ZONES.map(|zone| format!("{{name: {zone}, file: {zone}, transfer: \"key k\"}}")).join(", ");
    let primary = Server::start_in(
        directory,
        &format!(
            "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n{key}zones: [{zones}]\n\
             policy: {{main: [{{do: reject(refused)}}]}}\n"
        ),
    );
    let address = primary.address();
    let with_key =
        settings(&others, address, key).replace(&format!("\"{address}\"]"), &format!("\"{address} key k\"]"));
    let mut server = Server::start(&with_key);
    eventually("the first version", || has_first_version(&server));
    drop(primary);
    let liar = Liar::start_at(address, honest(11, &[a("new", 11)]));
    let before = failures(&mut server);
    liar.say(&server, honest(11, &[a("new", 11)]));
    eventually("what is not signed is refused", || have_failed_since(&mut server, &before));
    check(&server, 10, "others.example");
    assert_eq!(addresses(&server, "new.auth.test"), Err(Rcode::NXDOMAIN));
}

/// A query that waits for another server has met the zone as it was then, and goes on with what is
/// left of it (CVE-2026-44608).
#[test]
fn a_policy_zone_that_changes_while_queries_wait_harms_none_of_them() {
    const CLIENTS: usize = 20;
    let others = others();
    let rule = |number: usize| cname(&format!("n{number}.example"), "rpz-passthru");
    let rules: Vec<Said> = (0..CLIENTS).map(rule).chain([cname("24.0.2.0.192.rpz-ip", ".")]).collect();
    let liar = Liar::start(honest(10, &rules));
    let server = Server::start(&settings(&others, liar.address, ""));
    eventually("the first version", || has_first_version(&server));
    others.behave(Script::silent());
    let clients: Vec<UdpClient> = (0..CLIENTS)
        .map(|number| {
            let client = UdpClient::connect(server.address());
            client.send(&Ask::new(&format!("x{number}.other.example"), Rtype::A).bytes());
            client
        })
        .collect();
    eventually("all wait", || others.seen().len() >= CLIENTS);
    // Ever fewer rules, other ones, none, and again those from the start.
    for (serial, rules) in [&rules[..5], &rules[10..], &[], &rules[..]].into_iter().enumerate() {
        let serial = serial as u32 + 11;
        let marker = cname(&format!("marker{serial}.test"), ".");
        liar.say(&server, honest(serial, &[rules, &[marker]].concat()));
        eventually("the next version", || {
            server.ask(&Ask::new(&format!("marker{serial}.test"), Rtype::A).flags(Flags::default())).rcode()
                == Rcode::NXDOMAIN
        });
    }
    others.behave(Script::always(Answer::a(300, Ipv4Addr::new(192, 0, 2, 1))));
    for client in clients {
        // By the rule on addresses of the first version or the last, or SERVFAIL of patience.
        let heard = client.receive();
        assert!([Rcode::NXDOMAIN, Rcode::SERVFAIL].contains(&heard.rcode()), "{heard:?}");
    }
    assert_eq!(addresses(&server, "y.other.example"), Err(Rcode::NXDOMAIN));
}

#[test]
fn notify_and_update_without_tsig_have_the_bound_of_queries() {
    let server = primary("update: [loopback]", "");
    let small =
        config("{name: example.org, file: org, update: [loopback]}", "") + "limits: {query-size: 512}\n";
    server.write_config(&small);
    assert!(server.command(&["reload"]).status.success());
    let client = UdpClient::connect(server.address());
    for opcode in [Opcode::NOTIFY, Opcode::UPDATE, Opcode::QUERY] {
        let padded = |octets: usize| {
            let ask = Ask::new("example.org", Rtype::SOA).opcode(opcode);
            ask.option(wire::OptionCode(12), &vec![0; octets]).bytes()
        };
        client.expect_silence(&padded(600));
        client.send(&padded(0));
        assert_eq!(client.receive().id(), 4711, "{opcode}");
    }
}
