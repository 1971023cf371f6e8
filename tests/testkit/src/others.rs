//! Other DNS servers and their tools, as they are installed.

#![allow(clippy::print_stderr, reason = "what a test says goes there")]

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::client::run_dig;
use crate::eventually;

/// Returns whether a program is on the path. Tests that need one say that they are skipped where it
/// cannot be installed.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(program).is_file());
    if !is_there {
        eprintln!("SKIPPED: {program} is not installed; `cargo xtask test` installs it where it can");
    }
    is_there
}

/// Returns a free address with a port, for both UDP and TCP. It is none of those that the system
/// gives to whoever asks for any, nor is it returned twice: nobody is there before the server that
/// it is for.
///
/// # Panics
///
/// When there is none.
pub fn free_address() -> SocketAddr {
    const FIRST: u32 = 10_240;
    const COUNT: u32 = 22_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(61);
    let ports = (0..COUNT)
        .map(|_| FIRST + begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .filter_map(|port| u16::try_from(port).ok());
    ports
        .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .find(|address| UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok())
        .expect("a free loopback port")
}

/// Another server. Is killed when it is dropped.
pub struct Other {
    address: SocketAddr,
    directory: TempDir,
    child: Child,
}

impl Other {
    /// Starts `program` with a configuration and files in a directory of its own. In all of them
    /// and in the arguments, `@DIRECTORY@` and `@PORT@` stand for that directory and the port.
    /// Waits until it answers anything at all.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start(program: &str, arguments: &[&str], files: &[(&str, &str)], address: SocketAddr) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().display().to_string();
        let filled =
            |text: &str| text.replace("@DIRECTORY@", &path).replace("@PORT@", &address.port().to_string());
        for (name, text) in files {
            std::fs::write(directory.path().join(name), filled(text)).expect("a writable directory");
        }
        let log = std::fs::File::create(directory.path().join("log")).expect("a writable directory");
        let child = Command::new(program)
            .args(arguments.iter().map(|argument| filled(argument)))
            .current_dir(directory.path())
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|why| panic!("cannot run {program}: {why}"));
        let other = Self { address, directory, child };
        eventually(program, || !other.dig(&["+time=1", ".", "SOA"]).is_empty());
        other
    }

    /// Starts BIND; `options` go with its options, `more` behind them.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn bind(options: &str, more: &str, files: &[(&str, &str)]) -> Self {
        let conf = format!(
            "options {{ directory \"@DIRECTORY@\"; listen-on port @PORT@ {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
             pid-file none; lock-file none; session-keyfile \"@DIRECTORY@/session.key\"; recursion no; notify explicit;\n\
             dnssec-validation no; max-ixfr-ratio unlimited;\n{options}\n}};\ncontrols {{ }};\n{more}\n"
        );
        let arguments = ["-g", "-n", "1", "-c", "@DIRECTORY@/conf"];
        Self::start("named", &arguments, &[&[("conf", conf.as_str())], files].concat(), free_address())
    }

    /// Starts Knot; `more` goes behind what says where it listens and where its files are.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn knot(more: &str, files: &[(&str, &str)]) -> Self {
        let conf = format!(
            "server:\n    rundir: @DIRECTORY@\n    listen: 127.0.0.1@@PORT@\ndatabase:\n    storage: @DIRECTORY@\n\
             log:\n  - target: stderr\n    any: info\n{more}\n"
        );
        let arguments = ["-c", "@DIRECTORY@/conf"];
        Self::start("knotd", &arguments, &[&[("conf", conf.as_str())], files].concat(), free_address())
    }

    /// Starts NSD; `server` goes with what is said of the server, `more` behind it.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn nsd(server: &str, more: &str, files: &[(&str, &str)]) -> Self {
        let conf = format!(
            "server:\n  ip-address: 127.0.0.1@@PORT@\n  username: \"\"\n  zonesdir: \"@DIRECTORY@\"\n  database: \"\"\n\
             \x20 pidfile: \"@DIRECTORY@/pid\"\n  xfrdfile: \"@DIRECTORY@/xfrd\"\n  xfrdir: \"@DIRECTORY@\"\n\
             \x20 zonelistfile: \"@DIRECTORY@/list\"\n  server-count: 1\n  verbosity: 2\n{server}\n\
             remote-control:\n  control-enable: no\n{more}\n"
        );
        let arguments = ["-d", "-c", "@DIRECTORY@/conf"];
        Self::start("nsd", &arguments, &[&[("conf", conf.as_str())], files].concat(), free_address())
    }

    /// Returns where it answers.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Asks it with `dig`; empty if it does not answer.
    pub fn dig(&self, arguments: &[&str]) -> String {
        run_dig(self.address, arguments).unwrap_or_default()
    }

    /// Returns what it printed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Returns whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        let _ = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- {} ---\n{}", self.directory.path().display(), self.log());
        }
    }
}

/// Runs a program that reads commands, such as `nsupdate`.
///
/// # Panics
///
/// When it cannot be run.
pub fn with_input(program: &str, arguments: &[&str], input: &str) -> Output {
    use std::io::Write as _;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("cannot run {program}: {why}"));
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}
