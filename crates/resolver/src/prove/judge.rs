//! Checks single RRsets, and says what is missing for it.

use std::sync::Arc;

use cache::Security;
use dnssec::chain::{Rules, SecureKeys};
use dnssec::proof::{DenialRecord, Denials, HashBudget};
use dnssec::{Failure, Rrset, Rrsig, Unverified, Verified};
use wire::{Name, Rtype};

use super::chains::{Chains, Why, ZoneTrust};
use crate::budget::Limit;
use crate::failure::Defect;
use crate::heap_name::HeapName;
use crate::moment::Moment;
use crate::scrub::Set;
use crate::settings::Trust;

/// Why there is no judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// This has to be known first: DS or DNSKEY records of a zone.
    Needs(HeapName, Rtype),
    /// Enough was checked for one call.
    Paused,
    /// It is bogus: what is wrong with what this zone says.
    Bogus(Defect, HeapName),
    /// The question may not cost more.
    Spent(Limit),
}

/// What checking may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Of the question.
    pub(crate) checks: dnssec::Budget,
    /// Of the question.
    pub(crate) hashes: u32,
    /// Of this call.
    pub(crate) checks_now: u32,
}

/// Judges replies of one zone's servers.
pub(crate) struct Judge<'a> {
    pub(crate) chains: &'a mut Chains,
    pub(crate) settings: &'a Trust,
    pub(crate) now: Moment,
    pub(crate) work: Work,
    /// The zone whose servers were asked; of forwarders the root, since they answer for all zones.
    pub(crate) asked: &'a HeapName,
    pub(crate) is_forwarded: bool,
    /// Why something signed is insecure.
    pub(crate) why: Option<Why>,
}

/// What the zone of an RRset makes of it.
pub(super) enum Signer {
    /// These keys must have signed it.
    Keys(HeapName, Arc<SecureKeys>),
    /// No signatures count.
    Settled(Security),
}

impl<'a> Judge<'a> {
    /// Returns the zone whose trust is where a judgement of a name begins: the one that was asked,
    /// or the closest below it that is trusted by itself. What stands above such an island of trust
    /// may be insecure, and says nothing about it.
    pub(super) fn base(&self, owner: Name<'_>, rtype: Rtype) -> &'a HeapName {
        let asked = self.asked.as_name();
        let fits = |zone: Name<'_>| {
            let is_parents = rtype == Rtype::DS && zone == owner && !owner.is_root();
            owner.is_at_or_below(zone) && zone.is_at_or_below(asked) && zone != asked && !is_parents
        };
        let islands = self.settings.anchors.iter().filter(|anchor| fits(anchor.zone.as_name()));
        let closest = islands.max_by_key(|anchor| anchor.zone.as_name().label_count());
        closest.map_or(self.asked, |anchor| &anchor.zone)
    }
}

impl Judge<'_> {
    /// Returns what a zone's DNSKEY and DS records come to, all of them asked for.
    pub(super) fn trust_in(&self, zone: &HeapName) -> Result<ZoneTrust, Obstacle> {
        match self.ds_of(zone)? {
            ZoneTrust::Signed(_) => Err(Obstacle::Needs(zone.clone(), Rtype::DNSKEY)),
            trust => Ok(trust),
        }
    }

    /// Returns what is known of a zone without its DNSKEY records.
    pub(super) fn ds_of(&self, zone: &HeapName) -> Result<ZoneTrust, Obstacle> {
        let known = self.chains.trust(zone.as_name(), self.settings, self.now);
        known.ok_or_else(|| Obstacle::Needs(zone.clone(), Rtype::DS))
    }

    /// Returns who signs for a name if `signer` does; without a signer, finds out why nobody does.
    pub(super) fn signer(
        &mut self,
        owner: &HeapName,
        rtype: Rtype,
        signer: Option<HeapName>,
    ) -> Result<Signer, Obstacle> {
        let base = self.base(owner.as_name(), rtype);
        let trust = self.trust_at(base, place(owner, rtype))?;
        if let Some(security) = self.settled(&trust) {
            return Ok(Signer::Settled(security));
        }
        let signer = signer.filter(|signer| signer.as_name().is_at_or_below(base.as_name()));
        let Some(signer) = signer else { return self.unsigned(owner, rtype, base).map(Signer::Settled) };
        let trust = self.trust_in(&signer)?;
        if let Some(security) = self.settled(&trust) {
            return Ok(Signer::Settled(security));
        }
        match trust {
            ZoneTrust::Keys(keys) => Ok(Signer::Keys(signer, keys)),
            _ => Err(Obstacle::Bogus(Defect::NoZone, signer)),
        }
    }

    /// Returns what a judgement of a name begins with: what the keys of its base come to.
    /// Forwarders answer for all zones, so keys are asked for when they are needed.
    fn trust_at(&self, base: &HeapName, place: Name<'_>) -> Result<ZoneTrust, Obstacle> {
        if !self.is_forwarded {
            return self.trust_in(base);
        }
        match self.chains.trust(place, self.settings, self.now) {
            Some(trust @ (ZoneTrust::Insecure(_) | ZoneTrust::Indeterminate)) => Ok(trust),
            _ => self.ds_of(base),
        }
    }

    /// Returns the security state of all that such a zone says, if signatures do not count there.
    pub(super) fn settled(&mut self, trust: &ZoneTrust) -> Option<Security> {
        match trust {
            ZoneTrust::Insecure(why) => {
                self.why = Some(*why);
                Some(Security::Insecure)
            }
            ZoneTrust::Indeterminate => Some(Security::Indeterminate),
            ZoneTrust::Keys(_) | ZoneTrust::Signed(_) | ZoneTrust::NoCut => None,
        }
    }

    /// Looks for a delegation without DS between a zone and a name in it that nobody signed for.
    /// The DS records of a name are its parent's.
    fn unsigned(&mut self, owner: &HeapName, rtype: Rtype, base: &HeapName) -> Result<Security, Obstacle> {
        let name = place(owner, rtype);
        let mut zone = base.clone();
        for labels in base.as_name().label_count() + 1..=name.label_count() {
            let below = HeapName::new(name.suffix(labels));
            let trust = self.ds_of(&below)?;
            if let Some(security) = self.settled(&trust) {
                return Ok(security);
            }
            if matches!(trust, ZoneTrust::Keys(_) | ZoneTrust::Signed(_)) {
                zone = below;
            }
        }
        let unsigned = Failure { why: Unverified::Unsigned, key: None };
        Err(Obstacle::Bogus(Defect::Signature(unsigned), zone))
    }

    /// Returns the zone that a set's signatures name: the one that the chain begins at, or one
    /// below it.
    pub(super) fn signer_of(&self, set: &Set) -> Option<HeapName> {
        let (owner, base) = (set.owner.as_name(), self.base(set.owner.as_name(), set.rtype));
        // The DS records of a zone are not its own.
        let is_own = |signer: Name<'_>| set.rtype == Rtype::DS && signer == owner;
        let fits = |signer: &Name<'_>| {
            signer.is_at_or_below(base.as_name()) && owner.is_at_or_below(*signer) && !is_own(*signer)
        };
        set.signers().filter(fits).min_by_key(|signer| signer.label_count()).map(HeapName::new)
    }

    /// Returns an error if no more is to be checked in this call.
    pub(super) const fn pause(&self) -> Result<(), Obstacle> {
        if self.work.checks_now == 0 { Err(Obstacle::Paused) } else { Ok(()) }
    }

    /// Pays for what was checked since `before`.
    pub(super) const fn pay(&mut self, before: &dnssec::Budget) {
        let checked = before.left().saturating_sub(self.work.checks.left());
        self.work.checks_now = self.work.checks_now.saturating_sub(checked);
    }

    /// Returns what counts, and when.
    pub(super) fn rules(&self) -> Rules {
        let present = self.chains.unix_seconds(self.now) as u32;
        let now = self.settings.time.at(present);
        Rules { accepted: self.settings.algorithms, now, skew: self.settings.skew }
    }

    /// Returns that a signature is wrong, or which limit kept it from being checked.
    pub(super) fn refuse(&self, failure: Failure, zone: HeapName) -> Obstacle {
        let is_spent = self.work.checks.left() == 0 || self.work.checks.failures_left() == 0;
        match failure.why {
            Unverified::TooMuchWork if is_spent => Obstacle::Spent(Limit::Checks),
            _ => Obstacle::Bogus(Defect::Signature(failure), zone),
        }
    }

    /// Checks a set with the keys of the zone that signed it, and notes what came of it.
    pub(super) fn verify(
        &mut self,
        set: &mut Set,
        zone: &HeapName,
        keys: &SecureKeys,
    ) -> Result<(), Obstacle> {
        if set.security != Security::Unchecked {
            return Ok(());
        }
        let (rules, before) = (self.rules(), self.work.checks);
        if let Some(same) = self.chains.seen.same(set, keys, rules.now) {
            Proof::of_same(same, rules.now).note_in(set);
            return Ok(());
        }
        self.pause()?;
        let Ok(rrset) = Rrset::of(set.owner.as_name(), set.rtype, set.data()) else {
            set.security = Security::Bogus;
            return Err(Obstacle::Bogus(Defect::Signature(MALFORMED), zone.clone()));
        };
        let signatures = set.signatures.iter().map(|data| &**data);
        let outcome = keys.verify(&rrset, signatures, rules, &mut self.work.checks);
        self.pay(&before);
        match outcome {
            Ok(verified) => {
                let proof = Proof::of(&verified, zone, rules.now);
                proof.note_in(set);
                self.chains.seen.note(set);
                Ok(())
            }
            Err(failure) => {
                set.security = Security::Bogus;
                Err(self.refuse(failure, zone.clone()))
            }
        }
    }

    /// Returns what the proofs of a zone say, as far as they are its own, and what is wrong with
    /// those that are not.
    pub(super) fn check_proofs(
        &mut self,
        proofs: &mut [Set],
        zone: &HeapName,
        keys: &SecureKeys,
    ) -> Result<Option<Defect>, Obstacle> {
        let mut wrong = None;
        for proof in proofs.iter_mut() {
            if self.signer_of(proof).as_ref() != Some(zone) {
                continue;
            }
            match self.verify(proof, zone, keys) {
                Ok(()) => {}
                Err(Obstacle::Bogus(defect, _)) => wrong = Some(defect),
                Err(obstacle) => return Err(obstacle),
            }
        }
        Ok(wrong)
    }

    /// Asks the proofs that were found good.
    pub(super) fn ask_proofs<T>(
        &mut self,
        proofs: &[Set],
        zone: &HeapName,
        ask: impl FnOnce(&Denials<'_>, &mut HashBudget) -> T,
    ) -> T {
        let mut hashes = HashBudget::new(self.settings.iterations_max, self.work.hashes);
        let answer = ask(&denials(proofs, zone.as_name()), &mut hashes);
        self.work.hashes = hashes.left();
        answer
    }
}

/// Returns the name whose closest zone has such data: the parent has the DS records of a zone.
fn place(owner: &HeapName, rtype: Rtype) -> Name<'_> {
    let name = owner.as_name();
    if rtype == Rtype::DS { name.parent().unwrap_or(name) } else { name }
}

/// What cannot be read has no good signature.
const MALFORMED: Failure = Failure { why: Unverified::Bogus(dnssec::Bogus::Malformed), key: None };

/// Returns what the good ones of these RRsets say of a zone.
pub(crate) fn denials<'s>(proofs: &'s [Set], zone: Name<'s>) -> Denials<'s> {
    let labels = zone.label_count();
    let good = proofs.iter().filter(move |set| {
        set.security == Security::Secure
            && usize::from(set.signer_labels) == labels
            && set.owner.as_name().is_at_or_below(zone)
            // That of the root is 0 as well as that of nobody: only who is good has a signature.
            && !set.signatures.is_empty()
    });
    let records = good.flat_map(|set| {
        set.data().map(|rdata| DenialRecord {
            owner: set.owner.as_name(),
            rtype: set.rtype,
            rdata,
            labels: set.labels_signed,
        })
    });
    Denials::new(zone, records)
}

/// What a good signature says.
pub(super) struct Proof {
    labels_signed: u8,
    signer_labels: u8,
    tag: u16,
    expiration: u32,
    original_ttl: u32,
    ttl_max: u32,
}

impl Proof {
    fn of(verified: &Verified<'_>, zone: &HeapName, now: Option<u32>) -> Self {
        Self {
            labels_signed: verified.labels(),
            signer_labels: zone.as_name().label_count() as u8,
            tag: verified.tag(),
            expiration: verified.expiration(),
            original_ttl: verified.original_ttl(),
            ttl_max: now.map_or(verified.original_ttl(), |now| verified.ttl_max(now)),
        }
    }

    /// Returns what the first signature of a set says that was found good before.
    fn of_same(set: &Set, now: Option<u32>) -> Self {
        let rrsig = set.signatures.first().and_then(|data| Rrsig::parse(data));
        let (tag, expiration, original_ttl, left) = rrsig.map_or((0, 0, 0, 0), |rrsig| {
            let left = now.map_or(u32::MAX, |now| rrsig.remaining(now));
            (rrsig.tag, rrsig.expiration, rrsig.original_ttl, left)
        });
        Self {
            labels_signed: set.labels_signed,
            signer_labels: set.signer_labels,
            tag,
            expiration,
            original_ttl,
            ttl_max: left.min(original_ttl),
        }
    }

    /// Returns what the signature of a zone's keys says.
    pub(super) fn of_keys(keys: &SecureKeys, now: Option<u32>) -> Self {
        let labels = keys.zone().label_count() as u8;
        Self {
            labels_signed: labels,
            signer_labels: labels,
            tag: keys.tag(),
            expiration: keys.expiration(),
            original_ttl: keys.original_ttl(),
            ttl_max: now.map_or(keys.original_ttl(), |now| keys.ttl_max(now)),
        }
    }

    /// Notes it in the set, whose first signature is the good one from then on.
    pub(super) fn note_in(&self, set: &mut Set) {
        let is_it = |data: &[u8]| {
            Rrsig::parse(data).is_some_and(|rrsig| {
                (rrsig.tag, rrsig.expiration, rrsig.original_ttl, rrsig.labels)
                    == (self.tag, self.expiration, self.original_ttl, self.labels_signed)
            })
        };
        if let Some(at) = set.signatures.iter().position(|data| is_it(data)) {
            set.signatures.swap(0, at);
        }
        set.security = Security::Secure;
        set.ttl = set.ttl.min(self.ttl_max);
        (set.signer_labels, set.labels_signed) = (self.signer_labels, self.labels_signed);
    }
}
