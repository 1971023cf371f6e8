//! Sequences to policies.
//!
//! In both programs a step that finds an answer only remembers it, and a later rule `has_resp` →
//! `accept` ends. Ours end by themselves, so such a pair becomes one step; where no such rule
//! follows, the step says `continue`.

use std::collections::BTreeSet;

use diagnostic::{At, Span};

use super::matchers::all;
use super::plugins::{Quick, rules};
use super::write::{Map, Noted, Out};
use super::{Dialect, Kind, Translator, Wanted};

/// One policy.
#[derive(Clone, Debug, Default)]
pub(super) struct Policy {
    pub(super) notes: Vec<String>,
    pub(super) rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) notes: Vec<String>,
    pub(super) condition: Option<String>,
    pub(super) actions: Vec<Action>,
    /// What is to be done with every answer that the rules after this one bring.
    pub(super) after: Option<String>,
    /// Where it comes from, for what is only seen when the whole sequence is there.
    pub(super) place: Option<Span>,
}

impl Rule {
    /// Returns a rule for what a plugin does once the rest of the chain is done.
    pub(super) fn after(text: String) -> Self {
        Self { after: Some(text), ..Self::default() }
    }
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Action {
    /// How it is written when it ends the query with what it finds.
    pub(super) text: String,
    /// Whether it makes an answer and may go on with it: then it can be told to.
    pub(super) may_continue: bool,
    /// Whether it goes on with the answer.
    pub(super) continues: bool,
    /// Whether it brings no answer, although it runs a policy.
    pub(super) only_steers: bool,
}

impl Action {
    /// Returns an action that says all by itself.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), may_continue: false, continues: false, only_steers: false }
    }

    /// Returns an action that runs a policy which has what follows ask for something else.
    pub(super) fn steers(text: impl Into<String>) -> Self {
        Self { only_steers: true, ..Self::plain(text) }
    }

    /// Returns an action that finds an answer, and goes on with it.
    pub(super) fn finds(text: impl Into<String>) -> Self {
        Self { may_continue: true, continues: true, ..Self::plain(text) }
    }

    /// Returns the same that ends with the answer.
    pub(super) fn ending(mut self) -> Self {
        self.continues = false;
        self
    }

    fn show(&self) -> String {
        match (self.continues, self.text.strip_suffix(')')) {
            (false, _) => self.text.clone(),
            (true, Some(inside)) => format!("{inside}, continue)"),
            (true, None) => format!("{}(continue)", self.text),
        }
    }
}

/// Writes the section `policy`.
pub(super) fn write(mut policies: Vec<(String, Policy)>) -> Map {
    leave_out_idle(&mut policies);
    let mut map = Map::default();
    for (name, policy) in policies {
        let rules = policy.rules.into_iter().map(|rule| {
            let actions: Vec<String> = rule.actions.iter().map(Action::show).collect();
            let value = match (rule.condition, actions.as_slice()) {
                (None, [only]) => Out::Text(only.clone()),
                (condition, actions) => {
                    let mut map = Map::default();
                    map.put_some("if", condition);
                    match actions {
                        [only] => map.put("do", only.as_str()),
                        several => map.put("do", Out::Row(several.to_vec())),
                    }
                    map.into()
                }
            };
            Noted { notes: rule.notes, value }
        });
        let rules: Vec<Noted> = rules.collect();
        map.note(name, policy.notes, Out::List(rules));
    }
    map
}

impl Translator<'_> {
    /// Returns our name of the policy that a sequence becomes, and has it written.
    pub(super) fn sequence_policy(&mut self, tag: &str, ends_alone: bool) -> String {
        let wanted = Wanted::Sequence { tag: tag.to_owned(), ends_alone };
        self.used.insert(tag.to_owned());
        self.want(wanted, &if ends_alone { format!("{tag}-alone") } else { tag.to_owned() })
    }

    /// Returns our name of a policy that stands for any other executor, and has it written.
    pub(super) fn single_policy(&mut self, tag: &str) -> String {
        self.used.insert(tag.to_owned());
        self.want(Wanted::Single(tag.to_owned()), tag)
    }

    fn want(&mut self, wanted: Wanted, name: &str) -> String {
        if let Some((_, name)) = self.wanted.iter().find(|(other, _)| *other == wanted) {
            return name.clone();
        }
        let name = self.fresh(Kind::Policy, name);
        self.wanted.push((wanted, name.clone()));
        name
    }

    /// Gives the sequence where every query begins the name that ours begins with.
    pub(super) fn entry_policy(&mut self, tag: &str, name: &str) {
        let is_sequence = self.declared.find(tag).is_some_and(|plugin| plugin.kind.value == "sequence");
        let wanted = if is_sequence {
            Wanted::Sequence { tag: tag.to_owned(), ends_alone: false }
        } else {
            Wanted::Single(tag.to_owned())
        };
        self.used.insert(tag.to_owned());
        if !self.wanted.iter().any(|(other, _)| *other == wanted) {
            self.taken.insert((Kind::Policy, name.to_owned()));
            self.wanted.push((wanted, name.to_owned()));
        }
    }

    /// Translates an executor that is not a sequence, as a policy of its own.
    pub(super) fn single(&mut self, tag: &str) -> Policy {
        let Some(plugin) = self.declared.find(tag) else { return Policy::default() };
        let reference = Quick {
            negated: false,
            is_reference: true,
            head: plugin.tag.clone(),
            argument: At { value: String::new(), span: plugin.tag.span },
        };
        let rules = self.executor(&reference, false);
        let mut policy = Policy { notes: Vec::new(), rules };
        self.end_of_chain(&mut policy);
        simplify(&mut policy.rules, false);
        policy
    }

    /// Translates a sequence. `ends_alone`: what ends it does not end whoever ran it.
    pub(super) fn sequence(&mut self, tag: &str, ends_alone: bool) -> Policy {
        let Some(plugin) = self.declared.find(tag) else { return Policy::default() };
        let mut policy = Policy::default();
        let declared = rules(&plugin.args, &mut self.problems);
        // What is done with answers that are still to come.
        let mut after: Vec<Action> = Vec::new();
        for rule in declared {
            let mut conditions = Vec::new();
            let mut is_whole = true;
            for quick in &rule.matches {
                match self.matcher(quick) {
                    Some(condition) => conditions.push(condition),
                    None => is_whole = false,
                }
            }
            let Some(exec) = &rule.exec else {
                if self.dialect == Dialect::Oxidns {
                    self.wrong(rule.span, "this rule has no \"exec\"".to_owned());
                } else {
                    self.warn(rule.span, "this rule does nothing: it is left out");
                }
                continue;
            };
            let translated = self.executor(exec, ends_alone);
            if !is_whole {
                continue;
            }
            let condition = all(conditions);
            for mut made in translated {
                if let Some(text) = made.after.take() {
                    if condition.is_some() {
                        self.warn(
                            rule.span,
                            "done for every answer from here on, whatever the condition says",
                        );
                    }
                    after.push(Action::plain(text));
                    continue;
                }
                if let [only] = made.actions.as_slice()
                    && only.text == "ecs(forward)"
                    && self.is_subnet_known(&mut policy.rules)
                {
                    continue;
                }
                if brings(&made) && !after.is_empty() {
                    let end = made.actions.iter().position(always_ends).unwrap_or(made.actions.len());
                    made.actions.splice(end..end, after.iter().cloned());
                }
                made.condition = match (&condition, made.condition) {
                    (None, own) => own,
                    (Some(condition), None) => Some(condition.clone()),
                    (Some(condition), Some(own)) => {
                        Some(format!("{} and {}", joined(condition), joined(&own)))
                    }
                };
                made.place = Some(rule.span);
                policy.rules.push(made);
            }
        }
        let is_entry = self.wanted.iter().any(|(wanted, name)| {
            name == policy::ENTRY && *wanted == Wanted::Sequence { tag: tag.to_owned(), ends_alone }
        });
        if is_entry {
            self.end_of_chain(&mut policy);
        }
        for late in steer_early(&mut policy.rules, self.dialect.name()) {
            self.warn(late, "this stands behind what brings the answer, and changes nothing there");
        }
        // What was found before a called policy begins is not known in it.
        simplify(&mut policy.rules, !is_entry);
        merge(&mut policy.rules);
        cut(&mut policy.rules);
        if policy.rules.is_empty() {
            policy.rules.push(Rule { actions: vec![Action::plain("return")], ..Rule::default() });
        }
        policy
    }

    /// Returns whether an earlier rule says which client subnet is sent: what the client sent
    /// changes that in mosdns only, where it comes first; in OxiDNS nothing of it is left by then.
    fn is_subnet_known(&self, rules: &mut [Rule]) -> bool {
        let mut actions = rules.iter_mut().flat_map(|rule| &mut rule.actions);
        let Some(earlier) = actions.find(|action| action.text.starts_with("ecs(")) else { return false };
        let is_own = earlier.text == "ecs(forward)" || earlier.text.ends_with(", keep)");
        if self.dialect == Dialect::Mosdns && !is_own {
            earlier.text = match earlier.text.as_str() {
                "ecs(strip)" => "ecs(forward)".to_owned(),
                text => format!("{}, keep)", text.trim_end_matches(')')),
            };
        }
        true
    }

    /// Says what a client gets for whom nothing was found.
    fn end_of_chain(&mut self, policy: &mut Policy) {
        if self.dialect == Dialect::Mosdns || ends(&policy.rules) {
            return;
        }
        let is_accept = |rule: &Rule| rule.condition.is_none() && rule.actions == [Action::plain("accept")];
        let at = policy.rules.len() - usize::from(policy.rules.last().is_some_and(is_accept));
        let rule = Rule {
            notes: vec![
                "Without an answer OxiDNS says NOERROR; mosdns and Gannet would say REFUSED.".to_owned(),
            ],
            condition: Some("not answer".to_owned()),
            actions: vec![Action::plain("reject(noerror)")],
            ..Rule::default()
        };
        policy.rules.insert(at, rule);
    }
}

/// Returns whether nothing gets past the last rule without an answer or an end.
fn ends(rules: &[Rule]) -> bool {
    rules.last().is_some_and(|last| {
        last.condition.is_none()
            && last.actions.last().is_some_and(|action| {
                action.text.starts_with("reject") || action.text == "drop" || action.text.starts_with("goto")
            })
    })
}

/// Puts a condition into parentheses when it is one of alternatives.
fn joined(condition: &str) -> String {
    if condition.contains(" or ") && !condition.starts_with('(') {
        format!("({condition})")
    } else {
        condition.to_owned()
    }
}

/// Lets steps that find an answer end by themselves where every way from there leads to the end,
/// and takes out the rules that nothing reaches any more. `is_called`: there may be an answer
/// before the first rule, and others follow.
fn simplify(rules: &mut Vec<Rule>, is_called: bool) {
    let is_accept = |rule: &Rule| rule.actions == [Action::plain("accept")];
    for at in 0..rules.len() {
        let mut ends = !is_called;
        for rule in &rules[at + 1..] {
            match rule.condition.as_deref() {
                Some("not answer") => {}
                None | Some("answer") if is_accept(rule) => {
                    ends = true;
                    break;
                }
                _ if finds_only(rule) => {}
                _ => {
                    ends = false;
                    break;
                }
            }
        }
        // What else the rule does must come before.
        let last = rules[at].actions.len().saturating_sub(1);
        if ends && let Some(action) = rules[at].actions.get_mut(last) {
            action.continues = false;
        }
    }
    // "answer: accept" with no answer before it.
    let mut may_be_answered = is_called;
    let mut at = 0;
    while at < rules.len() {
        if is_accept(&rules[at]) && rules[at].condition.as_deref() == Some("answer") {
            if !may_be_answered {
                let notes = std::mem::take(&mut rules[at].notes);
                rules.remove(at);
                if let Some(previous) = at.checked_sub(1).and_then(|previous| rules.get_mut(previous)) {
                    previous.notes.extend(notes);
                }
                continue;
            }
            may_be_answered = false;
        }
        may_be_answered |= brings(&rules[at]) || rules[at].actions.iter().any(|action| action.continues);
        at += 1;
    }
}

/// Takes out rules "answer: accept" that no answer can come to, because the policies that were
/// called end with theirs.
fn leave_out_idle(policies: &mut [(String, Policy)]) {
    let names: Vec<String> = policies.iter().map(|(name, _)| name.clone()).collect();
    let called = |policies: &[(String, Policy)], name: &str| {
        let is_named = |text: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            text.split(|c: char| !is_part(c)).any(|word| word == name)
        };
        let mut actions =
            policies.iter().flat_map(|(_, policy)| &policy.rules).flat_map(|rule| &rule.actions);
        actions.any(|action| is_named(&action.text))
    };
    // Policies that may come back with an answer. Ends: each round adds one, or is the last.
    let mut leave: BTreeSet<String> = BTreeSet::new();
    loop {
        let more: Vec<&String> = policies
            .iter()
            .filter(|(name, policy)| {
                !leave.contains(name) && answered(&policy.rules, false, &names, &leave, |_| {})
            })
            .map(|(name, _)| name)
            .collect();
        if more.is_empty() {
            break;
        }
        let more: Vec<String> = more.into_iter().cloned().collect();
        leave.extend(more);
    }
    let called: Vec<bool> = names.iter().map(|name| called(policies, name)).collect();
    for ((_, policy), is_called) in policies.iter_mut().zip(called) {
        let mut idle = Vec::new();
        answered(&policy.rules, is_called, &names, &leave, |at| idle.push(at));
        for at in idle.into_iter().rev() {
            policy.rules.remove(at);
        }
    }
}

/// Returns whether a query may come back from rules with an answer, if there is one before them or
/// not. Calls `idle` with each "answer: accept" that no answer comes to.
fn answered(
    rules: &[Rule],
    mut may_be: bool,
    names: &[String],
    leave: &BTreeSet<String>,
    mut idle: impl FnMut(usize),
) -> bool {
    let mut comes_back = false;
    for (at, rule) in rules.iter().enumerate() {
        if rule.actions == [Action::plain("accept")] && rule.condition.as_deref() == Some("answer") {
            if !may_be && rule.notes.is_empty() {
                idle(at);
            }
            may_be = false;
            continue;
        }
        let called = |action: &Action| {
            action.text.strip_prefix("call(").and_then(|text| text.strip_suffix(')')).map(str::to_owned)
        };
        for action in &rule.actions {
            may_be |= match called(action).filter(|name| names.contains(name)) {
                Some(name) => leave.contains(&name),
                None => brings(&Rule { actions: vec![action.clone()], ..Rule::default() }),
            };
            comes_back |= may_be && action.text == "return";
        }
        if rule.condition.is_none() && rule.actions.last().is_some_and(always_ends) {
            return comes_back;
        }
    }
    comes_back || may_be
}

/// Puts what asks for both families, or for another name, before the step that brings the answer:
/// in mosdns it looks at the answer that is there, here it has what follows ask. Returns the places
/// of those that cannot be moved.
fn steer_early(rules: &mut Vec<Rule>, program: &str) -> Vec<Span> {
    let mut late = Vec::new();
    let looks = |condition: &Option<String>| {
        condition.as_deref().is_some_and(|text| text.contains("answer") || text.contains("rcode"))
    };
    let mut at = 0;
    while at < rules.len() {
        let rule = &rules[at];
        let steers = |action: &Action| action.only_steers || action.text.starts_with("prefer-ipv");
        let is_steering = matches!(rule.actions.as_slice(), [only] if steers(only));
        let is_behind = rules[..at].iter().any(brings) && !rules[at + 1..].iter().any(brings);
        let may_move =
            !looks(&rule.condition) && !rule.condition.as_deref().is_some_and(|text| text.contains("mark"));
        let before = rules[..at].iter().rposition(|rule| !brings(rule) && !looks(&rule.condition));
        let to = before.map_or(0, |before| before + 1);
        if !is_steering || !is_behind {
            // It stands where it does something.
        } else if !may_move || !rules[to..at].iter().any(brings) {
            late.extend(rule.place);
        } else {
            let mut rule = rules.remove(at);
            rule.notes.push(format!(
                "{program} looks at the answer that is there; here this stands before what brings it."
            ));
            rules.insert(to, rule);
        }
        at += 1;
    }
    late
}

/// Takes out what comes after a rule that ends every query.
fn cut(rules: &mut Vec<Rule>) {
    for rule in rules.iter_mut() {
        if let Some(end) = rule.actions.iter().position(always_ends) {
            rule.actions.truncate(end + 1);
        }
    }
    let is_end = |rule: &Rule| rule.condition.is_none() && rule.actions.last().is_some_and(always_ends);
    if let Some(at) = rules.iter().position(is_end) {
        rules.truncate(at + 1);
    }
}

/// Returns whether no query gets past an action.
fn always_ends(action: &Action) -> bool {
    let words = ["accept", "return", "drop", "reject(", "goto(", "respond(", "block("];
    !action.continues && words.iter().any(|word| action.text.starts_with(word))
}

/// Returns whether a rule does nothing but look for an answer, with a condition that does not look
/// at one.
fn finds_only(rule: &Rule) -> bool {
    rule.actions.iter().all(|action| action.may_continue)
        && !rule
            .condition
            .as_deref()
            .is_some_and(|condition| condition.contains("answer") || condition.contains("rcode"))
}

/// Returns whether a rule may leave an answer behind and go on.
fn brings(rule: &Rule) -> bool {
    rule.actions.iter().filter(|action| !action.only_steers).any(|action| {
        (action.continues && !action.text.starts_with("cache("))
            || ["forward(", "call(", "fallback(", "race("].iter().any(|word| action.text.starts_with(word))
    })
}

/// Puts neighbours without a condition, or with the same one that nothing in between can change,
/// into one rule.
fn merge(rules: &mut Vec<Rule>) {
    let mut at = 1;
    while at < rules.len() {
        let (before, after) = rules.split_at_mut(at);
        let (Some(first), Some(second)) = (before.last_mut(), after.first()) else { break };
        let is_stable = |condition: &str| {
            !["answer", "rcode", "mark", "random", "rate("].iter().any(|word| condition.contains(word))
        };
        let last = first.actions.last();
        let ends = last.is_some_and(always_ends);
        let may_end = last.is_some_and(|action| !action.continues && action.may_continue);
        let same = first.condition.is_some()
            && first.condition == second.condition
            && first.condition.as_deref().is_some_and(is_stable);
        if same && ends {
            // The first leaves nothing for the second.
            rules.remove(at);
        } else if same && second.notes.is_empty() && !may_end {
            first.actions.extend(second.actions.iter().cloned());
            rules.remove(at);
        } else {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(condition: Option<&str>, action: Action) -> Rule {
        Rule { condition: condition.map(str::to_owned), actions: vec![action], ..Rule::default() }
    }

    fn check(mut rules: Vec<Rule>, may_be_answered: bool, expect: &[&str]) {
        simplify(&mut rules, may_be_answered);
        let shown: Vec<String> = rules
            .iter()
            .map(|rule| {
                let actions: Vec<String> = rule.actions.iter().map(Action::show).collect();
                let condition = rule.condition.clone().map(|text| format!("{text}: ")).unwrap_or_default();
                format!("{condition}{}", actions.join(" "))
            })
            .collect();
        assert_eq!(shown, expect);
    }

    #[test]
    fn a_step_ends_by_itself_where_a_rule_would_end_it() {
        let accept = || rule(Some("answer"), Action::plain("accept"));
        let cache = || rule(None, Action::finds("cache(main)"));
        let hosts = || rule(None, Action::finds("hosts"));
        check(vec![cache(), accept()], false, &["cache(main)"]);
        check(vec![hosts(), cache(), accept()], false, &["hosts", "cache(main)"]);
        check(vec![cache(), accept()], true, &["cache(main)", "answer: accept"]);
        check(vec![cache()], false, &["cache(main)"]);
        check(vec![cache()], true, &["cache(main, continue)"]);
        let forward = || rule(None, Action::plain("forward(a)"));
        check(
            vec![cache(), forward(), accept(), hosts()],
            false,
            &["cache(main, continue)", "forward(a)", "answer: accept", "hosts"],
        );
        let mark = rule(Some("answer"), Action::plain("mark(1)"));
        check(
            vec![cache(), mark, accept()],
            false,
            &["cache(main, continue)", "answer: mark(1)", "answer: accept"],
        );
    }

    #[test]
    fn what_an_end_leaves_nothing_for_is_left_out() {
        let a = || Some("qname in exact:a.example");
        let mut rules = vec![
            rule(a(), Action::plain("reject(nxdomain)")),
            rule(a(), Action::plain("return")),
            rule(a(), Action::plain("mark(1)")),
            rule(Some("qtype == A"), Action::plain("mark(2)")),
        ];
        rules[0].actions.push(Action::plain("mark(3)"));
        merge(&mut rules);
        cut(&mut rules);
        assert_eq!(rules.iter().map(|rule| rule.actions.len()).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn both_families_are_asked_for_before_the_answer_is_there() {
        let mut rules = vec![
            rule(None, Action::finds("cache(main)")),
            rule(Some("qname in cn"), Action::plain("forward(local)")),
            rule(Some("not answer"), Action::plain("forward(remote)")),
            rule(None, Action::plain("prefer-ipv4")),
            rule(None, Action::plain("accept")),
        ];
        steer_early(&mut rules, "mosdns");
        let texts: Vec<&str> = rules.iter().map(|rule| rule.actions[0].text.as_str()).collect();
        assert_eq!(texts, ["cache(main)", "prefer-ipv4", "forward(local)", "forward(remote)", "accept"]);
        // What is before an answer, or before another step that brings one, stays.
        for rules in [
            vec![rule(None, Action::plain("prefer-ipv4")), rule(None, Action::plain("forward(a)"))],
            vec![
                rule(None, Action::plain("forward(a)")),
                rule(None, Action::plain("prefer-ipv4")),
                rule(None, Action::plain("forward(b)")),
            ],
        ] {
            let mut moved = rules.clone();
            steer_early(&mut moved, "mosdns");
            assert_eq!(moved, rules);
        }
    }

    #[test]
    fn a_redirection_behind_the_answer_is_moved_or_reported() {
        let redirect = || rule(None, Action::steers("call(r)"));
        let forward = || rule(None, Action::plain("forward(a)"));
        let mut rules = vec![forward(), redirect(), rule(None, Action::plain("accept"))];
        assert_eq!(steer_early(&mut rules, "mosdns"), []);
        let texts: Vec<&str> = rules.iter().map(|rule| rule.actions[0].text.as_str()).collect();
        assert_eq!(texts, ["call(r)", "forward(a)", "accept"]);
        // The condition is about the answer; what is between needs it.
        let place = Some(Span { file: diagnostic::FileId(0), start: 7, end: 9 });
        let looking = Rule { place, ..rule(Some("rcode == nxdomain"), Action::steers("call(r)")) };
        let behind = Rule { place, ..redirect() };
        let ipset = || rule(None, Action::plain("ipset(seen)"));
        for rules in [vec![forward(), looking], vec![forward(), ipset(), behind]] {
            let mut moved = rules.clone();
            assert_eq!(steer_early(&mut moved, "mosdns"), Vec::from_iter(place));
            assert_eq!(moved, rules);
        }
    }

    #[test]
    fn an_end_that_no_answer_comes_to_is_left_out() {
        let accept = || rule(Some("answer"), Action::plain("accept"));
        let call = |name: &str| rule(Some("qname in cn"), Action::plain(format!("call({name})")));
        let forward = || rule(None, Action::plain("forward(a)"));
        let policy = |rules: Vec<Rule>| Policy { notes: Vec::new(), rules };
        let check = |local: Vec<Rule>, expect: usize| {
            let main = policy(vec![call("local"), accept(), forward()]);
            let mut policies = vec![("main".to_owned(), main), ("local".to_owned(), policy(local))];
            leave_out_idle(&mut policies);
            assert_eq!(policies[0].1.rules.len(), expect);
            policies.remove(1).1.rules.len()
        };
        assert_eq!(check(vec![forward(), accept()], 2), 2);
        assert_eq!(check(vec![forward()], 3), 1);
        // There may be an answer before it.
        assert_eq!(check(vec![accept(), forward(), rule(None, Action::plain("accept"))], 2), 3);
        assert_eq!(check(vec![forward(), rule(None, Action::plain("return"))], 3), 2);
    }

    #[test]
    fn equal_conditions_become_one_rule() {
        let mut rules = vec![
            rule(Some("qtype == A"), Action::plain("mark(1)")),
            rule(Some("qtype == A"), Action::plain("mark(2)")),
            rule(Some("mark(1)"), Action::plain("mark(3)")),
            rule(Some("mark(1)"), Action::plain("mark(4)")),
        ];
        merge(&mut rules);
        assert_eq!(rules.iter().map(|rule| rule.actions.len()).collect::<Vec<_>>(), [2, 1, 1]);
    }
}
