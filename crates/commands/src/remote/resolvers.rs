//! `gannet resolver`: what resolvers have learned.

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, NegativeOrder, Request, ResolverFlush, ResolverOrder, ResolverWhat};

use super::{LOOK_PATIENCE, WORK_PATIENCE, ask, span};
use crate::cli::{NegativeCommand, ResolverArgs, ResolverCommand, ResolverFlushArgs};
use crate::out;

/// Runs `gannet resolver`.
pub(super) fn run(command: &ResolverCommand) -> ExitCode {
    let (args, what, patience): (&ResolverArgs, _, _) = match command {
        ResolverCommand::Stats(args) => (args, ResolverWhat::Stats, LOOK_PATIENCE),
        ResolverCommand::Servers(args) => (args, ResolverWhat::Servers, LOOK_PATIENCE),
        ResolverCommand::Zone(args) => (&args.of, ResolverWhat::Zone(args.name.clone()), LOOK_PATIENCE),
        ResolverCommand::Anchors(args) => (args, ResolverWhat::Anchors, LOOK_PATIENCE),
        ResolverCommand::Negative(NegativeCommand::List(args)) => {
            (args, ResolverWhat::Negative(NegativeOrder::List), LOOK_PATIENCE)
        }
        ResolverCommand::Negative(NegativeCommand::Add(args)) => {
            let (zone, seconds, reason) = (args.zone.clone(), args.lasts.as_secs(), args.reason.clone());
            let order = NegativeOrder::Add { zone, seconds, reason };
            (&args.of, ResolverWhat::Negative(order), WORK_PATIENCE)
        }
        ResolverCommand::Negative(NegativeCommand::Remove(args)) => {
            let order = NegativeOrder::Remove { zone: args.name.clone() };
            (&args.of, ResolverWhat::Negative(order), WORK_PATIENCE)
        }
        ResolverCommand::Flush(args) => (&args.of, ResolverWhat::Flush(selection(args)), WORK_PATIENCE),
    };
    ask(&args.remote, &Request::Resolver(ResolverOrder { resolver: args.resolver.clone(), what }), patience)
}

fn selection(args: &ResolverFlushArgs) -> ResolverFlush {
    let what = &args.what;
    match (&what.name, &what.suffix, &args.rtype) {
        (Some(name), _, Some(rtype)) => ResolverFlush::Type { name: name.clone(), rtype: rtype.clone() },
        (Some(name), _, None) => ResolverFlush::Name(name.clone()),
        (None, Some(suffix), _) => ResolverFlush::Suffix(suffix.clone()),
        (None, None, _) if what.bogus => ResolverFlush::Bogus,
        (None, None, _) if what.negative => ResolverFlush::Negative,
        (None, None, _) => ResolverFlush::All,
    }
}

/// Lays out what is known of servers.
pub(super) fn servers_text(known: &api::ResolverServers) -> String {
    let mut text = String::new();
    for server in &known.servers {
        let _ = write!(text, "{}", server.address);
        let _ = match (server.round_trip_ms, server.variation_ms) {
            (Some(time), Some(variation)) => write!(text, "  {time:.1} ms, varies by {variation:.1}"),
            _ => write!(text, "  no answer yet"),
        };
        if server.silences > 0 {
            let _ = write!(text, ", {} queries in a row unanswered", server.silences);
        }
        if let Some(edns) = &server.edns {
            let _ = write!(text, ", EDNS {}", out::escaped(edns));
        }
        if let Some(keeps_case) = server.keeps_case {
            text.push_str(if keeps_case { ", keeps letter case" } else { ", changes letter case" });
        }
        if server.has_cookie {
            text.push_str(", cookie");
        }
        text.push('\n');
    }
    if known.is_cut_short {
        text.push_str("and more\n");
    }
    if known.servers.is_empty() {
        text.push_str("no resolver has asked a server\n");
    }
    text
}

/// Lays out trust anchors.
pub(super) fn anchors_text(anchors: &[api::ResolverAnchor]) -> String {
    let mut text = String::new();
    for anchor in anchors {
        let source = match (&anchor.file, anchor.is_followed) {
            (Some(file), true) => format!("followed, kept in {}", out::escaped(file)),
            (Some(file), false) => format!("from {}", out::escaped(file)),
            (None, _) => "from the program".to_owned(),
        };
        let _ = writeln!(text, "{}: zone {}, {source}", out::escaped(&anchor.resolver), anchor.zone);
        for key in &anchor.keys {
            let _ = write!(text, "  key {}, {}: {}", key.tag, key.algorithm, key.state);
            if let Some(since) = &key.since {
                let _ = write!(text, " since {since}");
            }
            text.push_str(if key.is_trusted { "\n" } else { ", not trusted\n" });
        }
        if anchor.keys.iter().all(|key| !key.is_trusted) {
            text.push_str("  nothing is trusted any more\n");
        }
        if anchor.is_followed {
            let known = |time: &Option<String>| time.clone().unwrap_or_else(|| "never".to_owned());
            let next = anchor.next_probe.as_deref().unwrap_or("now");
            let _ = writeln!(text, "  asked for {}, next {next}", known(&anchor.last_probe));
            if let Some(trouble) = &anchor.trouble {
                let good = known(&anchor.last_success);
                let _ = writeln!(text, "  without success: {}; last success {good}", out::escaped(trouble));
            }
        }
    }
    text
}

/// Lays out negative trust anchors.
pub(super) fn negative_text(all: &[api::ResolverNegative]) -> String {
    let mut text = String::new();
    for one in all {
        let _ = write!(text, "{}: zone {}, ", out::escaped(&one.resolver), one.zone);
        let _ = match (&one.until, one.is_over) {
            (Some(until), true) => write!(text, "ended {until}"),
            (Some(until), false) => write!(text, "until {until}"),
            (None, _) => write!(text, "without end"),
        };
        text.push_str(if one.is_added { ", added by command" } else { ", from the configuration" });
        if let Some(reason) = &one.reason {
            let _ = write!(text, ": {}", out::escaped(reason));
        }
        text.push('\n');
        if let (Some(tested), Some(finding)) = (&one.tested, &one.finding) {
            let _ = writeln!(text, "  tested {tested}: {}", out::escaped(finding));
        }
    }
    if all.is_empty() {
        text.push_str("there are no negative trust anchors\n");
    }
    text
}

/// Lays out the closest zones that enclose a name.
pub(super) fn zones_text(zones: &[api::ResolverZone]) -> String {
    let mut text = String::new();
    for known in zones {
        let resolver = out::escaped(&known.resolver);
        let Some(zone) = &known.zone else {
            let _ = writeln!(text, "{resolver}: no delegation is known; the search begins at the root hints");
            continue;
        };
        let _ = writeln!(
            text,
            "{resolver}: zone {zone}, {}, holds for {}",
            match known.ds.as_str() {
                "signed" => "signed (it has DS records)",
                "unsigned" => "unsigned (its parent has no DS records)",
                _ => "DS records not asked for",
            },
            span(known.holds_for_s.into())
        );
        for server in &known.servers {
            let _ = writeln!(text, "  {}  {}", server.name, server.addresses.join(", "));
        }
    }
    if zones.is_empty() {
        text.push_str("no resolver is in use\n");
    }
    text
}
