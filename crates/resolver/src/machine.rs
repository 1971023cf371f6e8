//! The machine: questions, what is asked for them, and who waits for whom.
//!
//! A *task* is a question, a client's or one of our own. A *fetch* is one question to the servers
//! of one zone. A task waits for one fetch after the other, down from the closest zone that is
//! known, or for the task of the name that it is an alias for; a fetch waits for replies, and for
//! tasks that look for addresses of name servers. Equal tasks and equal fetches are one, whoever
//! wants them.

mod beside;
mod claims;
mod derived;
mod fetches;
mod forwards;
mod lookups;
mod own;
mod proofs;
mod referrals;
mod replies;
mod reports;
mod second_level;
mod services;
mod sleep;
mod subnets;
mod tasks;
mod waits;
mod watches;
mod zone_rates;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use hashbrown::HashTable;
use rand::rngs::StdRng;
use slab::Slab;
use wire::rtypes::is_data;
use wire::{Class, ClientSubnet, HashKey, Rtype};

use crate::choose::{Candidate, Families};
use crate::effect::{AskKey, Effect, Waiter};
use crate::failure::{Failure, Reason};
use crate::few::Few;
use crate::first_replies::FirstReplies;
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;
use crate::prove::Chains;
use crate::resolution::Resolution;
use crate::routes::Routes;
use crate::servers::ServersKnown;
use crate::settings::{NegativeAnchor, Settings, TrustAnchor, Validation};
use crate::tables::{Memory, Tables};
use crate::watch::Watch;
use fetches::{Aim, Fetch};
pub use own::OwnZones;
use reports::Reports;
use tasks::Task;

/// Names a task until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct TaskKey(u32);

/// Names a fetch until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct FetchKey(u32);

/// What can wait, and be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Task(TaskKey),
    Fetch(FetchKey),
}

/// A query that the caller has not reported yet.
struct OpenAsk {
    /// Who asked; `None` if that has ended. Its reply is still good for knowing the server.
    fetch: Option<FetchKey>,
    address: SocketAddr,
    sent_at: Moment,
    /// Whether nothing was known of how long the server takes.
    is_first: bool,
    /// Whether others are asked by now.
    is_late: bool,
    /// Whether the server was charged with its silence.
    is_charged: bool,
    aim: Aim,
    /// What the server was told of the client.
    subnet: Option<ClientSubnet>,
}

impl OpenAsk {
    /// Returns whether its fetch does nothing else until it is reported, or late.
    const fn is_awaited(&self) -> bool {
        !self.is_late && !matches!(self.aim, Aim::Beside)
    }

    /// Returns whether it is late for what is known of the server, not for what another one takes.
    const fn is_late_by_itself(&self) -> bool {
        self.is_late && matches!(self.aim, Aim::Answer)
    }
}

/// What a resolver has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Signatures checked.
    pub signatures: u64,
    /// Answers made from what was proved for other names.
    pub derived: u64,
    /// Those of them that say that a name does not exist.
    pub derived_nxdomain: u64,
    /// Replies of servers that were bogus.
    pub bogus: u64,
    /// Fetches that waited for another worker's.
    pub yielded: u64,
    /// Questions that failed again because they had failed a short time ago.
    pub remembered: u64,
    /// Failures that the agents of zones were told of.
    pub reports: u64,
    /// Queries that were not sent because their zone is asked too often.
    pub limited: u64,
    /// Answers read in zones of this server.
    pub own: u64,
    /// Answers of servers that looked at the client's subnet.
    pub subnets: u64,
}

/// A question to forwarders that the caller has not reported yet.
struct OpenForward {
    /// Who asked; `None` if that has ended.
    fetch: Option<FetchKey>,
    /// What they were told of the client.
    subnet: Option<ClientSubnet>,
}

/// What kind of answer is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Whether it may be one that nobody validated, for who sets CD.
    pub unchecked: bool,
    /// Whether servers are asked for it although it is known: it is about to expire.
    pub anew: bool,
    /// Whether [`Resolution::trace`] is to say what was asked and what came.
    pub traced: bool,
    /// The client's subnet, of which those servers hear that the settings name (RFC 7871);
    /// [`Resolution::scope`] says for whom the answer is then.
    pub subnet: Option<ClientSubnet>,
    /// Whether the client can have an expired answer.
    pub has_stale: bool,
    /// Whether the client wants no recursion: it is told whom to ask, as far as that is known.
    pub refers: bool,
}

/// What somebody waits for, and the place among all who do: many may leave at once.
#[derive(Clone, Copy)]
struct WaitsAt {
    task: TaskKey,
    place: u32,
}

/// Resolves the questions of one worker.
pub struct Resolver {
    settings: Settings,
    routes: Routes,
    memory: Memory,
    rng: StdRng,
    families: Families,
    first_replies: FirstReplies,
    tasks: Slab<Task>,
    /// Tasks by the hashes of their questions, and below fetches by those of what they ask whom.
    by_question: HashTable<TaskKey>,
    waiters: HashTable<(Waiter, WaitsAt)>,
    /// Those who are told of servers whom to ask.
    referrals: HashSet<Waiter>,
    /// Policies that are asked for them before servers are.
    watches: HashMap<Waiter, Arc<dyn Watch>>,
    fetches: Slab<Fetch>,
    by_fetch: HashTable<FetchKey>,
    asks: Slab<OpenAsk>,
    forwards: Slab<OpenForward>,
    timers: BTreeSet<(Moment, FetchKey)>,
    /// Open fetches for subnets, by the hashes of what they ask whom but for the subnet.
    of_subnets: HashMap<u64, Few<FetchKey>>,
    /// What can go on.
    ready: VecDeque<Node>,
    effects: VecDeque<Effect>,
    /// Room for the choice of an address.
    candidates: Vec<Candidate>,
    /// Room for the data of records that are read.
    room: Vec<u8>,
    /// Tasks whose trace is wanted.
    traces: usize,
    /// When the root's servers were last asked which they are.
    primed_at: Option<Moment>,
    /// What is known of zones and their keys.
    chains: Chains,
    /// Signatures that may still be checked before the caller goes on with other work.
    checks_now: u32,
    /// Fetches that wait for more of them, and since when.
    paused: VecDeque<FetchKey>,
    ran_at: Moment,
    counts: Counts,
    reports: Reports,
    /// Whether no answer is kept for longer than the delegation that it was found by.
    keeps_servers: bool,
    /// Zones of this server.
    own: OwnZones,
    /// Where answers of these zones are written.
    own_reply: Vec<u8>,
}

impl Resolver {
    /// Returns a resolver that works with these tables. Whoever wants the same again gives the same
    /// seed.
    pub fn new(settings: Settings, tables: Tables, rng: StdRng) -> Self {
        let memory = Memory::new(tables, settings.partition, settings.validation.judges());
        let routes = Routes::new(&settings.routes);
        Self {
            settings,
            routes,
            memory,
            rng,
            families: Families::default(),
            first_replies: FirstReplies::default(),
            tasks: Slab::new(),
            by_question: HashTable::new(),
            waiters: HashTable::new(),
            referrals: HashSet::new(),
            watches: HashMap::new(),
            fetches: Slab::new(),
            by_fetch: HashTable::new(),
            asks: Slab::new(),
            forwards: Slab::new(),
            timers: BTreeSet::new(),
            of_subnets: HashMap::new(),
            ready: VecDeque::new(),
            effects: VecDeque::new(),
            candidates: Vec::new(),
            room: Vec::new(),
            traces: 0,
            primed_at: None,
            chains: Chains::default(),
            checks_now: 0,
            paused: VecDeque::new(),
            ran_at: Moment::default(),
            counts: Counts::default(),
            reports: Reports::default(),
            keeps_servers: false,
            own: OwnZones::default(),
            own_reply: Vec::new(),
        }
    }

    /// Says what time it is by the calendar, in seconds since 1970: signatures are good from one
    /// time to another. To be called before anything is validated, and after the clock was set.
    pub fn set_time(&mut self, unix_seconds: u64, now: Moment) {
        self.chains.set_time(unix_seconds, now);
    }

    /// Trusts these from now on, in place of those of the settings. What was learned stays, but for
    /// what is known of zones at and below an anchor that has changed, and what was found bogus.
    pub fn trust(&mut self, anchors: &[TrustAnchor], negative: &[NegativeAnchor]) {
        let trust = &mut self.settings.trust;
        if trust.anchors == anchors && trust.negative == negative {
            return;
        }
        let anchors_before = std::mem::replace(&mut trust.anchors, anchors.to_vec());
        let negative_before = std::mem::replace(&mut trust.negative, negative.to_vec());
        let zones = unlike(&anchors_before, anchors).map(|anchor| &anchor.zone);
        let zones = zones.chain(unlike(&negative_before, negative).map(|anchor| &anchor.zone));
        zones.for_each(|zone| self.chains.forget_below(zone.as_name()));
        self.memory.tables.failures.clear();
    }

    /// Has the name servers that led to an answer known for as long as the answer is kept, from now
    /// on: none is kept for longer than the delegation it was found by. A zone could otherwise hide
    /// its servers from policies behind a delegation that ends at once.
    pub const fn keep_servers(&mut self) {
        self.keeps_servers = true;
    }

    /// Returns what is known of the servers of zones.
    pub fn servers_known(&self) -> ServersKnown {
        ServersKnown::new(&self.settings, &self.memory.tables.rrsets)
    }

    /// Begins to look for an answer, or joins who does. It comes as [`Effect::Done`], perhaps at
    /// once.
    pub fn want(&mut self, question: &wire::Question<'_>, waiter: Waiter, now: Moment) {
        self.want_so(question, Wish::default(), waiter, now);
    }

    /// Does the same for who sets CD: the answer may be one that nobody validated. What is fetched
    /// for it is given to nobody else.
    pub fn want_unchecked(&mut self, question: &wire::Question<'_>, waiter: Waiter, now: Moment) {
        self.want_so(question, Wish { unchecked: true, ..Wish::default() }, waiter, now);
    }

    /// Does the same for what is about to expire: servers are asked for it although it is known,
    /// and what they say takes its place.
    pub fn want_anew(&mut self, question: &wire::Question<'_>, waiter: Waiter, now: Moment) {
        self.want_so(question, Wish { anew: true, ..Wish::default() }, waiter, now);
    }

    /// Does the same as [`Resolver::want`], and has [`Resolution::trace`] say what was asked and
    /// what came.
    pub fn want_traced(&mut self, question: &wire::Question<'_>, waiter: Waiter, now: Moment) {
        self.want_so(question, Wish { traced: true, ..Wish::default() }, waiter, now);
    }

    /// Begins to look for an answer of this kind, or joins who does.
    pub fn want_so(&mut self, question: &wire::Question<'_>, wish: Wish, waiter: Waiter, now: Moment) {
        self.enter(question, wish, waiter, now);
        if wish.anew
            && let Some(key) = self.waiter(waiter)
            && let Some(task) = self.task_mut(key)
        {
            task.renew();
        }
        if wish.has_stale
            && self.settings.second_level.is_some_and(|second_level| !second_level.when_stale)
            && let Some(key) = self.waiter(waiter)
            && let Some(task) = self.task_mut(key)
        {
            task.skip_second_level();
        }
        if wish.traced {
            self.trace_for(waiter, now);
        }
        self.run(now);
    }

    /// Forgets what is no RRset: which questions failed, and what this worker knows of zones and
    /// their keys.
    pub fn forget_notes(&mut self) {
        self.memory.tables.failures.clear();
        self.chains.forget_below(wire::Name::ROOT);
    }

    fn enter(
        &mut self,
        question: &wire::Question<'_>,
        Wish { unchecked, subnet, refers, .. }: Wish,
        waiter: Waiter,
        now: Moment,
    ) {
        let is_type = is_data(question.qtype) || question.qtype == Rtype::ANY;
        if question.qclass != Class::IN || !is_type {
            let resolution = Arc::new(Resolution::failed(Failure::without_zone(Reason::Unsupported)));
            self.watches.remove(&waiter);
            self.effects.push_back(Effect::Done { waiter, resolution });
            return;
        }
        // Where nothing is validated, all are told the same: with all signatures and proofs, if
        // these are passed on.
        let unchecked = match self.settings.validation {
            Validation::Off => false,
            Validation::Relay => true,
            Validation::Permissive | Validation::On => unchecked,
        };
        let name = HeapName::new(question.qname);
        // Nobody has other keys and delegations for one subnet than for another.
        let subnet = subnet.filter(|_| !matches!(question.qtype, Rtype::NS | Rtype::DS | Rtype::DNSKEY));
        let subnet = subnet.filter(|_| self.may_tell(name.as_name()));
        let question = HeapQuestion { name, rtype: question.qtype, unchecked, subnet };
        if refers {
            return self.want_referral(&question, waiter, now);
        }
        self.memory.prefetch(&question);
        self.want_for_client(question, waiter, now);
    }

    /// A waiter has gone. What was begun for it goes on within its budget, and fills the tables.
    pub fn forget(&mut self, waiter: Waiter) {
        if let Some(WaitsAt { task: key, place }) = self.take_waiter(waiter)
            && let Some(task) = self.task_mut(key)
            && task.waiters.get(place as usize) == Some(&waiter)
        {
            task.waiters.swap_remove(place as usize);
            // The last one has its place now.
            let moved = task.waiters.get(place as usize).copied();
            if let Some(moved) = moved.filter(|moved| self.waiter(*moved) == Some(key)) {
                self.enter_waiter(moved, WaitsAt { task: key, place });
            }
        }
        self.referrals.remove(&waiter);
    }

    /// Does what is due at `now`.
    pub fn due(&mut self, now: Moment) {
        while let Some(&(at, key)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            self.patience_ended(key, now);
        }
        self.checks_now = self.settings.trust.checks_per_run;
        self.run(now);
    }

    /// Returns when [`Resolver::due`] has something to do. If that is no later than now, signatures
    /// wait to be checked: a call checks some, so that the caller can serve others in between.
    pub fn next_due(&self) -> Option<Moment> {
        let timer = self.timers.first().map(|&(at, _)| at);
        if self.paused.is_empty() { timer } else { Some(self.ran_at) }
    }

    /// Takes out the next thing to do.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Returns how many questions, clients' and our own, have no answer yet.
    pub fn active(&self) -> usize {
        self.tasks.len()
    }

    /// Returns of how many zones it is noted which keys they have, or that they have none. Expired
    /// notes count until another one takes their place.
    pub fn zones_known(&self) -> usize {
        self.chains.len()
    }

    /// Returns how many signatures were checked so far.
    pub const fn signatures_checked(&self) -> u64 {
        self.counts.signatures
    }

    /// Returns what was counted so far.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Lets everything go on that can.
    fn run(&mut self, now: Moment) {
        // What comes in at one moment shares what may be checked in it.
        if now != self.ran_at {
            (self.ran_at, self.checks_now) = (now, self.settings.trust.checks_per_run);
        }
        // Ends: a step either sends, which is paid for, or waits, or ends what it is a step of.
        while let Some(node) = self.next_node() {
            match node {
                Node::Task(key) => self.step_task(key, now),
                Node::Fetch(key) => self.step_fetch(key, now),
            }
        }
    }

    /// Returns what can go on. Whoever waits to check signatures comes first, the longest wait
    /// before all, and only while some may be checked: each begins its judgement anew.
    fn next_node(&mut self) -> Option<Node> {
        let paused = if self.checks_now > 0 { self.paused.pop_front() } else { None };
        paused.map(Node::Fetch).or_else(|| self.ready.pop_front())
    }

    /// Returns the secret that hashes are made with.
    fn hash_key(&self) -> HashKey {
        *self.memory.tables.rrsets.hash_key()
    }

    fn enter_waiter(&mut self, waiter: Waiter, at: WaitsAt) {
        let hash_key = self.hash_key();
        let hash = |waiter: Waiter| hash_key.mix(u64::from(waiter.0), 0);
        match self.waiters.find_mut(hash(waiter), |(other, _)| *other == waiter) {
            Some((_, known)) => {
                // In a second task it would be handed an answer after it was forgotten.
                debug_assert!(known.task == at.task, "a waiter waits in one task");
                *known = at;
            }
            None => {
                self.waiters.insert_unique(hash(waiter), (waiter, at), |(waiter, _)| hash(*waiter));
            }
        }
    }

    fn waiter(&self, waiter: Waiter) -> Option<TaskKey> {
        let hash = self.hash_key().mix(u64::from(waiter.0), 0);
        self.waiters.find(hash, |(other, _)| *other == waiter).map(|&(_, at)| at.task)
    }

    fn take_waiter(&mut self, waiter: Waiter) -> Option<WaitsAt> {
        self.watches.remove(&waiter);
        let hash = self.hash_key().mix(u64::from(waiter.0), 0);
        let entry = self.waiters.find_entry(hash, |(other, _)| *other == waiter).ok()?;
        Some(entry.remove().0.1)
    }

    fn validates(&self) -> bool {
        self.settings.validation.judges()
    }

    /// Returns whether servers are asked for signatures and proofs.
    fn wants_signatures(&self) -> bool {
        self.settings.validation != Validation::Off
    }

    fn task(&self, key: TaskKey) -> Option<&Task> {
        self.tasks.get(key.0 as usize)
    }

    fn task_mut(&mut self, key: TaskKey) -> Option<&mut Task> {
        self.tasks.get_mut(key.0 as usize)
    }

    fn fetch(&self, key: FetchKey) -> Option<&Fetch> {
        self.fetches.get(key.0 as usize)
    }

    fn fetch_mut(&mut self, key: FetchKey) -> Option<&mut Fetch> {
        self.fetches.get_mut(key.0 as usize)
    }

    fn ask(&self, key: AskKey) -> Option<&OpenAsk> {
        self.asks.get(key.0 as usize)
    }

    fn ask_mut(&mut self, key: AskKey) -> Option<&mut OpenAsk> {
        self.asks.get_mut(key.0 as usize)
    }
}

/// Returns what only one of two lists has.
fn unlike<'l, T: PartialEq>(one: &'l [T], other: &'l [T]) -> impl Iterator<Item = &'l T> {
    let gone = one.iter().filter(|item| !other.contains(item));
    gone.chain(other.iter().filter(|item| !one.contains(item)))
}
