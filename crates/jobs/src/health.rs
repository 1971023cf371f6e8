//! Looks whether what records lead to works: connects, or asks for a page.
//!
//! A few threads share one list of what is due. A record that fails several times in a row is left out of answers, one that works
//! several times in a row comes back; each change is told once. Workers only read a bit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use config::checks::{Check, CheckKind, Watched};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use tracing::{info, warn};

use crate::http::Trust;
use crate::tls;

/// Checks that are made at the same time.
const THREADS_MAX: usize = 16;
/// Octets of a status line.
const STATUS_OCTETS_MAX: usize = 1024;

/// How a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckState {
    /// What is watched.
    pub watched: Watched,
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

struct Item {
    watched: Watched,
    is_up: bool,
    /// Checks in a row that say otherwise.
    against: u32,
    trouble: Option<String>,
    /// When it is checked next.
    due: Instant,
}

#[derive(Default)]
struct State {
    items: Vec<Item>,
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Which list of items the numbers are of.
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
#[derive(Default)]
pub struct Checker(Arc<Shared>);

fn lock(mutex: &Mutex<State>) -> MutexGuard<'_, State> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Checker {
    /// Checks these from now on. What is watched as before stays as it is.
    pub fn adopt(&self, watched: &[Watched]) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        let mut before = std::mem::take(&mut state.items);
        let now = Instant::now();
        state.generation += 1;
        state.due.clear();
        for (number, watched) in watched.iter().enumerate() {
            let known = before.iter().position(|item| item.watched.is_same(watched));
            // Not all that is new at once.
            let spread = Duration::from_millis(20) * u32::try_from(number).unwrap_or(u32::MAX);
            let item = match known {
                Some(at) => before.swap_remove(at),
                None => Item {
                    watched: watched.clone(),
                    is_up: !watched.is_down(),
                    against: 0,
                    trouble: None,
                    due: now + spread,
                },
            };
            state.due.push(Reverse((item.due, number)));
            state.items.push(item);
        }
        // A check that nothing names any more is not told of any more.
        state.made.retain(|name, _| watched.iter().any(|watched| watched.check.name == *name));
        let threads = state.items.len().min(THREADS_MAX);
        while state.threads < threads {
            state.threads += 1;
            let inside = Arc::clone(&self.0);
            std::thread::Builder::new().name("checks".into()).spawn(move || inside.run())?;
        }
        drop(state);
        self.0.wake.notify_all();
        Ok(())
    }

    /// Returns how everything stands.
    pub fn states(&self) -> Vec<CheckState> {
        let state = lock(&self.0.state);
        let show = |item: &Item| CheckState {
            watched: item.watched.clone(),
            is_up: item.is_up,
            trouble: item.trouble.clone(),
        };
        state.items.iter().map(show).collect()
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
            let Some(Reverse((_, number))) = state.due.pop() else { continue };
            let Some(watched) = state.items.get(number).map(|item| item.watched.clone()) else { continue };
            let generation = state.generation;
            drop(state);
            clients.are_for(generation);
            let outcome = check(&watched, &mut clients);
            state = lock(&self.state);
            if state.generation != generation {
                continue;
            }
            let due = now + watched.check.interval;
            let made = state.made.entry(watched.check.name.clone()).or_default();
            let count = if outcome.is_ok() { &mut made.passed } else { &mut made.failed };
            *count += 1;
            if let Some(item) = state.items.get_mut(number) {
                item.hear(outcome);
                item.due = due;
            }
            state.due.push(Reverse((due, number)));
            self.wake.notify_one();
        }
    }
}

impl Item {
    fn hear(&mut self, outcome: Result<(), String>) {
        let works = outcome.is_ok();
        self.trouble = outcome.err();
        if works == self.is_up {
            self.against = 0;
            return;
        }
        self.against += 1;
        let check = &self.watched.check;
        if self.against < if works { check.rise } else { check.fall } {
            return;
        }
        (self.is_up, self.against) = (works, 0);
        let Watched { name, rtype, address, down, bit, .. } = &self.watched;
        if works {
            down.fetch_and(!(1 << bit), Ordering::Relaxed);
            info!(%name, %rtype, %address, "works again; its record is back");
        } else {
            down.fetch_or(1 << bit, Ordering::Relaxed);
            let why = self.trouble.as_deref().unwrap_or_default();
            warn!(%name, %rtype, %address, why, "does not work; its record is left out");
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

fn check(watched: &Watched, clients: &mut Clients) -> Result<(), String> {
    let Check { kind, port, timeout, .. } = &*watched.check;
    let at = SocketAddr::new(watched.address, *port);
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
