//! Every YAML block of README and manual is a configuration that `gannet check` accepts without a
//! warning.
//!
//! A block that is a part of a configuration names the part that completes it in a comment before
//! it: `<!-- check: with NAME -->`, where NAME is one of [`PARTS`]. Files that blocks name are in
//! [`FILES`]. Only the blocks in [`FOREIGN`] are for other programs: `<!-- check: not ours -->`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use testkit::lists::{About, Domain, Site, geosite, mmdb};

use crate::harness::{Place, text};

/// What excerpts of the manual leave out.
const PARTS: &[(&str, &str)] = &[
    (
        "sets",
        "sets:\n  ads: {names: ads.example}\n  malware: {names: bad.example}\n  parked: {names: parked.example}\n  phones: {addresses: 192.0.2.0/24}\n  video: {names: video.example}\n  guests: {addresses: 192.0.2.0/24}\n",
    ),
    (
        "policies",
        "conditions: {bedtime: now in hours(\"21:00-07:00\")}\npolicy:\n  main: [forward(default)]\n  guests: [drop]\n  kids: [drop]\n",
    ),
    ("a rule", "policy: {main: [{if: qname in ads, do: block}, forward(default)]}\n"),
    (
        "rules",
        "policy:\n  main:\n    - {if: qname in ads or qname in learned, do: block}\n    - forward(default)\n    - {if: answer-address in abroad, do: reject(refused)}\n",
    ),
    ("staff", "policy:\n  staff: [forward(default)]\n"),
    ("tls", "tls: {certificates: [{certificate: own.pem, key: own.key}]}\n"),
    (
        "kids",
        "tls: {certificates: [{certificate: own.pem, key: own.key}]}\npolicy:\n  main: [forward(default)]\n  kids: [drop]\n",
    ),
    (
        "hook",
        "effects: {hook: {type: http, url: 'https://example.org/'}}\npolicy: {main: [effect(hook), forward(default)]}\n",
    ),
    ("video", "policy: {main: [effect(video), forward(default)]}\n"),
    ("office", "upstreams: {default: 192.0.2.53, office: 192.0.2.54}\ncache: {main: {}, office: {}}\n"),
    (
        "keys",
        "keys:\n  - {name: xfr.example.org, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}\n  - {name: admin.example.org, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}\n  - {name: nas.example.org, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}\n  - {name: acme.example.org, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}\n",
    ),
    ("zone", "zones: [{name: example.org, file: example.org.zone}]\n"),
    ("web", "checks: {web: {type: tcp, port: 443}}\nzones: [{name: example.org, like: shops}]\n"),
];

/// First lines of the blocks that other programs read.
const FOREIGN: &[&str] = &["# prometheus.yml"];

/// A list on a web server, which `gannet check` does not fetch.
const NOT_FETCHED: &str = "was not fetched yet";

/// A zone of another server, which `gannet check` does not transfer.
const NOT_TRANSFERRED: &str = "was not transferred yet";

/// Parts define more sets than one block uses.
const NOT_USED: &str = "no rule uses it";

const ZONE: &str = "@ 3600 SOA ns admin 1 3600 600 86400 60\n@ 3600 NS ns\nns 3600 A 192.0.2.1\n";
const JSON: &str = r#"[{"name": "example.com", "records": [
    {"name": "example.com", "type": "SOA", "ttl": 60, "data": {"mname": "ns.example.com",
     "rname": "admin.example.com", "serial": 1, "refresh": 60, "retry": 60, "expire": 600, "minimum": 60}},
    {"name": "example.com", "type": "NS", "ttl": 60, "data": {"dname": "ns.example.net"}}]}]
"#;
const WEBHOOK: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";
const SECRET: &str = "c2VjcmV0IHNlY3JldCBzZWNyZXQ=\n";

/// Files that blocks name, beside the configuration.
const FILES: &[(&str, &str)] = &[
    ("zones/example.org.zone", ZONE),
    ("zones/example.net.zone", ZONE),
    ("zones/192.0.2.zone", ZONE),
    ("zones/corp.zone", ZONE),
    ("internal/internal.example.zone", ZONE),
    ("priv/zones/example.json", JSON),
    ("customers/example.org.zone", ZONE),
    ("customers/example.net.zone", ZONE),
    ("outside/example.org.zone", ZONE),
    ("inside/example.org.zone", ZONE),
    ("example.org.zone", ZONE),
    ("192.0.2.zone", ZONE),
    ("lab.hints", ". 3600 NS a.lab.example.\na.lab.example. 3600 A 10.9.0.1\n"),
    ("more.zone", "tv 60 A 192.0.2.1\n"),
    ("xfr.key", SECRET),
    ("transfer.key", SECRET),
    ("child.secret", SECRET),
    ("router", "password\n"),
    ("eab.key", "c2VjcmV0\n"),
    ("alarm.key", WEBHOOK),
    ("local.key", WEBHOOK),
    ("pin", "1234\n"),
    ("audit.key", "7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a\n"),
    ("oidc-secret", "secret\n"),
    ("lists/easylist.txt", "||ads.example^\n"),
    ("list.txt", "||ads.example^\n"),
    ("block.txt", "ads.example\n"),
];

/// The certificate files that blocks name; each is a copy of one certificate or of its key.
const CERTIFICATES: &[&str] = &["own.pem", "dns.example.org.pem", "ca.pem", "office-ca.pem", "ours.pem"];
const KEYS: &[&str] = &["own.key", "dns.example.org.key", "ours.key"];

/// Writes the files that blocks name.
fn write_files(place: &Place) {
    let write = |name: &str, content: &[u8]| {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    };
    for (name, content) in FILES {
        write(name, content.as_bytes());
    }
    let ads: &[Site<'_>] = &[(Domain::Suffix, "ads.example", &["ads"])];
    write("geosite.dat", &geosite(&[("category-ads-all", ads), ("google", ads)]));
    let germany = About::Country("DE", "EU");
    for name in ["country.mmdb", "countries.mmdb"] {
        write(name, &mmdb(&[("192.0.2.0/24", germany)]));
    }
    assert_eq!(text(&place.run(&["certificate", "dns.example.org"])).0, 0);
    for (copies, of) in [(CERTIFICATES, "certificate.pem"), (KEYS, "key.pem")] {
        for copy in copies {
            write(copy, &fs::read(place.path(of)).unwrap());
        }
    }
    write_dnscrypt_files(place);
}

/// Writes keys and certificates for DNSCrypt that blocks name.
fn write_dnscrypt_files(place: &Place) {
    assert_eq!(text(&place.run(&["dnscrypt", "provider"])).0, 0);
    for name in ["1790000000", "1789400000"] {
        let (code, printed, _) = text(&place.run(&["dnscrypt", "certificate"]));
        assert_eq!(code, 0);
        for (setting, end) in [("keys", "key"), ("certificates", "cert")] {
            let (_, file) = printed.split_once(&format!("{setting}: [\"")).unwrap();
            let file = place.path(file.split_once('"').unwrap().0);
            fs::rename(file, place.path(&format!("{name}.{end}"))).unwrap();
        }
    }
}

/// Returns the findings of `gannet check` on a block and the part that completes it.
fn findings(place: &Place, block: &str, part: &str) -> Vec<String> {
    // Files of the machine are beside the configuration here.
    place.write("example.yaml", &block.replace("/etc/gannet", &place.path(".").display().to_string()));
    place.write("part.yaml", part);
    place.write("gannet.yaml", "include: [example.yaml, part.yaml]\n");
    let (code, stdout, stderr) = text(&place.run(&["check", "gannet.yaml", "--format", "line"]));
    let counts = |line: &&str| {
        let is_expected = line.contains(NOT_FETCHED)
            || line.contains(NOT_TRANSFERRED)
            || (line.starts_with("part.yaml:") && line.contains(NOT_USED));
        !is_expected
    };
    let mut found: Vec<String> = stdout.lines().filter(counts).map(str::to_owned).collect();
    if code != 0 && found.is_empty() {
        found.push(stderr);
    }
    found
}

/// Returns the pages whose blocks are checked: README.md and the manual.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = fs::read_dir(root.join("docs/manual"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// Returns the configuration that a marker completes a block with; `None` if another program reads
/// it.
fn part_of(marker: Option<&str>, block: &str, place: &str) -> Option<String> {
    let Some(marker) = marker else { return Some("{}\n".to_owned()) };
    if marker == "not ours" {
        let first = block.lines().next().unwrap_or("");
        assert!(FOREIGN.contains(&first), "{place}: {first:?} is not in FOREIGN");
        return None;
    }
    let names = marker.strip_prefix("with ").unwrap_or_else(|| panic!("{place}: what is {marker:?}?"));
    let part = |name: &str| {
        let known = PARTS.iter().find(|(known, _)| *known == name);
        known.unwrap_or_else(|| panic!("{place}: no part is called {name}")).1
    };
    Some(names.split(", ").map(part).collect())
}

#[test]
fn every_yaml_block_of_readme_and_manual_passes_the_checker() {
    let place = Place::new();
    write_files(&place);
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        let content = fs::read_to_string(&page).unwrap();
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let mut before = "";
        let mut lines = (1..).zip(content.lines());
        while let Some((number, line)) = lines.next() {
            let Some(language) = line.trim().strip_prefix("```") else {
                if !line.trim().is_empty() {
                    before = line.trim();
                }
                continue;
            };
            let at = format!("{name}:{number}");
            let block: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```").collect();
            let marker = before.strip_prefix("<!-- check: ").and_then(|rest| rest.strip_suffix(" -->"));
            before = "";
            assert!(!language.is_empty(), "{at}: a block without a language");
            if !["yaml", "yml"].contains(&language) {
                continue;
            }
            count += 1;
            let block = block.join("\n") + "\n";
            let Some(part) = part_of(marker, &block, &at) else { continue };
            let found = findings(&place, &block, &part);
            if !found.is_empty() {
                wrong.push(format!("{at}:\n{}", found.join("\n")));
            }
        }
    }
    assert!(count > 50, "only {count} blocks were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Returns the anchors of a page, as web pages of repositories make them from its headings.
fn anchors(page: &str) -> Vec<String> {
    let heading = |line: &str| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len()).then(|| {
            let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
    };
    page.lines().filter_map(heading).collect()
}

#[test]
fn every_link_of_readme_and_manual_leads_somewhere() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        let content = fs::read_to_string(&page).unwrap();
        for link in content.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let is_there = match anchor {
                "" => path.exists(),
                anchor => {
                    fs::read_to_string(&path).is_ok_and(|to| anchors(&to).iter().any(|it| it == anchor))
                }
            };
            if !is_there {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(count > 50, "only {count} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the source of all crates.
fn sources(directory: &Path, all: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn messages_that_the_manual_explains_are_those_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut code = String::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut code);
    }
    // Long texts are broken in the source.
    let code = code.replace("\\\"", "\"").split_whitespace().collect::<Vec<_>>().join(" ").replace("\\ ", "");
    let page = fs::read_to_string(root.join("docs/manual/trouble.md")).unwrap();
    let (mut count, mut missing) = (0, Vec::new());
    for row in page.lines().filter_map(|line| line.strip_prefix("| `")) {
        let message = row.split('`').next().unwrap_or("");
        for part in message.split('…').map(str::trim).filter(|part| !part.is_empty()) {
            count += 1;
            if !code.contains(part) {
                missing.push(part.to_owned());
            }
        }
    }
    assert!(count > 20, "only {count} messages were found");
    assert!(missing.is_empty(), "the program says nothing like {missing:?}");
}
