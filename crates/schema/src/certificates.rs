//! Certificates that the server orders by itself.

use plan::certificates::{ChallengeWord, KeyWord};

use super::{Kind, Row, Value, row, text, unset, word};

pub(super) const ROWS: &[Row] = &[
    unset(
        "certificates",
        Kind::Named("certificate"),
        "Certificates that the server orders from authorities by ACME (RFC 8555) and renews in time. Clients get them like those \
         of `tls.certificates`, which come first; the API does, too. Keys, accounts and what became of orders are kept in the \
         state directory. Until the first order succeeds, clients get a certificate that the server signs itself. Who names an \
         authority agrees to its terms of service.",
    ),
    row(
        "certificates.*.names",
        Kind::List(Value::Text { word: None }),
        "[]",
        "there is no name that could be guessed",
        "Whom the certificate is for: host names, and IP addresses (RFC 8738) if the authority gives certificates for those.",
    ),
    row(
        "certificates.*.authorities",
        Kind::Items,
        "[]",
        "who names an authority agrees to its terms",
        "The authorities, in the order in which they are asked: the next one is asked when one before it gives no certificate.",
    ),
    unset(
        "certificates.*.authorities[].url",
        Kind::One(Value::Text { word: None }),
        "The URL of the authority's directory, such as `https://acme-v02.api.letsencrypt.org/directory`.",
    ),
    row(
        "certificates.*.authorities[].contact",
        Kind::List(Value::Text { word: None }),
        "[]",
        "most authorities need none",
        "Whom the authority may write to, such as `mailto:hostmaster@example.org`. Read when the account is made.",
    ),
    unset(
        "certificates.*.authorities[].profile",
        text(),
        "The profile of certificates to ask for, such as `shortlived`. The authority's own choice if not set.",
    ),
    unset(
        "certificates.*.authorities[].eab-key-id",
        text(),
        "The identifier of an account elsewhere that ours is bound to (external account binding, RFC 8555 section 7.3.4), as the \
         authority gives it.",
    ),
    unset(
        "certificates.*.authorities[].eab-key",
        Kind::One(Value::Password),
        "The key that belongs to `eab-key-id`, in base64url: the text, or `file:` and a path.",
    ),
    unset(
        "certificates.*.authorities[].ca",
        Kind::One(Value::Path),
        "A file with the certificates that vouch for the authority's web server, in PEM form: for authorities of one's own. Those \
         that Mozilla trusts if not set.",
    ),
    row(
        "certificates.*.challenge",
        word(ChallengeWord::WORDS),
        "http-01",
        "it works for names and addresses alike",
        "How the authority sees that the names are ours. `http-01`: it fetches a file from port 80, which a listener with \
         `transport: http` has to answer; only files of the authority are served there besides DNS over HTTP. `tls-alpn-01` (RFC \
         8737): it connects to port 443, which a listener with `transport: https` or `tls` has to answer, without client \
         certificates. `dns-01`: it looks for a TXT record at `_acme-challenge` below the name; needed for names with `*`. The \
         server puts it into the zone of its own that it belongs to, also at the end of an alias (CNAME), or has the servers of \
         `update` take it, and waits until all name servers of the zone have it.",
    ),
    row(
        "certificates.*.update",
        Kind::List(Value::Text { word: None }),
        "[]",
        "the records go into the server's own zones",
        "Servers that take the records of `dns-01` by dynamic update (RFC 2136), written as in `zones[].primaries`. The first one \
         that takes a record suffices.",
    ),
    row(
        "certificates.*.key-type",
        word(KeyWord::WORDS),
        "ecdsa-p256",
        "all clients know it, and it is quick",
        "The kind of key. Each order makes a new one.",
    ),
];
