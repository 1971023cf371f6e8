//! Checkpoints of the audit log, given to those who keep them: the system's log, files, web
//! servers.
//!
//! One thread gives them away, and nobody waits for it. Each sink has a queue: where one cannot be
//! given, it is tried again after a time, and those that find no room take the place of the oldest.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use events::Counter;
use plan::jobs::AuditSink;
use tracing::{info, warn};
use ureq::http::Request;

use crate::http::{Trust, agent};
use crate::resolver::Resolvers;

/// Checkpoints that wait for one sink.
const QUEUE_MAX: usize = 64;
/// How long after a failure a sink is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// How long a web server may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long what waits may still be given away when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Where the system's log takes messages.
const SYSLOG: &str = "/dev/log";
/// Of the facility for what concerns security, and of note (RFC 3164 §4.1.1).
const PRIORITY: u8 = (10 << 3) | 5;
/// Mode of a file.
const MODE: u32 = 0o640;

/// The sinks, and the thread that gives.
pub(crate) struct Checkpoints {
    shared: Arc<Shared>,
    resolvers: Resolvers,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Something is to be done, or all is done.
    changed: Condvar,
    delivered: Counter,
    failed: Counter,
    dropped: Counter,
}

#[derive(Default)]
struct State {
    sinks: Vec<Sink>,
    /// Whether the thread is there.
    is_served: bool,
    is_stopping: bool,
    has_ended: bool,
}

struct Sink {
    plan: AuditSink,
    waiting: VecDeque<String>,
    /// Not before this.
    at: Option<Instant>,
}

impl Checkpoints {
    pub(crate) fn new(resolvers: Resolvers) -> Self {
        Self { shared: Arc::default(), resolvers }
    }

    /// Gives to these from now on. What waits for one that stays goes on waiting.
    pub(crate) fn adopt(&self, plans: &[AuditSink]) {
        let mut state = self.shared.lock();
        let mut old = std::mem::take(&mut state.sinks);
        state.sinks = plans
            .iter()
            .map(|plan| match old.iter().position(|sink| sink.plan == *plan) {
                Some(at) => old.swap_remove(at),
                None => Sink { plan: plan.clone(), waiting: VecDeque::new(), at: None },
            })
            .collect();
        if state.is_served || state.sinks.is_empty() || state.is_stopping {
            return;
        }
        let (shared, resolvers) = (Arc::clone(&self.shared), self.resolvers.clone());
        let started = thread::Builder::new().name("audit".to_owned()).spawn(move || shared.serve(&resolvers));
        match started {
            Ok(_) => state.is_served = true,
            Err(error) => warn!(%error, "checkpoints of the audit log are given to nobody"),
        }
    }

    /// Has a checkpoint given to all; waits for none.
    pub(crate) fn give(&self, checkpoint: &str) {
        let mut state = self.shared.lock();
        for sink in &mut state.sinks {
            if sink.waiting.len() >= QUEUE_MAX {
                sink.waiting.pop_front();
                self.shared.dropped.bump();
            }
            sink.waiting.push_back(checkpoint.to_owned());
        }
        self.shared.changed.notify_all();
    }

    /// Ends: what waits is given for a moment.
    pub(crate) fn stop(&self) {
        let mut state = self.shared.lock();
        state.is_stopping = true;
        self.shared.changed.notify_all();
        if !state.is_served {
            return;
        }
        let wait = self.shared.changed.wait_timeout_while(state, LAST_WORDS, |state| !state.has_ended);
        drop(wait);
    }

    /// Returns what was given, could not be, and found no room.
    pub(crate) fn stats(&self) -> [(&'static str, u64); 3] {
        let Shared { delivered, failed, dropped, .. } = &*self.shared;
        [("delivered", delivered.read()), ("failed", failed.read()), ("dropped", dropped.read())]
    }
}

impl Shared {
    /// A panic ends the process, so that a poisoned mutex is never seen.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, resolvers: &Resolvers) {
        while let Some((plan, checkpoint)) = self.next() {
            let given = deliver(&plan, &checkpoint, resolvers);
            let mut state = self.lock();
            let is_stopping = state.is_stopping;
            let Some(sink) = state.sinks.iter_mut().find(|sink| sink.plan == plan) else { continue };
            let was_failing = sink.at.is_some();
            match given {
                Ok(()) => {
                    self.delivered.bump();
                    sink.at = None;
                    if sink.waiting.front() == Some(&checkpoint) {
                        sink.waiting.pop_front();
                    }
                    if was_failing {
                        info!(sink = %plan, "checkpoints of the audit log are kept again");
                    }
                }
                Err(error) => {
                    self.failed.bump();
                    sink.at = Some(Instant::now() + RETRY_AFTER);
                    if !was_failing {
                        warn!(sink = %plan, %error, "a checkpoint of the audit log is not kept");
                    }
                    if is_stopping {
                        sink.waiting.clear();
                    }
                }
            }
        }
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits for something that is to be given; `None` at the end.
    fn next(&self) -> Option<(AuditSink, String)> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let is_stopping = state.is_stopping;
            let is_due = |sink: &&Sink| is_stopping || sink.at.is_none_or(|at| at <= now);
            let waiting = state.sinks.iter().filter(|sink| !sink.waiting.is_empty());
            if let Some(sink) = waiting.clone().find(is_due) {
                let checkpoint = sink.waiting.front().cloned().unwrap_or_default();
                return Some((sink.plan.clone(), checkpoint));
            }
            if is_stopping {
                return None;
            }
            let next = waiting.filter_map(|sink| sink.at).min();
            let patience = next.map_or(RETRY_AFTER, |at| at.saturating_duration_since(now));
            let waited = self.changed.wait_timeout(state, patience);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn deliver(plan: &AuditSink, checkpoint: &str, resolvers: &Resolvers) -> io::Result<()> {
    match plan {
        AuditSink::Syslog => to_syslog(Path::new(SYSLOG), checkpoint),
        AuditSink::File(file) => {
            let mut file = OpenOptions::new().append(true).create(true).mode(MODE).open(file)?;
            let length = file.metadata()?.len();
            let written = file.write_all(format!("{checkpoint}\n").as_bytes());
            if written.is_err() {
                // Half a line would spoil the next one.
                drop(file.set_len(length));
            }
            written.and_then(|()| file.sync_data())
        }
        AuditSink::Http(url) => {
            let agent = agent(PATIENCE, &Trust::Usual, resolvers.clone())?;
            let request = Request::post(url).header("Content-Type", "application/json");
            let request =
                request.body(format!("{{\"checkpoint\":\"{checkpoint}\"}}\n")).map_err(io::Error::other)?;
            let status = agent.run(request).map_err(io::Error::other)?.status();
            if status.is_success() {
                Ok(())
            } else {
                Err(io::Error::other(format!("the server answers {status}")))
            }
        }
    }
}

fn to_syslog(socket: &Path, checkpoint: &str) -> io::Result<()> {
    let message = format!("<{PRIORITY}>gannet[{}]: audit checkpoint {checkpoint}", std::process::id());
    UnixDatagram::unbound()?.send_to(message.as_bytes(), socket).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpListener;

    fn resolvers() -> Resolvers {
        Resolvers::new(Arc::new(crate::resolver::Nobody))
    }

    #[test]
    fn each_checkpoint_comes_to_every_sink_and_the_end_waits_for_them() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = folder.path().join("checkpoints");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/audit", listener.local_addr().expect("an address"));
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let (mut heard, mut buffer) = (Vec::new(), [0; 1024]);
            while !heard.ends_with(b"}\n") {
                let count = stream.read(&mut buffer).expect("readable");
                heard.extend_from_slice(&buffer[..count]);
            }
            stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").expect("writable");
            String::from_utf8(heard).expect("text")
        });
        let checkpoints = Checkpoints::new(resolvers());
        checkpoints.give("for nobody");
        checkpoints.adopt(&[AuditSink::File(file.clone()), AuditSink::Http(url)]);
        checkpoints.give("1:ab:2:cd");
        let heard = server.join().expect("it ends");
        assert!(
            heard.starts_with("POST /audit") && heard.ends_with("{\"checkpoint\":\"1:ab:2:cd\"}\n"),
            "{heard}"
        );
        checkpoints.stop();
        assert_eq!(std::fs::read_to_string(file).expect("readable"), "1:ab:2:cd\n");
        assert_eq!(checkpoints.stats(), [("delivered", 2), ("failed", 0), ("dropped", 0)]);
    }

    #[test]
    fn a_sink_that_takes_nothing_keeps_the_newest_and_nobody_waits() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let good = folder.path().join("good");
        let missing = folder.path().join("missing");
        let bad = AuditSink::File(missing.join("checkpoints"));
        let checkpoints = Checkpoints::new(resolvers());
        checkpoints.adopt(&[bad.clone(), AuditSink::File(good.clone())]);
        let count = QUEUE_MAX + 9;
        for number in 0..count {
            checkpoints.give(&number.to_string());
            // The good one has taken it: it is not left out.
            while checkpoints.shared.lock().sinks[1].waiting.front().is_some() {
                thread::yield_now();
            }
        }
        assert!(checkpoints.stats()[2].1 >= 8, "{:?}", checkpoints.stats());
        std::fs::create_dir(missing).expect("a directory");
        checkpoints.stop();
        let kept = std::fs::read_to_string(good).expect("readable");
        assert_eq!(kept.lines().count(), count);
        let AuditSink::File(file) = bad else { unreachable!() };
        let late = std::fs::read_to_string(file).expect("readable");
        assert_eq!(late.lines().last(), Some(&*(count - 1).to_string()));
        assert_eq!(late.lines().count(), QUEUE_MAX);
    }

    #[test]
    fn the_systems_log_hears_of_it() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("log");
        let log = UnixDatagram::bind(&path).expect("a socket");
        to_syslog(&path, "7:ab:1:cd").expect("sent");
        let mut buffer = [0; 256];
        let count = log.recv(&mut buffer).expect("a message");
        let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
        assert!(text.starts_with("<85>gannet[") && text.ends_with("]: audit checkpoint 7:ab:1:cd"), "{text}");
    }
}
