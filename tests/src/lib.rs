//! Holds the guard tests under `tests/`: what needs more than one crate, or the built program.
//!
//! Never ships: what is in here serves those tests and the fuzz harnesses.

#![forbid(unsafe_code)]

pub mod bare;
pub mod configured;
