//! Runs one worker's sockets until it is stopped.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::sync::watch;
use tokio::task::{self, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};

use crate::bind::WorkerSockets;
use crate::busy_poll;
use crate::counters::Counters;
use crate::dnscrypt::Opener;
use crate::local::datagrams::{self, UnixDatagramSocket};
use crate::quic;
use crate::service::Service;
use crate::sys;
use crate::tcp;
use crate::udp::Reader;
use plan::listeners::Datagrams;

/// How often a stopping worker looks whether datagrams still wait for their replies.
const WAITING_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Stops all workers. Dropping it stops them at once.
#[derive(Debug)]
pub struct Stopper(watch::Sender<Option<Instant>>);

/// Hears that it is time to stop.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<Option<Instant>>);

/// Returns both ends of the signal to stop.
pub fn stop() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(None);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Tells the workers to take no more queries, and to leave those that wait at `deadline`.
    pub fn stop(&self, deadline: Instant) {
        self.0.send_replace(Some(deadline));
    }
}

impl Stop {
    /// Waits for the signal; returns the deadline.
    pub async fn requested(&mut self) -> Instant {
        match self.0.wait_for(Option::is_some).await {
            Ok(deadline) => deadline.unwrap_or_else(Instant::now),
            Err(_) => Instant::now(),
        }
    }
}

/// Serves until `stop` says otherwise; then takes no more queries and waits, at most until the
/// deadline, for the replies to those it has.
///
/// Runs on the worker's own thread, inside a [`LocalRuntime`](tokio::runtime::LocalRuntime). An
/// error means that the runtime refused a socket; what happens on the sockets themselves is
/// counted, not returned.
pub async fn serve<S: Service + 'static>(
    service: Rc<S>,
    sockets: WorkerSockets,
    counters: Arc<Counters>,
    mut stop: Stop,
) -> io::Result<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn_local(busy_poll::poll(Rc::clone(&service)));
    let mut readers = Vec::with_capacity(sockets.udp.len());
    let seat = sockets.seat.map(Rc::new);
    let opener = sockets.key_agreements.map(|key_agreements| {
        let opener = Opener::new(sockets.dnscrypt, key_agreements, sockets.workers, Arc::clone(&counters));
        Rc::new(RefCell::new(opener))
    });
    for opened in sockets.udp {
        let opener = opener.clone().filter(|_| opened.listener_info.datagrams == Some(Datagrams::Dnscrypt));
        let reader = Reader::new(
            Rc::clone(&service),
            opened.socket,
            opened.address,
            &sockets.udp_plan,
            opened.listener_info,
            Arc::clone(&counters),
            seat.clone().filter(|_| opened.is_shared),
            opener,
        )?;
        let reader = Rc::new(RefCell::new(reader));
        tasks.spawn_local(read(Rc::clone(&reader)));
        readers.push(reader);
    }
    let connections = tcp::Shared::new(
        Rc::clone(&service),
        sockets.tcp_plan,
        (sockets.buffered_octets_max, sockets.budget),
        sockets.places,
        (sockets.handshakes, sockets.tls, sockets.oblivious, opener),
        Arc::clone(&counters),
    );
    tasks.spawn_local(Rc::clone(&connections).keep_to_budget());
    for opened in sockets.tcp {
        opened.socket.set_nonblocking(true)?;
        let listener = sys::watch(opened.socket, Interest::READABLE)?;
        tasks.spawn_local(Rc::clone(&connections).accept(listener, opened.listener_info));
    }

    for (listener, listener_info) in sockets.local {
        let listener = sys::watch(listener, Interest::READABLE)?;
        tasks.spawn_local(Rc::clone(&connections).accept(listener, listener_info));
    }

    let mut unix_sockets = Vec::with_capacity(sockets.local_datagrams.len());
    for (socket, listener_info) in sockets.local_datagrams {
        let unix_socket = UnixDatagramSocket::new(
            sys::watch(socket, Interest::READABLE)?,
            listener_info,
            Arc::clone(&counters),
        );
        tasks.spawn_local(datagrams::serve(Rc::clone(&service), Rc::clone(&unix_socket)));
        unix_sockets.push(unix_socket);
    }

    for opened in sockets.quic {
        let config = sockets.quic_config.clone();
        tasks.spawn_local(quic::accept(Rc::clone(&connections), opened.socket, config, opened.listener_info));
    }

    let deadline = tokio::select! {
        biased;
        deadline = stop.requested() => deadline,
        // A task that reads sockets ends only when the runtime does.
        Some(ended) = tasks.join_next() => return ended.unwrap_or_else(|error| Err(io::Error::other(error))),
    };

    tasks.shutdown().await;
    for reader in &readers {
        // What has arrived by now is still answered.
        reader.borrow_mut().drain();
    }
    connections.stop();
    let rest = async {
        connections.ended().await;
        while readers.iter().any(|reader| reader.borrow().is_waiting())
            || unix_sockets.iter().any(UnixDatagramSocket::is_waiting)
        {
            sleep(WAITING_CHECK_INTERVAL).await;
        }
    };
    // At the deadline whoever still waits is left; dropping the sockets closes them.
    let _ = timeout_at(deadline, rest).await;
    Ok(())
}

/// Answers datagrams until it is dropped.
async fn read<S: Service>(reader: Rc<RefCell<Reader<S>>>) -> io::Result<()> {
    let outlet = reader.borrow().outlet();
    loop {
        let mut ready = outlet.socket.readable().await?;
        if let Some(pause) = reader.borrow().pause() {
            // tidy: allow(sleep): for 50 µs, where the timers of the runtime count milliseconds
            std::thread::sleep(pause);
        }
        let is_all = reader.borrow_mut().drain();
        if is_all {
            // A batch that was not full found the queue empty at its end, so whatever comes after
            // it wakes us again. Asking once more only to hear "nothing" would cost a system call
            // per wake-up.
            ready.clear_ready();
        } else {
            task::yield_now().await;
        }
    }
}
