//! The steps of a policy, one file each.
//!
//! A step that needs more than a line lives here: what it is set up with, and what it does to a query under way.

pub mod cache;
pub mod forward;
pub mod ttl;
