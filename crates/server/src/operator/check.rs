//! Settings that somebody sends are checked as `gannet check` checks files, and not used.

use std::io;
use std::path::{Path, PathBuf};

use control::Caller;
use control::api::{self, SettingsLanguage};
use diagnostic::{Diagnostic, Severity};
use environment::{Environment, System};

use super::configuration::apart;
use super::{Operator, OperatorError};
use crate::compile::check;

/// Checks at once.
const CHECKS_MAX: usize = 2;
/// Characters of what diagnostics call a text.
const NAME_CHARS_MAX: usize = 200;
/// What is said of files that are named by who may not have them read.
const NOT_READ: &str = "not read for settings that are sent by others than admins";

impl Operator {
    /// Returns everything that is wrong with settings that somebody sent.
    ///
    /// # Errors
    ///
    /// So many are being checked that this has to wait.
    pub fn check(&self, asked: &api::Check, caller: &Caller) -> Result<Vec<api::Diagnostic>, OperatorError> {
        let _place = super::place(&self.checks, CHECKS_MAX, "checks")?;
        let usual = match asked.language {
            SettingsLanguage::Yaml => "settings",
            SettingsLanguage::Unbound => "unbound.conf",
        };
        let name = asked.name.as_deref().unwrap_or_default();
        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
        let name = PathBuf::from(if name.is_empty() { usual.to_owned() } else { name });
        let found = apart(|| {
            let sent = Sent { name: &name, text: &asked.text, reads_files: caller.may_read_the_machine() };
            let loaded = match asked.language {
                SettingsLanguage::Yaml => settings::load_text(&name, &asked.text, &sent),
                SettingsLanguage::Unbound => settings::load_unbound_in(&name, &sent),
            };
            let mut found = loaded
                .and_then(|loaded| {
                    let warnings = check(&loaded, &sent)?;
                    Ok([loaded.warnings, warnings].concat())
                })
                .unwrap_or_else(|mistakes| mistakes);
            found.iter_mut().for_each(soften);
            found
        });
        Ok(found.iter().map(api::Diagnostic::from).collect())
    }
}

/// Makes a warning of what is said of a file that was not looked at: it may be right.
fn soften(found: &mut Diagnostic) {
    if found.message.contains(NOT_READ) {
        found.severity = Severity::Warning;
    }
}

/// The machine, for settings that somebody sent.
///
/// What a file holds can be in a message about it, and so can a variable. Only an admin without a
/// scope, who may set everything and so may see that anyway, has files read.
struct Sent<'a> {
    /// What stands for the text.
    name: &'a Path,
    text: &'a str,
    reads_files: bool,
}

impl Sent<'_> {
    fn allowed(&self) -> io::Result<()> {
        if self.reads_files { Ok(()) } else { Err(io::Error::new(io::ErrorKind::PermissionDenied, NOT_READ)) }
    }
}

impl Environment for Sent<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        System.variable(name).filter(|_| self.reads_files)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == self.name {
            return Ok(self.text.as_bytes().to_vec());
        }
        self.allowed()?;
        System.read(path)
    }

    fn read_list(&self, path: &Path, octets_max: u64) -> io::Result<Vec<u8>> {
        self.allowed()?;
        System.read_list(path, octets_max)
    }

    fn open(&self, path: &Path, octets_max: u64) -> io::Result<Box<dyn io::Read + '_>> {
        if path == self.name {
            return Ok(Box::new(self.text.as_bytes()));
        }
        self.allowed()?;
        System.open(path, octets_max)
    }

    fn stamp(&self, path: &Path) -> io::Result<u64> {
        self.allowed()?;
        System.stamp(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.allowed()?;
        System.list(directory)
    }

    fn may_include(&self) -> bool {
        false
    }

    fn resolv_conf(&self) -> PathBuf {
        System.resolv_conf()
    }

    fn hosts_file(&self) -> PathBuf {
        System.hosts_file()
    }

    fn is_open_to_all(&self, path: &Path) -> bool {
        self.reads_files && System.is_open_to_all(path)
    }

    fn processors(&self) -> usize {
        System.processors()
    }

    fn random(&self, octets: &mut [u8]) {
        System.random(octets);
    }
}
