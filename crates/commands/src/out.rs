//! What commands print, and the codes they exit with.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::cli::OutputArgs;

/// Everything went well.
pub const FINE: ExitCode = ExitCode::SUCCESS;

/// Returns the code for a negative result: a mistake found, no answer, not running.
pub fn negative() -> ExitCode {
    ExitCode::from(1)
}

/// Returns the code for wrong usage.
pub(crate) fn wrong_usage() -> ExitCode {
    ExitCode::from(2)
}

/// Writes to standard output. A reader that has gone (`| head`) is no mistake of ours.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes to standard output; `false` when nobody reads it any more.
pub(crate) fn still_read(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// Says what went wrong, on standard error.
pub fn complain(text: &str) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "gannet: {text}");
}

/// Prints what came of a command, or says why nothing did, and returns the code for it.
pub(crate) fn told(outcome: Result<String, String>) -> ExitCode {
    match outcome {
        Ok(text) => {
            print(&text);
            FINE
        }
        Err(why) => {
            complain(&why);
            negative()
        }
    }
}

/// Says what went wrong, as JSON if that is what was asked for, and returns the code for a negative
/// result.
///
/// The JSON goes to standard output, where whoever reads JSON looks: `{"error": "…"}`.
pub fn failed(why: &str, output: OutputArgs) -> ExitCode {
    if output.json {
        print(&control::api::to_json(&control::api::Complaint { error: why.to_owned() }));
    } else {
        complain(&escaped_lines(why));
    }
    negative()
}

/// Says what is wrong with the command line, as JSON if that is what was asked for, and returns the
/// code for it.
pub fn wrong(why: &str, output: OutputArgs) -> ExitCode {
    if output.json {
        print(&control::api::to_json(&control::api::Complaint { error: why.to_owned() }));
    } else {
        complain(why);
    }
    wrong_usage()
}

/// Returns whether standard output is a terminal that somebody wants colours on
/// (<https://no-color.org>).
pub fn is_coloured() -> bool {
    let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !wants_none && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Writes over the last line of a terminal that standard error leads to; an empty text takes that
/// line away.
pub(crate) fn overwrite(text: &str) {
    let mut err = io::stderr().lock();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[2K{text}").and_then(|()| err.flush());
    }
}

/// Returns a time in milliseconds, to the microsecond.
pub fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns `text` with control characters written out, so that what a stranger chose cannot drive a
/// terminal.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    push_escaped(&mut safe, text);
    safe
}

/// Returns `text` like [`escaped`], its ends of lines left as they are.
fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// Appends `text` to `out` like [`escaped`].
pub fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        if is_driving(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
}

/// Returns whether `c` makes a terminal do something, or reorders what is read.
fn is_driving(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_not_driven_by_names() {
        assert_eq!(escaped("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
        assert_eq!(escaped_lines("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\nc");
        assert_eq!(escaped("bücher \u{202e}x \u{9b}1m"), "bücher \\u{202e}x \\u{9b}1m");
    }
}
