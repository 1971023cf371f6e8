//! Dynamic sets: changes, reloads, and starts after kills.

use super::*;
use environment::Keeper;
use std::path::Path;
use std::time::Duration;
use wire::HashKey;

fn new(wanted: &DynamicSet, known: Option<&Dynamic>, directory: &Path) -> Dynamic {
    let memory = environment::System;
    let workshop = Workshop {
        key: HashKey::new([1, 2]),
        state_directory: directory,
        environment: &memory,
        previous: None,
        only: None,
    };
    Dynamic::new("learned", wanted, known, &workshop)
}

fn wanted(holds: DynamicKind) -> DynamicSet {
    DynamicSet { holds, limit: 100, ttl: Some(Duration::from_secs(60)), persist: true }
}

fn add(set: &Dynamic, item: &str, now: u64, ttl: Option<u64>) {
    assert_eq!(set.add(&[item.to_owned()], (now, ttl), "anna").ok(), Some(1), "{item}");
}

fn removed(set: &Dynamic, item: &str) -> Option<usize> {
    set.remove(&[item.to_owned()], "anna").ok()
}

#[test]
fn edits_are_made_in_their_order_and_all_or_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let forever = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
    let set = new(&forever, None, directory.path());
    add(&set, "a.example", 1000, None);
    let some = [
        (Form::Add, "b.example"),
        (Form::Remove, "a.example"),
        (Form::Add, "a.example"),
        (Form::Add, "b.example"),
        (Form::Remove, "none.example"),
    ];
    assert_eq!(set.would_change(&some).ok(), Some((3, 2)));
    assert_eq!(set.list().len(), 1);
    let wrong = [(Form::Add, "c.example"), (Form::Add, "d..example"), (Form::Remove, "regex:e")];
    let told = set.edit(&wrong, (1000, None), "anna").expect_err("wrong");
    assert_eq!(told.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(set.list().len(), 1);
    assert_eq!(set.edit(&some, (1000, Some(50)), "anna").ok(), Some(3));
    let expected = [("a.example.".to_owned(), Some(1050)), ("b.example.".to_owned(), Some(1050))];
    let listed = |set: &Dynamic| {
        let mut all = set.list();
        all.sort();
        all
    };
    assert_eq!(listed(&set), expected);
    // A kill: nobody calls `keep`.
    assert_eq!(listed(&new(&forever, None, directory.path())), expected);
}

#[test]
fn what_was_changed_is_there_although_nothing_was_written_since() {
    let directory = tempfile::tempdir().expect("a directory");
    let forever = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
    let first = new(&forever, None, directory.path());
    add(&first, "example.org", 1000, Some(77));
    add(&first, "exact:a\\032b.example.net", 1000, None);
    add(&first, "example.com", 1000, None);
    assert_eq!(removed(&first, "example.com"), Some(1));
    // A kill: nobody calls `keep`.
    let second = new(&forever, None, directory.path());
    assert_eq!(second.list(), first.list());
    assert_eq!(second.list().len(), 2);
    assert_eq!(second.list()[0], ("example.org.".to_owned(), Some(1077)));
    // One life more, without a change in between, and with one.
    drop(new(&forever, None, directory.path()));
    add(&second, "example.com", 2000, None);
    assert_eq!(new(&forever, None, directory.path()).list(), second.list());
    // Half a line at the end was never acknowledged; what is before it counts.
    let log = directory.path().join("sets/learned.dynamic.log");
    let text = std::fs::read(&log).expect("a log");
    std::fs::write(&log, &text[..text.len() - 3]).expect("a writable directory");
    assert_eq!(new(&forever, None, directory.path()).list(), first.list());
    // What everything was written without is not taken from an older log.
    std::fs::write(&log, &text).expect("a writable directory");
    assert_eq!(removed(&second, "example.org"), Some(1));
    second.keep().expect("the directory is writable");
    std::fs::write(&log, &text).expect("a writable directory");
    assert_eq!(new(&forever, None, directory.path()).list(), second.list());
}

/// Keeps texts in memory; refuses them when it is told to.
#[derive(Default)]
struct Kept {
    texts: Mutex<Vec<(String, u64, String)>>,
    is_full: std::sync::atomic::AtomicBool,
}

impl Keeper for Kept {
    fn texts(&self, space: &str) -> io::Result<Vec<(u64, String)>> {
        let texts = self.texts.lock().expect("no panic");
        let of_space = texts.iter().filter(|(known, _, _)| known == space);
        Ok(of_space.map(|(_, number, text)| (*number, text.clone())).collect())
    }

    fn keep(&self, space: &str, number: u64, text: &str, said: (&str, &str)) -> io::Result<()> {
        if self.is_full.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(io::Error::other("no room"));
        }
        assert!(said.0 == "anna" && said.1.starts_with(['+', '-']), "{said:?}");
        let mut texts = self.texts.lock().expect("no panic");
        assert!(texts.iter().all(|(_, known, _)| *known < number), "numbers grow");
        texts.push((space.to_owned(), number, text.to_owned()));
        Ok(())
    }

    fn forget(&self, space: &str, up_to: u64) -> io::Result<()> {
        let mut texts = self.texts.lock().expect("no panic");
        texts.retain(|(known, number, _)| known != space || *number > up_to);
        Ok(())
    }
}

/// Returns the set as a server has it that keeps changes.
fn new_kept(directory: &Path, kept: &Arc<Kept>) -> Dynamic {
    let wanted = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
    new_kept_with(&wanted, None, directory, kept)
}

fn new_kept_with(
    wanted: &DynamicSet,
    known: Option<&Dynamic>,
    directory: &Path,
    kept: &Arc<Kept>,
) -> Dynamic {
    let environment = environment::Serving {
        hear: |_: &environment::SetProgress<'_>| {},
        zone: |_: wire::Name<'_>| None,
        own_list: |_: &str| None,
        keeper: Some(Arc::clone(kept) as Arc<dyn Keeper>),
    };
    let workshop = Workshop {
        key: HashKey::new([1, 2]),
        state_directory: directory,
        environment: &environment,
        previous: None,
        only: None,
    };
    Dynamic::new("learned", wanted, known, &workshop)
}

#[test]
fn changes_after_a_time_in_which_nothing_was_kept_follow_those_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = Arc::<Kept>::default();
    let forever = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
    let passing = DynamicSet { persist: false, ..forever.clone() };
    let first = new_kept(directory.path(), &kept);
    first.learn(Learned::Suffix, "learned.example", &[], 1000);
    for item in ["a.example", "b.example", "c.example"] {
        add(&first, item, 1000, None);
    }
    assert!(first.keep().expect("the directory is writable"));
    add(&first, "d.example", 1000, None);
    let off = new_kept_with(&passing, Some(&first), directory.path(), &kept);
    assert_eq!(removed(&off, "d.example"), Some(1));
    assert_eq!(removed(&off, "a.example"), Some(1));
    let on = new_kept_with(&forever, Some(&off), directory.path(), &kept);
    add(&on, "e.example", 1000, None);
    assert_eq!(removed(&on, "b.example"), Some(1));
    // A kill: nobody calls `keep`.
    let names = |set: &Dynamic| {
        let mut names: Vec<String> = set.list().into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    };
    let after = new_kept(directory.path(), &kept);
    assert_eq!(names(&after), names(&on));
    assert_eq!(names(&after), ["c.example.", "e.example.", "learned.example."]);
    // The same where it is written anew before it is changed.
    let off = new_kept_with(&passing, Some(&after), directory.path(), &kept);
    assert_eq!(removed(&off, "c.example"), Some(1));
    let on = new_kept_with(&forever, Some(&off), directory.path(), &kept);
    on.learn(Learned::Suffix, "more.example", &[], 1000);
    assert!(on.keep().expect("the directory is writable"));
    add(&on, "f.example", 1000, None);
    assert_eq!(names(&new_kept(directory.path(), &kept)), names(&on));
}

#[test]
fn a_set_of_another_kind_is_not_read_under_the_lock_of_the_one_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = new(&wanted(DynamicKind::Names), None, directory.path());
    let is_same = |one: &Dynamic, other: &Dynamic| match (&one.store, &other.store) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    };
    let longer = DynamicSet { limit: 200, ..wanted(DynamicKind::Names) };
    assert!(is_same(&first, &new(&longer, Some(&first), directory.path())));
    let other = new(&wanted(DynamicKind::Addresses), Some(&first), directory.path());
    assert!(!is_same(&first, &other));
}

#[test]
fn changes_are_kept_beside_the_settings_until_everything_is_written_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = Arc::<Kept>::default();
    let first = new_kept(directory.path(), &kept);
    add(&first, "example.org", 1000, Some(77));
    add(&first, "example.com", 1000, None);
    assert_eq!(removed(&first, "example.com"), Some(1));
    assert_eq!(kept.texts("set learned").expect("kept").len(), 3);
    // A kill: nobody calls `keep`.
    let second = new_kept(directory.path(), &kept);
    assert_eq!(second.list(), [("example.org.".to_owned(), Some(1077))]);
    second.learn(Learned::Suffix, "example.net", &[], 1000);
    assert!(second.keep().expect("the directory is writable"));
    assert_eq!(kept.texts("set learned").expect("kept"), []);
    add(&second, "example.com", 1000, None);
    assert_eq!(removed(&second, "example.net"), Some(1));
    let third = new_kept(directory.path(), &kept);
    assert_eq!(third.list(), second.list());
    // What the file has already does not count again.
    let old = Change::Add("example.net.".to_owned(), FOREVER).line_for_tests();
    kept.texts.lock().expect("no panic").insert(0, ("set learned".to_owned(), 1, old));
    assert_eq!(new_kept(directory.path(), &kept).list(), second.list());
    kept.is_full.store(true, std::sync::atomic::Ordering::Relaxed);
    let why = third.add(&["full.example".to_owned()], (1, None), "anna").expect_err("no room");
    assert!(matches!(why, DynamicError::Store(_)) && why.to_string().contains("nothing is changed"));
    assert_eq!(third.list(), second.list());
    let tag = third.tag();
    assert_eq!(tag, second.tag());
    third.learn(Learned::Name, "a.example", &[], 1000);
    assert_ne!(third.tag(), tag);
}

#[test]
fn a_file_that_cannot_be_read_keeps_its_members_and_no_change_is_taken() {
    let directory = tempfile::tempdir().expect("a directory");
    let forever = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
    let kept = Arc::<Kept>::default();
    let before = new_kept_with(&forever, None, directory.path(), &kept);
    add(&before, "a.example", 1000, None);
    before.learn(Learned::Suffix, "b.example", &[], 1000);
    assert!(before.keep().expect("the directory is writable"));
    let file = directory.path().join("sets/learned.dynamic");
    let whole = std::fs::read(&file).expect("a file");
    let check = |set: &Dynamic| {
        let why = set.trouble().unwrap_or_default();
        assert!(why.contains("learned.dynamic\"") && why.contains("cannot be read"), "{why}");
        let refused = set.add(&["c.example".to_owned()], (1, None), "anna").expect_err("refused");
        assert!(refused.to_string().contains("cannot be read"), "{refused}");
        assert!(set.remove(&["a.example".to_owned()], "anna").is_err());
        set.learn(Learned::Suffix, "d.example", &[], 1000);
        assert!(set.keep().is_err(), "nothing is written over it");
    };
    // No text; something that is no file.
    std::fs::write(&file, b"\xff\xfe\n").expect("writable");
    check(&new_kept_with(&forever, None, directory.path(), &kept));
    std::fs::remove_file(&file).expect("there");
    std::fs::create_dir(&file).expect("writable");
    check(&new_kept_with(&forever, None, directory.path(), &kept));
    std::fs::remove_dir(&file).expect("there");
    std::fs::write(&file, &whole).expect("writable");
    let after = new_kept_with(&forever, None, directory.path(), &kept);
    assert_eq!((after.trouble(), after.list()), (None, before.list()));
}

#[test]
fn files_of_before_changes_were_kept_there_are_read_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let forever = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
    let before = new(&forever, None, directory.path());
    before.learn(Learned::Suffix, "learned.example", &[], 1000);
    before.keep().expect("the directory is writable");
    add(&before, "example.org", 1000, None);
    assert_eq!(removed(&before, "learned.example"), Some(1));
    let log = directory.path().join("sets/learned.dynamic.log");
    assert!(log.exists());
    let kept = Arc::<Kept>::default();
    let after = new_kept(directory.path(), &kept);
    assert_eq!(after.list(), before.list());
    add(&after, "example.com", 2000, None);
    // A kill before anything is written anew.
    let after = new_kept(directory.path(), &kept);
    assert_eq!(after.list().len(), 2);
    after.learn(Learned::Suffix, "more.example", &[], 1000);
    assert!(after.keep().expect("the directory is writable"));
    assert!(!log.exists(), "it is in the file");
    assert_eq!(new_kept(directory.path(), &kept).list(), after.list());
}

#[test]
fn what_cannot_be_kept_is_not_added() {
    let directory = tempfile::tempdir().expect("a directory");
    // A file where the directory should be.
    std::fs::write(directory.path().join("sets"), "").expect("a writable directory");
    let set = new(&wanted(DynamicKind::Names), None, directory.path());
    let why = set.add(&["example.org".to_owned()], (1, None), "anna").expect_err("it cannot be kept");
    assert!(matches!(why, DynamicError::Store(_)));
    let why = why.to_string();
    assert!(why.contains("nothing is changed") && why.contains("sets"), "{why}");
    assert!(set.list().is_empty());
    std::fs::remove_file(directory.path().join("sets")).expect("our file");
    add(&set, "example.org", 1, None);
    assert_eq!(new(&wanted(DynamicKind::Names), None, directory.path()).list(), set.list());
}

#[test]
fn what_was_added_survives_reloads_and_restarts() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = new(&wanted(DynamicKind::Names), None, directory.path());
    add(&first, "example.org", 1000, None);
    add(&first, "example.net", 1000, Some(500));
    let some = ["example.com".to_owned(), "a..b".to_owned()];
    let why = first.add(&some, (1000, None), "anna");
    assert!(matches!(why, Err(DynamicError::Misread(_))), "all or nothing");
    let why = first.add(&["regex:a".to_owned()], (1000, None), "anna");
    assert!(matches!(why, Err(DynamicError::Form(form)) if form == "regex"));
    let expected = [("example.org.".to_owned(), Some(1060)), ("example.net.".to_owned(), Some(1500))];
    assert_eq!(first.list(), expected);
    // A reload with another limit.
    let second = new(&DynamicSet { limit: 50, ..wanted(DynamicKind::Names) }, Some(&first), directory.path());
    assert_eq!(second.list(), expected);
    assert!(second.keep().expect("the directory is writable"));
    assert!(!second.keep().expect("nothing to write"), "nothing changed since");
    // A restart.
    let third = new(&wanted(DynamicKind::Names), None, directory.path());
    assert_eq!(third.list(), expected);
    assert_eq!(third.sweep(1060), 1);
    assert_eq!(third.list(), expected[1..]);
}

#[test]
fn what_changes_during_a_reload_with_another_limit_is_not_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = new(&wanted(DynamicKind::Names), None, directory.path());
    add(&first, "early.example.org", 1000, None);
    add(&first, "gone.example.org", 1000, None);
    let other = |limit| DynamicSet { limit, ..wanted(DynamicKind::Names) };
    // The new configuration is compiled, and not in use yet.
    let second = new(&other(50), Some(&first), directory.path());
    add(&first, "late.example.org", 1001, None);
    assert_eq!(removed(&first, "gone.example.org"), Some(1));
    first.learn(Learned::Suffix, "learned.example.org", &[], 1002);
    let names = |set: &Dynamic| set.list().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&second), ["early.example.org.", "late.example.org.", "learned.example.org."]);
    // Queries that are still answered with the old one see what is added to the new one.
    add(&second, "later.example.org", 1003, None);
    assert!(names(&first).contains(&"later.example.org.".to_owned()));
    second.keep().expect("the directory is writable");
    assert_eq!(new(&other(50), None, directory.path()).list(), second.list(), "nor by a restart");
    // Reloads that were refused leave nothing behind.
    for limit in 51..60 {
        drop(new(&other(limit), Some(&second), directory.path()));
    }
    assert!(second.handles.lock().len() <= 3);
}

#[test]
fn addresses_are_kept_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = new(&wanted(DynamicKind::Addresses), None, directory.path());
    add(&first, "192.0.2.1", 1, None);
    add(&first, "2001:db8::/32", 2, None);
    assert_eq!(removed(&first, "192.0.2.9"), Some(0));
    first.keep().expect("the directory is writable");
    let second = new(&wanted(DynamicKind::Addresses), None, directory.path());
    assert_eq!(
        second.list(),
        [("192.0.2.1/32".to_owned(), Some(61)), ("2001:db8::/32".to_owned(), Some(62))]
    );
}
