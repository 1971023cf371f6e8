//! What is acknowledged is there after whatever happens to the file, and nothing besides.

mod power;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn place() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn open(place: &TempDir) -> Store {
    Store::open(place.path()).expect("a store")
}

fn put(name: &str, text: Option<&str>) -> Put {
    Put {
        space: "settings".to_owned(),
        name: name.to_owned(),
        text: text.map(str::to_owned),
        until: None,
        expected: Expected::Any,
    }
}

fn change(puts: Vec<Put>) -> Change {
    let (by, why) = ("anna".to_owned(), "a test".to_owned());
    Change { by, why, at: 1_000, puts, ..Change::default() }
}

fn commit(store: &Store, name: &str, text: Option<&str>) -> u64 {
    store.commit(&change(vec![put(name, text)])).expect("a disk").revision
}

/// What the store says, by name.
fn said(store: &Store) -> BTreeMap<String, String> {
    let entries = store.entries("settings").expect("readable");
    entries.into_iter().map(|entry| (entry.name, entry.text)).collect()
}

fn said_at(store: &Store, revision: u64) -> BTreeMap<String, String> {
    let then = store.entries_at("settings", revision).expect("known");
    then.into_iter().map(|(name, (text, _))| (name, text)).collect()
}

#[test]
fn what_was_committed_is_there_when_it_is_opened_again() {
    let place = place();
    assert!(!Store::is_in(place.path()));
    let store = open(&place);
    assert!(Store::is_in(place.path()));
    assert_eq!(store.position(), Ok(Position { epoch: 1, revision: 0 }));
    assert_eq!(commit(&store, "cache.main.size", Some("1GiB")), 1);
    assert_eq!(commit(&store, "sets.ads", Some("{lists: []}")), 2);
    assert_eq!(commit(&store, "sets.ads", None), 3);
    assert_eq!(commit(&store, "sets.ads", None), 3, "nothing changes, so there is no revision");
    drop(store);
    let store = open(&place);
    let entries = store.entries("settings").expect("readable");
    let expected = Entry {
        name: "cache.main.size".to_owned(),
        text: "1GiB".to_owned(),
        until: None,
        revision: 1,
        by: "anna".to_owned(),
        at: 1_000,
        why: "a test".to_owned(),
    };
    assert_eq!(entries, [expected]);
    assert_eq!(store.position().expect("readable").revision, 3);
    assert_eq!(store.raise_epoch(), Ok(Position { epoch: 2, revision: 3 }));
    drop(store);
    assert_eq!(open(&place).position(), Ok(Position { epoch: 2, revision: 3 }));
}

#[test]
fn a_change_is_carried_out_whole_or_not_at_all() {
    let place = place();
    let store = open(&place);
    commit(&store, "a", Some("1"));
    let stale = Put { expected: Expected::Revision(7), ..put("a", Some("3")) };
    let refused = store.commit(&change(vec![put("b", Some("2")), stale]));
    let conflict = Conflict::Entry { name: "a".to_owned(), found: Some(1) };
    assert_eq!(refused, Err(StoreError::Conflict(conflict)));
    let new = Put { expected: Expected::Absent, ..put("a", Some("3")) };
    assert!(matches!(store.commit(&change(vec![new])), Err(StoreError::Conflict(_))));
    let late = Change { expected: Some(0), ..change(vec![put("b", Some("2"))]) };
    let moved = Conflict::Moved { expected: 0, found: 1 };
    assert_eq!(store.commit(&late), Err(StoreError::Conflict(moved)));
    assert_eq!(said(&store), [("a".to_owned(), "1".to_owned())].into());
    assert_eq!(store.position().expect("readable").revision, 1);
    let fits = Put { expected: Expected::Revision(1), ..put("a", Some("3")) };
    assert_eq!(store.commit(&Change { expected: Some(1), ..change(vec![fits]) }).expect("fits").revision, 2);
}

#[test]
fn several_changes_are_on_disk_together_each_with_its_revision() {
    let place = place();
    let store = open(&place);
    let by = |by: &str, put| Change { by: by.to_owned(), ..change(vec![put]) };
    let both = [by("anna", put("a", Some("1"))), by("ben", put("b", Some("2")))];
    let revisions = store.commit_all(&both).expect("a disk");
    assert_eq!(revisions.iter().map(|position| position.revision).collect::<Vec<_>>(), [1, 2]);
    let stale = Put { expected: Expected::Absent, ..put("a", Some("4")) };
    assert!(store.commit_all(&[by("anna", put("c", Some("3"))), by("ben", stale)]).is_err());
    assert_eq!(said(&store).len(), 2, "none of them");
    let entries = store.entries("settings").expect("readable");
    assert_eq!(entries.iter().map(|entry| entry.by.as_str()).collect::<Vec<_>>(), ["anna", "ben"]);
    assert_eq!(store.commit_all(&[]), Ok(vec![]));
}

#[test]
fn of_several_texts_of_one_entry_the_last_counts() {
    let place = place();
    let store = open(&place);
    store
        .commit(&change(vec![put("a", Some("1")), put("b", Some("2")), put("a", Some("3"))]))
        .expect("a disk");
    assert_eq!(said(&store), [("a".to_owned(), "3".to_owned()), ("b".to_owned(), "2".to_owned())].into());
    assert_eq!(store.newest(None, None, 10).expect("readable")[0].edits.len(), 2);
    // What a change takes back itself is none.
    assert_eq!(store.commit(&change(vec![put("c", Some("1")), put("c", None)])).expect("a disk").revision, 1);
}

#[test]
fn many_edits_at_once_are_what_they_are_one_by_one() {
    let mut puts: Vec<Put> = (0..1_500).map(|at| put(&format!("n{at}"), Some("new"))).collect();
    puts.push(Put { expected: Expected::Revision(1), ..put("kept", Some("as it was")) });
    puts.push(Put { expected: Expected::Revision(1), ..put("other", Some("first")) });
    puts.push(Put { expected: Expected::Revision(1), ..put("other", Some("last")) });
    puts.push(put("gone", None));
    puts.push(put("never there", None));
    puts.push(Put { space: "set s".to_owned(), expected: Expected::Absent, ..put("kept", Some("there")) });
    let places = [place(), place()];
    let [at_once, one_by_one] = [0, 1].map(|at| open(&places[at]));
    let before = ["kept", "other", "gone"].map(|name| put(name, Some("as it was")));
    // So many others that those of the change are looked up one by one.
    let others = (0..8_000).map(|at| Put { space: "set t".to_owned(), ..put(&format!("t{at}"), Some("t")) });
    assert_eq!(at_once.commit(&change(before.to_vec())).expect("a disk").revision, 1);
    let before = before.into_iter().chain(others).collect();
    assert_eq!(one_by_one.commit(&change(before)).expect("a disk").revision, 1);
    for store in [&at_once, &one_by_one] {
        assert_eq!(store.commit(&change(puts.clone())).expect("a disk").revision, 2);
    }
    let edits = |store: &Store| store.newest(None, None, 1).expect("readable").remove(0).edits;
    assert_eq!(edits(&at_once), edits(&one_by_one));
    assert_eq!(edits(&at_once).len(), 1_503);
    assert_eq!(said(&at_once), said(&one_by_one));
    assert_eq!(said(&at_once).get("other").map(String::as_str), Some("last"));
    assert_eq!(said(&at_once).len(), 1_502);
    assert_eq!((at_once.last_of("settings"), at_once.last_of("set t")), (Ok(2), Ok(0)));
    // What did not hold before does not hold of many either.
    let late = Put { expected: Expected::Revision(1), ..put("other", None) };
    let refused = at_once.commit(&change(puts.iter().cloned().chain([late]).collect()));
    assert!(matches!(refused, Err(StoreError::Conflict(Conflict::Entry { .. }))), "{refused:?}");
    drop((at_once, one_by_one));
    places.iter().for_each(|place| assert_eq!(open(place).position().expect("whole").revision, 2));
}

#[test]
fn a_store_that_was_found_whole_is_looked_through_again_if_it_moved() {
    let place = place();
    let store = open(&place);
    commit(&store, "a", Some("1"));
    let whole = store.whole().expect("readable");
    drop(store);
    let again = Store::open_again(place.path(), None, Some(whole)).expect("whole");
    assert_eq!(said(&again).len(), 1);
    commit(&again, "b", Some("2"));
    drop(again);
    // Another revision, and an entry that is not as it was written.
    let database = Connection::open(place.path().join(FILE)).expect("a database");
    database.execute("UPDATE entries SET text = 'x' WHERE name = 'b'", []).expect("written");
    drop(database);
    let found = Store::open_again(place.path(), None, Some(whole));
    assert!(matches!(found, Err(StoreError::Trouble(Trouble::Damaged(..)))), "{found:?}");
}

#[test]
fn spaces_do_not_see_each_other() {
    let place = place();
    let store = open(&place);
    let member = Put { space: "set/ads".to_owned(), ..put("a", Some("")) };
    store.commit(&change(vec![put("a", Some("1")), member])).expect("a disk");
    assert_eq!(said(&store).len(), 1);
    assert_eq!(store.entries("set/ads").expect("readable")[0].text, "");
    assert_eq!(store.spaces("set/"), Ok(vec!["set/ads".to_owned()]));
    assert_eq!(store.newest(Some("set/ads"), None, 9).expect("readable")[0].edits.len(), 1);
    assert!(store.newest(Some("bans"), None, 9).expect("readable").is_empty());
}

#[test]
fn every_revision_can_be_read_again_until_it_is_forgotten() {
    let place = place();
    let store = open(&place);
    let mut all = vec![said(&store)];
    for (name, text) in [("a", Some("1")), ("b", Some("2")), ("a", Some("3")), ("b", None), ("c", Some("4"))]
    {
        commit(&store, name, text);
        all.push(said(&store));
    }
    for (revision, then) in all.iter().enumerate() {
        assert_eq!(&said_at(&store, revision as u64), then, "{revision}");
    }
    let steps = store.since(3, None, 10).expect("known");
    assert_eq!(steps.iter().map(|step| step.revision).collect::<Vec<_>>(), [4, 5]);
    assert_eq!((steps[0].edits[0].before.as_deref(), steps[0].edits[0].after.as_deref()), (Some("2"), None));
    assert_eq!(store.newest(None, None, 1).expect("known")[0].revision, 5);
    assert_eq!(store.compact("settings", 2), Ok(3));
    assert_eq!(store.compact("settings", 2), Ok(0));
    let forgotten = StoreError::NoRevision { wanted: 2, oldest: 3, newest: 5 };
    assert_eq!(store.entries_at("settings", 2), Err(forgotten.clone()));
    assert_eq!(store.since(2, None, 10), Err(forgotten));
    assert!(matches!(store.entries_at("settings", 6), Err(StoreError::NoRevision { .. })));
    for revision in 3..=5 {
        assert_eq!(said_at(&store, revision), all[revision as usize]);
    }
    // Who made an entry what it is stays known.
    assert_eq!(store.entries("settings").expect("readable")[0].by, "anna");
    assert_eq!(store.newest(None, None, 10).expect("known").len(), 2);
    let before = store.newest(None, Some(5), 10).expect("known");
    assert_eq!(before.iter().map(|step| step.revision).collect::<Vec<_>>(), [4]);
}

#[test]
fn changes_of_other_spaces_push_out_no_history() {
    let place = place();
    let store = open(&place);
    commit(&store, "a", Some("1"));
    commit(&store, "a", Some("2"));
    let of_set = |name: &str| change(vec![Put { space: "set s".to_owned(), ..put(name, Some("x")) }]);
    for number in 0..10 {
        store.commit(&of_set(&number.to_string())).expect("a disk");
    }
    assert_eq!(store.compact("settings", 3), Ok(7));
    assert_eq!(said_at(&store, 1)["a"], "1", "settings can be undone all the same");
    let revisions = |space: &str| -> Vec<u64> {
        let steps = store.newest(Some(space), None, 20).expect("readable");
        steps.iter().map(|step| step.revision).collect()
    };
    assert_eq!((revisions("settings"), revisions("set s")), (vec![2, 1], vec![12, 11, 10]));
    for text in ["3", "4", "5"] {
        commit(&store, "a", Some(text));
    }
    assert_eq!(store.compact("settings", 3), Ok(2));
    assert_eq!((revisions("settings"), revisions("set s")), (vec![15, 14, 13], vec![12, 11, 10]));
    assert_eq!((store.oldest(), said_at(&store, 2)["a"].as_str()), (Ok(2), "2"));
}

#[test]
fn the_history_of_an_entry_is_counted_without_that_of_others() {
    let place = place();
    let store = open(&place);
    commit(&store, "a", Some("1"));
    for text in ["1", "2", "3"] {
        commit(&store, "b", Some(text));
    }
    commit(&store, "a", None);
    let steps = store.newest_of("settings", "a", 2).expect("readable");
    assert_eq!(steps.iter().map(|step| step.revision).collect::<Vec<_>>(), [5, 1]);
    assert_eq!(store.newest_of("settings", "a", 1).expect("readable")[0].edits[0].after, None);
    assert_eq!(store.newest_of("settings", "c", 2), Ok(Vec::new()));
}

#[test]
fn what_is_kept_elsewhere_is_forgotten_and_stays_in_the_history() {
    let place = place();
    let store = open(&place);
    for name in ["1", "2", "3"] {
        commit(&store, name, Some("x"));
    }
    assert_eq!(store.forget("settings", "2"), Ok(2));
    assert_eq!(store.forget("settings", "2"), Ok(0));
    assert_eq!(said(&store).into_keys().collect::<Vec<_>>(), ["3"]);
    assert_eq!(store.position().expect("readable").revision, 3, "it is no change");
    assert_eq!(store.newest(Some("settings"), None, 10).expect("readable").len(), 3);
    drop(store);
    let store = open(&place);
    assert_eq!(said(&store).into_keys().collect::<Vec<_>>(), ["3"]);
    commit(&store, "2", Some("y"));
    assert_eq!(said(&store).len(), 2);
}

#[test]
fn whoever_waits_hears_of_the_next_revision() {
    let place = place();
    let store = Arc::new(open(&place));
    assert_eq!(store.wait_beyond(0, Duration::ZERO).revision, 0);
    let other = Arc::clone(&store);
    let waits = std::thread::spawn(move || other.wait_beyond(0, Duration::from_secs(60)));
    commit(&store, "a", Some("1"));
    assert_eq!(waits.join().expect("it ended").revision, 1);
}

#[test]
fn entries_with_an_end_say_when_the_first_ends() {
    let place = place();
    let store = open(&place);
    assert_eq!(store.next_end("settings"), Ok(None));
    let ends = |name: &str, until| Put { until: Some(until), ..put(name, Some("1")) };
    store.commit(&change(vec![ends("a", 70), ends("b", 50), put("c", Some("1"))])).expect("a disk");
    assert_eq!(store.next_end("settings"), Ok(Some(50)));
    assert_eq!(store.entries("settings").expect("readable")[1].until, Some(50));
    // The same text with another end is another entry.
    assert_eq!(store.commit(&change(vec![ends("b", 90)])).expect("a disk").revision, 2);
    assert_eq!(store.entries_at("settings", 1).expect("known")["b"].1, Some(50));
}

#[test]
fn a_large_text_is_a_file_until_nothing_names_it() {
    let place = place();
    let store = open(&place);
    let large = "x".repeat(INLINE_OCTETS_MAX + 1);
    commit(&store, "large", Some(&large));
    let files = || fs::read_dir(place.path().join("blobs")).expect("a folder").count();
    assert_eq!((said(&store)["large"].len(), files()), (large.len(), 1));
    commit(&store, "large", None);
    assert_eq!(said_at(&store, 1)["large"], large);
    store.compact("settings", 1).expect("a disk");
    assert_eq!(files(), 1, "the change that took it away can still be undone");
    commit(&store, "a", Some("1"));
    store.compact("settings", 1).expect("a disk");
    assert_eq!(files(), 0);
    let huge = change(vec![put("huge", Some(&"x".repeat(TEXT_OCTETS_MAX + 1)))]);
    assert_eq!(store.commit(&huge), Err(StoreError::TooLarge { name: "huge".to_owned() }));
}

#[test]
fn a_file_that_is_not_what_it_was_is_not_taken_for_the_text() {
    let place = place();
    let store = open(&place);
    let large = "x".repeat(INLINE_OCTETS_MAX + 1);
    commit(&store, "large", Some(&large));
    let file =
        fs::read_dir(place.path().join("blobs")).expect("a folder").next().expect("one").expect("readable");
    fs::write(file.path(), "x").expect("written");
    let why = store.entries("settings").expect_err("it is damaged").to_string();
    assert!(why.contains("SHA-256") && why.contains(&file.path().display().to_string()), "{why}");
    // Writing it again mends it.
    store.blobs().put(large.as_bytes()).expect("a disk");
    assert_eq!(said(&store)["large"], large);
    assert!(store.blobs().get("../changes.db").is_err());
}

/// Returns the trouble of a store that does not open.
fn trouble(folder: &Path) -> Trouble {
    match Store::open(folder) {
        Err(StoreError::Trouble(trouble)) => trouble,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opens"),
    }
}

#[test]
fn a_store_that_another_has_open_is_refused_by_name() {
    let place = place();
    let store = open(&place);
    let locked = trouble(place.path());
    assert_eq!(locked, Trouble::Locked(Store::file(place.path())));
    assert!(locked.to_string().contains("another process has"), "{locked}");
    commit(&store, "a", Some("1"));
    drop(store);
    assert_eq!(said(&open(&place)).len(), 1);
}

#[test]
fn a_later_version_is_refused_and_left_as_it_is() {
    let place = place();
    drop(open(&place));
    let file = Store::file(place.path());
    Connection::open(&file).expect("a database").execute_batch("PRAGMA user_version = 9").expect("written");
    let before = fs::read(&file).expect("readable");
    let newer = trouble(place.path());
    assert!(matches!(newer, Trouble::Newer { found: 9, .. }));
    assert!(newer.to_string().contains("later version of gannet"), "{newer}");
    assert_eq!(fs::read(&file).expect("readable"), before);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let place = place();
    let file = Store::file(place.path());
    Connection::open(&file).expect("a database").execute_batch("CREATE TABLE theirs (x)").expect("written");
    let before = fs::read(&file).expect("readable");
    assert_eq!(trouble(place.path()), Trouble::Foreign(file.clone()));
    assert_eq!(fs::read(&file).expect("readable"), before);
    fs::write(
        &file,
        "no database at all, but a text that is long enough for a header, and more than that, and so on",
    )
    .expect("written");
    assert!(matches!(trouble(place.path()), Trouble::Damaged(..)));
}

#[test]
fn an_older_schema_is_brought_up_to_date_whole_or_not_at_all() {
    const FIRST: &str = "CREATE TABLE first (x INTEGER); INSERT INTO first VALUES (7);";
    const SECOND: &str = "CREATE TABLE more (x INTEGER); INSERT INTO more VALUES (1);";
    let place = place();
    let file = Store::file(place.path());
    let open = |steps: &[&str]| database::open_with(&file, steps, None);
    let tables = |database: &Connection| -> i64 {
        database.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).expect("readable")
    };
    let said = |database: &Connection| -> i64 {
        database.query_row("SELECT x FROM first", [], |row| row.get(0)).expect("readable")
    };
    drop(open(&[FIRST]).expect("the first version"));
    // The second step works, the third does not: nothing has changed.
    assert!(open(&[FIRST, SECOND, "INSERT INTO nowhere VALUES (1)"]).is_err());
    let database = open(&[FIRST]).expect("still the first version");
    assert_eq!((tables(&database), said(&database)), (1, 7));
    drop(database);
    let database = open(&[FIRST, SECOND]).expect("the second version");
    assert_eq!((tables(&database), said(&database)), (2, 7));
    drop(database);
    // And not back again.
    let refused = open(&[FIRST]).expect_err("it is later than that");
    assert!(matches!(refused, StoreError::Trouble(Trouble::Newer { found: 2, known: 1, .. })));
}

#[test]
fn without_room_a_change_is_refused_and_the_next_one_is_not() {
    let place = place();
    let store = open(&place);
    commit(&store, "a", Some("1"));
    let limit = |pages: u32| {
        let state = store.state();
        let pragma = format!("PRAGMA max_page_count = {pages}");
        state.database.query_row(&pragma, [], |_| Ok(())).expect("a pragma");
    };
    limit(1);
    let text = "y".repeat(INLINE_OCTETS_MAX);
    let refused = store.commit(&change(vec![put("b", Some(&text))]));
    assert_eq!(refused, Err(StoreError::Trouble(Trouble::Full(Store::file(place.path())))));
    assert_eq!((said(&store).len(), store.position().expect("readable").revision), (1, 1));
    limit(1_000_000);
    assert_eq!(commit(&store, "b", Some(&text)), 2);
    drop(store);
    assert_eq!(said(&open(&place)).len(), 2);
}

#[test]
fn what_can_only_be_read_is_read_and_not_changed() {
    let place = place();
    let store = open(&place);
    commit(&store, "a", Some("1"));
    store.state().database.execute_batch("PRAGMA query_only = ON").expect("a pragma");
    let refused = store.commit(&change(vec![put("a", Some("2"))]));
    assert_eq!(refused, Err(StoreError::Trouble(Trouble::ReadOnly(Store::file(place.path())))));
    assert_eq!(said(&store)["a"], "1");
}

#[test]
fn after_a_commit_that_failed_the_disk_says_what_is_there() {
    let place = place();
    let store = open(&place);
    commit(&store, "a", Some("1"));
    // As after an fsync that failed: it may be there or not.
    store.state().is_doubtful = true;
    assert_eq!(said(&store)["a"], "1");
    assert_eq!(commit(&store, "a", Some("2")), 2);
}

/// The files of a store, as they were at some moment.
#[derive(Clone)]
struct Files {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Files {
    fn of(folder: &Path) -> Self {
        let read = |end: &str| fs::read(folder.join(format!("{FILE}{end}"))).unwrap_or_default();
        Self { database: read(""), log: read("-wal") }
    }

    /// Puts them into a folder of their own, as after a start.
    fn open(&self) -> (TempDir, Result<Store, StoreError>) {
        let place = place();
        fs::write(place.path().join(FILE), &self.database).expect("written");
        if !self.log.is_empty() {
            fs::write(place.path().join(format!("{FILE}-wal")), &self.log).expect("written");
        }
        let store = Store::open(place.path());
        (place, store)
    }
}

/// A power cut leaves a part of what was written since the last fsync. Every commit ends with one,
/// so a log that is cut anywhere must give the last revision whose commit is whole in it.
#[test]
fn a_power_cut_at_any_octet_leaves_the_last_revision_that_was_acknowledged() {
    let place = place();
    let store = open(&place);
    // Everything before is in the database itself.
    store.state().database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a pragma");
    let mut acknowledged = vec![(0, said(&store))];
    for (name, text) in [("a", Some("1")), ("b", Some("2")), ("a", None), ("b", Some("3"))] {
        commit(&store, name, text);
        acknowledged.push((Files::of(place.path()).log.len(), said(&store)));
    }
    let files = Files::of(place.path());
    // Every octet near the ends of commits, some of the others.
    let near = |cut: usize| acknowledged.iter().any(|(end, _)| cut.abs_diff(*end) < 20);
    let cuts = (0..=files.log.len()).filter(|cut| near(*cut) || cut % 509 == 0);
    for cut in cuts {
        let cut_files = Files { log: files.log[..cut].to_vec(), ..files.clone() };
        let (_place, store) = cut_files.open();
        let store = store.expect("it opens");
        let revision = acknowledged.iter().rposition(|(end, _)| *end <= cut).expect("the first");
        assert_eq!(store.position().expect("readable").revision, revision as u64, "cut at {cut}");
        assert_eq!(said(&store), acknowledged[revision].1, "cut at {cut}");
        assert_eq!(commit(&store, "c", Some("4")), revision as u64 + 1, "and it goes on");
    }
}

/// While the log is written back, the database is a mixture of old and new pages, and the log is
/// still whole.
#[test]
fn a_power_cut_while_the_log_is_written_back_loses_nothing() {
    let place = place();
    let store = open(&place);
    for number in 0..40 {
        commit(&store, &format!("n{number}"), Some(&"z".repeat(900)));
    }
    let before = Files::of(place.path());
    let expected = said(&store);
    store.state().database.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(())).expect("a pragma");
    let after = Files::of(place.path()).database;
    const PAGE: usize = 4096;
    for seed in 0..24_usize {
        let page = |at: usize| {
            let is_new = at.wrapping_mul(2_654_435_761).wrapping_add(seed * 40_503) % 7 < 3;
            let from = if is_new { &after } else { &before.database };
            let end = ((at + 1) * PAGE).min(from.len());
            from.get(at * PAGE..end).unwrap_or(&[]).to_vec()
        };
        // Pages that were not written yet leave the file short, or are holes.
        let count = after.len() / PAGE;
        let mut mixed = Vec::new();
        for at in 0..count {
            let written = page(at);
            mixed.extend(&written);
            mixed.resize((at + 1) * PAGE, 0);
        }
        let (_place, store) = Files { database: mixed, log: before.log.clone() }.open();
        assert_eq!(said(&store.expect("it opens")), expected, "{seed}");
    }
}

#[test]
fn a_database_that_is_cut_or_changed_is_refused_or_says_what_it_said() {
    let place = place();
    let store = open(&place);
    for number in 0..30 {
        commit(&store, &format!("n{number}"), Some(&format!("text {number} {}", "q".repeat(400))));
    }
    let expected = said(&store);
    drop(store);
    let whole = Files::of(place.path());
    assert!(whole.log.is_empty(), "a store that was closed is one file");
    let check = |database: Vec<u8>, what: &str| {
        let (_place, store) = Files { database, log: Vec::new() }.open();
        match store.and_then(|store| store.entries("settings")) {
            Ok(entries) => {
                let said: BTreeMap<_, _> =
                    entries.into_iter().map(|entry| (entry.name, entry.text)).collect();
                // An empty file is a store without entries: nobody can tell.
                assert!(said == expected || said.is_empty(), "{what}: {said:?}");
            }
            Err(StoreError::Trouble(trouble)) => assert!(trouble.to_string().contains(FILE), "{trouble}"),
            Err(other) => panic!("{what}: {other}"),
        }
    };
    for cut in (0..whole.database.len()).step_by(997) {
        check(whole.database[..cut].to_vec(), &format!("cut at {cut}"));
    }
    for at in (0..whole.database.len()).step_by(211) {
        let mut changed = whole.database.clone();
        changed[at] ^= 0x15;
        check(changed, &format!("octet {at} changed"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Against a map and the list of its states.
    #[test]
    fn a_store_says_what_a_map_would(
        edits in proptest::collection::vec((0..5_usize, proptest::option::of("[a-z]{0,3}"), any::<bool>()), 0..30),
        keep in 0..20_u64,
    ) {
        let place = place();
        let mut store = open(&place);
        let mut states = vec![BTreeMap::new()];
        for (name, text, reopens) in edits {
            let name = format!("n{name}");
            let mut next = states.last().expect("a state").clone();
            match &text {
                Some(text) => drop(next.insert(name.clone(), text.clone())),
                None => drop(next.remove(&name)),
            }
            if Some(&next) != states.last() {
                states.push(next);
            }
            let revision = commit(&store, &name, text.as_deref());
            prop_assert_eq!(revision, states.len() as u64 - 1);
            if reopens {
                drop(store);
                store = open(&place);
            }
        }
        store.compact("settings", keep).expect("a disk");
        let oldest = store.oldest().expect("readable");
        for (revision, state) in states.iter().enumerate().skip(oldest as usize) {
            prop_assert_eq!(&said_at(&store, revision as u64), state);
        }
        prop_assert_eq!(&said(&store), states.last().expect("a state"));
    }
}
