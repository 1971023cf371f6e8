//! Values in second-level caches that do not count any more.
//!
//! Operators have them forgotten. Who has written a value, and by which keys, nobody knows for all
//! names of a zone; so a value that was written before then counts as none, and what servers answer
//! instead takes its place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use wire::{Message, NameBuf, Question, Rcode, Rtype};

/// Rules that are remembered. Beyond that the oldest gives way to one for all names.
const RULES_MAX: usize = 256;

/// Which values do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredOf {
    /// Those of a name.
    Name(NameBuf),
    /// Those of a name and of all below it.
    Suffix(NameBuf),
    /// That of one type of a name.
    Type(NameBuf, Rtype),
    /// Those which say that there is no name or no data.
    Negative,
}

impl StoredOf {
    fn covers(&self, question: &Question<'_>, message: &Message<'_>) -> bool {
        match self {
            Self::Name(name) => question.qname == name.as_name(),
            Self::Suffix(name) => question.qname.is_at_or_below(name.as_name()),
            Self::Type(name, rtype) => question.qname == name.as_name() && question.qtype == *rtype,
            Self::Negative => message.rcode() == Rcode::NXDOMAIN || message.header.answers == 0,
        }
    }
}

/// What was forgotten, in the order of time, and when, in seconds since 1970.
#[derive(Default)]
pub(crate) struct Forgotten {
    has_any: AtomicBool,
    rules: Mutex<Rules>,
}

#[derive(Default)]
struct Rules {
    /// Nothing counts that was written then or before.
    all_until: u64,
    each: Vec<(StoredOf, u64)>,
}

impl Forgotten {
    /// Has values not count that were written until this second, itself included.
    pub(crate) fn forget(&self, what: StoredOf, unix_seconds: u64) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.each.retain(|(other, _)| *other != what);
        if rules.each.len() == RULES_MAX {
            let (_, at) = rules.each.remove(0);
            rules.all_until = rules.all_until.max(at);
        }
        rules.each.push((what, unix_seconds));
        self.has_any.store(true, Ordering::Release);
    }

    /// Returns whether a value counts that was written then.
    pub(crate) fn counts(&self, question: &Question<'_>, message: &Message<'_>, written_at: u64) -> bool {
        if !self.has_any.load(Ordering::Acquire) {
            return true;
        }
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let is_forgotten = |(what, at): &(StoredOf, u64)| written_at <= *at && what.covers(question, message);
        written_at > rules.all_until && !rules.each.iter().any(is_forgotten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Class, Flags, Writer};

    fn name(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    fn counts(forgotten: &Forgotten, text: &str, rcode: Rcode, written_at: u64) -> bool {
        let qname = name(text);
        let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
        let mut out = [0; 512];
        let mut writer = Writer::new(&mut out, 512, 0, Flags::QR.with_rcode(rcode));
        writer.question(&question).expect("room");
        if rcode == Rcode::NOERROR {
            let address = |writer: &mut Writer<'_>| writer.bytes(&[192, 0, 2, 7]);
            let ttl = wire::Ttl::new(60);
            writer
                .record(wire::Section::Answer, question.qname, Rtype::A, Class::IN, ttl, address)
                .expect("room");
        }
        let len = writer.finish();
        forgotten.counts(&question, &Message::parse(&out[..len]).expect("a message"), written_at)
    }

    #[test]
    fn values_that_were_written_before_do_not_count() {
        for (what, [www, other, denied]) in [
            (StoredOf::Name(name("www.example")), [false, true, true]),
            (StoredOf::Type(name("www.example"), Rtype::A), [false, true, true]),
            (StoredOf::Type(name("www.example"), Rtype::MX), [true, true, true]),
            (StoredOf::Suffix(name("example")), [false, true, false]),
            (StoredOf::Negative, [true, true, false]),
        ] {
            let forgotten = Forgotten::default();
            assert!(counts(&forgotten, "www.example", Rcode::NOERROR, 100));
            forgotten.forget(what.clone(), 100);
            for (text, rcode, expected) in [
                ("www.example", Rcode::NOERROR, www),
                ("www.example.net", Rcode::NOERROR, other),
                ("no.example", Rcode::NXDOMAIN, denied),
            ] {
                assert_eq!(counts(&forgotten, text, rcode, 100), expected, "{what:?} {text}");
                assert!(counts(&forgotten, text, rcode, 101), "it came later: {what:?} {text}");
            }
        }
    }

    #[test]
    fn of_many_rules_the_oldest_is_one_for_all_names() {
        let forgotten = Forgotten::default();
        let zone = |number: usize| StoredOf::Suffix(name(&format!("z{number}.example")));
        (0..RULES_MAX).for_each(|number| forgotten.forget(zone(number), 100 + number as u64));
        // The same once more is no other rule.
        forgotten.forget(zone(7), 999);
        assert!(counts(&forgotten, "www.example.net", Rcode::NOERROR, 100));
        forgotten.forget(StoredOf::Negative, 1000);
        assert!(!counts(&forgotten, "www.example.net", Rcode::NOERROR, 100));
        assert!(counts(&forgotten, "www.example.net", Rcode::NOERROR, 101));
        assert!(!counts(&forgotten, "www.z7.example", Rcode::NOERROR, 999));
    }
}
