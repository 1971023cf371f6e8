//! Sets of names and of addresses.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use diagnostic::{At, Span};
use sets::Reach;
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
    /// Where it is named.
    pub span: Span,
    /// How it is written.
    pub format: ListFormat,
    /// Where it is.
    pub place: ListPlace,
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
}

/// Where a list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPlace {
    /// In a file.
    File(PathBuf),
    /// On a web server.
    Url(String),
    /// In the configuration: its lines.
    Here(String),
}

words! {
    /// How a list is written.
    ListFormat {
        /// A rule on names on each line: `domain:`, `full:`, `keyword:`, `regexp:`.
        Names = "names",
        /// An address, a prefix or a range on each line.
        Addresses = "addresses",
        /// The `geosite.dat` of v2ray.
        Geosite = "geosite",
        /// The `geoip.dat` of v2ray.
        Geoip = "geoip",
        /// The syntax of AdGuard and Adblock Plus.
        Adguard = "adguard",
        /// A hosts file: the names in it.
        Hosts = "hosts",
        /// A dnsmasq configuration: the names in `address=`, `server=` and `local=`.
        Dnsmasq = "dnsmasq",
        /// A response policy zone.
        Rpz = "rpz",
        /// A MaxMind database of countries or networks.
        Mmdb = "mmdb",
    }
}

impl ListFormat {
    /// Returns whether lists of this format say of names that they hold them.
    pub const fn has_names(self) -> bool {
        !matches!(self, Self::Addresses | Self::Geoip | Self::Mmdb)
    }

    /// Returns whether lists of this format hold addresses.
    pub const fn has_addresses(self) -> bool {
        matches!(self, Self::Addresses | Self::Geoip | Self::Mmdb | Self::Rpz)
    }

    /// Returns whether lists of this format have exceptions, or say what is to become of a query.
    pub const fn has_treatments(self) -> bool {
        matches!(self, Self::Adguard | Self::Rpz)
    }

    /// Returns whether parts of such a list can be selected.
    pub const fn has_parts(self) -> bool {
        matches!(self, Self::Geosite | Self::Geoip | Self::Mmdb)
    }
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

words! {
    /// What a dynamic set holds.
    DynamicKind {
        /// Names, each with those below it.
        Names = "names",
        /// Addresses and prefixes.
        Addresses = "addresses",
    }
}

/// A rule that names fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    /// A name, what lies below it, or both.
    Name(NameBuf, Reach),
    /// A part of a name.
    Keyword(String),
    /// A regular expression that a part of a name fits.
    Regex(String),
}
