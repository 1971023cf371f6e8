//! DNS over HTTP/1.1 and HTTP/2 (RFC 8484), over TLS or behind a proxy that speaks it, also over
//! Unix sockets.
//!
//! `hyper` reads requests of HTTP/1.1, `http2` those of HTTP/2; the answer comes from the same
//! engine, in the worker's own thread. What a stranger can make grow is bounded: connections and
//! handshakes as for TCP, streams and waiting queries of each connection, heads, bodies, streams
//! that are opened and reset, and the time that each of these may take.

mod answer;
mod corked;
mod forwarded;
mod h3;
mod json;
mod limits;
mod oblivious;
mod request;
mod two;

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use engine::Transport;
use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::Socket;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::HandshakeKind;

pub(crate) use self::answer::Visit;
use self::corked::{Acknowledge, Carrier, Corked};
pub(crate) use self::h3::talk_h3;
use self::limits::GOODBYE_TIMEOUT;
pub(crate) use self::limits::{Builder, limits_h1};
use crate::bind::ListenerInfo;
use crate::budget::Account;
use crate::proxy::{self, HEADER_OCTETS_MAX, Source, Unread};
use crate::service::Service;
use crate::tcp::{AnyConnection, Ending, Place, Shared};
use crate::tls::{ALPN_CHALLENGE, ShownCertificate};
use plan::listeners::{Connections, TcpPlan};

/// One connection as the outside sees it.
pub(crate) struct Handle {
    place: RefCell<Option<Place>>,
    account: Arc<Account>,
    evicted: Cell<bool>,
    /// Whether its place was taken because it held more than its share.
    is_shed: Cell<bool>,
    is_stopping: Cell<bool>,
    changed: Notify,
    /// Requests that are being worked on.
    working: Cell<u32>,
    /// When something was last done.
    active_at: Cell<Instant>,
    opened_at: Instant,
    requests: Cell<u64>,
}

impl AnyConnection for Handle {
    fn evict(&self) {
        drop(self.place.take());
        self.evicted.set(true);
        self.changed.notify_one();
    }

    fn stop(&self) {
        self.is_stopping.set(true);
        self.changed.notify_one();
    }

    fn held(&self) -> usize {
        if self.evicted.get() { 0 } else { self.account.held() }
    }

    fn shed(&self) {
        self.is_shed.set(true);
        self.account.write_off();
        self.evict();
    }
}

impl Handle {
    pub(crate) fn new(place: Place, account: Arc<Account>) -> Rc<Self> {
        Rc::new(Self {
            place: RefCell::new(Some(place)),
            account,
            evicted: Cell::new(false),
            is_shed: Cell::new(false),
            is_stopping: Cell::new(false),
            changed: Notify::new(),
            working: Cell::new(0),
            active_at: Cell::new(Instant::now()),
            opened_at: Instant::now(),
            requests: Cell::new(0),
        })
    }

    /// Notes for as long as the result lives that a request is being worked on.
    pub(crate) fn working(self: &Rc<Self>) -> Working {
        self.working.set(self.working.get() + 1);
        self.requests.set(self.requests.get() + 1);
        self.touch();
        Working(Rc::clone(self))
    }

    /// Notes that the connection has ended, whatever of its requests is still under way.
    fn leave(&self) {
        drop(self.place.take());
        self.evicted.set(true);
    }

    /// Returns whether one request is being worked on and no other.
    pub(super) const fn is_last(&self) -> bool {
        self.working.get() == 1
    }

    /// Notes that so many requests came.
    fn count(&self, requests: u64) {
        self.requests.set(self.requests.get() + requests);
    }

    /// Notes that something was done.
    pub(crate) fn touch(&self) {
        self.active_at.set(Instant::now());
    }

    /// Returns whether it is as old as it may become.
    pub(crate) fn is_old(&self, plan: &TcpPlan) -> bool {
        plan.age_max.is_some_and(|max| self.opened_at.elapsed() >= max)
    }

    /// Waits until it is as old as it may become.
    pub(crate) async fn grows_old(&self, plan: &TcpPlan) {
        match plan.age_max {
            Some(max) => sleep_until(self.opened_at + max).await,
            None => pending().await,
        }
    }

    /// Waits for the next change from outside.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns what it holds of replies.
    pub(crate) const fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Returns whether its place was given to another.
    pub(crate) const fn is_evicted(&self) -> bool {
        self.evicted.get()
    }

    /// Returns why its place was taken.
    pub(crate) const fn eviction(&self) -> Ending {
        if self.is_shed.get() { Ending::SlowReader } else { Ending::Evicted }
    }

    /// Returns whether it was asked to end when nothing waits any more.
    pub(crate) const fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// Waits for `work`, unless the connection has to end before it is done.
    pub(crate) async fn unless_evicted<T>(&self, work: impl Future<Output = T>) -> Result<T, Ending> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = self.changed() => {
                    if self.is_evicted() {
                        return Err(self.eviction());
                    }
                    if self.is_stopping() {
                        return Err(Ending::Stopping);
                    }
                }
            }
        }
    }
}

/// A request that is being worked on.
pub(crate) struct Working(Rc<Handle>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.working.set(self.0.working.get().saturating_sub(1));
        self.0.touch();
    }
}

/// A connection that was accepted.
pub(crate) struct Accepted {
    pub(crate) stream: Socket,
    pub(crate) peer: (IpAddr, u16),
    pub(crate) listener_info: Arc<ListenerInfo>,
    pub(crate) handle: Rc<Handle>,
    /// Its place in the worker's table.
    pub(crate) key: usize,
    /// Whether it begins with a PROXY header.
    pub(crate) has_header: bool,
}

/// Serves one connection until it ends.
pub(crate) async fn run<S: Service + 'static>(shared: Rc<Shared<S>>, accepted: Accepted) {
    let key = accepted.key;
    // However this ends, also by being dropped, the worker forgets the connection.
    let _entry = shared.entry(key);
    let handle = Rc::clone(&accepted.handle);
    let ending = match serve(&shared, accepted).await {
        Ok(()) => Ending::Client,
        Err(ending) => ending,
    };
    ending.count(shared.counters());
    handle.leave();
}

async fn serve<S: Service + 'static>(shared: &Rc<Shared<S>>, accepted: Accepted) -> Result<(), Ending> {
    let Accepted { stream, mut peer, listener_info, handle, key, has_header } = accepted;
    let plan = *shared.plan();
    if listener_info.connections == Connections::LocalHttp {
        let stream = UnixStream::from_std(stream.into()).map_err(|_| Ending::Error)?;
        let visit = Visit::new(Rc::clone(shared), (handle, key), listener_info, peer, Transport::Https);
        return talk(shared, Rc::new(visit), (stream, Carrier::Plain), None).await;
    }
    let mut stream = tokio::net::TcpStream::from_std(stream.into()).map_err(|_| Ending::Error)?;
    let mut verified = true;
    if has_header {
        let source = timeout(plan.query_timeout, read_header(&mut stream));
        let source = handle.unless_evicted(source).await?.map_err(|_| Ending::SlowWriter)??;
        if let Source::Client { address, port, stream } = source {
            (peer, verified) = ((address, port), stream);
            let is_admitted =
                handle.place.borrow_mut().as_mut().map(|place| place.charge(plan.client(address)));
            match is_admitted {
                Some(true) => {}
                Some(false) => return Err(Ending::ClientFull),
                None => return Err(Ending::Evicted),
            }
        }
    }
    let visit = Visit::new(
        Rc::clone(shared),
        (Rc::clone(&handle), key),
        Arc::clone(&listener_info),
        peer,
        Transport::Https,
    );
    let visit = if verified { visit } else { visit.unproven() };
    if listener_info.connections == Connections::Http {
        return talk(shared, Rc::new(visit), (stream, Carrier::Plain), None).await;
    }
    if has_header && !shared.admits_handshake(peer.0) {
        return Err(Ending::HandshakesFull);
    }
    let config = shared.https_config(&listener_info).ok_or(Ending::HandshakesFull)?;
    let handshake = timeout(plan.handshake_timeout, TlsAcceptor::from(config).accept(Corked::new(stream)));
    let stream = handle.unless_evicted(handshake).await?.map_err(|_| Ending::SlowHandshake)?;
    let stream = stream.map_err(|_| Ending::Tls)?;
    shared.counters().tls_handshakes.bump();
    handle.touch();
    let session = stream.get_ref().1;
    if session.handshake_kind() == Some(HandshakeKind::Resumed) {
        shared.counters().tls_resumed.bump();
    }
    let certificate = ShownCertificate::of(session.peer_certificates());
    let visit = visit.named(session.server_name()).shown(certificate);
    let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    if protocol.as_deref() == Some(ALPN_CHALLENGE) {
        // An authority has seen what it looked for; nothing else is served to it (RFC 8737 §3).
        return Err(Ending::Finished);
    }
    talk(shared, Rc::new(visit), (stream, Carrier::Tls), protocol.as_deref()).await
}

/// Reads a PROXY header and not an octet more.
async fn read_header(stream: &mut tokio::net::TcpStream) -> Result<Source, Ending> {
    let mut bytes = [0; HEADER_OCTETS_MAX];
    let mut known = 0;
    loop {
        let seen = stream.peek(&mut bytes).await.map_err(|_| Ending::Error)?;
        let came = bytes.get(..seen).unwrap_or(&[]);
        match proxy::parse(came) {
            Ok((source, after)) => {
                let len = seen - after.len();
                let header = bytes.get_mut(..len).unwrap_or(&mut []);
                stream.read_exact(header).await.map_err(|_| Ending::Error)?;
                return Ok(source);
            }
            Err(Unread::Malformed) => return Err(Ending::MalformedProxy),
            Err(Unread::Incomplete) if seen == 0 => return Err(Ending::Client),
            Err(Unread::Incomplete) => {
                // What was seen stays readable, so asking again at once would spin.
                if seen == known {
                    tokio::time::sleep(HEADER_PAUSE).await;
                }
                known = seen;
            }
        }
    }
}

/// How long to wait for the rest of a PROXY header before looking again.
const HEADER_PAUSE: Duration = Duration::from_millis(10);

/// Speaks HTTP until the connection ends: the version that was agreed on in the handshake, or that
/// the first octets tell.
async fn talk<S: Service + 'static, IO: AsyncRead + AsyncWrite + Acknowledge + Unpin + 'static>(
    shared: &Rc<Shared<S>>,
    visit: Rc<Visit<S>>,
    (mut stream, carrier): (IO, Carrier),
    protocol: Option<&[u8]>,
) -> Result<(), Ending> {
    match protocol {
        Some(b"h2") => return two::conversation(visit, (stream, carrier), Vec::new()).await,
        Some(b"http/1.1") => return talk_one(shared, visit, TokioIo::new(stream)).await,
        _ => {}
    }
    let handle = Rc::clone(visit.handle());
    let opening = timeout(shared.plan().first_timeout, read_opening(&mut stream));
    let (is_two, opening) = handle.unless_evicted(opening).await?.map_err(|_| Ending::Idle)??;
    if is_two {
        two::conversation(visit, (stream, carrier), opening).await
    } else {
        talk_one(shared, visit, TokioIo::new(Reread { opening, stream })).await
    }
}

/// Reads until it is clear whether a client that was not asked speaks HTTP/2; returns what was
/// read.
async fn read_opening(stream: &mut (impl AsyncRead + Unpin)) -> Result<(bool, Vec<u8>), Ending> {
    let mut opening = Vec::new();
    loop {
        let preface = http2::PREFACE.get(..opening.len()).unwrap_or(http2::PREFACE);
        if !opening.starts_with(preface) {
            return Ok((false, opening));
        }
        if opening.len() >= http2::PREFACE.len() {
            return Ok((true, opening));
        }
        let mut octets = [0; 512];
        match stream.read(&mut octets).await {
            Ok(0) => return Err(Ending::Client),
            Ok(read) => opening.extend_from_slice(octets.get(..read).unwrap_or(&[])),
            Err(_) => return Err(Ending::Error),
        }
    }
}

/// A stream whose first octets were read and are read again.
struct Reread<IO> {
    opening: Vec<u8>,
    stream: IO,
}

impl<IO: AsyncRead + Unpin> AsyncRead for Reread<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.opening.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, room);
        }
        let octets = self.opening.len().min(room.remaining());
        room.put_slice(self.opening.get(..octets).unwrap_or(&[]));
        self.opening.drain(..octets);
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Reread<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, octets)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Speaks HTTP/1.1 until the connection ends.
async fn talk_one<S: Service + 'static, IO: Read + Write + Unpin + 'static>(
    shared: &Rc<Shared<S>>,
    visit: Rc<Visit<S>>,
    stream: IO,
) -> Result<(), Ending> {
    let plan = *shared.plan();
    let handle = Rc::clone(visit.handle());
    let service = service_fn(move |request| answer::answer(Rc::clone(&visit), request));
    let mut connection = pin!(shared.http().serve_connection(stream, service));
    let mut goodbye: Option<(Instant, Ending)> = None;
    loop {
        let is_busy = handle.working.get() > 0;
        let quiet =
            if handle.requests.get() == 0 { plan.first_timeout } else { plan.idle_timeout(shared.taken()) };
        let idle_at =
            if is_busy { Instant::now() + plan.idle_timeout } else { handle.active_at.get() + quiet };
        let deadline = goodbye.map_or(idle_at, |(at, _)| at);
        tokio::select! {
            biased;
            done = connection.as_mut() => return match (done, goodbye) {
                (_, Some((_, ending))) => Err(ending),
                (Ok(()), None) => Ok(()),
                (Err(error), None) => Err(ending(&error)),
            },
            () = handle.changed() => {
                if handle.is_evicted() {
                    return Err(handle.eviction());
                }
                if handle.is_stopping() && goodbye.is_none() {
                    connection.as_mut().graceful_shutdown();
                    // The worker's own deadline comes first, if it is sooner.
                    goodbye = Some((Instant::now() + plan.idle_timeout, Ending::Stopping));
                }
            }
            () = handle.grows_old(&plan), if goodbye.is_none() => {
                connection.as_mut().graceful_shutdown();
                goodbye = Some((Instant::now() + plan.idle_timeout, Ending::Finished));
            }
            () = sleep_until(deadline) => {
                if let Some((_, ending)) = goodbye {
                    return Err(ending);
                }
                if handle.working.get() == 0 && handle.active_at.get() + quiet <= Instant::now() {
                    connection.as_mut().graceful_shutdown();
                    goodbye = Some((Instant::now() + GOODBYE_TIMEOUT, Ending::Idle));
                }
            }
        }
    }
}

/// Returns why `hyper` ended a connection.
fn ending(error: &hyper::Error) -> Ending {
    if error.is_timeout() {
        return Ending::SlowWriter;
    }
    if error.is_parse() {
        return Ending::Malformed;
    }
    if error.is_incomplete_message() {
        return Ending::Client;
    }
    match std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>()) {
        Some(_) => Ending::Error,
        None => Ending::Malformed,
    }
}
