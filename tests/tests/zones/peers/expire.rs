//! For how long a zone may still be served, as servers tell each other (RFC 7314).

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use testkit::{Ask, Clock, Server, eventually};
use wire::{Class, Flags, Message, Opcode, OptionCode, Rcode, Rtype, Section, Ttl, Writer};

use super::*;

/// EXPIRE of the zone's SOA.
const ALL_S: u32 = 86_400;

/// A primary that has its zone from elsewhere, and may serve it for as long as the test says; or
/// one that knows nothing of EDNS.
struct Between {
    port: u16,
    told: Arc<EventContext>,
}

struct EventContext {
    left_s: AtomicU32,
    serial: AtomicU32,
    /// What it says to a query that has an OPT, if it does not know what that is.
    refusal: Option<Rcode>,
    /// What it was asked, and whether every such question asked for EXPIRE; what was refused for
    /// that is not among it.
    asked: Mutex<BTreeMap<Rtype, bool>>,
}

impl Between {
    fn start(left_s: u32) -> Self {
        Self::with(left_s, None)
    }

    fn with(left_s: u32, refusal: Option<Rcode>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let (left_s, serial) = (AtomicU32::new(left_s), AtomicU32::new(7));
        let told = Arc::new(EventContext { left_s, serial, refusal, asked: Mutex::default() });
        let served = Arc::clone(&told);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                thread::spawn(move || while answer(&stream, &served).is_some() {});
            }
        });
        Self { port, told }
    }

    fn has_heard(&self, rtype: Rtype) -> Option<bool> {
        self.told.asked.lock().expect("nobody panics").get(&rtype).copied()
    }

    /// Says that there may be something new.
    fn notify(&self, secondary: &Server) {
        let message = Ask::new("example.org", Rtype::SOA).opcode(Opcode::NOTIFY).bytes();
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.send_to(&message, secondary.address()).expect("a socket");
    }
}

/// Answers the next query of a connection.
fn answer(mut stream: &TcpStream, told: &EventContext) -> Option<()> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut query).ok()?;
    let query = Message::parse(&query).ok()?;
    let question = query.question?;
    let asks = query.edns.is_some_and(|edns| edns.option(OptionCode::EXPIRE) == Some(&[]));
    if let Some(rcode) = told.refusal.filter(|_| query.edns.is_some()) {
        // RFC 6891 §7: nothing but a header.
        let mut reply = [0; 12];
        let flags = Flags::QR.with_rcode(rcode);
        let len = Writer::new(&mut reply, 12, query.header.id, flags).finish();
        return stream.write_all(&[&(len as u16).to_be_bytes()[..], &reply[..len]].concat()).ok();
    }
    *told.asked.lock().expect("nobody panics").entry(question.qtype).or_insert(true) &= asks;
    let mut reply = vec![0; 1024];
    let mut writer = Writer::new(&mut reply, 1024, query.header.id, Flags::QR.with(Flags::AA));
    writer.question(&question).ok()?;
    let serial = told.serial.load(Ordering::Relaxed).to_be_bytes();
    let soa = [&[0, 0][..], &serial, &[0, 0, 28, 32], &[0, 0, 2, 88], &ALL_S.to_be_bytes(), &[0, 0, 1, 44]];
    let soa = soa.concat();
    let mut put = |rtype: Rtype, data: &[u8]| {
        let apex = question.qname;
        writer.record(Section::Answer, apex, rtype, Class::IN, Ttl::new(60), |writer| writer.bytes(data)).ok()
    };
    put(Rtype::SOA, &soa)?;
    if question.qtype != Rtype::SOA {
        put(Rtype::NS, b"\x02ns\x07example\x03net\0")?;
        put(Rtype::A, &[192, 0, 2, serial[3]])?;
        put(Rtype::SOA, &soa)?;
    }
    if asks {
        let left_s = told.left_s.load(Ordering::Relaxed).to_be_bytes();
        writer.opt(1232, Rcode::NOERROR, false, |writer| writer.option(OptionCode::EXPIRE, &left_s)).ok()?;
    }
    let len = writer.finish();
    reply.truncate(len);
    stream.write_all(&[&(len as u16).to_be_bytes()[..], &reply].concat()).ok()
}

/// Asks a server for how long it may serve the zone.
fn left_s(server: &Server, qtype: Rtype) -> Option<u32> {
    let ask = Ask::new("example.org", qtype).option(OptionCode::EXPIRE, &[]);
    let told = server.ask_tcp(&ask).option(OptionCode::EXPIRE)?;
    Some(u32::from_be_bytes(told.try_into().expect("four octets")))
}

#[test]
fn a_primary_announces_what_the_soa_says() {
    let server = primary("transfer: [loopback]", "");
    assert_eq!(left_s(&server, Rtype::SOA), Some(ALL_S));
    assert_eq!(left_s(&server, Rtype::AXFR), Some(ALL_S));
    let said = server.dig(&["+expire", "example.org", "SOA"]);
    assert!(said.contains("EXPIRE: 86400"), "{said}");
    // Nobody is told who does not ask, or asks about what is no zone.
    assert_eq!(server.ask(&Ask::new("example.org", Rtype::SOA).edns(1232)).option(OptionCode::EXPIRE), None);
    let below = Ask::new("mail.example.org", Rtype::SOA).option(OptionCode::EXPIRE, &[]);
    assert_eq!(server.ask(&below).option(OptionCode::EXPIRE), None);
    assert_eq!(left_s(&server, Rtype::A), None);
}

#[test]
fn a_secondary_of_a_secondary_does_not_keep_a_zone_longer_than_its_origin_lets_it() {
    let between = Between::start(1_000);
    let primaries = format!("\"127.0.0.1:{}\"", between.port);
    let server = secondary(&primaries, "transfer: [loopback]");
    eventually("the zone here", || server.dig(&["example.org", "A"]).contains("192.0.2.7"));
    assert_eq!(between.has_heard(Rtype::AXFR), Some(true));
    let first = left_s(&server, Rtype::SOA).expect("it is told");
    assert!((1..=1_000).contains(&first), "{first}");
    assert!(left_s(&server, Rtype::AXFR).is_some_and(|left| left <= first));

    // The origin was heard of up there: there is nothing new, but more time.
    between.told.left_s.store(50_000, Ordering::Relaxed);
    between.notify(&server);
    eventually("more time", || left_s(&server, Rtype::SOA).is_some_and(|left| left > 1_000));
    assert_eq!(between.has_heard(Rtype::SOA), Some(true));
    assert!(left_s(&server, Rtype::SOA).is_some_and(|left| left <= 50_000));

    // It is never less time than before for that, nor more than the SOA says.
    between.told.left_s.store(10, Ordering::Relaxed);
    between.notify(&server);
    let (_, _, directory) = server.stop_by("KILL");
    let zone = format!("{{name: example.org, primaries: [{primaries}], transfer: [loopback]}}");
    let server = Server::start_in(directory, &config(&zone, ""));
    let left = left_s(&server, Rtype::SOA).expect("it was kept");
    assert!((1_001..=50_000).contains(&left), "{left}");
    between.told.left_s.store(u32::MAX, Ordering::Relaxed);
    between.notify(&server);
    eventually("all the time there is", || left_s(&server, Rtype::SOA).is_some_and(|left| left > 50_000));
    assert!(left_s(&server, Rtype::SOA).is_some_and(|left| left <= ALL_S));
}

#[test]
fn a_primary_that_does_not_know_edns_is_asked_again_without() {
    for rcode in [Rcode::FORMERR, Rcode::NOTIMP] {
        let between = Between::with(10, Some(rcode));
        let server = secondary(&format!("\"127.0.0.1:{}\"", between.port), "transfer: [loopback]");
        eventually("the zone here", || server.dig(&["example.org", "A"]).contains("192.0.2.7"));
        assert_eq!(between.has_heard(Rtype::AXFR), Some(false));
        // It says nothing of how long: that is what the SOA says.
        let left = left_s(&server, Rtype::SOA).expect("it is told");
        assert!((1_000..=ALL_S).contains(&left), "{left}");
        // So it is with what comes later.
        between.told.serial.store(8, Ordering::Relaxed);
        between.notify(&server);
        eventually("the new version", || server.dig(&["example.org", "A"]).contains("192.0.2.8"));
        assert_eq!(
            (between.has_heard(Rtype::SOA), between.has_heard(Rtype::IXFR)),
            (Some(false), Some(false))
        );
    }
}

/// The timers of a machine that is suspended stand still: what is due is due by the wall clock.
#[test]
fn a_zone_is_refreshed_when_it_is_due_by_the_wall_clock() {
    let (clock, between) = (Clock::default(), Between::start(ALL_S));
    let zone = format!("{{name: example.org, primaries: [\"127.0.0.1:{}\"]}}", between.port);
    let environment = clock.environment();
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let directory = TempDir::new().expect("a temporary directory");
    let server = Server::start_with(directory, &config(&zone, ""), &environment);
    eventually("the first version", || server.dig(&["example.org", "A"]).contains("192.0.2.7"));
    between.told.serial.store(8, Ordering::Relaxed);
    // REFRESH is 7,200 seconds.
    clock.set_wall(7_300);
    eventually("the second version", || server.dig(&["example.org", "A"]).contains("192.0.2.8"));
}
