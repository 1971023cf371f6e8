//! Lines as Unbound has them: `[SECONDS] NAME[PROCESS:THREAD] LEVEL: TEXT`.

use std::fmt;
use std::time::Duration;

use settings::{Log, LogPlace, LogTime};
use tracing::{Level, Metadata};

use super::output::MONTHS;
use crate::sys;

/// Whence lines with questions are.
const QUESTIONS: &str = "gannet::query";
/// Whence lines with replies are.
const REPLIES: &str = "gannet::reply";

/// Whence lines of the level `notice` are.
const NOTICES: &str = "gannet::notice";
/// Whence lines on what was asked of other servers are.
pub(super) const RESOLUTIONS: &str = "gannet::resolution";

/// How such lines look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    identity: String,
    time: LogTime,
    /// Whether lines about queries say so in the place of their level.
    tags_queries: bool,
    /// The system's log says itself when something was, and of whom.
    is_bare: bool,
}

impl Style {
    pub(super) fn of(log: &Log) -> Self {
        Self {
            identity: log.identity.clone(),
            time: log.time,
            tags_queries: log.tags_queries,
            is_bare: log.place == LogPlace::Syslog,
        }
    }

    /// Writes what stands before the text of an event.
    pub(super) fn write(
        &self,
        out: &mut impl fmt::Write,
        now: Duration,
        metadata: &Metadata<'_>,
    ) -> fmt::Result {
        let word = match metadata.target() {
            QUESTIONS if self.tags_queries => "query",
            REPLIES if self.tags_queries => "reply",
            NOTICES => "notice",
            RESOLUTIONS => "info",
            _ => level(*metadata.level()),
        };
        self.begin(out, now, word)
    }

    /// Writes what stands before a text of this importance.
    pub(super) fn begin(&self, out: &mut impl fmt::Write, now: Duration, word: &str) -> fmt::Result {
        if !self.is_bare {
            self.write_time(out, now)?;
            out.write_str(&self.identity)?;
        }
        write!(out, "[{}:{}] {word}: ", std::process::id(), thread())
    }

    fn write_time(&self, out: &mut impl fmt::Write, now: Duration) -> fmt::Result {
        let time = sys::local_time(now.as_secs());
        match self.time {
            LogTime::Seconds => write!(out, "[{}] ", now.as_secs()),
            LogTime::Ascii => {
                let month = usize::try_from(time.month).ok().and_then(|at| MONTHS.get(at)).unwrap_or(&"Jan");
                write!(out, "{month} {:02} {:02}:{:02}:{:02} ", time.day, time.hour, time.minute, time.second)
            }
            LogTime::Iso => {
                let (sign, minutes) =
                    if time.offset_s < 0 { ('-', -time.offset_s / 60) } else { ('+', time.offset_s / 60) };
                write!(
                    out,
                    "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}{sign}{:02}:{:02} ",
                    time.year,
                    time.month + 1,
                    time.day,
                    time.hour,
                    time.minute,
                    time.second,
                    now.subsec_millis(),
                    minutes / 60,
                    minutes % 60
                )
            }
        }
    }
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        _ => "debug",
    }
}

/// Returns the number of the thread: that of the worker, or zero.
fn thread() -> u32 {
    let current = std::thread::current();
    current.name().and_then(|name| name.strip_prefix("worker-")?.parse().ok()).unwrap_or(0)
}
