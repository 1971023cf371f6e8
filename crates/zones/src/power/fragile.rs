//! A disk that loses its power, and with it what nobody made sure of; or one that fails for a time,
//! as a full one does.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use crate::disk::Disk;

/// What becomes of what was written and not made sure of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// All of it had reached the disk.
    Nothing,
    /// Octets are lost, names are not.
    Octets,
    /// Names are lost, octets are not.
    Names,
    /// Everything.
    Everything,
    /// Of what was appended, half is there.
    Half,
    /// Files have their lengths; what was appended is zeros.
    Zeros,
    /// Files are longer than what was written, and end in rubbish.
    Rubbish,
}

impl Loss {
    pub(super) const ALL: [Self; 7] =
        [Self::Nothing, Self::Octets, Self::Names, Self::Everything, Self::Half, Self::Zeros, Self::Rubbish];

    const fn keeps_names(self) -> bool {
        !matches!(self, Self::Names | Self::Everything)
    }
}

/// Whether a disk does what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It does.
    ManagedZone,
    /// It says that it is sure of octets, and is not.
    OctetsBroken,
    /// It says that it is sure of names, and is not.
    NamesBroken,
}

/// Which calls fail, counted from the first that changes something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    /// The first of them.
    pub(super) first: usize,
    /// How many in a row.
    pub(super) calls: usize,
    /// Only those that need room: the disk is full.
    pub(super) needs_room: bool,
}

/// A file: what is sure to be in it, and what was written.
#[derive(Clone, Default)]
struct Contents {
    sure: Vec<u8>,
    written: Vec<u8>,
}

impl Contents {
    fn after(&self, loss: Loss) -> Vec<u8> {
        let Self { sure, written } = self;
        // What was cut or written over and not made sure of is one or the other.
        let is_longer = written.starts_with(sure);
        match loss {
            Loss::Nothing | Loss::Names => written.clone(),
            Loss::Octets | Loss::Everything => sure.clone(),
            _ if !is_longer => sure.clone(),
            Loss::Half => written[..sure.len() + (written.len() - sure.len()) / 2].to_vec(),
            Loss::Zeros => {
                let mut octets = sure.clone();
                octets.resize(written.len(), 0);
                octets
            }
            Loss::Rubbish if written.len() > sure.len() => [sure, &b"\0\0\0\0\0\0\0\x05noise"[..]].concat(),
            Loss::Rubbish => sure.clone(),
        }
    }
}

#[derive(Default)]
struct State {
    /// Files by number.
    files: Vec<Contents>,
    /// Their names as they are.
    names: BTreeMap<String, usize>,
    /// Their names as they are sure to be.
    sure_names: BTreeMap<String, usize>,
    left: usize,
    /// Octets of the calls that got through, in their order; one that writes nothing has none.
    got_through: Vec<usize>,
    is_dead: bool,
    /// Calls that have changed something, or would have.
    calls: usize,
    failure: Option<Failure>,
    has_failed: bool,
}

/// A disk that loses its power after so many calls and octets.
pub(super) struct Fragile {
    state: Mutex<State>,
    loss: Loss,
    trust: Trust,
}

fn lost() -> io::Error {
    io::Error::other("no power")
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl State {
    /// Takes power for a call with so many octets; returns how many of them get through.
    fn power(&mut self, octets: usize) -> (usize, io::Result<()>) {
        if self.is_dead {
            return (0, Err(lost()));
        }
        self.calls += 1;
        if let Some(failure) = self.failure
            && (octets > 0 || !failure.needs_room)
            && self.calls > failure.first
            && self.calls - failure.first <= failure.calls
        {
            self.has_failed = true;
            // Something may have been written.
            return (octets / 2, Err(io::ErrorKind::StorageFull.into()));
        }
        if self.left <= octets {
            self.is_dead = true;
            return (self.left, Err(lost()));
        }
        self.left -= octets + 1;
        self.got_through.push(octets);
        (octets, Ok(()))
    }

    fn call(&mut self) -> io::Result<()> {
        self.power(0).1
    }

    fn file(&mut self, name: &str) -> io::Result<&mut Contents> {
        let number = *self.names.get(name).ok_or_else(missing)?;
        self.files.get_mut(number).ok_or_else(missing)
    }
}

impl Fragile {
    pub(super) fn new(power: usize, loss: Loss, trust: Trust) -> Self {
        Self { state: Mutex::new(State { left: power, ..State::default() }), loss, trust }
    }

    /// Makes a disk that keeps its power and fails for a time.
    pub(super) fn failing(failure: Failure) -> Self {
        let disk = Self::new(usize::MAX, Loss::Nothing, Trust::ManagedZone);
        disk.state().failure = Some(failure);
        disk
    }

    pub(super) fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Makes room.
    pub(super) fn mend(&self) {
        self.state().failure = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a lock")
    }

    /// Returns after how much power each of the calls begins that got through, and its octets.
    pub(super) fn calls(&self) -> Vec<(usize, usize)> {
        let begins = |before: &mut usize, &octets: &usize| {
            let begins = *before;
            *before += octets + 1;
            Some((begins, octets))
        };
        self.state().got_through.iter().scan(0, begins).collect()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// Gives the power back: there is what the loss has left. A disk that never lost it has lost
    /// nothing but what a plug loses that is pulled now.
    pub(super) fn revive(&self) {
        let mut state = self.state();
        if !self.loss.keeps_names() {
            state.names = state.sure_names.clone();
        }
        state.sure_names = state.names.clone();
        for file in &mut state.files {
            let after = file.after(self.loss);
            *file = Contents { sure: after.clone(), written: after };
        }
        state.left = usize::MAX;
        state.is_dead = false;
    }
}

impl Disk for Fragile {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut state = self.state();
        if state.is_dead {
            return Err(lost());
        }
        Ok(state.file(name).ok().map(|file| file.written.clone()))
    }

    fn create(&self, name: &str, octets: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if state.is_dead {
            return Err(lost());
        }
        let (through, outcome) = state.power(octets.len());
        // A file of that name is emptied, and written anew.
        let number = match state.names.get(name) {
            Some(&number) => number,
            None => {
                state.files.push(Contents::default());
                let number = state.files.len() - 1;
                state.names.insert(name.to_owned(), number);
                number
            }
        };
        if let Some(file) = state.files.get_mut(number) {
            file.written = octets[..through].to_vec();
        }
        outcome
    }

    fn append(&self, name: &str, octets: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let (through, outcome) = state.power(octets.len());
        state.file(name)?.written.extend_from_slice(&octets[..through]);
        outcome
    }

    fn cut(&self, name: &str, octets: u64) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        state.file(name)?.written.truncate(octets as usize);
        Ok(())
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        let file = state.file(name)?;
        if self.trust != Trust::OctetsBroken {
            file.sure = file.written.clone();
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        let number = state.names.remove(from).ok_or_else(missing)?;
        state.names.insert(to.to_owned(), number);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        state.names.remove(name);
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        if self.trust != Trust::NamesBroken {
            state.sure_names = state.names.clone();
        }
        Ok(())
    }
}
