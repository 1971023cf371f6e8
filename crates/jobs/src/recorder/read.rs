//! What people ask the record of queries.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use super::database::{VERSION, address, octets};

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
}

/// A recorded query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number, rising with time.
    pub id: i64,
    /// When its reply was complete, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it waited for others.
    pub waited_ms: u32,
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
}

/// Reads a database of the recorder, while it is written or not.
pub struct Reader {
    database: Connection,
}

impl Reader {
    /// Opens the database for reading only.
    pub fn open(file: &Path) -> Result<Self, String> {
        let said = |error: rusqlite::Error| format!("{}: {error}", file.display());
        let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(said)?;
        database.busy_timeout(Duration::from_secs(2)).map_err(said)?;
        let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(said)?;
        if version != VERSION {
            return Err(format!("{} is no record of queries that this program reads", file.display()));
        }
        Ok(Self { database })
    }

    /// Returns the newest queries first.
    pub fn newest(&self, wanted: &Wanted) -> Result<Vec<Recorded>, String> {
        self.try_newest(wanted).map_err(|error| error.to_string())
    }

    fn try_newest(&self, wanted: &Wanted) -> rusqlite::Result<Vec<Recorded>> {
        let client = wanted.client.map(octets);
        let mut conditions: Vec<&str> = Vec::new();
        if client.is_some() {
            conditions.push("queries.client = ?1");
        }
        match (&wanted.name, wanted.covers_below) {
            (None, _) => {}
            (Some(_), false) => conditions.push("queries.name = (SELECT id FROM names WHERE name = ?2)"),
            (Some(_), true) => conditions.push(
                "queries.name IN (SELECT id FROM names WHERE name = ?2 OR substr(name, -length(?2) - 1) = '.' || ?2)",
            ),
        }
        let filter =
            if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
        let mut query = self.database.prepare(&format!(
            "SELECT queries.id, at_ms, waited_ms, client, transport, names.name, type, rcode, answers, addresses, paths.path
             FROM queries JOIN names ON names.id = queries.name LEFT JOIN paths ON paths.id = queries.path
             {filter} ORDER BY queries.id DESC LIMIT ?3",
        ))?;
        // Parameters that no condition uses are bound all the same.
        let bound = params![client, wanted.name, wanted.count];
        let rows = query.query_map(bound, |row| {
            let client: Vec<u8> = row.get(3)?;
            Ok(Recorded {
                id: row.get(0)?,
                at_ms: row.get(1)?,
                waited_ms: row.get(2)?,
                client: address(&client),
                transport: row.get(4)?,
                name: row.get(5)?,
                qtype: row.get(6)?,
                rcode: row.get(7)?,
                answers: row.get(8)?,
                addresses: row.get::<_, Option<String>>(9)?.unwrap_or_default(),
                path: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
            })
        })?;
        rows.collect()
    }

    /// Returns the names asked for most since a time, and how often.
    pub fn top_names(&self, since_ms: i64, count: u32) -> Result<Vec<(String, u64)>, String> {
        self.top(
            "SELECT names.name, n FROM (SELECT name, count(*) AS n FROM queries WHERE at_ms >= ?1 GROUP BY name
             ORDER BY n DESC LIMIT ?2) AS top JOIN names ON names.id = top.name ORDER BY n DESC, names.name",
            since_ms,
            count,
            |row| row.get(0),
        )
    }

    /// Returns the clients that asked most since a time, and how often.
    pub fn top_clients(&self, since_ms: i64, count: u32) -> Result<Vec<(String, u64)>, String> {
        self.top(
            "SELECT client, count(*) AS n FROM queries WHERE at_ms >= ?1 GROUP BY client ORDER BY n DESC, client LIMIT ?2",
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
