//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Unconnected UDP sockets on random ports, of which one is drawn for each query.

use queries::transactions::{Transaction, Transactions};
use rand::RngExt;
use rand::rngs::StdRng;
use slab::Slab;
use timers::{Moment, Span, TimerKey, Wheel};

use super::deadlines::Token;
use super::limits::PoolLimits;
use super::network::{Family, PoolNetwork, PoolSocketKey};

/// Stray datagrams on one socket, besides late replies, after which its port is given up.
const STRAYS_MAX: u32 = 256;
/// Sockets that wait for their last replies, for each one in use.
const DRAINING_PER_SOCKET: usize = 2;
/// Time after which a port whose life is over is looked at again, while too many others drain.
const POSTPONED: Span = Span::from_ms(1000);

/// One UDP socket.
struct Socket {
    family: Family,
    transactions: Transactions,
    sent: u32,
    /// Datagrams that nobody waits for.
    strays: u32,
    /// Queries that ended without a reply: as many strays may be late replies.
    unanswered: u32,
    /// Sends nothing more; closed when the last reply is in.
    is_retiring: bool,
    timer: TimerKey,
}

/// What opening a socket takes.
pub(super) struct Means<'m, N> {
    pub(super) network: &'m mut N,
    pub(super) rng: &'m mut StdRng,
    pub(super) wheel: &'m mut Wheel<Token>,
    pub(super) limits: &'m PoolLimits,
}

/// The sockets of both families.
#[derive(Default)]
pub(super) struct Pool {
    sockets: Slab<Socket>,
    families: [InUse; 2],
    draining: usize,
    /// Sockets that are drained and can be closed at the next flush.
    closing: Vec<PoolSocketKey>,
}

/// The sockets of one family that queries may leave through.
#[derive(Default)]
struct InUse {
    keys: Vec<PoolSocketKey>,
    /// The last one drawn, and how many more queries may share it.
    drawn: Option<(PoolSocketKey, u16)>,
}

impl Pool {
    /// Returns how many sockets are open, those that drain included.
    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Draws the socket for a query; `None` if there is none and none can be opened.
    pub(super) fn draw<N: PoolNetwork>(
        &mut self,
        family: Family,
        means: &mut Means<'_, N>,
        now: Moment,
    ) -> Option<PoolSocketKey> {
        if let Some((key, left)) = &mut self.in_use(family).drawn
            && *left > 0
        {
            *left -= 1;
            return Some(*key);
        }
        let at = means.rng.random_range(0..usize::from(means.limits.sockets.max(1)));
        let held = self.in_use(family).keys.get(at).copied();
        let key = match held {
            Some(key) if !self.is_worn(key, means.limits) => key,
            Some(worn) => self.replace(worn, family, means, now),
            // What is in use already is better than nothing.
            None => self.open(family, means, now).or_else(|| self.any(family, means.rng))?,
        };
        self.in_use(family).drawn = Some((key, means.limits.draw_queries.saturating_sub(1)));
        Some(key)
    }

    /// Registers a query under a random ID; `None` if the socket has too many.
    pub(super) fn begin(
        &mut self,
        key: PoolSocketKey,
        rng: &mut StdRng,
        query: u32,
        question: u32,
    ) -> Option<u16> {
        let socket = self.sockets.get_mut(key.0 as usize)?;
        let id = socket.transactions.begin(rng, query, 0, question)?;
        socket.sent = socket.sent.saturating_add(1);
        Some(id)
    }

    /// Returns the query with this ID on a socket.
    pub(super) fn find(&self, key: PoolSocketKey, id: u16) -> Option<u32> {
        self.sockets.get(key.0 as usize)?.transactions.find(id).map(|transaction| transaction.request)
    }

    /// Walks the queries on a socket.
    pub(super) fn iter(&self, key: PoolSocketKey) -> impl Iterator<Item = &Transaction> {
        self.sockets.get(key.0 as usize).into_iter().flat_map(|socket| socket.transactions.iter())
    }

    /// Returns one of the queries on a socket.
    pub(super) fn any_query(&self, key: PoolSocketKey) -> Option<u32> {
        self.iter(key).next().map(|transaction| transaction.request)
    }

    /// Forgets a query.
    pub(super) fn end(&mut self, key: PoolSocketKey, id: u16, is_answered: bool) {
        let Some(socket) = self.sockets.get_mut(key.0 as usize) else { return };
        socket.transactions.end(id);
        if !is_answered {
            socket.unanswered = socket.unanswered.saturating_add(1);
        }
        if socket.is_retiring && socket.transactions.is_empty() {
            self.closing.push(key);
        }
    }

    /// Counts a datagram that nobody waits for; returns whether somebody floods the port.
    pub(super) fn stray(&mut self, key: PoolSocketKey) -> bool {
        let Some(socket) = self.sockets.get_mut(key.0 as usize) else { return false };
        socket.strays = socket.strays.saturating_add(1);
        !socket.is_retiring && socket.strays > STRAYS_MAX.saturating_add(socket.unanswered)
    }

    /// Ends the life of a port, or postpones it while too many others drain.
    pub(super) fn due<N>(&mut self, key: PoolSocketKey, means: &mut Means<'_, N>, now: Moment) {
        let timer = if self.retire(key, means.limits) {
            TimerKey::NONE
        } else {
            means.wheel.set(now + POSTPONED, Token::Socket(key.0))
        };
        if let Some(socket) = self.sockets.get_mut(key.0 as usize) {
            socket.timer = timer;
        }
    }

    /// Takes a socket out of use; it is closed once nothing is outstanding on it. Returns false if
    /// too many others drain.
    pub(super) fn retire(&mut self, key: PoolSocketKey, limits: &PoolLimits) -> bool {
        let is_retiring = self.sockets.get(key.0 as usize).is_none_or(|socket| socket.is_retiring);
        if !is_retiring && !self.has_room_to_drain(limits) {
            return false;
        }
        self.give_up(key);
        true
    }

    /// Takes a socket out of use, however many drain.
    pub(super) fn give_up(&mut self, key: PoolSocketKey) {
        let Some(socket) = self.sockets.get_mut(key.0 as usize) else { return };
        if std::mem::replace(&mut socket.is_retiring, true) {
            return;
        }
        self.draining += 1;
        if socket.transactions.is_empty() {
            self.closing.push(key);
        }
        let family = socket.family;
        let in_use = self.in_use(family);
        in_use.keys.retain(|held| *held != key);
        in_use.drawn = in_use.drawn.filter(|(drawn, _)| *drawn != key);
    }

    /// Takes all sockets out of use, however many drain.
    pub(super) fn give_up_all(&mut self) {
        for at in 0..self.sockets.capacity() as u32 {
            self.give_up(PoolSocketKey(at));
        }
    }

    fn has_room_to_drain(&self, limits: &PoolLimits) -> bool {
        self.draining < usize::from(limits.sockets.max(1)) * DRAINING_PER_SOCKET
    }

    /// Ends the sharing of draws: what was queued has left.
    pub(super) fn flushed(&mut self) {
        for family in &mut self.families {
            family.drawn = None;
        }
    }

    /// Closes the sockets that are retired and have nothing outstanding.
    pub(super) fn close_drained<N: PoolNetwork>(&mut self, network: &mut N, wheel: &mut Wheel<Token>) {
        while let Some(key) = self.closing.pop() {
            if let Some(socket) = self.sockets.try_remove(key.0 as usize) {
                wheel.cancel(socket.timer);
                network.close(key);
                self.draining -= 1;
            }
        }
    }

    fn in_use(&mut self, family: Family) -> &mut InUse {
        let [v4, v6] = &mut self.families;
        match family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }

    fn is_worn(&self, key: PoolSocketKey, limits: &PoolLimits) -> bool {
        self.sockets.get(key.0 as usize).is_none_or(|socket| socket.sent >= limits.port_queries)
    }

    /// Opens a socket in place of a worn one, which stays if that cannot be.
    #[cold]
    fn replace<N: PoolNetwork>(
        &mut self,
        worn: PoolSocketKey,
        family: Family,
        means: &mut Means<'_, N>,
        now: Moment,
    ) -> PoolSocketKey {
        // A new one first: as long as the worn one holds its port, the kernel draws another.
        match self.has_room_to_drain(means.limits).then(|| self.open(family, means, now)).flatten() {
            Some(fresh) => {
                self.retire(worn, means.limits);
                fresh
            }
            None => worn,
        }
    }

    #[cold]
    fn open<N: PoolNetwork>(
        &mut self,
        family: Family,
        means: &mut Means<'_, N>,
        now: Moment,
    ) -> Option<PoolSocketKey> {
        let entry = self.sockets.vacant_entry();
        let key = PoolSocketKey(entry.key() as u32);
        // Whether we lack descriptors or the family: there is no such socket, whoever is asked.
        means.network.open(key, family).ok()?;
        entry.insert(Socket {
            family,
            transactions: Transactions::default(),
            sent: 0,
            strays: 0,
            unanswered: 0,
            is_retiring: false,
            timer: means.wheel.set(now + means.limits.port_life, Token::Socket(key.0)),
        });
        self.in_use(family).keys.push(key);
        Some(key)
    }

    #[cold]
    fn any(&mut self, family: Family, rng: &mut StdRng) -> Option<PoolSocketKey> {
        let keys = &self.in_use(family).keys;
        keys.get(rng.random_range(0..keys.len().max(1))).copied()
    }
}
