//! Requests to the running server over its control socket, which speaks HTTP/1.1.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often someone who follows a stream looks whether it is the end.
const GLANCE: Duration = Duration::from_millis(200);
/// Octets that are shown of a reply that was not expected.
const SHOWN_MAX: usize = 400;

/// A connection that stays open from one request to the next.
pub(super) struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    pub(super) fn connect(socket: &Path) -> Result<Self, String> {
        let connect = || -> io::Result<UnixStream> {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let stream = connect().map_err(|error| format!("{}: {error}", socket.display()))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Returns the reply to a POST of JSON; anything but success is an error.
    pub(super) fn post(&mut self, path: &str, body: &str) -> Result<String, String> {
        self.ask("POST", path, body)
    }

    /// Returns the reply to a GET; anything but success is an error.
    pub(super) fn get(&mut self, path: &str) -> Result<String, String> {
        self.ask("GET", path, "")
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<String, String> {
        let wrong = |error: io::Error| format!("{method} {path}: {error}");
        self.send(method, path, body).map_err(wrong)?;
        let (status, length) = self.head().map_err(wrong)?;
        let mut reply = vec![0; length];
        self.stream.read_exact(&mut reply).map_err(wrong)?;
        let reply = String::from_utf8_lossy(&reply).into_owned();
        if !(200..300).contains(&status) {
            let shown: String = reply.chars().take(SHOWN_MAX).collect();
            return Err(format!("{method} {path}: {status}: {shown}"));
        }
        Ok(reply)
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> io::Result<()> {
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {}\r\n\r\n",
            body.len()
        );
        // In one piece: what comes second waits for nothing then.
        self.stream.get_mut().write_all([head, body.to_owned()].concat().as_bytes())
    }

    /// Returns the status of a reply, and the octets of its body.
    fn head(&mut self) -> io::Result<(u16, usize)> {
        let (mut status, mut length) = (0, 0);
        for at in 0.. {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end();
            if at == 0 {
                status = line.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
            } else if line.is_empty() {
                break;
            } else if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        Ok((status, length))
    }

    /// Reads a stream of events until `end`, and adds one to `following` at the first; an error if
    /// none came.
    pub(super) fn follow(
        mut self,
        path: &str,
        following: &AtomicUsize,
        end: &AtomicBool,
    ) -> Result<(), String> {
        let wrong = |error: io::Error| format!("GET {path}: {error}");
        self.send("GET", path, "").map_err(wrong)?;
        let (status, _) = self.head().map_err(wrong)?;
        if status != 200 {
            return Err(format!("GET {path}: {status}"));
        }
        self.stream.get_ref().set_read_timeout(Some(GLANCE)).map_err(wrong)?;
        let (mut has_event, mut buffer) = (false, vec![0; 1 << 16]);
        while !end.load(Ordering::Relaxed) {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(format!("GET {path}: the stream ended")),
                Ok(_) if !has_event => {
                    has_event = true;
                    following.fetch_add(1, Ordering::Relaxed);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(wrong(error)),
            }
        }
        if has_event { Ok(()) } else { Err(format!("GET {path}: no event came")) }
    }
}

/// Tries to log in with a name that nobody has; being refused, or slowed down, is what is expected.
pub(super) fn try_to_log_in(api: SocketAddr) -> Result<(), String> {
    let attempt = || -> io::Result<String> {
        let mut stream = TcpStream::connect(api)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let form = "name=nobody&password=a-long-wrong-password";
        let head = format!(
            "POST /login HTTP/1.1\r\nHost: {api}\r\nOrigin: http://{api}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        stream.write_all(head.as_bytes())?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok(reply)
    };
    let reply = attempt().map_err(|error| format!("POST /login: {error}"))?;
    match reply.split(' ').nth(1) {
        Some("401" | "429") => Ok(()),
        _ => Err(format!("POST /login: {}", reply.chars().take(SHOWN_MAX).collect::<String>())),
    }
}
