//! The steps of a policy, one file each.
//!
//! A step that needs more than a line lives here: what it is set up with, and what it does to a
//! query under way.

pub mod answer;
pub mod cache;
pub mod dns64;
pub mod edit;
pub mod event;
pub mod forward;
pub mod outgoing;
pub mod prefer;
pub mod quickest;
pub mod recurse;
pub mod rewrite;
pub mod split;
pub mod ttl;
pub mod wait;
pub mod watch;
pub mod zone;
