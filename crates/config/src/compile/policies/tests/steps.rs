//! The steps.

use engine::matchers::Matcher;
use engine::ops::cache::Early;
use engine::ops::zone::Unloaded;
use engine::program::Op;
use environment::Memory;
use policy::{Condition, Test};
use settings::load::load_text;
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
        Op::Zone(step) if step.unloaded == Unloaded::Passes => "loaded zones".to_owned(),
        Op::Zone(_) => "zones".to_owned(),
        Op::ZoneSet(..) => "a set of zones".to_owned(),
        Op::Cache(cache) if cache.rules.early != Early::No => "early".to_owned(),
        Op::Cache(_) => "cache".to_owned(),
        Op::Reject(rcode, _) => format!("reject {rcode}"),
        Op::Forward(forward) => format!("forward {}", forward.pool.0),
        Op::Recurse(recurse) => format!("recurse {}", recurse.resolver.0),
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
    let plans = crate::compile(&loaded, &[], None, &memory).map_err(|found| found[0].human());
    assert_eq!(shown(plans.expect("it compiles").snapshot.program.ops()), expect, "{policy}");
}

#[test]
fn without_a_policy_own_names_come_first_then_memory_then_upstreams() {
    check("", "local; cache; forward 0; accept");
    check("  main: ['cache(main)', recurse]\n", "cache; recurse 0; accept");
}

#[test]
fn conditions_become_skips() {
    check("  main:\n    - {if: mark(1), do: drop}\n", "unless m1 +1; drop; accept");
    check("  main:\n    - {if: not mark(1), do: drop}\n", "if m1 +1; drop; accept");
    check("  main:\n    - {if: mark(1) and mark(2), do: drop}\n", "unless m1 +2; unless m2 +1; drop; accept");
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
    let test = proptest::collection::vec(0_u8..6, 1..3).prop_map(|marks| Condition::Test(Test::Mark(marks)));
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
        let plans = crate::compile(&loaded, &[], None, &memory).map_err(|found| found[0].human());
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
    let plans = crate::compile(&loaded, &[], None, &memory).map_err(|found| found[0].human());
    let plans = plans.expect("it compiles");
    let found = shown(plans.snapshot.program.ops());
    assert!(found.starts_with("call 5; unless client +1; goto "), "{found}");
    // What lies further down comes first.
    let rule = "unless qname +3; cache; forward ";
    assert!(found.contains(&format!("{rule}2; accept; {rule}1; accept; return")), "{found}");
    // Without a policy the built-in one follows.
    let loaded = load_text(Path::new("x"), "split: {example: 192.0.2.1}\n", &memory).expect("no mistakes");
    let plans = crate::compile(&loaded, &[], None, &memory).map_err(|found| found[0].human());
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

/// Checks the diagnostics of policies that cannot be compiled.
fn check_refused(text: &str, expect: &str) {
    let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
    let loaded = load_text(Path::new("x"), text, &memory).expect("no mistakes");
    let found = crate::compile(&loaded, &[], None, &memory).err().expect("it is refused");
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
    let rules = "    - mark(1)\n".repeat(65_600);
    check_refused(
        &format!("policy:\n  main:\n{rules}"),
        "x:2:3: error: the policies have more than 65534 steps in all",
    );
    check_refused(
        &format!("policy:\n  main:\n    - if: mark(2)\n      do: [{}]\n", "mark(1), ".repeat(65_600)),
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

#[test]
fn conditions_on_questions_that_never_come_are_warned_of() {
    let check = |qtype: &str, more: &str, expect: &[&str]| {
        let text =
            format!("policy: {{main: [{{if: qtype == {qtype}, do: drop}}, forward(default)]}}\n{more}");
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        let loaded = load_text(Path::new("x"), &text, &memory).expect("no mistakes");
        let plans = crate::compile(&loaded, &[], None, &memory).expect("no mistakes");
        let found: Vec<String> = plans.warnings.iter().map(|found| found.message.clone()).collect();
        let found: Vec<&str> =
            found.iter().map(String::as_str).filter(|text| text.contains("never")).collect();
        assert_eq!(found, expect, "{text}");
    };
    let nothing = "this condition never holds: the rule does nothing";
    check("A", "", &[]);
    check("AXFR", "", &[nothing, "questions for AXFR never come to a policy"]);
    check("ANY", "", &[nothing, "questions for ANY never come to a policy"]);
    check("ANY", "server: {minimal-any: false}\n", &[]);
}

/// Writes the steps of a whole file in short.
fn steps_of(text: &str) -> String {
    let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
    let loaded = load_text(Path::new("x"), text, &memory).expect("no mistakes");
    let plans = crate::compile(&loaded, &[], None, &memory).map_err(|found| found[0].human());
    shown(plans.expect("it compiles").snapshot.program.ops())
}

#[test]
fn caches_are_looked_into_before_lists() {
    let sets = "sets: {ads: {names: [bad.example]}}\n";
    let check = |policy: &str, expect: &str| {
        assert_eq!(steps_of(&format!("{sets}policy:\n{policy}")), expect, "{policy}");
    };
    check(
        "  main: [hosts, local, 'blocklist(ads)', 'cache(main)', recurse]\n",
        "early; local; answer; cache; recurse 0; accept",
    );
    check(
        "  main:\n    - {if: qname in ads, do: drop}\n    - ['cache(main)', recurse]\n",
        "early; unless qname +1; drop; cache; recurse 0; accept",
    );
    // What is done for every query comes first.
    check(
        "  main: ['ede(15, \"x\")', local, 'blocklist(ads)', 'cache(main)', recurse]\n",
        "edit; early; local; answer; cache; recurse 0; accept",
    );
    // A policy that is run, with a list before and behind it.
    check(
        "  main: [local, 'call(lists)', {if: not rd, do: respond(refused)}, 'ask(find)', 'call(lists)']\n  \
         lists: ['blocklist(ads)']\n  find: ['cache(main)', recurse]\n",
        "early; local; call 8; if other +1; answer; split; call 8; accept; answer; return; cache; recurse 0; return",
    );
}

#[test]
fn caches_are_not_looked_into_early_where_that_finds_nothing() {
    let sets = "sets: {ads: {names: [bad.example]}}\n";
    for policy in [
        // Nothing before the cache costs more.
        "  main: [local, {if: 'qname in suffix:example', do: drop}, 'cache(main)', recurse]\n",
        // The list is behind the cache, where no query comes that has an answer.
        "  main: ['cache(main)', recurse, 'blocklist(ads)']\n",
        // Not all queries do the same.
        "  main: ['blocklist(ads)', {if: 'transport == tcp', do: drop}, 'cache(main)', recurse]\n",
        "  main: ['blocklist(ads)', 'ttl(min 60s)', 'cache(main)', recurse]\n",
    ] {
        let found = steps_of(&format!("{sets}policy:\n{policy}"));
        assert!(!found.contains("early"), "{policy}: {found}");
    }
}

#[test]
fn ordinary_clients_look_into_the_cache_before_views() {
    let text = "views: [{clients: 192.0.2.9, policy: kids}]\npolicy: {main: ['cache(main)', recurse], kids: [drop]}\n";
    assert_eq!(steps_of(text), "early; unless client +1; goto 6; cache; recurse 0; accept; drop; return");
    let text = "views: [{clients: 192.0.2.9, policy: kids}]\npolicy: {main: [recurse], kids: ['cache(main)', recurse]}\n";
    assert!(!steps_of(text).contains("early"));
}
