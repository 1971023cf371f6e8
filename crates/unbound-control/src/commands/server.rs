//! The server as a whole: its state, reloads, its log, its options.

use ::server::OperatorError;
use control::api::{CacheFlush, Flush, ResolverFlush};
use tracing::info;
use unbound::{ChangeError, Changes, Facts};

use super::{Call, Failure, Outcome, split};
use crate::service;

/// Zones whose signatures do not count.
const INSECURE: &str = "domain-insecure";

pub(super) fn status(call: &mut Call<'_>) -> Outcome {
    let status = call.context.operator.status();
    let (verbosity, modules) = match call.facts() {
        Ok(facts) => (facts.value("verbosity"), facts.value("module-config")),
        Err(_) => ("1".to_owned(), "validator iterator".to_owned()),
    };
    let verbosity = call.context.verbosity().map_or(verbosity, |number| number.to_string());
    call.line(format_args!("version: {}", status.version))?;
    call.line(format_args!("verbosity: {verbosity}"))?;
    call.line(format_args!("threads: {}", status.workers))?;
    let count = modules.split_whitespace().count();
    call.line(format_args!("modules: {count} [ {modules} ]"))?;
    call.line(format_args!("uptime: {} seconds", status.uptime_s))?;
    call.line(format_args!("options: reuseport control({})", call.context.word))?;
    call.line(format_args!("unbound (pid {}) is running...", status.pid))
}

pub(super) fn stop(call: &mut Call<'_>) -> Outcome {
    call.ok()?;
    call.output.send()?;
    info!("the control channel ends the server");
    (call.context.hooks.stop)();
    Ok(())
}

/// Reads the files again, and forgets answers and what was counted, as the other program does.
pub(super) fn reload(call: &mut Call<'_>) -> Outcome {
    read_again(call)?;
    service::tell_reload(call.context);
    let operator = &call.context.operator;
    operator.cache_flush(&CacheFlush { cache: None, what: Flush::All })?;
    operator.resolver_flush(None, &ResolverFlush::All)?;
    super::statistics::begin_from_zero(call.context);
    call.ok()
}

pub(super) fn reload_keep_cache(call: &mut Call<'_>) -> Outcome {
    read_again(call)?;
    service::tell_reload(call.context);
    call.ok()
}

/// What a reload is in any case: nothing is dropped, and nobody waits. Options for how much of it
/// is done in one go, and how much is told, change nothing.
pub(super) fn fast_reload(call: &mut Call<'_>) -> Outcome {
    while call.argument.starts_with('+') {
        call.letters("dpv")?;
    }
    read_again(call)?;
    call.ok()
}

fn read_again(call: &Call<'_>) -> Outcome {
    call.context.operator.reload().map(drop).map_err(|error| mistakes(&error))
}

fn mistakes(error: &OperatorError) -> Failure {
    Failure::Error(format!("the configuration stays as it was:\n{error}"))
}

pub(super) fn verbosity(call: &mut Call<'_>) -> Outcome {
    let wrong = || Failure::Error(format!("in verbosity number syntax: {}", call.argument));
    let number = call.argument.parse().map_err(|_| wrong())?;
    set_verbosity(call, number)?;
    call.ok()
}

fn set_verbosity(call: &Call<'_>, number: u32) -> Outcome {
    call.context.operator.log_level(Some(unbound::log_level(u64::from(number))))?;
    call.context.set_verbosity(number);
    Ok(())
}

pub(super) fn log_reopen(call: &mut Call<'_>) -> Outcome {
    (call.context.hooks.reopen_log)();
    call.ok()
}

pub(super) fn set_option(call: &mut Call<'_>) -> Outcome {
    let (name, value) = split(call.argument)?;
    let name = name.strip_suffix(':').unwrap_or(name);
    let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    if name == "verbosity" {
        let number = unquoted.parse().map_err(|_| Failure::Error("setting option".to_owned()))?;
        set_verbosity(call, number)?;
        return call.ok();
    }
    let (name, value) = (name.to_owned(), unquoted.to_owned());
    change(
        call,
        |changes| changes.option(&name, &value),
        |error| match error {
            ChangeError::NoEffect => {
                let why = Facts::without_effect(&name).unwrap_or("it does nothing here");
                format!("setting option: {why}")
            }
            ChangeError::Restart => "setting option: it is read from the file alone".to_owned(),
            _ => "setting option".to_owned(),
        },
    )?;
    call.ok()
}

pub(super) fn get_option(call: &mut Call<'_>) -> Outcome {
    let name = call.argument.strip_suffix(':').unwrap_or(call.argument);
    // What is added and removed by commands of their own is not among the values there.
    let facts = if name == INSECURE { call.facts_of_files()? } else { call.facts()? };
    let values = facts.printed(name).ok_or_else(|| Failure::Error("unknown option".to_owned()))?;
    for value in values {
        call.line(value)?;
    }
    Ok(())
}

/// Lays a change over the configuration.
pub(super) fn change(
    call: &Call<'_>,
    make: impl FnOnce(&mut Changes) -> Result<(), ChangeError>,
    say: impl FnOnce(ChangeError) -> String,
) -> Outcome {
    let (mut refused, verbosity) = (None, call.context.verbosity());
    let outcome = call.context.operator.lay_over(|changes| {
        make(changes).map_err(|error| {
            refused = Some(error);
            OperatorError::Argument(String::new())
        })
    });
    match (outcome, refused) {
        (_, Some(error)) => Err(Failure::Error(say(error))),
        (Err(error), None) => Err(error.into()),
        // What is laid over the files says nothing of this.
        (Ok(()), None) => verbosity.map_or(Ok(()), |number| set_verbosity(call, number)),
    }
}
