//! Clients as they are recorded: as they are, by network, under a pseudonym, or not at all.
//!
//! A pseudonym is the beginning of an HMAC-SHA-256 of the address. Its key is drawn anew each day
//! and then forgotten, so that nobody can try out addresses on the record of yesterday.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use plan::jobs::RecordedClients;
use wire::Prefix;
use zeroize::Zeroizing;

use crate::client::{Client, PSEUDONYM_OCTETS};
use crate::days::Day;

/// Octets of a key.
const KEY_OCTETS: usize = 32;
/// Octets of a day's number in the file.
const DAY_OCTETS: usize = 8;
/// Pseudonyms that are remembered.
const KNOWN_MAX: usize = 50_000;
/// How much of an address a network is.
const IPV4_BITS: u8 = 24;
const IPV6_BITS: u8 = 56;

/// Says what of clients is recorded.
pub(super) struct Recording {
    clients: RecordedClients,
    except: Vec<Prefix>,
    file: PathBuf,
    key: Option<(Day, Key)>,
    /// The newest day whose key is forgotten.
    forgotten: Day,
    known: HashMap<IpAddr, Client>,
}

impl Recording {
    /// `file` holds the key of the day, so that a restart goes on with it.
    pub(super) fn new(clients: RecordedClients, except: Vec<Prefix>, file: PathBuf) -> Self {
        Self { clients, except, file, key: None, forgotten: Day(0), known: HashMap::new() }
    }

    /// Returns whether nothing of a client is recorded.
    pub(super) fn leaves_out(&self, address: IpAddr) -> bool {
        self.except.iter().any(|prefix| prefix.contains(address))
    }

    /// Returns what is recorded of a client on a day.
    ///
    /// # Errors
    ///
    /// A new key cannot be drawn or kept.
    pub(super) fn client(&mut self, address: IpAddr, day: Day) -> io::Result<Client> {
        match self.clients {
            RecordedClients::Full => Ok(Client::Address(address)),
            RecordedClients::None => Ok(Client::Unknown),
            RecordedClients::Prefix => {
                let bits = if address.is_ipv4() { IPV4_BITS } else { IPV6_BITS };
                Ok(Client::Address(Prefix::new(address, bits).range().0))
            }
            RecordedClients::Pseudonym => self.pseudonym(address, day),
        }
    }

    fn pseudonym(&mut self, address: IpAddr, day: Day) -> io::Result<Client> {
        if day <= self.forgotten {
            return Ok(Client::Unknown);
        }
        // The other way round, a day may be over and have late records. More than that is a clock
        // that went forward and back.
        let is_of_other = |known: &Day| *known < day || known.0 > day.0 + 1;
        if self.key.as_ref().is_none_or(|(known, _)| is_of_other(known)) {
            self.known.clear();
            self.key = Some((day, key_of(&self.file, day)?));
        }
        let Some((_, key)) = self.key.as_ref().filter(|(known, _)| *known == day) else {
            // A late record of a day whose key is forgotten.
            return Ok(Client::Unknown);
        };
        if let Some(known) = self.known.get(&address) {
            return Ok(*known);
        }
        let (octets, len) = Client::Address(address).octets();
        let tag = sign(key, octets.get(..len).unwrap_or_default());
        let pseudonym = tag.as_ref().first_chunk::<PSEUDONYM_OCTETS>();
        let client = pseudonym.map_or(Client::Unknown, |octets| Client::Pseudonym(*octets));
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(address, client);
        Ok(client)
    }
}

impl Recording {
    /// Overwrites and removes the key of another day than today, and any if no pseudonyms are
    /// recorded: also of a server that records nothing at the moment.
    ///
    /// # Errors
    ///
    /// It cannot be overwritten.
    pub(super) fn forget_old(&mut self, today: Day) -> io::Result<()> {
        self.forgotten = Day(today.0 - 1);
        if self.key.as_ref().is_some_and(|(day, _)| *day != today) {
            self.known.clear();
            self.key = None;
        }
        let mut of = [0; DAY_OCTETS];
        let mut file = match OpenOptions::new().read(true).write(true).open(&self.file) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let is_todays = file.read_exact(&mut of).is_ok() && i64::from_be_bytes(of) == today.0;
        if is_todays && matches!(self.clients, RecordedClients::Pseudonym) {
            return Ok(());
        }
        drop(file);
        self.forget_all()
    }

    /// Overwrites and removes the key, whatever day it is of.
    ///
    /// # Errors
    ///
    /// It cannot be overwritten.
    pub(super) fn forget_all(&mut self) -> io::Result<()> {
        self.known.clear();
        self.key = None;
        let mut file = match OpenOptions::new().write(true).open(&self.file) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        file.write_all(&[0; DAY_OCTETS + KEY_OCTETS])?;
        file.sync_data()?;
        std::fs::remove_file(&self.file)
    }
}

/// Returns the key of a day: the one that is kept, or a new one in its place.
fn key_of(file: &Path, day: Day) -> io::Result<Key> {
    let kept = Zeroizing::new(std::fs::read(file).unwrap_or_default());
    if let Some((of, key)) = kept.split_first_chunk::<DAY_OCTETS>()
        && i64::from_be_bytes(*of) == day.0
        && key.len() == KEY_OCTETS
    {
        return Ok(Key::new(HMAC_SHA256, key));
    }
    let mut key = Zeroizing::new([0; KEY_OCTETS]);
    getrandom::fill(&mut *key).map_err(|error| io::Error::other(error.to_string()))?;
    // Readable to nobody else from its beginning; the old one is overwritten.
    let mut out = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(file)?;
    out.write_all(&[&day.0.to_be_bytes()[..], &key[..]].concat())?;
    out.set_len((DAY_OCTETS + KEY_OCTETS) as u64)?;
    out.sync_data()?;
    Ok(Key::new(HMAC_SHA256, &key[..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_client_is_recorded_as_much_as_the_setting_says() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let check = |clients, text: &str, expect: &str| {
            let mut recording = Recording::new(clients, Vec::new(), folder.path().join("key"));
            let client = recording.client(address(text), Day(5)).expect("a client");
            assert_eq!(client.to_string(), expect);
        };
        check(RecordedClients::Full, "192.0.2.77", "192.0.2.77");
        check(RecordedClients::None, "192.0.2.77", "unknown");
        check(RecordedClients::Prefix, "192.0.2.77", "192.0.2.0");
        check(RecordedClients::Prefix, "2001:db8:1:2ff::1", "2001:db8:1:200::");
        assert!(!folder.path().join("key").exists());
    }

    #[test]
    fn a_pseudonym_is_the_same_for_a_day_also_after_a_restart_and_another_on_the_next() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let file = folder.path().join("key");
        let new = || Recording::new(RecordedClients::Pseudonym, Vec::new(), file.clone());
        let mut recording = new();
        let mut of = |text: &str, day| recording.client(address(text), Day(day)).expect("a client");
        let (one, other) = (of("192.0.2.1", 5), of("192.0.2.2", 5));
        assert!(matches!(one, Client::Pseudonym(_)) && one != other && one == of("192.0.2.1", 5));
        let again = new().client(address("192.0.2.1"), Day(5)).expect("a client");
        assert_eq!(again, one);
        assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        let key = std::fs::read(&file).expect("a key");
        assert_ne!(of("192.0.2.1", 6), one);
        assert_eq!(of("192.0.2.1", 5), Client::Unknown, "its key is forgotten");
        let next = std::fs::read(&file).expect("a key");
        assert!(key.len() == next.len() && key[DAY_OCTETS..] != next[DAY_OCTETS..]);
    }

    #[test]
    fn a_key_is_gone_when_its_day_is_over_also_if_nothing_or_no_pseudonym_is_recorded() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let file = folder.path().join("key");
        let new = |clients| Recording::new(clients, Vec::new(), file.clone());
        let of = |recording: &mut Recording, day| {
            recording.client(address("192.0.2.1"), Day(day)).expect("a client")
        };
        let mut idle = new(RecordedClients::Pseudonym);
        let one = of(&mut idle, 5);
        // Another name of the same octets shows what became of them.
        let octets = folder.path().join("octets");
        std::fs::hard_link(&file, &octets).expect("a link");
        idle.forget_old(Day(5)).expect("nothing to do");
        assert_eq!(of(&mut idle, 5), one);
        idle.forget_old(Day(6)).expect("it is overwritten");
        assert_eq!(std::fs::read(&octets).expect("a file"), [0; DAY_OCTETS + KEY_OCTETS]);
        assert!(!file.exists());
        assert_eq!(of(&mut idle, 5), Client::Unknown, "no new key for an old day");
        assert!(!file.exists());
        // Restarted on the same day, and a day later.
        let one = of(&mut idle, 6);
        let mut next = new(RecordedClients::Pseudonym);
        next.forget_old(Day(6)).expect("nothing to do");
        assert_eq!(of(&mut next, 6), one);
        new(RecordedClients::Pseudonym).forget_old(Day(7)).expect("it is overwritten");
        assert!(!file.exists());
        of(&mut next, 7);
        assert!(file.exists());
        new(RecordedClients::Full).forget_old(Day(7)).expect("it is overwritten");
        assert!(!file.exists());
    }

    #[test]
    fn a_clock_that_went_forward_and_back_leaves_clients_their_pseudonyms() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let mut recording = Recording::new(RecordedClients::Pseudonym, Vec::new(), folder.path().join("key"));
        let of = |recording: &mut Recording, day| {
            recording.client(address("192.0.2.1"), Day(day)).expect("a client")
        };
        of(&mut recording, 5);
        of(&mut recording, 90);
        assert!(matches!(of(&mut recording, 5), Client::Pseudonym(_)));
        // By a day: from the next clean-up on.
        of(&mut recording, 6);
        assert_eq!(of(&mut recording, 5), Client::Unknown);
        recording.forget_old(Day(90)).expect("it is overwritten");
        recording.forget_old(Day(5)).expect("it is overwritten");
        assert!(matches!(of(&mut recording, 5), Client::Pseudonym(_)));
    }

    #[test]
    fn clients_that_are_left_out_are_left_out() {
        let prefix = Prefix::new(address("192.0.2.0"), 25);
        let recording = Recording::new(RecordedClients::Full, vec![prefix], PathBuf::new());
        assert!(recording.leaves_out(address("192.0.2.1")) && !recording.leaves_out(address("192.0.2.129")));
    }
}
