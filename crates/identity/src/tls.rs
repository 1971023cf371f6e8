//! TLS as a client: the identity that an upstream must prove before it is sent anything.
//!
//! Never sends a query to a server that has not proved what was demanded of it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use plan::tls::{ClientTls, Proof, Roots, pin_text};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};

use wire::calendar::existing_day;

use crate::registry::{Interned, Registry};

/// Addresses whose last error is remembered, so that a log says each thing once.
const LAST_ERRORS_MAX: usize = 64;

/// TLS to servers of one plan, for all workers: it remembers sessions, and what was last wrong.
pub struct Client {
    /// What servers must prove.
    pub plan: ClientTls,
    config: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
    last_errors: LastErrors,
}

/// The error that was last logged of each address: all workers meet the same.
#[derive(Debug, Default)]
pub struct LastErrors(Mutex<BTreeMap<SocketAddr, String>>);

impl LastErrors {
    /// Notes an error of `address`; returns whether it is another than before.
    pub fn is_new(&self, address: SocketAddr, error: &str) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.get(&address).is_some_and(|last| last == error) {
            return false;
        }
        if logged.len() >= LAST_ERRORS_MAX {
            logged.clear();
        }
        logged.insert(address, error.to_owned());
        true
    }

    /// Notes that `address` has proved what it must; returns whether there was an error before.
    pub fn resolve(&self, address: SocketAddr) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&address).is_some()
    }
}

impl Interned for Client {
    type Plan = ClientTls;

    fn plan(&self) -> &ClientTls {
        &self.plan
    }

    fn new(plan: &ClientTls, _: &Registry) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = Arc::new(Verifier::new(plan, Arc::clone(&provider)));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the library's own provider has what its own versions need");
        let demand: Arc<dyn ServerCertVerifier> = Arc::<Verifier>::clone(&verifier);
        let builder = builder.dangerous().with_custom_certificate_verifier(demand);
        let mut config = match &plan.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain().to_vec(), identity.key().clone_key())
                .expect("an identity is a certificate and its key"),
        };
        config.alpn_protocols.clone_from(&plan.protocols);
        config.enable_early_data = plan.early_data;
        Self { plan: plan.clone(), config: Arc::new(config), verifier, last_errors: LastErrors::default() }
    }
}

impl Client {
    /// Returns the settings of connections, sessions among them.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Returns what was last wrong with it.
    pub fn last_errors(&self) -> &LastErrors {
        &self.last_errors
    }

    /// Returns why a certificate was last refused, where the transport does not pass that on.
    pub fn last_refusal(&self) -> Option<String> {
        self.verifier.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Says why a connection could not be secured, for a person.
pub fn explain(error: &io::Error) -> String {
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return error.to_string();
    };
    explain_tls(error)
}

/// Says what a TLS error means, for a person.
pub fn explain_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(cause) => explain_certificate(cause),
        rustls::Error::AlertReceived(alert) => format!("the server refused: TLS alert {alert:?}"),
        rustls::Error::NoApplicationProtocol => "the server does not speak this protocol (ALPN)".to_owned(),
        other => format!("TLS: {other}"),
    }
}

fn explain_certificate(cause: &CertificateError) -> String {
    match cause {
        CertificateError::Expired => "the server's certificate has expired".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            format!("the server's certificate expired {} ago", span(time.as_secs(), not_after.as_secs()))
        }
        CertificateError::NotValidYet => "the server's certificate is not valid yet".to_owned(),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the server's certificate is not valid for another {}: is this machine's clock right?",
            span(not_before.as_secs(), time.as_secs())
        ),
        CertificateError::NotValidForName => "the server's certificate is for another name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let presented = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            format!("the server's certificate is for {presented}, not for {}", expected.to_str())
        }
        CertificateError::UnknownIssuer => {
            "the server's certificate is from an authority that is not trusted".to_owned()
        }
        CertificateError::BadSignature => {
            "the server's certificate is not signed by the authority that it names".to_owned()
        }
        CertificateError::Other(OtherError(other)) => other.to_string(),
        other => format!("the server's certificate cannot be used: {other}"),
    }
}

/// Returns a name without what the library puts around it: `DnsName("dns.example")`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
    inner.map_or(name, |inner| inner.trim_matches('"'))
}

/// Says how long `later` is after `earlier`, both in seconds.
pub fn span(later: u64, earlier: u64) -> String {
    let seconds = later.saturating_sub(earlier);
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// What a certificate was refused for, where the library has no word for it.
#[derive(Debug)]
enum Refused {
    SelfSigned,
    Authority,
    OtherKey([u8; 32]),
    OtherChain,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SelfSigned => {
                f.write_str("the server's certificate is self-signed, and nobody vouches for it")
            }
            Self::Authority => f.write_str(
                "the server shows the certificate of an authority as its own; to trust it, give it as \"roots\", or its key under \"pins\"",
            ),
            Self::OtherKey(key) => {
                write!(f, "the server has another key than those pinned: {}", pin_text(key))
            }
            Self::OtherChain => {
                f.write_str("the server's certificate is not from an authority that its stamp names")
            }
        }
    }
}

impl std::error::Error for Refused {}

/// Checks what servers prove.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    demand: Demand,
    /// Certificates of which a chain must have one, if there are any.
    certificates: Vec<[u8; 32]>,
    /// Why a certificate was last refused.
    refusal: Mutex<Option<String>>,
}

#[derive(Debug)]
enum Demand {
    /// A chain from an authority; or one of these certificates itself, which whoever configured
    /// them trusts.
    Chain(Arc<WebPkiServerVerifier>, Arc<[CertificateDer<'static>]>),
    Keys(Vec<[u8; 32]>),
    Nothing,
}

impl Verifier {
    fn new(plan: &ClientTls, provider: Arc<CryptoProvider>) -> Self {
        let demand = match &plan.proof {
            Proof::Authorities(roots) => {
                let mut store = RootCertStore::empty();
                let own = match roots {
                    Roots::Mozilla => {
                        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().map(TrustAnchor::to_owned));
                        Arc::default()
                    }
                    Roots::Own(authorities) => {
                        store.add_parsable_certificates(authorities.certificates().iter().cloned());
                        Arc::clone(authorities.certificates())
                    }
                };
                let builder =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider));
                Demand::Chain(builder.build().expect("one authority can be used"), own)
            }
            Proof::Keys(keys) => Demand::Keys(keys.clone()),
            Proof::None => Demand::Nothing,
        };
        Self { provider, demand, certificates: plan.certificates.clone(), refusal: Mutex::default() }
    }
}

impl Verifier {
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.demand {
            Demand::Nothing => Ok(ServerCertVerified::assertion()),
            Demand::Keys(keys) => {
                let certificate = webpki::EndEntityCert::try_from(end_entity).map_err(|_| bad_encoding())?;
                let key = sha256(&certificate.subject_public_key_info());
                if keys.contains(&key) {
                    Ok(ServerCertVerified::assertion())
                } else {
                    Err(refused(Refused::OtherKey(key)))
                }
            }
            Demand::Chain(chain, own) => {
                let checked =
                    chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
                match checked {
                    Ok(_) => {}
                    Err(error) if is_authority(&error) => {
                        // `openssl req -x509` makes certificates that are their own authority.
                        if !own.iter().any(|trusted| trusted.as_ref() == end_entity.as_ref()) {
                            return Err(refused(Refused::Authority));
                        }
                        check_itself(end_entity, server_name, now)?;
                    }
                    Err(rustls::Error::InvalidCertificate(
                        CertificateError::UnknownIssuer | CertificateError::BadSignature,
                    )) if is_self_signed(end_entity) => return Err(refused(Refused::SelfSigned)),
                    Err(other) => return Err(other),
                }
                let mut shown = std::iter::once(end_entity).chain(intermediates);
                let is_known = |certificate: &CertificateDer<'_>| {
                    to_be_signed(certificate)
                        .is_some_and(|signed| self.certificates.contains(&sha256(signed)))
                };
                if self.certificates.is_empty() || shown.any(is_known) {
                    Ok(ServerCertVerified::assertion())
                } else {
                    Err(refused(Refused::OtherChain))
                }
            }
        }
    }
}

fn refused(cause: Refused) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(cause))).into()
}

fn bad_encoding() -> rustls::Error {
    CertificateError::BadEncoding.into()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let checked = self.check(end_entity, intermediates, server_name, ocsp_response, now);
        if let Err(error) = &checked {
            *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(explain_tls(error));
        }
        checked
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns whether a certificate was refused because it is an authority's.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) = error else {
        return false;
    };
    matches!(cause.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Checks a certificate that is trusted itself: whether it is for this name, and for this time.
fn check_itself(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<(), rustls::Error> {
    let parsed = webpki::EndEntityCert::try_from(certificate).map_err(|_| bad_encoding())?;
    parsed.verify_is_valid_for_subject_name(name).map_err(|error| match error {
        webpki::Error::CertNotValidForName(context) => {
            let (expected, presented) = (context.expected, context.presented);
            CertificateError::NotValidForNameContext { expected, presented }
        }
        _ => CertificateError::NotValidForName,
    })?;
    let (not_before, not_after) = validity(certificate).ok_or_else(bad_encoding)?;
    let at = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    if now.as_secs() < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before: at(not_before) }.into());
    }
    if now.as_secs() > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after: at(not_after) }.into());
    }
    Ok(())
}

/// Returns the first and the last second of a certificate's life (RFC 5280 §4.1.2.5).
fn validity(certificate: &[u8]) -> Option<(u64, u64)> {
    let (_, certificate, _) = value(certificate)?;
    let (_, signed, _) = value(certificate)?;
    // Version (which the first one lacks), serial number, algorithm, issuer, validity.
    let (tag, _, rest) = value(signed)?;
    let rest = if tag == 0xa0 { value(rest)?.2 } else { rest };
    let (_, _, rest) = value(rest)?;
    let (_, _, rest) = value(rest)?;
    let (_, validity, _) = value(rest)?;
    let (tag, not_before, rest) = value(validity)?;
    let not_before = moment(tag, not_before)?;
    let (tag, not_after, _) = value(rest)?;
    Some((not_before, moment(tag, not_after)?))
}

/// Reads one DER value: its tag, its content, and what follows it.
fn value(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let &tag = der.first()?;
    let (header, octets) = length(der)?;
    Some((tag, der.get(header..octets)?, der.get(octets..)?))
}

/// Reads a UTCTime or a GeneralizedTime in the form that certificates have.
fn moment(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    let number = |from: usize, count: usize| {
        let digits = std::str::from_utf8(digits.get(from..from + count)?).ok()?;
        digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse::<u32>().ok())?
    };
    let (year, at) = match (tag, digits.len()) {
        // RFC 5280 §4.1.2.5.1: two digits are of 1950 to 2049.
        (0x17, 12) => (number(0, 2).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, 2),
        (0x18, 14) => (number(0, 4)?, 4),
        _ => return None,
    };
    let day = if year < 1970 { 0 } else { existing_day(year, number(at, 2)?, number(at + 2, 2)?)? };
    let (hour, minute, second) = (number(at + 4, 2)?, number(at + 6, 2)?, number(at + 8, 2)?);
    Some(u64::from(day) * 86_400 + u64::from(hour) * 3600 + u64::from(minute) * 60 + u64::from(second))
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut hash = [0; 32];
    for (to, from) in hash.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    hash
}

/// Returns the part of a certificate that its issuer signs, the first of the sequence that it is
/// (RFC 5280 §4.1).
fn to_be_signed(certificate: &[u8]) -> Option<&[u8]> {
    let (header, octets) = element(certificate)?;
    let content = certificate.get(header..octets)?;
    let (_, octets) = element(content)?;
    content.get(..octets)
}

/// Reads the head of a DER sequence; returns the octets of the head, and of all.
fn element(der: &[u8]) -> Option<(usize, usize)> {
    const SEQUENCE: u8 = 0x30;
    if *der.first()? == SEQUENCE { length(der) } else { None }
}

/// Reads the head of any DER value in the same way.
fn length(der: &[u8]) -> Option<(usize, usize)> {
    let (&[_, first], rest) = der.split_first_chunk::<2>()?;
    if first < 0x80 {
        return Some((2, 2 + usize::from(first)));
    }
    // Longer ones say in how many octets the length follows; certificates are far below 16 MiB.
    let count = usize::from(first & 0x7f);
    let length = rest.get(..count).filter(|_| (1..=3).contains(&count))?;
    let length = length.iter().fold(0, |length, &octet| length << 8 | usize::from(octet));
    Some((2 + count, 2 + count + length))
}

/// Returns whether a certificate names itself as its issuer.
fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate).is_ok_and(|it| it.issuer() == it.subject())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_the_first_part_of_a_certificate() {
        assert_eq!(to_be_signed(b"\x30\x05\x30\x01\x07\x05\x00"), Some(&b"\x30\x01\x07"[..]));
        let long = [&b"\x30\x82\x01\x04\x30\x82\x01\x00"[..], &[7; 256]].concat();
        assert_eq!(to_be_signed(&long), Some(&long[4..]));
        for bad in [&b""[..], b"\x30", b"\x31\x00", b"\x30\x02\x30\x05", b"\x30\x84\0\0\0\0", b"\x30\x80\0\0"]
        {
            assert_eq!(to_be_signed(bad), None, "{bad:02x?}");
        }
    }

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        assert_eq!(span(100, 99), "1 second");
        assert_eq!(span(10_000, 400), "2 hours");
        assert_eq!(span(1_000_000, 0), "11 days");
        assert_eq!(span(0, 5), "0 seconds");
    }

    #[test]
    fn the_same_error_is_new_once() {
        let errors = LastErrors::default();
        let one: SocketAddr = "192.0.2.1:853".parse().expect("an address");
        let two: SocketAddr = "192.0.2.2:853".parse().expect("an address");
        assert!(errors.is_new(one, "expired"));
        assert!(!errors.is_new(one, "expired"));
        assert!(errors.is_new(two, "expired"));
        assert!(errors.is_new(one, "refused"));
        assert!(errors.resolve(one) && !errors.resolve(one));
        assert!(errors.is_new(one, "refused"));
    }
}
