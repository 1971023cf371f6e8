//! Two network namespaces with a pair of virtual interfaces between them: how AF_XDP is measured
//! without a card.
//!
//! What comes in is received by threads of the kernel (threaded NAPI), one for each end, kept to
//! the core of that end. Otherwise whoever sends would do it, and half of what a server costs would
//! be charged to the load generator.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

use xdp::headers::{Flow, Mac};
use xdp::{DeviceOptions, Interface, Standing};

use crate::sys::{self, Offload};

/// Where servers listen; the namespace is theirs alone.
const PORT: u16 = 53;
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// Who may ask, as servers' files call it.
pub const CLIENTS: &str = "10.77.0.0/24";

/// One end: a namespace with an interface.
#[derive(Debug)]
pub struct End {
    namespace: String,
    /// The interface's name.
    pub interface: String,
    /// Its station.
    pub mac: Mac,
    file: File,
}

/// Both ends. Gone when dropped.
#[derive(Debug)]
pub struct Pair {
    /// Whence is asked.
    pub client: End,
    /// Where servers run.
    pub server: End,
    cores: [Vec<usize>; 2],
    _names: Names,
}

/// The namespaces' names, removed when dropped: what is half made goes, too.
#[derive(Debug)]
struct Names([String; 2]);

impl Drop for Names {
    fn drop(&mut self) {
        for name in &self.0 {
            // With a namespace go its interfaces, and with one end of a pair the other.
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

impl Pair {
    /// Makes both ends, or says why this machine or our rights do not allow it.
    pub fn new(client_cores: &[usize], server_cores: &[usize]) -> Result<Self, String> {
        let id = process::id();
        let names = Names([format!("gannet-bench-{id}-c"), format!("gannet-bench-{id}-s")]);
        let interfaces = [format!("gbc{id}"), format!("gbs{id}")];
        let ([client, server], [client_interface, server_interface]) = (&names.0, &interfaces);
        ip(&format!("netns add {client}"))?;
        ip(&format!("netns add {server}"))?;
        ip(&format!(
            "link add {client_interface} netns {client} type veth peer name {server_interface} netns {server}"
        ))?;
        for ((namespace, interface), address) in names.0.iter().zip(&interfaces).zip([CLIENT, SERVER]) {
            ip(&format!("-n {namespace} address add {address}/24 dev {interface}"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
            ip(&format!("-n {namespace} link set {interface} up"))?;
        }
        let client = End::open(client, client_interface)?;
        let server = End::open(server, server_interface)?;
        let cores = [client_cores.to_vec(), server_cores.to_vec()];
        let pair = Self { client, server, cores, _names: names };
        pair.check()?;
        pair.pin()?;
        Ok(pair)
    }

    /// Says what is in the way of AF_XDP, if anything is.
    fn check(&self) -> Result<(), String> {
        let _inside = self.enter_server()?;
        let facts = xdp::facts(Some(&DeviceOptions::new(&self.server.interface)));
        let bad: Vec<String> =
            facts.iter().filter(|fact| fact.standing == Standing::Bad).map(ToString::to_string).collect();
        if bad.is_empty() { Ok(()) } else { Err(bad.join("; ")) }
    }

    /// Keeps the receiving threads to their cores.
    pub fn pin(&self) -> Result<(), String> {
        for (end, cores) in [&self.client, &self.server].iter().zip(&self.cores) {
            let threads = end.receivers();
            if threads.is_empty() {
                return Err(format!("no thread receives for {}: threaded NAPI is needed", end.interface));
            }
            threads.iter().for_each(|thread| sys::pin_process(*thread, cores));
        }
        Ok(())
    }

    /// Takes off what programs were left on the interfaces: those attached by netlink outlive their
    /// process.
    pub fn clear(&self) {
        for End { namespace, interface, .. } in [&self.client, &self.server] {
            for kind in ["xdpdrv", "xdpgeneric"] {
                // There is usually none.
                let _ = ip(&format!("-n {namespace} link set dev {interface} {kind} off"));
            }
        }
    }

    /// Returns where servers listen.
    pub const fn address(&self) -> SocketAddr {
        SocketAddr::new(std::net::IpAddr::V4(SERVER), PORT)
    }

    /// Returns the flow of a query from a port of the client's.
    pub const fn flow(&self, port: u16) -> Flow {
        Flow {
            source: SocketAddr::new(std::net::IpAddr::V4(CLIENT), port),
            destination: self.address(),
            source_mac: self.client.mac,
            destination_mac: self.server.mac,
            vlan: None,
        }
    }

    /// Moves the calling thread to the server's end; what it starts from now on is there, too.
    pub fn enter_server(&self) -> Result<Inside, String> {
        Inside::enter(&self.server.file)
    }

    /// Does something at the client's end.
    pub fn at_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, String> {
        let worker = || -> Result<T, String> {
            let _inside = Inside::enter(&self.client.file)?;
            Ok(work())
        };
        thread::scope(|scope| scope.spawn(worker).join())
            .map_err(|_| "a thread of this tool panicked".to_owned())?
    }

    /// Returns the CPU time that receiving for the server has used so far.
    pub fn receive_cpu(&self) -> Duration {
        let of = |thread: u32| {
            let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap_or_default();
            text.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        Duration::from_nanos(self.server.receivers().into_iter().map(of).sum())
    }
}

impl End {
    fn open(namespace: &str, interface: &str) -> Result<Self, String> {
        let path = format!("/run/netns/{namespace}");
        let file = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        let mac = {
            let _inside = Inside::enter(&file)?;
            let offload = |offload, wanted| {
                sys::set_offload(interface, offload, wanted).map_err(|error| format!("{interface}: {error}"))
            };
            // So that a virtual interface receives by NAPI without a program, too.
            offload(Offload::ReceiveGrouping, true)?;
            offload(Offload::SendSegmenting, false)?;
            let found = Interface::find(interface).map_err(|error| error.to_string())?;
            found.mac.ok_or_else(|| format!("{interface} is no Ethernet interface"))?
        };
        let threaded = format!("echo 1 > /sys/class/net/{interface}/threaded");
        // In there /sys shows that namespace's interfaces.
        let mut command = Command::new("ip");
        run(command.args(["netns", "exec", namespace, "sh", "-c", &threaded]))?;
        Ok(Self { namespace: namespace.to_owned(), interface: interface.to_owned(), mac, file })
    }

    /// Returns how many packets the interface could not hand over to the other end.
    pub fn dropped_sending(&self) -> Result<u64, String> {
        let _inside = Inside::enter(&self.file)?;
        let path = "/proc/thread-self/net/dev";
        let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        dropped_sending(&text, &self.interface)
            .ok_or_else(|| format!("{path}: nothing of {}", self.interface))
    }

    /// Returns the threads of the kernel that receive for this end.
    fn receivers(&self) -> Vec<u32> {
        let wanted = format!("napi/{}-", self.interface);
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .filter(|pid| {
                fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(&wanted))
            })
            .collect()
    }
}

/// Reads how many packets an interface dropped that it was to send (proc_net_dev): eight numbers of
/// receiving come first, and the fourth of sending is meant.
fn dropped_sending(text: &str, interface: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines.find(|(name, _)| name.trim() == interface)?;
    numbers.split_whitespace().nth(11)?.parse().ok()
}

/// The calling thread is in another network namespace until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct Inside {
    home: File,
}

impl Inside {
    pub(crate) fn enter(namespace: &File) -> Result<Self, String> {
        let wrong = |error| format!("cannot enter a network namespace: {error}");
        let home = File::open("/proc/thread-self/ns/net").map_err(wrong)?;
        sys::enter_network(namespace).map_err(wrong)?;
        Ok(Self { home })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // Whoever could leave can go back.
        let _ = sys::enter_network(&self.home);
    }
}

pub(crate) fn ip(arguments: &str) -> Result<(), String> {
    run(Command::new("ip").args(arguments.split(' ')))
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("cannot start {name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(if said.is_empty() { format!("{name} {}", output.status) } else { format!("{name}: {said}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_of_interfaces_is_read() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
                    lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16\n  \
                    gbs1: 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26\n";
        assert_eq!(dropped_sending(text, "gbs1"), Some(22));
        assert_eq!(dropped_sending(text, "gbs"), None);
    }
}
