//! What the server runs on, as plain data: listeners, TLS identities, interfaces, jobs, signing.
//!
//! Never opens a file or a socket, and knows no YAML: a plan may come from a file, an API, a store or a replica.

#![forbid(unsafe_code)]

pub mod listeners;
pub mod tls;
