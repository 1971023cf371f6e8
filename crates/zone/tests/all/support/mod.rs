//! Zones from text, questions to them, and replies as lines; a signer whose signatures sign
//! nothing.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::{Class, Flags, HashKey, Message, NameBuf, Question, Rcode, Rtype, Section, Writer};
use zone::master::NoIncludes;
use zone::{Asked, Zone, Zones, load};

pub(crate) const KEY: HashKey = HashKey::new([7, 11]);

pub(crate) fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

/// Loads a zone that has nothing wrong that would keep it from being served.
pub(crate) fn zone(apex: &str, text: &str) -> Zone {
    let loaded = load(name(apex).as_name(), "zone", text.as_bytes(), &mut NoIncludes, KEY);
    let mistakes: Vec<String> = loaded.mistakes.iter().map(|m| format!("{}: {m}", m.place.line)).collect();
    assert_eq!(mistakes, [""; 0], "{text}");
    let findings = loaded.findings;
    loaded.zone.unwrap_or_else(|| panic!("{findings:?} in {text}"))
}

pub(crate) fn zones(list: &[(&str, &str)]) -> Zones {
    Zones::new(KEY, list.iter().map(|(apex, text)| Arc::new(zone(apex, text))).collect())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) rcode: Rcode,
    pub(crate) is_authoritative: bool,
    pub(crate) is_truncated: bool,
    /// Records as `an owner ttl type data`, in the order of the message.
    pub(crate) lines: Vec<String>,
    pub(crate) octets: usize,
}

impl Reply {
    pub(crate) fn sorted(mut self) -> Self {
        self.lines.sort();
        self
    }
}

/// Asks for up to `limit` octets; `None` when no zone is responsible.
pub(crate) fn ask_limited(
    zones: &Zones,
    qname: &str,
    qtype: Rtype,
    wants_dnssec: bool,
    limit: usize,
) -> Option<Reply> {
    ask_as(zones, &Asked::new(name(qname).as_name(), qtype, wants_dnssec), limit)
}

/// Does the same with all that may be said of a question.
pub(crate) fn ask_as(zones: &Zones, asked: &Asked<'_>, limit: usize) -> Option<Reply> {
    let Asked { qname, qtype, .. } = *asked;
    let mut buffer = vec![0; limit];
    let mut writer = Writer::new(&mut buffer, limit, 1, Flags::QR);
    let question = Question { qname, qtype, qclass: Class::IN };
    writer.question(&question).expect("room for the question");
    let answered = zones.answer(asked, &mut writer)?;
    let len = writer.finish();
    let message = Message::parse(&buffer[..len]).expect("a message");
    let mut lines = Vec::new();
    for record in message.records() {
        let section = match record.section {
            Section::Answer => "an",
            Section::Authority => "au",
            Section::Additional => "ad",
        };
        let range = record.rdata_at..record.end();
        wire::rdata::check(record.rtype, &buffer[..len], range.clone()).expect("sound data");
        let data = wire::rdata::display(record.rtype, &buffer[..len], range);
        lines.push(format!("{section} {} {} {} {data}", record.owner, record.ttl(), record.rtype));
    }
    // The SOA of a negative answer is cut against its zone alone, whatever else the question has in
    // common with it.
    let is_soa = |record: &wire::Record<'_>| {
        record.rtype == Rtype::SOA && matches!(record.section, Section::Authority)
    };
    let slack = message.records().find(is_soa).map_or(0, |soa| {
        let apex = soa.owner.expand().expect("a name");
        2 * qname.len().saturating_sub(apex.as_name().len())
    });
    let shortest = octets_when_written_one_by_one(&message) + slack;
    assert!(len <= shortest, "{len} octets instead of {shortest}: {qname} {qtype}: {lines:?}");
    Some(Reply {
        rcode: answered.rcode,
        is_authoritative: answered.is_authoritative,
        is_truncated: answered.is_truncated,
        lines,
        octets: len,
    })
}

/// Returns how long a message is whose names all are looked up among those before them (RFC 1035
/// §4.1.4).
fn octets_when_written_one_by_one(message: &Message<'_>) -> usize {
    let mut buffer = vec![0; 65_535];
    let mut writer = Writer::new(&mut buffer, 65_535, 1, Flags::QR);
    writer.question(&message.question.expect("a question")).expect("room");
    for record in message.records() {
        let owner = record.owner.expand().expect("a name");
        let name_at = |at: usize| record.name_in_rdata(at).expand().expect("a name");
        let (names, fixed) = match record.rtype {
            Rtype::NS | Rtype::CNAME | Rtype::PTR => (vec![name_at(0)], 0),
            Rtype::MX => (vec![name_at(2)], 2),
            Rtype::SOA => {
                let second = record.name_in_rdata(0).skip().expect("a name") - record.rdata_at;
                (vec![name_at(0), name_at(second)], 0)
            }
            _ => (vec![], record.rdata.len()),
        };
        let behind = if record.rtype == Rtype::SOA { 20 } else { 0 };
        let rdata = record.rdata;
        writer
            .record(record.section, owner.as_name(), record.rtype, Class::IN, record.ttl(), |writer| {
                writer.bytes(&rdata[..fixed])?;
                names.iter().try_for_each(|name| writer.name(name.as_name()))?;
                writer.bytes(&rdata[rdata.len() - behind..])
            })
            .expect("room");
    }
    writer.finish()
}

pub(crate) fn ask(zones: &Zones, qname: &str, qtype: Rtype, wants_dnssec: bool) -> Reply {
    ask_limited(zones, qname, qtype, wants_dnssec, 65_535).expect("a zone of ours")
}

/// What a test expects: rcode, `aa` or nothing, then the lines; signatures as their owner and what
/// they cover.
pub(crate) fn check(
    zones: &Zones,
    qname: &str,
    qtype: Rtype,
    wants_dnssec: bool,
    expect: (Rcode, bool),
    lines: &[&str],
) {
    let reply = ask(zones, qname, qtype, wants_dnssec);
    let shown: Vec<String> = reply.lines.iter().map(|line| brief(line)).collect();
    assert_eq!(
        ((reply.rcode, reply.is_authoritative), shown.iter().map(String::as_str).collect::<Vec<_>>()),
        (expect, lines.to_vec()),
        "{qname} {qtype}"
    );
}

/// Cuts a line to what matters: no TTL, of a signature only what it covers, of a SOA nothing.
fn brief(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let [section, owner, _, rtype, data @ ..] = words.as_slice() else { return line.to_owned() };
    match *rtype {
        "RRSIG" => format!("{section} {owner} RRSIG {}", data[0]),
        "SOA" => format!("{section} {owner} SOA"),
        "NSEC" => format!("{section} {owner} NSEC {}", data[0]),
        "NSEC3" => format!("{section} {owner} NSEC3"),
        "DS" => format!("{section} {owner} DS"),
        _ => format!("{section} {owner} {rtype} {}", data.join(" ")),
    }
}

/// How [`sign`] denies existence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chain {
    Nsec,
    Nsec3 { opt_out: bool },
}

/// A name as labels from the root on, in lower case: their order is the canonical one.
pub(crate) type Path = Vec<Vec<u8>>;

pub(crate) fn path(name: wire::Name<'_>) -> Path {
    let mut labels: Path = name.labels().map(<[u8]>::to_ascii_lowercase).collect();
    labels.reverse();
    labels
}

pub(crate) fn name_of(path: &[Vec<u8>]) -> NameBuf {
    let mut name = NameBuf::root();
    for label in path.iter().rev() {
        name.push_label(label).expect("a label");
    }
    name
}

/// Adds signatures (of nothing) and a chain of denial to the text of a zone.
pub(crate) fn sign(apex: &str, text: &str, chain: Chain) -> String {
    let apex_name = name(apex);
    let options = zone::master::Options::of_zone(apex_name.as_name());
    let mut names: BTreeMap<Path, BTreeSet<Rtype>> = BTreeMap::new();
    zone::master::read("zone", text.as_bytes(), &options, &mut NoIncludes, |entry| {
        names.entry(path(entry.owner)).or_default().insert(entry.rtype);
    });
    let top = path(apex_name.as_name());
    let is_cut =
        |p: &Path| p.len() > top.len() && names.get(p).is_some_and(|types| types.contains(&Rtype::NS));
    let is_below_cut = |p: &Path| (top.len() + 1..p.len()).any(|len| is_cut(&p[..len].to_vec()));
    let signed: Vec<Path> = names.keys().filter(|p| !is_below_cut(p)).cloned().collect();
    let mut out = format!("{text}\n");
    let rrsig = |owner: &NameBuf, rtype: Rtype, labels: usize| {
        format!(
            "{owner} 3600 RRSIG {rtype} 13 {labels} 3600 20400101000000 20200101000000 1 {apex_name} AAAA\n"
        )
    };
    let labels_of = |p: &Path| p.len() - usize::from(p.last().is_some_and(|last| last == b"*"));
    for p in &signed {
        let owner = name_of(p);
        for rtype in &names[p] {
            if !is_cut(p) || *rtype == Rtype::DS {
                out.push_str(&rrsig(&owner, *rtype, labels_of(p)));
            }
        }
    }
    let types_of = |p: &Path, with_nsec: bool| {
        let mut types: BTreeSet<Rtype> = names.get(p).cloned().unwrap_or_default();
        let is_signed = !types.is_empty() && (!is_cut(p) || types.contains(&Rtype::DS) || with_nsec);
        if is_cut(p) {
            types.retain(|rtype| matches!(*rtype, Rtype::NS | Rtype::DS));
        }
        if is_signed {
            types.insert(Rtype::RRSIG);
        }
        if with_nsec {
            types.insert(Rtype::NSEC);
        }
        types.iter().map(Rtype::to_string).collect::<Vec<_>>().join(" ")
    };
    match chain {
        Chain::Nsec => {
            for (i, p) in signed.iter().enumerate() {
                let next = name_of(&signed[(i + 1) % signed.len()]);
                let owner = name_of(p);
                out.push_str(&format!("{owner} 300 NSEC {next} {}\n", types_of(p, true)));
                out.push_str(&rrsig(&owner, Rtype::NSEC, labels_of(p)));
            }
        }
        Chain::Nsec3 { opt_out } => {
            out.push_str(&format!("{apex_name} 0 NSEC3PARAM 1 0 12 AABBCCDD\n"));
            out.push_str(&rrsig(&apex_name, Rtype::NSEC3PARAM, top.len()));
            let mut hashed: BTreeMap<String, Path> = BTreeMap::new();
            for p in &signed {
                // Names above a delegation that opted out keep their records: without them, not all
                // that does not exist could be proved (RFC 5155, erratum 3441).
                let is_out = opt_out && is_cut(p) && !names[p].contains(&Rtype::DS);
                for len in top.len()..p.len() + usize::from(!is_out) {
                    hashed.insert(hash(&name_of(&p[..len])), p[..len].to_vec());
                }
            }
            let hashes: Vec<&String> = hashed.keys().collect();
            for (i, (hash, p)) in hashed.iter().enumerate() {
                let next = hashes[(i + 1) % hashes.len()];
                let owner = name(&format!("{hash}.{apex_name}"));
                let flags = u8::from(opt_out);
                out.push_str(&format!(
                    "{owner} 300 NSEC3 1 {flags} 12 AABBCCDD {next} {}\n",
                    types_of(p, false)
                ));
                out.push_str(&rrsig(&owner, Rtype::NSEC3, top.len() + 1));
            }
        }
    }
    out
}

/// Hashes a name with the salt and rounds of RFC 5155 appendix A, by an implementation that is not
/// the one tested.
pub(crate) fn hash(name: &NameBuf) -> String {
    const SALT: [u8; 4] = [0xaa, 0xbb, 0xcc, 0xdd];
    let mut octets = name.as_name().to_folded().as_bytes().to_vec();
    for _ in 0..=12 {
        octets.extend(SALT);
        octets = sha1(&octets).to_vec();
    }
    let bits: String = octets.iter().map(|octet| format!("{octet:08b}")).collect();
    let digit = |chunk: &[u8]| {
        let value = usize::from_str_radix(std::str::from_utf8(chunk).expect("bits"), 2).expect("bits");
        char::from(b"0123456789abcdefghijklmnopqrstuv"[value])
    };
    bits.as_bytes().chunks(5).map(digit).collect()
}

/// SHA-1 by the book, on a whole message.
fn sha1(message: &[u8]) -> [u8; 20] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    let mut h: [u32; 5] = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0];
    for block in padded.chunks(64) {
        let mut w = [0_u32; 80];
        for t in 0..80 {
            w[t] = match t {
                0..16 => u32::from_be_bytes(block[t * 4..t * 4 + 4].try_into().expect("four octets")),
                _ => (w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16]).rotate_left(1),
            };
        }
        let [mut a, mut b, mut c, mut d, mut e] = h;
        for (t, word) in w.iter().enumerate() {
            let (f, k) = match t {
                0..20 => ((b & c) | (!b & d), 0x5A827999),
                20..40 => (b ^ c ^ d, 0x6ED9EBA1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8F1BBCDC),
                _ => (b ^ c ^ d, 0xCA62C1D6_u32),
            };
            let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(*word).wrapping_add(k);
            e = d;
            d = c;
            c = b.rotate_left(30);
            b = a;
            a = next;
        }
        for (h, v) in h.iter_mut().zip([a, b, c, d, e]) {
            *h = h.wrapping_add(v);
        }
    }
    let mut out = [0; 20];
    for (chunk, word) in out.chunks_mut(4).zip(h) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    out
}
