//! The tables of a resolver that have no lock, in every order that the memory model allows.

use cache::NowMs;
use cache::servers::{LetterCase, ServerLimits, Servers};
use loom::sync::Arc;
use loom::thread;
use std::net::{Ipv4Addr, SocketAddr};
use wire::HashKey;

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(run);
}

fn servers() -> Arc<Servers> {
    // One set of two lines, and one place for a cookie.
    Arc::new(Servers::new(ServerLimits { lines: 2, cookies: 1 }, HashKey::new([0x243f_6a88, 0x1319_8a2e])))
}

fn address(number: u8) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, number), 53).into()
}

/// What is known of a server is what was told of it, or nothing yet.
fn look(servers: &Servers, number: u8) {
    if let Some(facts) = servers.look(address(number), NowMs(0))
        && let Some(round_trip) = facts.round_trip
    {
        assert_eq!(round_trip.smoothed_us, 1000 * u32::from(number));
    }
}

#[test]
fn a_line_that_changes_hands_is_whole_or_not_there() {
    model(|| {
        let servers = servers();
        servers.record_round_trip(address(1), 1000);
        servers.record_round_trip(address(2), 2000);
        let writer = {
            let servers = Arc::clone(&servers);
            thread::spawn(move || servers.record_round_trip(address(3), 3000))
        };
        look(&servers, 1);
        look(&servers, 3);
        writer.join().expect("no panic");
        look(&servers, 3);
    });
}

#[test]
fn what_two_workers_record_of_one_server_is_both_known() {
    model(|| {
        let servers = servers();
        servers.record_round_trip(address(1), 1000);
        let writer = {
            let servers = Arc::clone(&servers);
            thread::spawn(move || servers.record_case(address(1), LetterCase::Kept))
        };
        servers.record_silence(address(1), NowMs(0));
        writer.join().expect("no panic");
        let facts = servers.look(address(1), NowMs(0)).expect("nobody else needs its line");
        assert_eq!((facts.case, facts.silences), (LetterCase::Kept, 1));
    });
}

#[test]
fn a_cookie_that_is_replaced_is_the_old_one_the_new_one_or_unknown() {
    model(|| {
        let servers = servers();
        servers.record_cookie(address(1), &[1; 32]);
        let writer = {
            let servers = Arc::clone(&servers);
            thread::spawn(move || servers.record_cookie(address(1), &[2; 32]))
        };
        if let Some(cookie) = servers.cookie(address(1)) {
            assert!(cookie.as_bytes() == [1; 32] || cookie.as_bytes() == [2; 32], "torn: {cookie:?}");
        }
        writer.join().expect("no panic");
        assert_eq!(servers.cookie(address(1)).expect("it is there").as_bytes(), [2; 32]);
    });
}
