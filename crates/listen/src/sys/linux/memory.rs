//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Memory that the kernel reads and writes: allocated once, never moved.

use std::ptr::{self, NonNull};

/// A fixed array that the kernel reads and writes through pointers we gave it earlier.
///
/// Held by pointer, not by `Box`: moving a `Box` would claim that nobody else points into it.
pub(super) struct Fixed<T> {
    start: NonNull<T>,
    pub(super) len: usize,
}

impl<T: Copy> Fixed<T> {
    // Once per worker.
    pub(super) fn new(len: usize, value: T) -> Self {
        let start = Box::into_raw(vec![value; len].into_boxed_slice()).cast::<T>();
        // A box is never null; the fallback keeps this free of panics.
        Self { start: NonNull::new(start).unwrap_or(NonNull::dangling()), len }
    }

    /// Returns the address of element `index`.
    pub(super) fn at(&self, index: usize) -> *mut T {
        debug_assert!(index <= self.len);
        self.start.as_ptr().wrapping_add(index)
    }

    /// Returns element `index`; `None` beyond the end.
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        // SAFETY: `index` is in bounds, every element was initialised by `new`, and the kernel
        // writes only inside `Inbox::receive`, which borrows the owner exclusively.
        Some(unsafe { &*self.at(index) })
    }

    /// Returns element `index` to change it; `None` beyond the end.
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len {
            return None;
        }
        // SAFETY: as in `get`; `&mut self` makes this the only reference.
        Some(unsafe { &mut *self.at(index) })
    }

    /// Returns `len` elements from `index`; `None` when they are not all there.
    pub(super) fn slice(&self, index: usize, len: usize) -> Option<&[T]> {
        if index.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: the range is in bounds and initialised; see `get` for the kernel.
        Some(unsafe { std::slice::from_raw_parts(self.at(index), len) })
    }

    /// Returns `len` elements from `index` to change them; `None` when they are not all there.
    pub(super) fn slice_mut(&mut self, index: usize, len: usize) -> Option<&mut [T]> {
        if index.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: as in `slice`; `&mut self` makes this the only reference.
        Some(unsafe { std::slice::from_raw_parts_mut(self.at(index), len) })
    }
}

impl<T> Drop for Fixed<T> {
    fn drop(&mut self) {
        let whole = ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len);
        // SAFETY: `new` got this pointer and length from a box, and nothing else frees it.
        drop(unsafe { Box::from_raw(whole) });
    }
}
