//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Who asks, over what and when, and what lets them in.

#![forbid(unsafe_code)]

pub mod client;
pub mod clock;
pub mod gate;
pub mod subnet;
