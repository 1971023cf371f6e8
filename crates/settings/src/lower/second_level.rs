//! Second-level caches of resolvers: the tree to settings.

use diagnostic::{At, Problem};
use plan::Secret;
use plan::resolvers::{RedisPlace, RedisPlan, SecondLevelPlan};
use resolver::SecondLevel;
use values::{Misread, Read};

use super::notation::{SOCKET_PATH_OCTETS_MAX, path};
use super::{Lowering, Section};

/// The port of Redis if none is written.
const PORT: u16 = 6379;
/// What is part of keys if nothing is written: the same as in Unbound.
const SECRET: &[u8] = b"default";

/// Reads where a Redis server is.
fn place(text: &str) -> Read<RedisPlace> {
    const EXPECTED: &str = "redis://192.0.2.1:6379, redis://redis.example:6379 or unix:/run/redis.sock";
    let wrong = |message: String| Misread::whole(text, message).expected(EXPECTED);
    if let Some(name) = text.strip_prefix("unix:") {
        let place = path(name).map_err(|misread| wrong(misread.message))?;
        if name.len() > SOCKET_PATH_OCTETS_MAX {
            return Err(wrong(format!("\"{name}\" is too long for a socket")));
        }
        return Ok(RedisPlace::Unix(place));
    }
    let Some(rest) = text.strip_prefix("redis://") else {
        return Err(wrong(format!("\"{text}\" is not where a Redis server can be")));
    };
    let not_an_address = match values::socket_address(rest, PORT) {
        Ok(address) => return Ok(RedisPlace::Address(address)),
        Err(misread) => misread,
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok().filter(|&port| port != 0)),
        None => (rest, Some(PORT)),
    };
    let is_numeric =
        host.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'[' | b']'));
    match port.filter(|_| !is_numeric && !host.contains([':', '/', '@'])) {
        Some(port) => {
            values::name(host).map_err(|misread| wrong(misread.message))?;
            Ok(RedisPlace::Host(host.to_owned(), port))
        }
        None => Err(wrong(not_an_address.message)),
    }
}

impl Lowering<'_> {
    /// Reads the second-level cache of a resolver, and how it is used.
    pub(super) fn second_level(&mut self, resolver: &Section<'_>) -> Option<(SecondLevel, SecondLevelPlan)> {
        let section = self.section(resolver, "second-level-cache");
        let of_replica = self.section(&section, "replica");
        let (server, replica) = (self.redis(&section), self.redis(&of_replica));
        let secret = self.password(&section, "secret");
        let used = SecondLevel {
            stores: self.boolean(&section, "store"),
            when_stale: self.boolean(&section, "when-stale"),
        };
        let expires = self.boolean(&section, "expire");
        if replica.is_none() && of_replica.entry("server").is_none() {
            self.ignored(&of_replica, "there is no replica");
        }
        let Some(server) = server else {
            if section.entry("server").is_none() {
                self.ignored(&section, "there is no second-level cache");
            }
            return None;
        };
        let secret = secret.unwrap_or_else(|| Secret::new(SECRET.to_vec()));
        Some((used, SecondLevelPlan { secret, expires, server, replica }))
    }

    /// Reads a Redis server.
    fn redis(&mut self, section: &Section<'_>) -> Option<RedisPlan> {
        let place = self.optional(section, "server", |lowering, _, node| {
            lowering.read(node, "where a Redis server is", place)
        });
        let plan = RedisPlan {
            password: self.password(section, "password"),
            database: self.whole(section, "database") as u32,
            connect_timeout: self.duration(section, "connect-timeout"),
            command_timeout: self.duration(section, "command-timeout"),
            place: match place? {
                At { value: RedisPlace::Unix(path), span } => RedisPlace::Unix(self.beside(span.file, &path)),
                At { value, .. } => value,
            },
        };
        Some(plan)
    }

    /// Warns of settings that have no effect.
    fn ignored(&mut self, section: &Section<'_>, why: &str) {
        // Of the replica's settings it is said at each.
        for entry in section.entries.iter().filter(|entry| entry.key != "replica") {
            if self.said(section, &entry.key).is_some() {
                let message = format!("\"{}\" is ignored: {why}", entry.key);
                self.problems.push(Problem::warning(entry.key_span, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_servers_are_behind_sockets_at_addresses_or_have_names() {
        let address = |text: &str| Some(RedisPlace::Address(text.parse().expect("an address")));
        for (text, expect) in [
            ("unix:/run/redis.sock", Some(RedisPlace::Unix("/run/redis.sock".into()))),
            ("redis://192.0.2.1:6380", address("192.0.2.1:6380")),
            ("redis://192.0.2.1", address("192.0.2.1:6379")),
            ("redis://[2001:db8::1]:6379", address("[2001:db8::1]:6379")),
            ("redis://redis.example:6380", Some(RedisPlace::Host("redis.example".to_owned(), 6380))),
            ("redis://redis.example", Some(RedisPlace::Host("redis.example".to_owned(), 6379))),
            ("redis://192.0.2.300:6379", None),
            ("redis://redis.example:0", None),
            ("redis://user@redis.example", None),
            ("rediss://192.0.2.1:6380", None),
            ("192.0.2.1:6379", None),
            ("unix:", None),
        ] {
            assert_eq!(place(text).ok(), expect, "{text}");
        }
    }
}
