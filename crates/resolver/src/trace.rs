//! What was asked for a question, and what came: for people who want to know why.

use std::fmt;
use std::net::SocketAddr;

use wire::{Rcode, Rtype};

use crate::effect::Unanswered;
use crate::failure::Defect;
use crate::heap_name::HeapName;
use crate::moment::Moment;
use crate::scrub::{Fault, Reading, Verdict};

/// Lines that a trace has at most: more than a budget can pay for.
const LINES_MAX: usize = 256;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// Microseconds since the question was wanted.
    pub after_us: u64,
    /// Which server it is about.
    pub server: TraceServer,
    /// As a server of which zone it was asked.
    pub zone: HeapName,
    /// The name that it was asked for.
    pub qname: HeapName,
    /// The type that it was asked for.
    pub qtype: Rtype,
    /// What happened.
    pub event: TraceEvent,
}

/// Who was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceServer {
    /// The server at this address.
    At(SocketAddr),
    /// Forwarders of which the caller chooses one.
    Forwarders,
    /// The second-level cache.
    SecondLevel,
    /// Nobody: the zone is one of our own.
    Own,
    /// It is not known which of them it was.
    Unnamed,
}

impl From<SocketAddr> for TraceServer {
    fn from(address: SocketAddr) -> Self {
        Self::At(address)
    }
}

/// What happened with a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// It was sent.
    Sent,
    /// It was sent over TCP, since what came over UDP may have been forged.
    SentOverTcp,
    /// It is late: another server is asked, too.
    Late,
    /// Nothing came.
    Unanswered(Unanswered),
    /// The server has the data.
    Data,
    /// The server says that the name is an alias for this one.
    Alias(HeapName),
    /// The server says that the name has no such data.
    NoData,
    /// The server says that there is no such name.
    NoName,
    /// The server says that a DNAME makes the name too long.
    TooLong,
    /// The server refers to those of this zone.
    Referral(HeapName),
    /// The server does not serve the zone.
    Lame,
    /// The server has an error of its own.
    Error(Rcode),
    /// The reply is none.
    Malformed,
    /// The reply is not proved to be the zone's own.
    Bogus(Defect),
}

impl TraceEvent {
    pub(crate) fn of(reading: &Reading) -> Self {
        match reading {
            Reading::Referral(referral) => Self::Referral(referral.zone.clone()),
            Reading::Fault(Fault::Lame) => Self::Lame,
            Reading::Fault(Fault::Error(rcode)) => Self::Error(*rcode),
            Reading::Fault(Fault::Malformed | Fault::Bogus) => Self::Malformed,
            Reading::Answer(answer) | Reading::Doubtful(answer, _) => match &answer.verdict {
                Verdict::Data => Self::Data,
                Verdict::Alias(target) => Self::Alias(target.clone()),
                Verdict::NoData => Self::NoData,
                Verdict::NoName => Self::NoName,
                Verdict::TooLong => Self::TooLong,
            },
        }
    }
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent => f.write_str("asked"),
            Self::SentOverTcp => f.write_str("asked over TCP"),
            Self::Late => f.write_str("late"),
            Self::Unanswered(Unanswered::Timeout) => f.write_str("no answer"),
            Self::Unanswered(Unanswered::Unreachable) => f.write_str("unreachable"),
            Self::Unanswered(Unanswered::NotSent) => f.write_str("not sent"),
            Self::Data => f.write_str("answer"),
            Self::Alias(target) => write!(f, "alias for {target}"),
            Self::NoData => f.write_str("no data"),
            Self::NoName => f.write_str("no such name"),
            Self::TooLong => f.write_str("name too long"),
            Self::Referral(zone) => write!(f, "referral to {zone}"),
            Self::Lame => f.write_str("lame"),
            Self::Error(rcode) => write!(f, "error {rcode}"),
            Self::Malformed => f.write_str("malformed reply"),
            Self::Bogus(defect) => write!(f, "bogus: {defect}"),
        }
    }
}

impl fmt::Display for TraceLine {
    /// Writes time, server, zone, question and event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after_us, server, zone, qname, qtype, event } = self;
        let (ms, tenths) = (after_us / 1000, after_us / 100 % 10);
        write!(f, "{ms}.{tenths} ms  ")?;
        match server {
            TraceServer::At(address) => write!(f, "{address} for {zone}")?,
            TraceServer::Forwarders => write!(f, "forwarders of {zone}")?,
            TraceServer::SecondLevel => write!(f, "second-level cache")?,
            TraceServer::Own => write!(f, "own zone {zone}")?,
            TraceServer::Unnamed => write!(f, "zone {zone}")?,
        }
        write!(f, "  {qname} {qtype}: {event}")
    }
}

/// What happened so far.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) began_at: Moment,
    pub(crate) lines: Vec<TraceLine>,
}

impl Trace {
    pub(crate) const fn new(began_at: Moment) -> Self {
        Self { began_at, lines: Vec::new() }
    }

    pub(crate) fn push(&mut self, line: TraceLine) {
        if self.lines.len() < LINES_MAX {
            self.lines.push(line);
        }
    }
}
