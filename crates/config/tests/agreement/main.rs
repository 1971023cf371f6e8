//! The compiled program and a plain reading of the same rules agree, on random policies and
//! queries: which rules are taken, in which order policies run, what answers are made, and what
//! becomes of them.

mod answers;
mod early;
mod reader;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use answers::{Said, upstream};
use config::compile;
use engine::explain::{Did, Event, Recorder};
use engine::{Client, Engine, ListenerId, Now, Outcome, Reply, Share, SnapshotCell, Transport, Verdict};
use environment::System;
use proptest::prelude::*;
use reader::Reader;
use settings::{Loaded, load_text};
use wire::{Class, Flags, Message, NameBuf, OptionCode, Question, Rcode, Rtype, Writer};

/// What the file has besides policies.
const COMMON: &str = "upstreams: {default: {servers: 192.0.2.1}}\ntrusted-peers: 203.0.113.0/24\nsets: {some: {names: [suffix:b.example, exact:other], addresses: [10.1.0.0/16, 2001:db8::/32]}}\nconditions: {named: 'qtype == A or client in some', other: not named and rd}\n";

/// Tests of the query, of marks, and of the answer there is.
const TESTS: &[&str] = &[
    "qname == a.example.",
    "qname in suffix:example|exact:b.other",
    "qname in exact:a1.example|some",
    "qname in some",
    "qname in keyword:ad",
    "qname in \"regex:^a[0-9]\"",
    "qname starts-with a",
    "qname not ends-with other",
    "qname contains ample",
    "qtype == A",
    "qtype in [AAAA, MX]",
    "qtype starts-with A",
    "client in 10.0.0.0/8",
    "client in some|192.0.2.0/24",
    "client starts-with 10.",
    "client-id == anna",
    "client-mac == 00:00:5e:00:53:01",
    "rd",
    "cd",
    "ad",
    "do",
    "edns",
    "qname-labels > 2",
    "qname-length <= 12",
    "edns-size < 1000",
    "edns-size >= 512",
    "edns-option in nsid|65001",
    "transport == tcp",
    "transport in [udp, quic]",
    "mark == 1",
    "mark in [2, 3]",
    "mark starts-with 3",
    "qclass == IN",
    "opcode != query",
    "ptr-address in 10.0.0.0/8",
    "answer",
    "answered",
    "rcode == nxdomain",
    "answer has A",
    "answer has CNAME",
    "answer-address in 10.0.0.0/8",
    "answer-address in some",
    "answer-cname in suffix:cdn.example",
    "rcode in [noerror, servfail]",
    "env(GANNET_NO_SUCH_VARIABLE)",
    "named",
    "other",
    "true",
    "false",
];

const NAMES: &[&str] = &[
    "a.example.",
    "A.Example.",
    "x.a.example.",
    "a1.example.",
    "b.example.",
    "c.b.example.",
    "ad.b.other.",
    "b.other.",
    "other.",
    "x.other.",
    "example.",
    ".",
    "1.2.3.10.in-addr.arpa.",
    "1.2.0.192.in-addr.arpa.",
];
const CLIENTS: &[&str] = &["10.0.0.1", "10.1.2.3", "192.0.2.1", "2001:db8::1", "2001:db9::1", "203.0.113.5"];
const TYPES: &[Rtype] = &[Rtype::A, Rtype::AAAA, Rtype::HTTPS, Rtype::MX, Rtype::PTR, Rtype::TXT];

/// Actions that do not lead to other policies.
const ACTIONS: &[&str] = &[
    "mark(1)",
    "mark(2)",
    "mark(3)",
    "unmark(2)",
    "unmark",
    "reject(nxdomain)",
    "reject(notimp)",
    "drop",
    "accept",
    "return",
    "forget",
    "block",
    "block(nxdomain)",
    "block(nodata, continue)",
    "block(192.0.2.80, ttl 5m)",
    "block(10.0.0.80, 2001:db8::80, continue)",
    "block(drop)",
    reader::RESPOND,
    "ttl(fixed 7s)",
    "ttl(min 150s)",
    "ttl(min 60s, max 250s)",
    "remove(AAAA)",
    "remove(MX)",
    "remove(A, MX)",
    "remove(address 10.0.0.0/8)",
    "remove(address some)",
    "keep(A)",
    "keep(address 10.0.0.0/8)",
    "limit(1)",
    "limit(2)",
    "strip(ech)",
    "strip(ech, hints)",
    "flatten",
    "sort(10.1.0.0/16, 192.0.2.0/24)",
    "ede(4, \"made up\")",
];
/// What asks an upstream: as likely as all others together, or there would be few answers to
/// change.
const FORWARD: &str = "forward(default)";

fn conditions() -> impl Strategy<Value = String> {
    prop::sample::select(TESTS).prop_map(str::to_owned).prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} and {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} or {b})")),
            inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

/// Returns whether nothing after an action in its rule is reached.
fn ends(action: &str) -> bool {
    let is_block = action.starts_with("block") && !action.contains("continue");
    is_block
        || ["reject", "goto"].iter().any(|word| action.starts_with(word))
        || ["drop", "accept", "return"].contains(&action)
}

/// Actions of a policy that may call those with higher numbers.
fn actions(policy: usize) -> impl Strategy<Value = String> {
    let mut all: Vec<String> = ACTIONS.iter().map(|&action| action.to_owned()).collect();
    for target in policy + 1..POLICIES {
        all.extend([format!("call(p{target})"), format!("goto(p{target})")]);
    }
    let one = prop_oneof![2 => prop::sample::select(all), 1 => Just(FORWARD.to_owned())];
    prop::collection::vec(one, 1..5).prop_map(|list| {
        let end = list.iter().position(|action| ends(action)).map_or(list.len(), |at| at + 1);
        let quoted: Vec<String> =
            list[..end].iter().map(|action| format!("'{}'", action.replace('\'', "''"))).collect();
        format!("[{}]", quoted.join(", "))
    })
}

const POLICIES: usize = 4;

fn policies() -> impl Strategy<Value = String> {
    let rules = |policy: usize| {
        prop::collection::vec((conditions(), actions(policy)), 1..6).prop_map(move |rules| {
            let name = if policy == 0 { "main".to_owned() } else { format!("p{policy}") };
            let rules: String = rules
                .iter()
                .map(|(condition, actions)| format!("    - if: {condition}\n      do: {actions}\n"))
                .collect();
            format!("  {name}:\n{rules}")
        })
    };
    (rules(0), rules(1), rules(2), rules(3)).prop_map(|(a, b, c, d)| format!("{COMMON}policy:\n{a}{b}{c}{d}"))
}

/// What rules of long policies begin with: things that rule many of them out at once.
const LEADS: &[&str] = &[
    "qname in suffix:example",
    "qname in suffix:a.example|exact:b.other",
    "qname in exact:a1.example|suffix:x.other",
    "qname in suffix:other|keyword:ad",
    "qname in keyword:ad",
    "qname in keyword:mp|keyword:ad.b",
    "qname in keyword:b.o|some",
    "not qname in keyword:a1",
    "qname in \"regex:^a[0-9]\"",
    "not qname in \"regex:^a[0-9]\"|keyword:other",
    "qname in some",
    "qname in some|exact:a.example",
    "qname contains ample",
    "not qname in suffix:b.example",
    "qtype == A",
    "qtype in [AAAA, MX, TYPE300]",
    "not qtype == A",
    "(qtype == AAAA or mark(1))",
    "client in 10.0.0.0/8",
    "client in 10.1.0.0/16|2001:db8::/32",
    "client in some|192.0.2.0/24",
    "not client in 10.0.0.0/8|203.0.113.0/24",
    "client-mac == 00:00:5e:00:53:01",
    "client-mac in 00:00:5e:00:53:02|00:00:5e:00:53:03",
    "transport == tcp",
    "edns-size < 1000",
    "do",
    "not rd",
    "mark == 1",
    "mark in [2, 3]",
    "not mark(3)",
    "answer",
    "answer has A",
    "rcode == nxdomain",
];

/// What rules of long policies mostly do, so that queries get to later ones.
const SMALL_ACTIONS: &[&str] = &[
    "mark(1)",
    "mark(2)",
    "mark(3)",
    "unmark(2)",
    "unmark",
    "block(nodata, continue)",
    "ttl(max 100s)",
    "forget",
];

/// Policies of which the first has many rules, as people who block and route a lot write them.
fn long_policies() -> impl Strategy<Value = String> {
    let lead = || prop::sample::select(LEADS).prop_map(str::to_owned);
    let condition = prop_oneof![
        3 => lead(),
        3 => (lead(), lead()).prop_map(|(one, other)| format!("{one} and {other}")),
        1 => (lead(), conditions()).prop_map(|(lead, other)| format!("{other} or {lead}")),
        1 => conditions(),
    ];
    let small = prop::sample::select(SMALL_ACTIONS).prop_map(|action| format!("['{action}']"));
    let action = prop_oneof![4 => small, 1 => Just(format!("['{FORWARD}']")), 1 => actions(0)];
    let rules = prop::collection::vec((condition, action), 9..90).prop_map(|rules| {
        rules
            .iter()
            .map(|(condition, actions)| format!("    - if: {condition}\n      do: {actions}\n"))
            .collect()
    });
    (rules, policies()).prop_map(|(rules, others): (String, String)| {
        let (head, rest) = others.split_once("policy:\n  main:\n").expect("it begins so");
        format!("{head}policy:\n  main:\n{rules}{rest}")
    })
}

/// A query.
#[derive(Clone, Debug)]
struct Asked {
    name: &'static str,
    rtype: Rtype,
    client: IpAddr,
    is_tcp: bool,
    flags: [bool; 3],
    #[expect(clippy::type_complexity, reason = "it stands nowhere else")]
    edns: Option<(u16, bool, Vec<(u16, &'static [u8])>)>,
}

fn queries() -> impl Strategy<Value = Asked> {
    let options = prop::sample::subsequence(
        vec![
            (3_u16, b"".as_slice()),
            (65001, b"\x00\x00\x5e\x00\x53\x01"),
            (65074, b"Anna"),
            (65074, b"ben"),
        ],
        0..3,
    );
    let edns =
        prop::option::of((prop::sample::select(vec![0_u16, 512, 999, 1232, 4096]), any::<bool>(), options));
    (
        prop::sample::select(NAMES),
        prop::sample::select(TYPES),
        prop::sample::select(CLIENTS),
        any::<bool>(),
        any::<[bool; 3]>(),
        edns,
    )
        .prop_map(|(name, rtype, client, is_tcp, flags, edns)| Asked {
            name,
            rtype,
            client: client.parse().expect("an address"),
            is_tcp,
            flags,
            edns,
        })
}

impl Asked {
    fn bytes(&self) -> Vec<u8> {
        let name: NameBuf = self.name.parse().expect("a name");
        let mut flags = Flags::default();
        for (is_set, flag) in self.flags.iter().zip([Flags::RD, Flags::CD, Flags::AD]) {
            if *is_set {
                flags = flags.with(flag);
            }
        }
        let mut bytes = vec![0; 1024];
        let mut writer = Writer::new(&mut bytes, 1024, 7, flags);
        let question = Question { qname: name.as_name(), qtype: self.rtype, qclass: Class::IN };
        writer.question(&question).expect("room");
        if let Some((size, wants_dnssec, options)) = &self.edns {
            writer
                .opt(*size, Rcode::NOERROR, *wants_dnssec, |opt| {
                    for (code, data) in options {
                        opt.option(OptionCode(*code), data)?;
                    }
                    Ok(())
                })
                .expect("room");
        }
        let len = writer.finish();
        bytes.truncate(len);
        bytes
    }

    fn client(&self) -> Client {
        Client {
            address: self.client,
            port: 4711,
            transport: if self.is_tcp { Transport::Tcp } else { Transport::Udp },
            verified: true,
            reply_octets_max: u16::MAX,
            keepalive: None,
            listener: ListenerId::default(),
            connection: 0,
            certificate: None,
        }
    }

    fn text(&self) -> String {
        let name = self.name.to_ascii_lowercase();
        if name == "." { name } else { name.trim_end_matches('.').to_owned() }
    }
}

/// Asks the engine, plays the upstream, and returns what the client gets; `None` is silence.
fn ask(engine: &mut Engine, asked: &Asked) -> Option<Said> {
    let client = asked.client();
    let mut buffer = [0; 4096];
    let mut reply = Reply::new(&mut buffer);
    let mut verdict = engine.answer(&asked.bytes(), &client, &mut reply);
    let brought =
        upstream(&asked.text(), asked.rtype).message(&asked.name.parse().expect("a name"), asked.rtype);
    loop {
        match verdict {
            Verdict::Answered => {
                return Some(Said::read(&Message::parse(reply.bytes()).expect("a reply")));
            }
            Verdict::Drop | Verdict::Stream(_) => return None,
            Verdict::Defer(suspended) => {
                let message = Message::parse(&brought).expect("a message");
                verdict = engine.resume(suspended, Outcome::Reply(&message), Share::First, &mut reply);
            }
        }
    }
}

/// Returns an engine on these policies, and the settings as they were read.
fn start(text: &str) -> (Engine, Loaded) {
    let loaded = match load_text(Path::new("x"), text, &System) {
        Ok(loaded) => loaded,
        Err(found) => panic!("{}\n{text}", found[0].line()),
    };
    let plans = match compile(&loaded, &[], None, &System) {
        Ok(plans) => plans,
        Err(found) => panic!("{}\n{text}", found[0].line()),
    };
    let (reclaim, _) = channel();
    let cell = Arc::new(SnapshotCell::new(Arc::clone(&plans.snapshot), reclaim));
    let mut engine = Engine::new(cell, Arc::default());
    engine.begin(Now::new(SystemTime::now(), Duration::ZERO));
    (engine, loaded)
}

/// Asks an engine on these policies, and a reader of them.
fn check(text: &str, queries: &[Asked]) -> Result<(), TestCaseError> {
    let text = format!("allow: any\n{text}");
    let (mut engine, loaded) = start(&text);
    for asked in queries {
        prop_assert_eq!(
            ask(&mut engine, asked),
            Reader::said(&loaded.settings, asked),
            "{:?}\n{}",
            asked,
            &text
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn compiled_rules_decide_as_they_read(
        text in policies(),
        queries in prop::collection::vec(queries(), 16),
    ) {
        check(&text, &queries)?;
    }
}

proptest! {
    // Each has up to ninety rules.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rules_that_are_left_out_would_not_have_been_taken(
        text in long_policies(),
        queries in prop::collection::vec(queries(), 16),
    ) {
        check(&text, &queries)?;
    }
}

/// Returns how many conditions are tried for an address of `qname`.
fn tried(engine: &mut Engine, qname: &'static str) -> usize {
    let asked = Asked {
        name: qname,
        rtype: Rtype::A,
        client: IpAddr::from([127, 0, 0, 1]),
        is_tcp: false,
        flags: [true, false, false],
        edns: None,
    };
    let mut recorder = Recorder::default();
    let mut buffer = [0; 512];
    let client = asked.client();
    let verdict = engine.explain(&asked.bytes(), &client, &mut Reply::new(&mut buffer), &mut recorder);
    assert!(matches!(verdict, Verdict::Answered), "{qname}");
    let is_test = |event: &&Event| matches!(event, Event::Step { did: Did::Tested { .. }, .. });
    recorder.take().events.iter().filter(is_test).count()
}

#[test]
fn of_many_rules_on_names_only_those_are_tried_whose_pattern_fits() {
    let rule = |number: usize| match number % 4 {
        0 => format!("qname in keyword:word{number}x"),
        1 => format!("qname in \"regex:^ads{number}-[a-z]+\\.\""),
        2 => format!("qname in suffix:r{number}.example"),
        _ => format!("qname in exact:r{number}.example and rd"),
    };
    let rules: String =
        (0..500).map(|number| format!("    - {{if: '{}', do: mark(1)}}\n", rule(number))).collect();
    let text = format!(
        "upstreams: {{default: {{servers: 192.0.2.1}}}}\npolicy:\n  main:\n{rules}    - reject(nxdomain)\n"
    );
    let (mut engine, _) = start(&text);
    for (qname, expect) in [
        ("www.none.example.", 0),
        ("www.word400x.example.", 1),
        ("word400x.word0x.example.", 2),
        ("ads1-one.example.", 1),
        ("ads1-x.word4x.r6.example.", 3),
        ("r7.example.", 2),
    ] {
        assert_eq!(tried(&mut engine, qname), expect, "{qname}");
    }
}
