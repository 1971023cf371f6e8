//! Who is told of zones when a server starts.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::Duration;

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

/// Takes notifications until `count` zones were named; answers them if `answers`.
fn hear(socket: &UdpSocket, names: &mut BTreeSet<String>, count: usize, answers: bool) {
    let mut buffer = [0; 2048];
    while names.len() < count {
        let Ok((len, from)) = socket.recv_from(&mut buffer) else { return };
        let message = Message::parse(&buffer[..len]).expect("a message");
        assert_eq!(message.header.flags.opcode(), Opcode::NOTIFY);
        let question = message.question.as_ref().expect("a question");
        assert_eq!(question.qtype, Rtype::SOA);
        names.insert(question.qname.to_buf().to_string());
        if answers {
            // QR is the first bit of the flags.
            buffer[2] |= 0x80;
            socket.send_to(&buffer[..len], from).expect("a socket");
        }
    }
}

#[test]
fn a_secondary_is_told_of_all_zones_at_a_start_a_few_at_a_time() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let wait = |time: Option<Duration>| socket.set_read_timeout(time).expect("a socket");
    let secondary = socket.local_addr().expect("an address").to_string();
    let server = Server::start_in(directory_with_org(), &configured(&secondary));
    let mut names = BTreeSet::new();
    hear(&socket, &mut names, AT_ONCE, false);
    // As long as it answers none it hears of no other zone, only of these again.
    wait(Some(Duration::from_secs(1)));
    hear(&socket, &mut names, ZONES, false);
    assert_eq!(names.len(), AT_ONCE, "{names:?}");
    wait(None);
    let mut names = BTreeSet::new();
    hear(&socket, &mut names, ZONES, true);
    // And all over again when the server starts again.
    let (_, _, directory) = server.stop_by("KILL");
    socket.set_nonblocking(true).expect("a socket");
    while socket.recv_from(&mut [0; 2048]).is_ok() {}
    socket.set_nonblocking(false).expect("a socket");
    let _server = Server::start_in(directory, &configured(&secondary));
    hear(&socket, &mut BTreeSet::new(), ZONES, true);
}
