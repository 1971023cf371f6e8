//! The record of queries, as its operator searches, watches and shortens it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::api;
use recorder::{Kind, Live, NameTest, Names, Outcome, Reader, Told, TopOf, Wanted};
use wire::{Rcode, Rtype};

use super::{Operator, OperatorError};
use crate::lock;

/// Queries of one page, unless somebody wants fewer or more, and at most.
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 10_000;
/// How long a search goes on; where it stopped is said then.
pub(super) const SEARCH_TIME: Duration = Duration::from_millis(250);
/// Counted things that are shown, unless somebody wants fewer or more.
const TOP: u32 = 20;
/// How far back is counted, unless somebody says from when.
pub(super) const DAY_MS: i64 = 86_400_000;
/// Readers of the live log at once.
const LIVE_MAX: usize = 16;

impl Operator {
    /// Returns what the record of queries is kept in.
    fn record(&self) -> Result<PathBuf, OperatorError> {
        let none = || OperatorError::Refused("no queries are recorded: recorder.file is not set".to_owned());
        lock(&self.view).recorder.clone().ok_or_else(none)
    }

    pub(super) fn reader(&self) -> Result<Reader, OperatorError> {
        Ok(Reader::new(&self.record()?))
    }

    /// Finds recorded queries, the newest first.
    ///
    /// # Errors
    ///
    /// None are recorded, a condition makes no sense, or no file can be read.
    pub fn queries_found(&self, asked: &api::QueriesAsked) -> Result<api::QueriesFound, OperatorError> {
        let wanted = Wanted { before_id: asked.cursor, time: Some(SEARCH_TIME), ..wanted(asked)? };
        let page = self.reader()?.search(&wanted).map_err(OperatorError::Refused)?;
        Ok(api::QueriesFound {
            queries: page.queries.iter().map(api::Recorded::from).collect(),
            cursor: page.cursor,
            searched_to_ms: page.searched_to_ms,
            unreadable: page.unreadable,
        })
    }

    /// Returns what is recorded from now on, or behind the one that the cursor names. Each of its
    /// turns lasts until there is something, or for some seconds.
    ///
    /// # Errors
    ///
    /// As of [`Operator::queries_found`]; and there are enough readers.
    pub fn queries_live(
        &self,
        asked: &api::QueriesAsked,
    ) -> Result<impl Iterator<Item = api::QueryEvent> + Send + use<>, OperatorError> {
        let place = super::place(&self.live, LIVE_MAX, "readers of the live log")?;
        // The place is free again when the reader is gone.
        let live = Live::new(self.reader()?, wanted(asked)?, asked.cursor, place);
        Ok(live.map_err(OperatorError::Refused)?.map(|told| match told {
            Told::Query(query) => api::QueryEvent { query: Some((&*query).into()), missed: None },
            Told::Missed(count) => api::QueryEvent { query: None, missed: Some(count) },
            Told::Nothing => api::QueryEvent::default(),
        }))
    }

    /// Returns what was asked for most, and by whom.
    ///
    /// # Errors
    ///
    /// Nothing is recorded, the words make no sense, or no file can be read.
    pub fn queries_top(&self, asked: &api::QuerySums) -> Result<Vec<api::Tally>, OperatorError> {
        let since_ms = asked.since_ms.unwrap_or_else(|| unix_ms().saturating_sub(DAY_MS));
        let count = asked.count.unwrap_or(TOP).clamp(1, PAGE_MAX);
        let found = self.reader()?.top(top_of(&asked.what)?, since_ms, count);
        Ok(found.map_err(OperatorError::Refused)?.into_iter().map(tally).collect())
    }

    /// Returns how many queries there were in each minute, hour or day.
    ///
    /// # Errors
    ///
    /// As of [`Operator::queries_top`].
    pub fn queries_over_time(&self, asked: &api::QuerySums) -> Result<Vec<api::QuerySum>, OperatorError> {
        let TopOf::By(kind) = top_of(&asked.what)? else {
            return Err(OperatorError::Argument(format!("{} are not counted over time", asked.what)));
        };
        let period_s = asked.period_s.unwrap_or(3600);
        if ![60, 3600, 86_400].contains(&period_s) {
            return Err(OperatorError::Argument(format!("period-s {period_s}: expected 60, 3600 or 86400")));
        }
        let since_ms = asked.since_ms.unwrap_or_else(|| unix_ms().saturating_sub(DAY_MS));
        let between = (since_ms, asked.until_ms.unwrap_or(i64::MAX));
        let found = self.reader()?.over_time(kind, period_s, between).map_err(OperatorError::Refused)?;
        let sum = |sum: recorder::Sum| api::QuerySum {
            start_ms: sum.start.saturating_mul(1000),
            what: sum.key,
            queries: sum.queries,
        };
        Ok(found.into_iter().map(sum).collect())
    }

    /// Removes a client's queries from the record.
    ///
    /// # Errors
    ///
    /// None are recorded, it is no client, or a file cannot be changed.
    pub fn queries_forget(&self, client: &str) -> Result<api::QueriesRemoved, OperatorError> {
        let clients =
            client.parse().map_err(|why| OperatorError::Argument(format!("client {client}: {why}")))?;
        self.record()?;
        let jobs = &self.components.jobs;
        let removed = jobs.forget_client(clients).map_err(OperatorError::Refused)?;
        Ok(api::QueriesRemoved { removed })
    }
}

pub(super) fn tally(tally: recorder::Tally) -> api::Tally {
    api::Tally { what: tally.what, queries: tally.queries, error: tally.error }
}

/// Reads what is to be counted.
fn top_of(what: &str) -> Result<TopOf, OperatorError> {
    Ok(match what {
        "names" => TopOf::Names,
        "blocked" => TopOf::Blocked,
        "clients" => TopOf::By(Kind::Client),
        "outcomes" => TopOf::By(Kind::Outcome),
        "types" => TopOf::By(Kind::Type),
        "transports" => TopOf::By(Kind::Transport),
        "upstreams" => TopOf::By(Kind::Upstream),
        "lists" => TopOf::By(Kind::List),
        other => {
            let expected = "names, blocked, clients, outcomes, types, transports, upstreams or lists";
            return Err(OperatorError::Argument(format!("{other}: expected {expected}")));
        }
    })
}

pub(super) fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the conditions.
fn wanted(asked: &api::QueriesAsked) -> Result<Wanted, OperatorError> {
    let wrong = |what: &str, text: &str, why: &str| OperatorError::Argument(format!("{what} {text}: {why}"));
    let qtype = |text: &String| {
        let parsed = text.to_ascii_uppercase().parse::<Rtype>();
        parsed.map(|qtype| qtype.0).map_err(|_| wrong("type", text, "expected a type such as AAAA"))
    };
    let rcode = |text: &String| match text.to_ascii_uppercase().as_str() {
        "NONE" => Ok(None),
        word => {
            let parsed = word.parse::<Rcode>();
            parsed
                .map(|rcode| Some(rcode.0))
                .map_err(|_| wrong("rcode", text, "expected a response code or \"none\""))
        }
    };
    let outcomes = |text: &String| -> Result<Vec<Outcome>, OperatorError> {
        text.split(',')
            .map(|word| word.trim().parse().map_err(|why: String| wrong("outcome", word, &why)))
            .collect()
    };
    Ok(Wanted {
        count: asked.count.unwrap_or(PAGE).clamp(1, PAGE_MAX),
        clients: asked
            .client
            .as_ref()
            .map(|text| text.parse().map_err(|why: String| wrong("client", text, &why)))
            .transpose()?,
        names: names(asked)?,
        qtype: asked.rtype.as_ref().map(qtype).transpose()?,
        transport: asked.transport.clone(),
        answer: asked
            .address
            .as_ref()
            .map(|text| text.parse().map_err(|_| wrong("address", text, "expected an address")))
            .transpose()?,
        waited_us: asked.longer_than_ms.map(|ms| ms.saturating_mul(1000)),
        since_ms: asked.since_ms,
        until_ms: asked.until_ms,
        rcode: asked.rcode.as_ref().map(rcode).transpose()?,
        outcomes: asked.outcome.as_ref().map(outcomes).transpose()?.unwrap_or_default(),
        list: asked.list.clone(),
        upstream: asked.upstream.clone(),
        before_id: None,
        after_id: None,
        time: None,
    })
}

fn names(asked: &api::QueriesAsked) -> Result<Names, OperatorError> {
    let whole = |name: &String| NameTest::whole(name);
    let part = |text: &String| NameTest::part(&text.to_ascii_lowercase());
    let regex = |text: &String| NameTest::regex(text).map_err(OperatorError::Argument);
    let mut names = Names::default();
    asked.name.iter().for_each(|name| names.are(NameTest::Exact(whole(name))));
    asked.suffix.iter().for_each(|name| names.are(NameTest::Suffix(whole(name))));
    asked.contains.iter().for_each(|text| names.are(part(text)));
    asked.without.iter().for_each(|text| names.are_not(part(text)));
    asked.without_suffix.iter().for_each(|name| names.are_not(NameTest::Suffix(whole(name))));
    if let Some(text) = &asked.regex {
        names.are(regex(text)?);
    }
    if let Some(text) = &asked.without_regex {
        names.are_not(regex(text)?);
    }
    Ok(names)
}
