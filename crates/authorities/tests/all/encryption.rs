//! Encryption where servers have it (RFC 9539).

use super::*;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn encrypted(query: &mut AuthorityQuery<'_>) {
    query.encrypt = Encrypt { tls: true, quic: false, port: 853 };
}

impl Bench {
    /// Returns the connections that are open or opening: where to, and over what.
    fn connections(&self) -> Vec<(PoolLinkKey, SocketAddr, Carrier)> {
        let links = self.authorities.network().links.iter();
        let mut all: Vec<_> = links.map(|(&key, &(to, carrier))| (PoolLinkKey(key), to, carrier)).collect();
        all.sort_by_key(|(key, ..)| key.0);
        all
    }

    /// Asks a server in plain text, of which it is found out beside that it has encryption.
    fn find_out(&mut self) -> PoolLinkKey {
        self.ask_with(1, encrypted);
        let plain = self.sent();
        assert!(matches!(plain.over, Over::Udp(_)), "nobody waits for the handshake");
        let [(link, ..)] = self.connections()[..] else { panic!("{:?}", self.connections()) };
        self.authorities.link_opened(link, self.now);
        assert!(self.hear(&plain, &reply_to(&plain.bytes, &OK)).is_some());
        link
    }
}

#[test]
fn nothing_is_encrypted_unless_it_is_wanted() {
    let mut bench = Bench::default();
    bench.ask(1);
    assert!(matches!(bench.sent().over, Over::Udp(_)));
    assert_eq!(bench.connections(), []);
}

#[test]
fn whether_a_server_has_encryption_is_found_out_beside_the_query() {
    let mut bench = Bench::default();
    for _ in 0..3 {
        bench.ask_with(1, |query| query.encrypt = Encrypt { tls: true, quic: true, port: 8853 });
        assert!(matches!(bench.sent().over, Over::Udp(_)));
    }
    let to = SocketAddr::new(address(1).ip(), 8853);
    let found: Vec<_> = bench.connections().into_iter().map(|(_, to, carrier)| (to, carrier)).collect();
    assert_eq!(found, [(to, Carrier::Quic), (to, Carrier::Tls)], "once each");
    assert!(!bench.has_sent(), "nothing is asked there yet");
    assert_eq!(bench.counters.encryption_probes.read(), 2);
}

#[test]
fn a_server_that_has_encryption_is_asked_so_and_so_only() {
    let mut bench = Bench::default();
    let link = bench.find_out();
    bench.ask_with(1, encrypted);
    let sent = bench.sent();
    assert_eq!(sent.over, Over::Tcp(link), "the connection that found it out");
    assert_eq!(sent.bytes.len() % 128, 0, "RFC 8467: padded");
    assert!(!bench.has_sent());
    let heard = bench.hear(&sent, &reply_to(&sent.bytes, &OK));
    assert_eq!(heard, Some((2, Rcode::NOERROR, Arrival::Tcp)));
    assert_eq!(bench.counters.sent_encrypted.read(), 1);
    // Another worker knows it, too, and another connection is opened when this one has ended.
    bench.pass(6000);
    assert_eq!(bench.connections(), []);
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Tcp(_)));
}

#[test]
fn what_is_known_of_encryption_ends() {
    let mut bench = Bench::default();
    bench.find_out();
    bench.pass(2 * DAY_MS);
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Tcp(_)));
    let mut bench = Bench::default();
    bench.find_out();
    bench.pass(3 * DAY_MS + 128_000);
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Udp(_)), "found out anew");
    assert_eq!(bench.connections().len(), 1);
}

#[test]
fn a_server_without_encryption_is_left_alone_for_a_day() {
    let mut bench = Bench::default();
    bench.ask_with(1, encrypted);
    let sent = bench.sent();
    let (link, ..) = bench.connections()[0];
    bench.authorities.link_closed(link, bench.now);
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some(), "the query goes on");
    assert_eq!(bench.counters.network_errors.read(), 0);
    bench.pass(DAY_MS - 200_000);
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Udp(_)) && bench.connections().is_empty());
    bench.pass(400_000);
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Udp(_)) && bench.connections().len() == 1);
}

#[test]
fn a_port_that_says_nothing_counts_as_one_without_encryption() {
    let mut bench = Bench::default();
    bench.ask_with(1, encrypted);
    let sent = bench.sent();
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
    bench.pass(5000);
    assert_eq!(bench.connections(), []);
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Udp(_)) && bench.connections().is_empty());
}

#[test]
fn who_falls_silent_over_an_encrypted_connection_is_asked_in_plain_text() {
    let mut bench = Bench::default();
    bench.find_out();
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Tcp(_)));
    bench.pass(4001);
    let plain = bench.sent();
    assert!(matches!(plain.over, Over::Udp(_)));
    assert_eq!(bench.hear(&plain, &reply_to(&plain.bytes, &OK)), Some((2, Rcode::NOERROR, Arrival::Udp)));
    assert_eq!(bench.unanswered(), []);
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Udp(_)), "it is damped");
}

#[test]
fn who_hangs_up_is_asked_in_plain_text_at_once() {
    let mut bench = Bench::default();
    let link = bench.find_out();
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Tcp(_)));
    bench.authorities.link_closed(link, bench.now);
    assert!(matches!(bench.sent().over, Over::Udp(_)));
    // One that had answered may have closed for its idleness: once more over another connection.
    let mut bench = Bench::default();
    let link = bench.find_out();
    bench.ask_with(1, encrypted);
    let sent = bench.sent();
    assert!(bench.hear(&sent, &reply_to(&sent.bytes, &OK)).is_some());
    bench.ask_with(1, encrypted);
    assert!(matches!(bench.sent().over, Over::Tcp(_)));
    bench.authorities.link_closed(link, bench.now);
    let again = bench.sent();
    assert!(matches!(again.over, Over::Tcp(_)));
    let Over::Tcp(link) = again.over else { return };
    bench.authorities.link_closed(link, bench.now);
    assert!(matches!(bench.sent().over, Over::Udp(_)));
}

#[test]
fn what_is_cut_over_an_encrypted_connection_is_asked_for_over_tcp() {
    let mut bench = Bench::default();
    bench.find_out();
    bench.ask_with(1, encrypted);
    let sent = bench.sent();
    assert_eq!(bench.hear(&sent, &reply_to(&sent.bytes, &Says { flags: Flags::TC, ..OK })), None);
    bench.sent();
    assert!(bench.connections().iter().any(|&(_, to, carrier)| to == address(1) && carrier == Carrier::Tcp));
}

#[test]
fn finding_out_leaves_room_for_what_clients_wait_for() {
    let mut bench = Bench::default();
    for server in 1..200 {
        bench.ask_with(server, encrypted);
        assert!(matches!(bench.sent().over, Over::Udp(_)));
    }
    assert_eq!(bench.connections().len(), 16);
    for server in 300..340 {
        bench.ask_with(server, |query| query.over_tcp = true);
        assert!(matches!(bench.sent().over, Over::Tcp(_)));
    }
    assert_eq!(bench.unanswered(), []);
}
