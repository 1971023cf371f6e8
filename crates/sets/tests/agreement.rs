//! A compiled set agrees with rules that are tried one by one.

use proptest::prelude::*;
use sets::{NameSetBuilder, Reach, Sought};
use wire::{Folded, HashKey, NameBuf};

const KEY: HashKey = HashKey::new([11, 12]);

#[derive(Clone, Debug)]
enum Rule {
    Name(String, Reach),
    Keyword(String),
    Regex(String, regex_automata::meta::Regex),
}

/// Compiled once: it is tried on every name.
fn regex(text: String) -> Rule {
    let compiled = regex_automata::meta::Regex::new(&text).expect("a regular expression");
    Rule::Regex(text, compiled)
}

/// Labels from few letters, so that rules and names meet.
fn label() -> impl Strategy<Value = String> {
    "[a-c]{1,3}|[ab]{8,10}|x|a[ab]{2}xx?[ab]{2}b"
}

fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(label(), 1..20).prop_map(|labels| labels.join("."))
}

fn rule() -> impl Strategy<Value = Rule> {
    let short = prop::collection::vec(label(), 1..4).prop_map(|labels| labels.join("."));
    let reach = prop_oneof![Just(Reach::Itself), Just(Reach::Below), Just(Reach::ItselfAndBelow)];
    prop_oneof![
        6 => (short, reach).prop_map(|(name, reach)| Rule::Name(name, reach)),
        1 => "[a-c.]{1,6}".prop_map(Rule::Keyword),
        1 => "(\\^|)([a-c]|\\[ab\\]|x\\+|c\\?|\\(a\\|bb\\)|\\\\\\.){1,5}(\\$|)".prop_map(regex),
        // Texts on both sides of what may be repeated: each must be in the name.
        1 => "(\\^|)a[ab]{2}x\\+[ab]{2}b(\\\\\\.[a-c]{1,3}|)(\\$|)".prop_map(regex),
    ]
}

fn holds(rule: &Rule, name: &str) -> bool {
    match rule {
        Rule::Name(of, reach) => {
            let is_below = name.strip_suffix(of.as_str()).is_some_and(|rest| rest.ends_with('.'));
            match reach {
                Reach::Itself => name == of,
                Reach::Below => is_below,
                Reach::ItselfAndBelow => name == of || is_below,
            }
        }
        Rule::Keyword(keyword) => name.contains(keyword.as_str()),
        Rule::Regex(_, compiled) => compiled.is_match(name),
    }
}

fn asked<T>(name: &str, f: impl FnOnce(&Sought<'_>) -> T) -> T {
    let name = NameBuf::from_text(name).expect("a name");
    let mut folded = Folded::root();
    let hash = KEY.fold(name.as_name(), &mut folded);
    f(&Sought::new(&folded, hash))
}

proptest! {
    #[test]
    fn a_set_holds_what_one_of_its_rules_is_about(
        rules in prop::collection::vec(rule(), 0..40),
        names in prop::collection::vec(name(), 1..20),
        more in prop::collection::vec(rule(), 0..3),
    ) {
        let mut builder = NameSetBuilder::new(&KEY);
        let add = |builder: &mut NameSetBuilder, rules: &[Rule]| {
            for (rule, line) in rules.iter().zip(1..) {
                match rule {
                    Rule::Name(name, reach) => {
                        let name = NameBuf::from_text(name).expect("a name");
                        builder.name(name.as_name(), *reach, line);
                    }
                    Rule::Keyword(keyword) => builder.keyword(keyword, line).expect("a keyword"),
                    Rule::Regex(text, _) => builder.regex(text, line).expect("a regular expression"),
                }
            }
        };
        builder.source("first");
        add(&mut builder, &rules);
        builder.source("second");
        add(&mut builder, &more);
        let set = builder.compile();
        // Rules' own names and what lies below them, besides names made up.
        let own = rules.iter().filter_map(|rule| match rule {
            Rule::Name(name, _) => Some([name.clone(), format!("a.{name}"), format!("a{name}")]),
            Rule::Keyword(_) | Rule::Regex(..) => None,
        });
        for name in own.flatten().chain(names) {
            let expected = rules.iter().chain(&more).any(|rule| holds(rule, &name));
            asked(&name, |sought| {
                prop_assert_eq!(set.contains(sought), expected, "{} {:?}", &name, &rules);
                let found = set.find(sought);
                prop_assert_eq!(found.is_some(), expected);
                if let Some(found) = found {
                    let (source, line) = found.place();
                    let list = if source == "first" { &rules } else { &more };
                    prop_assert!(holds(&list[line as usize - 1], &name), "{} {}", &name, line);
                }
                let mut told = 0;
                set.each(sought, |_| told += 1);
                prop_assert_eq!(told > 0, expected);
                Ok(())
            })?;
        }
    }
}
