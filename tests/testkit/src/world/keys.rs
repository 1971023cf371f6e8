//! Keys that follow from the seed, and signatures that are made when they are first needed.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError};

use dnssec::{Algorithm, DigestType, Dnskey, Ds, ENTRY_POINT, KeySize, Rrset, SecretKey, SignedBy, ZONE_KEY};
use wire::Rtype;

use super::contents::{Found, Node, Set};
use super::places::Labels;
use super::{Draw, World, Zone, stir};

/// RSA keys of an internet. They take long to make, so zones share them, and they are the only
/// ones that do not follow from the seed.
const RSA_KEYS: usize = 4;
/// Seconds for which signatures are good before and after the time they are made for.
const GOOD_BEFORE: u64 = 86_400;
const GOOD_AFTER: u64 = 30 * 86_400;

/// A zone's one key, which signs all (RFC 6781 §3.1, "Single-Type Signing Scheme").
#[derive(Clone)]
pub(super) struct ZoneKey {
    secret: Arc<SecretKey>,
    pub(super) dnskey: Vec<u8>,
}

impl ZoneKey {
    /// Returns the same key with other flags.
    pub(super) fn with_flags(&self, flags: u16) -> Self {
        Self { dnskey: self.secret.dnskey(flags), secret: Arc::clone(&self.secret) }
    }
}

/// What has been made so far.
#[derive(Default)]
pub(crate) struct Keys {
    keys: HashMap<Zone, ZoneKey>,
    rsa: Vec<Arc<SecretKey>>,
    /// Data of RRSIG records by what they sign.
    signatures: HashMap<u64, Arc<[u8]>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} keys, {} signatures)", self.keys.len(), self.signatures.len())
    }
}

/// Puts a private key of a curve into the form that files hold: `ECPrivateKey` (RFC 5915) or
/// PKCS#8 (RFC 8410).
fn der_of(algorithm: Algorithm, drawn: impl Fn(u64) -> u64) -> Option<Vec<u8>> {
    let (head, octets, tail): (&[u8], usize, &[u8]) = match algorithm {
        Algorithm::ECDSAP256SHA256 => {
            (&[0x30, 0x31, 2, 1, 1, 4, 32], 32, &[0xa0, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7])
        }
        Algorithm::ECDSAP384SHA384 => {
            (&[0x30, 0x3e, 2, 1, 1, 4, 48], 48, &[0xa0, 7, 6, 5, 0x2b, 0x81, 4, 0, 0x22])
        }
        Algorithm::ED25519 => {
            (&[0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 34, 4, 32], 32, &[])
        }
        _ => return None,
    };
    let mut scalar: Vec<u8> = (0..octets as u64 / 8).flat_map(|at| drawn(at).to_be_bytes()).collect();
    // Below the order of every curve, and not zero.
    if let Some(first) = scalar.first_mut() {
        *first = *first & 0x7f | 1;
    }
    Some([head, &scalar, tail].concat())
}

impl World {
    fn with_keys<T>(&self, work: impl FnOnce(&mut Keys) -> T) -> T {
        work(&mut self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the key of a zone.
    ///
    /// # Panics
    ///
    /// When the machine makes no keys of the zone's algorithm.
    pub(super) fn key(&self, zone: Zone) -> ZoneKey {
        if let Some(key) = self.with_keys(|keys| keys.keys.get(&zone).cloned()) {
            return key;
        }
        let key = self.draw_key(zone, zone.number());
        self.with_keys(|keys| keys.keys.insert(zone, key.clone()));
        key
    }

    /// Makes a key for a zone that follows from a number.
    pub(super) fn draw_key(&self, zone: Zone, number: u64) -> ZoneKey {
        let algorithm = self.algorithm(zone);
        let drawn = self.draw(Draw::Key, number);
        let secret = match der_of(algorithm, |at| stir(self.options().seed, drawn, at)) {
            Some(der) => Arc::new(SecretKey::from_der(&der, Some(algorithm)).expect("a key of this curve")),
            None => self.rsa_key(algorithm, drawn as usize % RSA_KEYS),
        };
        ZoneKey { dnskey: secret.dnskey(ZONE_KEY | ENTRY_POINT), secret }
    }

    fn rsa_key(&self, algorithm: Algorithm, at: usize) -> Arc<SecretKey> {
        self.with_keys(|keys| {
            while keys.rsa.len() <= at {
                let key = SecretKey::generate(algorithm, KeySize::Bits2048);
                keys.rsa.push(Arc::new(key.expect("a key of this algorithm")));
            }
            Arc::clone(&keys.rsa[at])
        })
    }

    /// Returns the data of a zone's DNSKEY.
    pub(crate) fn dnskey(&self, zone: Zone) -> Vec<u8> {
        self.key(zone).dnskey
    }

    /// Returns the data of a zone's DS.
    pub(crate) fn ds(&self, zone: Zone) -> Vec<u8> {
        let key = self.key(zone);
        let dnskey = Dnskey::parse(&key.dnskey).expect("a key of our own");
        Ds::write(self.apex(zone).as_name(), dnskey, DigestType::SHA256).expect("a digest that is known")
    }

    /// Makes the keys and signatures that the first questions for some hosts of a zone need, so
    /// that nobody waits for them: as any thread, as many as there are.
    pub fn prepare(&self, leaf: u32, hosts: &[&str]) {
        let (zone, above) = (Zone::Leaf(leaf), Zone::Tld(leaf % self.options().tlds));
        if !self.is_signed(zone) {
            return;
        }
        let sign = |zone: Zone, node: Node, rtype: Rtype| {
            if let Some(set) = self.set(zone, node, rtype) {
                self.signatures(zone, &set);
            }
        };
        if leaf < self.options().tlds {
            let tld = Zone::Tld(leaf);
            sign(Zone::Root, Node::Cut(tld), Rtype::DS);
            sign(tld, Node::Apex, Rtype::DNSKEY);
        }
        sign(above, Node::Cut(zone), Rtype::DS);
        sign(zone, Node::Apex, Rtype::DNSKEY);
        for host in hosts {
            let name = self.below(host.as_bytes(), zone);
            if let Found::Node(node) = self.find(zone, &Labels::new(name.as_name())) {
                sign(zone, node, Rtype::A);
            }
        }
    }

    /// Returns the data of the RRSIG records of a zone's set.
    pub(crate) fn signatures(&self, zone: Zone, set: &Set) -> Vec<Arc<[u8]>> {
        self.signers(zone, set.rtype).iter().map(|key| self.signature(zone, set, key)).collect()
    }

    fn signature(&self, zone: Zone, set: &Set, key: &ZoneKey) -> Arc<[u8]> {
        let tag = Dnskey::parse(&key.dnskey).map_or(0, Dnskey::tag);
        let owner = set.owner.as_name().to_folded();
        // A cut has an NSEC on either side.
        let begin = stir(tag.into(), zone.number(), set.rtype.0.into());
        // The root's keys do not stay the same.
        let begin = set.data.first().filter(|_| set.rtype == Rtype::DNSKEY).map_or(begin, |first| {
            stir(begin, set.data.len() as u64, first.get(..2).map_or(0, |flags| flags[1].into()))
        });
        let what = owner.as_bytes().chunks(8).fold(begin, |what, octets| {
            let mut word = [0; 8];
            word[..octets.len()].copy_from_slice(octets);
            stir(what, u64::from_le_bytes(word), octets.len() as u64)
        });
        if let Some(made) = self.with_keys(|keys| keys.signatures.get(&what).cloned()) {
            return made;
        }
        let rrset = Rrset::of(owner.as_name(), set.rtype, set.data.iter().map(Vec::as_slice));
        let now = self.options().unix_seconds;
        let apex = self.apex(zone);
        let by = SignedBy {
            key: &key.secret,
            tag,
            zone: apex.as_name(),
            ttl: set.ttl,
            inception: now.saturating_sub(GOOD_BEFORE) as u32,
            expiration: (now + GOOD_AFTER) as u32,
        };
        let made = rrset.expect("data of our own").sign(&by).expect("the key signs");
        let made: Arc<[u8]> = made.into();
        self.with_keys(|keys| keys.signatures.insert(what, Arc::clone(&made)));
        made
    }
}
