//! Connections, of which there are only so many at once.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

/// Pause after a failed `accept`, so that a lack of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What becomes of a new connection when there are as many as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits until one of them ends.
    Waits,
    /// The oldest of those from the network that has the most is ended for it: whoever opens more
    /// and more ends their own. One with a [`Proof`] is ended only where all have one.
    EndsOldest,
}

/// Whether somebody has shown on a connection who they are.
#[derive(Clone, Debug, Default)]
pub struct Proof(Arc<AtomicBool>);

impl Proof {
    /// Notes that they have.
    pub fn give(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection that is open: something of it, where it has come from, and whether it is known
/// whose it is.
type Open<T> = (T, Option<IpAddr>, Proof);

/// A connection that has come from somewhere.
pub trait Accepted {
    /// Returns the address that it has come from; `None` if it is of this machine.
    fn address(&self) -> Option<IpAddr>;
}

impl Accepted for (TcpStream, SocketAddr) {
    fn address(&self) -> Option<IpAddr> {
        Some(self.1.ip())
    }
}

impl Accepted for (UnixStream, tokio::net::unix::SocketAddr) {
    fn address(&self) -> Option<IpAddr> {
        None
    }
}

/// Returns the network that one person has: a /24, or a /56.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & !0xff).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !((1 << 72) - 1)).into(),
    }
}

/// Returns which of the connections, in the order of their age, makes way for one from `network`.
fn makes_way<T>(by_age: &VecDeque<Open<T>>, network: Option<IpAddr>) -> Option<usize> {
    // A stranger's connections are not to end those of people who are known.
    let are_all_known = by_age.iter().all(|(_, _, proof)| proof.is_given());
    let may_end = |proof: &Proof| are_all_known || !proof.is_given();
    let mut counts = HashMap::from([(network, 1)]);
    for (_, from, _) in by_age.iter().filter(|(_, _, proof)| may_end(proof)) {
        *counts.entry(*from).or_insert(0) += 1;
    }
    let most = counts.values().copied().max()?;
    by_age.iter().position(|(_, from, proof)| may_end(proof) && counts.get(from) == Some(&most))
}

/// Accepts connections and converses with each beside the others, with at most `connections_max` at
/// once; never ends. Dropping it ends every connection.
///
/// # Errors
///
/// None: what cannot be accepted is tried again.
pub async fn converse_with_all<C, A, T>(
    (connections_max, when_full): (usize, WhenFull),
    accept: impl Fn() -> A,
    converse: impl Fn(C, Proof) -> T,
) -> io::Result<()>
where
    C: Accepted,
    A: Future<Output = io::Result<C>>,
    T: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut by_age = VecDeque::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= connections_max && when_full == WhenFull::Waits {
            connections.join_next().await;
            continue;
        }
        match accept().await {
            Ok(connection) => {
                let network = connection.address().map(network_of);
                by_age.retain(|(open, ..): &Open<AbortHandle>| !open.is_finished());
                if by_age.len() >= connections_max
                    && let Some((oldest, ..)) = makes_way(&by_age, network).and_then(|at| by_age.remove(at))
                {
                    oldest.abort();
                }
                let proof = Proof::default();
                let open = connections.spawn(converse(connection, proof.clone()));
                by_age.push_back((open, network, proof));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_the_most_makes_way() {
        let network = |text: &str| Some(network_of(text.parse().expect("an address")));
        let open = |from: &[&str]| {
            from.iter().map(|from| ((), network(from), Proof::default())).collect::<VecDeque<_>>()
        };
        let check = |from: &[&str], new: &str, expect: usize| {
            assert_eq!(makes_way(&open(from), network(new)), Some(expect), "{new} after {from:?}");
        };
        check(&["192.0.2.1", "198.51.100.1", "198.51.100.2"], "203.0.113.1", 1);
        check(&["192.0.2.1", "198.51.100.1", "198.51.100.2"], "198.51.100.9", 1);
        // All have as many: the oldest.
        check(&["192.0.2.1", "198.51.100.1"], "203.0.113.1", 0);
        check(&["192.0.2.1", "198.51.100.1"], "198.51.100.1", 1);
        check(&["2001:db8:0:1::1", "2001:db8:0:ff::1", "2001:db8:0:100::1"], "192.0.2.1", 0);
        check(&["2001:db8:0:100::1", "2001:db8:0:ff::1", "2001:db8:0:1::1"], "192.0.2.1", 1);
    }

    #[test]
    fn who_is_known_makes_way_for_no_stranger() {
        let network = network_of(Ipv4Addr::LOCALHOST.into());
        let open = |known: &[bool]| -> VecDeque<Open<()>> {
            let open = known.iter().map(|is_known| {
                let proof = Proof::default();
                if *is_known {
                    proof.give();
                }
                ((), Some(network), proof)
            });
            open.collect()
        };
        assert_eq!(makes_way(&open(&[true, true, false, false]), Some(network)), Some(2));
        // Of strangers elsewhere the network that has the most is not that of who is known.
        assert_eq!(makes_way(&open(&[true, true, false]), None), Some(2));
        assert_eq!(makes_way(&open(&[true, true]), Some(network)), Some(0), "one of them has to");
    }
}
