//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Collects replies and sends them in batches through `sendmmsg`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::address::RawAddress;
use super::memory::Fixed;
use super::{NO_BUFFER, NO_HEADER, control_octets};
use crate::sys::control::{self, Aligned, Entries, SEND_OCTETS};
use crate::sys::{Local, SEND_RETRIES, Sent, Shape};

/// The most datagrams the kernel splits one message into (`UDP_MAX_SEGMENTS` of Linux before 6.9).
const SEGMENTS_MAX: usize = 64;

/// The most octets of one message, all its datagrams together: what fits an IPv4 packet after both
/// headers.
const SEGMENTED_OCTETS_MAX: usize = 65_507;

/// Replies to one client that leave as one message.
#[derive(Clone, Copy)]
struct Run {
    peer: SocketAddr,
    local: Local,
    /// Replies in it.
    replies: u16,
    /// Stretches of the arena they lie in.
    pieces: u16,
    /// Octets of each reply but the last.
    segment_octets: u16,
    /// Whether a reply shorter than the others ended it.
    is_closed: bool,
    /// Octets of all.
    octets: u32,
    /// Where its entries among the buffers begin; known when it is sent.
    buffers_at: u16,
}

const NO_RUN: Run = Run {
    peer: SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)),
    local: None,
    replies: 0,
    pieces: 0,
    segment_octets: 0,
    is_closed: true,
    octets: 0,
    buffers_at: 0,
};

/// A stretch of the arena: whole replies of one run, back to back.
#[derive(Clone, Copy)]
struct Piece {
    run: u16,
    at: u32,
    octets: u32,
}

/// Stretches per message, on average, before a batch is full.
const PIECES_PER_MESSAGE: usize = 4;

/// Places where runs that a reply may join are looked for.
const PLACES: usize = 128;

/// Collects replies, packed back to back, and sends them in batches. One per socket, for life.
///
/// With segments, a reply joins a run of its client that has its size, or ends the client's latest
/// run if that is of longer ones. Replies of one batch thereby overtake each other, as they may on
/// the network.
pub(crate) struct Outbox {
    headers: Fixed<libc::mmsghdr>,
    buffers: Fixed<libc::iovec>,
    addresses: Fixed<RawAddress>,
    controls: Fixed<Aligned<SEND_OCTETS>>,
    runs: Fixed<Run>,
    pieces: Fixed<Piece>,
    octets: Fixed<u8>,
    used: usize,
    runs_len: usize,
    pieces_len: usize,
    reply_octets_max: usize,
    pub(super) segmented: bool,
    /// By a hash of the client and the size of its replies: their latest run, counted from one.
    /// Under size 0 the client's latest of all.
    latest: [u16; PLACES],
}

impl Outbox {
    pub(crate) fn new(shape: &Shape) -> Self {
        let messages = shape.messages.clamp(1, 1024);
        let mut headers = Fixed::new(messages, NO_HEADER);
        let addresses = Fixed::new(messages, RawAddress::EMPTY);
        for index in 0..messages {
            if let Some(header) = headers.get_mut(index) {
                header.msg_hdr.msg_name = addresses.at(index).cast();
            }
        }
        Self {
            headers,
            buffers: Fixed::new(messages * PIECES_PER_MESSAGE, NO_BUFFER),
            addresses,
            controls: Fixed::new(messages, Aligned([0; SEND_OCTETS])),
            runs: Fixed::new(messages, NO_RUN),
            pieces: Fixed::new(messages * PIECES_PER_MESSAGE, Piece { run: 0, at: 0, octets: 0 }),
            octets: Fixed::new(messages * shape.reply_octets_max, 0u8),
            used: 0,
            runs_len: 0,
            pieces_len: 0,
            reply_octets_max: shape.reply_octets_max,
            segmented: shape.segmented,
            latest: [0; PLACES],
        }
    }

    /// Returns whether replies must be sent before there is room for another.
    pub(crate) const fn is_full(&self) -> bool {
        self.runs_len == self.runs.len
            || self.pieces_len == self.pieces.len
            || self.used + self.reply_octets_max > self.octets.len
    }

    /// Returns whether nothing is queued.
    pub(crate) const fn is_empty(&self) -> bool {
        self.runs_len == 0
    }

    /// Returns room for the next reply; empty when full.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.is_full() {
            return &mut [];
        }
        self.octets.slice_mut(self.used, self.reply_octets_max).unwrap_or(&mut [])
    }

    /// Queues the first `len` octets of [`Outbox::room`] for `peer`, to leave from `local`.
    pub(crate) fn push(&mut self, len: usize, peer: &SocketAddr, local: &Local) {
        if self.is_full() || len == 0 || len > self.reply_octets_max {
            return;
        }
        if self.segmented {
            let places = [place(peer, len), place(peer, 0)];
            for place in places {
                let latest = self.latest.get(place).copied().map_or(0, usize::from);
                if latest > 0 && self.join(latest - 1, len, peer, local) {
                    self.used += len;
                    return;
                }
            }
            for place in places {
                if let Some(latest) = self.latest.get_mut(place) {
                    *latest = self.runs_len as u16 + 1;
                }
            }
        }
        let index = self.runs_len;
        let (Some(run), Some(piece)) = (self.runs.get_mut(index), self.pieces.get_mut(self.pieces_len))
        else {
            return;
        };
        *run = Run {
            peer: *peer,
            local: *local,
            replies: 1,
            pieces: 1,
            segment_octets: len as u16,
            is_closed: false,
            octets: len as u32,
            buffers_at: 0,
        };
        *piece = Piece { run: index as u16, at: self.used as u32, octets: len as u32 };
        self.runs_len += 1;
        self.pieces_len += 1;
        self.used += len;
    }

    /// Adds a reply to a run, if it goes the same way and has the same size (or ends the run by
    /// being shorter).
    fn join(&mut self, index: usize, len: usize, peer: &SocketAddr, local: &Local) -> bool {
        let Some(run) = self.runs.get_mut(index) else { return false };
        let octets = run.octets as usize + len;
        let fits = !run.is_closed
            && len <= usize::from(run.segment_octets)
            && usize::from(run.replies) < SEGMENTS_MAX
            && octets <= SEGMENTED_OCTETS_MAX
            && run.peer == *peer
            && run.local == *local;
        if !fits {
            return false;
        }
        run.is_closed = len < usize::from(run.segment_octets);
        run.replies += 1;
        run.octets = octets as u32;
        // The last piece ends where this reply begins; if it is of the same run, it simply grows.
        let newest = self.pieces_len.checked_sub(1).and_then(|newest| self.pieces.get_mut(newest));
        if let Some(piece) = newest.filter(|piece| usize::from(piece.run) == index) {
            piece.octets += len as u32;
            return true;
        }
        run.pieces += 1;
        if let Some(piece) = self.pieces.get_mut(self.pieces_len) {
            *piece = Piece { run: index as u16, at: self.used as u32, octets: len as u32 };
        }
        self.pieces_len += 1;
        true
    }

    /// Sends everything that is queued. What the kernel does not take is dropped and counted.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>) -> Sent {
        let mut sent = Sent::default();
        self.seal();
        let mut at = 0;
        let mut retries = SEND_RETRIES;
        // Every turn sends or drops a message, or uses up a retry.
        while at < self.runs_len {
            match self.send_from(socket, at, self.runs_len - at) {
                Ok(done) => {
                    for index in at..at + done {
                        let replies = self.runs.get(index).map_or(1, |run| run.replies);
                        sent.replies += u64::from(replies);
                        sent.grouped += u64::from(replies > 1);
                    }
                    at += done;
                }
                Err(error) if is_passing(&error) => {
                    if retries == 0 {
                        for index in at..self.runs_len {
                            sent.dropped += self.runs.get(index).map_or(1, |run| u64::from(run.replies));
                        }
                        break;
                    }
                    retries -= 1;
                }
                Err(error) => {
                    self.send_apart(socket, at, &error, &mut sent);
                    at += 1;
                }
            }
        }
        self.runs_len = 0;
        self.pieces_len = 0;
        self.used = 0;
        if self.segmented {
            self.latest.fill(0);
        }
        sent
    }

    /// Writes the message headers.
    pub(super) fn seal(&mut self) {
        let mut buffers_at = 0;
        for index in 0..self.runs_len {
            let Some(run) = self.runs.get_mut(index) else { return };
            run.buffers_at = buffers_at;
            buffers_at += run.pieces;
            let run = *run;
            let buffers = self.buffers.at(usize::from(run.buffers_at));
            let control = self.controls.at(index);
            let Some(address) = self.addresses.get_mut(index) else { return };
            let address_octets = address.write(&run.peer);
            let Some(buf) = self.controls.get_mut(index) else { return };
            let mut entries = Entries::new(&mut buf.0);
            if let Some((address, interface)) = run.local {
                entries.source(address, interface);
            }
            if run.replies > 1 {
                entries.segment(run.segment_octets);
            }
            let control_octets = entries.len();
            let Some(header) = self.headers.get_mut(index) else { return };
            header.msg_hdr.msg_namelen = address_octets;
            header.msg_hdr.msg_iov = buffers;
            header.msg_hdr.msg_iovlen = usize::from(run.pieces) as _;
            header.msg_hdr.msg_control = if control_octets == 0 { ptr::null_mut() } else { control.cast() };
            header.msg_hdr.msg_controllen = control_octets as _;
        }
        for index in 0..self.pieces_len {
            let Some(piece) = self.pieces.get(index).copied() else { return };
            let Some(run) = self.runs.get_mut(usize::from(piece.run)) else { return };
            let place = usize::from(run.buffers_at);
            run.buffers_at += 1;
            let base = self.octets.at(piece.at as usize);
            if let Some(buffer) = self.buffers.get_mut(place) {
                buffer.iov_base = base.cast();
                buffer.iov_len = piece.octets as usize;
            }
        }
    }

    fn send_from(&mut self, socket: BorrowedFd<'_>, index: usize, count: usize) -> io::Result<usize> {
        debug_assert!(index + count <= self.runs.len);
        // SAFETY: `count` headers from `index` were filled by `seal`; their pointers lead into
        // arrays that `self` owns, with lengths inside them, and nothing changes them during the
        // call.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                self.headers.at(index),
                count as _,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        match usize::try_from(sent) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Ok(sent) => Ok(sent.min(count)),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Deals with a message the kernel refused: several replies are sent one by one, a single one
    /// is dropped.
    #[cold]
    pub(super) fn send_apart(
        &mut self,
        socket: BorrowedFd<'_>,
        index: usize,
        error: &io::Error,
        sent: &mut Sent,
    ) {
        let Some(run) = self.runs.get(index).copied() else { return };
        if run.replies < 2 {
            sent.dropped += u64::from(run.replies);
            return;
        }
        // EIO: the interface cannot checksum what it splits. EINVAL, EOPNOTSUPP: the kernel knows
        // no segments. Neither will change. EMSGSIZE concerns this size only.
        if error.raw_os_error() != Some(libc::EMSGSIZE) {
            self.segmented = false;
        }
        let Some(header) = self.headers.get_mut(index) else { return };
        let source_octets = control_octets(header).saturating_sub(control::SEGMENT_OCTETS);
        header.msg_hdr.msg_controllen = source_octets as _;
        if source_octets == 0 {
            header.msg_hdr.msg_control = ptr::null_mut();
        }
        header.msg_hdr.msg_iovlen = 1;
        // The run's own first entry among the buffers serves for each reply in turn.
        let place = usize::from(run.buffers_at - run.pieces);
        for piece in 0..self.pieces_len {
            let Some(piece) = self.pieces.get(piece).copied() else { return };
            if usize::from(piece.run) != index {
                continue;
            }
            let end = (piece.at + piece.octets) as usize;
            let mut at = piece.at as usize;
            while at < end {
                let len = (end - at).min(usize::from(run.segment_octets));
                let base = self.octets.at(at);
                if let Some(buffer) = self.buffers.get_mut(place) {
                    buffer.iov_base = base.cast();
                    buffer.iov_len = len;
                }
                match self.send_from(socket, index, 1) {
                    Ok(_) => sent.replies += 1,
                    Err(_) => sent.dropped += 1,
                }
                at += len;
            }
        }
    }

    /// Returns the octets queued for message `index` and how many replies they are.
    #[cfg(test)]
    pub(super) fn queued(&self, index: usize) -> Option<(u32, u16)> {
        (index < self.runs_len).then_some(())?;
        self.runs.get(index).map(|run| (run.octets, run.replies))
    }
}

/// Returns where the latest run of a client's replies of a size is looked for. Those that meet
/// there only miss each other's company.
pub(super) fn place(peer: &SocketAddr, len: usize) -> usize {
    let address = match peer.ip() {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address.to_bits() as u32,
    };
    let mixed = (address ^ u32::from(peer.port()).rotate_left(16)).wrapping_mul(0x9e37_79b1);
    let mixed = (mixed ^ len as u32).wrapping_mul(0x9e37_79b1);
    (mixed >> 25) as usize % PLACES
}

/// Whether the same call may succeed a moment later.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR | libc::ENOMEM))
}
