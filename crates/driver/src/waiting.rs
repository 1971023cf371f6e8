//! Queries that wait, as operators see them.

use std::net::IpAddr;

use engine::Want;
use timers::Moment;
use wire::{Class, NameBuf, Query, Rtype};

use crate::driver::Driver;

/// A query that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The name asked for.
    pub qname: NameBuf,
    /// The type asked for.
    pub qtype: Rtype,
    /// The class asked for.
    pub qclass: Class,
    /// Who waits for it; `None`: nobody, it fills a cache.
    pub client: Option<IpAddr>,
    /// For how many microseconds.
    pub waited_us: u64,
    /// For what.
    pub waits_for: WaitsFor,
}

/// What a query waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// A group of upstreams.
    Upstreams,
    /// Servers of zones.
    Resolver,
    /// Branches of its policy.
    Branches,
    /// Its turn, or some time to pass.
    Time,
}

impl Driver {
    /// Returns the queries that wait, those that have waited longest first. Takes time in
    /// proportion to their number: for operators alone.
    pub fn list_waiting(&self) -> Vec<Waiting> {
        let now = self.now_for_operators();
        let mut found = Vec::new();
        self.each_waiting(|query, client, want, since: Moment| {
            let Ok(query) = Query::parse(query) else { return };
            let question = &query.question;
            found.push(Waiting {
                qname: question.qname.to_buf(),
                qtype: question.qtype,
                qclass: question.qclass,
                client,
                waited_us: now.since(since).0,
                waits_for: match want {
                    Want::Fetch(_) => WaitsFor::Upstreams,
                    Want::Resolve(_) => WaitsFor::Resolver,
                    Want::Split(_) => WaitsFor::Branches,
                    Want::Sleep(_) | Want::Yield => WaitsFor::Time,
                },
            });
        });
        found.sort_by_key(|waiting| std::cmp::Reverse(waiting.waited_us));
        found
    }
}
