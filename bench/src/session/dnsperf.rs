//! dnsperf as the load generator, to cross-check ours.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::load::{Plan, Tally, Transport};
use crate::sys;

/// When dnsperf ends.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// After this time.
    Elapsed(Duration),
    /// When it has asked the whole file.
    Once,
}

/// Lets dnsperf make the load of `plan` from `query_file`, with the same clients and queries in flight.
pub(super) fn run(
    plan: &Plan,
    threads: usize,
    until: Until,
    query_file: &Path,
    cores: &[usize],
) -> Result<Tally, String> {
    let mut command = Command::new("dnsperf");
    command.args(["-s", &plan.server.ip().to_string(), "-p", &plan.server.port().to_string()]);
    command.arg("-d").arg(query_file);
    // Each of its threads is one that sends and one that receives.
    let threads = threads.to_string();
    command.args(["-c", &plan.clients.to_string(), "-T", &threads, "-q", &plan.outstanding.to_string()]);
    match until {
        Until::Elapsed(time) => command.args(["-l", &time.as_secs().max(1).to_string()]),
        Until::Once => command.args(["-n", "1"]),
    };
    command.args(["-t", "1"]);
    match plan.transport {
        Transport::Udp => {}
        Transport::Tcp => drop(command.args(["-m", "tcp"])),
        Transport::TcpEach => return Err("dnsperf keeps its connections".to_owned()),
    }
    if let Some(rate) = plan.rate {
        command.args(["-Q", &format!("{rate:.0}")]);
    }
    command.stdin(Stdio::null());
    sys::confine(&mut command, cores);
    let output = command.output().map_err(|error| format!("cannot start dnsperf: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| format!("dnsperf: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Reads dnsperf's summary.
fn parse(text: &str) -> Option<Tally> {
    let number = |label: &str| -> Option<f64> {
        let line = text.lines().map(str::trim).find(|line| line.starts_with(label))?;
        line.strip_prefix(label)?.split_whitespace().next()?.parse().ok()
    };
    let mut tally = Tally {
        sent: number("Queries sent:")? as u64,
        answered: number("Queries completed:")? as u64,
        lost: number("Queries lost:")? as u64,
        elapsed: Duration::from_secs_f64(number("Run time (s):")?),
        ..Tally::default()
    };
    // dnsperf gives no distribution: only the mean can be carried over.
    tally.latency.record((number("Average Latency (s):")? * 1e9) as u64);
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_dnsperf_is_read() {
        let text = "Statistics:\n\n  Queries sent:         1000\n  Queries completed:    990 (99.00%)\n  Queries lost:         10 (1.00%)\n\n  Run time (s):         2.000000\n  Queries per second:   495.0\n\n  Average Latency (s):  0.000250 (min 0.000010, max 0.002000)\n";
        let tally = parse(text).expect("well-formed");
        assert_eq!((tally.sent, tally.answered, tally.lost), (1000, 990, 10));
        assert!((tally.qps() - 495.0).abs() < 1e-6);
        assert!((tally.latency.mean_us() - 250.0).abs() < 1e-6);
    }
}
