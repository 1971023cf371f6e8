//! The cache behind the cache: `cachedb:`.

use diagnostic::{Problem, Span};

use super::{Lowering, RESOLVER};
use crate::keywords::{self, Section};
use crate::read::{Block, Word};
use crate::tree;

/// Where the settings are, below the resolver's.
const CACHE: &str = "second-level-cache";
/// Milliseconds of the longest time that something may take.
const MS_MAX: u64 = 60_000;
/// The number of the last database.
const DATABASE_MAX: u64 = 1_000_000;

/// The keywords of one server.
struct Server {
    host: &'static str,
    port: &'static str,
    path: &'static str,
    password: &'static str,
    timeout: &'static str,
    command_timeout: &'static str,
    connect_timeout: &'static str,
    database: &'static str,
}

const SERVER: Server = Server {
    host: "redis-server-host",
    port: "redis-server-port",
    path: "redis-server-path",
    password: "redis-server-password",
    timeout: "redis-timeout",
    command_timeout: "redis-command-timeout",
    connect_timeout: "redis-connect-timeout",
    database: "redis-logical-db",
};

const REPLICA: Server = Server {
    host: "redis-replica-server-host",
    port: "redis-replica-server-port",
    path: "redis-replica-server-path",
    password: "redis-replica-server-password",
    timeout: "redis-replica-timeout",
    command_timeout: "redis-replica-command-timeout",
    connect_timeout: "redis-replica-connect-timeout",
    database: "redis-replica-logical-db",
};

/// Returns what is written, if that is not nothing.
fn written<'b>(block: &'b Block, name: &'static str) -> Option<&'b Word> {
    block.last(name).filter(|word| !word.text.is_empty())
}

/// Returns a number that is written and not zero, and where it stands.
fn positive(block: &Block, name: &'static str) -> Option<(u64, Span)> {
    let word = block.last(name)?;
    Some((word.text.parse::<u64>().unwrap_or(0), word.span)).filter(|&(number, _)| number > 0)
}

impl Lowering<'_> {
    /// Returns the section, if it has an effect.
    fn cachedb(&self) -> Option<&Block> {
        let block = self.blocks(Section::Cachedb).next()?;
        let is_used = self.has_module("cachedb");
        let is_redis = block.last("backend").is_some_and(|word| word.text == "redis");
        Some(block).filter(|_| is_used && is_redis)
    }

    pub(super) fn second_level(&mut self) {
        let Some(block) = self.blocks(Section::Cachedb).next() else { return };
        if !self.has_module("cachedb") {
            self.warn(
                block.at,
                "there is no second-level cache: \"module-config\" does not have \"cachedb\"",
            );
            return;
        }
        match block.last("backend") {
            Some(word) if word.text == "redis" => {}
            Some(word) if word.text != default("backend") => {
                let problem = Problem::error(word.span, format!("\"{}\" is not a back end", word.text));
                return self.problems.push(problem.expected("\"redis\""));
            }
            word => {
                let at = word.map_or(block.at, |word| word.span);
                let message =
                    "there is no second-level cache: \"testframe\" is for tests, and keeps one answer";
                let problem = Problem::warning(at, message);
                return self.problems.push(problem.hint("\"backend: redis\" has one"));
            }
        }
        let [a, b] = RESOLVER;
        self.redis(block, &SERVER, &[a, b, CACHE]);
        if written(block, REPLICA.host).is_some() || written(block, REPLICA.path).is_some() {
            self.redis(block, &REPLICA, &[a, b, CACHE, "replica"]);
        }
        if let Some(word) = written(block, "secret-seed") {
            self.set(&[a, b, CACHE, "secret"], tree::as_written(word));
        }
        let (expires, at) = block.flag("redis-expire-records");
        self.set(&[a, b, CACHE, "expire"], tree::flag(expires, at));
        let (leaves, at) = block.flag("cachedb-no-store");
        self.set(&[a, b, CACHE, "store"], tree::flag(!leaves, at));
        let (checks, at) = block.flag("cachedb-check-when-serve-expired");
        self.set(&[a, b, CACHE, "when-stale"], tree::flag(checks, at));
    }

    /// Sets where a server is, and how long it has.
    fn redis(&mut self, block: &Block, of: &Server, path: &[&str]) {
        let below = |key| [path, &[key]].concat();
        // A socket counts, if both are written.
        let place = if let Some(word) = written(block, of.path) {
            let name = self.in_directory(word);
            tree::text(format!("unix:{}", name.display()), word.span)
        } else {
            let (host, at) =
                written(block, of.host).map_or((default(of.host), block.at), |word| (&word.text, word.span));
            let port = block.last(of.port).map_or(default(of.port), |word| &word.text);
            let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            tree::text(format!("redis://{host}:{port}"), at)
        };
        self.set(&below("server"), place);
        if let Some(word) = written(block, of.password) {
            self.set(&below("password"), tree::as_written(word));
        }
        if let Some(word) = block.last(of.database) {
            match word.text.parse::<u64>() {
                Ok(number @ 0..=DATABASE_MAX) => self.set_number(&below("database"), (number, word.span)),
                _ => self.error(word.span, format!("\"{}\" is no number of a database", word.text)),
            }
        }
        for (ours, own) in [("command-timeout", of.command_timeout), ("connect-timeout", of.connect_timeout)]
        {
            let (ms, at) = time(block, own, of.timeout);
            self.set_ms(&below(ours), (ms.min(MS_MAX), at));
        }
    }

    /// Returns how many milliseconds an expired answer waits for the second-level cache, if it
    /// does.
    pub(super) fn stale_waits_ms(&self) -> Option<(u64, Span)> {
        let block = self.cachedb().filter(|block| block.flag("cachedb-check-when-serve-expired").0)?;
        let has_replica = written(block, REPLICA.host).is_some() || written(block, REPLICA.path).is_some();
        let of = if has_replica { REPLICA } else { SERVER };
        Some(time(block, of.command_timeout, of.timeout))
    }
}

/// Returns a time in milliseconds: of its own, or the one for all.
fn time(block: &Block, own: &'static str, all: &'static str) -> (u64, Span) {
    let usual = || (default(all).parse().unwrap_or(1), block.at);
    positive(block, own).or_else(|| positive(block, all)).unwrap_or_else(usual)
}

/// Returns what a keyword of the section is if it is not written.
fn default(name: &str) -> &'static str {
    keywords::rows(Section::Cachedb).iter().find(|row| row.name == name).map_or("", |row| row.default)
}
