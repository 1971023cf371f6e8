//! Groups of servers over an exchange: which one is asked, when another is, and whether it is well.
//!
//! Never answers a client and never waits: what has ended is taken out as [`Event`]s.

#![forbid(unsafe_code)]

mod counters;
mod machine;
mod pick;
pub mod status;
pub mod upstream_log;

pub use counters::Counters;
pub use machine::{Ended, Ending, Event, FetchKey, Forward, PoolKey};
pub use status::Status;
pub use upstream_log::{UpstreamLog, UpstreamNews};
