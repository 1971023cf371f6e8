//! Signs and checks: signatures, proofs of absence, keys and their lives.
//!
//! Never fetches, never reads the clock, never opens a file: octets and times come in as arguments.

#![forbid(unsafe_code)]

pub mod anchors;
pub mod chain;
pub mod keys;
pub mod proof;
pub mod rollover;
pub mod tree;

mod algorithm;
mod bitmap;
mod check;
mod der;
mod dnskey;
mod ds;
mod nsec3;
mod parsed;
mod rrset;
mod rrsig;
mod rsa;
mod secret;
mod sign;
mod times;
mod verify;
mod zonemd;
mod zonemd_proof;

pub use algorithm::{Algorithm, Algorithms};
pub use bitmap::{has_type, write_bitmap};
pub use check::check_tree;
pub use dnskey::{Dnskey, ENTRY_POINT, REVOKED, ZONE_KEY, write_rsa};
pub use ds::{DigestType, Ds, write_delete_cdnskey, write_delete_cds};
pub use nsec3::{Nsec3Hash, Nsec3Parameters};
pub use parsed::{Mismatch, ParsedKey, PublicKey, verify_octets};
pub use rrset::Rrset;
pub use rrsig::Rrsig;
pub use secret::{Holder, KeySize, SecretKey, Unusable};
pub use sign::{Denial, KeyUse, Part, Signed, SignedBy, Signer, SigningKey, Unsignable, Validity, flags_of};
pub use times::{parse_compact, parse_rfc3339, write_compact};
pub use verify::{
    Bogus, Budget, Failure, SIGNATURES_MAX, Skew, Unverified, Verified, Verifier, verify_rrset,
};
pub use zonemd::{ZonemdHash, ZonemdScheme, ZonemdVerdict, check_zonemd, zonemd_digest};
pub use zonemd_proof::{ZonemdUnproved, check_signed_zonemd};
