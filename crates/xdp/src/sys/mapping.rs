//! Memory from `mmap`.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// Octets of a huge page that every processor has which we run on (`MAP_HUGE_2MB`).
const HUGE_PAGE_OCTETS: usize = 2 << 20;

/// A mapping, unmapped when dropped. What is in it is for its users to agree on with the kernel.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    octets: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and this type gives out addresses only.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps zeroed memory of our own, in huge pages if they are wanted and there are any; then it may be somewhat more.
    pub(crate) fn anonymous(octets: usize, wants_huge_pages: bool) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        if wants_huge_pages {
            let flags = flags | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
            if let Ok(mapping) = Self::map(octets.next_multiple_of(HUGE_PAGE_OCTETS), flags, -1, 0) {
                return Ok(mapping);
            }
        }
        Self::map(octets, flags, -1, 0)
    }

    /// Maps what a descriptor has at `offset`, shared.
    pub(crate) fn shared(from: BorrowedFd<'_>, octets: usize, offset: libc::off_t) -> io::Result<Self> {
        Self::map(octets, libc::MAP_SHARED | libc::MAP_POPULATE, from.as_raw_fd(), offset)
    }

    fn map(octets: usize, flags: i32, fd: i32, offset: libc::off_t) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED the kernel chooses an address where nothing of ours is.
        let start = unsafe { libc::mmap(ptr::null_mut(), octets, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, octets })
    }

    /// Returns the address of the octet at `offset`; `None` unless `octets` of them are there, aligned for `T`.
    pub(crate) fn at<T>(&self, offset: usize, octets: usize) -> Option<NonNull<T>> {
        if offset.checked_add(octets)? > self.octets {
            return None;
        }
        let at = self.start.as_ptr().wrapping_add(offset).cast::<T>();
        if !at.is_aligned() {
            return None;
        }
        NonNull::new(at)
    }

    /// Returns how many octets there are.
    pub(crate) const fn octets(&self) -> usize {
        self.octets
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `map` got exactly this from `mmap`, and whoever uses it keeps it alive.
        // An error would mean that it is not mapped, which is what is wanted.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast::<c_void>(), self.octets) };
    }
}
