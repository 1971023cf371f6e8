//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The memory of all frames of a queue, its four rings, and who owns each frame.
//!
//! A frame is free, held by the program, or with the kernel: on the fill ring until it comes back
//! by the receive ring, or on the transmit ring until it comes back by the completion ring. Octets
//! can be read and written only while the frame is held; the book is asked each time, so that
//! neither a mistake of ours nor a strange number from the kernel can make two parties use one
//! frame. One octet per frame: the book of 8,192 frames stays in the processor's first cache.

use super::mapping::Mapping;
use super::ring::{Consumer, Descriptor, Producer};
use crate::socket::HEADROOM_OCTETS;

/// Who has a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Owner {
    Free,
    Held,
    /// The kernel's, to receive into.
    Filling,
    /// The kernel's, to send.
    Sending,
}

/// The frame's packet goes on in the next one (`XDP_PKT_CONTD`).
const CONTINUES: u32 = 1;

/// A part of a frame that the program holds.
///
/// Must be handed back to the queue it came from, by transmitting or releasing it; if it is dropped
/// instead, the frame is out of use for as long as the queue lives. Nothing worse: the book knows
/// who owns what.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "hand it back by `transmit` or `release`"]
pub struct Packet {
    frame: u32,
    start: u32,
    octets: u32,
    continues: bool,
}

impl Packet {
    /// Returns how many octets it has.
    pub const fn octets(&self) -> usize {
        self.octets as usize
    }

    /// Returns whether the next packet received goes on with this one, because one frame was too
    /// small.
    pub const fn continues(&self) -> bool {
        self.continues
    }

    /// Makes it end earlier, or later if the frame has room. Returns whether that was possible.
    fn resize(&mut self, octets: usize, frame_octets: u32) -> bool {
        match u32::try_from(octets) {
            Ok(octets) if octets <= frame_octets.saturating_sub(self.start) => {
                self.octets = octets;
                true
            }
            _ => false,
        }
    }
}

/// Where frames are, all together always as many as there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Ready for use.
    pub free: u32,
    /// Held by the program.
    pub held: u32,
    /// With the kernel, to receive into.
    pub filling: u32,
    /// With the kernel, to send.
    pub sending: u32,
}

/// The rings of a queue.
pub(crate) struct Rings {
    pub(crate) fill: Producer<u64>,
    pub(crate) completion: Consumer<u64>,
    pub(crate) receive: Consumer<Descriptor>,
    pub(crate) transmit: Producer<Descriptor>,
}

/// Frames, rings and the book.
pub(crate) struct Queue {
    pub(crate) rings: Rings,
    owners: Box<[Owner]>,
    /// Free frames; the last one returned is the first one used, while it is still in the cache.
    free: Vec<u32>,
    frame_octets: u32,
    filling: u32,
    sending: u32,
    /// Numbers from the kernel that name no frame it had.
    pub(crate) strays: u64,
    /// The kernel's copy of these numbers was taken when the memory was registered; it outlives the
    /// rings.
    area: Mapping,
}

impl Queue {
    /// Takes memory for frames of `frame_octets`, a power of two, and the rings; `None` if that is
    /// no power of two.
    // Once per worker.
    pub(crate) fn new(area: Mapping, frame_octets: u32, rings: Rings) -> Option<Self> {
        if !frame_octets.is_power_of_two() {
            return None;
        }
        let count = u32::try_from(area.octets() / frame_octets as usize).ok()?;
        // Huge pages may hold more frames than asked for; that does no harm.
        let owners = vec![Owner::Free; count as usize].into_boxed_slice();
        let free = (0..count).rev().collect();
        Some(Self { rings, owners, free, frame_octets, filling: 0, sending: 0, strays: 0, area })
    }

    /// Moves a frame from one owner to the next, if it is with the first.
    fn hand_over(&mut self, frame: u32, from: Owner, to: Owner) -> bool {
        match self.owners.get_mut(frame as usize) {
            Some(owner) if *owner == from => {
                *owner = to;
                true
            }
            _ => false,
        }
    }

    /// Returns a free frame to write into.
    ///
    /// What is written begins where received packets do, not where the frame does: the frame that
    /// was released last is the next one handed out, and these are its octets that are still in the
    /// processor's cache.
    pub(crate) fn spare(&mut self) -> Option<Packet> {
        let frame = self.free.pop()?;
        if !self.hand_over(frame, Owner::Free, Owner::Held) {
            self.strays += 1;
            return None;
        }
        let octets = self.frame_octets.saturating_sub(HEADROOM_OCTETS);
        Some(Packet { frame, start: HEADROOM_OCTETS, octets, continues: false })
    }

    /// Puts free frames on the fill ring until the kernel has `level` to receive into, the ring is
    /// full, or `keep` are left. Returns how many.
    pub(crate) fn refill(&mut self, keep: u32, level: u32) -> u32 {
        let mut count = 0;
        while self.free.len() > keep as usize && self.filling + count < level {
            let Some(&frame) = self.free.last() else { break };
            if !self.rings.fill.push(u64::from(frame) * u64::from(self.frame_octets)) {
                break;
            }
            self.free.pop();
            if !self.hand_over(frame, Owner::Free, Owner::Filling) {
                self.strays += 1;
            }
            count += 1;
        }
        self.filling += count;
        self.rings.fill.publish();
        count
    }

    /// Returns how many frames the kernel has to receive into, or has received and we have not
    /// looked.
    pub(crate) const fn filling(&self) -> u32 {
        self.filling
    }

    /// Takes the next received packet.
    pub(crate) fn receive(&mut self) -> Option<Packet> {
        // Ends: each turn takes an entry out of a ring that the kernel fills no faster than its
        // frames allow.
        while let Some(descriptor) = self.rings.receive.pop() {
            let frame_octets = u64::from(self.frame_octets);
            let (frame, start) = (descriptor.address / frame_octets, descriptor.address % frame_octets);
            let frame = u32::try_from(frame).unwrap_or(u32::MAX);
            let is_inside = start + u64::from(descriptor.octets) <= frame_octets;
            if !self.hand_over(frame, Owner::Filling, Owner::Held) {
                self.strays += 1;
                continue;
            }
            self.filling -= 1;
            let packet = Packet {
                frame,
                start: start as u32,
                octets: descriptor.octets,
                continues: descriptor.options & CONTINUES != 0,
            };
            if !is_inside {
                self.strays += 1;
                self.release(packet);
                continue;
            }
            return Some(packet);
        }
        None
    }

    /// Puts a packet on the transmit ring; hands it back if there is no room. A packet that is not
    /// held is dropped.
    pub(crate) fn transmit(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.owners.get(packet.frame as usize) != Some(&Owner::Held) {
            self.strays += 1;
            return Ok(());
        }
        let address = u64::from(packet.frame) * u64::from(self.frame_octets) + u64::from(packet.start);
        let options = if packet.continues { CONTINUES } else { 0 };
        if !self.rings.transmit.push(Descriptor { address, octets: packet.octets, options }) {
            return Err(packet);
        }
        self.hand_over(packet.frame, Owner::Held, Owner::Sending);
        self.sending += 1;
        Ok(())
    }

    /// Takes back what was sent. Returns how many frames.
    pub(crate) fn reclaim(&mut self) -> u32 {
        let mut count = 0;
        while let Some(address) = self.rings.completion.pop() {
            let frame = u32::try_from(address / u64::from(self.frame_octets)).unwrap_or(u32::MAX);
            if self.hand_over(frame, Owner::Sending, Owner::Free) {
                self.sending -= 1;
                // Never longer than when it was made, which was with all frames in it.
                self.free.push(frame);
                count += 1;
            } else {
                self.strays += 1;
            }
        }
        self.rings.completion.release();
        count
    }

    /// Takes back a packet that is of no more use.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "whoever hands a packet back shall not have it any more"
    )]
    pub(crate) fn release(&mut self, packet: Packet) {
        if self.hand_over(packet.frame, Owner::Held, Owner::Free) {
            self.free.push(packet.frame);
        } else {
            self.strays += 1;
        }
    }

    /// Returns the octets of a packet; none if it is not held here.
    pub(crate) fn read(&self, packet: &Packet) -> &[u8] {
        match self.place(packet) {
            // SAFETY: `place` found the octets inside the area and the frame held by us: the kernel
            // neither writes nor reads it. The area was zeroed, so the octets are initialised, and
            // `&self` keeps `&mut` slices away.
            Some((start, octets)) => unsafe { std::slice::from_raw_parts(start, octets) },
            None => &[],
        }
    }

    /// Returns the octets of a packet to change them; none if it is not held here.
    pub(crate) fn write(&mut self, packet: &Packet) -> &mut [u8] {
        match self.place(packet) {
            // SAFETY: as in `read`; `&mut self` makes this the only slice.
            Some((start, octets)) => unsafe { std::slice::from_raw_parts_mut(start, octets) },
            None => &mut [],
        }
    }

    /// Returns one packet's octets to read and another's to change; none of both if they share a
    /// frame.
    pub(crate) fn read_and_write(&mut self, from: &Packet, to: &Packet) -> (&[u8], &mut [u8]) {
        if from.frame == to.frame {
            return (&[], &mut []);
        }
        match (self.place(from), self.place(to)) {
            // SAFETY: as in `read` and `write`; the frames differ and the slices do not leave them,
            // so they do not overlap.
            (Some((from, octets)), Some((to, room))) => unsafe {
                (std::slice::from_raw_parts(from, octets), std::slice::from_raw_parts_mut(to, room))
            },
            _ => (&[], &mut []),
        }
    }

    /// Returns where a packet's octets are and how many, if the program holds its frame.
    fn place(&self, packet: &Packet) -> Option<(*mut u8, usize)> {
        if self.owners.get(packet.frame as usize) != Some(&Owner::Held) {
            return None;
        }
        if packet.start.checked_add(packet.octets)? > self.frame_octets {
            return None;
        }
        let offset = packet.frame as usize * self.frame_octets as usize + packet.start as usize;
        let start = self.area.at::<u8>(offset, packet.octets as usize)?;
        Some((start.as_ptr(), packet.octets as usize))
    }

    /// Sets a packet's length; returns whether its frame has room for that.
    pub(crate) fn resize(&self, packet: &mut Packet, octets: usize) -> bool {
        packet.resize(octets, self.frame_octets)
    }

    /// Returns where the frames are.
    pub(crate) fn frames(&self) -> Frames {
        let free = u32::try_from(self.free.len()).unwrap_or(u32::MAX);
        let all = u32::try_from(self.owners.len()).unwrap_or(u32::MAX);
        let elsewhere = free + self.filling + self.sending;
        Frames { free, held: all.saturating_sub(elsewhere), filling: self.filling, sending: self.sending }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::tests::ring;
    use super::*;
    use proptest::prelude::*;

    const FRAME: u32 = 2048;
    const COUNT: u32 = 32;
    const RING: u32 = 8;

    /// The other end of the rings, with what a kernel remembers.
    struct Kernel {
        fill: Consumer<u64>,
        completion: Producer<u64>,
        receive: Producer<Descriptor>,
        transmit: Consumer<Descriptor>,
        filling: Vec<u64>,
        sending: Vec<u64>,
    }

    fn queue() -> (Queue, Kernel) {
        let (fill, fill_end) = ring(RING, u32::MAX - 2);
        let (completion_end, completion) = ring(RING, 7);
        let (receive_end, receive) = ring(RING, 0);
        let (transmit, transmit_end) = ring(RING, u32::MAX);
        let area = Mapping::anonymous((FRAME * COUNT) as usize, false, None).expect("memory");
        let queue = Queue::new(area, FRAME, Rings { fill, completion, receive, transmit }).expect("a queue");
        let kernel = Kernel {
            fill: fill_end,
            completion: completion_end,
            receive: receive_end,
            transmit: transmit_end,
            filling: Vec::new(),
            sending: Vec::new(),
        };
        (queue, kernel)
    }

    impl Kernel {
        fn look(&mut self) {
            self.filling.extend(std::iter::from_fn(|| self.fill.pop()));
            self.fill.release();
            self.sending.extend(
                std::iter::from_fn(|| self.transmit.pop()).map(|it| it.address & !u64::from(FRAME - 1)),
            );
            self.transmit.release();
        }

        fn deliver(&mut self, octets: u32) {
            self.look();
            if let Some(address) = self.filling.pop() {
                let descriptor = Descriptor { address: address + 256, octets, options: 0 };
                if !self.receive.push(descriptor) {
                    self.filling.push(address);
                }
                self.receive.publish();
            }
        }

        fn complete(&mut self) {
            self.look();
            if let Some(address) = self.sending.pop() {
                if !self.completion.push(address) {
                    self.sending.push(address);
                }
                self.completion.publish();
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Event {
        Deliver(u32),
        Complete,
        Refill(u32),
        Receive,
        Reclaim,
        Spare,
        Transmit(usize),
        Release(usize),
        /// The kernel makes up a number.
        Stray(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (0..1792u32).prop_map(Event::Deliver),
            4 => Just(Event::Complete),
            3 => (0..8u32).prop_map(Event::Refill),
            4 => Just(Event::Receive),
            3 => Just(Event::Reclaim),
            1 => Just(Event::Spare),
            4 => any::<usize>().prop_map(Event::Transmit),
            2 => any::<usize>().prop_map(Event::Release),
            1 => any::<u64>().prop_map(Event::Stray),
        ]
    }

    proptest! {
        #[test]
        fn no_frame_is_lost_and_none_has_two_owners(events in prop::collection::vec(event(), 0..400)) {
            let (mut queue, mut kernel) = queue();
            let mut held: Vec<Packet> = Vec::new();
            for event in events {
                match event {
                    Event::Deliver(octets) => kernel.deliver(octets),
                    Event::Complete => kernel.complete(),
                    Event::Refill(keep) => { queue.refill(keep, u32::MAX); }
                    Event::Receive => {
                        held.extend(queue.receive());
                        queue.rings.receive.release();
                    }
                    Event::Reclaim => { queue.reclaim(); }
                    Event::Spare => held.extend(queue.spare()),
                    Event::Transmit(which) if !held.is_empty() => {
                        let packet = held.swap_remove(which % held.len());
                        if let Err(packet) = queue.transmit(packet) {
                            held.push(packet);
                        }
                        queue.rings.transmit.publish();
                    }
                    Event::Release(which) if !held.is_empty() => {
                        let packet = held.swap_remove(which % held.len());
                        queue.release(packet);
                    }
                    Event::Stray(number) => {
                        // Beyond the memory, so certainly wrong.
                        let number = number | u64::from(FRAME * COUNT);
                        kernel.completion.push(number);
                        kernel.completion.publish();
                    }
                    Event::Transmit(_) | Event::Release(_) => {}
                }
                let frames = queue.frames();
                prop_assert_eq!(frames.free + frames.held + frames.filling + frames.sending, COUNT);
                prop_assert_eq!(frames.held as usize, held.len());
                let mut numbers: Vec<_> = held.iter().map(|packet| packet.frame).collect();
                numbers.extend(&queue.free);
                numbers.sort_unstable();
                let all = numbers.len();
                numbers.dedup();
                prop_assert_eq!(numbers.len(), all);
            }
            // Whatever happened, in the end all can be had again.
            for packet in held.drain(..) {
                queue.release(packet);
            }
            for _ in 0..COUNT * 4 {
                kernel.complete();
                queue.reclaim();
                kernel.deliver(60);
                while let Some(packet) = queue.receive() {
                    queue.release(packet);
                }
                queue.rings.receive.release();
            }
            prop_assert_eq!(queue.frames().free, COUNT);
        }
    }

    #[test]
    fn a_frame_can_be_read_only_while_it_is_held() {
        let (mut queue, mut kernel) = queue();
        queue.refill(0, u32::MAX);
        kernel.deliver(100);
        let packet = queue.receive().expect("a packet");
        assert_eq!(queue.read(&packet).len(), 100);
        let again = Packet { ..packet };
        queue.transmit(packet).expect("room");
        assert_eq!(queue.read(&again), b"");
        assert_eq!(queue.write(&again), b"");
        queue.release(again);
        assert_eq!(queue.strays, 1);
    }

    #[test]
    fn two_packets_are_used_at_a_time_if_they_differ() {
        let (mut queue, _) = queue();
        let (from, to) = (queue.spare().unwrap(), queue.spare().unwrap());
        queue.write(&from)[0] = 7;
        let (read, written) = queue.read_and_write(&from, &to);
        written.copy_from_slice(read);
        assert_eq!(queue.read(&to)[0], 7);
        let same = Packet { ..from };
        assert!(queue.read_and_write(&from, &same).0.is_empty());
    }

    #[test]
    fn what_the_kernel_says_beyond_a_frame_is_not_believed() {
        let (mut queue, mut kernel) = queue();
        queue.refill(0, u32::MAX);
        kernel.deliver(2048);
        assert_eq!(queue.receive(), None);
        assert_eq!((queue.strays, queue.frames().held), (1, 0));
    }

    #[test]
    fn packets_do_not_grow_beyond_their_frames() {
        let (mut queue, _) = queue();
        let mut packet = queue.spare().unwrap();
        assert!(queue.resize(&mut packet, 60));
        assert_eq!(queue.read(&packet).len(), 60);
        assert!(queue.resize(&mut packet, 1792) && !queue.resize(&mut packet, 1793));
        assert_eq!(packet.octets(), 1792);
    }
}
