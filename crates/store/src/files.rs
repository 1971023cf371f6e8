//! Long texts that are part of no history, each a file whose name is its SHA-256: only the newest
//! of each is kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::digest::{Context, SHA256};

use crate::blobs::PRIVATE;
use crate::{Hash, StoreError};

/// Marks a folder with files that may be another store's.
const HELD: &str = "held";

/// A folder of such files.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
    /// The number of the next draft.
    next: Arc<AtomicU64>,
}

/// A file that is being written, and gone if it is not kept.
pub struct Draft {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    context: Context,
    octets: u64,
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Draft({})", self.path.display())
    }
}

impl Files {
    /// Names the folder; it is made when something is written.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, next: Arc::default() }
    }

    /// Returns where the file with a hash is.
    pub fn path(&self, hash: &str) -> PathBuf {
        self.folder.join(hash)
    }

    /// Begins a file.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn draft(&self) -> Result<Draft, StoreError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{}-{number}.new", std::process::id()));
        let failed = |error: io::Error| StoreError::io(&path, &error);
        make_folder(&self.folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(PRIVATE);
        let file = options.open(&path).map_err(failed)?;
        Ok(Draft { folder: self.folder.clone(), path, file, context: Context::new(&SHA256), octets: 0 })
    }

    /// Has [`Files::retain`] remove none of the files that are there until all of them are wanted:
    /// they may be all that is left of a store that was lost. Returns whether there are any.
    pub fn hold(&self) -> bool {
        let is_any = self.names().iter().any(|name| is_hash(name));
        if is_any {
            // Where it cannot be written, no other store is begun either.
            drop(File::create(self.folder.join(HELD)));
        }
        is_any
    }

    /// Removes every file that is not `wanted`, drafts included; returns false if some are
    /// [held](Files::hold).
    pub fn retain(&self, wanted: impl Fn(&str) -> bool) -> bool {
        let names = self.names();
        let is_lost = |name: &String| is_hash(name) && !wanted(name);
        let is_held = names.iter().any(|name| name == HELD) && names.iter().any(is_lost);
        for name in names.iter().filter(|name| !wanted(name)) {
            if !is_held || !is_hash(name) && *name != HELD {
                // What cannot be removed takes room, and nothing else.
                drop(fs::remove_file(self.folder.join(name)));
            }
        }
        !is_held
    }

    fn names(&self) -> Vec<String> {
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        files.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect()
    }

    /// Removes the file with a hash.
    pub fn remove(&self, hash: &str) {
        drop(fs::remove_file(self.path(hash)));
    }
}

impl Draft {
    /// Returns where it is until it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how many octets were written.
    pub const fn octets(&self) -> u64 {
        self.octets
    }

    /// Returns the hash of what was written.
    pub fn hash(&self) -> Hash {
        Hash::from_digest(&self.context.clone().finish())
    }

    /// Has it be there under its hash; it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn keep(self) -> Result<Hash, StoreError> {
        let hash = self.hash();
        let path = self.folder.join(hash.to_string());
        let written = self
            .file
            .sync_all()
            .and_then(|()| fs::rename(&self.path, &path))
            .and_then(|()| File::open(&self.folder)?.sync_all());
        written.map_err(|error| StoreError::io(&path, &error))?;
        Ok(hash)
    }
}

impl Write for Draft {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.file.write(octets)?;
        self.context.update(&octets[..written]);
        self.octets += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Nothing is there any more if it was kept.
        drop(fs::remove_file(&self.path));
    }
}

/// Makes a folder, if it is not there; its name is on disk when this returns.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    match folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Returns whether a file has the name of one that was kept.
fn is_hash(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|octet| octet.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_that_is_not_kept_is_gone() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let files = Files::new(folder.path().join("lists"));
        let mut draft = files.draft().expect("a draft");
        draft.write_all(b"a.example\n").expect("written");
        let hash = draft.keep().expect("kept").to_string();
        assert_eq!(hash, Hash::of(b"a.example\n").to_string());
        assert_eq!(fs::read(files.path(&hash)).expect("there"), b"a.example\n");
        let other = files.draft().expect("a draft");
        let path = other.path().to_owned();
        drop(other);
        assert!(!path.exists());
        fs::write(files.path("1-1.new"), "").expect("written");
        assert!(files.retain(|name| name == hash));
        assert_eq!(fs::read_dir(folder.path().join("lists")).expect("a folder").count(), 1);
        fs::write(files.path("1-1.new"), "").expect("written");
        assert!(files.hold());
        assert!(!files.retain(|_| false));
        assert!(files.path(&hash).exists() && !files.path("1-1.new").exists());
        assert!(files.retain(|name| name == hash));
        assert_eq!(fs::read_dir(folder.path().join("lists")).expect("a folder").count(), 1);
        files.remove(&hash);
        assert!(!files.path(&hash).exists());
    }
}
