//! The manual's page of settings.

use policy::action;
use policy::condition::FIELDS;

use super::wrap;
use schema::{Apply, Kind, RoleWord, Row};

/// Columns of the page.
const WIDTH: usize = 100;

const INTRODUCTION: &str = "\
<!-- Printed from the table of settings by `cargo xtask docs`. Do not edit. -->

# Settings

The configuration is one YAML file and the files that it includes. A setting that the file leaves
out has the default given here. Without any file, Gannet answers the machine it runs on.

- `gannet check` reads a configuration and reports every mistake, with file, line and column.
- `gannet config default` prints a file with all defaults.
- `gannet config show` prints the settings in force; with `--origin`, where each comes from.
- `gannet config schema` prints this page; with `--json`, a JSON Schema for editors.

A changed setting takes effect with `gannet reload` (or SIGHUP), which closes no socket, empties no
cache and drops no waiting query. For a setting that *takes a restart*, a reload reports the change
and keeps the old value. Over the API, a setting is changed by whoever has its *role*, or one that
may do more; where none is said that is `admin` (see [api.md](api.md#roles)).

## Notation

| what | how it is written |
|---|---|
| duration | `500ms`, `10s`, `1m30s`, `2h`, `1d`, `1w` |
| size | `64MiB`, `1GiB` (powers of 1024), `500MB` (powers of 1000) |
| percentage | `10%` |
| yes or no | `true`, `false`, and nothing else |
| address and port | `192.0.2.1`, `192.0.2.1:5300`, `2001:db8::1`, `[2001:db8::1]:53`, `192.0.2.1@53` |
| prefix | `192.0.2.0/24`, `2001:db8::/32`, a single address, or `loopback`, `private`, `lan`, `any` |
| name | `example.org` or `example.org.` |
| list | `[a, b]` or one `- a` a line; a single value may stand without brackets |

YAML is read strictly: one document in a file, no anchors, aliases or tags, no key twice. Every
value may contain `${VARIABLE}` or `${VARIABLE:-otherwise}` from the environment; `$${` stands for
`${`. Inside `[ ]` and `{ }` such a value needs quotation marks, because YAML gives braces and
commas there a meaning of their own. Secrets may come from a file, with `file:/run/secrets/x`; no
command prints them.
";

/// Returns the page in Markdown.
pub fn manual() -> String {
    let mut out = INTRODUCTION.to_owned();
    for row in schema::children("") {
        out.push_str(&format!("\n## `{}`\n", row.key()));
        write_row(&mut out, row);
        write_below(&mut out, row.path);
        if row.path == "policy" {
            write_language(&mut out);
        }
    }
    out
}

/// Writes the settings below a path, however deep.
fn write_below(out: &mut String, path: &str) {
    for parent in [path.to_owned(), format!("{path}.*"), format!("{path}[]")] {
        for row in schema::children(&parent) {
            out.push_str(&format!("\n### `{}`\n", row.path));
            write_row(out, row);
            // What a template of zones says is described where zones are.
            if row.path != "zone-templates.*" {
                write_below(out, row.path);
            }
        }
    }
}

fn write_row(out: &mut String, row: &Row) {
    paragraph(out, row.text);
    if matches!(row.kind, Kind::Section) {
        return;
    }
    let mut facts = match row.kind {
        Kind::Items | Kind::Section => String::new(),
        Kind::Named(noun) => format!("A mapping from the name of each {noun} to what it is. "),
        Kind::List(_) | Kind::One(_) => {
            let mut expected = row.kind.expected();
            if let Some(first) = expected.get(..1) {
                let first = first.to_uppercase();
                expected.replace_range(..1, &first);
            }
            format!("{expected}. ")
        }
    };
    if let Some(default) = row.default {
        facts.push_str(&format!("Default: `{default}` ({}). ", row.reason));
    } else if !row.path.ends_with('*') {
        facts.push_str("Not set by default. ");
    }
    if row.role != RoleWord::Admin {
        facts.push_str(&format!("*Role: `{}`.* ", row.role.word()));
    }
    if row.apply == Apply::Restart {
        facts.push_str("*Takes a restart.* ");
    }
    if !row.unbound.is_empty() {
        let names: Vec<String> = row.unbound.iter().map(|name| format!("`{name}`")).collect();
        facts.push_str(&format!("In `unbound.conf`: {}. ", names.join(", ")));
    }
    if !facts.is_empty() {
        paragraph(out, &facts);
    }
}

fn paragraph(out: &mut String, text: &str) {
    out.push('\n');
    for line in wrap(text, WIDTH) {
        out.push_str(&line);
        out.push('\n');
    }
}

/// Writes the policy language: conditions and actions.
fn write_language(out: &mut String) {
    out.push_str("\n### Conditions\n");
    paragraph(
        out,
        "A condition is made of tests with `and`, `or`, `not` and parentheses; `and` binds closer than `or`. A test \
         compares with `==` or `!=`, or asks with `in` or `not in` whether something is among values: `a|b|c`, `[a, b, c]`, \
         or the name of a set.",
    );
    out.push_str("\n| looks at | |\n|---|---|\n");
    for field in FIELDS {
        out.push_str(&format!("| `{}` | {} |\n", field.word, field.text.replace('|', "\\|")));
    }
    out.push_str("\n### Actions\n\n| action | |\n|---|---|\n");
    for row in action::rows() {
        let (form, text) = (row.form().replace('|', "\\|"), row.text.replace('|', "\\|"));
        out.push_str(&format!("| `{form}` | {text} |\n"));
    }
    out.push_str(
        "\n<!-- check: with office -->\n```yaml\npolicy:\n  main:\n    - if: qtype == HTTPS and not client in lan\n      do: reject(refused)\n    - if: qname in \
         suffix:corp.example\n      do: [cache(office), forward(office), accept]\n    - do: [hosts, local, cache(main), \
         forward(default)]\n```\n",
    );
    paragraph(
        out,
        "The answer that `forward` brings goes through the rest of the rules: end the rule with `accept` where nothing more \
         should happen to it. When no rule answers, the reply is REFUSED. A query can take at most 65,536 steps, and policies \
         call each other at most 16 levels deep; the checker refuses more, calls in a circle, and rules that cannot be \
         reached.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PAGE: &str = "../../docs/manual/settings.md";

    /// Set `GANNET_UPDATE_MANUAL=1` to write the page.
    #[test]
    fn the_page_in_the_repository_is_up_to_date() {
        let text = manual();
        if std::env::var_os("GANNET_UPDATE_MANUAL").is_some() {
            fs::create_dir_all("../../docs/manual").expect("the directory can be made");
            fs::write(PAGE, &text).expect("the page can be written");
        }
        let found = fs::read_to_string(PAGE).unwrap_or_default();
        assert!(found == text, "{PAGE} is stale: run cargo xtask docs");
    }

    #[test]
    fn every_setting_is_on_the_page() {
        let text = manual();
        for row in schema::rows() {
            assert!(text.contains(&format!("# `{}`\n", row.path)), "{}", row.path);
        }
    }
}
