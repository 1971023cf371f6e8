//! Sockets that were opened for us by the service manager (sd_listen_fds(3)).

use std::env;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::process;

use socket2::{SockRef, Type};

/// The first descriptor handed over (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// The most descriptors looked at, in case the number in the environment is senseless.
const DESCRIPTORS_MAX: RawFd = 1024;

/// What an activated socket carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A datagram socket.
    Datagrams,
    /// A listening stream socket.
    Connections,
}

/// A socket opened by the service manager.
#[derive(Debug)]
pub struct Activated {
    /// A descriptor of our own; the one handed over stays open beside it.
    pub(crate) socket: OwnedFd,
    /// Its name: `FileDescriptorName=` of the socket unit.
    pub name: String,
    /// Where it is bound.
    pub address: SocketAddr,
    /// What it carries.
    pub kind: Kind,
}

/// Returns the sockets the service manager opened for this process, in its order.
///
/// Reads `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`; empty when they are not for us. Sockets
/// that are neither UDP nor listening TCP are left alone. Each call returns new descriptors of the
/// same sockets.
pub fn activation() -> Vec<Activated> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(process::id()) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").and_then(|count| RawFd::try_from(count).ok()).unwrap_or(0);
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    (FIRST..FIRST + count.min(DESCRIPTORS_MAX))
        .filter_map(|descriptor| adopt(descriptor, names.next().unwrap_or_default()).ok().flatten())
        .collect()
}

/// Duplicates a descriptor if it is a socket of a kind we serve.
fn adopt(descriptor: RawFd, name: &str) -> io::Result<Option<Activated>> {
    // SAFETY: `fcntl` with a flag command takes any number; a closed descriptor is an error. The
    // children we may start must not inherit the socket.
    if unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above proved it open. The service manager gave it to this process, and we
    // alone read the variables that say so; nothing closes it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let socket = SockRef::from(&borrowed);
    let Some(address) = socket.local_addr()?.as_socket() else { return Ok(None) };
    let kind = match socket.r#type()? {
        Type::DGRAM => Kind::Datagrams,
        Type::STREAM if is_listening(&socket) => Kind::Connections,
        _ => return Ok(None),
    };
    Ok(Some(Activated { socket: borrowed.try_clone_to_owned()?, name: name.to_owned(), address, kind }))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_listening(socket: &SockRef<'_>) -> bool {
    socket.is_listener().unwrap_or(false)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_listening(socket: &SockRef<'_>) -> bool {
    // A stream socket that is bound and not connected can only have been meant to listen.
    socket.peer_addr().is_err()
}
