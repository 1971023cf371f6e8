//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! How many queries each client has waiting, and in which order they came, in a fixed amount of
//! memory.

use std::net::IpAddr;

use wire::{HashKey, Name};

/// Cells; clients that share one are counted together.
const CELLS: usize = 8192;
const NIL: u32 = u32::MAX;

/// A client's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientCell(u16);

/// Whether a query holds a reply for its client, and whether its address may be forged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// None: a branch, or work that goes on without a client.
    Nothing,
    /// One to an address that may be forged.
    Unproven,
    /// One to an address that a connection or a cookie proves.
    Proven,
}

/// What one client has waiting. 20 octets.
#[derive(Clone, Copy)]
struct Cell {
    /// Queries, those of branches included.
    waiting: u32,
    /// Replies to addresses that may be forged.
    unproven: u32,
    /// Replies to addresses that are proven.
    proven: u32,
    /// The oldest and the newest of its queries; the others are linked between them.
    oldest: u32,
    newest: u32,
}

const EMPTY: Cell = Cell { waiting: 0, unproven: 0, proven: 0, oldest: NIL, newest: NIL };

/// Counts waiting queries by client: an IPv4 address or an IPv6 /56, which one customer usually has
/// to itself.
pub(crate) struct Clients {
    cells: Box<[Cell; CELLS]>,
    key: HashKey,
    /// The client with the most queries when all were last looked at; nobody has become greedier
    /// unnoticed since.
    greediest: ClientCell,
    /// When it has no more than these, all are looked at again.
    greediest_min: u32,
}

impl Clients {
    pub(crate) fn new(key: HashKey) -> Self {
        Self { cells: Box::new([EMPTY; CELLS]), key, greediest: ClientCell(0), greediest_min: 0 }
    }

    /// Returns the cell of a client; which clients share one is secret.
    pub(crate) fn cell(&self, address: IpAddr) -> ClientCell {
        let prefix = match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 72) as u64 | 1 << 63,
        };
        ClientCell((self.key.hash(Name::ROOT, prefix) % CELLS as u64) as u16)
    }

    fn get(&self, cell: ClientCell) -> Cell {
        self.cells.get(usize::from(cell.0)).copied().unwrap_or(EMPTY)
    }

    /// Returns how many queries are waiting in this cell.
    pub(crate) fn waiting(&self, cell: ClientCell) -> u32 {
        self.get(cell).waiting
    }

    /// Returns how many replies of this kind are held in this cell.
    pub(crate) fn held(&self, cell: ClientCell, held: Held) -> u32 {
        let cell = self.get(cell);
        match held {
            Held::Nothing => 0,
            Held::Unproven => cell.unproven,
            Held::Proven => cell.proven,
        }
    }

    /// Returns the oldest query of this cell, if there is any.
    pub(crate) fn oldest(&self, cell: ClientCell) -> Option<u32> {
        let oldest = self.get(cell).oldest;
        (oldest != NIL).then_some(oldest)
    }

    /// Counts one more, the newest; returns the one that was the newest.
    pub(crate) fn enter(&mut self, cell: ClientCell, query: u32, held: Held) -> u32 {
        let Some(entry) = self.cells.get_mut(usize::from(cell.0)) else { return NIL };
        entry.waiting += 1;
        entry.unproven += u32::from(held == Held::Unproven);
        entry.proven += u32::from(held == Held::Proven);
        if entry.oldest == NIL {
            entry.oldest = query;
        }
        let before = std::mem::replace(&mut entry.newest, query);
        let waiting = entry.waiting;
        if waiting >= self.waiting(self.greediest) {
            self.greediest = cell;
            self.greediest_min = self.greediest_min.max(waiting / 8 * 7);
        }
        before
    }

    /// Counts one less, which stood between `older` and `newer`.
    pub(crate) fn leave(&mut self, cell: ClientCell, (older, newer): (u32, u32), held: Held) {
        let Some(entry) = self.cells.get_mut(usize::from(cell.0)) else { return };
        entry.waiting -= 1;
        entry.unproven -= u32::from(held == Held::Unproven);
        entry.proven -= u32::from(held == Held::Proven);
        if older == NIL {
            entry.oldest = newer;
        }
        if newer == NIL {
            entry.newest = older;
        }
    }

    /// Notes that a query of this cell has got its reply, and goes on without.
    pub(crate) fn replied(&mut self, cell: ClientCell, held: Held) {
        if let Some(entry) = self.cells.get_mut(usize::from(cell.0)) {
            entry.unproven -= u32::from(held == Held::Unproven);
            entry.proven -= u32::from(held == Held::Proven);
        }
    }

    /// Returns the client with the most queries, or one with at least seven eighths of that: all
    /// are looked at only when the one that was found last has lost so many.
    pub(crate) fn greediest(&mut self) -> ClientCell {
        if self.waiting(self.greediest) <= self.greediest_min {
            let most = self.cells.iter().enumerate().max_by_key(|(_, cell)| cell.waiting);
            self.greediest = ClientCell(most.map_or(0, |(at, _)| at as u16));
            self.greediest_min = self.waiting(self.greediest) / 8 * 7;
        }
        self.greediest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_greediest_client_is_found_again_when_it_is_no_longer_the_same() {
        let mut clients = Clients::new(HashKey::new([1, 2]));
        let cells: Vec<ClientCell> =
            (0..4).map(|last| clients.cell(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)))).collect();
        for (cell, count) in cells.iter().zip([3, 80, 40, 1]) {
            for query in 0..count {
                clients.enter(*cell, query, Held::Nothing);
            }
        }
        assert_eq!(clients.greediest(), cells[1]);
        for query in 0..60 {
            clients.leave(cells[1], (NIL, query + 1), Held::Nothing);
        }
        assert_eq!(clients.greediest(), cells[2]);
        assert_eq!((clients.waiting(cells[1]), clients.oldest(cells[1])), (20, Some(60)));
    }
}
