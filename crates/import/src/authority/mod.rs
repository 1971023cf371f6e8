//! Configurations of servers that are authoritative for zones: Knot, NSD, BIND and erldns, turned
//! into ours.
//!
//! Never leaves anything out silently: a setting that protects or changes answers and that Gannet
//! lacks is an error at its line; one that only tunes the other program is a warning.

mod bind;
mod erldns;
mod fields;
mod knot;
mod made;
mod nsd;
pub(super) mod prefixes;
mod templates;

use std::path::{Path, PathBuf};

use diagnostic::{At, Diagnostic, FileId, Problem, Sources, Span, diagnostics};
use environment::Environment;
use environment::FILE_OCTETS_MAX;
use settings::load::matches;

use super::Imported;

use self::made::Made;

/// Files of one configuration, so that a circle or a tree of includes ends.
const FILES_MAX: usize = 256;
/// How deep files may include files.
const DEPTH_MAX: usize = 16;

/// Which server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameServer {
    /// Knot DNS 3.
    Knot,
    /// NSD 4.
    Nsd,
    /// BIND 9.
    Bind,
    /// erldns.
    Erldns,
}

impl NameServer {
    /// Returns the name of the program.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Knot => "Knot",
            Self::Nsd => "NSD",
            Self::Bind => "BIND",
            Self::Erldns => "erldns",
        }
    }
}

/// Turns the configuration that begins in the file `path` into ours; errors are all places that
/// cannot be expressed.
pub fn name_server(
    server: NameServer,
    path: &Path,
    environment: &dyn Environment,
) -> Result<Imported, Vec<Diagnostic>> {
    let mut files = Files::new(path, environment);
    let mut made = Made::default();
    if let Some((file, text)) = files.open(path, None) {
        match server {
            NameServer::Knot => knot::import(&mut files, &mut made, file, &text),
            NameServer::Nsd => nsd::import(&mut files, &mut made, file, &text),
            NameServer::Bind => bind::import(&mut files, &mut made, file, &text),
            NameServer::Erldns => erldns::import(&mut files, &mut made, file, &text),
        }
    }
    let text = made.document(path, server);
    if !files.problems.iter().any(Problem::is_error) {
        let refused = super::verify::verify(path, &text, environment, &files.sources, &|_, _| None);
        files.problems.extend(refused);
    }
    let failed = files.problems.iter().any(Problem::is_error);
    let mut found = diagnostics(files.problems, &files.sources);
    // What a template says is looked at for every zone of it.
    let mut said = std::collections::BTreeSet::new();
    found.retain(|found| said.insert(found.line()));
    if failed { Err(found) } else { Ok(Imported { text, warnings: found }) }
}

/// Files that are read, and what is wrong in them.
pub(super) struct Files<'a> {
    pub(super) environment: &'a dyn Environment,
    /// Where the first one is.
    pub(super) directory: PathBuf,
    pub(super) sources: Sources,
    pub(super) problems: Vec<Problem>,
    read: usize,
}

impl<'a> Files<'a> {
    pub(super) fn new(path: &Path, environment: &'a dyn Environment) -> Self {
        Self {
            environment,
            directory: path.parent().unwrap_or(Path::new("")).to_owned(),
            sources: Sources::new(&settings::secret_keys()),
            problems: Vec::new(),
            read: 0,
        }
    }

    /// Reads a file that `asked` names; says so if it cannot be read.
    pub(super) fn open(&mut self, path: &Path, asked: Option<Span>) -> Option<(FileId, String)> {
        let text = match self.environment.read(path) {
            Ok(octets) if octets.len() > FILE_OCTETS_MAX => {
                Err(format!("larger than {} MiB", FILE_OCTETS_MAX >> 20))
            }
            Ok(octets) => String::from_utf8(octets).map_err(|_| "not UTF-8 text".to_owned()),
            Err(error) => Err(format!("cannot read it: {}", diagnostic::io_text(&error))),
        };
        match (text, asked) {
            (Ok(text), _) => {
                self.read += 1;
                Some((self.sources.add(path, text.clone()), text))
            }
            (Err(message), Some(asked)) => {
                self.wrong(asked, format!("\"{}\": {message}", path.display()));
                None
            }
            (Err(message), None) => {
                let file = self.sources.add(path, String::new());
                self.problems.push(Problem::of_file(file, message));
                None
            }
        }
    }

    /// Returns the files that an include means, a pattern or not, relative to `directory`.
    pub(super) fn included(&mut self, pattern: &At<String>, directory: &Path, depth: usize) -> Vec<PathBuf> {
        let path = directory.join(&pattern.value);
        if depth >= DEPTH_MAX || self.read >= FILES_MAX {
            self.wrong(
                pattern.span,
                format!("files include files more than {DEPTH_MAX} levels deep, or too many"),
            );
            return Vec::new();
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let last = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !last.contains(['*', '?']) {
            return vec![path];
        }
        match self.environment.list(&folder) {
            Ok(mut names) => {
                names.retain(|name| matches(&last, name));
                names.sort();
                names.into_iter().map(|name| folder.join(name)).collect()
            }
            Err(error) => {
                let message = format!("\"{}\": {}", folder.display(), diagnostic::io_text(&error));
                self.wrong(pattern.span, message);
                Vec::new()
            }
        }
    }

    /// Returns a path as the new file names it: relative ones are relative to where the first file
    /// is.
    pub(super) fn beside(&self, path: &str) -> String {
        self.directory.join(path).display().to_string()
    }

    pub(super) fn wrong(&mut self, at: Span, message: impl Into<String>) {
        self.problems.push(Problem::error(at, message));
    }

    pub(super) fn warn(&mut self, at: Span, message: impl Into<String>) {
        self.problems.push(Problem::warning(at, message));
    }
}

/// Another server, in the words of `primaries` and `notify`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Peer {
    address: std::net::SocketAddr,
    key: Option<String>,
    /// If it is spoken to over TLS, what it has to prove.
    tls: Option<PeerTls>,
}

/// What a server proves over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PeerTls {
    name: Option<String>,
    pins: Vec<String>,
    roots: Option<String>,
    /// Our own certificate and its key.
    certificate: Option<(String, String)>,
}

impl Peer {
    /// Returns it as our file says it.
    fn text(&self) -> String {
        let usual = if self.tls.is_some() { 853 } else { 53 };
        let mut text = if self.tls.is_some() { "tls://".to_owned() } else { String::new() };
        text += &match (self.address.port() == usual, self.address, self.tls.is_some()) {
            (true, std::net::SocketAddr::V6(at), true) => format!("[{}]", at.ip()),
            (true, at, _) => at.ip().to_string(),
            (false, at, _) => at.to_string(),
        };
        if let Some(tls) = &self.tls {
            if let Some(name) = &tls.name {
                text += &format!("#{name}");
            }
            for pin in &tls.pins {
                text += &format!(" pin {pin}");
            }
            if let Some(roots) = &tls.roots {
                text += &format!(" roots {roots}");
            }
            if let Some((certificate, key)) = &tls.certificate {
                text += &format!(" certificate {certificate} private-key {key}");
            }
        }
        if let Some(key) = &self.key {
            text += &format!(" key {key}");
        }
        text
    }
}

/// Who may do something, in the words of `transfer`, `update` and `notify-from`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Who {
    /// Addresses; none at all means any.
    from: Vec<wire::Prefix>,
    key: Option<String>,
    needs_tls: bool,
    /// Hosts one of which its certificate has to be for.
    hosts: Vec<String>,
    /// Keys one of which its certificate has to have.
    pins: Vec<String>,
}

impl Who {
    /// Returns who a server is that comes from its own address and proves what it proves when it is
    /// asked.
    fn of_peer(peer: &Peer) -> Self {
        let from = vec![wire::Prefix::new(peer.address.ip(), u8::MAX)];
        let (hosts, pins) = match &peer.tls {
            Some(tls) => (tls.name.clone().into_iter().collect(), tls.pins.clone()),
            None => (Vec::new(), Vec::new()),
        };
        Self { from, key: peer.key.clone(), needs_tls: peer.tls.is_some(), hosts, pins }
    }

    /// Returns it as our file says it.
    fn text(&self) -> String {
        let mut rest = String::new();
        if let Some(key) = &self.key {
            rest += &format!(" key {key}");
        }
        if self.needs_tls && self.hosts.is_empty() && self.pins.is_empty() {
            rest += " tls";
        }
        for host in &self.hosts {
            rest += &format!(" tls-name {host}");
        }
        for pin in &self.pins {
            rest += &format!(" tls-pin {pin}");
        }
        if self.from.is_empty() {
            return if rest.is_empty() { "any".to_owned() } else { rest.trim_start().to_owned() };
        }
        let from: Vec<String> = self.from.iter().map(|prefix| prefixes::text(*prefix)).collect();
        from.join(" ") + &rest
    }
}
