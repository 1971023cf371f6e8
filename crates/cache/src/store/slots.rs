//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The index: buckets of sixteen slots, and the zeroed memory below everything.

use crate::sync::{AtomicU64, Ordering};

/// Slots in a bucket: two adjacent cache lines.
pub(crate) const BUCKET_SLOTS: usize = if cfg!(loom) { 4 } else { 16 };
/// Octets of a bucket.
pub(crate) const BUCKET_OCTETS: usize = BUCKET_SLOTS * 8;

/// Which ring an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingId {
    /// The ring for newcomers.
    Small,
    /// The ring for what was asked for again.
    Main,
}

/// What a slot holds: `[tag:12][freq:2][main:1][claimed:1][position:48]`; zero is empty.
///
/// Positions count words ever appended and begin above zero. At a million insertions per second
/// into 64 shards a ring's 48 bits last for decades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u64);

impl Slot {
    pub(crate) const EMPTY: Self = Self(0);
    const POSITION: u64 = (1 << 48) - 1;
    const CLAIMED: u64 = 1 << 48;
    const MAIN: u64 = 1 << 49;
    const FREQ_ONE: u64 = 1 << 50;
    const FREQ: u64 = 3 << 50;
    const TAG_SHIFT: u32 = 52;

    pub(crate) const fn new(tag: u64, ring: RingId, position: u64) -> Self {
        let ring = match ring {
            RingId::Small => 0,
            RingId::Main => Self::MAIN,
        };
        Self(tag << Self::TAG_SHIFT | ring | position & Self::POSITION)
    }

    /// The tag of a hash: bits that choose neither shard nor bucket.
    pub(crate) const fn tag_of(hash: u64) -> u64 {
        hash & 0xfff
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 & Self::POSITION == 0
    }

    pub(crate) const fn tag(self) -> u64 {
        self.0 >> Self::TAG_SHIFT
    }

    pub(crate) const fn freq(self) -> u64 {
        (self.0 & Self::FREQ) / Self::FREQ_ONE
    }

    pub(crate) const fn is_hottest(self) -> bool {
        self.0 & Self::FREQ == Self::FREQ
    }

    /// One use more. The caller saw to it that there is room ([`Slot::is_hottest`]).
    pub(crate) const fn hotter(self) -> Self {
        Self(self.0 + Self::FREQ_ONE)
    }

    pub(crate) const fn with_freq(self, freq: u64) -> Self {
        Self((self.0 & !Self::FREQ) | ((freq & 3) * Self::FREQ_ONE))
    }

    pub(crate) const fn is_claimed(self) -> bool {
        self.0 & Self::CLAIMED != 0
    }

    pub(crate) const fn claimed(self, yes: bool) -> Self {
        Self(if yes { self.0 | Self::CLAIMED } else { self.0 & !Self::CLAIMED })
    }

    pub(crate) const fn ring(self) -> RingId {
        if self.0 & Self::MAIN == 0 { RingId::Small } else { RingId::Main }
    }

    pub(crate) const fn position(self) -> u64 {
        self.0 & Self::POSITION
    }

    /// Returns whether both name the same copy of the same entry, whatever its use.
    pub(crate) const fn is_same_place(self, ring: RingId, position: u64) -> bool {
        Self::new(0, ring, position).0 == self.0 & (Self::MAIN | Self::POSITION)
    }
}

/// All buckets of the cache; each shard's are adjacent.
pub(crate) struct Index {
    words: Box<[AtomicU64]>,
    /// Words before the first one at a multiple of [`BUCKET_OCTETS`].
    skip: usize,
    buckets: usize,
}

impl Index {
    /// Octets an index of so many buckets takes.
    pub(crate) const fn octets(buckets: usize) -> usize {
        // One bucket's worth of slack pays for the alignment. An allocation asked to be aligned
        // would be zeroed by hand, and so be resident from the start.
        (buckets + 1) * BUCKET_OCTETS
    }

    pub(crate) fn new(buckets: usize) -> Self {
        // Hashes touch it all over from the start.
        let words = zeroed((buckets + 1) * BUCKET_SLOTS, Pages::Huge);
        let skip = words.as_ptr().align_offset(BUCKET_OCTETS).min(BUCKET_SLOTS);
        Self { words, skip, buckets }
    }

    /// Returns the number of the bucket for `hash`: its top bits, so that a shard's buckets are
    /// adjacent.
    pub(crate) fn number(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.buckets as u128) >> 64) as usize
    }

    /// Returns a bucket; an empty slice if there is none of that number.
    pub(crate) fn bucket(&self, number: usize) -> &[AtomicU64] {
        let at = self.skip + number * BUCKET_SLOTS;
        self.words.get(at..at + BUCKET_SLOTS).unwrap_or(&[])
    }

    /// Returns the bucket for `hash`.
    pub(crate) fn bucket_of(&self, hash: u64) -> &[AtomicU64] {
        self.bucket(self.number(hash))
    }
}

/// Returns the slots of a bucket that may be for `tag`, as a set of bits. Costs no branch per slot.
pub(crate) fn matching(bucket: &[AtomicU64], tag: u64) -> u32 {
    let mut found = 0;
    for (i, slot) in bucket.iter().enumerate() {
        found |= u32::from(slot.load(Ordering::Relaxed) >> Slot::TAG_SHIFT == tag) << i;
    }
    found
}

/// Asks for the line that begins with the first of `words`, without waiting for it.
#[allow(unsafe_code)]
pub(crate) fn ask_for(words: &[AtomicU64]) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if let Some(first) = words.first() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint reads nothing that the program could see, and the address is one of ours.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(first).cast()) };
    }
    let _ = words;
}

/// How memory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Page by page as it is touched.
    Small,
    /// In huge pages where the kernel offers them: a look-up in a large cache then saves a walk of
    /// the page tables per line. Touching one octet makes megabytes resident, so this is for what
    /// will be touched all over anyway.
    Huge,
}

/// Returns `count` words of zero. Untouched pages cost no memory: the allocator takes them zeroed
/// from the kernel.
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) fn zeroed(count: usize, pages: Pages) -> Box<[AtomicU64]> {
    let words = Box::<[AtomicU64]>::new_zeroed_slice(count);
    // SAFETY: an `AtomicU64` has the representation of a `u64` (documented by std), for which all
    // bits zero is a value.
    let words = unsafe { words.assume_init() };
    #[cfg(all(target_os = "linux", not(miri)))]
    if pages == Pages::Huge {
        let page = 4096;
        let skip = words.as_ptr().cast::<u8>().align_offset(page);
        let octets = (count * 8).saturating_sub(skip) / page * page;
        let first = words.as_ptr().cast::<u8>().wrapping_add(skip).cast_mut().cast();
        // The kernel may refuse; then nothing changes.
        // SAFETY: the range is whole pages within `words`, and this advice changes no content.
        let _ = unsafe { libc::madvise(first, octets, libc::MADV_HUGEPAGE) };
    }
    let _ = pages;
    words
}

/// Returns `count` words of zero, each one known to loom.
#[cfg(loom)]
pub(crate) fn zeroed(count: usize, _: Pages) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_its_parts_apart() {
        let slot = Slot::new(0xabc, RingId::Main, 0x1234_5678_9abc);
        assert_eq!(
            (slot.tag(), slot.freq(), slot.ring(), slot.is_claimed()),
            (0xabc, 0, RingId::Main, false)
        );
        assert_eq!(slot.position(), 0x1234_5678_9abc);
        let used = slot.hotter().hotter().hotter().claimed(true);
        assert_eq!((used.tag(), used.freq(), used.ring(), used.is_claimed()), (0xabc, 3, RingId::Main, true));
        assert!(used.is_hottest() && !slot.is_hottest());
        assert!(used.is_same_place(RingId::Main, 0x1234_5678_9abc));
        assert!(!used.is_same_place(RingId::Small, 0x1234_5678_9abc));
        assert_eq!(used.with_freq(0).claimed(false), slot);
        assert!(Slot::EMPTY.is_empty() && !slot.is_empty());
    }

    #[cfg(not(loom))]
    #[test]
    fn buckets_are_aligned_and_apart() {
        let index = Index::new(3);
        for number in 0..3 {
            let bucket = index.bucket(number);
            assert_eq!(bucket.len(), BUCKET_SLOTS);
            assert_eq!(bucket.as_ptr() as usize % BUCKET_OCTETS, 0);
            assert!(bucket.iter().all(|slot| slot.swap(1, Ordering::Relaxed) == 0));
        }
        assert_eq!((index.number(0), index.number(u64::MAX / 2), index.number(u64::MAX)), (0, 1, 2));
    }

    #[cfg(not(loom))]
    #[test]
    fn matching_finds_every_slot_with_the_tag() {
        let index = Index::new(1);
        let bucket = index.bucket(0);
        bucket[3].store(Slot::new(5, RingId::Small, 8).0, Ordering::Relaxed);
        bucket[15].store(Slot::new(5, RingId::Main, 9).hotter().0, Ordering::Relaxed);
        assert_eq!(matching(bucket, 5), 1 << 3 | 1 << 15);
        assert_eq!(matching(bucket, 6), 0);
    }
}
