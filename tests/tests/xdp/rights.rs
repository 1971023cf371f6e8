//! The program with less than all rights.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use testkit::corpus::LOCAL;

use crate::topology::{NOBODY, PATIENCE, SERVER, Topology};

/// Returns what the program says in the server's namespace, without any capability.
pub(crate) fn without_rights(topology: &Topology, arguments: &[&str]) -> Option<(bool, String)> {
    let output = Command::new("ip")
        .args(["netns", "exec", &topology.server, "setpriv", "--bounding-set", "-all"])
        .arg(testkit::program::gannet())
        .args(arguments)
        .output()
        .expect("ip runs");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if said.contains("setpriv") {
        println!("skipped: {said}");
        return None;
    }
    Some((output.status.success(), said))
}

/// The capabilities that AF_XDP takes, as setpriv calls them.
pub(crate) const RIGHTS: [&str; 3] = ["net_raw", "net_admin", "bpf"];

/// The program as a user who is nobody, with some rights and so many octets of lockable memory, in
/// the server's namespace.
pub(crate) struct Unprivileged {
    pub(crate) child: Child,
    log: Receiver<String>,
}

impl Unprivileged {
    /// Starts it; `None` where the tools for that are missing.
    pub(crate) fn start(topology: &Topology, rights: &[&str], memory_octets: u64) -> Option<Self> {
        let folder = topology.folder.path();
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).expect("root may");
        std::os::unix::fs::chown(folder.join("gannet.yaml"), Some(NOBODY), Some(NOBODY)).expect("root may");
        let rights: String = rights.iter().map(|right| format!(",+{right}")).collect();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &topology.server, "prlimit"]);
        command.arg(format!("--memlock={memory_octets}:{memory_octets}"));
        command.arg("setpriv").args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
        command.arg("--clear-groups");
        for set in ["--inh-caps", "--ambient-caps", "--bounding-set"] {
            command.arg(format!("{set}=-all{rights}"));
        }
        command.arg(testkit::program::gannet()).args(["run", "--socket"]).arg(folder.join("control.sock"));
        command.arg("--config").arg(folder.join("gannet.yaml"));
        let mut child = command.stderr(Stdio::piped()).spawn().expect("ip runs");
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let (sender, log) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut unprivileged = Self { child, log };
        let first = unprivileged.hear("");
        if first.starts_with("prlimit:")
            || first.starts_with("setpriv:")
            || first.contains("Permission denied")
        {
            println!("skipped: {first}");
            return None;
        }
        // What was heard to find that out is heard again.
        let (sender, log) = channel();
        sender.send(first).expect("somebody hears");
        let rest = std::mem::replace(&mut unprivileged.log, log);
        std::thread::spawn(move || rest.into_iter().try_for_each(|line| sender.send(line)));
        Some(unprivileged)
    }

    /// Waits for a line of the log that has `text` in it.
    pub(crate) fn hear(&mut self, text: &str) -> String {
        let mut heard = Vec::new();
        loop {
            match self.log.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => heard.push(line),
                Err(_) => panic!("{text:?} does not come: {heard:#?}"),
            }
        }
    }

    /// Returns the capabilities that its threads have, in hexadecimal digits: those it could use,
    /// and those it could get.
    pub(crate) fn rights(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let of_task = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let sets = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"];
            let lines = status.lines().filter(|line| sets.iter().any(|set| line.starts_with(set)));
            lines
                .map(|line| line.split_whitespace().nth(1).unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        tasks.map_while(Result::ok).flat_map(of_task).collect()
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a configuration for port 53, which nobody in particular may have in this namespace.
pub(crate) fn unprivileged_configuration(topology: &Topology, xdp: &str, more: &str) {
    let folder = topology.folder.path();
    let text = format!(
        "server: {{workers: 1, state-directory: \"{}\"}}\n\
         listen: [\"{}:53\", \"[{}]:53\"]\n\
         xdp: {{interfaces: s0, {xdp}}}\n\
         local: {{{LOCAL}: [192.168.1.10]}}\n{more}",
        folder.display(),
        SERVER[0],
        SERVER[1],
    );
    std::fs::write(folder.join("gannet.yaml"), text).expect("a writable directory");
    let everybody = "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start";
    let set = Command::new("ip").args(["netns", "exec", &topology.server, "sh", "-c", everybody]).status();
    assert!(set.expect("ip runs").success());
}
