//! Every record type IANA knows, as one table: number, mnemonic and the layout of its data.
//!
//! The table drives reading and checking of wire data, the presentation form both ways, the
//! canonical form (RFC 4034 §6.2) and compression (RFC 3597 §4). Types that are not in it are
//! opaque octets. Source: IANA "Resource Record (RR) TYPEs"; `tests/all/oracles.rs` compares
//! numbers and names with `domain`'s.

use self::Field::*;
use self::NameRule::*;
use crate::numbers::Rtype;

/// How a domain name inside record data is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A type of RFC 1035: may be compressed in messages, lower case in the canonical form.
    Compressed,
    /// May come compressed from old senders (RFC 3597 §4) and is sent in full; lower case in the
    /// canonical form (RFC 4034 §6.2, RFC 6840 §5.1).
    Folded,
    /// Never compressed; letter case is part of the data.
    Plain,
}

/// One piece of record data. Those that say "the rest" stand last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// An octet, in decimal.
    U8,
    /// Sixteen bits, in decimal.
    U16,
    /// Thirty-two bits, in decimal.
    U32,
    /// Forty-eight bits, in decimal (TSIG's time).
    U48,
    /// Sixty-four bits, in decimal.
    U64,
    /// Seconds in thirty-two bits; text may use units (`1h30m`).
    Period,
    /// Seconds since 1970 modulo 2^32, written as `YYYYMMDDHHmmSS` or as a number (RFC 4034 §3.2).
    Time,
    /// A record type by mnemonic.
    TypeNumber,
    /// A DNSSEC algorithm: text may use the mnemonic, the number is written (RFC 4034 A.1).
    Algorithm,
    /// A certificate type by mnemonic or number (RFC 4398 §2.1).
    CertType,
    /// A DSYNC scheme by mnemonic or number (RFC 9859 §2).
    Scheme,
    /// A response code in sixteen bits by mnemonic or number (TSIG, TKEY).
    ErrorCode,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A domain name.
    Name(NameRule),
    /// One character-string.
    String,
    /// None or one character-string at the end (ISDN's subaddress).
    StringMaybe,
    /// One or more character-strings, to the end.
    Strings,
    /// A character-string of letters and digits, written without quotes (CAA's tag).
    Tag,
    /// The rest, as one quoted string of any length (CAA's value, URI's target).
    Text,
    /// The rest, at least one octet, in Base64.
    Base64,
    /// The rest, perhaps empty, in Base64.
    Base64Maybe,
    /// The rest in Base64, `-` if empty (DOA).
    Base64Dash,
    /// Sixteen bits of length, then that many octets in Base64 (TSIG, TKEY); text states the length
    /// first.
    Base64Sized,
    /// The rest, at least one octet, in hexadecimal.
    Hex,
    /// An octet of length, then that many octets in hexadecimal, `-` if none (NSEC3's salt).
    Salt,
    /// An octet of length, then that many octets in Base32hex without padding (NSEC3's next owner).
    Base32Hex,
    /// The rest: a type bitmap in windows (RFC 4034 §4.1.2), perhaps empty.
    Types,
    /// The rest: the type bitmap of RFC 2535 §5.2, types 1 to 127.
    TypesNxt,
    /// The rest: a protocol's ports, one bit each (WKS, RFC 1035 §3.4.2).
    Ports,
    /// An IP protocol by mnemonic or number (WKS).
    Protocol,
    /// The rest: an NSAP address as `0x…` (RFC 1706 §5).
    Nsap,
    /// The rest: an ATM address, `+` and digits or hexadecimal (af-dans-0152).
    Atma,
    /// Sixteen octets of location (RFC 1876).
    Loc,
    /// The rest: address prefixes (APL, RFC 3123), perhaps empty.
    Prefixes,
    /// The rest: service parameters (RFC 9460 §2), perhaps empty.
    SvcParams,
    /// Sixty-four bits as four groups of hexadecimal (ILNP, RFC 6742).
    Groups64,
    /// Six octets as `00-00-5e-00-53-2a` (RFC 7043).
    Eui48,
    /// Eight octets, likewise.
    Eui64,
    /// A6's prefix length, address suffix and prefix name (RFC 2874 §3.1).
    A6,
    /// IPSECKEY's gateway type, algorithm, gateway and key (RFC 4025 §2).
    Ipseckey,
    /// AMTRELAY's discovery bit, type and relay (RFC 8777 §4.2).
    Relay,
    /// HIP's tag, key and rendezvous servers (RFC 8005 §5).
    Hip,
}

/// What records of a type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data that stands in zones.
    Data,
    /// Travels in messages only, never in a zone (OPT, TSIG, TKEY).
    Message,
    /// Stands only in questions (RFC 6895 §3.1).
    Question,
}

/// What is known about one record type.
#[derive(Debug)]
pub struct Descriptor {
    /// The type.
    pub rtype: Rtype,
    /// Its name at IANA.
    pub mnemonic: &'static str,
    /// What its records are.
    pub kind: Kind,
    /// The layout of its data; `None` when it is opaque or has no text form of its own.
    pub fields: Option<&'static [Field]>,
    /// Where the layout is defined.
    pub source: &'static str,
    /// How many leading fields reach up to the last name that may come compressed; 0 for most
    /// types.
    pub(crate) rewrite_fields: u8,
}

/// Counts the leading fields up to the last name that may come compressed.
const fn rewrite_fields(fields: Option<&[Field]>) -> u8 {
    let Some(fields) = fields else { return 0 };
    let mut count = 0;
    let mut i = 0;
    while i < fields.len() {
        if let Name(Compressed | Folded) | A6 = fields[i] {
            count = i as u8 + 1;
        }
        i += 1;
    }
    count
}

macro_rules! fields {
    () => { None };
    ($($field:expr),+) => { Some(&[$($field),+]) };
}

/// Declares the table and the constants of [`Rtype`] together.
macro_rules! rtypes {
    ($($kind:ident $name:ident = $value:literal $mnemonic:literal [$($field:expr),*] $source:literal;)*) => {
        impl Rtype {
            $(#[doc = concat!("`", $mnemonic, "`, ", stringify!($value), " (", $source, ").")]
            pub const $name: Self = Self($value);)*
        }

        /// All types, by number.
        pub static TABLE: &[Descriptor] = &[$({
                const FIELDS: Option<&[Field]> = fields!($($field),*);
                Descriptor {
                    rtype: Rtype($value),
                    mnemonic: $mnemonic,
                    kind: Kind::$kind,
                    fields: FIELDS,
                    source: $source,
                    rewrite_fields: rewrite_fields(FIELDS),
                }
        },)*];
    };
}

rtypes! {
    Data A = 1 "A" [Ipv4] "RFC 1035";
    Data NS = 2 "NS" [Name(Compressed)] "RFC 1035";
    Data MD = 3 "MD" [Name(Compressed)] "RFC 1035";
    Data MF = 4 "MF" [Name(Compressed)] "RFC 1035";
    Data CNAME = 5 "CNAME" [Name(Compressed)] "RFC 1035";
    Data SOA = 6 "SOA" [Name(Compressed), Name(Compressed), U32, Period, Period, Period, Period] "RFC 1035";
    Data MB = 7 "MB" [Name(Compressed)] "RFC 1035";
    Data MG = 8 "MG" [Name(Compressed)] "RFC 1035";
    Data MR = 9 "MR" [Name(Compressed)] "RFC 1035";
    Data NULL = 10 "NULL" [] "RFC 1035";
    Data WKS = 11 "WKS" [Ipv4, Protocol, Ports] "RFC 1035";
    Data PTR = 12 "PTR" [Name(Compressed)] "RFC 1035";
    Data HINFO = 13 "HINFO" [String, String] "RFC 1035";
    Data MINFO = 14 "MINFO" [Name(Compressed), Name(Compressed)] "RFC 1035";
    Data MX = 15 "MX" [U16, Name(Compressed)] "RFC 1035";
    Data TXT = 16 "TXT" [Strings] "RFC 1035";
    Data RP = 17 "RP" [Name(Folded), Name(Folded)] "RFC 1183";
    Data AFSDB = 18 "AFSDB" [U16, Name(Folded)] "RFC 1183";
    Data X25 = 19 "X25" [String] "RFC 1183";
    Data ISDN = 20 "ISDN" [String, StringMaybe] "RFC 1183";
    Data RT = 21 "RT" [U16, Name(Folded)] "RFC 1183";
    Data NSAP = 22 "NSAP" [Nsap] "RFC 1706";
    Data NSAP_PTR = 23 "NSAP-PTR" [Name(Plain)] "RFC 1706";
    Data SIG = 24 "SIG" [TypeNumber, Algorithm, U8, U32, Time, Time, U16, Name(Folded), Base64] "RFC 2535";
    Data KEY = 25 "KEY" [U16, U8, Algorithm, Base64Maybe] "RFC 2535";
    Data PX = 26 "PX" [U16, Name(Folded), Name(Folded)] "RFC 2163";
    Data GPOS = 27 "GPOS" [String, String, String] "RFC 1712";
    Data AAAA = 28 "AAAA" [Ipv6] "RFC 3596";
    Data LOC = 29 "LOC" [Loc] "RFC 1876";
    Data NXT = 30 "NXT" [Name(Folded), TypesNxt] "RFC 2535";
    Data EID = 31 "EID" [Hex] "draft-ietf-nimrod-dns";
    Data NIMLOC = 32 "NIMLOC" [Hex] "draft-ietf-nimrod-dns";
    Data SRV = 33 "SRV" [U16, U16, U16, Name(Folded)] "RFC 2782";
    Data ATMA = 34 "ATMA" [Atma] "af-dans-0152";
    Data NAPTR = 35 "NAPTR" [U16, U16, String, String, String, Name(Folded)] "RFC 3403";
    Data KX = 36 "KX" [U16, Name(Folded)] "RFC 2230";
    Data CERT = 37 "CERT" [CertType, U16, Algorithm, Base64] "RFC 4398";
    Data A6 = 38 "A6" [A6] "RFC 2874";
    Data DNAME = 39 "DNAME" [Name(Folded)] "RFC 6672";
    Data SINK = 40 "SINK" [U8, U8, U8, Base64Maybe] "draft-eastlake-kitchen-sink";
    Message OPT = 41 "OPT" [] "RFC 6891";
    Data APL = 42 "APL" [Prefixes] "RFC 3123";
    Data DS = 43 "DS" [U16, Algorithm, U8, Hex] "RFC 4034";
    Data SSHFP = 44 "SSHFP" [U8, U8, Hex] "RFC 4255";
    Data IPSECKEY = 45 "IPSECKEY" [U8, Ipseckey] "RFC 4025";
    Data RRSIG = 46 "RRSIG" [TypeNumber, Algorithm, U8, U32, Time, Time, U16, Name(Folded), Base64] "RFC 4034";
    Data NSEC = 47 "NSEC" [Name(Plain), Types] "RFC 4034";
    Data DNSKEY = 48 "DNSKEY" [U16, U8, Algorithm, Base64] "RFC 4034";
    Data DHCID = 49 "DHCID" [Base64] "RFC 4701";
    Data NSEC3 = 50 "NSEC3" [U8, U8, U16, Salt, Base32Hex, Types] "RFC 5155";
    Data NSEC3PARAM = 51 "NSEC3PARAM" [U8, U8, U16, Salt] "RFC 5155";
    Data TLSA = 52 "TLSA" [U8, U8, U8, Hex] "RFC 6698";
    Data SMIMEA = 53 "SMIMEA" [U8, U8, U8, Hex] "RFC 8162";
    Data HIP = 55 "HIP" [Hip] "RFC 8005";
    Data NINFO = 56 "NINFO" [Strings] "draft-reid-dnsext-zs";
    Data RKEY = 57 "RKEY" [U16, U8, Algorithm, Base64] "draft-reid-dnsext-rkey";
    Data TALINK = 58 "TALINK" [Name(Plain), Name(Plain)] "draft-wijngaards-dnsop-trust-history";
    Data CDS = 59 "CDS" [U16, Algorithm, U8, Hex] "RFC 7344";
    Data CDNSKEY = 60 "CDNSKEY" [U16, U8, Algorithm, Base64] "RFC 7344";
    Data OPENPGPKEY = 61 "OPENPGPKEY" [Base64] "RFC 7929";
    Data CSYNC = 62 "CSYNC" [U32, U16, Types] "RFC 7477";
    Data ZONEMD = 63 "ZONEMD" [U32, U8, U8, Hex] "RFC 8976";
    Data SVCB = 64 "SVCB" [U16, Name(Plain), SvcParams] "RFC 9460";
    Data HTTPS = 65 "HTTPS" [U16, Name(Plain), SvcParams] "RFC 9460";
    Data DSYNC = 66 "DSYNC" [TypeNumber, Scheme, U16, Name(Plain)] "RFC 9859";
    Data HHIT = 67 "HHIT" [Base64] "RFC 9886";
    Data BRID = 68 "BRID" [Base64] "RFC 9886";
    Data SPF = 99 "SPF" [Strings] "RFC 7208";
    Data UINFO = 100 "UINFO" [] "IANA";
    Data UID = 101 "UID" [] "IANA";
    Data GID = 102 "GID" [] "IANA";
    Data UNSPEC = 103 "UNSPEC" [] "IANA";
    Data NID = 104 "NID" [U16, Groups64] "RFC 6742";
    Data L32 = 105 "L32" [U16, Ipv4] "RFC 6742";
    Data L64 = 106 "L64" [U16, Groups64] "RFC 6742";
    Data LP = 107 "LP" [U16, Name(Plain)] "RFC 6742";
    Data EUI48 = 108 "EUI48" [Eui48] "RFC 7043";
    Data EUI64 = 109 "EUI64" [Eui64] "RFC 7043";
    Question NXNAME = 128 "NXNAME" [] "RFC 9824";
    Message TKEY = 249 "TKEY" [Name(Plain), Time, Time, U16, ErrorCode, Base64Sized, Base64Sized] "RFC 2930";
    Message TSIG = 250 "TSIG" [Name(Plain), U48, U16, Base64Sized, U16, ErrorCode, Base64Sized] "RFC 8945";
    Question IXFR = 251 "IXFR" [] "RFC 1995";
    Question AXFR = 252 "AXFR" [] "RFC 5936";
    Question MAILB = 253 "MAILB" [] "RFC 1035";
    Question MAILA = 254 "MAILA" [] "RFC 1035";
    Question ANY = 255 "ANY" [] "RFC 8482";
    Data URI = 256 "URI" [U16, U16, Text] "RFC 7553";
    Data CAA = 257 "CAA" [U8, Tag, Text] "RFC 8659";
    Data AVC = 258 "AVC" [Strings] "IANA";
    Data DOA = 259 "DOA" [U32, U32, U8, String, Base64Dash] "draft-durand-doa-over-dns";
    Data AMTRELAY = 260 "AMTRELAY" [U8, Relay] "RFC 8777";
    Data RESINFO = 261 "RESINFO" [Strings] "RFC 9606";
    Data WALLET = 262 "WALLET" [Strings] "IANA";
    Data CLA = 263 "CLA" [Strings] "draft-johnson-dns-ipn-cla";
    Data IPN = 264 "IPN" [U64] "draft-johnson-dns-ipn-cla";
    Data TA = 32768 "TA" [U16, Algorithm, U8, Hex] "IANA";
    Data DLV = 32769 "DLV" [U16, Algorithm, U8, Hex] "RFC 8749";
    Data ALIAS = 65401 "ALIAS" [Name(Plain)] "private use, as PowerDNS has it";
}

/// Types below this are found by index.
const DENSE: usize = 272;
const UNKNOWN: u8 = u8::MAX;

/// From a type's number to its place in the table.
static INDEX: [u8; DENSE] = {
    let mut index = [UNKNOWN; DENSE];
    let mut i = 0;
    while i < TABLE.len() {
        let number = TABLE[i].rtype.0 as usize;
        if number < DENSE {
            index[number] = i as u8;
        }
        i += 1;
    }
    index
};

/// Returns where names are in the data of a type that may be compressed (RFC 3597 §4): how many
/// octets are before them, and how many there are in a row.
pub fn compressed(rtype: Rtype) -> Option<(u8, u8)> {
    let fields = describe(rtype).and_then(|known| known.fields).unwrap_or(&[]);
    let (mut skipped, mut names) = (0, 0);
    for field in fields {
        match field {
            U16 if names == 0 => skipped += 2,
            Name(Compressed) => names += 1,
            _ => break,
        }
    }
    (names > 0).then_some((skipped, names))
}

/// Returns whether records of a type stand in zones: it is neither a QTYPE nor a meta type (RFC
/// 6895 §3.1).
pub fn is_data(rtype: Rtype) -> bool {
    describe(rtype).map_or(!matches!(rtype.0, 0 | 128..=255), |known| matches!(known.kind, Kind::Data))
}

/// Returns what is known about `rtype`. Costs two loads.
pub fn describe(rtype: Rtype) -> Option<&'static Descriptor> {
    match INDEX.get(usize::from(rtype.0)) {
        Some(&at) => TABLE.get(usize::from(at)),
        None => {
            TABLE.iter().rev().take_while(|entry| entry.rtype >= rtype).find(|entry| entry.rtype == rtype)
        }
    }
}
