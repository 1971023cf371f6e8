//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `cache(name)`: answers from the cache; on a miss, the answer of the steps after it fills it.

mod early;
mod failures;
mod stale;
mod unsigned;

use std::sync::Arc;

use cache::{Ageing, Cache, Entry, Freshness, Hit, Key, KeyBits, Now, Scope};
use wire::{EdeCode, Flags, Folded, Query, Rcode, Rtype, Ttl};

use super::ttl::TtlRule;
use crate::answer::texts::Texts;
use crate::answer::{Answer, SubnetScope};
use clients::subnet::ClientSubnet;
pub use early::Early;
pub(crate) use early::Known;

/// A failure is remembered for at most this long by default (RFC 9520 §3.2: 1 s to 5 min).
pub const FAILURE_TTL_DEFAULT: Ttl = Ttl::new(5);
/// In `view`: the answer was given for any subnet (RFC 7871 §7.3.1, scope zero).
const SCOPE_ZERO: u16 = 0x8000;
/// In `view`: the answer is for every subnet within the key's, not for that one alone.
const WITHIN_SCOPE: u16 = 0x4000;

/// How answers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    /// No record gets a smaller TTL.
    pub min_ttl: Ttl,
    /// No record gets a larger TTL.
    pub max_ttl: Ttl,
    /// The most seconds a negative answer is kept (RFC 2308 §5).
    pub max_negative_ttl: Ttl,
    /// No record of a negative answer gets a smaller TTL, whatever its zone says.
    pub min_negative_ttl: Ttl,
    /// Seconds a failure is remembered at most (RFC 9520): a second at first, twice as long with
    /// each one in a row. Zero: not at all.
    pub failure_ttl: Ttl,
    /// Seconds an answer is kept beyond its TTL to be served when nobody else answers (RFC 8767);
    /// zero: not at all.
    pub stale_seconds: u32,
    /// Whether a failure to fetch an answer gives a stale one all that time again.
    pub restarts_stale: bool,
    /// The TTL of stale records (RFC 8767 §4 recommends 30).
    pub stale_ttl: Ttl,
    /// How long a client waits for a fresh answer before it gets the stale one; zero: not at all.
    pub stale_client_timeout_ms: u32,
    /// The share of its TTL, in percent, at whose end a popular answer is fetched anew; zero:
    /// never.
    pub prefetch_percent: u8,
    /// Whether clients' subnets keep answers apart: some group after this step is told them.
    pub keeps_subnets_apart: bool,
    /// Whether answers without signatures, too, are kept apart for who sets DO.
    pub keeps_do_apart: bool,
    /// Whether records keep the TTLs that they came with, however old they are.
    pub keeps_ttls: bool,
    /// Whether the step looks for nothing but answers that the steps after it leave alone.
    pub early: Early,
    /// Whether answers are kept with room for what is found out about them: a step looks into the
    /// cache early. Programs see to that themselves.
    pub keeps_stamps: bool,
    /// Whether queries without RD are answered too: it shows their clients what others asked for.
    pub answers_without_rd: bool,
}

impl Default for CacheRules {
    fn default() -> Self {
        Self {
            min_ttl: Ttl::ZERO,
            max_ttl: Ttl::new(86_400),
            max_negative_ttl: Ttl::new(3_600),
            min_negative_ttl: Ttl::ZERO,
            failure_ttl: FAILURE_TTL_DEFAULT,
            stale_seconds: 86_400,
            restarts_stale: false,
            stale_ttl: Ttl::new(30),
            stale_client_timeout_ms: 1_800,
            prefetch_percent: 10,
            keeps_subnets_apart: false,
            keeps_do_apart: false,
            keeps_ttls: false,
            early: Early::No,
            keeps_stamps: false,
            answers_without_rd: false,
        }
    }
}

/// The step.
pub struct CacheStep {
    /// The cache, shared by all workers and kept over reloads.
    pub cache: Arc<Cache>,
    /// How answers are kept.
    pub rules: CacheRules,
    /// Keeps apart the answers of programs that share a cache; less than 16,384.
    pub view: u16,
    /// Whether a hit goes on with the next step instead of ending the query.
    pub continues: bool,
}

/// What a look-up means for the query.
pub(crate) enum Found {
    /// An answer; and whether the entry should be fetched anew behind it.
    Answer(Answer, Outlook),
    /// Nothing to answer with at once; `has_stale` if an old answer is at hand.
    Nothing {
        /// Whether a stale answer waits for the case that no fresh one comes.
        has_stale: bool,
    },
}

/// What kind of answer it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// Fresh.
    Fresh,
    /// Fresh, popular and about to expire: fetch it anew. This caller alone was told so.
    Prefetch,
    /// Stale, answered at once; fetch it anew. This caller alone was told so.
    Refresh,
    /// Stale.
    Stale,
    /// A remembered failure.
    Failure,
}

/// What a look-up is made with.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) query: &'a Query<'a>,
    /// The name asked for, in lower case.
    pub(crate) folded: &'a Folded,
    /// The keyed hash of the name.
    pub(crate) name_hash: u64,
    /// The subnet that keeps answers apart, if any does.
    pub(crate) subnet: Option<ClientSubnet>,
    /// DO and CD as upstreams are asked.
    pub(crate) bits: KeyBits,
}

impl Asked<'_> {
    /// Returns DO and CD of the query as it came.
    pub(crate) fn own_bits(query: &Query<'_>) -> KeyBits {
        key_bits(query.wants_dnssec(), query.header.flags.has(Flags::CD))
    }
}

/// Returns the bits that keep apart answers to queries with other flags.
pub(crate) fn key_bits(wants_dnssec: bool, checking_disabled: bool) -> KeyBits {
    let bits = if wants_dnssec { KeyBits::DO } else { KeyBits::NONE };
    if checking_disabled { bits.with(KeyBits::CD) } else { bits }
}

/// Remembers, while a query waits, that its answer goes into a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    /// The number of the cache step in its program.
    pub(crate) step: u16,
    /// The subnet that is told to upstreams.
    pub(crate) subnet: Option<ClientSubnet>,
    /// DO and CD as upstreams are asked.
    pub(crate) bits: KeyBits,
    /// Whether a stale answer is at hand.
    pub(crate) has_stale: bool,
}

/// An answer that others got.
pub(super) struct OfOthers<'a> {
    key: Key<'a>,
    hit: Hit,
    scope: SubnetScope,
}

impl CacheStep {
    /// Looks the query up; an answer is copied to `out`, which begins after the question.
    #[inline(always)]
    pub(crate) fn look_up(
        &self,
        asked: &Asked<'_>,
        (now, texts): (Now, &Texts),
        out: &mut [u8],
        may_refresh: impl Fn() -> bool,
    ) -> Found {
        let own_key = self.key(asked);
        let others_key;
        let (mut key, mut scope) = (&own_key, SubnetScope::OWN);
        // What others got takes the place of the query's own: where that is found, nothing is
        // copied, and its fields stay at places that are known.
        let mut found = self.read(&own_key, now, out);
        if found.is_none() {
            match self.read_of_others(asked, now, out) {
                Some(others) => {
                    others_key = others.key;
                    (key, scope, found) = (&others_key, others.scope, Some(others.hit));
                }
                None => {
                    return match self.look_up_rest(asked, &own_key, (now, texts), out, may_refresh) {
                        Ok((answer, outlook)) => Found::Answer(answer, outlook),
                        Err(has_stale) => Found::Nothing { has_stale },
                    };
                }
            }
        }
        let Some(hit) = &found else { return Found::Nothing { has_stale: false } };
        // Nothing out of line writes the answer, so that it is made where it ends up.
        let (outlook, ede) = match hit.freshness {
            Freshness::Fresh { left } => {
                let is_claimed = self.is_ending(hit, left)
                    && hit.popular
                    && may_refresh()
                    && self.cache.try_claim_refresh(key);
                let outlook = if is_claimed { Outlook::Prefetch } else { Outlook::Fresh };
                (outlook, None)
            }
            Freshness::Stale { .. } => {
                // Failures are those of the client's own subnet.
                let failing = if asked.subnet.is_some() { &own_key } else { key };
                match self.when_stale(failing, now, may_refresh()) {
                    Ok(outlook) => (outlook, Some(stale::ede(hit.rcode))),
                    Err(has_stale) => return Found::Nothing { has_stale },
                }
            }
        };
        Found::Answer(Answer { scope, ..answer_of(hit, ede) }, outlook)
    }

    /// Looks for an answer that others got and that holds for this query as well.
    #[inline(always)]
    fn read_of_others<'a>(&self, asked: &Asked<'a>, now: Now, out: &mut [u8]) -> Option<OfOthers<'a>> {
        if let Some(subnet) = asked.subnet {
            // One by one: `asked` itself would have to be written to memory for every query.
            let &Asked { query, folded, name_hash, bits, .. } = asked;
            return self.read_for_networks((query, folded, name_hash, bits), subnet, now, out);
        }
        let (key, hit) = self.read_for_do(asked, now, out)?;
        Some(OfOthers { key, hit, scope: SubnetScope::OWN })
    }

    /// Looks for an answer that is for the subnet, but not for it alone: one for everybody, else
    /// the one for the smallest network that it is in (RFC 7871 §7.3.1).
    #[cold]
    fn read_for_networks<'a>(
        &self,
        (query, folded, name_hash, bits): (&'a Query<'a>, &'a Folded, u64, KeyBits),
        subnet: ClientSubnet,
        now: Now,
        out: &mut [u8],
    ) -> Option<OfOthers<'a>> {
        let asked = &Asked { query, folded, name_hash, subnet: Some(subnet), bits };
        let key = self.scope_zero_key(asked);
        if let Some(hit) = self.read(&key, now, out) {
            return Some(OfOthers { key, hit, scope: SubnetScope::EVERY });
        }
        // Ends: there are 64 lengths.
        for bits in self.cache.scopes(subnet.family, subnet.prefix) {
            let key = self.within_key(asked, subnet, bits);
            if let Some(hit) = self.read(&key, now, out) {
                return Some(OfOthers { key, hit, scope: SubnetScope::of(bits) });
            }
        }
        None
    }

    /// Returns where the answer for a network is that a subnet is in.
    fn within_key<'a>(&self, asked: &Asked<'a>, subnet: ClientSubnet, bits: u8) -> Key<'a> {
        let ClientSubnet { family, prefix, address } = subnet.cut(bits, bits);
        let key = self.key_in_view(asked, self.view | WITHIN_SCOPE);
        key.with_scope(self.cache.hash_key(), Scope { address, family, prefix })
    }

    fn read(&self, key: &Key<'_>, now: Now, out: &mut [u8]) -> Option<Hit> {
        self.cache.lookup(key, now, out, self.ageing())
    }

    #[inline(always)]
    const fn ageing(&self) -> Ageing {
        match self.rules.keeps_ttls {
            false => Ageing { stale_ttl: self.rules.stale_ttl.seconds() },
            true => Ageing::NONE,
        }
    }

    /// Returns whether an answer that is fresh for `left` more seconds is so near its end that it
    /// is fetched anew if it is popular.
    #[inline(always)]
    fn is_ending(&self, hit: &Hit, left: u32) -> bool {
        u64::from(left) * 100 <= u64::from(hit.original_ttl) * u64::from(self.rules.prefetch_percent)
    }

    /// Returns the hash that a look-up will use.
    pub(crate) fn hash(&self, asked: &Asked<'_>) -> u64 {
        self.key(asked).hash()
    }

    fn key<'a>(&self, asked: &Asked<'a>) -> Key<'a> {
        // Written where it ends up: a match would copy it.
        let mut key = self.key_in_view(asked, self.view & !SCOPE_ZERO);
        if let Some(ClientSubnet { family, prefix, address }) = asked.subnet {
            key = key.with_scope(self.cache.hash_key(), Scope { address, family, prefix });
        }
        key
    }

    fn scope_zero_key<'a>(&self, asked: &Asked<'a>) -> Key<'a> {
        self.key_in_view(asked, self.view | SCOPE_ZERO)
    }

    fn key_in_view<'a>(&self, asked: &Asked<'a>, view: u16) -> Key<'a> {
        let question = &asked.query.question;
        let (folded, hash, bits) = (asked.folded, asked.name_hash, asked.bits);
        let hash_key = self.cache.hash_key();
        Key::with_name_hash(hash_key, folded, hash, question.qtype, question.qclass, bits, view)
    }

    /// Puts the answer that ended a fetch into the cache: `body` is what follows the question,
    /// `ttl_offsets` count from its start. TTLs are brought within bounds first, in place: the
    /// client sees what is kept.
    pub(crate) fn store(
        &self,
        asked: &Asked<'_>,
        now: Now,
        answer: &Answer,
        body: &mut [u8],
        ttl_offsets: &[u16],
    ) {
        let Some((ttl, stale)) = self.lifetime(asked.query.question.qtype, answer, body, ttl_offsets) else {
            return self.displace(asked, now, answer, (&*body, ttl_offsets));
        };
        let (key, mut flags) = self.place(asked, now, answer, (body, ttl_offsets));
        if self.rules.keeps_stamps {
            flags = flags.with(Entry::STAMPED);
        }
        let [answers, authorities, additionals] = answer.counts;
        let entry = Entry {
            body,
            ttl_offsets,
            rcode: answer.rcode,
            flags,
            security: answer.security,
            answers,
            authorities,
            additionals,
            ttl: ttl.seconds(),
            stale,
            ede: None,
        };
        // A refusal (too large, lifetime zero) leaves the cache as it was.
        let _ = self.cache.insert(&key, &entry, now);
    }

    /// Forgets an expired answer where the one that came cannot be kept: what is known to be
    /// otherwise by now must not be given for another day.
    #[cold]
    fn displace(&self, asked: &Asked<'_>, now: Now, answer: &Answer, (body, ttl_offsets): (&[u8], &[u16])) {
        if !matches!(answer.rcode, Rcode::NOERROR | Rcode::NXDOMAIN) {
            return;
        }
        let (key, flags) = self.place(asked, now, answer, (body, ttl_offsets));
        if self.read(&key, now, &mut []).is_none_or(|hit| !hit.is_stale()) {
            return;
        }
        // An entry that has ended takes its place.
        let ended = Entry {
            body: &[],
            ttl_offsets: &[],
            rcode: answer.rcode,
            flags,
            security: answer.security,
            answers: 0,
            authorities: 0,
            additionals: 0,
            ttl: 1,
            stale: 0,
            ede: None,
        };
        let _ = self.cache.insert(&key, &ended, Now(now.0.saturating_sub(1)));
    }

    /// Brings the TTLs within bounds and returns how long the answer is fresh, and how long it is
    /// kept after that. `None`: it must not be kept.
    fn lifetime(
        &self,
        qtype: Rtype,
        answer: &Answer,
        body: &mut [u8],
        ttl_offsets: &[u16],
    ) -> Option<(Ttl, u32)> {
        let rules = &self.rules;
        let [answer_count, ..] = answer.counts;
        let answer_count = usize::from(answer_count);
        let has_wanted =
            ttl_offsets.iter().take(answer_count).any(|&at| rtype_before(body, at) == Some(qtype));
        let is_negative = answer.rcode == Rcode::NXDOMAIN || !has_wanted;
        let (mut least, mut most) = (rules.min_ttl, rules.max_ttl);
        if is_negative {
            // RFC 2308 §5: kept for the smaller of the SOA's own TTL and its MINIMUM; without an
            // SOA, not at all.
            let soa_at = ttl_offsets
                .iter()
                .skip(answer_count)
                .copied()
                .find(|&at| rtype_before(body, at) == Some(Rtype::SOA))?;
            most = most.min(rules.max_negative_ttl).min(soa_minimum(body, soa_at)?);
            most = most.max(rules.min_negative_ttl);
            least = least.max(rules.min_negative_ttl);
        }
        let bounds = |min: Ttl, max: Ttl| TtlRule::Clamped { min: min.min(max), max };
        let (aliases, rest) = ttl_offsets.split_at_checked(answer_count)?;
        // What leads to the name that has none keeps its own time.
        let (one, other) = (bounds(rules.min_ttl, rules.max_ttl), bounds(least, most));
        let ttl = match (one.rewrite(body, aliases), other.rewrite(body, rest)) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other)?,
        };
        if ttl == Ttl::ZERO { None } else { Some((ttl, rules.stale_seconds)) }
    }
}

fn answer_of(hit: &Hit, ede: Option<(EdeCode, &'static str)>) -> Answer {
    Answer {
        rcode: hit.rcode,
        authoritative: false,
        security: hit.security,
        octets: hit.len,
        counts: [hit.answers, hit.authorities, hit.additionals],
        is_too_large: !hit.fits(),
        ..Answer::empty(hit.rcode, ede)
    }
}

/// Returns the type of the record whose TTL field is at `ttl_at`: type and class stand before it.
fn rtype_before(body: &[u8], ttl_at: u16) -> Option<Rtype> {
    let field = body.get(usize::from(ttl_at).checked_sub(4)?..)?.first_chunk::<2>()?;
    Some(Rtype(u16::from_be_bytes(*field)))
}

/// Returns MINIMUM of the SOA whose TTL field is at `ttl_at`: the last four octets of its data.
fn soa_minimum(body: &[u8], ttl_at: u16) -> Option<Ttl> {
    let at = usize::from(ttl_at);
    let length = usize::from(u16::from_be_bytes(*body.get(at + 4..)?.first_chunk::<2>()?));
    let data = body.get(at + 6..at + 6 + length)?;
    data.last_chunk::<4>().map(|minimum| Ttl::new(u32::from_be_bytes(*minimum)))
}
