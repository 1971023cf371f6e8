//! The commands: which there are, and what each says.

mod answers;
mod changes;
mod cookies;
mod flush;
mod lists;
mod server;
mod statistics;
mod zones;

use std::fmt;
use std::sync::Arc;

use ::server::OperatorError;
use unbound::{Changes, Facts};
use wire::NameBuf;

use crate::audit;
use crate::channel::Context;
use crate::lines::{Broken, Gone, Input, Output};
use crate::lists::NoRoom;

pub(crate) use statistics::{log_statistics, log_workers};

/// What ends the lines that follow a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    /// A line of its own, or the end of the stream.
    Mark,
    /// The word `EOF`.
    Word,
}

/// Why a command is not carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What the client hears, behind the word `error`.
    Error(String),
    /// What the client hears, without that word: the other program says it so.
    Said(String),
    /// There is no room for more of the list.
    NoRoom(NoRoom),
    /// The client is gone.
    Gone,
}

impl From<Gone> for Failure {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Gone => Self::Gone,
            Broken::NoRoom(why) => Self::NoRoom(why),
        }
    }
}

impl From<OperatorError> for Failure {
    fn from(error: OperatorError) -> Self {
        Self::Error(error.to_string())
    }
}

/// What a command works with.
pub(crate) struct Call<'a> {
    pub(crate) context: &'a Context,
    pub(crate) name: &'static str,
    /// What stands behind its name.
    pub(crate) argument: &'a str,
    pub(crate) input: &'a mut Input,
    pub(crate) output: &'a mut Output,
}

type Outcome = Result<(), Failure>;
type Command = fn(&mut Call<'_>) -> Outcome;

/// A command with what follows it.
struct Row {
    name: &'static str,
    input: Option<InputEnd>,
    /// Whether it makes something different: then the audit log has a row of it.
    changes: bool,
    carry_out: Command,
}

const fn row(name: &'static str, carry_out: Command) -> Row {
    Row { name, input: None, changes: false, carry_out }
}

const fn change(name: &'static str, carry_out: Command) -> Row {
    Row { changes: true, ..row(name, carry_out) }
}

const fn bulk(name: &'static str, carry_out: Command) -> Row {
    Row { input: Some(InputEnd::Mark), ..change(name, carry_out) }
}

const COMMANDS: &[Row] = &[
    row("status", server::status),
    change("stop", server::stop),
    change("reload", server::reload),
    change("reload_keep_cache", server::reload_keep_cache),
    change("fast_reload", server::fast_reload),
    change("verbosity", server::verbosity),
    change("log_reopen", server::log_reopen),
    change("set_option", server::set_option),
    row("get_option", server::get_option),
    row("stats", statistics::stats),
    row("stats_noreset", statistics::stats_noreset),
    row("flush_stats", statistics::flush_stats),
    row("dump_cache", answers::dump_cache),
    Row { name: "load_cache", input: Some(InputEnd::Word), changes: true, carry_out: answers::load_cache },
    row("cache_lookup", answers::cache_lookup),
    row("lookup", lists::lookup),
    change("flush", flush::flush),
    change("flush_type", flush::flush_type),
    change("flush_zone", flush::flush_zone),
    change("flush_bogus", flush::flush_bogus),
    change("flush_negative", flush::flush_negative),
    change("flush_stale", flush::flush_stale),
    change("flush_requestlist", flush::flush_requestlist),
    row("dump_requestlist", lists::dump_requestlist),
    change("flush_infra", flush::flush_infra),
    row("dump_infra", lists::dump_infra),
    row("list_stubs", lists::list_stubs),
    row("list_forwards", lists::list_forwards),
    row("list_insecure", lists::list_insecure),
    row("list_local_zones", lists::list_local_zones),
    row("list_local_data", lists::list_local_data),
    row("view_list_local_zones", lists::view_list_local_zones),
    row("view_list_local_data", lists::view_list_local_data),
    row("ratelimit_list", lists::ratelimit_list),
    row("ip_ratelimit_list", lists::ip_ratelimit_list),
    change("insecure_add", changes::insecure_add),
    change("insecure_remove", changes::insecure_remove),
    change("forward_add", changes::forward_add),
    change("forward_remove", changes::forward_remove),
    change("forward", changes::forward),
    change("stub_add", changes::stub_add),
    change("stub_remove", changes::stub_remove),
    change("local_zone", changes::local_zone),
    change("local_zone_remove", changes::local_zone_remove),
    change("local_data", changes::local_data),
    change("local_data_remove", changes::local_data_remove),
    bulk("local_zones", changes::local_zones),
    bulk("local_zones_remove", changes::local_zones_remove),
    bulk("local_datas", changes::local_datas),
    bulk("local_datas_remove", changes::local_datas_remove),
    change("view_local_zone", changes::view_local_zone),
    change("view_local_zone_remove", changes::view_local_zone_remove),
    change("view_local_data", changes::view_local_data),
    change("view_local_data_remove", changes::view_local_data_remove),
    bulk("view_local_datas", changes::view_local_datas),
    bulk("view_local_datas_remove", changes::view_local_datas_remove),
    row("list_changes", changes::list_changes),
    change("undo_changes", changes::undo_changes),
    row("list_auth_zones", zones::list_auth_zones),
    change("auth_zone_reload", zones::auth_zone_reload),
    change("auth_zone_transfer", zones::auth_zone_transfer),
    change("rpz_enable", zones::rpz_enable),
    change("rpz_disable", zones::rpz_disable),
    change("add_cookie_secret", cookies::add),
    change("drop_cookie_secret", cookies::drop_staging),
    change("activate_cookie_secret", cookies::activate),
    row("print_cookie_secrets", cookies::print),
];

/// Commands with nothing behind their names.
const WITHOUT_ARGUMENT: &[&str] = &[
    "status",
    "stop",
    "reload",
    "reload_keep_cache",
    "log_reopen",
    "stats",
    "stats_noreset",
    "flush_stats",
    "dump_cache",
    "load_cache",
    "flush_requestlist",
    "dump_requestlist",
    "dump_infra",
    "list_stubs",
    "list_forwards",
    "list_insecure",
    "list_local_zones",
    "list_local_data",
    "local_zones",
    "local_zones_remove",
    "local_datas",
    "local_datas_remove",
    "list_changes",
    "undo_changes",
    "list_auth_zones",
    "drop_cookie_secret",
    "activate_cookie_secret",
    "print_cookie_secrets",
];

/// Returns why a command is not carried out: something stands behind its name that it does not
/// take.
fn one_too_many(name: &str, argument: &str) -> Option<Failure> {
    let is_wrong = !argument.is_empty() && WITHOUT_ARGUMENT.contains(&name);
    is_wrong.then(|| Failure::Error(format!("command {name} takes no arguments, have '{argument}'")))
}

/// Returns a command and what stands behind its name.
fn find(line: &str) -> Option<(&'static Row, &str)> {
    let line = line.trim();
    let (name, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let row = COMMANDS.iter().find(|row| row.name == name)?;
    Some((row, argument.trim()))
}

/// Returns the names of all commands.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|row| row.name)
}

/// Returns what ends the lines that follow a command; none if none follow.
pub(crate) fn end_of_input(line: &str) -> Option<InputEnd> {
    find(line)?.0.input
}

/// Carries a command out.
///
/// # Errors
///
/// The client is gone.
pub(crate) fn carry_out(
    line: &str,
    context: &Arc<Context>,
    input: &mut Input,
    output: &mut Output,
) -> Result<(), Gone> {
    let found = find(line);
    let wrong = found.and_then(|(row, argument)| one_too_many(row.name, argument));
    let outcome = match (found, wrong) {
        (_, Some(failure)) => Err(failure),
        (Some((row, argument)), None) => {
            // Without anything behind it, this one is a look.
            let is_look = row.name == "forward" && argument.is_empty();
            let is_last = row.name == "stop";
            let mut call = Call { context, name: row.name, argument, input, output };
            if is_last {
                audit::write_counted(context);
                call.audit("accepted");
            }
            let outcome = (row.carry_out)(&mut call);
            if row.changes && !is_last && !is_look {
                let text = match &outcome {
                    Ok(()) => "done".to_owned(),
                    Err(Failure::Error(why) | Failure::Said(why)) => format!("refused: {why}"),
                    Err(Failure::NoRoom(why)) => format!("refused: {}", why.text()),
                    Err(Failure::Gone) => "the client is gone".to_owned(),
                };
                if audit::is_flush(row.name) {
                    audit::flushed(context, (row.name, argument), &text);
                } else {
                    call.audit(&text);
                }
            }
            outcome
        }
        (None, None) => Err(Failure::Error(format!("unknown command '{}'", line.trim()))),
    };
    match outcome {
        Ok(()) => Ok(()),
        Err(Failure::Error(why)) => output.line(format_args!("error {why}")),
        Err(Failure::Said(text)) => output.line(text),
        Err(Failure::NoRoom(why)) => output.line(format_args!("error {}", why.text())),
        Err(Failure::Gone) => Err(Gone),
    }
}

impl Call<'_> {
    /// Writes a row of the audit log; with what was read so far, if a list follows the command.
    pub(crate) fn audit(&self, outcome: &str) {
        let on = audit::argument(self.name, self.argument);
        match end_of_input(self.name) {
            Some(_) => {
                let on = format!("{on} {}", self.input.summary());
                audit::write(self.context, (self.name, on.trim_start()), outcome);
            }
            None => audit::write(self.context, (self.name, on), outcome),
        }
    }

    /// Says that it is done.
    pub(crate) fn ok(&mut self) -> Outcome {
        Ok(self.output.line("ok")?)
    }

    pub(crate) fn line(&mut self, text: impl fmt::Display) -> Outcome {
        Ok(self.output.line(text)?)
    }

    /// Returns what the files say, with changes.
    ///
    /// # Errors
    ///
    /// The configuration is of ours.
    pub(crate) fn facts(&self) -> Result<Facts, Failure> {
        let loaded = self.context.operator.loaded();
        match &loaded.changes {
            Some(changes) => Ok(Facts::of(&loaded.sources, changes)),
            None => Err(no_facts()),
        }
    }

    /// Returns what the files say, without changes.
    ///
    /// # Errors
    ///
    /// The configuration is of ours.
    pub(crate) fn facts_of_files(&self) -> Result<Facts, Failure> {
        let loaded = self.context.operator.loaded();
        match loaded.changes {
            Some(_) => Ok(Facts::of(&loaded.sources, &Changes::default())),
            None => Err(no_facts()),
        }
    }

    /// Returns the first word of the argument, and what stands behind it.
    pub(crate) fn two(&self) -> Result<(&str, &str), Failure> {
        split(self.argument)
    }

    /// Returns the argument as a name.
    pub(crate) fn name(&self) -> Result<NameBuf, Failure> {
        match self.argument {
            "" => Err(Failure::Said("error: this option requires a domain name".to_owned())),
            text => name(text),
        }
    }

    /// Takes letters behind a plus off the beginning of the argument; returns them.
    pub(crate) fn letters(&mut self, known: &str) -> Result<String, Failure> {
        let Some(rest) = self.argument.strip_prefix('+') else { return Ok(String::new()) };
        let (letters, rest) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        if let Some(unknown) = letters.chars().find(|letter| !known.contains(*letter)) {
            return Err(Failure::Said(format!("error: unknown option {unknown}")));
        }
        let letters = letters.to_owned();
        self.argument = rest.trim_start();
        Ok(letters)
    }
}

fn no_facts() -> Failure {
    Failure::Error("the server's configuration is no unbound.conf: gannet config show prints it".to_owned())
}

/// Returns the first word of a text, and what stands behind it.
fn split(text: &str) -> Result<(&str, &str), Failure> {
    match text.split_once([' ', '\t']) {
        Some((first, rest)) if !rest.trim().is_empty() => Ok((first, rest.trim())),
        _ => Err(Failure::Error(format!("could not find next argument after {}", text.trim()))),
    }
}

/// Reads a name.
fn name(text: &str) -> Result<NameBuf, Failure> {
    text.parse().map_err(|error| Failure::Error(format!("cannot parse name {text}: {error}")))
}

/// Returns a name with the dot at its end.
fn dotted(name: &str) -> String {
    if name.ends_with('.') { name.to_owned() } else { format!("{name}.") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_command_is_there_once() {
        let names: BTreeSet<&str> = COMMANDS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), COMMANDS.len());
    }

    #[test]
    fn what_stands_behind_a_command_that_takes_nothing_is_refused() {
        let said = |line| {
            let (row, argument) = find(line).expect("a command");
            match one_too_many(row.name, argument) {
                Some(Failure::Error(why)) => why,
                _ => String::new(),
            }
        };
        assert_eq!(said("stats  foo bar"), "command stats takes no arguments, have 'foo bar'");
        assert_eq!(said("log_reopen foo"), "command log_reopen takes no arguments, have 'foo'");
        assert_eq!(said("stats "), "");
        assert_eq!(said("flush foo"), "");
        let names: BTreeSet<&str> = COMMANDS.iter().map(|row| row.name).collect();
        assert!(WITHOUT_ARGUMENT.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn a_command_ends_at_the_first_blank() {
        let of = |line| find(line).map(|(row, argument)| (row.name, argument));
        assert_eq!(of(" flush  a.example "), Some(("flush", "a.example")));
        assert_eq!(of("flush_zone\ta"), Some(("flush_zone", "a")));
        assert_eq!(of("flush_zones a"), None);
        assert_eq!(end_of_input("local_datas"), Some(InputEnd::Mark));
        assert_eq!(end_of_input("load_cache"), Some(InputEnd::Word));
        assert_eq!(end_of_input("local_data a A 192.0.2.1"), None);
    }
}
