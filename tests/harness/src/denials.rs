//! What every proof of absence must keep to, whoever made its records.

use dnssec::proof::{Delegation, DenialRecord, Denials, HASHES_PER_SEARCH_MAX, HashBudget, Proved};
use wire::{Name, Rtype};

/// Hashes that one question may cost: those of a search, and one for the wildcard.
const HASHES_MAX: u32 = HASHES_PER_SEARCH_MAX as u32 + 1;

/// Reads a record: its kind, the labels of its signature, owner, length and data.
fn record(bytes: &[u8]) -> Option<(DenialRecord<'_>, &[u8])> {
    let (&[kind, labels], rest) = bytes.split_first_chunk::<2>()?;
    let (owner, rest) = Name::parse(rest).ok()?;
    let (&len, rest) = rest.split_first()?;
    let (rdata, rest) = rest.split_at_checked(usize::from(len))?;
    let rtype = if kind & 1 == 0 { Rtype::NSEC } else { Rtype::NSEC3 };
    // Mostly as many labels as the owner has.
    let labels = if kind & 2 == 0 { owner.label_count() as u8 } else { labels };
    Some((DenialRecord { owner, rtype, rdata, labels }, rest))
}

/// A zone, a question and records.
pub fn denials(bytes: &[u8]) {
    let Some((&[high, low, labels], rest)) = bytes.split_first_chunk::<3>() else { return };
    let Ok((zone, rest)) = Name::parse(rest) else { return };
    let Ok((qname, mut rest)) = Name::parse(rest) else { return };
    let mut records = Vec::new();
    while let Some((record, left)) = record(rest) {
        records.push(record);
        rest = left;
    }
    let denials = Denials::new(zone, records.iter().copied());
    let qtype = Rtype(u16::from_be_bytes([high, low]));
    let ask = |question: &dyn Fn(&mut HashBudget) -> bool| {
        // Few iterations, so that the time goes into other things.
        let mut budget = HashBudget::new(3, 100);
        let is_proved = question(&mut budget);
        assert!(100 - budget.left() <= HASHES_MAX, "{qname} cost more hashes than allowed");
        assert!(!is_proved || (!records.is_empty() && qname.is_at_or_below(zone)), "{qname}: of no zone");
        // With nothing to spend, nothing is proved that takes a hash.
        let mut nothing = HashBudget::new(3, 0);
        assert!(budget.left() == 100 || !question(&mut nothing));
    };
    ask(&|budget| denials.name_error(qname, budget).is_ok_and(Proved::is_secure));
    ask(&|budget| denials.no_data(qname, qtype, budget).is_ok_and(Proved::is_secure));
    ask(&|budget| denials.expansion(qname, labels, budget).is_ok_and(Proved::is_secure));
    ask(&|budget| {
        let found = denials.delegation(qname, budget);
        found.is_ok_and(|found| matches!(found, Delegation::Unsigned | Delegation::NoCut))
    });
}
