//! Test tools: an upstream that misbehaves on demand, DNS clients, and the built program in a directory of its own.
//!
//! Never sleeps: whoever waits, waits for something, with a deadline.

#![forbid(unsafe_code)]

pub mod ask;
pub mod client;
pub mod program;
pub mod stub;

pub use ask::{Ask, Heard, name};
pub use client::{TcpClient, UdpClient, dig, kdig};
pub use program::Server;
pub use stub::{Answer, Asked, Lie, Script, Stub};

use std::time::Duration;

/// How long anything may take before a test gives up on it. Generous: it is only ever waited for when something is wrong.
pub const DEADLINE: Duration = Duration::from_secs(20);
