//! What people ask the record of queries.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use super::database::{BLOCK_BITS, VERSION, address, octets};

/// Names with a part from which on it is frequent.
const FREQUENT_NAMES: u32 = 1000;

/// Which recorded queries to show.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// At most so many.
    pub count: u32,
    /// Of this client.
    pub client: Option<IpAddr>,
    /// For this name, in lower case and without its final dot.
    pub name: Option<String>,
    /// Also for names below that.
    pub covers_below: bool,
    /// For names that have this text in them, in lower case.
    pub part: Option<String>,
    /// For names that do not have this text in them.
    pub without: Option<String>,
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
    /// Only those that the policy blocked: answered by `block`, `blocklist` or `reject`, or
    /// dropped.
    pub blocked: bool,
    /// Recorded behind this one.
    pub after_id: Option<i64>,
}

/// A recorded query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number, rising in the order in which queries were recorded: each worker hands over its
    /// own in batches.
    pub id: i64,
    /// When its reply was complete, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it waited for others, in microseconds.
    pub waited_us: u64,
    /// Who asked.
    pub client: IpAddr,
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
}

impl Recorded {
    /// Returns whether the policy blocked it, as far as its way was recorded.
    pub fn is_blocked(&self) -> bool {
        self.path.split("; ").any(|step| {
            // The line of the configuration stands in front, what came of it behind.
            let text = step.split_once(": ").map_or(step, |(_, text)| text);
            let has_ended = text.ends_with(": answers") || text.ends_with(": ends");
            has_ended && ["block", "reject", "drop"].iter().any(|action| text.starts_with(action))
        })
    }
}

/// Reads a database of the recorder, while it is written or not.
pub struct Reader {
    pub(super) database: Connection,
}

impl Reader {
    /// Opens the database for reading only.
    pub fn open(file: &Path) -> Result<Self, String> {
        let said = |error: rusqlite::Error| format!("{}: {error}", file.display());
        let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(said)?;
        database.busy_timeout(Duration::from_secs(2)).map_err(said)?;
        // SQLite would read all rows to make an index for one question, in place of the few blocks
        // that it needs.
        database.pragma_update(None, "automatic_index", false).map_err(said)?;
        let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(said)?;
        if version == 1 {
            return Err(format!(
                "{} was written by an older version of the server; the server makes it anew when it records the next query",
                file.display()
            ));
        }
        if version != VERSION {
            return Err(format!("{} is no record of queries that this program reads", file.display()));
        }
        Ok(Self { database })
    }

    /// Returns the newest queries first, by the time of their replies.
    pub fn newest(&self, wanted: &Wanted) -> Result<Vec<Recorded>, String> {
        self.find(wanted, "at_ms DESC, queries.id DESC").map_err(|error| error.to_string())
    }

    /// Returns the number of what was recorded last.
    pub fn last_id(&self) -> Result<i64, String> {
        let last = self.database.query_row("SELECT coalesce(max(id), 0) FROM queries", [], |row| row.get(0));
        last.map_err(|error| error.to_string())
    }

    /// Returns queries in the order in which they were recorded; with [`Wanted::after_id`], those
    /// that are new.
    pub fn following(&self, wanted: &Wanted) -> Result<Vec<Recorded>, String> {
        self.find(wanted, "queries.id").map_err(|error| error.to_string())
    }

    fn find(&self, wanted: &Wanted, order: &str) -> rusqlite::Result<Vec<Recorded>> {
        let client = wanted.client.map(octets);
        let answer = wanted.answer.map(|address| format!(" {address} "));
        let waited_us = wanted.waited_us.map(|us| i64::try_from(us).unwrap_or(i64::MAX));
        let is_frequent = self.is_frequent(wanted)?;
        let mut query = self.database.prepare(&statement(wanted, order, is_frequent))?;
        // Parameters that no condition uses are bound all the same.
        let (since, until, rcode) = (wanted.since_ms, wanted.until_ms, wanted.rcode.flatten());
        let bound = params![
            client,
            wanted.name,
            since,
            until,
            rcode,
            wanted.after_id,
            wanted.part,
            wanted.without,
            wanted.qtype,
            wanted.transport,
            answer,
            waited_us
        ];
        // SQLite refuses to bind more than the statement has.
        let count = query.parameter_count();
        let rows = query.query_map(&bound[..count], |row| {
            let client: Vec<u8> = row.get(3)?;
            Ok(Recorded {
                id: row.get(0)?,
                at_ms: row.get(1)?,
                waited_us: u64::from(row.get::<_, u32>(2)?) * 1000 + u64::from(row.get::<_, u32>(11)?),
                client: address(&client),
                transport: row.get(4)?,
                name: row.get(5)?,
                qtype: row.get(6)?,
                rcode: row.get(7)?,
                answers: row.get(8)?,
                addresses: row.get::<_, Option<String>>(9)?.unwrap_or_default(),
                path: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
                one_of: row.get(12)?,
            })
        })?;
        let fits = |row: &rusqlite::Result<Recorded>| match row {
            Ok(query) => !wanted.blocked || query.is_blocked(),
            Err(_) => true,
        };
        rows.filter(fits).take(wanted.count as usize).collect()
    }

    /// Returns whether so many names have a part that rows are found soonest from the newest back.
    fn is_frequent(&self, wanted: &Wanted) -> rusqlite::Result<bool> {
        let (Some(part), None) = (&wanted.part, &wanted.name) else { return Ok(false) };
        let sql = "SELECT count(*) FROM (SELECT 1 FROM names WHERE instr(name, ?1) > 0 LIMIT ?2)";
        let found: u32 = self.database.query_row(sql, params![part, FREQUENT_NAMES], |row| row.get(0))?;
        Ok(found == FREQUENT_NAMES)
    }

    /// Returns the names asked for most since a time, and how often: rows that stand for several
    /// queries count as many.
    pub fn top_names(&self, since_ms: i64, count: u32) -> Result<Vec<(String, u64)>, String> {
        self.top(
            "SELECT names.name, n FROM (SELECT name, sum(one_of) AS n FROM queries WHERE at_ms >= ?1 GROUP BY name
             ORDER BY n DESC LIMIT ?2) AS top JOIN names ON names.id = top.name ORDER BY n DESC, names.name",
            since_ms,
            count,
            |row| row.get(0),
        )
    }

    /// Returns the clients that asked most since a time, and how often.
    pub fn top_clients(&self, since_ms: i64, count: u32) -> Result<Vec<(String, u64)>, String> {
        self.top(
            "SELECT client, sum(one_of) AS n FROM queries WHERE at_ms >= ?1 GROUP BY client ORDER BY n DESC, client LIMIT ?2",
            since_ms,
            count,
            |row| Ok(address(&row.get::<_, Vec<u8>>(0)?).to_string()),
        )
    }

    fn top(
        &self,
        sql: &str,
        since_ms: i64,
        count: u32,
        text: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<String>,
    ) -> Result<Vec<(String, u64)>, String> {
        let found = || -> rusqlite::Result<Vec<(String, u64)>> {
            let mut query = self.database.prepare(sql)?;
            let rows = query.query_map(params![since_ms, count], |row| {
                Ok((text(row)?, row.get::<_, i64>(1)?.unsigned_abs()))
            })?;
            rows.collect()
        };
        found().map_err(|error| error.to_string())
    }
}

/// Returns the statement that finds what is wanted. Blocks do not help if what is wanted
/// `is_frequent`.
pub(super) fn statement(wanted: &Wanted, order: &str, is_frequent: bool) -> String {
    let mut conditions: Vec<&str> = Vec::new();
    if wanted.client.is_some() {
        conditions.push("queries.client = ?1");
    }
    // Names that have to be looked for.
    let mut of_names: Vec<&str> = Vec::new();
    if wanted.part.is_some() {
        of_names.push("instr(name, ?7) > 0");
    }
    match (&wanted.name, wanted.covers_below) {
        (None, _) => {}
        (Some(_), false) => conditions.push("queries.name = (SELECT id FROM names WHERE name = ?2)"),
        (Some(_), true) => of_names.push("(name = ?2 OR substr(name, -length(?2) - 1) = '.' || ?2)"),
    }
    if !of_names.is_empty() {
        conditions.push("queries.name IN (SELECT id FROM wanted)");
    }
    // Who looks for what is new does so without the blocks: it is not much.
    let is_in_blocks = wanted.after_id.is_none();
    let mut blocks: Vec<&str> = Vec::new();
    if is_in_blocks && wanted.client.is_some() {
        blocks.push("EXISTS (SELECT 1 FROM client_blocks AS c WHERE c.block = number AND c.client = ?1)");
    }
    if is_in_blocks && wanted.name.is_some() && !wanted.covers_below {
        blocks.push(
            "EXISTS (SELECT 1 FROM name_blocks AS n WHERE n.block = number AND n.name = (SELECT id FROM names WHERE name = ?2))",
        );
    }
    if is_in_blocks && !of_names.is_empty() && !is_frequent {
        blocks.push(
            "EXISTS (SELECT 1 FROM wanted CROSS JOIN name_blocks AS n WHERE n.block = number AND n.name = wanted.id)",
        );
    }
    for (is_wanted, condition) in [
        (wanted.since_ms.is_some(), "at_ms >= ?3"),
        (wanted.until_ms.is_some(), "at_ms < ?4"),
        (wanted.rcode.is_some(), "rcode IS ?5"),
        (wanted.after_id.is_some(), "queries.id > ?6"),
        (wanted.without.is_some(), "instr(names.name, ?8) = 0"),
        (wanted.qtype.is_some(), "type = ?9"),
        (wanted.transport.is_some(), "transport = ?10"),
        (wanted.answer.is_some(), "instr(' ' || addresses || ' ', ?11) > 0"),
        (wanted.waited_us.is_some(), "waited_ms * 1000 + waited_us >= ?12"),
        // Only a first look: what the steps say is looked at below.
        (wanted.blocked, "(paths.path LIKE '%: answers%' OR paths.path LIKE '%: ends%')"),
    ] {
        if is_wanted {
            conditions.push(condition);
        }
    }
    let filter =
        if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
    let tables = match of_names.is_empty() {
        true => String::new(),
        false => {
            format!("wanted (id) AS MATERIALIZED (SELECT id FROM names WHERE {}),", of_names.join(" AND "))
        }
    };
    // Which blocks is settled first: SQLite would rather read all rows and look for the block of
    // each.
    let (chosen, from) = if blocks.is_empty() {
        (String::new(), "queries".to_owned())
    } else {
        let chosen = blocks.join(" AND ");
        let of_block = format!(
            "chosen CROSS JOIN queries ON queries.id >= number << {BLOCK_BITS} AND queries.id < (number + 1) << {BLOCK_BITS}"
        );
        (format!(", chosen (number) AS MATERIALIZED (SELECT number FROM blocks WHERE {chosen})"), of_block)
    };
    format!(
        "WITH RECURSIVE {tables} blocks (number) AS (
           SELECT min(id) >> {BLOCK_BITS} FROM queries
           UNION ALL SELECT number + 1 FROM blocks WHERE number < (SELECT max(id) >> {BLOCK_BITS} FROM queries))
           {chosen}
         SELECT queries.id, at_ms, waited_ms, client, transport, names.name, type, rcode, answers, addresses, paths.path,
           waited_us, one_of
         FROM {from} JOIN names ON names.id = queries.name LEFT JOIN paths ON paths.id = queries.path
         {filter} ORDER BY {order}",
    )
}
