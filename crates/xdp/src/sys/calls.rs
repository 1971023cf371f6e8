//! Sockets: AF_XDP's options and calls, and the few of others.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use super::mapping::Mapping;

/// Options that `libc` does not have for all targets (`linux/socket.h`, `linux/if_xdp.h`).
const SO_SNDBUFFORCE: i32 = 32;
const SO_BUSY_POLL: i32 = 46;
const SO_PREFER_BUSY_POLL: i32 = 69;
const SO_BUSY_POLL_BUDGET: i32 = 70;
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;

/// Plain numbers that the kernel reads or writes as they are.
///
/// # Safety
///
/// Every pattern of bits is a value, and there is no padding.
unsafe trait Plain: Copy {}
// SAFETY: numbers, or structures of numbers of one size each (`tx_metadata_len` fills the last gap
// of its structure).
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}

/// Turns what a system call returned into a result.
fn checked(returned: i32) -> io::Result<i32> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Opens a socket.
pub(crate) fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: numbers only.
    let fd = checked(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set<T: Plain>(socket: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    let octets = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` lives through the call and has that many octets.
    checked(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(value).cast(), octets)
    })?;
    Ok(())
}

fn get<T: Plain>(socket: BorrowedFd<'_>, name: i32) -> io::Result<T> {
    // SAFETY: `Plain` says that all zeros are a value.
    let mut value: T = unsafe { mem::zeroed() };
    let mut octets = size_of::<T>() as libc::socklen_t;
    let to = ptr::from_mut(&mut value).cast();
    // SAFETY: the kernel writes at most `octets` octets to `value`, and `Plain` says that any are a
    // value.
    checked(unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, name, to, &raw mut octets) })?;
    if octets as usize != size_of::<T>() {
        // An older kernel knows less, in another layout.
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    Ok(value)
}

/// Sets the number of entries of a ring.
pub(crate) fn set_ring_size(socket: BorrowedFd<'_>, ring: i32, entries: u32) -> io::Result<()> {
    set(socket, libc::SOL_XDP, ring, &entries)
}

/// Registers the memory of all frames. The kernel keeps its pages for as long as the socket is
/// open.
pub(crate) fn register(socket: BorrowedFd<'_>, area: &Mapping, frame_octets: u32) -> io::Result<()> {
    let Some(start) = area.at::<u8>(0, area.octets()) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let registration = libc::xdp_umem_reg {
        addr: start.as_ptr() as u64,
        len: (area.octets() - area.octets() % frame_octets as usize) as u64,
        chunk_size: frame_octets,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)
}

/// Returns where the parts of the rings are.
pub(crate) fn ring_offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    get(socket, libc::XDP_MMAP_OFFSETS)
}

/// Returns the kernel's counters of a socket.
pub(crate) fn statistics(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_statistics> {
    get(socket, libc::XDP_STATISTICS)
}

/// Returns whether frames pass between card and program without a copy.
pub(crate) fn is_zero_copy(socket: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(get::<u32>(socket, libc::XDP_OPTIONS)? & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// Sets how many packets one call may send in copy mode (Linux 6.16; 32 before).
pub(crate) fn set_transmit_budget(socket: BorrowedFd<'_>, packets: u32) -> io::Result<()> {
    set(socket, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &packets)
}

/// Lets the caller's own system calls drive the card: for so many microseconds, and so many packets
/// at a time.
pub(crate) fn set_busy_poll(socket: BorrowedFd<'_>, microseconds: u32, budget: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, &1i32)?;
    set(socket, libc::SOL_SOCKET, SO_BUSY_POLL, &(microseconds as i32))?;
    set(socket, libc::SOL_SOCKET, SO_BUSY_POLL_BUDGET, &(budget as i32))
}

/// Sets how many octets may wait to be sent in copy mode, above the system's limit if we may.
pub(crate) fn set_send_buffer(socket: BorrowedFd<'_>, octets: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, SO_SNDBUFFORCE, &(octets as i32))
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &(octets as i32)))
}

/// Binds to one queue of an interface.
pub(crate) fn bind(socket: BorrowedFd<'_>, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let octets = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` lives through the call and has that many octets.
    checked(unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(&address).cast(), octets) })?;
    Ok(())
}

/// Has the kernel send what is on the transmit ring.
pub(crate) fn kick_transmit(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no buffer and no address.
    let sent =
        unsafe { libc::sendto(socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the kernel look at the fill ring, and at the card if busy polling.
pub(crate) fn kick_receive(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: no buffer and no address.
    let received = unsafe {
        libc::recvfrom(socket.as_raw_fd(), ptr::null_mut(), 0, flags, ptr::null_mut(), ptr::null_mut())
    };
    if received < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until one of the sockets can be read (or written, if asked for), or the time is over.
/// Returns whether one can.
pub(crate) fn wait(sockets: &[(BorrowedFd<'_>, bool)], timeout: Duration) -> io::Result<bool> {
    let mut entries: Vec<_> = sockets
        .iter()
        .map(|(socket, wants_to_write)| libc::pollfd {
            fd: socket.as_raw_fd(),
            events: if *wants_to_write { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN },
            revents: 0,
        })
        .collect();
    let timeout = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the entries live through the call, and that many there are.
    match checked(unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, timeout) }) {
        Ok(count) => Ok(count > 0),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}

/// An `ifreq` that leads to a structure of the caller's (`SIOCETHTOOL`).
#[repr(C)]
struct EthtoolRequest {
    name: [u8; libc::IFNAMSIZ],
    data: *mut u32,
    /// `struct ifreq` is larger than a name and a pointer.
    _rest: [u64; 2],
}

/// Asks a driver by ethtool: `words` begins with the number of the command and receives the answer.
///
/// `words` must be as long as that command's structure; this function knows their lengths, so that
/// the kernel never writes more.
pub(crate) fn ethtool<const N: usize>(interface: &str, words: &mut [u32; N]) -> io::Result<()> {
    let room = match words.first() {
        // `struct ethtool_drvinfo`
        Some(&3) => 196 / 4,
        // `struct ethtool_ringparam`, `struct ethtool_channels`
        Some(&0x10 | &0x3c) => 9,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    if N < room || interface.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let any = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut request = EthtoolRequest { name: [0; libc::IFNAMSIZ], data: words.as_mut_ptr(), _rest: [0; 2] };
    for (to, from) in request.name.iter_mut().zip(interface.bytes()) {
        *to = from;
    }
    let fd: RawFd = any.as_raw_fd();
    // SAFETY: the request lives through the call and is at least as long as an `ifreq`; the kernel
    // writes the structure of the command to `words`, which has room for it.
    checked(unsafe { libc::ioctl(fd, libc::SIOCETHTOOL as _, &raw mut request) })?;
    Ok(())
}

/// Returns the index of an interface in this network namespace.
pub(crate) fn interface_index(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: `name` ends with a NUL and lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Returns the soft limit of locked memory in octets; `None` if there is none.
pub(crate) fn locked_memory_max() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit`.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Returns the kernel's release, such as `6.18.0`.
pub(crate) fn kernel_release() -> String {
    // SAFETY: all zeros are a `utsname`.
    let mut names: libc::utsname = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one `utsname`.
    if unsafe { libc::uname(&raw mut names) } != 0 {
        return String::new();
    }
    names.release.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte as u8)).collect()
}
