//! Large texts and other octets, each a file whose name is its SHA-256.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use aws_lc_rs::digest::{Digest, SHA256, digest};

use crate::files::make_folder;
use crate::{StoreError, TEXT_OCTETS_MAX, Trouble};

/// Read and written by the server alone: settings may hold secrets.
pub(crate) const PRIVATE: u32 = 0o600;

/// The SHA-256 of some octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Returns the hash of some octets.
    pub fn of(octets: &[u8]) -> Self {
        Self::from_digest(&digest(&SHA256, octets))
    }

    pub(crate) fn from_digest(digest: &Digest) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        Self(hash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// A folder of such files.
#[derive(Debug)]
pub struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Keeps some octets; they are on disk when this returns.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn put(&self, octets: &[u8]) -> Result<Hash, StoreError> {
        let hash = Hash::of(octets);
        let path = self.folder.join(hash.to_string());
        // One that is there may be damaged, or may not have come to the disk.
        if self.get(&hash.to_string()).is_ok() {
            return Ok(hash);
        }
        let failed = |error: io::Error| StoreError::io(&path, &error);
        make_folder(&self.folder).map_err(failed)?;
        let draft = path.with_extension("new");
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(PRIVATE).open(&draft)?;
            file.write_all(octets)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| {
            // It takes no room if it is none.
            drop(fs::remove_file(&draft));
            failed(error)
        })?;
        Ok(hash)
    }

    /// Returns the octets with this hash.
    ///
    /// # Errors
    ///
    /// They are not there, or not what was written.
    pub fn get(&self, hash: &str) -> Result<Vec<u8>, StoreError> {
        let path = self.folder.join(hash);
        let is_name = hash.len() == 64 && hash.bytes().all(|octet| octet.is_ascii_hexdigit());
        if !is_name {
            return Err(StoreError::Trouble(Trouble::Damaged(path, "it is no SHA-256".to_owned())));
        }
        let mut octets = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(TEXT_OCTETS_MAX as u64 + 1).read_to_end(&mut octets));
        read.map_err(|error| StoreError::io(&path, &error))?;
        if Hash::of(&octets).to_string() != hash {
            let what = "its SHA-256 is another than its name says".to_owned();
            return Err(StoreError::Trouble(Trouble::Damaged(path, what)));
        }
        Ok(octets)
    }

    /// Removes every file that is not `wanted`; returns how many there were.
    pub(crate) fn retain(&self, wanted: impl Fn(&str) -> bool) -> usize {
        let Ok(files) = fs::read_dir(&self.folder) else { return 0 };
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let unwanted = names.filter(|name| !wanted(name));
        unwanted.filter(|name| fs::remove_file(self.folder.join(name)).is_ok()).count()
    }
}
