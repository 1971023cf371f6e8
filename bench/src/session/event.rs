//! What happens to a server or its upstreams while it is timed: reloads, losses, delays, outages.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use super::stubs::Stubs;
use crate::process::Server;
use crate::rival::Prepared;

/// How long a run goes on after its last event, so that the recovery is seen.
const AFTERMATH: Duration = Duration::from_secs(3);

/// Something that is done at a point of a timed run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Time from the first query.
    pub at: Duration,
    /// What is done.
    pub what: What,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// The server reads its configuration again, in the way its file names under `reload`.
    Reload,
    /// The files that hold the rules are replaced by those with one more; the server is not told.
    Rules,
    /// The stub of this name (as rivals' files call its port: `stub`, `race1`, …) changes.
    Stub(&'static str, Change),
}

/// How a stub changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Its process ends: the port is closed.
    Stop,
    /// A new process begins to answer on the same port.
    Start,
    /// From now on it loses this many of a million queries.
    Loss(u32),
    /// From now on it keeps every reply back for so many milliseconds.
    DelayMs(u32),
    /// From now on all its replies have this response code; 0 means answers.
    Rcode(u16),
    /// From now on its answers may be kept for so many seconds.
    Ttl(u32),
}

impl fmt::Display for What {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reload => write!(out, "reload"),
            Self::Rules => write!(out, "a rule is added"),
            Self::Stub(name, Change::Stop) => write!(out, "{name} stops"),
            Self::Stub(name, Change::Start) => write!(out, "{name} starts"),
            Self::Stub(name, Change::Loss(ppm)) => write!(out, "{name} loses {} %", f64::from(*ppm) / 1e4),
            Self::Stub(name, Change::DelayMs(delay)) => write!(out, "{name} waits {delay} ms"),
            Self::Stub(name, Change::Ttl(ttl)) => write!(out, "{name} answers with a TTL of {ttl} s"),
            Self::Stub(name, Change::Rcode(rcode)) => write!(out, "{name} answers with rcode {rcode}"),
        }
    }
}

/// An event that was carried out.
#[derive(Clone, Debug)]
pub struct Done {
    /// When it began, from the first query.
    pub at: Duration,
    /// How long the command took that carried it out.
    pub took: Duration,
    /// What it was.
    pub what: What,
}

/// Returns how long a run must be at least to show `events` and what follows.
pub(super) fn time_min(events: &[Event]) -> Duration {
    events.iter().map(|event| event.at + AFTERMATH).max().unwrap_or_default()
}

/// Carries out `events` (in order of time), counted from now; returns when each was done.
pub(super) fn carry_out(
    events: &[Event],
    server: &Server,
    prepared: &Prepared,
    stubs: &Stubs<'_>,
) -> Result<Vec<Done>, String> {
    let begun = Instant::now();
    let mut done = Vec::with_capacity(events.len());
    for event in events {
        thread::sleep(event.at.saturating_sub(begun.elapsed()));
        let at = begun.elapsed();
        match event.what {
            What::Rules => prepared.change_rules()?,
            What::Reload => match &prepared.reload {
                Some(reload) => server.reload(reload)?,
                None => return Err("its file does not say how it reloads".to_owned()),
            },
            What::Stub(name, change) => stubs.change(name, change)?,
        }
        done.push(Done { at, took: begun.elapsed().saturating_sub(at), what: event.what });
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lasts_beyond_its_last_event() {
        let event = |ms| Event { at: Duration::from_millis(ms), what: What::Reload };
        assert_eq!(time_min(&[]), Duration::ZERO);
        assert_eq!(time_min(&[event(500), event(1500)]), Duration::from_millis(1500) + AFTERMATH);
    }

    #[test]
    fn events_are_described_for_people() {
        let text = |change| What::Stub("race1", change).to_string();
        assert_eq!(text(Change::Loss(15_000)), "race1 loses 1.5 %");
        assert_eq!(text(Change::Rcode(2)), "race1 answers with rcode 2");
        assert_eq!(What::Reload.to_string(), "reload");
    }
}
