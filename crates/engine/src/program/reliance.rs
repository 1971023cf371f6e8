//! Once per configuration: what besides question and answer the steps of a program rely on:
//! clients' addresses, and sets that are changed while the server runs.

use sets::Reliance;

use super::Op;
use crate::matchers::Matcher;
use crate::ops::answer::Build;
use crate::ops::cache::Early;
use crate::ops::rewrite::Targets;
use crate::ops::split::Rule;

/// Finds out what steps rely on; nothing if none looks into a cache early.
pub(super) fn reliance(ops: &[Op]) -> Reliance {
    let mut found = Reliance::default();
    if ops.iter().any(|op| matches!(op, Op::Cache(cache) if cache.rules.early != Early::No)) {
        ops.iter().for_each(|op| add_op(&mut found, op));
    }
    found
}

fn add_op(to: &mut Reliance, op: &Op) {
    match op {
        Op::SkipUnless(matcher, _) | Op::SkipIf(matcher, _) => add_matcher(to, matcher),
        Op::Answer(Build::Listed(listed)) => to.add_list(&listed.list),
        Op::Split(split) => {
            if let Rule::Rewrite(rewrite) = split.rule() {
                match &rewrite.targets {
                    Targets::Listed(list) => to.add_list(list),
                    Targets::Table { patterns, .. } => to.add_names(patterns),
                    Targets::One(_) => {}
                }
            }
        }
        // An answer is not known to be left alone by any other step that looks into a set.
        _ => {}
    }
}

fn add_matcher(to: &mut Reliance, matcher: &Matcher) {
    match matcher {
        Matcher::Qname(names) | Matcher::AnswerCname(names) | Matcher::ServerName(names) => {
            to.add_names(names);
        }
        Matcher::Listed(list) | Matcher::Ruled(list) | Matcher::ServerListed(list, _) => to.add_list(list),
        Matcher::Client(set) => to.add_clients(set),
        Matcher::AnswerAddress(set) | Matcher::ServerAddress(set) | Matcher::ReverseAddress(set) => {
            to.add_addresses(set);
        }
        // These look into no set.
        Matcher::Constant(_)
        | Matcher::Qtype(_)
        | Matcher::Flag(_)
        | Matcher::WantsDnssec
        | Matcher::Edns
        | Matcher::EdnsOption(_)
        | Matcher::Number { .. }
        | Matcher::ClientMac(_)
        | Matcher::ClientId(_)
        | Matcher::Listener(_)
        | Matcher::Transport(_)
        | Matcher::Connection(_)
        | Matcher::Now(_)
        | Matcher::Random(_)
        | Matcher::Rate(_)
        | Matcher::Mark(_)
        | Matcher::Marks(_)
        | Matcher::Answer
        | Matcher::Answered
        | Matcher::Rcode(_)
        | Matcher::Security(_)
        | Matcher::AnswerType(_)
        | Matcher::Text(_) => {}
    }
}
