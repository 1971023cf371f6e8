//! Asks a primary for the SOA of a zone over UDP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use plan::transfers::Remote;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};
use wire::{Flags, Message, Name, Opcode, Rtype};

use crate::messages::{Expire, query, serial_in};
use crate::signature::{believed, signed};

/// How long each datagram waits for its reply. Who drops them is asked over TCP then.
pub(crate) const WAITS: &[Duration] = &[Duration::from_secs(1); 2];

/// The same where there is no zone yet: it is transferred whatever the reply says.
pub(crate) const SHORT_WAITS: &[Duration] = &[Duration::from_millis(300)];

/// Returns the reply to a question for the SOA, which has one; `None` if there is none that can be
/// used, so that the question has to go over a connection.
pub(crate) async fn soa_by_datagram(
    remote: &Remote,
    apex: Name<'_>,
    expire: Expire,
    waits: &[Duration],
) -> Option<Vec<u8>> {
    let socket = bound(remote).await.ok()?;
    let mut buffer = vec![0; usize::from(u16::MAX)];
    for &wait in waits {
        let (id, mut message) = query(apex, (Rtype::SOA, Opcode::QUERY), None, expire);
        let mut verifier = signed(remote, &mut message);
        socket.send(&message).await.ok()?;
        let deadline = Instant::now() + wait;
        while let Ok(received) = timeout_at(deadline, socket.recv(&mut buffer)).await {
            // Nobody listens there.
            let reply = buffer.get(..received.ok()?)?;
            // Anybody could have sent what is not believed; the right reply may still come.
            let Ok(reply) = believed(reply, (id, Opcode::QUERY), verifier.as_mut()) else { continue };
            let is_whole = Message::parse(&reply).is_ok_and(|parsed| !parsed.header.flags.has(Flags::TC));
            // Who refuses over UDP, or does not speak for the zone there, may do so over TCP.
            return (is_whole && serial_in(&reply, apex).is_ok()).then_some(reply);
        }
    }
    None
}

/// Returns a socket at a random port that takes datagrams of this server alone.
pub(crate) async fn bound(remote: &Remote) -> io::Result<UdpSocket> {
    let own: IpAddr =
        if remote.address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((own, 0)).await?;
    socket.connect(remote.address).await?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use wire::{NameBuf, Rcode};

    use super::*;

    /// Returns the flags of the reply that is taken from a server that answers each query with
    /// these and a SOA record: with the query's own ID, or with another one.
    fn asked(replies: Vec<(bool, Flags)>) -> Option<Flags> {
        let server = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let remote =
            Remote { address: server.local_addr().expect("an address"), host: None, tls: None, key: None };
        let serving = thread::spawn(move || {
            let mut query = [0; 512];
            let (_, from) = server.recv_from(&mut query).expect("a query");
            for (is_own, flags) in replies {
                // The question of `example.org`, and what the SOA record has before its data.
                let mut reply = query[..12 + 13 + 4].to_vec();
                reply[0] ^= u8::from(!is_own);
                reply[2..4].copy_from_slice(&flags.0.to_be_bytes());
                reply[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
                reply.extend([0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 60, 0, 22]);
                reply.extend([&[0, 0, 0, 0, 0, 7][..], &[0; 16]].concat());
                server.send_to(&reply, from).expect("it is sent");
            }
        });
        let taken = taken(&remote);
        serving.join().expect("no panic");
        taken
    }

    fn taken(remote: &Remote) -> Option<Flags> {
        let apex: NameBuf = "example.org".parse().expect("a name");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let reply = runtime.block_on(soa_by_datagram(remote, apex.as_name(), Expire::Asked, WAITS))?;
        Some(Message::parse(&reply).expect("a message").header.flags)
    }

    #[test]
    fn the_reply_is_the_one_that_was_waited_for() {
        let good = Flags::QR.with(Flags::AA);
        assert_eq!(asked(vec![(true, Flags::QR.with(Flags::AA))]), Some(good));
        assert_eq!(
            asked(vec![(false, Flags::QR), (true, Flags(0)), (true, Flags::QR.with(Flags::AA))]),
            Some(good)
        );
    }

    #[test]
    fn who_refuses_or_does_not_speak_for_the_zone_is_asked_over_a_connection() {
        for rcode in [Rcode::REFUSED, Rcode::SERVFAIL] {
            assert_eq!(asked(vec![(true, Flags::QR.with(Flags::AA).with_rcode(rcode))]), None);
        }
        assert_eq!(asked(vec![(true, Flags::QR)]), None);
    }

    #[test]
    fn what_is_cut_and_who_does_not_listen_is_asked_over_a_connection() {
        assert_eq!(asked(vec![(true, Flags::QR.with(Flags::AA).with(Flags::TC))]), None);
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = closed.expect("an address");
        assert_eq!(taken(&Remote { address, host: None, tls: None, key: None }), None);
    }
}
