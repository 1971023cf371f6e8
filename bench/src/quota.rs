//! A control group that grants a server a part of a processor, as a container with a CPU limit has.
//!
//! Never changes a group that exists: it makes one of its own, and removes it.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The time over which CPU time is granted: what container engines set.
const PERIOD: Duration = Duration::from_millis(100);
/// How long the last process of a group may take to be gone.
const GRACE: Duration = Duration::from_secs(3);
/// How often a group that cannot be removed yet is looked at.
const POLL: Duration = Duration::from_millis(5);
/// Groups of one process at a time.
const GROUPS_MAX: usize = 100;

/// How groups are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// A hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

/// A group with a limit; removed when dropped.
#[derive(Debug)]
pub struct Quota {
    directory: PathBuf,
}

/// How often a group had used up its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which a process of it wanted to run.
    pub periods: u64,
    /// Those in which it was stopped because the time was used up.
    pub throttled: u64,
    /// For how long.
    pub stopped: Duration,
}

impl Throttling {
    /// Returns what happened since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            stopped: self.stopped.saturating_sub(earlier.stopped),
        }
    }

    /// Returns the share of periods in which it was stopped, in per cent.
    pub fn percent(&self) -> f64 {
        100.0 * self.throttled as f64 / (self.periods as f64).max(1.0)
    }

    /// Reads `cpu.stat` of either version.
    fn parse(text: &str) -> Self {
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|text| text.trim().parse::<u64>().ok())
        };
        // Version 1 counts nanoseconds, version 2 microseconds.
        let stopped = number("throttled_time")
            .map(Duration::from_nanos)
            .or_else(|| number("throttled_usec").map(Duration::from_micros));
        Self {
            periods: number("nr_periods").unwrap_or(0),
            throttled: number("nr_throttled").unwrap_or(0),
            stopped: stopped.unwrap_or_default(),
        }
    }
}

impl Quota {
    /// Makes a group that grants so many processors.
    pub fn new(processors: f64) -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let (parent, version) = find(&mounts, &own, |directory| {
            fs::read_to_string(directory.join("cgroup.controllers")).unwrap_or_default()
        })
        .ok_or("no hierarchy of control groups has the CPU controller")?;
        if version == Version::Two {
            write(&parent.join("cgroup.subtree_control"), "+cpu")?;
        }
        let directory = create(&parent)?;
        // From here on it is removed whatever happens.
        let quota = Self { directory };
        let period_us = PERIOD.as_micros();
        let quota_us = (processors * period_us as f64) as u128;
        match version {
            Version::One => {
                quota.write("cpu.cfs_period_us", &period_us.to_string())?;
                quota.write("cpu.cfs_quota_us", &quota_us.to_string())?;
            }
            Version::Two => quota.write("cpu.max", &format!("{quota_us} {period_us}"))?,
        }
        Ok(quota)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        write(&self.directory.join(name), text)
    }

    /// Opens the file that a process joins by.
    pub fn door(&self) -> Result<File, String> {
        let path = self.directory.join("cgroup.procs");
        OpenOptions::new().write(true).open(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns how often its processes have been stopped so far.
    pub fn throttling(&self) -> Throttling {
        Throttling::parse(&fs::read_to_string(self.directory.join("cpu.stat")).unwrap_or_default())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let deadline = Instant::now() + GRACE;
        // A group that stays behind is empty and harms nobody.
        while fs::remove_dir(&self.directory).is_err() && Instant::now() < deadline {
            thread::park_timeout(POLL);
        }
    }
}

/// Makes a directory that has not been there.
fn create(parent: &Path) -> Result<PathBuf, String> {
    let mut last = String::new();
    for number in 0..GROUPS_MAX {
        let directory = parent.join(format!("gannet-bench-{}-{number}", std::process::id()));
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) => last = format!("{}: {error}", directory.display()),
        }
    }
    Err(last)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns where groups with a CPU limit can be made, below the group of this process where that is
/// a hierarchy of version 1.
fn find(mounts: &str, own: &str, controllers: impl Fn(&Path) -> String) -> Option<(PathBuf, Version)> {
    let has = |list: &str, separator: char| list.split(separator).any(|word| word.trim() == "cpu");
    let mut two = None;
    for mount in mounts.lines() {
        let fields: Vec<&str> = mount.split(' ').collect();
        let [_, directory, kind, options, ..] = fields[..] else { continue };
        let directory = PathBuf::from(directory);
        match kind {
            "cgroup" if has(options, ',') => {
                // "1:cpu,cpuacct:/path"
                let path = own.lines().find_map(|line| {
                    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                    has(controllers, ',').then_some(path)
                });
                return Some((directory.join(path?.trim_start_matches('/')), Version::One));
            }
            "cgroup2" if has(&controllers(&directory), ' ') => two = Some((directory, Version::Two)),
            _ => {}
        }
    }
    two
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Server;
    use std::process::Command;

    #[test]
    fn the_hierarchy_with_the_cpu_controller_is_found() {
        let own = "9:name=systemd:/\n2:cpu,cpuacct:/of/us\n0::/all\n";
        let first = "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n\
                     cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let none = |_: &Path| String::new();
        assert_eq!(find(first, own, none), Some(("/sys/fs/cgroup/cpu/of/us".into(), Version::One)));
        let second = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        assert_eq!(find(second, own, none), None);
        let all = |_: &Path| "cpuset cpu io memory\n".to_owned();
        assert_eq!(find(second, own, all), Some(("/sys/fs/cgroup".into(), Version::Two)));
        assert_eq!(find("", own, all), None);
    }

    #[test]
    fn the_statistics_of_both_versions_are_read() {
        let one = Throttling::parse("nr_periods 20\nnr_throttled 5\nthrottled_time 250000000\nnr_bursts 0\n");
        let two = Throttling::parse("usage_usec 9\nnr_periods 20\nnr_throttled 5\nthrottled_usec 250000\n");
        assert_eq!(one, two);
        assert_eq!((one.throttled, one.stopped), (5, Duration::from_millis(250)));
        assert!((one.percent() - 25.0).abs() < 1e-9);
        assert_eq!(one.since(&Throttling { periods: 10, throttled: 5, ..one }).throttled, 0);
    }

    #[test]
    fn a_process_that_never_sleeps_is_stopped_by_its_quota() {
        // Where no group can be made, the scenarios say so; there is nothing to test then.
        let Ok(quota) = Quota::new(0.1) else { return };
        let directory = quota.directory.clone();
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let log = std::env::temp_dir().join(format!("gannet-bench-quota-{}", std::process::id()));
        let server = Server::start_within(command, &[0, 1], &log, Some(quota)).expect("sh");
        let deadline = Instant::now() + Duration::from_secs(20);
        while server.throttling().is_some_and(|throttling| throttling.throttled < 2) {
            assert!(Instant::now() < deadline, "never stopped: {:?}", server.throttling());
            thread::park_timeout(POLL);
        }
        drop(server);
        fs::remove_file(&log).expect("was made");
        assert!(!directory.exists(), "the group is removed with its process");
    }
}
