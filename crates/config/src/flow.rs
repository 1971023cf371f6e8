//! Follows queries through the policies to find what is easy to get wrong in a list of rules: an answer that a later
//! rule throws away, and a cache that several upstream groups fill.

use std::collections::{BTreeMap, BTreeSet};

use engine::program::CALLS_MAX;

use crate::diagnostic::Problem;
use crate::policy::action::Meaning;
use crate::policy::{Action, ENTRY};
use crate::settings::{Policy, Settings};
use crate::source::{At, Span};

/// What following all queries brought to light.
pub(crate) struct Flow {
    pub(crate) warnings: Vec<Problem>,
    /// Each cache and a group whose answers it keeps.
    pub(crate) fills: Vec<(String, String)>,
}

/// What is known about a query at some step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State<'s> {
    /// The step that brought an answer.
    answered: Option<(&'s str, Span)>,
    /// The cache that keeps what comes next.
    cache: Option<&'s str>,
}

type States<'s> = BTreeSet<State<'s>>;

/// Steps that are followed; beyond that the policies are too tangled to say anything.
const WORK_MAX: usize = 100_000;

struct Walk<'s> {
    policies: BTreeMap<&'s str, &'s Policy>,
    /// Where each call leads to from each state.
    known: BTreeMap<(&'s str, State<'s>), States<'s>>,
    /// Answers that are thrown away: the step that does, and the step that brought them.
    lost: BTreeMap<Span, (&'s str, Span, &'s str)>,
    /// Which step fills which cache from which group.
    fills: BTreeMap<(&'s str, &'s str), Span>,
    /// Changes of what upstreams are sent, made after a cache was looked into.
    late: BTreeMap<Span, (&'s str, &'s str)>,
    work: usize,
    /// Calls that are open.
    depth: usize,
}

/// Follows every query.
pub(crate) fn walk(settings: &Settings) -> Flow {
    let mut walk = Walk {
        policies: settings.policies.iter().map(|policy| (policy.name.value.as_str(), policy)).collect(),
        known: BTreeMap::new(),
        lost: BTreeMap::new(),
        fills: BTreeMap::new(),
        late: BTreeMap::new(),
        work: 0,
        depth: 0,
    };
    for name in std::iter::once(ENTRY).chain(settings.views.iter().map(|view| view.policy.value.as_str())) {
        walk.policy(name, State { answered: None, cache: None });
    }
    let mut warnings = Vec::new();
    for (span, (step, brought, group)) in &walk.lost {
        warnings.push(
            Problem::warning(*span, format!("{step} throws away the answer that forward({group}) brought"))
                .hint_at("that is on ", *brought, "; end the rule there with \"accept\""),
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
    let mut first: BTreeMap<&str, (&str, Span)> = BTreeMap::new();
    let mut fills: Vec<(&(&str, &str), &Span)> = walk.fills.iter().collect();
    fills.sort_by_key(|(_, span)| (span.file, span.start));
    for ((cache, group), span) in fills {
        match first.get(cache) {
            Some((other, at)) if other != group => warnings.push(
                Problem::warning(
                    *span,
                    format!("cache \"{cache}\" keeps answers of both \"{other}\" and \"{group}\": clients get either"),
                )
                .hint_at(format!("forward({other}) is on "), *at, "; give each group a cache of its own"),
            ),
            Some(_) => {}
            None => {
                first.insert(cache, (group, *span));
            }
        }
    }
    let fills = walk.fills.keys().map(|&(cache, group)| (cache.to_owned(), group.to_owned())).collect();
    Flow { warnings, fills }
}

impl<'s> Walk<'s> {
    /// Returns the states in which a policy can be left, except by an end.
    fn policy(&mut self, name: &'s str, state: State<'s>) -> States<'s> {
        if let Some(known) = self.known.get(&(name, state)) {
            return known.clone();
        }
        // Circles were refused before; this only makes sure that we come back.
        self.known.insert((name, state), States::new());
        let Some(policy) = self.policies.get(name).copied() else { return States::from([state]) };
        // The compiler refuses calls as deep as this.
        if self.depth > CALLS_MAX {
            return States::from([state]);
        }
        self.depth += 1;
        let mut left = States::new();
        let mut states = States::from([state]);
        for rule in &policy.rules {
            let mut after: States<'s> = if rule.condition.is_some() { states.clone() } else { States::new() };
            for state in states {
                after.extend(self.actions(&rule.actions, state, &mut left));
            }
            states = after;
        }
        self.depth -= 1;
        left.extend(states);
        self.known.insert((name, state), left.clone());
        left
    }

    /// Follows a branch: a policy, or a group.
    fn way(&mut self, name: &'s str, state: State<'s>, span: Span) {
        if self.policies.contains_key(name) {
            self.policy(name, state);
        } else if let Some(cache) = state.cache {
            self.fills.entry((cache, name)).or_insert(span);
        }
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
                    Meaning::Keeps(name) => {
                        self.look(&mut state, "this look into the cache", action.span);
                        state.cache = Some(name);
                    }
                    Meaning::Asks(name) => {
                        self.look(&mut state, "this forward", action.span);
                        state.answered = Some((name, action.span));
                        if let Some(cache) = state.cache {
                            self.fills.entry((cache, name)).or_insert(action.span);
                        }
                    }
                    Meaning::Runs(names) => {
                        self.look(&mut state, "this choice of ways", action.span);
                        let cache = state.cache;
                        for name in names {
                            self.way(&name.value, state, action.span);
                        }
                        // However the branches ended: what they brought goes on, into the caches before them.
                        state = State { answered: None, cache };
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
                    Meaning::Forgets => state.answered = None,
                    Meaning::Sends(what) => {
                        if let (Some(cache), None) = (state.cache, state.answered) {
                            self.late.entry(action.span).or_insert((what, cache));
                        }
                    }
                    Meaning::Passes => {}
                }
                after.insert(state);
            }
            states = after;
        }
        states
    }

    /// Notes that a step looks for an answer; one that is there already is lost.
    fn look(&mut self, state: &mut State<'s>, step: &'static str, span: Span) {
        // Said once: what comes after it loses nothing more.
        if let Some((group, brought)) = state.answered.take() {
            self.lost.entry(span).or_insert((step, brought, group));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::load::load_text;
    use crate::load::tests::Memory;
    use std::path::Path;

    fn check(rules: &str, expect: &[&str]) {
        let text = format!(
            "upstreams: {{a: {{servers: 192.0.2.1}}, b: {{servers: 192.0.2.2}}}}\ncache: {{one: {{}}, two: {{}}}}\npolicy:\n  main:\n{rules}"
        );
        let loaded = load_text(Path::new("x"), &text, &Memory::default()).expect("no mistakes");
        let warnings = super::walk(&loaded.settings).warnings;
        let found = crate::diagnostic::diagnostics(warnings, &loaded.sources);
        let found: Vec<String> =
            found.iter().map(|found| format!("{}: {}", found.line, found.message)).collect();
        assert_eq!(found, expect, "{rules}");
    }

    #[test]
    fn an_answer_that_is_thrown_away_is_reported() {
        check("    - cache(one)\n    - forward(a)\n    - ttl(max 1h)\n", &[]);
        check("    - {if: mark(1), do: [forward(a), accept]}\n    - forward(b)\n", &[]);
        check(
            "    - {if: mark(1), do: forward(a)}\n    - forward(b)\n",
            &["6: this forward throws away the answer that forward(a) brought"],
        );
        check(
            "    - [forward(a), cache(one)]\n",
            &["5: this look into the cache throws away the answer that forward(a) brought"],
        );
        check(
            "    - call(p)\n    - local\n  p: [forward(a)]\n",
            &["6: local throws away the answer that forward(a) brought"],
        );
        check("    - call(p)\n    - local\n  p: [forward(a), accept]\n", &[]);
        check(
            "    - call(p)\n    - local\n  p: [{if: mark(1), do: [forward(a), return]}]\n",
            &["6: local throws away the answer that forward(a) brought"],
        );
    }

    #[test]
    fn what_a_cache_cannot_tell_apart_is_reported() {
        check("    - ecs(client)\n    - cache(one)\n    - forward(a)\n", &[]);
        check(
            "    - cache(one)\n    - ecs(client)\n    - forward(a)\n",
            &["6: \"ecs\" comes after cache(one), which does not keep the answers to such queries apart"],
        );
    }

    #[test]
    fn a_cache_that_two_groups_fill_is_reported() {
        check(
            "    - cache(one)\n    - {if: mark(1), do: [forward(a), accept]}\n    - forward(b)\n",
            &["7: cache \"one\" keeps answers of both \"a\" and \"b\": clients get either"],
        );
        check(
            "    - {if: mark(1), do: [cache(one), forward(a), accept]}\n    - [cache(two), forward(b)]\n",
            &[],
        );
    }
}
