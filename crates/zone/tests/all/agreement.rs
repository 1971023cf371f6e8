//! The engine agrees with an interpreter of RFC 1034 §4.3.2 that walks a map label by label, on
//! random zones and questions; and what it proves is proved.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dnssec::tree::Tree;
use dnssec::{
    Algorithm, Budget, Denial, Dnskey, KeySize, KeyUse, SecretKey, Signer, SigningKey, Validity, flags_of,
    verify_rrset,
};
use proptest::prelude::*;
use support::{Chain, KEY, Path, ask_limited, hash, name, name_of, path, sign, zone};
use wire::{Class, Flags, HashKey, Message, NameBuf, Question, Rcode, Rtype, Section, Ttl, Writer};
use zone::master::NoIncludes;
use zone::{Answered, Asked, Builder, Good, Online, OnlineKey, Pool, Record, Zone, Zones};

const APEXES: [&str; 3] = ["z.", "b.z.", "y."];
const LABELS: [&str; 5] = ["a", "b", "c", "*", "d"];
const TYPES: [Rtype; 7] = [Rtype::A, Rtype::TXT, Rtype::MX, Rtype::CNAME, Rtype::NS, Rtype::DNAME, Rtype::DS];
const QTYPES: [Rtype; 7] = [Rtype::A, Rtype::TXT, Rtype::MX, Rtype::CNAME, Rtype::NS, Rtype::DS, Rtype::ANY];

type Data = BTreeMap<Path, BTreeMap<Rtype, Vec<String>>>;

/// The zones as the interpreter has them.
struct Naive {
    zones: Vec<(Path, Data)>,
}

/// What the records of an answer say does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    NoData(Path),
    NoName { name: Path, encloser: Path },
    Expanded { name: Path, encloser: Path },
    NoDataAtWildcard { name: Path, encloser: Path },
    NoDs(Path),
}

struct Said {
    rcode: Rcode,
    is_authoritative: bool,
    lines: Vec<String>,
    claims: Vec<Claim>,
}

fn below(path: &Path, apex: &Path) -> bool {
    path.starts_with(apex)
}

impl Naive {
    fn zone_of(&self, name: &Path) -> Option<&(Path, Data)> {
        self.zones.iter().filter(|(apex, _)| below(name, apex)).max_by_key(|(apex, _)| apex.len())
    }

    fn zone_for(&self, name: &Path, qtype: Rtype) -> Option<&(Path, Data)> {
        let zone = self.zone_of(name)?;
        if qtype == Rtype::DS && zone.0 == *name && !name.is_empty() {
            return Some(self.zone_of(&name[..name.len() - 1].to_vec()).unwrap_or(zone));
        }
        Some(zone)
    }

    fn exists(data: &Data, name: &Path) -> bool {
        data.keys().any(|owner| owner.starts_with(name))
    }

    fn addresses(&self, lines: &mut Vec<String>, data: Option<&Data>, host: &Path) {
        let found = data.and_then(|data| data.get(host)).and_then(|types| types.get(&Rtype::A));
        for address in found.into_iter().flatten() {
            let line = format!("ad {} 60 A {address}", name_of(host));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }

    fn answer(&self, qname: &Path, qtype: Rtype) -> Option<Said> {
        let mut said =
            Said { rcode: Rcode::NOERROR, is_authoritative: true, lines: Vec::new(), claims: Vec::new() };
        let mut now = qname.clone();
        let mut seen = vec![now.clone()];
        self.zone_for(&now, qtype)?;
        // The first name, and as many more as there may be aliases.
        for turn in 0..=zone::ALIASES_MAX {
            let Some((apex, data)) = self.zone_for(&now, qtype) else { break };
            let Some(target) = self.step(&mut said, apex, data, &now, qtype, turn == 0) else { break };
            if seen.contains(&target) {
                break;
            }
            seen.push(target.clone());
            now = target;
        }
        Some(said)
    }

    /// Answers for one name; returns the name to go on with.
    fn step(
        &self,
        said: &mut Said,
        apex: &Path,
        data: &Data,
        now: &Path,
        qtype: Rtype,
        is_first: bool,
    ) -> Option<Path> {
        let show = |section: &str, owner: &Path, rtype: Rtype, datum: &String| {
            format!("{section} {} 60 {rtype} {datum}", name_of(owner))
        };
        let soa = |said: &mut Said| {
            said.lines.push(format!("au {} 5 SOA {}", name_of(apex), data[apex][&Rtype::SOA][0]));
        };
        let mut node = apex.clone();
        loop {
            let types = data.get(&node);
            let servers = types.and_then(|types| types.get(&Rtype::NS)).filter(|_| node.len() > apex.len());
            // Step 3b: a zone cut, unless it is asked what the parent knows.
            if let Some(servers) = servers
                && !(node == *now && qtype == Rtype::DS)
            {
                if is_first {
                    said.is_authoritative = false;
                }
                for server in servers {
                    said.lines.push(show("au", &node, Rtype::NS, server));
                }
                match types.and_then(|types| types.get(&Rtype::DS)) {
                    Some(ds) => said
                        .lines
                        .extend(ds.iter().map(|ds| format!("do {}", show("au", &node, Rtype::DS, ds)))),
                    None => said.claims.push(Claim::NoDs(node.clone())),
                }
                for server in servers {
                    let server = path(name(server).as_name());
                    if below(&server, apex) {
                        self.addresses(&mut said.lines, Some(data), &server);
                    }
                }
                return None;
            }
            if node == *now {
                break;
            }
            // Step 3c, and RFC 6672 §3.2.
            if let Some(target) = types.and_then(|types| types.get(&Rtype::DNAME)) {
                let line = show("an", &node, Rtype::DNAME, &target[0]);
                if !said.lines.contains(&line) {
                    said.lines.push(line);
                }
                let mut to = path(name(&target[0]).as_name());
                to.extend(now[node.len()..].iter().cloned());
                said.lines.push(format!("an {} 60 CNAME {}", name_of(now), name_of(&to)));
                // What leads below itself is followed once.
                let is_loop = to.starts_with(&node);
                return (!is_loop && !matches!(qtype, Rtype::CNAME | Rtype::ANY)).then_some(to);
            }
            let next = now[..=node.len()].to_vec();
            if Self::exists(data, &next) {
                node = next;
                continue;
            }
            let mut wildcard = node.clone();
            wildcard.push(b"*".to_vec());
            if !Self::exists(data, &wildcard) {
                said.rcode = Rcode::NXDOMAIN;
                soa(said);
                said.claims.push(Claim::NoName { name: now.clone(), encloser: node });
                return None;
            }
            return self.at_name(said, data.get(&wildcard), now, qtype, Some(&node), soa);
        }
        self.at_name(said, data.get(now), now, qtype, None, soa)
    }

    fn at_name(
        &self,
        said: &mut Said,
        types: Option<&BTreeMap<Rtype, Vec<String>>>,
        now: &Path,
        qtype: Rtype,
        encloser: Option<&Path>,
        soa: impl Fn(&mut Said),
    ) -> Option<Path> {
        let rrset = |rtype: Rtype| types.and_then(|types| types.get(&rtype));
        // RFC 8482 §4.1: one RRset stands for all.
        let any = || {
            let preferred = [Rtype::CNAME, Rtype::A, Rtype::AAAA, Rtype::MX].into_iter();
            preferred
                .chain(types.into_iter().flat_map(BTreeMap::keys).copied())
                .find(|rtype| rrset(*rtype).is_some())
        };
        let qtype = if qtype == Rtype::ANY { any().unwrap_or(qtype) } else { qtype };
        let expanded = |said: &mut Said| {
            if let Some(encloser) = encloser {
                said.claims.push(Claim::Expanded { name: now.clone(), encloser: encloser.clone() });
            }
        };
        if let Some(found) = rrset(qtype) {
            for datum in found {
                said.lines.push(format!("an {} 60 {qtype} {datum}", name_of(now)));
            }
            expanded(said);
            for datum in found {
                let host = match qtype {
                    Rtype::NS => path(name(datum).as_name()),
                    Rtype::MX => path(name(datum.split_once(' ').expect("two words").1).as_name()),
                    _ => continue,
                };
                self.addresses(&mut said.lines, self.zone_of(&host).map(|(_, data)| data), &host);
            }
            return None;
        }
        if let Some(alias) = rrset(Rtype::CNAME) {
            said.lines.push(format!("an {} 60 CNAME {}", name_of(now), alias[0]));
            expanded(said);
            return Some(path(name(&alias[0]).as_name()));
        }
        soa(said);
        said.claims.push(match encloser {
            None => Claim::NoData(now.clone()),
            Some(encloser) => Claim::NoDataAtWildcard { name: now.clone(), encloser: encloser.clone() },
        });
        None
    }
}

fn labels() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..LABELS.len(), 0..4)
}

fn target() -> impl Strategy<Value = String> {
    // One in four lies outside of all zones.
    (labels(), 0..4_usize).prop_map(|(labels, apex)| full(&labels, APEXES.get(apex).copied().unwrap_or("x.")))
}

fn full(labels: &[usize], apex: &str) -> String {
    labels.iter().map(|&label| format!("{}.", LABELS[label])).collect::<String>() + apex
}

/// Records of one zone; those that may not stand beside what came before are left out.
fn zone_data(apex: &str, records: &[(Vec<usize>, usize, String, u8)]) -> Data {
    let mut data = Data::new();
    let top = path(name(apex).as_name());
    let soa = BTreeMap::from([
        (Rtype::SOA, vec![format!("m.{apex} r.{apex} 1 2 3 4 5")]),
        (Rtype::NS, vec!["ns.x.".to_owned()]),
    ]);
    data.insert(top.clone(), soa);
    for (labels, rtype, target, number) in records {
        let owner = path(name(&full(labels, apex)).as_name());
        let rtype = TYPES[*rtype];
        let datum = match rtype {
            Rtype::A => format!("192.0.2.{number}"),
            Rtype::TXT => format!("\"{number}\""),
            Rtype::MX => format!("{number} {target}"),
            Rtype::DS => format!("{number} 13 2 AB"),
            _ => target.clone(),
        };
        let is_wildcard = owner.last().is_some_and(|label| label == b"*");
        let is_apex = owner == top;
        let has = |rtype| data.get(&owner).is_some_and(|types| types.contains_key(&rtype));
        let is_below_dname = data.iter().any(|(other, types)| {
            types.contains_key(&Rtype::DNAME) && owner.len() > other.len() && owner.starts_with(other)
        });
        let is_allowed = !is_below_dname
            && !has(Rtype::CNAME)
            && match rtype {
                Rtype::CNAME => !data.contains_key(&owner),
                Rtype::NS => !is_wildcard && !has(Rtype::DNAME),
                Rtype::DNAME => {
                    let is_above =
                        data.keys().any(|other| other.len() > owner.len() && other.starts_with(&owner));
                    !is_wildcard && !is_above && !has(Rtype::NS) && !has(Rtype::DNAME)
                }
                Rtype::DS => !is_apex && has(Rtype::NS),
                _ => true,
            };
        if is_allowed {
            let list = data.entry(owner).or_default().entry(rtype).or_default();
            if !list.contains(&datum) {
                list.push(datum);
            }
        }
    }
    data
}

fn text(data: &Data) -> String {
    let mut out = String::new();
    for (owner, types) in data {
        for (rtype, list) in types {
            for datum in list {
                out.push_str(&format!("{} 60 {rtype} {datum}\n", name_of(owner)));
            }
        }
    }
    out
}

type Records = Vec<(Vec<usize>, usize, String, u8)>;

fn records() -> impl Strategy<Value = Records> {
    prop::collection::vec((labels(), 0..TYPES.len(), target(), 1..4_u8), 0..14)
}

fn setting() -> impl Strategy<Value = ([Records; 3], Vec<(String, usize)>)> {
    ([records(), records(), records()], prop::collection::vec((target(), 0..QTYPES.len()), 1..12))
}

/// The proofs of a reply: owner, next owner (or hash), types.
struct Proofs {
    nsec: Vec<(Path, Path, BTreeSet<String>)>,
    nsec3: Vec<(Path, String, String, BTreeSet<String>)>,
}

impl Proofs {
    fn read(lines: &[String]) -> Self {
        let mut proofs = Self { nsec: Vec::new(), nsec3: Vec::new() };
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let owner = path(name(words[1]).as_name());
            let types =
                |from: usize| words[from.min(words.len())..].iter().map(|word| (*word).to_owned()).collect();
            match words[3] {
                "NSEC" => proofs.nsec.push((owner, path(name(words[4]).as_name()), types(5))),
                "NSEC3" => {
                    let own = String::from_utf8(owner.last().expect("a hash").clone()).expect("Base32hex");
                    let apex = owner[..owner.len() - 1].to_vec();
                    proofs.nsec3.push((apex, own, words[8].to_ascii_lowercase(), types(9)));
                }
                _ => {}
            }
        }
        proofs
    }

    fn covers(&self, apex: &Path, name: &Path) -> bool {
        self.nsec.iter().any(|(owner, next, types)| {
            below(owner, apex)
                && owner < name
                && (name < next || next == apex)
                && !(is_cut_above(owner, name, types))
        })
    }

    fn hash_covers(&self, apex: &Path, name: &Path) -> bool {
        let hash = hash(&name_of(name));
        self.nsec3.iter().any(|(zone, own, next, _)| {
            zone == apex
                && match own < next {
                    true => *own < hash && hash < *next,
                    false => *own < hash || hash < *next,
                }
        })
    }

    fn hash_matches(&self, apex: &Path, name: &Path, without: Option<Rtype>) -> bool {
        let hash = hash(&name_of(name));
        self.nsec3.iter().any(|(zone, own, _, types)| {
            zone == apex && *own == hash && without.is_none_or(|rtype| !types.contains(&rtype.to_string()))
        })
    }

    /// RFC 5155 §8.3: the closest encloser that is proved.
    fn proved_encloser(&self, apex: &Path, name: &Path) -> Option<Path> {
        let len = (apex.len()..name.len())
            .rev()
            .find(|&len| self.hash_matches(apex, &name[..len].to_vec(), None))?;
        self.hash_covers(apex, &name[..=len].to_vec()).then(|| name[..len].to_vec())
    }

    fn prove(&self, chain: Chain, apex: &Path, claim: &Claim, qtype: Rtype) -> bool {
        let star = |encloser: &Path| [encloser.as_slice(), &[b"*".to_vec()]].concat();
        let next_closer = |name: &Path, encloser: &Path| name[..=encloser.len()].to_vec();
        let has_nsec = |at: &Path, without: Rtype| {
            self.nsec.iter().any(|(owner, _, types)| {
                owner == at && !types.contains(&without.to_string()) && !types.contains("CNAME")
            })
        };
        match (chain, claim) {
            (Chain::Nsec, Claim::NoData(name)) => {
                has_nsec(name, qtype)
                    || self.nsec.iter().any(|(owner, next, _)| owner < name && next.starts_with(name))
            }
            (Chain::Nsec, Claim::NoName { name, encloser }) => {
                self.covers(apex, name) && self.covers(apex, &star(encloser))
            }
            (Chain::Nsec, Claim::Expanded { name, .. }) => self.covers(apex, name),
            (Chain::Nsec, Claim::NoDataAtWildcard { name, encloser }) => {
                let wildcard = star(encloser);
                let is_empty =
                    self.nsec.iter().any(|(owner, next, _)| *owner < wildcard && next.starts_with(&wildcard));
                self.covers(apex, name) && (has_nsec(&wildcard, qtype) || is_empty)
            }
            (Chain::Nsec, Claim::NoDs(cut)) => has_nsec(cut, Rtype::DS),
            (_, Claim::NoData(name)) => {
                self.hash_matches(apex, name, Some(qtype)) || self.proved_encloser(apex, name).is_some()
            }
            (_, Claim::NoName { name, .. }) => self
                .proved_encloser(apex, name)
                .is_some_and(|encloser| self.hash_covers(apex, &star(&encloser))),
            (_, Claim::Expanded { name, encloser }) => self.hash_covers(apex, &next_closer(name, encloser)),
            (_, Claim::NoDataAtWildcard { name, encloser }) => {
                self.proved_encloser(apex, name).is_some() && {
                    let wildcard = star(encloser);
                    self.hash_matches(apex, &wildcard, Some(qtype)) || self.hash_covers(apex, &wildcard)
                }
            }
            (_, Claim::NoDs(cut)) => {
                self.hash_matches(apex, cut, Some(Rtype::DS)) || self.proved_encloser(apex, cut).is_some()
            }
        }
    }
}

/// RFC 6840 §4.1: the NSEC of a zone cut, or of a DNAME, says nothing about names below it. That of
/// the zone below has the same owner, and both may be in one answer.
fn is_cut_above(owner: &Path, name: &Path, types: &BTreeSet<String>) -> bool {
    let is_cut = types.contains("NS") && !types.contains("SOA");
    name.starts_with(owner) && (types.contains("DNAME") || is_cut)
}

fn is_dnssec(line: &str) -> bool {
    matches!(line.split(' ').nth(3), Some("RRSIG" | "NSEC" | "NSEC3"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_agrees_with_a_naive_interpreter(
        (records, questions) in setting(),
        served in 1..8_usize,
        chain in prop::sample::select(vec![None, Some(Chain::Nsec), Some(Chain::Nsec3 { opt_out: false }), Some(Chain::Nsec3 { opt_out: true })]),
    ) {
        let mut naive = Naive { zones: Vec::new() };
        let mut compiled = Vec::new();
        for (i, (apex, records)) in APEXES.iter().zip(&records).enumerate() {
            if served >> i & 1 == 0 {
                continue;
            }
            let data = zone_data(apex, records);
            let text = match chain {
                None => text(&data),
                Some(chain) => sign(apex, &text(&data), chain),
            };
            compiled.push(Arc::new(zone(apex, &text)));
            naive.zones.push((path(name(apex).as_name()), data));
        }
        let zones = Zones::new(KEY, compiled);
        for (qname, qtype) in &questions {
            let qtype = QTYPES[*qtype];
            let expect = naive.answer(&path(name(qname).as_name()), qtype);
            let reply = ask_limited(&zones, qname, qtype, chain.is_some(), 65_535);
            prop_assert_eq!(reply.is_some(), expect.is_some());
            let (Some(reply), Some(expect)) = (reply, expect) else { continue };
            let mut lines: Vec<String> = reply.lines.iter().filter(|line| !is_dnssec(line)).map(|line| {
                // The interpreter writes names in lower case and TTLs as the zones have them.
                line.to_ascii_lowercase()
            }).collect();
            let mut expected: Vec<String> = expect.lines.iter().filter_map(|line| match line.strip_prefix("do ") {
                Some(line) => chain.is_some().then(|| line.to_ascii_lowercase()),
                None => Some(line.to_ascii_lowercase()),
            }).collect();
            lines.sort();
            expected.sort();
            prop_assert_eq!(&lines, &expected, "{} {}", qname, qtype);
            prop_assert_eq!((reply.rcode, reply.is_authoritative, reply.is_truncated), (expect.rcode, expect.is_authoritative, false), "{} {}", qname, qtype);
            if let Some(chain) = chain {
                let proofs = Proofs::read(&reply.lines);
                for claim in &expect.claims {
                    let subject = match claim {
                        Claim::NoData(name) | Claim::NoDs(name) | Claim::NoName { name, .. } | Claim::Expanded { name, .. } | Claim::NoDataAtWildcard { name, .. } => name,
                    };
                    let apex = &naive.zone_for(subject, if matches!(claim, Claim::NoDs(_)) { Rtype::DS } else { qtype }).expect("a zone").0;
                    prop_assert!(proofs.prove(chain, apex, claim, qtype), "{} {}: {:?} of {:?}", qname, qtype, claim, reply.lines);
                }
                // Whatever is signed comes with its signatures, and none comes twice.
                let distinct: BTreeSet<&String> = reply.lines.iter().collect();
                prop_assert_eq!(distinct.len(), reply.lines.len(), "{:?}", reply.lines);
            }
        }
    }
}

const NOW: u32 = 1_795_000_000;

/// A zone whose proofs are made, and signed, for each question.
fn online(apex: &str, text: &str, secret: &Arc<SecretKey>) -> Zone {
    let apex = name(apex);
    let mut tree = Tree::new(apex.as_name());
    let options = zone::master::Options::of_zone(apex.as_name());
    zone::master::read("zone", text.as_bytes(), &options, &mut NoIncludes, |entry| {
        tree.push(entry.owner, entry.rtype, entry.ttl.seconds(), entry.rdata);
    });
    let does = KeyUse { is_published: true, signs_keys: true, signs_zone: true, is_announced: false };
    let signer = Signer {
        keys: vec![SigningKey { secret, flags: flags_of(true), does, validity: None }],
        dnskey_ttl: None,
        denial: Denial::Compact,
        validity: Validity {
            inception: NOW - 5400,
            expiration: NOW + 86_400,
            jitter: 0,
            keep_after: NOW,
            now: NOW,
        },
        cds_digests: vec![],
        asks_for_removal: false,
        has_csync: false,
        zonemd: None,
    };
    signer.sign(&mut tree, &[]).expect("a signed zone");
    let mut builder = Builder::new(apex.as_name(), KEY);
    tree.for_each_record(|(owner, rtype, ttl, rdata)| {
        builder.add(&Record::new(owner, rtype, Ttl::new(ttl), rdata));
    });
    let tag = Dnskey::parse(&secret.dnskey(flags_of(true))).expect("a key").tag();
    let pool = Arc::new(Pool::new(1 << 20, 1_000_000, HashKey::new([3, 4])));
    let key = OnlineKey { secret: Arc::clone(secret), tag, good: Good::For(86_400) };
    let online = Online::new(apex.as_name(), vec![key], pool);
    builder.compile().zone.expect("a zone").signed_online(Arc::new(online))
}

/// Asks with DO and checks every signature; returns what came without signatures, as lines like
/// [`support::Reply`]'s, and the names that records were signed at.
fn ask_online(
    zones: &Zones,
    qname: &str,
    qtype: Rtype,
    takes_compact: bool,
    secret: &SecretKey,
) -> Option<(Answered, Vec<String>)> {
    let qname = name(qname);
    let mut buffer = vec![0; 65_535];
    let mut writer = Writer::new(&mut buffer, 65_535, 1, Flags::QR);
    writer.question(&Question { qname: qname.as_name(), qtype, qclass: Class::IN }).expect("room");
    let asked = Asked { now: NOW, takes_compact, ..Asked::new(qname.as_name(), qtype, true) };
    let answered = zones.answer(&asked, &mut writer)?;
    let len = writer.finish();
    let message = Message::parse(&buffer[..len]).expect("a message");
    let key = secret.dnskey(flags_of(true));
    let keys = [Dnskey::parse(&key).expect("a key")];
    let mut lines = Vec::new();
    let mut sets: BTreeMap<(Path, u16), dnssec::Rrset> = BTreeMap::new();
    let mut signatures: BTreeMap<(Path, u16), Vec<Vec<u8>>> = BTreeMap::new();
    let mut unsigned = BTreeSet::new();
    for record in message.records() {
        let owner: NameBuf = record.owner.expand().expect("a name");
        let range = record.rdata_at..record.end();
        if record.rtype == Rtype::RRSIG {
            let covered = u16::from_be_bytes([record.rdata[0], record.rdata[1]]);
            signatures.entry((path(owner.as_name()), covered)).or_default().push(record.rdata.to_vec());
            continue;
        }
        let section = match record.section {
            Section::Answer => "an",
            Section::Authority => "au",
            Section::Additional => "ad",
        };
        let place = (path(owner.as_name()), record.rtype.0);
        // Referrals and what comes along are not signed, nor is an alias that stands for a DNAME.
        let is_made = record.rtype == Rtype::CNAME
            && lines.iter().any(|line: &String| {
                let words: Vec<&str> = line.split(' ').collect();
                words[3] == "DNAME" && owner.as_name().is_at_or_below(name(words[1]).as_name())
            });
        if record.section == Section::Additional
            || (record.section == Section::Authority && record.rtype == Rtype::NS)
            || is_made
        {
            unsigned.insert(place.clone());
        }
        sets.entry(place)
            .or_insert_with(|| dnssec::Rrset::new(owner.as_name(), record.rtype, Class::IN))
            .push(&buffer[..len], range.clone())
            .expect("sound data");
        let data = wire::rdata::display(record.rtype, &buffer[..len], range);
        lines.push(format!("{section} {} {} {} {data}", record.owner, record.ttl(), record.rtype));
    }
    for (place, rrset) in &sets {
        let Some(rrsigs) = signatures.get(place) else {
            assert!(unsigned.contains(place), "{place:?} is not signed: {lines:?}");
            continue;
        };
        let apex = APEXES.iter().map(|apex| name(apex)).filter(|apex| {
            dnssec::Rrsig::parse(&rrsigs[0]).is_some_and(|rrsig| rrsig.signer == apex.as_name())
        });
        let apex = apex.max_by_key(|apex| apex.as_name().len()).expect("one of the zones signed it");
        let verified = verify_rrset(
            rrset,
            rrsigs.iter().map(|it| &it[..]),
            apex.as_name(),
            &keys,
            NOW,
            &mut Budget::new(16),
        );
        let verified = verified.unwrap_or_else(|why| panic!("{place:?}: {why:?}"));
        // RFC 9824 §3.3: no signature says that a wildcard answered.
        let labels = dnssec::Rrsig::parse(&rrsigs[0]).expect("a signature").labels;
        let count = place.0.len() - usize::from(place.0.last().is_some_and(|label| label == b"*"));
        assert_eq!(usize::from(labels), count, "{verified:?} {lines:?}");
    }
    Some((answered, lines))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn proofs_made_for_each_question_say_what_the_interpreter_says(
        (records, questions) in setting(),
        served in 1..8_usize,
        takes_compact in any::<bool>(),
    ) {
        let secret = Arc::new(SecretKey::generate(Algorithm::ED25519, KeySize::Bits2048).expect("a key"));
        let mut naive = Naive { zones: Vec::new() };
        let mut compiled = Vec::new();
        for (i, (apex, records)) in APEXES.iter().zip(&records).enumerate() {
            if served >> i & 1 == 0 {
                continue;
            }
            let data = zone_data(apex, records);
            compiled.push(Arc::new(online(apex, &text(&data), &secret)));
            naive.zones.push((path(name(apex).as_name()), data));
        }
        let zones = Zones::new(KEY, compiled);
        for (qname, qtype) in &questions {
            let qtype = QTYPES[*qtype];
            let expect = naive.answer(&path(name(qname).as_name()), qtype);
            // Twice: what is remembered is as good as what is made.
            for _ in 0..2 {
                let reply = ask_online(&zones, qname, qtype, takes_compact, &secret);
                let (Some((answered, all)), Some(expect)) = (reply, &expect) else { continue };
                let mut lines: Vec<String> = all.iter().filter(|line| !is_dnssec(line)).map(|line| line.to_ascii_lowercase()).collect();
                let mut expected: Vec<String> = expect.lines.iter().map(|line| line.strip_prefix("do ").unwrap_or(line).to_ascii_lowercase()).collect();
                lines.sort();
                expected.sort();
                prop_assert_eq!(&lines, &expected, "{} {}", qname, qtype);
                let rcode = match expect.rcode {
                    Rcode::NXDOMAIN if !takes_compact => Rcode::NOERROR,
                    rcode => rcode,
                };
                prop_assert_eq!((answered.rcode, answered.is_truncated), (rcode, false), "{} {}", qname, qtype);
                let proofs = Proofs::read(&all).nsec;
                let mut wanted = 0;
                for claim in &expect.claims {
                    let (owner, without, nothing) = match claim {
                        Claim::NoData(name) | Claim::NoDataAtWildcard { name, .. } => (name, qtype, false),
                        Claim::NoDs(name) => (name, Rtype::DS, false),
                        Claim::NoName { name, .. } => (name, qtype, true),
                        Claim::Expanded { .. } => continue,
                    };
                    wanted += 1;
                    let mut next = owner.clone();
                    next.push(vec![0]);
                    let is_proved = proofs.iter().any(|(at, to, types)| {
                        at == owner
                            && *to == next
                            && types.contains("NSEC") && types.contains("RRSIG")
                            && !types.contains(&without.to_string()) && !types.contains("CNAME")
                            && types.contains("NXNAME") == nothing
                            && (!nothing || types.len() == 3)
                    });
                    prop_assert!(is_proved, "{} {}: {:?} of {:?}", qname, qtype, claim, all);
                }
                prop_assert_eq!(proofs.len(), wanted, "{:?}", all);
            }
        }
    }
}
