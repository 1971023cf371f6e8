//! `gannet xdp check`: what this machine can do with AF_XDP, and why not more.

use std::process::ExitCode;

use control::api;
use xdp::{DeviceOptions, Fact, facts, is_usable};

use crate::cli::XdpCheckArgs;
use crate::out;

/// Runs `gannet xdp check`.
pub fn run(args: &XdpCheckArgs) -> ExitCode {
    let plan = args.interface.as_deref().map(DeviceOptions::new);
    let facts = facts(plan.as_ref());
    let outcome = if is_usable(&facts) { out::FINE } else { out::negative() };
    if args.output.json {
        let facts_of = |fact: &Fact| api::XdpFact {
            what: fact.what.to_owned(),
            standing: fact.standing.word().to_owned(),
            found: fact.found.clone(),
        };
        let check =
            api::XdpCheck { is_usable: is_usable(&facts), facts: facts.iter().map(facts_of).collect() };
        out::print(&api::to_json(&check));
        return outcome;
    }
    let mut text = String::new();
    for fact in &facts {
        text.push_str(&out::escaped(&fact.to_string()));
        text.push('\n');
    }
    out::print(&text);
    outcome
}
