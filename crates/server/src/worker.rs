//! A worker: one thread on one core that does everything for its queries.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use config::Plans;
use dnstap::TapWriter;
use engine::explain::Recorder;
use engine::{
    Address, BusyPoll, Client, Clock, Courier, Driver as _, Engine, Outlet, Reply, ReplyTo, SnapshotCell,
    Verdict, Worker,
};
use events::EventWriter;
use listen::{Stop, WorkerSockets, XdpQueue};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, watch};
use tracing::{debug, error};

use super::watchdog::Heartbeat;
use crate::sys;

/// How long before the deadline of an ending server the queries that still wait are given up, so
/// that their clients hear it.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What a worker needs.
pub(crate) struct Parts {
    /// Its number, from zero.
    pub(crate) index: usize,
    /// The core it keeps to.
    pub(crate) core: usize,
    /// What all workers read the time from.
    pub(crate) clock: Clock,
    pub(crate) cell: Arc<SnapshotCell>,
    pub(crate) upstreams: watch::Receiver<Upstreams>,
    /// What is known of servers and zones, by all workers together.
    pub(crate) shared: driver::Shared,
    pub(crate) sockets: WorkerSockets,
    /// Queues of interfaces that it serves besides.
    pub(crate) queues: Vec<XdpQueue>,
    pub(crate) busy_poll: BusyPoll,
    pub(crate) worker_handle: WorkerHandle,
    /// What its operator wants of it.
    pub(crate) asked: mpsc::Receiver<Asked>,
    /// Questions of jobs.
    pub(crate) probes: mpsc::Receiver<driver::Probe>,
    pub(crate) stop: Stop,
    /// Where it tells jobs about queries.
    pub(crate) events: EventWriter,
    /// Where it copies messages to: clients', and those of other servers.
    pub(crate) taps: [TapWriter; 2],
}

/// What an operator wants of a worker.
pub(crate) enum Asked {
    /// To take a query, and say what happens to it.
    Explain(Explaining),
    /// To list the queries that wait.
    List(SyncSender<Vec<driver::Waiting>>),
    /// To end the queries that wait, and say how many.
    EndWaiting(SyncSender<usize>),
}

/// A query that somebody wants explained.
pub(crate) struct Explaining {
    pub(crate) query: Vec<u8>,
    pub(crate) client: Client,
    pub(crate) recorder: Recorder,
    /// Gets the reply; is dropped if there is none.
    pub(crate) reply: SyncSender<Vec<u8>>,
}

/// Hears the reply to a query that is explained.
struct ExplainOutlet(SyncSender<Vec<u8>>);

impl Outlet for ExplainOutlet {
    fn deliver(&self, _: &Address, reply: &[u8]) {
        // Whoever asked may have gone.
        let _ = self.0.try_send(reply.to_vec());
    }

    fn flush(&self) {}

    fn reply_octets_max(&self) -> usize {
        wire::MESSAGE_OCTETS_MAX
    }
}

/// Takes a query as it would come from a client, watched.
fn explain(worker: &Worker, driver: &driver::Driver, job: Explaining) {
    let Explaining { query, client, mut recorder, reply: to } = job;
    let mut buffer = vec![0; wire::MESSAGE_OCTETS_MAX];
    let mut reply = Reply::new(&mut buffer);
    let verdict = {
        let mut engine = worker.engine.borrow_mut();
        engine.begin(worker.clock.now());
        engine.explain(&query, &client, &mut reply, &mut recorder)
    };
    match verdict {
        Verdict::Answered => drop(to.try_send(reply.bytes().to_vec())),
        // What is between servers is no query.
        Verdict::Drop | Verdict::Stream(_) => {}
        Verdict::Defer(suspended) => {
            let peer = (client.address, client.port).into();
            let address = Address { peer, local: None, stream: 0 };
            driver.take(suspended, ReplyTo { outlet: Rc::new(ExplainOutlet(to)), address });
            driver.flush();
        }
    }
}

/// Whom the workers ask; a change is adopted at once.
#[derive(Clone)]
pub(crate) struct Upstreams {
    pub(crate) plan: Arc<plan::upstreams::Plan>,
    /// Who finds answers by itself.
    pub(crate) resolvers: Arc<plan::resolvers::Plan>,
    /// Where oblivious messages are carried to.
    pub(crate) relay: Arc<plan::relay::RelayPlan>,
    /// Hears one word of every worker that has adopted the plan.
    pub(crate) adopted: SyncSender<()>,
}

impl Upstreams {
    /// Returns those of the first revision, whose adoption nobody waits for.
    pub(crate) fn first(plans: &Plans) -> Self {
        Self {
            plan: Arc::clone(&plans.fetch),
            resolvers: Arc::clone(&plans.resolvers),
            relay: Arc::clone(&plans.relay),
            adopted: std::sync::mpsc::sync_channel(0).0,
        }
    }

    fn plans(&self) -> driver::Plans<'_> {
        driver::Plans { upstreams: &self.plan, resolvers: &self.resolvers }
    }
}

/// What others may see of a worker.
#[derive(Clone, Default)]
pub(crate) struct WorkerHandle {
    pub(crate) engine: Arc<engine::Counters>,
    pub(crate) details: Arc<engine::details::Details>,
    pub(crate) listen: Arc<listen::Counters>,
    pub(crate) board: Arc<driver::Board>,
    pub(crate) heartbeat: Heartbeat,
}

/// Starts a worker's thread. `ended` is dropped when it ends.
pub(crate) fn start(parts: Parts, ended: mpsc::Sender<()>) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new().name(format!("worker-{}", parts.index)).spawn(move || {
        let _ended = ended;
        work(parts)
    })
}

fn work(parts: Parts) -> io::Result<()> {
    let index = parts.index;
    if let Err(error) = sys::pin_to(parts.core) {
        debug!(worker = index, core = parts.core, %error, "not kept to its core");
    }
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let served = runtime.block_on(serve(parts));
    if let Err(error) = &served {
        error!(worker = index, %error, "the worker ended");
    }
    served
}

async fn serve(parts: Parts) -> io::Result<()> {
    let Parts {
        index,
        clock,
        cell,
        mut upstreams,
        shared,
        sockets,
        queues,
        busy_poll,
        worker_handle,
        mut asked,
        mut probes,
        stop,
        events,
        taps: [client_tap, server_tap],
        ..
    } = parts;
    let engine = Engine::new(cell, Arc::clone(&worker_handle.engine)).with_events(events);
    let engine = engine.with_tap(client_tap).with_details(Arc::clone(&worker_handle.details));
    let engine = RefCell::new(engine);
    let worker = Rc::new(Worker { index, clock, engine, busy_poll });
    let first = upstreams.borrow_and_update().clone();
    let registry = Arc::clone(&shared.registry);
    let driver = driver::Driver::new(Rc::clone(&worker), first.plans(), shared, worker_handle.board);
    driver.tap_into(server_tap);
    let relay = exchange::Relay::new(Arc::clone(&upstreams.borrow().relay), registry);
    let courier: Rc<dyn Courier> = Rc::new(exchange::RelayCourier(Rc::clone(&relay)));
    let local =
        Rc::new(listen::Local { worker: Rc::clone(&worker), driver: driver.clone(), courier: Some(courier) });
    let adoption = async {
        while upstreams.changed().await.is_ok() {
            let new = upstreams.borrow_and_update().clone();
            // An idle worker adopts the snapshot with it, so that the old one can be freed.
            worker.engine.borrow_mut().begin(clock.now());
            driver.adopt(new.plans());
            relay.adopt(new.relay);
            // Whoever waited for it may have gone.
            let _ = new.adopted.try_send(());
        }
        std::future::pending::<()>().await;
    };
    let explanations = async {
        while let Some(asked) = asked.recv().await {
            match asked {
                Asked::Explain(job) => explain(&worker, &driver, job),
                // Whoever asked may have gone.
                Asked::List(to) => drop(to.try_send(driver.list_waiting())),
                Asked::EndWaiting(to) => drop(to.try_send(driver.end_waiting())),
            }
        }
        std::future::pending::<()>().await;
    };
    let inquiries = async {
        while let Some(probe) = probes.recv().await {
            driver.probe(probe);
        }
        std::future::pending::<()>().await;
    };
    let last_words = async {
        let deadline = stop.clone().requested().await;
        tokio::time::sleep_until(deadline.checked_sub(LAST_WORDS).unwrap_or(deadline)).await;
        driver.stop();
        std::future::pending::<()>().await;
    };
    let queues =
        listen::serve_queues(Rc::clone(&local), queues, Arc::clone(&worker_handle.listen), stop.clone());
    let sockets = listen::serve(local, sockets, worker_handle.listen, stop.clone());
    tokio::select! {
        served = async { tokio::try_join!(sockets, queues) } => served.map(|_| ()),
        () = adoption => Ok(()),
        () = explanations => Ok(()),
        () = inquiries => Ok(()),
        () = last_words => Ok(()),
        () = worker_handle.heartbeat.beat() => Ok(()),
    }
}
