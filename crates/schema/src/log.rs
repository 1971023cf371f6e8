//! What operators see: metrics, the log.

use super::{Kind, Row, Value, row, section, word};

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
    section("log", "The log. Queries are not logged."),
    row(
        "log.format",
        word(LogFormat::WORDS),
        "auto",
        "each place gets what it can show",
        "`text`, `json`, `journald`, or `auto`: journald under systemd, else text.",
    )
    .restart(),
    row(
        "log.level",
        word(LogLevel::WORDS),
        "info",
        "changes of state, and what may need a person",
        "The least important messages to log.",
    )
    .unbound(&["verbosity"]),
];
