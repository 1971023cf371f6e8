//! Every setting, once: what it is called, what it takes, what it is if nothing is said, and why.
//!
//! The checker, the manual page, the commented default file and the JSON Schema for editors all read this table.
//! Paths: `cache.*.size` is the setting `size` of each named cache; `listen[].at` is `at` of each item of `listen`.

use crate::settings::{
    AlgorithmWord, CatalogWord, CdsDigestWord, CdsWord, CheckWord, ClientCertificateWord, ClientSubnetUse,
    DenialWord, LocalSocketWord, LogFormat, LogLevel, SerialWord, SigningAlgorithmWord, SigningSerialWord,
    TlsVersionWord, TransportWord, XdpExisting, XdpMode, ZoneFormat, ZonemdWord,
};

/// When a changed setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// With `gannet reload`.
    Reload,
    /// When the server is started again; a reload says so.
    Restart,
}

/// The shape of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A mapping whose keys are rows of this table.
    Section,
    /// A mapping from names that the user chooses to what the rows below `path.*` describe.
    Named(&'static str),
    /// A list of mappings, described by the rows below `path[]`; the first of them may stand alone in place of the
    /// mapping, and one item in place of the list.
    Items,
    /// A list of values; one value may stand alone.
    List(Value),
    /// One value.
    One(Value),
}

/// What a single value may be. A `word` stands for what no value can say, such as `off`.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// `true` or `false`.
    Bool,
    /// A number.
    Whole {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The word for none.
        word: Option<&'static str>,
    },
    /// A duration, in milliseconds.
    Duration {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The word for none.
        word: Option<&'static str>,
    },
    /// A size, in octets.
    Size {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A percentage.
    Percent {
        /// The smallest.
        min: u8,
        /// The largest.
        max: u8,
        /// The word for none.
        word: Option<&'static str>,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text {
        /// The word for none.
        word: Option<&'static str>,
    },
    /// A file or directory, relative to the file that says it.
    Path,
    /// A pattern for files.
    Glob,
    /// An IP address.
    Address,
    /// An IP address and perhaps a port.
    Socket {
        /// The port if none is written.
        port: u16,
        /// The word for none.
        word: Option<&'static str>,
    },
    /// An address prefix, or one of [`PREFIX_WORDS`].
    Prefix,
    /// An upstream server.
    Server,
    /// The hash of a server's key.
    Pin,
    /// How to choose among servers.
    Pick,
    /// When to ask a second server.
    Hedge {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A response code, or `unusable` for all that are no answer.
    RcodeTerm,
    /// A key of 128 bits as 32 hexadecimal digits, or `file:` and a path. Never printed.
    Secret {
        /// The word for none.
        word: Option<&'static str>,
    },
    /// A secret text, or `file:` and a path. Never printed.
    Password,
    /// A rule on names.
    NamePattern,
    /// An address, a prefix, a range, or one of [`PREFIX_WORDS`].
    AddressRange,
    /// The format and the place of a list.
    SetList,
    /// A condition of the policy language.
    Condition,
    /// An action of the policy language.
    Action,
    /// A name for something in this file.
    Label,
}

/// Words that stand for prefixes.
pub const PREFIX_WORDS: [&str; 4] = ["loopback", "private", "lan", "any"];

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Where it stands.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its value if nothing is said, as YAML; `None` if it is not set then.
    pub default: Option<&'static str>,
    /// Why that is the default.
    pub reason: &'static str,
    /// When a change takes effect.
    pub apply: Apply,
    /// What it does.
    pub text: &'static str,
    /// The directives of `unbound.conf` that do the same.
    pub unbound: &'static [&'static str],
}

impl Row {
    /// Returns the last part of the path: the key in the file.
    pub fn key(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path).trim_end_matches("[]")
    }

    /// Returns the path of what it is a part of; empty for the top level.
    pub fn parent(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(parent, _)| parent)
    }

    /// Returns whether it is a direct part of what `parent` names.
    fn is_child_of(&self, parent: &str) -> bool {
        let rest = if parent.is_empty() {
            Some(self.path)
        } else {
            self.path.strip_prefix(parent).and_then(|rest| rest.strip_prefix('.'))
        };
        rest.is_some_and(|key| !key.contains('.'))
    }
}

/// Returns the row of a path.
pub fn find(path: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.path == path)
}

/// Where templates of zones stand.
const ZONE_TEMPLATE: &str = "zone-templates.*";

/// Returns the rows directly below `parent`, in the order of the manual.
pub fn children(parent: &str) -> impl Iterator<Item = &'static Row> {
    // What a template says, a zone says.
    let parent = if parent == ZONE_TEMPLATE { "zones[]" } else { parent };
    ROWS.iter().filter(move |row| row.is_child_of(parent))
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

const fn duration(min: u64, max: u64) -> Kind {
    Kind::One(Value::Duration { min, max, word: None })
}

const fn duration_or(min: u64, max: u64, word: &'static str) -> Kind {
    Kind::One(Value::Duration { min, max, word: Some(word) })
}

const fn whole(min: u64, max: u64) -> Kind {
    Kind::One(Value::Whole { min, max, word: None })
}

const fn whole_or(min: u64, max: u64, word: &'static str) -> Kind {
    Kind::One(Value::Whole { min, max, word: Some(word) })
}

const fn text_or(word: &'static str) -> Kind {
    Kind::One(Value::Text { word: Some(word) })
}

const fn text() -> Kind {
    Kind::One(Value::Text { word: None })
}

const fn word(words: &'static [&'static str]) -> Kind {
    Kind::One(Value::Word(words))
}

/// Builds a row that a reload applies.
const fn row(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    reason: &'static str,
    text: &'static str,
) -> Row {
    Row { path, kind, default: Some(default), reason, apply: Apply::Reload, text, unbound: &[] }
}

/// Builds a row that has no default.
const fn unset(path: &'static str, kind: Kind, text: &'static str) -> Row {
    Row { path, kind, default: None, reason: "", apply: Apply::Reload, text, unbound: &[] }
}

/// Builds a row that only groups others.
const fn section(path: &'static str, text: &'static str) -> Row {
    Row { path, kind: Kind::Section, default: None, reason: "", apply: Apply::Reload, text, unbound: &[] }
}

impl Row {
    const fn restart(self) -> Self {
        Self { apply: Apply::Restart, ..self }
    }

    const fn unbound(self, unbound: &'static [&'static str]) -> Self {
        Self { unbound, ..self }
    }
}

/// All settings, in the order of the manual.
pub const ROWS: &[Row] = &[
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
        "Threads that answer queries. Each has its own sockets and does everything for its queries.",
    )
    .restart()
    .unbound(&["num-threads"]),
    row(
        "server.stay-awake",
        Kind::One(Value::Bool),
        "true",
        "waking a processor takes longer than an answer",
        "Whether a worker that has just answered a few queries looks for the next one for up to 50 µs before it sleeps. It \
         does so as long as at least every other look finds one, so clients that ask one thing after the other are \
         answered sooner, at the price of a processor that would else be idle in between. A server that is asked now \
         and then sleeps as before.",
    )
    .restart(),
    row(
        "server.user",
        text_or("auto"),
        "auto",
        "the user `gannet` if the server is started as root and that user exists, else nobody else",
        "The user to become once the sockets are open. `root` stays root.",
    )
    .restart()
    .unbound(&["username"]),
    row(
        "server.state-directory",
        Kind::One(Value::Path),
        "/var/lib/gannet",
        "where packages put the state of services",
        "Where the server keeps what should outlive it. Files named elsewhere without a directory are here.",
    )
    .restart()
    .unbound(&["directory"]),
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
        "server.rotate",
        Kind::One(Value::Bool),
        "false",
        "answers that are always the same are easier to compare",
        "Whether the records of one type in an answer from `zones` take turns in being the first.",
    )
    .unbound(&["rrset-roundrobin"]),
    row(
        "server.version",
        text_or("hidden"),
        "hidden",
        "tells a stranger nothing",
        "The answer to `version.bind` and `version.server` in class CHAOS; `hidden` refuses.",
    )
    .unbound(&["version", "hide-version"]),
    row(
        "server.hostname",
        text_or("hidden"),
        "hidden",
        "tells a stranger nothing",
        "The answer to `hostname.bind` in class CHAOS; `hidden` refuses.",
    )
    .unbound(&["identity", "hide-identity"]),
    row(
        "server.identity",
        text_or("hidden"),
        "hidden",
        "tells a stranger nothing",
        "The answer to `id.server` in class CHAOS, and the NSID (RFC 5001); `hidden` refuses.",
    )
    .unbound(&["identity", "hide-identity"]),
    Row {
        path: "listen",
        kind: Kind::Items,
        default: Some("auto"),
        reason: "a server that nobody configured answers nobody but this machine",
        apply: Apply::Restart,
        text: "Where clients' queries are taken. `auto` is 127.0.0.1 and ::1, on port 53 if that may be had and on \
               5300 otherwise. An item is an address, or a mapping with the settings below.",
        unbound: &["interface", "port"],
    },
    unset(
        "listen[].at",
        Kind::One(Value::Socket { port: 53, word: Some("auto") }),
        "The address and port, such as `192.0.2.1`, `192.0.2.1:5300`, `[2001:db8::1]:53` or `0.0.0.0:53`.",
    )
    .restart(),
    row(
        "listen[].transport",
        Kind::List(Value::Word(TransportWord::WORDS)),
        "[udp, tcp]",
        "RFC 7766: a DNS server speaks both",
        "What to speak there: `udp`, `tcp`, `tls` (DNS over TLS, RFC 7858), `https` (DNS over HTTPS, RFC 8484), `h3` (the same \
         over HTTP/3; beside `https` clients are told of it), `http` (the same without TLS, for a proxy that speaks it), `quic` \
         (DNS over QUIC, RFC 9250). What is encrypted takes a certificate, see `tls`. Where no port is written it is 53, 853 \
         for `tls` and `quic`, 443 for `https` and `h3`, 80 for `http`.",
    )
    .restart()
    .unbound(&["do-udp", "do-tcp"]),
    row(
        "listen[].proxy-protocol-from",
        Kind::List(Value::Prefix),
        "[]",
        "a client could claim any address",
        "Proxies that send the client's address in a PROXY protocol header, version 2. Everybody else at this address \
         is taken for what it seems to be.",
    )
    .restart()
    .unbound(&["proxy-protocol-port"]),
    row(
        "listen[].paths",
        Kind::List(Value::Text { word: None }),
        "[/dns-query]",
        "what clients use",
        "Paths at which HTTP requests are answered; conditions and `views` can look at the path.",
    )
    .restart()
    .unbound(&["http-endpoint"]),
    row(
        "listen[].forwarded-from",
        Kind::List(Value::Prefix),
        "[]",
        "a client could claim any address",
        "Proxies that are believed when the header `X-Forwarded-For` or `Forwarded` of an HTTP request says for whom they ask: \
         the last address in it that is not among these.",
    )
    .restart(),
    unset(
        "listen[].client-certificates",
        word(ClientCertificateWord::WORDS),
        "Whether clients must show a certificate that an authority of `tls.client-ca` has signed: `never` asks for none, \
         `optional` takes one that is good, `required` turns clients without one away. Not set, it is `required` if there is \
         any such authority. Conditions can look at it: `client-certificate(name) == laptop.example.org`.",
    )
    .restart(),
    unset("listen[].name", Kind::One(Value::Label), "What to call the listener in conditions: `listener == guests`.")
        .restart(),
    unset(
        "local-sockets",
        Kind::Items,
        "Unix sockets where queries of programs on this machine are taken. Who may write to the file may ask: `allow` does not \
         matter. Conditions see `transport == unix` and the address 127.0.0.1.",
    )
    .restart(),
    unset("local-sockets[].path", Kind::One(Value::Path), "The file, such as `/run/gannet/dns.sock`.").restart(),
    row(
        "local-sockets[].kind",
        word(LocalSocketWord::WORDS),
        "stream",
        "replies of any size, and no name for the client's own socket",
        "What comes over it: a `stream` of queries with their lengths in front, as over TCP, or a `datagram` for each, as over \
         UDP; then a client binds its own socket to a name where the reply can go, and says by EDNS how much it takes.",
    )
    .restart(),
    row(
        "local-sockets[].mode",
        Kind::One(Value::Text { word: None }),
        "660",
        "whoever is to ask is put into the group",
        "The file's rights, in octal digits as chmod takes them.",
    )
    .restart(),
    unset(
        "local-sockets[].owner",
        Kind::One(Value::Text { word: None }),
        "The file's owner, by name or number; the user that starts the server if not set.",
    )
    .restart(),
    unset("local-sockets[].group", Kind::One(Value::Text { word: None }), "The file's group, by name or number.").restart(),
    unset(
        "local-sockets[].name",
        Kind::One(Value::Label),
        "What to call the socket in conditions: `listener == programs`.",
    )
    .restart(),
    section(
        "tls",
        "Who the server is over TLS. The files are read again by a reload, and within a few seconds of a change; connections \
         stay open. The user that the server becomes must be able to read them.",
    ),
    unset(
        "tls.certificates",
        Kind::Items,
        "Certificates with their keys. A client gets the one for the server name it sends; the first if it sends none, or one \
         that no certificate has. `gannet certificate` makes one to try things with.",
    )
    .unbound(&["tls-service-pem", "tls-service-key"]),
    unset(
        "tls.certificates[].certificate",
        Kind::One(Value::Path),
        "The certificate in PEM form, followed by those that lead to a root.",
    )
    .unbound(&["tls-service-pem"]),
    unset(
        "tls.certificates[].key",
        Kind::One(Value::Path),
        "The certificate's private key in PEM form; in the certificate's own file if not set. Nobody else should be able to \
         read it.",
    )
    .unbound(&["tls-service-key"]),
    row(
        "tls.min-version",
        word(TlsVersionWord::WORDS),
        "1.2",
        "some devices in use speak nothing newer",
        "The oldest version of TLS that is spoken.",
    ),
    row(
        "tls.discovery",
        Kind::One(Value::Bool),
        "true",
        "devices then encrypt without being told to",
        "Whether clients of plain DNS that ask for `_dns.resolver.arpa` are told of the encrypted listeners (RFC 9462). They are \
         called as the first certificate says; a client believes it only if that certificate also has the address that it \
         asked.",
    ),
    row(
        "tls.client-ca",
        Kind::List(Value::Path),
        "[]",
        "stub resolvers have no certificates",
        "Files with certificates of authorities. If there are any, only clients with a certificate that one of them signed are \
         served over TLS, unless `listen[].client-certificates` says otherwise; `allow` holds as well.",
    ),
    section(
        "oblivious",
        "DNS over HTTPS by way of a relay that does not see the question, while the target does not see who asks (RFC 9230).",
    ),
    row(
        "oblivious.target",
        Kind::One(Value::Bool),
        "false",
        "of use only to who has relays ask here",
        "Whether listeners for `https`, `h3` and `http` answer oblivious messages at their paths, and tell of their key at \
         `/.well-known/odohconfigs`. To policy, the relay is the client.",
    )
    .restart(),
    row(
        "oblivious.key-lifetime",
        duration(MINUTE, 30 * DAY),
        "1d",
        "what was recorded cannot be read with a key that is gone",
        "How long a key is given to clients. The one before it is still taken; after a restart there is a new one.",
    )
    .restart(),
    unset(
        "oblivious.relay-to",
        Kind::Items,
        "Targets that clients' oblivious messages are carried to, as a relay: requests whose `targethost` names one of them. \
         Nothing is carried anywhere else, nor for clients that `allow` does not let in.",
    ),
    unset(
        "oblivious.relay-to[].target",
        Kind::One(Value::Text { word: None }),
        "The target's name, with its port if that is not 443: `odoh.example.net`, `odoh.example.net:8443`.",
    ),
    unset(
        "oblivious.relay-to[].dial",
        Kind::One(Value::Address),
        "The address to connect to; the machine's resolver is asked if not set.",
    ),
    row(
        "oblivious.relay-to[].roots",
        Kind::One(Value::Text { word: Some("mozilla") }),
        "mozilla",
        "the same everywhere",
        "The authorities that may vouch for the target: `mozilla`, or a file of certificates (PEM).",
    ),
    section(
        "xdp",
        "Takes queries over UDP from network interfaces past the kernel's network stack (AF_XDP; see xdp.md). The addresses are \
         those of `listen`; what is not taken this way, the kernel's sockets serve as before.",
    ),
    row(
        "xdp.interfaces",
        Kind::List(Value::Text { word: None }),
        "[]",
        "needs rights and locked memory, and not every card is good at it",
        "Interfaces to take queries from. `gannet xdp check INTERFACE` says what each can do.",
    )
    .restart(),
    row(
        "xdp.mode",
        word(XdpMode::WORDS),
        "auto",
        "the best that works is found by trying",
        "In which way: `zerocopy` and `native` run in the card's driver, without and with a copy of each packet; `generic` works \
         with any driver and gains less. `auto` takes the best that works, and goes on without if none does. With one of the \
         others the server does not start unless it works. `off` leaves all to the kernel's sockets.",
    )
    .restart(),
    row(
        "xdp.existing",
        word(XdpExisting::WORDS),
        "keep",
        "somebody put it there",
        "If another XDP program is on the interface: `keep` leaves it, which is an error, `replace` takes it off.",
    )
    .restart(),
    unset(
        "xdp.map",
        Kind::One(Value::Path),
        "The path at which another program that is on the interface has pinned its map of sockets (XSKMAP). It chooses the \
         packets then, and none is loaded.",
    )
    .restart(),
    row(
        "xdp.queues",
        whole_or(1, 1024, "all"),
        "all",
        "a card spreads queries over its queues",
        "Queues to take queries from, from the first; what comes to others goes to the kernel's sockets.",
    )
    .restart(),
    row(
        "xdp.ring",
        whole_or(64, 65536, "auto"),
        "auto",
        "what a card's own ring holds is not there for us",
        "Entries of the rings of each queue; rounded up to a power of two. Each takes four frames of 2 or 4 KB of locked memory. \
         `auto`: twice as many as the card's receive ring has, from 2048, which bridge 2 ms at a million queries a second, to \
         16384.",
    )
    .restart(),
    row(
        "xdp.check-routes",
        Kind::One(Value::Bool),
        "false",
        "replies usually leave the way that queries come",
        "Whether only those queries are taken whose replies the kernel would send by the same interface to the same station; \
         others go to the kernel's sockets. Needs `net.ipv4.conf.lo.forwarding` and `net.ipv6.conf.lo.forwarding`.",
    ),
    row(
        "xdp.huge-pages",
        Kind::One(Value::Bool),
        "false",
        "they must be set aside by the operator (vm.nr_hugepages)",
        "Whether frames are kept in huge pages, if there are enough.",
    )
    .restart(),
    row(
        "xdp.busy-poll",
        whole_or(1, 1000, "off"),
        "off",
        "takes processor time from other work of the machine",
        "Microseconds that a system call may spend on asking the card for packets instead of waiting for its interrupt.",
    )
    .restart(),
    row(
        "xdp.busy-poll-budget",
        whole(1, 1024),
        "64",
        "what drivers handle at a time",
        "Packets that such a call may handle.",
    )
    .restart(),
    row(
        "allow",
        Kind::List(Value::Prefix),
        "[loopback, private]",
        "a resolver that answers everybody is used to attack others",
        "Clients that may ask; all others are refused. Prefixes, or `loopback`, `private` (RFC 1918, RFC 4193, RFC 6598, \
         link-local), `lan` (both) and `any`.",
    )
    .unbound(&["access-control"]),
    row(
        "deny",
        Kind::List(Value::Prefix),
        "[]",
        "nobody is suspected",
        "Clients that hear nothing, whatever they ask and by whatever transport; `allow` does not help them. Meant for the \
         sources of a flood: on the interfaces of `xdp` their queries are dropped by the program, before they cost anything, \
         and counted for each prefix.",
    ),
    unset(
        "deny-set",
        Kind::One(Value::Label),
        "A dynamic set of addresses whose clients hear nothing either: what `gannet set add` puts there, or an action such as \
         `learn(SET, client)`, is banned at once, and for as long as the set keeps it.",
    ),
    row(
        "trusted-peers",
        Kind::List(Value::Prefix),
        "[]",
        "a client could claim to be anybody",
        "Forwarders in front of this server that are believed when they say for whom they ask: the single address in the \
         EDNS client subnet is the client's for `client` and `rate`, and `client-mac` and `client-id` are read.",
    ),
    Row {
        path: "upstreams",
        kind: Kind::Named("upstream group"),
        default: Some("{default: {servers: [system]}}"),
        reason: "the resolvers that this machine already uses",
        apply: Apply::Reload,
        text: "Groups of servers that queries can be forwarded to, by name.",
        unbound: &["forward-zone", "stub-zone"],
    },
    unset(
        "upstreams.*.servers",
        Kind::Items,
        "The servers: `system` (those of /etc/resolv.conf), addresses or host names, perhaps after `udp://`, `tcp://`, \
         `tls://` or `quic://`, `https://` or `h3://` URLs, or DNS stamps (`sdns://`).",
    )
    .unbound(&["forward-addr", "forward-host"]),
    unset(
        "upstreams.*.servers[].address",
        Kind::One(Value::Server),
        "One server: `9.9.9.9`, `9.9.9.9:53`, `[2620:fe::fe]:53`, `tcp://9.9.9.9`, `tls://dns.quad9.net`, \
         `tls://9.9.9.9#dns.quad9.net`, `https://dns.quad9.net/dns-query`, `quic://dns.example`, `h3://dns.example/dns-query`, a DNS stamp (`sdns://…`), `dns.quad9.net` or `system`. Without a transport, UDP is used, and TCP for answers \
         that do not fit. With `tls://` and `quic://` (port 853 if none is written), `https://` (HTTP/2, port 443) and `h3://` (HTTP/3) the server must have a certificate for the name or the \
         address written, or for the name after `#`; without one it is not asked anything. `odoh://` is oblivious DNS over HTTPS \
         (see `relay`), and a DNS stamp (`sdns://`) stands for any of these and for DNSCrypt.",
    ),
    unset(
        "upstreams.*.servers[].name",
        Kind::One(Value::Label),
        "What policies call the server, to ask only some of a group: `forward(group, members a|b)`.",
    ),
    row(
        "upstreams.*.servers[].weight",
        whole(1, 1000),
        "1",
        "each gets the same share",
        "The server's share of the queries under `pick: balanced`.",
    ),
    unset(
        "upstreams.*.servers[].source",
        Kind::One(Value::Address),
        "The address of this machine to ask from; chosen by the system if not set.",
    )
    .unbound(&["outgoing-interface"]),
    unset(
        "upstreams.*.servers[].interface",
        Kind::One(Value::Label),
        "The network interface to ask through.",
    ),
    unset(
        "upstreams.*.servers[].mark",
        whole(0, 0xffff_ffff),
        "The routing mark of packets to the server (`SO_MARK`; takes the capability CAP_NET_ADMIN).",
    ),
    unset(
        "upstreams.*.servers[].dial",
        Kind::One(Value::Address),
        "The address to connect to for a server given as a host name; `bootstrap` is not asked then. Its certificate must be \
         for the name all the same.",
    ),
    unset(
        "upstreams.*.servers[].relay",
        text(),
        "The relay that passes oblivious messages on to an `odoh://` server (RFC 9230), so that neither knows both who asks \
         and what: `https://relay.example.org/proxy`, or its DNS stamp. `dial`, `tls-name` and `pins` are for the relay then.",
    ),
    unset(
        "upstreams.*.servers[].proxy",
        Kind::One(Value::Socket { port: 1080, word: None }),
        "A SOCKS5 proxy (RFC 1928) through which the server is asked. A proxy that relays datagrams (UDP ASSOCIATE) does so \
         for UDP, DNSCrypt, `quic://` and `h3://`; through another, UDP and DNSCrypt become TCP, and QUIC cannot pass.",
    ),
    unset("upstreams.*.servers[].proxy-user", text(), "The user that the proxy is told (RFC 1929)."),
    unset(
        "upstreams.*.servers[].proxy-password",
        Kind::One(Value::Password),
        "The user's password, or `file:` and a path.",
    ),
    unset(
        "upstreams.*.servers[].tls-name",
        text(),
        "The name in the server's certificate, where it is another than in `address`; the same as after `#`.",
    ),
    row(
        "upstreams.*.servers[].pins",
        Kind::List(Value::Pin),
        "[]",
        "certificates are renewed, and keys with them",
        "The keys that the server may have: `sha256/` and the Base64 of the SHA-256 of their SubjectPublicKeyInfo (RFC 7858 \
         §4.2). If there are any, only they count: neither who issued the certificate, nor for whom, nor until when.",
    ),
    row(
        "upstreams.*.servers[].roots",
        text_or("mozilla"),
        "mozilla",
        "the same everywhere, and it works in a container without any file",
        "The authorities that may vouch for the server: `mozilla` (those that Mozilla trusted when this version was built), or \
         a file of certificates (PEM), such as /etc/ssl/certs/ca-certificates.crt or your own authority's.",
    ),
    row(
        "upstreams.*.servers[].verify",
        Kind::One(Value::Bool),
        "true",
        "whoever is on the way could pretend to be the server",
        "Whether the server must prove who it is. Without, encryption keeps out those who only listen.",
    ),
    row(
        "upstreams.*.servers[].early-data",
        Kind::One(Value::Bool),
        "false",
        "whoever is on the way could have the server do it twice (RFC 8446 §8)",
        "Whether queries may leave with the first packet of a resumed session (TLS 1.3 early data), which saves one round \
         trip when a connection is made.",
    ),
    row(
        "upstreams.*.servers[].connections-min",
        whole(0, 8),
        "0",
        "an idle server needs none",
        "Connections that each worker opens before anybody asks, and opens again when they end.",
    ),
    row(
        "upstreams.*.servers[].connections-max",
        whole(1, 8),
        "4",
        "each carries hundreds of queries at once",
        "Connections that each worker has to the server at most. Another is opened when one has 64 queries in flight.",
    ),
    row(
        "upstreams.*.servers[].idle",
        duration(100, HOUR),
        "10s",
        "RFC 7766 §6.2.3: servers have better things to do with them",
        "How long a connection may have nothing to do before it is closed.",
    ),
    row(
        "upstreams.*.pick",
        Kind::One(Value::Pick),
        "ordered",
        "as every system does with the servers of resolv.conf; they may know different names",
        "Which server to ask: `ordered` (the first that works), `fastest` (one query in 32 measures the others), \
         `balanced` (by weight), `race(2)` (that many at once; the first usable answer counts), `prefer-positive(2)` \
         (that many at once; an answer without the records asked for waits for one that has them), or `consensus(2 of 3)` \
         (three at once; the first answer that two agree on, because they have a record in common or both say that there is \
         none; without agreement the one that most agree on).",
    ),
    row(
        "upstreams.*.negative-wait",
        duration(1, MINUTE),
        "100ms",
        "another server is seldom that much slower",
        "How long, under `pick: prefer-positive`, an answer without the records asked for waits for one that has them.",
    ),
    row(
        "upstreams.*.timeout",
        duration(100, MINUTE),
        "5s",
        "as long as a client waits for a reply",
        "How long to try altogether before the client gets SERVFAIL.",
    ),
    row(
        "upstreams.*.hedge",
        Kind::One(Value::Hedge { min: 1, max: 10 * SECOND }),
        "auto",
        "a lost packet then costs milliseconds",
        "When to ask a second server although the first has not failed: `auto` (when it takes longer than it usually \
         does), a duration, or `off`. At most one query in ten is asked twice.",
    ),
    row(
        "upstreams.*.fallback-on",
        Kind::List(Value::RcodeTerm),
        "[unusable]",
        "another server may know better",
        "Response codes after which the next server is asked; `unusable` is every one that is not an answer \
         (`noerror`, `nxdomain`, `yxdomain`).",
    ),
    row(
        "upstreams.*.bootstrap",
        Kind::List(Value::Socket { port: 53, word: Some("system") }),
        "[system]",
        "whoever the machine itself would ask",
        "Who is asked for the addresses of servers given as host names.",
    ),
    row(
        "upstreams.*.client-subnet",
        word(ClientSubnetUse::WORDS),
        "strip",
        "RFC 7871 §11.1: where the client lives is its own affair",
        "What to do with the EDNS client subnet in a query: `strip` it or `forward` it.",
    )
    .unbound(&["send-client-subnet"]),
    row(
        "upstreams.*.trust-ad",
        Kind::One(Value::Bool),
        "false",
        "RFC 6840 §5.8: anybody on the way could have set it",
        "Whether to believe and pass on the AD bit (\"this was validated\"). Only for servers that validate and are \
         reached over a path that nobody can forge on.",
    ),
    row(
        "upstreams.*.case-randomisation",
        Kind::One(Value::Bool),
        "false",
        "some servers do not give the letters back as they came",
        "Whether to mix upper and lower case in names at random and compare on return, which makes answers harder to \
         forge.",
    )
    .unbound(&["use-caps-for-id"]),
    Row {
        path: "cache",
        kind: Kind::Named("cache"),
        default: Some("{main: {}}"),
        reason: "one cache for everything",
        apply: Apply::Reload,
        text: "Caches, by name. A policy step `cache(name)` answers from one and fills it.",
        unbound: &[],
    },
    row(
        "cache.*.size",
        Kind::One(Value::Size { min: 1 << 20, max: 1 << 42 }),
        "64MiB",
        "room for some 300,000 answers",
        "Memory that the cache may use. It never uses more.",
    )
    .restart()
    .unbound(&["msg-cache-size", "rrset-cache-size"]),
    row(
        "cache.*.min-ttl",
        duration(0, DAY),
        "0s",
        "the owner of a name decides how long it may be kept",
        "Answers are kept at least this long.",
    )
    .unbound(&["cache-min-ttl"]),
    row(
        "cache.*.max-ttl",
        duration(SECOND, 30 * DAY),
        "1d",
        "RFC 8767 §4 suggests days; a mistake of the owner ends within one",
        "Answers are kept at most this long.",
    )
    .unbound(&["cache-max-ttl"]),
    row(
        "cache.*.max-negative-ttl",
        duration(0, 7 * DAY),
        "1h",
        "RFC 2308 §5 suggests one to three hours",
        "Answers that say that there is nothing are kept at most this long.",
    )
    .unbound(&["cache-max-negative-ttl"]),
    row(
        "cache.*.failure-ttl",
        duration(SECOND, 5 * MINUTE),
        "5s",
        "RFC 9520 §3.2 asks for at least one second and at most five minutes",
        "How long a failure to get an answer is remembered.",
    ),
    row(
        "cache.*.stale",
        duration_or(SECOND, 30 * DAY, "off"),
        "1d",
        "RFC 8767 §5 suggests one to three days",
        "How long after its end an answer may still be given while no fresh one can be had; `off` for never.",
    )
    .unbound(&["serve-expired", "serve-expired-ttl"]),
    row(
        "cache.*.stale-client-timeout",
        duration(0, MINUTE),
        "1800ms",
        "RFC 8767 §5: just below the two seconds after which clients ask again",
        "How long a client waits for a fresh answer when a stale one is at hand. `0s` gives the stale one at once.",
    )
    .unbound(&["serve-expired-client-timeout"]),
    row(
        "cache.*.stale-ttl",
        duration(SECOND, HOUR),
        "30s",
        "RFC 8767 §4",
        "The TTL of records in a stale answer.",
    )
    .unbound(&["serve-expired-reply-ttl"]),
    row(
        "cache.*.prefetch",
        Kind::One(Value::Percent { min: 1, max: 50, word: Some("off") }),
        "10%",
        "popular names are then always answered from memory",
        "An answer that is asked for when less than this part of its time is left is fetched anew in the background.",
    )
    .unbound(&["prefetch"]),
    section("cache.*.dump", "Keeps the cache's content over restarts."),
    unset(
        "cache.*.dump.file",
        Kind::One(Value::Path),
        "The file. It is written when the server stops and read when it starts; without it nothing is kept.",
    ),
    row(
        "cache.*.dump.every",
        duration_or(MINUTE, 7 * DAY, "off"),
        "off",
        "a stopping server writes it anyway",
        "How often to write it in between, in case the machine loses power.",
    ),
    section("hosts", "Names from files in the form of /etc/hosts."),
    row(
        "hosts.system",
        Kind::One(Value::Bool),
        "false",
        "what is in there is often meant for this machine alone",
        "Whether to answer from the system's own hosts file.",
    ),
    row("hosts.files", Kind::List(Value::Path), "[]", "none is known", "Other hosts files."),
    row(
        "hosts.ttl",
        duration(0, 7 * DAY),
        "1h",
        "a change in the file is seen within the hour",
        "The TTL of names from hosts files and from `local`.",
    ),
    Row {
        path: "local",
        kind: Kind::Named("name"),
        default: Some("{}"),
        reason: "none is known",
        apply: Apply::Reload,
        text: "Names of your own and their addresses: `nas.home.arpa: 192.168.1.10`. Reverse names follow by themselves.",
        unbound: &["local-data", "local-data-ptr"],
    },
    unset("local.*", Kind::List(Value::Address), "The addresses of the name."),
    Row {
        path: "zones",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "none is known",
        apply: Apply::Reload,
        text: "Zones that are served with authority. What belongs to one of them is answered from it before any policy. A \
               zone whose file has mistakes is not taken: the one that is being served stays, and all others are served.",
        unbound: &[],
    },
    unset("zones[].name", Kind::One(Value::Text { word: None }), "The name of the zone, such as `example.org`."),
    unset(
        "zones[].like",
        Kind::One(Value::Label),
        "A template of `zone-templates`: what it says holds where the zone says nothing itself.",
    ),
    unset(
        "zones[].file",
        Kind::One(Value::Path),
        "Its master file, as in RFC 1035; if its name ends in `.json`, zones in JSON as erldns has them, of which this is one. \
         A zone that comes from other servers has `primaries` instead. `{name}` in it stands for the zone's name, in lower case \
         and without a dot at the end.",
    ),
    unset(
        "zones[].set",
        Kind::One(Value::Label),
        "A set of zones that the action `zones(NAME)` answers from. Without it, the zone answers before any policy, or where \
         the action `zones` stands. So clients can have different versions of a zone. Other servers do not hear of zones \
         of a set.",
    ),
    unset(
        "zones[].make",
        Kind::Items,
        "Names that are made from addresses if they do not exist: `host-192-0-2-1` directly below the zone, or in a reverse zone \
         the names of addresses. What is made is not signed.",
    ),
    row(
        "zones[].make[].prefix",
        Kind::One(Value::Text { word: None }),
        "\"\"",
        "the address says enough",
        "What stands before the address in the first label, such as `host-`. Dots and colons of the address become dashes.",
    ),
    unset("zones[].make[].networks", Kind::List(Value::Prefix), "The addresses that have such names."),
    unset(
        "zones[].make[].origin",
        Kind::One(Value::Text { word: None }),
        "In a reverse zone, what the names of its addresses are below.",
    ),
    row(
        "zones[].make[].ttl",
        duration(0, WEEK),
        "1h",
        "names of addresses seldom change",
        "How long what is made may be kept.",
    ),
    unset(
        "zones[].choose",
        Kind::Items,
        "Records that depend on who asks, or are shared out. They stand in place of the zone's records of the same type at that \
         name; they are signed with `denial: compact` (see `signing`).",
    ),
    unset("zones[].choose[].name", Kind::One(Value::Text { word: None }), "The name, in full."),
    unset("zones[].choose[].type", Kind::One(Value::Text { word: None }), "The type, such as `A` or `CNAME`."),
    row(
        "zones[].choose[].ttl",
        duration(0, WEEK),
        "1m",
        "who is served from where may change soon",
        "How long they may be kept.",
    ),
    unset(
        "zones[].choose[].check",
        Kind::One(Value::Label),
        "The check of `checks` that each address must pass. One that does not is left out, as long as there is another: of the same \
         item, else of the others. When nothing passes, everything is answered. Only for types A and AAAA.",
    ),
    unset(
        "zones[].choose[].from",
        Kind::Items,
        "What there is to choose from. A client whose network one of them names gets that one; all others get one that names none. \
         Among those, each comes up as often as its weight says.",
    ),
    unset(
        "zones[].choose[].from[].data",
        Kind::List(Value::Text { word: None }),
        "The data of each record, as in a zone file; names in full.",
    ),
    row(
        "zones[].choose[].from[].clients",
        Kind::List(Value::Prefix),
        "[]",
        "whoever has nothing closer",
        "Clients that get these records. A subnet that a query names (ECS, RFC 7871) counts as its client.",
    ),
    row(
        "zones[].choose[].from[].sets",
        Kind::List(Value::Label),
        "[]",
        "whoever has nothing closer",
        "Sets of addresses, by name: their clients too get these records. A set may hold a country (see sets.md).",
    ),
    row(
        "zones[].choose[].from[].weight",
        whole(0, 65_535),
        "1",
        "all are equal",
        "How often they come up, beside the weights of the others. With 0 never, as long as there are others.",
    ),
    unset(
        "zones[].sign",
        Kind::One(Value::Label),
        "The policy of `signing` by which the server signs the zone. The file stays as it is; signatures, keys and what is \
         known of them are in the state directory. Secondaries get the zone as it is signed; a version that comes by transfer or \
         update is served when it is signed.",
    ),
    row(
        "zones[].primaries",
        Kind::List(Value::Text { word: None }),
        "[]",
        "most zones are files here",
        "Servers that the zone comes from, in the order in which they are asked: an address and perhaps a port, `tls://` in front of it \
         for transfers over TLS (RFC 9103) with `#NAME` for the name in the certificate, then `key NAME`, and over TLS `pin HASH` or \
         `roots FILE` (what the server proves itself with), `certificate FILE` and `private-key FILE` (what it is shown).",
    ),
    row(
        "zones[].transfer",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a zone is not given away unless somebody says so",
        "Who may take the zone over by AXFR and IXFR. Each item is made of conditions that must all hold: an address or prefix, \
         `any`, `key NAME`, `tls`.",
    ),
    row(
        "zones[].notify",
        Kind::List(Value::Text { word: None }),
        "[]",
        "nobody is known",
        "Servers that are told of each new version (NOTIFY), written like `primaries`.",
    ),
    row(
        "zones[].notify-from",
        Kind::List(Value::Text { word: None }),
        "[]",
        "the primaries are believed anyway",
        "Who else may say that there is a newer version, written like `transfer`.",
    ),
    row(
        "zones[].update",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a zone is not changed by strangers",
        "Who may change the zone by dynamic update (RFC 2136), written like `transfer`; besides, `name NAME` and `below NAME` say \
         at which names, and `types A,AAAA` records of which types. The zone's file is not written; what has changed is kept in \
         `server.state-directory`.",
    ),
    row(
        "zones[].serial",
        word(SerialWord::WORDS),
        "increment",
        "it works with every serial there is",
        "The serial of a version that an update makes: one more, the seconds since 1970, or the date and two digits. One more \
         than before if that is not newer.",
    ),
    row(
        "zones[].journal-size",
        Kind::One(Value::Size { min: 4 << 10, max: 1 << 34 }),
        "16MiB",
        "many small changes, or a few large ones",
        "How much of the zone's history is kept for IXFR, in memory and in `server.state-directory`.",
    ),
    unset(
        "zones[].catalog",
        Kind::One(Value::Text { word: None }),
        "The catalog zone (RFC 9432) made here that the zone is a member of.",
    ),
    unset("zones[].group", Kind::One(Value::Text { word: None }), "The group that the catalog says it belongs to."),
    unset(
        "zones[].catalog-role",
        Kind::One(Value::Word(CatalogWord::WORDS)),
        "Makes the zone a catalog: `consumer` serves the zones that are listed in it, from the same primaries and for the same \
         clients as the catalog itself; `producer` makes it from the zones that name it in `catalog`.",
    ),
    Row {
        path: "zone-templates",
        kind: Kind::Named("zone template"),
        default: Some("{}"),
        reason: "zones have nothing in common",
        apply: Apply::Reload,
        text: "What zones have in common: items of `zones` and zones that are added while the server runs (`gannet zone add`) take it \
               over with `like`.",
        unbound: &[],
    },
    Row {
        path: "zone-templates.*",
        kind: Kind::Section,
        default: None,
        reason: "",
        apply: Apply::Reload,
        text: "Anything that an item of `zones` may say, but for `name` and `like`.",
        unbound: &[],
    },
    Row {
        path: "zone-directories",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "none is known",
        apply: Apply::Reload,
        text: "Directories whose files, those of directories in them included, are zones. A file with mistakes keeps no other from \
               being served.",
        unbound: &[],
    },
    unset("zone-directories[].path", Kind::One(Value::Path), "The directory."),
    row(
        "zone-directories[].format",
        word(ZoneFormat::WORDS),
        "auto",
        "the name of a file says what it is",
        "Which files are zones: `master` those that end in `.zone`, each called like its zone; `json` those that end in `.json`, \
         with any number of zones each; `auto` both.",
    ),
    unset(
        "zone-directories[].contexts",
        Kind::List(Value::Text { word: None }),
        "Takes only records in JSON that name one of these contexts, or none. Without it, every record is taken.",
    ),
    row(
        "zone-directories[].match-empty",
        Kind::One(Value::Bool),
        "false",
        "an empty list of contexts is meant for nobody",
        "Whether records whose list of contexts is empty are taken although contexts are chosen.",
    ),
    unset("zone-directories[].set", Kind::One(Value::Label), "As in `zones`."),
    unset(
        "zone-directories[].sign",
        Kind::One(Value::Label),
        "Has the server sign the zones, as in `zones`. Not for zones of a set.",
    ),
    row(
        "zone-directories[].transfer",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a zone is not given away unless somebody says so",
        "Who may take over each of the zones, as in `zones`.",
    ),
    row(
        "zone-directories[].notify",
        Kind::List(Value::Text { word: None }),
        "[]",
        "nobody is known",
        "Servers that are told of each new version of each of the zones, as in `zones`.",
    ),
    row(
        "zone-directories[].update",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a zone is not changed by strangers",
        "Who may change each of the zones by dynamic update, as in `zones`. The files are not written.",
    ),
    row(
        "zone-directories[].serial",
        word(SerialWord::WORDS),
        "increment",
        "it works with every serial there is",
        "The serial of a version that an update makes, as in `zones`.",
    ),
    row(
        "zone-directories[].journal-size",
        Kind::One(Value::Size { min: 4 << 10, max: 1 << 34 }),
        "16MiB",
        "many small changes, or a few large ones",
        "How much of the history of each zone is kept for IXFR, as in `zones`.",
    ),
    unset(
        "zone-directories[].catalog",
        Kind::One(Value::Text { word: None }),
        "The catalog zone made here that each of the zones is a member of.",
    ),
    unset(
        "zone-directories[].group",
        Kind::One(Value::Text { word: None }),
        "The group that the catalog says they belong to.",
    ),
    Row {
        path: "checks",
        kind: Kind::Named("check"),
        default: Some("{}"),
        reason: "nothing is checked",
        apply: Apply::Reload,
        text: "How it is checked whether what records lead to works: checks that `zones[].choose` names. They are made by the server \
               itself, at most 16 at a time, and never while a client waits.",
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
    row("checks.*.interval", duration(SECOND, DAY), "10s", "soon enough for most", "How often it is checked."),
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
    section("alias", "What ALIAS records in zones lead to: names elsewhere whose addresses are answered as the owner's own."),
    row(
        "alias.resolvers",
        Kind::List(Value::Socket { port: 53, word: None }),
        "[]",
        "only names of zones that are served here are followed",
        "DNS servers that resolve those names, asked in this order. They are asked again shortly before each TTL is over, not when a \
         client asks.",
    ),
    row(
        "alias.stale",
        duration(0, 30 * DAY),
        "1d",
        "old addresses are better than none for a while",
        "For how long addresses are used that could not be asked for again; afterwards the answer is SERVFAIL.",
    ),
    row(
        "alias.targets",
        whole(1, 1_000_000),
        "10000",
        "a few questions a second, if TTLs are an hour",
        "How many different names are asked for; those over it get SERVFAIL, and a warning says so.",
    ),
    Row {
        path: "signing",
        kind: Kind::Named("signing policy"),
        default: Some("{}"),
        reason: "nothing is signed",
        apply: Apply::Reload,
        text: "How the server signs zones and looks after their keys: policies that zones name with `sign`. `{}` is a policy in \
               which everything is as usual. See the manual's page on DNSSEC.",
        unbound: &[],
    },
    row(
        "signing.*.algorithm",
        word(SigningAlgorithmWord::WORDS),
        "ecdsap256sha256",
        "small signatures that everybody can check",
        "The algorithm of new keys. Another one than before takes over step by step, without a moment in which the zone \
         would not validate.",
    ),
    row(
        "signing.*.ksk-size",
        whole(2048, 4096),
        "2048",
        "what most use",
        "Bits of a new RSA key that signs keys, or everything: 2048, 3072 or 4096.",
    ),
    row(
        "signing.*.zsk-size",
        whole(2048, 4096),
        "2048",
        "what most use",
        "Bits of a new RSA key that signs everything but keys: 2048, 3072 or 4096.",
    ),
    row(
        "signing.*.single-type-signing",
        Kind::One(Value::Bool),
        "false",
        "a ZSK can be replaced without the parent",
        "Whether one key (CSK) signs everything, instead of a KSK and a ZSK.",
    ),
    row(
        "signing.*.ksk-lifetime",
        duration_or(HOUR, 3650 * DAY, "forever"),
        "forever",
        "replacing it needs the parent",
        "How long a KSK or CSK is in use before another one takes over.",
    ),
    row(
        "signing.*.zsk-lifetime",
        duration_or(HOUR, 3650 * DAY, "forever"),
        "30d",
        "a month is what most use",
        "How long a ZSK is in use before another one takes over.",
    ),
    row(
        "signing.*.propagation-delay",
        duration(0, 30 * DAY),
        "1h",
        "secondaries hear of a change within the hour",
        "How long a change takes to reach all servers of the zone.",
    ),
    row(
        "signing.*.dnskey-ttl",
        duration_or(SECOND, 30 * DAY, "soa"),
        "soa",
        "the zone's author chose it",
        "The TTL of DNSKEY, CDS and CDNSKEY; `soa` is the SOA's.",
    ),
    row(
        "signing.*.zone-max-ttl",
        duration_or(SECOND, 365 * DAY, "auto"),
        "auto",
        "the zone says it",
        "The largest TTL in the zone, which replacing keys waits for; `auto` looks for it.",
    ),
    row(
        "signing.*.rrsig-lifetime",
        duration(HOUR, 365 * DAY),
        "14d",
        "long enough for a weekend with a broken server",
        "How long signatures are good.",
    ),
    row(
        "signing.*.rrsig-refresh",
        duration_or(MINUTE, 365 * DAY, "auto"),
        "auto",
        "a tenth of the lifetime, the propagation delay and the largest TTL",
        "Signatures that are good for no longer than this are made anew.",
    ),
    row(
        "signing.*.rrsig-pre-refresh",
        duration(0, 30 * DAY),
        "1h",
        "one change of the zone instead of many",
        "Signatures that would be due so much later are made anew with those that are due.",
    ),
    row(
        "signing.*.rrsig-jitter",
        duration(0, 30 * DAY),
        "1d",
        "the work is spread over a day",
        "Signatures end up to this much earlier, another time for each name.",
    ),
    unset(
        "signing.*.denial",
        Kind::One(Value::Word(DenialWord::WORDS)),
        "How absence is proved: `nsec` by names, as it is without this and `nsec3`; `nsec3` by hashes of names; `compact` by a record \
         that is made and signed for each question (RFC 9824), which tells nobody what else is in the zone. With `compact`, what \
         `zones[].make` and `zones[].choose` answer is signed too; the algorithm must be ECDSA or Ed25519, and secondaries cannot \
         take the zone over.",
    ),
    row(
        "signing.*.nsec3",
        Kind::One(Value::Bool),
        "false",
        "NSEC is smaller and cheaper for everybody",
        "Whether absence is proved with hashed names: `denial: nsec3` in other words.",
    ),
    row(
        "signing.*.nsec3-iterations",
        whole(0, 50),
        "0",
        "RFC 9276 asks for none",
        "Rounds of hashing after the first.",
    ),
    row("signing.*.nsec3-salt", text(), "none", "RFC 9276 asks for none", "The salt in hexadecimal, or `none`."),
    row(
        "signing.*.nsec3-opt-out",
        Kind::One(Value::Bool),
        "false",
        "only zones with very many unsigned delegations gain by it",
        "Whether unsigned delegations are left out of NSEC3.",
    ),
    row(
        "signing.*.cds-cdnskey-publish",
        word(CdsWord::WORDS),
        "rollover",
        "the parent is told when there is news",
        "When CDS and CDNSKEY are in the zone (RFC 7344): `rollover` while a new key waits for its DS, `always`, `none`, or \
         `delete-dnssec`, which asks the parent to remove all DS (RFC 8078).",
    ),
    row(
        "signing.*.cds-digest-type",
        Kind::List(Value::Word(CdsDigestWord::WORDS)),
        "[sha256]",
        "what every parent takes",
        "The digests of CDS.",
    ),
    row(
        "signing.*.csync",
        Kind::One(Value::Bool),
        "false",
        "few parents look at it",
        "Whether CSYNC tells the parent to copy NS and addresses (RFC 7477).",
    ),
    row(
        "signing.*.zonemd",
        word(ZonemdWord::WORDS),
        "none",
        "it takes time with every change",
        "The digest of the whole zone (RFC 8976).",
    ),
    row(
        "signing.*.serial",
        word(SigningSerialWord::WORDS),
        "increment",
        "it is always right",
        "How the serial goes on when the server changes the zone. A serial in the file that is ahead counts.",
    ),
    row(
        "signing.*.parent",
        Kind::List(Value::Socket { port: 53, word: None }),
        "[]",
        "who they are is not known",
        "Servers of the parent zone, or resolvers. A new KSK or CSK comes into use when all of them have its DS. Without any, \
         `gannet zone keys ds-seen ZONE` says so.",
    ),
    row(
        "signing.*.parent-check-interval",
        duration(10 * SECOND, DAY),
        "1h",
        "parents change in hours",
        "How often they are asked.",
    ),
    row(
        "signing.*.parent-delay",
        duration(0, 30 * DAY),
        "2d",
        "the TTL of DS is a day in most parents",
        "How long the old key stays after the parent has the new DS: the TTL of the DS, and how long a change takes to \
         reach all servers of the parent.",
    ),
    row(
        "signing.*.parent-timeout",
        duration_or(HOUR, 365 * DAY, "never"),
        "never",
        "a zone must not be lost because nobody looked",
        "After so long, the parent is taken to have a new DS although nobody saw it.",
    ),
    row(
        "signing.*.threads",
        whole_or(1, 256, "auto"),
        "auto",
        "one less than there are processors",
        "Threads that sign a large zone, at the lowest priority.",
    ),
    Row {
        path: "keys",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "none is known",
        apply: Apply::Reload,
        text: "Keys that servers share to sign what they say about zones (TSIG, RFC 8945).",
        unbound: &[],
    },
    unset("keys[].name", Kind::One(Value::Text { word: None }), "The name of the key, the same on both sides."),
    row(
        "keys[].algorithm",
        word(AlgorithmWord::WORDS),
        "hmac-sha256",
        "every server knows it",
        "What signatures are made with.",
    ),
    unset(
        "keys[].secret",
        Kind::One(Value::Password),
        "The secret in Base64, or `file:` and the path of a file that holds it.",
    ),
    row(
        "keys[].mac-bits",
        Kind::One(Value::Whole { min: 80, max: 512, word: Some("all") }),
        "all",
        "a whole signature is the strongest",
        "How much of a signature is sent, and demanded at least.",
    ),
    section("transfers", "Limits of zone transfers."),
    row(
        "transfers.outgoing",
        whole(1, 10_000),
        "100",
        "each holds one message and one version of its zone",
        "How many zones other servers may take over at a time.",
    ),
    row(
        "transfers.outgoing-client",
        whole(1, 10_000),
        "20",
        "one secondary cannot take all places",
        "How many of these may go to one address.",
    ),
    row(
        "transfers.incoming",
        whole(1, 1000),
        "10",
        "each may hold a whole zone twice",
        "How many zones are taken over from primaries at a time.",
    ),
    row(
        "transfers.size",
        Kind::One(Value::Size { min: 64 << 10, max: 1 << 40 }),
        "4GiB",
        "what a zone can have here",
        "How many octets one transfer from a primary may have.",
    ),
    Row {
        path: "records",
        kind: Kind::Named("set of records"),
        default: Some("{}"),
        reason: "none is known",
        apply: Apply::Reload,
        text: "Sets of records of any type, written as in a zone file, that the action `records(NAME)` answers from.",
        unbound: &[],
    },
    row(
        "records.*.text",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a set may come from files only",
        "Records: `www 60 IN A 192.0.2.1`, one a line, with `$ORIGIN`, `$TTL`, `$INCLUDE` and `$GENERATE`; `\\#` writes data of any \
         type (RFC 3597). Without a TTL they have an hour.",
    ),
    row(
        "records.*.files",
        Kind::List(Value::Path),
        "[]",
        "a set may be written here",
        "Files with records, likewise.",
    ),
    row(
        "records.*.origin",
        Kind::One(Value::Text { word: None }),
        ".",
        "a name needs no dot at its end then",
        "The name that names without a dot at their end are below.",
    ),
    section("limits", "What protects the server from too much."),
    section("limits.rate", "Queries a client may send when nothing proves its address (UDP without a cookie)."),
    row(
        "limits.rate.per-second",
        whole_or(1, 1_000_000, "off"),
        "off",
        "clients are limited by `allow` already",
        "Queries a second for each client prefix, in the long run.",
    )
    .unbound(&["ip-ratelimit"]),
    row(
        "limits.rate.burst",
        whole(1, 10_000_000),
        "100",
        "a browser opening a page asks for dozens of names at once",
        "Queries that may come at once.",
    ),
    row(
        "limits.rate.slip",
        whole(0, 100),
        "2",
        "as other servers do",
        "Every how many queries over the limit one gets a truncated reply, so that an honest client can turn to TCP. 0: \
         never.",
    )
    .unbound(&["ip-ratelimit-factor"]),
    row(
        "limits.rate.ipv4-prefix",
        whole(8, 32),
        "24",
        "the smallest network that is routed",
        "Leading bits of an IPv4 address that share one allowance.",
    ),
    row(
        "limits.rate.ipv6-prefix",
        whole(16, 128),
        "56",
        "what a household gets",
        "Leading bits of an IPv6 address that share one allowance.",
    ),
    row(
        "limits.rate.exempt",
        Kind::List(Value::Prefix),
        "[loopback]",
        "this machine can do worse than ask",
        "Clients without a limit.",
    ),
    row(
        "limits.rate.ban-for",
        duration_or(1_000, 86_400_000, "off"),
        "off",
        "whoever forges a client's address could have it banned",
        "How long a client prefix is banned that keeps on being over the limit. Its queries over UDP are dropped then, by the \
         program on the interfaces of `xdp` before they cost anything; what proves its address, such as TCP, is still \
         answered. At most 1024 prefixes are banned at a time, beside those of `deny`.",
    ),
    row(
        "limits.rate.ban-after",
        whole(1, 10_000_000),
        "1000",
        "a client that hears nothing asks a few times more, not a thousand times",
        "Queries over the limit within ten seconds after which a prefix is banned.",
    ),
    section("limits.tcp", "Connections of clients."),
    row(
        "limits.tcp.connections",
        whole(1, 1_000_000),
        "10000",
        "about 30 MB while they are quiet",
        "Connections in all. The nearer this is, the sooner quiet ones are closed.",
    )
    .restart()
    .unbound(&["incoming-num-tcp"]),
    row(
        "limits.tcp.connections-per-client",
        whole(1, 1_000_000),
        "200",
        "enough for a household or a busy forwarder",
        "Connections of one client (an IPv4 address, or an IPv6 prefix of 56 bits).",
    )
    .restart(),
    row(
        "limits.tcp.idle-timeout",
        duration(SECOND, HOUR),
        "10s",
        "RFC 7766 §6.2.3: in the order of seconds",
        "How long a connection may be quiet; announced with edns-tcp-keepalive (RFC 7828).",
    )
    .restart()
    .unbound(&["tcp-idle-timeout"]),
    row(
        "limits.tcp.first-query-timeout",
        duration(100, MINUTE),
        "5s",
        "a client connects because it has a query",
        "How long after connecting the first query must begin.",
    )
    .restart(),
    row(
        "limits.tcp.pipeline",
        whole(1, 10_000),
        "256",
        "more than a client needs, and no client can fill the table of waiting queries",
        "Queries of one connection that may wait for replies at once; more are read later.",
    )
    .restart(),
    row(
        "limits.tcp.age",
        duration_or(SECOND, 7 * DAY, "off"),
        "off",
        "a connection that is used may stay",
        "How old a connection may become, however busy it is, over whatever transport. It ends when what waits then is answered.",
    )
    .restart(),
    section("limits.tls", "Handshakes of TLS: what costs most of all that a stranger can ask for."),
    row(
        "limits.tls.handshakes-per-second",
        whole(1, 16_000),
        "1000",
        "about as many as one processor can do; established connections and other transports go on meanwhile",
        "TLS connections that may begin in a second, of all clients together. Further ones are closed at once.",
    )
    .restart(),
    row(
        "limits.tls.handshakes-per-client",
        whole(1, 16_000),
        "50",
        "a client needs one connection",
        "TLS connections that one client (as under `limits.tcp`) may begin in a second.",
    )
    .restart(),
    row(
        "limits.tls.handshake-timeout",
        duration(100, MINUTE),
        "5s",
        "three slow round trips",
        "How long after connecting the handshake must be done.",
    )
    .restart(),
    row(
        "limits.waiting",
        whole(64, 10_000_000),
        "65536",
        "about 64 MB when all are in use",
        "Queries that may wait for upstreams at once, divided among the workers. One more is answered with SERVFAIL.",
    )
    .unbound(&["num-queries-per-thread"]),
    section("limits.signatures", "Signatures that are made while clients wait (`signing.*.denial: compact`)."),
    row(
        "limits.signatures.per-second",
        whole(1, 1_000_000),
        "5000",
        "about a tenth of one processor",
        "Signatures that may be made in a second, of all zones together; those of P-384 count eightfold. What was signed lately is \
         not signed again. Answers that would need more get SERVFAIL; the last quarter is for names that exist.",
    ),
    row(
        "limits.signatures.memory",
        Kind::One(Value::Size { min: 1 << 20, max: 1 << 34 }),
        "16MiB",
        "some 70,000 signatures",
        "Memory for signatures that were made lately.",
    )
    .restart(),
    section("cookies", "DNS cookies (RFC 7873): proof that a client's address is its own."),
    row(
        "cookies.enabled",
        Kind::One(Value::Bool),
        "true",
        "it costs nothing and spares honest clients the rate limit",
        "Whether to use them.",
    )
    .unbound(&["answer-cookie"]),
    row(
        "cookies.secret",
        Kind::One(Value::Secret { word: Some("random") }),
        "random",
        "nobody has to keep it",
        "The key they are made with: `random`, 32 hexadecimal digits, or `file:` and a path. Servers that share an address \
         share the key.",
    )
    .unbound(&["cookie-secret", "cookie-secret-file"]),
    unset(
        "cookies.other-secret",
        Kind::One(Value::Secret { word: None }),
        "A second key whose cookies are accepted too, while a set of servers goes from one key to the next (RFC 9018 §5).",
    ),
    section("edns", "Sizes of messages."),
    row(
        "edns.udp-size",
        whole(512, 4096),
        "1232",
        "fits the smallest IPv6 packet: never fragmented",
        "Octets of the largest UDP message that is sent or asked for.",
    )
    .unbound(&["edns-buffer-size", "max-udp-size"]),
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
    Row {
        path: "sets",
        kind: Kind::Named("set"),
        default: Some("{}"),
        reason: "none is known",
        apply: Apply::Reload,
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
    ),
    row(
        "sets.*.addresses",
        Kind::List(Value::AddressRange),
        "[]",
        "a set may hold names only",
        "Addresses, prefixes, ranges `192.0.2.1-192.0.2.9`, and the words that `allow` knows.",
    ),
    row(
        "sets.*.rules",
        Kind::List(Value::Text { word: None }),
        "[]",
        "most rules come with lists",
        "Rules in the syntax of AdGuard: `||ads.example^`, `@@||good.ads.example^`. They mean what they mean in a list of the \
         format `adguard`, beside those of other lists.",
    ),
    Row {
        path: "sets.*.lists",
        kind: Kind::Items,
        default: None,
        reason: "",
        apply: Apply::Reload,
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
    ),
    row(
        "sets.*.lists[].refresh",
        duration_or(MINUTE, 365 * DAY, "off"),
        "1d",
        "most lists change once a day",
        "How often a URL is asked whether there is a newer list; until there is, and when that fails, the last good copy \
         stays in use.",
    ),
    row("sets.*.lists[].select", Kind::List(Value::Text { word: None }), "[]", "all of it", "More parts of the list."),
    row(
        "sets.*.lists[].size",
        Kind::One(Value::Size { min: 1 << 10, max: 1 << 30 }),
        "128MiB",
        "ten times the largest list in common use",
        "How large the list may be; a larger one is not read, and not fetched to its end.",
    ),
    row(
        "sets.*.lists[].timeout",
        duration(SECOND, HOUR),
        "1m",
        "enough for any list over a slow line",
        "How long fetching the list may take.",
    ),
    row(
        "sets.*.include",
        Kind::List(Value::Label),
        "[]",
        "a set stands for itself",
        "Sets whose content this one holds too.",
    ),
    row(
        "sets.*.except",
        Kind::List(Value::Label),
        "[]",
        "nothing is taken out",
        "Sets whose content this one does not hold, whatever else says so.",
    ),
    Row {
        path: "sets.*.tags",
        kind: Kind::Named("tag"),
        default: Some("{}"),
        reason: "no client has a name",
        apply: Apply::Reload,
        text: "What `$client` and `$ctag` in AdGuard lists mean: names of clients and tags, and the prefixes they stand for.",
        unbound: &[],
    },
    unset("sets.*.tags.*", Kind::List(Value::Prefix), "Where such clients are, as in `allow`."),
    section(
        "sets.*.dynamic",
        "Names or addresses that are changed while the server runs, by `gannet set` and by the policy.",
    ),
    row(
        "sets.*.dynamic.holds",
        word(&["off", "names", "addresses"]),
        "off",
        "most sets change with their lists only",
        "`names` (each with those below it), `addresses` (and prefixes), or `off`.",
    ),
    row(
        "sets.*.dynamic.limit",
        whole(1, 10_000_000),
        "65536",
        "a megabyte",
        "How many it holds at most; when it is full, the one that would leave first makes room.",
    ),
    row(
        "sets.*.dynamic.persist",
        Kind::One(Value::Bool),
        "true",
        "what was learned is learned slowly",
        "Whether it is kept over restarts, in `server.state-directory`.",
    ),
    row(
        "sets.*.dynamic.ttl",
        duration_or(SECOND, 365 * DAY, "forever"),
        "forever",
        "what was added stays until it is removed",
        "How long each stays after it was last added.",
    ),
    Row {
        path: "conditions",
        kind: Kind::Named("condition"),
        default: Some("{}"),
        reason: "none is known",
        apply: Apply::Reload,
        text: "Conditions with a name, to be used in others: `bedtime: now in hours(\"21:00-07:00\")`, then `if: bedtime and \
               client in kids`.",
        unbound: &[],
    },
    unset("conditions.*", Kind::One(Value::Condition), "The condition."),
    Row {
        path: "effects",
        kind: Kind::Named("effect"),
        default: Some("{}"),
        reason: "nothing outside is to be touched",
        apply: Apply::Reload,
        text: "What happens outside because of a query, by name: the action `effect(NAME)` asks for it. It happens when the \
               reply is complete and never holds it up.",
        unbound: &["ipset"],
    },
    unset(
        "effects.*.type",
        word(&["nftset", "ipset", "mikrotik-list", "mikrotik-route", "http", "script"]),
        "What it does: puts the reply's addresses into sets of `nftset` or `ipset`, or into the lists or routes of a MikroTik \
         router; sends an `http` request; runs a `script`.",
    ),
    row(
        "effects.*.queue",
        whole(1, 65_536),
        "1024",
        "a second's worth on a busy day",
        "Queries that may wait for it. One more is dropped and counted.",
    ),
    row(
        "effects.*.family",
        word(&["ip", "ip6", "inet", "bridge", "netdev"]),
        "inet",
        "most tables are for both families",
        "nftset: the family of the table.",
    ),
    unset("effects.*.table", text(), "nftset: the table."),
    unset("effects.*.set", text(), "nftset: the set for whatever addresses it holds."),
    unset("effects.*.set4", text(), "nftset, ipset: the set for IPv4 addresses."),
    unset("effects.*.set6", text(), "nftset, ipset: the set for IPv6 addresses."),
    row(
        "effects.*.prefix4",
        whole(1, 32),
        "32",
        "only what was asked for",
        "nftset, ipset: how many leading bits of an IPv4 address go into the set; fewer than 32 need a set of networks.",
    ),
    row(
        "effects.*.prefix6",
        whole(1, 128),
        "128",
        "only what was asked for",
        "nftset, ipset: how many leading bits of an IPv6 address go into the set.",
    ),
    unset(
        "effects.*.timeout",
        text(),
        "How long an address stays: a duration, `ttl` (as long as its record may be kept), or `none` (as the set says; on a \
         router, for ever). A repeated answer begins the time anew. If not set: `none` for nftset and ipset, `ttl` for MikroTik.",
    ),
    unset(
        "effects.*.timeout-min",
        duration(SECOND, 30 * DAY),
        "The shortest time that `timeout: ttl` gives; one minute if not set.",
    ),
    unset(
        "effects.*.timeout-max",
        duration(SECOND, 30 * DAY),
        "The longest time that `timeout: ttl` gives; one hour if not set.",
    ),
    unset(
        "effects.*.address",
        Kind::One(Value::Socket { port: 8728, word: None }),
        "MikroTik: where the router's API listens (service `api`; with `tls` the service `api-ssl`, whose port is 8729).",
    ),
    row(
        "effects.*.tls",
        Kind::One(Value::Bool),
        "false",
        "a router has no certificate until it is given one",
        "MikroTik: whether the API is encrypted.",
    ),
    unset(
        "effects.*.server-name",
        text(),
        "MikroTik with `tls`: the name that the router's certificate is for; if not set, it must be for its address.",
    ),
    unset("effects.*.user", text(), "MikroTik: the user, with the policies `api`, `read` and `write`."),
    unset("effects.*.password", Kind::One(Value::Password), "MikroTik: the password, or `file:` and a path."),
    unset("effects.*.list4", text(), "MikroTik: the address list for IPv4 addresses."),
    unset("effects.*.list6", text(), "MikroTik: the address list for IPv6 addresses."),
    row(
        "effects.*.always",
        Kind::List(Value::Prefix),
        "[]",
        "what is in the lists comes from answers",
        "MikroTik: addresses and networks that are in the lists all the time, without a timeout. They are there seconds after the \
         start, are looked after every three minutes, and are taken out when another start or a reload names others.",
    ),
    unset("effects.*.gateway4", text(), "MikroTik: the gateway of routes to IPv4 addresses."),
    unset("effects.*.gateway6", text(), "MikroTik: the gateway of routes to IPv6 addresses."),
    unset("effects.*.routing-table", text(), "MikroTik: the routing table; `main` if not set."),
    row("effects.*.distance", whole(1, 255), "100", "routes of others win", "MikroTik: the distance of the routes."),
    unset(
        "effects.*.comment",
        text(),
        "MikroTik: what marks our entries; others are never touched. `gannet:` and the effect's name if not set.",
    ),
    unset("effects.*.url", text(), "http: where the request goes; `{name}` and other fields of the query are filled in."),
    unset(
        "effects.*.method",
        word(&["get", "post", "put", "patch", "delete"]),
        "http: the method; `post` if there is a body, `get` if not.",
    ),
    row(
        "effects.*.headers",
        Kind::List(Value::Text { word: None }),
        "[]",
        "none is needed",
        "http: header lines, `Name: value`; fields are filled in.",
    ),
    unset(
        "effects.*.body",
        text(),
        "http: the body; fields are filled in, escaped for JSON unless a `Content-Type` says that it is something else.",
    ),
    unset("effects.*.ca", Kind::One(Value::Path), "http, and MikroTik with `tls`: a file of certificates (PEM) that may sign the server's, instead of the usual ones."),
    row(
        "effects.*.verify",
        Kind::One(Value::Bool),
        "true",
        "anybody on the way could read and change it",
        "http, and MikroTik with `tls`: whether the server's certificate is checked.",
    ),
    unset("effects.*.command", Kind::One(Value::Path), "script: the program; a name without a slash is looked for in `PATH`."),
    row(
        "effects.*.arguments",
        Kind::List(Value::Text { word: None }),
        "[]",
        "none is needed",
        "script: its arguments, each as it is: no shell reads them. Fields are filled in.",
    ),
    row(
        "effects.*.environment",
        Kind::List(Value::Text { word: None }),
        "[]",
        "none is needed",
        "script: environment variables, `NAME=value`, besides `PATH`; fields are filled in.",
    ),
    unset("effects.*.directory", Kind::One(Value::Path), "script: where it runs; the state directory if not set."),
    row(
        "effects.*.patience",
        duration(100, 10 * MINUTE),
        "5s",
        "what takes longer holds up the next",
        "MikroTik, http, script: how long it may take. A script is killed then.",
    ),
    row(
        "effects.*.concurrency",
        whole(1, 64),
        "4",
        "enough to hide a slow answer",
        "http, script: how many at once.",
    ),
    section("recorder", "Records queries in a database (SQLite), for `gannet log` and whatever reads it."),
    unset(
        "recorder.file",
        Kind::One(Value::Path),
        "The database. Without it nothing is recorded.",
    ),
    row(
        "recorder.queries",
        word(&["all", "chosen"]),
        "all",
        "what one looks for is what one did not choose",
        "Whether every query that policies see is recorded, or those that reach the action `record`.",
    ),
    row(
        "recorder.share",
        Kind::One(Value::Percent { min: 1, max: 100, word: None }),
        "100%",
        "a gap in the record is hard to tell from silence",
        "How many of them, chosen at random.",
    ),
    row(
        "recorder.path",
        Kind::One(Value::Bool),
        "true",
        "it says why a query went where it went",
        "Whether the way through the policy is recorded: each rule tried and each step taken.",
    ),
    row(
        "recorder.keep",
        duration(MINUTE, 3650 * DAY),
        "7d",
        "clients' habits are their own affair after that",
        "How long records are kept.",
    ),
    row(
        "recorder.size",
        Kind::One(Value::Size { min: 1 << 20, max: 1 << 42 }),
        "256MiB",
        "some two million queries",
        "How large the database may grow; the oldest records go first.",
    ),
    Row {
        path: "schedules",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "nothing has to be done",
        apply: Apply::Reload,
        text: "What is done at certain times. What is still at work is not begun again; a time that passed while the server \
               did not run is not made up for.",
        unbound: &[],
    },
    unset(
        "schedules[].at",
        text(),
        "When, as cron says it: minute, hour, day of the month, month, day of the week, such as `0 4 * * *`.",
    ),
    row(
        "schedules[].time-zone",
        text(),
        "local",
        "what the clock on the wall says",
        "The time zone that is meant, such as `Europe/Berlin`; `local` is the machine's.",
    ),
    unset(
        "schedules[].do",
        Kind::List(Value::Text { word: None }),
        "What: `refresh(sets)` or `refresh(NAME)`, `dump(caches)` or `dump(NAME)`, `effect(NAME)`; one or a list, in order.",
    ),
    unset("schedules[].name", Kind::One(Value::Label), "What to call it; the first thing it does if not set."),
    Row {
        path: "policy",
        kind: Kind::Named("policy"),
        default: Some("{main: [{do: [hosts, local, \"cache(main)\", \"forward(default)\"]}]}"),
        reason: "own names first, then memory, then the upstreams",
        apply: Apply::Reload,
        text: "What happens to a query: rules that run from top to bottom until one ends it. `main` is where every query \
               begins; `call(name)` runs another policy.",
        unbound: &[],
    },
    Row {
        path: "policy.*",
        kind: Kind::Items,
        default: None,
        reason: "",
        apply: Apply::Reload,
        text: "The rules. An action alone stands for a rule without a condition.",
        unbound: &[],
    },
    unset("policy.*[].do", Kind::List(Value::Action), "What to do: one action or a list of them, in order."),
    unset("policy.*[].if", Kind::One(Value::Condition), "When to do it; without it, always."),
    unset("policy.*[].name", Kind::One(Value::Label), "What to call the rule."),
    Row {
        path: "views",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "everybody is served by `main`",
        apply: Apply::Reload,
        text: "Clients whose queries begin in another policy than `main`. The first view of which everything holds that it \
               says is taken. Caches keep the answers of views with different policies apart.",
        unbound: &[],
    },
    unset("views[].policy", Kind::One(Value::Label), "The policy in which queries begin."),
    row("views[].clients", Kind::List(Value::Prefix), "[]", "any client", "Clients, as in `allow`."),
    row("views[].listeners", Kind::List(Value::Label), "[]", "any listener", "Listeners, by name."),
    row(
        "views[].server-names",
        Kind::List(Value::Text { word: None }),
        "[]",
        "any name",
        "Server names that the client sends in TLS; `*.example.org` stands for what lies below.",
    ),
    row("views[].paths", Kind::List(Value::Text { word: None }), "[]", "any path", "Paths of HTTP requests."),
    unset("views[].if", Kind::One(Value::Condition), "A condition that must hold too."),
];
