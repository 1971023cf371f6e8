//! What the running server does for whoever operates it.

mod accounts;
mod backups;
mod bans;
mod caches;
mod certificates;
mod changes;
mod check;
mod clients;
mod configuration;
mod credentials;
mod error;
mod events;
mod files;
mod history;
mod keys;
mod late;
mod list_rules;
mod lists;
mod numbers;
mod overlay;
mod own_lists;
mod policy_zones;
mod probe;
mod queries;
mod resolvers;
mod rrsets;
mod sets;
mod times;
mod tokens;
mod when;
mod zones;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::zones::ZoneManager;
use bans::LiveBans;
use config::sets::Sets;
use control::Role;
use control::api;
use engine::explain::Recorder;
use engine::{Caches, Clock};
use files::Seen;
use settings::{Origin, Settings, Startup, UnboundStatistics};
use tokio::sync::mpsc;
use tracing::info;
use wire::{NameBuf, Prefix};

use crate::explain::Prepared;
use crate::for_jobs::Callbacks;
use crate::lock;
use crate::log_level;
use crate::reload::{Components, Revision};
use crate::worker::{Asked, Explaining, WorkerHandle};

pub use accounts::{ComesBack, LinkFor, LogInRefusal, LoggedIn};
pub use caches::CachedAnswer;
pub use changes::WorkerNumbers;
pub use credentials::Credential;
pub use error::{OperatorError, Rejected, What};
use events::told_of_data;
pub(crate) use events::told_of_rest;
pub(crate) use files::Watched;
pub use numbers::DESCRIPTIONS;
pub(crate) use overlay::Changing;
pub use own_lists::EDITS_MAX;
pub use sets::MEMBERS_MAX;

/// Who makes changes that nobody asked for.
const SERVER: &str = "the server";
/// Characters that the audit log has of what something is done with.
const AUDITED_CHARS_MAX: usize = 1_000;
/// Rows of the audit log that are shown unless somebody wants another number, and the most.
const AUDIT_SHOWN: u64 = 20;
const AUDIT_SHOWN_MAX: u64 = 10_000;
/// Notes of the store: what was answered to requests of the API.
const ANSWERS: &str = "answers";
/// How long they last, in seconds.
const ANSWERS_LAST_S: u64 = 24 * 60 * 60;
/// How long a query that is explained may wait for upstreams.
const EXPLANATION_PATIENCE: Duration = Duration::from_secs(30);

/// The server while it runs, for whoever operates it: each method does one thing at once, or says
/// in a type why not.
///
/// The control socket is one caller of many that there can be. Methods may take long: they are for
/// threads that may wait.
pub struct Operator {
    facts: Facts,
    pub(super) components: Components,
    /// What is in use. Held while another revision is made and comes into use.
    current: Mutex<Revision>,
    /// Held for a moment only.
    view: Mutex<View>,
    /// Who is banned by operators.
    bans: authority::Bans,
    /// Who was banned for being over the rate limit at the last look.
    banned: Mutex<BTreeSet<Prefix>>,
    /// What the files looked like lately.
    seen: Mutex<Seen>,
    /// How many queries there were lately.
    pace: Mutex<numbers::Pace>,
    /// How many queries did not wait.
    instant: times::Instant,
    /// Who decides about changes of settings.
    changing: Changing,
    /// The tokens of the API.
    tokens: tokens::Tokens,
    /// The users of the API.
    accounts: accounts::Accounts,
    /// Whether the audit log could not be written the last time.
    is_audit_failing: AtomicBool,
    /// The row of the audit log that the log was told of last.
    audit_told: AtomicU64,
    /// Whether no new queries are taken any more.
    is_ending: AtomicBool,
    /// Addresses where the API could not be opened.
    missing_listeners: Mutex<Vec<api::MissingListener>>,
    /// Held by each reader of the live log of queries.
    live: Arc<()>,
    /// Held by each check of settings that were sent.
    checks: Arc<()>,
    /// Held by each measuring of an upstream server.
    probes: Arc<()>,
    /// Copies of it are readers of lists.
    list_reads: Arc<()>,
    /// Held while a backup is made or checked.
    backups: Mutex<()>,
}

/// What stays the same for as long as the server runs.
pub(crate) struct Facts {
    pub(crate) origin: Origin,
    /// The settings that only a new start changes, as they were at the start.
    pub(crate) startup: Startup,
    pub(crate) clock: Clock,
    /// Where it listens: never asked for answers.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) listeners: Vec<api::Listener>,
    /// Finds web servers.
    pub(crate) hosts: Arc<dyn jobs::web::Hosts>,
    pub(crate) worker_handles: Vec<WorkerHandle>,
    /// To each worker; the first explains queries.
    pub(crate) asking: Vec<mpsc::Sender<Asked>>,
}

/// What is shown of the revision in use, while another is made.
struct View {
    caches: Caches,
    sets: Sets,
    /// Who is banned while the server runs.
    bans: LiveBans,
    watched: Arc<Watched>,
    revision: u64,
    /// When the settings came into use.
    adopted: Instant,
    is_last_reload_refused: bool,
    /// The sets of the configuration with their lists.
    listed: Arc<[lists::Listed]>,
    /// Zones from other servers that sets are made of, and these sets.
    policy_zones: Arc<[(NameBuf, String)]>,
    certificates: Vec<config::OwnCertificate>,
    /// The database of recorded queries.
    recorder: Option<PathBuf>,
    /// What the statistics of `unbound-control` are to show.
    statistics: UnboundStatistics,
    /// Names that the API may be reached by.
    names: Arc<[String]>,
    /// Who proves who people are.
    oidc: Option<Arc<settings::OidcSettings>>,
    /// Whose users need one-time codes.
    totp_roles: Arc<[Role]>,
}

impl View {
    /// Returns what is shown of the first revision.
    fn new(revision: &Revision, watched: Arc<Watched>) -> Self {
        Self {
            caches: revision.plans.caches.clone(),
            sets: revision.plans.sets.clone(),
            bans: LiveBans::of(revision),
            watched,
            revision: revision.number,
            adopted: Instant::now(),
            is_last_reload_refused: false,
            listed: lists::listed(&revision.loaded.settings),
            policy_zones: revision.plans.policy_zones.as_slice().into(),
            certificates: revision.plans.certificates().to_vec(),
            recorder: recorder_file(&revision.plans),
            statistics: revision.loaded.settings.unbound_statistics,
            names: revision.loaded.settings.api.names.as_slice().into(),
            totp_roles: totp_roles(&revision.loaded.settings),
            oidc: revision.loaded.settings.api.oidc.clone(),
        }
    }

    /// Shows another revision.
    fn show(&mut self, revision: &Revision) {
        self.caches = revision.plans.caches.clone();
        self.sets = revision.plans.sets.clone();
        self.policy_zones = revision.plans.policy_zones.as_slice().into();
        self.bans = LiveBans::of(revision);
        self.certificates = revision.plans.certificates().to_vec();
        self.recorder = recorder_file(&revision.plans);
        self.statistics = revision.loaded.settings.unbound_statistics;
        self.names = revision.loaded.settings.api.names.as_slice().into();
        self.totp_roles = totp_roles(&revision.loaded.settings);
        self.oidc.clone_from(&revision.loaded.settings.api.oidc);
        self.revision = revision.number;
    }

    /// Shows that its settings were read again.
    fn show_settings(&mut self, settings: &Settings) {
        self.adopted = Instant::now();
        self.is_last_reload_refused = false;
        self.listed = lists::listed(settings);
    }
}

/// Returns the roles whose users need one-time codes.
fn totp_roles(settings: &Settings) -> Arc<[Role]> {
    settings.api.totp_roles.iter().filter_map(|word| Role::parse(word.word())).collect()
}

/// Returns the database of recorded queries, as a path from any working directory.
fn recorder_file(plans: &config::Plans) -> Option<PathBuf> {
    let file = &plans.jobs.recorder.as_ref()?.file;
    Some(std::path::absolute(file).unwrap_or_else(|_| file.clone()))
}

impl Operator {
    /// Returns the server that runs on `first`.
    pub(crate) fn new(
        facts: Facts,
        components: Components,
        (first, watched): (Revision, Arc<Watched>),
        (changing, bans): (Changing, authority::Bans),
    ) -> Self {
        let orders = Arc::clone(&components.orders);
        changing.authority().watch(move |change, revision| {
            if let Some(told) = told_of_data(change, revision) {
                orders.feed().tell(api::EventOf::Change(told));
            }
        });
        Self {
            facts,
            components,
            view: Mutex::new(View::new(&first, watched)),
            current: Mutex::new(first),
            bans,
            banned: Mutex::default(),
            seen: Mutex::default(),
            pace: Mutex::default(),
            instant: times::Instant::default(),
            changing,
            tokens: tokens::Tokens::default(),
            accounts: accounts::Accounts::default(),
            is_audit_failing: AtomicBool::new(false),
            audit_told: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
            missing_listeners: Mutex::default(),
            live: Arc::default(),
            checks: Arc::default(),
            probes: Arc::default(),
            list_reads: Arc::default(),
            backups: Mutex::default(),
        }
    }

    /// Reads whom the store knows: tokens, users and their sessions. Writes to the audit log what
    /// became of files since the last run. If the store was restored, that is told first.
    pub(crate) fn read_store(&self) {
        self.tell_restored();
        self.audit_files_once();
        self.read_tokens();
        self.read_accounts();
        self.read_sessions();
    }

    /// Does what jobs want of the server from now on, until it is gone.
    pub(crate) fn serve_jobs(self: &Arc<Self>) {
        let [for_dumps, for_sets, for_following, for_answers, for_records, for_certificates, for_zones] =
            [(); 7].map(|()| Arc::downgrade(self));
        self.components.orders.connect(Callbacks {
            dump: Box::new(move |which| Some(for_dumps.upgrade()?.dump(which))),
            reload_set: Box::new(move |set| {
                if let Some(operator) = for_sets.upgrade() {
                    let outcome = match operator.set_reload(set) {
                        Ok(_) => "done".to_owned(),
                        Err(why) => format!("refused: {why}"),
                    };
                    operator.audit("a job", ("list-update", set), &outcome);
                }
            }),
            follow_zone: Box::new(move |apex| {
                if let Some(operator) = for_following.upgrade() {
                    operator.follow_zone(apex.as_name());
                }
            }),
            forget: Box::new(move |zone| {
                if let Some(operator) = for_answers.upgrade() {
                    operator.forget_answers(zone);
                }
            }),
            change_record: Box::new(move |change| {
                let operator = for_records.upgrade()?;
                let manager = operator.manager();
                let zone = manager.closest(change.owner.as_name())?;
                let (_, message) = change.update(zone.as_name());
                let changed = manager.update(zone.as_name(), &message);
                Some(changed.map(|()| zone).map_err(|error| error.to_string()))
            }),
            use_certificates: Box::new(move |certificate| {
                let Some(operator) = for_certificates.upgrade() else { return Ok(()) };
                let used = operator.refresh();
                let outcome = if used.is_ok() { "accepted" } else { "refused" };
                operator.audit("the server", ("use certificate", certificate), outcome);
                used.map(drop).map_err(|error| error.to_string())
            }),
            serve_signed: Box::new(move |zones| {
                if let Some(operator) = for_zones.upgrade() {
                    operator.serve_signed(zones);
                }
            }),
        });
        // Whatever has come meanwhile.
        self.follow_zones();
        self.components.certificates.begin();
    }

    /// Returns one line about the server, for systemd.
    pub(crate) fn summary(&self) -> String {
        let mut addresses: Vec<&str> =
            self.facts.listeners.iter().map(|listener| listener.at.as_str()).collect();
        addresses.dedup();
        format!("answers on {}; configuration {}", addresses.join(", "), lock(&self.view).revision)
    }

    /// Returns whether a cache is written now and then.
    pub(crate) fn has_dumps(&self) -> bool {
        self.components.dumps.are_periodic()
    }

    /// Returns what looks after zones.
    pub(crate) const fn manager(&self) -> &ZoneManager {
        &self.components.manager
    }

    /// Ends the jobs: what was told is still done.
    pub(crate) fn stop_jobs(&self) {
        self.components.signing.stop();
        self.components.follower.stop();
        self.components.anchors.stop();
        self.components.checker.stop();
        self.components.certificates.stop();
        self.components.jobs.stop();
    }

    /// Returns how TLS is spoken with clients; `None` without certificates.
    pub fn tls(&self) -> Option<Arc<listen::Tls>> {
        self.components.tls.load()
    }

    /// Returns the names that the API may be reached by: those of the configuration, and of the
    /// certificates.
    pub fn names(&self) -> Vec<String> {
        let view = lock(&self.view);
        let of_certificates = view.certificates.iter().flat_map(|certificate| certificate.names.clone());
        view.names.iter().cloned().chain(of_certificates).collect()
    }

    /// Writes to the audit log that somebody has something done.
    pub fn audit(&self, by: &str, (what, on): (&str, &str), outcome: &str) {
        // Why not is in the log, and the status says it.
        let _ = self.audit_words(by, (what, on), outcome);
    }

    /// Writes to the audit log that something was done over a channel that does not know who asks.
    pub fn audit_from(&self, source: &'static str, (what, on): (&str, &str), outcome: &str) {
        let on = on.chars().take(AUDITED_CHARS_MAX).collect();
        let (by, what, outcome) = (source.to_owned(), what.to_owned(), outcome.to_owned());
        let event = store::audit::Event {
            by,
            what,
            on,
            outcome,
            source: Some(source),
            ..store::audit::Event::default()
        };
        // Why not is in the log, and the status says it.
        let _ = self.try_audit(event);
    }

    /// Writes to the audit log that somebody has something done, which is not done otherwise.
    ///
    /// # Errors
    ///
    /// The row cannot be written.
    pub(crate) fn audit_first(&self, by: &str, (what, on): (&str, &str)) -> Result<(), OperatorError> {
        self.audit_words(by, (what, on), "accepted").map_err(|error| {
            OperatorError::NotKept(format!(
                "the audit log cannot be written, and nothing is done without a row of it: {error}"
            ))
        })
    }

    fn audit_words(
        &self,
        by: &str,
        (what, on): (&str, &str),
        outcome: &str,
    ) -> Result<(), store::StoreError> {
        let on = on.chars().take(AUDITED_CHARS_MAX).collect();
        let (by, what, outcome) = (by.to_owned(), what.to_owned(), outcome.to_owned());
        self.try_audit(store::audit::Event { by, what, on, outcome, ..store::audit::Event::default() })
    }

    fn try_audit(&self, event: store::audit::Event) -> Result<(), store::StoreError> {
        let written = self.changing.authority().audit(store::audit::Event { at: unix_seconds(), ..event });
        // Once is enough: the status says it, too.
        if let Err(error) = &written
            && !self.is_audit_failing.load(Ordering::Relaxed)
        {
            tracing::error!(%error, "the audit log cannot be written");
        }
        self.is_audit_failing.store(written.is_err(), Ordering::Relaxed);
        written
    }

    /// Has the log and those who keep checkpoints know where the audit log stands, if it has gone
    /// on since they were told last: with it, rows that are cut off the end are missed.
    pub(crate) fn tell_audit(&self) {
        self.audit_files_once();
        let authority = self.changing.authority();
        // What cannot be read is in the status.
        let told = self.audit_told.load(Ordering::Relaxed);
        if !authority.last_audited().is_ok_and(|last| last != told) {
            return;
        }
        match authority.checkpoint(unix_seconds()) {
            Ok(None) => {}
            Ok(Some((number, checkpoint))) => {
                if told == 0
                    && let Ok(Some(public_key)) = authority.checkpoint_key()
                {
                    info!(public_key, "checkpoints of the audit log are signed");
                }
                self.audit_told.store(number, Ordering::Relaxed);
                self.components.jobs.keep_checkpoint(&checkpoint);
                info!(checkpoint, "the audit log has gone on");
            }
            Err(error) => tracing::error!(%error, "the audit log has no checkpoint"),
        }
    }

    /// Tells of the audit log if so many rows have come that a checkpoint is due.
    pub(crate) fn look_at_audit(&self) {
        self.audit_files_once();
        let part = |number: u64| number / store::audit::EPOCH_ROWS;
        let told = self.audit_told.load(Ordering::Relaxed);
        if self.changing.authority().last_audited().is_ok_and(|last| part(last) != part(told)) {
            self.tell_audit();
        }
    }

    /// Returns rows of the audit log.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn audited(&self, asked: api::AuditRows) -> Result<Vec<api::AuditRow>, OperatorError> {
        self.tell_log_ins();
        let count = asked.count.map_or(AUDIT_SHOWN, |count| count.min(AUDIT_SHOWN_MAX)) as usize;
        let rows = self.changing.authority().audited(asked.after, count);
        let rows = rows.map_err(|error| OperatorError::Refused(error.to_string()))?.into_iter();
        Ok(rows
            .map(|row| api::AuditRow {
                number: row.number,
                row: row.text,
                hash: store::audit::hex(&row.hash),
                mac: store::audit::hex(&row.mac),
            })
            .collect())
    }

    /// Notes what was answered to a request of the API for a day, so that it can be answered again
    /// without being carried out again.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    pub fn note_answer(&self, key: &str, text: &str) -> Result<(), OperatorError> {
        let now = unix_seconds();
        let noted = self.changing.authority().note((ANSWERS, key), text, (now, now + ANSWERS_LAST_S));
        noted.map_err(|refusal| OperatorError::NotKept(refusal.to_string()))
    }

    /// Returns what was answered to a request of the API.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn noted_answer(&self, key: &str) -> Result<Option<String>, OperatorError> {
        let noted = self.changing.authority().noted((ANSWERS, key), unix_seconds());
        noted.map_err(|error| OperatorError::NotKept(error.to_string()))
    }

    /// Returns the number of the configuration in use.
    pub fn revision(&self) -> u64 {
        lock(&self.view).revision
    }

    /// Changes what is logged until the next reload, if that is wanted; returns what is.
    ///
    /// # Errors
    ///
    /// There is no such level.
    pub fn log_level(&self, wanted: Option<&str>) -> Result<api::LogLevelIs, OperatorError> {
        let configured = log_level::filter(lock(&self.current).loaded.settings.log_level);
        if let Some(word) = wanted {
            let level = log_level::level(word).ok_or_else(|| {
                let expected = "expected error, warn, info, debug or trace";
                OperatorError::Argument(format!("unknown log level \"{word}\" ({expected})"))
            })?;
            // First what it was, then what it is: one of the two lets this line through.
            let was = self.components.log_level.level();
            if level > was {
                self.components.log_level.set(level);
            }
            info!(%level, %was, "log level changed, until the next reload");
            self.components.log_level.set(level);
        }
        Ok(api::LogLevelIs {
            level: self.components.log_level.level().to_string(),
            configured: configured.to_string(),
        })
    }

    /// Begins a schedule now; returns how all stand then.
    ///
    /// # Errors
    ///
    /// There is none of this name, or it is at work.
    pub fn job_run(&self, name: &str) -> Result<Vec<api::Job>, OperatorError> {
        self.components.jobs.run_now(name)?;
        Ok(self.jobs())
    }

    /// Says how schedules stand.
    pub fn jobs(&self) -> Vec<api::Job> {
        let jobs = self.components.jobs.schedules().into_iter().map(|state| api::Job {
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

    /// Returns the queries that wait, of each worker.
    ///
    /// # Errors
    ///
    /// A worker does not answer.
    pub fn waiting(&self) -> Result<Vec<Vec<driver::Waiting>>, OperatorError> {
        self.ask_each_worker(Asked::List)
    }

    /// Ends the queries that wait for other servers, whose clients get SERVFAIL; returns how many
    /// there were.
    ///
    /// # Errors
    ///
    /// A worker does not answer.
    pub fn end_waiting(&self) -> Result<usize, OperatorError> {
        Ok(self.ask_each_worker(Asked::EndWaiting)?.into_iter().sum())
    }

    fn ask_each_worker<T>(&self, order: fn(SyncSender<T>) -> Asked) -> Result<Vec<T>, OperatorError> {
        let of_worker = |worker: &mpsc::Sender<Asked>| {
            let (reply, heard) = sync_channel(1);
            worker
                .blocking_send(order(reply))
                .map_err(|_| OperatorError::Refused("the server is ending".to_owned()))?;
            let late = |_| OperatorError::TimedOut("a worker did not answer in time".to_owned());
            heard.recv_timeout(EXPLANATION_PATIENCE).map_err(late)
        };
        self.facts.asking.iter().map(of_worker).collect()
    }

    /// Has a worker take a query, and returns what happened to it.
    ///
    /// # Errors
    ///
    /// What is asked makes no sense, or the query was not answered in time.
    pub fn explain(&self, asked: &api::Explain) -> Result<api::Explained, OperatorError> {
        let plans = lock(&self.current).plans.clone();
        let prepared = Prepared::new(asked, plans.listeners())?;
        let recorder = Recorder::default();
        let (reply, heard) = sync_channel(1);
        let (query, client) = (prepared.query.clone(), prepared.client.clone());
        let job = Explaining { query, client, recorder: recorder.share(), reply };
        let is_ending = || OperatorError::Refused("the server is ending".to_owned());
        let worker = self.facts.asking.first().ok_or_else(is_ending)?;
        worker.blocking_send(Asked::Explain(job)).map_err(|_| is_ending())?;
        let reply = match heard.recv_timeout(EXPLANATION_PATIENCE) {
            Ok(reply) => Some(reply),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                return Err(OperatorError::TimedOut("the query was not answered in time".to_owned()));
            }
        };
        let trace = recorder.take();
        if !trace.snapshot.as_ref().is_some_and(|snapshot| Arc::ptr_eq(snapshot, &plans.snapshot)) {
            let why = "the configuration was replaced meanwhile; ask again";
            return Err(OperatorError::Busy(why.to_owned()));
        }
        Ok(prepared.explained(&plans, &trace, reply.as_deref()))
    }
}

/// Takes one of so many places; it is free again when what is returned is dropped.
fn place(places: &Arc<()>, max: usize, what: &str) -> Result<Arc<()>, OperatorError> {
    let place = Arc::clone(places);
    match Arc::strong_count(&place) > max + 1 {
        true => Err(OperatorError::Busy(format!("{max} {what} are under way already"))),
        false => Ok(place),
    }
}

/// Returns the seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
