//! What reading one reply may cost.

use std::cell::{Cell, RefCell};

use wire::message::Record;
use wire::{Name, NameBuf};

/// Work for one reply, in records that are passed. A reply is walked once for each RRset that is
/// looked for in it, and its sender decides how many these are: those of an honest reply of a
/// thousand records take some 30,000.
const WORK_MAX: u32 = 1 << 17;
/// What it costs beside that to read a name, which may be compressed label by label (compare
/// CVE-2024-8508).
const NAME: u32 = 16;

/// What reading a reply may still cost.
#[derive(Debug)]
pub(crate) struct Work {
    left: Cell<u32>,
    /// Where data is written before it is as long as it is.
    pub(super) room: RefCell<Vec<u8>>,
}

/// A reply, or a part of it, that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl From<wire::Malformed> for Unreadable {
    fn from(_: wire::Malformed) -> Self {
        Self
    }
}

impl Work {
    /// Returns what one reply may cost, and room for its data.
    pub(crate) const fn of_one_reply(room: Vec<u8>) -> Self {
        Self { left: Cell::new(WORK_MAX), room: RefCell::new(room) }
    }

    /// Returns the room.
    pub(crate) fn into_room(self) -> Vec<u8> {
        self.room.into_inner()
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

    /// Pays for the owner of a record, and returns whether it is this.
    pub(super) fn is_owner(&self, record: &Record<'_>, name: Name<'_>) -> Result<bool, Unreadable> {
        self.spend(NAME)?;
        Ok(record.owner.is(name)?)
    }

    fn spend(&self, work: u32) -> Result<(), Unreadable> {
        self.left.set(self.left.get().checked_sub(work).ok_or(Unreadable)?);
        Ok(())
    }
}
