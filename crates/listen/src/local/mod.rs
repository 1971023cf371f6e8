//! Unix sockets: queries of programs of this machine, as over TCP, as over UDP or over HTTP. Who
//! may ask is a matter of the file's rights.

pub(crate) mod datagrams;

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use plan::listeners::LocalPlan;
use socket2::{Domain, SockAddr, Socket, Type};

/// The address of whoever connects: it is on this machine.
pub(crate) const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An open Unix socket.
#[derive(Debug)]
pub(crate) enum LocalSocket {
    Connections(UnixListener),
    Datagrams(UnixDatagram),
}

/// The file of a Unix socket; removed when dropped, as far as the directory allows it.
#[derive(Debug)]
pub struct LocalFile(PathBuf);

impl Drop for LocalFile {
    fn drop(&mut self) {
        // What is left is replaced by the next start.
        let _ = fs::remove_file(&self.0);
    }
}

/// Whose a socket's file is; the process's own where `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOwner {
    /// The user's number.
    pub user: Option<u32>,
    /// The group's number.
    pub group: Option<u32>,
}

/// Opens a socket. A file that a server left behind is replaced; one that somebody listens on, or
/// that is no socket, is an error.
pub(crate) fn open(plan: &LocalPlan, owner: FileOwner, backlog: i32) -> io::Result<(LocalSocket, LocalFile)> {
    make_place(&plan.path)?;
    let folder = plan.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Opened under another name and moved into place, so that it is never seen with other rights.
    let draft = folder.unwrap_or(Path::new(".")).join(format!(".gannet.{}", std::process::id()));
    let _ = fs::remove_file(&draft);
    let has_connections = plan.kind.connections().is_some();
    let kind = if has_connections { Type::STREAM } else { Type::DGRAM };
    let socket = Socket::new(Domain::UNIX, kind, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(&draft)?)?;
    let place = || {
        fs::set_permissions(&draft, fs::Permissions::from_mode(plan.mode))?;
        if owner.user.is_some() || owner.group.is_some() {
            chown(&draft, owner.user, owner.group)?;
        }
        if has_connections {
            socket.listen(backlog)?;
        }
        fs::rename(&draft, &plan.path)
    };
    place().inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })?;
    let socket = if has_connections {
        LocalSocket::Connections(socket.into())
    } else {
        LocalSocket::Datagrams(socket.into())
    };
    Ok((socket, LocalFile(plan.path.clone())))
}

/// Sees to it that a socket may stand at `path`.
fn make_place(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket"));
    }
    let of_other_kind = |error: io::Error| match error.raw_os_error() {
        Some(libc::EPROTOTYPE) => UnixDatagram::unbound()?.connect(path),
        _ => Err(error),
    };
    match UnixStream::connect(path).map(drop).or_else(of_other_kind) {
        Ok(()) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another program listens there")),
        // Nobody listens any more.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::listeners::LocalKind;

    #[test]
    fn a_socket_left_behind_is_replaced_and_others_are_not() {
        let directory = std::env::temp_dir().join(format!("gannet-local-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a writable directory");
        for kind in [LocalKind::Stream, LocalKind::Datagram, LocalKind::Http] {
            let path = directory.join("dns.sock");
            a_socket_left_behind_is_replaced(&LocalPlan {
                path,
                kind,
                mode: 0o660,
                owner: None,
                group: None,
                paths: Vec::new(),
                is_forwarded: false,
            });
        }
        let plan = LocalPlan {
            path: directory.join("notes"),
            kind: LocalKind::Stream,
            mode: 0o660,
            owner: None,
            group: None,
            paths: Vec::new(),
            is_forwarded: false,
        };
        fs::write(&plan.path, "notes").expect("a writable directory");
        let file = open(&plan, FileOwner::default(), 16).expect_err("a file of somebody's");
        assert_eq!(file.kind(), io::ErrorKind::AlreadyExists);
        fs::remove_dir_all(&directory).expect("our own directory");
    }

    fn a_socket_left_behind_is_replaced(plan: &LocalPlan) {
        let (first, file) = open(plan, FileOwner::default(), 16).expect("a free place");
        let mode = fs::metadata(&plan.path).expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        let taken = open(plan, FileOwner::default(), 16).expect_err("somebody listens there");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        let (second, second_file) = open(plan, FileOwner::default(), 16).expect("nobody listens there");
        match plan.kind {
            LocalKind::Stream | LocalKind::Http => {
                drop(UnixStream::connect(&plan.path).expect("somebody listens again"));
            }
            LocalKind::Datagram => {
                let client = UnixDatagram::unbound().expect("a socket");
                client.connect(&plan.path).expect("somebody listens again");
            }
        }
        drop((second, file, second_file));
        assert!(!plan.path.exists(), "a server that ends takes its sockets along");
    }
}
