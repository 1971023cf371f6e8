//! Positive answers: RRsets with their signatures, expansions of wildcards, aliases.

use cache::Security;
use dnssec::Rrsig;
use dnssec::proof::Unproved;
use wire::{Name, Rtype};

use super::chains::ZoneTrust;
use super::judge::{Judge, Obstacle, Signer};
use crate::failure::Defect;
use crate::heap_name::HeapName;
use crate::scrub::{Answer, Set, Verdict};

/// Names between a zone and the target of an alias of which NSEC3 records are asked: each costs
/// hashes.
const CUTS_MAX: usize = 4;

impl Judge<'_> {
    /// Judges an answer. What the question itself comes to must be right; what the reply says of
    /// the targets of its aliases stays unchecked if it is not, or if more would have to be known.
    pub(crate) fn answer(&mut self, answer: &mut Answer, qtype: Rtype) -> Result<(), Obstacle> {
        let is_denial = matches!(answer.verdict, Verdict::NoData | Verdict::NoName);
        let own = match answer.verdict {
            // A CNAME that was asked for may be made from the DNAME before it.
            Verdict::Data => answer.sets.len(),
            Verdict::TooLong => 1,
            Verdict::NoData | Verdict::NoName => 0,
            Verdict::Alias(_) => 1 + answer.sets.iter().take_while(|set| set.rtype != Rtype::CNAME).count(),
        };
        for at in 0..answer.sets.len() {
            match self.set(&mut answer.sets, at, &mut answer.proofs) {
                Ok(()) => {}
                Err(obstacle) if at < own || obstacle == Obstacle::Paused => return Err(obstacle),
                Err(_) => break,
            }
        }
        if !is_denial {
            let is_secure = answer.sets.first().is_some_and(|set| set.security == Security::Secure);
            self.beside(answer, is_secure)?;
        }
        if let Some(settled) = answer.sets.first().and_then(|set| settled_for_all(set.security)) {
            settle(&mut answer.proofs, settled);
        }
        let Some(denial) = &mut answer.denial else { return self.way_to_target(answer) };
        match self.denial(denial, &mut answer.proofs, qtype) {
            Ok(()) if is_denial => {
                let is_secure = denial.security == Security::Secure;
                self.beside(answer, is_secure)
            }
            Ok(()) => Ok(()),
            Err(obstacle) if is_denial || obstacle == Obstacle::Paused => Err(obstacle),
            Err(_) => Ok(()),
        }
    }

    /// Looks whether a proof that came with an alias says that its target is in an unsigned zone:
    /// then nobody need be asked for that when the target's answer comes.
    fn way_to_target(&mut self, answer: &mut Answer) -> Result<(), Obstacle> {
        let Some(alias) = answer.sets.last().filter(|set| set.rtype == Rtype::CNAME) else { return Ok(()) };
        let target = alias.records.first().and_then(|data| Name::parse(data).ok()).map(|(name, _)| name);
        let Some(target) = target else { return Ok(()) };
        let is_on_way = |set: &&Set| match set.rtype {
            Rtype::NSEC => target.is_at_or_below(set.owner.as_name()),
            rtype => rtype == Rtype::NSEC3,
        };
        let Some(found) = answer.proofs.iter().find(is_on_way) else { return Ok(()) };
        let Some(zone) = self.signer_of(found).filter(|zone| target.is_at_or_below(zone.as_name())) else {
            return Ok(());
        };
        let (above, labels) = (zone.as_name().label_count(), target.label_count());
        let cuts: Vec<HeapName> = match found.rtype {
            Rtype::NSEC => vec![found.owner.clone()],
            // Which name is the cut cannot be seen.
            _ => (above + 1..=labels).take(CUTS_MAX).map(|it| HeapName::new(target.suffix(it))).collect(),
        };
        let Ok(ZoneTrust::Keys(keys)) = self.trust_in(&zone) else { return Ok(()) };
        for cut in &cuts {
            match self.proves_unsigned(cut, &zone, &keys, &mut answer.proofs) {
                Err(Obstacle::Paused) => return Err(Obstacle::Paused),
                Ok(false) => {}
                // The answer is as good without it.
                Ok(true) | Err(_) => break,
            }
        }
        Ok(())
    }

    /// Judges what stands beside an answer, as far as what is known already allows; what is not as
    /// good as the answer is left out.
    fn beside(&mut self, answer: &mut Answer, is_secure: bool) -> Result<(), Obstacle> {
        let Answer { beside, proofs, denial, .. } = answer;
        let is_denial = denial.is_some();
        for sets in [&mut beside.servers, &mut beside.addresses] {
            for at in 0..sets.len() {
                if let Err(Obstacle::Paused) = self.set(sets, at, proofs) {
                    return Err(Obstacle::Paused);
                }
            }
            sets.retain(|set| match set.security {
                Security::Secure => true,
                Security::Insecure | Security::Indeterminate => !is_secure,
                // What denies it is not proved either.
                Security::Unchecked => is_denial && !is_secure,
                Security::Bogus => false,
            });
        }
        Ok(())
    }

    /// Judges one set of an answer.
    fn set(&mut self, sets: &mut [Set], at: usize, proofs: &mut [Set]) -> Result<(), Obstacle> {
        let (before, from) = sets.split_at_mut_checked(at).unwrap_or_default();
        let Some(set) = from.first_mut() else { return Ok(()) };
        if set.security != Security::Unchecked {
            return Ok(());
        }
        // A CNAME that was made here from the DNAME before it is worth as much as that.
        if let Some(dname) = before.last().filter(|above| above.rtype == Rtype::DNAME)
            && set.rtype == Rtype::CNAME
        {
            (set.security, set.ttl) = (dname.security, dname.ttl);
            return Ok(());
        }
        let signer = self.signer_of(set);
        let is_of_keys = set.rtype == Rtype::DNSKEY && signer.as_ref().is_none_or(|zone| *zone == set.owner);
        if is_of_keys && (signer.is_some() || set.owner == *self.base(set.owner.as_name(), set.rtype)) {
            return self.keys(set, proofs);
        }
        // RFC 4035 §2.2: signatures have none themselves.
        let is_signature = set.rtype == Rtype::RRSIG;
        match self.signer(
            &set.owner,
            set.rtype,
            if is_signature { Some(self.base(set.owner.as_name(), set.rtype).clone()) } else { signer },
        )? {
            Signer::Settled(security) => set.security = security,
            Signer::Keys(..) if is_signature => set.security = Security::Insecure,
            Signer::Keys(zone, keys) => self.signed(set, proofs, &zone, &keys)?,
        }
        Ok(())
    }

    /// Checks a set that a zone must have signed; if it was made from a wildcard, that this was
    /// right.
    pub(super) fn signed(
        &mut self,
        set: &mut Set,
        proofs: &mut [Set],
        zone: &HeapName,
        keys: &dnssec::chain::SecureKeys,
    ) -> Result<(), Obstacle> {
        let labels = set.owner.as_name().label_count();
        let is_short = |rrsig: Rrsig<'_>| usize::from(rrsig.labels) < labels;
        let may_be_expanded = set.signatures.iter().filter_map(|data| Rrsig::parse(data)).any(is_short);
        // First what the last step needs, so that it is not done twice.
        let wrong = if may_be_expanded { self.check_proofs(proofs, zone, keys)? } else { None };
        self.verify(set, zone, keys)?;
        if set.is_expanded() {
            let (owner, labels) = (set.owner.clone(), set.labels_signed);
            let ask = self.ask_proofs(proofs, zone, |denials, hashes| {
                denials.expansion(owner.as_name(), labels, hashes)
            });
            match ask {
                Ok(proved) => set.security = self.security_of(proved),
                Err(unproved) => {
                    set.security = Security::Bogus;
                    let defect = match unproved {
                        Unproved::Missing => Defect::Unproved,
                        unproved => Defect::Denial(unproved),
                    };
                    return Err(self.unproved(wrong.unwrap_or(defect), zone));
                }
            }
        }
        Ok(())
    }
}

/// Returns what proofs are worth beside what is insecure or indeterminate: nobody needs them, and
/// clients get them as they came.
const fn settled_for_all(security: Security) -> Option<Security> {
    match security {
        Security::Insecure | Security::Indeterminate => Some(security),
        Security::Secure | Security::Bogus | Security::Unchecked => None,
    }
}

/// Notes in proofs that nobody checked what they are worth.
pub(super) fn settle(proofs: &mut [Set], security: Security) {
    let unchecked = proofs.iter_mut().filter(|proof| proof.security == Security::Unchecked);
    unchecked.for_each(|proof| proof.security = security);
}
