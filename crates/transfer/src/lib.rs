//! Zones from and to other servers: transfers, notifications, updates.
//!
//! Asks whether there is a newer version of a zone, and takes it over (RFC 5936, RFC 1995, RFC
//! 9103). Tells other servers of new versions of ours (RFC 1996), and those of a parent which DS a
//! zone has ([`push_ds`]). Has other servers take single records ([`push_txt`]).
//!
//! Never on a worker: what keeps zones runs these functions on a thread of its own. Never believes
//! a server that has not proved what was demanded of it.

#![forbid(unsafe_code)]

mod connection;
mod datagram;
mod error;
mod messages;
mod notify;
mod refresh;
mod signature;
mod update;

pub use connection::{Client, Patience};
pub use error::PeerError;
pub use notify::notify;
pub use refresh::{Have, Heard, Wish, Word, refresh};
pub use update::{Delegation, TxtChange, pass_on, push_ds, push_txt};
