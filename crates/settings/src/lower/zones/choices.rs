//! Reads the records of a zone that are in no file: made from addresses (`make`), chosen by client
//! (`choose`).

use std::collections::BTreeMap;
use std::sync::Arc;

use diagnostic::{At, Problem};
use plan::checks::Check;
use plan::zones::ZoneName;
use values::Misread;
use wire::rdata::parse_splitting;
use wire::rtypes::{self, Kind};
use wire::{Name, Rtype};

use super::super::{Lowering, Section};
use crate::groups::{ZoneAlternative, ZoneChoice, ZoneMaker, ZoneSettings};

/// Complains of what a zone would choose at names that are not its own, at names that are too long,
/// and twice.
pub fn check_chosen(zone: &ZoneSettings, problems: &mut Vec<Problem>) {
    let apex = &zone.name.value;
    let origins = zone.make.iter().filter_map(|make| make.origin.as_ref());
    for (name, misread) in origins.filter_map(|name| Some((name, name.value.of(apex).err()?))) {
        problems.push(misread.into_problem(name.span));
    }
    let mut seen: BTreeMap<Vec<u8>, Vec<&ZoneChoice>> = BTreeMap::new();
    for choice in &zone.choose {
        let (place, rtype) = (choice.name.span, choice.rtype.value);
        let name = match choice.name.value.of(apex) {
            Ok(name) => name,
            Err(misread) => {
                problems.push(misread.into_problem(place));
                continue;
            }
        };
        if !name.as_name().is_at_or_below(apex.as_name()) {
            problems.push(Problem::error(place, format!("\"{name}\" is not in this zone")));
        }
        let before = seen.entry(name.as_name().to_folded().as_bytes().to_vec()).or_default();
        let is_same = |other: &&&ZoneChoice| {
            other.rtype.value == rtype || [other.rtype.value, rtype].contains(&Rtype::CNAME)
        };
        if let Some(first) = before.iter().find(is_same) {
            let message = match first.rtype.value == rtype {
                true => format!("{name} {rtype} is chosen twice"),
                false => format!("{name} would be an alias beside other records"),
            };
            let problem = Problem::error(place, message);
            problems.push(problem.hint_at("the first is on ", first.name.span, ""));
        }
        before.push(choice);
    }
}

impl Lowering<'_> {
    /// Complains of keys that must be there.
    fn need(&mut self, item: &Section<'_>, keys: &[&str]) {
        for key in keys {
            if item.entry(key).is_none() {
                self.problems.push(Problem::error(item.span, format!("\"{key}\" is missing")));
            }
        }
    }

    /// Returns the names that are made from addresses.
    pub(super) fn makers(&mut self, zone: &Section<'_>) -> Vec<ZoneMaker> {
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
            let origin = self.optional(&item, "origin", |lowering, _, node| {
                lowering.read(node, "a name", ZoneName::parse)
            });
            let ttl = self.duration(&item, "ttl");
            makers.push(ZoneMaker { prefix: prefix.value, networks, origin, ttl });
        }
        makers
    }

    /// Returns the records of which the client decides.
    pub(super) fn choices(&mut self, zone: &Section<'_>, checks: &[Arc<Check>]) -> Vec<ZoneChoice> {
        let mut choices: Vec<ZoneChoice> = Vec::new();
        for item in self.items(zone, "choose") {
            self.need(&item, &["name", "type", "from"]);
            let name = self
                .optional(&item, "name", |lowering, _, node| lowering.read(node, "a name", ZoneName::parse));
            let rtype = self
                .optional(&item, "type", |lowering, _, node| lowering.read(node, "a type", values::rtype));
            let ttl = self.duration(&item, "ttl");
            let alternatives = self.alternatives(&item, rtype.as_ref());
            let check = self.checked_by(&item, checks);
            if let (Some(check), Some(rtype)) = (&check, &rtype)
                && !matches!(rtype.value, Rtype::A | Rtype::AAAA)
            {
                let message = format!("{} has no address that could be checked", rtype.value);
                self.problems
                    .push(Problem::error(check.span, message).expected("type A or AAAA beside \"check\""));
            }
            if let Some(check) = check.as_ref().filter(|_| alternatives.iter().any(|it| it.data.len() > 64)) {
                let problem =
                    Problem::error(check.span, "more than 64 addresses in one item cannot be checked");
                self.problems.push(problem.expected("several items"));
            }
            let (Some(name), Some(rtype)) = (name, rtype) else { continue };
            let is_data = rtypes::describe(rtype.value).is_none_or(|known| known.kind == Kind::Data);
            if !is_data || matches!(rtype.value, Rtype::SOA | Rtype::NS | Rtype::DNAME) {
                let message = format!("{} cannot depend on who asks", rtype.value);
                self.problems.push(Problem::error(rtype.span, message).expected("a type such as A or CNAME"));
            }
            let check = check.map(|at| at.value);
            choices.push(ZoneChoice { name, rtype, ttl, check, alternatives });
        }
        choices
    }

    /// Returns what a client may get.
    fn alternatives(&mut self, choice: &Section<'_>, rtype: Option<&At<Rtype>>) -> Vec<ZoneAlternative> {
        let rtype = rtype.map_or(Rtype::TXT, |at| at.value);
        let mut alternatives = Vec::new();
        for item in self.items(choice, "from") {
            self.need(&item, &["data"]);
            let data = self.list(&item, "data", |lowering, _, scalar| {
                let mut octets = Vec::new();
                match parse_splitting(rtype, &scalar.text, Some(Name::ROOT), &mut octets) {
                    Ok(false) => Ok(octets),
                    Ok(true) => {
                        let message = "a text of more than 255 octets; it is split into several strings";
                        let place = scalar.span(0, scalar.text.len());
                        lowering.problems.push(Problem::warning(place, message));
                        Ok(octets)
                    }
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
