//! Which local zones nobody asks for one by one: those of a block list of one type, but for the few
//! above whatever else the files name, or above zones that are built in.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use diagnostic::{FileId, Source};

use super::built_in::can_be_above;
use super::zone_table::{Bulk, MANY};
use crate::kind::{Kind, is_alike_in_bulk, kind_of};
use crate::names::{above, lower_case};
use crate::read::{Block, Statement, ZoneLines, ZoneRun, ZoneStatement};

/// Returns whether a statement says something of the zone that is closest to a name.
pub(super) fn names_zones(statement: &Statement) -> bool {
    matches!(statement.row.name, "local-data" | "local-data-ptr" | "local-zone-tag" | "local-zone-override")
}

/// Zones of a section that are not looked at one by one.
pub(super) struct InBulk {
    kind: Kind,
    /// Hashes of names with something about them, and of all names above these. Another name that
    /// has such a hash is looked at without need, and nothing else.
    asked: HashSet<u64>,
    hasher: RandomState,
    runs: Vec<ZoneRun>,
}

impl InBulk {
    /// Returns a place for these zones; none if there are too few that are alike.
    pub(super) fn of(block: &Block, sources: &[Arc<Source>]) -> Option<Self> {
        let mut counts: Vec<(Kind, usize)> = Vec::new();
        for run in block.zones.iter().filter_map(run_of) {
            let Some(kind) = kind_of(run.kind(sources)) else { continue };
            match counts.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += run.count as usize,
                None => counts.push((kind, run.count as usize)),
            }
        }
        let (kind, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        // An SOA counts for the static zones below it, too.
        let has_soa = |it: &Statement| {
            let parts =
                (it.row.name == "local-data").then(|| super::record_parts(&it.word(0).text)).flatten();
            parts.is_some_and(|(_, _, rtype, _)| rtype == "SOA")
        };
        if count < MANY || kind == Kind::Static && block.statements.iter().any(has_soa) {
            return None;
        }
        let (asked, hasher) = (HashSet::new(), RandomState::new());
        let mut bulk = Self { kind, asked, hasher, runs: Vec::new() };
        for statement in block.statements.iter().filter(|statement| names_zones(statement)) {
            let text = &statement.word(0).text;
            match statement.row.name {
                "local-data-ptr" => bulk.ask(&crate::names::reverse_owner(text).unwrap_or_default()),
                _ => bulk.ask(text.trim().split([' ', '\t']).next().unwrap_or("")),
            }
        }
        let is_other = |word: &str| kind_of(word) != Some(kind) || !is_alike_in_bulk(word);
        for lines in &block.zones {
            if bulk.run(lines, sources).is_some() {
                continue;
            }
            let zones = lines.statements(sources).filter(|zone| is_other(zone.kind));
            zones.for_each(|zone| bulk.ask(zone.name));
        }
        Some(bulk)
    }

    /// Notes a name that something is said about.
    fn ask(&mut self, name: &str) {
        let name = lower_case(name);
        let hashes = above(&name).map(|name| self.hasher.hash_one(name));
        self.asked.extend(hashes);
    }

    fn is_asked(&self, name: &str) -> bool {
        self.asked.contains(&self.hasher.hash_one(name))
    }

    /// Returns whether a zone of this name is looked at by itself.
    fn is_left(&self, name: &str) -> bool {
        can_be_above(name) || !self.asked.is_empty() && self.is_asked(name)
    }

    /// Returns the lines if they are zones of the type in question.
    fn run(&self, lines: &ZoneLines, sources: &[Arc<Source>]) -> Option<ZoneRun> {
        run_of(lines).filter(|run| kind_of(run.kind(sources)) == Some(self.kind))
    }

    /// Takes the zones of some lines; returns those that are to be looked at all the same.
    pub(super) fn take<'s>(
        &mut self,
        lines: &ZoneLines,
        sources: &'s [Arc<Source>],
    ) -> Vec<ZoneStatement<'s>> {
        let Some(run) = self.run(lines, sources) else { return lines.statements(sources).collect() };
        let left = run.without(sources, |name| self.is_left(name));
        let is_whole = left.iter().map(|run| run.count).sum::<u32>() == run.count;
        self.runs.extend(left);
        if is_whole {
            return Vec::new();
        }
        run.statements(sources).filter(|zone| self.is_left(zone.name)).collect()
    }

    /// Returns the zones that were taken. Where all lines of a form were, their names are shared.
    pub(super) fn finish(self, sources: &[Arc<Source>]) -> Option<Bulk> {
        let at = self.runs.first()?.span();
        let count = self.runs.iter().map(|run| run.count as usize).sum();
        let mut forms: Vec<((FileId, u32), u32, String)> = Vec::new();
        for run in &self.runs {
            let key = (run.file, run.form);
            match forms.iter_mut().find(|(known, ..)| *known == key) {
                Some((_, count, _)) => *count += run.count,
                None => forms.push((key, run.count, String::new())),
            }
        }
        let form_of =
            |(file, form): (FileId, u32)| sources.get(usize::from(file.0))?.forms().get(form as usize);
        let is_whole = |key, count| form_of(key).is_some_and(|form| form.count == count);
        for run in &self.runs {
            let of_it = forms.iter_mut().find(|(known, ..)| *known == (run.file, run.form));
            let Some((key, count, names)) = of_it else { continue };
            if !is_whole(*key, *count) {
                run.names(sources).for_each(|name| names.extend([name, "\n"]));
            }
        }
        let names = forms.into_iter().map(|(key, count, names)| match form_of(key) {
            Some(form) if is_whole(key, count) => Arc::clone(&form.words),
            _ => names.into(),
        });
        Some(Bulk { kind: self.kind, at, count, names: names.collect() })
    }
}

fn run_of(lines: &ZoneLines) -> Option<ZoneRun> {
    match lines {
        ZoneLines::One(_) => None,
        ZoneLines::Many(run) => Some(*run),
    }
}
