//! Messages for dnstap: rings that workers copy them into, protobuf, and Frame Streams.
//!
//! A worker copies a message into a ring of its own ([`TapWriter`]). One thread reads all rings
//! ([`TapReader`]), writes each message as protobuf ([`Encoder`]) and sends that in frames
//! ([`frames`]). A message that finds no room is dropped and counted, so that no receiver can slow
//! a query.
//!
//! Never does I/O, reads no clock, never waits for a receiver.

#![forbid(unsafe_code)]

pub mod frames;
mod message;
mod protobuf;
mod reader;
mod ring;

pub use message::{Kind, Kinds, Peer, Protocol, Tapped};
pub use protobuf::{Encoder, Envelope, Times};
pub use reader::{Message, TapReader, TapView};
pub use ring::{Bell, Sampling, SharedTap, Tap, TapWriter, ring};
