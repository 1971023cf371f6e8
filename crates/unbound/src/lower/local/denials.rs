//! Rules for what zones deny: with their SOA, by the types that their names have, or for addresses
//! of one family.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use diagnostic::Span;
use yaml::Node;

use super::{Making, rule};
use crate::kind::Kind;
use crate::lower::records::Record;
use crate::lower::zone_table::Zone;
use crate::names::above;

/// Makes rules of those zones without data that have an SOA: it says how long denials are kept
/// (RFC 2308 §5).
pub(super) fn denials_with_soa(
    making: &mut Making<'_, '_>,
    kind: Kind,
    zones: &[&Zone<'_>],
    with_who: &impl Fn(String) -> String,
) {
    let rcode = match kind {
        Kind::AlwaysNxdomain => "nxdomain",
        Kind::AlwaysNodata => "noerror",
        _ => return,
    };
    let soas = making.source.records.iter().filter(|record| record.rtype == "SOA");
    let mut soas: Vec<&Record<'_>> =
        soas.filter(|soa| zones.iter().any(|zone| *zone.name == *soa.owner)).collect();
    // Those that lie below others first.
    soas.sort_by_key(|soa| std::cmp::Reverse(soa.owner.len()));
    for soa in soas {
        let Some(text) = soa.negative() else { continue };
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        let condition = with_who(format!("qname in suffix:{}", soa.owner));
        let action = format!("respond({rcode}, authority \"{text}\", authoritative)");
        making.rules.push(rule(condition, &[&action], soa.word.span));
    }
}

/// Makes the rule of a zone whose names have no addresses of one family.
pub(super) fn blocked(kind: Kind, condition: &str, at: Span) -> Option<Node> {
    let rtype = kind.blocked_type()?;
    let condition = format!("{condition} and qtype == {rtype}");
    Some(rule(condition, &["respond(noerror, authoritative)"], at))
}

/// Answers the types that names of zones have: one look-up for each type, however many zones.
pub(super) fn by_type(
    making: &mut Making<'_, '_>,
    zones: &[&Zone<'_>],
    at: Span,
    with_who: &impl Fn(String) -> String,
) {
    // What is redirected is in sets of its own.
    if !making.has_data {
        return;
    }
    let source = making.source;
    let mut by_type: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let names: HashSet<&str> = zones.iter().map(|zone| &*zone.name).collect();
    let is_theirs = |owner: &str| above(owner).any(|name| names.contains(name));
    for (owner, rtype) in source.data().filter(|(owner, _)| is_theirs(owner)) {
        by_type.entry(rtype).or_default().insert(owner);
    }
    for (rtype, owners) in by_type {
        let owners: Vec<String> = owners.iter().map(|owner| format!("exact:{owner}")).collect();
        let is_its = format!("qname in {}", owners.join("|"));
        // An alias is one for all types.
        let condition = match rtype {
            "CNAME" => with_who(is_its),
            _ => with_who(format!("qtype == {rtype} and {is_its}")),
        };
        making.rules.push(rule(condition, &[&format!("records({})", making.records)], at));
    }
}
