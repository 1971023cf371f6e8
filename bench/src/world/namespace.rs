//! A network namespace in which all addresses of a simulated internet lead to this machine.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::pair::{Inside, ip};

/// The port of all servers.
pub const PORT: u16 = 53;
/// The first octet of the servers' addresses.
pub const NETWORK: u8 = 10;

/// The namespace. Gone when dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes it, or says why this machine or our rights do not allow it.
    pub fn new() -> Result<Self, String> {
        let name = format!("gannet-bench-{}-w", std::process::id());
        ip(&format!("netns add {name}"))?;
        let made = Self { name };
        let name = &made.name;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} route add local {NETWORK}.0.0.0/8 dev lo"))?;
        ip(&format!("-n {name} -6 route add local fd00::/8 dev lo"))?;
        Ok(made)
    }

    /// Moves the calling thread there; what it starts from now on is there, too.
    pub fn enter(&self) -> Result<Inside, String> {
        let path = format!("/run/netns/{}", self.name);
        Inside::enter(&File::open(&path).map_err(|error| format!("{path}: {error}"))?)
    }

    /// Returns where an internet that is served there is asked for its counters.
    pub const fn control() -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(NETWORK, 0, 0, 1)), PORT)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It goes when the last process in it has ended.
        let _ = ip(&format!("netns del {}", self.name));
    }
}
