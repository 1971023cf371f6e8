//! Catalog zones: a zone that says which zones there are (RFC 9432).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use wire::{HashKey, Name, NameBuf, Rtype, Ttl};

use crate::difference::{Misfit, build};
use crate::rows::{Row, Rows};
use crate::zone::Zone;

/// A member of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The label that stands for it; another one for the same zone means that nothing of the old
    /// one is kept.
    pub id: Vec<u8>,
    /// The zone.
    pub zone: NameBuf,
    /// What kinds of zones it belongs to.
    pub groups: Vec<String>,
    /// The catalog that it is going to belong to.
    pub change_of_ownership: Option<NameBuf>,
}

/// Why a catalog cannot be used; the members known before stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadCatalog {
    /// There is no version, or not the one that is understood.
    Version,
    /// A member has several names.
    ManyNames(Box<NameBuf>),
    /// A zone is there twice.
    Twice(Box<NameBuf>),
}

impl fmt::Display for BadCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version => f.write_str("it has no \"version\" record that says \"2\" and nothing else"),
            Self::ManyNames(owner) => write!(f, "{owner} has several PTR records"),
            Self::Twice(zone) => write!(f, "zone {zone} is there twice"),
        }
    }
}

/// The TTL of records in catalogs that we make; nobody asks for them one by one (RFC 9432 §4.1).
const TTL: Ttl = Ttl::ZERO;

/// Returns the labels in front of `apex`, from the left.
fn labels_before<'n>(owner: Name<'n>, apex: Name<'_>) -> Vec<&'n [u8]> {
    let count = owner.label_count().saturating_sub(apex.label_count());
    owner.labels().take(count).collect()
}

/// Reads one character string.
fn text(rdata: &[u8]) -> Option<&[u8]> {
    let (&len, rest) = rdata.split_first()?;
    (rest.len() == usize::from(len)).then_some(rest)
}

/// Reads the members of a catalog, in the order of their zones.
pub fn members(zone: &Zone) -> Result<Vec<Member>, BadCatalog> {
    let mut versions: Vec<Vec<u8>> = Vec::new();
    let mut members: Vec<Member> = Vec::new();
    let mut ids: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut groups: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
    let mut owners: BTreeMap<Vec<u8>, NameBuf> = BTreeMap::new();
    let mut wrong = None;
    zone.for_each_row(|row| {
        let labels = labels_before(row.owner, zone.apex());
        let is = |label: &[u8], word: &str| label.eq_ignore_ascii_case(word.as_bytes());
        match (labels.as_slice(), row.rtype) {
            ([version], Rtype::TXT) if is(version, "version") => {
                versions.push(text(row.rdata).unwrap_or(b"").to_vec());
            }
            ([id, zones], Rtype::PTR) if is(zones, "zones") => {
                let Ok((name, _)) = Name::parse(row.rdata) else { return };
                let id = id.to_ascii_lowercase();
                if !ids.insert(id.clone()) {
                    wrong = Some(BadCatalog::ManyNames(Box::new(row.owner.to_buf())));
                }
                members.push(Member {
                    id,
                    zone: name.to_folded().as_name().to_buf(),
                    groups: Vec::new(),
                    change_of_ownership: None,
                });
            }
            ([group, id, zones], Rtype::TXT) if is(group, "group") && is(zones, "zones") => {
                let group = String::from_utf8_lossy(text(row.rdata).unwrap_or(b"")).into_owned();
                groups.entry(id.to_ascii_lowercase()).or_default().push(group);
            }
            ([coo, id, zones], Rtype::PTR) if is(coo, "coo") && is(zones, "zones") => {
                if let Ok((owner, _)) = Name::parse(row.rdata) {
                    owners.insert(id.to_ascii_lowercase(), owner.to_buf());
                }
            }
            _ => {}
        }
    });
    // RFC 9432 §4.2.1: exactly one record with exactly this.
    if versions != [b"2".to_vec()] {
        return Err(BadCatalog::Version);
    }
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    for member in &mut members {
        member.groups = groups.remove(&member.id).unwrap_or_default();
        member.groups.sort();
        member.change_of_ownership = owners.get(&member.id).copied();
    }
    members.sort_by(|a, b| a.zone.as_name().as_bytes().cmp(b.zone.as_name().as_bytes()));
    let twice = members.windows(2).find(|pair| pair[0].zone == pair[1].zone);
    if let Some(pair) = twice {
        return Err(BadCatalog::Twice(Box::new(pair[0].zone)));
    }
    Ok(members)
}

/// Makes a catalog with these members: the zone, its label, its groups.
pub fn produce(
    apex: Name<'_>,
    key: HashKey,
    serial: u32,
    members: &[(NameBuf, Vec<u8>, Vec<String>)],
) -> Result<Zone, Misfit> {
    let below = |labels: &[&[u8]]| {
        let mut row = Vec::new();
        for label in labels {
            row.push(label.len() as u8);
            row.extend_from_slice(label);
        }
        NameBuf::below(&row, apex).ok()
    };
    // RFC 9432 §4.1: "invalid." stands for servers that nobody asks.
    let invalid = b"\x07invalid\0";
    let mut soa = [&invalid[..], invalid].concat();
    for number in [serial, 3600, 600, i32::MAX as u32, 0] {
        soa.extend_from_slice(&number.to_be_bytes());
    }
    let mut rows = Rows::default();
    rows.push(&Row { owner: apex, rtype: Rtype::NS, ttl: TTL, rdata: invalid });
    if let Some(version) = below(&[b"version"]) {
        rows.push(&Row { owner: version.as_name(), rtype: Rtype::TXT, ttl: TTL, rdata: b"\x012" });
    }
    for (zone, id, groups) in members {
        if let Some(owner) = below(&[id, b"zones"]) {
            let rdata = zone.as_name().as_bytes();
            rows.push(&Row { owner: owner.as_name(), rtype: Rtype::PTR, ttl: TTL, rdata });
        }
        for group in groups {
            let mut rdata = vec![group.len().min(255) as u8];
            rdata.extend(group.bytes().take(255));
            if let Some(owner) = below(&[b"group", id, b"zones"]) {
                rows.push(&Row { owner: owner.as_name(), rtype: Rtype::TXT, ttl: TTL, rdata: &rdata });
            }
        }
    }
    build(apex, key, (TTL, &soa), &rows)
}
