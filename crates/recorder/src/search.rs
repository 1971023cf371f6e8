//! Finding rows: from the newest file and its newest block back, until a page is full or the time
//! is over.
//!
//! A block is left out when its summary says that nothing in it can fit: times, outcomes, response
//! codes, clients and names are known of each. Of the others, SQLite tests what it can, and names
//! and decisions are tested by the bits of their numbers.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Connection, Statement, params_from_iter};

use crate::client::{Client, Clients};
use crate::database::BLOCK_BITS;
use crate::days::Day;
use crate::names::{Names, NamesOf, Rows};
use crate::outcome::{Holds, Outcome};
use crate::read::{File, Recorded};
use crate::rows;

/// Rows of a block that are read one by one; of more, the block is read.
const ROWS_MAX: usize = 2_000;

/// Which recorded queries to show.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// At most so many.
    pub count: u32,
    /// Of these clients.
    pub clients: Option<Clients>,
    /// For names that fit.
    pub names: Names,
    /// For this type.
    pub qtype: Option<u16>,
    /// Over this transport.
    pub transport: Option<String>,
    /// With this address in the answer.
    pub answer: Option<IpAddr>,
    /// That waited at least so many microseconds.
    pub waited_us: Option<u64>,
    /// Not before this time, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Before this time.
    pub until_ms: Option<i64>,
    /// With this code in the reply; the outer `Some` says that it matters, the inner `None` that
    /// there was no reply.
    pub rcode: Option<Option<u16>>,
    /// Of which one of these became; of any if there are none.
    pub outcomes: Vec<Outcome>,
    /// That a rule of this list decided.
    pub list: Option<String>,
    /// That this upstream answered: its group, or its address.
    pub upstream: Option<String>,
    /// Recorded before this one.
    pub before_id: Option<i64>,
    /// Recorded behind this one.
    pub after_id: Option<i64>,
    /// How long to look for them; [`Page::cursor`] says where to go on.
    pub time: Option<Duration>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The queries: the newest first, or in the order of recording.
    pub queries: Vec<Recorded>,
    /// There may be more: those recorded before this one.
    pub cursor: Option<i64>,
    /// Until when all were looked at, in milliseconds since 1970, if the time was over first.
    pub searched_to_ms: Option<i64>,
    /// Files that cannot be read, and why.
    pub unreadable: Vec<String>,
}

/// Whether to go on.
pub(super) enum Progress {
    /// With the file before.
    On,
    /// The page is full, or the time is over.
    Over,
}

/// What is known of a block without reading it.
struct Block {
    number: i64,
    since_ms: i64,
    until_ms: i64,
    holds: Holds,
}

impl Block {
    fn may_hold(&self, wanted: &Wanted) -> bool {
        let has = |holds: Holds| self.holds.0 & holds.0 != 0;
        wanted.since_ms.is_none_or(|since| self.until_ms >= since)
            && wanted.until_ms.is_none_or(|until| self.since_ms < until)
            && wanted.rcode.is_none_or(|rcode| has(Holds::rcode(rcode)))
            && (wanted.outcomes.is_empty()
                || wanted.outcomes.iter().any(|outcome| has(Holds::outcome(*outcome))))
    }
}

/// One search.
pub(super) struct Search<'a> {
    wanted: &'a Wanted,
    begin: Instant,
    /// Whether a block or a whole file was looked at: the next page must begin further back.
    has_looked: bool,
    pub(super) page: Page,
}

impl<'a> Search<'a> {
    pub(super) fn new(wanted: &'a Wanted) -> Self {
        Self { wanted, begin: Instant::now(), has_looked: false, page: Page::default() }
    }

    fn is_full(&self) -> bool {
        self.page.queries.len() >= self.wanted.count as usize
    }

    fn is_late(&self) -> bool {
        self.has_looked && self.wanted.time.is_some_and(|time| self.begin.elapsed() >= time)
    }

    /// Returns whether a file of a day can have what is wanted.
    pub(super) fn may_be_on(&self, day: Day) -> bool {
        let is_before = self.wanted.before_id.is_none_or(|id| day <= Day::split(id).0);
        let is_after = self.wanted.after_id.is_none_or(|id| day >= Day::split(id).0);
        let is_then = day == Day::UNDIVIDED
            || (self.wanted.since_ms.is_none_or(|since| day.end_ms() > since)
                && self.wanted.until_ms.is_none_or(|until| day.begin_ms() < until));
        is_before && is_after && is_then
    }

    /// Looks through a file, from its newest row back.
    pub(super) fn look_through(&mut self, file: &File) -> rusqlite::Result<Progress> {
        let (database, wanted) = (&file.database, self.wanted);
        if self.is_late() {
            // Before the names of another file are tested.
            self.page.cursor = Some(file.day.global(Day::ID_MAX));
            self.page.searched_to_ms = (file.day != Day::UNDIVIDED).then(|| file.day.end_ms());
            return Ok(Progress::Over);
        }
        let Some(mut tests) = Tests::new(wanted, file)? else {
            self.has_looked = true;
            return Ok(Progress::On);
        };
        let end = match wanted.before_id.map(Day::split) {
            Some((day, id)) if day == file.day => id,
            _ => i64::MAX,
        };
        let start = match wanted.after_id.map(Day::split) {
            Some((day, id)) if day == file.day => id + 1,
            _ => i64::MIN,
        };
        let blocks = blocks(file, end)?;
        let mut first = database.prepare(&tests.statement("DESC"))?;
        for block in blocks {
            if (block.number + 1) << BLOCK_BITS <= start {
                break;
            }
            if self.is_late() {
                let next = ((block.number + 1) << BLOCK_BITS).min(end);
                self.page.cursor = Some(file.day.global(next));
                self.page.searched_to_ms = (block.until_ms < i64::MAX).then_some(block.until_ms);
                return Ok(Progress::Over);
            }
            if !block.may_hold(wanted) {
                continue;
            }
            self.has_looked = true;
            let (from, to) = (block.number << BLOCK_BITS, ((block.number + 1) << BLOCK_BITS).min(end));
            let from = from.max(start);
            let one = |at: i64| (block.number << BLOCK_BITS | at, (block.number << BLOCK_BITS | at) + 1);
            let ranges: Vec<(i64, i64)> = match tests.rows_in(database, block.number)? {
                RowsIn::Listed(rows) => rows.into_iter().map(one).collect(),
                RowsIn::Any => vec![(from, to)],
                RowsIn::None => Vec::new(),
            };
            for (one, end) in ranges {
                let range = (one.max(from), end.min(to));
                if let Progress::Over = self.add_between(&mut first, file, &mut tests, range)? {
                    return Ok(Progress::Over);
                }
            }
        }
        Ok(Progress::On)
    }

    /// Adds those rows between two numbers that fit.
    fn add_between(
        &mut self,
        first: &mut Statement<'_>,
        file: &File,
        tests: &mut Tests<'_>,
        (from, to): (i64, i64),
    ) -> rusqlite::Result<Progress> {
        let mut rows = first.query(params_from_iter(tests.bound(from, to)))?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if !tests.fit(&file.database, row.get(1)?, row.get(2)?)? {
                continue;
            }
            let Some(found) = file.row(id)?.filter(|found| tests.fit_late(found)) else { continue };
            self.page.queries.push(found);
            if self.is_full() {
                self.page.cursor = Some(file.day.global(id));
                return Ok(Progress::Over);
            }
        }
        Ok(Progress::On)
    }

    /// Adds rows of a file in the order of recording.
    pub(super) fn follow(&mut self, file: &File) -> rusqlite::Result<Progress> {
        let (database, wanted) = (&file.database, self.wanted);
        let Some(mut tests) = Tests::new(wanted, file)? else { return Ok(Progress::On) };
        let from = match wanted.after_id.map(Day::split) {
            Some((day, id)) if day == file.day => id + 1,
            _ => i64::MIN,
        };
        let mut first = database.prepare(&tests.statement("ASC"))?;
        let mut rows = first.query(params_from_iter(tests.bound(from, i64::MAX)))?;
        while let Some(row) = rows.next()? {
            if !tests.fit(database, row.get(1)?, row.get(2)?)? {
                continue;
            }
            let Some(found) = file.row(row.get(0)?)?.filter(|found| tests.fit_late(found)) else { continue };
            self.page.queries.push(found);
            if self.is_full() {
                return Ok(Progress::Over);
            }
        }
        Ok(Progress::On)
    }

    /// Returns what was found, the newest first by the time of their replies: workers hand over
    /// theirs in batches.
    pub(super) fn newest_first(mut self) -> Page {
        self.page.queries.sort_by_key(|query| std::cmp::Reverse((query.at_ms, query.id)));
        self.page
    }
}

/// Returns the blocks of a file with rows before `end`, the newest first.
fn blocks(file: &File, end: i64) -> rusqlite::Result<Vec<Block>> {
    if !file.has_summaries {
        let sql = "SELECT coalesce(min(id), 0), coalesce(max(id), -1) FROM queries WHERE id < ?1";
        let (first, last): (i64, i64) =
            file.database.query_row(sql, [end], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let whole = |number| Block { number, since_ms: i64::MIN, until_ms: i64::MAX, holds: Holds(-1) };
        return Ok((first >> BLOCK_BITS..=last >> BLOCK_BITS).rev().map(whole).collect());
    }
    let mut query = file.database.prepare_cached(
        "SELECT block, since_ms, until_ms, holds FROM blocks WHERE block <= ?1 ORDER BY block DESC",
    )?;
    let rows = query.query_map([end.saturating_sub(1) >> BLOCK_BITS], |row| {
        let holds = Holds(row.get(3)?);
        Ok(Block { number: row.get(0)?, since_ms: row.get(1)?, until_ms: row.get(2)?, holds })
    })?;
    rows.collect()
}

/// Which rows of a block may fit.
enum RowsIn {
    /// No row.
    None,
    /// These, the newest first.
    Listed(Vec<i64>),
    /// Any row.
    Any,
}

/// What rows of one file are tested for.
struct Tests<'a> {
    wanted: &'a Wanted,
    names: NamesOf<'a>,
    /// The numbers of decisions that fit, sorted; `None`: all do.
    decisions: Option<Vec<i64>>,
    has_outcomes: bool,
    has_client_blocks: bool,
    conditions: Vec<String>,
    values: Vec<Value>,
}

impl<'a> Tests<'a> {
    /// Returns the tests; `None` if no row of the file can fit.
    fn new(wanted: &'a Wanted, file: &File) -> rusqlite::Result<Option<Self>> {
        let rows = match wanted.clients {
            Some(_) if file.has_summaries => Rows::Few,
            _ => Rows::Many,
        };
        let names = NamesOf::new(&wanted.names, &file.database, file.has_blocks, rows)?;
        if names.are_none() {
            return Ok(None);
        }
        let has_outcomes = file.has_summaries;
        let decisions = match wanted.list.is_some() || wanted.upstream.is_some() {
            // Older versions recorded none.
            true if !has_outcomes => return Ok(None),
            true => Some(decisions(wanted, &file.database)?),
            false => None,
        };
        if decisions.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let mut tests = Self {
            wanted,
            names,
            decisions,
            has_outcomes,
            has_client_blocks: file.has_blocks,
            conditions: vec!["id >= ?1".to_owned(), "id < ?2".to_owned()],
            values: Vec::new(),
        };
        tests.add_conditions(file);
        Ok(Some(tests))
    }

    /// Adds what SQLite tests.
    fn add_conditions(&mut self, file: &File) {
        let wanted = self.wanted;
        if let Some(clients) = wanted.clients {
            let (first, last) = clients.range();
            let len = first.octets().1;
            if first == last {
                self.add("client = ?", [blob(first)]);
            } else {
                self.add("client BETWEEN ? AND ?", [blob(first), blob(last)]);
                self.add("length(client) = ?", [Value::Integer(len as i64)]);
            }
        }
        if let Some(qtype) = wanted.qtype {
            self.add("type = ?", [Value::Integer(qtype.into())]);
        }
        if let Some(transport) = &wanted.transport {
            self.add("transport = ?", [Value::Text(transport.clone())]);
        }
        if let Some(address) = wanted.answer {
            self.add("instr(' ' || addresses || ' ', ?) > 0", [Value::Text(format!(" {address} "))]);
        }
        if let Some(us) = wanted.waited_us {
            let us = i64::try_from(us).unwrap_or(i64::MAX);
            // Most rows are left out by the first alone.
            self.add("waited_ms >= ?", [Value::Integer(us / 1000)]);
            self.add(format!("waited_ms * 1000 + {} >= ?", file.waited_us), [Value::Integer(us)]);
        }
        if let Some(since) = wanted.since_ms {
            self.add("at_ms >= ?", [Value::Integer(since)]);
        }
        if let Some(until) = wanted.until_ms {
            self.add("at_ms < ?", [Value::Integer(until)]);
        }
        if let Some(rcode) = wanted.rcode {
            self.add("rcode IS ?", [rcode.map_or(Value::Null, |rcode| Value::Integer(rcode.into()))]);
        }
        if !wanted.outcomes.is_empty() && self.has_outcomes {
            let numbers: Vec<String> =
                wanted.outcomes.iter().map(|outcome| (*outcome as u8).to_string()).collect();
            self.add(format!("outcome IN ({})", numbers.join(", ")), []);
        }
    }

    fn add<const N: usize>(&mut self, condition: impl Into<String>, values: [Value; N]) {
        // Numbered from three on: the first two say which rows.
        let mut text = condition.into();
        for value in values {
            self.values.push(value);
            text = text.replacen("?", &format!("\u{1}{}", self.values.len() + 2), 1);
        }
        self.conditions.push(text.replace('\u{1}', "?"));
    }

    /// Returns the statement that finds rows; its first two parameters say between which.
    fn statement(&self, order: &str) -> String {
        let decision = if self.has_outcomes { "decision" } else { "NULL" };
        let conditions = self.conditions.join(" AND ");
        format!("SELECT id, name, {decision} FROM queries WHERE {conditions} ORDER BY id {order}")
    }

    fn bound(&self, from: i64, to: i64) -> Vec<Value> {
        [Value::Integer(from), Value::Integer(to)].into_iter().chain(self.values.iter().cloned()).collect()
    }

    /// Returns which rows of a block may fit.
    fn rows_in(&mut self, database: &Connection, block: i64) -> rusqlite::Result<RowsIn> {
        let listed = match self.wanted.clients.filter(|_| self.has_client_blocks) {
            Some(clients) => self.rows_of(clients, database, block)?,
            None => RowsIn::Any,
        };
        match listed {
            // As long as names are tested one by one, those of a block are more than those of rows.
            RowsIn::Any if self.names.are_few() => Ok(RowsIn::Any),
            RowsIn::Any if !self.names.may_be_in(database, block)? => Ok(RowsIn::None),
            listed => Ok(listed),
        }
    }

    /// Returns which rows of a block are of clients and have names that fit.
    fn rows_of(&mut self, clients: Clients, database: &Connection, block: i64) -> rusqlite::Result<RowsIn> {
        // Older versions have no lists.
        let listed = if self.has_outcomes { "rows" } else { "NULL" };
        let mut query = database.prepare_cached(&format!(
            "SELECT {listed} FROM client_blocks
             WHERE block = ?1 AND client BETWEEN ?2 AND ?3 AND length(client) = ?4"
        ))?;
        let (first, last) = clients.range();
        let len = first.octets().1 as i64;
        let mut lists = query.query((block, blob(first), blob(last), len))?;
        let (mut found, mut count, mut is_there) = (Vec::new(), 0, false);
        while let Some(list) = lists.next()? {
            is_there = true;
            let Some(octets) = list.get_ref(0)?.as_blob_or_null()? else { return Ok(RowsIn::Any) };
            for (at, name) in rows::read(octets) {
                count += 1;
                if count > ROWS_MAX {
                    return Ok(RowsIn::Any);
                }
                if self.names.fit(database, name)? {
                    found.push(at);
                }
            }
        }
        if !is_there || found.is_empty() {
            return Ok(RowsIn::None);
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        Ok(RowsIn::Listed(found))
    }

    fn fit(&mut self, database: &Connection, name: i64, decision: Option<i64>) -> rusqlite::Result<bool> {
        let decides = self
            .decisions
            .as_ref()
            .is_none_or(|known| decision.is_some_and(|decision| known.binary_search(&decision).is_ok()));
        Ok(decides && self.names.fit(database, name)?)
    }

    /// Tests what only the whole row tells.
    fn fit_late(&self, found: &Recorded) -> bool {
        let outcomes = &self.wanted.outcomes;
        self.has_outcomes || outcomes.is_empty() || outcomes.contains(&found.outcome)
    }
}

/// Returns the numbers of the decisions that are wanted, in ascending order.
fn decisions(wanted: &Wanted, database: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut query = database.prepare_cached("SELECT id, list, upstream FROM decisions ORDER BY id")?;
    let mut rows = query.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (list, upstream) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
        // A group and the server of it that answered.
        let is_upstream =
            |wanted: &String| upstream == wanted || upstream.split(' ').any(|part| part == wanted);
        if wanted.list.as_ref().is_none_or(|wanted| list.contains(wanted.as_str()))
            && wanted.upstream.as_ref().is_none_or(is_upstream)
        {
            found.push(row.get(0)?);
        }
    }
    Ok(found)
}

fn blob(client: Client) -> Value {
    let (octets, len) = client.octets();
    Value::Blob(octets.get(..len).unwrap_or_default().to_vec())
}
