//! The program in the place of Unbound.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::harness::{Place, ask, free_port, text};

/// A configuration as Unbound has it: it listens on a port, and knows one name.
fn config(port: u16) -> String {
    format!(
        "server:\n\tinterface: 127.0.0.1@{port}\n\tusername: \"\" # stay\n\tmodule-config: 'respip iterator'\n\
         \tlocal-data: \"www.example.org. 60 IN A 192.0.2.7\"\n"
    )
}

/// Starts the program by the name `unbound`, and returns it with its log and the line there that
/// says so.
fn start(place: &Place, file: &Path) -> (Child, Lines<BufReader<ChildStderr>>, String) {
    let link = place.path("unbound");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gannet"), &link).unwrap();
    let usual = place.gannet();
    let mut command = Command::new(&link);
    command.current_dir(place.path("")).args(["-d", "-c"]).arg(file).stderr(Stdio::piped());
    for (name, value) in usual.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("start of service")));
    let said = said.expect("it starts").unwrap();
    (child, lines, said)
}

#[test]
fn called_by_its_name_it_runs_with_its_configuration() {
    let place = Place::new();
    let port = free_port();
    let file = place.write("unbound.conf", &config(port));
    let (mut child, _log, said) = start(&place, &file);
    assert!(said.starts_with('[') && said.contains(&format!("unbound[{}:0] info: ", child.id())), "{said}");

    let (reply, _) = ask(port, "www.example.org");
    assert!(reply.ends_with(&[192, 0, 2, 7]), "{reply:?}");

    let ended = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(ended.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Local zones answer first, then policy zones, then zones with authority.
#[test]
fn a_zone_with_authority_answers_behind_local_zones_and_policy_zones() {
    let place = Place::new();
    let zone = "$ORIGIN rpz.example.\n@ 300 SOA ns. root. 1 2 3 4 5\nblocked.example.net A 192.0.2.2\n";
    place.write("rpz.zone", zone);
    let zone = "example.net. 300 SOA ns.example. root.example. 1 2 3 4 5\nexample.net. 300 NS ns.example.\n\
                *.example.net. 300 A 192.0.2.3\n";
    place.write("net.zone", zone);
    let port = free_port();
    let text = config(port)
        + "server: local-zone: local.example.net redirect local-data: \"local.example.net A 192.0.2.1\"\n\
           rpz: name: rpz.example zonefile: rpz.zone\n\
           auth-zone: name: example.net zonefile: net.zone for-downstream: yes for-upstream: no\n";
    let (mut child, _log, _) = start(&place, &place.write("unbound.conf", &text));
    for (name, last) in [("local", 1), ("blocked", 2), ("www", 3)] {
        let (reply, _) = ask(port, &format!("{name}.example.net"));
        assert!(reply.ends_with(&[192, 0, 2, last]), "{name}: {reply:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_depends_on_clients_and_answers_is_imported_as_it_is() {
    let place = Place::new();
    let zone = "$ORIGIN rpz.example.\n@ 300 SOA ns. root. 1 2 3 4 5\nbad.example CNAME .\n";
    place.write("rpz.zone", zone);
    let text = "server:\n username: \"\"\n module-config: \"respip validator iterator\"\n define-tag: \"a b\"\n access-control: 192.0.2.0/24 allow_snoop\n\
                \taccess-control-tag: 192.0.2.0/25 \"a\"\n access-control-tag: 192.0.2.128/25 \"b\"\n\
                \taccess-control-tag-action: 192.0.2.128/25 b refuse\n access-control-view: 192.0.2.64/26 own\n\
                \tlocal-zone: tagged.example redirect\n local-zone-tag: tagged.example \"a b\"\n\
                \tlocal-data: 'tagged.example. TXT \"a \\\"b\\\" c\"'\n local-zone: four.example block_aaaa\n\
                \tresponse-ip: 198.51.100.0/24 redirect\n response-ip-data: 198.51.100.0/24 \"A 192.0.2.1\"\n\
                \tresponse-ip: 198.51.100.7/32 always_nxdomain\n response-ip-tag: 198.51.100.7/32 \"a\"\n\
                view:\n name: own\n local-zone: own.example static\n local-data: \"www.own.example. A 192.0.2.7\"\n\
                \tresponse-ip: 203.0.113.0/24 deny\n view-first: yes\n\
                rpz:\n name: rpz.example\n zonefile: rpz.zone\n\
                rpz:\n name: rpz2.example\n zonefile: rpz.zone\n rpz-action-override: nodata\n tags: \"a\"\n\
                stub-zone:\n name: \".\"\n stub-addr: 192.0.2.53\n";
    place.write("unbound.conf", text);
    let (code, stdout, _) = text_of(&place, &["check", "--unbound", "unbound.conf"]);
    assert_eq!((code, &*stdout), (0, "unbound.conf: no mistakes found\n"));
    let (code, stdout, stderr) =
        text_of(&place, &["import", "unbound", "unbound.conf", "--to", "gannet.yaml"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let (code, stdout, _) = text_of(&place, &["check", "gannet.yaml"]);
    assert_eq!((code, &*stdout), (0, "gannet.yaml: no mistakes found\n"));
}

fn text_of(place: &Place, arguments: &[&str]) -> (i32, String, String) {
    text(&place.run(arguments))
}

#[test]
fn its_configuration_is_checked_and_imported() {
    let place = Place::new();
    place.write("unbound.conf", &config(5353));
    let (code, stdout, _) = text(&place.run(&["check", "--unbound", "unbound.conf"]));
    assert_eq!((code, &*stdout), (0, "unbound.conf: no mistakes found\n"));
    let (code, stdout, stderr) =
        text(&place.run(&["import", "unbound", "unbound.conf", "--to", "gannet.yaml"]));
    assert_eq!(code, 0, "{stdout}{stderr}");
    let (code, stdout, _) = text(&place.run(&["check", "gannet.yaml"]));
    assert_eq!((code, &*stdout), (0, "gannet.yaml: no mistakes found\n"));
    place.write("wrong.conf", "server:\n  prot: 53\n  do-ip6: nein\n");
    let (code, stdout, _) = text(&place.run(&["check", "--unbound", "wrong.conf", "--format", "line"]));
    assert_eq!(code, 1);
    assert_eq!(
        stdout,
        "wrong.conf:2:3: error: unknown keyword \"prot\"\n\
         wrong.conf:3:11: error: \"nein\" is no value of \"do-ip6\": expected \"yes\" or \"no\"\n"
    );
    let (code, stdout, _) = text(&place.run(&["unbound", "-V"]));
    assert!(code == 0 && stdout.starts_with("Version ") && stdout.contains("validator iterator"), "{stdout}");
}

#[test]
fn a_wait_for_a_stale_answer_that_is_longer_than_queries_are_answered_is_told_in_both_languages() {
    let place = Place::new();
    let warning = |at: &str, patience: &str, most: &str| {
        format!(
            "{at}: warning: clients over UDP get no stale answers: \"stale-client-timeout\" ({patience}) is longer than \
             \"discard-timeout\" ({most})\n"
        )
    };
    let check = |file: &str, text: &str, expect: &str| {
        place.write(file, text);
        let language: &[&str] = if file.ends_with("conf") { &["--unbound"] } else { &[] };
        let arguments = [&["check"], language, &[file, "--format", "line"]].concat();
        let (code, stdout, stderr) = text_of(&place, &arguments);
        assert_eq!((code, stdout.as_str()), (0, expect), "{text}: {stderr}");
    };
    let upstreams = "upstreams: {default: {servers: [192.0.2.1]}}\n";
    let yaml = format!("{upstreams}cache: {{main: {{stale-client-timeout: 3s}}}}\n");
    check("gannet.yaml", &yaml, &warning("gannet.yaml:2:38", "3s", "1s900ms"));
    let yaml = format!("{upstreams}limits: {{discard-timeout: 1s}}\n");
    check("gannet.yaml", &yaml, &warning("gannet.yaml:2:27", "1s800ms", "1s"));
    for more in
        ["cache: {main: {stale: off}}\nlimits: {discard-timeout: 1s}", "limits: {discard-timeout: off}"]
    {
        check("gannet.yaml", &format!("{upstreams}{more}\n"), "");
    }
    let late = "server:\n username: \"\"\n serve-expired: yes\n serve-expired-client-timeout: 2000\n";
    check("late.conf", late, &warning("late.conf:4:32", "2s", "1s900ms"));
    let early = "server:\n username: \"\"\n serve-expired: yes\n discard-timeout: 1000\n";
    check("early.conf", early, &warning("early.conf:4:19", "1s800ms", "1s"));
    check("off.conf", "server:\n username: \"\"\n discard-timeout: 1000\n", "");
}
