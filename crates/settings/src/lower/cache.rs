//! Caches: the tree to settings.

use std::borrow::Cow;
use std::time::Duration;

use diagnostic::Problem;

use super::{Lowering, Section};
use crate::groups::CacheSettings;

impl Lowering<'_> {
    pub(super) fn caches(&mut self, root: &Section<'_>) -> Vec<CacheSettings> {
        let mut caches = Vec::new();
        for (name, section) in self.named_sections(root, "cache") {
            let dump = self.section(&section, "dump");
            let min_ttl = self.duration(&section, "min-ttl");
            let max_ttl = self.duration(&section, "max-ttl");
            if min_ttl > max_ttl {
                let span =
                    section.entry("min-ttl").or(section.entry("max-ttl")).map_or(name.span, |e| e.node.span);
                let (min, max) = (values::duration_text(min_ttl), values::duration_text(max_ttl));
                self.problems.push(
                    Problem::error(span, format!("min-ttl ({min}) is larger than max-ttl ({max})"))
                        .expected("min-ttl to be at most max-ttl"),
                );
            }
            let dump_file = self.path(&dump, "file").map(|at| at.value);
            let dump_every = self.duration_or(&dump, "every");
            if let (None, Some(entry)) = (&dump_file, self.said(&dump, "every")) {
                self.problems.push(
                    Problem::warning(entry.key_span, "\"every\" is ignored: there is no file to write")
                        .hint("set \"file\" beside it"),
                );
            }
            let stale = self.duration_or(&section, "stale");
            for key in ["stale-restarts", "stale-client-timeout", "stale-ttl"] {
                if let (None, Some(entry)) = (stale, self.said(&section, key)) {
                    self.problems.push(Problem::warning(
                        entry.key_span,
                        format!("\"{key}\" is ignored: \"stale\" is off"),
                    ));
                }
            }
            caches.push(CacheSettings {
                size: self.size(&section, "size"),
                min_ttl,
                max_ttl,
                max_negative_ttl: self.duration(&section, "max-negative-ttl"),
                min_negative_ttl: self.duration(&section, "min-negative-ttl"),
                failure_ttl: self.duration(&section, "failure-ttl"),
                stale,
                stale_restarts: self.boolean(&section, "stale-restarts"),
                stale_client_timeout: self.duration(&section, "stale-client-timeout"),
                stale_ttl: self.duration(&section, "stale-ttl"),
                original_ttl: self.boolean(&section, "original-ttl"),
                prefetch: self.percent_or(&section, "prefetch"),
                dump_file,
                dump_every,
                name,
            });
        }
        caches
    }

    /// Warns of caches whose clients over UDP would be given stale answers only when their queries
    /// are discarded already.
    pub(super) fn stale_in_time(
        &mut self,
        root: &Section<'_>,
        caches: &[CacheSettings],
        discard_timeout: Option<Duration>,
    ) {
        let Some(most) = discard_timeout else { return };
        for cache in caches.iter().filter(|it| it.stale.is_some() && it.stale_client_timeout > most) {
            let node = root.entry("cache").map(|entry| &entry.node.value);
            let entries = if let Some(yaml::Value::Map(entries)) = node { entries.as_slice() } else { &[] };
            let own =
                entries.iter().find(|entry| entry.key == cache.name.value).map(|entry| &entry.node.value);
            let entries = if let Some(yaml::Value::Map(entries)) = own { entries.as_slice() } else { &[] };
            let section = Section {
                path: "cache.*".into(),
                entries: Cow::Borrowed(entries),
                defaults: &[],
                span: cache.name.span,
            };
            // The one of the two that was written.
            let limits = root.entry("limits").map(|entry| &entry.node.value);
            let span = match (self.said(&section, "stale-client-timeout"), limits) {
                (Some(entry), _) => entry.node.span,
                (None, Some(yaml::Value::Map(entries))) => entries
                    .iter()
                    .find(|entry| entry.key == "discard-timeout")
                    .map_or(cache.name.span, |entry| entry.node.span),
                (None, _) => cache.name.span,
            };
            let [patience, most] = [cache.stale_client_timeout, most].map(values::duration_text);
            self.problems.push(
                Problem::warning(
                    span,
                    format!("clients over UDP get no stale answers: \"stale-client-timeout\" ({patience}) is longer than \"discard-timeout\" ({most})"),
                )
                .hint("replies to queries that are older than \"discard-timeout\" are not sent"),
            );
        }
    }
}
