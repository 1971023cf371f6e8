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
