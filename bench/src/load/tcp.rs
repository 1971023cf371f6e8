//! Load over TCP and TLS: a connection per client that carries many queries at once, or a
//! connection per query.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

use socket2::{Domain, Protocol, Socket, Type};

use super::carrier::Carrier;
use super::window::Books;
use super::{Pace, Plan, Tally, Transport};
use crate::queries::Packets;
use crate::sys::{self, Interest, Poller};

/// Octets read by one system call.
const READ_OCTETS: usize = 65_536;
/// Connections in a row that could not be opened before the run is given up.
const FAILURES_MAX: u32 = 10_000;

/// A client's connection.
struct Connection {
    carrier: Carrier,
    /// Queries that wait to be sent.
    out: Vec<u8>,
    /// The beginning of a reply whose end has not come.
    input: Vec<u8>,
    interest: Interest,
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan,
    packets: &'a Packets,
    /// Absent while a client has no connection.
    connections: Vec<Option<Connection>>,
    books: Books<'a>,
    poller: Poller,
    scratch: Vec<u8>,
    /// Connections in a row that could not be opened.
    failures: u32,
}

/// Runs `plan` over `packets`.
pub(super) fn run(plan: &Plan, packets: &Packets) -> io::Result<Tally> {
    let clients = match plan.transport {
        // Each query in flight has a connection of its own.
        Transport::TcpEach | Transport::TlsEach => plan.outstanding.max(1),
        Transport::Tcp | Transport::Tls | Transport::Udp | Transport::Https => {
            plan.clients.clamp(1, plan.outstanding.max(1))
        }
    };
    let mut run = Run {
        plan,
        packets,
        connections: (0..clients).map(|_| None).collect(),
        books: Books::new(plan, packets, clients),
        poller: Poller::with_capacity(clients)?,
        scratch: vec![0; READ_OCTETS],
        failures: 0,
    };
    if !run.is_each() {
        // Lasting connections are there, and their handshakes done, before time runs.
        for client in 0..clients {
            run.take(client, Carrier::open(plan, client)?)?;
        }
        run.books = Books::new(plan, packets, clients);
    }
    run.drive()?;
    Ok(run.books.close())
}

impl Run<'_> {
    /// Returns whether each query has a connection of its own.
    const fn is_each(&self) -> bool {
        matches!(self.plan.transport, Transport::TcpEach | Transport::TlsEach)
    }

    fn drive(&mut self) -> io::Result<()> {
        let mut pace = Pace::new(self.plan);
        self.refill_all()?;
        loop {
            let now = self.books.now_ns();
            if let Some(before) = pace.sweep(now) {
                self.books.sweep(before);
                self.drop_idle();
                if pace.is_sending {
                    self.refill_all()?;
                }
            }
            pace.look(now, &self.books);
            if self.books.is_done(pace.is_sending) {
                return Ok(());
            }
            let ready = self.poller.wait(pace.patience(now, &self.books))?;
            for i in 0..ready {
                let client = self.poller.ready(i);
                self.attend(client, self.poller.is_readable(i));
                if pace.is_sending && self.plan.rate.is_none() {
                    self.refill(client)?;
                }
            }
            if pace.is_sending && self.plan.rate.is_some() {
                self.refill_all()?;
            }
        }
    }

    fn refill_all(&mut self) -> io::Result<()> {
        (0..self.connections.len()).try_for_each(|client| self.refill(client))
    }

    /// Opens a connection for `client`; the server may still have to accept it.
    fn connect(&mut self, client: usize) -> io::Result<()> {
        self.take(client, Carrier::begin(self.plan, client)?)
    }

    fn take(&mut self, client: usize, carrier: Carrier) -> io::Result<()> {
        let interest = Interest::Read;
        self.poller.watch(carrier.stream(), client, interest)?;
        self.connections[client] = Some(Connection { carrier, out: Vec::new(), input: Vec::new(), interest });
        Ok(())
    }

    /// Sends as much as the client's window, the rate and the order allow.
    fn refill(&mut self, client: usize) -> io::Result<()> {
        let now = self.books.now_ns();
        let room = self.books.room(client, now);
        if room == 0 {
            return Ok(());
        }
        if self.connections[client].is_none() {
            match self.connect(client) {
                Ok(()) => self.failures = 0,
                // The port is closed for a while, or all local ports are: the next sweep tries
                // again.
                Err(error) if self.failures < FAILURES_MAX => {
                    self.failures += 1;
                    let _ = error;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        let Some(connection) = self.connections[client].as_mut() else { return Ok(()) };
        for _ in 0..room {
            let Some((id, query)) = self.books.next(client, now) else { break };
            self.packets.frame(query, id, &mut connection.out);
        }
        if !connection.out.is_empty() && self.flush(client).is_err() {
            self.close(client);
        }
        Ok(())
    }

    /// Sends what waits, and asks to be told when the rest can be sent.
    fn flush(&mut self, client: usize) -> io::Result<()> {
        let Some(connection) = self.connections[client].as_mut() else { return Ok(()) };
        let is_all = connection.carrier.write(&mut connection.out)?;
        let interest = if is_all { Interest::Read } else { Interest::ReadAndWrite };
        if interest != connection.interest {
            connection.interest = interest;
            self.poller.rewatch(connection.carrier.stream(), client, interest)?;
        }
        Ok(())
    }

    /// Reads and writes what a ready connection allows.
    fn attend(&mut self, client: usize, is_readable: bool) {
        let is_open = (!is_readable || self.collect(client).unwrap_or(false)) && self.flush(client).is_ok();
        if !is_open {
            self.close(client);
        }
    }

    /// Takes what has arrived; returns whether the connection can be used further.
    fn collect(&mut self, client: usize) -> io::Result<bool> {
        let Some(connection) = self.connections[client].as_mut() else { return Ok(true) };
        loop {
            let read = match connection.carrier.read(&mut self.scratch) {
                Ok(0) => return Ok(false),
                Ok(read) => read,
                Err(error) if is_not_yet(&error) => return Ok(true),
                Err(error) => return Err(error),
            };
            let now = self.books.now_ns();
            connection.input.extend_from_slice(&self.scratch[..read]);
            let mut rest = connection.input.as_slice();
            let mut replies = 0;
            while let Some((&len, after)) = rest.split_first_chunk::<2>()
                && let Some((reply, after)) = after.split_at_checked(usize::from(u16::from_be_bytes(len)))
            {
                self.books.settle(client, reply, now);
                replies += 1;
                rest = after;
            }
            let taken = connection.input.len() - rest.len();
            connection.input.drain(..taken);
            let is_each = matches!(self.plan.transport, Transport::TcpEach | Transport::TlsEach);
            if is_each && replies > 0 {
                return Ok(false);
            }
            if read < self.scratch.len() && !connection.carrier.holds_back() {
                return Ok(true);
            }
        }
    }

    /// Closes the connections whose only query was lost.
    fn drop_idle(&mut self) {
        if self.is_each() {
            for client in 0..self.connections.len() {
                if self.books.is_idle(client) {
                    self.connections[client] = None;
                }
            }
        }
    }

    /// Closes a connection; what is in flight on it is lost.
    fn close(&mut self, client: usize) {
        self.connections[client] = None;
        self.books.give_up(client, u64::MAX);
    }
}

/// Begins to connect from `local` to `server`, without waiting.
pub(super) fn connect(local: IpAddr, server: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    if !local.is_unspecified() {
        // The port is chosen at connect, so that one local port can serve several servers.
        sys::choose_port_late(&socket)?;
        socket.bind(&SocketAddr::new(local, 0).into())?;
    }
    match socket.connect(&server.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(socket.into())
}

/// Returns whether there is nothing to read, or no room to write, for now.
pub(super) fn is_not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::NotConnected
    )
}
