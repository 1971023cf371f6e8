//! The bill of materials (SBOM): what the program consists of, in CycloneDX 1.6.
//!
//! Cargo says which packages are compiled in for a machine (`cargo tree`), `Cargo.lock` what their
//! archives' checksums are. Procedural macros and build scripts are not part of the program.

use crate::run::{cargo, output, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

/// Between the parts of a line of `cargo tree`: in no name, version, licence or address.
const BETWEEN: char = '\t';

/// One package.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Component {
    name: String,
    version: String,
    licence: String,
    repository: String,
    /// Whether it is of this workspace.
    ours: bool,
}

/// Returns the bill of the program for `triple`.
pub(super) fn of_materials(triple: &str, version: &str) -> Result<String, String> {
    let mut tree =
        cargo(["tree", "--package", "gannet-daemon", "--edges", "normal,no-proc-macro", "--locked"]);
    tree.args(["--target", triple, "--prefix", "depth", "--no-dedupe"]);
    let line = ["", "{p}", "{l}", "{r}"].join(&BETWEEN.to_string());
    let tree = output(tree.args(["--format", &line]))?;
    let lock = fs::read_to_string(root().join("Cargo.lock")).map_err(|error| error.to_string())?;
    let materials = Materials::read(&tree, &checksums(&lock))?;
    Ok(materials.to_json(version, triple))
}

/// Returns the checksum of each package of a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut sums = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            line.map(|value| value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) = (value("name"), value("version"), value("checksum")) {
            sums.insert((name, version), sum);
        }
    }
    sums
}

/// Packages by their purl, and on which each of them depends.
#[derive(Debug, Default)]
struct Materials {
    components: BTreeMap<String, Component>,
    needs: BTreeMap<String, BTreeSet<String>>,
    sums: BTreeMap<String, String>,
}

impl Materials {
    /// Reads lines of `cargo tree --prefix depth`.
    fn read(tree: &str, sums: &BTreeMap<(String, String), String>) -> Result<Self, String> {
        let mut materials = Self::default();
        let mut above: Vec<String> = Vec::new();
        for line in tree.lines() {
            let unexpected = || format!("`cargo tree` printed a line that is not expected: {line:?}");
            let parts: Vec<_> = line.split(BETWEEN).collect();
            let [depth, package, licence, repository] = parts.as_slice() else { return Err(unexpected()) };
            let depth: usize = depth.parse().map_err(|_| unexpected())?;
            let mut words = package.split_whitespace();
            let (Some(name), Some(version)) = (words.next(), words.next()) else { return Err(unexpected()) };
            let version = version.trim_start_matches('v').to_owned();
            let component = Component {
                name: name.to_owned(),
                licence: licence.to_string(),
                repository: repository.to_string(),
                ours: words.any(|word| word.starts_with("(/")),
                version,
            };
            let key = component.purl();
            above.truncate(depth);
            if let Some(parent) = above.last() {
                materials.needs.entry(parent.clone()).or_default().insert(key.clone());
            }
            if let Some(sum) = sums.get(&(component.name.clone(), component.version.clone())) {
                materials.sums.insert(key.clone(), sum.clone());
            }
            materials.components.insert(key.clone(), component);
            above.push(key);
        }
        Ok(materials)
    }

    fn to_json(&self, version: &str, triple: &str) -> String {
        let program = format!("pkg:generic/gannet@{version}?platform={triple}");
        let mut text = String::from("{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.6\",\n");
        _ = writeln!(text, "  \"version\": 1,\n  \"metadata\": {{\n    \"component\": {{");
        _ = writeln!(text, "      \"type\": \"application\",\n      \"bom-ref\": {},", quoted(&program));
        _ = writeln!(text, "      \"name\": \"gannet\",\n      \"version\": {}", quoted(version));
        text.push_str("    }\n  },\n  \"components\": [\n");
        let components: Vec<_> =
            self.components.iter().map(|(key, component)| self.component(key, component)).collect();
        text.push_str(&components.join(",\n"));
        text.push_str("\n  ],\n  \"dependencies\": [\n");
        let first = self.components.keys().find(|key| key.contains("/gannet-daemon@"));
        let none = BTreeSet::new();
        let mut needs = vec![needed(&program, first.into_iter())];
        for key in self.components.keys() {
            needs.push(needed(key, self.needs.get(key).unwrap_or(&none).iter()));
        }
        text.push_str(&needs.join(",\n"));
        text.push_str("\n  ]\n}\n");
        text
    }

    fn component(&self, key: &str, component: &Component) -> String {
        let mut text = format!(
            "    {{\n      \"type\": \"library\",\n      \"bom-ref\": {},\n      \"name\": {},\n      \"version\": {}",
            quoted(key),
            quoted(&component.name),
            quoted(&component.version)
        );
        if let Some(sum) = self.sums.get(key) {
            let hash = format!("{{\"alg\": \"SHA-256\", \"content\": {}}}", quoted(sum));
            _ = write!(text, ",\n      \"hashes\": [{hash}]");
        }
        if !component.licence.is_empty() {
            // Old manifests separate licences by a slash, which is no SPDX expression.
            let expression = component.licence.replace('/', " OR ");
            _ = write!(text, ",\n      \"licenses\": [{{\"expression\": {}}}]", quoted(&expression));
        }
        if !component.ours {
            _ = write!(text, ",\n      \"purl\": {}", quoted(key));
        }
        if component.repository.starts_with("http") {
            let place = format!("{{\"type\": \"vcs\", \"url\": {}}}", quoted(&component.repository));
            _ = write!(text, ",\n      \"externalReferences\": [{place}]");
        }
        text.push_str("\n    }");
        text
    }
}

impl Component {
    /// Returns the package URL; of ours, which no registry has, it is a name within the bill.
    fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

fn needed<'a>(key: &str, needs: impl Iterator<Item = &'a String>) -> String {
    let needs: Vec<_> = needs.map(|key| quoted(key)).collect();
    format!("    {{\"ref\": {}, \"dependsOn\": [{}]}}", quoted(key), needs.join(", "))
}

/// Returns a string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_control() => _ = write!(quoted, "\\u{:04x}", u32::from(char)),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0\tgannet-daemon v0.3.0 (/source/crates/daemon)\tMIT OR Apache-2.0\t
1\tclap v4.6.7\tMIT/Apache-2.0\thttps://example.org/clap
2\tstrsim v0.11.1\tMIT\thttps://example.org/strsim
1\tstrsim v0.11.1\tMIT\thttps://example.org/strsim
";
    const LOCK: &str = "version = 4

[[package]]
name = \"clap\"
version = \"4.6.7\"
source = \"registry\"
checksum = \"c1a9\"
dependencies = [
 \"strsim\",
]

[[package]]
name = \"gannet-daemon\"
version = \"0.3.0\"
";

    #[test]
    fn every_package_is_there_once_with_what_it_needs() {
        let materials = Materials::read(TREE, &checksums(LOCK)).expect("lines of a tree");
        let names: Vec<_> = materials.components.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["pkg:cargo/clap@4.6.7", "pkg:cargo/gannet-daemon@0.3.0", "pkg:cargo/strsim@0.11.1"]
        );
        let needs: Vec<_> = materials.needs["pkg:cargo/gannet-daemon@0.3.0"].iter().collect();
        assert_eq!(needs, ["pkg:cargo/clap@4.6.7", "pkg:cargo/strsim@0.11.1"]);
        assert_eq!(materials.sums["pkg:cargo/clap@4.6.7"], "c1a9");
    }

    #[test]
    fn a_bill_says_licence_checksum_and_where_it_is_from() {
        let materials = Materials::read(TREE, &checksums(LOCK)).expect("lines of a tree");
        let text = materials.to_json("0.3.0", "x86_64-unknown-linux-gnu");
        for expected in [
            "\"specVersion\": \"1.6\"",
            "\"hashes\": [{\"alg\": \"SHA-256\", \"content\": \"c1a9\"}]",
            "\"licenses\": [{\"expression\": \"MIT OR Apache-2.0\"}]",
            "\"purl\": \"pkg:cargo/strsim@0.11.1\"",
            "\"url\": \"https://example.org/clap\"",
            "{\"ref\": \"pkg:cargo/clap@4.6.7\", \"dependsOn\": [\"pkg:cargo/strsim@0.11.1\"]}",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        assert!(!text.contains("\"purl\": \"pkg:cargo/gannet-daemon@0.3.0\""), "no registry has it");
    }

    #[test]
    fn a_line_that_is_not_understood_is_said() {
        let error = Materials::read("warning: something", &BTreeMap::new()).expect_err("no line of a tree");
        assert!(error.contains("warning: something"), "{error}");
    }

    #[test]
    fn strings_are_quoted_for_json() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }
}
