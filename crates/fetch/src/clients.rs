//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! How many queries each client has waiting, in a fixed amount of memory.

use std::net::IpAddr;

use wire::{HashKey, Name};

/// Cells; clients that share one are counted together.
const CELLS: usize = 8192;

/// A client's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientCell(u16);

/// Counts waiting queries by client: an IPv4 address or an IPv6 /56, which one customer usually has to itself.
pub(crate) struct Clients {
    cells: Box<[u16; CELLS]>,
    key: HashKey,
}

impl Clients {
    pub(crate) fn new(key: HashKey) -> Self {
        Self { cells: Box::new([0; CELLS]), key }
    }

    /// Returns the cell of a client; which clients share one is secret.
    pub(crate) fn cell(&self, address: IpAddr) -> ClientCell {
        let prefix = match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 72) as u64 | 1 << 63,
        };
        ClientCell((self.key.hash(Name::ROOT, prefix) % CELLS as u64) as u16)
    }

    /// Returns how many queries are waiting in this cell.
    pub(crate) fn waiting(&self, cell: ClientCell) -> u32 {
        self.cells.get(usize::from(cell.0)).map_or(0, |&count| u32::from(count))
    }

    /// Counts one more.
    pub(crate) fn enter(&mut self, cell: ClientCell) {
        if let Some(count) = self.cells.get_mut(usize::from(cell.0)) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts one less.
    pub(crate) fn leave(&mut self, cell: ClientCell) {
        if let Some(count) = self.cells.get_mut(usize::from(cell.0)) {
            *count = count.saturating_sub(1);
        }
    }
}
