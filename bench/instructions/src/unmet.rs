//! A cached answer under policies as an `unbound.conf` makes them, of which no rule is met.

use std::sync::Arc;

use cache::Cache;
use engine::local::LocalBuilder;
use engine::matchers::Matcher;
use engine::ops::answer::{Block, BlockWith, Build, Listed};
use engine::ops::cache::{CacheRules, CacheStep, Early};
use engine::ops::forward::ForwardStep;
use engine::program::Op;
use engine::{PoolId, special};
use sets::{AddressSetBuilder, Blocklist, BlocklistBuilder, NameSetBuilder, Reach, Treatment, Trigger};
use wire::{Rcode, Rtype, Ttl};

use super::Case;
use super::common::{Ask, KEY, Server, gate, name, with_address};

/// Names that the response policy zone has rules for.
const LISTED: usize = 1000;

/// What the policy has that is not met.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmet {
    /// Nothing: local zones, cache and servers alone.
    Nothing,
    /// A view of some clients, and a local zone for clients with a tag.
    ViewsAndTags,
    /// A response policy zone with rules on names.
    PolicyZone,
    /// The same with rules on clients and on addresses, too.
    PolicyZoneOfAddresses,
}

/// Returns a server with this policy and a thousand answers in its cache, and one query for each.
pub(crate) fn case(unmet: Unmet) -> Case {
    let mut server = Server::with(gate(), |cache| steps(unmet, cache));
    let asks: Vec<Ask> = (0..1000).map(|i| Ask::new(&format!("domain-{i}.example.com"), Rtype::A)).collect();
    for (i, ask) in (0_u32..).zip(&asks) {
        server.fetch(ask, &with_address(ask, 3600, i.to_be_bytes()));
    }
    Case { server, queries: asks.iter().map(Ask::bytes).collect() }
}

/// Returns a matcher of clients with this prefix of version 4.
fn clients(prefix: [u8; 4], length: u8) -> Matcher {
    let mut set = AddressSetBuilder::new();
    assert!(set.prefix(prefix.into(), length));
    Matcher::Client(Arc::new(set.compile()))
}

/// Returns a matcher of a name and those below it.
fn below(text: &str) -> Matcher {
    let mut set = NameSetBuilder::new(&KEY);
    set.name(name(text).as_name(), Reach::ItselfAndBelow, 1);
    Matcher::Qname(Arc::new(set.compile()))
}

fn local() -> Op {
    let mut local = LocalBuilder::new();
    special::add(&mut local);
    Op::Local(Arc::new(local.compile(KEY, Ttl::new(60))))
}

fn steps(unmet: Unmet, cache: &Arc<Cache>) -> Vec<Op> {
    let list = match unmet {
        Unmet::Nothing | Unmet::ViewsAndTags => None,
        Unmet::PolicyZone => Some(policy_zone(false)),
        Unmet::PolicyZoneOfAddresses => Some(policy_zone(true)),
    };
    let rules = CacheRules { prefetch_percent: 0, ..CacheRules::default() };
    let step = CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: list.is_some() };
    let mut ops = match unmet {
        Unmet::ViewsAndTags => vec![
            Op::Cache(step.early(Early::OfOrdinaryClients)),
            // The zones of the view, for its clients, and those of all, for all others.
            Op::SkipUnless(clients([10, 1, 0, 0], 16), 3),
            Op::SkipUnless(below("view.example"), 1),
            Op::Reject(Rcode::NXDOMAIN, None),
            local(),
            Op::SkipIf(clients([10, 1, 0, 0], 16), 4),
            Op::SkipUnless(clients([10, 2, 0, 0], 16), 2),
            Op::SkipUnless(below("tag.example"), 1),
            Op::Reject(Rcode::REFUSED, None),
            local(),
        ],
        Unmet::Nothing => vec![local()],
        Unmet::PolicyZone | Unmet::PolicyZoneOfAddresses => vec![Op::Cache(step.early(Early::Yes)), local()],
    };
    ops.extend(list.as_ref().map(listed));
    ops.extend([
        Op::Cache(step),
        Op::SkipIf(Matcher::Answer, 1),
        Op::Forward(ForwardStep {
            pool: PoolId(0),
            members: 0,
            forwards_client_subnet: false,
            trusts_ad: false,
        }),
    ]);
    // The answer is looked at, too: at its aliases and addresses.
    ops.extend(list.as_ref().map(listed));
    ops
}

fn policy_zone(has_addresses: bool) -> Arc<Blocklist> {
    let mut list = BlocklistBuilder::new(&KEY);
    let mut zone = list.zone();
    let mut line = 0;
    let mut add = |trigger: Trigger<'_>| {
        line += 1;
        assert!(zone.rule(trigger, Some(Treatment::Rcode(Rcode::NXDOMAIN)), line));
    };
    for number in 0..LISTED / 2 {
        let bad = name(&format!("bad{number}.test"));
        add(Trigger::Name(bad.as_name()));
        add(Trigger::Below(bad.as_name()));
    }
    if has_addresses {
        add(Trigger::Client([10, 0, 0, 1].into(), 32));
        add(Trigger::Answer([192, 0, 2, 0].into(), 24));
    }
    list.add_zone(zone.compile());
    let names = NameSetBuilder::new(&KEY).compile();
    Arc::new(list.compile(Arc::new(names), Vec::new(), Vec::new()))
}

fn listed(list: &Arc<Blocklist>) -> Op {
    let block = Block {
        with: BlockWith::Rcode(Rcode::NXDOMAIN),
        ttl: Ttl::new(60),
        ede: None,
        authoritative: true,
        has_soa: false,
        continues: false,
    };
    let list = Arc::clone(list);
    Op::Answer(Build::Listed(Listed { list, block, overrides: false, by_address: true, labels: None }))
}
