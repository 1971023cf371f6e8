//! Whether what records lead to works.

use super::{
    Apply, DAY, Kind, MINUTE, Row, SECOND, Value, duration, row, text, text_or, unset, whole, whole_or, word,
};
use crate::settings::CheckWord;

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "checks",
        kind: Kind::Named("check"),
        default: Some("{}"),
        reason: "nothing is checked",
        apply: Apply::Reload,
        text: "How it is checked whether what records lead to works: checks that `zones[].choose` names. They are made by the server \
               itself, at most 16 at a time, and never while a client waits. An address that many records lead to, of whatever zones, is \
               tried once for all that are checked alike.",
        unbound: &[],
    },
    row(
        "checks.*.type",
        word(CheckWord::WORDS),
        "tcp",
        "whatever listens can be connected to",
        "What is tried: `tcp` connects, `http` and `https` get a page.",
    ),
    row(
        "checks.*.port",
        whole_or(1, 65_535, "auto"),
        "auto",
        "pages are where they always are",
        "The port; `auto` is 80 for `http` and 443 for `https`. `tcp` needs one.",
    ),
    row("checks.*.path", text(), "/", "every server has it", "The path of the page."),
    unset(
        "checks.*.host",
        text(),
        "The name of the host that the page is asked from, which the certificate must be for. Without it, the owner of the record.",
    ),
    row(
        "checks.*.status",
        Kind::List(Value::Text { word: None }),
        "[200-399]",
        "pages and redirections",
        "What the status of the response may be: numbers and ranges.",
    ),
    row(
        "checks.*.verify",
        Kind::One(Value::Bool),
        "true",
        "clients do so",
        "Whether the certificate must be right for `https`.",
    ),
    row(
        "checks.*.roots",
        text_or("mozilla"),
        "mozilla",
        "pages are for everybody",
        "The authorities that may vouch for the server with `https`: `mozilla`, or a file of certificates (PEM), such as your own \
         authority's. It is read with the configuration.",
    ),
    row(
        "checks.*.interval",
        duration(SECOND, DAY),
        "10s",
        "soon enough for most",
        "How often it is checked.",
    ),
    row("checks.*.timeout", duration(100, MINUTE), "2s", "slower is broken", "How long a check may take."),
    row(
        "checks.*.rise",
        whole(1, 100),
        "2",
        "one success may be chance",
        "How often in a row it must pass before the record comes back.",
    ),
    row(
        "checks.*.fall",
        whole(1, 100),
        "3",
        "one packet may be lost",
        "How often in a row it must fail before the record is left out.",
    ),
];
