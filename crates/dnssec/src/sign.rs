//! Signs a zone: keys and proofs are put into it, then every set that lacks a signature gets one.
//!
//! [`Signer::prepare`] is cheap for each name and makes no signature; [`Signer::parts`] hands out
//! the rest in parts that can be worked off on several threads; [`Signer::finish`] makes what
//! depends on all of it.

use std::collections::BTreeMap;

use wire::serial::is_newer;
use wire::{Name, NameBuf, Rtype};

use crate::algorithm::Algorithm;
use crate::bitmap::write_bitmap;
use crate::dnskey::{Dnskey, ENTRY_POINT, ZONE_KEY};
use crate::ds::DigestType;
use crate::ds::{Ds, write_delete_cdnskey, write_delete_cds};
use crate::nsec3::{Nsec3Hash, Nsec3Parameters, owner_of};
use crate::rrset::{Rrset, signed_labels};
use crate::rrsig::Rrsig;
use crate::secret::{SecretKey, Unusable};
use crate::tree::{Node, Set, Standing, Tree};
use crate::zonemd::{ZonemdHash, ZonemdScheme, zonemd_digest};

/// What a key does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUse {
    /// Its DNSKEY is in the zone.
    pub is_published: bool,
    /// It signs DNSKEY, CDS and CDNSKEY.
    pub signs_keys: bool,
    /// It signs everything else.
    pub signs_zone: bool,
    /// CDS and CDNSKEY name it.
    pub is_announced: bool,
}

/// A key that a zone is signed with.
#[derive(Clone, Copy, Debug)]
pub struct SigningKey<'k> {
    /// The key.
    pub secret: &'k SecretKey,
    /// The flags of its DNSKEY.
    pub flags: u16,
    /// What it does.
    pub does: KeyUse,
    /// When its signatures are good, if that is not when those of other keys are.
    pub validity: Option<Validity>,
}

/// How absence is proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// By names (RFC 4034).
    Nsec,
    /// By hashes (RFC 5155).
    Nsec3(Nsec3Parameters),
    /// By a record made for each question (RFC 9824): there are none in the zone.
    Compact,
}

/// When signatures are good, in seconds since 1970 modulo 2^32.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    /// From.
    pub inception: u32,
    /// To.
    pub expiration: u32,
    /// Up to so many seconds earlier, another number for each set, so that they do not all expire
    /// at once.
    pub jitter: u32,
    /// Signatures that are there already are kept if they are good now and expire after this.
    pub keep_after: u32,
    /// The present.
    pub now: u32,
}

/// How a zone is signed.
#[derive(Debug)]
pub struct Signer<'k> {
    /// The keys.
    pub keys: Vec<SigningKey<'k>>,
    /// The TTL of DNSKEY, CDS and CDNSKEY; without one, the SOA's.
    pub dnskey_ttl: Option<u32>,
    /// How absence is proved.
    pub denial: Denial,
    /// When signatures are good.
    pub validity: Validity,
    /// The digests that CDS are made with.
    pub cds_digests: Vec<DigestType>,
    /// Whether CDS and CDNSKEY ask the parent to remove all DS (RFC 8078 §4).
    pub asks_for_removal: bool,
    /// Whether CSYNC says that NS and addresses are to be copied to the parent (RFC 7477).
    pub has_csync: bool,
    /// The digest of the zone as a whole.
    pub zonemd: Option<ZonemdHash>,
}

/// What cannot be signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsignable {
    /// The zone has no SOA.
    NoSoa,
    /// No key signs keys, or none the rest, for an algorithm that a published key has.
    KeyMissing(Algorithm, &'static str),
    /// Two names have the same hash: another salt is needed.
    Collision(Box<NameBuf>),
    /// Two keys of one algorithm have the same tag.
    SameTag(u16),
    /// A record that cannot be read.
    Malformed(Box<NameBuf>, Rtype),
    /// A key that cannot be used.
    Key(Unusable),
}

impl std::fmt::Display for Unsignable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSoa => f.write_str("the zone has no SOA"),
            Self::KeyMissing(algorithm, what) => {
                write!(f, "no key of algorithm {algorithm} signs {what}")
            }
            Self::Collision(name) => {
                write!(f, "{name} has the same NSEC3 hash as another name; choose another salt")
            }
            Self::SameTag(tag) => write!(f, "two keys have the tag {tag}"),
            Self::Malformed(owner, rtype) => write!(f, "{owner} has {rtype} data that cannot be read"),
            Self::Key(unusable) => std::fmt::Display::fmt(unusable, f),
        }
    }
}

impl std::error::Error for Unsignable {}

/// What signing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signed {
    /// Signatures that were made.
    pub made: usize,
    /// Signatures that were there and stayed.
    pub kept: usize,
    /// When the first of all signatures expires; meaningless without signatures.
    pub first_expiration: Option<u32>,
}

impl Signed {
    /// Adds what another part did.
    pub fn add(&mut self, other: Self) {
        self.made += other.made;
        self.kept += other.kept;
        self.note(other.first_expiration);
    }

    fn note(&mut self, expiration: Option<u32>) {
        self.first_expiration = match (self.first_expiration, expiration) {
            (Some(a), Some(b)) => Some(if is_newer(b, a) { a } else { b }),
            (a, b) => a.or(b),
        };
    }
}

/// Names and hashes to be signed.
pub struct Part<'t> {
    apex: NameBuf,
    nodes: Vec<&'t mut Node>,
    hashed: Vec<(Nsec3Hash, &'t mut Set)>,
}

impl Part<'_> {
    /// Returns how many names are in it.
    pub fn len(&self) -> usize {
        self.nodes.len() + self.hashed.len()
    }

    /// Returns whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Types whose sets the keys' keys sign.
const fn is_of_keys(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::DNSKEY | Rtype::CDS | Rtype::CDNSKEY)
}

impl Signer<'_> {
    /// Puts keys, what stands for them, and proofs into the zone. What was right before stays, with
    /// its signatures; keys that are not ours stay too.
    ///
    /// `former` are the keys that were ours once: their DNSKEYs leave the zone.
    pub fn prepare(&self, tree: &mut Tree, former: &[Vec<u8>]) -> Result<(), Unsignable> {
        self.check_keys()?;
        let (soa, soa_ttl) = tree.soa().ok_or(Unsignable::NoSoa)?;
        let serial = soa.serial();
        // RFC 9077: proofs live as long as negative answers.
        let proof_ttl = soa_ttl.min(soa.minimum());
        let key_ttl = self.dnskey_ttl.unwrap_or(soa_ttl);
        let apex = tree.apex().to_buf();
        let node = tree.apex_node_mut().ok_or(Unsignable::NoSoa)?;
        let ours: Vec<(Vec<u8>, KeyUse)> =
            self.keys.iter().map(|key| (key.secret.dnskey(key.flags), key.does)).collect();
        let foreign = node.set(Rtype::DNSKEY).map_or(Vec::new(), |set| {
            set.records()
                .filter(|rdata| !former.iter().any(|key| key == rdata))
                .filter(|rdata| !ours.iter().any(|(key, _)| key == rdata))
                .map(<[u8]>::to_vec)
                .collect()
        });
        let published = ours.iter().filter(|(_, does)| does.is_published).map(|(key, _)| key.clone());
        node.replace(Rtype::DNSKEY, key_ttl, published.chain(foreign).collect());
        // The operator's own records stay where there is nothing to publish.
        let (cds, cdnskey) = self.announced(apex.as_name(), &ours);
        for (rtype, records) in [(Rtype::CDS, cds), (Rtype::CDNSKEY, cdnskey)] {
            if !records.is_empty() {
                node.replace(rtype, key_ttl, records);
            }
        }
        if self.has_csync {
            // Immediate, and only from this serial on (RFC 7477 §2.1.1).
            let mut rdata = serial.to_be_bytes().to_vec();
            rdata.extend([0, 3]);
            write_bitmap([Rtype::NS, Rtype::A, Rtype::AAAA], &mut rdata);
            let is_there = node
                .set(Rtype::CSYNC)
                .is_some_and(|set| set.records().any(|record| record.get(4..) == rdata.get(4..)));
            if !is_there {
                node.replace(Rtype::CSYNC, soa_ttl, vec![rdata]);
            }
        }
        if let Some(hash) = self.zonemd {
            // A place for the digest, so that the proofs know of it (RFC 8976 §3.1).
            let rdata = hash.write(serial, &vec![0; hash.octets()]);
            let is_placed = node.set(Rtype::ZONEMD).is_some_and(|set| {
                set.ttl == soa_ttl
                    && set.records.len() == 1
                    && set.records().all(|record| record.get(..6) == rdata.get(..6))
            });
            if !is_placed {
                node.replace(Rtype::ZONEMD, soa_ttl, vec![rdata]);
            }
        }
        let parameters = match &self.denial {
            Denial::Nsec | Denial::Compact => Vec::new(),
            Denial::Nsec3(parameters) => vec![parameters.write()],
        };
        node.replace(Rtype::NSEC3PARAM, 0, parameters);
        tree.settle();
        match &self.denial {
            Denial::Nsec => {
                tree.hashed.clear();
                chain_names(tree, proof_ttl);
                Ok(())
            }
            Denial::Nsec3(parameters) => chain_hashes(tree, parameters, proof_ttl),
            Denial::Compact => {
                tree.hashed.clear();
                for node in tree.names.values_mut() {
                    node.sets.retain(|set| set.rtype != Rtype::NSEC);
                }
                tree.names.retain(|_, node| node.has_records());
                Ok(())
            }
        }
    }

    fn check_keys(&self) -> Result<(), Unsignable> {
        let mut tags: Vec<(Algorithm, u16)> = Vec::new();
        for key in &self.keys {
            let algorithm = key.secret.algorithm();
            let rdata = key.secret.dnskey(key.flags);
            let tag = Dnskey::parse(&rdata).map_or(0, Dnskey::tag);
            if tags.contains(&(algorithm, tag)) {
                return Err(Unsignable::SameTag(tag));
            }
            tags.push((algorithm, tag));
            // RFC 4035 §2.2: every algorithm of the DNSKEY set signs everything.
            let published = |key: &&SigningKey<'_>| key.does.is_published;
            let same = || self.keys.iter().filter(|other| other.secret.algorithm() == algorithm);
            if same().any(|key| published(&key)) {
                if !same().any(|key| key.does.signs_keys) {
                    return Err(Unsignable::KeyMissing(algorithm, "the keys"));
                }
                if !same().any(|key| key.does.signs_zone) {
                    return Err(Unsignable::KeyMissing(algorithm, "the zone"));
                }
            }
        }
        Ok(())
    }

    /// Returns the data of CDS and CDNSKEY.
    fn announced(&self, apex: Name<'_>, ours: &[(Vec<u8>, KeyUse)]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        if self.asks_for_removal {
            return (vec![write_delete_cds()], vec![write_delete_cdnskey()]);
        }
        let keys: Vec<&Vec<u8>> =
            ours.iter().filter(|(_, does)| does.is_announced).map(|(key, _)| key).collect();
        let cds = keys
            .iter()
            .filter_map(|key| Dnskey::parse(key))
            .flat_map(|key| self.cds_digests.iter().filter_map(move |&digest| Ds::write(apex, key, digest)))
            .collect();
        (cds, keys.into_iter().cloned().collect())
    }

    /// Hands the zone out in `count` parts, each to be given to [`Signer::sign_part`].
    pub fn parts<'t>(&self, tree: &'t mut Tree, count: usize) -> Vec<Part<'t>> {
        let count = count.max(1);
        let apex = tree.apex().to_buf();
        let mut parts: Vec<Part<'t>> =
            (0..count).map(|_| Part { apex, nodes: Vec::new(), hashed: Vec::new() }).collect();
        let share = (tree.names.len() + tree.hashed.len()).div_ceil(count).max(1);
        let hashed_from = tree.names.len();
        for (index, node) in tree.names.values_mut().enumerate() {
            if let Some(part) = parts.get_mut(index / share) {
                part.nodes.push(node);
            }
        }
        for (index, (hash, set)) in tree.hashed.iter_mut().enumerate() {
            if let Some(part) = parts.get_mut((hashed_from + index) / share) {
                part.hashed.push((*hash, set));
            }
        }
        parts
    }

    /// Makes the signatures that a part lacks, and removes those that do not belong there. `told`
    /// hears of each name that is done; when it returns false, the rest of the part stays as it is.
    pub fn sign_part(&self, part: Part<'_>, mut told: impl FnMut() -> bool) -> Result<Signed, Unsignable> {
        let mut done = Signed::default();
        let apex = part.apex.as_name();
        let mut work = Work::default();
        for node in part.nodes {
            let Node { owner, sets, standing } = node;
            let Ok((owner, _)) = Name::parse(owner) else { continue };
            for set in sets.iter_mut() {
                // A set that has only signatures has nothing that they could be of.
                let is_signed = !set.records.is_empty()
                    && match *standing {
                        Standing::Within => true,
                        Standing::Cut => matches!(set.rtype, Rtype::DS | Rtype::NSEC),
                        Standing::Hidden => false,
                    };
                // The digest of the zone is signed last.
                if !is_signed || (set.rtype == Rtype::ZONEMD && self.zonemd.is_some() && owner == apex) {
                    if !is_signed {
                        set.signatures.clear();
                    }
                    continue;
                }
                self.sign_set(apex, owner, set, &mut work, &mut done)?;
            }
            if !told() {
                return Ok(done);
            }
        }
        for (hash, set) in part.hashed {
            if let Some(owner) = owner_of(&hash, apex) {
                self.sign_set(apex, owner.as_name(), set, &mut work, &mut done)?;
            }
            if !told() {
                return Ok(done);
            }
        }
        Ok(done)
    }

    /// Makes what depends on the whole zone: its digest.
    pub fn finish(&self, tree: &mut Tree) -> Result<Signed, Unsignable> {
        let mut done = Signed::default();
        let Some(hash) = self.zonemd else { return Ok(done) };
        let serial = tree.soa().map(|(soa, _)| soa.serial()).ok_or(Unsignable::NoSoa)?;
        let digest = zonemd_digest(tree, ZonemdScheme::SIMPLE, hash).ok_or(Unsignable::NoSoa)?;
        let apex = tree.apex().to_buf();
        let node = tree.apex_node_mut().ok_or(Unsignable::NoSoa)?;
        let ttl = node.set(Rtype::SOA).map_or(0, |set| set.ttl);
        node.replace(Rtype::ZONEMD, ttl, vec![hash.write(serial, &digest)]);
        if let Some(set) = node.sets.iter_mut().find(|set| set.rtype == Rtype::ZONEMD) {
            self.sign_set(apex.as_name(), apex.as_name(), set, &mut Work::default(), &mut done)?;
        }
        Ok(done)
    }

    /// Signs a whole zone on the caller's thread.
    pub fn sign(&self, tree: &mut Tree, former: &[Vec<u8>]) -> Result<Signed, Unsignable> {
        self.prepare(tree, former)?;
        let mut done = Signed::default();
        for part in self.parts(tree, 1) {
            done.add(self.sign_part(part, || true)?);
        }
        done.add(self.finish(tree)?);
        Ok(done)
    }

    fn sign_set(
        &self,
        apex: Name<'_>,
        owner: Name<'_>,
        set: &mut Set,
        work: &mut Work,
        done: &mut Signed,
    ) -> Result<(), Unsignable> {
        let labels = signed_labels(owner);
        let before = std::mem::take(&mut set.signatures);
        let mut rrset = None;
        for key in &self.keys {
            let signs = if is_of_keys(set.rtype) { key.does.signs_keys } else { key.does.signs_zone };
            if !signs {
                continue;
            }
            let validity = key.validity.unwrap_or(self.validity);
            let rdata = key.secret.dnskey(key.flags);
            let tag = Dnskey::parse(&rdata).map_or(0, Dnskey::tag);
            let is_kept = |signature: &[u8]| {
                Rrsig::parse(signature).is_some_and(|rrsig| {
                    rrsig.tag == tag
                        && rrsig.algorithm == key.secret.algorithm()
                        && rrsig.signer == apex
                        && rrsig.labels == labels
                        && rrsig.original_ttl == set.ttl
                        && !is_newer(rrsig.inception, validity.now)
                        && is_newer(rrsig.expiration, validity.keep_after)
                })
            };
            if let Some(kept) = before.iter().find(|signature| is_kept(signature)) {
                done.kept += 1;
                done.note(Rrsig::parse(kept).map(|rrsig| rrsig.expiration));
                set.signatures.push(kept.clone());
                continue;
            }
            if rrset.is_none() {
                let made = Rrset::of(owner, set.rtype, set.records.iter().map(|record| &**record));
                rrset = Some(made.map_err(|_| Unsignable::Malformed(Box::new(owner.to_buf()), set.rtype))?);
            }
            let Some(rrset) = &rrset else { continue };
            let expiration = validity.expiration.wrapping_sub(early(validity.jitter, owner, set.rtype));
            let by = SignedBy {
                key: key.secret,
                tag,
                zone: apex,
                ttl: set.ttl,
                inception: validity.inception,
                expiration,
            };
            let made = work.sign(rrset, &by).map_err(Unsignable::Key)?;
            set.signatures.push(made.into());
            done.made += 1;
            done.note(Some(expiration));
        }
        Ok(())
    }
}

/// Returns how many seconds, up to `jitter`, before the others a set's signatures expire. It
/// depends on nothing but the set, so that signing again gives the same.
fn early(jitter: u32, owner: Name<'_>, rtype: Rtype) -> u32 {
    if jitter == 0 {
        return 0;
    }
    let folded = owner.to_folded();
    let rtype = rtype.0.to_be_bytes();
    let octets = folded.as_bytes().iter().chain(&rtype);
    // FNV-1a, then stirred: nobody gains from foreseeing it.
    let hash = octets.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    });
    let stirred = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((stirred * (u64::from(jitter) + 1)) >> 32) as u32
}

/// Who signs an RRset, and what the signature says beside it.
#[derive(Clone, Copy, Debug)]
pub struct SignedBy<'k> {
    /// The key.
    pub key: &'k SecretKey,
    /// Its tag.
    pub tag: u16,
    /// The zone whose key it is.
    pub zone: Name<'k>,
    /// The TTL of the records.
    pub ttl: u32,
    /// The first second the signature is good for, modulo 2^32.
    pub inception: u32,
    /// The last one.
    pub expiration: u32,
}

impl Rrset {
    /// Signs the records; returns the data of an RRSIG.
    pub fn sign(&self, by: &SignedBy<'_>) -> Result<Vec<u8>, Unusable> {
        Work::default().sign(self, by)
    }
}

/// Buffers that are used for one set after the other.
#[derive(Default)]
struct Work {
    message: Vec<u8>,
    signature: Vec<u8>,
}

impl Work {
    fn sign(&mut self, rrset: &Rrset, by: &SignedBy<'_>) -> Result<Vec<u8>, Unusable> {
        let rrsig = Rrsig {
            covered: rrset.rtype(),
            algorithm: by.key.algorithm(),
            labels: signed_labels(rrset.owner()),
            original_ttl: by.ttl,
            expiration: by.expiration,
            inception: by.inception,
            tag: by.tag,
            signer: by.zone,
            signature: &[],
        };
        self.message.clear();
        rrset.write_signed(&rrsig, &mut self.message);
        self.signature.clear();
        by.key.sign(&self.message, &mut self.signature)?;
        Ok(Rrsig { signature: &self.signature, ..rrsig }.to_bytes())
    }
}

/// Returns the types that a proof lists for a node.
pub(crate) fn types_of(node: &Node, proof: Rtype) -> Vec<Rtype> {
    let is_listed = |set: &&Set| {
        !set.records.is_empty()
            && set.rtype != Rtype::NSEC
            && (node.standing == Standing::Within || matches!(set.rtype, Rtype::NS | Rtype::DS))
    };
    let mut types: Vec<Rtype> = node.sets.iter().filter(is_listed).map(|set| set.rtype).collect();
    let is_signed = match node.standing {
        Standing::Within => !types.is_empty(),
        // The NSEC itself is signed; an NSEC3 is signed elsewhere.
        Standing::Cut => proof == Rtype::NSEC || types.contains(&Rtype::DS),
        Standing::Hidden => false,
    };
    if is_signed {
        types.push(Rtype::RRSIG);
    }
    if proof == Rtype::NSEC {
        types.push(Rtype::NSEC);
    }
    types
}

/// Gives every name its NSEC (RFC 4034 §4), and takes it from those that have none.
fn chain_names(tree: &mut Tree, ttl: u32) {
    let apex = tree.apex().to_buf();
    let mut next: Box<[u8]> = apex.as_name().to_folded().as_bytes().into();
    // From the last name to the first, so that the next one is known. In lower case: validators
    // disagree on whether it is part of the canonical form (RFC 4034 §6.2, RFC 6840 §5.1).
    for node in tree.names.values_mut().rev() {
        let is_in_chain = node.standing != Standing::Hidden
            && node.sets.iter().any(|set| !set.records.is_empty() && set.rtype != Rtype::NSEC);
        if !is_in_chain {
            node.sets.retain(|set| set.rtype != Rtype::NSEC);
            continue;
        }
        let mut rdata = Vec::with_capacity(next.len() + 16);
        rdata.extend_from_slice(&next);
        write_bitmap(types_of(node, Rtype::NSEC), &mut rdata);
        node.replace(Rtype::NSEC, ttl, vec![rdata]);
        next = node.owner().to_folded().as_bytes().into();
    }
    tree.names.retain(|_, node| node.has_records());
}

/// Gives every name, and every name that exists because of those below it, its NSEC3 (RFC 5155
/// §7.1).
fn chain_hashes(tree: &mut Tree, parameters: &Nsec3Parameters, ttl: u32) -> Result<(), Unsignable> {
    let apex = tree.apex().to_buf();
    let mut types: BTreeMap<Nsec3Hash, (NameBuf, Vec<Rtype>)> = BTreeMap::new();
    let mut last: Option<NameBuf> = None;
    for node in tree.names.values_mut() {
        node.sets.retain(|set| set.rtype != Rtype::NSEC);
        if node.standing == Standing::Hidden || !node.has_records() {
            continue;
        }
        // RFC 5155 §6: delegations without DS are what may be left out.
        let is_secure = node.standing == Standing::Within || node.set(Rtype::DS).is_some();
        if parameters.opts_out && !is_secure {
            continue;
        }
        let owner = node.owner();
        insert(&mut types, parameters, owner, types_of(node, Rtype::NSEC3))?;
        // Names between this one and the one before: an ancestor of either has been seen.
        let mut name = owner;
        while let Some(parent) = name.parent().filter(|parent| parent.len() > apex.as_name().len()) {
            if last.is_some_and(|last| last.as_name().is_at_or_below(parent)) {
                break;
            }
            insert_between(&mut types, parameters, parent)?;
            name = parent;
        }
        last = Some(owner.to_buf());
    }
    tree.names.retain(|_, node| node.has_records());
    tree.hashed.retain(|hash, _| types.contains_key(hash));
    let first = types.keys().next().copied();
    let mut next = first.unwrap_or_default();
    for (hash, (_, types)) in types.iter().rev() {
        let rdata = parameters.write_nsec3(&next, types.iter().copied());
        let set = tree.hashed.entry(*hash).or_insert_with(|| Set {
            rtype: Rtype::NSEC3,
            ttl,
            records: Vec::new(),
            signatures: Vec::new(),
        });
        if set.ttl != ttl || set.records.len() != 1 || set.records().any(|record| record != rdata) {
            *set = Set { rtype: Rtype::NSEC3, ttl, records: vec![rdata.into()], signatures: Vec::new() };
        }
        next = *hash;
    }
    Ok(())
}

type Types = BTreeMap<Nsec3Hash, (NameBuf, Vec<Rtype>)>;

/// Adds a name with records; one that was added because of names below it gets its types.
fn insert(
    types: &mut Types,
    parameters: &Nsec3Parameters,
    owner: Name<'_>,
    listed: Vec<Rtype>,
) -> Result<(), Unsignable> {
    match types.insert(parameters.hash(owner), (owner.to_buf(), listed)) {
        Some((other, _)) if other.as_name() != owner => Err(Unsignable::Collision(Box::new(owner.to_buf()))),
        _ => Ok(()),
    }
}

/// Adds a name that exists because of names below it.
fn insert_between(
    types: &mut Types,
    parameters: &Nsec3Parameters,
    owner: Name<'_>,
) -> Result<(), Unsignable> {
    let (other, _) = types.entry(parameters.hash(owner)).or_insert_with(|| (owner.to_buf(), Vec::new()));
    if other.as_name() == owner { Ok(()) } else { Err(Unsignable::Collision(Box::new(owner.to_buf()))) }
}

/// The flags of a new key's DNSKEY.
pub const fn flags_of(is_entry_point: bool) -> u16 {
    if is_entry_point { ZONE_KEY | ENTRY_POINT } else { ZONE_KEY }
}
