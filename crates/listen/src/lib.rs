//! Clients' sockets: UDP and TCP.
//!
//! Never decides anything about an answer: what a client's bytes mean is the engine's business.

#![deny(unsafe_code)]

mod bind;
mod counters;
mod holder;
mod plan;
pub mod proxy;
mod serve;
mod service;
mod sys;
mod tcp;
mod udp;
mod vigil;
mod xdp;

pub use self::xdp::{XdpQueue, serve_queues};
pub use bind::{BindError, Bound, Sockets, WorkerSockets, bind};
pub use counters::Counters;
pub use holder::Holder;
pub use plan::{Grouping, ListenerPlan, Plan, Prefix, TcpPlan, Transports, UdpPlan};
pub use serve::{Stop, Stopper, serve, stop};
pub use service::{Answer, Answered, Local, Service};
pub use sys::{Activated, Kind, activation, interface_index};
