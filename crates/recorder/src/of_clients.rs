//! What the record says of clients: from sums, and from the newest rows of each.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::client::Clients;
use crate::outcome::Outcome;
use crate::read::{Reader, TopOf};
use crate::search::Wanted;
use crate::sums::{Kind, Tally};

/// Clients that are known at most when a part of them is asked for.
const ALL: u32 = u32::MAX;
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
    /// since the beginning of the hour of a time, in milliseconds since 1970. The newest query of
    /// each is looked for as long as `time` lasts.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn clients(
        &self,
        since_ms: i64,
        (after, count): (Option<&str>, usize),
        time: Duration,
    ) -> Result<Vec<ClientSum>, String> {
        let begin = Instant::now();
        let mut all = self.top(TopOf::By(Kind::Client), since_ms, ALL)?;
        all.retain(|tally| after.is_none_or(|after| tally.what.as_str() > after));
        all.sort_unstable_by(|one, other| one.what.cmp(&other.what));
        all.truncate(count);
        let blocked = self.top(TopOf::By(Kind::BlockedClient), since_ms, ALL)?;
        let blocked: HashMap<String, u64> =
            blocked.into_iter().map(|tally| (tally.what, tally.queries)).collect();
        let sum = |tally: Tally| {
            let last_ms = match tally.what.parse::<Clients>() {
                Ok(client) if begin.elapsed() < time => self.newest_of(client, since_ms)?,
                _ => None,
            };
            let blocked = blocked.get(&tally.what).copied().unwrap_or(0);
            Ok(ClientSum { blocked, last_ms, queries: tally.queries, client: tally.what })
        };
        all.into_iter().map(sum).collect()
    }

    /// Returns when the newest query of a client was answered.
    fn newest_of(&self, client: Clients, since_ms: i64) -> Result<Option<i64>, String> {
        let since_ms = Some(since_ms);
        let page = self.search(&Wanted { count: 1, clients: Some(client), since_ms, ..Wanted::default() })?;
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
