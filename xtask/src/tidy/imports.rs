//! Which file of a crate may use which: folders downward only, as crates do, and no large circles.
//!
//! A file depends on the files whose items it names, in `use` or with a path from `crate` or
//! `super`. Who names an item that another file re-exports depends on the file that has it, and
//! re-exporting what stands below is no dependency.
//!
//! # Limitations
//!
//! Paths that begin with an imported module (`ops::ttl::RULE` after `use crate::ops;`) count as
//! that import. Tests may use what they like.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::source::Source;
use super::{File, Finding};

/// The folders of crates that have an order, lowest first. A file uses its own folder and lower
/// ones; files beside the folders use all, and no folder uses them.
const FOLDERS: [(&str, &[&str]); 1] =
    [("engine", &["query", "events", "answer", "peers", "matchers", "ops", "program", "observe", "run"])];

/// Files that may use each other in a circle: a noun and its parts.
const CYCLE_FILES_MAX: usize = 5;

/// Re-exports that are followed for one name, so that a circle of them ends.
const REEXPORTS_MAX: usize = 8;

/// Checks the sources of all crates.
pub(crate) fn project(files: &[File], findings: &mut Vec<Finding>) {
    let mut crates: BTreeMap<&str, Vec<Module<'_>>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        let mut parts = file.path.strip_prefix("crates/").into_iter().flat_map(|path| path.split('/'));
        if let (Some(name), Some("src")) = (parts.next(), parts.next()) {
            crates.entry(name).or_default().push(Module::read(file, parts.collect()));
        }
    }
    for (name, modules) in &crates {
        let graph = Graph::new(modules);
        folders(name, &graph, findings);
        cycles(&graph, findings);
    }
}

/// One file: what it is called, and what it names.
struct Module<'f> {
    path: &'f str,
    /// `["ops", "ttl"]` for `src/ops/ttl.rs`; nothing for the root.
    module: Vec<&'f str>,
    named: Vec<Named>,
    is_test: bool,
}

/// A path that a file names.
struct Named {
    segments: Vec<String>,
    /// The name that it has here, if `use` gives it one.
    alias: Option<String>,
    is_public: bool,
    line: usize,
}

impl<'f> Module<'f> {
    fn read(file: &'f File, parts: Vec<&'f str>) -> Self {
        let mut module = parts;
        if let Some(last) = module.pop() {
            let name = last.strip_suffix(".rs").unwrap_or(last);
            let is_root = module.is_empty() && matches!(name, "lib" | "main");
            if !is_root && name != "mod" {
                module.push(name);
            }
        }
        let source = Source::read(&file.path, &file.text);
        let is_test = source.is_test(0) || module.contains(&"tests");
        Self { path: &file.path, module, named: named(&source), is_test }
    }
}

/// Finds the paths that a file names, tests left out.
fn named(source: &Source<'_>) -> Vec<Named> {
    let code = source.code.as_str();
    let mut found = Vec::new();
    let mut uses = Vec::new();
    for at in source.find("use") {
        let before = code[..at].rsplit([';', '{', '}', ']', '\n']).next().unwrap_or("").trim();
        let is_public = before.starts_with("pub");
        if !(before.is_empty() || is_public) {
            continue;
        }
        let Some(end) = code[at..].find(';').map(|len| at + len) else { continue };
        let tree: String = code[at + 3..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let mut paths = Vec::new();
        expand(&tree, &[], &mut paths);
        let line = source.line(at);
        found.extend(paths.into_iter().map(|(segments, alias)| Named { segments, alias, is_public, line }));
        uses.push(at..end);
    }
    for at in source.find("crate").into_iter().chain(source.find("super")) {
        let is_path = code[..at].ends_with(['$', ':']) || uses.iter().any(|range| range.contains(&at));
        let tail = code[at..].split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':'))).next();
        let segments: Vec<String> =
            tail.unwrap_or("").split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if !is_path && segments.len() > 1 {
            found.push(Named { segments, alias: None, is_public: false, line: source.line(at) });
        }
    }
    found
}

/// Takes the tree of a `use` apart: `a::{b, c as d}` names `a::b` and `a::c`.
fn expand(tree: &str, before: &[String], found: &mut Vec<(Vec<String>, Option<String>)>) {
    let tree = tree.trim();
    // What begins like this is another crate's, even if a module here has its name.
    if before.is_empty() && tree.starts_with("::") {
        return;
    }
    if let Some((head, rest)) = tree.split_once('{') {
        let mut before = before.to_vec();
        before.extend(head.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned));
        let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
        let (mut depth, mut start) = (0_usize, 0);
        for (at, byte) in inner.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    expand(&inner[start..at], &before, found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        expand(&inner[start..], &before, found);
    } else if !tree.is_empty() {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
        let mut segments = before.to_vec();
        segments.extend(path.split("::").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()));
        if segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let alias = alias.map(|alias| alias.trim().to_owned()).or_else(|| segments.last().cloned());
        found.push((segments, alias));
    }
}

/// Which file of a crate uses which.
struct Graph<'m> {
    modules: &'m [Module<'m>],
    /// From, to, and the line that says so.
    edges: Vec<(usize, usize, usize)>,
}

impl<'m> Graph<'m> {
    fn new(modules: &'m [Module<'m>]) -> Self {
        let places: HashMap<&[&str], usize> =
            modules.iter().enumerate().map(|(at, module)| (&*module.module, at)).collect();
        let mut edges = Vec::new();
        for (from, module) in modules.iter().enumerate().filter(|(_, module)| !module.is_test) {
            for named in &module.named {
                let Some(to) = resolve(modules, &places, from, &named.segments, REEXPORTS_MAX) else {
                    continue;
                };
                let is_below = modules[to].module.starts_with(&module.module);
                if to != from && !(named.is_public && is_below) {
                    edges.push((from, to, named.line));
                }
            }
        }
        Self { modules, edges }
    }
}

/// Returns the file that has what a path names, seen from a file; nothing if that is in another
/// crate.
fn resolve(
    modules: &[Module<'_>],
    places: &HashMap<&[&str], usize>,
    from: usize,
    segments: &[String],
    reexports_left: usize,
) -> Option<usize> {
    let own = &modules[from].module;
    let (first, mut rest) = segments.split_first()?;
    let mut place: Vec<&str> = match first.as_str() {
        "crate" => Vec::new(),
        "self" => own.clone(),
        "super" => own[..own.len().checked_sub(1)?].to_vec(),
        child => {
            let below: Vec<&str> = own.iter().copied().chain([child]).collect();
            places.get(&*below)?;
            below
        }
    };
    while let Some((_, after)) = rest.split_first().filter(|(name, _)| *name == "super") {
        place.pop()?;
        rest = after;
    }
    while let Some((name, after)) = rest.split_first() {
        let below: Vec<&str> = place.iter().copied().chain([name.as_str()]).collect();
        if !places.contains_key(&*below) {
            break;
        }
        place = below;
        rest = after;
    }
    let at = *places.get(&*place)?;
    let reexported = rest.first().and_then(|name| {
        let named = modules[at].named.iter().find(|named| named.alias.as_ref() == Some(name))?;
        let mut segments = named.segments.clone();
        segments.extend(rest[1..].iter().cloned());
        resolve(modules, places, at, &segments, reexports_left.checked_sub(1)?)
    });
    Some(reexported.unwrap_or(at))
}

/// Checks the order of the folders of a crate, if they have one.
fn folders(name: &str, graph: &Graph<'_>, findings: &mut Vec<Finding>) {
    let Some((_, order)) = FOLDERS.iter().find(|(known, _)| *known == name) else { return };
    let folder = |at: usize| {
        let module = &graph.modules[at];
        let is_in_one = module.path.matches('/').count() > 3;
        module.module.first().filter(|_| is_in_one).copied()
    };
    let level = |folder: &str| order.iter().position(|known| *known == folder);
    for (at, module) in graph.modules.iter().enumerate() {
        if folder(at).is_some_and(|folder| level(folder).is_none()) {
            let message =
                format!("this folder has no place in the order of `{name}`: give it one in xtask's table");
            findings.push(Finding::error(module.path, 1, message));
        }
    }
    for &(from, to, line) in &graph.edges {
        let Some(own) = folder(from) else { continue };
        let message = match folder(to) {
            None => format!(
                "`{own}` must not use what stands beside the folders, in `{}`",
                graph.modules[to].path
            ),
            Some(other) if level(other) > level(own) => {
                format!("`{own}` must not use `{other}`: folders of `{name}` depend downward only")
            }
            Some(_) => continue,
        };
        findings.push(Finding::error(graph.modules[from].path, line, message));
    }
}

/// Looks for circles of files that are too large.
fn cycles(graph: &Graph<'_>, findings: &mut Vec<Finding>) {
    for circle in circles(graph).iter().filter(|circle| circle.len() > CYCLE_FILES_MAX) {
        let mut paths: Vec<&str> = circle.iter().map(|&at| graph.modules[at].path).collect();
        paths.sort_unstable();
        let message = format!(
            "{} files use each other in a circle, more than {CYCLE_FILES_MAX}: {}",
            paths.len(),
            paths.join(", ")
        );
        findings.push(Finding::error(paths[0], 1, message));
    }
}

/// Returns the files that can reach each other, circle by circle.
fn circles(graph: &Graph<'_>) -> Vec<Vec<usize>> {
    let count = graph.modules.len();
    let mut next = vec![BTreeSet::new(); count];
    for &(from, to, _) in &graph.edges {
        next[from].insert(to);
    }
    let reach: Vec<BTreeSet<usize>> = (0..count)
        .map(|start| {
            let mut seen = BTreeSet::new();
            let mut left: Vec<usize> = next[start].iter().copied().collect();
            while let Some(at) = left.pop() {
                if seen.insert(at) {
                    left.extend(&next[at]);
                }
            }
            seen
        })
        .collect();
    let mut done = BTreeSet::new();
    let mut found = Vec::new();
    for at in 0..count {
        if reach[at].contains(&at) && done.insert(at) {
            let circle: Vec<usize> =
                reach[at].iter().copied().filter(|&other| reach[other].contains(&at)).collect();
            done.extend(&circle);
            found.push(circle);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[(usize, &str)]) {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let mut findings = Vec::new();
        project(&files, &mut findings);
        expect(&findings, expected);
    }

    #[test]
    fn folders_depend_downward_only() {
        check(
            &[
                ("crates/engine/src/lib.rs", "mod query;\nmod run;\nuse run::Run;\npub struct Engine;\n"),
                ("crates/engine/src/query/mod.rs", "pub struct Query;\n"),
                ("crates/engine/src/run/mod.rs", "use crate::query::Query;\npub struct Run;\n"),
            ],
            &[],
        );
        check(
            &[
                ("crates/engine/src/lib.rs", "pub struct Engine;\n"),
                ("crates/engine/src/query/mod.rs", "fn f() { crate::run::go(); }\n"),
                ("crates/engine/src/run/mod.rs", "use crate::Engine;\n"),
                ("crates/engine/src/misc/mod.rs", ""),
            ],
            &[
                (1, "this folder has no place"),
                (1, "`query` must not use `run`"),
                (1, "`run` must not use what stands beside the folders"),
            ],
        );
    }

    #[test]
    fn another_crate_is_not_the_module_that_has_its_name() {
        let file = |text| [("crates/engine/src/query/mod.rs", text), ("crates/engine/src/query/run.rs", "")];
        check(&file("use ::run::Run;\npub mod run;\n"), &[]);
        let order = [
            ("crates/engine/src/query/mod.rs", "use super::run::Run;\n"),
            ("crates/engine/src/run/mod.rs", "use ::query::Query;\n"),
        ];
        check(&order, &[(1, "`query` must not use `run`")]);
    }

    #[test]
    fn a_reexport_leads_to_the_file_that_has_the_item() {
        check(
            &[
                ("crates/engine/src/query/mod.rs", "pub use crate::run::Run;\n"),
                ("crates/engine/src/answer/mod.rs", "use crate::query::Run;\n"),
                ("crates/engine/src/run/mod.rs", "pub struct Run;\n"),
            ],
            &[(1, "`query` must not use `run`"), (1, "`answer` must not use `run`")],
        );
    }

    #[test]
    fn large_circles_are_refused_and_small_ones_are_not() {
        let ring = |count: usize| -> Vec<(String, String)> {
            (0..count)
                .map(|at| {
                    let next = (at + 1) % count;
                    (
                        format!("crates/wire/src/m{at}.rs"),
                        format!("use crate::{{m{next}::{{Thing as T}}}};\n"),
                    )
                })
                .collect()
        };
        let check_ring = |count: usize, expected: &[(usize, &str)]| {
            let files = ring(count);
            let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            check(&files, expected);
        };
        check_ring(5, &[]);
        check_ring(6, &[(1, "6 files use each other in a circle")]);
    }

    #[test]
    fn a_module_and_its_parts_are_no_circle_if_it_only_reexports_them() {
        let parts: Vec<(String, String)> = (0..8)
            .map(|at| (format!("crates/wire/src/big/p{at}.rs"), "use super::{Shared, P0};\n".to_owned()))
            .collect();
        let mut files: Vec<(&str, &str)> =
            parts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.push(("crates/wire/src/big/mod.rs", "pub struct Shared;\npub use p0::P0;\npub use p1::P1;\n"));
        check(&files, &[]);
    }

    #[test]
    fn tests_may_use_what_they_like() {
        check(
            &[
                (
                    "crates/engine/src/query/mod.rs",
                    "#[cfg(test)]\nmod tests {\n    use crate::run::Run;\n}\n",
                ),
                ("crates/engine/src/run/mod.rs", "pub struct Run;\n"),
            ],
            &[],
        );
    }
}
