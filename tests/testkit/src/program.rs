//! The built program, in a directory of its own.

use crate::ask::Ask;
use crate::client::UdpClient;
use crate::others::free_address;
use crate::stub::Stub;
use crate::{DEADLINE, client, eventually};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wire::Rtype;

/// Returns the built `gannet`: what `GANNET_BIN` names, or the one beside the test programs.
///
/// # Panics
///
/// When it was not built.
pub fn gannet() -> PathBuf {
    if let Some(path) = std::env::var_os("GANNET_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a test program has a path");
    let beside = test.parent().and_then(Path::parent).map(|target| target.join("gannet")).unwrap_or_default();
    assert!(beside.is_file(), "{} is missing: `cargo build -p gannet-daemon` first", beside.display());
    beside
}

/// Returns a tool that `cargo xtask test` has put beside the built programs, such as `bin/h2spec`.
///
/// # Panics
///
/// When it is not there.
pub fn tool(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test program has a path");
    // target/debug/deps/test
    let target = test.ancestors().nth(3).expect("a target directory");
    let tool = target.join("tools").join(name);
    assert!(tool.exists(), "{} is missing: `cargo xtask test` installs it", tool.display());
    tool
}

/// Returns the program, told to keep to `directory` and unaware of any other `gannet` on this
/// machine.
pub fn program(directory: &Path) -> Command {
    in_directory(Command::new(gannet()), directory)
}

/// Returns the program with so many descriptors. Root could have more, if it had not given up that
/// right.
fn limited(directory: &Path, descriptors: u32) -> Command {
    let mut command = Command::new("sh");
    let script = format!(
        "ulimit -n {descriptors}; [ \"$(id -u)\" != 0 ] || exec setpriv --bounding-set=-sys_resource \"$0\" \"$@\"; exec \"$0\" \"$@\""
    );
    command.args(["-c", &script]).arg(gannet());
    in_directory(command, directory)
}

/// Returns the program as another one starts it, such as `unshare`, which gets its path, and its
/// arguments behind that.
pub fn program_by(starter: &[&str], directory: &Path) -> Command {
    let (first, rest) = starter.split_first().expect("a program");
    let mut command = Command::new(first);
    command.args(rest).arg(gannet());
    in_directory(command, directory)
}

fn in_directory(mut command: Command, directory: &Path) -> Command {
    command.current_dir(directory).stdin(Stdio::null());
    let foreign =
        ["JOURNAL_STREAM", "NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "RUNTIME_DIRECTORY"];
    for name in foreign {
        command.env_remove(name);
    }
    command.env("GANNET_SOCKET", directory.join("control.sock")).env("NO_COLOR", "1");
    command
}

/// Returns a configuration with one listener that asks these upstreams, and `more` settings.
pub fn forwarding(upstreams: &[&Stub], more: &str) -> String {
    let servers: Vec<_> = upstreams.iter().map(|stub| format!("\"{}\"", stub.address())).collect();
    format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\nupstreams: {{default: {{servers: [{}]}}}}\n{more}\n",
        servers.join(", ")
    )
}

/// Returns a configuration whose API is at no port unless it says so: the default is one port for
/// the whole machine, and tests run beside each other.
pub fn without_api(yaml: &str) -> String {
    let at = if yaml.starts_with("control:") { Some(0) } else { yaml.find("\ncontrol:").map(|at| at + 1) };
    let Some((before, control)) = at.and_then(|at| yaml.split_at_checked(at)) else {
        let end = if yaml.is_empty() || yaml.ends_with('\n') { "" } else { "\n" };
        return format!("{yaml}{end}control: {{listen: []}}\n");
    };
    let control = control.strip_prefix("control:").unwrap_or(control);
    let control = match control.strip_prefix(" {") {
        Some(settings) if settings.starts_with("listen:") => format!(" {{{settings}"),
        Some(settings) => format!(" {{listen: [], {settings}"),
        None if control.contains("\n  listen:") => control.to_owned(),
        None => format!("\n  listen: []{control}"),
    };
    format!("{before}control:{control}")
}

/// How often other ports are tried.
const PORT_ATTEMPTS_MAX: usize = 5;

/// What a server says that does not get its port.
const TAKEN: &str = "the port is taken";

/// A running server. Is killed when it is dropped.
pub struct Server {
    address: SocketAddr,
    another: SocketAddr,
    directory: TempDir,
    child: Child,
    lines: Receiver<String>,
    log: Vec<String>,
}

impl Server {
    /// Starts the program with a configuration and waits until it answers.
    ///
    /// In `yaml`, `@ADDRESS@` and `@ANOTHER@` stand for free addresses with ports, and
    /// `@DIRECTORY@` for a directory of the test's own.
    ///
    /// # Panics
    ///
    /// When it does not answer before the deadline; the message has its log.
    pub fn start(yaml: &str) -> Self {
        Self::start_in(TempDir::new().expect("a temporary directory"), yaml)
    }

    /// Starts the program in a directory that an earlier one left.
    ///
    /// # Panics
    ///
    /// As [`Server::start`].
    pub fn start_in(directory: TempDir, yaml: &str) -> Self {
        Self::start_with(directory, yaml, &[])
    }

    /// Starts the program in a directory, with these environment variables besides ours.
    ///
    /// # Panics
    ///
    /// As [`Server::start`].
    pub fn start_with(directory: TempDir, yaml: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_by(program, directory, yaml, environment)
    }

    /// Starts the program in a directory that an earlier one left, where that one listened.
    ///
    /// # Panics
    ///
    /// As [`Server::start`], and when somebody else listens there by now.
    pub fn start_at(address: SocketAddr, directory: TempDir, yaml: &str) -> Self {
        let yaml = yaml.replace("@ADDRESS@", &address.to_string());
        let mut server = Self::spawn(program, directory, &yaml, &[]);
        server.address = address;
        assert!(server.answers(), "it ended\n{}", server.log().join("\n"));
        server
    }

    /// Starts the program with so many descriptors, and without the right to have more.
    ///
    /// # Panics
    ///
    /// As [`Server::start`].
    pub fn start_with_descriptors(descriptors: u32, yaml: &str) -> Self {
        let limited = |directory: &Path| limited(directory, descriptors);
        Self::start_by(limited, TempDir::new().expect("a temporary directory"), yaml, &[])
    }

    /// Starts the program as `program` says for a directory, such as with another umask.
    ///
    /// # Panics
    ///
    /// As [`Server::start`].
    pub fn start_by(
        program: impl Fn(&Path) -> Command,
        directory: TempDir,
        yaml: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut directory = directory;
        for _ in 0..PORT_ATTEMPTS_MAX {
            let mut server = Self::spawn(&program, directory, yaml, environment);
            if server.answers() {
                return server;
            }
            let (_, log, left) = server.ended();
            // Between our letting go of a port and its taking it somebody else may.
            assert!(
                log.iter().any(|line| line.contains(TAKEN)),
                "the server ended at once\n{}",
                log.join("\n")
            );
            directory = left;
        }
        panic!("no port stayed free");
    }

    fn spawn(
        program: impl Fn(&Path) -> Command,
        directory: TempDir,
        yaml: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let [address, another] = [free_address(), free_address()];
        let config = directory.path().join("gannet.yaml");
        std::fs::write(&config, filled(yaml, [address, another], directory.path()))
            .expect("a writable directory");
        let mut child = program(directory.path())
            .args(["run", "-c"])
            .arg(&config)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (sender, lines) = channel();
        let stderr = child.stderr.take().expect("a pipe");
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { address, another, directory, child, lines, log: Vec::new() }
    }

    /// Waits until it answers; false if it ends instead.
    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + DEADLINE;
        let probe = Ask::new("localhost", Rtype::A);
        loop {
            let client = UdpClient::connect(self.address);
            client.set_patience(Duration::from_millis(200));
            client.send(&probe.bytes());
            if client.try_receive().is_ok() {
                return true;
            }
            // Nobody there yet: the next line of the log, or its end, or a moment, and once more.
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => self.log.push(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            assert!(Instant::now() < deadline, "the server does not answer\n{}", self.log().join("\n"));
        }
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns where it listens besides, if its configuration says `@ANOTHER@`.
    pub fn another(&self) -> SocketAddr {
        self.another
    }

    /// Returns the port of the listener that speaks `transport`, as the running program tells it.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn port(&self, transport: &str) -> u16 {
        let output = self.command(&["status"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.split_whitespace().any(|word| word == transport));
        let port = line.and_then(|line| {
            line.split_whitespace().find_map(|word| word.parse::<SocketAddr>().ok()).map(|at| at.port())
        });
        port.unwrap_or_else(|| panic!("no listener for {transport} in:\n{text}"))
    }

    /// Returns the test's directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns its process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Replaces the configuration file; the program is not told.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub fn write_config(&self, yaml: &str) {
        let config = self.directory.path().join("gannet.yaml");
        std::fs::write(config, filled(yaml, [self.address, self.another], self.directory.path()))
            .expect("a writable directory");
    }

    /// Runs another command of the program in the test's directory, such as `gannet reload`.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn command(&self, arguments: &[&str]) -> Output {
        program(self.directory.path()).args(arguments).output().expect("the program starts")
    }

    /// Sends a signal by name, such as `HUP`; after `STOP`, it stands still when this returns.
    ///
    /// # Panics
    ///
    /// When there is no process to send it to.
    pub fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.pid());
        let status = Command::new("sh").args(["-c", &kill]).status().expect("a shell");
        assert!(status.success(), "{kill}: {status}");
        if signal == "STOP" {
            // Each thread stops when it is next to run.
            eventually("every thread has stopped", || self.has_stopped());
        }
    }

    fn has_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("threads of the process");
        tasks.flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // The state is behind the name, which is in parentheses (proc(5)).
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    }

    /// Returns what it logged so far.
    pub fn log(&mut self) -> &[String] {
        self.log.extend(self.lines.try_iter());
        &self.log
    }

    /// Waits for a line of the log that contains `text`, from the beginning of the log, and returns
    /// it.
    ///
    /// # Panics
    ///
    /// When it does not come before the deadline.
    pub fn wait_for_log(&mut self, text: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        let mut at = 0;
        loop {
            if let Some(line) = self.log.iter().skip(at).find(|line| line.contains(text)) {
                return line.clone();
            }
            at = self.log.len();
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.log.push(line),
                Err(_) => panic!("no {text:?} in the log:\n{}", self.log.join("\n")),
            }
        }
    }

    /// Stops it with SIGTERM and returns how it ended, its log, and its directory.
    pub fn stop(self) -> (ExitStatus, Vec<String>, TempDir) {
        self.stop_by("TERM")
    }

    /// Stops it with a signal, as [`Server::stop`] does.
    ///
    /// # Panics
    ///
    /// When it does not end before the deadline.
    pub fn stop_by(self, signal: &str) -> (ExitStatus, Vec<String>, TempDir) {
        self.signal(signal);
        self.ended()
    }

    /// Waits until it has ended.
    fn ended(mut self) -> (ExitStatus, Vec<String>, TempDir) {
        // Its log ends when it does.
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.log.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not stop\n{}", self.log.join("\n")),
            }
        }
        let status = self.child.wait().expect("a child");
        let directory =
            std::mem::replace(&mut self.directory, TempDir::new().expect("a temporary directory"));
        (status, std::mem::take(&mut self.log), directory)
    }

    /// Asks over UDP with a fresh socket.
    pub fn ask(&self, ask: &Ask) -> crate::Heard {
        UdpClient::connect(self.address).ask(ask)
    }

    /// Asks over TCP with a fresh connection.
    pub fn ask_tcp(&self, ask: &Ask) -> crate::Heard {
        client::TcpClient::connect(self.address).ask(ask)
    }

    /// Runs `dig` against it.
    pub fn dig(&self, arguments: &[&str]) -> String {
        client::dig(self.address, arguments)
    }

    /// Runs `dig +short` against it and returns the lines that it prints.
    pub fn dig_short(&self, arguments: &[&str]) -> Vec<String> {
        let printed = client::dig(self.address, &[&["+short"], arguments].concat());
        printed.lines().map(str::to_owned).collect()
    }

    /// Returns a counter of `gannet stats`, such as `effect.hook` and `done`.
    ///
    /// # Panics
    ///
    /// When there is none of that name.
    pub fn stat(&self, group: &str, name: &str) -> u64 {
        let output = self.command(&["stats"]);
        counter(&String::from_utf8_lossy(&output.stdout), group, name)
    }

    /// Runs `kdig` against it.
    pub fn kdig(&self, arguments: &[&str]) -> String {
        client::kdig(self.address, arguments)
    }
}

/// Returns a counter in what `gannet stats` printed; hyphens and underscores are the same.
///
/// # Panics
///
/// When there is none of that name.
pub fn counter(stats: &str, group: &str, name: &str) -> u64 {
    let wanted = if group == "label" {
        format!("{group}.{name}")
    } else {
        format!("{group}.{}", name.replace('_', "-"))
    };
    let values = stats.lines().filter_map(|line| line.strip_prefix(&wanted)?.strip_prefix(' '));
    let mut numbers = values.filter_map(|rest| rest.split_whitespace().next()?.parse().ok());
    numbers.next().unwrap_or_else(|| panic!("no {wanted} in\n{stats}"))
}

impl Drop for Server {
    fn drop(&mut self) {
        // By its handle, so never another process; already gone is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn filled(yaml: &str, [address, another]: [SocketAddr; 2], directory: &Path) -> String {
    without_api(yaml)
        .replace("@ADDRESS@", &address.to_string())
        .replace("@ANOTHER@", &another.to_string())
        .replace("@DIRECTORY@", &directory.display().to_string())
}
