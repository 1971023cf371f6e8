//! Takes network devices' interfaces into use (AF_XDP), and knows the addresses behind their names.
//!
//! Never looks into a datagram. It is called before privileges are given up; an interface that is
//! not there leaves its queries to the kernel's sockets.

#![forbid(unsafe_code)]

pub mod interfaces;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::ListenerId;
use listen::{Bound, XdpQueue};
use plan::devices::{DevicePlan, Existing, Mode, Program};
use plan::listeners::Datagrams;
use settings::Startup;
use tracing::{debug, info, warn};
use wire::Prefix;
use xdp::{Action, BusyPoll, Device, DeviceError, DeviceOptions, Routes, Verdicts};

/// Banned prefixes that statistics name: of an interface, those that cost most.
pub const BANNED_SHOWN_MAX: usize = 100;

/// The interfaces in use. Dropping them leaves everything to the kernel's sockets.
#[derive(Default)]
pub struct Devices {
    devices: Vec<Device>,
    /// Interfaces of the configuration that are left to the kernel's sockets.
    unused: Vec<String>,
    /// Where queries may go to, by listener.
    wanted: Arc<[(SocketAddr, ListenerId)]>,
    /// What each interface takes at present.
    taken: Mutex<Vec<BTreeSet<SocketAddr>>>,
    bans: Mutex<Bans>,
}

impl Devices {
    /// Returns whether there is one.
    pub const fn are_some(&self) -> bool {
        !self.devices.is_empty()
    }
}

/// Prefixes whose queries the programs drop.
#[derive(Default)]
struct Bans {
    /// Those of the configuration.
    fixed: BTreeSet<(IpAddr, u8)>,
    /// Those that come and go.
    live: Banned,
    /// What the programs know.
    known: BTreeMap<(IpAddr, u8), Action>,
}

/// Who is banned while the server runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Banned {
    /// The prefixes.
    pub prefixes: BTreeSet<(IpAddr, u8)>,
    /// Prefixes that are let in although they are in one of those that were banned for their rate.
    pub exempt: Vec<(IpAddr, u8)>,
}

/// The interfaces, and what each worker gets of them.
#[derive(Default)]
pub struct Opened {
    /// The interfaces.
    pub devices: Devices,
    /// What each worker serves of them.
    pub queues: Vec<Vec<XdpQueue>>,
}

/// An interface that was demanded and cannot be had.
#[derive(Debug)]
pub struct OpenError {
    /// Its name.
    pub interface: String,
    /// Why.
    pub error: DeviceError,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the interface {} cannot be used: {}", self.interface, self.error)
    }
}

impl std::error::Error for OpenError {}

/// Opens the interfaces of the configuration.
///
/// # Errors
///
/// One that was demanded cannot be had.
pub fn open(startup: &Startup, bound: &[Bound], workers: usize) -> Result<Opened, OpenError> {
    let plans = config::devices(startup);
    let mut queues: Vec<Vec<XdpQueue>> = (0..workers).map(|_| Vec::new()).collect();
    let mut devices = Devices { wanted: wanted(startup, bound), ..Devices::default() };
    let reply_octets_max = config::listening(startup).plan.udp.reply_octets_max;
    for plan in &plans {
        let Some(options) = options(plan) else {
            devices.unused.push(plan.interface.clone());
            continue;
        };
        let (device, sockets) = match Device::open(&options) {
            Ok(opened) => opened,
            Err(error) if plan.mode == Mode::Auto => {
                warn!(interface = plan.interface, %error, "its packets stay with the kernel's network stack");
                devices.unused.push(plan.interface.clone());
                continue;
            }
            Err(error) => return Err(OpenError { interface: plan.interface.clone(), error }),
        };
        report(plan, &device, sockets.len(), workers);
        let interface = device.interface();
        for socket in sockets {
            let queue = XdpQueue {
                mac: interface.mac.unwrap_or_default(),
                mtu: interface.mtu,
                destinations: Arc::clone(&devices.wanted),
                reply_octets_max,
                socket,
            };
            // Queue by queue to worker by worker, as interrupts are usually spread.
            if let Some(own) = queues.get_mut(queue.socket.queue() as usize % workers.max(1)) {
                own.push(queue);
            }
        }
        devices.devices.push(device);
    }
    devices.taken = Mutex::new(vec![BTreeSet::new(); devices.devices.len()]);
    devices.look();
    Ok(Opened { devices, queues })
}

/// Returns how an interface is opened; `None` if it is left to the kernel's sockets.
fn options(plan: &DevicePlan) -> Option<DeviceOptions> {
    let mode = match plan.mode {
        Mode::Off => return None,
        Mode::Auto => xdp::Mode::Auto,
        Mode::ZeroCopy => xdp::Mode::ZeroCopy,
        Mode::Native => xdp::Mode::Native,
        Mode::Generic => xdp::Mode::Generic,
    };
    Some(DeviceOptions {
        mode,
        program: match &plan.program {
            Program::Ours(Existing::Keep) => xdp::Program::Ours(xdp::Existing::Keep),
            Program::Ours(Existing::Replace) => xdp::Program::Ours(xdp::Existing::Replace),
            Program::Foreign(map) => xdp::Program::Foreign(map.clone()),
        },
        queues: plan.queues,
        ring_entries: plan.ring_entries,
        routes: routes(plan.checks_routes),
        huge_pages: plan.huge_pages,
        busy_poll: plan
            .busy_poll
            .map(|poll| BusyPoll { microseconds: poll.microseconds, budget: poll.budget }),
        ..DeviceOptions::new(&plan.interface)
    })
}

/// Returns how far the way back is trusted.
const fn routes(are_checked: bool) -> Routes {
    if are_checked { Routes::Check } else { Routes::Trust }
}

fn report(plan: &DevicePlan, device: &Device, sockets: usize, workers: usize) {
    let interface = &plan.interface;
    for error in device.declined() {
        info!(interface, %error, "a better mode does not work");
    }
    let mode = device.reached();
    info!(interface, %mode, queues = sockets, "queries are taken past the kernel's network stack");
    if device.filter().is_some() {
        warn_of_forwarding(interface, plan.checks_routes);
    }
    if let Some(wanted) = plan.queues.filter(|wanted| *wanted as usize > sockets) {
        warn!(interface, wanted, queues = sockets, "the interface has fewer queues than xdp.queues asks for");
    }
    let receiving = device.interface().queues.receive as usize;
    if sockets < receiving {
        info!(interface, queues = receiving, "what comes to other queues goes to the kernel's sockets");
    }
    if sockets > workers {
        debug!(interface, workers, "workers serve several queues each");
    }
}

/// Warns if the way back is to be checked and nothing can be found.
fn warn_of_forwarding(interface: &str, checks_routes: bool) {
    let forwards = if checks_routes { xdp::loopback_forwards() } else { [true; 2] };
    for (family, _) in ["ipv4", "ipv6"].iter().zip(forwards).filter(|(_, forwards)| !forwards) {
        let setting = format!("net.{family}.conf.lo.forwarding");
        warn!(
            interface,
            setting, "is off, so no routes are found and its queries go to the kernel's sockets"
        );
    }
}

/// Returns where datagrams may go to, wildcard addresses last.
fn wanted(startup: &Startup, bound: &[Bound]) -> Arc<[(SocketAddr, ListenerId)]> {
    let configured = startup.listen.as_deref().unwrap_or(&[]);
    let has_proxies =
        |index: usize| configured.get(index).is_some_and(|listener| !listener.proxy_protocol_from.is_empty());
    let mut wanted: Vec<_> = bound
        .iter()
        .enumerate()
        // Peers that send a PROXY header are left to the kernel's sockets, which read it.
        .filter(|(index, bound)| bound.transports.datagrams == Some(Datagrams::Dns) && !has_proxies(*index))
        .map(|(index, bound)| (bound.address, ListenerId(u16::try_from(index).unwrap_or(u16::MAX))))
        .collect();
    wanted.sort_by_key(|(address, _)| address.ip().is_unspecified());
    wanted.into()
}

/// Returns the addresses that stand for `wanted` on an interface: for a wildcard, all that this
/// machine has and that can be reached by it.
fn destinations(
    wanted: &[(SocketAddr, ListenerId)],
    addresses: &[(IpAddr, u32)],
    interface: u32,
) -> BTreeSet<SocketAddr> {
    let is_reachable = |address: IpAddr, at: u32| match address {
        IpAddr::V4(address) => !address.is_loopback(),
        IpAddr::V6(address) => {
            !address.is_loopback() && (!address.is_unicast_link_local() || at == interface)
        }
    };
    let mut found = BTreeSet::new();
    for (at, _) in wanted {
        if at.ip().is_unspecified() {
            let of_family = addresses.iter().filter(|(address, _)| address.is_ipv4() == at.is_ipv4());
            let reachable = of_family.filter(|(address, index)| is_reachable(*address, *index));
            found.extend(reachable.map(|(address, _)| SocketAddr::new(*address, at.port())));
        } else {
            found.insert(SocketAddr::new(at.ip(), at.port()));
        }
    }
    found
}

impl Devices {
    /// Follows the machine's addresses. Called once a second.
    pub fn look(&self) {
        if self.devices.is_empty() {
            return;
        }
        let addresses = match xdp::addresses() {
            Ok(addresses) => addresses,
            Err(error) => return debug!(%error, "the machine's addresses cannot be read"),
        };
        let mut taken = lock(&self.taken);
        for (device, taken) in self.devices.iter().zip(taken.iter_mut()) {
            // A program of somebody else's has destinations of its own.
            let Some(filter) = device.filter() else { continue };
            let interface = device.interface();
            let wanted = destinations(&self.wanted, &addresses, interface.index);
            for destination in wanted.difference(taken) {
                if let Err(error) = filter.serve(*destination) {
                    warn!(interface = interface.name, %destination, %error, "left to the kernel's sockets");
                }
            }
            for destination in taken.difference(&wanted) {
                if let Err(error) = filter.forget(*destination) {
                    warn!(interface = interface.name, %destination, %error, "cannot be left to the kernel");
                }
            }
            *taken = wanted;
        }
    }

    /// Has the programs check the way back, or not.
    pub fn check_routes(&self, are_checked: bool) {
        for device in &self.devices {
            let interface = &device.interface().name;
            let Some(filter) = device.filter() else { continue };
            if let Err(error) = filter.check_routes(routes(are_checked)) {
                warn!(interface, %error, "xdp.check-routes stays as it was");
            }
            warn_of_forwarding(interface, are_checked);
        }
    }

    /// Has the programs drop queries from these prefixes, too: those that the configuration bans.
    pub fn ban(&self, prefixes: &[Prefix]) {
        let mut bans = lock(&self.bans);
        bans.fixed = prefixes.iter().map(|prefix| (prefix.address(), prefix.bits())).collect();
        self.apply(&mut bans);
    }

    /// Returns whether there are programs that drop the queries of who is banned.
    pub fn have_programs(&self) -> bool {
        !self.devices.is_empty()
    }

    /// The same for those that are banned while the server runs. Called once a second.
    pub fn ban_live(&self, banned: Banned) {
        let mut bans = lock(&self.bans);
        if !self.devices.is_empty() && bans.live != banned {
            bans.live = banned;
            self.apply(&mut bans);
        }
    }

    /// Tells the programs of all bans, and that those that ended have.
    fn apply(&self, bans: &mut Bans) {
        let wanted = actions(&bans.fixed, &bans.live);
        for device in &self.devices {
            let Some(filter) = device.filter() else { continue };
            let interface = &device.interface().name;
            let mut failed = None;
            // Exceptions first, so that nobody whom one is for is dropped in between.
            let mut news: Vec<_> =
                wanted.iter().filter(|(prefix, action)| bans.known.get(prefix) != Some(action)).collect();
            news.sort_by_key(|(_, action)| **action == Action::Drop);
            for ((address, bits), action) in news {
                if let Err(error) = filter.block(*address, *bits, *action) {
                    failed = Some(error);
                }
            }
            for (address, bits) in bans.known.keys().filter(|prefix| !wanted.contains_key(prefix)) {
                // The gate would let them in, and they do not get there.
                if let Err(error) = filter.unblock(*address, *bits) {
                    warn!(interface, prefix = %format_args!("{address}/{bits}"), %error, "is still dropped");
                }
            }
            if let Some(error) = failed {
                warn!(interface, %error, "not all banned clients are dropped by the program; the gate drops the others");
            }
        }
        bans.known = wanted;
    }

    /// Tells what was counted, by group and name: what programs did with frames, how many of them
    /// each banned prefix cost, and how sockets and rings do.
    pub fn read(&self, mut each: impl FnMut(&str, &str, u64)) {
        for interface in &self.unused {
            each(&format!("xdp.{interface}"), "mode-off", 1);
        }
        for device in &self.devices {
            let group = format!("xdp.{}", device.interface().name);
            each(&group, &format!("mode-{}", device.reached()), 1);
            for meter in device.meters() {
                let group = format!("{group}.queue-{}", meter.queue());
                meter.named().for_each(|(name, value)| each(&group, name, value));
            }
            let Some(filter) = device.filter() else { continue };
            for (verdict, count) in filter.verdicts().iter().flat_map(Verdicts::named) {
                each(&group, verdict, count);
            }
            if lock(&self.bans).known.is_empty() {
                continue;
            }
            let mut blocks = filter.blocks().unwrap_or_default();
            blocks.retain(|block| block.action == Action::Drop);
            blocks.sort_by_key(|block| std::cmp::Reverse(block.frames));
            let group = format!("{group}.banned");
            for block in blocks.iter().take(BANNED_SHOWN_MAX) {
                each(&group, &format!("{}/{}", block.prefix, block.bits), block.frames);
            }
        }
    }
}

/// Returns what becomes of queries from which prefixes; the longest one counts.
fn actions(fixed: &BTreeSet<(IpAddr, u8)>, live: &Banned) -> BTreeMap<(IpAddr, u8), Action> {
    let exempt = live.exempt.iter().map(|prefix| (*prefix, Action::Take));
    let banned = fixed.iter().chain(&live.prefixes).map(|prefix| (*prefix, Action::Drop));
    // What is both is banned: the last one counts here, and the gate has the last word on what gets
    // there.
    exempt.chain(banned).collect()
}

/// Locks a mutex. A panic ends the process, so that a poisoned one is never seen.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &[&str], expect: &[&str]) {
        let wanted: Vec<_> = wanted.iter().map(|at| (at.parse().unwrap(), ListenerId(0))).collect();
        let addresses = ["127.0.0.1", "::1", "192.0.2.1", "2001:db8::1", "fe80::1"];
        let mut addresses: Vec<(IpAddr, u32)> =
            addresses.iter().map(|address| (address.parse().unwrap(), 2)).collect();
        addresses.push(("fe80::2".parse().unwrap(), 3));
        let found: Vec<_> = destinations(&wanted, &addresses, 2).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn whoever_has_no_limit_is_not_banned_with_the_neighbours() {
        let prefix = |text: &str| {
            let (address, bits) = text.split_once('/').expect("a slash");
            (address.parse::<IpAddr>().expect("an address"), bits.parse::<u8>().expect("a number"))
        };
        let fixed = BTreeSet::from([prefix("198.51.100.0/24")]);
        let live = Banned {
            prefixes: BTreeSet::from([prefix("192.0.2.0/24")]),
            exempt: vec![prefix("192.0.2.7/32"), prefix("198.51.100.0/24")],
        };
        let expect = [
            ("192.0.2.0/24", Action::Drop),
            ("192.0.2.7/32", Action::Take),
            ("198.51.100.0/24", Action::Drop),
        ];
        let expect: BTreeMap<_, _> = expect.map(|(text, action)| (prefix(text), action)).into();
        assert_eq!(actions(&fixed, &live), expect);
    }

    #[test]
    fn wildcards_stand_for_what_can_be_reached() {
        check(&["0.0.0.0:53"], &["192.0.2.1:53"]);
        check(&["[::]:53"], &["[2001:db8::1]:53", "[fe80::1]:53"]);
        check(&["192.0.2.7:53", "[::]:5300"], &["192.0.2.7:53", "[2001:db8::1]:5300", "[fe80::1]:5300"]);
    }
}
