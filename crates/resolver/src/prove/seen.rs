//! RRsets that were found good a short time ago, so that they are not checked again.
//!
//! The SOA record of a zone comes with each of its denials, and the NSEC3 record of its apex with
//! each referral to an unsigned zone below: half of the work of both would be done for nothing.

use std::collections::{HashMap, VecDeque};

use dnssec::chain::SecureKeys;
use dnssec::{PublicKey as _, Rrsig, Skew};
use wire::Rtype;

use crate::heap_name::HeapName;
use crate::scrub::Set;

/// RRsets that are remembered, of some 300 octets each.
const SETS_MAX: usize = 1024;
/// Octets of data and signature of each at most: a zone may sign what takes a whole message.
const OCTETS_MAX: usize = 1024;

/// What one worker found good.
#[derive(Default)]
pub(super) struct Seen {
    sets: HashMap<(HeapName, Rtype), Set>,
    /// In the order in which they were first noted.
    order: VecDeque<(HeapName, Rtype)>,
}

impl Seen {
    /// Returns whether such RRsets come again.
    const fn comes_again(rtype: Rtype) -> bool {
        matches!(rtype, Rtype::SOA | Rtype::NSEC | Rtype::NSEC3)
    }

    /// Notes an RRset whose first signature was found good.
    pub(super) fn note(&mut self, set: &Set) {
        if !Self::comes_again(set.rtype) {
            return;
        }
        // The other signatures are anybody's, and as long as they like.
        let kept = Set { signatures: set.signatures.first().cloned().into_iter().collect(), ..set.clone() };
        let octets: usize = kept.records.iter().chain(&kept.signatures).map(|data| data.len()).sum();
        if octets > OCTETS_MAX {
            return;
        }
        let key = (set.owner.clone(), set.rtype);
        if self.sets.insert(key.clone(), kept).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > SETS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.sets.remove(&oldest);
        }
    }

    /// Returns the same RRset as it was found good, if it has the same data and a signature of then
    /// that is good now, and the zone still has the key.
    pub(super) fn same(&self, set: &Set, keys: &SecureKeys, now: Option<u32>) -> Option<&Set> {
        if !Self::comes_again(set.rtype) {
            return None;
        }
        let known = self.sets.get(&(set.owner.clone(), set.rtype))?;
        let signature = known.signatures.first().filter(|good| set.signatures.contains(good))?;
        let rrsig = Rrsig::parse(signature)?;
        let is_in_time = rrsig.is_good_at(now, Skew::NONE);
        let has_key =
            keys.keys().iter().any(|key| key.tag() == rrsig.tag && key.algorithm() == rrsig.algorithm);
        let is_same = known.records == set.records && rrsig.signer == keys.zone();
        (is_same && is_in_time && has_key).then_some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NameBuf;

    fn set(data: usize, signatures: &[usize]) -> Set {
        let owner = NameBuf::from_text("example.org").expect("a name");
        let mut set = Set::new(HeapName::new(owner.as_name()), Rtype::SOA, 300, vec![vec![1; data].into()]);
        set.signatures = signatures.iter().map(|&octets| vec![2; octets].into()).collect();
        set
    }

    #[test]
    fn what_is_remembered_is_small_whatever_came() {
        let (mut seen, key) = (Seen::default(), |set: &Set| (set.owner.clone(), set.rtype));
        seen.note(&set(60_000, &[100]));
        seen.note(&set(100, &[60_000]));
        assert!(seen.sets.is_empty());
        let good = set(100, &[100, 60_000]);
        seen.note(&good);
        assert_eq!(seen.sets[&key(&good)].signatures, good.signatures[..1]);
    }
}
