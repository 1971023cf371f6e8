//! Each bound strikes, and what it leaves to others.

use super::*;

fn limits() -> PoolLimits {
    PoolLimits { sockets: 4, port_queries: 10, queries: 100, links: 3, ..PoolLimits::default() }
}

fn over_tcp(query: &mut AuthorityQuery<'_>) {
    query.over_tcp = true;
}

#[test]
fn queries_beyond_the_bound_are_not_sent_and_the_others_go_on() {
    let mut bench = Bench::new(limits());
    for number in 0..100 {
        bench.ask(number);
    }
    let first = bench.sent();
    bench.ask(1000);
    assert_eq!(bench.unanswered(), [(101, Unanswered::NotSent)]);
    assert_eq!(bench.counters.shortages.read(), 1);
    assert!(bench.hear(&first, &reply_to(&first.bytes, &OK)).is_some());
    bench.ask(1000);
    assert_eq!(bench.unanswered(), [], "there is room again");
    bench.pass(2001);
    assert_eq!((bench.unanswered().len(), bench.authorities.query_count()), (100, 0));
}

#[test]
fn a_silent_server_asked_for_ever_other_names_leaves_room_for_others() {
    let mut bench = Bench::new(PoolLimits { server_queries: 60, ..limits() });
    for _ in 0..200 {
        bench.ask(1);
    }
    assert_eq!(bench.authorities.query_count(), 60);
    assert!(bench.unanswered().iter().all(|&(_, why)| why == Unanswered::NotSent));
    for number in 2..12 {
        bench.ask(number);
    }
    assert_eq!((bench.unanswered().len(), bench.authorities.query_count()), (0, 70));
    let first = bench.sent();
    assert!(bench.hear(&first, &reply_to(&first.bytes, &OK)).is_some());
    bench.ask(1);
    assert_eq!(bench.unanswered(), [], "each reply makes room");
    bench.ask(1);
    assert_eq!(bench.unanswered().len(), 1);
    bench.pass(2001);
    assert_eq!(bench.unanswered().len(), 70);
    bench.ask(1);
    assert_eq!(bench.unanswered(), [], "and so does the end of a wait");
}

#[test]
fn sockets_in_use_and_draining_are_bounded_and_queries_leave_all_the_same() {
    let mut bench = Bench::new(PoolLimits { queries: 10_000, ..limits() });
    for number in 0..1000 {
        bench.ask(number);
        bench.authorities.flush();
        assert!(bench.authorities.socket_count() <= 4 + 2 * 4);
    }
    assert_eq!(bench.unanswered(), [], "worn ports are better than none");
    let sent: Vec<Sent> = std::iter::from_fn(|| bench.has_sent().then(|| bench.sent())).collect();
    for sent in &sent {
        assert!(bench.hear(sent, &reply_to(&sent.bytes, &OK)).is_some());
    }
    bench.authorities.flush();
    assert_eq!(bench.authorities.socket_count(), 4, "what is drained is closed");
}

#[test]
fn ports_are_replaced_after_their_queries_and_after_their_time() {
    let mut bench = Bench::new(limits());
    for number in 0..200 {
        bench.ask(number);
        let sent = bench.sent();
        assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
        bench.authorities.flush();
    }
    let opened = bench.authorities.network().opened;
    assert!((20..=24).contains(&opened), "ten queries each: {opened}");
    bench.pass(30_001);
    assert_eq!(bench.authorities.socket_count(), 0, "ports that nobody uses are given up, too");
    bench.ask(1);
    assert_eq!(bench.authorities.socket_count(), 1);
}

#[test]
fn a_port_whose_time_is_over_still_takes_its_replies() {
    let mut bench = Bench::new(limits());
    bench.ask(1);
    bench.sent();
    bench.pass(29_000);
    bench.unanswered();
    for number in 0..4 {
        bench.ask(number);
    }
    bench.pass(1001);
    let sent = bench.sent();
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
}

#[test]
fn without_a_further_socket_those_in_use_serve_all() {
    let mut bench = Bench::new(limits());
    bench.ask(0);
    bench.authorities.network_mut().is_short = true;
    for number in 1..50 {
        bench.ask(number);
    }
    assert_eq!((bench.unanswered(), bench.authorities.socket_count()), (Vec::new(), 1));
    bench.ask_with(50, |query| query.address = "[2001:db8::1]:53".parse().expect("an address"));
    assert_eq!(bench.unanswered(), [(51, Unanswered::NotSent)], "there is none of the other family");
    assert_eq!(bench.authorities.query_count(), 50);
}

#[test]
fn queries_sent_together_share_a_draw_up_to_its_bound() {
    let mut bench = Bench::new(PoolLimits { draw_queries: 8, sockets: 64, ..PoolLimits::default() });
    let drawn = |bench: &mut Bench, count: u32| {
        for number in 0..count {
            bench.ask(number);
        }
        let mut sockets: Vec<Over> = (0..count).map(|_| bench.sent().over).collect();
        sockets.dedup();
        sockets.len()
    };
    assert_eq!(drawn(&mut bench, 8), 1);
    assert_eq!(drawn(&mut bench, 4), 1);
    bench.authorities.flush();
    let mut apart = Bench::default();
    assert!(drawn(&mut apart, 64) > 32, "by default each is drawn by itself");
}

#[test]
fn the_connection_that_idles_longest_gives_way() {
    let mut bench = Bench::new(limits());
    for number in 1..=3 {
        bench.ask_with(number, over_tcp);
        let sent = bench.sent();
        assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
        bench.pass(10);
    }
    bench.ask_with(1, over_tcp);
    let busy = bench.sent();
    bench.ask_with(4, over_tcp);
    let mut linked: Vec<SocketAddr> = bench.authorities.network().links.values().map(|&(to, _)| to).collect();
    linked.sort_unstable();
    assert_eq!(linked, [address(1), address(3), address(4)]);
    assert_eq!(bench.counters.links_evicted.read(), 1);
    assert!(bench.hear(&busy, &reply_to(&busy.bytes, &OK)).is_some());
}

#[test]
fn servers_that_say_nothing_over_tcp_keep_nobody_out_for_long() {
    let mut bench = Bench::new(limits());
    for number in 1..=3 {
        bench.ask_with(number, over_tcp);
        bench.sent();
        bench.pass(10);
    }
    bench.ask_with(4, over_tcp);
    assert_eq!(bench.unanswered(), [(4, Unanswered::NotSent)], "all are in use");
    bench.ask(4);
    let datagram = bench.sent();
    assert!(bench.hear(&datagram, &reply_to(&datagram.bytes, &OK)).is_some(), "over UDP there is room");
    bench.pass(1000);
    bench.ask_with(5, over_tcp);
    assert_eq!(bench.unanswered(), [(1, Unanswered::Timeout)], "who has been silent longest gives way");
    let sent = bench.sent();
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
}

#[test]
fn one_connection_takes_so_many_queries_and_another_the_rest() {
    let mut bench = Bench::new(limits());
    for _ in 0..65 {
        bench.ask_with(1, over_tcp);
    }
    assert_eq!(bench.authorities.link_count(), 2);
    assert_eq!(bench.unanswered(), []);
}
