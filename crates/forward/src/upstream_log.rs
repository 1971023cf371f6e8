//! What the log says about upstreams that go down and come back: each change once, whichever worker
//! sees it first.

use std::collections::BTreeSet;
use std::fmt;
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

/// Something new about an upstream, as it is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamNews {
    /// The server; `None` if it is about a group.
    pub server: Option<String>,
    /// The groups that the server is in, or the group.
    pub groups: Vec<String>,
    /// Whether it answers again.
    pub is_up: bool,
    /// Why it is down.
    pub why: Option<String>,
    /// Changes before this one that were not told.
    pub left_out: u64,
}

/// Whoever is told what is new, from a worker's thread: must not wait.
pub type Tell = Box<dyn Fn(UpstreamNews) + Send + Sync>;

/// What is in the log, for all workers of a process.
#[derive(Default)]
pub struct UpstreamLog {
    logged: Mutex<Logged>,
    tell: Option<Tell>,
}

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

impl fmt::Debug for UpstreamLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamLog").finish_non_exhaustive()
    }
}

impl fmt::Display for UpstreamNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups.join(", ");
        match (&self.server, &self.why) {
            (Some(server), why) => {
                let groups = if groups.is_empty() { String::new() } else { format!(" ({groups})") };
                match why {
                    Some(why) => write!(f, "upstream {server}{groups} is down: {why}")?,
                    None => write!(f, "upstream {server}{groups} answers again")?,
                }
            }
            (None, _) if self.is_up => {
                write!(f, "upstream group \"{groups}\" has a server that answers again")?;
            }
            (None, _) => write!(f, "upstream group \"{groups}\" is down: none of its servers answers")?,
        }
        match self.left_out {
            0 => Ok(()),
            left_out => write!(f, "; {left_out} changes before this one were not logged"),
        }
    }
}

impl UpstreamLog {
    /// Returns a log whose lines somebody else is told, too.
    pub fn telling(tell: Tell) -> Self {
        Self { tell: Some(tell), ..Self::default() }
    }

    /// Writes what is new about an upstream.
    pub fn write(&self, state_change: &StateChange, now: Instant) {
        for news in self.news(state_change, now) {
            if news.is_up {
                info!("{news}");
            } else {
                warn!("{news}");
            }
            if let Some(tell) = &self.tell {
                tell(news);
            }
        }
    }

    /// Returns what is new.
    fn news(&self, state_change: &StateChange, now: Instant) -> Vec<UpstreamNews> {
        let StateChange { address, protocol, is_up, why, groups, dead_groups } = state_change;
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let of_server = || UpstreamNews {
            server: Some(format!("{}{address}", protocol.prefix())),
            groups: groups.clone(),
            is_up: *is_up,
            why: (!is_up).then(|| why.to_string()),
            left_out: 0,
        };
        let of_group = |group: &String| UpstreamNews {
            server: None,
            groups: vec![group.clone()],
            is_up: *is_up,
            why: None,
            left_out: 0,
        };
        let key = (protocol.prefix().to_owned(), *address);
        let mut news = Vec::new();
        if *is_up {
            news.extend(logged.down.remove(&key).then(of_server));
            let back = groups.iter().filter(|group| logged.dead_groups.remove(*group));
            news.extend(back.map(of_group));
        } else {
            if logged.down.len() < UPSTREAMS_MAX && logged.down.insert(key) {
                news.push(of_server());
            }
            for group in dead_groups {
                if logged.dead_groups.len() < UPSTREAMS_MAX && logged.dead_groups.insert(group.clone()) {
                    news.push(of_group(group));
                }
            }
        }
        news.retain(|_| logged.may_write(now));
        if let Some(first) = news.first_mut() {
            first.left_out = std::mem::take(&mut logged.left_out);
        }
        news
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

    fn lines(upstream_log: &UpstreamLog, state_change: &StateChange, now: Instant) -> Vec<String> {
        upstream_log.news(state_change, now).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_change_is_said_once_whichever_worker_sees_it() {
        let (upstream_log, now) = (UpstreamLog::default(), Instant::now());
        let found = lines(&upstream_log, &state_change(1, false, &[]), now);
        assert_eq!(found, ["upstream 192.0.2.1:53 (main) is down: connection refused"]);
        assert_eq!(lines(&upstream_log, &state_change(1, false, &[]), now), [""; 0], "another worker");
        let found = lines(&upstream_log, &state_change(2, false, &["main"]), now);
        assert_eq!(found.len(), 2);
        assert_eq!(
            found.last().map(String::as_str),
            Some("upstream group \"main\" is down: none of its servers answers")
        );
        assert_eq!(lines(&upstream_log, &state_change(1, false, &["main"]), now), [""; 0]);
        let found = lines(&upstream_log, &state_change(1, true, &[]), now);
        assert_eq!(
            found,
            [
                "upstream 192.0.2.1:53 (main) answers again",
                "upstream group \"main\" has a server that answers again",
            ]
        );
        assert_eq!(lines(&upstream_log, &state_change(1, true, &[]), now), [""; 0]);
    }

    #[test]
    fn an_upstream_that_goes_up_and_down_all_the_time_does_not_fill_the_log() {
        let (upstream_log, mut now) = (UpstreamLog::default(), Instant::now());
        let mut count = 0;
        for round in 0..10_000 {
            now += Duration::from_millis(30);
            count += lines(&upstream_log, &state_change(1, round % 2 == 1, &[]), now).len();
        }
        assert!(count <= 40 + 300 / 3 + 1, "{count} lines in 300 s");
    }
}
