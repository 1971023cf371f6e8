//! Fuzz harnesses: one function per target of `fuzz/`, which takes any octets and panics if what
//! must hold does not.
//!
//! Never ships. The programs of `fuzz/` call these functions under libFuzzer; the tests here replay
//! the seeds of `fuzz/seeds` in the dev build, so that no test run has to compile the fuzz
//! programs.

#![forbid(unsafe_code)]

mod config;
mod denials;
mod dnscrypt;
mod engine;
mod frames;
mod http2;
mod lists;
mod messages;
mod network;
mod peers;
mod proxy;
mod search;
mod tokens;
mod zone_file;

pub use self::config::{config, overlay, unbound};
pub use self::denials::denials;
pub use self::dnscrypt::dnscrypt;
pub use self::engine::engine;
pub use self::frames::frames;
pub use self::http2::http2;
pub use self::lists::lists;
pub use self::messages::{name, query, rdata_text, reply};
pub use self::network::{authority, forwarders, network};
pub use self::peers::{journal, signed, transfer, update};
pub use self::proxy::proxy;
pub use self::search::search;
pub use self::tokens::token;
pub use self::zone_file::zone_file;
