//! Clients' sockets: UDP, TCP, TLS, HTTPS and QUIC.
//!
//! Never decides anything about an answer: what a client's bytes mean is the engine's business.

#![deny(unsafe_code)]

// What the test programs have in common serves the tests in here, too.
#[cfg(test)]
extern crate self as listen;

mod allowances;
mod ask;
mod bind;
mod budget;
mod busy_poll;
mod counters;
mod dnscrypt;
mod http;
mod local;
mod oblivious;
mod port_owner;
pub mod proxy;
mod quic;
mod refusals;
mod serve;
mod service;
mod steering;
mod streamed;
mod sys;
mod tcp;
mod tls;
mod udp;
mod xdp;

pub use self::xdp::{XdpQueue, serve_queues};
pub use bind::{BindError, Bound, Sockets, WorkerSockets, bind};
pub use budget::Budget;
pub use counters::Counters;
pub use dnscrypt::{Dnscrypt, DnscryptCell};
pub use local::{FileOwner, LocalFile};
pub use port_owner::PortOwner;
pub use refusals::{RefusalReport, Refusals, Refused};
pub use serve::{Stop, Stopper, serve, stop};
pub use service::{Answer, Answered, Late, Local, Service};
pub use sys::{Activated, Kind, activation, interface_index};
pub use tls::{Tls, TlsCell};
