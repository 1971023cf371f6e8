//! `gannet probe`: measures an upstream server, over the transports that the server itself would
//! use.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use commands::cli::ProbeArgs;
use commands::out;
use control::api;
use environment::System;
use exchange::probe::Watched;
use identity::{Registry, Transport};
use plan::upstreams::{ServerPlan, Target};
use tokio::net::UdpSocket;
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

/// Runs `gannet probe`.
pub(crate) fn run(args: &ProbeArgs) -> ExitCode {
    let server = match server(&args.server) {
        Ok(server) => server,
        Err(why) => return out::wrong(&why, args.output),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return out::failed(&format!("cannot begin: {error}"), args.output),
    };
    let report = LocalSet::new().block_on(&runtime, measure(args, &server));
    out::print(&if args.output.json { api::to_json(&report) } else { text(&report) });
    if report.trouble.is_none() { out::FINE } else { out::negative() }
}

/// Reads a server as it stands in the configuration: a text, or a mapping in braces.
pub(crate) fn server(written: &str) -> Result<ServerPlan, String> {
    let item = if written.trim_start().starts_with('{') {
        written.to_owned()
    } else {
        format!("\"{}\"", written.replace('\\', "\\\\").replace('"', "\\\""))
    };
    // The cache is not used.
    let yaml = format!("upstreams: {{default: {{servers: [{item}]}}}}\ncache: {{main: {{size: 1MiB}}}}\n");
    let plans = settings::load_text(Path::new("the server"), &yaml, &System)
        .and_then(|loaded| config::compile(&loaded, &[], None, &System));
    let plans = plans.map_err(|found| {
        let lines: Vec<String> = found.iter().map(|problem| problem.message.clone()).collect();
        lines.join("; ")
    })?;
    let server = plans.fetch.pools.first().and_then(|pool| pool.servers.first()).cloned();
    server.ok_or_else(|| format!("\"{written}\" stands for no server"))
}

/// Returns where a server is; names are looked up as this machine does.
fn address(server: &ServerPlan) -> Result<SocketAddr, String> {
    match &server.target {
        Target::Address(address) => Ok(*address),
        Target::Name { name, port } => {
            let text = name.to_string();
            let host = text.trim_end_matches('.');
            let found = (host, *port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
            found.into_iter().next().ok_or_else(|| format!("{host} has no address"))
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

/// Measures everything, as far as it can be measured.
async fn measure(args: &ProbeArgs, server: &ServerPlan) -> api::Probe {
    let mut report = api::Probe { server: args.server.clone(), ..api::Probe::default() };
    let address = match address(server) {
        Ok(address) => address,
        Err(why) => return api::Probe { trouble: Some(why), ..report },
    };
    report.address = address.to_string();
    report.offered = offered(args).await;
    let transport = Registry::default().transport(&server.way);
    let (line, took) = match Line::open(address, &transport).await {
        Ok(opened) => opened,
        Err(why) => return api::Probe { trouble: Some(why), ..report },
    };
    let is_connection = matches!(line, Line::Connection(_));
    report.connect_ms = is_connection.then(|| out::milliseconds(took));
    let mut times = Vec::new();
    for id in 0..args.count {
        match line.ask(&Asked::new(id, args.name), args.timeout).await {
            Ok((_, took)) => times.push(took),
            Err(why) if times.is_empty() => return api::Probe { trouble: Some(why), ..report },
            Err(_) => report.unanswered += 1,
        }
    }
    report.answered = times.len() as u32;
    report.round_trips = round_trips(&mut times);
    report.pipelining = Some(pipelining(&line, args).await);
    report.client_subnet = Some(client_subnet(&line, args).await);
    report.dnssec = Some(dnssec(&line, args).await);
    if let Line::Connection(watched) = &line {
        let begun = Instant::now();
        let ended = timeout(args.idle, async { while watched.next().await.is_some() {} }).await;
        report.closed_after_ms = ended.is_ok().then(|| out::milliseconds(begun.elapsed()));
        report.watched_for_ms = Some(out::milliseconds(begun.elapsed()));
        report.again_ms = Line::open(address, &transport).await.ok().map(|(_, took)| out::milliseconds(took));
    }
    report
}

/// Tries the host of the server over every transport, at the usual ports.
async fn offered(args: &ProbeArgs) -> Vec<api::Offered> {
    let written = args.server.split_once("://").map_or(args.server.as_str(), |(_, rest)| rest);
    // What is given as a mapping or a stamp is asked in its own way alone.
    let is_plain = !args.server.contains(['{', '@']) && !args.server.starts_with("sdns:");
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
        let Ok(server) = server(&format!("{scheme}://{host}{name}")) else { continue };
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
    let address = match address(server) {
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
async fn pipelining(line: &Line, args: &ProbeArgs) -> api::Pipelining {
    let mut sent = Vec::new();
    for number in 0..PIPELINED {
        let id = 0x4000 + number;
        // Nobody has these in a cache: the server has to look for each.
        let name = format!("gannet-probe-{:08x}.{}", rand::random::<u32>(), args.name);
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
async fn client_subnet(line: &Line, args: &ProbeArgs) -> String {
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
async fn dnssec(line: &Line, args: &ProbeArgs) -> api::Dnssec {
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
    let at =
        |share: usize| times.get(times.len().checked_sub(1)? * share / 100).copied().map(out::milliseconds);
    Some(api::RoundTrips { least_ms: at(0)?, median_ms: at(50)?, p95_ms: at(95)?, most_ms: at(100)? })
}

/// Draws the report as a table.
fn text(report: &api::Probe) -> String {
    let mut text = String::new();
    let mut row = |key: &str, value: String| {
        let _ = writeln!(text, "{key:<16}{}", out::escaped(&value));
    };
    row("server", report.server.clone());
    row("address", report.address.clone());
    for offered in &report.offered {
        let outcome = offered.trouble.clone().unwrap_or_else(|| "answers".to_owned());
        row("", format!("{:<6} {outcome}", offered.transport));
    }
    if let Some(trouble) = &report.trouble {
        row("trouble", trouble.clone());
        return text;
    }
    if let Some(connect_ms) = report.connect_ms {
        let again = report.again_ms.map(|again| format!(", again in {again} ms")).unwrap_or_default();
        row("connects in", format!("{connect_ms} ms{again}"));
    }
    let unanswered = match report.unanswered {
        0 => String::new(),
        count => format!(", {count} without an answer"),
    };
    row("queries", format!("{} answered one after the other{unanswered}", report.answered));
    if let Some(trips) = &report.round_trips {
        let (least, median, p95, most) = (trips.least_ms, trips.median_ms, trips.p95_ms, trips.most_ms);
        row("round trip", format!("{least} ms at least, {median} median, {p95} p95, {most} at most"));
    }
    if let Some(many) = &report.pipelining {
        let order = if many.out_of_order { "out of order" } else { "in order" };
        row("at once", format!("{} of {} answered, {order}", many.answered, many.sent));
    }
    match (report.closed_after_ms, report.watched_for_ms) {
        (Some(after), _) => row("idle", format!("closed after {after} ms")),
        (None, Some(watched)) => row("idle", format!("still open after {watched} ms")),
        (None, None) => (),
    }
    if let Some(subnet) = &report.client_subnet {
        row("client subnet", subnet.clone());
    }
    if let Some(dnssec) = &report.dnssec {
        let yes = |is: bool| if is { "yes" } else { "no" };
        let refuses = dnssec.refuses_bogus.map_or("not known", yes);
        row("signatures", format!("passed on: {}", yes(dnssec.passes_signatures_on)));
        row("", format!("said to be checked (AD): {}", yes(dnssec.says_it_validated)));
        row("", format!("bogus data refused: {refuses}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::upstreams::Scheme;

    #[test]
    fn servers_are_read_as_in_the_configuration() {
        assert!(
            server("tls://9.9.9.9#dns.quad9.net").is_ok_and(|plan| plan.way.protocol.scheme() == Scheme::Tls)
        );
        assert!(server("{address: \"tls://9.9.9.9\", verify: false}").is_ok());
        assert!(server("ftp://9.9.9.9").is_err_and(|why| why.contains("unknown transport")));
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
