//! What zones answer beside their records, and whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use diagnostic::Problem;
use dnssec::Denial;
use lists::{Sets, Term};
use sets::AddressSet;
use values::ttl;
use wire::{HashKey, NameBuf, Prefix, Rtype, Ttl};
use zone::{Alternative, Choice, Maker, Proof, Specials, Zone, Zones};

use super::ZonePlans;
use super::files::{Kept, folded};
use plan::checks::Check;

use crate::checks::Checks;
use crate::settings::{CatalogWord, Settings, ZoneAlternative, ZoneName, ZoneSettings};

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

/// What a zone answers beside its records, and what is watched for that.
pub struct Beside {
    /// The answers.
    pub specials: Arc<Specials>,
    /// What is watched.
    pub checks: Checks,
    /// Names that would be too long in this zone, as they are written: nothing is chosen there.
    pub too_long: Vec<String>,
}

/// What any number of zones answer beside their records: all but what goes by their names.
pub(super) struct Pattern {
    makers: Vec<MakerPattern>,
    choices: Vec<ChoicePattern>,
    /// Who may query them; everybody if nothing is said.
    clients: Option<Arc<AddressSet>>,
}

struct MakerPattern {
    prefix: Box<str>,
    networks: Arc<AddressSet>,
    origin: Option<ZoneName>,
    ttl: Ttl,
}

struct ChoicePattern {
    name: ZoneName,
    rtype: Rtype,
    ttl: Ttl,
    check: Option<Arc<Check>>,
    alternatives: Vec<AlternativePattern>,
}

struct AlternativePattern {
    data: Vec<Vec<u8>>,
    clients: Option<Arc<AddressSet>>,
    weight: u32,
}

impl Pattern {
    /// Takes what is said of a zone, or of many; `None` if that is nothing.
    pub(super) fn new(zone: &ZoneSettings, sets: &Sets) -> Option<Self> {
        if zone.make.is_empty() && zone.choose.is_empty() && zone.allow_query.is_none() {
            return None;
        }
        let clients = zone.allow_query.as_deref().map(|allow| clients(allow, sets));
        let makers = zone.make.iter().map(|make| MakerPattern {
            prefix: make.prefix.as_str().into(),
            networks: sets.addresses(std::iter::once(Term::Inline(make.networks.as_slice()))),
            origin: make.origin.as_ref().map(|origin| origin.value.clone()),
            ttl: ttl(make.ttl),
        });
        let alternative = |it: &ZoneAlternative| {
            let named = it.sets.iter().map(|set| Term::Set(set.value.as_str()));
            let inline = (!it.clients.is_empty()).then_some(Term::Inline(it.clients.as_slice()));
            let has_clients = inline.is_some() || !it.sets.is_empty();
            let clients = has_clients.then(|| sets.addresses(inline.into_iter().chain(named)));
            AlternativePattern { data: it.data.clone(), clients, weight: it.weight }
        };
        let choices = zone.choose.iter().map(|choice| ChoicePattern {
            name: choice.name.value.clone(),
            rtype: choice.rtype.value,
            ttl: ttl(choice.ttl),
            check: choice.check.as_ref().map(Arc::clone),
            alternatives: choice.alternatives.iter().map(alternative).collect(),
        });
        Some(Self { makers: makers.collect(), choices: choices.collect(), clients })
    }

    /// Returns whether zones answer something beside their records.
    pub(super) fn answers(&self) -> bool {
        !self.makers.is_empty() || !self.choices.is_empty()
    }

    /// Returns what one zone answers. What is watched as before stays as it stands; names that are too long are left out, and
    /// returned as they are written.
    fn of(
        &self,
        (set, apex): (Option<&str>, NameBuf),
        key: HashKey,
        (before, checks): (&Checks, &mut Checks),
    ) -> (Specials, Vec<String>) {
        let mut too_long = Vec::new();
        let mut named = |name: &ZoneName| {
            let found = name.of(&apex).ok();
            if let (None, ZoneName::Of(text)) = (&found, name) {
                too_long.push(text.clone());
            }
            found
        };
        let mut makers = Vec::with_capacity(self.makers.len());
        for make in &self.makers {
            let origin = match make.origin.as_ref().map(&mut named) {
                Some(None) => continue,
                origin => origin.flatten(),
            };
            let (prefix, networks) = (make.prefix.clone(), Arc::clone(&make.networks));
            makers.push(Maker { prefix, networks, origin, ttl: make.ttl });
        }
        let mut choices = Vec::with_capacity(self.choices.len());
        for ChoicePattern { name, rtype, ttl, check, alternatives } in &self.choices {
            let (Some(name), rtype, ttl) = (named(name), *rtype, *ttl) else { continue };
            let alternatives = alternatives.iter().map(|it| {
                let health = check
                    .as_ref()
                    .map(|check| checks.watch(before, (set, apex, name, rtype), &it.data, check));
                let clients = it.clients.as_ref().map(Arc::clone);
                Alternative { clients, weight: it.weight, health, ..Alternative::new(rtype, ttl, &it.data) }
            });
            choices.push(Choice::new(name, rtype, alternatives.collect()));
        }
        let specials = Specials::new(&key, makers, choices);
        let specials = match &self.clients {
            Some(clients) => specials.for_clients(Arc::clone(clients)),
            None => specials,
        };
        (specials, too_long)
    }

    /// Returns what a zone answers that comes while the server runs; what is watched as before of `old` stays as it stands.
    pub(super) fn beside(&self, apex: NameBuf, key: HashKey, old: Option<&Beside>) -> Arc<Beside> {
        let none = Checks::default();
        let before = old.map_or(&none, |old| &old.checks);
        let mut checks = Checks::default();
        let (specials, too_long) = self.of((None, apex), key, (before, &mut checks));
        Arc::new(Beside { specials: Arc::new(specials), checks, too_long })
    }
}

/// What members of a catalog answer beside their records.
pub struct ForMembers {
    pattern: Pattern,
    key: HashKey,
}

impl ForMembers {
    /// Takes what is said at a catalog, if that is anything.
    pub(super) fn new(catalog: &ZoneSettings, key: HashKey, sets: &Sets) -> Option<Arc<Self>> {
        let pattern = Pattern::new(catalog, sets).filter(|_| is_consumer(catalog))?;
        Some(Arc::new(Self { pattern, key }))
    }

    /// Returns what a member answers; what is watched as before of `old` stays as it stands.
    pub fn beside(&self, member: NameBuf, old: Option<&Beside>) -> Arc<Beside> {
        self.pattern.beside(member, self.key, old)
    }
}

/// Returns clients as a set.
fn clients(allow: &[Prefix], sets: &Sets) -> Arc<AddressSet> {
    sets.addresses(std::iter::once(Term::Inline(allow)))
}

fn is_consumer(zone: &ZoneSettings) -> bool {
    zone.catalog_role == Some(CatalogWord::Consumer)
}

/// Complains of a zone whose signatures are not for all that it answers.
pub(super) fn check_signed(zone: &ZoneSettings, is_signed: bool, problems: &mut Vec<Problem>) {
    let is_signed = is_signed || zone.sign.as_ref().is_some_and(|policy| policy.denial != Denial::Compact);
    if is_signed {
        let apex = zone.name.value;
        let message = format!("zone \"{apex}\" is signed, but what \"make\" and \"choose\" answer is not");
        let expected = "a zone without signatures, or one that the server signs with \"denial: compact\"";
        problems.push(Problem::warning(zone.name.span, message).expected(expected));
    }
}

/// Returns whether a zone came signed, with proofs that know nothing of what is answered beside its records.
pub(super) fn is_proven(zone: &Zone) -> bool {
    !matches!(zone.facts().proof, Proof::None | Proof::Compact)
}

/// Zones of directories that not everybody may query, and who may.
pub(super) type Guarded<'k> = Vec<(NameBuf, &'k [Prefix])>;

/// Returns what the zones of a set answer beside their records, and whom.
pub(super) fn specials(
    (settings, set): (&Settings, Option<&str>),
    key: HashKey,
    sets: &Sets,
    (before, checks): (&Checks, &mut Checks),
    (loaded, in_directories): (&[Arc<Zone>], &Guarded<'_>),
    problems: &mut Vec<Problem>,
) -> Vec<(NameBuf, Specials)> {
    let is_ours = |zone: &&ZoneSettings| zone.set.as_ref().map(|set| set.value.as_str()) == set;
    let ours = settings.zones.iter().filter(is_ours);
    let pattern = |zone: &ZoneSettings| {
        let pattern = Pattern::new(zone, sets)?;
        // What is said at a catalog is for its members, but who may query it counts for itself as well.
        match is_consumer(zone) {
            true if pattern.clients.is_none() => None,
            true => Some(Pattern { makers: Vec::new(), choices: Vec::new(), ..pattern }),
            false => Some(pattern),
        }
    };
    let ours: Vec<(&ZoneSettings, Pattern)> = ours.filter_map(|zone| Some((zone, pattern(zone)?))).collect();
    let mut made: Vec<(&[Prefix], Arc<AddressSet>)> = Vec::new();
    let mut guarded = Vec::with_capacity(in_directories.len());
    for (apex, allow) in in_directories {
        let known = made.iter().find(|(other, _)| other == allow);
        let set = known.map_or_else(|| clients(allow, sets), |(_, set)| Arc::clone(set));
        if known.is_none() {
            made.push((allow, Arc::clone(&set)));
        }
        guarded.push((*apex, Specials::default().for_clients(set)));
    }
    if ours.is_empty() {
        return guarded;
    }
    let signed = loaded.iter().filter(|zone| is_proven(zone));
    let signed: BTreeSet<Vec<u8>> = signed.map(|zone| zone.apex().to_folded().as_bytes().to_vec()).collect();
    let mut all = guarded;
    for (zone, pattern) in ours {
        let apex = zone.name.value;
        if pattern.answers() {
            check_signed(zone, signed.contains(&folded(&apex)), problems);
        }
        // Names that are too long were complained of.
        all.push((apex, pattern.of((set, apex), key, (before, checks)).0));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::load::load_text;
    use environment::Memory;

    use super::*;

    fn of_catalog() -> Arc<ForMembers> {
        let long = ["a"; 100].join(".");
        let text = format!(
            "checks: {{web: {{port: 80}}}}\nsets: {{europe: {{addresses: 192.0.2.0/24}}}}\n\
             zones: [{{name: catalog.example, catalog-role: consumer, primaries: 192.0.2.1, \
             make: [{{networks: 192.0.2.0/24, origin: \"{{name}}.net\"}}], choose: [\
             {{name: \"www.{{name}}\", type: A, check: web, from: [{{data: 192.0.2.1}}, {{data: 192.0.2.2, sets: europe}}]}}, \
             {{name: \"{long}.{{name}}\", type: A, from: [{{data: 192.0.2.1}}]}}]}}]\n"
        );
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        let loaded = load_text(Path::new("/etc/gannet.yaml"), &text, &memory);
        let loaded = loaded.unwrap_or_else(|found| panic!("{}", found[0].human()));
        let plans = crate::compile(&loaded, &[], None, &memory);
        let plans = plans.unwrap_or_else(|found| panic!("{}", found[0].human()));
        // The catalog itself answers nothing of it.
        assert!(plans.zones.served.as_ref().is_some_and(|zones| !zones.are_for_clients()));
        assert!(plans.zones.checks.watched.is_empty());
        plans.zones.plans[0].for_members.clone().expect("something for members")
    }

    #[test]
    fn what_is_said_at_a_catalog_is_for_each_of_its_members() {
        let all = of_catalog();
        let name = |text: &str| NameBuf::from_text(text).expect("a name");
        let one = all.beside(name("a.example"), None);
        let shown = |beside: &Beside| -> Vec<String> {
            let watched = beside.checks.watched.iter();
            watched.map(|it| format!("{} {} {} {}", it.zone, it.name, it.address, it.check.name)).collect()
        };
        let expected = ["a.example. www.a.example. 192.0.2.1 web", "a.example. www.a.example. 192.0.2.2 web"];
        assert_eq!(shown(&one), expected);
        assert!(one.too_long.is_empty());
        // What stays as it was keeps its place; another member has its own.
        let again = all.beside(name("a.example"), Some(&one));
        let two = all.beside(name("b.example"), Some(&one));
        let place = |beside: &Beside| Arc::as_ptr(&beside.checks.watched[0].down);
        assert_eq!(place(&one), place(&again));
        assert_ne!(place(&one), place(&two));
        // Of a member with a long name, only what does not fit is left out.
        let long = all.beside(name(&["b"; 50].join(".")), None);
        assert_eq!((long.too_long.len(), long.checks.watched.len()), (1, 2));
    }

    #[test]
    fn a_set_that_a_template_names_must_be_there_and_is_used() {
        let text = |set: &str| {
            format!(
                "sets: {{europe: {{addresses: 192.0.2.0/24}}}}\n\
                 zone-templates: {{t: {{choose: [{{name: \"www.{{name}}\", type: A, \
                 from: [{{data: 192.0.2.1}}, {{data: 192.0.2.2, sets: {set}}}]}}]}}}}\n\
                 zones: [{{name: a.example, like: t, primaries: 192.0.2.1}}, {{name: b.example, like: t, primaries: 192.0.2.1}}]\n"
            )
        };
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        let found = |text: &str| -> Vec<String> {
            match load_text(Path::new("/etc/gannet.yaml"), text, &memory) {
                Ok(loaded) => loaded.warnings.iter().map(|found| found.message.clone()).collect(),
                Err(found) => found.iter().map(|found| found.message.clone()).collect(),
            }
        };
        assert_eq!(found(&text("europe")), [""; 0]);
        let without = text("europe").lines().take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(found(&without), [""; 0]);
        // Once, not for each zone that is like it.
        assert_eq!(found(&text("asia")), ["unknown set \"asia\""]);
    }
}
