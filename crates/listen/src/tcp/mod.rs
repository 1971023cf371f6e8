//! Connections: accept, limit, serve.
//!
//! When all places are taken, the connection of this worker that has been quiet for longest gives
//! way to the new one: its client loses nothing but a round trip (RFC 7766 §6.2.3 lets servers
//! close idle connections at any time), while refusing newcomers would let whoever came first keep
//! everybody else out. Only when all are busy is the new one refused.

mod buffer;
mod connection;
mod conversation;
mod places;
mod table;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, Read};
use std::net::{IpAddr, Shutdown, TcpListener};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixListener;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::Transport;
use rustls::ServerConfig;
use socket2::Socket;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};
use wire::MESSAGE_OCTETS_MAX;

use self::buffer::Pool;
pub(crate) use self::connection::Ending;
use self::connection::{Connection, Secure};
use self::conversation::{Conversation, Deferred, Opening, Scratch};
pub(crate) use self::places::{Place, Places};
use self::table::Table;
use crate::bind::ListenerInfo;
use crate::budget::{Account, Budget};
use crate::counters::Counters;
use crate::dnscrypt::Opener;
use crate::http;
use crate::local;
use crate::oblivious::ObliviousKeys;
use crate::service::Service;
use crate::sys::{self, Stream};
use crate::tls::{Handshakes, Tls, TlsAcceptor, TlsCell};
use crate::udp::is_proxy;
use plan::listeners::{Connections, TcpPlan};

/// How long to wait when the system has no descriptor or memory for another connection. The
/// listening socket stays readable meanwhile, so trying again at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections accepted from one listener before the worker's other tasks get their turn.
const ACCEPTS_MAX: usize = 16;

/// How long we listen after we stopped talking, so that unread queries do not turn the last replies
/// into a reset.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// Octets read and thrown away meanwhile.
const LINGER_OCTETS_MAX: usize = 64 << 10;

/// A socket that connections come from.
pub(crate) trait Door: AsRawFd {
    /// Takes the next one, which does not block, with its client's address and port.
    fn accept(&self) -> io::Result<(Socket, (IpAddr, u16))>;
}

impl Door for TcpListener {
    fn accept(&self) -> io::Result<(Socket, (IpAddr, u16))> {
        let (stream, peer) = sys::accept(self.as_fd())?;
        let peer = peer.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((stream, (peer.ip().to_canonical(), peer.port())))
    }
}

impl Door for UnixListener {
    fn accept(&self) -> io::Result<(Socket, (IpAddr, u16))> {
        let (stream, _) = sys::accept(self.as_fd())?;
        // Whoever it is, it is on this machine.
        Ok((stream, (local::PEER, 0)))
    }
}

/// An open connection, whatever it speaks.
pub(crate) trait AnyConnection {
    /// Ends it and gives its place to another at once.
    fn evict(&self);

    /// Asks it to end when nothing waits any more.
    fn stop(&self);

    /// Returns how many octets it is charged for.
    fn held(&self) -> usize {
        0
    }

    /// Ends it because it holds more than its share.
    fn shed(&self) {
        self.evict();
    }
}

/// What one worker's connections need to speak in encrypted form.
pub(crate) type Encryption =
    (Arc<Handshakes>, Arc<TlsCell>, Option<Arc<ObliviousKeys>>, Option<Rc<RefCell<Opener>>>);

/// What one worker's connections share.
pub(crate) struct Shared<S: Service> {
    service: Rc<S>,
    plan: TcpPlan,
    counters: Arc<Counters>,
    places: Arc<Places>,
    handshakes: Arc<Handshakes>,
    tls_acceptor: RefCell<TlsAcceptor>,
    oblivious: Option<Arc<ObliviousKeys>>,
    opener: Option<Rc<RefCell<Opener>>>,
    pool: Rc<Pool>,
    budget: Arc<Budget>,
    scratch: RefCell<Scratch<Deferred<S>>>,
    http: http::Builder,
    table: RefCell<Table<Rc<dyn AnyConnection>>>,
    tasks: RefCell<JoinSet<()>>,
}

impl<S: Service + 'static> Shared<S> {
    pub(crate) fn new(
        service: Rc<S>,
        plan: TcpPlan,
        (buffered_octets_max, budget): (usize, Arc<Budget>),
        places: Arc<Places>,
        (handshakes, tls, oblivious, opener): Encryption,
        counters: Arc<Counters>,
    ) -> Rc<Self> {
        Rc::new(Self {
            service,
            plan,
            counters,
            places,
            handshakes,
            tls_acceptor: RefCell::new(TlsAcceptor::new(tls)),
            oblivious,
            opener,
            pool: Pool::new(buffered_octets_max),
            budget,
            scratch: RefCell::new(Scratch::new()),
            http: http::limits_h1(&plan),
            table: RefCell::new(Table::new()),
            tasks: RefCell::new(JoinSet::new()),
        })
    }

    /// Accepts connections until it is dropped.
    pub(crate) async fn accept<D: Door>(
        self: Rc<Self>,
        listener: AsyncFd<D>,
        listener_info: Arc<ListenerInfo>,
    ) -> io::Result<()> {
        loop {
            let mut ready = listener.readable().await?;
            let mut accepts = 0..ACCEPTS_MAX;
            while accepts.next().is_some() {
                match Door::accept(listener.get_ref()) {
                    Ok((stream, peer)) => self.open(stream, peer, &listener_info),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        ready.clear_ready();
                        break;
                    }
                    Err(error) if is_of_one_connection(&error) => self.counters.tcp_accept_errors.bump(),
                    Err(_) => {
                        self.counters.tcp_accept_errors.bump();
                        self.evict();
                        sleep(ACCEPT_PAUSE).await;
                        break;
                    }
                }
            }
            if accepts.is_empty() {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Takes a new connection in, if there is a place.
    fn open(self: &Rc<Self>, stream: Socket, peer: (IpAddr, u16), listener_info: &Arc<ListenerInfo>) {
        let opening =
            if is_proxy(&listener_info.proxies, peer.0) { Opening::Header } else { Opening::Queries };
        let Some(mut place) = self.find_place() else {
            self.counters.tcp_refused_full.bump();
            return;
        };
        // A proxy is charged for whom it speaks, once it has said so.
        if opening == Opening::Queries && !place.charge(self.plan.client(peer.0)) {
            self.counters.tcp_refused_client.bump();
            return;
        }
        let secure = match listener_info.connections {
            Connections::Https | Connections::Http | Connections::LocalHttp => {
                self.open_http((stream, peer), listener_info, place, opening);
                return;
            }
            Connections::Dns | Connections::Dnscrypt | Connections::Local => None,
            Connections::Tls => {
                let Some(secure) = self.secure(peer.0, opening, listener_info) else {
                    self.counters.tls_refused.bump();
                    return;
                };
                Some(secure)
            }
        };
        let transport = match listener_info.connections {
            Connections::Tls => Transport::Tls,
            Connections::Dnscrypt => Transport::Dnscrypt,
            Connections::Local => Transport::Unix,
            _ => Transport::Tcp,
        };
        // Linux hands the option down from the listening socket.
        let is_inherited = cfg!(any(target_os = "linux", target_os = "android"));
        if !is_inherited && transport != Transport::Unix && stream.set_tcp_nodelay(true).is_err() {
            self.counters.tcp_accept_errors.bump();
            return;
        }
        self.counters.tcp_accepted.bump();
        let connection = Rc::new(Connection::new(
            Stream::new(stream),
            secure,
            Rc::clone(&self.pool),
            self.plan.output_octets_max,
            place,
            Arc::clone(&self.counters),
        ));
        let key = self.table.borrow_mut().insert(Rc::clone(&connection) as Rc<dyn AnyConnection>);
        let conversation = Conversation::new(
            Rc::clone(self),
            connection,
            key,
            peer,
            (listener_info.listener, transport),
            opening,
        );
        self.spawn(run(conversation));
    }

    /// Takes in a new connection that speaks HTTP.
    fn open_http(
        self: &Rc<Self>,
        (stream, peer): (Socket, (IpAddr, u16)),
        listener_info: &Arc<ListenerInfo>,
        place: Place,
        opening: Opening,
    ) {
        let has_header = opening == Opening::Header;
        if listener_info.connections == Connections::Https && !has_header && !self.admits_handshake(peer.0) {
            self.counters.tls_refused.bump();
            return;
        }
        let is_local = listener_info.connections == Connections::LocalHttp;
        if !is_local && stream.set_tcp_nodelay(true).is_err() {
            self.counters.tcp_accept_errors.bump();
            return;
        }
        self.counters.tcp_accepted.bump();
        let handle = http::Handle::new(place, self.account());
        let key = self.table.borrow_mut().insert(Rc::clone(&handle) as Rc<dyn AnyConnection>);
        let listener_info = Arc::clone(listener_info);
        let accepted = http::Accepted { stream, peer, listener_info, handle, key, has_header };
        self.spawn(http::run(Rc::clone(self), accepted));
    }

    /// Runs a connection; it ends with the worker.
    pub(crate) fn spawn(&self, connection: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(connection);
    }

    /// Returns the limits.
    pub(crate) const fn plan(&self) -> &TcpPlan {
        &self.plan
    }

    /// Returns the counters.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns who answers.
    pub(crate) const fn service(&self) -> &Rc<S> {
        &self.service
    }

    /// Returns how HTTP/1.1 is spoken.
    pub(crate) const fn http(&self) -> &http::Builder {
        &self.http
    }

    /// Returns the keys of the oblivious target, if this is one.
    pub(crate) fn oblivious(&self) -> Option<&ObliviousKeys> {
        self.oblivious.as_deref()
    }

    /// Returns how to speak TLS with clients that speak HTTP; `None` when there is no certificate.
    pub(crate) fn https_config(&self, listener_info: &ListenerInfo) -> Option<Arc<ServerConfig>> {
        self.tls_acceptor.borrow_mut().https(listener_info.client_certificates)
    }

    /// Returns the text of the file that an authority looks for which is asked for a certificate.
    pub(crate) fn challenge(&self, token: &str) -> Option<String> {
        self.tls_acceptor.borrow().challenge(token)
    }

    /// Returns how to speak TLS in QUIC; `None` when there is no certificate.
    pub(crate) fn quic_config(
        &self,
        listener_info: &ListenerInfo,
        protocols: &[&[u8]],
    ) -> Option<Arc<ServerConfig>> {
        self.tls_acceptor.borrow().quic(listener_info.client_certificates, protocols)
    }

    /// Returns the channel of changes to how TLS is spoken.
    pub(crate) fn tls_changes(&self) -> watch::Receiver<Option<Arc<Tls>>> {
        self.tls_acceptor.borrow().changes()
    }

    /// Takes a connection into the table; returns its key.
    pub(crate) fn insert(&self, connection: Rc<dyn AnyConnection>) -> usize {
        self.table.borrow_mut().insert(connection)
    }

    /// Returns how many connections are open, of all workers together.
    pub(crate) fn taken(&self) -> usize {
        self.places.taken()
    }

    /// Takes a handshake from what a client may have.
    pub(crate) fn admits_handshake(&self, client: IpAddr) -> bool {
        self.handshakes.admit(client, self.service.now().monotonic_ms)
    }

    /// Notes that a connection has something to do.
    pub(crate) fn busy(&self, key: usize) {
        self.table.borrow_mut().busy(key);
    }

    /// Notes that a connection is quiet from here on.
    pub(crate) fn quiet(&self, key: usize) {
        self.table.borrow_mut().quiet(key);
    }

    /// Returns what takes a connection out of the table when it is dropped.
    pub(crate) fn entry(self: &Rc<Self>, key: usize) -> Entry<S> {
        Entry { shared: Rc::clone(self), key }
    }

    /// Lends out room for what is read; it is to be given back before anything else happens.
    pub(crate) fn take_input(&self) -> Box<[u8]> {
        std::mem::take(&mut self.scratch.borrow_mut().input)
    }

    /// Takes back what was lent out.
    pub(crate) fn return_input(&self, input: Box<[u8]>) {
        self.scratch.borrow_mut().input = input;
    }

    /// Lends out room for a reply of any size.
    pub(crate) fn with_room<T>(&self, work: impl FnOnce(&S, &mut [u8]) -> T) -> T {
        let mut scratch = self.scratch.borrow_mut();
        let room = scratch.output.get_mut(..MESSAGE_OCTETS_MAX).unwrap_or(&mut []);
        work(&self.service, room)
    }

    /// Begins a TLS session; `None` when there may be none now.
    fn secure(&self, client: IpAddr, opening: Opening, listener_info: &ListenerInfo) -> Option<Box<Secure>> {
        if opening == Opening::Queries && !self.admits_handshake(client) {
            return None;
        }
        let session = self.tls_acceptor.borrow_mut().begin(listener_info.client_certificates)?;
        let mut scratch = self.scratch.borrow_mut();
        scratch.prepare_tls();
        Some(Secure::new(session, Rc::clone(&self.pool), Rc::clone(&scratch.sealed)))
    }

    /// Finds a place, if need be by ending the connection that has been quiet for longest.
    pub(crate) fn find_place(&self) -> Option<Place> {
        self.places.take().or_else(|| {
            self.evict();
            self.places.take()
        })
    }

    /// Ends the connection that has been quiet for longest.
    fn evict(&self) {
        let mut table = self.table.borrow_mut();
        let Some((key, connection)) = table.longest_quiet() else { return };
        connection.evict();
        table.busy(key);
    }

    /// Opens the account of a connection.
    pub(crate) fn account(&self) -> Arc<Account> {
        Account::new(&self.budget, &self.plan)
    }

    /// Ends connections that hold most, whenever all of them hold more than they may, until it is
    /// dropped.
    pub(crate) async fn keep_to_budget(self: Rc<Self>) -> io::Result<()> {
        loop {
            let exceeded = self.budget.exceeded();
            while self.budget.is_exceeded() && self.shed() {}
            exceeded.await;
        }
    }

    /// Ends the connection of this worker that holds most, if that is more than its share of what
    /// all connections of all workers hold; false if there is none. When all hold too much, at
    /// least one holds more than its share.
    fn shed(&self) -> bool {
        let share = self.budget.held() / self.taken().max(1);
        let table = self.table.borrow();
        let Some(hoarder) = table.iter().max_by_key(|connection| connection.held()) else { return false };
        let is_over = hoarder.held() > share;
        if is_over {
            hoarder.shed();
        }
        is_over
    }

    /// Asks all connections to end when nothing waits any more.
    pub(crate) fn stop(&self) {
        for connection in self.table.borrow().iter() {
            connection.stop();
        }
    }

    /// Waits until all connections have ended.
    pub(crate) async fn ended(&self) {
        let mut tasks = self.tasks.take();
        while tasks.join_next().await.is_some() {}
    }
}

/// A connection's place in the table.
pub(crate) struct Entry<S: Service> {
    shared: Rc<Shared<S>>,
    key: usize,
}

impl<S: Service> Drop for Entry<S> {
    fn drop(&mut self) {
        drop(self.shared.table.borrow_mut().remove(self.key));
    }
}

/// Serves one connection until it ends.
async fn run<S: Service>(mut conversation: Conversation<S>) {
    let mut timer = pin!(None::<Sleep>);
    let ending = poll_fn(|context| conversation.poll(context, timer.as_mut())).await;
    ending.count(&conversation.connection.counters);
    match ending {
        // Broken TLS: so that the alert arrives.
        Ending::Finished | Ending::Stopping | Ending::Tls => {
            conversation.connection.say_goodbye();
            // It does not matter which of the two comes first.
            let _ = timeout(LINGER_TIMEOUT, linger(&conversation)).await;
        }
        Ending::Client | Ending::Idle | Ending::Evicted => conversation.connection.say_goodbye(),
        Ending::Error
        | Ending::SlowHandshake
        | Ending::HandshakesFull
        | Ending::SlowWriter
        | Ending::SlowReader
        | Ending::Malformed
        | Ending::MalformedProxy
        | Ending::ClientFull => {}
    }
}

/// Says goodbye and reads on until the client does the same.
async fn linger<S: Service>(conversation: &Conversation<S>) {
    let stream = &conversation.connection.stream;
    if stream.socket().shutdown(Shutdown::Write).is_err() {
        return;
    }
    let Ok(watched) = stream.watch() else { return };
    let mut octets = 0;
    while octets < LINGER_OCTETS_MAX {
        let Ok(mut guard) = watched.readable().await else { return };
        let mut scratch = conversation.shared.scratch.borrow_mut();
        match guard.try_io(|_| stream.socket().read(&mut scratch.input)) {
            Ok(Ok(0) | Err(_)) => return,
            Ok(Ok(read)) => octets += read,
            Err(_would_block) => {}
        }
    }
}

/// Whether a failure to accept concerns that connection only (accept(2): network errors of the new
/// connection are reported by `accept`), so that the next one may do.
fn is_of_one_connection(error: &io::Error) -> bool {
    !matches!(
        error.raw_os_error(),
        Some(
            libc::EMFILE
                | libc::ENFILE
                | libc::ENOBUFS
                | libc::ENOMEM
                | libc::EBADF
                | libc::EINVAL
                | libc::ENOTSOCK
        )
    )
}
