//! Lists that sets are read from, and their rules, as their operator looks them up.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::Instant;

use control::api::{self, ListSource};
use lists::ListFormat;

use super::lists::{Listed, Source, list};
use super::own_lists::READS_MAX;
use super::queries::SEARCH_TIME;
use super::{Operator, OperatorError, What};
use crate::lock;

/// Rules of one part, unless somebody wants fewer or more, and the most.
const RULES_SHOWN: u64 = 1_000;
const RULES_SHOWN_MAX: u64 = 10_000;
/// Octets of the rules of one part; the rule that is beyond is the last one.
const PART_OCTETS_MAX: usize = 1 << 20;
/// Octets of a line that are looked at; the rest of a longer one is passed over.
const LINE_OCTETS_MAX: u64 = 4 << 10;
/// Octets that are passed over for the end of a line; a list whose line is longer is no text.
const PASSED_OCTETS_MAX: u64 = 8 << 20;
/// Formats whose files are no text.
const BINARY: [&str; 3] = ["geosite", "geoip", "mmdb"];

/// What can be read from any place in it.
trait Text: Read + Seek {}
impl<T: Read + Seek> Text for T {}

impl Operator {
    /// Says how all lists stand: one's own, and those that sets are read from.
    ///
    /// # Errors
    ///
    /// It is not known which lists are kept beside the settings.
    pub fn list_states(&self) -> Result<Vec<api::ListShown>, OperatorError> {
        let own = self.own_list_states()?.into_iter().map(|list| api::ListShown {
            name: list.name,
            sets: list.sets,
            octets: Some(list.octets),
            revision: Some(list.revision),
            changes: Some(list.changes),
            ..api::ListShown::default()
        });
        let (listed, sets) = {
            let view = lock(&self.view);
            (Arc::clone(&view.listed), view.sets.clone())
        };
        let states = self.components.jobs.lists();
        let mut all: Vec<api::ListShown> = own.collect();
        for set in listed.iter() {
            for (at, (format, source)) in set.lists.iter().enumerate() {
                let source_word = match source {
                    Source::Url(_) => ListSource::Url,
                    Source::File(_) => ListSource::File,
                    Source::Here => ListSource::Settings,
                    Source::Zone(_) => ListSource::Zone,
                    // It is among one's own, or not there yet.
                    Source::Own(_) => continue,
                };
                let stands = list(&set.set, format, source, &states);
                all.push(api::ListShown {
                    name: format!("{}:{}", set.set, at + 1),
                    source: source_word,
                    place: stands.source,
                    format: Some(stands.format),
                    sets: vec![set.set.clone()],
                    rules: sets.rules_of(&set.set).and_then(|rules| rules.get(at).map(|rules| *rules as u64)),
                    octets: stands.octets,
                    age_s: stands.age_s,
                    next_in_s: stands.next_in_s,
                    failures: stands.is_fetched.then_some(stands.failures),
                    trouble: stands.trouble,
                    failed_s_ago: stands.failed_s_ago,
                    ..api::ListShown::default()
                });
            }
        }
        Ok(all)
    }

    /// Returns a part of the rules of a list, those that have a text in them. It ends when it has
    /// so many, a mebibyte of them, or the time for a search is over. A line that is no rule of the
    /// list's format is left out: what was named as a list may be another file.
    ///
    /// # Errors
    ///
    /// There is no such list, it is no text, or cannot be read; or too many have it read.
    pub fn list_rules(&self, of: &api::ListRulesOf) -> Result<api::ListRules, OperatorError> {
        let _place = super::place(&self.list_reads, READS_MAX, "readers of lists")?;
        let count = of.count.unwrap_or(RULES_SHOWN).clamp(1, RULES_SHOWN_MAX) as usize;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => OperatorError::Refused(error.to_string()),
            _ => OperatorError::Io { what: "the list cannot be read", error },
        };
        let (mut text, format) = self.text_of(&of.name)?;
        let from = of.after.unwrap_or(0);
        if from > 0 {
            let mut before = [0];
            text.seek(SeekFrom::Start(from - 1)).and_then(|_| text.read_exact(&mut before)).map_err(
                |_| OperatorError::Argument(format!("after {from}: the list has no line behind that")),
            )?;
            if before != [b'\n'] {
                return Err(OperatorError::Argument(format!(
                    "after {from}: no line of the list begins there"
                )));
            }
        }
        part(BufReader::new(text), (from, count), of.contains.as_deref(), format).map_err(failed)
    }

    /// Opens the text of a list; the format is that of its lines, if a set reads it.
    fn text_of(&self, name: &str) -> Result<(Box<dyn Text>, Option<ListFormat>), OperatorError> {
        let failed = |error| OperatorError::Io { what: "the list cannot be read", error };
        let Some((set, number)) = name.rsplit_once(':') else {
            let text: Box<dyn Text> = match self.own_list_file(name)? {
                Ok(file) => Box::new(file),
                Err(text) => Box::new(Cursor::new(text)),
            };
            return Ok((text, self.own_list_format(name)));
        };
        let listed = Arc::clone(&lock(&self.view).listed);
        let number = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found = listed.iter().find(|known| known.set == set);
        let found = found.and_then(|set: &Listed| set.lists.get(number?));
        let (format, source) = found.ok_or_else(|| OperatorError::not_found(What::List, name))?;
        let file = match source {
            Source::File(file) => file.clone(),
            Source::Url(url) => config::sets::copy_file(&self.facts.startup.state_directory, set, url),
            Source::Own(own) => return self.text_of(own),
            Source::Here => return refused(format!("its rules are in the configuration: sets.{set}")),
            Source::Zone(apex) => return refused(format!("its rules are the records of the zone {apex}")),
        };
        if BINARY.contains(&format.as_str()) {
            return refused(format!("a list of the format {format} is no text"));
        }
        match File::open(&file) {
            Ok(file) => Ok((Box::new(file), ListFormat::parse(format))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && matches!(source, Source::Url(_)) => {
                refused("it was not fetched yet".to_owned())
            }
            Err(error) => Err(failed(error)),
        }
    }
}

fn refused<T>(why: String) -> Result<T, OperatorError> {
    Err(OperatorError::Refused(why))
}

/// Reads lines from `from` on; without a format, each that is no comment is a rule.
fn part(
    mut text: impl BufRead,
    (from, count): (u64, usize),
    contains: Option<&str>,
    format: Option<ListFormat>,
) -> io::Result<api::ListRules> {
    let (begin, wanted) = (Instant::now(), contains.map(str::to_ascii_lowercase));
    let mut found = api::ListRules::default();
    let (mut at, mut octets_found) = (from, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut octets = (&mut text).take(LINE_OCTETS_MAX).read_until(b'\n', &mut line)? as u64;
        if octets == 0 {
            return Ok(found);
        }
        if octets == LINE_OCTETS_MAX && line.last() != Some(&b'\n') {
            octets += pass_line(&mut text, at)?;
        }
        at += octets;
        let rule = String::from_utf8_lossy(line.trim_ascii());
        let is_meant = wanted.as_deref().is_none_or(|wanted| rule.to_ascii_lowercase().contains(wanted));
        let is_rule = |rule: &str| match format {
            Some(format) => lists::own::is_rule(rule.as_bytes(), format),
            None => !rule.is_empty() && !rule.starts_with('#'),
        };
        if is_meant && octets <= LINE_OCTETS_MAX && is_rule(&rule) {
            octets_found += rule.len();
            found.rules.push(rule.into_owned());
        }
        if found.rules.len() >= count || octets_found >= PART_OCTETS_MAX || begin.elapsed() >= SEARCH_TIME {
            break;
        }
    }
    found.next = Some(at);
    Ok(found)
}

/// Passes over the rest of the line that begins at `at`; returns how many octets that was.
fn pass_line(text: &mut impl BufRead, at: u64) -> io::Result<u64> {
    let passed = text.take(PASSED_OCTETS_MAX).skip_until(b'\n')? as u64;
    if passed == PASSED_OCTETS_MAX {
        let why = format!("the line at octet {at} is longer than {PASSED_OCTETS_MAX} octets: it is no text");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_text_come_one_after_the_other_and_leave_no_rule_out() {
        let long = "x".repeat(3 * LINE_OCTETS_MAX as usize);
        let text = format!("# mine\n\nAds.example\r\n||b.example^\n{long}\nlast.example");
        let read = |from: u64, count, contains, format| {
            part(&text.as_bytes()[from as usize..], (from, count), contains, format).expect("readable")
        };
        let all = |format| {
            let (mut all, mut from) = (Vec::new(), 0);
            loop {
                let part = read(from, 1, None, format);
                all.extend(part.rules);
                match part.next {
                    Some(next) => from = next,
                    None => return all,
                }
            }
        };
        assert_eq!(all(Some(ListFormat::Names)), ["Ads.example", "last.example"]);
        assert_eq!(all(Some(ListFormat::Hosts)), Vec::<String>::new());
        assert_eq!(all(None), ["Ads.example", "||b.example^", "last.example"]);
        let found = read(0, 10, Some("EXAMPLE^"), Some(ListFormat::Adguard));
        assert_eq!((found.rules, found.next), (vec!["||b.example^".to_owned()], None));
    }

    #[test]
    fn a_part_has_a_bound_in_octets_and_a_line_without_an_end_is_refused() {
        let rule = format!("regexp:{}\n", "a".repeat(4_000));
        let text = rule.repeat(400);
        let found = part(text.as_bytes(), (0, 10_000), None, None).expect("readable");
        let octets: usize = found.rules.iter().map(String::len).sum();
        assert!(octets < PART_OCTETS_MAX + rule.len() && found.next.is_some(), "{octets}");
        let endless = io::repeat(b'x').take(4 * PASSED_OCTETS_MAX);
        let mut endless = BufReader::new(endless);
        let refused = part(&mut endless, (0, 10), None, None).expect_err("no text");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        let left = io::copy(&mut endless, &mut io::sink()).expect("read");
        assert!(left > 2 * PASSED_OCTETS_MAX, "the rest is not read: {left}");
    }
}
