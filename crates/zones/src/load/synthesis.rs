//! Records that zones have besides those in their files, and who may query zones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dnssec::Denial;
use plan::zones::{ChoicePlan, Finding, Part, Subject, Synthesis, ZoneName, ZonePlan};
use sets::AddressSet;
use wire::{HashKey, NameBuf};
use zone::{Alternative, Choice, Maker, Proof, Specials, Zone, Zones};

use super::LoadedZones;
use super::files::{LoadedFile, folded};
use super::health_checks::{Checks, Target};

impl LoadedZones {
    /// Finds ALIAS records that lead where nobody asks, and those whose addresses are not signed.
    pub(super) fn check_aliases(&self, zones: &Zones, set: Option<&str>, findings: &mut Vec<Finding>) {
        let has_aliases = |file: &&LoadedFile| {
            let mut zones = file.zones.iter().filter_map(|(_, zone)| zone.as_ref());
            file.source.set.as_deref() == set && zones.any(|zone| zone.facts().aliases > 0)
        };
        let with_aliases: Vec<&LoadedFile> = self.files.iter().filter(has_aliases).collect();
        if with_aliases.is_empty() {
            return;
        }
        let mut named: BTreeMap<Vec<u8>, &ZonePlan> = BTreeMap::new();
        for zone in &self.plan.zones {
            named.entry(folded(&zone.apex)).or_insert(zone);
        }
        for file in with_aliases {
            let zones_of_file = file.zones.iter().filter_map(|(_, zone)| zone.as_ref());
            for zone in zones_of_file.filter(|zone| zone.facts().aliases > 0) {
                let apex = zone.apex();
                let targets = zone.alias_targets();
                let ends = targets.iter().filter_map(|target| zones.end_of_alias(target.as_name()));
                let first = ends.map(|end| end.as_name().to_folded().to_string()).min();
                if let Some(end) = first.filter(|_| !self.plan.resolves_aliases) {
                    findings.push(Finding {
                        subject: file.source.subject,
                        part: Part::File,
                        message: format!(
                            "zone \"{apex}\" has an ALIAS that leads to \"{end}\", which nobody resolves"
                        ),
                        expected: Some("\"alias.resolvers\", or the name of a zone that is served here"),
                    });
                }
                let named = named.get(apex.to_folded().as_bytes());
                let policy = named.and_then(|zone| zone.sign.as_ref()).or(file.source.sign.as_ref());
                let facts = zone.facts();
                let has_proofs = facts.has_own_keys && facts.proof != Proof::Compact;
                if has_proofs || policy.is_some_and(|policy| policy.denial != Denial::Compact) {
                    findings.push(Finding {
                        subject: file.source.subject,
                        part: Part::File,
                        message: format!(
                            "zone \"{apex}\" is signed, but the addresses of ALIAS records are not"
                        ),
                        expected: Some("a signing policy with \"denial: compact\""),
                    });
                }
            }
        }
    }

    /// Returns what the zones of a set have besides their files, and whom they answer.
    pub(super) fn specials(
        &self,
        set: Option<&str>,
        (loaded, in_directories): (&[Arc<Zone>], &GuardedZones),
        (before, checks): (&Checks, &mut Checks),
        findings: &mut Vec<Finding>,
    ) -> Vec<(NameBuf, Specials)> {
        let guarded = in_directories.iter();
        let guarded =
            guarded.map(|(apex, clients)| (*apex, Specials::default().for_clients(Arc::clone(clients))));
        let mut all: Vec<(NameBuf, Specials)> = guarded.collect();
        let is_ours = |zone: &ZonePlan| zone.set.as_deref() == set && has_specials(zone);
        if !self.plan.zones.iter().any(|zone| is_ours(zone)) {
            return all;
        }
        let signed = loaded.iter().filter(|zone| is_proven(zone));
        let signed: BTreeSet<Vec<u8>> =
            signed.map(|zone| zone.apex().to_folded().as_bytes().to_vec()).collect();
        for (number, zone) in self.plan.zones.iter().enumerate().filter(|(_, zone)| is_ours(zone)) {
            // The settings of a catalog are for its members, but who may query it counts for itself
            // as well.
            let synthesis = zone.synthesis.as_deref().filter(|_| !zone.is_consumer());
            if synthesis.is_some() {
                findings.extend(check_signed(
                    zone,
                    Subject::Zone(number),
                    signed.contains(&folded(&zone.apex)),
                ));
            }
            // Names that are too long were complained of.
            all.push((zone.apex, specials_of(zone, synthesis, set, self.key, (before, checks)).0));
        }
        all
    }
}

/// Returns whether a zone has anything besides its file, or is not for everybody.
pub(super) fn has_specials(zone: &ZonePlan) -> bool {
    zone.clients.is_some() || (zone.synthesis.is_some() && !zone.is_consumer())
}

/// What a zone has besides its file that comes while the server runs, and what is watched for that.
pub(crate) struct Synthesized {
    /// The records.
    pub(crate) specials: Arc<Specials>,
    /// What is watched.
    pub(crate) checks: Checks,
    /// Names that would be too long in this zone, as they are written: nothing is chosen there.
    pub(crate) too_long: Vec<String>,
}

/// Returns what a zone has besides its file, if its plan has anything of that; what is watched as
/// before of `old` stays as it stands.
pub(crate) fn synthesized(
    plan: &ZonePlan,
    key: HashKey,
    old: Option<&Synthesized>,
) -> Option<Arc<Synthesized>> {
    if plan.clients.is_none() && plan.synthesis.is_none() {
        return None;
    }
    let none = Checks::default();
    let before = old.map_or(&none, |old| &old.checks);
    let mut checks = Checks::default();
    let (specials, too_long) = specials_of(plan, plan.synthesis.as_deref(), None, key, (before, &mut checks));
    Some(Arc::new(Synthesized { specials: Arc::new(specials), checks, too_long }))
}

/// Returns what one zone has. What is watched as before stays as it stands; names that are too long
/// are left out, and returned as they are written.
fn specials_of(
    zone: &ZonePlan,
    synthesis: Option<&Synthesis>,
    set: Option<&str>,
    key: HashKey,
    (before, checks): (&Checks, &mut Checks),
) -> (Specials, Vec<String>) {
    let apex = zone.apex;
    let mut too_long = Vec::new();
    let mut named = |name: &ZoneName| {
        let found = name.of(&apex).ok();
        if let (None, ZoneName::Of(text)) = (&found, name) {
            too_long.push(text.clone());
        }
        found
    };
    let mut makers = Vec::new();
    for make in synthesis.iter().flat_map(|synthesis| &synthesis.makers) {
        let origin = match make.origin.as_ref().map(&mut named) {
            Some(None) => continue,
            origin => origin.flatten(),
        };
        let (prefix, networks) = (make.prefix.clone(), Arc::clone(&make.networks));
        makers.push(Maker { prefix, networks, origin, ttl: make.ttl });
    }
    let mut choices = Vec::new();
    for choice in synthesis.iter().flat_map(|synthesis| &synthesis.choices) {
        let ChoicePlan { name, rtype, ttl, check, alternatives } = choice;
        let (Some(name), rtype, ttl) = (named(name), *rtype, *ttl) else { continue };
        let target = Target { set, zone: apex, name, rtype };
        let alternatives = alternatives.iter().map(|it| {
            let health = check.as_ref().map(|check| checks.watch(before, target, &it.data, check));
            let clients = it.clients.as_ref().map(Arc::clone);
            Alternative { clients, weight: it.weight, health, ..Alternative::new(rtype, ttl, &it.data) }
        });
        choices.push(Choice::new(name, rtype, alternatives.collect()));
    }
    let specials = Specials::new(&key, makers, choices);
    let specials = match &zone.clients {
        Some(clients) => specials.for_clients(Arc::clone(clients)),
        None => specials,
    };
    (specials, too_long)
}

/// Finds a zone whose signatures are not for all that it answers.
pub(super) fn check_signed(zone: &ZonePlan, subject: Subject, is_signed: bool) -> Option<Finding> {
    let is_signed = is_signed || zone.sign.as_ref().is_some_and(|policy| policy.denial != Denial::Compact);
    is_signed.then(|| Finding {
        subject,
        part: Part::Name,
        message: format!("zone \"{}\" is signed, but what \"make\" and \"choose\" answer is not", zone.apex),
        expected: Some("a zone without signatures, or one that the server signs with \"denial: compact\""),
    })
}

/// Returns whether a zone came signed, with proofs that know nothing of what is answered besides
/// its records.
pub(super) fn is_proven(zone: &Zone) -> bool {
    !matches!(zone.facts().proof, Proof::None | Proof::Compact)
}

/// Zones of directories that not everybody may query, and who may.
pub(super) type GuardedZones = Vec<(NameBuf, Arc<AddressSet>)>;
