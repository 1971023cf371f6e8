//! The power is cut after every call of a store that changes something on the disk: what was
//! acknowledged is there afterwards, nothing that was refused is, and the audit log verifies.
//!
//! A life is lived by a process of its own, whose calls are written down (strace). What a disk may
//! hold after each of them is laid down in a folder, and opened.

mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use disk::{Disk, LOSSES, Loss, Op, ops};

use super::*;
use crate::audit::{Event, unhex, verify};

/// Tells the process that it is to live, and where.
const FOLDER: &str = "GANNET_STORE_LIFE";
/// The file in which it notes how far it has come.
const ACKNOWLEDGED: &str = "acknowledged";

/// A text of a list.
const LIST: &[u8] = b"a.example\n";

/// How a store stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    position: Position,
    said: BTreeMap<String, String>,
    rows: u64,
}

fn standing(store: &Store) -> Standing {
    Standing {
        position: store.position().expect("readable"),
        said: said(store),
        rows: store.last_audited().expect("readable"),
    }
}

fn events(count: u64) -> Vec<Event> {
    let one = |number| Event {
        at: number,
        by: "anna".to_owned(),
        what: "set-add".to_owned(),
        on: format!("{number}"),
        outcome: "done".to_owned(),
        ..Event::default()
    };
    (0..count).map(one).collect()
}

/// Lives; each step is one transaction, and is acknowledged before the next begins.
fn live(folder: &Path, mut acknowledge: impl FnMut(&Store)) {
    let place = folder.join("changes");
    let mut store = Store::open(&place).expect("a store");
    acknowledge(&store);
    let large = |text: &str| text.repeat(INLINE_OCTETS_MAX + 1);
    let mut put = |store: &Store, name: &str, text: Option<&str>| {
        commit(store, name, text);
        acknowledge(store);
    };
    put(&store, "a", Some("1"));
    put(&store, "b", Some("2"));
    put(&store, "long", Some(&large("x")));
    put(&store, "a", None);
    // A long text that is part of no history is there before it is named.
    let mut draft = crate::Files::new(place.join("lists")).draft().expect("a draft");
    draft.write_all(LIST).expect("written");
    let hash = draft.keep().expect("a disk").to_string();
    put(&store, "list", Some(&hash));
    // What is refused is nowhere, also if a part of it was written.
    let stale = Put { expected: Expected::Revision(77), ..put_of("b") };
    let refused = change(vec![super::put("refused", Some(&large("n"))), stale]);
    assert!(matches!(store.commit(&refused), Err(StoreError::Conflict(_))));
    put(&store, "long", Some(&large("y")));
    // The key of the audit log moves on.
    for count in [100, 151, 9, 300] {
        store.audit(&events(count)).expect("a disk");
        acknowledge(&store);
    }
    store.raise_epoch().expect("a disk");
    acknowledge(&store);
    // The log of the database is written back while it is in use, and when it is closed.
    let back = "PRAGMA wal_checkpoint(RESTART)";
    store.state().database.query_row(back, [], |_| Ok(())).expect("a pragma");
    for number in 0..4 {
        commit(&store, &format!("n{number}"), Some(&"z".repeat(5_000)));
        acknowledge(&store);
    }
    drop(store);
    store = Store::open(&place).expect("a store");
    commit(&store, "a", Some("3"));
    acknowledge(&store);
    store.compact("settings", 2).expect("a disk");
    acknowledge(&store);
    commit(&store, "long", None);
    acknowledge(&store);
}

fn put_of(name: &str) -> Put {
    put(name, Some("3"))
}

/// Is the process whose calls are written down.
#[test]
#[ignore = "another test has it run"]
fn life() {
    let folder = std::env::var(FOLDER).expect("the other test says where");
    let folder = Path::new(&folder);
    let mut noted = fs::File::create(folder.join(ACKNOWLEDGED)).expect("a writable directory");
    live(folder, |_| noted.write_all(b".").expect("a writable directory"));
}

/// Looks at what is left, after so many steps were acknowledged.
fn judge(folder: &Path, steps: &[Standing], acknowledged: usize) -> Result<(), String> {
    let place = folder.join("changes");
    let store = Store::open(&place).map_err(|error| format!("it does not open: {error}"))?;
    let found = standing(&store);
    // The one that was on its way may be there, or not.
    let new = Standing { position: Position { epoch: 1, revision: 0 }, said: BTreeMap::new(), rows: 0 };
    let before = acknowledged.checked_sub(1).and_then(|at| steps.get(at)).unwrap_or(&new);
    if found != *before && Some(&found) != steps.get(acknowledged) {
        return Err(format!("{:?} with {} rows is there", found.position, found.rows));
    }
    if let Some(hash) = found.said.get("list")
        && fs::read(place.join("lists").join(hash)).ok().as_deref() != Some(LIST)
    {
        return Err("a list is named whose text is not there".to_owned());
    }
    let first = || {
        let text = fs::read_to_string(Store::first_audit_key(&place)?).ok()?;
        unhex(text.trim().split_once(' ')?.1)
    };
    let rows = |store: &Store| store.audited(0, usize::MAX).map_err(|error| error.to_string());
    let first = first().ok_or("the first key of the audit log is gone")?;
    let verified = verify(rows(&store)?, Some(&first), &[]);
    if verified != Ok(found.rows) {
        return Err(format!("the audit log is wrong: {verified:?}"));
    }
    // It goes on, with the key that follows.
    commit(&store, "after", Some("1"));
    let verified = verify(rows(&store)?, Some(&first), &[]);
    match verified == Ok(found.rows + 1)
        && store.position().is_ok_and(|it| it.revision > before.position.revision)
    {
        true => Ok(()),
        false => Err(format!("it does not go on: {verified:?}")),
    }
}

#[test]
fn a_power_cut_after_any_call_loses_nothing_that_was_acknowledged_and_the_audit_log_verifies() {
    let place = place();
    let lived = place.path().join("lived");
    fs::create_dir(&lived).expect("a folder");
    let mut steps = Vec::new();
    live(&lived, |store| steps.push(standing(store)));
    let (traced, log) = (place.path().join("traced"), place.path().join("calls"));
    fs::create_dir(&traced).expect("a folder");
    let calls = "openat,write,pwrite64,lseek,ftruncate,fsync,fdatasync,rename,unlink,mkdir";
    let output = Command::new("strace")
        .args(["-f", "-qq", "-xx", "-y", "-s", "300000", "-e", &format!("trace={calls}"), "-o"])
        .arg(&log)
        .arg(std::env::current_exe().expect("a test program has a path"))
        .args(["--exact", "tests::power::life", "--ignored", "--test-threads=1"])
        .env(FOLDER, &traced)
        .output()
        .expect("`cargo xtask tools` installs strace");
    assert!(output.status.success(), "{output:?}");
    let ops = ops(&fs::read(&log).expect("the calls"), &traced, ACKNOWLEDGED);
    let acknowledged_of = |ops: &[Op]| ops.iter().filter(|op| matches!(op, Op::Acknowledge)).count();
    assert_eq!(acknowledged_of(&ops), steps.len());
    assert!(ops.iter().filter(|op| matches!(op, Op::SyncFile(_))).count() > steps.len() / 2, "it is synced");
    // What is looked at is looked at well: a disk that syncs nothing has lost something.
    let mut never_synced = Disk::default();
    ops.iter().filter(|op| !matches!(op, Op::SyncFile(_))).for_each(|op| never_synced.carry_out(op));
    for loss in [Loss::All, Loss::Octets, Loss::Names] {
        let folder = tempfile::tempdir_in(place.path()).expect("a folder");
        disk::lay_down(&never_synced.after(loss, None), folder.path());
        assert!(judge(folder.path(), &steps, steps.len()).is_err(), "{loss:?}");
    }
    let cut = |loss: Loss| {
        let (mut wrong, mut cuts, mut seen) = (Vec::new(), 0, BTreeSet::new());
        let mut disk = Disk::default();
        for at in 0..=ops.len() {
            let acknowledged = acknowledged_of(&ops[..at]);
            let left = disk.after(loss, ops.get(at));
            // What was looked at before is not looked at again.
            if seen.insert((acknowledged, disk::digest(&left))) {
                cuts += 1;
                let folder = tempfile::tempdir_in(place.path()).expect("a folder");
                disk::lay_down(&left, folder.path());
                if let Err(why) = judge(folder.path(), &steps, acknowledged) {
                    wrong.push(format!("{loss:?} before call {at} ({:?}): {why}", ops.get(at)));
                }
            }
            if let Some(op) = ops.get(at) {
                disk.carry_out(op);
            }
        }
        (wrong, cuts)
    };
    // Each way to lose is tried by a thread of its own.
    let cut = &cut;
    let (wrong, cuts) = std::thread::scope(|scope| {
        let tries = LOSSES.map(|loss| scope.spawn(move || cut(loss)));
        tries.into_iter().fold((Vec::new(), 0), |(mut wrong, cuts), one| {
            let (more, count) = one.join().expect("nothing else is wrong");
            wrong.extend(more);
            (wrong, cuts + count)
        })
    });
    assert!(wrong.is_empty(), "{} of {cuts}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    assert!(cuts > 200, "{cuts}");
}
