//! Reads the settings of directories whose files are zones: `zone-directories`.

use std::sync::Arc;
use std::time::Duration;

use diagnostic::{At, Problem};
use plan::signing::SigningPolicy;
use plan::zones::{CatalogRole, FileChange, FileFormat, ZonemdRule};
use wire::Name;

use super::super::{Lowering, Section, authority};
use crate::groups::{KeySettings, SerialWord, SigningSettings, ZoneDirectory, ZoneSettings};

impl Lowering<'_> {
    /// Returns the directories whose files are zones.
    pub(in crate::lower) fn zone_directories(
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
        let said =
            ["notify", "transfer", "update", "on-file-change", "serial", "journal-size", "catalog", "group"];
        let is_said = said.iter().any(|key| item.entry(key).is_some());
        let zone = ZoneSettings {
            name: At { value: Name::ROOT.to_buf(), span: item.span },
            file: None,
            set: None,
            // Its findings are reported at the directory.
            allow_query: None,
            is_for_resolvers: false,
            zonemd: ZonemdRule::Off,
            trusted_by: None,
            copy: None,
            keeps: true,
            make: Vec::new(),
            choose: Vec::new(),
            sign: sign.map(Arc::clone),
            key_sets: None,
            own_denial: None,
            primaries: Vec::new(),
            urls: Vec::new(),
            notify: self.remotes(item, "notify"),
            transfer: self.texts(item, "transfer", authority::grant),
            notify_from: Vec::new(),
            update: self.texts(item, "update", authority::update),
            forward_updates: Vec::new(),
            on_file_change: self.word(item, "on-file-change", FileChange::parse),
            serial: self.word(item, "serial", SerialWord::parse),
            journal_size: self.size(item, "journal-size"),
            transfer_size: None,
            transfer_time: Duration::ZERO,
            catalog: self.catalog(item),
            group: self.catalog_group(item),
            catalog_role: None,
        };
        self.check_known(keys, &zone);
        if let Some(catalog) = &zone.catalog {
            let is_made = zones.iter().any(|other| {
                other.name.value == catalog.value && other.catalog_role == Some(CatalogRole::Producer)
            });
            self.check_catalog(catalog, is_made);
        }
        if item.entry("set").is_some() {
            self.check_set(item, false);
            return None;
        }
        is_said.then(|| Arc::new(zone))
    }
}
