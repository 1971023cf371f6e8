//! A query as it comes, before anything answers it: what is asked, what is known of the name, what
//! is counted.

pub mod counters;
pub mod details;
pub mod names;
pub(crate) mod request;
pub mod reverse;
#[cfg(test)]
pub(crate) mod testing;
