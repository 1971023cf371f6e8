//! What people ask the record of queries.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row};

use crate::client::Client;
use crate::database::VERSION;
use crate::days::{Day, DayFile, Files};
use crate::outcome::{Outcome, action_of};
use crate::search::{Page, Progress, Search, Wanted};
use crate::sums::{Kind, Sum, SumsReader, Tally};

/// A recorded query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number, rising in the order in which queries were recorded, over all files.
    pub id: i64,
    /// When its reply was complete, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it waited for others, in microseconds.
    pub waited_us: u64,
    /// Who asked.
    pub client: Client,
    /// Over what.
    pub transport: String,
    /// The name asked for.
    pub name: String,
    /// The type asked for.
    pub qtype: u16,
    /// The reply's code, if there was a reply.
    pub rcode: Option<u16>,
    /// Records in the answer section.
    pub answers: u16,
    /// The addresses, separated by spaces.
    pub addresses: String,
    /// The way through the policy.
    pub path: String,
    /// How many queries it stands for: more than one when they came faster than they could be
    /// recorded.
    pub one_of: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// The Extended DNS Error of the reply.
    pub ede: Option<u16>,
    /// The rule that decided, as file and line, with what it says; empty if none did.
    pub rule: String,
    /// The list with the line that decided; empty if none did.
    pub list: String,
    /// That line, from 1; 0 if there is none.
    pub line: u32,
    /// Who answered: the group of upstreams, and its server.
    pub upstream: String,
}

/// Reads the files of the recorder, while they are written or not.
pub struct Reader {
    pub(super) files: Files,
}

/// A file that is open for reading.
pub(super) struct File {
    pub(super) day: Day,
    pub(super) database: Connection,
    /// Whether it says who is in which block (from version 2 on).
    pub(super) has_blocks: bool,
    /// Whether it says what is in a block, outcomes and decisions (from version 3 on).
    pub(super) has_summaries: bool,
    /// Where the microseconds beside the milliseconds are.
    pub(super) waited_us: &'static str,
}

impl File {
    /// Opens a file for reading only.
    pub(super) fn open(file: &DayFile) -> Result<Self, String> {
        let none = || format!("{} is no record of queries that this program reads", file.path.display());
        Self::begun(file)?.ok_or_else(none)
    }

    /// Opens a file likewise; `None` if it has just been made, and nothing is in it yet.
    pub(super) fn begun(file: &DayFile) -> Result<Option<Self>, String> {
        let said = |error: rusqlite::Error| format!("{}: {error}", file.path.display());
        // One thread reads.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(&file.path, flags).map_err(said)?;
        database.busy_timeout(Duration::from_secs(2)).map_err(said)?;
        database.set_prepared_statement_cache_capacity(32);
        let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(said)?;
        if version == 0 {
            return Ok(None);
        }
        if !(1..=VERSION).contains(&version) {
            return Err(format!("{} is no record of queries that this program reads", file.path.display()));
        }
        // One state of the file for all questions; 8 MiB of its pages.
        database.execute_batch("PRAGMA cache_size = -8192; BEGIN").map_err(said)?;
        let waited_us = if version >= 2 { "waited_us" } else { "0" };
        let (has_blocks, has_summaries) = (version >= 2, version >= 3);
        Ok(Some(Self { day: file.day, database, has_blocks, has_summaries, waited_us }))
    }

    /// Reads one row.
    pub(super) fn row(&self, id: i64) -> rusqlite::Result<Option<Recorded>> {
        let one_of = if self.has_blocks { "one_of" } else { "1" };
        let (more, join) = match self.has_summaries {
            true => (
                "outcome, ede, decisions.rule, decisions.list, decisions.line, decisions.upstream",
                "LEFT JOIN decisions ON decisions.id = queries.decision",
            ),
            false => ("NULL, NULL, NULL, NULL, NULL, NULL", ""),
        };
        let mut query = self.database.prepare_cached(&format!(
            "SELECT at_ms, waited_ms, {}, client, transport, names.name, type, rcode, answers, addresses, paths.path, {one_of}, {more}
             FROM queries JOIN names ON names.id = queries.name LEFT JOIN paths ON paths.id = queries.path {join}
             WHERE queries.id = ?1",
            self.waited_us
        ))?;
        query.query_row([id], |row| self.recorded(id, row)).optional()
    }

    fn recorded(&self, id: i64, row: &Row<'_>) -> rusqlite::Result<Recorded> {
        let text = |at: usize| row.get::<_, Option<String>>(at).map(Option::unwrap_or_default);
        let client: Vec<u8> = row.get(3)?;
        let (path, rcode) = (text(10)?, row.get(7)?);
        let waited_us = u64::from(row.get::<_, u32>(1)?) * 1000 + u64::from(row.get::<_, u32>(2)?);
        let outcome = row.get::<_, Option<u8>>(12)?.and_then(Outcome::read);
        Ok(Recorded {
            id: self.day.global(id),
            at_ms: row.get(0)?,
            waited_us,
            client: Client::read(&client),
            transport: row.get(4)?,
            name: row.get(5)?,
            qtype: row.get(6)?,
            rcode,
            answers: row.get(8)?,
            addresses: text(9)?,
            outcome: outcome.unwrap_or_else(|| outcome_of(&path, rcode, waited_us)),
            path,
            one_of: row.get(11)?,
            ede: row.get(13)?,
            rule: text(14)?,
            list: text(15)?,
            line: row.get::<_, Option<u32>>(16)?.unwrap_or(0),
            upstream: text(17)?,
        })
    }

    fn last_id(&self) -> rusqlite::Result<i64> {
        crate::database::last_id(&self.database)
    }
}

/// Returns what became of a query of a version that did not record it, as far as its way tells.
fn outcome_of(path: &str, rcode: Option<u16>, waited_us: u64) -> Outcome {
    use events::Mark;
    let ends = [
        (": hit", Mark::Hit),
        (": stale", Mark::Stale),
        (": waits", Mark::Waited),
        (": answers", Mark::Answered),
        (": ends", Mark::Ended),
    ];
    let decided = path.rsplit("; ").find_map(|step| {
        let text = action_of(step);
        ends.iter().find_map(|(end, mark)| Some((text.strip_suffix(end)?, *mark)))
    });
    Outcome::of(decided, rcode.map(wire::Rcode), None, waited_us > 0)
}

impl Reader {
    /// Returns what reads the files that belong to the setting `recorder.file`, once there are any.
    pub fn new(file: &Path) -> Self {
        Self { files: Files::new(file) }
    }

    /// Returns what reads the files that belong to the setting `recorder.file`, or one of them.
    ///
    /// # Errors
    ///
    /// There is none yet.
    pub fn open(file: &Path) -> Result<Self, String> {
        let files = Files::new(file);
        if files.all().is_empty() {
            return Err(format!("no queries were recorded yet: {} is not there", file.display()));
        }
        Ok(Self { files })
    }

    /// Returns one page of queries, the newest first.
    ///
    /// # Errors
    ///
    /// None of the files can be read.
    pub fn search(&self, wanted: &Wanted) -> Result<Page, String> {
        let mut search = Search::new(wanted);
        for file in
            self.files.all().iter().rev().filter(|file| search.may_be_on(file.day)).collect::<Vec<_>>()
        {
            let said = |error: rusqlite::Error| format!("{}: {error}", file.path.display());
            let look = |opened: Option<File>| match opened {
                Some(file) => search.look_through(&file).map_err(said),
                None => Ok(Progress::On),
            };
            match File::begun(file).and_then(look) {
                Ok(Progress::On) => {}
                Ok(Progress::Over) => break,
                Err(why) => search.page.unreadable.push(why),
            }
        }
        whole(search.newest_first())
    }

    /// Returns the newest queries first, by the time of their replies, however long it takes to
    /// find them.
    ///
    /// # Errors
    ///
    /// None of the files can be read.
    pub fn newest(&self, wanted: &Wanted) -> Result<Vec<Recorded>, String> {
        let wanted = Wanted { time: None, ..wanted.clone() };
        self.search(&wanted).map(|page| page.queries)
    }

    /// Returns the number of what was recorded last.
    ///
    /// # Errors
    ///
    /// The newest file cannot be read.
    pub fn last_id(&self) -> Result<i64, String> {
        let Some(newest) = self.files.all().pop() else { return Ok(0) };
        // Nothing is in it yet while it is being made.
        let Some(file) = File::begun(&newest)? else { return Ok(newest.day.global(0)) };
        let last = file.last_id().map_err(|error| format!("{}: {error}", newest.path.display()))?;
        Ok(newest.day.global(last))
    }

    /// Returns the number of what was recorded last into the file of a day, if there is one.
    pub(super) fn last_id_on(&self, day: Day) -> Option<i64> {
        let file = self.files.of(day);
        // A file that is not there is not made.
        let last = File::open(&file).ok()?.last_id().ok()?;
        Some(day.global(last))
    }

    /// Returns queries in the order in which they were recorded; with [`Wanted::after_id`], those
    /// that are new.
    ///
    /// # Errors
    ///
    /// None of the files can be read.
    pub fn following(&self, wanted: &Wanted) -> Result<Vec<Recorded>, String> {
        let mut search = Search::new(wanted);
        for file in self.files.all().iter().filter(|file| search.may_be_on(file.day)).collect::<Vec<_>>() {
            let said = |error: rusqlite::Error| format!("{}: {error}", file.path.display());
            let follow = |opened: Option<File>| match opened {
                Some(file) => search.follow(&file).map_err(said),
                None => Ok(Progress::On),
            };
            match File::begun(file).and_then(follow) {
                Ok(Progress::On) => {}
                Ok(Progress::Over) => break,
                Err(why) => search.page.unreadable.push(why),
            }
        }
        whole(search.page).map(|page| page.queries)
    }

    /// Returns how many records there are behind one and before another.
    pub(super) fn count_between(&self, after: i64, before: i64) -> u64 {
        let ((first_day, first), (last_day, last)) = (Day::split(after), Day::split(before));
        let files = self.files.all().into_iter().filter(|file| (first_day..=last_day).contains(&file.day));
        let counts = files.filter_map(|file| {
            let from = if file.day == first_day { first + 1 } else { i64::MIN };
            let to = if file.day == last_day { last } else { i64::MAX };
            let sql = "SELECT count(*) FROM queries WHERE id >= ?1 AND id < ?2";
            let count =
                File::open(&file).ok()?.database.query_row(sql, [from, to], |row| row.get::<_, i64>(0));
            count.ok().map(i64::unsigned_abs)
        });
        counts.sum()
    }

    /// Returns what was counted most since the beginning of the hour of a time: by sums, and by
    /// the rows that are not in them yet. Rows that stand for several queries count as many.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn top(&self, of: TopOf, since_ms: i64, count: u32) -> Result<Vec<Tally>, String> {
        let path = self.files.sums();
        let said = |error: rusqlite::Error| format!("{}: {error}", path.display());
        let sums = SumsReader::open(&path);
        let hour = since_ms.div_euclid(HOUR_MS) * (HOUR_MS / 1000);
        let mut found = match &sums {
            Some(sums) => sums.top(of, hour).map_err(said)?,
            None => HashMap::new(),
        };
        let since_ms = if sums.is_some() { hour.saturating_mul(1000) } else { since_ms };
        let is_since = |file: &&DayFile| file.day == Day::UNDIVIDED || file.day.end_ms() > since_ms;
        for file in self.files.all().iter().filter(is_since) {
            let from = sums.as_ref().map_or(Ok(0), |sums| sums.last_id(file.day)).map_err(said)?;
            let Some(opened) = File::begun(file)? else { continue };
            let said = |error: rusqlite::Error| format!("{}: {error}", file.path.display());
            for (what, queries) in opened.count(of, from, since_ms).map_err(said)? {
                found.entry(what).or_default().0 += queries;
            }
        }
        let tally = |(what, (queries, error))| Tally { what, queries, error };
        let mut all: Vec<Tally> = found.into_iter().map(tally).filter(|tally| tally.queries > 0).collect();
        all.sort_by(|one, other| other.queries.cmp(&one.queries).then_with(|| one.what.cmp(&other.what)));
        all.truncate(count as usize);
        Ok(all)
    }

    /// Returns sums of each minute, hour or day (`period_s`: 60, 3600, 86400) between two times, in
    /// milliseconds since 1970; what was recorded in the last seconds may be missing.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub fn over_time(&self, kind: Kind, period_s: i64, between: (i64, i64)) -> Result<Vec<Sum>, String> {
        let path = self.files.sums();
        let Some(sums) = SumsReader::open(&path) else { return Ok(Vec::new()) };
        let (since, until) = (between.0.div_euclid(1000), between.1.div_euclid(1000));
        sums.periods(kind, (period_s, since, until)).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopOf {
    /// Names asked for.
    Names,
    /// Names that were blocked.
    Blocked,
    /// By one of the things that queries are told apart by.
    By(Kind),
}

/// Rows after which the clock is looked at.
const ROWS_PER_LOOK: u64 = 256;
/// Milliseconds of an hour.
pub(super) const HOUR_MS: i64 = 3_600_000;

impl File {
    /// Gives the client, how many queries it stands for and whether it was blocked of each row
    /// behind `from` and not before `since_ms`, the newest first, until `is_late`; returns since
    /// when all were looked at then, in milliseconds since 1970.
    pub(super) fn walk_clients(
        &self,
        (from, since_ms): (i64, i64),
        is_late: &dyn Fn() -> bool,
        take: &mut dyn FnMut(String, u64, bool),
    ) -> rusqlite::Result<Option<i64>> {
        let one_of = if self.has_blocks { "one_of" } else { "1" };
        let is_blocked = if self.has_summaries { "outcome = 5" } else { "0" };
        let mut query = self.database.prepare(&format!(
            "SELECT client, {one_of}, {is_blocked}, at_ms FROM queries WHERE id > ?1 AND at_ms >= ?2 ORDER BY id DESC"
        ))?;
        let mut rows = query.query([from, since_ms])?;
        let mut number = 0_u64;
        while let Some(row) = rows.next()? {
            number += 1;
            if number.is_multiple_of(ROWS_PER_LOOK) && is_late() {
                return row.get(3).map(Some);
            }
            let client = Client::read(row.get_ref(0)?.as_blob()?).to_string();
            if !client.is_empty() {
                take(client, row.get::<_, i64>(1)?.unsigned_abs(), row.get(2)?);
            }
        }
        Ok(None)
    }

    /// Counts the rows behind `from` and not before `since_ms`.
    fn count(&self, of: TopOf, from: i64, since_ms: i64) -> rusqlite::Result<Vec<(String, u64)>> {
        let names = "JOIN names ON names.id = queries.name";
        let decisions = "JOIN decisions ON decisions.id = decision";
        let (key, join, group) = match of {
            TopOf::Names => ("names.name", names, "queries.name"),
            TopOf::Blocked => ("names.name", names, "queries.name"),
            TopOf::By(Kind::Client | Kind::BlockedClient) => ("client", "", "client"),
            TopOf::By(Kind::Type) => ("type", "", "type"),
            TopOf::By(Kind::Transport) => ("transport", "", "transport"),
            TopOf::By(Kind::Outcome) => ("outcome", "", "outcome"),
            TopOf::By(Kind::Upstream) => ("upstream", decisions, "upstream"),
            TopOf::By(Kind::List) => ("list", decisions, "list"),
        };
        let are_blocked = matches!(of, TopOf::Blocked | TopOf::By(Kind::BlockedClient));
        let needs_summaries =
            are_blocked || matches!(of, TopOf::By(Kind::Outcome | Kind::Upstream | Kind::List));
        if needs_summaries && !self.has_summaries {
            return Ok(Vec::new());
        }
        let more = if are_blocked { "AND outcome = 5" } else { "" };
        let one_of = if self.has_blocks { "one_of" } else { "1" };
        let mut query = self.database.prepare(&format!(
            "SELECT {key}, sum({one_of}) FROM queries {join} WHERE queries.id > ?1 AND at_ms >= ?2 {more} GROUP BY {group}"
        ))?;
        let rows = query.query_map([from, since_ms], |row| {
            let what = match of {
                TopOf::By(Kind::Client | Kind::BlockedClient) => {
                    Client::read(row.get_ref(0)?.as_blob()?).to_string()
                }
                TopOf::By(Kind::Type) => wire::Rtype(row.get(0)?).to_string(),
                TopOf::By(Kind::Outcome) => Outcome::read(row.get(0)?).map_or("", Outcome::word).to_owned(),
                _ => row.get(0)?,
            };
            Ok((what, row.get::<_, i64>(1)?.unsigned_abs()))
        })?;
        let found: Vec<(String, u64)> = rows.collect::<rusqlite::Result<_>>()?;
        Ok(found.into_iter().filter(|(what, _)| !what.is_empty()).collect())
    }
}

/// Returns a page, unless no file could be read at all.
fn whole(mut page: Page) -> Result<Page, String> {
    match page.queries.is_empty() && page.cursor.is_none() {
        true if !page.unreadable.is_empty() => Err(page.unreadable.swap_remove(0)),
        _ => Ok(page),
    }
}
