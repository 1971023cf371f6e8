//! Draws policies: what is asked, what is done, and where queries go.

use std::fmt::Write as _;

use diagnostic::{At, Sources, Span};

use crate::action::Meaning;
use crate::{Action, ENTRY, Policy, Written};

/// A language for drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Mermaid, which many pages show as a drawing.
    Mermaid,
    /// Graphviz.
    Dot,
}

/// Returns the drawing of policies; `sources` has what is written in them.
pub fn graph(written: Written<'_>, sources: &Sources, language: Language) -> String {
    let mut drawing = Drawing { nodes: Vec::new(), edges: Vec::new() };
    let query = drawing.node("query", "a query", Shape::Round, None);
    let mut from = query;
    let mut way = "";
    for (number, view) in written.views.iter().enumerate() {
        let text = sources.text(view.condition.span).unwrap_or_default();
        let node = drawing.node(&format!("view{number}"), &text, Shape::Question, None);
        drawing.edge(&from, &node, way, false);
        drawing.edge(&node, &start_of(&view.policy.value), "yes", false);
        (from, way) = (node, "no");
    }
    drawing.edge(&from, &start_of(ENTRY), way, false);
    for policy in written.policies {
        draw(policy, sources, &mut drawing);
    }
    match language {
        Language::Mermaid => drawing.mermaid(),
        Language::Dot => drawing.dot(),
    }
}

fn draw(policy: &Policy, sources: &Sources, drawing: &mut Drawing) {
    let name = policy.name.value.as_str();
    let mut before: Vec<(String, &str)> =
        vec![(drawing.node(&format!("p.{name}"), name, Shape::Round, Some(name)), "")];
    for (number, rule) in policy.rules.iter().enumerate() {
        let mut open = Vec::new();
        if let Some(condition) = &rule.condition {
            let text = sources.text(condition.span).unwrap_or_default();
            let node = drawing.node(&format!("p.{name}.{number}.if"), &text, Shape::Question, Some(name));
            join(drawing, &mut before, &node);
            open.push((node.clone(), "no"));
            before.push((node, "yes"));
        }
        let texts: Vec<String> = rule.actions.iter().map(|action| action_text(action, sources)).collect();
        let node = drawing.node(&format!("p.{name}.{number}"), &texts.join("\n"), Shape::Deed, Some(name));
        join(drawing, &mut before, &node);
        let mut goes_on = true;
        for action in &rule.actions {
            for target in action.value.policies() {
                let returns = !matches!(action.value.meaning(), Meaning::Goes(_));
                let label = if returns { "calls" } else { "" };
                drawing.edge(&node, &start_of(&target.value), label, returns);
            }
            goes_on &= !action.value.ends();
        }
        if goes_on {
            before.push((node, ""));
        }
        before.extend(open);
    }
    if !before.is_empty() {
        let text = if name == ENTRY { "the end" } else { "back" };
        let node = drawing.node(&format!("p.{name}.end"), text, Shape::Round, Some(name));
        join(drawing, &mut before, &node);
    }
}

fn start_of(policy: &str) -> String {
    identifier(&format!("p.{policy}"))
}

fn join(drawing: &mut Drawing, before: &mut Vec<(String, &str)>, node: &str) {
    for (from, label) in before.drain(..) {
        drawing.edge(&from, node, label, false);
    }
}

fn action_text(action: &At<Action>, sources: &Sources) -> String {
    if action.span != Span::BUILT_IN
        && let Some(text) = sources.text(action.span)
    {
        return text.trim_matches(['"', '\'']).to_owned();
    }
    match action.value.meaning() {
        Meaning::Keeps { cache, .. } => format!("cache({cache})"),
        Meaning::Asks(name) => format!("forward({name})"),
        Meaning::Resolves(name) => format!("recurse({name})"),
        Meaning::Looks(word) => word.to_owned(),
        _ => "built in".to_owned(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Round,
    Question,
    Deed,
}

struct Node {
    id: String,
    text: String,
    shape: Shape,
    /// The policy it belongs to.
    within: Option<String>,
}

struct Edge {
    from: String,
    to: String,
    text: String,
    is_aside: bool,
}

struct Drawing {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// Returns a name that both languages take: each octet that is no letter or digit as two
/// hexadecimal digits.
fn identifier(text: &str) -> String {
    let mut id = String::from("n");
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() {
            id.push(char::from(octet));
        } else {
            let _ = write!(id, "_{octet:02x}");
        }
    }
    id
}

impl Drawing {
    fn node(&mut self, id: &str, text: &str, shape: Shape, within: Option<&str>) -> String {
        let id = identifier(id);
        self.nodes.push(Node {
            id: id.clone(),
            text: text.to_owned(),
            shape,
            within: within.map(str::to_owned),
        });
        id
    }

    fn edge(&mut self, from: &str, to: &str, text: &str, is_aside: bool) {
        let edge = Edge { from: from.to_owned(), to: to.to_owned(), text: text.to_owned(), is_aside };
        self.edges.push(edge);
    }

    /// Returns the policies that have nodes, in their order.
    fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for group in self.nodes.iter().filter_map(|node| node.within.as_deref()) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    fn mermaid(&self) -> String {
        let escaped = |text: &str| {
            text.replace('#', "#35;")
                .replace('"', "#quot;")
                .replace('<', "#lt;")
                .replace('>', "#gt;")
                .replace('\n', "<br>")
        };
        let line = |node: &Node| {
            let text = escaped(&node.text);
            match node.shape {
                Shape::Round => format!("{}([\"{text}\"])", node.id),
                Shape::Question => format!("{}{{\"{text}\"}}", node.id),
                Shape::Deed => format!("{}[\"{text}\"]", node.id),
            }
        };
        let mut out = String::from("flowchart TD\n");
        for node in self.nodes.iter().filter(|node| node.within.is_none()) {
            let _ = writeln!(out, "    {}", line(node));
        }
        for group in self.groups() {
            let _ = writeln!(
                out,
                "    subgraph {} [\"policy {}\"]",
                identifier(&format!("g.{group}")),
                escaped(group)
            );
            for node in self.nodes.iter().filter(|node| node.within.as_deref() == Some(group)) {
                let _ = writeln!(out, "        {}", line(node));
            }
            out.push_str("    end\n");
        }
        for Edge { from, to, text, is_aside } in &self.edges {
            let arrow = if *is_aside { "-.->" } else { "-->" };
            let label = if text.is_empty() { String::new() } else { format!("|{}|", escaped(text)) };
            let _ = writeln!(out, "    {from} {arrow}{label} {to}");
        }
        out
    }

    fn dot(&self) -> String {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let line = |node: &Node| {
            let shape = match node.shape {
                Shape::Round => "oval",
                Shape::Question => "diamond",
                Shape::Deed => "box",
            };
            format!("{} [shape={shape}, label=\"{}\"];", node.id, escaped(&node.text))
        };
        let mut out = String::from("digraph policy {\n");
        for node in self.nodes.iter().filter(|node| node.within.is_none()) {
            let _ = writeln!(out, "    {}", line(node));
        }
        for group in self.groups() {
            let _ = writeln!(out, "    subgraph cluster_{} {{", identifier(group));
            let _ = writeln!(out, "        label=\"policy {}\";", escaped(group));
            for node in self.nodes.iter().filter(|node| node.within.as_deref() == Some(group)) {
                let _ = writeln!(out, "        {}", line(node));
            }
            out.push_str("    }\n");
        }
        for Edge { from, to, text, is_aside } in &self.edges {
            let style = if *is_aside { ", style=dashed" } else { "" };
            let _ = writeln!(out, "    {from} -> {to} [label=\"{}\"{style}];", escaped(text));
        }
        out.push_str("}\n");
        out
    }
}
