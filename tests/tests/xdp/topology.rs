//! Two namespaces, and how the processes in them tell each other how far they are.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const CLIENT: [&str; 2] = ["10.77.0.1", "fd77::1"];
pub(crate) const SERVER: [&str; 2] = ["10.77.0.53", "fd77::53"];

/// The user who owns nothing.
pub(crate) const NOBODY: u32 = 65_534;

/// How long to wait for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

static NUMBER: AtomicU32 = AtomicU32::new(0);

pub(crate) fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Two namespaces with a pair of interfaces between them and a folder for what their processes tell
/// each other.
pub(crate) struct Topology {
    pub(crate) client: String,
    pub(crate) server: String,
    pub(crate) folder: tempfile::TempDir,
}

impl Topology {
    pub(crate) fn new(queues: u32) -> Option<Self> {
        let id = format!("gsys{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let topology = Self { client: format!("{id}c"), server: format!("{id}s"), folder };
        match topology.build(queues) {
            Ok(()) => Some(topology),
            Err(reason) => {
                println!("skipped: {reason}");
                None
            }
        }
    }

    fn build(&self, queues: u32) -> Result<(), String> {
        let Self { client, server, .. } = self;
        ip(&format!("netns add {client}"))?;
        ip(&format!("netns add {server}"))?;
        let many = format!("numrxqueues {queues} numtxqueues {queues}");
        ip(&format!("link add c0 {many} netns {client} type veth peer name s0 {many} netns {server}"))?;
        for (namespace, interface, addresses) in [(client, "c0", CLIENT), (server, "s0", SERVER)] {
            let [v4, v6] = addresses;
            ip(&format!("-n {namespace} address add {v4}/24 dev {interface}"))?;
            ip(&format!("-n {namespace} address add {v6}/64 dev {interface} nodad"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
            ip(&format!("-n {namespace} link set {interface} up"))?;
        }
        let check = Command::new("ip")
            .args(["netns", "exec", server])
            .arg(testkit::program::gannet())
            .args(["xdp", "check", "s0"])
            .output()
            .map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&check.stdout);
        let bad: Vec<_> = said.lines().filter(|line| line.starts_with("no ")).collect();
        if check.status.success() && bad.is_empty() { Ok(()) } else { Err(bad.join("; ")) }
    }

    /// Starts this test program once more inside a namespace, as [`role`].
    pub(crate) fn start(&self, namespace: &str, role: &str) -> Child {
        Command::new("ip")
            .args(["netns", "exec", namespace])
            .arg(std::env::current_exe().expect("this program"))
            .args(["role", "--exact", "--ignored", "--nocapture"])
            .env("GANNET_XDP_ROLE", role)
            .env("GANNET_XDP_FOLDER", self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ip runs")
    }

    pub(crate) fn end(role: &str, child: Child) {
        let output = child.wait_with_output().expect("an end");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{role}: {}", String::from_utf8_lossy(&said));
    }

    pub(crate) fn client(&self, role: &str) {
        Self::end(role, self.start(&self.client, role));
    }

    /// Waits until a process has left a note.
    pub(crate) fn wait_for(&self, note: &str, from: &mut Child) {
        wait_for(self.folder.path(), note, || matches!(from.try_wait(), Ok(Some(_))));
    }

    pub(crate) fn tell(&self, note: &str) {
        tell(self.folder.path(), note, b"");
    }

    pub(crate) fn read(&self, note: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(note)).expect("a note")
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.server] {
            let _ = ip(&format!("netns del {namespace}"));
        }
    }
}

pub(crate) fn tell(folder: &Path, note: &str, content: &[u8]) {
    // In one step, so that nobody reads half of it.
    let draft = folder.join(format!("{note}.draft"));
    std::fs::write(&draft, content).expect("a note");
    std::fs::rename(draft, folder.join(note)).expect("a note");
}

pub(crate) fn wait_for(folder: &Path, note: &str, mut is_over: impl FnMut() -> bool) {
    let until = Instant::now() + 3 * PATIENCE;
    while !folder.join(note).exists() {
        assert!(Instant::now() < until && !is_over(), "{note} does not come");
        std::thread::yield_now();
    }
}
