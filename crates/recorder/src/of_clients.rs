//! What the record says of clients: from sums, and from the newest rows of each.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use tracing::trace;

use crate::client::Clients;
use crate::days::{Day, DayFile};
use crate::outcome::Outcome;
use crate::read::{File, HOUR_MS, Reader};
use crate::search::Wanted;
use crate::sums::{Kind, SumsReader, Tally};

/// Rows of one client that are counted.
const ROWS_MAX: u32 = 20_000;
/// Names that one client asked for most.
const NAMES_MAX: usize = 20;

/// A client, as the record has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSum {
    /// The address, the first one of a prefix, a pseudonym, `unknown`, or `others`.
    pub client: String,
    /// Queries since then.
    pub queries: u64,
    /// Queries of these that were blocked.
    pub blocked: u64,
    /// When the newest was answered, in milliseconds since 1970; `None` if there was no time to
    /// look.
    pub last_ms: Option<i64>,
}

/// Clients by their names, those behind one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientPage {
    /// By name.
    pub clients: Vec<ClientSum>,
    /// Since when all queries were counted, in milliseconds since 1970, if the time was over before
    /// the older ones were.
    pub counted_from_ms: Option<i64>,
}

/// A page while it is counted. It holds no more clients than it has in the end: one that has as
/// many before it cannot be on it.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    after: String,
    count: usize,
    /// Queries, and those that were blocked.
    pub(crate) clients: BTreeMap<String, (u64, u64)>,
    pub(crate) counted_from_ms: Option<i64>,
    /// Rows of sums and queries that were read.
    pub(crate) rows: u64,
}

impl Counted {
    fn new(after: Option<&str>, count: usize) -> Self {
        Self { after: after.unwrap_or_default().to_owned(), count, ..Self::default() }
    }

    /// Adds queries of a client; returns whether one behind it can be on the page.
    fn add(&mut self, client: &str, queries: u64) -> bool {
        self.rows += 1;
        if let Some((sum, _)) = self.clients.get_mut(client) {
            *sum += queries;
            return true;
        }
        let is_full = self.clients.len() >= self.count;
        let is_behind = self.clients.last_key_value().is_none_or(|(last, _)| client > last.as_str());
        if is_full && is_behind {
            return false;
        }
        if client > self.after.as_str() {
            self.clients.insert(client.to_owned(), (queries, 0));
            if self.clients.len() > self.count {
                self.clients.pop_last();
            }
        }
        true
    }

    /// Adds blocked queries of a client that is on the page; returns whether one behind it is.
    fn add_blocked(&mut self, client: &str, queries: u64) -> bool {
        self.rows += 1;
        if let Some((_, blocked)) = self.clients.get_mut(client) {
            *blocked += queries;
        }
        self.clients.last_key_value().is_some_and(|(last, _)| client < last.as_str())
    }
}

/// What became of the queries of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Queries that were counted.
    pub queries: u64,
    /// By what became of them, the most frequent first.
    pub outcomes: Vec<Tally>,
    /// By type.
    pub types: Vec<Tally>,
    /// The names that were asked for most.
    pub names: Vec<Tally>,
    /// The names among them that were blocked most.
    pub blocked: Vec<Tally>,
    /// When the newest was answered, in milliseconds since 1970.
    pub last_ms: Option<i64>,
    /// Since when all were counted, in milliseconds since 1970, if that is later than it was asked
    /// for.
    pub counted_from_ms: Option<i64>,
}

impl Reader {
    /// Returns clients by their names, those behind `after`, at most `count`: how often each asked
    /// since the beginning of the hour of a time, in milliseconds since 1970. All of it takes no
    /// longer than `time`; the newest queries are counted first. The memory that it takes depends
    /// on `count` alone.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn clients(
        &self,
        since_ms: i64,
        (after, count): (Option<&str>, usize),
        time: Duration,
    ) -> Result<ClientPage, String> {
        let begin = Instant::now();
        let left = || time.saturating_sub(begin.elapsed());
        let counted = self.count_clients(since_ms, (after, count), &|| left().is_zero())?;
        trace!(rows = counted.rows, clients = counted.clients.len(), "clients counted");
        let sum = |(client, (queries, blocked)): (String, (u64, u64))| {
            let last_ms = match client.parse::<Clients>() {
                Ok(of) if !left().is_zero() => self.newest_of(of, since_ms, left())?,
                _ => None,
            };
            Ok(ClientSum { client, queries, blocked, last_ms })
        };
        let clients = counted.clients.into_iter().map(sum).collect::<Result<_, String>>()?;
        Ok(ClientPage { clients, counted_from_ms: counted.counted_from_ms })
    }

    /// Counts the queries of a page of clients, from the newest back, until `is_late`.
    pub(crate) fn count_clients(
        &self,
        since_ms: i64,
        (after, count): (Option<&str>, usize),
        is_late: &dyn Fn() -> bool,
    ) -> Result<Counted, String> {
        let mut page = Counted::new(after, count);
        if count == 0 {
            return Ok(page);
        }
        let path = self.files.sums();
        let said = |error: rusqlite::Error| format!("{}: {error}", path.display());
        let sums = SumsReader::open(&path);
        let hour_ms = since_ms.div_euclid(HOUR_MS).saturating_mul(HOUR_MS);
        let since_ms = if sums.is_some() { hour_ms } else { since_ms };
        // Rows that are in no sum yet.
        let is_since = |file: &&DayFile| file.day == Day::UNDIVIDED || file.day.end_ms() > since_ms;
        for file in self.files.all().iter().rev().filter(is_since) {
            let from = sums.as_ref().map_or(Ok(0), |sums| sums.last_id(file.day)).map_err(said)?;
            let Some(opened) = File::begun(file)? else { continue };
            let late = opened.walk_clients((from, since_ms), is_late, &mut |client, queries, is_blocked| {
                page.add(&client, queries);
                if is_blocked {
                    page.add_blocked(&client, queries);
                }
            });
            page.counted_from_ms = late.map_err(|error| format!("{}: {error}", file.path.display()))?;
            if page.counted_from_ms.is_some() {
                return Ok(page);
            }
        }
        let Some(sums) = sums else { return Ok(page) };
        let mut counted: Vec<(i64, i64)> = Vec::new();
        let mut newest = sums.newest_start(Kind::Client, since_ms / 1000, None).map_err(said)?;
        while let Some((period, start)) = newest {
            if is_late() && !counted.is_empty() {
                let from = counted.last().map_or(start, |(_, start)| *start);
                page.counted_from_ms = Some(from.saturating_mul(1000));
                break;
            }
            let after = page.after.clone();
            let of = (Kind::Client, period, start);
            sums.of_start(of, (&after, count), &mut |key, queries| page.add(key, queries)).map_err(said)?;
            counted.push((period, start));
            let before = Some((period, start));
            newest = sums.newest_start(Kind::Client, since_ms / 1000, before).map_err(said)?;
        }
        for (period, start) in counted {
            let after = page.after.clone();
            let of = (Kind::BlockedClient, period, start);
            sums.of_start(of, (&after, count), &mut |key, queries| page.add_blocked(key, queries))
                .map_err(said)?;
        }
        Ok(page)
    }

    /// Returns when the newest query of a client was answered.
    fn newest_of(&self, client: Clients, since_ms: i64, time: Duration) -> Result<Option<i64>, String> {
        let (clients, since_ms, time) = (Some(client), Some(since_ms), Some(time));
        let page = self.search(&Wanted { count: 1, clients, since_ms, time, ..Wanted::default() })?;
        Ok(page.queries.first().map(|query| query.at_ms))
    }

    /// Counts the newest queries of a client since a time, as long as `time` lasts.
    ///
    /// # Errors
    ///
    /// No file can be read.
    pub fn client(&self, client: Clients, since_ms: i64, time: Duration) -> Result<ClientCounts, String> {
        let (clients, since, time) = (Some(client), Some(since_ms), Some(time));
        let wanted = Wanted { count: ROWS_MAX, clients, since_ms: since, time, ..Wanted::default() };
        let page = self.search(&wanted)?;
        let (mut counts, mut outcomes, mut types, mut names, mut blocked) =
            (ClientCounts::default(), HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        let add = |sums: &mut HashMap<String, u64>, key: String, count: u64| {
            *sums.entry(key).or_default() += count;
        };
        for query in &page.queries {
            let count = u64::from(query.one_of);
            counts.queries += count;
            add(&mut outcomes, query.outcome.word().to_owned(), count);
            add(&mut types, wire::Rtype(query.qtype).to_string(), count);
            add(&mut names, query.name.clone(), count);
            if query.outcome == Outcome::Blocked {
                add(&mut blocked, query.name.clone(), count);
            }
        }
        counts.last_ms = page.queries.iter().map(|query| query.at_ms).max();
        // Where the page is full, what lies before its oldest was not looked at.
        let oldest = page.queries.iter().map(|query| query.at_ms).min();
        counts.counted_from_ms = page.cursor.and(page.searched_to_ms.or(oldest));
        counts.outcomes = most(outcomes, usize::MAX);
        counts.types = most(types, usize::MAX);
        counts.names = most(names, NAMES_MAX);
        counts.blocked = most(blocked, NAMES_MAX);
        Ok(counts)
    }
}

/// Returns the most frequent, the most frequent first.
fn most(sums: HashMap<String, u64>, count: usize) -> Vec<Tally> {
    let mut all: Vec<Tally> =
        sums.into_iter().map(|(what, queries)| Tally { what, queries, error: 0 }).collect();
    all.sort_unstable_by(|one, other| {
        other.queries.cmp(&one.queries).then_with(|| one.what.cmp(&other.what))
    });
    all.truncate(count);
    all
}
