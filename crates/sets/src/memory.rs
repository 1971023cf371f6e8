//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Lines of memory, and hints to the processor and to the kernel about those that look-ups will
//! read.

/// Words of one line of memory.
pub(crate) const LINE: usize = 8;
const LINE_OCTETS: usize = LINE * size_of::<u64>();
/// Octets of a huge page.
const HUGE_OCTETS: usize = 2 << 20;

/// Lines of memory, each of which the processor reads at once.
///
/// Many of them are asked for in huge pages: a look-up then saves a walk of the page tables for
/// each line. What is left over before the first page is never touched and so never resident.
pub(crate) struct Lines {
    words: Box<[u64]>,
    /// Words before the first line.
    skip: usize,
    count: usize,
}

impl Lines {
    /// Returns `count` lines of zeros.
    // Once per configuration.
    pub(crate) fn zeroed(count: usize) -> Self {
        let octets = count * LINE_OCTETS;
        let alignment = if octets >= HUGE_OCTETS { HUGE_OCTETS } else { LINE_OCTETS };
        let spare = if count == 0 { 0 } else { alignment / size_of::<u64>() - 1 };
        // The allocator takes many from the kernel, zeroed and untouched.
        let words = std::vec![0; count * LINE + spare].into_boxed_slice();
        let skip = words.as_ptr().align_offset(alignment).min(spare);
        if alignment == HUGE_OCTETS {
            ask_for_huge_pages(words.get(skip..skip + count * LINE).unwrap_or(&[]));
        }
        Self { words, skip, count }
    }

    /// Returns how many octets they take.
    pub(crate) const fn octets(&self) -> usize {
        self.count * LINE_OCTETS
    }

    /// Returns one word, counted from the first line on.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> Option<&u64> {
        self.words.get(self.skip + at)
    }

    #[inline]
    pub(crate) fn word_mut(&mut self, at: usize) -> Option<&mut u64> {
        self.words.get_mut(self.skip + at)
    }

    /// Returns one line.
    #[inline]
    pub(crate) fn line(&self, at: usize) -> Option<&[u64; LINE]> {
        self.words.get(self.skip + at * LINE..)?.first_chunk()
    }

    pub(crate) fn line_mut(&mut self, at: usize) -> Option<&mut [u64; LINE]> {
        self.words.get_mut(self.skip + at * LINE..)?.first_chunk_mut()
    }
}

/// Asks for the line of memory that holds (the first octet of) `word`, without waiting for it.
#[inline]
#[cfg_attr(all(target_arch = "x86_64", not(miri)), expect(unsafe_code, reason = "a hint takes a pointer"))]
pub fn ask_for<T: Copy>(word: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint reads nothing that the program could see, and the address is one of ours.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()) };
    }
    // Elsewhere a read has to do, of which nobody waits for the outcome.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    std::hint::black_box(*word);
}

/// Asks the kernel to back those pages with huge ones, once they are touched, that lie wholly in
/// `room`. It may refuse; then nothing changes. Look-ups all over a large table then save a walk of
/// the page tables each.
#[cold]
#[expect(unsafe_code, reason = "advice to the kernel takes a pointer")]
pub fn ask_for_huge_pages<T>(room: &[T]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let octets = room.as_ptr().cast::<u8>();
        let skipped = octets.align_offset(HUGE_OCTETS);
        let len = size_of_val(room).saturating_sub(skipped) & !(HUGE_OCTETS - 1);
        if len > 0 {
            let first = octets.wrapping_add(skipped).cast_mut().cast();
            // SAFETY: the range lies in `room`, begins on a page, and this advice changes no
            // content.
            let _ = unsafe { libc::madvise(first, len, libc::MADV_HUGEPAGE) };
        }
    }
    let _ = room;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_and_apart() {
        for count in [0, 1, 3, HUGE_OCTETS / LINE_OCTETS + 1] {
            let mut lines = Lines::zeroed(count);
            assert_eq!(lines.octets(), count * LINE_OCTETS);
            for at in 0..count {
                let line = lines.line_mut(at).expect("a line");
                assert_eq!((line.as_ptr() as usize % LINE_OCTETS, *line), (0, [0; LINE]));
                *line = [at as u64 + 1; LINE];
            }
            for at in 0..count {
                assert_eq!(lines.line(at), Some(&[at as u64 + 1; LINE]));
                assert_eq!(lines.word(at * LINE + 7), Some(&(at as u64 + 1)));
            }
        }
    }
}
