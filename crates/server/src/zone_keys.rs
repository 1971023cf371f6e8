//! Which keys zones have whose digests are checked: trust anchors, and what resolvers find.

use std::sync::Arc;

use ::zones::Trust;
use cache::Security;
use driver::Probing;
use plan::zones::{Standing, ZoneTrust, ZonemdPlan};
use wire::{Name, Rtype, Section};

use crate::anchors::Prober;

/// Finds out which keys zones have.
pub(crate) struct ZoneKeys(pub(crate) Arc<Prober>);

impl Trust for ZoneKeys {
    fn of(&self, apex: Name<'_>, plan: &ZonemdPlan) -> Result<ZoneTrust, String> {
        let (anchors, negative) = (&plan.trust.anchors, &plan.trust.negative);
        let Some(name) = &plan.resolver else {
            // Nobody can be asked: signatures count where the zone itself is a trust anchor.
            return Ok(match Standing::of(apex, anchors, negative) {
                Standing::Anchor(trusted) => trusted,
                Standing::Below | Standing::Untrusted => ZoneTrust::default(),
            });
        };
        let resolver = self.0.tables.plan_of(name);
        // Anchors may have followed the keys of their zones since (RFC 5011).
        let followed = resolver.as_ref().and_then(|plan| self.0.tables.trusted(plan.id));
        let standing = match &followed {
            Some(trusted) => Standing::of(apex, &trusted.anchors, &trusted.negative),
            None => Standing::of(apex, anchors, negative),
        };
        match standing {
            Standing::Anchor(trusted) => Ok(trusted),
            Standing::Untrusted => Ok(ZoneTrust::default()),
            Standing::Below => {
                let resolver = resolver.ok_or_else(|| format!("resolver \"{name}\" does not run yet"))?;
                let found = self.0.ask(&resolver, (apex.to_buf(), Rtype::DS), Probing::Checked)?;
                match found.security {
                    Security::Secure => {
                        let is_own = |record: &wire::Record<'_>| {
                            record.section == Section::Answer
                                && record.rtype == Rtype::DS
                                && record.owner.expand().is_ok_and(|owner| owner.as_name() == apex)
                        };
                        let ds = found.records().filter(is_own).map(|record| record.rdata.into());
                        Ok(ZoneTrust { ds: ds.collect(), keys: Vec::new() })
                    }
                    Security::Insecure | Security::Indeterminate => Ok(ZoneTrust::default()),
                    Security::Unchecked | Security::Bogus => {
                        Err("what its parent says of them is bogus".to_owned())
                    }
                }
            }
        }
    }
}
