//! What addresses that are not proven may be sent: three times what came from them (RFC 9000 §8.1),
//! and not an octet more.
//!
//! `quinn` counts, too, but lets a whole datagram out for as long as anything is left, so that
//! repeated packets come to more than that. What would exceed the bound is not sent here; to
//! `quinn` it is lost on the way, and is sent again when more has come.

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

/// How many times as much may be sent as came.
const FACTOR: u64 = 3;
/// Addresses that something of a handshake came from and that nobody has looked at yet; then the
/// oldest knowledge is forgotten, which makes their bound narrower.
const HEARD_MAX: usize = 4096;
/// The bit of a packet's first octet that says that it belongs to a handshake, or may (RFC 9000
/// §17.2).
const LONG_HEADER: u8 = 0x80;
/// Octets of the smallest datagram that a connection can begin with (RFC 9000 §14.1).
const FIRST_OCTETS_MIN: u64 = 1200;

/// What is known of addresses.
#[derive(Debug, Default)]
struct Known {
    /// Octets that came from addresses without a connection.
    heard: HashMap<SocketAddr, u64>,
    /// Addresses with connections whose handshake is not done.
    bounded: HashMap<SocketAddr, Bound>,
    /// Addresses with connections whose handshake is done, and how many these are.
    proven: HashMap<SocketAddr, usize>,
}

#[derive(Debug, Default)]
struct Bound {
    connections: usize,
    received: u64,
    sent: u64,
}

impl Known {
    fn receive(&mut self, from: SocketAddr, octets: u64) {
        if let Some(bound) = self.bounded.get_mut(&from) {
            bound.received += octets;
        } else if !self.proven.contains_key(&from) {
            if self.heard.len() >= HEARD_MAX {
                self.heard.clear();
            }
            *self.heard.entry(from).or_default() += octets;
        }
    }

    /// Returns how many octets may be sent; `None` if there is no bound.
    fn left(&self, to: SocketAddr) -> Option<u64> {
        let bound = self.bounded.get(&to).filter(|_| !self.proven.contains_key(&to))?;
        Some((bound.received * FACTOR).saturating_sub(bound.sent))
    }
}

/// The bounds of one socket.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds(Arc<Mutex<Known>>);

impl Bounds {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bounds what an address is sent for as long as the result lives, or until it is proven.
    pub(super) fn bind(&self, address: SocketAddr) -> Bounded {
        let mut known = self.lock();
        let heard = known.heard.remove(&address).unwrap_or(0).max(FIRST_OCTETS_MIN);
        let bound = known.bounded.entry(address).or_default();
        // Of a second connection, everything was counted already.
        if bound.connections == 0 {
            bound.received = heard;
        }
        bound.connections += 1;
        drop(known);
        Bounded { bounds: self.clone(), address, is_proven: false }
    }
}

/// An address with a connection.
#[derive(Debug)]
pub(super) struct Bounded {
    bounds: Bounds,
    address: SocketAddr,
    is_proven: bool,
}

impl Bounded {
    /// Notes that the client has shown that it is there.
    pub(super) fn prove(&mut self) {
        if !self.is_proven {
            self.leave();
            *self.bounds.lock().proven.entry(self.address).or_default() += 1;
            self.is_proven = true;
        }
    }

    fn leave(&self) {
        let mut known = self.bounds.lock();
        if self.is_proven {
            let is_last = known.proven.get_mut(&self.address).is_some_and(|count| {
                *count -= 1;
                *count == 0
            });
            if is_last {
                known.proven.remove(&self.address);
            }
        } else {
            let is_last = known.bounded.get_mut(&self.address).is_some_and(|bound| {
                bound.connections -= 1;
                bound.connections == 0
            });
            if is_last {
                known.bounded.remove(&self.address);
            }
        }
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A socket that keeps to the bounds.
#[derive(Debug)]
pub(super) struct BoundedSocket {
    pub(super) socket: Arc<dyn AsyncUdpSocket>,
    pub(super) bounds: Bounds,
}

impl AsyncUdpSocket for BoundedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let left = self.bounds.lock().left(transmit.destination);
        let Some(left) = left else { return self.socket.try_send(transmit) };
        let octets = within(transmit, usize::try_from(left).unwrap_or(usize::MAX));
        let Some(contents) = transmit.contents.get(..octets).filter(|contents| !contents.is_empty()) else {
            return Ok(());
        };
        self.socket.try_send(&Transmit { contents, ..transmit.clone() })?;
        if let Some(bound) = self.bounds.lock().bounded.get_mut(&transmit.destination) {
            bound.sent += octets as u64;
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        found: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.socket.poll_recv(context, buffers, found))?;
        for (buffer, found) in buffers.iter().zip(found.iter()).take(count) {
            let octets = buffer.get(..found.len).unwrap_or(&[]);
            let datagrams = octets.chunks(found.stride.max(1));
            let of_handshakes =
                datagrams.filter(|datagram| datagram.first().is_some_and(|first| first & LONG_HEADER != 0));
            let octets: usize = of_handshakes.map(<[u8]>::len).sum();
            if octets > 0 {
                self.bounds.lock().receive(found.addr, octets as u64);
            }
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

/// Returns how many octets of the datagrams fit into `left`: whole datagrams only.
fn within(transmit: &Transmit<'_>, left: usize) -> usize {
    let octets = transmit.contents.len();
    if octets <= left {
        return octets;
    }
    match transmit.segment_size {
        Some(segment) if segment > 0 => left / segment * segment,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 5300);

    fn transmit(contents: &[u8], segment_size: Option<usize>) -> Transmit<'_> {
        Transmit { destination: CLIENT.into(), ecn: None, contents, segment_size, src_ip: None }
    }

    #[test]
    fn whole_datagrams_are_sent_or_none() {
        let octets = [0; 3822];
        assert_eq!(within(&transmit(&octets, Some(1200)), 3600), 3600);
        assert_eq!(within(&transmit(&octets, Some(1200)), 3599), 2400);
        assert_eq!(within(&transmit(&octets, Some(1200)), 3822), 3822);
        assert_eq!(within(&transmit(&octets[..222], None), 221), 0);
        assert_eq!(within(&transmit(&octets[..222], None), 222), 222);
    }

    #[test]
    fn an_address_is_bounded_until_one_of_its_connections_is_proven() {
        let bounds = Bounds::default();
        let client = SocketAddr::from(CLIENT);
        let left = || bounds.lock().left(client);
        bounds.lock().receive(client, 1200);
        bounds.lock().receive(client, 1300);
        assert_eq!(left(), None, "nobody sends it anything yet");
        let mut first = bounds.bind(client);
        assert_eq!(left(), Some(7500));
        bounds.lock().receive(client, 100);
        assert_eq!(left(), Some(7800));
        let second = bounds.bind(client);
        assert_eq!(left(), Some(7800));
        first.prove();
        assert_eq!(left(), None);
        drop(first);
        assert_eq!(left(), Some(7800));
        drop(second);
        let known = bounds.lock();
        assert!(known.bounded.is_empty() && known.proven.is_empty() && known.heard.is_empty());
    }

    #[test]
    fn what_strangers_send_is_not_remembered_without_a_bound() {
        let bounds = Bounds::default();
        for port in 0..u16::MAX {
            bounds.lock().receive(([192, 0, 2, 1], port).into(), 1200);
            assert!(bounds.lock().heard.len() <= HEARD_MAX);
        }
        // Who was forgotten has sent a first datagram at least.
        let _bounded = bounds.bind(([192, 0, 2, 1], 1).into());
        assert_eq!(bounds.lock().left(([192, 0, 2, 1], 1).into()), Some(3600));
    }
}
