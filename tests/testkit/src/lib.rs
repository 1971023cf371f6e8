//! Test tools: an upstream that misbehaves on demand, DNS clients, a web server, a router, a proxy,
//! resolvers of sealed messages, binary lists, a simulated internet, and the built program in a
//! directory of its own.
//!
//! Never sleeps: whoever waits, waits for something, with a deadline.

#![forbid(unsafe_code)]

pub mod ask;
pub mod client;
mod clock;
pub mod corpus;
pub mod dnscrypt;
pub mod dnscrypt_client;
pub mod dnstap;
pub mod identity;
pub mod lists;
pub mod mikrotik;
pub mod oblivious;
mod others;
pub mod program;
mod quic;
pub mod redis;
pub mod socks;
pub mod streams;
pub mod stub;
pub mod tls;
mod validator;
pub mod web;
pub mod world;

pub use ask::{Ask, Heard, name};
pub use client::{TcpClient, UdpClient, contains, dig, kdig, lacks, tcp_from};
pub use clock::Clock;
pub use dnscrypt::Provider;
pub use identity::{Authority, Identity};
pub use oblivious::Oblivious;
pub use others::{Other, free_address, is_installed, with_input};
pub use program::{Server, forwarding, program, program_by, tool, without_api};
pub use socks::Proxy;
pub use stub::{Answer, Asked, Lie, Script, Stub};
pub use tls::{TlsClient, certificate};
pub use validator::{ds_of_keys, said, write_anchor};
pub use web::{Page, Web};

use std::time::{Duration, Instant};

/// How long anything may take before a test gives up on it. Generous: it is only ever waited for
/// when something is wrong, and the server's jobs have a low priority on a machine that builds.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The longest pause between two tries: a try may start a program, which would hold up what is
/// waited for.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Tries again until `holds` says yes.
///
/// # Panics
///
/// When it does not before the deadline.
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    eventually_within(DEADLINE, what, holds);
}

/// Tries again until `holds` says yes, for what takes several steps that each wait for the clock.
///
/// # Panics
///
/// When it does not within `patience`.
pub fn eventually_within(patience: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_millis(5);
    while !holds() {
        assert!(Instant::now() < deadline, "it never happened: {what}");
        std::thread::park_timeout(pause);
        pause = (pause * 3 / 2).min(PAUSE_MAX);
    }
}
