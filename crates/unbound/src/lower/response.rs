//! What becomes of answers by the addresses in them (`response-ip`).

use std::collections::BTreeMap;

use diagnostic::Span;
use wire::Prefix;
use yaml::Node;

use super::Lowering;
use super::access::prefix;
use super::clients::{self, Clients};
use super::local::rule;
use super::policy::FIND;
use crate::keywords::Section;
use crate::kind::{Kind, kind_of};
use crate::names::bare;
use crate::read::{Statement, Word};

/// A prefix of addresses that answers are looked for.
struct Addresses<'a> {
    word: &'a Word,
    kind: Option<(Kind, Span)>,
    data: Vec<&'a Word>,
    tags: Vec<&'a str>,
}

impl<'a> Lowering<'a> {
    /// Puts the rules for addresses into the policy: those of views first, for their clients alone.
    pub(super) fn responses(&mut self) {
        let clients = self.clients();
        let mut have_own: Vec<&str> = Vec::new();
        for block in self.blocks(Section::View) {
            let Some(name) = block.last("name") else { continue };
            let of_view =
                self.addresses([block.all("response-ip").collect(), block.all("response-ip-data").collect()]);
            if !block.flag("view-first").0 {
                have_own.push(&name.text);
            }
            if of_view.is_empty() {
                continue;
            }
            let is_of = |it: &Clients<'_>| it.view.is_some_and(|view| view.text == name.text);
            let Some(who) = clients::condition(&clients, is_of) else { continue };
            for addresses in of_view.values() {
                self.response(addresses, &[Some(who.clone())]);
            }
        }
        let is_apart = |it: &Clients<'_>| it.view.is_some_and(|view| have_own.contains(&&*view.text));
        let others = clients::condition(&clients, is_apart).map(|condition| format!("not {condition}"));
        let mut of_all =
            self.addresses([self.all("response-ip").collect(), self.all("response-ip-data").collect()]);
        for statement in self.all("response-ip-tag") {
            let key = prefix(&statement.word(0).text).map(key);
            match key.and_then(|key| of_all.get_mut(&key)) {
                Some(addresses) => addresses.tags.extend(clients::tags(statement.word(1))),
                None => {
                    let word = statement.word(0);
                    self.error(word.span, format!("\"{}\" has no \"response-ip\"", word.text));
                }
            }
        }
        for addresses in of_all.values() {
            self.for_tagged(addresses, &clients, others.as_ref());
            self.response(addresses, std::slice::from_ref(&others));
        }
    }

    /// Makes rules of a prefix for clients whose tag has something else done about it: it is there
    /// for all others as well.
    fn for_tagged(&mut self, addresses: &Addresses<'a>, clients: &[Clients<'a>], others: Option<&String>) {
        for it in clients {
            let Some(tag) = it.tag_among(&addresses.tags) else { continue };
            let of_tag = |list: &[(&'a str, &'a Word)]| {
                list.iter().find(|(known, _)| *known == tag).map(|&(_, word)| word)
            };
            let (action, data) = (of_tag(&it.actions), of_tag(&it.data));
            if action.is_none() && data.is_none() {
                continue;
            }
            let kind = action.and_then(|word| Some((kind_of(&word.text)?, word.span))).or(addresses.kind);
            let data = data.map_or_else(|| addresses.data.clone(), |word| vec![word]);
            let own = Addresses { word: addresses.word, kind, data, tags: Vec::new() };
            let who = clients::condition(clients, |other| std::ptr::eq(it, other));
            if who.is_some() {
                self.response(&own, &[others.cloned(), who]);
            }
        }
    }

    /// Reads prefixes with what is done about them, the longest ones first.
    fn addresses(
        &mut self,
        [kinds, data]: [Vec<&'a Statement>; 2],
    ) -> BTreeMap<(std::cmp::Reverse<u8>, String), Addresses<'a>> {
        let mut all = BTreeMap::new();
        for (statement, is_data) in
            kinds.into_iter().map(|it| (it, false)).chain(data.into_iter().map(|it| (it, true)))
        {
            let [word, said] = [statement.word(0), statement.word(1)];
            let Some(prefix) = prefix(&word.text) else {
                self.error(word.span, format!("\"{}\" is not a prefix", word.text));
                continue;
            };
            let fresh = || Addresses { word, kind: None, data: Vec::new(), tags: Vec::new() };
            let addresses = all.entry(key(prefix)).or_insert_with(fresh);
            match kind_of(&said.text) {
                _ if is_data => addresses.data.push(said),
                Some(kind) if !matches!(kind, Kind::NoView | Kind::Ipset) => {
                    addresses.kind = Some((kind, statement.span()));
                }
                _ => self.error(said.span, format!("\"{}\" is no type of local zones", said.text)),
            }
        }
        all
    }

    /// Makes rules of a prefix, for clients that fit all conditions.
    fn response(&mut self, addresses: &Addresses<'_>, who: &[Option<String>]) {
        let Addresses { word, kind, data, .. } = addresses;
        let has_address = format!("answer-address in {}", word.text);
        let condition: Vec<&str> = who.iter().flatten().map(String::as_str).chain([&*has_address]).collect();
        let condition = condition.join(" and ");
        let mut rules: Vec<Node> = Vec::new();
        let (kind, at) = kind.unwrap_or((Kind::Redirect, word.span));
        if kind == Kind::Redirect {
            for word in data {
                let (rtype, data) = word.text.trim().split_once([' ', '\t']).unwrap_or((&word.text, ""));
                let (rtype, data) = (rtype.to_ascii_uppercase(), data.trim());
                if rtype == "CNAME" {
                    // What the alias leads to is found, and nothing more is done about it.
                    let alias = format!("redirect({}, ttl 1h)", bare(data));
                    let actions = ["forget", &alias, &format!("ask({FIND})"), "accept"];
                    rules.push(rule(condition.clone(), &actions, word.span));
                    continue;
                }
                let text = format!("@ 3600 {rtype} {data}").replace('\\', "\\\\").replace('"', "\\\"");
                let condition = format!("{condition} and qtype == {rtype}");
                rules.push(rule(condition, &[&format!("respond(answer \"{text}\")")], word.span));
            }
        }
        let action = match kind {
            Kind::Deny | Kind::AlwaysDeny => "drop",
            Kind::Refuse | Kind::AlwaysRefuse => "reject(refused)",
            Kind::Static | Kind::Redirect | Kind::AlwaysNodata => "respond(noerror)",
            Kind::AlwaysNxdomain => "respond(nxdomain)",
            Kind::AlwaysNull => "block(null, ttl 1h, ede none)",
            Kind::Truncate => "truncate",
            Kind::Transparent
            | Kind::TypeTransparent
            | Kind::BlockA
            | Kind::BlockAaaa
            | Kind::BlockAOrData
            | Kind::BlockAaaaOrData
            | Kind::NoView
            | Kind::Ipset
            | Kind::AlwaysTransparent => "accept",
        };
        rules.push(rule(condition, &[action], at));
        self.steps.rewrites.extend(rules);
    }
}

fn key(prefix: Prefix) -> (std::cmp::Reverse<u8>, String) {
    (std::cmp::Reverse(prefix.bits()), prefix.to_string())
}
