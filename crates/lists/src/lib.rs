//! Lists to sets: AdGuard, hosts files, dnsmasq, v2ray, response policy zones, MaxMind.
//!
//! Never opens a file and never panics on what a list holds: octets come in, rules and mistakes go
//! out.

#![forbid(unsafe_code)]

mod adguard;
mod collection;
mod format;
mod mmdb;
pub mod own;
mod pattern;
pub mod policy_zone;
mod reading;
mod rpz;
mod set;
#[cfg(test)]
mod testing;
mod text;
mod v2ray;

pub use collection::{Sets, Term};
pub use format::ListFormat;
pub use pattern::{NamePattern, name_pattern};
pub use reading::{Mistakes, Progress, address_range};
pub use set::{CompiledSet, List, SetBuilder};
