//! What this machine can do with AF_XDP, and why not more.

use std::fmt;

use crate::device::DeviceOptions;
use crate::filter::{Filter, FilterPlan};
use crate::interface::{Features, Interface};
use crate::socket::{self, Copying, Socket};
use crate::sys::calls;

/// How it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As it should be.
    Good,
    /// It works, but could be better.
    Fair,
    /// In the way of using AF_XDP.
    Bad,
}

impl Standing {
    /// Returns its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Fair => "note",
            Self::Bad => "no",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What.
    pub what: &'static str,
    /// How it looks.
    pub standing: Standing,
    /// What was found, and what to do if it is not good.
    pub found: String,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:4} {}: {}", self.standing.word(), self.what, self.found)
    }
}

/// The capabilities that are needed, with their numbers.
const CAPABILITIES: [(&str, u32); 3] = [("CAP_NET_RAW", 13), ("CAP_NET_ADMIN", 12), ("CAP_BPF", 39)];
/// Can stand in for CAP_BPF and CAP_NET_ADMIN in older kernels.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_IPC_LOCK: u32 = 14;

/// Kernels from which on maps may be changed without rights, if unprivileged programs are
/// forbidden.
const KERNEL_MAPS: (u32, u32) = (5, 19);

/// Kernels from which on programs attached by links are taken off when a process ends.
const KERNEL_MIN: (u32, u32) = (5, 9);

/// Looks at the machine and, if it is named, at an interface. Attaches nothing; opens a socket on a
/// free queue only.
pub fn facts(plan: Option<&DeviceOptions>) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut note = |what, standing, found: String| facts.push(Fact { what, standing, found });
    kernel(&mut note);
    let held = effective_capabilities();
    rights(held, &mut note);
    match Filter::load(&FilterPlan::new()) {
        Ok(_) => note("program", Standing::Good, "the kernel takes our program".to_string()),
        Err(error) => note("program", Standing::Bad, error.to_string()),
    }
    match calls::socket(libc::AF_XDP, libc::SOCK_RAW, 0) {
        Ok(_) => note("sockets", Standing::Good, "AF_XDP sockets can be opened".to_string()),
        Err(source) => {
            let error = socket::OpenError { step: "open an AF_XDP socket", source };
            note("sockets", Standing::Bad, error.to_string());
        }
    }
    changes(&mut note);
    if let Some(plan) = plan {
        match Interface::find(&plan.interface) {
            Ok(interface) => {
                memory(plan, &interface, held, &mut note);
                device(plan, &interface, &mut note);
            }
            Err(error) => note("interface", Standing::Bad, error.to_string()),
        }
    }
    facts
}

/// Returns whether nothing stands in the way.
pub fn is_usable(facts: &[Fact]) -> bool {
    facts.iter().all(|fact| fact.standing != Standing::Bad)
}

fn kernel(note: &mut impl FnMut(&'static str, Standing, String)) {
    let release = calls::kernel_release();
    match version(&release) {
        Some(found) if found < KERNEL_MIN => {
            let (major, minor) = KERNEL_MIN;
            note("kernel", Standing::Bad, format!("Linux {release}; {major}.{minor} or later is needed"));
        }
        _ => note("kernel", Standing::Good, format!("Linux {release}")),
    }
}

/// Notes whether the program can still be told of new addresses and bans when the rights have been
/// given up.
fn changes(note: &mut impl FnMut(&'static str, Standing, String)) {
    let setting = std::fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled");
    let is_forbidden = setting.is_ok_and(|setting| setting.trim() != "0");
    if is_forbidden && version(&calls::kernel_release()).is_some_and(|found| found < KERNEL_MAPS) {
        let (major, minor) = KERNEL_MAPS;
        let found = format!(
            "before Linux {major}.{minor} and with kernel.unprivileged_bpf_disabled set, new addresses and bans are taken up by \
             a restart only"
        );
        note("changes", Standing::Fair, found);
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn effective_capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()).unwrap_or(0)
}

const fn has(held: u64, number: u32) -> bool {
    held & 1 << number != 0
}

fn rights(held: u64, note: &mut impl FnMut(&'static str, Standing, String)) {
    let missing: Vec<_> = CAPABILITIES
        .iter()
        .filter(|(name, number)| !has(held, *number) && (*name == "CAP_NET_RAW" || !has(held, CAP_SYS_ADMIN)))
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        note("rights", Standing::Good, "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF are held".to_string());
    } else {
        let missing = missing.join(", ");
        note("rights", Standing::Bad, format!("missing: {missing} (systemd: AmbientCapabilities)"));
    }
}

fn memory(
    plan: &DeviceOptions,
    interface: &Interface,
    held: u64,
    note: &mut impl FnMut(&'static str, Standing, String),
) {
    let socket_plan = socket::Plan {
        frame_octets: plan.frame_octets(interface.mtu),
        ring_entries: plan.ring_entries(interface),
        ..socket::Plan::new(interface.index, 0)
    };
    let queues = interface.queues.pairs().min(plan.queues.unwrap_or(u32::MAX));
    let needed = socket_plan.octets() as u64 * u64::from(queues);
    let megabytes = needed.div_ceil(1 << 20);
    match calls::locked_memory_max() {
        Some(limit) if limit < needed && !has(held, CAP_IPC_LOCK) => {
            let found =
                format!("{megabytes} MB must be locked, {} kB may be; raise LimitMEMLOCK", limit >> 10);
            note("memory", Standing::Bad, found);
        }
        _ => note("memory", Standing::Good, format!("{megabytes} MB for {queues} queues may be locked")),
    }
}

fn device(
    plan: &DeviceOptions,
    interface: &Interface,
    note: &mut impl FnMut(&'static str, Standing, String),
) {
    let Interface { name, driver, mtu, queues, .. } = interface;
    let Some(mac) = interface.mac else {
        return note("interface", Standing::Bad, format!("{name} is no Ethernet interface"));
    };
    note("interface", Standing::Good, format!("{name}: driver {driver}, {mac}, MTU {mtu}"));
    if queues.receive == queues.transmit {
        note("queues", Standing::Good, format!("{} queues", queues.receive));
    } else {
        let found = format!(
            "{} queues receive and {} send; sockets on the first {}, the kernel serves the rest",
            queues.receive,
            queues.transmit,
            queues.pairs()
        );
        note("queues", Standing::Fair, found);
    }
    let own = plan.ring_entries(interface);
    match interface.receive_ring_entries {
        Some(entries) if entries > own => {
            let found = format!("the card's has {entries} entries, ours {own}: make ours as large");
            note("rings", Standing::Fair, found);
        }
        Some(entries) => note("rings", Standing::Good, format!("{own} entries, the card's {entries}")),
        None => note("rings", Standing::Good, format!("{own} entries; the driver tells of none of its own")),
    }
    for attached in &interface.attached {
        let program = attached.name.as_deref().unwrap_or("unnamed");
        let found = format!("{program} (id {}) is attached: take it over, or use its map", attached.id);
        note("program on the interface", Standing::Fair, found);
    }
    match interface.features {
        Some(features) => ways(features, note),
        None => note("modes", Standing::Fair, "this kernel does not tell what drivers can do".to_string()),
    }
    let frame_octets = plan.frame_octets(*mtu);
    let trial = socket::Plan {
        frame_octets,
        ring_entries: 64,
        copying: Copying::Always,
        ..socket::Plan::new(interface.index, 0)
    };
    // Only where it disturbs nobody.
    if interface.attached.is_empty() {
        match Socket::open(&trial) {
            Ok(_) => note("binding", Standing::Good, format!("a socket binds to queue 0 of {name}")),
            Err(error) => note("binding", Standing::Bad, error.to_string()),
        }
    }
}

fn ways(features: Features, note: &mut impl FnMut(&'static str, Standing, String)) {
    if features.native() {
        note("native mode", Standing::Good, "the driver runs XDP programs".to_string());
    } else {
        let found = "the driver does not run XDP programs; only generic mode is left".to_string();
        note("native mode", Standing::Fair, found);
    }
    if features.zero_copy() {
        note("zero-copy mode", Standing::Good, "the driver has it".to_string());
    } else {
        note("zero-copy mode", Standing::Fair, "the driver does not have it; packets are copied".to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_compared_by_number() {
        assert_eq!(version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version("5.9"), Some((5, 9)));
        assert!(version("5.10.0-rc1").is_some_and(|found| found >= KERNEL_MIN));
        assert!(version("5.4.0").is_some_and(|found| found < KERNEL_MIN));
        assert_eq!(version("linux"), None);
    }

    #[test]
    fn missing_rights_are_named() {
        let check = |held: u64, expect: &str| {
            let mut found = Vec::new();
            rights(held, &mut |_, standing, text| found.push((standing, text)));
            assert!(found[0].1.contains(expect), "{found:?}");
            assert_eq!(found[0].0 == Standing::Good, expect.ends_with("held"));
        };
        check(1 << 13 | 1 << 12 | 1 << 39, "are held");
        check(1 << 13 | 1 << 21, "are held");
        check(1 << 13 | 1 << 12, "missing: CAP_BPF ");
        check(0, "missing: CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF ");
    }
}
