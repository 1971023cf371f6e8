//! What was changed while the server runs: laid over what the file says, until it is read again.
//!
//! Each name has one entry of each kind, so that whoever adds and removes the same names for years
//! fills no memory.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use crate::keywords::{self, Becomes, Section};
use crate::names::{bare, lower_case};
use crate::read::{Block, Statement, Statements, ZoneLines};

/// Octets of text that all changes together may have.
const OCTETS_MAX: usize = 256 << 20;

/// Whose local zones: those of `server:`, or of a view of this name.
pub type Scope = Option<String>;

/// What is done about data of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Data {
    /// What the file has for it does not count.
    is_removed: bool,
    /// In the form of the file.
    added: BTreeSet<String>,
}

/// The servers of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneServers {
    /// Addresses and names, as the file has them.
    pub servers: Vec<String>,
    /// Whether they are asked over TLS.
    pub over_tls: bool,
    /// Of a stub zone: whether its servers are asked who they are.
    pub primes: bool,
}

/// A zone that is found in a way of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZoneKind {
    /// `forward-zone`.
    Forward,
    /// `stub-zone`.
    Stub,
}

/// What was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// By view and name; without a type, the zone is gone.
    zones: BTreeMap<(Scope, Key), Option<String>>,
    data: BTreeMap<(Scope, Key), Data>,
    /// Whether signatures count no more below a name.
    insecure: BTreeMap<String, bool>,
    /// By name; without servers, the zone is gone.
    servers: BTreeMap<(ZoneKind, String), Option<ZoneServers>>,
    options: BTreeMap<&'static str, String>,
    /// Response policy zones that do nothing at present.
    disabled: BTreeSet<String>,
    octets: usize,
}

/// A name, its labels in reverse, so that what is below it follows it.
type Key = String;

pub(crate) fn key(name: &str) -> Key {
    let bare = bare(name);
    let mut key = String::with_capacity(bare.len() + 1);
    for label in bare.split('.').rev().filter(|label| !label.is_empty()) {
        key.push('.');
        key.push_str(label);
    }
    key
}

fn name_of(key: &str) -> String {
    let labels: Vec<&str> = key.split('.').filter(|label| !label.is_empty()).rev().collect();
    if labels.is_empty() { ".".to_owned() } else { labels.join(".") }
}

fn is_at_or_below(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Why something cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// There is no such keyword, or it takes another value.
    Option,
    /// It is read from the file alone.
    Restart,
    /// The keyword does nothing here.
    NoEffect,
    /// No file can have such a text.
    Text,
    /// All changes together would be too long.
    TooMany,
}

impl Changes {
    /// Returns whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Makes a local zone, or another type of one.
    ///
    /// # Errors
    ///
    /// The text is none of a file, or there is too much of it.
    pub fn local_zone(&mut self, scope: Scope, name: &str, kind: &str) -> Result<(), ChangeError> {
        self.note(&[name, kind])?;
        self.zones.insert((scope, key(name)), Some(kind.to_owned()));
        Ok(())
    }

    /// Takes a local zone away, and the data in it.
    ///
    /// # Errors
    ///
    /// The text is none of a file, or there is too much of it.
    pub fn remove_local_zone(&mut self, scope: Scope, name: &str) -> Result<(), ChangeError> {
        self.note(&[name])?;
        let zone = key(name);
        let below = self.data.range((scope.clone(), zone.clone())..);
        let gone: Vec<(Scope, Key)> = below
            .map(|(place, _)| place)
            .take_while(|(other, inner)| *other == scope && inner.starts_with(&zone))
            .filter(|(_, inner)| is_at_or_below(inner, &zone))
            .cloned()
            .collect();
        for place in gone {
            self.data.remove(&place);
        }
        self.zones.insert((scope, zone), None);
        Ok(())
    }

    /// Adds a record: a name, perhaps a TTL and a class, a type and data.
    ///
    /// # Errors
    ///
    /// The text is none of a file, or there is too much of it.
    pub fn local_data(&mut self, scope: Scope, record: &str) -> Result<(), ChangeError> {
        let owner = record.split([' ', '\t']).next().unwrap_or("");
        if record.contains('\'') && record.contains('"') && record.contains("\\'") {
            return Err(ChangeError::Text);
        }
        self.note(&[record])?;
        self.data.entry((scope, key(owner))).or_default().added.insert(record.to_owned());
        Ok(())
    }

    /// Takes all data of a name away.
    ///
    /// # Errors
    ///
    /// The text is none of a file, or there is too much of it.
    pub fn remove_local_data(&mut self, scope: Scope, name: &str) -> Result<(), ChangeError> {
        self.note(&[name])?;
        self.data.insert((scope, key(name)), Data { is_removed: true, added: BTreeSet::new() });
        Ok(())
    }

    /// Says whether signatures count no more at and below a name.
    ///
    /// # Errors
    ///
    /// The text is none of a file, or there is too much of it.
    pub fn insecure(&mut self, name: &str, is_insecure: bool) -> Result<(), ChangeError> {
        self.note(&[name])?;
        self.insecure.insert(bare(name), is_insecure);
        Ok(())
    }

    /// Says which servers a zone has; without any, it is found as usual.
    ///
    /// # Errors
    ///
    /// The text is none of a file, or there is too much of it.
    pub fn servers(
        &mut self,
        kind: ZoneKind,
        zone: &str,
        servers: Option<ZoneServers>,
    ) -> Result<(), ChangeError> {
        let texts = servers.iter().flat_map(|it| &it.servers).map(String::as_str);
        let texts: Vec<&str> = texts.chain([zone]).collect();
        self.note(&texts)?;
        self.servers.insert((kind, bare(zone)), servers);
        Ok(())
    }

    /// Gives a keyword of `server:` another value.
    ///
    /// # Errors
    ///
    /// There is no such keyword of one value, or it is not read again while the server runs.
    pub fn option(&mut self, name: &str, value: &str) -> Result<(), ChangeError> {
        let row = keywords::rows(Section::Server).iter().find(|row| row.name == name);
        let row = row.filter(|row| row.form.words() == 1).ok_or(ChangeError::Option)?;
        if row.expected(value).is_some() {
            return Err(ChangeError::Option);
        }
        match row.becomes {
            Becomes::Setting if keywords::RUN_TIME.contains(&name) => {}
            Becomes::Setting | Becomes::Partly(_) => return Err(ChangeError::Restart),
            Becomes::Nothing(_) | Becomes::Always(_) | Becomes::Silent(_) => {
                return Err(ChangeError::NoEffect);
            }
        }
        self.note(&[value])?;
        self.options.insert(row.name, value.to_owned());
        Ok(())
    }

    /// Says whether a response policy zone does something.
    ///
    /// # Errors
    ///
    /// The text is none of a file, or there is too much of it.
    pub fn policy_zone(&mut self, name: &str, is_enabled: bool) -> Result<(), ChangeError> {
        self.note(&[name])?;
        match is_enabled {
            true => drop(self.disabled.remove(&bare(name))),
            false => drop(self.disabled.insert(bare(name))),
        }
        Ok(())
    }

    /// Returns whether a response policy zone does nothing at present.
    pub fn is_disabled(&self, name: &str) -> bool {
        self.disabled.contains(&bare(name))
    }

    /// Counts a text, if it is one that a file can have.
    fn note(&mut self, texts: &[&str]) -> Result<(), ChangeError> {
        if texts.iter().any(|text| text.is_empty() || text.chars().any(|c| c.is_control() && c != '\t')) {
            return Err(ChangeError::Text);
        }
        let more = texts.iter().map(|text| text.len()).sum::<usize>();
        if self.octets + more > OCTETS_MAX {
            // What was replaced counted, too.
            self.octets = self.text().len();
        }
        if self.octets + more > OCTETS_MAX {
            return Err(ChangeError::TooMany);
        }
        self.octets += more;
        Ok(())
    }

    /// Returns what was added, in the form of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut scope: Option<&Scope> = None;
        let zones = self.zones.iter().filter_map(|((scope, zone), kind)| {
            Some((scope, format!("local-zone: {} {}", quoted(&name_of(zone)), kind.as_ref()?)))
        });
        let data = self.data.iter().flat_map(|((scope, _), data)| {
            data.added.iter().map(move |record| (scope, format!("local-data: {}", quoted(record))))
        });
        let mut lines: Vec<(&Scope, String)> = zones.chain(data).collect();
        // Those of one view together; zones stay before data.
        lines.sort_by_key(|(scope, _)| *scope);
        for (of, line) in lines {
            if scope != Some(of) {
                match of {
                    None => text.push_str("server:\n"),
                    Some(view) => drop(writeln!(text, "view:\nname: {}", quoted(view))),
                }
                scope = Some(of);
            }
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str("server:\n");
        for (name, _) in self.insecure.iter().filter(|(_, is)| **is) {
            let _ = writeln!(text, "domain-insecure: {}", quoted(name));
        }
        for (name, value) in &self.options {
            let _ = writeln!(text, "{name}: {}", quoted(value));
        }
        for ((kind, zone), servers) in &self.servers {
            let Some(ZoneServers { servers, over_tls, primes }) = servers else { continue };
            let word = kind.word();
            let _ = writeln!(text, "{word}-zone:\nname: {}", quoted(zone));
            // The other program puts each before the others, but keeps the order of its files.
            for server in servers.iter().rev() {
                let form = if crate::facts::is_address(server) { "addr" } else { "host" };
                let _ = writeln!(text, "{word}-{form}: {}", quoted(server));
            }
            if *over_tls {
                let _ = writeln!(text, "{word}-tls-upstream: yes");
            }
            if *primes {
                text.push_str("stub-prime: yes\n");
            }
        }
        text
    }

    /// Returns what was changed, one line for each: what was added in the form of the file, what
    /// was removed behind a minus.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let place =
            |scope: &Scope| scope.as_ref().map_or_else(String::new, |view| format!(" of view {view}"));
        for ((scope, zone), kind) in &self.zones {
            let name = name_of(zone);
            lines.push(match kind {
                Some(kind) => format!("local-zone: {name} {kind}{}", place(scope)),
                None => format!("- local-zone: {name}{}", place(scope)),
            });
        }
        for ((scope, owner), data) in &self.data {
            if data.is_removed {
                lines.push(format!("- local-data: {}{}", name_of(owner), place(scope)));
            }
            lines.extend(data.added.iter().map(|it| format!("local-data: {it}{}", place(scope))));
        }
        for (name, is_insecure) in &self.insecure {
            lines.push(format!("{}domain-insecure: {name}", if *is_insecure { "" } else { "- " }));
        }
        for ((kind, zone), servers) in &self.servers {
            lines.push(match servers {
                Some(servers) => format!("{}-zone: {zone} {}", kind.word(), servers.servers.join(" ")),
                None => format!("- {}-zone: {zone}", kind.word()),
            });
        }
        lines.extend(self.options.iter().map(|(name, value)| format!("{name}: {value}")));
        lines.extend(self.disabled.iter().map(|zone| format!("- rpz: {zone}")));
        lines
    }

    /// Takes out of what files say whatever was removed or replaced.
    pub(crate) fn take_away(&self, found: &mut Statements) {
        if self.is_empty() {
            return;
        }
        found.blocks.retain(|block| match block.section {
            Section::ForwardZone => !self.replaces(ZoneKind::Forward, block),
            Section::StubZone => !self.replaces(ZoneKind::Stub, block),
            Section::Rpz => !block.last("name").is_some_and(|name| self.disabled.contains(&bare(&name.text))),
            _ => true,
        });
        let Statements { blocks, sources, .. } = found;
        for block in blocks {
            let scope = match block.section {
                Section::Server => None,
                Section::View => match block.last("name") {
                    Some(name) => Some(name.text.clone()),
                    None => continue,
                },
                _ => continue,
            };
            let of_scope = self.zones.range((scope.clone(), Key::new())..);
            let of_scope = of_scope.map(|((of, zone), _)| (of, zone)).take_while(|(of, _)| **of == scope);
            let changed: HashSet<String> = of_scope.map(|(_, zone)| name_of(zone)).collect();
            // Which zones there are matters only above names with data.
            let with_data = block.statements.iter().filter_map(owner_of);
            let above: HashSet<Key> = with_data
                .flat_map(|owner| {
                    let owner = key(&owner);
                    ancestors(&owner).map(str::to_owned).collect::<Vec<_>>()
                })
                .collect();
            let names: HashSet<String> = above.iter().map(|zone| name_of(zone)).collect();
            let all = block.zones.iter().flat_map(|lines| lines.statements(sources));
            let all = all.map(|zone| lower_case(zone.name));
            let zones: BTreeSet<Key> =
                all.filter(|name| names.contains(&**name)).map(|name| key(&name)).collect();
            block.statements.retain(|statement| self.keeps(&scope, &zones, statement));
            if changed.is_empty() {
                continue;
            }
            let is_gone = |name: &str| changed.contains(&*lower_case(name));
            let left = std::mem::take(&mut block.zones).into_iter().flat_map(|lines| match lines {
                ZoneLines::One(_) => {
                    let is_gone = lines.statements(sources).any(|zone| is_gone(zone.name));
                    if is_gone { Vec::new() } else { vec![lines] }
                }
                ZoneLines::Many(run) => {
                    run.without(sources, is_gone).into_iter().map(ZoneLines::Many).collect()
                }
            });
            block.zones = left.collect();
        }
    }

    fn replaces(&self, kind: ZoneKind, block: &Block) -> bool {
        block.last("name").is_some_and(|name| self.servers.contains_key(&(kind, bare(&name.text))))
    }

    /// Returns whether a statement still counts.
    fn keeps(&self, scope: &Scope, zones: &BTreeSet<Key>, statement: &Statement) -> bool {
        let text = &statement.word(0).text;
        match statement.row.name {
            "local-zone-tag" | "local-zone-override" => {
                !matches!(self.zones.get(&(scope.clone(), key(text))), Some(None))
            }
            "local-data" | "local-data-ptr" => {
                let owner = key(&owner_of(statement).unwrap_or_default());
                if self.data.get(&(scope.clone(), owner.clone())).is_some_and(|data| data.is_removed) {
                    return false;
                }
                // It went with the zone that was closest to it.
                let closest = ancestors(&owner).find(|zone| {
                    zones.contains(*zone) || self.zones.contains_key(&(scope.clone(), (*zone).to_owned()))
                });
                !closest.is_some_and(|zone| {
                    matches!(self.zones.get(&(scope.clone(), zone.to_owned())), Some(None))
                })
            }
            "domain-insecure" => scope.is_some() || !self.insecure.contains_key(&bare(text)),
            name => scope.is_some() || !self.options.contains_key(name),
        }
    }
}

/// Returns the name that a statement has data of, if it has some.
fn owner_of(statement: &Statement) -> Option<String> {
    match statement.row.name {
        "local-data" => statement.word(0).text.split([' ', '\t']).next().map(str::to_owned),
        "local-data-ptr" => crate::names::reverse_owner(&statement.word(0).text),
        _ => None,
    }
}

/// Returns a name's key, and those of all names above it.
fn ancestors(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |key| key.rfind('.').map(|at| &key[..at]))
}

impl ZoneKind {
    /// Returns what the keywords begin with.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Stub => "stub",
        }
    }
}

/// Returns a text in quotation marks that it does not have.
fn quoted(text: &str) -> String {
    if !text.contains('"') {
        format!("\"{text}\"")
    } else {
        // In data of a record, the apostrophe may stand behind a backslash.
        format!("'{}'", text.replace('\'', "\\'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_and_removing_the_same_leaves_one_entry() {
        let mut changes = Changes::default();
        for number in 0..1000 {
            changes.local_data(None, &format!("a.example A 192.0.2.{}", number % 200)).expect("added");
            changes.remove_local_data(None, "a.example").expect("removed");
        }
        assert_eq!(changes.lines(), ["- local-data: a.example"]);
    }

    #[test]
    fn a_zone_that_goes_takes_its_data_with_it_and_no_other() {
        let mut changes = Changes::default();
        for owner in ["a.example", "b.a.example", "ab.example", "c.example"] {
            changes.local_data(None, &format!("{owner} A 192.0.2.1")).expect("added");
        }
        changes.remove_local_zone(None, "A.example.").expect("removed");
        let lines = changes.lines();
        assert_eq!(
            lines,
            [
                "- local-zone: a.example",
                "local-data: ab.example A 192.0.2.1",
                "local-data: c.example A 192.0.2.1"
            ]
        );
    }

    #[test]
    fn what_no_file_can_have_is_refused() {
        let mut changes = Changes::default();
        assert_eq!(changes.local_zone(None, "a\nserver:", "static"), Err(ChangeError::Text));
        assert_eq!(changes.local_data(None, "a TXT \"\\'\""), Err(ChangeError::Text));
        assert_eq!(changes.local_zone(None, "", "static"), Err(ChangeError::Text));
        assert_eq!(changes.option("prefetch", "maybe"), Err(ChangeError::Option));
        assert_eq!(changes.option("num-threads", "3"), Err(ChangeError::Restart));
        assert!(changes.is_empty(), "{changes:?}");
        assert_eq!(changes.option("prefetch", "yes"), Ok(()));
    }
}
