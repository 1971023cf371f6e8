//! Forgetting on request.

use super::Rrsets;
use super::entry::{EntryHead, Kind};
use super::key::rtype_of;
use crate::Security;
use wire::{Name, Rtype};

/// What to forget: in all classes and partitions.
#[derive(Clone, Copy)]
pub enum RrsetFlush<'a> {
    /// What is known of one name, its delegation included.
    Name(Name<'a>),
    /// What is known of a name and everything below it.
    Suffix(Name<'a>),
    /// The records of one name and type, or that there are none; of NS also the delegation.
    Type(Name<'a>, Rtype),
    /// What turned out to be bogus.
    Bogus,
    /// Negative answers.
    Negative,
    /// Everything.
    All,
}

impl RrsetFlush<'_> {
    fn takes(&self, head: &EntryHead, name: Name<'_>) -> bool {
        let facts = head.facts;
        match *self {
            Self::Name(wanted) => name == wanted,
            Self::Suffix(zone) => name.is_at_or_below(zone),
            // That there is no such name says that there is nothing of this type either.
            Self::Type(wanted, rtype) => {
                name == wanted && (rtype_of(head.identity) == rtype || facts.kind == Kind::NoName)
            }
            Self::Bogus => facts.security == Security::Bogus,
            Self::Negative => matches!(facts.kind, Kind::NoData | Kind::NoName),
            Self::All => true,
        }
    }
}

impl Rrsets {
    /// Forgets entries and returns how many. Readers go on; writers wait for a few buckets at a
    /// time.
    pub fn flush(&self, what: RrsetFlush<'_>) -> usize {
        if let RrsetFlush::All = what {
            return self.store.flush_all();
        }
        let mut octets = Vec::new();
        self.store.flush(|head, words| {
            head.copy_to(words, &mut octets).is_some()
                && Name::parse(&octets).is_ok_and(|(name, _)| what.takes(head, name))
        })
    }
}
