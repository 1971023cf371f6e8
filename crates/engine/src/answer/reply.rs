//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The buffer a reply is written to.

use super::put::put;
use super::report::BranchReport;

/// A caller's buffer and how much of it the reply uses.
#[derive(Debug)]
pub struct Reply<'b> {
    buf: &'b mut [u8],
    len: usize,
    report: Option<BranchReport>,
}

impl<'b> Reply<'b> {
    /// Begins an empty reply in `buf`, which should hold at least 512 octets.
    pub fn new(buf: &'b mut [u8]) -> Self {
        Self { buf, len: 0, report: None }
    }

    /// Returns the finished reply.
    pub fn bytes(&self) -> &[u8] {
        self.buf.get(..self.len).unwrap_or(&[])
    }

    /// Returns the octets of the finished reply.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns what is known about the answer if it is that of a branch, which no client gets.
    pub const fn report(&self) -> Option<BranchReport> {
        self.report
    }

    /// Says that this is how a branch ended.
    pub(crate) const fn set_report(&mut self, report: BranchReport) {
        self.report = Some(report);
    }

    /// Returns the whole buffer, to write into.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        self.buf
    }

    /// Takes a reply that was written elsewhere; returns whether it fits.
    #[inline]
    pub(crate) fn take(&mut self, octets: &[u8]) -> bool {
        let is_taken = put(self.buf, 0, octets).is_some();
        self.len = if is_taken { octets.len() } else { 0 };
        is_taken
    }

    /// Says how many octets of the buffer are the reply.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.buf.len());
    }
}
