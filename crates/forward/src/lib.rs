//! Groups of servers over an exchange: which server is asked, when another one is, and whether it is well.
//!
//! Never answers a client and never waits: what has ended is taken out as [`Event`]s.

#![forbid(unsafe_code)]

mod counters;
mod machine;
pub mod notices;
mod pick;
pub mod status;

pub use counters::Counters;
pub use machine::{Ended, Ending, Event, FetchKey, Forward, PoolKey};
pub use notices::Notices;
pub use status::Status;
