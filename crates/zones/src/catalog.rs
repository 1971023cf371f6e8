//! Catalog zones: which zones they make us serve, and which of ours we list in them (RFC 9432).

use std::sync::Arc;

use plan::zones::{CatalogRole, ZonePlan};
use wire::HashKey;
use wire::serial::SerialPolicy;
use zone::Difference;
use zone::catalog::{Member, members, produce};

use crate::load::{LoadedZone, Synthesized, synthesized};
use crate::lock::lock;
use crate::managed::{ManagedZone, Origin};

/// The source of changes of catalogs that are made here.
const BY_MEMBERS: &str = "the server, as its members changed";

/// Returns the members of a catalog. One that is broken has the members it had: what is served of
/// it is the last version that could be read, so that members stay.
pub(crate) fn members_of(catalog: &ManagedZone) -> Arc<[Member]> {
    // RFC 9432 §5.1: members stay also when the catalog expires.
    let Some(zone) = lock(&catalog.current).zone.clone() else { return Arc::from([]) };
    let mut last = lock(&catalog.last_members);
    match members(&zone) {
        Ok(members) => *last = members.into(),
        Err(bad) => {
            tracing::error!(catalog = %catalog.apex, %bad, "the catalog is not used; its members stay as they were");
        }
    }
    Arc::clone(&last)
}

/// Returns a member of a catalog as its catalog has it planned; `old` is what it had besides its
/// records before.
pub(crate) fn load_member(
    member: &Member,
    catalog: &LoadedZone,
    key: HashKey,
    old: Option<&Synthesized>,
) -> LoadedZone {
    let plan = ZonePlan {
        apex: member.zone,
        file: None,
        catalog_role: None,
        member_of: None,
        ..ZonePlan::clone(&catalog.plan)
    };
    let synthesized = synthesized(&plan, key, old);
    for name in synthesized.iter().flat_map(|synthesized| &synthesized.too_long) {
        tracing::warn!(zone = %member.zone, name, "nothing is chosen there in this member of a catalog: the name is too long");
    }
    LoadedZone { synthesized, ..LoadedZone::without_file(Arc::new(plan)) }
}

/// Returns the label of a zone in catalogs that are made here: it depends on nothing but the name
/// (FNV-1a).
fn label(name: &[u8]) -> Vec<u8> {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}").into_bytes()
}

/// Makes the catalogs anew whose members have changed, and returns them.
pub(crate) fn produce_all(zones: &[Arc<ManagedZone>], key: HashKey, now: u64) -> Vec<Arc<ManagedZone>> {
    let mut made = Vec::new();
    for catalog in
        zones.iter().filter(|managed| managed.loaded().plan.catalog_role == Some(CatalogRole::Producer))
    {
        // Members of other catalogs are listed there.
        let own = zones.iter().filter(|managed| !matches!(managed.origin, Origin::Member { .. }));
        let listed = own.filter_map(|managed| {
            let loaded = managed.loaded();
            let membership = loaded.plan.member_of.as_ref().filter(|it| it.catalog == catalog.apex)?;
            Some((
                loaded.plan.apex,
                label(loaded.plan.apex.as_name().to_folded().as_bytes()),
                membership.group.iter().cloned().collect(),
            ))
        });
        let listed: Vec<_> = listed.collect();
        let loaded = catalog.loaded();
        let mut current = lock(&catalog.current);
        let before = current.zone.as_ref().map(|zone| zone.facts().serial);
        let serial = SerialPolicy::Unixtime.next(before.unwrap_or(0), now);
        let zone = match produce(catalog.apex.as_name(), key, serial, &listed) {
            Ok(zone) => Arc::new(zone),
            Err(misfit) => {
                tracing::error!(catalog = %catalog.apex, %misfit, "the catalog cannot be made");
                continue;
            }
        };
        let steps = match &current.zone {
            Some(old) => {
                let difference = Difference::between(old, &zone, &key);
                if difference.is_empty() {
                    continue;
                }
                vec![difference]
            }
            None => Vec::new(),
        };
        catalog.commit(&mut current, steps, zone, &loaded, now);
        current.note_other_change(BY_MEMBERS, now);
        drop(current);
        made.push(Arc::clone(catalog));
    }
    made
}
