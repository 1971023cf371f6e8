//! Files of a folder, call by call, as a journal needs them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where journals are kept. After a loss of power there is for sure what [`Disk::sync`] was called
/// for, and under the names that [`Disk::sync_names`] was called for; of everything else there is
/// something, or nothing, or rubbish.
pub trait Disk: Send + Sync {
    /// Reads a whole file; `None` if there is none.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Makes a file with these octets, in place of one that may be there.
    fn create(&self, name: &str, octets: &[u8]) -> io::Result<()>;
    /// Appends to a file that is there. After an error it is as long as before, or its end is not
    /// to be trusted.
    fn append(&self, name: &str, octets: &[u8]) -> io::Result<()>;
    /// Cuts a file to a length.
    fn cut(&self, name: &str, octets: u64) -> io::Result<()>;
    /// Makes sure of what is in a file.
    fn sync(&self, name: &str) -> io::Result<()>;
    /// Gives a file the name of another, which is gone then.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file; it is no error if there is none.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes sure of which files there are, and of their names.
    fn sync_names(&self) -> io::Result<()>;
    /// Returns where a file is, for a person.
    fn path(&self, name: &str) -> PathBuf;
}

/// A folder of the machine.
pub struct Folder(PathBuf);

impl Folder {
    /// Takes a folder, which is made when something is written.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Folder {
    /// Does something with a file; an error names it.
    fn with<T>(&self, name: &str, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let path = self.0.join(name);
        act(&path).map_err(|error| named(&path, &error))
    }
}

/// Returns an error that names a file.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("\"{}\": {error}", path.display()))
}

impl Disk for Folder {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.with(name, |path| if_there(std::fs::read(path)))
    }

    fn create(&self, name: &str, octets: &[u8]) -> io::Result<()> {
        if !self.0.is_dir() {
            std::fs::create_dir_all(&self.0).map_err(|error| named(&self.0, &error))?;
            // A folder that is lost takes its files with it.
            if let Some(above) = self.0.parent() {
                File::open(above)?.sync_all()?;
            }
        }
        self.with(name, |path| File::create(path)?.write_all(octets))
    }

    fn append(&self, name: &str, octets: &[u8]) -> io::Result<()> {
        self.with(name, |path| {
            let mut file = OpenOptions::new().append(true).open(path)?;
            let before = file.metadata()?.len();
            file.write_all(octets).inspect_err(|_| drop(file.set_len(before)))
        })
    }

    fn cut(&self, name: &str, octets: u64) -> io::Result<()> {
        self.with(name, |path| OpenOptions::new().write(true).open(path)?.set_len(octets))
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        // By another handle than it was written through: what counts is the file.
        self.with(name, |path| File::open(path)?.sync_all())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.with(to, |path| std::fs::rename(self.0.join(from), path))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.with(name, |path| if_there(std::fs::remove_file(path)).map(|_| ()))
    }

    fn sync_names(&self) -> io::Result<()> {
        // Where there is no folder, there are no names.
        let synced = if_there(File::open(&self.0))
            .and_then(|folder| folder.map_or(Ok(()), |folder| folder.sync_all()));
        synced.map_err(|error| named(&self.0, &error))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_when_something_is_written() {
        let directory = tempfile::TempDir::new().expect("a temporary directory");
        let folder = Folder::new(&directory.path().join("zones"));
        assert_eq!(folder.read("a").expect("no error"), None);
        folder.remove("a").expect("no error");
        folder.sync_names().expect("no error");
        assert!(folder.append("a", b"x").is_err(), "only what is there can grow");
        folder.create("a", b"one").expect("a file");
        folder.append("a", b"two").expect("a file");
        folder.cut("a", 4).expect("a file");
        folder.sync("a").expect("a file");
        folder.rename("a", "b").expect("a file");
        folder.sync_names().expect("a folder");
        assert_eq!(folder.read("a").expect("no error"), None);
        assert_eq!(folder.read("b").expect("no error"), Some(b"onet".to_vec()));
    }
}
