//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Steps that change the records of the answer there is: `ttl(jitter 10%)`, `remove(AAAA)`,
//! `sort(10.0.0.0/8)`, `rebind`…

use std::net::IpAddr;
use std::sync::Arc;

use sets::{AddressSet, NameSet, Sought};
use wire::rdata::SvcKey;
use wire::{EdeCode, Folded, Full, HashKey, Header, Rcode, Rtype, Section, Ttl};

use super::answer::negative;
use crate::answer::errors::Errors;
use crate::answer::put::local_soa;
use crate::answer::{Answer, Security};
use crate::query::request::{Environment, Request};
use crate::query::reverse::ReverseTable;
use edit::{Draft, Order, Place, SvcKeys, embedded, is_address};

/// What to change.
pub enum Edit {
    /// Takes up to so many percent off the TTLs, as chance has it: what was asked for together does
    /// not expire together.
    Jitter(u8),
    /// Removes these records.
    Remove(Selection),
    /// Removes the others.
    Keep(Selection),
    /// Removes aliases; what they lead to gets the name asked for.
    Flatten,
    /// Removes parameters of SVCB and HTTPS records.
    StripParams(SvcKeys),
    /// Puts addresses in the first set first, then those in the second, and so on.
    Sort(Box<[Arc<AddressSet>]>),
    /// Puts the addresses nearest to the client's, as policies see it, first: those with which it
    /// has the most leading bits in common.
    SortByClient,
    /// Puts another address first each time.
    Shuffle,
    /// Leaves so many addresses of each kind.
    Limit(u16),
    /// Removes or refuses addresses that an answer from outside must not have.
    Rebind(Rebind),
    /// Adds an Extended DNS Error (RFC 8914).
    Ede(EdeCode, Box<str>),
    /// Keeps the addresses for reverse look-ups, for so many seconds.
    Remember(Arc<ReverseTable>, u32),
}

/// Which records are meant.
pub enum Selection {
    /// Records of these types.
    Types(Box<[Rtype]>),
    /// A and AAAA records with addresses in a set.
    Addresses(Arc<AddressSet>),
}

/// Protection against names of strangers that lead into one's own network.
pub struct Rebind {
    /// Addresses that only we may give out.
    pub private: Arc<AddressSet>,
    /// Names that may have such addresses all the same: of records, whatever was asked for.
    pub except: Option<Arc<NameSet>>,
    /// What the client gets instead of the whole answer.
    pub instead: Instead,
}

/// What takes the place of an answer with addresses that it must not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// An empty answer with this code.
    Code(Rcode),
    /// The answer without them: SVCB and HTTPS records lose their hints.
    WithoutAddresses,
    /// The answer without the records that have them.
    WithoutRecords,
}

impl Rebind {
    /// Returns whether it looks at the addresses of a record, by the record's owner.
    fn counts(&self, key: &HashKey, message: &[u8], place: &Place) -> bool {
        let Some(except) = &self.except else { return true };
        let Ok(owner) = place.owner(message).expand() else { return true };
        let mut folded = Folded::root();
        let hash = key.fold(owner.as_name(), &mut folded);
        !except.contains(&Sought::new(&folded, hash))
    }

    /// Returns whether an address is private, also as IPv6 writes an IPv4 address.
    fn refuses(&self, address: IpAddr) -> bool {
        self.private.contains(address)
            || match address {
                IpAddr::V4(_) => false,
                IpAddr::V6(v6) => embedded(v6).is_some_and(|v4| self.private.contains(IpAddr::V4(v4))),
            }
    }
}

/// The TTL of an answer that stands in for one from outside.
const INSTEAD_TTL: Ttl = Ttl::new(60);

/// What became of the answer.
enum Outcome {
    /// It says the same.
    Same,
    /// Its records are other ones.
    Changed,
    /// Another answer takes its place.
    Replaced,
}

impl Outcome {
    const fn changed(changed: bool) -> Self {
        if changed { Self::Changed } else { Self::Same }
    }
}

impl Edit {
    /// Changes `answer`, whose records stand in the draft. `step` is this step's number.
    pub(crate) fn apply(
        &self,
        step: u16,
        request: &Request<'_>,
        env: &Environment<'_>,
        answer: &mut Answer,
        mut draft: Draft<'_>,
    ) {
        let done = match self {
            Self::Jitter(percent) => {
                let percent = chance(request, env) % (u64::from(*percent) + 1);
                draft.change_ttls(|ttl| {
                    Ttl::new((u64::from(ttl.seconds()) * (100 - percent.min(100)) / 100) as u32)
                });
                Ok(Outcome::Same)
            }
            Self::Remove(Selection::Types(types)) => {
                removing(&mut draft, request, |draft| draft.remove_types(types))
            }
            Self::Remove(Selection::Addresses(set)) => {
                removing(&mut draft, request, |draft| draft.remove_addresses(|address| set.contains(address)))
            }
            Self::Keep(Selection::Types(types)) => {
                removing(&mut draft, request, |draft| draft.keep_types(types))
            }
            Self::Keep(Selection::Addresses(set)) => removing(&mut draft, request, |draft| {
                draft.remove_addresses(|address| !set.contains(address))
            }),
            Self::Flatten => draft.flatten().map(Outcome::changed),
            Self::StripParams(keys) => draft.strip_params(*keys).map(Outcome::changed),
            Self::Sort(sets) => {
                draft.order(Order::Ranked(|address| {
                    sets.iter().position(|set| set.contains(address)).unwrap_or(sets.len()) as u32
                }));
                Ok(Outcome::Same)
            }
            Self::SortByClient => {
                let client = request.client.address_of(request.query, env.trusted_peers);
                draft.order(Order::Ranked(|address| distance(client, address)));
                Ok(Outcome::Same)
            }
            Self::Shuffle => {
                rotate(&mut draft, request, env);
                Ok(Outcome::Same)
            }
            Self::Limit(limit) => draft.limit(*limit).map(Outcome::changed),
            Self::Rebind(rebind) => rebind.apply(&mut draft, (request, env), answer),
            Self::Ede(..) => {
                answer.errors = Errors::Step(step);
                Ok(Outcome::Same)
            }
            Self::Remember(table, seconds) => {
                draft.each(|message, place| {
                    if place.section == Section::Answer
                        && let Some(address) = is_address(message, place)
                    {
                        let until = env.now.cache.0.saturating_add(*seconds);
                        table.put(address, request.sought.name(), env.now.cache.0, until);
                    }
                });
                Ok(Outcome::Same)
            }
        };
        let shape = draft.shape;
        match done {
            Ok(Outcome::Same) => {}
            Ok(Outcome::Replaced) => return,
            // What was validated is not what the client gets.
            Ok(Outcome::Changed) => answer.security = Security::Unchecked,
            Err(Full) => answer.is_too_large = true,
        }
        (answer.octets, answer.counts) = (shape.octets, shape.counts);
    }

    /// Returns the Extended DNS Error that the step adds.
    pub(crate) fn ede(&self) -> Option<(EdeCode, &str)> {
        match self {
            Self::Ede(code, text) => Some((*code, text)),
            _ => None,
        }
    }
}

/// Removes records; if no record of the type asked for is left, an SOA says for how long that is
/// so: as long as what was removed would have been kept.
fn removing(
    draft: &mut Draft<'_>,
    request: &Request<'_>,
    remove: impl FnOnce(&mut Draft<'_>) -> Result<bool, Full>,
) -> Result<Outcome, Full> {
    let wanted = request.query.question.qtype;
    let is_wanted = |place: &Place| place.section == Section::Answer && place.rtype == wanted;
    let had = draft.smallest_ttl(|_, place| is_wanted(place));
    if !remove(draft)? {
        return Ok(Outcome::Same);
    }
    let Some(ttl) = had else { return Ok(Outcome::Changed) };
    if !draft.any(|_, place| is_wanted(place)) {
        // What was there besides belonged to records that are gone.
        draft.retain(|_, place| place.section != Section::Additional)?;
        if !draft.any(|_, place| place.section == Section::Authority && place.rtype == Rtype::SOA) {
            draft.append(Section::Authority, Rtype::SOA, ttl, &local_soa(Header::LEN, ttl))?;
        }
    }
    Ok(Outcome::Changed)
}

impl Rebind {
    fn apply(
        &self,
        draft: &mut Draft<'_>,
        (request, env): (&Request<'_>, &Environment<'_>),
        answer: &mut Answer,
    ) -> Result<Outcome, Full> {
        let counts = |message: &[u8], place: &Place| self.counts(env.key, message, place);
        if !draft.has_address(counts, |address| self.refuses(address)) {
            return Ok(Outcome::Same);
        }
        let errors = Errors::One(EdeCode::BLOCKED, "private address in an answer from outside");
        if let Instead::Code(rcode) = self.instead {
            *answer = negative(draft.message, request, rcode, INSTEAD_TTL);
            answer.errors = errors;
            return Ok(Outcome::Replaced);
        }
        let is_service = |place: &Place| matches!(place.rtype, Rtype::SVCB | Rtype::HTTPS);
        if self.instead == Instead::WithoutAddresses
            && draft.any(|message, place| is_service(place) && counts(message, place))
        {
            let hints =
                SvcKeys::default().with(SvcKey::IPV4HINT).and_then(|keys| keys.with(SvcKey::IPV6HINT));
            draft.strip_params(hints.unwrap_or_default())?;
        }
        // Those that have lost their hints have none any more.
        removing(draft, request, |draft| {
            draft.remove_with_addresses(counts, |address| self.refuses(address))
        })?;
        answer.errors = errors;
        Ok(Outcome::Changed)
    }
}

/// Puts another address of each RRset of the answer first than the last time.
pub(crate) fn rotate(draft: &mut Draft<'_>, request: &Request<'_>, env: &Environment<'_>) {
    draft.order(Order::<fn(IpAddr) -> u32>::Rotated(chance(request, env)));
}

/// Returns a number that differs from query to query and that nobody outside can foretell.
fn chance(request: &Request<'_>, env: &Environment<'_>) -> u64 {
    let query = env.now.monotonic_ms << 16 ^ u64::from(request.query.header.id);
    env.key.mix(request.sought.hash(), query)
}

/// Returns how many bits two addresses do not have in common at their start; the most for addresses
/// of different kinds.
fn distance(client: IpAddr, address: IpAddr) -> u32 {
    match (client, address) {
        (IpAddr::V4(one), IpAddr::V4(other)) => 32 - (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => 128 - (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => u32::MAX,
    }
}
