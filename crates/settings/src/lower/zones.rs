//! Reads the settings of zones: `zones`, `zone-templates`, and those of zones that are added while
//! the server runs.

mod choices;
mod directories;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::suggest::{nearest, one_of};
use diagnostic::{At, Problem, Scalar, Sources, Span};
use dnssec::Denial;
use environment::Environment;
use wire::{Name, NameBuf, Prefix};

pub use choices::check_chosen;

use super::notation::url;
use super::read::unreachable_kind;
use super::{Lowering, Section, authority};

use crate::groups::{
    AliasSettings, KeySettings, LocalRootSettings, RemoteSettings, ResolverSettings, SerialWord,
    SigningSettings, ZoneChoice, ZoneSettings,
};
use plan::checks::Check;
use plan::signing::{DenialKind, SigningPolicy};
use plan::zones::{CatalogRole, FileChange, NAME_MARK, ZoneName, ZonemdRule, is_json};
use schema::{Row, Value};
use yaml::{Entry, Node};

/// What a zone and other servers have to do with each other.
const BETWEEN_SERVERS: [&str; 15] = [
    "primaries",
    "urls",
    "transfer-size",
    "transfer-time",
    "transfer",
    "notify",
    "notify-from",
    "update",
    "forward-updates",
    "on-file-change",
    "serial",
    "journal-size",
    "catalog",
    "group",
    "catalog-role",
];

/// What a zone that is for resolvers alone does not have.
const FOR_CLIENTS: [&str; 11] = [
    "set",
    "allow-query",
    "make",
    "choose",
    "sign",
    "transfer",
    "notify",
    "update",
    "forward-updates",
    "catalog",
    "catalog-role",
];

/// What has the settings of a zone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// An item of `zones`.
    Zone,
    /// What several have in common.
    Template,
    /// One that is added while the server runs.
    Added,
}

/// What zones have in common, by name.
type Templates<'n> = Vec<(At<String>, &'n Entry)>;

/// What the settings of zones refer to.
#[derive(Clone, Copy)]
pub struct Known<'k> {
    /// Policies that zones are signed by.
    pub signing: &'k [SigningSettings],
    /// Keys between servers.
    pub keys: &'k [KeySettings],
    /// Checks of what records lead to.
    pub checks: &'k [Arc<Check>],
}

/// Reads a zone that is added while the server runs: what is `said` of it, and the templates among
/// `root`, the settings of the file. It has no name but that which it is added by.
pub fn added_zone(
    name: &NameBuf,
    said: &Node,
    root: &[Entry],
    known: Known<'_>,
    sources: &Sources,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<ZoneSettings> {
    let read_file = |path: &Path| environment.read(path);
    let mut lowering = Lowering {
        sources,
        problems,
        read_file: &read_file,
        is_open_to_all: &|path| environment.is_open_to_all(path),
        #[cfg(test)]
        touched: std::cell::RefCell::default(),
    };
    lowering.added_zone(name, said, root, known)
}

/// Returns a path in which `{name}` stands for a zone's name.
pub fn named_file(path: &Path, name: &NameBuf) -> PathBuf {
    match path.to_str() {
        Some(text) if text.contains(NAME_MARK) => text.replace(NAME_MARK, &file_label(name)).into(),
        _ => path.to_owned(),
    }
}

/// Returns a name as it stands in that of a file.
fn file_label(name: &NameBuf) -> String {
    let labels = name.as_name().to_folded();
    let mut text = String::new();
    for label in labels.as_name().labels() {
        if !text.is_empty() {
            text.push('.');
        }
        for &octet in label {
            match octet {
                b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => text.push(char::from(octet)),
                _ => text.push_str(&format!("%{octet:02x}")),
            }
        }
    }
    text
}

/// Returns whether it is known where the records of a zone come from.
fn has_source(zone: &ZoneSettings) -> bool {
    let is_produced = zone.catalog_role == Some(CatalogRole::Producer);
    zone.file.is_some() || is_secondary(zone) || is_produced
}

/// Returns whether a zone comes from other servers.
fn is_secondary(zone: &ZoneSettings) -> bool {
    !(zone.primaries.is_empty() && zone.urls.is_empty())
}

/// Returns whether a zone has a setting for the source of its records, valid or not.
fn says_source(item: &Section<'_>) -> bool {
    ["file", "primaries", "urls"].iter().any(|key| item.entry(key).is_some())
}

impl Lowering<'_> {
    /// Reads who resolves what ALIAS records lead to.
    pub(super) fn alias(&mut self, root: &Section<'_>) -> AliasSettings {
        let section = self.section(root, "alias");
        let resolvers = self.list(&section, "resolvers", |_, value, scalar| match *value {
            Value::Socket { port, .. } => values::socket_address(&scalar.text, port),
            ref other => unreachable_kind(other),
        });
        AliasSettings {
            resolvers: resolvers.into_iter().map(|at| at.value).collect(),
            stale: self.duration(&section, "stale"),
            targets: self.whole(&section, "targets") as u32,
        }
    }

    /// Returns what zones have in common, as it is written.
    fn templates<'n>(&mut self, root: &'n Section<'n>) -> Templates<'n> {
        let row = self.row(root, "zone-templates");
        let Some(entry) = root.entry(row.key()) else { return Vec::new() };
        let all = self.section_of(row.path.to_owned(), &entry.node, entry.key_span);
        let Cow::Borrowed(all) = all.entries else { return Vec::new() };
        all.iter().filter_map(|entry| Some((self.label(entry)?, entry))).collect()
    }

    /// Complains of what is wrong with templates; returns the sets that they name.
    fn check_templates(&mut self, templates: &Templates<'_>, known: Known<'_>) -> Vec<At<String>> {
        let mut sets = Vec::new();
        for (_, entry) in templates {
            let all = Section {
                path: "zone-templates".to_owned(),
                entries: Cow::Borrowed(&[]),
                defaults: &[],
                span: entry.key_span,
            };
            self.row(&all, "*");
            let section = self.section_of("zones[]".to_owned(), &entry.node, entry.key_span);
            self.check_keys(&section, "setting");
            for key in ["name", "like"] {
                if let Some(entry) = section.entry(key) {
                    let message = format!("a template has no \"{key}\"");
                    self.problems.push(Problem::error(entry.key_span, message));
                }
            }
            let zone = self.zone(&section, known, Whose::Template);
            let choices = zone.into_iter().flat_map(|zone| zone.choose);
            sets.extend(choices.flat_map(|choice| choice.alternatives).flat_map(|it| it.sets));
        }
        sets
    }

    /// Returns an item with what its template says besides.
    fn with_template<'n>(&mut self, item: Section<'n>, templates: &Templates<'_>) -> Section<'n> {
        let like = self.optional(&item, "like", |lowering, _, node| {
            lowering.read(node, "the name of a template", |text| values::identifier(text).map(str::to_owned))
        });
        let Some(like) = like else { return item };
        let Some((_, common)) = templates.iter().find(|(name, _)| name.value == like.value) else {
            let names = || templates.iter().map(|(name, _)| name.value.as_str());
            let mut problem = Problem::error(like.span, format!("unknown template \"{}\"", like.value));
            if let Some(near) = nearest(&like.value, names()) {
                problem = problem.hint(format!("did you mean \"{near}\"?"));
            } else if names().next().is_none() {
                problem = problem.hint("templates are listed under \"zone-templates:\"");
            }
            self.problems.push(problem);
            return item;
        };
        let mut entries = item.entries.to_vec();
        if let yaml::Value::Map(common) = &common.node.value {
            let more = common.iter().filter(|entry| !["name", "like"].contains(&entry.key.as_str()));
            entries.extend(more.filter(|entry| item.entry(&entry.key).is_none()).cloned());
        }
        Section { entries: Cow::Owned(entries), ..item }
    }

    /// Reads an item of `zones`, or what stands for one; the findings about its template were
    /// reported when that was read.
    fn whole_zone(
        &mut self,
        item: Section<'_>,
        known: Known<'_>,
        templates: &Templates<'_>,
        told: std::ops::Range<usize>,
        whose: Whose,
    ) -> Option<ZoneSettings> {
        let item = self.with_template(item, templates);
        let before = self.problems.len();
        let zone = self.zone(&item, known, whose);
        let new = self.problems.split_off(before);
        let is_told = |new: &Problem| {
            self.problems.get(told.clone()).is_some_and(|all| all.iter().any(|old| old.is_like(new)))
        };
        let new: Vec<Problem> = new.into_iter().filter(|new| !is_told(new)).collect();
        self.problems.extend(new);
        zone
    }

    fn added_zone(
        &mut self,
        name: &NameBuf,
        said: &Node,
        root: &[Entry],
        known: Known<'_>,
    ) -> Option<ZoneSettings> {
        let root = Section {
            path: String::new(),
            entries: Cow::Borrowed(root),
            defaults: &[],
            span: Span::BUILT_IN,
        };
        let before = self.problems.len();
        let templates = self.templates(&root);
        // Their findings were reported when the configuration was read.
        self.problems.truncate(before);
        let item = self.section_of("zones[]".to_owned(), said, said.span);
        self.check_keys(&item, "setting");
        let misfit = |key: &str, place: Span| {
            let problem = Problem::error(place, format!("a zone that is added has no \"{key}\""));
            problem.hint("such zones are written into the configuration")
        };
        let here =
            ["name", "set", "catalog-role", "for-clients"].map(|key| Some((key, item.entry(key)?.key_span)));
        self.problems.extend(here.iter().flatten().map(|(key, place)| misfit(key, *place)));
        let mut entries = item.entries.into_owned();
        entries.retain(|entry| entry.key != "name");
        let value = yaml::Value::Scalar(Scalar::straight(name.to_string(), said.span));
        let node = Node { span: said.span, value };
        entries.push(Entry { key: "name".to_owned(), key_span: said.span, node });
        let item = Section { path: item.path, entries: Cow::Owned(entries), defaults: &[], span: item.span };
        let zone = self.whole_zone(item, known, &templates, 0..0, Whose::Added);
        // What its template says counts as well.
        if let Some(zone) = zone.as_ref().filter(|_| here.iter().all(Option::is_none)) {
            let more = [
                ("set", zone.set.is_some()),
                ("catalog-role", zone.catalog_role.is_some()),
                ("for-clients", zone.is_for_resolvers),
            ];
            let more = more.iter().filter(|(_, is_said)| *is_said);
            self.problems.extend(more.map(|(key, _)| misfit(key, said.span)));
        }
        zone
    }

    /// Returns the zones, in the order of the file, and the sets that templates name.
    pub(super) fn zones(
        &mut self,
        root: &Section<'_>,
        (signing, checks): (&[SigningSettings], &[Arc<Check>]),
        keys: &[KeySettings],
        resolvers: &[ResolverSettings],
    ) -> (Vec<ZoneSettings>, Vec<At<String>>) {
        let known = Known { signing, keys, checks };
        let before = self.problems.len();
        let templates = self.templates(root);
        let sets = self.check_templates(&templates, known);
        let told = before..self.problems.len();
        let mut zones: Vec<ZoneSettings> = Vec::new();
        let mut seen: BTreeMap<(Option<String>, Vec<u8>), Span> = BTreeMap::new();
        for item in self.items(root, "zones") {
            let zone = self.whole_zone(item, known, &templates, told.clone(), Whose::Zone);
            let Some(zone) = zone else { continue };
            let folded = zone.name.value.as_name().to_folded().as_bytes().to_vec();
            let folded = (zone.set.as_ref().map(|set| set.value.clone()), folded);
            if let Some(&first) = seen.get(&folded) {
                let problem =
                    Problem::error(zone.name.span, format!("zone \"{}\" is there twice", zone.name.value));
                self.problems.push(problem.hint_at("the first time is on ", first, ""));
                continue;
            }
            seen.insert(folded, zone.name.span);
            zones.push(zone);
        }
        self.local_roots(resolvers, known, &mut zones);
        let made = zones.iter().filter(|zone| zone.catalog_role == Some(CatalogRole::Producer));
        let made: Vec<NameBuf> = made.map(|zone| zone.name.value).collect();
        for zone in &zones {
            let Some(catalog) = &zone.catalog else { continue };
            self.check_catalog(catalog, made.contains(&catalog.value));
        }
        (zones, sets)
    }

    /// Adds the root zone that resolvers read, if one does.
    fn local_roots(
        &mut self,
        resolvers: &[ResolverSettings],
        known: Known<'_>,
        zones: &mut Vec<ZoneSettings>,
    ) {
        let mut first: Option<&LocalRootSettings> = None;
        for resolver in resolvers {
            let Some(local) = &resolver.local_root else { continue };
            if let Some(first) = first {
                let values = |of: &LocalRootSettings| -> (Vec<RemoteSettings>, Vec<String>) {
                    let primaries = of.primaries.iter().map(|primary| primary.value.clone());
                    (primaries.collect(), of.urls.iter().map(|url| url.value.clone()).collect())
                };
                if values(first) != values(local) {
                    let message = "the root zone is one for all resolvers, and comes from the same servers";
                    let problem = Problem::error(local.at.span, message);
                    self.problems.push(problem.hint_at("others are written on ", first.at.span, ""));
                }
                continue;
            }
            first = Some(local);
            let is_root = |zone: &&ZoneSettings| zone.name.value.as_name().is_root() && zone.set.is_none();
            if let Some(written) = zones.iter().find(is_root) {
                let problem = Problem::error(local.at.span, "the root zone is in \"zones\" already");
                let read = "; \"own: true\" at \".\" in \"zones\" of the resolver reads it";
                self.problems.push(problem.hint_at("it is on ", written.name.span, read));
                continue;
            }
            let nothing = Section {
                path: "zones[]".to_owned(),
                entries: Cow::Borrowed(&[]),
                defaults: &[],
                span: local.at.span,
            };
            let name = At { value: Name::ROOT.to_buf(), span: local.at.span };
            let zone = ZoneSettings {
                is_for_resolvers: true,
                zonemd: ZonemdRule::Require,
                trusted_by: Some(resolver.name.value.clone()),
                primaries: local.primaries.clone(),
                urls: local.urls.clone(),
                ..self.zone_as_said(&nothing, Some(name), known, Whose::Zone)
            };
            self.check_known(known.keys, &zone);
            zones.push(zone);
        }
    }

    /// Reads an item of `zones`; `None` if it is not enough for a zone.
    fn zone(&mut self, item: &Section<'_>, known: Known<'_>, whose: Whose) -> Option<ZoneSettings> {
        let name =
            self.optional(item, "name", |lowering, _, node| lowering.read(node, "a name", values::name));
        let has_name = name.is_some();
        let zone = self.zone_as_said(item, name, known, whose);
        self.check_key_sets(&zone, whose);
        self.check_source(item, &zone, whose);
        self.check_updates(item, &zone, whose);
        self.check_known(known.keys, &zone);
        if zone.set.is_some() {
            self.check_set(item, zone.sign.is_some());
        }
        if zone.is_for_resolvers {
            self.check_for_resolvers(item);
        }
        if let Some(copy) = zone.copy.as_ref().filter(|_| !is_secondary(&zone) && whose == Whose::Zone) {
            let problem = Problem::error(copy.span, "only a zone from other servers is written to a file");
            self.problems.push(problem.expected("\"primaries:\" or \"urls:\" beside it"));
        }
        if !zone.keeps && whose == Whose::Zone && (!is_secondary(&zone) || zone.sign.is_some()) {
            let span = item.entry("keep").map_or(item.span, |entry| entry.node.span);
            let problem = Problem::error(span, "only a zone from other servers can be had from them again");
            self.problems.push(problem.expected("\"primaries:\" or \"urls:\" beside it, and no \"sign:\""));
        }
        if let Some(policy) = &zone.sign {
            self.check_signed(item, policy);
        }
        if zone.catalog_role == Some(CatalogRole::Consumer) {
            self.check_for_members(&zone.choose);
        }
        let is_zone = match whose {
            Whose::Zone => has_name && has_source(&zone),
            // What several have in common has no name yet.
            Whose::Template => true,
            // What is added may get its records later.
            Whose::Added => has_name && (has_source(&zone) || !says_source(item)),
        };
        if !is_zone {
            return None;
        }
        if whose == Whose::Zone {
            check_chosen(&zone, self.problems);
        }
        Some(zone)
    }

    /// Reads the settings of a zone. One without a name is called after the root.
    fn zone_as_said(
        &mut self,
        item: &Section<'_>,
        name: Option<At<NameBuf>>,
        Known { signing, keys: _, checks }: Known<'_>,
        whose: Whose,
    ) -> ZoneSettings {
        // What is added is the same for many names.
        let named = name.as_ref().filter(|_| whose != Whose::Added);
        let catalog_role = |lowering: &mut Self, _: &Row, node: &Node| {
            lowering.read(node, &one_of(CatalogRole::WORDS), |text| {
                Self::one_word(CatalogRole::WORDS, text, CatalogRole::parse)
            })
        };
        ZoneSettings {
            file: self.path_of_zone(item, "file", named),
            key_sets: self.path_of_zone(item, "key-sets", named),
            name: name.unwrap_or_else(|| At { value: Name::ROOT.to_buf(), span: item.span }),
            sign: self.signed_by(item, signing),
            own_denial: self.own_denial(item),
            set: self.zone_set(item),
            allow_query: self.allow_query(item),
            is_for_resolvers: !self.boolean(item, "for-clients"),
            zonemd: self.word(item, "zonemd", ZonemdRule::parse),
            trusted_by: None,
            copy: self.path_of_zone(item, "write-to", named),
            keeps: self.boolean(item, "keep"),
            make: self.makers(item),
            choose: self.choices(item, checks),
            primaries: self.remotes(item, "primaries"),
            urls: self.texts(item, "urls", url),
            notify: self.remotes(item, "notify"),
            transfer: self.texts(item, "transfer", authority::grant),
            notify_from: self.texts(item, "notify-from", authority::grant),
            update: self.texts(item, "update", authority::update),
            forward_updates: self.texts(item, "forward-updates", authority::grant),
            on_file_change: self.word(item, "on-file-change", FileChange::parse),
            serial: self.word(item, "serial", SerialWord::parse),
            journal_size: self.size(item, "journal-size"),
            transfer_size: self.optional(item, "transfer-size", Self::read_size).map(|size| size.value),
            transfer_time: self.duration(item, "transfer-time"),
            catalog: self.catalog(item),
            group: self.catalog_group(item),
            catalog_role: self.optional(item, "catalog-role", catalog_role).map(|role| role.value),
        }
    }

    /// Returns a file of a zone, in whose path the zone's name may stand.
    fn path_of_zone(
        &mut self,
        item: &Section<'_>,
        key: &str,
        zone: Option<&At<NameBuf>>,
    ) -> Option<At<PathBuf>> {
        let file = self.path(item, key)?;
        let named = zone.map_or_else(|| file.value.clone(), |zone| named_file(&file.value, &zone.value));
        Some(At { value: self.beside(file.span.file, &named), span: file.span })
    }

    /// Returns the catalog that a zone belongs to.
    fn catalog(&mut self, item: &Section<'_>) -> Option<At<NameBuf>> {
        self.optional(item, "catalog", |lowering, _, node| lowering.read(node, "a name", values::name))
    }

    /// Returns what a zone is in its catalog.
    fn catalog_group(&mut self, item: &Section<'_>) -> Option<String> {
        let group = self.optional(item, "group", |lowering, _, node| {
            lowering.read(node, "a text", |text| Ok(text.to_owned()))
        });
        group.map(|group| group.value)
    }

    /// Complains of keys for a zone that is in no master file.
    fn check_key_sets(&mut self, zone: &ZoneSettings, whose: Whose) {
        let Some(key_sets) = &zone.key_sets else { return };
        let is_master = zone.file.as_ref().is_some_and(|file| !is_json(&file.value));
        if (zone.file.is_some() || whose == Whose::Zone) && !is_master {
            let message = "\"key-sets\" is for a zone in a master file";
            let problem = Problem::error(key_sets.span, message);
            self.problems.push(problem.hint("a zone in JSON has its key sets in \"keys\""));
        }
    }

    /// Complains of a zone that comes from nowhere, or from two places.
    fn check_source(&mut self, item: &Section<'_>, zone: &ZoneSettings, whose: Whose) {
        if item.entry("name").is_none() && whose == Whose::Zone {
            let problem = Problem::error(item.span, "\"name\" is missing");
            self.problems.push(problem.expected("\"name:\" and \"file:\" or \"primaries:\""));
        }
        if !has_source(zone) && !says_source(item) && whose == Whose::Zone {
            let problem = Problem::error(item.span, "\"file\" is missing");
            self.problems.push(problem.expected("\"file:\", or \"primaries:\" that the zone comes from"));
        }
        if let Some(file) = &zone.file
            && is_secondary(zone)
        {
            let problem =
                Problem::error(file.span, "a zone that comes from other servers has no file of its own");
            self.problems.push(problem.hint("what comes is kept in \"server.state-directory\""));
        }
    }

    /// Complains of updates that would be made in the wrong place.
    fn check_updates(&mut self, item: &Section<'_>, zone: &ZoneSettings, whose: Whose) {
        if let Some(update) = zone.update.first().filter(|_| is_secondary(zone)) {
            let problem =
                Problem::error(update.span, "a zone that comes from other servers is changed there");
            self.problems.push(problem.hint("\"forward-updates\" passes updates on to them"));
        }
        if let Some(forwarded) = zone.forward_updates.first()
            && zone.primaries.is_empty()
            && whose != Whose::Template
        {
            let problem = Problem::error(forwarded.span, "there are no primaries to pass updates on to");
            self.problems.push(problem.expected("\"primaries:\" beside it, or \"update:\""));
        }
        let entry = item.entry("on-file-change");
        if let Some(entry) = entry.filter(|_| zone.file.is_none() && whose == Whose::Zone) {
            let message = "\"on-file-change\" does nothing: the zone has no file";
            self.problems.push(Problem::warning(entry.key_span, message));
        }
    }

    /// Complains of keys of other servers that nobody knows.
    fn check_known(&mut self, keys: &[KeySettings], zone: &ZoneSettings) {
        for remote in zone.primaries.iter().chain(&zone.notify) {
            self.check_key(keys, remote.value.key.as_ref(), remote.span);
        }
        for grant in zone.transfer.iter().chain(&zone.notify_from).chain(&zone.forward_updates) {
            self.check_key(keys, grant.value.key.as_ref(), grant.span);
        }
        for update in &zone.update {
            self.check_key(keys, update.value.grant.key.as_ref(), update.span);
        }
    }

    /// Complains of what is chosen at a name that members of a catalog cannot all have.
    fn check_for_members(&mut self, choose: &[ZoneChoice]) {
        for choice in choose {
            if let ZoneName::Fixed(name) = &choice.name.value {
                let message = format!("\"{name}\" is not in the members of this catalog");
                let problem = Problem::error(choice.name.span, message);
                self.problems.push(problem.expected("a name such as \"www.{name}\""));
            }
        }
    }

    /// Complains of what no zone of a set has: there may be several zones of its name, and other
    /// servers could not say which they mean.
    fn check_set(&mut self, item: &Section<'_>, is_signed: bool) {
        let place = item.entry("set").map_or(item.span, |entry| entry.node.span);
        if is_signed {
            self.problems.push(
                Problem::error(place, "the server signs no zone of a set")
                    .expected("\"sign\" or \"set\", not both"),
            );
        }
        for key in BETWEEN_SERVERS {
            let Some(entry) = item.entry(key) else { continue };
            self.problems.push(
                Problem::error(entry.key_span, "other servers do not hear of a zone of a set")
                    .expected(format!("\"{key}\" or \"set\", not both")),
            );
        }
    }

    /// Complains of what concerns the clients of a zone that has none.
    fn check_for_resolvers(&mut self, item: &Section<'_>) {
        for key in FOR_CLIENTS {
            let Some(entry) = self.said(item, key) else { continue };
            let problem = Problem::error(entry.key_span, "a zone for resolvers alone has no clients");
            self.problems.push(problem.expected(format!("\"{key}\" or \"for-clients: false\", not both")));
        }
    }

    /// Complains of secondaries of a zone whose proofs are made here for each question.
    fn check_online(&mut self, item: &Section<'_>, policy: &SigningPolicy) {
        if policy.denial == Denial::Compact {
            self.check_alone(item, "a signing policy without \"denial: compact\"");
        }
    }

    /// Complains of secondaries that nothing could be proved by, but with `other`.
    fn check_alone(&mut self, item: &Section<'_>, other: &str) {
        for key in ["transfer", "notify", "catalog"] {
            let Some(entry) = self.said(item, key) else { continue };
            self.problems.push(
                Problem::error(entry.key_span, "secondaries could not prove what does not exist")
                    .expected(format!("no \"{key}\", or {other}")),
            );
        }
    }

    /// Reads how a zone that brings its own keys proves absence.
    fn own_denial(&mut self, item: &Section<'_>) -> Option<DenialKind> {
        self.check_own_keys(item);
        let named = self.optional(item, "key-sets-denial", |lowering, _, node| {
            lowering.read(node, &one_of(DenialKind::WORDS), |text| {
                Self::one_word(DenialKind::WORDS, text, DenialKind::parse)
            })
        })?;
        if named.value == DenialKind::Compact {
            self.check_alone(item, "\"key-sets-denial: nsec\"");
        }
        Some(named.value)
    }

    /// Complains of what says how a zone is signed with its own keys beside a policy.
    fn check_own_keys(&mut self, item: &Section<'_>) {
        for key in ["key-sets", "key-sets-denial"] {
            let Some(entry) = item.entry(key).filter(|_| item.entry("sign").is_some()) else { continue };
            let message = format!("\"{key}\" does nothing beside \"sign\"");
            self.problems.push(Problem::warning(entry.key_span, message));
        }
    }

    /// Complains of a catalog that the server is to sign: what is in it is for servers, and nobody
    /// validates it.
    fn check_signed(&mut self, item: &Section<'_>, policy: &SigningPolicy) {
        self.check_online(item, policy);
        let Some(entry) = self.said(item, "catalog-role") else { return };
        self.problems.push(
            Problem::error(entry.key_span, "the server signs no catalog")
                .expected("\"catalog-role\" or \"sign\", not both"),
        );
    }

    /// Complains of a catalog that is not made here.
    fn check_catalog(&mut self, catalog: &At<NameBuf>, is_made: bool) {
        if !is_made {
            let message = format!("\"{}\" is not a catalog that is made here", catalog.value);
            let problem = Problem::error(catalog.span, message);
            self.problems.push(problem.expected("the name of a zone with \"catalog-role: producer\""));
        }
    }

    fn zone_set(&mut self, item: &Section<'_>) -> Option<At<String>> {
        self.optional(item, "set", |lowering, _, node| {
            lowering
                .read(node, "the name of a set of zones", |text| values::identifier(text).map(str::to_owned))
        })
    }

    /// Returns who may query a zone; `None` if everybody may.
    fn allow_query(&mut self, item: &Section<'_>) -> Option<Vec<Prefix>> {
        let clients = self.prefixes(item, "allow-query");
        let has_all = |of: fn(&Prefix) -> bool| clients.iter().any(|prefix| prefix.bits() == 0 && of(prefix));
        let is_everybody =
            has_all(|prefix| prefix.address().is_ipv4()) && has_all(|prefix| prefix.address().is_ipv6());
        (!is_everybody).then_some(clients)
    }
}
