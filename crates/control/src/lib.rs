//! What operators see and do: control over a Unix socket in lines of JSON, metrics over HTTP.
//!
//! Never on a query's path, and the only crate whose types become JSON.

#![forbid(unsafe_code)]

mod accept;
pub mod api;
pub mod client;
pub mod metrics;
pub mod server;

pub use client::{More, ask, ask_for_all};
pub use server::{Answer, Handler, Parts, Socket, serve};
