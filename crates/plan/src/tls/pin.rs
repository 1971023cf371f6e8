//! Keys by their hashes, as settings have them (RFC 7858 §4.2).

/// Writes a key's hash as it stands in settings: `sha256/` and Base64.
pub fn pin_text(key: &[u8; 32]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "sha256/".to_owned();
    for chunk in key.chunks(3) {
        let group = chunk.iter().fold(0, |group: u32, &octet| group << 8 | u32::from(octet));
        let group = group << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sextet = group >> (18 - 6 * place) & 63;
            let letter = ALPHABET.get(sextet as usize).copied().unwrap_or(b'=');
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Reads the Base64 (RFC 4648 §4) of a key's hash.
pub fn pin(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_suffix('=').filter(|digits| digits.len() == 43)?;
    let mut key = [0; 32];
    let mut octets = key.iter_mut();
    let (mut bits, mut count) = (0u32, 0);
    for letter in digits.bytes() {
        let sextet = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(sextet), count + 6);
        if count >= 8 {
            count -= 8;
            *octets.next()? = (bits >> count) as u8;
            bits &= (1 << count) - 1;
        }
    }
    // What is left over are two bits that nothing was put into.
    (bits == 0).then_some(key)
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::digest::{SHA256, digest};

    use super::*;

    #[test]
    fn a_key_is_written_as_it_is_read() {
        // The SHA-256 of nothing, from FIPS 180-4's examples.
        let key = digest(&SHA256, b"");
        let key: [u8; 32] = key.as_ref().try_into().expect("32 octets");
        assert_eq!(pin_text(&key), "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(pin("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="), Some(key));
        assert_eq!(pin("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV="), None, "bits are left over");
    }
}
