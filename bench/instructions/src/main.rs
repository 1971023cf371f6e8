//! Runs one case of the hot path a number of times, for a tool that counts instructions.
//!
//! `gannet-instructions` lists the cases; `gannet-instructions CASE TIMES` runs one, first to warm
//! up and then in the function that the tool counts: see `cargo xtask instructions`. Never measures
//! time.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a list for the tool that calls it")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

use dnssec::{Nsec3Hash, Nsec3Parameters};
use engine::matchers::Matcher;
use engine::names::NameTable;
use engine::ops::answer::Build;
use engine::ops::cache::CacheRules;
use engine::ops::zone::Unloaded;
use engine::program::{Op, Program};
use engine::records::RecordsBuilder;
use engine::shortlist::{Kind, NameRows, PatternRules, Rows, Screen, Seek, Shortlist};
use engine::{Reply, Verdict};
use sets::{NameSet, NameSetBuilder, Reach};
use wire::text::Base64;
use wire::{NameBuf, Query, Rcode, Rtype, Ttl};
use zone::master::NoIncludes;
use zone::{Zones, load};

mod cold;
#[path = "../../../crates/engine/tests/common/mod.rs"]
mod common;
mod unmet;
use cold::Cold;
use common::{Ask, KEY, Server, gate, name, with_address};
use unmet::Unmet;

const CASES: [&str; 25] = [
    "parse",
    "parse_edns",
    "cached_1",
    "cached_1000",
    "cached_edns",
    "unmet_nothing",
    "unmet_views_tags",
    "unmet_rpz",
    "unmet_rpz_addresses",
    "local",
    "local_nxdomain",
    "deferred",
    "records",
    "records_cname",
    "rules_500",
    "zone_erldns",
    "zone_100k",
    "zone_names",
    "zone_signed",
    "zone_signed_no_data",
    "zone_nsec",
    "zone_nsec3_0",
    "zone_nsec3_10",
    "zone_referral",
    "resolve_cold",
];

/// What answers, and what it is asked.
struct Case {
    server: Server,
    queries: Vec<Vec<u8>>,
}

impl Case {
    /// Returns a server with these steps.
    fn of(ops: Vec<Op>, asks: impl IntoIterator<Item = Ask>) -> Self {
        let queries = asks.into_iter().map(|ask| ask.bytes()).collect();
        Self { server: Server::with_cache(gate(), 1 << 16, |_| ops), queries }
    }

    /// Returns a server that answers from zones.
    fn serving(zones: Arc<Zones>, asks: impl IntoIterator<Item = Ask>) -> Self {
        let Self { server, queries } = Self::of(vec![Op::Zone(Unloaded::Fails.into())], asks);
        Self { server: server.serving(zones), queries }
    }

    fn new(case: &str) -> Self {
        match case {
            "records" | "records_cname" => records(case == "records_cname"),
            "rules_500" => rules(500),
            "unmet_nothing" => unmet::case(Unmet::Nothing),
            "unmet_views_tags" => unmet::case(Unmet::ViewsAndTags),
            "unmet_rpz" => unmet::case(Unmet::PolicyZone),
            "unmet_rpz_addresses" => unmet::case(Unmet::PolicyZoneOfAddresses),
            "zone_erldns" => erldns(),
            "zone_names" => names_in_data(),
            "zone_100k" => plain(100_000),
            "zone_referral" => referral(),
            "zone_signed" => signed(Denied::ByNsec, |i| (host(i), Rtype::A)),
            "zone_signed_no_data" => signed(Denied::ByNsec, |i| (host(i), Rtype::AAAA)),
            "zone_nsec" => signed(Denied::ByNsec, |i| (miss(i), Rtype::A)),
            "zone_nsec3_0" => signed(Denied::ByNsec3(0), |i| (miss(i), Rtype::A)),
            "zone_nsec3_10" => signed(Denied::ByNsec3(10), |i| (miss(i), Rtype::A)),
            other => cached(other),
        }
    }
}

fn cached(case: &str) -> Case {
    let rules = CacheRules { prefetch_percent: 0, ..CacheRules::default() };
    let mut server = Server::new(rules);
    let names: Vec<Ask> = (0..1000).map(|i| Ask::new(&format!("domain-{i}.example.com"), Rtype::A)).collect();
    for (i, ask) in (0_u32..).zip(&names) {
        server.fetch(ask, &with_address(ask, 3600, i.to_be_bytes()));
    }
    let plain = names.iter().map(Ask::bytes).collect::<Vec<_>>();
    let edns = Ask::new("domain-0.example.com", Rtype::A).edns(1232);
    let queries = match case {
        "parse" | "cached_1" => vec![plain[0].clone()],
        "cached_1000" => plain,
        "parse_edns" | "cached_edns" => vec![edns.bytes()],
        "local" => vec![Ask::new("nas.home.arpa", Rtype::A).bytes()],
        "local_nxdomain" => vec![Ask::new("no.such.invalid", Rtype::A).bytes()],
        "deferred" => vec![Ask::new("www.example.net", Rtype::A).bytes()],
        other => panic!("no case {other}; without arguments there is a list"),
    };
    Case { server, queries }
}

/// Records written in the configuration: an address, or an alias with the address it leads to.
fn records(is_alias: bool) -> Case {
    let mut records = RecordsBuilder::new();
    let (www, host) = (name("www.example.org"), name("host.example.org"));
    records.add(host.as_name(), Rtype::A, Ttl::new(60), &[192, 0, 2, 1]);
    records.add(www.as_name(), Rtype::CNAME, Ttl::new(60), host.as_name().as_bytes());
    let step = Build::Records { set: Arc::new(records.compile(KEY)), continues: false };
    let qname = if is_alias { "www.example.org" } else { "host.example.org" };
    Case::of(vec![Op::Answer(step)], [Ask::new(qname, Rtype::A)])
}

/// One rule on the name: a keyword, a regular expression, a name with what is below it, or a name
/// alone.
fn rule(number: usize) -> NameSet {
    let mut set = NameSetBuilder::new(&KEY);
    add_rule(&mut set, number, 1);
    set.compile()
}

fn add_rule(set: &mut NameSetBuilder, number: usize, line: u32) {
    match number % 4 {
        0 => set.keyword(&format!("word{number}x"), line).expect("a keyword"),
        1 => set.regex(&format!("^ads{number}-[a-z]+\\."), line).expect("an expression"),
        2 => set.name(rule_name(number).as_name(), Reach::ItselfAndBelow, line),
        _ => set.name(rule_name(number).as_name(), Reach::Itself, line),
    }
}

fn rule_name(number: usize) -> NameBuf {
    name(&format!("r{number}.example.com"))
}

/// Rules on names of four kinds, and the shortlist that configurations get for them. A query fits
/// one of the last four.
fn rules(count: usize) -> Case {
    let row = |fitting: &dyn Fn(usize) -> bool| {
        let mut bits = vec![0_u64; count.div_ceil(64)];
        (0..count).filter(|&rule| fitting(rule)).for_each(|rule| bits[rule / 64] |= 1 << (rule % 64));
        bits.into_boxed_slice()
    };
    let (mut any, mut patterns) = (NameSetBuilder::new(&KEY), NameSetBuilder::new(&KEY));
    let mut rows = vec![row(&|_| false)];
    let (mut names, mut own, mut pattern_rules) = (Vec::new(), Vec::new(), Vec::new());
    for rule in 0..count {
        if rule % 4 < 2 {
            pattern_rules.push(Box::from([rule as u16]));
            add_rule(&mut patterns, rule, pattern_rules.len() as u32);
            continue;
        }
        add_rule(&mut any, rule, 1);
        rows.push(row(&|other| other == rule));
        let number = rows.len() as u32 + 1;
        let covers = rule % 4 == 2;
        names.push((rule_name(rule), covers));
        own.push([number, if covers { number } else { 2 }]);
    }
    let screen = Screen {
        kind: Kind::Qname,
        rows: Rows::Names(Box::new(NameRows {
            any: Arc::new(any.compile()),
            names: NameTable::compile(KEY, &names),
            rows: own.into(),
            none: 2,
            patterns: Some(PatternRules { set: Arc::new(patterns.compile()), rules: pattern_rules.into() }),
        })),
    };
    let mut list = Shortlist::new(count, vec![screen], &rows).expect("a shortlist");
    let mut ops = Vec::new();
    for number in 0..count {
        ops.push(Op::Seek(Seek { list: 0, rule: number as u16, steps: 2 }));
        ops.push(Op::SkipUnless(Matcher::Qname(Arc::new(rule(number))), 1));
        ops.push(Op::Reject(Rcode::NXDOMAIN, None));
    }
    list.set_starts((0..=count).map(|rule| (3 * rule + 1).min(3 * count) as u16).collect());
    let program = || Program::with_shortlists(ops, vec![list]).expect("a program");
    let last = count - 4;
    let asks = [
        format!("www.word{last}x.example.net"),
        format!("ads{}-one.example.net", last + 1),
        format!("www.r{}.example.com", last + 2),
        format!("r{}.example.com", last + 3),
    ];
    let asks: Vec<Ask> = asks.iter().map(|qname| Ask::new(qname, Rtype::A)).collect();
    Case { server: Server::of_program(gate(), program()), queries: asks.iter().map(Ask::bytes).collect() }
}

/// The apex of the zones.
const APEX: &str = "names.example.org";

fn host(number: usize) -> String {
    format!("w{number:06}.{APEX}")
}

fn miss(number: usize) -> String {
    format!("w{number:06}x.{APEX}")
}

fn zones(texts: &[(&str, &str)]) -> Arc<Zones> {
    let zone = |(apex, text): &(&str, &str)| {
        let apex = name(apex);
        let loaded = load(apex.as_name(), "zone", text.as_bytes(), &mut NoIncludes, KEY);
        assert!(loaded.mistakes.is_empty(), "{:?}", loaded.mistakes);
        Arc::new(loaded.zone.unwrap_or_else(|| panic!("{:?}", loaded.findings)))
    };
    Arc::new(Zones::new(KEY, texts.iter().map(zone).collect()))
}

/// The zones and the queries that erldns was measured with.
fn erldns() -> Case {
    let zones = zones(&[
        ("example.com", include_str!("../../rivals/data/example.com.zone")),
        ("test.com", include_str!("../../rivals/data/test.com.zone")),
    ]);
    let asks = [
        ("example.com", Rtype::A),
        ("example.com", Rtype::NS),
        ("example.com", Rtype::AAAA),
        ("example.com", Rtype(257)),
        ("example.com", Rtype::CNAME),
        ("ldap.example.com", Rtype::A),
        ("ns2.test.com", Rtype::A),
        ("www.test.com", Rtype::CNAME),
    ];
    Case::serving(zones, asks.map(|(qname, qtype)| Ask::new(qname, qtype)))
}

/// Answers whose data has names: servers, mail hosts, the SOA, and an alias with what it leads to.
fn names_in_data() -> Case {
    let zones = zones(&[("example.com", include_str!("../../rivals/data/example.com.zone"))]);
    let asks = [
        ("example.com", Rtype::NS),
        ("example.com", Rtype::MX),
        ("example.com", Rtype::SOA),
        ("www.example.com", Rtype::A),
    ];
    Case::serving(zones, asks.map(|(qname, qtype)| Ask::new(qname, qtype)))
}

const SOA_AND_NS: &str = "@ 3600 SOA ns hostmaster 1 7200 600 86400 300\n@ 3600 NS ns\nns 3600 A 192.0.2.1\n";

/// A zone of so many names, one address each; one question in ten is for a name that does not
/// exist.
fn plain(names: usize) -> Case {
    let mut text = SOA_AND_NS.to_owned();
    for number in 0..names {
        let [_, b, c, d] = (number as u32).to_be_bytes();
        let _ = writeln!(text, "{}. 3600 A 10.{b}.{c}.{d}", host(number));
    }
    let ask = |i: usize| {
        let number = i * 7919 % names;
        Ask::new(&if i % 10 == 9 { miss(number) } else { host(number) }, Rtype::A)
    };
    Case::serving(zones(&[(APEX, &text)]), (0..2000).map(ask))
}

/// A zone that delegates, each zone cut with two servers whose addresses it has.
fn referral() -> Case {
    let mut text = SOA_AND_NS.to_owned();
    for number in 0..100 {
        let cut = host(number);
        for server in ["ns1", "ns2"] {
            let _ = writeln!(text, "{cut}. 3600 NS {server}.{cut}.\n{server}.{cut}. 3600 A 192.0.2.2");
        }
    }
    let ask = |number: usize| Ask::new(&format!("www.{}", host(number)), Rtype::A);
    Case::serving(zones(&[(APEX, &text)]), (0..100).map(ask))
}

/// How a signed zone proves that something does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Denied {
    ByNsec,
    /// With so many iterations.
    ByNsec3(u16),
}

/// Names of the signed zones.
const SIGNED: usize = 1000;

/// A zone with signatures that no key made: a server looks at none of them.
fn signed(denied: Denied, asks: impl Fn(usize) -> (String, Rtype)) -> Case {
    let parameters = match denied {
        Denied::ByNsec => Nsec3Parameters::default(),
        Denied::ByNsec3(iterations) => Nsec3Parameters { iterations, ..Nsec3Parameters::default() },
    };
    let (server, key) = (format!("ns.{APEX}"), Base64(&[7; 64]).to_string());
    let soa = format!("{server}. hostmaster.{APEX}. 1 7200 600 86400 300");
    let mut owners = vec![
        (
            APEX.to_owned(),
            vec![("NS", format!("{server}.")), ("SOA", soa), ("DNSKEY", format!("257 3 13 {key}"))],
        ),
        (server, vec![("A", "192.0.2.1".to_owned())]),
    ];
    owners.extend((0..SIGNED).map(|number| (host(number), vec![("A", "192.0.2.2".to_owned())])));
    if denied != Denied::ByNsec {
        let data = format!("1 0 {} -", parameters.iterations);
        owners[0].1.push(("NSEC3PARAM", data));
    }
    let mut text = String::new();
    let write = |text: &mut String, owner: &str, rtype: &str, ttl: u32, data: &str| {
        let labels = owner.split('.').count();
        let dates = "20400101000000 20260101000000";
        let _ = writeln!(text, "{owner}. {ttl} {rtype} {data}");
        let _ = writeln!(text, "{owner}. {ttl} RRSIG {rtype} 13 {labels} {ttl} {dates} 58606 {APEX}. {key}");
    };
    let mut hashes: Vec<(Nsec3Hash, String)> = Vec::new();
    for (number, (owner, sets)) in owners.iter().enumerate() {
        for (rtype, data) in sets {
            write(&mut text, owner, rtype, 3600, data);
        }
        let types: Vec<&str> = sets.iter().map(|(rtype, _)| *rtype).collect();
        if denied == Denied::ByNsec {
            let next = &owners[(number + 1) % owners.len()].0;
            let data = format!("{next}. {} RRSIG NSEC", types.join(" "));
            write(&mut text, owner, "NSEC", 300, &data);
        } else {
            hashes.push((parameters.hash(name(owner).as_name()), format!("{} RRSIG", types.join(" "))));
        }
    }
    hashes.sort();
    let label = |hash: &Nsec3Hash| {
        let mut label = String::new();
        wire::text::write_base32_hex(&mut label, hash).expect("a string takes all");
        label
    };
    for (number, (hash, types)) in hashes.iter().enumerate() {
        let next = label(&hashes[(number + 1) % hashes.len()].0);
        let data = format!("1 0 {} - {next} {types}", parameters.iterations);
        write(&mut text, &format!("{}.{APEX}", label(hash)), "NSEC3", 300, &data);
    }
    let ask = |i: usize| {
        let (qname, qtype) = asks(i);
        Ask::new(&qname, qtype).edns(1232).dnssec()
    };
    Case::serving(zones(&[(APEX, &text)]), (0..SIGNED).map(ask))
}

/// Asks `times` queries, one after the other.
fn ask(name: &str, case: &mut Case, times: usize) {
    let client = case.server.client.clone();
    let mut buf = [0; 1232];
    for i in 0..times {
        let query = black_box(case.queries[i % case.queries.len()].as_slice());
        if name.starts_with("parse") {
            assert!(black_box(Query::parse(query)).is_ok());
            continue;
        }
        let mut reply = Reply::new(&mut buf);
        match case.server.engine.answer(query, &client, &mut reply) {
            Verdict::Answered => {
                // Once is enough: what it costs would count as the engine's.
                let is_refusal = i == 0 && reply.bytes().get(3).is_some_and(|flags| flags & 15 == 5);
                assert!(name != "deferred" && reply.len() >= query.len() && !is_refusal);
            }
            // Taken, as listeners take it.
            Verdict::Defer(suspended) => {
                assert_eq!(name, "deferred");
                drop(suspended);
            }
            Verdict::Stream(handed) => {
                drop(handed);
                panic!("handed over");
            }
            Verdict::Drop => panic!("dropped"),
        }
        black_box(reply.bytes());
    }
}

/// What is counted: the tool knows this function by its name.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(times)) = (arguments.next(), arguments.next()) else {
        CASES.iter().for_each(|case| println!("{case}"));
        return;
    };
    let times: usize = times.parse().expect("a number of times");
    if name == "resolve_cold" {
        let mut cold = Cold::new(2 * times);
        cold.resolve(times);
        return counted(&mut || cold.resolve(times));
    }
    let mut case = Case::new(&name);
    ask(&name, &mut case, times);
    counted(&mut || ask(&name, &mut case, times));
}
