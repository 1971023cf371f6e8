//! Interfaces whose packets are taken past the kernel's network stack.

use diagnostic::At;
use xdp::{BusyPoll, DevicePlan, Existing, Mode, Routes};

use crate::settings::{Startup, XdpExisting, XdpMode};

/// Returns the interfaces to be taken into use, each as a whole.
pub fn devices(startup: &Startup) -> Vec<DevicePlan> {
    let xdp = &startup.xdp;
    let mode = match xdp.mode {
        XdpMode::Off => return Vec::new(),
        XdpMode::Auto => Mode::Auto,
        XdpMode::ZeroCopy => Mode::ZeroCopy,
        XdpMode::Native => Mode::Native,
        XdpMode::Generic => Mode::Generic,
    };
    let existing = match xdp.existing {
        XdpExisting::Keep => Existing::Keep,
        XdpExisting::Replace => Existing::Replace,
    };
    let plan = |interface: &At<String>| DevicePlan {
        mode,
        program: xdp.map.clone().map_or(xdp::Program::Ours(existing), xdp::Program::Foreign),
        queues: xdp.queues,
        ring_entries: xdp.ring,
        routes: routes(startup),
        huge_pages: xdp.huge_pages,
        busy_poll: xdp.busy_poll.map(|microseconds| BusyPoll { microseconds, budget: xdp.busy_poll_budget }),
        ..DevicePlan::new(&interface.value)
    };
    xdp.interfaces.iter().map(plan).collect()
}

/// Returns whether the way back is checked; a reload may change that.
pub fn routes(startup: &Startup) -> Routes {
    if startup.xdp.check_routes { Routes::Check } else { Routes::Trust }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use environment::Memory;
    use std::path::Path;

    fn plans(text: &str) -> Vec<DevicePlan> {
        let loaded = load_text(Path::new("x"), text, &Memory::default()).expect("no mistakes");
        devices(&loaded.settings.startup)
    }

    #[test]
    fn nothing_is_taken_unless_interfaces_are_named() {
        assert!(plans("").is_empty());
        assert!(plans("xdp: {mode: native}\n").is_empty());
        assert!(plans("xdp: {interfaces: eth0, mode: off}\n").is_empty());
    }

    #[test]
    fn each_interface_is_used_as_the_section_says() {
        let plans = plans(
            "xdp: {interfaces: [eth0, eth1], mode: generic, existing: replace, queues: 3, ring: 1000, busy-poll: 20}\n",
        );
        let names: Vec<_> = plans.iter().map(|plan| plan.interface.as_str()).collect();
        assert_eq!(names, ["eth0", "eth1"]);
        let plan = &plans[0];
        assert_eq!((plan.mode, plan.queues, plan.ring_entries), (Mode::Generic, Some(3), Some(1024)));
        assert_eq!(plan.program, xdp::Program::Ours(Existing::Replace));
        assert_eq!(plan.busy_poll, Some(BusyPoll { microseconds: 20, budget: 64 }));
    }

    #[test]
    fn a_foreign_program_is_used_by_its_map() {
        let plans = plans("xdp: {interfaces: eth0, map: /sys/fs/bpf/sockets}\n");
        assert_eq!(plans[0].program, xdp::Program::Foreign("/sys/fs/bpf/sockets".into()));
    }
}
