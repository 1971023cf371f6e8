//! What one query gets: protocol rules, local names, cache, failures, and what the gate says.
//! Long because every rule that holds for all queries is tested beside the others.

use std::sync::Arc;

use engine::gate::CookieRequired;
use engine::gate::Gate;
use engine::gate::cookie::Secrets;
use engine::gate::prefix_set::PrefixSet;
use engine::gate::rate::RateRule;
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::forward::ForwardStep;
use engine::ops::ttl::TtlRule;
use engine::ops::zone::{Unloaded, ZoneStep};
use engine::program::{Matcher, Op};
use engine::{Announce, Client, Failure, Keepalive, PoolId, Reply, Transport, Verdict};
use sets::{NameSetBuilder, Reach};
use wire::Prefix;
use wire::{Class, Flags, Header, Message, OptionCode, Rcode, Rtype, Section, Ttl};

use crate::common;
use common::{
    Ask, Asked, KEY, Server, client, errors, gate, header, name, negative, seen, upstream, usual,
    with_address,
};

fn server() -> Server {
    Server::new(CacheRules::default())
}

fn www() -> Ask {
    Ask::new("www.example.org", Rtype::A)
}

#[test]
fn what_strangers_send_gets_the_right_rcode_or_silence() {
    let mut server = server();
    let mut check = |bytes: &[u8], expected: Option<Rcode>| {
        let mut buf = [0; 512];
        let mut reply = Reply::new(&mut buf);
        let verdict = server.engine.answer(bytes, &client("192.0.2.1"), &mut reply);
        let got = matches!(verdict, Verdict::Answered).then(|| header(reply.bytes()).flags.rcode());
        assert_eq!(got, expected, "{bytes:02x?}");
        if got.is_some() {
            assert_eq!(reply.bytes()[..2], bytes[..2], "the identifier");
        }
    };
    let good = www().bytes();
    let changed = |change: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    check(&[], None);
    check(&good[..11], None);
    check(&changed(|b| b[2] |= 0x80), None);
    check(&changed(|b| b[5] = 0), Some(Rcode::FORMERR));
    check(&changed(|b| b[5] = 2), Some(Rcode::FORMERR));
    check(&changed(|b| b[2] |= 0x10), Some(Rcode::NOTIMP));
    check(&changed(|b| b.push(0)), Some(Rcode::FORMERR));
    check(&changed(|b| b[12] = 0xc0), Some(Rcode::FORMERR));
    check(&changed(|b| b[12] = 60), Some(Rcode::FORMERR));
    check(&good[..20], Some(Rcode::FORMERR));
    let mut two_opts = www().edns(1232).bytes();
    two_opts[11] = 2;
    two_opts.extend_from_slice(&[0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
    check(&two_opts, Some(Rcode::FORMERR));
}

#[test]
fn an_edns_version_we_do_not_know_gets_badvers() {
    let mut server = server();
    let mut bytes = www().edns(1232).bytes();
    let version_at = bytes.len() - 5;
    bytes[version_at] = 1;
    let mut buf = [0; 512];
    let mut reply = Reply::new(&mut buf);
    assert!(matches!(server.engine.answer(&bytes, &client("192.0.2.1"), &mut reply), Verdict::Answered));
    assert_eq!(seen(reply.bytes()).rcode, Rcode::BADVERS);
}

#[test]
fn the_size_that_is_announced_need_not_be_that_of_replies() {
    let mut server = Server::announcing(1400);
    let reply = server.ask(&Ask::new("localhost", Rtype::A).edns(4096)).answered();
    let edns = Message::parse(&reply).expect("well formed").edns.expect("an OPT");
    assert_eq!(edns.udp_size, 1400);
}

#[test]
fn edns_is_in_the_reply_if_and_only_if_it_was_in_the_query() {
    let mut server = server();
    let plain = server.ask(&Ask::new("localhost", Rtype::A)).answered();
    assert!(Message::parse(&plain).expect("well formed").edns.is_none());
    let reply =
        server.ask(&Ask::new("localhost", Rtype::A).edns(4096).dnssec().option(65001, b"x")).answered();
    let edns = Message::parse(&reply).expect("well formed").edns.expect("an OPT");
    assert_eq!(
        (edns.udp_size, edns.version, edns.wants_dnssec(), edns.options().count()),
        (1232, 0, true, 0)
    );
}

#[test]
fn the_case_of_the_question_comes_back_on_every_way() {
    let mut server = server();
    let mixed = Ask::new("wWw.ExAmPlE.oRg", Rtype::A);
    let fetched = server.fetch(&mixed, &with_address(&www(), 300, [192, 0, 2, 7]));
    let hit = server.ask(&Ask::new("WWW.example.ORG", Rtype::A)).answered();
    for (reply, ask) in [(&fetched, &mixed), (&hit, &Ask::new("WWW.example.ORG", Rtype::A))] {
        assert_eq!(&reply[12..12 + 17], ask.name.as_name().as_bytes());
        assert_eq!(seen(reply).answers.len(), 1);
    }
    let local = server.ask(&Ask::new("LocalHost", Rtype::A)).answered();
    assert_eq!(&local[12..23], b"\x09LocalHost\0");
}

#[test]
fn any_gets_one_hinfo_and_transfers_are_refused() {
    let mut server = server();
    let mut check = |qtype, rcode, answers: usize| {
        let got = seen(&server.ask(&Ask::new("example.org", qtype)).answered());
        assert_eq!((got.rcode, got.answers.len()), (rcode, answers), "{qtype:?}");
    };
    check(Rtype::ANY, Rcode::NOERROR, 1);
    check(Rtype::AXFR, Rcode::REFUSED, 0);
    check(Rtype::IXFR, Rcode::REFUSED, 0);
    check(Rtype::MAILA, Rcode::NOTIMP, 0);
    check(Rtype::OPT, Rcode::FORMERR, 0);
}

#[test]
fn a_query_for_changes_since_a_version_that_is_not_here_is_counted_as_answered() {
    let mut server = server();
    let mut query = Ask::new("example.org", Rtype::IXFR).bytes();
    // The version that the client has: one record in the authority section.
    query[9] = 1;
    query.extend_from_slice(&[0, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22]);
    query.extend_from_slice(&[0; 22]);
    let mut buf = [0; 512];
    let mut reply = Reply::new(&mut buf);
    let verdict = server.engine.answer(&query, &client("192.0.2.1"), &mut reply);
    assert!(matches!(verdict, Verdict::Answered));
    assert_eq!(header(reply.bytes()).flags.rcode(), Rcode::FORMERR);
    assert_eq!(server.counters.other_rcode.read(), 1);
}

#[test]
fn chaos_is_hidden_unless_told() {
    let mut server = server();
    let ask = Ask { qclass: Class::CH, ..Ask::new("version.bind", Rtype::TXT) };
    assert_eq!(seen(&server.ask(&ask).answered()).rcode, Rcode::REFUSED);
    let ask = Ask { qclass: Class::HS, ..www() };
    assert_eq!(seen(&server.ask(&ask).answered()).rcode, Rcode::REFUSED);
}

#[test]
fn records_keep_their_ttls_where_they_are_to_be_the_original_ones() {
    let mut server = Server::new(CacheRules { keeps_ttls: true, ..CacheRules::default() });
    server.fetch(&www(), &with_address(&www(), 300, [192, 0, 2, 7]));
    server.wait(50);
    assert_eq!(seen(&server.ask(&www()).answered()).answers[0].1, 300);
    server.wait(250);
    assert!(matches!(server.ask(&www()), Asked::Deferred(_)), "it is kept no longer for that");
}

#[test]
fn records_age_one_by_one() {
    let mut server = server();
    let ask = www();
    let reply = upstream(&ask, Rcode::NOERROR, |w| {
        for (ttl, last) in [(300, 1), (200, 2)] {
            w.record(Section::Answer, ask.name.as_name(), Rtype::A, Class::IN, Ttl::new(ttl), |w| {
                w.bytes(&[192, 0, 2, last])
            })
            .expect("room");
        }
    });
    server.fetch(&ask, &reply);
    server.wait(50);
    let answers = seen(&server.ask(&ask).answered()).answers;
    assert_eq!(answers.iter().map(|answer| answer.1).collect::<Vec<_>>(), [250, 150]);
    assert_eq!(server.counters.cache_hits.read(), 1);
    server.wait(150);
    assert!(matches!(server.ask(&ask), Asked::Deferred(_)), "expired with its first record");
}

#[test]
fn nothing_of_the_first_asker_leaks_to_the_second() {
    let mut server = server();
    let first = Ask { id: 1, ..www().edns(4096) };
    server.fetch(&first, &with_address(&first, 300, [192, 0, 2, 7]));
    let second = Ask { id: 2, flags: Flags::RD.with(Flags::AD), ..www() };
    let reply = server.ask(&second).answered();
    assert_eq!(header(&reply).id, 2);
    assert_eq!(header(&reply).additionals, 0, "no OPT");
    // DO, CD and class keep answers apart.
    assert!(matches!(server.ask(&www().dnssec()), Asked::Deferred(_)));
    assert!(matches!(server.ask(&Ask { flags: Flags::RD.with(Flags::CD), ..www() }), Asked::Deferred(_)));
}

#[test]
fn ttls_are_brought_within_bounds_and_the_client_sees_it() {
    let rules = CacheRules { min_ttl: Ttl::new(60), max_ttl: Ttl::new(600), ..CacheRules::default() };
    let mut server = Server::new(rules);
    for (text, ttl, expected) in
        [("a.example.org", 5, 60), ("b.example.org", 9000, 600), ("c.example.org", 0, 60)]
    {
        let ask = Ask::new(text, Rtype::A);
        let reply = server.fetch(&ask, &with_address(&ask, ttl, [192, 0, 2, 7]));
        assert_eq!(seen(&reply).answers[0].1, expected, "{text}");
        assert_eq!(seen(&server.ask(&ask).answered()).answers[0].1, expected, "{text} again");
    }
}

#[test]
fn cache_min_negative_ttl_keeps_negative_answers_at_least_so_long() {
    let rules = CacheRules { min_negative_ttl: Ttl::new(50), ..CacheRules::default() };
    let mut server = Server::with(gate(), |cache| usual(cache, rules));
    for (number, (soa_ttl, minimum, expect)) in
        [(600, 5, 50), (5, 600, 50), (600, 90, 90)].into_iter().enumerate()
    {
        let ask = Ask::new(&format!("n{number}.example.org"), Rtype::A);
        let reply = server.fetch(&ask, &negative(&ask, Rcode::NXDOMAIN, soa_ttl, minimum));
        assert_eq!(seen(&reply).authorities, [(6, expect)], "{soa_ttl} {minimum}");
    }
}

#[test]
fn negative_answers_are_kept_as_rfc_2308_says() {
    let mut server = server();
    for (text, rcode, soa_ttl, minimum, kept) in [
        ("a.example.org", Rcode::NXDOMAIN, 900, 300, 300),
        ("b.example.org", Rcode::NXDOMAIN, 200, 300, 200),
        ("c.example.org", Rcode::NOERROR, 900, 300, 300),
        ("d.example.org", Rcode::NXDOMAIN, 90_000, 90_000, 3_600),
    ] {
        let ask = Ask::new(text, Rtype::A);
        let reply = server.fetch(&ask, &negative(&ask, rcode, soa_ttl, minimum));
        assert_eq!(seen(&reply).authorities, [(6, kept)], "{text}");
        let again = seen(&server.ask(&ask).answered());
        assert_eq!((again.rcode, again.authorities), (rcode, vec![(6, kept)]), "{text} again");
    }
    // Without an SOA there is no TTL to keep it for.
    let ask = Ask::new("e.example.org", Rtype::A);
    server.fetch(&ask, &upstream(&ask, Rcode::NXDOMAIN, |_| {}));
    assert!(matches!(server.ask(&ask), Asked::Deferred(_)));
}

#[test]
fn failures_are_remembered_for_a_moment() {
    let mut server = server();
    let suspended = server.ask(&www()).deferred();
    let reply = server.resume(suspended, Err(Failure::Timeout));
    assert_eq!(seen(&reply).rcode, Rcode::SERVFAIL);
    let again = seen(&server.ask(&www().edns(1232)).answered());
    assert_eq!((again.rcode, again.ede), (Rcode::SERVFAIL, Some(13)));
    server.wait(5);
    assert!(matches!(server.ask(&www()), Asked::Deferred(_)));
}

/// Lets the question fail, and returns for how many seconds that is remembered.
fn fail(server: &mut Server) -> u32 {
    let suspended = server.ask(&www()).deferred();
    server.resume(suspended, Err(Failure::Timeout));
    let mut seconds = 0;
    while matches!(server.ask(&www()), Asked::Answered(_)) {
        server.wait(1);
        seconds += 1;
    }
    seconds
}

#[test]
fn failures_in_a_row_are_remembered_for_longer_and_longer_up_to_the_bound() {
    // Whole seconds are counted, so that two of them are at least one.
    let remembered = |failure_ttl| {
        let mut server =
            Server::new(CacheRules { failure_ttl: Ttl::new(failure_ttl), ..CacheRules::default() });
        [(); 6].map(|()| fail(&mut server))
    };
    assert_eq!(remembered(1), [1, 1, 1, 1, 1, 1]);
    assert_eq!(remembered(5), [2, 4, 5, 5, 5, 5]);
    assert_eq!(remembered(300), [2, 4, 8, 16, 32, 64]);
}

#[test]
fn the_row_of_failures_ends_with_an_answer_or_with_time() {
    let mut server = Server::new(CacheRules { failure_ttl: Ttl::new(60), ..CacheRules::default() });
    assert_eq!([fail(&mut server), fail(&mut server), fail(&mut server)], [2, 4, 8]);
    server.fetch(&www(), &with_address(&www(), 1, [192, 0, 2, 7]));
    server.wait(2);
    let suspended = server.ask(&www()).deferred();
    server.resume(suspended, Err(Failure::Timeout));
    server.wait(2);
    assert!(matches!(server.ask(&www()), Asked::Deferred(_)), "the first one after an answer");

    let mut server = Server::new(CacheRules { failure_ttl: Ttl::new(60), ..CacheRules::default() });
    assert_eq!([fail(&mut server), fail(&mut server)], [2, 4]);
    server.wait(60);
    assert_eq!(fail(&mut server), 2, "nobody has asked for longer than a failure may be remembered");
}

#[test]
fn failures_of_the_same_time_count_once() {
    let mut server = server();
    let together = [(); 3].map(|()| server.ask(&www()).deferred());
    for suspended in together {
        server.resume(suspended, Err(Failure::Timeout));
    }
    server.wait(1);
    assert!(matches!(server.ask(&www()), Asked::Answered(_)));
    server.wait(1);
    assert!(matches!(server.ask(&www()), Asked::Deferred(_)));
}

#[test]
fn a_failure_is_forgotten_when_its_group_has_recovered() {
    let mut server = server();
    let ask = www().edns(1232);
    let fail = |server: &mut Server| {
        let suspended = server.ask(&ask).deferred();
        server.resume(suspended, Err(Failure::Timeout))
    };
    fail(&mut server);
    server.engine.group_recovered(PoolId(9));
    assert_eq!(seen(&server.ask(&ask).answered()).ede, Some(13), "another group");
    server.engine.group_recovered(PoolId(0));
    fail(&mut server);
    // Likewise beside a stale answer.
    server.engine.group_recovered(PoolId(0));
    server.fetch(&ask, &with_address(&ask, 60, [192, 0, 2, 7]));
    server.wait(61);
    fail(&mut server);
    assert_eq!(seen(&server.ask(&ask).answered()).ede, Some(3));
    server.engine.group_recovered(PoolId(0));
    let fresh = seen(&server.fetch(&ask, &with_address(&ask, 60, [192, 0, 2, 8])));
    assert_eq!((fresh.answers[0].2.as_slice(), fresh.ede), (&[192, 0, 2, 8][..], None));
}

#[test]
fn a_failure_of_before_a_recovery_is_not_remembered_after_it() {
    let mut server = server();
    let suspended = server.ask(&www()).deferred();
    server.engine.group_recovered(PoolId(0));
    server.resume(suspended, Err(Failure::Timeout));
    assert!(matches!(server.ask(&www()), Asked::Deferred(_)));
}

#[test]
fn steps_of_the_wall_clock_change_no_lifetime() {
    let mut server = server();
    server.fetch(&www(), &with_address(&www(), 100, [192, 0, 2, 7]));
    let ttl = |server: &mut Server| seen(&server.ask(&www()).answered()).answers[0].1;
    // A day ahead, back again and a day behind, an hour ahead, never set.
    for (step, left) in [(86_400, 90), (-86_400, 80), (-86_400, 70), (90_000, 60), (i64::MIN, 50)] {
        server.step_wall(step);
        server.wait(10);
        assert_eq!(ttl(&mut server), left, "after a step of {step} s");
    }
    server.step_wall(1_900_000_000);
    server.wait(50);
    assert_eq!(
        server.ask(&www()).deferred().want().stale_after_ms(),
        Some(1800),
        "it has expired in its time"
    );
}

#[test]
fn every_failure_says_why() {
    let rules = CacheRules { failure_ttl: Ttl::ZERO, ..CacheRules::default() };
    let mut server = Server::new(rules);
    for (failure, ede) in [
        (Failure::Timeout, 22),
        (Failure::Network, 23),
        (Failure::Down, 22),
        (Failure::BadReply(Rcode::FORMERR), 24),
        (Failure::Overloaded, 0),
        (Failure::NoUpstream, 22),
        (Failure::Stopping, 14),
    ] {
        let suspended = server.ask(&www().edns(1232)).deferred();
        let reply = seen(&server.resume(suspended, Err(failure)));
        assert_eq!((reply.rcode, reply.ede), (Rcode::SERVFAIL, Some(ede)), "{failure:?}");
    }
}

#[test]
fn a_failure_from_the_cache_says_why_as_the_first_one_did() {
    for failure in [
        Failure::Timeout,
        Failure::Network,
        Failure::Down,
        Failure::BadReply(Rcode::SERVFAIL),
        Failure::Overloaded,
        Failure::NoUpstream,
        Failure::Stopping,
    ] {
        let mut server = server();
        let ask = www().edns(1232);
        let suspended = server.ask(&ask).deferred();
        let first = errors(&server.resume(suspended, Err(failure)));
        assert!(first.iter().all(|(_, text)| !text.is_empty()), "{failure:?}: {first:?}");
        let again = errors(&server.ask(&ask).answered());
        let (cached, rest) = again.split_first().expect("what a cache says");
        assert_eq!((cached.0, rest), (13, &first[..]), "{failure:?}");
    }
    let mut server = server();
    let suspended = server.ask(&www().edns(1232)).deferred();
    let codes = errors(&server.resume(suspended, Err(Failure::Network)));
    assert_eq!(codes.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [23, 22], "several of them");
}

#[test]
fn stale_answers_wait_for_the_client_timer_or_a_failure() {
    let mut server = server();
    let ask = www().edns(1232);
    server.fetch(&ask, &with_address(&ask, 60, [192, 0, 2, 7]));
    server.wait(61);
    let mut suspended = server.ask(&ask).deferred();
    assert_eq!(suspended.want().stale_after_ms(), Some(1800));
    // The timer runs out.
    let mut buf = [0; 1232];
    let mut reply = Reply::new(&mut buf);
    assert!(matches!(server.engine.answer_stale(&mut suspended, &mut reply), Verdict::Answered));
    let stale = seen(reply.bytes());
    assert_eq!((stale.rcode, stale.answers[0].1, stale.ede), (Rcode::NOERROR, 30, Some(3)));
    // The fetch fails after all.
    let stale = seen(&server.resume(suspended, Err(Failure::Timeout)));
    assert_eq!((stale.rcode, stale.answers[0].1, stale.ede), (Rcode::NOERROR, 30, Some(3)));
    // For a while nobody asks again; then somebody does, and the upstream is back.
    assert_eq!(seen(&server.ask(&ask).answered()).ede, Some(3));
    server.wait(6);
    let fresh = seen(&server.fetch(&ask, &with_address(&ask, 60, [192, 0, 2, 8])));
    assert_eq!((fresh.answers[0].2.as_slice(), fresh.ede), (&[192, 0, 2, 8][..], None));
    assert_eq!(seen(&server.ask(&ask).answered()).answers[0].1, 60);
}

#[test]
fn who_sets_cd_gets_what_has_expired_of_others() {
    let ask = www().edns(1232);
    let unchecked = || Ask { flags: Flags::RD.with(Flags::CD), ..www().edns(1232) };
    for stale_client_timeout_ms in [0, 1800] {
        let mut server = Server::new(CacheRules { stale_client_timeout_ms, ..CacheRules::default() });
        server.fetch(&ask, &with_address(&ask, 60, [192, 0, 2, 7]));
        server.wait(61);
        let mut reply = if stale_client_timeout_ms == 0 {
            let reply = server.ask(&unchecked()).answered();
            let refresh = server.engine.next_prefetch().expect("a refresh");
            server.resume(refresh, Err(Failure::Timeout));
            reply
        } else {
            let suspended = server.ask(&unchecked()).deferred();
            assert_eq!(suspended.want().stale_after_ms(), Some(1800));
            server.resume(suspended, Err(Failure::Timeout))
        };
        // The second time nobody is asked: it has failed a moment ago.
        for _ in 0..2 {
            let stale = seen(&reply);
            assert_eq!((stale.rcode, stale.answers[0].1, stale.ede), (Rcode::NOERROR, 30, Some(3)));
            reply = server.ask(&unchecked()).answered();
        }
        assert_eq!(errors(&reply), [(3, String::new())], "and no text");
    }
}

#[test]
fn a_servfail_from_upstream_does_not_beat_a_stale_answer() {
    let mut server = server();
    let ask = Ask::new("no.example.org", Rtype::A).edns(1232);
    server.fetch(&ask, &negative(&ask, Rcode::NXDOMAIN, 60, 60));
    server.wait(61);
    let stale = seen(&server.fetch(&ask, &upstream(&ask, Rcode::SERVFAIL, |_| {})));
    assert_eq!((stale.rcode, stale.ede), (Rcode::NXDOMAIN, Some(19)));
}

#[test]
fn an_answer_that_cannot_be_kept_takes_the_place_of_a_stale_one() {
    let mut server = Server::new(CacheRules { stale_client_timeout_ms: 0, ..CacheRules::default() });
    let ask = Ask::new("no.example.org", Rtype::A);
    server.fetch(&ask, &negative(&ask, Rcode::NXDOMAIN, 60, 60));
    server.wait(61);
    assert_eq!(seen(&server.ask(&ask).answered()).rcode, Rcode::NXDOMAIN, "stale, at once");
    let refresh = server.engine.next_prefetch().expect("a refresh");
    server.resume(refresh, Ok(&with_address(&ask, 0, [192, 0, 2, 8])));
    assert!(matches!(server.ask(&ask), Asked::Deferred(_)), "the name is there by now");
}

#[test]
fn data_older_than_the_stale_window_is_gone() {
    let mut server = Server::new(CacheRules { stale_seconds: 100, ..CacheRules::default() });
    server.fetch(&www(), &with_address(&www(), 60, [192, 0, 2, 7]));
    server.wait(161);
    assert_eq!(server.ask(&www()).deferred().want().stale_after_ms(), None);
}

#[test]
fn serve_expired_ttl_reset_begins_the_stale_time_anew_with_each_failure() {
    for restarts_stale in [true, false] {
        let rules = CacheRules { stale_seconds: 100, restarts_stale, ..CacheRules::default() };
        let mut server = Server::new(rules);
        server.fetch(&www(), &with_address(&www(), 60, [192, 0, 2, 1]));
        for _ in 0..3 {
            server.wait(90);
            let suspended = server.ask(&www()).deferred();
            let has_stale = suspended.want().stale_after_ms().is_some();
            let heard = seen(&server.resume(suspended, Err(Failure::Timeout)));
            assert_eq!(heard.rcode == Rcode::NOERROR, has_stale, "{heard:?}");
        }
        server.wait(90);
        let has_stale = server.ask(&www()).deferred().want().stale_after_ms().is_some();
        assert_eq!(has_stale, restarts_stale, "six minutes after it came");
        server.wait(20);
        assert!(server.ask(&www()).deferred().want().stale_after_ms().is_none(), "as nobody asked for long");
    }
}

#[test]
fn without_patience_a_stale_answer_comes_at_once_and_is_refreshed_once() {
    let mut server = Server::new(CacheRules { stale_client_timeout_ms: 0, ..CacheRules::default() });
    server.fetch(&www(), &with_address(&www(), 60, [192, 0, 2, 7]));
    server.wait(61);
    assert_eq!(seen(&server.ask(&www()).answered()).answers[0].1, 30);
    let prefetch = server.engine.next_prefetch().expect("a refresh");
    assert_eq!(seen(&server.ask(&www()).answered()).answers[0].1, 30);
    assert!(server.engine.next_prefetch().is_none(), "one refresh is enough");
    server.resume(prefetch, Ok(&with_address(&www(), 60, [192, 0, 2, 8])));
    assert_eq!(seen(&server.ask(&www()).answered()).answers[0].2, [192, 0, 2, 8]);
}

#[test]
fn popular_answers_are_fetched_before_they_expire() {
    let mut server = server();
    server.fetch(&www(), &with_address(&www(), 100, [192, 0, 2, 7]));
    let _ = server.ask(&www()).answered();
    server.wait(89);
    let _ = server.ask(&www()).answered();
    assert!(server.engine.next_prefetch().is_none(), "too early");
    server.wait(2);
    let _ = server.ask(&www()).answered();
    let prefetch = server.engine.next_prefetch().expect("a prefetch");
    let _ = server.ask(&www()).answered();
    assert!(server.engine.next_prefetch().is_none(), "one is enough");
    server.resume(prefetch, Ok(&with_address(&www(), 100, [192, 0, 2, 7])));
    assert_eq!(seen(&server.ask(&www()).answered()).answers[0].1, 100);
}

#[test]
fn a_query_without_rd_leaves_the_refresh_to_who_may_ask_for_it() {
    let at_its_end = CacheRules { answers_without_rd: true, ..CacheRules::default() };
    let stale = CacheRules { stale_client_timeout_ms: 0, ..at_its_end };
    for (rules, seconds) in [(at_its_end, 91), (stale, 101)] {
        let mut server = Server::new(rules);
        server.fetch(&www(), &with_address(&www(), 100, [192, 0, 2, 7]));
        let _ = server.ask(&www()).answered();
        server.wait(seconds);
        let without_rd = Ask { flags: Flags::default(), ..www() };
        assert_eq!(seen(&server.ask(&without_rd).answered()).answers.len(), 1);
        assert!(server.engine.next_prefetch().is_none(), "nobody is asked for it");
        let _ = server.ask(&www()).answered();
        let refresh = server.engine.next_prefetch().expect("a refresh");
        server.resume(refresh, Ok(&with_address(&www(), 100, [192, 0, 2, 8])));
        assert_eq!(seen(&server.ask(&www()).answered()).answers[0].2, [192, 0, 2, 8]);
    }
}

#[test]
fn queries_without_rd_learn_nothing_from_the_cache() {
    let mut server = server();
    server.fetch(&www(), &with_address(&www(), 100, [192, 0, 2, 7]));
    let ask = Ask { flags: Flags::default(), ..www() };
    assert_eq!(seen(&server.ask(&ask).answered()).rcode, Rcode::REFUSED);
    let local = Ask { flags: Flags::default(), ..Ask::new("localhost", Rtype::A) };
    assert_eq!(seen(&server.ask(&local).answered()).rcode, Rcode::NOERROR);
}

#[test]
fn replies_that_do_not_fit_are_cut_and_still_kept() {
    let mut server = server();
    let ask = www();
    let large = upstream(&ask, Rcode::NOERROR, |w| {
        for i in 0..60 {
            w.record(Section::Answer, ask.name.as_name(), Rtype::A, Class::IN, Ttl::new(60), |w| {
                w.bytes(&[192, 0, 2, i])
            })
            .expect("room");
        }
    });
    let cut = server.fetch(&ask, &large);
    assert!(header(&cut).flags.has(Flags::TC));
    assert_eq!((header(&cut).answers, cut.len()), (0, 33));
    let tcp = Client { transport: Transport::Tcp, verified: true, ..client("192.0.2.1") };
    server.client = tcp;
    assert_eq!(seen(&server.ask(&ask).answered()).answers.len(), 60);
    server.client = client("192.0.2.1");
    assert!(!header(&server.ask(&www().edns(1232)).answered()).flags.has(Flags::TC));
}

#[test]
fn replies_that_do_not_fit_have_the_rrsets_that_do_where_settings_say_so() {
    let mut server = Server::filling_truncated();
    let ask = www();
    let host: wire::NameBuf = "host.example.org".parse().expect("a name");
    let large = upstream(&ask, Rcode::NOERROR, |w| {
        let cname = |w: &mut wire::Writer<'_>| w.bytes(host.as_name().as_bytes());
        w.record(Section::Answer, ask.name.as_name(), Rtype::CNAME, Class::IN, Ttl::new(60), cname)
            .expect("room");
        for i in 0..60 {
            let address = |w: &mut wire::Writer<'_>| w.bytes(&[192, 0, 2, i]);
            w.record(Section::Answer, host.as_name(), Rtype::A, Class::IN, Ttl::new(60), address)
                .expect("room");
        }
    });
    let cut = server.fetch(&ask, &large);
    let header = header(&cut);
    assert!(header.flags.has(Flags::TC) && Message::parse(&cut).is_ok());
    assert_eq!((header.answers, seen(&cut).answers[0].0), (1, Rtype::CNAME.0));
}

#[test]
fn ad_is_believed_only_where_the_operator_says_so() {
    for (trusts_ad, asked, expected) in [(true, true, true), (true, false, false), (false, true, false)] {
        let mut server = Server::with(gate(), |cache| {
            let rules = CacheRules::default();
            vec![
                Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: false }),
                Op::Forward(ForwardStep {
                    pool: PoolId(0),
                    members: 0,
                    forwards_client_subnet: false,
                    trusts_ad,
                }),
            ]
        });
        let flags = if asked { Flags::RD.with(Flags::AD) } else { Flags::RD };
        let ask = Ask { flags, ..www() };
        let mut reply = with_address(&ask, 60, [192, 0, 2, 7]);
        reply[3] |= 0x20;
        for got in [server.fetch(&ask, &reply), server.ask(&ask).answered()] {
            assert_eq!(header(&got).flags.has(Flags::AD), expected, "{trusts_ad} {asked}");
        }
    }
}

/// Returns a server that tells its upstream the subnets of clients.
fn telling_subnets(rules: CacheRules) -> Server {
    Server::with(gate(), |cache| {
        let rules = CacheRules { keeps_subnets_apart: true, ..rules };
        vec![
            Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: false }),
            Op::Forward(ForwardStep {
                pool: PoolId(0),
                members: 0,
                forwards_client_subnet: true,
                trusts_ad: false,
            }),
        ]
    })
}

#[test]
fn an_expired_answer_for_a_subnet_is_not_counted_among_hits_for_subnets() {
    let mut server = telling_subnets(CacheRules { stale_client_timeout_ms: 0, ..CacheRules::default() });
    let ask = www().option(8, &[0, 1, 24, 0, 198, 51, 1]);
    let mut reply = with_address(&www(), 60, [192, 0, 2, 1]);
    // Its OPT record is the last, and empty: it gets the subnet with a scope of 24.
    reply.truncate(reply.len() - 2);
    reply.extend([0, 11, 0, 8, 0, 7, 0, 1, 24, 24, 198, 51, 1]);
    let suspended = server.ask(&ask).deferred();
    server.resume(suspended, Ok(&reply));
    let mut counted = || {
        assert_eq!(seen(&server.ask(&ask).answered()).answers[0].2, [192, 0, 2, 1]);
        let of = [&server.counters.cache_hits, &server.counters.cache_subnets, &server.counters.cache_stale];
        let counts = of.map(events::Counter::read);
        server.wait(61);
        counts
    };
    assert_eq!(counted(), [1, 1, 0]);
    assert_eq!(counted(), [1, 1, 1]);
}

#[test]
fn subnets_keep_answers_apart_where_they_are_told_upstream() {
    let mut server = telling_subnets(CacheRules::default());
    let from = |third: u8| www().option(8, &[0, 1, 24, 0, 198, 51, third]);
    let suspended = server.ask(&from(1)).deferred();
    assert_eq!(
        suspended.want().fetch().expect("a fetch").query.client_subnet.map(|subnet| subnet.prefix),
        Some(24)
    );
    server.resume(suspended, Ok(&with_address(&www(), 60, [192, 0, 2, 1])));
    assert_eq!(seen(&server.ask(&from(1)).answered()).answers[0].2, [192, 0, 2, 1]);
    assert!(matches!(server.ask(&from(2)), Asked::Deferred(_)));
    assert!(matches!(server.ask(&www()), Asked::Deferred(_)));
    // Prefix zero: the client opted out (RFC 7871 §7.1.2).
    let suspended = server.ask(&www().option(8, &[0, 1, 0, 0])).deferred();
    assert_eq!(suspended.want().fetch().expect("a fetch").query.client_subnet, None);
}

fn gate_with(change: impl FnOnce(&mut Gate)) -> Gate {
    let mut gate = gate();
    change(&mut gate);
    gate
}

#[test]
fn strangers_are_refused() {
    let ours = Prefix::new("192.0.2.0".parse().expect("an address"), 24);
    let gate = gate_with(|gate| gate.allowed = PrefixSet::compile([ours]));
    let mut server = Server::with(gate, |cache| usual(cache, CacheRules::default()));
    assert_eq!(seen(&server.ask(&Ask::new("localhost", Rtype::A)).answered()).rcode, Rcode::NOERROR);
    server.client = client("198.51.100.1");
    let refused = seen(&server.ask(&Ask::new("localhost", Rtype::A).edns(1232)).answered());
    assert_eq!((refused.rcode, refused.ede), (Rcode::REFUSED, Some(18)));
    let mut buf = [0; 512];
    let mut reply = Reply::new(&mut buf);
    let verdict = server.engine.answer(&[0; 12], &server.client, &mut reply);
    assert!(matches!(verdict, Verdict::Drop), "noise from strangers gets nothing");
}

#[test]
fn banned_clients_hear_nothing() {
    let some = |address: &str, length| Prefix::new(address.parse().expect("an address"), length);
    let banned = PrefixSet::compile([some("198.51.100.0", 24), some("2001:db8:bad::", 48)]);
    let gate = gate_with(|gate| gate.banned = banned);
    let mut server = Server::with(gate, |cache| usual(cache, CacheRules::default()));
    assert_eq!(seen(&server.ask(&Ask::new("localhost", Rtype::A)).answered()).rcode, Rcode::NOERROR);
    for stranger in ["198.51.100.1", "2001:db8:bad::1"] {
        server.client = client(stranger);
        let mut buf = [0; 512];
        for query in [Ask::new("localhost", Rtype::A).bytes(), vec![0; 12]] {
            let mut reply = Reply::new(&mut buf);
            let verdict = server.engine.answer(&query, &server.client, &mut reply);
            assert!(matches!(verdict, Verdict::Drop), "{stranger}");
        }
    }
    assert_eq!(server.counters.banned.read(), 2);
    // Nor do they if they are on no other list either.
    let gate = gate_with(|gate| {
        gate.banned = PrefixSet::compile([some("198.51.100.0", 24)]);
        gate.allowed = PrefixSet::compile([some("192.0.2.0", 24)]);
    });
    let mut server = Server::with(gate, |cache| usual(cache, CacheRules::default()));
    server.client = client("198.51.100.1");
    let mut buf = [0; 512];
    let query = Ask::new("localhost", Rtype::A).bytes();
    let verdict = server.engine.answer(&query, &server.client, &mut Reply::new(&mut buf));
    assert!(matches!(verdict, Verdict::Drop));
}

#[test]
fn a_query_with_more_octets_than_may_be_gets_no_reply() {
    let gate = gate_with(|gate| gate.query_octets_max = 512);
    let mut server = Server::with(gate, |cache| usual(cache, CacheRules::default()));
    let mut buf = [0; 1232];
    let padded = |octets: usize| Ask::new("localhost", Rtype::A).option(12, &vec![0; octets]).bytes();
    let smallest = padded(0).len();
    let mut is_answered = |query: &[u8]| {
        matches!(server.engine.answer(query, &server.client, &mut Reply::new(&mut buf)), Verdict::Answered)
    };
    assert!(is_answered(&padded(512 - smallest)));
    assert!(!is_answered(&padded(513 - smallest)));
    assert!(is_answered(&padded(0)));
    // Nor one that cannot be read: it asks for another operation.
    let other = |octets: usize| {
        let mut query = padded(octets);
        query[2] |= 0x28;
        query
    };
    assert!(is_answered(&other(512 - smallest)));
    assert!(!is_answered(&other(513 - smallest)));
    assert_eq!(server.counters.too_large.read(), 2);
}

#[test]
fn who_has_to_show_a_cookie_is_not_answered_without_one_over_udp() {
    let ours = Prefix::new("192.0.2.0".parse().expect("an address"), 25);
    let gate = gate_with(|gate| {
        gate.cookies = Some(Secrets { active: [9; 16], staging: None });
        gate.cookie_required = Some(Box::new(CookieRequired {
            clients: PrefixSet::compile([ours]),
            ..CookieRequired::default()
        }));
    });
    let mut server = Server::with(gate, |cache| usual(cache, CacheRules::default()));
    let plain = Ask::new("localhost", Rtype::A);
    let with = |cookie: &[u8]| Ask::new("localhost", Rtype::A).option(10, cookie);
    server.client = client("192.0.2.1");
    let refused = server.ask(&plain).answered();
    let flags = header(&refused).flags;
    assert_eq!((seen(&refused).rcode, flags.has(Flags::TC)), (Rcode::REFUSED, true));
    let refused = server.ask(&Ask::new("localhost", Rtype::A).edns(1232)).answered();
    assert_eq!(seen(&refused).ede, Some(wire::EdeCode::OTHER.0));
    let bad = server.ask(&with(b"clientck")).answered();
    let edns = Message::parse(&bad).expect("well formed").edns.expect("an OPT");
    let cookie = edns.option(OptionCode::COOKIE).expect("a cookie").to_vec();
    assert_eq!((seen(&bad).rcode, seen(&bad).answers.len()), (Rcode::BADCOOKIE, 0));
    assert_eq!(seen(&server.ask(&with(&cookie)).answered()).rcode, Rcode::NOERROR);
    let mut stolen = client("192.0.2.2");
    std::mem::swap(&mut server.client, &mut stolen);
    assert_eq!(seen(&server.ask(&with(&cookie)).answered()).rcode, Rcode::BADCOOKIE, "of another client");
    assert_eq!(server.counters.without_cookie.read(), 4);
    let counters = &server.counters;
    let [valid, client_alone, invalid] =
        [&counters.cookies_valid, &counters.cookies_client, &counters.cookies_invalid];
    assert_eq!([valid.read(), client_alone.read(), invalid.read()], [1, 1, 1]);
    // A connection proves the address as well, and others need no cookie.
    server.client = Client { transport: Transport::Tcp, verified: true, ..client("192.0.2.1") };
    assert_eq!(seen(&server.ask(&plain).answered()).rcode, Rcode::NOERROR);
    server.client = client("192.0.2.129");
    assert_eq!(seen(&server.ask(&plain).answered()).rcode, Rcode::NOERROR);
}

/// CVE-2026-41292, CVE-2026-42944: options cost no more than the octets they have, and each is
/// answered once at most.
#[test]
fn options_that_come_very_often_are_answered_once_at_most() {
    let gate = gate_with(|gate| gate.cookies = Some(Secrets { active: [9; 16], staging: None }));
    let mut server = Server::with(gate, |cache| usual(cache, CacheRules::default()));
    server.client = Client { transport: Transport::Tcp, verified: true, ..client("192.0.2.1") };
    let (nsid, padding, unknown) = (3, 12, 65_001);
    let mut ask = Ask::new("localhost", Rtype::A).option(10, b"clientck");
    for _ in 0..70 {
        ask = ask.option(nsid, &[]).option(padding, &[]).option(unknown, &[]);
    }
    let reply = server.ask(&ask.option(10, b"otherone")).answered();
    assert_eq!(seen(&reply).rcode, Rcode::NOERROR);
    let edns = Message::parse(&reply).expect("well formed").edns.expect("an OPT");
    let codes: Vec<u16> = edns.options().map(|option| option.code.0).collect();
    for code in [nsid, padding, unknown, 10] {
        let times = codes.iter().filter(|it| **it == code).count();
        assert!(times <= usize::from(code != unknown), "{code}: {times} in {codes:?}");
    }
    assert_eq!(edns.option(OptionCode::COOKIE).and_then(|it| it.first_chunk()), Some(b"clientck"));
}

#[test]
fn a_cookie_lifts_the_rate_limit() {
    let gate = gate_with(|gate| {
        gate.cookies = Some(Secrets { active: [9; 16], staging: None });
        gate.rate = Some(RateRule {
            per_second: 1,
            burst: 2,
            slip: 2,
            ipv4_prefix: 24,
            ipv6_prefix: 56,
            ..RateRule::default()
        });
    });
    let mut server = Server::with(gate, |cache| usual(cache, CacheRules::default()));
    let plain = Ask::new("localhost", Rtype::A);
    let cookie_of = |reply: &[u8]| {
        let edns = Message::parse(reply).expect("well formed").edns.expect("an OPT");
        edns.option(OptionCode::COOKIE).expect("a cookie").to_vec()
    };
    let with_client_cookie = Ask::new("localhost", Rtype::A).option(10, b"clientck");
    let full = cookie_of(&server.ask(&with_client_cookie).answered());
    assert_eq!(full.len(), 24);
    assert_eq!(seen(&server.ask(&plain).answered()).rcode, Rcode::NOERROR);
    // Now the burst is used up: silence, then a cut reply, in turn.
    assert!(server.ask(&plain).is_dropped());
    let slipped = server.ask(&plain).answered();
    assert!(header(&slipped).flags.has(Flags::TC) && header(&slipped).answers == 0);
    let bad = server.ask(&with_client_cookie).answered();
    assert_eq!(seen(&bad).rcode, Rcode::BADCOOKIE);
    assert_eq!(cookie_of(&bad).len(), 24);
    // The cookie proves the address, and so does a connection.
    let proven = Ask::new("localhost", Rtype::A).option(10, &full);
    assert_eq!(seen(&server.ask(&proven).answered()).rcode, Rcode::NOERROR);
    server.client = Client { transport: Transport::Tcp, verified: true, ..server.client };
    assert_eq!(seen(&server.ask(&plain).answered()).rcode, Rcode::NOERROR);
    let malformed = Ask::new("localhost", Rtype::A).option(10, b"short");
    assert_eq!(seen(&server.ask(&malformed).answered()).rcode, Rcode::FORMERR);
}

#[test]
fn queries_over_the_limit_may_be_answered_now_and_then_and_no_good_cookie_is_called_bad() {
    let gate = gate_with(|gate| {
        gate.cookies = Some(Secrets { active: [9; 16], staging: None });
        gate.rate = Some(RateRule {
            per_second: 1,
            burst: 2,
            pass: 10,
            proven_per_second: 2,
            ipv4_prefix: 24,
            ipv6_prefix: 56,
            ..RateRule::default()
        });
    });
    let mut server = Server::with(gate, |cache| usual(cache, CacheRules::default()));
    let plain = Ask::new("localhost", Rtype::A);
    let first = server.ask(&Ask::new("localhost", Rtype::A).option(10, b"clientck")).answered();
    let edns = Message::parse(&first).expect("well formed").edns.expect("an OPT");
    let full = edns.option(OptionCode::COOKIE).expect("a cookie").to_vec();
    server.ask(&plain).answered();
    // The burst is used up: every tenth has the whole answer, and no other one has any.
    let answered: Vec<bool> = (0..30).map(|_| !server.ask(&plain).is_dropped()).collect();
    assert_eq!(answered.iter().filter(|answered| **answered).count(), 3, "{answered:?}");
    (0..9).for_each(|_| assert!(server.ask(&plain).is_dropped()));
    let tenth = server.ask(&plain).answered();
    assert!(seen(&tenth).answers.len() == 1 && !header(&tenth).flags.has(Flags::TC));
    // A proven address has an allowance of its own, and silence beyond it.
    let proven = Ask::new("localhost", Rtype::A).option(10, &full);
    (0..2).for_each(|_| assert_eq!(seen(&server.ask(&proven).answered()).rcode, Rcode::NOERROR));
    (0..20).for_each(|_| assert!(server.ask(&proven).is_dropped()));
}

#[test]
fn rules_mark_skip_call_and_rewrite() {
    let only = |text: &str| {
        let mut set = NameSetBuilder::new(&KEY);
        set.name(name(text).as_name(), Reach::ItselfAndBelow, 1);
        Matcher::Qname(Arc::new(set.compile()))
    };
    let mut server = Server::with(gate(), |_| {
        vec![
            Op::SkipUnless(only("blocked.example.org"), 1),
            Op::Call(8),
            Op::SkipIf(Matcher::Mark(3), 2),
            Op::Forward(ForwardStep {
                pool: PoolId(1),
                members: 0,
                forwards_client_subnet: false,
                trusts_ad: false,
            }),
            Op::Skip(1),
            Op::Reject(Rcode::NXDOMAIN, Some(wire::EdeCode::BLOCKED)),
            Op::Ttl(TtlRule::Fixed(Ttl::new(5))),
            Op::Accept,
            Op::Mark(3),
            Op::Return,
        ]
    });
    let blocked = seen(&server.ask(&Ask::new("x.blocked.example.org", Rtype::A).edns(1232)).answered());
    assert_eq!((blocked.rcode, blocked.ede), (Rcode::NXDOMAIN, Some(15)));
    let suspended = server.ask(&www()).deferred();
    assert_eq!(suspended.want().fetch().expect("a fetch").pool, PoolId(1));
    let reply = seen(&server.resume(suspended, Ok(&with_address(&www(), 300, [192, 0, 2, 7]))));
    assert_eq!(reply.answers[0].1, 5);
}

#[test]
fn a_policy_that_knows_no_answer_refuses() {
    let mut server = Server::with(gate(), |_| vec![]);
    assert_eq!(seen(&server.ask(&www()).answered()).rcode, Rcode::REFUSED);
}

#[test]
fn a_query_for_nothing_but_a_cookie_gets_one() {
    let gate = gate_with(|gate| gate.cookies = Some(Secrets { active: [9; 16], staging: None }));
    let mut server = Server::with(gate, |cache| usual(cache, CacheRules::default()));
    let with_question = www().option(10, b"clientck").bytes();
    let mut bytes = with_question[..12].to_vec();
    bytes[5] = 0;
    bytes.extend_from_slice(&with_question[12 + 17 + 4..]);
    let mut buf = [0; 512];
    let mut reply = Reply::new(&mut buf);
    assert!(matches!(server.engine.answer(&bytes, &client("192.0.2.1"), &mut reply), Verdict::Answered));
    let message = Message::parse(reply.bytes()).expect("well formed");
    assert!(message.question.is_none());
    assert_eq!(message.edns.and_then(|edns| edns.option(OptionCode::COOKIE)).map(<[u8]>::len), Some(24));
}

#[test]
fn looking_ahead_changes_no_answer() {
    let large = 64 << 20;
    let mut server = Server::with_cache(gate(), large, |cache| usual(cache, CacheRules::default()));
    let asks: Vec<Ask> = (0..200).map(|i| Ask::new(&format!("n{i}.example.org"), Rtype::A)).collect();
    for (i, ask) in (0_u8..).zip(&asks) {
        server.fetch(ask, &with_address(ask, 3600, [192, 0, 2, i]));
    }
    // The index alone makes this cache a large one; that is found out within a second.
    server.wait(1);
    let mut queries: Vec<Vec<u8>> = asks.iter().map(Ask::bytes).collect();
    queries.insert(3, vec![]);
    queries.insert(5, vec![0xff; 40]);
    server.engine.prefetch_lines(queries.iter().map(Vec::as_slice));
    for (i, ask) in (0_u8..).zip(&asks) {
        assert_eq!(seen(&server.ask(ask).answered()).answers[0].2, [192, 0, 2, i]);
    }
}

/// Returns zones with one of everybody's and one for some clients alone.
fn zones() -> Arc<zone::Zones> {
    let make = |apex: &str, more: &str| {
        let text = format!("$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.53\n{more}");
        let loaded =
            zone::load(name(apex).as_name(), apex, text.as_bytes(), &mut zone::master::NoIncludes, KEY);
        Arc::new(loaded.zone.expect("a zone"))
    };
    let open =
        make("a.example", "www A 192.0.2.80\nfar CNAME www.elsewhere.example.\nin CNAME www.b.example.\n");
    let closed = make("b.example", "www A 10.0.0.80\n");
    let mut clients = sets::AddressSetBuilder::new();
    assert!(clients.prefix("192.0.2.0".parse().expect("an address"), 24));
    let closed_to_others = zone::Specials::default().for_clients(Arc::new(clients.compile()));
    let zones = zone::Zones::new(KEY, vec![open, closed]);
    Arc::new(zones.with_specials(vec![(name("b.example"), closed_to_others)]))
}

/// Returns a server for 192.0.2.0/24 whose policy asks the cache and others for what is not in its
/// zones.
fn with_zones(first: Vec<Op>) -> Server {
    let ours = Prefix::new("192.0.2.0".parse().expect("an address"), 24);
    let gate = gate_with(|gate| gate.allowed = PrefixSet::compile([ours]));
    Server::with(gate, |cache| {
        let usual = usual(cache, CacheRules::default());
        first.into_iter().chain([Op::Zone(Unloaded::Fails.into())]).chain(usual).collect()
    })
    .serving(zones())
}

/// Returns rcode, AA, RA, EDE and the answers.
fn outline(reply: &[u8]) -> (Rcode, bool, bool, Option<u16>, u16) {
    let flags = Header::parse(reply).expect("a header").flags;
    let seen = seen(reply);
    let answers = Message::parse(reply).expect("a message").header.answers;
    (seen.rcode, flags.has(Flags::AA), flags.has(Flags::RA), seen.ede, answers)
}

#[test]
fn room_is_left_for_an_idle_timeout_that_nobody_asked_for() {
    let mut server = with_zones(vec![]);
    server.client.transport = Transport::Tcp;
    server.client.keepalive = Some(Keepalive { timeout: 100, announced_to: Announce::All });
    let ask = Ask::new("a.example", Rtype::NS).edns(1232);
    let whole = server.ask(&ask).answered();
    assert_eq!((header(&whole).answers, header(&whole).additionals), (1, 2), "an address and the OPT");
    for short in 1..=6 {
        server.client.reply_octets_max = (whole.len() - short) as u16;
        let reply = server.ask(&ask).answered();
        let Header { flags, answers, additionals, .. } = header(&reply);
        // The address may be left out, and nothing else.
        assert_eq!((flags.has(Flags::TC), answers, additionals), (false, 1, 1), "{short} octets too few");
    }
}

#[test]
fn replies_of_zones_say_ra_to_queries_with_rd_alone_if_they_are_to() {
    let manner = zone::Manner { within: true, ..zone::Manner::default() };
    for (ra_needs_rd, expected) in [(false, true), (true, false)] {
        let step = ZoneStep { unloaded: Unloaded::Fails, manner, ra_needs_rd };
        let mut server = Server::with(gate(), |cache| {
            [Op::Zone(step)].into_iter().chain(usual(cache, CacheRules::default())).collect()
        })
        .serving(zones());
        let without_rd = Ask { flags: Flags::default(), ..Ask::new("www.a.example", Rtype::A) };
        let with_rd = Ask::new("in.a.example", Rtype::A);
        let (_, _, ra, ..) = outline(&server.ask(&without_rd).answered());
        assert_eq!(ra, expected);
        let (rcode, aa, ra, _, answers) = outline(&server.ask(&with_rd).answered());
        assert_eq!((rcode, aa, ra, answers), (Rcode::NOERROR, true, true, 1), "the alias, which leads out");
    }
}

#[test]
fn a_zone_that_is_not_loaded_fails_or_leaves_its_names_to_the_next_step() {
    let missing = || Arc::new(zone::Zones::with_missing(KEY, vec![], &[name("a.example")]));
    for (unloaded, expected) in [(Unloaded::Fails, Rcode::SERVFAIL), (Unloaded::Passes, Rcode::REFUSED)] {
        let steps = || vec![Op::Zone(unloaded.into()), Op::Reject(Rcode::REFUSED, None)];
        let mut server = Server::with(gate(), |_| steps()).serving(missing());
        let ask = Ask::new("www.a.example", Rtype::A);
        assert_eq!(outline(&server.ask(&ask).answered()).0, expected);
        let set = || vec![Op::ZoneSet(missing(), unloaded.into()), Op::Reject(Rcode::REFUSED, None)];
        let mut server = Server::with(gate(), |_| set());
        assert_eq!(outline(&server.ask(&ask).answered()).0, expected);
        // One that is loaded answers either way.
        let mut server = Server::with(gate(), |_| steps()).serving(zones());
        assert_eq!(outline(&server.ask(&ask).answered()).0, Rcode::NOERROR);
    }
}

#[test]
fn the_zones_that_answer_are_those_that_are_served_whatever_the_policy_was_compiled_with() {
    let ask = Ask::new("www.a.example", Rtype::A);
    let mut server =
        Server::with(gate(), |_| vec![Op::Zone(Unloaded::Fails.into()), Op::Reject(Rcode::REFUSED, None)]);
    assert_eq!(outline(&server.ask(&ask).answered()).0, Rcode::REFUSED, "none is served yet");
    let mut server = server.serving(zones());
    assert_eq!(outline(&server.ask(&ask).answered()).0, Rcode::NOERROR);
    let mut server = server.serving(Arc::new(zone::Zones::new(KEY, vec![])));
    assert_eq!(outline(&server.ask(&ask).answered()).0, Rcode::REFUSED, "it is gone");
}

#[test]
fn zones_answer_clients_that_are_not_on_the_access_list() {
    let mut server = with_zones(vec![]);
    let ask = |server: &mut Server, text: &str, qtype: Rtype| {
        outline(&server.ask(&Ask::new(text, qtype).edns(1232)).answered())
    };
    assert_eq!(ask(&mut server, "www.a.example", Rtype::A), (Rcode::NOERROR, true, true, None, 1));
    // What a client of ours asked for is in the cache from now on.
    let known = Ask::new("www.elsewhere.example", Rtype::A);
    server.fetch(&known, &with_address(&known, 300, [192, 0, 2, 9]));
    server.client = client("198.51.100.1");
    assert_eq!(ask(&mut server, "www.a.example", Rtype::A), (Rcode::NOERROR, true, false, None, 1));
    assert_eq!(ask(&mut server, "no.a.example", Rtype::A), (Rcode::NXDOMAIN, true, false, None, 0));
    assert_eq!(ask(&mut server, "a.example", Rtype::ANY).0, Rcode::NOERROR);
    // A chain that leads out of our zones ends there.
    assert_eq!(ask(&mut server, "far.a.example", Rtype::A), (Rcode::NOERROR, true, false, None, 1));
    let refused = (Rcode::REFUSED, false, false, Some(18), 0);
    for (text, qtype) in [
        ("www.elsewhere.example", Rtype::A),
        ("other.example", Rtype::A),
        ("other.example", Rtype::ANY),
        ("nas.home.arpa", Rtype::A),
        ("localhost", Rtype::A),
    ] {
        assert_eq!(ask(&mut server, text, qtype), refused, "{text} {qtype}");
    }
    assert_eq!(server.counters.denied.read(), 5);
    assert_eq!(server.counters.deferred.read(), 1, "nobody is asked for a stranger");
}

#[test]
fn a_zone_may_be_for_some_clients_alone() {
    let mut server = with_zones(vec![]);
    let ask = |server: &mut Server, text: &str| {
        outline(&server.ask(&Ask::new(text, Rtype::A).edns(1232)).answered())
    };
    assert_eq!(ask(&mut server, "www.b.example").4, 1);
    assert_eq!(ask(&mut server, "in.a.example").4, 2);
    server.client = client("198.51.100.1");
    assert_eq!(ask(&mut server, "www.b.example"), (Rcode::REFUSED, false, false, Some(18), 0));
    // An alias shows nothing of it, either.
    assert_eq!(ask(&mut server, "in.a.example"), (Rcode::NOERROR, true, false, None, 1));
    // Nor does a subnet that the query names (RFC 7871).
    let told = Ask::new("www.b.example", Rtype::A).option(8, &[0, 1, 24, 0, 192, 0, 2]);
    assert_eq!(seen(&server.ask(&told).answered()).rcode, Rcode::REFUSED);
}

#[test]
fn a_policy_decides_for_clients_that_are_not_on_the_access_list_too() {
    let mut set = sets::AddressSetBuilder::new();
    assert!(set.prefix("198.51.100.0".parse().expect("an address"), 24));
    let theirs = || Matcher::Client(Arc::new(set.compile()));
    let mut server = with_zones(vec![Op::SkipUnless(theirs(), 1), Op::Reject(Rcode::NXDOMAIN, None)]);
    server.client = client("198.51.100.1");
    let reply = server.ask(&Ask::new("www.a.example", Rtype::A).edns(1232)).answered();
    assert_eq!(outline(&reply), (Rcode::REFUSED, false, false, Some(18), 0));
    server.client = client("203.0.113.1");
    let reply = server.ask(&Ask::new("www.a.example", Rtype::A).edns(1232)).answered();
    assert_eq!(outline(&reply), (Rcode::NOERROR, true, false, None, 1));
}

#[test]
fn strangers_count_against_the_rate_limit() {
    let ours = Prefix::new("192.0.2.0".parse().expect("an address"), 24);
    let gate = gate_with(|gate| {
        gate.allowed = PrefixSet::compile([ours]);
        gate.rate = Some(RateRule {
            per_second: 1,
            burst: 2,
            slip: 0,
            ipv4_prefix: 24,
            ipv6_prefix: 56,
            ..RateRule::default()
        });
    });
    let mut server = Server::with(gate, |_| vec![Op::Zone(Unloaded::Fails.into())]).serving(zones());
    server.client = client("198.51.100.1");
    let mut answered = 0;
    for _ in 0..5 {
        let mut buf = [0; 512];
        let mut reply = Reply::new(&mut buf);
        let verdict =
            server.engine.answer(&Ask::new("www.a.example", Rtype::A).bytes(), &server.client, &mut reply);
        answered += u32::from(matches!(verdict, Verdict::Answered));
    }
    assert_eq!(answered, 2);
}

#[test]
fn cd_is_clear_where_we_speak_with_authority() {
    let mut server = with_zones(vec![]);
    let ask = Ask { flags: Flags::RD.with(Flags::CD), ..Ask::new("www.a.example", Rtype::A) };
    let flags = Header::parse(&server.ask(&ask).answered()).expect("a header").flags;
    assert!(flags.has(Flags::AA) && !flags.has(Flags::CD));
}
