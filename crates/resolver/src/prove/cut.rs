//! Delegations: whether a parent has DS records of a zone, has none, or knows of no zone there.

use cache::Security;
use dnssec::proof::Delegation;
use wire::Rtype;

use super::chains::{Why, ZoneTrust};
use super::judge::{Judge, Obstacle, denials};
use crate::delegation::DsState;
use crate::heap_name::HeapName;
use crate::scrub::{Referral, Set};
use crate::settings::Trust;
use dnssec::proof::HashBudget;

/// Hashes that a denial of DS records may cost, whose proof was found good before.
const HASHES_MAX: u32 = 16;

/// What an answer to a question of type DS says of the zone of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// The data of its DS records, which are good.
    Signed(Vec<Box<[u8]>>),
    /// It may say what it likes.
    Unsigned,
    /// There is no zone of this name.
    NoCut,
}

/// Reads what an answer to a question of type DS says, by its state, its RRset if there is one, and
/// the proofs of a denial; `None` if it says nothing that counts.
pub(crate) fn below(
    name: &HeapName,
    security: Security,
    data: Option<&Set>,
    proofs: &[Set],
    settings: &Trust,
) -> Option<Below> {
    match security {
        Security::Secure => {}
        Security::Insecure | Security::Indeterminate => return Some(Below::Unsigned),
        Security::Unchecked | Security::Bogus => return None,
    }
    match data {
        Some(set) if set.rtype == Rtype::DS => return Some(Below::Signed(set.records.clone())),
        // An alias is no delegation.
        Some(_) => return Some(Below::NoCut),
        None => {}
    }
    let signer_labels =
        proofs.iter().filter(|set| set.security == Security::Secure).map(|set| set.signer_labels);
    let zone = name.as_name().suffix(usize::from(signer_labels.max()?));
    let mut hashes = HashBudget::new(settings.iterations_max, HASHES_MAX);
    match denials(proofs, zone).delegation(name.as_name(), &mut hashes).ok()? {
        Delegation::Unsigned | Delegation::OptOut | Delegation::TooManyIterations => Some(Below::Unsigned),
        Delegation::NoCut => Some(Below::NoCut),
    }
}

impl Judge<'_> {
    /// Returns what a referral proves of the zone that it refers to, and brings its TTL within what
    /// the proof allows.
    ///
    /// What proves nothing is not bogus: nobody signs the NS records of a referral, and the parent
    /// can be asked for the DS records.
    pub(crate) fn referral(&mut self, referral: &mut Referral) -> Result<DsState, Obstacle> {
        // Whoever is above an island of trust says nothing of zones in it.
        if self.base(referral.zone.as_name(), Rtype::DS) != self.asked {
            return Ok(DsState::Unknown);
        }
        let trust = self.trust_in(self.asked)?;
        let keys = match trust {
            ZoneTrust::Keys(keys) => keys,
            // Who is told so may be told otherwise.
            ZoneTrust::Insecure(Why::Unsigned | Why::Unknown(_) | Why::Iterations) => {
                return Ok(DsState::Unsigned);
            }
            _ => return Ok(DsState::Unknown),
        };
        let zone = self.asked.clone();
        if let Some(ds) = &mut referral.ds {
            if self.signer_of(ds).as_ref() != Some(&zone) {
                return Ok(DsState::Unknown);
            }
            return match self.verify(ds, &zone, &keys) {
                Ok(()) if ds.security == Security::Secure && !ds.is_expanded() => {
                    referral.ttl = referral.ttl.min(ds.ttl);
                    Ok(DsState::Signed(ds.records.clone()))
                }
                Ok(()) | Err(Obstacle::Bogus(..)) => Ok(DsState::Unknown),
                Err(obstacle) => Err(obstacle),
            };
        }
        self.check_proofs(&mut referral.proofs, &zone, &keys)?;
        let name = referral.zone.clone();
        let found = self.ask_proofs(&referral.proofs, &zone, |denials, hashes| {
            denials.delegation(name.as_name(), hashes)
        });
        match found {
            Ok(Delegation::Unsigned | Delegation::OptOut | Delegation::TooManyIterations) => {
                let good = referral.proofs.iter().filter(|set| set.security == Security::Secure);
                referral.ttl = good.map(|set| set.ttl).min().unwrap_or(0).min(referral.ttl);
                Ok(DsState::Unsigned)
            }
            Ok(Delegation::NoCut) | Err(_) => Ok(DsState::Unknown),
        }
    }
}
