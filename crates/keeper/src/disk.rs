//! Files of a folder, as a journal needs them: what is said to be written is there after a loss of power.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Whether what is appended has to survive a loss of power before the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It has to.
    Certain,
    /// It may be lost.
    Lazy,
}

/// Where journals are kept.
pub trait Disk: Send + Sync {
    /// Reads a whole file; `None` if there is none.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Appends to a file, which need not be there.
    fn append(&self, name: &str, octets: &[u8], durability: Durability) -> io::Result<()>;
    /// Cuts a file to a length.
    fn cut(&self, name: &str, octets: u64) -> io::Result<()>;
    /// Puts a file in place of another: after a loss of power there is one or the other.
    fn replace(&self, name: &str, octets: &[u8]) -> io::Result<()>;
    /// Removes a file; it is no error if there is none.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A folder of the machine.
pub struct Folder(PathBuf);

impl Folder {
    /// Takes a folder, which is made when something is written.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Makes sure that the folder knows its files after a loss of power.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}

fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Disk for Folder {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        if_there(std::fs::read(self.0.join(name)))
    }

    fn append(&self, name: &str, octets: &[u8], durability: Durability) -> io::Result<()> {
        std::fs::create_dir_all(&self.0)?;
        let path = self.0.join(name);
        let is_new = !path.exists();
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        let before = file.metadata()?.len();
        // Half an entry is found out when it is read; without it, the next one can follow.
        file.write_all(octets).inspect_err(|_| drop(file.set_len(before)))?;
        if durability == Durability::Certain {
            file.sync_data()?;
            if is_new {
                self.sync()?;
            }
        }
        Ok(())
    }

    fn cut(&self, name: &str, octets: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.0.join(name))?;
        file.set_len(octets)?;
        file.sync_data()
    }

    fn replace(&self, name: &str, octets: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(&self.0)?;
        let new = self.0.join(format!("{name}.new"));
        let mut file = File::create(&new)?;
        file.write_all(octets)?;
        file.sync_all()?;
        drop(file);
        std::fs::rename(&new, self.0.join(name))?;
        self.sync()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if_there(std::fs::remove_file(self.0.join(name))).map(|_| ())
    }
}
