//! kxdpgun, Knot's generator for AF_XDP: asks at a rate, whatever is answered.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::load::Tally;
use crate::pair::Pair;
use crate::sys;

/// Queries that it puts on the ring at a time.
const BATCH: &str = "32";

/// Lets kxdpgun ask from the client's end, `rate` queries a second from `query_file`.
pub(super) fn run(
    pair: &Pair,
    rate: f64,
    time: Duration,
    query_file: &Path,
    cores: &[usize],
) -> Result<Tally, String> {
    let address = pair.address();
    let core = cores.first().copied().unwrap_or(0).to_string();
    let seconds = time.as_secs().max(1);
    let mut command = Command::new("kxdpgun");
    command.args(["-F", &core, "-b", BATCH, "-t", &seconds.to_string(), "-Q", &format!("{rate:.0}"), "-i"]);
    command.arg(query_file).args(["-p", &address.port().to_string(), &address.ip().to_string()]);
    command.stdin(Stdio::null());
    sys::confine(&mut command, cores);
    let output = pair.at_client(|| command.output())?;
    let output = output.map_err(|error| format!("cannot start kxdpgun (Debian: knot-dnsutils): {error}"))?;
    // Its program stays on the interface, and would take what kernel sockets of the client are to
    // hear.
    pair.clear();
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text, Duration::from_secs(seconds)).ok_or_else(|| {
        let said = [output.stdout.as_slice(), &output.stderr].concat();
        format!("kxdpgun: {}", String::from_utf8_lossy(&said).trim())
    })
}

/// Reads its summary.
fn parse(text: &str, time: Duration) -> Option<Tally> {
    let number = |label: &str| -> Option<u64> {
        let line = text.lines().map(str::trim).find(|line| line.starts_with(label))?;
        line.strip_prefix(label)?.split_whitespace().next()?.parse().ok()
    };
    let (sent, replies) = (number("total queries:")?, number("total replies:")?);
    let answered = number("responded NOERROR:").unwrap_or(0);
    Some(Tally {
        sent,
        answered,
        lost: sent.saturating_sub(replies),
        wrong_content: replies.saturating_sub(answered),
        elapsed: time,
        ..Tally::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_kxdpgun_is_read() {
        let text = "using interface c0, XDP threads 1, UDP, native mode\nthread#00: sent 60000, received 59990\ntotal queries:     60000 (30000 pps)\ntotal replies:     59990 (29995 pps) (99%)\naverage DNS reply size: 58 B\naverage Ethernet reply rate: 23996000 bps (24.00 Mbps)\nresponded NOERROR:   59980\nresponded REFUSED:   10\nduration: 2 s\n";
        let tally = parse(text, Duration::from_secs(2)).expect("well-formed");
        assert_eq!((tally.sent, tally.answered, tally.lost, tally.wrong()), (60_000, 59_980, 10, 10));
        assert!((tally.qps() - 29_990.0).abs() < 1e-6);
        assert!(parse("error: no interface", Duration::from_secs(2)).is_none());
    }
}
