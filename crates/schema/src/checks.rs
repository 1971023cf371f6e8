//! Whether what records lead to works.

use super::{
    Apply, DAY, Kind, MINUTE, RoleWord, Row, SECOND, Value, duration, row, text, text_or, unset, whole,
    whole_or, word,
};

values::words! {
    /// What a check tries.
    CheckWord {
        /// To connect.
        Tcp = "tcp",
        /// To get a page.
        Http = "http",
        /// To get a page over TLS.
        Https = "https",
    }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "checks",
        kind: Kind::Named("check"),
        default: Some("{}"),
        reason: "nothing is checked",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Health checks of addresses, which `zones[].choose` names. The server itself runs \
               them, at most 16 at a time, and never while a client waits. It checks an address \
               once for all records and zones that check it in the same way.",
        unbound: &[],
    },
    row(
        "checks.*.type",
        word(CheckWord::WORDS),
        "tcp",
        "whatever listens can be connected to",
        "The kind of check: `tcp` connects, `http` and `https` request a page.",
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
        "The host name of the request and of the certificate. Without it, the owner of the record.",
    ),
    row(
        "checks.*.status",
        Kind::List(Value::Text { word: None }),
        "[200-399]",
        "pages and redirections",
        "The statuses of a response that pass: numbers and ranges.",
    ),
    row(
        "checks.*.verify",
        Kind::One(Value::Bool),
        "true",
        "clients do so",
        "Whether `https` verifies the certificate.",
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
