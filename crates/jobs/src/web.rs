//! Files on web servers: asked for if they have changed, and read up to a limit.

use std::fmt;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use ureq::Agent;
use ureq::http::{HeaderMap, Request, Uri, header};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::http::{Trust, agent, agent_following};

/// Octets that are read at a time.
const CHUNK_OCTETS: usize = 64 * 1024;
/// How a file of gzip begins (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Addresses of one host that are tried.
const ADDRESSES_MAX: usize = 16;

/// A file on a web server.
#[derive(Clone, Copy, Debug)]
pub struct WebFile<'a> {
    /// Where it is.
    pub url: &'a str,
    /// What the server said of it when it was last read.
    pub known: Option<&'a Validators>,
    /// How long fetching it may take.
    pub timeout: Duration,
    /// Octets it may have, unpacked.
    pub octets_max: u64,
    /// Whether its contents are proved by themselves: then the server needs not to be.
    pub proves_itself: bool,
}

/// What a server says of a file, to ask later whether it has changed (RFC 9110 §8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// `ETag`; empty if there is none.
    pub etag: String,
    /// `Last-Modified`; empty if there is none.
    pub last_modified: String,
}

/// What a server says to a request.
pub enum WebReply {
    /// The file is as it was.
    Unchanged,
    /// The file, unpacked if it was packed with gzip.
    Whole(Vec<u8>, Validators),
}

/// Finds the addresses of web servers.
pub trait Hosts: Send + Sync + fmt::Debug {
    /// Returns the addresses of a host; an error says why they are not known. Blocks.
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String>;
}

/// Sends single requests whose responses are looked at whole. Follows no redirection.
#[derive(Debug)]
pub struct Client(Agent);

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The method.
    pub method: &'a str,
    /// Where to.
    pub url: &'a str,
    /// The type of the body, and the body.
    pub body: Option<(&'a str, &'a str)>,
    /// Octets that the body of the response may have.
    pub octets_max: u64,
}

/// A response, whatever its status.
#[derive(Clone, Debug)]
pub struct Received {
    /// The status.
    pub status: u16,
    fields: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// Returns a field of its head, if it is a text.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.to_str().ok()
    }
}

impl Client {
    /// Prepares to ask servers that one of the authorities in a file vouches for, or one that
    /// Mozilla trusts. Each request may take so long; `hosts` finds the servers.
    ///
    /// # Errors
    ///
    /// The file cannot be used.
    pub fn new(roots: Option<&Path>, hosts: &Arc<dyn Hosts>, patience: Duration) -> io::Result<Self> {
        let trust = roots.map_or(Trust::Usual, |file| Trust::File(file.to_owned()));
        agent_following(0, patience, &trust, ByHosts(Arc::clone(hosts))).map(Self)
    }

    /// Sends a request. Blocks.
    ///
    /// # Errors
    ///
    /// Why there is no response, or not the whole of it.
    pub fn send(&self, sent: &Sent<'_>) -> Result<Received, String> {
        let said = |error: ureq::Error| error.to_string();
        let request = Request::builder().method(sent.method).uri(sent.url);
        let response = match sent.body {
            Some((kind, body)) => {
                let request = request.header(header::CONTENT_TYPE, kind).body(body);
                self.0.run(request.map_err(|error| error.to_string())?)
            }
            None => self.0.run(request.body(()).map_err(|error| error.to_string())?),
        };
        let (head, mut body) = response.map_err(said)?.into_parts();
        let mut octets = Vec::new();
        let read = body.as_reader().take(sent.octets_max.saturating_add(1)).read_to_end(&mut octets);
        read.map_err(|error| error.to_string())?;
        if octets.len() as u64 > sent.octets_max {
            return Err(format!("it answers with more than {} octets", sent.octets_max));
        }
        Ok(Received { status: head.status.as_u16(), fields: head.headers, body: octets })
    }
}

/// Fetches a file; `hosts` finds its server. Blocks.
pub fn fetch(file: &WebFile<'_>, hosts: &Arc<dyn Hosts>) -> Result<WebReply, String> {
    fetch_by(file, ByHosts(Arc::clone(hosts)), &mut |_| Ok(()))
}

/// A question to a web server that is no file: nothing of it goes anywhere else.
#[derive(Clone, Copy, Debug)]
pub struct WebQuestion<'a> {
    /// Where it goes.
    pub url: &'a str,
    /// What is sent, as a form; `None`: nothing is.
    pub form: Option<&'a str>,
    /// The header `Authorization`.
    pub authorization: Option<&'a str>,
    /// Certificates of authorities that the server is believed by, in place of the usual ones.
    pub ca: Option<&'a Path>,
    /// How long it may take.
    pub timeout: Duration,
    /// Octets that an answer may have.
    pub octets_max: u64,
}

/// Asks a web server; `hosts` finds it. Returns the status and the answer. Redirections are not
/// followed. Blocks.
///
/// # Errors
///
/// There is no answer, or it is too long.
pub fn ask(question: &WebQuestion<'_>, hosts: &Arc<dyn Hosts>) -> Result<(u16, Vec<u8>), String> {
    let trust = question.ca.map_or(Trust::Usual, |file| Trust::File(file.to_owned()));
    let resolver = ByHosts(Arc::clone(hosts));
    let agent = agent_following(0, question.timeout, &trust, resolver).map_err(|error| error.to_string())?;
    let mut request = match question.form {
        Some(_) => {
            Request::post(question.url).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        }
        None => Request::get(question.url),
    };
    request = request.header(header::ACCEPT, "application/json");
    if let Some(authorization) = question.authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let body = question.form.unwrap_or("").to_owned();
    // What the client says of a failure may repeat what was sent.
    let failed = |error: ureq::Error| match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Timeout(_) => "it takes too long".to_owned(),
        other => other.to_string(),
    };
    let mut response = match question.form {
        Some(_) => agent.run(request.body(body).map_err(|error| error.to_string())?),
        None => agent.run(request.body(()).map_err(|error| error.to_string())?),
    }
    .map_err(failed)?;
    let status = response.status().as_u16();
    let mut octets = Vec::new();
    let mut reader = response.body_mut().as_reader().take(question.octets_max.saturating_add(1));
    reader.read_to_end(&mut octets).map_err(|error| error.to_string())?;
    match octets.len() as u64 > question.octets_max {
        true => Err(format!("it has more than {} octets", question.octets_max)),
        false => Ok((status, octets)),
    }
}

/// Fetches a file; `hear` is told how many octets have come, and may give up.
pub(crate) fn fetch_by(
    file: &WebFile<'_>,
    resolver: impl Resolver,
    hear: &mut dyn FnMut(usize) -> Result<(), String>,
) -> Result<WebReply, String> {
    let said = |error: ureq::Error| error.to_string();
    let trust = if file.proves_itself { Trust::Everybody } else { Trust::Usual };
    let agent = agent(file.timeout, &trust, resolver).map_err(|error| error.to_string())?;
    let mut request = Request::get(file.url);
    if let Some(known) = file.known {
        if !known.etag.is_empty() {
            request = request.header(header::IF_NONE_MATCH, &known.etag);
        }
        if !known.last_modified.is_empty() {
            request = request.header(header::IF_MODIFIED_SINCE, &known.last_modified);
        }
    }
    let request = request.body(()).map_err(|error| error.to_string())?;
    let mut response = agent.run(request).map_err(said)?;
    let status = response.status();
    if status.as_u16() == 304 && file.known.is_some() {
        return Ok(WebReply::Unchanged);
    }
    if !status.is_success() {
        return Err(format!("the server answers {status}"));
    }
    let of = |name: header::HeaderName| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or("").to_owned()
    };
    let validators = Validators { etag: of(header::ETAG), last_modified: of(header::LAST_MODIFIED) };
    let octets = read(file, response.body_mut().as_reader(), hear)?;
    let octets = if octets.starts_with(&GZIP) { unpacked(&octets, file.octets_max)? } else { octets };
    Ok(WebReply::Whole(octets, validators))
}

fn read(
    file: &WebFile<'_>,
    mut body: impl io::Read,
    hear: &mut dyn FnMut(usize) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    let mut octets = Vec::new();
    let mut chunk = vec![0; CHUNK_OCTETS];
    loop {
        let len = body.read(&mut chunk).map_err(|error| error.to_string())?;
        if len == 0 {
            return Ok(octets);
        }
        octets.extend_from_slice(&chunk[..len]);
        if octets.len() as u64 > file.octets_max {
            return Err(format!("it has more than {} octets", file.octets_max));
        }
        hear(octets.len())?;
    }
}

/// Unpacks gzip, up to a limit.
pub(crate) fn unpacked(octets: &[u8], octets_max: u64) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut reader = MultiGzDecoder::new(octets).take(octets_max.saturating_add(1));
    reader.read_to_end(&mut out).map_err(|error| format!("it cannot be unpacked: {error}"))?;
    if out.len() as u64 > octets_max {
        return Err(format!("unpacked it has more than {octets_max} octets"));
    }
    Ok(out)
}

/// Has somebody else find addresses.
#[derive(Debug)]
struct ByHosts(Arc<dyn Hosts>);

impl Resolver for ByHosts {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().unwrap_or("");
        if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return DefaultResolver::default().resolve(uri, config, timeout);
        }
        let found = self.0.addresses(host).map_err(|why| io::Error::other(format!("\"{host}\": {why}")))?;
        let mut all = self.empty();
        let port = port_of(uri);
        found.iter().take(ADDRESSES_MAX).for_each(|address| all.push(SocketAddr::new(*address, port)));
        Ok(all)
    }
}

/// Returns the port that a URL stands for.
pub(crate) fn port_of(uri: &Uri) -> u16 {
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    uri.port_u16().unwrap_or(usual)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    /// Knows no host: the tests name addresses.
    #[derive(Debug)]
    struct Nobody;

    impl Hosts for Nobody {
        fn addresses(&self, _: &str) -> Result<Vec<IpAddr>, String> {
            Err("nobody is there".to_owned())
        }
    }

    /// Asks a server that says this to everybody, without end if it is so wanted.
    fn asked(says: &'static str, is_endless: bool) -> Result<Received, String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/x", listener.local_addr().expect("a bound socket"));
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(says.as_bytes());
            while is_endless && stream.write_all(&[b' '; 4096]).is_ok() {}
            // Until the other side gives up.
            let _ = stream.read(&mut request);
        });
        let hosts: Arc<dyn Hosts> = Arc::new(Nobody);
        let client = Client::new(None, &hosts, Duration::from_secs(3)).expect("roots");
        client.send(&Sent { method: "GET", url: &url, body: None, octets_max: 10_000 })
    }

    #[test]
    fn a_response_comes_as_it_is_whatever_its_status() {
        let moved = asked("HTTP/1.1 302 X\r\nLocation: /y\r\nContent-Length: 2\r\n\r\nok", false);
        let moved = moved.expect("a response");
        assert_eq!((moved.status, moved.field("location"), &*moved.body), (302, Some("/y"), &b"ok"[..]));
        assert_eq!(moved.field("replay-nonce"), None);
    }

    #[test]
    fn a_response_without_end_and_one_that_never_comes_are_given_up() {
        let why = asked("HTTP/1.1 200 X\r\n\r\n", true).expect_err("it has no end");
        assert!(why.contains("more than 10000 octets"), "{why}");
        let why = asked("", false).expect_err("it never comes");
        assert!(why.contains("timeout"), "{why}");
    }
}
