//! The answering side of the control socket.
//!
//! A connection carries one request at a time, each a line of JSON, or it speaks HTTP: the first
//! octet is a capital letter then, as every method begins with one. Only root, the server's own
//! user and a group that is named are heard; what the socket's file mode would allow does not
//! matter.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Join};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::accept::{WhenFull, converse_with_all};
use crate::api::{Request, Response, to_json_line};

/// Octets of a request line; the longest we know holds the text of a setting.
const REQUEST_OCTETS_MAX: usize = 2 << 20;
/// Connections at once, so that a script gone wild does not exhaust descriptors. All who may watch
/// queries and events can, and commands still find a place.
const CONNECTIONS_MAX: usize = 64;
/// How long a connection may be silent, or refuse to take what we say.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who is at the other end of a control socket, as the system says (SO_PEERCRED).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The user's number.
    pub user: u32,
    /// The number of the user's own group.
    pub group: u32,
    /// The process, if the system says which.
    pub process: Option<i32>,
}

impl Peer {
    /// Returns whether the user is a member of a group, also of one besides their own.
    pub fn is_in(self, group: u32) -> bool {
        let of_process = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.process?)).ok()?;
            let groups = status.lines().find_map(|line| line.strip_prefix("Groups:"))?;
            Some(groups.split_ascii_whitespace().any(|known| known.parse() == Ok(group)))
        };
        self.group == group || of_process().unwrap_or(false)
    }
}

/// Says who may use a control socket.
pub type Admits = Arc<dyn Fn(Peer) -> Result<(), String> + Send + Sync>;

/// Does what a request says, and returns what came of it. Called on a blocking thread, possibly on
/// several at once.
pub type Handler = Arc<dyn Fn(Request, Peer) -> Answer + Send + Sync>;

/// A connection of the control socket, of which nothing was taken yet.
pub type Stream = Join<BufReader<OwnedReadHalf>, OwnedWriteHalf>;

/// Goes on with a connection that speaks HTTP, until it ends.
pub type Http = Arc<dyn Fn(Stream, Peer) -> Conversation + Send + Sync>;

/// A connection that is being served.
pub type Conversation = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What carries out what is asked over a control socket.
#[derive(Clone)]
pub struct Handlers {
    /// Requests in lines.
    pub lines: Handler,
    /// HTTP; without it, a request of it is one that is not understood.
    pub http: Option<Http>,
    /// Who may use it, or why not.
    pub admits: Admits,
}

/// What comes of a request.
pub enum Answer {
    /// One response.
    Whole(Box<Response>),
    /// One response after the other. The next is asked for when the client has taken the one
    /// before, on a blocking thread.
    Parts(Parts),
}

/// Responses to one request, one after the other.
pub type Parts = Box<dyn Iterator<Item = Response> + Send>;

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self::Whole(Box::new(response))
    }
}

/// The bound socket. Removes its file when dropped.
#[derive(Debug)]
pub struct Socket {
    listener: StdUnixListener,
    path: PathBuf,
}

impl Socket {
    /// Binds the control socket at `path` with mode 0600, for `owner` (user and group) if given.
    /// With `shared_with` the mode is 0660, and that is its group.
    ///
    /// A socket left by a server that is gone is replaced, and nothing else that is there.
    /// [`io::ErrorKind::AddrInUse`] means that another server answers there.
    pub fn bind(path: &Path, owner: Option<(u32, u32)>, shared_with: Option<u32>) -> io::Result<Self> {
        if StdUnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        if std::fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "what is there is no socket"));
        }
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if !folder.exists() {
            std::fs::create_dir_all(folder)?;
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
            if let Some((user, group)) = owner {
                std::os::unix::fs::chown(folder, Some(user), Some(group))?;
            }
        }
        // Bound under another name and moved into place, so that it is never seen with a wider
        // mode.
        let draft = folder.join(format!(".control.{}", std::process::id()));
        let _ = std::fs::remove_file(&draft);
        let listener = StdUnixListener::bind(&draft)?;
        let place = || {
            let mode = if shared_with.is_some() { 0o660 } else { 0o600 };
            std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(mode))?;
            if owner.is_some() || shared_with.is_some() {
                let (user, group) = (owner.map(|(user, _)| user), owner.map(|(_, group)| group));
                std::os::unix::fs::chown(&draft, user, shared_with.or(group))?;
            }
            listener.set_nonblocking(true)?;
            std::fs::rename(&draft, path)
        };
        place().inspect_err(|_| {
            let _ = std::fs::remove_file(&draft);
        })?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Returns where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Serves the control socket until dropped; dropping ends every connection.
///
/// Errors when the runtime cannot take the socket.
pub async fn serve(socket: &Socket, handlers: Handlers) -> io::Result<()> {
    let listener = UnixListener::from_std(socket.listener.try_clone()?)?;
    converse_with_all(
        (CONNECTIONS_MAX, WhenFull::Waits),
        || listener.accept(),
        |(stream, _), _| converse(stream, handlers.clone()),
    )
    .await
}

/// Answers the requests of one connection, in order.
async fn converse(stream: UnixStream, handlers: Handlers) {
    // What goes wrong here concerns this client alone, and it notices.
    let _ = try_converse(stream, handlers).await;
}

async fn try_converse(stream: UnixStream, handlers: Handlers) -> io::Result<()> {
    let credentials = stream.peer_cred()?;
    let peer = Peer { user: credentials.uid(), group: credentials.gid(), process: credentials.pid() };
    let (reader, mut writer) = stream.into_split();
    if let Err(why) = (handlers.admits)(peer) {
        return say(&mut writer, &Response::error(why)).await;
    }
    let mut reader = BufReader::new(reader);
    let first = timeout(PATIENCE, reader.fill_buf()).await??.first().copied();
    if let (Some(b'A'..=b'Z'), Some(http)) = (first, &handlers.http) {
        http(tokio::io::join(reader, writer), peer).await;
        return Ok(());
    }
    let handler = handlers.lines;
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = (&mut reader).take(REQUEST_OCTETS_MAX as u64 + 1);
        if timeout(PATIENCE, bounded.read_until(b'\n', &mut line)).await?? == 0 {
            return Ok(());
        }
        if line.len() > REQUEST_OCTETS_MAX {
            let refusal = Response::error(format!("a request has at most {REQUEST_OCTETS_MAX} octets"));
            return say(&mut writer, &refusal).await;
        }
        let response = match serde_json::from_slice::<Request>(&line) {
            Ok(request) => {
                let handler = Arc::clone(&handler);
                match tokio::task::spawn_blocking(move || handler(request, peer)).await {
                    Ok(Answer::Parts(parts)) => {
                        say_all(&mut writer, parts).await?;
                        continue;
                    }
                    Ok(Answer::Whole(response)) => *response,
                    Err(_) => Response::error("the server could not carry this out"),
                }
            }
            Err(error) => Response::error(format!("not a request: {error}")),
        };
        say(&mut writer, &response).await?;
    }
}

/// Says one part after the other; only one is in memory.
async fn say_all(writer: &mut (impl AsyncWriteExt + Unpin), mut parts: Parts) -> io::Result<()> {
    loop {
        let work = tokio::task::spawn_blocking(move || {
            let part = parts.next();
            (parts, part)
        });
        let (rest, part) = work.await.map_err(io::Error::other)?;
        let Some(part) = part else { return Ok(()) };
        say(writer, &part).await?;
        parts = rest;
    }
}

async fn say(writer: &mut (impl AsyncWriteExt + Unpin), response: &Response) -> io::Result<()> {
    timeout(PATIENCE, writer.write_all(to_json_line(response).as_bytes())).await?
}
