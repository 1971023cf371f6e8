//! How a rule on names is written: `suffix:example.org`, `exact:example.org`, `keyword:ads`,
//! `regex:^ads[0-9]+\.`.

use sets::{NameSetBuilder, PatternError, Reach};
use values::{Misread, Read};
use wire::NameBuf;

/// A rule that names fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    /// A name, what lies below it, or both.
    Name(NameBuf, Reach),
    /// A part of a name.
    Keyword(String),
    /// A regular expression that a part of a name fits.
    Regex(String),
}

impl NamePattern {
    /// Adds the rule to a set of names.
    pub(crate) fn add_to(&self, builder: &mut NameSetBuilder, line: u32) {
        match self {
            Self::Name(name, reach) => builder.name(name.as_name(), *reach, line),
            // Both were tried when they were read.
            Self::Keyword(keyword) => drop(builder.keyword(keyword, line)),
            Self::Regex(regex) => drop(builder.regex(regex, line)),
        }
    }
}

/// The forms of a rule.
const FORMS: [&str; 4] = ["suffix:", "exact:", "keyword:", "regex:"];

/// Reads a rule; without a form it is a suffix.
pub fn name_pattern(text: &str) -> Read<NamePattern> {
    let (form, rest, start) = match text.split_once(':') {
        Some((form, rest)) => (form, rest, form.len() + 1),
        None => ("suffix", text, 0),
    };
    let moved =
        |misread: Misread| Misread { at: start + misread.at.start..start + misread.at.end, ..misread };
    let refused = |error: &PatternError| Misread {
        at: start..text.len(),
        message: error.to_string(),
        expected: None,
        hint: None,
    };
    match form {
        "suffix" => {
            // `.example.org` and `*.example.org` are what others write for the same.
            let bare = rest.strip_prefix("*.").or_else(|| rest.strip_prefix('.'));
            values::name(bare.filter(|bare| !bare.is_empty()).unwrap_or(rest))
                .map(|name| NamePattern::Name(name, Reach::ItselfAndBelow))
                .map_err(moved)
        }
        "exact" => values::name(rest).map(|name| NamePattern::Name(name, Reach::Itself)).map_err(moved),
        "keyword" if rest.is_empty() => Err(refused(&PatternError::Empty)),
        // Part of a U-label is no part of its A-label, so that it cannot be converted.
        "keyword" if !rest.is_ascii() => Err(Misread {
            hint: values::name(rest)
                .ok()
                .map(|name| format!("\"keyword:{}\" fits names with this very label", name.as_name()))
                .map(|hint| hint.replace(".\"", "\"")),
            ..refused(&PatternError::NotAscii)
        }),
        "keyword" => Ok(NamePattern::Keyword(rest.to_owned())),
        "regex" => match sets::check_regex(rest) {
            Ok(()) => Ok(NamePattern::Regex(rest.to_owned())),
            Err(error) => Err(refused(&error)),
        },
        other => {
            let form = values::unknown_word(other, "form of name", &FORMS);
            Err(Misread { message: format!("unknown form of name \"{other}:\""), ..form })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: NamePattern) {
        assert_eq!(name_pattern(text), Ok(expect), "{text}");
    }

    fn check_wrong(text: &str, at: std::ops::Range<usize>, message: &str) {
        let misread = name_pattern(text).expect_err("wrong");
        assert_eq!((misread.at, misread.message.as_str()), (at, message), "{text}");
    }

    #[test]
    fn each_form_is_read() {
        let name = values::name("example.org").expect("a name");
        check("example.org", NamePattern::Name(name, Reach::ItselfAndBelow));
        for text in [".example.org", "*.example.org", "suffix:.example.org", "suffix:*.example.org"] {
            check(text, NamePattern::Name(name, Reach::ItselfAndBelow));
        }
        check("suffix:example.org", NamePattern::Name(name, Reach::ItselfAndBelow));
        check("exact:example.org.", NamePattern::Name(name, Reach::Itself));
        check("keyword:ads", NamePattern::Keyword("ads".to_owned()));
        check("regex:^a:b$", NamePattern::Regex("^a:b$".to_owned()));
        let name = values::name("xn--bcher-kva.example").expect("a name");
        check("bücher.example", NamePattern::Name(name, Reach::ItselfAndBelow));
        check("exact:Bücher.example", NamePattern::Name(name, Reach::Itself));
    }

    #[test]
    fn mistakes_point_into_the_text() {
        check_wrong("keyword:", 8..8, "an empty keyword is in every name");
        check_wrong("regex:a(", 6..8, "not a regular expression: unclosed group");
        check_wrong("regexp:a", 0..6, "unknown form of name \"regexp:\"");
        let foreign = "letters outside ASCII are in no name: clients ask for its A-label, such as \"xn--bcher-kva\" (RFC 5891)";
        check_wrong("regex:^bü", 6..10, foreign);
        check_wrong("keyword:bücher", 8..15, foreign);
        let hint = name_pattern("keyword:bücher").expect_err("wrong").hint;
        assert_eq!(hint.as_deref(), Some("\"keyword:xn--bcher-kva\" fits names with this very label"));
    }
}
