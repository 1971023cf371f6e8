//! Receivers of dnstap, and what they were sent as BIND's `dnstap-read` prints it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::eventually;

/// The control frames that a receiver says and hears, by their types.
const ACCEPT: u8 = 1;
const START: u8 = 2;
const STOP: u8 = 3;
const READY: u8 = 4;
const FINISH: u8 = 5;

/// What a receiver does with what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It reads everything.
    Reads,
    /// It says that it takes messages, and reads none.
    Stalls,
    /// It closes each connection after so many frames.
    Leaves(usize),
}

/// A receiver in this process, one thread for each connection.
pub struct Receiver {
    shared: Arc<Shared>,
    address: Option<SocketAddr>,
}

struct Shared {
    manner: Manner,
    frames: Mutex<Vec<Vec<u8>>>,
    connections: AtomicUsize,
    finished: AtomicUsize,
}

impl Receiver {
    /// Starts one behind a Unix socket.
    ///
    /// # Panics
    ///
    /// When the socket cannot be made.
    pub fn unix(path: &Path, manner: Manner) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        let shared = Shared::new(manner);
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&own);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { shared, address: None }
    }

    /// Starts one that is reached over TCP, inside of TLS if there is a configuration.
    ///
    /// # Panics
    ///
    /// When loopback has no port.
    pub fn tcp(tls: Option<Arc<ServerConfig>>, manner: Manner) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let shared = Shared::new(manner);
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (shared, tls) = (Arc::clone(&own), tls.clone());
                std::thread::spawn(move || shared.serve_tcp(stream, tls));
            }
        });
        Self { shared, address: Some(address) }
    }

    /// Returns where it listens.
    ///
    /// # Panics
    ///
    /// When it is behind a Unix socket.
    pub fn address(&self) -> SocketAddr {
        self.address.expect("a receiver over TCP")
    }

    /// Returns how many connections have begun to send.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Returns how many connections were ended by the sender.
    pub fn finished(&self) -> usize {
        self.shared.finished.load(Ordering::Relaxed)
    }

    /// Returns how many messages have come.
    pub fn count(&self) -> usize {
        self.shared.frames().len()
    }

    /// Returns the messages that have these octets in them, as protobuf.
    pub fn frames_with(&self, octets: &[u8]) -> Vec<Vec<u8>> {
        let frames = self.shared.frames();
        let has = |frame: &&Vec<u8>| frame.windows(octets.len()).any(|window| window == octets);
        frames.iter().filter(has).cloned().collect()
    }

    /// Returns a line for each message that has come, without its time.
    pub fn lines(&self) -> Vec<String> {
        let mut octets = control(START);
        for frame in self.shared.frames().iter() {
            octets.extend((frame.len() as u32).to_be_bytes());
            octets.extend(frame);
        }
        octets.extend(control(STOP));
        let directory = TempDir::new().expect("a temporary directory");
        let file = directory.path().join("messages.fstrm");
        std::fs::write(&file, octets).expect("a writable directory");
        read(&file, &[]).lines().map(without_time).collect()
    }
}

impl Shared {
    fn new(manner: Manner) -> Arc<Self> {
        let (connections, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { manner, frames: Mutex::default(), connections, finished })
    }

    fn frames(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve_tcp(&self, stream: TcpStream, tls: Option<Arc<ServerConfig>>) {
        match tls {
            None => self.serve(stream),
            Some(tls) => {
                let connection = ServerConnection::new(tls).expect("a configuration that is right");
                self.serve(StreamOwned::new(connection, stream));
            }
        }
    }

    fn serve(&self, mut stream: impl Read + Write) {
        // A sender that goes away is nothing to be surprised at.
        let _ = self.converse(&mut stream);
    }

    fn converse(&self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let mut first = read_control(stream)?;
        let is_bidirectional = first == READY;
        if is_bidirectional {
            stream.write_all(&control(ACCEPT))?;
            stream.flush()?;
            first = read_control(stream)?;
        }
        assert_eq!(first, START);
        self.connections.fetch_add(1, Ordering::Relaxed);
        if self.manner == Manner::Stalls {
            loop {
                std::thread::park();
            }
        }
        let mut heard = 0;
        loop {
            let mut length = [0; 4];
            stream.read_exact(&mut length)?;
            if length == [0; 4] {
                assert_eq!(read_control_body(stream)?, STOP);
                if is_bidirectional {
                    stream.write_all(&control(FINISH))?;
                    stream.flush()?;
                }
                self.finished.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            let mut frame = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut frame)?;
            self.frames().push(frame);
            heard += 1;
            if self.manner == Manner::Leaves(heard) {
                return Ok(());
            }
        }
    }
}

/// Returns a control frame.
fn control(kind: u8) -> Vec<u8> {
    const CONTENT: &[u8] = b"protobuf:dnstap.Dnstap";
    let mut body = vec![0, 0, 0, kind];
    if matches!(kind, ACCEPT | START | READY) {
        body.extend([0, 0, 0, 1, 0, 0, 0, CONTENT.len() as u8]);
        body.extend(CONTENT);
    }
    [&[0; 7], &[body.len() as u8][..], &body].concat()
}

fn read_control(stream: &mut impl Read) -> io::Result<u8> {
    let mut escape = [0; 4];
    stream.read_exact(&mut escape)?;
    assert_eq!(escape, [0; 4], "a control frame");
    read_control_body(stream)
}

fn read_control_body(stream: &mut impl Read) -> io::Result<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body)?;
    Ok(body[3])
}

/// Returns what `dnstap-read` prints of a file.
fn read(file: &Path, options: &[&str]) -> String {
    let output = Command::new("dnstap-read").args(options).arg(file).output().expect("dnstap-read");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn without_time(line: &str) -> String {
    line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned()
}

/// The receiver that comes with Frame Streams, `fstrm_capture`. Is killed when it is dropped.
pub struct Capture {
    child: Child,
    directory: TempDir,
    place: String,
}

impl Capture {
    /// Starts one behind a Unix socket.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn unix() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let socket = directory.path().join("dnstap.sock").display().to_string();
        let place = format!("unix:{socket}");
        let capture = Self::start(directory, place, &["-u", &socket]);
        eventually("the socket", || Path::new(&socket).exists());
        capture
    }

    /// Starts one that is reached over TCP.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn tcp() -> Self {
        let address = crate::free_address();
        let port = address.port().to_string();
        let directory = TempDir::new().expect("a temporary directory");
        Self::start(directory, format!("tcp://{address}"), &["-a", "127.0.0.1", "-p", &port])
    }

    fn start(directory: TempDir, place: String, arguments: &[&str]) -> Self {
        let file = directory.path().join("messages.fstrm");
        let child = Command::new("fstrm_capture")
            .args(["-t", "protobuf:dnstap.Dnstap", "-w"])
            .arg(file)
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .expect("fstrm_capture");
        Self { child, directory, place }
    }

    /// Returns where it is, as `dnstap.to` has it.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Ends it; returns what it has written, as YAML.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub fn stop(mut self) -> String {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-INT", &pid]).status().expect("kill");
        assert!(killed.success());
        self.child.wait().expect("it ends");
        read(&self.directory.path().join("messages.fstrm"), &["-y"])
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
