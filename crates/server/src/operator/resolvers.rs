//! Resolvers, as their operator sees them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use cache::cuts::Ds;
use cache::proofs::Proofs;
use cache::rrsets::RrsetFlush;
use cache::servers::{Edns, Facts, LetterCase, NowMs};
use control::api::{self, NegativeOrder, ResolverFlush};
use driver::{Learned, StoredOf};
use jobs::anchors::{AnchorState, Finding, KeyEntry, NegativeEntry, NegativeError, Source, state_word};
use wire::Name;

use super::caches::{name_of, rtype_of};
use super::{Operator, OperatorError, What, unix_seconds};
use crate::lock;

/// Servers that one look shows.
const SERVERS_SHOWN_MAX: usize = 1000;

impl Operator {
    /// Says how full the tables of resolvers are, that of servers included.
    ///
    /// # Errors
    ///
    /// There is no such resolver.
    pub fn resolver_stats(
        &self,
        only: Option<&str>,
    ) -> Result<BTreeMap<String, api::CacheStats>, OperatorError> {
        let shown = |stats: cache::Stats| api::CacheStats {
            entries: stats.entries,
            octets: stats.octets as u64,
            octets_max: stats.octets_max as u64,
            inserts: stats.inserts,
            evictions: stats.evictions,
        };
        let sum = |learned: &Learned| {
            let (rrsets, proofs) = (learned.rrsets.stats(), learned.proofs.stats());
            cache::Stats {
                entries: rrsets.entries + proofs.entries,
                octets: rrsets.octets + proofs.octets,
                octets_max: rrsets.octets_max + proofs.octets_max,
                inserts: rrsets.inserts + proofs.inserts,
                evictions: rrsets.evictions + proofs.evictions,
            }
        };
        let tables = self.resolver_learned(only)?;
        let mut all: BTreeMap<_, _> =
            tables.into_iter().map(|learned| (learned.name.clone(), shown(sum(&learned)))).collect();
        // No resolver has this name: names have no spaces.
        all.insert("all servers".to_owned(), shown(self.components.resolver_tables.servers().stats()));
        Ok(all)
    }

    /// Says what is known of the servers that resolvers have asked.
    pub fn resolver_servers(&self) -> api::ResolverServers {
        let table = self.components.resolver_tables.servers();
        let since_boot = self.facts.clock.since_boot();
        let now = NowMs(u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX));
        let mut all = Vec::new();
        table.for_each(now, |address, facts| {
            all.push((facts.round_trip.map_or(u32::MAX, |it| it.smoothed_us), address, *facts));
        });
        all.sort_by_key(|(round_trip_us, address, _)| (*round_trip_us, *address));
        let is_cut_short = all.len() > SERVERS_SHOWN_MAX;
        all.truncate(SERVERS_SHOWN_MAX);
        let servers = all
            .into_iter()
            .map(|(_, address, facts)| described(address, &facts, table.cookie(address).is_some()));
        api::ResolverServers { servers: servers.collect(), is_cut_short }
    }

    /// Says how often the servers of each zone are asked, and how often they may be: of zones with
    /// a limit that were asked in the last two seconds. Zero: as often as one likes.
    pub fn zone_rates(&self) -> Vec<(String, u32, u32)> {
        let loaded = self.loaded();
        let rules = || loaded.settings.resolvers.iter().map(|resolver| &resolver.rules.zone_rates);
        let limit = |zone: Name<'_>| {
            rules().map(|rules| rules.limit_of(zone)).filter(|&limit| limit > 0).min().unwrap_or(0)
        };
        let all = self.components.resolver_tables.zone_rates(self.facts.clock.since_boot());
        all.into_iter().map(|it| (it.zone.to_string(), it.per_second, limit(it.zone.as_name()))).collect()
    }

    /// Says which clients were over the rate limit in the last two seconds, with how many queries
    /// in a second, and how many they may have.
    pub fn limited_clients(&self) -> Vec<(IpAddr, u32, u32)> {
        let now_ms = self.facts.clock.since_start().as_millis() as u64;
        lock(&self.view).bans.limited(now_ms)
    }

    /// Shows what is known of every server that resolvers have asked, in no order.
    pub fn each_server(&self, show: impl FnMut(SocketAddr, &Facts)) {
        let since_boot = self.facts.clock.since_boot();
        let now = NowMs(u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX));
        self.components.resolver_tables.servers().for_each(now, show);
    }

    /// Forgets what is known of all servers; says of how many.
    pub fn forget_servers(&self) -> usize {
        self.components.resolver_tables.servers().forget_all()
    }

    /// Has values in second-level caches not count that were written before now.
    pub fn forget_stored(&self, what: StoredOf) {
        self.components.resolver_tables.forget_stored(what, unix_seconds());
    }

    /// Forgets what is known of one server; says whether anything was.
    pub fn forget_server(&self, address: SocketAddr) -> bool {
        self.components.resolver_tables.servers().forget(address)
    }

    /// Says by which servers the closest zone is served that resolvers know to enclose a name.
    ///
    /// # Errors
    ///
    /// There is no such resolver, or the name is none.
    pub fn resolver_zone(
        &self,
        only: Option<&str>,
        name: &str,
    ) -> Result<Vec<api::ResolverZone>, OperatorError> {
        let name = name_of(name)?;
        let now = self.facts.clock.cache_now();
        let mut room = Vec::new();
        let zones = self.resolver_learned(only)?.into_iter().map(|learned| {
            let Learned { name: resolver, rrsets, partition, .. } = learned;
            let Some(cut) = rrsets.closest_cut(name.as_name(), partition, now, &mut room) else {
                let (zone, ds, servers) = (None, "unknown".to_owned(), Vec::new());
                return api::ResolverZone { resolver, zone, holds_for_s: 0, ds, servers };
            };
            let ds = match cut.ds() {
                Ds::Signed(_) => "signed",
                Ds::Unsigned => "unsigned",
                Ds::Unknown => "unknown",
            };
            let servers = cut.servers().map(|(name, addresses)| api::ResolverZoneServer {
                name: name.to_string(),
                addresses: addresses.map(|address| address.to_string()).collect(),
            });
            api::ResolverZone {
                resolver,
                zone: Some(cut.zone.to_string()),
                holds_for_s: cut.ttl,
                ds: ds.to_owned(),
                servers: servers.collect(),
            }
        });
        Ok(zones.collect())
    }

    /// Forgets what resolvers have learned; says how many entries that were.
    ///
    /// # Errors
    ///
    /// There is no such resolver, or what is to be forgotten makes no sense.
    pub fn resolver_flush(
        &self,
        only: Option<&str>,
        what: &ResolverFlush,
    ) -> Result<api::Flushed, OperatorError> {
        let tables = self.resolver_learned(only)?;
        let flush = |what: RrsetFlush<'_>, ranges: &dyn Fn(&Proofs) -> usize| {
            let of_one = |learned: &Learned| learned.rrsets.flush(what) + ranges(&learned.proofs);
            tables.iter().map(of_one).sum::<usize>() as u64
        };
        let removed = match what {
            ResolverFlush::All => {
                // What is known of servers is known by all resolvers.
                let servers = match only {
                    None => self.components.resolver_tables.servers().forget_all(),
                    Some(_) => 0,
                };
                flush(RrsetFlush::All, &|proofs| proofs.flush(Name::ROOT)) + servers as u64
            }
            ResolverFlush::Name(name) => {
                let name = name_of(name)?;
                flush(RrsetFlush::Name(name.as_name()), &|proofs| proofs.flush_name(name.as_name()))
            }
            ResolverFlush::Suffix(name) => {
                let name = name_of(name)?;
                // Ranges of the zone above may say that there is nothing below the name.
                let ranges =
                    |proofs: &Proofs| proofs.flush(name.as_name()) + proofs.flush_name(name.as_name());
                flush(RrsetFlush::Suffix(name.as_name()), &ranges)
            }
            ResolverFlush::Type { name, rtype } => {
                let (name, rtype) = (name_of(name)?, rtype_of(rtype)?);
                flush(RrsetFlush::Type(name.as_name(), rtype), &|proofs| proofs.flush_name(name.as_name()))
            }
            ResolverFlush::Bogus => flush(RrsetFlush::Bogus, &|_| 0),
            ResolverFlush::Negative => flush(RrsetFlush::Negative, &|proofs| proofs.flush(Name::ROOT)),
        };
        self.components.resolver_tables.forget_notes();
        Ok(api::Flushed { removed })
    }

    /// Says what resolvers trust, and how it follows the keys of its zones.
    ///
    /// # Errors
    ///
    /// There is no such resolver, or it does not validate.
    pub fn resolver_anchors(&self, only: Option<&str>) -> Result<Vec<api::ResolverAnchor>, OperatorError> {
        self.check_validates(only)?;
        let mut all = self.components.anchors.states();
        all.retain(|anchor| only.is_none_or(|only| only == anchor.resolver));
        Ok(all.iter().map(anchor).collect())
    }

    /// Shows, adds or removes negative trust anchors; returns those there are then.
    ///
    /// # Errors
    ///
    /// There is no such resolver, what is asked makes no sense, or the settings say so.
    pub fn resolver_negative(
        &self,
        only: Option<&str>,
        order: &NegativeOrder,
    ) -> Result<Vec<api::ResolverNegative>, OperatorError> {
        self.check_validates(only)?;
        let anchors = &self.components.anchors;
        let outcome = match order {
            NegativeOrder::List => Ok(()),
            NegativeOrder::Add { zone, seconds, reason } => {
                if reason.as_ref().is_some_and(|reason| reason.chars().any(char::is_control)) {
                    return Err(OperatorError::Argument("the reason has control characters".to_owned()));
                }
                let lasts = ((*seconds).max(1), reason.as_deref());
                anchors.add_negative(only, name_of(zone)?, lasts).map_err(|error| (zone, error))
            }
            NegativeOrder::Remove { zone } => {
                anchors.remove_negative(only, &name_of(zone)?).map_err(|error| (zone, error))
            }
        };
        outcome.map_err(|(zone, error)| match error {
            NegativeError::InSettings => {
                OperatorError::Refused(format!("the configuration has \"{zone}\" in negative-trust-anchors"))
            }
            NegativeError::Unknown => {
                OperatorError::Argument(format!("there is no negative trust anchor for \"{zone}\""))
            }
            NegativeError::TooLong => {
                OperatorError::Argument("a negative trust anchor lasts a week at most (RFC 7646)".to_owned())
            }
            NegativeError::TooMany => OperatorError::Refused("there are too many already".to_owned()),
        })?;
        let mut all = anchors.negative();
        all.retain(|(resolver, _)| only.is_none_or(|only| only == resolver));
        Ok(all.into_iter().map(negative).collect())
    }

    /// Returns an error if there is no resolver that validates, or not this one.
    fn check_validates(&self, only: Option<&str>) -> Result<(), OperatorError> {
        let all = self.components.anchors.resolvers();
        match only {
            Some(wanted) if !all.iter().any(|name| name == wanted) => {
                Err(OperatorError::not_found(What::Resolver, wanted))
            }
            None if all.is_empty() => Err(OperatorError::Refused("no resolver validates".to_owned())),
            _ => Ok(()),
        }
    }

    /// Returns what all resolvers have learned, or the one with this name.
    fn resolver_learned(&self, only: Option<&str>) -> Result<Vec<Learned>, OperatorError> {
        let mut all = self.components.resolver_tables.learned();
        let Some(wanted) = only else { return Ok(all) };
        all.retain(|learned| learned.name == wanted);
        if all.is_empty() { Err(OperatorError::not_found(What::Resolver, wanted)) } else { Ok(all) }
    }
}

/// Returns a time of the wall; nothing for none.
fn time(unix_seconds: u64) -> Option<String> {
    let seconds = i64::try_from(unix_seconds).ok().filter(|seconds| *seconds > 0)?;
    Some(jiff::Timestamp::from_second(seconds).ok()?.to_string())
}

fn anchor(state: &AnchorState) -> api::ResolverAnchor {
    let key = |key: &KeyEntry| api::ResolverAnchorKey {
        tag: key.tag,
        algorithm: key.algorithm.to_string(),
        state: match (key.state, state.is_followed) {
            (Some(state), _) => state_word(state).to_owned(),
            (None, true) => "unseen".to_owned(),
            (None, false) => "fixed".to_owned(),
        },
        is_trusted: key.is_trusted,
        since: time(key.since),
    };
    api::ResolverAnchor {
        resolver: state.resolver.clone(),
        zone: state.zone.to_string(),
        keys: state.keys.iter().map(key).collect(),
        is_followed: state.is_followed,
        file: state.file.as_ref().map(|file| file.display().to_string()),
        last_probe: time(state.last_probe),
        last_success: time(state.last_success),
        next_probe: time(state.next_probe),
        trouble: state.trouble.clone(),
    }
}

fn negative((resolver, entry): (String, NegativeEntry)) -> api::ResolverNegative {
    api::ResolverNegative {
        resolver,
        zone: entry.zone.to_string(),
        since: time(entry.since),
        until: entry.ends_at.and_then(time),
        is_over: entry.is_over,
        is_added: entry.source == Source::Command,
        reason: entry.reason,
        tested: entry.tested.as_ref().and_then(|(at, _)| time(*at)),
        finding: entry.tested.map(|(_, finding)| match finding {
            Finding::Validates => "it validates".to_owned(),
            Finding::Unsigned => "it is not signed".to_owned(),
            Finding::Fails(why) => why,
        }),
    }
}

fn described(address: SocketAddr, facts: &Facts, has_cookie: bool) -> api::ResolverServer {
    let ms = |us: u32| f64::from(us) / 1000.0;
    api::ResolverServer {
        address: address.to_string(),
        round_trip_ms: facts.round_trip.map(|it| ms(it.smoothed_us)),
        variation_ms: facts.round_trip.map(|it| ms(it.variation_us)),
        silences: facts.silences,
        edns: match facts.edns {
            Edns::Unknown => None,
            Edns::Works => Some("works".to_owned()),
            Edns::UpTo { octets } => Some(format!("up to {octets} octets")),
            Edns::None => Some("none".to_owned()),
        },
        keeps_case: match facts.case {
            LetterCase::Unknown => None,
            LetterCase::Kept => Some(true),
            LetterCase::Changed => Some(false),
        },
        has_cookie,
    }
}
