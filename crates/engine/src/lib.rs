//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers a query from memory: policy, cache and local names, in configured order.
//!
//! Never waits, does no I/O and reads no clock: the worker tells it the time.

#![forbid(unsafe_code)]

mod admission;
mod answer;
mod between_servers;
pub mod driver;
mod lookahead;
pub mod matchers;
mod observe;
pub mod ops;
pub mod peers;
pub mod program;
mod query;
mod resume;
mod run;
mod tapping;

use std::cell::Cell;
use std::sync::Arc;

pub use ::edit;
pub use answer::Security;
pub use answer::failure::{Blame, Failure};
pub use answer::reply::Reply;
pub use answer::{chaos, local, records, reply, special};
pub use cache::Caches;
pub use clients::client::{Announce, Client, ClientCertificate, Keepalive, ListenerId, Now, Transport};
pub use clients::clock::Clock;
pub use clients::subnet::ClientSubnet;
pub use clients::{client, clock, gate};
pub use driver::{Address, Courier, Delivery, Driver, Outlet, Parcel, ReplyTo, Worker};
pub use lookahead::LOOKAHEAD_MAX;
pub use observe::{explain, trace};
pub use ops::wait::{
    FetchWant, OutQuery, Outcome, PoolId, ResolveWant, Resolved, ResolverId, Unresolved, Won,
};
pub use ops::watch::Watch;
pub use peers::{Authority, Streamed};
pub use polling::BusyPoll;
pub use program::snapshot::{ConnectionText, Said, Snapshot, SnapshotCell};
pub use program::{shortlist, snapshot};
pub use query::counters::Counters;
pub use query::{counters, details, names, reverse};
pub use resume::Share;
pub use run::suspended::{Continuation, Suspended};
pub use run::want::{EndedBranch, SharedSplit, SplitWant, Want};
pub use sets::{NameServer, NameServers};

use admission::{clear_ra, denied, note_of};
use answer::Answer;
use answer::chaos::Chaos;
use answer::finish::{To, complete, complete_inlined, cookie_alone, header_only};
use answer::put::put_record;
use answer::texts::Texts;
use clients::gate::Admission;
use clients::gate::cookie::Proof;
use events::{EventContext, EventSink, Path};
use observe::explain::Recorder;
use observe::trace::{NoTrace, Note, Tracer};
use peers::{is_between_servers, is_transfer, no_transfers};
use program::Position;
use query::names::Sought;
use query::request::Request;
use resume::told;
use run::buffers::Buffers;
use run::context::{Context, WorkerState};
use run::state::{After, End, Run, nothing};
use sets::State;
use wire::query::{Malformed, cookie_only};
use wire::{Class, EdeCode, Edns, Flags, Folded, Header, OptionCode, Query, Rcode, Rtype};

/// What became of one query.
#[must_use]
pub enum Verdict {
    /// `Reply` holds the answer; send it.
    Answered,
    /// Say nothing: denied, or not worth a packet.
    Drop,
    /// Something must be fetched first. Go on with [`Engine::resume`].
    Defer(Box<Suspended>),
    /// It is between servers, and takes several messages or time: the listener sees to it.
    Stream(Box<Streamed>),
}

impl Verdict {
    /// Returns what became of a query whose reply was completed, or could not be.
    #[inline(always)]
    const fn of(is_written: bool) -> Self {
        if is_written { Self::Answered } else { Self::Drop }
    }
}

/// What is found out about answers is noted again when neither policy nor sets have changed for so
/// long: sets that change all the time would have it found out for every query.
const QUIET_MS: u64 = 100;

/// One worker's engine: its snapshot, buffers and counters.
pub struct Engine {
    snapshot: Arc<Snapshot>,
    cell: Arc<SnapshotCell>,
    generation: u64,
    state: WorkerState,
    buffers: Buffers,
    events: EventSink,
    /// Where clients' messages are copied to.
    tap: Option<dnstap::TapWriter>,
    /// Where queries and replies are counted in detail.
    details: Option<Arc<details::Details>>,
    /// Whether a query's way, its messages or its details are wanted, by the snapshot.
    is_watched: bool,
    /// The name of the query at hand, in lower case.
    folded: Folded,
    /// Counts limited queries, so that every so many of them get a truncated reply.
    limited: u32,
    /// Where the program's first cache step is, if that cache is so large that looking ahead pays.
    large_cache_step: Option<usize>,
    /// How often sets were changed that the program looks into.
    changes: u64,
    /// When what is found out about answers is worth noting again, on the monotonic clock.
    settles_at_ms: u64,
}

impl Engine {
    /// Returns an engine that runs on what `cell` holds now.
    pub fn new(cell: Arc<SnapshotCell>, counters: Arc<Counters>) -> Self {
        let (snapshot, authority, generation) = cell.load();
        // Each worker has counters of its own, so that each has a sequence of its own. Never zero.
        let is_watched = snapshot.is_watched();
        let seed = snapshot.key.mix(Arc::as_ptr(&counters) as u64, generation) | 1;
        let mut engine = Self {
            snapshot,
            cell,
            generation,
            state: WorkerState {
                authority,
                counters,
                now: Now::default(),
                random: Cell::new(seed),
                texts: Texts::new(),
                servers: None,
            },
            buffers: Buffers::new(),
            events: EventSink::default(),
            tap: None,
            details: None,
            is_watched,
            folded: Folded::root(),
            limited: 0,
            large_cache_step: None,
            changes: 0,
            settles_at_ms: 0,
        };
        engine.changes = engine.snapshot.program.reliance().changes();
        engine.number_state();
        engine
    }

    /// Tells jobs about queries from now on.
    #[must_use]
    pub fn with_events(mut self, writer: events::EventWriter) -> Self {
        self.events.attach(writer);
        self
    }

    /// Lets policies look at name servers that lead to answers, as this one knows them.
    pub fn know_servers(&mut self, servers: Box<dyn NameServers + Send>) {
        self.state.servers = Some(servers);
    }

    /// Begins a batch: takes the time, and a newer snapshot if there is one.
    pub fn begin(&mut self, now: Now) {
        if now.cache != self.state.now.cache {
            self.measure_cache();
        }
        self.state.now = now;
        if self.cell.generation() != self.generation {
            self.adopt();
        } else if self.snapshot.program.reliance().changes() != self.changes {
            self.forget_state();
        } else if now.monotonic_ms >= self.settles_at_ms {
            self.number_state();
        }
    }

    /// Notes that policy or sets have changed: nothing is known of answers now.
    #[cold]
    fn forget_state(&mut self) {
        self.changes = self.snapshot.program.reliance().changes();
        self.buffers.memo.set_epoch(0, &self.snapshot);
        self.settles_at_ms = self.state.now.monotonic_ms.saturating_add(QUIET_MS);
    }

    /// Takes the number of the state that policy and sets are in.
    #[cold]
    fn number_state(&mut self) {
        let state = State { generation: self.generation, changes: self.changes };
        self.buffers.memo.set_epoch(self.cell.epoch(state), &self.snapshot);
        self.settles_at_ms = u64::MAX;
    }

    /// Returns the bits for [`Client::connection`], as of the snapshot in use; see
    /// [`Snapshot::connection_bits`].
    pub fn connection_bits<'t>(&self, say: impl Fn(&ConnectionText) -> Said<'t>) -> u64 {
        self.snapshot.connection_bits(say)
    }

    /// Returns the zones that are served, as they are now.
    pub fn authority(&self) -> Option<&Arc<Authority>> {
        self.state.authority.as_ref()
    }

    /// Returns whether a client is on the access list: for what it asks besides queries.
    pub fn lets_in(&self, client: &Client) -> bool {
        let gate = &self.snapshot.gate;
        gate.allowed.contains(client.address) && !gate.bans(client)
    }

    /// Judges a query that a listener answers by itself as any other: by access list, bans, cookies
    /// and rate limit.
    pub fn admits(&self, query: &Query<'_>, client: &Client) -> bool {
        self.snapshot.gate.admit(query, client, self.state.now).0 == Admission::Admitted
    }

    #[cold]
    fn adopt(&mut self) {
        let (snapshot, authority, generation) = self.cell.load();
        let old = std::mem::replace(&mut self.snapshot, snapshot);
        let old_authority = std::mem::replace(&mut self.state.authority, authority);
        self.generation = generation;
        self.is_watched = self.snapshot.is_watched();
        self.forget_state();
        self.measure_cache();
        self.cell.reclaim(old);
        self.cell.reclaim_authority(old_authority);
    }

    /// Returns the generation of the snapshot in use; changes when a newer one was adopted.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns this worker's counters.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.state.counters
    }

    /// Answers one query from memory, or says what is missing.
    ///
    /// The same call serves every transport: they differ in `client` and in how large
    /// `reply` may grow, never in policy.
    pub fn answer(&mut self, query: &[u8], client: &Client, reply: &mut Reply<'_>) -> Verdict {
        if self.is_watched {
            return self.answer_and_tell(query, client, reply);
        }
        self.answer_watched(query, client, reply, &mut NoTrace)
    }

    /// Answers one query whose way through the policy, messages or details are wanted.
    #[inline(never)]
    fn answer_and_tell(&mut self, query: &[u8], client: &Client, reply: &mut Reply<'_>) -> Verdict {
        if self.snapshot.taps_clients || self.snapshot.counts_details {
            return self.answer_tapped(query, client, reply);
        }
        self.answer_noting_path(query, client, reply, &mut Path::default())
    }

    /// Answers one query and notes its way through the policy, for those that tell it.
    #[inline(never)]
    fn answer_noting_path(
        &mut self,
        query: &[u8],
        client: &Client,
        reply: &mut Reply<'_>,
        path: &mut Path,
    ) -> Verdict {
        // An interpreter of its own: a call for each step would cost more than noting it.
        self.answer_watched(query, client, reply, path)
    }

    /// Answers one query as [`Engine::answer`] does, and writes down how.
    #[cold]
    pub fn explain(
        &mut self,
        query: &[u8],
        client: &Client,
        reply: &mut Reply<'_>,
        recorder: &mut Recorder,
    ) -> Verdict {
        recorder.begin(&self.snapshot);
        let tracer: &mut dyn Tracer = recorder;
        self.answer_watched(query, client, reply, tracer)
    }

    #[inline]
    fn answer_watched<T: Tracer + ?Sized>(
        &mut self,
        query: &[u8],
        client: &Client,
        reply: &mut Reply<'_>,
        tracer: &mut T,
    ) -> Verdict {
        self.state.counters.queries_over(client.transport).bump();
        let is_large = query.len() > usize::from(self.snapshot.gate.query_octets_max);
        let parsed = Query::parse_inlined(query);
        let query = match &parsed {
            Ok(query) => query,
            Err(malformed) => {
                tracer.note(Note::Malformed);
                return self.refuse_malformed(query, *malformed, client, reply);
            }
        };
        if query.is_signed | is_transfer(query.question.qtype)
            && (query.is_signed | !is_large)
            && let Some(verdict) = self.of_another_server(query, client, reply)
        {
            tracer.note(Note::Protocol);
            return verdict;
        }
        if is_large {
            return self.too_large(tracer);
        }
        let (admission, proof) = self.snapshot.gate.admit(query, client, self.state.now);
        match proof {
            Proof::None | Proof::Malformed => {}
            Proof::Proven(_) => self.state.counters.cookies_valid.bump(),
            Proof::Unproven(_) => self.state.counters.cookies_client.bump(),
            Proof::Invalid(_) => self.state.counters.cookies_invalid.bump(),
        }
        if admission == Admission::Denied {
            return self.answer_outsider(query, client, reply, tracer);
        }
        let to = To { query, client, proof, options: &[] };
        match admission {
            Admission::Admitted => self.answer_admitted(&to, reply, tracer),
            other => self.answer_others(other, &to, reply, tracer),
        }
    }

    /// Answers a query that the gate has not simply let in.
    #[cold]
    #[inline(never)]
    fn answer_others<T: Tracer + ?Sized>(
        &mut self,
        admission: Admission,
        to: &To<'_>,
        reply: &mut Reply<'_>,
        tracer: &mut T,
    ) -> Verdict {
        match self.reconsider(admission, to) {
            Admission::Admitted => self.answer_admitted(to, reply, tracer),
            admission => {
                tracer.note(note_of(admission));
                self.turn_away(admission, to, reply)
            }
        }
    }

    #[inline(always)]
    fn answer_admitted<T: Tracer + ?Sized>(
        &mut self,
        to: &To<'_>,
        reply: &mut Reply<'_>,
        tracer: &mut T,
    ) -> Verdict {
        let query = to.query;
        if let Some(answer) = self.by_rule_of_protocol(query, reply) {
            tracer.note(Note::Protocol);
            // A question that cannot be used is not repeated.
            if query.question.qtype == Rtype::IXFR && answer.rcode == Rcode::FORMERR {
                header_only(query.header, answer.rcode, reply);
                self.state.counters.count(answer.rcode, false);
                return Verdict::Answered;
            }
            let verdict = self.complete(to, &answer, reply);
            // Recursion has nothing to do with it.
            if is_transfer(query.question.qtype) {
                clear_ra(reply);
            }
            return verdict;
        }
        self.by_policy::<T, false>(to, reply, tracer)
    }

    /// Answers a query that was let in, as the policy says; with `OUTSIDE`, for a client that is
    /// not on the access list.
    #[inline(always)]
    fn by_policy<T: Tracer + ?Sized, const OUTSIDE: bool>(
        &mut self,
        to: &To<'_>,
        reply: &mut Reply<'_>,
        tracer: &mut T,
    ) -> Verdict {
        let To { query, client, proof, .. } = *to;
        let name_hash = self.snapshot.key.fold(query.question.qname, &mut self.folded);
        let sought = Sought::with_shape(&self.folded, name_hash, query.shape);
        let request = Request { query, client, proof, folded: &self.folded, sought };
        let mut run = Run::new(request, Position::default());
        let context = self.state.context(&self.snapshot);
        let is_whole = self.snapshot.program.changes_answers();
        let mut work = self.buffers.workspace(&mut self.events, None);
        if is_whole {
            work.direct = Some(reply.buffer());
        } else {
            work.message = reply.buffer();
        }
        let end = run.walk::<T, OUTSIDE>(&context, &mut work, tracer);
        let nobodys;
        let answer = match end {
            End::Answer(ref answer) => answer,
            End::Nothing if OUTSIDE => {
                self.state.counters.denied.bump();
                nobodys = denied();
                &nobodys
            }
            End::Nothing => {
                nobodys = nothing();
                &nobodys
            }
            End::Drop => {
                tell(&mut self.events, &context, &run, None, tracer.path());
                return self.stay_silent();
            }
            End::Wait(want) => {
                self.state.counters.deferred.bump();
                let kept = tracer.keep();
                let suspended = Suspended::new(&self.snapshot, &run, want, None, work.message, kept);
                return Verdict::Defer(suspended.began(self.state.now, tracer.path()));
            }
        };
        // Nothing may have worked on it after all.
        let is_whole = is_whole && work.direct.is_some();
        if !run.event_set.is_empty() {
            let message: &[u8] = if is_whole { &self.buffers.message } else { reply.buffer() };
            tell(&mut self.events, &context, &run, Some((answer, message)), tracer.path());
        }
        tracer.answered(answer.validation());
        let is_written = if is_whole {
            if context.snapshot.rotates {
                self.buffers.rotate(answer, &run.request, &context.env);
            }
            self.buffers.send(&context, to, answer, reply)
        } else {
            complete_inlined(&context, to, answer, reply)
        };
        match run.after {
            None => {}
            Some(After::ClearRa) => clear_ra(reply),
            Some(after) => {
                let sent = (run.interim.marks, run.outgoing);
                self.follow_up(to, name_hash, after, sent);
            }
        }
        Verdict::of(is_written)
    }

    fn complete(&self, to: &To<'_>, answer: &Answer, reply: &mut Reply<'_>) -> Verdict {
        Verdict::of(complete(&self.state.context(&self.snapshot), to, answer, reply))
    }

    fn stay_silent(&self) -> Verdict {
        self.state.counters.dropped.bump();
        Verdict::Drop
    }

    /// What the protocol itself decides, before any policy. `None`: policy decides.
    #[inline(always)]
    fn by_rule_of_protocol(&self, query: &Query<'_>, reply: &mut Reply<'_>) -> Option<Answer> {
        let question = &query.question;
        // One test for both: usually subnets are nothing to us.
        if let Some(edns) = &query.edns
            && ((edns.version > 0) | self.snapshot.program.reads_subnets())
            && let Some(rcode) = refusal_of(edns)
        {
            return Some(Answer::empty(rcode, None));
        }
        if question.qclass != Class::IN {
            return Some(self.other_class(query, reply));
        }
        match question.qtype.0 {
            // Ordinary types; the common case ends here.
            0..=127 | 256.. if question.qtype != Rtype::OPT => None,
            255 => self.any(query, reply),
            _ => Some(special_type(query)),
        }
    }

    /// Zones know what there is of a name; what lies in none of them is nobody's business.
    #[cold]
    fn any(&self, query: &Query<'_>, reply: &mut Reply<'_>) -> Option<Answer> {
        let is_ours = {
            let authority = self.state.authority.as_ref().filter(|_| self.snapshot.program.asks_zones());
            authority.is_some_and(|authority| authority.zones.covers(query.question.qname))
        };
        (self.snapshot.minimal_any && !is_ours).then(|| minimal_any(query, reply))
    }

    #[cold]
    fn other_class(&self, query: &Query<'_>, reply: &mut Reply<'_>) -> Answer {
        let question = &query.question;
        if question.qclass == Class::CH
            && let Some(texts) = self.snapshot.chaos.trust_anchors(question.qname, question.qtype)
        {
            return trust_anchors(query, texts, reply);
        }
        if question.qclass == Class::CH
            && let Some(text) = self.snapshot.chaos.text(question.qname, question.qtype)
        {
            let body_at = Header::LEN + query.question_bytes().len();
            let written = Chaos::put(text, reply.buffer(), body_at);
            return Answer {
                authoritative: true,
                octets: written.unwrap_or(0),
                counts: [1, 0, 0],
                is_too_large: written.is_none(),
                ..Answer::empty(Rcode::NOERROR, None)
            };
        }
        Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_SUPPORTED, "class not served")))
    }

    #[cold]
    fn too_large<T: Tracer + ?Sized>(&mut self, tracer: &mut T) -> Verdict {
        tracer.note(Note::TooLarge);
        self.state.counters.too_large.bump();
        self.stay_silent()
    }

    #[cold]
    fn refuse_malformed(
        &mut self,
        bytes: &[u8],
        malformed: Malformed,
        client: &Client,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        self.state.counters.malformed.bump();
        let (Some(rcode), Some(header)) = (malformed.rcode(), Header::parse(bytes)) else {
            return self.stay_silent();
        };
        let is_large = bytes.len() > usize::from(self.snapshot.gate.query_octets_max);
        if malformed == Malformed::Opcode && self.state.authority.is_some() && is_between_servers(bytes) {
            // Zones say themselves who may notify and update them.
            if tsig::is_signed(bytes) {
                return self.signed(bytes, client, reply);
            }
            if !is_large {
                return self.between_servers((bytes, bytes), client, None, reply);
            }
        }
        if is_large {
            return self.too_large(&mut NoTrace);
        }
        if !self.snapshot.gate.admits_noise(client, self.state.now) {
            return self.stay_silent();
        }
        if malformed == Malformed::Question
            && let Some(secrets) = &self.snapshot.gate.cookies
            && let Some((header, edns)) = cookie_only(bytes)
        {
            let data = edns.option(OptionCode::COOKIE);
            let proof = secrets.check(data, client.address, self.state.now.unix_seconds);
            if proof != Proof::Malformed {
                cookie_alone(&self.state.context(&self.snapshot), (header, edns), (client, proof), reply);
                self.state.counters.count(Rcode::NOERROR, false);
                return Verdict::Answered;
            }
        }
        header_only(header, rcode, reply);
        self.state.counters.count(rcode, false);
        Verdict::Answered
    }
}

/// Tells what a query that ends at once has to tell; its answer, if any, stands in the message.
#[cold]
fn tell(
    event_sink: &mut EventSink,
    context: &Context<'_>,
    run: &Run<'_>,
    answer: Option<(&Answer, &[u8])>,
    path: Option<&Path>,
) {
    let Context { snapshot, env, .. } = context;
    let Request { query, client, .. } = run.request;
    event_sink.tell(&EventContext {
        event_set: &run.event_set,
        path,
        snapshot: snapshot.number,
        trusted_peers: &snapshot.trusted_peers,
        now: env.now,
        began_us: env.now.monotonic_us(),
        query,
        client,
        upstream: None,
        answer: answer
            .map(|(answer, message)| told(answer, message.get(run.request.body_at()..).unwrap_or(&[]))),
    });
}

/// RFC 8482 §4.2: ANY gets one synthesised HINFO, whatever there is.
#[cold]
/// Answers which zones are trusted, as many of them as there is room for.
fn trust_anchors(query: &Query<'_>, texts: &[Box<[u8]>], reply: &mut Reply<'_>) -> Answer {
    let body_at = Header::LEN + query.question_bytes().len();
    let (mut octets, mut count) = (0, 0);
    for text in texts {
        let Some(written) = Chaos::put(text, reply.buffer(), body_at + octets) else { break };
        octets += written;
        count += 1;
    }
    Answer { octets, counts: [count, 0, 0], ..Answer::empty(Rcode::NOERROR, None) }
}

/// Returns what who asks hears of their EDNS, if it cannot be used: of another version (RFC 6891
/// §6.1.3), or with a client subnet that nobody can read (RFC 7871 §7.1.1).
#[cold]
#[inline(never)]
fn refusal_of(edns: &Edns<'_>) -> Option<Rcode> {
    let is_malformed = |subnet| !ClientSubnet::is_well_formed(subnet);
    match edns.option(OptionCode::CLIENT_SUBNET) {
        _ if edns.version > 0 => Some(Rcode::BADVERS),
        Some(subnet) if is_malformed(subnet) => Some(Rcode::FORMERR),
        _ => None,
    }
}

fn minimal_any(query: &Query<'_>, reply: &mut Reply<'_>) -> Answer {
    /// RFC 8482 §4.2 leaves the TTL to the operator; an hour keeps the question away for a while.
    const TTL: wire::Ttl = wire::Ttl::new(3600);
    let body_at = Header::LEN + query.question_bytes().len();
    let written = put_record(reply.buffer(), body_at, Header::LEN, Rtype::HINFO, TTL, b"\x07RFC8482\0");
    Answer {
        octets: written.unwrap_or(0),
        counts: [1, 0, 0],
        is_too_large: written.is_none(),
        ..Answer::empty(Rcode::NOERROR, None)
    }
}

/// Types that are no data (RFC 6895 §3.1) and make no sense in a question, or not without zones.
#[cold]
fn special_type(query: &Query<'_>) -> Answer {
    match query.question.qtype {
        // Who has a version of a zone that is not here.
        Rtype::IXFR if query.header.authorities > 0 => Answer::empty(Rcode::FORMERR, None),
        Rtype::AXFR | Rtype::IXFR => no_transfers(),
        Rtype::OPT => Answer::empty(Rcode::FORMERR, None),
        // RFC 9824 §3.5.
        Rtype::NXNAME => Answer::empty(Rcode::FORMERR, Some((EdeCode::INVALID_QUERY_TYPE, ""))),
        _ => Answer::empty(Rcode::NOTIMP, Some((EdeCode::NOT_SUPPORTED, "not a data type"))),
    }
}

const _: () = assert!(size_of::<Position>() <= 40);
/// The flags word is copied about; it must stay a word.
const _: () = assert!(size_of::<Flags>() == 2);
