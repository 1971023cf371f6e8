//! Clients' sockets on loopback, one module per transport.

#[path = "../common/mod.rs"]
mod common;

mod activation;
mod dnscrypt;
mod http;
mod quic;
mod tcp;
mod tls;
mod udp;
