//! What reading one reply may cost.

use std::cell::Cell;

use wire::NameBuf;
use wire::message::Record;

/// Work for one reply, in records that are passed. A reply is walked once for each RRset that is
/// looked for in it, and its sender decides how many these are: those of an honest reply of a
/// thousand records take some 30,000.
const WORK_MAX: u32 = 1 << 17;
/// What it costs beside that to read a name, which may be compressed label by label (compare
/// CVE-2024-8508).
const NAME: u32 = 16;

/// What reading a reply may still cost.
#[derive(Debug)]
pub(crate) struct Work(Cell<u32>);

/// A reply, or a part of it, that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl From<wire::Malformed> for Unreadable {
    fn from(_: wire::Malformed) -> Self {
        Self
    }
}

impl Work {
    /// Returns what one reply may cost.
    pub(crate) const fn of_one_reply() -> Self {
        Self(Cell::new(WORK_MAX))
    }

    /// Pays for a record that is passed.
    pub(super) fn pass(&self) -> Result<(), Unreadable> {
        self.spend(1)
    }

    /// Pays for the owner of a record, and returns it.
    pub(super) fn owner(&self, record: &Record<'_>) -> Result<NameBuf, Unreadable> {
        self.spend(NAME)?;
        Ok(record.owner.expand()?)
    }

    fn spend(&self, work: u32) -> Result<(), Unreadable> {
        self.0.set(self.0.get().checked_sub(work).ok_or(Unreadable)?);
        Ok(())
    }
}
