//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `quickest(…)`: puts the addresses first that connect fastest, as far as that is known.
//!
//! Nobody waits for a measurement. An address that is not known yet is noted, the worker connects
//! to it behind the query's back ([`Engine::next_probe`](crate::Engine::next_probe)), and answers
//! after that are sorted. What was measured is kept in a table of fixed size, each worker's own.
//!
//! # Limitations
//!
//! Data changes places among the records of one name, and their TTLs stay: records of one set have
//! one TTL (RFC 2181 §5.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::Rtype;

use crate::answer::{Answer, answer_records};
use clients::client::Now;

/// Ports that one step may try.
pub const PORTS_MAX: usize = 4;
/// Records of one answer that are sorted; those after them stay where they are.
const SORTED_MAX: usize = 32;
/// Places in the table: 32 octets each.
const PLACES: usize = 4096;
/// Places that an address may stand in.
const PROBED: usize = 4;
/// Addresses that wait for the worker; more are noted when they are asked for again.
const NOTED_MAX: usize = 64;
/// Milliseconds after which a measurement that was begun, and never ended, is begun anew.
const PENDING_MS: u64 = 10_000;

/// What the step is set up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quickest {
    /// Ports to connect to, in order; the first that connects counts. Zero: none.
    pub ports: [u16; PORTS_MAX],
    /// How long a connection may take, in milliseconds.
    pub timeout_ms: u32,
    /// How long a measurement is kept, in seconds.
    pub keep_seconds: u32,
    /// How long it is kept that nothing connects, in seconds.
    pub keep_failure_seconds: u32,
}

/// A measurement to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Where to connect.
    pub address: IpAddr,
    /// How.
    pub how: Quickest,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    /// Noted or under way.
    Pending,
    /// Microseconds that connecting took; `u32::MAX`: nothing connected.
    Measured(u32),
}

#[derive(Clone, Copy)]
struct Place {
    address: u128,
    until_ms: u64,
    state: State,
}

const _: () = assert!(size_of::<Place>() == 32);

/// How fast addresses connect, as one worker knows it. Takes no memory until the first is noted.
#[derive(Default)]
pub struct Distances {
    places: Box<[Place]>,
    noted: Vec<Probe>,
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Distances {
    /// Returns the places that an address may stand in.
    fn candidates(&mut self, address: u128) -> &mut [Place] {
        let folded = (address ^ address >> 64) as u64;
        let start = (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % (PLACES / PROBED) * PROBED;
        self.places.get_mut(start..start + PROBED).unwrap_or(&mut [])
    }

    /// Returns what connecting takes, in microseconds; notes the address if that is not known.
    fn distance(&mut self, address: IpAddr, how: &Quickest, now: Now) -> Option<u32> {
        let wanted = bits(address);
        let found = self.candidates(wanted).iter().find(|place| {
            place.address == wanted && place.state != State::Free && place.until_ms > now.monotonic_ms
        });
        match found.map(|place| place.state) {
            Some(State::Measured(micros)) => Some(micros),
            Some(State::Pending | State::Free) => None,
            None => {
                self.note(Probe { address, how: *how }, now);
                None
            }
        }
    }

    #[cold]
    fn note(&mut self, probe: Probe, now: Now) {
        if self.places.is_empty() {
            let place = Place { address: 0, until_ms: 0, state: State::Free };
            // Once in the life of a worker, and only if the program has such a step.
            self.places = std::vec![place; PLACES].into_boxed_slice();
            self.noted.reserve_exact(NOTED_MAX);
        }
        if self.noted.len() < NOTED_MAX {
            self.noted.push(probe);
            self.put(probe.address, State::Pending, now.monotonic_ms + PENDING_MS);
        }
    }

    /// Writes over the place of the address, or the candidate that has been useless the longest.
    fn put(&mut self, address: IpAddr, state: State, until_ms: u64) {
        let address = bits(address);
        let places = self.candidates(address);
        let own = places.iter().position(|place| place.address == address && place.state != State::Free);
        let oldest = || places.iter().enumerate().min_by_key(|(_, place)| place.until_ms).map(|(at, _)| at);
        let at = own.or_else(oldest).unwrap_or(0);
        if let Some(place) = places.get_mut(at) {
            *place = Place { address, until_ms, state };
        }
    }

    /// Takes the next measurement to be made.
    pub(crate) fn next_probe(&mut self) -> Option<Probe> {
        self.noted.pop()
    }

    /// Keeps a measurement: microseconds, or `None` if nothing connected.
    pub(crate) fn measured(&mut self, probe: &Probe, micros: Option<u32>, now: Now) {
        let seconds = if micros.is_some() { probe.how.keep_seconds } else { probe.how.keep_failure_seconds };
        let until_ms = now.monotonic_ms + u64::from(seconds) * 1000;
        self.put(probe.address, State::Measured(micros.unwrap_or(u32::MAX)), until_ms);
    }
}

impl Quickest {
    /// Sorts the addresses of an answer: those that connect fastest first, then unknown ones in the
    /// order they came, then those that do not connect.
    pub(crate) fn sort(
        &self,
        answer: &Answer,
        (message, body_at): (&mut [u8], usize),
        distances: &mut Distances,
        now: Now,
    ) {
        // Where each address stands, what it is, and how far.
        let mut found = [(0_usize, [0_u8; 16], 0_u32); SORTED_MAX];
        let mut count = 0;
        let mut octets = 0;
        for record in answer_records(answer, message, body_at) {
            let address = match (record.rtype, record.rdata.len()) {
                (Rtype::A, 4) => {
                    record.rdata.first_chunk::<4>().map(|data| IpAddr::V4(Ipv4Addr::from(*data)))
                }
                (Rtype::AAAA, 16) => {
                    record.rdata.first_chunk::<16>().map(|data| IpAddr::V6(Ipv6Addr::from(*data)))
                }
                _ => None,
            };
            let Some(address) = address else { continue };
            // Of one family: an answer has no others, and if it had, those would stay.
            if count > 0 && octets != record.rdata.len() {
                continue;
            }
            octets = record.rdata.len();
            let Some(slot) = found.get_mut(count) else { break };
            // Halfway between what connects and what does not.
            let distance = distances.distance(address, self, now).unwrap_or(u32::MAX - 1);
            let mut data = [0; 16];
            for (to, from) in data.iter_mut().zip(record.rdata) {
                *to = *from;
            }
            *slot = (record.rdata_at, data, distance);
            count += 1;
        }
        let Some(found) = found.get_mut(..count) else { return };
        let mut places = [0_usize; SORTED_MAX];
        for (place, (at, ..)) in places.iter_mut().zip(found.iter()) {
            *place = *at;
        }
        // Stable, and without memory of its own: SORTED_MAX is small.
        for end in 1..count {
            let mut at = end;
            while at > 0
                && let (Some(before), Some(this)) = (found.get(at - 1), found.get(at))
                && before.2 > this.2
            {
                found.swap(at - 1, at);
                at -= 1;
            }
        }
        for (place, (_, data, _)) in places.iter().zip(found.iter()) {
            if let (Some(to), Some(from)) = (message.get_mut(*place..place + octets), data.get(..octets)) {
                to.copy_from_slice(from);
            }
        }
    }
}
