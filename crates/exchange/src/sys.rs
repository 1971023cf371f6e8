//! Batches of datagrams on connected sockets: `recvmmsg` and `sendmmsg`, behind types that cannot
//! be misused.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams per system call.
pub(crate) const BATCH: usize = 64;
/// Octets kept of one datagram. We announce 1,232; what is longer than this is asked for again over
/// TCP.
pub(crate) const DATAGRAM_OCTETS_MAX: usize = 2048;

/// Datagrams asked for when few come: a lone one then costs a few cache lines instead of a hundred.
const BATCH_MIN: usize = 8;

const NO_VECTOR: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

/// Room for one batch of received datagrams.
pub struct Inbox {
    buffers: Box<[[u8; DATAGRAM_OCTETS_MAX]]>,
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
    /// Returns one with room for a batch.
    pub fn new() -> Self {
        Self {
            buffers: vec![[0; DATAGRAM_OCTETS_MAX]; BATCH].into_boxed_slice(),
            received: [(0, false); BATCH],
            count: 0,
            wanted: BATCH_MIN,
        }
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
        // SAFETY: the first `room` of `headers` each have one vector over a buffer that we own
        // exclusively; all outlive the call, and there is no name, control or timeout pointer.
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

    /// Walks the datagrams of the last batch: octets, and whether some were cut off.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.buffers
            .iter()
            .zip(&self.received)
            .take(self.count)
            .map(|(buffer, &(len, cut))| (buffer.get(..usize::from(len)).unwrap_or(&[]), cut))
    }
}

/// Sends the datagrams that lie one after the other in `bytes`, ending at `ends`, without waiting.
///
/// Returns how many were sent. An error means that none was; if some were, the cause shows at the
/// next call.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], ends: &[u32]) -> io::Result<usize> {
    if ends.len() <= BATCH_MIN {
        send_up_to::<BATCH_MIN>(socket, bytes, ends)
    } else {
        send_up_to::<BATCH>(socket, bytes, ends)
    }
}

fn send_up_to<const N: usize>(socket: BorrowedFd<'_>, bytes: &[u8], ends: &[u32]) -> io::Result<usize> {
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
    // SAFETY: the first `count` of `headers` each have one vector over a part of `bytes`, which the
    // kernel only reads; all outlive the call, and there is no name or control pointer.
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
