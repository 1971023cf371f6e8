//! Policies that sign zones.

use std::sync::Arc;

use diagnostic::At;
use plan::signing::SigningPolicy;

use super::RemoteSettings;

/// A policy that zones name.
#[derive(Clone, Debug, PartialEq)]
pub struct SigningSettings {
    /// How zones are signed, and which addresses are sent DS.
    pub policy: Arc<SigningPolicy>,
    /// Settings of the servers of a parent that are sent DS.
    pub ds_push: Vec<At<RemoteSettings>>,
}

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
