//! What is no load: how long Unbound and Gannet in its place take for one thing, under one file, in
//! turns, and what memory they need for it.
//!
//! Never tells a figure of a run whose outcome was not looked at first.

mod check;
mod command;
mod policy_zone;
mod start;

use std::fs;
use std::io::{BufWriter, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

use wire::Rtype;

use crate::probe::{self, Heard, Silence};
use crate::process::Server;
use crate::queries::{Ask, Expected, Extras};

pub use command::Command;

/// How long anything may take before a run is given up.
const PATIENCE: Duration = Duration::from_secs(180);

/// What to run, and how often.
#[derive(Clone, Debug)]
struct Arguments {
    gannet: PathBuf,
    unbound: PathBuf,
    /// Local zones, or names of the policy zone.
    names: usize,
    rounds: usize,
    /// The cores of the servers.
    cores: Vec<usize>,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Unbound,
    Gannet,
}

/// The two in the order of their turns.
const SIDES: [Side; 2] = [Side::Unbound, Side::Gannet];

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Unbound => "unbound",
            Self::Gannet => "gannet",
        }
    }
}

/// A figure of both sides, a value for each round.
#[derive(Debug, Default)]
struct Figure {
    unit: &'static str,
    name: &'static str,
    unbound: Vec<f64>,
    gannet: Vec<f64>,
}

impl Figure {
    fn new(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, ..Self::default() }
    }

    fn add(&mut self, side: Side, value: f64) {
        match side {
            Side::Unbound => self.unbound.push(value),
            Side::Gannet => self.gannet.push(value),
        }
    }

    /// Writes the medians, the largest values, and the ratio of the medians.
    fn line(&self) -> String {
        let (unbound, gannet) = (median(&self.unbound), median(&self.gannet));
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        format!(
            "{:<28} unbound {unbound:10.2} {unit} (at most {:.2}), gannet {gannet:10.2} {unit} (at most {:.2}): {:.3}",
            self.name,
            most(&self.unbound),
            most(&self.gannet),
            gannet / unbound,
            unit = self.unit
        )
    }
}

/// Returns the median; of an even number, the mean of the two in the middle.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match (sorted.get(half.wrapping_sub(1)), sorted.get(half)) {
        (Some(below), Some(above)) if sorted.len().is_multiple_of(2) => f64::midpoint(*below, *above),
        (_, Some(middle)) => *middle,
        (_, None) => f64::NAN,
    }
}

/// Returns a port of loopback that nobody has for now.
fn free_port() -> Result<u16, String> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    socket.map(|address| address.port()).map_err(|error| format!("a free port: {error}"))
}

/// Returns the directory of one server, new and empty.
fn own_directory(directory: &Path, side: Side) -> Result<PathBuf, String> {
    let own = directory.join(side.name());
    let made = || -> std::io::Result<()> {
        if own.exists() {
            fs::remove_dir_all(&own)?;
        }
        fs::create_dir_all(&own)
    };
    made().map_err(|error| format!("{}: {error}", own.display()))?;
    Ok(own)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes lines, one for each number, without holding them: what this process holds would count as
/// a child's memory at its start.
fn write_lines(path: &Path, count: usize, line: impl Fn(usize) -> String) -> Result<(), String> {
    let written = || -> std::io::Result<()> {
        let mut file = BufWriter::new(fs::File::create(path)?);
        for number in 0..count {
            writeln!(file, "{}", line(number))?;
        }
        file.flush()
    };
    written().map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the name of a number, as long as names on block lists are.
fn listed_name(number: usize) -> String {
    // Knuth's multiplier: neighbours in the file are none in the alphabet.
    let mixed = (number as u32).wrapping_mul(2_654_435_761);
    format!("{mixed:x}.ads{}.example", number % 97)
}

/// What a server must have said for a question to count as answered.
type Holds<'h> = &'h dyn Fn(&Heard) -> bool;

/// Runs `unbound -d` of one side on a file; the log is beside it.
fn spawn(arguments: &Arguments, side: Side, directory: &Path) -> Result<Server, String> {
    let mut command = match side {
        Side::Unbound => process::Command::new(&arguments.unbound),
        Side::Gannet => {
            let mut command = process::Command::new(&arguments.gannet);
            command.env("GANNET_SOCKET", directory.join("control.sock")).arg("unbound");
            command
        }
    };
    command.arg("-d").arg("-c").arg(directory.join("unbound.conf"));
    Server::start(command, &arguments.cores, &directory.join("log"))
}

/// Asks until the answer is as wanted; returns the time since `since`.
fn until(
    server: &mut Server,
    address: SocketAddr,
    (ask, extras): (&Ask, Extras),
    holds: Holds<'_>,
    since: Instant,
) -> Result<Duration, String> {
    let mut last = String::new();
    while since.elapsed() < PATIENCE {
        if let Some(obituary) = server.obituary() {
            return Err(obituary);
        }
        match probe::ask(address, ask, extras) {
            Ok(heard) if holds(&heard) => return Ok(since.elapsed()),
            Ok(heard) => last = format!("{heard:?}"),
            Err(Silence::Network(_)) => std::thread::park_timeout(Duration::from_millis(1)),
            Err(silence) => last = silence.to_string(),
        }
    }
    Err(format!("{ask}: not in {} s ({last}): {}", PATIENCE.as_secs(), server.last_words()))
}

/// Returns a question for an address, of which nothing is known.
fn question(name: &str) -> Ask {
    Ask { name: name.to_owned(), rtype: Rtype::A, expected: Expected::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios_are_told() {
        let mut figure = Figure::new("time", "ms");
        for (side, value) in [(Side::Unbound, 4.0), (Side::Unbound, 2.0), (Side::Gannet, 1.5)] {
            figure.add(side, value);
        }
        assert!(figure.line().ends_with("(at most 4.00), gannet       1.50 ms (at most 1.50): 0.500"));
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn a_million_names_are_a_million() {
        let names: std::collections::HashSet<String> = (0..100_000).map(listed_name).collect();
        assert_eq!(names.len(), 100_000);
        assert_ne!(listed_name(999_999), listed_name(0));
    }
}
