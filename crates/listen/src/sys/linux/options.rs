//! Options of datagram sockets that neither std nor socket2 has.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Sets what a datagram socket needs for batches: where queries came to (`wildcard`), how many were
/// lost, when they came (`stamped`), fragments decided by the interface alone, coalescing. Returns
/// whether coalescing is in effect.
pub(crate) fn prepare_datagrams(
    socket: BorrowedFd<'_>,
    v6: bool,
    wildcard: bool,
    coalesced: bool,
    stamped: bool,
) -> io::Result<bool> {
    if stamped {
        set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    }
    if wildcard {
        if v6 {
            set(socket, libc::SOL_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        } else {
            set(socket, libc::SOL_IP, libc::IP_PKTINFO, 1)?;
        }
    }
    // Best effort from here on: an old kernel lacks some of these, and answers are right without
    // them. A forged "fragmentation needed" must not make us fragment replies: second fragments can
    // be replaced by an attacker. OMIT ignores what ICMP says about the path.
    if v6 {
        let _ = set(socket, libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_OMIT);
    } else {
        let _ = set(socket, libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT);
    }
    Ok(coalesced && set(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok())
}

/// Asks for room in the kernel's queues, best effort: beyond the system's limits if we may, else up
/// to them.
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

/// Returns how many datagrams the kernel has dropped since the socket was opened because they were
/// not read in time.
///
/// A system call: asked now and then. `SO_RXQ_OVFL` would tell with each datagram, at 3 % of the
/// cost of each.
pub(crate) fn lost(socket: BorrowedFd<'_>) -> Option<u32> {
    /// The option's number on all but two old architectures, which refuse it.
    const SO_MEMINFO: i32 = 55;
    /// Values the kernel knows (`SK_MEMINFO_VARS`).
    const VALUES: usize = libc::SK_MEMINFO_DROPS as usize + 1;
    let mut values = [0u32; VALUES];
    let mut len = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to `values`, which lives until the call
    // returns, and the octets written to `len`.
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

/// Whether [`steer`] does something.
pub(crate) const STEERS: bool = true;

/// Steers the datagrams that come to the address of `socket` to `workers` of the sockets that share
/// it, by the address and port of the client. Fails where the kernel lacks it (before 4.5) and
/// where nobody shares the address.
pub(crate) fn steer(socket: BorrowedFd<'_>, is_v6: bool, workers: usize) -> io::Result<()> {
    /// Where the network header begins, for loads (linux/filter.h); so high that a load's offset is
    /// negative.
    const NETWORK: u32 = libc::SKF_NET_OFF as u32;
    /// Odd numbers with ones and zeros all over, by which a multiplication spreads the bits of a
    /// port and an address.
    const SPREAD: [u32; 2] = [0x9E37_79B1, 0x85EB_CA6B];
    const fn step(code: u32, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
    }
    // The last four octets of the client's address, and its port, where the header has no options.
    // If it has some, other octets decide, and no harm is done.
    let (address, port) = if is_v6 { (20, 40) } else { (12, 20) };
    let workers = u32::try_from(workers.max(1)).unwrap_or(u32::MAX);
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, NETWORK + address),
        step(libc::BPF_MISC | libc::BPF_TAX, 0),
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, NETWORK + port),
        step(libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K, SPREAD[0]),
        step(libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X, 0),
        step(libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K, SPREAD[1]),
        step(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, 16),
        step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, workers),
        step(libc::BPF_RET | libc::BPF_A, 0),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let len = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: `program` points at as many instructions as it says, which live until the call
    // returns; the kernel copies them.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            ptr::from_ref(&program).cast(),
            len,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    let value = ptr::from_ref(&value).cast::<c_void>();
    // SAFETY: `value` points at a live `i32` and `len` is its size; the kernel only reads it.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
