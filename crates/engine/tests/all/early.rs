//! Answers that are given out early, because the steps before and after the cache are known to
//! leave them alone; and that they are not as soon as that may be otherwise.

use std::net::IpAddr;
use std::sync::Arc;

use cache::Cache;
use engine::ops::answer::{Block, BlockWith, Build, Listed};
use engine::ops::cache::{CacheRules, CacheStep, Early};
use engine::ops::event::EventStep;
use engine::ops::forward::ForwardStep;
use engine::ops::split::{Rule, SplitStep, Unusable};
use engine::program::{Matcher, Op};
use engine::{NameServer, NameServers, Outcome, PoolId, Reply, Share, Suspended, Verdict};
use events::{EventId, EventReader, EventRecord, Mark, ring};
use sets::{
    AddressSet, AddressSetBuilder, Blocklist, BlocklistBuilder, DynamicAddresses, DynamicNames, NameSet,
    NameSetBuilder, Reach, Treatment, Trigger,
};
use wire::{Class, Flags, Name, Rcode, Rtype, Section, Ttl};

use crate::common;
use common::{Ask, KEY, Server, client, name, seen, upstream, with_address};

fn www() -> Ask {
    Ask::new("www.example.org", Rtype::A)
}

fn step(cache: &Arc<Cache>, continues: bool) -> CacheStep {
    let rules = CacheRules { prefetch_percent: 0, ..CacheRules::default() };
    CacheStep { cache: Arc::clone(cache), rules, view: 0, continues }
}

fn early(cache: &Arc<Cache>) -> Op {
    Op::Cache(step(cache, false).early(Early::Yes))
}

const FORWARD: ForwardStep =
    ForwardStep { pool: PoolId(0), members: 0, forwards_client_subnet: false, trusts_ad: false };

/// Returns steps that look into the cache early, then go through `before`, and with an answer
/// through `after`.
fn steps(cache: &Arc<Cache>, before: Vec<Op>, after: Vec<Op>) -> Vec<Op> {
    let mut ops = vec![early(cache)];
    ops.extend(before);
    ops.extend([Op::Cache(step(cache, true)), Op::SkipIf(Matcher::Answer, 1), Op::Forward(FORWARD)]);
    ops.extend(after);
    ops
}

/// Returns a server on such steps that has an answer for `www()`, and where queries are told with
/// their ways.
fn with_rules(before: Vec<Op>, after: Vec<Op>) -> (Server, EventReader) {
    serving(|cache| steps(cache, before, after))
}

fn serving(ops: impl FnOnce(&Arc<Cache>) -> Vec<Op>) -> (Server, EventReader) {
    let cache = filled();
    serving_from(&cache, ops(&cache))
}

/// Returns a cache that has an answer for `www()`, whatever rules there are.
fn filled() -> Arc<Cache> {
    let cache = Arc::new(Cache::new(cache::Limits { octets_max: 1 << 20 }, KEY));
    filler(&cache).fetch(&www(), &with_address(&www(), 300, [192, 0, 2, 7]));
    cache
}

/// Returns a server without rules that fills a cache.
fn filler(cache: &Arc<Cache>) -> Server {
    Server::noting_path_on(cache, steps(cache, vec![], vec![]))
}

/// Returns steps behind one that tells each query.
fn told(ops: Vec<Op>) -> Vec<Op> {
    let mut all = vec![Op::Event(EventStep::Emit { id: EventId(0), share: None, is_urgent: false })];
    all.extend(ops);
    all
}

fn serving_from(cache: &Arc<Cache>, ops: Vec<Op>) -> (Server, EventReader) {
    let mut server = Server::noting_path_on(cache, told(ops));
    let (writer, reader) = ring(0, Arc::default());
    server.engine = server.engine.with_events(writer);
    (server, reader)
}

/// What became of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It got the answer of the cache at once.
    Early,
    /// It got the answer of the cache behind the steps.
    Late,
    /// It got something else.
    Other,
}

/// Asks, and returns what became of it.
fn ask_for(server: &mut Server, reader: &mut EventReader, ask: &Ask) -> Way {
    let reply = seen(&server.ask(ask).answered());
    let mut record = EventRecord::default();
    assert!(reader.read(&mut record), "every query is told");
    let path: Vec<(u16, Mark)> = record.view().path().collect();
    match path.get(1) {
        _ if reply.answers.last().is_none_or(|(_, _, data)| data[..] != [192, 0, 2, 7]) => Way::Other,
        // The second step is the early look: it is noted where it finds something.
        Some((1, Mark::Hit)) => Way::Early,
        _ => Way::Late,
    }
}

fn ask(server: &mut Server, reader: &mut EventReader) -> Way {
    ask_for(server, reader, &www())
}

/// Asks three times.
fn thrice(server: &mut Server, reader: &mut EventReader) -> [Way; 3] {
    std::array::from_fn(|_| ask(server, reader))
}

const LEARNS: [Way; 3] = [Way::Late, Way::Early, Way::Early];
const NEVER: [Way; 3] = [Way::Late; 3];

/// Asks after a change: at once nothing is known, and after a second of quiet it is found out.
fn learns_anew(server: &mut Server, reader: &mut EventReader) {
    server.wait(0);
    assert_eq!(thrice(server, reader), NEVER);
    server.wait(1);
    assert_eq!(thrice(server, reader), LEARNS);
}

/// Returns a list with a response policy zone that has these rules.
fn zone(rules: &[(Trigger<'_>, Option<Treatment>)]) -> Arc<Blocklist> {
    let mut list = BlocklistBuilder::new(&KEY);
    let mut zone = list.zone();
    for (line, (trigger, treatment)) in (1..).zip(rules) {
        assert!(zone.rule(*trigger, treatment.clone(), line));
    }
    list.add_zone(zone.compile());
    let names = NameSetBuilder::new(&KEY).compile();
    Arc::new(list.compile(Arc::new(names), Vec::new(), Vec::new()))
}

fn nxdomain() -> Option<Treatment> {
    Some(Treatment::Rcode(Rcode::NXDOMAIN))
}

fn listed(list: &Arc<Blocklist>) -> Op {
    let with = BlockWith::Rcode(Rcode::NXDOMAIN);
    let (ttl, ede) = (Ttl::new(60), None);
    let block = Block { with, ttl, ede, authoritative: true, has_soa: false, continues: false };
    let list = Arc::clone(list);
    Op::Answer(Build::Listed(Listed { list, block, overrides: false, by_address: true, labels: None }))
}

/// Returns steps that refuse what fits.
fn refuse(matcher: Matcher) -> Vec<Op> {
    vec![Op::SkipUnless(matcher, 1), Op::Reject(Rcode::REFUSED, None)]
}

fn set_of(live: &Arc<DynamicNames>) -> Arc<NameSet> {
    let mut set = NameSetBuilder::new(&KEY);
    set.live(Arc::clone(live));
    Arc::new(set.compile())
}

fn prefix(address: [u8; 4], length: u8) -> Arc<AddressSet> {
    let mut set = AddressSetBuilder::new();
    assert!(set.prefix(IpAddr::from(address), length));
    Arc::new(set.compile())
}

#[test]
fn an_answer_that_a_policy_zone_leaves_alone_is_given_out_early() {
    let bad = name("bad.example.org");
    let list = zone(&[
        (Trigger::Name(bad.as_name()), nxdomain()),
        (Trigger::Client([198, 51, 100, 0].into(), 24), nxdomain()),
        (Trigger::Answer([203, 0, 113, 0].into(), 24), nxdomain()),
    ]);
    let (mut server, mut reader) = with_rules(vec![listed(&list)], vec![listed(&list)]);
    let hits = server.counters.cache_hits.read();
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    assert_eq!(server.counters.cache_hits.read(), hits + 3, "each is a hit");
    // Another client of which no rule is gets it, too; one that a rule is on does not.
    server.client = client("192.0.2.200");
    assert_eq!(ask(&mut server, &mut reader), Way::Early);
    server.client = client("198.51.100.7");
    assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3]);
    server.client = client("192.0.2.200");
    assert_eq!(ask(&mut server, &mut reader), Way::Early, "what another got changes nothing");
}

#[test]
fn an_answer_that_a_rule_is_on_is_never_given_out_early() {
    let www = name("www.example.org");
    for (trigger, is_excepted) in [
        (Trigger::Name(www.as_name()), false),
        (Trigger::Answer([192, 0, 2, 0].into(), 24), false),
        (Trigger::Answer([192, 0, 2, 0].into(), 24), true),
    ] {
        let treatment = if is_excepted { None } else { nxdomain() };
        let list = zone(&[(trigger, treatment)]);
        // The rules look at the answer alone, so that there is one in the cache.
        let (mut server, mut reader) = serving(|cache| {
            let mut ops = steps(cache, vec![], vec![]);
            ops.extend([Op::SkipUnless(Matcher::Answer, 1), listed(&list)]);
            ops
        });
        let expect = if is_excepted { LEARNS } else { [Way::Other; 3] };
        assert_eq!(thrice(&mut server, &mut reader), expect, "{trigger:?}");
    }
}

#[test]
fn a_name_that_is_added_to_a_set_acts_on_the_next_query() {
    let live = Arc::new(DynamicNames::new(&KEY, 10, None));
    let (mut server, mut reader) = with_rules(refuse(Matcher::Qname(set_of(&live))), vec![]);
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    live.add(name("example.org").as_name(), 0, Some(100));
    server.wait(0);
    assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3]);
    // A rule on some other name leaves the answer alone, but that has to be found out.
    live.sweep(100);
    live.add(name("example.net").as_name(), 100, None);
    learns_anew(&mut server, &mut reader);
    live.remove(name("example.net").as_name());
    learns_anew(&mut server, &mut reader);
}

#[test]
fn a_set_that_changes_all_the_time_has_nothing_found_out() {
    let live = Arc::new(DynamicNames::new(&KEY, 100, None));
    let (mut server, mut reader) = with_rules(refuse(Matcher::Qname(set_of(&live))), vec![]);
    for number in 0..50 {
        live.add(name(&format!("name{number}.example.net")).as_name(), 0, None);
        server.wait(u32::from(number % 10 == 0));
        assert_eq!(ask(&mut server, &mut reader), Way::Late);
    }
    learns_anew(&mut server, &mut reader);
}

#[test]
fn a_set_behind_others_is_watched_too() {
    let live = Arc::new(DynamicNames::new(&KEY, 10, None));
    let (mut inner, mut outer) = (NameSetBuilder::new(&KEY), NameSetBuilder::new(&KEY));
    inner.include(set_of(&live));
    outer.except(Arc::new(inner.compile()));
    let mut all = NameSetBuilder::new(&KEY);
    all.name(name("example.org").as_name(), Reach::ItselfAndBelow, 1);
    outer.include(Arc::new(all.compile()));
    let list = BlocklistBuilder::new(&KEY).compile(Arc::new(outer.compile()), Vec::new(), Vec::new());
    live.add(name("www.example.org").as_name(), 0, None);
    let (mut server, mut reader) = with_rules(refuse(Matcher::Listed(Arc::new(list))), vec![]);
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    live.remove(name("www.example.org").as_name());
    server.wait(0);
    assert_eq!(ask(&mut server, &mut reader), Way::Other);
}

#[test]
fn an_address_that_is_added_to_a_set_acts_on_the_next_query() {
    let set_of = |live: &Arc<DynamicAddresses>| {
        let mut set = AddressSetBuilder::new();
        set.live(Arc::clone(live));
        Arc::new(set.compile())
    };
    let (clients, answers) =
        (Arc::new(DynamicAddresses::new(&KEY, 10, None)), Arc::new(DynamicAddresses::new(&KEY, 10, None)));
    let before = refuse(Matcher::Client(set_of(&clients)));
    let after = refuse(Matcher::AnswerAddress(set_of(&answers)));
    let (mut server, mut reader) = with_rules(before, after);
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    for live in [clients, answers] {
        live.add([192, 0, 2, 0].into(), 24, 0, None);
        server.wait(0);
        assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3]);
        server.wait(1);
        assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3]);
        live.remove([192, 0, 2, 0].into(), 24);
        learns_anew(&mut server, &mut reader);
    }
}

#[test]
fn a_new_policy_asks_anew_of_answers_that_are_kept() {
    let cache = filled();
    let bad = name("bad.example.org");
    let harmless = zone(&[(Trigger::Name(bad.as_name()), nxdomain())]);
    let policy = |list: &Arc<Blocklist>| steps(&cache, vec![listed(list)], vec![listed(list)]);
    let (mut server, mut reader) = serving_from(&cache, policy(&harmless));
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    let www = name("www.example.org");
    for trigger in [Trigger::Name(www.as_name()), Trigger::Answer([192, 0, 2, 7].into(), 32)] {
        server.publish(told(policy(&zone(&[(trigger, nxdomain())]))));
        assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3], "{trigger:?}");
        server.wait(1);
        assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3], "{trigger:?}");
        // What was known before is not believed again.
        server.publish(told(policy(&harmless)));
        learns_anew(&mut server, &mut reader);
    }
}

#[test]
fn another_answer_has_to_prove_itself() {
    let list = zone(&[(Trigger::Answer([203, 0, 113, 0].into(), 24), nxdomain())]);
    let cache = filled();
    let (mut server, mut reader) = serving_from(&cache, steps(&cache, vec![], vec![listed(&list)]));
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    // Another server finds that the name has moved.
    let mut filler = filler(&cache);
    filler.wait(301);
    let suspended = filler.ask(&www()).deferred();
    filler.resume(suspended, Ok(&with_address(&www(), 300, [203, 0, 113, 1])));
    server.wait(301);
    let reply = seen(&server.ask(&www()).answered());
    assert_eq!((reply.rcode, reply.answers.len()), (Rcode::NXDOMAIN, 0));
    assert!(reader.read(&mut EventRecord::default()));
    assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3]);
}

#[test]
fn clients_that_conditions_tell_apart_have_answers_of_their_own() {
    let tagged = Matcher::Client(prefix([198, 51, 100, 0], 24));
    // What such clients ask for is refused if it is in a set.
    let live = Arc::new(DynamicNames::new(&KEY, 10, None));
    live.add(name("example.org").as_name(), 0, None);
    let mut before = vec![Op::SkipUnless(tagged, 2)];
    before.extend(refuse(Matcher::Qname(set_of(&live))));
    let (mut server, mut reader) = with_rules(before, vec![]);
    let (ordinary, tagged) = (client("192.0.2.1"), client("198.51.100.1"));
    server.client = tagged.clone();
    assert_eq!(ask(&mut server, &mut reader), Way::Other);
    server.client = ordinary.clone();
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    server.client = tagged.clone();
    assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3]);
    server.client = ordinary;
    assert_eq!(ask(&mut server, &mut reader), Way::Early, "clients of other kinds do not take it away");
    // Tagged clients get answers early as well, where nothing is known for ordinary ones.
    live.remove(name("example.org").as_name());
    server.client = tagged;
    learns_anew(&mut server, &mut reader);
}

#[test]
fn views_with_policies_of_their_own_share_nothing_but_what_both_leave_alone() {
    let bad = zone(&[(Trigger::Answer([192, 0, 2, 7].into(), 32), nxdomain())]);
    // Clients of the view begin in another policy, which has the same cache.
    let (mut server, mut reader) = serving(|cache| {
        let in_view = Matcher::Client(prefix([198, 51, 100, 0], 24));
        let mut ops = vec![
            Op::Cache(step(cache, false).early(Early::OfOrdinaryClients)),
            Op::SkipUnless(in_view, 1),
            Op::Goto(8),
        ];
        ops.extend(steps(cache, vec![], vec![]).into_iter().skip(1));
        ops.push(Op::Accept);
        ops.extend(steps(cache, vec![], vec![listed(&bad)]));
        ops
    });
    server.client = client("198.51.100.1");
    assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3]);
    server.client = client("192.0.2.1");
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    server.client = client("198.51.100.1");
    assert_eq!(thrice(&mut server, &mut reader), [Way::Other; 3]);
}

#[test]
fn conditions_on_anything_else_keep_answers_back() {
    let all = || {
        [
            Matcher::Random(u32::MAX / 2),
            Matcher::WantsDnssec,
            Matcher::Edns,
            Matcher::Flag(Flags::CD),
            Matcher::Transport([engine::Transport::Tcp].into()),
        ]
    };
    for (for_all, for_some) in all().into_iter().zip(all()) {
        let before = vec![Op::SkipUnless(for_all, 1), Op::Mark(1)];
        let (mut server, mut reader) = with_rules(before, vec![]);
        assert_eq!(thrice(&mut server, &mut reader), NEVER);
        // Only names in a set come to the condition.
        let mut names = NameSetBuilder::new(&KEY);
        names.name(www().name.as_name(), Reach::Itself, 1);
        let before = vec![
            Op::SkipUnless(Matcher::Qname(Arc::new(names.compile())), 2),
            Op::SkipUnless(for_some, 1),
            Op::Mark(1),
        ];
        let (mut server, mut reader) = with_rules(before, vec![]);
        assert_eq!(thrice(&mut server, &mut reader), NEVER);
    }
    // What does something, too; it must be done each time.
    let told = Op::Event(EventStep::Emit { id: EventId(3), share: None, is_urgent: false });
    let (mut server, mut reader) = with_rules(vec![], vec![told]);
    assert_eq!(thrice(&mut server, &mut reader), NEVER);
}

#[test]
fn queries_without_rd_are_refused_as_before() {
    let (mut server, mut reader) = with_rules(vec![], vec![]);
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    let snooping = Ask { flags: Flags::default(), ..www() };
    assert_eq!(ask_for(&mut server, &mut reader, &snooping), Way::Other);
    assert_eq!(ask(&mut server, &mut reader), Way::Early);
}

#[test]
fn an_answer_of_a_policy_that_is_run_is_given_out_early_too() {
    let list = zone(&[(Trigger::Answer([203, 0, 113, 0].into(), 24), nxdomain())]);
    let cache = filled();
    let any = Unusable { rcodes: 0, failures: false };
    let ops = vec![
        early(&cache),
        listed(&list),
        Op::Split(Box::new(SplitStep::of_policies(Rule::Race(any), &[6]))),
        listed(&list),
        Op::Accept,
        Op::Cache(step(&cache, false)),
        Op::Forward(FORWARD),
        Op::Return,
    ];
    let (mut server, mut reader) = serving_from(&cache, ops);
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
}

#[test]
fn who_sets_do_gets_early_what_is_the_same_for_both() {
    let (mut server, mut reader) = with_rules(vec![], vec![]);
    let ask = Ask::new("signed.example.org", Rtype::A).dnssec();
    server.fetch(&ask, &with_address(&ask, 300, [192, 0, 2, 7]));
    assert!(reader.read(&mut EventRecord::default()));
    for expect in LEARNS {
        assert_eq!(ask_for(&mut server, &mut reader, &ask), expect);
    }
    let plain = Ask::new("signed.example.org", Rtype::A);
    assert_eq!(ask_for(&mut server, &mut reader, &plain), Way::Early);
}

#[test]
fn an_answer_near_its_end_is_fetched_anew_as_before() {
    let rules = CacheRules { prefetch_percent: 10, ..CacheRules::default() };
    let (mut server, mut reader) = serving(|cache| {
        let cache = CacheStep { rules, ..step(cache, false) };
        vec![Op::Cache(cache.early(Early::Yes)), Op::Cache(cache), Op::Forward(FORWARD)]
    });
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
    server.wait(290);
    assert_eq!(ask(&mut server, &mut reader), Way::Late);
    let prefetch = server.engine.next_prefetch().expect("it is fetched anew");
    assert_eq!(ask(&mut server, &mut reader), Way::Early, "once");
    server.resume(prefetch, Ok(&with_address(&www(), 300, [192, 0, 2, 7])));
    server.wait(200);
    assert_eq!(thrice(&mut server, &mut reader), LEARNS);
}

#[test]
fn a_reply_is_the_same_early_and_late() {
    let list = zone(&[(Trigger::Answer([203, 0, 113, 0].into(), 24), nxdomain())]);
    // More records than a datagram holds, and few.
    for count in [1, 200_u8] {
        let (mut server, mut reader) = with_rules(vec![], vec![listed(&list)]);
        let ask = Ask::new("many.example.org", Rtype::A).edns(1232);
        let reply = upstream(&ask, Rcode::NOERROR, |w| {
            for last in 0..count {
                w.record(Section::Answer, ask.name.as_name(), Rtype::A, Class::IN, Ttl::new(300), |w| {
                    w.bytes(&[192, 0, 2, last])
                })
                .expect("room");
            }
        });
        server.fetch(&ask, &reply);
        assert!(reader.read(&mut EventRecord::default()));
        let mut replies: Vec<Vec<u8>> = Vec::new();
        for expect in [Mark::Missed, Mark::Hit, Mark::Hit] {
            replies.push(server.ask(&ask).answered());
            let mut record = EventRecord::default();
            assert!(reader.read(&mut record));
            let is_early = record.view().path().nth(1) == Some((1, Mark::Hit));
            assert_eq!(is_early, expect == Mark::Hit);
        }
        assert_eq!(replies[0], replies[1]);
        assert_eq!(replies[1], replies[2]);
    }
}

/// What is known of the name servers of `example.org`.
#[derive(Clone, Copy)]
enum Part {
    Name(&'static str),
    Address([u8; 4]),
}

/// Who knows these name servers.
struct Knowing(&'static [Part]);

impl NameServers for Knowing {
    fn each(&self, name: Name<'_>, _: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool) {
        let Self(known) = self;
        if !name.is_at_or_below(common::name("example.org").as_name()) {
            return;
        }
        let _ = known.iter().any(|part| match part {
            Part::Name(text) => f(NameServer::Name(common::name(text).as_name())),
            Part::Address(address) => f(NameServer::Address((*address).into())),
        });
    }
}

#[test]
fn rules_on_name_servers_are_known_to_be_on_none_where_these_are_known() {
    let other = name("ns.example.net");
    let names = zone(&[(Trigger::ServerName(other.as_name()), nxdomain())]);
    let addresses = zone(&[(Trigger::ServerAddress([203, 0, 113, 0].into(), 24), nxdomain())]);
    let (first, second) = (Part::Name("ns1.example.org"), Part::Name("ns2.example.org"));
    let address = Part::Address([192, 0, 2, 53]);
    let check = |list: &Arc<Blocklist>, known: &'static [Part], expect| {
        let (mut server, mut reader) = with_rules(vec![], vec![listed(list)]);
        server.engine.know_servers(Box::new(Knowing(known)));
        assert_eq!(thrice(&mut server, &mut reader), expect);
    };
    check(&names, Box::leak(Box::new([first, second])), LEARNS);
    check(&names, &[], NEVER);
    check(&addresses, Box::leak(Box::new([first, address, second, address])), LEARNS);
    // More of their addresses may come to be known.
    check(&addresses, Box::leak(Box::new([first, second, address])), NEVER);
    check(&addresses, Box::leak(Box::new([first, address, second])), NEVER);
    check(&addresses, &[], NEVER);
    check(&addresses, &[Part::Name("ns1.example.org"), Part::Address([203, 0, 113, 9])], [Way::Other; 3]);
}

#[test]
fn a_query_that_waited_over_a_reload_notes_nothing_for_the_new_policy() {
    let cache = filled();
    let any = Unusable { rcodes: 0, failures: false };
    let policy = |rules: Vec<Op>| {
        let mut ops = vec![
            Op::Sleep(1),
            Op::Split(Box::new(SplitStep::of_policies(Rule::Race(any), &[4]))),
            Op::Accept,
            early(&cache),
        ];
        ops.extend(rules);
        ops.extend([Op::Cache(step(&cache, false)), Op::Forward(FORWARD), Op::Return]);
        told(ops)
    };
    let wake = |server: &mut Server, suspended: Box<Suspended>| {
        let mut buffer = vec![0; 4096];
        let mut reply = Reply::new(&mut buffer);
        let verdict = server.engine.resume(suspended, Outcome::Slept, Share::First, &mut reply);
        assert!(matches!(verdict, Verdict::Answered));
        seen(reply.bytes()).rcode
    };
    let mut names = NameSetBuilder::new(&KEY);
    names.name(www().name.as_name(), Reach::Itself, 1);
    let mut server = Server::noting_path_on(&cache, policy(vec![]));
    let old = server.ask(&www()).deferred();
    server.publish(policy(refuse(Matcher::Qname(Arc::new(names.compile())))));
    server.wait(1);
    assert_eq!(wake(&mut server, old), Rcode::NOERROR);
    for _ in 0..2 {
        let new = server.ask(&www()).deferred();
        assert_eq!(wake(&mut server, new), Rcode::REFUSED);
    }
}
