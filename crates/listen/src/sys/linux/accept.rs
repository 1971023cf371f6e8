//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Connections accepted with one system call.

use std::io;
use std::os::fd::BorrowedFd;

use socket2::{SockAddr, SockRef, Socket};

/// Accepts a connection; its socket does not block.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> io::Result<(Socket, SockAddr)> {
    SockRef::from(&listener).accept4(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)
}
