//! The command line: what commands are told, and the commands that need no server in the process.
//!
//! Never serves: a command reads and writes files, or asks the running server over its control
//! socket. `daemon` has the commands that need more.

#![forbid(unsafe_code)]

pub mod certificate;
pub mod cli;
pub mod configuration;
pub mod dnscrypt;
pub mod import;
pub mod mobileconfig;
pub mod out;
mod password;
pub mod program;
pub mod progress;
pub mod query;
mod record;
pub mod remote;
pub mod xdp_check;
pub mod zone;
