//! The stub upstreams of a session, and where they listen.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::event::Change;
use super::{LATE_MS, Plans};
use crate::probe;
use crate::process::Server;

/// How long a stub may take to answer after its start.
const START_MAX: Duration = Duration::from_secs(5);

/// The stub upstreams of a session.
pub(super) struct Stubs<'a> {
    plans: &'a Plans,
    list: Vec<Stub>,
}

/// One upstream.
struct Stub {
    /// What rivals' files call its port.
    name: &'static str,
    address: SocketAddr,
    delay_ms: u32,
    /// Absent while it is stopped.
    process: Mutex<Option<Server>>,
}

impl<'a> Stubs<'a> {
    /// Starts all of them.
    pub(super) fn start(plans: &'a Plans) -> Result<Self, String> {
        let mut list = Vec::new();
        for (name, delay_ms) in [("stub", 0), ("race1", LATE_MS), ("race2", 0), ("race3", 0)] {
            let stub = Stub { name, address: free_port()?, delay_ms, process: Mutex::new(None) };
            stub.start(plans)?;
            list.push(stub);
        }
        Ok(Self { plans, list })
    }

    /// Returns each name with its port.
    pub(super) fn ports(&self) -> impl Iterator<Item = (&'static str, u16)> {
        self.list.iter().map(|stub| (stub.name, stub.address.port()))
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
            Change::Rcode(rcode) => probe::stub_set(stub.address, "rcode", u32::from(rcode)),
        }
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
        if process.is_some() {
            return Ok(());
        }
        let this =
            std::env::current_exe().map_err(|error| format!("cannot find this tool itself: {error}"))?;
        let mut command = Command::new(&this);
        let (listen, delay_ms) = (self.address.to_string(), self.delay_ms.to_string());
        command.args(["stub", "--listen", &listen, "--delay-ms", &delay_ms]);
        let log = plans.work.join(format!("{}.log", self.name));
        *process = Some(Server::start(command, &plans.load_cores, &log)?);
        let deadline = Instant::now() + START_MAX;
        while let Err(error) = probe::stub_count(self.address) {
            if Instant::now() > deadline {
                return Err(error);
            }
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
pub(super) fn free_port() -> Result<SocketAddr, String> {
    // A server may want TCP on the same port.
    let find = || -> io::Result<SocketAddr> {
        loop {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = socket.local_addr()?;
            if std::net::TcpListener::bind(address).is_ok() {
                return Ok(address);
            }
        }
    };
    find().map_err(|error| format!("no free port on loopback: {error}"))
}
