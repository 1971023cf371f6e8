//! What happened to one query on its way through the program, for a person who asks.
//!
//! The steps are those of every other query; only somebody watches. None of this is on the way of
//! queries that nobody asked about.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cache::Security;
use sets::{AddressSet, Blocklist, NameSet};
use wire::Rcode;

use super::trace::{Note, StepOutcome, Tracer};
use crate::answer::failure::Failure;
use crate::matchers::text::TextSource;
use crate::matchers::{Facts, Matcher};
use crate::ops::wait::{Outcome, PoolId, ResolverId, Waiting};
use crate::program::shortlist::{Kind, Seek, Shortlist};
use crate::program::snapshot::Snapshot;
use crate::query::names::Sought;

/// Writes down what happens. What is shared writes to the same place.
pub struct Recorder(Arc<Mutex<Trace>>);

/// What was written down.
#[derive(Default)]
pub struct Trace {
    /// What the query ran on.
    pub snapshot: Option<Arc<Snapshot>>,
    /// What happened, in order.
    pub events: Vec<Event>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Something decided before the first step.
    Note(Note),
    /// A step of the program did something.
    Step {
        /// The number of the step.
        at: u16,
        /// What it did.
        did: Did,
    },
    /// Rules were left out: the first step of each, and what it asks for that the query has not.
    Skipped(Vec<(u16, Kind)>),
    /// What was waited for came.
    Came {
        /// The response code.
        rcode: Rcode,
        /// Records in its answer section.
        answers: u16,
    },
    /// A resolver found what was waited for.
    Resolved {
        /// The response code.
        rcode: Rcode,
        /// Records in its answer section.
        answers: u16,
        /// What is known of its signatures.
        security: Security,
    },
    /// A resolver found nothing.
    Unresolved {
        /// The response code.
        rcode: Rcode,
        /// Why.
        text: String,
    },
    /// A resolver did something on its way to the answer: a line for people.
    Resolving(String),
    /// What was waited for did not come.
    Failed(Failure),
    /// This branch won, the first being number 0; `None`: no branch had an answer.
    Branch(Option<u8>),
    /// The sleep is over.
    Slept,
    /// A server answered.
    Won {
        /// The server.
        server: SocketAddr,
        /// How long that took.
        took: Duration,
    },
}

/// What a step did.
#[derive(Clone, Debug, PartialEq)]
pub enum Did {
    /// What it always does.
    Something,
    /// It looked at something.
    Tested {
        /// Whether the condition held.
        holds: bool,
        /// What it saw.
        why: String,
    },
    /// It found an answer in a cache; whether that was fresh.
    Found(bool),
    /// It found no answer in a cache.
    NotFound,
    /// It brought an answer.
    Answered,
    /// It ended the query.
    Ended,
    /// It asks a group of servers, and the query waits.
    Asks(PoolId),
    /// It has a resolver find the answer, and the query waits.
    Resolves(ResolverId),
    /// It runs branches, at least one of which waits.
    Splits,
    /// It waits so many milliseconds.
    Sleeps(u32),
}

impl Default for Recorder {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Trace::default())))
    }
}

impl Recorder {
    /// Returns another that writes to the same place.
    #[must_use]
    pub fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Takes out what was written down so far.
    pub fn take(&self) -> Trace {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes down which server answered, and after what time.
    pub fn won(&self, server: SocketAddr, took: Duration) {
        self.put(Event::Won { server, took });
    }

    /// Writes down what a resolver did on its way to an answer: a line for each server asked and
    /// each reply, in order. To be called before the query goes on.
    pub fn resolving(&self, line: impl Into<String>) {
        self.put(Event::Resolving(line.into()));
    }

    pub(crate) fn begin(&self, snapshot: &Arc<Snapshot>) {
        let mut trace = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *trace = Trace { snapshot: Some(Arc::clone(snapshot)), events: Vec::new() };
    }

    pub(crate) fn resumed(&self, outcome: &Outcome<'_>) {
        self.put(match outcome {
            Outcome::Reply(message) => {
                Event::Came { rcode: message.rcode(), answers: message.header.answers }
            }
            Outcome::Resolved(found) => Event::Resolved {
                rcode: found.message.rcode(),
                answers: found.message.header.answers,
                security: found.security,
            },
            Outcome::Unresolved(why) => Event::Unresolved { rcode: why.rcode, text: why.text.to_owned() },
            Outcome::Failed(failure) => Event::Failed(*failure),
            Outcome::Branch(won) => Event::Branch(Some(won.branch)),
            Outcome::NoBranch { .. } => Event::Branch(None),
            Outcome::Slept => Event::Slept,
        });
    }

    fn put(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).events.push(event);
    }
}

impl Tracer for Recorder {
    fn wants_every_step(&self) -> bool {
        true
    }

    fn step(&mut self, at: u16, outcome: StepOutcome) {
        let did = match outcome {
            StepOutcome::Done => Did::Something,
            StepOutcome::Looked(Some(is_fresh)) => Did::Found(is_fresh),
            StepOutcome::Looked(None) => Did::NotFound,
            StepOutcome::Answered => Did::Answered,
            StepOutcome::Ended => Did::Ended,
            StepOutcome::Waits(Waiting::Fetch(pool)) => Did::Asks(pool),
            StepOutcome::Waits(Waiting::Resolve(resolver)) => Did::Resolves(resolver),
            StepOutcome::Waits(Waiting::Split) => Did::Splits,
            StepOutcome::Waits(Waiting::Sleep(ms)) => Did::Sleeps(ms),
            // No step of a policy waits for its turn yet: what does begins that way, and is not
            // explained.
            StepOutcome::Waits(Waiting::Turn) => Did::Something,
        };
        self.put(Event::Step { at, did });
    }

    fn test(&mut self, at: u16, matcher: &Matcher, facts: Facts<'_>, holds: bool) {
        self.put(Event::Step { at, did: Did::Tested { holds, why: why(matcher, facts, holds) } });
    }

    fn skipped(&mut self, _: u16, (list, seek, to): (&Shortlist, Seek, u16), facts: Facts<'_>) {
        self.put(Event::Skipped(list.skipped(seek, to, facts).collect()));
    }

    fn note(&mut self, note: Note) {
        self.put(Event::Note(note));
    }

    fn keep(&self) -> Option<Recorder> {
        Some(self.share())
    }
}

/// Says what a matcher saw.
fn why(matcher: &Matcher, facts: Facts<'_>, holds: bool) -> String {
    let query = facts.request.query;
    let is = if holds { "is" } else { "is not" };
    match matcher {
        Matcher::Constant(_) => "always so".to_owned(),
        Matcher::Qname(set) => in_names(&format!("{}", query.question.qname), set, &facts.request.sought),
        Matcher::Listed(list) | Matcher::Ruled(list) => in_list(list, facts),
        Matcher::Qtype(_) => format!("the type {} {is} among them", query.question.qtype),
        Matcher::Flag(_) | Matcher::WantsDnssec => format!("the flag {is} set"),
        Matcher::Edns => format!("EDNS {is} there"),
        Matcher::EdnsOption(_) => format!("such an EDNS option {is} there"),
        Matcher::Number { of, .. } => format!("{} is {}", of.word(), of.of(query)),
        Matcher::Client(set) => in_addresses(facts.client_address(), set),
        Matcher::ClientMac(_) | Matcher::ClientId(_) if !facts.is_peer_trusted() => {
            format!("{} is no trusted peer", facts.request.client.address)
        }
        Matcher::ClientMac(_) | Matcher::ClientId(_) => format!("what the peer tells {is} among them"),
        Matcher::Listener(_) => {
            format!("listener number {} {is} among them", facts.request.client.listener.0)
        }
        Matcher::Transport(_) => {
            format!("the transport {:?} {is} among them", facts.request.client.transport)
        }
        Matcher::Connection(_) => "what the connection began with".to_owned(),
        Matcher::Now(_) => format!("the time {is} within them"),
        Matcher::Random(_) => format!("this query {is} one of them"),
        Matcher::Rate(_) => format!("the rate {is} exceeded"),
        Matcher::Mark(mark) => format!("mark {mark} {is} set"),
        Matcher::Marks(_) => match facts.interim.marks {
            0 => "no mark is set".to_owned(),
            marks => {
                let set = (0..64).filter(|mark| marks >> mark & 1 != 0).map(|mark: u8| mark.to_string());
                format!("marks {} are set", set.collect::<Vec<_>>().join(", "))
            }
        },
        _ if facts.interim.answer.is_none()
            && !matches!(matcher, Matcher::Text(_) | Matcher::ReverseAddress(_)) =>
        {
            "there is no answer".to_owned()
        }
        Matcher::Answer => "there is an answer".to_owned(),
        Matcher::Answered | Matcher::AnswerType(_) => format!("such a record {is} in the answer"),
        Matcher::Rcode(_) => facts
            .interim
            .answer
            .as_ref()
            .map_or(String::new(), |answer| format!("the response code is {}", answer.rcode)),
        Matcher::Security(_) => facts
            .interim
            .answer
            .as_ref()
            .map_or(String::new(), |answer| format!("the answer is {}", state_word(answer.security))),
        Matcher::AnswerAddress(set) => match facts.answer_address(|address| set.contains(address)) {
            Some(address) => in_addresses(address, set),
            None => "no address in the answer is among them".to_owned(),
        },
        Matcher::AnswerCname(set) => {
            let said = |sought: &Sought<'_>| {
                set.contains(sought).then(|| in_names(&sought.name().to_string(), set, sought))
            };
            let found = facts.answer_cname(said);
            found.map_or_else(|| "no alias in the answer leads to one of them".to_owned(), |(_, said)| said)
        }
        Matcher::ServerName(set) => {
            let said = |sought: &Sought<'_>| {
                set.contains(sought).then(|| in_names(&sought.name().to_string(), set, sought))
            };
            let found = facts.server_name(said);
            found.unwrap_or_else(|| "no name server that led to the answer is among them".to_owned())
        }
        Matcher::ServerAddress(set) => match facts.server_address(set) {
            Some(address) => in_addresses(address, set),
            None => "no name server that led to the answer has an address among them".to_owned(),
        },
        Matcher::ServerListed(..) => {
            format!("what led to the answer {} such name server", if holds { "has a" } else { "has no" })
        }
        Matcher::ReverseAddress(set) => match crate::query::reverse::address_of(query.question.qname) {
            Some(address) => in_addresses(address, set),
            None => "the name stands for no address".to_owned(),
        },
        Matcher::Text(text) => match text.0 {
            TextSource::Qname => format!(
                "the name {} {} so",
                query.question.qname,
                if holds { "fits" } else { "does not fit" }
            ),
            TextSource::Client => format!("the client is {}", facts.client_address()),
            TextSource::AnswerAddress => match facts.answer_address(|_| true) {
                Some(address) => format!("the first address in the answer is {address}"),
                None => "there is no address in an answer".to_owned(),
            },
        },
    }
}

fn in_names(name: &str, set: &NameSet, sought: &Sought<'_>) -> String {
    match set.find(sought) {
        None => format!("{name} is not among them"),
        Some(found) => match found.place() {
            ("condition", number) => format!("{name} fits value {number}"),
            (place, number) => format!("{name} fits rule {number} of {place}"),
        },
    }
}

fn in_list(list: &Blocklist, facts: Facts<'_>) -> String {
    let name = facts.request.query.question.qname;
    match list.rule(&facts.asking()) {
        None => format!("{name} fits no rule"),
        Some(ruling) if ruling.is_allowed => {
            format!("{name} fits the exception in line {} of {}", ruling.line, ruling.source)
        }
        Some(ruling) => format!("{name} fits line {} of {}", ruling.line, ruling.source),
    }
}

fn in_addresses(address: IpAddr, set: &AddressSet) -> String {
    match set
        .ranges()
        .find(|&(first, last)| first.is_ipv4() == address.is_ipv4() && first <= address && address <= last)
    {
        Some((first, last)) if first == last => format!("{address} is among them"),
        Some((first, last)) => format!("{address} is within {first} to {last}"),
        None if set.contains(address) => format!("{address} was added while the server ran"),
        None => format!("{address} is not among them"),
    }
}
/// Returns the word for a security state, as conditions have it.
const fn state_word(security: Security) -> &'static str {
    match security {
        Security::Unchecked => "unchecked",
        Security::Secure => "secure",
        Security::Insecure => "insecure",
        Security::Bogus => "bogus",
        Security::Indeterminate => "indeterminate",
    }
}
