//! Denials: that there is no name, no data, or no DS.

use cache::{Now, Security};
use dnssec::chain::SecureKeys;
use dnssec::proof::{Delegation, Proved, Unproved};
use dnssec::{Failure, Unverified};
use wire::{Name, Rtype};

use super::answer::settle;
use super::chains::{Why, ZoneTrust};
use super::judge::{Judge, Obstacle, Signer};
use crate::budget::Limit;
use crate::failure::Defect;
use crate::heap_name::HeapName;
use crate::scrub::{Denial, Set};

impl Judge<'_> {
    /// Judges a denial by the proofs that came with it.
    pub(super) fn denial(
        &mut self,
        denial: &mut Denial,
        proofs: &mut [Set],
        qtype: Rtype,
    ) -> Result<(), Obstacle> {
        if denial.security != Security::Unchecked {
            return Ok(());
        }
        let base = self.base(denial.name.as_name(), qtype);
        if base != self.asked && self.is_denied_above(denial, proofs, (base, qtype))? {
            return Ok(());
        }
        let zone = self.denier(denial, proofs, qtype);
        let denier = if self.is_forwarded { &denial.name } else { base };
        // Without its keys nothing is proved, not even that it has none.
        if qtype == Rtype::DNSKEY
            && zone.as_ref().unwrap_or(denier) == &denial.name
            && matches!(self.ds_of(&denial.name)?, ZoneTrust::Signed(_))
        {
            return Err(Obstacle::Bogus(Defect::NoKeys, denial.name.clone()));
        }
        let signer = match self.signer(&denial.name, qtype, zone) {
            Err(Obstacle::Bogus(Defect::Signature(Failure { why: Unverified::Unsigned, .. }), zone))
                if qtype != Rtype::DS =>
            {
                return Err(Obstacle::Bogus(Defect::Unproved, zone));
            }
            signer => signer?,
        };
        let (zone, keys) = match signer {
            Signer::Keys(zone, keys) => (zone, keys),
            Signer::Settled(security) => {
                denial.security = security;
                if let Some(soa) = &mut denial.soa {
                    soa.security = security;
                }
                settle(proofs, security);
                return Ok(());
            }
        };
        if let Some(soa) = &mut denial.soa {
            if soa.owner != zone {
                // A zone below says so: the proof may be that it is not signed.
                let is_below = soa.owner.as_name().is_at_or_below(zone.as_name());
                if !is_below || !self.proves_unsigned(&soa.owner, &zone, &keys, proofs)? {
                    return Err(Obstacle::Bogus(Defect::Denial(Unproved::Missing), zone));
                }
                (denial.security, soa.security) = (Security::Insecure, Security::Insecure);
                return Ok(());
            }
            self.verify(soa, &zone, &keys)?;
        }
        let wrong = self.check_proofs(proofs, &zone, &keys)?;
        let (name, is_of_name) = (denial.name.clone(), denial.is_of_name);
        let proved = self.ask_proofs(proofs, &zone, |denials, hashes| match is_of_name {
            true => denials.name_error(name.as_name(), hashes),
            false => denials.no_data(name.as_name(), qtype, hashes),
        });
        match proved {
            Ok(proved) => {
                denial.security = self.security_of(proved);
                Ok(())
            }
            Err(unproved) => {
                let has_proofs = proofs.iter().any(|set| set.security == Security::Secure);
                let defect = match unproved {
                    Unproved::Missing if has_proofs => Defect::Unproved,
                    unproved => Defect::Denial(unproved),
                };
                Err(self.unproved(wrong.unwrap_or(defect), &zone))
            }
        }
    }

    /// Returns whether a zone above an island of trust, whose keys a trust anchor of its own leads
    /// to, proves that a name in the island does not exist.
    ///
    /// Of several trust anchors above a name one is enough for a secure answer (RFC 6840 §5.10 and
    /// appendix C.2, "Accept Any Success"). What else the zone above comes to counts for nothing
    /// here: that it is insecure, opts out or proves nothing takes no trust from the island. A zone
    /// that delegates to the island has no such proof (RFC 6840 §4.1). The links of the island's
    /// own chain are what the island says.
    fn is_denied_above(
        &mut self,
        denial: &mut Denial,
        proofs: &mut [Set],
        (island, qtype): (&HeapName, Rtype),
    ) -> Result<bool, Obstacle> {
        let is_link = matches!(qtype, Rtype::DS | Rtype::DNSKEY);
        if !denial.is_of_name
            || is_link
            || !matches!(self.ds_of(island)?, ZoneTrust::Signed(_) | ZoneTrust::Keys(_))
        {
            return Ok(false);
        }
        let (asked, island) = (self.asked.as_name(), island.as_name());
        let is_above =
            |zone: &Name<'_>| island.is_at_or_below(*zone) && *zone != island && zone.is_at_or_below(asked);
        let Some(zone) = proofs.first().and_then(|set| set.signers().find(is_above)).map(HeapName::new)
        else {
            return Ok(false);
        };
        let is_own = |set: &Set| set.signers().any(|signer| signer == zone.as_name());
        let soa_is_own = denial.soa.as_ref().is_none_or(|soa| soa.owner == zone && is_own(soa));
        if !soa_is_own || !proofs.iter().all(is_own) {
            return Ok(false);
        }
        let ZoneTrust::Keys(keys) = self.trust_in(&zone)? else { return Ok(false) };
        for set in proofs.iter_mut().chain(&mut denial.soa) {
            match self.verify(set, &zone, &keys) {
                Ok(()) => {}
                Err(Obstacle::Bogus(..)) => return Ok(false),
                Err(obstacle) => return Err(obstacle),
            }
            // A set that was found bogus before is not checked again.
            if set.security != Security::Secure {
                return Ok(false);
            }
        }
        let name = denial.name.clone();
        let proved =
            self.ask_proofs(proofs, &zone, |denials, hashes| denials.name_error(name.as_name(), hashes));
        if proved != Ok(Proved::Fully) {
            return Ok(false);
        }
        denial.security = Security::Secure;
        Ok(true)
    }

    /// Returns whether proofs that came with a reply say that a zone delegates to another one that
    /// is not signed, and notes it if they do: its parent need not be asked.
    pub(super) fn proves_unsigned(
        &mut self,
        below: &HeapName,
        zone: &HeapName,
        keys: &SecureKeys,
        proofs: &mut [Set],
    ) -> Result<bool, Obstacle> {
        // What is above an island of trust says nothing about it.
        let anchor = self.settings.anchor_of(below.as_name()).map(|anchor| &anchor.zone);
        if anchor.is_some_and(|island| island != zone && island.as_name().is_at_or_below(zone.as_name())) {
            return Ok(false);
        }
        self.check_proofs(proofs, zone, keys)?;
        let found =
            self.ask_proofs(proofs, zone, |denials, hashes| denials.delegation(below.as_name(), hashes));
        if !matches!(found, Ok(Delegation::Unsigned | Delegation::OptOut | Delegation::TooManyIterations)) {
            return Ok(false);
        }
        let good = proofs.iter().filter(|set| set.security == Security::Secure);
        let ttl = good.map(|set| set.ttl).min().unwrap_or(0);
        let ends_at = Now(self.now.seconds().0.saturating_add(ttl));
        self.chains.learn(below, ZoneTrust::Insecure(Why::Unsigned), ends_at, self.now);
        Ok(true)
    }

    /// Returns the zone that denies: the closest to the name of those that signed proofs or the
    /// SOA. A zone does not know of its own DS records.
    fn denier(&self, denial: &Denial, proofs: &[Set], qtype: Rtype) -> Option<HeapName> {
        let name = denial.name.as_name();
        let sets = proofs.iter().chain(&denial.soa);
        let fits = |zone: &HeapName| {
            let is_own = qtype == Rtype::DS && zone.as_name() == name && !name.is_root();
            name.is_at_or_below(zone.as_name()) && !is_own
        };
        sets.filter_map(|set| self.signer_of(set))
            .filter(fits)
            .max_by_key(|zone| zone.as_name().label_count())
    }

    /// Returns what an answer is worth that was proved so well.
    pub(super) fn security_of(&mut self, proved: Proved) -> Security {
        match proved {
            Proved::Fully => Security::Secure,
            Proved::OptOut => Security::Insecure,
            Proved::TooManyIterations => {
                self.why = Some(Why::Iterations);
                Security::Insecure
            }
        }
    }

    /// Returns that absence is not proved, or which limit kept it from being so.
    pub(super) fn unproved(&self, defect: Defect, zone: &HeapName) -> Obstacle {
        match defect {
            Defect::Denial(Unproved::TooMuchWork) if self.work.hashes == 0 => Obstacle::Spent(Limit::Hashes),
            defect => Obstacle::Bogus(defect, zone.clone()),
        }
    }
}
