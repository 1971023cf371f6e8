//! A server that runs: how it starts, how a configuration comes into use, what operators can do.
//!
//! Never reads a command line and never gives up a privilege: `daemon` does, and opens the sockets,
//! before it starts one.

#![deny(unsafe_code)]

mod anchors;
mod backup;
mod caches;
mod certificates;
mod compile;
mod dry_run;
pub mod explain;
mod feed;
mod for_jobs;
mod log_level;
mod operator;
mod policy_zones;
mod polling;
pub mod probe;
mod progress;
mod protocol;
mod reclaim;
mod reload;
mod signing;
mod start;
#[expect(unsafe_code, reason = "calls that only the operating system can do")]
pub mod sys;
mod systemd;
mod watch;
mod watchdog;
mod worker;
mod zone_keys;
mod zone_sources;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use backup::{ARCHIVE_OCTETS_MAX, BackupError, lay_down};
pub use compile::{Compiled, Previous, compile};
pub use control::{Caller, Role, Scope, needed};
pub use driver::{StoredOf, Waiting, WaitsFor};
pub use dry_run::check_only;
pub use log_level::{LogLevelHandle, filter};
pub use operator::{
    CachedAnswer, ComesBack, Credential, DESCRIPTIONS, EDITS_MAX, LinkFor, LogInRefusal, LoggedIn,
    MEMBERS_MAX, Operator, OperatorError, Rejected, What, WorkerNumbers,
};
pub use protocol::{
    SocketUsers, answered, back_up, carry_out, members_allowed, own_list_allowed, own_list_put, restore,
    restore_allowed,
};
pub use recorder::names as recorder_files;
pub use start::{Opened, Server, StartError, start};
pub use store::Draft;
pub use watch::{End, Order, Serving};

/// Locks a mutex. A panic ends the process, so that a poisoned one is never seen.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
