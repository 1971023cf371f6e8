//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Batches of datagrams through `recvmmsg` and `sendmmsg`.

use std::ffi::c_void;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

use super::control::{self, Aligned, Entries, RECEIVE_OCTETS, SEND_OCTETS};
use super::{Local, Message, Received, SEND_RETRIES, Sent, Shape};

/// The most datagrams the kernel splits one message into (`UDP_MAX_SEGMENTS` of Linux before 6.9).
const SEGMENTS_MAX: usize = 64;

/// The most octets of one message, all its datagrams together: what fits an IPv4 packet after both headers.
const SEGMENTED_OCTETS_MAX: usize = 65_507;

/// Distance that keeps the beginnings of receive buffers from falling into the same cache set.
const STAGGER_OCTETS: usize = 64;

/// A fixed array that the kernel reads and writes through pointers we gave it earlier.
///
/// Held by pointer, not by `Box`: moving a `Box` would claim that nobody else points into it.
struct Fixed<T> {
    start: NonNull<T>,
    len: usize,
}

impl<T: Copy> Fixed<T> {
    // Once per worker.
    fn new(len: usize, value: T) -> Self {
        let start = Box::into_raw(vec![value; len].into_boxed_slice()).cast::<T>();
        // A box is never null; the fallback keeps this free of panics.
        Self { start: NonNull::new(start).unwrap_or(NonNull::dangling()), len }
    }

    /// Returns the address of element `index`.
    fn at(&self, index: usize) -> *mut T {
        debug_assert!(index <= self.len);
        self.start.as_ptr().wrapping_add(index)
    }

    /// Returns element `index`; `None` beyond the end.
    fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        // SAFETY: `index` is in bounds, every element was initialised by `new`, and the kernel writes only
        // inside `Inbox::receive`, which borrows the owner exclusively.
        Some(unsafe { &*self.at(index) })
    }

    /// Returns element `index` to change it; `None` beyond the end.
    fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len {
            return None;
        }
        // SAFETY: as in `get`; `&mut self` makes this the only reference.
        Some(unsafe { &mut *self.at(index) })
    }

    /// Returns `len` elements from `index`; `None` when they are not all there.
    fn slice(&self, index: usize, len: usize) -> Option<&[T]> {
        if index.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: the range is in bounds and initialised; see `get` for the kernel.
        Some(unsafe { std::slice::from_raw_parts(self.at(index), len) })
    }

    /// Returns `len` elements from `index` to change them; `None` when they are not all there.
    fn slice_mut(&mut self, index: usize, len: usize) -> Option<&mut [T]> {
        if index.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: as in `slice`; `&mut self` makes this the only reference.
        Some(unsafe { std::slice::from_raw_parts_mut(self.at(index), len) })
    }
}

impl<T> Drop for Fixed<T> {
    fn drop(&mut self) {
        let whole = ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len);
        // SAFETY: `new` got this pointer and length from a box, and nothing else frees it.
        drop(unsafe { Box::from_raw(whole) });
    }
}

/// A socket address as the kernel writes it: a `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct RawAddress([u8; 32]);

/// Octets of the two kinds.
const V4_OCTETS: libc::socklen_t = size_of::<libc::sockaddr_in>() as libc::socklen_t;
const V6_OCTETS: libc::socklen_t = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
const _: () = assert!(size_of::<libc::sockaddr_in6>() <= size_of::<RawAddress>());

impl RawAddress {
    const EMPTY: Self = Self([0; 32]);

    fn parse(&self) -> Option<SocketAddr> {
        let (&[f0, f1, p0, p1], rest) = self.0.split_first_chunk::<4>()?;
        let port = u16::from_be_bytes([p0, p1]);
        let (&[a, b, c, d], rest) = rest.split_first_chunk::<4>()?;
        match i32::from(u16::from_ne_bytes([f0, f1])) {
            libc::AF_INET => Some(SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port))),
            libc::AF_INET6 => {
                // The four octets above were the flow label, which replies need not repeat.
                let (address, rest) = rest.split_first_chunk::<16>()?;
                let scope = u32::from_ne_bytes(*rest.first_chunk::<4>()?);
                Some(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(*address), port, 0, scope)))
            }
            _ => None,
        }
    }

    /// Writes `address`; returns how many octets count.
    fn write(&mut self, address: &SocketAddr) -> libc::socklen_t {
        let [p0, p1] = address.port().to_be_bytes();
        match address {
            SocketAddr::V4(address) => {
                let [f0, f1] = (libc::AF_INET as libc::sa_family_t).to_ne_bytes();
                let [a, b, c, d] = address.ip().octets();
                if let Some(out) = self.0.first_chunk_mut::<16>() {
                    *out = [f0, f1, p0, p1, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0];
                }
                V4_OCTETS
            }
            SocketAddr::V6(address) => {
                let [f0, f1] = (libc::AF_INET6 as libc::sa_family_t).to_ne_bytes();
                if let Some((head, rest)) = self.0.split_first_chunk_mut::<8>()
                    && let Some((ip, rest)) = rest.split_first_chunk_mut::<16>()
                    && let Some(scope) = rest.first_chunk_mut::<4>()
                {
                    *head = [f0, f1, p0, p1, 0, 0, 0, 0];
                    *ip = address.ip().octets();
                    *scope = address.scope_id().to_ne_bytes();
                }
                V6_OCTETS
            }
        }
    }
}

const NO_HEADER: libc::mmsghdr = {
    // SAFETY: all of its fields are integers and pointers, for which zero is a value.
    unsafe { mem::zeroed() }
};

const NO_BUFFER: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };

/// Sets what a datagram socket needs for batches: where queries came to (`wildcard`), how many were lost,
/// fragments decided by the interface alone, coalescing. Returns whether coalescing is in effect.
pub(crate) fn prepare_datagrams(
    socket: BorrowedFd<'_>,
    v6: bool,
    wildcard: bool,
    coalesced: bool,
) -> io::Result<bool> {
    if wildcard {
        if v6 {
            set(socket, libc::SOL_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        } else {
            set(socket, libc::SOL_IP, libc::IP_PKTINFO, 1)?;
        }
    }
    // Best effort from here on: an old kernel lacks some of these, and answers are right without them.
    // A forged "fragmentation needed" must not make us fragment replies: second fragments can be replaced by
    // an attacker. OMIT ignores what ICMP says about the path.
    if v6 {
        let _ = set(socket, libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_OMIT);
    } else {
        let _ = set(socket, libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT);
    }
    Ok(coalesced && set(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok())
}

/// Asks for room in the kernel's queues, best effort: beyond the system's limits if we may, else up to them.
pub(crate) fn set_buffers(socket: BorrowedFd<'_>, receive_octets: usize, send_octets: usize) {
    for (forced, plain, octets) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, receive_octets),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, send_octets),
    ] {
        let octets = i32::try_from(octets).unwrap_or(i32::MAX / 2);
        if set(socket, libc::SOL_SOCKET, forced, octets).is_err() {
            let _ = set(socket, libc::SOL_SOCKET, plain, octets);
        }
    }
}

/// Returns how many datagrams the kernel has dropped since the socket was opened because they were not read in time.
///
/// A system call: asked now and then. `SO_RXQ_OVFL` would tell with each datagram, at 3 % of the cost of each.
pub(crate) fn lost(socket: BorrowedFd<'_>) -> Option<u32> {
    /// The option's number on all but two old architectures, which refuse it.
    const SO_MEMINFO: i32 = 55;
    /// Values the kernel knows (`SK_MEMINFO_VARS`).
    const VALUES: usize = libc::SK_MEMINFO_DROPS as usize + 1;
    let mut values = [0u32; VALUES];
    let mut len = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to `values`, which lives until the call returns, and the
    // octets written to `len`.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if done == 0 && len as usize == size_of_val(&values) { values.last().copied() } else { None }
}

fn set(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    let value = ptr::from_ref(&value).cast::<c_void>();
    // SAFETY: `value` points at a live `i32` and `len` is its size; the kernel only reads it.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives batches of datagrams. One per socket, for life.
pub(crate) struct Inbox {
    // The pointers inside `headers` and `buffers` lead to the arrays below, which are freed with them.
    headers: Fixed<libc::mmsghdr>,
    _buffers: Fixed<libc::iovec>,
    addresses: Fixed<RawAddress>,
    controls: Fixed<Aligned<RECEIVE_OCTETS>>,
    octets: Fixed<u8>,
    octets_each: usize,
    stride: usize,
    messages: usize,
    /// Octets of ancillary data asked for with each message.
    control_octets: usize,
    /// Messages of the batch at hand: their headers were written by the kernel.
    count: usize,
}

impl Inbox {
    pub(crate) fn new(shape: &Shape) -> Self {
        let messages = shape.messages.max(1);
        let octets_each = if shape.coalesced { 65_535 } else { shape.query_octets_max };
        let control_octets = if shape.coalesced || shape.addressed { RECEIVE_OCTETS } else { 0 };
        let stride = octets_each.next_multiple_of(STAGGER_OCTETS) + STAGGER_OCTETS;
        let mut headers = Fixed::new(messages, NO_HEADER);
        let mut buffers = Fixed::new(messages, NO_BUFFER);
        let addresses = Fixed::new(messages, RawAddress::EMPTY);
        let controls = Fixed::new(messages, Aligned([0; RECEIVE_OCTETS]));
        let octets = Fixed::new(messages * stride, 0u8);
        for index in 0..messages {
            let buffer = buffers.at(index);
            if let Some(buffer) = buffers.get_mut(index) {
                buffer.iov_base = octets.at(index * stride).cast();
                buffer.iov_len = octets_each;
            }
            if let Some(header) = headers.get_mut(index) {
                header.msg_hdr.msg_name = addresses.at(index).cast();
                header.msg_hdr.msg_namelen = V6_OCTETS;
                header.msg_hdr.msg_iov = buffer;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = controls.at(index).cast();
                header.msg_hdr.msg_controllen = control_octets as _;
            }
        }
        Self {
            headers,
            _buffers: buffers,
            addresses,
            controls,
            octets,
            octets_each,
            stride,
            messages,
            control_octets,
            count: 0,
        }
    }

    /// Returns how many messages one call receives at most.
    pub(crate) const fn capacity(&self) -> usize {
        self.messages
    }

    /// Receives what is there, up to a full batch; never waits.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        for index in 0..self.count {
            if let Some(header) = self.headers.get_mut(index) {
                header.msg_hdr.msg_namelen = V6_OCTETS;
                header.msg_hdr.msg_controllen = self.control_octets as _;
            }
        }
        self.count = 0;
        // SAFETY: the first `messages` headers point at buffers that `self` owns with exactly the lengths given,
        // nothing else refers to them during the call, and there is no timeout to point at.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.at(0),
                self.messages as _,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let Ok(count) = usize::try_from(received) else { return Err(io::Error::last_os_error()) };
        self.count = count.min(self.messages);
        Ok(self.count)
    }

    /// Returns message `index` of the batch; `None` beyond its end.
    pub(crate) fn message(&self, index: usize) -> Option<Received<'_>> {
        if index >= self.count {
            return None;
        }
        let header = self.headers.get(index)?;
        let len = (header.msg_len as usize).min(self.octets_each);
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return Some(Received::Unusable);
        }
        let Some(peer) = self.addresses.get(index)?.parse() else { return Some(Received::Unusable) };
        let bytes = self.octets.slice(index * self.stride, len)?;
        let (local, datagram_octets) = if header.msg_hdr.msg_controllen == 0 {
            (None, len)
        } else {
            let ancillary = self.ancillary(index, header);
            (ancillary.local, ancillary.datagram_octets.unwrap_or(len))
        };
        Some(Received::Message(Message { bytes, peer, local, datagram_octets }))
    }

    fn ancillary(&self, index: usize, header: &libc::mmsghdr) -> control::Ancillary {
        let len = control_octets(header);
        let bytes = self.controls.get(index).and_then(|control| control.0.get(..len));
        bytes.map_or_else(Default::default, control::parse)
    }
}

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
/// With segments, a reply joins a run of its client that has its size, or ends the client's latest run if that is of
/// longer ones. Replies of one batch thereby overtake each other, as they may on the network.
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
    segmented: bool,
    /// By a hash of the client and the size of its replies: their latest run, counted from one. Under size 0 the client's
    /// latest of all.
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

    /// Adds a reply to a run, if it goes the same way and has the same size (or ends the run by being shorter).
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
    fn seal(&mut self) {
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
        // SAFETY: `count` headers from `index` were filled by `seal`; their pointers lead into arrays that
        // `self` owns, with lengths inside them, and nothing changes them during the call.
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

    /// Deals with a message the kernel refused: several replies are sent one by one, a single one is dropped.
    #[cold]
    fn send_apart(&mut self, socket: BorrowedFd<'_>, index: usize, error: &io::Error, sent: &mut Sent) {
        let Some(run) = self.runs.get(index).copied() else { return };
        if run.replies < 2 {
            sent.dropped += u64::from(run.replies);
            return;
        }
        // EIO: the interface cannot checksum what it splits. EINVAL, EOPNOTSUPP: the kernel knows no segments.
        // Neither will change. EMSGSIZE concerns this size only.
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
    fn queued(&self, index: usize) -> Option<(u32, u16)> {
        (index < self.runs_len).then_some(())?;
        self.runs.get(index).map(|run| (run.octets, run.replies))
    }
}

/// Returns where the latest run of a client's replies of a size is looked for. Those that meet there only miss each other's
/// company.
fn place(peer: &SocketAddr, len: usize) -> usize {
    let address = match peer.ip() {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address.to_bits() as u32,
    };
    let mixed = (address ^ u32::from(peer.port()).rotate_left(16)).wrapping_mul(0x9e37_79b1);
    let mixed = (mixed ^ len as u32).wrapping_mul(0x9e37_79b1);
    (mixed >> 25) as usize % PLACES
}

/// Returns how many octets of ancillary data a message has.
#[allow(clippy::unnecessary_cast, reason = "some C libraries have a narrower field")]
fn control_octets(header: &libc::mmsghdr) -> usize {
    header.msg_hdr.msg_controllen as usize
}

/// Whether the same call may succeed a moment later.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    const SHAPE: Shape = Shape {
        messages: 4,
        query_octets_max: 100,
        reply_octets_max: 200,
        addressed: false,
        coalesced: false,
        segmented: true,
    };

    fn socket(address: &str) -> UdpSocket {
        UdpSocket::bind(address).expect("loopback has free ports")
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
        let (first, second) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
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
        let (first, second) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        let (to_first, to_second) = (first.local_addr().expect("bound"), second.local_addr().expect("bound"));
        let places = [&to_first, &to_second].map(|to| [place(to, 0), place(to, 2), place(to, 6)]).concat();
        if (1..places.len()).any(|at| places[at..].contains(&places[at - 1])) {
            return;
        }
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
        prepare_datagrams(server.as_fd(), false, true, false).expect("Linux has packet information");
        let port = server.local_addr().expect("bound").port();
        client.send_to(b"hello", ("127.0.0.9", port)).expect("sent");
        let mut inbox = Inbox::new(&Shape { addressed: true, ..SHAPE });
        inbox.receive(server.as_fd()).expect("received");
        let Some(Received::Message(message)) = inbox.message(0) else { panic!("a message") };
        assert_eq!(message.local.map(|(address, _)| address.to_string()), Some("127.0.0.9".to_owned()));
        assert_eq!(message.datagram_octets, 5);
    }

    #[test]
    fn coalesced_datagrams_say_their_size() {
        let (server, client) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        if !prepare_datagrams(server.as_fd(), false, false, true).expect("prepared") {
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
