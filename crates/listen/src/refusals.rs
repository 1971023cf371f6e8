//! Clients that were refused because of a limit that holds for each of them: for the log, which
//! says so now and then.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use plan::listeners::Prefix;

/// Clients that are remembered at a time. Others are counted together.
const CLIENTS_MAX: usize = 256;

/// What a client was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A connection: it had as many as it may.
    Connection,
    /// A handshake: it had begun as many as it may.
    Handshake,
}

/// How often a client was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Connections, because it had as many as it may.
    pub connections: u64,
    /// Handshakes of TLS, because it had begun as many as it may.
    pub handshakes: u64,
}

impl Refused {
    /// Returns how many in all.
    pub const fn total(&self) -> u64 {
        self.connections + self.handshakes
    }
}

/// What was refused since the last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalReport {
    /// The client that was refused most often.
    pub client: Prefix,
    /// How often it was.
    pub refused: Refused,
    /// How often others were.
    pub others: u64,
}

/// Counts refusals. Touched when a connection is refused, never per query: that is why it may have
/// a lock.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<(HashMap<Prefix, Refused>, u64)>);

impl Refusals {
    /// Notes that a client was refused.
    #[cold]
    pub(crate) fn note(&self, client: Prefix, refusal: Refusal) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (clients, others) = &mut *kept;
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(&client) {
            *others += 1;
            return;
        }
        let refused = clients.entry(client).or_default();
        match refusal {
            Refusal::Connection => refused.connections += 1,
            Refusal::Handshake => refused.handshakes += 1,
        }
    }

    /// Returns what was refused since the last call; `None` if nothing was.
    pub fn take(&self) -> Option<RefusalReport> {
        let (clients, others) = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let all: u64 = others + clients.values().map(Refused::total).sum::<u64>();
        let (client, refused) = clients.into_iter().max_by_key(|(_, refused)| refused.total())?;
        Some(RefusalReport { client, refused, others: all - refused.total() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u32) -> Prefix {
        Prefix::new(std::net::Ipv4Addr::from(number).into(), 32)
    }

    #[test]
    fn the_client_that_was_refused_most_is_named_and_the_others_are_counted() {
        let refusals = Refusals::default();
        assert_eq!(refusals.take(), None);
        refusals.note(client(1), Refusal::Connection);
        refusals.note(client(2), Refusal::Connection);
        refusals.note(client(2), Refusal::Handshake);
        let refused = Refused { connections: 1, handshakes: 1 };
        assert_eq!(refusals.take(), Some(RefusalReport { client: client(2), refused, others: 1 }));
        assert_eq!(refusals.take(), None, "it is told once");
    }

    #[test]
    fn any_number_of_clients_takes_little_memory() {
        let refusals = Refusals::default();
        for number in 0..10_000 {
            refusals.note(client(number), Refusal::Handshake);
        }
        let report = refusals.take().expect("they were refused");
        assert_eq!((report.refused.total(), report.others), (1, 9999));
    }
}
