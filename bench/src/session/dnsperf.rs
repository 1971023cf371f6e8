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

/// Lets dnsperf make the load of `plan` from `query_file`, with the same clients and queries in
/// flight; answers with an error are wrong if `all_exist`.
pub(super) fn run(
    plan: &Plan,
    (threads, until): (usize, Until),
    query_file: &Path,
    all_exist: bool,
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
        Transport::Tls => drop(command.args(["-m", "dot"])),
        Transport::Https => {
            let uri = format!("doh-uri=https://{}/dns-query", plan.server);
            // Sent as POST, each query would wait for the acknowledgement of its head (Nagle).
            command.args(["-m", "doh", "-O", &uri, "-O", "doh-method=GET"]);
        }
        Transport::TcpEach | Transport::TlsEach => return Err("dnsperf keeps its connections".to_owned()),
    }
    if let Some(rate) = plan.rate {
        command.args(["-Q", &format!("{rate:.0}")]);
    }
    command.stdin(Stdio::null());
    sys::confine(&mut command, cores);
    let output = command.output().map_err(|error| format!("cannot start dnsperf: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text, all_exist)
        .ok_or_else(|| format!("dnsperf: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Reads dnsperf's summary.
fn parse(text: &str, all_exist: bool) -> Option<Tally> {
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
    if all_exist && tally.answered > 0 {
        // "Response codes:       NOERROR 990 (99.00%), SERVFAIL 10 (1.00%)"
        let codes = text.lines().find_map(|line| line.trim().strip_prefix("Response codes:"))?;
        let right = codes.split(',').find_map(|part| part.trim().strip_prefix("NOERROR "));
        let right = right.and_then(|part| part.split(' ').next()?.parse().ok()).unwrap_or(0);
        tally.wrong_content = tally.answered.saturating_sub(right);
        tally.answered = right;
    }
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
        let tally = parse(text, false).expect("well-formed");
        assert_eq!((tally.sent, tally.answered, tally.lost), (1000, 990, 10));
        assert!((tally.qps() - 495.0).abs() < 1e-6);
        assert!((tally.latency.mean_us() - 250.0).abs() < 1e-6);
        assert!(parse(text, true).is_none(), "it does not say how many were right");
        let coded = format!("{text}  Response codes:       SERVFAIL 10 (1.01%), NOERROR 980 (98.99%)\n");
        let tally = parse(&coded, true).expect("well-formed");
        assert_eq!((tally.answered, tally.wrong_content), (980, 10));
    }
}
