//! Queries to authoritative servers over the sockets of this machine.

mod loopback;
mod owner;
