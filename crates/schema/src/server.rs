//! The process and how it presents itself; other files of the configuration.

use super::{Kind, MINUTE, Row, Value, duration, row, section, text_or, unset, whole_or, word};

values::words! {
    /// Whether workers poll for the next query before they sleep (busy polling).
    StayAwake {
        /// While queries come faster for it, within a budget.
        Auto = "auto",
        /// As long as it pays, whatever it costs.
        True = "true",
        /// Never.
        False = "false",
    }
}

values::words! {
    /// Whether the server goes into the background.
    DaemonizeWord {
        /// As the program does by whose name it is called.
        Auto = "auto",
        /// Yes.
        Yes = "true",
        /// No.
        No = "false",
    }
}

pub(super) const ROWS: &[Row] = &[
    unset(
        "include",
        Kind::List(Value::Glob),
        "Other files to read, relative to this one; `*` and `?` match within one directory. Their settings are put \
         beside those of this file; what two files both say is an error.",
    )
    .unbound(&["include", "include-toplevel"]),
    section("server", "The process and how it presents itself."),
    row(
        "server.workers",
        whole_or(1, 1024, "auto"),
        "auto",
        "one for each processor that the process may use",
        "Threads that answer queries. Each has its own sockets and does everything for its queries. Of two to four, as many \
         get datagrams as the load needs; of more, each has its share from the start.",
    )
    .restart()
    .unbound(&["num-threads"]),
    row(
        "server.stay-awake",
        Kind::One(Value::Word(StayAwake::WORDS)),
        "auto",
        "busy polling helps clients that ask one thing after the other, and nobody else",
        "Whether a worker that has just answered a few queries polls for the next one for up to 50 µs before it sleeps \
         (busy polling). Waking a processor takes longer than an answer, so a client that asks again as soon as it has \
         its answer is served sooner. `auto` compares: it polls only while queries come faster for it, for at most a \
         quarter of the time that passes and no longer than answering takes, and not at all where the control group \
         has a CPU quota (`cpu.max`), where workers outnumber processors, or when other threads want the processor. When \
         three quarters of a quota are used, workers let queries gather for some 100 µs before they answer them, so that \
         the server is not stopped for the rest of the period. \
         `true` polls without a budget, as long as at least every other span finds a query: a worker with some 20,000 \
         queries a second or more then takes a whole processor. `false` never polls. What each takes of a core and gains in \
         latency, from 500 to 80,000 queries a second and with half a processor, is in \
         `docs/benchmarks` (*At a rate*).",
    )
    .restart(),
    row(
        "server.user",
        text_or("auto"),
        "auto",
        "the user `gannet` if the server is started as root and that user exists, else nobody else",
        "The user to become once the sockets are open. `root` stays root. In the place of Unbound it is `unbound`.",
    )
    .restart()
    .unbound(&["username"]),
    row(
        "server.state-directory",
        Kind::One(Value::Path),
        "/var/lib/gannet",
        "where packages put the state of services",
        "The directory of the server's state: zones, keys, lists, caches, recorded queries (see \
         `docs/manual/state.md`). It also has the files that settings name without a directory. In the place of Unbound it \
         is `gannet` below its `directory`, or `/var/lib/unbound/gannet`.",
    )
    .restart()
    .unbound(&["directory"]),
    row(
        "server.daemonize",
        word(DaemonizeWord::WORDS),
        "auto",
        "service managers and containers want the server in the foreground",
        "Whether the server goes into the background once clients are answered, as a daemon: the process that was started \
         ends with 0 then, or with 1 and the reason if the start fails. `auto` is `false`; for the program `unbound` \
         without `-d` it is `true`. Where a service manager waits for the process (`NOTIFY_SOCKET`) or gave it sockets \
         (`LISTEN_PID`), it stays in the foreground. A log that would go to standard error goes to the system's log.",
    )
    .restart()
    .unbound(&["do-daemonize"]),
    unset(
        "server.pid-file",
        Kind::One(Value::Path),
        "A file that has the number of the process for as long as it runs, for programs that look for it there. Service \
         managers need none.",
    )
    .restart()
    .unbound(&["pidfile"]),
    row(
        "server.shutdown-timeout",
        duration(0, 5 * MINUTE),
        "5s",
        "as long as a client waits for a reply",
        "How long a stopping server goes on with the queries that wait for an upstream.",
    )
    .restart(),
    row(
        "server.resolvers",
        Kind::List(Value::Socket { port: 53, word: Some("system") }),
        "[system]",
        "whoever the machine itself would ask",
        "Who is asked for the addresses of web servers, for lists and for effects of the type `http`: `system`, or DNS servers. \
         Name some where the machine's own resolver is this server: it then needs nobody else, and not itself, to fetch \
         its lists.",
    ),
    row(
        "server.minimal-any",
        Kind::One(Value::Bool),
        "true",
        "what ANY gets is large, and programs that ask it need something else",
        "Whether the type ANY gets one HINFO record (RFC 8482 §4.2), and nobody is asked. With `false` it goes through the \
         policy as other types do: `recurse` asks the zone for all that it has of the name. Zones that are served here \
         answer it in either case.",
    ),
    row(
        "server.fill-truncated",
        Kind::One(Value::Bool),
        "false",
        "RFC 2181 §9: clients ask again over TCP, and small replies are no use to who forges addresses",
        "Whether a reply that is too large for the client has as many whole RRsets as fit. With `false` it has none. TC is set in \
         either case; with `true` not if only records of the additional section are left out.",
    ),
    row(
        "server.rotate",
        Kind::One(Value::Bool),
        "false",
        "answers that are always the same are easier to compare",
        "Whether the records of one type in an answer from `zones` take turns in being the first, and the addresses in \
         other answers from memory: from caches, `local`, `hosts` and records of the policy. A policy that sorts addresses has its way.",
    )
    .unbound(&["rrset-roundrobin"]),
    row(
        "server.version",
        text_or("hidden"),
        "hidden",
        "reveals nothing to strangers",
        "The answer to `version.bind` and `version.server` in class CHAOS; `hidden` refuses.",
    )
    .unbound(&["version", "hide-version"]),
    row(
        "server.hostname",
        text_or("hidden"),
        "hidden",
        "reveals nothing to strangers",
        "The answer to `hostname.bind` in class CHAOS: a text, or `host` for the name of this machine; `hidden` refuses.",
    )
    .unbound(&["identity", "hide-identity"]),
    row(
        "server.identity",
        text_or("hidden"),
        "hidden",
        "reveals nothing to strangers",
        "The answer to `id.server` in class CHAOS: a text, or `host` for the name of this machine; `hidden` refuses.",
    )
    .unbound(&["identity", "hide-identity"]),
    row(
        "server.trust-anchors",
        Kind::One(Value::Bool),
        "false",
        "reveals nothing to strangers",
        "Whether `trustanchor.unbound` in class CHAOS is answered: each zone that resolvers trust, with the tags of its keys as \
         they were when the configuration was read.",
    )
    .unbound(&["hide-trustanchor"]),
    row(
        "server.nsid",
        text_or("identity"),
        "identity",
        "one name for a server is enough",
        "The NSID (RFC 5001), a text or `hex:` and octets in hexadecimal: `hex:c0ffee`. `identity` is that of `server.identity`; \
         with `hidden` there is none.",
    )
    .unbound(&["nsid"]),
];
