//! Signatures beside a file: PKCS #7, now called CMS (RFC 5652), by a certificate of S/MIME.
//!
//! # Limitations
//!
//! Certificates that were withdrawn are not known, and those of the authority itself do not expire.

use aws_lc_rs::digest;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// Elements that stand within each other.
const DEPTH_MAX: usize = 16;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// `[0]`, with something within.
const FIRST: u8 = 0xa0;
/// `[3]`, with something within.
const FOURTH: u8 = 0xa3;

/// `id-data`, 1.2.840.113549.1.7.1.
const DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
/// `id-signedData`, 1.2.840.113549.1.7.2.
const SIGNED_DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";
/// `id-contentType`, 1.2.840.113549.1.9.3.
const CONTENT_TYPE: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03";
/// `id-messageDigest`, 1.2.840.113549.1.9.4.
const MESSAGE_DIGEST: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04";
/// `emailAddress`, 1.2.840.113549.1.9.1.
const EMAIL: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01";
/// `id-ce-keyUsage`, 2.5.29.15.
const KEY_USAGE: &[u8] = b"\x55\x1d\x0f";
/// `id-kp-emailProtection`, 1.3.6.1.5.5.7.3.4.
const EMAIL_PROTECTION: &[u8] = b"\x2b\x06\x01\x05\x05\x07\x03\x04";
/// `digitalSignature` in the first octet of the usages of a key.
const DIGITAL_SIGNATURE: u8 = 0x80;
/// `id-sha256`, `id-sha384` and `id-sha512`.
const DIGESTS: [(&[u8], &digest::Algorithm); 3] = [
    (b"\x60\x86\x48\x01\x65\x03\x04\x02\x01", &digest::SHA256),
    (b"\x60\x86\x48\x01\x65\x03\x04\x02\x02", &digest::SHA384),
    (b"\x60\x86\x48\x01\x65\x03\x04\x02\x03", &digest::SHA512),
];

/// Whose signatures are believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Believed<'a> {
    /// The certificates of authorities.
    pub(super) authorities: &'a [CertificateDer<'a>],
    /// The mail address of the signer; anybody whom an authority certifies if it is empty.
    pub(super) signer: &'a str,
    pub(super) now: UnixTime,
}

impl Believed<'_> {
    /// Checks that somebody believed has signed this.
    ///
    /// # Errors
    ///
    /// Why nobody has.
    pub(super) fn check(&self, data: &[u8], signature: &[u8]) -> Result<(), String> {
        let signed = Signed::read(signature).ok_or("the signature cannot be read")?;
        let mut why = "nobody signed it".to_owned();
        for signer in &signed.signers {
            match self.check_one(data, signer, &signed.certificates) {
                Ok(()) => return Ok(()),
                Err(found) => why = found,
            }
        }
        Err(why)
    }

    fn check_one(
        &self,
        data: &[u8],
        signer: &Signer<'_>,
        certificates: &[CertificateDer<'_>],
    ) -> Result<(), String> {
        let message = signer.message(data).ok_or("the signature is one of other data")?;
        let algorithms = default_provider().signature_verification_algorithms.all;
        let mut why = "the signature is wrong".to_owned();
        for certificate in certificates {
            let Ok(parsed) = EndEntityCert::try_from(certificate) else { continue };
            let is_by_it =
                algorithms.iter().any(|it| parsed.verify_signature(*it, &message, signer.signature).is_ok());
            if !is_by_it {
                continue;
            }
            match self.check_certificate(certificate, &parsed, certificates, algorithms) {
                Ok(()) => return Ok(()),
                Err(found) => why = found,
            }
        }
        Err(why)
    }

    /// Checks that whoever has a certificate is believed.
    fn check_certificate(
        &self,
        certificate: &CertificateDer<'_>,
        parsed: &EndEntityCert<'_>,
        others: &[CertificateDer<'_>],
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), String> {
        let facts = Facts::read(certificate).ok_or("the signer's certificate cannot be read")?;
        if !self.signer.is_empty() && !facts.emails.contains(&self.signer.as_bytes()) {
            return Err(format!("the signer is not {}", self.signer));
        }
        if !facts.may_sign {
            return Err("the signer's certificate is not one for signatures".to_owned());
        }
        let anchors: Result<Vec<TrustAnchor<'_>>, _> =
            self.authorities.iter().map(|it| anchor_from_trusted_cert(it)).collect();
        let anchors = anchors.map_err(|error| format!("an authority's certificate: {error}"))?;
        let usage = KeyUsage::required_if_present(EMAIL_PROTECTION);
        parsed
            .verify_for_usage(algorithms, &anchors, others, self.now, usage, None, None)
            .map(|_| ())
            .map_err(|error| format!("the signer's certificate: {error}"))
    }
}

/// What is read of a signature.
struct Signed<'a> {
    certificates: Vec<CertificateDer<'a>>,
    signers: Vec<Signer<'a>>,
}

impl<'a> Signed<'a> {
    fn read(octets: &'a [u8]) -> Option<Self> {
        let mut outer = Elements(Elements(octets).expect(SEQUENCE)?);
        if outer.expect(OID)? != SIGNED_DATA {
            return None;
        }
        let mut inner = Elements(Elements(outer.expect(FIRST)?).expect(SEQUENCE)?);
        inner.expect(INTEGER)?;
        inner.expect(SET)?;
        // What is signed stands beside it.
        inner.expect(SEQUENCE)?;
        let mut read = Self { certificates: Vec::new(), signers: Vec::new() };
        while let Some(part) = inner.next(DEPTH_MAX) {
            let mut within = Elements(part.contents);
            match part.tag {
                FIRST => {
                    while let Some(found) = within.next(DEPTH_MAX) {
                        read.certificates.push(CertificateDer::from(found.whole));
                    }
                }
                SET => {
                    while let Some(found) = within.next(DEPTH_MAX) {
                        read.signers.push(Signer::read(found.contents)?);
                    }
                }
                _ => {}
            }
        }
        Some(read)
    }
}

/// One who signed.
struct Signer<'a> {
    digest: &'static digest::Algorithm,
    /// What is said of the data and signed in its place, if anything is.
    attributes: Option<&'a [u8]>,
    signature: &'a [u8],
}

impl<'a> Signer<'a> {
    fn read(contents: &'a [u8]) -> Option<Self> {
        let mut parts = Elements(contents);
        parts.expect(INTEGER)?;
        // Who it is: each certificate is tried.
        parts.next(DEPTH_MAX)?;
        let name = Elements(parts.expect(SEQUENCE)?).expect(OID)?;
        let (_, digest) = DIGESTS.into_iter().find(|(known, _)| *known == name)?;
        let attributes = parts.expect(FIRST);
        parts.expect(SEQUENCE)?;
        let signature = parts.expect(OCTET_STRING)?;
        Some(Self { digest, attributes, signature })
    }

    /// Returns what the signature is of, if that says that it is of this data.
    fn message(&self, data: &[u8]) -> Option<Vec<u8>> {
        let Some(attributes) = self.attributes else { return Some(data.to_owned()) };
        let (mut is_data, mut is_this) = (false, false);
        let mut all = Elements(attributes);
        while let Some(found) = all.next(DEPTH_MAX) {
            let mut attribute = Elements(found.contents);
            let name = attribute.expect(OID)?;
            let value = attribute.expect(SET)?;
            match name {
                CONTENT_TYPE => is_data = Elements(value).expect(OID)? == DATA,
                MESSAGE_DIGEST => {
                    let said = Elements(value).expect(OCTET_STRING)?;
                    is_this = said == digest::digest(self.digest, data).as_ref();
                }
                _ => {}
            }
        }
        // They are signed as the set that they are (RFC 5652 §5.4).
        (is_data && is_this).then(|| [&[SET], &len(attributes.len())[..], attributes].concat())
    }
}

/// What is read of a certificate that others do not tell.
struct Facts<'a> {
    emails: Vec<&'a [u8]>,
    may_sign: bool,
}

impl<'a> Facts<'a> {
    fn read(certificate: &'a [u8]) -> Option<Self> {
        let mut parts = Elements(Elements(Elements(certificate).expect(SEQUENCE)?).expect(SEQUENCE)?);
        let mut facts = Self { emails: Vec::new(), may_sign: false };
        parts.expect(FIRST)?;
        parts.expect(INTEGER)?;
        // The algorithm, the issuer, and for how long it is.
        for _ in 0..3 {
            parts.expect(SEQUENCE)?;
        }
        let mut subject = Elements(parts.expect(SEQUENCE)?);
        while let Some(set) = subject.next(DEPTH_MAX) {
            let mut pairs = Elements(set.contents);
            while let Some(pair) = pairs.next(DEPTH_MAX) {
                let mut pair = Elements(pair.contents);
                if pair.expect(OID)? == EMAIL {
                    facts.emails.push(pair.next(DEPTH_MAX)?.contents);
                }
            }
        }
        while let Some(part) = parts.next(DEPTH_MAX) {
            if part.tag != FOURTH {
                continue;
            }
            let mut extensions = Elements(Elements(part.contents).expect(SEQUENCE)?);
            while let Some(extension) = extensions.next(DEPTH_MAX) {
                let mut extension = Elements(extension.contents);
                if extension.expect(OID)? != KEY_USAGE {
                    continue;
                }
                let mut value = extension.next(DEPTH_MAX)?;
                if value.tag != OCTET_STRING {
                    value = extension.next(DEPTH_MAX)?;
                }
                let usages = Elements(value.contents).expect(BIT_STRING)?;
                facts.may_sign = usages.get(1).is_some_and(|first| first & DIGITAL_SIGNATURE != 0);
            }
        }
        Some(facts)
    }
}

/// Elements of ASN.1 that follow each other, in BER.
struct Elements<'a>(&'a [u8]);

struct Element<'a> {
    tag: u8,
    contents: &'a [u8],
    /// With what stands before and behind it.
    whole: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Takes the next one, if it is of this kind.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        if *self.0.first()? != tag {
            return None;
        }
        Some(self.next(DEPTH_MAX)?.contents)
    }

    /// Takes the next one; elements may stand so deep within it.
    fn next(&mut self, depth: usize) -> Option<Element<'a>> {
        let all = self.0;
        let (&tag, rest) = all.split_first()?;
        let (&first, rest) = rest.split_first()?;
        // Tags of several octets are used by nothing here.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (contents, behind) = match first {
            0x80 => {
                let mut within = Self(rest);
                loop {
                    if let Some(behind) = within.0.strip_prefix(&[0, 0]) {
                        break (&rest[..rest.len() - within.0.len()], behind);
                    }
                    within.next(depth.checked_sub(1)?)?;
                }
            }
            0..0x80 => rest.split_at_checked(first.into())?,
            _ => {
                let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                if octets.len() > 4 {
                    return None;
                }
                let len = octets.iter().fold(0, |len: usize, octet| len << 8 | usize::from(*octet));
                rest.split_at_checked(len)?
            }
        };
        self.0 = behind;
        Some(Element { tag, contents, whole: &all[..all.len() - behind.len()] })
    }
}

/// Returns a length as DER has it.
fn len(len: usize) -> Vec<u8> {
    let octets = len.to_be_bytes();
    let octets = &octets[len.leading_zeros() as usize / 8..];
    match len {
        0..0x80 => vec![len as u8],
        _ => [&[0x80 | octets.len() as u8], octets].concat(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    macro_rules! fixture {
        ($name:literal) => {
            include_bytes!(concat!("../../../../../tests/fixtures/anchor/", $name)).as_slice()
        };
    }

    const XML: &[u8] = fixture!("anchors.xml");
    /// 2030-01-01.
    const THEN: u64 = 1_893_456_000;

    fn checked(signer: &str, at: u64, data: &[u8], signature: &[u8]) -> Result<(), String> {
        let authority = CertificateDer::from_pem_slice(fixture!("ca.pem")).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(at));
        Believed { authorities: &[authority], signer, now }.check(data, signature)
    }

    #[test]
    fn a_signature_is_believed_of_the_right_signer_alone() {
        let of = |signature| checked("dnssec@iana.org", THEN, XML, signature);
        let why = |signature| of(signature).unwrap_err();
        for right in [fixture!("good.p7s"), fixture!("plain.p7s"), fixture!("stream.p7s")] {
            assert_eq!(of(right), Ok(()));
            assert_eq!(checked("", THEN, XML, right), Ok(()));
            let other = [XML, b"\n"].concat();
            assert!(checked("dnssec@iana.org", THEN, &other, right).is_err());
            assert!(checked("dnssec@iana.org", 0, XML, right).unwrap_err().contains("NotValidYet"));
            assert!(checked("dnssec@iana.org", THEN * 4, XML, right).unwrap_err().contains("Expired"));
        }
        assert_eq!(why(fixture!("mail.p7s")), "the signer is not dnssec@iana.org");
        assert_eq!(checked("", THEN, XML, fixture!("mail.p7s")), Ok(()));
        assert_eq!(why(fixture!("usage.p7s")), "the signer's certificate is not one for signatures");
        assert!(why(fixture!("web.p7s")).contains("RequiredEkuNotFound"), "{}", why(fixture!("web.p7s")));
        assert!(why(fixture!("strange.p7s")).contains("UnknownIssuer"));
    }

    #[test]
    fn no_octet_of_a_signature_can_be_another_where_it_counts() {
        for right in [fixture!("good.p7s"), fixture!("stream.p7s")] {
            for len in 0..right.len() - 64 {
                assert!(checked("dnssec@iana.org", THEN, XML, &right[..len]).is_err(), "{len}");
            }
            // The signature stands at the end; zeros may be behind it.
            for at in right.len() - 200..right.len() - 32 {
                let mut wrong = right.to_owned();
                wrong[at] ^= 0x10;
                assert!(checked("dnssec@iana.org", THEN, XML, &wrong).is_err(), "{at}");
            }
        }
    }

    #[test]
    fn elements_end_where_they_say() {
        assert!(Elements(&[0x30, 0x80].repeat(1000)).next(DEPTH_MAX).is_none());
        assert!(Elements(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0]).next(DEPTH_MAX).is_none());
        assert!(Elements(&[0x30, 0x85, 0, 0, 0, 0, 1, 0]).next(DEPTH_MAX).is_none());
        let found = Elements(&[0x30, 0x80, 4, 1, 7, 0, 0, 9]).next(DEPTH_MAX).unwrap();
        assert_eq!((found.contents, found.whole.len()), (&[4, 1, 7][..], 7));
        assert_eq!([len(5), len(200), len(1000)], [vec![5], vec![0x81, 200], vec![0x82, 3, 232]]);
    }
}
