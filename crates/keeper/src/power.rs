//! The power is cut at every call and every octet that a journal writes: what was acknowledged is there afterwards, and
//! nothing is broken.

mod fragile;

use std::sync::Arc;

use config::zones::{SignedHere, ZonePlan};
use engine::authority::Scope;
use wire::{Class, Flags, HashKey, NameBuf, Opcode, Question, Rcode, Rtype, Section, Ttl, Writer};
use zone::Zone;
use zone::difference::{Difference, build};
use zone::rows::{Row, Rows};

use self::fragile::{Fragile, Loss, Trust};
use crate::disk::Disk;
use crate::journal::{Journal, file_name};
use crate::kept::{Kept, Origin, Taken, lock};
use crate::register::Register;

const KEY: HashKey = HashKey::new([1, 2]);

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

fn apex() -> NameBuf {
    name("example.org")
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
    let host = name("host.example.org");
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

/// Lives through `life` with a disk that loses its power after every number of calls and octets, in every way, and has
/// `judge` look at what is left. Returns what is wrong, and how many losses there were.
fn cut_everywhere<S: Default>(
    trust: Trust,
    life: impl Fn(&Arc<dyn Disk>, &mut S) -> std::io::Result<()>,
    judge: impl Fn(&Arc<dyn Disk>, &S) -> Result<(), String>,
) -> (Vec<String>, usize) {
    let mut wrong = Vec::new();
    let mut losses = 0;
    for loss in Loss::ALL {
        // Ends when all of a life was lived.
        for power in 0.. {
            assert!(power < 100_000, "it never ends");
            let disk = Arc::new(Fragile::new(power, loss, trust));
            let mut story = S::default();
            let is_over = life(&(Arc::clone(&disk) as _), &mut story).is_ok() && !disk.is_dead();
            disk.revive();
            losses += 1;
            if let Err(what) = judge(&(Arc::clone(&disk) as _), &story) {
                wrong.push(format!("{loss:?} after {power}: {what}"));
            }
            if is_over {
                break;
            }
        }
    }
    (wrong, losses)
}

/// What a zone's life consists of; `story` is the last version that was acknowledged.
fn journal_life(disk: &Arc<dyn Disk>, story: &mut Option<u32>) -> std::io::Result<()> {
    let mut journal = Journal::new(Arc::clone(disk), apex().as_name());
    journal.rewrite(&version(1), &[], (7, 0))?;
    *story = Some(1);
    for from in 1..4 {
        journal.append(&[step(from)], 0)?;
        *story = Some(from + 1);
    }
    // The log was too large.
    journal.rewrite(&version(4), &[step(2), step(3)], (7, 0))?;
    journal.note_heard(99)?;
    // Two steps in one transfer.
    journal.append(&[step(4), step(5)], 0)?;
    *story = Some(6);
    // Somebody begins again, and is not done with it when the power goes.
    journal.open(KEY)?;
    // A primary began anew: no step leads there.
    journal.rewrite(&version(2), &[], (7, 0))?;
    *story = Some(2);
    journal.append(&[step(2)], 0)?;
    *story = Some(3);
    Ok(())
}

/// Looks at what is left, after the power was lost once more while that was read.
fn judge_journal(disk: &Arc<dyn Disk>, story: &Option<u32>) -> Result<(), String> {
    let open = || {
        let mut journal = Journal::new(Arc::clone(disk), apex().as_name());
        let found = journal.open(KEY).map_err(|error| format!("it cannot be read: {error}"))?;
        Ok::<_, String>((journal, found))
    };
    let (journal, found) = open()?;
    let serial = found.zone.as_ref().map(|zone| zone.facts().serial);
    // What was acknowledged, and what may have been on its way.
    let possible: &[Option<u32>] = match story {
        None => &[None, Some(1)],
        Some(1) => &[Some(1), Some(2)],
        // The second time around, too.
        Some(2) => &[Some(2), Some(3)],
        Some(3) => &[Some(3), Some(4)],
        Some(4) => &[Some(4), Some(5), Some(6)],
        Some(_) => &[Some(6), Some(2)],
    };
    if !possible.contains(&serial) {
        return Err(format!("{serial:?} is left of {story:?}"));
    }
    let (Some(zone), Some(serial)) = (&found.zone, serial) else { return Ok(()) };
    if rows(zone) != rows(&version(serial)) || found.source != 7 {
        return Err(format!("version {serial} is broken"));
    }
    if found.history.last().is_some_and(|last| last.new_serial() != serial) {
        return Err("the history leads elsewhere".to_owned());
    }
    // Life goes on.
    journal.append(&[step(serial)], 0).map_err(|error| error.to_string())?;
    let (_, found) = open()?;
    let next = found.zone.map(|zone| zone.facts().serial);
    if next == Some(serial + 1) { Ok(()) } else { Err(format!("{next:?} after {serial}")) }
}

#[test]
fn a_cut_anywhere_loses_nothing_that_was_acknowledged() {
    let (wrong, losses) = cut_everywhere(Trust::Kept, journal_life, judge_journal);
    assert!(wrong.is_empty(), "{} of {losses}, such as {}", wrong.len(), wrong[0]);
    assert!(losses > 5000, "too little was written for this to mean something: {losses}");
}

#[test]
fn a_disk_that_only_says_that_it_has_written_is_found_out() {
    for trust in [Trust::OctetsBroken, Trust::NamesBroken] {
        let (wrong, _) = cut_everywhere(trust, journal_life, judge_journal);
        assert!(!wrong.is_empty(), "{trust:?} makes no difference: nothing was tested");
    }
}

fn plan(file: u32) -> Arc<ZonePlan> {
    Arc::new(ZonePlan {
        apex: apex(),
        zone: Some(Arc::new(version(file))),
        signed: SignedHere::Nothing,
        file: Some("org".into()),
        source: u64::from(file),
        primaries: Vec::new(),
        notify: Vec::new(),
        rights: Arc::default(),
        // So little that it is often written anew.
        journal_octets_max: 700,
        catalog_role: None,
        member_of: None,
        beside: None,
        for_members: None,
    })
}

/// Returns an update that adds the address 192.0.2.`number` at a name of its own.
fn update(number: u8) -> Vec<u8> {
    let mut message = vec![0; 512];
    let limit = message.len();
    let mut writer = Writer::new(&mut message, limit, 1, Flags(0).with_opcode(Opcode::UPDATE));
    let apex = apex();
    let question = Question { qname: apex.as_name(), qtype: Rtype::SOA, qclass: Class::IN };
    writer.question(&question).expect("room");
    let owner = name(&format!("u{number}.example.org"));
    let section = Section::Authority;
    let address = [192, 0, 2, number];
    let written = writer
        .record(section, owner.as_name(), Rtype::A, Class::IN, Ttl::new(60), |writer| writer.bytes(&address));
    written.expect("room");
    let len = writer.finish();
    message.truncate(len);
    message
}

/// What became of a zone that is a file and is updated.
#[derive(Default)]
struct Updates {
    /// The file as it is now.
    file: u32,
    /// Updates that were acknowledged since the file was changed.
    done: Vec<u8>,
    /// The one that was asked for last.
    asked: Option<u8>,
    /// The file is being taken.
    is_taking: bool,
}

fn zone_life(disk: &Arc<dyn Disk>, story: &mut Updates) -> std::io::Result<()> {
    let no_power = || std::io::Error::other("no power");
    story.file = 1;
    let mut number = 0;
    for file in [1, 50] {
        story.is_taking = true;
        story.file = file;
        let kept = Kept::open(&plan(file), Origin::Configured, KEY, disk, 0);
        story.is_taking = false;
        story.done.clear();
        for _ in 0..7 {
            number += 1;
            story.asked = Some(number);
            match kept.update(&update(number), &[Arc::new(Scope::default())], KEY, 0) {
                (Rcode::NOERROR, true) => story.done.push(number),
                (Rcode::SERVFAIL, false) => return Err(no_power()),
                other => panic!("update {number}: {other:?}"),
            }
        }
    }
    // The file is changed while the server runs.
    let kept = Kept::open(&plan(50), Origin::Configured, KEY, disk, 0);
    story.is_taking = true;
    story.file = 90;
    let taken = kept.take_file(&mut lock(&kept.current), &plan(90), KEY, 0);
    assert_eq!(taken, Taken::New);
    Ok(())
}

fn judge_zone(disk: &Arc<dyn Disk>, story: &Updates) -> Result<(), String> {
    let kept = Kept::open(&plan(story.file), Origin::Configured, KEY, disk, 0);
    let zone = lock(&kept.served).clone().ok_or("nothing is served")?;
    let mut there = Vec::new();
    zone.for_each_row(|row| {
        if row.rtype == Rtype::A && row.owner.as_bytes().get(1) == Some(&b'u') {
            there.extend(row.rdata.last());
        }
    });
    there.sort_unstable();
    let mut possible = vec![story.done.clone()];
    if let Some(asked) = story.asked {
        possible.push([&story.done[..], &[asked]].concat());
    }
    // What the file says counts from when it is taken.
    if story.is_taking {
        possible = vec![Vec::new()];
    }
    if !possible.contains(&there) {
        return Err(format!("{there:?} are left of {:?}", story.done));
    }
    let host = rows(&version(story.file));
    if !host.iter().all(|row| rows(&zone).contains(row)) {
        return Err(format!("it is not that of file {}", story.file));
    }
    // Life goes on.
    let (rcode, is_new) = kept.update(&update(200), &[Arc::new(Scope::default())], KEY, 0);
    if (rcode, is_new) != (Rcode::NOERROR, true) {
        return Err(format!("no update any more: {rcode}"));
    }
    drop(kept);
    let kept = Kept::open(&plan(story.file), Origin::Configured, KEY, disk, 0);
    let serial = lock(&kept.served).as_ref().map(|zone| zone.facts().serial);
    let expected = Some(zone.facts().serial + 1);
    if serial == expected { Ok(()) } else { Err(format!("{serial:?} instead of {expected:?}")) }
}

#[test]
fn no_update_is_lost_that_was_acknowledged() {
    let (wrong, losses) = cut_everywhere(Trust::Kept, zone_life, judge_zone);
    assert!(wrong.is_empty(), "{} of {losses}, such as {}", wrong.len(), wrong[0]);
    assert!(losses > 5000, "too little was written for this to mean something: {losses}");
    let (wrong, _) = cut_everywhere(Trust::OctetsBroken, zone_life, judge_zone);
    assert!(!wrong.is_empty(), "a disk that lies makes no difference: nothing was tested");
}

#[test]
fn a_log_with_a_flipped_bit_is_read_up_to_it() {
    let disk: Arc<dyn Disk> = Arc::new(Fragile::new(usize::MAX, Loss::Nothing, Trust::Kept));
    let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
    journal.rewrite(&version(1), &[], (7, 0)).expect("a disk");
    for from in 1..4 {
        journal.append(&[step(from)], 0).expect("a disk");
    }
    let log = format!("{}log", file_name(apex().as_name()));
    let whole = disk.read(&log).expect("a disk").expect("a log");
    let mut seen = std::collections::BTreeSet::new();
    for at in 0..whole.len() {
        let mut broken = whole.clone();
        broken[at] ^= 0x10;
        disk.create(&log, &broken).expect("a disk");
        let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
        let zone = journal.open(KEY).expect("a disk").zone.expect("a zone");
        let serial = zone.facts().serial;
        assert_eq!(rows(&zone), rows(&version(serial)), "octet {at}");
        seen.insert(serial);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn the_log_of_an_earlier_life_does_not_count() {
    let disk: Arc<dyn Disk> = Arc::new(Fragile::new(usize::MAX, Loss::Nothing, Trust::Kept));
    let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
    journal.rewrite(&version(1), &[], (7, 0)).expect("a disk");
    journal.append(&[step(1)], 0).expect("a disk");
    let log = format!("{}log", file_name(apex().as_name()));
    let old = disk.read(&log).expect("a disk").expect("a log");
    journal.remove().expect("a disk");
    let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
    journal.rewrite(&version(1), &[], (7, 0)).expect("a disk");
    disk.create(&log, &old).expect("a disk");
    let found = Journal::new(Arc::clone(&disk), apex().as_name()).open(KEY).expect("a disk");
    assert_eq!(found.zone.map(|zone| zone.facts().serial), Some(1));
}

#[test]
fn a_version_that_brought_its_keys_is_known_for_that_after_a_start() {
    let disk: Arc<dyn Disk> = Arc::new(Fragile::new(usize::MAX, Loss::Nothing, Trust::Kept));
    let found = || Journal::new(Arc::clone(&disk), apex().as_name()).open(KEY).expect("a disk");
    let says = |found: crate::journal::Found| {
        found.zone.map(|zone| (zone.facts().serial, zone.facts().has_own_keys))
    };
    let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
    let with_keys = |serial| version(serial).with_own_keys();
    journal.rewrite(&with_keys(1), &[], (7, 0)).expect("a disk");
    assert_eq!(says(found()), Some((1, true)));
    assert!(journal.takes_steps_to(&with_keys(2)) && !journal.takes_steps_to(&version(2)));
    journal.append(&[step(1)], 0).expect("a disk");
    assert_eq!(says(found()), Some((2, true)));
    journal.rewrite(&version(3), &[], (7, 0)).expect("a disk");
    assert_eq!(says(found()), Some((3, false)));
}

#[test]
fn files_are_named_after_their_zones() {
    let called = |text: &str| file_name(name(text).as_name());
    assert_eq!(called("Example.ORG"), "example.org.");
    assert_eq!(called("0/25.2.0.192.in-addr.arpa"), "0%2f25.2.0.192.in-addr.arpa.");
    assert_eq!(called("a\\.b.example"), "a%2eb.example.");
    assert_eq!(called("."), "%root.");
    assert_eq!(called("\\.\\./etc"), "%2e%2e%2fetc.");
    let long: String = vec!["\\255".repeat(60); 4].join(".");
    assert!(called(&long).len() < 240);
}

/// What is known of a register: the zones whose addition was acknowledged, and what was asked for last.
#[derive(Default)]
struct Additions {
    done: Vec<String>,
    asked: Vec<String>,
}

fn register_life(disk: &Arc<dyn Disk>, story: &mut Additions) -> std::io::Result<()> {
    let mut register = Register::on(Arc::clone(disk));
    for round in 0..3 {
        let names: Vec<String> = (0..3).map(|number| format!("z{round}{number}.example.")).collect();
        let apexes: Vec<NameBuf> = names.iter().map(|text| name(text)).collect();
        story.asked = [&story.done[..], &names[..]].concat();
        register.add(&apexes, "like: others")?;
        story.done.clone_from(&story.asked);
        story.asked.retain(|asked| *asked != names[1]);
        register.remove(&apexes[1..2])?;
        story.done.clone_from(&story.asked);
        // Somebody begins again.
        register = Register::on(Arc::clone(disk));
    }
    Ok(())
}

fn judge_register(disk: &Arc<dyn Disk>, story: &Additions) -> Result<(), String> {
    let open = || {
        let register = Register::on(Arc::clone(disk));
        let names = register.zones().keys().filter_map(|key| wire::Name::parse(key).ok());
        let names: Vec<String> = names.map(|(name, _)| name.to_string()).collect();
        (register, names)
    };
    let (mut register, there) = open();
    // Of what was asked for and not acknowledged, any may be there; nothing else has changed.
    let both = |zone: &String| story.done.contains(zone) == story.asked.contains(zone);
    let known: std::collections::BTreeSet<&String> = story.done.iter().chain(&story.asked).collect();
    let is_wrong = |zone: &&&String| both(zone) && there.contains(zone) != story.done.contains(zone);
    if let Some(zone) = known.iter().find(is_wrong) {
        return Err(format!("{there:?} are left of {:?}: {zone}", story.done));
    }
    if let Some(zone) = there.iter().find(|zone| !known.contains(zone)) {
        return Err(format!("nobody asked for {zone}"));
    }
    if !register.zones().values().all(|said| **said == *"like: others") {
        return Err("something else is said of zones".to_owned());
    }
    // Life goes on.
    register.add(&[name("next.example")], "like: others").map_err(|error| error.to_string())?;
    let expected = [&there[..], &["next.example.".to_owned()]].concat();
    let mut after = open().1;
    let mut expected = expected;
    after.sort();
    expected.sort();
    if after == expected { Ok(()) } else { Err(format!("{after:?} instead of {expected:?}")) }
}

#[test]
fn no_zone_is_lost_whose_addition_was_acknowledged() {
    let (wrong, losses) = cut_everywhere(Trust::Kept, register_life, judge_register);
    assert!(wrong.is_empty(), "{} of {losses}, such as {}", wrong.len(), wrong[0]);
    assert!(losses > 1000, "too little was written for this to mean something: {losses}");
    for trust in [Trust::OctetsBroken, Trust::NamesBroken] {
        let (wrong, _) = cut_everywhere(trust, register_life, judge_register);
        assert!(!wrong.is_empty(), "{trust:?} makes no difference: nothing was tested");
    }
}
