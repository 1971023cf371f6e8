//! The HTTP API: what operators see and do, as resources with JSON.
//!
//! Never decides what a request does to the server: the operator interface does, as for the control
//! socket.
//!
//! A table ([`routes`]) has a row for each resource and method: it makes a request of the control
//! socket of what came over HTTP, and a response of HTTP of what comes back. The description in
//! OpenAPI is printed from the same table and from the types.

#![forbid(unsafe_code)]

mod accounts;
mod backup;
mod bans;
mod body;
mod call;
mod clients;
mod description;
mod events;
mod json;
mod limits;
mod members;
mod network;
mod own_lists;
mod pages;
mod patience;
mod powerdns;
mod problem;
mod queries;
mod repeated;
mod reply;
mod resources;
mod responses;
mod route;
mod routes;
mod rrsets;
mod serve;
mod session;
mod shapes;
mod tools;
mod transfers;
mod validity;

pub use description::description;
pub use network::{CONNECTIONS_MAX, serve};
pub use serve::http;
