//! Zones and templates of Knot.

use diagnostic::At;

use super::super::fields::{Fields, Known};
use super::super::made::{self, Seen, ZoneMade, is_new, zone_name};
use super::super::{Peer, Who};
use super::{Knot, TUNING};

/// Where Knot keeps zone files unless it is told otherwise.
const STORAGE: &str = "/var/lib/knot";

const LIMITED: &str = "the SOA's times count";

/// Settings of zones and of templates.
pub(super) const ZONE: Known = Known {
    used: &[
        "id",
        "domain",
        "template",
        "storage",
        "file",
        "master",
        "notify",
        "acl",
        "semantic-checks",
        "journal-max-usage",
        "journal-content",
        "zonefile-load",
        "zonefile-sync",
        "zone-max-size",
        "dnssec-signing",
        "dnssec-policy",
        "zonemd-generate",
        "serial-policy",
        "catalog-role",
        "catalog-template",
        "catalog-zone",
        "catalog-group",
        "module",
        "global-module",
        "ddns-master",
        "ds-push",
        "provide-ixfr",
        "dnssec-validation",
        "zonemd-verify",
    ],
    left_out: &[
        ("journal-max-depth", "\"journal-size\" bounds the history"),
        ("ixfr-benevolent", "if differences do not fit, the whole zone is asked for"),
        ("ixfr-by-one", "every step is kept"),
        ("ixfr-from-axfr", "the difference to the version before is worked out always"),
        ("adjust-threads", TUNING),
        ("notify-delay", "secondaries are told at once"),
        ("refresh-min-interval", LIMITED),
        ("refresh-max-interval", LIMITED),
        ("retry-min-interval", LIMITED),
        ("retry-max-interval", LIMITED),
        ("expire-min-interval", LIMITED),
        ("expire-max-interval", LIMITED),
        ("zonefile-skip", "zone files are never written"),
        ("master-pin-tolerance", "primaries are asked in their order"),
        (
            "default-ttl",
            "a record without a TTL has that of $TTL, of the record before it, or the SOA's MINIMUM",
        ),
    ],
    refused: &[
        ("serial-modulo", "serials grow by one, by time or by date"),
        ("reverse-generate", "\"make\" makes names of addresses by rule"),
        ("include-from", "a zone has one file, which may say $INCLUDE"),
        ("external-validation", "versions are not shown to other programs"),
        ("expire-timer", "the SOA's times count"),
    ],
};

impl Knot<'_, '_, '_> {
    pub(super) fn zones(&mut self) {
        let mut seen = Seen::default();
        for entries in self.items("zone") {
            ZONE.check("a zone of Knot's", entries, self.files);
            let own = Fields(vec![entries]);
            let Some(domain) = own.one("domain").cloned() else {
                if let Some(first) = entries.first() {
                    self.files.wrong(first.key.span, "this zone has no \"domain\"");
                }
                continue;
            };
            if let Err(first) = is_new(&mut seen, &domain) {
                let problem = diagnostic::Problem::error(
                    domain.span,
                    format!("zone \"{}\" is there twice", domain.value),
                );
                self.files.problems.push(problem.hint_at("the first time is on ", first, ""));
                continue;
            }
            let template = match own.one("template") {
                Some(id) => {
                    let found = self.item("template", &id.value);
                    if found.is_none() {
                        self.files.wrong(id.span, format!("there is no template \"{}\"", id.value));
                    }
                    found
                }
                None => self.item("template", "default"),
            };
            let mut layers = vec![entries];
            layers.extend(template);
            let mut zone = self.zone(&domain, &Fields(layers));
            zone.template = template
                .map(|_| own.one("template").map_or_else(|| "default".to_owned(), |id| id.value.clone()));
            self.made.zones.push(zone);
        }
    }

    fn zone(&mut self, domain: &At<String>, zone: &Fields<'_>) -> ZoneMade {
        let mut made = ZoneMade { name: zone_name(&domain.value), ..ZoneMade::default() };
        let role = zone.one("catalog-role").map_or("none", |word| word.value.as_str());
        let primaries: Vec<Peer> = zone.all("master").into_iter().flat_map(|id| self.peers(id)).collect();
        made.primaries = made::texts(&primaries);
        match role {
            "interpret" => {
                made.catalog_role = Some("consumer");
                self.members(domain, zone);
            }
            "generate" => made.catalog_role = Some("producer"),
            _ => {}
        }
        if made.primaries.is_empty() && role != "generate" {
            made.file = Some(self.zone_file(zone, &made.name));
        }
        let notify: Vec<Peer> = zone.all("notify").into_iter().flat_map(|id| self.peers(id)).collect();
        made.notify = made::texts(&notify);
        if self.has_automatic_acl {
            for id in zone.all("notify") {
                self.check_remote(id);
            }
            made.transfer.extend(notify.iter().map(|peer| Who::of_peer(peer).text()));
        }
        self.rights(zone, &mut made);
        if let Some(size) = self.size(zone, "journal-max-usage") {
            made.journal_size = Some(size.value.clamp(4 << 10, 1 << 34));
        }
        self.passes_on(zone, &primaries, &mut made);
        self.file_and_journal(zone, &mut made);
        if let Some(flag) = zone.flag("provide-ixfr", self.files).filter(|flag| !flag.value) {
            self.files.warn(
                flag.span,
                "\"provide-ixfr\" is left out: whoever may have the zone may have the differences",
            );
        }
        if let Some(word) =
            zone.one("semantic-checks").filter(|word| !matches!(word.value.as_str(), "on" | "true"))
        {
            let message = format!(
                "\"semantic-checks: {}\" is left out: every zone is checked, and errors keep it from being served",
                word.value
            );
            self.files.warn(word.span, message);
        }
        if let Some(size) = zone.one("zone-max-size") {
            self.files.warn(
                size.span,
                "\"zone-max-size\" is left out: \"transfers.size\" bounds what comes, for all zones",
            );
        }
        for key in ["dnssec-validation", "zonemd-verify"] {
            if let Some(flag) = zone.flag(key, self.files).filter(|flag| flag.value) {
                self.files.wrong(flag.span, format!("\"{key}\" cannot be carried over: what comes from a primary is believed as it is signed by key or TLS"));
            }
        }
        let serial = match zone.one("serial-policy").map_or("increment", |word| word.value.as_str()) {
            word @ ("unixtime" | "dateserial") => Some(word.to_owned()),
            _ => None,
        };
        self.sign(zone, serial.clone(), &mut made);
        if !made.update.is_empty() {
            made.serial = serial;
        }
        if role == "member" {
            made.catalog = zone.one("catalog-zone").map(|name| zone_name(&name.value));
            made.group = zone.one("catalog-group").map(|name| name.value.clone());
        }
        for module in zone.all("module") {
            self.module(module, &mut made);
        }
        made
    }

    /// Speaks of members of a catalog that would not be what they are there.
    fn members(&mut self, catalog: &At<String>, zone: &Fields<'_>) {
        let masters = |fields: &Fields<'_>| -> Vec<String> {
            fields.all("master").iter().map(|id| id.value.clone()).collect()
        };
        let own = masters(zone);
        for id in zone.all("catalog-template") {
            let Some(template) = self.item("template", &id.value) else {
                self.files.wrong(id.span, format!("there is no template \"{}\"", id.value));
                continue;
            };
            let fields = Fields(vec![template]);
            if masters(&fields) != own {
                let message = format!(
                    "members of \"{}\" come from the catalog's own primaries here, not from those of template \"{}\"",
                    catalog.value, id.value
                );
                self.files.wrong(id.span, message);
            }
            let said = |fields: &Fields<'_>, key: &str| -> Vec<String> {
                fields.all(key).iter().map(|at| at.value.clone()).collect()
            };
            let same = |key: &str| said(&fields, key) == said(zone, key);
            if !same("acl") || !same("notify") {
                let message = format!(
                    "whoever may take over the catalog may take over its members: \"acl\" and \"notify\" of template \"{}\" are left out",
                    id.value
                );
                self.files.warn(id.span, message);
            }
            if fields.flag("dnssec-signing", self.files).is_some_and(|flag| flag.value) {
                self.files.wrong(id.span, "members of a catalog are not signed here");
            }
        }
    }

    /// Speaks of what becomes of a zone's file and its journal.
    fn file_and_journal(&mut self, zone: &Fields<'_>, made: &mut ZoneMade) {
        if let Some(word) = zone.one("journal-content").filter(|word| word.value == "none") {
            self.files.warn(word.span, "\"journal-content: none\" is left out: history is kept always, as far as \"journal-size\" goes");
        }
        if let Some(word) = zone.one("zonefile-sync").filter(|word| word.value != "-1") {
            self.files.warn(word.span, "\"zonefile-sync\" is left out: zone files are never written, \"gannet zone print\" prints a zone");
        }
        // What comes from a primary is kept in the state directory alone, whatever Knot does with a
        // file.
        let Some(word) = zone.one("zonefile-load").filter(|_| made.file.is_some()) else { return };
        match word.value.as_str() {
            "none" => self.files.warn(
                word.span,
                "\"zonefile-load: none\" is left out: the zone is read from its file, which Knot does not look at; \"knotc zone-flush\" writes what the journal has",
            ),
            // In Knot the zone becomes what its file says.
            "difference" | "difference-no-serial" if !made.update.is_empty() => {
                made.on_file_change = Some("replace");
                if word.value == "difference" {
                    made.notes.push("Knot takes a changed file only with a newer serial; here any change of its records counts.".to_owned());
                }
            }
            "whole" if !made.update.is_empty() => made.notes.push(
                "Where updates changed the zone, a changed file waits here for \"gannet zone reload\" (on-file-change: refuse).".to_owned(),
            ),
            "difference" | "difference-no-serial" | "whole" => {}
            other => self.files.wrong(word.span, format!("\"zonefile-load\" is no \"{other}\"")),
        }
    }

    /// Returns the path of a zone's file.
    fn zone_file(&mut self, zone: &Fields<'_>, name: &str) -> String {
        let storage = zone.one("storage").map_or(STORAGE, |at| at.value.as_str());
        let pattern = zone.one("file").map_or("%s.zone", |at| at.value.as_str());
        let mut file = String::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                file.push(c);
                continue;
            }
            let labels: Vec<&str> = name.split('.').collect();
            match rest.next() {
                Some('s') => file += &if name == "." { "root".to_owned() } else { name.replace('/', "_") },
                Some('c') => {
                    // `%c[0]` or `%c[0-2]`: characters of the name.
                    let (from, to) = bracket(&mut rest).unwrap_or((0, 0));
                    file.extend(name.chars().skip(from).take(to - from + 1));
                }
                Some('l') => {
                    let (at, _) = bracket(&mut rest).unwrap_or((0, 0));
                    // Counted from the root, which is number 0.
                    if let Some(label) = at.checked_sub(1).and_then(|at| labels.iter().rev().nth(at)) {
                        file += label;
                    }
                }
                Some('%') => file.push('%'),
                other => {
                    file.push('%');
                    file.extend(other);
                }
            }
        }
        self.files.beside(&std::path::Path::new(storage).join(file).display().to_string())
    }
}

/// Reads `[n]` or `[n-m]`.
fn bracket(rest: &mut std::str::Chars<'_>) -> Option<(usize, usize)> {
    let text = rest.as_str().strip_prefix('[')?;
    let (inside, after) = text.split_once(']')?;
    let (from, to) = inside.split_once('-').unwrap_or((inside, inside));
    let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
    *rest = after.chars();
    (from <= to).then_some((from, to))
}
