//! Connections to the channel, of which there are only so many at once.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use crate::channel::{Channel, Context, Listener};
use crate::service::Service;
use crate::{commands, session};

/// Connections at once.
const CONNECTIONS_MAX: usize = 16;
/// Lists leave places to other commands.
const _: () = assert!(crate::lists::LISTS_MAX < CONNECTIONS_MAX);
/// Connections of all listeners that wait for their place.
const PENDING_MAX: usize = 4;
/// How long a client may take to prove itself.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Pause after a failed `accept`, so that a lack of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection with its bytes.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A client that has come.
struct Arrived {
    stream: Box<dyn Stream>,
    /// Whether it has to prove itself.
    is_remote: bool,
}

/// A connection that is open.
struct Open {
    task: AbortHandle,
    /// Whether it has given a command.
    is_at_work: Arc<AtomicBool>,
}

/// Serves the channel until dropped, which ends every connection.
///
/// # Errors
///
/// The runtime cannot take a socket.
pub async fn serve(channel: &Channel, service: &Service) -> io::Result<()> {
    let context = service.context();
    let (sender, mut arrivals) = mpsc::channel(PENDING_MAX);
    let mut listeners = JoinSet::new();
    for listener in &channel.listeners {
        let sender = sender.clone();
        match listener {
            Listener::Tcp(listener) => {
                let listener = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
                listeners.spawn(async move {
                    loop {
                        let accepted = listener.accept().await.map(|(stream, _)| Box::new(stream) as _);
                        arrive(&sender, accepted, true).await;
                    }
                });
            }
            Listener::Unix(listener) => {
                let listener = tokio::net::UnixListener::from_std(listener.try_clone()?)?;
                listeners.spawn(async move {
                    loop {
                        let accepted = listener.accept().await.map(|(stream, _)| Box::new(stream) as _);
                        arrive(&sender, accepted, false).await;
                    }
                });
            }
        }
    }
    let acceptor = channel.tls.clone().map(TlsAcceptor::from);
    let statistics = commands::log_statistics(Arc::clone(context));
    tokio::pin!(statistics);
    let mut connections = JoinSet::new();
    let mut open: VecDeque<Open> = VecDeque::new();
    loop {
        while connections.try_join_next().is_some() {}
        open.retain(|it| !it.task.is_finished());
        if connections.len() >= CONNECTIONS_MAX {
            make_room(&mut connections, &mut open).await;
            continue;
        }
        let arrived = tokio::select! {
            arrived = arrivals.recv() => arrived,
            () = &mut statistics => continue,
        };
        let Some(Arrived { stream, is_remote }) = arrived else { return Ok(()) };
        let is_at_work = Arc::<AtomicBool>::default();
        let (context, begins) = (Arc::clone(context), Arc::clone(&is_at_work));
        let acceptor = acceptor.clone().filter(|_| is_remote);
        let task = connections.spawn(async move {
            match acceptor {
                None => converse(stream, context, &begins).await,
                Some(acceptor) => match timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => converse(Box::new(stream), context, &begins).await,
                    Ok(Err(error)) => debug!(%error, "no TLS with a client of the control channel"),
                    Err(_) => debug!("a client of the control channel is slow to prove itself"),
                },
            }
        });
        open.push_back(Open { task, is_at_work });
    }
}

async fn arrive(sender: &mpsc::Sender<Arrived>, accepted: io::Result<Box<dyn Stream>>, is_remote: bool) {
    match accepted {
        // Nobody listens any more when the server ends.
        Ok(stream) => drop(sender.send(Arrived { stream, is_remote }).await),
        Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
    }
}

/// Ends the oldest connection that has given no command yet; if all have, waits for one of them.
async fn make_room(connections: &mut JoinSet<()>, open: &mut VecDeque<Open>) {
    let idle = open.iter().position(|it| !it.is_at_work.load(Ordering::Relaxed));
    if let Some(idle) = idle.and_then(|at| open.remove(at)) {
        idle.task.abort();
    }
    connections.join_next().await;
}

async fn converse(mut stream: Box<dyn Stream>, context: Arc<Context>, begins: &AtomicBool) {
    if let Err(error) = session::converse(&mut stream, context, begins).await {
        debug!(%error, "a client of the control channel is gone");
    }
    let _ = timeout(session::PATIENCE, stream.shutdown()).await;
}
