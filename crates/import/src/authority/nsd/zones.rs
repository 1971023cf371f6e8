//! Zones of NSD and its list of them, with the patterns that they include.

use std::path::Path;

use diagnostic::{At, FileId, Problem, Span};

use super::super::DEPTH_MAX;
use super::super::fields::{Entry, Fields};
use super::super::made::{self, Seen, ZoneMade, is_new, zone_name};
use super::Nsd;

/// Where NSD keeps its list of zones unless it is told otherwise.
const ZONE_LIST: &str = "/var/lib/nsd/zone.list";

impl Nsd<'_, '_> {
    pub(super) fn zones(&mut self, server: &[Entry]) {
        let mut seen = Seen::default();
        for entries in self.of("zone") {
            let Some(name) = Fields(vec![&entries]).one("name").cloned() else {
                if let Some(first) = entries.first() {
                    self.files.wrong(first.key.span, "this zone has no name");
                }
                continue;
            };
            if self.is_new(&mut seen, &name) {
                let pattern = Fields(vec![&entries]).one("include-pattern").map(|at| at.value.clone());
                self.zone(server, &name, &entries, pattern);
            }
        }
        let list = Fields(vec![server]).one("zonelistfile").cloned();
        let path = list.as_ref().map_or(ZONE_LIST, |list| list.value.as_str());
        let path = self.files.directory.join(path);
        // NSD makes the file when there is something to list.
        if self.files.environment.read(&path).is_err() {
            return;
        }
        let asked = list.map_or(Span::BUILT_IN, |list| list.span);
        let Some((file, text)) = self.files.open(&path, Some(asked)) else { return };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let words: Vec<At<String>> = words(file, start, line);
            start += line.len();
            match words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().as_slice() {
                [] | ["del", ..] => {}
                [first, ..] if first.starts_with('#') => {}
                ["add", _, pattern] => {
                    let Some(found) = self.named("pattern", pattern) else {
                        self.files.wrong(words[2].span, format!("there is no pattern \"{pattern}\""));
                        continue;
                    };
                    let name = &words[1];
                    if self.is_new(&mut seen, name) {
                        self.zone(server, name, &found, Some((*pattern).to_owned()));
                    }
                }
                [first, ..] => {
                    self.files.wrong(words[0].span, format!("\"{first}\" is no line of a list of zones"));
                }
            }
        }
    }

    fn is_new(&mut self, seen: &mut Seen, name: &At<String>) -> bool {
        match is_new(seen, name) {
            Ok(()) => true,
            Err(first) => {
                let problem = Problem::error(name.span, format!("zone \"{}\" is there twice", name.value));
                self.files.problems.push(problem.hint_at("the first time is on ", first, ""));
                false
            }
        }
    }

    /// Returns what a zone or a pattern says, with the patterns that it includes in their places.
    fn expanded(&mut self, entries: &[Entry], depth: usize) -> Vec<Entry> {
        let mut all = Vec::new();
        for entry in entries {
            if entry.key.value != "include-pattern" {
                all.push(entry.clone());
                continue;
            }
            for name in &entry.values {
                match self.named("pattern", &name.value) {
                    Some(pattern) if depth < DEPTH_MAX => {
                        let pattern: Vec<Entry> =
                            pattern.into_iter().filter(|entry| entry.key.value != "name").collect();
                        all.extend(self.expanded(&pattern, depth + 1));
                    }
                    Some(_) => self.files.wrong(name.span, "patterns include each other in a circle"),
                    None => self.files.wrong(name.span, format!("there is no pattern \"{}\"", name.value)),
                }
            }
        }
        all
    }

    fn zone(&mut self, server: &[Entry], name: &At<String>, entries: &[Entry], template: Option<String>) {
        let entries = self.expanded(entries, 0);
        let fields = Fields(vec![&entries]);
        let server = Fields(vec![server]);
        let mut made = ZoneMade { name: zone_name(&name.value), template, ..ZoneMade::default() };
        let roots = server.one("tls-cert-bundle").map(|at| self.files.beside(&at.value));
        let mut primaries = Vec::new();
        for entry in fields.entries("request-xfr") {
            let values: Vec<&At<String>> =
                entry.values.iter().filter(|value| !matches!(value.value.as_str(), "AXFR" | "UDP")).collect();
            primaries.extend(self.peer(&values, entry, roots.as_deref()));
        }
        made.primaries = made::texts(&primaries);
        let mut notify = Vec::new();
        for entry in fields.entries("notify") {
            notify.extend(self.peer(&entry.values.iter().collect::<Vec<_>>(), entry, None));
        }
        made.notify = made::texts(&notify);
        made.transfer = self.list(&fields, "provide-xfr");
        made.notify_from = self.list(&fields, "allow-notify");
        if !made.notify_from.is_empty() && primaries.is_empty() {
            // A zone of its own takes no notice.
            made.notify_from.clear();
        }
        if !fields.entries("allow-query").is_empty() {
            made.allow_query = self.clients(&fields);
        }
        for entry in fields.entries("verify-zone") {
            if entry.values.first().is_some_and(|value| value.value == "yes") {
                self.files.wrong(
                    entry.key.span,
                    "\"verify-zone\" cannot be carried over: versions are not shown to other programs",
                );
            }
        }
        for entry in fields.entries("size-limit-xfr") {
            self.files.warn(
                entry.key.span,
                "\"size-limit-xfr\" is left out: \"transfers.size\" bounds what comes, for all zones",
            );
        }
        if let Some(flag) = fields.flag("allow-axfr-fallback", self.files).filter(|flag| !flag.value) {
            self.files.warn(
                flag.span,
                "\"allow-axfr-fallback\" is left out: if differences do not fit, the whole zone is asked for",
            );
        }
        made.journal_size =
            fields.number("ixfr-size", self.files).map(|size| size.value.clamp(4 << 10, 1 << 34));
        if let Some(word) = fields.one("catalog") {
            match word.value.as_str() {
                "consumer" => {
                    made.catalog_role = Some("consumer");
                    if let Some(pattern) = fields.one("catalog-member-pattern").cloned() {
                        self.members(&pattern, &entries);
                    }
                }
                "producer" => made.catalog_role = Some("producer"),
                other => self.files.wrong(word.span, format!("a catalog is no \"{other}\"")),
            }
        }
        made.catalog = fields.one("catalog-producer-zone").map(|name| zone_name(&name.value));
        if primaries.is_empty() && made.catalog_role != Some("producer") {
            match fields.one("zonefile") {
                Some(file) => made.file = Some(self.zone_file(&server, &file.value, &made.name)),
                None => self
                    .files
                    .wrong(name.span, format!("zone \"{}\" has neither a file nor a primary", name.value)),
            }
        }
        self.made.zones.push(made);
    }

    /// Speaks of members of a catalog that would not be what they are there.
    fn members(&mut self, pattern: &At<String>, catalog: &[Entry]) {
        let Some(found) = self.named("pattern", &pattern.value) else {
            self.files.wrong(pattern.span, format!("there is no pattern \"{}\"", pattern.value));
            return;
        };
        let found = self.expanded(&found, 0);
        let said = |entries: &[Entry], key: &str| -> Vec<String> {
            let of = entries.iter().filter(|entry| entry.key.value == key);
            of.flat_map(|entry| entry.values.iter().map(|value| value.value.clone())).collect()
        };
        if said(&found, "request-xfr") != said(catalog, "request-xfr") {
            let message = format!(
                "members of a catalog come from the catalog's own primaries here, not from those of pattern \"{}\"",
                pattern.value
            );
            self.files.wrong(pattern.span, message);
        }
        if said(&found, "provide-xfr") != said(catalog, "provide-xfr") {
            let message = "whoever may take over the catalog may take over its members";
            self.files.warn(
                pattern.span,
                format!("\"provide-xfr\" of pattern \"{}\" is left out: {message}", pattern.value),
            );
        }
    }

    /// Returns the path of a zone's file.
    fn zone_file(&self, server: &Fields<'_>, pattern: &str, name: &str) -> String {
        let labels: Vec<&str> = name.split('.').collect();
        let from_end = |at: usize| labels.iter().rev().nth(at).copied().unwrap_or(".");
        let mut file = String::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                file.push(c);
                continue;
            }
            match rest.next() {
                Some('s') => file += name,
                Some(digit @ '1'..='3') => {
                    let at = digit as usize - '1' as usize;
                    file.push(name.chars().nth(at).unwrap_or('.'));
                }
                Some('z') => file += from_end(0),
                Some('y') => file += from_end(1),
                Some('x') => file += from_end(2),
                Some('%') => file.push('%'),
                other => {
                    file.push('%');
                    file.extend(other);
                }
            }
        }
        let folder = server.one("zonesdir").map_or("/etc/nsd", |at| at.value.as_str());
        self.files.beside(&Path::new(folder).join(file).display().to_string())
    }
}

/// Splits a line at spaces.
fn words(file: FileId, start: usize, line: &str) -> Vec<At<String>> {
    line.split_whitespace()
        .map(|word| {
            let at = start + (word.as_ptr().addr() - line.as_ptr().addr());
            let span = Span { file, start: at as u32, end: (at + word.len()) as u32 };
            At { value: word.to_owned(), span }
        })
        .collect()
}
