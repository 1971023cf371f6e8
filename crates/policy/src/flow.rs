//! Follows queries through the policies to find what is easy to get wrong in a list of rules: an
//! answer that a later rule throws away, a step that stands where it can do nothing, and a cache
//! that several upstream groups fill.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use diagnostic::{At, Problem, Span};
use engine::program::CALLS_MAX;

use crate::action::Core;
use crate::action::Meaning;
use crate::condition::{MARKS, TextOperator, TextSource};
use crate::{Action, Condition, ENTRY, Policy, SPLIT, Test, Written};

/// What following all queries brought to light.
pub struct Flow {
    /// What is easy to get wrong.
    pub warnings: Vec<Problem>,
    /// Each cache and a group whose answers it keeps.
    pub fills: Vec<(String, String)>,
}

/// Whether there is an answer at some step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Answer<'s> {
    None,
    /// There is one; who brought it and where, if throwing it away is worth a word.
    There(Option<(Source<'s>, Span)>),
}

/// Who is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source<'s> {
    Group(&'s str),
    Resolver(&'s str),
}

impl<'s> Source<'s> {
    /// Returns what it is called beside others.
    fn name(self) -> Cow<'s, str> {
        match self {
            Self::Group(name) => name.into(),
            Self::Resolver(_) => self.to_string().into(),
        }
    }

    /// Returns what makes a policy ask it.
    const fn step(self) -> &'static str {
        match self {
            Self::Group(_) => "this forward",
            Self::Resolver(_) => "this recurse",
        }
    }

    /// Returns whether it takes notice of what the action of this name changes, given which
    /// resolvers tell servers of subnets.
    fn takes(self, what: &str, telling: &BTreeSet<&str>) -> bool {
        match self {
            Self::Group(_) => true,
            // Servers of zones hear nothing else of clients; signatures and CD are for us.
            Self::Resolver(name) => what == "outgoing" || what == "ecs" && telling.contains(name),
        }
    }
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(name) => write!(f, "forward({name})"),
            Self::Resolver(name) => write!(f, "recurse({name})"),
        }
    }
}

/// What is known about a query at some step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State<'s> {
    answer: Answer<'s>,
    /// The cache that keeps what comes next.
    cache: Option<&'s str>,
    /// The fallback or race that it is a branch of.
    choice: Option<Span>,
    /// Whether another client, or the same one at another time, could take another way for the same
    /// question.
    varies: bool,
    /// Changes of what upstreams are sent, one bit for each of [`Walk::sends`].
    sends: u64,
}

type States<'s> = BTreeSet<State<'s>>;

/// Steps that are followed; beyond that the policies are too tangled to say anything.
const WORK_MAX: usize = 100_000;

/// What a condition comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Truth {
    Always,
    Never,
    Open,
}

/// Who fills a cache: a group or a resolver by itself, or a fallback or race as a whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asker<'s> {
    Alone(Source<'s>),
    Choice(Span),
}

/// A step that changes how upstreams are asked.
struct Steer<'s> {
    what: &'s str,
    /// Whether it ever came before there was an answer.
    is_early: bool,
    /// Who brought the answer where it came too late, and where that stands.
    brought: Option<(Source<'s>, Span)>,
}

/// How an asker fills a cache.
struct Filling<'s> {
    span: Span,
    sources: BTreeSet<Source<'s>>,
    varies: bool,
}

struct Walk<'s> {
    policies: BTreeMap<&'s str, &'s Policy>,
    conditions: Conditions<'s>,
    telling: BTreeSet<&'s str>,
    /// Where each call leads to from each state, and whether somebody is asked on the way.
    known: BTreeMap<(&'s str, State<'s>), (States<'s>, bool)>,
    /// Answers that are thrown away: the step that does, and the step that brought them.
    lost: BTreeMap<Span, (&'s str, Span, Source<'s>)>,
    /// Which cache is filled from which group.
    fills: BTreeSet<(&'s str, &'s str)>,
    fillings: BTreeMap<(&'s str, Asker<'s>), Filling<'s>>,
    /// Changes of what upstreams are sent, made after a cache was looked into.
    late: BTreeMap<Span, (&'s str, &'s str)>,
    /// Steps that need an answer, and whether there ever was one.
    changes: BTreeMap<Span, (&'s str, bool)>,
    /// Conditions that need an answer, and whether they ever might hold.
    tests: BTreeMap<Span, bool>,
    /// Steps that come too late where there is an answer.
    steers: BTreeMap<Span, Steer<'s>>,
    /// Changes of what upstreams are sent, as far as [`State::sends`] has room for them.
    sends: Vec<(Span, &'s str)>,
    /// Those after which somebody was asked.
    sent: u64,
    /// Whether somebody was asked since this was last taken.
    asked: bool,
    work: usize,
    /// Calls that are open.
    depth: usize,
}

/// Follows every query.
///
/// `telling` are the resolvers that tell servers of clients' subnets.
pub fn walk<'s>(written: Written<'s>, telling: BTreeSet<&'s str>) -> Flow {
    let mut walk = Walk {
        telling,
        policies: written.policies.iter().map(|policy| (policy.name.value.as_str(), policy)).collect(),
        conditions: Conditions::of(written),
        known: BTreeMap::new(),
        lost: BTreeMap::new(),
        fills: BTreeSet::new(),
        fillings: BTreeMap::new(),
        late: BTreeMap::new(),
        changes: BTreeMap::new(),
        tests: BTreeMap::new(),
        steers: BTreeMap::new(),
        sends: Vec::new(),
        sent: 0,
        asked: false,
        work: 0,
        depth: 0,
    };
    for name in [SPLIT, ENTRY].into_iter().chain(written.views.iter().map(|view| view.policy.value.as_str()))
    {
        walk.policy(name, State { answer: Answer::None, cache: None, choice: None, varies: false, sends: 0 });
    }
    let mut warnings = Vec::new();
    for (span, (step, brought, source)) in &walk.lost {
        warnings.push(
            Problem::warning(*span, format!("{step} throws away the answer that {source} brought")).hint_at(
                "that is on ",
                *brought,
                "; end the rule there with \"accept\"",
            ),
        );
    }
    for (span, (what, cache)) in &walk.late {
        warnings.push(
            Problem::warning(
                *span,
                format!("\"{what}\" comes after cache({cache}), which does not keep the answers to such queries apart"),
            )
            .hint("put it before the cache"),
        );
    }
    // What was not followed to its end may be reached in another state.
    if walk.work <= WORK_MAX {
        walk.idle(&mut warnings);
    }
    walk.mixed(&mut warnings);
    let fills = walk.fills.iter().map(|&(cache, group)| (cache.to_owned(), group.to_owned())).collect();
    Flow { warnings, fills }
}

impl<'s> Walk<'s> {
    /// Warns of steps that stand where they can do nothing.
    fn idle(&self, warnings: &mut Vec<Problem>) {
        const BEHIND: &str = "put it behind what brings one: \"forward\", or \"cache(NAME, continue)\"";
        let is_written = |span: &Span| *span != Span::BUILT_IN;
        for (span, _) in self.tests.iter().filter(|(span, may_hold)| !**may_hold && is_written(span)) {
            let message = "this condition looks at the answer, and there is none yet: the rule does nothing";
            warnings.push(Problem::warning(*span, message).hint(BEHIND));
        }
        for (span, (what, _)) in self.changes.iter().filter(|(span, (_, any))| !any && is_written(span)) {
            let message = format!("\"{what}\" does nothing here: there is no answer yet");
            warnings.push(Problem::warning(*span, message).hint(BEHIND));
        }
        for (span, steer) in self.steers.iter().filter(|(span, steer)| !steer.is_early && is_written(span)) {
            let message =
                format!("\"{}\" does nothing here: there is an answer already, and it stays", steer.what);
            let problem = Problem::warning(*span, message);
            warnings.push(match steer.brought {
                Some((source, at)) => {
                    problem.hint_at(format!("{source} brought it on "), at, "; put this before that")
                }
                None => problem.hint("put it before what brings the answer"),
            });
        }
        for (bit, (span, what)) in self.sends.iter().enumerate() {
            if self.sent >> bit & 1 == 0 && is_written(span) {
                let message = format!("\"{what}\" does nothing here: nobody is asked after it");
                warnings.push(Problem::warning(*span, message).hint("put it before \"forward\""));
            }
        }
    }

    /// Warns of caches whose answers depend on who asked first.
    fn mixed(&self, warnings: &mut Vec<Problem>) {
        let mut first: BTreeMap<&str, &Filling<'_>> = BTreeMap::new();
        let mut fillings: Vec<_> = self.fillings.iter().collect();
        fillings.sort_by_key(|(_, filling)| (filling.span.file, filling.span.start));
        let shown = |filling: &Filling<'_>| {
            filling.sources.iter().map(|source| source.name()).collect::<Vec<_>>().join("\" or \"")
        };
        for ((cache, _), filling) in fillings {
            let Some(other) = first.get(cache) else {
                first.insert(cache, filling);
                continue;
            };
            let is_same =
                other.sources.is_subset(&filling.sources) || filling.sources.is_subset(&other.sources);
            // The same question always takes the same way: the cache keeps what that brings.
            if is_same || !(filling.varies || other.varies) {
                continue;
            }
            let (one, two) = (shown(other), shown(filling));
            warnings.push(
                Problem::warning(
                    filling.span,
                    format!(
                        "cache \"{cache}\" keeps answers of both \"{one}\" and \"{two}\": clients get either"
                    ),
                )
                .hint_at(
                    format!("\"{one}\" is asked on "),
                    other.span,
                    "; give each a cache of its own",
                ),
            );
        }
    }

    /// Returns the states in which a policy can be left, except by an end.
    fn policy(&mut self, name: &'s str, state: State<'s>) -> States<'s> {
        if let Some((known, asked)) = self.known.get(&(name, state)) {
            self.asked |= asked;
            return known.clone();
        }
        // Circles were refused before; this only makes sure that we come back.
        self.known.insert((name, state), (States::new(), false));
        let Some(policy) = self.policies.get(name).copied() else { return States::from([state]) };
        // The compiler refuses calls as deep as this.
        if self.depth > CALLS_MAX {
            self.work = WORK_MAX + 1;
            return States::from([state]);
        }
        self.depth += 1;
        let asked_before = std::mem::take(&mut self.asked);
        let mut left = States::new();
        let mut states = States::from([state]);
        for rule in &policy.rules {
            let mut after = States::new();
            for state in states {
                match &rule.condition {
                    None => after.extend(self.actions(&rule.actions, state, &mut left)),
                    Some(condition) => self.rule(condition, &rule.actions, state, &mut after, &mut left),
                }
            }
            states = after;
        }
        self.depth -= 1;
        left.extend(states);
        self.known.insert((name, state), (left.clone(), self.asked));
        self.asked |= asked_before;
        left
    }

    /// Follows a rule with a condition.
    fn rule(
        &mut self,
        condition: &'s At<Condition>,
        actions: &'s [At<Action>],
        state: State<'s>,
        after: &mut States<'s>,
        left: &mut States<'s>,
    ) {
        let is_there = state.answer != Answer::None;
        let truth = self.conditions.truth(&condition.value, is_there, 0);
        if self.conditions.truth(&condition.value, false, 0) == Truth::Never
            && self.conditions.truth(&condition.value, true, 0) != Truth::Never
        {
            *self.tests.entry(condition.span).or_insert(false) |= truth != Truth::Never;
        }
        if truth == Truth::Never {
            after.insert(state);
            return;
        }
        let mut inside = state;
        // Who looks at an answer knows that it is there.
        if self.conditions.looks_at_answer(&condition.value, 0) && is_there {
            inside.answer = Answer::There(None);
        }
        if truth == Truth::Always {
            after.extend(self.actions(actions, inside, left));
            return;
        }
        let varies = self.conditions.varies(&condition.value, 0);
        inside.varies |= varies;
        let asked_before = std::mem::take(&mut self.asked);
        let left_before = left.len();
        let taken = self.actions(actions, inside, left);
        // What ends the query without asking, or goes on as if nothing had been, is no other way.
        let is_plain = |taken: &State<'s>| {
            State { varies: state.varies, answer: state.answer, ..*taken } == state
                && (taken.answer == state.answer || taken.answer == inside.answer)
        };
        let is_neutral = !self.asked && left.len() == left_before && taken.iter().all(is_plain);
        self.asked |= asked_before;
        let mut skipped = state;
        if is_neutral {
            after.extend(taken.into_iter().map(|taken| State { varies: state.varies, ..taken }));
        } else {
            skipped.varies |= varies;
            after.extend(taken);
        }
        after.insert(skipped);
    }

    /// Follows a branch: a policy, or a group.
    fn way(&mut self, name: &'s str, state: State<'s>, span: Span) {
        if self.policies.contains_key(name) {
            self.policy(name, state);
        } else {
            self.ask(Source::Group(name), state, span);
        }
    }

    /// Notes that somebody is asked.
    fn ask(&mut self, source: Source<'s>, state: State<'s>, span: Span) {
        self.asked = true;
        let taken = self.sends.iter().enumerate().filter(|(_, (_, what))| source.takes(what, &self.telling));
        self.sent |= taken.fold(0, |bits, (bit, _)| bits | 1 << bit) & state.sends;
        let Some(cache) = state.cache else { return };
        if let Source::Group(group) = source {
            self.fills.insert((cache, group));
        }
        let asker = state.choice.map_or(Asker::Alone(source), Asker::Choice);
        let span = state.choice.unwrap_or(span);
        let filling = self.fillings.entry((cache, asker)).or_insert_with(|| Filling {
            span,
            sources: BTreeSet::new(),
            varies: false,
        });
        filling.sources.insert(source);
        filling.varies |= state.varies;
    }

    /// Returns the states after a rule's actions; those in which it returns go to `left`.
    fn actions(&mut self, actions: &'s [At<Action>], state: State<'s>, left: &mut States<'s>) -> States<'s> {
        let mut states = States::from([state]);
        for action in actions {
            let mut after = States::new();
            for mut state in states {
                self.work += 1;
                if self.work > WORK_MAX {
                    return after;
                }
                match action.value.meaning() {
                    Meaning::Looks(step) => self.look(&mut state, step, action.span),
                    Meaning::Finds(step) => {
                        self.look(&mut state, step, action.span);
                        after.insert(State { answer: Answer::There(None), ..state });
                    }
                    Meaning::Keeps { cache, continues } => {
                        self.look(&mut state, "this look into the cache", action.span);
                        state.cache = Some(cache);
                        if continues {
                            after.insert(State { answer: Answer::There(None), ..state });
                        }
                    }
                    Meaning::Asks(name) => self.seek(&mut state, Source::Group(name), action.span),
                    Meaning::Resolves(name) => self.seek(&mut state, Source::Resolver(name), action.span),
                    Meaning::Runs(names) => {
                        self.look(&mut state, "this choice of ways", action.span);
                        let choice = state.choice.or(Some(action.span));
                        for name in names {
                            // A branch begins without an answer.
                            let branch = State { answer: Answer::None, choice, ..state };
                            self.way(&name.value, branch, action.span);
                        }
                        // However the branches ended: what they brought goes on, into the caches
                        // before them.
                        self.asked = true;
                        self.sent |= state.sends;
                        state.answer = Answer::There(None);
                    }
                    Meaning::Calls(name) => {
                        after.extend(self.policy(&name.value, state));
                        continue;
                    }
                    // Its end, and its `return`, end the query.
                    Meaning::Goes(name) => {
                        self.policy(&name.value, state);
                        continue;
                    }
                    Meaning::Returns => {
                        left.insert(state);
                        continue;
                    }
                    Meaning::Ends => continue,
                    Meaning::Forgets => state.answer = Answer::None,
                    Meaning::Sends(what) => self.send(&mut state, what, action.span),
                    Meaning::Changes(what) => {
                        self.changes.entry(action.span).or_insert((what, false)).1 |=
                            state.answer != Answer::None;
                    }
                    Meaning::Steers(what) => {
                        let (is_early, brought) = match state.answer {
                            Answer::None => (true, None),
                            Answer::There(brought) => (false, brought),
                        };
                        let known = self.steers.entry(action.span).or_insert(Steer {
                            what,
                            is_early: false,
                            brought: None,
                        });
                        known.is_early |= is_early;
                        known.brought = known.brought.or(brought);
                    }
                    Meaning::Passes => {}
                }
                after.insert(state);
            }
            states = after;
        }
        states
    }

    /// Notes that somebody is asked, and brings an answer.
    fn seek(&mut self, state: &mut State<'s>, source: Source<'s>, span: Span) {
        self.look(state, source.step(), span);
        self.ask(source, *state, span);
        state.answer = Answer::There(Some((source, span)));
    }

    /// Notes a change of what upstreams are sent.
    fn send(&mut self, state: &mut State<'s>, what: &'static str, span: Span) {
        if let (Some(cache), Answer::None) = (state.cache, state.answer) {
            self.late.entry(span).or_insert((what, cache));
        }
        let known = self.sends.iter().position(|(other, _)| *other == span);
        let bit = known.unwrap_or_else(|| {
            if self.sends.len() < u64::BITS as usize {
                self.sends.push((span, what));
            }
            self.sends.len() - 1
        });
        if self.sends.get(bit).is_some_and(|(other, _)| *other == span) {
            state.sends |= 1 << bit;
        }
    }

    /// Notes that a step looks for an answer; one that is there already is lost.
    fn look(&mut self, state: &mut State<'s>, step: &'static str, span: Span) {
        // Said once: what comes after it loses nothing more.
        if let Answer::There(Some((source, brought))) = state.answer {
            self.lost.entry(span).or_insert((step, brought, source));
            state.answer = Answer::There(None);
        }
    }
}

/// What conditions look at.
struct Conditions<'s> {
    named: BTreeMap<&'s str, &'s Condition>,
    /// Marks that do not follow from the question alone, by their bits.
    varying_marks: u64,
}

/// How deep conditions name conditions here; more is refused elsewhere.
const NAMES_DEPTH_MAX: usize = 64;

impl<'s> Conditions<'s> {
    fn of(written: Written<'s>) -> Self {
        let named = written.conditions.iter();
        let named = named.map(|named| (named.name.value.as_str(), &named.condition.value)).collect();
        let mut conditions = Self { named, varying_marks: 0 };
        // A mark that nobody sets comes from nowhere that is known.
        let rules =
            || written.policies.iter().flat_map(|policy| policy.rules.iter().map(move |rule| (policy, rule)));
        let set =
            rules().flat_map(|(_, rule)| &rule.actions).fold(0, |set, action| set | marks(&action.value));
        conditions.varying_marks = !set;
        let mut varying: BTreeSet<&str> =
            written.views.iter().map(|view| view.policy.value.as_str()).collect();
        // Ends: each round but the last adds a mark or a policy.
        loop {
            let before = (conditions.varying_marks, varying.len());
            for (policy, rule) in rules() {
                let is_varying = varying.contains(policy.name.value.as_str())
                    || rule.condition.as_ref().is_some_and(|at| conditions.varies(&at.value, 0));
                if is_varying {
                    for action in &rule.actions {
                        conditions.varying_marks |= marks(&action.value);
                        varying.extend(action.value.policies().iter().map(|name| name.value.as_str()));
                    }
                }
            }
            if before == (conditions.varying_marks, varying.len()) {
                return conditions;
            }
        }
    }

    fn named(&self, name: &At<String>, depth: usize) -> Option<&'s Condition> {
        self.named.get(name.value.as_str()).copied().filter(|_| depth < NAMES_DEPTH_MAX)
    }

    /// Returns what a condition comes to, when all that is known is whether there is an answer.
    fn truth(&self, condition: &Condition, is_answered: bool, depth: usize) -> Truth {
        match condition {
            Condition::All(parts) => self.several(parts, Truth::Never, is_answered, depth),
            Condition::Any(parts) => self.several(parts, Truth::Always, is_answered, depth),
            Condition::Not(inside) => match self.truth(inside, is_answered, depth) {
                Truth::Always => Truth::Never,
                Truth::Never => Truth::Always,
                Truth::Open => Truth::Open,
            },
            Condition::Constant(true) => Truth::Always,
            Condition::Constant(false) => Truth::Never,
            Condition::Named(name) => self
                .named(name, depth)
                .map_or(Truth::Open, |inside| self.truth(inside, is_answered, depth + 1)),
            Condition::Test(Test::Answer) if is_answered => Truth::Always,
            Condition::Test(Test::Text(_, test)) if test.operator == TextOperator::Empty => Truth::Open,
            Condition::Test(test) if !is_answered && is_of_answer(test) => Truth::Never,
            Condition::Test(_) => Truth::Open,
        }
    }

    /// Returns what parts come to of which one that is `decides` decides.
    fn several(&self, parts: &[Condition], decides: Truth, is_answered: bool, depth: usize) -> Truth {
        let mut all = if decides == Truth::Never { Truth::Always } else { Truth::Never };
        for part in parts {
            match self.truth(part, is_answered, depth) {
                found if found == decides => return decides,
                Truth::Open => all = Truth::Open,
                Truth::Always | Truth::Never => {}
            }
        }
        all
    }

    fn any(&self, condition: &Condition, depth: usize, is: &dyn Fn(&Test) -> bool) -> bool {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().any(|part| self.any(part, depth, is))
            }
            Condition::Not(inside) => self.any(inside, depth, is),
            Condition::Constant(_) => false,
            Condition::Named(name) => {
                self.named(name, depth).is_some_and(|inside| self.any(inside, depth + 1, is))
            }
            Condition::Test(test) => is(test),
        }
    }

    fn looks_at_answer(&self, condition: &Condition, depth: usize) -> bool {
        self.any(condition, depth, &is_of_answer)
    }

    /// Returns whether a condition can come to something else for the same question.
    fn varies(&self, condition: &Condition, depth: usize) -> bool {
        self.any(condition, depth, &|test| match test {
            Test::Mark(marks) => marks.iter().any(|mark| self.varying_marks >> (mark & 63) & 1 == 1),
            Test::Qname(_)
            | Test::Qtype(_)
            | Test::Qclass(_)
            | Test::Opcode(_)
            | Test::PtrAddress(_)
            | Test::Env(_) => false,
            Test::Text(source, _) => {
                !matches!(source.value, TextSource::Qname | TextSource::Qtype | TextSource::Env(_))
                    && !is_of_answer(test)
            }
            test => !is_of_answer(test),
        })
    }
}

/// Returns whether a test looks at the answer.
fn is_of_answer(test: &Test) -> bool {
    match test {
        Test::Answer
        | Test::Answered
        | Test::Rcode(_)
        | Test::Security(_)
        | Test::AnswerType(_)
        | Test::AnswerAddress(_)
        | Test::AnswerCname(_)
        | Test::ServerName(_)
        | Test::ServerAddress(_) => true,
        Test::Text(source, _) => matches!(source.value, TextSource::Rcode | TextSource::AnswerAddress),
        _ => false,
    }
}

/// Returns the marks that an action sets or takes away, by their bits.
const fn marks(action: &Action) -> u64 {
    const _: () = assert!(MARKS == 64);
    match action {
        Action::Core(Core::Mark(mark) | Core::Unmark(Some(mark))) => 1 << (*mark & 63),
        Action::Core(Core::Unmark(None)) => u64::MAX,
        _ => 0,
    }
}
