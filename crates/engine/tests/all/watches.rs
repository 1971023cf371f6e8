//! Response policy zones that are asked before servers are.

use std::sync::Arc;

use cache::Cache;
use engine::ops::answer::{Block, BlockWith, Build, Listed};
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::recurse::RecurseStep;
use engine::program::{Matcher, Op};
use engine::{
    NameServer, NameServers, Outcome, Reply, ResolveWant, Resolved, ResolverId, Security, Share, Suspended,
    Verdict, Want,
};
use sets::{Blocklist, BlocklistBuilder, NameSetBuilder, Treatment, Trigger};
use wire::{Message, Name, Rcode, Rtype};

use crate::common;
use common::{Ask, Server, gate, header, seen, upstream, with_address};

const SERVER: [u8; 4] = [203, 0, 113, 5];

/// The name servers of `example.org`.
struct Hosting;

impl NameServers for Hosting {
    fn each(&self, name: Name<'_>, _: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool) {
        if name.is_at_or_below(common::name("example.org").as_name()) {
            let _ = f(NameServer::Address(SERVER.into()));
        }
    }
}

fn www() -> Ask {
    Ask::new("www.example.org", Rtype::A)
}

/// Returns a list whose response policy zone has a rule on a name server's address.
fn policy_zone(treatment: Option<Treatment>) -> Arc<Blocklist> {
    let mut list = BlocklistBuilder::new(&common::KEY);
    let mut zone = list.zone();
    assert!(zone.rule(Trigger::ServerAddress([203, 0, 113, 0].into(), 24), treatment, 1));
    list.add_zone(zone.compile());
    let names = NameSetBuilder::new(&common::KEY).compile();
    Arc::new(list.compile(Arc::new(names), Vec::new(), Vec::new()))
}

fn nxdomain() -> Option<Treatment> {
    Some(Treatment::Rcode(Rcode::NXDOMAIN))
}

fn listed(list: &Arc<Blocklist>) -> Op {
    let block = Block {
        with: BlockWith::Rcode(Rcode::NXDOMAIN),
        ttl: wire::Ttl::new(60),
        ede: None,
        authoritative: true,
        has_soa: false,
        continues: false,
    };
    Op::Answer(Build::Listed(Listed {
        list: Arc::clone(list),
        block,
        overrides: false,
        by_address: true,
        labels: None,
    }))
}

/// Returns steps that keep what a resolver finds, and look at it in `then`.
fn steps(cache: &Arc<Cache>, then: Vec<Op>) -> Vec<Op> {
    let (cache, rules) = (Arc::clone(cache), CacheRules::default());
    let mut ops = vec![
        Op::Cache(CacheStep { cache, rules, view: 0, continues: true }),
        Op::SkipIf(Matcher::Answer, 1),
        Op::Recurse(RecurseStep {
            resolver: ResolverId(3),
            wants_servers: false,
            sends_subnets: false,
            refers: false,
        }),
    ];
    ops.extend(then);
    ops
}

fn server(then: impl FnOnce() -> Vec<Op>) -> Server {
    let mut server = Server::with(gate(), |cache| steps(cache, then()));
    server.engine.know_servers(Box::new(Hosting));
    server
}

fn want(suspended: &Suspended) -> &ResolveWant {
    let Want::Resolve(want) = suspended.want() else { panic!("it asks no resolver") };
    want
}

/// Goes on with what a resolver says, which is what is known so far (`is_interim`) or all.
fn go_on(
    server: &mut Server,
    suspended: Box<Suspended>,
    (octets, is_interim): (&[u8], bool),
) -> Result<Vec<u8>, Box<Suspended>> {
    let message = &Message::parse(octets).expect("well formed");
    let (security, is_unsigned, scope) = (Security::Insecure, true, None);
    let resolved = Resolved { message, security, is_unsigned, scope, is_interim };
    let mut buffer = vec![0; 4096];
    let mut reply = Reply::new(&mut buffer);
    match server.engine.resume(suspended, Outcome::Resolved(resolved), Share::First, &mut reply) {
        Verdict::Defer(again) => Err(again),
        Verdict::Answered | Verdict::Drop | Verdict::Stream(_) => Ok(reply.bytes().to_vec()),
    }
}

/// Returns the reply that says nothing yet.
fn nothing_yet() -> Vec<u8> {
    upstream(&www(), Rcode::NOERROR, |_| {})
}

#[test]
fn a_resolver_is_told_which_names_and_servers_policy_zones_have_rules_on() {
    let mut server = server(|| vec![listed(&policy_zone(nxdomain()))]);
    let suspended = server.ask(&www()).deferred();
    let watch = want(&suspended).watch.as_ref().expect("a policy zone");
    assert!(watch.looks_at_servers());
    let [inside, outside] = ["www.example.org", "www.example.net"].map(common::name);
    assert!(watch.speaks_of(inside.as_name(), Some(&Hosting), 0));
    assert!(!watch.speaks_of(inside.as_name(), None, 0), "its servers are not known yet");
    assert!(!watch.speaks_of(outside.as_name(), Some(&Hosting), 0));
}

#[test]
fn exceptions_need_no_say_before_servers_are_asked() {
    let mut server = server(|| vec![listed(&policy_zone(None))]);
    let suspended = server.ask(&www()).deferred();
    let watch = want(&suspended).watch.as_ref().expect("a policy zone");
    assert!(!watch.speaks_of(common::name("www.example.org").as_name(), Some(&Hosting), 0));
}

#[test]
fn without_policy_zones_nobody_is_asked_before_servers() {
    let mut server = server(Vec::new);
    assert!(want(&server.ask(&www()).deferred()).watch.is_none());
}

#[test]
fn what_a_policy_zone_makes_of_what_is_known_so_far_is_the_answer_and_is_not_kept() {
    let mut server = server(|| vec![listed(&policy_zone(nxdomain()))]);
    for _ in 0..2 {
        let suspended = server.ask(&www()).deferred();
        let reply = go_on(&mut server, suspended, (&nothing_yet(), true)).ok().expect("an answer");
        assert_eq!(header(&reply).flags.rcode(), Rcode::NXDOMAIN);
    }
}

#[test]
fn a_client_that_no_rule_is_for_gets_what_servers_say() {
    // The list is looked at for nobody who has an answer.
    let mut server = server(|| vec![Op::SkipIf(Matcher::Answer, 1), listed(&policy_zone(nxdomain()))]);
    let suspended = server.ask(&www()).deferred();
    assert!(want(&suspended).watch.is_some());
    let again = go_on(&mut server, suspended, (&nothing_yet(), true)).expect_err("it asks again");
    assert!(want(&again).watch.is_none(), "servers at once");
    let address = with_address(&www(), 300, [192, 0, 2, 7]);
    let reply = go_on(&mut server, again, (&address, false)).ok().expect("an answer");
    assert_eq!(seen(&reply).answers, [(1, 300, vec![192, 0, 2, 7])]);
    assert_eq!(seen(&server.ask(&www()).answered()).answers.len(), 1, "it is kept");
}
