//! A server under test: one small TOML file says how to start it and how it is set up for each scenario.
//!
//! Adding one needs no other change than the file in `bench/rivals/`.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::probe::Kind;

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
    /// How answers are judged.
    #[serde(default)]
    pub kind: KindName,
    /// Arguments that make it print its version.
    #[serde(default)]
    pub version: Vec<String>,
    /// Arguments that make it serve in the foreground.
    pub start: Vec<String>,
    /// How it is made to read its configuration again; absent if it cannot.
    pub reload: Option<Reload>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Where it comes from.
    #[serde(default)]
    pub install: Install,
    /// Configuration files by name, written into `{{dir}}`.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// For each setting (local, cache, forward, race3), the variables that `files` and `start` use.
    pub settings: BTreeMap<String, BTreeMap<String, String>>,
    /// Settings it cannot do, and why.
    #[serde(default)]
    pub without: BTreeMap<String, String>,
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

/// A server's files are written: how to start it, and how to reload it.
pub struct Prepared {
    /// Starts it.
    pub command: Command,
    /// Makes it read its configuration again.
    pub reload: Option<Reload>,
}

/// Where a program comes from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Install {
    /// A Debian package.
    pub debian: Option<String>,
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
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns how its answers are judged.
    pub const fn kind(&self) -> Kind {
        match self.kind {
            KindName::Dns => Kind::Dns,
            KindName::Echo => Kind::Echo,
        }
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

    /// Writes the configuration for `setting` into `directory` and returns how to start and reload it.
    pub fn prepare(
        &self,
        program: &Path,
        setting: &str,
        directory: &Path,
        variables: &BTreeMap<String, String>,
    ) -> Result<Prepared, String> {
        let own = self
            .settings
            .get(setting)
            .ok_or_else(|| format!("{} has no setting \"{setting}\"", self.name))?;
        let mut known = variables.clone();
        known.insert("dir".to_owned(), directory.display().to_string());
        known.insert("program".to_owned(), program.display().to_string());
        // A setting's texts may use the session's variables, and the files both.
        for (name, text) in own {
            let text =
                fill(text, &known).map_err(|error| format!("{}: setting {setting}: {error}", self.name))?;
            known.insert(name.clone(), text);
        }
        for (name, text) in &self.files {
            let text = fill(text, &known).map_err(|error| format!("{}: file {name}: {error}", self.name))?;
            let path = directory.join(name);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let mut command = Command::new(program);
        for argument in &self.start {
            let argument =
                fill(argument, &known).map_err(|error| format!("{}: start: {error}", self.name))?;
            command.args(argument.split('\n').filter(|part| !part.is_empty()));
        }
        command.envs(&self.environment).current_dir(directory);
        let reload = match &self.reload {
            Some(Reload::Command(words)) => {
                let words: Result<Vec<String>, String> =
                    words.iter().map(|word| fill(word, &known)).collect();
                Some(Reload::Command(words.map_err(|error| format!("{}: reload: {error}", self.name))?))
            }
            other => other.clone(),
        };
        Ok(Prepared { command, reload })
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
    use crate::scenario;

    #[test]
    fn variables_are_replaced_and_unknown_ones_named() {
        let variables = BTreeMap::from([("port".to_owned(), "5300".to_owned())]);
        assert_eq!(fill("a {{port}} {{ port }} {b}", &variables), Ok("a 5300 5300 {b}".to_owned()));
        assert!(fill("{{prot}}", &variables).unwrap_err().contains("prot"));
    }

    #[test]
    fn every_rival_is_set_up_for_every_setting_or_says_why_not() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals");
        let rivals = Rival::read_all(&directory).expect("all files parse");
        assert!(rivals.iter().any(|rival| rival.name == "gannet"));
        for rival in rivals {
            for setting in scenario::settings() {
                let has = rival.settings.contains_key(setting);
                assert!(has != rival.without.contains_key(setting), "{} and {setting}", rival.name);
            }
        }
    }
}
