//! Keys in PKCS#11 tokens: made there, signed with, replaced and removed. The token is SoftHSM's.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;
use testkit::{
    Server, contains, ds_of_keys, eventually, eventually_within, is_installed, lacks, said, write_anchor,
};

const PIN: &str = "s3cret-p1n";
/// Enough names for several threads to sign some of them.
const MANY: &str = "$GENERATE 1-900 host-$ A 192.0.2.1\n";
const FEW: &str = "$GENERATE 1-9 host-$ A 192.0.2.1\n";
const ZONE: &str = "$TTL 1\n@ SOA ns admin 7 7200 600 86400 1\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n*.wild TXT \"any\"\n";
/// Where distributions have SoftHSM's module.
const MODULES: [&str; 5] = [
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib64/softhsm/libsofthsm2.so",
    "/usr/lib64/pkcs11/libsofthsm2.so",
    "/usr/lib/pkcs11/libsofthsm2.so",
    "/usr/local/lib/softhsm/libsofthsm2.so",
];
/// How long a key may take to leave: each of its states waits for a TTL of a second, and for the
/// clock.
const PATIENCE: Duration = Duration::from_secs(120);

/// A token in a directory of its own, and the environment in which the module finds it.
struct Token {
    directory: PathBuf,
    module: &'static str,
}

impl Token {
    /// Makes a token with the name `gannet`; `None` where there is no SoftHSM.
    fn new(directory: &Path) -> Option<Self> {
        if !is_installed("softhsm2-util") {
            return None;
        }
        let module = MODULES.into_iter().find(|module| Path::new(module).exists());
        let token = Self { directory: directory.to_owned(), module: module.expect("the module of SoftHSM") };
        std::fs::create_dir(directory.join("tokens")).expect("a writable directory");
        let conf = format!("directories.tokendir = {}/tokens\nlog.level = ERROR\n", directory.display());
        std::fs::write(token.conf(), conf).expect("a writable directory");
        token.write_pin(PIN, 0o600);
        token.util(&["--init-token", "--free", "--label", "gannet", "--so-pin", "12345678", "--pin", PIN]);
        Some(token)
    }

    fn conf(&self) -> PathBuf {
        self.directory.join("softhsm2.conf")
    }

    fn write_pin(&self, pin: &str, mode: u32) {
        let path = self.directory.join("pin");
        std::fs::write(&path, format!("{pin}\n")).expect("a writable directory");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("our file");
    }

    #[track_caller]
    fn util(&self, arguments: &[&str]) {
        let output = Command::new("softhsm2-util")
            .args(arguments)
            .current_dir(&self.directory)
            .env("SOFTHSM2_CONF", self.conf())
            .output()
            .expect("softhsm2-util runs");
        assert!(output.status.success(), "{}", said(&output));
    }

    /// Returns a URI with `more` behind the name of the token.
    fn uri(&self, more: &str) -> String {
        let pin = self.directory.join("pin");
        format!("pkcs11:token=gannet{more}?module-path={}&pin-source=file:{}", self.module, pin.display())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut program = testkit::program(&self.directory);
        program.args(arguments).env("SOFTHSM2_CONF", self.conf()).output().expect("gannet runs")
    }

    /// Runs `gannet` and expects it to be content.
    #[track_caller]
    fn gannet(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {} {}", output.status, said(&output));
        lacks(&said(&output), PIN);
        said(&output)
    }

    /// Runs `gannet` and expects it to refuse.
    #[track_caller]
    fn refused(&self, arguments: &[&str], expect: &str) {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", said(&output));
        contains(&said(&output), expect);
        lacks(&said(&output), PIN);
    }

    #[track_caller]
    fn generate(&self, algorithm: &str, role: &str) -> String {
        let uri = self.uri("");
        let arguments = ["zone", "keys", "generate", "example.org", "--keys", "keys", "--token", &uri];
        self.gannet(&[&arguments[..], &["-a", algorithm, "--role", role]].concat()).trim().to_owned()
    }

    /// Returns the files of the objects in the token: two for each pair of keys.
    fn objects(&self) -> Vec<PathBuf> {
        let inside = |path: PathBuf| {
            let entries = std::fs::read_dir(path).expect("a directory");
            entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
        };
        let is_object = |path: &PathBuf| {
            path.extension().is_some_and(|end| end == "object") && !path.ends_with("token.object")
        };
        inside(self.directory.join("tokens")).into_iter().flat_map(inside).filter(is_object).collect()
    }

    fn environment(&self) -> String {
        self.conf().display().to_string()
    }
}

fn directory() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("example.org.zone"), ZONE).expect("a writable directory");
    directory
}

#[track_caller]
fn other(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", said(&output));
    said(&output)
}

#[track_caller]
fn others_verify(directory: &Path) {
    other(directory, "dnssec-verify", &["-z", "-q", "-o", "example.org", "example.org.zone.signed"]);
    other(directory, "ldns-verify-zone", &["-V", "1", "example.org.zone.signed"]);
}

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).expect("a file")
}

#[test]
fn zones_are_signed_with_keys_that_never_leave_their_token() {
    for (algorithm, name, bits) in [
        ("8", "RSASHA256", 2048),
        ("10", "RSASHA512", 2048),
        ("13", "ECDSAP256SHA256", 256),
        ("14", "ECDSAP384SHA384", 384),
        ("15", "ED25519", 256),
        ("16", "ED448", 456),
    ] {
        let directory = directory();
        let path = directory.path();
        let Some(token) = Token::new(path) else { return };
        let stems = ["ksk", "zsk"].map(|role| token.generate(algorithm, role));
        assert_eq!(token.objects().len(), 4);
        for (stem, role) in stems.iter().zip(["ksk", "zsk"]) {
            let private = read(path, &format!("keys/{stem}.private"));
            assert!(private.contains("\nLabel: ") && !private.contains("PrivateKey:"), "{private}");
            lacks(&private, "PrivateExponent");
            let listed = token.gannet(&["zone", "keys", "list", "--keys", "keys"]);
            contains(&listed, &format!(" {name} {bits} bits, "));
            contains(&listed, &format!(", in pkcs11:token=gannet;object=example.org-{role}-"));
        }
        // How keys are shared between threads is the same for all algorithms; one has to do it.
        let names = if name == "ECDSAP256SHA256" { MANY } else { FEW };
        std::fs::write(path.join("example.org.zone"), ZONE.to_owned() + names).expect("a writable directory");
        token.gannet(&["zone", "sign", "example.org.zone", "--keys", "keys", "--threads", "4"]);
        others_verify(path);
        let verified = token.gannet(&["zone", "verify", "example.org.zone.signed", "--name", "example.org"]);
        contains(&verified, "every signature is good");
        // The same DS as of any other key.
        let ds = token.gannet(&["zone", "keys", "ds", "example.org", "--keys", "keys"]);
        let theirs = other(path, "dnssec-dsfromkey", &["-2", &format!("keys/{}.key", stems[0])]);
        assert_eq!(theirs.split_whitespace().collect::<Vec<_>>(), ds.split_whitespace().collect::<Vec<_>>());
        let tag = ds.split(' ').nth(3).expect("a tag");
        let export = ["zone", "keys", "export", "example.org", tag, "--keys", "keys"];
        token.refused(&export, "the private key stays in its token");
        token.refused(
            &["zone", "keys", "export", "example.org", "--keys", "keys", "--form", "erldns"],
            "the private key stays in its token",
        );
        // BIND's pair has nothing to give away.
        let pair = token.gannet(&[&export[..], &["--form", "bind"]].concat());
        contains(&pair, "Label: ");
    }
}

#[test]
fn keys_that_are_in_a_token_already_are_taken_over() {
    for algorithm in ["8", "13"] {
        let directory = directory();
        let path = directory.path();
        let Some(token) = Token::new(path) else { return };
        token.gannet(&["zone", "keys", "generate", "example.org", "--keys", "files", "-a", algorithm]);
        token.gannet(&["zone", "keys", "export", "example.org", "--keys", "files", "-o", "key.pem"]);
        let names = ["--label", "a key of ours", "--id", "a1b2"];
        token.util(&[&["--import", "key.pem", "--token", "gannet", "--pin", PIN][..], &names].concat());
        for (index, more) in
            [";object=a%20key%20of%20ours", ";id=%a1%b2", ";object=a%20key%20of%20ours;id=%A1%B2"]
                .into_iter()
                .enumerate()
        {
            let (uri, keys) = (token.uri(more), format!("keys-{index}"));
            let arguments = ["zone", "keys", "import", &uri, "--zone", "example.org", "--keys", &keys];
            token.refused(&arguments[..4], "say it with --zone");
            if algorithm == "8" {
                token.refused(&arguments, "this is an RSA key; say its algorithm, 8 or 10");
            }
            let other_algorithm = if algorithm == "8" { "13" } else { "14" };
            token.refused(&[&arguments[..], &["-a", other_algorithm]].concat(), "and not of");
            token.gannet(&[&arguments[..], &["-a", algorithm]].concat());
            let ds = |keys: &str| token.gannet(&["zone", "keys", "ds", "example.org", "--keys", keys]);
            assert_eq!(ds("files"), ds(&keys));
            token.gannet(&["zone", "sign", "example.org.zone", "--keys", &keys]);
            others_verify(path);
        }
        let uri = token.uri(";object=another");
        let arguments = ["zone", "keys", "import", &uri, "--zone", "example.org", "-a", algorithm];
        token.refused(&arguments, "the token has no private key of this name");
        let uri = token.uri("");
        let arguments = ["zone", "keys", "import", &uri, "--zone", "example.org", "-a", algorithm];
        token.refused(&arguments, "the URI does not say which key of the token");
    }
}

#[test]
fn what_keeps_a_token_from_signing_is_said() {
    let directory = directory();
    let path = directory.path();
    let Some(token) = Token::new(path) else { return };
    token.generate("13", "csk");
    let sign = ["zone", "sign", "example.org.zone", "--keys", "keys"];
    let generate = |uri: &str, expect: &str| {
        let arguments = ["zone", "keys", "generate", "example.org", "--keys", "more", "--token", uri];
        token.refused(&arguments, expect);
    };
    token.write_pin("other-s3cret", 0o600);
    token.refused(
        &sign,
        "cannot sign: the PIN is wrong (CKR_PIN_INCORRECT): pkcs11:token=gannet;object=example.org-csk-",
    );
    token.write_pin(PIN, 0o644);
    token.refused(&sign, "everybody may read the PIN in ");
    std::fs::remove_file(path.join("pin")).expect("our file");
    token.refused(&sign, "cannot read the PIN in ");
    token.write_pin(PIN, 0o600);
    let whole = token.uri("");
    let (without_pin, _) = whole.split_once("&pin-source").expect("a PIN");
    generate(without_pin, "the token wants a PIN");
    generate(
        &format!("{without_pin}&pin-value={PIN}"),
        "\"pin-value\" would have the PIN where everybody reads it",
    );
    generate(&whole.replace("gannet", "nobody"), "the module has no such token");
    generate(&whole.replace(token.module, "/nowhere/module.so"), "the module cannot be loaded: ");
    generate(&token.uri(";object=a"), "gannet zone keys import");
    generate("pkcs11:tokken=a", "did you mean \"token\"?");
    generate("gannet", "this is no PKCS#11 URI");
    token.gannet(&sign);
    // Somebody removes the key.
    for object in token.objects() {
        std::fs::remove_file(object).expect("our file");
    }
    std::fs::write(path.join("example.org.zone"), ZONE.to_owned() + FEW).expect("a writable directory");
    token.refused(
        &sign,
        "cannot sign: the token has no private key of algorithm ECDSAP256SHA256 of this name: pkcs11:",
    );
}

/// Settings of a zone that is signed with keys in the token, which are known everywhere at once.
fn settings(token: &Token, zone: &str) -> String {
    format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         signing:\n  mine:\n    token: \"{}\"\n    propagation-delay: 0s\n    dnskey-ttl: 1s\n    parent-delay: 0s\n\
         zones: [{{name: example.org, file: {zone}, sign: mine}}]\npolicy: {{main: [{{do: reject(refused)}}]}}\n",
        token.uri("")
    )
}

fn start(directory: TempDir, token: &Token) -> Server {
    let environment = token.environment();
    let settings = settings(token, "example.org.zone");
    Server::start_with(directory, &settings, &[("SOFTHSM2_CONF", environment.as_str())])
}

fn keys(server: &Server) -> String {
    said(&server.command(&["zone", "keys", "status", "example.org"]))
}

/// Returns the tags of keys of a role, in the order in which they were made.
fn tags(server: &Server, role: &str) -> Vec<String> {
    let keys = keys(server);
    let lines = keys.lines().filter(|line| line.starts_with(role));
    lines.filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned)).collect()
}

/// Asks with BIND's validator, which trusts the keys that are served.
fn validates(server: &Server, name: &str, rtype: &str) -> bool {
    let keys = server.dig(&["+noall", "+answer", "example.org", "DNSKEY"]);
    let Ok(ds) = ds_of_keys(server.directory(), "example.org", &keys) else { return false };
    write_anchor(server.directory(), "example.org", &ds);
    server.delv("example.org", name, rtype).contains("fully validated")
}

#[track_caller]
fn check_validates(server: &Server) {
    for (name, rtype) in [
        ("www.example.org", "A"),
        ("a.wild.example.org", "TXT"),
        ("none.example.org", "A"),
        ("example.org", "SOA"),
    ] {
        eventually(name, || validates(server, name, rtype));
    }
}

/// Has the ZSK replaced, and waits until it is gone from the token; returns its tag.
fn check_replaced(server: &mut Server, token: &Token) -> String {
    let before = tags(server, "zsk");
    assert_eq!(before.len(), 1, "{}", keys(server));
    // While the zone is being signed, an operator is told to try again.
    eventually("the key is to be replaced", || {
        server.command(&["zone", "keys", "roll", "example.org", "zsk"]).status.success()
    });
    eventually_within(PATIENCE, "the next key alone", || {
        let now = tags(server, "zsk");
        now.len() == 1 && now != before
    });
    server.wait_for_log(&format!("the key {} is removed from its token", before[0]));
    assert_eq!(token.objects().len(), 4);
    before[0].clone()
}

#[test]
fn the_server_signs_with_keys_in_a_token_and_replaces_them() {
    let directory = directory();
    let Some(token) = Token::new(directory.path()) else { return };
    let mut server = start(directory, &token);
    check_validates(&server);
    assert_eq!(token.objects().len(), 4);
    let first = check_replaced(&mut server, &token);
    check_validates(&server);
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{status}\n{}", log.join("\n"));
    lacks(&log.join("\n"), PIN);
    // It goes on with the same keys.
    let mut server = start(directory, &token);
    std::fs::write(server.directory().join("example.org.zone"), ZONE.to_owned() + "new A 192.0.2.3\n")
        .expect("writable");
    assert!(server.command(&["reload"]).status.success());
    eventually("the change, signed", || validates(&server, "new.example.org", "A"));
    assert_eq!(token.objects().len(), 4);
    // And knows which of them it made.
    assert_ne!(check_replaced(&mut server, &token), first);
    let listed = token.gannet(&["zone", "keys", "list", "--keys", "keys"]);
    assert_eq!(listed.matches(", in pkcs11:token=gannet;object=example.org-").count(), 2, "{listed}");
}

#[test]
fn a_zone_is_served_as_it_was_signed_while_its_token_is_away() {
    let directory = directory();
    let Some(token) = Token::new(directory.path()) else { return };
    let server = start(directory, &token);
    check_validates(&server);
    let (_, _, directory) = server.stop();
    let (tokens, away) = (directory.path().join("tokens"), directory.path().join("away"));
    std::fs::rename(&tokens, &away).expect("our directory");
    std::fs::create_dir(&tokens).expect("our directory");
    let change = |directory: &Path, more: &str| {
        std::fs::write(directory.join("example.org.zone"), ZONE.to_owned() + more).expect("writable");
    };
    change(directory.path(), "new A 192.0.2.3\n");
    let mut server = start(directory, &token);
    let line = server.wait_for_log("cannot be signed; what was signed last is served");
    contains(&line, "cannot sign: the module has no such token: pkcs11:token=gannet;object=example.org-");
    contains(&keys(&server), "the module has no such token");
    check_validates(&server);
    assert!(server.dig(&["new.example.org", "A"]).contains("NXDOMAIN"));
    // It comes back, and is looked for at the next occasion.
    std::fs::remove_dir_all(&tokens).expect("our directory");
    std::fs::rename(&away, &tokens).expect("our directory");
    change(server.directory(), "new A 192.0.2.3\nnewer A 192.0.2.4\n");
    assert!(server.command(&["reload"]).status.success());
    eventually("the change, signed", || validates(&server, "newer.example.org", "A"));
    eventually("the trouble is over", || !keys(&server).contains("no such token"));
    // It is taken away from the running server, and brought back.
    std::fs::rename(&tokens, &away).expect("our directory");
    change(server.directory(), "later A 192.0.2.4\n");
    assert!(server.command(&["reload"]).status.success());
    eventually("the token is missed", || keys(&server).contains("cannot sign: "));
    check_validates(&server);
    std::fs::rename(&away, &tokens).expect("our directory");
    change(server.directory(), "latest A 192.0.2.4\n");
    assert!(server.command(&["reload"]).status.success());
    eventually("the change, signed", || validates(&server, "latest.example.org", "A"));
    // A PIN that is wrong is tried once.
    let (_, log, directory) = server.stop();
    lacks(&log.join("\n"), PIN);
    token.write_pin("wrong-s3cret", 0o600);
    change(directory.path(), "newest A 192.0.2.5\n");
    let mut server = start(directory, &token);
    contains(&server.wait_for_log("cannot be signed"), "the PIN is wrong (CKR_PIN_INCORRECT)");
    change(server.directory(), "newest A 192.0.2.6\n");
    assert!(server.command(&["reload"]).status.success());
    server.wait_for_log("was refused before; it is tried again when another one is in the file");
    token.write_pin(PIN, 0o600);
    change(server.directory(), "newest A 192.0.2.7\n");
    assert!(server.command(&["reload"]).status.success());
    eventually("the change, signed", || validates(&server, "newest.example.org", "A"));
    lacks(&server.log().join("\n"), "wrong-s3cret");
}

#[test]
fn a_key_that_the_server_did_not_make_stays_in_its_token() {
    let directory = directory();
    let Some(token) = Token::new(directory.path()) else { return };
    for role in ["ksk", "zsk"] {
        token.generate("13", role);
    }
    let objects = token.objects();
    assert_eq!(objects.len(), 4);
    let mut server = start(directory, &token);
    check_validates(&server);
    let before = tags(&server, "zsk");
    assert_eq!(token.objects().len(), 4, "the keys that were there are taken over");
    eventually("the key is to be replaced", || {
        server.command(&["zone", "keys", "roll", "example.org", "zsk"]).status.success()
    });
    eventually_within(PATIENCE, "the next key alone", || {
        let now = tags(&server, "zsk");
        now.len() == 1 && now != before
    });
    let line = server.wait_for_log("was not made here and stays in its token: pkcs11:token=gannet;");
    contains(&line, &format!("the key {} ", before[0]));
    check_validates(&server);
    let now = token.objects();
    assert_eq!(now.len(), 6);
    assert!(objects.iter().all(|object| now.contains(object)));
}
