//! Referrals for clients that do not want recursion.

use std::sync::Arc;

use cache::Security;
use wire::{Name, Rcode, Rtype};

use super::Resolver;
use crate::effect::{Effect, Waiter};
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;
use crate::prove::ZoneTrust;
use crate::resolution::{Resolution, Rows, lower};
use crate::tables::Known;

impl Resolver {
    /// Has a client told whom to ask: the name servers of the closest zone that is known (RFC 1034
    /// §4.3.2). If the zone is signed, they are those that the zone itself names, with signatures;
    /// its servers are asked for them if that is not known.
    pub(super) fn want_referral(&mut self, question: &HeapQuestion, waiter: Waiter, now: Moment) {
        let place = question.place();
        let known = self.memory.referral(place, now.seconds());
        let zone = known.as_ref().map_or(Name::ROOT, |(zone, _)| zone.as_name());
        let trust = self.chains.trust(zone, &self.settings.trust, now);
        let is_unsigned = !self.validates()
            || question.unchecked
            || matches!(trust, Some(ZoneTrust::Insecure(_) | ZoneTrust::Indeterminate));
        match known {
            Some((_, beside)) if is_unsigned => {
                let mut rows = Rows::default();
                rows.beside(&beside);
                let resolution = Arc::new(Resolution::new(Rcode::NOERROR, rows, Security::Indeterminate));
                self.watches.remove(&waiter);
                self.effects.push_back(Effect::Done { waiter, resolution });
            }
            known => {
                let zone = known.map_or_else(|| HeapName::new(Name::ROOT), |(zone, _)| zone);
                let question = HeapQuestion { name: zone, rtype: Rtype::NS, subnet: None, ..*question };
                self.referrals.insert(waiter);
                self.want_for_client(question, waiter, now);
            }
        }
    }

    /// Returns the referral to the name servers that were found of a zone.
    pub(super) fn referral_to(&mut self, zone: &HeapName, found: &Arc<Resolution>) -> Arc<Resolution> {
        if found.failure.is_some() {
            return Arc::clone(found);
        }
        let mut rows = found.rows().clone().into_referral();
        // RFC 4035 §3.1.4: the DS records, or that there are none.
        let ds = HeapQuestion { name: zone.clone(), rtype: Rtype::DS, unchecked: false, subnet: None };
        // AD speaks for all of it (RFC 4035 §3.2.3).
        let mut security = found.security;
        match self.memory.look_at(&ds, self.ran_at.seconds()) {
            Some(Known::Data(set)) => {
                rows.authority(&set);
                security = lower(security, set.security);
            }
            Some(Known::NoData(denied)) => {
                denied.proofs.iter().for_each(|set| rows.authority(set));
                security = lower(security, denied.security);
            }
            Some(Known::Alias(_) | Known::NoName(_)) | None => {}
        }
        Arc::new(Resolution::new(Rcode::NOERROR, rows, security))
    }
}
