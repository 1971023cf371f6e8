//! A query as it comes, before anything answers it: who asks, what lets it in, what is known of the
//! name.

pub mod client;
pub mod clock;
pub mod counters;
pub mod gate;
pub mod names;
pub(crate) mod request;
pub mod reverse;
pub(crate) mod subnet;
#[cfg(test)]
pub(crate) mod testing;
