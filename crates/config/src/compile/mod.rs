//! Settings to what the server runs on: the engine's snapshot, and the plans of listeners and
//! fetchers.

mod anchors;
mod built_in;
mod caches;
mod designated;
mod devices;
mod dnscrypt;
mod dnstap;
mod gate;
mod names;
mod open;
mod policies;
mod records;
mod resolv;
mod resolvers;
mod steps;
mod tls;
mod upstreams;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use diagnostic::{Diagnostic, Problem, Sources, Span, diagnostics};
use engine::chaos::Chaos;
use engine::gate::Gate;
use engine::gate::bans::RateBans;
use engine::gate::live::LiveBans;
use engine::gate::prefix_set::PrefixSet;
use engine::gate::rate::RateTable;
use engine::matchers::rate::RateCells;
use engine::program::Op;
use engine::records::Records;
use engine::reverse::ReverseTable;
use engine::{Caches, Snapshot};
use plan::anchors::AnchorPlan;
use plan::caches::CachePlan;
use plan::certificates::CertificatePlan;
use plan::dnscrypt::ProviderPlan;
use plan::listeners::{ListenerPlan, TcpPlan, Transports, UdpPlan};
use plan::tls::TlsPlan;
use policy::Action;
use policy::action::{Answer, Edit, Event};
use values::ttl;
use wire::{HashKey, NameBuf, Prefix};

use crate::sets::{DynamicHandle, Sets, UrlList, Workshop, policy_zones, url_lists};
use crate::zones::{self, Outcome, Planner};
pub use devices::devices;
use environment::Environment;
use plan::jobs::{EventAction, Jobs, Learned, StepFacts};
use plan::zones::ZonesPlan;
pub use resolv::resolvers_of_machine;
pub(crate) use resolvers::trusts;
use settings::load::Loaded;
use settings::{Listener, Settings, Startup};
pub use tls::OwnCertificate;

/// The port when 53 may not be had and nobody said which.
pub const OTHER_PORT: u16 = 5300;
/// The largest UDP message that `edns.udp-size` can ask for; listeners have room for it, so that a
/// reload can ask too.
const UDP_OCTETS_MAX: u16 = 4096;

/// What a server runs on.
#[derive(Clone)]
pub struct Plans {
    /// For the engine.
    pub snapshot: Arc<Snapshot>,
    /// For fetchers.
    pub fetch: Arc<plan::upstreams::Plan>,
    /// For resolvers.
    pub resolvers: Arc<plan::resolvers::Plan>,
    /// What resolvers trust over time.
    pub anchors: Arc<[AnchorPlan]>,
    /// Where oblivious messages are carried to.
    pub relay: Arc<plan::relay::RelayPlan>,
    /// For listeners that speak TLS.
    pub tls: Option<Arc<TlsPlan>>,
    /// Certificates that are ordered, in the order of the file.
    pub ordered: Vec<Arc<CertificatePlan>>,
    /// For listeners that speak DNSCrypt.
    pub dnscrypt: Option<Arc<ProviderPlan>>,
    /// What caches are to be, in the order of the file.
    pub cache_plans: Vec<CachePlan>,
    /// The caches that the snapshot uses, as whoever runs it made them.
    pub caches: Caches,
    /// Where each step of the program was written.
    pub places: Arc<[Span]>,
    /// For the jobs.
    pub jobs: Arc<Jobs>,
    /// What each step of the policy is called: its line and what stands there.
    pub steps: Arc<[String]>,
    /// What the record of queries says of these steps.
    pub step_facts: Arc<StepFacts>,
    /// What it was written in.
    pub sources: Arc<Sources>,
    /// Zones that are served.
    pub zones: Arc<ZonesPlan>,
    /// Plans zones that are added while the server runs.
    pub planner: Arc<Planner>,
    /// Names and addresses that conditions compare with.
    pub sets: Sets,
    /// The lists of sets that come from web servers.
    pub lists: Vec<UrlList>,
    /// Zones from other servers that sets are made of, and these sets.
    pub policy_zones: Vec<(NameBuf, String)>,
    /// What is probably not as it was meant.
    pub warnings: Vec<Diagnostic>,
    /// What the next configuration takes over.
    keep: Keep,
}

impl Plans {
    /// Returns what the listeners are called that were opened, in their order.
    pub fn listeners(&self) -> &[Option<String>] {
        &self.keep.listeners
    }

    /// Returns the certificates that the server shows to clients.
    pub fn certificates(&self) -> &[OwnCertificate] {
        &self.keep.certificates
    }
}

/// What stays the same while the process lives.
#[derive(Clone)]
struct Keep {
    /// What names are hashed with.
    key: HashKey,
    /// The number of each upstream group there ever was: numbers are not used again.
    pools: BTreeMap<String, u16>,
    /// The same of each resolver.
    resolvers: BTreeMap<String, u16>,
    /// The key of cookies that nobody configured.
    cookie_secret: [u8; 16],
    /// The names of addresses in answers, once a policy remembered any.
    reverse: Option<Arc<ReverseTable>>,
    /// The name of this server in its first certificate.
    server_name: Option<NameBuf>,
    /// The certificates that there are.
    certificates: Vec<OwnCertificate>,
    /// What the rate limit counts in, once there was one.
    rate_table: Option<Arc<RateTable>>,
    /// Who is banned for being over it, once anybody could be, with the lengths of the prefixes
    /// that are meant.
    rate_bans: Option<((u8, u8), Arc<RateBans>)>,
    /// Who is banned by the operator.
    live_bans: Arc<LiveBans>,
    /// What rates in conditions are counted in.
    rate_cells: BTreeMap<String, Arc<RateCells>>,
    /// What the listeners are called that were opened.
    listeners: Vec<Option<String>>,
    /// Where they are.
    listener_addresses: Vec<SocketAddr>,
    /// What the Unix sockets are called that were opened.
    local_sockets: Vec<Option<String>>,
    /// What the numbers in events mean.
    numbers: policy::compile::Numbers,
    /// Snapshots that were made.
    snapshots: u32,
    /// How many workers were started.
    workers: usize,
    /// Where state is kept until a restart.
    state_directory: PathBuf,
}

impl Keep {
    fn new(startup: &Startup, environment: &dyn Environment) -> Self {
        let mut seeds = [0; 16];
        environment.random(&mut seeds);
        let (first, second) = seeds.split_at(8);
        let number = |half: &[u8]| half.iter().fold(0, |number: u64, &octet| number << 8 | u64::from(octet));
        let mut cookie_secret = [0; 16];
        environment.random(&mut cookie_secret);
        let key = HashKey::new([number(first), number(second)]);
        Self {
            key,
            live_bans: Arc::new(LiveBans::new(key)),
            pools: BTreeMap::new(),
            resolvers: BTreeMap::new(),
            cookie_secret,
            reverse: None,
            server_name: None,
            certificates: Vec::new(),
            rate_table: None,
            rate_bans: None,
            numbers: policy::compile::Numbers::default(),
            snapshots: 0,
            rate_cells: BTreeMap::new(),
            listeners: listeners(startup)
                .map(|listener| listener.name.as_ref().map(|name| name.value.clone()))
                .collect(),
            listener_addresses: listeners(startup).map(|listener| listener.at.value).collect(),
            local_sockets: startup
                .local_sockets
                .iter()
                .map(|socket| socket.name.as_ref().map(|name| name.value.clone()))
                .collect(),
            workers: workers(startup, environment),
            state_directory: startup.state_directory.clone(),
        }
    }

    /// Gives each group and each resolver that has no number yet the next one.
    fn number(&mut self, settings: &Settings) {
        let number = |numbers: &mut BTreeMap<String, u16>, name: &str| {
            let next = numbers.values().max().map_or(0, |last| last + 1);
            numbers.entry(name.to_owned()).or_insert(next);
        };
        settings.upstreams.iter().for_each(|group| number(&mut self.pools, &group.name.value));
        settings.resolvers.iter().for_each(|resolver| number(&mut self.resolvers, &resolver.name.value));
    }
}

/// Where to listen, and what to try if that is not to be had.
#[derive(Clone, Debug)]
pub struct Listening {
    /// What the configuration asks for.
    pub plan: plan::listeners::Plan,
    /// What to try if port 53 may not be had; only when nothing is configured.
    pub otherwise: Option<plan::listeners::Plan>,
}

/// Returns the listeners of which the addresses are known: not devices that nobody looked up.
fn listeners(startup: &Startup) -> impl Iterator<Item = &Listener> {
    startup.listen.iter().flatten().filter(|listener| listener.is_found())
}

/// Returns where to listen.
pub fn listening(startup: &Startup) -> Listening {
    let plan = |listeners: Vec<ListenerPlan>| plan::listeners::Plan {
        listeners,
        options: startup.sockets.options,
        udp: UdpPlan {
            reply_octets_max: UDP_OCTETS_MAX,
            receive_buffer_octets: usize::try_from(startup.sockets.receive_buffer).unwrap_or(usize::MAX),
            queue_timeout_s: startup.sockets.queue_timeout.map_or(0, |timeout| timeout.as_secs() as u32),
            send_buffer_octets: usize::try_from(startup.sockets.send_buffer).unwrap_or(usize::MAX),
            ..UdpPlan::default()
        },
        tcp: TcpPlan {
            connections_max: startup.tcp.connections as usize,
            connections_per_client_max: startup.tcp.connections_per_client as usize,
            waiting_max: startup.tcp.pipeline,
            idle_timeout: startup.tcp.idle_timeout,
            announced_to: startup.tcp.announced_to.into(),
            first_timeout: startup.tcp.first_query_timeout,
            age_max: startup.tcp.age,
            handshakes_per_second: startup.tls.handshakes_per_second,
            handshakes_per_client: startup.tls.handshakes_per_client,
            handshakes_burst: startup.tls.handshakes_burst,
            buffered_octets_max: usize::try_from(startup.tcp.buffers).unwrap_or(usize::MAX),
            handshake_timeout: startup.tls.handshake_timeout,
            ..TcpPlan::default()
        },
        networks: startup.tcp.networks.iter().map(|&(prefix, most)| (prefix, most as usize)).collect(),
        oblivious: startup.oblivious_target,
    };
    let own = |port: u16| {
        let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        plan(addresses.map(|address| ListenerPlan::new(SocketAddr::new(address, port))).to_vec())
    };
    if startup.listen.is_none() {
        return Listening { plan: own(53), otherwise: Some(own(OTHER_PORT)) };
    }
    let listeners = listeners(startup).map(|listener| ListenerPlan {
        address: listener.at.value,
        transports: Transports::of(&listener.speaks),
        proxies: listener.proxy_protocol_from.clone(),
        paths: listener.paths.clone(),
        forwarders: listener.forwarded_from.clone(),
        client_certificates: listener.client_certificates.as_ref().map(|at| at.value).unwrap_or_default(),
    });
    Listening { plan: plan(listeners.collect()), otherwise: None }
}

/// Returns a configuration as it is run with on this machine: a server for which nobody named an
/// upstream resolves by itself where the machine has no other resolver.
pub fn as_run(mut loaded: Loaded, environment: &dyn Environment) -> Loaded {
    let plan = listening(&loaded.settings.startup).plan;
    let own: Vec<SocketAddr> = plan.listeners.iter().map(|listener| listener.address).collect();
    if let Cow::Owned(fitted) = built_in::fitted(&loaded.settings, &own, environment) {
        loaded.settings = fitted;
    }
    loaded
}

/// Returns how many workers there are to be.
pub fn workers(startup: &Startup, environment: &dyn Environment) -> usize {
    startup.workers.map_or_else(|| environment.processors().max(1), usize::from)
}

/// Returns the most descriptors that one of so many workers uses for the upstreams and resolvers of
/// a configuration.
pub fn upstream_descriptors(loaded: &Loaded, workers: usize, environment: &dyn Environment) -> usize {
    let resolving = built_in::resolving(&loaded.settings);
    let resolving = resolving.as_ref().unwrap_or(&loaded.settings);
    upstreams::descriptors_max(&loaded.settings, workers, environment)
        + resolvers::descriptors_max(resolving, environment)
}

/// Compiles a configuration of which no zone is loaded: questions about them get SERVFAIL. Caches
/// are made, or are those of `previous`.
///
/// `own` are the addresses that are listened on: queries are never forwarded there. `previous` is
/// what the server runs on now, whose numbers and secrets are kept.
pub fn compile(
    loaded: &Loaded,
    own: &[SocketAddr],
    previous: Option<&Plans>,
    environment: &dyn Environment,
) -> Result<Plans, Vec<Diagnostic>> {
    let prepared = prepare(loaded, own, previous, environment, None);
    let known = previous.map_or_else(|| Caches::new(prepared.key()), |previous| previous.caches.clone());
    let wanted = prepared.caches().iter().map(|plan| (plan.name.as_str(), plan.octets_max));
    let caches = known.adopt(wanted);
    let unloaded = Outcome::unloaded(prepared.zones(), prepared.key());
    prepared.finish(caches, unloaded)
}

/// A configuration of which everything is compiled but the policies, which use caches and answer
/// from zones.
pub struct Prepared<'a> {
    loaded: &'a Loaded,
    /// Those of `loaded`, fitted to the machine.
    settings: Cow<'a, Settings>,
    environment: &'a dyn Environment,
    keep: Keep,
    caches: Vec<CachePlan>,
    gate: Gate,
    tls: Option<Arc<TlsPlan>>,
    ordered: Vec<Arc<CertificatePlan>>,
    dnscrypt: Option<Arc<ProviderPlan>>,
    fetch: plan::upstreams::Plan,
    resolvers: plan::resolvers::Plan,
    anchors: Vec<AnchorPlan>,
    relay: plan::relay::RelayPlan,
    names: names::Names,
    jobs: Jobs,
    records: BTreeMap<String, Arc<Records>>,
    sets: Sets,
    zones: Arc<ZonesPlan>,
    problems: Vec<Problem>,
}

/// Compiles a configuration as far as it needs neither caches nor zones. Make those that
/// [`Prepared::caches`] names, load those that [`Prepared::zones`] names, and go on with
/// [`Prepared::finish`].
///
/// `own` and `previous` are those of [`compile`]. With `only`, nothing but the lists of this set is
/// read: the other sets stay as they are in `previous`, whatever became of their lists.
pub fn prepare<'a>(
    loaded: &'a Loaded,
    own: &[SocketAddr],
    previous: Option<&Plans>,
    environment: &'a dyn Environment,
    only: Option<&str>,
) -> Prepared<'a> {
    let fitted = built_in::fitted(&loaded.settings, own, environment);
    let settings = &*fitted;
    let mut problems = Vec::new();
    let mut keep = match previous {
        Some(previous) => previous.keep.clone(),
        None => Keep::new(&settings.startup, environment),
    };
    keep.number(settings);
    let mut gate = gate::gate(settings, &mut keep, environment);
    let ordered = tls::ordered(settings, &keep.state_directory, environment, &mut problems);
    let tls = match (only, previous) {
        (Some(_), Some(previous)) => previous.tls.clone(),
        _ => {
            let keep = (&mut keep.server_name, &mut keep.certificates);
            tls::compile((settings, &ordered), keep, environment, &mut problems)
        }
    };
    let dnscrypt = match (only, previous) {
        (Some(_), Some(previous)) => previous.dnscrypt.clone(),
        _ => dnscrypt::compile(settings, environment, &mut problems),
    };
    let fetch = upstreams::plan(settings, &keep.pools, own, keep.workers, environment, &mut problems);
    let numbers = (&keep.resolvers, &keep.pools);
    let resolvers = resolvers::plan(settings, numbers, own, environment, &mut problems);
    let anchors = anchors::plan(settings, &resolvers, &keep.state_directory, environment, &mut problems);
    let relay = upstreams::relay(settings, environment, &mut problems);
    let started = designated::Started { written: &keep.listener_addresses, open: own };
    let names =
        names::compile(settings, keep.key, (keep.server_name.as_ref(), started), environment, &mut problems);
    let mut jobs = keep.numbers.extend(&settings.policies, settings::jobs::plan(settings), &mut problems);
    jobs.dnstap = dnstap::plan(settings, environment, &mut problems);
    keep.snapshots += 1;
    jobs.listeners.clone_from(&keep.listener_addresses);
    if let Some(recorder) = &mut jobs.recorder {
        recorder.file = keep.state_directory.join(&recorder.file);
    }
    let records = records::compile(settings, keep.key, environment, &mut problems);
    remembered(settings, &mut keep, environment, &mut problems);
    let workshop = Workshop {
        key: keep.key,
        state_directory: &keep.state_directory,
        environment,
        previous: previous.map(|previous| &previous.sets),
        only,
    };
    let sets = Sets::compile(settings, &workshop, &mut problems);
    check_learning(settings, &sets, &mut problems);
    gate.banned_live = live_bans(settings, &sets, &mut problems);
    let zones = Arc::new(zones::zones(settings, sets.compiled(), environment, &mut problems));
    let caches = caches::plans(settings, &keep.state_directory);
    Prepared {
        loaded,
        settings: fitted,
        environment,
        caches,
        keep,
        gate,
        tls,
        ordered,
        dnscrypt,
        fetch,
        resolvers,
        anchors,
        relay,
        names,
        jobs,
        records,
        sets,
        zones,
        problems,
    }
}

impl Prepared<'_> {
    /// Returns the caches that there are to be, in the order of the file.
    pub fn caches(&self) -> &[CachePlan] {
        &self.caches
    }

    /// Returns the zones that are to be loaded.
    pub const fn zones(&self) -> &Arc<ZonesPlan> {
        &self.zones
    }

    /// Returns what names are hashed with.
    pub const fn key(&self) -> HashKey {
        self.keep.key
    }

    /// Compiles the policies on these caches, and returns what the server runs on; or all mistakes,
    /// those in files of zones among them.
    pub fn finish(self, caches: Caches, zones: Outcome) -> Result<Plans, Vec<Diagnostic>> {
        let Self { loaded, mut keep, jobs, sets, mut problems, .. } = self;
        let settings = &*self.settings;
        problems.extend(zones::placed(&settings.zones, &settings.zone_directories, zones.findings));
        let parts = policies::Parts {
            settings,
            key: keep.key,
            pools: &keep.pools,
            resolvers: &keep.resolvers,
            caches: &caches,
            cache_plans: &self.caches,
            names: &self.names,
            has_zones: zones.zones.is_some(),
            zone_sets: &zones.sets,
            sets: sets.compiled(),
            jobs: &jobs,
            listeners: &keep.listeners,
            local_sockets: &keep.local_sockets,
            rate_cells: &keep.rate_cells,
            environment: self.environment,
            records: &self.records,
            reverse: keep.reverse.as_ref(),
        };
        let compiled = policies::compile(&parts, &mut problems);
        if let Some(compiled) = &compiled {
            open::check(settings, &compiled.program, &mut problems);
        }
        let failed = problems.iter().any(Problem::is_error);
        let mut found = diagnostics(problems, &loaded.sources);
        found.extend(zones.diagnostics);
        let Some(compiled) = compiled.filter(|_| !failed) else { return Err(found) };
        let policies::Compiled { mut program, places, connection_tests, rate_cells } = compiled;
        let rotates = settings.rotate && program.rotate();
        keep.rate_cells = rate_cells;
        let steps = steps::names(&program, &places, &loaded.sources);
        let step_facts = steps::facts(&program, &places, &loaded.sources);
        let snapshot = Snapshot {
            key: keep.key,
            gate: self.gate,
            recursion_available: program.ops().iter().any(|op| matches!(op, Op::Forward(_) | Op::Recurse(_))),
            program,
            trusted_peers: prefix_set(&settings.trusted_peers),
            connection_tests,
            chaos: chaos(settings, &self.anchors),
            udp_octets_max: settings.udp_size,
            udp_octets_announced: settings.announced_size,
            padding_octets: settings.padding,
            extended_errors: settings.extended_errors,
            takes_dnssec_ok: settings.takes_dnssec_ok,
            fills_truncated: settings.fills_truncated,
            rotates,
            minimal_any: settings.minimal_any,
            number: keep.snapshots,
            // What became of a query follows from its path, whether that is recorded or not.
            keeps_path: jobs.recorder.is_some(),
            counts_details: settings.unbound_statistics.is_extended,
            refused_event: refused_event(&jobs),
            taps_clients: jobs.dnstap.as_ref().is_some_and(|dnstap| dnstap.kinds.has_clients()),
        };
        Ok(Plans {
            snapshot: Arc::new(snapshot),
            fetch: Arc::new(self.fetch),
            resolvers: Arc::new(self.resolvers),
            anchors: self.anchors.into(),
            relay: Arc::new(self.relay),
            tls: self.tls,
            ordered: self.ordered,
            dnscrypt: self.dnscrypt,
            cache_plans: self.caches,
            caches,
            places: places.into(),
            planner: Arc::new(Planner::new(loaded, sets.compiled(), self.environment)),
            zones: self.zones,
            sources: Arc::new(loaded.sources.clone()),
            jobs: Arc::new(jobs),
            steps,
            step_facts: Arc::new(step_facts),
            lists: url_lists(settings, &keep.state_directory),
            policy_zones: policy_zones(settings),
            sets,
            warnings: found,
            keep,
        })
    }
}

/// Returns what the server says of itself.
fn chaos(settings: &Settings, anchors: &[AnchorPlan]) -> Chaos {
    let said = &settings.presentation;
    let text = |text: &Option<String>| text.as_deref().unwrap_or("").as_bytes().into();
    Chaos {
        version: text(&said.version),
        hostname: text(&said.hostname),
        identity: text(&said.identity),
        trust_anchors: if said.trust_anchors { anchors::shown(anchors) } else { Box::default() },
        nsid: said.nsid.as_deref().map_or_else(|| text(&said.identity), Into::into),
    }
}

/// Returns the number of the event that tells of queries which are turned away: when all queries
/// are recorded, a sample of these is.
fn refused_event(jobs: &Jobs) -> Option<u16> {
    jobs.recorder.as_ref().filter(|recorder| recorder.records_all)?;
    let at = jobs.event_set.iter().position(|action| *action == EventAction::Record)?;
    u16::try_from(at).ok()
}

/// Checks that what is learned goes to sets that can take it.
fn check_learning(settings: &Settings, sets: &Sets, problems: &mut Vec<Problem>) {
    let rules = settings.policies.iter().flat_map(|policy| &policy.rules);
    for action in rules.flat_map(|rule| &rule.actions) {
        let Action::Event(Event::Learn(name, what)) = &action.value else { continue };
        let takes = sets.dynamic(&name.value).is_some_and(|dynamic| dynamic.takes(*what));
        if !takes && settings.sets.iter().any(|set| set.name.value == name.value) {
            let kind = match what {
                Learned::Suffix | Learned::Name => "names",
                Learned::Addresses | Learned::Client => "addresses",
            };
            problems.push(
                Problem::error(name.span, format!("set \"{}\" cannot learn {kind}", name.value))
                    .hint(format!("give it \"dynamic: {{holds: {kind}}}\"")),
            );
        }
    }
}

/// Returns the dynamic set of those who are banned.
fn live_bans(
    settings: &Settings,
    sets: &Sets,
    problems: &mut Vec<Problem>,
) -> Option<Arc<::sets::DynamicAddresses>> {
    let name = settings.deny_set.as_ref()?;
    if let Some(DynamicHandle::Addresses(live)) = sets.dynamic(&name.value).map(|dynamic| &dynamic.handle) {
        return Some(Arc::clone(live));
    }
    // A set that does not exist was reported before.
    if settings.sets.iter().any(|set| set.name.value == name.value) {
        problems.push(
            Problem::error(name.span, format!("set \"{}\" is no dynamic set of addresses", name.value))
                .hint("give it \"dynamic: {holds: addresses}\""),
        );
    }
    None
}

/// Returns the files that the lists of a set are read from.
pub fn files_of_set(settings: &Settings, set: &str) -> Vec<PathBuf> {
    let directory = &settings.startup.state_directory;
    let Some(set) = settings.sets.iter().find(|known| known.name.value == set) else { return Vec::new() };
    set.lists.iter().filter_map(|list| crate::sets::file_of(set, list, directory)).collect()
}

/// Returns the files that the configuration is made of besides its own: a change of one of them is
/// a reason to compile it again.
pub fn watched(settings: &Settings, environment: &dyn Environment) -> Vec<PathBuf> {
    let directory = &settings.startup.state_directory;
    let lists = settings
        .sets
        .iter()
        .flat_map(|set| set.lists.iter().filter_map(move |list| crate::sets::file_of(set, list, directory)));
    let mut files: Vec<PathBuf> = lists.collect();
    files.extend(settings.zones.iter().filter_map(|zone| zone.file.as_ref()).map(|file| file.value.clone()));
    files.extend(tls::files(settings).cloned());
    files.extend(dnscrypt::files(settings).cloned());
    files.extend(settings.hosts.files.iter().map(|file| file.value.clone()));
    files.extend(settings.records.iter().flat_map(|set| records::files(set, environment)));
    files
        .extend(settings.resolvers.iter().filter_map(|it| it.root_hints.as_ref()).map(|it| it.value.clone()));
    if settings.hosts.system {
        files.push(environment.hosts_file());
    }
    let uses_system =
        |server: &settings::GroupServer| matches!(server.server.value, settings::Server::System);
    if settings.upstreams.iter().any(|group| group.servers.iter().any(uses_system)) {
        files.push(environment.resolv_conf());
    }
    files.sort();
    files.dedup();
    files
}

/// Makes the table of addresses and their names, or takes over the one there is if it has the size
/// wanted.
fn remembered(
    settings: &Settings,
    keep: &mut Keep,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) {
    let actions = settings.policies.iter().flat_map(|policy| &policy.rules).flat_map(|rule| &rule.actions);
    let (mut wanted, mut reader) = (0, None);
    for action in actions {
        match &action.value {
            Action::Edit(Edit::Remember { size, .. }) => wanted = wanted.max(*size),
            Action::Answer(Answer::Reverse) => reader = reader.or(Some(action.span)),
            _ => {}
        }
    }
    if wanted == 0 {
        keep.reverse = None;
        if let Some(span) = reader {
            problems.push(
                Problem::warning(span, "\"reverse\" never answers: no rule remembers addresses")
                    .hint("put \"remember\" behind a \"forward\""),
            );
        }
    } else if keep.reverse.as_ref().is_none_or(|table| table.size() != ReverseTable::room_for(wanted)) {
        let mut seed = [0; 8];
        environment.random(&mut seed);
        keep.reverse = Some(Arc::new(ReverseTable::new(wanted, u64::from_ne_bytes(seed))));
    }
}

/// Returns the set of some prefixes.
pub(crate) fn prefix_set(prefixes: &[Prefix]) -> PrefixSet {
    PrefixSet::compile(prefixes.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use environment::Memory;
    use plan::listeners::{ClientCertificates, Datagrams};
    use settings::load::load_text;
    use std::path::Path;

    fn machine() -> Memory {
        Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")])
    }

    fn load(text: &str) -> Loaded {
        load_text(Path::new("x"), text, &machine()).expect("no mistakes")
    }

    fn plans(text: &str, previous: Option<&Plans>) -> Plans {
        compile(&load(text), &[], previous, &machine())
            .map_err(|found| found[0].human())
            .expect("it compiles")
    }

    /// Returns the number of each group.
    fn numbers(plans: &Plans) -> Vec<(String, u16)> {
        plans.fetch.pools.iter().map(|pool| (pool.name.clone(), pool.id.0)).collect()
    }

    #[test]
    fn a_reload_keeps_caches_and_secrets() {
        let first = plans("cache: {main: {size: 1MiB}}\n", None);
        let second = plans(
            "cache: {main: {size: 2MiB, stale: off}, two: {size: 1MiB}}\nlimits: {rate: {per-second: 9}}\n",
            Some(&first),
        );
        let third = plans("limits: {rate: {per-second: 10}}\n", Some(&second));
        let main = |plans: &Plans| plans.caches.get("main").map(Arc::as_ptr).expect("it has one");
        assert_eq!(main(&first), main(&second));
        assert_eq!(main(&first), main(&third));
        assert!(Arc::ptr_eq(&second.snapshot.gate.table, &third.snapshot.gate.table));
        let secret = |plans: &Plans| plans.snapshot.gate.cookies.as_ref().map(|secrets| secrets.active);
        assert_eq!(secret(&first), secret(&third));
    }

    #[test]
    fn groups_keep_their_numbers_and_numbers_are_not_used_again() {
        let text = |names: &[&str]| {
            let groups = names.iter().map(|name| format!("{name}: {{servers: 192.0.2.1}}"));
            format!("upstreams: {{{}}}\n", groups.collect::<Vec<_>>().join(", "))
        };
        let first = plans(&text(&["default", "b"]), None);
        let second = plans(&text(&["c", "default"]), Some(&first));
        let third = plans(&text(&["d", "b", "default"]), Some(&second));
        let named =
            |names: &[(&str, u16)]| names.iter().map(|&(name, id)| (name.to_owned(), id)).collect::<Vec<_>>();
        assert_eq!(numbers(&first), named(&[("default", 0), ("b", 1)]));
        assert_eq!(numbers(&second), named(&[("c", 2), ("default", 0)]));
        assert_eq!(numbers(&third), named(&[("d", 3), ("b", 1), ("default", 0)]));
    }

    #[test]
    fn the_defaults_are_those_of_the_plans() {
        let loaded = load("");
        let plans = plans("", None);
        let tcp = listening(&loaded.settings.startup).plan.tcp;
        assert_eq!(format!("{tcp:?}"), format!("{:?}", TcpPlan::default()));
        assert_eq!(plans.fetch.limits, plan::upstreams::Limits::default());
        let pool = &plans.fetch.pools[0];
        let usual = plan::upstreams::PoolPlan::new(pool.id, &pool.name, pool.servers.clone());
        assert!(*pool == usual);
        assert_eq!(plans.cache_plans[0].rules, engine::ops::cache::CacheRules::default());
    }

    #[test]
    fn nothing_configured_listens_on_this_machine_alone() {
        let found = listening(&load("").settings.startup);
        let addresses = |plan: &plan::listeners::Plan| {
            plan.listeners.iter().map(|at| at.address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(addresses(&found.plan), ["127.0.0.1:53", "[::1]:53"]);
        assert_eq!(
            found.otherwise.as_ref().map(addresses),
            Some(vec!["127.0.0.1:5300".to_owned(), "[::1]:5300".to_owned()])
        );
        let text = "listen: [{at: 0.0.0.0, transport: tcp, proxy-protocol-from: 192.0.2.0/24}]\n";
        let found = listening(&load(text).settings.startup);
        assert_eq!(addresses(&found.plan), ["0.0.0.0:53"]);
        assert_eq!(found.plan.listeners[0].transports, Transports::TCP);
        assert!(found.plan.listeners[0].proxies[0].contains("192.0.2.9".parse().expect("an address")));
        assert!(found.otherwise.is_none());
    }

    #[test]
    fn one_address_may_have_a_listener_over_udp_and_another_over_tcp() {
        let text = "listen: [{at: 192.0.2.1, transport: tls, name: dot, client-certificates: any}, \
            {at: 192.0.2.1, transport: quic, name: doq}, {at: 192.0.2.1, transport: udp}, {at: 192.0.2.1, transport: tcp}]\n\
            tls: {certificates: [{certificate: a.pem}]}\n";
        let loaded = load(text);
        let found = listening(&loaded.settings.startup);
        let addresses: Vec<_> = found.plan.listeners.iter().map(|at| at.address.to_string()).collect();
        assert_eq!(addresses, ["192.0.2.1:853", "192.0.2.1:853", "192.0.2.1:53", "192.0.2.1:53"]);
        let [dot, doq, udp, tcp] = &found.plan.listeners[..] else { panic!("four listeners") };
        assert_eq!((dot.transports, dot.client_certificates), (Transports::TLS, ClientCertificates::Any));
        assert_eq!(doq.transports.datagrams, Some(Datagrams::Quic { doq: true, h3: false }));
        assert_eq!(doq.client_certificates, ClientCertificates::ByRoots);
        assert_eq!((udp.transports, tcp.transports), (Transports::UDP, Transports::TCP));
    }

    #[test]
    fn a_certificate_that_is_ordered_is_there_at_once_signed_by_the_server_itself() {
        let text = "listen: [{at: 192.0.2.1, transport: tls}]\n\
                    certificates: {c: {names: [c.example.org, 192.0.2.1], challenge: tls-alpn-01, \
                    authorities: \"https://ca.example.net/\"}}\n";
        let plans = plans(text, None);
        let [own] = plans.certificates() else { panic!("one certificate") };
        assert_eq!(own.names, ["c.example.org", "192.0.2.1"]);
        assert!(own.file.ends_with("certificates/c.pem") && own.file == plans.ordered[0].file);
        let tls = plans.tls.as_ref().expect("listeners can speak TLS");
        assert!(tls.identities[0].is_for("c.example.org"));
    }
}
