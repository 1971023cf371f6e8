//! Configurations as pfSense, OPNsense, OpenWrt, Pi-hole's guide and Debian have them, unchanged:
//! Debian's Unbound and Gannet reply alike.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Place, is_root};

/// Debian's.
const UNBOUND: &str = "/usr/sbin/unbound";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/unbound")
}

/// Returns where `cargo xtask tools` unpacks Debian's packages.
fn unpacked() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // target/debug/deps/test
    test.ancestors().nth(3).unwrap().join("tools/debian")
}

/// Returns what a server replies on a machine, question by question.
fn replies(machine: &str, program: &str) -> Vec<(String, Vec<String>)> {
    let room = Place::new();
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--net", "--pid", "--fork", "sh"])
        .arg(fixtures().join("run.sh"))
        .args([machine, program])
        .arg(room.path(""))
        .arg(unpacked())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{program}: {said}{}", String::from_utf8_lossy(&output.stderr));
    let mut replies: Vec<(String, Vec<String>)> = Vec::new();
    for line in said.lines() {
        match (line.strip_prefix("== "), replies.last_mut()) {
            (Some(question), _) => replies.push((question.to_owned(), Vec::new())),
            (None, Some((_, reply))) => reply.push(line.to_owned()),
            (None, None) => panic!("{program} says {line:?} before the first question"),
        }
    }
    replies
}

/// Takes out of a reply what is different on purpose.
fn comparable(question: &str, reply: &[String]) -> Vec<String> {
    // Unbound refuses without the question, and leaves flags as they came.
    if let Some(status) = reply.iter().find(|line| line.contains("status: REFUSED")) {
        return vec![status.clone()];
    }
    // Each says what it is, and only one of them with AA.
    if question.contains(" CH ") {
        return reply.iter().filter(|line| line.contains("status:")).cloned().collect();
    }
    // Where addresses were taken out, an SOA says for how long (RFC 2308 §5).
    let is_made = |line: &String| line.ends_with("nobody.invalid. 1 3600 1200 604800 300");
    let is_emptied = reply.iter().any(is_made);
    let kept = reply.iter().filter(|line| !is_made(line)).map(|line| {
        if is_emptied {
            return line.replace("AUTHORITY: 1", "AUTHORITY: 0");
        }
        let parts: Vec<&str> = line.split_whitespace().collect();
        match parts.as_slice() {
            // Empty zones name themselves as their primary (RFC 6303 §3).
            [owner, _, "IN", "SOA", _, "nobody.invalid.", ..] => format!("{owner} IN SOA nobody.invalid."),
            // A record that the file has as well keeps the TTL that it has there.
            [owner, _, "IN", rtype, data] if line.contains("localhost.") => {
                format!("{owner} IN {rtype} {data}")
            }
            _ => line.clone(),
        }
    });
    kept.collect()
}

#[expect(clippy::print_stdout, reason = "whoever reads the tests' output should know")]
fn replies_alike(machine: &str) {
    let may = Command::new("unshare").args(["--mount", "--net", "true"]).status();
    if !is_root() || !Path::new(UNBOUND).exists() || !may.is_ok_and(|status| status.success()) {
        println!("skipped: needs root, namespaces and Debian's Unbound");
        return;
    }
    let packages = std::fs::read_to_string(fixtures().join(machine).join("packages")).unwrap_or_default();
    let absent = packages.split_whitespace().find(|name| !unpacked().join(name).is_dir());
    if let Some(name) = absent {
        println!("skipped: needs the files of Debian's {name}, which `cargo xtask tools` could not unpack");
        return;
    }
    let theirs = replies(machine, UNBOUND);
    let ours = replies(machine, env!("CARGO_BIN_EXE_gannet"));
    assert_eq!(theirs.len(), ours.len());
    for ((question, theirs), (_, ours)) in theirs.iter().zip(&ours) {
        assert_eq!(comparable(question, ours), comparable(question, theirs), "{machine}: {question}");
    }
}

#[test]
fn the_files_of_a_pfsense_machine_are_taken_as_they_are() {
    replies_alike("pfsense");
}

#[test]
fn the_files_of_an_opnsense_machine_are_taken_as_they_are() {
    replies_alike("opnsense");
}

#[test]
fn the_files_of_an_openwrt_machine_are_taken_as_they_are() {
    replies_alike("openwrt");
}

#[test]
fn the_files_of_pi_holes_guide_are_taken_as_they_are() {
    replies_alike("pihole");
}

/// Name servers that DHCP brings become the forwarders of the root zone, by way of resolvconf, its
/// hook of Unbound's package and our `unbound-control`; a restart forgets them, and resolvconf
/// knows them still.
#[test]
fn debians_files_and_its_hooks_of_resolvconf_and_dhclient_are_taken_as_they_are() {
    replies_alike("debian");
}

/// The other resolvconf writes a file that `unbound.conf` includes, and has it read.
#[test]
fn what_openresolv_and_dhcpcd_write_is_taken_as_it_is() {
    replies_alike("openresolv");
}
