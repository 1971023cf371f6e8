//! The stub upstreams of a session, and where they listen.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::event::Change;
use super::{LATE_MS, Plans};
use crate::certificate::Certificate;
use crate::probe;
use crate::process::Server;
use crate::queries::Dice;

/// How long a stub may take to answer after its start.
const START_MAX: Duration = Duration::from_secs(5);

/// How often a starting stub is looked at.
const POLL: Duration = Duration::from_millis(1);
/// Ports of servers and stubs: below those that Linux hands out (`ip_local_port_range`, from
/// 32768).
const PORTS: Range<u16> = 10_000..32_768;
/// Ports tried.
const ATTEMPTS_MAX: usize = 1000;

/// The stub upstreams of a session.
pub(super) struct Stubs<'a> {
    plans: &'a Plans,
    certificate: &'a Certificate,
    list: Vec<Stub>,
}

/// One upstream.
struct Stub {
    /// What rivals' files call its port.
    name: &'static str,
    address: SocketAddr,
    /// Where it answers over HTTPS.
    https: SocketAddr,
    delay_ms: u32,
    /// Absent while it is stopped.
    process: Mutex<Option<Server>>,
}

impl<'a> Stubs<'a> {
    /// Starts all of them.
    pub(super) fn start(plans: &'a Plans, certificate: &'a Certificate) -> Result<Self, String> {
        let mut list = Vec::new();
        for (name, delay_ms) in [("stub", 0), ("race1", LATE_MS), ("race2", 0), ("race3", 0)] {
            let (address, https) = (free_port()?, free_port()?);
            let stub = Stub { name, address, https, delay_ms, process: Mutex::new(None) };
            stub.start(plans)?;
            list.push(stub);
        }
        Ok(Self { plans, certificate, list })
    }

    /// Returns each name with its port.
    pub(super) fn ports(&self) -> impl Iterator<Item = (&'static str, u16)> {
        self.list.iter().map(|stub| (stub.name, stub.address.port()))
    }

    /// Returns the port at which the stub called `stub` answers over HTTPS.
    pub(super) fn https_port(&self) -> u16 {
        self.list.first().map_or(0, |stub| stub.https.port())
    }

    /// Returns the certificate that the stub, and the servers under test, show.
    pub(super) const fn certificate(&self) -> &Certificate {
        self.certificate
    }

    /// Returns how many queries they have had since each of them started.
    pub(super) fn count(&self) -> Result<u64, String> {
        self.list.iter().map(|stub| probe::stub_count(stub.address)).sum()
    }

    /// Changes the stub called `name`.
    pub(super) fn change(&self, name: &str, change: Change) -> Result<(), String> {
        let stub = self.list.iter().find(|stub| stub.name == name);
        let stub = stub.ok_or_else(|| format!("there is no stub \"{name}\""))?;
        match change {
            Change::Stop => {
                stub.stop();
                Ok(())
            }
            Change::Start => stub.start(self.plans),
            Change::Loss(ppm) => probe::stub_set(stub.address, "loss", ppm),
            Change::DelayMs(delay) => probe::stub_set(stub.address, "delay", delay),
            Change::Ttl(seconds) => probe::stub_set(stub.address, "ttl", seconds),
            Change::Rcode(rcode) => probe::stub_set(stub.address, "rcode", u32::from(rcode)),
        }
    }

    /// Starts again those that have ended.
    pub(super) fn revive(&self) -> Result<(), String> {
        self.list.iter().try_for_each(|stub| stub.start(self.plans))
    }

    /// Puts all of them back to how they were at the start.
    pub(super) fn restore(&self) -> Result<(), String> {
        for stub in &self.list {
            stub.stop();
            stub.start(self.plans)?;
        }
        Ok(())
    }
}

impl Stub {
    /// Starts the process unless it runs; it ends with the thread that calls this.
    fn start(&self, plans: &Plans) -> Result<(), String> {
        let mut process = self.process.lock().map_err(|_| "a thread of this tool panicked".to_owned())?;
        if process.as_mut().is_some_and(|process| process.obituary().is_none()) {
            return Ok(());
        }
        let this =
            std::env::current_exe().map_err(|error| format!("cannot find this tool itself: {error}"))?;
        let (listen, delay_ms) = (self.address.to_string(), self.delay_ms.to_string());
        let log = plans.work.join(format!("{}.log", self.name));
        let spawn = || {
            let mut command = Command::new(&this);
            command.args(["stub", "--listen", &listen, "--delay-ms", &delay_ms]);
            command.args(["--https", &self.https.to_string(), "--certificate"]).arg(&plans.work);
            Server::start(command, &plans.load_cores, &log)
        };
        let process = process.insert(spawn()?);
        let deadline = Instant::now() + START_MAX;
        while let Err(error) = probe::stub_count(self.address) {
            let obituary = process.obituary();
            if Instant::now() > deadline {
                return Err(obituary.unwrap_or(error));
            }
            if obituary.is_some() {
                // Some socket happens to have the port; they come and go.
                *process = spawn()?;
            }
            thread::park_timeout(POLL);
        }
        Ok(())
    }

    fn stop(&self) {
        // A poisoned lock means that the session is being given up.
        if let Ok(mut process) = self.process.lock() {
            drop(process.take());
        }
    }
}

/// Returns a loopback address whose port nobody uses now.
///
/// Not one of those that Linux gives to sockets that ask for none: while a stub is stopped, its
/// port has to stay free.
pub(crate) fn free_port() -> Result<SocketAddr, String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut dice = Dice::new(now.as_nanos() as u64);
    let mut last = None;
    for _ in 0..ATTEMPTS_MAX {
        let port = PORTS.start + dice.below(usize::from(PORTS.end - PORTS.start)) as u16;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        // A server may want TCP on the same port.
        match UdpSocket::bind(address).and_then(|_| TcpListener::bind(address)) {
            Ok(_) => return Ok(address),
            Err(error) => last = Some(error),
        }
    }
    Err(format!("no free port on loopback: {}", last.map_or_else(String::new, |error| error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_are_none_that_the_kernel_hands_out() {
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let first: u16 =
            range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(u16::MAX);
        for _ in 0..10 {
            let port = free_port().expect("loopback has free ports").port();
            assert!(PORTS.contains(&port) && port < first.max(PORTS.end), "{port}");
        }
    }
}
