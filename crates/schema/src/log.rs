//! What operators see: metrics, the log.

use super::{Kind, Row, Value, row, section, text, word};

values::words! {
    /// How log lines look.
    LogFormat {
        /// By where they go.
        Auto = "auto",
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
        /// The journal's own protocol.
        Journald = "journald",
        /// As Unbound has them.
        Unbound = "unbound",
    }
}

values::words! {
    /// How lines in the form of Unbound say when something was.
    LogTime {
        /// Seconds since 1970.
        Seconds = "seconds",
        /// Month, day and time of day, of the local time zone.
        Ascii = "ascii",
        /// As ISO 8601 has it, with milliseconds.
        Iso = "iso",
    }
}

values::words! {
    /// The least important messages to log.
    LogLevel {
        /// What needs a person.
        Error = "error",
        /// What may need one.
        Warn = "warn",
        /// Changes of state.
        Info = "info",
        /// For finding mistakes.
        Debug = "debug",
        /// Everything, also what happens for every query.
        Trace = "trace",
    }
}

pub(super) const ROWS: &[Row] = &[
    section("metrics", "The server's numbers for Prometheus (see metrics.md)."),
    row(
        "metrics.listen",
        Kind::List(Value::Socket { port: 9153, word: None }),
        "[]",
        "numbers are nobody else's business unless somebody collects them",
        "Where they can be fetched, with `GET /metrics` over HTTP. Everybody who reaches the address may read them, so it is best \
         one of this machine. `gannet stats --prometheus` prints the same without it.",
    )
    .restart(),
    section("log", "The log. Queries are logged where the policy says so (`log`, `query-lines`, `record`)."),
    row(
        "log.format",
        word(LogFormat::WORDS),
        "auto",
        "each place gets what it can show",
        "`text`, `json`, `journald`, `unbound` (`[SECONDS] NAME[PROCESS:THREAD] LEVEL: TEXT`), or `auto`: journald under \
         systemd, else text.",
    )
    .restart(),
    row(
        "log.to",
        text(),
        "stderr",
        "whoever starts the server sees it, and systemd keeps it",
        "`stderr`, `syslog`, or the path of a file, which is opened again on SIGHUP, so that another program can move it away.",
    )
    .restart()
    .unbound(&["logfile", "use-syslog"]),
    row(
        "log.identity",
        text(),
        "gannet",
        "the name of the program",
        "The name in lines of the format `unbound`, and in those for syslog.",
    )
    .restart()
    .unbound(&["log-identity"]),
    row(
        "log.time",
        word(LogTime::WORDS),
        "seconds",
        "as that program has it",
        "How lines of the format `unbound` say when something was: `seconds` since 1970, `ascii` (`Nov 26 16:20:00`) or `iso`.",
    )
    .restart()
    .unbound(&["log-time-ascii", "log-time-iso"]),
    row(
        "log.tag-queries",
        Kind::One(Value::Bool),
        "false",
        "as that program has it",
        "Whether lines of `query-lines` have the words `query` and `reply` in the place of the level, in the format `unbound`.",
    )
    .restart()
    .unbound(&["log-tag-queryreply"]),
    row(
        "log.level",
        word(LogLevel::WORDS),
        "info",
        "changes of state, and what may need a person",
        "The least important messages to log.",
    )
    .unbound(&["verbosity"]),
];
