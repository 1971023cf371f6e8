//! Zones that were added while the server ran, so that they are there after a restart.
//!
//! One file, a row of entries as in a journal: a zone and its settings, or a zone that is
//! gone. It only grows, but for being replaced when most of it is about zones that are gone. It is
//! read up to the first entry that is not whole: what follows was never acknowledged.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use wire::{Name, NameBuf};

use crate::disk::{Disk, Folder};
use crate::journal::{entry, replace, split};

/// The file; no zone's files are called so.
const FILE: &str = "added";
/// An entry with a zone and its settings.
const ADDED: u8 = 16;
/// An entry with a zone that is gone.
const REMOVED: u8 = 17;
/// Entries about zones that are gone, beside as many as there are zones, before the file is written
/// anew.
const WASTE_MAX: usize = 1000;

/// The settings of each zone, as at an item of `zones`, by the zones' names in lower case.
pub(crate) type Said = BTreeMap<Vec<u8>, Arc<str>>;

/// The zones that were added.
pub struct Register {
    disk: Arc<dyn Disk>,
    zones: Said,
    /// Entries in the file.
    entries: usize,
    octets: u64,
    /// Whether the next entry may follow the last one.
    is_sound: bool,
    /// Why nothing may be written: there may be zones that are not known here.
    broken: Option<String>,
}

fn folded(apex: Name<'_>) -> Vec<u8> {
    apex.to_folded().as_bytes().to_vec()
}

fn added(key: &[u8], said: &str) -> Vec<u8> {
    entry(ADDED, &[key, said.as_bytes()])
}

impl Register {
    /// Reads what a folder has; what cannot be read is logged, and nothing is written over it.
    pub fn open(folder: &Path) -> Self {
        Self::on(Arc::new(Folder::new(folder)))
    }

    pub(crate) fn on(disk: Arc<dyn Disk>) -> Self {
        let mut register =
            Self { disk, zones: Said::new(), entries: 0, octets: 0, is_sound: false, broken: None };
        match register.disk.read(FILE) {
            Ok(None) => {}
            Ok(Some(octets)) => register.read(&octets),
            Err(error) => {
                tracing::error!(%error, "zones that were added cannot be read");
                register.broken = Some(format!("zones that were added before cannot be read: {error}"));
            }
        }
        register
    }

    fn read(&mut self, octets: &[u8]) {
        let mut rest = octets;
        let mut last: Option<Arc<str>> = None;
        while let Some((kind, said, after)) = split(rest) {
            rest = after;
            self.entries += 1;
            let Ok((apex, said)) = Name::parse(said) else { continue };
            match (kind, std::str::from_utf8(said)) {
                (ADDED, Ok(said)) => {
                    // Many zones have the same said of them.
                    let text = last.filter(|last| **last == *said).unwrap_or_else(|| said.into());
                    last = Some(Arc::clone(&text));
                    self.zones.insert(folded(apex), text);
                }
                (REMOVED, _) => drop(self.zones.remove(&folded(apex))),
                _ => {}
            }
        }
        self.octets = (octets.len() - rest.len()) as u64;
        // Half an entry: whoever asked for it has no reply. The next one writes everything anew.
        self.is_sound = rest.is_empty();
    }

    /// Returns whether no zone was added.
    pub fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }

    /// Returns the settings of each zone.
    pub(crate) const fn zones(&self) -> &Said {
        &self.zones
    }

    /// Adds zones with the same settings; they are there for good when this returns.
    pub(crate) fn add(&mut self, apexes: &[NameBuf], said: &str) -> io::Result<()> {
        let said: Arc<str> = said.into();
        self.change(apexes, Some(&said))
    }

    /// Takes zones out; they are gone for good when this returns.
    pub(crate) fn remove(&mut self, apexes: &[NameBuf]) -> io::Result<()> {
        self.change(apexes, None)
    }

    fn change(&mut self, apexes: &[NameBuf], said: Option<&Arc<str>>) -> io::Result<()> {
        let mut entries = Vec::new();
        let mut before = Vec::with_capacity(apexes.len());
        for apex in apexes {
            let key = folded(apex.as_name());
            let old = match said {
                Some(said) => {
                    entries.extend(added(&key, said));
                    self.zones.insert(key.clone(), Arc::clone(said))
                }
                None => {
                    entries.extend(entry(REMOVED, &[&key]));
                    self.zones.remove(&key)
                }
            };
            before.push((key, old));
        }
        let written = self.write(&entries, apexes.len());
        if written.is_err() {
            for (key, old) in before.into_iter().rev() {
                match old {
                    Some(old) => drop(self.zones.insert(key, old)),
                    None => drop(self.zones.remove(&key)),
                }
            }
        }
        written
    }

    fn write(&mut self, entries: &[u8], count: usize) -> io::Result<()> {
        if let Some(broken) = &self.broken {
            return Err(io::Error::other(broken.clone()));
        }
        if self.is_sound && self.entries + count <= self.zones.len() * 2 + WASTE_MAX {
            // What was written by halves must not have anything behind it.
            self.is_sound = false;
            let appended = self.disk.append(FILE, entries).and_then(|()| self.disk.sync(FILE));
            if let Err(error) = appended {
                // It was refused, so it should not be there after a restart either, if that can be
                // helped.
                let _ = self.disk.cut(FILE, self.octets);
                return Err(error);
            }
            self.entries += count;
            self.octets += entries.len() as u64;
        } else {
            self.is_sound = false;
            let all: Vec<u8> = self.zones.iter().flat_map(|(key, said)| added(key, said)).collect();
            replace(&*self.disk, FILE, &all)?;
            self.entries = self.zones.len();
            self.octets = all.len() as u64;
        }
        self.is_sound = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    fn shown(register: &Register) -> Vec<String> {
        let name = |key: &[u8]| Name::parse(key).expect("a name").0.to_string();
        register.zones().iter().map(|(key, said)| format!("{} {said}", name(key))).collect()
    }

    #[test]
    fn what_is_added_is_there_when_it_is_opened_again() {
        let directory = tempfile::TempDir::new().expect("a temporary directory");
        let folder = directory.path().join("zones");
        let mut register = Register::open(&folder);
        assert!(register.is_empty());
        register.add(&[name("A.example"), name("b.example")], "like: x").expect("a disk");
        register.add(&[name("c.example")], "file: c").expect("a disk");
        register.remove(&[name("a.example")]).expect("a disk");
        register.add(&[name("c.example")], "").expect("a disk");
        let again = Register::open(&folder);
        assert_eq!(shown(&again), ["b.example. like: x", "c.example. "]);
        assert_eq!(shown(&register), shown(&again));
    }

    #[test]
    fn the_file_does_not_grow_for_ever() {
        let directory = tempfile::TempDir::new().expect("a temporary directory");
        let mut register = Register::open(directory.path());
        let apex = [name("a.example")];
        for _ in 0..2 * WASTE_MAX {
            register.add(&apex, "").expect("a disk");
            register.remove(&apex).expect("a disk");
            assert!(register.entries <= WASTE_MAX + 2);
        }
        assert!(Register::open(directory.path()).is_empty());
    }

    #[test]
    fn nothing_is_written_over_what_cannot_be_read() {
        let directory = tempfile::TempDir::new().expect("a temporary directory");
        std::fs::create_dir(directory.path().join(FILE)).expect("a folder");
        let mut register = Register::open(directory.path());
        let error = register.add(&[name("a.example")], "").expect_err("there may be others");
        assert!(error.to_string().starts_with("zones that were added before cannot be read"), "{error}");
        assert!(register.is_empty());
    }
}
