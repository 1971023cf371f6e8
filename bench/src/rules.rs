//! Rule sets of the size and shape that published measurements used, from a seed: the same for
//! everybody.
//!
//! Every name ends in a label that is nobody's top-level domain, or in `example`: nothing here
//! names a stranger.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use dnssec::{Nsec3Hash, Nsec3Parameters};
use wire::text::Base64;

use crate::queries::{self, Dice};

/// Names that are whole rules of the smaller set and are asked.
const HITS: usize = 24;
/// How many of these a rule for everything below a name covers, too.
const HITS_COVERED: usize = 20;
/// Exact rules of the smaller set.
const FULL: usize = 1_247;
/// Rules of the smaller set for a name and everything below it.
const SUFFIX: usize = 142_316;
/// Regular expressions of the smaller set.
const REGEX: usize = 163;
/// Rules of the large set.
const MILLION: usize = 1_000_000;
/// The share of rules that have three labels instead of two, in per cent.
const THREE_LABELS: usize = 2;
/// The share of rules in the most frequent top-level domain, in per cent.
const MAIN_TLD: usize = 78;
/// Of how many rules one is left where sets are thinned.
const THINNED: usize = 50;
/// What stands for the top-level domains of the published sets; the first for the most frequent.
const TLDS: [&str; 8] = ["bnc", "bnk", "xz", "bncn", "xy", "bnchm", "xw", "bnm"];
/// What names are put together from.
const SYLLABLES: [&str; 48] = [
    "ba", "be", "bi", "bo", "bu", "da", "de", "di", "do", "du", "fa", "fe", "ga", "go", "ha", "hu", "ji",
    "jo", "ka", "ko", "la", "le", "li", "lu", "ma", "me", "mi", "mo", "na", "ni", "no", "pa", "pi", "ra",
    "ri", "ru", "sa", "shi", "so", "ta", "ti", "to", "va", "vo", "wu", "xi", "ya", "zu",
];

/// Which set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// 1,247 exact names, 142,316 names with what is below them, 163 regular expressions, 64
    /// networks: what ForgeDNS's scenarios loaded.
    Geosite,
    /// A million names with what is below them.
    Million,
    /// The zone [`ZONE`] with so many names, an address each.
    Zone(usize),
    /// The same with signatures, which nothing was signed with: no server looks at them. What does
    /// not exist is denied by NSEC.
    Signed(usize),
    /// The same, where NSEC3 denies.
    Hashed {
        /// Names.
        names: usize,
        /// Rounds of hashing after the first.
        iterations: u16,
    },
    /// So many small zones.
    ManyZones(usize),
}

/// The zone of the scenarios that need a large one.
pub const ZONE: &str = "names.example.org";
/// The address of the one name that is asked in each small zone. Rivals' files say the same.
pub const SMALL_ZONE_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 80);
/// Octets of a signature with ECDSA P-256.
const SIGNATURE_OCTETS: usize = 64;
/// The tag of the key that a signed zone shows.
const KEY_TAG: u16 = 58_606;

/// A set of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// Names that match alone.
    pub full: Vec<String>,
    /// Names that match with everything below them.
    pub suffix: Vec<String>,
    /// Regular expressions over the whole name, without its final dot.
    pub regex: Vec<String>,
    /// Networks.
    pub networks: Vec<String>,
    /// Records of a zone, as lines of its file.
    pub records: Vec<String>,
    /// Names of small zones.
    pub zones: Vec<String>,
}

/// A name that no set has at first; one that changes gets it.
pub const ADDED: &str = "bench-added.example";

/// The rules of a scenario, as they are at first and as they become while it is timed.
#[derive(Clone, Debug)]
pub struct Rules {
    /// At first.
    pub first: RuleSet,
    /// Later, if they change.
    pub then: Option<RuleSet>,
}

impl Rules {
    /// Makes them: a set of `shape`, and if it `changes`, the same with [`ADDED`].
    pub fn new(shape: Shape, changes: bool) -> Self {
        let first = shape.rules();
        let then = changes.then(|| {
            let mut then = first.clone();
            then.suffix.push(ADDED.to_owned());
            then
        });
        Self { first, then }
    }

    /// Makes a small set of `shape` that says the same of the names `asked`.
    pub fn small<'a, I: Iterator<Item = &'a str>>(
        shape: Shape,
        changes: bool,
        asked: impl Fn() -> I,
    ) -> Self {
        // In a signed zone each name leads to the next, so a zone is made of the names that are
        // asked.
        if let Shape::Zone(_) | Shape::Signed(_) = shape {
            let mut numbers: Vec<usize> = asked().filter_map(zone_number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let first = RuleSet { records: zone(&numbers, shape.denial()), ..RuleSet::default() };
            return Self { first, then: None };
        }
        Self::new(shape, changes).thinned(asked)
    }

    /// Leaves out most rules, but none that covers one of the names `asked`.
    pub fn thinned<'a, I: Iterator<Item = &'a str>>(mut self, asked: impl Fn() -> I) -> Self {
        let needed: HashSet<&str> = asked().chain([ADDED]).flat_map(and_above).collect();
        for set in [Some(&mut self.first), self.then.as_mut()].into_iter().flatten() {
            for rules in [&mut set.full, &mut set.suffix] {
                let mut at = 0;
                rules.retain(|rule| {
                    at += 1;
                    at % THINNED == 0 || needed.contains(rule.as_str())
                });
            }
            // A name stands in one line, unless the zone is signed; then each line needs the next.
            let owner = |line: &str| line.split(' ').next().unwrap_or("").trim_end_matches('.').to_owned();
            let is_signed = set.records.iter().any(|line| line.contains(" RRSIG "));
            set.records
                .retain(|line| is_signed || !line.starts_with('w') || needed.contains(owner(line).as_str()));
            set.zones.retain(|zone| needed.contains(zone.as_str()));
        }
        self
    }
}

/// Returns the names that the smaller set matches and that are asked: each is an exact rule.
pub fn hits() -> Vec<String> {
    let name = |i| {
        if i <= HITS_COVERED {
            format!("hit{i:02}.set.example.org")
        } else {
            format!("hit{i:02}.example.net")
        }
    };
    (1..=HITS).map(name).collect()
}

/// Returns names that no set matches.
pub fn misses(count: usize) -> Vec<String> {
    (1..=count).map(|i| format!("bench-miss-{i:02}.example")).collect()
}

impl Shape {
    /// Makes the set.
    pub fn rules(self) -> RuleSet {
        match self {
            Self::Geosite => geosite(),
            Self::Million => RuleSet { suffix: million(), ..RuleSet::default() },
            Self::Zone(names) | Self::Signed(names) | Self::Hashed { names, .. } => {
                let numbers: Vec<usize> = (0..names).collect();
                RuleSet { records: zone(&numbers, self.denial()), ..RuleSet::default() }
            }
            Self::ManyZones(count) => {
                RuleSet { zones: (0..count).map(small_zone).collect(), ..RuleSet::default() }
            }
        }
    }

    /// Returns how a zone of this shape denies.
    fn denial(self) -> Denial {
        match self {
            Self::Signed(_) => Denial::Names(Dice::new(20_260_805)),
            Self::Hashed { iterations, .. } => {
                let parameters = Nsec3Parameters { iterations, ..Nsec3Parameters::default() };
                Denial::Hashes(Dice::new(20_261_122), parameters)
            }
            Self::Geosite | Self::Million | Self::Zone(_) | Self::ManyZones(_) => Denial::Plain,
        }
    }

    /// Returns names to ask: half of `count` that the set matches, as rules or below them, and half
    /// that it does not.
    pub fn questions(self, count: usize) -> (Vec<String>, Vec<String>) {
        let rules = self.rules().suffix;
        let known: HashSet<&str> = rules.iter().map(String::as_str).collect();
        let mut dice = Dice::new(20_260_803);
        let hits = (0..count / 2).map(|i| {
            let rule = &rules[dice.below(rules.len())];
            if i % 2 == 0 { rule.clone() } else { format!("www.{rule}") }
        });
        let hits: Vec<String> = hits.collect();
        let mut misses = Vec::with_capacity(count / 2);
        while misses.len() < count / 2 {
            let name = name(&mut dice);
            if !is_covered(&name, &known) {
                misses.push(if misses.len() % 2 == 0 { name } else { format!("www.{name}") });
            }
        }
        (hits, misses)
    }
}

/// Returns the name with this number in the zone, and its address.
pub fn zone_name(number: usize) -> (String, Ipv4Addr) {
    let [_, b, c, d] = (number as u32).to_be_bytes();
    (format!("w{number:06}.{ZONE}"), Ipv4Addr::new(10, b, c, d))
}

/// Returns the number of a name that the zone may have.
pub fn zone_number(name: &str) -> Option<usize> {
    let (label, zone) = name.split_once('.')?;
    label.strip_prefix('w').filter(|_| zone == ZONE)?.parse().ok()
}

/// Returns a name that the zone does not have.
pub fn zone_miss(number: usize) -> String {
    format!("w{number:06}-none.{ZONE}")
}

/// Returns the name of the small zone with this number.
pub fn small_zone(number: usize) -> String {
    format!("z{number:05}.example.net")
}

/// Returns the name that is asked in a small zone; its address is [`SMALL_ZONE_ADDRESS`].
pub fn in_small_zone(zone: &str) -> String {
    format!("www.{zone}")
}

/// How a zone denies that it has a name.
enum Denial {
    /// Without proof: it is not signed.
    Plain,
    /// By NSEC, with signatures made of dice.
    Names(Dice),
    /// By NSEC3, with signatures made of dice.
    Hashes(Dice, Nsec3Parameters),
}

/// The lines of a zone that is being written.
struct Lines {
    lines: Vec<String>,
    denial: Denial,
    /// What NSEC3 says of each name: its hash, and its types.
    hashes: Vec<(Nsec3Hash, String)>,
}

impl Lines {
    /// Adds the records of a name; `next` is the one after it.
    fn name(&mut self, owner: &str, next: &str, records: &[(&str, &str)]) {
        self.lines.extend(records.iter().map(|(rtype, data)| format!("{owner}. 3600 {rtype} {data}")));
        if matches!(self.denial, Denial::Plain) {
            return;
        }
        for (rtype, _) in records {
            self.sign(owner, rtype, 3600);
        }
        // Servers refuse to write a list of types that is not in the order of their numbers (RFC
        // 4034 §4.1.2).
        let types = |proof: &str| -> String {
            let has = |rtype: &&str| {
                *rtype == "RRSIG" || *rtype == proof || records.iter().any(|(own, _)| own == rtype)
            };
            let all = ["A", "NS", "SOA", "RRSIG", "NSEC", "DNSKEY", "NSEC3PARAM"];
            all.into_iter().filter(has).collect::<Vec<_>>().join(" ")
        };
        match &self.denial {
            Denial::Plain => {}
            Denial::Names(_) => {
                self.lines.push(format!("{owner}. 300 NSEC {next}. {}", types("NSEC")));
                self.sign(owner, "NSEC", 300);
            }
            Denial::Hashes(_, parameters) => {
                // Names of ours are short and plain.
                if let Ok(name) = queries::parse_name(owner) {
                    // NSEC3 records have no line of their own in the chain (RFC 5155 §7.1).
                    self.hashes.push((parameters.hash(name.as_name()), types("")));
                }
            }
        }
    }

    /// Adds what looks like the signature of a name's records.
    fn sign(&mut self, owner: &str, rtype: &str, ttl: u32) {
        let (Denial::Names(dice) | Denial::Hashes(dice, _)) = &mut self.denial else { return };
        let labels = owner.split('.').count();
        let mut octets = [0; SIGNATURE_OCTETS];
        octets.fill_with(|| dice.roll() as u8);
        let dates = "20400101000000 20260101000000";
        self.lines.push(format!(
            "{owner}. {ttl} RRSIG {rtype} 13 {labels} {ttl} {dates} {KEY_TAG} {ZONE}. {}",
            Base64(&octets)
        ));
    }

    /// Adds the chain of hashes, if there is one.
    fn close(mut self) -> Vec<String> {
        let Denial::Hashes(_, Nsec3Parameters { iterations, .. }) = self.denial else { return self.lines };
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.sort();
        let text = |hash: &Nsec3Hash| {
            let mut text = String::new();
            // Writing into a string does not fail.
            let _ = wire::text::write_base32_hex(&mut text, hash);
            text.to_ascii_lowercase()
        };
        for (at, (hash, types)) in hashes.iter().enumerate() {
            let (next, _) = &hashes[(at + 1) % hashes.len()];
            let owner = format!("{}.{ZONE}", text(hash));
            self.lines.push(format!("{owner}. 300 NSEC3 1 0 {iterations} - {} {types}", text(next)));
            self.sign(&owner, "NSEC3", 300);
        }
        self.lines
    }
}

/// Writes the zone with the names of these numbers, which are sorted; each record a line without
/// directives.
fn zone(numbers: &[usize], denial: Denial) -> Vec<String> {
    let parameters = match &denial {
        Denial::Hashes(_, parameters) => Some(format!("1 0 {} -", parameters.iterations)),
        Denial::Plain | Denial::Names(_) => None,
    };
    let is_signed = !matches!(denial, Denial::Plain);
    let lines = Vec::with_capacity(numbers.len() * if is_signed { 4 } else { 1 } + 16);
    let mut lines = Lines { lines, denial, hashes: Vec::new() };
    let server = format!("ns.{ZONE}");
    let soa = format!("{server}. hostmaster.{ZONE}. 1 7200 600 86400 300");
    let (key, server_dot) = (format!("257 3 13 {}", Base64(&[7; SIGNATURE_OCTETS])), format!("{server}."));
    let mut apex = vec![("SOA", soa.as_str()), ("NS", server_dot.as_str())];
    if is_signed {
        apex.push(("DNSKEY", key.as_str()));
    }
    apex.extend(parameters.as_deref().map(|parameters| ("NSEC3PARAM", parameters)));
    lines.name(ZONE, &server, &apex);
    let after = |at: usize| numbers.get(at).map_or_else(|| ZONE.to_owned(), |number| zone_name(*number).0);
    lines.name(&server, &after(0), &[("A", "192.0.2.1")]);
    for (at, number) in numbers.iter().enumerate() {
        let (owner, address) = zone_name(*number);
        lines.name(&owner, &after(at + 1), &[("A", &address.to_string())]);
    }
    lines.close()
}

fn geosite() -> RuleSet {
    let mut dice = Dice::new(20_260_802);
    let mut full = hits();
    let mut seen: HashSet<String> = HashSet::new();
    while full.len() < FULL {
        let name = format!("{}.{}", word(&mut dice, 1, 3), name(&mut dice));
        if seen.insert(name.clone()) {
            full.push(name);
        }
    }
    let mut suffix = vec!["set.example.org".to_owned()];
    while suffix.len() < SUFFIX {
        let name = name(&mut dice);
        if seen.insert(name.clone()) {
            suffix.push(name);
        }
    }
    let regex = (0..REGEX).map(|i| regex(&mut dice, i)).collect();
    let networks = (1..=63).map(|i| format!("10.{i}.0.0/16")).chain(["198.51.100.0/24".to_owned()]).collect();
    RuleSet { full, suffix, regex, networks, ..RuleSet::default() }
}

fn million() -> Vec<String> {
    let mut dice = Dice::new(20_260_804);
    let mut seen: HashSet<String> = HashSet::with_capacity(MILLION);
    let mut rules = Vec::with_capacity(MILLION);
    while rules.len() < MILLION {
        let name = name(&mut dice);
        if seen.insert(name.clone()) {
            rules.push(name);
        }
    }
    rules
}

/// Returns a name of two labels as a rule, three labels sometimes; 13 characters on average.
fn name(dice: &mut Dice) -> String {
    let tld = if dice.below(100) < MAIN_TLD { TLDS[0] } else { TLDS[1 + dice.below(TLDS.len() - 1)] };
    let label = word(dice, 3, 5);
    // Real lists are full of digits, and without them syllables would run out of short names.
    let digits = if dice.below(4) == 0 { dice.below(1000).to_string() } else { String::new() };
    if dice.below(100) < THREE_LABELS {
        format!("{}.{label}{digits}.{tld}", word(dice, 1, 2))
    } else {
        format!("{label}{digits}.{tld}")
    }
}

fn word(dice: &mut Dice, min: usize, max: usize) -> String {
    (0..min + dice.below(max - min + 1)).map(|_| SYLLABLES[dice.below(SYLLABLES.len())]).collect()
}

/// Returns an expression that Go, Rust and POSIX (extended) read alike.
fn regex(dice: &mut Dice, i: usize) -> String {
    let (one, two) = (word(dice, 2, 4), word(dice, 2, 4));
    let tld = TLDS[dice.below(TLDS.len())];
    match i % 4 {
        0 => format!(r"(^|\.){one}[0-9]+\.{two}\.{tld}$"),
        1 => format!(r".+\.{one}-[a-z]{{2,6}}\.{two}\.{tld}$"),
        2 => format!(r"(^|\.){one}(cdn|img|static)[0-9]*\.{tld}$"),
        _ => format!(r".+\.{one}{two}[a-z0-9]?\.{tld}$"),
    }
}

/// Returns whether `name` or a name above it is among `rules`.
fn is_covered(name: &str, rules: &HashSet<&str>) -> bool {
    and_above(name).any(|name| rules.contains(name))
}

/// Returns `name` and the names above it.
fn and_above(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, above)| above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_shape() {
        let rules = Shape::Geosite.rules();
        assert_eq!(
            (rules.full.len(), rules.suffix.len(), rules.regex.len(), rules.networks.len()),
            (1_247, 142_316, 163, 64)
        );
        assert_eq!(rules, Shape::Geosite.rules());
        let octets: usize = rules.suffix.iter().map(String::len).sum();
        assert!((12..=14).contains(&(octets / rules.suffix.len())), "{}", octets / rules.suffix.len());
        let main = rules.suffix.iter().filter(|name| name.ends_with(".bnc")).count();
        assert!((77..=79).contains(&(100 * main / rules.suffix.len())));
        let lengths: Vec<usize> = rules.regex.iter().map(String::len).collect();
        assert!(lengths.iter().all(|length| (18..=75).contains(length)), "{lengths:?}");
    }

    #[test]
    fn hits_are_whole_rules_and_misses_none() {
        let rules = Shape::Geosite.rules();
        let full: HashSet<&str> = rules.full.iter().map(String::as_str).collect();
        let suffix: HashSet<&str> = rules.suffix.iter().map(String::as_str).collect();
        assert_eq!(hits().iter().filter(|name| full.contains(name.as_str())).count(), 24);
        assert_eq!(hits().iter().filter(|name| is_covered(name, &suffix)).count(), 20);
        assert!(misses(8).iter().all(|name| !full.contains(name.as_str()) && !is_covered(name, &suffix)));
    }

    #[test]
    fn rules_that_change_gain_one() {
        let rules = Rules::new(Shape::Geosite, true);
        let then = rules.then.expect("they change");
        let known: HashSet<&str> = rules.first.suffix.iter().map(String::as_str).collect();
        assert!(!is_covered(ADDED, &known));
        assert_eq!(then.suffix.len(), rules.first.suffix.len() + 1);
        assert!(then.suffix.iter().any(|name| name == ADDED));
        assert!(Rules::new(Shape::Geosite, false).then.is_none());
    }

    #[test]
    fn thinned_rules_say_the_same_of_what_is_asked() {
        let (hits, misses) = (hits(), misses(8));
        let asked = || hits.iter().chain(&misses).map(String::as_str);
        let rules = Rules::new(Shape::Geosite, true).thinned(asked);
        let then = rules.then.expect("they change");
        assert!(then.suffix.len() < SUFFIX / 40 && then.suffix.iter().any(|name| name == ADDED));
        let full: HashSet<&str> = rules.first.full.iter().map(String::as_str).collect();
        let suffix: HashSet<&str> = rules.first.suffix.iter().map(String::as_str).collect();
        assert!(hits.iter().all(|name| full.contains(name.as_str())));
        assert!(is_covered(&hits[0], &suffix) && !misses.iter().any(|name| is_covered(name, &suffix)));
    }

    #[test]
    fn zones_have_the_names_that_are_asked() {
        let plain = Shape::Zone(1_000).rules().records;
        assert_eq!(plain.len(), 1_003);
        let (name, address) = zone_name(999);
        assert_eq!(plain.last(), Some(&format!("{name}. 3600 A {address}")));
        assert!(!plain.iter().any(|line| line.starts_with(&zone_miss(7))));
        let signed = Shape::Signed(1_000).rules().records;
        let count = |what: &str| signed.iter().filter(|line| line.contains(what)).count();
        assert_eq!((count(" NSEC w"), count(" RRSIG A "), count(" RRSIG NSEC 13")), (1_000, 1_001, 1_002));
        // The chain closes, in the order of the names.
        assert!(
            signed.iter().any(|line| line.starts_with(&format!("{name}. 300 NSEC {ZONE}. A RRSIG NSEC")))
        );
        let apex = format!("{ZONE}. 300 NSEC ns.{ZONE}. NS SOA RRSIG NSEC DNSKEY");
        assert!(signed.contains(&apex), "types in the order of their numbers");
        let order = |name: String| name.replace('.', "\0");
        assert!(order(zone_name(7).0) < order(zone_miss(7)) && order(zone_miss(7)) < order(zone_name(8).0));
        let hashed = Shape::Hashed { names: 1_000, iterations: 10 }.rules().records;
        let chain: Vec<Vec<&str>> = hashed
            .iter()
            .filter(|line| line.contains(" NSEC3 1 0 10 - "))
            .map(|line| line.split([' ', '.']).collect())
            .collect();
        assert_eq!(chain.len(), 1_002);
        // "HASH.names.example.org. 300 NSEC3 1 0 10 - NEXT TYPES": each leads to the one after it,
        // the last to the first.
        for (at, line) in chain.iter().enumerate() {
            assert_eq!(line[11], chain[(at + 1) % chain.len()][0], "{line:?}");
        }
        assert!(hashed.contains(&format!("{ZONE}. 3600 NSEC3PARAM 1 0 10 -")));
        assert_eq!(hashed.iter().filter(|line| line.contains(" RRSIG NSEC3 13 4 300 ")).count(), 1_002);
        let small = Shape::ManyZones(1_000);
        let asked = in_small_zone(&small_zone(8));
        assert_eq!(small.rules().zones.len(), 1_000);
        assert_eq!(
            Rules::new(small, false).thinned(|| [asked.as_str()].into_iter()).first.zones,
            [small_zone(8)]
        );
        let asked = [zone_name(7).0, zone_miss(500), zone_name(999).0];
        let few =
            Rules::small(Shape::Signed(1_000), false, || asked.iter().map(String::as_str)).first.records;
        let leads = |from: &str, to: &str| {
            few.iter().any(|line| line.starts_with(&format!("{from}. 300 NSEC {to}. A ")))
        };
        assert!(
            leads(&format!("ns.{ZONE}"), &asked[0]) && leads(&asked[0], &name) && leads(&name, ZONE),
            "{few:?}"
        );
        let thinned = Rules::new(Shape::Zone(1_000), false).thinned(|| [name.as_str()].into_iter());
        assert_eq!(thinned.first.records.len(), 4);
    }

    #[test]
    fn a_million_rules_are_asked_half_in_vain() {
        let (hits, misses) = Shape::Million.questions(2_000);
        let rules = Shape::Million.rules().suffix;
        assert_eq!(rules.len(), 1_000_000);
        let rules: HashSet<&str> = rules.iter().map(String::as_str).collect();
        assert!(hits.len() == 1_000 && hits.iter().all(|name| is_covered(name, &rules)));
        assert!(misses.len() == 1_000 && !misses.iter().any(|name| is_covered(name, &rules)));
    }
}
