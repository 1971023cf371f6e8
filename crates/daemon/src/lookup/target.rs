//! Whom `gannet query` asks: what is written behind `@`, or the server that runs here.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use commands::cli::QueryArgs;
use commands::query::{Carrier, Proof, Words};
use commands::{out, remote};
use environment::System;
use identity::{Registry, Transport};
use plan::upstreams;

/// Where a local server is looked for when none is running under our control.
const LOCAL_PORTS: [u16; 2] = [53, 5300];
/// The port of DNS, of DNS over TLS and QUIC, and of HTTPS.
const PORT: u16 = 53;
const SECURE_PORT: u16 = 853;
const HTTPS_PORT: u16 = 443;

/// One address, and how it is spoken to.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) line: Line,
}

/// How an address is spoken to.
#[derive(Clone)]
pub(super) enum Line {
    Udp,
    Tcp,
    /// Encrypted, as a plan for an upstream says.
    Secure(Arc<Transport>),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.line {
            Line::Udp | Line::Tcp => write!(f, "{}", self.address),
            Line::Secure(transport) => {
                write!(f, "{}{}", transport.way().protocol.scheme().prefix(), self.address)
            }
        }
    }
}

/// Why there is nobody to ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Nobody {
    /// What is written makes no sense.
    Usage(String),
    /// There is no such server.
    Unknown(String),
}

/// A server as it is written: what carries queries, its host, perhaps a port, and the rest of a
/// URL.
#[derive(Debug, PartialEq, Eq)]
struct Written<'a> {
    carrier: Option<Carrier>,
    host: &'a str,
    port: Option<u16>,
    /// A name for the certificate.
    name: Option<&'a str>,
}

/// Reads `address`, `address:port`, `[address]:port`, `address@port`, `address#port`, `host`,
/// `host:port`, each perhaps behind `udp://`, `tcp://`, `tls://`, `https://`, `h3://` or `quic://`;
/// behind one that encrypts, `#` begins the name in the certificate.
fn written(text: &str) -> Result<Written<'_>, String> {
    let (mut carrier, rest) = match text.split_once("://") {
        None => (None, text),
        Some((scheme, rest)) => {
            let known = Carrier::of(&scheme.to_ascii_lowercase());
            let wrong = || {
                format!(
                    "\"{scheme}://\" in \"@{text}\": expected udp://, tcp://, tls://, https://, h3:// or quic://"
                )
            };
            (Some(known.ok_or_else(wrong)?), rest)
        }
    };
    let (rest, path) = match rest.find('/') {
        Some(at) => (&rest[..at], &rest[at..]),
        None => (rest, ""),
    };
    match (&mut carrier, path) {
        (_, "" | "/") => {}
        (Some(Carrier::Https(own) | Carrier::H3(own)), path) => path.clone_into(own),
        (_, path) => {
            return Err(format!("\"{path}\" in \"@{text}\": only servers for DNS over HTTPS have a path"));
        }
    }
    let is_secure = carrier.as_ref().is_some_and(|carrier| !matches!(carrier, Carrier::Udp | Carrier::Tcp));
    let (rest, name) = match rest.split_once('#') {
        Some((rest, name)) if is_secure => (rest, Some(name)),
        _ => (rest, None),
    };
    let bare = rest.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() {
        return Ok(Written { carrier, host: bare, port: None, name });
    }
    let (host, port) = match rest.rsplit_once(['#', '@', ':']) {
        Some((host, digits)) => match digits.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => return Err(format!("\"{digits}\" in \"@{text}\" is not a port")),
        },
        None => (rest, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err(format!("\"@{text}\" names no host"));
    }
    Ok(Written { carrier, host, port, name })
}

/// Returns the servers to try, the likeliest first.
pub(super) fn targets(words: &Words, args: &QueryArgs) -> Result<Vec<Target>, Nobody> {
    let Some(server) = &words.server else { return here(words, args) };
    if server.starts_with("sdns:") {
        let found = planned(server, &words.wishes.proof, args)?;
        return all(found.addresses, &Line::Secure(found.transport), args);
    }
    let written = written(server).map_err(Nobody::Usage)?;
    let carrier = match (&written.carrier, &words.wishes.carrier) {
        (Some(a), Some(b)) if a.word() != b.word() => {
            let why = format!("\"{}://\" and \"+{}\" exclude each other", a.word(), b.word());
            return Err(Nobody::Usage(why));
        }
        // The path may stand behind the option alone.
        (Some(own), None) => own.clone(),
        (_, Some(wished)) => wished.clone(),
        (None, None) if args.tcp => Carrier::Tcp,
        (None, None) => Carrier::Udp,
    };
    let mut proof = words.wishes.proof.clone();
    if let (Some(name), None) = (written.name, &proof.name) {
        proof.name = Some(name.to_owned());
    }
    targets_of(&carrier, (written.host, written.port.or(args.port)), &proof, args)
}

/// Returns every address of a host, spoken to in one way.
fn targets_of(
    carrier: &Carrier,
    (host, port): (&str, Option<u16>),
    proof: &Proof,
    args: &QueryArgs,
) -> Result<Vec<Target>, Nobody> {
    let line = match carrier {
        Carrier::Udp => Line::Udp,
        Carrier::Tcp => Line::Tcp,
        Carrier::Tls | Carrier::Quic | Carrier::Https(_) | Carrier::H3(_) => {
            let place = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            let (usual, path) = match carrier {
                Carrier::Https(path) | Carrier::H3(path) => (HTTPS_PORT, path.as_str()),
                _ => (SECURE_PORT, ""),
            };
            let url = format!("{}://{place}:{}{path}", carrier.word(), port.unwrap_or(usual));
            let found = planned(&url, proof, args)?;
            return all(found.addresses, &Line::Secure(found.transport), args);
        }
    };
    all(addresses(host, port.unwrap_or(PORT))?, &line, args)
}

/// What a configuration would make of a server.
struct Planned {
    transport: Arc<Transport>,
    addresses: Vec<SocketAddr>,
}

fn planned(url: &str, proof: &Proof, args: &QueryArgs) -> Result<Planned, Nobody> {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut item = format!("{{address: {}", quoted(url));
    let mut say = |key: &str, value: String| item.push_str(&format!(", {key}: {value}"));
    if let Some(name) = &proof.name {
        say("tls-name", quoted(name));
    }
    if let Some(roots) = &proof.roots {
        let file = std::path::absolute(roots).unwrap_or_else(|_| roots.clone());
        say("roots", quoted(&file.display().to_string()));
    }
    if let Some(pin) = &proof.pin {
        say("pins", format!("[{}]", quoted(pin)));
    }
    if proof.is_waived {
        say("verify", "false".to_owned());
    }
    if let Some(source) = args.bind {
        say("source", quoted(&source.to_string()));
    }
    item.push('}');
    let server = server::probe::server(&item, &System).map_err(Nobody::Usage)?;
    let addresses = match &server.target {
        upstreams::Target::Address(address) => vec![*address],
        upstreams::Target::Name { name, port } => addresses(name.to_string().trim_end_matches('.'), *port)?,
    };
    Ok(Planned { transport: Registry::default().transport(&server.way), addresses })
}

/// Returns the addresses of a host; names are looked up as this machine does.
fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, Nobody> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    let ascii = wire::idn::to_ascii(host).map_err(|error| Nobody::Usage(error.to_string()))?;
    match (&*ascii, port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => {
            let host = out::escaped(host);
            Err(Nobody::Unknown(format!("the address of the server \"{host}\" is not known: {error}")))
        }
    }
}

/// Keeps the addresses of the family that is wished for.
fn all(addresses: Vec<SocketAddr>, line: &Line, args: &QueryArgs) -> Result<Vec<Target>, Nobody> {
    let wanted: Vec<Target> = addresses
        .into_iter()
        .filter(|address| is_wanted(*address, args))
        .map(|address| Target { address, line: line.clone() })
        .collect();
    if wanted.is_empty() {
        let family = if args.ipv6 { "IPv6" } else { "IPv4" };
        return Err(Nobody::Unknown(format!("the server has no address of {family}")));
    }
    Ok(wanted)
}

const fn is_wanted(address: SocketAddr, args: &QueryArgs) -> bool {
    if address.is_ipv4() { !args.ipv6 } else { !args.ipv4 }
}

/// Returns the running server's listener for what carries the query, or where a server usually is.
fn here(words: &Words, args: &QueryArgs) -> Result<Vec<Target>, Nobody> {
    let carrier = match &words.wishes.carrier {
        Some(carrier) => carrier.clone(),
        None if args.tcp => Carrier::Tcp,
        None => Carrier::Udp,
    };
    let loopback: IpAddr = if args.ipv6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
    let at = |address: SocketAddr| {
        let host = address.ip().to_string();
        targets_of(&carrier, (&host, Some(address.port())), &words.wishes.proof, args)
    };
    if let Some(port) = args.port {
        return at((loopback, port).into());
    }
    let running = remote::status(&args.remote.socket).and_then(|status| {
        let fitting = status.listeners.iter().filter(|listener| listener.transport == carrier.word());
        let addresses = fitting.filter_map(|listener| listener.at.parse::<SocketAddr>().ok()).map(reachable);
        addresses.into_iter().find(|address| is_wanted(*address, args))
    });
    match (running, &carrier) {
        (Some(address), _) => at(address),
        (None, Carrier::Udp | Carrier::Tcp) => {
            let both = LOCAL_PORTS.map(|port| at((loopback, port).into()));
            both.into_iter().collect::<Result<Vec<_>, _>>().map(|targets| targets.concat())
        }
        (None, _) => {
            let word = carrier.word();
            Err(Nobody::Unknown(format!(
                "no running gannet listens for {word} here; say whom to ask: @SERVER"
            )))
        }
    }
}

/// Returns where to send for a listener at `address`: "every address" includes the loopback one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, carrier: Option<&str>, host: &str, port: Option<u16>, name: Option<&str>) {
        let found = written(text).unwrap();
        let word = found.carrier.as_ref().map(Carrier::word);
        assert_eq!((word, found.host, found.port, found.name), (carrier, host, port, name), "{text}");
    }

    #[test]
    fn servers_are_written_in_many_ways() {
        for text in ["192.0.2.1:5353", "192.0.2.1#5353", "192.0.2.1@5353"] {
            check(text, None, "192.0.2.1", Some(5353), None);
        }
        check("2001:db8::1", None, "2001:db8::1", None, None);
        check("[2001:db8::1]", None, "2001:db8::1", None, None);
        check("[2001:db8::1]:5300", None, "2001:db8::1", Some(5300), None);
        check("tcp://localhost:53", Some("tcp"), "localhost", Some(53), None);
        check("tls://192.0.2.1#dns.example", Some("tls"), "192.0.2.1", None, Some("dns.example"));
        check("quic://[2001:db8::1]:8853", Some("quic"), "2001:db8::1", Some(8853), None);
        assert_eq!(
            written("https://dns.example:8443/kids").unwrap().carrier,
            Some(Carrier::Https("/kids".into()))
        );
    }

    #[test]
    fn a_server_that_makes_no_sense_is_wrong_usage() {
        for (text, expect) in [
            ("192.0.2.1:x", "\"x\" in \"@192.0.2.1:x\" is not a port"),
            (
                "tsl://x",
                "\"tsl://\" in \"@tsl://x\": expected udp://, tcp://, tls://, https://, h3:// or quic://",
            ),
            ("tls://x/y", "\"/y\" in \"@tls://x/y\": only servers for DNS over HTTPS have a path"),
            (":53", "\"@:53\" names no host"),
        ] {
            assert_eq!(written(text).unwrap_err(), expect);
        }
    }
}
