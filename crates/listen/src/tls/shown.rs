//! The certificate that a client has shown, as policy asks for it.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use engine::{ConnectionText, Said};
use plan::tls::CertificateFacts;
use rustls::pki_types::CertificateDer;

/// What policy may ask about the certificate that a client has shown.
#[derive(Clone, Debug)]
pub(crate) struct ShownCertificate {
    subject: String,
    names: Vec<String>,
    fingerprint: String,
}

impl ShownCertificate {
    /// Reads the first of a chain, which the handshake has found good.
    pub(crate) fn of(chain: Option<&[CertificateDer<'_>]>) -> Option<Self> {
        let first = chain?.first()?;
        let CertificateFacts { subject, names, .. } = CertificateFacts::parse(first)?;
        let mut fingerprint = String::new();
        for octet in digest(&SHA256, first).as_ref() {
            let _ = write!(fingerprint, "{octet:02x}");
        }
        Some(Self { subject, names, fingerprint })
    }

    /// Returns what there is to say about `text`; nothing without a certificate.
    pub(crate) fn say<'t>(shown: Option<&'t Self>, text: &ConnectionText) -> Said<'t> {
        let Some(shown) = shown else { return Said::Nothing };
        match text {
            ConnectionText::CertificateSubject => Said::One(shown.subject.as_bytes()),
            ConnectionText::CertificateNames => Said::Several(&shown.names),
            ConnectionText::CertificateFingerprint => Said::One(shown.fingerprint.as_bytes()),
            ConnectionText::ServerName | ConnectionText::Path | ConnectionText::Header(_) => Said::Nothing,
        }
    }
}
