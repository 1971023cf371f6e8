//! Nothing that is said of a configuration shows its secrets.

use std::path::Path;

use config::compile;
use diagnostic::redact::HIDDEN;
use environment::Memory;
use settings::{Loaded, load_text};

/// A configuration in which every secret has the word in it.
const MARKED: &str = "cookies:\n  secret: 0123456789abcdef5ec4e70000000001\n  other-secret: \"0123456789abcdef5ec4e70000000002\"\n\
    keys: [{name: k, secret: 5ec4e7AA}, {name: l, algorithm: hmac-sha512, secret: '5ec4e7BB'}]\n\
    upstreams:\n  default:\n    servers:\n      - {address: 192.0.2.1, proxy: 192.0.2.9, proxy-user: u, proxy-password: \"5ec4e7 C\"}\n\
    effects:\n  m: {type: mikrotik-list, address: 192.0.2.1, user: u, password: 5ec4e7D, list4: c}\n\
    \x20 h: {type: http, url: \"http://u:5ec4e7E@192.0.2.1/\", headers: [\"Authorization: Bearer 5ec4e7F\"]}\n\
    \x20 s:\n    type: script\n    command: /bin/true\n    environment:\n      - TOKEN=5ec4e7G\n\
    policy: {main: [\"effect(m)\", \"effect(h)\", \"effect(s)\", forward(default)]}\n";

fn memory() -> Memory {
    Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")])
}

fn load(text: &str) -> Result<Loaded, Vec<diagnostic::Diagnostic>> {
    load_text(Path::new("/c.yaml"), text, &memory())
}

fn check(shown: &str, why: &str) {
    let line = shown.lines().find(|line| line.contains("5ec4e7"));
    assert_eq!(line, None, "in what is said of: {why}");
}

#[test]
fn settings_that_are_shown_have_no_secret() {
    let loaded = load(MARKED).map_err(|found| found[0].human()).expect("no mistakes");
    let shown = settings::print::show(&loaded);
    check(&shown, "config show");
    assert!(shown.contains("proxy-user: u") && shown.contains(HIDDEN), "{shown}");
    let kept = load("keys: [{name: k, secret: \"file:/k\"}]\n");
    let found = kept.expect_err("there is no such file");
    assert!(found[0].human().contains("file:/k"), "{}", found[0].human());
}

#[test]
fn messages_have_no_secret() {
    // A mistake in every line, in turn; and the file cut everywhere.
    let lines: Vec<&str> = MARKED.lines().collect();
    let mut seen = 0;
    for (at, line) in lines.iter().enumerate() {
        for wrong in [
            format!("{line} ]"),
            format!("{line}: x"),
            line.replacen("secret", "secrett", 1),
            line.replacen("password", "pasword", 1),
            line.replacen(": ", ": [", 1),
            line.replacen("5ec4e7", "!5ec4e7", 1),
            line.replacen("type:", "tpe:", 1),
            line.replacen("name:", "nam:", 1),
            line.replacen("address:", "adress:", 1),
            format!("unknown: {{{}}}", line.trim()),
            format!("{line}\n{line}"),
        ] {
            let mut all = lines.clone();
            all[at] = &wrong;
            seen += usize::from(examine(&all.join("\n")));
        }
    }
    for end in (0..MARKED.len()).filter(|&end| MARKED.is_char_boundary(end)) {
        seen += usize::from(examine(&MARKED[..end]));
    }
    assert!(seen > 100, "{seen} mistakes were told");
}

/// Looks at everything that is said of a text; returns whether something is.
fn examine(text: &str) -> bool {
    let found = match load(text) {
        Ok(loaded) => {
            check(&settings::print::show(&loaded), text);
            let compiled = compile(&loaded, &[], None, &memory());
            let more = compiled.map_or_else(|found| found, |plans| plans.warnings);
            [loaded.warnings, more].concat()
        }
        Err(found) => found,
    };
    for found in &found {
        check(&found.human(), text);
        check(&found.json(), text);
    }
    !found.is_empty()
}
