//! The canonical order of names, as `wire` has it.

pub(crate) use wire::canonical::{Key, word};
