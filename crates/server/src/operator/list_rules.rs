//! Lists that sets are read from, and their rules, as their operator looks them up.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::Instant;

use control::api::{self, ListSource};

use super::lists::{Listed, Source, list};
use super::own_lists::READS_MAX;
use super::queries::SEARCH_TIME;
use super::{Operator, OperatorError, What};
use crate::lock;

/// Rules of one part, unless somebody wants fewer or more, and the most.
const RULES_SHOWN: u64 = 1_000;
const RULES_SHOWN_MAX: u64 = 10_000;
/// Octets of a line that are looked at; the rest of a longer one is passed over.
const LINE_OCTETS_MAX: u64 = 64 << 10;
/// Lines between two looks at the clock.
const LINES_PER_LOOK: usize = 1_000;
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
    /// so many, or the time for a search is over.
    ///
    /// # Errors
    ///
    /// There is no such list, it is no text, or cannot be read; or too many have it read.
    pub fn list_rules(&self, of: &api::ListRulesOf) -> Result<api::ListRules, OperatorError> {
        let _place = super::place(&self.list_reads, READS_MAX, "readers of lists")?;
        let count = of.count.unwrap_or(RULES_SHOWN).clamp(1, RULES_SHOWN_MAX) as usize;
        let failed = |error| OperatorError::Io { what: "the list cannot be read", error };
        let mut text = self.text_of(&of.name)?;
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
        part(BufReader::new(text), (from, count), of.contains.as_deref()).map_err(failed)
    }

    /// Opens the text of a list.
    fn text_of(&self, name: &str) -> Result<Box<dyn Text>, OperatorError> {
        let failed = |error| OperatorError::Io { what: "the list cannot be read", error };
        let Some((set, number)) = name.rsplit_once(':') else {
            return Ok(match self.own_list_file(name)? {
                Ok(file) => Box::new(file),
                Err(text) => Box::new(Cursor::new(text)),
            });
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
            Ok(file) => Ok(Box::new(file)),
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

/// Reads lines from `from` on.
fn part(
    mut text: impl BufRead,
    (from, count): (u64, usize),
    contains: Option<&str>,
) -> io::Result<api::ListRules> {
    let (begin, wanted) = (Instant::now(), contains.map(str::to_ascii_lowercase));
    let mut found = api::ListRules::default();
    let mut at = from;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut octets = (&mut text).take(LINE_OCTETS_MAX).read_until(b'\n', &mut line)? as u64;
        if octets == 0 {
            return Ok(found);
        }
        while octets.is_multiple_of(LINE_OCTETS_MAX) && line.last() != Some(&b'\n') {
            // What is beyond is passed over.
            let mut rest = Vec::new();
            let more = (&mut text).take(LINE_OCTETS_MAX).read_until(b'\n', &mut rest)? as u64;
            octets += more;
            if more == 0 || rest.last() == Some(&b'\n') {
                break;
            }
        }
        at += octets;
        let rule = String::from_utf8_lossy(&line);
        let rule = rule.trim();
        let is_meant = wanted.as_deref().is_none_or(|wanted| rule.to_ascii_lowercase().contains(wanted));
        if !rule.is_empty() && is_meant {
            found.rules.push(rule.to_owned());
        }
        let is_late = number % LINES_PER_LOOK == 0 && begin.elapsed() >= SEARCH_TIME;
        if found.rules.len() >= count || is_late {
            break;
        }
    }
    found.next = Some(at);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_text_come_one_after_the_other_and_leave_nothing_out() {
        let long = "x".repeat(3 * LINE_OCTETS_MAX as usize);
        let text = format!("# mine\n\nAds.example\r\n||b.example^\n{long}\nlast.example");
        let read = |from: u64, count, contains| {
            part(&text.as_bytes()[from as usize..], (from, count), contains).expect("readable")
        };
        let (mut all, mut from) = (Vec::new(), 0);
        loop {
            let part = read(from, 1, None);
            all.extend(part.rules);
            match part.next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert_eq!(all.len(), 5);
        assert_eq!(all[..3], ["# mine", "Ads.example", "||b.example^"]);
        assert_eq!((all[3].len() as u64, all[4].as_str()), (LINE_OCTETS_MAX, "last.example"));
        let found = read(0, 10, Some("EXAMPLE^"));
        assert_eq!((found.rules, found.next), (vec!["||b.example^".to_owned()], None));
    }
}
