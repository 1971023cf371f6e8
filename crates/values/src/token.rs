//! Where keys in hardware are: PKCS#11 URIs (RFC 7512).
//!
//! A PIN never stands in one: `pin-source` names the file that has it.

use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::{Misread, Read};
use diagnostic::suggest::nearest;

/// What such a URI begins with.
const SCHEME: &str = "pkcs11:";
/// Octets that a URI may have: it stands in files of keys.
const OCTETS_MAX: usize = 4096;
/// Characters that stand for themselves besides letters and digits, wherever they are (RFC 7512
/// §2.3). The slash should be encoded before the question mark; other programs do not, so that it
/// is taken as it is.
const PLAIN: &[u8] = b"-._~:[]@!$'()*+,=/";

crate::words! {
    /// What a URI says of a token, its slot and its module, so that they can be told from others.
    TokenFact {
        /// The token's label.
        Token = "token",
        /// Who made the token.
        Manufacturer = "manufacturer",
        /// The token's serial number.
        Serial = "serial",
        /// The token's model.
        Model = "model",
        /// The number of the slot.
        SlotId = "slot-id",
        /// Who made the slot.
        SlotManufacturer = "slot-manufacturer",
        /// What the slot says of itself.
        SlotDescription = "slot-description",
        /// Who made the module.
        LibraryManufacturer = "library-manufacturer",
        /// What the module says of itself.
        LibraryDescription = "library-description",
        /// The version of the module.
        LibraryVersion = "library-version",
    }
}

/// Attributes besides facts.
const OTHERS: [&str; 6] = ["object", "id", "type", "module-path", "pin-source", "pin-value"];

/// A token, or a key in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenUri {
    /// What must be true of the token, in the order of their names in [`TokenFact`].
    pub facts: Vec<(TokenFact, String)>,
    /// The label of the key.
    pub object: Option<String>,
    /// The identifier of the key.
    pub id: Option<Vec<u8>>,
    /// The module that speaks with the token: an absolute path.
    pub module: Option<PathBuf>,
    /// The file with the PIN: an absolute path.
    pub pin_source: Option<PathBuf>,
}

impl TokenUri {
    /// Reads a URI. Errors never quote a PIN.
    pub fn parse(text: &str) -> Read<Self> {
        const EXPECTED: &str =
            "a URI such as pkcs11:token=NAME?module-path=/usr/lib/module.so&pin-source=file:/etc/gannet/pin";
        let has_scheme = text.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
        if !has_scheme || text.len() > OCTETS_MAX {
            return Err(Misread::whole(text, "this is no PKCS#11 URI").expected(EXPECTED));
        }
        let mut uri = Self::default();
        let mut seen = Vec::new();
        let body = text.get(SCHEME.len()..).unwrap_or("");
        let (path, query) = body.split_once('?').map_or((body, None), |(path, query)| (path, Some(query)));
        let mut at = SCHEME.len();
        let parts = [(path, ';', false), (query.unwrap_or(""), '&', true)];
        for (part, between, is_query) in parts {
            for attribute in part.split(between).filter(|_| !part.is_empty()) {
                uri.attribute(attribute, at, is_query, &mut seen)?;
                at += attribute.len() + 1;
            }
            // The question mark, where nothing stood before it.
            at += usize::from(part.is_empty());
        }
        uri.facts.sort_by_key(|(fact, _)| *fact as u8);
        Ok(uri)
    }

    fn attribute<'t>(
        &mut self,
        attribute: &'t str,
        at: usize,
        is_query: bool,
        seen: &mut Vec<&'t str>,
    ) -> Read<()> {
        let Some((name, value)) = attribute.split_once('=') else {
            let message = "an attribute of the URI has no value";
            return Err(
                Misread::part(at..at + attribute.len(), message).expected("a name, \"=\" and a value")
            );
        };
        let wrong = |message: String| Misread::part(at..at + name.len(), message);
        if name == "pin-value" {
            let message = "\"pin-value\" would have the PIN where everybody reads it";
            let hint = "put the PIN into a file of its own and name it: pin-source=file:/etc/gannet/pin";
            return Err(wrong(message.to_owned()).hint(hint));
        }
        if seen.contains(&name) {
            return Err(wrong(format!("\"{name}\" stands twice in the URI")));
        }
        seen.push(name);
        let belongs_to_query = matches!(name, "module-path" | "pin-source");
        let fact = TokenFact::parse(name).filter(|_| !is_query);
        // These may stand before the question mark as well, where BIND's and Knot's manuals have
        // them.
        let is_known = fact.is_some() || (OTHERS.contains(&name) && (belongs_to_query || !is_query));
        if !is_known {
            let known: Vec<&str> = TokenFact::WORDS
                .iter()
                .copied()
                .chain(OTHERS.into_iter().filter(|other| *other != "pin-value"))
                .collect();
            if known.contains(&name) {
                return Err(wrong(format!("\"{name}\" stands before the \"?\" of a URI")));
            }
            let misread = wrong(format!("the URI has an attribute \"{name}\", which is not known"));
            return Err(match nearest(name, known) {
                _ if name == "module-name" => misread.hint("say where it is: module-path=/usr/lib/module.so"),
                Some(near) => misread.hint(format!("did you mean \"{near}\"?")),
                None => misread,
            });
        }
        let start = at + name.len() + 1;
        let octets = decoded(value, is_query).map_err(|bad| {
            Misread::part(start + bad.start..start + bad.end, "this cannot stand in a URI as it is")
                .expected("letters, digits, and other octets as % and two hexadecimal digits")
        })?;
        let whole = |message: String| Misread::part(start..start + value.len(), message);
        if name == "id" {
            self.id = Some(octets);
            return Ok(());
        }
        if belongs_to_query {
            let path = match name {
                "module-path" => PathBuf::from(std::ffi::OsString::from_vec(octets)),
                _ => file_of(&octets).ok_or_else(|| {
                    whole("this is no file with a PIN".to_owned())
                        .expected("file: and an absolute path; programs are not run")
                })?,
            };
            if !path.is_absolute() {
                return Err(whole(format!("\"{}\" does not begin at the root", path.display()))
                    .expected("an absolute path"));
            }
            let place = if name == "module-path" { &mut self.module } else { &mut self.pin_source };
            *place = Some(path);
            return Ok(());
        }
        let text = String::from_utf8(octets).map_err(|_| whole(format!("\"{name}\" is not UTF-8")))?;
        match fact {
            Some(fact) => {
                let is_number = |text: &str| text.parse::<u64>().is_ok();
                if fact == TokenFact::SlotId && !is_number(&text) {
                    return Err(whole(format!("\"{text}\" is no number of a slot")));
                }
                if fact == TokenFact::LibraryVersion && !text.split('.').all(is_number) {
                    return Err(whole(format!("\"{text}\" is no version")).expected("one such as 3 or 2.6"));
                }
                self.facts.push((fact, text));
            }
            None if name == "object" => self.object = Some(text),
            None if matches!(text.as_str(), "private" | "public") => {}
            None => {
                return Err(whole(format!("a \"{text}\" is no key to sign with"))
                    .expected("type=private, or nothing of the type"));
            }
        }
        Ok(())
    }

    /// Returns the token without the key, for keys to be made there.
    pub fn token(&self) -> Self {
        Self { object: None, id: None, ..self.clone() }
    }

    /// Returns the URI of a key in this token.
    pub fn with_key(&self, object: String, id: Vec<u8>) -> Self {
        Self { object: Some(object), id: Some(id), ..self.clone() }
    }

    /// Returns whether it says which key is meant, and not only which token.
    pub const fn names_key(&self) -> bool {
        self.object.is_some() || self.id.is_some()
    }
}

/// Returns the octets that a text stands for; else the place of what cannot stand there.
fn decoded(text: &str, is_query: bool) -> Result<Vec<u8>, std::ops::Range<usize>> {
    let mut octets = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&octet) = bytes.get(at) {
        let is_plain = octet.is_ascii_alphanumeric()
            || PLAIN.contains(&octet)
            || if is_query { b"?|".contains(&octet) } else { octet == b'&' };
        if octet == b'%' {
            let digits = bytes.get(at + 1..at + 3).and_then(wire::text::read_hex);
            let end = (at + 3).min(bytes.len());
            octets.extend(digits.ok_or(at..end)?);
            at += 3;
        } else if is_plain {
            octets.push(octet);
            at += 1;
        } else {
            let len = text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            return Err(at..at + len);
        }
    }
    Ok(octets)
}

/// Returns the path of a `file:` URI (RFC 8089), or of a path.
fn file_of(octets: &[u8]) -> Option<PathBuf> {
    let path = octets.strip_prefix(b"file:").unwrap_or(octets);
    let path = match path.strip_prefix(b"//") {
        // With a host, which can only be this one.
        Some(rest) => rest.strip_prefix(b"localhost").unwrap_or(rest),
        None => path,
    };
    path.starts_with(b"/").then(|| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())))
}

fn write_encoded(f: &mut fmt::Formatter<'_>, octets: &[u8], plain: &[u8]) -> fmt::Result {
    for &octet in octets {
        if octet.is_ascii_alphanumeric() || plain.contains(&octet) {
            write!(f, "{}", char::from(octet))?;
        } else {
            write!(f, "%{octet:02X}")?;
        }
    }
    Ok(())
}

impl fmt::Display for TokenUri {
    /// Writes the URI, in a form that others read, too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Without those that some readers take for more than themselves.
        const SAFE: &[u8] = b"-._~";
        f.write_str(SCHEME)?;
        let mut between = "";
        for (fact, text) in &self.facts {
            write!(f, "{between}{}=", fact.word())?;
            write_encoded(f, text.as_bytes(), SAFE)?;
            between = ";";
        }
        if let Some(object) = &self.object {
            write!(f, "{between}object=")?;
            write_encoded(f, object.as_bytes(), SAFE)?;
            between = ";";
        }
        if let Some(id) = &self.id {
            write!(f, "{between}id=")?;
            // RFC 7512 §2.3: all of its octets should be encoded.
            id.iter().try_for_each(|octet| write!(f, "%{octet:02X}"))?;
        }
        let path = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let module = self.module.as_deref().map(|module| ("module-path=", path(module)));
        let pin = self.pin_source.as_deref().map(|pin| ("pin-source=file:", path(pin)));
        for (index, (name, octets)) in module.into_iter().chain(pin).enumerate() {
            write!(f, "{}{name}", if index == 0 { '?' } else { '&' })?;
            write_encoded(f, &octets, b"-._~/")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: &str) {
        let uri = TokenUri::parse(text).unwrap_or_else(|misread| panic!("{text}: {misread:?}"));
        assert_eq!(uri.to_string(), expect, "{text}");
        assert_eq!(TokenUri::parse(expect), Ok(uri), "{expect}");
    }

    #[test]
    fn the_examples_of_rfc_7512_are_read() {
        check("pkcs11:", "pkcs11:");
        check("pkcs11:object=my-pubkey;type=public", "pkcs11:object=my-pubkey");
        check(
            "pkcs11:object=my-key;type=private?pin-source=file:/etc/token",
            "pkcs11:object=my-key?pin-source=file:/etc/token",
        );
        check(
            "pkcs11:token=The%20Software%20PKCS%2311%20Softtoken;manufacturer=Snake%20Oil,%20Inc.;model=1.0;\
             object=my-certificate;type=private;id=%69%95%3E%5C%F4%BD%EC%91;serial=?pin-source=file:/etc/token_pin",
            "pkcs11:token=The%20Software%20PKCS%2311%20Softtoken;manufacturer=Snake%20Oil%2C%20Inc.;serial=;model=1.0;\
             object=my-certificate;id=%69%95%3E%5C%F4%BD%EC%91?pin-source=file:/etc/token_pin",
        );
        check(
            "pkcs11:slot-description=Sun%20Metaslot;library-version=3.1",
            "pkcs11:slot-description=Sun%20Metaslot;library-version=3.1",
        );
        check(
            "pkcs11:slot-id=327;slot-manufacturer=Snake%20Oil,%20Inc.",
            "pkcs11:slot-id=327;slot-manufacturer=Snake%20Oil%2C%20Inc.",
        );
        check(
            "pkcs11:token=Software%20PKCS%2311%20softtoken;manufacturer=Snake%20Oil,%20Inc.\
             ?module-path=/usr/lib/a%26b.so&pin-source=/etc/pin",
            "pkcs11:token=Software%20PKCS%2311%20softtoken;manufacturer=Snake%20Oil%2C%20Inc.\
             ?module-path=/usr/lib/a%26b.so&pin-source=file:/etc/pin",
        );
        // As BIND's and Knot's manuals have it.
        check("pkcs11:token=a;pin-source=/etc/pin", "pkcs11:token=a?pin-source=file:/etc/pin");
        check("PKCS11:token=a?pin-source=file:///etc/pin", "pkcs11:token=a?pin-source=file:/etc/pin");
    }

    #[test]
    fn what_is_wrong_is_said_of_its_place() {
        for (text, part, message) in [
            ("pkcs12:token=a", "pkcs12:token=a", "this is no PKCS#11 URI"),
            ("pkcs11:token", "token", "an attribute of the URI has no value"),
            ("pkcs11:token=a;token=b", "token", "\"token\" stands twice in the URI"),
            ("pkcs11:tokken=a", "tokken", "the URI has an attribute \"tokken\", which is not known"),
            ("pkcs11:token=a b", " ", "this cannot stand in a URI as it is"),
            ("pkcs11:token=%4", "%4", "this cannot stand in a URI as it is"),
            ("pkcs11:token=%zz", "%zz", "this cannot stand in a URI as it is"),
            ("pkcs11:token=\u{e4}", "\u{e4}", "this cannot stand in a URI as it is"),
            ("pkcs11:token=%ff", "%ff", "\"token\" is not UTF-8"),
            ("pkcs11:type=cert", "cert", "a \"cert\" is no key to sign with"),
            ("pkcs11:slot-id=x", "x", "\"x\" is no number of a slot"),
            ("pkcs11:library-version=x", "x", "\"x\" is no version"),
            ("pkcs11:?object=a", "object", "\"object\" stands before the \"?\" of a URI"),
            ("pkcs11:?module-path=a.so", "a.so", "\"a.so\" does not begin at the root"),
            ("pkcs11:token=a?pin-source=%7Cprogram", "%7Cprogram", "this is no file with a PIN"),
            ("pkcs11:token=a?pin-source=file:pin", "file:pin", "this is no file with a PIN"),
            ("pkcs11:a?module-name=x", "a", "an attribute of the URI has no value"),
            (
                "pkcs11:?module-name=x",
                "module-name",
                "the URI has an attribute \"module-name\", which is not known",
            ),
            ("pkcs11:?x-vendor=x", "x-vendor", "the URI has an attribute \"x-vendor\", which is not known"),
        ] {
            let misread = TokenUri::parse(text).expect_err(text);
            assert_eq!(misread.message, message, "{text}");
            // Where something stands twice, the second is meant.
            let at = text.rfind(part).expect("a part of the text");
            assert!(
                misread.at == (at..at + part.len()) || text.get(misread.at.clone()) == Some(part),
                "{text}"
            );
        }
    }

    #[test]
    fn a_pin_is_refused_and_not_repeated() {
        for text in ["pkcs11:token=a?pin-value=123456", "pkcs11:pin-value=123456", "pkcs11:?pin-value=1%20"] {
            let misread = TokenUri::parse(text).expect_err(text);
            let said = format!("{misread:?}");
            assert!(misread.message.contains("pin-value") && !said.contains("123456"), "{said}");
            assert!(misread.hint.is_some_and(|hint| hint.contains("pin-source=file:")));
            assert_eq!(text.get(misread.at), Some("pin-value"));
        }
    }

    fn any_uri() -> impl Strategy<Value = TokenUri> {
        let facts = proptest::sample::subsequence(
            vec![TokenFact::Token, TokenFact::Manufacturer, TokenFact::Serial, TokenFact::SlotDescription],
            0..=4,
        );
        let path = || proptest::option::of("/[^\0]{0,20}".prop_map(PathBuf::from));
        let text = || any::<String>();
        (
            facts,
            [text(), text(), text(), text()],
            proptest::option::of(text()),
            any::<Option<Vec<u8>>>(),
            path(),
            path(),
        )
            .prop_map(|(facts, texts, object, id, module, pin_source)| TokenUri {
                facts: facts.into_iter().zip(texts).collect(),
                object,
                id,
                module,
                // What begins with two slashes would be a host.
                pin_source: pin_source.filter(|path| !path.as_os_str().as_bytes().starts_with(b"//")),
            })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(uri in any_uri()) {
            prop_assert_eq!(TokenUri::parse(&uri.to_string()), Ok(uri));
        }

        #[test]
        fn no_text_panics(text in "pkcs11:.{0,60}") {
            drop(TokenUri::parse(&text));
        }
    }
}
