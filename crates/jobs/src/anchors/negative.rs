//! The negative trust anchors of one resolver (RFC 7646): with an end and a reason, and tested
//! again from time to time.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use plan::anchors::{AnchorPlan, NegativeEnd, NegativePlan};
use plan::resolvers::{HeapName, NegativeAnchor};
use tracing::{info, warn};
use wire::NameBuf;

use super::keeper::save;

/// Seconds between two tests of a zone, and of one that is left out for ever.
const TEST_EVERY: u64 = 3600;
const TEST_EVERY_WITHOUT_END: u64 = 86_400;
/// Seconds that one that a command adds may last (RFC 7646 §2: no more than a week).
const LASTS_MAX: u64 = 7 * 86_400;
/// Negative trust anchors that commands may add to a resolver: each is a hole, and is tested.
const ADDED_MAX: usize = 1000;
/// How the file begins.
const HEADER: &str = "; negative trust anchors: zone, since, until, source, reason";
/// What stands in it for no end.
const FOREVER: &str = "-";

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The settings; with so many seconds from when they were first read, if they say so.
    Settings(Option<u64>),
    /// A command.
    Command,
}

/// What a test says of a zone that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It validates.
    Validates,
    /// It is not signed.
    Unsigned,
    /// It does not, and why.
    Fails(String),
}

/// A negative trust anchor. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegativeEntry {
    /// The zone.
    pub zone: NameBuf,
    /// When it was first heard of.
    pub since: u64,
    /// When it ends; `None` if it does not.
    pub ends_at: Option<u64>,
    /// Who says so.
    pub source: Source,
    /// Why.
    pub reason: Option<String>,
    /// When the zone was tested last, and what came of it.
    pub tested: Option<(u64, Finding)>,
    /// Whether it has ended.
    pub is_over: bool,
}

impl NegativeEntry {
    fn next_test(&self) -> u64 {
        let every = if self.ends_at.is_some() { TEST_EVERY } else { TEST_EVERY_WITHOUT_END };
        self.tested.as_ref().map_or(0, |(at, _)| at.saturating_add(every))
    }
}

/// Why a negative trust anchor is not added or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NegativeError {
    /// The settings have it.
    InSettings,
    /// There is none.
    Unknown,
    /// There are too many.
    TooMany,
    /// It would last longer than a week.
    TooLong,
}

/// The negative trust anchors of one resolver.
pub(super) struct NegativeList {
    file: PathBuf,
    entries: Vec<NegativeEntry>,
    /// What the file holds.
    text: String,
}

impl NegativeList {
    /// Returns those of a plan, and those that commands have added before.
    pub(super) fn new(plan: &AnchorPlan, before: Option<Self>, now: u64) -> Self {
        let file = plan.negative_file.clone();
        let (known, text) = match before {
            Some(before) => (before.entries, before.text),
            None => read(&file),
        };
        let same = |wanted: &NegativePlan, source| {
            known.iter().find(|entry| entry.zone == wanted.zone && entry.source == source)
        };
        let mut entries = Vec::new();
        for wanted in &plan.negative {
            let (source, ends_at) = match wanted.end {
                NegativeEnd::Never => (Source::Settings(None), None),
                NegativeEnd::At(end) => (Source::Settings(None), Some(end)),
                NegativeEnd::After(seconds) => {
                    (Source::Settings(Some(seconds)), Some(now.saturating_add(seconds)))
                }
            };
            let before = same(wanted, source);
            let ends_at = match (source, before) {
                (Source::Settings(Some(_)), Some(before)) => before.ends_at,
                _ => ends_at,
            };
            entries.push(NegativeEntry {
                zone: wanted.zone,
                since: before.map_or(now, |before| before.since),
                ends_at,
                source,
                reason: wanted.reason.clone(),
                tested: before.and_then(|before| before.tested.clone()),
                is_over: ends_at.is_some_and(|end| end <= now),
            });
        }
        let is_planned = |zone| plan.negative.iter().any(|wanted| wanted.zone == zone);
        let added = known.into_iter().filter(|entry| entry.source == Source::Command);
        entries.extend(added.filter(|entry| !entry.is_over && !is_planned(entry.zone)));
        let mut list = Self { file, entries, text };
        list.keep();
        list
    }

    /// Returns all, ended ones of the settings too.
    pub(super) fn entries(&self) -> &[NegativeEntry] {
        &self.entries
    }

    /// Returns those that hold.
    pub(super) fn active(&self) -> Vec<NegativeAnchor> {
        let active = self.entries.iter().filter(|entry| !entry.is_over);
        let anchor = |entry: &NegativeEntry| NegativeAnchor {
            zone: HeapName::new(entry.zone.as_name()),
            ends_at: entry.ends_at,
        };
        active.map(anchor).collect()
    }

    /// Adds one, or gives one that a command has added another end.
    pub(super) fn add(
        &mut self,
        zone: NameBuf,
        (seconds, reason): (u64, Option<String>),
        now: u64,
    ) -> Result<(), NegativeError> {
        let known = self.entries.iter().position(|entry| entry.zone == zone);
        match known.and_then(|at| self.entries.get(at)) {
            Some(NegativeEntry { source: Source::Settings(_), is_over: false, .. }) => {
                return Err(NegativeError::InSettings);
            }
            _ if seconds > LASTS_MAX => return Err(NegativeError::TooLong),
            _ if self.entries.len() >= ADDED_MAX => return Err(NegativeError::TooMany),
            _ => {}
        }
        self.entries.retain(|entry| entry.zone != zone || entry.source != Source::Command);
        self.entries.push(NegativeEntry {
            zone,
            since: now,
            ends_at: Some(now.saturating_add(seconds)),
            source: Source::Command,
            reason,
            tested: None,
            is_over: false,
        });
        self.keep();
        Ok(())
    }

    /// Removes one that a command has added.
    pub(super) fn remove(&mut self, zone: &NameBuf) -> Result<(), NegativeError> {
        let of_zone = |entry: &&NegativeEntry| entry.zone == *zone;
        if !self.entries.iter().filter(of_zone).any(|entry| entry.source == Source::Command) {
            let is_known = self.entries.iter().filter(of_zone).any(|entry| !entry.is_over);
            return Err(if is_known { NegativeError::InSettings } else { NegativeError::Unknown });
        }
        self.entries.retain(|entry| entry.zone != *zone || entry.source != Source::Command);
        self.keep();
        Ok(())
    }

    /// Returns the zones whose negative trust anchors end by now.
    pub(super) fn take_ended(&mut self, resolver: &str, now: u64) -> Vec<NameBuf> {
        let mut ended = Vec::new();
        for entry in &mut self.entries {
            if !entry.is_over && entry.ends_at.is_some_and(|end| end <= now) {
                entry.is_over = true;
                info!(resolver, zone = %entry.zone, "a negative trust anchor has ended");
                ended.push(entry.zone);
            }
        }
        if !ended.is_empty() {
            self.entries.retain(|entry| !entry.is_over || entry.source != Source::Command);
            self.keep();
        }
        ended
    }

    /// Returns when the next one ends.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.entries.iter().filter(|entry| !entry.is_over).filter_map(|entry| entry.ends_at).min()
    }

    /// Returns a zone that is to be tested.
    pub(super) fn due(&self, now: u64) -> Option<NameBuf> {
        let mut due = self.entries.iter().filter(|entry| !entry.is_over && entry.next_test() <= now);
        due.next().map(|entry| entry.zone)
    }

    /// Notes what a test has come to, and has the log say what is new.
    pub(super) fn tested(&mut self, resolver: &str, zone: &NameBuf, finding: &Finding, now: u64) {
        for entry in self.entries.iter_mut().filter(|entry| entry.zone == *zone) {
            let before = entry.tested.replace((now, finding.clone())).map(|(_, finding)| finding);
            let was_good = matches!(before, Some(Finding::Validates | Finding::Unsigned));
            match finding {
                Finding::Validates if !was_good => {
                    info!(resolver, %zone, "a zone with a negative trust anchor validates: the anchor can go");
                }
                Finding::Unsigned if !was_good => {
                    info!(resolver, %zone, "a zone with a negative trust anchor is not signed: the anchor can go");
                }
                Finding::Fails(why) if was_good => {
                    info!(resolver, %zone, why, "a zone with a negative trust anchor does not validate again");
                }
                _ => {}
            }
        }
    }

    /// Writes the file, if it would say something else.
    fn keep(&mut self) {
        let is_kept = |entry: &&NegativeEntry| entry.source != Source::Settings(None);
        let mut text = String::new();
        for entry in self.entries.iter().filter(is_kept) {
            let end = entry.ends_at.map_or(FOREVER.to_owned(), |end| end.to_string());
            let source = match entry.source {
                Source::Settings(seconds) => format!("settings:{}", seconds.unwrap_or(0)),
                Source::Command => "command".to_owned(),
            };
            let reason = entry.reason.as_deref().unwrap_or("").replace(['\n', '\r'], " ");
            let _ = writeln!(text, "{} {} {end} {source} {reason}", entry.zone, entry.since);
        }
        if text == self.text {
            return;
        }
        let whole = if text.is_empty() { String::new() } else { format!("{HEADER}\n{text}") };
        let written = match whole.is_empty() {
            true => fs::remove_file(&self.file).or_else(|error| match error.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            }),
            false => save(&self.file, &whole),
        };
        match written {
            Ok(()) => self.text = text,
            Err(error) => {
                warn!(file = %self.file.display(), %error, "negative trust anchors cannot be written: a restart forgets them");
            }
        }
    }
}

/// Reads a file; a line that makes no sense is left out.
fn read(file: &PathBuf) -> (Vec<NegativeEntry>, String) {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                warn!(file = %file.display(), %error, "negative trust anchors cannot be read");
            }
            return (Vec::new(), String::new());
        }
    };
    let mut entries = Vec::new();
    let mut kept = String::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.starts_with(';')) {
        match parse(line) {
            Some(entry) => {
                kept.push_str(line);
                kept.push('\n');
                entries.push(entry);
            }
            None => warn!(file = %file.display(), line = number, "not a negative trust anchor"),
        }
    }
    (entries, kept)
}

fn parse(line: &str) -> Option<NegativeEntry> {
    let mut words = line.splitn(5, ' ');
    let zone = NameBuf::from_text(words.next()?).ok()?;
    let since = words.next()?.parse().ok()?;
    let ends_at = match words.next()? {
        FOREVER => None,
        end => Some(end.parse().ok()?),
    };
    let source = match words.next()? {
        "command" => Source::Command,
        source => Source::Settings(Some(source.strip_prefix("settings:")?.parse().ok()?)),
    };
    let reason = words.next().filter(|reason| !reason.is_empty()).map(str::to_owned);
    Some(NegativeEntry { zone, since, ends_at, source, reason, tested: None, is_over: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ResolverId;
    use plan::anchors::AnchorSource;
    use plan::resolvers::{ResolverPlan, Settings};
    use std::path::Path;
    use tempfile::TempDir;

    const NOW: u64 = 1_795_000_000;

    fn zone(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    fn plan(file: &Path, negative: &[(&str, NegativeEnd)]) -> AnchorPlan {
        let planned =
            |&(text, end): &(&str, NegativeEnd)| NegativePlan { zone: zone(text), end, reason: None };
        AnchorPlan {
            resolver: ResolverPlan {
                id: ResolverId(0),
                name: "default".to_owned(),
                octets_max: 1 << 20,
                second_level: None,
                settings: Settings::default(),
            },
            source: AnchorSource::Fixed { file: None },
            negative: negative.iter().map(planned).collect(),
            negative_file: file.to_owned(),
            signals: false,
        }
    }

    fn active(list: &NegativeList) -> Vec<String> {
        list.active().iter().map(|anchor| anchor.zone.to_string()).collect()
    }

    #[test]
    fn what_a_command_adds_ends_in_time_and_outlives_a_restart() {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("default.negative");
        let mut list = NegativeList::new(&plan(&file, &[]), None, NOW);
        assert!(!file.exists(), "nothing is written without need");
        let reason = Some("signatures expired\nsee the mail".to_owned());
        assert_eq!(list.add(zone("broken.example"), (600, reason), NOW), Ok(()));
        let mut list = NegativeList::new(&plan(&file, &[]), None, NOW + 1);
        assert_eq!(active(&list), ["broken.example."]);
        assert_eq!(list.entries()[0].reason.as_deref(), Some("signatures expired see the mail"));
        assert_eq!((list.next_end(), list.take_ended("default", NOW + 599)), (Some(NOW + 600), vec![]));
        assert_eq!(list.take_ended("default", NOW + 600), [zone("broken.example")]);
        assert!(active(&list).is_empty() && !file.exists());
        assert_eq!(list.remove(&zone("broken.example")), Err(NegativeError::Unknown));
        assert_eq!(list.add(zone("long.example"), (LASTS_MAX + 1, None), NOW), Err(NegativeError::TooLong));
        assert_eq!(list.add(zone("long.example"), (LASTS_MAX, None), NOW), Ok(()));
    }

    #[test]
    fn the_time_of_the_settings_counts_from_when_they_were_first_read() {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("default.negative");
        let settings = [
            ("a.example", NegativeEnd::After(600)),
            ("b.example", NegativeEnd::At(NOW + 100)),
            ("c.example", NegativeEnd::Never),
        ];
        let plan = plan(&file, &settings);
        let list = NegativeList::new(&plan, None, NOW);
        assert_eq!(active(&list), ["a.example.", "b.example.", "c.example."]);
        // A restart and a reload begin nothing anew.
        let list = NegativeList::new(&plan, None, NOW + 500);
        assert_eq!(active(&list), ["a.example.", "c.example."]);
        let mut list = NegativeList::new(&plan, Some(list), NOW + 500);
        assert_eq!(list.take_ended("default", NOW + 600), [zone("a.example")]);
        let mut list = NegativeList::new(&plan, Some(list), NOW + 700);
        assert_eq!(active(&list), ["c.example."]);
        assert_eq!(list.remove(&zone("c.example")), Err(NegativeError::InSettings));
        assert_eq!(list.add(zone("c.example"), (60, None), NOW + 700), Err(NegativeError::InSettings));
        // One that has ended can be there again for a while.
        assert_eq!(list.add(zone("a.example"), (60, None), NOW + 700), Ok(()));
        assert_eq!(active(&list), ["c.example.", "a.example."]);
    }

    #[test]
    fn zones_are_tested_at_once_and_then_now_and_then() {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("default.negative");
        let settings = [("c.example", NegativeEnd::Never)];
        let mut list = NegativeList::new(&plan(&file, &settings), None, NOW);
        assert_eq!(list.due(NOW), Some(zone("c.example")));
        list.tested("default", &zone("c.example"), &Finding::Fails("expired".to_owned()), NOW);
        assert_eq!(list.due(NOW + TEST_EVERY), None);
        assert_eq!(list.due(NOW + TEST_EVERY_WITHOUT_END), Some(zone("c.example")));
        list.add(zone("d.example"), (7200, None), NOW).expect("it can be added");
        list.tested("default", &zone("d.example"), &Finding::Validates, NOW);
        assert_eq!(list.due(NOW + TEST_EVERY), Some(zone("d.example")));
        assert_eq!(list.entries()[1].tested, Some((NOW, Finding::Validates)));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_left_out() {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("default.negative");
        let good = "good.example. 1 9999999999 command because of this";
        fs::write(&file, format!("{HEADER}\n{good}\nbad..name 1 2 command\nshort. 1\nx. 1 2 nobody\n"))
            .expect("the file");
        let list = NegativeList::new(&plan(&file, &[]), None, NOW);
        assert_eq!(active(&list), ["good.example."]);
        assert_eq!(list.entries()[0].reason.as_deref(), Some("because of this"));
    }
}
