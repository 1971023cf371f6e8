//! Lines of the log about queries, in the form of Unbound.
//!
//! The thread that writes them is not one that answers queries: what it is too slow for is dropped
//! in the rings, and counted there.

use std::net::SocketAddr;

use engine::Transport;
use events::EventView;
use plan::jobs::QueryLines;
use tracing::{error, info};
use wire::{EdeCode, Rcode};

use recorder::name_text;

/// Whence lines with questions are: who formats the log can tell them from others.
const QUESTIONS: &str = "gannet::query";
/// Whence lines with replies are.
const REPLIES: &str = "gannet::reply";

/// Logs the lines about a query; `listeners` are the addresses that queries come to, by number.
pub(crate) fn log(event: EventView<'_>, lines: &QueryLines, listeners: &[SocketAddr]) {
    let mut room = [0; 256];
    let client = event.client();
    let question =
        format!("{} {} {}", dotted(&name_text(event.qname(&mut room))), event.qtype(), event.qclass());
    if lines.question {
        info!(target: QUESTIONS, "{client} {question}");
    }
    if let Some(zone) = &lines.zone {
        info!("{zone} {client}@{} {question}", event.port());
    }
    let Some(rcode) = event.rcode() else { return };
    if rcode == Rcode::SERVFAIL {
        let cause = event.cause();
        if lines.bogus && cause.is_some_and(is_bogus) {
            info!("validation failure <{question}>{}", reason(cause.filter(|_| lines.reason)));
        }
        if lines.failure {
            let cause = cause.map_or_else(
                || "no server gave an answer that can be used".to_owned(),
                |cause| cause.to_string(),
            );
            error!("SERVFAIL <{question}>: {cause}");
        }
    }
    if lines.reply {
        let waited = event.waited_us();
        let destination = if lines.destination {
            destination(event.transport(), listeners.get(usize::from(event.listener().0)))
        } else {
            String::new()
        };
        info!(
            target: REPLIES,
            "{client} {question} {rcode} {}.{:06} {} {}{destination}",
            waited / 1_000_000,
            waited % 1_000_000,
            u8::from(waited == 0),
            event.octets()
        );
    }
}

/// Returns whether a failure is one to validate.
fn is_bogus(cause: EdeCode) -> bool {
    let bogus = EdeCode::DNSSEC_INDETERMINATE.0..=EdeCode::NSEC_MISSING.0;
    bogus.contains(&cause.0) || cause == EdeCode::SIGNATURE_EXPIRED_BEFORE_VALID
}

/// Returns a cause behind a colon, or nothing.
fn reason(cause: Option<EdeCode>) -> String {
    cause.map_or_else(String::new, |cause| format!(": {cause}"))
}

/// Returns how and where a query came, as Unbound names it; `None`: to a socket that no listener of
/// the configuration has.
fn destination(transport: Transport, listener: Option<&SocketAddr>) -> String {
    let over = match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Tls => "dot",
        Transport::Https | Transport::H3 => "doh",
        Transport::Quic => "doq",
        Transport::Dnscrypt => "dnscrypt",
        Transport::Unix => "unix",
    };
    match listener {
        Some(address) => format!(" on {over} {} {}", address.ip(), address.port()),
        None => format!(" on {over}"),
    }
}

/// Returns a name with the dot at its end.
fn dotted(name: &str) -> String {
    if name.ends_with('.') { name.to_owned() } else { format!("{name}.") }
}
