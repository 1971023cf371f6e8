//! Keeps zones current: loads, transfers, updates, journals; sends NOTIFY to secondaries.
//!
//! Never says that an update is done before it is on disk, and never serves half a version.

#![forbid(unsafe_code)]

mod added;
mod catalog;
mod copy;
mod digest;
pub mod disk;
mod elsewhere;
mod error;
mod forwarded;
mod history;
pub mod journal;
mod load;
mod lock;
mod managed;
mod manager;
mod notify;
#[cfg(test)]
mod power;
mod publish;
mod refresh;
mod refused;
mod register;
mod report;
mod requests;
mod settle;
mod shared;
mod signature_expiry;
mod signed_journal;

pub use added::{Changed, ExpectZone, Planned, Planner};
pub use digest::Trust;
pub use elsewhere::{Elsewhere, Validators, WebFile, WebReply};
pub use error::ZoneError;
pub use load::{Checked, Checks, Failing, Found, LoadedZones, check, name_of};
pub use managed::ZoneChange;
pub use manager::{Dependencies, ZoneManager};
pub use register::Register;
pub use report::{Role, Summary, ZoneReport};
pub use shared::{News, Signer, TransferOutcome, Watcher};
