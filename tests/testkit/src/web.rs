//! A web server that says what it is told to, and remembers what it was asked.

use crate::{DEADLINE, Identity};
use rustls::{ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its first line, such as `GET /list HTTP/1.1`.
    pub line: String,
    /// Its headers; names in lower case.
    pub headers: HashMap<String, String>,
    /// Its body.
    pub body: String,
}

/// What is said to a request.
#[derive(Clone, Debug)]
pub struct Page {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    stalls: bool,
    is_cut: bool,
}

impl Page {
    /// A page that is found.
    pub fn found(body: impl Into<Vec<u8>>) -> Self {
        Self::status("200 OK", body)
    }

    /// Any status, such as `404 Not Found`.
    pub fn status(status: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), stalls: false, is_cut: false }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sends the head and half of the body, and then nothing more.
    #[must_use]
    pub fn stalling(self) -> Self {
        Self { stalls: true, ..self }
    }

    /// Hangs up after half of the body.
    #[must_use]
    pub fn cut_off(self) -> Self {
        Self { is_cut: true, ..self }
    }
}

/// Serves files over HTTPS: what the function returns for the path of a request. Returns where. Its
/// thread ends with the test's process.
///
/// # Panics
///
/// When loopback has no free port.
pub fn serve_securely(
    identity: &Identity,
    file: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    let mut config = (*identity.server()).clone();
    config.alpn_protocols.clear();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection =
                ServerConnection::new(Arc::clone(&config)).expect("a configuration that is right");
            let mut stream = BufReader::new(StreamOwned::new(connection, stream));
            let mut path = None;
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|len| len > 2) {
                path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
                line.clear();
            }
            let (status, body) = match path.and_then(|path| file(&path)) {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", Vec::new()),
            };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let stream = stream.get_mut();
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    address
}

type Serve = Box<dyn Fn(&Request) -> Page + Send + Sync>;

struct Shared {
    serve: Mutex<Serve>,
    heard: Mutex<Vec<Request>>,
    stalled: Mutex<Vec<TcpStream>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running web server. Its threads end with the test's process.
pub struct Web {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Web {
    /// Starts one on a free loopback port.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    pub fn start(serve: impl Fn(&Request) -> Page + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let shared = Arc::new(Shared {
            serve: Mutex::new(Box::new(serve)),
            heard: Mutex::default(),
            stalled: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&own);
                std::thread::spawn(move || shared.connection(stream));
            }
        });
        Self { address, shared }
    }

    /// Says this from now on.
    pub fn behave(&self, serve: impl Fn(&Request) -> Page + Send + Sync + 'static) {
        *locked(&self.shared.serve) = Box::new(serve);
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns everything it was asked so far, in order.
    pub fn heard(&self) -> Vec<Request> {
        locked(&self.shared.heard).clone()
    }
}

impl Shared {
    /// Answers the requests of one connection until it closes.
    fn connection(&self, stream: TcpStream) {
        drop(stream.set_read_timeout(Some(DEADLINE)));
        let mut reader = BufReader::new(stream);
        while let Some(request) = read(&mut reader) {
            let page = (locked(&self.serve))(&request);
            locked(&self.heard).push(request);
            let mut reply = format!("HTTP/1.1 {}\r\nContent-Length: {}\r\n", page.status, page.body.len());
            for (name, value) in &page.headers {
                reply.push_str(&format!("{name}: {value}\r\n"));
            }
            reply.push_str("\r\n");
            let mut octets = reply.into_bytes();
            let is_whole = !page.stalls && !page.is_cut;
            octets.extend(if is_whole { &page.body[..] } else { &page.body[..page.body.len() / 2] });
            if reader.get_mut().write_all(&octets).is_err() || page.is_cut {
                return;
            }
            if page.stalls {
                // Kept open: whoever asked must give up by itself.
                locked(&self.stalled).push(reader.into_inner());
                return;
            }
        }
    }
}

/// Reads a request; `None` when the connection is over.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let octets = headers.get("content-length").and_then(|octets| octets.parse().ok()).unwrap_or(0);
    let mut body = vec![0; octets];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line: line.trim().to_owned(), headers, body: String::from_utf8_lossy(&body).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_it_is_told_to_and_remembers() {
        let web = Web::start(|request| {
            if request.line.starts_with("GET /a ") {
                Page::found("hello").header("ETag", "\"1\"")
            } else {
                Page::status("404 Not Found", "")
            }
        });
        let mut stream = TcpStream::connect(web.address()).expect("it listens");
        let request = b"GET /a HTTP/1.1\r\nX-Who: me\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi";
        stream.write_all(request).expect("an open connection");
        let expect = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"1\"\r\n\r\nhello\
                      HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        let mut heard = vec![0; expect.len()];
        stream.read_exact(&mut heard).expect("both replies");
        assert_eq!(String::from_utf8_lossy(&heard), expect);
        let asked = web.heard();
        assert_eq!((asked.len(), asked[0].headers["x-who"].as_str()), (2, "me"));
        assert_eq!((asked[1].line.as_str(), asked[1].body.as_str()), ("POST /b HTTP/1.1", "hi"));
    }

    #[test]
    fn it_hangs_up_in_the_middle() {
        let web = Web::start(|_| Page::found("123456").cut_off());
        let mut stream = TcpStream::connect(web.address()).expect("it listens");
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("an open connection");
        let mut heard = String::new();
        stream.read_to_string(&mut heard).expect("text");
        assert_eq!(heard, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n123");
    }
}
