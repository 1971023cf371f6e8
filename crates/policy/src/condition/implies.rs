//! Whether one condition holds whenever another does, as far as that can be seen from how they are
//! written.
//!
//! Says yes only when it is sure. Only what stays the same while a query runs through its rules is
//! compared: not marks, the answer, rates and chance.

use diagnostic::At;
use lists::NamePattern;
use sets::Reach;

use super::{AddressTerm, Condition, NameTerm, Test};

/// Returns whether `wide` surely holds for every query for which `narrow` does.
pub fn implies(narrow: &Condition, wide: &Condition) -> bool {
    match (narrow, wide) {
        (Condition::Constant(false), _) | (_, Condition::Constant(true)) => true,
        (Condition::Any(parts), _) if !parts.is_empty() => parts.iter().all(|part| implies(part, wide)),
        (_, Condition::All(parts)) if !parts.is_empty() => parts.iter().all(|part| implies(narrow, part)),
        (Condition::All(parts), Condition::Any(wides)) => {
            parts.iter().any(|part| implies(part, wide)) || wides.iter().any(|wide| implies(narrow, wide))
        }
        (Condition::All(parts), _) => parts.iter().any(|part| implies(part, wide)),
        (_, Condition::Any(wides)) => wides.iter().any(|wide| implies(narrow, wide)),
        (Condition::Not(narrow), Condition::Not(wide)) => implies(wide, narrow),
        (Condition::Test(narrow), Condition::Test(wide)) => is_within(narrow, wide),
        _ => false,
    }
}

fn is_within(narrow: &Test, wide: &Test) -> bool {
    match (narrow, wide) {
        (Test::Qname(narrow), Test::Qname(wide)) => every(narrow, wide, covers),
        (Test::Qtype(narrow), Test::Qtype(wide)) => every(narrow, wide, |wide, narrow| wide == narrow),
        (Test::Client(narrow), Test::Client(wide)) | (Test::PtrAddress(narrow), Test::PtrAddress(wide)) => {
            every(narrow, wide, holds)
        }
        (Test::Listener(narrow), Test::Listener(wide)) => every(narrow, wide, |wide, narrow| wide == narrow),
        (Test::Transport(narrow), Test::Transport(wide)) => {
            every(narrow, wide, |wide, narrow| wide == narrow)
        }
        (Test::Flag(narrow), Test::Flag(wide)) => narrow == wide,
        (Test::Number(narrow, min, max), Test::Number(wide, wide_min, wide_max)) => {
            narrow == wide && wide_min <= min && max <= wide_max
        }
        (Test::WantsDnssec | Test::EdnsOption(_) | Test::Edns, Test::Edns)
        | (Test::WantsDnssec, Test::WantsDnssec) => true,
        (Test::EdnsOption(narrow), Test::EdnsOption(wide)) => narrow.iter().all(|code| wide.contains(code)),
        (Test::ClientMac(narrow), Test::ClientMac(wide)) => narrow.iter().all(|mac| wide.contains(mac)),
        _ => false,
    }
}

/// Returns whether each of `narrow` is covered by one of `wide`.
fn every<T>(narrow: &[At<T>], wide: &[At<T>], covers: impl Fn(&T, &T) -> bool) -> bool {
    narrow.iter().all(|narrow| wide.iter().any(|wide| covers(&wide.value, &narrow.value)))
}

fn covers(wide: &NameTerm, narrow: &NameTerm) -> bool {
    let (wide, narrow) = match (wide, narrow) {
        (NameTerm::Set(wide), NameTerm::Set(narrow)) => return wide == narrow,
        (NameTerm::Pattern(wide), NameTerm::Pattern(narrow)) => (wide, narrow),
        _ => return false,
    };
    match (wide, narrow) {
        (NamePattern::Name(wide, reach), NamePattern::Name(name, narrow_reach)) => {
            let is_same = wide == name;
            let is_below = name.as_name().is_at_or_below(wide.as_name()) && !is_same;
            match (reach, narrow_reach) {
                (Reach::ItselfAndBelow, _) => is_same || is_below,
                (Reach::Below, Reach::Below) => is_same || is_below,
                (Reach::Below, _) => is_below,
                (Reach::Itself, Reach::Itself) => is_same,
                (Reach::Itself, _) => false,
            }
        }
        (NamePattern::Keyword(wide), NamePattern::Keyword(narrow)) => {
            narrow.to_ascii_lowercase().contains(&wide.to_ascii_lowercase())
        }
        (NamePattern::Regex(wide), NamePattern::Regex(narrow)) => wide == narrow,
        _ => false,
    }
}

fn holds(wide: &AddressTerm, narrow: &AddressTerm) -> bool {
    match (wide, narrow) {
        (AddressTerm::Set(wide), AddressTerm::Set(narrow)) => wide == narrow,
        (AddressTerm::Prefixes(wide), AddressTerm::Prefixes(narrow)) => narrow.iter().all(|narrow| {
            wide.iter().any(|wide| wide.bits() <= narrow.bits() && wide.contains(narrow.address()))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::parser::tests::read;

    fn check(narrow: &str, wide: &str, expect: bool) {
        let parsed = [narrow, wide].map(|text| read(text).expect("a condition"));
        assert_eq!(implies(&parsed[0], &parsed[1]), expect, "{narrow} => {wide}");
    }

    #[test]
    fn what_is_narrower_is_seen() {
        check("qname == www.example.", "qname in suffix:example", true);
        check("qname in suffix:www.example|exact:example", "qname in suffix:example", true);
        check("qname in suffix:example", "qname in exact:example", false);
        check("qname in suffix:example", "qname in suffix:www.example", false);
        check("qname in keyword:adserver", "qname in keyword:ads", true);
        check("qname in ads", "qname in ads|other", true);
        check("qname in ads|other", "qname in ads", false);
        check("qtype == A", "qtype in [A, AAAA]", true);
        check("client in 10.1.0.0/16", "client in 10.0.0.0/8", true);
        check("client in 10.0.0.0/8", "client in 10.1.0.0/16", false);
        check("edns-size < 512", "edns-size <= 512", true);
        check("do", "edns", true);
    }

    #[test]
    fn and_or_and_not_are_followed() {
        check("rd and qname in suffix:a", "qname in suffix:a", true);
        check("qname in suffix:a", "rd and qname in suffix:a", false);
        check("qname in suffix:a", "rd or qname in suffix:a", true);
        check("rd or qname in suffix:a", "qname in suffix:a", false);
        check("rd or cd", "cd or rd", true);
        check("rd and cd", "cd and rd", true);
        check("not rd", "not rd", true);
        check("not qname in suffix:a", "not qname in suffix:b.a", true);
        check("not qname in suffix:b.a", "not qname in suffix:a", false);
        check("false", "rd", true);
        check("rd", "true", true);
    }

    #[test]
    fn what_changes_on_the_way_is_not_compared() {
        for condition in ["mark == 1", "answer", "rcode == nxdomain", "random < 5%", "rate(all) > 1/s"] {
            check(condition, condition, false);
        }
    }
}
