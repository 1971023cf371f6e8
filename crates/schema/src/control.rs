//! Channels on which operators give orders, beside the control socket.

use plan::jobs::EventKind;

use super::{Apply, Kind, Row, Value, duration, duration_or, row, section, text_or, unset, word};
use super::{DAY, SECOND};

values::words! {
    /// Which settings may be changed while the server runs.
    ChangesWord {
        /// All.
        Allowed = "allowed",
        /// Those that are data.
        Data = "data",
        /// None.
        Never = "never",
    }
}

values::words! {
    /// What somebody may do; each may do what those before it may.
    RoleWord {
        /// Look at everything but secrets.
        Viewer = "viewer",
        /// Change what dynamic sets hold, forget answers.
        Helper = "helper",
        /// Change settings that are data, look after lists and zones, reload.
        Operator = "operator",
        /// Everything.
        Admin = "admin",
    }
}

pub(super) const ROWS: &[Row] = &[
    section(
        "control",
        "Who changes what, and channels for orders beside the control socket of `gannet` itself.",
    ),
    row(
        "control.changes",
        word(ChangesWord::WORDS),
        "allowed",
        "who may use the control socket may do everything",
        "Which settings may be changed while the server runs (`gannet config set`): all (`allowed`), those that are \
         data (`data`: `sets`, `local`, `hosts`, `records`, `zones`, `zone-directories`), or none (`never`). Changes that \
         were made before stay as they are, and can still be taken back. Members of dynamic sets and zones that \
         are added by command are no settings.",
    ),
    row(
        "control.locked",
        Kind::List(Value::Text { word: None }),
        "[]",
        "no setting is more dangerous than another to everybody",
        "Settings that are not changed while the server runs, with all below them: `policy.main`, `listen`.",
    ),
    row(
        "control.listen",
        Kind::List(Value::Socket { port: 8533, word: None }),
        "[127.0.0.1, \"::1\"]",
        "this machine alone, where strangers get nothing but a page to log in",
        "Where the HTTP API can be reached besides the control socket (see api.md), with port 8533 unless they say \
         otherwise; nowhere with `[]`. Requests show a token (`gannet token add`) or a session of a user (`gannet \
         users add`, see users.md). Addresses of this machine alone take HTTP and HTTPS, all others HTTPS, with the \
         certificates of `tls.certificates`. An address that is written here and cannot be had is an error; one of \
         the default is a warning. In the place of Unbound there is none by default.",
    )
    .restart(),
    row(
        "control.names",
        Kind::List(Value::Text { word: None }),
        "[]",
        "an address, `localhost` and the names of its certificates are enough for most",
        "Further names that the HTTP API is reached by. A request for another host is refused, so that no web page \
         can have its own name lead here (DNS rebinding).",
    ),
    row(
        "control.socket-group",
        text_or("none"),
        "none",
        "who may control a server should be chosen",
        "The group whose members may use the control socket, besides root and the user that the server runs as.",
    )
    .restart(),
    row(
        "control.socket-role",
        word(RoleWord::WORDS),
        "viewer",
        "looking harms nobody",
        "What the members of `control.socket-group` may do: `viewer`, `helper`, `operator` or `admin` (see api.md).",
    )
    .restart(),
    row(
        "control.totp-roles",
        Kind::List(Value::Word(RoleWord::WORDS)),
        "[]",
        "who has no device for codes is not to be kept out",
        "Roles whose users have to show a one-time code besides their password to log in (`gannet users totp`, see \
         users.md). Users of other roles need one if they have set codes up. Tokens and links of `gannet login` need \
         none.",
    ),
    section(
        "control.oidc",
        "Who people are, as a provider of OpenID Connect proves: they log in to the HTTP API there (see users.md).",
    ),
    unset(
        "control.oidc.issuer",
        Kind::One(Value::Text { word: None }),
        "The provider: the URL that its description at `/.well-known/openid-configuration` says as `issuer`. Without \
         it nobody logs in elsewhere.",
    ),
    unset(
        "control.oidc.client-id",
        Kind::One(Value::Text { word: None }),
        "What the provider knows this server as. Needed with `issuer`.",
    ),
    unset(
        "control.oidc.client-secret-file",
        Kind::One(Value::Path),
        "A file with the secret that this server proves itself to the provider with. Without one it is a public client.",
    ),
    unset(
        "control.oidc.url",
        Kind::One(Value::Text { word: None }),
        "The URL that browsers find this server at, such as `https://dns.example.org:8533`: the provider sends people \
         back to `/login/oidc` below it. Needed with `issuer`.",
    ),
    unset(
        "control.oidc.ca",
        Kind::One(Value::Path),
        "Certificates of authorities that the provider's has to be signed by, in PEM form, in place of those that web \
         servers are believed by.",
    ),
    row(
        "control.oidc.scopes",
        Kind::List(Value::Text { word: None }),
        "[openid, profile]",
        "names are in `profile`; groups are where each provider has them",
        "What is asked of the provider.",
    ),
    row(
        "control.oidc.name-claim",
        Kind::One(Value::Text { word: None }),
        "preferred_username",
        "what people are called where they log in",
        "The claim with the name that stands in the history.",
    ),
    row(
        "control.oidc.groups-claim",
        Kind::One(Value::Text { word: None }),
        "groups",
        "most providers call it so",
        "The claim with the groups of somebody.",
    ),
    Row {
        path: "control.oidc.groups",
        kind: Kind::Named("group"),
        default: Some("{}"),
        reason: "nobody elsewhere is to be somebody here by default",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Groups and the role that each has: `dns-admins: admin`. Who is in several has the highest of them, who is \
               in none is not let in.",
        unbound: &[],
    },
    unset("control.oidc.groups.*", Kind::One(Value::Word(RoleWord::WORDS)), "The role of the group."),
    section("control.audit", "The audit log: who had what done (see audit.md)."),
    unset(
        "control.audit.key",
        Kind::One(Value::Path),
        "A file with the first key of the audit log, 64 hexadecimal digits (`openssl rand -hex 32`), in place of one that \
         the server makes: from outside of its directory, such as a credential of systemd \
         (`${CREDENTIALS_DIRECTORY}/audit.key`). It counts for a log that has no rows yet. The user that the server \
         runs as has to be able to read it.",
    )
    .restart(),
    row(
        "control.audit.sinks",
        Kind::List(Value::Text { word: None }),
        "[]",
        "the log has them, too, and may be kept on another machine",
        "Who is given checkpoints of the audit log, after each 256 rows and each hour in which there were new ones: \
         `syslog`, paths of files, to which lines are added, and URLs, which get JSON (`{\"checkpoint\": \"…\"}`) by POST. \
         Nobody waits for them; a checkpoint that cannot be given is given later, at most 64 for each.",
    ),
    Row {
        path: "control.webhooks",
        kind: Kind::Named("webhook"),
        default: Some("{}"),
        reason: "who is to hear of the server is for its operator to say",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Who is sent events of the server (see api.md): each as JSON by POST, signed as the Standard Webhooks \
               specification has it. Nobody waits for them.",
        unbound: &[],
    },
    unset(
        "control.webhooks.*.url",
        Kind::One(Value::Text { word: None }),
        "Where events go: a URL of HTTPS, one of HTTP at an address of this machine, or `unix:` and the path of a \
         socket. Needed. Redirections are not followed.",
    ),
    row(
        "control.webhooks.*.kinds",
        Kind::List(Value::Word(EventKind::WORDS)),
        "[]",
        "a receiver can leave out what it does not want",
        "The kinds of events that are sent; all when empty.",
    ),
    unset(
        "control.webhooks.*.secret",
        Kind::One(Value::Password),
        "What events are signed with (HMAC-SHA-256): `whsec_` and 24 to 64 octets in base64, or `file:` and a path. \
         Needed.",
    ),
    unset(
        "control.webhooks.*.previous-secret",
        Kind::One(Value::Password),
        "The secret before, written as `secret`. Events are signed with both, so that the receiver may change to the new \
         one at any time; take it out when it has.",
    ),
    unset(
        "control.webhooks.*.ca",
        Kind::One(Value::Path),
        "Certificates of authorities that the receiver's has to be signed by, in PEM form, in place of those that web \
         servers are believed by.",
    ),
    row(
        "control.webhooks.*.patience",
        duration(SECOND, 60 * SECOND),
        "10s",
        "a receiver should take an event and work later",
        "How long the receiver may take for one event.",
    ),
    row(
        "control.webhooks.*.retry-for",
        duration(SECOND, DAY),
        "1h",
        "long enough for a restart of the receiver",
        "How long an event is sent again that the receiver did not take (status 2xx), with pauses that grow from one \
         second to ten minutes. Then it is given up. 256 events wait for one receiver; what finds no room is dropped.",
    ),
    section(
        "control.unbound",
        "The channel of `unbound-control`, for programs that know that one (see unbound.md).",
    ),
    row(
        "control.unbound.listen",
        Kind::List(Value::Text { word: None }),
        "[]",
        "who reaches it may do everything",
        "Where it can be reached: paths of Unix sockets, or addresses, with port 8953 unless they say \
         otherwise. A network device, such as `lo` or `lo@953`, is all addresses that it has when the server starts.",
    )
    .restart()
    .unbound(&["control-enable", "control-interface", "control-port"]),
    row(
        "control.unbound.certificates",
        Kind::One(Value::Bool),
        "true",
        "an address can be reached by every user of the machine",
        "Whether who comes to an address has to speak TLS and show a certificate that \
         `control.unbound.certificate` has signed. Without it only loopback addresses may be listened on. \
         On a Unix socket the mode of its file decides.",
    )
    .restart()
    .unbound(&["control-use-cert"]),
    unset(
        "control.unbound.certificate",
        Kind::One(Value::Path),
        "The certificate of the server, in PEM form; `unbound-control-setup` makes it. Needed where \
         addresses are listened on with certificates.",
    )
    .restart()
    .unbound(&["server-cert-file"]),
    unset("control.unbound.key", Kind::One(Value::Path), "Its key, in PEM form.")
        .restart()
        .unbound(&["server-key-file"]),
    section("control.unbound.statistics", "What its commands `stats` and `stats_noreset` show."),
    row(
        "control.unbound.statistics.extended",
        Kind::One(Value::Bool),
        "false",
        "as that program has it",
        "Whether queries by type, replies by code, the histogram, and the sizes of tables are shown.",
    )
    .unbound(&["extended-statistics"]),
    row(
        "control.unbound.statistics.cumulative",
        Kind::One(Value::Bool),
        "false",
        "as that program has it",
        "Whether `stats` goes on counting, in place of counting from zero. The numbers of \
         `gannet stats` and of `metrics.listen` always go on.",
    )
    .unbound(&["statistics-cumulative"]),
    row(
        "control.unbound.statistics.inhibit-zero",
        Kind::One(Value::Bool),
        "true",
        "as that program has it",
        "Whether response codes that did not occur, and the like, are left out.",
    )
    .unbound(&["statistics-inhibit-zero"]),
    row(
        "control.unbound.statistics.interval",
        duration_or(SECOND, 365 * DAY, "off"),
        "off",
        "who wants numbers asks for them",
        "How often the log has a line about each worker, and one about all of them.",
    )
    .unbound(&["statistics-interval"]),
];
