//! Lines of the log about queries, in the form of Unbound.
//!
//! The thread that writes them is not one that answers queries: what it is too slow for is dropped
//! in the rings, and counted there.

use engine::events::EventView;
use plan::jobs::QueryLines;
use tracing::{error, info};
use wire::Rcode;

use crate::names::name_text;

/// Whence lines with questions are: who formats the log can tell them from others.
const QUESTIONS: &str = "gannet::query";
/// Whence lines with replies are.
const REPLIES: &str = "gannet::reply";

/// Logs the lines about a query.
pub(crate) fn log(event: EventView<'_>, lines: &QueryLines) {
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
    if lines.failure && rcode == Rcode::SERVFAIL {
        error!("SERVFAIL <{question}>: no server gave an answer that can be used");
    }
    if lines.reply {
        let waited = event.waited_us();
        info!(
            target: REPLIES,
            "{client} {question} {rcode} {}.{:06} {} {}",
            waited / 1_000_000,
            waited % 1_000_000,
            u8::from(waited == 0),
            event.octets()
        );
    }
}

/// Returns a name with the dot at its end.
fn dotted(name: &str) -> String {
    if name.ends_with('.') { name.to_owned() } else { format!("{name}.") }
}
