//! Where the channel can be reached, and what its commands work with.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ServerConfig;
use server::{Operator, WorkerNumbers};
use settings::{ControlPlace, UnboundChannel};

use crate::audit::{Flushes, write_counted};
use crate::lists::Lists;
use crate::tls;

/// Mode of a Unix socket: its user and group may give orders, as with the other program.
const MODE: u32 = 0o660;

/// Why the channel cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// A place cannot be listened on.
    Place {
        /// Where.
        at: String,
        /// Why not.
        error: io::Error,
    },
    /// The certificate or its key cannot be used.
    Identity(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place { at, error } => write!(f, "cannot listen on {at} for unbound-control: {error}"),
            Self::Identity(why) => write!(f, "unbound-control cannot be served over TLS: {why}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// A socket that is open.
#[derive(Debug)]
pub(crate) enum Listener {
    /// At an address.
    Tcp(TcpListener),
    /// At a path.
    Unix(UnixListener),
}

/// The channel, open. The files of its Unix sockets go when it is dropped.
#[derive(Debug)]
pub struct Channel {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    paths: Vec<PathBuf>,
}

impl Channel {
    /// Opens the channel; `owner` is the user and group that Unix sockets belong to.
    ///
    /// # Errors
    ///
    /// A place is taken, or the certificate cannot be used.
    pub fn open(plan: &UnboundChannel, owner: Option<(u32, u32)>) -> Result<Self, OpenError> {
        let has_address = plan.places.iter().any(|place| matches!(place, ControlPlace::Address(_)));
        let tls = match &plan.identity {
            Some(identity) if has_address => {
                Some(tls::server(&identity.certificate, &identity.key).map_err(OpenError::Identity)?)
            }
            _ => None,
        };
        let mut channel = Self { listeners: Vec::new(), tls, paths: Vec::new() };
        for place in &plan.places {
            match place {
                ControlPlace::Address(address) => {
                    let failed = |error| OpenError::Place { at: address.to_string(), error };
                    let listener = TcpListener::bind(address).map_err(failed)?;
                    listener.set_nonblocking(true).map_err(failed)?;
                    channel.listeners.push(Listener::Tcp(listener));
                }
                ControlPlace::Path(path) => {
                    let failed = |error| OpenError::Place { at: path.display().to_string(), error };
                    channel.listeners.push(Listener::Unix(bind(path, owner).map_err(failed)?));
                    channel.paths.push(path.clone());
                }
                // Looked up by whoever opens the channel.
                ControlPlace::Device(name, _) => {
                    let error = io::Error::from(io::ErrorKind::AddrNotAvailable);
                    return Err(OpenError::Place { at: name.clone(), error });
                }
            }
        }
        Ok(channel)
    }

    /// Returns where the addresses that are listened on are.
    pub fn addresses(&self) -> Vec<std::net::SocketAddr> {
        let address = |listener: &Listener| match listener {
            Listener::Tcp(listener) => listener.local_addr().ok(),
            Listener::Unix(_) => None,
        };
        self.listeners.iter().filter_map(address).collect()
    }

    /// Returns what `status` calls it.
    pub(crate) fn word(&self) -> &'static str {
        match (&self.tls, self.listeners.iter().any(|it| matches!(it, Listener::Unix(_)))) {
            (Some(_), _) => "ssl",
            (None, true) => "namedpipe",
            (None, false) => "nossl",
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Binds a Unix socket. One that a server left behind is replaced, and nothing else that is there.
fn bind(path: &Path, owner: Option<(u32, u32)>) -> io::Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "what is there is no socket")),
        Err(_) => {}
    }
    // Bound under another name, so that it is never seen with a wider mode.
    let folder = path.parent().unwrap_or(Path::new("."));
    let draft = folder.join(format!(".unbound-control.{}", std::process::id()));
    let _ = std::fs::remove_file(&draft);
    let listener = UnixListener::bind(&draft)?;
    let place = || {
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(MODE))?;
        if let Some((user, group)) = owner {
            chown(&draft, Some(user), Some(group))?;
        }
        listener.set_nonblocking(true)?;
        std::fs::rename(&draft, path)
    };
    place().inspect_err(|_| {
        let _ = std::fs::remove_file(&draft);
    })?;
    Ok(listener)
}

/// What only the process around the server can do.
pub struct Hooks {
    /// Ends the server.
    pub stop: Box<dyn Fn() + Send + Sync>,
    /// Closes the log's file and opens it again.
    pub reopen_log: Box<dyn Fn() + Send + Sync>,
    /// Logs a line whatever is logged.
    pub announce: Box<dyn Fn(&str) + Send + Sync>,
    /// Writes a moment, in seconds since 1970, as `2026-02-28T23:59:01` in the local time zone.
    pub local_time: Box<dyn Fn(u64) -> String + Send + Sync>,
}

/// What commands work with.
pub(crate) struct Context {
    pub(crate) operator: Arc<Operator>,
    pub(crate) hooks: Hooks,
    /// What `status` says of the channel.
    pub(crate) word: &'static str,
    /// Lists that clients send.
    pub(crate) lists: Lists,
    /// Commands that forgot something, of which the audit log has no row yet.
    pub(crate) flushes: Flushes,
    /// What was counted when somebody last began from zero.
    pub(crate) zero: Mutex<Zero>,
    /// The number that `verbosity` was given, and the revision of the configuration then: the next
    /// one has its own.
    pub(crate) verbosity: Mutex<Option<(u32, u64)>>,
}

/// Numbers at the moment from which on somebody counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zero {
    pub(crate) workers: Vec<WorkerNumbers>,
    /// Queries by label.
    pub(crate) labels: BTreeMap<String, u64>,
    /// Since the start of the server.
    pub(crate) at: std::time::Duration,
}

impl Context {
    pub(crate) fn zero(&self) -> MutexGuard<'_, Zero> {
        self.zero.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn verbosity(&self) -> Option<u32> {
        let (number, revision) = (*self.verbosity.lock().unwrap_or_else(PoisonError::into_inner))?;
        (revision == self.operator.revision()).then_some(number)
    }

    /// Notes the number that was given.
    pub(crate) fn set_verbosity(&self, number: u32) {
        let noted = Some((number, self.operator.revision()));
        *self.verbosity.lock().unwrap_or_else(PoisonError::into_inner) = noted;
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        write_counted(self);
    }
}
