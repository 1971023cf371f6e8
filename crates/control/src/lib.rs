//! What operators see and do: control over a Unix socket, metrics over HTTP.
//!
//! Never on a query's path, and the only crate besides `api` whose types become JSON.

#![forbid(unsafe_code)]

mod about;
mod accept;
pub mod api;
mod caller;
pub mod client;
mod failures;
pub mod metrics;
pub mod server;
mod tries;

pub use about::{About, names_rrset, of_zone, rrsets_of};
pub use accept::{Accepted, Proof, WhenFull, converse_with_all, network_of};
pub use caller::{Caller, Role, Scope, needed, says_who_may};
pub use client::{More, ask, ask_for_all};
pub use failures::Failures;
pub use server::{Admits, Answer, Conversation, Handler, Handlers, Http, Parts, Peer, Socket, Stream, serve};
pub use tries::Tries;
