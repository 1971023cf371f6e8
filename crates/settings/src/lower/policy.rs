//! Policies, named conditions and views: the tree to settings.

use std::borrow::Cow;
use std::collections::BTreeMap;

use diagnostic::{At, Problem, Span};
use lists::NamePattern;
use policy::action::Core;
use policy::condition::{AddressTerm, NameTerm, TextOperator, TextSource, TextTest};
use policy::{Condition, NamedCondition, Policy, Rule, SPLIT, Test, View, action, condition};
use sets::Reach;
use wire::NameBuf;

use super::notation::split_by_commas;
use super::read::Values as _;
use super::{Lowering, Section};
use crate::groups::{CacheSettings, Split};
use schema::Row;
use yaml::{Entry, Node, in_mapping};

impl Lowering<'_> {
    pub(super) fn conditions(&mut self, root: &Section<'_>) -> Vec<NamedCondition> {
        let section = self.names(root, "conditions");
        let mut conditions = Vec::new();
        for entry in section.entries.iter() {
            self.row(&section, "*");
            let condition = self.condition(&entry.node);
            let Some(name) = self.label(entry) else { continue };
            if condition::is_taken(&name.value) {
                self.problems.push(
                    Problem::error(
                        name.span,
                        format!("\"{}\" means something in conditions already", name.value),
                    )
                    .expected("another name"),
                );
                continue;
            }
            conditions.push(NamedCondition { name, condition });
        }
        conditions
    }

    pub(super) fn views(&mut self, root: &Section<'_>) -> Vec<View> {
        let mut views = Vec::new();
        for item in self.items(root, "views") {
            let policy = self.optional(&item, "policy", |lowering, _, node| {
                lowering
                    .read(node, "the name of a policy", |text| values::identifier(text).map(str::to_owned))
            });
            let mut parts = Vec::new();
            let clients = self.prefixes(&item, "clients");
            if let (Some(entry), false) = (item.entry("clients"), clients.is_empty()) {
                let value = AddressTerm::Prefixes(clients);
                parts.push(Condition::Test(Test::Client(vec![At { value, span: entry.node.span }])));
            }
            let listeners = self
                .list(&item, "listeners", |_, _, scalar| values::identifier(&scalar.text).map(str::to_owned));
            if !listeners.is_empty() {
                parts.push(Condition::Test(Test::Listener(listeners)));
            }
            for (key, source) in [("server-names", TextSource::ServerName), ("paths", TextSource::Path)] {
                let texts = self.list(&item, key, |_, _, scalar| Ok(scalar.text.clone()));
                if let Some(first) = texts.first() {
                    let source = At { value: source, span: first.span };
                    parts.push(one_of_texts(&source, texts.values()));
                }
            }
            parts.extend(
                self.optional(&item, "if", |lowering, _, node| Some(lowering.condition(node)))
                    .map(|at| at.value),
            );
            let Some(policy) = policy else {
                if item.entry("policy").is_none() {
                    self.problems.push(
                        Problem::error(item.span, "this view has no policy")
                            .expected("\"policy:\" and its name"),
                    );
                }
                continue;
            };
            if parts.is_empty() {
                self.problems.push(
                    Problem::error(item.span, "this view says for whom it is by nothing")
                        .expected("\"clients\", \"listeners\", \"server-names\", \"paths\" or \"if\""),
                );
            }
            let condition = At { value: Condition::All(parts), span: item.span };
            views.push(View { span: item.span, condition, policy });
        }
        views
    }

    /// Reads a condition. One that cannot be read holds never, so that nothing is said about what
    /// comes after it.
    fn condition(&mut self, node: &Node) -> At<Condition> {
        let scalar = self.scalar(node, "a condition");
        let read = scalar.and_then(|scalar| condition::parse(scalar, self.problems));
        At { value: read.unwrap_or(Condition::Any(Vec::new())), span: node.span }
    }

    pub(super) fn policies(&mut self, root: &Section<'_>) -> Vec<Policy> {
        let section = self.names(root, "policy");
        let mut policies = Vec::new();
        for entry in section.entries.iter() {
            let Some(name) = self.label(entry) else { continue };
            let row = self.row(&section, "*");
            let whole = self.without_split(&entry.node);
            let items = self.items_of(row, &whole);
            let rules = items.iter().map(|item| self.rule(item)).collect();
            policies.push(Policy { name, rules });
        }
        policies
    }

    /// Reads names that are asked for elsewhere.
    pub(super) fn split(&mut self, root: &Section<'_>, caches: &[CacheSettings]) -> Option<Split> {
        let said = root.entry("split")?;
        let section = self.names(root, "split");
        let known: Vec<&str> = match root.entry("upstreams").map(|entry| &entry.node.value) {
            Some(yaml::Value::Map(groups)) => groups.iter().map(|group| group.key.as_str()).collect(),
            _ => Vec::new(),
        };
        // The question decides which way it goes: one cache serves all of them.
        let cache = caches.iter().find(|cache| cache.name.value == "main").or(caches.first());
        let mut seen: BTreeMap<Vec<u8>, Span> = BTreeMap::new();
        let mut groups = Vec::new();
        let mut rules: Vec<(NameBuf, Rule)> = Vec::new();
        for (number, entry) in (1..).zip(section.entries.iter()) {
            let row = self.row(&section, "*");
            let name = match values::name(&entry.key) {
                Ok(name) => name,
                Err(misread) => {
                    self.problems.push(misread.into_problem(entry.key_span));
                    continue;
                }
            };
            if let Some(first) = seen.insert(name.as_name().to_folded().as_bytes().to_vec(), entry.key_span) {
                let problem = Problem::error(entry.key_span, format!("\"{}\" is set twice", entry.key));
                self.problems.push(problem.hint_at("the first time is on ", first, ""));
                continue;
            }
            let own = match &entry.node.value {
                yaml::Value::Scalar(scalar) if known.contains(&scalar.text.as_str()) => None,
                yaml::Value::Null => {
                    let expected = row.kind.expected();
                    let problem = Problem::error(entry.key_span, format!("\"{}\" has no servers", entry.key));
                    self.problems.push(problem.expected(format!("{expected}, or an upstream group")));
                    continue;
                }
                _ => Some(&entry.node),
            };
            let group = match (own, &entry.node.value) {
                (None, yaml::Value::Scalar(scalar)) => scalar.text.clone(),
                _ => {
                    let bare = entry.key.trim_end_matches('.');
                    let wanted = format!("split.{bare}");
                    let name = match values::identifier(&wanted) {
                        Ok(_) if !known.contains(&wanted.as_str()) => wanted,
                        _ => format!("split.{number}"),
                    };
                    groups.push(Entry {
                        key: name.clone(),
                        key_span: entry.key_span,
                        node: in_mapping("servers", entry.key_span, entry.node.clone()),
                    });
                    name
                }
            };
            let at = |value: String| At { value, span: entry.node.span };
            let mut actions = Vec::new();
            if let Some(cache) = cache {
                let value =
                    action::Action::Core(Core::Cache(At { span: Span::BUILT_IN, ..cache.name.clone() }));
                actions.push(At { value, span: Span::BUILT_IN });
            }
            let value = action::Action::Core(Core::Forward(at(group)));
            actions.push(At { value, span: entry.node.span });
            actions.push(At { value: action::Action::Core(Core::Accept), span: Span::BUILT_IN });
            let pattern = NameTerm::Pattern(NamePattern::Name(name, Reach::ItselfAndBelow));
            let condition = Condition::Test(Test::Qname(vec![At { value: pattern, span: entry.key_span }]));
            let condition = Some(At { value: condition, span: entry.key_span });
            rules.push((name, Rule { span: entry.key_span, name: None, condition, actions }));
        }
        // What lies below another one comes before it.
        rules.sort_by_key(|(name, _)| std::cmp::Reverse(name.as_name().label_count()));
        let entries = vec![Entry {
            key: "upstreams".to_owned(),
            key_span: said.key_span,
            node: Node { span: said.key_span, value: yaml::Value::Map(groups) },
        }];
        let groups = self.groups(&Section {
            path: String::new(),
            entries: Cow::Borrowed(&entries),
            defaults: &[],
            span: said.key_span,
        });
        if rules.is_empty() {
            return None;
        }
        let name = At { value: SPLIT.to_owned(), span: said.key_span };
        let policy = Policy { name, rules: rules.into_iter().map(|(_, rule)| rule).collect() };
        Some(Split { span: said.key_span, policy, groups })
    }

    /// Returns a list of rules without those that are pieces of an action, which are reported.
    fn without_split<'n>(&mut self, node: &'n Node) -> Cow<'n, Node> {
        let yaml::Value::List(nodes) = &node.value else { return Cow::Borrowed(node) };
        let mut kept = Vec::new();
        let mut rest = nodes.as_slice();
        while let Some((first, after)) = rest.split_first() {
            rest = match self.report_split(first, after) {
                Some(count) => &after[count..],
                None => {
                    kept.push(first);
                    after
                }
            };
        }
        if kept.len() == nodes.len() {
            return Cow::Borrowed(node);
        }
        Cow::Owned(Node { span: node.span, value: yaml::Value::List(kept.into_iter().cloned().collect()) })
    }

    fn rule(&mut self, item: &Section<'_>) -> Rule {
        let name = self.optional(item, "name", |lowering, _, node| {
            lowering.read(node, "a name", |text| values::identifier(text).map(str::to_owned))
        });
        let condition = self.optional(item, "if", |lowering, _, node| Some(lowering.condition(node)));
        let row = self.row(item, "do");
        let actions = match item.entry("do") {
            Some(entry) => self.actions(row, &entry.node),
            None => {
                self.problems.push(
                    Problem::error(item.span, "this rule does nothing")
                        .expected("\"do:\" and one or more actions"),
                );
                Vec::new()
            }
        };
        Rule { span: item.span, name, condition, actions }
    }

    /// Reports an action that YAML split at its commas; returns how many of the nodes after it
    /// belong to it.
    fn report_split(&mut self, node: &Node, after: &[Node]) -> Option<usize> {
        let count = split_by_commas(node, after)?;
        let parts: Vec<&str> = std::iter::once(node)
            .chain(&after[..count])
            .filter_map(|node| match &node.value {
                yaml::Value::Scalar(scalar) => Some(scalar.text.as_str()),
                _ => None,
            })
            .collect();
        let end = after.get(count - 1).map_or(node.span, |last| last.span);
        self.problems.push(
            Problem::error(
                node.span.to(end),
                format!(
                    "inside \"[ ]\" the comma ends an item, so this action was split into {} parts",
                    parts.len()
                ),
            )
            .hint(if parts.iter().any(|part| part.contains('"')) {
                format!("quote it: '{}'", parts.join(", "))
            } else {
                format!("quote it: \"{}\"", parts.join(", "))
            }),
        );
        Some(count)
    }

    fn actions(&mut self, row: &'static Row, node: &Node) -> Vec<At<action::Action>> {
        let single = std::slice::from_ref(node);
        let nodes = match &node.value {
            yaml::Value::List(nodes) => nodes.as_slice(),
            yaml::Value::Null | yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::Map(_) => single,
        };
        if nodes.is_empty() {
            self.problems
                .push(Problem::error(node.head(), "there is no action").expected(row.kind.expected()));
        }
        let mut actions = Vec::new();
        let mut rest = nodes;
        while let Some((node, after)) = rest.split_first() {
            rest = after;
            let Some(scalar) = self.scalar(node, "an action") else { continue };
            if let Some(count) = self.report_split(node, after) {
                rest = &after[count..];
                continue;
            }
            if let Some(value) = action::parse(scalar, self.problems) {
                actions.push(At { value, span: node.span });
            }
        }
        actions
    }
}

/// Returns the condition that a text is one of these, `*.` before a name standing for anything.
fn one_of_texts(source: &At<TextSource>, texts: Vec<String>) -> Condition {
    let (below, equal): (Vec<String>, Vec<String>) =
        texts.into_iter().partition(|text| text.starts_with("*."));
    let test = |operator, values| Condition::Test(Test::Text(source.clone(), TextTest { operator, values }));
    let below: Vec<String> = below.iter().map(|text| text.trim_start_matches('*').to_owned()).collect();
    match (equal.is_empty(), below.is_empty()) {
        (false, true) => test(TextOperator::Equal, equal),
        (true, false) => test(TextOperator::Suffix, below),
        _ => Condition::Any(vec![test(TextOperator::Equal, equal), test(TextOperator::Suffix, below)]),
    }
}
