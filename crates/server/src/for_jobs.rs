//! What jobs want of the running server.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use config::Plans;
use config::sets::{Sets, UrlList};
use control::api;
use environment::System;
use exchange::resolve::Resolver;
use jobs::{Addresses, Download, Jobs, Lookup, Occurrence, Server, StepNames};
use plan::jobs::{Learn, Learned};
use plan::upstreams::Bind;
use tokio::runtime::Builder;
use transfer::TxtChange;
use wire::{NameBuf, Rtype};
use zone::Zone;

use crate::caches::Which;
use crate::feed::{Feed, bounded};
use crate::lock;

/// How long one resolver is waited for that a job asks; it is asked twice.
const RESOLVE_PATIENCE: Duration = Duration::from_secs(2);
/// How long the addresses of a host are waited for that zones come from.
const HOST_PATIENCE: Duration = Duration::from_secs(10);

/// Writes caches to their files; `None` when the server has ended.
pub(crate) type Dump = Box<dyn Fn(Which<'_>) -> Option<Vec<api::Dumped>> + Send + Sync>;

/// Changes a record in one of the server's zones.
pub(crate) type RecordChange = Box<dyn Fn(&TxtChange) -> Option<Result<NameBuf, String>> + Send + Sync>;

/// Uses certificates that were written.
pub(crate) type UseCertificates = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// What the server does for its jobs, once it runs; nothing any more when it has ended.
pub(crate) struct Callbacks {
    /// Writes caches to their files.
    pub(crate) dump: Dump,
    /// Reads the lists of a set again.
    pub(crate) reload_set: Box<dyn Fn(&str) + Send + Sync>,
    /// Makes sets anew that are made of a zone, if they have not its version in use.
    pub(crate) follow_zone: Box<dyn Fn(&NameBuf) + Send + Sync>,
    /// Forgets answers for a name and all below it.
    pub(crate) forget: Box<dyn Fn(&NameBuf) + Send + Sync>,
    /// Changes a record in the zone here that it belongs to, and returns that; `None` if there is
    /// none.
    pub(crate) change_record: RecordChange,
    /// Uses the certificates that were just written, of which this is one.
    pub(crate) use_certificates: UseCertificates,
    /// Serves versions of zones that were just signed.
    pub(crate) serve_signed: Box<dyn Fn(Vec<Arc<Zone>>) + Send + Sync>,
}

/// Whom the orders go to, and what lists and learned names mean.
#[derive(Default)]
pub(crate) struct Orders {
    callbacks: OnceLock<Callbacks>,
    /// The lists and sets in use. Held for a moment only.
    known: Mutex<Known>,
    /// Who hears what happens.
    feed: Arc<Feed>,
}

#[derive(Default)]
struct Known {
    lists: Vec<UrlList>,
    sets: Option<Sets>,
    /// Servers that resolve the names of hosts for this server; none: the machine does.
    resolvers: Vec<SocketAddr>,
}

impl Orders {
    /// Says who carries the orders out.
    pub(crate) fn connect(&self, callbacks: Callbacks) {
        // It is called once.
        drop(self.callbacks.set(callbacks));
    }

    /// Returns what hears of everything that happens.
    pub(crate) const fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Forgets answers for a name and all below it; before the server runs, there are none.
    pub(crate) fn forget(&self, zone: &NameBuf) {
        if let Some(callbacks) = self.callbacks.get() {
            (callbacks.forget)(zone);
        }
    }

    /// Makes sets anew that are made of a zone; before the server runs, that is done when it
    /// starts.
    pub(crate) fn follow_zone(&self, apex: &NameBuf) {
        if let Some(callbacks) = self.callbacks.get() {
            (callbacks.follow_zone)(apex);
        }
    }

    /// Changes a record in the zone here that it belongs to, and returns that; `Some(None)` if
    /// there is none, `None` before the server runs.
    pub(crate) fn change_record(&self, change: &TxtChange) -> Option<Option<Result<NameBuf, String>>> {
        self.callbacks.get().map(|callbacks| (callbacks.change_record)(change))
    }

    /// Returns the servers that resolve names for the server itself: those that the operator has
    /// named, or else those of the machine.
    pub(crate) fn resolvers(&self) -> Vec<SocketAddr> {
        let named = lock(&self.known).resolvers.clone();
        if named.is_empty() { config::resolvers_of_machine(&System) } else { named }
    }

    /// Uses the certificates that there are now; before the server runs, that is done when it
    /// starts.
    pub(crate) fn use_certificates(&self, certificate: &str) -> Result<(), String> {
        self.callbacks.get().map_or(Ok(()), |callbacks| (callbacks.use_certificates)(certificate))
    }

    /// Looks up the addresses of a host as those of web servers are looked up: with the servers
    /// that the operator names, or by the machine. Blocks.
    pub(crate) fn addresses(&self, host: &NameBuf) -> Result<Vec<IpAddr>, String> {
        let servers = lock(&self.known).resolvers.clone();
        if servers.is_empty() {
            let host = host.to_string();
            let found = (host.trim_end_matches('.'), 0).to_socket_addrs();
            let found = found.map_err(|error| error.to_string())?;
            return Ok(found.map(|address| address.ip()).collect());
        }
        let deadline = Instant::now() + HOST_PATIENCE;
        let mut found = Vec::new();
        let mut trouble = None;
        for rtype in [Rtype::A, Rtype::AAAA] {
            match StubResolver.addresses(&servers, host, rtype, deadline) {
                Ok(addresses) => found.extend(addresses.list),
                Err(why) => trouble = Some(why),
            }
        }
        match trouble {
            Some(why) if found.is_empty() => Err(why),
            _ => Ok(found),
        }
    }

    /// Makes the jobs run on a configuration that they have prepared for.
    pub(crate) fn adopt(&self, jobs: &Jobs, prepared: jobs::Prepared, plans: &Plans) {
        *lock(&self.known) = Known {
            lists: plans.lists.clone(),
            sets: Some(plans.sets.clone()),
            resolvers: plans.jobs.resolvers.clone(),
        };
        let steps = StepNames {
            snapshot: plans.snapshot.number,
            names: Arc::clone(&plans.steps),
            facts: Arc::clone(&plans.step_facts),
        };
        let downloads: Vec<Download> = plans
            .lists
            .iter()
            .map(|list| Download {
                set: list.set.clone(),
                url: list.url.clone(),
                file: list.file.clone(),
                refresh: list.list.refresh,
                timeout: list.list.timeout,
                octets_max: list.list.octets_max,
            })
            .collect();
        jobs.adopt(prepared, &plans.jobs, &downloads, steps);
    }
}

impl Server for Orders {
    fn dump(&self, cache: Option<&str>) -> Result<String, String> {
        let which = cache.map_or(Which::All, Which::Named);
        let dumped = self.callbacks.get().and_then(|callbacks| (callbacks.dump)(which));
        let dumped = dumped.ok_or("the server does not run yet")?;
        let failed: Vec<String> = dumped
            .iter()
            .filter_map(|dump| Some(format!("{}: {}", dump.cache, dump.error.as_ref()?)))
            .collect();
        match (dumped.as_slice(), failed.is_empty()) {
            ([], _) => Err("no such cache has a file to be written to".to_owned()),
            (dumped, true) => {
                Ok(format!("{} answers written", dumped.iter().map(|dump| dump.entries).sum::<u64>()))
            }
            (_, false) => Err(failed.join("; ")),
        }
    }

    fn check_list(&self, download: &Download, octets: &[u8]) -> Result<(), String> {
        let list = lock(&self.known).lists.iter().find(|list| list.file == download.file).cloned();
        // A set that is gone since needs no list.
        let Some(list) = list else { return Err("no set reads it any more".to_owned()) };
        list.list.reading().check(octets.to_vec()).map(drop)
    }

    fn adopt_lists(&self, sets: &[String]) {
        if let Some(callbacks) = self.callbacks.get() {
            sets.iter().for_each(|set| (callbacks.reload_set)(set));
        }
    }

    fn list_fetched(&self, download: &Download, outcome: Result<u64, &str>) {
        self.feed.tell(api::EventOf::List(api::ListEvent {
            set: download.set.clone(),
            url: diagnostic::without_secrets(&download.url).into_owned(),
            is_fetched: outcome.is_ok(),
            octets: outcome.ok(),
            why: outcome.err().map(|why| bounded(&diagnostic::without_secrets(why))),
        }));
    }

    fn learn(&self, learn: &Learn, occurrence: &Occurrence) {
        let dynamic = lock(&self.known).sets.as_ref().and_then(|sets| sets.dynamic(&learn.set).cloned());
        let Some(dynamic) = dynamic else { return };
        let now = u64::try_from(occurrence.unix_ms / 1000).unwrap_or(0);
        let client = [occurrence.client];
        let addresses = match learn.what {
            Learned::Client => &client[..],
            Learned::Addresses => &occurrence.addresses,
            Learned::Suffix | Learned::Name => &[],
        };
        dynamic.learn(learn.what, &occurrence.qname, addresses, now);
    }

    fn serve_signed(&self, zones: Vec<Arc<Zone>>) {
        if let Some(callbacks) = self.callbacks.get() {
            (callbacks.serve_signed)(zones);
        }
    }
}

/// Resolves names on the thread of whoever waits.
#[derive(Debug)]
pub(crate) struct StubResolver;

impl Lookup for StubResolver {
    fn addresses(
        &self,
        servers: &[SocketAddr],
        name: &NameBuf,
        qtype: Rtype,
        deadline: Instant,
    ) -> Result<Addresses, String> {
        // Jobs ask now and then, and their threads have no runtime.
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let bind = Bind::default();
        let resolver =
            Resolver { servers, bind: &bind, patience: RESOLVE_PATIENCE, deadline: Some(deadline) };
        let found = runtime.block_on(resolver.addresses(*name, qtype)).map_err(|why| why.to_string())?;
        Ok(Addresses { list: found.list, ttl: found.ttl })
    }
}
