//! What operators want to know about a zone.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wire::Name;
use zone::Zone;

use crate::lock::lock;
use crate::managed::{Current, ManagedZone, Origin, ZoneChange};
use crate::shared::{Shared, folded};

/// What a zone is to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is a file here, or is made here.
    Primary,
    /// It comes from other servers.
    Secondary,
}

/// How a zone is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// Its name.
    pub name: String,
    /// What it is to this server.
    pub role: Role,
    /// The serial that is served; none: questions get SERVFAIL.
    pub serial: Option<u32>,
    /// Since when that version is served, in seconds since 1970; none of what is nothing but a file
    /// of many.
    pub served_since: Option<u64>,
    /// Records of that version.
    pub records: usize,
    /// Whether it may not change.
    pub is_frozen: bool,
    /// Seconds until the primaries are asked.
    pub next_look_in_s: Option<u64>,
    /// Seconds until the zone expires, unless a primary answers (RFC 1035 §3.3.13).
    pub expires_in_s: Option<u64>,
    /// Versions that secondaries can get the difference to.
    pub history: usize,
    /// Octets of its log on disk.
    pub log_octets: u64,
    /// Whether the operator added it while the server ran.
    pub is_added: bool,
    /// The catalog that it came with.
    pub catalog: Option<String>,
    /// The set that it is in, for policies to answer from.
    pub set: Option<String>,
    /// Its file.
    pub file: Option<PathBuf>,
    /// What is wrong: with its file, with what was kept of it, or with the last attempt to get a
    /// newer version.
    pub trouble: Option<String>,
    /// Its last change since the start, if there was one.
    pub change: Option<ZoneChange>,
    /// The last one that no operator asked for, such as an UPDATE, in seconds since 1970.
    pub changed_by_others_at: Option<u64>,
    /// Whether an UPDATE may change it.
    pub takes_updates: bool,
}

impl ZoneReport {
    /// Returns whether somebody should look at it.
    pub const fn is_failing(&self) -> bool {
        self.serial.is_none() || self.trouble.is_some()
    }

    /// Says how a zone is that is nothing but a file, or of which there is nothing.
    fn plain(name: String, zone: Option<&Arc<Zone>>) -> Self {
        Self {
            name,
            role: Role::Primary,
            serial: zone.map(|zone| zone.facts().serial),
            served_since: None,
            records: zone.map_or(0, |zone| zone.facts().records),
            is_frozen: false,
            next_look_in_s: None,
            expires_in_s: None,
            history: 0,
            log_octets: 0,
            is_added: false,
            catalog: None,
            set: None,
            file: None,
            trouble: None,
            change: None,
            changed_by_others_at: None,
            takes_updates: false,
        }
    }
}

/// How many zones there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Those that are served.
    pub served: usize,
    /// The names of those with which something is wrong; the path of a file of which nothing can be
    /// read.
    pub failing: Vec<String>,
}

/// Says how a zone is. `current` is that of the zone, which is locked: so it stays like that.
pub(crate) fn report_of(managed: &ManagedZone, current: &Current, now: u64) -> ZoneReport {
    let is_secondary = managed.is_secondary();
    let loaded = managed.loaded();
    let served = lock(&managed.served).clone();
    let history = lock(&managed.history).len();
    let of_file = loaded.failed.as_ref().map(ToString::to_string);
    let pending = current.pending.as_ref().map(|pending| pending.why.clone());
    ZoneReport {
        role: if is_secondary { Role::Secondary } else { Role::Primary },
        served_since: served.as_ref().map(|_| managed.served_since.load(Ordering::Relaxed)),
        is_frozen: current.is_frozen,
        next_look_in_s: is_secondary.then(|| current.next_look.saturating_sub(now)),
        expires_in_s: managed.expires(current).map(|expires| expires.saturating_sub(now)),
        history,
        log_octets: ManagedZone::log_octets(current),
        is_added: managed.origin == Origin::Added,
        catalog: match &managed.origin {
            Origin::Member { catalog, .. } => Some(catalog.to_string()),
            Origin::Configured | Origin::Added => None,
        },
        file: loaded.plan.file.clone(),
        trouble: of_file
            .or_else(|| current.unreadable.clone())
            .or(pending)
            .or_else(|| current.trouble.clone()),
        change: current.change.clone(),
        changed_by_others_at: current.changed_by_others_at,
        takes_updates: !loaded.plan.rights.update.is_empty(),
        ..ZoneReport::plain(managed.apex.to_string(), served.as_ref())
    }
}

impl Shared {
    /// Returns whether a zone is nothing but a file of a directory, or one of a set: nobody has
    /// rights to it.
    pub(crate) fn is_plain(&self, apex: Name<'_>) -> bool {
        let common = lock(&self.common);
        let mut all = common.base.iter().chain(common.sets.values());
        let is_failing = || common.failing.iter().any(|it| it.apex.is_some_and(|it| it.as_name() == apex));
        all.any(|zones| zones.at(apex).is_some()) || is_failing()
    }

    pub(crate) fn report(&self, only: Option<Name<'_>>, now: u64) -> Vec<ZoneReport> {
        let managed = match only {
            Some(apex) => self.managed(apex).into_iter().collect(),
            None => self.all(),
        };
        let of = |managed: &Arc<ManagedZone>| report_of(managed, &lock(&managed.current), now);
        let mut reports: Vec<ZoneReport> = managed.iter().map(of).collect();
        let known: BTreeSet<Vec<u8>> = managed.iter().map(|managed| folded(managed.apex.as_name())).collect();
        let (base, sets, failing) = {
            let common = lock(&self.common);
            (common.base.clone(), common.sets.clone(), Arc::clone(&common.failing))
        };
        let is_wanted = |apex: Name<'_>| only.is_none_or(|only| only == apex);
        let mut groups = vec![(None, base)];
        groups.extend(sets.into_iter().map(|(set, zones)| (Some(set), Some(zones))));
        for (set, zones) in &groups {
            let is_known = |apex: Name<'_>| set.is_none() && known.contains(&folded(apex));
            let of_group = zones.iter().flat_map(|zones| zones.all());
            let of_group = of_group.filter(|zone| is_wanted(zone.apex()) && !is_known(zone.apex()));
            let first = reports.len();
            reports.extend(of_group.map(|zone| ZoneReport {
                set: set.clone(),
                ..ZoneReport::plain(zone.apex().to_buf().to_string(), Some(zone))
            }));
            for fails in failing.iter().filter(|fails| fails.set == *set) {
                let name = match &fails.apex {
                    Some(apex) if !is_wanted(apex.as_name()) || is_known(apex.as_name()) => continue,
                    Some(apex) => apex.to_string(),
                    None if only.is_some() => continue,
                    None => fails.file.display().to_string(),
                };
                let at = reports.iter().skip(first).position(|it| it.name.eq_ignore_ascii_case(&name));
                let at = at.map_or(reports.len(), |at| first + at);
                if at == reports.len() {
                    reports.push(ZoneReport { set: set.clone(), ..ZoneReport::plain(name, None) });
                }
                if let Some(report) = reports.get_mut(at) {
                    report.file = Some(fails.file.clone());
                    report.trouble = Some(fails.why.to_string());
                }
            }
        }
        reports.sort_by(|one, other| {
            (!one.is_failing(), &one.name, &one.set).cmp(&(!other.is_failing(), &other.name, &other.set))
        });
        reports
    }

    pub(crate) fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        let all = self.all();
        let mut known = BTreeSet::new();
        for managed in &all {
            known.insert(folded(managed.apex.as_name()));
            let is_served = lock(&managed.served).is_some();
            summary.served += usize::from(is_served);
            // A zone that is being changed is looked at the next time: that may take seconds.
            let is_in_trouble = managed.current.try_lock().is_ok_and(|current| {
                current.pending.is_some() || current.unreadable.is_some() || current.trouble.is_some()
            });
            if !is_served || is_in_trouble || managed.loaded().failed.is_some() {
                summary.failing.push(managed.apex.to_string());
            }
        }
        let common = lock(&self.common);
        let plain =
            common.base.iter().chain(common.sets.values()).map(|zones| zones.all().count()).sum::<usize>();
        let of_base = |managed: &&Arc<ManagedZone>| {
            common.base.as_ref().is_some_and(|base| base.get(managed.apex.as_name()).is_some())
        };
        summary.served += plain - all.iter().filter(of_base).count();
        for fails in common.failing.iter() {
            match &fails.apex {
                Some(apex) if fails.set.is_none() && known.contains(&folded(apex.as_name())) => {}
                Some(apex) => summary.failing.push(apex.to_string()),
                None => summary.failing.push(fails.file.display().to_string()),
            }
        }
        summary.failing.sort();
        summary
    }
}
