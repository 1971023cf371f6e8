//! What one worker counts about its resolvers. Only its worker writes; anybody may read and add up.

use resolver::Counts;

events::counters! {
    signatures: "Signatures that were checked.",
    derived: "Answers made from ranges of names that do not exist, wildcards and DNAME records (RFC 8198).",
    derived_nxdomain: "Those of them that say that a name does not exist.",
    bogus: "Replies of servers that were bogus.",
    yielded: "Questions to servers that waited for another worker to ask the same.",
    remembered: "Questions that failed because they had failed a short time ago (RFC 9520).",
    reports: "Failures that the agents of zones were told of (RFC 9567).",
    second_level_queries: "Questions looked up in a second-level cache (`resolvers.*.second-level-cache`).",
    second_level_hits: "Answers that a second-level cache had.",
    second_level_timeouts: "Connections to a second-level cache that ended because a reply took too long.",
    second_level_failed: "Look-ups in a second-level cache that had no reply, or an error.",
    second_level_skipped: "Questions that a second-level cache was not asked because it is down or overloaded.",
    second_level_stored: "Answers that a second-level cache has taken.",
    second_level_not_stored: "Answers that a second-level cache has refused, or that found no room on the way to it.",
    subnets: "Answers of servers that looked at the client's subnet (RFC 7871).",
    own: "Answers that were read in zones of this server.",
    limited: "Queries that were not sent because the servers of their zone were asked too often.",
}

impl Counters {
    /// Adds what a resolver has done since it was looked at last.
    pub(super) fn add_since(&self, before: &mut Counts, now: Counts) {
        self.signatures.add(now.signatures - before.signatures);
        self.derived.add(now.derived - before.derived);
        self.derived_nxdomain.add(now.derived_nxdomain - before.derived_nxdomain);
        self.bogus.add(now.bogus - before.bogus);
        self.yielded.add(now.yielded - before.yielded);
        self.remembered.add(now.remembered - before.remembered);
        self.reports.add(now.reports - before.reports);
        self.subnets.add(now.subnets - before.subnets);
        self.own.add(now.own - before.own);
        self.limited.add(now.limited - before.limited);
        *before = now;
    }
}
