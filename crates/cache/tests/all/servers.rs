//! Facts about servers: against a map of them, within their bound, and under many threads.

use cache::NowMs;
use cache::servers::{Edns, Encryption, Facts, LetterCase, ServerLimits, Servers};
use proptest::prelude::*;
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use wire::HashKey;

fn servers(lines: usize) -> Servers {
    let hash_key = HashKey::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]);
    Servers::new(ServerLimits { lines, cookies: lines / 4 }, hash_key)
}

/// IPv4, IPv6 and another port by turns.
fn address(number: u32) -> SocketAddr {
    let port = if number % 5 == 4 { 853 } else { 53 };
    match number % 2 {
        0 => (Ipv4Addr::from_bits(0xc000_0200 + number / 2), port).into(),
        _ => (Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number / 2)), port).into(),
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    RoundTrip(u32),
    Silence,
    Edns(u16, u32),
    Case(bool),
    Tls(bool, u32),
    Quic(bool, u32),
    Lame(u64, u32),
    Forget,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_000_000_u32).prop_map(Step::RoundTrip),
        4 => Just(Step::Silence),
        2 => (0..4_u16, 0..5000_u32).prop_map(|(kind, seconds)| Step::Edns(kind, seconds)),
        1 => any::<bool>().prop_map(Step::Case),
        1 => (any::<bool>(), 0..5000_u32).prop_map(|(works, seconds)| Step::Tls(works, seconds)),
        1 => (any::<bool>(), 0..5000_u32).prop_map(|(works, seconds)| Step::Quic(works, seconds)),
        2 => (1..8_u64, 0..5000_u32).prop_map(|(zone, seconds)| Step::Lame(zone, seconds)),
        1 => Just(Step::Forget),
        2 => (0..400_000_u64).prop_map(Step::Wait),
    ]
}

#[derive(Clone, Default)]
struct Known {
    round_trip: Option<(f64, f64)>,
    silences: u32,
    silent_at: u64,
    edns: (Edns, u64),
    case: LetterCase,
    tls: (Encryption, u64),
    quic: (Encryption, u64),
    lame: Vec<(u64, u64)>,
}

const ZONE_BITS: u32 = 48;

fn state(works: bool) -> Encryption {
    if works { Encryption::Works } else { Encryption::Refused }
}

fn edns_of(kind: u16) -> Edns {
    match kind {
        0 => Edns::Works,
        1 => Edns::None,
        kind => Edns::UpTo { octets: 600 * kind },
    }
}

/// What has an end holds until then, and is forgotten at most 64 seconds later.
fn check_end<T: PartialEq + Copy + std::fmt::Debug + Default>(found: T, (known, end): (T, u64), now: u64) {
    if now < end {
        assert_eq!(found, known);
    } else if now >= end + 64_000 {
        assert_eq!(found, T::default());
    } else {
        assert!(found == known || found == T::default());
    }
}

fn check(found: &Facts, known: &Known, now: u64) {
    match (found.round_trip, known.round_trip) {
        (None, None) => {}
        (Some(found), Some((smoothed, variation))) => {
            let (found_smoothed, found_variation) =
                (f64::from(found.smoothed_us), f64::from(found.variation_us));
            assert!((found_smoothed - smoothed).abs() < 10.0, "{found:?} {smoothed}");
            assert!((found_variation - variation).abs() < 20.0, "{found:?} {variation}");
        }
        (found, known) => panic!("{found:?} {known:?}"),
    }
    assert_eq!(u32::from(found.silences), known.silences.min(255));
    if known.silences > 0 {
        assert!((now - known.silent_at).abs_diff(found.silent_since_ms) <= 16);
    }
    check_end(found.edns, known.edns, now);
    check_end(found.tls, known.tls, now);
    check_end(found.quic, known.quic, now);
    assert_eq!(found.case, known.case);
    for &(zone, end) in &known.lame {
        check_end(found.is_lame(zone << ZONE_BITS), (true, end), now);
    }
    assert!(!found.is_lame(99 << ZONE_BITS));
    assert!(found.barred_for_ms() <= 2000);
}

fn record(servers: &Servers, known: &mut Option<Known>, server: SocketAddr, step: Step, now: &mut u64) {
    let at = NowMs(*now);
    let end = |seconds: u32| *now + u64::from(seconds) * 1000;
    if !matches!(step, Step::Forget | Step::Wait(_)) {
        known.get_or_insert_default();
    }
    match (step, known.as_mut()) {
        (Step::RoundTrip(sample), Some(known)) => {
            servers.record_round_trip(server, sample);
            let sample = f64::from(sample.max(1));
            known.round_trip =
                Some(known.round_trip.map_or((sample, sample / 2.0), |(smoothed, variation)| {
                    (0.875 * smoothed + 0.125 * sample, 0.75 * variation + 0.25 * (smoothed - sample).abs())
                }));
            known.silences = 0;
        }
        (Step::Silence, Some(known)) => {
            servers.record_silence(server, at);
            (known.silences, known.silent_at) = (known.silences + 1, *now);
        }
        (Step::Edns(kind, seconds), Some(known)) => {
            servers.record_edns(server, edns_of(kind), at, seconds);
            known.edns = (edns_of(kind), end(seconds));
        }
        (Step::Case(is_kept), Some(known)) => {
            known.case = if is_kept { LetterCase::Kept } else { LetterCase::Changed };
            servers.record_case(server, known.case);
        }
        (Step::Tls(works, seconds), Some(known)) => {
            servers.record_tls(server, state(works), at, seconds);
            known.tls = (state(works), end(seconds));
        }
        (Step::Quic(works, seconds), Some(known)) => {
            servers.record_quic(server, state(works), at, seconds);
            known.quic = (state(works), end(seconds));
        }
        (Step::Lame(zone, seconds), Some(known)) => {
            known.lame.retain(|&(other, _)| other != zone);
            // Four are remembered: the model gives up when that is not enough.
            known.lame.retain(|&(_, end)| end + 64_000 > *now);
            if known.lame.len() < 4 {
                servers.record_lame(server, zone << ZONE_BITS, at, seconds);
                known.lame.push((zone, end(seconds)));
            }
        }
        (Step::Forget, _) => assert_eq!(servers.forget(server), known.take().is_some()),
        (Step::Wait(ms), _) => *now += ms,
        (_, None) => unreachable!("it is known by now"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 64 }, ..ProptestConfig::default() })]

    #[test]
    fn a_table_with_room_knows_what_it_was_told(
        steps in prop::collection::vec((0..40_u32, step()), 1..400),
        start in prop_oneof![Just(0), Just((1 << 31) * 1000_u64), any::<u32>().prop_map(u64::from)],
    ) {
        let servers = servers(4096);
        let mut model: HashMap<u32, Option<Known>> = HashMap::new();
        let mut now = start;
        for (number, step) in steps {
            record(&servers, model.entry(number).or_default(), address(number), step, &mut now);
            for (&number, known) in &model {
                let found = servers.look(address(number), NowMs(now));
                match (found, known) {
                    (None, None) => {}
                    (Some(found), Some(known)) => check(&found, known, now),
                    (found, _) => panic!("{number}: {found:?}"),
                }
            }
        }
        let known = model.values().flatten().count();
        assert_eq!(servers.stats().entries, known as u64);
        let mut shown = 0;
        servers.for_each(NowMs(now), |server, facts| {
            let number = (0..40).find(|&number| address(number) == server).expect("one of ours");
            check(facts, model[&number].as_ref().expect("it is known"), now);
            shown += 1;
        });
        assert_eq!(shown, known);
        assert_eq!(servers.forget_all(), known);
        assert_eq!(servers.stats().entries, 0);
    }
}

/// Ends are kept in units of 64 seconds, and time in milliseconds: what ends just after a unit has
/// begun holds through that unit.
#[test]
fn what_is_known_of_edns_holds_to_its_last_millisecond() {
    let servers = servers(1024);
    let server = address(1);
    let until = 27 * 64_000;
    for began in [until - 758_000 - 1, until - 758_000, until - 758_000 + 1] {
        servers.record_edns(server, Edns::None, NowMs(began), 758);
        let last = servers.look(server, NowMs(began + 758_000 - 1)).expect("it is known");
        assert_eq!(last.edns, Edns::None);
    }
}

#[test]
fn the_bound_on_lines_holds_and_what_is_used_stays() {
    let servers = servers(1024);
    let bound = servers.stats().octets_max;
    let used = if cfg!(miri) { 2 } else { 64 };
    for number in 0..used {
        servers.record_round_trip(address(number), 20_000 + number);
    }
    let mut kept = 0;
    let rounds = if cfg!(miri) { 10 } else { 20_000 };
    for number in 0..rounds {
        servers.record_round_trip(address(1000 + number), 1);
        let again = number % used;
        if let Some(facts) = servers.look(address(again), NowMs(0)) {
            assert_eq!(facts.round_trip.map(|round_trip| round_trip.smoothed_us), Some(20_000 + again));
            kept += 1;
        } else {
            servers.record_round_trip(address(again), 20_000 + again);
        }
        let stats = servers.stats();
        assert!(stats.entries <= 1024 && stats.octets <= bound && stats.octets_max == bound);
    }
    assert!(kept * 100 >= rounds * 97, "{kept} of {rounds}");
    if !cfg!(miri) {
        let stats = servers.stats();
        assert_eq!(stats.entries, 1024);
        assert_eq!(stats.inserts, stats.entries + stats.evictions);
    }
}

#[test]
fn servers_differ_by_port_and_mapped_addresses_are_those_of_ipv4() {
    let servers = servers(8);
    let server: SocketAddr = (Ipv4Addr::new(192, 0, 2, 1), 53).into();
    servers.record_case(server, LetterCase::Kept);
    assert_eq!(servers.look((server.ip(), 853).into(), NowMs(0)), None);
    let mapped: SocketAddr = (Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped(), 53).into();
    assert!(servers.look(mapped, NowMs(0)).is_some());
    servers.for_each(NowMs(0), |shown, _| assert_eq!(shown, server));
}

#[test]
fn a_cookie_is_kept_and_forgotten_with_its_server() {
    let servers = servers(4096);
    assert_eq!(servers.cookie(address(1)), None);
    assert!(!servers.record_cookie(address(1), &[1; 7]) && !servers.record_cookie(address(1), &[1; 33]));
    assert!(servers.record_cookie(address(1), &[1; 16]));
    assert_eq!(servers.cookie(address(1)).expect("it was told").as_bytes(), [1; 16]);
    servers.record_case(address(1), LetterCase::Kept);
    assert!(servers.forget(address(1)));
    assert_eq!(servers.cookie(address(1)), None);
    assert!(servers.record_cookie(address(2), &[2; 32]));
    servers.forget_cookie(address(2));
    assert_eq!(servers.cookie(address(2)), None);
}

#[test]
fn facts_are_those_of_their_server_while_lines_change_hands() {
    let servers = servers(16);
    // With a port each, the words of two servers' round trips are never the same: else what is told
    // of one in the instant its line changes hands may be told of the other.
    let address = |number: u32| SocketAddr::new(address(number).ip(), 1000 + number as u16);
    let rounds = if cfg!(miri) { 30 } else { 100_000 };
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let servers = &servers;
            scope.spawn(move || {
                for round in 0..rounds {
                    let number = (round * (thread + 7)) % 60;
                    // The round trip, the case and the cookie tell whose they are.
                    let case = if number.is_multiple_of(3) { LetterCase::Kept } else { LetterCase::Changed };
                    if round % 3 == thread % 3 {
                        servers.record_round_trip(address(number), 1000 + number * 1000);
                        servers.record_case(address(number), case);
                        servers.record_cookie(address(number), &[number as u8; 24]);
                    }
                    if let Some(cookie) = servers.cookie(address(number)) {
                        assert_eq!(cookie.as_bytes(), [number as u8; 24]);
                    }
                    if let Some(facts) = servers.look(address(number), NowMs(0))
                        && let Some(round_trip) = facts.round_trip
                    {
                        assert_eq!(round_trip.smoothed_us, 1000 + number * 1000);
                    }
                }
            });
        }
    });
    assert!(servers.stats().entries <= 16);
}
