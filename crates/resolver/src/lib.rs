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
//! # Limitations
//!
//! Nothing is validated: answers have the security state *unchecked*, and no signatures are asked
//! for. Of the NS records of a zone, those of its parent are used, not the zone's own. A cached
//! alias is given without the DNAME that it was made from.

#![forbid(unsafe_code)]

mod addresses;
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
mod resolution;
mod scrub;
mod settings;
mod tables;
mod trace;

pub use addresses::{AddressPolicy, Family};
pub use budget::{Limit, Limits};
pub use effect::{Arrival, Ask, AskKey, Effect, How, Unanswered, Waiter};
pub use failure::{Failure, Reason};
pub use heap_name::HeapName;
pub use machine::Resolver;
pub use moment::Moment;
pub use resolution::Resolution;
pub use settings::{Hint, Minimisation, Settings};
pub use tables::Tables;
pub use trace::{TraceEvent, TraceLine};
