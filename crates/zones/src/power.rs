//! The power is cut at every call and every octet that a journal writes: what was acknowledged is
//! there afterwards, and nothing is broken.

mod fragile;

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::peers::Scope;
use plan::zones::{FileChange, ZonePlan};
use wire::{Class, Flags, HashKey, NameBuf, Opcode, Question, Rcode, Rtype, Section, Ttl, Writer};
use zone::Zone;
use zone::difference::{Difference, build};
use zone::rows::{Row, Rows};

use self::fragile::{Failure, Fragile, Loss, Trust};
use crate::digest::DigestCheck;
use crate::disk::Disk;
use crate::error::ZoneError;
use crate::journal::{FileMark, Journal, Keeps, entry, file_name};
use crate::load::LoadedZone;
use crate::lock::lock;
use crate::managed::{ManagedZone, Origin, Taken};
use crate::register::Register;
use crate::report::report_of;

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

/// Lives through `life` with a disk that loses its power at every call, and in one that writes
/// after its first octet, after every number of them that `every` divides, before its last, and
/// after it; in every way; and has `judge` look at what is left. Returns what is wrong, and how
/// many losses there were.
fn cut_everywhere<S: Default>(
    (trust, every): (Trust, usize),
    life: impl Fn(&Arc<dyn Disk>, &mut S) -> std::io::Result<()> + Sync,
    judge: impl Fn(&Arc<dyn Disk>, &S) -> Result<(), String> + Sync,
) -> (Vec<String>, usize) {
    let whole = Arc::new(Fragile::new(usize::MAX, Loss::Nothing, trust));
    life(&(Arc::clone(&whole) as _), &mut S::default()).expect("a life with power");
    let mut powers = BTreeSet::new();
    for (begins, octets) in whole.calls() {
        let ends = [1, octets.saturating_sub(1), octets];
        let within = (0..octets).step_by(every).chain(ends.into_iter().filter(|&end| end <= octets));
        powers.extend(within.map(|octets| begins + octets));
    }
    // After the last call everything was lived.
    powers.extend(powers.last().map(|last| last + 1));
    let cut = |loss: Loss| {
        let mut wrong = Vec::new();
        for &power in &powers {
            let disk = Arc::new(Fragile::new(power, loss, trust));
            let mut story = S::default();
            let is_over = life(&(Arc::clone(&disk) as _), &mut story).is_ok() && !disk.is_dead();
            assert_eq!(is_over, Some(&power) == powers.last(), "with {power}");
            disk.revive();
            if let Err(what) = judge(&(Arc::clone(&disk) as _), &story) {
                wrong.push(format!("{loss:?} after {power}: {what}"));
            }
        }
        (wrong, powers.len())
    };
    // Each way to lose is tried by a thread of its own.
    let cut = &cut;
    std::thread::scope(|scope| {
        let tries = Loss::ALL.map(|loss| scope.spawn(move || cut(loss)));
        tries.into_iter().fold((Vec::new(), 0), |(mut wrong, losses), one| {
            let (more, count) = one.join().expect("a life that is looked at");
            wrong.extend(more);
            (wrong, losses + count)
        })
    })
}

/// What a zone's life consists of; `story` is the last version that was acknowledged.
fn journal_life(disk: &Arc<dyn Disk>, story: &mut Option<u32>) -> std::io::Result<()> {
    let mut journal = Journal::new(Arc::clone(disk), apex().as_name());
    let mut octets = journal.rewrite(&version(1), &[], (Keeps::File(&version(77)), 0))?;
    *story = Some(1);
    for from in 1..4 {
        octets += journal.append(&[step(from)], octets)?;
        *story = Some(from + 1);
    }
    // The log was too large.
    octets = journal.rewrite(&version(4), &[step(2), step(3)], (Keeps::Same, 0))?;
    octets += journal.note_refreshed_at(99, octets)?;
    // Two steps in one transfer.
    journal.append(&[step(4), step(5)], octets)?;
    *story = Some(6);
    // Somebody begins again, and is not done with it when the power goes.
    journal.open(KEY)?;
    // A primary began anew: no step leads there.
    octets = journal.rewrite(&version(2), &[], (Keeps::Same, 0))?;
    *story = Some(2);
    journal.append(&[step(2)], octets)?;
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
    let (mut journal, found) = open()?;
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
    if rows(zone) != rows(&version(serial)) || found.file != FileMark::Contents(version(77).contents()) {
        return Err(format!("version {serial} is broken"));
    }
    let file = journal.file(KEY).map_err(|error| error.to_string())?.ok_or("its file is lost")?;
    if (rows(&file), file.facts().serial) != (rows(&version(77)), 77) {
        return Err("what its file says is broken".to_owned());
    }
    if found.history.last().is_some_and(|last| last.new_serial() != serial) {
        return Err("the history leads elsewhere".to_owned());
    }
    // Life goes on.
    journal.append(&[step(serial)], found.log_octets).map_err(|error| error.to_string())?;
    let (_, found) = open()?;
    let next = found.zone.map(|zone| zone.facts().serial);
    if next == Some(serial + 1) { Ok(()) } else { Err(format!("{next:?} after {serial}")) }
}

#[test]
fn a_cut_anywhere_loses_nothing_that_was_acknowledged() {
    let (wrong, losses) = cut_everywhere((Trust::ManagedZone, 1), journal_life, judge_journal);
    assert!(wrong.is_empty(), "{} of {losses}, such as {}", wrong.len(), wrong[0]);
    assert!(losses > 5000, "too little was written for this to mean something: {losses}");
}

#[test]
fn a_disk_that_only_says_that_it_has_written_is_found_out() {
    for trust in [Trust::OctetsBroken, Trust::NamesBroken] {
        let (wrong, _) = cut_everywhere((trust, 11), journal_life, judge_journal);
        assert!(!wrong.is_empty(), "{trust:?} makes no difference: nothing was tested");
    }
}

/// Returns the plan of a zone of which the file has this serial, and what becomes of changes of it.
fn loaded((file, how): (u32, FileChange)) -> Arc<LoadedZone> {
    plan_of(version(file), how)
}

fn plan_of(file: Zone, how: FileChange) -> Arc<LoadedZone> {
    // The stamps of a file say nothing.
    let source = 1;
    let file = Arc::new(file);
    let plan = ZonePlan {
        file: Some("org".into()),
        on_file_change: how,
        // So little that it is often written anew.
        journal_octets_max: 700,
        ..ZonePlan::nothing(apex().as_name())
    };
    Arc::new(LoadedZone { zone: Some(file), source, ..LoadedZone::without_file(Arc::new(plan)) })
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

fn zone_life(disk: &Arc<dyn Disk>, story: &mut Updates, how: FileChange) -> std::io::Result<()> {
    let no_power = || std::io::Error::other("no power");
    story.file = 1;
    let mut number = 0;
    for file in [1, 50] {
        story.is_taking = true;
        story.file = file;
        let managed = ManagedZone::open(&loaded((file, how)), Origin::Configured, KEY, disk, 0);
        story.is_taking = false;
        if how == FileChange::Replace {
            story.done.clear();
        }
        for _ in 0..7 {
            number += 1;
            story.asked = Some(number);
            match updated(&managed, number) {
                (Rcode::NOERROR, true) => story.done.push(number),
                (Rcode::SERVFAIL, false) => return Err(no_power()),
                other => panic!("update {number}: {other:?}"),
            }
        }
    }
    // The file is changed while the server runs.
    let managed = ManagedZone::open(&loaded((50, how)), Origin::Configured, KEY, disk, 0);
    story.is_taking = true;
    story.file = 90;
    let taken = managed.take_file(&mut lock(&managed.current), &loaded((90, how)), KEY, 0);
    match how {
        FileChange::Refuse => assert_eq!(taken, Taken::Same),
        // Neither is served before it is on disk: the merge, or the journal that is set aside.
        FileChange::Merge | FileChange::Replace => {
            assert!(matches!(taken, Taken::New | Taken::Same), "{taken:?}");
        }
    }
    Ok(())
}

fn updated(managed: &ManagedZone, number: u8) -> (Rcode, bool) {
    let answered = managed.update(&update(number), &[Arc::new(Scope::default())], KEY, ("a test", 0));
    assert_eq!(answered.trouble.is_some(), answered.rcode == Rcode::SERVFAIL);
    (answered.rcode, answered.is_new)
}

/// Returns the numbers of the updates that are in what is served.
fn updates_in(managed: &ManagedZone) -> Option<Vec<u8>> {
    let zone = lock(&managed.served).clone()?;
    let mut there = Vec::new();
    zone.for_each_row(|row| {
        if row.rtype == Rtype::A && row.owner.as_bytes().get(1) == Some(&b'u') {
            there.extend(row.rdata.last());
        }
    });
    there.sort_unstable();
    Some(there)
}

fn judge_zone(disk: &Arc<dyn Disk>, story: &Updates, how: FileChange) -> Result<(), String> {
    let managed = ManagedZone::open(&loaded((story.file, how)), Origin::Configured, KEY, disk, 0);
    let zone = lock(&managed.served).clone().ok_or("nothing is served")?;
    let there = updates_in(&managed).unwrap_or_default();
    let mut possible = vec![story.done.clone()];
    if let Some(asked) = story.asked {
        possible.push([&story.done[..], &[asked]].concat());
    }
    // What the file says counts from when it is taken.
    if story.is_taking && how == FileChange::Replace {
        possible = vec![Vec::new()];
    }
    if !possible.contains(&there) {
        return Err(format!("{there:?} are left of {:?}", story.done));
    }
    let file = if how == FileChange::Refuse { 1 } else { story.file };
    let host = rows(&version(file));
    if !host.iter().all(|row| rows(&zone).contains(row)) {
        return Err(format!("it is not that of file {file}"));
    }
    // Life goes on.
    let (rcode, is_new) = updated(&managed, 200);
    if (rcode, is_new) != (Rcode::NOERROR, true) {
        return Err(format!("no update any more: {rcode}"));
    }
    drop(managed);
    let managed = ManagedZone::open(&loaded((story.file, how)), Origin::Configured, KEY, disk, 0);
    let serial = lock(&managed.served).as_ref().map(|zone| zone.facts().serial);
    let expected = Some(zone.facts().serial + 1);
    if serial == expected { Ok(()) } else { Err(format!("{serial:?} instead of {expected:?}")) }
}

#[test]
fn no_update_is_lost_that_was_acknowledged() {
    use FileChange::{Merge, Refuse, Replace};
    // Octets of an entry are alike: of those in its middle, every twenty-third.
    let every = 23;
    for how in [Refuse, Merge, Replace] {
        let life = |disk: &Arc<dyn Disk>, story: &mut Updates| zone_life(disk, story, how);
        let judge = |disk: &Arc<dyn Disk>, story: &Updates| judge_zone(disk, story, how);
        let (wrong, losses) = cut_everywhere((Trust::ManagedZone, every), life, judge);
        assert!(wrong.is_empty(), "{how:?}: {} of {losses}, such as {}", wrong.len(), wrong[0]);
        assert!(losses > 5000 / every, "too little was written for this to mean something: {losses}");
        let (wrong, _) = cut_everywhere((Trust::OctetsBroken, 2 * every), life, judge);
        assert!(!wrong.is_empty(), "a disk that lies makes no difference: nothing was tested");
    }
}

/// Carries out updates on a disk that fails, with a start in between; returns those that were
/// acknowledged.
fn life_without_room(disk: &Arc<dyn Disk>) -> Vec<u8> {
    let mut done = Vec::new();
    for range in [1..=9, 10..=18] {
        let managed = ManagedZone::open(&loaded((1, FileChange::Refuse)), Origin::Configured, KEY, disk, 0);
        for number in range {
            match updated(&managed, number) {
                (Rcode::NOERROR, true) => done.push(number),
                (Rcode::SERVFAIL, false) => {}
                other => panic!("update {number}: {other:?}"),
            }
            assert_eq!(updates_in(&managed).as_ref(), Some(&done), "after update {number}");
        }
    }
    done
}

#[test]
fn an_update_that_was_refused_for_want_of_room_is_not_there_after_a_restart() {
    let mut refusals = 0;
    for (calls, needs_room) in [(1, false), (1, true), (2, true), (3, true), (7, true), (usize::MAX, true)] {
        // Ends when all of a life was lived before anything failed.
        for first in 0.. {
            assert!(first < 10_000, "it never ends");
            let failure = Failure { first, calls, needs_room };
            let fragile = Arc::new(Fragile::failing(failure));
            let disk: Arc<dyn Disk> = Arc::clone(&fragile) as _;
            let done = life_without_room(&disk);
            let has_failed = fragile.has_failed();
            fragile.mend();
            let managed =
                ManagedZone::open(&loaded((1, FileChange::Refuse)), Origin::Configured, KEY, &disk, 0);
            assert_eq!(updates_in(&managed).as_ref(), Some(&done), "{failure:?}");
            assert_eq!(updated(&managed, 200), (Rcode::NOERROR, true), "{failure:?}");
            refusals += 18 - done.len();
            if !has_failed {
                break;
            }
        }
    }
    assert!(refusals > 500, "too little was refused for this to mean something: {refusals}");
}

/// Returns a version with records besides that of [`version`].
fn with_records(serial: u32, more: &[(&str, [u8; 4])]) -> Zone {
    let mut all = Rows::default();
    version(serial).for_each_row(|row| all.push(row));
    let (ttl, soa) = soa(serial);
    for (owner, rdata) in more {
        all.push(&Row { owner: name(owner).as_name(), rtype: Rtype::A, ttl, rdata });
    }
    build(apex().as_name(), KEY, (ttl, &soa), &all).expect("a zone")
}

fn kept_with(file: Zone, how: FileChange, disk: &Arc<dyn Disk>) -> (ManagedZone, Zone) {
    let managed = ManagedZone::open(&plan_of(file, how), Origin::Configured, KEY, disk, 0);
    let zone = lock(&managed.served).clone().expect("it is served");
    let copy = Difference::between(&zone, &zone, &KEY).apply(&zone, &KEY).expect("a zone");
    (managed, copy)
}

fn new_disk() -> Arc<dyn Disk> {
    Arc::new(Fragile::new(usize::MAX, Loss::Nothing, Trust::ManagedZone))
}

#[test]
fn a_file_that_says_the_same_changes_nothing_wherever_it_is() {
    let disk = new_disk();
    let (managed, _) = kept_with(version(1), FileChange::Replace, &disk);
    assert_eq!(updated(&managed, 7), (Rcode::NOERROR, true));
    drop(managed);
    for _ in 0..3 {
        let (managed, zone) = kept_with(version(1), FileChange::Replace, &disk);
        assert_eq!((updates_in(&managed), zone.facts().serial), (Some(vec![7]), 2));
        // Read again while it runs.
        assert_eq!(managed.replan(&loaded((1, FileChange::Replace)), KEY, (None, 0)), Taken::Same);
        assert_eq!(updates_in(&managed), Some(vec![7]));
    }
    assert!(disk.read("example.org.base.1").expect("a disk").is_none(), "nothing was set aside");
}

#[test]
fn a_zone_says_who_changed_it_last_and_takes_no_update_while_it_is_removed() {
    let disk = new_disk();
    let (managed, _) = kept_with(version(1), FileChange::Merge, &disk);
    let report = || report_of(&managed, &lock(&managed.current), 0);
    let by = || report().change.map(|change| (change.by, change.at));
    assert_eq!(by(), None, "nobody since the start");
    let load = |serial, by| managed.load(version(serial), KEY, (by, u64::from(serial))).expect("a version");
    assert!(load(5, "anna"));
    assert_eq!((by(), report().changed_by_others_at), (Some(("anna".to_owned(), 5)), None));
    let scopes = [Arc::new(Scope::default())];
    let change = || managed.update(&update(7), &scopes, KEY, ("an UPDATE with the key k.", 6)).rcode;
    lock(&managed.current).is_removed = true;
    assert_eq!(change(), Rcode::NOTAUTH);
    assert!(matches!(managed.load(version(9), KEY, ("ben", 9)), Err(ZoneError::NotFound(_))));
    assert_eq!(by(), Some(("anna".to_owned(), 5)), "nothing has changed");
    lock(&managed.current).is_removed = false;
    assert_eq!(change(), Rcode::NOERROR);
    let by_update = Some(("an UPDATE with the key k.".to_owned(), 6));
    assert_eq!((by(), report().changed_by_others_at), (by_update, Some(6)));
}

#[test]
fn a_file_that_changes_is_not_taken_before_somebody_decides() {
    use FileChange::{Merge, Refuse, Replace};
    for how in [Merge, Replace] {
        let disk = new_disk();
        let (managed, _) = kept_with(version(1), Refuse, &disk);
        assert_eq!(updated(&managed, 7), (Rcode::NOERROR, true));
        let changed = || with_records(1, &[("new.example.org", [192, 0, 2, 99])]);
        assert_eq!(managed.replan(&plan_of(changed(), Refuse), KEY, (None, 0)), Taken::Same);
        drop(managed);
        // So it stays over a start.
        let (managed, zone) = kept_with(changed(), Refuse, &disk);
        assert_eq!((updates_in(&managed), zone.facts().serial), (Some(vec![7]), 2));
        let why =
            lock(&managed.current).pending.as_ref().map(|pending| pending.why.clone()).expect("a reason");
        assert!(why.contains("1 records") && why.contains("--merge") && why.contains("--replace"), "{why}");
        // Updates go on.
        assert_eq!(updated(&managed, 8), (Rcode::NOERROR, true));
        // The file is as it was, and changes again.
        assert_eq!(managed.replan(&loaded((1, Refuse)), KEY, (None, 0)), Taken::Same);
        assert!(lock(&managed.current).pending.is_none());
        assert!(managed.decide_now(how, KEY, ("anna", 0)).is_ok_and(|(taken, _)| taken == Taken::Same));
        assert_eq!(managed.replan(&plan_of(changed(), Refuse), KEY, (None, 0)), Taken::Same);
        assert!(managed.decide_now(how, KEY, ("anna", 0)).is_ok_and(|(taken, _)| taken == Taken::New));
        drop(managed);
        // The decision holds for what the file says.
        let (managed, zone) = kept_with(changed(), Refuse, &disk);
        assert!(lock(&managed.current).pending.is_none());
        let expected = if how == Merge { vec![7, 8] } else { Vec::new() };
        assert_eq!((updates_in(&managed), zone.facts().serial), (Some(expected), 4));
        assert!(rows(&zone).iter().any(|(_, _, rdata)| *rdata == [192, 0, 2, 99]), "{how:?}");
        let is_aside = disk.read("example.org.base.1").expect("a disk").is_some();
        assert_eq!(is_aside, how == Replace);
    }
}

#[test]
fn a_change_of_the_file_is_merged_with_what_was_changed_here() {
    let disk = new_disk();
    let old = [("gone.example.org", [192, 0, 2, 50]), ("both.example.org", [192, 0, 2, 51])];
    let (managed, _) = kept_with(with_records(1, &old), FileChange::Merge, &disk);
    assert_eq!(updated(&managed, 7), (Rcode::NOERROR, true));
    // One record goes, one comes, one comes that was added here, too.
    let new = [
        ("both.example.org", [192, 0, 2, 51]),
        ("new.example.org", [192, 0, 2, 52]),
        ("u7.example.org", [192, 0, 2, 7]),
    ];
    assert_eq!(
        managed.replan(&plan_of(with_records(9, &new), FileChange::Merge), KEY, (None, 0)),
        Taken::New
    );
    drop(managed);
    let (managed, zone) = kept_with(with_records(9, &new), FileChange::Merge, &disk);
    assert_eq!((rows(&zone), zone.facts().serial), (rows(&with_records(9, &new)), 9));
    // What is the file's now goes with it.
    assert_eq!(updated(&managed, 8), (Rcode::NOERROR, true));
    assert_eq!(managed.replan(&loaded((9, FileChange::Merge)), KEY, (None, 0)), Taken::New);
    assert_eq!(updates_in(&managed), Some(vec![8]));
    // Nothing but a serial: no reason to refuse anything.
    assert_eq!(managed.replan(&loaded((9, FileChange::Refuse)), KEY, (None, 0)), Taken::Same);
    let mut only_serial = Rows::default();
    version(9).for_each_row(|row| only_serial.push(row));
    let (ttl, soa) = soa(4000);
    let only_serial = build(apex().as_name(), KEY, (ttl, &soa), &only_serial).expect("a zone");
    assert_eq!(managed.replan(&plan_of(only_serial, FileChange::Refuse), KEY, (None, 0)), Taken::New);
    assert_eq!((updates_in(&managed), managed.serial()), (Some(vec![8]), 4000));
}

#[test]
fn what_does_not_fit_together_is_not_merged() {
    let disk = new_disk();
    let (managed, _) = kept_with(version(1), FileChange::Merge, &disk);
    assert_eq!(updated(&managed, 7), (Rcode::NOERROR, true));
    let mut all = Rows::default();
    version(2).for_each_row(|row| all.push(row));
    let (ttl, soa) = soa(2);
    let alias = name("u7.example.org");
    all.push(&Row { owner: alias.as_name(), rtype: Rtype::CNAME, ttl, rdata: b"\x02ns\0" });
    let file = build(apex().as_name(), KEY, (ttl, &soa), &all).expect("a zone");
    assert_eq!(managed.replan(&plan_of(file, FileChange::Merge), KEY, (None, 0)), Taken::Same);
    assert_eq!(updates_in(&managed), Some(vec![7]));
    let why =
        managed.decide_now(FileChange::Merge, KEY, ("anna", 0)).expect_err("it does not fit").to_string();
    assert!(why.contains("u7.example.org.") && why.contains("--replace"), "{why}");
    assert!(managed.decide_now(FileChange::Replace, KEY, ("anna", 0)).is_ok());
    assert_eq!(updates_in(&managed), Some(Vec::new()));
}

#[test]
fn a_zone_that_came_from_a_primary_and_gets_a_file_is_what_the_file_says() {
    let disk = new_disk();
    let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
    journal.rewrite(&version(70), &[], (Keeps::Nothing, 1000)).expect("a disk");
    let (_, zone) = kept_with(version(80), FileChange::Refuse, &disk);
    assert_eq!((zone.facts().serial, rows(&zone)), (80, rows(&version(80))));
    assert!(disk.read("example.org.base.1").expect("a disk").is_some(), "it is set aside");
}

/// Returns the plan of a zone from a web server, which is kept or not.
fn from_elsewhere(keeps: bool) -> Arc<LoadedZone> {
    let urls = vec!["https://example.org/zone".to_owned()];
    let plan = ZonePlan { urls, keeps, journal_octets_max: 1 << 20, ..ZonePlan::nothing(apex().as_name()) };
    Arc::new(LoadedZone::without_file(Arc::new(plan)))
}

#[test]
fn nothing_is_left_of_a_zone_that_is_not_kept_any_more() {
    let (disk, now) = (new_disk(), (1000, None));
    let digest = DigestCheck::by_settings(None, apex().as_name());
    let open = |keeps| ManagedZone::open(&from_elsewhere(keeps), Origin::Configured, KEY, &disk, 1000);
    let serial = |managed: &ManagedZone| lock(&managed.served).as_ref().map(|zone| zone.facts().serial);
    let is_there =
        || ["base", "log"].map(|end| disk.read(&format!("example.org.{end}")).expect("a disk").is_some());
    let go_on = |managed: &ManagedZone, from: u32| {
        let mut current = lock(&managed.current);
        let step = Difference::between(&version(from), &version(from + 1), &KEY);
        managed.take_steps(&mut current, vec![step], (KEY, &digest), now).expect("a step");
        managed.note_refreshed(&mut current, now);
    };
    let managed = open(true);
    managed.take_whole(&mut lock(&managed.current), version(1), KEY, now);
    go_on(&managed, 1);
    assert_eq!(is_there(), [true, true]);
    // While it runs; later versions and that they are fresh are not written either.
    managed.replan(&from_elsewhere(false), KEY, (None, 1000));
    assert_eq!((serial(&managed), is_there()), (Some(2), [false, false]));
    go_on(&managed, 2);
    assert_eq!((serial(&managed), is_there()), (Some(3), [false, false]));
    // It is kept again, and the next steps follow what is there.
    managed.replan(&from_elsewhere(true), KEY, (None, 1000));
    go_on(&managed, 3);
    drop(managed);
    assert_eq!(serial(&open(true)), Some(4));
    // And at a start.
    assert_eq!((serial(&open(false)), is_there()), (None, [false, false]));
}

#[test]
fn so_many_journals_are_set_aside_and_no_more() {
    let disk = new_disk();
    for file in 0..6 {
        let (managed, _) = kept_with(version(1 + 10 * file), FileChange::Replace, &disk);
        assert_eq!(updated(&managed, 7), (Rcode::NOERROR, true));
    }
    let is_there = |name: &str| disk.read(name).expect("a disk").is_some();
    let found = [1, 2, 3, 4].map(|number| {
        (is_there(&format!("example.org.base.{number}")), is_there(&format!("example.org.log.{number}")))
    });
    assert_eq!(found, [(true, true), (true, true), (true, true), (false, false)]);
}

#[test]
fn a_journal_of_an_earlier_release_is_known_by_the_stamps_of_the_file() {
    for (stamp, is_known) in [(1_u64, true), (2, false)] {
        let disk = new_disk();
        let (managed, _) = kept_with(version(1), FileChange::Refuse, &disk);
        assert_eq!(updated(&managed, 7), (Rcode::NOERROR, true));
        drop(managed);
        // As it was written: stamps in place of the file.
        let base = disk.read("example.org.base").expect("a disk").expect("a base");
        let (kind, said, _) = crate::journal::split(&base).expect("an entry");
        let said = [&said[..8], &stamp.to_be_bytes(), &said[16..]].concat();
        disk.create("example.org.base", &entry(kind, &[&said])).expect("a disk");
        let (managed, _) = kept_with(version(1), FileChange::Refuse, &disk);
        assert_eq!(updates_in(&managed), Some(vec![7]));
        assert_eq!(lock(&managed.current).pending.is_none(), is_known);
        if is_known {
            let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
            let found = journal.open(KEY).expect("a disk");
            assert_eq!(found.file, FileMark::Contents(version(1).contents()));
        }
    }
}

#[test]
fn a_log_with_a_flipped_bit_is_read_up_to_it() {
    let disk: Arc<dyn Disk> = Arc::new(Fragile::new(usize::MAX, Loss::Nothing, Trust::ManagedZone));
    let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
    let mut octets = journal.rewrite(&version(1), &[], (Keeps::Same, 0)).expect("a disk");
    for from in 1..4 {
        octets += journal.append(&[step(from)], octets).expect("a disk");
    }
    let log = format!("{}log", file_name(apex().as_name()));
    let whole = disk.read(&log).expect("a disk").expect("a log");
    let mut seen = BTreeSet::new();
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
    let disk: Arc<dyn Disk> = Arc::new(Fragile::new(usize::MAX, Loss::Nothing, Trust::ManagedZone));
    let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
    let octets = journal.rewrite(&version(1), &[], (Keeps::Same, 0)).expect("a disk");
    journal.append(&[step(1)], octets).expect("a disk");
    let log = format!("{}log", file_name(apex().as_name()));
    let old = disk.read(&log).expect("a disk").expect("a log");
    journal.remove().expect("a disk");
    let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
    journal.rewrite(&version(1), &[], (Keeps::Same, 0)).expect("a disk");
    disk.create(&log, &old).expect("a disk");
    let found = Journal::new(Arc::clone(&disk), apex().as_name()).open(KEY).expect("a disk");
    assert_eq!(found.zone.map(|zone| zone.facts().serial), Some(1));
}

#[test]
fn a_version_that_brought_its_keys_is_known_for_that_after_a_start() {
    let disk: Arc<dyn Disk> = Arc::new(Fragile::new(usize::MAX, Loss::Nothing, Trust::ManagedZone));
    let found = || Journal::new(Arc::clone(&disk), apex().as_name()).open(KEY).expect("a disk");
    let says = |found: crate::journal::Found| {
        found.zone.map(|zone| (zone.facts().serial, zone.facts().has_own_keys))
    };
    let mut journal = Journal::new(Arc::clone(&disk), apex().as_name());
    let with_keys = |serial| version(serial).with_own_keys();
    journal.rewrite(&with_keys(1), &[], (Keeps::Same, 0)).expect("a disk");
    assert_eq!(says(found()), Some((1, true)));
    assert!(journal.takes_steps_to(&with_keys(2)) && !journal.takes_steps_to(&version(2)));
    journal.append(&[step(1)], 0).expect("a disk");
    assert_eq!(says(found()), Some((2, true)));
    journal.rewrite(&version(3), &[], (Keeps::Same, 0)).expect("a disk");
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

/// What is known of a register: the zones whose addition was acknowledged, and what was asked for
/// last.
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
    let known: BTreeSet<&String> = story.done.iter().chain(&story.asked).collect();
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
    let (wrong, losses) = cut_everywhere((Trust::ManagedZone, 1), register_life, judge_register);
    assert!(wrong.is_empty(), "{} of {losses}, such as {}", wrong.len(), wrong[0]);
    assert!(losses > 1000, "too little was written for this to mean something: {losses}");
    for trust in [Trust::OctetsBroken, Trust::NamesBroken] {
        let (wrong, _) = cut_everywhere((trust, 11), register_life, judge_register);
        assert!(!wrong.is_empty(), "{trust:?} makes no difference: nothing was tested");
    }
}
