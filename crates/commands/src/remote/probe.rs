//! `gannet probe`: what is asked of the running server, and what is shown.

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, Request};

use crate::cli::ProbeArgs;
use crate::out;

/// Has the running server measure an upstream server.
pub fn probe(args: &ProbeArgs) -> ExitCode {
    if args.idle.is_some() {
        return out::wrong("--idle is for a server that is measured from here", args.remote.output);
    }
    let asked = api::ProbeAsked {
        server: args.upstream.clone(),
        name: Some(args.name.to_string()),
        signed: Some(args.signed.to_string()),
        bogus: Some(args.bogus.to_string()),
        count: args.count,
        timeout_ms: u32::try_from(args.timeout.as_millis()).ok(),
    };
    super::ask(&args.remote, &Request::Probe(asked), super::WORK_PATIENCE)
}

/// Draws the report of `gannet probe` as a table.
pub(super) fn text(report: &api::Probe) -> String {
    let mut text = String::new();
    let mut row = |key: &str, value: String| {
        let _ = writeln!(text, "{key:<16}{}", out::escaped(&value));
    };
    row("server", report.server.clone());
    row("address", format!("{} over {}", report.address, report.transport));
    for offered in &report.offered {
        let outcome = offered.trouble.clone().unwrap_or_else(|| "answers".to_owned());
        row("", format!("{:<6} {outcome}", offered.transport));
    }
    if let Some(certificate) = &report.certificate {
        row("certificate", certificate.names.join(", "));
        row("", format!("until {}, key {}", certificate.ends, certificate.pin));
    }
    if let Some(trouble) = &report.trouble {
        row("trouble", trouble.clone());
    }
    if report.answered == 0 {
        return text;
    }
    if let Some(connect_ms) = report.connect_ms {
        let again = report.again_ms.map(|again| format!(", again in {again} ms")).unwrap_or_default();
        row("connects in", format!("{connect_ms} ms{again}"));
    }
    let unanswered = match report.unanswered {
        0 => String::new(),
        count => format!(", {count} without an answer"),
    };
    let rcode = report.rcode.as_ref().map(|rcode| format!(", {rcode}")).unwrap_or_default();
    row("queries", format!("{} answered one after the other{unanswered}{rcode}", report.answered));
    if let Some(trips) = &report.round_trips {
        let (least, median, p95, most) = (trips.least_ms, trips.median_ms, trips.p95_ms, trips.most_ms);
        row("round trip", format!("{least} ms at least, {median} median, {p95} p95, {most} at most"));
    }
    if let Some(many) = &report.pipelining {
        let order = if many.out_of_order { "out of order" } else { "in order" };
        row("at once", format!("{} of {} answered, {order}", many.answered, many.sent));
    }
    match (report.closed_after_ms, report.watched_for_ms) {
        (Some(after), _) => row("idle", format!("closed after {after} ms")),
        (None, Some(watched)) => row("idle", format!("still open after {watched} ms")),
        (None, None) => (),
    }
    if let Some(subnet) = &report.client_subnet {
        row("client subnet", subnet.clone());
    }
    if let Some(dnssec) = &report.dnssec {
        let yes = |is: bool| if is { "yes" } else { "no" };
        let refuses = dnssec.refuses_bogus.map_or("not known", yes);
        row("signatures", format!("passed on: {}", yes(dnssec.passes_signatures_on)));
        row("", format!("said to be checked (AD): {}", yes(dnssec.says_it_validated)));
        row("", format!("bogus data refused: {refuses}"));
    }
    text
}
