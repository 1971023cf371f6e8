//! Batches of datagrams: `recvmmsg` and `sendmmsg`, behind types that cannot be misused.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Datagrams per system call.
pub(crate) const BATCH: usize = 64;
/// Octets kept of one datagram. We announce 1,232; what is longer than this is asked for again over
/// TCP.
pub(crate) const DATAGRAM_OCTETS_MAX: usize = 2048;

/// Datagrams asked for when few come: a lone one then costs a few cache lines instead of a hundred.
const BATCH_MIN: usize = 8;

const NO_VECTOR: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

/// An address as the kernel reads and writes it: `sockaddr_in` or `sockaddr_in6`, which is the
/// longer one.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct KernelAddress([u8; KERNEL_ADDRESS_OCTETS]);

const KERNEL_ADDRESS_OCTETS: usize = 28;
const _: () =
    assert!(size_of::<libc::sockaddr_in6>() == KERNEL_ADDRESS_OCTETS && size_of::<libc::sockaddr_in>() == 16);

impl KernelAddress {
    const NONE: Self = Self([0; KERNEL_ADDRESS_OCTETS]);

    /// Writes an address, and returns how many octets of it count.
    fn new(address: SocketAddr) -> (Self, u32) {
        let mut octets = [0; KERNEL_ADDRESS_OCTETS];
        let [p0, p1] = address.port().to_be_bytes();
        match address {
            SocketAddr::V4(address) => {
                let [f0, f1] = (libc::AF_INET as u16).to_ne_bytes();
                let [a, b, c, d] = address.ip().octets();
                for (room, octet) in octets.iter_mut().zip([f0, f1, p0, p1, a, b, c, d]) {
                    *room = octet;
                }
                (Self(octets), size_of::<libc::sockaddr_in>() as u32)
            }
            SocketAddr::V6(address) => {
                let [f0, f1] = (libc::AF_INET6 as u16).to_ne_bytes();
                let head = [f0, f1, p0, p1].into_iter().chain(address.flowinfo().to_ne_bytes());
                let all = head.chain(address.ip().octets()).chain(address.scope_id().to_ne_bytes());
                for (room, octet) in octets.iter_mut().zip(all) {
                    *room = octet;
                }
                (Self(octets), KERNEL_ADDRESS_OCTETS as u32)
            }
        }
    }

    /// Reads an address; `None` if it is of another family.
    fn read(&self) -> Option<SocketAddr> {
        let (&[f0, f1, p0, p1], rest) = self.0.split_first_chunk::<4>()?;
        let port = u16::from_be_bytes([p0, p1]);
        match i32::from(u16::from_ne_bytes([f0, f1])) {
            libc::AF_INET => Some((Ipv4Addr::from(*rest.first_chunk::<4>()?), port).into()),
            libc::AF_INET6 => Some((Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?), port).into()),
            _ => None,
        }
    }
}

/// Room for one batch of received datagrams.
pub struct Inbox {
    buffers: Box<[[u8; DATAGRAM_OCTETS_MAX]]>,
    /// Where each came from; nothing if nobody asks.
    sources: Box<[KernelAddress]>,
    /// Length of each received datagram, and whether some of it was cut off.
    received: [(u16, bool); BATCH],
    count: usize,
    /// Datagrams asked for at once: follows what came.
    wanted: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Inbox {
    /// Returns one with room for a batch from a connected socket.
    pub fn new() -> Self {
        Self {
            buffers: vec![[0; DATAGRAM_OCTETS_MAX]; BATCH].into_boxed_slice(),
            sources: Box::default(),
            received: [(0, false); BATCH],
            count: 0,
            wanted: BATCH_MIN,
        }
    }

    /// Returns one that keeps the sources of datagrams, too, for sockets that are not connected.
    pub fn with_sources() -> Self {
        Self { sources: vec![KernelAddress::NONE; BATCH].into_boxed_slice(), ..Self::new() }
    }

    /// Reads what has come, without waiting, and returns whether there may be more.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        self.count = 0;
        let wanted = self.wanted;
        self.count = if wanted <= BATCH_MIN {
            self.receive_up_to::<BATCH_MIN>(socket)?
        } else {
            self.receive_up_to::<BATCH>(socket)?
        };
        self.wanted = if self.count >= BATCH_MIN { BATCH } else { BATCH_MIN };
        Ok(self.count >= wanted)
    }

    fn receive_up_to<const N: usize>(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let mut vectors = [NO_VECTOR; N];
        // SAFETY: mmsghdr consists of integers and pointers, for all of which zero is a valid
        // value.
        let mut headers: [libc::mmsghdr; N] = unsafe { mem::zeroed() };
        let mut room = 0;
        for ((buffer, vector), header) in self.buffers.iter_mut().zip(&mut vectors).zip(&mut headers) {
            *vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: DATAGRAM_OCTETS_MAX };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            room += 1;
        }
        for (source, header) in self.sources.iter_mut().zip(&mut headers) {
            header.msg_hdr.msg_name = source.0.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = KERNEL_ADDRESS_OCTETS as _;
        }
        // SAFETY: the first `room` of `headers` each have one vector over a buffer that we own
        // exclusively, and no name or one of the length that is said, which we own likewise; all
        // outlive the call, and there is no control or timeout pointer.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                room,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (received, header) in self.received.iter_mut().zip(&headers).take(count) {
            let len = header.msg_len.min(DATAGRAM_OCTETS_MAX as u32) as u16;
            *received = (len, header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0);
        }
        Ok(count)
    }

    /// Forgets the last batch.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Walks the datagrams of the last batch with their sources, if those are kept: the source, the
    /// octets, and whether some were cut off.
    pub fn iter_with_sources(&self) -> impl Iterator<Item = (SocketAddr, &[u8], bool)> {
        let sources = self.sources.iter().map(KernelAddress::read);
        sources.zip(self.iter()).filter_map(|(source, (bytes, is_cut))| Some((source?, bytes, is_cut)))
    }

    /// Walks the datagrams of the last batch: octets, and whether some were cut off.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.buffers
            .iter()
            .zip(&self.received)
            .take(self.count)
            .map(|(buffer, &(len, cut))| (buffer.get(..usize::from(len)).unwrap_or(&[]), cut))
    }
}

/// Sends the datagrams that lie one after the other in `bytes`, ending at `ends`, without waiting:
/// each to its address in `to`, or, if that is empty, to where the socket is connected.
///
/// Returns how many were sent. An error means that none was; if some were, the cause shows at the
/// next call.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    ends: &[u32],
    to: &[SocketAddr],
) -> io::Result<usize> {
    match *ends {
        [end] => send_one(socket, bytes.get(..end as usize).unwrap_or(&[]), to.first()).map(|()| 1),
        _ if ends.len() <= BATCH_MIN => send_up_to::<BATCH_MIN>(socket, bytes, ends, to),
        _ => send_up_to::<BATCH>(socket, bytes, ends, to),
    }
}

/// Sends one datagram: what goes to an authoritative server nearly always leaves its socket alone,
/// and the kernel then has no headers to read.
fn send_one(socket: BorrowedFd<'_>, packet: &[u8], to: Option<&SocketAddr>) -> io::Result<()> {
    let name = to.map(|&to| KernelAddress::new(to));
    let (name, octets) =
        name.as_ref().map_or((std::ptr::null(), 0), |(name, octets)| (name.0.as_ptr(), *octets));
    // SAFETY: the packet is a slice, and the name is none or as long as is said; the kernel only
    // reads both.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            name.cast(),
            octets as _,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn send_up_to<const N: usize>(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    ends: &[u32],
    to: &[SocketAddr],
) -> io::Result<usize> {
    let mut names = [KernelAddress::NONE; N];
    let mut vectors = [NO_VECTOR; N];
    // SAFETY: mmsghdr consists of integers and pointers, for all of which zero is a valid value.
    let mut headers: [libc::mmsghdr; N] = unsafe { mem::zeroed() };
    let mut start = 0;
    let mut count = 0;
    for ((&end, vector), header) in ends.iter().zip(&mut vectors).zip(&mut headers) {
        let Some(packet) = bytes.get(start..end as usize) else { break };
        *vector = libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        start = end as usize;
        count += 1;
    }
    for ((address, name), header) in to.iter().zip(&mut names).zip(&mut headers) {
        let octets;
        (*name, octets) = KernelAddress::new(*address);
        header.msg_hdr.msg_name = name.0.as_mut_ptr().cast();
        header.msg_hdr.msg_namelen = octets as _;
    }
    // SAFETY: the first `count` of `headers` each have one vector over a part of `bytes`, and no
    // name or one of the length that is said; the kernel only reads both. All outlive the call, and
    // there is no control pointer.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Lets the runtime watch a socket. Must be called inside it.
pub(crate) fn watch(socket: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor stays open and the same for as long as its owner lives, and nobody
    // here asks for `&mut` access by which it could be exchanged.
    unsafe { AsyncFd::register_with_interest(socket, interest) }.map_err(io::Error::from)
}

/// Has datagrams over IPv4 leave with DF, whatever ICMP says about the path: each of our queries is
/// short enough for every path. For a datagram that may be cut on its way the kernel draws an ID.
///
/// Best effort: queries arrive without it.
pub(crate) fn forbid_fragments(socket: BorrowedFd<'_>) {
    #[cfg(target_os = "linux")]
    {
        let probe = libc::IP_PMTUDISC_PROBE;
        // SAFETY: the value is an integer that outlives the call, and its size is given.
        let _ = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_IP,
                libc::IP_MTU_DISCOVER,
                (&raw const probe).cast(),
                size_of_val(&probe) as libc::socklen_t,
            )
        };
    }
    let _ = socket;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for address in ["192.0.2.1:53", "[2001:db8::1]:5353", "[::ffff:192.0.2.1]:65535"] {
            let address: SocketAddr = address.parse().expect("an address");
            assert_eq!(KernelAddress::new(address).0.read(), Some(address));
        }
        assert_eq!(KernelAddress::NONE.read(), None);
    }
}
