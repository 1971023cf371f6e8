//! Moments, spans of time, many deadlines on one clock, and how long things took.
//!
//! Never reads a clock: whoever sets deadlines says what time it is.

#![forbid(unsafe_code)]

mod histogram;
mod time;
mod wheel;

pub use histogram::{BUCKETS, Counted, Histogram};
pub use time::{Moment, Span};
pub use wheel::{TimerKey, Wheel};
