//! The page `docs/manual/commands.md`, printed from the definition of the command line.

use clap::{Arg, Command};

const PAGE: &str = "../../docs/manual/commands.md";

const HEAD: &str = "\
<!-- Printed from the definition of the command line by `cargo xtask docs`. Do not edit. -->

# The command line

`gannet COMMAND --help` prints the same for one command, `gannet man` as a manual page. Options that
many commands have (`--socket`, `--config`, `--json`) may also stand before the command.
";

/// Returns the page in Markdown.
fn page() -> String {
    let mut command = super::definition();
    command.build();
    let mut out = HEAD.to_owned();
    write_command(&mut out, &mut command, 2);
    out
}

fn write_command(out: &mut String, command: &mut Command, level: usize) {
    let name = command.get_bin_name().unwrap_or("gannet").to_owned();
    let usage = command.render_usage().to_string().replace("Usage: ", "");
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    out.push_str(&format!("\n{} {name}\n\n{}\n", "#".repeat(level), wrapped(&about)));
    out.push_str(&format!("\n```text\n{}\n```\n", usage.trim()));
    let arguments: Vec<String> = command.get_arguments().filter_map(row).collect();
    if !arguments.is_empty() {
        out.push_str(&format!("\n| argument | |\n|---|---|\n{}", arguments.concat()));
    }
    if let Some(after) = command.get_after_help() {
        out.push_str(&format!("\n```text\n{}\n```\n", after.to_string().trim_end()));
    }
    for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
        write_command(out, below, (level + 1).min(4));
    }
}

/// Returns the row of an argument; none for those that every command has.
fn row(argument: &Arg) -> Option<String> {
    if ["help", "version"].contains(&argument.get_id().as_str()) || argument.is_hide_set() {
        return None;
    }
    let takes_value = argument.get_action().takes_values();
    let value = argument.get_value_names().filter(|_| takes_value).and_then(|names| names.first());
    let value = value.map(ToString::to_string).unwrap_or_default();
    let mut forms = Vec::new();
    forms.extend(argument.get_short().map(|short| format!("-{short}")));
    forms.extend(argument.get_long().map(|long| format!("--{long}")));
    let form = if forms.is_empty() { value } else { format!("{} {value}", forms.join(", ")) };
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: Vec<String> = match takes_value {
        true => argument.get_possible_values().iter().map(|word| format!("`{}`", word.get_name())).collect(),
        false => Vec::new(),
    };
    if !text.ends_with(['.', ']']) {
        text.push('.');
    }
    if !words.is_empty() {
        text.push_str(&format!(" One of {}.", words.join(", ")));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if takes_value && !defaults.is_empty() {
        text.push_str(&format!(" Default: {}.", defaults.join(", ")));
    }
    Some(format!("| `{}` | {} |\n", form.trim().replace('|', "\\|"), text.replace('|', "\\|")))
}

/// Returns paragraphs in lines of at most a hundred characters.
fn wrapped(text: &str) -> String {
    let paragraph = |paragraph: &str| {
        let mut lines = vec![String::new()];
        for word in paragraph.split_whitespace() {
            let line = lines.last_mut().expect("there is a line");
            if line.is_empty() {
                line.push_str(word);
            } else if line.chars().count() + 1 + word.chars().count() <= 100 {
                line.push(' ');
                line.push_str(word);
            } else {
                lines.push(word.to_owned());
            }
        }
        lines.join("\n")
    };
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

/// Set `GANNET_UPDATE_MANUAL=1` to write the page.
#[test]
fn the_manual_has_every_command() {
    let text = page();
    if std::env::var_os("GANNET_UPDATE_MANUAL").is_some() {
        std::fs::write(PAGE, &text).expect("the page can be written");
    }
    let found = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(found == text, "{PAGE} is stale: run cargo xtask docs");
    for name in ["gannet query", "gannet zone keys roll", "gannet config starter"] {
        assert!(text.contains(&format!("# {name}\n")), "{name}");
    }
}
