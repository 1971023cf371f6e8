//! Steps that ask in several ways: fallback, races, redirection, preferred families, DNS64; and
//! steps that only wait.
//! Long because all of them are tried with the same servers, slow, silent and wrong.

use std::net::Ipv6Addr;
use std::sync::Arc;

use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::dns64::{Dns64, Excluded, Reverse};
use engine::ops::forward::ForwardStep;
use engine::ops::prefer::Prefer;
use engine::ops::quickest::{Probe, Quickest};
use engine::ops::rewrite::{Rewrite, Style, Target, Targets};
use engine::ops::split::{BranchReport, Fallback, Next, Rule, SplitStep, Standby, Unusable, Worth};
use engine::program::Op;
use engine::{Engine, Failure, FetchWant, Outcome, PoolId, Reply, Share, Suspended, Verdict, Want, Won};
use wire::{Class, Flags, Message, NameBuf, Prefix64, Rcode, Rtype, Section, Ttl};

use crate::common;
use common::{Ask, Asked, Seen, Server, gate, header, name, negative, seen, upstream, with_address};

/// What an upstream says to a question.
type Says<'a> = &'a mut dyn FnMut(&FetchWant) -> Result<Vec<u8>, Failure>;

fn forward(pool: u16) -> Op {
    Op::Forward(ForwardStep {
        pool: PoolId(pool),
        members: 0,
        forwards_client_subnet: false,
        trusts_ad: true,
    })
}

fn cache(cache: &Arc<cache::Cache>) -> Op {
    let rules = CacheRules::default();
    Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: false })
}

fn server(ops: Vec<Op>) -> Server {
    Server::with(gate(), |_| ops)
}

/// Does what a worker does for a query that waits, with branches one after the other, until it
/// ends.
fn finish(
    engine: &mut Engine,
    mut waiting: Box<Suspended>,
    says: Says<'_>,
) -> (Vec<u8>, Option<BranchReport>) {
    let mut buffer = vec![0; 65_535];
    loop {
        let mut reply = Reply::new(&mut buffer);
        let verdict = match waiting.want() {
            Want::Fetch(want) => match says(want) {
                Ok(octets) => {
                    let message = Message::parse(&octets).expect("well formed");
                    engine.resume(waiting, Outcome::Reply(&message), Share::First, &mut reply)
                }
                Err(failure) => engine.resume(waiting, Outcome::Failed(failure), Share::First, &mut reply),
            },
            Want::Resolve(_) => panic!("nobody resolves here"),
            Want::Sleep(_) | Want::Yield => engine.resume(waiting, Outcome::Slept, Share::First, &mut reply),
            Want::Split(_) => match decide(engine, &mut waiting, says) {
                Some((branch, report, progress, octets)) => {
                    let message = Message::parse(&octets).expect("well formed");
                    let won = Won { branch, report, progress, message: &message };
                    engine.resume(waiting, Outcome::Branch(won), Share::First, &mut reply)
                }
                None => {
                    engine.resume(waiting, Outcome::NoBranch { is_dropped: false }, Share::First, &mut reply)
                }
            },
        };
        match verdict {
            Verdict::Answered | Verdict::Drop | Verdict::Stream(_) => {
                return (reply.bytes().to_vec(), reply.report());
            }
            Verdict::Defer(suspended) => waiting = suspended,
        }
    }
}

type Decided = (u8, BranchReport, engine::ops::split::Progress, Vec<u8>);

/// Runs the branches of a split until one has won.
fn decide(engine: &mut Engine, parent: &mut Suspended, says: Says<'_>) -> Option<Decided> {
    let Want::Split(want) = parent.want() else { panic!("it waits for no branch") };
    let mut progress = want.progress;
    let mut answers: Vec<(u8, BranchReport, Vec<u8>)> = vec![];
    for branch in 0..4 {
        if let Some(ended) = parent.take_ended(branch) {
            answers.push((branch, ended.report, ended.octets.into()));
        }
    }
    loop {
        let begun = (0..4).find_map(|branch| Some((branch, Some(parent.take_begun(branch)?))));
        let (branch, begun) = match begun {
            Some(begun) => begun,
            None => match parent.next(&progress) {
                Next::Begin(branch) => (branch, None),
                Next::Wait(_) => panic!("every branch has ended"),
                Next::Done(None) => return None,
                Next::Done(Some(winner)) => {
                    let found = answers.into_iter().find(|(branch, ..)| *branch == winner);
                    let (branch, report, octets) = found.expect("the winner has an answer");
                    return Some((branch, report, progress, octets));
                }
            },
        };
        let (octets, report) = match begun {
            Some(begun) => finish(engine, begun, says),
            None => {
                let mut buffer = vec![0; 65_535];
                let mut reply = Reply::new(&mut buffer);
                match engine.branch(parent, branch, &mut reply) {
                    Verdict::Answered | Verdict::Drop | Verdict::Stream(_) => {
                        (reply.bytes().to_vec(), reply.report())
                    }
                    Verdict::Defer(begun) => finish(engine, begun, says),
                }
            }
        };
        let report = report.expect("a branch reports");
        progress.end(branch, &report);
        answers.push((branch, report, octets));
    }
}

/// Asks and waits for as long as it takes.
fn ask(server: &mut Server, ask: &Ask, says: Says<'_>) -> Vec<u8> {
    match server.ask(ask) {
        Asked::Answered(octets) => octets,
        Asked::Dropped => vec![],
        Asked::Deferred(suspended) => finish(&mut server.engine, suspended, says).0,
    }
}

fn from_memory(_: &FetchWant) -> Result<Vec<u8>, Failure> {
    panic!("nobody has to be asked")
}

fn asked(want: &FetchWant) -> Ask {
    Ask { name: want.query.qname, qtype: want.query.qtype, ..Ask::new("", Rtype::A) }
}

fn address(last: u8) -> impl Fn(&FetchWant) -> Result<Vec<u8>, Failure> {
    move |want| Ok(with_address(&asked(want), 300, [192, 0, 2, last]))
}

fn www(qtype: Rtype) -> Ask {
    Ask::new("www.example.org", qtype)
}

/// Two policies after a step that chooses between them; the second query's part begins at 4.
fn two_ways(rule: Rule, first: Op, second: Op) -> Vec<Op> {
    let split = SplitStep::of_policies(rule, &[2, 4]);
    vec![Op::Split(Box::new(split)), Op::Accept, first, Op::Return, second, Op::Return]
}

fn fallback() -> Rule {
    let unusable = Unusable::default();
    Rule::Fallback(Fallback { after_ms: 500, on_slow: true, standby: Standby::Late, unusable })
}

fn last_octets(seen: &Seen) -> Vec<u8> {
    seen.answers.iter().filter_map(|(_, _, data)| data.last().copied()).collect()
}

#[test]
fn what_memory_can_decide_waits_for_nobody() {
    let mut server = server(two_ways(fallback(), Op::Reject(Rcode::NXDOMAIN, None), forward(0)));
    assert_eq!(seen(&ask(&mut server, &www(Rtype::A), &mut from_memory)).rcode, Rcode::NXDOMAIN);
    // SERVFAIL is no answer: the second way is tried, and that one waits.
    let mut server = self::server(two_ways(fallback(), Op::Reject(Rcode::SERVFAIL, None), forward(1)));
    let mut pools = vec![];
    let got = ask(&mut server, &www(Rtype::A), &mut |want| {
        pools.push(want.pool.0);
        address(7)(want)
    });
    assert_eq!((seen(&got).rcode, last_octets(&seen(&got)), pools), (Rcode::NOERROR, vec![7], vec![1]));
}

#[test]
fn the_second_way_stands_in_for_a_failure_of_any_kind() {
    let bad = |rcode| move |want: &FetchWant| Ok(upstream(&asked(want), rcode, |_| {}));
    for failure in [Rcode::SERVFAIL, Rcode::REFUSED, Rcode::NOTIMP] {
        let mut server = server(two_ways(fallback(), forward(0), forward(1)));
        let got = ask(&mut server, &www(Rtype::A), &mut |want| {
            if want.pool.0 == 0 { bad(failure)(want) } else { address(9)(want) }
        });
        assert_eq!(last_octets(&seen(&got)), [9], "{failure}");
    }
    let mut server = server(two_ways(fallback(), forward(0), forward(1)));
    let got = ask(&mut server, &www(Rtype::A), &mut |want| {
        if want.pool.0 == 0 { Err(Failure::Timeout) } else { address(9)(want) }
    });
    assert_eq!(last_octets(&seen(&got)), [9]);
    // Without any answer the client learns why.
    let got = ask(&mut server, &www(Rtype::A).edns(1232), &mut |_| Err(Failure::Timeout));
    assert_eq!((seen(&got).rcode, seen(&got).ede), (Rcode::SERVFAIL, Some(22)));
}

#[test]
fn of_two_failures_the_more_telling_one_is_passed_on() {
    for (first, second, expected) in [
        (Rcode::REFUSED, Rcode::SERVFAIL, Rcode::SERVFAIL),
        (Rcode::SERVFAIL, Rcode::REFUSED, Rcode::SERVFAIL),
        (Rcode::NOTIMP, Rcode::REFUSED, Rcode::REFUSED),
    ] {
        let mut server = server(two_ways(fallback(), forward(0), forward(1)));
        let got = ask(&mut server, &www(Rtype::A), &mut |want| {
            let rcode = if want.pool.0 == 0 { first } else { second };
            Ok(upstream(&asked(want), rcode, |_| {}))
        });
        assert_eq!(seen(&got).rcode, expected, "{first} {second}");
    }
    // Any response code says more than silence.
    let mut server = server(two_ways(fallback(), forward(0), forward(1)));
    let got = ask(&mut server, &www(Rtype::A), &mut |want| match want.pool.0 {
        0 => Err(Failure::Timeout),
        _ => Ok(upstream(&asked(want), Rcode::REFUSED, |_| {})),
    });
    assert_eq!(seen(&got).rcode, Rcode::REFUSED);
}

#[test]
fn what_counts_as_failure_can_be_said() {
    let unusable = Unusable { rcodes: 1 << Rcode::NXDOMAIN.0, failures: false };
    let rule = || Rule::Fallback(Fallback { after_ms: 500, on_slow: true, standby: Standby::Late, unusable });
    let mut server = server(two_ways(rule(), forward(0), forward(1)));
    let nothing = |want: &FetchWant| Ok(negative(&asked(want), Rcode::NXDOMAIN, 900, 300));
    let got = ask(&mut server, &www(Rtype::A), &mut |want| {
        if want.pool.0 == 0 { nothing(want) } else { address(9)(want) }
    });
    assert_eq!(last_octets(&seen(&got)), [9]);
    // If the other way fails, the first one's answer is whole: with its SOA.
    let got = ask(&mut server, &www(Rtype::A), &mut |want| {
        if want.pool.0 == 0 { nothing(want) } else { Ok(negative(&asked(want), Rcode::NXDOMAIN, 800, 1)) }
    });
    assert_eq!((seen(&got).rcode, seen(&got).authorities), (Rcode::NXDOMAIN, vec![(6, 900)]));
    // SERVFAIL is none here, and is passed on.
    let got =
        ask(&mut server, &www(Rtype::A), &mut |want| Ok(upstream(&asked(want), Rcode::SERVFAIL, |_| {})));
    assert_eq!(seen(&got).rcode, Rcode::SERVFAIL);
}

#[test]
fn a_way_that_has_no_answer_leaves_it_to_the_other() {
    for nothing in [Op::Mark(1), Op::Drop] {
        let mut server = server(two_ways(fallback(), nothing, Op::Reject(Rcode::NXDOMAIN, None)));
        assert_eq!(seen(&ask(&mut server, &www(Rtype::A), &mut from_memory)).rcode, Rcode::NXDOMAIN);
    }
    let mut server = server(two_ways(fallback(), Op::Mark(1), Op::Accept));
    let got = seen(&ask(&mut server, &www(Rtype::A).edns(1232), &mut from_memory));
    assert_eq!((got.rcode, got.ede), (Rcode::SERVFAIL, Some(0)));
}

#[test]
fn a_race_is_won_by_a_usable_answer() {
    let rule = || Rule::Race(Unusable::default());
    let mut server = server(two_ways(rule(), Op::Reject(Rcode::REFUSED, None), forward(1)));
    let got = ask(&mut server, &www(Rtype::A), &mut address(5));
    assert_eq!(last_octets(&seen(&got)), [5]);
    // What memory has is there first.
    let mut server = self::server(two_ways(rule(), forward(0), Op::Reject(Rcode::NXDOMAIN, None)));
    assert_eq!(seen(&ask(&mut server, &www(Rtype::A), &mut from_memory)).rcode, Rcode::NXDOMAIN);
}

#[test]
fn the_answer_of_a_split_is_kept_and_its_failure_remembered() {
    let mut server = Server::with(gate(), |kept| {
        let split = SplitStep::of_policies(fallback(), &[3, 5]);
        vec![
            cache(kept),
            Op::Split(Box::new(split)),
            Op::Accept,
            forward(0),
            Op::Return,
            forward(1),
            Op::Return,
        ]
    });
    let got = ask(&mut server, &www(Rtype::A), &mut |want| {
        if want.pool.0 == 0 { Err(Failure::Network) } else { address(9)(want) }
    });
    assert_eq!(last_octets(&seen(&got)), [9]);
    server.wait(10);
    let again = seen(&ask(&mut server, &www(Rtype::A), &mut from_memory));
    assert_eq!((last_octets(&again), again.answers[0].1), (vec![9], 290));
    let got = ask(&mut server, &www(Rtype::TXT), &mut |_| Err(Failure::Network));
    assert_eq!(seen(&got).rcode, Rcode::SERVFAIL);
    assert_eq!(seen(&ask(&mut server, &www(Rtype::TXT), &mut from_memory)).rcode, Rcode::SERVFAIL);
    // An hour later it is stale; when both ways fail it is better than nothing.
    server.wait(3600);
    let got = seen(&ask(&mut server, &www(Rtype::A), &mut |_| Err(Failure::Network)));
    assert_eq!((last_octets(&got), got.answers[0].1), (vec![9], 30));
}

#[test]
fn branches_keep_their_own_answers() {
    let mut server = Server::with(gate(), |kept| {
        let split = SplitStep::of_policies(fallback(), &[2, 5]);
        let second = Op::Reject(Rcode::SERVFAIL, None);
        vec![Op::Split(Box::new(split)), Op::Accept, cache(kept), forward(0), Op::Return, second]
    });
    ask(&mut server, &www(Rtype::A), &mut address(3));
    assert_eq!(last_octets(&seen(&ask(&mut server, &www(Rtype::A), &mut from_memory))), [3]);
}

fn rewrite(target: Target, style: Style) -> Op {
    let rule = Rewrite { targets: Targets::One(target), style };
    Op::Split(Box::new(SplitStep::of_rest(Rule::Rewrite(Box::new(rule)))))
}

/// Says what the name's records are, with a chain if they have one: a CNAME and an address.
fn chain(want: &FetchWant) -> Result<Vec<u8>, Failure> {
    let ask = asked(want);
    let end = name("end.example.com");
    Ok(upstream(&ask, Rcode::NOERROR, |w| {
        w.record(Section::Answer, ask.name.as_name(), Rtype::CNAME, Class::IN, Ttl::new(600), |w| {
            w.name(end.as_name())
        })
        .expect("room");
        w.record(Section::Answer, end.as_name(), Rtype::A, Class::IN, Ttl::new(60), |w| {
            w.bytes(&[192, 0, 2, 8])
        })
        .expect("room");
    }))
}

/// Returns the owners and types of the answer section.
fn owners(reply: &[u8]) -> Vec<(NameBuf, u16)> {
    let message = Message::parse(reply).expect("a well-formed reply");
    let answers = message.records().filter(|record| record.section == Section::Answer);
    answers.map(|record| (record.owner.expand().expect("a name"), record.rtype.0)).collect()
}

#[test]
fn a_redirected_name_has_an_alias_and_its_records() {
    let mut server = server(vec![
        rewrite(Target::Name(name("other.example.net")), Style::Cname { ttl: None, authoritative: false }),
        forward(0),
    ]);
    let mut names = vec![];
    let got = ask(&mut server, &Ask::new("WWW.example.org", Rtype::A), &mut |want| {
        names.push(want.query.qname);
        chain(want)
    });
    assert_eq!(names, [name("other.example.net")]);
    let expected = [
        (name("www.example.org"), Rtype::CNAME.0),
        (name("other.example.net"), Rtype::CNAME.0),
        (name("end.example.com"), Rtype::A.0),
    ];
    assert_eq!(owners(&got), expected);
    let ttls: Vec<u32> = seen(&got).answers.iter().map(|answer| answer.1).collect();
    assert_eq!(ttls, [60, 600, 60], "the alias lives as long as the answer");
    assert_eq!(&got[12..29], b"\x03WWW\x07example\x03org\0", "the question as it came");
    // Nothing there: the alias says of what.
    let got =
        ask(&mut server, &www(Rtype::A), &mut |want| Ok(negative(&asked(want), Rcode::NXDOMAIN, 900, 300)));
    assert_eq!((seen(&got).rcode, owners(&got).len(), seen(&got).authorities.len()), (Rcode::NXDOMAIN, 1, 1));
    // The target itself is asked for as it is.
    let got = ask(&mut server, &Ask::new("Other.example.net", Rtype::A), &mut address(1));
    assert_eq!(owners(&got), [(name("other.example.net"), Rtype::A.0)]);
}

#[test]
fn a_rewritten_name_does_not_show() {
    let below = Target::Below { old: name("example.org"), new: name("internal.example") };
    let mut server = server(vec![rewrite(below, Style::Restored), forward(0)]);
    let mut names = vec![];
    let got = ask(&mut server, &Ask::new("a.b.example.org", Rtype::A), &mut |want| {
        names.push(want.query.qname);
        address(4)(want)
    });
    assert_eq!(names, [name("a.b.internal.example")]);
    assert_eq!(owners(&got), [(name("a.b.example.org"), Rtype::A.0)]);
    let other = ask(&mut server, &Ask::new("www.example.com", Rtype::A), &mut |want| {
        names.push(want.query.qname);
        address(4)(want)
    });
    assert_eq!((owners(&other).len(), names.len(), names[1]), (1, 2, name("www.example.com")));
}

#[test]
fn a_rewritten_name_that_would_be_too_long_stays() {
    let label = "x".repeat(63);
    let below = Target::Below { old: NameBuf::root(), new: name(&format!("{label}.{label}.{label}")) };
    let mut server = server(vec![rewrite(below, Style::Restored), forward(0)]);
    let long = Ask::new(&format!("{label}.example.org"), Rtype::A);
    let mut asked_for = None;
    ask(&mut server, &long, &mut |want| {
        asked_for = Some(want.query.qname);
        address(1)(want)
    });
    assert_eq!(asked_for, Some(long.name));
}

#[test]
fn caches_before_and_after_a_redirection_keep_what_they_see() {
    let mut server = Server::with(gate(), |kept| {
        let rule = Rewrite {
            targets: Targets::One(Target::Name(name("t.example.net"))),
            style: Style::Cname { ttl: None, authoritative: false },
        };
        let split = SplitStep::of_rest(Rule::Rewrite(Box::new(rule)));
        vec![Op::Split(Box::new(split)), cache(kept), forward(0)]
    });
    let asks = [Ask::new("a.example.org", Rtype::A), Ask::new("b.example.org", Rtype::A)];
    ask(&mut server, &asks[0], &mut address(1));
    server.wait(100);
    // Another name with the same target: from memory, under its own name.
    let got = ask(&mut server, &asks[1], &mut from_memory);
    assert_eq!(owners(&got)[0], (name("b.example.org"), Rtype::CNAME.0));
    assert_eq!(seen(&got).answers[1].1, 200);
    assert_eq!(
        last_octets(&seen(&ask(&mut server, &Ask::new("t.example.net", Rtype::A), &mut from_memory))),
        [1]
    );

    let mut server = Server::with(gate(), |kept| {
        let rule = Rewrite {
            targets: Targets::One(Target::Name(name("t.example.net"))),
            style: Style::Cname { ttl: None, authoritative: false },
        };
        let split = SplitStep::of_rest(Rule::Rewrite(Box::new(rule)));
        vec![cache(kept), Op::Split(Box::new(split)), forward(0)]
    });
    let first = ask(&mut server, &asks[0], &mut address(1));
    let again = ask(&mut server, &asks[0], &mut from_memory);
    assert_eq!(owners(&first), owners(&again));
    assert!(matches!(server.ask(&asks[1]), Asked::Deferred(_)));
}

#[test]
fn redirections_end_however_they_are_written() {
    // Each step renames what the one before made of it; names that grow stop at the longest.
    let grow = || rewrite(Target::Below { old: NameBuf::root(), new: name("x") }, Style::Restored);
    let mut server = server((0..20).map(|_| grow()).chain([forward(0)]).collect());
    let got = ask(&mut server, &www(Rtype::A).edns(1232), &mut address(1));
    assert_eq!((seen(&got).rcode, seen(&got).ede), (Rcode::SERVFAIL, Some(0)));
}

fn prefer(wanted: Rtype) -> Op {
    Op::Split(Box::new(SplitStep::of_rest(Rule::Prefer(Prefer { wanted, wait_ms: 500 }))))
}

/// A name with addresses of both families.
fn both(want: &FetchWant) -> Result<Vec<u8>, Failure> {
    let ask = asked(want);
    Ok(upstream(&ask, Rcode::NOERROR, |w| {
        let octets: &[u8] = if ask.qtype == Rtype::A { &[192, 0, 2, 1] } else { &[0x20; 16] };
        w.record(Section::Answer, ask.name.as_name(), ask.qtype, Class::IN, Ttl::new(60), |w| {
            w.bytes(octets)
        })
        .expect("room");
    }))
}

#[test]
fn names_with_preferred_addresses_seem_to_have_no_others() {
    let mut server = server(vec![prefer(Rtype::A), forward(0)]);
    let mut types = vec![];
    let got = seen(&ask(&mut server, &www(Rtype::AAAA).edns(1232), &mut |want| {
        types.push(want.query.qtype);
        both(want)
    }));
    assert_eq!(
        (got.rcode, got.answers.len(), got.authorities.as_slice()),
        (Rcode::NOERROR, 0, &[(6, 300)][..])
    );
    assert_eq!(got.ede, Some(17));
    types.sort_unstable_by_key(|rtype| rtype.0);
    assert_eq!(types, [Rtype::A, Rtype::AAAA]);
    // What is preferred, and all other types, are asked for as they are.
    for qtype in [Rtype::A, Rtype::HTTPS, Rtype::MX] {
        let mut count = 0;
        ask(&mut server, &www(qtype), &mut |want| {
            count += 1;
            both(want)
        });
        assert_eq!(count, 1, "{qtype}");
    }
}

#[test]
fn names_without_preferred_addresses_keep_the_others() {
    let mut server = server(vec![prefer(Rtype::A), forward(0)]);
    let only_v6 = |want: &FetchWant| match want.query.qtype {
        Rtype::A => Ok(negative(&asked(want), Rcode::NOERROR, 900, 300)),
        _ => both(want),
    };
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut |want| only_v6(want)));
    assert_eq!((got.rcode, got.answers.len()), (Rcode::NOERROR, 1));
    // Nor does a failure of the other look-up hide them.
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut |want| match want.query.qtype {
        Rtype::A => Err(Failure::Timeout),
        _ => both(want),
    }));
    assert_eq!(got.answers.len(), 1);
}

#[test]
fn a_preference_before_the_cache_is_decided_from_memory() {
    let mut server = Server::with(gate(), |kept| vec![prefer(Rtype::A), cache(kept), forward(0)]);
    ask(&mut server, &www(Rtype::A), &mut both);
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut from_memory));
    assert_eq!((got.rcode, got.answers.len(), got.authorities.len()), (Rcode::NOERROR, 0, 1));
}

fn forwards() -> Dns64 {
    Dns64 {
        prefixes: [Prefix64::WELL_KNOWN].into(),
        excluded: [Excluded::MAPPED].into(),
        ignores_ipv6: false,
        ignores_cd: false,
    }
}

fn dns64() -> Vec<Op> {
    dns64_with(Style::Cname { ttl: None, authoritative: false })
}

fn dns64_with(style: Style) -> Vec<Op> {
    let prefixes: Box<[Prefix64]> = [Prefix64::WELL_KNOWN].into();
    vec![
        Op::Split(Box::new(SplitStep::of_rest(Rule::Reverse(Box::new(Reverse { prefixes, style }))))),
        Op::Split(Box::new(SplitStep::of_rest(Rule::Dns64(Box::new(forwards()))))),
    ]
}

fn v6(text: &str) -> Vec<u8> {
    text.parse::<Ipv6Addr>().expect("an address").octets().to_vec()
}

/// A name that has only IPv4 addresses, behind a CNAME; "no IPv6" is true for a minute.
fn only_v4(want: &FetchWant) -> Result<Vec<u8>, Failure> {
    match want.query.qtype {
        Rtype::A => chain(want),
        _ => Ok(negative(&asked(want), Rcode::NOERROR, 40, 300)),
    }
}

#[test]
fn addresses_are_made_where_there_are_none() {
    let mut ops = dns64();
    ops.push(forward(0));
    let mut server = server(ops);
    let reply = ask(&mut server, &www(Rtype::AAAA).edns(1232), &mut only_v4);
    let got = seen(&reply);
    assert_eq!(owners(&reply), [(name("www.example.org"), 5), (name("end.example.com"), 28)]);
    // RFC 6147 §5.1.7: the A record's TTL, or what is left of "no AAAA" if that is less.
    assert_eq!(got.answers[1], (28, 40, v6("64:ff9b::c000:208")));
    assert_eq!(got.ede, Some(29));
    // RFC 6147 §5.1.2: an error in place of AAAA is as if there were none; NXDOMAIN is true for all
    // types.
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut |want| match want.query.qtype {
        Rtype::A => address(9)(want),
        _ => Err(Failure::Timeout),
    }));
    assert_eq!(got.answers, [(28, 300, v6("64:ff9b::c000:209"))]);
    let mut count = 0;
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut |want| {
        count += 1;
        Ok(negative(&asked(want), Rcode::NXDOMAIN, 900, 300))
    }));
    assert_eq!((got.rcode, count), (Rcode::NXDOMAIN, 1));
    // Neither family: the client hears about the type it asked for.
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut |want| {
        Ok(negative(&asked(want), Rcode::NOERROR, if want.query.qtype == Rtype::A { 7 } else { 77 }, 300))
    }));
    assert_eq!((got.rcode, got.authorities), (Rcode::NOERROR, vec![(6, 77)]));
}

#[test]
fn addresses_that_are_there_stay_unless_they_are_excluded() {
    let mut ops = dns64();
    ops.push(forward(0));
    let mut server = server(ops);
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut both));
    assert_eq!(got.answers, [(28, 60, vec![0x20; 16])]);
    let records = |want: &FetchWant, addresses: &[&str]| {
        let ask = asked(want);
        Ok(upstream(&ask, Rcode::NOERROR, |w| {
            for address in addresses {
                let octets = v6(address);
                w.record(Section::Answer, ask.name.as_name(), Rtype::AAAA, Class::IN, Ttl::new(60), |w| {
                    w.bytes(&octets)
                })
                .expect("room");
            }
        }))
    };
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut |want| {
        records(want, &["::ffff:192.0.2.1", "2001:db8::1"])
    }));
    assert_eq!(got.answers, [(28, 60, v6("2001:db8::1"))]);
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut |want| match want.query.qtype {
        Rtype::A => address(5)(want),
        _ => records(want, &["::ffff:192.0.2.1"]),
    }));
    assert_eq!(got.answers, [(28, 300, v6("64:ff9b::c000:205"))]);
}

#[test]
fn clients_that_validate_make_addresses_themselves() {
    let mut ops = dns64();
    ops.push(forward(0));
    let mut server = server(ops);
    let validates = Ask { flags: Flags::RD.with(Flags::CD), ..www(Rtype::AAAA).edns(1232).dnssec() };
    assert_eq!(seen(&ask(&mut server, &validates, &mut only_v4)).answers, []);
    let mut whatever_they_say = dns64();
    let Some(Op::Split(step)) = whatever_they_say.last_mut() else { panic!("addresses are made last") };
    **step = SplitStep::of_rest(Rule::Dns64(Box::new(Dns64 { ignores_cd: true, ..forwards() })));
    whatever_they_say.push(forward(0));
    let mut other = self::server(whatever_they_say);
    assert_eq!(seen(&ask(&mut other, &validates, &mut only_v4)).answers.len(), 2);
    // Those that only want to see signatures get addresses, without a claim that they were signed.
    let got = ask(&mut server, &www(Rtype::AAAA).edns(1232).dnssec(), &mut |want| {
        let mut reply = only_v4(want)?;
        reply[3] |= 0x20; // AD.
        Ok(reply)
    });
    assert_eq!((seen(&got).answers.len(), header(&got).flags.has(Flags::AD)), (2, false));
}

#[test]
fn reverse_names_of_made_addresses_lead_to_the_ipv4_ones() {
    let mut ops = dns64();
    ops.push(forward(0));
    let mut server = server(ops);
    // 64:ff9b::c000:201, nibble by nibble.
    let text = "1.0.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.F.F.4.6.0.0.ip6.arpa";
    let mut asked_for = None;
    let reply = ask(&mut server, &Ask::new(text, Rtype::PTR), &mut |want| {
        asked_for = Some(want.query.qname);
        let ask = asked(want);
        Ok(upstream(&ask, Rcode::NOERROR, |w| {
            let host = name("host.example.org");
            w.record(Section::Answer, ask.name.as_name(), Rtype::PTR, Class::IN, Ttl::new(60), |w| {
                w.name(host.as_name())
            })
            .expect("room");
        }))
    });
    assert_eq!(asked_for, Some(name("1.2.0.192.in-addr.arpa")));
    assert_eq!(owners(&reply), [(name(text), 5), (name("1.2.0.192.in-addr.arpa"), 12)]);
    // Another prefix is somebody else's.
    let other = text.replace("4.6.0.0", "5.6.0.0");
    ask(&mut server, &Ask::new(&other, Rtype::PTR), &mut |want| {
        asked_for = Some(want.query.qname);
        Ok(negative(&asked(want), Rcode::NXDOMAIN, 900, 300))
    });
    assert_eq!(asked_for, Some(name(&other)));
}

#[test]
fn reverse_names_of_made_addresses_can_have_the_records_themselves() {
    let mut ops = dns64_with(Style::Restored);
    ops.push(forward(0));
    let mut server = server(ops);
    let text = "1.0.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";
    let reply = ask(&mut server, &Ask::new(text, Rtype::PTR).edns(1232).dnssec(), &mut |want| {
        let ask = asked(want);
        Ok(upstream(&ask, Rcode::NOERROR, |w| {
            let host = name("host.example.org");
            w.record(Section::Answer, ask.name.as_name(), Rtype::PTR, Class::IN, Ttl::new(60), |w| {
                w.name(host.as_name())
            })
            .expect("room");
            // Over PTR, by the root, of one octet.
            let signature = [0, 12, 8, 6, 0, 0, 0, 60, 0, 0, 0, 9, 0, 0, 0, 1, 0, 7, 0, 1];
            w.record(Section::Answer, ask.name.as_name(), Rtype::RRSIG, Class::IN, Ttl::new(60), |w| {
                w.bytes(&signature)
            })
            .expect("room");
        }))
    });
    // What signs the other name proves nothing of this one.
    assert_eq!(owners(&reply), [(name(text), 12)]);
}

#[test]
fn made_addresses_come_from_memory_too() {
    let mut server = Server::with(gate(), |kept| {
        let mut ops = dns64();
        ops.extend([cache(kept), forward(0)]);
        ops
    });
    ask(&mut server, &www(Rtype::AAAA), &mut only_v4);
    server.wait(10);
    let got = seen(&ask(&mut server, &www(Rtype::AAAA), &mut from_memory));
    assert_eq!(got.answers[1], (28, 30, v6("64:ff9b::c000:208")));
}

#[test]
fn an_answer_outlasts_a_sleep() {
    let mut server = server(vec![forward(0), Op::Sleep(20), Op::Accept]);
    let got = ask(&mut server, &www(Rtype::A), &mut address(6));
    assert_eq!(last_octets(&seen(&got)), [6]);
    let mut server = self::server(vec![Op::Sleep(20), Op::Reject(Rcode::NXDOMAIN, None)]);
    assert_eq!(seen(&ask(&mut server, &www(Rtype::A), &mut from_memory)).rcode, Rcode::NXDOMAIN);
}

#[test]
fn an_answer_outlasts_what_asks_in_what_follows() {
    let redirect =
        || rewrite(Target::Name(name("other.example.net")), Style::Cname { ttl: None, authoritative: false });
    let restore = || rewrite(Target::Name(name("other.example.net")), Style::Restored);
    for (late, qtype) in [
        (vec![prefer(Rtype::A)], Rtype::AAAA),
        (vec![prefer(Rtype::AAAA)], Rtype::A),
        (dns64(), Rtype::AAAA),
        (vec![redirect()], Rtype::A),
        (vec![restore()], Rtype::A),
    ] {
        let ops = [forward(0)].into_iter().chain(late).chain([Op::Sleep(20), Op::Accept]).collect();
        let got = seen(&ask(&mut server(ops), &www(qtype), &mut both));
        assert_eq!((got.rcode, got.answers.len()), (Rcode::NOERROR, 1), "{qtype}");
    }
    // Without the answer they ask again.
    let mut server = server(vec![forward(0), Op::Forget, redirect(), forward(1)]);
    let got = ask(&mut server, &www(Rtype::A), &mut both);
    assert_eq!(owners(&got).len(), 2);
}

#[test]
fn answers_are_forgotten_and_cut_and_jumps_do_not_come_back() {
    let mut server = server(vec![forward(0), Op::Forget, Op::Accept]);
    assert_eq!(seen(&ask(&mut server, &www(Rtype::A), &mut address(6))).rcode, Rcode::REFUSED);
    let mut server = self::server(vec![forward(0), Op::Truncate, Op::Accept]);
    let got = seen(&ask(&mut server, &www(Rtype::A), &mut address(6)));
    assert!(got.flags.has(Flags::TC) && got.answers.is_empty());
    server.client.transport = engine::Transport::Tcp;
    assert_eq!(seen(&ask(&mut server, &www(Rtype::A), &mut address(6))).answers.len(), 1);
    // A call, and in it a jump: its return ends the query.
    let reject = |rcode| Op::Reject(rcode, None);
    let ops = vec![Op::Call(2), reject(Rcode::NXDOMAIN), Op::Goto(4), reject(Rcode::NOTIMP), Op::Return];
    let mut server = self::server(ops);
    assert_eq!(seen(&ask(&mut server, &www(Rtype::A), &mut from_memory)).rcode, Rcode::REFUSED);
}

#[test]
fn a_hit_goes_on_if_it_is_to() {
    let mut server = Server::with(gate(), |kept| {
        let rules = CacheRules::default();
        let step = CacheStep { cache: Arc::clone(kept), rules, view: 0, continues: true };
        vec![
            Op::Cache(step),
            Op::SkipUnless(engine::program::Matcher::Mark(1), 1),
            Op::Accept,
            Op::Ttl(engine::ops::ttl::TtlRule::Fixed(Ttl::new(7))),
            Op::SkipUnless(engine::program::Matcher::Mark(1), 1),
            Op::Accept,
        ]
    });
    // Nothing there: the steps after it have nothing to work on.
    assert_eq!(seen(&ask(&mut server, &www(Rtype::A), &mut from_memory)).rcode, Rcode::REFUSED);
}

#[test]
fn a_failure_goes_on_through_the_program() {
    // The second forward is only asked because the first failed; there is no fallback step.
    let mut server = server(vec![forward(0), forward(1), Op::Accept]);
    let mut pools = vec![];
    let got = ask(&mut server, &www(Rtype::A), &mut |want| {
        pools.push(want.pool.0);
        if want.pool.0 == 0 { Err(Failure::Timeout) } else { address(2)(want) }
    });
    assert_eq!((last_octets(&seen(&got)), pools), (vec![2], vec![0, 1]));
}

#[test]
fn drops_in_what_follows_drop_the_query() {
    for first in [
        prefer(Rtype::A),
        rewrite(Target::Name(name("t.example.net")), Style::Cname { ttl: None, authoritative: false }),
    ] {
        let mut server = server(vec![first, Op::Drop]);
        assert!(server.ask(&www(Rtype::AAAA)).is_dropped());
    }
}

#[test]
fn worth_is_seen_from_outside() {
    // What the machine that waits relies on: a branch without an answer still reports.
    let mut server = server(two_ways(fallback(), forward(0), Op::Drop));
    let suspended = server.ask(&www(Rtype::A)).deferred();
    let mut buffer = vec![0; 4096];
    let mut reply = Reply::new(&mut buffer);
    assert!(matches!(server.engine.branch(&suspended, 1, &mut reply), Verdict::Drop));
    assert_eq!(reply.report().map(|report| report.worth), Some(Worth::Dropped));
}

#[test]
fn addresses_that_connect_fastest_come_first_once_that_is_known() {
    let how =
        Quickest { ports: [443, 0, 0, 0], timeout_ms: 600, keep_seconds: 3600, keep_failure_seconds: 60 };
    let mut server = server(vec![forward(0), Op::Quickest(how)]);
    let several = |want: &FetchWant| {
        let ask = asked(want);
        Ok(upstream(&ask, Rcode::NOERROR, |w| {
            for last in 1..=4 {
                w.record(Section::Answer, ask.name.as_name(), Rtype::A, Class::IN, Ttl::new(60), |w| {
                    w.bytes(&[192, 0, 2, last])
                })
                .expect("room");
            }
        }))
    };
    let got = ask(&mut server, &www(Rtype::A), &mut |want| several(want));
    assert_eq!(last_octets(&seen(&got)), [1, 2, 3, 4], "nobody waits for a measurement");
    let mut probes: Vec<Probe> = std::iter::from_fn(|| server.engine.next_probe()).collect();
    probes.sort_unstable_by_key(|probe| probe.address);
    assert_eq!(probes.len(), 4);
    let got = ask(&mut server, &www(Rtype::A), &mut |want| several(want));
    assert_eq!(last_octets(&seen(&got)), [1, 2, 3, 4]);
    assert!(server.engine.next_probe().is_none(), "what is being measured is not measured again");
    // The first does not connect, the second is not measured yet, the last is the fastest.
    server.engine.measured(&probes[0], None);
    server.engine.measured(&probes[2], Some(9000));
    server.engine.measured(&probes[3], Some(300));
    let got = ask(&mut server, &www(Rtype::A), &mut |want| several(want));
    assert_eq!(last_octets(&seen(&got)), [4, 3, 2, 1]);
    // A failure is forgotten sooner than a success, and everything in the end.
    server.wait(61);
    ask(&mut server, &www(Rtype::A), &mut |want| several(want));
    let mut again: Vec<Probe> = std::iter::from_fn(|| server.engine.next_probe()).collect();
    again.sort_unstable_by_key(|probe| probe.address);
    assert_eq!(again, [probes[0], probes[1]]);
}
