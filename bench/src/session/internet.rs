//! The simulated internet of a scenario, served by a process of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::Plans;
use super::event::Change;
use crate::load::Tally;
use crate::probe;
use crate::process::{Server, Usage};
use crate::scenario::{Asked, Scenario};
use crate::world::namespace::Namespace;

/// How long it may take to sign what is asked, and to answer then.
const START_MAX: Duration = Duration::from_secs(180);
/// How often it is looked at until then.
const POLL: Duration = Duration::from_millis(20);
/// Of a thousand questions that are no loss of the way's, how many a resolver may fail to answer.
const FAILED_MAX: u64 = 10;
/// Queries upstream from which on it is told what each answer took.
const TELLING: u64 = 100;
/// The response code of a resolver that gives up.
const SERVFAIL: usize = 2;

/// A simulated internet that runs; ended when dropped.
pub(super) struct Served {
    server: Server,
    asked: Asked,
    directory: PathBuf,
}

/// What it was asked, and what it used, by some time.
pub(super) struct Book {
    kinds: Vec<(&'static str, u64)>,
    usage: Usage,
}

impl Served {
    /// Starts the internet that a scenario asks, and waits until it answers.
    pub(super) fn start(plans: &Plans, scenario: &Scenario, asked: Asked) -> Result<Self, String> {
        let directory = plans.work.join(format!("{}-internet", scenario.name));
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let this =
            std::env::current_exe().map_err(|error| format!("cannot find this tool itself: {error}"))?;
        let mut command = Command::new(this);
        // In a session without figures, what is asked is signed when it is asked.
        let signed = scenario.unknown().unwrap_or(asked).zones_end();
        let signed = if plans.is_smoke { 0 } else { signed };
        command
            .arg("world")
            .args(asked.internet.arguments(signed, asked.hosts))
            .arg("--write")
            .arg(&directory);
        let server = Server::start(command, &plans.load_cores, &directory.join("log"))?;
        let mut served = Self { server, asked, directory };
        let begun = Instant::now();
        loop {
            match probe::world_kinds(Namespace::control()) {
                Ok(_) => return Ok(served),
                Err(error) if begun.elapsed() > START_MAX => return Err(error),
                Err(_) => {}
            }
            if let Some(obituary) = served.server.obituary() {
                return Err(format!("the internet {obituary}"));
            }
            thread::park_timeout(POLL);
        }
    }

    /// Returns what rivals' files may say of it: `hints`, the file of the root's servers; if it is
    /// signed, `anchor`, the file with the root's DS, and `ds`, the data of it, with the digest in
    /// quotation marks as `quoted-ds`.
    pub(super) fn variables(&self) -> Result<BTreeMap<&'static str, String>, String> {
        let path = |name: &str| self.directory.join(name);
        let mut variables = BTreeMap::from([("hints", path("root.hints").display().to_string())]);
        if self.asked.internet.is_signed {
            let anchor = path("root.ds");
            let text =
                fs::read_to_string(&anchor).map_err(|error| format!("{}: {error}", anchor.display()))?;
            let words: Vec<&str> = text.split_whitespace().collect();
            let [_, _, _, _, tag, algorithm, digest_type, digest] = words[..] else {
                return Err(format!("{}: \"{text}\" is no DS", anchor.display()));
            };
            variables.insert("anchor", anchor.display().to_string());
            variables.insert("ds", format!("{tag} {algorithm} {digest_type} {digest}"));
            variables.insert("quoted-ds", format!("{tag} {algorithm} {digest_type} \"{digest}\""));
        }
        Ok(variables)
    }

    /// Changes the way to it, as far as that can be.
    pub(super) fn change(&self, change: Change) -> Result<(), String> {
        match change {
            Change::Loss(ppm) => probe::stub_set(Namespace::control(), "loss", ppm),
            Change::DelayMs(delay) => probe::stub_set(Namespace::control(), "delay", delay),
            Change::Stop | Change::Start | Change::Ttl(_) | Change::Rcode(_) => {
                Err("an internet changes only in what is lost on the way, and in how long it is".to_owned())
            }
        }
    }

    /// Returns how many queries it has had.
    pub(super) fn count(&self) -> Result<u64, String> {
        probe::stub_count(Namespace::control())
    }

    /// Opens the books before something is timed.
    pub(super) fn book(&self) -> Result<Book, String> {
        Ok(Book { kinds: probe::world_kinds(Namespace::control())?, usage: self.server.usage() })
    }

    /// Says what it was asked since then for each answer, and what it used for each query.
    pub(super) fn account(&self, before: &Book, tally: &Tally) -> Result<String, String> {
        let after = self.book()?;
        let answered = tally.answered.max(1) as f64;
        let since: Vec<(&str, u64)> = after
            .kinds
            .iter()
            .zip(&before.kinds)
            .map(|(after, before)| (after.0, after.1.saturating_sub(before.1)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let texts: Vec<String> =
            since.iter().map(|(kind, count)| format!("{kind} {:.3}", *count as f64 / answered)).collect();
        let all = since.first().map_or(0, |(_, count)| *count);
        if all < TELLING {
            return Ok(format!("{all} queries upstream"));
        }
        let cpu_us = after.usage.cpu_since(&before.usage).as_secs_f64() * 1e6 / all as f64;
        Ok(format!(
            "queries upstream for each answer: {}; the internet used {cpu_us:.1} µs a query",
            texts.join(", ")
        ))
    }

    /// Returns whether some questions may go without an answer: a resolver cannot help loss, nor
    /// having too much to do.
    pub(super) const fn is_lossy(&self) -> bool {
        self.asked.internet.loss_ppm > 0
    }

    /// Judges all that was answered: what is wrong is an error, and so are failures, unless some
    /// may be.
    pub(super) fn judge(&self, tally: &Tally, is_lossy: bool) -> Result<(), String> {
        let failed = tally.wrong_rcodes[SERVFAIL];
        let is_right = tally.wrong() == failed;
        let unanswered = failed + tally.lost;
        if is_right && (is_lossy || unanswered * 1_000 <= tally.sent * FAILED_MAX) {
            return Ok(());
        }
        let complaint = tally.complaint().map(|complaint| format!(": {complaint}")).unwrap_or_default();
        Err(format!("{} of {} answered rightly, {} lost{complaint}", tally.answered, tally.sent, tally.lost))
    }
}
