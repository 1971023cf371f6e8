//! What the audit log has of commands.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::channel::Context;

/// Who gave the order: the channel knows no more.
pub(crate) const SOURCE: &str = "unbound-control";
/// Octets of what came of a command: refusals quote lines of lists.
const OUTCOME_OCTETS_MAX: usize = 200;
/// How long commands that forget something are counted.
const PERIOD: Duration = Duration::from_secs(60);

/// Returns what the audit log has of what stands behind the name of a command: no secret.
pub(crate) fn argument<'a>(name: &str, argument: &'a str) -> &'a str {
    match name {
        "add_cookie_secret" => "",
        // The value may be a secret, and a colon behind the name is left to whoever writes it.
        "set_option" => argument.split([':', ' ', '\t']).next().unwrap_or_default(),
        _ => argument,
    }
}

/// Writes a row.
pub(crate) fn write(context: &Context, (name, on): (&str, &str), outcome: &str) {
    context.operator.audit_from(SOURCE, (name, on), &shortened(outcome));
}

/// Returns the beginning of a text, and says if there is more.
fn shortened(text: &str) -> String {
    if text.len() <= OUTCOME_OCTETS_MAX {
        return text.to_owned();
    }
    let end = (0..=OUTCOME_OCTETS_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let mut short = text.get(..end).unwrap_or_default().to_owned();
    let _ = write!(short, "… ({} octets)", text.len());
    short
}

/// Whether a command only forgets what the server knows: scripts give those by the thousand.
pub(crate) fn is_flush(name: &str) -> bool {
    name.starts_with("flush")
}

/// Commands that forget something: the first of each minute has a row, the others are counted.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    /// The minute, since 1970, and how many more there were in it.
    now: Mutex<(u64, u64)>,
}

/// What becomes of one of them.
#[derive(Debug, PartialEq, Eq)]
enum Noted {
    /// It has a row; this many of an earlier minute have none yet.
    Row { earlier: u64 },
    /// It is counted, as the first of its minute.
    CountedFirst,
    /// It is counted.
    Counted,
}

impl Flushes {
    fn note(&self, minute: u64) -> Noted {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.0 != minute {
            let (_, earlier) = std::mem::replace(&mut *now, (minute, 0));
            return Noted::Row { earlier };
        }
        now.1 += 1;
        if now.1 == 1 { Noted::CountedFirst } else { Noted::Counted }
    }

    /// Returns how many were counted and have no row, and begins anew.
    fn take(&self) -> u64 {
        std::mem::take(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
}

/// Writes the row of a command that forgets something, or counts it. Called on a thread of tokio.
pub(crate) fn flushed(context: &Arc<Context>, words: (&str, &str), outcome: &str) {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match context.flushes.note(since_1970.as_secs() / PERIOD.as_secs()) {
        Noted::Row { earlier } => {
            write_count(context, earlier);
            write(context, words, outcome);
        }
        Noted::CountedFirst => {
            let context = Arc::downgrade(context);
            tokio::spawn(async move {
                tokio::time::sleep(PERIOD).await;
                let written = tokio::task::spawn_blocking(move || {
                    if let Some(context) = context.upgrade() {
                        write_counted(&context);
                    }
                });
                drop(written.await);
            });
        }
        Noted::Counted => {}
    }
}

/// Writes a row of those that were counted so far.
pub(crate) fn write_counted(context: &Context) {
    write_count(context, context.flushes.take());
}

fn write_count(context: &Context, count: u64) {
    if count > 0 {
        write(context, ("flush", ""), &format!("done: {count} more commands of flush within a minute"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_an_option_is_kept() {
        for given in
            ["cookie-secret: 0001", "cookie-secret 0001", "cookie-secret:0001", "cookie-secret\t0001"]
        {
            assert_eq!(argument("set_option", given), "cookie-secret", "{given}");
        }
        assert_eq!(argument("add_cookie_secret", "0001"), "");
        assert_eq!(argument("local_zone", "a.example static"), "a.example static");
    }

    #[test]
    fn what_came_of_a_command_has_a_bound() {
        assert_eq!(shortened("done"), "done");
        let long = format!("a{}", "é".repeat(40_000));
        assert_eq!(shortened(&long), format!("a{}… (80001 octets)", "é".repeat(99)));
    }

    #[test]
    fn the_first_flush_of_a_minute_has_a_row_and_the_others_are_counted() {
        let flushes = Flushes::default();
        assert_eq!(flushes.note(7), Noted::Row { earlier: 0 });
        assert_eq!(flushes.note(7), Noted::CountedFirst);
        assert_eq!(flushes.note(7), Noted::Counted);
        assert_eq!(flushes.note(8), Noted::Row { earlier: 2 });
        assert_eq!(flushes.note(8), Noted::CountedFirst);
        assert_eq!(flushes.take(), 1);
        assert_eq!(flushes.take(), 0);
    }
}
