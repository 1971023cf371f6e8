//! A connection that carries queries, plain or with TLS.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rustls::ClientConnection;

use super::{Plan, tcp};

/// How long a handshake that is waited for may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// A connection, perhaps with a session of TLS.
pub(super) struct Carrier {
    stream: TcpStream,
    session: Option<Box<ClientConnection>>,
}

impl Carrier {
    /// Begins to connect `client`, without waiting.
    pub(super) fn begin(plan: &Plan, client: usize) -> io::Result<Self> {
        let stream = tcp::connect(plan.local(client), plan.server)?;
        let session = match &plan.secure {
            Some(secure) => {
                let mut session = secure.begin()?;
                // Queries may wait for the handshake; how many is the load's own business.
                session.set_buffer_limit(None);
                Some(Box::new(session))
            }
            None => None,
        };
        Ok(Self { stream, session })
    }

    /// Connects `client` and waits until both sides are ready to talk.
    pub(super) fn open(plan: &Plan, client: usize) -> io::Result<Self> {
        let mut carrier = Self::begin(plan, client)?;
        carrier.wait(true)?;
        if let Some(session) = &mut carrier.session {
            while session.is_handshaking() {
                session.complete_io(&mut carrier.stream)?;
            }
        }
        carrier.wait(false)?;
        Ok(carrier)
    }

    /// Lets reading and writing wait, for a while, or not.
    pub(super) fn wait(&self, waits: bool) -> io::Result<()> {
        self.stream.set_nonblocking(!waits)?;
        self.stream.set_read_timeout(waits.then_some(HANDSHAKE_MAX))
    }

    /// Returns the socket.
    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns whether octets may have been read from the socket that [`Carrier::read`] has not
    /// returned.
    pub(super) const fn holds_back(&self) -> bool {
        self.session.is_some()
    }

    /// Reads what has arrived; 0 when the server says no more.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.stream.read(into) };
        loop {
            match session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if session.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            session.process_new_packets().map_err(io::Error::other)?;
        }
    }

    /// Sends `out` and what the session has to say, as much as goes now; returns whether that was
    /// all.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let Some(session) = &mut self.session else {
            while !out.is_empty() {
                match self.stream.write(out) {
                    Ok(sent) => drop(out.drain(..sent)),
                    Err(error) if tcp::is_not_yet(&error) => break,
                    Err(error) => return Err(error),
                }
            }
            return Ok(out.is_empty());
        };
        if !out.is_empty() {
            session.writer().write_all(out)?;
            out.clear();
        }
        while session.wants_write() {
            match session.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(error) if tcp::is_not_yet(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
