//! The compiled program and a plain reading of the same rules agree, on random policies and queries.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use config::policy::action::{Answer, Core};
use config::policy::condition::{TextOperator, TextSource, TransportTerm};
use config::policy::{Action, AddressTerm, Condition, NameTerm, Test};
use config::settings::{NamePattern, Settings};
use config::{System, compile, load_text};
use engine::{Client, Engine, ListenerId, Now, Reply, SnapshotCell, Transport, Verdict};
use proptest::prelude::*;
use sets::Reach;
use wire::{Class, Flags, Message, NameBuf, OptionCode, Question, Rcode, Rtype, Writer};

/// What the file has besides policies.
const COMMON: &str = "upstreams: {default: {servers: 192.0.2.1}}\ntrusted-peers: 203.0.113.0/24\nsets: {some: {names: [suffix:b.example, exact:other], addresses: [10.1.0.0/16, 2001:db8::/32]}}\nconditions: {named: 'qtype == A or client in some', other: not named and rd}\n";

/// Tests that depend on the query alone.
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
    "rd",
    "cd",
    "ad",
    "do",
    "edns",
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
    "answer-address in 10.0.0.0/8",
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
const TYPES: &[Rtype] = &[Rtype::A, Rtype::AAAA, Rtype::MX, Rtype::PTR, Rtype::TXT];

fn conditions() -> impl Strategy<Value = String> {
    prop::sample::select(TESTS).prop_map(str::to_owned).prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} and {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} or {b})")),
            inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

/// Actions of a policy that may call those with higher numbers.
fn actions(policy: usize) -> impl Strategy<Value = String> {
    let mut all: Vec<String> =
        ["mark(1)", "mark(2)", "mark(3)", "reject(nxdomain)", "reject(notimp)", "drop", "accept", "return"]
            .map(str::to_owned)
            .to_vec();
    all.extend((policy + 1..POLICIES).map(|target| format!("call(p{target})")));
    // What ends comes last in a rule, or nothing after it is reached.
    prop::collection::vec(prop::sample::select(all), 1..4).prop_map(|list| {
        let ends =
            |action: &str| action.starts_with("reject") || ["drop", "accept", "return"].contains(&action);
        let end = list.iter().position(|action| ends(action)).map_or(list.len(), |at| at + 1);
        format!("[{}]", list[..end].join(", "))
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

    fn text(&self) -> String {
        let name = self.name.to_ascii_lowercase();
        if name == "." { name } else { name.trim_end_matches('.').to_owned() }
    }
}

/// What came of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Nothing,
    Code(Rcode),
}

/// Reads the rules as a person would.
struct Reader<'a> {
    settings: &'a Settings,
    asked: &'a Asked,
    marks: u64,
}

/// How a policy was left.
enum Left {
    Back,
    Ended(Outcome),
}

impl Reader<'_> {
    fn outcome(settings: &Settings, asked: &Asked) -> Outcome {
        let mut reader = Reader { settings, asked, marks: 0 };
        match reader.policy("main") {
            Left::Ended(outcome) => outcome,
            Left::Back => Outcome::Code(Rcode::REFUSED),
        }
    }

    fn policy(&mut self, name: &str) -> Left {
        let policy =
            self.settings.policies.iter().find(|policy| policy.name.value == name).expect("it is there");
        for rule in &policy.rules {
            if rule.condition.as_ref().is_some_and(|condition| !self.holds(&condition.value)) {
                continue;
            }
            for action in &rule.actions {
                match &action.value {
                    Action::Core(Core::Mark(mark)) => self.marks |= 1 << mark,
                    Action::Core(Core::Call(name)) => {
                        if let Left::Ended(outcome) = self.policy(&name.value) {
                            return Left::Ended(outcome);
                        }
                    }
                    Action::Core(Core::Return) => return Left::Back,
                    Action::Core(Core::Accept) => return Left::Ended(Outcome::Code(Rcode::REFUSED)),
                    Action::Answer(Answer::Reject(rcode)) => return Left::Ended(Outcome::Code(*rcode)),
                    Action::Answer(Answer::Drop) => return Left::Ended(Outcome::Nothing),
                    other => panic!("{other:?} is not generated"),
                }
            }
        }
        Left::Back
    }

    fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::All(parts) => parts.iter().all(|part| self.holds(part)),
            Condition::Any(parts) => parts.iter().any(|part| self.holds(part)),
            Condition::Not(inside) => !self.holds(inside),
            Condition::Constant(holds) => *holds,
            Condition::Named(name) => {
                let named = self.settings.conditions.iter().find(|named| named.name.value == name.value);
                self.holds(&named.expect("it is there").condition.value)
            }
            Condition::Test(test) => self.test(test),
        }
    }

    fn test(&self, test: &Test) -> bool {
        let asked = self.asked;
        let edns = asked.edns.as_ref();
        match test {
            Test::Qname(terms) => terms.iter().any(|term| self.name(&term.value)),
            Test::Qtype(types) => types.iter().any(|rtype| rtype.value == asked.rtype),
            Test::Qclass(classes) => classes.iter().any(|class| class.value == Class::IN),
            Test::Opcode(opcodes) => opcodes.iter().any(|opcode| opcode.value.0 == 0),
            Test::Flag(flag) => {
                let at = [Flags::RD, Flags::CD, Flags::AD].iter().position(|known| known == flag);
                asked.flags[at.expect("one of them")]
            }
            Test::WantsDnssec => edns.is_some_and(|(_, wants_dnssec, _)| *wants_dnssec),
            Test::Edns => edns.is_some(),
            Test::EdnsOption(codes) => edns.is_some_and(|(_, _, options)| {
                options.iter().any(|(code, _)| codes.contains(&OptionCode(*code)))
            }),
            Test::EdnsSize(min, max) => {
                (*min..=*max).contains(&edns.map_or(512, |(size, ..)| (*size).max(512)))
            }
            Test::Client(terms) => terms.iter().any(|term| self.address(&term.value, asked.client)),
            Test::Transport(terms) => terms.iter().any(|term| match term.value {
                TransportTerm::Udp => !asked.is_tcp,
                TransportTerm::Tcp => asked.is_tcp,
                TransportTerm::Encrypted => false,
            }),
            Test::Mark(marks) => marks.iter().any(|mark| self.marks >> mark & 1 == 1),
            Test::PtrAddress(terms) => {
                let address = match asked.text().as_str() {
                    "1.2.3.10.in-addr.arpa" => "10.3.2.1",
                    "1.2.0.192.in-addr.arpa" => "192.0.2.1",
                    _ => return false,
                };
                let address = address.parse().expect("an address");
                asked.rtype == Rtype::PTR && terms.iter().any(|term| self.address(&term.value, address))
            }
            Test::Text(source, test) => {
                let compare = |text: &str| {
                    test.values.iter().any(|value| {
                        let (text, value) = (text.to_ascii_lowercase(), value.to_ascii_lowercase());
                        match test.operator {
                            TextOperator::Equal => text == value,
                            TextOperator::Prefix => text.starts_with(&value),
                            TextOperator::Suffix => text.ends_with(&value),
                            TextOperator::Contains => text.contains(&value),
                            other => panic!("{other:?} is not generated"),
                        }
                    })
                };
                match source.value {
                    TextSource::Qname => compare(&asked.text()),
                    TextSource::Qtype => compare(&asked.rtype.to_string()),
                    TextSource::Client => compare(&asked.client.to_string()),
                    TextSource::Mark => {
                        (0..64).any(|mark| self.marks >> mark & 1 == 1 && compare(&mark.to_string()))
                    }
                    TextSource::ClientId => {
                        let told =
                            edns.and_then(|(_, _, options)| options.iter().find(|(code, _)| *code == 65074));
                        asked.client.to_string().starts_with("203.0.113.")
                            && told.is_some_and(|(_, id)| compare(&String::from_utf8_lossy(id)))
                    }
                    ref other => panic!("{other:?} is not generated"),
                }
            }
            // Nothing in these policies brings an answer and goes on.
            Test::Answer | Test::Answered | Test::Rcode(_) | Test::AnswerType(_) | Test::AnswerAddress(_) => {
                false
            }
            Test::Env(_) => false,
            other => panic!("{other:?} is not generated"),
        }
    }

    fn name(&self, term: &NameTerm) -> bool {
        match term {
            NameTerm::Set(name) => {
                let set = self.settings.sets.iter().find(|set| set.name.value == *name).expect("it is there");
                set.names.iter().any(|pattern| self.pattern(pattern))
            }
            NameTerm::Pattern(pattern) => self.pattern(pattern),
        }
    }

    fn pattern(&self, pattern: &NamePattern) -> bool {
        let text = self.asked.text();
        match pattern {
            NamePattern::Name(name, reach) => {
                let name = name.to_string().to_ascii_lowercase();
                let name = name.trim_end_matches('.');
                let is_below = text.ends_with(&format!(".{name}"));
                match reach {
                    Reach::Itself => text == name,
                    Reach::Below => is_below,
                    Reach::ItselfAndBelow => text == name || is_below,
                }
            }
            NamePattern::Keyword(keyword) => text.contains(keyword),
            NamePattern::Regex(regex) => {
                assert_eq!(regex, "^a[0-9]", "the only one that is generated");
                text.strip_prefix('a').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            }
        }
    }

    fn address(&self, term: &AddressTerm, address: IpAddr) -> bool {
        match term {
            AddressTerm::Prefixes(prefixes) => prefixes.iter().any(|prefix| prefix.contains(address)),
            AddressTerm::Set(name) => {
                let set = self.settings.sets.iter().find(|set| set.name.value == *name).expect("it is there");
                set.addresses.iter().any(|&(first, last)| {
                    first.is_ipv4() == address.is_ipv4() && first <= address && address <= last
                })
            }
        }
    }
}

fn ask(engine: &mut Engine, asked: &Asked) -> Outcome {
    let client = Client {
        address: asked.client,
        port: 4711,
        transport: if asked.is_tcp { Transport::Tcp } else { Transport::Udp },
        verified: true,
        reply_octets_max: u16::MAX,
        keepalive: None,
        listener: ListenerId::default(),
        connection: 0,
    };
    let mut buffer = [0; 4096];
    let mut reply = Reply::new(&mut buffer);
    match engine.answer(&asked.bytes(), &client, &mut reply) {
        Verdict::Answered => Outcome::Code(Message::parse(reply.bytes()).expect("a reply").rcode()),
        Verdict::Drop => Outcome::Nothing,
        Verdict::Defer(_) => panic!("nothing in these policies waits"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn compiled_rules_decide_as_they_read(
        text in policies(),
        queries in prop::collection::vec(queries(), 16),
    ) {
        let text = format!("allow: any\n{text}");
        let loaded = match load_text(Path::new("x"), &text, &System) {
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
        for asked in &queries {
            prop_assert_eq!(
                ask(&mut engine, asked),
                Reader::outcome(&loaded.settings, asked),
                "{:?}\n{}", asked, &text
            );
        }
    }
}
