//! `gannet xdp check`: what this machine can do with AF_XDP, and why not more.

use std::process::ExitCode;

use xdp::{DevicePlan, facts, is_usable};

use crate::cli::XdpCheckArgs;
use crate::out;

/// Runs `gannet xdp check`.
pub(crate) fn run(args: &XdpCheckArgs) -> ExitCode {
    let plan = args.interface.as_deref().map(DevicePlan::new);
    let facts = facts(plan.as_ref());
    let mut text = String::new();
    for fact in &facts {
        text.push_str(&out::escaped(&fact.to_string()));
        text.push('\n');
    }
    out::print(&text);
    if is_usable(&facts) { out::FINE } else { out::negative() }
}
