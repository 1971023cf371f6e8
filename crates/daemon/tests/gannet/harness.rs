//! Starts the program with everything it would touch in a folder of its own.

use std::ffi::{CStr, CString};
use std::fs::Permissions;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// How long anything may take before a test counts as failed; far above what it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder in which commands run, apart from the system's own gannet.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A server that gives up root comes back to its own folder.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the program, told to keep to this folder.
    pub(crate) fn gannet(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gannet"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GANNET_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.folder.path())
            .env("GANNET_SOCKET", self.path("control.sock"))
            .stdin(Stdio::null());
        for name in ["JOURNAL_STREAM", "NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "RUNTIME_DIRECTORY"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.gannet().args(arguments).output().unwrap()
    }
}

/// What a command printed and how it ended.
pub(crate) fn text(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// A server that runs until it is stopped or dropped.
pub(crate) struct Server {
    child: Option<Child>,
    notify: UnixDatagram,
    pub(crate) place: Place,
}

impl Server {
    /// Starts with a configuration and waits until it says that it is ready.
    pub(crate) fn start(config: &str) -> Self {
        let place = Place::new();
        let file = place.write("gannet.yaml", &testkit::without_api(config));
        Self::start_with(place, |command| {
            command.arg("run").arg("-c").arg(&file);
        })
    }

    /// Starts in `place` what `arrange` makes of the command, and waits until it is ready.
    pub(crate) fn start_with(place: Place, arrange: impl FnOnce(&mut Command)) -> Self {
        let notify = UnixDatagram::bind(place.path("notify.sock")).unwrap();
        std::fs::set_permissions(place.path("notify.sock"), Permissions::from_mode(0o666)).unwrap();
        let mut command = place.gannet();
        command.env("NOTIFY_SOCKET", place.path("notify.sock")).stdout(Stdio::piped()).stderr(Stdio::piped());
        arrange(&mut command);
        let mut server = Self { child: Some(command.spawn().unwrap()), notify, place };
        server.wait_for("READY=1");
        server
    }

    /// Forgets what the server has told systemd until now.
    pub(crate) fn forget_notices(&mut self) {
        self.notify.set_nonblocking(true).unwrap();
        while self.notify.recv(&mut [0; 4096]).is_ok() {}
        self.notify.set_nonblocking(false).unwrap();
    }

    /// Waits until the server has told systemd `what`.
    pub(crate) fn wait_for(&mut self, what: &str) -> String {
        let mut buffer = [0; 4096];
        // A server that ended will say nothing; its last words are then the better message.
        self.notify.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let begin = std::time::Instant::now();
        while begin.elapsed() < PATIENCE {
            match self.notify.recv(&mut buffer) {
                Ok(len) => {
                    let said = String::from_utf8_lossy(&buffer[..len]).into_owned();
                    if said.lines().any(|line| line.starts_with(what)) {
                        return said;
                    }
                }
                Err(_) => {
                    let child = self.child.as_mut().unwrap();
                    if child.try_wait().unwrap().is_some() {
                        let output = self.child.take().unwrap().wait_with_output().unwrap();
                        panic!("the server ended before {what}: {:?}", text(&output));
                    }
                }
            }
        }
        panic!("the server did not say {what} in time");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: takes numbers only; the child is ours and has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    /// Runs a command beside the server.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.place.run(arguments)
    }

    /// Returns the first address it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        let (code, stdout, stderr) = text(&self.run(&["status", "--json"]));
        assert_eq!(code, 0, "{stderr}");
        let at = stdout.split("\"at\": \"").nth(1).and_then(|rest| rest.split('"').next());
        at.unwrap_or_else(|| panic!("no listener in {stdout}")).parse().unwrap()
    }

    /// Asks it to end and returns what it printed.
    pub(crate) fn stop(mut self) -> Output {
        self.signal(libc::SIGTERM);
        self.child.take().unwrap().wait_with_output().unwrap()
    }

    /// Asks it to end, waits, and returns the folder for another one.
    pub(crate) fn stop_in_place(self) -> Place {
        self.stop_and_hear().0
    }

    /// Asks it to end, waits, and returns the folder for another one, and its log.
    pub(crate) fn stop_and_hear(mut self) -> (Place, String) {
        self.signal(libc::SIGTERM);
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        assert_eq!(text(&output).0, 0, "{output:?}");
        std::fs::remove_file(self.place.path("notify.sock")).unwrap();
        (std::mem::replace(&mut self.place, Place::new()), text(&output).2)
    }

    /// Waits for its end, however it comes, and returns the folder for another one.
    pub(crate) fn end_in_place(mut self) -> Place {
        self.child.take().unwrap().wait_with_output().unwrap();
        std::fs::remove_file(self.place.path("notify.sock")).unwrap();
        std::mem::replace(&mut self.place, Place::new())
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let mut said = String::new();
            let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
            let _ = child.wait();
            if std::thread::panicking() {
                eprintln!("the server said: {said}");
            }
        }
    }
}

/// An upstream server that answers every A question with 192.0.2.1.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    pub(crate) fn start_at(address: &str) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut query = [0; 1500];
            while let Ok((len, client)) = socket.recv_from(&mut query) {
                let _ = socket.send_to(&answer(&query[..len]), client);
            }
        });
        Self { address }
    }
}

/// Returns the reply to `query`: its question and one A record.
pub(crate) fn answer(query: &[u8]) -> Vec<u8> {
    let parsed = wire::Query::parse(query).unwrap();
    let mut reply = vec![0; 1232];
    let flags = wire::Flags::QR.with(wire::Flags::RA).with(wire::Flags::RD);
    let mut writer = wire::Writer::new(&mut reply, 1232, parsed.header.id, flags);
    writer.question(&parsed.question).unwrap();
    let (owner, ttl) = (parsed.question.qname, wire::Ttl::new(300));
    let record = |w: &mut wire::Writer<'_>| w.bytes(&[192, 0, 2, 1]);
    writer.record(wire::Section::Answer, owner, wire::Rtype::A, wire::Class::IN, ttl, record).unwrap();
    let len = writer.finish();
    reply.truncate(len);
    reply
}

/// Returns a port of loopback that nobody has now, for UDP and TCP.
pub(crate) fn free_port() -> u16 {
    /// Below the ports that the kernel gives to connections of other tests.
    const PORTS: std::ops::Range<u32> = 20_000..32_000;
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(97);
    let is_free = |port: &u16| {
        UdpSocket::bind(("127.0.0.1", *port)).is_ok() && TcpListener::bind(("127.0.0.1", *port)).is_ok()
    };
    let mut ports = std::iter::repeat_with(|| {
        let next = first.wrapping_add(NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        (PORTS.start + next % PORTS.len() as u32) as u16
    });
    ports.find(is_free).unwrap()
}

/// Sends the server on a port of loopback a question for an address; returns the client.
pub(crate) fn send(port: u16, name: &str) -> UdpSocket {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.connect(("127.0.0.1", port)).unwrap();
    let mut query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0".to_vec();
    for label in name.split('.') {
        query.push(label.len() as u8);
        query.extend_from_slice(label.as_bytes());
    }
    query.extend_from_slice(b"\0\0\x01\0\x01");
    client.send(&query).unwrap();
    client
}

/// Asks the server on a port of loopback for an address; returns the reply, and the client's port.
pub(crate) fn ask(port: u16, name: &str) -> (Vec<u8>, u16) {
    let client = send(port, name);
    let mut reply = vec![0; 512];
    let len = client.recv(&mut reply).unwrap();
    assert!(len > 12);
    reply.truncate(len);
    (reply, client.local_addr().unwrap().port())
}

/// Returns whether the tests run as root.
pub(crate) fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Runs `f` on a thread that has a network of its own, nothing but loopback, and this
/// `resolv.conf`.
///
/// Returns false where that is not permitted.
pub(crate) fn in_own_network(resolv_conf: &'static str, f: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::spawn(move || {
        // SAFETY: takes numbers only, and affects this thread and its children alone.
        if unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) } != 0 || !raise_loopback() {
            return false;
        }
        let place = Place::new();
        place.write("resolv.conf", resolv_conf);
        if !lay_over(&place.path("resolv.conf"), Path::new("/etc/resolv.conf")) {
            return false;
        }
        f();
        true
    });
    thread.join().unwrap()
}

/// Shows `file` at `place`, for this thread and its children.
fn lay_over(file: &Path, place: &Path) -> bool {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let (file, place) = (text(file), text(place));
    let mount = |from: &CStr, to: &CStr, flags| {
        // SAFETY: both paths end in a zero byte; neither a type nor data is needed for these flags.
        unsafe { libc::mount(from.as_ptr(), to.as_ptr(), std::ptr::null(), flags, std::ptr::null()) == 0 }
    };
    // First nothing we mount may be seen outside.
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE) && mount(&file, &place, libc::MS_BIND)
}

fn raise_loopback() -> bool {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&socket);
    // SAFETY: the socket is open and `request` lives through the call.
    unsafe { libc::ioctl(descriptor, libc::SIOCSIFFLAGS, &raw const request) == 0 }
}

/// Returns the value of a field in `/proc/PID/status`.
pub(crate) fn proc_status(pid: u32, field: &str) -> String {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field} in {status}")).trim().to_owned()
}
