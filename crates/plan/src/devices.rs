//! Network interfaces whose packets are taken past the kernel's network stack (AF_XDP).

use std::path::PathBuf;

values::words! {
    /// In which way packets are taken past the kernel's network stack.
    Mode {
        /// Not at all.
        Off = "off",
        /// The best that works.
        Auto = "auto",
        /// In the driver, without a copy.
        ZeroCopy = "zerocopy",
        /// In the driver, with a copy.
        Native = "native",
        /// Behind any driver.
        Generic = "generic",
    }
}

values::words! {
    /// What becomes of another program on an interface.
    Existing {
        /// It stays.
        Keep = "keep",
        /// It is taken off.
        Replace = "replace",
    }
}

/// Which program chooses the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// Ours; what to do if another is there.
    Ours(Existing),
    /// One that is attached already and has its map of sockets pinned at this path.
    Foreign(PathBuf),
}

/// How the card is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long one call may take.
    pub microseconds: u32,
    /// How many packets it may handle.
    pub budget: u32,
}

/// How an interface is to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePlan {
    /// Its name.
    pub interface: String,
    /// In which way.
    pub mode: Mode,
    /// By which program.
    pub program: Program,
    /// On how many of its queues, from the first; `None` for all. Others pass to the kernel.
    pub queues: Option<u32>,
    /// Entries of each ring, a power of two; `None` for what suits the card.
    pub ring_entries: Option<u32>,
    /// Whether the way back is checked.
    pub checks_routes: bool,
    /// Whether frames are in huge pages.
    pub huge_pages: bool,
    /// Whether and how we poll the card ourselves.
    pub busy_poll: Option<BusyPoll>,
}
