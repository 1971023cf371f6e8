//! Who other servers must prove to be before they are believed, and what all workers share of that.
//!
//! Never opens a socket, never tells a server anything: whoever connects takes the TLS settings,
//! the DNSCrypt certificate or the key of an oblivious target from here.

#![forbid(unsafe_code)]

mod last_errors;
mod provider;
mod registry;
pub mod tls;
mod transport;

pub use last_errors::LastErrors;
pub use provider::{Dnscrypt, Odoh};
pub use registry::Registry;
pub use transport::Transport;
