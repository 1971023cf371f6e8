//! Where queries look into a cache early: before rules that cost more than that, and that most
//! names and clients have nothing to do with.

use std::collections::BTreeSet;

use diagnostic::{At, Span};
use engine::ops::cache::{CacheRules, CacheStep, Early};
use engine::program::{CALLS_MAX, Op};
use wire::Flags;

use super::Emitter;
use crate::action::{Answer, Core};
use crate::{Action, Condition, ENTRY, NameTerm, NamedCondition, Policy, Rule, Test};

impl<'a> Emitter<'a> {
    /// Returns before which rule of a policy queries look into a cache early, and how; `None` if
    /// that is not worth it.
    pub(super) fn early_look(&self, rules: &[(&'a Rule, Condition)]) -> Option<(usize, CacheStep, Span)> {
        let costly = rules.iter().position(|(rule, condition)| {
            self.is_costly(condition) || self.does_costly(rule, &mut BTreeSet::new())
        })?;
        let (at, look) = rules.iter().enumerate().find_map(|(at, (rule, condition))| {
            let is_always = *condition == Condition::Constant(true);
            let look = is_always.then(|| self.cache_of(rule, &mut BTreeSet::new()))??;
            Some((at, look))
        })?;
        let Look { step, place, goes_on } = look;
        // What stands behind the cache is not reached with what it has.
        if costly > at && !goes_on {
            return None;
        }
        // From there on answers may be left alone by all rules.
        let known = rules.iter().take(costly.min(at));
        let speaking = known.clone().rposition(|(rule, condition)| self.speaks_against(rule, condition));
        Some((speaking.map_or(0, |speaking| speaking + 1), step, place))
    }

    /// Has ordinary clients look into the cache of the entry policy before it is found out which
    /// view they are in.
    pub(super) fn look_before_views(&mut self) {
        let written = self.environment.written;
        let Some(entry) = written.policy(ENTRY).filter(|_| !written.views.is_empty()) else { return };
        let mut conditions = written.views.iter().map(|view| &view.condition.value);
        if !conditions.clone().any(|condition| self.is_costly(condition))
            || !conditions.all(|condition| self.is_about_answers(condition))
        {
            return;
        }
        let always = entry.rules.iter().filter(|rule| rule.condition.is_none());
        let found = always.map(|rule| self.cache_of(rule, &mut BTreeSet::new())).find_map(|look| look);
        if let Some(Look { step, place, .. }) = found {
            self.push(Op::Cache(step.early(Early::OfOrdinaryClients)), place);
        }
    }

    /// Returns the first cache that a rule looks into whatever is asked for.
    fn cache_of(&self, rule: &Rule, seen: &mut BTreeSet<String>) -> Option<Look> {
        rule.actions.iter().find_map(|action| {
            let Action::Core(core) = &action.value else { return None };
            match core {
                Core::Cache(name) => {
                    Some(Look { step: self.cache(&name.value)?, place: action.span, goes_on: false })
                }
                Core::CacheWith { name, continues, without_rd } => {
                    let step = self.cache(&name.value)?;
                    let rules = CacheRules { answers_without_rd: *without_rd, ..step.rules };
                    Some(Look { step: CacheStep { rules, ..step }, place: action.span, goes_on: *continues })
                }
                Core::Ask(name) => Some(Look { goes_on: true, ..self.cache_of_policy(&name.value, seen)? }),
                Core::Call(name) | Core::Goto(name) => self.cache_of_policy(&name.value, seen),
                _ => None,
            }
        })
    }

    fn cache_of_policy(&self, name: &str, seen: &mut BTreeSet<String>) -> Option<Look> {
        let policy = self.unseen(name, seen)?;
        let always = policy.rules.iter().filter(|rule| rule.condition.is_none());
        always.map(|rule| self.cache_of(rule, seen)).find_map(|look| look)
    }

    /// Returns a policy that was not looked at before, of no more than may be open at once.
    fn unseen(&self, name: &str, seen: &mut BTreeSet<String>) -> Option<&'a Policy> {
        if seen.len() < CALLS_MAX && seen.insert(name.to_owned()) {
            self.environment.written.policy(name)
        } else {
            None
        }
    }

    /// Returns whether an action of a rule, or a policy that it leads to, costs more than a look
    /// into a cache.
    fn does_costly(&self, rule: &Rule, seen: &mut BTreeSet<String>) -> bool {
        rule.actions.iter().any(|action| {
            matches!(action.value, Action::Listed(_))
                || action.value.policies().into_iter().any(|name| {
                    let rules = self.unseen(&name.value, seen).map_or(&[][..], |policy| &policy.rules);
                    rules.iter().any(|rule| {
                        rule.condition.as_ref().is_some_and(|condition| self.is_costly(&condition.value))
                            || self.does_costly(rule, seen)
                    })
                })
        })
    }

    /// Returns whether a rule does something to all queries, or nobody knows to which.
    fn speaks_against(&self, rule: &Rule, condition: &Condition) -> bool {
        let does_nothing = |action: &Action| {
            matches!(
                action,
                Action::Answer(Answer::Local | Answer::Hosts)
                    | Action::Core(Core::Call(_) | Core::Return | Core::Accept)
                    | Action::Listed(_)
            )
        };
        let is_always = *condition == Condition::Constant(true);
        is_always && !rule.actions.iter().all(|action| does_nothing(&action.value))
            || !self.is_about_answers(condition)
    }

    /// Returns whether a condition is about nothing but the question, the answer, and the addresses
    /// of clients.
    fn is_about_answers(&self, condition: &Condition) -> bool {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().all(|part| self.is_about_answers(part))
            }
            Condition::Not(inside) => self.is_about_answers(inside),
            Condition::Constant(_) => true,
            Condition::Named(name) => {
                self.named(name).is_some_and(|named| self.is_about_answers(&named.condition.value))
            }
            Condition::Test(test) => match test {
                Test::Qname(_)
                | Test::Qtype(_)
                | Test::Client(_)
                | Test::Mark(_)
                | Test::Answer
                | Test::Answered
                | Test::Rcode(_)
                | Test::Security(_)
                | Test::AnswerType(_)
                | Test::AnswerAddress(_)
                | Test::AnswerCname(_)
                | Test::ServerName(_)
                | Test::ServerAddress(_)
                | Test::Listed(_)
                | Test::PtrAddress(_) => true,
                Test::Flag(flag) => *flag == Flags::RD,
                Test::Qclass(_)
                | Test::Opcode(_)
                | Test::WantsDnssec
                | Test::Edns
                | Test::EdnsOption(_)
                | Test::Number(..)
                | Test::ClientMac(_)
                | Test::Listener(_)
                | Test::Transport(_)
                | Test::Now(_)
                | Test::Random(_)
                | Test::Rate(_)
                | Test::Text(..)
                | Test::Env(_) => false,
            },
        }
    }

    fn named(&self, name: &At<String>) -> Option<&'a NamedCondition> {
        self.environment.written.conditions.iter().find(|named| named.name.value == name.value)
    }

    /// Returns whether a condition looks into a list, or at who asks.
    fn is_costly(&self, condition: &Condition) -> bool {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => parts.iter().any(|part| self.is_costly(part)),
            Condition::Not(inside) => self.is_costly(inside),
            Condition::Constant(_) => false,
            Condition::Named(name) => {
                self.named(name).is_some_and(|named| self.is_costly(&named.condition.value))
            }
            Condition::Test(test) => match test {
                Test::Qname(terms) | Test::AnswerCname(terms) => {
                    terms.iter().any(|term| matches!(term.value, NameTerm::Set(_)))
                }
                Test::Client(_)
                | Test::Listed(_)
                | Test::AnswerAddress(_)
                | Test::ServerName(_)
                | Test::ServerAddress(_) => true,
                _ => false,
            },
        }
    }
}

/// A look into a cache.
struct Look {
    step: CacheStep,
    place: Span,
    /// Whether a query goes on with what it finds.
    goes_on: bool,
}
