//! Settings of sets.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use diagnostic::{At, LongText, Problem};
use lists::{ListFormat, NamePattern, name_pattern};
use values::{Misread, PREFIX_WORDS, Read};
use wire::Prefix;

use crate::groups::{DynamicKind, DynamicSet, ListPlace, Set, SetList};
use schema::Value;

use super::notation::{is_url, path, prefixes, url};
use super::read::Values as _;
use super::{Lowering, Section};

/// A list as it is written in one text.
struct Notation {
    format: ListFormat,
    place: ListPlace,
    select: Vec<String>,
}

impl Lowering<'_> {
    pub(super) fn sets(&mut self, root: &Section<'_>) -> Vec<Set> {
        let mut sets = Vec::new();
        for (name, section) in self.named_sections(root, "sets") {
            let names: Vec<NamePattern> =
                self.list(&section, "names", |_, _, scalar| name_pattern(&scalar.text)).values();
            let addresses = self.list(&section, "addresses", |_, _, scalar| addresses(&scalar.text)).values();
            let mut lists: Vec<SetList> =
                self.items(&section, "lists").iter().filter_map(|item| self.set_list(item)).collect();
            lists.extend(self.rules(&section));
            lists.extend(self.text(&section));
            let label = |text: &str| values::identifier(text).map(str::to_owned);
            let include = self.list(&section, "include", |_, _, scalar| label(&scalar.text));
            let except = self.list(&section, "except", |_, _, scalar| label(&scalar.text));
            let tags = self.tags(&section);
            let dynamic = self.dynamic(&section);
            if section.entries.is_empty() {
                self.problems.push(
                    Problem::error(name.span, format!("set \"{}\" is empty", name.value)).expected(
                        "\"names:\", \"text:\", \"addresses:\", \"rules:\", \"lists:\", \"include:\" or \"dynamic:\"",
                    ),
                );
            }
            let addresses: Vec<Vec<(IpAddr, IpAddr)>> = addresses;
            let addresses = addresses.into_iter().flatten().collect();
            sets.push(Set { name, names, addresses, lists, include, except, tags, dynamic });
        }
        sets
    }

    /// Rules that stand in the file are a list like any other.
    fn rules(&mut self, set: &Section<'_>) -> Option<SetList> {
        let rules = self.list(set, "rules", |_, _, scalar| Ok(scalar.text.replace(['\r', '\n'], " ")));
        let first = rules.first()?.span;
        let text = rules.values().join("\n");
        Some(SetList {
            format: ListFormat::Adguard,
            octets_max: text.len() as u64,
            place: At { value: ListPlace::Here(text.into()), span: first },
            select: Vec::new(),
            refresh: None,
            timeout: Duration::ZERO,
            is_strict: true,
            is_optional: false,
        })
    }

    /// A text of names is a list like any other.
    fn text(&mut self, set: &Section<'_>) -> Option<SetList> {
        let text = self.optional(set, "text", |_, _, node| match &node.value {
            yaml::Value::Scalar(scalar) => Some(At { value: LongText::from(&*scalar.text), span: node.span }),
            yaml::Value::Long(text) => Some(At { value: text.clone(), span: node.span }),
            _ => None,
        })?;
        Some(SetList {
            format: ListFormat::Names,
            octets_max: text.value.len() as u64,
            place: At { value: ListPlace::Here(text.value), span: text.span },
            select: Vec::new(),
            refresh: None,
            timeout: Duration::ZERO,
            is_strict: true,
            is_optional: false,
        })
    }

    fn set_list(&mut self, item: &Section<'_>) -> Option<SetList> {
        let list = self.optional(item, "list", |lowering, _, node| {
            let expected = Value::SetList.expected();
            let found = lowering.read(node, &expected, notation)?;
            let place = match found.value.place {
                ListPlace::File(file) => ListPlace::File(lowering.beside(node.span.file, &file)),
                other => other,
            };
            Some(At { value: Notation { place, ..found.value }, span: found.span })
        });
        let zone =
            self.optional(item, "zone", |lowering, _, node| lowering.read(node, "a name", values::name));
        let own = self.optional(item, "own", |lowering, _, node| {
            lowering.read(node, "a word", |text| values::identifier(text).map(str::to_owned))
        });
        let format = self.word(item, "format", ListFormat::parse);
        let places = [
            list.as_ref().map(|at| at.span),
            zone.as_ref().map(|at| at.span),
            own.as_ref().map(|at| at.span),
        ];
        if let Some(second) = places.into_iter().flatten().nth(1) {
            let problem = Problem::error(second, "a list is in one place");
            self.problems.push(problem.expected("one of \"list\", \"zone\" and \"own\""));
        }
        if let (None, Some(entry)) = (&own, item.entry("format")) {
            let message = "\"format\" is ignored: only a list that is \"own\" has it";
            let hint = "\"list\" says it itself: \"list: adguard:FILE\"";
            self.problems.push(Problem::warning(entry.key_span, message).hint(hint));
        }
        let of = |format, place, span| At { value: Notation { format, place, select: Vec::new() }, span };
        let list = list
            .or_else(|| zone.map(|At { value, span }| of(ListFormat::Rpz, ListPlace::Zone(value), span)))
            .or_else(|| own.map(|At { value, span }| of(format, ListPlace::Own(value), span)));
        let more = self.list(item, "select", |_, _, scalar| Ok(scalar.text.clone()));
        let refresh = self.duration_or(item, "refresh");
        let timeout = self.duration(item, "timeout");
        let octets_max = self.size(item, "size");
        let is_strict = self.boolean(item, "strict");
        let is_optional = self.boolean(item, "optional");
        let Some(At { value: list, span }) = list else {
            if ["list", "zone", "own"].into_iter().all(|key| item.entry(key).is_none()) {
                self.problems.push(
                    Problem::error(item.span, "nothing says which list this is")
                        .expected(format!("\"list:\" and {}", Value::SetList.expected())),
                );
            }
            return None;
        };
        let mut select: Vec<At<String>> = list.select.into_iter().map(|value| At { value, span }).collect();
        select.extend(more);
        if let Some(first) = select.first().filter(|_| !list.format.has_parts()) {
            let message = format!("a list of format \"{}\" has no parts to select", list.format.word());
            self.problems.push(Problem::error(first.span, message));
        }
        self.check_ignored(item, &list.place);
        let is_own = matches!(list.place, ListPlace::File(_))
            && matches!(list.format, ListFormat::Names | ListFormat::Addresses);
        if let (Some(entry), false) = (item.entry("strict"), is_own) {
            self.problems.push(match list.place {
                ListPlace::Own(_) => {
                    let message = "\"strict\" is ignored: this list is one of your own";
                    Problem::warning(entry.key_span, message).hint("rules with mistakes do not get into it")
                }
                _ => {
                    let message = "\"strict\" is ignored: mistakes in lists of others are never errors";
                    Problem::warning(entry.key_span, message)
                        .expected("a file of the format names or addresses")
                }
            });
        }
        let (format, place) = (list.format, At { value: list.place, span });
        Some(SetList { format, place, select, refresh, timeout, octets_max, is_strict, is_optional })
    }

    /// Warns of what has no meaning for a list in such a place.
    fn check_ignored(&mut self, item: &Section<'_>, place: &ListPlace) {
        let (keys, what, hint) = match place {
            ListPlace::File(_) => {
                (&["refresh", "timeout"][..], "a file", "files are read again when they change")
            }
            ListPlace::Zone(_) => (
                &["optional", "refresh", "timeout", "size"][..],
                "a zone",
                "what it comes from is said in \"zones\"",
            ),
            ListPlace::Own(_) => (
                &["optional", "refresh", "timeout", "size"][..],
                "one of your own",
                "\"gannet list\" changes it",
            ),
            ListPlace::Url(_) => {
                (&["optional"][..], "from a URL", "the set is without it until it was fetched")
            }
            ListPlace::Here(_) => return,
        };
        for key in keys {
            let Some(entry) = item.entry(key) else { continue };
            let message = format!("\"{key}\" is ignored: this list is {what}");
            self.problems.push(Problem::warning(entry.key_span, message).hint(hint));
        }
    }

    fn tags(&mut self, set: &Section<'_>) -> Vec<(At<String>, Vec<Prefix>)> {
        let section = self.names(set, "tags");
        let row = self.row(&section, "*");
        let mut tags = Vec::new();
        for entry in section.entries.iter() {
            let name = At { value: entry.key.clone(), span: entry.key_span };
            let lists = self.list_of(row, &entry.node, |_, _, scalar| prefixes(&scalar.text));
            tags.push((name, lists.values().into_iter().flatten().collect()));
        }
        tags
    }

    fn dynamic(&mut self, set: &Section<'_>) -> Option<DynamicSet> {
        let section = self.section(set, "dynamic");
        let holds = self.word(&section, "holds", |word| match word {
            "off" => Some(None),
            word => DynamicKind::parse(word).map(Some),
        });
        let limit = self.whole(&section, "limit") as u32;
        let ttl = self.duration_or(&section, "ttl");
        let persist = self.boolean(&section, "persist");
        for key in ["limit", "ttl", "persist"] {
            if let (None, Some(entry)) = (holds, self.said(&section, key)) {
                self.problems.push(
                    Problem::warning(entry.key_span, format!("\"{key}\" is ignored: the set is not dynamic"))
                        .hint("set \"holds\" beside it"),
                );
            }
        }
        holds.map(|holds| DynamicSet { holds, limit, ttl, persist })
    }
}

/// Reads `geosite:/etc/gannet/geosite.dat:cn|google@ads`: a format, a file or URL, and perhaps
/// parts.
fn notation(text: &str) -> Read<Notation> {
    let wrong = |at: std::ops::Range<usize>, message: String| Misread {
        at,
        message,
        expected: Some(Value::SetList.expected()),
        hint: None,
    };
    let Some((word, rest)) = text.split_once(':') else {
        return Err(wrong(0..text.len(), format!("\"{text}\" does not say how the list is written")));
    };
    let Some(format) = ListFormat::parse(word) else {
        let misread = values::unknown_word(word, "format", ListFormat::WORDS);
        return Err(Misread { at: 0..word.len(), ..misread });
    };
    let start = word.len() + 1;
    // The parts come last; a colon before a "/" belongs to a URL.
    let split = rest.rsplit_once(':').filter(|(_, parts)| format.has_parts() && !parts.contains('/'));
    let (place, parts) = match split {
        Some((place, parts)) => (place, parts.split('|').map(str::to_owned).collect()),
        None => (rest, Vec::new()),
    };
    if parts.iter().any(String::is_empty) {
        return Err(wrong(start + place.len()..text.len(), "a part has no name".to_owned()));
    }
    let place = if is_url(place) {
        let url = url(place)
            .map_err(|misread| Misread { at: start + misread.at.start..start + misread.at.end, ..misread })?;
        ListPlace::Url(url)
    } else {
        if let Some((scheme, _)) = place.split_once("://") {
            let at = start..start + scheme.len();
            return Err(wrong(at, format!("a list cannot be fetched by \"{scheme}\"")));
        }
        let file: PathBuf = path(place)
            .map_err(|misread| Misread { at: start + misread.at.start..start + misread.at.end, ..misread })?;
        ListPlace::File(file)
    };
    Ok(Notation { format, place, select: parts })
}

/// Reads an address, a prefix, a range `first-last` or a word for several prefixes.
fn addresses(text: &str) -> Read<Vec<(IpAddr, IpAddr)>> {
    if PREFIX_WORDS.contains(&text) {
        return Ok(values::prefix_word(text).into_iter().map(Prefix::range).collect());
    }
    lists::address_range(text).map(|range| vec![range])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, format: ListFormat, place: ListPlace, select: &[&str]) {
        let Ok(found) = notation(text) else { panic!("{text} is a list") };
        assert_eq!((found.format, found.place), (format, place), "{text}");
        assert_eq!(found.select, select, "{text}");
    }

    fn check_wrong(text: &str, at: std::ops::Range<usize>, message: &str) {
        let Err(misread) = notation(text) else { panic!("{text} is wrong") };
        assert_eq!((misread.at, misread.message.as_str()), (at, message), "{text}");
    }

    #[test]
    fn a_list_is_a_format_a_place_and_perhaps_parts() {
        let file = |text: &str| ListPlace::File(PathBuf::from(text));
        let url = |text: &str| ListPlace::Url(text.to_owned());
        check("names:a/b.txt", ListFormat::Names, file("a/b.txt"), &[]);
        check("geosite:geosite.dat:cn@ads", ListFormat::Geosite, file("geosite.dat"), &["cn@ads"]);
        check("geoip:/x/geoip.dat:cn|!private", ListFormat::Geoip, file("/x/geoip.dat"), &["cn", "!private"]);
        check(
            "adguard:https://example.org/a.txt",
            ListFormat::Adguard,
            url("https://example.org/a.txt"),
            &[],
        );
        check(
            "geosite:http://[2001:db8::1]:80/a.dat:cn",
            ListFormat::Geosite,
            url("http://[2001:db8::1]:80/a.dat"),
            &["cn"],
        );
        check(
            "geosite:http://example.org:80/a.dat",
            ListFormat::Geosite,
            url("http://example.org:80/a.dat"),
            &[],
        );
        check_wrong("list.txt", 0..8, "\"list.txt\" does not say how the list is written");
        check_wrong("hots:/etc/hosts", 0..4, "unknown format \"hots\"");
        check_wrong("names:ftp://example.org/x", 6..9, "a list cannot be fetched by \"ftp\"");
        check_wrong("geosite:a.dat:cn|", 13..17, "a part has no name");
    }

    #[test]
    fn a_prefix_is_a_range() {
        let range = |text: &str| addresses(text).map(|ranges| ranges[0]);
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(range("192.0.2.0/24"), Ok((address("192.0.2.0"), address("192.0.2.255"))));
        assert_eq!(range("192.0.2.1"), Ok((address("192.0.2.1"), address("192.0.2.1"))));
        assert_eq!(range("192.0.2.1-192.0.2.7"), Ok((address("192.0.2.1"), address("192.0.2.7"))));
        assert_eq!(range("any"), Ok((address("0.0.0.0"), address("255.255.255.255"))));
        assert!(range("192.0.2.7-192.0.2.1").is_err());
        assert!(range("192.0.2.7-2001:db8::").is_err());
    }
}
