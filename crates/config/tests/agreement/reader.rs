//! Reads policies as a person would: rule by rule, action by action.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use engine::Security;
use engine::Transport;
use engine::matchers::number::Number;
use lists::NamePattern;
use policy::action::answer::{Block, BlockWith};
use policy::action::{Answer, Core};
use policy::condition::{TextOperator, TextSource};
use policy::{Action, AddressTerm, Condition, NameTerm, Test};
use sets::Reach;
use settings::Settings;
use wire::{Class, Flags, OptionCode, Rcode, Rtype};

use crate::Asked;
use crate::answers::{Line, Said, upstream};

/// The one reply that is written in policies; [`responded`] is what it means.
pub(crate) const RESPOND: &str = "respond(answer \"@ 120 A 10.0.0.1\"|\"@ 240 A 192.0.2.9\", continue)";

fn responded(qname: &str) -> Said {
    let line = |ttl, address: [u8; 4]| Line::new(qname, Rtype::A, ttl, &address);
    Said { rcode: Rcode::NOERROR, lines: vec![line(120, [10, 0, 0, 1]), line(240, [192, 0, 2, 9])] }
}

/// Reads the rules as a person would.
pub(crate) struct Reader<'a> {
    settings: &'a Settings,
    asked: &'a Asked,
    marks: u64,
    answer: Option<Said>,
}

/// How a policy was left.
enum Left {
    Back,
    /// With this for the client; `None` is silence.
    Ended(Option<Said>),
}

impl Reader<'_> {
    /// Returns what a client gets; `None` is silence.
    pub(crate) fn said(settings: &Settings, asked: &Asked) -> Option<Said> {
        let mut reader = Reader { settings, asked, marks: 0, answer: None };
        match reader.policy("main") {
            Left::Ended(said) => said,
            Left::Back => reader.sent(),
        }
    }

    /// Returns the answer there is, or what is said without one.
    fn sent(&self) -> Option<Said> {
        Some(self.answer.clone().unwrap_or_else(|| Said::code(Rcode::REFUSED)))
    }

    fn policy(&mut self, name: &str) -> Left {
        let policy =
            self.settings.policies.iter().find(|policy| policy.name.value == name).expect("it is there");
        for rule in &policy.rules {
            if rule.condition.as_ref().is_some_and(|condition| !self.holds(&condition.value)) {
                continue;
            }
            for action in &rule.actions {
                if let Some(left) = self.act(&action.value) {
                    return left;
                }
            }
        }
        Left::Back
    }

    /// Does one action; returns how the policy is left by it.
    fn act(&mut self, action: &Action) -> Option<Left> {
        match action {
            Action::Core(Core::Mark(mark)) => self.marks |= 1 << mark,
            Action::Core(Core::Unmark(mark)) => self.marks &= mark.map_or(0, |mark| !(1 << mark)),
            Action::Core(Core::Call(name)) => {
                if let Left::Ended(said) = self.policy(&name.value) {
                    return Some(Left::Ended(said));
                }
            }
            Action::Core(Core::Goto(name)) => {
                // Its end is the end, also when it returns.
                return Some(match self.policy(&name.value) {
                    Left::Ended(said) => Left::Ended(said),
                    Left::Back => Left::Ended(self.sent()),
                });
            }
            Action::Core(Core::Return) => return Some(Left::Back),
            Action::Core(Core::Accept) => return Some(Left::Ended(self.sent())),
            Action::Core(Core::Forget) => self.answer = None,
            Action::Core(Core::Forward(_)) => {
                let [wants_recursion, ..] = self.asked.flags;
                if !wants_recursion {
                    return Some(Left::Ended(Some(Said::code(Rcode::REFUSED))));
                }
                self.answer = Some(upstream(&self.asked.text(), self.asked.rtype));
            }
            Action::Answer(Answer::Reject(rcode)) => return Some(Left::Ended(Some(Said::code(*rcode)))),
            Action::Answer(Answer::Drop) => return Some(Left::Ended(None)),
            Action::Answer(Answer::Block(block)) => {
                let said = self.blocked(block);
                if said.is_some() && block.continues {
                    self.answer = said;
                } else {
                    return Some(Left::Ended(said));
                }
            }
            Action::Answer(Answer::Respond(respond)) => {
                assert!(respond.continues, "the only one that is generated");
                self.answer = Some(responded(&self.asked.text()));
            }
            Action::Edit(edit) => {
                let (text, rtype, settings) = (self.asked.text(), self.asked.rtype, self.settings);
                if let Some(answer) = &mut self.answer {
                    answer.edit(edit, &text, rtype, |set, address| in_set(settings, set, address));
                }
            }
            other => panic!("{other:?} is not generated"),
        }
        None
    }

    fn blocked(&self, block: &Block) -> Option<Said> {
        let addresses = match &block.with {
            BlockWith::Silence => return None,
            BlockWith::Rcode(rcode) => return Some(Said::code(*rcode)),
            BlockWith::Null => {
                vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)]
            }
            BlockWith::Addresses(addresses) => addresses.clone(),
        };
        let ttl = block.ttl.as_secs() as u32;
        let lines = addresses.iter().filter_map(|address| {
            let (rtype, octets) = match address {
                IpAddr::V4(v4) => (Rtype::A, v4.octets().to_vec()),
                IpAddr::V6(v6) => (Rtype::AAAA, v6.octets().to_vec()),
            };
            (rtype == self.asked.rtype).then(|| Line::new(&self.asked.text(), rtype, ttl, &octets))
        });
        Some(Said { rcode: Rcode::NOERROR, lines: lines.collect() })
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
            Test::Qname(terms) => terms.iter().any(|term| self.name(&term.value, &asked.text())),
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
            Test::Number(of, min, max) => {
                let name = asked.text();
                let labels = if name == "." { 0 } else { name.split('.').count() };
                let number = match of {
                    Number::EdnsSize => edns.map_or(512, |(size, ..)| (*size).max(512)),
                    Number::QnameLabels => labels as u16,
                    // Each label and its length, and the root.
                    Number::QnameLength if labels == 0 => 1,
                    Number::QnameLength => name.len() as u16 + 2,
                    Number::SubnetIpv4Bits | Number::SubnetIpv6Bits => {
                        let family = if *of == Number::SubnetIpv4Bits { 1 } else { 2 };
                        let subnet =
                            edns.and_then(|(_, _, options)| options.iter().find(|(code, _)| *code == 8));
                        match subnet.map(|(_, data)| &data[..]) {
                            Some([0, of, bits, ..]) if *of == family => u16::from(*bits),
                            _ => 0,
                        }
                    }
                };
                (*min..=*max).contains(&number)
            }
            Test::Client(terms) => terms.iter().any(|term| self.address(&term.value, asked.client)),
            Test::ClientMac(macs) => {
                let told = edns.and_then(|(_, _, options)| options.iter().find(|(code, _)| *code == 65001));
                asked.client.to_string().starts_with("203.0.113.")
                    && told.is_some_and(|(_, mac)| macs.iter().any(|other| other.as_slice() == *mac))
            }
            Test::Transport(terms) => {
                let transport = if asked.is_tcp { Transport::Tcp } else { Transport::Udp };
                terms.iter().any(|term| term.value == transport)
            }
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
            Test::Answer => self.answer.is_some(),
            Test::Answered => self.lines().any(|line| line.rtype == asked.rtype),
            Test::Rcode(codes) => self.answer.as_ref().is_some_and(|answer| codes.contains(&answer.rcode)),
            // Nobody checks anything here.
            Test::Security(states) => self.answer.is_some() && states.contains(&Security::Unchecked),
            Test::AnswerType(types) => {
                self.lines().any(|line| types.iter().any(|rtype| rtype.value == line.rtype))
            }
            Test::AnswerAddress(terms) => self
                .lines()
                .filter_map(Line::address)
                .any(|address| terms.iter().any(|term| self.address(&term.value, address))),
            Test::AnswerCname(terms) => self
                .lines()
                .filter_map(Line::target)
                .any(|target| terms.iter().any(|term| self.name(&term.value, &target))),
            Test::Env(_) => false,
            other => panic!("{other:?} is not generated"),
        }
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.answer.iter().flat_map(|answer| &answer.lines)
    }

    fn name(&self, term: &NameTerm, text: &str) -> bool {
        match term {
            NameTerm::Set(name) => {
                let set = self.settings.sets.iter().find(|set| set.name.value == *name).expect("it is there");
                set.names.iter().any(|pattern| fits(pattern, text))
            }
            NameTerm::Pattern(pattern) => fits(pattern, text),
        }
    }

    fn address(&self, term: &AddressTerm, address: IpAddr) -> bool {
        match term {
            AddressTerm::Prefixes(prefixes) => prefixes.iter().any(|prefix| prefix.contains(address)),
            AddressTerm::Set(name) => in_set(self.settings, name, address),
        }
    }
}

fn in_set(settings: &Settings, name: &str, address: IpAddr) -> bool {
    let set = settings.sets.iter().find(|set| set.name.value == name).expect("it is there");
    set.addresses
        .iter()
        .any(|&(first, last)| first.is_ipv4() == address.is_ipv4() && first <= address && address <= last)
}

fn fits(pattern: &NamePattern, text: &str) -> bool {
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
