//! What is learned about servers: EDNS, cookies, letter case.

use super::*;

#[test]
fn each_query_has_a_cookie_and_the_server_s_part_once_it_is_known() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    let client = sent.cookie();
    assert_eq!(client.len(), 8);
    let both = [&client[..], &[9; 16]].concat();
    let reply = reply_to(&sent.bytes, &Says { cookie: Some(&both), ..OK });
    assert_eq!(bench.hear(&sent, &reply), Some((1, Rcode::NOERROR, Arrival::UdpWithCookie)));
    bench.ask(1);
    assert_eq!(bench.sent().cookie(), both);
    bench.ask(2);
    assert_ne!(bench.sent().cookie(), client, "another server gets another cookie");
}

#[test]
fn a_server_that_knows_no_edns_is_asked_without() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &Says { rcode: Rcode::FORMERR, ..OK })), None);
    let again = bench.sent();
    assert!(!again.has_edns() && again.to == sent.to);
    assert_eq!(bench.hear(&again, &reply_to(&again.bytes, &OK)), Some((1, Rcode::NOERROR, Arrival::Udp)));
    assert_eq!(bench.facts(1).map(|facts| facts.edns), Some(Edns::None));
    bench.ask(1);
    assert!(!bench.sent().has_edns(), "it is remembered");
}

#[test]
fn a_server_that_knows_edns_is_remembered_to() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &Says { edns: true, ..OK })).is_some());
    let facts = bench.facts(1).expect("it answered");
    assert_eq!((facts.edns, facts.case), (Edns::Works, LetterCase::Kept));
    bench.ask(2);
    let sent = bench.sent();
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
    assert_eq!(bench.facts(2).map(|facts| facts.edns), Some(Edns::Unknown), "one that ignores it may learn");
}

#[test]
fn errors_do_not_show_that_a_server_works_without_edns() {
    let mut bench = Bench::default();
    bench.ask(1);
    for (rcode, heard) in [(Rcode::NOTIMP, None), (Rcode::NOTIMP, Some((1, Rcode::NOTIMP, Arrival::Udp)))] {
        let sent = bench.sent();
        assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &Says { rcode, ..OK })), heard);
    }
    assert_eq!(bench.facts(1).map_or(Edns::Unknown, |facts| facts.edns), Edns::Unknown);
}

#[test]
fn a_refused_cookie_is_replaced_once_and_then_tcp_is_used() {
    let mut bench = Bench::default();
    bench.ask(1);
    let first = bench.sent();
    let client = first.cookie();
    let with = |server: u8| [&client[..], &[server; 8]].concat();
    let badcookie = |sent: &Sent, server: u8| {
        reply_to(&sent.bytes, &Says { rcode: Rcode::BADCOOKIE, cookie: Some(&with(server)), ..OK })
    };
    assert_eq!(bench.hear(&first, &badcookie(&first, 1)), None);
    let second = bench.sent();
    assert_eq!(second.cookie(), with(1));
    assert!(matches!(second.over, Over::Udp(_)));
    assert_eq!(bench.hear(&second, &badcookie(&second, 2)), None);
    let third = bench.sent();
    assert!(matches!(third.over, Over::Tcp(_)));
    assert_eq!(third.cookie(), with(2));
    let reply = badcookie(&third, 3);
    assert_eq!(
        bench.hear(&third, &reply),
        Some((1, Rcode::BADCOOKIE, Arrival::Tcp)),
        "there is no more to try"
    );
    assert_eq!(bench.counters.cookies_refused.read(), 2);
}

#[test]
fn badcookie_without_a_cookie_is_asked_again_over_tcp() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &Says { rcode: Rcode::BADCOOKIE, ..OK })), None);
    assert!(matches!(bench.sent().over, Over::Tcp(_)));
}

#[test]
fn a_missing_cookie_is_asked_again_over_tcp_and_forgotten_if_it_stays_away() {
    let mut bench = Bench::default();
    bench.servers.record_cookie(address(1), &[5; 8]);
    for (rcode, edns) in [(Rcode::NOERROR, true), (Rcode::FORMERR, false)] {
        bench.ask(1);
        let sent = bench.sent();
        assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &Says { rcode, edns, ..OK })), None);
        let over_tcp = bench.sent();
        assert!(matches!(over_tcp.over, Over::Tcp(_)), "{rcode:?} may be forged");
        let client = &over_tcp.cookie()[..8];
        let reply = reply_to(&over_tcp.bytes, &Says { cookie: Some(&[client, &[5; 8]].concat()), ..OK });
        assert!(bench.hear(&over_tcp, &reply).is_some());
    }
    assert_eq!(bench.counters.cookies_missing.read(), 2);
    bench.ask(1);
    let sent = bench.sent();
    assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)), None);
    let over_tcp = bench.sent();
    assert!(bench.hear(&over_tcp, &reply_to(&over_tcp.bytes, &OK)).is_some());
    assert_eq!(bench.servers.cookie(address(1)), None);
    bench.ask(1);
    let sent = bench.sent();
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some(), "it has no cookies any more");
}

#[test]
fn a_server_that_folds_names_is_recognised_over_tcp() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    let folded = |sent: &Sent| {
        let mut reply = reply_to(&sent.bytes, &OK);
        reply[12..29].make_ascii_lowercase();
        reply
    };
    assert_ne!(folded(&sent), reply_to(&sent.bytes, &OK), "the case was random");
    assert_eq!(bench.hear(&sent, &folded(&sent)), None);
    assert_eq!(bench.facts(1).map_or(LetterCase::Unknown, |facts| facts.case), LetterCase::Unknown);
    let over_tcp = bench.sent();
    let reply = folded(&over_tcp);
    assert_eq!(bench.hear(&over_tcp, &reply), Some((1, Rcode::NOERROR, Arrival::Tcp)));
    assert_eq!(bench.facts(1).map(|facts| facts.case), Some(LetterCase::Changed));
    bench.ask(1);
    let sent = bench.sent();
    assert_eq!(folded(&sent), reply_to(&sent.bytes, &OK), "its case is not random any more");
    assert!(bench.hear(&sent, &folded(&sent)).is_some());
}

#[test]
fn a_cookie_proves_that_a_server_folds_names() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    let mut reply = reply_to(&sent.bytes, &Says { cookie: Some(&sent.cookie()), ..OK });
    reply[12..29].make_ascii_lowercase();
    assert_eq!(bench.hear(&sent, &reply), Some((1, Rcode::NOERROR, Arrival::UdpWithCookie)));
    assert_eq!(bench.facts(1).map(|facts| facts.case), Some(LetterCase::Changed));
}

#[test]
fn a_server_that_folds_names_and_has_no_tcp_is_asked_without_random_case() {
    let ends: [fn(&mut Bench, PoolLinkKey); 2] =
        [|bench, link| bench.authorities.link_closed(link, bench.now), |bench, _| bench.pass(4001)];
    for end in ends {
        let mut bench = Bench::default();
        bench.ask(1);
        let folded = |sent: &Sent| {
            let mut reply = reply_to(&sent.bytes, &OK);
            reply[12..29].make_ascii_lowercase();
            reply
        };
        let sent = bench.sent();
        assert_eq!(bench.hear(&sent, &folded(&sent)), None);
        let Over::Tcp(link) = bench.sent().over else { panic!("TCP comes first") };
        end(&mut bench, link);
        let again = bench.sent();
        assert!(matches!(again.over, Over::Udp(_)));
        assert_eq!(bench.hear(&again, &folded(&again)), Some((1, Rcode::NOERROR, Arrival::Udp)));
        assert_eq!(bench.facts(1).map(|facts| facts.case), Some(LetterCase::Changed));
        assert_eq!(bench.unanswered(), []);
    }
}

#[test]
fn without_tcp_a_server_is_asked_without_random_case_only_once() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    let mut folded = reply_to(&sent.bytes, &OK);
    folded[12..29].make_ascii_lowercase();
    assert_eq!(bench.hear(&sent, &folded), None);
    let Over::Tcp(link) = bench.sent().over else { panic!("TCP comes first") };
    bench.authorities.link_closed(link, bench.now);
    bench.sent();
    bench.pass(4001);
    assert_eq!(bench.unanswered(), [(1, Unanswered::Timeout)]);
    assert!(!bench.has_sent());
    assert_eq!(bench.facts(1), None, "nothing was learned");
}

#[test]
fn a_cookie_that_stays_away_is_forgotten_where_there_is_no_tcp() {
    let mut bench = Bench::default();
    bench.servers.record_cookie(address(1), &[5; 8]);
    bench.ask(1);
    let sent = bench.sent();
    assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)), None);
    let Over::Tcp(link) = bench.sent().over else { panic!("TCP comes first") };
    bench.authorities.link_closed(link, bench.now);
    assert_eq!(bench.unanswered(), [(1, Unanswered::Unreachable)]);
    bench.ask(1);
    let sent = bench.sent();
    assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)), Some((2, Rcode::NOERROR, Arrival::Udp)));
}

#[test]
fn without_cookies_none_is_sent_and_none_is_looked_at() {
    let mut bench = Bench::default();
    bench.ask_with(1, |query| query.cookies = false);
    let sent = bench.sent();
    let edns = Query::parse(&sent.bytes).expect("we send queries").edns.expect("with EDNS");
    assert_eq!(edns.options().count(), 0);
    let reply = reply_to(&sent.bytes, &Says { cookie: Some(&[1; 16]), ..OK });
    assert_eq!(bench.hear(&sent, &reply), Some((1, Rcode::NOERROR, Arrival::Udp)));
}
