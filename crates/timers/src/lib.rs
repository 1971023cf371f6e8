//! Moments, spans of time, and many deadlines on one clock.
//!
//! Never reads a clock: whoever sets deadlines says what time it is.

#![forbid(unsafe_code)]

mod time;
mod wheel;

pub use time::{Moment, Span};
pub use wheel::{TimerKey, Wheel};
