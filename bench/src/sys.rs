//! The few system calls the standard library does not have: batches of datagrams, cores, process
//! clocks.
//!
//! Every `unsafe` block of this crate is here, wrapped at once in a function that cannot be
//! misused.

use std::fs::File;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::rival::Signal;

/// Control octets kept per datagram: room for one `cmsghdr` with an `in6_pktinfo`.
const CONTROL_OCTETS: usize = 40;

/// Lets this process, and those it starts, have as many descriptors as the system allows.
pub fn raise_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a pointer to a structure that lives until they return.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Whether a call may wait for the first datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Wait for one datagram, then take what else is there.
    ForOne,
    /// Take only what is there.
    Not,
}

/// A fixed set of datagram buffers with their addresses, for `recvmmsg` and `sendmmsg`.
///
/// Nothing is allocated after [`Batch::new`]; the raw pointers in `headers` point into the other
/// fields' heap blocks, which are never resized.
pub struct Batch {
    headers: Vec<libc::mmsghdr>,
    iovecs: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_storage>,
    control: Vec<[u64; CONTROL_OCTETS / 8]>,
    buffers: Vec<u8>,
    size: usize,
}

impl Batch {
    /// Makes room for `count` datagrams of at most `size` octets.
    pub fn new(count: usize, size: usize) -> Self {
        // SAFETY: all three are plain C structures for which zero octets are a valid value.
        let (header, name, iovec) = unsafe { (zeroed(), zeroed(), zeroed()) };
        let mut batch = Self {
            headers: vec![header; count],
            iovecs: vec![iovec; count],
            names: vec![name; count],
            control: vec![[0; CONTROL_OCTETS / 8]; count],
            buffers: vec![0; count * size],
            size,
        };
        for i in 0..count {
            batch.iovecs[i].iov_base = batch.buffers[i * size..].as_mut_ptr().cast();
            let header = &mut batch.headers[i].msg_hdr;
            header.msg_iov = &raw mut batch.iovecs[i];
            header.msg_iovlen = 1;
        }
        batch
    }

    /// Returns how many datagrams it holds at most.
    pub fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Receives up to `limit` datagrams with their senders' addresses; returns how many came.
    pub fn receive(&mut self, socket: &UdpSocket, limit: usize, wait: Wait) -> io::Result<usize> {
        self.receive_with(socket, limit, wait, false)
    }

    /// Like [`Batch::receive`], and asks for the segment size of coalesced datagrams (`UDP_GRO`).
    pub fn receive_coalesced(&mut self, socket: &UdpSocket, limit: usize, wait: Wait) -> io::Result<usize> {
        self.receive_with(socket, limit, wait, true)
    }

    /// Like [`Batch::receive`], and asks where each datagram was sent to.
    pub fn receive_with_destinations(&mut self, socket: &UdpSocket, limit: usize) -> io::Result<usize> {
        self.receive_with(socket, limit, Wait::Not, true)
    }

    fn receive_with(&mut self, socket: &UdpSocket, limit: usize, wait: Wait, gro: bool) -> io::Result<usize> {
        let limit = limit.min(self.capacity());
        for i in 0..limit {
            self.iovecs[i].iov_len = self.size;
            let header = &mut self.headers[i].msg_hdr;
            header.msg_name = (&raw mut self.names[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_control = if gro { self.control[i].as_mut_ptr().cast() } else { std::ptr::null_mut() };
            header.msg_controllen = if gro { CONTROL_OCTETS } else { 0 };
        }
        let flags = if wait == Wait::ForOne { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        // SAFETY: `headers[..limit]` point to buffers, addresses and control blocks that this value
        // owns and that are as long as the headers say.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                limit as libc::c_uint,
                flags,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                // A connected socket reports an earlier ICMP error here; the datagram that caused
                // it is lost.
                io::ErrorKind::ConnectionRefused => Ok(0),
                _ => Err(error),
            };
        }
        Ok(got as usize)
    }

    /// Returns the octets received as datagram `i`.
    pub fn received(&mut self, i: usize) -> &mut [u8] {
        let len = (self.headers[i].msg_len as usize).min(self.size);
        &mut self.buffers[i * self.size..i * self.size + len]
    }

    /// Returns the size of the segments in datagram `i` if the kernel coalesced several.
    pub fn segment_size(&self, i: usize) -> Option<u16> {
        let header = &self.headers[i].msg_hdr;
        // SAFETY: the kernel wrote `msg_controllen` octets of well-formed control messages into
        // `control[i]`, and the CMSG functions stay within that length.
        unsafe {
            let mut message = libc::CMSG_FIRSTHDR(header);
            while !message.is_null() {
                if (*message).cmsg_level == libc::SOL_UDP && (*message).cmsg_type == libc::UDP_GRO {
                    let size = libc::CMSG_DATA(message).cast::<libc::c_int>().read_unaligned();
                    return u16::try_from(size).ok();
                }
                message = libc::CMSG_NXTHDR(header, message);
            }
        }
        None
    }

    /// Returns where datagram `i` was sent to, if it was asked for.
    pub fn destination(&self, i: usize) -> Option<IpAddr> {
        let header = &self.headers[i].msg_hdr;
        // SAFETY: as in `segment_size`; the data of both messages is a structure of its kind.
        unsafe {
            let mut message = libc::CMSG_FIRSTHDR(header);
            while !message.is_null() {
                let data = libc::CMSG_DATA(message);
                match ((*message).cmsg_level, (*message).cmsg_type) {
                    (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                        let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                        return Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
                    }
                    (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                        let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                        return Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                    }
                    _ => message = libc::CMSG_NXTHDR(header, message),
                }
            }
        }
        None
    }

    /// Says that datagram `i`, addressed already, leaves from an address of ours.
    pub fn send_from(&mut self, i: usize, source: IpAddr) {
        let header = &mut self.headers[i].msg_hdr;
        header.msg_control = self.control[i].as_mut_ptr().cast();
        // SAFETY: the control block takes the larger of both messages, whose lengths are set before
        // they are looked for.
        unsafe {
            match source {
                IpAddr::V4(address) => {
                    let mut info: libc::in_pktinfo = zeroed();
                    info.ipi_spec_dst.s_addr = u32::from_ne_bytes(address.octets());
                    put_control(header, (libc::IPPROTO_IP, libc::IP_PKTINFO), info);
                }
                IpAddr::V6(address) => {
                    let mut info: libc::in6_pktinfo = zeroed();
                    info.ipi6_addr.s6_addr = address.octets();
                    put_control(header, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), info);
                }
            }
        }
    }

    /// Returns the whole buffer of datagram `i`, to be filled before a send.
    pub fn buffer(&mut self, i: usize) -> &mut [u8] {
        &mut self.buffers[i * self.size..(i + 1) * self.size]
    }

    /// Says that the first `len` octets of buffer `i` go to the peer the socket is connected to.
    pub fn address_to_peer(&mut self, i: usize, len: usize) {
        self.iovecs[i].iov_len = len.min(self.size);
        let header = &mut self.headers[i].msg_hdr;
        header.msg_name = std::ptr::null_mut();
        header.msg_namelen = 0;
        header.msg_control = std::ptr::null_mut();
        header.msg_controllen = 0;
    }

    /// Says that the first `len` octets of buffer `i` go back to whoever sent datagram `i` of
    /// `from`.
    pub fn address_back(&mut self, i: usize, len: usize, from: &Self, sender: usize) {
        self.iovecs[i].iov_len = len.min(self.size);
        self.names[i] = from.names[sender];
        let header = &mut self.headers[i].msg_hdr;
        header.msg_name = (&raw mut self.names[i]).cast();
        header.msg_namelen = from.headers[sender].msg_hdr.msg_namelen;
        header.msg_control = std::ptr::null_mut();
        header.msg_controllen = 0;
    }

    /// Says that datagram `i` goes back as it lies in its buffer.
    pub fn address_in_place(&mut self, i: usize) {
        self.iovecs[i].iov_len = self.headers[i].msg_len as usize;
        let header = &mut self.headers[i].msg_hdr;
        header.msg_control = std::ptr::null_mut();
        header.msg_controllen = 0;
    }

    /// Returns the sender of datagram `i`, to be given to [`Batch::address_to`] later.
    pub fn sender(&self, i: usize) -> Sender {
        Sender { name: self.names[i], len: self.headers[i].msg_hdr.msg_namelen }
    }

    /// Says that the first `len` octets of buffer `i` go to `sender`.
    pub fn address_to(&mut self, i: usize, len: usize, sender: &Sender) {
        self.iovecs[i].iov_len = len.min(self.size);
        self.names[i] = sender.name;
        let header = &mut self.headers[i].msg_hdr;
        header.msg_name = (&raw mut self.names[i]).cast();
        header.msg_namelen = sender.len;
        header.msg_control = std::ptr::null_mut();
        header.msg_controllen = 0;
    }

    /// Sends the first `count` datagrams; returns how many the kernel took.
    pub fn send(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        send_headers(socket, &mut self.headers[..count.min(self.names.len())])
    }
}

/// Makes `data` the one control message of `header`.
///
/// # Safety
///
/// `msg_control` leads to [`CONTROL_OCTETS`] octets, in which a message with `data` has room.
unsafe fn put_control<T>(header: &mut libc::msghdr, (level, kind): (libc::c_int, libc::c_int), data: T) {
    // SAFETY: `CMSG_SPACE` and `CMSG_LEN` only compute; the rest is what the caller promises.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(size_of::<T>() as u32) as usize;
        let message = libc::CMSG_FIRSTHDR(header);
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<T>() as u32) as usize;
        libc::CMSG_DATA(message).cast::<T>().write_unaligned(data);
    }
}

/// Hands `headers` to `sendmmsg` until all are gone or the kernel takes no more.
fn send_headers(socket: &UdpSocket, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
    let mut done = 0;
    while done < headers.len() {
        let rest = &mut headers[done..];
        // SAFETY: each header points to octets, an address and control data that its owner keeps
        // alive and unchanged during the call.
        let sent =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as libc::c_uint, 0) };
        if sent < 0 {
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::WouldBlock => break,
                // The error belongs to an earlier datagram; this one has not been tried.
                io::ErrorKind::ConnectionRefused => {
                    done += 1;
                    continue;
                }
                _ => return Err(error),
            }
        }
        done += sent as usize;
    }
    Ok(done)
}

/// Where a datagram came from.
#[derive(Clone, Copy)]
pub struct Sender {
    name: libc::sockaddr_storage,
    len: libc::socklen_t,
}

/// Replies that share address and size, each group sent as one `UDP_SEGMENT` datagram.
pub struct Grouped {
    headers: Vec<libc::mmsghdr>,
    iovecs: Vec<Vec<libc::iovec>>,
    control: Vec<[u64; CONTROL_OCTETS / 8]>,
    groups: Vec<Group>,
}

/// One send: where it goes, and what it holds so far.
#[derive(Clone, Copy)]
struct Group {
    head: usize,
    held: usize,
    segment: usize,
}

/// Segments one send may have (the kernel's `UDP_MAX_SEGMENTS` was 64 before Linux 6.10).
const SEGMENTS_MAX: usize = 64;
/// Payload octets one send may have, below the 65,507 of an IPv4 datagram.
const SEGMENTED_OCTETS_MAX: usize = 65_000;

impl Grouped {
    /// Makes room for batches of `count` datagrams.
    pub fn new(count: usize) -> Self {
        // SAFETY: zero octets are a valid value of this plain C structure.
        let header = unsafe { zeroed() };
        Self {
            headers: vec![header; count],
            iovecs: (0..count).map(|_| Vec::with_capacity(SEGMENTS_MAX)).collect(),
            control: vec![[0; CONTROL_OCTETS / 8]; count],
            groups: Vec::with_capacity(count),
        }
    }

    /// Sends the first `count` datagrams of `batch` back to their senders as they lie in their
    /// buffers.
    pub fn send_back(&mut self, socket: &UdpSocket, batch: &mut Batch, count: usize) -> io::Result<()> {
        self.groups.clear();
        for i in 0..count {
            let len = batch.headers[i].msg_len as usize;
            let segment = batch.segment_size(i).map_or(len, usize::from).max(1);
            let segments = len.div_ceil(segment);
            // A group can only grow by whole segments of its own size.
            let home = self.groups.iter().position(|group| {
                group.segment == segment
                    && group.held % segment == 0
                    && group.held / segment + segments <= SEGMENTS_MAX
                    && group.held + len <= SEGMENTED_OCTETS_MAX
                    && same_address(&batch.names[group.head], &batch.names[i])
            });
            let g = home.unwrap_or(self.groups.len());
            if g == self.groups.len() {
                self.groups.push(Group { head: i, held: 0, segment });
                self.iovecs[g].clear();
            }
            self.groups[g].held += len;
            self.iovecs[g].push(libc::iovec { iov_base: batch.iovecs[i].iov_base, iov_len: len });
        }
        for (g, group) in self.groups.iter().enumerate() {
            let header = &mut self.headers[g].msg_hdr;
            header.msg_name = (&raw mut batch.names[group.head]).cast();
            header.msg_namelen = batch.headers[group.head].msg_hdr.msg_namelen;
            header.msg_iov = self.iovecs[g].as_mut_ptr();
            header.msg_iovlen = self.iovecs[g].len();
            if group.held > group.segment {
                header.msg_control = self.control[g].as_mut_ptr().cast();
                // SAFETY: a header and a `u16` take 24 of the control block's 40 octets.
                unsafe { put_control(header, (libc::SOL_UDP, libc::UDP_SEGMENT), group.segment as u16) };
            } else {
                header.msg_control = std::ptr::null_mut();
                header.msg_controllen = 0;
            }
        }
        send_headers(socket, &mut self.headers[..self.groups.len()]).map(|_| ())
    }
}

/// Compares family, port and address; the rest of both is zero or equal for IPv4 and IPv6.
fn same_address(a: &libc::sockaddr_storage, b: &libc::sockaddr_storage) -> bool {
    if a.ss_family != b.ss_family {
        return false;
    }
    let octets = if i32::from(a.ss_family) == libc::AF_INET { 8 } else { size_of::<libc::sockaddr_in6>() };
    // SAFETY: both are at least `octets` long and plain octets.
    unsafe {
        std::slice::from_raw_parts((&raw const *a).cast::<u8>(), octets)
            == std::slice::from_raw_parts((&raw const *b).cast::<u8>(), octets)
    }
}

/// Sets an integer socket option.
fn set_option(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the option value is one `int` that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Asks for receive and send buffers of `octets`; the kernel may give less.
pub fn set_buffers(socket: &UdpSocket, octets: i32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, octets)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, octets)
}

/// Lets the kernel choose the local port at connect, when it knows the peer, and not at bind.
pub fn choose_port_late(socket: &impl AsRawFd) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Lets the kernel hand over several datagrams of one sender as one.
pub fn enable_gro(socket: &UdpSocket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Lets the kernel say where each datagram was sent to, and replies leave from there.
pub fn tell_destinations(socket: &UdpSocket) -> io::Result<()> {
    match socket.local_addr()? {
        SocketAddr::V4(_) => set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        SocketAddr::V6(_) => {
            // Over IPv6 a route does not make an address ours.
            set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_FREEBIND, 1)?;
            set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
        }
    }
}

/// Waits until `socket` can be read or `timeout` is over.
pub fn wait_readable(socket: &UdpSocket, timeout: Duration) -> io::Result<bool> {
    let mut descriptor = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let timeout = timespec(timeout);
    // SAFETY: one descriptor, one timeout, both valid during the call.
    let ready = unsafe { libc::ppoll(&raw mut descriptor, 1, &raw const timeout, std::ptr::null()) };
    match ready {
        0 => Ok(false),
        1.. => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}

fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: duration.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(duration.subsec_nanos() as i32),
    }
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Something to read.
    Read,
    /// Something to read, or room to write.
    ReadAndWrite,
}

impl Interest {
    const fn flags(self) -> u32 {
        match self {
            Self::Read => libc::EPOLLIN as u32,
            Self::ReadAndWrite => (libc::EPOLLIN | libc::EPOLLOUT) as u32,
        }
    }
}

/// Says which of several sockets are ready.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poller {
    /// Watches for something to read on `sockets`; [`Poller::ready`] names them by their index.
    pub fn new(sockets: &[UdpSocket]) -> io::Result<Self> {
        let poller = Self::with_capacity(sockets.len())?;
        for (i, socket) in sockets.iter().enumerate() {
            poller.watch(socket, i, Interest::Read)?;
        }
        Ok(poller)
    }

    /// Watches nothing yet, and will tell of at most `capacity` sockets at once.
    pub fn with_capacity(capacity: usize) -> io::Result<Self> {
        // SAFETY: no pointers are passed, and the result is checked before it is owned.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let empty = libc::epoll_event { events: 0, u64: 0 };
        Ok(Self { epoll, events: vec![empty; capacity.max(1)] })
    }

    /// Begins to watch `socket`, called `token`, until it is closed.
    pub fn watch(&self, socket: &impl AsRawFd, token: usize, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, token, interest)
    }

    /// Changes what is waited for on `socket`.
    pub fn rewatch(&self, socket: &impl AsRawFd, token: usize, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, token, interest)
    }

    fn control(
        &self,
        operation: libc::c_int,
        socket: &impl AsRawFd,
        token: usize,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.flags(), u64: token as u64 };
        // SAFETY: `event` is valid during the call; both descriptors are open.
        let result =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, socket.as_raw_fd(), &raw mut event) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits at most `timeout` and returns how many sockets are ready.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        let timeout = timespec(timeout);
        // SAFETY: `events` has room for the number of events passed.
        let ready = unsafe {
            libc::epoll_pwait2(
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                &raw const timeout,
                std::ptr::null(),
            )
        };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) };
        }
        Ok(ready as usize)
    }

    /// Returns the index or token of the `i`th ready socket.
    pub fn ready(&self, i: usize) -> usize {
        self.events[i].u64 as usize
    }

    /// Returns whether the `i`th ready socket has something to read, be it its end or an error.
    pub fn is_readable(&self, i: usize) -> bool {
        self.events[i].events & !(libc::EPOLLOUT as u32) != 0
    }
}

/// Binds the calling thread to `cores`.
pub fn pin_thread(cores: &[usize]) -> io::Result<()> {
    let set = core_set(cores);
    // SAFETY: `set` is a valid CPU set; 0 names the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn core_set(cores: &[usize]) -> libc::cpu_set_t {
    // SAFETY: zero octets are the empty set; `CPU_SET` ignores numbers outside of it.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        for &core in cores {
            libc::CPU_SET(core, &mut set);
        }
        set
    }
}

/// Makes `command` run on `cores` only, and end when we do.
pub fn confine(command: &mut Command, cores: &[usize]) {
    let set = core_set(cores);
    let parent = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe calls are made and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ECHILD));
            }
            if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// Makes `command` join the control group whose `cgroup.procs` is open for writing.
pub fn join_group(command: &mut Command, procs: File) {
    // SAFETY: between fork and exec one write is made to a descriptor that the closure owns, and
    // nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            // 0 stands for the process that writes.
            if libc::write(procs.as_raw_fd(), b"0".as_ptr().cast(), 1) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// Makes `command` end when we do.
pub fn end_with_us(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe calls are made and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ECHILD));
            }
            Ok(())
        });
    }
}

/// Moves every thread of process `pid` to `cores`, those that chose a core themselves too.
pub fn pin_process(pid: u32, cores: &[usize]) {
    let set = core_set(cores);
    for entry in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        if let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse::<libc::pid_t>().ok()) {
            // SAFETY: `set` is a valid CPU set. A thread that has ended meanwhile is an error
            // without harm.
            unsafe {
                libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const set);
            }
        }
    }
}

/// Moves the calling thread to the network namespace that `namespace` stands for.
pub fn enter_network(namespace: &impl AsFd) -> io::Result<()> {
    // SAFETY: no memory is involved; the descriptor is open.
    let result = unsafe { libc::setns(namespace.as_fd().as_raw_fd(), libc::CLONE_NEWNET) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What an interface may do with packets on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Put received packets of one flow together (GRO).
    ReceiveGrouping,
    /// Cut large packets when they are sent (TSO).
    SendSegmenting,
}

/// Lets `interface` do something on its own, or not.
pub fn set_offload(interface: &str, offload: Offload, wanted: bool) -> io::Result<()> {
    // `struct ethtool_value`: the command (ETHTOOL_SGRO, ETHTOOL_STSO) and its value.
    let command: u32 = match offload {
        Offload::ReceiveGrouping => 0x2c,
        Offload::SendSegmenting => 0x1f,
    };
    let mut value = [command, u32::from(wanted)];
    // SAFETY: all zeros are an `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    let any = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: the request lives through the call, ends its name with a NUL, and leads to a
    // structure of the command's size.
    let result = unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives this process a file system for BPF objects at `path` that nobody else sees.
pub fn mount_bpf(path: &str) -> io::Result<()> {
    let path = std::ffi::CString::new(path)?;
    let check = |result: libc::c_int| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: no memory is involved.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let (none, all) = (std::ptr::null(), libc::MS_REC | libc::MS_PRIVATE);
    // SAFETY: the path ends with a NUL; the other arguments may be absent.
    check(unsafe { libc::mount(c"none".as_ptr(), c"/".as_ptr(), none, all, std::ptr::null()) })?;
    // SAFETY: as above.
    check(unsafe { libc::mount(c"bpf".as_ptr(), path.as_ptr(), c"bpf".as_ptr(), 0, std::ptr::null()) })
}

/// Asks process `pid` to end.
pub fn terminate(pid: u32) {
    // SAFETY: no memory is involved; `pid` is a child of ours that has not been waited for.
    unsafe {
        libc::kill(pid as libc::pid_t, libc::SIGTERM);
    }
}

/// Sends `signal` to process `pid`.
pub fn signal(pid: u32, signal: Signal) {
    let number = match signal {
        Signal::Hangup => libc::SIGHUP,
        Signal::User1 => libc::SIGUSR1,
        Signal::User2 => libc::SIGUSR2,
    };
    // SAFETY: no memory is involved; `pid` is a child of ours that has not been waited for.
    unsafe {
        libc::kill(pid as libc::pid_t, number);
    }
}

/// Returns the CPU time all threads of process `pid` have used, ended ones included.
pub fn process_cpu(pid: u32) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: both out-parameters are valid during the calls.
    unsafe {
        let error = libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock);
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        let mut time: libc::timespec = zeroed();
        if libc::clock_gettime(clock, &raw mut time) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

/// How a child ended, and what it had used.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Whether its exit code was 0.
    pub is_success: bool,
    /// Its CPU time.
    pub cpu: Duration,
    /// What it had resident at most; at least what this process had when it began.
    pub peak_octets: u64,
}

/// Waits for the end of `child`, which nobody else may wait for.
pub fn wait_used(child: &std::process::Child) -> io::Result<Ended> {
    let pid = child.id() as libc::pid_t;
    let mut status = 0;
    // SAFETY: all zeros are a `rusage`.
    let mut used: libc::rusage = unsafe { zeroed() };
    loop {
        // SAFETY: both out-parameters are valid during the call.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut used) } == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    Ok(Ended {
        is_success: libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        cpu: time(used.ru_utime) + time(used.ru_stime),
        // getrusage(2): in KiB.
        peak_octets: used.ru_maxrss as u64 * 1024,
    })
}

/// Returns the CPU time the calling thread has used.
pub fn thread_cpu() -> Duration {
    // SAFETY: the out-parameter is valid during the call, which cannot fail for this clock.
    unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

/// Returns the clock ticks per second that `/proc/PID/stat` counts in.
pub fn clock_ticks() -> u64 {
    // SAFETY: no memory is involved.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}
