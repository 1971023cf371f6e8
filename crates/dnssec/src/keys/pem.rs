//! PEM (RFC 7468).

use std::fmt::Write as _;

use wire::text::{read_base64, write_base64};
use zeroize::Zeroizing;

use super::KeyFault;
use crate::algorithm::Algorithm;
use crate::secret::{SecretKey, Unusable};

/// Labels of the private keys that are read.
const LABELS: [&str; 3] = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"];

/// Reads the first private key of a text. RSA keys do not say their algorithm, so `algorithm` does.
pub fn read(text: &str, algorithm: Option<Algorithm>) -> Result<SecretKey, KeyFault> {
    let mut lines = text.lines().enumerate();
    let mut label = None;
    let mut base64 = Zeroizing::new(String::with_capacity(text.len()));
    let mut begin = 0;
    for (index, line) in &mut lines {
        let line = line.trim();
        if let Some(found) = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----")) {
            if found == "ENCRYPTED PRIVATE KEY" {
                return Err(KeyFault::new(index + 1, "the key is encrypted; decrypt it first"));
            }
            label = LABELS.iter().find(|known| **known == found);
            begin = index + 1;
        } else if line.starts_with("-----END ") {
            if label.is_some() {
                let der = read_base64(base64.as_bytes())
                    .map(Zeroizing::new)
                    .ok_or_else(|| KeyFault::new(begin, "the key is not in Base64"))?;
                return SecretKey::from_der(&der, algorithm)
                    .map_err(|unusable| KeyFault { line: begin, ..KeyFault::from(unusable) });
            }
        } else if label.is_some() {
            if line.contains(':') {
                return Err(KeyFault::new(index + 1, "the key is encrypted; decrypt it first"));
            }
            base64.push_str(line);
        }
    }
    Err(KeyFault::new(0, "expected a private key in PEM (PKCS #8)"))
}

/// Returns a key in PKCS#8 as PEM.
pub fn write(key: &SecretKey) -> Result<Zeroizing<String>, Unusable> {
    let der = key.to_pkcs8()?;
    let mut base64 = Zeroizing::new(String::with_capacity(der.len() * 2));
    let _ = write_base64(&mut *base64, &der);
    let mut text = Zeroizing::new(String::with_capacity(base64.len() * 2 + 64));
    text.push_str("-----BEGIN PRIVATE KEY-----\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        let _ = writeln!(text, "{line}");
        rest = after;
    }
    text.push_str("-----END PRIVATE KEY-----\n");
    Ok(text)
}
