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

// SAFETY: a mapping belongs to the process, not to a thread, and this type gives out addresses
// only.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps zeroed memory of our own, in huge pages if they are wanted and there are any; then it
    /// may be somewhat more. If one of the machine's memories is named, it comes from there as long
    /// as that has some.
    pub(crate) fn anonymous(octets: usize, wants_huge_pages: bool, node: Option<u32>) -> io::Result<Self> {
        // Pages are taken when they are first written to, or now; then they cannot be asked for
        // from a certain memory.
        let populate = if node.is_none() { libc::MAP_POPULATE } else { 0 };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | populate;
        if wants_huge_pages {
            let flags = flags | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
            if let Ok(mapping) = Self::map(octets.next_multiple_of(HUGE_PAGE_OCTETS), flags, -1, 0) {
                return Ok(mapping.near(node));
            }
        }
        Self::map(octets, flags, -1, 0).map(|mapping| mapping.near(node))
    }

    /// Has pages that are not there yet come from one of the machine's memories. Other memory is
    /// only slower, so that an error is none of ours.
    fn near(self, node: Option<u32>) -> Self {
        let Some(node) = node.filter(|node| *node < u64::BITS) else { return self };
        let nodes: u64 = 1 << node;
        // The kernel takes one bit less than it is told (set_mempolicy(2), "BUGS").
        let bits = libc::c_ulong::from(u64::BITS) + 1;
        let (start, flags): (*mut u8, libc::c_uint) = (self.start.as_ptr(), 0);
        // SAFETY: the range is this mapping, the mask lives through the call and has the bits that
        // are told; where pages come from changes nothing of what is in them.
        let _ = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                start,
                self.octets,
                libc::MPOL_PREFERRED,
                &raw const nodes,
                bits,
                flags,
            )
        };
        self
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

    /// Returns the address of the octet at `offset`; `None` unless `octets` of them are there,
    /// aligned for `T`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_node_is_zeroed_and_asked_for_there() {
        for node in [None, Some(0), Some(7), Some(64)] {
            let mapping = Mapping::anonymous(1 << 16, false, node).expect("memory");
            let start = mapping.at::<u64>(0, 1 << 16).expect("all of it");
            // SAFETY: the mapping is our own, and as long as that.
            let words = unsafe { std::slice::from_raw_parts(start.as_ptr(), (1 << 16) / 8) };
            assert!(words.iter().all(|word| *word == 0));
            // Kernels that know of several memories tell the policy of each mapping.
            if let (Ok(maps), Some(0)) = (std::fs::read_to_string("/proc/self/numa_maps"), node) {
                let ours = format!("{:08x} ", start.as_ptr() as usize);
                let line = maps.lines().find(|line| line.starts_with(&ours)).expect("a mapping of its own");
                assert!(line.split_whitespace().any(|word| word == "prefer:0"), "{line}");
            }
        }
    }
}
