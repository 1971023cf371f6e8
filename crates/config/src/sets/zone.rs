//! Sets made of zones that come from other servers: response policy zones.

use std::sync::Arc;

use lists::Progress;
use lists::policy_zone::{self, PolicyRecords};
use sets::PolicyZone;
use wire::{HashKey, Name, NameBuf, Rtype, Ttl};
use zone::Zone;

use super::{Mistake, Workshop};

/// A zone that a set was made of.
pub(super) struct MadeZone {
    /// The version whose rules were all made, so that later ones that lie over it share them. It
    /// stays in memory for as long as the set.
    base: Arc<Zone>,
    /// The version that the set has.
    pub(super) version: Arc<Zone>,
    /// Its rules.
    pub(super) rules: PolicyZone,
}

/// A version, with the key that its names are hashed with.
struct Version<'z>(&'z Zone, HashKey);

impl PolicyRecords for Version<'_> {
    fn apex(&self) -> Name<'_> {
        self.0.apex()
    }

    fn each(&self, f: &mut dyn FnMut(Name<'_>, Rtype, Ttl, &[u8])) {
        self.0.for_each_record(f);
    }

    fn at(&self, owner: Name<'_>, f: &mut dyn FnMut(Rtype, Ttl, &[u8])) {
        for record in self.0.records_of(owner, &self.1) {
            f(record.rtype, record.ttl, record.rdata);
        }
    }

    fn below(&self, top: Name<'_>, f: &mut dyn FnMut(Name<'_>)) {
        for name in self.0.names_below(top) {
            f(name.as_name());
        }
    }

    fn exists(&self, name: Name<'_>) -> bool {
        self.0.has_name(name, &self.1)
    }
}

/// Makes the rules of a zone; `known` is what was made of it before.
pub(super) fn make(
    apex: &NameBuf,
    known: Option<&MadeZone>,
    workshop: &Workshop<'_>,
    report: &dyn Fn(usize),
) -> (Option<MadeZone>, Vec<Mistake>) {
    let told = |text| Mistake { text, is_error: false };
    let Some(version) = workshop.environment.zone(apex.as_name()) else {
        let text = format!("the zone \"{apex}\" was not transferred yet; the set is without it until then");
        return (None, vec![told(text)]);
    };
    let (key, label) = (workshop.key, format!("zone {apex}"));
    let read = |zone: &Arc<Zone>| {
        let (rules, mistakes) = policy_zone::read(&Version(zone, key), &label, &key, Progress::to(report));
        let mistakes = mistakes.describe().map(|text| told(format!("\"{label}\": {text}")));
        (rules, mistakes.into_iter().collect::<Vec<_>>())
    };
    let later = |first: &PolicyZone, base: &Arc<Zone>| {
        let versions = (&Version(base, key) as &dyn PolicyRecords, &Version(&version, key) as _);
        let differing: Vec<NameBuf> = version.differing().collect();
        let names = differing.iter().map(NameBuf::as_name);
        policy_zone::later(first, versions, names, &label, &key)
    };
    let base = version.base();
    let (first, mistakes) = match known.filter(|known| Arc::ptr_eq(&known.base, base)) {
        Some(known) => (known.rules.first(), Vec::new()),
        None => read(base),
    };
    if Arc::ptr_eq(base, &version) {
        return (Some(MadeZone { base: Arc::clone(base), rules: first, version }), mistakes);
    }
    match later(&first, base) {
        Some(rules) => (Some(MadeZone { base: Arc::clone(base), rules, version }), mistakes),
        None => {
            let (rules, mistakes) = read(&version);
            (Some(MadeZone { base: Arc::clone(&version), rules, version }), mistakes)
        }
    }
}
