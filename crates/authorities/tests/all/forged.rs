//! Datagrams that are not the reply: none ends a wait or moves its end, and guessing leads to TCP.

use super::*;

/// Changes made to an honest reply, each of which makes it a wrong one.
fn wrong_replies(query: &[u8]) -> Vec<Vec<u8>> {
    let honest = reply_to(query, &Says { edns: true, ..OK });
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut reply = honest.clone();
        change(&mut reply);
        reply
    };
    vec![
        changed(&|reply| reply[1] ^= 1),
        changed(&|reply| reply[2] &= 0x7f),
        changed(&|reply| reply[2] |= 0x20),
        changed(&|reply| reply[13] = b'x'),
        changed(&|reply| reply[30] = 28),
        changed(&|reply| reply[32] = 3),
        changed(&|reply| reply[5] = 0),
        changed(&|reply| reply.truncate(20)),
        changed(&|reply| reply.truncate(5)),
        changed(&|reply| reply.push(0)),
        changed(&|reply| reply[7] = 1),
        reply_to(query, &Says { cookie: Some(&[1; 8]), ..OK }),
        reply_to(query, &Says { cookie: Some(&[1; 3]), ..OK }),
        Vec::new(),
    ]
}

#[test]
fn a_wrong_reply_neither_ends_a_wait_nor_moves_its_end() {
    for (at, change) in (0..14).enumerate() {
        let mut bench = Bench::default();
        bench.ask(1);
        let sent = bench.sent();
        bench.pass(1000);
        let wrong = &wrong_replies(&sent.bytes)[change];
        assert_eq!(bench.hear(&sent, wrong), None, "{at}");
        assert_eq!(bench.counters.mismatched.read(), 1, "{at}");
        assert!(!bench.has_sent() && bench.unanswered().is_empty(), "{at}");
        bench.pass(998);
        assert_eq!(bench.unanswered(), [], "{at}");
        bench.pass(3);
        assert_eq!(bench.unanswered(), [(1, Unanswered::Timeout)], "{at}");
    }
}

#[test]
fn the_reply_is_believed_after_three_wrong_ones() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    for wrong in wrong_replies(&sent.bytes).iter().take(3) {
        assert_eq!(bench.hear(&sent, wrong), None);
    }
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
    assert_eq!(bench.counters.spoofs_suspected.read(), 0);
}

#[test]
fn a_reply_from_elsewhere_is_not_the_reply() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    let Over::Udp(socket) = sent.over else { panic!("{:?}", sent.over) };
    let reply = reply_to(&sent.bytes, &OK);
    for from in ["10.0.0.2:53", "10.0.0.1:54", "[::ffff:10.0.0.1]:53"] {
        let from = from.parse().expect("an address");
        for _ in 0..10 {
            assert!(bench.authorities.datagram(socket, from, &reply, false, bench.now).is_none());
        }
    }
    assert!(!bench.has_sent(), "it is no guess at this query");
    let other = PoolSocketKey(socket.0 + 1);
    assert!(bench.authorities.datagram(other, sent.to, &reply, false, bench.now).is_none());
    assert!(bench.hear(&sent, &reply).is_some());
}

#[test]
fn guessing_moves_a_query_to_tcp_and_no_guess_is_taken_any_more() {
    let id = |mut reply: Vec<u8>| {
        reply[1] ^= 1;
        reply
    };
    let without_question = |mut reply: Vec<u8>| {
        reply[1] ^= 1;
        (reply[3], reply[5]) = (2, 0);
        reply.truncate(12);
        reply
    };
    let malformed = |reply: Vec<u8>| [&reply[..], &[0]].concat();
    let changes: [fn(Vec<u8>) -> Vec<u8>; 3] = [id, without_question, malformed];
    for change in changes {
        let mut bench = Bench::default();
        bench.ask(1);
        let sent = bench.sent();
        bench.ask(2);
        let other = bench.sent();
        let guess = change(reply_to(&sent.bytes, &OK));
        for _ in 0..4 {
            assert!(!bench.has_sent());
            assert_eq!(bench.hear(&sent, &guess), None);
        }
        let over_tcp = bench.sent();
        assert!(matches!(over_tcp.over, Over::Tcp(_)) && over_tcp.to == sent.to);
        assert_eq!(bench.counters.spoofs_suspected.read(), 1);
        assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)), None, "not even if it is right");
        let reply = reply_to(&over_tcp.bytes, &OK);
        assert_eq!(bench.hear(&over_tcp, &reply), Some((1, Rcode::NOERROR, Arrival::Tcp)));
        assert!(bench.hear(&other, &reply_to(&other.bytes, &OK)).is_some(), "others do not notice");
    }
}

#[test]
fn a_flooded_port_is_given_up_and_its_queries_wait_on() {
    let mut bench = Bench::new(PoolLimits { sockets: 1, ..PoolLimits::default() });
    bench.ask(1);
    let sent = bench.sent();
    let Over::Udp(socket) = sent.over else { panic!("{:?}", sent.over) };
    for _ in 0..257 {
        assert!(bench.authorities.datagram(socket, address(9), &[0; 12], false, bench.now).is_none());
    }
    assert_eq!(bench.counters.ports_abandoned.read(), 1);
    bench.ask(2);
    assert_ne!(bench.sent().over, sent.over);
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
    bench.authorities.flush();
    assert!(!bench.authorities.network().sockets.contains_key(&socket.0), "it is closed when it is drained");
}

#[test]
fn ids_of_one_socket_are_distinct_and_unrelated() {
    let mut bench = Bench::new(PoolLimits { sockets: 1, ..PoolLimits::default() });
    let mut ids = std::collections::HashSet::new();
    for _ in 0..1000 {
        bench.ask(1);
        ids.insert(bench.sent().id());
    }
    assert_eq!(ids.len(), 1000);
    let mut sorted: Vec<u16> = ids.into_iter().collect();
    sorted.sort_unstable();
    assert!(sorted[0] < 2000 && sorted[999] > 63_000, "they come from all 65,536");
}

/// Returns a reply that repeats a client subnet.
fn repeating(query: &[u8], subnet: &[u8]) -> Vec<u8> {
    let query = Query::parse(query).expect("we send queries");
    let mut out = vec![0; 1232];
    let mut writer = Writer::new(&mut out, 1232, query.header.id, Flags::QR.with(Flags::AA));
    writer.question(&query.question).expect("it fits");
    let option = |writer: &mut Writer<'_>| writer.option(OptionCode::CLIENT_SUBNET, subnet);
    writer.opt(1232, Rcode::NOERROR, false, option).expect("it fits");
    let len = writer.finish();
    out.truncate(len);
    out
}

#[test]
fn a_reply_for_another_subnet_is_not_the_reply() {
    let subnet = ClientSubnet::of([203, 0, 113, 0].into(), 24);
    for wrong in [
        &[0, 1, 24, 24, 203, 0, 112][..],
        &[0, 1, 23, 24, 203, 0, 113],
        &[0, 2, 24, 24, 203, 0, 113],
        &[0, 1, 24, 24, 203, 0, 113, 0],
        &[0, 1, 24, 24, 203],
        &[0, 1],
    ] {
        let mut bench = Bench::default();
        bench.ask_with(1, |query| query.subnet = Some(subnet));
        let sent = bench.sent();
        let asked = Query::parse(&sent.bytes).expect("we send queries").edns.expect("with EDNS");
        assert_eq!(asked.option(OptionCode::CLIENT_SUBNET), Some(&[0, 1, 24, 0, 203, 0, 113][..]));
        assert_eq!(bench.hear(&sent, &repeating(&sent.bytes, wrong)), None, "{wrong:?}");
        assert_eq!(bench.counters.mismatched.read(), 1);
        let right = repeating(&sent.bytes, &[0, 1, 24, 16, 203, 0, 113]);
        assert!(bench.hear(&sent, &right).is_some());
    }
    // Who was told nothing may say what it likes, and is not listened to.
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    assert!(bench.hear(&sent, &repeating(&sent.bytes, &[0, 1, 24, 24, 203, 0, 113])).is_some());
}
