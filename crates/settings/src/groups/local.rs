//! Hosts files, names of one's own.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use diagnostic::At;
use wire::NameBuf;

/// Hosts files.
#[derive(Clone, Debug, PartialEq)]
pub struct Hosts {
    /// Whether the system's own is one.
    pub system: bool,
    /// The others.
    pub files: Vec<At<PathBuf>>,
    /// The TTL of their names and of local names.
    pub ttl: Duration,
}

/// A name and its addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalName {
    /// The name.
    pub name: At<NameBuf>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}
