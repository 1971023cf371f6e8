//! System calls that std, socket2 and tokio lack: whole batches of datagrams with the address they
//! came to, socket options, descriptors handed over by systemd.
//!
//! The only module of this crate with `unsafe` code. Memory the kernel reads or writes is allocated
//! once per socket and never moves; everything that interprets bytes is safe code.
#![allow(unsafe_code)]

mod activation;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod control;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
mod portable;

use std::cell::OnceCell;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixListener};

use polling::Usage;
use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub use activation::{Activated, Kind, activation};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::{Inbox, Outbox, STEERS, accept, lost, prepare_datagrams, set_buffers, steer};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use portable::{Inbox, Outbox, STEERS, accept, lost, prepare_datagrams, set_buffers, steer};

/// The address and interface index a datagram came to.
pub(crate) type Local = Option<(IpAddr, u32)>;

/// How a socket's batches are shaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Messages per call.
    pub(crate) messages: usize,
    /// The most octets one received datagram may have; longer ones are cut and dropped.
    pub(crate) query_octets_max: usize,
    /// The most octets one reply may have.
    pub(crate) reply_octets_max: usize,
    /// Whether each query says where it was sent to.
    pub(crate) addressed: bool,
    /// Whether several datagrams of one sender may arrive as one message (`UDP_GRO`).
    pub(crate) coalesced: bool,
    /// Whether each query says when it came.
    pub(crate) stamped: bool,
    /// Whether replies to one client may leave as one message (`UDP_SEGMENT`).
    pub(crate) segmented: bool,
}

/// One received message: a datagram, or several of the same sender back to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    /// The octets.
    pub(crate) bytes: &'a [u8],
    /// The sender, as the socket's own address family writes it.
    pub(crate) peer: SocketAddr,
    /// Where it was sent to; `None` unless the socket is bound to a wildcard address.
    pub(crate) local: Local,
    /// Octets per datagram (the last may have fewer); `bytes.len()` or more when it is only one.
    pub(crate) datagram_octets: usize,
    /// When the kernel got it, in microseconds since 1970, if the socket was told to ask for that.
    pub(crate) came_at_us: Option<NonZeroU64>,
}

/// What [`Inbox::message`] found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Received<'a> {
    /// A message.
    Message(Message<'a>),
    /// A datagram that was longer than the buffer, or whose sender cannot be read.
    Unusable,
}

/// What became of a batch of replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Replies handed to the kernel.
    pub(crate) replies: u64,
    /// Replies the kernel did not take.
    pub(crate) dropped: u64,
    /// Messages that held more than one reply.
    pub(crate) grouped: u64,
}

/// How many times a full send buffer is tried again at once before the rest of the batch is
/// dropped: waiting would keep every other client of the worker waiting too.
pub(crate) const SEND_RETRIES: u32 = 2;

/// Returns the index of a network interface by its name, for IPv6 zones such as `fe80::1%eth0`.
pub fn interface_index(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: `name` ends with a NUL and lives until the call returns.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Returns what the calling thread has used so far.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn thread_usage() -> Usage {
    usage(libc::RUSAGE_THREAD)
}

/// Returns the processor time that the process has used so far, in microseconds; 0 if the system
/// does not say.
pub(crate) fn process_cpu_us() -> u64 {
    usage(libc::RUSAGE_SELF).cpu_us
}

fn usage(of: libc::c_int) -> Usage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is ours to write and has the size that the call expects.
    if unsafe { libc::getrusage(of, usage.as_mut_ptr()) } != 0 {
        return Usage::default();
    }
    // SAFETY: all-zero octets are a valid `rusage`, and the kernel wrote into it.
    let usage = unsafe { usage.assume_init() };
    let microseconds = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    Usage {
        cpu_us: microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
        preemptions: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
    }
}

/// Returns what the calling thread has used so far: nothing that this system tells.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn thread_usage() -> Usage {
    Usage::default()
}

/// The clock that counts a thread's processor time. Any thread may read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// Returns that of the calling thread, if the system has it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn of_this_thread() -> Option<Self> {
        let mut clock = 0;
        // SAFETY: `clock` is ours to write, and the calling thread lives.
        let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        (error == 0).then_some(Self(clock))
    }

    /// Returns that of the calling thread: this system has none.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn of_this_thread() -> Option<Self> {
        None
    }

    /// Returns the microseconds used so far; `None` when the thread has ended.
    pub(crate) fn used_us(&self) -> Option<u64> {
        let mut time = std::mem::MaybeUninit::<libc::timespec>::zeroed();
        // SAFETY: `time` is ours to write. The clock of a thread that has ended is a number that
        // the call refuses.
        if unsafe { libc::clock_gettime(self.0, time.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: all-zero octets are a valid `timespec`, and the call wrote into it.
        let time = unsafe { time.assume_init() };
        Some(u64::try_from(time.tv_sec).ok()? * 1_000_000 + u64::try_from(time.tv_nsec).ok()? / 1000)
    }
}

/// What holds one descriptor and closes it only when dropped.
pub(crate) trait Owner: AsRawFd {}
impl Owner for OwnedFd {}
impl Owner for TcpListener {}
impl Owner for UnixDatagram {}
impl Owner for UnixListener {}

/// Lets the runtime watch a socket. Must be called inside it.
pub(crate) fn watch<T: Owner>(socket: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: an `Owner` names the same open descriptor for as long as it lives, and nothing here
    // hands out `&mut` access by which it could be exchanged.
    unsafe { AsyncFd::register_with_interest(socket, interest) }.map_err(io::Error::from)
}

/// A connected socket that the runtime watches only once it has to be waited for: registering costs
/// two system calls, and many a connection is over before.
pub(crate) struct Stream {
    /// Dropped before the socket is: what is deregistered is still open.
    watched: OnceCell<AsyncFd<Descriptor>>,
    socket: Socket,
}

/// The descriptor of a [`Stream`]'s socket.
pub(crate) struct Descriptor(RawFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

impl Stream {
    /// Takes a socket that does not block.
    pub(crate) const fn new(socket: Socket) -> Self {
        Self { watched: OnceCell::new(), socket }
    }

    /// Returns the socket.
    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Returns what waits for the socket; `None` as long as the runtime does not watch it.
    pub(crate) fn watched(&self) -> Option<&AsyncFd<Descriptor>> {
        self.watched.get()
    }

    /// Lets the runtime watch the socket, if it does not yet. Must be called inside it.
    pub(crate) fn watch(&self) -> io::Result<&AsyncFd<Descriptor>> {
        if let Some(watched) = self.watched.get() {
            return Ok(watched);
        }
        #[cfg(test)]
        WATCHED.set(WATCHED.get() + 1);
        let descriptor = Descriptor(self.socket.as_raw_fd());
        let interest = Interest::READABLE | Interest::WRITABLE;
        // SAFETY: the descriptor is that of our own socket, which is never exchanged and is closed
        // after the registration has been dropped.
        let watched = unsafe { AsyncFd::register_with_interest(descriptor, interest) }?;
        Ok(self.watched.get_or_init(|| watched))
    }
}

#[cfg(test)]
thread_local! {
    /// How many connections this thread has registered with the runtime.
    pub(crate) static WATCHED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}
