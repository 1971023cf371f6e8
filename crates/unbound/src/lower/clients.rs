//! Clients by the prefixes that the file gives them, or the interfaces that they come to: tags,
//! what these do, and views. Of all prefixes that have a client, the longest one counts; the
//! interface counts for those that no prefix has.

use wire::Prefix;

use super::Lowering;
use super::access::{prefix, without};
use super::listening::Interface;
use crate::read::{Statement, Word};

/// By what the file names clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Their addresses.
    Prefix(Prefix),
    /// The interface that their queries come to.
    Interface(Interface),
}

/// Keywords that say something of an interface, with what each is for prefixes.
const OF_INTERFACES: [(&str, &str); 5] = [
    ("interface-action", "access-control"),
    ("interface-tag", "access-control-tag"),
    ("interface-tag-action", "access-control-tag-action"),
    ("interface-tag-data", "access-control-tag-data"),
    ("interface-view", "access-control-view"),
];

/// Prefixes of this machine itself, which are allowed without being named.
pub(super) const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// What the file says of a prefix, or of an interface.
#[derive(Clone, Debug)]
pub(super) struct Clients<'a> {
    pub(super) place: Place,
    /// In the order in which tags are defined.
    pub(super) tags: Vec<&'a str>,
    /// Types that zones with a tag have for them.
    pub(super) actions: Vec<(&'a str, &'a Word)>,
    /// Data that zones with a tag have for them.
    pub(super) data: Vec<(&'a str, &'a Word)>,
    pub(super) view: Option<&'a Word>,
}

impl<'a> Lowering<'a> {
    /// Returns the prefixes and interfaces that the file names.
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
                if let Some(prefix) = prefix(&statement.word(0).text) {
                    note(&mut clients, Place::Prefix(prefix), keyword, statement);
                }
            }
        }
        for (keyword, alike) in OF_INTERFACES {
            for statement in self.all(keyword) {
                if let Some(interface) = self.interface(statement.word(0)) {
                    note(&mut clients, Place::Interface(interface), alike, statement);
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
        for (keyword, _) in OF_INTERFACES {
            for word in self.all(keyword).map(|it| it.word(0)) {
                if self.interface(word).is_none() {
                    self.error(word.span, format!("there is no \"interface: {}\"", word.text));
                }
            }
        }
        let views: Vec<&str> = self
            .blocks(crate::keywords::Section::View)
            .filter_map(|block| block.last("name"))
            .map(|name| &*name.text)
            .collect();
        let all = self.all("access-control-view").chain(self.all("interface-view"));
        for word in all.map(|it| it.word(1)) {
            if !views.contains(&word.text.as_str()) {
                self.error(word.span, format!("there is no view \"{}\"", word.text));
            }
        }
    }
}

/// Notes what a statement says of clients.
fn note<'a>(clients: &mut Vec<Clients<'a>>, place: Place, keyword: &str, statement: &'a Statement) {
    let known = clients.iter().position(|clients| clients.place == place);
    let at = known.unwrap_or_else(|| {
        let (tags, actions, data) = (Vec::new(), Vec::new(), Vec::new());
        clients.push(Clients { place, tags, actions, data, view: None });
        clients.len() - 1
    });
    if let Some(clients) = clients.get_mut(at) {
        clients.note(keyword, statement);
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

    fn prefix(&self) -> Option<Prefix> {
        match self.place {
            Place::Prefix(prefix) => Some(prefix),
            Place::Interface(_) => None,
        }
    }

    /// Returns the parts of the prefix that no longer one takes away.
    fn parts(&self, all: &[Clients<'_>]) -> Vec<Prefix> {
        let Some(prefix) = self.prefix() else { return Vec::new() };
        let mut parts = vec![prefix];
        let is_inside = |other: &Prefix| other.bits() > prefix.bits() && prefix.contains(other.address());
        for other in all.iter().filter_map(Clients::prefix).filter(is_inside) {
            parts = parts.into_iter().flat_map(|part| without(part, other)).collect();
        }
        parts
    }
}

/// Returns the name of the listener at an interface that the file says something of. No two devices
/// have the same: conditions tell their clients apart by it.
pub(super) fn listener_name(interface: &Interface) -> String {
    let (host, port) = interface.parts();
    let host = match interface {
        Interface::Device(..) => host.replace('_', "__").replace('.', "_-"),
        Interface::Address(_) => host.replace('.', "-"),
    };
    super::label(&format!("interface-{host}-{port}"))
}

/// Returns the condition for those of all clients that `wants` names; `None` if it names none.
pub(super) fn condition(all: &[Clients<'_>], wants: impl Fn(&Clients<'_>) -> bool) -> Option<String> {
    let parts = all.iter().filter(|clients| wants(clients)).flat_map(|clients| clients.parts(all));
    let texts: Vec<String> = parts.map(|part| part.to_string()).collect();
    let by_prefix = (!texts.is_empty()).then(|| format!("client in {}", texts.join("|")));
    let interfaces = all.iter().filter(|clients| wants(clients)).filter_map(|it| match &it.place {
        Place::Interface(interface) => Some(interface),
        Place::Prefix(_) => None,
    });
    match (by_prefix, of_interfaces(all, interfaces)) {
        (Some(by_prefix), Some(by_interface)) => Some(format!("({by_prefix} or {by_interface})")),
        (by_prefix, by_interface) => by_prefix.or(by_interface),
    }
}

/// Returns the condition for clients that come to these interfaces and that no prefix names.
pub(super) fn of_interfaces<'i>(
    all: &[Clients<'_>],
    interfaces: impl Iterator<Item = &'i Interface>,
) -> Option<String> {
    let listeners: Vec<String> =
        interfaces.map(|interface| format!("listener == {}", listener_name(interface))).collect();
    let listeners = match &listeners[..] {
        [] => return None,
        [one] => one.clone(),
        several => format!("({})", several.join(" or ")),
    };
    Some(format!("({listeners} and not client in {})", named(all)))
}

/// Returns the prefixes that the file says something of, and those of this machine.
pub(super) fn named(all: &[Clients<'_>]) -> String {
    let prefixes = all.iter().filter_map(Clients::prefix).map(|prefix| prefix.to_string());
    let mut texts: Vec<String> = prefixes.collect();
    texts.extend(
        LOOPBACK
            .iter()
            .filter(|text| !texts.contains(&(**text).to_owned()))
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    );
    texts.join("|")
}

/// Returns the words of a list of tags.
pub(super) fn tags(word: &Word) -> impl Iterator<Item = &str> {
    word.text.split_whitespace()
}
