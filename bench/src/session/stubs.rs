//! The stub upstreams of a session, and where they listen.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{LATE_MS, Plans};
use crate::probe;
use crate::process::Server;

/// The stub upstreams of a session.
pub(super) struct Stubs {
    pub(super) plain: SocketAddr,
    /// The late one first.
    pub(super) race: [SocketAddr; 3],
    _processes: Vec<Server>,
}

impl Stubs {
    pub(super) fn start(plans: &Plans) -> Result<Self, String> {
        let this =
            std::env::current_exe().map_err(|error| format!("cannot find this tool itself: {error}"))?;
        let mut processes = Vec::new();
        let mut start = |delay_ms: u64| -> Result<SocketAddr, String> {
            let address = free_port()?;
            let mut command = Command::new(&this);
            command.args(["stub", "--listen", &address.to_string(), "--delay-ms", &delay_ms.to_string()]);
            let log = plans.work.join(format!("stub-{}.log", address.port()));
            let process = Server::start(command, &plans.load_cores, &log)?;
            processes.push(process);
            let deadline = Instant::now() + Duration::from_secs(5);
            while let Err(error) = probe::stub_count(address) {
                if Instant::now() > deadline {
                    return Err(error);
                }
            }
            Ok(address)
        };
        let plain = start(0)?;
        let race = [start(LATE_MS)?, start(0)?, start(0)?];
        Ok(Self { plain, race, _processes: processes })
    }

    pub(super) fn count(&self) -> Result<u64, String> {
        let mut sum = probe::stub_count(self.plain)?;
        for stub in self.race {
            sum += probe::stub_count(stub)?;
        }
        Ok(sum)
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
