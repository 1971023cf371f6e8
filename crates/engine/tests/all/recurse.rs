//! What a resolver finds, and what it says when it finds nothing.

use std::sync::Arc;

use engine::explain::{Did, Event, Recorder};
use engine::ops::answer::{Block, BlockWith, Build};
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::outgoing::{Change, OutFlag, SubnetChange};
use engine::ops::recurse::RecurseStep;
use engine::ops::split::{BranchReport, Fallback, Next, Progress, Rule, SplitStep, Standby, Unusable};
use engine::program::{Matcher, Op};
use engine::{
    NameServer, NameServers, Outcome, Reply, ResolveWant, Resolved, ResolverId, Security, Share, Suspended,
    Unresolved, Verdict, Want, Won,
};
use sets::{
    AddressSet, AddressSetBuilder, Blocklist, BlocklistBuilder, NameSet, NameSetBuilder, Reach, ServerRule,
    Treatment, Trigger,
};
use wire::{EdeCode, Flags, Message, Name, OptionCode, Rcode, Rtype};

use crate::common;
use common::{Ask, Asked, Server, errors, gate, header, seen, with_address};

const ADDRESS: [u8; 4] = [192, 0, 2, 7];
const REASON: &str = "no server answers for zone example.org.";

fn recurse() -> Op {
    Op::Recurse(RecurseStep {
        resolver: ResolverId(3),
        wants_servers: false,
        sends_subnets: false,
        refers: false,
    })
}

fn cached(cache: &Arc<cache::Cache>, rules: CacheRules) -> Vec<Op> {
    vec![Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: false }), recurse()]
}

fn server() -> Server {
    Server::with(gate(), |cache| cached(cache, CacheRules::default()))
}

fn www() -> Ask {
    Ask::new("www.example.org", Rtype::A)
}

fn want(suspended: &Suspended) -> &ResolveWant {
    match suspended.want() {
        Want::Resolve(want) => want,
        Want::Fetch(_) | Want::Split(_) | Want::Sleep(_) | Want::Yield => panic!("it asks no resolver"),
    }
}

/// Goes on with a query; returns the reply and, for a branch, the report.
fn resume(
    server: &mut Server,
    suspended: Box<Suspended>,
    outcome: Outcome<'_>,
) -> (Vec<u8>, Option<BranchReport>) {
    let mut buffer = vec![0; 4096];
    let mut reply = Reply::new(&mut buffer);
    match server.engine.resume(suspended, outcome, Share::First, &mut reply) {
        Verdict::Defer(_) => panic!("deferred again"),
        Verdict::Answered | Verdict::Drop | Verdict::Stream(_) => (reply.bytes().to_vec(), reply.report()),
    }
}

/// Has a resolver find an address.
fn found(server: &mut Server, suspended: Box<Suspended>, security: Security) -> Vec<u8> {
    found_so(server, suspended, (security, false))
}

/// Does the same, and says whether there are no signatures for anybody.
fn found_so(
    server: &mut Server,
    suspended: Box<Suspended>,
    (security, is_unsigned): (Security, bool),
) -> Vec<u8> {
    let octets = with_address(&www(), 300, ADDRESS);
    let message = Message::parse(&octets).expect("well formed");
    resume(
        server,
        suspended,
        Outcome::Resolved(Resolved {
            message: &message,
            security,
            is_unsigned,
            scope: None,
            is_interim: false,
        }),
    )
    .0
}

const fn unresolved(text: &str) -> Outcome<'_> {
    let (rcode, ede) = (Rcode::SERVFAIL, EdeCode::NO_REACHABLE_AUTHORITY);
    Outcome::Unresolved(Unresolved { rcode, ede, text })
}

fn not_found(server: &mut Server, suspended: Box<Suspended>) -> Vec<u8> {
    resume(server, suspended, unresolved(REASON)).0
}

#[test]
fn what_is_found_fills_the_cache_with_what_is_known_of_its_signatures() {
    for security in [Security::Secure, Security::Insecure, Security::Unchecked] {
        let mut server = server();
        let ask = www().dnssec();
        let suspended = server.ask(&ask).deferred();
        assert_eq!(want(&suspended).resolver, ResolverId(3));
        let first = found(&mut server, suspended, security);
        let again = server.ask(&ask).answered();
        for reply in [first, again] {
            assert_eq!(seen(&reply).answers, [(1, 300, ADDRESS.to_vec())]);
            assert_eq!(header(&reply).flags.has(Flags::AD), security == Security::Secure, "{security:?}");
        }
    }
}

#[test]
fn bogus_data_comes_with_an_error_that_says_so_each_time() {
    let mut server = server();
    let suspended = server.ask(&www().dnssec()).deferred();
    let first = found(&mut server, suspended, Security::Bogus);
    let again = server.ask(&www().dnssec()).answered();
    for reply in [first, again] {
        assert_eq!(seen(&reply).answers, [(1, 300, ADDRESS.to_vec())]);
        assert_eq!(errors(&reply), [(EdeCode::DNSSEC_BOGUS.0, String::new())]);
    }
}

#[test]
fn what_has_no_signatures_is_kept_once_for_do_and_not_do() {
    for (first, second) in [(www(), www().dnssec()), (www().dnssec(), www())] {
        let mut server = server();
        let suspended = server.ask(&first).deferred();
        found_so(&mut server, suspended, (Security::Insecure, true));
        for ask in [&second, &first, &second] {
            let reply = server.ask(ask).answered();
            assert_eq!(seen(&reply).answers, [(1, 300, ADDRESS.to_vec())]);
            let edns = Message::parse(&reply).expect("well formed").edns;
            assert_eq!(edns.is_some_and(|edns| edns.wants_dnssec()), ask.edns.is_some());
        }
        assert_eq!(server.cache.stats().entries, 1);
        // Who sets CD is another matter.
        let cd = Ask { flags: Flags::RD.with(Flags::CD), ..second };
        server.ask(&cd).deferred();
    }
}

#[test]
fn what_may_have_signatures_is_kept_apart_for_do() {
    let mut server = server();
    let suspended = server.ask(&www()).deferred();
    found_so(&mut server, suspended, (Security::Secure, false));
    server.ask(&www().dnssec()).deferred();
    server.ask(&www()).answered();
}

#[test]
fn a_policy_that_tests_do_has_answers_kept_apart() {
    let rules = CacheRules { keeps_do_apart: true, ..CacheRules::default() };
    let mut server = Server::with(gate(), |cache| cached(cache, rules));
    for ask in [www(), www().dnssec()] {
        let suspended = server.ask(&ask).deferred();
        found_so(&mut server, suspended, (Security::Insecure, true));
    }
    assert_eq!(server.cache.stats().entries, 2);
}

#[test]
fn what_is_shared_with_do_is_stale_and_fetched_anew_for_both() {
    let mut server = server();
    let suspended = server.ask(&www()).deferred();
    found_so(&mut server, suspended, (Security::Insecure, true));
    server.wait(301);
    let suspended = server.ask(&www().dnssec()).deferred();
    assert_eq!(want(&suspended).stale_after_ms, Some(1800));
    let reply = not_found(&mut server, suspended);
    assert_eq!(seen(&reply).answers, [(1, 30, ADDRESS.to_vec())]);
    server.wait(10);
    let suspended = server.ask(&www().dnssec()).deferred();
    found_so(&mut server, suspended, (Security::Insecure, true));
    server.ask(&www()).answered();
    server.ask(&www().dnssec()).answered();
    assert_eq!(server.cache.stats().entries, 2, "one of them a failure");
}

#[test]
fn without_rd_only_what_is_kept_is_given_and_only_where_that_is_wished() {
    for answers_without_rd in [false, true] {
        let rules = CacheRules { answers_without_rd, ..CacheRules::default() };
        let mut server = Server::with(gate(), |cache| cached(cache, rules));
        let nosy = || Ask { flags: Flags::default(), ..www() };
        assert_eq!(seen(&server.ask(&nosy()).answered()).rcode, Rcode::REFUSED);
        let suspended = server.ask(&www()).deferred();
        found(&mut server, suspended, Security::Secure);
        let expected = if answers_without_rd { Rcode::NOERROR } else { Rcode::REFUSED };
        assert_eq!(seen(&server.ask(&nosy()).answered()).rcode, expected);
    }
}

#[test]
fn ad_is_for_clients_that_understand_it() {
    let mut server = server();
    let check = |server: &mut Server, ask: Ask, expect: bool| {
        let reply = match server.ask(&ask) {
            Asked::Deferred(suspended) => found(server, suspended, Security::Secure),
            other => other.answered(),
        };
        assert_eq!(header(&reply).flags.has(Flags::AD), expect);
    };
    check(&mut server, www(), false);
    check(&mut server, Ask { flags: Flags::RD.with(Flags::AD), ..www() }, true);
    check(&mut server, www().dnssec(), true);
    check(&mut server, www(), false);
}

#[test]
fn what_came_for_cd_is_not_given_to_others() {
    let mut server = server();
    let cd = Ask { flags: Flags::RD.with(Flags::CD), ..www() };
    let suspended = server.ask(&cd).deferred();
    assert!(want(&suspended).query.checking_disabled);
    found(&mut server, suspended, Security::Bogus);
    assert_eq!(seen(&server.ask(&cd).answered()).rcode, Rcode::NOERROR);
    let suspended = server.ask(&www()).deferred();
    assert!(!want(&suspended).query.checking_disabled);
}

#[test]
fn servers_of_zones_hear_nothing_of_the_client() {
    let mut server = server();
    let ask = www().dnssec().option(8, &[0, 1, 24, 0, 198, 51, 100]).option(65_001, b"x");
    let suspended = server.ask(&ask).deferred();
    let query = &want(&suspended).query;
    assert!(query.client_subnet.is_none() && query.options.is_empty());
    assert!(query.wants_dnssec && !query.no_recursion);
}

#[test]
fn a_query_without_rd_makes_nobody_look() {
    let mut server = server();
    let ask = Ask { flags: Flags::default(), ..www() };
    assert_eq!(seen(&server.ask(&ask).answered()).rcode, Rcode::REFUSED);
    let mut server = Server::with(gate(), |_| vec![recurse()]);
    assert_eq!(seen(&server.ask(&ask).answered()).rcode, Rcode::REFUSED);
}

#[test]
fn a_query_without_rd_gets_a_referral_where_that_is_wished_and_nobody_else_does() {
    let rules = CacheRules { answers_without_rd: true, ..CacheRules::default() };
    let mut server = Server::with(gate(), |cache| {
        let Op::Recurse(step) = recurse() else { panic!("a step that recurses") };
        let cache = Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: false });
        vec![cache, Op::Recurse(RecurseStep { refers: true, ..step })]
    });
    let ask = || Ask { flags: Flags::default(), ..www() };
    for _ in 0..2 {
        let suspended = server.ask(&ask()).deferred();
        assert!(want(&suspended).query.no_recursion);
        // Whatever comes: it is not kept.
        found(&mut server, suspended, Security::Secure);
    }
    let suspended = server.ask(&www()).deferred();
    assert!(!want(&suspended).query.no_recursion);
    found(&mut server, suspended, Security::Secure);
    assert_eq!(seen(&server.ask(&ask()).answered()).answers.len(), 1, "what is known is the answer");
}

#[test]
fn a_query_without_rd_may_be_taken_for_one_that_has_it() {
    let change = || Op::Outgoing(Change::Flag(OutFlag::Recursion, true));
    let mut server = Server::with(gate(), |cache| {
        std::iter::once(change()).chain(cached(cache, CacheRules::default())).collect()
    });
    let ask = || Ask { flags: Flags::default(), ..www() };
    let suspended = server.ask(&ask()).deferred();
    found(&mut server, suspended, Security::Secure);
    assert_eq!(seen(&server.ask(&ask()).answered()).rcode, Rcode::NOERROR);
}

#[test]
fn a_failure_says_why_and_is_remembered_with_that() {
    let mut server = server();
    let ask = www().edns(1232);
    let why = (EdeCode::NO_REACHABLE_AUTHORITY.0, REASON.to_owned());
    let suspended = server.ask(&ask).deferred();
    let reply = not_found(&mut server, suspended);
    assert_eq!((seen(&reply).rcode, errors(&reply)), (Rcode::SERVFAIL, vec![why.clone()]));
    let reply = server.ask(&ask).answered();
    assert_eq!((seen(&reply).rcode, errors(&reply)), (Rcode::SERVFAIL, vec![why]));
    assert_eq!(server.counters.cache_failures.read(), 1);
    server.wait(2);
    server.ask(&ask).deferred();
}

#[test]
fn a_text_is_cut_and_never_too_much_for_a_reply() {
    let mut server = server();
    let long = "é".repeat(300);
    let suspended = server.ask(&www().edns(1232)).deferred();
    let (reply, _) = resume(&mut server, suspended, unresolved(&long));
    assert_eq!(errors(&reply), [(EdeCode::NO_REACHABLE_AUTHORITY.0, "é".repeat(60))]);
    let mut server = Server::with(gate(), |_| vec![recurse()]);
    let suspended = server.ask(&www()).deferred();
    let (reply, _) = resume(&mut server, suspended, unresolved(&long));
    assert_eq!((seen(&reply).rcode, errors(&reply)), (Rcode::SERVFAIL, vec![]));
}

#[test]
fn a_stale_answer_stands_in_for_what_is_not_found() {
    let mut server = server();
    let suspended = server.ask(&www()).deferred();
    assert_eq!(want(&suspended).stale_after_ms, None);
    found(&mut server, suspended, Security::Secure);
    server.wait(301);
    let ask = www().dnssec();
    let suspended = server.ask(&ask).deferred();
    assert_eq!(want(&suspended).stale_after_ms, None, "there is none with signatures");
    not_found(&mut server, suspended);
    let suspended = server.ask(&www().edns(1232)).deferred();
    assert_eq!(want(&suspended).stale_after_ms, Some(1800));
    assert_eq!(suspended.want().stale_after_ms(), Some(1800));
    let reply = not_found(&mut server, suspended);
    assert_eq!(seen(&reply).answers, [(1, 30, ADDRESS.to_vec())]);
    assert_eq!(seen(&reply).ede, Some(EdeCode::STALE_ANSWER.0));
}

#[test]
fn a_popular_answer_is_looked_for_again_before_its_end() {
    let mut server = server();
    let suspended = server.ask(&www()).deferred();
    found(&mut server, suspended, Security::Unchecked);
    server.wait(280);
    for _ in 0..3 {
        server.ask(&www()).answered();
    }
    let prefetch = server.engine.next_prefetch().expect("it is popular");
    found(&mut server, prefetch, Security::Unchecked);
    server.wait(100);
    assert_eq!(seen(&server.ask(&www()).answered()).answers, [(1, 200, ADDRESS.to_vec())]);
}

#[test]
fn strangers_make_nobody_look() {
    let mut gate = gate();
    gate.allowed = Default::default();
    let mut server = Server::with(gate, |_| vec![recurse()]);
    assert_eq!(seen(&server.ask(&www()).answered()).rcode, Rcode::REFUSED);
}

/// Returns a query that waits for one resolver and, if that fails, for another.
fn split() -> (Server, Box<Suspended>) {
    let rule =
        Fallback { after_ms: 500, on_slow: true, standby: Standby::Late, unusable: Unusable::default() };
    let ops = vec![
        Op::Split(Box::new(SplitStep::of_policies(Rule::Fallback(rule), &[2, 4]))),
        Op::Accept,
        recurse(),
        Op::Return,
        Op::Recurse(RecurseStep {
            resolver: ResolverId(4),
            wants_servers: false,
            sends_subnets: false,
            refers: false,
        }),
        Op::Return,
    ];
    let mut server = Server::with(gate(), |_| ops);
    let suspended = server.ask(&www().edns(1232)).deferred();
    (server, suspended)
}

/// Runs both branches, of which the first fails; returns what was found in the end.
fn decide(server: &mut Server, mut parent: Box<Suspended>, second: Outcome<'_>) -> Vec<u8> {
    let first = parent.take_begun(0).expect("it has begun");
    assert_eq!(want(&first).resolver, ResolverId(3));
    let mut progress = Progress::new();
    progress.begin(0);
    let (first, report) = resume(server, first, unresolved(REASON));
    let report = report.expect("it is a branch");
    progress.end(0, &report);
    assert_eq!(parent.next(&progress), Next::Begin(1));
    let mut buffer = vec![0; 4096];
    let mut reply = Reply::new(&mut buffer);
    let Verdict::Defer(branch) = server.engine.branch(&parent, 1, &mut reply) else { panic!("it waits") };
    progress.begin(1);
    assert_eq!(want(&branch).resolver, ResolverId(4));
    let (other, other_report) = resume(server, branch, second);
    let other_report = other_report.expect("it is a branch");
    progress.end(1, &other_report);
    let Next::Done(Some(winner)) = parent.next(&progress) else { panic!("one of them counts") };
    let (octets, report) = if winner == 0 { (first, report) } else { (other, other_report) };
    let message = Message::parse(&octets).expect("well formed");
    let won = Won { branch: winner, report, progress, message: &message };
    resume(server, parent, Outcome::Branch(won)).0
}

#[test]
fn a_fallback_takes_the_other_way_and_keeps_what_is_known() {
    let (mut server, suspended) = split();
    let octets = with_address(&www(), 300, ADDRESS);
    let message = Message::parse(&octets).expect("well formed");
    let (security, is_unsigned) = (Security::Secure, false);
    let second = Outcome::Resolved(Resolved {
        message: &message,
        security,
        is_unsigned,
        scope: None,
        is_interim: false,
    });
    let reply = decide(&mut server, suspended, second);
    assert_eq!((seen(&reply).rcode, errors(&reply)), (Rcode::NOERROR, vec![]));
}

#[test]
fn a_branch_that_fails_hands_its_reason_on() {
    let (mut server, suspended) = split();
    let reply = decide(&mut server, suspended, unresolved("the other one"));
    assert_eq!(seen(&reply).rcode, Rcode::SERVFAIL);
    let [(code, text)] = &errors(&reply)[..] else { panic!("one reason") };
    assert_eq!(*code, EdeCode::NO_REACHABLE_AUTHORITY.0);
    assert!([REASON, "the other one"].contains(&text.as_str()), "{text}");
}

#[test]
fn a_reason_and_what_the_client_is_told_besides_fit_into_one_opt() {
    let mut server = server();
    let ask = www().option(OptionCode::NSID.0, &[]).option(OptionCode::COOKIE.0, &[1; 8]);
    for _ in 0..2 {
        let reply = match server.ask(&ask) {
            Asked::Deferred(suspended) => resume(&mut server, suspended, unresolved(&"x".repeat(120))).0,
            other => other.answered(),
        };
        let (code, text) = errors(&reply).swap_remove(0);
        assert_eq!((code, text.len()), (EdeCode::NO_REACHABLE_AUTHORITY.0, 120));
    }
}

#[test]
fn whoever_watches_sees_what_the_resolver_did() {
    let mut server = server();
    let mut recorder = Recorder::default();
    let mut buffer = vec![0; 4096];
    let mut reply = Reply::new(&mut buffer);
    let client = common::client("192.0.2.1");
    let verdict = server.engine.explain(&www().bytes(), &client, &mut reply, &mut recorder);
    let Verdict::Defer(suspended) = verdict else { panic!("it waits") };
    suspended.recorder().expect("somebody watches").resolving("asked a server");
    not_found(&mut server, suspended);
    let events = recorder.take().events;
    assert!(events.contains(&Event::Step { at: 1, did: Did::Resolves(ResolverId(3)) }));
    let told = [
        Event::Resolving("asked a server".to_owned()),
        Event::Unresolved { rcode: Rcode::SERVFAIL, text: REASON.to_owned() },
    ];
    assert!(events.windows(2).any(|events| events == told), "{events:?}");
}

/// Name servers of names in `example.org`.
struct Hosting;

impl NameServers for Hosting {
    fn each(&self, name: Name<'_>, _: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool) {
        let [zone, server] = ["example.org", "ns1.hosting.example"].map(common::name);
        if name.is_at_or_below(zone.as_name()) {
            let _ = f(NameServer::Name(server.as_name())) || f(NameServer::Address([203, 0, 113, 5].into()));
        }
    }
}

/// Returns a list whose response policy zone has one rule.
fn policy_zone(trigger: Trigger<'_>) -> Arc<Blocklist> {
    let mut list = BlocklistBuilder::new(&common::KEY);
    let mut zone = list.zone();
    assert!(zone.rule(trigger, Some(Treatment::Rcode(Rcode::NXDOMAIN)), 1));
    list.add_zone(zone.compile());
    let names = NameSetBuilder::new(&common::KEY).compile();
    Arc::new(list.compile(Arc::new(names), Vec::new(), Vec::new()))
}

fn names(text: &str) -> Arc<NameSet> {
    let mut set = NameSetBuilder::new(&common::KEY);
    set.name(common::name(text).as_name(), Reach::ItselfAndBelow, 1);
    Arc::new(set.compile())
}

fn network(text: &str) -> Arc<AddressSet> {
    let mut set = AddressSetBuilder::new();
    assert!(set.prefix(text.parse().expect("an address"), 24));
    Arc::new(set.compile())
}

#[test]
fn conditions_look_at_the_name_servers_that_led_to_an_answer() {
    let below = common::name("hosting.example");
    let by_name = || policy_zone(Trigger::ServerBelow(below.as_name()));
    let by_address = || policy_zone(Trigger::ServerAddress([203, 0, 113, 0].into(), 24));
    let cases: [(fn() -> Matcher, bool); 4] = [
        (|| Matcher::ServerName(names("hosting.example")), true),
        (|| Matcher::ServerName(names("other.example")), false),
        (|| Matcher::ServerAddress(network("203.0.113.0")), true),
        (|| Matcher::ServerAddress(network("192.0.2.0")), false),
    ];
    let of_lists = [
        (Matcher::ServerListed(by_name(), ServerRule::Name), true),
        (Matcher::ServerListed(by_name(), ServerRule::Address), false),
        (Matcher::ServerListed(by_address(), ServerRule::Address), true),
        (Matcher::ServerListed(by_address(), ServerRule::Name), false),
    ];
    for (matcher, holds) in cases.map(|(make, holds)| (make(), holds)).into_iter().chain(of_lists) {
        let mut server = Server::with(gate(), |cache| {
            let rules = CacheRules::default();
            vec![
                // Before there is an answer, none led to it.
                Op::SkipUnless(Matcher::ServerName(names("hosting.example")), 1),
                Op::Reject(Rcode::REFUSED, None),
                Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: true }),
                Op::SkipIf(Matcher::Answer, 1),
                recurse(),
                Op::SkipUnless(matcher, 1),
                Op::Answer(Build::Block(Block {
                    with: BlockWith::Rcode(Rcode::NXDOMAIN),
                    ttl: wire::Ttl::new(60),
                    ede: None,
                    authoritative: false,
                    has_soa: true,
                    continues: false,
                })),
            ]
        });
        server.engine.know_servers(Box::new(Hosting));
        let suspended = server.ask(&www()).deferred();
        assert!(want(&suspended).wants_servers);
        let expected = if holds { Rcode::NXDOMAIN } else { Rcode::NOERROR };
        let reply = found(&mut server, suspended, Security::Insecure);
        assert_eq!(header(&reply).flags.rcode(), expected);
        let reply = server.ask(&www()).answered();
        assert_eq!(header(&reply).flags.rcode(), expected, "as from the cache");
    }
}

#[test]
fn nobody_wants_name_servers_that_no_step_looks_at() {
    let mut server = server();
    assert!(!want(&server.ask(&www()).deferred()).wants_servers);
}

/// Returns a server whose resolver tells some servers of subnets.
fn telling() -> Server {
    Server::with(gate(), |cache| {
        let rules = CacheRules::default();
        let subnet = SubnetChange::Client { ipv4: 24, ipv6: 56, keeps: true, private: Arc::new(nowhere()) };
        let resolver = ResolverId(3);
        vec![
            Op::Outgoing(Change::Subnet(subnet)),
            Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: false }),
            Op::Recurse(RecurseStep { resolver, wants_servers: false, sends_subnets: true, refers: false }),
        ]
    })
}

fn nowhere() -> AddressSet {
    AddressSetBuilder::new().compile()
}

/// Has a resolver find an address for so many bits of what it was told.
fn found_for(server: &mut Server, suspended: Box<Suspended>, last: u8, scope: Option<u8>) -> Vec<u8> {
    let octets = with_address(&www(), 300, [192, 0, 2, last]);
    let message = Message::parse(&octets).expect("well formed");
    let (security, is_unsigned) = (Security::Insecure, true);
    let resolved = Resolved { message: &message, security, is_unsigned, scope, is_interim: false };
    resume(server, suspended, Outcome::Resolved(resolved)).0
}

/// Returns the query of a client with this subnet.
fn of_subnet(third: u8, bits: u8) -> Ask {
    let octets = [198, 51, third];
    www().option(8, &[&[0, 1, bits, 0][..], &octets[..usize::from(bits).div_ceil(8)]].concat())
}

/// Returns the last octet of the address, and the client subnet that the reply has.
fn heard(reply: &[u8]) -> (u8, Option<Vec<u8>>) {
    let message = Message::parse(reply).expect("well formed");
    let option = message.edns.and_then(|edns| edns.option(OptionCode::CLIENT_SUBNET)).map(<[u8]>::to_vec);
    (seen(reply).answers[0].2[3], option)
}

#[test]
fn a_malformed_subnet_is_a_format_error_where_subnets_are_told_to_others() {
    let cases: [(&[u8], bool); 9] = [
        (&[0, 1, 24, 0, 198, 51, 1], true),
        (&[0, 1, 0, 0], true),
        (&[0, 2, 32, 0, 0x20, 1, 0x0d, 0xb8], true),
        // Bits beyond the prefix, an unknown family, too long a prefix, too few octets, too many.
        (&[0, 1, 20, 0, 198, 51, 1], false),
        (&[0, 3, 24, 0, 198, 51, 1], false),
        (&[0, 1, 40, 0, 198, 51, 1, 0, 0], false),
        (&[0, 1, 24, 0, 198, 51], false),
        (&[0, 1, 24, 0, 198, 51, 1, 0], false),
        (&[0, 1, 24], false),
    ];
    for (data, is_well_formed) in cases {
        let asked = telling().ask(&www().option(8, data));
        match is_well_formed {
            true => drop(asked.deferred()),
            false => assert_eq!(seen(&asked.answered()).rcode, Rcode::FORMERR, "{data:?}"),
        }
        // Who does nothing with subnets does not read them.
        drop(server().ask(&www().option(8, data)).deferred());
    }
}

#[test]
fn what_is_for_a_network_is_kept_for_all_of_it_and_for_nobody_else() {
    let mut server = telling();
    let suspended = server.ask(&of_subnet(1, 24)).deferred();
    let told = want(&suspended).query.client_subnet.expect("told");
    assert_eq!((told.prefix, &told.address[..3]), (24, &[198, 51, 1][..]));
    let reply = found_for(&mut server, suspended, 1, Some(20));
    assert_eq!(heard(&reply), (1, Some(vec![0, 1, 24, 20, 198, 51, 1])));
    // 198.51.0.0/20 is from 198.51.0.0 to 198.51.15.255.
    let reply = server.ask(&of_subnet(15, 24)).answered();
    assert_eq!(heard(&reply), (1, Some(vec![0, 1, 24, 20, 198, 51, 15])));
    let other = server.ask(&of_subnet(16, 24)).deferred();
    found_for(&mut server, other, 2, Some(24));
    assert_eq!(heard(&server.ask(&of_subnet(16, 24)).answered()).0, 2);
    assert_eq!(heard(&server.ask(&of_subnet(2, 24)).answered()).0, 1);
    assert!(matches!(server.ask(&of_subnet(17, 24)), Asked::Deferred(_)));
    // Who tells less does not get what is for a part of his network.
    assert!(matches!(server.ask(&of_subnet(0, 16)), Asked::Deferred(_)));
}

#[test]
fn what_is_for_fewer_than_were_told_is_kept_for_who_told_as_much() {
    let mut server = telling();
    let suspended = server.ask(&of_subnet(0, 16)).deferred();
    found_for(&mut server, suspended, 1, Some(24));
    assert_eq!(heard(&server.ask(&of_subnet(0, 16)).answered()).0, 1);
    assert!(matches!(server.ask(&of_subnet(0, 24)), Asked::Deferred(_)));
}

#[test]
fn what_is_for_everybody_is_kept_once() {
    for scope in [None, Some(0)] {
        let mut server = telling();
        let suspended = server.ask(&of_subnet(1, 24)).deferred();
        let reply = found_for(&mut server, suspended, 1, scope);
        assert_eq!(heard(&reply), (1, Some(vec![0, 1, 24, 0, 198, 51, 1])));
        assert_eq!(heard(&server.ask(&of_subnet(77, 24)).answered()).0, 1);
    }
}

#[test]
fn a_client_that_wants_nothing_told_has_nothing_told() {
    let mut server = telling();
    let ask = www().option(8, &[0, 1, 0, 0]);
    let suspended = server.ask(&ask).deferred();
    assert_eq!(want(&suspended).query.client_subnet, None);
    let reply = found_for(&mut server, suspended, 1, None);
    assert_eq!(heard(&reply), (1, Some(vec![0, 1, 0, 0])));
    // More than the resolver tells is cut off.
    let ask = www().option(8, &[0, 1, 32, 0, 203, 0, 113, 7]);
    let suspended = server.ask(&ask).deferred();
    assert_eq!(want(&suspended).query.client_subnet.map(|subnet| subnet.prefix), Some(24));
    let reply = found_for(&mut server, suspended, 2, Some(24));
    assert_eq!(heard(&reply), (2, Some(vec![0, 1, 32, 24, 203, 0, 113, 7])));
}

#[test]
fn a_resolver_that_sends_no_subnet_hears_of_none() {
    let mut server = Server::with(gate(), |cache| {
        let subnet = SubnetChange::Client { ipv4: 24, ipv6: 56, keeps: true, private: Arc::new(nowhere()) };
        let mut all = vec![Op::Outgoing(Change::Subnet(subnet))];
        all.extend(cached(cache, CacheRules::default()));
        all
    });
    let suspended = server.ask(&of_subnet(1, 24)).deferred();
    assert_eq!(want(&suspended).query.client_subnet, None);
    found_for(&mut server, suspended, 1, None);
    assert_eq!(heard(&server.ask(&of_subnet(2, 24)).answered()).0, 1);
}
