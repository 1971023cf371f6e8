//! Caches, as their operator sees them.

use std::collections::BTreeMap;

use cache::{Cache, Entry, EntryView, Flush, Freshness, Key, KeyBits, Now, Security, Stored};
use control::api::{self, CacheFlush, CacheLookup};
use engine::Caches;
use wire::{Flags, Header, Message, NameBuf, Rtype, Section};

use super::{Operator, OperatorError, What};
use crate::caches::{Which, now};
use crate::lock;

/// Answers that one look into the caches shows.
const ENTRIES_SHOWN_MAX: usize = 1000;
/// What clients get as the TTL of stale answers (RFC 8767 §4).
const STALE_TTL: u32 = 30;

impl Operator {
    /// Writes the caches that have files.
    pub fn cache_dump(&self) -> Vec<api::Dumped> {
        self.dump(Which::All)
    }

    /// Writes caches that have files; with `Which::Due`, those whose turn it is.
    pub(crate) fn dump(&self, which: Which<'_>) -> Vec<api::Dumped> {
        self.components.dumps.write(which)
    }

    /// Says how full the caches are.
    pub fn cache_stats(&self) -> BTreeMap<String, api::CacheStats> {
        let caches = lock(&self.view).caches.clone();
        let stats = caches.iter().map(|(name, cache)| {
            let stats = cache.stats();
            let stats = api::CacheStats {
                entries: stats.entries,
                octets: stats.octets as u64,
                octets_max: stats.octets_max as u64,
                inserts: stats.inserts,
                evictions: stats.evictions,
            };
            (name.to_owned(), stats)
        });
        stats.collect()
    }

    /// Shows what the caches hold for a name, and perhaps for the names below it.
    ///
    /// # Errors
    ///
    /// There is no such cache, or what is asked makes no sense.
    pub fn cache_lookup(&self, asked: &CacheLookup) -> Result<api::CacheEntries, OperatorError> {
        held(&self.caches(asked.cache.as_deref())?, asked, now())
    }

    /// Forgets answers; says how many.
    ///
    /// # Errors
    ///
    /// There is no such cache, or what is to be forgotten makes no sense.
    pub fn cache_flush(&self, flush: &CacheFlush) -> Result<api::Flushed, OperatorError> {
        let removed = forget(&self.caches(flush.cache.as_deref())?, &flush.what)?;
        Ok(api::Flushed { removed })
    }

    /// Forgets answers in all caches; says how many.
    pub fn flush_answers(&self, what: Flush<'_>) -> u64 {
        let caches = lock(&self.view).caches.clone();
        caches.iter().map(|(_, cache)| cache.flush(what) as u64).sum()
    }

    /// Returns the reading of the clock that the caches' answers age by.
    pub fn cache_now(&self) -> Now {
        now()
    }

    /// Shows every answer of all caches that is not past all use, in no order.
    pub fn each_answer(&self, mut show: impl FnMut(&CachedAnswer<'_>)) {
        let (caches, now) = (lock(&self.view).caches.clone(), now());
        for (_, cache) in caches.iter() {
            cache.for_each(|entry| {
                // What is kept for one network is nothing that another server could use.
                let Some(freshness) = entry.freshness(now).filter(|_| entry.scope.is_none()) else { return };
                let (ttl, is_stale) = match freshness {
                    Freshness::Fresh { left } => (left, false),
                    Freshness::Stale { .. } => (0, true),
                };
                let age = now.0.saturating_sub(entry.stored_at.0);
                show(&CachedAnswer { entry, ttl, message: message(entry, age, is_stale) });
            });
        }
    }

    /// Puts an answer into the first cache, as if a server had given it: unless it is older than
    /// one that is there. Returns whether it was taken.
    pub fn keep_answer(&self, message: &Message<'_>, ttl: u32) -> bool {
        let caches = lock(&self.view).caches.clone();
        let Some((_, cache)) = caches.iter().next() else { return false };
        kept(cache, message, ttl).is_some()
    }

    /// Forgets the answers for a name and all below it.
    pub(crate) fn forget_answers(&self, zone: &NameBuf) {
        let caches = lock(&self.view).caches.clone();
        for (_, cache) in caches.iter() {
            cache.flush(Flush::Suffix(zone.as_name()));
        }
    }

    /// Returns all caches, or the one of this name.
    fn caches(&self, only: Option<&str>) -> Result<Caches, OperatorError> {
        let caches = lock(&self.view).caches.clone();
        let Some(wanted) = only else { return Ok(caches) };
        caches.only(wanted).ok_or_else(|| OperatorError::not_found(What::Cache, wanted))
    }
}

/// An answer of a cache.
pub struct CachedAnswer<'a> {
    /// What is kept of it.
    pub entry: &'a EntryView<'a>,
    /// Seconds for which it is fresh; zero if it is not.
    pub ttl: u32,
    /// The message that a client would get.
    pub message: Vec<u8>,
}

/// Puts an answer into a cache.
fn kept(cache: &Cache, message: &Message<'_>, ttl: u32) -> Option<()> {
    let question = message.question?;
    let mut body = vec![0; wire::MESSAGE_OCTETS_MAX];
    let mut ttl_offsets = vec![0; usize::from(u16::MAX)];
    let normal = wire::reply::normalise(message, &mut body, &mut ttl_offsets).ok()?;
    let is_signed = message.records().any(|record| record.rtype == Rtype::RRSIG);
    // One with signatures is for who asked for them; one without is for everybody.
    let (bits, flags) = match is_signed {
        true => (KeyBits::DO, message.header.flags),
        false => (KeyBits::NONE, Flags(message.header.flags.0 | Entry::SAME_FOR_DO.0)),
    };
    let folded = question.qname.to_folded();
    let key = Key::new(cache.hash_key(), &folded, question.qtype, question.qclass, bits, 0);
    let entry = Entry {
        body: body.get(normal.body_at..normal.len)?,
        ttl_offsets: ttl_offsets.get(..normal.ttl_count)?,
        rcode: message.rcode(),
        flags,
        security: Security::Unchecked,
        answers: normal.answers,
        authorities: normal.authorities,
        additionals: normal.additionals,
        ttl,
        stale: 0,
        ede: None,
    };
    match cache.insert(&key, &entry, now()) {
        Stored::New | Stored::Replaced => Some(()),
        Stored::Refused(_) => None,
    }
}

pub(super) fn name_of(text: &str) -> Result<NameBuf, OperatorError> {
    text.parse().map_err(|error| OperatorError::Argument(format!("\"{text}\": {error}")))
}

pub(super) fn rtype_of(text: &str) -> Result<Rtype, OperatorError> {
    text.parse().map_err(|_| OperatorError::Argument(format!("\"{text}\" is not a record type")))
}

/// Forgets in every one of `caches`; an error says what cannot be understood.
fn forget(caches: &Caches, what: &api::Flush) -> Result<u64, OperatorError> {
    let flush = |flush: Flush<'_>| caches.iter().map(|(_, cache)| cache.flush(flush) as u64).sum();
    Ok(match what {
        api::Flush::All => flush(Flush::All),
        api::Flush::Name(name) => flush(Flush::Name(name_of(name)?.as_name())),
        api::Flush::Suffix(name) => flush(Flush::Suffix(name_of(name)?.as_name())),
        api::Flush::Type { name, rtype } => {
            let rtype = rtype_of(rtype)?;
            flush(Flush::Type(name_of(name)?.as_name(), rtype))
        }
    })
}

/// Looks at every answer for those that are asked for.
fn held(caches: &Caches, asked: &CacheLookup, now: Now) -> Result<api::CacheEntries, OperatorError> {
    let name = name_of(&asked.name)?;
    let rtype = asked.rtype.as_deref().map(rtype_of).transpose()?;
    let mut found = api::CacheEntries::default();
    for (cache, answers) in caches.iter() {
        answers.for_each(|entry| {
            let is_name = entry.name == name.as_name()
                || (asked.covers_below && entry.name.is_at_or_below(name.as_name()));
            if !is_name || rtype.is_some_and(|rtype| rtype != entry.qtype) {
                return;
            }
            let Some(freshness) = entry.freshness(now) else { return };
            if found.entries.len() >= ENTRIES_SHOWN_MAX {
                found.is_cut_short = true;
                return;
            }
            found.entries.push(described(cache, entry, freshness, now));
        });
    }
    found.entries.sort_by(|a, b| (&a.cache, &a.name, &a.rtype).cmp(&(&b.cache, &b.name, &b.rtype)));
    Ok(found)
}

fn described(cache: &str, entry: &EntryView<'_>, freshness: Freshness, now: Now) -> api::CacheEntry {
    let age = now.0.saturating_sub(entry.stored_at.0);
    let (fresh_for_s, stale_for_s) = match freshness {
        Freshness::Fresh { left } => (Some(left), None),
        Freshness::Stale { since } => (None, Some(since)),
    };
    let bytes = message(entry, age, stale_for_s.is_some());
    let message = Message::parse(&bytes).ok();
    let records =
        |wanted| message.as_ref().map_or_else(Vec::new, |message| api::Record::section(message, wanted));
    let kinds = [(KeyBits::DO, "dnssec"), (KeyBits::CD, "unchecked"), (KeyBits::FAILURE, "failure")];
    api::CacheEntry {
        cache: cache.to_owned(),
        name: entry.name.to_string(),
        rtype: entry.qtype.to_string(),
        status: entry.rcode.to_string(),
        fresh_for_s,
        stale_for_s,
        kept_for_s: entry.ttl.saturating_add(entry.stale).saturating_sub(age),
        client_subnet: entry.scope.map(|scope| subnet(&scope)),
        flags: kinds
            .into_iter()
            .filter(|(bit, _)| entry.bits.has(*bit))
            .map(|(_, word)| word.to_owned())
            .collect(),
        answer: records(Section::Answer),
        authority: records(Section::Authority),
        additional: records(Section::Additional),
        extended_error: entry.ede.map(|code| api::ExtendedError::named(code, "")),
    }
}

/// Puts an answer together as a client would get it: names in it lead to the question.
fn message(entry: &EntryView<'_>, age: u32, is_stale: bool) -> Vec<u8> {
    let header = Header {
        id: 0,
        flags: Flags::QR.with_rcode(entry.rcode),
        questions: 1,
        answers: entry.answers,
        authorities: entry.authorities,
        additionals: entry.additionals,
    };
    let mut body = entry.body.to_vec();
    for &at in entry.ttl_offsets {
        let Some(field) = body.get_mut(usize::from(at)..).and_then(<[u8]>::first_chunk_mut::<4>) else {
            break;
        };
        let ttl = if is_stale { STALE_TTL } else { u32::from_be_bytes(*field).saturating_sub(age) };
        *field = ttl.to_be_bytes();
    }
    let question = [entry.qtype.0.to_be_bytes(), entry.qclass.0.to_be_bytes()].concat();
    [header.to_bytes().as_slice(), entry.name.as_bytes(), &question, &body].concat()
}

fn subnet(scope: &cache::Scope) -> String {
    let address: std::net::IpAddr = match (scope.family, scope.address.first_chunk::<4>()) {
        (1, Some(octets)) => (*octets).into(),
        _ => scope.address.into(),
    };
    format!("{address}/{}", scope.prefix)
}
