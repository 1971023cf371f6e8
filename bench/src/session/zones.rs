//! What is timed of servers that keep zones: transfers from them, transfers to them, zones that are
//! added.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use wire::Rtype;

use crate::load::Tally;
use crate::probe::{self, Probe};
use crate::process::Server;
use crate::queries::Ask;
use crate::rival::Prepared;
use crate::rules::{self, ZONE};
use crate::scenario::Questions;
use crate::sys;
use crate::transfer::primary::Primary;
use crate::transfer::receiver;

/// How long a new version, or a new zone, may take until it is answered.
const CHANGE_MAX: Duration = Duration::from_secs(60);
/// After this time a secondary that has nothing new is told again (RFC 1996 §3.6).
const TELL_AGAIN: Duration = Duration::from_secs(5);
/// How often a server is asked whether it has something new: often enough to be exact, seldom
/// enough to cost it nothing.
const POLL: Duration = Duration::from_millis(2);
/// A server is quiet when it uses less than [`QUIET_CPU`] in such a time.
const QUIET_TIME: Duration = Duration::from_millis(150);
/// CPU time that a quiet server may use.
const QUIET_CPU: Duration = Duration::from_millis(3);
/// How long a server may take to become quiet; if it does not, that is how it is.
const QUIET_MAX: Duration = Duration::from_secs(30);

/// Something that is done to a server again and again.
pub(super) struct ZoneWork<'w> {
    pub(super) server: &'w Server,
    /// Where it answers, over UDP and TCP.
    pub(super) address: SocketAddr,
    pub(super) what: What<'w>,
}

/// What is done.
pub(super) enum What<'w> {
    /// Its zone is taken from it.
    Take {
        /// Records of a transfer.
        records: u64,
    },
    /// A new version of its zone is given to it.
    Give(&'w Primary),
    /// A zone is added to it.
    Add(&'w Prepared),
}

/// Starts the primary of the zone that `questions` ask: with all its names, or only those that are
/// asked.
pub(super) fn primary(
    questions: Questions,
    asks: &[Ask],
    probes: &[Probe],
    is_small: bool,
) -> Result<Primary, String> {
    let Questions::Zone(names) = questions else {
        return Err("a primary serves the large zone".to_owned());
    };
    if !is_small {
        return Primary::start(&(0..names).collect::<Vec<_>>());
    }
    let asked = asks.iter().chain(probes.iter().map(|probe| &probe.ask));
    let mut numbers: Vec<usize> =
        asked.filter(|ask| ask.expected.rcode == 0).filter_map(|ask| rules::zone_number(&ask.name)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Primary::start(&numbers)
}

impl ZoneWork<'_> {
    /// Does it, again and again, until `time` is over; once at least.
    pub(super) fn until(&self, time: Duration) -> Result<Tally, String> {
        let begun = Instant::now();
        let mut tally = Tally::default();
        let own_cpu = sys::thread_cpu();
        for turn in 0.. {
            let took = match self.what {
                What::Take { records } => self.take(records, &mut tally)?,
                What::Give(primary) => self.give(primary, &mut tally)?,
                What::Add(prepared) => self.add(prepared, turn, &mut tally)?,
            };
            tally.sent = tally.answered;
            tally.elapsed += took;
            tally.latency.record(took.as_nanos() as u64);
            if begun.elapsed() >= time {
                break;
            }
        }
        tally.own_cpu = sys::thread_cpu() - own_cpu;
        await_quiet(self.server);
        Ok(tally)
    }

    fn take(&self, records: u64, tally: &mut Tally) -> Result<Duration, String> {
        let transferred = receiver::receive(self.address, ZONE, records)?;
        tally.answered += transferred.records;
        tally.remark = Some(format!(
            "a transfer is {} messages and {:.1} MiB",
            transferred.messages,
            transferred.octets as f64 / f64::from(1 << 20)
        ));
        Ok(transferred.took)
    }

    fn give(&self, primary: &Primary, tally: &mut Tally) -> Result<Duration, String> {
        let serial = primary.next_version();
        let begun = Instant::now();
        primary.notify(self.address)?;
        let mut told = Instant::now();
        // In a session without figures, several servers have one primary.
        while probe::serial_now(self.address, ZONE).is_none_or(|now| now < serial) {
            if begun.elapsed() > CHANGE_MAX {
                return Err(format!("has not taken over serial {serial} in {} s", CHANGE_MAX.as_secs()));
            }
            if told.elapsed() > TELL_AGAIN {
                primary.notify(self.address)?;
                told = Instant::now();
            }
            thread::park_timeout(POLL);
        }
        let took = begun.elapsed();
        tally.answered += primary.records();
        // What is left of one version is not to slow the next.
        await_quiet(self.server);
        Ok(took)
    }

    fn add(&self, prepared: &Prepared, turn: usize, tally: &mut Tally) -> Result<Duration, String> {
        let zone = format!("added{turn:05}.example.net");
        let ask = Ask::new(rules::in_small_zone(&zone), Rtype::A);
        let begun = Instant::now();
        prepared.add_zone(&zone)?;
        while !probe::has_address(self.address, &ask, rules::SMALL_ZONE_ADDRESS.into()) {
            if begun.elapsed() > CHANGE_MAX {
                return Err(format!("does not answer for {zone} after {} s", CHANGE_MAX.as_secs()));
            }
            thread::park_timeout(POLL);
        }
        tally.answered += 1;
        Ok(begun.elapsed())
    }
}

/// Waits until a server has nothing more to do.
pub(super) fn await_quiet(server: &Server) {
    let begun = Instant::now();
    let mut before = server.usage();
    while begun.elapsed() < QUIET_MAX {
        thread::sleep(QUIET_TIME);
        let now = server.usage();
        if now.cpu_since(&before) < QUIET_CPU {
            return;
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_primary_has_the_names_that_are_asked() {
        let questions = Questions::Zone(1_000);
        let asks: Vec<Ask> = questions.asks().into_iter().step_by(100).collect();
        let probes = questions.probes(&questions.asks()).expect("names");
        let primary = primary(questions, &asks, &probes, true).expect("loopback has ports");
        // The SOA twice, the server's name and its address.
        let names = primary.records() - 4;
        assert!((10..20).contains(&names), "{names}");
        for probe in &probes {
            assert!(probe.ask.expected.rcode != 0 || rules::zone_number(&probe.ask.name).is_some());
        }
    }
}
