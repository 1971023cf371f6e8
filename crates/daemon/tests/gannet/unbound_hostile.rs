//! Hostile `unbound.conf` files: what reading them costs is in proportion to their size, and ends.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::harness::{Place, text};

/// Checks a file with so many octets of address space; returns the exit code and the messages.
fn check(place: &Place, conf: &Path, octets: u64) -> (i32, String) {
    let mut command = place.gannet();
    command.args(["unbound", "checkconf"]).arg(conf);
    let limit = libc::rlimit { rlim_cur: octets, rlim_max: octets };
    // SAFETY: between fork and exec only `setrlimit` is called, which may be.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &raw const limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let (code, _, said) = text(&command.output().unwrap());
    (code, said)
}

/// What the program itself takes of its address space, at most.
const PROGRAM_OCTETS: u64 = 1 << 30;

#[test]
fn files_that_include_each_other_a_thousand_levels_deep_end_with_an_error() {
    let place = Place::new();
    for level in 0..1000 {
        let next = place.path(&format!("{}.conf", level + 1));
        place.write(&format!("{level}.conf"), &format!("server:\ninclude: {}\n", next.display()));
    }
    let (code, said) = check(&place, &place.path("0.conf"), PROGRAM_OCTETS);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("files include files more than 32 levels deep"), "{said}");
    assert!(said.lines().count() < 10, "{said}");
}

#[test]
fn a_device_without_end_is_not_included() {
    let place = Place::new();
    let conf = place.write("u.conf", "server:\n port: 53\ninclude: /dev/zero\n");
    let (code, said) = check(&place, &conf, PROGRAM_OCTETS);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("u.conf:3: error:") && said.contains("a device"), "{said}");
}

#[test]
fn a_line_of_a_hundred_megabytes_costs_some_times_its_size() {
    let place = Place::new();
    for (name, line) in [
        ("word", "a".repeat(100_000_000)),
        ("words", "port: 53 ".repeat(1_000_000)),
        ("quoted", format!("identity: \"{}\"", "b".repeat(10_000_000))),
        ("unended", format!("identity: \"{}", "b".repeat(10_000_000))),
        ("control", "\u{1}\u{7f}\u{0}".repeat(3_000_000)),
    ] {
        let octets = PROGRAM_OCTETS + 30 * line.len() as u64;
        let conf = place.path(name);
        let mut file = std::fs::File::create(&conf).unwrap();
        file.write_all(b"server:\n").unwrap();
        file.write_all(line.as_bytes()).unwrap();
        drop((file, line));
        let (code, said) = check(&place, &conf, octets);
        let first = said.lines().next().unwrap_or_default();
        // `port` may stand there a million times: the last one counts.
        assert_eq!(code, i32::from(name != "words"), "{name}: {}", &first[..first.len().min(300)]);
        assert!(said.len() < 10_000, "{name}: {} octets are said", said.len());
    }
}
