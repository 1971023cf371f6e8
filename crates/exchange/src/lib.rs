//! One question to one server over one transport: what leaves, what comes back, what is believed.
//!
//! Never chooses between servers, never decides what a client is answered, and never blocks.

#![deny(unsafe_code)]

mod counters;
pub mod health;
mod machine;
pub mod net;
pub mod network;
pub mod probe;
mod relay;
pub mod resolve;
pub mod rtt;
pub mod server;
pub mod sys;

pub use counters::Counters;
pub use machine::{
    ATTEMPTS_MAX, Alternatives, Ask, Event, Exchange, Heard, How, RequestKey, SERVERS_MAX, SendError,
    ServerKey, Terms, question,
};
pub use relay::{Relay, RelayCourier};
