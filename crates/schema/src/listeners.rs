//! Where clients' queries are taken, and who the server is to them.

use plan::listeners::{ClientCertificates, LocalKind, TransportWord};
use plan::tls::SuiteWord;

use super::{Apply, DAY, Kind, MINUTE, RoleWord, Row, Value, duration, row, section, unset, word};

values::words! {
    /// The oldest version of TLS that is spoken.
    TlsVersionWord {
        /// TLS 1.2.
        V12 = "1.2",
        /// TLS 1.3.
        V13 = "1.3",
    }
}

values::words! {
    /// Which addresses of a device are meant.
    DeviceFamilyWord {
        /// All.
        Any = "any",
        /// Those of IPv4.
        Ipv4 = "ipv4",
        /// Those of IPv6.
        Ipv6 = "ipv6",
    }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "listen",
        kind: Kind::Items,
        default: Some("auto"),
        reason: "a server that nobody configured answers nobody but this machine",
        apply: Apply::Restart,
        role: RoleWord::Admin,
        text: "Where clients' queries are taken. `auto` is 127.0.0.1 and ::1, on port 53 if that may be had and on \
               5300 otherwise. An item is an address, or a mapping with the settings below.",
        unbound: &["interface", "port"],
    },
    unset(
        "listen[].at",
        Kind::One(Value::Socket { port: 53, word: Some("auto") }),
        "The address and port, such as `192.0.2.1`, `192.0.2.1:5300`, `[2001:db8::1]:53` or `0.0.0.0:53`. Or a network \
         device, such as `eth0` or `eth0@5300`: all addresses that it has when the server starts. Addresses that it gets \
         later take a restart. It is an error if there is no such device, or if it has no address.",
    )
    .restart(),
    row(
        "listen[].family",
        word(DeviceFamilyWord::WORDS),
        "any",
        "a device is listened on as a whole",
        "Which addresses of a device are listened on: `any`, `ipv4` or `ipv6`.",
    )
    .restart()
    .unbound(&["do-ip4", "do-ip6"]),
    row(
        "listen[].transport",
        Kind::List(Value::Word(TransportWord::WORDS)),
        "[udp, tcp]",
        "RFC 7766: a DNS server speaks both",
        "The transports: `udp`, `tcp`, `tls` (DNS over TLS, RFC 7858), `https` (DNS over HTTPS, \
         RFC 8484), `h3` (the same over HTTP/3, which `https` announces), `http` (the same without \
         TLS, behind a proxy that terminates it), `quic` (DNS over QUIC, RFC 9250), `dnscrypt` \
         (over UDP and TCP, see `dnscrypt`). The others that encrypt need a certificate, see `tls`. \
         The default port is 53, 853 for `tls` and `quic`, 443 for `https`, `h3` and `dnscrypt`, 80 \
         for `http`.",
    )
    .restart()
    .unbound(&["do-udp", "do-tcp"]),
    row(
        "listen[].proxy-protocol-from",
        Kind::List(Value::Prefix),
        "[]",
        "a client could claim any address",
        "Proxies that send the client's address in a PROXY protocol header, version 2. For all \
         other peers the server uses the peer's address.",
    )
    .restart()
    .unbound(&["proxy-protocol-port"]),
    row(
        "listen[].paths",
        Kind::List(Value::Text { word: None }),
        "[/dns-query]",
        "what clients use",
        "Paths of the HTTP service; conditions and `views` can test the path.",
    )
    .restart()
    .unbound(&["http-endpoint"]),
    row(
        "listen[].forwarded-from",
        Kind::List(Value::Prefix),
        "[]",
        "a client could claim any address",
        "Proxies whose header `X-Forwarded-For` or `Forwarded` names the client of an HTTP \
         request: the last address in it that is not one of these proxies.",
    )
    .restart(),
    unset(
        "listen[].client-certificates",
        word(ClientCertificates::WORDS),
        "Whether clients need a certificate from an authority of `tls.client-ca`: `never` requests \
         none, `optional` accepts a valid one, `required` refuses clients without one. The default \
         is `required` if there is any such authority. Conditions can test it: \
         `client-certificate(name) == laptop.example.org`. `any`, for TLS alone, requests a \
         certificate and accepts every one; only its key counts, for `tls-pin` in \
         `zones[].transfer`.",
    )
    .restart(),
    unset("listen[].name", Kind::One(Value::Label), "The name of the listener in conditions: `listener == guests`.")
        .restart(),
    unset(
        "local-sockets",
        Kind::Items,
        "Unix sockets for queries of programs on this machine. Whoever may write to the file may \
         query, independently of `allow` (but see `kind: http`). Conditions see `transport == unix` \
         and the address 127.0.0.1.",
    )
    .restart(),
    unset("local-sockets[].path", Kind::One(Value::Path), "The file, such as `/run/gannet/dns.sock`.").restart(),
    row(
        "local-sockets[].kind",
        word(LocalKind::WORDS),
        "stream",
        "replies of any size, and no name for the client's own socket",
        "What comes over it: a `stream` of queries with their lengths in front, as over TCP, or a `datagram` for each, as over \
         UDP; then a client binds its own socket to a name where the reply can go, and says by EDNS how much it takes. Or `http`: \
         DNS over HTTP/1.1 and HTTP/2 without TLS, for a proxy that terminates it. Conditions see `transport == https`, and \
         `allow` holds for 127.0.0.1 or for the client that the proxy names.",
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
    row(
        "local-sockets[].paths",
        Kind::List(Value::Text { word: None }),
        "[/dns-query]",
        "what clients use",
        "With `kind: http`, paths of the HTTP service.",
    )
    .restart(),
    row(
        "local-sockets[].forwarded",
        Kind::One(Value::Bool),
        "false",
        "a proxy that passes on what clients write would let them claim any address",
        "With `kind: http`, whether the header `X-Forwarded-For` or `Forwarded` names the client of a request: the last address \
         in it that is not 127.0.0.1.",
    )
    .restart(),
    unset(
        "local-sockets[].name",
        Kind::One(Value::Label),
        "The name of the socket in conditions: `listener == programs`.",
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
        "tls.ciphers",
        Kind::List(Value::Word(SuiteWord::WORDS)),
        "[]",
        "all that are there are good, and clients choose what they are quick at",
        "Cipher suites that are offered to clients, by their names at IANA. Without any, all: `TLS_AES_256_GCM_SHA384`, \
         `TLS_AES_128_GCM_SHA256` and `TLS_CHACHA20_POLY1305_SHA256` of TLS 1.3, and six of TLS 1.2. A version \
         without any is not offered.",
    )
    .unbound(&["tls-ciphers", "tls-ciphersuites"]),
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
    row(
        "tls.ticket-keys",
        Kind::List(Value::Path),
        "[]",
        "the server makes a key every six hours, which is nowhere on disk",
        "Files of 80 random octets each with keys of session tickets, so that a client can resume its session with another \
         server behind the same address. Tickets are made with the first; those of all are read, so that keys can be replaced. \
         Who reads such a file can read sessions that were resumed (TLS 1.2), so replace the keys every few hours.",
    )
    .unbound(&["tls-session-ticket-keys"]),
    section(
        "dnscrypt",
        "Who the server is over DNSCrypt, version 2. `gannet dnscrypt` makes keys and certificates, in the form of \
         dnscrypt-wrapper and Unbound. The files are read again by a reload, and within a few seconds of a change. An answer over \
         UDP is never longer than its question; a question that comes again gets no answer.",
    ),
    unset(
        "dnscrypt.provider",
        Kind::One(Value::Text { word: None }),
        "The provider's name, such as `2.dnscrypt-cert.example.org`: listeners for `dnscrypt` answer TXT queries for it with the \
         certificates, in plain DNS.",
    )
    .unbound(&["dnscrypt-provider"]),
    row(
        "dnscrypt.keys",
        Kind::List(Value::Path),
        "[]",
        "clients must know whose they are",
        "Files with the resolver's secret keys, 32 octets each. Nobody else should be able to read them.",
    )
    .unbound(&["dnscrypt-secret-key"]),
    row(
        "dnscrypt.certificates",
        Kind::List(Value::Path),
        "[]",
        "a provider signs them",
        "Files with certificates, 124 octets each, which clients are given as long as they are valid. Each belongs to one of \
         `keys`.",
    )
    .unbound(&["dnscrypt-provider-cert"]),
    row(
        "dnscrypt.rotated-certificates",
        Kind::List(Value::Path),
        "[]",
        "nothing was replaced yet",
        "Certificates that clients are not given any more: those that have them are still served, until the certificate's end.",
    )
    .unbound(&["dnscrypt-provider-cert-rotated"]),
    row(
        "dnscrypt.client-keys",
        Kind::One(Value::Size { min: 0, max: 1 << 32 }),
        "4MiB",
        "room for some 40,000 clients",
        "Memory for what was agreed on with clients, of all workers together; a client that is not in it costs some 50 µs, \
         which `limits.tls` bounds.",
    )
    .unbound(&["dnscrypt-shared-secret-cache-size"]),
    row(
        "dnscrypt.replay-memory",
        Kind::One(Value::Size { min: 0, max: 1 << 32 }),
        "4MiB",
        "the latest 500,000 queries",
        "Memory for what is known of queries, so that those that come again are not answered again.",
    )
    .unbound(&["dnscrypt-nonce-cache-size"]),
    section(
        "oblivious",
        "DNS over HTTPS by way of a relay that does not see the question, while the target does not see who asks (RFC 9230).",
    ),
    row(
        "oblivious.target",
        Kind::One(Value::Bool),
        "false",
        "of use only to who has relays ask here",
        "Whether listeners for `https`, `h3` and `http` answer oblivious messages at their paths, \
         and publish their key at `/.well-known/odohconfigs`. To policy, the relay is the client.",
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
];
