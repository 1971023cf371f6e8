//! What `gannet zone sign` makes is right for other programs, what they make is right for us, and
//! what is served validates.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use testkit::{Script, Server, Stub, eventually, forwarding, free_address, said, write_anchor};

const ZONE: &str = "$TTL 3600\n\
    @ SOA ns.example.org. admin 7 7200 600 86400 300\n\
    @ NS ns\n@ MX 10 Mail\n@ TXT \"some text\"\n\
    ns A 192.0.2.1\nMail A 192.0.2.2\nmail AAAA 2001:db8::2\n\
    *.wild TXT \"anything\"\n\
    a.b.c.deep TXT \"deep\"\n\
    secure NS ns.secure\nns.secure A 192.0.2.3\n\
    secure DS 1 13 2 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n\
    open NS ns.open\nns.open A 192.0.2.4\n\
    only.open.between NS ns.example.net.\n\
    alias CNAME www\nwww HTTPS 1 . alpn=h2\nwww A 192.0.2.5\n\
    under DNAME example.net.\n";

fn directory() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("example.org.zone"), ZONE).expect("a writable directory");
    directory
}

/// Runs `gannet` and expects it to be content.
#[track_caller]
fn gannet(directory: &Path, arguments: &[&str]) -> String {
    let output = testkit::program(directory).args(arguments).output().expect("gannet runs");
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

/// Runs another program and expects it to be content.
#[track_caller]
fn other(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", said(&output));
    said(&output)
}

#[track_caller]
fn other_verifies(directory: &Path, file: &str) {
    // Without -z, a key with the flag of entry points may not sign the zone.
    other(directory, "dnssec-verify", &["-z", "-q", "-o", "example.org", file]);
    other(directory, "ldns-verify-zone", &["-V", "1", file]);
}

const DENIALS: [&[&str]; 4] =
    [&[], &["--nsec3"], &["--nsec3", "--iterations", "5", "--salt", "aabb"], &["--nsec3", "--opt-out"]];

#[test]
fn other_programs_find_our_signatures_and_proofs_right() {
    for algorithm in ["8", "10", "13", "14", "15", "16"] {
        let directory = directory();
        let directory = directory.path();
        let generate = |role: &str| {
            let arguments = [
                "zone",
                "keys",
                "generate",
                "example.org",
                "--keys",
                "keys",
                "-a",
                algorithm,
                "--role",
                role,
            ];
            gannet(directory, &arguments)
        };
        if algorithm == "13" {
            generate("csk");
        } else {
            generate("ksk");
            generate("zsk");
        }
        // Every algorithm with NSEC; the ways to deny differ by nothing that depends on it.
        let denials = if algorithm == "13" || algorithm == "15" { &DENIALS[..] } else { &DENIALS[..1] };
        for denial in denials {
            let arguments =
                [&["zone", "sign", "example.org.zone", "--keys", "keys", "--cds", "SHA-256"][..], denial]
                    .concat();
            let told = gannet(directory, &arguments);
            assert!(told.contains("zone example.org.: serial 7, "), "{told}");
            other_verifies(directory, "example.org.zone.signed");
            let verified =
                gannet(directory, &["zone", "verify", "example.org.zone.signed", "--name", "example.org"]);
            assert!(verified.contains("every signature is good"), "{verified}");
        }
    }
}

#[test]
fn zones_that_others_signed_are_right_for_us() {
    let directory = directory();
    let directory = directory.path();
    let keygen = |more: &[&str]| {
        let stem = other(
            directory,
            "dnssec-keygen",
            &[&["-q", "-K", ".", "-a", "ECDSAP256SHA256"][..], more, &["example.org"]].concat(),
        );
        stem.lines().last().unwrap_or_default().trim().to_owned()
    };
    let (ksk, zsk) = (keygen(&["-f", "KSK"]), keygen(&[]));
    let verify = |file: &str| {
        let verified = gannet(directory, &["zone", "verify", file, "--name", "example.org"]);
        assert!(verified.contains("every signature is good"), "{file}: {verified}");
    };
    let zone = "example.org.zone";
    for (index, more) in
        [&[][..], &["-3", "-"], &["-3", "aabb", "-H", "3"], &["-3", "-", "-A"]].iter().enumerate()
    {
        let file = format!("bind-{index}");
        let arguments =
            [&["-q", "-S", "-K", ".", "-o", "example.org", "-f", &file][..], more, &[zone]].concat();
        other(directory, "dnssec-signzone", &arguments);
        verify(&file);
    }
    for (index, more) in [&[][..], &["-n", "-t", "0"], &["-n", "-p", "-t", "0"]].iter().enumerate() {
        let file = format!("ldns-{index}");
        let arguments = [&["-o", "example.org", "-f", &file][..], more, &[zone, &ksk, &zsk]].concat();
        other(directory, "ldns-signzone", &arguments);
        verify(&file);
    }
    // A digest that somebody else made.
    other(directory, "ldns-signzone", &["-o", "example.org", "-f", "digest", "-z", "1:1", zone, &ksk, &zsk]);
    let verified = gannet(directory, &["zone", "verify", "digest", "--name", "example.org"]);
    assert!(verified.contains("its ZONEMD is right"), "{verified}");
    let text = std::fs::read_to_string(directory.join("digest")).expect("a file");
    std::fs::write(directory.join("digest"), text.replace("192.0.2.3", "192.0.2.33")).expect("writable");
    let output = testkit::program(directory)
        .args(["zone", "verify", "digest", "--name", "example.org"])
        .output()
        .expect("gannet runs");
    assert!(
        !output.status.success() && said(&output).contains("not the digest of this zone"),
        "{}",
        said(&output)
    );
}

#[test]
fn keys_go_to_other_programs_and_come_from_them() {
    for (algorithm, theirs) in [
        ("8", "RSASHA256"),
        ("13", "ECDSAP256SHA256"),
        ("14", "ECDSAP384SHA384"),
        ("15", "ED25519"),
        ("16", "ED448"),
    ] {
        let directory = directory();
        let directory = directory.path();
        // Theirs, with which we sign.
        other(directory, "dnssec-keygen", &["-q", "-a", theirs, "-f", "KSK", "example.org"]);
        other(directory, "dnssec-keygen", &["-q", "-a", theirs, "example.org"]);
        gannet(directory, &["zone", "sign", "example.org.zone", "--keys", ".", "-o", "signed"]);
        other_verifies(directory, "signed");
        // The same DS.
        let ours = gannet(directory, &["zone", "keys", "ds", "example.org", "--keys", "."]);
        let words: Vec<&str> = ours.split_whitespace().collect();
        let theirs_of = |file: &str| other(directory, "dnssec-dsfromkey", &["-2", file]);
        let file = std::fs::read_dir(directory)
            .expect("a directory")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .find(|name| name.ends_with(&format!("{:0>5}.key", words[3])))
            .expect("the key's file");
        let ds = theirs_of(&file);
        assert_eq!(ds.split_whitespace().collect::<Vec<_>>(), words);
        // Ours, with which they sign.
        for role in ["ksk", "zsk"] {
            gannet(
                directory,
                &[
                    "zone",
                    "keys",
                    "generate",
                    "example.org",
                    "--keys",
                    "ours",
                    "-a",
                    algorithm,
                    "--role",
                    role,
                ],
            );
        }
        other(
            directory,
            "dnssec-signzone",
            &["-q", "-S", "-K", "ours", "-o", "example.org", "-f", "theirs", "example.org.zone"],
        );
        gannet(directory, &["zone", "verify", "theirs", "--name", "example.org"]);
        let listed = gannet(directory, &["zone", "keys", "list", "--keys", "ours"]);
        assert_eq!(listed.lines().filter(|line| line.contains("active")).count(), 2, "{listed}");
    }
}

#[test]
fn keys_are_exported_and_imported_in_every_form() {
    let directory = directory();
    let directory = directory.path();
    for role in ["ksk", "zsk"] {
        gannet(directory, &["zone", "keys", "generate", "example.org", "--keys", "keys", "--role", role]);
    }
    gannet(
        directory,
        &["zone", "keys", "export", "example.org", "--keys", "keys", "--form", "erldns", "-o", "set.json"],
    );
    gannet(directory, &["zone", "keys", "import", "set.json", "--zone", "example.org", "--keys", "copy"]);
    let ds =
        |keys: &str| gannet(directory, &["zone", "keys", "ds", "example.org", "--dnskey", "--keys", keys]);
    assert_eq!(ds("keys"), ds("copy"));
    let tag = ds("keys").lines().last().and_then(|line| line.split(' ').nth(3)).expect("a tag").to_owned();
    gannet(directory, &["zone", "keys", "export", "example.org", &tag, "--keys", "keys", "-o", "ksk.pem"]);
    gannet(
        directory,
        &["zone", "keys", "import", "ksk.pem", "--zone", "example.org", "--role", "ksk", "--keys", "pem"],
    );
    assert_eq!(ds("keys"), ds("pem"));
    let refused = |arguments: &[&str], expect: &str| {
        let output = testkit::program(directory).args(arguments).output().expect("gannet runs");
        assert!(
            !output.status.success() && said(&output).contains(expect),
            "{arguments:?}: {}",
            said(&output)
        );
    };
    refused(&["zone", "keys", "export", "example.org", "--keys", "keys"], "has several keys; say which");
    refused(&["zone", "keys", "import", "ksk.pem", "--keys", "pem"], "say it with --zone");
    refused(
        &["zone", "keys", "import", "ksk.pem", "--zone", "example.org", "--keys", "pem"],
        "exists already",
    );
    refused(&["zone", "keys", "ds", "example.net", "--keys", "keys"], "no entry point of example.net.");
    refused(&["zone", "sign", "example.org.zone", "--keys", "none"], "gannet zone keys generate");
    refused(
        &["zone", "sign", "example.org.zone", "--keys", "keys", "--expiration", "tomorrow"],
        "is no time",
    );
    // What is kept stays: signed again, nothing is made.
    gannet(directory, &["zone", "sign", "example.org.zone", "--keys", "keys", "-o", "example.org"]);
    let again = gannet(directory, &["zone", "sign", "example.org", "--keys", "keys", "-o", "again"]);
    assert!(again.contains(" 0 signatures made, "), "{again}");
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).expect("a file");
    assert_eq!(read("example.org"), read("again"));
}

/// Serves a signed zone.
fn serving(directory: TempDir, file: &str) -> Server {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    let config = forwarding(
        &[&stub_that_is_not_asked],
        &format!(
            "zones:\n  - {{name: example.org, file: {file}}}\npolicy: {{main: [{{do: reject(refused)}}]}}\n"
        ),
    );
    Server::start_in(directory, &config)
}

/// What delv says of names in the zone.
const JUDGED: [(&str, &str, &str); 11] = [
    ("www.example.org", "A", "; fully validated"),
    ("example.org", "SOA", "; fully validated"),
    ("alias.example.org", "A", "; fully validated"),
    ("a.wild.example.org", "TXT", "; fully validated"),
    ("secure.example.org", "DS", "; fully validated"),
    ("www.example.org", "AAAA", "; negative response, fully validated"),
    ("none.example.org", "A", "; negative response, fully validated"),
    ("c.deep.example.org", "A", "; negative response, fully validated"),
    ("a.wild.example.org", "A", "; negative response, fully validated"),
    ("x.a.b.c.deep.example.org", "A", "; negative response, fully validated"),
    ("open.example.org", "DS", "; negative response, "),
];

#[track_caller]
fn judge(server: &Server, opts_out: bool, what: &str) {
    for (name, rtype, expect) in JUDGED {
        let said = server.delv("example.org", name, rtype);
        // Where insecure delegations may be left out, it is not proven that the name itself does
        // not exist, which an answer by a wildcard needs (RFC 5155 §9.2).
        let expect = if opts_out && rtype == "TXT" { "; unsigned answer" } else { expect };
        assert!(said.contains(expect), "{what}: {name} {rtype}: {said}");
    }
}

#[test]
fn what_we_sign_and_serve_validates() {
    for denial in DENIALS {
        let files = directory();
        let path = files.path();
        gannet(path, &["zone", "keys", "generate", "example.org", "--keys", "keys"]);
        gannet(
            path,
            &[&["zone", "sign", "example.org.zone", "--keys", "keys", "-o", "signed"][..], denial].concat(),
        );
        write_anchor(
            path,
            "example.org",
            &gannet(path, &["zone", "keys", "ds", "example.org", "--keys", "keys"]),
        );
        judge(&serving(files, "signed"), denial.contains(&"--opt-out"), &format!("{denial:?}"));
    }
}

#[test]
fn what_others_sign_and_we_serve_validates() {
    for opts_out in [false, true] {
        for signer in ["dnssec-signzone", "ldns-signzone"] {
            let files = directory();
            let path = files.path();
            for role in ["ksk", "zsk"] {
                gannet(path, &["zone", "keys", "generate", "example.org", "--keys", ".", "--role", role]);
            }
            let stems: Vec<String> = std::fs::read_dir(path)
                .expect("a directory")
                .filter_map(|entry| {
                    entry.ok()?.file_name().into_string().ok()?.strip_suffix(".key").map(str::to_owned)
                })
                .collect();
            let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
            let zone = "example.org.zone";
            let arguments = match (signer, opts_out) {
                ("dnssec-signzone", false) => {
                    vec!["-q", "-S", "-3", "-", "-o", "example.org", "-f", "signed", zone]
                }
                ("dnssec-signzone", true) => {
                    vec!["-q", "-S", "-3", "-", "-A", "-o", "example.org", "-f", "signed", zone]
                }
                (_, false) => {
                    [&["-n", "-t", "0", "-o", "example.org", "-f", "signed", zone][..], &stems].concat()
                }
                (_, true) => {
                    [&["-n", "-p", "-t", "0", "-o", "example.org", "-f", "signed", zone][..], &stems].concat()
                }
            };
            other(path, signer, &arguments);
            write_anchor(
                path,
                "example.org",
                &gannet(path, &["zone", "keys", "ds", "example.org", "--keys", "."]),
            );
            judge(&serving(files, "signed"), opts_out, &format!("{signer}, opt-out {opts_out}"));
        }
    }
}

/// Unbound, which asks our server about the zone and trusts its DS. Ends when it is dropped.
struct Validator {
    child: Child,
    address: SocketAddr,
}

impl Drop for Validator {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn unbound(server: &Server, ds: &str) -> Validator {
    let directory = server.directory();
    let address = free_address();
    let anchors: String = ds.lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "  trust-anchor: \"{line}\"");
        text
    });
    let config = format!(
        "server:\n  interface: {}@{}\n  do-daemonize: no\n  username: \"\"\n  chroot: \"\"\n  directory: \"{}\"\n  \
         pidfile: \"\"\n  use-syslog: no\n  do-not-query-localhost: no\n  do-ip6: no\n{anchors}\
         stub-zone:\n  name: example.org\n  stub-addr: {}@{}\n",
        address.ip(),
        address.port(),
        directory.display(),
        server.address().ip(),
        server.address().port()
    );
    std::fs::write(directory.join("unbound.conf"), config).expect("writable");
    let child = Command::new("unbound")
        .args(["-d", "-c", "unbound.conf"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is installed: `cargo xtask test` does that");
    let validator = Validator { child, address };
    eventually("unbound answers", || {
        Command::new("dig")
            .args([&format!("@{}", address.ip()), "-p", &address.port().to_string()])
            .args(["+tries=1", "+time=1", "example.org", "SOA"])
            .output()
            .is_ok_and(|output| said(&output).contains("status: "))
    });
    validator
}

#[test]
fn unbound_finds_what_we_sign_and_serve_secure() {
    for denial in [&[][..], &["--nsec3"]] {
        let files = directory();
        let path = files.path();
        gannet(path, &["zone", "keys", "generate", "example.org", "--keys", "keys"]);
        gannet(
            path,
            &[&["zone", "sign", "example.org.zone", "--keys", "keys", "-o", "signed"][..], denial].concat(),
        );
        let ds = gannet(path, &["zone", "keys", "ds", "example.org", "--keys", "keys"]);
        let server = serving(files, "signed");
        let validator = unbound(&server, &ds);
        for (name, rtype, expect) in JUDGED {
            if name == "open.example.org" {
                continue;
            }
            let said = testkit::dig(validator.address, &["+dnssec", name, rtype]);
            let flags = said.lines().find(|line| line.contains("flags: qr")).unwrap_or_default();
            assert!(
                flags.contains(" ad") && !said.contains("SERVFAIL"),
                "{denial:?} {name} {rtype} {expect}: {said}"
            );
        }
    }
}
