//! Datagrams through AF_XDP: frames in, frames out, past the kernel's network stack.
//!
//! Never looks into a datagram: what clients ask and what they are told is somebody else's business.

#![deny(unsafe_code)]

pub mod headers;

#[cfg(test)]
mod frames;
