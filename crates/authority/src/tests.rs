//! Decisions about changes of a configuration that runs nowhere.

use std::fs;

use environment::System;
use settings::{Loaded, Origin};
use tempfile::TempDir;

use super::*;

/// A server that is nothing but its configuration.
struct Server {
    place: TempDir,
    files: Loaded,
    running: Loaded,
    authority: Authority,
    /// What stands in the way of coming into use.
    obstacle: Option<Refusal>,
    checked: usize,
    wrong: Option<WrongPair>,
}

/// What the runner needs of it.
struct Running<'s> {
    files: &'s Loaded,
    running: &'s mut Loaded,
    obstacle: &'s Option<Refusal>,
    checked: &'s mut usize,
}

impl Runner for Running<'_> {
    type Candidate = Loaded;

    fn allowed(&self) -> ChangesAllowed {
        self.files.settings.changes.clone()
    }

    fn is_said(&self, path: &SettingPath) -> bool {
        settings::overlay::is_said(self.files, path)
    }

    fn differences(
        &self,
        layers: [&[Layer]; 2],
        digest: &dyn Fn(&str) -> String,
    ) -> (Vec<store::audit::Difference>, usize) {
        let of = |layers: &[Layer], layer: &Layer| {
            let other = layers.iter().find(|other| other.path == layer.path);
            other.and_then(|other| other.text.as_deref()).map(digest)
        };
        let [before, after] = layers;
        let changed = after.iter().filter(|layer| !before.contains(layer));
        let difference = |layer: &Layer| {
            let path = layer.path.to_string();
            store::audit::Difference { path, before: of(before, layer), after: of(after, layer) }
        };
        (changed.map(difference).collect(), 0)
    }

    fn check(&mut self, layers: &[Layer]) -> Result<(Loaded, Outcome), Vec<Diagnostic>> {
        *self.checked += 1;
        let loaded = self.files.with_changes(layers, &System)?;
        let outcome = Outcome { warnings: loaded.warnings.clone(), needs_restart: Vec::new() };
        Ok((loaded, outcome))
    }

    fn adopt(
        &mut self,
        candidate: Loaded,
        keep: &mut dyn FnMut() -> Result<(), StoreError>,
    ) -> Result<(), Refusal> {
        if let Some(obstacle) = self.obstacle {
            return Err(obstacle.clone());
        }
        keep().map_err(Refusal::Store)?;
        *self.running = candidate;
        Ok(())
    }
}

fn place(text: &str) -> TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    write(&place, text);
    place
}

fn write(place: &TempDir, text: &str) {
    let state = place.path().join("state");
    let text = format!("server: {{state-directory: {}}}\n{text}", state.display());
    fs::write(place.path().join("g.yaml"), text).expect("written");
}

fn start(place: TempDir) -> Result<Server, Vec<Diagnostic>> {
    let begun = begin(&Origin::File(place.path().join("g.yaml")))?;
    let files = match &begun.wrong {
        Some(wrong) => wrong.files.clone(),
        None => begun.loaded.without_changes(&System).expect("they were right"),
    };
    let Begun { loaded, authority, wrong } = begun;
    if wrong.is_none() {
        authority.note_good(&loaded);
    }
    Ok(Server { place, files, running: loaded, authority, obstacle: None, checked: 0, wrong })
}

#[test]
fn what_became_of_files_between_two_runs_is_known() {
    let said = |text: &str| -> FilesSaid { [("edns.udp-size".to_owned(), text.to_owned())].into() };
    let mut server = started("");
    assert_eq!(server.authority.files_since(&said("1"), 1), Ok(Meanwhile::Unknown), "there is no store");
    server.set("edns.udp-size", "1400").expect("it is right");
    assert_eq!(server.authority.files_since(&said("1"), 1), Ok(Meanwhile::Unknown));
    server.authority.note_files(&said("1"), 1).expect("a disk");
    let Server { place, authority, .. } = server;
    drop(authority);
    let server = start(place).expect("no mistakes");
    let since = |text: &str| server.authority.files_since(&said(text), 2).expect("readable");
    assert_eq!(since("1"), Meanwhile::Same);
    assert_eq!(since("2"), Meanwhile::Changed(Some(said("1"))));
    // What was said is not guessed.
    let file = server.authority.folder().expect("a folder").join("files-said");
    fs::write(&file, "13\nedns.udp-size\n1\n3\n").expect("writable");
    assert_eq!(since("2"), Meanwhile::Changed(None));
    assert_eq!(since("1"), Meanwhile::Same);
}

fn started(text: &str) -> Server {
    start(place(text)).expect("no mistakes")
}

impl Server {
    fn decide(&mut self, requests: &[Request]) -> Vec<Result<Done, Refusal>> {
        let Self { files, running, authority, obstacle, checked, .. } = self;
        let outcomes = authority.decide(&mut Running { files, running, obstacle, checked }, requests);
        if outcomes.iter().any(Result::is_ok) {
            authority.note_good(running);
        }
        outcomes
    }

    fn set(&mut self, path: &str, text: &str) -> Result<Done, Refusal> {
        self.one(by("anna", vec![Edit::Set(at(path), text.to_owned())]))
    }

    fn one(&mut self, request: Request) -> Result<Done, Refusal> {
        self.decide(&[request]).pop().expect("an outcome")
    }

    /// Has other files come into use, unless they are wrong, alone or with the changes: then those
    /// of before stay. Returns whether they did.
    fn reload(&mut self, text: &str) -> bool {
        let before = fs::read(self.place.path().join("g.yaml")).expect("a file");
        write(&self.place, text);
        let files = Origin::File(self.place.path().join("g.yaml")).load();
        let both = files.and_then(|files| {
            let both = files.with_changes(&self.authority.layers(), &System)?;
            Ok((files, both))
        });
        let Ok((files, running)) = both else {
            fs::write(self.place.path().join("g.yaml"), before).expect("written");
            return false;
        };
        (self.files, self.running) = (files, running);
        self.authority.note_good(&self.running);
        true
    }

    fn udp_size(&self) -> u16 {
        self.running.settings.udp_size
    }

    /// Ends it, without doing anything, and starts it again.
    fn again(self) -> Result<Self, Vec<Diagnostic>> {
        let Self { place, authority, .. } = self;
        drop(authority);
        start(place)
    }

    fn database(&self) -> PathBuf {
        Store::file(self.authority.folder().expect("a folder"))
    }
}

fn at(path: &str) -> SettingPath {
    SettingPath::parse(path).expect("a path")
}

fn by(by: &str, edits: Vec<Edit>) -> Request {
    let (by, why) = (by.to_owned(), String::new());
    let (expected, expected_at) = (None, Vec::new());
    Request { edits, by, why, at: 1_000, until: None, expected, expected_at, is_dry_run: false }
}

#[test]
fn a_change_is_in_use_and_there_after_a_kill() {
    let mut server = started("edns: {udp-size: 1400}\n");
    assert!(!server.database().exists(), "a server without changes keeps nothing");
    let done = server.set("edns.udp-size", "1300").expect("it is right");
    assert_eq!((done.revision, server.udp_size()), (1, 1300));
    let mut server = server.again().expect("no mistakes");
    assert_eq!((server.udp_size(), server.authority.standing().revision), (1300, 1));
    let kept = &server.authority.changes()[0].1;
    assert_eq!((kept.by.as_str(), kept.at, kept.revision), ("anna", 1_000, 1));
    // The same again is no change.
    assert_eq!(server.set("edns.udp-size", "1300").expect("it is right").revision, 1);
    assert_eq!(
        server.one(by("ben", vec![Edit::Unset(at("edns.udp-size"))])).expect("it is there").revision,
        2
    );
    assert_eq!(server.udp_size(), 1400);
    let refused = server.one(by("ben", vec![Edit::Unset(at("edns.udp-size"))]));
    assert_eq!(refused, Err(Refusal::NotChanged(at("edns.udp-size"))));
    assert_eq!(server.again().expect("no mistakes").udp_size(), 1400);
}

#[test]
fn what_is_wrong_leaves_nothing_behind() {
    let mut server = started("");
    let refused = server.set("edns.udp-size", "big").expect_err("a mistake");
    assert!(refused.to_string().starts_with("change 1 by anna:1:1: error: "), "{refused}");
    server.obstacle = Some(Refusal::NotAllowed("a part is not ready".to_owned()));
    assert!(server.set("edns.udp-size", "1300").is_err());
    server.obstacle = None;
    assert_eq!((server.udp_size(), server.authority.standing().revision), (1232, 0));
    assert!(server.authority.history(None, 9).expect("readable").is_empty());
    let dry =
        Request { is_dry_run: true, ..by("anna", vec![Edit::Set(at("edns.udp-size"), "1300".to_owned())]) };
    assert!(server.one(dry).is_ok());
    assert_eq!((server.udp_size(), server.authority.history(None, 9).expect("readable").len()), (1232, 0));
    assert_eq!(server.set("edns.udp-size", "1300").expect("it is right").revision, 1);
}

#[test]
fn changes_that_come_together_are_compiled_once_and_each_hears_its_own_mistake() {
    let mut server = started("");
    let set = |who: &str, path: &str, text: &str| by(who, vec![Edit::Set(at(path), text.to_owned())]);
    let right = [set("anna", "edns.udp-size", "1300"), set("ben", "edns.padding", "128")];
    let outcomes = server.decide(&right);
    let revisions: Vec<u64> = outcomes.into_iter().map(|done| done.expect("right").revision).collect();
    assert_eq!((revisions, server.checked), (vec![1, 2], 1));
    let mixed = [
        set("anna", "edns.udp-size", "1350"),
        set("ben", "edns.padding", "much"),
        set("cleo", "local.a.example", "192.0.2.1"),
    ];
    let outcomes = server.decide(&mixed);
    assert_eq!(outcomes[0].as_ref().expect("right").revision, 3);
    let why = outcomes[1].as_ref().expect_err("a mistake").to_string();
    assert!(why.contains("by ben:1:1") && !why.contains("anna"), "{why}");
    assert_eq!(outcomes[2].as_ref().expect("right").revision, 4);
    assert_eq!((server.udp_size(), server.running.settings.local.len()), (1350, 1));
    let authors: Vec<String> =
        server.authority.history(None, 9).expect("readable").into_iter().map(|step| step.by).collect();
    assert_eq!(authors, ["cleo", "anna", "ben", "anna"]);
    let counts = server.authority.standing().counts;
    assert_eq!((counts.made, counts.refused), (4, 1));
}

#[test]
fn a_change_made_for_another_revision_is_refused() {
    let mut server = started("");
    server.set("edns.udp-size", "1300").expect("it is right");
    let edits = vec![Edit::Set(at("edns.udp-size"), "1400".to_owned())];
    let late = Request { expected: Some(0), ..by("ben", edits.clone()) };
    let refused = server.one(late).expect_err("somebody was faster").to_string();
    assert!(refused.contains("somebody was faster"), "{refused}");
    // A change of other data in between is no reason.
    let (space, name, text) = ("set s".to_owned(), "1".to_owned(), Some("x".to_owned()));
    let put = Put { space, name, text, until: None, expected: Expected::Any };
    let (anna, why) = ("anna".to_owned(), String::new());
    let change = store::Change { by: anna, why, at: 1_000, puts: vec![put], ..store::Change::default() };
    assert_eq!(server.authority.keep(&change), Ok(2));
    assert!(server.one(Request { expected: Some(3), ..by("ben", edits.clone()) }).is_err());
    assert!(server.one(Request { expected: Some(1), ..by("ben", edits.clone()) }).is_ok());
    assert!(server.one(Request { expected: Some(2), ..by("ben", edits) }).is_err());
}

#[test]
fn a_request_can_expect_how_a_setting_stands() {
    let mut server = started("edns: {udp-size: 1400}\n");
    let set = |path: &str, text: &str, expectation| Request {
        expected_at: vec![(at(path), expectation)],
        ..by("ben", vec![Edit::Set(at(path), text.to_owned())])
    };
    let refused = |outcome: Result<Done, Refusal>| match outcome {
        Err(Refusal::NotExpected { found, .. }) => Some(found),
        _ => None,
    };
    let said = server.one(set("edns.udp-size", "1300", Expectation::Nothing));
    assert_eq!(refused(said), Some(0), "the file says it");
    assert!(server.one(set("edns.padding", "128", Expectation::Nothing)).is_ok());
    assert_eq!(refused(server.one(set("edns.padding", "256", Expectation::Nothing))), Some(1));
    assert!(server.one(set("edns.udp-size", "1300", Expectation::Revision(0))).is_ok());
    assert_eq!(refused(server.one(set("edns.udp-size", "1200", Expectation::Revision(0)))), Some(2));
    // What holds it is another as well.
    assert_eq!(refused(server.one(set("edns", "{padding: 1}", Expectation::Revision(1)))), Some(2));
    assert!(server.one(set("edns.padding", "256", Expectation::Revision(1))).is_ok());
}

#[test]
fn a_roll_back_is_a_revision_that_says_what_another_said() {
    let mut server = started("");
    server.set("edns.udp-size", "1300").expect("it is right");
    server.set("edns.padding", "128").expect("it is right");
    server.set("edns.udp-size", "1350").expect("it is right");
    let back = |to| by("ben", vec![Edit::RollBack(to)]);
    assert_eq!(server.one(back(1)).expect("known").revision, 4);
    assert_eq!((server.udp_size(), server.running.settings.padding), (1300, 468));
    assert_eq!(server.one(back(0)).expect("known").revision, 5);
    assert_eq!((server.udp_size(), server.authority.changes().len()), (1232, 0));
    assert_eq!(server.one(back(3)).expect("known").revision, 6);
    assert_eq!((server.udp_size(), server.running.settings.padding), (1350, 128));
    assert!(server.one(back(9)).expect_err("there is none").to_string().contains("no revision 9"));
    assert_eq!(server.authority.layers_at(1).expect("known").len(), 1);
}

#[test]
fn what_a_path_holds_is_replaced_with_it() {
    let mut server = started("");
    server.set("cache.main.size", "64MiB").expect("it is right");
    let done = server.set("cache.main", "{max-ttl: 1h}").expect("it is right");
    assert_eq!(done.replaced, [at("cache.main.size")]);
    assert_eq!(server.authority.changes().len(), 1);
}

#[test]
fn what_is_locked_stays_and_can_be_taken_back() {
    let mut server = started("");
    server.set("edns.udp-size", "1300").expect("it is right");
    write(&server.place, "control: {locked: [edns]}\n");
    let mut server = server.again().expect("no mistakes");
    assert_eq!(server.udp_size(), 1300);
    let refused = server.set("edns.udp-size", "1400").expect_err("it is locked").to_string();
    assert!(refused.contains("control.locked"), "{refused}");
    assert!(server.one(by("ben", vec![Edit::RollBack(0)])).is_ok());
    assert!(server.one(by("ben", vec![Edit::RollBack(1)])).is_err(), "nor by a roll back");
    assert_eq!(server.udp_size(), 1232);
}

#[test]
fn settings_end_when_their_time_is_over() {
    let mut server = started("");
    let edits = vec![Edit::Set(at("edns.udp-size"), "1300".to_owned())];
    server.one(Request { until: Some(2_000), ..by("anna", edits) }).expect("it is right");
    assert_eq!(server.authority.ended(1_999), None);
    let mut server = server.again().expect("no mistakes");
    let ended = server.authority.ended(2_000).expect("its time is over");
    server.one(ended).expect("it ends");
    assert_eq!((server.udp_size(), server.authority.ended(3_000)), (1232, None));
}

#[test]
fn whether_settings_have_ended_is_known_while_the_store_is_in_use() {
    let mut server = started("");
    let has_ended = |server: &Server, now| {
        let _in_use = server.authority.state();
        server.authority.has_ended(now)
    };
    assert!(!has_ended(&server, 2_000));
    for (path, until) in [("edns.udp-size", 2_000), ("edns.padding", 3_000)] {
        let text = if path == "edns.padding" { "128" } else { "1300" };
        let edits = vec![Edit::Set(at(path), text.to_owned())];
        server.one(Request { until: Some(until), ..by("anna", edits) }).expect("it is right");
    }
    assert_eq!([1_999, 2_000].map(|now| has_ended(&server, now)), [false, true]);
    let mut server = server.again().expect("no mistakes");
    assert_eq!([1_999, 2_000].map(|now| has_ended(&server, now)), [false, true], "after a restart");
    let ended = server.authority.ended(2_000).expect("its time is over");
    server.one(ended).expect("it ends");
    assert_eq!([2_999, 3_000].map(|now| has_ended(&server, now)), [false, true], "the next one");
}

#[test]
fn when_only_both_together_are_wrong_what_ran_last_runs_until_they_are_mended() {
    let mut server = started("upstreams: {fast: 192.0.2.1, default: 192.0.2.2}\nedns: {udp-size: 1400}\n");
    server.set("policy.main", "[forward(fast)]").expect("it is right");
    // The file loses what the change names.
    write(&server.place, "upstreams: {default: 192.0.2.2}\nedns: {udp-size: 1300}\n");
    let mut server = server.again().expect("it starts");
    let wrong = server.wrong.as_ref().expect("they do not go together");
    assert!(wrong.diagnostics[0].line().contains("change 1 by anna:1:"), "{}", wrong.diagnostics[0].line());
    assert!(wrong.with(&server.authority).is_err());
    assert_eq!((server.udp_size(), server.running.settings.upstreams.len()), (1400, 2), "the last good pair");
    // Only what mends it is taken.
    assert!(server.set("edns.padding", "128").is_err());
    server.set("policy.main", "[forward(default)]").expect("it mends it");
    assert_eq!(server.udp_size(), 1300);
    let server = server.again().expect("no mistakes");
    assert!(server.wrong.is_none());
    // A file that is wrong by itself is no start, as ever.
    write(&server.place, "edns: {udp-size: big}\n");
    assert!(server.again().is_err());
}

#[test]
fn without_anything_that_ran_before_a_wrong_pair_does_not_start() {
    let mut server = started("upstreams: {fast: 192.0.2.1}\n");
    server.set("policy.main", "[forward(fast)]").expect("it is right");
    fs::remove_file(server.authority.folder().expect("a folder").join("last-good")).expect("it is there");
    write(&server.place, "");
    let found = server.again().err().expect("they do not go together");
    assert!(
        found
            .iter()
            .any(|found| found.hint.as_deref().is_some_and(|hint| hint.contains("move this folder away")))
    );
}

#[test]
fn without_the_store_changes_fail_by_name_and_what_was_changed_stays() {
    let mut server = started("");
    server.set("edns.udp-size", "1300").expect("it is right");
    let database = server.database();
    let Server { place, authority, .. } = server;
    drop(authority);
    let whole = fs::read(&database).expect("readable");
    let mut newer = whole.clone();
    // The user version in SQLite's header.
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    for (octets, expected) in [
        (newer, "a later version of gannet"),
        (whole[..whole.len() / 2].to_vec(), "is damaged"),
        (b"something else that is long enough to be looked at".repeat(9), "is damaged"),
        (Vec::new(), "it has lost changes"),
    ] {
        fs::write(&database, octets).expect("written");
        let begun = begin(&Origin::File(place.path().join("g.yaml"))).expect("it starts");
        assert_eq!(begun.loaded.settings.udp_size, 1300, "{expected}");
        let trouble = begun.authority.standing().trouble.expect("the store cannot be used");
        assert!(trouble.contains(expected), "{trouble}");
        assert!(begun.authority.open().is_err());
        let files = begun.loaded.without_changes(&System).expect("right");
        let mut running = begun.loaded;
        let mut runner = Running { files: &files, running: &mut running, obstacle: &None, checked: &mut 0 };
        let edits = vec![Edit::Set(at("edns.udp-size"), "1400".to_owned())];
        let refused = begun.authority.decide(&mut runner, &[by("anna", edits)]).pop().expect("an outcome");
        let why = refused.expect_err("it cannot be kept").to_string();
        assert!(why.contains("nothing is changed") && why.contains(expected), "{why}");
        assert_eq!((running.settings.udp_size, begun.authority.standing().counts.not_kept), (1300, 1));
    }
    fs::write(&database, whole).expect("written");
    assert!(start(place).expect("it starts").set("edns.udp-size", "1400").is_ok());
}

#[test]
fn a_copy_that_stands_before_what_lies_beside_it_is_refused() {
    let mut server = started("");
    server.set("edns.udp-size", "1300").expect("it is right");
    let copy = tempfile::tempdir().expect("a temporary directory");
    server.authority.copy(&copy.path().join("changes.db"), true, "tokens").expect("a copy");
    let kept = server.authority.folder().expect("a folder").to_owned();
    let put = |name: &str| fs::copy(kept.join(name), copy.path().join(name)).map(drop).expect("copied");
    ["last-good", "audit.key"].into_iter().for_each(put);
    assert_eq!(server.authority.layers_in_copy(copy.path()).expect("it is right").len(), 1);
    server.set("edns.udp-size", "1400").expect("it is right");
    put("last-good");
    let why = server.authority.layers_in_copy(copy.path()).expect_err("it is later").to_string();
    assert!(why.contains("it has lost changes"), "{why}");
}

#[test]
fn a_backup_is_not_taken_up_while_another_server_uses_the_state_directory() {
    let mut server = started("");
    server.set("edns.udp-size", "1300").expect("it is right");
    let Server { place, authority, .. } = server;
    drop(authority);
    let Server { place, authority, .. } = start(place).expect("another start");
    let state = place.path().join("state");
    let laid = store::restore::ready(&state);
    fs::create_dir_all(laid.join("changes")).expect("a folder");
    store::restore::note(&laid, "before-restore-20261127T121200Z", "anna").expect("written");
    let origin = Origin::File(place.path().join("g.yaml"));
    let found = begin(&origin).expect_err("it would move files away");
    assert!(found[0].message.contains("another server"), "{found:?}");
    assert!(state.join("changes/changes.db").exists());
    drop(authority);
    begin(&origin).expect("nobody is in its way");
    assert!(!laid.exists() && !state.join("changes/changes.db").exists());
}

#[test]
fn what_is_noted_is_read_whole_or_not_at_all() {
    let mut server = started("allow: lan\n");
    server.set("edns.udp-size", "1300").expect("it is right");
    let folder = server.authority.folder().expect("a folder").to_owned();
    let file = folder.join("last-good");
    let octets = fs::read(&file).expect("it is there");
    assert!(last_good::read(&folder).is_some_and(|noted| noted.revision == 1));
    for cut in 0..octets.len() {
        fs::write(&file, &octets[..cut]).expect("written");
        assert!(last_good::read(&folder).is_none(), "cut at {cut}");
    }
}

#[test]
fn a_change_that_was_refused_and_came_to_the_disk_all_the_same_is_not_written_over() {
    let mut server = started("");
    server.set("edns.udp-size", "1300").expect("it is right");
    // As after an fsync that failed: the disk has a revision that nobody was told of.
    let mut state = server.authority.state();
    let put = put_of(&at("edns.padding"), None);
    let put = Put { text: Some(WhatBecame::Text("128".into()).encoded()), ..put };
    let (by_whom, why) = ("ben".to_owned(), String::new());
    let change = store::Change { by: by_whom, why, at: 1_000, puts: vec![put], ..store::Change::default() };
    let folder = server.authority.folder().expect("a folder");
    state.opened(folder).expect("open").commit(&change).expect("a disk");
    drop(state);
    assert_eq!(server.set("local.a.example", "192.0.2.1").expect("it is right").revision, 3);
    assert_eq!((server.udp_size(), server.running.settings.padding), (1300, 128));
    assert_eq!(server.again().expect("no mistakes").authority.changes().len(), 3);
}

/// Numbers that look random and are the same in each run (Knuth's MMIX).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn of<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        choices.get(self.below(choices.len())).copied().expect("one of them")
    }
}

/// Whatever is done in whatever order, what runs is what a fresh start makes of what is on disk.
#[test]
fn random_changes_roll_backs_and_reloads_leave_what_a_fresh_start_makes_of_files_and_store() {
    const PATHS: [&str; 7] = [
        "edns.udp-size",
        "edns",
        "local.a.example",
        "local.b.example",
        "local",
        "cache.main.max-ttl",
        "cache.main",
    ];
    const TEXTS: [&str; 8] = [
        "1300",
        "1400",
        "{udp-size: 1350, padding: 128}",
        "192.0.2.1",
        "[192.0.2.2, 192.0.2.3]",
        "{c.example: 192.0.2.4}",
        "2h",
        "{max-ttl: 3h}",
    ];
    const FILES: [&str; 4] = [
        "",
        "edns: {udp-size: 1232}\nlocal: {a.example: 192.0.2.9}\n",
        "cache: {main: {max-ttl: 1h}}\nlocal: {d.example: 192.0.2.8}\n",
        "edns: {udp-size: wrong}\n",
    ];
    let mut done = [0_usize; 5];
    for seed in 0..24 {
        let mut chance = Chance(seed);
        let mut server = started("");
        for _ in 0..20 {
            let path = at(chance.of(&PATHS));
            let revision = server.authority.standing().revision;
            let (kind, outcome) = match chance.below(8) {
                0 => (0, server.one(by("anna", vec![Edit::Unset(path)])).is_ok()),
                1 => (1, server.one(by("anna", vec![Edit::TakeAway(path)])).is_ok()),
                2 => {
                    let to = chance.below(revision as usize + 2) as u64;
                    (2, server.one(by("anna", vec![Edit::RollBack(to)])).is_ok())
                }
                3 => (3, server.reload(chance.of(&FILES))),
                _ => {
                    let edits = (0..=chance.below(2))
                        .map(|_| Edit::Set(at(chance.of(&PATHS)), chance.of(&TEXTS).to_owned()));
                    (4, server.one(by("anna", edits.collect())).is_ok())
                }
            };
            if let Some(done) = done.get_mut(kind) {
                *done += usize::from(outcome);
            }
        }
        let (runs, revision) = (settings::print::show(&server.running), server.authority.standing().revision);
        let again = server.again().expect("what ran is right");
        assert_eq!(settings::print::show(&again.running), runs, "seed {seed}");
        assert_eq!(again.authority.standing().revision, revision, "seed {seed}");
    }
    // Each of them was done often enough to say something.
    assert!(done.iter().all(|count| *count >= 3), "{done:?}");
}
