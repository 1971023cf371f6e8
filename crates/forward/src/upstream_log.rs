//! What the log says about upstreams that go down and come back: each change once, whichever worker
//! sees it first.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::{info, warn};

use exchange::health::Why;
use plan::upstreams::Scheme;

/// Upstreams whose state is remembered; far more than anybody has.
const UPSTREAMS_MAX: usize = 1024;
/// Lines that may be written at once.
const LINES_MAX: u32 = 40;
/// A further line may be written after each of these.
const LINE_EVERY: Duration = Duration::from_secs(3);

/// An upstream went down or came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Where it is.
    pub address: SocketAddr,
    /// How it is asked.
    pub protocol: Scheme,
    /// Whether it came back.
    pub is_up: bool,
    /// Why it changed.
    pub why: Why,
    /// The groups it is in.
    pub groups: Vec<String>,
    /// Those in which no server is up now.
    pub dead_groups: Vec<String>,
}

/// What is in the log, for all workers of a process.
#[derive(Debug, Default)]
pub struct UpstreamLog(Mutex<Logged>);

#[derive(Debug, Default)]
struct Logged {
    /// Upstreams that are down as far as the log says.
    down: BTreeSet<(String, SocketAddr)>,
    /// Groups that are down as far as the log says.
    dead_groups: BTreeSet<String>,
    /// Changes of each upstream that were not written because there were too many lines.
    left_out: u64,
    budget: Option<Budget>,
}

#[derive(Debug)]
struct Budget {
    lines: u32,
    since: Instant,
}

/// A line for the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Warn(String),
    Info(String),
}

impl UpstreamLog {
    /// Writes what is new about an upstream.
    pub fn write(&self, state_change: &StateChange, now: Instant) {
        for line in self.lines(state_change, now) {
            match line {
                Line::Warn(text) => warn!("{text}"),
                Line::Info(text) => info!("{text}"),
            }
        }
    }

    /// Returns what is to be written.
    fn lines(&self, state_change: &StateChange, now: Instant) -> Vec<Line> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let server = format!("{}{}", state_change.protocol.prefix(), state_change.address);
        let groups = match state_change.groups.as_slice() {
            [] => String::new(),
            groups => format!(" ({})", groups.join(", ")),
        };
        let key = (state_change.protocol.prefix().to_owned(), state_change.address);
        let mut lines = Vec::new();
        if state_change.is_up {
            if logged.down.remove(&key) {
                lines.push(Line::Info(format!("upstream {server}{groups} answers again")));
            }
            for group in &state_change.groups {
                if logged.dead_groups.remove(group) {
                    lines.push(Line::Info(format!(
                        "upstream group \"{group}\" has a server that answers again"
                    )));
                }
            }
        } else {
            if logged.down.len() < UPSTREAMS_MAX && logged.down.insert(key) {
                lines.push(Line::Warn(format!("upstream {server}{groups} is down: {}", state_change.why)));
            }
            for group in &state_change.dead_groups {
                if logged.dead_groups.len() < UPSTREAMS_MAX && logged.dead_groups.insert(group.clone()) {
                    lines.push(Line::Warn(format!(
                        "upstream group \"{group}\" is down: none of its servers answers"
                    )));
                }
            }
        }
        lines.retain(|_| logged.may_write(now));
        if let (Some(Line::Warn(text) | Line::Info(text)), left_out @ 1..) =
            (lines.first_mut(), logged.left_out)
        {
            text.push_str(&format!("; {left_out} changes before this one were not logged"));
            logged.left_out = 0;
        }
        lines
    }
}

impl Logged {
    /// Returns whether a line may be written, and counts it either way.
    fn may_write(&mut self, now: Instant) -> bool {
        let budget = self.budget.get_or_insert(Budget { lines: LINES_MAX, since: now });
        let earned = (now.saturating_duration_since(budget.since).as_secs() / LINE_EVERY.as_secs()) as u32;
        if earned > 0 {
            budget.lines = budget.lines.saturating_add(earned).min(LINES_MAX);
            budget.since = now;
        }
        match budget.lines.checked_sub(1) {
            Some(rest) => {
                budget.lines = rest;
                true
            }
            None => {
                self.left_out += 1;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    fn state_change(last: u8, is_up: bool, dead_groups: &[&str]) -> StateChange {
        StateChange {
            address: SocketAddr::from(([192, 0, 2, last], 53)),
            protocol: Scheme::Udp,
            is_up,
            why: Why::Network(ErrorKind::ConnectionRefused),
            groups: vec!["main".into()],
            dead_groups: dead_groups.iter().map(|&group| group.into()).collect(),
        }
    }

    #[test]
    fn each_change_is_said_once_whichever_worker_sees_it() {
        let (upstream_log, now) = (UpstreamLog::default(), Instant::now());
        let lines = upstream_log.lines(&state_change(1, false, &[]), now);
        assert_eq!(lines, [Line::Warn("upstream 192.0.2.1:53 (main) is down: connection refused".into())]);
        assert_eq!(upstream_log.lines(&state_change(1, false, &[]), now), [], "another worker");
        let lines = upstream_log.lines(&state_change(2, false, &["main"]), now);
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines.last(),
            Some(&Line::Warn("upstream group \"main\" is down: none of its servers answers".into()))
        );
        assert_eq!(upstream_log.lines(&state_change(1, false, &["main"]), now), []);
        let lines = upstream_log.lines(&state_change(1, true, &[]), now);
        assert_eq!(
            lines,
            [
                Line::Info("upstream 192.0.2.1:53 (main) answers again".into()),
                Line::Info("upstream group \"main\" has a server that answers again".into()),
            ]
        );
        assert_eq!(upstream_log.lines(&state_change(1, true, &[]), now), []);
    }

    #[test]
    fn an_upstream_that_goes_up_and_down_all_the_time_does_not_fill_the_log() {
        let (upstream_log, mut now) = (UpstreamLog::default(), Instant::now());
        let mut count = 0;
        for round in 0..10_000 {
            now += Duration::from_millis(30);
            count += upstream_log.lines(&state_change(1, round % 2 == 1, &[]), now).len();
        }
        assert!(count <= 40 + 300 / 3 + 1, "{count} lines in 300 s");
    }
}
