//! Reads and writes DNS bytes: names, queries, records, replies.
//!
//! Never allocates while parsing and never panics on input.

#![forbid(unsafe_code)]

pub mod calendar;
pub mod canonical;
mod cut;
pub mod edns;
pub mod hash;
pub mod header;
pub mod idn;
pub mod message;
pub mod name;
pub mod numbers;
mod prefix;
mod prefix64;
pub mod query;
pub mod rdata;
pub mod reply;
pub mod rtypes;
mod scrub;
pub mod serial;
mod shared;
mod subnet;
pub mod text;
pub mod write;

pub use cut::Cut;
pub use edns::{Edns, EdnsOption};
pub use hash::{HashKey, eq_ignore_case};
pub use header::{Flags, Header};
pub use message::{MESSAGE_OCTETS_MAX, Message, NameRef, Record, Section};
pub use name::{Folded, Name, NameBuf, Shape};
pub use numbers::{Class, EdeCode, Opcode, OptionCode, Rcode, Rtype, Ttl};
pub use prefix::Prefix;
pub use prefix64::Prefix64;
pub use query::{Malformed, Query, Question};
pub use reply::{Normalised, Unfit, normalise, truncate, write_data};
pub use shared::SharedName;
pub use subnet::ClientSubnet;
pub use text::{TextError, Token, Tokens};
pub use write::{CUT_OCTETS, Cuts, Full, Mark, Pointer, Writer};
