//! Holds the guard tests under `tests/`: what needs more than one crate, or the built program.
//!
//! Never holds code of its own.

#![forbid(unsafe_code)]
