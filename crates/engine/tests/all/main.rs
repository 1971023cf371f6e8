//! One query in, one verdict out: the engine as listeners see it.

#[path = "../common/mod.rs"]
mod common;

mod actions;
mod answers;
mod early;
mod edits;
mod events;
mod programs;
mod recurse;
mod splits;
mod watches;
