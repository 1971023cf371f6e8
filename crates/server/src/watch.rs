//! Looks after a server that runs: orders, the control socket, what is due, and a clean end.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use control::{Admits, Handlers, Http, Socket};
use listen::{RefusalReport, Refusals, Stopper};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Interval;
use tracing::{error, info, warn};

use crate::caches::Which;
use crate::operator::Operator;
use crate::protocol::{self, SocketUsers};
use crate::start::Server;
use crate::watchdog::Watchdog;
use crate::{sys, systemd, watchdog};

/// How long the workers may take beyond the deadline for waiting queries, before we end without
/// them.
const GRACE: Duration = Duration::from_secs(1);
/// How long the caches and the like may take to be written at the end.
const DUMP_TIME_MAX: Duration = Duration::from_secs(30);
/// How often files and dynamic sets are looked after.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// At which of these looks the pages of code are given back that only the start has used: a busy
/// machine is not done with its start at the first.
const RELEASE_PAGES_AT: [u32; 3] = [1, 3, 6];
/// How often it is looked whether there is something to look after, when there was nothing.
const IDLE_LOOK_EVERY: Duration = Duration::from_secs(5);
/// Octets of replies that waited for clients, from which on the memory is given back when they are
/// gone.
const HELD_OCTETS_MUCH: usize = 2 << 20;
/// How often the log has a line on clients that are refused.
const TELL_OF_REFUSALS_EVERY: Duration = Duration::from_secs(60);
/// Every how many looks it is looked whether many rows of the audit log have come.
const AUDIT_LOOKS: u32 = 10;
/// How often the log says where the audit log stands.
const TELL_OF_AUDIT_EVERY: Duration = Duration::from_secs(60 * 60);
/// How often we look whether a cache is due to be written.
const DUMP_LOOK_EVERY: Duration = Duration::from_secs(10);

/// What is asked of a running server from outside, but by the control socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Read the configuration again.
    Reload,
    /// Write the caches to their files.
    Dump,
    /// End; a second one ends at once.
    End,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As it was ordered, with everything done that was to be done.
    Clean,
    /// By itself, or without what was still under way.
    Failed,
}

/// Where a server is looked after from.
pub struct Serving {
    /// Orders as they come.
    pub orders: mpsc::Receiver<Order>,
    /// The control socket.
    pub socket: Option<Socket>,
    /// What goes on with its connections that speak HTTP.
    pub http: Option<Http>,
    /// Who may use it.
    pub users: SocketUsers,
    /// Where metrics are fetched.
    pub metrics: Vec<TcpListener>,
    /// Is told when the configuration is in use that [`Order::Reload`] asked for.
    pub reloaded: Arc<dyn Fn() + Send + Sync>,
}

/// What the main thread looks after.
struct Watch {
    operator: Arc<Operator>,
    orders: mpsc::Receiver<Order>,
    socket: Option<Socket>,
    http: Option<Http>,
    users: SocketUsers,
    /// Where metrics are fetched, until they are served.
    metrics: Vec<TcpListener>,
    reloaded: Arc<dyn Fn() + Send + Sync>,
    all_ended: mpsc::Receiver<()>,
    watchdog: Watchdog,
    stopper: Stopper,
    refusals: RefusalLog,
    held: HeldMemory,
}

impl Server {
    /// Looks after the server until it has ended.
    pub async fn serve(self, serving: Serving) -> End {
        let Serving { orders, socket, http, users, metrics, reloaded } = serving;
        systemd::ready(&self.operator.summary());
        for listener in &metrics {
            if let Ok(address) = listener.local_addr() {
                info!(%address, "metrics can be fetched");
            }
        }
        let watch = Watch {
            operator: self.operator,
            orders,
            socket,
            http,
            users,
            metrics,
            reloaded,
            all_ended: self.all_ended,
            watchdog: self.watchdog,
            stopper: self.stopper,
            refusals: self.refusals,
            held: self.held,
        };
        watch.until_the_end(self.shutdown_timeout, self.threads).await
    }
}

/// Gives memory back that replies have taken which waited for clients.
pub(crate) struct HeldMemory {
    budget: Arc<listen::Budget>,
    peak: usize,
}

impl HeldMemory {
    pub(crate) const fn new(budget: Arc<listen::Budget>) -> Self {
        Self { budget, peak: 0 }
    }

    /// Returns whether much was held, and most of it no longer is.
    fn is_worth_giving_back(&mut self) -> bool {
        self.peak = self.peak.max(self.budget.take_peak());
        let is_worth = self.peak >= HELD_OCTETS_MUCH && self.budget.held() < self.peak / 4;
        if is_worth {
            self.peak = 0;
        }
        is_worth
    }
}

/// Says now and then which clients are refused.
pub(crate) struct RefusalLog {
    refusals: Arc<Refusals>,
    told: Option<Instant>,
}

impl RefusalLog {
    pub(crate) const fn new(refusals: Arc<Refusals>) -> Self {
        Self { refusals, told: None }
    }

    /// Says it, at most once in [`TELL_OF_REFUSALS_EVERY`].
    fn look(&mut self, now: Instant) {
        if self.told.is_some_and(|told| now < told + TELL_OF_REFUSALS_EVERY) {
            return;
        }
        let Some(RefusalReport { client, refused, others }) = self.refusals.take() else { return };
        self.told = Some(now);
        warn!(
            %client,
            connections = refused.connections,
            handshakes = refused.handshakes,
            of_other_clients = others,
            "a client's connections are refused: it has as many as it may (limits.tcp.connections-per-client, \
             limits.tls.handshakes-per-client)"
        );
    }
}

impl Watch {
    /// Follows orders until the one to end, and sees to a clean end.
    async fn until_the_end(mut self, patience: Duration, threads: Vec<JoinHandle<io::Result<()>>>) -> End {
        let is_ordered = self.follow_orders().await;
        info!(patience_s = patience.as_secs_f64(), "ends, after the queries that wait");
        systemd::stopping();
        self.operator.note_end();
        let deadline = tokio::time::Instant::now() + patience;
        self.stopper.stop(deadline);
        let is_clean = loop {
            tokio::select! {
                _ = self.all_ended.recv() => break true,
                order = next(&mut self.orders) => if order == Order::End {
                    warn!("ends now");
                    return End::Failed;
                },
                () = tokio::time::sleep_until(deadline + GRACE) => break false,
            }
        };
        if !is_clean {
            warn!("not every worker ended in time");
        }
        let is_served = is_clean && threads.into_iter().all(|thread| matches!(thread.join(), Ok(Ok(()))));
        let operator = Arc::clone(&self.operator);
        let dumps = tokio::task::spawn_blocking(move || {
            operator.tell_log_ins();
            operator.tell_audit();
            operator.stop_jobs();
            operator.manager().stop();
            operator.keep_sets();
            operator.dump(Which::All)
        });
        tokio::select! {
            _ = dumps => {}
            () = tokio::time::sleep(DUMP_TIME_MAX) => {
                warn!("ends without the rest of what was to be written: something is still under way");
            }
            () = second_end(&mut self.orders) => {
                warn!("ends now; the caches were not written");
                return End::Failed;
            }
        }
        drop(self.socket);
        if is_ordered && is_served { End::Clean } else { End::Failed }
    }

    /// Reads the configuration again, on another thread.
    fn reload(&self) {
        let (operator, reloaded) = (Arc::clone(&self.operator), Arc::clone(&self.reloaded));
        drop(tokio::task::spawn_blocking(move || {
            operator.audit("a signal", ("reload", ""), "accepted");
            match operator.reload() {
                Ok(_) => reloaded(),
                Err(why) => operator.audit("a signal", ("reload", ""), &format!("refused: {why}")),
            }
        }));
    }

    /// Returns whether the end was ordered; otherwise a worker ended by itself.
    async fn follow_orders(&mut self) -> bool {
        // Dropped, and its tasks with it, when this function returns.
        let mut readers = JoinSet::new();
        for listener in self.metrics.drain(..) {
            let operator = Arc::clone(&self.operator);
            let collect = Arc::new(move || operator.metrics());
            readers.spawn(async move {
                if let Err(error) = control::metrics::serve(listener, collect).await {
                    warn!(%error, "no metrics");
                }
            });
        }
        let users = self.users;
        let lines = protocol::handler(Arc::clone(&self.operator), users);
        let admits: Admits = Arc::new(move |peer| users.caller(peer).map(drop));
        let handlers = Handlers { lines, http: self.http.clone(), admits };
        let control = async {
            if let Some(socket) = &self.socket
                && let Err(error) = control::serve(socket, handlers).await
            {
                warn!(%error, "no control from the command line");
            }
            std::future::pending::<()>().await;
        };
        tokio::pin!(control);
        let mut dump_looks = watchdog::ticks(DUMP_LOOK_EVERY);
        let mut next_audit = Instant::now() + TELL_OF_AUDIT_EVERY;
        let mut next_look = tokio::time::Instant::now() + LOOK_EVERY;
        let mut looks: u32 = 0;
        // systemd(1) recommends to be heard twice in its time.
        let mut alive =
            systemd::watchdog().map(|time| watchdog::ticks((time / 2).max(Duration::from_millis(1))));
        // What takes time is done on another thread, in order: the work is behind one lock.
        let spawn = |work: fn(&Operator)| {
            let operator = Arc::clone(&self.operator);
            drop(tokio::task::spawn_blocking(move || work(&operator)));
        };
        loop {
            tokio::select! {
                order = next(&mut self.orders) => match order {
                    Order::Reload => self.reload(),
                    Order::Dump => spawn(|operator| drop(operator.dump(Which::All))),
                    Order::End => return true,
                },
                () = tokio::time::sleep_until(next_look) => {
                    looks = looks.saturating_add(1);
                    if RELEASE_PAGES_AT.contains(&looks) {
                        sys::release_program_pages();
                    }
                    if self.operator.has_ended_changes() {
                        spawn(Operator::end_changes);
                    }
                    if self.operator.has_changed_lists() {
                        spawn(Operator::merge_lists);
                    }
                    if self.operator.has_log_ins() {
                        spawn(Operator::tell_log_ins);
                    }
                    if Instant::now() >= next_audit {
                        next_audit = Instant::now() + TELL_OF_AUDIT_EVERY;
                        spawn(Operator::tell_audit);
                    } else if looks.is_multiple_of(AUDIT_LOOKS) {
                        spawn(Operator::look_at_audit);
                    }
                    let is_idle = self.operator.is_idle();
                    next_look += if is_idle { IDLE_LOOK_EVERY } else { LOOK_EVERY };
                    // After a time without a processor there is one look, not many.
                    next_look = next_look.max(tokio::time::Instant::now());
                    self.refusals.look(Instant::now());
                    if self.held.is_worth_giving_back() {
                        drop(tokio::task::spawn_blocking(sys::give_back_memory));
                    }
                    if is_idle {
                        // Without another thread: nothing in it takes time.
                        self.operator.look_at_pace();
                    } else {
                        spawn(Operator::look);
                    }
                }
                _ = dump_looks.tick(), if self.operator.has_dumps() => {
                    spawn(|operator| drop(operator.dump(Which::Due)));
                }
                () = tick(alive.as_mut()) => {
                    if self.watchdog.are_all_alive() {
                        systemd::alive();
                    } else {
                        error!("a worker is stuck");
                    }
                }
                _ = self.all_ended.recv() => return false,
                () = &mut control => {}
            }
        }
    }
}

/// Waits for the next tick; for ever without a clock.
async fn tick(clock: Option<&mut Interval>) {
    match clock {
        Some(clock) => drop(clock.tick().await),
        None => std::future::pending().await,
    }
}

/// Waits for the next order; for ever when nobody gives any more.
async fn next(orders: &mut mpsc::Receiver<Order>) -> Order {
    match orders.recv().await {
        Some(order) => order,
        None => std::future::pending().await,
    }
}

async fn second_end(orders: &mut mpsc::Receiver<Order>) {
    while next(orders).await != Order::End {}
}
