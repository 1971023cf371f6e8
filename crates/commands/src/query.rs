//! `gannet query` without its sockets: what is asked for, and how what comes back is printed.

mod key;
mod reply;
mod transfer;
mod words;

pub use key::key_of;
pub use reply::{Names, Reply, show, summary};
pub use transfer::{Fault, Kind, Transfer};
pub use words::{Carrier, PADDING_OCTETS, Padding, Proof, Wishes, Words};
