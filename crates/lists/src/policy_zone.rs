//! Response policy zones whose records are in memory: those that come from other servers.
//!
//! Rules of a whole version are made once; those of a later version that shares most names with it
//! are the same but for the names that differ, which costs in proportion to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use sets::{ListedRecord, NameKind, PolicyZone, PrefixKind, Reach, Treatment, ZoneBuilder, ZoneChanges};
use wire::{HashKey, Name, NameBuf, Rtype, Ttl};

use crate::reading::{Mistakes, Progress};
use crate::rpz::{Looks, Rules, below, is_no_rule, looks, rule_of};

/// Names below one that a wildcard comes above: more than that, and all rules are made anew.
const BELOW_WILDCARD_MAX: usize = 4096;
/// The label that rules on names of name servers are below.
const SERVER_NAMES: &[u8] = b"rpz-nsdname";

/// A version of a zone, as rules are made of it.
pub trait PolicyRecords {
    /// Returns the zone's name.
    fn apex(&self) -> Name<'_>;

    /// Calls `f` with every record.
    #[expect(clippy::type_complexity, reason = "a record is these four")]
    fn each(&self, f: &mut dyn FnMut(Name<'_>, Rtype, Ttl, &[u8]));

    /// Calls `f` with every record of one name.
    fn at(&self, owner: Name<'_>, f: &mut dyn FnMut(Rtype, Ttl, &[u8]));

    /// Calls `f` with every name below one that exists. May look at every name of the zone.
    fn below(&self, top: Name<'_>, f: &mut dyn FnMut(Name<'_>));

    /// Returns whether a name exists: it has records, or names below it do.
    fn exists(&self, name: Name<'_>) -> bool;
}

/// Makes the rules of a version; `label` says where they come from where one is shown.
pub fn read(
    records: &dyn PolicyRecords,
    label: &str,
    key: &HashKey,
    progress: Progress<'_>,
) -> (PolicyZone, Mistakes) {
    let mut rules = Rules::new(ZoneBuilder::new(key, &Arc::from(label)));
    let mut mistakes = Mistakes::of(false);
    let mut line = 0;
    let apex = records.apex();
    records.each(&mut |owner, rtype, ttl, rdata| {
        line += 1;
        progress.at(line);
        let listed = || ListedRecord { rtype, ttl: Some(ttl), data: rdata.into() };
        if let Err(why) = rules.record(apex, owner, listed, line).map(drop) {
            mistakes.add(line, || why);
        }
    });
    (rules.finish(&mut mistakes).compile(), mistakes)
}

/// Returns the rules of a later version, of which only `changed` names, and the existence of those
/// above them, differ from the version that `zone` was made of. `None` if all rules are better made
/// anew.
pub fn later<'n>(
    zone: &PolicyZone,
    (before, now): (&dyn PolicyRecords, &dyn PolicyRecords),
    changed: impl Iterator<Item = Name<'n>>,
    label: &str,
    key: &HashKey,
) -> Option<PolicyZone> {
    let apex = now.apex();
    let mut asked = Changing::new(NameKind::Asked, apex.to_buf(), before, now);
    let servers = NameBuf::below(&[&[SERVER_NAMES.len() as u8], SERVER_NAMES].concat(), apex).ok()?;
    let mut server = Changing::new(NameKind::Server, servers, before, now);
    let mut changes = ZoneChanges::new(key, label);
    let mut prefixes = BTreeSet::new();
    for owner in changed {
        let Some(trigger) = below(owner, apex).filter(|trigger| !trigger.as_name().is_root()) else {
            continue;
        };
        match looks(trigger.as_name()) {
            Ok(Looks::Name(_)) => asked.touch(trigger.as_name()),
            Ok(Looks::ServerName(_)) => {
                let labels = trigger.as_name().label_count() - 1;
                let mut name = NameBuf::root();
                for label in trigger.as_name().labels().take(labels) {
                    name.push_label(label).ok()?;
                }
                server.touch(name.as_name());
            }
            Ok(Looks::Client(..) | Looks::Answer(..) | Looks::ServerAddress(..)) => {
                prefixes.insert(owner.to_folded().as_bytes().to_vec());
            }
            // A name that only leads to rules on prefixes.
            Err(_) => {}
        }
    }
    asked.write(&mut changes)?;
    server.write(&mut changes)?;
    if !prefixes.is_empty() {
        write_prefixes(zone, now, &prefixes, &mut changes)?;
    }
    Some(zone.later(changes))
}

/// Writes all rules on prefixes: those that are as they were, and those of the owners that changed.
fn write_prefixes(
    zone: &PolicyZone,
    now: &dyn PolicyRecords,
    changed: &BTreeSet<Vec<u8>>,
    changes: &mut ZoneChanges,
) -> Option<()> {
    changes.replace_prefixes();
    let (apex, mut is_fine) = (now.apex(), true);
    let mut replaced = BTreeSet::new();
    for owner in changed.iter().filter_map(|owner| Name::parse(owner).ok()) {
        let trigger = below(owner.0, apex)?;
        let (kind, address, bits) = match looks(trigger.as_name()) {
            Ok(Looks::Client(address, bits)) => (PrefixKind::Client, address, bits),
            Ok(Looks::Answer(address, bits)) => (PrefixKind::Answer, address, bits),
            Ok(Looks::ServerAddress(address, bits)) => (PrefixKind::Server, address, bits),
            Ok(Looks::Name(_) | Looks::ServerName(_)) | Err(_) => continue,
        };
        replaced.insert((kind as u8, address, bits));
        if let Some(treatment) = rule_at(now, owner.0, trigger.as_name()) {
            is_fine &= changes.prefix(kind, (address, bits), treatment);
        }
    }
    zone.each_prefix(|kind, address, bits, treatment| {
        if !replaced.contains(&(kind as u8, address, bits)) {
            is_fine &= changes.prefix(kind, (address, bits), treatment.cloned());
        }
    });
    is_fine.then_some(())
}

/// Returns the rule that the records of an owner make; `None` if they make none. An exception has
/// no treatment.
fn rule_at(records: &dyn PolicyRecords, owner: Name<'_>, trigger: Name<'_>) -> Option<Option<Treatment>> {
    let mut listed = Vec::new();
    let mut rule = None;
    records.at(owner, &mut |rtype, ttl, rdata| {
        if is_no_rule(rtype) || rule.is_some() {
            return;
        }
        match rule_of(rtype, rdata, trigger) {
            Ok(Some(said)) => rule = Some(said),
            Ok(None) => listed.push(ListedRecord { rtype, ttl: Some(ttl), data: rdata.into() }),
            Err(_) => {}
        }
    });
    match rule {
        Some(rule) => Some(rule),
        None if listed.is_empty() => None,
        None => Some(Some(Treatment::Records(listed.into()))),
    }
}

/// Rules on names of one kind that differ.
struct Changing<'z> {
    kind: NameKind,
    /// What owners of these rules are below.
    under: NameBuf,
    before: &'z dyn PolicyRecords,
    now: &'z dyn PolicyRecords,
    /// Names whose own rules may differ, in lower case.
    itself: BTreeSet<Vec<u8>>,
    /// Names that have, or had, a rule on what is below them.
    wildcards: BTreeSet<Vec<u8>>,
    /// Names for those below which it is to be said which rule they have.
    around: BTreeSet<Vec<u8>>,
}

fn folded(name: Name<'_>) -> Vec<u8> {
    name.to_folded().as_bytes().to_vec()
}

/// Returns the wildcard below a name.
fn wildcard(name: Name<'_>) -> Option<NameBuf> {
    NameBuf::below(b"\x01*", name).ok()
}

impl<'z> Changing<'z> {
    fn new(
        kind: NameKind,
        under: NameBuf,
        before: &'z dyn PolicyRecords,
        now: &'z dyn PolicyRecords,
    ) -> Self {
        let (itself, wildcards, around) = Default::default();
        Self { kind, under, before, now, itself, wildcards, around }
    }

    /// Takes a name below `under` that may differ.
    fn touch(&mut self, trigger: Name<'_>) {
        let above = match trigger.labels().next() {
            Some(b"*") => {
                let name = trigger.parent().unwrap_or(Name::ROOT);
                self.wildcards.insert(folded(name));
                name
            }
            _ => {
                self.itself.insert(folded(trigger));
                trigger
            }
        };
        // Whether those above exist depends on it.
        let mut name = Some(above);
        while let Some(next) = name {
            if !self.around.insert(folded(next)) {
                break;
            }
            name = next.parent();
        }
    }

    fn owner(&self, name: Name<'_>) -> Option<NameBuf> {
        NameBuf::below(&name.as_bytes()[..name.len() - 1], self.under.as_name()).ok()
    }

    /// Returns the rule on a name itself.
    fn rule(&self, records: &dyn PolicyRecords, name: Name<'_>) -> Option<Option<Treatment>> {
        rule_at(records, self.owner(name)?.as_name(), name)
    }

    /// Returns the rule of a name's wildcard.
    fn rule_below(&self, records: &dyn PolicyRecords, name: Name<'_>) -> Option<Option<Treatment>> {
        self.rule(records, wildcard(name)?.as_name())
    }

    fn exists(&self, records: &dyn PolicyRecords, name: Name<'_>) -> bool {
        self.owner(name).is_some_and(|owner| records.exists(owner.as_name()))
    }

    /// Returns the rule that names below one have that have nothing closer (RFC 4592 §3.3.1): that
    /// of the wildcard of the closest name that exists.
    fn rule_for_below(&self, name: Name<'_>) -> Option<Option<Treatment>> {
        let mut name = name;
        loop {
            if let Some(rule) = self.rule_below(self.now, name) {
                return Some(rule);
            }
            if self.exists(self.now, name) {
                return None;
            }
            name = name.parent()?;
        }
    }

    /// Adds the names below those that a wildcard comes above: until then they kept nothing from
    /// it. `None` if they are many.
    fn add_below_wildcards(&mut self) -> Option<()> {
        let new = |folded: &Vec<u8>| {
            let Ok((name, _)) = Name::parse(folded) else { return None };
            let is_new = self.rule_below(self.now, name).is_some()
                && self.rule_below(self.before, name).is_none()
                && self.exists(self.before, name);
            self.owner(name).filter(|_| is_new)
        };
        let tops: Vec<NameBuf> = self.wildcards.iter().filter_map(new).collect();
        if tops.is_empty() {
            return Some(());
        }
        let mut found: BTreeSet<Vec<u8>> = BTreeSet::new();
        let under = self.under.as_name();
        for top in &tops {
            self.now.below(top.as_name(), &mut |owner| {
                // A wildcard is no name that keeps another one from anything.
                let is_name = owner.labels().next() != Some(b"*");
                if is_name
                    && found.len() <= BELOW_WILDCARD_MAX
                    && let Some(name) = below(owner, under)
                {
                    found.insert(folded(name.as_name()));
                }
            });
        }
        if found.len() > BELOW_WILDCARD_MAX {
            return None;
        }
        self.around.extend(found);
        Some(())
    }

    /// Writes what differs; `None` if it is too much.
    fn write(mut self, changes: &mut ZoneChanges) -> Option<()> {
        self.add_below_wildcards()?;
        let (mut come, mut gone) = (0, 0);
        for name in self.itself.iter().filter_map(|name| Name::parse(name).ok()) {
            let rule = self.rule(self.now, name.0);
            let was = self.rule(self.before, name.0).is_some();
            come += usize::from(rule.is_some() && !was);
            gone += usize::from(rule.is_none() && was);
            if (rule.is_some() || was) && !changes.itself(self.kind, name.0, rule) {
                return None;
            }
        }
        for name in self.wildcards.iter().filter_map(|name| Name::parse(name).ok()) {
            let is = self.rule_below(self.now, name.0).is_some();
            let was = self.rule_below(self.before, name.0).is_some();
            come += usize::from(is && !was);
            gone += usize::from(!is && was);
        }
        changes.count(come, gone);
        for name in self.around.iter().filter_map(|name| Name::parse(name).ok()) {
            let is_below = self.rule_below(self.now, name.0).is_some();
            let has_own = name.0.is_root() || self.rule(self.now, name.0).is_some();
            let reach = if has_own || is_below { Reach::Below } else { Reach::ItselfAndBelow };
            let rule = self.rule_for_below(name.0);
            let mut is_fine = changes.below(self.kind, (name.0, reach), rule);
            if is_below && !has_own {
                // It exists, and no wildcard above it is for it.
                is_fine &= changes.below(self.kind, (name.0, Reach::Itself), None);
            }
            if !is_fine {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::IpAddr;

    use sets::{Asking, Sought};
    use wire::Folded;

    use super::*;
    use crate::SetBuilder;

    const KEY: HashKey = HashKey::new([8, 9]);

    /// A zone as its owners and what their records say, both as text below the apex.
    #[derive(Clone, Default)]
    struct Model(BTreeMap<String, String>);

    fn name(text: &str) -> NameBuf {
        text.parse().expect("a name")
    }

    fn owner(text: &str) -> NameBuf {
        name(&format!("{text}.rpz.test"))
    }

    /// Returns the type and the data of a record.
    fn record(said: &str) -> (Rtype, Vec<u8>) {
        match said.parse::<std::net::Ipv4Addr>() {
            Ok(address) => (Rtype::A, address.octets().to_vec()),
            Err(_) => (Rtype::CNAME, name(said).as_name().as_bytes().to_vec()),
        }
    }

    struct Version<'m>(&'m Model, NameBuf);

    impl PolicyRecords for Version<'_> {
        fn apex(&self) -> Name<'_> {
            self.1.as_name()
        }

        fn each(&self, f: &mut dyn FnMut(Name<'_>, Rtype, Ttl, &[u8])) {
            for (text, said) in &self.0.0 {
                let (rtype, rdata) = record(said);
                f(owner(text).as_name(), rtype, Ttl::new(60), &rdata);
            }
        }

        fn at(&self, wanted: Name<'_>, f: &mut dyn FnMut(Rtype, Ttl, &[u8])) {
            self.each(&mut |owner, rtype, ttl, rdata| {
                if owner == wanted {
                    f(rtype, ttl, rdata);
                }
            });
        }

        fn below(&self, top: Name<'_>, f: &mut dyn FnMut(Name<'_>)) {
            for text in self.0.0.keys() {
                let owner = owner(text);
                // Names that exist because of this one are below it as well.
                let labels = owner.as_name().label_count();
                for count in top.label_count() + 1..=labels {
                    let name = owner.as_name().suffix(count);
                    if name.is_at_or_below(top) {
                        f(name);
                    }
                }
            }
        }

        fn exists(&self, wanted: Name<'_>) -> bool {
            self.0.0.keys().any(|text| owner(text).as_name().is_at_or_below(wanted))
        }
    }

    fn version(model: &Model) -> Version<'_> {
        Version(model, name("rpz.test"))
    }

    fn made(model: &Model) -> PolicyZone {
        read(&version(model), "zone", &KEY, Progress::default()).0
    }

    /// Returns what a zone says of names and addresses, as text.
    fn answers(zone: &PolicyZone, names: &[String]) -> Vec<String> {
        let mut builder = SetBuilder::new(KEY);
        builder.policy_zone(zone.clone());
        let set = builder.compile(&[], &[]);
        let list = set.list.as_ref().expect("a list");
        let ask = |text: &str, client: IpAddr, addresses: &[IpAddr]| {
            let qname = name(text);
            let mut folded = Folded::root();
            let hash = KEY.fold(qname.as_name(), &mut folded);
            let sought = Sought::new(&folded, hash);
            let asking = Asking {
                sought: &sought,
                qtype: Rtype::A,
                client,
                by_client: true,
                addresses,
                servers: None,
            };
            match list.rule(&asking) {
                Some(ruling) if ruling.is_allowed => format!("{text}: passes"),
                Some(ruling) => format!("{text}: {:?}", ruling.treatment),
                None => format!("{text}: nothing"),
            }
        };
        let nobody: IpAddr = [203, 0, 113, 1].into();
        let by_name = names.iter().map(|text| ask(text, nobody, &[]));
        let by_address = (0..4).map(|last| ask("nowhere", [192, 0, 2, last].into(), &[]));
        let by_answer = (0..4).map(|last| ask("nowhere", nobody, &[[198, 51, 100, last].into()]));
        let held =
            (0..4).map(|last| format!("{last}: {}", set.addresses.contains([198, 51, 100, last].into())));
        by_name.chain(by_address).chain(by_answer).chain(held).collect()
    }

    /// Numbers that look random and are the same each time.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }
    }

    /// Returns every name of one to four of three labels.
    fn all_names() -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let mut last = vec![String::new()];
        for _ in 0..4 {
            last = last
                .iter()
                .flat_map(|below| {
                    ["a", "b", "c"].map(|label| {
                        if below.is_empty() { label.to_owned() } else { format!("{label}.{below}") }
                    })
                })
                .collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    fn edit(model: &mut Model, names: &[String], dice: &mut Dice) {
        let text = names[dice.below(names.len())].clone();
        let text = match dice.below(8) {
            0..3 => format!("*.{text}"),
            3 => format!("32.{}.2.0.192.rpz-client-ip", dice.below(4)),
            4 => format!("{}.{}.100.51.198.rpz-ip", 31 + dice.below(2), dice.below(2) * 2),
            5 if dice.below(4) == 0 => "*".to_owned(),
            _ => text,
        };
        let said = [".", "*.", "rpz-passthru.", "192.0.2.1", "garden.example.", "rpz-drop."];
        match dice.below(3) {
            0 => drop(model.0.remove(&text)),
            _ => drop(model.0.insert(text, said[dice.below(said.len())].to_owned())),
        }
    }

    #[test]
    fn a_later_version_says_what_one_that_is_made_anew_says() {
        let names = all_names();
        let mut dice = Dice(7);
        for round in 0..150 {
            let mut before = Model::default();
            for _ in 0..dice.below(30) {
                edit(&mut before, &names, &mut dice);
            }
            let first = made(&before);
            let mut now = before.clone();
            // Several steps from the same version, as transfers bring them.
            for step in 0..4 {
                for _ in 0..1 + dice.below(6) {
                    edit(&mut now, &names, &mut dice);
                }
                let differs = |text: &&String| before.0.get(*text) != now.0.get(*text);
                let all: BTreeSet<&String> = before.0.keys().chain(now.0.keys()).collect();
                let changed: Vec<NameBuf> = all.into_iter().filter(differs).map(|text| owner(text)).collect();
                let versions = (&version(&before) as &dyn PolicyRecords, &version(&now) as _);
                let changed = changed.iter().map(NameBuf::as_name);
                let later = later(&first, versions, changed, "zone", &KEY).expect("few names");
                let (found, right) = (answers(&later, &names), answers(&made(&now), &names));
                for (found, right) in found.iter().zip(&right) {
                    assert_eq!(
                        found, right,
                        "round {round}, step {step}\nbefore: {:?}\nnow: {:?}",
                        before.0, now.0
                    );
                }
                assert_eq!(later.len(), made(&now).len(), "{:?} {:?}", before.0, now.0);
            }
        }
    }
}
