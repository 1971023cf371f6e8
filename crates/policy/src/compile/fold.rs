//! Conditions as they are tested: named ones put in place, and what is known when the file is
//! loaded worked out.

use diagnostic::{Problem, Span};
use engine::Transport;
use wire::{Class, Opcode, Rcode, Rtype};

use super::{Environment, text_test};
use crate::condition::{MARKS, TextSource, TextTest};
use crate::{Condition, Test};

/// Tests of one rule, named conditions put in place: beyond that the rule is too large.
const TESTS_MAX: usize = 10_000;

/// Works out what is known.
pub(super) struct Folder<'a> {
    environment: &'a Environment<'a>,
    problems: &'a mut Vec<Problem>,
    /// Tests that this rule may still have.
    left: usize,
}

impl<'a> Folder<'a> {
    pub(super) fn new(environment: &'a Environment<'a>, problems: &'a mut Vec<Problem>) -> Self {
        Self { environment, problems, left: TESTS_MAX }
    }

    /// Returns the same condition without names and constants inside; `place` is where mistakes are
    /// reported.
    pub(super) fn fold(mut self, condition: &Condition, place: Span) -> Condition {
        let folded = self.inside(condition, place);
        if self.left == 0 {
            self.problems
                .push(Problem::error(place, format!("this condition comes to more than {TESTS_MAX} tests")));
        }
        folded
    }

    fn inside(&mut self, condition: &Condition, place: Span) -> Condition {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return Condition::Constant(false);
        }
        match condition {
            Condition::Constant(holds) => Condition::Constant(*holds),
            Condition::All(parts) => self.several(parts, false, place),
            Condition::Any(parts) => self.several(parts, true, place),
            Condition::Not(inside) => match self.inside(inside, place) {
                Condition::Constant(holds) => Condition::Constant(!holds),
                Condition::Not(inside) => *inside,
                other => Condition::Not(Box::new(other)),
            },
            Condition::Named(name) => {
                let found =
                    self.environment.written.conditions.iter().find(|named| named.name.value == name.value);
                found.map_or(Condition::Constant(false), |named| self.inside(&named.condition.value, place))
            }
            Condition::Test(test) => self.test(test),
        }
    }

    /// Folds what is joined by `and` (an end of `false` decides) or `or` (an end of `true`
    /// decides).
    fn several(&mut self, parts: &[Condition], decides: bool, place: Span) -> Condition {
        let mut kept = Vec::new();
        for part in parts {
            match self.inside(part, place) {
                Condition::Constant(holds) if holds == decides => return Condition::Constant(decides),
                Condition::Constant(_) => {}
                Condition::All(inside) if !decides => kept.extend(inside),
                Condition::Any(inside) if decides => kept.extend(inside),
                other => kept.push(other),
            }
        }
        match (kept.len(), decides) {
            (0, _) => Condition::Constant(!decides),
            (1, _) => kept.remove(0),
            (_, false) => Condition::All(kept),
            (_, true) => Condition::Any(kept),
        }
    }

    fn test(&mut self, test: &Test) -> Condition {
        let constant = match test {
            Test::Qclass(classes) => {
                for class in classes.iter().filter(|class| class.value != Class::IN) {
                    self.never(class.span, &format!("questions of class {}", class.value));
                }
                Some(classes.iter().any(|class| class.value == Class::IN))
            }
            Test::Opcode(opcodes) => {
                for opcode in opcodes.iter().filter(|opcode| opcode.value != Opcode::QUERY) {
                    self.never(opcode.span, &format!("messages with the operation {}", opcode.value));
                }
                Some(opcodes.iter().any(|opcode| opcode.value == Opcode::QUERY))
            }
            Test::Qtype(types) => {
                for rtype in types {
                    if self.is_never_asked(rtype.value) {
                        self.never(rtype.span, &format!("questions for {}", rtype.value));
                    }
                }
                types.iter().all(|rtype| self.is_never_asked(rtype.value)).then_some(false)
            }
            Test::Transport(transports) => {
                for term in transports {
                    if !self.is_spoken(&[term.value]) {
                        self.is_never_spoken(term.span, term.value.word());
                    }
                }
                None
            }
            Test::Text(source, test) => match &source.value {
                TextSource::ServerName | TextSource::Certificate(_) => {
                    use Transport::{H3, Https, Quic, Tls};
                    if !self.is_spoken(&[Tls, Https, Quic, H3]) {
                        self.is_never_spoken(source.span, "TLS");
                    }
                    None
                }
                TextSource::Path | TextSource::Header(_) => {
                    if !self.is_spoken(&[Transport::Https, Transport::H3]) {
                        self.is_never_spoken(source.span, "HTTP");
                    }
                    None
                }
                TextSource::Env(name) => {
                    let value = (self.environment.variable)(name).unwrap_or_default();
                    Some(text_test(test).holds(value.as_bytes()))
                }
                TextSource::ClientId => {
                    self.needs_trust(source.span);
                    None
                }
                TextSource::Qtype => {
                    let types = (0..=u16::MAX).map(Rtype);
                    return listed(test, types, |rtype| Condition::Test(Test::Qtype(without_places(rtype))));
                }
                TextSource::Rcode => {
                    /// Codes with names or room for one (RFC 6895 §2.3).
                    const RCODES: u16 = 4096;
                    let rcodes = (0..RCODES).map(Rcode);
                    return listed(test, rcodes, |rcodes| Condition::Test(Test::Rcode(rcodes)));
                }
                TextSource::Mark => {
                    return listed(test, 0..MARKS as u8, |marks| Condition::Test(Test::Mark(marks)));
                }
                TextSource::Qname | TextSource::Client | TextSource::AnswerAddress => None,
            },
            Test::Env(name) => Some((self.environment.variable)(name).is_some()),
            Test::ClientMac(_) => (!self.environment.has_trusted_peers).then_some(false),
            Test::Random(0) => Some(false),
            Test::Number(_, 0, u16::MAX) => Some(true),
            _ => None,
        };
        match constant {
            Some(holds) => Condition::Constant(holds),
            None => Condition::Test(test.clone()),
        }
    }

    fn never(&mut self, place: Span, what: &str) {
        self.problems.push(
            Problem::warning(place, format!("{what} never come to a policy"))
                .hint("the server answers them itself, before any rule"),
        );
    }

    /// Returns whether a listener speaks one of these.
    fn is_spoken(&self, wanted: &[Transport]) -> bool {
        wanted.iter().any(|wanted| self.environment.transports.contains(wanted))
    }

    fn is_never_spoken(&mut self, place: Span, what: &str) {
        self.problems.push(
            Problem::warning(place, format!("this is never so: no listener speaks {what}"))
                .hint("see \"transport\" under \"listen\""),
        );
    }

    /// Returns whether no question for a type comes to a policy: it is no data, and ANY is answered
    /// before.
    fn is_never_asked(&self, rtype: Rtype) -> bool {
        match rtype {
            Rtype::ANY => !self.environment.is_asked_for_any,
            Rtype::OPT => true,
            Rtype(number) => (128..=255).contains(&number),
        }
    }

    fn needs_trust(&mut self, place: Span) {
        if !self.environment.has_trusted_peers {
            self.problems.push(
                Problem::warning(place, "this is never so: nobody is trusted to say it")
                    .hint("name the forwarder under \"trusted-peers\""),
            );
        }
    }
}

/// Returns the condition that something is one of those whose text fits.
fn listed<T: std::fmt::Display>(
    test: &TextTest,
    all: impl Iterator<Item = T>,
    condition: impl FnOnce(Vec<T>) -> Condition,
) -> Condition {
    let compiled = text_test(test);
    let fitting: Vec<T> = all.filter(|one| compiled.holds(one.to_string().as_bytes())).collect();
    if fitting.is_empty() { Condition::Constant(false) } else { condition(fitting) }
}

fn without_places<T>(values: Vec<T>) -> Vec<diagnostic::At<T>> {
    values.into_iter().map(|value| diagnostic::At { value, span: Span::BUILT_IN }).collect()
}
