//! What operators want to know about a zone.

use crate::kept::{Kept, Origin, lock};

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
    /// Records of that version.
    pub records: usize,
    /// Whether it may not change.
    pub is_frozen: bool,
    /// Seconds until the primaries are asked.
    pub next_look_in_s: Option<u64>,
    /// Seconds until it is not served any more, if nobody is heard of.
    pub expires_in_s: Option<u64>,
    /// Versions that secondaries can get the difference to.
    pub history: usize,
    /// Octets of its log on disk.
    pub log_octets: u64,
    /// Whether the operator added it while the server ran.
    pub is_added: bool,
    /// The catalog that it came with.
    pub catalog: Option<String>,
    /// Why the last attempt to get a newer version failed.
    pub trouble: Option<String>,
}

pub(crate) fn report(kept: &Kept, now: u64) -> ZoneReport {
    let is_secondary = kept.is_secondary();
    let served = lock(&kept.served).clone();
    let history = lock(&kept.history).len();
    let current = lock(&kept.current);
    ZoneReport {
        name: kept.apex.to_string(),
        role: if is_secondary { Role::Secondary } else { Role::Primary },
        serial: served.as_ref().map(|zone| zone.facts().serial),
        records: served.as_ref().map_or(0, |zone| zone.facts().records),
        is_frozen: current.is_frozen,
        next_look_in_s: is_secondary.then(|| current.next_look.saturating_sub(now)),
        expires_in_s: kept.expires(&current).map(|expires| expires.saturating_sub(now)),
        history,
        log_octets: Kept::log_octets(&current),
        is_added: kept.origin == Origin::Added,
        catalog: match &kept.origin {
            Origin::Member { catalog, .. } => Some(catalog.to_string()),
            Origin::Configured | Origin::Added => None,
        },
        trouble: current.trouble.clone(),
    }
}
