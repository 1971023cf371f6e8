//! The digest of a zone as a whole (RFC 8976).

use aws_lc_rs::digest::{Algorithm, Context, SHA384, SHA512};
use wire::canonical::Key;
use wire::{Class, Name, Rtype};

use crate::nsec3::owner_of;
use crate::tree::{Set, Tree};

/// Octets that a digest has at least (RFC 8976 §2.2.4).
const DIGEST_OCTETS_MIN: usize = 12;

/// How a zone's records are put in a row (RFC 8976 §2.2.2). Open: any number is legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonemdScheme(pub u8);

impl ZonemdScheme {
    /// All records in canonical order.
    pub const SIMPLE: Self = Self(1);
}

/// How the row is hashed (RFC 8976 §2.2.3). Open: any number is legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonemdHash(pub u8);

impl ZonemdHash {
    /// SHA-384.
    pub const SHA384: Self = Self(1);
    /// SHA-512.
    pub const SHA512: Self = Self(2);

    fn digest(self) -> Option<&'static Algorithm> {
        match self {
            Self::SHA384 => Some(&SHA384),
            Self::SHA512 => Some(&SHA512),
            _ => None,
        }
    }

    /// Returns the octets of a digest; 0 if the hash is not known.
    pub fn octets(self) -> usize {
        self.digest().map_or(0, Algorithm::output_len)
    }

    /// Returns the data of a ZONEMD of the simple scheme.
    pub(crate) fn write(self, serial: u32, digest: &[u8]) -> Vec<u8> {
        [&serial.to_be_bytes()[..], &[ZonemdScheme::SIMPLE.0, self.0], digest].concat()
    }
}

impl std::str::FromStr for ZonemdHash {
    type Err = wire::numbers::Unknown;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().replace('-', "").as_str() {
            "sha384" | "1" => Ok(Self::SHA384),
            "sha512" | "2" => Ok(Self::SHA512),
            _ => Err(wire::numbers::Unknown),
        }
    }
}

/// What a zone's ZONEMD says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZonemdVerdict {
    /// One of its digests is that of the zone.
    Right,
    /// There is no ZONEMD.
    Absent,
    /// There are only schemes and hashes that are not known here.
    Unsupported,
    /// It was made for another serial.
    OtherSerial,
    /// The zone is not what was digested, or the records break a rule of RFC 8976 §4.
    Wrong,
}

/// Returns the digest of a zone; `None` for a scheme or hash that is not known, or without a SOA.
///
/// Nothing is assumed about signatures: those that are there are digested, but for those over
/// ZONEMD.
pub fn zonemd_digest(tree: &Tree, scheme: ZonemdScheme, hash: ZonemdHash) -> Option<Vec<u8>> {
    if scheme != ZonemdScheme::SIMPLE {
        return None;
    }
    let mut row = Row { context: Context::new(hash.digest()?), buffer: Vec::new() };
    tree.soa()?;
    let apex = tree.apex();
    // Hashed owners take their places among the others.
    let mut hashed = tree
        .hashed
        .iter()
        .filter_map(|(hash, set)| {
            let owner = owner_of(hash, apex)?;
            let labels = owner.as_name().len() - apex.len();
            let key: Box<[u8]> = Key::new(owner.as_name().as_bytes().get(..labels)?).as_bytes().into();
            Some((key, owner, set))
        })
        .peekable();
    for (key, node) in &tree.names {
        while let Some((_, owner, set)) = hashed.next_if(|(hashed, ..)| hashed < key) {
            row.name(owner.as_name(), std::slice::from_ref(set), false);
        }
        row.name(node.owner(), &node.sets, key.is_empty());
    }
    for (_, owner, set) in hashed {
        row.name(owner.as_name(), std::slice::from_ref(set), false);
    }
    Some(row.context.finish().as_ref().to_vec())
}

/// Checks a zone against its ZONEMD (RFC 8976 §4). That these are signed, if the zone is, is for
/// the caller to check.
pub fn check_zonemd(tree: &Tree) -> ZonemdVerdict {
    let (Some((soa, _)), Some(set)) = (tree.soa(), tree.set(tree.apex(), Rtype::ZONEMD)) else {
        return ZonemdVerdict::Absent;
    };
    let mut verdict = ZonemdVerdict::Unsupported;
    let mut seen = Vec::new();
    for rdata in set.records() {
        let Some((&[s0, s1, s2, s3, scheme, hash], digest)) = rdata.split_first_chunk::<6>() else {
            return ZonemdVerdict::Wrong;
        };
        // RFC 8976 §4 step 4: a pair that is there twice counts for nothing.
        if seen.contains(&(scheme, hash)) || digest.len() < DIGEST_OCTETS_MIN {
            return ZonemdVerdict::Wrong;
        }
        seen.push((scheme, hash));
        if u32::from_be_bytes([s0, s1, s2, s3]) != soa.serial() {
            verdict = ZonemdVerdict::OtherSerial;
            continue;
        }
        match zonemd_digest(tree, ZonemdScheme(scheme), ZonemdHash(hash)) {
            Some(expected) if expected == digest => return ZonemdVerdict::Right,
            Some(_) => verdict = ZonemdVerdict::Wrong,
            None => {}
        }
    }
    verdict
}

struct Row {
    context: Context,
    buffer: Vec<u8>,
}

impl Row {
    /// Appends all records of a name: by type, then by data (RFC 8976 §3.3.1).
    fn name(&mut self, owner: Name<'_>, sets: &[impl AsSet], is_apex: bool) {
        let owner = owner.to_folded();
        let sets = || sets.iter().map(AsSet::as_set).filter(|set| !set.records.is_empty());
        let is_own_proof = |set: &Set| is_apex && set.rtype == Rtype::ZONEMD;
        let mut signatures: Vec<(Vec<u8>, u32)> = Vec::new();
        for set in sets().filter(|set| !is_own_proof(set)) {
            signatures.extend(set.signatures().map(|rdata| (canonical(Rtype::RRSIG, rdata), set.ttl)));
        }
        signatures.sort();
        let mut signatures = Some(signatures);
        for set in sets() {
            if set.rtype > Rtype::RRSIG {
                self.signatures(owner.as_bytes(), signatures.take());
            }
            if !is_own_proof(set) {
                let mut records: Vec<Vec<u8>> =
                    set.records().map(|rdata| canonical(set.rtype, rdata)).collect();
                records.sort();
                for rdata in records {
                    self.record(owner.as_bytes(), set.rtype, set.ttl, &rdata);
                }
            }
        }
        self.signatures(owner.as_bytes(), signatures);
    }

    fn signatures(&mut self, owner: &[u8], signatures: Option<Vec<(Vec<u8>, u32)>>) {
        for (rdata, ttl) in signatures.unwrap_or_default() {
            self.record(owner, Rtype::RRSIG, ttl, &rdata);
        }
    }

    fn record(&mut self, owner: &[u8], rtype: Rtype, ttl: u32, rdata: &[u8]) {
        self.buffer.clear();
        self.buffer.extend_from_slice(owner);
        self.buffer.extend_from_slice(&rtype.0.to_be_bytes());
        self.buffer.extend_from_slice(&Class::IN.0.to_be_bytes());
        self.buffer.extend_from_slice(&ttl.to_be_bytes());
        self.buffer.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
        self.context.update(&self.buffer);
        self.context.update(rdata);
    }
}

fn canonical(rtype: Rtype, rdata: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rdata.len());
    if wire::rdata::write_canonical(rtype, rdata, 0..rdata.len(), &mut out).is_err() {
        out.clear();
        out.extend_from_slice(rdata);
    }
    out
}

/// A set, or a borrow of one.
trait AsSet {
    fn as_set(&self) -> &Set;
}

impl AsSet for Set {
    fn as_set(&self) -> &Set {
        self
    }
}

impl AsSet for &Set {
    fn as_set(&self) -> &Set {
        self
    }
}
