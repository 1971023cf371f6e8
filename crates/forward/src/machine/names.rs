//! Upstreams given by name: their addresses, asked for at the bootstrap resolvers and kept fresh.

use std::net::{IpAddr, SocketAddr};

use timers::{Moment, Span, TimerKey};
use wire::{Message, NameBuf, Rcode, Rtype};

use crate::machine::{Forward, Purpose, Token};
use exchange::network::Network;
use exchange::resolve::{Addresses, in_turn};
use exchange::{ServerKey, question};

/// Addresses are asked for again no sooner than this, whatever their TTL.
const REFRESH_MIN: Span = Span::from_ms(30_000);
/// And no later than this.
const REFRESH_MAX: Span = Span::from_ms(3_600_000);
/// When the other family has addresses and this one has none.
const REFRESH_NONE: Span = Span::from_ms(300_000);
/// After a failure while old addresses are at hand.
const RETRY_STOCKED: Span = Span::from_ms(10_000);
/// After a failure while nothing is at hand: recovery must not take longer than a few seconds.
const RETRY_EMPTY: Span = Span::from_ms(1000);
/// Time for one look-up.
const RESOLVE_TIMEOUT: Span = Span::from_ms(2000);
/// How long the first IPv4 addresses of a name wait for the IPv6 ones, which were asked for at the
/// same time (RFC 8305 §3).
const RESOLUTION_DELAY: Span = Span::from_ms(50);
/// The address that worked is tried first for this long (RFC 8305 §9.1 leaves it to us).
const WORKED_FOR: Span = Span::from_ms(600_000);

/// Which addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// A records.
    Four,
    /// AAAA records.
    Six,
}

impl Family {
    /// Returns the type of its records.
    const fn rtype(self) -> Rtype {
        match self {
            Self::Four => Rtype::A,
            Self::Six => Rtype::AAAA,
        }
    }
}

/// One name of an upstream.
pub(super) struct Named {
    name: NameBuf,
    bootstrap: Vec<SocketAddr>,
    /// The hidden pool of its bootstrap resolvers.
    pool: u32,
    users: u32,
    four: Known,
    six: Known,
    /// The address to which a connection was made first, and when.
    worked: Option<(IpAddr, Moment)>,
    /// The end of the wait for IPv6 addresses, while IPv4 ones are known and not used yet.
    settling: Option<TimerKey>,
}

/// What is known of one family of a name.
#[derive(Default)]
struct Known {
    list: Vec<IpAddr>,
    /// Whether this machine has no way to them.
    is_unreachable: bool,
    /// Whether an answer has ever come, even that there are none.
    is_known: bool,
    timer: Option<TimerKey>,
}

impl Named {
    /// Returns all addresses in the order in which they are to be tried (RFC 8305 §4): the families
    /// take turns, IPv6 first unless this machine has no way to it; what worked comes before all
    /// others.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let (first, second) = match (self.six.is_unreachable, self.four.is_unreachable) {
            (true, false) => (&self.four, &self.six),
            _ => (&self.six, &self.four),
        };
        let mut all: Vec<IpAddr> = if first.is_unreachable == second.is_unreachable {
            in_turn(&first.list, &second.list)
        } else {
            first.list.iter().chain(&second.list).copied().collect()
        };
        if let Some((worked, _)) = self.worked
            && let Some(at) = all.iter().position(|address| *address == worked)
        {
            all.get_mut(..=at).unwrap_or_default().rotate_right(1);
        }
        all
    }

    fn family(&mut self, family: Family) -> &mut Known {
        match family {
            Family::Four => &mut self.four,
            Family::Six => &mut self.six,
        }
    }
}

impl<N: Network> Forward<N> {
    /// Returns the entry of a name, with one more user, and whether it is new.
    pub(super) fn acquire_name(
        &mut self,
        name: &NameBuf,
        bootstrap: &[SocketAddr],
        now: Moment,
    ) -> (u32, bool) {
        let known = self
            .named
            .iter()
            .find(|(_, named)| named.name == *name && named.bootstrap == bootstrap)
            .map(|(key, _)| key);
        if let Some(key) = known {
            if let Some(named) = self.named.get_mut(key) {
                named.users += 1;
            }
            return (key as u32, false);
        }
        let pool = self.build_bootstrap(bootstrap, now);
        let key = self.named.insert(Named {
            name: *name,
            bootstrap: bootstrap.to_vec(),
            pool,
            users: 1,
            four: Known::default(),
            six: Known::default(),
            worked: None,
            settling: None,
        });
        (key as u32, true)
    }

    /// Lets go of a name.
    pub(super) fn release_name(&mut self, key: u32) {
        let Some(named) = self.named.get_mut(key as usize) else { return };
        named.users -= 1;
        if named.users == 0
            && let Some(named) = self.named.try_remove(key as usize)
        {
            for timer in [named.four.timer, named.six.timer, named.settling].into_iter().flatten() {
                self.wheel.cancel(timer);
            }
            self.retire_pool(named.pool);
        }
    }

    /// Asks for all addresses of a name.
    pub(super) fn resolve_all(&mut self, key: u32, now: Moment) {
        for family in [Family::Four, Family::Six] {
            self.name_due(key, family, now);
        }
    }

    /// Asks for the addresses of a name.
    pub(super) fn name_due(&mut self, key: u32, family: Family, now: Moment) {
        let Some(named) = self.named.get_mut(key as usize) else { return };
        named.family(family).timer = None;
        let (name, pool) = (named.name, named.pool);
        if named.bootstrap.is_empty() || self.is_stopping {
            return;
        }
        self.counters.resolutions.bump();
        let purpose = Purpose::Resolve { named: key, family };
        let fetch = self.insert(purpose, pool, question(name, family.rtype()), now + RESOLVE_TIMEOUT);
        self.start(fetch, now);
    }

    /// Takes the answer to such a question; `None` when there was none.
    pub(super) fn resolved(&mut self, key: u32, family: Family, reply: Option<&Message<'_>>, now: Moment) {
        let Some(named) = self.named.get_mut(key as usize) else { return };
        let found = reply.filter(|reply| reply.rcode() == Rcode::NOERROR).map(|reply| {
            let mut found = Addresses::read(reply, &named.name, family.rtype());
            // The order changes with every answer of many servers; it must not look like a change.
            found.list.sort_unstable();
            found
        });
        let other_has = match family {
            Family::Four => !named.six.list.is_empty(),
            Family::Six => !named.four.list.is_empty(),
        };
        let here = named.family(family);
        if let Some(first) = found.as_ref().and_then(|found| found.list.first()) {
            here.is_unreachable = !self.exchange.reaches(*first);
        }
        let mut changed = false;
        let again = match found {
            Some(Addresses { list, ttl }) if !list.is_empty() => {
                changed = here.list != list;
                here.list = list;
                Span::from_ms(u64::from(ttl) * 1000).clamp(REFRESH_MIN, REFRESH_MAX)
            }
            // It exists and has no such address. Old ones are let go of only if the other family
            // has some.
            Some(_) if other_has => {
                changed = !here.list.is_empty();
                here.list.clear();
                REFRESH_NONE
            }
            _ if !here.list.is_empty() || other_has => RETRY_STOCKED,
            _ => RETRY_EMPTY,
        };
        let again = self.jittered(again);
        let timer = self.wheel.set(now + again, Token::Name(key, family));
        if let Some(named) = self.named.get_mut(key as usize) {
            let here = named.family(family);
            here.timer = Some(timer);
            here.is_known = true;
            if changed && family == Family::Four && !named.six.is_known {
                if named.settling.is_none() {
                    named.settling = Some(self.wheel.set(now + RESOLUTION_DELAY, Token::Settle(key)));
                }
                return;
            }
            // What waited for this answer waits no longer, whatever it says.
            changed |= named.settling.is_some();
        }
        if changed {
            self.settle_name(key, now);
        }
    }

    /// Uses what is known of a name.
    pub(super) fn settle_name(&mut self, key: u32, now: Moment) {
        let settling = self.named.get_mut(key as usize).and_then(|named| named.settling.take());
        if let Some(timer) = settling {
            self.wheel.cancel(timer);
        }
        self.readdress(key, now);
    }
}

impl<N: Network> Forward<N> {
    /// Notes that a connection to this upstream was made; if it is one of several addresses of a
    /// name, it is tried first from now on.
    pub(super) fn worked(&mut self, server: ServerKey, now: Moment) {
        let Some(server) = self.exchange.server(server) else { return };
        let address = server.remote.address.ip();
        let down = self.exchange.servers().filter(|other| !other.health.is_up());
        let down: Vec<IpAddr> = down.map(|other| other.remote.address.ip()).collect();
        let mut changed = Vec::new();
        for (name, named) in &mut self.named {
            let others = named.four.list.len() + named.six.list.len();
            if others < 2 || !named.four.list.contains(&address) && !named.six.list.contains(&address) {
                continue;
            }
            // Whatever worked before it is kept while it does.
            let is_kept = named.worked.is_some_and(|(before, since)| {
                before == address || now.since(since) < WORKED_FOR && !down.contains(&before)
            });
            if !is_kept {
                let before = named.addresses();
                named.worked = Some((address, now));
                if named.addresses() != before {
                    changed.push(name as u32);
                }
            }
        }
        for name in changed {
            self.readdress(name, now);
        }
    }
}
