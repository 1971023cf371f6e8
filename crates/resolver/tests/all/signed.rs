//! Internets with signed zones: the zone crate serves them, keys are made for each test.

use std::collections::BTreeMap;
use std::sync::Arc;

use dnssec::tree::Tree;
use dnssec::{
    Algorithm, Denial, DigestType, Dnskey, Ds, KeySize, KeyUse, Nsec3Parameters, SecretKey, Signer,
    SigningKey, Validity, flags_of,
};
use resolver::{HeapName, Settings, Trust, TrustAnchor, Validation};
use wire::{Class, HashKey, Message, NameBuf, Question, Rcode, Rtype, Section};
use zone::master::{self, NoIncludes, Options};
use zone::{Zones, load};

use crate::world::{UNIX_SECONDS, World, name, plain_settings, show, signed_reply};

const KEY: HashKey = HashKey::new([7, 11]);
const DAY: u32 = 86_400;

/// How a zone is signed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signing {
    /// Not at all.
    No,
    Nsec,
    Nsec3 {
        iterations: u16,
        opts_out: bool,
    },
    /// By names, with signatures that expired yesterday.
    Expired,
    /// By names, with an algorithm whose number nobody knows in the DS.
    Unknown,
}

struct Draft {
    apex: String,
    addresses: Vec<String>,
    text: String,
    signing: Signing,
}

/// An internet in the making.
#[derive(Default)]
pub(crate) struct Internet {
    drafts: Vec<Draft>,
    pub(crate) settings: Option<Settings>,
    trust: Trust,
    is_lasting: bool,
}

/// An internet with signed zones, whose texts can be tampered with.
pub(crate) struct Signed {
    pub(crate) world: World,
    /// Signed zones as text, by apex.
    pub(crate) texts: BTreeMap<String, String>,
    served: BTreeMap<String, Vec<String>>,
    /// What its resolver trusts.
    pub(crate) anchors: Vec<TrustAnchor>,
}

fn generate(algorithm: u8) -> SecretKey {
    SecretKey::generate(Algorithm(algorithm), KeySize::Bits2048).expect("a key")
}

/// Signs a zone from one second since 1970 to another; returns its text and the data of its DS.
fn sign(draft: &Draft, more: &str, (inception, expiration): (u32, u32)) -> (String, Option<Vec<u8>>) {
    let apex = name(&draft.apex);
    let dot = if draft.apex == "." { "." } else { &format!("{}.", draft.apex) };
    let below = if draft.apex == "." { ".".to_string() } else { format!(".{}.", draft.apex) };
    let mut text = format!("$TTL 3600\n{dot} 900 SOA ns{below} admin{below} 1 7200 3600 86400 300\n");
    text += &format!("{dot} NS ns{below}\nns{below} A {}\n", draft.addresses[0]);
    for line in draft.text.lines().chain(more.lines()).map(str::trim) {
        text += line;
        text.push('\n');
    }
    let denial = match draft.signing {
        Signing::No => return (text, None),
        Signing::Nsec3 { iterations, opts_out } => {
            Denial::Nsec3(Nsec3Parameters { iterations, salt: Box::default(), opts_out })
        }
        _ => Denial::Nsec,
    };
    let mut tree = Tree::new(apex.as_name());
    let options = Options::of_zone(apex.as_name());
    let read = master::read("zone", text.as_bytes(), &options, &mut NoIncludes, |entry| {
        tree.push(entry.owner, entry.rtype, entry.ttl.seconds(), entry.rdata);
    });
    assert!(read.mistakes.is_empty(), "{:?} in {text}", read.mistakes);
    let now = UNIX_SECONDS as u32;
    let secret = generate(13);
    let does = KeyUse { is_published: true, signs_keys: true, signs_zone: true, is_announced: false };
    let key = SigningKey { secret: &secret, flags: flags_of(true), does, validity: None };
    let expiration = if matches!(draft.signing, Signing::Expired) { now - DAY } else { expiration };
    let signer = Signer {
        keys: vec![key],
        dnskey_ttl: None,
        denial,
        validity: Validity { inception, expiration, jitter: 0, keep_after: 0, now },
        cds_digests: Vec::new(),
        asks_for_removal: false,
        has_csync: false,
        zonemd: None,
    };
    signer.sign(&mut tree, &[]).expect("it can be signed");
    let mut out = String::new();
    tree.for_each_record(|(owner, rtype, ttl, rdata)| {
        let data = wire::rdata::display(rtype, rdata, 0..rdata.len());
        out += &format!("{owner} {ttl} IN {rtype} {data}\n");
    });
    let dnskey = secret.dnskey(flags_of(true));
    let dnskey = Dnskey::parse(&dnskey).expect("a key");
    let mut ds = Ds::write(apex.as_name(), dnskey, DigestType::SHA256).expect("a digest");
    if matches!(draft.signing, Signing::Unknown) {
        ds[2] = 200;
    }
    (out, Some(ds))
}

fn compile(apex: &str, text: &str) -> Arc<zone::Zone> {
    let loaded = load(name(apex).as_name(), "zone", text.as_bytes(), &mut NoIncludes, KEY);
    let findings = loaded.findings;
    Arc::new(loaded.zone.unwrap_or_else(|| panic!("{findings:?} in {text}")))
}

/// Returns zones as a server has them, from their texts by apex.
pub(crate) fn zones(texts: &[(&str, &str)]) -> Arc<Zones> {
    Arc::new(Zones::new(KEY, texts.iter().map(|(apex, text)| compile(apex, text)).collect()))
}

impl Internet {
    pub(crate) fn zone(mut self, apex: &str, addresses: &[&str], signing: Signing, text: &str) -> Self {
        let addresses = addresses.iter().map(ToString::to_string).collect();
        self.drafts.push(Draft { apex: apex.to_string(), addresses, text: text.to_string(), signing });
        self
    }

    pub(crate) fn trusting(mut self, change: impl FnOnce(&mut Trust)) -> Self {
        change(&mut self.trust);
        self
    }

    pub(crate) fn with(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Has signatures valid for as long as such can be, from 2020 on: for validators that read the
    /// clock.
    pub(crate) fn lasting(mut self) -> Self {
        self.is_lasting = true;
        self
    }

    /// Signs the zones from the lowest up, puts the DS records into their parents, and has the root
    /// trusted. The parent of a zone is the closest one above it.
    pub(crate) fn build(mut self) -> Signed {
        self.drafts.sort_by_key(|draft| std::cmp::Reverse(name(&draft.apex).as_name().label_count()));
        let apexes: Vec<NameBuf> = self.drafts.iter().map(|draft| name(&draft.apex)).collect();
        let mut more = vec![String::new(); self.drafts.len()];
        let (mut texts, mut served) = (BTreeMap::new(), BTreeMap::new());
        let now = UNIX_SECONDS as u32;
        let (from, until) = if self.is_lasting {
            (1_577_836_800, 1_577_836_800 + i32::MAX as u32)
        } else {
            (now - 2 * DAY, now + 10 * DAY)
        };
        let mut trust = self.trust.clone();
        trust.anchors.retain(|anchor| !anchor.zone.as_name().is_root());
        for (at, draft) in self.drafts.iter().enumerate() {
            let (text, ds) = sign(draft, &more[at], (from, until));
            let apex = apexes[at].as_name();
            let above = |other: &NameBuf| apex.is_at_or_below(other.as_name()) && other.as_name() != apex;
            let parent = apexes.iter().enumerate().filter(|(_, other)| above(other));
            let parent = parent.max_by_key(|(_, other)| other.as_name().label_count());
            match parent {
                Some((parent, _)) => {
                    let mut lines = String::new();
                    for (number, address) in draft.addresses.iter().enumerate() {
                        let host = if number == 0 { "ns".to_string() } else { format!("ns{number}") };
                        lines += &format!("{apex} NS {host}.{apex}\n{host}.{apex} A {address}\n");
                    }
                    if let Some(ds) = &ds {
                        let data = wire::rdata::display(Rtype::DS, ds, 0..ds.len());
                        lines += &format!("{apex} DS {data}\n");
                    }
                    more[parent] += &lines;
                }
                None => trust.anchors.extend(ds.map(|ds| TrustAnchor {
                    zone: HeapName::new(apex),
                    ds: vec![ds.into()],
                    keys: Vec::new(),
                })),
            }
            texts.insert(draft.apex.clone(), text);
            for address in &draft.addresses {
                served.entry(address.clone()).or_insert_with(Vec::new).push(draft.apex.clone());
            }
        }
        let settings = self.settings.unwrap_or_else(plain_settings);
        let validation =
            if settings.validation == Validation::Off { Validation::On } else { settings.validation };
        let anchors = trust.anchors.clone();
        let world = World::with(Settings { validation, trust, ..settings });
        let mut signed = Signed { world, texts, served, anchors };
        let addresses: Vec<String> = signed.served.keys().cloned().collect();
        for address in addresses {
            signed.tamper(&address, |line| Some(line.to_string()));
        }
        signed
    }
}

impl Signed {
    /// Returns what somebody says who has all zones: response code and answer section.
    pub(crate) fn truth(&self, text: &str, rtype: Rtype) -> (Rcode, Vec<String>) {
        let zones = self.texts.iter().map(|(apex, text)| compile(apex, text)).collect();
        let qname = name(text);
        let question = Question { qname: qname.as_name(), qtype: rtype, qclass: Class::IN };
        let reply = signed_reply(&Zones::new(KEY, zones), &question, false);
        let message = Message::parse(&reply).expect("well formed");
        let answer = message.records().filter(|record| record.section == Section::Answer);
        (message.rcode(), answer.map(|record| show(&message, &record)).collect())
    }

    /// Returns all zones, record by record as this changes them.
    pub(crate) fn all(&self, change: impl Fn(&str) -> Option<String>) -> Zones {
        let zones = self.texts.iter().map(|(apex, text)| {
            let text: String = text.lines().filter_map(&change).map(|line| line + "\n").collect();
            compile(apex, &text)
        });
        Zones::new(KEY, zones.collect())
    }

    /// Has a forwarder know all zones, and changes what it says of them, record by record.
    pub(crate) fn forwarder(&mut self, address: &str, change: impl Fn(&str) -> Option<String>) {
        let zones = self.all(change);
        self.world.server(address).signed = Some(zones);
    }

    /// Has every server serve its zones as this changes them, record by record.
    pub(crate) fn tamper_all(&mut self, change: impl Fn(&str) -> Option<String>) {
        let addresses: Vec<String> = self.served.keys().cloned().collect();
        addresses.iter().for_each(|address| self.tamper(address, &change));
    }

    /// Changes what a server serves, record by record, after it was signed.
    pub(crate) fn tamper(&mut self, address: &str, change: impl Fn(&str) -> Option<String>) {
        let zones = self.served[address].iter().map(|apex| {
            let text: String = self.texts[apex].lines().filter_map(&change).map(|line| line + "\n").collect();
            compile(apex, &text)
        });
        let zones = Zones::new(KEY, zones.collect());
        self.world.server(address).signed = Some(zones);
    }
}
