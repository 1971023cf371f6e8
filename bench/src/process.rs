//! Starting, watching and ending the servers under test.
//!
//! Never ends a process it did not start: everything goes by the PID of a child.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::quota::{Quota, Throttling};
use crate::rival::Reload;
use crate::sys;

/// How long a server may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(3);
/// How often an ending server is looked at.
const POLL: Duration = Duration::from_millis(5);

/// A running server; ended when dropped.
pub struct Server {
    child: Child,
    log: PathBuf,
    /// What limits it; removed after it has ended.
    quota: Option<Quota>,
}

impl Server {
    /// Starts `command` on `cores`, its output in `log`.
    pub fn start(command: Command, cores: &[usize], log: &Path) -> Result<Self, String> {
        Self::start_within(command, cores, log, None)
    }

    /// The same in a control group, if there is one.
    pub fn start_within(
        mut command: Command,
        cores: &[usize],
        log: &Path,
        quota: Option<Quota>,
    ) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let open = || -> io::Result<(File, File)> {
            let file = File::create(log)?;
            Ok((file.try_clone()?, file))
        };
        let (out, errors) = open().map_err(|error| format!("{}: {error}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        sys::confine(&mut command, cores);
        if let Some(quota) = &quota {
            sys::join_group(&mut command, quota.door()?);
        }
        let child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self { child, log: log.to_owned(), quota })
    }

    /// Returns how often its control group stopped it, if it is in one.
    pub fn throttling(&self) -> Option<Throttling> {
        self.quota.as_ref().map(Quota::throttling)
    }

    /// Returns the PID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the end of its output if it has ended.
    pub fn obituary(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(format!("ended ({status}): {}", self.last_words())),
            Err(error) => Some(format!("cannot be watched: {error}")),
        }
    }

    /// Returns the last lines it wrote.
    pub fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }

    /// Puts all its threads and children on `cores` again: some servers choose their own.
    pub fn confine(&self, cores: &[usize]) {
        for pid in tree(self.pid()) {
            sys::pin_process(pid, cores);
        }
    }

    /// Makes it read its configuration again; a command is waited for, a signal is not.
    pub fn reload(&self, how: &Reload) -> Result<(), String> {
        let words = match how {
            Reload::Signal(signal) => {
                sys::signal(self.pid(), *signal);
                return Ok(());
            }
            Reload::Command(words) => words,
        };
        let (program, arguments) = words.split_first().ok_or("its reload command is empty")?;
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("reload: cannot start {program}: {error}"))?;
        if output.status.success() {
            Ok(())
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("reload: {program} {}: {}", output.status, said.trim()))
        }
    }

    /// Returns what the process and its children have used so far.
    pub fn usage(&self) -> Usage {
        usage(self.pid())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        sys::terminate(self.pid());
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::park_timeout(POLL);
        }
        // Both can only fail when it has ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process tree has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time, to the nanosecond.
    pub cpu: Duration,
    /// The part of CPU time in user space, in the kernel's ticks (10 ms as a rule).
    pub user: Duration,
    /// The part in the kernel.
    pub system: Duration,
    /// Resident octets.
    pub resident_octets: u64,
    /// Threads.
    pub threads: u64,
}

impl Usage {
    /// Returns the CPU time used since `earlier`.
    pub fn cpu_since(&self, earlier: &Self) -> Duration {
        self.cpu.saturating_sub(earlier.cpu)
    }

    /// Returns the share of CPU time spent in user space since `earlier`.
    pub fn user_share_since(&self, earlier: &Self) -> f64 {
        let user = self.user.saturating_sub(earlier.user).as_secs_f64();
        let system = self.system.saturating_sub(earlier.system).as_secs_f64();
        if user + system > 0.0 { user / (user + system) } else { 0.0 }
    }
}

/// Adds up `root` and its descendants.
pub fn usage(root: u32) -> Usage {
    let mut total = Usage::default();
    let tick = Duration::from_secs(1) / sys::clock_ticks() as u32;
    for pid in tree(root) {
        if let Ok(cpu) = sys::process_cpu(pid) {
            total.cpu += cpu;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(fields) = stat_fields(&stat) {
            // proc(5) counts from 1 and `fields` begins with the third: utime is 14, stime 15,
            // num_threads 20.
            total.user += tick * fields.get(11).and_then(|text| text.parse().ok()).unwrap_or(0);
            total.system += tick * fields.get(12).and_then(|text| text.parse().ok()).unwrap_or(0);
            total.threads += fields.get(17).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibioctets: u64 =
            resident.and_then(|text| text.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0);
        total.resident_octets += kibioctets * 1024;
    }
    total
}

/// Returns the fields after the command's name, which may hold spaces and parentheses.
fn stat_fields(stat: &str) -> Option<Vec<&str>> {
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().collect())
}

/// Returns `root` and its descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = stat_fields(&stat).and_then(|fields| fields.get(1)?.parse::<u32>().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&pid) = found.get(at) {
        at += 1;
        found.extend(children.remove(&pid).unwrap_or_default());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 3 0 1 2 3";
        let fields = stat_fields(stat).expect("well-formed");
        assert_eq!((fields[1], fields[11], fields[12], fields[17]), ("1", "5", "6", "3"));
    }

    #[test]
    fn our_own_usage_is_not_zero() {
        let usage = usage(std::process::id());
        assert!(usage.cpu > Duration::ZERO && usage.resident_octets > 0 && usage.threads > 0);
    }
}
