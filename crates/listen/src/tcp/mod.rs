//! Connections: accept, limit, serve.
//!
//! When all places are taken, the connection of this worker that has been quiet for longest gives way to the new one:
//! its client loses nothing but a round trip (RFC 7766 §6.2.3 lets servers close idle connections at any time), while
//! refusing newcomers would let whoever came first keep everybody else out. Only when all are busy is the new one refused.

mod buffer;
mod connection;
mod conversation;
mod places;
mod table;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::buffer::Pool;
use self::connection::{Connection, Ending};
use self::conversation::{Conversation, Deferred, Opening, Scratch};
use self::places::Place;
pub(crate) use self::places::Places;
use self::table::Table;
use crate::bind::Entrance;
use crate::counters::Counters;
use crate::plan::TcpPlan;
use crate::service::Service;
use crate::sys;
use crate::udp::is_proxy;

/// How long to wait when the system has no descriptor or memory for another connection. The listening socket stays
/// readable meanwhile, so trying again at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections accepted from one listener before the worker's other tasks get their turn.
const ACCEPTS_MAX: usize = 16;

/// How long we listen after we stopped talking, so that unread queries do not turn the last replies into a reset.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// Octets read and thrown away meanwhile.
const LINGER_OCTETS_MAX: usize = 64 << 10;

/// What one worker's connections share.
pub(crate) struct Shared<S: Service> {
    service: Rc<S>,
    plan: TcpPlan,
    counters: Arc<Counters>,
    places: Arc<Places>,
    pool: Rc<Pool>,
    scratch: RefCell<Scratch<Deferred<S>>>,
    table: RefCell<Table<Rc<Connection>>>,
    tasks: RefCell<JoinSet<()>>,
}

impl<S: Service + 'static> Shared<S> {
    pub(crate) fn new(
        service: Rc<S>,
        plan: TcpPlan,
        buffered_octets_max: usize,
        places: Arc<Places>,
        counters: Arc<Counters>,
    ) -> Rc<Self> {
        Rc::new(Self {
            service,
            plan,
            counters,
            places,
            pool: Pool::new(buffered_octets_max),
            scratch: RefCell::new(Scratch::new()),
            table: RefCell::new(Table::new()),
            tasks: RefCell::new(JoinSet::new()),
        })
    }

    /// Accepts connections until it is dropped.
    pub(crate) async fn accept(
        self: Rc<Self>,
        listener: AsyncFd<TcpListener>,
        entrance: Arc<Entrance>,
    ) -> io::Result<()> {
        loop {
            let mut ready = listener.readable().await?;
            for _ in 0..ACCEPTS_MAX {
                match listener.get_ref().accept() {
                    Ok((stream, peer)) => self.open(stream, peer, &entrance),
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
            tokio::task::yield_now().await;
        }
    }

    /// Takes a new connection in, if there is a place.
    fn open(self: &Rc<Self>, stream: TcpStream, peer: SocketAddr, entrance: &Entrance) {
        let peer = (peer.ip().to_canonical(), peer.port());
        let opening = if is_proxy(&entrance.proxies, peer.0) { Opening::Header } else { Opening::Queries };
        let Some(mut place) = self.find_place() else {
            self.counters.tcp_refused_full.bump();
            return;
        };
        // A proxy is charged for whom it speaks, once it has said so.
        if opening == Opening::Queries && !place.charge(self.plan.client(peer.0)) {
            self.counters.tcp_refused_client.bump();
            return;
        }
        let Ok(socket) = prepare(stream) else {
            self.counters.tcp_accept_errors.bump();
            return;
        };
        self.counters.tcp_accepted.bump();
        let connection = Rc::new(Connection::new(
            socket,
            Rc::clone(&self.pool),
            self.plan.output_octets_max,
            place,
            Arc::clone(&self.counters),
        ));
        let key = self.table.borrow_mut().insert(Rc::clone(&connection));
        let conversation =
            Conversation::new(Rc::clone(self), connection, key, peer, entrance.listener, opening);
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(run(conversation));
    }

    fn find_place(&self) -> Option<Place> {
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

/// Serves one connection until it ends.
async fn run<S: Service>(mut conversation: Conversation<S>) {
    let mut timer = pin!(sleep_until(Instant::now() + conversation.shared.plan.first_timeout));
    let ending = poll_fn(|context| conversation.poll(context, timer.as_mut())).await;
    ending.count(&conversation.connection.counters);
    match ending {
        Ending::Finished | Ending::Stopping => {
            // It does not matter which of the two comes first.
            let _ = timeout(LINGER_TIMEOUT, linger(&conversation)).await;
        }
        Ending::Client
        | Ending::Error
        | Ending::Idle
        | Ending::Evicted
        | Ending::SlowWriter
        | Ending::SlowReader
        | Ending::Malformed
        | Ending::MalformedProxy
        | Ending::ClientFull => {}
    }
}

/// Says goodbye and reads on until the client does the same.
async fn linger<S: Service>(conversation: &Conversation<S>) {
    let socket = &conversation.connection.socket;
    if socket.get_ref().shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut octets = 0;
    while octets < LINGER_OCTETS_MAX {
        let Ok(mut guard) = socket.readable().await else { return };
        let mut scratch = conversation.shared.scratch.borrow_mut();
        match guard.try_io(|socket| socket.get_ref().read(&mut scratch.input)) {
            Ok(Ok(0) | Err(_)) => return,
            Ok(Ok(read)) => octets += read,
            Err(_would_block) => {}
        }
    }
}

/// Makes an accepted connection ready for the runtime.
fn prepare(stream: TcpStream) -> io::Result<AsyncFd<TcpStream>> {
    stream.set_nonblocking(true)?;
    // Linux hands the option down from the listening socket.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    stream.set_nodelay(true)?;
    sys::watch(stream, Interest::READABLE | Interest::WRITABLE)
}

/// Whether a failure to accept concerns that connection only (accept(2): network errors of the new connection are reported
/// by `accept`), so that the next one may do.
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
