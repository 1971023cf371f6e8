//! Forgetting on request.

use super::Cache;
use super::entry::Meta;
use super::key::Now;
use super::security::Security;
use super::walk::{Octets, name_of};
use wire::{Name, Rcode, Rtype};

/// What to forget: for all types (unless named), classes, views, bits and scopes.
#[derive(Clone, Copy)]
pub enum Flush<'a> {
    /// The answers for one name.
    Name(Name<'a>),
    /// The answers for a name and everything below it.
    Suffix(Name<'a>),
    /// The answers for one name and type.
    Type(Name<'a>, Rtype),
    /// Answers that turned out to be bogus.
    Bogus,
    /// Answers that say that there is nothing, and failures.
    Negative,
    /// Answers that are fresh no more.
    Stale(Now),
    /// Everything.
    All,
}

impl Flush<'_> {
    fn takes(&self, meta: &Meta, name: Name<'_>) -> bool {
        match *self {
            Self::Name(wanted) => name == wanted,
            Self::Suffix(zone) => name.is_at_or_below(zone),
            Self::Type(wanted, wanted_type) => meta.qtype() == wanted_type && name == wanted,
            Self::Bogus => meta.security == Security::Bogus,
            Self::Negative => meta.rcode != Rcode::NOERROR || meta.answers == 0,
            Self::Stale(now) => now.0.saturating_sub(meta.stored_at) >= meta.ttl,
            Self::All => true,
        }
    }
}

impl Cache {
    /// Forgets entries and returns how many. Readers go on; writers wait for a few buckets at a
    /// time.
    pub fn flush(&self, what: Flush<'_>) -> usize {
        if let Flush::All = what {
            return self.store.flush_all();
        }
        let mut octets = Octets::default();
        self.store
            .flush(|meta, words| name_of(meta, words, &mut octets).is_some_and(|name| what.takes(meta, name)))
    }
}
