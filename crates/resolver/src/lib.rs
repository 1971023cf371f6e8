//! Finds answers by asking the servers of zones, from the root down.
//!
//! Never does I/O, never waits and reads no clock: it says whom to ask, and is told what came.
//!
//! [`Resolver`] is a state machine for one worker. Its caller passes on what clients want
//! ([`Resolver::want`]), carries out [`Effect`]s, and reports what became of each query
//! ([`Resolver::heard`], [`Resolver::unanswered`]). Time and randomness are arguments, so that a
//! scenario replays in microseconds and always in the same way.
//!
//! What is learned goes to tables that all workers share ([`Tables`]): RRsets, negative answers,
//! delegations, and facts about servers. What nobody may keep (a TTL of zero) goes to who asked,
//! and nowhere else.
//!
//! Where [`Settings::validation`] asks for it, no reply is believed before it is judged: a chain of
//! signatures must lead to it from a trust anchor, or a proof that there is none. Keys are asked
//! for beside the question, as soon as the DS records of a zone are known.
//!
//! A [`Route`] says that a zone is found elsewhere. Each name goes by the closest route, and who is
//! asked on one route is not believed about names that go by another. Forwarders are a route as
//! well: their answers are scrubbed, judged and kept like those of a zone's own servers, and refer
//! to nobody.
//!
//! A second-level cache ([`SecondLevel`]) is asked before servers are. What it says is scrubbed and
//! judged like the answer of a forwarder, and believed no more than that.
//!
//! What failed is not asked again at once, and what a signed zone proved for one name answers for
//! others. Two workers with the same tables do not ask the same: the second one waits a little.
//! Whom a zone names as its agent may be told of failures (RFC 9567).
//!
//! # Limitations
//!
//! Of the NS records of a zone, those of its parent are used; the zone's own only if these fail.
//! Addresses of name servers are not validated; replies from them are. What was made from a
//! wildcard is asked for again where its proof was made for one question, or opts out.

#![forbid(unsafe_code)]

mod addresses;
mod budget;
mod choose;
mod delegation;
mod derive;
mod effect;
mod failure;
mod failures;
mod few;
mod first_replies;
mod heap_name;
mod hints;
mod machine;
mod minimise;
mod moment;
mod prove;
mod resolution;
mod routes;
mod scrub;
mod servers;
mod settings;
mod tables;
mod trace;
mod watch;
mod zone_rates;

pub use addresses::{AddressPolicy, Family};
pub use budget::{Limit, Limits};
pub use effect::{Arrival, Ask, AskKey, Effect, Forward, ForwardKey, How, LookUp, Store, Unanswered, Waiter};
pub use failure::{Defect, Failure, Reason};
pub use failures::Failures;
pub use heap_name::HeapName;
pub use machine::{Counts, OwnZones, Resolver, Wish};
pub use moment::Moment;
pub use resolution::Resolution;
pub use servers::{KnownServer, ServersKnown};
pub use settings::{
    Forwarders, Hint, Minimisation, NegativeAnchor, Opportunistic, Route, SecondLevel, Settings,
    SignatureTime, Stub, Subnets, Trust, TrustAnchor, Validation, Way,
};
pub use tables::Tables;
pub use trace::{TraceEvent, TraceLine, TraceServer};
pub use watch::Watch;
pub use zone_rates::{ZoneRate, ZoneRateRules, ZoneRates};
