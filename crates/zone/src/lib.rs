//! Authoritative zones: reads, checks and compiles them, and answers from them.
//!
//! Never answers without a snapshot, never waits, opens no file and reads no clock: text comes in
//! as octets.

#![forbid(unsafe_code)]

pub mod catalog;
pub mod difference;
pub mod incoming;
pub mod json;
pub mod master;
pub mod outgoing;
pub mod rows;
pub mod update;

mod alias;
mod answer;
mod block;
mod build;
mod canonical;
mod check;
mod compile;
mod denial;
mod load;
mod nsec3;
mod online;
mod over;
mod received;
mod records;
mod specials;
mod target;
mod versions;
mod zone;
mod zones;

pub use alias::{ADDRESSES_OCTETS_MAX, Aliases};
pub use answer::{ALIASES_MAX, Answered, Asked, Failure, Manner};
pub use build::{Builder, Built, FINDINGS_MAX};
pub use check::{Finding, Level, Origin, Problem};
pub use difference::{Difference, Misfit};
pub use load::{Loaded, load, load_sent};
pub use nsec3::ITERATIONS_MAX;
pub use online::{Good, Online, OnlineKey, Pool};
pub use outgoing::Outgoing;
pub use received::{Unusable, receive};
pub use records::{Order, Record};
pub use specials::{Alternative, Choice, Maker, Rows, Specials};
pub use zone::{Facts, Proof, Zone};
pub use zones::{Change, LOOKAHEAD_MAX, Zones};
