//! The zones of a configuration: read from their files, kept over reloads, put together as what is served.

mod added;
mod check;
mod files;
mod own_keys;
mod plan;
mod specials;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use diagnostic::{Diagnostic, Problem};
use files::{Kept, folded, load, wanted};
use lists::Sets;
use specials::{Guarded, specials};
use tsig::Keys;
use wire::{HashKey, NameBuf};
use zone::{Aliases, Pool, Zone, Zones};

use crate::checks::Checks;
use crate::settings::{Settings, Transfers, ZoneSettings};
use environment::{Environment, Loading, SetProgress};

pub use added::{Addition, Planner, explain};
pub(crate) use check::is_json;
pub use check::{Checked, check};
pub use files::name_of;
pub(crate) use plan::parents;
pub use plan::{SignedHere, ZonePlan};
pub use specials::{Beside, ForMembers};

/// After so many files, whoever listens hears how many were read.
const HEAR_EVERY: usize = 256;

/// Octets for what is known of names that ALIAS records lead to: some 100,000 of them.
const ALIASES_OCTETS_MAX: usize = 16 << 20;

/// The zones that are served.
#[derive(Clone, Default)]
pub struct ZonePlans {
    kept: Vec<Kept>,
    /// Zones of the configuration that have no file.
    others: Vec<NameBuf>,
    /// What is to become of each zone that is configured by its name and in no set, in the order of the configuration.
    pub plans: Arc<[ZonePlan]>,
    /// Plans zones that are added while the server runs; absent before anything is compiled.
    pub planner: Option<Arc<Planner>>,
    /// Keys that sign messages between servers.
    pub keys: Keys,
    /// How many transfers there may be.
    pub transfers: Option<Transfers>,
    /// The zones as they are written; `None` when no zone is configured.
    pub served: Option<Arc<Zones>>,
    /// What the engine answers from: `served`, and what the server signed in place of what is written.
    pub signed: Option<Arc<Zones>>,
    /// What policies answer from, by name.
    pub sets: BTreeMap<String, Arc<Zones>>,
    /// What is watched of what records lead to.
    pub checks: Checks,
    /// What is known of names that ALIAS records lead to; stays over reloads.
    pub aliases: Option<Arc<Aliases>>,
    /// What is remembered of signatures that are made while clients wait; stays over reloads.
    pool: Option<Arc<Pool>>,
    /// Whether `served` and `sets` are those of `kept`.
    is_same: bool,
}

/// Loads the zones, or takes over those whose files have not changed; with `stays`, all that there are. What is served
/// of them is put together by [`ZonePlans::serve`].
pub(crate) fn compile(
    settings: &Settings,
    key: HashKey,
    previous: Option<&ZonePlans>,
    stays: bool,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
    found: &mut Vec<Diagnostic>,
) -> ZonePlans {
    if let Some(previous) = previous.filter(|_| stays) {
        return ZonePlans { is_same: true, ..previous.clone() };
    }
    let wanted = wanted(settings, environment, problems);
    let others = settings.zones.iter().filter(|zone| zone.file.is_none()).map(|zone| zone.name.value);
    let others: Vec<NameBuf> = others.collect();
    let pool = previous.and_then(|previous| previous.pool.clone()).unwrap_or_else(|| new_pool(settings, key));
    let mut kept = Vec::with_capacity(wanted.len());
    let mut is_same =
        previous.is_some_and(|previous| previous.kept.len() == wanted.len() && previous.others == others);
    let before: BTreeMap<_, &Kept> =
        previous.into_iter().flat_map(|previous| &previous.kept).map(|old| (old.wanted.key(), old)).collect();
    for (number, wanted) in wanted.into_iter().enumerate() {
        if number > 0 && number.is_multiple_of(HEAR_EVERY) {
            let (set, list) = ("zones", None);
            environment.hear(&SetProgress { what: Loading::Zone, set, list, count: number });
        }
        let old = before.get(&wanted.key()).copied();
        if let Some(old) = old.filter(|old| old.is_current(&wanted, environment)) {
            kept.push(Kept { wanted, ..old.clone() });
            continue;
        }
        is_same = false;
        kept.push(load(wanted, (key, &pool), old, environment, problems, found));
    }
    let (served, sets) = match previous.filter(|_| is_same) {
        Some(previous) => (previous.served.clone(), previous.sets.clone()),
        None => (None, BTreeMap::new()),
    };
    let aliases = previous.and_then(|previous| previous.aliases.clone());
    let aliases = Some(aliases.unwrap_or_else(|| Arc::new(Aliases::new(ALIASES_OCTETS_MAX, key))));
    let checks = previous.map(|previous| previous.checks.clone()).unwrap_or_default();
    let pool = Some(pool);
    ZonePlans { kept, others, served, sets, checks, aliases, pool, is_same, ..ZonePlans::default() }
}

/// Returns an empty memory for signatures that are made while clients wait.
fn new_pool(settings: &Settings, key: HashKey) -> Arc<Pool> {
    let octets = usize::try_from(settings.startup.signatures_memory).unwrap_or(usize::MAX);
    Arc::new(Pool::new(octets, settings.limits.signatures_per_second, key))
}

/// Zones of one set that are loaded, the names of those that are not, and those of directories that not everybody may query.
#[derive(Default)]
struct Group<'k> {
    loaded: Vec<Arc<Zone>>,
    missing: Vec<NameBuf>,
    guarded: Guarded<'k>,
}

/// A zone that is not as its file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The zone; `None`: it is not known which zones the file has.
    pub apex: Option<NameBuf>,
    /// Its file.
    pub file: PathBuf,
    /// The set that it is in.
    pub set: Option<String>,
    /// What is wrong.
    pub why: Arc<str>,
}

impl ZonePlans {
    /// Returns the zones that are not as their files say: what was served of them before still is, or nothing.
    pub fn failing(&self) -> Vec<Failing> {
        let all = self.kept.iter().flat_map(|kept| {
            kept.failed.iter().map(|(apex, why)| Failing {
                apex: *apex,
                file: kept.wanted.file.clone(),
                set: kept.wanted.set.clone(),
                why: Arc::clone(why),
            })
        });
        all.collect()
    }

    /// Returns the memory for signatures that are made while clients wait, which those of all zones share.
    pub fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.as_ref()
    }

    /// Puts together what is served, with what zones answer beside their records.
    pub(crate) fn serve(
        &mut self,
        settings: &Settings,
        key: HashKey,
        sets: &Sets,
        problems: &mut Vec<Problem>,
    ) {
        // What zones share that have nothing else in common.
        let aliases = self.aliases.clone();
        let with_shared = |zones: Zones| {
            let zones = match &aliases {
                Some(aliases) => zones.with_aliases(Arc::clone(aliases)),
                None => zones,
            };
            if settings.rotate { zones.rotating() } else { zones }
        };
        if settings.has_added_zones && self.served.is_none() && self.is_same {
            self.served = Some(Arc::new(with_shared(Zones::new(key, Vec::new()))));
        }
        let is_plain = |zones: &Arc<Zones>| !zones.are_for_clients() && zones.rotates() == settings.rotate;
        let is_special = |zone: &ZoneSettings| {
            !zone.make.is_empty() || !zone.choose.is_empty() || zone.allow_query.is_some()
        };
        let has_specials = settings.zones.iter().any(is_special)
            || settings.zone_directories.iter().any(|directory| directory.allow_query.is_some());
        let loaded = self.kept.iter().flat_map(|kept| &kept.zones).filter_map(|(_, zone)| zone.as_ref());
        let has_aliases = loaded.clone().any(|zone| zone.facts().aliases > 0);
        if self.is_same
            && !has_specials
            && !has_aliases
            && self.served.iter().chain(self.sets.values()).all(is_plain)
        {
            return;
        }
        let mut seen: BTreeSet<(Option<&str>, Vec<u8>)> = BTreeSet::new();
        let mut groups: BTreeMap<Option<String>, Group<'_>> = BTreeMap::new();
        // Before those of directories: what the configuration names counts. They are served when they have come.
        for apex in &self.others {
            seen.insert((None, folded(apex)));
            groups.entry(None).or_default().missing.push(*apex);
        }
        for kept in &self.kept {
            let set = &kept.wanted.set;
            let group = groups.entry(set.clone()).or_default();
            for (apex, zone) in &kept.zones {
                if !seen.insert((set.as_deref(), folded(apex))) {
                    let file = kept.wanted.file.display();
                    let message = format!("zone \"{apex}\" is there twice; that of \"{file}\" is not served");
                    problems.push(Problem::warning(kept.wanted.span, message));
                    continue;
                }
                match zone {
                    Some(zone) => group.loaded.push(Arc::clone(zone)),
                    None => group.missing.push(*apex),
                }
                group.guarded.extend(kept.wanted.allow_query.as_deref().map(|allow| (*apex, allow)));
            }
        }
        let mut all: BTreeMap<Option<String>, Arc<Zones>> = BTreeMap::new();
        let before = std::mem::take(&mut self.checks);
        for (set, Group { loaded, missing, guarded }) in groups {
            let checks = (&before, &mut self.checks);
            let specials =
                specials((settings, set.as_deref()), key, sets, checks, (&loaded, &guarded), problems);
            let zones = Zones::with_missing(key, loaded, &missing).with_specials(specials);
            self.check_aliases(&zones, set.as_deref(), settings, problems);
            all.insert(set, Arc::new(with_shared(zones)));
        }
        self.served = all.remove(&None);
        if settings.has_added_zones && self.served.is_none() {
            self.served = Some(Arc::new(with_shared(Zones::new(key, Vec::new()))));
        }
        self.sets = all.into_iter().filter_map(|(set, zones)| Some((set?, zones))).collect();
        // A directory may have no zone yet; policies name its set all the same.
        for directory in settings.zone_directories.iter().filter_map(|directory| directory.set.as_ref()) {
            self.sets.entry(directory.value.clone()).or_insert_with(|| Arc::new(Zones::new(key, Vec::new())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::Plans;
    use crate::load::load_text;
    use environment::Memory;
    use std::path::Path;

    #[test]
    fn files_are_named_after_their_zones() {
        for (file, name) in [
            ("/etc/zones/example.org.zone", "example.org"),
            ("db.example.org", "example.org"),
            ("example.org.db", "example.org"),
            ("example.org.json", "example.org"),
            ("example.org", "example.org"),
        ] {
            assert_eq!(name_of(Path::new(file)), name);
        }
    }

    const ORG: &str = "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n$INCLUDE more\n";
    const NET: &str = "$TTL 60\n@ SOA ns a 7 2 3 4 5\n@ NS ns\nns A 192.0.2.2\n";

    fn machine(org: &str, more: &str, net: &str) -> Memory {
        Memory::new(&[
            ("/etc/resolv.conf", "nameserver 192.0.2.1\n"),
            ("/z/org", org),
            ("/z/more", more),
            ("/z/net", net),
        ])
    }

    fn plans(memory: &Memory, previous: Option<&Plans>) -> Plans {
        let text = "zones: [{name: example.org, file: org}, {name: example.net, file: net}]\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, memory).expect("no mistakes");
        crate::compile(&loaded, &[], previous, memory).map_err(|found| found[0].human()).expect("it compiles")
    }

    /// Returns the serial of each zone that is served, and whether it is the one served before.
    fn serials(plans: &Plans, previous: Option<&Plans>) -> Vec<(u32, bool)> {
        let all = |plans: &Plans| -> Vec<Arc<Zone>> {
            plans.zones.served.as_ref().map_or_else(Vec::new, |zones| zones.all().cloned().collect())
        };
        let before = previous.map_or_else(Vec::new, all);
        let mut found: Vec<(u32, bool)> = all(plans)
            .iter()
            .map(|zone| (zone.facts().serial, before.iter().any(|other| Arc::ptr_eq(other, zone))))
            .collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn zones_whose_files_did_not_change_are_kept() {
        let first = plans(&machine(ORG, "x A 192.0.2.9\n", NET), None);
        assert_eq!(serials(&first, None), [(1, false), (7, false)]);
        assert!(first.warnings.is_empty(), "{:?}", first.warnings);
        let same = plans(&machine(ORG, "x A 192.0.2.9\n", NET), Some(&first));
        assert_eq!(serials(&same, Some(&first)), [(1, true), (7, true)]);
        // An included file is part of its zone.
        let second = plans(&machine(ORG, "y A 192.0.2.9\n", NET), Some(&first));
        assert_eq!(serials(&second, Some(&first)), [(1, false), (7, true)]);
    }

    #[test]
    fn a_zone_with_mistakes_leaves_the_one_before_in_place() {
        let first = plans(&machine(ORG, "", NET), None);
        let second =
            plans(&machine(&ORG.replace(" 1 2 ", " 2 2 "), "", &NET.replace("192.0.2.2", "x")), Some(&first));
        assert_eq!(serials(&second, Some(&first)), [(2, false), (7, true)]);
        let lines: Vec<String> = second.warnings.iter().map(Diagnostic::line).collect();
        assert_eq!(
            lines,
            [
                "/z/g.yaml:1:67: warning: zone \"example.net.\" is not loaded: \"/z/net\" has mistakes; serial 7 is still served",
                "/z/net:4:6: error: \"x\" cannot stand here: expected an IPv4 address",
            ]
        );
        assert_eq!(second.warnings[1].excerpt, "ns A x");
    }

    #[test]
    fn a_zone_that_was_never_loaded_is_told_and_the_others_are_served() {
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n"), ("/z/net", NET)]);
        let plans = plans(&memory, None);
        assert_eq!(serials(&plans, None), [(7, false)]);
        assert!(
            plans.warnings[0].message.ends_with("questions about it get SERVFAIL"),
            "{:?}",
            plans.warnings
        );
    }

    /// A zone in JSON.
    fn json(apex: &str, serial: u32, address: &str) -> String {
        format!(
            r#"{{"name": "{apex}", "records": [
              {{"name": "{apex}", "type": "SOA", "ttl": 60, "data": {{"mname": "ns.{apex}", "rname": "a.{apex}", "serial": {serial}, "refresh": 2, "retry": 3, "expire": 4, "minimum": 5}}}},
              {{"name": "{apex}", "type": "NS", "ttl": 60, "data": {{"dname": "ns.example.net"}}}},
              {{"name": "a.{apex}", "type": "A", "ttl": 60, "context": ["ams"], "data": {{"ip": "{address}"}}}}]}}"#
        )
    }

    fn in_directory(files: &[(&str, &str)], more: &str, previous: Option<&Plans>) -> Plans {
        let mut all = vec![("/etc/resolv.conf", "nameserver 192.0.2.1\n")];
        all.extend(files);
        let memory = Memory::new(&all);
        let text = format!("zone-directories: [{{path: all{more}}}]\n");
        let loaded = load_text(Path::new("/z/g.yaml"), &text, &memory).expect("no mistakes");
        crate::compile(&loaded, &[], previous, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles")
    }

    #[test]
    fn every_file_of_a_directory_is_a_zone_or_many() {
        let two =
            format!("[{},{}]", json("example.com", 3, "192.0.2.1"), json("example.org", 4, "192.0.2.1"));
        let files =
            [("/z/all/two.json", two.as_str()), ("/z/all/example.net.zone", NET), ("/z/all/readme", "x")];
        let first = in_directory(&files, "", None);
        assert_eq!(serials(&first, None), [(3, false), (4, false), (7, false)]);
        assert_eq!(
            serials(&in_directory(&files[..2], ", format: json", None), None),
            [(3, false), (4, false)]
        );
        assert_eq!(serials(&in_directory(&files[..2], ", format: master", None), None), [(7, false)]);
        // A zone that is gone from its file is gone; what cannot be read stays.
        let one = format!("[{}]", json("example.com", 5, "192.0.2.1"));
        let changed = [("/z/all/two.json", one.as_str()), files[1]];
        let second = in_directory(&changed, "", Some(&first));
        assert_eq!(serials(&second, Some(&first)), [(5, false), (7, true)]);
        let broken = [("/z/all/two.json", &one[..40]), files[1]];
        let third = in_directory(&broken, "", Some(&second));
        assert_eq!(serials(&third, Some(&second)), [(5, true), (7, true)]);
        assert!(
            third.warnings.iter().any(|found| found.message.contains("no zone in")),
            "{:?}",
            third.warnings
        );
        let bad = json("example.com", 6, "192.0.2.300");
        let bad = format!("[{bad},{}]", json("example.org", 7, "192.0.2.1"));
        let fourth = in_directory(&[("/z/all/two.json", &bad)], "", Some(&second));
        assert_eq!(serials(&fourth, Some(&second)), [(5, true), (7, false)]);
    }

    #[test]
    fn how_far_a_large_zone_is_can_be_heard() {
        let text = format!("{NET}$GENERATE 1-140000 h$ A 192.0.2.1\n");
        let mut memory = machine(ORG, "", &text);
        memory.heard = Some(std::cell::RefCell::default());
        let plans = plans(&memory, None);
        assert_eq!(serials(&plans, None), [(1, false), (7, false)]);
        let heard = memory.heard.expect("somebody hears").into_inner();
        assert_eq!(heard, ["example.net.: 65536 of /z/net", "example.net.: 131072 of /z/net"]);
    }

    #[test]
    fn contexts_choose_records() {
        let text = format!("[{}]", json("example.com", 3, "192.0.2.1"));
        let records = |more: &str| {
            let plans = in_directory(&[("/z/all/a.json", &text)], more, None);
            let zones = plans.zones.served.as_ref().expect("zones");
            zones.all().map(|zone| zone.facts().records).sum::<usize>()
        };
        assert_eq!((records(""), records(", contexts: ams"), records(", contexts: [fra, sjc]")), (3, 3, 2));
    }

    #[test]
    fn sets_of_zones_are_apart() {
        let memory = machine(ORG, "", NET);
        let text = "zones: [{name: example.org, file: org}, {name: example.org, file: org, set: inside}, {name: example.net, file: net, set: inside}]\n\
            policy: {main: [{if: rd, do: zones(inside)}, zones]}\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, &memory).expect("no mistakes");
        let plans = crate::compile(&loaded, &[], None, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles");
        assert_eq!(serials(&plans, None), [(1, false)]);
        assert_eq!(plans.zones.sets.get("inside").map(|zones| zones.len()), Some(2));
        for (wrong, message) in [
            (text.replace("zones(inside)", "zones(insider)"), "unknown set of zones \"insider\""),
            (text.replace("name: example.net", "name: example.org"), "zone \"example.org.\" is there twice"),
        ] {
            let Err(found) = load_text(Path::new("/z/g.yaml"), &wrong, &memory) else {
                panic!("no mistake in {wrong}")
            };
            assert!(found.iter().any(|found| found.message == message), "{found:?}");
        }
    }

    #[test]
    fn other_servers_have_rights_only_to_zones_that_say_so() {
        let memory = Memory::new(&[
            ("/etc/resolv.conf", "nameserver 192.0.2.1\n"),
            ("/z/org", ORG),
            ("/z/more", ""),
            ("/z/all/example.net.zone", NET),
        ]);
        let text = "zones: [{name: example.org, file: org, transfer: any}, {name: example.org, file: org, set: inside}, {name: example.com, primaries: 192.0.2.1}]\n\
            zone-directories: [{path: all}]\npolicy: {main: [{if: rd, do: zones(inside)}, zones]}\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, &memory).expect("no mistakes");
        let plans = crate::compile(&loaded, &[], None, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles");
        let all: Vec<(String, usize, usize, bool)> = plans
            .zones
            .plans
            .iter()
            .map(|plan| {
                let (transfer, notify) = (plan.rights.transfer.len(), plan.rights.notify.len());
                (plan.apex.to_string(), transfer, notify, plan.zone.is_some())
            })
            .collect();
        assert_eq!(all, [("example.org.".to_owned(), 1, 0, true), ("example.com.".to_owned(), 0, 1, false)]);
        let served = plans.zones.served.expect("zones");
        // One in a file, one in a directory, and one that has not come yet.
        assert_eq!((served.all().count(), served.unloaded().count()), (2, 1));
        for (special, message) in [
            ("set: inside, transfer: any", "other servers do not hear of a zone of a set"),
            ("set: inside, catalog-role: consumer", "other servers do not hear of a zone of a set"),
            ("sign: s, catalog-role: producer", "the server signs no catalog"),
        ] {
            let text =
                format!("zones: [{{name: example.org, file: org, {special}}}]\nsigning: {{s: {{}}}}\n");
            let Err(found) = load_text(Path::new("/z/g.yaml"), &text, &memory) else {
                panic!("no mistake in {text}")
            };
            assert!(found.iter().any(|found| found.message == message), "{special}: {found:?}");
        }
    }

    #[test]
    fn a_zone_that_is_to_be_signed_is_given_away_only_signed() {
        let memory = machine(ORG, "", NET);
        let text = "zones: [{name: example.org, file: org, sign: s, transfer: any}]\nsigning: {s: {}}\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, &memory).expect("no mistakes");
        let mut plans = crate::compile(&loaded, &[], None, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles");
        let plan = &plans.zones.plans[0];
        assert!(plan.signed.is_file() && plan.zone.is_none() && plan.source == 0);
        assert_eq!(plans.zones.signed.as_ref().map(|zones| zones.all().count()), Some(0));
        // What it is signed as does not matter here.
        let signed = plans.signing.zones[0].source.clone().expect("what is written");
        assert!(plans.signing.take(Arc::clone(&signed)));
        let again = crate::prepare(&loaded, &[], Some(&plans), &memory, Some(""));
        let again =
            again.finish(plans.caches.clone()).map_err(|found| found[0].human()).expect("it compiles");
        let plan = &again.zones.plans[0];
        assert!(plan.zone.as_ref().is_some_and(|zone| Arc::ptr_eq(zone, &signed)) && plan.source != 0);
    }

    #[test]
    fn what_zones_make_and_choose_is_checked() {
        let memory = machine(ORG, "", NET);
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
            let text = format!("zones: [{{name: example.org, file: org, {special}}}]\n");
            let Err(found) = load_text(Path::new("/z/g.yaml"), &text, &memory) else {
                panic!("no mistake in {text}")
            };
            assert!(found.iter().any(|found| found.message == message), "{special}: {found:?}");
        }
        let text = "zones: [{name: example.org, file: org, make: [{networks: 192.0.2.0/24}], choose: [{name: www.example.org, type: A, from: [{data: [192.0.2.1, 192.0.2.2], clients: lan}, {data: 192.0.2.3}]}]}]\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, &memory).expect("no mistakes");
        let plans = crate::compile(&loaded, &[], None, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles");
        assert!(plans.zones.served.is_some_and(|zones| zones.are_for_clients()));
    }

    #[test]
    fn of_many_files_it_is_heard_how_many_were_read() {
        let mut memory = Memory { heard: Some(std::cell::RefCell::default()), ..Memory::default() };
        for number in 0..300 {
            let text = b"@ SOA ns.example.net. h.example.net. 1 1 1 1 1\n NS ns.example.net.\n".to_vec();
            memory.files.insert(PathBuf::from(format!("/z/z{number}.example.zone")), text);
        }
        let loaded = load_text(Path::new("/c.yaml"), "zone-directories: [{path: /z}]\n", &memory);
        let loaded = loaded.unwrap_or_else(|found| panic!("{}", found[0].human()));
        let plans = crate::compile(&loaded, &[], None, &memory);
        assert!(plans.is_ok_and(|plans| plans.zones.served.is_some_and(|zones| zones.len() == 300)));
        let heard = memory.heard.map(std::cell::RefCell::into_inner).unwrap_or_default();
        assert_eq!(heard, ["zones: 256 of all"]);
    }
}
