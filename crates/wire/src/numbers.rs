//! Protocol numbers as open newtypes: any value is legal, the known ones have names.

use std::fmt;
use std::str::FromStr;

use crate::rtypes;

/// A record or query type (IANA "Resource Record (RR) TYPEs").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rtype(pub u16);

impl Rtype {
    /// Returns whether it is for private use (RFC 6895 §3.1): what it means is a matter of who made
    /// the data.
    pub const fn is_private(self) -> bool {
        matches!(self.0, 65_280..=65_534)
    }
}

/// A class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class(pub u16);

/// A response code; values above 15 need EDNS (RFC 6891 §6.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rcode(pub u16);

/// An operation code, four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opcode(pub u8);

/// An EDNS option code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OptionCode(pub u16);

/// An Extended DNS Error code (RFC 8914).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdeCode(pub u16);

/// Seconds a record may be kept; a value with the top bit set reads as zero (RFC 2181 §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ttl(u32);

impl Ttl {
    /// Zero seconds.
    pub const ZERO: Self = Self(0);

    /// Returns the time to live for `seconds` as read from the wire.
    pub const fn new(seconds: u32) -> Self {
        if seconds > i32::MAX as u32 { Self(0) } else { Self(seconds) }
    }

    /// Returns the seconds.
    pub const fn seconds(self) -> u32 {
        self.0
    }
}

/// No number has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown name")
    }
}

impl std::error::Error for Unknown {}

/// Declares a newtype's constants and its text form: the name at IANA, or `prefix` and the number.
///
/// Reading takes either, a bare number, and an alias; letter case is ignored.
macro_rules! constants {
    ($type:ident($inner:ty) $prefix:literal: $($name:ident = $value:literal $text:literal),* $(,)?) => {
        impl $type {
            $(#[doc = concat!("`", $text, "`, ", stringify!($value), ".")]
            pub const $name: Self = Self($value);)*

            /// The numbers that have names, in ascending order.
            pub const NAMED: &[(Self, &str)] = &[$((Self::$name, $text)),*];

            /// Returns the name at IANA.
            pub fn mnemonic(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.mnemonic() {
                    Some(mnemonic) => f.pad(mnemonic),
                    None => f.pad(&format!("{}{}", $prefix, self.0)),
                }
            }
        }

        impl FromStr for $type {
            type Err = Unknown;

            fn from_str(text: &str) -> Result<Self, Unknown> {
                if let Some((number, _)) = Self::NAMED.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)) {
                    return Ok(*number);
                }
                number_after(text, $prefix).and_then(|number| <$inner>::try_from(number).ok()).map(Self).ok_or(Unknown)
            }
        }
    };
}

/// Reads a number that may follow `prefix`; nothing but digits is a number.
fn number_after(text: &str, prefix: &str) -> Option<u16> {
    let digits = match text.split_at_checked(prefix.len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case(prefix) => rest,
        _ => text,
    };
    if digits.bytes().all(|digit| digit.is_ascii_digit()) { digits.parse().ok() } else { None }
}

impl fmt::Display for Rtype {
    /// Writes the mnemonic, or `TYPE` and the number (RFC 3597 §5).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match rtypes::describe(*self) {
            Some(descriptor) => f.pad(descriptor.mnemonic),
            None => f.pad(&format!("TYPE{}", self.0)),
        }
    }
}

impl FromStr for Rtype {
    type Err = Unknown;

    /// Reads a mnemonic, `TYPEnnn` or `*` (ANY); a bare number is no type.
    fn from_str(text: &str) -> Result<Self, Unknown> {
        if text == "*" {
            return Ok(Self::ANY);
        }
        if let Some(known) = rtypes::TABLE.iter().find(|known| known.mnemonic.eq_ignore_ascii_case(text)) {
            return Ok(known.rtype);
        }
        if text.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(Unknown);
        }
        number_after(text, "TYPE").map(Self).ok_or(Unknown)
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

constants!(Class(u16) "CLASS": IN = 1 "IN", CH = 3 "CH", HS = 4 "HS", NONE = 254 "NONE", ANY = 255 "ANY");
constants!(Opcode(u8) "OPCODE":
    QUERY = 0 "QUERY", IQUERY = 1 "IQUERY", STATUS = 2 "STATUS", NOTIFY = 4 "NOTIFY", UPDATE = 5 "UPDATE",
    DSO = 6 "DSO",
);
constants!(Rcode(u16) "RCODE":
    NOERROR = 0 "NOERROR", FORMERR = 1 "FORMERR", SERVFAIL = 2 "SERVFAIL", NXDOMAIN = 3 "NXDOMAIN",
    NOTIMP = 4 "NOTIMP", REFUSED = 5 "REFUSED", YXDOMAIN = 6 "YXDOMAIN", YXRRSET = 7 "YXRRSET",
    NXRRSET = 8 "NXRRSET", NOTAUTH = 9 "NOTAUTH", NOTZONE = 10 "NOTZONE", DSOTYPENI = 11 "DSOTYPENI",
    BADVERS = 16 "BADVERS", BADKEY = 17 "BADKEY", BADTIME = 18 "BADTIME", BADMODE = 19 "BADMODE",
    BADNAME = 20 "BADNAME", BADALG = 21 "BADALG", BADTRUNC = 22 "BADTRUNC", BADCOOKIE = 23 "BADCOOKIE",
);
constants!(OptionCode(u16) "OPTION":
    LLQ = 1 "LLQ", UPDATE_LEASE = 2 "UPDATE-LEASE", NSID = 3 "NSID", DAU = 5 "DAU", DHU = 6 "DHU",
    N3U = 7 "N3U", CLIENT_SUBNET = 8 "CLIENT-SUBNET", EXPIRE = 9 "EXPIRE", COOKIE = 10 "COOKIE",
    TCP_KEEPALIVE = 11 "TCP-KEEPALIVE", PADDING = 12 "PADDING", CHAIN = 13 "CHAIN", KEY_TAG = 14 "KEY-TAG",
    EDE = 15 "EDE", CLIENT_TAG = 16 "CLIENT-TAG", SERVER_TAG = 17 "SERVER-TAG",
    REPORT_CHANNEL = 18 "REPORT-CHANNEL", ZONEVERSION = 19 "ZONEVERSION", MQTYPE_QUERY = 20 "MQTYPE-QUERY",
    MQTYPE_RESPONSE = 21 "MQTYPE-RESPONSE", UMBRELLA_IDENT = 20292 "UMBRELLA-IDENT", DEVICE_ID = 26946 "DEVICEID",
);
constants!(EdeCode(u16) "EDE":
    OTHER = 0 "Other", UNSUPPORTED_DNSKEY_ALGORITHM = 1 "Unsupported DNSKEY Algorithm",
    UNSUPPORTED_DS_DIGEST_TYPE = 2 "Unsupported DS Digest Type", STALE_ANSWER = 3 "Stale Answer",
    FORGED_ANSWER = 4 "Forged Answer", DNSSEC_INDETERMINATE = 5 "DNSSEC Indeterminate",
    DNSSEC_BOGUS = 6 "DNSSEC Bogus", SIGNATURE_EXPIRED = 7 "Signature Expired",
    SIGNATURE_NOT_YET_VALID = 8 "Signature Not Yet Valid", DNSKEY_MISSING = 9 "DNSKEY Missing",
    RRSIGS_MISSING = 10 "RRSIGs Missing", NO_ZONE_KEY_BIT_SET = 11 "No Zone Key Bit Set",
    NSEC_MISSING = 12 "NSEC Missing", CACHED_ERROR = 13 "Cached Error", NOT_READY = 14 "Not Ready",
    BLOCKED = 15 "Blocked", CENSORED = 16 "Censored", FILTERED = 17 "Filtered", PROHIBITED = 18 "Prohibited",
    STALE_NXDOMAIN_ANSWER = 19 "Stale NXDomain Answer", NOT_AUTHORITATIVE = 20 "Not Authoritative",
    NOT_SUPPORTED = 21 "Not Supported", NO_REACHABLE_AUTHORITY = 22 "No Reachable Authority",
    NETWORK_ERROR = 23 "Network Error", INVALID_DATA = 24 "Invalid Data",
    SIGNATURE_EXPIRED_BEFORE_VALID = 25 "Signature Expired before Valid", TOO_EARLY = 26 "Too Early",
    UNSUPPORTED_NSEC3_ITERATIONS = 27 "Unsupported NSEC3 Iterations Value",
    UNABLE_TO_CONFORM_TO_POLICY = 28 "Unable to conform to policy", SYNTHESIZED = 29 "Synthesized",
    INVALID_QUERY_TYPE = 30 "Invalid Query Type",
);
