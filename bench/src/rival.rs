//! A server under test: one small TOML file says how to start it and how it is set up for each
//! scenario.
//!
//! Adding one needs no other change than the file in `bench/rivals/`.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::probe::Kind;
use crate::rules::{RuleSet, Rules};
use crate::scenario::Network;

/// A rival's file. Every text may hold `{{variables}}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rival {
    /// What the report calls it.
    pub name: String,
    /// The program, looked up in PATH; `{{self}}` is this tool.
    pub program: String,
    /// One line about what it is and how many threads it is given.
    pub about: String,
    /// The server whose program it is, set up in another way. A variant is shown, but does not
    /// count as a server.
    #[serde(default)]
    pub variant_of: Option<String>,
    /// The server whose file says all that this one does not say, in the same directory.
    #[serde(default)]
    pub extends: Option<String>,
    /// The scenarios, or families of them, that it is for; all of them if there are none.
    #[serde(default)]
    pub only: Vec<String>,
    /// How answers are judged.
    #[serde(default)]
    pub kind: KindName,
    /// Where it can be measured.
    #[serde(default)]
    pub network: Networks,
    /// Arguments that make it print its version.
    #[serde(default)]
    pub version: Vec<String>,
    /// Arguments that make it serve in the foreground.
    pub start: Vec<String>,
    /// A command of this tool that starts the program, with its arguments; what it starts follows.
    #[serde(default)]
    pub through: Vec<String>,
    /// How it is made to read its configuration again; absent if it cannot.
    pub reload: Option<Reload>,
    /// Commands that add `{{zone}}` while it runs, one after the other; absent if it cannot.
    /// `{{programs}}` is the directory of the server's program.
    #[serde(default)]
    pub add_zone: Vec<Vec<String>>,
    /// Environment variables; their values may hold `{{variables}}`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Where it comes from.
    #[serde(default)]
    pub install: Install,
    /// Variables that a setting may give another value.
    #[serde(default)]
    pub defaults: BTreeMap<String, String>,
    /// Configuration files by name, written into `{{dir}}`.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Files by name with a line for each rule of the scenario's rule set, written into `{{dir}}`.
    #[serde(default)]
    pub lists: BTreeMap<String, List>,
    /// For each setting (local, cache, forward, …), the variables that `files` and `start` use. Two
    /// are known here: `remark` goes into the report, and `codes` says which response codes stand
    /// for the scenario's: `5=3 2=5`.
    #[serde(default)]
    pub settings: BTreeMap<String, BTreeMap<String, String>>,
    /// Settings, or single scenarios, that it cannot do, and why; `*` is the reason for all
    /// settings that are named nowhere.
    #[serde(default)]
    pub without: BTreeMap<String, String>,
    /// Zones and hosts files that several servers read: `{{data}}`.
    #[serde(skip)]
    pub data: PathBuf,
}

/// How rules are written, line by line; a kind that is left out is not written. `{}` stands for the
/// rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct List {
    /// What comes first; may hold `{{variables}}`.
    #[serde(default)]
    pub head: String,
    /// A name that matches alone.
    pub full: Option<String>,
    /// A name that matches with everything below it.
    pub suffix: Option<String>,
    /// A regular expression.
    pub regex: Option<String>,
    /// A network.
    pub network: Option<String>,
    /// A record of a zone.
    pub record: Option<String>,
    /// A small zone.
    pub zone: Option<String>,
    /// What comes last; may hold `{{variables}}`.
    #[serde(default)]
    pub tail: String,
}

/// How answers are judged.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindName {
    /// As DNS.
    #[default]
    Dns,
    /// As the query itself.
    Echo,
}

/// Where a server can be measured. Its address is `{{address}}`, on a pair its interface
/// `{{interface}}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Networks {
    /// On loopback.
    #[default]
    Loopback,
    /// Between namespaces: it takes frames from an interface.
    Pair,
    /// Everywhere.
    All,
}

/// How a server is made to read its configuration again.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reload {
    /// By this signal to its process.
    Signal(Signal),
    /// By this command, which ends when it is done; `{{program}}` is the server's own program.
    Command(Vec<String>),
}

/// A signal that asks for a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Signal {
    /// `SIGHUP`.
    #[serde(rename = "HUP")]
    Hangup,
    /// `SIGUSR1`.
    #[serde(rename = "USR1")]
    User1,
    /// `SIGUSR2`.
    #[serde(rename = "USR2")]
    User2,
}

/// A server's files are written: what can be done once it runs.
pub struct Prepared {
    /// Makes it read its configuration again.
    pub reload: Option<Reload>,
    /// Lists of rules as they become, and whose places they then take.
    changed_lists: Vec<(PathBuf, PathBuf)>,
    /// Commands that add a zone, and what they may refer to besides it.
    add_zone: (Vec<Vec<String>>, BTreeMap<String, String>),
}

impl Prepared {
    /// Puts the changed lists of rules into their places, each as a whole.
    pub fn change_rules(&self) -> Result<(), String> {
        for (changed, place) in &self.changed_lists {
            fs::rename(changed, place).map_err(|error| format!("{}: {error}", changed.display()))?;
        }
        Ok(())
    }

    /// Adds a zone by the server's own commands; each is waited for.
    pub fn add_zone(&self, zone: &str) -> Result<(), String> {
        let (commands, known) = &self.add_zone;
        let mut known = known.clone();
        known.insert("zone".to_owned(), zone.to_owned());
        for words in commands {
            let wrong = |error: String| format!("{zone} is not added: {error}");
            let words: Result<Vec<String>, String> = words.iter().map(|word| fill(word, &known)).collect();
            let words = words.map_err(wrong)?;
            let (program, arguments) = words.split_first().ok_or_else(|| wrong("no command".to_owned()))?;
            let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
            let output = output.map_err(|error| wrong(format!("cannot start {program}: {error}")))?;
            if !output.status.success() {
                let said = [output.stdout, output.stderr].concat();
                return Err(wrong(format!(
                    "{program} {}: {}",
                    output.status,
                    String::from_utf8_lossy(&said).trim()
                )));
            }
        }
        Ok(())
    }
}

/// Where a program comes from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Install {
    /// A Debian package, whose newest release is unpacked with its libraries beside what the system
    /// has.
    pub debian: Option<String>,
    /// A Debian package that only works where it is installed: the system's own release.
    pub system: Option<String>,
    /// A Go module with its version.
    pub go: Option<String>,
    /// A crate with its version.
    pub cargo: Option<String>,
}

impl Rival {
    /// Reads all rivals in `directory`, sorted by name.
    pub fn read_all(directory: &Path) -> Result<Vec<Self>, String> {
        let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension() == Some(OsStr::new("toml")));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self, String> {
        let wrong = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
        // What is wrong with a file is shown with the line; only what is put together from two has
        // none.
        let mut rival: Self = match extended(path, &text)? {
            Some(table) => table.try_into().map_err(|error| wrong(&error))?,
            None => toml::from_str(&text).map_err(|error| wrong(&error))?,
        };
        let data = path.with_file_name("data");
        rival.data = std::path::absolute(&data).map_err(|error| format!("{}: {error}", data.display()))?;
        Ok(rival)
    }

    /// Returns the server whose program it is: itself, unless it is a variant.
    pub fn program_name(&self) -> &str {
        self.variant_of.as_deref().unwrap_or(&self.name)
    }

    /// Returns whether it is for the scenario `name`; if not, nothing is to be said of it there.
    pub fn is_for(&self, name: &str) -> bool {
        let is_of = |family: &String| {
            name.strip_prefix(family.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.only.is_empty() || self.only.iter().any(is_of)
    }

    /// Returns how its answers are judged.
    pub const fn kind(&self) -> Kind {
        match self.kind {
            KindName::Dns => Kind::Dns,
            KindName::Echo => Kind::Echo,
        }
    }

    /// Returns why it cannot be measured on `network`, if it cannot.
    pub const fn reason_against_network(&self, network: Network) -> Option<&'static str> {
        match (self.network, network) {
            (Networks::All, _)
            | (Networks::Loopback, Network::Loopback | Network::Internet)
            | (Networks::Pair, Network::Pair) => None,
            (Networks::Loopback, Network::Pair) => Some("is measured on loopback only"),
            (Networks::Pair, Network::Loopback | Network::Internet) => Some("takes frames from an interface"),
        }
    }

    /// Returns why it cannot do the scenario `name`, whose setting it may know.
    pub fn reason_against_scenario(&self, name: &str) -> Option<&str> {
        self.without.get(name).map(String::as_str)
    }

    /// Returns why it is not run with `setting`, if it is not.
    pub fn reason_against(&self, setting: &str) -> Option<&str> {
        if self.settings.contains_key(setting) || matches!(self.kind, KindName::Echo) {
            return None;
        }
        let reason = self.without.get(setting).or_else(|| self.without.get("*"));
        Some(reason.map_or("its file does not name this setting", String::as_str))
    }

    /// Returns what a reader should know of how it is set up.
    pub fn remark(&self, setting: &str) -> Option<&str> {
        self.settings.get(setting)?.get("remark").map(String::as_str)
    }

    /// Returns the response code that stands for each in `setting`.
    pub fn codes(&self, setting: &str) -> Result<[u8; 16], String> {
        let mut codes = std::array::from_fn(|code| code as u8);
        let text = self.settings.get(setting).and_then(|own| own.get("codes"));
        for pair in text.map_or("", String::as_str).split_whitespace() {
            let wrong =
                || format!("{}: setting {setting}: \"{pair}\" is not a pair of response codes", self.name);
            let (from, to) = pair.split_once('=').ok_or_else(wrong)?;
            let from: usize = from.parse().map_err(|_| wrong())?;
            *codes.get_mut(from).ok_or_else(wrong)? = to.parse().map_err(|_| wrong())?;
        }
        Ok(codes)
    }

    /// Returns the environment variable that may give the program's path.
    pub fn variable(&self) -> String {
        format!("GANNET_BENCH_{}", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    /// Finds the program: by the environment variable, `extra` directories, or PATH.
    pub fn find(&self, extra: &[PathBuf]) -> Result<PathBuf, String> {
        if self.program == "{{self}}" {
            return env::current_exe().map_err(|error| format!("cannot find this tool itself: {error}"));
        }
        if let Some(path) = env::var_os(self.variable()).map(PathBuf::from) {
            return if is_program(&path) {
                Ok(path)
            } else {
                Err(format!("{} names {}, which is no program", self.variable(), path.display()))
            };
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let system = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
        extra
            .iter()
            .cloned()
            .chain(env::split_paths(&path))
            .chain(system)
            .map(|directory| directory.join(&self.program))
            .find(|path| is_program(path))
            .ok_or_else(|| {
                format!("no program \"{}\" in PATH, and {} is not set", self.program, self.variable())
            })
    }

    /// Returns the first line in which the program names its version.
    pub fn version_line(&self, program: &Path) -> String {
        if self.version.is_empty() {
            return String::new();
        }
        let output = Command::new(program).args(&self.version).stdin(Stdio::null()).output();
        let Ok(output) = output else { return "unknown".to_owned() };
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        text.lines()
            .map(str::trim)
            .find(|line| line.chars().any(|c| c.is_ascii_digit()))
            .unwrap_or("unknown")
            .to_owned()
    }

    /// Writes the configuration for `setting` into `directory` and returns how to start and reload
    /// it.
    pub fn prepare(
        &self,
        program: &Path,
        setting: &str,
        directory: &Path,
        variables: &BTreeMap<String, String>,
        rules: Option<&Rules>,
    ) -> Result<(Command, Prepared), String> {
        if let Some(reason) = self.reason_against(setting) {
            return Err(format!("{} has no setting \"{setting}\": {reason}", self.name));
        }
        let nothing = BTreeMap::new();
        let own = self.settings.get(setting).unwrap_or(&nothing);
        let mut known = variables.clone();
        known.insert("dir".to_owned(), directory.display().to_string());
        known.insert("data".to_owned(), self.data.display().to_string());
        known.insert("program".to_owned(), program.display().to_string());
        let programs = program.parent().unwrap_or(Path::new("."));
        known.insert("programs".to_owned(), programs.display().to_string());
        // A setting's texts may use the session's variables, and the files both.
        let defaults = self.defaults.iter().filter(|(name, _)| !own.contains_key(*name));
        for (name, text) in own.iter().chain(defaults) {
            let text =
                fill(text, &known).map_err(|error| format!("{}: setting {setting}: {error}", self.name))?;
            known.insert(name.clone(), text);
        }
        for (name, text) in &self.files {
            let text = fill(text, &known).map_err(|error| format!("{}: file {name}: {error}", self.name))?;
            let path = directory.join(name);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let mut changed_lists = Vec::new();
        for ((name, list), rules) in self.lists.iter().flat_map(|list| rules.map(|rules| (list, rules))) {
            let path = directory.join(name);
            let wrong = |error: String| format!("{}: list {name}: {error}", self.name);
            let (head, tail) =
                (fill(&list.head, &known).map_err(wrong)?, fill(&list.tail, &known).map_err(wrong)?);
            let put = |path: &Path, rules: &RuleSet| {
                fs::write(path, list.write(&head, rules, &tail))
                    .map_err(|error| format!("{}: {error}", path.display()))
            };
            put(&path, &rules.first)?;
            if let Some(then) = &rules.then {
                let beside = directory.join(format!("{name}.then"));
                put(&beside, then)?;
                changed_lists.push((beside, path));
            }
        }
        let mut command = match self.through.is_empty() {
            true => Command::new(program),
            false => {
                let this = env::current_exe();
                Command::new(this.map_err(|error| format!("cannot find this tool itself: {error}"))?)
            }
        };
        for word in &self.through {
            command.arg(fill(word, &known).map_err(|error| format!("{}: through: {error}", self.name))?);
        }
        for argument in &self.start {
            let argument =
                fill(argument, &known).map_err(|error| format!("{}: start: {error}", self.name))?;
            command.args(argument.split('\n').filter(|part| !part.is_empty()));
        }
        for (name, value) in &self.environment {
            let value =
                fill(value, &known).map_err(|error| format!("{}: environment: {error}", self.name))?;
            command.env(name, value);
        }
        command.current_dir(directory);
        let reload = match &self.reload {
            Some(Reload::Command(words)) => {
                let words: Result<Vec<String>, String> =
                    words.iter().map(|word| fill(word, &known)).collect();
                Some(Reload::Command(words.map_err(|error| format!("{}: reload: {error}", self.name))?))
            }
            other => other.clone(),
        };
        let add_zone = (self.add_zone.clone(), known);
        Ok((command, Prepared { reload, changed_lists, add_zone }))
    }
}

impl List {
    /// Returns the file's text.
    fn write(&self, head: &str, rules: &RuleSet, tail: &str) -> String {
        let mut out = head.to_owned();
        let kinds = [
            (&self.full, &rules.full),
            (&self.suffix, &rules.suffix),
            (&self.regex, &rules.regex),
            (&self.network, &rules.networks),
            (&self.record, &rules.records),
            (&self.zone, &rules.zones),
        ];
        for (line, rules) in kinds {
            let Some(line) = line else { continue };
            for rule in rules {
                out.push_str(&line.replace("{}", rule));
                out.push('\n');
            }
        }
        out.push_str(tail);
        out
    }
}

/// Returns the table of a file that extends another, with what the other says.
fn extended(path: &Path, text: &str) -> Result<Option<toml::Table>, String> {
    let Ok(own) = text.parse::<toml::Table>() else { return Ok(None) };
    let Some(base) = own.get("extends").and_then(toml::Value::as_str) else { return Ok(None) };
    let path = path.with_file_name(format!("{base}.toml"));
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut whole: toml::Table =
        text.parse().map_err(|error: toml::de::Error| format!("{}: {error}", path.display()))?;
    lay_over(&mut whole, own);
    Ok(Some(whole))
}

/// Puts what `over` says into `table`, tables into tables.
fn lay_over(table: &mut toml::Table, over: toml::Table) {
    for (name, value) in over {
        match (table.get_mut(&name), value) {
            (Some(toml::Value::Table(here)), toml::Value::Table(there)) => lay_over(here, there),
            (_, value) => drop(table.insert(name, value)),
        }
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Replaces each `{{name}}` in `text`.
fn fill(text: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or("\"{{\" without \"}}\"")?;
        let value =
            variables.get(name.trim()).ok_or_else(|| format!("unknown variable \"{}\"", name.trim()))?;
        out.push_str(before);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{self, SCENARIOS};

    #[test]
    fn variables_are_replaced_and_unknown_ones_named() {
        let variables = BTreeMap::from([("port".to_owned(), "5300".to_owned())]);
        assert_eq!(fill("a {{port}} {{ port }} {b}", &variables), Ok("a 5300 5300 {b}".to_owned()));
        assert!(fill("{{prot}}", &variables).unwrap_err().contains("prot"));
    }

    fn all() -> Vec<Rival> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals");
        Rival::read_all(&directory).expect("all files parse")
    }

    #[test]
    fn every_rival_is_set_up_for_every_setting_or_says_why_not() {
        let settings = scenario::settings();
        for rival in all() {
            for setting in rival.settings.keys().chain(rival.without.keys().filter(|name| *name != "*")) {
                let is_scenario = SCENARIOS.iter().any(|scenario| scenario.name == setting);
                assert!(settings.contains(setting.as_str()) || is_scenario, "{} and {setting}", rival.name);
                assert!(
                    !(rival.settings.contains_key(setting) && rival.without.contains_key(setting)),
                    "{} and {setting}",
                    rival.name
                );
                rival.codes(setting).expect("pairs of codes");
            }
            for setting in &settings {
                let named = rival.without.contains_key(*setting) || rival.without.contains_key("*");
                assert!(named || rival.reason_against(setting).is_none(), "{} and {setting}", rival.name);
            }
        }
    }

    #[test]
    fn a_variant_has_the_program_and_the_settings_of_another_server() {
        let rivals = all();
        let find = |name: &str| rivals.iter().find(|rival| rival.name == name).expect("a file");
        for rival in &rivals {
            let base = find(rival.program_name());
            assert!(base.variant_of.is_none(), "{}: a variant of a variant", rival.name);
            assert!(rival.extends.is_none() || rival.program == base.program, "{}", rival.name);
            for family in &rival.only {
                let is_known = SCENARIOS.iter().any(|scenario| rival.is_for(scenario.name));
                assert!(is_known, "{}: {family} is no scenario", rival.name);
            }
        }
        let (asleep, gannet) = (find("gannet-asleep"), find("gannet"));
        assert_eq!(asleep.program_name(), "gannet");
        assert_eq!(asleep.settings, gannet.settings);
        assert_ne!(asleep.defaults, gannet.defaults);
        assert!(asleep.is_for("rate-500") && asleep.is_for("quota-20k") && !asleep.is_for("cache-warm"));
        assert!(gannet.is_for("cache-warm"));
    }

    #[test]
    fn gannet_is_set_up_for_what_is_not_pending() {
        let rivals = all();
        let gannet = rivals.iter().find(|rival| rival.name == "gannet").expect("our own file");
        for scenario in SCENARIOS {
            let reason = gannet.reason_against(scenario.setting);
            assert_eq!(reason.is_some(), scenario.needs.is_some(), "{}: {reason:?}", scenario.name);
        }
    }

    #[test]
    fn rules_are_written_as_a_rival_reads_them() {
        let rules = RuleSet {
            full: vec!["a.example.org".to_owned()],
            suffix: vec!["example.net".to_owned()],
            regex: vec![r".+\.b{2,6}$".to_owned()],
            networks: vec!["192.0.2.0/24".to_owned()],
            ..RuleSet::default()
        };
        let list = List {
            full: Some("full:{}".to_owned()),
            regex: Some("regexp:{}".to_owned()),
            network: Some("{}".to_owned()),
            ..List::default()
        };
        assert_eq!(
            list.write("# all\n", &rules, "# end\n"),
            "# all\nfull:a.example.org\nregexp:.+\\.b{2,6}$\n192.0.2.0/24\n# end\n"
        );
    }
}
