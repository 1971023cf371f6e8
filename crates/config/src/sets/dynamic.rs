//! The dynamic parts of sets: what keeps them over reloads and restarts.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use sets::{DynamicAddresses, DynamicNames};

use super::Workshop;
use crate::jobs::Learned;
use crate::settings::{DynamicKind, DynamicSet};
use crate::values;

/// Octets of a file that keeps a dynamic set: enough for ten million names.
const FILE_OCTETS_MAX: u64 = 1 << 30;

/// The dynamic part of a set.
#[derive(Clone)]
pub struct Dynamic {
    /// What it holds.
    pub handle: DynamicHandle,
    /// The file that keeps it over restarts.
    pub file: Option<PathBuf>,
    limit: u32,
    ttl: Option<u32>,
}

/// What a dynamic set holds.
#[derive(Clone)]
pub enum DynamicHandle {
    /// Names, each with those below it.
    Names(Arc<DynamicNames>),
    /// Addresses and prefixes.
    Addresses(Arc<DynamicAddresses>),
}

impl Dynamic {
    /// Takes over what is known of the set, or reads what was kept.
    pub(super) fn new(
        name: &str,
        wanted: &DynamicSet,
        known: Option<&Self>,
        workshop: &Workshop<'_>,
    ) -> Self {
        let ttl = wanted.ttl.map(|ttl| ttl.as_secs().clamp(1, u32::MAX.into()) as u32);
        let file =
            wanted.persist.then(|| workshop.state_directory.join("sets").join(format!("{name}.dynamic")));
        let kind = |handle: &DynamicHandle| match handle {
            DynamicHandle::Names(_) => DynamicKind::Names,
            DynamicHandle::Addresses(_) => DynamicKind::Addresses,
        };
        if let Some(known) = known
            && kind(&known.handle) == wanted.holds
            && (known.limit, known.ttl) == (wanted.limit, ttl)
        {
            return Self { file, ..known.clone() };
        }
        let limit = wanted.limit as usize;
        let handle = match wanted.holds {
            DynamicKind::Names => {
                DynamicHandle::Names(Arc::new(DynamicNames::new(&workshop.key, limit, ttl)))
            }
            DynamicKind::Addresses => {
                DynamicHandle::Addresses(Arc::new(DynamicAddresses::new(&workshop.key, limit, ttl)))
            }
        };
        let new = Self { handle, file, limit: wanted.limit, ttl };
        match known {
            // Another limit or time: what there is stays.
            Some(known) if kind(&known.handle) == wanted.holds => new.put(&known.text()),
            _ => {
                if let Some(file) = &new.file
                    && let Ok(octets) = workshop.surroundings.read_list(file, FILE_OCTETS_MAX)
                {
                    new.put(&String::from_utf8_lossy(&octets));
                }
            }
        }
        new
    }

    /// Adds one name, address or prefix at the second `now`, for `ttl` seconds or as long as the set says.
    pub fn add(&self, text: &str, now: u64, ttl: Option<u64>) -> Result<sets::Added, String> {
        self.put_one(text, now, ttl.map(|ttl| now.saturating_add(ttl)))
    }

    fn put_one(&self, text: &str, now: u64, leaves: Option<u64>) -> Result<sets::Added, String> {
        match &self.handle {
            DynamicHandle::Names(names) => {
                let (form, rest) = text.split_once(':').unwrap_or(("suffix", text));
                let name = values::name(rest).map_err(|misread| misread.message)?;
                match form {
                    "suffix" => Ok(names.add(name.as_name(), now, leaves)),
                    "exact" => Ok(names.add_alone(name.as_name(), now, leaves)),
                    other => Err(format!("unknown form of name \"{other}:\" (expected suffix: or exact:)")),
                }
            }
            DynamicHandle::Addresses(addresses) => {
                let (address, length) = prefix(text)?;
                Ok(addresses.add(address, length, now, leaves))
            }
        }
    }

    /// Takes what the policy learns: the name asked for, without a dot at its end, or addresses.
    pub fn learn(&self, what: Learned, qname: &str, addresses: &[IpAddr], now: u64) {
        match &self.handle {
            DynamicHandle::Names(names) => {
                let qname = if qname.is_empty() { "." } else { qname };
                let Ok(name) = values::name(qname) else { return };
                match what {
                    Learned::Suffix => drop(names.add(name.as_name(), now, None)),
                    Learned::Name => drop(names.add_alone(name.as_name(), now, None)),
                    // Refused when the configuration was compiled.
                    Learned::Addresses | Learned::Client => {}
                }
            }
            DynamicHandle::Addresses(set) => {
                for &address in addresses {
                    set.add(address, if address.is_ipv4() { 32 } else { 128 }, now, None);
                }
            }
        }
    }

    /// Returns whether it holds what is learned.
    pub(crate) const fn takes(&self, what: Learned) -> bool {
        matches!(
            (&self.handle, what),
            (DynamicHandle::Names(_), Learned::Suffix | Learned::Name)
                | (DynamicHandle::Addresses(_), Learned::Addresses | Learned::Client)
        )
    }

    /// Removes one name, address or prefix; returns whether it was there.
    pub fn remove(&self, text: &str) -> Result<bool, String> {
        match &self.handle {
            DynamicHandle::Names(names) => {
                let text = text.split_once(':').map_or(text, |(_, name)| name);
                let name = values::name(text).map_err(|misread| misread.message)?;
                Ok(names.remove(name.as_name()))
            }
            DynamicHandle::Addresses(addresses) => {
                let (address, length) = prefix(text)?;
                Ok(addresses.remove(address, length))
            }
        }
    }

    /// Returns what it holds and the second each leaves at, those that leave first before the others.
    pub fn list(&self) -> Vec<(String, Option<u64>)> {
        match &self.handle {
            DynamicHandle::Names(names) => {
                let show = |(name, is_alone, leaves): (wire::NameBuf, bool, _)| {
                    (if is_alone { format!("exact:{name}") } else { name.to_string() }, leaves)
                };
                names.list().into_iter().map(show).collect()
            }
            DynamicHandle::Addresses(addresses) => {
                let list = addresses.list().into_iter();
                list.map(|((address, length), leaves)| (format!("{address}/{length}"), leaves)).collect()
            }
        }
    }

    /// Forgets what has left by the second `now`.
    pub fn sweep(&self, now: u64) -> usize {
        match &self.handle {
            DynamicHandle::Names(names) => names.sweep(now),
            DynamicHandle::Addresses(addresses) => addresses.sweep(now),
        }
    }

    /// Writes the file if something changed since it was last written.
    pub fn keep(&self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let is_changed = match &self.handle {
            DynamicHandle::Names(names) => names.take_changed(),
            DynamicHandle::Addresses(addresses) => addresses.take_changed(),
        };
        if !is_changed {
            return Ok(false);
        }
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory)?;
        }
        // Whole or not at all: the old file stays until the new one is complete.
        let new = file.with_extension("dynamic.new");
        std::fs::write(&new, self.text())?;
        std::fs::rename(&new, file)?;
        Ok(true)
    }

    /// Writes one line for each, with the second it leaves at if it does.
    fn text(&self) -> String {
        let lines = self.list().into_iter().map(|(item, leaves)| match leaves {
            Some(leaves) => format!("{item} {leaves}\n"),
            None => format!("{item} forever\n"),
        });
        lines.collect()
    }

    /// Reads what [`Dynamic::text`] wrote. A line that is none is left out: a file that was cut keeps the rest.
    fn put(&self, text: &str) {
        for line in text.lines() {
            if let Some((item, leaves)) = line.split_once(' ')
                && let Some(leaves) = if leaves == "forever" { Some(u64::MAX) } else { leaves.parse().ok() }
            {
                // What has left since is swept away before long.
                drop(self.put_one(item, 0, Some(leaves)));
            }
        }
    }
}

fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let prefix = values::prefix(text).map_err(|misread| misread.message)?;
    Ok((prefix.address(), prefix.bits()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::Duration;
    use wire::HashKey;

    fn new(wanted: &DynamicSet, known: Option<&Dynamic>, directory: &Path) -> Dynamic {
        let memory = crate::load::System;
        let workshop = Workshop {
            key: HashKey::new([1, 2]),
            state_directory: directory,
            surroundings: &memory,
            previous: None,
            only: None,
        };
        Dynamic::new("learned", wanted, known, &workshop)
    }

    fn wanted(holds: DynamicKind) -> DynamicSet {
        DynamicSet { holds, limit: 100, ttl: Some(Duration::from_secs(60)), persist: true }
    }

    #[test]
    fn what_was_added_survives_reloads_and_restarts() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = new(&wanted(DynamicKind::Names), None, directory.path());
        first.add("example.org", 1000, None).expect("a name");
        first.add("example.net", 1000, Some(500)).expect("a name");
        assert!(first.add("a..b", 1000, None).is_err());
        let expected = [("example.org.".to_owned(), Some(1060)), ("example.net.".to_owned(), Some(1500))];
        assert_eq!(first.list(), expected);
        // A reload with another limit.
        let second =
            new(&DynamicSet { limit: 50, ..wanted(DynamicKind::Names) }, Some(&first), directory.path());
        assert_eq!(second.list(), expected);
        assert!(second.keep().expect("the directory is writable"));
        assert!(!second.keep().expect("nothing to write"), "nothing changed since");
        // A restart.
        let third = new(&wanted(DynamicKind::Names), None, directory.path());
        assert_eq!(third.list(), expected);
        assert_eq!(third.sweep(1060), 1);
        assert_eq!(third.list(), expected[1..]);
    }

    #[test]
    fn addresses_are_kept_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = new(&wanted(DynamicKind::Addresses), None, directory.path());
        first.add("192.0.2.1", 1, None).expect("an address");
        first.add("2001:db8::/32", 2, None).expect("a prefix");
        assert_eq!(first.remove("192.0.2.9"), Ok(false));
        first.keep().expect("the directory is writable");
        let second = new(&wanted(DynamicKind::Addresses), None, directory.path());
        assert_eq!(
            second.list(),
            [("192.0.2.1/32".to_owned(), Some(61)), ("2001:db8::/32".to_owned(), Some(62))]
        );
    }
}
