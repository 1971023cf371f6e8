//! Asks through AF_XDP between two namespaces: at a steady rate, or as fast as the interface takes
//! it.
//!
//! Unlike kxdpgun it knows which query each reply belongs to, so it tells how long replies took,
//! and it tells whether a query or a reply was lost on the way back to itself: on a machine that
//! has other things to do, a generator loses more than a server.

use std::time::{Duration, Instant};

use xdp::headers::{Datagram, Flow};
use xdp::{Device, DeviceOptions, Mode, Packet, Socket, Taking};

use super::{SLICE, Slice, Tally};
use crate::pair::Pair;
use crate::queries::Packets;

/// Queries between two system calls.
const BATCH: u64 = 32;
/// Ports that queries come from.
const PORTS: std::ops::Range<u16> = 20_000..20_064;
/// How long replies are waited for when the last query has gone.
const GRACE: Duration = Duration::from_millis(500);
/// How long the generator sleeps at most while it waits for the time of the next query.
const NAP: Duration = Duration::from_millis(1);
/// The least time between two batches at a rate. A generator that was kept from its processor must
/// not make up for it at once: the pair of interfaces holds 256 packets, and drops what is more.
const PAUSE: Duration = Duration::from_micros(500);

/// A stretch of asking.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Queries a second; `None` for as many as the interface takes.
    pub rate: Option<f64>,
    /// For how long.
    pub time: Duration,
}

/// What came of a stretch.
pub struct Asked {
    /// What came of it.
    pub tally: Tally,
    /// Queries that never got to the server's end, because the queue between the interfaces was
    /// full.
    pub lost_there: u64,
    /// Replies that were dropped because that queue was full the other way, or at the generator's
    /// own end.
    pub lost_here: u64,
    /// The mean of replies in each slice, in microseconds; `None` where there was none.
    pub means_us: Vec<Option<f64>>,
}

/// A query on its way, by the number in its header and its port: when it was sent, since the
/// beginning.
#[derive(Clone, Copy, Default)]
struct Sent {
    at_ns: Option<u64>,
    number: u16,
}

/// The generator, as long as it has the client's interface.
pub struct Asker<'a> {
    _device: Device,
    socket: Socket,
    pair: &'a Pair,
    packets: &'a Packets,
    /// Whether replies need have no answers: an echo's have none.
    is_echo: bool,
    codes: [u8; 16],
}

impl<'a> Asker<'a> {
    /// Takes the client's interface. Must be called at the client's end.
    pub fn new(pair: &'a Pair, packets: &'a Packets, is_echo: bool, codes: [u8; 16]) -> Result<Self, String> {
        let plan = DeviceOptions {
            mode: Mode::Native,
            taking: Taking::All,
            ..DeviceOptions::new(&pair.client.interface)
        };
        let (device, mut sockets) = Device::open(&plan).map_err(|error| error.to_string())?;
        let filter = device.filter().ok_or("no program of ours")?;
        for port in PORTS {
            filter.serve(pair.flow(port).source).map_err(|error| error.to_string())?;
        }
        let socket = sockets.pop().ok_or("the interface has no queue")?;
        Ok(Self { _device: device, socket, pair, packets, is_echo, codes })
    }

    /// Asks for a stretch, and waits for the last replies.
    pub fn ask(&mut self, stretch: Stretch) -> Result<Asked, String> {
        let [there_before, here_before] = self.dropped()?;
        let slices = stretch.time.as_nanos().div_ceil(SLICE.as_nanos()) as usize;
        let mut course = Course {
            sent: vec![Sent::default(); PORTS.len() << 10],
            tally: Tally { slices: vec![Slice::default(); slices], ..Tally::default() },
            sums_ns: vec![0; slices],
        };
        let begun = Instant::now();
        let mut not_before = Duration::ZERO;
        loop {
            let now = begun.elapsed();
            self.hear(&mut course, now);
            let is_over = now >= stretch.time;
            let has_all = course.tally.answered + course.tally.wrong_content >= course.tally.sent;
            if is_over && (has_all || now >= stretch.time + GRACE) {
                break;
            }
            let due = match stretch.rate {
                _ if is_over => 0,
                Some(_) if now < not_before => 0,
                Some(rate) => {
                    ((now.as_secs_f64() * rate) as u64).saturating_sub(course.tally.sent).min(BATCH)
                }
                None => BATCH,
            };
            let sent = self.send(&mut course, due, begun);
            let left = self.socket.finish();
            if sent != 0 {
                not_before = now + PAUSE;
            } else {
                xdp::socket::wait(&[(&self.socket, left)], NAP).map_err(|error| error.to_string())?;
            }
        }
        let Course { sent, mut tally, sums_ns } = course;
        for query in sent.iter().filter_map(|query| query.at_ns) {
            if let Some(slice) = tally.slices.get_mut(slice_of(query)) {
                slice.lost += 1;
            }
        }
        tally.lost = tally.sent.saturating_sub(tally.answered + tally.wrong_content);
        tally.elapsed = stretch.time;
        let [there, here] = self.dropped()?;
        let (lost_there, lost_here) = (there.saturating_sub(there_before), here.saturating_sub(here_before));
        let means_us = tally
            .slices
            .iter()
            .zip(sums_ns)
            .map(|(slice, sum)| (slice.answered != 0).then(|| sum as f64 / slice.answered as f64 / 1e3));
        let means_us = means_us.collect();
        Ok(Asked { tally, lost_there, lost_here, means_us })
    }

    /// Returns how many packets have been dropped on their way to the server's end, and to the
    /// client's or there.
    fn dropped(&self) -> Result<[u64; 2], String> {
        let statistics = self.socket.statistics().map_err(|error| error.to_string())?;
        let here = statistics.receive_dropped + statistics.receive_ring_full + statistics.fill_ring_empty;
        Ok([self.pair.client.dropped_sending()?, here + self.pair.server.dropped_sending()?])
    }

    /// Takes what has come.
    fn hear(&mut self, course: &mut Course, now: Duration) {
        let now_ns = now.as_nanos() as u64;
        while let Some(packet) = self.socket.receive() {
            let frame = self.socket.read(&packet);
            let heard = Datagram::parse(frame).ok().and_then(|datagram| {
                let port = datagram.flow.destination.port();
                Some((port, *frame.get(datagram.payload)?.first_chunk::<8>()?))
            });
            if let Some((port, [n0, n1, flags, code, _, _, a0, a1])) = heard {
                let number = u16::from_be_bytes([n0, n1]);
                let is_expected = flags & 0x80 != 0
                    && (self.is_echo || (code & 0xf == self.codes[0] && [a0, a1] != [0, 0]));
                course.hear((port, number), now_ns, is_expected);
            }
            self.socket.release(packet);
        }
    }

    /// Sends up to `due` queries; returns how many.
    fn send(&mut self, course: &mut Course, due: u64, begun: Instant) -> u64 {
        for done in 0..due {
            let Some(packet) = self.socket.spare() else { return done };
            let count = course.tally.sent;
            let query = self.packets.packet(count as usize % self.packets.len());
            let port = PORTS.start + (count % PORTS.len() as u64) as u16;
            let number = (count / PORTS.len() as u64) as u16;
            if !put(&mut self.socket, packet, &self.pair.flow(port), query, number) {
                return done;
            }
            course.note((port, number), begun.elapsed().as_nanos() as u64);
        }
        due
    }
}

/// What has been asked and heard.
struct Course {
    /// By port and the last ten bits of the number; a later query takes the place of one that was
    /// not answered.
    sent: Vec<Sent>,
    tally: Tally,
    /// The sum of latencies in each slice.
    sums_ns: Vec<u64>,
}

impl Course {
    fn place(&mut self, (port, number): (u16, u16)) -> Option<&mut Sent> {
        let port = usize::from(port.checked_sub(PORTS.start)?);
        self.sent.get_mut(port << 10 | usize::from(number & 0x3ff))
    }

    fn note(&mut self, query: (u16, u16), at_ns: u64) {
        self.tally.sent += 1;
        let Some(place) = self.place(query) else { return };
        let old = std::mem::replace(place, Sent { at_ns: Some(at_ns), number: query.1 });
        if let Some(slice) = old.at_ns.and_then(|at_ns| self.tally.slices.get_mut(slice_of(at_ns))) {
            slice.lost += 1;
        }
    }

    fn hear(&mut self, reply: (u16, u16), now_ns: u64, is_expected: bool) {
        let Some(place) = self.place(reply).filter(|place| place.number == reply.1) else { return };
        let Some(at_ns) = place.at_ns.take() else { return };
        let took_ns = now_ns.saturating_sub(at_ns);
        // A reply belongs to the slice in which its query was sent, so that a slice without loss is
        // one.
        let at = slice_of(at_ns);
        let Some(slice) = self.tally.slices.get_mut(at) else { return };
        if !is_expected {
            self.tally.wrong_content += 1;
            slice.wrong += 1;
            return;
        }
        self.tally.answered += 1;
        self.tally.latency.record(took_ns);
        slice.answered += 1;
        slice.latency_max_ns = slice.latency_max_ns.max(took_ns);
        if let Some(sum) = self.sums_ns.get_mut(at) {
            *sum += took_ns;
        }
    }
}

const fn slice_of(at_ns: u64) -> usize {
    (at_ns / SLICE.as_nanos() as u64) as usize
}

/// Queues a query; returns whether there was room for it.
fn put(socket: &mut Socket, mut packet: Packet, flow: &Flow, query: &[u8], number: u16) -> bool {
    let frame = socket.write(&packet);
    let at = flow.headers_octets();
    let written = frame.get_mut(at..at + query.len()).and_then(|room| {
        room.copy_from_slice(query);
        room.first_chunk_mut::<2>().map(|place| *place = number.to_be_bytes())
    });
    let octets = written.and_then(|()| flow.write(socket.write(&packet), query.len()));
    let is_ready = octets.is_some_and(|octets| socket.resize(&mut packet, octets));
    let rest = if is_ready { socket.transmit(packet) } else { Err(packet) };
    match rest {
        Ok(()) => true,
        Err(packet) => {
            socket.release(packet);
            false
        }
    }
}
