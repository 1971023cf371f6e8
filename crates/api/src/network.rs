//! The API over TCP and TLS: who comes, whether their requests are for us, and who they are.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use control::{Proof, WhenFull, converse_with_all};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use server::{Credential, Operator};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::limits::Asker;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::{Api, HEAD_TIME_MAX, HEALTH, Who};
use crate::session::{self, Visitor};

/// Connections at once; of the network that has the most, the oldest makes way for the next, unless
/// it is known whose it is.
pub const CONNECTIONS_MAX: usize = 64;
/// What the first octet of TLS is: a record of the handshake (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 0x16;
/// What is said without TLS to who comes to an address that others can reach.
const PLAIN_REFUSAL: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 33\r\n\
    Connection: close\r\n\r\nthis address speaks HTTPS alone.\n";

/// Serves the API on sockets until dropped; dropping it ends every connection.
///
/// # Errors
///
/// The runtime cannot take a socket.
pub async fn serve(listeners: Vec<StdTcpListener>, operator: Arc<Operator>) -> io::Result<()> {
    let api = Arc::new(Api::new(operator));
    let mut open = Vec::new();
    for listener in listeners {
        listener.set_nonblocking(true)?;
        open.push(TcpListener::from_std(listener)?);
    }
    // Together they have so many connections.
    let accept = || {
        poll_fn(|context| {
            let mut accepted = open.iter().map(|listener| listener.poll_accept(context));
            accepted.find(Poll::is_ready).unwrap_or(Poll::Pending)
        })
    };
    let converse = |(stream, from), proof| converse(Arc::clone(&api), stream, (from, proof));
    converse_with_all((CONNECTIONS_MAX, WhenFull::EndsOldest), accept, converse).await
}

/// Serves one connection.
async fn converse(api: Arc<Api>, stream: TcpStream, (from, proof): (SocketAddr, Proof)) {
    // What goes wrong here concerns this client alone, and it notices.
    let _ = try_converse(api, stream, (from.ip().to_canonical(), proof)).await;
}

async fn try_converse(
    api: Arc<Api>,
    mut stream: TcpStream,
    (from, proof): (IpAddr, Proof),
) -> io::Result<()> {
    let is_of_this_machine = stream.local_addr()?.ip().to_canonical().is_loopback();
    let mut first = [0];
    if timeout(HEAD_TIME_MAX, stream.peek(&mut first)).await?? == 0 {
        return Ok(());
    }
    if first == [TLS_HANDSHAKE] {
        let Some(config) = api.operator().tls().and_then(|tls| tls.for_control()) else { return Ok(()) };
        let stream = timeout(HEAD_TIME_MAX, TlsAcceptor::from(config).accept(stream)).await??;
        api.converse(stream, Who::Stranger { from, is_tls: true, proof }).await;
    } else if is_of_this_machine {
        api.converse(stream, Who::Stranger { from, is_tls: false, proof }).await;
    } else {
        timeout(HEAD_TIME_MAX, stream.write_all(PLAIN_REFUSAL)).await??;
    }
    Ok(())
}

impl Api {
    /// Returns who sends a request over the network.
    ///
    /// # Errors
    ///
    /// It is not for us, there are too many, or whoever sends it shows neither a token nor a
    /// session of ours although one is needed.
    pub(crate) fn welcome(
        &self,
        request: &Request<Incoming>,
        (from, is_tls): (IpAddr, bool),
        needs_proof: bool,
    ) -> Result<Option<Visitor>, Reply> {
        let now = Instant::now();
        let headers = request.headers();
        let stranger = Asker::stranger(from);
        // What anybody may know makes no difference to anybody: a token is not even looked at.
        let is_health = request.uri().path() == HEALTH;
        let visitor = match bearer(headers) {
            _ if is_health => None,
            Some(token) => {
                let known = self.operator().bearer(token, from);
                if known.is_none() {
                    self.limits.note_failure(&stranger, now);
                    self.operator().note_failed_log_in(from);
                }
                known.map(|(caller, is_log_in)| Visitor {
                    logs_in_from: is_log_in.then_some(from),
                    credential: Some(Credential::token(token)),
                    ..Visitor::known(caller)
                })
            }
            None => session::shown(headers, is_tls).and_then(|secret| {
                let (caller, is_due) = self.operator().session(secret)?;
                let (session, credential) = (Some(secret.to_owned()), Some(Credential::session(secret)));
                Some(Visitor { session, is_due, credential, ..Visitor::known(caller) })
            }),
        };
        let asker = visitor.as_ref().map_or(stranger, |it| Asker::Known(it.caller.name.clone()));
        // Nor is whoever watches over the server to hear nothing because a neighbour asks too much.
        if !is_health {
            self.limits.admit(&asker, now).map_err(too_many)?;
        }
        if request.uri().authority().is_some() {
            return Err(Reply::from(Problem::new(421, "this is no proxy: expected a path")));
        }
        let host = is_for_us(headers, self.operator()).map_err(Reply::from)?;
        is_of_our_pages(headers, host).map_err(Reply::from)?;
        let is_look = matches!(request.method().as_str(), "GET" | "HEAD");
        if needs_proof && visitor.as_ref().is_some_and(|it| it.session.is_some()) {
            match is_look {
                false => session::check_write(headers).map_err(Reply::from)?,
                // A look that has the server work for minutes, and its disk filled meanwhile.
                true if request.uri().path() == "/api/v1/backup" => {
                    session::check_costly(headers).map_err(Reply::from)?;
                }
                true => {}
            }
        }
        if needs_proof && visitor.is_none() {
            let why = "this needs a token (\"gannet token add\" makes one) or a session";
            return Err(Reply::from(Problem::new(401, why)).with("www-authenticate", "Bearer".to_owned()));
        }
        Ok(visitor)
    }
}

fn too_many(wait: Duration) -> Reply {
    let problem = Problem::new(429, "too many requests: 30 a second, 60 at once");
    Reply::from(problem).with("retry-after", (wait.as_secs() + 1).to_string())
}

/// Returns the only value of a header, as text; `None` if there is none, or several.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    all.next().is_none().then_some(first)?.to_str().ok()
}

/// The header in which programs that speak PowerDNS's API show a token.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Returns the token that a request shows (RFC 6750).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    if !headers.contains_key(AUTHORIZATION) {
        return only(headers, &API_KEY);
    }
    let (scheme, token) = only(headers, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the host that a request is for, if that is us.
///
/// A page of a stranger can have its own name lead to our address (DNS rebinding), and then it is
/// the browser's opinion that it may read what we say: so the name has to be ours.
fn is_for_us<'h>(headers: &'h HeaderMap, operator: &Operator) -> Result<&'h str, Problem> {
    let host = only(headers, &HOST).ok_or_else(|| Problem::new(400, "expected one Host"))?;
    let is_ours = is_address(host) || {
        let name = without_port(host);
        name.eq_ignore_ascii_case("localhost") || operator.names().iter().any(|known| is_name(known, name))
    };
    match is_ours {
        true => Ok(host),
        false => Err(Problem::new(421, format!("\"{host}\" is not this server (setting control.names)"))),
    }
}

fn is_address(host: &str) -> bool {
    let is_v6 = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => is_v6(address) && (rest.is_empty() || rest.starts_with(':')),
        None => without_port(host).parse::<std::net::Ipv4Addr>().is_ok(),
    }
}

fn without_port(host: &str) -> &str {
    host.split(':').next().unwrap_or(host)
}

/// Returns whether `name` is that of a certificate, which may stand for all names one label below.
fn is_name(known: &str, name: &str) -> bool {
    match known.strip_prefix("*.") {
        Some(parent) => name
            .split_once('.')
            .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(parent)),
        None => known.eq_ignore_ascii_case(name),
    }
}

/// Returns an error if a page of somebody else has a browser send this.
fn is_of_our_pages(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    if !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let origin = only(headers, &ORIGIN).unwrap_or("null");
    let of_us =
        |scheme: &str| origin.strip_prefix(scheme).is_some_and(|rest| rest.eq_ignore_ascii_case(host));
    match of_us("https://") || of_us("http://") {
        true => Ok(()),
        false => Err(Problem::new(403, format!("a page of {origin} has no business here"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_a_name_of_ours() {
        for host in ["192.0.2.1", "192.0.2.1:8533", "[2001:db8::1]:8533", "[::1]"] {
            assert!(is_address(host), "{host}");
        }
        for host in ["evil.example", "192.0.2.1.evil.example", "[evil]", "[::1].evil.example", "::1", "", "1"]
        {
            assert!(!is_address(host), "{host}");
        }
        assert!(is_name("dns.example.org", "DNS.example.org") && is_name("*.example.org", "a.example.org"));
        assert!(!is_name("*.example.org", "a.b.example.org") && !is_name("*.example.org", ".example.org"));
        assert!(!is_name("*.example.org", "example.org") && !is_name("dns.example.org", "dns.example.com"));
    }

    #[test]
    fn only_our_own_pages_may_send_something() {
        let check = |origin: &str| {
            let headers = [(ORIGIN, origin.parse().expect("a value"))].into_iter().collect();
            is_of_our_pages(&headers, "dns.example.org:8533").is_ok()
        };
        assert!(check("https://dns.example.org:8533"));
        for other in [
            "https://dns.example.org",
            "https://evil.example",
            "null",
            "https://dns.example.org:8533.evil.example",
        ] {
            assert!(!check(other), "{other}");
        }
        assert!(is_of_our_pages(&HeaderMap::new(), "dns.example.org").is_ok());
    }

    #[test]
    fn a_token_is_shown_once() {
        let headers = |values: &[&str]| -> HeaderMap {
            values.iter().map(|value| (AUTHORIZATION, value.parse().expect("a value"))).collect()
        };
        assert_eq!(bearer(&headers(&["Bearer gnt_1"])), Some("gnt_1"));
        assert_eq!(bearer(&headers(&["bearer gnt_1"])), Some("gnt_1"));
        assert_eq!(bearer(&headers(&["Basic YTpi"])), None);
        assert_eq!(bearer(&headers(&["Bearer gnt_1", "Bearer gnt_2"])), None);
    }
}
