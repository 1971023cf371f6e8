//! Sets of names and of addresses.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use diagnostic::{At, LongText};
use lists::{ListFormat, NamePattern};
use wire::{NameBuf, Prefix};

/// A set of names and addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Its name.
    pub name: At<String>,
    /// Names.
    pub names: Vec<NamePattern>,
    /// Addresses: the first and the last of each range.
    pub addresses: Vec<(IpAddr, IpAddr)>,
    /// Lists to read.
    pub lists: Vec<SetList>,
    /// Sets whose content it holds too.
    pub include: Vec<At<String>>,
    /// Sets whose content it does not hold.
    pub except: Vec<At<String>>,
    /// What clients are called in lists, and where they are.
    pub tags: Vec<(At<String>, Vec<Prefix>)>,
    /// What it holds is changed while the server runs.
    pub dynamic: Option<DynamicSet>,
}

/// Sets that are followed from one to the next; a circle of them is reported elsewhere.
const SETS_DEPTH_MAX: usize = 64;

impl Set {
    /// Returns whether a name can be in the set, one of `all`.
    pub fn may_hold_names(&self, all: &[Set]) -> bool {
        self.may_hold(all, SETS_DEPTH_MAX, &|set| {
            !set.names.is_empty()
                || set.is_empty()
                || set.lists.iter().any(|list| list.format.has_names())
                || set.dynamic.as_ref().is_some_and(|dynamic| dynamic.holds == DynamicKind::Names)
        })
    }

    /// Returns whether an address can be in the set, one of `all`.
    pub fn may_hold_addresses(&self, all: &[Set]) -> bool {
        self.may_hold(all, SETS_DEPTH_MAX, &|set| {
            !set.addresses.is_empty()
                || set.is_empty()
                || set.lists.iter().any(|list| list.format.has_addresses())
                || set.dynamic.as_ref().is_some_and(|dynamic| dynamic.holds == DynamicKind::Addresses)
        })
    }

    /// Returns whether it says of everything that it holds none of it.
    fn is_empty(&self) -> bool {
        let Self { names, addresses, lists, include, dynamic, .. } = self;
        names.is_empty()
            && addresses.is_empty()
            && lists.is_empty()
            && include.is_empty()
            && dynamic.as_ref().is_none()
    }

    fn may_hold(&self, all: &[Set], depth: usize, holds: &dyn Fn(&Set) -> bool) -> bool {
        let part = |name: &At<String>| all.iter().find(|set| set.name.value == name.value);
        holds(self)
            || (depth > 0
                && self.include.iter().filter_map(part).any(|set| set.may_hold(all, depth - 1, holds)))
    }
}

/// A list that a set is read from.
#[derive(Clone, Debug, PartialEq)]
pub struct SetList {
    /// How it is written.
    pub format: ListFormat,
    /// Where it is, and where the file names it.
    pub place: At<ListPlace>,
    /// Which parts of it count; all if there are none.
    pub select: Vec<At<String>>,
    /// How often a URL is asked for a newer one.
    pub refresh: Option<Duration>,
    /// How long fetching it may take.
    pub timeout: Duration,
    /// Octets it may have.
    pub octets_max: u64,
    /// Whether a mistake in it is an error, where it is a list of one's own.
    pub is_strict: bool,
    /// Whether its file may be missing.
    pub is_optional: bool,
}

impl SetList {
    /// Returns whether mistakes in it are the operator's own.
    pub const fn is_own(&self) -> bool {
        match self.place.value {
            ListPlace::File(_) => {
                self.is_strict && matches!(self.format, ListFormat::Names | ListFormat::Addresses)
            }
            ListPlace::Own(_) => matches!(self.format, ListFormat::Names | ListFormat::Addresses),
            ListPlace::Here(_) => true,
            ListPlace::Url(_) | ListPlace::Zone(_) => false,
        }
    }

    /// Returns how it is read.
    pub fn reading(&self) -> lists::List<'_> {
        let select = self.select.iter().map(|part| part.value.as_str()).collect();
        lists::List { format: self.format, select, is_own: self.is_own() }
    }
}

/// Where a list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPlace {
    /// In a file.
    File(PathBuf),
    /// On a web server.
    Url(String),
    /// In the configuration: its lines.
    Here(LongText),
    /// In a zone of this server that comes from other servers.
    Zone(NameBuf),
    /// Kept beside the settings, under this name.
    Own(String),
}

/// What a set holds that is changed while the server runs.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicSet {
    /// Whether it is names or addresses.
    pub holds: DynamicKind,
    /// How many at most.
    pub limit: u32,
    /// How long each stays; for ever if there is none.
    pub ttl: Option<Duration>,
    /// Whether it is kept over restarts.
    pub persist: bool,
}

values::words! {
    /// What a dynamic set holds.
    DynamicKind {
        /// Names, each with those below it.
        Names = "names",
        /// Addresses and prefixes.
        Addresses = "addresses",
    }
}
