//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The steps that policies are compiled to.

use std::sync::Arc;

use wire::{EdeCode, Rcode};

use super::shortlist::Seek;
use crate::answer::local::LocalData;
use crate::matchers::Matcher;
use crate::ops::answer::Build;
use crate::ops::cache::CacheStep;
use crate::ops::edit::Edit;
use crate::ops::event::EventStep;
use crate::ops::forward::ForwardStep;
use crate::ops::outgoing::Change;
use crate::ops::quickest::Quickest;
use crate::ops::recurse::RecurseStep;
use crate::ops::split::SplitStep;
use crate::ops::ttl::TtlRule;
use crate::ops::watch::Watched;
use crate::ops::zone::ZoneStep;

/// One step of a compiled policy. Targets are steps of the same program.
pub enum Op {
    /// Skips the next so many steps unless the matcher holds.
    SkipUnless(Matcher, u16),
    /// Skips the next so many steps if the matcher holds.
    SkipIf(Matcher, u16),
    /// Skips the next so many steps.
    Skip(u16),
    /// Skips the rules that do not concern the query.
    Seek(Seek),
    /// Goes on at a step further on or back, and comes back at [`Op::Return`].
    Call(u16),
    /// Ends the innermost call; outside of one, ends the program.
    Return,
    /// Ends the program with the answer there is.
    Accept,
    /// Ends the program without a reply.
    Drop,
    /// Sets a mark, 0 to 63.
    Mark(u8),
    /// Takes these marks away, one bit each.
    Unmark(u64),
    /// Answers from local names, if the name is there.
    Local(Arc<LocalData>),
    /// Answers from the zones that are served, if the name belongs to one of them. They stand
    /// beside the snapshot ([`Authority`](crate::Authority)) and were compiled with its key.
    Zone(ZoneStep),
    /// Answers from a set of zones that only policies lead to.
    ZoneSet(Arc<zone::Zones>, ZoneStep),
    /// Answers from the cache, or remembers to fill it with what the steps after it bring.
    Cache(CacheStep),
    /// Answers with an rcode and nothing else.
    Reject(Rcode, Option<EdeCode>),
    /// Asks an upstream group, waits, and goes on with its answer.
    Forward(ForwardStep),
    /// Has a resolver find the answer, waits, and goes on with it.
    Recurse(RecurseStep),
    /// Changes the TTLs of the answer there is.
    Ttl(TtlRule),
    /// Goes on at a step further on or back, and does not come back.
    Goto(u16),
    /// Runs branches, policies or what comes after it, and takes the answer of one.
    Split(Box<SplitStep>),
    /// Waits so many milliseconds.
    Sleep(u32),
    /// Puts the addresses of the answer first that connect fastest.
    Quickest(Quickest),
    /// Drops the answer there is.
    Forget,
    /// Cuts the answer there is for clients that ask over UDP, so that they come back over TCP.
    Truncate,
    /// Changes the records of the answer there is; does nothing without one.
    Edit(Edit),
    /// Makes an answer.
    Answer(Build),
    /// Changes the query that later steps send to other servers.
    Outgoing(Change),
    /// Tells somebody outside about the query; never waits.
    Event(EventStep),
}

impl Op {
    /// Returns whether it looks at the name servers that led to an answer.
    // Once per configuration.
    pub fn looks_at_servers(&self) -> bool {
        match self {
            Self::SkipUnless(matcher, _) | Self::SkipIf(matcher, _) => match matcher {
                Matcher::ServerName(_) | Matcher::ServerAddress(_) | Matcher::ServerListed(..) => true,
                Matcher::Ruled(list) => list.looks_at_servers(),
                _ => false,
            },
            Self::Answer(Build::Listed(listed)) => listed.list.looks_at_servers(),
            _ => false,
        }
    }

    /// Returns whether the step has the client's own subnet told to others.
    // Once per configuration.
    pub(crate) const fn reads_subnets(&self) -> bool {
        match self {
            Self::Forward(step) => step.forwards_client_subnet,
            Self::Outgoing(Change::Subnet(change)) => change.takes_own(),
            _ => false,
        }
    }

    /// Returns the list with response policy zones that the step looks at.
    // Once per configuration.
    pub(crate) fn watched(&self) -> Option<Watched> {
        let (list, counts_exceptions) = match self {
            Self::Answer(Build::Listed(listed)) => (&listed.list, listed.overrides),
            Self::SkipUnless(matcher, _) | Self::SkipIf(matcher, _) => match matcher {
                Matcher::Ruled(list) => (list, true),
                Matcher::ServerListed(list, _) => (list, false),
                _ => return None,
            },
            _ => return None,
        };
        list.has_zones().then(|| Watched { list: Arc::clone(list), counts_exceptions })
    }

    /// Returns the Extended DNS Error that the step configures.
    pub(crate) fn ede(&self) -> Option<(EdeCode, &str)> {
        match self {
            Self::Edit(edit) => edit.ede(),
            Self::Answer(build) => build.ede(),
            _ => None,
        }
    }

    /// Returns where a query may go from the step in the same routine.
    pub const fn next(&self) -> Next {
        match self {
            Self::SkipUnless(_, steps) | Self::SkipIf(_, steps) => Next::Either(*steps),
            // A rule that is left out is skipped: leaving out several is to skip one after the
            // other.
            Self::Seek(seek) => Next::Either(seek.steps),
            Self::Skip(steps) => Next::Past(*steps),
            Self::Return | Self::Accept | Self::Drop | Self::Reject(..) | Self::Goto(_) => Next::Nowhere,
            Self::Call(_)
            | Self::Mark(_)
            | Self::Unmark(_)
            | Self::Local(_)
            | Self::Zone(_)
            | Self::ZoneSet(..)
            | Self::Cache(_)
            | Self::Forward(_)
            | Self::Recurse(_)
            | Self::Ttl(_)
            | Self::Split(_)
            | Self::Sleep(_)
            | Self::Quickest(_)
            | Self::Forget
            | Self::Truncate
            | Self::Edit(_)
            | Self::Answer(_)
            | Self::Outgoing(_)
            | Self::Event(_) => Next::Following,
        }
    }
}

/// Where a query may go from a step in the same routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The step that follows.
    Following,
    /// Past so many steps.
    Past(u16),
    /// The step that follows, or past so many.
    Either(u16),
    /// Nowhere: the routine or the program ends.
    Nowhere,
}
