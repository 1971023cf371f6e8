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
//! asked on one route is not believed about names that go by another.
//!
//! # Limitations
//!
//! Of the NS records of a zone, those of its parent are used, not the zone's own. Addresses of name
//! servers are not validated; what is said at them is. What was made from a wildcard or a signed
//! DNAME is asked for again, not taken from the tables, since the proof is not kept with it.

#![forbid(unsafe_code)]

mod addresses;
mod bogus;
mod budget;
mod choose;
mod delegation;
mod effect;
mod failure;
mod heap_name;
mod hints;
mod machine;
mod minimise;
mod moment;
mod prove;
mod resolution;
mod routes;
mod scrub;
mod settings;
mod tables;
mod trace;

pub use addresses::{AddressPolicy, Family};
pub use budget::{Limit, Limits};
pub use effect::{Arrival, Ask, AskKey, Effect, How, Unanswered, Waiter};
pub use failure::{Defect, Failure, Reason};
pub use heap_name::HeapName;
pub use machine::Resolver;
pub use moment::Moment;
pub use resolution::Resolution;
pub use settings::{
    Hint, Minimisation, NegativeAnchor, Route, Settings, Stub, Trust, TrustAnchor, Validation, Way,
};
pub use tables::Tables;
pub use trace::{TraceEvent, TraceLine};
