//! What everything that strangers send to a server of zones must keep to: signed messages,
//! transfers, updates, and files of a journal that somebody may have damaged.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tsig::{Algorithm, Key, Keys};
use wire::serial::{SerialPolicy, is_newer};
use wire::{HashKey, Message, NameBuf, Rtype, Ttl};
use zone::Zone;
use zone::difference::{Difference, build};
use zone::incoming::{Incoming, Received};
use zone::rows::{Row, Rows};
use zone::update::update as carry_out;
use zones::disk::Disk;
use zones::journal::{FileMark, Journal, Keeps, file_name};

const KEY: HashKey = HashKey::new([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
/// The serial of the version that there is.
const SERIAL: u32 = 5;
/// Octets of a transfer that are taken: more would only take time.
const OCTETS_MAX: u64 = 1 << 18;

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

fn soa() -> Vec<u8> {
    let mut soa = b"\x02ns\x07example\x03org\0\x05admin\x07example\x03org\0".to_vec();
    for number in [SERIAL, 3600, 600, 86_400, 60] {
        soa.extend_from_slice(&number.to_be_bytes());
    }
    soa
}

/// The version that there is.
fn zone() -> Zone {
    let mut rows = Rows::default();
    let records: [(&str, Rtype, &[u8]); 5] = [
        ("example.org", Rtype::NS, b"\x02ns\x07example\x03org\0"),
        ("ns.example.org", Rtype::A, &[192, 0, 2, 1]),
        ("a.example.org", Rtype::A, &[192, 0, 2, 2]),
        ("a.example.org", Rtype::TXT, b"\x01x"),
        ("b.example.org", Rtype::CNAME, b"\x01a\x07example\x03org\0"),
    ];
    for (owner, rtype, rdata) in records {
        rows.push(&Row { owner: name(owner).as_name(), rtype, ttl: Ttl::new(60), rdata });
    }
    build(name("example.org").as_name(), KEY, (Ttl::new(60), &soa()), &rows).expect("a zone")
}

fn rows(zone: &Zone) -> Vec<(Vec<u8>, u16, u32, Vec<u8>)> {
    let mut rows = Vec::new();
    zone.for_each_row(|row| {
        let owner = row.owner.to_folded().as_bytes().to_vec();
        rows.push((owner, row.rtype.0, row.ttl.seconds(), row.rdata.to_vec()));
    });
    rows.sort();
    rows
}

/// A step leads from one version to the other, and is what they differ in.
fn check_step(old: &Zone, step: &Difference, new: &Zone) {
    assert_eq!(new.facts().serial, step.new_serial());
    let found = Difference::between(old, new, &KEY);
    let again = found.apply(old, &KEY).expect("what they differ in fits");
    assert_eq!(rows(&again), rows(new));
}

fn check_zone(zone: &Zone) {
    let mut all = Rows::default();
    zone.for_each_row(|row| all.push(row));
    let (ttl, soa) = zone.soa();
    let again = build(zone.apex(), KEY, (ttl, soa), &all).expect("what is served can be kept");
    assert_eq!(rows(&again), rows(zone));
}

/// A message that may be signed: nobody who has no key is believed, and what is said to them can be
/// read.
pub fn signed(bytes: &[u8]) {
    let Ok(Some(signed)) = tsig::split(bytes) else { return };
    assert!(!tsig::is_signed(&signed.message()), "one signature is one record");
    for algorithm in Algorithm::ALL {
        let key = Key::new(name("key").as_name(), algorithm, b"a secret of the two of us", None);
        let key = Arc::new(key.expect("a key"));
        let keys = Keys::new([Arc::clone(&key)]);
        match tsig::verify(&signed, &keys, signed.time) {
            Ok(_) => panic!("whoever has no key is believed"),
            Err(refusal) => assert!(Message::parse(&refusal.reply).is_ok()),
        }
        let mut request = vec![0; 12];
        let mut verifier = tsig::sign_request(&key, &mut request, signed.time);
        assert!(verifier.take(bytes, signed.time).is_err(), "a reply of a stranger is believed");
        assert!(!verifier.is_complete());
    }
}

/// A transfer: a byte that says whether there is a version, then messages behind their lengths.
pub fn transfer(bytes: &[u8]) {
    let Some((&kind, mut rest)) = bytes.split_first() else { return };
    let have = (kind % 2 == 1).then_some(SERIAL);
    let apex = name("example.org");
    let mut incoming = Incoming::new(apex.as_name(), KEY, have, OCTETS_MAX);
    while let Some((&length, after)) = rest.split_first_chunk::<2>() {
        let (message, after) = after.split_at(usize::from(u16::from_be_bytes(length)).min(after.len()));
        rest = after;
        match incoming.take(message) {
            Ok(None) => {}
            Err(fault) => {
                assert!(!fault.to_string().is_empty());
                return;
            }
            Ok(Some(Received::UpToDate)) => {
                assert!(have.is_some());
                return;
            }
            Ok(Some(Received::Whole(zone))) => return check_zone(&zone),
            Ok(Some(Received::Steps(steps))) => {
                let mut current = zone();
                for step in steps {
                    assert!(is_newer(step.new_serial(), step.old_serial()));
                    let Ok(next) = step.apply(&current, &KEY) else { return };
                    check_step(&current, &step, &next);
                    current = next;
                }
                return;
            }
        }
    }
}

/// An update, by somebody who may change everything.
pub fn update(bytes: &[u8]) {
    let zone = Arc::new(zone());
    if let Ok(Some(updated)) = carry_out(&zone, &KEY, bytes, &|_, _| true, (SerialPolicy::Increment, 0)) {
        assert!(is_newer(updated.zone.facts().serial, SERIAL));
        check_step(&zone, &updated.difference, &updated.zone);
        check_zone(&updated.zone);
    }
}

#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Memory {
    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T) -> io::Result<T> {
        Ok(act(&mut self.0.lock().expect("a lock")))
    }
}

impl Disk for Memory {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.with(|files| files.get(name).cloned())
    }

    fn create(&self, name: &str, octets: &[u8]) -> io::Result<()> {
        self.with(|files| drop(files.insert(name.to_owned(), octets.to_vec())))
    }

    fn append(&self, name: &str, octets: &[u8]) -> io::Result<()> {
        self.with(|files| files.entry(name.to_owned()).or_default().extend_from_slice(octets))
    }

    fn cut(&self, name: &str, octets: u64) -> io::Result<()> {
        self.with(|files| files.entry(name.to_owned()).or_default().truncate(octets as usize))
    }

    fn sync(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.with(|files| {
            if let Some(file) = files.remove(from) {
                files.insert(to.to_owned(), file);
            }
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.with(|files| drop(files.remove(name)))
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }
}

/// Returns entries with checksums that are right, so that what is in them is looked at: each is a
/// kind, a length, and what it says. A kind above 127 leaves the checksum wrong.
fn entries(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    while let Some((&[kind, l0, l1], rest)) = bytes.split_first_chunk::<3>() {
        let (said, rest) = rest.split_at(usize::from(u16::from_be_bytes([l0, l1])).min(rest.len()));
        bytes = rest;
        let length = (said.len() as u64 + 1).to_be_bytes();
        let body = [&[kind & 127], said].concat();
        let mut sum = crc32fast::Hasher::new();
        sum.update(&length);
        sum.update(&body);
        let sum = sum.finalize() ^ u32::from(kind >> 7);
        file.extend_from_slice(&length);
        file.extend_from_slice(&sum.to_be_bytes());
        file.extend_from_slice(&body);
    }
    file
}

/// The files of a journal: the length of the base, its entries, and those of the log.
pub fn journal(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let (base, log) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
    let apex = name("example.org");
    let disk: Arc<dyn Disk> = Arc::new(Memory::default());
    let file = file_name(apex.as_name());
    disk.create(&format!("{file}base"), &entries(base)).expect("memory");
    disk.create(&format!("{file}log"), &entries(log)).expect("memory");
    let open = || {
        let mut journal = Journal::new(Arc::clone(&disk), apex.as_name());
        let found = journal.open(KEY).expect("memory");
        (journal, found)
    };
    let (mut journal, found) = open();
    let Some(zone) = found.zone else { return };
    check_zone(&zone);
    if let Some(last) = found.history.last() {
        assert_eq!(last.new_serial(), zone.facts().serial);
    }
    // What was read once reads the same again, and after it was written anew.
    let (_, again) = open();
    assert_eq!(again.zone.map(|zone| rows(&zone)), Some(rows(&zone)));
    let keeps = match found.file {
        FileMark::Stamp(stamp) => Keeps::Stamp(stamp),
        FileMark::Contents(_) | FileMark::Unknown => Keeps::Same,
    };
    journal.rewrite(&zone, &found.history, (keeps, found.refreshed_at)).expect("memory");
    let (_, again) = open();
    assert_eq!(again.zone.map(|zone| rows(&zone)), Some(rows(&zone)));
    assert_eq!((again.file, again.refreshed_at), (found.file, found.refreshed_at));
}
