//! The tables of a resolver that have no lock, in every order that the memory model allows.

use cache::claims::{Claim, Claims, Worker};
use cache::rrsets::{Found, NewRrset, Partition, Rank, Renewal, RrsetKey, Rrsets};
use cache::servers::{LetterCase, ServerLimits, Servers};
use cache::{Now, NowMs, Security};
use loom::sync::Arc;
use loom::thread;
use std::net::{Ipv4Addr, SocketAddr};
use wire::{Class, HashKey, NameBuf, Rtype};

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

#[test]
fn a_question_is_claimed_by_one_of_two() {
    model(|| {
        let claims = Arc::new(Claims::default());
        let other = {
            let claims = Arc::clone(&claims);
            thread::spawn(move || claims.claim(7, Worker(1), NowMs(0), 100) == Claim::Ours)
        };
        let ours = claims.claim(7, Worker(2), NowMs(0), 100) == Claim::Ours;
        let theirs = other.join().expect("no panic");
        assert!(ours != theirs);
        assert!(claims.release(7, Worker(if ours { 2 } else { 1 })));
        assert_eq!(claims.look(7, NowMs(0), 100), None);
    });
}

#[test]
fn of_two_rrsets_that_come_at_once_the_one_of_higher_rank_stays() {
    model(|| {
        let rrsets = Arc::new(Rrsets::tiny(60, HashKey::new([0x243f_6a88, 0x1319_8a2e])));
        let put = |rrsets: &Rrsets, rank| {
            let name = NameBuf::root().as_name().to_folded();
            let key = RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::IN, Partition(0));
            let record = [rank as u8; 12];
            let new = NewRrset {
                records: &[&record],
                signatures: &[],
                ttl: 60,
                rank,
                security: Security::Unchecked,
                signer_labels: 0,
                labels_signed: 0,
                renewal: Renewal::No,
            };
            let _ = rrsets.put(&key, &new, Now(0));
        };
        let look = |rrsets: &Rrsets| {
            let name = NameBuf::root().as_name().to_folded();
            let key = RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::IN, Partition(0));
            let mut out = Vec::new();
            match rrsets.look(&key, Now(0), &mut out)? {
                Found::Rrset(rrset) => {
                    assert!(rrset.records().all(|record| record == [rrset.rank as u8; 12]));
                    Some(rrset.rank)
                }
                _ => None,
            }
        };
        let other = {
            let rrsets = Arc::clone(&rrsets);
            thread::spawn(move || put(&rrsets, Rank::Answer))
        };
        put(&rrsets, Rank::Additional);
        // No look before both are done. To loom a use that is counted and the store after it are in
        // no order, although the first is an exchange of what the second replaces.
        other.join().expect("no panic");
        assert_eq!(look(&rrsets), Some(Rank::Answer));
    });
}
