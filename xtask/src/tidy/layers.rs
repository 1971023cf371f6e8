//! Which crate may use what: our own crates downward only, and no runtime, sockets, files or clock
//! below layer 5.

use super::source::Source;
use super::{File, Finding};

/// The layer of each crate. A crate uses only crates of lower layers; equals do not know each
/// other.
pub(crate) const LAYERS: [(&str, u8); 53] = [
    ("diagnostic", 0),
    ("wire", 0),
    ("http2", 0),
    ("odoh", 0),
    ("dnscrypt", 0),
    ("dnstap", 0),
    ("resp", 0),
    ("xdp", 0),
    ("polling", 0),
    ("timers", 0),
    ("edit", 1),
    ("cache", 1),
    ("sets", 1),
    ("dnssec", 1),
    ("tsig", 1),
    ("values", 1),
    ("yaml", 1),
    ("clients", 2),
    ("zone", 2),
    ("lists", 2),
    ("events", 3),
    ("engine", 4),
    ("resolver", 4),
    ("plan", 5),
    ("environment", 5),
    ("queries", 5),
    ("store", 5),
    ("oidc", 5),
    ("listen", 6),
    ("identity", 6),
    ("authorities", 6),
    ("policy", 6),
    ("schema", 6),
    ("recorder", 6),
    ("unbound", 6),
    ("exchange", 7),
    ("transfer", 7),
    ("settings", 7),
    ("config", 8),
    ("forward", 8),
    ("driver", 9),
    ("control", 9),
    ("import", 9),
    ("authority", 9),
    ("jobs", 9),
    ("acme", 9),
    ("devices", 9),
    ("zones", 9),
    ("server", 10),
    ("commands", 10),
    ("unbound-control", 11),
    ("api", 11),
    ("daemon", 12),
];

/// The highest layer that neither waits nor looks at a clock. `xdp` is low but touches sockets: it
/// is its purpose.
const PURE_LAYER_MAX: u8 = 4;

/// Third parties that the pure layers leave alone, and why.
const IMPURE: [(&str, &str); 10] = [
    ("tokio", "waiting is for `listen`, `exchange` and `driver`"),
    ("libc", "system calls are for `listen`, `exchange`, `server` and `daemon`"),
    ("nix", "system calls are for `listen`, `exchange`, `server` and `daemon`"),
    ("rustix", "system calls are for `listen`, `exchange`, `server` and `daemon`"),
    ("socket2", "sockets are for `listen` and `exchange`"),
    ("mio", "sockets are for `listen` and `exchange`"),
    ("tracing", "logging is for `server` and what it runs; the pure layers count"),
    ("log", "logging is for `server` and what it runs; the pure layers count"),
    ("serde", "types that become text live in `control::api`"),
    ("serde_json", "types that become text live in `control::api`"),
];

/// What a pure crate may use all the same, and what for.
const IMPURE_MAY: [(&str, &str, &str); 2] = [
    ("cache", "libc", "asks for huge pages, in `slots`"),
    ("sets", "libc", "asks for huge pages, in `memory`"),
];

/// Who makes types of text and text of types: the one has the types, the other is what programs
/// speak with, and authorities and providers of OpenID Connect know nothing else.
const JSON_MAY: [&str; 4] = ["control", "api", "oidc", "acme"];

/// Code that the pure layers leave alone: what is looked for, and what to do instead.
const IMPURE_CODE: [(&str, &str); 9] = [
    ("std::net::UdpSocket", "sockets are for `listen` and `exchange`"),
    ("std::net::TcpStream", "sockets are for `listen` and `exchange`"),
    ("std::net::TcpListener", "sockets are for `listen` and `exchange`"),
    ("std::fs", "files are read by `config` and `daemon`"),
    ("SystemTime::now", "time comes in as an argument"),
    (".elapsed()", "time comes in as an argument"),
    ("Instant::now", "time comes in as an argument"),
    ("thread::sleep", "nothing here waits"),
    ("thread::spawn", "threads are created by `server`"),
];

/// The one file of the pure layers that reads and writes a file.
const FILES_MAY: &str = "crates/cache/src/answers/dump.rs";

/// Returns the layer of a crate.
pub(crate) fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|&(_, layer)| layer)
}

fn is_pure(name: &str) -> bool {
    name != "xdp" && layer(name).is_some_and(|layer| layer <= PURE_LAYER_MAX)
}

/// Returns the crate that a path belongs to: `wire` for `crates/wire/src/name.rs`.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

/// Checks the dependencies of one of our crates.
pub(crate) fn manifest(file: &File, findings: &mut Vec<Finding>) {
    let Some(name) = crate_of(&file.path) else { return };
    let Some(own_layer) = layer(name) else {
        let message =
            format!("crate `{name}` has no layer; give it one in ARCHITECTURE.md and in xtask's table");
        findings.push(Finding::error(&file.path, 1, message));
        return;
    };
    for (line, dependency) in dependencies(&file.text) {
        let bare = dependency.strip_prefix("gannet-").unwrap_or(dependency);
        if let Some(other_layer) = layer(bare)
            && other_layer >= own_layer
        {
            let message = format!(
                "`{name}` (layer {own_layer}) must not use `{bare}` (layer {other_layer}): crates depend downward only"
            );
            findings.push(Finding::error(&file.path, line, message));
        }
        let is_excepted = IMPURE_MAY.iter().any(|(may, what, _)| (*may, *what) == (name, dependency));
        if is_pure(name)
            && !is_excepted
            && let Some((_, why)) = IMPURE.iter().find(|(impure, _)| *impure == dependency)
        {
            let message = format!("`{name}` is of the pure layers and must not use `{dependency}`: {why}");
            findings.push(Finding::error(&file.path, line, message));
        } else if !JSON_MAY.contains(&name) && (dependency == "serde" || dependency == "serde_json") {
            let message = format!(
                "`{name}` must not use `{dependency}`: types that become text live in `control::api`"
            );
            findings.push(Finding::error(&file.path, line, message));
        }
        if dependency == "gannet-testkit" || dependency == "testkit" {
            let message = format!("`{name}` must not ship the test kit: move it to [dev-dependencies]");
            findings.push(Finding::error(&file.path, line, message));
        }
    }
}

/// Returns what ships with a package: its dependencies, those for tests left out, with their lines.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut listing = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let is_ours = |section: &str| section == "dependencies" || section == "build-dependencies";
            let (head, last) = section.rsplit_once('.').unwrap_or(("", section));
            listing = is_ours(last);
            let head = head.rsplit('.').next().unwrap_or(head);
            // `[dependencies.tokio]`, also under a target.
            if is_ours(head) {
                found.push((index + 1, last));
            }
        } else if listing && !line.starts_with('#') {
            let name = line.split(['=', '.', ' ']).next().unwrap_or("").trim_matches('"');
            if !name.is_empty() {
                found.push((index + 1, name));
            }
        }
    }
    found
}

/// Checks the code of the pure layers.
pub(crate) fn source(source: &Source<'_>, findings: &mut Vec<Finding>) {
    let Some(name) = crate_of(source.path) else { return };
    if !is_pure(name) || source.path.ends_with("/build.rs") {
        return;
    }
    for (word, why) in IMPURE_CODE {
        if word == "std::fs" && source.path == FILES_MAY {
            continue;
        }
        for at in source.find(word) {
            let message = format!("`{word}` in `{name}`, one of the pure layers: {why}");
            findings.push(Finding::error(source.path, source.line(at), message));
        }
    }
    // `use std::net::{IpAddr, UdpSocket}` hides the path from the search above.
    for word in ["UdpSocket", "TcpStream", "TcpListener"] {
        for at in source.find(word) {
            let before = source.code.get(..at).unwrap_or("");
            if !before.ends_with("std::net::")
                && before.rsplit(';').next().unwrap_or("").contains("std::net::{")
            {
                let message = format!(
                    "`{word}` in `{name}`, one of the pure layers: sockets are for `listen` and `exchange`"
                );
                findings.push(Finding::error(source.path, source.line(at), message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn check_manifest(path: &str, text: &str, expected: &[(usize, &str)]) {
        let mut findings = Vec::new();
        manifest(&File::new(path, text), &mut findings);
        expect(&findings, expected);
    }

    fn check_source(path: &str, text: &str, expected: &[(usize, &str)]) {
        let mut findings = Vec::new();
        source(&Source::read(path, text), &mut findings);
        expect(&findings, expected);
    }

    #[test]
    fn crates_depend_downward_only() {
        check_manifest(
            "crates/engine/Cargo.toml",
            "[dependencies]\nwire.workspace = true\ncache = \"1\"\n",
            &[],
        );
        check_manifest(
            "crates/cache/Cargo.toml",
            "[dependencies]\nengine.workspace = true\n",
            &[(2, "`cache` (layer 1) must not use `engine` (layer 4)")],
        );
        check_manifest(
            "crates/listen/Cargo.toml",
            "[dependencies]\n\n[dependencies.exchange]\nworkspace = true\n",
            &[(3, "`listen` (layer 6) must not use `exchange` (layer 7)")],
        );
    }

    #[test]
    fn pure_layers_have_no_runtime_sockets_or_logging() {
        check_manifest(
            "crates/wire/Cargo.toml",
            "[dependencies]\ntokio = { version = \"1\" }\n[target.'cfg(unix)'.dependencies]\nlibc.workspace = true\n",
            &[
                (2, "`wire` is of the pure layers and must not use `tokio`"),
                (4, "`wire` is of the pure layers"),
            ],
        );
        check_manifest("crates/xdp/Cargo.toml", "[dependencies]\nlibc.workspace = true\n", &[]);
    }

    #[test]
    fn tests_may_use_what_they_like() {
        check_manifest("crates/wire/Cargo.toml", "[dev-dependencies]\ntokio.workspace = true\n", &[]);
    }

    #[test]
    fn only_control_has_serde() {
        check_manifest("crates/control/Cargo.toml", "[dependencies]\nserde.workspace = true\n", &[]);
        check_manifest(
            "crates/config/Cargo.toml",
            "[dependencies]\nserde.workspace = true\n",
            &[(2, "`config` must not use `serde`")],
        );
    }

    #[test]
    fn a_new_crate_needs_a_layer() {
        check_manifest("crates/misc/Cargo.toml", "[package]\n", &[(1, "crate `misc` has no layer")]);
    }

    #[test]
    fn the_test_kit_is_not_shipped() {
        check_manifest(
            "crates/exchange/Cargo.toml",
            "[dependencies]\ntestkit.workspace = true\n",
            &[(2, "`exchange` must not ship")],
        );
    }

    #[test]
    fn pure_code_has_no_clock_files_or_sockets() {
        check_source(
            "crates/engine/src/x.rs",
            "use std::net::IpAddr;\nuse std::time::Instant;\nlet a = Instant::now();\nuse std::fs;\n",
            &[(4, "`std::fs` in `engine`"), (3, "`Instant::now` in `engine`")],
        );
        check_source(
            "crates/wire/src/x.rs",
            "use std::net::{IpAddr, UdpSocket};\n",
            &[(1, "`UdpSocket` in `wire`")],
        );
        check_source(
            "crates/wire/src/x.rs",
            "use std::net::UdpSocket;\n",
            &[(1, "`std::net::UdpSocket` in `wire`")],
        );
        check_source("crates/listen/src/x.rs", "let a = Instant::now();\n", &[]);
    }

    #[test]
    fn the_dump_may_touch_files_but_not_the_clock() {
        check_source("crates/cache/src/answers/dump.rs", "use std::fs;\n", &[]);
        check_source(
            "crates/cache/src/answers/dump.rs",
            "SystemTime::now()",
            &[(1, "`SystemTime::now` in `cache`")],
        );
    }

    #[test]
    fn tests_of_pure_code_are_free() {
        check_source(
            "crates/cache/src/x.rs",
            "#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }\n",
            &[],
        );
    }
}
