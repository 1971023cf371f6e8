//! Names that say which keys of the root are trusted: to the root (RFC 8145 §5), and to whoever
//! wants to know (RFC 8509).

use std::fmt::Write as _;

use wire::name::LABEL_OCTETS_MAX;
use wire::{Name, NameBuf};

/// How the label of a key tag query begins.
const QUERY: &[u8] = b"_ta-";
/// Tags that fit into the label of a key tag query.
const TAGS_MAX: usize = (LABEL_OCTETS_MAX - QUERY.len() + 1) / 5;

/// Returns the name that tells a zone which keys of it are trusted, to be asked for with type NULL:
/// `_ta-4f66-9728`. Tags come ascending; those that the label has no room for are left out. `None`
/// without tags, or if the name would be too long.
pub fn key_tag_query(zone: Name<'_>, tags: &[u16]) -> Option<NameBuf> {
    let mut tags: Vec<u16> = tags.to_vec();
    tags.sort_unstable();
    tags.dedup();
    let mut label = String::from("_ta");
    for tag in tags.iter().take(TAGS_MAX) {
        write!(label, "-{tag:04x}").ok()?;
    }
    let row = [&[label.len() as u8], label.as_bytes()].concat();
    NameBuf::below(&row, zone).ok().filter(|_| !tags.is_empty())
}

/// Reads the tags from a name that [`key_tag_query`] may have made, whatever its zone.
pub fn parse_key_tag_query(qname: Name<'_>) -> Option<Vec<u16>> {
    let (start, tags) = qname.labels().next()?.split_at_checked(QUERY.len())?;
    if !start.eq_ignore_ascii_case(QUERY) {
        return None;
    }
    tags.split(|&octet| octet == b'-').map(hex).collect()
}

fn hex(digits: &[u8]) -> Option<u16> {
    let is_tag = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_tag)?;
    u16::from_str_radix(digits, 16).ok()
}

/// What somebody wants to know who asks for a name with a root key sentinel label (RFC 8509 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sentinel {
    /// `root-key-sentinel-is-ta-NNNNN`: an answer if the key with this tag is trusted.
    IsTrusted(u16),
    /// `root-key-sentinel-not-ta-NNNNN`: an answer if it is not.
    IsNotTrusted(u16),
}

impl Sentinel {
    /// Reads the leftmost label of a name.
    pub fn parse(qname: Name<'_>) -> Option<Self> {
        let label = qname.labels().next()?.to_ascii_lowercase();
        let tag = |digits: &[u8]| {
            let is_tag = digits.len() == 5 && digits.iter().all(u8::is_ascii_digit);
            std::str::from_utf8(digits).ok().filter(|_| is_tag)?.parse().ok()
        };
        if let Some(digits) = label.strip_prefix(b"root-key-sentinel-is-ta-") {
            return tag(digits).map(Self::IsTrusted);
        }
        tag(label.strip_prefix(b"root-key-sentinel-not-ta-")?).map(Self::IsNotTrusted)
    }

    /// Returns whether a secure answer stands, by the tags that are trusted; else it becomes
    /// SERVFAIL (RFC 8509 §2.2).
    pub fn stands(self, trusted: &[u16]) -> bool {
        match self {
            Self::IsTrusted(tag) => trusted.contains(&tag),
            Self::IsNotTrusted(tag) => !trusted.contains(&tag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    #[test]
    fn tags_are_signalled_as_in_rfc_8145() {
        let check = |zone: &str, tags: &[u16], expect: Option<&str>| {
            let found = key_tag_query(name(zone).as_name(), tags);
            assert_eq!(found.map(|name| name.to_string()).as_deref(), expect, "{tags:?}");
        };
        check(".", &[38696, 20326, 20326], Some("_ta-4f66-9728."));
        check("example.org", &[1], Some("_ta-0001.example.org."));
        check(".", &[], None);
        let many: Vec<u16> = (0..100).collect();
        let long = key_tag_query(Name::ROOT, &many).expect("a name");
        assert_eq!(parse_key_tag_query(long.as_name()), Some((0..12).collect()));
        for (text, expect) in [
            ("_ta-4f66-9728", Some(vec![0x4f66, 0x9728])),
            ("_TA-4F66.example", Some(vec![0x4f66])),
            ("_ta-4f6", None),
            ("_ta-+f66", None),
            ("_ta-4f66-", None),
            ("_ta", None),
            (".", None),
        ] {
            assert_eq!(parse_key_tag_query(name(text).as_name()), expect, "{text}");
        }
    }

    #[test]
    fn sentinels_are_read_as_in_rfc_8509() {
        for (text, expect) in [
            ("root-key-sentinel-is-ta-20326.example", Some(Sentinel::IsTrusted(20326))),
            ("Root-Key-Sentinel-Not-TA-00001.example", Some(Sentinel::IsNotTrusted(1))),
            ("root-key-sentinel-is-ta-2032.example", None),
            ("root-key-sentinel-is-ta-99999.example", None),
            ("root-key-sentinel-is-ta-+0326.example", None),
            ("www.root-key-sentinel-is-ta-20326.example", None),
            (".", None),
        ] {
            assert_eq!(Sentinel::parse(name(text).as_name()), expect, "{text}");
        }
        assert!(Sentinel::IsTrusted(7).stands(&[7]) && !Sentinel::IsTrusted(7).stands(&[8]));
        assert!(!Sentinel::IsNotTrusted(7).stands(&[7]) && Sentinel::IsNotTrusted(7).stands(&[8]));
    }
}
