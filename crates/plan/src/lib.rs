//! What the server runs on, plain data: listeners, upstreams, resolvers, caches, zones and others.
//!
//! Never opens a file or a socket, and knows no YAML: a plan may come from a file, an API, a store
//! or a replica.

#![forbid(unsafe_code)]

pub mod anchors;
pub mod caches;
pub mod certificates;
pub mod checks;
pub mod devices;
pub mod dnscrypt;
pub mod dnstap;
pub mod jobs;
pub mod listeners;
pub mod relay;
pub mod resolvers;
mod secret;
pub mod signing;
pub mod tls;
pub mod transfers;
pub mod upstreams;
pub mod zones;

pub use secret::Secret;
