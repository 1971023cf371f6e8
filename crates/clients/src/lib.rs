//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Who asks, over what and when, and what lets them in.
//!
//! Never answers, never grows: who asked too often is remembered in fixed tables.

#![forbid(unsafe_code)]

pub mod client;
pub mod clock;
pub mod gate;
pub mod subnet;
