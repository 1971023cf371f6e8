//! Caches.

use std::path::PathBuf;
use std::time::Duration;

use diagnostic::At;

/// A cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSettings {
    /// Its name.
    pub name: At<String>,
    /// Its memory, in octets.
    pub size: u64,
    /// Answers are kept at least this long.
    pub min_ttl: Duration,
    /// Answers are kept at most this long.
    pub max_ttl: Duration,
    /// Negative answers are kept at most this long.
    pub max_negative_ttl: Duration,
    /// Negative answers are kept at least this long.
    pub min_negative_ttl: Duration,
    /// How long a failure is remembered.
    pub failure_ttl: Duration,
    /// How long an answer may be used after its end.
    pub stale: Option<Duration>,
    /// Whether a failure begins that time anew.
    pub stale_restarts: bool,
    /// How long a client waits when a stale answer is at hand.
    pub stale_client_timeout: Duration,
    /// The TTL in stale answers.
    pub stale_ttl: Duration,
    /// Whether records keep the TTLs that they came with.
    pub original_ttl: bool,
    /// The part of an answer's time, in percent, in which asking for it renews it.
    pub prefetch: Option<u8>,
    /// Where its content is kept over restarts.
    pub dump_file: Option<PathBuf>,
    /// How often it is written in between.
    pub dump_every: Option<Duration>,
}
