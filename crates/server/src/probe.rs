//! An upstream server is measured over the transports that the server itself would use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use control::api;
use diagnostic::Diagnostic;
use environment::{Environment, System};
use exchange::probe::Watched;
use identity::{Registry, Transport};
use plan::tls::{CertificateFacts, pin_text};
use plan::upstreams::{Scheme, ServerPlan, Target};
use tokio::net::{UdpSocket, lookup_host};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;
use wire::{Class, Flags, Message, NameBuf, OptionCode, Question, Rcode, Rtype, Section, Writer};

/// Time for a connection and its handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(6);
/// Queries sent at once to see whether a connection carries several.
const PIPELINED: u16 = 16;
/// The largest UDP reply we ask for (DNS flag day 2020).
const UDP_OCTETS_MAX: u16 = 1232;
/// The network that clients of the probe pretend to be in (RFC 5737).
const SUBNET: [u8; 3] = [192, 0, 2];
/// How the transports are written before a host.
const SCHEMES: [&str; 6] = ["udp", "tcp", "tls", "https", "h3", "quic"];

/// How a server is measured.
#[derive(Clone, Debug)]
pub struct Measuring {
    /// The server as written.
    pub written: String,
    /// The query name; further queries use random names below it.
    pub name: NameBuf,
    /// A name with valid signatures.
    pub signed: NameBuf,
    /// A name with invalid signatures.
    pub bogus: NameBuf,
    /// Queries to send one after the other.
    pub count: u16,
    /// How long to wait for each reply.
    pub timeout: Duration,
    /// How long to wait for an idle connection to be closed; not at all when absent.
    pub idle: Option<Duration>,
    /// Whether the host is asked at the usual ports of other transports, too.
    pub tries_others: bool,
    /// How long all of it may take; what is measured by then is reported.
    pub patience: Option<Duration>,
}

/// Reads a server as it stands in the configuration: a text, or a mapping in braces.
///
/// # Errors
///
/// It is none, and why.
pub fn server(written: &str, environment: &dyn Environment) -> Result<ServerPlan, String> {
    let item = if written.trim_start().starts_with('{') {
        written.to_owned()
    } else {
        format!("\"{}\"", written.replace('\\', "\\\\").replace('"', "\\\""))
    };
    // The cache is not used.
    let yaml = format!("upstreams: {{default: {{servers: [{item}]}}}}\ncache: {{main: {{size: 1MiB}}}}\n");
    let plans = settings::load_text(Path::new("the server"), &yaml, environment)
        .and_then(|loaded| config::compile(&loaded, &[], None, environment));
    let plans = plans.map_err(|found| {
        let lines: Vec<String> = found.iter().map(|problem: &Diagnostic| problem.message.clone()).collect();
        lines.join("; ")
    })?;
    let server = plans.fetch.pools.first().and_then(|pool| pool.servers.first()).cloned();
    server.ok_or_else(|| format!("\"{written}\" stands for no server"))
}

/// Measures a server; waits until that is done.
///
/// # Errors
///
/// The machine has nothing to do it with.
pub fn measure(asked: &Measuring, server: &ServerPlan) -> Result<api::Probe, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot begin: {error}"))?;
    let mut report = api::Probe { server: asked.written.clone(), ..api::Probe::default() };
    let whole = async {
        let measuring = measure_all(asked, server, &mut report);
        match asked.patience {
            None => measuring.await.err(),
            Some(patience) => match timeout(patience, measuring).await {
                Ok(done) => done.err(),
                Err(_) => Some(format!("not done after {} s; the rest is not known", patience.as_secs())),
            },
        }
    };
    let trouble = LocalSet::new().block_on(&runtime, whole);
    report.trouble = trouble;
    // A name that is still looked up keeps nobody waiting.
    runtime.shutdown_background();
    Ok(report)
}

/// Returns where a server is; names are looked up as this machine does.
async fn address(server: &ServerPlan) -> Result<SocketAddr, String> {
    match &server.target {
        Target::Address(address) => Ok(*address),
        Target::Name { name, port } => {
            let text = name.to_string();
            let host = text.trim_end_matches('.');
            let found = timeout(CONNECT_TIMEOUT, lookup_host((host, *port))).await;
            let found = found.map_err(|_| format!("{host}: no address in time"))?;
            let mut found = found.map_err(|error| format!("{host}: {error}"))?;
            found.next().ok_or_else(|| format!("{host} has no address"))
        }
    }
}

/// One way to a server.
enum Line {
    Datagrams(UdpSocket),
    Connection(Watched),
}

impl Line {
    /// Opens it, and says how long that took.
    async fn open(address: SocketAddr, transport: &Arc<Transport>) -> Result<(Self, Duration), String> {
        let begun = Instant::now();
        if !transport.way().is_connected() {
            let any: IpAddr =
                if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let socket = UdpSocket::bind((any, 0)).await.map_err(|error| error.to_string())?;
            socket.connect(address).await.map_err(|error| error.to_string())?;
            return Ok((Self::Datagrams(socket), begun.elapsed()));
        }
        let watched = Watched::open(address, Arc::clone(transport));
        match timeout(CONNECT_TIMEOUT, watched.opened()).await {
            Ok(Ok(opened)) => Ok((Self::Connection(watched), opened.saturating_duration_since(begun))),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())),
        }
    }

    async fn send(&self, query: &[u8]) -> Result<(), String> {
        match self {
            Self::Datagrams(socket) => socket.send(query).await.map(drop).map_err(|error| error.to_string()),
            Self::Connection(watched) => {
                watched.send(query);
                Ok(())
            }
        }
    }

    /// Waits for the next reply; `None` when none comes in time, or none can come any more.
    async fn next(&self, patience: Duration) -> Option<Vec<u8>> {
        match self {
            Self::Datagrams(socket) => {
                let mut buffer = vec![0; usize::from(u16::MAX)];
                let len = timeout(patience, socket.recv(&mut buffer)).await.ok()?.ok()?;
                buffer.truncate(len);
                Some(buffer)
            }
            Self::Connection(watched) => {
                timeout(patience, watched.next()).await.ok()?.map(|(_, reply)| reply)
            }
        }
    }

    /// Asks, and waits for the reply with the same ID.
    async fn ask(&self, query: &Asked, patience: Duration) -> Result<(Vec<u8>, Duration), String> {
        let begun = Instant::now();
        self.send(&query.write()).await?;
        loop {
            let left = patience.saturating_sub(begun.elapsed());
            let Some(reply) = self.next(left).await else { return Err("no reply in time".to_owned()) };
            if reply.starts_with(&query.id.to_be_bytes()) {
                return Ok((reply, begun.elapsed()));
            }
        }
    }
}

/// A question of the probe.
struct Asked {
    id: u16,
    name: NameBuf,
    rtype: Rtype,
    dnssec: bool,
    unchecked: bool,
    subnet: bool,
}

impl Asked {
    fn new(id: u16, name: NameBuf) -> Self {
        Self { id, name, rtype: Rtype::A, dnssec: false, unchecked: false, subnet: false }
    }

    fn write(&self) -> Vec<u8> {
        let flags = if self.unchecked { Flags::RD.with(Flags::CD) } else { Flags::RD };
        let mut bytes = vec![0; 512];
        let mut writer = Writer::new(&mut bytes, 512, self.id, flags);
        let question = Question { qname: self.name.as_name(), qtype: self.rtype, qclass: Class::IN };
        writer.question(&question).expect("a name of 255 octets and an OPT fit in 512");
        let subnet = |writer: &mut Writer<'_>| match self.subnet {
            true => {
                // RFC 7871 §6: family 1, a prefix of 24 bits, scope 0.
                let [a, b, c] = SUBNET;
                writer.option(OptionCode::CLIENT_SUBNET, &[0, 1, 24, 0, a, b, c])
            }
            false => Ok(()),
        };
        let opt = writer.opt(UDP_OCTETS_MAX, Rcode::NOERROR, self.dnssec, subnet);
        opt.expect("a name of 255 octets and an OPT fit in 512");
        let len = writer.finish();
        bytes.truncate(len);
        bytes
    }
}

/// Measures everything, as far as it can be measured; an error says why the rest could not.
async fn measure_all(args: &Measuring, server: &ServerPlan, report: &mut api::Probe) -> Result<(), String> {
    let scheme = server.way.protocol.scheme();
    report.transport = match scheme {
        Scheme::Udp => "udp".to_owned(),
        other => other.prefix().trim_end_matches("://").to_owned(),
    };
    let address = address(server).await?;
    report.address = address.to_string();
    if args.tries_others {
        report.offered = offered(args).await;
    }
    let transport = Registry::default().transport(&server.way);
    let opened = Line::open(address, &transport).await;
    report.certificate = transport.tls.as_ref().and_then(|tls| shown(&tls.last_shown()?));
    let (line, took) = opened?;
    report.connect_ms = matches!(line, Line::Connection(_)).then(|| milliseconds(took));
    let mut times = Vec::new();
    for id in 0..args.count {
        match line.ask(&Asked::new(id, args.name), args.timeout).await {
            Ok((reply, took)) => {
                times.push(took);
                if times.len() == 1 {
                    report.rcode = Message::parse(&reply).ok().map(|message| message.rcode().to_string());
                }
            }
            Err(why) if times.is_empty() => return Err(why),
            Err(_) => report.unanswered += 1,
        }
        report.answered = times.len() as u32;
    }
    report.round_trips = round_trips(&mut times);
    report.dnssec = Some(dnssec(&line, args).await);
    report.client_subnet = Some(client_subnet(&line, args).await);
    report.pipelining = Some(pipelining(&line, args).await);
    if let (Line::Connection(watched), Some(idle)) = (&line, args.idle) {
        let begun = Instant::now();
        let ended = timeout(idle, async { while watched.next().await.is_some() {} }).await;
        report.closed_after_ms = ended.is_ok().then(|| milliseconds(begun.elapsed()));
        report.watched_for_ms = Some(milliseconds(begun.elapsed()));
    }
    if let Line::Connection(_) = &line {
        report.again_ms = Line::open(address, &transport).await.ok().map(|(_, took)| milliseconds(took));
    }
    Ok(())
}

/// Returns what a certificate says.
fn shown(certificate: &[u8]) -> Option<api::ShownCertificate> {
    let CertificateFacts { subject, begins, ends, names, key, .. } = CertificateFacts::parse(certificate)?;
    let at = |seconds| jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string();
    Some(api::ShownCertificate {
        subject,
        names,
        begins: at(begins),
        ends: at(ends),
        ends_in_s: ends - System.unix_seconds(),
        pin: pin_text(&key),
    })
}

/// Returns a time in milliseconds, to the microsecond.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Tries the host of the server over every transport, at the usual ports.
async fn offered(args: &Measuring) -> Vec<api::Offered> {
    let written = args.written.split_once("://").map_or(args.written.as_str(), |(_, rest)| rest);
    // What is given as a mapping or a stamp is asked in its own way alone.
    let is_plain = !args.written.contains(['{', '@']) && !args.written.starts_with("sdns:");
    let (place, tls_name) = written.split_once('#').unwrap_or((written, ""));
    let host = place.split('/').next().unwrap_or(place);
    let host = host
        .rsplit_once(':')
        .filter(|(before, _)| !before.contains(':') || before.ends_with(']'))
        .map_or(host, |(host, _)| host);
    // All at once: what does not answer costs its time only once.
    let mut attempts = JoinSet::new();
    for scheme in SCHEMES.iter().filter(|_| is_plain) {
        let is_secured = !matches!(*scheme, "udp" | "tcp");
        let name = if is_secured && !tls_name.is_empty() { format!("#{tls_name}") } else { String::new() };
        let Ok(server) = server(&format!("{scheme}://{host}{name}"), &System) else { continue };
        let (asked, patience) = (Asked::new(1, args.name), args.timeout);
        attempts.spawn_local(async move { (*scheme, try_transport(&server, &asked, patience).await) });
    }
    let mut offered = Vec::new();
    while let Some(Ok((scheme, trouble))) = attempts.join_next().await {
        offered.push(api::Offered { transport: scheme.to_owned(), answers: trouble.is_none(), trouble });
    }
    offered.sort_by_key(|offered| SCHEMES.iter().position(|scheme| *scheme == offered.transport));
    offered
}

/// Asks a server one question; returns what was wrong.
async fn try_transport(server: &ServerPlan, asked: &Asked, patience: Duration) -> Option<String> {
    let address = match address(server).await {
        Ok(address) => address,
        Err(why) => return Some(why),
    };
    let transport = Registry::default().transport(&server.way);
    let line = match Line::open(address, &transport).await {
        Ok((line, _)) => line,
        Err(why) => return Some(why),
    };
    line.ask(asked, patience).await.err()
}

/// Sends many queries for different names at once.
async fn pipelining(line: &Line, args: &Measuring) -> api::Pipelining {
    let mut sent = Vec::new();
    for number in 0..PIPELINED {
        let id = 0x4000 + number;
        // Nobody has these in a cache: the server has to look for each.
        let mut random = [0; 4];
        System.random(&mut random);
        let name = format!("gannet-probe-{:08x}.{}", u32::from_be_bytes(random), args.name);
        let asked = Asked::new(id, name.parse().unwrap_or(args.name));
        if line.send(&asked.write()).await.is_err() {
            break;
        }
        sent.push(id);
    }
    let mut order = Vec::new();
    while order.len() < sent.len()
        && let Some(reply) = line.next(args.timeout).await
    {
        if let Some(&id) = reply.first_chunk::<2>() {
            let id = u16::from_be_bytes(id);
            if sent.contains(&id) && !order.contains(&id) {
                order.push(id);
            }
        }
    }
    api::Pipelining {
        sent: sent.len() as u32,
        answered: order.len() as u32,
        out_of_order: !order.is_sorted(),
    }
}

/// Says what becomes of a client's subnet.
async fn client_subnet(line: &Line, args: &Measuring) -> String {
    let asked = Asked { subnet: true, ..Asked::new(0x5000, args.name) };
    let Ok((reply, _)) = line.ask(&asked, args.timeout).await else { return "no reply".to_owned() };
    let Ok(message) = Message::parse(&reply) else { return "a reply that cannot be read".to_owned() };
    match message.edns.and_then(|edns| edns.option(OptionCode::CLIENT_SUBNET)) {
        None if message.rcode() != Rcode::NOERROR => format!("refused with {}", message.rcode()),
        None => "not taken".to_owned(),
        Some(&[_, _, _, 0, ..]) => "taken, and the answer is for everybody".to_owned(),
        Some(&[_, _, _, scope, ..]) => format!("taken, and the answer is for a /{scope}"),
        Some(_) => "an option that cannot be read".to_owned(),
    }
}

/// Says whether signatures are passed on and checked.
async fn dnssec(line: &Line, args: &Measuring) -> api::Dnssec {
    let mut found = api::Dnssec::default();
    let asked = Asked { dnssec: true, ..Asked::new(0x6000, args.signed) };
    if let Ok((reply, _)) = line.ask(&asked, args.timeout).await
        && let Ok(message) = Message::parse(&reply)
    {
        found.says_it_validated = message.header.flags.has(Flags::AD);
        let mut answers = message.records().filter(|record| record.section == Section::Answer);
        found.passes_signatures_on = answers.any(|record| record.rtype == Rtype::RRSIG);
    }
    let bogus = |id, unchecked| Asked { unchecked, ..Asked::new(id, args.bogus) };
    let rcode = async |asked: Asked| {
        let (reply, _) = line.ask(&asked, args.timeout).await.ok()?;
        Message::parse(&reply).ok().map(|message| message.rcode())
    };
    let checked = rcode(bogus(0x6001, false)).await;
    let unchecked = rcode(bogus(0x6002, true)).await;
    found.refuses_bogus = match (checked, unchecked) {
        (Some(Rcode::SERVFAIL), Some(Rcode::NOERROR)) => Some(true),
        (Some(Rcode::NOERROR), _) => Some(false),
        _ => None,
    };
    found
}

fn round_trips(times: &mut [Duration]) -> Option<api::RoundTrips> {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len().checked_sub(1)? * share / 100).copied().map(milliseconds);
    Some(api::RoundTrips { least_ms: at(0)?, median_ms: at(50)?, p95_ms: at(95)?, most_ms: at(100)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_as_in_the_configuration() {
        assert!(
            server("tls://9.9.9.9#dns.quad9.net", &System)
                .is_ok_and(|plan| plan.way.protocol.scheme() == Scheme::Tls)
        );
        assert!(server("{address: \"tls://9.9.9.9\", verify: false}", &System).is_ok());
        assert!(server("ftp://9.9.9.9", &System).is_err_and(|why| why.contains("unknown transport")));
    }

    #[test]
    fn round_trips_are_told_by_their_shares() {
        let mut times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        let trips = round_trips(&mut times).expect("there are some");
        assert_eq!((trips.least_ms, trips.median_ms, trips.p95_ms, trips.most_ms), (1.0, 50.0, 95.0, 100.0));
        assert!(round_trips(&mut []).is_none());
    }

    #[test]
    fn what_is_asked_can_be_parsed() {
        let name: NameBuf = "www.example.org".parse().expect("a name");
        let asked = Asked { subnet: true, dnssec: true, ..Asked::new(7, name) };
        let bytes = asked.write();
        let query = wire::Query::parse(&bytes).expect("well formed");
        let edns = query.edns.expect("an OPT");
        assert!(edns.wants_dnssec());
        assert_eq!(edns.option(OptionCode::CLIENT_SUBNET), Some(&[0, 1, 24, 0, 192, 0, 2][..]));
    }
}
