//! Sets and their lists, as their operator sees them and has them fetched.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime};

use control::api;
use jobs::ListState;
use lists::ListFormat;
use settings::{ListPlace, Settings};

use super::{Operator, OperatorError, What};
use wire::NameBuf;

use crate::lock;

/// How long a command waits for lists that are fetched: less than its client waits for it.
const FETCH_PATIENCE: Duration = Duration::from_secs(280);

/// A set of the configuration, and where its lists are.
pub(super) struct Listed {
    pub(super) set: String,
    pub(super) lists: Vec<(String, Source)>,
}

/// Where a list is.
pub(super) enum Source {
    Url(String),
    File(PathBuf),
    Here,
    Zone(NameBuf),
    Own(String),
}

/// Returns the sets of a configuration.
pub(super) fn listed(settings: &Settings) -> Arc<[Listed]> {
    let sets = settings.sets.iter().map(|set| Listed {
        set: set.name.value.clone(),
        lists: set
            .lists
            .iter()
            .map(|list| {
                let source = match &list.place.value {
                    ListPlace::Url(url) => Source::Url(url.clone()),
                    ListPlace::File(file) => Source::File(file.clone()),
                    ListPlace::Here(_) => Source::Here,
                    ListPlace::Zone(apex) => Source::Zone(*apex),
                    ListPlace::Own(name) => Source::Own(name.clone()),
                };
                (list.format.word().to_owned(), source)
            })
            .collect(),
    });
    sets.collect()
}

/// Returns in which formats sets read a list that is kept beside the settings, and these sets.
pub(super) fn readers(listed: &[Listed], name: &str) -> Vec<(ListFormat, String)> {
    let all = listed.iter().flat_map(|set| set.lists.iter().map(move |list| (set, list)));
    let readers = all.filter_map(|(set, (format, source))| match source {
        Source::Own(own) if own == name => Some((ListFormat::parse(format)?, set.set.clone())),
        _ => None,
    });
    readers.collect()
}

impl Operator {
    /// Says how one set stands, or every one.
    ///
    /// # Errors
    ///
    /// There is no such set.
    pub fn lists(&self, only: Option<&str>) -> Result<Vec<api::Set>, OperatorError> {
        let (listed, sets) = {
            let view = lock(&self.view);
            (Arc::clone(&view.listed), view.sets.clone())
        };
        let states = self.components.jobs.lists();
        let mut shown = Vec::new();
        for set in listed.iter().filter(|set| only.is_none_or(|only| only == set.set)) {
            let compiled = sets.iter().find(|(name, _)| *name == set.set).map(|(_, compiled)| compiled);
            shown.push(api::Set {
                name: set.set.clone(),
                rules: compiled.map_or(0, |compiled| compiled.rules as u64),
                octets: compiled.map_or(0, |compiled| compiled.octets as u64),
                dynamic_items: sets.dynamic(&set.set).map(|dynamic| dynamic.list().len() as u64),
                lists: set
                    .lists
                    .iter()
                    .map(|(format, source)| list(&set.set, format, source, &states))
                    .collect(),
            });
        }
        match only {
            Some(only) if shown.is_empty() => Err(OperatorError::not_found(What::Set, only)),
            _ => Ok(shown),
        }
    }

    /// Fetches the lists of one set now, or all, waits until they are in use, and says how they
    /// stand then.
    ///
    /// # Errors
    ///
    /// There is no such set, none of its lists is fetched, or they are still being fetched.
    pub fn lists_fetch(&self, only: Option<&str>) -> Result<api::ListsFetched, OperatorError> {
        // A wrong name is told as such.
        self.lists(only)?;
        let ends = self.components.jobs.fetch_lists(only);
        if ends.is_empty() {
            return Err(OperatorError::Refused(match only {
                Some(only) => format!("no list of the set \"{only}\" comes from a web server"),
                None => "no list comes from a web server".to_owned(),
            }));
        }
        let deadline = Instant::now() + FETCH_PATIENCE;
        let (mut fetched, mut failed) = (0, 0);
        for end in ends {
            match end.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(true) => fetched += 1,
                // One that was taken out of the configuration meanwhile is not asked for any more.
                Ok(false) | Err(RecvTimeoutError::Disconnected) => failed += 1,
                Err(RecvTimeoutError::Timeout) => {
                    let why = "the lists are still being fetched; \"gannet lists\" shows how they stand";
                    return Err(OperatorError::TimedOut(why.to_owned()));
                }
            }
        }
        Ok(api::ListsFetched { fetched, failed, sets: self.lists(only)? })
    }

    /// Says how all lists stand together.
    pub(super) fn lists_summary(&self) -> api::ListsSummary {
        let states = self.components.jobs.lists();
        let sets = lock(&self.view).sets.clone();
        api::ListsSummary {
            sets: sets.iter().count() as u64,
            rules: sets.iter().map(|(_, set)| set.rules as u64).sum(),
            fetched: states.len() as u64,
            missing: states.iter().filter(|state| state.fetched_ms.is_none()).count() as u64,
            failing: states.iter().filter(|state| state.trouble.is_some()).count() as u64,
        }
    }
}

pub(super) fn list(set: &str, format: &str, source: &Source, states: &[ListState]) -> api::List {
    let bare = api::List { format: format.to_owned(), ..api::List::default() };
    match source {
        Source::Here => bare,
        Source::Own(name) => api::List { source: Some(format!("list {name}")), ..bare },
        Source::Zone(apex) => api::List { source: Some(format!("zone {apex}")), ..bare },
        Source::File(file) => {
            let known = std::fs::metadata(file);
            let trouble = known.as_ref().err().map(|error| format!("cannot be read: {error}"));
            let known = known.ok();
            let changed = known.as_ref().and_then(|known| known.modified().ok());
            api::List {
                source: Some(file.display().to_string()),
                octets: known.map(|known| known.len()),
                age_s: changed
                    .and_then(|at| SystemTime::now().duration_since(at).ok())
                    .map(|age| age.as_secs()),
                trouble,
                ..bare
            }
        }
        Source::Url(url) => {
            let bare = api::List {
                source: Some(diagnostic::without_secrets(url).into_owned()),
                is_fetched: true,
                ..bare
            };
            let Some(state) = states.iter().find(|state| state.set == set && state.url == *url) else {
                return bare;
            };
            let now_ms = super::unix_seconds().saturating_mul(1000);
            let since = |at_ms: i64| now_ms.saturating_sub(u64::try_from(at_ms).unwrap_or(0)) / 1000;
            api::List {
                octets: state.fetched_ms.map(|_| state.octets),
                age_s: state.fetched_ms.map(since),
                next_in_s: state
                    .next_ms
                    .map(|at_ms| u64::try_from(at_ms).unwrap_or(0).saturating_sub(now_ms).div_ceil(1000)),
                failures: state.failures,
                trouble: state.trouble.clone(),
                failed_s_ago: state.failed_ms.map(since),
                ..bare
            }
        }
    }
}
