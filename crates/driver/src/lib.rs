//! Queries that wait: whom they wait for, who shares what, for how long, and who gives way.
//!
//! Never decides what a client is told, and never blocks: one [`Driver`] per worker, on the
//! worker's thread.

#![forbid(unsafe_code)]

mod clients;
mod counters;
mod driver;
mod machine;
mod recursion;
mod second_level;
mod survey;
mod waiting;

pub use counters::{Counters, Counts, Group, Waits};
pub use driver::{Board, Driver, Plans, Shared};
pub use forward::status::{self, Status};
pub use forward::upstream_log::{UpstreamLog, UpstreamNews};
pub use recursion::{Counters as RecursionCounters, Learned, Probe, Probing, ResolverTables, Trusted};
pub use resolver::Resolution;
pub use second_level::forgotten::StoredOf;
pub use waiting::{Waiting, WaitsFor};
