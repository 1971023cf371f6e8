//! Queries to other servers as octets, their IDs, and which replies are theirs.
//!
//! Never sends anything, and never decides whom to ask.

#![forbid(unsafe_code)]

pub mod packet;
pub mod questions;
pub mod transactions;
