//! Steps between versions that the server has signed, on disk, so that secondaries get differences
//! after a restart, too.
//!
//! The versions themselves are kept by whoever signs. One file for each zone, `NAME.trail`, with
//! entries like those of a journal's log: it grows, and is replaced when it is too large. What does
//! not lead to the version that is there is no history: losing power between the two being written
//! loses differences, never a version.

use std::io;
use std::sync::Arc;

use wire::{Name, NameBuf};
use zone::Difference;

use crate::disk::Disk;
use crate::journal::{file_name, read_steps, replace, step_entry};

/// The file of one zone.
pub(crate) struct SignedJournal {
    disk: Arc<dyn Disk>,
    apex: NameBuf,
    name: String,
    /// Octets of the file; none: nothing can be added to it.
    octets: Option<u64>,
    is_there: bool,
}

impl SignedJournal {
    pub(crate) fn new(disk: Arc<dyn Disk>, apex: Name<'_>) -> Self {
        Self {
            disk,
            apex: apex.to_buf(),
            name: format!("{}trail", file_name(apex)),
            octets: None,
            is_there: false,
        }
    }

    /// Returns the steps that lead to the version with this serial, oldest first, without a gap.
    pub(crate) fn open(&mut self, serial: u32) -> io::Result<Vec<Arc<Difference>>> {
        let Some(octets) = self.disk.read(&self.name)? else { return Ok(Vec::new()) };
        self.is_there = true;
        let (steps, whole) = read_steps(&octets, &self.apex);
        let mut history: Vec<Arc<Difference>> = Vec::new();
        for step in steps {
            if history.last().is_some_and(|last| last.new_serial() != step.old_serial()) {
                history.clear();
            }
            history.push(Arc::new(step));
        }
        // Versions that were never brought into use may be at its end.
        let end = history.iter().rposition(|step| step.new_serial() == serial);
        let is_last = end.is_some_and(|end| end + 1 == history.len());
        history.truncate(end.map_or(0, |end| end + 1));
        // What follows half an entry, or a step that leads elsewhere, would never be read.
        self.octets = (is_last && whole == octets.len()).then_some(whole as u64);
        Ok(history)
    }

    /// Adds the last step of a history; all of it is written anew when the file has become too
    /// large, or nothing can be added.
    pub(crate) fn follow(&mut self, history: &[Arc<Difference>], octets_max: u64) -> io::Result<()> {
        if let (Some(octets), Some(last)) = (self.octets, history.last())
            && octets <= octets_max.saturating_mul(2)
            && history.len() > 1
        {
            let entry = step_entry(last);
            self.octets = None;
            self.disk.append(&self.name, &entry)?;
            self.disk.sync(&self.name)?;
            self.octets = Some(octets + entry.len() as u64);
            return Ok(());
        }
        let entries: Vec<u8> = history.iter().flat_map(|step| step_entry(step)).collect();
        self.octets = None;
        self.is_there = true;
        replace(&*self.disk, &self.name, &entries)?;
        self.octets = Some(entries.len() as u64);
        Ok(())
    }

    /// Forgets everything.
    pub(crate) fn remove(&mut self) -> io::Result<()> {
        if !self.is_there {
            return Ok(());
        }
        self.unlink()?;
        self.disk.sync_names()
    }

    /// Forgets everything; durable only after the folder's `fsync`.
    pub(crate) fn unlink(&mut self) -> io::Result<()> {
        self.octets = None;
        if std::mem::take(&mut self.is_there) {
            self.disk.remove(&self.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Folder;
    use wire::Ttl;
    use zone::rows::Rows;

    fn soa(serial: u32) -> (Ttl, Box<[u8]>) {
        let numbers = [serial, 2, 3, 4, 5].map(u32::to_be_bytes).concat();
        (Ttl::new(60), [&b"\x02ns\0\0"[..], &numbers].concat().into())
    }

    fn step(from: u32, to: u32) -> Arc<Difference> {
        let apex = NameBuf::from_text("example.org").expect("a name");
        let (removed, added) = (Rows::default(), Rows::default());
        Arc::new(Difference { apex, old_soa: soa(from), new_soa: soa(to), removed, added })
    }

    fn serials(steps: &[Arc<Difference>]) -> Vec<u32> {
        steps.iter().map(|step| step.new_serial()).collect()
    }

    #[test]
    fn steps_are_there_again_and_lead_to_the_version_that_is_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let disk: Arc<dyn Disk> = Arc::new(Folder::new(directory.path()));
        let apex = NameBuf::from_text("example.org").expect("a name");
        let open = |serial| {
            let mut signed_journal = SignedJournal::new(Arc::clone(&disk), apex.as_name());
            let steps = signed_journal.open(serial).expect("a readable file");
            (signed_journal, steps)
        };
        assert_eq!(serials(&open(1).1), []);
        let mut history = Vec::new();
        let mut signed_journal = open(1).0;
        for serial in 2..6 {
            history.push(step(serial - 1, serial));
            signed_journal.follow(&history, 1 << 20).expect("a writable directory");
        }
        assert_eq!(serials(&open(5).1), [2, 3, 4, 5]);
        // A step whose version was never written does not count, and what follows takes its place.
        let (mut signed_journal, steps) = open(4);
        assert_eq!(serials(&steps), [2, 3, 4]);
        let next = [steps, vec![step(4, 9)]].concat();
        signed_journal.follow(&next, 1 << 20).expect("a writable directory");
        assert_eq!(serials(&open(9).1), [2, 3, 4, 9]);
        // Another version than all of them has no history.
        assert_eq!(serials(&open(77).1), []);
        // Half an entry at the end: what is before it counts.
        let name = directory.path().join("example.org.trail");
        let octets = std::fs::read(&name).expect("a file");
        std::fs::write(&name, &octets[..octets.len() - 3]).expect("a writable directory");
        let (mut signed_journal, steps) = open(4);
        assert_eq!(serials(&steps), [2, 3, 4]);
        let next = [steps, vec![step(4, 6)]].concat();
        signed_journal.follow(&next, 1 << 20).expect("a writable directory");
        assert_eq!(serials(&open(6).1), [2, 3, 4, 6]);
        // No room: only the history there is.
        signed_journal.follow(&next[2..], 1).expect("a writable directory");
        assert_eq!(serials(&open(6).1), [4, 6]);
        signed_journal.remove().expect("a writable directory");
        assert_eq!(serials(&open(6).1), []);
    }
}
