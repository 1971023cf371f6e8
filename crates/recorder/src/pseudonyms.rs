//! Clients as they are recorded: as they are, by network, under a pseudonym, or not at all.
//!
//! A pseudonym is the beginning of an HMAC-SHA-256 of the address. Its key is drawn anew each day
//! and then forgotten, so that nobody can try out addresses on the record of yesterday.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
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
    known: HashMap<IpAddr, Client>,
}

impl Recording {
    /// `file` holds the key of the day, so that a restart goes on with it.
    pub(super) fn new(clients: RecordedClients, except: Vec<Prefix>, file: PathBuf) -> Self {
        Self { clients, except, file, key: None, known: HashMap::new() }
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
        if self.key.as_ref().is_none_or(|(known, _)| *known < day) {
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
    fn clients_that_are_left_out_are_left_out() {
        let prefix = Prefix::new(address("192.0.2.0"), 25);
        let recording = Recording::new(RecordedClients::Full, vec![prefix], PathBuf::new());
        assert!(recording.leaves_out(address("192.0.2.1")) && !recording.leaves_out(address("192.0.2.129")));
    }
}
