//! What documents say about the repository: versions, the changelog's form, and the lists of
//! crates.

use super::crates::UNSAFE_MAY;
use super::layers::{crate_of, layer};
use super::{File, Finding};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const CONTRIBUTING: &str = "CONTRIBUTING.md";
const CHANGELOG: &str = "CHANGELOG.md";

/// Groups of a version in the changelog, in their order.
const GROUPS: [&str; 4] = ["Added", "Changed", "Fixed", "Security"];

/// The longest line of the changelog: one short line says what an operator has to know.
const COLUMNS_MAX: usize = 100;

/// Checks all documents against the other files.
pub(crate) fn project(files: &[File], findings: &mut Vec<Finding>) {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    if let Some(changelog) = find(CHANGELOG) {
        changes(changelog, findings);
        if let Some(manifest) = find("Cargo.toml") {
            versions(files, manifest, changelog, findings);
        }
    }
    for path in [ARCHITECTURE, CONTRIBUTING] {
        if let Some(document) = find(path) {
            crates(files, document, findings);
            unsafe_places(document, findings);
        }
    }
    if let Some(architecture) = find(ARCHITECTURE) {
        invariants(files, architecture, findings);
    }
}

/// Returns the versions that the changelog has, with their lines, the newest first.
fn sections(changelog: &File) -> impl Iterator<Item = (usize, &str)> {
    let headings = changelog.text.lines().enumerate().filter(|(_, line)| line.starts_with("## "));
    headings.filter_map(|(index, line)| Some((index + 1, line.get(3..)?.split(' ').next()?)))
}

/// Checks that the program's version, the changelog and the benchmark snapshots agree.
fn versions(files: &[File], manifest: &File, changelog: &File, findings: &mut Vec<Finding>) {
    let version =
        manifest.text.lines().enumerate().find_map(|(index, line)| {
            Some((index + 1, line.strip_prefix("version = \"")?.strip_suffix('"')?))
        });
    let released: Vec<(usize, &str)> =
        sections(changelog).filter(|(_, version)| *version != "Unreleased").collect();
    if let (Some((line, version)), Some((_, newest))) = (version, released.first())
        && version != *newest
    {
        let message = format!("the version is {version}, but the newest in {CHANGELOG} is {newest}");
        findings.push(Finding::error(&manifest.path, line, message));
    }
    let mut snapshots: Vec<&str> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("docs/benchmarks/")?.split_once('/'))
        .map(|(version, _)| version)
        .collect();
    snapshots.dedup();
    for snapshot in snapshots {
        if !released.iter().any(|(_, version)| *version == snapshot) {
            let message = format!("lacks `## {snapshot}`, of which docs/benchmarks has a snapshot");
            findings.push(Finding::error(&changelog.path, 1, message));
        }
    }
}

/// Checks the form of the changelog: groups in order, each once; short lines; nothing twice in a
/// version.
fn changes(changelog: &File, findings: &mut Vec<Finding>) {
    let mut error =
        |line: usize, message: String| findings.push(Finding::error(&changelog.path, line, message));
    let (mut group, mut entries) = (0, Vec::new());
    for (index, line) in changelog.text.lines().enumerate() {
        let number = index + 1;
        if line.chars().count() > COLUMNS_MAX {
            error(number, format!("longer than {COLUMNS_MAX} columns: the manual has the details"));
        }
        if line.starts_with("## ") {
            (group, entries) = (0, Vec::new());
        } else if let Some(name) = line.strip_prefix("### ") {
            match GROUPS.iter().skip(group).position(|known| *known == name) {
                Some(skipped) => group += skipped + 1,
                None => {
                    error(number, format!("`{name}`: the groups are {}, in this order", GROUPS.join(", ")));
                }
            }
        } else if line.starts_with("- ") {
            if entries.contains(&line) {
                error(number, "stands twice in this version".to_string());
            }
            entries.push(line);
        } else if line.starts_with(' ') {
            error(number, "an entry is one line".to_string());
        }
    }
}

/// Returns what stands between backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the crates that there are.
fn present(files: &[File]) -> Vec<&str> {
    let manifests = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    manifests.filter_map(|file| crate_of(&file.path)).collect()
}

/// Checks the table of layers, whose rows are `| LAYER | crates | …`: every crate, each where it
/// belongs.
fn crates(files: &[File], document: &File, findings: &mut Vec<Finding>) {
    let rows = document.text.lines().enumerate().filter_map(|(index, line)| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        Some((index + 1, cells.next()?.parse::<u8>().ok()?, cells.next()?))
    });
    let listed: Vec<(usize, u8, &str)> =
        rows.flat_map(|(line, layer, cell)| code(cell).map(move |name| (line, layer, name))).collect();
    let present = present(files);
    for name in &present {
        let Some(own) = layer(name) else { continue };
        let message = match listed.iter().find(|(.., listed)| listed == name) {
            Some((_, layer, _)) if *layer == own => continue,
            Some((_, layer, _)) => format!("lists `{name}` in layer {layer}; it is of layer {own}"),
            None => format!("lacks the crate `{name}` in the row of layer {own}"),
        };
        findings.push(Finding::error(&document.path, 1, message));
    }
    for (line, _, name) in listed.iter().filter(|(.., name)| !present.contains(name)) {
        findings.push(Finding::error(&document.path, *line, format!("there is no crate `{name}`")));
    }
}

/// Checks that each crate has an invariant, and no other.
fn invariants(files: &[File], document: &File, findings: &mut Vec<Finding>) {
    let table = document.text.lines().enumerate().skip_while(|(_, line)| *line != "| crate | invariant |");
    let listed: Vec<(usize, &str)> = table
        .skip(2)
        .map_while(|(index, line)| Some((index + 1, line.strip_prefix('|')?.split('|').next()?)))
        .flat_map(|(line, cell)| code(cell).map(move |name| (line, name)))
        .collect();
    let present = present(files);
    for name in present.iter().filter(|name| !listed.iter().any(|(_, listed)| listed == *name)) {
        findings.push(Finding::error(&document.path, 1, format!("lacks the invariant of `{name}`")));
    }
    for (line, name) in listed.iter().filter(|(_, name)| !present.contains(name)) {
        findings.push(Finding::error(&document.path, *line, format!("there is no crate `{name}`")));
    }
}

/// Checks the list of modules that may hold unsafe code.
fn unsafe_places(document: &File, findings: &mut Vec<Finding>) {
    let is_list = |line: &str| line.to_lowercase().contains("unsafe") && line.contains("is allowed in");
    let mut lines = document.text.lines().enumerate().skip_while(|(_, line)| !is_list(line));
    let Some((index, first)) = lines.next() else {
        let message = "lacks the list of modules that may hold unsafe code (`… is allowed in …`)";
        findings.push(Finding::error(&document.path, 1, message));
        return;
    };
    let rest = lines.map(|(_, line)| line).take_while(|line| line.starts_with("  "));
    let text = [first].into_iter().chain(rest).collect::<Vec<_>>().join(" ");
    let listed: Vec<&str> = code(&text).filter(|name| name.contains("::")).collect();
    let allowed: Vec<String> = UNSAFE_MAY.iter().map(|(name, module)| format!("{name}::{module}")).collect();
    for name in allowed.iter().filter(|name| !listed.contains(&name.as_str())) {
        findings.push(Finding::error(&document.path, index + 1, format!("lacks `{name}`")));
    }
    for name in listed.iter().filter(|name| !allowed.iter().any(|allowed| allowed == *name)) {
        findings.push(Finding::error(&document.path, index + 1, format!("`{name}` may hold no unsafe code")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn found(check: impl FnOnce(&mut Vec<Finding>)) -> Vec<Finding> {
        let mut findings = Vec::new();
        check(&mut findings);
        findings
    }

    #[test]
    fn program_changelog_and_benchmarks_have_the_same_versions() {
        let files =
            [File::new("docs/benchmarks/0.2.0/README.md", ""), File::new("docs/benchmarks/README.md", "")];
        let check = |version: &str, changelog: &str, expected: &[(usize, &str)]| {
            let manifest =
                File::new("Cargo.toml", &format!("[workspace.package]\nversion = \"{version}\"\n"));
            let changelog = File::new(CHANGELOG, changelog);
            expect(&found(|findings| versions(&files, &manifest, &changelog, findings)), expected);
        };
        check("0.2.0", "## Unreleased\n\n## 0.2.0 - 2026-11-21\n", &[]);
        check("0.1.0", "## Unreleased\n\n## 0.2.0 - 2026-11-21\n", &[(2, "the version is 0.1.0")]);
        check("0.1.0", "## 0.1.0 - 2026-11-20\n", &[(1, "lacks `## 0.2.0`")]);
    }

    #[test]
    fn changes_are_short_lines_in_groups() {
        let check = |text: &str, expected: &[(usize, &str)]| {
            expect(&found(|findings| changes(&File::new(CHANGELOG, text), findings)), expected);
        };
        check("## 1\n### Added\n- a\n### Fixed\n- b\n## 0\n### Added\n- a\n", &[]);
        check("## 1\n### Fixed\n### Added\n", &[(3, "`Added`: the groups are")]);
        check("## 1\n### Added\n### Added\n", &[(3, "`Added`: the groups are")]);
        check("## 1\n### News\n", &[(2, "`News`: the groups are")]);
        check("- a\n- a\n", &[(2, "stands twice")]);
        check("- a\n  b\n", &[(2, "an entry is one line")]);
        check(&format!("- {}\n", "a".repeat(99)), &[(1, "longer than 100 columns")]);
    }

    #[test]
    fn documents_list_every_crate_in_its_layer() {
        let files = [File::new("crates/wire/Cargo.toml", ""), File::new("crates/cache/Cargo.toml", "")];
        let check = |text: &str, expected: &[(usize, &str)]| {
            expect(&found(|findings| crates(&files, &File::new(CONTRIBUTING, text), findings)), expected);
        };
        check("| 1 | `cache` | memory |\n| 0 | `wire` | octets |\n", &[]);
        check("| 0 | `wire` |\n", &[(1, "lacks the crate `cache` in the row of layer 1")]);
        check("| 0 | `wire`, `cache` |\n", &[(1, "lists `cache` in layer 0; it is of layer 1")]);
        check("| 1 | `cache` |\n| 0 | `wire`, `rope` |\n", &[(2, "there is no crate `rope`")]);
        let head = "| crate | invariant |\n|---|---|\n";
        let check = |rows: &str, expected: &[(usize, &str)]| {
            let document = File::new(ARCHITECTURE, &format!("{head}{rows}"));
            expect(&found(|findings| invariants(&files, &document, findings)), expected);
        };
        check("| `wire`, `cache` | never |\n", &[]);
        check("| `wire` | never |\n", &[(1, "lacks the invariant of `cache`")]);
        check("| `wire`, `cache`, `rope` | never |\n", &[(3, "there is no crate `rope`")]);
    }

    #[test]
    fn documents_list_the_places_of_unsafe_code() {
        let all = UNSAFE_MAY.iter().map(|(name, module)| format!("`{name}::{module}`"));
        let all = all.collect::<Vec<_>>().join(", ");
        let check = |text: &str, expected: &[(usize, &str)]| {
            let document = File::new(CONTRIBUTING, text);
            expect(&found(|findings| unsafe_places(&document, findings)), expected);
        };
        check(&format!("- `unsafe` is allowed in\n  {all}.\n"), &[]);
        check("", &[(1, "lacks the list")]);
        check(&format!("`unsafe` is allowed in {all}, `wire::rope`.\n"), &[(1, "`wire::rope` may hold no")]);
        check(
            &format!("\nUnsafe code is allowed in {}.\n", all.replace("`cache::store::slots`, ", "")),
            &[(2, "lacks `cache::store::slots`")],
        );
    }
}
