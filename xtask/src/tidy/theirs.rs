//! Keywords of `unbound.conf` that mean nothing in a configuration of ours: they stay in the crates
//! that read that file, in those that speak with its programs, and in the table of settings, which
//! says what each becomes. Whoever wants one anywhere else lacks a setting of ours.

use std::collections::BTreeSet;

use super::source::Source;
use super::{File, Finding};

/// Where the keywords are.
const KEYWORDS: &str = "crates/unbound/src/keywords/";
/// Where our words are.
const SETTINGS: &str = "crates/schema/src/";
/// Crates that know the others: reading, the control channel and the programs, the table of
/// settings, other programs' files.
const KNOWING: [&str; 4] = ["crates/unbound/", "crates/unbound-control/", "crates/schema/", "crates/import/"];
/// Keywords that are terms of something else, too.
const TERMS: [&str; 1] = [
    // An action of response policy zones, by which statistics name it.
    "local-data",
];

/// Checks the code of all crates.
pub(crate) fn project(files: &[File], sources: &[Source<'_>], findings: &mut Vec<Finding>) {
    let keywords = keywords(files);
    for source in sources {
        let is_ours = source.path.starts_with("crates/") && source.path.contains("/src/");
        if !is_ours || KNOWING.iter().any(|known| source.path.starts_with(known)) {
            continue;
        }
        let mut at = 0;
        for line in source.text.split_inclusive('\n') {
            let code = line.split("//").next().unwrap_or("");
            if !source.is_test(at)
                && let Some(word) = words(code).find(|word| keywords.contains(word))
            {
                let message = format!("\"{word}\" is a word of unbound.conf: a setting of ours has its own");
                findings.push(Finding::error(source.path, source.line(at), message));
            }
            at += line.len();
        }
    }
}

/// Returns the keywords that are no words of ours.
fn keywords(files: &[File]) -> BTreeSet<&str> {
    let of = |folder: &'static str| files.iter().filter(move |file| file.path.starts_with(folder));
    let rows = of(KEYWORDS).flat_map(|file| file.text.split("row(").skip(1));
    let names = rows.filter_map(|row| row.split('"').nth(1));
    // Single words such as "port" mean the same everywhere.
    let mut keywords: BTreeSet<&str> = names.filter(|name| name.contains('-')).collect();
    for file in of(SETTINGS) {
        let mut before = "";
        for part in file.text.split("&[") {
            // What a setting comes from is not its name.
            let is_from = ["unbound(", "unbound: "].iter().any(|end| before.ends_with(end));
            before = part;
            let part = if is_from { part.split_once(']').map_or("", |(_, behind)| behind) } else { part };
            words(part).for_each(|word| {
                keywords.remove(word);
            });
        }
    }
    TERMS.iter().for_each(|term| {
        keywords.remove(term);
    });
    keywords
}

/// Returns the words of a text, with their hyphens.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn words_of_unbound_conf_stay_where_it_is_read() {
        let rows = "const ROWS: &[Row] = &[row(\"do-daemonize\", Flag), row(\"tls-port\", Number), row(\"port\", Number)];";
        let settings = "row(\"server.daemonize\").unbound(&[\"do-daemonize\"]), row(\"tls-port\")";
        let texts = [
            ("crates/unbound/src/keywords/server.rs", rows),
            ("crates/schema/src/server.rs", settings),
            (
                "crates/server/src/start.rs",
                "// do-daemonize\nlet port = \"tls-port\";\nlet its = \"do-daemonize\";\n",
            ),
            ("crates/unbound/src/lower.rs", "let its = \"do-daemonize\";\n"),
            ("crates/server/src/tests.rs", "let its = \"do-daemonize\";\n"),
        ];
        let files: Vec<File> = texts.iter().map(|(path, text)| File::new(path, text)).collect();
        let sources: Vec<_> = files.iter().map(|file| Source::read(&file.path, &file.text)).collect();
        let mut findings = Vec::new();
        project(&files, &sources, &mut findings);
        expect(&findings, &[(3, "\"do-daemonize\" is a word of unbound.conf")]);
    }
}
