//! Storing RRsets and negative answers: what replaces what.
//!
//! RFC 2181 §5.4.1 ranks data by where it was found. While data lives, it is replaced by what ranks
//! higher. What ranks as high changes nothing, and above all gives it no new life: else the servers
//! of a zone that its parent has given up or given away could keep themselves in the cache for ever
//! (ghost domains, NDSS 2012; phoenix domains, NDSS 2023). It may bring signatures or their check;
//! the end stays where it was.

use super::entry::{EntryHead, Facts, Kind, Life, RECORDS_MAX, SIGNATURES_MAX, words_for, write};
use super::key::RrsetKey;
use super::look::Octets;
use super::negative::{Reference, write_references};
use super::rank::Rank;
use super::{RrsetLimits, Rrsets};
use crate::store::{AtomicU64, Inserted, Newcomer};
use crate::{Now, Security};
use std::cell::Cell;
use wire::{Name, Rtype};

/// Whether data was asked for again on purpose before its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Renewal {
    /// It came along, or nothing else was known.
    #[default]
    No,
    /// It was: answers with AA then get a new life. NS records do not, nor does what ranks lower.
    Prefetched,
    /// It was, and whoever delegates the name has said again where its servers are: NS records get
    /// a new life, too.
    Delegated,
}

/// An RRset that came.
#[derive(Clone, Copy, Debug)]
pub struct NewRrset<'a> {
    /// The data of its records, names in it in full.
    pub records: &'a [&'a [u8]],
    /// The data of the RRSIG records that cover it.
    pub signatures: &'a [&'a [u8]],
    /// Seconds to keep it.
    pub ttl: u32,
    /// Where it was found.
    pub rank: Rank,
    /// What is known of its signatures.
    pub security: Security,
    /// Labels of the zone that signed it; 0 if nobody did.
    pub signer_labels: u8,
    /// Labels that the signatures count (RFC 4034 §3.1.3): fewer than the owner's if it came from a
    /// wildcard.
    pub labels_signed: u8,
    /// Whether it was asked for again on purpose.
    pub renewal: Renewal,
}

/// A negative answer that came; where its key has a type, there is no data of that type, and where
/// it has none ([`RrsetKey::without_type`]), there is no such name.
#[derive(Clone, Copy, Debug)]
pub struct NewNegative<'a> {
    /// The SOA, and the NSEC or NSEC3 records that prove it, which are in the table themselves.
    pub references: &'a [Reference<Name<'a>>],
    /// Seconds to keep it (RFC 2308 §5), no more than any of these have left.
    pub ttl: u32,
    /// Where it was found.
    pub rank: Rank,
    /// What is known of the proof.
    pub security: Security,
    /// Labels of the zone that signed the proof; 0 if nobody did.
    pub signer_labels: u8,
    /// Whether it was asked for again on purpose.
    pub renewal: Renewal,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is in the table, for so many seconds.
    Stored {
        /// At least one.
        ttl: u32,
    },
    /// What was there is worth more, or the same.
    Kept,
    /// It has no life at all, more records than a message, or is too large for the table.
    Refused,
}

/// What is weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claimed {
    facts: Facts,
    expires_at: u32,
    renewal: Renewal,
    is_ns: bool,
}

/// How a newcomer goes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Terms {
    expires_at: u32,
    times_bogus: u8,
}

/// Returns on what terms `new` replaces `old`; `None` if it does not.
fn weigh(
    old: &EntryHead,
    new: &Claimed,
    now: Now,
    limits: &RrsetLimits,
    is_same_data: impl FnOnce() -> bool,
) -> Option<Terms> {
    let (was, is) = (old.facts.security, new.facts.security);
    let times_bogus = times_bogus(old, now, limits);
    let own = terms(new, now, limits, times_bogus);
    if now.0 >= old.expires_at {
        return Some(own);
    }
    // Who can forge a reply must not be able to push out what is proved.
    if was == Security::Secure && is != Security::Secure {
        return None;
    }
    // What is bogus has a life that we made up: it ends with the first that is not.
    let is_cured = was == Security::Bogus && matches!(is, Security::Secure | Security::Insecure);
    if new.facts.rank > old.facts.rank || is_cured && new.facts.rank == old.facts.rank {
        return Some(own);
    }
    if new.facts.rank < old.facts.rank || is == Security::Bogus {
        return None;
    }
    let renews = match new.renewal {
        Renewal::No => false,
        Renewal::Prefetched => !new.is_ns,
        Renewal::Delegated => true,
    };
    if renews && new.facts.rank >= Rank::Answer {
        return Some(own);
    }
    let is_proved = was != Security::Secure && is == Security::Secure;
    let has_more = confidence(is) > confidence(was) || new.facts.signatures > 0 && old.facts.signatures == 0;
    (is_proved || has_more && is_same_data())
        .then(|| Terms { expires_at: own.expires_at.min(old.expires_at), ..own })
}

const fn confidence(security: Security) -> u8 {
    match security {
        Security::Bogus => 0,
        Security::Unchecked => 1,
        Security::Indeterminate => 2,
        Security::Insecure => 3,
        Security::Secure => 4,
    }
}

/// Returns how often in a row data was bogus before; a while after its end that is forgotten.
fn times_bogus(old: &EntryHead, now: Now, limits: &RrsetLimits) -> u8 {
    let is_recent = now.0 < old.expires_at.saturating_add(limits.bogus_seconds_max);
    match old.facts.security {
        Security::Bogus if is_recent => old.facts.times_bogus.saturating_add(1),
        _ => 0,
    }
}

fn terms(new: &Claimed, now: Now, limits: &RrsetLimits, times_bogus: u8) -> Terms {
    if new.facts.security != Security::Bogus {
        return Terms { expires_at: new.expires_at, times_bogus: 0 };
    }
    let first = u64::from(limits.bogus_seconds_first.max(1)) << times_bogus.min(31);
    let seconds = u32::try_from(first).unwrap_or(u32::MAX).min(limits.bogus_seconds_max);
    Terms { expires_at: new.expires_at.min(now.0.saturating_add(seconds)), times_bogus }
}

impl Rrsets {
    /// Stores an RRset if what is there may be replaced. Takes one shard's mutex; readers go on.
    pub fn put(&self, key: &RrsetKey<'_>, new: &NewRrset<'_>, now: Now) -> Put {
        if new.records.is_empty()
            || new.records.len() > RECORDS_MAX
            || new.signatures.len() > SIGNATURES_MAX
            || new.records.iter().chain(new.signatures).any(|data| data.len() > usize::from(u16::MAX))
        {
            return Put::Refused;
        }
        let facts = Facts {
            kind: Kind::Rrset,
            rank: new.rank,
            security: new.security,
            signer_labels: new.signer_labels,
            labels_signed: new.labels_signed,
            records: new.records.len() as u16,
            signatures: new.signatures.len() as u8,
            times_bogus: 0,
        };
        let mut data = Vec::new();
        for record in new.records.iter().chain(new.signatures) {
            data.extend_from_slice(&(record.len() as u16).to_be_bytes());
            data.extend_from_slice(record);
        }
        let claimed = Claimed {
            facts,
            expires_at: now.0.saturating_add(new.ttl),
            renewal: new.renewal,
            is_ns: key.rtype() == Rtype::NS,
        };
        if key.rtype() == Rtype::DNAME {
            self.dname_depths.note(key.name().label_count());
        }
        let own = self.fingerprint(new.records.iter().copied());
        self.put_entry(key, &claimed, &data, now, |head, words| {
            let mut old = Vec::new();
            head.facts.kind == Kind::Rrset
                && head.facts.records == facts.records
                && head.copy_to(words, &mut old).is_some()
                && Octets::new(old.get(head.name_octets()..).unwrap_or(&[]), facts.records)
                    .map(|data| self.fingerprint([data].into_iter()))
                    .fold(0, u64::wrapping_add)
                    == own
        })
    }

    /// Stores a negative answer if what is there may be replaced.
    pub fn put_negative(&self, key: &RrsetKey<'_>, new: &NewNegative<'_>, now: Now) -> Put {
        if new.references.len() > RECORDS_MAX {
            return Put::Refused;
        }
        let facts = Facts {
            kind: if key.rtype() == super::key::NO_NAME { Kind::NoName } else { Kind::NoData },
            rank: new.rank,
            security: new.security,
            signer_labels: new.signer_labels,
            labels_signed: 0,
            records: new.references.len() as u16,
            signatures: 0,
            times_bogus: 0,
        };
        let mut data = Vec::new();
        write_references(key.name(), new.references, &mut data);
        let claimed = Claimed {
            facts,
            expires_at: now.0.saturating_add(new.ttl),
            renewal: new.renewal,
            is_ns: key.rtype() == Rtype::NS,
        };
        self.put_entry(key, &claimed, &data, now, |head, words| {
            let mut old = Vec::new();
            head.facts.kind == facts.kind
                && head.copy_to(words, &mut old).is_some()
                && old.get(head.name_octets()..) == Some(&data)
        })
    }

    fn put_entry(
        &self,
        key: &RrsetKey<'_>,
        claimed: &Claimed,
        data: &[u8],
        now: Now,
        is_same_data: impl FnOnce(&EntryHead, &[AtomicU64]) -> bool,
    ) -> Put {
        let Some(words) = words_for(key, data.len()) else { return Put::Refused };
        let agreed = Cell::new(terms(claimed, now, &self.limits, 0));
        if agreed.get().expires_at <= now.0 {
            return Put::Refused;
        }
        let newcomer =
            Newcomer { hash: key.hash(), words, stored_at: now.0, is_proven: false, only_newer: false };
        let inserted = self.store.insert_if(
            newcomer,
            now.0,
            |words| EntryHead::of(words, key).is_some(),
            |words| {
                let Some(old) = EntryHead::of(words, key) else { return true };
                let terms = weigh(&old, claimed, now, &self.limits, || is_same_data(&old, words));
                if let Some(terms) = terms {
                    agreed.set(terms);
                }
                terms.is_some()
            },
            |words| {
                let Terms { expires_at, times_bogus } = agreed.get();
                let facts = Facts { times_bogus, ..claimed.facts };
                write(words, key, Life { stored_at: now.0, expires_at }, facts, data.len(), |pen| {
                    pen.put(data);
                });
            },
        );
        match inserted {
            Inserted::New | Inserted::Replaced => Put::Stored { ttl: agreed.get().expires_at - now.0 },
            Inserted::Older => Put::Kept,
            Inserted::TooLarge => Put::Refused,
        }
    }

    /// Returns a number for a set of records, in whatever order they are.
    pub(super) fn fingerprint<'r>(&self, records: impl Iterator<Item = &'r [u8]>) -> u64 {
        let of_one = |record: &[u8]| {
            let words = record.chunks(8).map(|chunk| {
                let mut word = [0; 8];
                for (to, octet) in word.iter_mut().zip(chunk) {
                    *to = *octet;
                }
                u64::from_le_bytes(word)
            });
            words.fold(self.hash_key.mix(0, record.len() as u64), |hash, word| {
                self.hash_key.mix(hash.rotate_left(23), word)
            })
        };
        records.map(of_one).fold(0, u64::wrapping_add)
    }
}
