//! Checkpoints: signed notes of how far the audit log has come. Kept elsewhere, they show rows that
//! were cut off its end or written anew.
//!
//! The key is the server's own, made when there is none. Who has broken in has it: a checkpoint
//! proves what was so before that.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use aws_lc_rs::rand;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use crate::audit::{Octets, hex, unhex};
use crate::{Store, StoreError, Trouble};

/// The key that signs, in the folder of the store.
const KEY_FILE: &str = "audit-sign.key";
/// Its public half.
const PUBLIC_FILE: &str = "audit-sign.pub";
/// What is signed begins with this, so that a signature is good for nothing else.
const CONTEXT: &str = "gannet audit checkpoint ";
/// Octets of a signature (RFC 8032 §5.1.6).
const SIGNATURE_OCTETS: usize = 64;

/// How far the audit log had come at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of the last row.
    pub number: u64,
    /// The hash of all rows up to it.
    pub hash: Octets,
    /// When, in seconds since 1970.
    pub at: u64,
}

impl Checkpoint {
    /// Returns what is signed.
    fn signed_text(&self) -> String {
        format!("{CONTEXT}{}:{}:{}", self.number, hex(&self.hash), self.at)
    }

    /// Finds the checkpoints in a text, whatever stands around them in lines of logs, and checks
    /// that they were signed by the key.
    ///
    /// # Errors
    ///
    /// One was not: its number.
    pub fn find(text: &str, public_key: &Octets) -> Result<Vec<Self>, u64> {
        let is_part = |c: char| c.is_ascii_hexdigit() || c == ':';
        let key = UnparsedPublicKey::new(&ED25519, public_key);
        let mut found = Vec::new();
        for (checkpoint, signature) in text.split(|c| !is_part(c)).filter_map(read) {
            match key.verify(checkpoint.signed_text().as_bytes(), &signature) {
                Ok(()) => found.push(checkpoint),
                Err(_) => return Err(checkpoint.number),
            }
        }
        Ok(found)
    }
}

/// Reads a checkpoint and its signature.
fn read(text: &str) -> Option<(Checkpoint, [u8; SIGNATURE_OCTETS])> {
    let mut parts = text.split(':');
    let (number, hash) = (parts.next()?.parse().ok()?, unhex(parts.next()?)?);
    let (at, signature) = (parts.next()?.parse().ok()?, parts.next()?);
    let (left, right) = signature.split_at_checked(SIGNATURE_OCTETS)?;
    let mut octets = [0; SIGNATURE_OCTETS];
    let (one, two) = octets.split_at_mut(SIGNATURE_OCTETS / 2);
    one.copy_from_slice(&unhex(left)?);
    two.copy_from_slice(&unhex(right)?);
    parts.next().is_none().then_some((Checkpoint { number, hash, at }, octets))
}

/// Reads the key that signs, or makes one if there is none.
fn key(folder: &Path) -> Result<Ed25519KeyPair, StoreError> {
    let file = folder.join(KEY_FILE);
    let damaged = |what: &str| StoreError::Trouble(Trouble::Damaged(file.clone(), what.to_owned()));
    let pair = |seed: &Octets| {
        Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| damaged("it is no key of Ed25519"))
    };
    match fs::read_to_string(&file) {
        Ok(text) => {
            let seed = unhex(text.trim()).ok_or_else(|| damaged("it is no key of an audit log"))?;
            pair(&seed)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut seed = [0; 32];
            rand::fill(&mut seed).map_err(|_| damaged("the system has no random numbers"))?;
            let pair = pair(&seed)?;
            write(&folder.join(PUBLIC_FILE), pair.public_key().as_ref(), 0o644)?;
            write(&file, &seed, 0o600)?;
            Ok(pair)
        }
        Err(error) => Err(StoreError::io(&file, &error)),
    }
}

/// Writes octets in place of what was there before.
fn write(file: &Path, octets: &[u8], mode: u32) -> Result<(), StoreError> {
    let draft = file.with_extension("new");
    let write = || {
        let mut options = fs::OpenOptions::new();
        let mut out = options.write(true).create(true).truncate(true).mode(mode).open(&draft)?;
        out.write_all(format!("{}\n", hex(octets)).as_bytes())?;
        out.sync_all()?;
        fs::rename(&draft, file)?;
        file.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
    };
    write().map_err(|error| StoreError::io(file, &error))
}

impl Store {
    /// Returns the public key of checkpoints, in hexadecimal digits; it is made if there is none.
    ///
    /// # Errors
    ///
    /// It cannot be read or written.
    pub fn checkpoint_key(&self) -> Result<String, StoreError> {
        Ok(hex(key(&self.folder)?.public_key().as_ref()))
    }

    /// Returns a checkpoint of now with its signature, `NUMBER:HASH:TIME:SIGNATURE`; `None` if
    /// there are no rows.
    ///
    /// # Errors
    ///
    /// The rows or the key cannot be read.
    pub fn checkpoint(&self, at: u64) -> Result<Option<(u64, String)>, StoreError> {
        let last = self.last_audited()?;
        let Some(row) = self.audited(last.saturating_sub(1), 1)?.pop() else { return Ok(None) };
        let checkpoint = Checkpoint { number: row.number, hash: row.hash, at };
        let signature = key(&self.folder)?.sign(checkpoint.signed_text().as_bytes());
        let text = format!("{}:{}:{at}:{}", row.number, hex(&row.hash), hex(signature.as_ref()));
        Ok(Some((row.number, text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Event, Fault, FaultKind, verify};

    fn event(number: u64) -> Event {
        Event { at: number, by: "anna".to_owned(), what: "reload".to_owned(), ..Event::default() }
    }

    fn notes(text: &str, key: &str) -> Result<Vec<(u64, Octets)>, u64> {
        let found = Checkpoint::find(text, &unhex(key).expect("a key"))?;
        Ok(found.iter().map(|it| (it.number, it.hash)).collect())
    }

    #[test]
    fn a_checkpoint_shows_rows_that_were_cut_off_or_written_anew() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(folder.path()).expect("a store");
        assert_eq!(store.checkpoint(1), Ok(None));
        store.audit(&(1..=9).map(event).collect::<Vec<_>>()).expect("written");
        let (number, early) = store.checkpoint(1_700_000_000).expect("readable").expect("rows");
        store.audit(&[event(10)]).expect("written");
        let (_, late) = store.checkpoint(1_700_000_060).expect("readable").expect("rows");
        assert_eq!(number, 9);
        let key = store.checkpoint_key().expect("a key");
        let public = fs::read_to_string(folder.path().join(PUBLIC_FILE)).expect("readable");
        assert_eq!(public.trim(), key);

        // As it stands in a log, in JSON, in a file of its own.
        let text =
            format!("Nov 27 host gannet[7]: checkpoint={early} x\n{{\"checkpoint\":\"{late}\"}}\n{late}\n");
        let found = notes(&text, &key).expect("signed");
        assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [9, 10, 10]);
        let rows = store.audited(0, usize::MAX).expect("readable");
        assert_eq!(verify(rows.clone(), None, &found), Ok(10));
        let fault = |number, kind| Err(Fault { number, kind });
        assert_eq!(verify(rows[..9].to_vec(), None, &found), fault(10, FaultKind::Cut));
        assert_eq!(verify(rows[..9].to_vec(), None, &found[..1]), Ok(9));
        assert_eq!(verify(Vec::new(), None, &found), fault(1, FaultKind::Cut));

        // Another log, with hashes that fit together.
        let other = tempfile::tempdir().expect("a temporary directory");
        let other = Store::open(other.path()).expect("a store");
        other.audit(&(11..=20).map(event).collect::<Vec<_>>()).expect("written");
        let rows = other.audited(0, usize::MAX).expect("readable");
        assert_eq!(verify(rows, None, &found), fault(9, FaultKind::Forged));
        // Its key is another one.
        let (_, foreign) = other.checkpoint(1).expect("readable").expect("rows");
        assert_eq!(notes(&foreign, &key), Err(10));
        let changed = early.replacen("9:", "8:", 1);
        assert_eq!(notes(&changed, &key), Err(8));
    }

    #[test]
    fn the_key_stays_over_a_restart() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let key = || Store::open(folder.path()).and_then(|store| store.checkpoint_key());
        let first = key().expect("a key");
        assert_eq!(key(), Ok(first));
    }
}
