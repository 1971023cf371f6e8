//! What is easy to get wrong in a list of rules.

use environment::Memory;
use settings::load::load_text;
use std::path::Path;

fn check(rules: &str, expect: &[&str]) {
    let text = format!(
        "upstreams: {{a: {{servers: 192.0.2.1}}, b: {{servers: 192.0.2.2}}}}\ncache: {{one: {{}}, two: {{}}}}\npolicy:\n  main:\n{rules}"
    );
    let loaded = load_text(Path::new("x"), &text, &Memory::default()).expect("no mistakes");
    let warnings = policy::flow::walk(loaded.settings.written(), std::collections::BTreeSet::new()).warnings;
    let found = diagnostic::diagnostics(warnings, &loaded.sources);
    let found: Vec<String> = found.iter().map(|found| format!("{}: {}", found.line, found.message)).collect();
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
        "    - {if: mark(1), do: recurse}\n    - forward(b)\n",
        &["6: this forward throws away the answer that recurse(default) brought"],
    );
    check(
        "    - {if: mark(1), do: forward(a)}\n    - recurse\n",
        &["6: this recurse throws away the answer that forward(a) brought"],
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
fn an_answer_that_ends_the_query_is_not_thrown_away() {
    check("    - {if: mark(1), do: forward(a)}\n    - {if: answer, do: accept}\n    - forward(b)\n", &[]);
    check("    - forward(a)\n    - {if: rcode == servfail, do: forward(b)}\n", &[]);
    check("    - {if: mark(1), do: forward(a)}\n    - {if: not answer, do: forward(b)}\n", &[]);
}

#[test]
fn what_needs_an_answer_and_has_none_is_reported() {
    let condition = "this condition looks at the answer, and there is none yet: the rule does nothing";
    check("    - {if: rcode == nxdomain, do: drop}\n    - forward(a)\n", &[&format!("5: {condition}")]);
    check(
        "    - {if: mark(1) and answer-address in 192.0.2.0/24, do: drop}\n    - forward(a)\n",
        &[&format!("5: {condition}")],
    );
    check(
        "    - {if: not answer, do: mark(2)}\n    - {if: mark(1) or rcode == nxdomain, do: drop}\n    - forward(a)\n",
        &[],
    );
    check("    - call(p)\n    - forward(a)\n    - call(p)\n  p: [{if: rcode == nxdomain, do: drop}]\n", &[]);
    check("    - 'cache(one, continue)'\n    - {if: answer, do: ttl(max 1h)}\n    - forward(a)\n", &[]);
    check(
        "    - ttl(max 1h)\n    - remove(AAAA)\n    - forward(a)\n    - ttl(max 1h)\n",
        &[
            "5: \"ttl\" does nothing here: there is no answer yet",
            "6: \"remove\" does nothing here: there is no answer yet",
        ],
    );
}

#[test]
fn what_comes_after_the_answer_too_late_is_reported() {
    let late = "does nothing here: there is an answer already, and it stays";
    check("    - [forward(a), prefer-ipv4, accept]\n", &[&format!("5: \"prefer-ipv4\" {late}")]);
    check("    - [forward(a), dns64]\n", &[&format!("5: \"dns64\" {late}")]);
    check("    - [forward(a), redirect(x.example)]\n", &[&format!("5: \"redirect\" {late}")]);
    check("    - [prefer-ipv4, forward(a)]\n", &[]);
    check("    - [forward(a), forget, redirect(x.example), forward(b)]\n", &[]);
    check("    - [forward(a), ecs(client)]\n", &["5: \"ecs\" does nothing here: nobody is asked after it"]);
    check("    - [recurse, dns64]\n", &[&format!("5: \"dns64\" {late}")]);
    check("    - forward(a)\n    - {if: rcode == servfail, do: [ecs(client), forward(b)]}\n", &[]);
    // Servers of zones hear nothing of clients, unless a resolver says so.
    check("    - [ecs(client), recurse]\n", &["5: \"ecs\" does nothing here: nobody is asked after it"]);
    check("    - [outgoing(dnssec on), recurse]\n", &[]);
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
    check("    - {if: mark(1), do: [cache(one), forward(a), accept]}\n    - [cache(two), forward(b)]\n", &[]);
    check(
        "    - {if: client in 192.0.2.1, do: [cache(one), forward(a), accept]}\n    - [cache(one), forward(b)]\n",
        &["6: cache \"one\" keeps answers of both \"a\" and \"b\": clients get either"],
    );
    check(
        "    - {if: client in 192.0.2.1, do: mark(2)}\n    - cache(one)\n    - {if: mark(2), do: [forward(a), accept]}\n    - forward(b)\n",
        &["8: cache \"one\" keeps answers of both \"a\" and \"b\": clients get either"],
    );
}

#[test]
fn a_cache_for_which_the_question_decides_is_not_reported() {
    check("    - [cache(one), 'fallback(a, b)']\n", &[]);
    check("    - [cache(one), 'race(p, b)']\n  p: [forward(a)]\n", &[]);
    check(
        "    - cache(one)\n    - {if: 'qname in suffix:x.example', do: [forward(a), accept]}\n    - forward(b)\n",
        &[],
    );
    check(
        "    - {if: 'qtype == A', do: mark(2)}\n    - cache(one)\n    - {if: mark(2), do: [forward(a), accept]}\n    - forward(b)\n",
        &[],
    );
    check(
        "    - {if: 'client in 192.0.2.1', do: drop}\n    - cache(one)\n    - forward(a)\n    - {if: rcode == servfail, do: forward(b)}\n",
        &[],
    );
}
