//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The two ends of a ring shared with the kernel (Linux, `Documentation/networking/af_xdp.rst`).
//!
//! A ring has a producer's and a consumer's counter, which run on for ever and wrap around, and a
//! power of two of entries. Each side writes only its own counter. Copies of both are kept here, so
//! that the shared lines are touched once per batch.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::Mapping;

/// The kernel sleeps and wants a system call before it looks at this ring (`XDP_RING_NEED_WAKEUP`).
const NEEDS_WAKEUP: u32 = 1;

/// Where in a mapping the parts of a ring are, in octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) producer: usize,
    pub(crate) consumer: usize,
    pub(crate) flags: usize,
    pub(crate) entries: usize,
}

/// What both ends have in common.
#[derive(Debug)]
struct Shared<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
    /// Keeps the above alive.
    _mapping: Mapping,
    _entries: PhantomData<T>,
}

// SAFETY: the pointers lead into the mapping that moves along; entries are plain numbers.
unsafe impl<T: Entry> Send for Shared<T> {}

/// What a ring may hold: plain numbers, valid whatever their bits.
pub(crate) trait Entry: Copy {}
impl Entry for u64 {}

/// A packet on the receive or the transmit ring (`struct xdp_desc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Descriptor {
    /// Where in the memory of all frames it begins.
    pub(crate) address: u64,
    pub(crate) octets: u32,
    pub(crate) options: u32,
}

impl Entry for Descriptor {}
const _: () = assert!(size_of::<Descriptor>() == 16);

impl<T: Entry> Shared<T> {
    // Once per worker.
    fn new(mapping: Mapping, layout: Layout, size: u32) -> Option<Self> {
        if !size.is_power_of_two() {
            return None;
        }
        let octets = size as usize * size_of::<T>();
        Some(Self {
            producer: mapping.at(layout.producer, 4)?,
            consumer: mapping.at(layout.consumer, 4)?,
            flags: mapping.at(layout.flags, 4)?,
            entries: mapping.at(layout.entries, octets)?,
            mask: size - 1,
            _mapping: mapping,
            _entries: PhantomData,
        })
    }

    fn load(&self, counter: NonNull<AtomicU32>, order: Ordering) -> u32 {
        // SAFETY: `counter` is one of our three, which `Mapping::at` found inside the mapping and
        // aligned; the kernel changes them as atomics do.
        unsafe { counter.as_ref() }.load(order)
    }

    fn store(&self, counter: NonNull<AtomicU32>, value: u32) {
        // SAFETY: as in `load`.
        unsafe { counter.as_ref() }.store(value, Ordering::Release);
    }

    /// Returns where the entry for a counter's value is: always in bounds, because it is masked.
    fn entry(&self, counter: u32) -> *mut T {
        self.entries.as_ptr().wrapping_add((counter & self.mask) as usize)
    }

    const fn size(&self) -> u32 {
        self.mask + 1
    }
}

/// The end that puts entries in: of the fill ring and the transmit ring.
#[derive(Debug)]
pub(crate) struct Producer<T> {
    shared: Shared<T>,
    /// The counter as it will be when published.
    next: u32,
    /// What the kernel has seen of it.
    published: u32,
    /// The kernel's counter when last looked at.
    consumed: u32,
}

impl<T: Entry> Producer<T> {
    // Once per worker.
    pub(crate) fn new(mapping: Mapping, layout: Layout, size: u32) -> Option<Self> {
        let shared = Shared::new(mapping, layout, size)?;
        let next = shared.load(shared.producer, Ordering::Relaxed);
        let consumed = shared.load(shared.consumer, Ordering::Acquire);
        Some(Self { shared, next, published: next, consumed })
    }

    /// Puts an entry in, for the kernel to see at the next [`publish`](Self::publish). Returns
    /// whether there was room.
    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.next.wrapping_sub(self.consumed) >= self.shared.size() {
            self.look();
            if self.next.wrapping_sub(self.consumed) >= self.shared.size() {
                return false;
            }
        }
        // SAFETY: the place is in bounds (masked) and aligned, and the kernel does not read it: its
        // counter has passed the entry that stood there, and ours is not published yet.
        unsafe { self.shared.entry(self.next).write(value) };
        self.next = self.next.wrapping_add(1);
        true
    }

    fn look(&mut self) {
        self.consumed = self.shared.load(self.shared.consumer, Ordering::Acquire);
    }

    /// Shows the kernel what was put in.
    pub(crate) fn publish(&mut self) {
        if self.published != self.next {
            self.shared.store(self.shared.producer, self.next);
            self.published = self.next;
        }
    }

    /// Returns how many entries the kernel has not taken yet.
    pub(crate) fn outstanding(&mut self) -> u32 {
        self.look();
        self.next.wrapping_sub(self.consumed)
    }

    /// Returns whether the kernel wants a system call before it goes on.
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.shared.load(self.shared.flags, Ordering::Relaxed) & NEEDS_WAKEUP != 0
    }
}

/// The end that takes entries out: of the receive ring and the completion ring.
#[derive(Debug)]
pub(crate) struct Consumer<T> {
    shared: Shared<T>,
    /// The counter as it will be when released.
    next: u32,
    released: u32,
    /// The kernel's counter when last looked at.
    produced: u32,
}

impl<T: Entry> Consumer<T> {
    // Once per worker.
    pub(crate) fn new(mapping: Mapping, layout: Layout, size: u32) -> Option<Self> {
        let shared = Shared::new(mapping, layout, size)?;
        let next = shared.load(shared.consumer, Ordering::Relaxed);
        let produced = shared.load(shared.producer, Ordering::Acquire);
        Some(Self { shared, next, released: next, produced })
    }

    /// Takes an entry out. Its place is the kernel's again at the next [`release`](Self::release).
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.next == self.produced {
            self.produced = self.shared.load(self.shared.producer, Ordering::Acquire);
            if self.next == self.produced {
                return None;
            }
        }
        // SAFETY: the place is in bounds (masked) and aligned; the kernel's counter, read with
        // acquire, has passed it, so it was written, and ours has not been released past it, so it
        // is not written again.
        let value = unsafe { self.shared.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(value)
    }

    /// Returns how many entries have not been taken out yet.
    pub(crate) fn waiting(&mut self) -> u32 {
        self.produced = self.shared.load(self.shared.producer, Ordering::Acquire);
        self.produced.wrapping_sub(self.next)
    }

    /// Gives the places of what was taken out back to the kernel.
    pub(crate) fn release(&mut self) {
        if self.released != self.next {
            self.shared.store(self.shared.consumer, self.next);
            self.released = self.next;
        }
    }

    /// Returns whether there is something, without taking it out.
    pub(crate) fn has_more(&mut self) -> bool {
        if self.next == self.produced {
            self.produced = self.shared.load(self.shared.producer, Ordering::Acquire);
        }
        self.next != self.produced
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Where the parts are in the rings of tests: as in the kernel, each counter on a line of its
    /// own.
    pub(crate) const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192 };

    /// Returns both ends of a ring in memory that two mappings of one file share, counters starting
    /// at `first`.
    pub(crate) fn ring<T: Entry>(size: u32, first: u32) -> (Producer<T>, Consumer<T>) {
        let (ours, theirs) = twice(LAYOUT.entries + size as usize * size_of::<T>());
        let shared = Shared::<T>::new(ours, LAYOUT, size).expect("a ring");
        shared.store(shared.producer, first);
        shared.store(shared.consumer, first);
        let Shared { _mapping: ours, .. } = shared;
        let producer = Producer::new(ours, LAYOUT, size).expect("a ring");
        (producer, Consumer::new(theirs, LAYOUT, size).expect("a ring"))
    }

    fn twice(octets: usize) -> (Mapping, Mapping) {
        use std::os::fd::{AsFd, FromRawFd, OwnedFd};
        // SAFETY: the name is a string, and the descriptor that comes back is nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"ring".as_ptr(), libc::MFD_CLOEXEC)) };
        std::fs::File::from(fd.try_clone().expect("a descriptor")).set_len(octets as u64).expect("memory");
        let map = || Mapping::shared(fd.as_fd(), octets, 0).expect("memory");
        (map(), map())
    }

    #[test]
    fn entries_come_out_in_order_once_published() {
        let (mut producer, mut consumer) = ring::<u64>(4, 0);
        assert_eq!(consumer.pop(), None);
        assert!((10..14).all(|value| producer.push(value)));
        assert!(!producer.push(14));
        assert_eq!(consumer.pop(), None);
        producer.publish();
        assert_eq!((consumer.pop(), consumer.pop()), (Some(10), Some(11)));
        assert!(!producer.push(14));
        consumer.release();
        assert_eq!(producer.outstanding(), 2);
        assert!(producer.push(14) && producer.push(15) && !producer.push(16));
    }

    #[test]
    fn counters_wrap_around() {
        let (mut producer, mut consumer) = ring::<u64>(8, u32::MAX - 3);
        for round in 0..10u64 {
            for value in 0..5 {
                assert!(producer.push(round * 10 + value));
            }
            producer.publish();
            for value in 0..5 {
                assert_eq!(consumer.pop(), Some(round * 10 + value));
            }
            assert!(!consumer.has_more());
            consumer.release();
        }
    }

    #[test]
    fn a_ring_has_a_power_of_two_of_entries() {
        let mapping = Mapping::anonymous(4096, false, None).unwrap();
        assert!(Producer::<u64>::new(mapping, LAYOUT, 3).is_none());
        let mapping = Mapping::anonymous(4096, false, None).unwrap();
        assert!(Producer::<Descriptor>::new(mapping, LAYOUT, 256).is_none(), "more than there is memory for");
    }
}
