//! The power is cut at every octet that a journal writes: what was acknowledged is there afterwards, and nothing is broken.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use keeper::disk::{Disk, Durability};
use keeper::journal::{Journal, file_name};
use wire::{HashKey, NameBuf, Rtype, Ttl};
use zone::Zone;
use zone::difference::{Difference, build};
use zone::rows::{Row, Rows};

const KEY: HashKey = HashKey::new([1, 2]);

/// A disk that loses its power after so many octets.
#[derive(Default)]
struct Fragile {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    left: Mutex<usize>,
    /// What stands where an append was cut: nothing, or octets that were never written.
    tail: &'static [u8],
}

impl Fragile {
    /// Takes as much of `wanted` as there is power for.
    fn power(&self, wanted: usize) -> usize {
        let mut left = self.left.lock().expect("a lock");
        let taken = wanted.min(*left);
        *left -= taken;
        taken
    }
}

fn lost() -> io::Error {
    io::Error::other("no power")
}

impl Disk for Fragile {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.files.lock().expect("a lock").get(name).cloned())
    }

    fn append(&self, name: &str, octets: &[u8], _: Durability) -> io::Result<()> {
        let written = self.power(octets.len());
        let mut files = self.files.lock().expect("a lock");
        let file = files.entry(name.to_owned()).or_default();
        file.extend_from_slice(&octets[..written]);
        if written < octets.len() {
            if *self.left.lock().expect("a lock") == 0 && written > 0 {
                file.extend_from_slice(self.tail);
            }
            return Err(lost());
        }
        // To be sure of it takes power, too.
        if self.power(1) == 1 { Ok(()) } else { Err(lost()) }
    }

    fn cut(&self, name: &str, octets: u64) -> io::Result<()> {
        if self.power(1) == 0 {
            return Err(lost());
        }
        self.files.lock().expect("a lock").entry(name.to_owned()).or_default().truncate(octets as usize);
        Ok(())
    }

    fn replace(&self, name: &str, octets: &[u8]) -> io::Result<()> {
        // The new file is written beside the old one; only its last octet makes it the one that counts.
        if self.power(octets.len() + 1) < octets.len() + 1 {
            return Err(lost());
        }
        self.files.lock().expect("a lock").insert(name.to_owned(), octets.to_vec());
        if self.power(1) == 1 { Ok(()) } else { Err(lost()) }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if self.power(1) == 0 {
            return Err(lost());
        }
        self.files.lock().expect("a lock").remove(name);
        Ok(())
    }
}

fn apex() -> NameBuf {
    NameBuf::from_text("example.org").expect("a name")
}

fn soa(serial: u32) -> (Ttl, Box<[u8]>) {
    let mut soa = [apex().as_name().as_bytes(), apex().as_name().as_bytes()].concat();
    for number in [serial, 1, 2, 3, 4] {
        soa.extend_from_slice(&number.to_be_bytes());
    }
    (Ttl::new(60), soa.into())
}

/// Returns a version: its serial is in its only host's address.
fn version(serial: u32) -> Zone {
    let host = NameBuf::from_text("host.example.org").expect("a name");
    let mut rows = Rows::default();
    let (ttl, soa) = soa(serial);
    rows.push(&Row { owner: apex().as_name(), rtype: Rtype::NS, ttl, rdata: b"\x02ns\0" });
    let rdata = &serial.to_be_bytes();
    rows.push(&Row { owner: host.as_name(), rtype: Rtype::A, ttl, rdata });
    build(apex().as_name(), KEY, (ttl, &soa), &rows).expect("a zone")
}

fn rows(zone: &Zone) -> Vec<(Vec<u8>, u16, Vec<u8>)> {
    let mut rows = Vec::new();
    zone.for_each_row(|row| rows.push((row.owner.as_bytes().to_vec(), row.rtype.0, row.rdata.to_vec())));
    rows.sort();
    rows
}

fn step(from: u32) -> Arc<Difference> {
    Arc::new(Difference::between(&version(from), &version(from + 1), &KEY))
}

/// Does what a zone's life consists of; returns the last version that was acknowledged.
fn live(journal: &mut Journal, acknowledged: &mut Option<u32>) -> io::Result<()> {
    journal.rewrite(&version(1), &[], (7, 0))?;
    *acknowledged = Some(1);
    for from in 1..4 {
        journal.append(&[step(from)], 0)?;
        *acknowledged = Some(from + 1);
    }
    // The log was too large.
    journal.rewrite(&version(4), &[step(2), step(3)], (7, 0))?;
    journal.note_heard(99)?;
    // Two steps in one transfer.
    journal.append(&[step(4), step(5)], 0)?;
    *acknowledged = Some(6);
    // A primary began anew: no step leads there.
    journal.rewrite(&version(2), &[], (7, 0))?;
    *acknowledged = Some(2);
    journal.append(&[step(2)], 0)?;
    *acknowledged = Some(3);
    Ok(())
}

/// What is acknowledged, and what may have been on its way.
fn check(power: usize, tail: &'static [u8]) -> bool {
    let disk = Arc::new(Fragile { left: Mutex::new(power), tail, ..Fragile::default() });
    let mut acknowledged = None;
    let mut journal = Journal::new(Arc::clone(&disk) as _, apex().as_name());
    let is_over = live(&mut journal, &mut acknowledged).is_ok();
    *disk.left.lock().expect("a lock") = usize::MAX;
    let mut journal = Journal::new(Arc::clone(&disk) as _, apex().as_name());
    let found = journal.open(KEY).expect("a disk that works");
    let serial = found.zone.as_ref().map(|zone| zone.facts().serial);
    let possible: &[Option<u32>] = match acknowledged {
        None => &[None, Some(1)],
        Some(1) => &[Some(1), Some(2)],
        // The second time around, too.
        Some(2) => &[Some(2), Some(3)],
        Some(3) => &[Some(3), Some(4)],
        Some(4) => &[Some(4), Some(5), Some(6)],
        Some(_) => &[Some(6), Some(2)],
    };
    assert!(possible.contains(&serial), "power {power}: {serial:?} after {acknowledged:?}");
    if let (Some(zone), Some(serial)) = (&found.zone, serial) {
        assert_eq!(rows(zone), rows(&version(serial)), "power {power}: version {serial} is broken");
        assert_eq!(found.source, 7);
        if let Some(last) = found.history.last() {
            assert_eq!(last.new_serial(), serial, "power {power}: history leads elsewhere");
        }
        // Life goes on.
        journal.append(&[step(serial)], 0).expect("a disk that works");
        let mut journal = Journal::new(Arc::clone(&disk) as _, apex().as_name());
        let found = journal.open(KEY).expect("a disk that works");
        assert_eq!(found.zone.map(|zone| zone.facts().serial), Some(serial + 1), "power {power}");
    }
    is_over
}

#[test]
fn a_cut_anywhere_loses_nothing_that_was_acknowledged() {
    for tail in [&b""[..], &[0; 64], b"\0\0\0\0\0\0\0\x05noise"] {
        let mut power = 0;
        while !check(power, tail) {
            power += 1;
            assert!(power < 100_000, "it never ends");
        }
        assert!(power > 1000, "too little was written for this to mean something");
    }
}

#[test]
fn a_log_with_a_flipped_bit_is_read_up_to_it() {
    let disk = Arc::new(Fragile { left: Mutex::new(usize::MAX), ..Fragile::default() });
    let mut journal = Journal::new(Arc::clone(&disk) as _, apex().as_name());
    let mut acknowledged = None;
    journal.rewrite(&version(1), &[], (7, 0)).expect("a disk");
    for from in 1..4 {
        journal.append(&[step(from)], 0).expect("a disk");
        acknowledged = Some(from + 1);
    }
    assert_eq!(acknowledged, Some(4));
    let log = format!("{}log", file_name(apex().as_name()));
    let whole = disk.read(&log).expect("a disk").expect("a log");
    let mut seen = std::collections::BTreeSet::new();
    for at in 0..whole.len() {
        let mut broken = whole.clone();
        broken[at] ^= 0x10;
        disk.files.lock().expect("a lock").insert(log.clone(), broken);
        let mut journal = Journal::new(Arc::clone(&disk) as _, apex().as_name());
        let zone = journal.open(KEY).expect("a disk").zone.expect("a zone");
        let serial = zone.facts().serial;
        assert_eq!(rows(&zone), rows(&version(serial)), "octet {at}");
        seen.insert(serial);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn files_are_named_after_their_zones() {
    let name = |text: &str| file_name(NameBuf::from_text(text).expect("a name").as_name());
    assert_eq!(name("Example.ORG"), "example.org.");
    assert_eq!(name("0/25.2.0.192.in-addr.arpa"), "0%2f25.2.0.192.in-addr.arpa.");
    assert_eq!(name("a\\.b.example"), "a%2eb.example.");
    assert_eq!(name("."), "%root.");
    assert_eq!(name("\\.\\./etc"), "%2e%2e%2fetc.");
    let long: String = vec!["\\255".repeat(60); 4].join(".");
    assert!(name(&long).len() < 240);
}
