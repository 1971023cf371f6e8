//! How often clients may have something done that costs as much as many answers.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv4Addr};

use engine::gate::rate::{RateRule, RateTable};
use plan::listeners::TcpPlan;

/// Cells in which clients are counted: 128 KB, shared by all workers. More clients than that at
/// once are not limited one by one, but together.
const CLIENT_CELLS: usize = 1 << 14;

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Yes,
    /// The client had as many as it may.
    NotThisClient,
    /// All clients together had as many as they may.
    Nobody,
}

/// Counts for all workers, by client and together.
#[derive(Debug)]
pub(crate) struct Allowances {
    all: (RateTable, RateRule),
    clients: (RateTable, RateRule),
}

impl Allowances {
    /// Allows each client what it may have in handshakes of TLS, and all together so many.
    pub(crate) fn new(plan: &TcpPlan, all_per_second: u32) -> Self {
        let seed = || RandomState::new().hash_one(0_u8);
        let rule = |per_second: u32, burst: u32| RateRule {
            per_second,
            burst: burst.max(per_second),
            slip: 0,
            ipv4_prefix: plan.client_bits_v4,
            ipv6_prefix: plan.client_bits_v6,
            ..RateRule::default()
        };
        Self {
            all: (RateTable::new(1, seed()), rule(all_per_second, 0)),
            clients: (
                RateTable::new(CLIENT_CELLS, seed()),
                rule(plan.handshakes_per_client, plan.handshakes_burst),
            ),
        }
    }

    /// Takes one, unless the client, or all together, had as many as they may.
    pub(crate) fn take(&self, client: IpAddr, now_ms: u64) -> Allowed {
        // One cell counts for everybody.
        const EVERYBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let (clients, rule) = &self.clients;
        let (all, of_all) = &self.all;
        if !clients.admit(rule, client, false, now_ms) {
            Allowed::NotThisClient
        } else if all.admit(of_all, EVERYBODY, false, now_ms) {
            Allowed::Yes
        } else {
            Allowed::Nobody
        }
    }
}
