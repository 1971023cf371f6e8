//! Which zones with authority answer clients: of nested zones the closest one decides.

use diagnostic::Span;
use yaml::Node;

use super::local::rule;
use crate::names::is_strictly_below;
use crate::tree;

/// What a zone with authority does with a query of a client for a name that it is the closest to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serving {
    /// Answers it.
    Answers,
    /// Answers it; while the zone is not there, the resolver does.
    Falls,
    /// Leaves it to the resolver.
    Passes,
}

impl Serving {
    /// Returns the action that has such zones answer; `None` if they do not.
    fn action(self, is_minimal: bool) -> Option<String> {
        let loaded = match self {
            Self::Answers => "",
            Self::Falls => "loaded, ",
            Self::Passes => return None,
        };
        let minimal = if is_minimal { "minimal, " } else { "" };
        Some(format!("zones({loaded}within, {minimal}several, ra-with-rd)"))
    }
}

/// A zone with authority.
#[derive(Debug)]
pub(super) struct ServedZone {
    /// Without the dot at its end, in lower case.
    pub(super) name: String,
    pub(super) serving: Serving,
    pub(super) at: Span,
}

/// Returns the steps in which zones with authority answer clients, without addresses that are not
/// asked for if answers are minimal.
pub(super) fn steps(zones: &[ServedZone], is_minimal: bool) -> Vec<Node> {
    let mut steps = Vec::new();
    for serving in [Serving::Answers, Serving::Falls] {
        let Some(action) = serving.action(is_minimal) else { continue };
        let members: Vec<&ServedZone> = zones.iter().filter(|zone| zone.serving == serving).collect();
        let Some(first) = members.first() else { continue };
        let others = || zones.iter().filter(|zone| zone.serving != serving);
        let is_inside =
            |other: &ServedZone| members.iter().any(|member| is_strictly_below(&other.name, &member.name));
        let are_answered = others().any(|other| other.serving != Serving::Passes);
        if !are_answered && !others().any(is_inside) {
            steps.push(tree::text(action, first.at));
            continue;
        }
        // Those with others inside have a rule each.
        let (mut plain, mut parents) = (Vec::new(), Vec::new());
        for member in members.iter().copied() {
            let inside: Vec<&str> = others()
                .filter(|other| is_strictly_below(&other.name, &member.name))
                .map(|other| &*other.name)
                .collect();
            if inside.is_empty() {
                plain.push(&*member.name);
                continue;
            }
            let condition =
                format!("{} and not {}", one_of("suffix", &[&*member.name]), one_of("suffix", &inside));
            steps.push(rule(condition, &[&action], member.at));
            // The zone above knows the DS records of the zones inside it (RFC 4035 §3.1.4.1).
            parents
                .extend(inside.into_iter().filter(|name| closest_above(zones, name) == Some(&*member.name)));
        }
        if !plain.is_empty() {
            steps.push(rule(one_of("suffix", &plain), &[&action], first.at));
        }
        if !parents.is_empty() {
            let condition = format!("qtype == DS and {}", one_of("exact", &parents));
            steps.push(rule(condition, &[&action], first.at));
        }
    }
    steps
}

/// Returns the condition that the name asked for is one of these, or below one of these.
fn one_of(how: &str, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{how}:{name}")).collect();
    format!("qname in {}", names.join("|"))
}

/// Returns the zone that is the closest of those above a name.
fn closest_above<'z>(zones: &'z [ServedZone], name: &str) -> Option<&'z str> {
    let above = zones.iter().map(|zone| &*zone.name).filter(|zone| is_strictly_below(name, zone));
    // The root's dot is as long as a label of one letter.
    above.max_by_key(|zone| if *zone == "." { 0 } else { zone.len() })
}
