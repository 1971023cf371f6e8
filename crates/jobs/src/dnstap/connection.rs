//! A connection to a receiver of dnstap: Frame Streams over a Unix socket, TCP or TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dnstap::frames::{CONTROL_OCTETS_MAX, Control};
use identity::Registry;
use plan::dnstap::{Dnstap, Receiver};
use plan::tls::ClientTls;
use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, SockAddr, Socket, Type};

/// How long connecting may take, and each step of the handshakes.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// How long a receiver may read nothing before it counts as gone.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);
/// How long the receiver's last word is waited for.
const FINISH_PATIENCE: Duration = Duration::from_secs(1);
/// How long one call of the kernel may wait, so that whoever wants us to end is heard.
const STEP: Duration = Duration::from_millis(100);

/// A connection on which data frames can be written.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    is_bidirectional: bool,
}

/// A connected stream whose reads and writes wait for [`STEP`] at most.
trait Stream: Read + Write + Send {
    /// Has reads and writes not wait at all, or wait again.
    fn set_nonblocking(&self, is: bool) -> io::Result<()>;
}

impl Stream for UnixStream {
    fn set_nonblocking(&self, is: bool) -> io::Result<()> {
        Self::set_nonblocking(self, is)
    }
}

impl Stream for TcpStream {
    fn set_nonblocking(&self, is: bool) -> io::Result<()> {
        Self::set_nonblocking(self, is)
    }
}

impl Stream for StreamOwned<ClientConnection, TcpStream> {
    fn set_nonblocking(&self, is: bool) -> io::Result<()> {
        self.sock.set_nonblocking(is)
    }
}

impl Connection {
    /// Connects to a receiver and begins the stream; gives up when `is_over` says so.
    pub(super) fn open(plan: &Dnstap, is_over: &dyn Fn() -> bool) -> io::Result<Self> {
        let stream: Box<dyn Stream> = match &plan.to {
            Receiver::Unix(path) => Box::new(unix(path)?),
            Receiver::Tcp(address) => Box::new(tcp(*address)?),
            Receiver::Tls(address, tls) => Box::new(secured(*address, tls, is_over)?),
        };
        let mut connection = Self { stream, is_bidirectional: plan.is_bidirectional };
        if connection.is_bidirectional {
            connection.write(&Control::Ready.frame(), is_over)?;
            match connection.control(CONNECT_PATIENCE, is_over)? {
                (Control::Accept, true) => {}
                (Control::Accept, false) => return Err(io::Error::other("it does not take dnstap")),
                (other, _) => return Err(io::Error::other(format!("it says {other:?} in place of Accept"))),
            }
        }
        connection.write(&Control::Start.frame(), is_over)?;
        Ok(connection)
    }

    /// Writes octets, all of them; an error says that the receiver is gone, or reads nothing.
    pub(super) fn write(&mut self, octets: &[u8], is_over: &dyn Fn() -> bool) -> io::Result<()> {
        let mut patience = Patience::new(WRITE_PATIENCE, is_over);
        let mut rest = octets;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or(&[]);
                    patience.again();
                }
                Err(error) => patience.bear(error)?,
            }
        }
        // TLS may have taken what the kernel has not.
        while let Err(error) = self.stream.flush() {
            patience.bear(error)?;
        }
        Ok(())
    }

    /// Returns whether the receiver is still there, as far as can be told without writing: it has
    /// nothing to say before the end.
    pub(super) fn is_alive(&mut self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return false;
        }
        let read = self.stream.read(&mut [0; 1]);
        let is_quiet = matches!(read, Err(error) if is_wait(&error));
        is_quiet && self.stream.set_nonblocking(false).is_ok()
    }

    /// Ends the stream: the receiver has read everything if it says so.
    pub(super) fn finish(mut self, is_over: &dyn Fn() -> bool) -> io::Result<()> {
        self.write(&Control::Stop.frame(), is_over)?;
        if self.is_bidirectional {
            self.control(FINISH_PATIENCE, &|| false)?;
        }
        Ok(())
    }

    /// Reads a control frame.
    fn control(&mut self, patience: Duration, is_over: &dyn Fn() -> bool) -> io::Result<(Control, bool)> {
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "it does not speak Frame Streams");
        let mut patience = Patience::new(patience, is_over);
        let mut head = [0; 8];
        self.read_exact(&mut head, &mut patience)?;
        let [0, 0, 0, 0, length @ ..] = head else { return Err(bad()) };
        let length = u32::from_be_bytes(length) as usize;
        if length > CONTROL_OCTETS_MAX {
            return Err(bad());
        }
        let mut body = vec![0; length];
        self.read_exact(&mut body, &mut patience)?;
        Control::parse(&body).ok_or_else(bad)
    }

    fn read_exact(&mut self, room: &mut [u8], patience: &mut Patience<'_>) -> io::Result<()> {
        let mut read = 0;
        while let Some(rest) = room.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.stream.read(rest) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
                }
                Ok(octets) => read += octets,
                Err(error) => patience.bear(error)?,
            }
        }
        Ok(())
    }
}

/// How long to try once more.
struct Patience<'o> {
    span: Duration,
    deadline: Instant,
    is_over: &'o dyn Fn() -> bool,
}

impl<'o> Patience<'o> {
    fn new(span: Duration, is_over: &'o dyn Fn() -> bool) -> Self {
        Self { span, deadline: Instant::now() + span, is_over }
    }

    fn again(&mut self) {
        self.deadline = Instant::now() + self.span;
    }

    /// Returns an error unless it is one after which to try again.
    fn bear(&self, error: io::Error) -> io::Result<()> {
        if !is_wait(&error) && error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        if (self.is_over)() || Instant::now() >= self.deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long"));
        }
        Ok(())
    }
}

/// Returns whether an error says that a call has waited long enough.
fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn unix(path: &std::path::Path) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A listener whose queue is full would hold us up for ever.
    socket.set_write_timeout(Some(CONNECT_PATIENCE))?;
    socket.connect(&SockAddr::unix(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_write_timeout(Some(STEP))?;
    stream.set_read_timeout(Some(STEP))?;
    Ok(stream)
}

fn tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_PATIENCE)?;
    stream.set_write_timeout(Some(STEP))?;
    stream.set_read_timeout(Some(STEP))?;
    // Messages are gathered before they are written.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Connects inside of TLS, and has the receiver prove who it is.
fn secured(
    address: SocketAddr,
    tls: &ClientTls,
    is_over: &dyn Fn() -> bool,
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let client = Registry::default().tls(tls);
    let connection = ClientConnection::new(client.config(), tls.name.clone()).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, tcp(address)?);
    let patience = Patience::new(CONNECT_PATIENCE, is_over);
    while stream.conn.is_handshaking() {
        if let Err(error) = stream.conn.complete_io(&mut stream.sock) {
            let refusal = client.last_refusal().filter(|_| !is_wait(&error));
            patience.bear(refusal.map_or(error, io::Error::other))?;
        }
    }
    Ok(stream)
}
