//! A query that is put aside until what it waits for has come.

use std::net::SocketAddr;
use std::sync::Arc;

use cache::{KeyBits, Recovery};
use wire::{Folded, Query};

use super::state::Run;
use super::want::{EndedBranch, Want};
use crate::answer::{Answer, Interim};
use crate::observe::explain::Recorder;
use crate::ops::cache::Fill;
use crate::ops::outgoing::Outgoing;
use crate::ops::split::{Next, Progress, SplitStep};
use crate::program::Position;
use crate::program::snapshot::Snapshot;
use crate::query::names::Sought;
use crate::query::request::Request;
use clients::client::{Client, Now};
use clients::gate::cookie::Proof;
use clients::subnet::ClientSubnet;
use events::{EventSet, Path};

/// What a query does with the outcome that it waits for: where its program goes on, and which cache
/// entry the answer fills.
///
/// Queries that share an exchange and agree in this would all store the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    snapshot: u32,
    at: Position,
    fill: Option<(u16, KeyBits, Option<ClientSubnet>)>,
}

/// A query put aside. Keeps its snapshot: a position means nothing in another program.
pub struct Suspended {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) query: Box<[u8]>,
    pub(crate) client: Client,
    pub(crate) proof: Proof,
    pub(crate) name_hash: u64,
    pub(crate) at: Position,
    pub(crate) marks: u64,
    pub(crate) is_listed_alias: bool,
    pub(crate) event_set: EventSet,
    /// The way through the policy so far, if it is kept.
    pub(crate) path: Option<Box<Path>>,
    pub(crate) began_us: u64,
    pub(crate) outgoing: Outgoing,
    /// Options of an upstream's reply that go on to the client, in wire form.
    pub(crate) back: Box<[u8]>,
    pub(crate) fill: Option<Fill>,
    /// The answer there is, if steps may still see it.
    pub(crate) answer: Option<Box<Kept>>,
    /// Splits that it is inside of.
    pub(crate) depth: u8,
    /// Set for a branch of a split: its answer goes to the query that was split, not to a client.
    pub(crate) branch: Option<BranchOf>,
    pub(crate) want: Want,
    /// How often the group that it waits for had come back when it began to wait.
    pub(crate) recovery: Recovery,
    /// Who watches what happens to it.
    pub(crate) recorder: Option<Recorder>,
    /// The server that answered last what was asked for it.
    pub(crate) upstream: Option<SocketAddr>,
}

/// An answer under way, for as long as its query is put aside.
pub(crate) struct Kept {
    pub(crate) answer: Answer,
    pub(crate) octets: Box<[u8]>,
}

impl Suspended {
    /// Puts a query aside that waits for `want`; the answer it has, if any, stands in `message`.
    #[cold]
    pub(crate) fn new(
        snapshot: &Arc<Snapshot>,
        run: &Run<'_>,
        want: Want,
        branch: Option<BranchOf>,
        message: &[u8],
        recorder: Option<Recorder>,
    ) -> Box<Self> {
        let client = run.request.client;
        Box::new(Self {
            snapshot: Arc::clone(snapshot),
            query: run.request.query.as_bytes().into(),
            client: Client { certificate: client.certificate.clone(), ..*client },
            proof: run.request.proof,
            name_hash: run.request.sought.hash(),
            at: run.at,
            marks: run.interim.marks,
            is_listed_alias: run.interim.is_listed_alias,
            event_set: run.event_set,
            path: None,
            began_us: 0,
            outgoing: run.outgoing,
            back: Box::default(),
            fill: run.fill,
            answer: if run.interim.answer.is_some() { Kept::new(run, &want, message) } else { None },
            depth: run.depth,
            branch,
            recovery: recovery(snapshot, run.fill.as_ref(), &want),
            want,
            recorder,
            upstream: None,
        })
    }

    /// Notes when it came, and its way through the policy so far.
    pub(crate) fn began(mut self: Box<Self>, now: Now, path: Option<&Path>) -> Box<Self> {
        self.began_us = now.monotonic_us();
        self.path = path.map(|path| Box::new(*path));
        self
    }

    /// Returns what to do about the branches it waits for when they are so far; for [`Want::Split`]
    /// only.
    pub fn next(&self, progress: &Progress) -> Next {
        self.split().map_or(Next::Done(None), |(_, split)| split.next(progress))
    }

    /// Takes the answer of a branch that ended at once.
    pub fn take_ended(&mut self, branch: u8) -> Option<EndedBranch> {
        match &mut self.want {
            Want::Split(want) => want.take_ended(branch),
            Want::Fetch(_) | Want::Resolve(_) | Want::Sleep(_) | Want::Yield => None,
        }
    }

    /// Takes a branch that has started and waits itself.
    pub fn take_begun(&mut self, branch: u8) -> Option<Box<Self>> {
        match &mut self.want {
            Want::Split(want) => want.take_begun(branch),
            Want::Fetch(_) | Want::Resolve(_) | Want::Sleep(_) | Want::Yield => None,
        }
    }

    /// Returns the split that it waits for, and its step.
    pub(crate) fn split(&self) -> Option<(u16, &SplitStep)> {
        let Want::Split(want) = &self.want else { return None };
        Some((want.step, self.snapshot.program.split(want.step)?))
    }

    /// Returns whether the answers of branches that it waits for are compared, so that none of them
    /// may be an old one.
    pub fn compares_branches(&self) -> bool {
        self.split().is_some_and(|(_, split)| split.compares())
    }

    /// Returns the split that it is a branch of, and which branch it is.
    pub(crate) fn parent(&self) -> Option<(&SplitStep, u8)> {
        let BranchOf { step, index } = self.branch?;
        Some((self.snapshot.program.split(step)?, index))
    }

    /// Returns the query under way that this was.
    pub(crate) fn run<'r>(&'r self, query: &'r Query<'r>, folded: &'r Folded) -> Run<'r> {
        let sought = Sought::new(folded, self.name_hash);
        let request = Request { query, client: &self.client, proof: self.proof, folded, sought };
        Run {
            interim: Interim { marks: self.marks, is_listed_alias: self.is_listed_alias, answer: None },
            event_set: self.event_set,
            outgoing: self.outgoing,
            fill: self.fill,
            depth: self.depth,
            ..Run::new(request, self.at)
        }
    }

    /// Notes which server answered what it waited for.
    pub const fn answered_by(&mut self, server: SocketAddr) {
        self.upstream = Some(server);
    }

    /// Returns what it waits for.
    pub const fn want(&self) -> &Want {
        &self.want
    }

    /// Returns what it does with what it waits for.
    pub fn continuation(&self) -> Continuation {
        let fill = self.fill.map(|fill| (fill.step, fill.bits, fill.subnet));
        Continuation { snapshot: self.snapshot.number, at: self.at, fill }
    }

    /// Returns who watches what happens to it, if somebody does.
    pub const fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Returns whether it is sure that the client has the address that the query came from: over a
    /// connection, or with a cookie of ours.
    pub const fn is_proven(&self) -> bool {
        self.client.verified || matches!(self.proof, Proof::Proven(_))
    }

    /// Returns the query.
    pub fn query(&self) -> &[u8] {
        &self.query
    }

    /// Returns whose query it is (for a prefetch: the client whose query caused it).
    pub const fn client(&self) -> &Client {
        &self.client
    }
}

impl Kept {
    /// Keeps the answer for steps after a pause; what a query asks others for takes its place.
    pub(crate) fn new(run: &Run<'_>, want: &Want, message: &[u8]) -> Option<Box<Self>> {
        let answer = run.interim.answer.filter(|_| matches!(want, Want::Sleep(_) | Want::Yield))?;
        let body_at = run.request.body_at();
        let octets = message.get(body_at..body_at + answer.octets)?;
        Some(Box::new(Self { answer, octets: octets.into() }))
    }
}

/// Returns how often the group that is waited for has come back so far, as the cache to be filled
/// knows it.
pub(crate) fn recovery(snapshot: &Snapshot, fill: Option<&Fill>, want: &Want) -> Recovery {
    let pool = want.fetch().map(|fetch| fetch.pool);
    match fill.and_then(|fill| snapshot.program.cache(fill.step)) {
        Some(cache) => cache.recovery(pool),
        None => Recovery::default(),
    }
}

/// Whose branch a query is, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BranchOf {
    /// The split's step.
    pub(crate) step: u16,
    pub(crate) index: u8,
}
