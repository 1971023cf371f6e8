//! Settings that are changed while the built program runs: in use at once, kept, taken back.

use std::fs;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::program::program;
use testkit::{Script, Server, Stub, contains, eventually, forwarding};

fn config(more: &str) -> (Stub, String) {
    let stub = Stub::start(Script::default());
    let yaml = forwarding(&[&stub], more);
    (stub, yaml)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn fine(server: &Server, arguments: &[&str]) -> String {
    let output = server.command(&[&["config"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text(&output)
}

fn refused(server: &Server, arguments: &[&str]) -> String {
    let output = server.command(&[&["config"], arguments].concat());
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    text(&output)
}

/// Asks for a name often enough that every worker is asked.
fn addresses(server: &Server, name: &str) -> Vec<String> {
    let mut all: Vec<String> = (0..12).flat_map(|_| server.dig_short(&[name, "A"])).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn a_warning_is_logged_with_the_change_that_it_is_of_and_not_with_each_after_it() {
    fn lines_of(server: &mut Server, set: &str) -> usize {
        server.log().iter().filter(|line| line.contains(&format!("set \"{set}\""))).count()
    }
    let (_stub, yaml) = config("");
    let mut server = Server::start(&yaml);
    for set in ["first", "second"] {
        let said = fine(&server, &["set", &format!("sets.{set}.names"), "a.example"]);
        contains(&said, &format!("set \"{set}\" is ignored"));
    }
    fine(&server, &["set", "local.tv.home.arpa", "192.0.2.3"]);
    let said = fine(&server, &["set", "sets.third.names", "a.example"]);
    // Who changes something is shown all that there are.
    contains(&said, "set \"first\" is ignored");
    eventually("a warning of the third set", || lines_of(&mut server, "third") == 1);
    assert_eq!(["first", "second"].map(|set| lines_of(&mut server, set)), [1, 1]);
}

#[test]
fn a_changed_setting_counts_for_every_query_after_it_and_after_a_kill() {
    let (_stub, yaml) = config("local: {nas.home.arpa: 192.0.2.1}\n");
    let server = Server::start(&yaml);
    assert_eq!(addresses(&server, "nas.home.arpa"), ["192.0.2.1"]);
    let said = fine(&server, &["set", "local.nas.home.arpa", "192.0.2.2", "--why", "a new disk"]);
    assert!(said.contains("revision 1 of the changes is in use"), "{said}");
    assert_eq!(addresses(&server, "nas.home.arpa"), ["192.0.2.2"], "on every worker");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &yaml);
    assert_eq!(addresses(&server, "nas.home.arpa"), ["192.0.2.2"], "after a kill");
    fine(&server, &["set", "local.tv.home.arpa", "[192.0.2.3, 192.0.2.4]"]);
    assert_eq!(addresses(&server, "tv.home.arpa"), ["192.0.2.3", "192.0.2.4"]);
    let difference = fine(&server, &["diff"]);
    assert!(
        difference.contains("- local.nas.home.arpa: 192.0.2.1\n+ local.nas.home.arpa: 192.0.2.2\n"),
        "{difference}"
    );
    assert_eq!(fine(&server, &["diff", "1", "now"]), "+ local.tv.home.arpa: [192.0.2.3, 192.0.2.4]\n");
    let shown = fine(&server, &["show", "--running", "--origin"]);
    assert!(
        shown
            .lines()
            .any(|line| line.contains("nas.home.arpa: 192.0.2.2") && line.contains("# change 1 by "))
    );
    assert!(!fine(&server, &["show", "--running"]).contains("# change"));
    let exported = fine(&server, &["export"]);
    assert_eq!(exported, "local:\n  nas.home.arpa: 192.0.2.2\n  tv.home.arpa: [192.0.2.3, 192.0.2.4]\n");
    fine(&server, &["unset", "local.nas.home.arpa"]);
    assert_eq!(addresses(&server, "nas.home.arpa"), ["192.0.2.1"]);
    fine(&server, &["rollback", "1"]);
    assert_eq!(addresses(&server, "nas.home.arpa"), ["192.0.2.2"]);
    let history = fine(&server, &["history"]);
    let first: Vec<&str> = history.lines().collect();
    assert!(first[0].starts_with("4 ") && history.contains(": a new disk"), "{history}");
    // The file's word comes back with all changes taken back, and nothing is asked of it.
    fine(&server, &["rollback", "0"]);
    assert_eq!(addresses(&server, "nas.home.arpa"), ["192.0.2.1"]);
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
    let server = Server::start_in(directory, &yaml);
    assert_eq!(addresses(&server, "nas.home.arpa"), ["192.0.2.1"]);
    let status = text(&server.command(&["status"]));
    assert!(status.contains("changes        0 settings (revision 5"), "{status}");
}

#[test]
fn a_reload_reads_the_file_and_keeps_the_changes() {
    let (_stub, yaml) = config("local: {a.example: 192.0.2.1, b.example: 192.0.2.1}\n");
    let server = Server::start(&yaml);
    fine(&server, &["set", "local.a.example", "192.0.2.2"]);
    server.write_config(&yaml.replace("192.0.2.1", "192.0.2.9"));
    assert!(server.command(&["reload"]).status.success());
    assert_eq!(addresses(&server, "a.example"), ["192.0.2.2"]);
    assert_eq!(addresses(&server, "b.example"), ["192.0.2.9"]);
    // A file that does not go with the changes is refused, and everything stays.
    fine(&server, &["set", "policy.main", "[local, \"cache(main)\", \"forward(default)\"]"]);
    server.write_config(&yaml.replace("default: {servers", "other: {servers"));
    let said = text(&server.command(&["reload"]));
    assert!(said.contains("change 2 by ") && said.contains("unknown upstream group \"default\""), "{said}");
    assert_eq!(addresses(&server, "b.example"), ["192.0.2.9"]);
}

#[test]
fn a_mistake_in_a_change_is_said_at_its_place_and_nothing_changes() {
    let (_stub, yaml) = config("");
    let server = Server::start(&yaml);
    let said = refused(&server, &["set", "cache.main", "{size: 64MiB, max-tl: 5}"]);
    assert!(
        said.contains("change 1 by ") && said.contains(":1:15: error: unknown setting \"max-tl\""),
        "{said}"
    );
    assert!(said.contains("did you mean"), "{said}");
    assert!(refused(&server, &["set", "cahce.main.size", "1GiB"]).contains("did you mean \"cache\""));
    assert!(refused(&server, &["set", "server.state-directory", "/tmp"]).contains("in the file alone"));
    assert!(refused(&server, &["unset", "cache.main.size"]).contains("no change to take back"));
    fine(&server, &["set", "edns.udp-size", "1300", "--dry-run"]);
    assert!(
        refused(&server, &["set", "edns.udp-size", "1300", "--if-revision", "3"])
            .contains("somebody was faster")
    );
    assert_eq!(fine(&server, &["history"]), "no setting was changed while the server ran\n");
    assert_eq!((server.stat("changes", "made"), server.stat("changes", "revision")), (0, 0));
    // Read at the start only: kept, and said.
    let said = fine(&server, &["set", "server.workers", "1"]);
    assert!(said.contains("read only at the start: server.workers"), "{said}");
}

#[test]
fn what_is_locked_is_not_changed() {
    let (_stub, yaml) = config("control: {changes: data, locked: [local.a.example]}\n");
    let server = Server::start(&yaml);
    assert!(refused(&server, &["set", "edns.udp-size", "1300"]).contains("control.changes: data"));
    assert!(refused(&server, &["set", "local.a.example", "192.0.2.1"]).contains("control.locked"));
    assert!(refused(&server, &["set", "local", "{}"]).contains("control.locked"));
    fine(&server, &["set", "local.b.example", "192.0.2.1"]);
    server.write_config(&yaml.replace("changes: data", "changes: never"));
    assert!(server.command(&["reload"]).status.success());
    assert!(refused(&server, &["set", "local.c.example", "192.0.2.1"]).contains("control.changes: never"));
    assert_eq!(addresses(&server, "b.example"), ["192.0.2.1"], "what was changed before stays");
    fine(&server, &["unset", "local.b.example"]);
}

#[test]
fn a_setting_is_taken_back_when_its_time_is_over() {
    let (_stub, yaml) = config("local: {a.example: 192.0.2.1}\n");
    let server = Server::start(&yaml);
    fine(&server, &["set", "local.a.example", "192.0.2.2", "--for", "1"]);
    eventually("the file's word counts again", || addresses(&server, "a.example") == ["192.0.2.1"]);
    let history = fine(&server, &["history"]);
    assert!(history.starts_with("2 ") && history.contains("by the server: its time is over"), "{history}");
}

#[test]
fn when_the_file_and_the_changes_do_not_go_together_what_ran_last_runs() {
    let (_stub, yaml) = config("local: {a.example: 192.0.2.1}\n");
    let server = Server::start(&yaml);
    fine(&server, &["set", "policy.main", "[local, \"cache(main)\", \"forward(default)\"]"]);
    let address = server.address();
    let (_, _, directory) = server.stop();
    let other = yaml.replace("default: {servers", "other: {servers").replace("192.0.2.1", "192.0.2.9");
    let mut server = Server::start_at(address, directory, &other);
    server.wait_for_log("do not go together");
    assert_eq!(addresses(&server, "a.example"), ["192.0.2.1"], "all of it as it was");
    let status = text(&server.command(&["status"]));
    assert!(
        status.contains("DO NOT GO TOGETHER") && status.contains("unknown upstream group \"default\""),
        "{status}"
    );
    let metrics = text(&server.command(&["stats", "--prometheus"]));
    assert!(metrics.lines().any(|line| line == "gannet_changes_pair_wrong 1"), "{metrics}");
    // Nothing is taken but what mends it.
    assert!(refused(&server, &["set", "edns.udp-size", "1300"]).contains("unknown upstream group"));
    fine(&server, &["set", "policy.main", "[local, \"cache(main)\", \"forward(other)\"]"]);
    assert_eq!(addresses(&server, "a.example"), ["192.0.2.9"], "the new file");
    assert_eq!(server.stat("changes", "pair-wrong"), 0);
    assert!(has_row_of_the_file(&server, "192.0.2.9"), "what was edited meanwhile has its row");
}

/// Returns whether the audit log has a row of what the file says differently, with this text.
fn has_row_of_the_file(server: &Server, text_of_it: &str) -> bool {
    let rows = text(&server.command(&["audit", "export"]));
    rows.lines().any(|row| row.contains("the file") && row.contains(text_of_it))
}

#[test]
fn without_the_store_changes_are_refused_by_name_and_queries_go_on() {
    let (_stub, yaml) = config("local: {a.example: 192.0.2.1}\n");
    let server = Server::start(&yaml);
    fine(&server, &["set", "local.a.example", "192.0.2.2"]);
    let (_, _, directory) = server.stop();
    let database = directory.path().join("changes/changes.db");
    let good = fs::read(&database).expect("there is one");
    fs::write(&database, b"no database, but long enough for somebody to take it for one; and more of it")
        .expect("written");
    let server = Server::start_in(directory, &yaml);
    assert_eq!(addresses(&server, "a.example"), ["192.0.2.2"], "as it ran last");
    let said = refused(&server, &["set", "local.a.example", "192.0.2.3"]);
    assert!(said.contains("nothing is changed") && said.contains("changes.db\" is damaged"), "{said}");
    assert!(text(&server.command(&["status"])).contains("settings cannot be changed: "));
    assert_eq!(server.stat("changes", "store-failed"), 1);
    assert_eq!(addresses(&server, "a.example"), ["192.0.2.2"]);
    let (_, _, directory) = server.stop();
    // Mended, and in another's hands.
    fs::write(&database, &good).expect("written");
    let held = rusqlite::Connection::open(&database).expect("a database");
    held.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").expect("locked");
    let edited = yaml.replace("a.example: 192.0.2.1", "a.example: 192.0.2.1, b.example: 192.0.2.7");
    let server = Server::start_in(directory, &edited);
    let said = refused(&server, &["set", "local.a.example", "192.0.2.3"]);
    assert!(said.contains("another process has"), "{said}");
    drop(held);
    fine(&server, &["set", "local.a.example", "192.0.2.3"]);
    assert_eq!(addresses(&server, "a.example"), ["192.0.2.3"]);
    // What was edited meanwhile has its row, although the start could not write it.
    let (_, _, directory) = server.stop();
    let server = Server::start_in(directory, &edited);
    assert!(has_row_of_the_file(&server, "192.0.2.7"));
}

#[test]
fn what_is_kept_is_read_as_soon_as_the_store_can_be() {
    let more = "sets: {bad: {dynamic: {holds: names, persist: true}}, ads: {lists: [{own: mine}]}}\n\
                policy:\n  main:\n    - if: qname in bad\n      do: reject(notimp)\n    - if: qname in ads\n      \
                do: reject(nxdomain)\n    - reject(refused)\n";
    let (_stub, yaml) = config(more);
    let server = Server::start(&yaml);
    let command = |server: &Server, arguments: &[&str]| {
        let output = server.command(arguments);
        (output.status.success(), text(&output))
    };
    for arguments in [
        &["set", "add", "bad", "kept.example"][..],
        &["list", "add", "mine", "ads.example"],
        &["ban", "198.51.100.7"],
    ] {
        assert!(command(&server, arguments).0, "{arguments:?}");
    }
    let (_, _, directory) = server.stop();
    let held = rusqlite::Connection::open(directory.path().join("changes/changes.db")).expect("a database");
    held.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").expect("locked");
    let server = Server::start_in(directory, &yaml);
    let add = ["set", "add", "bad", "new.example"];
    assert!(!command(&server, &add).0, "nothing is written over what is not known");
    assert!(!command(&server, &["list", "add", "mine", "more.example"]).0);
    assert!(!command(&server, &["bans"]).0);
    drop(held);
    eventually("members are read", || command(&server, &["set", "list", "bad"]).1.contains("kept.example"));
    eventually("bans are read", || command(&server, &["bans"]).1.contains("198.51.100.7/32"));
    eventually("lists are read", || command(&server, &["list", "print", "mine"]).1.contains("ads.example"));
    assert_eq!(command(&server, &add), (true, "1 changed, 2 in the set\n".to_owned()));
    let is = |name: &str, rcode: &str| server.dig(&[name, "A"]).contains(rcode);
    eventually("sets have their lists", || is("ads.example", "NXDOMAIN"));
    let added = command(&server, &["list", "add", "mine", "more.example"]);
    assert!(added.0, "{added:?}");
    assert!(is("more.example", "NXDOMAIN") && is("kept.example", "NOTIMP") && is("new.example", "NOTIMP"));
}

/// Changes from several commands at once, and a kill in their midst, again and again.
#[test]
fn no_change_that_was_acknowledged_is_lost_by_a_kill() {
    let (_stub, yaml) = config("");
    let mut server = Server::start(&yaml);
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let is_over = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            let (directory, is_over) = (server.directory(), &is_over);
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    scope.spawn(move || {
                        let mut done = Vec::new();
                        for number in 0.. {
                            if is_over.load(Ordering::Relaxed) {
                                break;
                            }
                            let name = format!("n{round}-{writer}-{number}.example");
                            let path = format!("local.{name}");
                            let mut set = program(directory);
                            let set = set.args(["config", "set", &path, "192.0.2.1"]).output();
                            if set.expect("the program starts").status.success() {
                                done.push(name);
                            }
                        }
                        done
                    })
                })
                .collect();
            // Some are made; which one is under way then is left to chance.
            eventually("some changes are made", || server.stat("changes", "made") >= 6);
            server.signal("KILL");
            is_over.store(true, Ordering::Relaxed);
            writers.into_iter().flat_map(|writer| writer.join().expect("it ended")).collect::<Vec<_>>()
        });
        acknowledged.extend(done);
        let (_, _, directory) = server.stop_by("KILL");
        server = Server::start_in(directory, &yaml);
        let shown = fine(&server, &["export"]);
        for name in &acknowledged {
            assert!(shown.contains(&format!("  {name}: 192.0.2.1\n")), "{name} is lost: {shown}");
        }
    }
    assert!(acknowledged.len() >= 24);
}
