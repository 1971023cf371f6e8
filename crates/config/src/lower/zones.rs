//! Reads the settings of zones: `zones` and `zone-directories`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::suggest::{nearest, one_of};
use diagnostic::{At, Problem, Scalar, Span};
use dnssec::Denial;
use values::Misread;
use wire::rdata::parse_splitting;
use wire::rtypes::{self, Kind};
use wire::{Name, NameBuf, Prefix, Rtype};

use super::read::unreachable_kind;
use super::{Lowering, Section, authority};

use crate::schema::Value;
use crate::settings::{
    AliasSettings, KeySettings, SerialWord, SigningSettings, ZoneAlternative, ZoneChoice, ZoneDirectory,
    ZoneMaker, ZoneSettings,
};
use plan::checks::Check;
use plan::signing::{DenialKind, SigningPolicy};
use plan::zones::{CatalogRole, FileChange, FileFormat, NAME_MARK, ZoneName, is_json};
use yaml::{Entry, Node};

/// What a zone and other servers have to do with each other.
const BETWEEN_SERVERS: [&str; 12] = [
    "primaries",
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
pub(crate) struct Known<'k> {
    /// Policies that zones are signed by.
    pub(crate) signing: &'k [SigningSettings],
    /// Keys between servers.
    pub(crate) keys: &'k [KeySettings],
    /// Checks of what records lead to.
    pub(crate) checks: &'k [Arc<Check>],
}

/// Returns a path in which `{name}` stands for a zone's name.
pub fn named_file(path: &Path, name: &NameBuf) -> PathBuf {
    match path.to_str() {
        Some(text) if text.contains(NAME_MARK) => text.replace(NAME_MARK, &file_label(name)).into(),
        _ => path.to_owned(),
    }
}

/// Complains of what a zone would choose at names that are not its own, at names that are too long,
/// and twice.
pub(crate) fn check_chosen(zone: &ZoneSettings, problems: &mut Vec<Problem>) {
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

    /// Reads an item of `zones`, or what stands for one; what is wrong with its template was told
    /// when that was read.
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

    /// Reads a zone that is added while the server runs: what is said of it, and the templates of
    /// the tree. It has no name of its own but that which it is added by.
    pub(crate) fn added_zone(
        &mut self,
        name: &NameBuf,
        said: &Node,
        root: &[Entry],
        known: Known<'_>,
    ) -> Option<ZoneSettings> {
        let root = Section { path: String::new(), entries: Cow::Borrowed(root), span: Span::BUILT_IN };
        let before = self.problems.len();
        let templates = self.templates(&root);
        // They were told when the configuration was read.
        self.problems.truncate(before);
        let item = self.section_of("zones[]".to_owned(), said, said.span);
        self.check_keys(&item, "setting");
        let misfit = |key: &str, place: Span| {
            let problem = Problem::error(place, format!("a zone that is added has no \"{key}\""));
            problem.hint("such zones are written into the configuration")
        };
        let here = ["name", "set", "catalog-role"].map(|key| Some((key, item.entry(key)?.key_span)));
        self.problems.extend(here.iter().flatten().map(|(key, place)| misfit(key, *place)));
        let mut entries = item.entries.into_owned();
        entries.retain(|entry| entry.key != "name");
        let value = yaml::Value::Scalar(Scalar::straight(name.to_string(), said.span));
        let node = Node { span: said.span, value };
        entries.push(Entry { key: "name".to_owned(), key_span: said.span, node });
        let item = Section { path: item.path, entries: Cow::Owned(entries), span: item.span };
        let zone = self.whole_zone(item, known, &templates, 0..0, Whose::Added);
        // What its template says counts as well.
        if let Some(zone) = zone.as_ref().filter(|_| here.iter().all(Option::is_none)) {
            let more = [("set", zone.set.is_some()), ("catalog-role", zone.catalog_role.is_some())];
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
        let made = zones.iter().filter(|zone| zone.catalog_role == Some(CatalogRole::Producer));
        let made: Vec<NameBuf> = made.map(|zone| zone.name.value).collect();
        for zone in &zones {
            let Some(catalog) = &zone.catalog else { continue };
            self.check_catalog(catalog, made.contains(&catalog.value));
        }
        (zones, sets)
    }

    fn zone(
        &mut self,
        item: &Section<'_>,
        Known { signing, keys, checks }: Known<'_>,
        whose: Whose,
    ) -> Option<ZoneSettings> {
        let name =
            self.optional(item, "name", |lowering, _, node| lowering.read(node, "a name", values::name));
        let mut named = |key: &str| {
            let file = self.path(item, key)?;
            // What is added is the same for many names.
            let name = name.as_ref().filter(|_| whose != Whose::Added);
            let named = name.map_or_else(|| file.value.clone(), |name| named_file(&file.value, &name.value));
            Some(At { value: self.beside(file.span.file, &named), span: file.span })
        };
        let (file, key_sets) = (named("file"), named("key-sets"));
        let sign = self.signed_by(item, signing);
        let own_denial = self.own_denial(item);
        if let Some(key_sets) = &key_sets {
            let is_master = file.as_ref().is_some_and(|file| !is_json(&file.value));
            if (file.is_some() || whose == Whose::Zone) && !is_master {
                let message = "\"key-sets\" is for a zone in a master file";
                let problem = Problem::error(key_sets.span, message);
                self.problems.push(problem.hint("a zone in JSON has its key sets in \"keys\""));
            }
        }
        let set = self.zone_set(item);
        let allow_query = self.allow_query(item);
        let make = self.makers(item);
        let choose = self.choices(item, checks);
        let primaries = self.remotes(item, "primaries");
        let notify = self.remotes(item, "notify");
        let transfer = self.texts(item, "transfer", authority::grant);
        let notify_from = self.texts(item, "notify-from", authority::grant);
        let update = self.texts(item, "update", authority::update);
        let forward_updates = self.texts(item, "forward-updates", authority::grant);
        let on_file_change = self.word(item, "on-file-change", FileChange::parse);
        let serial = self.word(item, "serial", SerialWord::parse);
        let journal_size = self.size(item, "journal-size");
        let catalog =
            self.optional(item, "catalog", |lowering, _, node| lowering.read(node, "a name", values::name));
        let group = self.optional(item, "group", |lowering, _, node| {
            lowering.read(node, "a text", |text| Ok(text.to_owned()))
        });
        let catalog_role = self.optional(item, "catalog-role", |lowering, _, node| {
            lowering.read(node, &one_of(CatalogRole::WORDS), |text| {
                Self::one_word(CatalogRole::WORDS, text, CatalogRole::parse)
            })
        });
        let is_produced = catalog_role.as_ref().is_some_and(|role| role.value == CatalogRole::Producer);
        let has_source = file.is_some() || !primaries.is_empty() || is_produced;
        if item.entry("name").is_none() && whose == Whose::Zone {
            let problem = Problem::error(item.span, "\"name\" is missing");
            self.problems.push(problem.expected("\"name:\" and \"file:\" or \"primaries:\""));
        }
        let says_source = item.entry("file").is_some() || item.entry("primaries").is_some();
        if !has_source && !says_source && whose == Whose::Zone {
            let problem = Problem::error(item.span, "\"file\" is missing");
            self.problems.push(problem.expected("\"file:\", or \"primaries:\" that the zone comes from"));
        }
        if let Some(file) = &file
            && !primaries.is_empty()
        {
            let problem =
                Problem::error(file.span, "a zone that comes from primaries has no file of its own");
            self.problems.push(problem.hint("what comes is kept in \"server.state-directory\""));
        }
        if !update.is_empty() && !primaries.is_empty() {
            let problem = Problem::error(update[0].span, "a zone that comes from primaries is changed there");
            self.problems.push(problem.hint("\"forward-updates\" passes updates on to them"));
        }
        if !forward_updates.is_empty() && primaries.is_empty() && whose != Whose::Template {
            let problem =
                Problem::error(forward_updates[0].span, "there are no primaries to pass updates on to");
            self.problems.push(problem.expected("\"primaries:\" beside it, or \"update:\""));
        }
        if let Some(entry) = item.entry("on-file-change").filter(|_| file.is_none() && whose == Whose::Zone) {
            let message = "\"on-file-change\" does nothing: the zone has no file";
            self.problems.push(Problem::warning(entry.key_span, message));
        }
        for remote in primaries.iter().chain(&notify) {
            self.check_key(keys, remote.value.key.as_ref(), remote.span);
        }
        for grant in transfer.iter().chain(&notify_from).chain(&forward_updates) {
            self.check_key(keys, grant.value.key.as_ref(), grant.span);
        }
        for update in &update {
            self.check_key(keys, update.value.grant.key.as_ref(), update.span);
        }
        if set.is_some() {
            self.check_set(item, sign.is_some());
        }
        if let Some(policy) = &sign {
            self.check_signed(item, policy);
        }
        if catalog_role.as_ref().is_some_and(|role| role.value == CatalogRole::Consumer) {
            self.check_for_members(&choose);
        }
        // What several have in common has no name yet.
        let any = || At { value: Name::ROOT.to_buf(), span: item.span };
        let name = name.or_else(|| (whose == Whose::Template).then(any));
        let has_source = has_source || whose == Whose::Template;
        // What is added may get its records later.
        let has_source = has_source || (whose == Whose::Added && !says_source);
        let (Some(name), true) = (name, has_source) else { return None };
        let zone = ZoneSettings {
            name,
            file,
            set,
            allow_query,
            make,
            choose,
            sign,
            key_sets,
            own_denial,
            primaries,
            notify,
            transfer,
            notify_from,
            update,
            forward_updates,
            on_file_change,
            serial,
            journal_size,
            catalog,
            group: group.map(|group| group.value),
            catalog_role: catalog_role.map(|role| role.value),
        };
        if whose == Whose::Zone {
            check_chosen(&zone, self.problems);
        }
        Some(zone)
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

    /// Returns the directories whose files are zones.
    pub(super) fn zone_directories(
        &mut self,
        root: &Section<'_>,
        signing: &[SigningSettings],
        keys: &[KeySettings],
        zones: &[ZoneSettings],
    ) -> Vec<ZoneDirectory> {
        let mut directories = Vec::new();
        for item in self.items(root, "zone-directories") {
            let path = self.path(&item, "path");
            let format = self.word(&item, "format", FileFormat::parse);
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
            let allow_query = self.allow_query(&item);
            let sign = self.signed_by(&item, signing);
            let own_denial = self.own_denial(&item);
            let key_sets = self.path(&item, "key-sets");
            let key_sets = key_sets.map(|path| self.beside(path.span.file, &path.value));
            if let Some(policy) = &sign {
                self.check_online(&item, policy);
            }
            if let (Some(set), true) = (&set, sign.is_some()) {
                self.problems.push(
                    Problem::error(set.span, "the server signs no zone of a set")
                        .expected("\"sign\" or \"set\", not both"),
                );
            }
            let common = self.common_zone(&item, sign.as_ref(), keys, zones);
            let Some(path) = path else {
                if item.entry("path").is_none() {
                    self.problems.push(Problem::error(item.span, "\"path\" is missing"));
                }
                continue;
            };
            let path = At { value: self.beside(path.span.file, &path.value), span: path.span };
            let contexts = has_contexts.then_some(contexts);
            directories.push(ZoneDirectory {
                path,
                format,
                contexts,
                matches_empty,
                set,
                allow_query,
                sign,
                key_sets,
                own_denial,
                common,
            });
        }
        directories
    }

    /// Reads what other servers may do with every zone of a directory; `None` by default.
    fn common_zone(
        &mut self,
        item: &Section<'_>,
        sign: Option<&Arc<SigningPolicy>>,
        keys: &[KeySettings],
        zones: &[ZoneSettings],
    ) -> Option<Arc<ZoneSettings>> {
        let notify = self.remotes(item, "notify");
        let transfer = self.texts(item, "transfer", authority::grant);
        let update = self.texts(item, "update", authority::update);
        let on_file_change = self.word(item, "on-file-change", FileChange::parse);
        let serial = self.word(item, "serial", SerialWord::parse);
        let journal_size = self.size(item, "journal-size");
        let catalog =
            self.optional(item, "catalog", |lowering, _, node| lowering.read(node, "a name", values::name));
        let group = self.optional(item, "group", |lowering, _, node| {
            lowering.read(node, "a text", |text| Ok(text.to_owned()))
        });
        let said =
            ["notify", "transfer", "update", "on-file-change", "serial", "journal-size", "catalog", "group"];
        let is_said = said.iter().any(|key| item.entry(key).is_some());
        for remote in &notify {
            self.check_key(keys, remote.value.key.as_ref(), remote.span);
        }
        for grant in &transfer {
            self.check_key(keys, grant.value.key.as_ref(), grant.span);
        }
        for update in &update {
            self.check_key(keys, update.value.grant.key.as_ref(), update.span);
        }
        if let Some(catalog) = &catalog {
            let is_made = zones.iter().any(|other| {
                other.name.value == catalog.value && other.catalog_role == Some(CatalogRole::Producer)
            });
            self.check_catalog(catalog, is_made);
        }
        if item.entry("set").is_some() {
            self.check_set(item, false);
            return None;
        }
        is_said.then(|| {
            Arc::new(ZoneSettings {
                name: At { value: Name::ROOT.to_buf(), span: item.span },
                file: None,
                set: None,
                // What is said of it is said at the directory.
                allow_query: None,
                make: Vec::new(),
                choose: Vec::new(),
                sign: sign.map(Arc::clone),
                key_sets: None,
                own_denial: None,
                primaries: Vec::new(),
                notify,
                transfer,
                notify_from: Vec::new(),
                update,
                forward_updates: Vec::new(),
                on_file_change,
                serial,
                journal_size,
                catalog,
                group: group.map(|group| group.value),
                catalog_role: None,
            })
        })
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
            let origin = self.optional(&item, "origin", |lowering, _, node| {
                lowering.read(node, "a name", ZoneName::parse)
            });
            let ttl = self.duration(&item, "ttl");
            makers.push(ZoneMaker { prefix: prefix.value, networks, origin, ttl });
        }
        makers
    }

    fn choices(&mut self, zone: &Section<'_>, checks: &[Arc<Check>]) -> Vec<ZoneChoice> {
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
