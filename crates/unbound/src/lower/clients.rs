//! Clients by the prefixes that the file gives them: tags, what these do, and views. Of all
//! prefixes that have a client, the longest one counts.

use wire::Prefix;

use super::Lowering;
use super::access::{prefix, without};
use crate::read::{Statement, Word};

/// What the file says of a prefix.
#[derive(Clone, Debug)]
pub(super) struct Clients<'a> {
    prefix: Prefix,
    /// In the order in which tags are defined.
    pub(super) tags: Vec<&'a str>,
    /// Types that zones with a tag have for them.
    pub(super) actions: Vec<(&'a str, &'a Word)>,
    /// Data that zones with a tag have for them.
    pub(super) data: Vec<(&'a str, &'a Word)>,
    pub(super) view: Option<&'a Word>,
}

impl<'a> Lowering<'a> {
    /// Returns the prefixes that the file names.
    pub(super) fn clients(&mut self) -> Vec<Clients<'a>> {
        let mut clients: Vec<Clients<'a>> = Vec::new();
        for keyword in [
            "access-control",
            "access-control-tag",
            "access-control-tag-action",
            "access-control-tag-data",
            "access-control-view",
        ] {
            for statement in self.all(keyword) {
                let Some(prefix) = prefix(&statement.word(0).text) else { continue };
                let known = clients.iter().position(|clients| clients.prefix == prefix);
                let at = known.unwrap_or_else(|| {
                    let (tags, actions, data) = (Vec::new(), Vec::new(), Vec::new());
                    clients.push(Clients { prefix, tags, actions, data, view: None });
                    clients.len() - 1
                });
                if let Some(clients) = clients.get_mut(at) {
                    clients.note(keyword, statement);
                }
            }
        }
        let defined: Vec<&str> =
            self.all("define-tag").flat_map(|it| it.word(0).text.split_whitespace()).collect();
        for clients in &mut clients {
            clients.tags.sort_by_key(|tag| defined.iter().position(|known| known == tag));
        }
        clients
    }

    /// Says which prefixes cannot be read: those of other keywords than `access-control`.
    pub(super) fn check_clients(&mut self) {
        let keywords = ["access-control-tag-action", "access-control-tag-data", "access-control-view"];
        for keyword in keywords {
            for word in self.all(keyword).map(|it| it.word(0)).filter(|it| prefix(&it.text).is_none()) {
                self.error(word.span, format!("\"{}\" is not a prefix", word.text));
            }
        }
        let views: Vec<&str> = self
            .blocks(crate::keywords::Section::View)
            .filter_map(|block| block.last("name"))
            .map(|name| &*name.text)
            .collect();
        for word in self.all("access-control-view").map(|it| it.word(1)) {
            if !views.contains(&word.text.as_str()) {
                self.error(word.span, format!("there is no view \"{}\"", word.text));
            }
        }
    }
}

impl<'a> Clients<'a> {
    fn note(&mut self, keyword: &str, statement: &'a Statement) {
        match keyword {
            "access-control-tag" => self.tags.extend(statement.word(1).text.split_whitespace()),
            "access-control-tag-action" => self.actions.push((&statement.word(1).text, statement.word(2))),
            "access-control-tag-data" => self.data.push((&statement.word(1).text, statement.word(2))),
            "access-control-view" => self.view = Some(statement.word(1)),
            _ => {}
        }
    }

    /// Returns the tag by which these clients meet something that has these: the first that is
    /// defined.
    pub(super) fn tag_among(&self, tags: &[&str]) -> Option<&'a str> {
        self.tags.iter().copied().find(|tag| tags.contains(tag))
    }

    /// Returns the parts of the prefix that no longer one takes away.
    fn parts(&self, all: &[Clients<'_>]) -> Vec<Prefix> {
        let mut parts = vec![self.prefix];
        let is_inside = |other: &&Clients<'_>| {
            other.prefix.bits() > self.prefix.bits() && self.prefix.contains(other.prefix.address())
        };
        for other in all.iter().filter(is_inside) {
            parts = parts.into_iter().flat_map(|part| without(part, other.prefix)).collect();
        }
        parts
    }
}

/// Returns the condition for those of all clients that `wants` names; `None` if it names none.
pub(super) fn condition(all: &[Clients<'_>], wants: impl Fn(&Clients<'_>) -> bool) -> Option<String> {
    let parts = all.iter().filter(|clients| wants(clients)).flat_map(|clients| clients.parts(all));
    let texts: Vec<String> = parts.map(|part| part.to_string()).collect();
    (!texts.is_empty()).then(|| format!("client in {}", texts.join("|")))
}

/// Returns the words of a list of tags.
pub(super) fn tags(word: &Word) -> impl Iterator<Item = &str> {
    word.text.split_whitespace()
}
