//! Zones of one template of the other program become zones of one template here, as far as they say
//! the same but for their names and files. In a program that has no templates, all zones of a kind
//! are of one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use settings::named_file;
use wire::NameBuf;

use super::super::write::{Map, Noted};
use super::made::ZoneMade;

/// Octets of a template's name, with the number that makes it the only one.
const NAME_OCTETS_MAX: usize = 56;

/// What zones are known to have in common: the template of the other program that they come from,
/// and all they say but for their names.
type Alike = (String, String);

/// Returns templates, and zones of which those that are alike name one.
pub(super) fn fold(zones: Vec<ZoneMade>) -> (Map, Vec<Noted>) {
    let alike: Vec<Option<Alike>> = zones.iter().map(alike).collect();
    let mut counts: BTreeMap<&Alike, usize> = BTreeMap::new();
    for alike in alike.iter().flatten() {
        *counts.entry(alike).or_default() += 1;
    }
    let mut templates = Map::default();
    let mut names: BTreeMap<&Alike, String> = BTreeMap::new();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut items = Vec::with_capacity(zones.len());
    for (zone, alike) in zones.into_iter().zip(&alike) {
        let Some(alike) = alike.as_ref().filter(|alike| counts.get(alike).is_some_and(|count| *count > 1))
        else {
            items.push(zone.into_noted());
            continue;
        };
        let name = names.entry(alike).or_insert_with(|| {
            let name = free_name(&alike.0, &taken);
            taken.insert(name.clone());
            templates.put(name.clone(), general(&zone).into_map());
            name
        });
        let own_file = zone.file.as_ref().filter(|file| file_for_any(file, &zone.name).is_none()).cloned();
        let mut item = Map::default();
        item.put("name", zone.name);
        item.put("like", name.as_str());
        item.put_some("file", own_file);
        items.push(Noted { notes: zone.notes, value: item.into() });
    }
    (templates, items)
}

fn alike(zone: &ZoneMade) -> Option<Alike> {
    let template = zone.template.clone()?;
    let general = general(zone).into_map();
    (!general.is_empty()).then(|| (template, format!("{general:?}")))
}

/// Returns what a zone says without its name and its file, unless that is called after it.
fn general(zone: &ZoneMade) -> ZoneMade {
    let file = zone.file.as_ref().and_then(|file| file_for_any(file, &zone.name));
    ZoneMade { file, name: String::new(), notes: Vec::new(), template: None, ..zone.clone() }
}

/// Returns a file's path with `{name}` in place of the zone's name, if that stands for exactly this
/// file.
fn file_for_any(file: &str, name: &str) -> Option<String> {
    let zone = NameBuf::from_text(name).ok()?;
    let folder = file.rfind('/').map_or(0, |slash| slash + 1);
    let at = folder + file.get(folder..)?.rfind(name).filter(|_| !name.is_empty())?;
    let pattern = format!("{}{{name}}{}", file.get(..at)?, file.get(at + name.len()..)?);
    (named_file(Path::new(&pattern), &zone) == Path::new(file)).then_some(pattern)
}

/// Returns a name for a template that is like its name there and not taken.
fn free_name(there: &str, taken: &BTreeSet<String>) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = there.chars().map(legal).take(NAME_OCTETS_MAX).collect();
    let name = if name.is_empty() { "common".to_owned() } else { name };
    if !taken.contains(&name) {
        return name;
    }
    let mut number = 2;
    // Ends: there are more numbers than templates.
    loop {
        let numbered = format!("{name}-{number}");
        if !taken.contains(&numbered) {
            return numbered;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str, template: Option<&str>, file: &str) -> ZoneMade {
        ZoneMade {
            name: name.to_owned(),
            template: template.map(str::to_owned),
            file: Some(file.to_owned()),
            ..ZoneMade::default()
        }
    }

    /// Returns each template with its file, and each zone with its template.
    fn folded(zones: Vec<ZoneMade>) -> (String, String) {
        let (templates, zones) = fold(zones);
        (format!("{templates:?}"), format!("{zones:?}"))
    }

    #[test]
    fn a_file_is_general_only_if_it_is_found_again() {
        for (file, name, expect) in [
            ("/z/example.org.zone", "example.org", Some("/z/{name}.zone")),
            ("/z/example.org/db.example.org", "example.org", Some("/z/example.org/db.{name}")),
            ("example.org", "example.org", Some("{name}")),
            ("/z/org.zone", "example.org", None),
            ("/example.org/zone", "example.org", None),
            // What would be written otherwise.
            ("/z/Example.org.zone", "Example.org", None),
            ("/z/*.example.org", "*.example.org", None),
            ("/z/{name}-a", "a", None),
        ] {
            assert_eq!(file_for_any(file, name).as_deref(), expect, "{file}");
        }
    }

    #[test]
    fn ten_thousand_zones_of_a_template_say_what_they_have_in_common_once() {
        let all = (0..10_000)
            .map(|i| zone(&format!("z{i}.example"), Some("a b"), &format!("/z/z{i}.example.zone")));
        let (templates, zones) = folded(all.collect());
        assert_eq!(templates.matches("/z/{name}.zone").count(), 1, "{templates}");
        assert_eq!((zones.matches("like").count(), zones.matches("file").count()), (10_000, 0));
        assert!(templates.contains("\"a-b\""), "{templates}");
    }

    #[test]
    fn zones_that_say_something_else_say_it_themselves() {
        let mut odd = zone("c.example", Some("t"), "/z/c.example.zone");
        odd.notify = vec!["192.0.2.1".to_owned()];
        let (templates, zones) = folded(vec![
            zone("a.example", Some("t"), "/z/a.example.zone"),
            odd,
            zone("b.example", Some("t"), "/z/b.example.zone"),
            // Others of the same template that are alike have one of their own.
            zone("d.example", Some("t"), "/y/d.example"),
            zone("e.example", Some("t"), "/y/e.example"),
            // Without a template there, each is for itself.
            zone("f.example", None, "/z/f.example.zone"),
            zone("g.example", None, "/z/g.example.zone"),
            // There is nothing that these have in common.
            zone("h.example", Some("t"), "/x/one"),
            zone("i.example", Some("t"), "/x/two"),
        ]);
        assert_eq!(templates.matches("file").count(), 2, "{templates}");
        assert!(templates.contains("\"t\"") && templates.contains("\"t-2\""), "{templates}");
        assert_eq!((zones.matches("like").count(), zones.matches("file").count()), (4, 5), "{zones}");
    }

    #[test]
    fn a_file_that_is_called_otherwise_is_said_by_its_zone() {
        let signed = |name: &str, file: &str| ZoneMade {
            sign: Some("default".to_owned()),
            ..zone(name, Some("primary"), file)
        };
        let (templates, zones) = folded(vec![
            signed("a.example", "/z/a.zone"),
            signed("b.example", "/z/b.zone"),
            signed("c.example", "/z/common"),
            signed("d.example", "/z/common"),
        ]);
        assert_eq!(
            (templates.matches("sign").count(), templates.matches("file").count()),
            (1, 0),
            "{templates}"
        );
        assert_eq!((zones.matches("like").count(), zones.matches("file").count()), (4, 4), "{zones}");
        assert_eq!(zones.matches("sign").count(), 0, "{zones}");
    }
}
