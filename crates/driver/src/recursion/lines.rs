//! Lines of the log on what was asked of other servers for a question, for whoever wants these.
//!
//! They are written when the question has come to its end: until then they are in its trace.

use engine::OutQuery;
use resolver::{TraceEvent, TraceLine, TraceServer};
use tracing::{Level, debug, enabled};
use wire::Class;

/// Whence these lines are: who formats the log can tell them from others.
const TARGET: &str = "gannet::resolution";

/// Returns whether the log has such lines.
pub(crate) fn are_wanted() -> bool {
    enabled!(target: TARGET, Level::DEBUG)
}

/// Logs what was asked for a question, and what came.
pub(crate) fn write(query: &OutQuery, trace: &[TraceLine]) {
    if are_wanted() {
        lines(query, trace).for_each(|line| debug!(target: TARGET, "{line}"));
    }
}

fn lines<'t>(query: &OutQuery, trace: &'t [TraceLine]) -> impl Iterator<Item = String> + use<'t> {
    let begins = format!("resolving {} {} {}", query.qname.as_name(), query.qtype, query.qclass);
    std::iter::once(begins).chain(trace.iter().filter_map(reply).flatten())
}

/// Returns the lines of a reply; `None` if there was none.
fn reply(line: &TraceLine) -> Option<[String; 3]> {
    let TraceLine { server, zone, qname, qtype, event, .. } = line;
    let what = match event {
        TraceEvent::Data | TraceEvent::TooLong => "ANSWER",
        TraceEvent::Alias(_) => "CNAME",
        TraceEvent::NoData => "nodata ANSWER",
        TraceEvent::NoName => "NXDOMAIN ANSWER",
        TraceEvent::Referral(_) => "REFERRAL",
        TraceEvent::Lame => "LAME",
        TraceEvent::Error(_) | TraceEvent::Malformed => "THROWAWAY",
        TraceEvent::Sent
        | TraceEvent::SentOverTcp
        | TraceEvent::Late
        | TraceEvent::Unanswered(_)
        | TraceEvent::Bogus(_) => return None,
    };
    let from = match server {
        TraceServer::At(address) => format!("{}#{}", address.ip(), address.port()),
        TraceServer::Forwarders | TraceServer::Unnamed => "a server".to_owned(),
        TraceServer::SecondLevel | TraceServer::Own => return None,
    };
    Some([
        format!("response for {qname} {qtype} {}", Class::IN),
        format!("reply from <{zone}> {from}"),
        format!("query response was {what}"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use resolver::HeapName;
    use wire::Rtype;

    #[test]
    fn a_reply_has_three_lines_and_what_was_sent_none() {
        let name = |text: &str| HeapName::new(text.parse::<wire::NameBuf>().expect("a name").as_name());
        let line = |event| TraceLine {
            after_us: 0,
            server: TraceServer::At("[2001:db8::1]:53".parse().expect("an address")),
            zone: name("example"),
            qname: name("www.example"),
            qtype: Rtype::AAAA,
            event,
        };
        assert_eq!(reply(&line(TraceEvent::Sent)), None);
        assert_eq!(
            reply(&line(TraceEvent::Referral(name("www.example")))).expect("lines").join("; "),
            "response for www.example. AAAA IN; reply from <example.> 2001:db8::1#53; query response was REFERRAL"
        );
    }
}
