//! Commands that need no server.

use crate::harness::{Place, text};

#[test]
fn help_lists_every_command_and_shows_examples() {
    let (code, stdout, _) = text(&Place::new().run(&["--help"]));
    assert_eq!(code, 0);
    for word in [
        "run",
        "check",
        "reload",
        "status",
        "stats",
        "cache",
        "query",
        "config",
        "import",
        "completions",
        "man",
        "version",
    ] {
        assert!(stdout.contains(&format!("\n  {word} ")), "{word} is missing:\n{stdout}");
    }
    assert!(stdout.contains("gannet query example.org AAAA"));
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [&["fly"][..], &["cache", "flush"], &["query"], &["query", "example.org", "NONSENSE"]] {
        assert_eq!(text(&Place::new().run(arguments)).0, 2, "{arguments:?}");
    }
}

#[test]
fn the_manual_is_a_manual_page() {
    let (code, stdout, _) = text(&Place::new().run(&["man"]));
    assert_eq!(code, 0);
    assert!(stdout.contains(".TH gannet 1") && stdout.contains(".SH SYNOPSIS"), "{stdout}");
    let (code, stdout, _) = text(&Place::new().run(&["man", "gannet.yaml"]));
    assert_eq!(code, 0);
    assert!(
        stdout.contains(".TH gannet.yaml 5") && stdout.contains(".SS \\fBserver.workers\\fR"),
        "{stdout}"
    );
}

#[test]
fn every_command_can_have_its_own_page() {
    let place = Place::new();
    assert_eq!(text(&place.run(&["man", "--to", "pages"])).0, 0);
    for page in ["gannet.1", "gannet-query.1", "gannet-cache-flush.1"] {
        assert!(place.path("pages").join(page).exists(), "{page}");
    }
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, stdout, _) = text(&Place::new().run(&["completions", shell]));
        assert_eq!(code, 0, "{shell}");
        assert!(stdout.contains("gannet"), "{shell}");
    }
}

#[test]
fn the_version_is_the_packages() {
    let (code, stdout, _) = text(&Place::new().run(&["version"]));
    assert_eq!((code, stdout.as_str()), (0, concat!("gannet ", env!("CARGO_PKG_VERSION"), "\n")));
    let (_, stdout, _) = text(&Place::new().run(&["version", "--json"]));
    assert_eq!(stdout, concat!("{\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}\n"));
}

#[test]
fn without_a_server_the_remote_commands_say_where_they_looked() {
    let place = Place::new();
    let commands =
        [&["status"][..], &["stats"], &["reload"], &["cache", "stats"], &["cache", "flush", "--all"]];
    for arguments in commands {
        let (code, _, stderr) = text(&place.run(arguments));
        assert_eq!(code, 1, "{arguments:?}");
        assert!(
            stderr.contains("no running gannet found; tried ") && stderr.contains("control.sock"),
            "{stderr}"
        );
    }
}

#[test]
fn check_prints_every_mistake_at_once_in_three_formats() {
    let place = Place::new();
    place.write("gannet.yaml", "lisen: [\"127.0.0.1:53\"]\nserver: {workers: many}\n");
    let (code, stdout, _) = text(&place.run(&["check", "-c", "gannet.yaml"]));
    assert_eq!(code, 1);
    assert!(stdout.contains("gannet.yaml:1:1: error: ") && stdout.contains("gannet.yaml:2:"), "{stdout}");
    assert!(stdout.contains("^^^^^") && stdout.contains("listen"), "{stdout}");
    assert!(stdout.ends_with("gannet.yaml: 2 errors\n"), "{stdout}");

    let (code, stdout, _) = text(&place.run(&["check", "gannet.yaml", "--format", "line"]));
    assert_eq!(code, 1);
    assert!(
        stdout.lines().count() == 2 && stdout.lines().all(|line| line.starts_with("gannet.yaml:")),
        "{stdout}"
    );

    let (code, stdout, _) = text(&place.run(&["check", "gannet.yaml", "--json"]));
    assert_eq!(code, 1);
    assert!(stdout.starts_with('[') && stdout.contains("\"severity\": \"error\""), "{stdout}");
    assert!(stdout.contains("\"line\": 1,") && stdout.contains("\"column\": 1,"), "{stdout}");
}

#[test]
fn a_right_configuration_passes() {
    let place = Place::new();
    place.write(
        "gannet.yaml",
        "listen: [\"127.0.0.1:5300\"]\nupstreams: {default: {servers: [192.0.2.53]}}\n",
    );
    let (code, stdout, _) = text(&place.run(&["check", "gannet.yaml"]));
    assert_eq!((code, stdout.as_str()), (0, "gannet.yaml: no mistakes found\n"));
    let output = place.gannet().arg("check").env("GANNET_CONFIG", "gannet.yaml").output().unwrap();
    assert_eq!(text(&output).1, "gannet.yaml: no mistakes found\n");
    assert_eq!(text(&place.run(&["check", "-c", "nowhere.yaml"])).0, 1);
}

#[test]
fn the_settings_in_force_are_shown_with_their_places_and_without_secrets() {
    let place = Place::new();
    let secret = "00112233445566778899aabbccddeeff";
    place.write("gannet.yaml", &format!("edns: {{udp-size: 1400}}\ncookies: {{secret: {secret}}}\n"));
    let (code, stdout, _) = text(&place.run(&["config", "show", "-c", "gannet.yaml"]));
    assert_eq!(code, 0);
    assert!(stdout.contains("  udp-size: 1400\n") && !stdout.contains(secret), "{stdout}");
    let (_, stdout, _) = text(&place.run(&["config", "show", "--origin", "-c", "gannet.yaml"]));
    let line = stdout.lines().find(|line| line.contains("udp-size: 1400")).unwrap();
    assert!(line.ends_with("  # gannet.yaml:1"), "{line}");
    assert!(!stdout.contains(secret), "{stdout}");
}

#[test]
fn the_default_configuration_is_a_right_one() {
    let place = Place::new();
    let (code, stdout, _) = text(&place.run(&["config", "default"]));
    assert_eq!(code, 0);
    place.write("gannet.yaml", &stdout);
    assert_eq!(text(&place.run(&["check", "gannet.yaml"])).0, 0);
}

#[test]
fn the_schema_is_for_people_or_for_editors() {
    let (_, stdout, _) = text(&Place::new().run(&["config", "schema"]));
    assert!(stdout.contains("udp-size"), "{stdout}");
    let (_, stdout, _) = text(&Place::new().run(&["config", "schema", "--json"]));
    assert!(stdout.starts_with('{') && stdout.contains("\"$schema\""), "{stdout}");
}

#[test]
fn the_configuration_in_force_can_be_had_as_json() {
    let place = Place::new();
    let yaml =
        "server: {workers: 2}\nlisten: [\"127.0.0.1:5300\"]\nupstreams: {default: {servers: [192.0.2.53]}}\n";
    place.write("gannet.yaml", yaml);
    let (code, stdout, stderr) = text(&place.run(&["config", "show", "-c", "gannet.yaml", "--json"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with("{\n") && stdout.ends_with("\n}\n"), "{stdout}");
    assert!(stdout.contains("\"workers\": 2") && stdout.contains("\"192.0.2.53\""), "{stdout}");
    place.write("bad.yaml", "lisen: 127.0.0.1\n");
    let (code, stdout, stderr) = text(&place.run(&["config", "show", "-c", "bad.yaml", "--json"]));
    assert_eq!((code, stderr.as_str()), (1, ""));
    assert!(stdout.starts_with("{\n  \"error\": \"bad.yaml:1:1: error: "), "{stdout}");
}

#[test]
fn a_list_that_is_too_large_names_the_setting() {
    let place = Place::new();
    place.write("long.txt", &"a-name.example\n".repeat(200));
    let yaml =
        "listen: [\"127.0.0.1:5300\"]\nsets: {ads: {lists: [{list: \"names:long.txt\", size: 1KiB}]}}\n";
    place.write("gannet.yaml", yaml);
    let (code, stdout, _) = text(&place.run(&["check", "gannet.yaml"]));
    assert_eq!(code, 1);
    assert!(stdout.contains("is larger than 1KiB; if it may be, say so with \"size\""), "{stdout}");
    // Nothing is coloured where nobody sees it.
    assert!(!stdout.contains('\u{1b}'), "{stdout}");
}

const ZONE: &str = "$TTL 300\n@ SOA ns hostmaster 7 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\nsub NS ns.sub\nns.sub A 192.0.2.2\n";

#[test]
fn what_commands_find_in_zone_files_can_be_had_as_json() {
    let place = Place::new();
    place.write("example.org.zone", ZONE);
    let (code, stdout, stderr) = text(&place.run(&["zone", "check", "example.org.zone", "--json"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    for part in [
        "\"zone\": \"example.org.\"",
        "\"is-right\": true",
        "\"serial\": 7",
        "\"cuts\": 1",
        "\"denial\": \"none\"",
    ] {
        assert!(stdout.contains(part), "no {part} in {stdout}");
    }
    place.write("bad.zone", &format!("{ZONE}www B 192.0.2.3\n"));
    let (code, stdout, _) =
        text(&place.run(&["zone", "check", "bad.zone", "--name", "example.org", "--json"]));
    assert_eq!(code, 1);
    for part in ["\"is-right\": false", "\"severity\": \"error\"", "\"line\": 7"] {
        assert!(stdout.contains(part), "no {part} in {stdout}");
    }
    assert!(!stdout.contains("facts"), "{stdout}");
    let (code, stdout, stderr) = text(&place.run(&["zone", "check", "nowhere.zone", "--json"]));
    assert_eq!((code, stderr.as_str()), (1, ""));
    assert!(stdout.contains("\"error\": \"cannot read"), "{stdout}");
}

#[test]
fn keys_and_what_is_signed_with_them_can_be_had_as_json() {
    let place = Place::new();
    place.write("example.org.zone", ZONE);
    let (_, stdout, _) = text(&place.run(&["zone", "keys", "list", "--json"]));
    assert_eq!(stdout, "[]\n");
    assert_eq!(text(&place.run(&["zone", "keys", "generate", "example.org", "--keys", "."])).0, 0);
    let (code, stdout, _) = text(&place.run(&["zone", "keys", "list", "--json"]));
    assert_eq!(code, 0);
    for part in [
        "\"zone\": \"example.org.\"",
        "\"algorithm\": \"ECDSAP256SHA256\"",
        "\"state\": \"active\"",
        "\"is-open\": false",
    ] {
        assert!(stdout.contains(part), "no {part} in {stdout}");
    }
    let verify = |file: &str| {
        let (code, stdout, stderr) =
            text(&place.run(&["zone", "verify", file, "--name", "example.org", "--json"]));
        assert_eq!(stderr, "");
        (code, stdout)
    };
    let signed = text(&place.run(&["zone", "sign", "example.org.zone", "--keys", ".", "--zonemd", "sha384"]));
    assert_eq!(signed.0, 0, "{signed:?}");
    let (code, stdout) = verify("example.org.zone.signed");
    assert!(
        code == 0 && stdout.contains("\"is-right\": true") && stdout.contains("\"zonemd\": \"right\""),
        "{stdout}"
    );
    let (code, stdout) = verify("example.org.zone");
    assert!(
        code == 1 && stdout.contains("\"is-right\": false") && !stdout.contains("\"faults\": []"),
        "{stdout}"
    );
}
