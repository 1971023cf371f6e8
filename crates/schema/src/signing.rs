//! How the server signs zones.

use super::{
    Apply, DAY, HOUR, Kind, MINUTE, RoleWord, Row, SECOND, Value, duration, duration_or, row, text, unset,
    whole, whole_or, word,
};
use plan::signing::DenialKind;
use wire::serial::SerialPolicy;

values::words! {
    /// What new keys sign with.
    SigningAlgorithmWord {
        /// RSA with SHA-256.
        RsaSha256 = "rsasha256",
        /// RSA with SHA-512.
        RsaSha512 = "rsasha512",
        /// ECDSA over P-256.
        EcdsaP256 = "ecdsap256sha256",
        /// ECDSA over P-384.
        EcdsaP384 = "ecdsap384sha384",
        /// Ed25519.
        Ed25519 = "ed25519",
        /// Ed448.
        Ed448 = "ed448",
    }
}

values::words! {
    /// When CDS and CDNSKEY are in a zone.
    CdsWord {
        /// Never.
        None = "none",
        /// While the parent should change its DS.
        Rollover = "rollover",
        /// Always.
        Always = "always",
        /// Always, and they ask for all DS to be removed.
        DeleteDnssec = "delete-dnssec",
    }
}

values::words! {
    /// The digests of CDS.
    CdsDigestWord {
        /// SHA-256.
        Sha256 = "sha256",
        /// SHA-384.
        Sha384 = "sha384",
    }
}

values::words! {
    /// The digest of a whole zone.
    ZonemdWord {
        /// None.
        None = "none",
        /// SHA-384.
        Sha384 = "sha384",
        /// SHA-512.
        Sha512 = "sha512",
    }
}

values::words! {
    /// How the serial of a new version is chosen.
    SerialWord {
        /// One more than before.
        Increment = "increment",
        /// The seconds since 1970.
        Unixtime = "unixtime",
        /// The date and two digits.
        Dateserial = "dateserial",
    }
}

impl SerialWord {
    /// Returns the policy.
    pub const fn policy(self) -> SerialPolicy {
        match self {
            Self::Increment => SerialPolicy::Increment,
            Self::Unixtime => SerialPolicy::Unixtime,
            Self::Dateserial => SerialPolicy::Dateserial,
        }
    }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "signing",
        kind: Kind::Named("signing policy"),
        default: Some("{}"),
        reason: "nothing is signed",
        apply: Apply::Reload,
        role: RoleWord::Admin,
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
    unset(
        "signing.*.token",
        Kind::One(Value::Text { word: None }),
        "The token (hardware security module) that new keys are made in, as a PKCS#11 URI (RFC 7512): \
         `pkcs11:token=NAME?module-path=FILE&pin-source=file:FILE`. The private keys never leave it; those that were files stay files \
         until they are replaced. See the manual's page on DNSSEC. Cannot be had with `denial: compact`.",
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
        "secondaries get a change within the hour",
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
        "Signatures that are due within this time are renewed together with those that are due.",
    ),
    row(
        "signing.*.rrsig-jitter",
        duration(0, 30 * DAY),
        "1d",
        "the work is spread over a day",
        "Signatures expire up to this much earlier, at a different time for each name.",
    ),
    unset(
        "signing.*.denial",
        Kind::One(Value::Word(DenialKind::WORDS)),
        "The denial of existence: `nsec`, the default; `nsec3`, by hashed names; `compact`, by a \
         record that the server makes and signs for each query (RFC 9824), which reveals no other \
         names. With `compact`, the server also signs the records of `zones[].make` and \
         `zones[].choose`; the algorithm must be ECDSA or Ed25519, and secondaries cannot transfer \
         the zone.",
    ),
    row(
        "signing.*.nsec3",
        Kind::One(Value::Bool),
        "false",
        "NSEC is smaller and cheaper for everybody",
        "Whether to use NSEC3; the same as `denial: nsec3`.",
    ),
    row(
        "signing.*.nsec3-iterations",
        whole(0, 50),
        "0",
        "RFC 9276 recommends none",
        "Additional hash iterations.",
    ),
    row(
        "signing.*.nsec3-salt",
        text(),
        "none",
        "RFC 9276 recommends none",
        "The salt in hexadecimal, or `none`.",
    ),
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
        "the parent sees them when they change",
        "When CDS and CDNSKEY are in the zone (RFC 7344): `rollover` while a new key waits for its \
         DS, `always`, `none`, or `delete-dnssec`, which requests the removal of all DS (RFC \
         8078).",
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
        "Whether the zone has a CSYNC record, which requests that the parent copies NS and \
         addresses (RFC 7477).",
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
        word(SerialWord::WORDS),
        "increment",
        "it is always right",
        "The next serial when the server changes the zone. A newer serial in the file takes \
         precedence.",
    ),
    row(
        "signing.*.parent",
        Kind::List(Value::Socket { port: 53, word: None }),
        "[]",
        "who they are is not known",
        "Servers of the parent zone, or resolvers. A new KSK or CSK becomes active when all of \
         them have its DS. Without any, `gannet zone keys ds-seen ZONE` confirms it.",
    ),
    row(
        "signing.*.parent-check-interval",
        duration(10 * SECOND, DAY),
        "1h",
        "parents change in hours",
        "The interval of queries to `parent`.",
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
        "The time after which the server assumes that the parent has the new DS.",
    ),
    row(
        "signing.*.ds-push",
        Kind::List(Value::Text { word: None }),
        "[]",
        "most parents query CDS themselves, or get DS from the operator",
        "Servers of the parent that get the DS records by dynamic update (RFC 2136) when the CDS \
         records change. The update replaces all DS of the zone. Written as in \
         `zones[].primaries`. The first server that accepts it suffices; the server tries again, \
         less and less often, until one does. Without `parent`, the acceptance confirms the DS.",
    ),
    row(
        "signing.*.threads",
        whole_or(1, 256, "auto"),
        "auto",
        "one less than there are processors",
        "Threads that sign a large zone, at the lowest priority.",
    ),
];
