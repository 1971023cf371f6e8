//! Who is told of zones when a server starts.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use testkit::Server;
use wire::{Message, Opcode, Rtype};

use super::*;

/// Zones of the primary.
const ZONES: usize = 200;
/// Notifications that are sent to one server before it has answered any.
const AT_ONCE: usize = 32;

fn configured(secondary: &str) -> String {
    let each = |number| format!("{{name: z{number}.example, file: org, notify: [\"{secondary}\"]}}");
    let zones: Vec<String> = (0..ZONES).map(each).collect();
    config(&zones.join("\n  - "), "")
}

/// Takes the next notification about a zone below `example.`: the port may be one that another
/// test's server still sends to. Returns its zone, its serial, itself and where it comes from.
fn next(socket: &UdpSocket) -> (String, u32, Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2048];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).expect("a notification");
        let octets = &buffer[..len];
        let message = Message::parse(octets).expect("a message");
        assert_eq!(message.header.flags.opcode(), Opcode::NOTIFY);
        let question = message.question.as_ref().expect("a question");
        assert_eq!(question.qtype, Rtype::SOA);
        let name = question.qname.to_buf().to_string();
        if name.ends_with(".example.") {
            // The SOA record stands last: serial, refresh, retry, expire, minimum.
            let serial = octets[len - 20..len - 16].try_into().expect("four octets");
            return (name, u32::from_be_bytes(serial), octets.to_vec(), from);
        }
    }
}

/// Takes notifications until `count` zones were named so many `times`; answers them if `answers`.
/// Returns how often each was named.
fn hear(socket: &UdpSocket, (count, times): (usize, usize), answers: bool) -> BTreeMap<String, usize> {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    while names.values().filter(|named| **named >= times).count() < count {
        let (name, _, mut octets, from) = next(socket);
        *names.entry(name).or_default() += 1;
        if answers {
            // QR is the first bit of the flags.
            octets[2] |= 0x80;
            socket.send_to(&octets, from).expect("a socket");
        }
    }
    names
}

#[test]
fn a_secondary_that_refuses_a_notification_is_not_called_a_primary() {
    // It serves another zone.
    let other = Server::start(&config("{name: other.example, primaries: [192.0.2.1]}", ""));
    let mut server = primary(&format!("notify: [\"{}\"]", other.address()), "");
    let line = server.wait_for_log("not notified");
    assert!(line.contains("it answers NOTAUTH") && !line.contains("primary answers"), "{line}");
}

#[test]
fn a_secondary_is_told_of_all_zones_at_a_start_a_few_at_a_time() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let secondary = socket.local_addr().expect("an address").to_string();
    let server = Server::start_in(directory_with_org(), &configured(&secondary));
    // As long as it answers none it hears of no other zone, only of these again.
    let named = hear(&socket, (AT_ONCE, 2), false);
    assert_eq!(named.len(), AT_ONCE, "{named:?}");
    assert_eq!(hear(&socket, (ZONES, 1), true).len(), ZONES);
    // And all over again when the server starts again.
    let (_, _, directory) = server.stop_by("KILL");
    socket.set_nonblocking(true).expect("a socket");
    while socket.recv_from(&mut [0; 2048]).is_ok() {}
    socket.set_nonblocking(false).expect("a socket");
    let _server = Server::start_in(directory, &configured(&secondary));
    assert_eq!(hear(&socket, (ZONES, 1), true).len(), ZONES);
}

#[test]
fn a_notification_of_an_older_version_is_not_sent_again() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let secondary = socket.local_addr().expect("an address");
    let zone = format!("{{name: one.example, file: org, notify: [\"{secondary}\"]}}");
    let server = Server::start_in(directory_with_org(), &config(&zone, ""));
    assert_eq!(next(&socket).1, 10);
    let newer = ORG.replace("admin 10 ", "admin 11 ");
    std::fs::write(server.directory().join("org"), newer).expect("our file");
    assert!(server.command(&["zone", "reload"]).status.success());
    while next(&socket).1 == 10 {}
    // That of serial 10 would be due before that of serial 11.
    assert_eq!(next(&socket).1, 11);
}

#[test]
fn a_zone_does_not_wait_for_the_reply_about_another() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    // The notification of `one` is repeated for a minute and a half if nobody answers it.
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    let secondary = socket.local_addr().expect("an address");
    let zone = |name: &str| format!("{{name: {name}.example, file: org, notify: [\"{secondary}\"]}}");
    let server = Server::start_in(directory_with_org(), &config(&zone("one"), ""));
    let one = next(&socket).0;
    assert_eq!(one, "one.example.");
    server.write_config(&config(&format!("{}\n  - {}", zone("one"), zone("two")), ""));
    assert!(server.command(&["reload"]).status.success());
    let since = Instant::now();
    while next(&socket).0 != "two.example." {
        assert!(since.elapsed() < Duration::from_secs(30), "only one.example. is notified");
    }
}
