//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A socket on one queue of an interface: packets in, packets out.
//!
//! One batch goes like this: [`receive`](Socket::receive) until there is no more,
//! [`spare`](Socket::spare) and [`transmit`](Socket::transmit) for each reply,
//! [`release`](Socket::release) for what was read, then [`finish`](Socket::finish), which makes at
//! most the system calls that the kernel asks for.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::headers::Datagram;
use crate::meter::Meter;
use crate::sys::calls;
use crate::sys::mapping::Mapping;
use crate::sys::queue::{Queue, Rings};
use crate::sys::ring::{Consumer, Layout, Producer};

pub use crate::sys::queue::{Frames, Packet};

/// Octets that the kernel keeps free before a received packet (`XDP_PACKET_HEADROOM`).
pub const HEADROOM_OCTETS: u32 = 256;

/// Packets that one system call sends in copy mode, unless the kernel lets us choose.
const TRANSMIT_BUDGET: u32 = 32;

/// How long a queue may stay taken after its last owner has gone: the kernel frees it later.
const BUSY_MAX: Duration = Duration::from_secs(3);
const BUSY_INTERVAL: Duration = Duration::from_millis(50);

/// How packets get from the card to us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// Without a copy if the driver can do that.
    #[default]
    Avoid,
    /// Always with a copy.
    Always,
    /// Without a copy, or not at all.
    Never,
}

/// Our own system calls drive the card, instead of its interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long one call may take.
    pub microseconds: u32,
    /// How many packets it may handle.
    pub budget: u32,
}

/// What a socket is to be.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The index of the interface.
    pub interface: u32,
    /// The queue.
    pub queue: u32,
    /// Octets per frame: 2048 or 4096. A packet has 256 octets less.
    pub frame_octets: u32,
    /// Entries of each ring, a power of two. There are four times as many frames.
    pub ring_entries: u32,
    /// Whether packets may be copied.
    pub copying: Copying,
    /// Whether a packet may take several frames.
    pub multi_buffer: bool,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
    /// The memory that the card is nearest to, on a machine with several (NUMA).
    pub node: Option<u32>,
    /// Whether to poll the card ourselves.
    pub busy_poll: Option<BusyPoll>,
}

impl Plan {
    /// Entries of each ring. As many packets arrive in 2 ms at a million a second.
    pub const RING_ENTRIES: u32 = 2048;

    /// Returns what suits most.
    pub const fn new(interface: u32, queue: u32) -> Self {
        Self {
            interface,
            queue,
            frame_octets: 2048,
            ring_entries: Self::RING_ENTRIES,
            copying: Copying::Avoid,
            multi_buffer: false,
            huge_pages: false,
            node: None,
            busy_poll: None,
        }
    }

    /// Returns the octets of all frames, which must be allowed to be locked.
    pub const fn octets(&self) -> usize {
        4 * self.ring_entries as usize * self.frame_octets as usize
    }
}

/// Why a socket could not be opened.
#[derive(Debug)]
pub struct OpenError {
    /// What was tried.
    pub step: &'static str,
    /// What the kernel said.
    pub source: io::Error,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: ", self.step)?;
        match self.source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => f.write_str("CAP_NET_RAW is needed"),
            Some(libc::EAFNOSUPPORT) => f.write_str(
                "the kernel has no AF_XDP, or a sandbox forbids it (systemd: add AF_XDP to RestrictAddressFamilies)",
            ),
            Some(libc::ENOBUFS) => {
                f.write_str("too much locked memory; raise LimitMEMLOCK or grant CAP_IPC_LOCK")
            }
            Some(libc::EOPNOTSUPP) => f.write_str("the driver does not support this mode"),
            Some(libc::EBUSY) => f.write_str("another socket has this queue"),
            Some(libc::EINVAL) => {
                f.write_str("there is no such queue, or a size that the driver does not take")
            }
            _ => write!(f, "{}", self.source),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn step<T>(step: &'static str, result: io::Result<T>) -> Result<T, OpenError> {
    result.map_err(|source| OpenError { step, source })
}

/// What the kernel counts for a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets lost because they were too long for a frame, or for reasons other than those below.
    pub receive_dropped: u64,
    /// Packets lost because the receive ring was full.
    pub receive_ring_full: u64,
    /// Packets lost because the fill ring was empty.
    pub fill_ring_empty: u64,
    /// Entries of the fill ring that the kernel did not take.
    pub fill_invalid: u64,
    /// Entries of the transmit ring that the kernel did not take.
    pub transmit_invalid: u64,
    /// How often the kernel found the transmit ring empty.
    pub transmit_ring_empty: u64,
}

/// What we count ourselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets received.
    pub received: u64,
    /// Packets put on the transmit ring.
    pub transmitted: u64,
    /// System calls that asked the kernel to send.
    pub kicks: u64,
    /// Those that could not send all at once.
    pub kicks_again: u64,
    /// Those that failed for another reason, such as an interface that is down.
    pub kicks_failed: u64,
    /// Numbers from the kernel that made no sense.
    pub strays: u64,
}

/// How many frames the kernel is given to receive into.
///
/// It takes them in turn, so each packet comes to the frame that was not used for longest: with
/// many of them, to one that the processor's cache has forgotten, which costs as much as answering.
/// So the kernel gets few while few are enough, and all there are as soon as packets have had to
/// wait: whoever waits for the processor once, will again.
#[derive(Debug)]
struct Level {
    now: u32,
    least: u32,
    most: u32,
    /// Batches since one took much.
    calm: u32,
}

impl Level {
    /// Frames that bridge 34 ms at 30,000 packets a second, and fit a processor's own cache.
    const LEAST: u32 = 1024;
    /// Batches that must be small before there are fewer frames again.
    const CALM: u32 = 512;

    /// A card that writes into the frames itself holds many of them: it gets what the ring has room
    /// for.
    const fn new(entries: u32, is_zero_copy: bool) -> Self {
        let most = if is_zero_copy { u32::MAX } else { entries };
        let least = if most < Self::LEAST || is_zero_copy { most } else { Self::LEAST };
        Self { now: least, least, most, calm: 0 }
    }

    /// Hears how many frames the kernel had left when a batch was done, and returns how many there
    /// are to be.
    const fn after(&mut self, left: u32) -> u32 {
        let used = self.now.saturating_sub(left);
        if used > self.now / 2 && self.now < self.most {
            self.now = self.most;
            self.calm = 0;
        } else if used > self.now / 8 || self.now == self.least {
            self.calm = 0;
        } else {
            self.calm += 1;
            if self.calm == Self::CALM {
                self.now /= 2;
                self.calm = 0;
            }
        }
        self.now
    }
}

/// An open socket.
pub struct Socket {
    queue: Queue,
    fd: OwnedFd,
    interface: u32,
    queue_number: u32,
    zero_copy: bool,
    busy_poll: bool,
    transmit_budget: u32,
    /// Frames that are not given away to receive into, so that a driver that holds many does not
    /// leave us without one to answer in.
    reserve: u32,
    level: Level,
    counts: Counts,
    meter: Arc<Meter>,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, queue_number, zero_copy, .. } = self;
        write!(f, "Socket(interface {interface}, queue {queue_number}, zero-copy {zero_copy})")
    }
}

// Once per worker.
impl Socket {
    /// Opens a socket. If the queue is still taken by one that has just been closed, waits for it
    /// up to 3 seconds.
    pub fn open(plan: &Plan) -> Result<Self, OpenError> {
        let begun = Instant::now();
        loop {
            match Self::open_now(plan) {
                Err(error)
                    if error.source.raw_os_error() == Some(libc::EBUSY) && begun.elapsed() < BUSY_MAX =>
                {
                    // Nothing tells when the kernel is done with it.
                    let _ = calls::wait(&[], BUSY_INTERVAL);
                }
                result => return result,
            }
        }
    }

    fn open_now(plan: &Plan) -> Result<Self, OpenError> {
        let entries = plan.ring_entries;
        let socket = calls::socket(libc::AF_XDP, libc::SOCK_RAW, 0);
        let socket = step("open an AF_XDP socket", socket)?;
        let fd = socket.as_fd();
        let area =
            step("get memory for frames", Mapping::anonymous(plan.octets(), plan.huge_pages, plan.node))?;
        step("register memory for frames", calls::register(fd, &area, plan.frame_octets))?;
        for ring in
            [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING]
        {
            step("set up the rings", calls::set_ring_size(fd, ring, entries))?;
        }
        let offsets = step("find the rings", calls::ring_offsets(fd))?;
        let map = |offsets: libc::xdp_ring_offset, entry_octets: usize, at: libc::off_t| {
            let layout = Layout {
                producer: offsets.producer as usize,
                consumer: offsets.consumer as usize,
                flags: offsets.flags as usize,
                entries: offsets.desc as usize,
            };
            let octets = layout.entries + entries as usize * entry_octets;
            step("map the rings", Mapping::shared(fd, octets, at)).map(|mapping| (mapping, layout))
        };
        let (fill, fill_layout) = map(offsets.fr, 8, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t)?;
        let (done, done_layout) = map(offsets.cr, 8, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t)?;
        let (receive, receive_layout) = map(offsets.rx, 16, libc::XDP_PGOFF_RX_RING)?;
        let (transmit, transmit_layout) = map(offsets.tx, 16, libc::XDP_PGOFF_TX_RING)?;
        let rings = (
            Producer::new(fill, fill_layout, entries),
            Consumer::new(done, done_layout, entries),
            Consumer::new(receive, receive_layout, entries),
            Producer::new(transmit, transmit_layout, entries),
        );
        let invalid = || OpenError { step: "set up the rings", source: io::ErrorKind::InvalidInput.into() };
        let (Some(fill), Some(completion), Some(receive), Some(transmit)) = rings else {
            return Err(invalid());
        };
        let rings = Rings { fill, completion, receive, transmit };
        let mut queue = Queue::new(area, plan.frame_octets, rings).ok_or_else(invalid)?;
        // In copy mode every reply on its way counts against this.
        let _ = calls::set_send_buffer(fd, entries.saturating_mul(4096));
        let transmit_budget = match calls::set_transmit_budget(fd, entries.min(256)) {
            Ok(()) => entries.min(256),
            Err(_) => TRANSMIT_BUDGET,
        };
        if let Some(busy) = plan.busy_poll {
            step("set up busy polling", calls::set_busy_poll(fd, busy.microseconds, busy.budget))?;
        }
        let mut flags = libc::XDP_USE_NEED_WAKEUP;
        flags |= match plan.copying {
            Copying::Avoid => 0,
            Copying::Always => libc::XDP_COPY,
            Copying::Never => libc::XDP_ZEROCOPY,
        };
        if plan.multi_buffer {
            flags |= libc::XDP_USE_SG;
        }
        // Filled before it is bound, so that the first packet finds a frame.
        queue.refill(0, u32::MAX);
        step("bind to the queue", calls::bind(fd, plan.interface, plan.queue, flags))?;
        let zero_copy = calls::is_zero_copy(fd).unwrap_or(false);
        Ok(Self {
            zero_copy,
            queue,
            fd: socket,
            interface: plan.interface,
            queue_number: plan.queue,
            busy_poll: plan.busy_poll.is_some(),
            transmit_budget,
            reserve: entries,
            level: Level::new(entries, zero_copy),
            counts: Counts::default(),
            meter: Arc::new(Meter::new(plan.queue, entries)),
        })
    }

    /// Returns the index of the interface.
    pub const fn interface(&self) -> u32 {
        self.interface
    }

    /// Returns the queue.
    pub const fn queue(&self) -> u32 {
        self.queue_number
    }

    /// Returns whether packets pass without a copy.
    pub const fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Returns where others can read this socket's numbers.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Returns what the kernel counted.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let kernel = calls::statistics(self.fd.as_fd())?;
        // With copies, a packet that finds no frame is counted in both places.
        let counted_twice = if self.zero_copy { 0 } else { kernel.rx_fill_ring_empty_descs };
        Ok(Statistics {
            receive_dropped: kernel.rx_dropped.saturating_sub(counted_twice),
            receive_ring_full: kernel.rx_ring_full,
            fill_ring_empty: kernel.rx_fill_ring_empty_descs,
            fill_invalid: kernel.rx_invalid_descs,
            transmit_invalid: kernel.tx_invalid_descs,
            transmit_ring_empty: kernel.tx_ring_empty_descs,
        })
    }
}

impl Socket {
    /// Takes the next packet received, if there is one.
    pub fn receive(&mut self) -> Option<Packet> {
        let packet = self.queue.receive()?;
        self.counts.received += 1;
        Some(packet)
    }

    /// Returns whether there is more to receive.
    pub fn has_more(&mut self) -> bool {
        self.queue.rings.receive.has_more()
    }

    /// Returns an empty frame to write into; `None` if all are in use.
    pub fn spare(&mut self) -> Option<Packet> {
        if let Some(packet) = self.queue.spare() {
            return Some(packet);
        }
        self.queue.reclaim();
        self.queue.spare()
    }

    /// Returns the octets of a packet.
    pub fn read(&self, packet: &Packet) -> &[u8] {
        self.queue.read(packet)
    }

    /// Returns the octets of a packet to change them.
    pub fn write(&mut self, packet: &Packet) -> &mut [u8] {
        self.queue.write(packet)
    }

    /// Returns the octets of one packet to read and those of another to change.
    pub fn read_and_write(&mut self, from: &Packet, to: &Packet) -> (&[u8], &mut [u8]) {
        self.queue.read_and_write(from, to)
    }

    /// Gives a packet another length. Returns whether its frame has room for that; if not, nothing
    /// has changed.
    pub fn resize(&self, packet: &mut Packet, octets: usize) -> bool {
        self.queue.resize(packet, octets)
    }

    /// Puts a packet on the transmit ring; hands it back if there is no room. It leaves at the next
    /// [`send`](Self::send).
    pub fn transmit(&mut self, packet: Packet) -> Result<(), Packet> {
        self.queue.transmit(packet)?;
        self.counts.transmitted += 1;
        Ok(())
    }

    /// Turns a received datagram, in place, into one to whoever sent it, with the payload that
    /// `change` makes of the one it came with. Returns `None` and takes the packet back if it holds
    /// no datagram, or if `change` says no.
    pub fn turn(&mut self, mut packet: Packet, change: impl FnOnce(&mut [u8]) -> bool) -> Option<Packet> {
        let frame = self.queue.write(&packet);
        let datagram = if packet.continues() { None } else { Datagram::parse(frame).ok() };
        let octets = datagram.and_then(|datagram| {
            let payload = frame.get_mut(datagram.payload.start..datagram.payload.end)?;
            change(payload).then(|| datagram.flow.reversed().write(frame, datagram.payload.len()))?
        });
        match octets {
            Some(octets) if self.queue.resize(&mut packet, octets) => Some(packet),
            _ => {
                self.queue.release(packet);
                None
            }
        }
    }

    /// Takes back a packet that is of no more use.
    pub fn release(&mut self, packet: Packet) {
        self.queue.release(packet);
    }

    /// Ends a batch: sends, takes back what was sent, and gives the kernel frames to receive into.
    /// Returns how many packets still wait to be sent: if any, come again soon, or when the socket
    /// can be written to.
    pub fn finish(&mut self) -> u32 {
        self.queue.rings.receive.release();
        let left = self.send();
        // What has come meanwhile counts as well: a batch has a bound, a backlog has none.
        let waiting = self.queue.rings.receive.waiting();
        let level = self.level.after(self.queue.filling().saturating_sub(waiting));
        let refilled = self.queue.refill(self.reserve, level);
        if self.busy_poll || (refilled > 0 && self.queue.rings.fill.needs_wakeup()) {
            let _ = calls::kick_receive(self.fd.as_fd());
        }
        left
    }

    /// Sends what is on the transmit ring, as much as the kernel takes. Returns how many packets
    /// are left there.
    pub fn send(&mut self) -> u32 {
        let transmit = &mut self.queue.rings.transmit;
        transmit.publish();
        let mut left = transmit.outstanding();
        if left != 0 && transmit.needs_wakeup() {
            left = self.kick(left);
        }
        self.queue.reclaim();
        left
    }

    /// Asks the kernel to send until it has, or makes no progress: its own queue is full then, and
    /// asking again at once would only take the time that it needs to empty it.
    fn kick(&mut self, mut left: u32) -> u32 {
        // One more than it takes, for a call that was interrupted.
        for _ in 0..left.div_ceil(self.transmit_budget) + 1 {
            self.counts.kicks += 1;
            let mut is_full = false;
            if let Err(error) = calls::kick_transmit(self.fd.as_fd()) {
                match error.raw_os_error() {
                    // The interface has dropped a packet because its queue is full, and would drop
                    // the next one.
                    Some(libc::EBUSY) => {
                        self.counts.kicks_again += 1;
                        is_full = true;
                    }
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => self.counts.kicks_again += 1,
                    _ => self.counts.kicks_failed += 1,
                }
            }
            let before = left;
            left = self.queue.rings.transmit.outstanding();
            if left == 0 || left == before || is_full {
                break;
            }
        }
        left
    }

    /// Tells the [`meter`](Self::meter) how things are; returns what the kernel counted. A system
    /// call: once a second is often enough.
    pub fn tell(&self) -> io::Result<Statistics> {
        let statistics = self.statistics()?;
        self.meter.write(self.counts(), self.frames(), statistics);
        Ok(statistics)
    }

    /// Returns where the frames are.
    pub fn frames(&self) -> Frames {
        self.queue.frames()
    }

    /// Returns what was counted here.
    pub fn counts(&self) -> Counts {
        Counts { strays: self.queue.strays, ..self.counts }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits until one of the sockets has a packet, or room to send where packets are left, or the time
/// is over.
///
/// For programs without a runtime of their own; with one, watch the descriptors.
// Not on the way of any packet: this is what a program does when there is none.
#[cold]
pub fn wait(sockets: &[(&Socket, u32)], timeout: Duration) -> io::Result<bool> {
    let sockets: Vec<_> = sockets.iter().map(|(socket, left)| (socket.as_fd(), *left != 0)).collect();
    calls::wait(&sockets, timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_to_receive_into_follow_the_traffic() {
        let mut level = Level::new(4096, false);
        assert_eq!(level.after(1024 - 512), 1024);
        // A backlog brings all that the ring holds.
        assert_eq!(level.after(1024 - 513), 4096);
        assert_eq!(level.after(0), 4096);
        // They become fewer when it has been calm for long, and not below the least.
        for _ in 1..Level::CALM {
            assert_eq!(level.after(4096 - 512), 4096);
        }
        assert_eq!(level.after(4096 - 512), 2048);
        for _ in 0..3 * Level::CALM {
            level.after(2048 - 32);
        }
        assert_eq!(level.after(1024), 1024);
        // More than there are to be, as at the start, is no reason for anything.
        assert_eq!(level.after(4096), 1024);
    }

    #[test]
    fn a_card_that_writes_into_frames_gets_all() {
        assert_eq!(Level::new(2048, true).after(2000), u32::MAX);
        assert_eq!(Level::new(64, false).after(0), 64);
    }
}
