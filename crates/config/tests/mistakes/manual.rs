//! Every example of the manual is one: what it shows passes the checker.
//!
//! A block that is part of a configuration says with which other part it makes sense, in a comment before it:
//! `<!-- check: with NAME -->`, and NAME is one of [`PARTS`]. `<!-- check: not ours -->` stands before what is for another
//! program, `<!-- check: shortened -->` before what is cut for the page.

use std::io;
use std::path::{Path, PathBuf};

use config::{Diagnostic, Severity, Surroundings, System};

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

/// The machine, on which the files of the manual are.
struct Machine<'a> {
    files: Vec<(&'a str, &'a str)>,
}

impl Surroundings for Machine<'_> {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let known = self.files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let text = match path.extension().and_then(|end| end.to_str()) {
            _ if known.is_some() => known,
            Some("zone") if name == "more.zone" => Some("tv 60 A 192.0.2.1\n"),
            Some("zone") => {
                Some("@ 3600 SOA ns admin 1 3600 600 86400 60\n@ 3600 NS ns\nns 3600 A 192.0.2.1\n")
            }
            Some("txt") => Some("list.example\n"),
            Some("secret") => Some("c2VjcmV0IHNlY3JldCBzZWNyZXQ=\n"),
            Some("conf") => Some("nameserver 192.0.2.53\n"),
            _ if name == "xfr.key" || name == "pin" || name == "router" => {
                Some("c2VjcmV0IHNlY3JldCBzZWNyZXQ=\n")
            }
            _ => None,
        };
        text.map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn resolv_conf(&self) -> PathBuf {
        "/etc/resolv.conf".into()
    }

    fn hosts_file(&self) -> PathBuf {
        "/etc/hosts".into()
    }

    fn processors(&self) -> usize {
        1
    }

    fn random(&self, octets: &mut [u8]) {
        System.random(octets);
    }
}

/// Returns what the checker says against an example and the part that it leaves out. Files that are nowhere but on the
/// machine of whoever reads the page do not count.
fn said_against(example: &str, part: &str) -> Vec<String> {
    let machine = Machine { files: vec![("example.yaml", example), ("part.yaml", part)] };
    let main = "include: [example.yaml, part.yaml]\n";
    let lines = |found: Vec<Diagnostic>| -> Vec<String> {
        let counts = |found: &&Diagnostic| {
            let is_far = ["cannot read", "cannot be read", "was not fetched yet"];
            let is_idle = ["is ignored", "nothing", "never holds", "throws away"];
            match found.severity {
                Severity::Error => !is_far.iter().any(|far| found.message.contains(far)),
                Severity::Warning => {
                    is_idle.iter().any(|idle| found.message.contains(idle))
                        && !found.message.contains("no rule uses it")
                }
            }
        };
        found.iter().filter(counts).map(Diagnostic::human).collect()
    };
    match config::load_text(Path::new("/etc/gannet/gannet.yaml"), main, &machine) {
        Err(found) => lines(found),
        Ok(loaded) => {
            let mut all = lines(loaded.warnings.clone());
            all.extend(match config::compile(&loaded, &[], None, &machine) {
                Ok(plans) => lines(plans.warnings.clone()),
                Err(found) => lines(found),
            });
            all
        }
    }
}

#[test]
fn every_example_of_the_manual_passes_the_checker() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = std::fs::read_dir(root.join("docs/manual"))
        .expect("the manual")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.push(root.join("README.md"));
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut before = "";
        let mut lines = (1..).zip(text.lines());
        while let Some((number, line)) = lines.next() {
            if line.trim() != "```yaml" {
                if !line.trim().is_empty() {
                    before = line.trim();
                }
                continue;
            }
            count += 1;
            let block: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```").collect();
            let example = block.join("\n") + "\n";
            let marker = before.strip_prefix("<!-- check: ").and_then(|rest| rest.strip_suffix(" -->"));
            before = "";
            let part = match marker {
                Some("not ours" | "shortened") => continue,
                Some(marker) => {
                    let names =
                        marker.strip_prefix("with ").unwrap_or_else(|| panic!("{name}:{number}: {marker}"));
                    let part = |part: &str| {
                        let known = PARTS.iter().find(|(known, _)| *known == part);
                        known.unwrap_or_else(|| panic!("{name}:{number}: no part is called {part}")).1
                    };
                    names.split(", ").map(part).collect::<String>()
                }
                None => "{}\n".to_owned(),
            };
            let said = said_against(&example, &part);
            if !said.is_empty() {
                wrong.push(format!("{name}:{number}:\n{}", said.join("\n")));
            }
        }
    }
    assert!(count > 40, "only {count} examples were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
