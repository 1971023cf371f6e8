//! Reads what is said of zones: `zones` and `zone-directories`.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::rdata::parse_text;
use wire::rtypes::{self, Kind};
use wire::{Name, NameBuf, Rtype};

use super::{Lowering, Section};
use crate::diagnostic::Problem;
use crate::settings::{ZoneAlternative, ZoneChoice, ZoneDirectory, ZoneFormat, ZoneMaker, ZoneSettings};
use crate::signing::SigningPolicy;
use crate::source::{At, Span};
use crate::values::{self, Misread};

impl Lowering<'_> {
    /// Returns the zones, in the order of the file.
    pub(super) fn zones(&mut self, root: &Section<'_>, signing: &[Arc<SigningPolicy>]) -> Vec<ZoneSettings> {
        let mut zones: Vec<ZoneSettings> = Vec::new();
        let mut seen: BTreeMap<(Option<String>, Vec<u8>), Span> = BTreeMap::new();
        for item in self.items(root, "zones") {
            let name =
                self.optional(&item, "name", |lowering, _, node| lowering.read(node, "a name", values::name));
            let file = self.path(&item, "file");
            let sign = self.signed_by(&item, signing);
            for (key, is_there) in
                [("name", item.entry("name").is_some()), ("file", item.entry("file").is_some())]
            {
                if !is_there {
                    self.problems.push(
                        Problem::error(item.span, format!("\"{key}\" is missing"))
                            .expected("\"name:\" and \"file:\""),
                    );
                }
            }
            let (Some(name), Some(file)) = (name, file) else { continue };
            let set = self.zone_set(&item);
            let folded = name.value.as_name().to_folded().as_bytes().to_vec();
            let folded = (set.as_ref().map(|set| set.value.clone()), folded);
            if let Some(&first) = seen.get(&folded) {
                self.problems.push(
                    Problem::error(name.span, format!("zone \"{}\" is there twice", name.value)).hint_at(
                        "the first time is on ",
                        first,
                        "",
                    ),
                );
                continue;
            }
            if let (Some(set), true) = (&set, sign.is_some()) {
                self.problems.push(
                    Problem::error(set.span, "the server signs no zone of a set")
                        .expected("\"sign\" or \"set\", not both"),
                );
            }
            seen.insert(folded, name.span);
            let file = At { value: self.beside(file.span.file, &file.value), span: file.span };
            let make = self.makers(&item);
            let choose = self.choices(&item, Some(&name.value));
            zones.push(ZoneSettings { name, file, sign, set, make, choose });
        }
        zones
    }

    /// Returns the directories whose files are zones.
    pub(super) fn zone_directories(&mut self, root: &Section<'_>) -> Vec<ZoneDirectory> {
        let mut directories = Vec::new();
        for item in self.items(root, "zone-directories") {
            let path = self.path(&item, "path");
            let format = self.word(&item, "format", ZoneFormat::parse);
            let has_contexts = item.entry("contexts").is_some();
            let contexts = self.list(&item, "contexts", |_, _, scalar| Ok(scalar.text.clone()));
            let contexts = contexts.into_iter().map(|at| at.value).collect();
            let matches_empty = self.boolean(&item, "match-empty");
            if matches_empty && !has_contexts {
                self.problems.push(
                    Problem::error(
                        item.span,
                        "\"match-empty\" says nothing as long as every record is taken",
                    )
                    .expected("\"contexts:\" beside it"),
                );
            }
            let set = self.zone_set(&item);
            let Some(path) = path else {
                if item.entry("path").is_none() {
                    self.problems.push(Problem::error(item.span, "\"path\" is missing"));
                }
                continue;
            };
            let path = At { value: self.beside(path.span.file, &path.value), span: path.span };
            let contexts = has_contexts.then_some(contexts);
            directories.push(ZoneDirectory { path, format, contexts, matches_empty, set });
        }
        directories
    }

    fn zone_set(&mut self, item: &Section<'_>) -> Option<At<String>> {
        self.optional(item, "set", |lowering, _, node| {
            lowering
                .read(node, "the name of a set of zones", |text| values::identifier(text).map(str::to_owned))
        })
    }

    /// Complains of keys that must be there.
    fn need(&mut self, item: &Section<'_>, keys: &[&str]) {
        for key in keys {
            if item.entry(key).is_none() {
                self.problems.push(Problem::error(item.span, format!("\"{key}\" is missing")));
            }
        }
    }

    fn makers(&mut self, zone: &Section<'_>) -> Vec<ZoneMaker> {
        /// What an address in text leaves of a label.
        const PREFIX_OCTETS_MAX: usize = 63 - 39;
        let mut makers = Vec::new();
        for item in self.items(zone, "make") {
            self.need(&item, &["networks"]);
            let prefix = self.required(&item, "prefix", |lowering, _, node| {
                lowering.read(node, "the beginning of a label", |text| {
                    let is_label = text
                        .bytes()
                        .all(|octet| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_');
                    if is_label && text.len() <= PREFIX_OCTETS_MAX {
                        return Ok(text.to_owned());
                    }
                    Err(Misread {
                        at: 0..text.len(),
                        message: format!("\"{text}\" cannot begin a label"),
                        expected: Some(format!("at most {PREFIX_OCTETS_MAX} letters, digits and dashes")),
                        hint: None,
                    })
                })
            });
            let networks = self.prefixes(&item, "networks");
            let origin = self
                .optional(&item, "origin", |lowering, _, node| lowering.read(node, "a name", values::name));
            let ttl = self.duration(&item, "ttl");
            let origin = origin.map(|at| at.value);
            makers.push(ZoneMaker { prefix: prefix.value, networks, origin, ttl });
        }
        makers
    }

    fn choices(&mut self, zone: &Section<'_>, apex: Option<&NameBuf>) -> Vec<ZoneChoice> {
        let mut choices: Vec<ZoneChoice> = Vec::new();
        for item in self.items(zone, "choose") {
            self.need(&item, &["name", "type", "from"]);
            let name =
                self.optional(&item, "name", |lowering, _, node| lowering.read(node, "a name", values::name));
            let rtype = self
                .optional(&item, "type", |lowering, _, node| lowering.read(node, "a type", values::rtype));
            let ttl = self.duration(&item, "ttl");
            let alternatives = self.alternatives(&item, rtype.as_ref());
            let (Some(name), Some(rtype)) = (name, rtype) else { continue };
            if apex.is_some_and(|apex| !name.value.as_name().is_at_or_below(apex.as_name())) {
                let message = format!("\"{}\" is not in this zone", name.value);
                self.problems.push(Problem::error(name.span, message));
            }
            let is_data = rtypes::describe(rtype.value).is_none_or(|known| known.kind == Kind::Data);
            if !is_data || matches!(rtype.value, Rtype::SOA | Rtype::NS | Rtype::DNAME) {
                let message = format!("{} cannot depend on who asks", rtype.value);
                self.problems.push(Problem::error(rtype.span, message).expected("a type such as A or CNAME"));
            }
            let is_same = |other: &&ZoneChoice| {
                other.name.value == name.value
                    && (other.rtype.value == rtype.value
                        || [other.rtype.value, rtype.value].contains(&Rtype::CNAME))
            };
            if let Some(first) = choices.iter().find(is_same) {
                let message = match first.rtype.value == rtype.value {
                    true => format!("{} {} is chosen twice", name.value, rtype.value),
                    false => format!("{} would be an alias beside other records", name.value),
                };
                let place = first.name.span;
                self.problems.push(Problem::error(name.span, message).hint_at("the first is on ", place, ""));
                continue;
            }
            choices.push(ZoneChoice { name, rtype, ttl, alternatives });
        }
        choices
    }

    fn alternatives(&mut self, choice: &Section<'_>, rtype: Option<&At<Rtype>>) -> Vec<ZoneAlternative> {
        let rtype = rtype.map_or(Rtype::TXT, |at| at.value);
        let mut alternatives = Vec::new();
        for item in self.items(choice, "from") {
            self.need(&item, &["data"]);
            let data = self.list(&item, "data", |_, _, scalar| {
                let mut octets = Vec::new();
                match parse_text(rtype, &scalar.text, Some(Name::ROOT), &mut octets) {
                    Ok(()) => Ok(octets),
                    Err(error) => Err(Misread {
                        at: error.at.min(scalar.text.len())
                            ..(error.at + error.what.len()).min(scalar.text.len()),
                        message: format!("\"{}\" is no data of type {rtype}", scalar.text),
                        expected: Some(error.expected.to_owned()),
                        hint: None,
                    }),
                }
            });
            if rtype == Rtype::CNAME && data.len() > 1 {
                let message = "several CNAME records at one name";
                self.problems.push(Problem::error(data[1].span, message).expected("one (RFC 2181 §10.1)"));
            }
            let data = data.into_iter().map(|at| at.value).collect();
            let clients = self.prefixes(&item, "clients");
            let sets =
                self.list(&item, "sets", |_, _, scalar| values::identifier(&scalar.text).map(str::to_owned));
            let weight = self.whole(&item, "weight") as u32;
            alternatives.push(ZoneAlternative { data, clients, sets, weight });
        }
        let is_general = |it: &ZoneAlternative| it.clients.is_empty() && it.sets.is_empty();
        if !alternatives.is_empty() && !alternatives.iter().any(is_general) {
            self.problems.push(
                Problem::error(choice.span, "a client that none of these name would get nothing")
                    .expected("something without \"clients\" and \"sets\", for all others"),
            );
        }
        alternatives
    }
}
