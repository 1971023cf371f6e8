//! An allocator that counts what the current thread allocates, and otherwise is the system's.
//!
//! A test program of its own has it: `#[global_allocator] static ALLOCATOR: Counting = Counting;`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what the current thread allocates.
pub struct Counting;

thread_local! {
    /// Each test has its own thread and counts for itself.
    static OCTETS: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the octets that this thread has allocated more than it has freed.
pub fn octets() -> isize {
    OCTETS.get()
}

/// Returns how often this thread has allocated.
pub fn calls() -> u64 {
    CALLS.get()
}

fn count(octets: isize, calls: u64) {
    // A thread that is being torn down counts for nobody.
    let _ = OCTETS.try_with(|all| all.set(all.get() + octets));
    let _ = CALLS.try_with(|all| all.set(all.get() + calls));
}

// SAFETY: every call goes to the system's allocator with the arguments it came with; counting
// touches thread-locals of constant initial value, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize, 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize, 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize), 0);
        // SAFETY: `pointer` came from above with this layout, so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize, 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
