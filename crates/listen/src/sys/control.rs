//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Ancillary data as Linux lays it out (cmsg(3)): read and written as bytes, without pointers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU64;

use super::Local;

/// Octets of a `cmsghdr`: a length, a level and a type.
const HEADER: usize = size_of::<libc::cmsghdr>();

/// Octets of the length field, and what entries are aligned to.
const WORD: usize = size_of::<usize>();

/// Octets one entry with `len` octets of data takes.
const fn space(len: usize) -> usize {
    HEADER + len.next_multiple_of(WORD)
}

/// Octets that hold everything the kernel may tell with a received message: where it was sent to,
/// the size of coalesced datagrams, when it came.
pub(super) const RECEIVE_OCTETS: usize = space(20) + space(12) + space(4) + space(16);

/// Octets that hold what we may tell with a sent one.
pub(super) const SEND_OCTETS: usize = space(20) + space(2);

/// Octets the size of segments takes among them.
pub(super) const SEGMENT_OCTETS: usize = space(2);

/// A control buffer, aligned as the kernel wants it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Aligned<const N: usize>(pub(super) [u8; N]);

/// What came with a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ancillary {
    /// Where it was sent to.
    pub(super) local: Local,
    /// Octets per datagram, when several were coalesced.
    pub(super) datagram_octets: Option<usize>,
    /// When it came, in microseconds since 1970.
    pub(super) came_at_us: Option<NonZeroU64>,
}

/// Reads the entries of a control buffer; stops at the first that overruns.
pub(super) fn parse(mut bytes: &[u8]) -> Ancillary {
    let mut found = Ancillary::default();
    while let Some((level, kind, data, rest)) = entry(bytes) {
        match (level, kind) {
            (libc::SOL_IP, libc::IP_PKTINFO) => {
                // in_pktinfo: interface, the local address to answer from, the destination in the
                // header.
                if let Some(&[i0, i1, i2, i3, a, b, c, d, ..]) = data.first_chunk::<12>() {
                    let index = u32::from_ne_bytes([i0, i1, i2, i3]);
                    found.local = Some((IpAddr::V4(Ipv4Addr::new(a, b, c, d)), index));
                }
            }
            (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
                if let Some((address, rest)) = data.split_first_chunk::<16>()
                    && let Some(index) = rest.first_chunk::<4>()
                {
                    let address = Ipv6Addr::from(*address);
                    found.local = Some((IpAddr::V6(address), u32::from_ne_bytes(*index)));
                }
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                found.datagram_octets = data
                    .first_chunk::<4>()
                    .and_then(|size| usize::try_from(i32::from_ne_bytes(*size)).ok())
                    .filter(|&size| size > 0);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // timespec: seconds, nanoseconds.
                if let Some((seconds, rest)) = data.split_first_chunk::<WORD>()
                    && let Some(nanoseconds) = rest.first_chunk::<WORD>()
                {
                    let [seconds, nanoseconds] =
                        [seconds, nanoseconds].map(|it| usize::from_ne_bytes(*it) as u64);
                    let came_at_us = seconds.wrapping_mul(1_000_000).wrapping_add(nanoseconds / 1000);
                    found.came_at_us = NonZeroU64::new(came_at_us);
                }
            }
            _ => {}
        }
        bytes = rest;
    }
    found
}

/// Splits off the first entry: level, type, data, and what follows.
fn entry(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<WORD>()?;
    let (level, rest) = rest.split_first_chunk::<4>()?;
    let kind = rest.first_chunk::<4>()?;
    let len = usize::from_ne_bytes(*len);
    let data = bytes.get(HEADER..len)?;
    let rest = bytes.get(len.next_multiple_of(WORD)..).unwrap_or(&[]);
    Some((i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind), data, rest))
}

/// Writes entries one after the other.
pub(super) struct Entries<'a> {
    buf: &'a mut [u8],
    used: usize,
}

impl<'a> Entries<'a> {
    /// Begins in `buf`.
    pub(super) const fn new(buf: &'a mut [u8]) -> Self {
        Self { buf, used: 0 }
    }

    /// Returns the octets written.
    pub(super) const fn len(&self) -> usize {
        self.used
    }

    /// Appends one entry; leaves it out when it does not fit.
    fn push<const N: usize>(&mut self, level: i32, kind: i32, data: [u8; N]) {
        let Some(out) = self.buf.get_mut(self.used..self.used + space(N)) else { return };
        out.fill(0);
        let (head, body) = out.split_at_mut(HEADER);
        if let Some(len) = head.get_mut(..WORD) {
            len.copy_from_slice(&(HEADER + N).to_ne_bytes());
        }
        if let Some(levels) = head.get_mut(WORD..WORD + 4) {
            levels.copy_from_slice(&level.to_ne_bytes());
        }
        if let Some(kinds) = head.get_mut(WORD + 4..WORD + 8) {
            kinds.copy_from_slice(&kind.to_ne_bytes());
        }
        if let Some(body) = body.get_mut(..N) {
            body.copy_from_slice(&data);
        }
        self.used += space(N);
    }

    /// Says which address to send from.
    ///
    /// The interface is named for link-local addresses only. Naming it always would bypass the
    /// routing table, and the way to a client need not be the way from it.
    pub(super) fn source(&mut self, address: IpAddr, interface: u32) {
        match address {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                self.push(libc::SOL_IP, libc::IP_PKTINFO, [0, 0, 0, 0, a, b, c, d, 0, 0, 0, 0]);
            }
            IpAddr::V6(address) => {
                let mut data = [0; 20];
                let (head, tail) = data.split_at_mut(16);
                head.copy_from_slice(&address.octets());
                if address.is_unicast_link_local() {
                    tail.copy_from_slice(&interface.to_ne_bytes());
                }
                self.push(libc::SOL_IPV6, libc::IPV6_PKTINFO, data);
            }
        }
    }

    /// Says how many octets each of the message's datagrams has.
    pub(super) fn segment(&mut self, octets: u16) {
        self.push(libc::SOL_UDP, libc::UDP_SEGMENT, octets.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Entries<'_>)) -> Vec<u8> {
        let mut buf = [0xff; SEND_OCTETS];
        let mut entries = Entries::new(&mut buf);
        write(&mut entries);
        let len = entries.len();
        buf[..len].to_vec()
    }

    #[test]
    fn source_addresses_survive_the_round_trip() {
        let v4: IpAddr = "192.0.2.1".parse().expect("an address");
        assert_eq!(parse(&written(|out| out.source(v4, 3))).local, Some((v4, 0)), "routing decides");
        let v6: IpAddr = "2001:db8::1".parse().expect("an address");
        assert_eq!(parse(&written(|out| out.source(v6, 3))).local, Some((v6, 0)), "routing decides");
        let link_local: IpAddr = "fe80::1".parse().expect("an address");
        assert_eq!(parse(&written(|out| out.source(link_local, 3))).local, Some((link_local, 3)));
    }

    #[test]
    fn entries_that_do_not_fit_are_left_out() {
        let mut buf = [0; HEADER];
        let mut entries = Entries::new(&mut buf);
        entries.segment(512);
        assert_eq!(entries.len(), 0);
    }

    #[test]
    fn cut_and_senseless_entries_end_the_walk() {
        let whole = written(|out| {
            out.source(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
            out.segment(100);
        });
        for cut in 0..whole.len() {
            let _ = parse(&whole[..cut]);
        }
        let mut endless = whole;
        endless[..WORD].copy_from_slice(&0usize.to_ne_bytes());
        assert_eq!(parse(&endless), Ancillary::default());
        endless[..WORD].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(parse(&endless), Ancillary::default());
    }
}
