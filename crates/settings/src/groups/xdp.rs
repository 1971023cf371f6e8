//! Packets taken past the kernel's network stack.

use std::path::PathBuf;

use diagnostic::At;
use plan::devices::{Existing, Mode};

/// How packets are taken past the kernel's network stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Xdp {
    /// From which interfaces; none: not at all.
    pub interfaces: Vec<At<String>>,
    /// In which way.
    pub mode: Mode,
    /// What becomes of another program.
    pub existing: Existing,
    /// Where another program has its map of sockets.
    pub map: Option<PathBuf>,
    /// On how many queues; `None`: on all.
    pub queues: Option<u32>,
    /// Entries of each ring, a power of two; `None`: what suits the card.
    pub ring: Option<u32>,
    /// Whether the way back is checked. A reload changes that.
    pub check_routes: bool,
    /// Whether frames are in huge pages.
    pub huge_pages: bool,
    /// Microseconds of busy polling.
    pub busy_poll: Option<u32>,
    /// Packets handled at a time then.
    pub busy_poll_budget: u32,
}
