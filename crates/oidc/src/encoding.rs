//! How octets and texts are written in URLs and tokens.

/// The letters of base64url (RFC 4648 §5).
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns octets in base64url, without padding.
pub fn base64url(octets: &[u8]) -> String {
    let mut out = String::with_capacity(octets.len().div_ceil(3) * 4);
    for chunk in octets.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, octet| word << 8 | u32::from(*octet));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            out.push(char::from(LETTERS[(word >> (18 - 6 * place) & 63) as usize]));
        }
    }
    out
}

/// Reads base64url without padding; `None` if it is anything else, or could be written otherwise.
pub fn unbase64url(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.as_bytes().chunks(4) {
        let mut word = 0_u32;
        for letter in chunk {
            word = word << 6 | LETTERS.iter().position(|known| known == letter)? as u32;
        }
        let octets = chunk.len().checked_sub(1).filter(|octets| *octets > 0)?;
        word <<= 6 * (4 - chunk.len());
        let [_, all @ ..] = word.to_be_bytes();
        let (used, rest) = all.split_at(octets);
        if rest.iter().any(|octet| *octet != 0) {
            return None;
        }
        out.extend_from_slice(used);
    }
    Some(out)
}

/// Writes text so that it is one value in a query or a form.
pub fn url_encoded(text: &str) -> String {
    let octet = |octet: u8| match octet {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(octet).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(octet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_written_in_one_way() {
        // RFC 4648 §10, without the padding.
        for (octets, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64url(octets.as_bytes()), text);
            assert_eq!(unbase64url(text).as_deref(), Some(octets.as_bytes()), "{text}");
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
        for wrong in ["Z", "Zg==", "Zh", "Zm9", "Zm9v\n", "+/8", "Zm9vY"] {
            assert_eq!(unbase64url(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_value_ends_where_it_ends() {
        assert_eq!(url_encoded("a b&c=d/e?ü~"), "a%20b%26c%3Dd%2Fe%3F%C3%BC~");
    }
}
