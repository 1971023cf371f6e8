//! Keys between servers, and limits of transfers.

use super::{Apply, Kind, RoleWord, Row, Value, row, section, unset, whole, word};

values::words! {
    /// What signatures are made with.
    AlgorithmWord {
        /// HMAC-MD5.
        Md5 = "hmac-md5",
        /// HMAC-SHA-1.
        Sha1 = "hmac-sha1",
        /// HMAC-SHA-224.
        Sha224 = "hmac-sha224",
        /// HMAC-SHA-256.
        Sha256 = "hmac-sha256",
        /// HMAC-SHA-384.
        Sha384 = "hmac-sha384",
        /// HMAC-SHA-512.
        Sha512 = "hmac-sha512",
    }
}

impl AlgorithmWord {
    /// Returns the algorithm.
    pub const fn algorithm(self) -> tsig::Algorithm {
        match self {
            Self::Md5 => tsig::Algorithm::Md5,
            Self::Sha1 => tsig::Algorithm::Sha1,
            Self::Sha224 => tsig::Algorithm::Sha224,
            Self::Sha256 => tsig::Algorithm::Sha256,
            Self::Sha384 => tsig::Algorithm::Sha384,
            Self::Sha512 => tsig::Algorithm::Sha512,
        }
    }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "keys",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "none is known",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "TSIG keys (RFC 8945), with which servers sign transfers, notifications and updates.",
        unbound: &[],
    },
    unset(
        "keys[].name",
        Kind::One(Value::Text { word: None }),
        "The name of the key, the same on both sides.",
    ),
    row(
        "keys[].algorithm",
        word(AlgorithmWord::WORDS),
        "hmac-sha256",
        "every server knows it",
        "The algorithm of signatures.",
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
];
