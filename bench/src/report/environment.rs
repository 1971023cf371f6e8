//! What the machine is, as lines of text.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Kernel settings that change what is measured.
const SETTINGS: [&str; 9] = [
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/rmem_default",
    "net/core/netdev_max_backlog",
    "net/core/busy_read",
    "net/core/somaxconn",
    "net/ipv4/tcp_tw_reuse",
    "kernel/perf_event_paranoid",
    "kernel/sched_autogroup_enabled",
];

/// Describes the machine.
pub fn describe() -> String {
    let mut out = String::new();
    let mut add = |label: &str, text: &str| {
        let text = text.trim();
        let _ = writeln!(out, "{label}: {}", if text.is_empty() { "unknown" } else { text });
    };
    add("kernel", &output("uname", &["-srvm"]));
    add("system", &os_name(&read("/etc/os-release")));
    let cpu = read("/proc/cpuinfo");
    add("processor", cpu_field(&cpu, "model name"));
    add("processor clock", &format!("{} MHz", cpu_field(&cpu, "cpu MHz")));
    add("processor cache", cpu_field(&cpu, "cache size"));
    add("processors", &cpu.lines().filter(|line| line.starts_with("processor")).count().to_string());
    add("threads per core", &threads_per_core());
    let is_guest = cpu_field(&cpu, "flags").split(' ').any(|flag| flag == "hypervisor");
    add("virtual machine", if is_guest { "yes" } else { "no" });
    add("memory", &read("/proc/meminfo").lines().next().unwrap_or_default().replace("MemTotal:", ""));
    add("governor", &read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    add("clock source", &read("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    add("transparent huge pages", &read("/sys/kernel/mm/transparent_hugepage/enabled"));
    add("loopback MTU", &read("/sys/class/net/lo/mtu"));
    for name in SETTINGS {
        add(name, &read(Path::new("/proc/sys").join(name)));
    }
    for (name, state) in mitigations() {
        add(&format!("mitigation of {name}"), &state);
    }
    add("rustc", &output("rustc", &["--version"]));
    add("dnsperf", &version_of_dnsperf());
    add("commit", &commit());
    out
}

/// What follows a commit if there are changes that are in none.
pub(super) const CHANGED: &str = "-dirty";

/// Returns the commit that this was built from. What is written into `docs` is not part of what is
/// measured.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        output("git", &[&["-C", env!("CARGO_MANIFEST_DIR")], arguments].concat()).trim().to_owned()
    };
    let head = git(&["rev-parse", "--short=12", "HEAD"]);
    let changes = git(&["status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)docs"]);
    if changes.is_empty() { head } else { format!("{head}{CHANGED}") }
}

/// Returns the commit that a description of a machine names.
pub(super) fn commit_of(environment: &str) -> &str {
    commits_of(environment).next().unwrap_or("unknown")
}

/// Returns all commits that descriptions of machines name.
pub(super) fn commits_of(environment: &str) -> impl Iterator<Item = &str> {
    environment.lines().filter_map(|line| line.strip_prefix("commit: "))
}

/// Returns whether two descriptions are of one machine in one state; its clock never stands still.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let lasting = |line: &&str| !line.starts_with("processor clock: ");
    one.lines().filter(lasting).eq(other.lines().filter(lasting))
}

/// Returns the load average of 1, 5 and 15 minutes.
pub fn load_average() -> String {
    read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Returns dnsperf's version, which it only tells when it runs.
fn version_of_dnsperf() -> String {
    let output = Command::new("dnsperf").args(["-d", "/dev/null", "-s", "127.0.0.1", "-n", "1"]).output();
    let Ok(output) = output else { return "not installed".to_owned() };
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find_map(|line| line.strip_prefix("Version ")).unwrap_or_default().to_owned()
}

/// Returns the first processor's field.
fn cpu_field<'a>(cpu: &'a str, field: &str) -> &'a str {
    let line = cpu.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == field));
    line.and_then(|line| line.split_once(':')).map_or("", |(_, text)| text.trim())
}

fn os_name(release: &str) -> String {
    let line = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.unwrap_or_default().trim_matches('"').to_owned()
}

fn threads_per_core() -> String {
    let siblings = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    let count: usize = siblings
        .trim()
        .split(',')
        .map(|range| match range.split_once('-') {
            Some((first, last)) => {
                let number = |text: &str| text.parse::<usize>().unwrap_or(0);
                number(last).saturating_sub(number(first)) + 1
            }
            None => usize::from(!range.is_empty()),
        })
        .sum();
    if count == 0 { String::new() } else { count.to_string() }
}

/// Returns what the kernel does about each flaw of the processor that concerns it.
fn mitigations() -> Vec<(String, String)> {
    let entries = fs::read_dir("/sys/devices/system/cpu/vulnerabilities").into_iter().flatten().flatten();
    let mut found: Vec<(String, String)> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), read(entry.path())))
        .filter(|(_, state)| !state.starts_with("Not affected"))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_processor_are_found_by_their_whole_name() {
        let cpu = "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Fast One\nflags\t\t: fpu hypervisor\n";
        assert_eq!(cpu_field(cpu, "model name"), "Fast One");
        assert_eq!(cpu_field(cpu, "model"), "143");
        assert_eq!(cpu_field(cpu, "cache size"), "");
    }

    #[test]
    fn a_machine_whose_clock_moved_is_the_same() {
        let at = |clock: &str, commit: &str| {
            format!("kernel: Linux\nprocessor clock: {clock} MHz\ncommit: {commit}\n")
        };
        assert!(is_same(&at("2000.1", "a"), &at("1999.9", "a")));
        assert!(!is_same(&at("2000.1", "a"), &at("2000.1", "b")));
        assert_eq!(commit_of(&at("1", "abc")), "abc");
        assert_eq!(commit_of("kernel: Linux\n"), "unknown");
    }

    #[test]
    fn the_system_is_called_by_its_pretty_name() {
        assert_eq!(os_name("NAME=\"X\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"), "Debian GNU/Linux 12");
    }
}
