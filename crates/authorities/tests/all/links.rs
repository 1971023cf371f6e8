//! TCP: after TC, and used again while it lasts.

use super::*;

fn link_of(sent: &Sent) -> PoolLinkKey {
    match sent.over {
        Over::Tcp(key) => key,
        Over::Udp(_) => panic!("it went over UDP"),
    }
}

fn over_tcp(query: &mut AuthorityQuery<'_>) {
    query.over_tcp = true;
}

#[test]
fn a_truncated_reply_is_asked_for_again_over_tcp_with_a_deadline_of_its_own() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    bench.pass(1500);
    assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &Says { flags: Flags::TC, ..OK })), None);
    let again = bench.sent();
    let link = link_of(&again);
    bench.pass(3900);
    assert_eq!(bench.unanswered(), []);
    bench.authorities.link_opened(link, bench.now);
    let reply = reply_to(&again.bytes, &OK);
    assert_eq!(bench.hear(&again, &reply), Some((1, Rcode::NOERROR, Arrival::Tcp)));
}

#[test]
fn a_reply_longer_than_our_room_is_asked_for_again_over_tcp() {
    let mut bench = Bench::default();
    bench.ask(1);
    let sent = bench.sent();
    let Over::Udp(socket) = sent.over else { panic!("{:?}", sent.over) };
    let reply = reply_to(&sent.bytes, &OK);
    assert!(bench.authorities.datagram(socket, sent.to, &reply, true, bench.now).is_none());
    link_of(&bench.sent());
}

#[test]
fn several_queries_share_a_connection_and_it_closes_when_it_idles() {
    let mut bench = Bench::default();
    bench.ask_with(1, over_tcp);
    bench.ask_with(1, over_tcp);
    let (first, second) = (bench.sent(), bench.sent());
    assert_eq!(first.over, second.over);
    assert!(bench.hear(&second, &reply_to(&second.bytes, &OK)).is_some(), "in any order");
    assert!(bench.hear(&first, &reply_to(&first.bytes, &OK)).is_some());
    bench.pass(4000);
    bench.ask_with(1, over_tcp);
    let third = bench.sent();
    assert_eq!(third.over, first.over);
    assert!(bench.hear(&third, &reply_to(&third.bytes, &OK)).is_some());
    bench.pass(4999);
    assert_eq!(bench.authorities.link_count(), 1);
    bench.pass(1002);
    assert_eq!((bench.authorities.link_count(), bench.authorities.network().links.len()), (0, 0));
}

#[test]
fn a_wrong_message_on_a_connection_changes_nothing() {
    let mut bench = Bench::default();
    bench.ask_with(1, over_tcp);
    let sent = bench.sent();
    for change in [1, 2, 13] {
        let mut wrong = reply_to(&sent.bytes, &OK);
        wrong[change] ^= 0x80;
        assert_eq!(bench.hear(&sent, &wrong), None);
    }
    let truncated = reply_to(&sent.bytes, &Says { flags: Flags::TC, ..OK });
    for _ in 0..5 {
        assert_eq!(bench.hear(&sent, &truncated), None);
    }
    assert!(!bench.has_sent() && bench.unanswered().is_empty());
    bench.pass(4001);
    assert_eq!(bench.unanswered(), [(1, Unanswered::Timeout)]);
}

#[test]
fn a_connection_that_cannot_be_made_ends_its_queries_alone() {
    for (how, why) in [(0, Unanswered::Unreachable), (1, Unanswered::NotSent), (2, Unanswered::Timeout)] {
        let mut bench = Bench::default();
        bench.ask_with(1, over_tcp);
        bench.ask_with(2, over_tcp);
        let (first, second) = (bench.sent(), bench.sent());
        let (link, now) = (link_of(&first), bench.now);
        match how {
            0 => bench.authorities.link_closed(link, now),
            1 => bench.authorities.link_lacked(link, bench.now),
            _ => bench.authorities.link_stalled(link, bench.now),
        }
        assert_eq!(bench.unanswered(), [(1, why)]);
        assert!(bench.hear(&second, &reply_to(&second.bytes, &OK)).is_some());
    }
}

#[test]
fn a_query_whose_used_connection_ends_is_asked_once_more() {
    let mut bench = Bench::default();
    bench.ask_with(1, over_tcp);
    let sent = bench.sent();
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
    bench.ask_with(1, over_tcp);
    let second = bench.sent();
    bench.pass(1000);
    bench.authorities.link_closed(link_of(&second), bench.now);
    let third = bench.sent();
    assert!(bench.hear(&third, &reply_to(&third.bytes, &OK)).is_some());
    bench.ask_with(1, over_tcp);
    let fourth = bench.sent();
    bench.authorities.link_closed(link_of(&fourth), bench.now);
    let fifth = bench.sent();
    bench.authorities.link_closed(link_of(&fifth), bench.now);
    assert_eq!(bench.unanswered(), [(3, Unanswered::Unreachable)]);
    bench.ask_with(1, over_tcp);
    bench.pass(3000);
    let sixth = bench.sent();
    bench.authorities.link_closed(link_of(&sixth), bench.now);
    assert!(!bench.has_sent(), "a new connection that ends at once is not wanted");
}

#[test]
fn asking_once_more_does_not_move_the_deadline() {
    let mut bench = Bench::default();
    bench.ask_with(1, over_tcp);
    let sent = bench.sent();
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
    bench.ask_with(1, over_tcp);
    let second = bench.sent();
    bench.pass(3000);
    bench.authorities.link_closed(link_of(&second), bench.now);
    bench.pass(1001);
    assert_eq!(bench.unanswered(), [(2, Unanswered::Timeout)]);
}

#[test]
fn a_silent_connection_is_not_used_again() {
    let mut bench = Bench::default();
    bench.ask_with(1, over_tcp);
    let silent = bench.sent();
    bench.pass(1000);
    bench.ask_with(1, over_tcp);
    let second = bench.sent();
    assert_ne!(second.over, silent.over);
    bench.pass(3001);
    assert_eq!(bench.unanswered(), [(1, Unanswered::Timeout)]);
    assert_eq!(bench.authorities.link_count(), 1, "it is closed with its last query");
}
