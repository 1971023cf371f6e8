//! HTTP/2 (RFC 9113) for a server of small answers: octets in, requests out, octets back.
//!
//! Never does I/O, reads no clock, and never holds more than its [`Limits`] allow, whatever the
//! client sends.
//!
//! A request is handed over when all of it is there; a response is one head and one body, written
//! at once as far as the client's windows allow it. There are no pushes and no priorities (RFC 9113
//! §5.3.2 lets servers ignore them).

#![forbid(unsafe_code)]

mod connection;
mod frame;
mod head;
mod hpack;
mod streams;

pub use connection::{Connection, Event, Field, Limits, Request, RequestFault, Response};
pub use frame::PREFACE;
pub use head::Head;
