//! Backups of a running server, and their way back.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use testkit::{Ask, Script, Server, Stub, contains, forwarding, lacks};
use wire::Rtype;

use super::network::{api_address, curl, shown, text, token};
use super::users::PASSWORD;
use super::{JSON, ask, get};

fn yaml(stub: &Stub) -> String {
    let more = "control: {listen: [\"127.0.0.1:0\"]}\n\
                sets: {bad: {dynamic: {holds: names}}, mine: {lists: [{own: mine}]}}\n\
                zones: [{name: example.org, file: example.org.zone}]\n\
                policy: {main: [local, {if: qname in bad|mine, do: reject(nxdomain)}, zones, forward(default)]}\n";
    forwarding(&[stub], more)
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = "@ 300 SOA ns admin 1 3600 600 86400 300\n@ 300 NS ns\nns 300 A 192.0.2.1\n";
    fs::write(directory.path().join("example.org.zone"), zone).expect("written");
    directory
}

#[track_caller]
fn fine(server: &Server, arguments: &[&str]) -> String {
    let output = server.command(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    text(&output)
}

fn has(file: &Path, text: &str) -> bool {
    let octets = fs::read(file).expect("a file");
    octets.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn what_was_backed_up_while_the_server_ran_is_there_after_the_next_start() {
    let stub = Stub::start(Script::default());
    let yaml = yaml(&stub);
    let mut server = Server::start_in(directory(), &yaml);
    api_address(&mut server);
    fine(&server, &["config", "set", "local.nas.home.arpa", "192.0.2.7"]);
    fine(&server, &["config", "set", "cookies.secret", "00112233445566778899aabbccddeeff"]);
    fine(&server, &["set", "add", "bad", "bad.example.net"]);
    fine(&server, &["list", "add", "mine", "ads.example.net"]);
    fine(&server, &["zone", "set", "example.org", "www.example.org", "A", "192.0.2.9", "--ttl", "300"]);
    let user = format!("{{\"name\": \"anna\", \"role\": \"admin\", \"password\": \"{PASSWORD}\"}}");
    assert_eq!(ask(&server, "POST", "/users", &[JSON], &user).status, 200);
    let secret = token(&server, "nas", &[]);
    let [plain, whole] = ["plain.tar", "whole.tar"].map(|name| server.directory().join(name));
    fine(&server, &["backup", plain.to_str().expect("text")]);
    fine(&server, &["backup", whole.to_str().expect("text"), "--secrets"]);
    assert!(!server.command(&["backup", "plain.tar"]).status.success(), "nothing is written over");
    let hash = {
        let output =
            std::process::Command::new("sh").args(["-c", "printf %s \"$0\" | sha256sum", &secret]).output();
        String::from_utf8_lossy(&output.expect("sha256sum(1)").stdout).chars().take(64).collect::<String>()
    };
    // A hash of a token and of a password, a setting that says a secret, the keys of the audit log.
    for (what, is_in) in [
        ("00112233445566778899aabbccddeeff", true),
        (hash.as_str(), true),
        ("memory-kib", true),
        ("audit.key", true),
    ] {
        assert_eq!((has(&plain, what), has(&whole, what)), (false, is_in), "{what}");
    }
    assert!(has(&plain, "cookies.secret") && has(&plain, "192.0.2.7"), "what is left out is named");
    // What comes later is not in it.
    fine(&server, &["config", "set", "local.nas.home.arpa", "192.0.2.8"]);
    fine(&server, &["set", "del", "bad", "bad.example.net"]);
    fine(&server, &["zone", "unset", "example.org", "www.example.org", "A"]);
    contains(&fine(&server, &["restore", "whole.tar", "--dry-run"]), "it can be restored");
    contains(&fine(&server, &["restore", "whole.tar"]), "the next start of the server takes it up");
    assert_eq!(server.dig_short(&["nas.home.arpa"]), ["192.0.2.8"], "not before");
    let (_, _, directory) = server.stop();
    let mut server = Server::start_in(directory, &yaml);
    server.wait_for_log("a backup was restored");
    assert_eq!(server.dig_short(&["nas.home.arpa"]), ["192.0.2.7"]);
    assert_eq!(server.dig_short(&["www.example.org"]), ["192.0.2.9"]);
    for name in ["bad.example.net", "ads.example.net"] {
        assert_eq!(server.ask(&Ask::new(name, Rtype::A)).rcode(), wire::Rcode::NXDOMAIN, "{name}");
    }
    let at = api_address(&mut server);
    assert_eq!(curl(at, "/api/v1/status", &["--header", &shown(&secret)]).0, 200, "the token");
    let audit = fine(&server, &["audit", "tail", "-n", "50"]);
    let restored = audit.lines().find(|line| line.contains("restore") && line.contains("done"));
    let restored = restored.expect("a row of the restored log");
    contains(restored, "the backup of");
    lacks(restored, "by the start");
    lacks(
        &fs::read_dir(server.directory()).map_or_else(
            |_| String::new(),
            |all| {
                all.flatten()
                    .map(|it| it.file_name().to_string_lossy().into_owned())
                    .collect::<Vec<_>>()
                    .join(" ")
            },
        ),
        "restore.",
    );
    let export = fine(&server, &["audit", "export"]);
    fs::write(server.directory().join("export"), export).expect("written");
    fine(&server, &["audit", "verify", "export"]);
}

/// Returns how many KiB of memory a process has, or had at most.
fn memory_kib(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB").parse().expect("a number")
}

/// Runs a program and prints how many KiB of memory it had at most.
const MEASURE: &str = "
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
";

#[test]
fn a_large_backup_is_made_sent_and_laid_down_without_being_in_memory() {
    const OCTETS: u64 = 300 << 20;
    const MORE_KIB_MAX: u64 = 128 << 10;
    let stub = Stub::start(Script::default());
    let server = Server::start_in(directory(), &yaml(&stub));
    fine(&server, &["config", "set", "local.nas.home.arpa", "192.0.2.7"]);
    let zones = server.directory().join("zones");
    fs::create_dir_all(&zones).expect("a folder");
    // It takes no room before it is copied.
    fs::File::create(zones.join("large.example.base")).and_then(|file| file.set_len(OCTETS)).expect("a file");
    let before = memory_kib(server.pid(), "VmRSS");
    let measured = |arguments: &[&str]| {
        let program = testkit::program(server.directory());
        let mut command = std::process::Command::new("python3");
        command.args(["-c", MEASURE]).arg(program.get_program()).args(arguments);
        command.current_dir(server.directory()).env("GANNET_SOCKET", server.directory().join("control.sock"));
        let output = command.output().expect("python3");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        let said = text(&output);
        said.lines().last().and_then(|line| line.parse::<u64>().ok()).expect("a number")
    };
    for arguments in [["backup", "a.tar"], ["restore", "a.tar"]] {
        let kib = measured(&arguments);
        assert!(kib < MORE_KIB_MAX, "{arguments:?}: {kib} KiB");
    }
    assert!(fs::metadata(server.directory().join("a.tar")).expect("a file").len() > OCTETS);
    let after = memory_kib(server.pid(), "VmHWM");
    assert!(after < before + MORE_KIB_MAX, "{before} KiB before, {after} KiB at most");
    assert!(server.directory().join("restore.ready/zones/large.example.base").exists());
}

#[test]
fn a_backup_is_restored_without_a_server_and_not_beside_one() {
    let stub = Stub::start(Script::default());
    let yaml = yaml(&stub);
    let server = Server::start_in(directory(), &yaml);
    fine(&server, &["config", "set", "local.nas.home.arpa", "192.0.2.7"]);
    fine(&server, &["backup", "a.tar", "--secrets"]);
    fine(&server, &["config", "set", "local.nas.home.arpa", "192.0.2.8"]);
    let offline = ["restore", "a.tar", "--offline", "-c", "gannet.yaml"];
    let refused = server.command(&offline);
    assert!(!refused.status.success());
    contains(&text(&refused), "a server uses");
    let (_, _, directory) = server.stop();
    let command = |arguments: &[&str]| {
        let output = testkit::program(directory.path()).args(arguments).output().expect("the program starts");
        (output.status.success(), text(&output))
    };
    let (is_done, said) = command(&[&offline[..], &["--dry-run"]].concat());
    assert!(is_done, "{said}");
    contains(&said, "it can be restored");
    assert!(!directory.path().join("restore.ready").exists());
    // What was changed, or does not go with the file, is refused here, too.
    let archive = directory.path().join("a.tar");
    let octets = fs::read(&archive).expect("a file");
    let mut changed = octets.clone();
    let place = changed.windows(9).rposition(|part| part == b"192.0.2.7").expect("it is there");
    changed[place + 8] = b'9';
    fs::write(&archive, &changed).expect("written");
    let (is_done, said) = command(&offline);
    assert!(!is_done);
    contains(&said, "is not as it was written");
    fs::write(&archive, &octets).expect("written");
    let config = directory.path().join("gannet.yaml");
    let good = fs::read_to_string(&config).expect("a file");
    fs::write(&config, good.replace("sets: {", "nonsense: 1\nsets: {")).expect("written");
    let (is_done, said) = command(&offline);
    assert!(!is_done);
    contains(&said, "unknown setting");
    fs::write(&config, &good).expect("written");
    // On a new machine, no server has made the state directory.
    let old = format!("state-directory: \"{}\"", directory.path().display());
    let new = format!("state-directory: \"{}\"", directory.path().join("new/state").display());
    assert!(good.contains(&old), "{good}");
    fs::write(directory.path().join("new.yaml"), good.replace(&old, &new)).expect("written");
    let elsewhere = ["restore", "a.tar", "--offline", "-c", "new.yaml"];
    let (is_done, said) = command(&[&elsewhere[..], &["--dry-run"]].concat());
    assert!(is_done && !directory.path().join("new/state").exists(), "{said}");
    let (is_done, said) = command(&elsewhere);
    assert!(is_done && directory.path().join("new/state/restore.ready").exists(), "{said}");
    let (is_done, said) = command(&offline);
    assert!(is_done, "{said}");
    contains(&said, "the next start of the server takes it up");
    let server = Server::start_in(directory, &yaml);
    assert_eq!(server.dig_short(&["nas.home.arpa"]), ["192.0.2.7"]);
    let audit = fine(&server, &["audit", "tail", "-n", "50"]);
    contains(&audit, "by restore --offline");
    // Neither option without the other.
    assert_eq!(server.command(&["restore", "a.tar", "-c", "gannet.yaml"]).status.code(), Some(2));
}

#[test]
fn an_archive_ends_with_the_token_that_it_was_begun_with() {
    let stub = Stub::start(Script::default());
    let mut server = Server::start_in(directory(), &yaml(&stub));
    let at = api_address(&mut server);
    fine(&server, &["backup", "a.tar", "--secrets"]);
    let archive = fs::read(server.directory().join("a.tar")).expect("a file");
    let secret = token(&server, "thrown-out", &["--role", "admin"]);
    let mut stream = TcpStream::connect(at).expect("connected");
    let head = format!(
        "POST /api/v1/restore HTTP/1.1\r\nHost: {at}\r\n{}\r\nContent-Type: application/x-tar\r\n\
         Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        shown(&secret),
        archive.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    // The server waits for the archive from here on.
    let mut heard = [0; 25];
    stream.read_exact(&mut heard).expect("told to go on");
    assert_eq!(&heard, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(&archive[..512]).expect("sent");
    fine(&server, &["token", "revoke", "thrown-out"]);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    contains(&answer, "HTTP/1.1 401");
    contains(&answer, "counts no more");
    assert!(!server.directory().join("restore.ready").exists());
}

#[test]
fn a_backup_that_the_next_start_could_not_run_on_is_refused() {
    let stub = Stub::start(Script::default());
    let server = Server::start_in(directory(), &yaml(&stub));
    let key = "[{name: updater, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]";
    let zones = "[{name: example.org, file: example.org.zone, update: [key updater]}]";
    fine(&server, &["config", "set", "keys", key]);
    fine(&server, &["config", "set", "zones", zones]);
    fine(&server, &["backup", "plain.tar"]);
    fine(&server, &["backup", "whole.tar", "--secrets"]);
    for more in [&["--dry-run"][..], &[]] {
        let output = server.command(&[&["restore", "plain.tar"], more].concat());
        assert!(!output.status.success());
        contains(&text(&output), "updater");
        assert!(!server.directory().join("restore.ready").exists());
    }
    fine(&server, &["restore", "whole.tar", "--dry-run"]);
}

#[test]
fn a_backup_that_is_not_as_it_was_written_is_refused_and_strangers_get_none() {
    let stub = Stub::start(Script::default());
    let mut server = Server::start_in(directory(), &yaml(&stub));
    let at = api_address(&mut server);
    fine(&server, &["config", "set", "local.nas.home.arpa", "192.0.2.7"]);
    fine(&server, &["backup", "a.tar"]);
    let file = server.directory().join("a.tar");
    let mut octets = fs::read(&file).expect("a file");
    let place = octets.windows(9).rposition(|part| part == b"192.0.2.7").expect("it is there");
    octets[place + 8] = b'8';
    fs::write(&file, &octets).expect("written");
    let output = server.command(&["restore", "a.tar"]);
    assert!(!output.status.success());
    contains(&text(&output), "the file changes/changes.db is not as it was written");
    fs::write(&file, b"no tar").expect("written");
    contains(&text(&server.command(&["restore", "a.tar"])), "this is no backup");
    assert!(!server.directory().join("restore.ready").exists());
    assert_eq!(curl(at, "/api/v1/backup", &[]).0, 401);
    for (name, role, more) in [("o", "operator", &[][..]), ("b", "admin", &["--path", "local"])] {
        let bound = token(&server, name, &[&["--role", role], more].concat());
        assert_eq!(curl(at, "/api/v1/backup", &["--header", &shown(&bound)]).0, 403, "{name}");
        let post = ["--header", &shown(&bound), "--header", "Content-Type: application/x-tar", "--data", "x"];
        assert_eq!(curl(at, "/api/v1/restore", &post).0, 403, "{name}");
    }
    contains(&get(&server, "/audit?count=50").body, "backup");
}
