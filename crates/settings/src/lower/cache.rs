//! Caches: the tree to settings.

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
}
