//! The control channel of Unbound, for a server of ours, and the programs that come with Unbound.
//!
//! Never decides what a command does to the server: that is for its operator interface.

#![forbid(unsafe_code)]

mod audit;
mod channel;
mod commands;
mod connections;
mod lines;
mod lists;
pub mod programs;
mod service;
mod session;
mod texts;
mod tls;

pub use channel::{Channel, Hooks, OpenError};
pub use connections::serve;
pub use service::Service;
