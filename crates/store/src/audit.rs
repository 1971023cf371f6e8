//! The audit log: who had what done, in rows of which none can be changed or left out unnoticed.
//!
//! Each row has the hash of all rows up to it, `h(n) = SHA-256(h(n-1) || row)`, which anybody can
//! check, and a MAC of that, `HMAC-SHA-256(k(e), h(n))`. After [`EPOCH_ROWS`] rows the key moves
//! forward, `k(e+1) = HKDF-SHA-256(k(e))`, and the one before is erased: who breaks in later has no
//! key for the rows that were written before. Whoever kept the first key can check all of them.
//!
//! # Limitations
//!
//! Who has the key of now can write rows from now on, and a tail that nobody has seen can be cut
//! off: [`verify`] takes rows that were noted elsewhere, such as those of
//! [checkpoints](crate::checkpoint).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::{digest, hkdf, hmac, rand};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use crate::{Store, StoreError, Trouble};

/// Rows under one key.
pub const EPOCH_ROWS: u64 = 256;
/// What keys are moved forward for.
const INFO: &[u8] = b"gannet audit";
/// Octets of keys and hashes.
const OCTETS: usize = 32;
/// The key of now, in the folder of the store. It moves forward after the rows are on disk, so that
/// one that was read before the rows goes with them.
pub const KEY_FILE: &str = "audit.key";
/// The first key, until somebody takes it away to a safe place.
const FIRST_KEY_FILE: &str = "audit-first.key";

/// The key of digests of secrets, in the folder of the store. It is none of the audit log's, so
/// that who checks the log cannot try secrets.
const SECRETS_KEY_FILE: &str = "audit-secrets.key";
/// Differences that a row has at most.
pub const DIFFERENCES_MAX: usize = 100;

/// A hash, or a key.
pub type Octets = [u8; OCTETS];

/// What becomes a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Who.
    pub by: String,
    /// What was asked for, such as `set-add`.
    pub what: String,
    /// With what: a path, a zone, names.
    pub on: String,
    /// What came of it: `done`, or why not.
    pub outcome: String,
    /// The revision that it made, if it made one.
    pub revision: Option<u64>,
    /// What it made different.
    pub differences: Vec<Difference>,
    /// How many more there are of these.
    pub differences_more: usize,
    /// Where that comes from, if not from who is named: `file`, `unbound-control`.
    pub source: Option<&'static str>,
}

/// What was made different. Secrets have to be [digests](Store::digest) in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// What: the path of a setting, the name of a token.
    pub path: String,
    /// What it said; `None`: nothing.
    pub before: Option<String>,
    /// What it says now.
    pub after: Option<String>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number, from 1.
    pub number: u64,
    /// What it says: JSON with sorted keys and without spaces.
    pub text: String,
    /// The hash of all rows up to it.
    pub hash: Octets,
    /// Its MAC.
    pub mac: Octets,
}

/// What is wrong with rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The first row that is wrong.
    pub number: u64,
    /// What is wrong with it.
    pub kind: FaultKind,
}

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is not what was written.
    Changed,
    /// It is not there, although later ones are.
    Removed,
    /// It and all later ones are not there, although it was noted.
    Cut,
    /// It was written by somebody who does not have the key.
    Forged,
}

impl Event {
    /// Returns the row of this number, as text.
    fn text(&self, number: u64) -> String {
        let text = json_text;
        let mut fields = format!(
            "{{\"at\":{},\"by\":{},{}\"number\":{number},\"on\":{},\"outcome\":{}",
            self.at,
            text(&self.by),
            differences_text(&self.differences, self.differences_more),
            text(&self.on),
            text(&self.outcome)
        );
        if let Some(revision) = self.revision {
            fields.push_str(&format!(",\"revision\":{revision}"));
        }
        if let Some(source) = self.source {
            fields.push_str(&format!(",\"source\":{}", text(source)));
        }
        fields.push_str(&format!(",\"what\":{}}}", text(&self.what)));
        fields
    }
}

/// Returns what was made different as a field with the comma behind it; nothing if nothing was.
fn differences_text(all: &[Difference], more: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let value = |name: &str, value: &Option<String>| {
        value.as_ref().map_or_else(String::new, |value| format!("\"{name}\":{},", json_text(value)))
    };
    let one = |it: &Difference| {
        let (before, after) = (value("before", &it.before), value("after", &it.after));
        format!("{{{after}{before}\"path\":{}}}", json_text(&it.path))
    };
    let shown: Vec<String> = all.iter().take(DIFFERENCES_MAX).map(one).collect();
    let more = match all.len().saturating_sub(DIFFERENCES_MAX) + more {
        0 => String::new(),
        more => format!("\"differences-more\":{more},"),
    };
    format!("\"differences\":[{}],{more}", shown.join(","))
}

/// Returns a text as JSON has it, in ASCII alone.
fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(c),
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
    out
}

/// Returns the hash of all rows up to one.
fn hash(before: &Octets, text: &str) -> Octets {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(before);
    context.update(text.as_bytes());
    octets(context.finish().as_ref())
}

fn mac(key: &Octets, hash: &Octets) -> Octets {
    octets(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), hash).as_ref())
}

/// Returns the next key.
fn next_key(key: &Octets) -> Octets {
    struct Length;
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            OCTETS
        }
    }
    let mut next = [0; OCTETS];
    let pseudorandom = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(key);
    let filled = pseudorandom.expand(&[INFO], Length).and_then(|output| output.fill(&mut next));
    filled.expect("32 octets are one block of HKDF-SHA-256");
    next
}

fn octets(slice: &[u8]) -> Octets {
    slice.try_into().expect("SHA-256 has 32 octets")
}

/// Returns the epoch of a row.
const fn epoch(number: u64) -> u64 {
    (number - 1) / EPOCH_ROWS
}

/// Returns octets in hexadecimal digits.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Reads a hash or a key from its hexadecimal digits.
pub fn unhex(text: &str) -> Option<Octets> {
    let mut octets = [0; OCTETS];
    let digits = text.as_bytes();
    if digits.len() != 2 * OCTETS {
        return None;
    }
    for (octet, pair) in octets.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
        *octet = (digit(0)? * 16 + digit(1)?) as u8;
    }
    Some(octets)
}

/// Checks rows in the order of their numbers: that each follows from the one before, with the first
/// key also that each was written by who had the key, and that rows that were noted are among them.
/// Returns how many there are.
///
/// # Errors
///
/// The first row that is wrong.
pub fn verify(
    rows: impl IntoIterator<Item = Row>,
    first_key: Option<&Octets>,
    noted: &[(u64, Octets)],
) -> Result<u64, Fault> {
    let (mut count, mut before) = (0, [0; OCTETS]);
    let mut key = first_key.copied();
    for row in rows {
        let number = count + 1;
        let fault = |kind| Fault { number, kind };
        if row.number != number {
            return Err(fault(FaultKind::Removed));
        }
        // The number is in the text, too: what is moved elsewhere is not what was written.
        if row.hash != hash(&before, &row.text) || !row.text.contains(&format!("\"number\":{number},")) {
            return Err(fault(FaultKind::Changed));
        }
        if let Some(key) = &mut key {
            if number > 1 && epoch(number) != epoch(number - 1) {
                *key = next_key(key);
            }
            if row.mac != mac(key, &row.hash) {
                return Err(fault(FaultKind::Forged));
            }
        }
        if noted.iter().any(|(noted, hash)| *noted == number && *hash != row.hash) {
            return Err(fault(FaultKind::Forged));
        }
        (count, before) = (number, row.hash);
    }
    if noted.iter().any(|(noted, _)| *noted > count) {
        return Err(Fault { number: count + 1, kind: FaultKind::Cut });
    }
    Ok(count)
}

/// The key of now.
#[derive(Clone)]
pub(crate) struct Key {
    epoch: u64,
    key: Octets,
}

impl Key {
    /// Reads the key. If there is none, it follows from the first one that is given, or a new one
    /// is made.
    pub(crate) fn open(
        folder: &Path,
        database: &Connection,
        first: Option<&Octets>,
    ) -> Result<Self, StoreError> {
        let file = folder.join(KEY_FILE);
        let damaged = |what: &str| StoreError::Trouble(Trouble::Damaged(file.clone(), what.to_owned()));
        let rows: u64 = database
            .query_row("SELECT coalesce(max(number), 0) FROM audit", [], |row| row.get::<_, i64>(0))
            .map_err(|error| StoreError::of(&file, &error))? as u64;
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if let Some(first) = first {
                    let given = Self { epoch: 0, key: *first }.moved_to(rows + 1);
                    given.write(&file)?;
                    return Ok(given);
                }
                let mut key = [0; OCTETS];
                rand::fill(&mut key).map_err(|_| damaged("the system has no random numbers"))?;
                // In place of one that was lost there is another: whoever has the first key sees
                // where.
                let new = Self { epoch: rows / EPOCH_ROWS, key };
                if rows == 0 {
                    new.write(&folder.join(FIRST_KEY_FILE))?;
                }
                new.write(&file)?;
                return Ok(new);
            }
            Err(error) => return Err(StoreError::io(&file, &error)),
        };
        let read = || {
            let (epoch, key) = text.trim().split_once(' ')?;
            Some(Self { epoch: epoch.parse().ok()?, key: unhex(key)? })
        };
        let key = read().ok_or_else(|| damaged("it is not the key of an audit log"))?;
        if key.epoch > rows / EPOCH_ROWS {
            return Err(damaged("it is the key of later rows than the audit log has: some are gone"));
        }
        if let Some(first) = first.filter(|_| rows == 0) {
            // Nothing was written with the one that was made.
            let given = Self { epoch: 0, key: *first };
            given.write(&file)?;
            let made = folder.join(FIRST_KEY_FILE);
            if made.exists() {
                fs::remove_file(&made).map_err(|error| StoreError::io(&made, &error))?;
            }
            return Ok(given);
        }
        Ok(key)
    }

    /// Returns whether it follows from a first key.
    fn follows_from(&self, first: &Octets) -> bool {
        Self { epoch: 0, key: *first }.moved_to(self.epoch * EPOCH_ROWS + 1).key == self.key
    }

    /// Returns the key for a row.
    fn moved_to(&self, number: u64) -> Self {
        let mut moved = self.clone();
        while moved.epoch < epoch(number) {
            moved = Self { epoch: moved.epoch + 1, key: next_key(&moved.key) };
        }
        moved
    }

    /// Writes it in place of the one before.
    fn write(&self, file: &Path) -> Result<(), StoreError> {
        write_key(file, &format!("{} {}\n", self.epoch, hex(&self.key)))
    }
}

/// Reads the key of digests of secrets, or makes one if there is none.
fn secrets_key(folder: &Path) -> Result<Octets, StoreError> {
    let file = folder.join(SECRETS_KEY_FILE);
    let damaged = |what: &str| StoreError::Trouble(Trouble::Damaged(file.clone(), what.to_owned()));
    match fs::read_to_string(&file) {
        Ok(text) => unhex(text.trim()).ok_or_else(|| damaged("it is not the key of digests")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut key = [0; OCTETS];
            rand::fill(&mut key).map_err(|_| damaged("the system has no random numbers"))?;
            write_key(&file, &format!("{}\n", hex(&key)))?;
            Ok(key)
        }
        Err(error) => Err(StoreError::io(&file, &error)),
    }
}

/// Writes a file that nobody else may read in place of the one before.
fn write_key(file: &Path, text: &str) -> Result<(), StoreError> {
    let draft = file.with_extension("new");
    let write = || {
        let mut options = fs::OpenOptions::new();
        let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&draft, file)?;
        file.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
    };
    write().map_err(|error| StoreError::io(file, &error))
}

/// Appends rows in a transaction; returns the key for the next one.
pub(crate) fn append(transaction: &Transaction<'_>, key: &Key, events: &[Event]) -> rusqlite::Result<Key> {
    let last = transaction
        .query_row("SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1", [], |row| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, [u8; OCTETS]>(1)?))
        })
        .optional()?;
    let (mut number, mut before) = last.unwrap_or((0, [0; OCTETS]));
    let mut key = key.clone();
    for event in events {
        number += 1;
        key = key.moved_to(number);
        let text = event.text(number);
        before = hash(&before, &text);
        let mut query = transaction
            .prepare_cached("INSERT INTO audit (number, text, hash, mac) VALUES (?1, ?2, ?3, ?4)")?;
        query.execute(params![number as i64, text, before, mac(&key.key, &before)])?;
    }
    Ok(key.moved_to(number + 1))
}

impl Store {
    /// Returns what stands for a secret in the audit log: the same for the same secret, and nothing
    /// that anybody without a key of its own can try secrets with.
    ///
    /// # Errors
    ///
    /// The key cannot be read or made.
    pub fn digest(&self, secret: &str) -> Result<String, StoreError> {
        let key = match self.secrets_key.get() {
            Some(key) => *key,
            None => {
                let key = secrets_key(&self.folder)?;
                *self.secrets_key.get_or_init(|| key)
            }
        };
        let digest = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), secret.as_bytes());
        Ok(format!("hmac-sha256:{}", hex(digest.as_ref())))
    }

    /// Returns whether the audit log was begun with another first key than the one that is given.
    pub fn has_other_audit_key(&self) -> bool {
        let state = self.state();
        self.first_key.as_ref().is_some_and(|first| !state.key.follows_from(first))
    }

    /// Returns where the first key is, if nobody has taken it away yet.
    pub fn first_audit_key(folder: &Path) -> Option<PathBuf> {
        Some(folder.join(FIRST_KEY_FILE)).filter(|file| file.exists())
    }

    /// Writes rows; they are on disk when this returns.
    ///
    /// # Errors
    ///
    /// They cannot be written; then none is.
    pub fn audit(&self, events: &[Event]) -> Result<(), StoreError> {
        let mut state = self.sound()?;
        let state = &mut *state;
        let mut write = || {
            let transaction = state.database.transaction()?;
            let key = append(&transaction, &state.key, events)?;
            transaction.commit().map(|()| key)
        };
        match write() {
            Ok(key) => {
                self.move_key(&mut state.key, key);
                Ok(())
            }
            Err(error) => {
                state.is_doubtful = true;
                Err(self.trouble(&error))
            }
        }
    }

    /// Takes over the key for the next rows, and erases the one before. Where that fails, the next
    /// row tries it again: the keys follow from each other.
    pub(crate) fn move_key(&self, known: &mut Key, next: Key) {
        if known.epoch == next.epoch || next.write(&self.folder.join(KEY_FILE)).is_ok() {
            *known = next;
        }
    }

    /// Returns the rows after `after`, at most `count`.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn audited(&self, after: u64, count: usize) -> Result<Vec<Row>, StoreError> {
        let state = self.sound()?;
        let look = || -> rusqlite::Result<Vec<Row>> {
            let mut query = state.database.prepare_cached(
                "SELECT number, text, hash, mac FROM audit WHERE number > ?1 ORDER BY number LIMIT ?2",
            )?;
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let rows = query.query_map(params![after as i64, count], |row| {
                let number = row.get::<_, i64>(0)? as u64;
                Ok(Row { number, text: row.get(1)?, hash: row.get(2)?, mac: row.get(3)? })
            })?;
            rows.collect()
        };
        look().map_err(|error| self.trouble(&error))
    }

    /// Returns the number of the newest row; 0 without any.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn last_audited(&self) -> Result<u64, StoreError> {
        let state = self.sound()?;
        let query = "SELECT coalesce(max(number), 0) FROM audit";
        let number = state.database.query_row(query, [], |row| row.get::<_, i64>(0));
        number.map(|number| number as u64).map_err(|error| self.trouble(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Event {
        let (by, what, on) = ("änna".to_owned(), "set-add".to_owned(), format!("a\"{number}\n"));
        Event { at: 1_000 + number, by, what, on, outcome: "done".to_owned(), ..Event::default() }
    }

    /// A store with so many rows, and the first key.
    fn store(rows: u64) -> (tempfile::TempDir, Store, Octets) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(folder.path()).expect("a store");
        let first =
            fs::read_to_string(Store::first_audit_key(folder.path()).expect("a key")).expect("readable");
        let key = unhex(first.trim().split_once(' ').expect("an epoch").1).expect("a key");
        let events: Vec<Event> = (1..=rows).map(event).collect();
        for some in events.chunks(7) {
            store.audit(some).expect("written");
        }
        (folder, store, key)
    }

    fn rows(store: &Store) -> Vec<Row> {
        store.audited(0, usize::MAX).expect("readable")
    }

    #[test]
    fn rows_that_were_written_are_right_over_changes_of_the_key_and_a_restart() {
        let (folder, store, key) = store(600);
        assert_eq!(verify(rows(&store), Some(&key), &[]), Ok(600));
        assert_eq!(
            rows(&store)[0].text,
            "{\"at\":1001,\"by\":\"\\u00e4nna\",\"number\":1,\"on\":\"a\\\"1\\u000a\",\"outcome\":\"done\",\"what\":\"set-add\"}"
        );
        drop(store);
        let now = fs::read_to_string(folder.path().join(KEY_FILE)).expect("readable");
        assert!(now.starts_with("2 ") && !now.contains(&hex(&key)), "the keys before are erased");
        let store = Store::open(folder.path()).expect("a store");
        store.audit(&[event(601)]).expect("written");
        assert_eq!(verify(rows(&store), Some(&key), &[]), Ok(601));
    }

    #[test]
    fn the_first_row_that_is_wrong_is_named_with_what_is_wrong() {
        let (_folder, store, key) = store(300);
        let right = rows(&store);
        let last: Vec<(u64, Octets)> = right.last().map(|row| (row.number, row.hash)).into_iter().collect();
        let check = |rows: Vec<Row>, number, kind| {
            assert_eq!(verify(rows, Some(&key), &last), Err(Fault { number, kind }));
        };
        let mut changed = right.clone();
        changed[100].text = changed[100].text.replace("done", "dona");
        check(changed.clone(), 101, FaultKind::Changed);
        // Who does not have the key can make hashes that fit.
        let mut before = changed[99].hash;
        for row in &mut changed[100..] {
            row.hash = hash(&before, &row.text);
            before = row.hash;
        }
        check(changed.clone(), 101, FaultKind::Forged);
        // Who broke in now has the key of the second epoch alone.
        let now = next_key(&key);
        for row in &mut changed[100..] {
            row.mac = mac(&now, &row.hash);
        }
        check(changed, 101, FaultKind::Forged);
        let mut removed = right.clone();
        removed.remove(42);
        check(removed, 43, FaultKind::Removed);
        let mut swapped = right.clone();
        swapped.swap(10, 11);
        check(swapped, 11, FaultKind::Removed);
        check(right[..200].to_vec(), 201, FaultKind::Cut);
        assert_eq!(verify(right[..200].to_vec(), Some(&key), &[]), Ok(200), "nobody noted a later row");
        assert_eq!(verify(right, Some(&[0; OCTETS]), &[]), Err(Fault { number: 1, kind: FaultKind::Forged }));
    }

    #[test]
    fn a_key_that_is_lost_is_replaced_and_the_first_key_shows_where() {
        let (folder, store, key) = store(10);
        drop(store);
        fs::remove_file(folder.path().join(KEY_FILE)).expect("removed");
        let store = Store::open(folder.path()).expect("a store");
        store.audit(&[event(11)]).expect("written");
        assert_eq!(verify(rows(&store), None, &[]), Ok(11));
        assert_eq!(verify(rows(&store), Some(&key), &[]), Err(Fault { number: 11, kind: FaultKind::Forged }));
    }

    #[test]
    fn rows_that_are_gone_with_their_database_are_noticed() {
        let (folder, store, _) = store(600);
        drop(store);
        let database = Connection::open(folder.path().join("changes.db")).expect("a database");
        database.execute("DELETE FROM audit WHERE number > 100", []).expect("deleted");
        drop(database);
        assert!(Store::open(folder.path()).is_err(), "the key has moved on");
    }
}
