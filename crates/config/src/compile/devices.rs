//! Interfaces whose packets are taken past the kernel's network stack.

use diagnostic::At;
use plan::devices::{BusyPoll, DevicePlan, Program};

use settings::Startup;

/// Returns the interfaces that the configuration names, each as a whole.
pub fn devices(startup: &Startup) -> Vec<DevicePlan> {
    let xdp = &startup.xdp;
    let plan = |interface: &At<String>| DevicePlan {
        interface: interface.value.clone(),
        mode: xdp.mode,
        program: xdp.map.clone().map_or(Program::Ours(xdp.existing), Program::Foreign),
        queues: xdp.queues,
        ring_entries: xdp.ring,
        checks_routes: xdp.check_routes,
        huge_pages: xdp.huge_pages,
        busy_poll: xdp.busy_poll.map(|microseconds| BusyPoll { microseconds, budget: xdp.busy_poll_budget }),
    };
    xdp.interfaces.iter().map(plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use environment::Memory;
    use plan::devices::{Existing, Mode};
    use settings::load::load_text;
    use std::path::Path;

    fn plans(text: &str) -> Vec<DevicePlan> {
        let loaded = load_text(Path::new("x"), text, &Memory::default()).expect("no mistakes");
        devices(&loaded.settings.startup)
    }

    #[test]
    fn nothing_is_taken_unless_interfaces_are_named() {
        assert!(plans("").is_empty());
        assert!(plans("xdp: {mode: native}\n").is_empty());
        let off = plans("xdp: {interfaces: eth0, mode: off}\n");
        assert_eq!(off.iter().map(|plan| plan.mode).collect::<Vec<_>>(), [Mode::Off]);
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
        assert_eq!(plan.program, Program::Ours(Existing::Replace));
        assert_eq!(plan.busy_poll, Some(BusyPoll { microseconds: 20, budget: 64 }));
    }

    #[test]
    fn a_foreign_program_is_used_by_its_map() {
        let plans = plans("xdp: {interfaces: eth0, map: /sys/fs/bpf/sockets}\n");
        assert_eq!(plans[0].program, Program::Foreign("/sys/fs/bpf/sockets".into()));
    }
}
