//! The cache of answers.

use diagnostic::Span;
use yaml::Node;

use super::{CACHE, Lowering};
use crate::tree;

/// The smallest cache.
const OCTETS_MIN: u64 = 1 << 20;
/// The largest cache.
const OCTETS_MAX: u64 = 1 << 42;
/// Seconds for which an expired answer may be given at most.
const STALE_SECONDS_MAX: u64 = 30 * 86_400;

/// Returns a size, within what caches may have.
fn size(octets: u64, at: Span) -> Node {
    tree::text(format!("{}KiB", octets.clamp(OCTETS_MIN, OCTETS_MAX).div_ceil(1024)), at)
}

impl Lowering<'_> {
    pub(super) fn caches(&mut self) {
        let [cache, main] = CACHE;
        let (octets, at) = self.number("msg-cache-size");
        self.set(&[cache, main, "size"], size(octets, at));
        let mut min = self.bounded("cache-min-ttl", 0, 86_400);
        let mut max = self.bounded("cache-max-ttl", 1, STALE_SECONDS_MAX);
        if let (true, at) = self.flag("serve-original-ttl") {
            self.set(&[cache, main, "original-ttl"], tree::flag(true, at));
            (min, max) = ((0, at), (STALE_SECONDS_MAX, at));
        }
        // Of the two, the larger bound counts there.
        let min = (min.0.min(max.0), min.1);
        self.set_seconds(&[cache, main, "min-ttl"], min);
        self.set_seconds(&[cache, main, "max-ttl"], max);
        let negative = self.bounded("cache-max-negative-ttl", 0, 7 * 86_400);
        self.set_seconds(&[cache, main, "max-negative-ttl"], negative);
        let least = self.bounded("cache-min-negative-ttl", 0, 86_400);
        self.set_seconds(&[cache, main, "min-negative-ttl"], least);
        let (prefetches, at) = self.flag("prefetch");
        self.set(&[cache, main, "prefetch"], tree::text(if prefetches { "10%" } else { "off" }, at));
        self.stale();
        let [resolvers, default] = super::RESOLVER;
        let (octets, at) = self.number("rrset-cache-size");
        self.set(&[resolvers, default, "cache-size"], size(octets, at));
        self.set_seconds(&[resolvers, default, "max-ttl"], max);
        let negative = (negative.0.max(1), negative.1);
        self.set_seconds(&[resolvers, default, "max-negative-ttl"], negative);
    }

    /// Answers that have expired.
    fn stale(&mut self) {
        let [cache, main] = CACHE;
        let (serves, at) = self.flag("serve-expired");
        if !serves {
            return self.set(&[cache, main, "stale"], tree::text("off", at));
        }
        let (seconds, at) = self.number("serve-expired-ttl");
        // Zero means for ever.
        let seconds = if seconds == 0 { STALE_SECONDS_MAX } else { seconds.min(STALE_SECONDS_MAX) };
        self.set_seconds(&[cache, main, "stale"], (seconds, at));
        if let (true, at) = self.flag("serve-expired-ttl-reset") {
            self.set(&[cache, main, "stale-restarts"], tree::flag(true, at));
        }
        let mut wait = self.bounded("serve-expired-client-timeout", 0, 60_000);
        if wait.0 == 0 {
            wait = self.stale_waits_ms().unwrap_or(wait);
        }
        self.set_ms(&[cache, main, "stale-client-timeout"], wait);
        let ttl = self.bounded("serve-expired-reply-ttl", 1, 3600);
        self.set_seconds(&[cache, main, "stale-ttl"], ttl);
    }
}
