//! Protocol numbers as open newtypes: any value is legal, the known ones have names.

/// A record or query type (IANA "Resource Record (RR) TYPEs").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rtype(pub u16);

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

/// Declares the constants of a newtype and its mnemonic look-up.
macro_rules! constants {
    ($type:ident: $($name:ident = $value:expr),* $(,)?) => {
        impl $type {
            $(#[doc = concat!("`", stringify!($name), "`, ", stringify!($value), ".")]
            pub const $name: Self = Self($value);)*
        }
    };
}

constants!(Class: IN = 1, CH = 3, HS = 4, NONE = 254, ANY = 255);
constants!(Opcode: QUERY = 0, IQUERY = 1, STATUS = 2, NOTIFY = 4, UPDATE = 5, DSO = 6);
constants!(Rcode:
    NOERROR = 0, FORMERR = 1, SERVFAIL = 2, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5, YXDOMAIN = 6,
    YXRRSET = 7, NXRRSET = 8, NOTAUTH = 9, NOTZONE = 10, DSOTYPENI = 11, BADVERS = 16, BADKEY = 17,
    BADTIME = 18, BADMODE = 19, BADNAME = 20, BADALG = 21, BADTRUNC = 22, BADCOOKIE = 23,
);
constants!(OptionCode:
    NSID = 3, CLIENT_SUBNET = 8, EXPIRE = 9, COOKIE = 10, TCP_KEEPALIVE = 11, PADDING = 12, CHAIN = 13, EDE = 15,
);
constants!(EdeCode:
    OTHER = 0, STALE_ANSWER = 3, FORGED_ANSWER = 4, DNSSEC_BOGUS = 6, CACHED_ERROR = 13, NOT_READY = 14,
    BLOCKED = 15, CENSORED = 16, FILTERED = 17, PROHIBITED = 18, STALE_NXDOMAIN_ANSWER = 19,
    NOT_AUTHORITATIVE = 20, NOT_SUPPORTED = 21, NO_REACHABLE_AUTHORITY = 22, NETWORK_ERROR = 23,
    INVALID_DATA = 24,
);
