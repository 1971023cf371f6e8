//! Buffers that grow with need, come from a pool and go back to it: a quiet connection holds none.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Octets of the smallest buffer.
const OCTETS_MIN: usize = 512;

/// Octets of the largest buffer that is kept for the next user.
const SPARE_OCTETS_MAX: usize = 4096;

/// Buffers kept for the next users.
const SPARES_MAX: usize = 64;

/// One worker's buffers.
#[derive(Debug)]
pub(crate) struct Pool {
    spares: RefCell<Vec<Vec<u8>>>,
    /// Octets in use.
    held: Cell<usize>,
    held_max: usize,
}

impl Pool {
    /// Returns a pool that hands out `held_max` octets at a time.
    pub(crate) fn new(held_max: usize) -> Rc<Self> {
        Rc::new(Self {
            spares: RefCell::new(Vec::with_capacity(SPARES_MAX)),
            held: Cell::new(0),
            held_max: held_max.max(OCTETS_MIN),
        })
    }

    /// Makes `bytes` hold at least `capacity` octets; false when that would be more than all may
    /// have.
    fn grow(&self, bytes: &mut Vec<u8>, capacity: usize) -> bool {
        let capacity = capacity.max(OCTETS_MIN).next_power_of_two();
        if bytes.capacity() == 0
            && let Some(spare) = self.take_spare(capacity)
        {
            *bytes = spare;
            return true;
        }
        let held = self.held.get() - bytes.capacity();
        if held + capacity > self.held_max {
            return false;
        }
        bytes.reserve_exact(capacity - bytes.len());
        self.held.set(held + bytes.capacity());
        true
    }

    fn take_spare(&self, capacity: usize) -> Option<Vec<u8>> {
        let mut spares = self.spares.borrow_mut();
        let enough = spares.last().is_some_and(|spare| spare.capacity() >= capacity);
        let fits = |spare: &Vec<u8>| self.held.get() + spare.capacity() <= self.held_max;
        let spare = if enough && spares.last().is_some_and(fits) { spares.pop() } else { None }?;
        self.held.set(self.held.get() + spare.capacity());
        Some(spare)
    }

    fn give_back(&self, mut bytes: Vec<u8>) {
        self.held.set(self.held.get() - bytes.capacity());
        let mut spares = self.spares.borrow_mut();
        if bytes.capacity() > 0 && bytes.capacity() <= SPARE_OCTETS_MAX && spares.len() < SPARES_MAX {
            bytes.clear();
            spares.push(bytes);
        }
    }
}

/// Octets that are appended at one end and consumed at the other.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    consumed: usize,
    pool: Rc<Pool>,
}

/// No more memory for buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Buffer {
    pub(crate) const fn new(pool: Rc<Pool>) -> Self {
        Self { bytes: Vec::new(), consumed: 0, pool }
    }

    /// Returns what was appended and not consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.consumed..).unwrap_or(&[])
    }

    /// Returns what was appended and not consumed, to be worked on in place.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.consumed..).unwrap_or(&mut [])
    }

    /// Returns whether there is nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.len() == self.consumed
    }

    /// Returns how many octets there are.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.consumed
    }

    /// Appends `bytes`, all of them or none.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Exhausted> {
        if self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..self.consumed);
            self.consumed = 0;
            let needed = self.bytes.len() + bytes.len();
            if needed > self.bytes.capacity() && !self.pool.grow(&mut self.bytes, needed) {
                return Err(Exhausted);
            }
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Forgets the first `octets`; gives the memory back when nothing is left.
    pub(crate) fn consume(&mut self, octets: usize) {
        self.consumed = (self.consumed + octets).min(self.bytes.len());
        if self.is_empty() {
            self.clear();
        }
    }

    /// Forgets everything and gives the memory back.
    pub(crate) fn clear(&mut self) {
        self.consumed = 0;
        self.pool.give_back(std::mem::take(&mut self.bytes));
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_comes_back() {
        let pool = Pool::new(2048);
        let (mut first, mut second) = (Buffer::new(Rc::clone(&pool)), Buffer::new(Rc::clone(&pool)));
        assert_eq!(first.append(&[1; 1000]), Ok(()));
        assert_eq!(first.append(&[2; 24]), Ok(()));
        assert_eq!(pool.held.get(), 1024);
        assert_eq!(second.append(&[3; 1025]), Err(Exhausted), "2048 more would be needed");
        assert!(second.is_empty());
        assert_eq!(second.append(&[3; 1024]), Ok(()));
        assert_eq!(first.append(&[4]), Err(Exhausted));
        first.consume(1000);
        assert_eq!(first.bytes(), [2; 24]);
        assert_eq!(first.append(&[4]), Ok(()), "what was consumed makes room");
        assert_eq!((first.len(), first.bytes().last()), (25, Some(&4)));
        first.consume(25);
        assert_eq!(pool.held.get(), 1024, "an empty buffer holds nothing");
        drop(second);
        assert_eq!(pool.held.get(), 0);
        assert_eq!(pool.spares.borrow().len(), 2);
        assert_eq!(first.append(&[5]), Ok(()));
        assert_eq!(pool.spares.borrow().len(), 1, "spares are used again");
    }
}
