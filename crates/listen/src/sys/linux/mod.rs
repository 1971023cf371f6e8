//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Batches of datagrams through `recvmmsg` and `sendmmsg`.

mod accept;
mod address;
mod inbox;
mod memory;
mod options;
mod outbox;

use std::{mem, ptr};

pub(crate) use accept::accept;
pub(crate) use inbox::Inbox;
pub(crate) use options::{STEERS, lost, prepare_datagrams, set_buffers, steer};
pub(crate) use outbox::Outbox;

const NO_HEADER: libc::mmsghdr = {
    // SAFETY: all of its fields are integers and pointers, for which zero is a value.
    unsafe { mem::zeroed() }
};

const NO_BUFFER: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };

/// Returns how many octets of ancillary data a message has.
#[allow(clippy::unnecessary_cast, reason = "some C libraries have a narrower field")]
fn control_octets(header: &libc::mmsghdr) -> usize {
    header.msg_hdr.msg_controllen as usize
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
    use std::os::fd::AsFd;

    use super::address::RawAddress;
    use super::options::steer;
    use super::outbox::place;
    use super::*;
    use crate::sys::{Local, Received, Sent, Shape};

    const SHAPE: Shape = Shape {
        messages: 4,
        query_octets_max: 100,
        reply_octets_max: 200,
        addressed: false,
        coalesced: false,
        stamped: false,
        segmented: true,
    };

    fn socket(address: &str) -> UdpSocket {
        UdpSocket::bind(address).expect("loopback has free ports")
    }

    /// Returns two clients whose replies of these sizes are looked for in different places: which
    /// ports they get is chance.
    fn clients(sizes: &[usize]) -> (UdpSocket, UdpSocket) {
        loop {
            let both = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
            let addresses = [&both.0, &both.1].map(|client| client.local_addr().expect("bound"));
            let places = addresses.iter().flat_map(|to| sizes.iter().map(move |&size| place(to, size)));
            let mut places: Vec<usize> = places.collect();
            places.sort_unstable();
            places.dedup();
            if places.len() == 2 * sizes.len() {
                return both;
            }
        }
    }

    fn queue(outbox: &mut Outbox, bytes: &[u8], peer: SocketAddr, local: Local) {
        outbox.room()[..bytes.len()].copy_from_slice(bytes);
        outbox.push(bytes.len(), &peer, &local);
    }

    fn next(socket: &UdpSocket) -> Vec<u8> {
        let mut buf = [0; 2048];
        let len = socket.recv(&mut buf).expect("a datagram is there");
        buf[..len].to_vec()
    }

    #[test]
    fn addresses_survive_the_round_trip() {
        for text in ["192.0.2.1:53", "[2001:db8::1]:65535", "[fe80::1%7]:1", "[::ffff:192.0.2.1]:53"] {
            let address: SocketAddr = text.parse().expect("an address");
            let mut raw = RawAddress::EMPTY;
            raw.write(&address);
            assert_eq!(raw.parse(), Some(address));
        }
        assert_eq!(RawAddress::EMPTY.parse(), None);
    }

    #[test]
    fn equal_replies_to_one_client_leave_as_one_message_and_arrive_apart() {
        let (server, client) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        let to = client.local_addr().expect("bound");
        let mut outbox = Outbox::new(&SHAPE);
        for bytes in [&b"first"[..], b"secnd", b"3rd", b"again", b"longer one"] {
            queue(&mut outbox, bytes, to, None);
        }
        let runs: Vec<_> = (0..4).filter_map(|index| outbox.queued(index)).collect();
        assert_eq!(
            runs,
            [(13, 3), (5, 1), (10, 1)],
            "a shorter reply ends a run, a longer one begins another"
        );
        let sent = outbox.send(server.as_fd());
        assert_eq!(sent, Sent { replies: 5, dropped: 0, grouped: 1 });
        for bytes in [&b"first"[..], b"secnd", b"3rd", b"again", b"longer one"] {
            assert_eq!(next(&client), bytes);
        }
        assert!(outbox.is_empty());
    }

    #[test]
    fn replies_to_different_clients_or_from_different_addresses_stay_apart() {
        let (first, second) = clients(&[0, 1]);
        let (to_first, to_second) = (first.local_addr().expect("bound"), second.local_addr().expect("bound"));
        let server = socket("0.0.0.0:0");
        let mut outbox = Outbox::new(&SHAPE);
        let other = Some((IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 1));
        queue(&mut outbox, b"a", to_first, None);
        queue(&mut outbox, b"b", to_second, None);
        queue(&mut outbox, b"c", to_first, None);
        queue(&mut outbox, b"d", to_first, other);
        assert_eq!(outbox.send(server.as_fd()), Sent { replies: 4, dropped: 0, grouped: 1 });
        assert_eq!((next(&first), next(&first)), (b"a".to_vec(), b"c".to_vec()));
        let (_, from) = first.peek_from(&mut [0; 8]).expect("a datagram is there");
        assert_eq!(from.ip().to_string(), "127.0.0.2");
        assert_eq!(next(&second), b"b");
    }

    #[test]
    fn replies_between_others_join_their_client_s_run() {
        let (first, second) = clients(&[0, 2, 6]);
        let (to_first, to_second) = (first.local_addr().expect("bound"), second.local_addr().expect("bound"));
        let server = socket("127.0.0.1:0");
        let mut outbox = Outbox::new(&SHAPE);
        for (bytes, to) in [
            (b"a1", to_first),
            (b"a2", to_first),
            (b"b1", to_second),
            (b"a3", to_first),
            (b"b2", to_second),
            (b"b3", to_second),
        ] {
            queue(&mut outbox, bytes, to, None);
        }
        queue(&mut outbox, b"longer", to_first, None);
        queue(&mut outbox, b"a4", to_first, None);
        let runs: Vec<_> = (0..4).filter_map(|index| outbox.queued(index)).collect();
        assert_eq!(
            runs,
            [(8, 4), (6, 3), (6, 1)],
            "what is longer begins a new run, and what is not still joins the old one"
        );
        assert_eq!(outbox.send(server.as_fd()), Sent { replies: 8, dropped: 0, grouped: 2 });
        for bytes in [&b"a1"[..], b"a2", b"a3", b"a4", b"longer"] {
            assert_eq!(next(&first), bytes);
        }
        for bytes in [b"b1", b"b2", b"b3"] {
            assert_eq!(next(&second), bytes);
        }
    }

    #[test]
    fn a_refused_segment_size_falls_back_to_single_datagrams() {
        let (server, client) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        let to = client.local_addr().expect("bound");
        let mut outbox = Outbox::new(&SHAPE);
        let other = socket("127.0.0.1:0");
        queue(&mut outbox, b"ab", to, None);
        queue(&mut outbox, b"xy", other.local_addr().expect("bound"), None);
        queue(&mut outbox, b"cd", to, None);
        queue(&mut outbox, b"e", to, None);
        outbox.seal();
        let mut sent = Sent::default();
        outbox.send_apart(server.as_fd(), 0, &io::Error::from_raw_os_error(libc::EIO), &mut sent);
        assert_eq!(sent, Sent { replies: 3, dropped: 0, grouped: 0 });
        assert_eq!((next(&client), next(&client)), (b"ab".to_vec(), b"cd".to_vec()));
        assert_eq!(next(&client), b"e");
        assert!(!outbox.segmented, "and is not tried again");
    }

    #[test]
    fn a_reply_that_cannot_be_sent_does_not_take_the_others_along() {
        let (server, client) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        let to = client.local_addr().expect("bound");
        let nowhere: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let mut outbox = Outbox::new(&SHAPE);
        queue(&mut outbox, b"one", to, None);
        queue(&mut outbox, b"lost", nowhere, None);
        queue(&mut outbox, b"two", to, None);
        assert_eq!(outbox.send(server.as_fd()), Sent { replies: 2, dropped: 1, grouped: 1 });
        assert_eq!((next(&client), next(&client)), (b"one".to_vec(), b"two".to_vec()));
    }

    #[test]
    fn datagrams_longer_than_the_buffer_are_told_apart() {
        let (server, client) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        let to = server.local_addr().expect("bound");
        let mut inbox = Inbox::new(&SHAPE);
        for len in [100, 101, 3] {
            client.send_to(&vec![7; len], to).expect("sent");
        }
        assert_eq!(inbox.receive(server.as_fd()).expect("received"), 3);
        assert!(matches!(inbox.message(0), Some(Received::Message(message)) if message.bytes.len() == 100));
        assert!(matches!(inbox.message(1), Some(Received::Unusable)));
        assert!(matches!(inbox.message(2), Some(Received::Message(message)) if message.bytes == [7; 3]));
        assert!(inbox.message(3).is_none());
        let error = inbox.receive(server.as_fd()).expect_err("nothing more is there");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(inbox.message(0).is_none(), "an old batch is not read again");
    }

    #[test]
    fn wildcard_sockets_learn_where_a_query_came_to() {
        let (server, client) = (socket("0.0.0.0:0"), socket("127.0.0.1:0"));
        prepare_datagrams(server.as_fd(), false, true, false, false).expect("Linux has packet information");
        let port = server.local_addr().expect("bound").port();
        client.send_to(b"hello", ("127.0.0.9", port)).expect("sent");
        let mut inbox = Inbox::new(&Shape { addressed: true, ..SHAPE });
        inbox.receive(server.as_fd()).expect("received");
        let Some(Received::Message(message)) = inbox.message(0) else { panic!("a message") };
        assert_eq!(message.local.map(|(address, _)| address.to_string()), Some("127.0.0.9".to_owned()));
        assert_eq!(message.datagram_octets, 5);
    }

    #[test]
    fn queries_say_when_they_came_if_that_is_asked_for() {
        let (server, client) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        prepare_datagrams(server.as_fd(), false, false, false, true).expect("Linux has time stamps");
        let microseconds = || {
            let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
            now.expect("after 1970").as_micros() as u64
        };
        let before = microseconds();
        client.send_to(b"hello", server.local_addr().expect("bound")).expect("sent");
        let mut inbox = Inbox::new(&Shape { stamped: true, ..SHAPE });
        inbox.receive(server.as_fd()).expect("received");
        let Some(Received::Message(message)) = inbox.message(0) else { panic!("a message") };
        let came_at_us = message.came_at_us.expect("a moment");
        assert!((before..=microseconds()).contains(&came_at_us.get()), "{came_at_us}");
        assert_eq!(message.datagram_octets, 5);
    }

    /// Opens three sockets that share an address, has datagrams steered to `workers` of them, and
    /// returns how many of a hundred clients' datagrams each gets.
    fn steered(ip: IpAddr, workers: usize) -> Vec<usize> {
        let open = |port| {
            let domain = socket2::Domain::for_address((ip, port).into());
            let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None).expect("a socket");
            socket.set_reuse_port(true).expect("set");
            socket.set_nonblocking(true).expect("set");
            socket.bind(&SocketAddr::from((ip, port)).into()).expect("bound");
            socket
        };
        let first = open(0);
        let address = first.local_addr().expect("bound").as_socket().expect("an address");
        let all = [first, open(address.port()), open(address.port())];
        steer(all[1].as_fd(), ip.is_ipv6(), workers).expect("steered");
        for _ in 0..100 {
            UdpSocket::bind((ip, 0)).expect("bound").send_to(b"?", address).expect("sent");
        }
        all.map(|socket| {
            std::iter::from_fn(|| socket.recv(&mut [mem::MaybeUninit::uninit(); 8]).ok()).count()
        })
        .to_vec()
    }

    #[test]
    fn datagrams_are_steered_to_as_many_sockets_as_wanted() {
        for ip in [IpAddr::from([127, 0, 0, 1]), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            if UdpSocket::bind((ip, 0)).is_err() {
                continue;
            }
            for workers in 1..=3 {
                let got = steered(ip, workers);
                assert_eq!(got.iter().sum::<usize>(), 100, "{ip} {workers}");
                // A hundred ports fall evenly enough for that, whichever they are.
                let busy = got.iter().filter(|&&count| count > 10).count();
                assert_eq!(busy, workers, "{ip} {got:?}");
                assert_eq!(got.iter().filter(|&&count| count > 0).count(), workers, "{ip} {got:?}");
            }
        }
    }

    #[test]
    fn coalesced_datagrams_say_their_size() {
        let (server, client) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        if !prepare_datagrams(server.as_fd(), false, false, true, false).expect("prepared") {
            return;
        }
        let mut outbox = Outbox::new(&SHAPE);
        for bytes in [b"aaa", b"bbb", b"ccc"] {
            queue(&mut outbox, bytes, server.local_addr().expect("bound"), None);
        }
        outbox.send(client.as_fd());
        let mut inbox = Inbox::new(&Shape { coalesced: true, ..SHAPE });
        assert_eq!(inbox.receive(server.as_fd()).expect("received"), 1);
        let Some(Received::Message(message)) = inbox.message(0) else { panic!("a message") };
        assert_eq!((message.bytes, message.datagram_octets), (&b"aaabbbccc"[..], 3));
    }
}
