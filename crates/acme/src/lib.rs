//! Certificates from authorities (ACME, RFC 8555): ordered, renewed in time, kept on disk.
//!
//! Never delays whoever answers queries, never uses a certificate that is not the one that was
//! ordered.
//!
//! One thread orders, one certificate after the other: whatever an authority does, its order ends
//! within minutes, and the certificate that there is stays in use. What became of an order is on
//! disk before the next is thought of.

#![forbid(unsafe_code)]

mod caa;
mod client;
mod jose;
mod key;
mod order;
mod record;
mod schedule;
#[cfg(test)]
mod tests;
pub mod web;

use std::fmt;
use std::fs;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plan::certificates::{CertificatePlan, Challenge, identity};
use plan::tls::renewal_id;
use tracing::{info, warn};

pub use caa::Caa;
use client::{Client, Failure};
use order::{Around, Issued, ORDER_PATIENCE};
use record::{Record, order_of, write_private};
pub use schedule::Window;
use schedule::{Life, ask_in, renew_at, retry_in};
use web::Web;

/// How long the thread sleeps at most: the clock on the wall may be set.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Characters that are told of what was in the way: authorities choose many of them.
const TROUBLE_CHARS_MAX: usize = 1_000;

/// Returns the seconds since 1970; tests have a clock of their own.
pub type WallClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Where authorities look, and where certificates are used.
pub trait Place: Send + Sync {
    /// Shows what an authority is to see, and returns when it can. Blocks.
    ///
    /// # Errors
    ///
    /// Why it cannot be shown.
    fn show(&self, plan: &CertificatePlan, challenges: &[Challenge]) -> Result<(), String>;

    /// Shows it no more.
    fn hide(&self, plan: &CertificatePlan, challenges: &[Challenge]);

    /// Returns the CAA records that count for a host: those of the closest name at or above it (RFC
    /// 8659 §3). Blocks.
    ///
    /// # Errors
    ///
    /// Why they are not known.
    fn caa(&self, host: &str) -> Result<Vec<Caa>, String>;

    /// Uses the certificates that there are now, from the next handshake on; this one is new.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// Why those of before stay in use.
    fn adopt(&self, certificate: &str) -> Result<(), String>;

    /// Hears what became of an order. Must not wait.
    fn hear(&self, plan: &CertificatePlan, news: &News<'_>);
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// A certificate was issued.
    Issued {
        /// Whether there was one before.
        is_renewal: bool,
        /// Who issued it.
        authority: &'a str,
        /// Until when it holds, in seconds since 1970.
        ends: u64,
    },
    /// There is none.
    Failed {
        /// Why.
        why: &'a str,
        /// When it is ordered again, in seconds since 1970.
        again_at: u64,
    },
}

/// How a certificate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateState {
    /// What the configuration calls it.
    pub name: String,
    /// Whom it is for.
    pub names: Vec<String>,
    /// From when and until when it holds, in seconds since 1970; `None` as long as there is none.
    pub life: Option<(u64, u64)>,
    /// The authority that gave it.
    pub authority: Option<String>,
    /// When the next order is due.
    pub next_at: u64,
    /// When the authority wants it renewed.
    pub window: Option<Window>,
    /// Orders that were begun.
    pub attempts: u64,
    /// Orders in a row that came to nothing.
    pub failures: u32,
    /// What was in the way of the last one, and when.
    pub trouble: Option<(u64, String)>,
    /// Whether it is being ordered.
    pub is_at_work: bool,
}

/// A certificate that is not ordered now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchCertificate(pub String);

impl fmt::Display for NoSuchCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no certificate \"{}\" is ordered", self.0)
    }
}

impl std::error::Error for NoSuchCertificate {}

/// A certificate that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    life: Life,
    names: Vec<String>,
    /// What it is called by authorities (RFC 9773 §4.1).
    id: Option<String>,
    /// Chooses a moment, the same as long as it is the same certificate.
    spread: u16,
}

impl Held {
    /// Reads the certificate that there is.
    fn read(plan: &CertificatePlan) -> Option<Self> {
        let pem = fs::read(&plan.file).ok()?;
        let (identity, facts) = match identity(&pem) {
            Ok(read) => read,
            Err(why) => {
                warn!(file = %plan.file.display(), why, "the certificate cannot be used; it is ordered anew");
                return None;
            }
        };
        let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
        let id = identity.chain().first().and_then(|certificate| renewal_id(certificate));
        let id = id.map(|(key, serial)| format!("{}.{}", jose::base64url(key), jose::base64url(serial)));
        let [first, second, ..] = facts.key;
        Some(Self {
            life: Life { begins: seconds(facts.begins), ends: seconds(facts.ends) },
            names: facts.names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            id,
            spread: u16::from_be_bytes([first, second]),
        })
    }

    /// Returns whether it is for the names that are wanted, and no others.
    fn is_for(&self, plan: &CertificatePlan) -> bool {
        let wanted: Vec<String> = plan.identifiers.iter().map(ToString::to_string).collect();
        wanted.iter().all(|name| self.names.contains(name))
            && self.names.iter().all(|name| wanted.contains(name))
    }
}

/// One certificate.
struct Entry {
    plan: Arc<CertificatePlan>,
    held: Option<Held>,
    record: Record,
    is_at_work: bool,
    /// Whether an operator wants it ordered, whenever it was due.
    is_wanted: bool,
}

impl Entry {
    fn new(plan: &Arc<CertificatePlan>) -> Self {
        let (held, record) = (Held::read(plan), Record::read(plan));
        let mut entry = Self { plan: Arc::clone(plan), held, record, is_at_work: false, is_wanted: false };
        entry.settle();
        entry
    }

    /// Forgets failures of what was ordered before, if something else is.
    fn settle(&mut self) {
        let order = order_of(&self.plan);
        if self.record.order != order {
            (self.record.order, self.record.failures, self.record.next_at) = (order, 0, 0);
            self.record.trouble = None;
        }
    }

    /// Returns when the next order is due.
    fn next_at(&self) -> u64 {
        if self.is_wanted {
            return 0;
        }
        let is_of_others = |url: &String| self.plan.authorities.iter().all(|it| it.url != *url);
        let due = match &self.held {
            Some(held)
                if held.is_for(&self.plan) && !self.record.authority.as_ref().is_some_and(is_of_others) =>
            {
                renew_at(held.life, self.record.window, self.record.issued_at, held.spread)
            }
            _ => 0,
        };
        due.max(self.record.next_at)
    }

    /// Returns when its authority is asked when to renew it; `None` if there is nothing to ask.
    fn ask_at(&self) -> Option<u64> {
        let held = self.held.as_ref()?;
        held.id.as_ref()?;
        self.record.authority.as_ref()?;
        Some(self.record.ask_at)
    }

    fn state(&self) -> CertificateState {
        let Record { authority, attempts, failures, trouble, window, .. } = self.record.clone();
        CertificateState {
            name: self.plan.name.clone(),
            names: self.plan.identifiers.iter().map(ToString::to_string).collect(),
            life: self.held.as_ref().map(|held| (held.life.begins, held.life.ends)),
            authority,
            next_at: self.next_at(),
            window,
            attempts,
            failures,
            trouble,
            is_at_work: self.is_at_work,
        }
    }
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// Whether authorities can see what they look for.
    is_begun: bool,
    has_thread: bool,
    ends: bool,
}

struct Shared {
    place: Arc<dyn Place>,
    web: Arc<dyn Web>,
    clock: WallClock,
    /// Held for a moment only.
    state: Mutex<State>,
    wake: Condvar,
}

/// What is to be done.
enum Due {
    Order,
    /// Ask when to renew it.
    Ask,
}

/// Orders certificates on a thread of its own.
pub struct Certificates(Arc<Shared>);

impl Certificates {
    /// Orders nothing before [`Certificates::begin`].
    pub fn new(place: Arc<dyn Place>, web: Arc<dyn Web>, clock: WallClock) -> Self {
        let (state, wake) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { place, web, clock, state, wake }))
    }

    /// Goes on with these certificates. What is known of those that were there before stays.
    pub fn adopt(&self, plans: &[Arc<CertificatePlan>]) {
        let mut state = lock(&self.0.state);
        let mut before = std::mem::take(&mut state.entries);
        state.entries = plans
            .iter()
            .map(|plan| match before.iter().position(|entry| entry.plan.file == plan.file) {
                Some(at) => {
                    let mut entry = before.swap_remove(at);
                    let contacts = |plan: &CertificatePlan| {
                        plan.authorities.iter().map(|it| it.contact.clone()).collect::<Vec<_>>()
                    };
                    if contacts(&entry.plan) != contacts(plan) {
                        // It is told with the question when to renew.
                        entry.record.ask_at = 0;
                    }
                    entry.plan = Arc::clone(plan);
                    entry.settle();
                    entry
                }
                None => Entry::new(plan),
            })
            .collect();
        self.run_if_needed(&mut state);
        self.0.wake.notify_all();
    }

    /// Begins to order: from now on authorities can see what they look for.
    pub fn begin(&self) {
        let mut state = lock(&self.0.state);
        state.is_begun = true;
        self.run_if_needed(&mut state);
    }

    /// Starts the thread, once there is something for it to do.
    fn run_if_needed(&self, state: &mut State) {
        if state.has_thread || !state.is_begun || state.entries.is_empty() {
            return;
        }
        let shared = Arc::clone(&self.0);
        match std::thread::Builder::new().name("certificates".into()).spawn(move || shared.run()) {
            Ok(_) => state.has_thread = true,
            Err(error) => warn!(%error, "no certificates are ordered: no thread for it"),
        }
    }

    /// Orders no more. An order that is under way is left alone: nobody waits for an authority.
    pub fn stop(&self) {
        lock(&self.0.state).ends = true;
        self.0.wake.notify_all();
    }

    /// Returns how certificates stand, in the order of the configuration.
    pub fn states(&self) -> Vec<CertificateState> {
        lock(&self.0.state).entries.iter().map(Entry::state).collect()
    }

    /// Orders a certificate now, whatever became of it before.
    ///
    /// # Errors
    ///
    /// There is none of this name.
    pub fn renew(&self, name: &str) -> Result<(), NoSuchCertificate> {
        let mut state = lock(&self.0.state);
        let entry = state.entries.iter_mut().find(|entry| entry.plan.name == name);
        let entry = entry.ok_or_else(|| NoSuchCertificate(name.to_owned()))?;
        entry.is_wanted = true;
        (entry.record.failures, entry.record.next_at) = (0, 0);
        self.0.wake.notify_all();
        Ok(())
    }
}

impl Shared {
    fn run(&self) {
        while let Some((entry, due)) = self.next() {
            self.turn(entry, &due);
        }
    }

    /// Waits for something to do; `None` at the end.
    fn next(&self) -> Option<(Entry, Due)> {
        let mut state = lock(&self.state);
        loop {
            if state.ends {
                return None;
            }
            let now = (self.clock)();
            let is_due = |entry: &Entry| {
                let asks = entry.ask_at().is_some_and(|at| at <= now);
                if entry.next_at() <= now { Some(Due::Order) } else { asks.then_some(Due::Ask) }
            };
            // The one that has waited for longest: none that fails keeps the others from a turn.
            let due = state.entries.iter_mut().filter_map(|entry| is_due(entry).map(|due| (entry, due)));
            let first = due.min_by_key(|(entry, due)| match due {
                Due::Order => entry.record.next_at,
                Due::Ask => entry.record.ask_at,
            });
            if let Some((entry, due)) = first {
                entry.is_at_work = true;
                let (plan, held, record) =
                    (Arc::clone(&entry.plan), entry.held.clone(), entry.record.clone());
                let is_wanted = std::mem::take(&mut entry.is_wanted);
                return Some((Entry { plan, held, record, is_at_work: true, is_wanted }, due));
            }
            let times = state.entries.iter().flat_map(|entry| [Some(entry.next_at()), entry.ask_at()]);
            let next =
                times.flatten().min().map_or(SLEEP_MAX, |at| Duration::from_secs(at.saturating_sub(now)));
            let waited = self.wake.wait_timeout(state, next.min(SLEEP_MAX));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Does what is due for one certificate.
    fn turn(&self, mut entry: Entry, due: &Due) {
        match due {
            Due::Order => self.order(&mut entry),
            Due::Ask => self.ask(&mut entry),
        }
        self.publish(&entry, false);
    }

    /// Has the world know what became of a certificate.
    fn publish(&self, entry: &Entry, is_at_work: bool) {
        let mut state = lock(&self.state);
        let known = state.entries.iter_mut().find(|known| known.plan.file == entry.plan.file);
        if let Some(known) = known {
            // What is to be told since is told in a turn of its own.
            let asks_at_once =
                known.record.ask_at == 0 && entry.record.ask_at != 0 && known.plan != entry.plan;
            (known.held, known.record) = (entry.held.clone(), entry.record.clone());
            known.is_at_work = is_at_work;
            if asks_at_once {
                known.record.ask_at = 0;
            }
            known.settle();
        }
    }

    /// Asks one authority after the other for a certificate.
    fn order(&self, entry: &mut Entry) {
        let plan = Arc::clone(&entry.plan);
        let now = (self.clock)();
        let is_repeated = entry.record.failures > 0;
        entry.record.attempts += 1;
        entry.record.failures = entry.record.failures.saturating_add(1);
        entry.record.next_at = now + retry_in(entry.record.failures, None, drawn());
        // First that it is tried, then the try: a server that ends in the middle of it and starts
        // again waits as after a failure.
        if let Err(error) = entry.record.write(&plan) {
            // Nor could the certificate be kept.
            let why = format!("nothing can be written beside \"{}\": {error}", plan.file.display());
            return self.failed(entry, vec![Failure::from(why)], is_repeated);
        }
        info!(certificate = plan.name, attempt = entry.record.failures, "a certificate is ordered");
        let around = Around { place: &*self.place, web: &*self.web };
        let mut failures = Vec::new();
        for authority in &plan.authorities {
            let is_its = entry.record.authority.as_ref() == Some(&authority.url);
            let replaces = entry.held.as_ref().and_then(|held| held.id.as_deref()).filter(|_| is_its);
            match order::issue(&plan, authority, replaces, &around) {
                Ok(issued) => match self.keep(entry, &issued, &authority.url) {
                    Ok(()) => return,
                    Err(why) => failures.push(Failure::from(why)),
                },
                Err(failure) => {
                    failures.push(Failure { why: format!("{}: {}", authority.url, failure.why), ..failure });
                }
            }
        }
        self.failed(entry, failures, is_repeated);
    }

    /// Notes that no authority gave a certificate.
    fn failed(&self, entry: &mut Entry, failures: Vec<Failure>, is_repeated: bool) {
        let now = (self.clock)();
        let asked = failures.iter().filter_map(|failure| failure.retry_after).max();
        let why = failures.into_iter().map(|failure| failure.why).collect::<Vec<_>>().join("; ");
        let why: String = why.chars().take(TROUBLE_CHARS_MAX).collect();
        let is_known = is_repeated && entry.record.trouble.as_ref().is_some_and(|(_, known)| *known == why);
        entry.record.next_at = now + retry_in(entry.record.failures, asked, drawn());
        let (certificate, retry_in_s) = (&entry.plan.name, entry.record.next_at - now);
        if is_known {
            info!(certificate, retry_in_s, "no certificate, for the same reason");
        } else {
            warn!(certificate, why, retry_in_s, "no certificate; the one that there is stays in use");
        }
        self.place.hear(&entry.plan, &News::Failed { why: &why, again_at: entry.record.next_at });
        entry.record.trouble = Some((now, why));
        self.write(entry);
    }

    /// Puts a certificate on the disk and into use.
    fn keep(&self, entry: &mut Entry, issued: &Issued, authority: &str) -> Result<(), String> {
        let plan = Arc::clone(&entry.plan);
        write_private(&plan.file, issued.pem.as_bytes())
            .map_err(|error| format!("\"{}\" cannot be written: {error}", plan.file.display()))?;
        let now = (self.clock)();
        let is_renewal = entry.held.is_some();
        entry.held = Held::read(&plan);
        let record = &mut entry.record;
        (record.failures, record.next_at, record.issued_at, record.ask_at) = (0, 0, now, now);
        (record.trouble, record.window, record.authority) = (None, None, Some(authority.to_owned()));
        self.write(entry);
        let ends = entry.held.as_ref().map_or(0, |held| held.life.ends);
        info!(certificate = plan.name, authority, ends, "a certificate was issued");
        // Whoever is shown it in a handshake is told of it by commands, too.
        self.publish(entry, true);
        if let Err(why) = self.place.adopt(&plan.name) {
            // It is on the disk: the next reload takes it.
            warn!(certificate = plan.name, why, "the new certificate is not in use yet");
        }
        self.place.hear(&plan, &News::Issued { is_renewal, authority, ends });
        Ok(())
    }

    /// Asks the authority of a certificate when to renew it (RFC 9773 §4).
    fn ask(&self, entry: &mut Entry) {
        let plan = Arc::clone(&entry.plan);
        let now = (self.clock)();
        let url = entry.record.authority.as_ref();
        let authority = url.and_then(|url| plan.authorities.iter().find(|authority| authority.url == *url));
        let id = entry.held.as_ref().and_then(|held| held.id.clone());
        let (Some(authority), Some(id)) = (authority, id) else {
            entry.record.ask_at = now + ask_in(None);
            return;
        };
        let heard = Client::new(authority, &*self.web, Instant::now() + ORDER_PATIENCE)
            .and_then(|client| order::tell_contacts(&plan, authority, client))
            .and_then(|mut client| client.window(&id));
        let (window, retry_after) = match heard {
            Ok(heard) => heard,
            Err(failure) => {
                // What was known stays: it does not matter before that is due (RFC 9773 §4.3.3).
                tracing::debug!(
                    certificate = plan.name,
                    why = failure.why,
                    "the authority does not say when to renew"
                );
                (entry.record.window, failure.retry_after)
            }
        };
        if window != entry.record.window
            && let Some(Window { start, end }) = window
        {
            info!(
                certificate = plan.name,
                start, end, "the authority says when the certificate is to be renewed"
            );
        }
        entry.record.window = window;
        entry.record.ask_at = now + ask_in(retry_after);
        self.write(entry);
    }

    fn write(&self, entry: &Entry) {
        if let Err(error) = entry.record.write(&entry.plan) {
            let certificate = &entry.plan.name;
            warn!(certificate, %error, "what became of an order cannot be written; after a restart it is not known");
        }
    }
}

/// Returns the clock on the wall.
pub fn wall_clock() -> WallClock {
    Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// Locks a mutex. A panic ends the process, so that a poisoned one is never seen.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws a number.
fn drawn() -> u16 {
    let mut octets = [0; 2];
    // Without randomness all wait equally long.
    let _: Result<(), getrandom::Error> = getrandom::fill(&mut octets);
    u16::from_be_bytes(octets)
}
