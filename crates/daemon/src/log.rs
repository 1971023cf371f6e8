//! Logs: short lines for a terminal, dated lines for a file, JSON on request, priorities for the
//! journal, lines as Unbound has them.

mod output;
mod theirs;

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use commands::out;
pub(crate) use output::Output;
use server::LogLevelHandle;
use settings::{Log, LogFormat, LogPlace};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, reload};

use crate::sys;

/// What a log line looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `12:34:56 message field=value`, local time.
    Terminal {
        /// Whether severities are coloured.
        is_coloured: bool,
    },
    /// `2026-01-31T12:34:56.789Z INFO message field=value`.
    Text,
    /// One JSON object.
    Json,
    /// `<6>message field=value`: the journal reads the priority and knows the time.
    Journal,
    /// `[1770000000] unbound[17:0] info: message field=value`.
    Unbound(theirs::Style),
}

impl Format {
    /// Returns the format that the settings want.
    pub(crate) fn of(log: &Log) -> Self {
        match log.format {
            LogFormat::Auto if log.place == LogPlace::Stderr => Self::detect(),
            LogFormat::Auto | LogFormat::Text if log.place != LogPlace::Stderr => Self::Text,
            LogFormat::Auto | LogFormat::Text => Self::text(),
            LogFormat::Json => Self::Json,
            LogFormat::Journald => Self::Journal,
            LogFormat::Unbound => Self::Unbound(theirs::Style::of(log)),
        }
    }

    /// Returns the format for where standard error leads.
    fn detect() -> Self {
        if leads_to_journal() { Self::Journal } else { Self::text() }
    }

    /// Returns the text format for where standard error leads.
    fn text() -> Self {
        if io::stderr().is_terminal() {
            Self::Terminal { is_coloured: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
        } else {
            Self::Text
        }
    }
}

/// Returns whether standard error is the stream that systemd opened for us (systemd.exec(5),
/// `$JOURNAL_STREAM`).
fn leads_to_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(there) = std::fs::metadata("/dev/stderr") else { return false };
    stream == format!("{}:{}", there.dev(), there.ino())
}

/// Starts logging. Called once.
pub(crate) fn start(format: Format, level: LevelFilter, output: &Arc<Output>) -> LogLevelHandle {
    let (filter, handle) = reload::Layer::new(level);
    let output = Arc::clone(output);
    let lines = tracing_subscriber::fmt::layer().with_writer(move || output.writer()).with_ansi(false);
    let has_resolutions = matches!(format, Format::Unbound(_));
    let layer = match format {
        Format::Json => {
            lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
        }
        Format::Terminal { .. } | Format::Text | Format::Journal | Format::Unbound(_) => {
            lines.event_format(Lines(format)).boxed()
        }
    };
    // One above the other, and not `filter.and_then(layer)`: that hides the filter's level from the
    // macros, and each of the many that libraries call for every query would then ask the filter. A
    // second start keeps the first subscriber; only tests in one process could do that.
    let ours = filter_fn(move |metadata| {
        let target = metadata.target();
        (*metadata.level() > Level::INFO || !is_library(target))
            && !shows_requests(target)
            && (has_resolutions || target != theirs::RESOLUTIONS)
    });
    let _ = tracing_subscriber::registry().with(filter).with(ours).with(layer).try_init();
    LogLevelHandle::new(handle)
}

/// Writes a line that is there whatever is logged, as service managers and tests wait for it.
pub(crate) fn announce(log: &Log, output: &Arc<Output>, text: &str) {
    use io::Write as _;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut line = String::new();
    let _ = theirs::Style::of(log).begin(&mut line, now, "info");
    let _ = writeln!(line, "{text}");
    let _ = output.writer().write_all(line.as_bytes());
}

/// Returns whether an event is a library's. Those tell of what single strangers send, for which an
/// operator can do nothing and with which a stranger could fill the log: only who looks for
/// mistakes (`debug`, `trace`) sees some of them.
fn is_library(target: &str) -> bool {
    const LIBRARIES: [&str; 10] =
        ["h2", "h3", "h3_quinn", "hyper", "hyper_util", "mio", "quinn", "quinn_proto", "quinn_udp", "rustls"];
    target.split("::").next().is_some_and(|first| LIBRARIES.contains(&first))
}

/// Returns whether an event is of the library that sends HTTP requests. It logs their URLs, which
/// may have tokens in them: what becomes of a request is logged by whoever made it.
fn shows_requests(target: &str) -> bool {
    matches!(target.split("::").next(), Some("ureq" | "ureq_proto"))
}

/// Writes events as lines in every format but JSON.
struct Lines(Format);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut line = Line::default();
        event.record(&mut line);
        let level = *event.metadata().level();
        match &self.0 {
            Format::Unbound(style) => style.write(&mut writer, now, event.metadata())?,
            Format::Journal => write!(writer, "<{}>", priority(level))?,
            Format::Terminal { is_coloured } => {
                let sys::LocalTime { hour, minute, second, .. } = sys::local_time(now.as_secs());
                write!(writer, "{hour:02}:{minute:02}:{second:02} ")?;
                if let Some((word, colour)) = severity(level) {
                    if *is_coloured {
                        write!(writer, "\x1b[{colour}m{word}\x1b[0m: ")?;
                    } else {
                        write!(writer, "{word}: ")?;
                    }
                }
            }
            Format::Text | Format::Json => {
                write_date(&mut writer, now.as_secs())?;
                write!(writer, ".{:03}Z {level:<5} ", now.subsec_millis())?;
            }
        }
        writeln!(writer, "{}{}", line.message, line.fields)
    }
}

/// The syslog priority that the journal understands (sd-daemon(3)).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

/// The word before a terminal line and its colour; changes of state need none.
fn severity(level: Level) -> Option<(&'static str, u8)> {
    match level {
        Level::ERROR => Some(("error", 31)),
        Level::WARN => Some(("warning", 33)),
        Level::INFO => None,
        Level::DEBUG => Some(("debug", 2)),
        _ => Some(("trace", 2)),
    }
}

/// Writes `YYYY-MM-DDTHH:MM:SS` (proleptic Gregorian calendar, UTC).
fn write_date(out: &mut impl fmt::Write, unix_seconds: u64) -> fmt::Result {
    let of_day = unix_seconds % 86_400;
    let (year, month, day) = wire::calendar::date_at(unix_seconds);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// An event's message and its other fields, control characters escaped.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            out::push_escaped(&mut self.message, value);
        } else if value.is_empty() || value.contains([' ', '"', '=']) {
            let _ = write!(self.fields, " {}={value:?}", field.name());
        } else {
            let _ = write!(self.fields, " {}=", field.name());
            out::push_escaped(&mut self.fields, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_log_leaves_out_is_decided_before_anything_is_asked() {
        let log_level = start(Format::Text, LevelFilter::WARN, &Arc::default());
        assert_eq!(LevelFilter::current(), LevelFilter::WARN);
        log_level.set(LevelFilter::INFO);
        assert_eq!(LevelFilter::current(), LevelFilter::INFO);
    }

    fn check(unix_seconds: u64, expect: &str) {
        let mut text = String::new();
        write_date(&mut text, unix_seconds).unwrap();
        assert_eq!(text, expect);
    }

    #[test]
    fn dates_follow_the_calendar() {
        check(0, "1970-01-01T00:00:00");
        check(951_827_696, "2000-02-29T12:34:56");
        check(1_772_323_199, "2026-02-28T23:59:59");
        check(1_772_323_200, "2026-03-01T00:00:00");
        check(4_107_542_400, "2100-03-01T00:00:00");
    }
}
