//! What the files say, for whoever asks by their own words: options, local zones, data, and zones
//! that are found in ways of their own.

mod printed;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

use diagnostic::{Diagnostic, FileId, Source, Sources};
use environment::Environment;

use crate::apart::Names;
use crate::changes::{Changes, key};
use crate::keywords::{self, Becomes, Section};
use crate::kind::kind_word;
use crate::names::{bare, reverse_owner};
use crate::read::{Block, Context, Statement, Statements};

/// A zone that is found in a way of its own, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundElsewhere {
    /// Its name, without the dot at its end; the root is a dot.
    pub name: String,
    /// Names and addresses of servers, as the file has them.
    pub servers: Vec<String>,
    /// Of a stub zone: whether its servers are asked who they are.
    pub primes: bool,
    /// Whether signatures do not count there.
    pub is_insecure: bool,
}

/// An `auth-zone` or `rpz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthZone {
    /// Its name, without the dot at its end; the root is a dot.
    pub name: String,
    /// Whether it is a response policy zone.
    pub is_policy: bool,
    /// Its file.
    pub file: Option<PathBuf>,
    /// Whether it comes from other servers.
    pub has_primaries: bool,
}

/// What is to be said of a keyword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// There is no such keyword, or another question answers it.
    Unknown,
    /// Its values, in the order of the file.
    Values(Vec<String>),
}

/// Configuration files with the changes that are laid over them.
#[derive(Debug)]
pub struct Facts {
    found: Statements,
    /// What could not be read of the files.
    unreadable: Vec<Diagnostic>,
}

impl Facts {
    /// Reads what was read before from `sources`, of which the first file is the main one.
    pub fn of(sources: &Sources, changes: &Changes) -> Self {
        let mut again = Sources::new(sources.secret_keys());
        let path = sources.file(FileId(0)).map(|main| main.path.clone()).unwrap_or_default();
        let (environment, mut problems) = (AsLoaded(sources), Vec::new());
        let context = Context {
            sources: &mut again,
            environment: &environment,
            problems: &mut problems,
            names: Names::Kept,
        };
        // It was found when they were read before.
        let unreadable = Vec::new();
        Self { found: crate::statements(&path, context, changes).unwrap_or_default(), unreadable }
    }

    /// Reads `path` from the machine. What is wrong with the file is left out; see
    /// [`Facts::unreadable`].
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn open(path: &Path, environment: &dyn Environment) -> io::Result<Self> {
        Self::read(path, environment, Names::Kept)
    }

    /// Like [`Facts::open`], without the names of local zones that are alike: block lists take no
    /// memory then.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn open_without_lists(path: &Path, environment: &dyn Environment) -> io::Result<Self> {
        Self::read(path, environment, Names::Forgotten)
    }

    fn read(path: &Path, environment: &dyn Environment, names: Names) -> io::Result<Self> {
        let input = environment.open(path, crate::OCTETS_MAX as u64)?;
        let (mut sources, mut problems) = (Sources::new(&[]), Vec::new());
        let context = Context { sources: &mut sources, environment, problems: &mut problems, names };
        let (found, _) = crate::read::read(path, input, context, Statements::default());
        Ok(Self { found, unreadable: diagnostic::diagnostics(problems, &sources) })
    }

    /// Returns what could not be read of the files that [`Facts::open`] has read: unknown keywords,
    /// quotation marks without their second, files to include that are not there. What values mean
    /// was not looked at.
    pub fn unreadable(&self) -> &[Diagnostic] {
        &self.unreadable
    }

    /// Returns the directory that names of files are relative to.
    pub fn directory(&self) -> &Path {
        &self.found.directory
    }

    /// Returns the values of a keyword of `server:` or `remote-control:`; its default if it is not
    /// written.
    pub fn option(&self, name: &str) -> OptionValue {
        for section in [Section::Server, Section::RemoteControl] {
            let Some(row) = keywords::rows(section).iter().find(|row| row.name == name) else { continue };
            if name == "local-zone" {
                let zones = self.blocks(section).flat_map(|block| self.found.zones(block));
                return OptionValue::Values(zones.map(|it| format!("{} {}", it.name, it.kind)).collect());
            }
            let blocks = self.blocks(section);
            let said: Vec<&Statement> = blocks.flat_map(|block| block.with(name)).collect();
            let text = |statement: &&Statement| {
                let words: Vec<&str> = statement.words.iter().map(|word| &*word.text).collect();
                words.join(" ")
            };
            if LISTS.contains(&name) || row.form.words() > 1 {
                return OptionValue::Values(said.iter().map(text).collect());
            }
            let value = said.last().map_or_else(|| row.default.to_owned(), text);
            return OptionValue::Values(vec![value]);
        }
        OptionValue::Unknown
    }

    /// Returns a keyword's one value; empty if it has none.
    pub fn value(&self, name: &str) -> String {
        match self.option(name) {
            OptionValue::Values(values) => values.into_iter().next_back().unwrap_or_default(),
            OptionValue::Unknown => String::new(),
        }
    }

    /// Returns whether a keyword is written.
    pub fn says(&self, name: &str) -> bool {
        let blocks = [Section::Server, Section::RemoteControl].into_iter().flat_map(|it| self.blocks(it));
        let mut blocks = blocks.filter(|block| name != "local-zone" || !block.zones.is_empty());
        match name {
            "local-zone" => blocks.next().is_some(),
            _ => blocks.flat_map(|block| block.with(name)).next().is_some(),
        }
    }

    /// Returns whether a keyword's value is yes.
    pub fn is(&self, name: &str) -> bool {
        self.value(name) == "yes"
    }

    /// Returns why a keyword does nothing here, if it does nothing.
    pub fn without_effect(name: &str) -> Option<&'static str> {
        let row = keywords::rows(Section::Server).iter().find(|row| row.name == name)?;
        match row.becomes {
            Becomes::Nothing(reason) | Becomes::Always(reason) | Becomes::Silent(reason) => Some(reason),
            Becomes::Setting | Becomes::Partly(_) => None,
        }
    }

    /// Returns whether there is a view of this name.
    pub fn has_view(&self, view: &str) -> bool {
        self.view(view).next().is_some()
    }

    /// Returns local zones with their types: those of `server:`, or of a view. With those of
    /// `server:` are the zones that data makes, as data outside of all zones is one of its own.
    pub fn local_zones(&self, view: Option<&str>) -> Vec<(String, String)> {
        let mut zones: Vec<(String, String)> = Vec::new();
        for zone in self.blocks_of(view).into_iter().flat_map(|block| self.found.zones(block)) {
            let kind = kind_word(zone.kind).unwrap_or(zone.kind).to_owned();
            zones.push((bare(zone.name), kind));
        }
        zones.sort_by_cached_key(|(name, _)| key(name));
        // Of several the last one counts.
        let mut last: Vec<(String, String)> = Vec::with_capacity(zones.len());
        for zone in zones {
            match last.last_mut() {
                Some(known) if known.0 == zone.0 => *known = zone,
                _ => last.push(zone),
            }
        }
        let names: BTreeSet<String> = last.iter().map(|(name, _)| name.clone()).collect();
        let mut implied = BTreeSet::new();
        let mut owners: Vec<String> = self.local_records(view).into_iter().map(|(owner, _)| owner).collect();
        owners.sort_by_cached_key(|owner| key(owner));
        for owner in owners {
            let is_covered = above(&owner).any(|name| names.contains(name) || implied.contains(name));
            if !is_covered {
                implied.insert(owner);
            }
        }
        last.extend(implied.into_iter().map(|name| (name, "transparent".to_owned())));
        last.sort_by_cached_key(|(name, _)| key(name));
        last
    }

    /// Returns local zones that there are although the files have none of their names, with their
    /// types: for all clients, or for those of a view.
    pub fn built_in_zones(&self, view: Option<&str>) -> Vec<(String, String)> {
        let blocks = self.blocks_of(view);
        let is_own = |block: &&Block| {
            let data = ["local-data", "local-data-ptr"];
            !block.zones.is_empty() || block.statements.iter().any(|it| data.contains(&it.row.name))
        };
        let is_first = |block: &&Block| block.last("view-first").is_some_and(|word| word.text == "yes");
        // Who has nothing of his own, or looks at the zones of all, too, finds them there.
        if view.is_some() && (!blocks.iter().any(is_own) || blocks.iter().any(is_first)) {
            return Vec::new();
        }
        let named: BTreeSet<String> =
            blocks.iter().flat_map(|block| self.found.zones(block)).map(|zone| bare(zone.name)).collect();
        let lan: Vec<String> =
            if self.is("unblock-lan-zones") { Vec::new() } else { crate::names::lan_zones().collect() };
        let all = crate::names::special_zones().chain(lan).filter(|name| !named.contains(name));
        let kind = |name: &str| if name == "localhost" { "redirect" } else { "static" };
        all.map(|name| (kind(&name).to_owned(), name)).map(|(kind, name)| (name, kind)).collect()
    }

    /// Returns the data of the zones that are there without being written, in the form of
    /// [`local_data`](Self::local_data).
    pub fn built_in_data(&self, view: Option<&str>) -> Vec<String> {
        const NS: &str = "NS\tlocalhost.";
        const PTR: &str = "PTR\tlocalhost.";
        const SOA: &str = "SOA\tlocalhost. nobody.invalid. 1 3600 1200 604800 10800";
        let mut lines = Vec::new();
        for (zone, _) in self.built_in_zones(view) {
            let of_apex: &[&str] = match &*zone {
                "localhost" => &["AAAA\t::1", "A\t127.0.0.1", SOA, NS],
                name if name.ends_with("ip6.arpa") && name.starts_with("1.0.") => &[PTR, NS, SOA],
                _ => &[NS, SOA],
            };
            let owner = dotted(&zone);
            lines.extend(of_apex.iter().map(|data| format!("{owner}\t10800\tIN\t{data}")));
            if zone == "127.in-addr.arpa" {
                lines.push(format!("1.0.0.{owner}\t10800\tIN\t{PTR}"));
            }
        }
        lines
    }

    /// Returns local data: owner, TTL, class, type and data, with tabs between them. They are
    /// sorted as texts, so that the records of one owner have an order.
    pub fn local_data(&self, view: Option<&str>) -> Vec<String> {
        let mut lines: Vec<String> = self.local_records(view).into_iter().map(|(_, line)| line).collect();
        lines.sort_unstable();
        lines
    }

    fn local_records(&self, view: Option<&str>) -> Vec<(String, String)> {
        let line = |statement: &Statement| {
            let text = &statement.word(0).text;
            match statement.row.name {
                "local-data" => {
                    let (owner, ttl, rtype, data) = crate::lower::record_parts(text)?;
                    if crate::lower::is_other_class(&rtype) {
                        return None;
                    }
                    Some((owner.clone(), format!("{}\t{ttl}\tIN\t{rtype}\t{data}", dotted(&owner))))
                }
                "local-data-ptr" => {
                    let owner = reverse_owner(text)?;
                    let parts: Vec<&str> = text.split_whitespace().collect();
                    let (ttl, name) = match *parts.as_slice() {
                        [_, name] => ("3600", name),
                        [_, ttl, name] => (ttl, name),
                        _ => return None,
                    };
                    let line = format!("{}\t{ttl}\tIN\tPTR\t{}", dotted(&owner), dotted(&bare(name)));
                    Some((owner, line))
                }
                _ => None,
            }
        };
        self.statements_of(view).filter_map(line).collect()
    }

    /// Returns the zones at and below which signatures do not count.
    pub fn insecure(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .server()
            .filter(|it| it.row.name == "domain-insecure")
            .map(|it| bare(&it.word(0).text))
            .collect();
        names.sort_by_cached_key(|name| key(name));
        names.dedup();
        names
    }

    /// Returns forward zones; of several of one name the last.
    pub fn forwards(&self) -> Vec<FoundElsewhere> {
        self.elsewhere(Section::ForwardZone, ["forward-host", "forward-addr"])
    }

    /// Returns stub zones; of several of one name the last.
    pub fn stubs(&self) -> Vec<FoundElsewhere> {
        self.elsewhere(Section::StubZone, ["stub-host", "stub-addr"])
    }

    fn elsewhere(&self, section: Section, keywords: [&str; 2]) -> Vec<FoundElsewhere> {
        let insecure = self.insecure();
        let mut all: Vec<FoundElsewhere> = Vec::new();
        for block in self.blocks(section) {
            let Some(name) = block.with("name").last().map(|it| bare(&it.word(0).text)) else { continue };
            // Names come before addresses.
            let servers = keywords.iter().flat_map(|word| block.with(word));
            let servers = servers.map(|it| it.word(0).text.clone()).collect();
            let primes = block.with("stub-prime").last().is_some_and(|it| it.word(0).text == "yes");
            all.retain(|known| known.name != name);
            let is_insecure = insecure.contains(&name);
            all.push(FoundElsewhere { name, servers, primes, is_insecure });
        }
        all.sort_by_cached_key(|zone| key(&zone.name));
        all
    }

    /// Returns authority zones and response policy zones, in the order of the file.
    pub fn auth_zones(&self) -> Vec<AuthZone> {
        let blocks = self.found.blocks.iter();
        let of = blocks.filter(|block| matches!(block.section, Section::AuthZone | Section::Rpz));
        let zone = |block: &Block| {
            let name = bare(&block.with("name").last()?.word(0).text);
            let file = block.with("zonefile").last().map(|it| &it.word(0).text);
            let file = file.filter(|file| !file.is_empty()).map(|file| self.found.directory.join(file));
            let has_primaries =
                ["primary", "master", "url"].iter().any(|word| block.with(word).next().is_some());
            Some(AuthZone { name, is_policy: block.section == Section::Rpz, file, has_primaries })
        };
        of.filter_map(zone).collect()
    }

    fn blocks(&self, section: Section) -> impl Iterator<Item = &Block> {
        self.found.blocks.iter().filter(move |block| block.section == section)
    }

    fn server(&self) -> impl Iterator<Item = &Statement> {
        self.blocks(Section::Server).flat_map(|block| &block.statements)
    }

    fn view(&self, view: &str) -> impl Iterator<Item = &Block> {
        let is_it = move |block: &&Block| {
            block.section == Section::View
                && block.with("name").last().is_some_and(|name| name.word(0).text == view)
        };
        self.found.blocks.iter().filter(is_it)
    }

    fn statements_of(&self, view: Option<&str>) -> impl Iterator<Item = &Statement> {
        self.blocks_of(view).into_iter().flat_map(|block| &block.statements)
    }

    /// Returns the sections of `server:`, or of a view.
    fn blocks_of(&self, view: Option<&str>) -> Vec<&Block> {
        match view {
            None => self.blocks(Section::Server).collect(),
            Some(view) => self.view(view).collect(),
        }
    }
}

/// Keywords of which each adds to those before it.
const LISTS: [&str; 26] = [
    "access-control-view",
    "auto-trust-anchor-file",
    "caps-exempt",
    "caps-whitelist",
    "client-subnet-zone",
    "control-interface",
    "define-tag",
    "dns64-ignore-aaaa",
    "do-not-query-address",
    "domain-insecure",
    "interface",
    "ip-address",
    "ipsecmod-allow",
    "ipsecmod-whitelist",
    "outgoing-interface",
    "outgoing-port-avoid",
    "outgoing-port-permit",
    "private-address",
    "private-domain",
    "proxy-protocol-port",
    "root-hints",
    "send-client-subnet",
    "tls-additional-port",
    "tls-session-ticket-keys",
    "trust-anchor",
    "trust-anchor-file",
];

/// The files as they were read, in the place of what is on disk now.
pub(crate) struct AsLoaded<'a>(pub(crate) &'a Sources);

impl AsLoaded<'_> {
    fn find(&self, path: &Path) -> Option<&Source> {
        self.0.files().find(|source| source.path == path)
    }
}

/// A file that was read, to be read again.
struct Pieces<'s> {
    rest: Box<dyn Iterator<Item = Cow<'s, str>> + 's>,
    piece: Cow<'s, str>,
    at: usize,
}

impl io::Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while count < into.len() {
            let left = self.piece.as_bytes().get(self.at..).unwrap_or(&[]);
            if left.is_empty() {
                let Some(next) = self.rest.next() else { break };
                (self.piece, self.at) = (next, 0);
                continue;
            }
            let len = left.len().min(into.len() - count);
            if let (Some(into), Some(left)) = (into.get_mut(count..count + len), left.get(..len)) {
                into.copy_from_slice(left);
            }
            (count, self.at) = (count + len, self.at + len);
        }
        Ok(count)
    }
}

impl Environment for AsLoaded<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        environment::System.variable(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let source = self.find(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(source.pieces().collect::<String>().into_bytes())
    }

    fn open(&self, path: &Path, _: u64) -> io::Result<Box<dyn io::Read + '_>> {
        let source = self.find(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Pieces { rest: Box::new(source.pieces()), piece: Cow::Borrowed(""), at: 0 }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let inside = |source: &Source| {
            let rest = source.path.strip_prefix(directory).ok()?;
            Some(rest.components().next()?.as_os_str().to_string_lossy().into_owned())
        };
        let mut names: Vec<String> = self.0.files().filter_map(inside).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn resolv_conf(&self) -> PathBuf {
        PathBuf::new()
    }

    fn hosts_file(&self) -> PathBuf {
        PathBuf::new()
    }

    fn processors(&self) -> usize {
        1
    }

    fn random(&self, octets: &mut [u8]) {
        octets.fill(0);
    }
}

impl Block {
    /// Returns the statements with a keyword.
    fn with<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Statement> {
        self.statements.iter().filter(move |statement| statement.row.name == name)
    }
}

/// Returns a name, and those of all zones that enclose it; the root last.
fn above(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| parent(name)).chain(["."])
}

fn parent(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, parent)| parent).filter(|parent| !parent.is_empty())
}

/// Returns a name with the dot at its end.
fn dotted(name: &str) -> String {
    if name == "." { ".".to_owned() } else { format!("{name}.") }
}

/// Returns whether a server is written as an address.
pub fn is_address(server: &str) -> bool {
    let host = server.split(['@', '#']).next().unwrap_or("");
    match host.split_once('%') {
        Some((host, device)) => !device.is_empty() && host.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<IpAddr>().is_ok(),
    }
}
