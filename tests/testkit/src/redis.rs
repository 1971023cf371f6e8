//! A Redis server, as it is installed, and one that does not answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::{eventually, free_address};

/// A Redis server that keeps nothing on disk. Is killed when it is dropped.
pub struct Redis {
    address: SocketAddr,
    directory: TempDir,
    password: Option<String>,
    child: Child,
}

impl Redis {
    /// Starts one without a password.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start() -> Self {
        Self::start_at(free_address(), None)
    }

    /// Starts one that wants this password.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start_with_password(password: &str) -> Self {
        Self::start_at(free_address(), Some(password))
    }

    /// Starts one at this address.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start_at(address: SocketAddr, password: Option<&str>) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let (port, socket) = (address.port().to_string(), directory.path().join("redis.sock"));
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(directory.path());
        if let Some(password) = password {
            command.args(["--requirepass", password]);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|why| panic!("cannot run redis-server: {why}"));
        let redis = Self { address, directory, password: password.map(str::to_owned), child };
        eventually("Redis answers", || redis.try_command(&[b"PING"]).as_deref() == Some(b"PONG"));
        redis
    }

    /// Returns where it is, as settings have it.
    pub fn place(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Returns where it is behind a socket, as settings have it.
    pub fn socket(&self) -> String {
        format!("unix:{}", self.directory.path().join("redis.sock").display())
    }

    /// Returns its address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a command; returns the value, status or number that comes back, and nothing for nil.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub fn command(&self, words: &[&[u8]]) -> Vec<u8> {
        self.try_command(words).expect("a reply")
    }

    /// Returns the keys of a database, which are few.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub fn keys(&self) -> usize {
        String::from_utf8(self.command(&[b"DBSIZE"])).expect("text").parse().expect("a number")
    }

    /// Stops it from answering, or lets it go on.
    ///
    /// # Panics
    ///
    /// When `kill` cannot be run.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    fn try_command(&self, words: &[&[u8]]) -> Option<Vec<u8>> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(crate::DEADLINE)).ok()?;
        let mut octets = Vec::new();
        let mut say = |words: &[&[u8]]| {
            octets.extend(format!("*{}\r\n", words.len()).into_bytes());
            for word in words {
                octets.extend(format!("${}\r\n", word.len()).into_bytes());
                octets.extend_from_slice(word);
                octets.extend_from_slice(b"\r\n");
            }
        };
        let password = self.password.as_deref();
        if let Some(password) = password {
            say(&[b"AUTH", password.as_bytes()]);
        }
        say(words);
        stream.write_all(&octets).ok()?;
        let mut reader = BufReader::new(stream);
        if password.is_some() {
            reply(&mut reader)?;
        }
        reply(&mut reader)
    }
}

/// Reads one reply that is no list.
fn reply(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let line = line.strip_suffix("\r\n")?;
    let Some(length) = line.strip_prefix('$') else { return Some(line.get(1..)?.as_bytes().to_vec()) };
    let Ok(length) = length.parse::<usize>() else { return Some(Vec::new()) };
    let mut value = vec![0; length + 2];
    reader.read_exact(&mut value).ok()?;
    value.truncate(length);
    Some(value)
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that takes connections and what is said on them, and never says a word.
pub struct MuteRedis {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl MuteRedis {
    /// Starts one. It ends with the process.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            let mut all = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::Relaxed);
                all.push(stream);
            }
        });
        Self { address, connections }
    }

    /// Returns where it is, as settings have it.
    pub fn place(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Returns how many connections it has had.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}
