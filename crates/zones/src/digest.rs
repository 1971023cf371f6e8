//! Whether a version of a zone is the one that its operator made: its digest, ZONEMD (RFC 8976).

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dnssec::chain::{Rules, TrustPoint};
use dnssec::tree::Tree;
use dnssec::{Dnskey, Ds, ZonemdVerdict, check_signed_zonemd};
use plan::zones::{Standing, ZoneTrust, ZonemdPlan, ZonemdRule};
use tracing::warn;
use wire::Name;
use zone::Zone;

/// Finds out which keys zones have, by what is trusted.
pub trait Trust: Send + Sync {
    /// Returns what stands for the keys of a zone; an error says why that is not known now. Waits
    /// for answers of other servers.
    fn of(&self, apex: Name<'_>, plan: &ZonemdPlan) -> Result<ZoneTrust, String>;
}

/// How the digest of a zone's next version is checked.
pub(crate) struct DigestCheck {
    plan: Option<Arc<ZonemdPlan>>,
    /// What stands for the keys of the zone.
    trusted: ZoneTrust,
}

impl DigestCheck {
    /// Finds out what is trusted of a zone, if its digest is looked at; an error says why that is
    /// not known now. Waits for answers of other servers.
    pub(crate) fn new(
        plan: Option<&Arc<ZonemdPlan>>,
        apex: Name<'_>,
        trust: &dyn Trust,
    ) -> Result<Self, String> {
        let trusted = plan.map_or_else(|| Ok(ZoneTrust::default()), |plan| trust.of(apex, plan));
        match (trusted, plan.map(|plan| plan.rule)) {
            (Ok(trusted), _) => Ok(Self { plan: plan.map(Arc::clone), trusted }),
            (Err(_), Some(ZonemdRule::Log)) => {
                Ok(Self { plan: plan.map(Arc::clone), trusted: ZoneTrust::default() })
            }
            (Err(why), _) => Err(why),
        }
    }

    /// Returns a check by the trust anchors of the settings alone, for when nobody can be asked.
    pub(crate) fn by_settings(plan: Option<&Arc<ZonemdPlan>>, apex: Name<'_>) -> Self {
        let standing = plan.map(|plan| Standing::of(apex, &plan.trust.anchors, &plan.trust.negative));
        let trusted = match standing {
            Some(Standing::Anchor(trusted)) => trusted,
            Some(Standing::Untrusted | Standing::Below) | None => ZoneTrust::default(),
        };
        Self { plan: plan.map(Arc::clone), trusted }
    }

    /// Checks a version; an error says why it is not taken.
    pub(crate) fn check(&self, zone: &Zone) -> Result<(), String> {
        let Some(plan) = &self.plan else { return Ok(()) };
        match (judge(zone, plan, &self.trusted), plan.rule) {
            (Ok(()), _) => Ok(()),
            (Err(why), ZonemdRule::Log | ZonemdRule::Off) => {
                let serial = zone.facts().serial;
                warn!(zone = %zone.apex(), serial, why, "the digest of the zone is wrong; the version is taken");
                Ok(())
            }
            (Err(why), ZonemdRule::Verify | ZonemdRule::Require) => Err(why),
        }
    }
}

fn judge(zone: &Zone, plan: &ZonemdPlan, trusted: &ZoneTrust) -> Result<(), String> {
    let mut tree = Tree::new(zone.apex());
    zone.for_each_record(|owner, rtype, ttl, rdata| {
        tree.push(owner, rtype, ttl.seconds(), rdata);
    });
    let ds = trusted.ds.iter().filter_map(|ds| Ds::parse(ds)).map(TrustPoint::Ds);
    let keys = trusted.keys.iter().filter_map(|key| Dnskey::parse(key)).map(TrustPoint::Key);
    let points: Vec<TrustPoint<'_>> = ds.chain(keys).collect();
    // Modulo 2^32, as signatures count (RFC 4034 §3.1.5).
    let now = plan.trust.time.at(present());
    let rules = Rules { accepted: plan.trust.algorithms, now, skew: plan.trust.skew };
    let verdict = check_signed_zonemd(&tree, &points, rules).map_err(|unproved| unproved.to_string())?;
    let why = match verdict {
        ZonemdVerdict::Right => return Ok(()),
        ZonemdVerdict::Absent | ZonemdVerdict::Unsupported if plan.rule != ZonemdRule::Require => {
            return Ok(());
        }
        ZonemdVerdict::Absent => "the zone has no ZONEMD".to_owned(),
        ZonemdVerdict::Unsupported => "no ZONEMD of the zone is of a kind that is known".to_owned(),
        ZonemdVerdict::OtherSerial => {
            format!("its ZONEMD is of another serial than {}", zone.facts().serial)
        }
        ZonemdVerdict::Wrong => "its ZONEMD is not that of its records".to_owned(),
    };
    Err(why)
}

/// Returns the present time.
fn present() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32)
}
