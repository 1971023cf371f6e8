//! Everything that waits for another DNS server: forwarding, racing, pools, health.
//!
//! Never decides what a client is told, and never blocks: one [`Desk`] per worker, on the worker's thread.

#![deny(unsafe_code)]

mod clients;
pub mod counters;
mod desk;
mod health;
mod machine;
mod net;
mod network;
mod notices;
mod packet;
mod pick;
pub mod plan;
pub mod probe;
mod provider;
mod questions;
mod relay;
mod rtt;
mod secure;
pub mod status;
mod survey;
mod sys;
mod time;
mod transactions;
pub mod transfer;
mod upstream;
mod wheel;

pub use counters::Counters;
pub use desk::{Board, Desk};
pub use notices::Notices;
pub use plan::{Plan, PoolPlan, ServerPlan, descriptors_max};
pub use relay::{Relay, RelayCourier, RelayPlan, RelayTarget};
pub use status::Status;
