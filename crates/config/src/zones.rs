//! Zones: their settings become plans, and what is found when they are loaded gets its
//! place.

mod added;
mod plan;

use std::collections::BTreeMap;
use std::sync::Arc;

use ::plan::zones::{Finding, Part, Subject, ZonesPlan};
use diagnostic::{Diagnostic, Problem, Span};
use wire::{HashKey, NameBuf};
use zone::Zones;

use settings::{ZoneDirectory, ZoneSettings};

pub use added::{Planned, Planner};
pub(crate) use plan::{Trusts, remote, zones};

/// What came of loading the zones of a plan.
#[derive(Default)]
pub struct Outcome {
    /// What is served; `None` when there are no zones.
    pub zones: Option<Arc<Zones>>,
    /// What policies answer from, by name.
    pub sets: BTreeMap<String, Arc<Zones>>,
    /// What is worth a warning where the plan was written.
    pub findings: Vec<Finding>,
    /// What is wrong in the files, with its places.
    pub diagnostics: Vec<Diagnostic>,
}

impl Outcome {
    /// Returns what is served while no zone is loaded: of those that are named it is known that
    /// they are ours.
    pub(crate) fn unloaded(plan: &ZonesPlan, key: HashKey) -> Self {
        let mut sets: BTreeMap<Option<&str>, Vec<NameBuf>> = BTreeMap::new();
        for zone in plan.zones.iter().filter(|zone| !zone.is_for_resolvers) {
            sets.entry(zone.set.as_deref()).or_default().push(zone.apex);
        }
        for directory in &plan.directories {
            sets.entry(directory.set.as_deref()).or_default();
        }
        if plan.has_added {
            sets.entry(None).or_default();
        }
        let made = |apexes: &Vec<NameBuf>| Arc::new(Zones::with_missing(key, Vec::new(), apexes));
        let zones = sets.remove(&None).as_ref().map(made);
        let sets = sets.iter().filter_map(|(set, apexes)| Some(((*set)?.to_owned(), made(apexes))));
        Self { zones, sets: sets.collect(), ..Self::default() }
    }
}

/// Returns warnings of what was found, at the places where the settings say so.
pub(crate) fn placed(
    zones: &[ZoneSettings],
    directories: &[ZoneDirectory],
    findings: Vec<Finding>,
) -> impl Iterator<Item = Problem> {
    findings.into_iter().map(move |finding| {
        let span = match finding.subject {
            Subject::Zone(number) => zones.get(number).map(|zone| span_of(zone, finding.part)),
            Subject::Directory(number) => directories.get(number).map(|directory| {
                let updated = || directory.common.as_ref().map(|common| span_of(common, Part::Update));
                let path = directory.path.span;
                if finding.part == Part::Update { updated().unwrap_or(path) } else { path }
            }),
        };
        let problem = Problem::warning(span.unwrap_or(Span::BUILT_IN), finding.message);
        match finding.expected {
            Some(expected) => problem.expected(expected),
            None => problem,
        }
    })
}

fn span_of(zone: &ZoneSettings, part: Part) -> Span {
    let span = match part {
        Part::Name => None,
        Part::File => zone.file.as_ref().map(|file| file.span),
        Part::Update => zone.update.first().map(|update| update.span),
    };
    span.unwrap_or(zone.name.span)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ::plan::zones::{Standing, ZonemdRule};
    use environment::Memory;

    use settings::load::load_text;

    /// Checks that a configuration has a mistake.
    fn check(text: &str, message: &str) {
        let Err(found) = load_text(Path::new("/z/g.yaml"), text, &Memory::default()) else {
            panic!("no mistake in {text}")
        };
        assert!(found.iter().any(|found| found.message == message), "{text}: {found:?}");
    }

    #[test]
    fn what_zones_make_and_choose_is_checked() {
        for (special, message) in [
            ("make: [{prefix: a.b, networks: 192.0.2.0/24}]", "\"a.b\" cannot begin a label"),
            ("make: [{prefix: a}]", "\"networks\" is missing"),
            (
                "choose: [{name: www.example.net, type: A, from: [{data: 192.0.2.1}]}]",
                "\"www.example.net.\" is not in this zone",
            ),
            (
                "choose: [{name: \"www.{name}.net\", type: A, from: [{data: 192.0.2.1}]}]",
                "\"www.example.org.net.\" is not in this zone",
            ),
            (
                "choose: [{name: \"www.{name}\", type: A, from: [{data: 192.0.2.1}]}, {name: WWW.example.org, type: A, from: [{data: 192.0.2.1}]}]",
                "WWW.example.org. A is chosen twice",
            ),
            (
                "choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.1}]}, {name: www.example.org, type: CNAME, from: [{data: a.}]}]",
                "www.example.org. would be an alias beside other records",
            ),
            (
                "catalog-role: consumer, choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.1}]}]",
                "\"www.example.org.\" is not in the members of this catalog",
            ),
            (
                "choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.300}]}]",
                "\"192.0.2.300\" is no data of type A",
            ),
            (
                "choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.1, clients: lan}]}]",
                "a client that none of these name would get nothing",
            ),
            (
                "choose: [{name: www.example.org, type: NS, from: [{data: a.}]}]",
                "NS cannot depend on who asks",
            ),
            (
                "choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.1, sets: de}, {data: 192.0.2.2}]}]",
                "unknown set \"de\"",
            ),
        ] {
            check(&format!("zones: [{{name: example.org, file: org, {special}}}]\n"), message);
        }
    }

    #[test]
    fn zones_of_sets_are_apart_from_other_servers() {
        for (special, message) in [
            ("set: inside, transfer: any", "other servers do not hear of a zone of a set"),
            ("set: inside, catalog-role: consumer", "other servers do not hear of a zone of a set"),
            ("sign: s, catalog-role: producer", "the server signs no catalog"),
        ] {
            check(
                &format!("zones: [{{name: example.org, file: org, {special}}}]\nsigning: {{s: {{}}}}\n"),
                message,
            );
        }
    }

    #[test]
    fn zones_for_resolvers_alone_have_no_clients() {
        for special in ["set: inside", "allow-query: 10.0.0.0/8", "transfer: any", "catalog-role: consumer"] {
            check(
                &format!("zones: [{{name: example.org, file: org, for-clients: false, {special}}}]\n"),
                "a zone for resolvers alone has no clients",
            );
        }
        check(
            "zones: [{name: example.org, file: org, write-to: copy}]\n",
            "only a zone from other servers is written to a file",
        );
        check(
            "zones: [{name: example.org, file: org, keep: false}]\n",
            "only a zone from other servers can be had from them again",
        );
    }

    #[test]
    fn a_local_root_is_a_zone_that_a_resolver_reads() {
        let load = |text: &str| {
            let text = format!("{text}\npolicy: {{main: [recurse]}}\n");
            let loaded = load_text(Path::new("/z/g.yaml"), &text, &Memory::default()).expect("no mistakes");
            super::zones(
                &loaded.settings,
                &lists::Sets::new(wire::HashKey::new([1, 2])),
                &Memory::default(),
                &mut Vec::new(),
            )
        };
        let plan = load("resolvers: {default: {local-root: true}}");
        let [root] = &plan.zones[..] else { panic!("one zone") };
        assert!(root.apex.as_name().is_root() && root.is_for_resolvers);
        assert_eq!(root.primaries.len(), 16);
        assert_eq!(root.primaries[0].address.to_string(), "170.247.170.2:53");
        let zonemd = root.zonemd.as_ref().expect("its digest is checked");
        assert_eq!((zonemd.rule, zonemd.resolver.as_deref()), (ZonemdRule::Require, Some("default")));
        assert!(matches!(
            Standing::of(root.apex.as_name(), &zonemd.trust.anchors, &zonemd.trust.negative),
            Standing::Anchor(_)
        ));
        // Two resolvers read the same.
        let plan = load(
            "resolvers: {default: {local-root: true, local-root-primaries: [192.0.2.1]}, \
                         other: {local-root: true, local-root-primaries: [192.0.2.1]}}",
        );
        assert_eq!(plan.zones.len(), 1);
        for (text, message) in [
            (
                "resolvers: {default: {local-root: true, zones: {\".\": {stub: 192.0.2.1}}}}",
                "the zone \".\" of this resolver is found in another way",
            ),
            (
                "resolvers: {default: {local-root: true}}\nzones: [{name: ., file: root}]",
                "the root zone is in \"zones\" already",
            ),
            (
                "resolvers: {default: {local-root: true}, other: {local-root: true, local-root-primaries: [192.0.2.1]}}",
                "the root zone is one for all resolvers, and comes from the same servers",
            ),
        ] {
            check(&format!("{text}\npolicy: {{main: [recurse]}}\n"), message);
        }
    }

    #[test]
    fn sets_of_zones_are_known_by_name_and_have_each_zone_once() {
        let text = "zones: [{name: example.org, file: org}, {name: example.org, file: org, set: inside}, {name: example.net, file: net, set: inside}]\n\
            policy: {main: [{if: rd, do: zones(inside)}, zones]}\n";
        check(&text.replace("zones(inside)", "zones(insider)"), "unknown set of zones \"insider\"");
        check(
            &text.replace("name: example.net", "name: example.org"),
            "zone \"example.org.\" is there twice",
        );
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
