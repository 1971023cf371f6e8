//! Zones that are served, what they have in common, directories of them.

use super::{
    Apply, DAY, Kind, RoleWord, Row, SECOND, SerialWord, Value, WEEK, duration, row, unset, whole, word,
};
use plan::signing::DenialKind;
use plan::zones::{CatalogRole, FileChange, FileFormat, ZonemdRule};

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "zones",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "none is known",
        apply: Apply::Reload,
        role: RoleWord::Operator,
        text: "Authoritative zones. They answer queries for their names before any policy. If a \
               zone file has mistakes, the version in use stays, and all other zones are served.",
        unbound: &[],
    },
    unset(
        "zones[].name",
        Kind::One(Value::Text { word: None }),
        "The name of the zone, such as `example.org`.",
    ).for_operators(),
    unset(
        "zones[].like",
        Kind::One(Value::Label),
        "A template of `zone-templates`. The zone's own settings take precedence.",
    ).for_operators(),
    unset(
        "zones[].file",
        Kind::One(Value::Path),
        "Its master file, as in RFC 1035; if its name ends in `.json`, zones in JSON as erldns has them, of which this is one. \
         A zone that comes from other servers has `primaries` or `urls` instead. `{name}` in it stands for the zone's name, in lower case \
         and without a dot at the end.",
    ),
    unset(
        "zones[].set",
        Kind::One(Value::Label),
        "A set of zones, for the action `zones(NAME)`, so that clients can get different versions \
         of a zone. Without it, the zone answers before any policy, or where the action `zones` \
         stands. Zones of a set cannot be transferred to other servers.",
    ).for_operators(),
    row(
        "zones[].allow-query",
        Kind::List(Value::Prefix),
        "[any]",
        "what is in a zone is published",
        "Clients that may query the zone, written like `allow` but independent of it; others get \
         REFUSED. It also applies to SOA queries of secondaries. At a catalog with `catalog-role: \
         consumer` it applies to the members.",
    ).for_operators(),
    row(
        "zones[].for-clients",
        Kind::One(Value::Bool),
        "true",
        "most zones are published",
        "Whether clients are answered from the zone. With `false` it is for resolvers of this server alone, those that name it in \
         `resolvers.*.zones.*.own`.",
    ).for_operators()
    .unbound(&["for-downstream"]),
    row(
        "zones[].zonemd",
        word(ZonemdRule::WORDS),
        "\"off\"",
        "few zones have one",
        "What becomes of a new version of the zone by its digest (ZONEMD, RFC 8976), from `primaries` or from its file. `log`: a \
         wrong digest is logged. `verify`: such a version is not taken, and the one before stays. `require`: nor is a version \
         without a digest that can be checked. Of a signed zone, the signatures of the digest must lead to a trust anchor of the \
         resolver `default`.",
    ).for_operators()
    .unbound(&["zonemd-check", "zonemd-reject-absence", "zonemd-permissive-mode"]),
    unset(
        "zones[].write-to",
        Kind::One(Value::Path),
        "A master file that each version from `primaries` or `urls` is written to, for people and other programs. The server keeps \
         zones in `server.state-directory`, and reads this file only where it has kept nothing of the zone yet. `{name}` in it stands for the zone's name.",
    )
    .unbound(&["zonefile"]),
    row(
        "zones[].keep",
        Kind::One(Value::Bool),
        "true",
        "secondaries start without their primaries",
        "Whether versions from `primaries` or `urls` are kept in `server.state-directory`. With `false` the zone is in memory alone: \
         after a start it is fetched anew, and until then it is what the file of `write-to` says, if there is one. Not for a zone \
         that the server signs.",
    ).for_operators(),
    unset(
        "zones[].make",
        Kind::Items,
        "Synthesised names from addresses, unless the name exists: `host-192-0-2-1` directly below \
         the zone, or in a reverse zone the PTR records of addresses. They are signed only with \
         `denial: compact`.",
    ).for_operators(),
    row(
        "zones[].make[].prefix",
        Kind::One(Value::Text { word: None }),
        "\"\"",
        "the address suffices",
        "The text before the address in the first label, such as `host-`. Dots and colons of the \
         address become dashes.",
    ).for_operators(),
    unset("zones[].make[].networks", Kind::List(Value::Prefix), "The addresses that have such names.").for_operators(),
    unset(
        "zones[].make[].origin",
        Kind::One(Value::Text { word: None }),
        "In a reverse zone, the parent of the synthesised names; `{name}` in it stands for the \
         zone's name.",
    ).for_operators(),
    row(
        "zones[].make[].ttl",
        duration(0, WEEK),
        "1h",
        "names of addresses seldom change",
        "How long what is made may be kept.",
    ).for_operators(),
    unset(
        "zones[].choose",
        Kind::Items,
        "Records that depend on who asks, or are shared out. They stand in place of the zone's records of the same type at that \
         name; they are signed with `denial: compact` (see `signing`). At a catalog with `catalog-role: consumer`, this and `make` are \
         what its members answer.",
    ).for_operators(),
    unset(
        "zones[].choose[].name",
        Kind::One(Value::Text { word: None }),
        "The name, in full; `{name}` in it stands for the zone's name. For members of a catalog, it must have that.",
    ).for_operators(),
    unset(
        "zones[].choose[].type",
        Kind::One(Value::Text { word: None }),
        "The type, such as `A` or `CNAME`.",
    ).for_operators(),
    row(
        "zones[].choose[].ttl",
        duration(0, WEEK),
        "1m",
        "who is served from where may change soon",
        "How long they may be kept.",
    ).for_operators(),
    unset(
        "zones[].choose[].check",
        Kind::One(Value::Label),
        "The health check of `checks` for each address. The server leaves out an address that \
         fails, as long as another one passes, of the same item or else of the others. If all \
         fail, it answers with all. Only for types A and AAAA.",
    ).for_operators(),
    unset(
        "zones[].choose[].from",
        Kind::Items,
        "The items to choose from. A client gets the items that name its network, or else those \
         that name none. Among several, each is chosen as often as its weight says.",
    ).for_operators(),
    unset(
        "zones[].choose[].from[].data",
        Kind::List(Value::Text { word: None }),
        "The data of each record, as in a zone file; names in full.",
    ).for_operators(),
    row(
        "zones[].choose[].from[].clients",
        Kind::List(Value::Prefix),
        "[]",
        "whoever has nothing closer",
        "Clients that get these records. A subnet that a query names (ECS, RFC 7871) counts as its client.",
    ).for_operators(),
    row(
        "zones[].choose[].from[].sets",
        Kind::List(Value::Label),
        "[]",
        "whoever has nothing closer",
        "Sets of addresses whose clients also get these records. A set may hold a country (see \
         sets.md).",
    ).for_operators(),
    row(
        "zones[].choose[].from[].weight",
        whole(0, 65_535),
        "1",
        "all are equal",
        "How often the item is chosen, relative to the others. 0: only if no other is left.",
    ).for_operators(),
    unset(
        "zones[].sign",
        Kind::One(Value::Label),
        "The policy of `signing` by which the server signs the zone. The file stays as it is; signatures, keys and what is \
         known of them are in the state directory. Secondaries get the zone as it is signed; a version that comes by transfer or \
         update is served when it is signed.",
    ).for_operators(),
    unset(
        "zones[].key-sets",
        Kind::One(Value::Path),
        "A file with erldns's key sets (a list in JSON of KSKs and ZSKs in PEM) that the zone of a master file is signed with when it is \
         read; a zone in JSON has them in its own file. `{name}` stands for the zone's name.",
    ),
    unset(
        "zones[].key-sets-denial",
        Kind::One(Value::Word(DenialKind::WORDS)),
        "The denial of existence in a zone with key sets, as in `signing`. By default `compact`, \
         if the keys sign quickly (not RSA, not Ed448) and no other server transfers the zone, \
         else `nsec`.",
    ).for_operators(),
    row(
        "zones[].primaries",
        Kind::List(Value::Text { word: None }),
        "[]",
        "most zones are files here",
        "Primaries of the zone, in the order of queries: an address or the name of a host, and optionally a port, with \
         `tls://` in front for transfers over TLS (RFC 9103) and `#NAME` for the name in the \
         certificate, then `key NAME`, and over TLS `pin HASH` or `roots FILE` (to authenticate \
         the server), `certificate FILE` and `private-key FILE` (to authenticate to it).",
    ).for_operators(),
    row(
        "zones[].urls",
        Kind::List(Value::Text { word: None }),
        "[]",
        "zones are transferred, as a rule",
        "Where the zone is as a master file on web servers: `https://` or `http://`, with or without gzip. They are asked in their \
         order, at the times that the SOA says, when no primary has answered; for a file that has not changed, with a request \
         that costs nothing (ETag, If-Modified-Since). It has no more octets than `transfers.size`.",
    ).for_operators()
    .unbound(&["url"]),
    unset(
        "zones[].transfer-size",
        Kind::One(Value::Size { min: 1 << 10, max: 1 << 40 }),
        "How many octets one transfer of this zone from a primary or a web server may have, in the place of `transfers.size`.",
    ).for_operators()
    .unbound(&["max-transfer-size"]),
    row(
        "zones[].transfer-time",
        duration(SECOND, 7 * DAY),
        "2h",
        "a primary that drips holds a place that other zones wait for",
        "How long one transfer of this zone may take, from the connection to its end.",
    ).for_operators()
    .unbound(&["max-transfer-time"]),
    row(
        "zones[].transfer",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a zone can be transferred only if somebody allows it",
        "Who may transfer the zone by AXFR and IXFR. All conditions of an item must hold: an \
         address or prefix, `any`, `key NAME`, `tls`, and `tls-name NAME` or `tls-pin HASH` for \
         clients with a certificate for that host, or with that key (see \
         `listen[].client-certificates`).",
    ).for_operators(),
    row(
        "zones[].notify",
        Kind::List(Value::Text { word: None }),
        "[]",
        "nobody is known",
        "Servers that get a NOTIFY for each new version, written like `primaries`.",
    ).for_operators(),
    row(
        "zones[].notify-from",
        Kind::List(Value::Text { word: None }),
        "[]",
        "the primaries are believed anyway, those with names of hosts by their keys",
        "Further senders of NOTIFY that the server accepts, written like `transfer`.",
    ).for_operators(),
    row(
        "zones[].update",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a zone is not changed by strangers",
        "Who may change the zone by dynamic update (RFC 2136), written like `transfer`; in \
         addition, `name NAME` and `below NAME` limit the names, and `types A,AAAA` the types. The \
         server does not write the zone file; it keeps the changes in `server.state-directory`.",
    ).for_operators(),
    row(
        "zones[].forward-updates",
        Kind::List(Value::Text { word: None }),
        "[]",
        "updates are sent to the primary, as a rule",
        "Whose updates of a secondary zone the server forwards to its `primaries`, written like \
         `transfer`: `any` for everybody's. It forwards a TSIG signature unchanged, also one of an \
         unknown key. The primary decides; its reply goes back to the client.",
    ).for_operators(),
    row(
        "zones[].on-file-change",
        word(FileChange::WORDS),
        "refuse",
        "acknowledged changes are not lost unless somebody decides so",
        "What happens to changes at run time (updates, `gannet zone load`) when the records in the \
         zone file change. `refuse`: the changes stay, and the new file waits; log and `gannet \
         zone status` report it until `gannet zone reload NAME --merge` or `--replace` decides, or \
         the file is as before. `merge`: the changes stay, and the server applies the differences \
         of the file to the zone. `replace`: the file replaces the changes; the server keeps a \
         copy of their journal in `server.state-directory`. A file with the same records changes \
         nothing, whatever its times, its owner or its place.",
    ).for_operators(),
    row(
        "zones[].serial",
        word(SerialWord::WORDS),
        "increment",
        "it works with every serial there is",
        "The serial of a version that an update makes: one more, the seconds since 1970, or the date and two digits. One more \
         than before if that is not newer.",
    ).for_operators(),
    row(
        "zones[].journal-size",
        Kind::One(Value::Size { min: 4 << 10, max: 1 << 34 }),
        "16MiB",
        "many small changes, or a few large ones",
        "The size of the zone's history for IXFR, in memory and in `server.state-directory`.",
    ).for_operators(),
    unset(
        "zones[].catalog",
        Kind::One(Value::Text { word: None }),
        "The catalog zone (RFC 9432) made here that the zone is a member of.",
    ).for_operators(),
    unset("zones[].group", Kind::One(Value::Text { word: None }), "The group of the zone in its catalog.").for_operators(),
    unset(
        "zones[].catalog-role",
        Kind::One(Value::Word(CatalogRole::WORDS)),
        "Makes the zone a catalog: `consumer` serves the zones that are listed in it, from the same primaries and for the same \
         clients as the catalog itself; `producer` makes it from the zones that name it in `catalog`.",
    ).for_operators(),
    Row {
        path: "zone-templates",
        kind: Kind::Named("zone template"),
        default: Some("{}"),
        reason: "zones have nothing in common",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Settings that zones share. Items of `zones`, and zones that are added while the \
               server runs (`gannet zone add`), take them over with `like`.",
        unbound: &[],
    },
    Row {
        path: "zone-templates.*",
        kind: Kind::Section,
        default: None,
        reason: "",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Any setting of an item of `zones`, except `name` and `like`.",
        unbound: &[],
    },
    Row {
        path: "zone-directories",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "none is known",
        apply: Apply::Reload,
        role: RoleWord::Operator,
        text: "Directories whose files, those of directories in them included, are zones. A file with mistakes keeps no other from \
               being served.",
        unbound: &[],
    },
    unset("zone-directories[].path", Kind::One(Value::Path), "The directory."),
    row(
        "zone-directories[].format",
        word(FileFormat::WORDS),
        "auto",
        "the name of a file says what it is",
        "Which files are zones: `master` those that end in `.zone`, each called like its zone; `json` those that end in `.json`, \
         with any number of zones each; `auto` both.",
    ).for_operators(),
    unset(
        "zone-directories[].contexts",
        Kind::List(Value::Text { word: None }),
        "Takes only records in JSON that name one of these contexts, or none. Without it, every record is taken.",
    ).for_operators(),
    row(
        "zone-directories[].match-empty",
        Kind::One(Value::Bool),
        "false",
        "an empty list of contexts is meant for nobody",
        "Whether records whose list of contexts is empty are taken although contexts are chosen.",
    ).for_operators(),
    unset("zone-directories[].set", Kind::One(Value::Label), "As in `zones`.").for_operators(),
    row(
        "zone-directories[].allow-query",
        Kind::List(Value::Prefix),
        "[any]",
        "what is in a zone is published",
        "Clients that may query each of the zones, as in `zones`.",
    ).for_operators(),
    unset(
        "zone-directories[].sign",
        Kind::One(Value::Label),
        "Has the server sign the zones, as in `zones`. Not for zones of a set.",
    ).for_operators(),
    unset(
        "zone-directories[].key-sets",
        Kind::One(Value::Path),
        "A directory with key sets for zones of master files, as erldns has them (`keys_path`): for each zone that is signed with them a \
         file called like the zone, without a dot at the end, and `.private`. Others are served without signatures.",
    ),
    unset(
        "zone-directories[].key-sets-denial",
        Kind::One(Value::Word(DenialKind::WORDS)),
        "How absence is proved in zones that are signed with key sets, as in `zones`.",
    ).for_operators(),
    row(
        "zone-directories[].transfer",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a zone can be transferred only if somebody allows it",
        "Who may take over each of the zones, as in `zones`.",
    ).for_operators(),
    row(
        "zone-directories[].notify",
        Kind::List(Value::Text { word: None }),
        "[]",
        "nobody is known",
        "Servers that get a NOTIFY for each new version of each zone, as in `zones`.",
    ).for_operators(),
    row(
        "zone-directories[].update",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a zone is not changed by strangers",
        "Who may change each of the zones by dynamic update, as in `zones`. The files are not written.",
    ).for_operators(),
    row(
        "zone-directories[].on-file-change",
        word(FileChange::WORDS),
        "refuse",
        "acknowledged changes are not lost unless somebody decides so",
        "What becomes of updates of a zone when its file changes, as in `zones`.",
    ).for_operators(),
    row(
        "zone-directories[].serial",
        word(SerialWord::WORDS),
        "increment",
        "it works with every serial there is",
        "The serial of a version that an update makes, as in `zones`.",
    ).for_operators(),
    row(
        "zone-directories[].journal-size",
        Kind::One(Value::Size { min: 4 << 10, max: 1 << 34 }),
        "16MiB",
        "many small changes, or a few large ones",
        "How much of the history of each zone is kept for IXFR, as in `zones`.",
    ).for_operators(),
    unset(
        "zone-directories[].catalog",
        Kind::One(Value::Text { word: None }),
        "The catalog zone made here that each of the zones is a member of.",
    ).for_operators(),
    unset(
        "zone-directories[].group",
        Kind::One(Value::Text { word: None }),
        "The group of the zones in their catalog.",
    ).for_operators(),
];
