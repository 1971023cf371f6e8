//! The server whose changes are measured: its files, and the process.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use wire::Rtype;

use super::Order;
use crate::probe::{self, Kind, Probe};
use crate::process::Server;
use crate::queries::Ask;
use crate::session::free_port;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// From one look at the memory to the next, and how many that are alike make a rest.
const GLANCE: Duration = Duration::from_millis(500);
const ALIKE: usize = 40;
/// From one question to the next.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(10);
/// The address of the first name that it knows.
const FIRST_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Returns the question for the first name that it knows.
fn first_host() -> Ask {
    Ask::new("h0.hosts.test", Rtype::A)
}

/// A configuration in a folder.
pub(super) struct Subject {
    folder: PathBuf,
    program: PathBuf,
    core: usize,
    address: SocketAddr,
    api: SocketAddr,
    /// The set whose names are blocked.
    blocked: &'static str,
    more: String,
}

impl Subject {
    pub(super) fn new(order: &Order, name: &str) -> Result<Self, String> {
        let folder = order.folder.join(name);
        let subject = Self {
            program: order.gannet.clone(),
            core: order.cores.0,
            address: free_port()?,
            api: free_port()?,
            blocked: "live",
            more: String::new(),
            folder,
        };
        let hosts: String = (0..1000).fold(String::new(), |mut text, at| {
            let _ = writeln!(text, "192.0.2.{} h{at}.hosts.test", at % 250 + 1);
            text
        });
        fs::create_dir_all(&subject.folder)
            .and_then(|()| fs::write(subject.folder.join("hosts"), hosts))
            .map_err(|error| format!("{}: {error}", subject.folder.display()))?;
        Ok(subject)
    }

    /// Gives it a set of so many names.
    pub(super) fn with_large_set(mut self, names: usize) -> Result<Self, String> {
        let mut text = String::new();
        for at in 0..names {
            // Scattered, so that the names are in no order.
            let _ = writeln!(text, "domain{}.large.test", (at as u32).wrapping_mul(0x9e37_79b1));
        }
        let path = self.folder.join("large.txt");
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        self.blocked = "large";
        self.more.push_str("  large: {lists: \"names:large.txt\"}\n");
        Ok(self)
    }

    /// Has it record every query.
    pub(super) fn with_recorder(mut self) -> Self {
        self.more.push_str("recorder: {file: queries.db}\n");
        self
    }

    /// Where its control socket is.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("control")
    }

    /// Where its HTTP API is.
    pub(super) const fn api(&self) -> SocketAddr {
        self.api
    }

    /// Starts it, and waits for its first answer.
    pub(super) fn start(&self) -> Result<Running, String> {
        let file = self.folder.join("gannet.yaml");
        let block = self.blocked;
        let text = format!(
            "server: {{workers: 1, state-directory: \"{}\"}}\nlisten: [\"{}\"]\nallow: [127.0.0.1]\n\
             control: {{listen: [\"{}\"]}}\nlog: {{level: warn}}\nhosts: {{files: [hosts], ttl: 1h}}\n\
             policy:\n  main:\n    - [hosts, local]\n    - if: qname in {block}\n      do: block\n    - reject(nxdomain)\n\
             sets:\n  live: {{dynamic: {{holds: names, limit: 1000000}}}}\n{}",
            self.folder.join("state").display(),
            self.address,
            self.api,
            self.more
        );
        fs::create_dir_all(self.folder.join("state"))
            .and_then(|()| fs::write(&file, text))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let mut command = Command::new(&self.program);
        command.args(["run", "--config"]).arg(&file).arg("--socket").arg(self.socket());
        let started = Instant::now();
        let mut server = Server::start(command, &[self.core], &self.folder.join("log"))?;
        let question =
            Probe { ask: first_host(), addresses: vec![FIRST_ADDRESS], ttl_max: 3600, hashes_min: 0 };
        let ready_after =
            probe::until_ready(self.address, Kind::Dns, &question, &mut server, started, PATIENCE)?;
        wait_for(&self.socket())?;
        Ok(Running { server, address: self.address, ready_after })
    }
}

/// The process.
pub(super) struct Running {
    server: Server,
    pub(super) address: SocketAddr,
    /// From its start to its first answer.
    pub(super) ready_after: Duration,
}

impl Running {
    /// An error unless the server answers `name` with `address` now.
    pub(super) fn expect(&self, name: &str, address: &str) -> Result<(), String> {
        let wanted: IpAddr = address.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        if probe::has_address(self.address, &Ask::new(name, Rtype::A), wanted) {
            Ok(())
        } else {
            Err(format!("{name} is not {address}, although the change is done"))
        }
    }

    /// Asks it a question again and again until `is_done`, or `patience` is over.
    pub(super) fn ask_until(&self, patience: Duration, is_done: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_done() && began.elapsed() < patience {
            probe::has_address(self.address, &first_host(), FIRST_ADDRESS);
            thread::park_timeout(BETWEEN_QUESTIONS);
        }
    }

    /// Returns the resident octets once they no longer change, or when `patience` is over.
    pub(super) fn resident_at_rest(&self, patience: Duration) -> u64 {
        let began = Instant::now();
        let mut seen = vec![self.server.usage().resident_octets];
        while began.elapsed() < patience {
            thread::park_timeout(GLANCE);
            seen.push(self.server.usage().resident_octets);
            let last = seen.iter().rev().take(ALIKE);
            if seen.len() > ALIKE && last.clone().all(|octets| Some(octets) == seen.last()) {
                break;
            }
        }
        seen.last().copied().unwrap_or_default()
    }

    /// Returns the processor time of its workers so far.
    pub(super) fn workers_cpu(&self) -> Duration {
        let tasks = format!("/proc/{}/task", self.server.pid());
        let mut all = Duration::ZERO;
        for entry in fs::read_dir(tasks).into_iter().flatten().flatten() {
            let read = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            if read("comm").starts_with("worker-") {
                // schedstat: nanoseconds on a processor, nanoseconds of waiting for one, slices.
                let spent = read("schedstat").split(' ').next().and_then(|text| text.parse().ok());
                all += Duration::from_nanos(spent.unwrap_or(0));
            }
        }
        all
    }
}

/// Waits until the control socket can be connected to.
fn wait_for(socket: &Path) -> Result<(), String> {
    let began = Instant::now();
    while std::os::unix::net::UnixStream::connect(socket).is_err() {
        if began.elapsed() > PATIENCE {
            return Err(format!("{}: nobody listens", socket.display()));
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    Ok(())
}
