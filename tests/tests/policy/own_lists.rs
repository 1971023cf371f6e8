//! Lists that are kept beside the settings, as the built program's clients and operators meet them.

use testkit::Server;

use super::sets::{check_all, config, with_events};

fn fine(server: &Server, arguments: &[&str]) -> String {
    let output = server.command(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command that is refused; returns what it says.
fn refused(server: &Server, arguments: &[&str]) -> String {
    let output = server.command(arguments);
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const SETS: &str = "  listed: {lists: [{own: mine}, \"names:others.txt\"]}\n";

fn start() -> Server {
    with_events(&[("others.txt", b"other.example\n")], SETS)
}

#[test]
fn rules_are_added_and_removed_without_compiling_and_are_there_after_a_kill() {
    let server = start();
    check_all(&server, &["other.example"], &["a.example"]);
    let said = fine(&server, &["list", "add", "mine", "a.example", "full:b.example", "other.example"]);
    assert_eq!(said, "3 rules changed, revision 1\n", "nothing is compiled");
    check_all(&server, &["x.a.example", "b.example", "other.example"], &["x.b.example"]);
    let said = fine(&server, &["list", "remove", "mine", "A.Example.", "other.example", "none.example"]);
    assert_eq!(said, "2 rules changed, revision 2\n");
    check_all(&server, &["b.example", "other.example"], &["a.example"]);
    assert_eq!(fine(&server, &["list", "remove", "mine", "a.example"]), "0 rules changed, revision 2\n");
    assert_eq!(fine(&server, &["list", "print", "mine"]), "full:b.example\n");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &config(SETS));
    check_all(&server, &["b.example", "other.example"], &["a.example", "x.b.example"]);
    fine(&server, &["reload"]);
    fine(&server, &["list", "add", "mine", "c.example"]);
    fine(&server, &["reload"]);
    check_all(&server, &["b.example", "c.example"], &["a.example"]);
    assert_eq!(fine(&server, &["list", "print"]), "mine: 0 B, 7 changes since, in listed\n");
    fine(&server, &["list", "delete", "mine"]);
    check_all(&server, &["other.example"], &["b.example", "c.example"]);
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &config(SETS));
    check_all(&server, &["other.example"], &["b.example"]);
    assert!(refused(&server, &["list", "print", "mine"]).contains("there is no list \"mine\""));
}

#[test]
fn a_whole_list_is_replaced_and_its_mistakes_are_told_all_at_once() {
    let server = start();
    let file = |text: &str| {
        std::fs::write(server.directory().join("new.txt"), text).expect("a writable directory");
        "new.txt"
    };
    let text = "# mine\na.example\nkeyword:needle\n";
    let said = fine(&server, &["list", "put", "mine", file(text)]);
    assert!(said.starts_with("2 rules changed") && said.contains("compiled"), "{said}");
    check_all(&server, &["a.example", "xneedlex.example"], &["b.example"]);
    assert_eq!(fine(&server, &["list", "print", "mine"]), text);
    let said = refused(&server, &["list", "put", "mine", file("a.example\na..b\n\nnonsense:x\n")]);
    assert!(said.contains(":2:") && said.contains("a..b") && said.contains(":4:"), "{said}");
    check_all(&server, &["a.example"], &[]);
    let said = refused(&server, &["list", "add", "mine", "b.example", "a..b", "x y"]);
    assert!(said.contains(":2:") && said.contains(":3:"), "{said}");
    check_all(&server, &["a.example"], &["b.example"]);
    let said = fine(&server, &["list", "add", "mine", "--dry-run", "b.example", "a.example"]);
    assert_eq!(said, "1 rule would be changed\n");
    // A keyword cannot be added beside what is compiled.
    let said = fine(&server, &["list", "add", "mine", "keyword:hay", "b.example"]);
    assert!(said.starts_with("2 rules changed") && said.contains("compiled"), "{said}");
    check_all(&server, &["xhayx.example", "b.example", "a.example"], &["c.example"]);
    assert_eq!(fine(&server, &["list", "print", "mine"]), format!("{text}keyword:hay\nb.example\n"));
}

#[test]
fn many_rules_at_once_are_one_change() {
    let server = start();
    let many: String = (0..20_000).map(|number| format!("n{number}.many.example\n")).collect();
    std::fs::write(server.directory().join("many.txt"), many).expect("a writable directory");
    let said = fine(&server, &["list", "add", "mine", "--file", "many.txt"]);
    assert!(said.starts_with("20000 rules changed, revision 1"), "{said}");
    check_all(&server, &["n0.many.example", "x.n19999.many.example"], &["n20000.many.example"]);
    // More than may be different of a list of this length.
    std::fs::write(server.directory().join("some.txt"), "one.example\n".repeat(3) + "n7.many.example\n")
        .expect("a writable directory");
    fine(&server, &["list", "remove", "mine", "--file", "some.txt"]);
    check_all(&server, &["n8.many.example"], &["n7.many.example"]);
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &config(SETS));
    check_all(&server, &["n8.many.example", "n19999.many.example"], &["n7.many.example"]);
}

#[test]
fn a_list_of_which_much_was_changed_is_written_as_a_whole_again() {
    let server = start();
    fine(&server, &["list", "add", "mine", "first.example"]);
    for part in 0..3 {
        let some: String = (0..200).map(|number| format!("n{part}-{number}.example\n")).collect();
        std::fs::write(server.directory().join("some.txt"), some).expect("a writable directory");
        fine(&server, &["list", "add", "mine", "--file", "some.txt"]);
    }
    testkit::eventually("the changes are merged", || {
        !fine(&server, &["list", "print"]).starts_with("mine: 0 B")
    });
    check_all(&server, &["first.example", "n0-0.example", "n2-199.example"], &["n3-0.example"]);
    assert_eq!(fine(&server, &["list", "print", "mine"]).lines().count(), 601);
    fine(&server, &["list", "remove", "mine", "n0-0.example"]);
    check_all(&server, &["n0-1.example"], &["n0-0.example"]);
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &config(SETS));
    check_all(&server, &["first.example", "n2-199.example"], &["n0-0.example"]);
}

#[test]
fn a_list_of_another_format_is_compiled_for_each_change() {
    let sets = "  listed: {lists: [{own: rules, format: adguard}]}\n";
    let server = with_events(&[], sets);
    let said = fine(&server, &["list", "add", "rules", "||ads.example^", "@@||good.ads.example^"]);
    assert!(said.contains("compiled"), "{said}");
    check_all(&server, &["x.ads.example"], &["x.good.ads.example"]);
    fine(&server, &["list", "remove", "rules", "@@||good.ads.example^"]);
    check_all(&server, &["x.good.ads.example"], &[]);
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &config(sets));
    check_all(&server, &["x.good.ads.example"], &["example"]);
}

#[test]
fn a_list_may_be_there_before_a_set_names_it() {
    let server = with_events(&[], "  listed: {names: x.example}\n");
    fine(&server, &["list", "add", "mine", "a.example"]);
    check_all(&server, &["x.example"], &["a.example"]);
    fine(&server, &["config", "set", "sets.listed", "{lists: [{own: mine}]}"]);
    check_all(&server, &["a.example"], &["x.example"]);
    fine(&server, &["list", "add", "mine", "b.example"]);
    check_all(&server, &["a.example", "b.example"], &[]);
}
