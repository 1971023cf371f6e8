//! What the running server does for its operator.

mod bans;
mod caches;
mod files;
mod lists;
mod numbers;
mod reload;
mod sets;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::zones::ZoneManager;
use bans::LiveBans;
use config::sets::Sets;
use config::settings::Startup;
use control::Operator;
use control::api::{self, Request, Response};
use engine::explain::Recorder;
use engine::{Clock, SnapshotCell};
use files::Seen;
use jobs::Jobs;
use jobs::alias::Follower;
use jobs::health::Checker;
use jobs::signing::Signing;
use listen::TlsCell;
use reload::report;
use tokio::sync::{mpsc, watch};
use tracing::{error, info};
use wire::Prefix;

use crate::caches::{Caches, Kept, by_name};
use crate::devices::Devices;
use crate::explain::Prepared;
use crate::for_jobs::Orders;
use crate::log_level;
use crate::origin::Origin;
use crate::worker::{Explaining, Upstreams, WorkerHandle};
use crate::{signing, zones};

pub(crate) use caches::Which;
pub(crate) use files::Watched;
pub(crate) use sets::report_sets;

/// How long a query that is explained may wait for upstreams.
const EXPLANATION_PATIENCE: Duration = Duration::from_secs(30);

/// The server while it runs, as its operator sees it.
pub(crate) struct Running {
    origin: Origin,
    /// The settings that only a new start changes, as they were at the start.
    startup: Startup,
    clock: Clock,
    /// Where it listens: never asked for answers.
    addresses: Vec<SocketAddr>,
    listeners: Vec<api::Listener>,
    worker_handles: Vec<WorkerHandle>,
    cell: Arc<SnapshotCell>,
    /// Looks after zones.
    manager: ZoneManager,
    /// How listeners speak TLS.
    tls: Arc<TlsCell>,
    upstreams: watch::Sender<Upstreams>,
    log_level: log_level::LogLevelHandle,
    jobs: Jobs,
    /// Signs zones.
    signing: Arc<Signing>,
    follower: Follower,
    checker: Checker,
    /// To the worker that explains queries.
    explaining: mpsc::Sender<Explaining>,
    /// Held while a reload or a dump is at work.
    work: Mutex<Work>,
    orders: Arc<Orders>,
    /// Interfaces that are served past the kernel's network stack.
    devices: Devices,
    /// Held for a moment only.
    view: Mutex<View>,
    /// Who was banned for being over the rate limit at the last look.
    banned: Mutex<BTreeSet<Prefix>>,
    /// What the files looked like lately.
    seen: Mutex<Seen>,
    /// How many queries there were lately.
    pace: Mutex<numbers::Pace>,
    /// Whether a cache is written now and then.
    has_dumps: AtomicBool,
}

/// What a reload replaces and a dump reads.
struct Work {
    loaded: config::Loaded,
    plans: config::Plans,
    kept: Vec<Kept>,
}

/// What is shown of the configuration in use.
struct View {
    caches: Caches,
    sets: Sets,
    /// Who is banned while the server runs.
    bans: LiveBans,
    watched: Arc<Watched>,
    generation: u64,
    adopted: Instant,
    is_last_reload_refused: bool,
    /// The sets of the configuration with their lists.
    listed: Arc<[lists::Listed]>,
    certificates: Vec<config::OwnCertificate>,
    /// The database of recorded queries.
    recorder: Option<PathBuf>,
}

/// What a running server is made of.
pub(crate) struct Parts {
    pub(crate) origin: Origin,
    pub(crate) startup: Startup,
    pub(crate) clock: Clock,
    pub(crate) listeners: Vec<api::Listener>,
    pub(crate) worker_handles: Vec<WorkerHandle>,
    pub(crate) cell: Arc<SnapshotCell>,
    pub(crate) manager: ZoneManager,
    pub(crate) tls: Arc<TlsCell>,
    pub(crate) upstreams: watch::Sender<Upstreams>,
    pub(crate) log_level: log_level::LogLevelHandle,
    pub(crate) explaining: mpsc::Sender<Explaining>,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) plans: config::Plans,
    pub(crate) kept: Vec<Kept>,
    pub(crate) loaded: config::Loaded,
    pub(crate) watched: Arc<Watched>,
    pub(crate) devices: Devices,
    pub(crate) orders: Arc<Orders>,
    pub(crate) jobs: Jobs,
    pub(crate) signing: Arc<Signing>,
    pub(crate) follower: Follower,
    pub(crate) checker: Checker,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic ends the process, so a poisoned lock is never seen.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the database of recorded queries, wherever who asks for it works.
fn recorder_file(plans: &config::Plans) -> Option<PathBuf> {
    let file = &plans.jobs.recorder.as_ref()?.file;
    Some(std::path::absolute(file).unwrap_or_else(|_| file.clone()))
}

/// Checks what records lead to, as the plans say.
pub(crate) fn begin_checks(checker: &Checker, plans: &config::Plans) {
    if let Err(error) = checker.adopt(&plans.zones.checks.watched) {
        error!(%error, "not everything can be checked: no thread for it");
    }
}

impl Running {
    /// Puts the parts together.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            origin,
            startup,
            clock,
            listeners,
            worker_handles,
            cell,
            manager,
            tls,
            upstreams,
            log_level,
            explaining,
            addresses,
            plans,
            kept,
            jobs,
            signing,
            follower,
            checker,
            loaded,
            watched,
            devices,
            orders,
        } = parts;
        let view = View {
            caches: by_name(&plans),
            sets: plans.sets.clone(),
            bans: LiveBans::of(&plans, &loaded),
            watched,
            generation: 1,
            adopted: Instant::now(),
            is_last_reload_refused: false,
            listed: lists::listed(&loaded.settings),
            certificates: plans.certificates().to_vec(),
            recorder: recorder_file(&plans),
        };
        let has_dumps = AtomicBool::new(kept.iter().any(Kept::is_periodic));
        let work = Mutex::new(Work { loaded, plans, kept });
        Self {
            origin,
            startup,
            clock,
            addresses,
            listeners,
            worker_handles,
            cell,
            manager,
            tls,
            upstreams,
            log_level,
            jobs,
            signing,
            follower,
            checker,
            explaining,
            orders,
            devices,
            work,
            view: Mutex::new(view),
            banned: Mutex::default(),
            seen: Mutex::default(),
            pace: Mutex::default(),
            has_dumps,
        }
    }

    /// Returns one line about the server, for systemd.
    pub(crate) fn summary(&self) -> String {
        let mut addresses: Vec<&str> = self.listeners.iter().map(|listener| listener.at.as_str()).collect();
        addresses.dedup();
        format!("answers on {}; configuration {}", addresses.join(", "), lock(&self.view).generation)
    }

    /// Returns whether a cache is written now and then.
    pub(crate) fn has_dumps(&self) -> bool {
        self.has_dumps.load(Ordering::Relaxed)
    }

    /// Returns what looks after zones.
    pub(crate) const fn manager(&self) -> &ZoneManager {
        &self.manager
    }

    /// Ends the jobs: what was told is still done.
    pub(crate) fn stop_jobs(&self) {
        self.signing.stop();
        self.follower.stop();
        self.checker.stop();
        self.jobs.stop();
    }

    fn zone_add(&self, add: &api::ZoneAdd) -> Response {
        let response = zones::add(&self.manager, add);
        if !matches!(&response, Response::ZonesChanged(changed) if changed.done > 0) {
            return response;
        }
        let mut work = lock(&self.work);
        if work.plans.zones.served.is_none() {
            // Until now there was nothing that a policy could answer from.
            work.loaded.settings.has_added_zones = true;
            match signing::again(&work.loaded, &self.addresses, &work.plans) {
                Ok(plans) => self.put(&mut work, plans),
                Err(mistakes) => {
                    report(&mistakes);
                    return Response::error("zones were added, and are not answered from before a reload");
                }
            }
        }
        drop(work);
        self.start_signing();
        response
    }

    fn zone(&self, order: &api::ZoneOrder) -> Response {
        if order.what == api::ZoneWhat::Reload {
            // Files that have changed are read again; who has primaries asks them.
            let mut reload = match self.refresh(None) {
                Ok(reload) => reload,
                Err(why) => return Response::error(why),
            };
            return match zones::refresh_named(&self.manager, order, &mut reload) {
                Ok(()) => Response::Reload(reload),
                Err(why) => Response::error(why),
            };
        }
        let mut response = zones::carry_out(&self.manager, order);
        if let Response::Zones(zones) = &mut response {
            let only = order.name.as_ref().and_then(|name| wire::NameBuf::from_text(name).ok());
            zones::add_checks(zones, &self.checker.states(only.as_ref().map(wire::NameBuf::as_name)));
        }
        response
    }

    /// Changes what is logged until the next reload, if that is wanted; returns what is.
    fn log_level(&self, wanted: Option<&str>) -> Result<api::LogLevelIs, String> {
        let configured = log_level::filter(lock(&self.work).loaded.settings.log_level);
        if let Some(word) = wanted {
            let level = log_level::level(word).ok_or_else(|| {
                format!("unknown log level \"{word}\" (expected error, warn, info, debug or trace)")
            })?;
            // First what it was, then what it is: one of the two lets this line through.
            let was = self.log_level.level();
            if level > was {
                self.log_level.set(level);
            }
            info!(%level, %was, "log level changed, until the next reload");
            self.log_level.set(level);
        }
        Ok(api::LogLevelIs { level: self.log_level.level().to_string(), configured: configured.to_string() })
    }

    fn jobs(&self) -> Vec<api::Job> {
        let jobs = self.jobs.schedules().into_iter().map(|state| api::Job {
            name: state.name,
            at: state.at,
            time_zone: state.time_zone,
            tasks: state.tasks,
            next: state.next,
            last: state.last,
            is_running: state.is_running,
            is_failed: matches!(state.outcome, Some(Err(_))),
            outcome: state.outcome.map(|outcome| outcome.unwrap_or_else(|why| why)),
            runs: state.runs,
            skipped: state.skipped,
        });
        jobs.collect()
    }

    /// Has a worker take a query, and tells what happened to it.
    fn explain(&self, asked: &api::Explain) -> Result<api::Explained, String> {
        let plans = lock(&self.work).plans.clone();
        let prepared = Prepared::new(asked, plans.listeners())?;
        let recorder = Recorder::default();
        let (reply, heard) = sync_channel(1);
        let (query, client) = (prepared.query.clone(), prepared.client.clone());
        let job = Explaining { query, client, recorder: recorder.share(), reply };
        self.explaining.blocking_send(job).map_err(|_| "the server is ending")?;
        let reply = match heard.recv_timeout(EXPLANATION_PATIENCE) {
            Ok(reply) => Some(reply),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => return Err("the query was not answered in time".to_owned()),
        };
        let trace = recorder.take();
        if !trace.snapshot.as_ref().is_some_and(|snapshot| Arc::ptr_eq(snapshot, &plans.snapshot)) {
            return Err("the configuration was replaced meanwhile; ask again".to_owned());
        }
        Ok(prepared.explained(&plans, &trace, reply.as_deref()))
    }
}

impl Operator for Running {
    fn begin(&self, request: &Request) -> Option<control::Parts> {
        match request {
            Request::Zone(order) if order.what == api::ZoneWhat::Print => {
                Some(zones::print(&self.manager, order))
            }
            _ => None,
        }
    }

    fn carry_out(&self, request: Request) -> Response {
        match request {
            Request::Reload => Response::Reload(self.reload()),
            Request::Status => Response::Status(self.status()),
            Request::Stats => Response::Stats(numbers::kebab(self.stats())),
            Request::Metrics => Response::Metrics(self.metrics()),
            Request::CacheFlush(flush) => self.cache_flush(&flush),
            Request::CacheDump => Response::CacheDump(self.dump(Which::All)),
            Request::CacheStats => Response::CacheStats(self.cache_stats()),
            Request::CacheLookup(asked) => self.cache_lookup(&asked),
            Request::Lists(asked) => {
                self.lists(asked.set.as_deref()).map_or_else(Response::error, Response::Lists)
            }
            Request::ListsFetch(asked) => {
                self.lists_fetch(asked.set.as_deref()).map_or_else(Response::error, Response::ListsFetched)
            }
            Request::LogLevel(wanted) => {
                self.log_level(wanted.level.as_deref()).map_or_else(Response::error, Response::LogLevel)
            }
            Request::Jobs => Response::Jobs(self.jobs()),
            Request::Zone(order) => self.zone(&order),
            Request::ZoneAdd(add) => self.zone_add(&add),
            Request::ZoneRemove(names) => zones::remove(&self.manager, &names.zones),
            Request::ZoneLoad(load) => zones::load(&self.manager, &load),
            Request::SetReload(set) => {
                self.refresh(Some(&set.name)).map_or_else(Response::error, Response::Reload)
            }
            Request::SetList(set) => self.set_list(&set.name),
            Request::SetAdd(change) => self.set_change(&change, true),
            Request::SetRemove(change) => self.set_change(&change, false),
            Request::JobRun(job) => match self.jobs.run_now(&job.name) {
                Ok(()) => Response::Jobs(self.jobs()),
                Err(why) => Response::error(why),
            },
            Request::ZoneKeys(asked) => signing::keys(&self.signing, &asked.zone),
            Request::ZoneDsSeen(seen) => signing::ds_seen(&self.signing, &seen),
            Request::ZoneRoll(roll) => signing::roll(&self.signing, &roll),
            Request::Explain(asked) => self.explain(&asked).map_or_else(Response::error, Response::Explained),
        }
    }
}

/// Returns the seconds since 1970.
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
