//! Queries and their replies, silence, and errors of the network.

use super::*;

#[test]
fn a_reply_from_the_right_place_ends_a_query() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    let query = Query::parse(&sent.bytes).expect("we send queries");
    assert!(query.edns.is_some_and(|edns| edns.wants_dnssec() && edns.udp_size == 1232));
    assert!(!query.header.flags.has(Flags::RD));
    assert_eq!(sent.to, address(1));
    let reply = reply_to(&sent.bytes, &Says { edns: true, ..OK });
    assert_eq!(bench.hear(&sent, &reply), Some((1, Rcode::NOERROR, Arrival::Udp)));
    assert_eq!((bench.authorities.query_count(), bench.counters.replies.read()), (0, 1));
    assert_eq!(bench.hear(&sent, &reply), None, "once");
    bench.pass(10_000);
    assert_eq!(bench.unanswered(), []);
}

#[test]
fn silence_ends_a_query_once() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    bench.pass(1999);
    assert_eq!(bench.unanswered(), []);
    bench.pass(2);
    assert_eq!(bench.unanswered(), [(1, Unanswered::Timeout)]);
    assert!(!bench.has_sent(), "nothing is sent again");
    assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)), None);
    bench.pass(10_000);
    assert_eq!(bench.unanswered(), []);
}

#[test]
fn nobody_hears_of_a_query_that_was_cancelled() {
    let mut bench = Bench::default();
    let key = bench.ask(1);
    let sent = bench.sent();
    bench.authorities.cancel(key);
    bench.ask(2);
    bench.authorities.cancel(key);
    assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)), None);
    assert_eq!(bench.authorities.query_count(), 1, "the key names nobody else");
    bench.pass(3000);
    assert_eq!(bench.unanswered(), [(2, Unanswered::Timeout)]);
}

#[test]
fn an_error_of_sending_is_that_of_one_address() {
    for (is_ours, why) in [(false, Unanswered::Unreachable), (true, Unanswered::NotSent)] {
        let mut bench = Bench::new(PoolLimits { sockets: 1, ..PoolLimits::default() });
        bench.ask(1);
        bench.ask(2);
        let (first, second) = (bench.sent(), bench.sent());
        assert_eq!(first.over, second.over);
        let Over::Udp(socket) = first.over else { panic!("{:?}", first.over) };
        bench.authorities.network_mut().unsent.push(Unsent { socket, to: first.to, id: first.id(), is_ours });
        bench.authorities.flush();
        assert_eq!(bench.unanswered(), [(1, why)]);
        assert!(bench.hear(&second, &reply_to(&second.bytes, &OK)).is_some());
        bench.ask(3);
        assert_eq!(bench.sent().over, first.over, "the socket is as good as before");
    }
}

#[test]
fn families_have_sockets_of_their_own() {
    let mut bench = Bench::default();
    bench.ask(1);
    bench.ask_with(2, |query| query.address = "[2001:db8::1]:53".parse().expect("an address"));
    let (v4, v6) = (bench.sent(), bench.sent());
    assert_ne!(v4.over, v6.over);
    assert!(bench.hear(&v6, &reply_to(&v6.bytes, &OK)).is_some());
    assert!(bench.hear(&v4, &reply_to(&v4.bytes, &OK)).is_some());
}

#[test]
fn flags_are_those_asked_for() {
    let mut bench = Bench::default();
    bench.ask_with(1, |query| {
        (query.recursion_desired, query.checking_disabled, query.dnssec_ok) = (true, true, false);
        query.edns = Edns::UpTo { octets: 512 };
    });
    let sent = bench.sent();
    let query = Query::parse(&sent.bytes).expect("we send queries");
    assert!(query.header.flags.has(Flags::RD.with(Flags::CD)));
    assert!(query.edns.is_some_and(|edns| !edns.wants_dnssec() && edns.udp_size == 512));
}

#[test]
fn names_too_long_to_be_kept_inline_are_asked_and_recognised() {
    let mut bench = Bench::default();
    let long =
        NameBuf::from_text(&format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61))).expect("a name");
    let query = AuthorityQuery {
        address: address(1),
        qname: long.as_name(),
        qtype: Rtype::TXT,
        over_tcp: false,
        udp_octets: 1232,
        edns: Edns::Unknown,
        case: LetterCase::Unknown,
        dnssec_ok: false,
        recursion_desired: false,
        checking_disabled: false,
        cookies: true,
        encrypt: Encrypt::default(),
        subnet: None,
    };
    bench.authorities.ask(&query, 7, bench.now);
    let sent = bench.sent();
    let reply = reply_to(&sent.bytes, &OK);
    assert_eq!(bench.hear(&sent, &reply), Some((7, Rcode::NOERROR, Arrival::Udp)));
}
