//! Messages that are sent to a receiver as dnstap.

use super::{Kind, Row, Value, row, section, text, text_or, unset, whole};

/// The kinds of messages, as settings name them.
const KINDS: &[&str] = &[
    "client-query",
    "client-response",
    "resolver-query",
    "resolver-response",
    "forwarder-query",
    "forwarder-response",
];

pub(super) const ROWS: &[Row] = &[
    section(
        "dnstap",
        "Sends copies of DNS messages to a receiver, in the form of dnstap (see dnstap.md). No query waits for it: a message that \
         finds no room in memory is dropped and counted.",
    )
    .unbound(&["dnstap", "dnstap-enable"]),
    unset(
        "dnstap.to",
        text(),
        "Who receives them: `unix:` and a path, `tcp://` or `tls://` and an address with its port, such as `tcp://192.0.2.1:6000`. \
         Without it nothing is sent.",
    )
    .unbound(&["dnstap-socket-path", "dnstap-ip", "dnstap-tls"]),
    row(
        "dnstap.messages",
        Kind::List(Value::Word(KINDS)),
        "[client-query, client-response, resolver-query, resolver-response, forwarder-query, forwarder-response]",
        "a receiver can leave out what it does not want",
        "Which messages are sent: `client-query` and `client-response` between clients and this server, `resolver-query` and \
         `resolver-response` between its resolvers and the servers of zones, `forwarder-query` and `forwarder-response` between \
         it and other resolvers, those of upstream groups and of forward zones.",
    )
    .unbound(&[
        "dnstap-log-client-query-messages",
        "dnstap-log-client-response-messages",
        "dnstap-log-resolver-query-messages",
        "dnstap-log-resolver-response-messages",
        "dnstap-log-forwarder-query-messages",
        "dnstap-log-forwarder-response-messages",
    ]),
    row(
        "dnstap.one-of",
        whole(1, 1_000_000_000),
        "1",
        "a gap is hard to tell from silence",
        "Sends one of so many messages, chosen at random: 100 stands for one of a hundred. Of a query and the reply to it both \
         are sent or neither is.",
    )
    .unbound(&["dnstap-sample-rate"]),
    row(
        "dnstap.identity",
        text_or("off"),
        "off",
        "a receiver may know by the connection",
        "What messages say of who sends them: a text, `hostname` for this machine's name, or `off`.",
    )
    .unbound(&["dnstap-send-identity", "dnstap-identity"]),
    row(
        "dnstap.version",
        text_or("off"),
        "off",
        "it is the same in every message",
        "What messages say of the program: a text, `gannet` for its name and version, or `off`.",
    )
    .unbound(&["dnstap-send-version", "dnstap-version"]),
    row(
        "dnstap.bidirectional",
        Kind::One(Value::Bool),
        "true",
        "the receiver can refuse, and confirms the end",
        "Whether the receiver is asked first, and heard at the end (Frame Streams). Without, messages are sent to whoever \
         listens.",
    )
    .unbound(&["dnstap-bidirectional"]),
    unset(
        "dnstap.tls-name",
        text(),
        "With `tls://`: the name in the receiver's certificate; if not set, the certificate must be for its address.",
    )
    .unbound(&["dnstap-tls-server-name"]),
    row(
        "dnstap.roots",
        text_or("mozilla"),
        "mozilla",
        "the same everywhere, and it works in a container without any file",
        "With `tls://`: the authorities that may vouch for the receiver: `mozilla`, or a file of certificates (PEM).",
    )
    .unbound(&["dnstap-tls-cert-bundle"]),
    row(
        "dnstap.verify",
        Kind::One(Value::Bool),
        "true",
        "whoever is on the way could read what clients ask",
        "With `tls://`: whether the receiver must prove who it is.",
    ),
    unset(
        "dnstap.certificate",
        Kind::One(Value::Path),
        "With `tls://`: the certificate that is shown to the receiver, with its chain (PEM). A changed file is read with a reload.",
    )
    .unbound(&["dnstap-tls-client-cert-file"]),
    unset(
        "dnstap.key",
        Kind::One(Value::Path),
        "With `tls://`: the certificate's private key (PEM); if not set, it is in the same file.",
    )
    .unbound(&["dnstap-tls-client-key-file"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_called_as_they_are_elsewhere() {
        assert_eq!(KINDS, dnstap::Kind::ALL.map(dnstap::Kind::word));
    }
}
