//! The cache as its users see it: what it keeps, gives back, writes to disk, and what threads may
//! do to each other.

#[cfg(not(loom))]
mod cache;
#[cfg(not(loom))]
mod cuts;
#[cfg(not(loom))]
mod dump;
#[cfg(loom)]
mod loom;
#[cfg(loom)]
mod loom_tables;
#[cfg(not(loom))]
mod model;
#[cfg(not(loom))]
mod proofs;
#[cfg(not(loom))]
mod rrsets;
#[cfg(not(loom))]
mod servers;
#[cfg(not(loom))]
mod stress;
