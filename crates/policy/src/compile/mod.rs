//! Policies to the engine's steps.

mod answer;
mod core;
mod early;
mod edit;
mod event;
mod fold;
mod listed;
mod matcher;
mod natural;
mod outgoing;
mod shortlist;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use diagnostic::{At, Problem, Span};
use engine::local::LocalData;
use engine::matchers::rate::RateCells;
use engine::ops::cache::{CacheRules, Early};
use engine::ops::zone::Unloaded;
use engine::program::{CALLS_MAX, Op, Program, ProgramError, STEPS_MAX};
use engine::records::Records;
use engine::reverse::ReverseTable;
use engine::shortlist::{RULES_MAX, Seek, Shortlist};
use engine::snapshot::ConnectionTest;
use engine::{Caches, PoolId, ResolverId, Transport};
use lists::{Sets, Term};
use plan::jobs::Jobs;
use sets::{AddressSet, NameSet};
use wire::HashKey;

use crate::action::answer::Answer;
use crate::action::{Addresses, Meaning, Names};
use crate::{Action, Condition, ENTRY, Policy, Rule, SPLIT, Test, Written, flow};
pub use event::Numbers;
use fold::Folder;
use matcher::text_test;

/// What policies are compiled in: what is written, and everything that it may refer to.
pub struct Environment<'a> {
    /// What is written.
    pub written: Written<'a>,
    /// What names are hashed with.
    pub key: HashKey,
    /// Groups of upstream servers by their names.
    pub groups: BTreeMap<&'a str, Group<'a>>,
    /// Resolvers by their names.
    pub resolvers: BTreeMap<&'a str, Resolver>,
    /// The caches.
    pub caches: &'a Caches,
    /// How each cache keeps answers.
    pub cache_rules: BTreeMap<&'a str, CacheRules>,
    /// What hosts files say; `None` if there are none.
    pub hosts: Option<&'a Arc<LocalData>>,
    /// What the configuration says of names of its own, and the special-use names.
    pub local: &'a Arc<LocalData>,
    /// Where the first zone is written, if some are served: they answer before any policy, unless
    /// one says where.
    pub zones: Option<Span>,
    /// Zones that policies answer from.
    pub zone_sets: &'a BTreeMap<String, Arc<zone::Zones>>,
    /// What listeners are called, in the order in which they were opened.
    pub listeners: &'a [Option<String>],
    /// What Unix sockets are called, in the order in which they were opened.
    pub local_sockets: &'a [Option<String>],
    /// How clients can reach the server.
    pub transports: Vec<Transport>,
    /// Whether questions for ANY come to policies: some of zones do, and all if they are not
    /// answered with one record.
    pub is_asked_for_any: bool,
    /// Whether somebody is trusted to say who clients are.
    pub has_trusted_peers: bool,
    /// What rates were counted in so far.
    pub rate_cells: &'a BTreeMap<String, Arc<RateCells>>,
    /// Sets of names and addresses.
    pub sets: &'a Sets,
    /// The numbers of events and labels, the recorder and the effects, as [`Numbers::extend`]
    /// returned them.
    pub jobs: &'a Jobs,
    /// Sets of records.
    pub records: &'a BTreeMap<String, Arc<Records>>,
    /// The table of reverse look-ups, if something is remembered for it.
    pub reverse: Option<&'a Arc<ReverseTable>>,
    /// Returns the value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file that an action names.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
}

/// A resolver, as far as policies ask for it.
#[derive(Clone, Copy, Debug)]
pub struct Resolver {
    /// Its number.
    pub id: ResolverId,
    /// Whether it tells any server of clients' subnets.
    pub sends_subnets: bool,
    /// Whether it says whom to ask to who wants no recursion.
    pub refers: bool,
}

/// A group of upstream servers, as far as policies ask for it.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// Its number, if it has one.
    pub pool: Option<PoolId>,
    /// What its servers are called, in order.
    pub servers: Vec<Option<&'a str>>,
    /// Whether its servers are told the subnets that clients sent.
    pub forwards_client_subnet: bool,
    /// Whether its servers are believed when they say that an answer is authentic (AD).
    pub trusts_ad: bool,
}

/// What policies come to.
pub struct Compiled {
    /// The steps.
    pub program: Program,
    /// Where each step was written.
    pub places: Box<[Span]>,
    /// What is asked about connections when they begin.
    pub connection_tests: Box<[ConnectionTest]>,
    /// What rates are counted in, by what they say.
    pub rate_cells: BTreeMap<String, Arc<RateCells>>,
}

/// Compiles the choice of views, `main`, and every policy that those lead to, one after the other.
pub fn compile(environment: &Environment<'_>, problems: &mut Vec<Problem>) -> Option<Compiled> {
    let telling = environment.resolvers.iter().filter(|(_, resolver)| resolver.sends_subnets);
    let flow = flow::walk(environment.written, telling.map(|(name, _)| *name).collect());
    problems.extend(flow.warnings);
    let mut emitter = Emitter {
        environment,
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
    problems.extend(looks_for_nothing(&ops, &places));
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
    natural::drop_useless(&mut ops);
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

/// Returns what looks at name servers where nobody is asked who has them.
fn looks_for_nothing(ops: &[Op], places: &[Span]) -> Vec<Problem> {
    if ops.iter().any(|op| matches!(op, Op::Recurse(_))) {
        return Vec::new();
    }
    let at: BTreeSet<Span> =
        ops.iter().zip(places).filter(|(op, _)| op.looks_at_servers()).map(|(_, place)| *place).collect();
    let problem = |place| {
        let message = "this looks at name servers, which nobody hears of where no policy has \"recurse\"";
        Problem::warning(place, message)
    };
    at.into_iter().map(problem).collect()
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
    environment: &'a Environment<'a>,
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
    /// Branches that ask a group: the split's step, which branch, the group, and where that is
    /// said.
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
        let written = self.environment.written;
        event::record_all(self);
        let rules = written.policies.iter().flat_map(|policy| &policy.rules);
        let mut actions = rules.flat_map(|rule| &rule.actions);
        let have_place =
            actions.any(|action| matches!(action.value, Action::Answer(Answer::Zones { set: None, .. })));
        if let (Some(place), false) = (self.environment.zones, have_place) {
            self.push(Op::Zone(Unloaded::Fails.into()), place);
        }
        if let Some(span) = written.split {
            self.call(SPLIT, Op::Call, span);
        }
        self.look_before_views();
        self.views()?;
        let mut starts = BTreeMap::new();
        let mut order = vec![Routine { view: 0, name: ENTRY }];
        order.extend(self.targets.iter().map(|target| target.routine));
        let mut next = 0;
        while let Some(&routine) = order.get(next) {
            next += 1;
            let Some(policy) = written.policy(routine.name) else { continue };
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

    /// Writes the choice of the policy in which a query begins; what is in no view goes on with
    /// what comes next.
    fn views(&mut self) -> Result<(), Span> {
        let mut policies = vec![ENTRY];
        let mut views = Vec::new();
        for view in self.environment.written.views {
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
        Folder::new(self.environment, &mut self.problems).fold(condition, place)
    }

    /// Returns whether a policy, or one that it leads to, uses a cache: then each view needs its
    /// own.
    fn uses_cache(&self, name: &str) -> bool {
        let mut seen = vec![name];
        let mut next = 0;
        while let Some(&name) = seen.get(next) {
            next += 1;
            let policy = self.environment.written.policy(name);
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
        let early = self.early_look(&rules);
        let (before, after) = rules.split_at(early.as_ref().map_or(0, |(at, ..)| *at));
        self.rules(before)?;
        if let Some((_, step, place)) = early {
            self.push(Op::Cache(step.early(Early::Yes)), place);
        }
        self.rules(after)?;
        // The end of the entry policy ends the query; the end of another goes back.
        let end = if policy.name.value == ENTRY { Op::Accept } else { Op::Return };
        self.push(end, policy.name.span);
        Ok(())
    }

    fn rules(&mut self, rules: &[(&'a Rule, Condition)]) -> Result<(), Span> {
        self.stretches(rules, |emitter, rule, condition, end| {
            let place = rule.condition.as_ref().map_or(rule.span, |at| at.span);
            emitter.test(condition, false, end, place);
            for action in &rule.actions {
                emitter.action(&action.value, action.span);
            }
            rule.span
        })
    }

    /// Writes rules that follow each other. `write` writes one and returns its place; what does not
    /// concern the query skips to the label.
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
        self.environment.sets.addresses(inline.into_iter().chain(named))
    }

    fn names(&self, names: &Names) -> Arc<NameSet> {
        let Names { patterns, sets } = names;
        let named = sets.iter().map(|name| Term::Set(name.value.as_str()));
        self.environment.sets.names(patterns.iter().map(Term::Inline).chain(named))
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
