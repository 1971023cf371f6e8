//! What was learned before, and what is learned now.

use std::net::IpAddr;
use std::sync::Arc;

use cache::claims::{Claims, Worker};
use cache::cuts::{Cut, Ds};
use cache::proofs::{NewProof, Proofs};
use cache::rrsets::{
    Found, Negative, NewNegative, NewRrset, Partition, Rank, Reference, Renewal, Rrset, RrsetKey, Rrsets,
};
use cache::servers::Servers;
use cache::{Now, Security};
use wire::{Class, HashKey, Name, NameBuf, Rtype};

use crate::addresses::address;
use crate::delegation::{Delegation, DsState, NameServer, with_cut};
use crate::failures::Failures;
use crate::heap_name::{HeapName, HeapQuestion};
use crate::scrub::{Answer, Beside, Denial, Referral, Set};
use crate::zone_rates::ZoneRates;

/// The tables that all workers share.
#[derive(Clone)]
pub struct Tables {
    /// RRsets, negative answers and delegations.
    pub rrsets: Arc<Rrsets>,
    /// Facts about servers.
    pub servers: Arc<Servers>,
    /// Ranges of names that do not exist.
    pub proofs: Arc<Proofs>,
    /// Questions that failed a short time ago.
    pub failures: Arc<Failures>,
    /// How often the servers of each zone are asked.
    pub rates: Arc<ZoneRates>,
    /// What is being fetched, and by whom.
    pub claims: Arc<Claims>,
    /// Whoever works with them: each worker has another number.
    pub worker: Worker,
}

/// What the tables know of a question.
pub(crate) enum Known {
    Data(Set),
    /// The name is an alias: its CNAME RRset.
    Alias(Set),
    NoData(Denied),
    NoName(Denied),
}

/// A denial that is known, and what it leans on.
pub(crate) struct Denied {
    pub(crate) soa: Set,
    /// NSEC and NSEC3 RRsets.
    pub(crate) proofs: Vec<Set>,
    pub(crate) security: Security,
}

/// How an answer is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// For who sets CD alone.
    pub(crate) unchecked: bool,
    /// Whether it was asked for before its end.
    pub(crate) renewal: Renewal,
}

/// One resolver's part of the tables, and the room in which entries are read.
pub(crate) struct Memory {
    pub(crate) tables: Tables,
    pub(crate) partition: Partition,
    /// Whether only what was validated counts, except for who wants the rest.
    validates: bool,
    room: Vec<u8>,
    recent: Recent,
}

/// Delegations that were read a short time ago: those of top-level domains are wanted for nearly
/// every question, and take longer to be read than to be found.
#[derive(Default)]
struct Recent(Vec<Place>);

/// The place of one delegation.
#[derive(Clone, Default)]
struct Place {
    /// The hash of the zone that was wanted last. Only one that is wanted again is kept: most zones
    /// are not.
    wanted: u64,
    read: Option<Read>,
}

/// A delegation, and the octets that it was read from.
#[derive(Clone)]
struct Read {
    octets: Box<[u8]>,
    delegation: Arc<Delegation>,
}

/// Delegations that are kept as they were read, each in the place that its zone's hash says.
const RECENT: usize = 256;
/// Octets of one at most: most have a few hundred.
const RECENT_OCTETS_MAX: usize = 1024;

impl Recent {
    /// Returns what the table has, as it was read before if it is the same.
    fn delegation(&mut self, cut: &Cut<'_>, hash_key: &HashKey) -> Arc<Delegation> {
        let octets = cut.as_bytes();
        if octets.len() > RECENT_OCTETS_MAX {
            return Arc::new(Delegation::of(cut));
        }
        if self.0.is_empty() {
            self.0.resize(RECENT, Place::default());
        }
        let hash = hash_key.hash_name(cut.zone);
        let Some(place) = self.0.get_mut(hash as usize % RECENT) else {
            return Arc::new(Delegation::of(cut));
        };
        if let Some(Read { octets: known, delegation }) = &place.read
            && **known == *octets
            && delegation.ends_at == cut.ends_at
        {
            return Arc::clone(delegation);
        }
        let delegation = Arc::new(Delegation::of(cut));
        if std::mem::replace(&mut place.wanted, hash) == hash {
            place.read = Some(Read { octets: octets.into(), delegation: Arc::clone(&delegation) });
        }
        delegation
    }
}

impl Memory {
    pub(crate) fn new(tables: Tables, partition: Partition, validates: bool) -> Self {
        Self { tables, partition, validates, room: Vec::new(), recent: Recent::default() }
    }

    /// Asks memory for what answering a question reads first: what is in no cache of the processor
    /// comes together, not one after the other.
    pub(crate) fn prefetch(&self, question: &HeapQuestion) {
        let rrsets = &self.tables.rrsets;
        let key = self.key(question);
        rrsets.prefetch(&key);
        rrsets.prefetch(&key.without_type(rrsets.hash_key()));
        rrsets.prefetch(&key.with_type(rrsets.hash_key(), Rtype::CNAME));
        rrsets.prefetch_cuts(question.place(), self.partition);
    }

    fn key<'q>(&self, question: &'q HeapQuestion) -> RrsetKey<'q> {
        let hash_key = self.tables.rrsets.hash_key();
        let name = question.name.as_name();
        let key = RrsetKey::of_lower_case(hash_key, name, question.rtype, Class::IN, self.partition);
        if question.unchecked { key.unchecked(hash_key) } else { key }
    }

    /// Returns what is known of a question.
    pub(crate) fn look(&mut self, question: &HeapQuestion, now: Now) -> Option<Known> {
        let key = self.key(question);
        let rrsets = &self.tables.rrsets;
        let of_alias = key.with_type(rrsets.hash_key(), Rtype::CNAME);
        rrsets.prefetch(&of_alias);
        let known = self.look_at(question, now);
        // An alias is what these ask for.
        if known.is_some() || matches!(question.rtype, Rtype::CNAME | Rtype::ANY) {
            return known;
        }
        match self.tables.rrsets.look(&of_alias, now, &mut self.room)? {
            Found::Rrset(rrset) => {
                let is_strict = self.validates && !question.unchecked;
                usable(&rrset, is_strict, question.unchecked).map(Known::Alias)
            }
            // That there is no alias says nothing about other types.
            Found::NoData(_) | Found::NoName(_) => None,
        }
    }

    /// Returns what is known of a question, as if no name were an alias.
    pub(crate) fn look_at(&mut self, question: &HeapQuestion, now: Now) -> Option<Known> {
        let key = self.key(question);
        let Self { tables, partition, validates, room, .. } = self;
        let (rrsets, unchecked) = (&tables.rrsets, question.unchecked);
        let without_type = key.without_type(rrsets.hash_key());
        rrsets.prefetch(&without_type);
        let is_strict = *validates && !unchecked;
        let denied = |denial: &Negative<'_>| {
            let counts = !is_strict || denial.security() != Security::Unchecked;
            counts.then(|| denied(rrsets, *partition, denial, unchecked, now)).flatten()
        };
        // Only if nothing is known of the type it may be known that there is no such name.
        let found = match rrsets.look(&key, now, room) {
            Some(found) => found,
            None => rrsets.look(&without_type, now, room)?,
        };
        match found {
            Found::Rrset(rrset) => usable(&rrset, is_strict, unchecked).map(Known::Data),
            Found::NoData(denial) => denied(&denial).map(Known::NoData),
            Found::NoName(denial) => denied(&denial).map(Known::NoName),
        }
    }

    /// Returns the addresses of a name server that are known.
    pub(crate) fn addresses_of(&mut self, name: &HeapName, now: Now) -> Vec<IpAddr> {
        let mut found = Vec::new();
        for rtype in [Rtype::A, Rtype::AAAA] {
            let question =
                HeapQuestion { name: name.clone(), rtype, unchecked: self.validates, subnet: None };
            if let Some(Known::Data(set)) = self.look(&question, now) {
                found.extend(set.data().filter_map(address));
            }
        }
        found
    }

    /// Returns the closest delegation at or above a name.
    pub(crate) fn delegation(&mut self, name: Name<'_>, now: Now) -> Option<Arc<Delegation>> {
        let Self { tables, partition, room, recent, .. } = self;
        let cut = tables.rrsets.closest_cut(name, *partition, now, room)?;
        Some(recent.delegation(&cut, tables.rrsets.hash_key()))
    }

    /// Returns the closest zone at or above a name of which a delegation is known, and what its
    /// parent said of its servers.
    pub(crate) fn referral(&mut self, name: Name<'_>, now: Now) -> Option<(HeapName, Beside)> {
        let Self { tables, partition, room, .. } = self;
        let cut = tables.rrsets.closest_cut(name, *partition, now, room)?;
        let (zone, ttl) = (HeapName::new(cut.zone), cut.ends_at.0.saturating_sub(now.0));
        let (mut servers, mut addresses) = (Vec::new(), Vec::new());
        for (name, glue) in cut.servers() {
            let host = HeapName::new(name.as_name());
            servers.push(name.as_name().as_bytes().into());
            let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
            for address in glue {
                match address {
                    IpAddr::V4(address) => ipv4.push(address.octets().as_slice().into()),
                    IpAddr::V6(address) => ipv6.push(address.octets().as_slice().into()),
                }
            }
            for (rtype, data) in [(Rtype::A, ipv4), (Rtype::AAAA, ipv6)] {
                if !data.is_empty() {
                    addresses.push(Set::new(host.clone(), rtype, ttl, data));
                }
            }
        }
        let servers = vec![Set::new(zone.clone(), Rtype::NS, ttl, servers)];
        Some((zone, Beside { servers, addresses }))
    }

    /// Returns the addresses that the parent of a name server's own zone gave for it.
    pub(crate) fn glue_of(&mut self, server: Name<'_>, now: Now) -> Vec<IpAddr> {
        let Self { tables, partition, room, .. } = self;
        let Some(cut) = tables.rrsets.closest_cut(server, *partition, now, room) else { return Vec::new() };
        let own = cut.servers().filter(|(name, _)| name.as_name() == server);
        own.flat_map(|(_, glue)| glue).collect()
    }

    /// Keeps what a server of a zone answered.
    pub(crate) fn keep_answer(&self, answer: &Answer, qtype: Rtype, how: Keep, now: Now) {
        for (at, set) in answer.sets.iter().enumerate() {
            // Without the DNAME that it was made from, nobody can check it.
            let is_bare = set.security == Security::Secure && set.signatures.is_empty();
            if self.counts(set.security, how.unchecked) && !(at > 0 && is_bare) {
                self.keep(set, Rank::Answer, how, now);
                self.keep_wildcard(set, now);
            }
        }
        if let Some(denial) = &answer.denial
            && self.counts(denial.security, how.unchecked)
        {
            self.keep_denial(denial, &answer.proofs, qtype, how, now);
        }
    }

    /// Keeps what something was made from, for other names.
    fn keep_wildcard(&self, set: &Set, now: Now) {
        let above = set.owner.as_name().suffix(usize::from(set.labels_signed));
        if set.is_expanded()
            && let Ok(wildcard) = NameBuf::below(b"\x01*", above)
        {
            let set = Set { owner: HeapName::new(wildcard.as_name()), ..set.clone() };
            self.keep(&set, Rank::Answer, Keep { unchecked: false, renewal: Renewal::No }, now);
        }
    }

    /// Keeps the ranges of names that do not exist, of those proofs that were found good; the SOA
    /// record that came with them says for how long. `unix_now` is when they are used.
    pub(crate) fn keep_ranges(&self, proofs: &[Set], soa: Option<&Set>, now: Now, unix_now: u32) {
        for set in proofs.iter().filter(|set| set.security == Security::Secure) {
            let ([rdata], Some(signature)) = (&*set.records, set.signatures.first()) else { continue };
            let zone = set.owner.as_name().suffix(usize::from(set.signer_labels));
            let negative_ttl = soa.filter(|soa| soa.owner.as_name() == zone).map_or(set.ttl, |soa| soa.ttl);
            let new = NewProof {
                partition: self.partition,
                zone,
                owner: set.owner.as_name(),
                rtype: set.rtype,
                rdata,
                signatures: &[signature],
                ttl: set.ttl,
                negative_ttl,
            };
            let _ = self.tables.proofs.put(&new, now, unix_now);
        }
    }

    /// Keeps the DS records of a referral, which were found good, for who asks for them: a
    /// validator behind this one asks for those of every zone.
    pub(crate) fn keep_ds(&self, ds: &Set, now: Now) {
        self.keep(ds, Rank::Authority, Keep { unchecked: false, renewal: Renewal::No }, now);
    }

    /// Has a delegation that is known end at this time, if it lasts longer.
    pub(crate) fn shorten_cut(&mut self, zone: Name<'_>, ends_at: Now, now: Now) {
        let Self { tables, partition, room, .. } = self;
        let Some(cut) = tables.rrsets.cut(zone, *partition, now, room).filter(|cut| cut.ends_at > ends_at)
        else {
            return;
        };
        let servers = cut.servers().map(|(name, glue)| NameServer {
            name: HeapName::new(name.as_name()),
            glue: glue.into_iter().collect(),
        });
        let servers: Vec<NameServer> = servers.collect();
        let ds = Delegation::of(&cut).ds;
        with_cut(&servers, &ds, (ends_at.0.saturating_sub(now.0), ends_at), |cut| {
            let _ = tables.rrsets.put_cut(zone, *partition, cut, now);
        });
    }

    /// Has name servers and their addresses beside an answer end when they did as they were seen
    /// first: that they come with each answer again does not make a delegation last.
    pub(crate) fn age_beside(&mut self, beside: &mut Beside, unchecked: bool, now: Now) {
        let Self { tables, partition, room, .. } = self;
        let (rrsets, hash_key) = (&tables.rrsets, tables.rrsets.hash_key());
        for set in beside.servers.iter_mut().chain(&mut beside.addresses) {
            let owner = set.owner.as_name();
            let key = RrsetKey::of_lower_case(hash_key, owner, set.rtype, Class::IN, *partition);
            let key = if unchecked { key.unchecked(hash_key) } else { key };
            let mark = rrsets.reference_mark(set.data());
            let mut ttl_of = |key: &RrsetKey<'_>| match rrsets.look(key, now, room) {
                Some(Found::Rrset(known)) if rrsets.reference_mark(known.records()) == mark => {
                    Some(known.ttl)
                }
                _ => None,
            };
            let known = ttl_of(&key).or_else(|| ttl_of(&key.beside(hash_key)));
            match known {
                Some(ttl) => set.ttl = set.ttl.min(ttl),
                None => keep_beside(rrsets, &key.beside(hash_key), set, now),
            }
        }
    }

    /// Keeps that no name servers stand beside answers of a zone, unless some are known.
    pub(crate) fn keep_nothing_beside(&self, zone: Name<'_>, ttl: u32, unchecked: bool, now: Now) {
        let (rrsets, hash_key) = (&self.tables.rrsets, self.tables.rrsets.hash_key());
        let key = RrsetKey::of_lower_case(hash_key, zone, Rtype::NS, Class::IN, self.partition);
        let key = if unchecked { key.unchecked(hash_key) } else { key };
        let new = NewNegative {
            references: &[],
            ttl,
            // Whatever stands there takes its place.
            rank: Rank::Additional,
            security: Security::Unchecked,
            signer_labels: 0,
            renewal: Renewal::No,
        };
        let _ = rrsets.put_negative(&key.beside(hash_key), &new, now);
    }

    /// Returns what is known to stand beside answers of a zone: its name servers, and their
    /// addresses as far as they are in it, or nothing; `None` if that is not known. Beside a secure
    /// answer all of it is (`is_secure`).
    pub(crate) fn beside_of(
        &mut self,
        zone: Name<'_>,
        (is_secure, unchecked): (bool, bool),
        now: Now,
    ) -> Option<Beside> {
        let how = (is_secure, unchecked);
        let Some(servers) = self.look_beside(zone, Rtype::NS, how, now) else {
            return self.has_nothing_beside(zone, unchecked, now).then(Beside::default);
        };
        let mut addresses = Vec::new();
        let hosts = servers.data().filter_map(|data| Name::parse(data).ok()).map(|(host, _)| host);
        for host in hosts.filter(|host| host.is_at_or_below(zone)) {
            for rtype in [Rtype::A, Rtype::AAAA] {
                addresses.extend(self.look_beside(host, rtype, how, now));
            }
        }
        Some(Beside { servers: vec![servers], addresses })
    }

    fn has_nothing_beside(&mut self, zone: Name<'_>, unchecked: bool, now: Now) -> bool {
        let Self { tables, partition, room, .. } = self;
        let (rrsets, hash_key) = (&tables.rrsets, tables.rrsets.hash_key());
        let key = RrsetKey::of_lower_case(hash_key, zone, Rtype::NS, Class::IN, *partition);
        let key = if unchecked { key.unchecked(hash_key) } else { key };
        matches!(rrsets.look(&key.beside(hash_key), now, room), Some(Found::NoData(_)))
    }

    /// Returns what is known to stand beside an answer, of this name and type.
    pub(crate) fn look_beside(
        &mut self,
        owner: Name<'_>,
        rtype: Rtype,
        (is_secure, unchecked): (bool, bool),
        now: Now,
    ) -> Option<Set> {
        let Self { tables, partition, room, .. } = self;
        let (rrsets, hash_key) = (&tables.rrsets, tables.rrsets.hash_key());
        let key = RrsetKey::of_lower_case(hash_key, owner, rtype, Class::IN, *partition);
        let key = if unchecked { key.unchecked(hash_key) } else { key };
        [key, key.beside(hash_key)].iter().find_map(|key| match rrsets.look(key, now, room)? {
            Found::Rrset(rrset) => Some(set(&rrset)).filter(|set| match set.security {
                Security::Secure => true,
                Security::Insecure | Security::Indeterminate | Security::Unchecked => !is_secure,
                Security::Bogus => false,
            }),
            Found::NoData(_) | Found::NoName(_) => None,
        })
    }

    fn counts(&self, security: Security, unchecked: bool) -> bool {
        let is_known = !matches!(security, Security::Unchecked | Security::Bogus);
        !self.validates || unchecked || is_known
    }

    fn keep(&self, set: &Set, rank: Rank, Keep { unchecked, renewal }: Keep, now: Now) {
        let rrsets = &self.tables.rrsets;
        let (mut few, mut many) = ([&[][..]; FEW], Vec::new());
        let records = slices(&set.records, &mut few, &mut many);
        let (mut few, mut many) = ([&[][..]; FEW], Vec::new());
        let signatures = slices(&set.signatures, &mut few, &mut many);
        let owner = set.owner.as_name();
        let key = RrsetKey::of_lower_case(rrsets.hash_key(), owner, set.rtype, Class::IN, self.partition);
        let key = if unchecked { key.unchecked(rrsets.hash_key()) } else { key };
        let new = NewRrset {
            records,
            signatures,
            ttl: set.ttl,
            rank,
            security: if unchecked { Security::Unchecked } else { set.security },
            signer_labels: set.signer_labels,
            labels_signed: set.labels_signed,
            renewal,
        };
        let _ = rrsets.put(&key, &new, now);
    }

    /// Keeps a denial with the SOA record and the proofs that it leans on; without the SOA it is
    /// not kept (RFC 2308 §5).
    fn keep_denial(&self, denial: &Denial, proofs: &[Set], qtype: Rtype, how: Keep, now: Now) {
        let Some(soa) = &denial.soa else { return };
        let Keep { unchecked, renewal } = how;
        let rrsets = &self.tables.rrsets;
        let proofs = proofs.iter().filter(|proof| self.counts(proof.security, unchecked));
        let sets: Vec<&Set> = std::iter::once(soa).chain(proofs).collect();
        for set in &sets {
            self.keep(set, Rank::Authority, how, now);
        }
        let name = denial.name.as_name();
        let key = RrsetKey::of_lower_case(rrsets.hash_key(), name, qtype, Class::IN, self.partition);
        let key = if denial.is_of_name { key.without_type(rrsets.hash_key()) } else { key };
        let key = if unchecked { key.unchecked(rrsets.hash_key()) } else { key };
        let references = sets.iter().map(|set| Reference {
            owner: set.owner.as_name(),
            rtype: set.rtype,
            mark: rrsets.reference_mark(set.data()),
        });
        let new = NewNegative {
            references: &references.collect::<Vec<_>>(),
            ttl: sets.iter().map(|set| set.ttl).min().unwrap_or(0),
            rank: Rank::Answer,
            security: if unchecked { Security::Unchecked } else { denial.security },
            signer_labels: soa.signer_labels,
            renewal,
        };
        let _ = rrsets.put_negative(&key, &new, now);
    }

    /// Keeps a delegation and returns it. It ends with its TTL, or with the one it was found under.
    pub(crate) fn keep_referral(
        &mut self,
        referral: Referral,
        ds: DsState,
        parent_ends_at: Now,
        now: Now,
    ) -> Delegation {
        let Referral { zone, servers, ttl, .. } = referral;
        let ends_at = Now(now.0.saturating_add(ttl)).min(parent_ends_at);
        // Who did not look at the DS records must not make others forget them.
        let is_known = self.validates
            && ds == DsState::Unknown
            && self
                .tables
                .rrsets
                .cut(zone.as_name(), self.partition, now, &mut self.room)
                .is_some_and(|cut| !matches!(cut.ds(), Ds::Unknown));
        if !is_known {
            with_cut(&servers, &ds, (ttl, parent_ends_at), |cut| {
                let _ = self.tables.rrsets.put_cut(zone.as_name(), self.partition, cut, now);
            });
        }
        Delegation::new(zone, servers, ends_at, ds)
    }
}

fn keep_beside(rrsets: &Rrsets, key: &RrsetKey<'_>, set: &Set, now: Now) {
    let records: Vec<&[u8]> = set.data().collect();
    let signatures: Vec<&[u8]> = set.signatures.iter().map(|data| &**data).collect();
    let new = NewRrset {
        records: &records,
        signatures: &signatures,
        ttl: set.ttl,
        rank: Rank::Answer,
        security: set.security,
        signer_labels: set.signer_labels,
        labels_signed: set.labels_signed,
        // What stands there says something else.
        renewal: Renewal::Delegated,
    };
    let _ = rrsets.put(key, &new, now);
}

/// Records of an RRset that are passed on without memory of their own.
const FEW: usize = 4;

/// Returns data as slices, for which there is room in `few`, or else in `many`.
fn slices<'s, 'd: 's>(
    data: &'d [Box<[u8]>],
    few: &'s mut [&'d [u8]; FEW],
    many: &'s mut Vec<&'d [u8]>,
) -> &'s [&'d [u8]] {
    if data.len() > FEW {
        many.extend(data.iter().map(|data| &**data));
        return many;
    }
    for (room, data) in few.iter_mut().zip(data) {
        *room = data;
    }
    few.get(..data.len()).unwrap_or(&[])
}

/// Copies an RRset, if it counts: where data has to be proved (`is_strict`), what somebody judged
/// counts; what may be made from a wildcard, whose proof is not kept with it, counts only for who
/// wants it `unchecked`.
fn usable(rrset: &Rrset<'_>, is_strict: bool, unchecked: bool) -> Option<Set> {
    let set = set(rrset);
    let counts = !is_strict || set.security != Security::Unchecked;
    (counts && (unchecked || !set.is_expanded())).then_some(set)
}

/// Copies an RRset.
fn set(rrset: &Rrset<'_>) -> Set {
    Set {
        signatures: rrset.signatures().map(Into::into).collect(),
        security: rrset.security,
        signer_labels: rrset.signer_labels,
        labels_signed: rrset.labels_signed,
        ..Set::new(
            HeapName::new(rrset.owner),
            rrset.rtype,
            rrset.ttl,
            rrset.records().map(Into::into).collect(),
        )
    }
}

/// Returns what a denial leans on, if all of that still says the same.
fn denied(
    rrsets: &Rrsets,
    partition: Partition,
    denial: &Negative<'_>,
    unchecked: bool,
    now: Now,
) -> Option<Denied> {
    let mut room = Vec::new();
    let mut sets = denial.references().map(|reference| {
        let owner = reference.owner.as_name().to_folded();
        let key = RrsetKey::new(rrsets.hash_key(), &owner, reference.rtype, Class::IN, partition);
        let key = if unchecked { key.unchecked(rrsets.hash_key()) } else { key };
        match rrsets.look(&key, now, &mut room)? {
            Found::Rrset(rrset) if rrsets.reference_mark(rrset.records()) == reference.mark => {
                Some(Set { ttl: rrset.ttl.min(denial.ttl()), ..set(&rrset) })
            }
            _ => None,
        }
    });
    let soa = sets.next()??;
    let proofs = sets.collect::<Option<Vec<Set>>>()?;
    (soa.rtype == Rtype::SOA).then(|| Denied { soa, proofs, security: denial.security() })
}
