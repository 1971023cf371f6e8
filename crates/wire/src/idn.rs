//! Internationalized domain names (RFC 5890): names as people write them, turned into the A-labels
//! that DNS carries.
//!
//! The mapping is that of UTS #46, non-transitional, without the STD3 rules:
//! `_dmarc.bücher.example` is a name. Only text that operators and users write comes here; what
//! stands in a message is never changed.

use std::borrow::Cow;
use std::fmt;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

/// A name that cannot be turned into A-labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdnError {
    /// The label that is at fault; the whole name if no single one is.
    pub label: String,
    why: &'static str,
}

impl fmt::Display for IdnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" {}", self.label, self.why)
    }
}

impl std::error::Error for IdnError {}

/// Returns a name in presentation form with its A-labels (`xn--bcher-kva.example`); text in ASCII
/// as it is.
///
/// Lengths and empty labels are left to whoever reads the name. Escapes (`\.`, `\195`) and letters
/// outside ASCII exclude each other: an escape stands for an octet, and such a letter is none.
pub fn to_ascii(text: &str) -> Result<Cow<'_, str>, IdnError> {
    if text.is_ascii() {
        return Ok(Cow::Borrowed(text));
    }
    let wrong = |label: &str, why| IdnError { label: label.to_owned(), why };
    if text.contains('\\') {
        return Err(wrong(text, "has both an escape and letters outside ASCII"));
    }
    if let Some(ascii) = mapped(text) {
        return Ok(Cow::Owned(ascii));
    }
    const NO_LABEL: &str = "is not a label of an internationalized name (UTS #46)";
    let label = text.split('.').find(|label| !label.is_ascii() && mapped(label).is_none());
    Err(label.map_or_else(
        || wrong(text, "is not an internationalized name (UTS #46)"),
        |label| wrong(label, NO_LABEL),
    ))
}

/// Returns a name in presentation form with its A-labels as Unicode; labels that are none, or not
/// good ones, stay as they are.
pub fn to_unicode(text: &str) -> Cow<'_, str> {
    if !text.to_ascii_lowercase().contains("xn--") {
        return Cow::Borrowed(text);
    }
    let labels = text.split('.').map(|label| {
        if !label.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("xn--")) {
            return label.to_owned();
        }
        let (shown, outcome) = Uts46::new().to_unicode(label.as_bytes(), AsciiDenyList::URL, Hyphens::Allow);
        // What would not lead back to the same label is shown as it came.
        match outcome.is_ok() && mapped(&shown).is_some_and(|again| again.eq_ignore_ascii_case(label)) {
            true => shown.into_owned(),
            false => label.to_owned(),
        }
    });
    Cow::Owned(labels.collect::<Vec<_>>().join("."))
}

fn mapped(text: &str) -> Option<String> {
    // The list leaves `_` and `*`, and refuses what some letters map to and no host is called: "℀"
    // is "a/c".
    let ascii = Uts46::new().to_ascii(text.as_bytes(), AsciiDenyList::URL, Hyphens::Allow, DnsLength::Ignore);
    ascii.ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&str, &str>) {
        let found = to_ascii(text).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expect, "{text}");
    }

    #[test]
    fn names_as_written_become_a_labels() {
        check("bücher.example", Ok("xn--bcher-kva.example"));
        check("_dmarc.Bücher.example.", Ok("_dmarc.xn--bcher-kva.example."));
        check("*.münchen.example", Ok("*.xn--mnchen-3ya.example"));
        // Non-transitional: the sharp s is a letter of its own.
        check("straße.example", Ok("xn--strae-oqa.example"));
        check("例え。テスト", Ok("xn--r8jz45g.xn--zckzah"));
        check("r3---sn.bücher.example", Ok("r3---sn.xn--bcher-kva.example"));
    }

    #[test]
    fn a_labels_are_shown_as_unicode_if_they_lead_back() {
        assert_eq!(to_unicode("mail.xn--bcher-kva.example."), "mail.bücher.example.");
        assert_eq!(to_unicode("XN--BCHER-KVA.Example"), "bücher.Example");
        for text in ["example.org.", ".", "xn--a.example.", "xn---.example.", "a\\.xn--b."] {
            assert_eq!(to_unicode(text), text);
        }
    }

    #[test]
    fn ascii_is_left_alone() {
        for text in ["WWW.example", "a\\.b.example", "_sip._tcp.example.", "", ".", "a..b", "xn--a"] {
            check(text, Ok(text));
        }
    }

    #[test]
    fn what_is_no_name_is_refused_in_words() {
        check("ü\\.x.example", Err("\"ü\\.x.example\" has both an escape and letters outside ASCII"));
        check(
            "a.\u{fffd}.example",
            Err("\"\u{fffd}\" is not a label of an internationalized name (UTS #46)"),
        );
        check("\u{2100}.example", Err("\"\u{2100}\" is not a label of an internationalized name (UTS #46)"));
        check("ü\u{a0}b.example", Err("\"ü\u{a0}b\" is not a label of an internationalized name (UTS #46)"));
    }
}
