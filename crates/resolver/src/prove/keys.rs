//! DNSKEY RRsets: what a zone's parent stands for.

use std::sync::Arc;

use cache::Security;
use dnssec::Rrset;
use dnssec::chain::{ZoneKeys, known_zone_keys, zone_keys};
use wire::Rtype;

use super::chains::{Points, Why, ZoneTrust};
use super::judge::{Judge, Obstacle, Proof, Signer};
use crate::failure::Defect;
use crate::scrub::Set;

impl Judge<'_> {
    /// Judges the DNSKEY RRset of a zone, and notes the keys if it is good.
    pub(crate) fn keys(&mut self, set: &mut Set, proofs: &mut [Set]) -> Result<(), Obstacle> {
        let zone = set.owner.clone();
        let trust = self.ds_of(&zone)?;
        if let Some(security) = self.settled(&trust) {
            set.security = security;
            return Ok(());
        }
        match trust {
            ZoneTrust::Signed(points) => self.first_keys(set, &points),
            // They are known, and this is another copy of them.
            ZoneTrust::Keys(keys) => self.signed(set, proofs, &zone, &keys),
            // It is a name of the zone above.
            _ => match self.signer(&zone, Rtype::DNSKEY, None)? {
                Signer::Settled(security) => {
                    set.security = security;
                    Ok(())
                }
                Signer::Keys(zone, _) => Err(Obstacle::Bogus(Defect::NoZone, zone)),
            },
        }
    }

    /// Notes the keys of a zone from a set that was found good before, if what stands for them does
    /// so still; returns whether it does. Nothing is checked again.
    pub(crate) fn known_keys(&mut self, set: &Set) -> bool {
        let Ok(ZoneTrust::Signed(points)) = self.ds_of(&set.owner) else { return false };
        let Some(signature) = set.signatures.first() else { return false };
        let zone = set.owner.as_name();
        let Ok(rrset) = Rrset::of(zone, Rtype::DNSKEY, set.data()) else { return false };
        let known = known_zone_keys(zone, &points.trusted(), &rrset, signature, self.rules());
        let Some(keys) = known else { return false };
        self.chains.learn_keys(&set.owner, ZoneTrust::Keys(Arc::new(keys)), set.ttl, self.now);
        true
    }

    fn first_keys(&mut self, set: &mut Set, points: &Points) -> Result<(), Obstacle> {
        self.pause()?;
        let zone = set.owner.clone();
        let Ok(rrset) = Rrset::of(zone.as_name(), Rtype::DNSKEY, set.data()) else {
            return Err(Obstacle::Bogus(Defect::NoKeys, zone));
        };
        let (rules, before) = (self.rules(), self.work.checks);
        let signatures = set.signatures.iter().map(|data| &**data);
        let trusted = points.trusted();
        let found = zone_keys(zone.as_name(), &trusted, &rrset, signatures, rules, &mut self.work.checks);
        self.pay(&before);
        match found {
            ZoneKeys::Secure(keys) => {
                Proof::of_keys(&keys, rules.now).note_in(set);
                self.chains.learn_keys(&zone, ZoneTrust::Keys(Arc::new(keys)), set.ttl, self.now);
            }
            ZoneKeys::Insecure(insecure) => {
                let why = Why::Unknown(insecure);
                (set.security, self.why) = (Security::Insecure, Some(why));
                self.chains.learn_keys(&zone, ZoneTrust::Insecure(why), set.ttl, self.now);
            }
            ZoneKeys::Bogus(failure) => return Err(self.refuse(failure, zone)),
        }
        Ok(())
    }
}
