//! Sets of names and of addresses.

use super::{
    Apply, DAY, HOUR, Kind, MINUTE, RoleWord, Row, SECOND, Value, duration, duration_or, row, section, unset,
    whole, word,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "sets",
        kind: Kind::Named("set"),
        default: Some("{}"),
        reason: "none is known",
        apply: Apply::Reload,
        role: RoleWord::Operator,
        text: "Sets of names and of addresses that conditions can name: `qname in video`, `client in kids`. \
               `docs/manual/sets.md` tells more.",
        unbound: &[],
    },
    row(
        "sets.*.names",
        Kind::List(Value::NamePattern),
        "[]",
        "a set may hold addresses only",
        "Names: `suffix:example.org` (or `example.org`) with everything below it, `exact:example.org` alone, \
         `keyword:ads` for names that contain it, `regex:^ads[0-9]+[.]` for names that a part of fits it.",
    ).for_operators(),
    unset(
        "sets.*.text",
        Kind::One(Value::Text { word: None }),
        "Names, one a line, as in a list of the format `names`: a long list without a file of its own.",
    ).for_operators(),
    row(
        "sets.*.addresses",
        Kind::List(Value::AddressRange),
        "[]",
        "a set may hold names only",
        "Addresses, prefixes, ranges `192.0.2.1-192.0.2.9`, and the words that `allow` knows.",
    ).for_operators(),
    row(
        "sets.*.rules",
        Kind::List(Value::Text { word: None }),
        "[]",
        "most rules come with lists",
        "Rules in the syntax of AdGuard: `||ads.example^`, `@@||good.ads.example^`. They mean what they mean in a list of the \
         format `adguard`, beside those of other lists.",
    ).for_operators(),
    Row {
        path: "sets.*.lists",
        kind: Kind::Items,
        default: None,
        reason: "",
        apply: Apply::Reload,
        role: RoleWord::Operator,
        text: "Lists that the set is read from.",
        unbound: &[],
    },
    unset(
        "sets.*.lists[].list",
        Kind::One(Value::SetList),
        "The format and the file or URL: `names:block.txt`, `adguard:https://example.org/list.txt`. Formats: `names` \
         (`domain:`, `full:`, `keyword:`, `regexp:`, one on a line), `addresses`, `geosite`, `geoip`, `adguard`, \
         `hosts`, `dnsmasq`, `rpz`, `mmdb`. Parts of `geosite`, `geoip` and `mmdb` are selected behind a last colon: \
         `geosite:geosite.dat:cn|google@ads`, `mmdb:country.mmdb:country=DE`.",
    ).for_operators(),
    unset(
        "sets.*.lists[].zone",
        Kind::One(Value::Text { word: None }),
        "In place of `list`: a zone in `zones` that comes from other servers, as a response policy zone. Its next versions come \
         into use as they are transferred, and cost in proportion to what has changed.",
    ).for_operators(),
    unset(
        "sets.*.lists[].own",
        Kind::One(Value::Label),
        "In place of `list`: a list that is kept beside the settings and changed while the server runs, by `gannet list` and the \
         HTTP API. It is empty until then. Rules on names are added and removed without compiling the others.",
    ).for_operators(),
    row(
        "sets.*.lists[].format",
        word(&["names", "addresses", "adguard", "hosts", "dnsmasq", "rpz"]),
        "names",
        "most are names",
        "The format of a list that is `own`.",
    ).for_operators(),
    row(
        "sets.*.lists[].refresh",
        duration_or(MINUTE, 365 * DAY, "off"),
        "1d",
        "most lists change once a day",
        "How often a URL is asked whether there is a newer list; until there is, and when that fails, the last good copy \
         stays in use.",
    ).for_operators(),
    row(
        "sets.*.lists[].select",
        Kind::List(Value::Text { word: None }),
        "[]",
        "all of it",
        "More parts of the list.",
    ).for_operators(),
    row(
        "sets.*.lists[].size",
        Kind::One(Value::Size { min: 1 << 10, max: 1 << 30 }),
        "128MiB",
        "ten times the largest list in common use",
        "How large the list may be; a larger one is not read, and not fetched to its end.",
    ).for_operators(),
    row(
        "sets.*.lists[].optional",
        Kind::One(Value::Bool),
        "false",
        "a file that was forgotten, or lost, is noticed",
        "Whether a list from a file may be missing: the set is without it then, with a warning, until the file is there.",
    ).for_operators(),
    row(
        "sets.*.lists[].strict",
        Kind::One(Value::Bool),
        "true",
        "a list of one's own is mended at once",
        "Whether a mistake in a list of one's own (a file of the format `names` or `addresses`) is an error. Say `false` of a file that \
         somebody else makes: then lines that cannot be read are counted and shown, and prefixes may have bits of hosts.",
    ).for_operators(),
    row(
        "sets.*.lists[].timeout",
        duration(SECOND, HOUR),
        "1m",
        "enough for any list over a slow line",
        "How long fetching the list may take.",
    ).for_operators(),
    row(
        "sets.*.include",
        Kind::List(Value::Label),
        "[]",
        "a set stands for itself",
        "Sets whose content this one holds too.",
    ).for_operators(),
    row(
        "sets.*.except",
        Kind::List(Value::Label),
        "[]",
        "nothing is taken out",
        "Sets whose entries this one does not contain; takes precedence over all other entries.",
    ).for_operators(),
    Row {
        path: "sets.*.tags",
        kind: Kind::Named("tag"),
        default: Some("{}"),
        reason: "no client has a name",
        apply: Apply::Reload,
        role: RoleWord::Operator,
        text: "Names for `$client` and `$ctag` in AdGuard lists, and the prefixes that they stand \
               for.",
        unbound: &[],
    },
    unset("sets.*.tags.*", Kind::List(Value::Prefix), "Where such clients are, as in `allow`.").for_operators(),
    section(
        "sets.*.dynamic",
        "Names or addresses that are changed while the server runs, by `gannet set` and by the policy.",
    ).for_operators(),
    row(
        "sets.*.dynamic.holds",
        word(&["off", "names", "addresses"]),
        "off",
        "most sets change with their lists only",
        "`names` (each with those below it), `addresses` (and prefixes), or `off`.",
    ).for_operators(),
    row(
        "sets.*.dynamic.limit",
        whole(1, 10_000_000),
        "65536",
        "a megabyte",
        "How many it holds at most; when it is full, the one that would leave first makes room.",
    ).for_operators(),
    row(
        "sets.*.dynamic.persist",
        Kind::One(Value::Bool),
        "true",
        "learning takes long",
        "Whether it is kept over restarts, in `server.state-directory`.",
    ).for_operators(),
    row(
        "sets.*.dynamic.ttl",
        duration_or(SECOND, 365 * DAY, "forever"),
        "forever",
        "what was added stays until it is removed",
        "How long each stays after it was last added.",
    ).for_operators(),
];
