//! One question to one server over one transport: what leaves, what comes back, and whether it is believed.
//!
//! Never chooses between servers, never decides what a client is told, and never blocks.

#![deny(unsafe_code)]

mod counters;
pub mod health;
mod machine;
pub mod net;
pub mod network;
mod packet;
pub mod plan;
pub mod probe;
mod provider;
mod questions;
mod relay;
pub mod rtt;
mod secure;
pub mod server;
pub mod sys;
pub mod time;
mod transactions;
pub mod transfer;
pub mod wheel;

pub use counters::Counters;
pub use machine::{
    ATTEMPTS_MAX, Alternatives, Ask, Event, Exchange, Heard, Hindrance, How, RequestKey, SERVERS_MAX,
    ServerKey, Terms, question,
};
pub use plan::{Plan, PoolPlan, ServerPlan, descriptors_max};
pub use relay::{Relay, RelayCourier, RelayPlan, RelayTarget};
