//! What zones answer beside their records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dnssec::Denial;
use wire::{HashKey, NameBuf};
use zone::{Alternative, Choice, Maker, Proof, Specials, Zone, Zones};

use super::ZonePlans;
use super::files::{Kept, folded};
use crate::checks::Checks;
use crate::compile::ttl;
use crate::diagnostic::Problem;
use crate::sets::{Sets, Term};
use crate::settings::{Settings, ZoneSettings};

impl ZonePlans {
    /// Complains of ALIAS records that lead where nobody asks, and of those whose addresses are not signed.
    pub(super) fn check_aliases(
        &self,
        zones: &Zones,
        set: Option<&str>,
        settings: &Settings,
        problems: &mut Vec<Problem>,
    ) {
        let has_aliases = |kept: &&Kept| {
            let zones = kept.zones.iter().filter_map(|(_, zone)| zone.as_ref());
            kept.wanted.set.as_deref() == set && zones.clone().any(|zone| zone.facts().aliases > 0)
        };
        let with_aliases: Vec<&Kept> = self.kept.iter().filter(has_aliases).collect();
        if with_aliases.is_empty() {
            return;
        }
        let mut named: BTreeMap<Vec<u8>, &ZoneSettings> = BTreeMap::new();
        for zone in &settings.zones {
            named.entry(folded(&zone.name.value)).or_insert(zone);
        }
        for kept in with_aliases {
            let zones_of_file = kept.zones.iter().filter_map(|(_, zone)| zone.as_ref());
            for zone in zones_of_file.filter(|zone| zone.facts().aliases > 0) {
                let apex = zone.apex();
                let targets = zone.alias_targets();
                let ends = targets.iter().filter_map(|target| zones.end_of_alias(target.as_name()));
                let first = ends.map(|end| end.as_name().to_folded().to_string()).min();
                if let Some(end) = first.filter(|_| settings.alias.resolvers.is_empty()) {
                    let message = format!(
                        "zone \"{apex}\" has an ALIAS that leads to \"{end}\", which nobody resolves"
                    );
                    let problem = Problem::warning(kept.wanted.span, message);
                    problems.push(
                        problem.expected("\"alias.resolvers\", or the name of a zone that is served here"),
                    );
                }
                let named = named.get(apex.to_folded().as_bytes());
                let policy = named.and_then(|zone| zone.sign.as_ref()).or(kept.wanted.sign.as_ref());
                let facts = zone.facts();
                let has_proofs = facts.has_own_keys && facts.proof != Proof::Compact;
                if has_proofs || policy.is_some_and(|policy| policy.denial != Denial::Compact) {
                    let message =
                        format!("zone \"{apex}\" is signed, but the addresses of ALIAS records are not");
                    let problem = Problem::warning(kept.wanted.span, message);
                    problems.push(problem.expected("a signing policy with \"denial: compact\""));
                }
            }
        }
    }
}

/// Returns what the zones of a set answer beside their records.
pub(super) fn specials(
    (settings, set): (&Settings, Option<&str>),
    key: HashKey,
    sets: &Sets,
    (before, checks): (&Checks, &mut Checks),
    loaded: &[Arc<Zone>],
    problems: &mut Vec<Problem>,
) -> Vec<(NameBuf, Specials)> {
    let is_ours = |zone: &&ZoneSettings| {
        zone.set.as_ref().map(|set| set.value.as_str()) == set
            && !(zone.make.is_empty() && zone.choose.is_empty())
    };
    let ours: Vec<&ZoneSettings> = settings.zones.iter().filter(is_ours).collect();
    if ours.is_empty() {
        return Vec::new();
    }
    let signed = loaded.iter().filter(|zone| !matches!(zone.facts().proof, Proof::None | Proof::Compact));
    let signed: BTreeSet<Vec<u8>> = signed.map(|zone| zone.apex().to_folded().as_bytes().to_vec()).collect();
    let mut all = Vec::with_capacity(ours.len());
    for zone in ours {
        let apex = zone.name.value;
        let is_signed = signed.contains(&folded(&apex));
        let is_signed =
            is_signed || zone.sign.as_ref().is_some_and(|policy| policy.denial != Denial::Compact);
        if is_signed {
            let message =
                format!("zone \"{apex}\" is signed, but what \"make\" and \"choose\" answer is not");
            let expected = "a zone without signatures, or one that the server signs with \"denial: compact\"";
            problems.push(Problem::warning(zone.name.span, message).expected(expected));
        }
        let makers = zone.make.iter().map(|make| Maker {
            prefix: make.prefix.as_str().into(),
            networks: sets.addresses(std::iter::once(Term::Inline(make.networks.as_slice()))),
            origin: make.origin,
            ttl: ttl(make.ttl),
        });
        let choices = zone.choose.iter().map(|choice| {
            let rtype = choice.rtype.value;
            let alternatives = choice.alternatives.iter().map(|it| {
                let named = it.sets.iter().map(|set| Term::Set(set.value.as_str()));
                let inline = (!it.clients.is_empty()).then_some(Term::Inline(it.clients.as_slice()));
                let has_clients = inline.is_some() || !it.sets.is_empty();
                let clients = has_clients.then(|| sets.addresses(inline.into_iter().chain(named)));
                let alternative = Alternative::new(rtype, ttl(choice.ttl), &it.data);
                let health = choice.check.as_ref().map(|check| {
                    checks.watch(before, (set, apex, choice.name.value, rtype), &it.data, check)
                });
                Alternative { clients, weight: it.weight, health, ..alternative }
            });
            let alternatives: Vec<Alternative> = alternatives.collect();
            Choice::new(choice.name.value, rtype, alternatives)
        });
        let choices: Vec<Choice> = choices.collect();
        all.push((apex, Specials::new(&key, makers.collect(), choices)));
    }
    all
}
