//! Looks whether what records lead to works: connects, or asks for a page.
//!
//! A few threads share one list of what is due. Records that lead to one address and are checked
//! alike are tried together, however many zones have them. What fails several times in a row is
//! left out of answers, what works several times in a row comes back; each change is reported once.
//! Workers only read a bit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plan::checks::{Check, CheckKind, Watched};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use tracing::{info, warn};
use wire::Name;

use crate::http::Trust;
use crate::lock;
use crate::tls;

/// Checks that are made at the same time.
const THREADS_MAX: usize = 16;
/// The time between the first tries of what is new.
const NEW_EVERY: Duration = Duration::from_millis(20);
/// Octets of a status line.
const STATUS_OCTETS_MAX: usize = 1024;

/// How a record stands.
#[derive(Clone, Debug)]
pub struct CheckState {
    /// What is watched.
    pub watched: Arc<Watched>,
    /// Whether it works; taken for granted until it is known.
    pub is_up: bool,
    /// What went wrong last, if the last check failed.
    pub trouble: Option<String>,
}

/// How often a check was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// And passed.
    pub passed: u64,
    /// And failed.
    pub failed: u64,
}

/// One address that is tried in one way, for all records that lead there and are checked so.
struct Probe {
    address: IpAddr,
    check: Arc<Check>,
    is_up: bool,
    /// Times in a row that say otherwise.
    against: u32,
    trouble: Option<String>,
    records: BTreeSet<RecordId>,
}

struct Record {
    watched: Arc<Watched>,
    probe: ProbeId,
}

/// Numbers that are never used again.
type ProbeId = u64;
type RecordId = u64;

/// Whose records are watched together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Configuration,
    /// A zone that came while the server runs, by its name in lower case.
    Zone(Vec<u8>),
}

#[derive(Default)]
struct State {
    probes: BTreeMap<ProbeId, Probe>,
    by_target: HashMap<(IpAddr, Arc<Check>), ProbeId>,
    /// In the order in which they came.
    records: BTreeMap<RecordId, Record>,
    groups: BTreeMap<Whose, Vec<RecordId>>,
    next_number: u64,
    /// When each is due; what is not there any more is passed over.
    due: BinaryHeap<Reverse<(Instant, ProbeId)>>,
    /// How often the configuration was adopted.
    generation: u64,
    /// How often each check was made, by its name.
    made: BTreeMap<String, Made>,
    threads: usize,
    ends: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

/// Checks records on threads of its own.
#[derive(Clone, Default)]
pub struct Checker(Arc<Shared>);

impl Checker {
    /// Sees to it that there are threads for these records of a configuration; they check nothing
    /// of it before [`Checker::adopt`].
    pub fn prepare(&self, watched: &[Arc<Watched>]) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        let targets = watched.iter().map(|watched| (watched.address, Arc::clone(&watched.check)));
        let new: HashSet<_> = targets.filter(|target| !state.by_target.contains_key(target)).collect();
        let threads = (state.probes.len() + new.len()).min(THREADS_MAX);
        self.start_threads(&mut state, threads)
    }

    /// Checks these records of the configuration from now on. What was tried before for any of them
    /// stays as it stands.
    pub fn adopt(&self, watched: &[Arc<Watched>]) {
        let mut state = lock(&self.0.state);
        state.generation += 1;
        state.replace(Whose::Configuration, watched);
        // A check that nothing names any more is not reported any more.
        let State { probes, made, .. } = &mut *state;
        let named: BTreeSet<&str> = probes.values().map(|probe| probe.check.name.as_str()).collect();
        made.retain(|name, _| named.contains(name.as_str()));
        drop(state);
        self.0.wake.notify_all();
    }

    /// Checks these records of a zone that came while the server runs, instead of those that were
    /// checked before. Costs in proportion to their number. A record whose target is known has its
    /// state at once.
    pub fn watch(&self, apex: Name<'_>, watched: &[Arc<Watched>]) -> io::Result<()> {
        let whose = Whose::Zone(apex.to_folded().as_bytes().to_vec());
        if lock(&self.0.state).replace(whose, watched) { self.start() } else { Ok(()) }
    }

    /// Has somebody make what is due.
    fn start(&self) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        let threads = state.probes.len().min(THREADS_MAX);
        self.start_threads(&mut state, threads)?;
        drop(state);
        self.0.wake.notify_all();
        Ok(())
    }

    fn start_threads(&self, state: &mut State, threads: usize) -> io::Result<()> {
        while state.threads < threads {
            let inside = Arc::clone(&self.0);
            std::thread::Builder::new().name("checks".into()).spawn(move || inside.run())?;
            state.threads += 1;
        }
        Ok(())
    }

    /// Returns how everything stands, or what belongs to one zone.
    pub fn states(&self, only: Option<Name<'_>>) -> Vec<CheckState> {
        let state = lock(&self.0.state);
        let records = state.records.values();
        let wanted = records.filter(|it| only.is_none_or(|apex| it.watched.zone.as_name() == apex));
        let show = |record: &Record| {
            let probe = state.probes.get(&record.probe)?;
            let (watched, trouble) = (Arc::clone(&record.watched), probe.trouble.clone());
            Some(CheckState { watched, is_up: probe.is_up, trouble })
        };
        wanted.filter_map(show).collect()
    }

    /// Returns how often each check was made, by its name.
    pub fn made(&self) -> BTreeMap<String, Made> {
        lock(&self.0.state).made.clone()
    }

    /// Makes the threads end.
    pub fn stop(&self) {
        lock(&self.0.state).ends = true;
        self.0.wake.notify_all();
    }
}

impl Shared {
    fn run(&self) {
        // Certificates are read once.
        let mut clients = Clients::default();
        let mut state = lock(&self.state);
        while !state.ends {
            let now = Instant::now();
            let wait = match state.due.peek() {
                None => Duration::from_secs(60),
                Some(Reverse((due, _))) => due.saturating_duration_since(now),
            };
            if !wait.is_zero() {
                state = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let Some(Reverse((_, id))) = state.due.pop() else { continue };
            let Some(probe) = state.probes.get(&id) else { continue };
            let (address, tried) = (probe.address, Arc::clone(&probe.check));
            let generation = state.generation;
            drop(state);
            clients.are_for(generation);
            let outcome = check(address, &tried, &mut clients);
            state = lock(&self.state);
            if state.hear(id, outcome) {
                state.due.push(Reverse((now + tried.interval, id)));
            }
            self.wake.notify_one();
        }
    }
}

impl State {
    /// Watches these records instead of those that were watched. Returns whether something is tried
    /// that was not before.
    fn replace(&mut self, whose: Whose, watched: &[Arc<Watched>]) -> bool {
        // First what is new comes, then what was there goes: what is tried for both stays as it
        // stands.
        let mut new_probes = 0;
        let mut ids = Vec::with_capacity(watched.len());
        for watched in watched {
            let target = (watched.address, Arc::clone(&watched.check));
            let id = self.number();
            let probe = match self.by_target.get(&target) {
                Some(known) => *known,
                None => {
                    let known = self.number();
                    // Not all that is new at once, and none of it later than it would be tried
                    // again.
                    let spread = (NEW_EVERY * new_probes).min(watched.check.interval);
                    new_probes += 1;
                    self.due.push(Reverse((Instant::now() + spread, known)));
                    self.probes.insert(known, Probe::new(watched));
                    self.by_target.insert(target, known);
                    known
                }
            };
            if let Some(probe) = self.probes.get_mut(&probe) {
                watched.set_down(!probe.is_up);
                probe.records.insert(id);
            }
            self.records.insert(id, Record { watched: Arc::clone(watched), probe });
            ids.push(id);
        }
        let before = match ids.is_empty() {
            true => self.groups.remove(&whose),
            false => self.groups.insert(whose, ids),
        };
        before.into_iter().flatten().for_each(|id| self.forget(id));
        new_probes > 0
    }

    const fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn forget(&mut self, id: RecordId) {
        let Some(record) = self.records.remove(&id) else { return };
        let Some(probe) = self.probes.get_mut(&record.probe) else { return };
        probe.records.remove(&id);
        if probe.records.is_empty() {
            self.by_target.remove(&(probe.address, Arc::clone(&probe.check)));
            self.probes.remove(&record.probe);
        }
    }

    /// Takes what came of a try; returns whether there is still somebody who wants to know.
    fn hear(&mut self, id: ProbeId, outcome: Result<(), String>) -> bool {
        let Some(probe) = self.probes.get_mut(&id) else { return false };
        let made = self.made.entry(probe.check.name.clone()).or_default();
        *(if outcome.is_ok() { &mut made.passed } else { &mut made.failed }) += 1;
        if probe.hear(outcome) {
            let records = probe.records.iter().filter_map(|id| self.records.get(id));
            records.for_each(|record| record.watched.set_down(!probe.is_up));
            let first = probe.records.first().and_then(|id| self.records.get(id));
            if let Some(first) = first {
                probe.tell(&first.watched);
            }
        }
        true
    }
}

impl Probe {
    /// Returns what is tried for a record that nothing is known of but how it stood so far.
    fn new(watched: &Watched) -> Self {
        Self {
            address: watched.address,
            check: Arc::clone(&watched.check),
            is_up: !watched.is_down(),
            against: 0,
            trouble: None,
            records: BTreeSet::new(),
        }
    }

    /// Takes what came of a try; returns whether that changed how it stands.
    fn hear(&mut self, outcome: Result<(), String>) -> bool {
        let works = outcome.is_ok();
        self.trouble = outcome.err();
        if works == self.is_up {
            self.against = 0;
            return false;
        }
        self.against += 1;
        if self.against < if works { self.check.rise } else { self.check.fall } {
            return false;
        }
        (self.is_up, self.against) = (works, 0);
        true
    }

    /// Writes to the log how it stands now, with the name of the first of its records.
    fn tell(&self, Watched { name, rtype, .. }: &Watched) {
        let (address, records) = (self.address, self.records.len());
        let why = self.trouble.as_deref().unwrap_or_default();
        match (self.is_up, records) {
            (true, 1) => info!(%name, %rtype, %address, "works again; its record is back"),
            (true, _) => {
                info!(%name, %rtype, %address, records, "works again; this record and others are back");
            }
            (false, 1) => warn!(%name, %rtype, %address, why, "does not work; its record is left out"),
            (false, _) => {
                let text = "does not work; this record and others are left out";
                warn!(%name, %rtype, %address, records, why, "{text}");
            }
        }
    }
}

/// Authorities that may vouch for servers.
type Roots = Arc<[CertificateDer<'static>]>;

/// What speaks TLS: believing those whom everybody does, those whom a check names, or anybody.
#[derive(Default)]
struct Clients {
    usual: Option<Arc<ClientConfig>>,
    everybody: Option<Arc<ClientConfig>>,
    own: Vec<(Roots, Arc<ClientConfig>)>,
    /// Which list of items they are for.
    generation: u64,
}

impl Clients {
    /// Forgets the authorities of other lists of items.
    fn are_for(&mut self, generation: u64) {
        if self.generation != generation {
            self.own.clear();
            self.generation = generation;
        }
    }

    fn get(&mut self, verifies: bool, roots: Option<&Roots>) -> io::Result<Arc<ClientConfig>> {
        if let Some(roots) = roots.filter(|_| verifies) {
            let known = self.own.iter().find(|(of, _)| Arc::ptr_eq(of, roots));
            if let Some((_, client)) = known {
                return Ok(Arc::clone(client));
            }
            let client = tls::client_trusting(roots)?;
            self.own.push((Arc::clone(roots), Arc::clone(&client)));
            return Ok(client);
        }
        let (place, trust) = match verifies {
            true => (&mut self.usual, Trust::Usual),
            false => (&mut self.everybody, Trust::Everybody),
        };
        if let Some(client) = place {
            return Ok(Arc::clone(client));
        }
        Ok(Arc::clone(place.insert(tls::client(&trust)?)))
    }
}

fn check(address: IpAddr, check: &Check, clients: &mut Clients) -> Result<(), String> {
    let Check { kind, port, timeout, .. } = check;
    let at = SocketAddr::new(address, *port);
    let deadline = Instant::now() + *timeout;
    let told = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!("no answer within {timeout:?}"),
        _ => error.to_string(),
    };
    let stream = TcpStream::connect_timeout(&at, *timeout).map_err(told)?;
    let CheckKind::Http { is_secure, verifies, roots, host, path, statuses } = kind else { return Ok(()) };
    let status = if *is_secure {
        let client = clients.get(*verifies, roots.as_ref()).map_err(told)?;
        let limits = stream.try_clone().map_err(told)?;
        let stream = tls::wrap(&client, host, stream).map_err(told)?;
        status(stream, &limits, deadline, (host, path))
    } else {
        let limits = stream.try_clone().map_err(told)?;
        status(stream, &limits, deadline, (host, path))
    };
    let status = status.map_err(told)?;
    if statuses.iter().any(|range| range.contains(&status)) {
        return Ok(());
    }
    Err(format!("the status is {status}"))
}

/// Asks for a page and returns the status of the response.
fn status(
    mut stream: impl Read + Write,
    limits: &TcpStream,
    deadline: Instant,
    (host, path): (&str, &str),
) -> io::Result<u16> {
    let limit = || -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        limits.set_read_timeout(Some(left))?;
        limits.set_write_timeout(Some(left))
    };
    limit()?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: gannet\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut line = Vec::new();
    // Ends: with the line, at its greatest length, or when the time is over.
    while !line.contains(&b'\n') && line.len() < STATUS_OCTETS_MAX {
        limit()?;
        let mut some = [0; 256];
        match stream.read(&mut some)? {
            0 => break,
            len => line.extend_from_slice(some.get(..len).unwrap_or(&[])),
        }
    }
    let text = String::from_utf8_lossy(&line);
    let mut words = text.split_ascii_whitespace();
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    let status = words.next().and_then(|word| word.parse().ok()).filter(|_| is_http);
    status.ok_or_else(|| io::Error::other("the answer is not HTTP"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    use wire::{NameBuf, Rtype};

    fn check_of(host: &str, interval_s: u64) -> Arc<Check> {
        let kind = CheckKind::Http {
            is_secure: false,
            verifies: true,
            roots: None,
            host: host.to_owned(),
            path: "/".to_owned(),
            statuses: vec![200..=299],
        };
        Arc::new(Check {
            name: "web".to_owned(),
            kind,
            port: 80,
            interval: Duration::from_secs(interval_s),
            timeout: Duration::from_secs(1),
            rise: 1,
            fall: 2,
        })
    }

    /// Returns two addresses of a zone's `www`, each checked so.
    fn watched(zone: &str, check: &Arc<Check>) -> Vec<Arc<Watched>> {
        let down = Arc::new(AtomicU64::new(0));
        let name = |text: &str| NameBuf::from_text(text).expect("a name");
        let each = (0..2).map(|bit| {
            Arc::new(Watched {
                zone: name(zone),
                name: name(&format!("www.{zone}")),
                rtype: Rtype::A,
                address: IpAddr::from([192, 0, 2, bit]),
                check: Arc::clone(check),
                down: Arc::clone(&down),
                bit,
            })
        });
        each.collect()
    }

    fn of_zone(zone: &str) -> Whose {
        Whose::Zone(zone.as_bytes().to_vec())
    }

    fn fail(state: &mut State, address: [u8; 4]) {
        let ids = state.probes.iter().filter(|(_, probe)| probe.address == IpAddr::from(address));
        for id in ids.map(|(id, _)| *id).collect::<Vec<ProbeId>>() {
            for _ in 0..2 {
                assert!(state.hear(id, Err("gone".to_owned())));
            }
        }
    }

    fn is_down(watched: &[Arc<Watched>]) -> [bool; 2] {
        [watched[0].is_down(), watched[1].is_down()]
    }

    #[test]
    fn what_is_tried_alike_is_tried_once_for_twenty_thousand_zones() {
        let mut state = State::default();
        let all: Vec<Vec<Arc<Watched>>> = (0..20_000)
            // Equal, but another one, as after a reload of some zones.
            .map(|number| watched(&format!("z{number}.example"), &check_of("www.example", 10)))
            .collect();
        for (number, watched) in all.iter().enumerate() {
            assert_eq!(state.replace(of_zone(&number.to_string()), watched), number == 0);
        }
        assert_eq!((state.probes.len(), state.due.len(), state.records.len()), (2, 2, 40_000));
        fail(&mut state, [192, 0, 2, 1]);
        assert!(all.iter().all(|watched| is_down(watched) == [false, true]));
        assert_eq!(state.made["web"], Made { passed: 0, failed: 2 });
        // One that comes later knows it at once; the last one that goes ends it.
        let late = watched("late.example", &check_of("www.example", 10));
        assert!(!state.replace(of_zone("late"), &late));
        assert_eq!(is_down(&late), [false, true]);
        for number in 0..20_000 {
            assert!(!state.replace(of_zone(&number.to_string()), &[]));
        }
        assert_eq!((state.probes.len(), state.records.len(), state.groups.len()), (2, 2, 1));
        assert!(!state.replace(of_zone("late"), &[]));
        assert!(state.probes.is_empty() && state.by_target.is_empty() && state.groups.is_empty());
    }

    #[test]
    fn what_is_tried_otherwise_is_tried_by_itself() {
        let mut state = State::default();
        let one = watched("a.example", &check_of("www.a.example", 10));
        let two = watched("b.example", &check_of("www.b.example", 10));
        assert!(state.replace(of_zone("a"), &one) && state.replace(of_zone("b"), &two));
        assert_eq!(state.probes.len(), 4);
        let first = *state.probes.keys().next().expect("a probe");
        assert!(state.hear(first, Err("gone".to_owned())) && state.hear(first, Err("gone".to_owned())));
        assert_eq!((is_down(&one), is_down(&two)), ([true, false], [false, false]));
    }

    #[test]
    fn what_is_known_stays_when_what_is_watched_is_replaced() {
        let mut state = State::default();
        let zone = watched("a.example", &check_of("www.example", 10));
        assert!(state.replace(Whose::Configuration, &zone));
        fail(&mut state, [192, 0, 2, 0]);
        // The records have other places in memory, and other owners.
        let again = watched("b.example", &check_of("www.example", 10));
        assert!(!state.replace(Whose::Configuration, &again));
        assert_eq!(is_down(&again), [true, false]);
        // Of records that stay, a check that has changed goes on from where they are.
        let mut changed = again.clone();
        for watched in &mut changed {
            let check = check_of("www.example", 20);
            *watched = Arc::new(Watched { check, ..Watched::clone(watched) });
        }
        assert!(state.replace(Whose::Configuration, &changed));
        assert_eq!((is_down(&changed), state.probes.len()), ([true, false], 2));
        let known = state.probes.values().find(|probe| probe.address == IpAddr::from([192, 0, 2, 0]));
        assert!(known.is_some_and(|probe| !probe.is_up && probe.check.interval.as_secs() == 20));
        // The root's zone is not the configuration.
        assert!(!state.replace(of_zone(""), &watched("c.example", &check_of("www.example", 20))));
        assert_eq!(state.records.len(), 4);
        // A report about something that is not watched any more is for nobody.
        assert!(!state.hear(1_000_000, Ok(())));
    }

    #[test]
    fn what_is_new_is_tried_before_its_interval_is_over() {
        let mut state = State::default();
        let many: Vec<Arc<Watched>> = (0..1000)
            .flat_map(|number| watched("a.example", &check_of(&format!("h{number}.example"), 1)))
            .collect();
        let begin = Instant::now();
        assert!(state.replace(Whose::Configuration, &many));
        let last = state.due.iter().map(|Reverse((due, _))| *due).max().expect("something is due");
        assert!(last <= Instant::now() + Duration::from_secs(1) && last >= begin + Duration::from_secs(1));
    }
}
