//! Policies to the engine's steps.

mod answer;
mod core;
mod edit;
pub(super) mod event;
mod fold;
mod listed;
mod matcher;
mod outgoing;
mod shortlist;

use std::collections::BTreeMap;
use std::sync::Arc;

use diagnostic::{At, Problem, Span};
use engine::matchers::rate::RateCells;
use engine::ops::cache::CacheRules;
use engine::program::{CALLS_MAX, Op, Program, ProgramError, STEPS_MAX};
use engine::records::Records;
use engine::reverse::ReverseTable;
use engine::shortlist::{RULES_MAX, Seek, Shortlist};
use engine::snapshot::ConnectionTest;
use lists::{Sets, Term};
use sets::AddressSet;
use wire::HashKey;

use super::names::Names;
use super::{CachePlan, ttl};
use crate::flow;
use crate::policy::action::answer::Answer;
use crate::policy::action::{Addresses, Meaning};
use crate::policy::{Action, Condition, ENTRY, SPLIT, Test};
use crate::settings::{CacheSettings, Policy, Settings};
use crate::surroundings::Surroundings;
use fold::Folder;
use matcher::text_test;
use plan::jobs::Jobs;

/// What a policy refers to.
pub(super) struct Parts<'a> {
    pub(super) settings: &'a Settings,
    /// What names are hashed with.
    pub(super) key: HashKey,
    pub(super) pools: &'a BTreeMap<String, u16>,
    pub(super) caches: &'a [CachePlan],
    pub(super) names: &'a Names,
    /// Zones that are answered from before any policy.
    pub(super) zones: Option<&'a Arc<zone::Zones>>,
    /// Zones that policies answer from.
    pub(super) zone_sets: &'a BTreeMap<String, Arc<zone::Zones>>,
    /// What listeners are called, in the order in which they were opened.
    pub(super) listeners: &'a [Option<String>],
    /// What Unix sockets are called, in the order in which they were opened.
    pub(super) local_sockets: &'a [Option<String>],
    /// What rates were counted in so far.
    pub(super) rate_cells: &'a BTreeMap<String, Arc<RateCells>>,
    pub(super) surroundings: &'a dyn Surroundings,
    pub(super) sets: &'a Sets,
    pub(super) jobs: &'a Jobs,
    pub(super) records: &'a BTreeMap<String, Arc<Records>>,
    pub(super) reverse: Option<&'a Arc<ReverseTable>>,
}

/// What policies come to.
pub(super) struct Compiled {
    pub(super) program: Program,
    /// Where each step was written.
    pub(super) places: Box<[Span]>,
    /// What is asked about connections when they begin.
    pub(super) connection_tests: Box<[ConnectionTest]>,
    /// What rates are counted in, by what they say.
    pub(super) rate_cells: BTreeMap<String, Arc<RateCells>>,
}

/// Compiles the choice of views, `main`, and every policy that those lead to, one after the other.
pub(super) fn compile(parts: &Parts<'_>, problems: &mut Vec<Problem>) -> Option<Compiled> {
    let flow = flow::walk(parts.settings);
    problems.extend(flow.warnings);
    let mut emitter = Emitter {
        parts,
        fills: &flow.fills,
        problems: Vec::new(),
        ops: Vec::new(),
        places: Vec::new(),
        targets: Vec::new(),
        shortlists: Vec::new(),
        group_branches: Vec::new(),
        connection_tests: Vec::new(),
        rate_cells: BTreeMap::new(),
        view: 0,
    };
    let starts = emitter.all();
    let Emitter {
        problems: found, mut ops, places, targets, shortlists, connection_tests, rate_cells, ..
    } = emitter;
    problems.extend(found);
    let starts = match starts {
        Ok(starts) => starts,
        Err(place) => {
            problems.push(too_long(place));
            return None;
        }
    };
    for Target { at, routine, way } in targets {
        let start = starts.get(&routine).and_then(|&start| u16::try_from(start).ok());
        match (start, ops.get_mut(at), way) {
            (Some(start), Some(op), Way::Step(make)) => *op = make(start),
            (Some(start), Some(Op::Split(split)), Way::Branch(branch)) => split.set_start(branch, start),
            _ => {
                problems.push(too_long(places[at]));
                return None;
            }
        }
    }
    let last = places.last().copied().unwrap_or(Span::BUILT_IN);
    let place = |at: usize| places.get(at).copied().unwrap_or(last);
    let error = match Program::with_shortlists(ops, shortlists) {
        Ok(program) => {
            return Some(Compiled {
                program,
                places: places.into_boxed_slice(),
                connection_tests: connection_tests.into_boxed_slice(),
                rate_cells,
            });
        }
        Err(error) => error,
    };
    problems.push(match error {
        ProgramError::TooLong | ProgramError::Target { .. } => too_long(last),
        // Found before, with the names of the policies.
        ProgramError::Cycle { at } => Problem::error(place(at), "policies call each other in a circle"),
        ProgramError::Depth { at } => {
            Problem::error(place(at), format!("policies call policies more than {CALLS_MAX} levels deep"))
        }
        ProgramError::Steps => Problem::error(
            place(0),
            format!("a query can take more than {STEPS_MAX} steps through the policies"),
        )
        .hint("call fewer policies from each other"),
    });
    None
}

fn too_long(place: Span) -> Problem {
    Problem::error(place, format!("the policies have more than {} steps in all", u16::MAX - 1))
}

/// A policy in a view: caches in it keep the answers of views apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Routine<'a> {
    view: u16,
    name: &'a str,
}

/// Writes steps. What is too far away for a skip is an error with the place of the rule.
struct Emitter<'a> {
    parts: &'a Parts<'a>,
    /// Which groups fill which cache.
    fills: &'a [(String, String)],
    problems: Vec<Problem>,
    ops: Vec<Op>,
    /// The rule or action that each step comes from.
    places: Vec<Span>,
    /// Steps that lead to policies, whose places are known at the end.
    targets: Vec<Target<'a>>,
    /// What rules out rules that follow each other.
    shortlists: Vec<Shortlist>,
    /// Branches that ask a group: the split's step, which branch, the group, and where that is said.
    group_branches: Vec<(usize, usize, &'a str, Span)>,
    connection_tests: Vec<ConnectionTest>,
    rate_cells: BTreeMap<String, Arc<RateCells>>,
    /// The view whose policies are written.
    view: u16,
}

/// A step that leads to a policy.
struct Target<'a> {
    at: usize,
    routine: Routine<'a>,
    way: Way,
}

/// How a step leads to a policy.
#[derive(Clone, Copy)]
enum Way {
    /// By itself: this makes it from the first step of the policy.
    Step(fn(u16) -> Op),
    /// By a branch.
    Branch(usize),
}

/// Views whose answers caches can keep apart.
const VIEWS_MAX: u16 = 1 << 14;

/// A place that skips lead to, which is not reached yet.
#[derive(Default)]
struct Label(Vec<usize>);

impl<'a> Emitter<'a> {
    /// Writes everything; returns where each policy begins.
    fn all(&mut self) -> Result<BTreeMap<Routine<'a>, usize>, Span> {
        let settings = self.parts.settings;
        event::record_all(self);
        let rules = settings.policies.iter().flat_map(|policy| &policy.rules);
        let mut actions = rules.flat_map(|rule| &rule.actions);
        let have_place = actions.any(|action| action.value == Action::Answer(Answer::Zones(None)));
        if let (Some(zones), false) = (self.parts.zones, have_place) {
            let place = self.parts.settings.zones.first().map_or(Span::BUILT_IN, |zone| zone.name.span);
            self.push(Op::Zone(Arc::clone(zones)), place);
        }
        if let Some(At { span, .. }) = &settings.split_at {
            self.call(SPLIT, Op::Call, *span);
        }
        self.views()?;
        let mut starts = BTreeMap::new();
        let mut order = vec![Routine { view: 0, name: ENTRY }];
        order.extend(self.targets.iter().map(|target| target.routine));
        let mut next = 0;
        while let Some(&routine) = order.get(next) {
            next += 1;
            let Some(policy) = settings.policies.iter().find(|policy| policy.name.value == routine.name)
            else {
                continue;
            };
            if starts.contains_key(&routine) {
                continue;
            }
            starts.insert(routine, self.ops.len());
            self.view = routine.view;
            let known = self.targets.len();
            self.policy(policy)?;
            order.extend(self.targets[known..].iter().map(|target| target.routine));
        }
        self.group_branches()?;
        Ok(starts)
    }

    /// Writes the choice of the policy in which a query begins; what is in no view goes on with what comes next.
    fn views(&mut self) -> Result<(), Span> {
        let mut policies = vec![ENTRY];
        let mut views = Vec::new();
        for view in &self.parts.settings.views {
            let name = view.policy.value.as_str();
            let number = policies.iter().position(|policy| *policy == name).unwrap_or_else(|| {
                policies.push(name);
                policies.len() - 1
            });
            let number = u16::try_from(number).ok().filter(|&number| number < VIEWS_MAX).ok_or(view.span)?;
            let condition = self.fold(&view.condition.value, view.span);
            if condition != Condition::Constant(false) {
                views.push(((name, number, view.span), condition));
            }
        }
        self.stretches(&views, |emitter, &(name, number, place), condition, end| {
            emitter.test(condition, false, end, place);
            emitter.view = number;
            emitter.call(name, Op::Goto, place);
            place
        })
    }

    fn fold(&mut self, condition: &Condition, place: Span) -> Condition {
        let variable = |name: &str| self.parts.surroundings.variable(name);
        Folder::new(self.parts.settings, &variable, &mut self.problems).fold(condition, place)
    }

    /// Returns whether a policy, or one that it leads to, uses a cache: then each view needs its own.
    fn uses_cache(&self, name: &str) -> bool {
        let mut seen = vec![name];
        let mut next = 0;
        while let Some(&name) = seen.get(next) {
            next += 1;
            let policy = self.parts.settings.policies.iter().find(|policy| policy.name.value == name);
            for action in policy.into_iter().flat_map(|policy| &policy.rules).flat_map(|rule| &rule.actions) {
                if matches!(action.value.meaning(), Meaning::Keeps { .. }) {
                    return true;
                }
                for target in action.value.policies() {
                    if !seen.contains(&target.value.as_str()) {
                        seen.push(&target.value);
                    }
                }
            }
        }
        false
    }

    fn policy(&mut self, policy: &'a Policy) -> Result<(), Span> {
        let mut rules = Vec::with_capacity(policy.rules.len());
        for rule in &policy.rules {
            let condition = match &rule.condition {
                Some(condition) => self.fold(&condition.value, condition.span),
                None => Condition::Constant(true),
            };
            match &rule.condition {
                Some(written) if condition == Condition::Constant(false) => self.report_never(written),
                _ => rules.push((rule, condition)),
            }
        }
        self.stretches(&rules, |emitter, rule, condition, end| {
            let place = rule.condition.as_ref().map_or(rule.span, |at| at.span);
            emitter.test(condition, false, end, place);
            for action in &rule.actions {
                emitter.action(&action.value, action.span);
            }
            rule.span
        })?;
        // The end of the entry policy ends the query; the end of another goes back.
        let end = if policy.name.value == ENTRY { Op::Accept } else { Op::Return };
        self.push(end, policy.name.span);
        Ok(())
    }

    /// Writes rules that follow each other. `write` writes one and returns its place; what does not concern the query
    /// skips to the label.
    fn stretches<T>(
        &mut self,
        rules: &[(T, Condition)],
        mut write: impl FnMut(&mut Self, &T, &Condition, &mut Label) -> Span,
    ) -> Result<(), Span> {
        for stretch in rules.chunks(RULES_MAX) {
            let conditions: Vec<&Condition> = stretch.iter().map(|(_, condition)| condition).collect();
            let shortlist = shortlist::compile(self, &conditions);
            let number = u16::try_from(self.shortlists.len()).unwrap_or(u16::MAX);
            let seek = |rule: usize| {
                let can_skip = shortlist.as_ref().is_some_and(|list| list.can_skip(rule));
                can_skip.then_some(Seek { list: number, rule: rule as u16, steps: 0 })
            };
            let mut starts = Vec::new();
            for (rule, (what, condition)) in stretch.iter().enumerate() {
                let mut end = Label::default();
                let seek_at = seek(rule).map(|seek| {
                    end.0.push(self.ops.len());
                    // Its place is that of the condition.
                    self.push(Op::Seek(seek), Span::BUILT_IN);
                    self.ops.len() - 1
                });
                let start = self.ops.len();
                // Longer programs are refused as a whole.
                starts.push(u16::try_from(start).unwrap_or(u16::MAX));
                let place = write(self, what, condition, &mut end);
                if let (Some(at), Some(&first)) = (seek_at, self.places.get(start)) {
                    self.places[at] = first;
                }
                self.bind(end).map_err(|()| place)?;
            }
            starts.push(u16::try_from(self.ops.len()).unwrap_or(u16::MAX));
            if let Some(mut list) = shortlist {
                list.set_starts(starts);
                self.shortlists.push(list);
            }
        }
        Ok(())
    }

    /// Says that a rule is never taken.
    fn report_never(&mut self, condition: &At<Condition>) {
        // A policy of several views is written several times.
        let is_known = self.problems.iter().any(|problem| problem.is_at(condition.span));
        // `if: false` was meant so.
        if !is_known && condition.value != Condition::Constant(false) {
            self.problems
                .push(Problem::warning(condition.span, "this condition never holds: the rule does nothing"));
        }
    }

    fn push(&mut self, op: Op, place: Span) {
        self.ops.push(op);
        self.places.push(place);
    }

    /// Skips to `label` if `condition` is `wanted`, and otherwise goes on.
    fn test(&mut self, condition: &Condition, wanted: bool, label: &mut Label, place: Span) {
        let (parts, decides) = match condition {
            Condition::Not(inside) => return self.test(inside, !wanted, label, place),
            Condition::Test(test) => return self.matchers(test, wanted, label, place),
            Condition::Constant(holds) => return self.constant(*holds, wanted, label, place),
            // Put in place before.
            Condition::Named(_) => return,
            Condition::All(parts) => (parts, false),
            Condition::Any(parts) => (parts, true),
        };
        if wanted == decides {
            for part in parts {
                self.test(part, wanted, label, place);
            }
        } else if let Some((last, others)) = parts.split_last() {
            // One of the others can decide against it: then we go on after the last.
            let mut after = Label::default();
            for part in others {
                self.test(part, decides, &mut after, place);
            }
            self.test(last, wanted, label, place);
            // `others` and `last` come from one text: too near to be out of reach.
            let _ = self.bind(after);
        }
    }

    fn matchers(&mut self, test: &Test, wanted: bool, label: &mut Label, place: Span) {
        let mut matchers = matcher::compile(self, test, place);
        let Some(last) = matchers.pop() else { return self.constant(false, wanted, label, place) };
        // Any of them is enough.
        let mut after = Label::default();
        for matcher in matchers {
            let to = if wanted { &mut *label } else { &mut after };
            to.0.push(self.ops.len());
            self.push(Op::SkipIf(matcher, 0), place);
        }
        label.0.push(self.ops.len());
        self.push(if wanted { Op::SkipIf(last, 0) } else { Op::SkipUnless(last, 0) }, place);
        // They come from one test: too near to be out of reach.
        let _ = self.bind(after);
    }

    /// Skips to `label` if what always or never holds is `wanted`.
    fn constant(&mut self, holds: bool, wanted: bool, label: &mut Label, place: Span) {
        if holds == wanted {
            label.0.push(self.ops.len());
            self.push(Op::Skip(0), place);
        }
    }

    /// Returns the set of the addresses that an action compares with.
    fn addresses(&self, addresses: &Addresses) -> Arc<AddressSet> {
        let Addresses { prefixes, sets } = addresses;
        let inline = (!prefixes.is_empty()).then_some(Term::Inline(prefixes.as_slice()));
        let named = sets.iter().map(|name| Term::Set(name.value.as_str()));
        self.parts.sets.addresses(inline.into_iter().chain(named))
    }

    /// Puts the label here.
    fn bind(&mut self, label: Label) -> Result<(), ()> {
        let here = self.ops.len();
        for at in label.0 {
            let distance = u16::try_from(here - at - 1).map_err(|_| ())?;
            match self.ops.get_mut(at) {
                Some(Op::SkipIf(_, skip) | Op::SkipUnless(_, skip) | Op::Skip(skip)) => *skip = distance,
                Some(Op::Seek(seek)) => seek.steps = distance,
                _ => {}
            }
        }
        Ok(())
    }

    fn action(&mut self, action: &'a Action, place: Span) {
        match action {
            Action::Core(action) => core::emit(self, action, place),
            Action::Answer(action) => answer::emit(self, action, place),
            Action::Listed(action) => listed::emit(self, action, place),
            Action::Edit(action) => edit::emit(self, action, place),
            Action::Outgoing(action) => outgoing::emit(self, action, place),
            Action::Event(action) => event::emit(self, action, place),
        }
    }

    /// Leads to a policy whose first step is known at the end.
    fn call(&mut self, name: &'a str, op: fn(u16) -> Op, place: Span) {
        let view = if self.view != 0 && self.uses_cache(name) { self.view } else { 0 };
        let way = Way::Step(op);
        self.targets.push(Target { at: self.ops.len(), routine: Routine { view, name }, way });
        self.push(op(0), place);
    }

    /// Lets a branch of the split at `at` lead to a policy.
    fn branch_to_policy(&mut self, at: usize, branch: usize, name: &'a str) {
        let view = if self.view != 0 && self.uses_cache(name) { self.view } else { 0 };
        self.targets.push(Target { at, routine: Routine { view, name }, way: Way::Branch(branch) });
    }
}

/// Returns how answers are kept.
pub(super) fn rules(settings: &CacheSettings) -> CacheRules {
    CacheRules {
        min_ttl: ttl(settings.min_ttl),
        max_ttl: ttl(settings.max_ttl),
        max_negative_ttl: ttl(settings.max_negative_ttl),
        failure_ttl: ttl(settings.failure_ttl),
        stale_seconds: settings.stale.map_or(0, |stale| stale.as_secs() as u32),
        stale_ttl: ttl(settings.stale_ttl),
        stale_client_timeout_ms: settings.stale_client_timeout.as_millis() as u32,
        prefetch_percent: settings.prefetch.unwrap_or(0),
        keeps_subnets_apart: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use crate::surroundings::Memory;
    use engine::matchers::Matcher;
    use std::path::Path;

    /// Writes a program in short.
    fn shown(ops: &[Op]) -> String {
        let matcher = |matcher: &Matcher| match matcher {
            Matcher::Qname(_) => "qname".to_owned(),
            Matcher::Qtype(_) => "qtype".to_owned(),
            Matcher::Client(_) => "client".to_owned(),
            Matcher::Mark(mark) => format!("m{mark}"),
            Matcher::Marks(marks) => format!("m{marks:#b}"),
            _ => "other".to_owned(),
        };
        let shown = ops.iter().map(|op| match op {
            Op::SkipUnless(test, skip) => format!("unless {} +{skip}", matcher(test)),
            Op::SkipIf(test, skip) => format!("if {} +{skip}", matcher(test)),
            Op::Skip(skip) => format!("+{skip}"),
            Op::Seek(seek) => format!("seek {} +{}", seek.rule, seek.steps),
            Op::Call(target) => format!("call {target}"),
            Op::Return => "return".to_owned(),
            Op::Accept => "accept".to_owned(),
            Op::Drop => "drop".to_owned(),
            Op::Mark(mark) => format!("mark {mark}"),
            Op::Unmark(marks) => format!("unmark {marks:#b}"),
            Op::Local(_) => "local".to_owned(),
            Op::Zone(_) => "zones".to_owned(),
            Op::ZoneSet(_) => "a set of zones".to_owned(),
            Op::Cache(_) => "cache".to_owned(),
            Op::Reject(rcode, _) => format!("reject {rcode}"),
            Op::Forward(forward) => format!("forward {}", forward.pool.0),
            Op::Ttl(_) => "ttl".to_owned(),
            Op::Goto(target) => format!("goto {target}"),
            Op::Split(_) => "split".to_owned(),
            Op::Sleep(ms) => format!("sleep {ms}"),
            Op::Quickest(_) => "quickest".to_owned(),
            Op::Forget => "forget".to_owned(),
            Op::Truncate => "truncate".to_owned(),
            Op::Edit(_) => "edit".to_owned(),
            Op::Answer(_) => "answer".to_owned(),
            Op::Outgoing(_) => "outgoing".to_owned(),
            Op::Event(_) => "event".to_owned(),
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    fn check(policy: &str, expect: &str) {
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        let text = if policy.is_empty() { String::new() } else { format!("policy:\n{policy}") };
        let loaded = load_text(Path::new("x"), &text, &memory).expect("no mistakes");
        let plans = super::super::compile(&loaded, &[], None, &memory).map_err(|found| found[0].human());
        assert_eq!(shown(plans.expect("it compiles").snapshot.program.ops()), expect, "{policy}");
    }

    #[test]
    fn without_a_policy_own_names_come_first_then_memory_then_upstreams() {
        check("", "local; cache; forward 0; accept");
    }

    #[test]
    fn conditions_become_skips() {
        check("  main:\n    - {if: mark(1), do: drop}\n", "unless m1 +1; drop; accept");
        check("  main:\n    - {if: not mark(1), do: drop}\n", "if m1 +1; drop; accept");
        check(
            "  main:\n    - {if: mark(1) and mark(2), do: drop}\n",
            "unless m1 +2; unless m2 +1; drop; accept",
        );
        check("  main:\n    - {if: mark(1) or mark(2), do: drop}\n", "if m1 +1; unless m2 +1; drop; accept");
        check("  main:\n    - {if: 'mark in [1, 2]', do: drop}\n", "unless m0b110 +1; drop; accept");
        check(
            "  main:\n    - {if: not (mark(1) and mark(2)) or mark(3), do: [drop]}\n",
            "unless m1 +2; unless m2 +1; unless m3 +1; drop; accept",
        );
        check(
            "  main:\n    - {if: (mark(1) or mark(2)) and (mark(3) or mark(4)), do: [mark(5), drop]}\n",
            "if m1 +1; unless m2 +4; if m3 +1; unless m4 +2; mark 5; drop; accept",
        );
    }

    /// Runs the skips of a program for a set of marks.
    fn holds(ops: &[Op], marks: u64) -> bool {
        let mut at = 0;
        loop {
            let mark = |matcher: &Matcher| match matcher {
                Matcher::Mark(mark) => marks >> mark & 1 == 1,
                Matcher::Marks(bits) => marks & bits != 0,
                _ => unreachable!("only marks are tested"),
            };
            match &ops[at] {
                Op::SkipUnless(matcher, skip) if !mark(matcher) => at += 1 + usize::from(*skip),
                Op::SkipIf(matcher, skip) if mark(matcher) => at += 1 + usize::from(*skip),
                Op::SkipUnless(..) | Op::SkipIf(..) => at += 1,
                Op::Drop => return true,
                _ => return false,
            }
        }
    }

    fn meaning(condition: &Condition, marks: u64) -> bool {
        match condition {
            Condition::All(parts) => parts.iter().all(|part| meaning(part, marks)),
            Condition::Any(parts) => parts.iter().any(|part| meaning(part, marks)),
            Condition::Not(inside) => !meaning(inside, marks),
            Condition::Test(Test::Mark(list)) => list.iter().any(|mark| marks >> mark & 1 == 1),
            _ => unreachable!("only marks are tested"),
        }
    }

    fn text(condition: &Condition) -> String {
        let join = |parts: &[Condition], word: &str| {
            let parts: Vec<String> = parts.iter().map(text).collect();
            format!("({})", parts.join(word))
        };
        match condition {
            Condition::All(parts) => join(parts, " and "),
            Condition::Any(parts) => join(parts, " or "),
            Condition::Not(inside) => format!("not {}", text(inside)),
            Condition::Test(Test::Mark(list)) => format!("mark in [{}, {}]", list[0], list[list.len() - 1]),
            _ => unreachable!("only marks are tested"),
        }
    }

    fn conditions() -> impl proptest::strategy::Strategy<Value = Condition> {
        use proptest::prelude::*;
        let test =
            proptest::collection::vec(0_u8..6, 1..3).prop_map(|marks| Condition::Test(Test::Mark(marks)));
        test.prop_recursive(5, 40, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 1..4).prop_map(Condition::All),
                proptest::collection::vec(inner.clone(), 1..4).prop_map(Condition::Any),
                inner.prop_map(|inside| Condition::Not(Box::new(inside))),
            ]
        })
    }

    proptest::proptest! {
        #[test]
        fn a_compiled_condition_means_what_was_written(condition in conditions()) {
            let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
            let file = format!("policy: {{main: [{{if: '{}', do: drop}}]}}\n", text(&condition));
            let loaded = load_text(Path::new("x"), &file, &memory).expect("no mistakes");
            let plans = super::super::compile(&loaded, &[], None, &memory).map_err(|found| found[0].human());
            let plans = plans.expect("it compiles");
            for marks in 0..64 {
                proptest::prop_assert_eq!(
                    holds(plans.snapshot.program.ops(), marks),
                    meaning(&condition, marks),
                    "{} with {:b}", file, marks
                );
            }
        }
    }

    #[test]
    fn rules_that_follow_each_other_share_look_ups() {
        let rule = |name: &str| format!("    - {{if: qname in suffix:{name} and rd, do: drop}}\n");
        let rules = |names: &[&str]| names.iter().map(|name| rule(name)).collect::<String>();
        let one = "unless qname +2; unless other +1; drop";
        check(&format!("  main:\n{}", rules(&["a", "b", "c"])), &format!("{one}; {one}; {one}; accept"));
        let sought = (1..5).map(|rule| format!("seek {rule} +3; {one}; ")).collect::<String>();
        check(
            &format!("  main:\n    - mark(1)\n{}    - mark(2)\n", rules(&["a", "b", "c", "d"])),
            &format!("mark 1; {sought}mark 2; accept"),
        );
        // What counts a query is not left out; what would not get to counting is.
        let counting = "    - {if: rate(all) > 1/s and qname in suffix:e, do: drop}\n".repeat(4);
        let one = "unless other +2; unless qname +1; drop";
        check(&format!("  main:\n{counting}"), &format!("{one}; {one}; {one}; {one}; accept"));
        let counting = "    - {if: qname in suffix:e and rate(all) > 1/s, do: drop}\n".repeat(4);
        let one = "+3; unless qname +2; unless other +1; drop";
        check(
            &format!("  main:\n{counting}"),
            &format!("seek 0 {one}; seek 1 {one}; seek 2 {one}; seek 3 {one}; accept"),
        );
    }

    #[test]
    fn names_that_are_asked_for_elsewhere_come_before_every_policy() {
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        let text = "split:\n  example: 192.0.2.1\n  a.example: [192.0.2.2, 192.0.2.3]\nviews: [{clients: 192.0.2.9, policy: kids}]\npolicy: {main: [forward(default)], kids: [drop]}\n";
        let loaded = load_text(Path::new("x"), text, &memory).expect("no mistakes");
        let plans = super::super::compile(&loaded, &[], None, &memory).map_err(|found| found[0].human());
        let plans = plans.expect("it compiles");
        let found = shown(plans.snapshot.program.ops());
        assert!(found.starts_with("call 5; unless client +1; goto "), "{found}");
        // What lies further down comes first.
        let rule = "unless qname +3; cache; forward ";
        assert!(found.contains(&format!("{rule}2; accept; {rule}1; accept; return")), "{found}");
        // Without a policy the built-in one follows.
        let loaded =
            load_text(Path::new("x"), "split: {example: 192.0.2.1}\n", &memory).expect("no mistakes");
        let plans = super::super::compile(&loaded, &[], None, &memory).map_err(|found| found[0].human());
        let found = shown(plans.expect("it compiles").snapshot.program.ops());
        assert!(found.starts_with("call 5; local; cache; forward 0; accept; "), "{found}");
        assert_eq!(loaded.warnings, []);
    }

    #[test]
    fn policies_that_are_called_follow_the_first() {
        check(
            "  kids:\n    - {if: mark(1), do: return}\n    - reject(refused)\n  main:\n    - call(kids)\n    - forward(default)\n",
            "call 3; forward 0; accept; unless m1 +1; return; reject REFUSED; return",
        );
    }

    /// Checks what is said about policies that cannot be compiled.
    fn check_refused(text: &str, expect: &str) {
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        let loaded = load_text(Path::new("x"), text, &memory).expect("no mistakes");
        let found = super::super::compile(&loaded, &[], None, &memory).err().expect("it is refused");
        assert!(found.iter().any(|found| found.line() == expect), "{}", found[0].line());
    }

    #[test]
    fn policies_that_call_too_deep_are_refused() {
        let chain: String = (0..5000).map(|level| format!("  p{level}: [call(p{})]\n", level + 1)).collect();
        check_refused(
            &format!("policy:\n  main: [call(p0)]\n{chain}  p5000: [drop]\n"),
            "x:18:9: error: policies call policies more than 16 levels deep",
        );
    }

    #[test]
    fn policies_with_too_many_steps_are_refused() {
        let rules = "    - mark(1)\n".repeat(70_000);
        check_refused(
            &format!("policy:\n  main:\n{rules}"),
            "x:2:3: error: the policies have more than 65534 steps in all",
        );
        check_refused(
            &format!("policy:\n  main:\n    - if: mark(2)\n      do: [{}]\n", "mark(1), ".repeat(70_000)),
            "x:3:7: error: the policies have more than 65534 steps in all",
        );
    }

    #[test]
    fn policies_that_take_too_long_are_refused() {
        let mut text = "policy:\n  main: [call(p1), call(p1)]\n".to_owned();
        for level in 1..16 {
            let next = level + 1;
            text.push_str(&format!("  p{level}: [call(p{next}), call(p{next}), call(p{next})]\n"));
        }
        text.push_str("  p16: [mark(1)]\n");
        check_refused(&text, "x:2:10: error: a query can take more than 65536 steps through the policies");
    }
}
